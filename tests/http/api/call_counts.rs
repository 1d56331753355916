//! I10 cheap: the calls of each request to the ports are constants. None of them grows with the number of
//! stacks or of versions.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};
use statewright_shared::adapters::{
    Calls, Counter, Counting, MemoryBlobs, MemoryKeys, MemoryLedger, SeededIds, SystemClock, SystemIds,
};
use statewright_shared::domain::names::Login;
use statewright_shared::domain::role::Role;
use statewright_shared::layout::SignedInBy;
use statewright_shared::ports::{
    Blob, BlobKey, Blobs, CommitError, DataKey, Ids, Item, ItemKey, KeyContext, Keys, KeysError, Ledger,
    Page, PortError, Query, WrappedKey, Write,
};
use statewright_shared::services::audit;
use statewright_shared::services::identity::sessions;
use statewright_shared::settings::Settings;
use statewright_tests::app::{ORG, TestApp, USER};
use statewright_tests::aws::{self, Gateway, StandIn};
use statewright_tests::meter::Usage;

use crate::world::{Run, Stack, deployment};

pub(crate) async fn counted() -> (TestApp, Counter) {
    counted_with(Settings::default()).await
}

/// The same with an operator's settings.
pub(crate) async fn counted_with(settings: Settings) -> (TestApp, Counter) {
    let counter = Counter::new();
    let ids: Arc<dyn Ids> = Arc::new(SeededIds::new(1));
    let app = TestApp::memory_with_settings(
        Arc::new(Counting::new(Unhurried(MemoryLedger::new()), counter.clone())),
        Arc::new(Counting::new(Unhurried(MemoryBlobs::new()), counter.clone())),
        Arc::new(Counting::new(Unhurried(MemoryKeys::new(Arc::clone(&ids))), counter.clone())),
        ids,
        settings,
    )
    .await;
    (app, counter)
}

/// A port whose calls take equally long, counted in turns of the request that waits for them: so concurrent
/// calls overlap, as over a network, and in the same way in each run.
struct Unhurried<P>(P);

impl<P> Unhurried<P> {
    async fn wait(&self) {
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
    }
}

#[async_trait]
impl<L: Ledger> Ledger for Unhurried<L> {
    async fn get(&self, key: &ItemKey) -> Result<Option<Item>, PortError> {
        self.wait().await;
        self.0.get(key).await
    }
    async fn query(&self, query: &Query) -> Result<Page, PortError> {
        self.wait().await;
        self.0.query(query).await
    }
    async fn commit(&self, writes: Vec<Write>) -> Result<(), CommitError> {
        self.wait().await;
        self.0.commit(writes).await
    }
    fn inline_bytes_max(&self) -> usize {
        self.0.inline_bytes_max()
    }
}

#[async_trait]
impl<B: Blobs> Blobs for Unhurried<B> {
    async fn put(&self, key: &BlobKey, body: Bytes) -> Result<(), PortError> {
        self.wait().await;
        self.0.put(key, body).await
    }
    async fn get(&self, key: &BlobKey) -> Result<Option<Blob>, PortError> {
        self.wait().await;
        self.0.get(key).await
    }
    async fn get_range(&self, key: &BlobKey, range: Range<u64>) -> Result<Option<Blob>, PortError> {
        self.wait().await;
        self.0.get_range(key, range).await
    }
    async fn delete(&self, key: &BlobKey) -> Result<(), PortError> {
        self.wait().await;
        self.0.delete(key).await
    }
}

#[async_trait]
impl<K: Keys> Keys for Unhurried<K> {
    async fn generate(&self, context: &KeyContext) -> Result<(DataKey, WrappedKey), KeysError> {
        self.wait().await;
        self.0.generate(context).await
    }
    async fn unwrap(&self, wrapped: &WrappedKey, context: &KeyContext) -> Result<DataKey, KeysError> {
        self.wait().await;
        self.0.unwrap(wrapped, context).await
    }
    async fn rewrap(
        &self,
        wrapped: &WrappedKey,
        context: &KeyContext,
    ) -> Result<Option<WrappedKey>, KeysError> {
        self.wait().await;
        self.0.rewrap(wrapped, context).await
    }
}

