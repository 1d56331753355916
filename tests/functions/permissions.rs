//! Compares each function's policy in the template with the calls that the function makes.
//!
//! Goal: no function needs what its policy lacks, and no policy allows what no test needs. Each function has
//! its own address for AWS, where its calls are recorded as permissions. Every test through functions checks
//! that none is missing; this one checks that none is superfluous.

use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use statewright_gateway::Between;
use statewright_shared::adapters::{SystemClock, SystemIds};
use statewright_shared::api::routes::{Auth, Group, ROUTES};
use statewright_shared::domain::ids::{StackId, StateId, UpdateId};
use statewright_shared::domain::names::{Login, OrgName, ProviderName, TokenName};
use statewright_shared::domain::role::Role;
use statewright_shared::domain::sign_in::SignInRule;
use statewright_shared::layout::{
    AuditDay, AuditRoot, Due, EventBatch, KeptState, SignInProvider, Slot, Snapshot, put,
};
use statewright_shared::ports::{BlobKey, Clock as _, Expect, Ids as _};
use statewright_shared::services::identity::tokens::{self, Owner};
use statewright_shared::services::identity::{invitations, passwords, providers, users};
use statewright_shared::settings::{Retention, Settings};
use statewright_tests::app::{ORG, START, TestApp, USER};
use statewright_tests::aws::{Right, StandIn};
use statewright_tests::cli::PulumiCli;
use statewright_tests::fake_provider::{CLIENT_SECRET, FakeProvider};
use statewright_tests::functions::{
    Functions, LOG_BYTES_OF_A_RECORD, LOG_BYTES_OF_A_REQUEST, Setting, is_of_audit, is_of_request, log_bytes,
};
use statewright_tests::https_server::Authority;
use statewright_tests::issuer::{Issuer, Served};
use statewright_tests::policies::policies;
use statewright_tests::sts::{AWS, ServedSts, prove};
use statewright_tests::visitor::Visitor;

use crate::account::{
    ADDRESS, claims, exchange, exchange_of, of_sts, policies as allowing, policies_of_account,
};
use crate::journeys;
use crate::states::{lock, text};
use crate::support::{UP, bench, export};

/// Permissions that no test here needs, with the reason.
const UNUSED: &[(&str, &str, &str, &str)] = &[
    (
        "head",
        "dynamodb:Query",
        "STACK#",
        "the oldest version distinguishes a deleted stack from one that never existed",
    ),
    ("tfstate", "s3:DeleteObject", "tf/", "a text is stored for nothing only if another write comes first"),
    ("admin", "dynamodb:GetItem", "UPDATE#", "an update waits for a sweep only after its client is gone"),
    ("admin", "dynamodb:GetItem", "STACK#", "an update waits for a sweep only after its client is gone"),
];

/// A deleted stack and a deleted environment, an abandoned update, and states with a refused write, one of them
/// deleted: all before the time of the functions. Returns the other state's id.
async fn past(app: TestApp) -> StateId {
    let cli = PulumiCli::new().backend(&app.url).token(&app.token);
    cli.bench_project("old", &[("count", "3"), ("secretEvery", "2"), ("inputBytes", "20000")]);
    cli.run(["stack", "init", "dev"]).await.assert_success();
    cli.run(UP).await.assert_success();
    cli.run(["stack", "rm", "--yes", "--force"]).await.assert_success();

    let mut kept = None;
    for project in ["removed", "kept"] {
        app.post(&format!("/api/orgs/{ORG}/tfstates"), &json!({ "project": project }))
            .send()
            .await
            .expect(200);
    }
    let edge = json!({ "producer": "kept", "output": "url", "consumer": "removed" });
    app.post(&format!("/api/orgs/{ORG}/tfstate-edges"), &edge).send().await.expect(200);
    for project in ["removed", "kept"] {
        let path = format!("/tfstate/{ORG}/{project}");
        for serial in 1..=3 {
            app.post(&path, &text(serial, ["a".to_owned()])).send().await.expect(200);
        }
        app.post(&path, &text(2, [])).send().await.refused(409);
        let state = app.get(&format!("/api/orgs/{ORG}/tfstates/{project}/default")).send().await.expect(200);
        kept = state["id"].as_str().and_then(StateId::parse);
        if project == "removed" {
            let path = format!("/api/tfstates/{}?force=true", state["id"].as_str().unwrap());
            app.request(Method::DELETE, &path).send().await.expect(204);
        }
    }

    let environments = format!("/api/esc/environments/{ORG}");
    app.post(&environments, &json!({ "project": "net", "name": "old" })).send().await.expect(204);
    let secret = json!({ "values": { "s": { "fn::secret": "x" } } });
    app.patch(&format!("{environments}/net/old"), &secret).send().await.expect(200);
    app.request(Method::DELETE, &format!("{environments}/net/old")).send().await.expect(204);

    // Its journal has entries that are too long for items.
    cli.bench_project("left", &[("count", "2")]);
    cli.run(["stack", "init", "dev"]).await.assert_success();
    cli.run(UP).await.assert_success();
    cli.bench_project(
        "left",
        &[("count", "3"), ("payloadBytes", "40000"), ("chain", "true"), ("delayMs", "2000")],
    );
    let up = cli.spawn(UP);
    // By then the previous update is in the journal.
    up.says("item-00001 updating").await;
    drop(app);
    up.kill().await;
    kept.unwrap()
}

