//! Text from others is escaped on a terminal, in every command that shows it.

use serde_json::{Value, json};
use statewright_tests::app::{ORG, TestApp};
use statewright_tests::commands::{Output, of_user, output, run};

use crate::support::stack;

/// Characters that change a terminal's title, its colors, its direction and its lines, and invisible ones.
const HOSTILE: &str = "\u{1b}]0;owned\u{7}\u{9b}31m\u{7f}\u{8}\u{200b}\u{200f}\u{2028}\u{2029}\u{202e}\u{2060}\u{2066}\u{feff}\u{e0041}\
                       \r\nerror: forged";

/// Fails if the output has a character that a terminal would obey; line breaks are allowed.
#[track_caller]
fn assert_safe(what: &[&str], output: &Output) {
    let obeyed = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}')
            || matches!(c, '\u{feff}' | '\u{e0000}'..='\u{e007f}')
    };
    let printed = format!("{}{}", output.stdout, output.stderr);
    assert!(!printed.contains(obeyed), "{what:?}: {printed:?}");
    let forged = printed.lines().any(|line| line.starts_with("error: forged"));
    assert!(!forged, "{what:?}: {printed}");
}

/// A state with an untrusted name of an output, address and client.
fn state(serial: u64, name: &str) -> Value {
    let instance = json!({ "schema_version": 0, "index_key": name, "attributes": {} });
    let resource = json!({
        "mode": "managed", "type": "terraform_data", "name": "a", "provider": format!("provider[\"{name}\"]"),
        "instances": [instance],
    });
    json!({
        "version": 4, "terraform_version": name, "serial": serial, "lineage": name,
        "outputs": { (name): { "value": name, "type": "string" } }, "resources": [resource], "check_results": null,
    })
}

async fn states(app: &TestApp) {
    for project in ["net", "web"] {
        app.post(&format!("/api/orgs/{ORG}/tfstates"), &json!({ "project": project }))
            .send()
            .await
            .expect(200);
    }
    let net = format!("/tfstate/{ORG}/net");
    app.post(&net, &state(1, "plain")).send().await.expect(200);
    app.post(&net, &state(2, HOSTILE)).send().await.expect(200);
    let path = app.get(&format!("/api/orgs/{ORG}/tfstates/net/default")).send().await.expect(200);
    let id = path["id"].as_str().unwrap().to_owned();
    app.patch(&format!("/api/tfstates/{id}"), &json!({ "labels": { "note": HOSTILE } })).send().await;
    app.patch(&format!("/api/tfstates/{id}/schemas"), &json!({ "infer": true })).send().await;
    let lock = json!({
        "ID": HOSTILE, "Operation": HOSTILE, "Info": HOSTILE, "Who": HOSTILE, "Version": HOSTILE,
        "Created": HOSTILE, "Path": HOSTILE,
    });
    app.post(&format!("{net}/lock"), &lock).send().await.expect(200);
    // Refused, so that it is kept.
    app.post(&net, &state(3, HOSTILE)).send().await.refused(423);
}

