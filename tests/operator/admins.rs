//! Admins of an organization have no shell at the store: with `--server`, the same commands ask the server.

use std::fs;
use std::path::Path;

use serde_json::json;
use statewright_tests::app::{ORG, TestApp, USER};
use statewright_tests::commands::{Output, of_user, output, stdout_of};
use tempfile::TempDir;

use crate::support::stack;

/// An admin with a login at a server, on a machine without a store.
struct Admin<'a> {
    app: &'a TestApp,
    home: TempDir,
}

impl<'a> Admin<'a> {
    fn of(app: &'a TestApp) -> Self {
        Self { app, home: tempfile::tempdir().unwrap() }
    }

    fn home(&self) -> &Path {
        self.home.path()
    }

    /// A command at the server, with this token.
    async fn asks_with(&self, token: &str, arguments: &[&str]) -> Output {
        let mut command = of_user(self.app, self.home(), &[arguments, &["--server"]].concat());
        output(command.env("STATEWRIGHT_TOKEN", token)).await
    }

    /// What a command at the server prints if it succeeds.
    async fn asks(&self, arguments: &[&str]) -> String {
        let output = self.asks_with(&self.app.token, arguments).await;
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{arguments:?}");
        output.stdout
    }

    /// What a command prints at the server, and for the operator too.
    async fn agrees(&self, arguments: &[&str]) -> String {
        let here = self.asks(arguments).await;
        assert_eq!(here, stdout_of(self.app.folder(), arguments).await, "{arguments:?}");
        here
    }

    /// The same, for people and for scripts.
    async fn agrees_in_both(&self, arguments: &[&str]) -> String {
        self.agrees(&[arguments, &["--json"]].concat()).await;
        self.agrees(arguments).await
    }
}

#[tokio::test]
async fn an_admin_manages_people_and_grants_at_a_server() {
    let app = TestApp::embedded().await;
    stdout_of(app.folder(), &["user", "create", "bob"]).await;
    let admin = Admin::of(&app);

    let add = ["org", "member", "add", ORG, "bob", "--role", "view"];
    assert_eq!(admin.asks(&add).await, format!("bob is a member of {ORG} with the role view\n"));
    assert_eq!(admin.asks(&add).await, format!("bob was already a member of {ORG} with the role view\n"));
    let role = ["org", "member", "role", ORG, "bob", "outputs"];
    assert_eq!(admin.asks(&role).await, format!("bob has the role outputs in {ORG}\n"));
    assert_eq!(admin.asks(&role).await, format!("bob already had the role outputs in {ORG}\n"));
    let members = admin.agrees_in_both(&["org", "member", "list", ORG]).await;
    assert!(members.contains("outputs"), "{members}");

    let create = ["team", "create", ORG, "ops", "--description", "who deploys"];
    assert!(admin.asks(&create).await.starts_with(&format!("created the team ops of {ORG}; ")));
    let member = ["team", "member", "add", ORG, "ops", "bob", "--admin"];
    assert_eq!(admin.asks(&member).await, format!("bob is in the team ops of {ORG}\n"));
    let teams = admin.agrees_in_both(&["team", "list", ORG]).await;
    assert!(teams.contains("ops") && teams.contains("bob"), "{teams}");

    let grant = ["org", "grant", "add", ORG, "team:ops", "web/*", "apply"];
    let has = |word: &str| format!("team:ops {word} the role apply on web/* in {ORG}\n");
    assert_eq!(admin.asks(&grant).await, has("has"));
    assert_eq!(admin.asks(&grant).await, has("already had"));
    admin.agrees_in_both(&["org", "grant", "list", ORG]).await;
    admin.agrees_in_both(&["org", "access", "export", ORG]).await;
    // No stack has this name: a state or an environment may.
    let why = format!("{ORG}/web/dev");
    let allowed = admin.agrees_in_both(&["why", "bob", "up", &why]).await;
    assert!(allowed.contains("team:ops"), "{allowed}");
    let refused = admin.agrees_in_both(&["why", "bob", "delete", &why]).await;
    assert!(refused.contains("does not have the right member"), "{refused}");

    let file = admin.home().join("access.json");
    fs::write(&file, json!({ "teams": {}, "grants": [] }).to_string()).unwrap();
    let file = file.to_str().unwrap();
    let planned = admin.agrees_in_both(&["org", "access", "apply", ORG, file, "--dry-run"]).await;
    assert!(planned.starts_with("PLANNED") && planned.contains("ops"), "{planned}");
    assert!(admin.asks(&["team", "list", ORG]).await.contains("ops"), "it was only planned");

    let remove = ["org", "grant", "remove", ORG, "team:ops", "web/*", "apply"];
    assert!(admin.asks(&remove).await.contains("no longer has the role apply"));
    let member = ["team", "member", "remove", ORG, "ops", "bob"];
    assert_eq!(admin.asks(&member).await, format!("removed bob from the team ops of {ORG}\n"));
    let deleted = admin.asks(&["org", "access", "apply", ORG, file]).await;
    assert!(deleted.starts_with("DONE"), "{deleted}");
    admin.agrees_in_both(&["team", "list", ORG]).await;
    admin.asks(&create).await;
    assert!(admin.asks(&["team", "remove", ORG, "ops"]).await.starts_with("deleted the team ops"));
    let remove = ["org", "member", "remove", ORG, "bob"];
    assert_eq!(admin.asks(&remove).await, format!("bob is no longer a member of {ORG}\n"));
    assert_eq!(admin.asks(&remove).await, format!("bob was not a member of {ORG}\n"));
    admin.agrees_in_both(&["org", "member", "list", ORG]).await;
}

