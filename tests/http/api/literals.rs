//! Every text, code, header and member that a client compares, in one table, with the place where it does.
//!
//! A client behaves differently when one of these changes: it gives up instead of retrying, treats a conflict
//! as a failure, or creates everything again. So nothing in the table may change by accident. The answers are
//! real ones, of a server in each situation.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::adapters::{Fault, Faults};
use statewright_shared::api::Limits;
use statewright_tests::app::{Answer, ORG, TestApp};

use crate::world::{Stack, begin_body, deployment, new_project};

/// What is compared.
#[derive(Debug, Clone, Copy)]
enum Literal {
    /// The status. A refusal has it as the integer `code` of its body too, which the CLI reads instead.
    Status(u16),
    /// A part of what the CLI prints of a refusal: `[code] message`.
    Prints(&'static str),
    /// A text that must not be in that, since clients search for it first and it means something else.
    PrintsNot(&'static str),
    Message(&'static str),
    /// A header with this value.
    Header(&'static str, &'static str),
    /// A header with a whole number.
    NumberHeader(&'static str),
    /// A header with some text.
    TextHeader(&'static str),
    /// A header that must be absent.
    NoHeader(&'static str),
    /// A member, by its JSON pointer, with this JSON value.
    Member(&'static str, &'static str),
    /// A member that is a non-empty text.
    Text(&'static str),
    /// A member that is a whole number.
    Number(&'static str),
    /// A member that is absent or null.
    Absent(&'static str),
    /// An empty body.
    Empty,
}

use Literal::{
    Absent, Empty, Header, Member, Message, NoHeader, Number, NumberHeader, Prints, PrintsNot, Status, Text,
    TextHeader,
};

/// The CLI: pulumi/pulumi v3.274.1, below `pkg/`.
macro_rules! cli {
    ($place:literal) => {
        concat!("pulumi/pulumi v3.274.1 pkg/", $place)
    };
}

const PYTHON: &str = "pulumi of PyPI 3.272.0 pulumi/automation/errors.py create_command_error";
const NODE: &str = "@pulumi/pulumi of npm 3.276.0 automation/errors.js createCommandError";
const GO: &str = "pulumi/pulumi v3.274.1 sdk/go/auto/errors.go";
const API_CALL: &str = cli!("backend/httpstate/client/api.go pulumiAPICall");
const RETRY: &str = "pulumi/pulumi v3.274.1 sdk/go/common/util/httputil/http.go doWithRetry";
const CAPABILITIES: &str =
    "pulumi/pulumi v3.274.1 sdk/go/common/apitype/service.go CapabilitiesResponse.Parse";
const ESC: &str = cli!("cmd/esc/cli/client/client.go");
const PROVIDER: &str = "pulumi/pulumi-pulumiservice dc76a018 provider/pkg/pulumiapi/client.go sendRequest";
const TOFU: &str = "opentofu/opentofu v1.12.6 internal/backend/remote-state/http/client.go";
const TERRAFORM: &str = "hashicorp/terraform v1.5.7 internal/backend/remote-state/http/client.go";
const HTTP_RETRY: &str = "hashicorp/go-retryablehttp v0.7.8 (OpenTofu) and v0.7.2 (Terraform) client.go baseRetryPolicy, DefaultBackoff";

const CONFLICT: &str = "[409] Conflict: Another update is currently in progress.";

/// The situation, what is compared, and where.
const LITERALS: &[(&str, Literal, &[&str])] = &[
    // The conflict. Clients search for the first two before it.
    ("begin while another update runs", Prints(CONFLICT), &[PYTHON, NODE, GO]),
    ("begin while another update runs", PrintsNot("no stack named"), &[PYTHON, NODE]),
    ("begin while another update runs", PrintsNot("already exists"), &[PYTHON, NODE]),
    ("begin while another update runs", PrintsNot("the stack is currently locked by"), &[PYTHON, NODE, GO]),
    (
        "begin while another update runs",
        Status(409),
        &[cli!("backend/httpstate/backend.go createAndStartUpdate")],
    ),
    ("start while another update runs", Prints(CONFLICT), &[PYTHON, NODE, GO]),
    (
        "start while another update runs",
        Status(409),
        &[cli!("backend/httpstate/backend.go createAndStartUpdate")],
    ),
    ("import while an update runs", Prints(CONFLICT), &[PYTHON, NODE, GO]),
    ("rename while an update runs", Prints(CONFLICT), &[PYTHON, NODE, GO]),
    ("delete while an update runs", Prints(CONFLICT), &[PYTHON, NODE, GO]),
    // Stacks.
    ("a stack that does not exist", Status(404), &[cli!("backend/httpstate/backend.go GetStack"), PROVIDER]),
    ("a stack that exists is made", Status(409), &[cli!("backend/httpstate/backend.go CreateStack")]),
    (
        "a stack that exists is made",
        Prints("already exists"),
        &[cli!("backend/httpstate/backend.go CreateStack")],
    ),
    (
        "a stack that exists is made",
        PrintsNot("you are using"),
        &[cli!("backend/httpstate/backend.go CreateStack")],
    ),
    (
        "a stack of an unknown organization is made",
        Status(404),
        &[cli!("backend/httpstate/backend.go enrichDefaultOrgError")],
    ),
    (
        "a stack with resources is deleted",
        Status(400),
        &[cli!("backend/httpstate/client/client.go isStackHasResourcesError")],
    ),
    (
        "a stack with resources is deleted",
        Message("Bad Request: Stack still contains resources."),
        &[cli!("backend/httpstate/client/client.go isStackHasResourcesError")],
    ),
    (
        "an unknown project",
        Status(404),
        &[cli!("backend/httpstate/client/client.go DoesProjectExist, is404")],
    ),
    ("list during an update", Member("/stacks/0/lastUpdate", "0"), &[cli!("cmd/pulumi/stack/stack_list.go")]),
    ("list at rest", Number("/stacks/0/lastUpdate"), &[cli!("cmd/pulumi/stack/stack_list.go")]),
    ("list at rest", Absent("/continuationToken"), &[cli!("backend/httpstate/backend.go ListStacks")]),
    (
        "list of a stack that was never updated",
        Absent("/stacks/0/lastUpdate"),
        &[cli!("cmd/pulumi/stack/stack_list.go")],
    ),
    (
        "a stack during an update",
        Text("/activeUpdate"),
        &[cli!("backend/httpstate/backend.go CancelCurrentUpdate")],
    ),
    ("a stack during an update", Text("/currentOperation/kind"), &[cli!("cmd/pulumi/stack/stack.go")]),
    ("a stack during an update", Number("/currentOperation/started"), &[cli!("cmd/pulumi/stack/stack.go")]),
    (
        "a stack that was never updated",
        Member("/activeUpdate", "\"\""),
        &[cli!("backend/httpstate/backend.go CancelCurrentUpdate")],
    ),
    ("a stack that was never updated", Absent("/currentOperation"), &[cli!("cmd/pulumi/stack/stack.go")]),
    ("a tag that is not there is deleted", Status(404), &[PROVIDER]),
    // Updates.
    (
        "latest update of a stack without one",
        Status(404),
        &[cli!("backend/httpstate/client/client.go GetLatestConfiguration")],
    ),
    ("begin", Member("/journalVersion", "2"), &[cli!("backend/httpstate/backend.go apply")]),
    ("begin", Text("/token"), &[cli!("backend/httpstate/backend.go newUpdate")]),
    ("begin", Text("/updateID"), &[cli!("backend/httpstate/client/client.go BeginUpdate")]),
    (
        "begin",
        Member("/aiSettings/copilotIsEnabled", "false"),
        &[cli!("backend/httpstate/backend.go createAndStartUpdate")],
    ),
    (
        "a batch of entries that is too large",
        Status(413),
        &[cli!("backend/httpstate/journal/snapshot.go sendBatch")],
    ),
    ("renew of an update that is over", Status(403), &[cli!("backend/httpstate/state.go RenewLeaseFunc")]),
    ("entries of an update that is over", Status(403), &[API_CALL]),
    ("renew", Text("/token"), &[cli!("backend/httpstate/client/client.go RenewUpdateLease")]),
    (
        "cancel of a preview that runs",
        Status(204),
        &[cli!("backend/httpstate/backend.go CancelCurrentUpdate")],
    ),
    ("an import", Text("/updateId"), &[cli!("backend/httpstate/client/client.go ImportStackDeployment")]),
    (
        "the update of an import",
        Member("/status", "\"succeeded\""),
        &[cli!("backend/httpstate/backend.go ImportDeployment")],
    ),
    (
        "the update of an import",
        Absent("/continuationToken"),
        &[cli!("backend/httpstate/backend.go waitForUpdate")],
    ),
    ("history", Member("/updates/0/result", "\"succeeded\""), &[cli!("cmd/pulumi/stack/stack_history.go")]),
    ("history", Member("/updates/0/kind", "\"import\""), &[cli!("cmd/pulumi/stack/stack_history.go")]),
    (
        "events of an update that is over",
        Absent("/continuationToken"),
        &[cli!("cmd/pulumi/stack/stack_history_events.go")],
    ),
    // Credentials.
    (
        "no credentials",
        Status(401),
        &[API_CALL, cli!("cmd/pulumi/cmd/cmd.go"), cli!("auth/credentialhelper/http.go"), ESC, PROVIDER],
    ),
    ("user", Text("/githubLogin"), &[cli!("backend/httpstate/client/client.go GetPulumiAccountDetails")]),
    (
        "user",
        Text("/organizations/0/githubLogin"),
        &[cli!("backend/httpstate/client/client.go GetPulumiAccountDetails")],
    ),
    (
        "default organization",
        Text("/GitHubLogin"),
        &[cli!("backend/httpstate/client/client.go GetDefaultOrg")],
    ),
    ("one that may only preview begins an update", Status(403), &[API_CALL]),
    // Only status 200 counts as a token.
    (
        "an exchange of tokens",
        Status(400),
        &[
            cli!("backend/httpstate/client/client.go ExchangeOidcToken"),
            "pulumi/auth-actions 14141591 src/main.ts ensureAccessToken",
        ],
    ),
    // The server's capabilities. An entry with a known name and another version is ignored.
    ("capabilities", Member("/capabilities/0", r#"{"capability":"batch-encrypt"}"#), &[CAPABILITIES]),
    (
        "capabilities",
        Member("/capabilities/1", r#"{"capability":"begin-update","version":1}"#),
        &[CAPABILITIES],
    ),
    (
        "capabilities",
        Member("/capabilities/2", r#"{"capability":"stack-outputs","version":1}"#),
        &[CAPABILITIES],
    ),
    (
        "capabilities",
        Member("/capabilities/3", r#"{"capability":"stack-policy-packs","version":1}"#),
        &[CAPABILITIES],
    ),
    (
        "capabilities",
        Member(
            "/capabilities/4",
            r#"{"capability":"deployment-schema-version","version":1,"configuration":{"version":4}}"#,
        ),
        &[CAPABILITIES],
    ),
    // Failures.
    ("too many requests at once", Status(429), &[API_CALL, RETRY, HTTP_RETRY]),
    ("too many requests at once", NumberHeader("retry-after"), &[RETRY, HTTP_RETRY]),
    ("the store does not answer", Status(503), &[RETRY, HTTP_RETRY]),
    ("the store does not answer", TextHeader("x-pulumi-request-id"), &[API_CALL, ESC]),
    ("begin at another address", TextHeader("x-pulumi-warning"), &[API_CALL]),
    (
        "something that there is not here",
        Status(404),
        &[cli!("backend/httpstate/cloud_registry.go"), PROVIDER],
    ),
    // Bodies.
    (
        "export, compressed",
        Header("content-encoding", "gzip"),
        &[cli!("backend/httpstate/client/api.go bodyIntoReader")],
    ),
    // Environments.
    ("an environment", TextHeader("etag"), &[ESC]),
    ("an environment", NumberHeader("pulumi-esc-revision"), &[ESC]),
    ("an environment is written", NumberHeader("pulumi-esc-revision"), &[ESC]),
    ("an environment that was changed since", Status(409), &[cli!("cmd/esc/cli/env_edit.go isConflict")]),
    ("a definition with errors", Status(400), &[ESC]),
    ("a definition with errors", Text("/diagnostics/0/summary"), &[ESC]),
    ("a protected environment is deleted", Status(409), &[cli!("cmd/esc/cli/env_rm.go")]),
    ("a protected environment is deleted", Prints("protect"), &[cli!("cmd/esc/cli/env_rm.go")]),
    (
        "settings of an environment by one who may not",
        Status(403),
        &[cli!("cmd/esc/cli/env_settings_set.go")],
    ),
    (
        "an environment that does not exist",
        Status(404),
        &[ESC, cli!("cmd/esc/stackenv/stackenv.go"), PROVIDER],
    ),
    (
        "a tag of an environment that is not there",
        Status(404),
        &[cli!("cmd/esc/cli/env_tag.go"), cli!("cmd/esc/cli/env_version_tag.go")],
    ),
    // States. Clients read a body only if the state is locked.
    ("no state yet", Status(204), &[TOFU, TERRAFORM]),
    ("no state yet", Empty, &[TOFU, TERRAFORM]),
    ("a state is locked", Status(200), &[TOFU, TERRAFORM]),
    ("a state that is locked is locked", Status(423), &[TOFU, TERRAFORM]),
    ("a state that is locked is locked", Text("/ID"), &[TOFU, TERRAFORM]),
    ("a state that is locked is locked", Text("/Who"), &[TOFU]),
    ("a state that is locked is locked", Text("/Operation"), &[TOFU]),
    ("a state that is locked is locked", Text("/Created"), &[TOFU]),
    ("a state is written", Status(200), &[TOFU, TERRAFORM]),
    ("a state is read", Status(200), &[TOFU, TERRAFORM]),
    // A value that is not base64 would be an error.
    ("a state is read", NoHeader("content-md5"), &[TOFU, TERRAFORM]),
    ("a state is unlocked", Status(200), &[TOFU, TERRAFORM]),
    ("a state is deleted", Status(200), &[TOFU, TERRAFORM]),
    ("a state without credentials", Status(401), &[TOFU, TERRAFORM]),
    // 404 would be an empty state.
    ("a state of somebody else", Status(403), &[TOFU, TERRAFORM]),
];

async fn seen() -> BTreeMap<&'static str, Answer> {
    let app = TestApp::memory().await;
    let mut seen = BTreeMap::new();
    seen.insert("no credentials", app.get("/api/user").anonymous().send().await);
    seen.insert("user", app.get("/api/user").send().await);
    seen.insert("default organization", app.get("/api/user/organizations/default").send().await);
    seen.insert("capabilities", app.get("/api/capabilities").send().await);
    seen.insert("an exchange of tokens", app.post("/api/oauth/token", &json!({})).anonymous().send().await);
    let hooks = format!("/api/orgs/{ORG}/hooks");
    seen.insert("something that there is not here", app.get(&hooks).send().await);
    see_stacks(&app, &mut seen).await;
    see_environments(&app, &mut seen).await;
    see_states(&app, &mut seen).await;
    see_failures(&mut seen).await;
    seen
}

async fn see_stacks(app: &TestApp, seen: &mut BTreeMap<&'static str, Answer>) {
    let stack = Stack::new(app).await;
    let project = format!("/api/stacks/{ORG}/{}", stack.project);
    let list = format!("/api/user/stacks?project={}", stack.project);
    let dev = json!({ "stackName": "dev" });
    seen.insert("list of a stack that was never updated", app.get(&list).send().await);
    seen.insert("a stack that was never updated", stack.get("").send().await);
    seen.insert("latest update of a stack without one", stack.get("/updates/latest").send().await);
    seen.insert("a stack that does not exist", app.get(&format!("{project}/none")).send().await);
    seen.insert("a stack that exists is made", app.post(&project, &dev).send().await);
    let unknown = app.post("/api/stacks/unknown/shop", &dev).send().await;
    seen.insert("a stack of an unknown organization is made", unknown);
    seen.insert("an unknown project", app.request(Method::HEAD, "/api/stacks/acme/unknown").send().await);
    let tag = format!("{}/tags/none", stack.path);
    seen.insert("a tag that is not there is deleted", app.request(Method::DELETE, &tag).send().await);

    let import = stack.post("/import", &deployment(&[stack.resource("a")])).send().await;
    let update = import.value()["updateId"].as_str().unwrap().to_owned();
    seen.insert("an import", import);
    seen.insert("the update of an import", stack.get(&format!("/update/{update}")).send().await);
    seen.insert("history", stack.get("/updates").send().await);
    seen.insert("list at rest", app.get(&list).send().await);
    let export = app.get(&format!("{}/export", stack.path)).header("Accept-Encoding", "gzip");
    seen.insert("export, compressed", export.send().await);
    seen.insert("a stack with resources is deleted", app.request(Method::DELETE, &stack.path).send().await);

    let created = stack.created().await;
    let begun = stack.begin_call("update", false).send().await;
    let run = {
        let begun = begun.value();
        let (id, token) = (begun["updateID"].as_str().unwrap(), begun["token"].as_str().unwrap());
        crate::world::Run::of(app, id, token, &format!("{}/update/{id}", stack.path))
    };
    seen.insert("begin", begun);
    seen.insert("begin while another update runs", stack.begin_call("update", false).send().await);
    seen.insert("start while another update runs", created.start(Some(2)).await);
    seen.insert("import while an update runs", stack.post("/import", &deployment(&[])).send().await);
    let rename = stack.post("/rename", &json!({ "newName": "prod" })).send().await;
    seen.insert("rename while an update runs", rename);
    let delete = app.request(Method::DELETE, &format!("{}?force=true", stack.path)).send().await;
    seen.insert("delete while an update runs", delete);
    seen.insert("list during an update", app.get(&list).send().await);
    seen.insert("a stack during an update", stack.get("").send().await);
    let large = vec![b' '; statewright_shared::limits::BATCH_BYTES_MAX + 1];
    seen.insert("a batch of entries that is too large", run.append_text(&large).await);
    seen.insert("renew", run.renew(300).await);
    run.event(0).await.expect(204);
    run.complete("succeeded").await.expect(204);
    seen.insert("renew of an update that is over", run.renew(300).await);
    seen.insert("entries of an update that is over", run.append(&[stack.made(1, "b")]).await);
    seen.insert("events of an update that is over", app.get(&format!("{}/events", run.path)).send().await);
    seen.insert("cancel of a preview that runs", stack.preview().await.cancel().await);

    let reader = app.scoped_token(statewright_shared::domain::role::Role::Plan).await;
    let begin = stack.begin_call("update", false).token(&reader).send().await;
    seen.insert("one that may only preview begins an update", begin);
    let mut state = deployment(&[stack.resource("a")]);
    let secrets =
        json!({ "url": "https://other.example", "owner": ORG, "project": stack.project, "stack": "dev" });
    state["deployment"]["secrets_providers"] = json!({ "type": "service", "state": secrets });
    stack.import(&state).await;
    let elsewhere = stack.post("/begin-update", &begin_body("update", true)).send().await;
    seen.insert("begin at another address", elsewhere);
}

async fn see_environments(app: &TestApp, seen: &mut BTreeMap<&'static str, Answer>) {
    let all = format!("/api/esc/environments/{ORG}");
    let path = format!("{all}/web/literals");
    app.post(&all, &json!({ "project": "web", "name": "literals" })).send().await.expect(204);
    let write = |text: &str| app.request(Method::PATCH, &path).raw(text.as_bytes().to_vec());
    seen.insert("an environment is written", write("values: {a: 1}\n").send().await);
    seen.insert("an environment", app.get(&path).send().await);
    let changed = write("values: {a: 2}\n").header("If-Match", "\"an older one\"").send().await;
    seen.insert("an environment that was changed since", changed);
    seen.insert("a definition with errors", write("values: {a: [}\n").send().await);
    seen.insert("an environment that does not exist", app.get(&format!("{all}/web/none")).send().await);
    seen.insert(
        "a tag of an environment that is not there",
        app.get(&format!("{path}/tags/none")).send().await,
    );
    let (settings, protect) = (format!("{path}/settings"), json!({ "deletionProtected": true }));
    let planner = app.member_with_role(statewright_shared::domain::role::Role::Plan, "paula", "paula").await;
    seen.insert(
        "settings of an environment by one who may not",
        app.patch(&settings, &protect).token(&planner).send().await,
    );
    assert!(app.patch(&settings, &protect).send().await.status.is_success());
    seen.insert("a protected environment is deleted", app.request(Method::DELETE, &path).send().await);
}

async fn see_states(app: &TestApp, seen: &mut BTreeMap<&'static str, Answer>) {
    let path = format!("/tfstate/{ORG}/{}", new_project());
    let call = |method: &str, path: &str| app.request(Method::from_bytes(method.as_bytes()).unwrap(), path);
    let info = |id: &str| {
        json!({
            "ID": id, "Operation": "OperationTypeApply", "Info": "", "Who": "alice@ci", "Version": "1.12.6",
            "Created": "2026-01-02T03:04:05Z", "Path": "",
        })
    };
    seen.insert("no state yet", call("GET", &path).send().await);
    seen.insert("a state without credentials", call("GET", &path).anonymous().send().await);
    seen.insert("a state of somebody else", call("GET", "/tfstate/unknown/net").send().await);
    seen.insert("a state is locked", call("LOCK", &path).json(&info("one")).send().await);
    seen.insert("a state that is locked is locked", call("LOCK", &path).json(&info("two")).send().await);
    let text = crate::states::lifecycle::text(1, &[]);
    seen.insert("a state is written", call("POST", &format!("{path}?ID=one")).json(&text).send().await);
    seen.insert("a state is read", call("GET", &path).send().await);
    seen.insert("a state is unlocked", call("UNLOCK", &path).json(&info("one")).send().await);
    // A state is deleted only if its owner allows it.
    let project = path.rsplit('/').next().unwrap();
    let shown = app.get(&format!("/api/orgs/{ORG}/tfstates/{project}/default")).send().await.expect(200);
    let policy = json!({ "policy": { "deleteAllowed": true } });
    let state = format!("/api/tfstates/{}", shown["id"].as_str().unwrap());
    app.patch(&state, &policy).send().await.expect(200);
    seen.insert("a state is deleted", call("DELETE", &path).send().await);
}

async fn see_failures(seen: &mut BTreeMap<&'static str, Answer>) {
    let none = TestApp::memory_limited(Limits { requests_per_token_max: 0, ..Limits::default() }).await;
    seen.insert("too many requests at once", none.get("/api/user/stacks").send().await);

    let faults = Faults::none();
    let app = TestApp::memory_with_faults(&faults).await;
    let stack = Stack::new(&app).await;
    faults.fail_from(1, 1_000, Fault::Before);
    let mut asking = std::pin::pin!(stack.get("").send());
    let answer = loop {
        tokio::select! {
            biased;
            answer = &mut asking => break answer,
            () = tokio::task::yield_now() => app.advance(std::time::Duration::from_secs(1)),
        }
    };
    seen.insert("the store does not answer", answer);
}

/// Checks an answer against a literal; returns a description if it does not match.
fn check(answer: &Answer, literal: Literal) -> Result<(), String> {
    let body: Value = serde_json::from_slice(&answer.bytes).unwrap_or_default();
    let printed = format!("[{}] {}", body["code"], body["message"].as_str().unwrap_or_default());
    let header =
        |name: &str| answer.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let member = |place: &str| body.pointer(place).cloned().unwrap_or_default();
    let holds = match literal {
        Status(status) => {
            let has_code = status < 400 || answer.bytes.is_empty() || body["code"] == status;
            answer.status == status && has_code
        }
        Prints(text) => printed.contains(text),
        PrintsNot(text) => !printed.contains(text),
        Message(text) => body["message"] == text,
        Header(name, value) => header(name) == value,
        NumberHeader(name) => header(name).parse::<u64>().is_ok(),
        TextHeader(name) => !header(name).is_empty(),
        NoHeader(name) => !answer.headers.contains_key(name),
        Member(place, value) => member(place) == serde_json::from_str::<Value>(value).unwrap(),
        Text(place) => member(place).as_str().is_some_and(|text| !text.is_empty()),
        Number(place) => member(place).as_i64().is_some_and(|number| number > 0),
        Absent(place) => member(place).is_null(),
        Empty => answer.bytes.is_empty(),
    };
    if holds { Ok(()) } else { Err(format!("{} {:?} {}", answer.status, answer.headers, answer.text())) }
}

#[tokio::test]
async fn answers_have_every_literal_that_clients_compare() {
    let seen = seen().await;
    let mut wrong = Vec::new();
    for (situation, literal, places) in LITERALS {
        assert!(!places.is_empty(), "{situation}: no client compares {literal:?}");
        let answer = seen.get(situation).unwrap_or_else(|| panic!("there is no answer for {situation:?}"));
        if let Err(words) = check(answer, *literal) {
            wrong.push(format!("{situation}: {literal:?}, compared at {places:?}: {words}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let named: BTreeSet<_> = LITERALS.iter().map(|(situation, ..)| *situation).collect();
    let unused: Vec<_> = seen.keys().filter(|situation| !named.contains(*situation)).collect();
    assert!(unused.is_empty(), "no literal checks these: {unused:?}");
}
