//! The JSON documents of all commands have exactly the members that `COMMANDS.md` shows.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use statewright_shared::adapters::SystemIds;
use statewright_shared::adapters::embedded::DataFolder;
use statewright_shared::domain::ids::StackId;
use statewright_shared::domain::names::{Login, StackAddress};
use statewright_shared::layout::{SignedInBy, StackEntry, put};
use statewright_shared::ports::{Expect, Ids, Ledger};
use statewright_shared::services::identity::sessions;
use statewright_tests::app::{ORG, TestApp, USER};
use statewright_tests::aws::StandIn;
use statewright_tests::commands::{document, of_user, output, run, run_with, statewright};

use crate::support::{Run, import, stack, state};

const COMMANDS: &str = include_str!("../../functions/statewright/COMMANDS.md");

/// The example of each command, by its name: `stack list`.
fn examples() -> BTreeMap<String, Value> {
    let mut examples = BTreeMap::new();
    for section in COMMANDS.split("\n## `statewright ").skip(1) {
        let is_word = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        let heading = section.lines().next().unwrap().trim_end_matches('`');
        let words: Vec<&str> =
            heading.split(' ').take_while(is_word).take_while(|w| !w.starts_with('-')).collect();
        if let Some((_, rest)) = section.split_once("```json\n") {
            let text = rest.split("```").next().unwrap();
            let example = serde_json::from_str(text).unwrap_or_else(|error| panic!("{heading}: {error}"));
            examples.insert(words.join(" "), example);
        }
    }
    examples
}

/// Fails unless both have the same members and types of values. An optional member is `null` in one of them.
fn assert_alike(place: &str, printed: &Value, shown: &Value) {
    match (printed, shown) {
        (Value::Object(printed), Value::Object(shown)) => {
            // Names that are data: the operations of an engine, organizations.
            if !place.ends_with(".changes") && !place.ends_with(".roles") {
                let names =
                    |members: &serde_json::Map<String, Value>| members.keys().cloned().collect::<Vec<_>>();
                assert_eq!(names(printed), names(shown), "{place}");
            }
            for (name, value) in printed {
                assert_alike(&format!("{place}.{name}"), value, shown.get(name).unwrap_or(value));
            }
        }
        (Value::Array(printed), Value::Array(shown)) => {
            // A list of names may be empty; one of documents has members to compare.
            let has_members = shown.iter().any(Value::is_object);
            assert!(!printed.is_empty() || !has_members, "{place} is empty, so nothing is compared");
            for value in printed {
                assert_alike(&format!("{place}[]"), value, shown.first().unwrap());
            }
        }
        (Value::Null, _) | (_, Value::Null) => {}
        (Value::String(printed), Value::String(shown)) => {
            let is_time = |text: &str| text.len() >= 20 && text.as_bytes()[10] == b'T' && text.ends_with('Z');
            assert_eq!(is_time(printed), is_time(shown), "{place}: {printed}");
        }
        (printed, shown) => {
            assert_eq!(std::mem::discriminant(printed), std::mem::discriminant(shown), "{place}: {printed}");
        }
    }
}

