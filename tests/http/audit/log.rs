//! The audit log: who did what to which stack, one record for each action.

use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::api::audit::REFUSED;
use statewright_shared::api::routes::{Auth, Group, ROUTES, Route};
use statewright_shared::domain::names::{Login, OrgName};
use statewright_shared::domain::role::Role;
use statewright_shared::services::identity::{orgs, passwords};
use statewright_tests::app::{Call, ORG, TestApp, USER};

use crate::api::routes::{EDGE, STATE, path, sent};
use crate::states::lifecycle::text;
use crate::world::{Run, Stack, begin_body, deployment, new_project, program, raw};

/// The other organization of the users in these tests.
const OTHER_ORG: &str = "lab";

/// A successful request of this row, on the state that rows name by its id, or on one of its own.
async fn working_on_state<'a>(app: &'a TestApp, route: &Route, token: &str) -> Call<'a> {
    let new = json!({ "id": STATE, "project": "audited" });
    app.post(&format!("/api/orgs/{ORG}/tfstates"), &new).send().await;
    app.post(&format!("/api/tfstates/{STATE}/undelete"), &json!(null)).send().await.expect(200);
    app.request(Method::DELETE, &format!("/tfstate/{STATE}/lock")).send().await.expect(200);
    static SERIAL: AtomicU64 = AtomicU64::new(1);
    let serial = SERIAL.fetch_add(10, Ordering::Relaxed);
    app.post(&format!("/tfstate/{STATE}"), &text(serial, &[])).send().await.expect(200);
    let mut path = path(route, &new_project(), "none");
    let edge = json!({ "producer": STATE, "output": "url", "consumer": "reader" });
    if route.path.contains("/tfstate-edges") {
        app.post(&format!("/api/orgs/{ORG}/tfstates"), &json!({ "project": "reader" })).send().await;
        if route.path.contains("{edge}") {
            let added = app.post(&format!("/api/orgs/{ORG}/tfstate-edges"), &edge).send().await.expect(200);
            path = path.replace(EDGE, added["id"].as_str().unwrap());
        }
    }
    let call = app.request(route.method.clone(), &path).token(token);
    let is_protocol = route.path.starts_with("/tfstate/");
    if route.method == Method::GET && route.path.contains("{project}") {
        let project = path.split('/').find(|part| part.starts_with("shop")).unwrap_or_default().to_owned();
        if route.path.contains("{stack}") {
            let new = json!({ "stackName": "dev" });
            app.post(&format!("/api/stacks/{ORG}/{project}"), &new).send().await.expect(200);
        } else {
            app.post(&format!("/tfstate/{ORG}/{project}/default"), &text(1, &[])).send().await.expect(200);
        }
    }
    match (route.method.as_str(), route.path.rsplit('/').next().unwrap_or_default()) {
        ("POST", "lock") if is_protocol => call.json(&json!({ "ID": "a", "Operation": "OperationTypePlan" })),
        ("POST", _) if is_protocol => call.json(&text(serial + 1, &[])),
        ("POST", "lock") => call.json(&json!({ "reason": "maintenance" })),
        ("POST", "tfstates") => call.json(&json!({ "project": new_project() })),
        ("POST", "tfstate-edges") => call.json(&edge),
        ("POST", "values") => {
            app.post(&format!("/tfstate/{STATE}"), &text(serial + 1, &["a"])).send().await.expect(200);
            call.json(&json!({ "address": "terraform_data.a" }))
        }
        ("PATCH", "{edge}") => call.json(&json!({ "mock": 1 })),
        ("PATCH", "schemas") => call.json(&json!({ "infer": true })),
        ("PATCH", _) => call.json(&json!({ "state": "default" })),
        ("PUT", "protection") => call.json(&json!({ "reason": "it is production" })),
        ("PUT", "tfstate-policy") => call.json(&json!({ "version": 0, "policy": {} })),
        ("POST", "undelete") => {
            let removed = app.request(Method::DELETE, &format!("/api/tfstates/{STATE}")).send().await;
            removed.expect(204);
            call
        }
        ("DELETE", "{guid}" | "{project}" | "{state}") if is_protocol => {
            let policy = json!({ "deleteAllowed": true });
            let parts: Vec<&str> = path.split('/').skip(2).collect();
            match parts[..] {
                [id] => {
                    let edit = json!({ "policy": policy });
                    app.patch(&format!("/api/tfstates/{id}"), &edit).send().await.expect(200);
                }
                [org, project, ..] => {
                    let new = json!({ "project": project, "policy": policy });
                    app.post(&format!("/api/orgs/{org}/tfstates"), &new).send().await.expect(200);
                }
                [] => panic!("{path}"),
            }
            call
        }
        ("DELETE" | "GET", _) | ("POST", "restore" | "text" | "outputs") => call,
        _ => panic!("{route:?} is an action: this test needs a successful request of it"),
    }
}

