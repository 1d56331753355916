//! Members without a shell at the store inspect, restore and unlock stacks at a server.

use axum::http::Method;
use serde_json::{Value, json};
use statewright_shared::domain::role::Role;
use statewright_tests::app::{ORG, TestApp};
use statewright_tests::commands::{document, of_user, output, stdout_of};

use crate::admins::Admin;
use crate::support::{Run, export, import, stack, state};

const URL: &str = "http://127.0.0.1:8080";
const URN: &str = "urn:pulumi:dev::shop::pkg:m:T::a";

/// A document of the store as a server has it: times in whole seconds, and `null` for what it does not know.
fn at_a_server(document: Value, unknown: &[&str]) -> Value {
    match document {
        Value::Object(members) => {
            let member = |(name, value): (String, Value)| {
                let is_known = !unknown.contains(&name.as_str());
                (name, if is_known { at_a_server(value, unknown) } else { Value::Null })
            };
            members.into_iter().map(member).collect()
        }
        Value::Array(items) => items.into_iter().map(|item| at_a_server(item, unknown)).collect(),
        Value::String(text) => match text.split_once('.') {
            Some((second, fraction)) if second.len() == 19 && fraction.ends_with('Z') => {
                format!("{second}Z").into()
            }
            _ => Value::String(text),
        },
        other => other,
    }
}

/// The lines of a table without the widths of its columns, and without the token that only the store knows.
fn plain(table: &str) -> Vec<String> {
    let line = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    table.replace(" (first-start)", "").lines().map(line).collect()
}

impl Admin<'_> {
    /// The document that a command prints at the server.
    async fn document(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.asks(&[arguments, &["--json"]].concat()).await).unwrap()
    }

    /// What a command refuses to do at the server, with this token.
    async fn refused(&self, token: &str, arguments: &[&str]) -> String {
        let refused = self.asks_with(token, arguments).await;
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{arguments:?}: {refused:?}");
        refused.stderr
    }
}

async fn delete(app: &TestApp, project: &str) {
    app.request(Method::DELETE, &format!("/api/stacks/{ORG}/{project}/dev")).send().await.expect(204);
}

/// The stack `shop/dev` with two versions.
async fn two_versions(app: &TestApp) -> String {
    stack(app, "shop").await;
    import(app, "shop", &state("shop", URL, &[("a", 1), ("c", 1)])).await;
    import(app, "shop", &state("shop", URL, &[("a", 2), ("b", 1)])).await;
    format!("{ORG}/shop/dev")
}

#[tokio::test]
async fn stacks_and_versions_are_shown_at_a_server() {
    let app = TestApp::embedded().await;
    let (admin, folder) = (Admin::of(&app), app.folder());
    let named = two_versions(&app).await;
    stack(&app, "web").await;
    let list = ["stack", "list"];
    let listed = admin.agrees(&list).await;
    assert_eq!(listed.lines().count(), 3, "{listed}");
    admin.agrees(&["stack", "list", "--org", ORG, "--project", "web"]).await;
    assert_eq!(admin.document(&list).await, at_a_server(document(folder, &list).await, &[]));
    let refused = admin.refused(&app.token, &["stack", "list", "--org", "none"]).await;
    assert!(refused.contains("none") && refused.contains("--org"), "{refused}");

    let versions = ["stack", "versions", &named];
    let unknown = ["token", "pendingOperations", "skipped"];
    let shown = admin.document(&versions).await;
    assert_eq!(shown, at_a_server(document(folder, &versions).await, &unknown));
    assert_eq!((&shown["newest"], &shown["versions"][0]["user"]), (&json!(2), &json!("alice")));
    assert_eq!(plain(&admin.asks(&versions).await), plain(&stdout_of(folder, &versions).await));
    // Without the organization: the user's default one, which the store does not have.
    assert_eq!(admin.document(&["stack", "versions", "shop/dev"]).await, shown);
    let refused = statewright_tests::commands::refused(folder, 2, &["stack", "versions", "shop/dev"]).await;
    assert!(refused.contains("ORGANIZATION/PROJECT/STACK"), "{refused}");
    let last = ["stack", "versions", &named, "--last", "1"];
    assert_eq!(admin.document(&last).await, at_a_server(document(folder, &last).await, &unknown));

    let diff = ["stack", "diff", &named, "1", "2"];
    let differences = admin.agrees(&diff).await;
    assert!(differences.contains("~ inputs.size") && differences.contains("::b"), "{differences}");
    assert_eq!(admin.document(&diff).await, at_a_server(document(folder, &diff).await, &["deployment"]));
    let same = admin.asks(&["stack", "diff", &named, "2", "2"]).await;
    assert_eq!(same, "the resources of versions 2 and 2 do not differ\n");
    let refused = admin.refused(&app.token, &["stack", "diff", &named, "1", "7"]).await;
    assert!(refused.contains("no version 7") && refused.contains("versions STACK --server"), "{refused}");
    let refused = admin.refused(&app.token, &["stack", "versions", "acme/none/dev"]).await;
    assert!(refused.contains("not found") && refused.contains("stack list --server"), "{refused}");
}