#[tokio::test]
async fn no_command_of_a_user_prints_control_characters() {
    let (app, home) = (TestApp::embedded().await, tempfile::tempdir().unwrap());
    states(&app).await;
    // A script passes on what it read elsewhere.
    let (passed_on, _) = HOSTILE.split_once('\r').unwrap();
    let mut shown = 0;
    for arguments in [
        &["state", "locks"][..],
        &["state", "list"],
        &["state", "list", "--label", "note"],
        &["state", "get", "net"],
        &["state", "versions", "net"],
        &["state", "diff", "1", "2", "-s", "net"],
        &["state", "rejected", "net"],
        &["state", "outputs", "net"],
        &["state", "outputs", "net", "-o", "none"],
        &["state", "schemas", "net"],
        &["state", "lock", "net", "--reason", "mine"],
        &["state", "restore", "net", "--version", "1", "--yes"],
        &["state", "delete", "net", "--yes"],
        &["state", "unlock", "net"],
        &["state", "unlock", "net", "--id", "other", "--reason", "gone"],
        &["state", "policy", "net"],
        &["state", "undelete", "none"],
        &["outputs"],
        &["outputs", "net/default"],
        &["dep", "list"],
        &["dep", "add", "net", passed_on, "-s", "web"],
        &["dep", "status", "-s", "web"],
        &["dep", "order"],
        &["policy", "get"],
        &["policy", "check"],
        &["state", "get", passed_on],
        &["state", "unlock", "net", "--yes", "--reason", "gone"],
    ] {
        for json in [&[][..], &["--json"]] {
            let arguments = [arguments, json].concat();
            let output = output(&mut of_user(&app, home.path(), &arguments)).await;
            assert_safe(&arguments, &output);
            let printed = format!("{}{}", output.stdout, output.stderr);
            shown += usize::from(printed.contains("owned"));
            if output.code == Some(0) && !json.is_empty() {
                serde_json::from_str::<Value>(&output.stdout)
                    .unwrap_or_else(|error| panic!("{arguments:?}: {error}"));
            }
        }
    }
    assert!(shown >= 16, "it is shown by {shown} commands");
    // A download has the stored bytes.
    let pulled = output(&mut of_user(&app, home.path(), &["state", "pull", "net"])).await;
    assert_eq!(serde_json::from_str::<Value>(&pulled.stdout).unwrap(), state(2, HOSTILE));
    let value = output(&mut of_user(&app, home.path(), &["state", "outputs", "net", "-o", HOSTILE])).await;
    assert_eq!(value.stdout, format!("{HOSTILE}\n"));
}

#[tokio::test]
async fn no_command_of_the_operator_prints_control_characters() {
    let app = TestApp::embedded().await;
    states(&app).await;
    stack(&app, "shop").await;
    let resource = |kind: &str| json!({ "urn": format!("urn:pulumi:dev::shop::pkg:m:T::{HOSTILE}"), "type": "pkg:m:T", "inputs": { (HOSTILE): kind } });
    for kind in ["a", "b"] {
        let manifest = json!({ "time": "2026-01-01T00:00:00Z", "magic": HOSTILE, "version": HOSTILE });
        let deployment = json!({ "manifest": manifest, "resources": [resource(kind)] });
        let import = json!({ "version": 3, "deployment": deployment });
        app.post(&format!("/api/stacks/{ORG}/shop/dev/import"), &import).send().await.expect(200);
    }
    let metadata = json!({ "message": HOSTILE, "environment": { "git.head": HOSTILE } });
    let program = json!({ "name": "shop", "runtime": HOSTILE, "metadata": metadata });
    let begin = json!({ "updateKind": "update", "program": program, "journalVersion": 2 });
    let begun =
        app.post(&format!("/api/stacks/{ORG}/shop/dev/begin-update"), &begin).send().await.expect(200);
    let path = format!("/api/stacks/{ORG}/shop/dev/update/{}", begun["updateID"].as_str().unwrap());
    let token = begun["token"].as_str().unwrap();
    let entry = json!({
        "version": 1, "kind": 1, "sequenceID": 1, "operationID": 1, "removeOld": null, "removeNew": null,
        "state": resource("c"),
    });
    let entries = json!({ "entries": [entry] });
    app.patch(&format!("{path}/journalentries"), &entries).update_token(token).send().await.expect(204);
    let named = format!("{ORG}/shop/dev");
    let mut shown = 0;
    for arguments in [
        &["stack", "list"][..],
        &["stack", "show-log", &named],
        &["stack", "unlock", &named, "--yes"],
        &["stack", "versions", &named],
        &["stack", "diff", &named, "1", "2"],
        &["stack", "diff", &named, "2", "3"],
        &["stack", "restore", &named, "--version", "1"],
        &["stack", "list", "--deleted"],
        &["user", "list"],
        &["token", "list"],
        &["org", "list"],
        &["check", "--orphans"],
        &["doctor"],
    ] {
        for json in [&[][..], &["--json"]] {
            let arguments = [arguments, json].concat();
            let output = run(app.folder(), &arguments).await;
            assert_safe(&arguments, &output);
            shown += usize::from(format!("{}{}", output.stdout, output.stderr).contains("owned"));
        }
    }
    assert!(shown >= 6, "it is shown by {shown} commands");
}