#[tokio::test]
async fn policies_allow_exactly_the_calls_of_functions() {
    let stand_in = StandIn::of_this_process();
    let names = stand_in.fresh_store().await.1;
    let state = past(TestApp::aws_long_ago(&stand_in.url, &names).await).await;
    let retention = Retention {
        state_versions: NonZeroU64::new(1),
        audit: Duration::from_secs(24 * 3600),
        ..Retention::DEFAULT
    };
    let settings = Settings { retention, ..Settings::DEFAULT };
    let functions = Functions::start_as(Setting { names: Some(names), settings, ..Setting::default() }).await;
    swept(&functions, state).await;
    journeys::life(&functions).await;
    let path = format!("/tfstate/{ORG}/kept");
    with_password(&functions, &path).await;
    said_nothing_secret(&functions);

    // With cold caches, most is read.
    let authority = Authority::new();
    let sts = ServedSts::start(&authority).await;
    let served = Served::of(Arc::clone(&authority)).await;
    let cold = Functions::start_as(Setting {
        between: Between::Killed,
        environment: of_sts(&authority, &sts),
        settings: Settings { delta_cutoff_bytes: Some(1_000), ..Settings::DEFAULT },
        ..Setting::default()
    })
    .await;
    everything_else(&cold).await;
    states(&cold).await;
    environments(&cold).await;
    let secrets = people(&cold).await;
    never_said(&cold, &secrets);
    first_uses(&cold).await;
    account(&cold, &served.issuer).await;

    let mut wrong = Vec::new();
    for (name, allowed) in policies() {
        let needed: BTreeSet<Right> =
            [&functions, &cold].iter().flat_map(|functions| functions.aws(name).rights()).collect();
        let lacking = needed.iter().filter(|needed| !allowed.iter().any(|right| right.covers(needed)));
        wrong.extend(lacking.map(|right| format!("{name} lacks {} on {}", right.action, right.on)));
        for right in allowed.iter().filter(|right| !needed.iter().any(|needed| right.covers(needed))) {
            let is_known = UNUSED.iter().any(|(function, action, on, _)| {
                function == name && *action == right.action && *on == right.on
            });
            if !is_known {
                wrong.push(format!("{name} does not need {} on {}", right.action, right.on));
            }
        }
    }
    wrong.sort();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The sweep ends the abandoned update, erases what was deleted, and deletes a blob of each class that is overdue.
async fn swept(functions: &Functions, state: StateId) {
    let (stack, update) = (StackId::new(SystemIds.uuid()), UpdateId::new(SystemIds.uuid()));
    let of_stacks =
        [Snapshot::new_blob(stack, update), Slot::new_blob(update, 1), EventBatch::new_blob(update, 1, 2)];
    let blob = |key: BlobKey, stack| Due::Blob { key: key.to_string(), stack };
    let due = of_stacks.map(|key| blob(key, Some(stack))).into_iter();
    let of_a_state = blob(KeptState::new_blob(state, SystemIds.uuid()), None);
    let of_a_day = blob(AuditRoot::new_blob(None, AuditDay::of(START), &"0".repeat(64)), None);
    for due in due.chain([of_a_state, of_a_day, Due::StateVersions(state)]) {
        let write = put(due.key(START), Expect::Any, SystemIds.revision(), &due);
        functions.context.ledger.commit(vec![write]).await.unwrap();
    }
    let swept = functions.sweep().await.unwrap();
    assert_eq!((&swept["ended"], &swept["failed"]), (&1.into(), &0.into()), "{swept}");
    functions.sweep().await.unwrap();
}

/// What a stack's life does not cover: states saved whole and in deltas, an import, a canceled update and its
/// events, and lists.
async fn everything_else(functions: &Functions) {
    let cli =
        bench(functions, "whole", &[("count", "3"), ("payloadBytes", "40000"), ("secretEvery", "2")]).await;
    cli.clone().env("PULUMI_DISABLE_JOURNALING", "true").run(UP).await.assert_success();
    let http = Client::new();
    let get = async |path: &str| {
        let request = http.get(format!("{}{path}", functions.url));
        let answer =
            request.header("Authorization", format!("token {}", functions.token)).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        answer.text().await.unwrap()
    };
    let inspect_update = async || {
        let stack: Value = serde_json::from_str(&get(&format!("/api/stacks/{ORG}/whole/dev")).await).unwrap();
        let update = stack["activeUpdate"].as_str().unwrap();
        get(&format!("/api/stacks/{ORG}/whole/dev/update/{update}/events")).await;
        get(&format!("/api/stacks/{ORG}/whole/dev/update/{update}")).await;
    };
    inspect_update().await;
    cli.write("state.json", &export(&cli).await.to_string());
    cli.run(["stack", "import", "--file", "state.json"]).await.assert_success();
    cli.run(["stack", "ls"]).await.assert_success();
    cli.run(["stack", "output", "--show-secrets"]).await.assert_success();

    let project = [("count", "8"), ("payloadBytes", "40000"), ("chain", "true"), ("delayMs", "3000")];
    cli.bench_project("whole", &project);
    let up = cli.spawn(UP);
    // By then the previous update is in the journal.
    up.says("item-00001 updating").await;
    export(&cli).await;
    inspect_update().await;
    cli.run(["cancel", "--yes"]).await.assert_success();
    up.wait().await.assert_failure();

    // A refusal names admins of the organization.
    let (ann, org) = (Login::parse("ann").unwrap(), OrgName::parse(ORG).unwrap());
    users::create(&functions.context, &ann, &[org], Role::View).await.unwrap();
    let name = TokenName::parse("laptop").unwrap();
    let token = tokens::create_token(&functions.context, &ann, &name, None).await.unwrap();
    for (method, tail) in [(Method::GET, "export"), (Method::POST, "decrypt")] {
        let request = http.request(method, format!("{}/api/stacks/{ORG}/whole/dev/{tail}", functions.url));
        let refused = request.header("Authorization", format!("token {token}")).send().await.unwrap();
        let refused = refused.text().await.unwrap();
        assert!(refused.contains(&format!("; ask an admin: {USER}")), "{refused}");
    }

    get("/readyz").await;
    get(&format!("/api/stacks/{ORG}/whole/dev/updates/latest/timeline")).await;
    let listed = get(&format!("/api/stacks/{ORG}/whole/dev/resources")).await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let urn = listed["resources"][0]["urn"].as_str().unwrap();
    get(&format!("/api/stacks/{ORG}/whole/dev/updates/1/diff/1")).await;
    for tail in ["resource", "resource/history", "resource/neighbours"] {
        get(&format!("/api/stacks/{ORG}/whole/dev/{tail}?urn={urn}")).await;
    }
    let secret = format!("/api/stacks/{ORG}/whole/dev/resource/secret");
    for version in [1, 99] {
        let ask = json!({ "urn": urn, "version": version, "path": "/outputs/none" });
        let (status, refused) = send(functions, &http, &Method::POST, &secret, &ask).await;
        assert_eq!(status, 404, "{refused}");
    }
    inspect_update().await;
    let restore = format!("{}/api/stacks/{ORG}/whole/dev/updates/1/restore", functions.url);
    let restored = http.post(restore).header("Authorization", format!("token {}", functions.token));
    assert_eq!(restored.send().await.unwrap().status(), 200);
}

/// Sends a request with the user's token. Returns the status and the JSON of its answer: a text if it has none.
async fn send(
    functions: &Functions,
    http: &Client,
    method: &Method,
    path: &str,
    body: &Value,
) -> (StatusCode, Value) {
    let request = http.request(method.clone(), format!("{}{path}", functions.url)).json(body);
    let answer = request.header("Authorization", format!("token {}", functions.token)).send().await.unwrap();
    let (status, text) = (answer.status(), answer.text().await.unwrap());
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// The requests about states, of clients and of people.
async fn states(functions: &Functions) {
    let http = Client::new();
    let ask = async |method: Method, path: &str, body: &Value, expected: u16| {
        let (status, answer) = send(functions, &http, &method, path, body).await;
        assert_eq!(status, expected, "{method} {path}: {answer}");
        answer
    };
    let get = async |path: &str| ask(Method::GET, path, &Value::Null, 200).await;
    let post = async |path: &str, body: &Value| ask(Method::POST, path, body, 200).await;
    let path = format!("/tfstate/{ORG}/net");
    post(&format!("{path}/lock"), &lock("run")).await;
    post(&format!("{path}?ID=run"), &text(1, ["a".to_owned()])).await;
    get(&path).await;
    with_password(functions, &path).await;
    ask(Method::DELETE, &format!("{path}/lock"), &lock("run"), 200).await;
    // Its index is too long for an item.
    let long = |serial: u64| text(serial, (0..4_000).map(|number| format!("item-{number}")));
    post(&path, &long(2)).await;
    post(&path, &text(3, ["b".to_owned()])).await;
    ask(Method::POST, &path, &long(1), 409).await;
    get(&format!("{path}/outputs")).await;

    let states = format!("/api/orgs/{ORG}/tfstates");
    post(&states, &json!({ "project": "other" })).await;
    get(&states).await;
    get(&format!("/api/orgs/{ORG}/tfstate-locks")).await;
    let state = get(&format!("{states}/net/default")).await;
    let api = format!("/api/tfstates/{}", state["id"].as_str().unwrap());
    for tail in
        ["", "/versions", "/versions/2", "/versions/2/text", "/versions/2/diff/3", "/rejected", "/outputs"]
    {
        get(&format!("{api}{tail}")).await;
    }
    post(&format!("{api}/versions/2/restore"), &Value::Null).await;
    let edges = format!("/api/orgs/{ORG}/tfstate-edges");
    let edge = post(&edges, &json!({ "producer": "net", "output": "url", "consumer": "other" })).await;
    let edge = format!("{edges}/{}", edge["id"].as_str().unwrap());
    ask(Method::PATCH, &edge, &json!({ "mock": 1 }), 200).await;
    get(&format!("{api}/dependencies")).await;
    get(&format!("{states}?status=true")).await;
    for tail in ["edges", "statuses", "topology"] {
        get(&format!("/api/orgs/{ORG}/tfstate-{tail}")).await;
    }
    ask(Method::DELETE, &edge, &Value::Null, 204).await;
    post(&format!("{api}/lock"), &json!({ "reason": "we move" })).await;
    ask(Method::DELETE, &format!("{api}/lock"), &json!({}), 204).await;
    let schemas = json!({ "infer": true, "outputs": { "url": true } });
    ask(Method::PATCH, &format!("{api}/schemas"), &schemas, 200).await;
    get(&format!("{api}/schemas")).await;
    let none = json!({ "infer": false, "outputs": { "url": null, "password": null } });
    ask(Method::PATCH, &format!("{api}/schemas"), &none, 200).await;
    let policy = format!("/api/orgs/{ORG}/tfstate-policy");
    ask(Method::PUT, &policy, &json!({ "version": 0, "policy": {} }), 200).await;
    get(&format!("{policy}/compliance")).await;
    ask(Method::PATCH, &api, &json!({ "project": "network", "labels": { "env": "dev" } }), 200).await;
    // The outputs of this stack are too long for an item.
    post(&format!("/api/stacks/{ORG}/long"), &json!({ "stackName": "dev" })).await;
    let root = json!({
        "urn": "urn:pulumi:dev::long::pulumi:pulumi:Stack::long-dev", "custom": false,
        "type": "pulumi:pulumi:Stack", "outputs": { "long": "x".repeat(20_000) },
    });
    let manifest = json!({ "time": "2026-01-01T00:00:00Z", "magic": "", "version": "" });
    let long = json!({ "version": 3, "deployment": { "manifest": manifest, "resources": [root] } });
    post(&format!("/api/stacks/{ORG}/long/dev/import"), &long).await;
    get(&format!("/api/orgs/{ORG}/outputs")).await;
    get(&format!("/api/orgs/{ORG}/outputs?continuationToken=VEZTVEFURSM")).await;
    get(&format!("/api/orgs/{ORG}/outputs/stack/long/dev")).await;
    get(&format!("/api/orgs/{ORG}/outputs/tfstate/network/default")).await;
    ask(Method::DELETE, &format!("{api}?force=true"), &Value::Null, 204).await;
    get(&format!("/api/orgs/{ORG}/tfstate-removed")).await;
    get(&format!("/api/orgs/{ORG}/tfstate-removed?project=network&state=default")).await;
    post(&format!("{api}/undelete"), &Value::Null).await;
    // As a client does with permission.
    ask(Method::PATCH, &api, &json!({ "policy": { "deleteAllowed": true } }), 200).await;
    let path = format!("/tfstate/{ORG}/network");
    post(&path, &text(99, [])).await;
    ask(Method::DELETE, &path, &Value::Null, 200).await;
}

/// The requests about environments, with the outputs of stacks that contain secrets or are too long for an item.
async fn environments(functions: &Functions) {
    let http = Client::new();
    let ask = async |method: Method, path: &str, body: &Value| {
        let (status, answer) = send(functions, &http, &method, path, body).await;
        assert!(status.is_success(), "{method} {path}: {status} {answer}");
        answer
    };
    let all = format!("/api/esc/environments/{ORG}");
    let this = format!("{all}/net/base");
    ask(Method::POST, &all, &json!({ "project": "net", "name": "base" })).await;
    let secret = json!({ "values": { "s": { "fn::secret": "hunter2" } } });
    ask(Method::PATCH, &this, &secret).await;
    let path = format!("/api/stacks/{ORG}/sealed");
    ask(Method::POST, &path, &json!({ "stackName": "dev" })).await;
    let plaintext = json!({ "plaintext": STANDARD.encode("\"hunter2\"") });
    let sealed = ask(Method::POST, &format!("{path}/dev/encrypt"), &plaintext).await;
    let output = json!({
        "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": sealed["ciphertext"],
    });
    let root = json!({
        "urn": "urn:pulumi:dev::sealed::pulumi:pulumi:Stack::sealed-dev", "custom": false,
        "type": "pulumi:pulumi:Stack", "outputs": { "key": output },
    });
    let manifest = json!({ "time": "2026-01-01T00:00:00Z", "magic": "", "version": "" });
    let state = json!({ "version": 3, "deployment": { "manifest": manifest, "resources": [root] } });
    ask(Method::POST, &format!("{path}/dev/import"), &state).await;
    let stacks = json!({ "sealed": { "stack": "sealed/dev" }, "long": { "stack": "long/dev" } });
    let opens = json!({ "imports": ["net/base"], "values": { "o": { "fn::open::pulumi-stacks": { "stacks": stacks } } } });
    let opened = ask(Method::POST, &format!("{all}/yaml/open"), &opens).await;
    let looked =
        ask(Method::GET, &format!("{all}/yaml/open/{}", opened["id"].as_str().unwrap()), &Value::Null).await;
    assert_eq!(looked["properties"]["o"]["value"]["sealed"]["value"]["key"]["value"], "hunter2");
    ask(Method::POST, &format!("{this}/versions/1/retract"), &json!({})).await;
    for path in [all.clone(), format!("{all}/restore"), format!("{this}/versions"), format!("{this}/decrypt")]
    {
        ask(Method::GET, &path, &Value::Null).await;
    }
    ask(Method::DELETE, &this, &Value::Null).await;
    ask(Method::PUT, &format!("{all}/restore"), &json!({ "project": "net", "name": "base" })).await;
    let new = json!({ "stackName": "remote", "config": { "environment": "net/remote" } });
    ask(Method::POST, &format!("/api/stacks/{ORG}/net"), &new).await;
    let config = format!("/api/stacks/{ORG}/net/remote/config");
    ask(Method::PUT, &config, &json!({ "environment": "net/base" })).await;
    ask(Method::GET, &config, &Value::Null).await;
}

/// The pages of people: signing in in each way, tokens, sessions, a password, a linked account. Returns what no log may
/// have.
async fn people(functions: &Functions) -> Vec<String> {
    let now = SystemClock.now().seconds();
    let provider = FakeProvider::start(now).await;
    let org = OrgName::parse(ORG).unwrap();
    let rule = SignInRule { group: "dev".to_owned(), org, role: Role::Apply, team: None };
    let added = provider.registration(&functions.url, vec![rule], SystemClock.now());
    // The first sign-in of a store makes the key that later seals the client secret.
    let public = SignInProvider { name: ProviderName::parse("public").unwrap(), ..added.clone() };
    providers::add(&functions.context, public, None).await.unwrap();
    let mut bob = Visitor::new(&functions.url);
    assert_eq!(bob.open("/signin/public?led=yes").await.status, 303);
    providers::add(&functions.context, added, Some(CLIENT_SECRET)).await.unwrap();
    bob.sign_in(&provider, "corp", "bob").await.leads("/user/settings/account");
    // The first sign-in made the user; the next ones change the role, and take it away.
    let name = ProviderName::parse("corp").unwrap();
    for (group, status) in [("*", 303), ("none", 403), ("*", 303)] {
        let org = OrgName::parse(ORG).unwrap();
        let rule = SignInRule { group: group.to_owned(), org, role: Role::Plan, team: None };
        providers::set_rules(&functions.context, &name, &[rule]).await.unwrap();
        assert_eq!(bob.sign_in(&provider, "corp", "bob").await.status, status);
    }
    assert_eq!(bob.open("/user/settings/account").await.status, 200);
    let made = bob.submit("/user/settings/tokens", &[("name", "laptop"), ("days", "7")]).await;
    assert_eq!(made.status, 200, "{}", made.text);
    bob.submit("/user/settings/tokens/revoke", &[("name", "laptop")]).await.leads("/user/settings/tokens");
    let set = [("password", PASSWORD), ("again", PASSWORD)];
    bob.submit("/user/settings/password", &set).await.leads("/user/settings/account");
    let mut other = Visitor::new(&functions.url);
    other
        .submit("/signin", &[("login", "bob"), ("password", PASSWORD)])
        .await
        .leads("/user/settings/account");
    let page = other.open("/user/settings/account").await;
    let id = page.text.split("name=\"id\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    other.submit("/user/settings/sessions/end", &[("id", &id)]).await.leads("/user/settings/account");
    other.submit("/signout", &[]).await.leads("/signin");
    let alice = Login::parse(USER).unwrap();
    let code = invitations::invite(&functions.context, &alice, Duration::from_secs(600)).await.unwrap().code;
    let mut alice = Visitor::new(&functions.url);
    assert_eq!(alice.open(&format!("/invite?code={code}")).await.status, 200);
    alice.submit("/invite", &[("code", &code)]).await.leads("/user/settings/account");
    let led = alice.send(Method::GET, "/user/settings/link/corp", "same-origin", None).await;
    let query = provider.sign_in(&led.leads_to, "alice-at-corp");
    alice.open(&format!("/signin/corp/callback?{query}")).await.leads("/user/settings/account");
    let mut secrets = vec![code, alice.cookies["statewright"].clone()];
    secrets.extend(["state", "nonce", "code_challenge"].map(|name| parameter(&led.leads_to, name)));
    let nonce = "0a".repeat(32);
    let parameters = format!("cliSessionPort=43210&cliSessionNonce={nonce}");
    assert_eq!(alice.open(&format!("/cli-login?{parameters}")).await.status, 200);
    let form = [("cliSessionPort", "43210"), ("cliSessionNonce", nonce.as_str()), ("days", "7")];
    let given = alice.submit("/cli-login", &form).await;
    assert!(given.leads_to.starts_with("http://127.0.0.1:43210/?accessToken=swt_"), "{}", given.leads_to);
    secrets.extend([parameter(&given.leads_to, "accessToken"), nonce]);
    secrets.extend(our_login(functions, &mut alice).await);
    secrets
}

/// The value of a parameter in an address.
fn parameter(address: &str, name: &str) -> String {
    let query = address.split_once('?').unwrap().1;
    let found = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("no {name}: {address}")).to_owned()
}

/// I7: of what addresses of pages and answers had, nothing is in a line of a function.
fn never_said(functions: &Functions, secrets: &[String]) {
    let lines = functions.lines();
    for route in ["/cli-login\"", "/cli-login/authorize\"", "/signin/{provider}/callback\"", "/invite\""] {
        assert!(lines.iter().any(|(_, line)| line.contains(route)), "{route} is in no line");
    }
    let words = ["accessToken", "cliSession", "code_challenge", PASSWORD, "swt_", "sws_", "swc_"];
    for (function, line) in &lines {
        for secret in secrets.iter().map(String::as_str).chain(words) {
            assert!(!line.contains(secret), "{function} said {secret:?}: {line}");
        }
    }
}

/// `statewright login`: a code by each way, its token, and a short-lived one. Returns what no log may have.
async fn our_login(functions: &Functions, alice: &mut Visitor) -> Vec<String> {
    // RFC 7636, appendix B.
    let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
    let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    let query = format!("code_challenge={challenge}&code_challenge_method=S256");
    assert_eq!(alice.open(&format!("/cli-login/authorize?{query}")).await.status, 200);
    let form = [("code_challenge", challenge), ("days", "7"), ("port", "43210"), ("state", verifier)];
    let led = alice.submit("/cli-login/authorize", &form).await.leads_to;
    let brought = led.split("code=").nth(1).unwrap().split('&').next().unwrap().to_owned();
    let shown = alice.submit("/cli-login/code", &form).await.text;
    let copied = shown.split("<code class=\"secret\">").nth(1).unwrap().split('<').next().unwrap();
    let ask = async |body: Value| {
        let request = Client::new().post(format!("{}/api/oauth/token", functions.url)).json(&body);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200);
        answer.json::<Value>().await.unwrap()["access_token"].as_str().unwrap().to_owned()
    };
    let mut token = String::new();
    for code in [brought.as_str(), copied] {
        let body = json!({ "grant_type": "authorization_code", "code": code, "code_verifier": verifier });
        token = ask(body).await;
    }
    let short = ask(json!({ "grant_type": "refresh_token", "refresh_token": token })).await;
    assert!(short.starts_with("swt_") && short != token);
    let used = [challenge, verifier, &brought, copied, &token, &short];
    used.map(str::to_owned).to_vec()
}

/// A request to each function that authenticates, with a token that none has seen before: its use is recorded.
async fn first_uses(functions: &Functions) {
    let mut groups: Vec<Group> = Vec::new();
    for route in ROUTES.iter().filter(|route| route.auth == Auth::Token) {
        if groups.contains(&route.group) {
            continue;
        }
        let name = TokenName::parse(&format!("first-{}", groups.len())).unwrap();
        groups.push(route.group);
        let alice = Login::parse(USER).unwrap();
        let token = tokens::create_token(&functions.context, &alice, &name, None).await.unwrap();
        let parts = route.path.split('/').map(|part| match part {
            "{org}" => ORG,
            part if part.starts_with('{') => "none",
            part => part,
        });
        let url = format!("{}{}", functions.url, parts.collect::<Vec<_>>().join("/"));
        let request = Client::new().request(route.method.clone(), url);
        let answer = request.header("Authorization", format!("token {token}")).send().await.unwrap();
        // What the path names need not exist.
        let status = answer.status();
        assert!(status != 401 && !status.is_server_error(), "{route:?}: {status}");
    }
    assert!(groups.len() > 4, "{groups:?}");
    let all = tokens::list_all(&functions.context, &Owner::User(Login::parse(USER).unwrap())).await.unwrap();
    let of_now = all.iter().filter(|token| token.entry.token.name.as_str().starts_with("first-"));
    for token in of_now {
        assert!(token.used.is_some(), "{} was not recorded", token.entry.token.name);
    }
}

/// The requests of admins and machines: issuers and the exchange, tokens of each kind, members, teams, grants, what is
/// asked about a stack, and the trail of it all.
async fn account(functions: &Functions, issuer: &Issuer) {
    let http = Client::new();
    let ask = async |method: Method, path: &str, body: &Value| {
        let (status, answer) = send(functions, &http, &method, path, body).await;
        assert!(status.is_success(), "{method} {path}: {status} {answer}");
        answer
    };
    let get = async |path: &str| ask(Method::GET, path, &Value::Null).await;
    let post = async |path: &str, body: &Value| ask(Method::POST, path, body).await;
    let delete = async |path: &str| ask(Method::DELETE, path, &Value::Null).await;
    let of_org = format!("/api/orgs/{ORG}");
    let issuers = format!("{of_org}/oidc/issuers");
    let id = post(&issuers, &json!({ "name": "ci", "url": issuer.url })).await["id"].clone();
    let one = format!("{issuers}/{}", id.as_str().unwrap());
    let policy = format!("{of_org}/auth/policies");
    ask(Method::PATCH, &format!("{policy}/{}", id.as_str().unwrap()), &allowing()).await;
    get(&format!("{policy}/oidcissuers/{}", id.as_str().unwrap())).await;
    get(&issuers).await;
    get(&one).await;
    post(&format!("{one}/regenerate-thumbprints"), &json!({})).await;
    post("/api/oauth/token", &exchange(&issuer.token(&claims(issuer)))).await;
    post("/api/user/oidc/consents", &json!({ "organization": ORG, "issuer": issuer.url })).await;
    let personal = json!({
        "decision": "allow", "tokenType": "personal", "userLogin": USER, "rules": { "sub": "job:*" },
    });
    let personal = json!({ "policies": [personal] });
    ask(Method::PATCH, &format!("{policy}/{}", id.as_str().unwrap()), &personal).await;
    let mut request = exchange(&issuer.token(&claims(issuer)));
    request["requested_token_type"] = "urn:pulumi:token-type:access_token:personal".into();
    request["scope"] = format!("user:{USER}").into();
    post("/api/oauth/token", &request).await;
    let aws = post(&issuers, &json!({ "name": "aws", "url": AWS })).await["id"].clone();
    let path = format!("{policy}/{}", aws.as_str().unwrap());
    ask(Method::PATCH, &path, &policies_of_account()).await;
    let proof = prove(ADDRESS, SystemClock.now().seconds()).await;
    post("/api/oauth/token", &exchange_of(&proof)).await;
    delete(&format!("{issuers}/{}", aws.as_str().unwrap())).await;
    get("/api/user/oidc/consents").await;
    delete(&format!("/api/user/oidc/consents/{}", id.as_str().unwrap())).await;
    delete(&one).await;

    let team = json!({ "name": "web", "displayName": "", "description": "", "teamType": "pulumi" });
    post(&format!("{of_org}/teams/pulumi"), &team).await;
    for (name, list) in [
        ("own", "/api/user/tokens".to_owned()),
        ("of-org", format!("{of_org}/tokens")),
        ("of-team", format!("{of_org}/teams/web/tokens")),
    ] {
        let made = post(&list, &json!({ "name": name, "description": "", "expires": 0 })).await;
        get(&list).await;
        let made = format!("{list}/{}/rotate", made["id"].as_str().unwrap());
        let rotated = post(&made, &json!({})).await;
        delete(&format!("{list}/{}", rotated["id"].as_str().unwrap())).await;
    }
    ask(Method::PATCH, &of_org, &json!({ "setMaxAccessTokenExpiryDays": 0 })).await;

    // A rule of a provider made bob a member.
    delete(&format!("{of_org}/members/bob")).await;
    post(&format!("{of_org}/members/bob"), &json!({ "role": "member" })).await;
    ask(Method::PATCH, &format!("{of_org}/members/bob"), &json!({ "role": "admin" })).await;
    ask(Method::PATCH, &format!("{of_org}/members/bob"), &json!({ "role": "member" })).await;
    get(&format!("{of_org}/members/bob/tokens")).await;
    for _ in 0..2 {
        post(&format!("{of_org}/members/carol/invitation"), &json!({ "role": "plan" })).await;
    }
    let add = json!({ "memberAction": "add", "member": "bob" });
    ask(Method::PATCH, &format!("{of_org}/teams/web"), &add).await;
    post(&format!("{of_org}/teams/web/roles/view"), &json!({})).await;
    delete(&format!("{of_org}/teams/web/roles/view")).await;
    post(&format!("{of_org}/grants"), &json!({ "to": "user:bob", "on": "net/*", "role": "apply" })).await;
    let access = get(&format!("{of_org}/access")).await;
    ask(Method::PUT, &format!("{of_org}/access"), &access).await;
    let stack = format!("/api/stacks/{ORG}/net/remote");
    for path in ["", "/teams", "/members/bob/teams", "/roles", "/roles/member/users", "/grants", "/rights"] {
        get(&format!("{of_org}{path}")).await;
    }
    for path in ["/api/admin/status", "/api/admin/storage", &format!("{of_org}/restore-stack")] {
        get(path).await;
    }
    for tail in ["/access", "/teams", "/collaborators"] {
        get(&format!("{stack}{tail}")).await;
    }
    // Its configuration is an environment of the same name, so the grants are copied.
    post(&format!("{of_org}/grants"), &json!({ "to": "user:bob", "on": "net/remote", "role": "view" })).await;
    for (from, to) in [("remote", "moved"), ("moved", "remote")] {
        post(&format!("/api/stacks/{ORG}/net/{from}/rename"), &json!({ "newName": to })).await;
    }
    let permission = json!({ "permissions": 101 });
    ask(Method::PATCH, &format!("/api/console/stacks/{ORG}/net/remote/teams/web"), &permission).await;
    get(&format!("/api/console/orgs/{ORG}/members/bob/stacks/net/remote")).await;
    delete(&format!("{of_org}/grants?to=user:bob&on=net/*&role=apply")).await;
    delete(&format!("{of_org}/members/bob")).await;
    delete(&format!("{of_org}/teams/web")).await;
    for tail in ["", "/v2", "/export", "/v2/export", "/event-types"] {
        get(&format!("{of_org}/auditlogs{tail}")).await;
    }
}

/// The password of a user, as clients of states send it.
const PASSWORD: &str = "plain-in-the-dark";

async fn with_password(functions: &Functions, path: &str) {
    let login = Login::parse(USER).unwrap();
    passwords::set(&functions.context, &login, PASSWORD).await.unwrap();
    let request = Client::new().get(format!("{}{path}", functions.url));
    let answer = request.basic_auth(USER, Some(PASSWORD)).send().await.unwrap();
    assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap());
}

