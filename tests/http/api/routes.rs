//! The route table: each row with wrong credentials and wrong bodies.

use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::adapters::Calls;
use statewright_shared::api::routes::{Auth, ROUTES, Route};
use statewright_shared::domain::names::{Login, TokenName};
use statewright_shared::domain::update::Update;
use statewright_shared::layout::Stored;
use statewright_shared::services::identity::tokens;
use statewright_tests::app::{ORG, TestApp, USER};

use crate::api::call_counts::counted;
use crate::states::lifecycle::text;
use crate::world::{Run, Stack, begin_body, deployment, new_project, raw, refusal};

/// The path of a row, for an update of a stack.
pub(crate) fn path(route: &Route, project: &str, update: &str) -> String {
    route
        .path
        .replace("{org}", ORG)
        .replace("{project}", project)
        .replace("{stack}", "dev")
        .replace("{kind}", "update")
        .replace("{update}", update)
        .replace("{version}", "1")
        .replace("{other}", "1")
        .replace("{guid}", STATE)
        .replace("{state}", "default")
        .replace("{edge}", EDGE)
        .replace("{environment}", "dev")
        .replace("{session}", EDGE)
        .replace("{browser}", EDGE)
        .replace("{tag}", "stable")
        .replace("{issuer}", EDGE)
        .replace("{policy}", EDGE)
        .replace("{token}", EDGE)
        .replace("{user}", "stranger")
        .replace("{team}", "strangers")
        .replace("{role}", "plan")
        .replace("{provider}", "corp")
        .replace("{program}", EDGE)
}

/// What the path of a row names besides the organization, as grants name it. `of_id` is the project of the state that
/// rows name by its ID.
pub(crate) fn unit_in(route: &Route, project: &str, of_id: &str) -> Option<String> {
    let has = |part: &str| route.path.contains(part);
    match has("{stack}") || has("{environment}") {
        true => Some(format!("{project}/dev")),
        // Its ID stands for its name.
        false if has("{guid}") => Some(format!("{of_id}/default")),
        false if has("{project}/{state}") || route.path.starts_with("/tfstate/{org}/{project}") => {
            Some(format!("{project}/default"))
        }
        false => None,
    }
}

/// A body with which a row finds the organization, and what its path names in it.
pub(crate) fn sent(route: &Route) -> Value {
    let is_protocol = route.path.starts_with("/tfstate/");
    match (route.method.as_str(), route.path.rsplit('/').next().unwrap_or_default()) {
        ("GET" | "HEAD", _) => Value::Null,
        (_, "lock") if is_protocol => json!({ "ID": "a", "Operation": "OperationTypePlan" }),
        (_, "lock" | "protection" | "hold") => json!({ "reason": "maintenance" }),
        (_, "tags") if route.path.contains("{stack}") => json!({ "name": "a", "value": "b" }),
        (_, "schemas") => json!({ "infer": true }),
        (_, "values") => json!({ "address": "terraform_data.a" }),
        (_, "secret") => json!({ "urn": "urn:pulumi:dev::web::pkg:m:T::a", "path": "/outputs/a" }),
        ("PATCH", "{guid}") => json!({ "state": "other" }),
        ("POST", _) if is_protocol => text(9, &[]),
        ("PUT", "access") => json!({ "teams": {}, "grants": [] }),
        ("POST", "tokens") => json!({ "name": "other" }),
        ("PUT", "tfstate-policy") => json!({ "version": 0, "policy": {} }),
        ("POST", "tfstate-edges") => json!({ "producer": STATE, "output": "url", "consumer": "reader" }),
        (_, "{edge}") => json!({ "mock": 1 }),
        (_, "import" | "checkpoint") => deployment(&[]),
        ("DELETE", _) => Value::Null,
        _ => {
            let mut body = begin_body("update", false);
            for (name, value) in [
                ("stackName", json!("dev")),
                ("name", json!("other")),
                ("plaintexts", json!([])),
                ("ciphertexts", json!([])),
                ("reason", json!("wrong")),
                ("newName", json!("other")),
                ("toOrg", json!(ORG)),
                ("project", json!("web")),
                ("plaintext", json!("")),
                ("ciphertext", json!("")),
                ("environment", json!("web/prod")),
                ("value", json!("no")),
                ("role", json!("plan")),
                ("to", json!("everybody")),
                ("on", json!("*")),
                ("permissions", json!(102)),
                ("newTag", json!({ "name": "a", "value": "b" })),
            ] {
                body[name] = value;
            }
            body
        }
    }
}