#[tokio::test]
async fn documents_have_the_members_that_the_manual_shows() {
    let app = TestApp::embedded().await;
    let folder = app.folder();
    let mut examples = examples();
    let mut is_as_shown = |words: &str, printed: &Value| {
        let shown =
            examples.remove(words).unwrap_or_else(|| panic!("{words} is not in the manual, or twice here"));
        assert_alike(words, printed, &shown);
    };
    let ask = async |arguments: &[&str]| document(folder, arguments).await;

    is_as_shown(
        "token create",
        &ask(&["token", "create", "ci", "--user", USER, "--expires-in", "90d", "--may", "plan"]).await,
    );
    is_as_shown("token list", &ask(&["token", "list", "--user", USER]).await);
    is_as_shown("token rotate", &ask(&["token", "rotate", "ci", "--user", USER, "--grace", "1h"]).await);
    // With an update that still runs.
    let other = TestApp::embedded().await;
    let made = document(other.folder(), &["token", "create", "ci", "--user", USER]).await;
    stack(&other, "left").await;
    Run::begin_by(&other, "left", made["token"].as_str().unwrap()).await;
    let revoked = document(other.folder(), &["token", "revoke", "ci", "--user", USER]).await;
    is_as_shown("token revoke", &revoked);
    is_as_shown("user create", &ask(&["user", "create", "bob", "--org", ORG]).await);
    is_as_shown("user list", &ask(&["user", "list"]).await);
    is_as_shown("org create", &ask(&["org", "create", "web", "--member", "bob"]).await);
    is_as_shown("org list", &ask(&["org", "list"]).await);
    is_as_shown("org member list", &ask(&["org", "member", "list", "web"]).await);
    is_as_shown("org member remove", &ask(&["org", "member", "remove", "web", "bob"]).await);
    is_as_shown("org member add", &ask(&["org", "member", "add", "web", "bob"]).await);
    let set = ["user", "password", "bob", "--json"];
    let set = run_with(folder, &set, "correct horse battery\n").await;
    is_as_shown("user password", &serde_json::from_str(&set.stdout).unwrap());
    is_as_shown("org member role", &ask(&["org", "member", "role", "web", "bob", "plan"]).await);
    rights_documents(folder, &mut is_as_shown).await;
    let bob = Login::parse("bob").unwrap();
    sessions::begin(&app.context, &bob, SignedInBy::Password, "Firefox/140.0").await.unwrap();
    is_as_shown("session list", &ask(&["session", "list", "--user", "bob"]).await);
    is_as_shown("session revoke", &ask(&["session", "revoke", "--all", "--user", "bob"]).await);
    is_as_shown("user remove", &ask(&["user", "remove", "bob", "--yes"]).await);

    // Other users can enter a test's folder, which is a finding.
    let doctor = run(folder, &["doctor", "--json"]).await;
    is_as_shown("doctor", &serde_json::from_str(&doctor.stdout).unwrap());

    let names = StandIn::fresh_names();
    let mut set_up = statewright(folder, &["aws", "setup", "--json"]);
    let set_up = set_up.envs(StandIn::of_this_process().environment(&names)).output().await.unwrap();
    is_as_shown("aws setup", &serde_json::from_slice(&set_up.stdout).unwrap());

    stack(&app, "shop").await;
    let named = format!("{ORG}/shop/dev");
    let old = "http://127.0.0.1:8080";
    import(&app, "shop", &state("shop", old, &[("a", 1), ("c", 1)])).await;
    let mut second = state("shop", old, &[("a", 2), ("b", 1)]);
    second["deployment"]["snippets"] = serde_json::json!([]);
    import(&app, "shop", &second).await;
    is_as_shown("stack versions", &ask(&["stack", "versions", &named]).await);
    is_as_shown("stack diff", &ask(&["stack", "diff", &named, "1", "2"]).await);
    is_as_shown("stack restore", &ask(&["stack", "restore", &named, "--version", "1"]).await);
    is_as_shown("stack index", &ask(&["stack", "index", &named]).await);
    is_as_shown("rehome", &ask(&["rehome", "--from", old, "--to", "https://state.example.com"]).await);
    let update = Run::begin(&app, "shop").await;
    update.append(1, "d").await.expect(204);
    is_as_shown("stack list", &ask(&["stack", "list"]).await);
    is_as_shown("stack unlock", &ask(&["stack", "unlock", &named, "--yes"]).await);
    // Its clock is so far behind that no process waits for its publishing.
    let app = TestApp::embedded_on_manual_clock().await;
    stack(&app, "shop").await;
    let update = Run::begin(&app, "shop").await;
    update.append(1, "e").await.expect(204);
    update.append(2, "f").await.expect(204);
    update.damage(2).await;
    update.complete().await.refused(500);
    let ask = async |arguments: &[&str]| document(app.folder(), arguments).await;
    is_as_shown("stack show-log", &ask(&["stack", "show-log", &named]).await);
    is_as_shown("stack publish", &ask(&["stack", "publish", &named, "--from-log", "--slot", "1"]).await);

    is_as_shown("key rotate", &ask(&["key", "rotate"]).await);
    damage(folder).await;
    // A problem is in the document, and in the exit code.
    let ask = async |arguments: &[&str]| -> Value {
        let output = run(folder, &[arguments, &["--json"]].concat()).await;
        assert_eq!(output.code, Some(1), "{arguments:?}: {output:?}");
        serde_json::from_str(&output.stdout).unwrap()
    };
    is_as_shown("check", &ask(&["check", "--orphans"]).await);
    let parent = tempfile::tempdir().unwrap();
    let (backup, data) = (parent.path().join("backup"), parent.path().join("data"));
    let (backup, data) = (backup.to_str().unwrap(), data.to_str().unwrap());
    is_as_shown("backup", &ask(&["backup", "--to", backup]).await);
    let restore = ["restore", "--from", backup, "--data", data, "--despite-damage"];
    is_as_shown("restore", &ask(&restore).await);
    // The server of that folder may continue; the restored one has none.
    let copied = parent.path().join("copied");
    let copy = ["copy", "--from", data, "--to", copied.to_str().unwrap(), "--despite-damage"];
    is_as_shown("copy", &ask(&copy).await);
    users_documents(&mut is_as_shown).await;
    assert!(examples.is_empty(), "not asked for: {examples:?}");
}