#[tokio::test]
async fn all_pages_of_versions_are_shown_at_a_server() {
    let app = TestApp::embedded().await;
    let admin = Admin::of(&app);
    stack(&app, "shop").await;
    for size in 1..=101 {
        import(&app, "shop", &state("shop", URL, &[("a", size)])).await;
    }
    let named = format!("{ORG}/shop/dev");
    for (last, count) in [(None, 101), (Some("101"), 101), (Some("100"), 100), (Some("3"), 3)] {
        let last = last.map(|last| ["--last", last]);
        let arguments = [&["stack", "versions", named.as_str()][..], last.as_slice().as_flattened()].concat();
        let shown = admin.document(&arguments).await;
        let versions: Vec<u64> = shown["versions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|version| version["version"].as_u64().unwrap())
            .collect();
        let expected: Vec<u64> = (1..=101).rev().take(count).collect();
        assert_eq!((versions, &shown["newest"]), (expected, &json!(101)), "{last:?}");
    }
}

#[tokio::test]
async fn a_version_is_restored_and_a_stack_unlocked_at_a_server() {
    let app = TestApp::embedded().await;
    let (admin, folder) = (Admin::of(&app), app.folder());
    let named = two_versions(&app).await;
    let id = document(folder, &["stack", "list"]).await["stacks"][0]["id"].clone();
    let restored = admin.document(&["stack", "restore", &named, "--version", "1"]).await;
    let newest = document(folder, &["stack", "versions", &named]).await["versions"][0].clone();
    let expected =
        json!({ "stack": named, "id": id, "restored": 1, "version": 3, "update": newest["update"] });
    assert_eq!((restored, &newest["version"]), (expected, &json!(3)));
    let words = admin.asks(&["stack", "restore", &named, "--version", "2"]).await;
    assert!(words.starts_with("published version 2 of acme/shop/dev again, as version 4"), "{words}");
    assert_eq!(export(&app, "shop").await["deployment"]["resources"].as_array().unwrap().len(), 2);

    let run = Run::begin(&app, "shop").await;
    run.append(1, "d").await.expect(204);
    let list = ["stack", "list"];
    let mut expected = at_a_server(document(folder, &list).await, &["token", "until"]);
    expected["stacks"][0]["lastUpdate"] = Value::Null;
    assert_eq!(admin.document(&list).await, expected);
    assert_eq!(expected["stacks"][0]["running"]["update"], run.id.as_str());
    let restore = ["stack", "restore", &named, "--version", "1"];
    let refused = admin.refused(&app.token, &restore).await;
    assert!(refused.contains("alice") && refused.contains("stack unlock STACK --server"), "{refused}");
    let refused = admin.refused(&app.token, &["stack", "unlock", &named]).await;
    assert!(refused.contains("is locked by update") && refused.contains("--yes"), "{refused}");
    let unlock = ["stack", "unlock", &named, "--yes", "--reason", "its runner is gone"];
    let ended = admin.document(&unlock).await;
    let who = (&ended["ended"]["user"], &ended["ended"]["token"]);
    assert_eq!(who, (&json!("alice"), &Value::Null), "{ended}");
    assert!(ended["ended"]["lastWrite"].is_string(), "{ended}");
    assert_eq!(ended["ended"]["update"], run.id.as_str());
    run.append(2, "e").await.refused(403);
    assert_eq!(document(folder, &["stack", "versions", &named]).await["newest"], 5, "what it saved");
    let refused = admin.refused(&app.token, &unlock).await;
    assert!(refused.contains("no update locks acme/shop/dev"), "{refused}");
    let again = Run::begin(&app, "shop").await;
    let words = admin.asks(&unlock).await;
    let begins = format!("acme/shop/dev is unlocked; it was locked by update {} by alice since ", again.id);
    assert!(words.starts_with(&begins) && words.contains(", with nothing saved"), "{words}");
}

#[tokio::test]
async fn a_deleted_stack_is_undeleted_at_a_server() {
    let app = TestApp::embedded().await;
    let (admin, folder) = (Admin::of(&app), app.folder());
    stack(&app, "shop").await;
    stack(&app, "web").await;
    import(&app, "web", &state("web", URL, &[])).await;
    delete(&app, "shop").await;
    delete(&app, "web").await;
    let deleted = ["stack", "list", "--deleted"];
    assert_eq!(admin.agrees(&deleted).await.lines().count(), 3);
    admin.agrees(&["stack", "list", "--deleted", "--org", ORG, "--project", "web"]).await;
    let listed = admin.document(&deleted).await;
    assert_eq!(listed, at_a_server(document(folder, &deleted).await, &[]));

    let web = format!("{ORG}/web/dev");
    let back = admin.document(&["stack", "restore", &web]).await;
    let expected = json!({
        "stack": web, "id": listed["stacks"][1]["id"], "restored": null, "version": 1, "update": null,
    });
    assert_eq!(back, expected);
    let refused = admin.refused(&app.token, &["stack", "restore", &web, "--deleted"]).await;
    assert!(refused.contains("there is no deleted stack acme/web/dev"), "{refused}");
    // A second one of the name.
    stack(&app, "shop").await;
    delete(&app, "shop").await;
    let shop = format!("{ORG}/shop/dev");
    let refused = admin.refused(&app.token, &["stack", "restore", &shop]).await;
    let id = listed["stacks"][0]["id"].as_str().unwrap();
    assert!(refused.contains("several deleted stacks") && refused.contains(id), "{refused}");
    let words = admin.asks(&["stack", "restore", &shop, "--id", id]).await;
    assert_eq!(words, format!("{shop} is undeleted, with its versions, secrets and tags\n"));
    assert_eq!(document(folder, &["stack", "list"]).await["stacks"][0]["id"], id);
}

/// The stack `shop/dev` whose resource has a secret of this server.
async fn with_a_secret(app: &TestApp) -> String {
    stack(app, "shop").await;
    // "hunter2", as JSON.
    let plaintext = json!({ "plaintext": "Imh1bnRlcjIi" });
    let sealed =
        app.post(&format!("/api/stacks/{ORG}/shop/dev/encrypt"), &plaintext).send().await.expect(200);
    let mut with_secret = state("shop", URL, &[("a", 1)]);
    with_secret["deployment"]["resources"][0]["inputs"]["password"] = json!({
        "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270",
        "ciphertext": sealed["ciphertext"],
    });
    import(app, "shop", &with_secret).await;
    format!("{ORG}/shop/dev")
}

#[tokio::test]
async fn a_viewer_sees_no_values_and_changes_nothing() {
    let app = TestApp::embedded().await;
    let admin = Admin::of(&app);
    let named = with_a_secret(&app).await;
    import(&app, "shop", &state("shop", URL, &[("a", 2)])).await;
    stack(&app, "web").await;
    delete(&app, "web").await;
    let run = Run::begin(&app, "shop").await;
    let vera = app.member_with_role(Role::View, "vera", "laptop").await;
    for arguments in [
        &["stack", "list"][..],
        &["stack", "list", "--deleted"],
        &["stack", "versions", &named],
        &["stack", "diff", &named, "1", "2"],
    ] {
        let shown = admin.asks_with(&vera, arguments).await;
        assert_eq!((shown.code, shown.stderr.as_str()), (Some(0), ""), "{arguments:?}");
    }
    let web = format!("{ORG}/web/dev");
    for (arguments, role) in [
        (&["stack", "restore", &named, "--version", "1"][..], "apply"),
        (&["stack", "restore", &web], "admin"),
        (&["stack", "unlock", &named, "--yes"], "plan"),
    ] {
        let refused = admin.refused(&vera, arguments).await;
        assert!(refused.contains(&format!("needs the role {role}")), "{arguments:?}: {refused}");
    }
    run.complete().await.expect(204);
    let as_vera = async |arguments: &[&str]| {
        output(of_user(&app, admin.home(), arguments).env("STATEWRIGHT_TOKEN", &vera)).await
    };
    let shown = as_vera(&["stack", "show", &named, URN, "--version", "1"]).await;
    assert!(shown.code == Some(0) && shown.stdout.contains("password: \"[masked]\""), "{shown:?}");
    let shown = as_vera(&["stack", "show", &named, URN, "--version", "1", "--show-secrets"]).await;
    assert!(shown.code == Some(1) && shown.stderr.contains("needs the role plan"), "{shown:?}");
}

#[tokio::test]
async fn secrets_are_shown_on_request_and_recorded() {
    let app = TestApp::embedded().await;
    let admin = Admin::of(&app);
    let named = with_a_secret(&app).await;
    let ask = async |more: &[&str]| {
        let arguments = [&["stack", "show", named.as_str(), URN][..], more].concat();
        let shown = output(&mut of_user(&app, admin.home(), &arguments)).await;
        assert_eq!((shown.code, shown.stderr.as_str()), (Some(0), ""), "{more:?}");
        shown.stdout
    };
    let masked = ask(&[]).await;
    assert!(masked.contains(r#"password: {"secret":true}"#) && !masked.contains("hunter2"), "{masked}");
    let shown = ask(&["--show-secrets"]).await;
    assert!(shown.contains(r#"password: "hunter2""#) && shown.contains("size: 1"), "{shown}");
    let shown: Value = serde_json::from_str(&ask(&["--show-secrets", "--json"]).await).unwrap();
    assert_eq!(shown["inputs"], json!({ "password": "hunter2", "size": 1 }));
    let trail = admin.asks(&["audit", "tail", ORG, "--action", "secrets.reveal"]).await;
    assert_eq!(trail.lines().count(), 3, "a heading, and one for each: {trail}");
}