/// The calls of one request without zeros, and how many of them wait for one another.
pub(crate) fn describe_calls(calls: Calls) -> String {
    let counts = [
        (calls.ledger_gets, "get"),
        (calls.ledger_queries, "query"),
        (calls.ledger_single_commits, "commit"),
        (calls.ledger_joint_commits, "joint commit"),
        (calls.blob_gets, "blob get"),
        (calls.blob_puts, "blob put"),
        (calls.blob_deletes, "blob delete"),
        (calls.keys_generated, "key made"),
        (calls.keys_unwrapped, "key opened"),
    ];
    let words: Vec<_> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if words.is_empty() {
        return "nothing".to_owned();
    }
    format!("{} ({})", words.join(", "), calls.in_sequence)
}

/// Text that stays large when it is compressed, of about eight times this many characters.
fn incompressible(words: u32) -> String {
    (0..words).map(|number| format!("{:x}", number.wrapping_mul(2_654_435_761))).collect()
}

/// Performs each request once on a warm process and reports its cost: `taken` returns the cost since its last
/// call.
async fn costs(app: &TestApp, taken: impl Fn() -> String, stack: &Stack<'_>) -> String {
    let mut table = String::new();
    let mut note = |what: &str| writeln!(table, "{what:20}{}", taken()).unwrap();
    // The audit trail sums up looks and refusals of a minute.
    app.advance(Duration::from_secs(61));
    audit::flush(&app.context, false).await.unwrap();
    // Cached in every process: the stack's data key, and the key that verifies update tokens.
    let sealed = stack.post("/encrypt", &json!({ "plaintext": "c2VjcmV0" })).send().await.expect(200);
    stack.preview().await.complete("succeeded").await.expect(204);
    taken();

    app.get("/api/capabilities").send().await.expect(200);
    note("capabilities");
    app.get("/api/user").send().await.expect(200);
    note("user");
    stack.post("/encrypt", &json!({ "plaintext": "c2VjcmV0" })).send().await.expect(200);
    note("encrypt");
    stack.post("/batch-decrypt", &json!({ "ciphertexts": [sealed["ciphertext"]] })).send().await.expect(200);
    note("batch-decrypt");
    stack.get("").send().await.expect(200);
    note("get stack");
    stack.export().await;
    note("export");
    stack.get("/export/1").send().await.expect(200);
    note("export version");
    stack.get("/outputs").send().await.expect(200);
    note("outputs");
    stack.get("/updates?pageSize=10&page=1").send().await.expect(200);
    note("history page");
    stack.get("/updates/latest").send().await.expect(200);
    note("latest update");
    let run_of = async |tail: &str, at: &str| -> String {
        let found = stack.get(tail).send().await.expect(200);
        found.pointer(at).and_then(Value::as_str).expect("an ID of an update").to_owned()
    };
    let of_version = run_of("/updates/1", "/updateID").await;
    taken();
    stack.get(&format!("/updates/{of_version}")).send().await.expect(200);
    note("update by its id");
    let of_preview = run_of("/previews?pageSize=1", "/previews/0/updateID").await;
    note("previews, 1 a page");
    stack.get(&format!("/updates/{of_preview}")).send().await.expect(200);
    note("preview by its id");
    stack.get("/updates/1/diff/1").send().await.expect(200);
    note("compare versions");
    stack.get("/resources").send().await.expect(200);
    note("resources");
    stack.get("/resources?filter=id-a").send().await.expect(200);
    note("resources filtered");
    let urn = stack.urn("a");
    stack.get(&format!("/resources?parent={urn}")).send().await.expect(200);
    note("resources below one");
    stack.get(&format!("/resource?urn={urn}")).send().await.expect(200);
    note("resource");
    stack.get(&format!("/resource/neighbours?urn={urn}")).send().await.expect(200);
    note("neighbours");
    stack.get(&format!("/resource/neighbours?hops=3&urn={urn}")).send().await.expect(200);
    note("neighbours, 3 hops");
    app.get(&format!("/api/user/stacks?project={}", stack.project)).send().await.expect(200);
    note("list of a project");
    app.request(reqwest::Method::HEAD, &format!("/api/stacks/{ORG}/{}", stack.project)).send().await;
    note("project exists");
    app.patch(&format!("{}/tags", stack.path), &json!({ "a": "b" })).send().await.expect(204);
    note("tags");

    let preview = stack.preview().await;
    note("begin preview");
    preview.complete("succeeded").await.expect(204);
    note("complete preview");
    let created = stack.created().await;
    note("create");
    let started = created.start(Some(2)).await.expect(200);
    note("start");
    created.with_token(started["token"].as_str().unwrap()).complete("succeeded").await.expect(204);
    note("complete unchanged");

    let run: Run<'_> = stack.begin().await;
    note("begin");
    stack.begin_call("update", false).send().await.refused(409);
    note("begin refused");
    run.append(&[stack.made(1, "x")]).await.expect(204);
    note("first append");
    run.append(&[stack.made(2, "y")]).await.expect(204);
    note("append");
    app.advance(Duration::from_secs(2));
    run.append(&[stack.made(3, "z")]).await.expect(204);
    note("append after a rest");
    let mut large = stack.made(4, "large");
    large["state"]["outputs"] = json!({ "text": incompressible(40_000) });
    run.append(&[large]).await.expect(204);
    note("append of 200 KB");
    run.event(1).await.expect(204);
    note("events");
    let events = format!("{}/events", run.path);
    let read = app.get(&events).send().await.expect(200);
    taken();
    let token = read["continuationToken"].as_str().expect("it runs");
    let nothing = app.get(&format!("{events}?continuationToken={token}")).send().await;
    assert!(nothing.bytes.len() <= 120, "what decision 41 says: {}", nothing.text());
    assert_eq!(nothing.expect(200)["events"], json!([]));
    note("events without news");
    stack.get("").send().await.expect(200);
    note("get running stack");
    stack.export().await;
    note("export running");
    run.renew(300).await.expect(200);
    note("renew");
    run.complete("succeeded").await.expect(204);
    note("complete");
    run.complete("succeeded").await.expect(204);
    note("complete again");
    let run = stack.begin_whole().await;
    taken();
    let text = |name: &str| deployment(&[stack.resource(name)]).to_string();
    run.save(1, &text("s")).await.expect(204);
    note("first save");
    run.delta(2, &text("s"), &text("t")).await.expect(204);
    note("delta");
    run.delta(2, &text("s"), &text("t")).await.expect(204);
    note("delta again");
    let other = app.another_process("other").await;
    run.at(&other).delta(3, &text("t"), &text("x")).await.expect(204);
    taken();
    run.delta(4, &text("x"), &text("u")).await.expect(204);
    note("delta after others");
    run.delta(5, &text("longer"), &text("v")).await.refused(409);
    note("delta refused");
    run.save(5, &text("v")).await.expect(204);
    note("save");
    run.complete("succeeded").await.expect(204);
    note("complete saves");
    let run = stack.begin().await;
    taken();
    run.cancel().await.expect(204);
    note("cancel");
    stack.import(&deployment(&[stack.resource("a")])).await;
    note("import");
    let path = format!("/api/stacks/{ORG}/{}", stack.project);
    app.post(&path, &json!({ "stackName": "another" })).send().await.expect(200);
    note("create stack");
    app.post(&format!("{path}/another/rename"), &json!({ "newName": "other" })).send().await.expect(200);
    note("rename empty stack");
    app.post(&format!("{path}/other/rename"), &json!({ "newName": "another" })).send().await.expect(200);
    taken();
    app.request(reqwest::Method::DELETE, &format!("{path}/another?force=false")).send().await.expect(204);
    note("delete stack");
    app.post(&format!("{}/rename", stack.path), &json!({ "newName": "moved" })).send().await.expect(200);
    note("rename");
    app.post(&format!("{path}/moved/rename"), &json!({ "newName": "dev" })).send().await.expect(200);
    table
}