/// The edge that rows name, which no test adds.
pub(crate) const EDGE: &str = "019b7c3a-0000-8000-8000-000000000002";

/// The state of rows that name one by its id. Tests that need it create it.
pub(crate) const STATE: &str = "019b7c3a-0000-7000-8000-000000000001";

/// No answer is a server error, and a refusal has the code that the CLI checks.
#[track_caller]
fn check_answer(what: &str, method: &str, status: u16, body: &[u8]) {
    assert!(status < 500, "{what}: {status} {}", String::from_utf8_lossy(body));
    if status >= 400 && method != "HEAD" {
        refusal(status, body);
    }
}

/// Answers and refusals alike: no cache stores a row's answer to a request with credentials.
#[tokio::test]
async fn no_answer_of_a_row_with_credentials_may_be_stored() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    for route in ROUTES {
        for is_good in [true, false] {
            let call = app.request(route.method.clone(), &path(route, &stack.project, &run.id));
            let call = match (is_good, route.auth) {
                (false, _) => call.anonymous(),
                (true, Auth::UpdateToken) => call.update_token(&run.token),
                (true, _) => call,
            };
            let answer = call.send().await;
            let control = answer.headers.get("Cache-Control").map(|value| value.to_str().unwrap());
            let expected = (route.auth != Auth::Public).then_some("no-store");
            assert_eq!(control, expected, "{route:?}: {}", answer.status);
        }
    }
}

#[tokio::test]
async fn each_route_refuses_missing_and_wrong_credentials() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    let user = format!("token {}", app.token);
    let update = format!("update-token {}", run.token);
    for route in ROUTES {
        let (method, path) = (route.method.as_str(), path(route, &stack.project, &run.id));
        let wrong = [
            None,
            Some(""),
            Some("token"),
            Some("token "),
            Some("token none"),
            Some("token swt_0000000000000000000000000000000000000000000000000000000000000000"),
            Some("Bearer none"),
            Some("Basic YWxpY2U6c3d0X25vbmU="),
            Some("update-token "),
            Some("update-token none"),
            Some(if route.auth == Auth::UpdateToken { &user } else { &update }),
        ];
        for authorization in wrong {
            let what = format!("{route:?} with {authorization:?}");
            let headers: Vec<_> = authorization.map(|value| ("Authorization", value)).into_iter().collect();
            let (status, body) = raw(&app, method, &path, &headers, b"").await;
            let expected = match (route.auth, authorization) {
                (Auth::Public, _) => 200,
                // The credentials are in the body, which is empty.
                (Auth::Exchange, _) => 400,
                // `sign_in.rs` has the pages. Without a browser's headers, no form is read.
                (Auth::Page | Auth::Session, _) if route.method == Method::POST => 400,
                (Auth::Page, _) => page_without_input(route),
                // This alone ends the update of a client whose token is no longer valid.
                (Auth::UpdateToken, Some("update-token none")) => 403,
                (Auth::Session | Auth::Token | Auth::UpdateToken | Auth::State | Auth::Run, _) => 401,
            };
            assert_eq!(status, expected, "{what}: {}", String::from_utf8_lossy(&body));
            check_answer(&what, method, status, &body);
        }
    }
    assert_eq!(run.status().await, "running");
}