/// A successful request of this row, on an environment of its own.
async fn working_on_environment<'a>(app: &'a TestApp, route: &Route, token: &str) -> Call<'a> {
    let project = new_project();
    let (all, name) = (format!("/api/esc/environments/{ORG}"), json!({ "project": project, "name": "dev" }));
    let this = format!("{all}/{project}/dev");
    app.post(&all, &name).send().await.expect(204);
    app.patch(&this, &json!({ "values": { "n": 1 } })).send().await.expect(200);
    let call = app.request(route.method.clone(), &path(route, &project, "none")).token(token);
    let tag = json!({ "name": "stable", "value": "yes" });
    match (route.method.as_str(), route.path.strip_prefix("/api/esc/environments/{org}").unwrap_or_default())
    {
        ("POST", "") => call.json(&json!({ "project": project, "name": "other" })),
        ("PUT", "/restore") => {
            app.request(Method::DELETE, &this).send().await.expect(204);
            call.json(&name)
        }
        ("POST", "/yaml/open" | "/yaml/check") | ("PATCH", "/{project}/{environment}") => {
            call.json(&json!({ "values": {} }))
        }
        ("GET" | "POST", below) if below.ends_with("/{session}") => {
            let open = match below.starts_with("/yaml/") {
                true => app.post(&format!("{all}/yaml/open"), &json!({ "values": {} })),
                false => app.request(Method::POST, &format!("{this}/open")),
            };
            let opened = open.token(token).send().await.expect(200);
            let path = path(route, &project, "none").replace(EDGE, opened["id"].as_str().unwrap());
            app.request(route.method.clone(), &path).token(token)
        }
        ("POST", path) if path.ends_with("/clone") => call.json(&json!({ "name": "copy" })),
        ("POST", path) if path.ends_with("/decrypt-secrets") => {
            let sealed = json!({ "plaintexts": ["eA=="] });
            let sealed = app.post(&format!("{this}/encrypt-secrets"), &sealed).send().await.expect(200);
            call.json(&sealed)
        }
        ("PATCH", path) if path.ends_with("/settings") => call.json(&json!({ "deletionProtected": true })),
        ("POST", path) if path.ends_with("/retract") => call.json(&json!({ "reason": "wrong" })),
        ("POST", path) if path.ends_with("/tags") => call.json(&tag),
        (method, path) if path.ends_with("/tags/{tag}") => {
            let tags = path.trim_end_matches("/{tag}").trim_start_matches("/{project}/{environment}");
            app.post(&format!("{this}{tags}"), &tag).send().await.expect(if tags == "/tags" {
                200
            } else {
                204
            });
            match (method, tags) {
                ("PATCH", "/tags") => call.json(&json!({ "newTag": { "value": "no" } })),
                ("PATCH", _) => call.json(&json!({ "revision": 1 })),
                _ => call,
            }
        }
        ("GET" | "DELETE" | "POST", _) => call,
        _ => panic!("{route:?} is an action: this test needs a successful request of it"),
    }
}