/// I7: functions write lines of JSON, and none contains a credential, a secret or a state.
fn said_nothing_secret(functions: &Functions) {
    let lines = functions.lines();
    let mut metrics = BTreeSet::new();
    let mut requests = 0;
    for (function, line) in &lines {
        let value: Value =
            serde_json::from_str(line).unwrap_or_else(|_| panic!("{function}: no JSON: {line}"));
        for secret in [
            functions.token.as_str(),
            "swu1.",
            "in-the-dark",
            &STANDARD.encode(format!("{USER}:{PASSWORD}")),
            "argon2",
            "ciphertext",
            "plain-",
            "X-Amz-",
            "\"deployment\"",
        ] {
            assert!(!line.contains(secret), "{function} said {secret:?}: {line}");
        }
        if is_of_request(line) {
            requests += 1;
            for field in ["request_id", "duration_ms", "service_calls", "route", "status"] {
                assert!(!value[field].is_null(), "{function}: no {field}: {line}");
            }
        }
        for directive in value["_aws"]["CloudWatchMetrics"].as_array().into_iter().flatten() {
            assert_eq!(directive["Dimensions"], serde_json::json!([[]]), "deployments have no names here");
            let names = directive["Metrics"].as_array().into_iter().flatten();
            metrics.extend(names.map(|metric| metric["Name"].as_str().unwrap().to_owned()));
        }
    }
    assert!(requests > 20, "requests are logged: {requests}");
    let (records, others): (Vec<&str>, Vec<&str>) =
        lines.iter().map(|(_, line)| line.as_str()).partition(|line| is_of_audit(line));
    let of_each = log_bytes(&others) / requests;
    assert!(of_each <= LOG_BYTES_OF_A_REQUEST, "a request has {of_each} bytes in the log");
    let of_each = log_bytes(&records) / records.len();
    assert!(of_each <= LOG_BYTES_OF_A_RECORD, "an audit record has {of_each} bytes in the log");
    assert!(records.iter().any(|record| record.contains("\"update.begin\"")), "audit records are logged");
    assert!(metrics.contains("Sweeps") && metrics.len() <= 10, "{metrics:?}");
}