/// The status of a page for a client that sends nothing with the request.
fn page_without_input(route: &Route) -> u16 {
    match route.path {
        "/signin" | "/welcome/cli" => 200,
        "/signin/{provider}" => 404,
        "/signin/sso/{org}/reauth" => 303,
        "/signin/{provider}/callback" => 400,
        "/invite" => 403,
        path => panic!("{path} is a new page: add its answer"),
    }
}

fn garbage() -> Vec<Vec<u8>> {
    let texts = [
        "",
        "null",
        "true",
        "0",
        "\"text\"",
        "[]",
        "{}",
        "[{}]",
        "{",
        "}",
        "{\"\":",
        "{\"entries\":{}}",
        "{\"entries\":[null]}",
        "{\"events\":0}",
        "{\"events\":[null]}",
        "{\"events\":[{\"sequence\":-1}]}",
        "{\"events\":[{\"sequence\":18446744073709551615}]}",
        "{\"status\":7}",
        "{\"status\":\"cancelled\"}",
        "{\"duration\":\"300\"}",
        "{\"duration\":1e400}",
        "{\"duration\":99999999999999999999}",
        "{\"stackName\":null}",
        "{\"stackName\":\"a b\"}",
        "{\"stackName\":\"dev\",\"tags\":[]}",
        "{\"stackName\":\"dev\",\"state\":{}}",
        "{\"version\":3}",
        "{\"version\":3,\"deployment\":[]}",
        "{\"version\":\"3\",\"deployment\":{}}",
        "{\"version\":99,\"deployment\":{}}",
        "{\"version\":3,\"deployment\":{\"resources\":{}}}",
        "{\"version\":3,\"deployment\":{\"resources\":[0]}}",
        "{\"version\":3,\"sequenceNumber\":1}",
        "{\"version\":3,\"untypedDeployment\":null,\"sequenceNumber\":1}",
        "{\"version\":3,\"untypedDeployment\":{\"version\":3},\"sequenceNumber\":1}",
        "{\"version\":3,\"untypedDeployment\":{\"version\":3,\"deployment\":null},\"sequenceNumber\":-1}",
        "{\"version\":3,\"untypedDeployment\":{\"version\":3,\"deployment\":null},\"sequenceNumber\":1e3}",
        "{\"checkpointHash\":\"\",\"sequenceNumber\":1,\"deploymentDelta\":null}",
        "{\"checkpointHash\":null,\"sequenceNumber\":1,\"deploymentDelta\":[]}",
        "{\"checkpointHash\":\"\",\"sequenceNumber\":1,\"deploymentDelta\":\"[]\"}",
        "{\"checkpointHash\":\"\",\"sequenceNumber\":1,\"deploymentDelta\":[{}]}",
        "{\"updateKind\":\"watch\",\"program\":{}}",
        "{\"updateKind\":\"import\",\"program\":{}}",
        "{\"updateKind\":\"update\",\"program\":null}",
        "{\"journalVersion\":-1}",
        "{\"journalVersion\":\"2\"}",
        "{\"journalVersion\":2.0}",
        "{\"plaintext\":\"not base64!\"}",
        "{\"ciphertext\":\"AQ==\"}",
        "{\"ciphertexts\":[0]}",
        "{\"plaintexts\":[null]}",
        "{\"tags\":{\"a\":1}}",
        "\u{feff}{}",
    ];
    let mut bodies: Vec<Vec<u8>> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    bodies.extend([
        vec![0; 100],
        vec![0xff; 100],
        b"{\"a\":\"\xff\xfe\"}".to_vec(),
        vec![0x1f, 0x8b],
        vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3],
        b"[".repeat(100_000),
        b"{\"a\":".repeat(100_000),
    ]);
    bodies
}