#[tokio::test]
async fn an_admin_manages_tokens_and_sessions_at_a_server() {
    let app = TestApp::embedded().await;
    let admin = Admin::of(&app);
    let create = ["token", "create", "ci", "--org", ORG, "--may", "plan", "--description", "jobs"];
    let first = admin.asks(&create).await;
    let listed = admin.agrees_in_both(&["token", "list", "--org", ORG]).await;
    assert!(listed.contains("ci") && listed.contains("jobs"), "{listed}");
    let second = admin.asks(&["token", "rotate", "ci", "--org", ORG, "--grace", "1h"]).await;
    for token in [&first, &second] {
        app.get("/api/user").token(token.trim()).send().await.expect(200);
    }
    let revoked = admin.asks(&["token", "revoke", "ci", "--org", ORG]).await;
    assert!(revoked.starts_with(&format!("ci of {ORG} is revoked; ")), "{revoked}");
    app.get("/api/user").token(second.trim()).send().await.refused(401);
    let own = admin.asks(&["token", "create", "laptop", "--expires-in", "1d"]).await;
    app.get("/api/user").token(own.trim()).send().await.expect(200);
    let listed = admin.asks(&["token", "list"]).await;
    assert_eq!(listed, stdout_of(app.folder(), &["token", "list", "--user", USER]).await);
    let revoked = admin.asks(&["token", "revoke", "laptop"]).await;
    assert!(revoked.starts_with(&format!("laptop of {USER} is revoked; ")), "{revoked}");

    let bob = app.member("bob", "laptop").await;
    let sessions = stdout_of(app.folder(), &["session", "list", "--user", USER]).await;
    assert_eq!(admin.asks(&["session", "list"]).await, sessions);
    assert_eq!(admin.asks(&["session", "list", "--user", "bob", "--org", ORG]).await, sessions);
    let ended = "ended 0 sessions of bob; running servers apply this within a minute\n";
    assert_eq!(admin.asks(&["session", "revoke", "--all", "--user", "bob", "--org", ORG]).await, ended);
    assert_eq!(admin.asks(&["session", "revoke", "--all"]).await, ended.replace("bob", USER));

    // What a server does not do for its users is said before it is asked.
    for (arguments, why) in [
        (&["token", "list", "--user", "bob"][..], "leave out --user"),
        (&["session", "list", "--user", "bob"], "name the organization of the user"),
        (&["token", "create", "x", "--certificate", "client.pem"], "leave out --server"),
        (&["audit", "tail"], "name an organization"),
    ] {
        let refused = admin.asks_with(&app.token, arguments).await;
        assert!(refused.code == Some(2) && refused.stderr.contains(why), "{arguments:?}: {refused:?}");
    }
    // Those who administer nothing see why they are refused.
    for arguments in [
        &["org", "member", "role", ORG, "bob", "admin"][..],
        &["org", "grant", "list", ORG],
        &["org", "access", "export", ORG],
        &["team", "create", ORG, "ops"],
        &["token", "list", "--org", ORG],
        &["session", "list", "--user", USER, "--org", ORG],
        &["audit", "tail", ORG],
        &["why", USER, "up", &format!("{ORG}/web/dev")],
    ] {
        let refused = admin.asks_with(&bob, arguments).await;
        assert!(refused.code == Some(1) && refused.stdout.is_empty(), "{arguments:?}: {refused:?}");
        let role = if arguments[0] == "audit" { "the role auditor" } else { "the role admin" };
        assert!(refused.stderr.contains(role), "{arguments:?}: {refused:?}");
    }
}