/// A successful request of this row, on a stack of its own.
async fn working<'a>(app: &'a TestApp, route: &Route, token: &str) -> Call<'a> {
    if route.group == Group::Tfstate {
        return working_on_state(app, route, token).await;
    }
    if route.group == Group::Environments {
        return working_on_environment(app, route, token).await;
    }
    let stack = Stack::new(app).await;
    let tail = route.path.rsplit_once("{stack}").map_or("", |(_, tail)| tail);
    let with = |run: &Run<'_>, body: &Value| {
        let call = app.request(route.method.clone(), &path(route, &stack.project, &run.id)).json(body);
        match route.auth {
            Auth::UpdateToken => call.update_token(&run.token),
            _ => call.token(token),
        }
    };
    let on_stack = |body: &Value| {
        app.request(route.method.clone(), &path(route, &stack.project, "none")).json(body).token(token)
    };
    if route.operation == "RestoreDeletedStack" {
        let id = stack.get("").send().await.expect(200)["id"].as_str().unwrap().to_owned();
        app.request(Method::DELETE, &stack.path).send().await.expect(204);
        let path = path(route, &stack.project, "none").replace(EDGE, &id);
        return app.post(&path, &json!({ "stackName": "dev" })).token(token);
    }
    match tail {
        "/config" if route.method == Method::GET => {
            let name = json!({ "project": stack.project, "name": "dev" });
            app.post(&format!("/api/esc/environments/{ORG}"), &name).send().await.expect(204);
            let config = json!({ "environment": format!("{}/dev", stack.project) });
            let path = format!("/api/stacks/{ORG}/{}/dev/config", stack.project);
            app.request(Method::PUT, &path).json(&config).send().await.expect(200);
            on_stack(&Value::Null)
        }
        "/export" | "/export/{version}" | "/outputs" => {
            stack.post("/import", &deployment(&[])).send().await.expect(200);
            on_stack(&Value::Null)
        }
        "" if route.method == Method::POST => on_stack(&json!({ "stackName": "other" })),
        "" | "/cancel" => on_stack(&Value::Null),
        "/tags" if route.method == Method::POST => on_stack(&json!({ "name": "a", "value": "b" })),
        "/tags" => on_stack(&json!({ "a": "b" })),
        "/tags/{tag}" => {
            let tag = json!({ "name": "stable", "value": "yes" });
            stack.post("/tags", &tag).send().await.expect(204);
            on_stack(&json!({ "value": "no" }))
        }
        "/config" => {
            let name = json!({ "project": stack.project, "name": "dev" });
            app.post(&format!("/api/esc/environments/{ORG}"), &name).send().await.expect(204);
            on_stack(&json!({ "environment": format!("{}/dev", stack.project) }))
        }
        "/protection" | "/hold" => on_stack(&json!({ "reason": "it is production" })),
        "/rename" => on_stack(&json!({ "newName": "prod" })),
        "/transfer" => on_stack(&json!({ "toOrg": OTHER_ORG })),
        "/decrypt" | "/batch-decrypt" => {
            let sealed = stack.post("/encrypt", &json!({ "plaintext": "c2VjcmV0" })).send().await.expect(200);
            let ciphertext = &sealed["ciphertext"];
            on_stack(&json!({ "ciphertext": ciphertext, "ciphertexts": [ciphertext] }))
        }
        "/decrypt/log-decryption" | "/decrypt/log-batch-decryption" => on_stack(&json!({})),
        "/resource/secret" => {
            let quoted = json!({ "plaintext": "InNlY3JldCI=" });
            let sealed = stack.post("/encrypt", &quoted).send().await.expect(200);
            let mut resource = stack.resource("a");
            resource["outputs"]["password"] = json!({
                "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270",
                "ciphertext": sealed["ciphertext"],
            });
            stack.import(&deployment(&[resource])).await;
            on_stack(&json!({ "urn": stack.urn("a"), "path": "/outputs/password" }))
        }
        "/import" => on_stack(&deployment(&[])),
        "/updates/{version}/restore" => {
            stack.import(&deployment(&[])).await;
            on_stack(&Value::Null)
        }
        "/update" | "/preview" | "/refresh" | "/destroy" => on_stack(&program(false)),
        "/begin-update" => on_stack(&begin_body("update", false)),
        "/{kind}/{update}" => {
            let call = stack.post("/update", &program(false)).token(token);
            with(&stack.created_by(call).await, &json!({ "journalVersion": 2 }))
        }
        "/{kind}/{update}/cancel" => with(&stack.begin().await, &Value::Null),
        "/{kind}/{update}/complete" => with(&stack.begin().await, &json!({ "status": "succeeded" })),
        _ => panic!("{route:?} is an action: this test needs a successful request of it"),
    }
}