/// Those of teams and grants, in the organization `web` with the member `bob`.
async fn rights_documents(folder: &Path, is_as_shown: &mut impl FnMut(&str, &Value)) {
    let ask = async |arguments: &[&str]| document(folder, arguments).await;
    is_as_shown("team create", &ask(&["team", "create", "web", "ops"]).await);
    let added = ask(&["team", "member", "add", "web", "ops", "bob", "--admin"]).await;
    is_as_shown("team member add", &added);
    let lowered = ask(&["team", "member", "role", "web", "ops", "bob", "member"]).await;
    is_as_shown("team member role", &lowered);
    ask(&["team", "member", "role", "web", "ops", "bob", "admin"]).await;
    is_as_shown("org set", &ask(&["org", "set", "web", "--max-token-days", "90"]).await);
    is_as_shown("team list", &ask(&["team", "list", "web"]).await);
    let grant = ["web", "team:ops", "shop/*", "apply"];
    is_as_shown("org grant add", &ask(&[&["org", "grant", "add"][..], &grant].concat()).await);
    is_as_shown("org grant list", &ask(&["org", "grant", "list", "web"]).await);
    is_as_shown("why", &ask(&["why", "bob", "up", "web/shop/dev"]).await);
    let mut exported = ask(&["org", "access", "export", "web"]).await;
    is_as_shown("org access export", &exported);
    exported["grants"] = serde_json::json!([]);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), exported.to_string()).unwrap();
    let file = file.path().to_str().unwrap();
    let apply = ask(&["org", "access", "apply", "web", file, "--dry-run"]).await;
    assert_eq!(apply["dryRun"], true);
    is_as_shown("org access apply", &ask(&["org", "access", "apply", "web", file]).await);
    ask(&[&["org", "grant", "add"][..], &grant].concat()).await;
    is_as_shown("org grant remove", &ask(&[&["org", "grant", "remove"][..], &grant].concat()).await);
    is_as_shown("team member remove", &ask(&["team", "member", "remove", "web", "ops", "bob"]).await);
    is_as_shown("team remove", &ask(&["team", "remove", "web", "ops"]).await);
}

