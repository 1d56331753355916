//! I10 cheap: what a request costs in calls to the ports, as constants. Nothing of it grows with the number of stacks
//! or of versions.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use statewright_shared::adapters::{
    Calls, Counter, Counting, MemoryBlobs, MemoryKeys, MemoryLedger, SeededIds,
};
use statewright_shared::ports::Ids;
use statewright_tests::app::{ORG, TestApp};

use crate::world::{Run, Stack, deployment};

pub(crate) async fn counted() -> (TestApp, Counter) {
    let counter = Counter::new();
    let ids: Arc<dyn Ids> = Arc::new(SeededIds::new(1));
    let app = TestApp::memory_with(
        Arc::new(Counting::new(MemoryLedger::new(), counter.clone())),
        Arc::new(Counting::new(MemoryBlobs::new(), counter.clone())),
        Arc::new(Counting::new(MemoryKeys::new(Arc::clone(&ids)), counter.clone())),
        ids,
    )
    .await;
    (app, counter)
}

/// The calls of one request, only those that there were.
fn in_words(calls: Calls) -> String {
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
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}

/// Performs each request once on a warm process, and says what each cost.
async fn costs(app: &TestApp, counter: &Counter, stack: &Stack<'_>) -> String {
    let mut table = String::new();
    let mut note = |what: &str| writeln!(table, "{what:20}{}", in_words(counter.take())).unwrap();
    // What a process learns once: the stack's data key, and the key that verifies update tokens.
    let sealed = stack.post("/encrypt", &json!({ "plaintext": "c2VjcmV0" })).send().await.expect(200);
    stack.preview().await.complete("succeeded").await.expect(204);
    counter.take();

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
    let random =
        (0..40_000_u32).map(|number| format!("{:x}", number.wrapping_mul(2_654_435_761))).collect::<String>();
    large["state"]["outputs"] = json!({ "text": random });
    run.append(&[large]).await.expect(204);
    note("append of 200 KB");
    run.event(1).await.expect(204);
    note("events");
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
    counter.take();
    let text = |name: &str| deployment(&[stack.resource(name)]).to_string();
    run.save(1, &text("s")).await.expect(204);
    note("first save");
    run.delta(2, &text("s"), &text("t")).await.expect(204);
    note("delta");
    run.delta(2, &text("s"), &text("t")).await.expect(204);
    note("delta again");
    let other = app.another_process("other").await;
    run.at(&other).delta(3, &text("t"), &text("x")).await.expect(204);
    counter.take();
    run.delta(4, &text("x"), &text("u")).await.expect(204);
    note("delta after others");
    run.delta(5, &text("longer"), &text("v")).await.refused(409);
    note("delta refused");
    run.save(5, &text("v")).await.expect(204);
    note("save");
    run.complete("succeeded").await.expect(204);
    note("complete saves");
    let run = stack.begin().await;
    counter.take();
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
    counter.take();
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
    // A get on its own is the head, or the record of the update: the strongly consistent read on which all else
    // stands. An append asks for the tail beside its write where it has not written for a second. A save reads the log
    // where this process does not remember the text before, and whatever stores nothing goes by the log itself. A
    // complete reads the record and seals behind the tail that it remembers; then head, log, summary and detail at once,
    // the base, the name beside the new state, and publishes. Its blobs: the base and the large append are read, the new
    // state is put; where nothing changed, nothing is.
    insta::assert_snapshot!(costs(&app, &counter, &stack).await, @r"
    capabilities        nothing
    user                nothing
    encrypt             1 get
    batch-decrypt       1 get
    get stack           2 get
    export              1 get, 1 blob get
    export version      2 get, 1 blob get
    outputs             2 get
    history page        1 get, 1 query
    latest update       2 get
    list of a project   1 query
    project exists      1 query
    tags                2 get, 1 commit
    begin preview       2 get, 1 joint commit, 1 blob get
    complete preview    1 get, 1 commit
    create              1 get, 1 joint commit
    start               2 get, 1 joint commit
    complete unchanged  5 get, 1 query, 2 joint commit, 1 blob get
    begin               2 get, 1 joint commit, 1 blob get
    begin refused       3 get, 1 query
    first append        1 commit
    append              1 commit
    append after a rest 1 query, 1 commit
    append of 200 KB    1 commit, 1 blob put
    events              1 get, 1 commit
    get running stack   4 get
    export running      2 get, 1 query, 2 blob get
    renew               1 get, 1 commit
    complete            5 get, 1 query, 2 joint commit, 2 blob get, 1 blob put
    complete again      1 get
    first save          1 query, 1 commit
    delta               1 commit
    delta again         1 query
    delta after others  1 query, 2 commit
    delta refused       1 query
    save                1 commit
    complete saves      5 get, 1 query, 2 joint commit, 1 blob get, 1 blob put
    cancel              6 get, 1 query, 2 joint commit, 1 blob get
    import              2 get, 1 joint commit, 1 blob get, 1 blob put
    create stack        1 joint commit
    rename empty stack  4 get, 1 joint commit
    delete stack        3 get, 1 joint commit
    rename              4 get, 1 joint commit, 1 blob get, 1 blob put
");
}

#[tokio::test]
async fn i10_cheap_nothing_grows_with_stacks_or_versions() {
    let (app, counter) = counted().await;
    let stack = Stack::new(&app).await;
    stack.publish(&["a"]).await;
    let few = costs(&app, &counter, &stack).await;

    for number in 0..50 {
        let path = format!("/api/stacks/{ORG}/{}", stack.project);
        app.post(&path, &json!({ "stackName": format!("s{number}") })).send().await.expect(200);
    }
    for number in 0..200 {
        stack.publish(&[&format!("r{number}"), "a"]).await;
    }
    stack.publish(&["a"]).await;
    assert_eq!(costs(&app, &counter, &stack).await, few);
}

#[tokio::test]
async fn i10_cheap_an_append_costs_the_same_whatever_the_size_of_the_stack_and_of_the_log() {
    let (app, counter) = counted().await;
    let stack = Stack::new(&app).await;
    let names: Vec<String> = (0..1_000).map(|number| format!("r{number}")).collect();
    stack.publish(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let run = stack.begin().await;
    run.append(&[stack.made(1, "first")]).await.expect(204);
    counter.take();
    for sequence in 2..300 {
        run.append(&[stack.made(sequence, &format!("n{sequence}"))]).await.expect(204);
        assert_eq!(counter.take(), Calls { ledger_single_commits: 1, ..Calls::default() });
    }
    run.complete("succeeded").await.expect(204);
    assert_eq!(stack.export().await["deployment"]["resources"].as_array().unwrap().len(), 1_299);
}