/// The only record, with a time and the ID of the answer.
#[track_caller]
fn only(app: &TestApp, request_id: &str) -> Value {
    let records = app.take_audit();
    let [record] = &records[..] else { panic!("not one record: {records:?}") };
    let mut record = record.clone();
    assert_eq!(record["request_id"], request_id);
    assert_eq!(record["time"], "2026-01-01T00:00:00Z");
    record.as_object_mut().unwrap().retain(|name, _| name != "request_id" && name != "time");
    record
}

#[tokio::test]
async fn each_action_has_one_record_with_its_user() {
    let app = TestApp::memory().await;
    let token = app.member_of(&[ORG, OTHER_ORG], "bob", "laptop").await;
    let (org, bob) = (OrgName::parse(ORG).unwrap(), Login::parse("bob").unwrap());
    orgs::set_role(&app.context, &org, &bob, Role::Admin).await.unwrap();
    let mut actions = 0;
    // `sign_in.rs` has the pages.
    for route in ROUTES.iter().filter(|route| !route.auth.is_page()) {
        let Some(action) = route.action else { continue };
        // Most need an admin. Their own tests look at the records.
        if route.group == Group::Account {
            continue;
        }
        let call = working(&app, route, &token).await;
        app.take_audit();
        let answer = call.send().await;
        assert!(answer.status.is_success(), "{route:?}: {}", answer.text());
        let id = answer.headers["X-Pulumi-Request-ID"].to_str().unwrap();
        let record = only(&app, id);
        assert_eq!(record["action"], action, "{route:?}");
        assert_eq!(record["result"], "done", "{route:?}");
        assert_eq!(record["status"], answer.status.as_u16(), "{route:?}");
        // The end of an update names the user who ran it.
        let (user, token) = match route.auth {
            Auth::UpdateToken => (USER, "first-start"),
            _ => ("bob", "laptop"),
        };
        assert_eq!((&record["user"], &record["token"]), (&user.into(), &token.into()), "{route:?}");
        actions += 1;
        if action == "user.sign_in" {
            continue;
        }
        assert_eq!(record["organization"], ORG, "{route:?}");
        if matches!(action, "state.read" | "state.outputs") && route.path.contains("{guid}") {
            assert_eq!(record["state"], STATE, "{route:?}");
            continue;
        }
        let what = match route.group {
            Group::Tfstate if !route.path.contains("{stack}") => "state",
            Group::Environments => "environment",
            _ => "stack",
        };
        // A setting of an organization has no project, an edge has two, and a text is not an environment.
        let is_of_all =
            action == "policy.set" || action.starts_with("edge.") || route.path.contains("/yaml/");
        assert!(
            is_of_all || record["project"].is_string() && record[what].is_string(),
            "{route:?}: {record}"
        );
    }
    assert!(actions > 15, "{actions}");
}

