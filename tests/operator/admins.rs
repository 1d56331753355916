//! Admins of an organization have no shell at the store: with `--server`, the same commands ask the server.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use statewright_shared::domain::names::{Login, OrgName, TokenName};
use statewright_shared::layout::SignedInBy;
use statewright_shared::services::identity::sessions;
use statewright_shared::services::identity::tokens::{self, NewToken, Owner};
use statewright_tests::app::{ORG, TestApp, USER};
use statewright_tests::commands::{Output, document, of_user, output, refused, stdout_of};
use tempfile::TempDir;

use crate::support::stack;

/// An admin with a login at a server, on a machine without a store.
pub(crate) struct Admin<'a> {
    app: &'a TestApp,
    home: TempDir,
}

impl<'a> Admin<'a> {
    pub(crate) fn of(app: &'a TestApp) -> Self {
        Self { app, home: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// A command at the server, with this token.
    pub(crate) async fn asks_with(&self, token: &str, arguments: &[&str]) -> Output {
        let mut command = of_user(self.app, self.home(), &[arguments, &["--server"]].concat());
        output(command.env("STATEWRIGHT_TOKEN", token)).await
    }

    /// What a command at the server prints if it succeeds.
    pub(crate) async fn asks(&self, arguments: &[&str]) -> String {
        let output = self.asks_with(&self.app.token, arguments).await;
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{arguments:?}");
        output.stdout
    }

    /// The error of a command at the server that exits with this code and prints nothing else.
    async fn is_refused(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.asks_with(&self.app.token, arguments).await;
        assert_eq!((output.code, output.stdout.as_str()), (Some(code), ""), "{arguments:?}: {output:?}");
        output.stderr
    }

    /// What a command prints at the server, and for the operator too.
    pub(crate) async fn agrees(&self, arguments: &[&str]) -> String {
        let here = self.asks(arguments).await;
        assert_eq!(here, stdout_of(self.app.folder(), arguments).await, "{arguments:?}");
        here
    }

    /// The same, for people and for scripts.
    pub(crate) async fn agrees_in_both(&self, arguments: &[&str]) -> String {
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
    assert_eq!(admin.asks(&member).await, format!("bob is an admin of the team ops of {ORG}\n"));
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
    let delete = ["why", "bob", "delete", &why];
    let missing = admin.asks(&delete).await;
    assert!(missing.contains("does not have the right member"), "{missing}");
    let way = format!("`statewright org grant add {ORG} user:bob web/dev member");
    assert!(missing.contains(&format!("{way} --server`")), "{missing}");
    assert_eq!(missing.replace(" --server`", "`"), stdout_of(app.folder(), &delete).await);
    admin.agrees(&[&delete[..], &["--json"]].concat()).await;

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
async fn a_member_of_a_team_becomes_an_admin_of_it_and_back() {
    let app = TestApp::embedded().await;
    app.member("bob", "laptop").await;
    let admin = Admin::of(&app);
    let [at_server, in_store] = ["ops", "web"];
    for (team, server) in [(at_server, " --server"), (in_store, "")] {
        let ask = async |arguments: &[&str]| match team == at_server {
            true => admin.asks(arguments).await,
            false => stdout_of(app.folder(), arguments).await,
        };
        let made = ask(&["team", "create", ORG, team]).await;
        let add = format!("`statewright team member add {ORG} {team} LOGIN{server}` adds a member");
        assert!(made.contains(&add), "{made}");
        let add = ["team", "member", "add", ORG, team, "bob"];
        let as_admin = ["team", "member", "add", ORG, team, "bob", "--admin"];
        let role = |role: &'static str| ["team", "member", "role", ORG, team, "bob", role];
        let place = format!("the team {team} of {ORG}");

        let stranger = match team == at_server {
            true => admin.is_refused(1, &role("admin")).await,
            false => refused(app.folder(), 1, &role("admin")).await,
        };
        assert!(stranger.contains("bob") && stranger.contains(team), "{stranger}");
        assert_eq!(ask(&add).await, format!("bob is in {place}\n"));
        assert_eq!(ask(&add).await, format!("bob was already in {place}\n"));
        assert_eq!(ask(&as_admin).await, format!("bob is an admin of {place}\n"));
        assert_eq!(ask(&as_admin).await, format!("bob was already an admin of {place}\n"));
        let way = format!("`statewright team member role {ORG} {team} bob member{server}`");
        let kept = format!("bob was already an admin of {place}; {way} makes the admin a member\n");
        assert_eq!(ask(&add).await, kept);
        assert_eq!(ask(&role("member")).await, format!("bob has the role member in {place}\n"));
        assert_eq!(ask(&role("member")).await, format!("bob already had the role member in {place}\n"));
        assert_eq!(ask(&role("admin")).await, format!("bob has the role admin in {place}\n"));
    }
    admin.agrees_in_both(&["team", "list", ORG]).await;
    assert!(
        admin.is_refused(2, &["team", "member", "role", ORG, "ops", "bob", "owner"]).await.contains("admin")
    );
}

#[tokio::test]
async fn an_admin_limits_the_days_of_tokens() {
    let app = TestApp::embedded().await;
    let admin = Admin::of(&app);
    let set = |days: &'static str| ["org", "set", ORG, "--max-token-days", days];
    let words = admin.is_refused(1, &set("14")).await;
    assert!(words.contains("your own token has more than 14 days left"), "{words}");
    let short = admin.asks(&["token", "create", "short", "--expires-in", "1d"]).await;
    let with_short = async |days: &'static str| {
        let output = admin.asks_with(short.trim(), &set(days)).await;
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{days}");
        output.stdout
    };
    let at_most = |days: &str| format!("{ORG} accepts access tokens that have at most {days} left\n");
    assert_eq!(with_short("14").await, at_most("14 days"));
    assert!(admin.is_refused(1, &["team", "list", ORG]).await.contains("max access token expiry"));
    assert_eq!(with_short("none").await, format!("{ORG} accepts access tokens without a limit of days\n"));
    admin.asks(&["team", "list", ORG]).await;

    assert_eq!(stdout_of(app.folder(), &set("1")).await, at_most("1 day"));
    let none = document(app.folder(), &set("none")).await;
    assert_eq!(none, json!({ "organization": ORG, "maxTokenDays": null }));
    assert!(refused(app.folder(), 1, &set("731")).await.contains("use at most 730 days"));
    let missing = refused(app.folder(), 1, &["org", "set", "nosuch", "--max-token-days", "1"]).await;
    assert!(missing.contains("organization nosuch not found"), "{missing}");
}

#[tokio::test]
async fn an_admin_ends_tokens_of_members_at_a_server() {
    let app = TestApp::embedded().await;
    let admin = Admin::of(&app);
    let anns = app.member("ann", "laptop").await;
    app.member_of(&[ORG, "lab"], "bob", "laptop").await;
    let (owner, name) = (Owner::User(Login::parse("bob").unwrap()), TokenName::parse("here").unwrap());
    let limited = NewToken { org: OrgName::parse(ORG).ok(), ..NewToken::new(owner, name) };
    let limited = tokens::issue(&app.context, limited).await.unwrap().secret;

    let of = |user: &'static str| ["--user", user, "--org", ORG];
    let list = async |user: &'static str| admin.asks(&[&["token", "list"][..], &of(user)].concat()).await;
    assert!(list("ann").await.contains("laptop"));
    let bobs = list("bob").await;
    assert!(bobs.contains("here") && !bobs.contains("laptop"), "{bobs}");
    let other = admin.is_refused(1, &[&["token", "revoke", "laptop"][..], &of("bob")].concat()).await;
    let why = format!(
        "bob has no token laptop that works in {ORG} alone: `statewright token list --user bob --org {ORG} --server` lists"
    );
    assert!(other.contains(&why), "{other}");
    for (user, name, token) in [("ann", "laptop", &anns), ("bob", "here", &limited)] {
        let revoked = admin.asks(&[&["token", "revoke", name][..], &of(user)].concat()).await;
        assert!(revoked.starts_with(&format!("{name} of {user} is revoked; ")), "{revoked}");
        app.get("/api/user").token(token).send().await.expect(401);
    }
    let machine = admin.is_refused(1, &["token", "revoke", "ci", "--org", ORG]).await;
    assert!(machine.contains(&format!("`statewright token list --org {ORG} --server` lists")), "{machine}");
    for words in [&["token", "create", "x"][..], &["token", "rotate", "laptop"]] {
        let words = admin.is_refused(2, &[words, &of("bob")].concat()).await;
        assert!(words.contains("leave out --user"), "{words}");
    }
    let words = refused(app.folder(), 2, &[&["token", "list"][..], &of("bob")].concat()).await;
    assert!(words.contains("only for --server"), "{words}");
}

#[tokio::test]
async fn an_admin_ends_sessions_at_a_server() {
    let app = TestApp::embedded().await;
    let admin = Admin::of(&app);
    app.member("bob", "laptop").await;
    app.member_of(&[ORG, "lab"], "eve", "laptop").await;
    let mut cookies = Vec::new();
    for (user, browser) in [
        ("bob", "Firefox/140.0"),
        ("bob", "Safari"),
        ("bob", "Edge"),
        (USER, "Firefox/140.0"),
        (USER, "Safari"),
        ("eve", "Safari"),
    ] {
        let login = Login::parse(user).unwrap();
        let begun = sessions::begin(&app.context, &login, SignedInBy::Password, browser).await.unwrap();
        cookies.push(begun.cookie);
    }
    let signed_in = async || {
        let mut found = Vec::new();
        for cookie in &cookies {
            found.push(sessions::authenticate(&app.context, cookie).await.is_ok());
        }
        found
    };
    let id_in = |listed: &str, place: usize| {
        let listed: Value = serde_json::from_str(listed).unwrap();
        listed["sessions"][place]["id"].as_str().unwrap().to_owned()
    };
    let ended = |number: &str, user: &str| {
        format!("ended {number} of {user}; running servers apply this within a minute\n")
    };

    for more in [None, Some("--json")] {
        let with =
            |words: &[&'static str]| -> Vec<&'static str> { words.iter().copied().chain(more).collect() };
        let listed = admin.asks(&with(&["session", "list", "--user", "bob", "--org", ORG])).await;
        let browsers = ["Firefox/140.0", "Safari", "Edge"];
        assert!(browsers.iter().all(|browser| listed.contains(browser)), "{listed}");
        let store = stdout_of(app.folder(), &with(&["session", "list", "--user", "bob"])).await;
        assert_eq!(listed, store);
        let own = admin.asks(&with(&["session", "list"])).await;
        let store = stdout_of(app.folder(), &with(&["session", "list", "--user", USER])).await;
        assert!(own == store && own.contains("Safari"), "{own} {store}");
    }
    let bobs = ["--user", "bob", "--org", ORG];
    let listed = admin.asks(&[&["session", "list", "--json"][..], &bobs].concat()).await;
    let id = id_in(&listed, 2);
    let revoke = [&["session", "revoke", id.as_str()][..], &bobs].concat();
    assert_eq!(admin.asks(&revoke).await, ended("1 session", "bob"));
    assert!(admin.is_refused(1, &revoke).await.contains("this session does not exist"));
    assert_eq!(signed_in().await, [false, true, true, true, true, true], "the first was the oldest");
    let all = [&["session", "revoke", "--all"][..], &bobs].concat();
    assert_eq!(admin.asks(&all).await, ended("2 sessions", "bob"));
    assert_eq!(admin.asks(&all).await, ended("0 sessions", "bob"));

    let id = id_in(&admin.asks(&["session", "list", "--json"]).await, 1);
    assert_eq!(admin.asks(&["session", "revoke", &id]).await, ended("1 session", USER));
    assert_eq!(admin.asks(&["session", "revoke", "--all"]).await, ended("1 session", USER));
    let left = [false, false, false, false, false, true];
    assert_eq!(signed_in().await, left);

    // Another organization of the member has a say in these.
    let eves = ["--user", "eve", "--org", ORG];
    for words in [&["session", "list"][..], &["session", "revoke", "--all"], &["session", "revoke", &id]] {
        let words = admin.is_refused(1, &[words, &eves].concat()).await;
        let why = "eve is also in another organization: only the operator sees and ends these sessions, with \
                   `statewright session revoke --user eve`";
        assert!(words.contains(why), "{words}");
    }
    assert_eq!(signed_in().await, left);
    let all = ["session", "revoke", "--all", "--user", "eve"];
    assert_eq!(stdout_of(app.folder(), &all).await, ended("1 session", "eve"));
}

#[tokio::test]
async fn an_admin_manages_tokens_at_a_server() {
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
    // What a server does not do for its users is said before it is asked.
    for (arguments, why) in [
        (&["token", "list", "--user", "bob"][..], "name the organization of the user"),
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
async fn a_time_ends_the_trail_before_it_at_a_server_too() {
    let app = TestApp::embedded_on_manual_clock().await;
    let admin = Admin::of(&app);
    let first = app.context.now();
    stack(&app, "web").await;
    app.advance(Duration::from_millis(1_500));
    let tag = json!({ "owner": "ops" });
    app.patch(&format!("/api/stacks/{ORG}/web/dev/tags"), &tag).send().await.expect(204);
    let after = |seconds: u64| first.plus(Duration::from_secs(seconds));
    for (option, at, found) in [
        ("--until", first, 0),
        ("--until", after(1), 1),
        ("--until", after(2), 2),
        ("--since", first, 2),
        ("--since", after(1), 1),
        ("--since", after(2), 0),
    ] {
        for at in [at.to_rfc3339(), at.seconds().to_string()] {
            let export = ["audit", "export", ORG, "--stack", "web/dev", option, at.as_str()];
            let lines = admin.agrees(&export).await;
            assert_eq!(lines.lines().count(), found, "{option} {at}: {lines}");
        }
    }
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