#[tokio::test]
async fn i10_cheap_each_request_of_a_warm_process_costs_these_calls() {
    let (app, counter) = counted().await;
    let stack = Stack::new(&app).await;
    stack.publish(&["a"]).await;
    // A get costs the head, or the record of the update: the strongly consistent read on which everything
    // depends. An append reads the tail in parallel with its write if it has not written for a second. A save
    // reads the log if this process does not have the text before in its cache, and so does whatever stores
    // nothing. A begin moves the name with the head, and a start reads the name only for that: lists show by it
    // what is being updated. A complete reads the record, in parallel with the tail if that is not cached, and
    // seals after it. Then it reads log, summary and detail, and head and base concurrently, the name in
    // parallel with the new state, and publishes. Its blobs: it reads the base and the large append and puts
    // the new state, and it reads the index of the base and puts that of the new state; without a change it does
    // none of these. A list reads the head and one part of its index.
    insta::assert_snapshot!(costs(&app, || describe_calls(counter.take()), &stack).await, @r"
    capabilities        nothing
    user                nothing
    encrypt             1 get (1)
    batch-decrypt       1 get, 1 commit (2)
    get stack           2 get (2)
    export              1 get, 1 commit, 1 blob get (3)
    export version      2 get, 1 blob get (3)
    outputs             2 get, 1 commit (3)
    history page        1 get, 1 query (2)
    latest update       2 get (2)
    update by its id    3 get (3)
    previews, 1 a page  4 get, 1 query (3)
    preview by its id   4 get (3)
    compare versions    3 get, 2 blob get (3)
    resources           1 get, 1 blob get (2)
    resources filtered  1 get, 1 blob get (2)
    resources below one 1 get, 2 blob get (3)
    resource            1 get, 5 blob get (5)
    neighbours          1 get, 5 blob get (6)
    neighbours, 3 hops  1 get, 7 blob get (8)
    list of a project   1 query (1)
    project exists      1 query (1)
    tags                2 get, 1 joint commit (3)
    begin preview       2 get, 1 joint commit, 1 blob get (3)
    complete preview    1 get, 1 joint commit (2)
    create              1 get, 1 joint commit (2)
    start               3 get, 1 joint commit (4)
    complete unchanged  5 get, 1 query, 2 joint commit, 1 blob get (6)
    begin               2 get, 1 joint commit, 1 blob get (3)
    begin refused       3 get, 1 query, 1 commit (5)
    first append        1 commit (1)
    append              1 commit (1)
    append after a rest 1 query, 1 commit (1)
    append of 200 KB    1 commit, 1 blob put (2)
    events              1 get, 1 commit (2)
    events without news 2 get, 1 query (3)
    get running stack   4 get, 1 query (4)
    export running      2 get, 1 query, 2 blob get (5)
    renew               4 get, 1 commit (2)
    complete            5 get, 1 query, 2 joint commit, 3 blob get, 2 blob put (7)
    complete again      1 get, 1 query, 1 commit (2)
    first save          1 query, 1 commit (2)
    delta               1 commit (1)
    delta again         1 query (1)
    delta after others  1 query, 2 commit (3)
    delta refused       1 query (1)
    save                1 commit (1)
    complete saves      5 get, 1 query, 2 joint commit, 2 blob get, 2 blob put (7)
    cancel              6 get, 1 query, 2 joint commit, 1 blob get (7)
    import              3 get, 1 joint commit, 2 blob get, 2 blob put (6)
    create stack        1 joint commit (1)
    rename empty stack  6 get, 1 joint commit (7)
    delete stack        3 get, 1 joint commit (4)
    rename              6 get, 1 joint commit, 2 blob get, 2 blob put (9)
");
}

/// As on functions, where each of these may be the first request of its process.
#[tokio::test]
async fn i10_cheap_a_cold_process_waits_for_few_more_calls() {
    let (app, counter) = counted().await;
    let stack = Stack::new(&app).await;
    stack.publish(&["a"]).await;
    let [beginning, appending, completing] =
        [app.another_process("b").await, app.another_process("a").await, app.another_process("c").await];
    let cold = stack.at(&beginning);
    let mut table = String::new();
    let mut note = |what: &str| writeln!(table, "{what:20}{}", describe_calls(counter.take())).unwrap();
    counter.take();
    let run = cold.begin().await;
    note("begin");
    run.at(&appending).append(&[stack.made(1, "x")]).await.expect(204);
    note("append");
    run.at(&completing).complete("succeeded").await.expect(204);
    note("complete");
    // The token's user, its last use, the stack's id, the signing key, and the key that verifies an update's token
    // are each read once.
    insta::assert_snapshot!(table, @r"
    begin               8 get, 1 joint commit, 1 blob get, 1 key opened (7)
    append              1 get, 1 query, 1 commit (2)
    complete            6 get, 2 query, 2 joint commit, 2 blob get, 2 blob put (8)
    ");
}

/// Rights by a name cost what those of an admin do. Rights by a tag cost one read more of a process that does not know the
/// tags of the stack yet, and none of others; the labels of a state are in its head.
#[tokio::test]
async fn i10_cheap_a_caller_with_grants_costs_what_an_admin_does() {
    let (app, counter) = counted().await;
    let stack = Stack::new(&app).await;
    stack.publish(&["a"]).await;
    let tag = json!({ "name": "tier", "value": "one" });
    stack.post("/tags", &tag).send().await.expect(204);
    let state = json!({ "project": stack.project, "state": "dev", "labels": { "tier": "one" } });
    app.post(&format!("/api/orgs/{ORG}/tfstates"), &state).send().await.expect(200);
    let by_name = app.member_with_role(Role::None, "ann", "laptop").await;
    let by_tag = app.member_with_role(Role::None, "bob", "laptop").await;
    for (login, on) in [("ann", format!("{}/*", stack.project)), ("bob", "tag:tier=one".to_owned())] {
        let grant = json!({ "to": format!("user:{login}"), "on": on, "role": "plan" });
        app.post(&format!("/api/orgs/{ORG}/grants"), &grant).send().await.expect(200);
    }
    let tokens = [app.token.as_str(), by_name.as_str(), by_tag.as_str()];
    for (path, tags) in [
        (stack.path.clone(), 1),
        (format!("{}/outputs", stack.path), 1),
        (format!("/api/orgs/{ORG}/tfstates/{}/dev", stack.project), 0),
    ] {
        let reads = async |app: &TestApp, token: &str| {
            counter.take();
            app.get(&path).token(token).send().await.expect(200);
            let Calls { ledger_gets, ledger_queries, .. } = counter.take();
            ledger_gets + ledger_queries
        };
        let (mut warm, mut cold) = (Vec::new(), Vec::new());
        for token in tokens {
            // The first use of a token is recorded.
            reads(&app, token).await;
            warm.push(reads(&app, token).await);
            cold.push(reads(&app.another_process("cold").await, token).await);
        }
        let [of_admin, cold_of_admin] = [warm[0], cold[0]];
        assert_eq!(warm, [of_admin; 3], "{path}");
        assert_eq!(cold, [cold_of_admin, cold_of_admin, cold_of_admin + tags], "{path}");
    }
}

/// The first page of the resources, which people wait for: on functions often a process that knows nothing. It reads the
/// credentials and the name of the stack, then the caller, the rights and the head, and then a part of the index.
#[tokio::test]
async fn i10_cheap_the_first_resources_take_three_calls() {
    let (app, counter) = counted().await;
    let stack = Stack::new(&app).await;
    let names: Vec<String> = (0..1_000).map(|number| format!("r{number}")).collect();
    stack.publish(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let login = Login::parse(USER).unwrap();
    let begun = sessions::begin(&app.context, &login, SignedInBy::Password, "Firefox").await.unwrap();
    let [token, session, caller] =
        [app.another_process("t").await, app.another_process("s").await, app.another_process("c").await];
    caller.get(&format!("/api/orgs/{ORG}/rights")).send().await.expect(200);
    counter.take();
    let page = stack.at(&token).get("/resources").send().await.expect(200);
    assert_eq!(page["total"], 1_000);
    assert_eq!(describe_calls(counter.take()), "6 get, 1 blob get (3)", "with a token");
    let call = stack.at(&session).get("/resources").anonymous().header("x-statewright-console", "1");
    let call = call.header("cookie", &format!("statewright={}", begun.cookie));
    assert_eq!(call.header("sec-fetch-site", "same-origin").send().await.expect(200), page);
    assert_eq!(describe_calls(counter.take()), "5 get, 1 blob get (3)", "with a session");
    stack.at(&caller).get("/resources").send().await.expect(200);
    assert_eq!(describe_calls(counter.take()), "2 get, 1 blob get (3)", "by a known caller");
}

/// What a request reads besides its credentials before these are found is one item, and none that is known already.
#[tokio::test]
async fn i10_cheap_an_unknown_token_causes_one_more_read() {
    let (app, counter) = counted().await;
    let stack = Stack::new(&app).await;
    stack.publish(&["a"]).await;
    let cold = app.another_process("cold").await;
    let reads = async |path: &str| {
        counter.take();
        cold.get(path).token("swt_unknown").send().await.refused(401);
        let Calls { ledger_gets, ledger_queries, blob_gets, .. } = counter.take();
        (ledger_gets, ledger_queries + blob_gets)
    };
    let resources = format!("{}/resources", stack.path);
    assert_eq!(reads(&resources).await, (2, 0), "the token, and the name of the stack");
    assert_eq!(reads(&resources).await, (2, 0), "the name again: nothing was learned of it");
    cold.get(&format!("/api/orgs/{ORG}/rights")).send().await.expect(200);
    assert_eq!(reads(&resources).await, (1, 0), "the rights in the organization are known");
}

/// The pages of the console ask for locks each minute, and for the map when it is open.
#[tokio::test]
async fn i10_cheap_locks_and_the_map_do_not_grow_with_states() {
    let (app, counter) = counted().await;
    let mut tables = Vec::new();
    let (mut made, locks) = (0, format!("/api/orgs/{ORG}/tfstate-locks"));
    let info = json!({
        "ID": "run", "Operation": "OperationTypeApply", "Info": "", "Who": "alice@ci", "Version": "1.12.6",
        "Created": "2026-01-02T03:04:05Z", "Path": "",
    });
    for states in [1, 20] {
        while made < states {
            let new = json!({ "project": "net", "state": format!("s{made}") });
            app.post(&format!("/api/orgs/{ORG}/tfstates"), &new).send().await.expect(200);
            made += 1;
        }
        let mut table = String::new();
        let mut note = |what: &str| writeln!(table, "{what:20}{}", describe_calls(counter.take())).unwrap();
        // The first list of an organization also makes the entries of locks that older programs took.
        app.get(&locks).send().await.expect(200);
        let lock = format!("/tfstate/{ORG}/net/s0/lock");
        app.get(&format!("/api/orgs/{ORG}/tfstates/net/s0")).send().await.expect(200);
        counter.take();
        app.get(&locks).send().await.expect(200);
        note("no lock");
        app.post(&lock, &info).send().await.expect(200);
        note("lock");
        let held = app.get(&locks).send().await.expect(200);
        note("one lock");
        assert_eq!(held["locks"].as_array().unwrap().len(), 1);
        app.request(reqwest::Method::DELETE, &lock).json(&info).send().await.expect(200);
        note("unlock");
        app.get(&format!("/api/orgs/{ORG}/dependency-map")).send().await.expect(200);
        note("map");
        tables.push(table);
    }
    assert_eq!(tables.first(), tables.last());
    insta::assert_snapshot!(tables.concat().lines().take(5).collect::<Vec<_>>().join("\n"), @r"
    no lock             1 get, 1 query (1)
    lock                2 get, 1 joint commit (2)
    one lock            3 get, 1 query (2)
    unlock              2 get, 1 joint commit (2)
    map                 3 query (1)
    ");
}

/// The units of one request without zeros, and the requests to AWS.
fn in_units(usage: Usage) -> String {
    let [writes, reads, puts, gets, keys] = usage.billed();
    let counts = [(writes, "written"), (reads, "read"), (puts, "put"), (gets, "got"), (keys, "key")];
    let words = counts
        .iter()
        .filter(|((_, count), _)| *count > 0.0)
        .map(|((_, count), what)| format!("{count} {what}"));
    if usage.requests() == 0 {
        return "nothing".to_owned();
    }
    format!("{} ({})", words.collect::<Vec<_>>().join(", "), usage.requests())
}

#[tokio::test]
async fn i10_cheap_each_request_costs_these_units_on_aws() {
    let stand_in = StandIn::of_this_process();
    let (_, names) = stand_in.fresh_store().await;
    let gateway = Gateway::before(stand_in).await;
    let store = aws::store(&gateway.url, &names, Arc::new(SystemClock), Arc::new(SystemIds)).await;
    let counter = Counter::new();
    let app = TestApp::memory_with(
        Arc::new(Counting::new(store.ledger, counter.clone())),
        Arc::new(Counting::new(store.blobs, counter.clone())),
        Arc::new(Counting::new(store.keys, counter.clone())),
        Arc::new(SeededIds::new(1)),
    )
    .await;
    let stack = Stack::new(&app).await;
    stack.publish(&["a"]).await;
    let before = std::cell::Cell::new(gateway.usage());
    counter.take();
    let taken = || {
        let usage = gateway.usage() - before.replace(gateway.usage());
        // One call of a port is one request, so the counts of calls also hold for AWS.
        assert_eq!(usage.requests(), counter.take().total());
        in_units(usage)
    };
    insta::assert_snapshot!(costs(&app, taken, &stack).await, @r"
    capabilities        nothing
    user                nothing
    encrypt             1 read (1)
    batch-decrypt       1 written, 1 read (2)
    get stack           2 read (2)
    export              1 written, 1 read, 1 got (3)
    export version      2 read, 1 got (3)
    outputs             1 written, 2 read (3)
    history page        2 read (2)
    latest update       2 read (2)
    update by its id    3 read (3)
    previews, 1 a page  5 read (5)
    preview by its id   4 read (4)
    compare versions    3 read, 2 got (5)
    resources           1 read, 1 got (2)
    resources filtered  1 read, 1 got (2)
    resources below one 1 read, 2 got (3)
    resource            1 read, 5 got (6)
    neighbours          1 read, 5 got (6)
    neighbours, 3 hops  1 read, 7 got (8)
    list of a project   1 read (1)
    project exists      1 read (1)
    tags                4 written, 2 read (3)
    begin preview       12 written, 2 read, 1 got (4)
    complete preview    4 written, 1 read (2)
    create              10 written, 1 read (2)
    start               12 written, 3 read (4)
    complete unchanged  14 written, 6 read, 1 got (9)
    begin               14 written, 2 read, 1 got (4)
    begin refused       1 written, 4 read (5)
    first append        1 written (1)
    append              1 written (1)
    append after a rest 1 written, 1 read (2)
    append of 200 KB    1 written, 1 put (2)
    events              1 written, 1 read (2)
    events without news 3 read (3)
    get running stack   5 read (5)
    export running      3 read, 2 got (5)
    renew               1 written, 4 read (5)
    complete            16 written, 6 read, 2 put, 3 got (13)
    complete again      1 written, 2 read (3)
    first save          1 written, 1 read (2)
    delta               1 written (1)
    delta again         1 read (1)
    delta after others  2 written, 1 read (3)
    delta refused       1 read (1)
    save                1 written (1)
    complete saves      16 written, 6 read, 2 put, 2 got (12)
    cancel              14 written, 7 read, 1 got (10)
    import              16 written, 3 read, 2 put, 2 got (8)
    create stack        6 written (1)
    rename empty stack  12 written, 6 read (7)
    delete stack        10 written, 3 read (4)
    rename              22 written, 6 read, 2 put, 2 got (11)
");
}

/// A batch of the maximum number of secrets costs one call of KMS, even in a cold process.
#[tokio::test]
async fn i10_cheap_a_batch_of_1000_secrets_takes_one_call_of_kms() {
    let stand_in = StandIn::of_this_process();
    let (_, names) = stand_in.fresh_store().await;
    let gateway = Gateway::before(stand_in).await;
    let first = TestApp::aws_fleet(&gateway.url, &names, 1).await;
    let stack = Stack::new(&first).await;
    let calls = || gateway.usage().kms_requests;

    let before = calls();
    let plaintexts: Vec<_> = (0..1_000).map(|number| STANDARD.encode(format!("secret {number}"))).collect();
    let body = json!({ "plaintexts": plaintexts });
    let sealed = stack.post("/batch-encrypt", &body).send().await.expect(200);
    assert_eq!(calls() - before, 1, "creates the stack's key");
    for number in 0..2 {
        let before = calls();
        let cold = first.another_process(&format!("cold {number}")).await;
        let path = format!("{}/batch-decrypt", stack.path);
        let body = json!({ "ciphertexts": sealed["ciphertexts"] });
        for expected in [1, 0] {
            let before = calls();
            let opened = cold.post(&path, &body).send().await.expect(200);
            assert_eq!(opened["plaintexts"].as_object().unwrap().len(), 1_000);
            assert_eq!(calls() - before, expected);
        }
        let again = cold.post(&format!("{}/batch-encrypt", stack.path), &json!({ "plaintexts": plaintexts }));
        again.send().await.expect(200);
        assert_eq!(calls() - before, 1);
    }
}

#[tokio::test]
async fn i10_cheap_nothing_grows_with_stacks_or_versions() {
    let (app, counter) = counted().await;
    let stack = Stack::new(&app).await;
    stack.publish(&["a"]).await;
    let few = costs(&app, || describe_calls(counter.take()), &stack).await;

    for number in 0..50 {
        let path = format!("/api/stacks/{ORG}/{}", stack.project);
        app.post(&path, &json!({ "stackName": format!("s{number}") })).send().await.expect(200);
    }
    for number in 0..200 {
        stack.publish(&[&format!("r{number}"), "a"]).await;
    }
    stack.publish(&["a"]).await;
    assert_eq!(costs(&app, || describe_calls(counter.take()), &stack).await, few);
}

#[tokio::test]
async fn i10_cheap_an_append_costs_the_same_for_any_stack_and_log() {
    let (app, counter) = counted().await;
    let stack = Stack::new(&app).await;
    let names: Vec<String> = (0..1_000).map(|number| format!("r{number}")).collect();
    stack.publish(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let run = stack.begin().await;
    run.append(&[stack.made(1, "first")]).await.expect(204);
    counter.take();
    for sequence in 2..300 {
        run.append(&[stack.made(sequence, &format!("n{sequence}"))]).await.expect(204);
        let one = Calls { ledger_single_commits: 1, in_sequence: 1, ..Calls::default() };
        assert_eq!(counter.take(), one);
    }
    run.complete("succeeded").await.expect(204);
    assert_eq!(stack.export().await["deployment"]["resources"].as_array().unwrap().len(), 1_299);
}

/// A client that does not journal saves its whole state some twice a resource: reading all of that back at the
/// end would take the square of the state in memory and time.
#[tokio::test]
async fn i9_bounded_of_many_whole_deployments_only_the_last_is_read() {
    let (app, counter) = counted().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin_whole().await;
    for second in 0..60 {
        let mut saved = stack.resource(&format!("r{second}"));
        saved["outputs"] = json!({ "text": incompressible(10_000) });
        let mut saved = deployment(&[saved]);
        saved["deployment"]["manifest"]["time"] = format!("2026-01-01T00:00:{second:02}Z").into();
        run.checkpoint(&saved).await.expect(204);
        assert_eq!(counter.take().blob_puts, 1);
    }
    assert_eq!(stack.resources().await, ["r59"]);
    assert_eq!(counter.take().blob_gets, 1);
    run.complete("succeeded").await.expect(204);
    assert_eq!(counter.take().blob_gets, 1);
    assert_eq!(stack.resources().await, ["r59"]);
}