#[tokio::test]
async fn no_body_makes_any_route_fail() {
    let app = TestApp::memory().await;
    let state = json!({ "id": STATE, "project": "garbage" });
    app.post(&format!("/api/orgs/{ORG}/tfstates"), &state).send().await.expect(200);
    let text = json!({ "version": 4, "serial": 1, "lineage": "a", "outputs": {}, "resources": [] });
    app.post(&format!("/tfstate/{STATE}"), &text).send().await.expect(200);
    for route in ROUTES {
        // An accepted request, such as a dry run or tags, may change the stack, so each row gets its own.
        let stack = Stack::new(&app).await;
        let run = stack.begin().await;
        let authorization = match route.auth {
            Auth::UpdateToken => format!("update-token {}", run.token),
            _ => format!("token {}", app.token),
        };
        let (method, path) = (route.method.as_str(), path(route, &stack.project, &run.id));
        for body in garbage() {
            for encoding in ["identity", "gzip"] {
                let headers = [("Authorization", authorization.as_str()), ("Content-Encoding", encoding)];
                let (status, answer) = raw(&app, method, &path, &headers, &body).await;
                let start = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
                check_answer(&format!("{route:?} with {start:?} as {encoding}"), method, status, &answer);
            }
        }
    }
}

#[tokio::test]
async fn paths_outside_of_the_table_get_a_404_with_a_code() {
    let app = TestApp::memory().await;
    let authorization = format!("token {}", app.token);
    let headers = [("Authorization", authorization.as_str())];
    let mut calls = vec![
        ("GET", "/index.html".to_owned()),
        ("GET", "/api".to_owned()),
        ("GET", "/api/".to_owned()),
        ("GET", "/api/nothing".to_owned()),
        ("POST", "/api/oauth/revoke".to_owned()),
        ("GET", format!("/api/orgs/{ORG}/hooks")),
        ("GET", "/api/user/".to_owned()),
        ("GET", "//api/user".to_owned()),
        ("GET", "/API/USER".to_owned()),
        ("GET", "/api/user/../user".to_owned()),
        ("BREW", "/api/user".to_owned()),
        ("PROPFIND", format!("/api/stacks/{ORG}/shop/dev")),
    ];
    // For states, an unknown method gets the list of methods.
    for route in ROUTES.iter().filter(|route| !route.path.starts_with("/tfstate/")) {
        let path = path(route, "shop", "update");
        for method in [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS]
        {
            let served = |row: &Route| self::path(row, "shop", "update") == path && row.method == method;
            // A path such as `…/dev/update` may also match another row.
            let other = ROUTES.iter().any(|row| row.method == method && fits(row.path, &path));
            if !ROUTES.iter().any(served) && !other {
                calls.push((leak(&method), path.clone()));
            }
        }
    }
    assert!(calls.len() > 100);
    for (method, path) in calls {
        let (status, body) = raw(&app, method, &path, &headers, b"").await;
        assert_eq!(status, 404, "{method} {path}");
        let words = refusal(404, &body);
        assert!(words.contains("not supported"), "{method} {path}: {words}");
    }
}

fn leak(method: &Method) -> &'static str {
    Box::leak(method.as_str().to_owned().into_boxed_str())
}

fn fits(pattern: &str, path: &str) -> bool {
    let (pattern, path): (Vec<_>, Vec<_>) = (pattern.split('/').collect(), path.split('/').collect());
    pattern.len() == path.len()
        && pattern.iter().zip(&path).all(|(part, given)| part.starts_with('{') || part == given)
}