#[tokio::test]
async fn each_row_with_wrong_credentials_leaves_one_record() {
    let app = TestApp::memory().await;
    for route in ROUTES {
        for authorization in [None, Some("token none"), Some("update-token none")] {
            let stack = Stack::new(&app).await;
            let path = path(route, &stack.project, "00000000-0000-4000-8000-000000000000");
            app.take_audit();
            let headers: Vec<_> = authorization.map(|value| ("Authorization", value)).into_iter().collect();
            let (status, _) = raw(&app, route.method.as_str(), &path, &headers, b"{}").await;
            let records = app.take_audit();
            if route.auth == Auth::Public {
                assert_eq!(records, [Value::Null; 0], "{route:?}");
                continue;
            }
            // `sign_in.rs` has the pages that need no credentials.
            if route.auth == Auth::Page {
                continue;
            }
            let action = route.action.unwrap_or(REFUSED);
            let [record] = &records[..] else { panic!("not one record of {route:?}: {records:?}") };
            assert_eq!(record["action"], action, "{route:?}");
            assert_eq!(
                (&record["result"], &record["status"]),
                (&"refused".into(), &status.into()),
                "{route:?}"
            );
            assert_eq!((&record["user"], &record["token"]), (&Value::Null, &Value::Null), "{route:?}");
            if route.path.contains("{project}") {
                assert_eq!(record["project"], stack.project, "{route:?}");
            }
        }
    }
}

/// A row that returns secrets is an action, whatever its name.
#[test]
fn each_row_that_answers_secrets_is_an_action() {
    let secret = [
        "/export",
        "/outputs",
        "decrypt",
        "/resource/secret",
        "/text",
        "/open",
        "/yaml/check",
        "{session}",
        "{stack}/config",
    ];
    for route in ROUTES {
        // The names of outputs without values.
        let is_list = route.path == "/api/orgs/{org}/outputs";
        let is_state = route.path.starts_with("/tfstate/");
        if (is_state || secret.iter().any(|word| route.path.contains(word))) && !is_list {
            let is_document = route.path.contains("openapi");
            assert!(route.action.is_some() || is_document, "{route:?}");
            // The name of an environment, and keys that are encrypted.
            let is_name = route.path.ends_with("{stack}/config");
            assert!(route.group.keeps_trail() || is_document || is_name, "{route:?} leaves no record");
        }
    }
}

#[tokio::test]
async fn a_wrong_password_is_audited_with_its_login_only() {
    let app = TestApp::memory().await;
    app.member_of(&[ORG], "bob", "laptop").await;
    let login = Login::parse("bob").unwrap();
    passwords::set(&app.context, &login, "correct horse battery").await.unwrap();
    let path = format!("/tfstate/{ORG}/net");
    let record = async |user: &str, password: &str| {
        app.take_audit();
        let basic = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
        raw(&app, "GET", &path, &[("Authorization", &basic)], b"").await;
        let records = app.take_audit();
        let [record] = &records[..] else { panic!("not one record: {records:?}") };
        assert!(!record.to_string().contains(password), "{record}");
        let text = |name: &str| record[name].as_str().map(str::to_owned);
        (record["status"].as_u64().unwrap(), text("user"), text("tried"), text("token"))
    };
    let some = |text: &str| Some(text.to_owned());
    let wrong = "wrong horse battery";
    assert_eq!(record("bob", wrong).await, (401, None, some("bob"), None));
    assert_eq!(record("carol", wrong).await, (401, None, some("carol"), None), "there is no such user");
    // A token in the wrong field.
    assert_eq!(record("swt_0123456789", wrong).await, (401, None, None, None));
    assert_eq!(record("not a name", wrong).await, (401, None, None, None));
    let done = (204, some("bob"), None, some("password"));
    assert_eq!(record("bob", "correct horse battery").await, done);
    for _ in 0..5 {
        record("bob", wrong).await;
    }
    assert_eq!(record("bob", wrong).await, (429, None, some("bob"), None));
}

#[tokio::test]
async fn refusals_for_a_role_are_audited_on_every_row() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let token = app.member_with_role(Role::Outputs, "bob", "ci").await;
    app.take_audit();
    let path = format!("/api/stacks/{ORG}/{}/dev/updates", stack.project);
    app.get(&path).token(&token).send().await.refused(403);
    let records = app.take_audit();
    let [record] = &records[..] else { panic!("not one record: {records:?}") };
    let fields = [&record["action"], &record["result"], &record["user"]];
    assert_eq!(fields, [REFUSED, "refused", "bob"]);
}