#[tokio::test]
async fn an_admin_reads_the_trail_at_a_server() {
    let app = TestApp::embedded().await;
    let admin = Admin::of(&app);
    stack(&app, "web").await;
    // More than a page.
    for number in 0..101 {
        let tags = json!({ "number": number.to_string() });
        app.patch(&format!("/api/stacks/{ORG}/web/dev/tags"), &tags).send().await.expect(204);
    }
    let of_stack = ["--stack", "web/dev"];
    let with = |arguments: &[&'static str]| [arguments, &of_stack].concat();
    let tail = admin.agrees_in_both(&with(&["audit", "tail", ORG])).await;
    assert_eq!(tail.lines().count(), 21, "{tail}");
    let tail = admin.agrees(&with(&["audit", "tail", ORG, "--count", "102"])).await;
    assert!(tail.lines().nth(1).unwrap().contains("stack.create"), "the oldest is the first: {tail}");
    for format in ["jsonl", "csv", "cef"] {
        let lines = admin.agrees(&with(&["audit", "export", ORG, "--format", format])).await;
        assert_eq!(lines.lines().count(), 102 + usize::from(format == "csv"), "{format}");
    }
    let day = ["--since", "2020-01-01", "--until", "2999-01-01", "--user", USER, "--action", "stack.tag"];
    let lines = admin.agrees(&[&with(&["audit", "export", ORG])[..], &day].concat()).await;
    assert_eq!(lines.lines().count(), 101);
    let until = ["--until", "2020-01-01"];
    assert_eq!(admin.agrees(&[&with(&["audit", "export", ORG])[..], &until].concat()).await, "");
}

#[tokio::test]
async fn a_server_audits_what_it_is_asked() {
    let app = TestApp::embedded().await;
    let admin = Admin::of(&app);
    let file = admin.home().join("audit.log");
    let named = file.to_str().unwrap();
    admin.asks(&["team", "create", ORG, "ops", "--audit-log", named]).await;
    assert_eq!(fs::read_to_string(&file).unwrap(), "", "the server has the record");
    let tail = admin.asks(&["audit", "tail", ORG, "--action", "team.create"]).await;
    assert!(tail.contains(USER) && tail.contains("ops"), "{tail}");

    let mut invite = of_user(&app, admin.home(), &["user", "invite", "eve", "--org", ORG, "--role", "view"]);
    let invited = output(&mut invite).await;
    assert_eq!(invited.code, Some(0), "{invited:?}");
    assert!(invited.stdout.starts_with(&format!("{}/invite?code=", app.url)), "{invited:?}");
    let members = admin.agrees(&["org", "member", "list", ORG]).await;
    assert!(members.lines().any(|line| line.split_whitespace().eq(["eve", "view"])), "{members}");
}

#[tokio::test]
async fn without_a_store_a_login_leads_to_its_server() {
    let app = TestApp::embedded().await;
    let home = tempfile::tempdir().unwrap();
    let plain = |arguments: &[&str]| {
        let mut command = of_user(&app, home.path(), arguments);
        command.env_remove("STATEWRIGHT_URL").env_remove("STATEWRIGHT_TOKEN");
        command
    };
    let list = ["team", "list", ORG];
    let refused = output(&mut plain(&list)).await;
    assert!(refused.code == Some(1) && !refused.stderr.contains("--server"), "{refused:?}");
    let logged_in = output(&mut of_user(&app, home.path(), &["login", &app.url])).await;
    assert_eq!(logged_in.code, Some(0), "{logged_in:?}");
    let refused = output(&mut plain(&list)).await;
    let way = format!("to ask {}, where you are logged in, add --server", app.url);
    assert!(refused.code == Some(1) && refused.stderr.contains(&way), "{refused:?}");
    let listed = output(&mut plain(&[&list[..], &["--server"]].concat())).await;
    assert_eq!(listed.code, Some(0), "{listed:?}");
    // A named folder is meant.
    let refused = output(plain(&list).env("STATEWRIGHT_DATA", home.path().join("none"))).await;
    assert!(refused.code == Some(1) && !refused.stderr.contains("--server"), "{refused:?}");
}