/// For a user who is not a member, an organization that exists looks like a missing one: the same status, the
/// same text except for the name, whatever the request, and no read of the store that could take time.
#[tokio::test]
async fn i8_walled_another_organization_looks_like_a_missing_one() {
    let (app, counter) = counted().await;
    let stranger = app.other_user("mallory", "evil").await;
    let stack = Stack::new(&app).await;
    stack.publish(&["a"]).await;
    let run = stack.begin().await;
    let body = [
        json!({ "stackName": "dev" }),
        json!({ "plaintext": "c2VjcmV0" }),
        json!({ "ciphertext": "c2VjcmV0" }),
        json!({ "environment": "web/prod", "name": "prod", "newTag": { "name": "a", "value": "b" } }),
        begin_body("update", false),
        deployment(&[]),
    ];
    let mut body_of_all = json!({});
    for body in body {
        for (name, value) in body.as_object().unwrap() {
            body_of_all[name] = value.clone();
        }
    }
    for (name, value) in [("to", json!("everybody")), ("on", json!("*")), ("role", json!("plan"))] {
        body_of_all[name] = value;
    }
    body_of_all["permissions"] = json!(102);
    app.get("/api/user").token(&stranger).send().await.expect(200);
    let mut checked = 0;
    for route in ROUTES.iter().filter(|route| route.auth == Auth::Token && route.path.contains("{org}")) {
        let body = match route.path {
            "/api/orgs/{org}/access" => json!({ "teams": {}, "grants": [] }),
            path if path.contains("{stack}/tags") => a_tag(),
            path if path.ends_with("/protection") || path.ends_with("/hold") => {
                json!({ "reason": "it is production" })
            }
            path if path.ends_with("/resource/secret") => a_secret(),
            path if path.ends_with("/tokens") => json!({ "name": "other" }),
            _ => body_of_all.clone(),
        };
        let here = path(route, &stack.project, &run.id);
        let nowhere = here.replace("/acme/", "/emca/");
        let ask = async |path: &str| {
            let call = app.request(route.method.clone(), path).token(&stranger).json(&body);
            call.send().await
        };
        counter.take();
        let (here, nowhere) = (ask(&here).await, ask(&nowhere).await);
        assert_eq!(counter.take(), Calls::default(), "{route:?}");
        assert_eq!(here.status, 404, "{route:?}: {}", here.text());
        assert_eq!(here.text(), nowhere.text().replace("emca", "acme"), "{route:?}");
        let headers = |answer: &statewright_tests::app::Answer| {
            let mut headers: Vec<_> = answer.headers.keys().map(ToString::to_string).collect();
            headers.sort();
            headers
        };
        assert_eq!(headers(&here), headers(&nowhere), "{route:?}");
        checked += 1;
    }
    assert!(checked > 20, "{checked}");
    // A list names neither.
    let listed =
        app.get(&format!("/api/user/stacks?organization={ORG}")).token(&stranger).send().await.expect(200);
    assert_eq!(listed, json!({ "stacks": [] }));
    let listed = app.get("/api/user/stacks").token(&stranger).send().await.expect(200);
    assert_eq!(listed, json!({ "stacks": [] }));
    assert_eq!(stack.resources().await, ["a"]);
}

/// A tag, and a set of two.
fn a_tag() -> Value {
    json!({ "name": "a", "value": "b" })
}

/// The place of a secret.
fn a_secret() -> Value {
    json!({ "urn": "urn:pulumi:dev::web::a:b:C::a", "path": "/outputs/password" })
}

#[tokio::test]
async fn a_stack_that_is_not_there_is_a_404_on_every_route_of_stacks() {
    let app = TestApp::memory().await;
    let project = new_project();
    let update = "00000000-0000-4000-8000-000000000000";
    for route in ROUTES.iter().filter(|route| route.auth == Auth::Token && route.path.contains("{stack}")) {
        let body = if route.path.contains("/tags") {
            a_tag()
        } else if route.path.ends_with("/protection") || route.path.ends_with("/hold") {
            json!({ "reason": "it is production" })
        } else if route.path.ends_with("/resource/secret") {
            a_secret()
        } else {
            let mut body = begin_body("update", true);
            body["plaintext"] = "".into();
            body["ciphertext"] = "".into();
            body["environment"] = "web/prod".into();
            body["permissions"] = 102.into();
            body
        };
        let call = app.request(route.method.clone(), &path(route, &project, update)).json(&body);
        let words = call.send().await.refused(404);
        assert_eq!(
            words,
            format!("Not Found: stack {ORG}/{project}/dev not found: check its name"),
            "{route:?}"
        );
    }
}