/// Those of a server's users.
async fn users_documents(is_as_shown: &mut impl FnMut(&str, &Value)) {
    let app = TestApp::embedded().await;
    let folder = tempfile::tempdir().unwrap();
    let ask = async |arguments: &[&str]| -> Value {
        let output = output(&mut of_user(&app, folder.path(), &[arguments, &["--json"]].concat())).await;
        assert_eq!(output.code, Some(0), "{arguments:?}: {}", output.stderr);
        serde_json::from_str(&output.stdout)
            .unwrap_or_else(|error| panic!("{arguments:?}: {error}: {output:?}"))
    };
    let write = |name: &str, serial: u64, resources: &[&str]| {
        let resource = |name: &&str| {
            serde_json::json!({
                "mode": "managed", "type": "terraform_data", "name": name, "provider": "p",
                "instances": [{ "schema_version": 0, "attributes": { "id": name, "input": serial }, "dependencies": [] }],
            })
        };
        let resources: Vec<Value> = resources.iter().map(resource).collect();
        let state = serde_json::json!({
            "version": 4, "terraform_version": "1.12.6", "serial": serial, "lineage": "l", "resources": resources,
            "outputs": { "address": { "value": "10.0.0.1", "type": "string" } }, "check_results": null,
        });
        std::fs::write(folder.path().join(name), state.to_string()).unwrap();
    };
    is_as_shown("state create", &ask(&["state", "create", "network", "--label", "env=dev", "--init"]).await);
    is_as_shown("state init", &ask(&["state", "init"]).await);
    write("a.tfstate", 6, &[]);
    write("b.tfstate", 7, &["a"]);
    ask(&["state", "import", "a.tfstate"]).await;
    is_as_shown("state import", &ask(&["state", "import", "b.tfstate"]).await);
    write("c.tfstate", 8, &["a"]);
    ask(&["state", "import", "c.tfstate"]).await;
    is_as_shown("state diff", &ask(&["state", "diff", "2", "3"]).await);
    is_as_shown("state resources", &ask(&["state", "resources"]).await);
    is_as_shown("state show", &ask(&["state", "show", "terraform_data.a"]).await);
    is_as_shown("state history", &ask(&["state", "history", "terraform_data.a", "--last", "1"]).await);
    stack(&app, "shop").await;
    for size in 1..=2 {
        import(&app, "shop", &state("shop", "http://127.0.0.1:8080", &[("a", size)])).await;
    }
    let urn = "urn:pulumi:dev::shop::pkg:m:T::a";
    is_as_shown("stack resources", &ask(&["stack", "resources", "shop/dev"]).await);
    is_as_shown("stack show", &ask(&["stack", "show", "shop/dev", urn]).await);
    is_as_shown("stack history", &ask(&["stack", "history", "shop/dev", urn, "--last", "1"]).await);
    let hold = ["stack", "hold", "shop/dev", "--reason", "the network is moved"];
    is_as_shown("stack hold", &ask(&hold).await);
    is_as_shown("stack release", &ask(&["stack", "release", "shop/dev"]).await);
    is_as_shown("login", &ask(&["login", &app.url]).await);
    is_as_shown("logout", &ask(&["logout", &app.url]).await);
    let here = folder.path().to_str().unwrap();
    let install = ["credential-helper", "install", "--folder", here];
    is_as_shown("credential-helper install", &ask(&install).await);
    let uninstall = ["credential-helper", "uninstall", "--folder", here];
    is_as_shown("credential-helper uninstall", &ask(&uninstall).await);
    is_as_shown("state outputs", &ask(&["state", "outputs"]).await);
    is_as_shown("state pull", &ask(&["state", "pull", "--out", "pulled"]).await);
    is_as_shown("state restore", &ask(&["state", "restore", "--version", "1"]).await);
    is_as_shown("state list", &ask(&["state", "list"]).await);
    is_as_shown("state lock", &ask(&["state", "lock", "--reason", "we move"]).await);
    is_as_shown("state locks", &ask(&["state", "locks"]).await);
    is_as_shown("state get", &ask(&["state", "get"]).await);
    // Without the held lock.
    write("d.tfstate", 11, &["a", "b"]);
    let text = std::fs::read_to_string(folder.path().join("d.tfstate")).unwrap();
    let refused = app.post(&format!("/tfstate/{ORG}/network"), &serde_json::from_str(&text).unwrap());
    refused.send().await.refused(423);
    is_as_shown("state rejected", &ask(&["state", "rejected"]).await);
    is_as_shown("state unlock", &ask(&["state", "unlock", "--reason", "done", "--yes"]).await);
    // The newest is the restored one: it alone names its source.
    is_as_shown("state versions", &ask(&["state", "versions", "--last", "1"]).await);
    is_as_shown("state rename", &ask(&["state", "rename", "net/prod"]).await);
    is_as_shown("state delete", &ask(&["state", "delete", "--yes"]).await);
    is_as_shown("state undelete", &ask(&["state", "undelete"]).await);
    is_as_shown("protect", &ask(&["protect", "net/prod", "--reason", "it is production"]).await);
    is_as_shown("unprotect", &ask(&["unprotect", "net/prod"]).await);
    ask(&["state", "create", "web", "--force"]).await;
    is_as_shown("dep add", &ask(&["dep", "add", "net/prod", "address", "--mock", "\"10.0.0.0\""]).await);
    is_as_shown("dep status", &ask(&["dep", "status"]).await);
    is_as_shown("dep topo", &ask(&["dep", "topo", "--all"]).await);
    is_as_shown("dep sync", &ask(&["dep", "sync"]).await);
    is_as_shown("dep remove", &ask(&["dep", "remove", "net_prod_address"]).await);
    ask(&["state", "get", "net/prod", "--link", "--force"]).await;
    let file = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    file("schema.json", r#"{ "type": "number" }"#);
    ask(&["state", "set-schema", "address", "schema.json"]).await;
    is_as_shown("state get-schema", &ask(&["state", "get-schema"]).await);
    is_as_shown("outputs", &ask(&["outputs", "net/prod"]).await);
    file("policy.json", r#"{ "requiredKeys": ["team"], "allowedValues": { "env": ["dev"] } }"#);
    ask(&["policy", "set", "policy.json"]).await;
    is_as_shown("policy get", &ask(&["policy", "get"]).await);
    let report =
        output(&mut of_user(&app, folder.path(), &["policy", "compliance", "--project", "net", "--json"]))
            .await;
    assert_eq!(report.code, Some(1), "{}", report.stderr);
    is_as_shown("policy compliance", &serde_json::from_str(&report.stdout).unwrap());
}

/// Breaks a folder in every way that its reports know.
async fn damage(folder: &Path) {
    let stack = std::fs::read_dir(folder.join("blobs/snap")).unwrap().next().unwrap().unwrap().path();
    let mut blobs = std::fs::read_dir(&stack).unwrap().map(|entry| entry.unwrap().path());
    std::fs::remove_file(blobs.next().unwrap()).unwrap();
    std::fs::write(blobs.next().unwrap(), "other bytes").unwrap();
    std::fs::write(stack.join("nobody"), "left").unwrap();
    let data = DataFolder::open_beside(folder, Arc::new(SystemIds)).await.unwrap();
    let address = StackAddress::parse(ORG, "shop", "nobody").unwrap();
    let id = StackId::new(SystemIds.uuid());
    let name = StackEntry {
        id,
        tags: BTreeMap::new(),
        last_update: None,
        resource_count: None,
        is_updating: false,
        is_held: false,
        references: Vec::new(),
        newest: None,
    };
    let write = put(StackEntry::key(&address), Expect::Any, SystemIds.revision(), &name);
    data.ledger.commit(vec![write]).await.unwrap();
}

#[tokio::test]
async fn a_refused_script_gets_text_on_stderr_and_no_document() {
    let app = TestApp::embedded().await;
    let output = run(app.folder(), &["stack", "versions", "acme/none/dev", "--json"]).await;
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""));
    let expected =
        "error: stack acme/none/dev not found: check its name\n  `statewright stack list` lists the stacks\n";
    assert_eq!(output.stderr, expected);
}