/// A resource of another organization looks like a missing one, and the audit log records the attempt.
#[tokio::test]
async fn requests_about_other_organizations_are_audited_on_each_row() {
    let app = TestApp::memory().await;
    let new = json!({ "id": STATE, "project": "audited" });
    app.post(&format!("/api/orgs/{ORG}/tfstates"), &new).send().await.expect(200);
    app.post(&format!("/tfstate/{STATE}"), &text(1, &[])).send().await.expect(200);
    let stack = Stack::new(&app).await;
    stack.publish(&["a"]).await;
    let run = stack.begin().await;
    let stranger = app.other_user("mallory", "evil").await;
    let (here, name) = (format!("/api/stacks/evil/{}", stack.project), json!({ "stackName": "dev" }));
    app.post(&here, &name).token(&stranger).send().await.expect(200);
    let begun = app.post(&format!("{here}/dev/begin-update"), &begin_body("update", false));
    let theirs = begun.token(&stranger).send().await.expect(200)["token"].as_str().unwrap().to_owned();
    let mut rows = 0;
    let names = |route: &&Route| route.path.contains("{org}") || route.path.contains("{guid}");
    // A page takes no token.
    for route in ROUTES.iter().filter(names).filter(|route| route.auth != Auth::Page) {
        app.take_audit();
        let call = app.request(route.method.clone(), &path(route, &stack.project, &run.id));
        let call = match route.auth {
            Auth::UpdateToken => call.update_token(&theirs),
            _ => call.token(&stranger),
        };
        let answer = match sent(route) {
            Value::Null => call.send().await,
            body => call.json(&body).send().await,
        };
        let expected = match route.auth {
            Auth::Token => 404,
            _ => 403,
        };
        assert_eq!(answer.status.as_u16(), expected, "{route:?}: {}", answer.text());
        let records = app.take_audit();
        let [record] = &records[..] else { panic!("not one record of {route:?}: {records:?}") };
        assert_eq!(record["action"], route.action.unwrap_or(REFUSED), "{route:?}");
        assert_eq!(
            (&record["result"], &record["status"]),
            (&json!("refused"), &json!(expected)),
            "{route:?}"
        );
        assert_eq!(record["organization"], ORG, "{route:?}");
        assert_eq!(record["user"], "mallory", "{route:?}");
        rows += 1;
    }
    assert!(rows > 100, "{rows}");
}

/// A request for something missing in the caller's own organization is not a refusal.
#[tokio::test]
async fn missing_things_of_members_are_not_audited() {
    let app = TestApp::memory().await;
    app.take_audit();
    app.get(&format!("/api/stacks/{ORG}/none/dev")).send().await.refused(404);
    app.get(&format!("/api/tfstates/{STATE}")).send().await.refused(404);
    assert_eq!(app.take_audit(), [Value::Null; 0]);
}

/// The record without the user and the place.
fn summary(record: &Value) -> String {
    let word = |name: &str| record[name].as_str().unwrap_or("-").to_owned();
    format!("{} {} {}", word("action"), word("result"), word("detail"))
}