/// The update of a token, as it is stored.
async fn record(app: &TestApp, run: &Run<'_>) -> Update {
    let id = statewright_shared::domain::ids::UpdateId::parse(&run.id).unwrap();
    let item = app.context.ledger.get(&Update::key(id)).await.unwrap().unwrap();
    Stored::<Update>::read(&item).unwrap().value
}

#[tokio::test]
async fn an_update_token_opens_its_own_update_only_if_unaltered() {
    let app = TestApp::memory().await;
    let (stack, other) = (Stack::new(&app).await, Stack::new(&app).await);
    let (run, theirs) = (stack.begin().await, other.begin().await);
    let preview = stack.preview().await;
    let before = record(&app, &run).await;
    let mut wrong = vec![
        theirs.token.clone(),
        preview.token.clone(),
        ".".to_owned(),
        "...".to_owned(),
        format!("{}.", run.token),
        format!("{}x", run.token),
        format!("x{}", run.token),
        run.token.to_uppercase(),
        run.token.replace("swu1", "swu2"),
        app.token.clone(),
    ];
    // Cut at every length, and with every character replaced by another one.
    wrong.extend((1..run.token.len()).step_by(7).map(|end| run.token[..end].to_owned()));
    wrong.extend((0..run.token.len()).map(|at| {
        let mut bytes = run.token.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        String::from_utf8(bytes).unwrap()
    }));
    for token in wrong {
        let tampered = run.with_token(&token);
        tampered.append(&[stack.made(1, "a")]).await.refused(403);
        for route in ROUTES.iter().filter(|route| route.auth == Auth::UpdateToken).take(2) {
            let call = app.request(route.method.clone(), &path(route, &stack.project, &run.id));
            call.update_token(&token).json(&Value::Null).send().await.refused(403);
        }
    }
    // Under another stack's path, and under another kind of path, a valid token is refused.
    let elsewhere = format!("{}/update/{}/renew_lease", other.path, run.id);
    app.post(&elsewhere, &json!({ "duration": 1 })).update_token(&run.token).send().await.refused(403);
    let elsewhere = format!("{}/watch/{}/renew_lease", stack.path, run.id);
    app.post(&elsewhere, &json!({ "duration": 1 })).update_token(&run.token).send().await.refused(404);

    assert_eq!(record(&app, &run).await, before);
    assert_eq!(stack.resources().await, [""; 0]);
    run.append(&[stack.made(1, "a")]).await.expect(204);
}

/// A valid request of an update on this route.
fn update_body(route: &Route, stack: &Stack<'_>) -> Value {
    let tail = route.path.rsplit_once("{update}/").map_or("", |(_, tail)| tail);
    match tail {
        "renew_lease" => json!({ "token": "", "duration": 300 }),
        "complete" => json!({ "status": "succeeded" }),
        "journalentries" => json!({ "entries": [stack.made(1, "a")] }),
        "checkpoint" => deployment(&[stack.resource("a")]),
        "checkpointverbatim" => {
            let state = deployment(&[stack.resource("a")]);
            json!({ "version": 3, "untypedDeployment": state, "sequenceNumber": 1 })
        }
        "checkpointdelta" => crate::world::delta_body(1, "", "x"),
        "events" => json!({ "sequence": 1, "timestamp": 1, "cancelEvent": {} }),
        "events/batch" => json!({ "events": [{ "sequence": 1, "timestamp": 1, "cancelEvent": {} }] }),
        _ => panic!("{route:?} is about an update: this test needs a valid request"),
    }
}