#[tokio::test]
async fn the_records_of_a_stack_cover_its_life() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let made = &app.take_audit()[0];
    assert_eq!(
        (&made["user"], &made["token"], &made["stack"]),
        (&USER.into(), &"first-start".into(), &"dev".into())
    );
    let preview = stack.preview().await;
    preview.complete("succeeded").await.expect(204);
    let run = stack.begin_kind("destroy", false).await;
    run.append(&[stack.made(1, "a")]).await.expect(204);
    run.renew(300).await.expect(200);
    run.event(1).await.expect(204);
    stack.begin_call("update", false).send().await.refused(409);
    run.complete("failed").await.expect(204);
    stack.get("/export").send().await.expect(200);
    stack.post("/rename", &json!({ "newName": "prod", "newProject": "web" })).send().await.expect(200);
    let prod = format!("/api/stacks/{ORG}/web/prod");
    app.request(Method::DELETE, &prod).send().await.refused(400);
    app.request(Method::DELETE, &format!("{prod}?force=true")).send().await.expect(204);

    let records = app.take_audit();
    let lines: Vec<String> = records.iter().map(summary).collect();
    assert_eq!(
        lines,
        [
            "update.begin done update, dry run",
            "update.end done succeeded",
            "update.begin done destroy",
            "update.begin refused update",
            "update.end done failed",
            "stack.export done -",
            "stack.rename done to web/prod",
            "stack.delete refused -",
            "stack.delete done forced",
        ]
    );
    let updates: Vec<Option<&str>> = records.iter().map(|record| record["update"].as_str()).collect();
    let (preview, run) = (Some(preview.id.as_str()), Some(run.id.as_str()));
    assert_eq!(updates[..5], [preview, preview, run, None, run]);
    assert_eq!(records[7]["stack"], "prod");
}

/// Names and texts from a client are recorded only if they are valid names.
#[tokio::test]
async fn an_invalid_name_is_never_stored() {
    let app = TestApp::memory().await;
    let long = "x".repeat(5_000);
    let authorization = format!("token {}", app.token);
    let headers = [("Authorization", authorization.as_str())];
    for name in [long.as_str(), "a%0ab", "%22%7D", "%1b%5b31m"] {
        raw(&app, "DELETE", &format!("/api/stacks/{name}/{name}/{name}"), &headers, b"").await;
        let body = json!({ "newName": name, "newProject": name }).to_string();
        let path = format!("/api/stacks/{ORG}/shop/{name}/rename");
        raw(&app, "POST", &path, &headers, body.as_bytes()).await;
    }
    let records = app.take_audit();
    assert_eq!(records.len(), 8);
    for record in records {
        assert!(record.to_string().len() < 300, "{record}");
        assert_eq!(record["stack"], Value::Null, "{record}");
        assert_eq!(record["detail"], Value::Null, "{record}");
    }
}

/// The audit log records what ended an update: its client, a person, or the end of its lease.
#[tokio::test]
async fn the_record_of_an_end_names_its_user() {
    let app = TestApp::memory().await;
    let bob = app.member("bob", "laptop").await;
    let stack = Stack::new(&app).await;
    let who = |record: &Value| (record["user"].clone(), record["token"].clone());
    let begin = async || stack.begun(stack.begin_call("update", false).token(&bob)).await;

    let run = begin().await;
    run.complete("succeeded").await.expect(204);
    let ended = app.take_audit().pop().unwrap();
    assert_eq!(summary(&ended), "update.end done succeeded");
    assert_eq!(who(&ended), (json!("bob"), json!("laptop")));

    let run = begin().await;
    run.cancel().await.expect(204);
    let ended = app.take_audit().pop().unwrap();
    assert_eq!(summary(&ended), "update.cancel done begun by bob (laptop)");
    assert_eq!(who(&ended), (json!(USER), json!("first-start")));

    // A sweep or a request for something else may find the expired lease first.
    for swept in [true, false] {
        let run = begin().await;
        app.take_audit();
        app.advance(std::time::Duration::from_secs(400));
        if swept {
            app.sweep().await;
        } else {
            stack.export().await;
        }
        let records = app.take_audit();
        let ends: Vec<_> = records.iter().filter(|record| record["action"] == "update.end").collect();
        let [ended] = ends[..] else { panic!("not one record: {records:?}") };
        assert_eq!(
            summary(ended),
            "update.end done failed, because its lease ran out; begun by bob (laptop)"
        );
        assert_eq!((who(ended), &ended["update"]), ((Value::Null, Value::Null), &json!(run.id)));
    }
}