#[tokio::test]
async fn i4_fenced_update_routes_refuse_foreign_and_ended_tokens() {
    let app = TestApp::memory().await;
    let mut routes = 0;
    for route in ROUTES.iter().filter(|route| route.auth == Auth::UpdateToken) {
        let (stack, elsewhere) = (Stack::new(&app).await, Stack::new(&app).await);
        let body = update_body(route, &stack);
        let ask = async |run: &Run<'_>, token: &str| {
            let call = app.request(route.method.clone(), &path(route, &stack.project, &run.id)).json(&body);
            call.update_token(token).send().await
        };
        // An update saves either entries or states.
        let journal_version = if route.path.contains("/checkpoint") { Value::Null } else { 2.into() };
        let begin = async |stack: &Stack<'_>, dry_run: bool| {
            let mut body = begin_body("update", dry_run);
            body["journalVersion"] = journal_version.clone();
            let begun = stack.post("/begin-update", &body).send().await.expect(200);
            let (id, token) = (begun["updateID"].as_str().unwrap(), begun["token"].as_str().unwrap());
            Run::of(&app, id, token, &format!("{}/update/{id}", stack.path))
        };
        let ended = begin(&stack, false).await;
        ended.complete("succeeded").await.expect(204);
        let cancelled = begin(&stack, false).await;
        cancelled.cancel().await.expect(204);
        let run = begin(&stack, false).await;
        let (preview, theirs) = (begin(&stack, true).await, begin(&elsewhere, false).await);
        for wrong in [&theirs, &preview, &ended, &cancelled] {
            ask(&run, &wrong.token).await.refused(403);
            ask(wrong, &run.token).await.refused(403);
        }
        // For an ended update everything is refused, except a repeat of its end.
        for over in [&ended, &cancelled] {
            let answer = ask(over, &over.token).await;
            match route.path.ends_with("/complete") && over.id == ended.id {
                true => answer.expect(204),
                false => answer.refused(403).into(),
            };
        }
        let before = record(&app, &run).await;
        let version = stack.version().await;
        // After the lease, whether another request found the update or not.
        app.advance(std::time::Duration::from_secs(3_600));
        ask(&run, &run.token).await.refused(403);
        assert_eq!(record(&app, &run).await.started(), before.started(), "{route:?}");
        begin(&stack, false).await;
        ask(&run, &run.token).await.refused(403);
        assert_eq!(stack.resources().await, [""; 0], "{route:?}");
        assert!(stack.version().await <= version + 1, "{route:?}");
        routes += 1;
    }
    assert!(routes > 6, "{routes}");
}

#[tokio::test]
async fn each_route_of_people_refuses_a_token_that_has_ended() {
    let app = TestApp::memory().await;
    let login = Login::parse(USER).unwrap();
    let name = |text: &str| TokenName::parse(text).unwrap();
    let hour = Some(std::time::Duration::from_secs(3_600));
    let short = tokens::create_token(&app.context, &login, &name("short"), hour).await.unwrap();
    let gone = tokens::create_token(&app.context, &login, &name("gone"), None).await.unwrap();
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    let ask = async |route: &Route, token: &str| {
        let call = app.request(route.method.clone(), &path(route, &stack.project, &run.id));
        call.token(token).json(&json!({})).send().await
    };
    app.get("/api/user").token(&short).send().await.expect(200);
    app.get("/api/user").token(&gone).send().await.expect(200);
    app.advance(std::time::Duration::from_secs(3_600));
    tokens::revoke_token(&app.context, &login, &name("gone")).await.unwrap();
    // For states too: without a lock there is no grace.
    let of_people = |route: &&Route| matches!(route.auth, Auth::Token | Auth::State | Auth::Run);
    for route in ROUTES.iter().filter(of_people) {
        for token in [&short, &gone] {
            let answer = ask(route, token).await;
            assert_eq!(answer.status, 401, "{route:?}: {}", answer.text());
        }
    }
    assert_eq!(stack.get("").send().await.expect(200)["stackName"], "dev");
}
