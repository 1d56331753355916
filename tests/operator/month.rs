//! An organization for a month without its operator: after the first start there are only requests, and
//! commands with `--server`. Admins, members, a CI job and an auditor work in it, and two people at once.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join;
use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::adapters::SystemIds;
use statewright_shared::adapters::embedded::DataFolder;
use statewright_shared::domain::names::OrgName;
use statewright_shared::layout::{AuditRecord, Record as _};
use statewright_shared::ports::Order;
use statewright_shared::services::audit;
use statewright_shared::services::maintenance::{check, check_states, sweep};
use statewright_tests::app::{Answer, ORG, TestApp, USER};
use statewright_tests::commands::{Output, of_user, output};
use statewright_tests::issuer::{ISSUER, Issuer};
use statewright_tests::visitor::Visitor;
use tempfile::TempDir;

use crate::support::Run;

const MINUTE: Duration = Duration::from_secs(60);

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The lease of an update that its client renews no more.
const LEASE: Duration = Duration::from_secs(300);

/// The stack of the CI.
const WEB: &str = "/api/stacks/acme/web/dev";

const ENVIRONMENT: &str = "/api/esc/environments/acme/web/base";

/// A person on a machine without a store, with an access token.
struct Person<'a> {
    app: &'a TestApp,
    login: &'static str,
    token: String,
    home: TempDir,
}

impl<'a> Person<'a> {
    fn new(app: &'a TestApp, login: &'static str, token: String) -> Self {
        Self { app, login, token, home: tempfile::tempdir().unwrap() }
    }

    /// A command of this person.
    async fn runs(&self, arguments: &[&str]) -> Output {
        let mut command = of_user(self.app, self.home.path(), arguments);
        output(command.env("STATEWRIGHT_TOKEN", &self.token)).await
    }

    /// What a command prints if it succeeds.
    async fn does(&self, arguments: &[&str]) -> String {
        let output = self.runs(arguments).await;
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{}: {arguments:?}", self.login);
        output.stdout
    }

    /// The same for a command that opens a store unless it asks a server.
    async fn asks(&self, arguments: &[&str]) -> String {
        self.does(&[arguments, &["--server"]].concat()).await
    }

    /// Why the server refuses such a command.
    async fn is_refused(&self, arguments: &[&str]) -> String {
        let output = self.runs(&[arguments, &["--server"]].concat()).await;
        assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{}: {arguments:?}", self.login);
        output.stderr
    }

    async fn get(&self, path: &str) -> Answer {
        self.app.get(path).token(&self.token).send().await
    }

    /// A personal token that ends after this number of days, made with the one before.
    async fn makes_token(&self, name: &str, days: u32) -> String {
        let expires = self.app.context.now().plus(DAY * days).seconds();
        let new = json!({ "name": name, "expires": expires });
        let made = self.app.post("/api/user/tokens", &new).token(&self.token).send().await.expect(200);
        made["tokenValue"].as_str().unwrap().to_owned()
    }

    /// Invites a person, who uses the link in a browser, and makes a token there that ends after some days.
    async fn invites(&self, login: &'static str, role: &str, days: &str) -> (Person<'a>, Visitor) {
        let link = self.does(&["user", "invite", login, "--org", ORG, "--role", role]).await;
        let mut browser = redeem(self.app, login, &link).await;
        let page = browser.submit("/user/settings/tokens", &[("name", "laptop"), ("days", days)]).await;
        let secret = page.text.split("class=\"secret\">").nth(1);
        let secret = secret.unwrap_or_else(|| panic!("no token: {}", page.text));
        let token = secret.split('<').next().unwrap().to_owned();
        (Person::new(self.app, login, token), browser)
    }
}

/// Opens the link of an invitation in a new browser, and presses its button.
async fn redeem(app: &TestApp, login: &str, link: &str) -> Visitor {
    let path = link.trim().strip_prefix(app.url.as_str()).unwrap();
    let mut browser = Visitor::new(&app.url);
    let page = browser.open(path).await;
    let words = format!("This link signs you in as <strong>{login}</strong>");
    assert!(page.text.contains(&words), "{}", page.text);
    let code = path.strip_prefix("/invite?code=").unwrap();
    browser.submit("/invite", &[("code", code)]).await.leads("/user/settings/account");
    browser
}

/// The days of the month. On each, a job of the CI works, and at night the server does what is due.
struct Month<'a> {
    app: &'a TestApp,
    issuer: &'a Issuer,
    day: u64,
}

impl Month<'_> {
    /// Lets the days pass until this one.
    async fn reaches(&mut self, day: u64) {
        while self.day < day {
            self.job().await;
            // A server does both each minute.
            self.app.advance(MINUTE);
            audit::flush(&self.app.context, false).await.unwrap();
            self.app.advance(DAY - MINUTE);
            sweep_all(self.app).await;
            self.day += 1;
        }
    }

    /// The access token that the CI's own token for a job is exchanged for, as the action for GitHub does it.
    async fn token_of_job(&self) -> String {
        let (now, audience) = (self.app.context.now().seconds(), format!("urn:pulumi:org:{ORG}"));
        let claims = json!({
            "iss": ISSUER, "aud": audience, "sub": "job:deploy", "iat": now, "nbf": now, "exp": now + 300,
        });
        let request = json!({
            "audience": audience,
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
            "requested_token_type": "urn:pulumi:token-type:access_token:organization",
            "subject_token": self.issuer.token(&claims),
        });
        let given = self.app.post("/api/oauth/token", &request).anonymous().send().await.expect(200);
        given["access_token"].as_str().unwrap().to_owned()
    }

    /// Updates the stack `web/dev`, and writes the state `net`.
    async fn job(&self) {
        let token = self.token_of_job().await;
        let run = Run::begin_by(self.app, "web", &token).await;
        run.append(1, &format!("of-day-{}", self.day)).await.expect(204);
        run.complete().await.expect(204);
        let state = json!({
            "version": 4, "terraform_version": "1.12.6", "serial": self.day, "lineage": "l", "resources": [],
            "outputs": {}, "check_results": null,
        });
        let call = self.app.post(&format!("/tfstate/{ORG}/net"), &state);
        call.token(&token).send().await.expect(200);
    }
}

/// Sweeps until nothing is due.
async fn sweep_all(app: &TestApp) {
    loop {
        let swept = sweep::sweep(&app.context).await.unwrap();
        assert_eq!(swept.failed, 0, "{swept:?}");
        if !swept.more {
            return;
        }
    }
}

/// Day 1: an issuer with a policy, and a stack that a job makes. No secret is stored in the CI.
async fn the_ci_is_registered(alice: &Person<'_>, month: &Month<'_>) {
    alice.does(&["issuer", "add", ISSUER, "--name", "ci"]).await;
    let allow = ["issuer", "allow", ISSUER, "--rule", "sub=job:deploy", "--role", "apply"];
    let policies = alice.does(&allow).await;
    assert!(policies.contains("sub=job:deploy") && policies.contains("apply"), "{policies}");
    let token = month.token_of_job().await;
    let stack = json!({ "stackName": "dev" });
    let call = month.app.post(&format!("/api/stacks/{ORG}/web"), &stack);
    call.token(&token).send().await.expect(200);
}

/// Day 3: a team gets a role on a project, and its admin adds another member.
async fn a_team_gets_a_role(alice: &Person<'_>, bob: &Person<'_>) {
    alice.asks(&["team", "create", ORG, "ops", "--description", "who deploys"]).await;
    alice.asks(&["team", "member", "add", ORG, "ops", "bob", "--admin"]).await;
    alice.asks(&["org", "grant", "add", ORG, "team:ops", "web/*", "member"]).await;
    bob.asks(&["team", "member", "add", ORG, "ops", "cleo"]).await;
    for login in ["bob", "cleo"] {
        let why = alice.asks(&["why", login, "delete", &format!("{ORG}/web/dev")]).await;
        assert!(why.contains("team:ops"), "{why}");
    }
}

/// Day 4: an environment, and two people who edit it at once. The second reads again.
async fn two_people_edit_an_environment(bob: &Person<'_>, ann: &Person<'_>) {
    let app = bob.app;
    let new = json!({ "project": "web", "name": "base" });
    let made = app.post(&format!("/api/esc/environments/{ORG}"), &new).token(&bob.token).send().await;
    made.expect(204);
    let write = async |person: &Person<'_>, text: &str, etag: &str| {
        let call = app.request(Method::PATCH, ENVIRONMENT).raw(text.as_bytes().to_vec());
        call.token(&person.token).header("If-Match", etag).send().await
    };
    let etag = async |person: &Person<'_>| {
        let read = person.get(ENVIRONMENT).await;
        assert_eq!(read.status, 200, "{}", read.text());
        read.headers["etag"].to_str().unwrap().to_owned()
    };
    let (of_bob, of_ann) = join(etag(bob), etag(ann)).await;
    let texts = ["values: {region: eu}\n", "values: {region: us}\n"];
    let (one, other) = join(write(bob, texts[0], &of_bob), write(ann, texts[1], &of_ann)).await;
    let refused = match (one.status.as_u16(), other.status.as_u16()) {
        (200, 409) => ann,
        (409, 200) => bob,
        _ => panic!("{} {}", one.text(), other.text()),
    };
    let again = etag(refused).await;
    write(refused, "values: {region: eu, second: us}\n", &again).await.expect(200);
}

/// Day 6: a protection stops a member with all rights there, and no job.
async fn a_stack_is_protected(alice: &Person<'_>, bob: &Person<'_>) {
    alice.does(&["protect", "web/dev", "--kind", "stack", "--reason", "it is production"]).await;
    let refused = bob.app.request(Method::DELETE, WEB).token(&bob.token).send().await.refused(409);
    assert!(refused.contains("it is production"), "{refused}");
}

/// Day 8: it is lifted, and the token of a machine is rotated. Both secrets work for now.
async fn a_token_is_rotated(alice: &Person<'_>, first: &Person<'_>) -> String {
    alice.does(&["unprotect", "web/dev", "--kind", "stack"]).await;
    assert!(alice.get(WEB).await.expect(200).get("protection").is_none());
    let second = alice.asks(&["token", "rotate", "nightly", "--org", ORG, "--grace", "30h"]).await;
    let second = second.trim().to_owned();
    first.get(&format!("{WEB}/export")).await.expect(200);
    first.app.get(&format!("{WEB}/export")).token(&second).send().await.expect(200);
    second
}

/// Day 11: the organization limits the days of tokens. Those who have too many make another token.
async fn tokens_get_a_limit(alice: &mut Person<'_>, eve: &mut Person<'_>) {
    let set = ["org", "set", ORG, "--max-token-days", "85"];
    assert!(alice.is_refused(&set).await.contains("your own token has more than 85 days left"));
    let second = alice.makes_token("second", 80).await;
    let endless = std::mem::replace(&mut alice.token, second);
    alice.asks(&set).await;
    let stack = alice.app.get(WEB).token(&endless).send().await.refused(403);
    assert!(stack.contains("max access token expiry of `85` days"), "{stack}");
    let tail = ["audit", "tail", ORG];
    assert!(eve.is_refused(&tail).await.contains("max access token expiry"));
    eve.token = eve.makes_token("shorter", 60).await;
    eve.asks(&tail).await;
}

/// Day 13: a member forgot the password, and an admin makes a link for another.
async fn a_password_is_reset(alice: &Person<'_>, bob: &Person<'_>) {
    let app = alice.app;
    let form = |password: &'static str| [("login", "bob"), ("password", password)];
    let link = alice.does(&["user", "invite", "bob", "--org", ORG]).await;
    let mut browser = redeem(app, "bob", &link).await;
    let set = [("password", "correct horse battery"), ("again", "correct horse battery")];
    browser.submit("/user/settings/password", &set).await.leads("/user/settings/account");
    let mut another = Visitor::new(&app.url);
    another.submit("/signin", &form("correct horse battery")).await.leads("/user/settings/account");
    assert_eq!(another.user().await.as_deref(), Some("bob"));
    Visitor::new(&app.url).submit("/signin", &form("the forgotten password")).await.refuses(401);
    // Role and token stay.
    bob.get(&format!("{WEB}/export")).await.expect(200);
}

/// Day 20: a member is removed whose update runs. It ends with its lease, and what it saved is kept.
async fn a_member_leaves_during_an_update(alice: &Person<'_>, cleo: &Person<'_>) {
    let app = alice.app;
    let stack = json!({ "stackName": "dev" });
    let made = app.post(&format!("/api/stacks/{ORG}/shop"), &stack).token(&cleo.token).send().await;
    made.expect(200);
    let run = Run::begin_by(app, "shop", &cleo.token).await;
    run.append(1, "half").await.expect(204);
    let removed = alice.asks(&["org", "member", "remove", ORG, "cleo"]).await;
    assert!(removed.starts_with(&format!("cleo is no longer a member of {ORG}")), "{removed}");
    app.advance(MINUTE + Duration::from_secs(1));
    let refused = run.renewal().await.refused(403);
    assert!(refused.contains(&format!("cleo is no longer a member of {ORG}")), "{refused}");
    let shop = format!("/api/stacks/{ORG}/shop/dev");
    cleo.get(&shop).await.refused(404);
    app.advance(LEASE + sweep::GRACE);
    sweep_all(app).await;
    let updates = alice.get(&format!("{shop}/updates")).await.expect(200);
    assert_eq!(updates["updates"][0]["result"], "failed", "{updates}");
    let export = alice.get(&format!("{shop}/export")).await.expect(200);
    assert_eq!(export["deployment"]["resources"][0]["id"], "id-half", "{export}");
}

/// Exports the teams and grants, adds a grant, and stores the document in a file.
async fn edits_access(person: &Person<'_>, on: &str) -> String {
    let exported = person.asks(&["org", "access", "export", ORG]).await;
    let mut document: Value = serde_json::from_str(&exported).unwrap();
    let grant = json!({ "to": "user:bob", "on": on, "role": "plan" });
    document["grants"].as_array_mut().unwrap().push(grant);
    let file = person.home.path().join("access.json");
    fs::write(&file, document.to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Day 25: two admins apply documents of one version at once. One is refused, and begins again.
async fn two_admins_apply_documents(alice: &Person<'_>, ann: &Person<'_>) {
    let files = [edits_access(alice, "net/*").await, edits_access(ann, "shop/*").await];
    let apply = |file: usize| ["org", "access", "apply", ORG, files[file].as_str(), "--server"];
    let (of_alice, of_ann) = (apply(0), apply(1));
    let (one, other) = join(alice.runs(&of_alice), ann.runs(&of_ann)).await;
    let (refused, person, on) = match (one.code, other.code) {
        (Some(0), Some(1)) => (other, ann, "shop/*"),
        (Some(1), Some(0)) => (one, alice, "net/*"),
        _ => panic!("{one:?} {other:?}"),
    };
    assert!(refused.stderr.contains("export them again"), "{refused:?}");
    let file = edits_access(person, on).await;
    person.asks(&["org", "access", "apply", ORG, &file]).await;
    let grants = alice.asks(&["org", "grant", "list", ORG]).await;
    for on in ["net/*", "shop/*", "web/*"] {
        assert!(grants.contains(on), "{grants}");
    }
}

/// Day 30: two admins remove each other at once. One is left, and makes the other an admin again. Returns
/// their logins, first the one who was left.
async fn two_admins_remove_each_other(alice: &Person<'_>, ann: &Person<'_>) -> [&'static str; 2] {
    let remove = |login: &'static str| ["org", "member", "remove", ORG, login, "--server"];
    let (of_alice, of_ann) = (remove(ann.login), remove(alice.login));
    let (one, other) = join(alice.runs(&of_alice), ann.runs(&of_ann)).await;
    let [left, gone] = match (one.code, other.code) {
        (Some(0), Some(1)) => [alice, ann],
        (Some(1), Some(0)) => [ann, alice],
        _ => panic!("{one:?} {other:?}"),
    };
    alice.app.advance(MINUTE + Duration::from_secs(1));
    let listed = left.asks(&["org", "member", "list", ORG, "--json"]).await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let admins: Vec<_> =
        listed["members"].as_array().unwrap().iter().filter(|member| member["role"] == "admin").collect();
    assert_eq!(admins, [&json!({ "user": left.login, "role": "admin" })]);
    gone.get(WEB).await.refused(404);
    left.asks(&["org", "member", "add", ORG, gone.login, "--role", "admin"]).await;
    alice.app.advance(MINUTE + Duration::from_secs(1));
    gone.get(WEB).await.expect(200);
    [left.login, gone.login]
}

/// The auditor changes nothing, and reads nothing but the trail, names and states without their values.
async fn the_auditor_does_nothing_else(eve: &Person<'_>) {
    for arguments in [
        &["org", "member", "role", ORG, "bob", "admin"][..],
        &["org", "access", "export", ORG],
        &["org", "set", ORG, "--max-token-days", "none"],
        &["team", "create", ORG, "mine"],
        &["token", "list", "--org", ORG],
    ] {
        let refused = eve.is_refused(arguments).await;
        assert!(refused.contains("the role admin"), "{arguments:?}: {refused}");
    }
    let (stacks, org) = (format!("/api/stacks/{ORG}"), format!("/api/orgs/{ORG}"));
    let begin = json!({ "updateKind": "update", "program": {}, "journalVersion": 2 });
    let nothing = Value::Null;
    for (method, path, body) in [
        (Method::GET, format!("{WEB}/export"), nothing.clone()),
        (Method::GET, format!("/tfstate/{ORG}/net"), nothing.clone()),
        (Method::GET, format!("{org}/oidc/issuers"), nothing.clone()),
        (Method::POST, format!("{stacks}/mine"), json!({ "stackName": "dev" })),
        (Method::POST, format!("{WEB}/begin-update"), begin),
        (Method::POST, format!("{ENVIRONMENT}/open"), nothing.clone()),
        (Method::PATCH, ENVIRONMENT.to_owned(), json!({})),
        (Method::PUT, format!("{WEB}/protection"), json!({ "reason": "mine" })),
        (Method::DELETE, WEB.to_owned(), nothing.clone()),
        (Method::POST, format!("{org}/members/mallory/invitation"), json!({ "role": "admin" })),
        (Method::POST, format!("{org}/tokens"), json!({ "name": "mine" })),
        (Method::PUT, format!("{org}/access"), json!({ "teams": {}, "grants": [] })),
    ] {
        let call = eve.app.request(method.clone(), &path).token(&eve.token);
        let call = if body.is_null() { call } else { call.json(&body) };
        let answer = call.send().await;
        assert_eq!(answer.status, 403, "{method} {path}: {}", answer.text());
    }
}

/// The trail of the organization, as the auditor exports it.
async fn trail(eve: &Person<'_>) -> Vec<Value> {
    let exported = eve.asks(&["audit", "export", ORG]).await;
    exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Actions of the month, and who did them.
const DONE: &[(&str, &str)] = &[
    ("user.invite", USER),
    ("session.begin", "ann"),
    ("session.begin", "bob"),
    ("session.begin", "eve"),
    ("token.create", "ann"),
    ("token.create", "eve"),
    ("token.create", USER),
    ("token.rotate", USER),
    ("password.set", "bob"),
    ("issuer.create", USER),
    ("issuer.policies", USER),
    ("token.exchange", ORG),
    ("stack.create", ORG),
    ("stack.create", "cleo"),
    ("update.begin", ORG),
    ("update.begin", "cleo"),
    ("update.end", ORG),
    ("state.write", ORG),
    ("team.create", USER),
    ("team.edit", USER),
    ("team.edit", "bob"),
    ("grant.add", USER),
    ("environment.create", "bob"),
    ("environment.edit", "bob"),
    ("environment.edit", "ann"),
    ("stack.protect", USER),
    ("stack.unprotect", USER),
    ("organization.edit", USER),
    ("member.remove", USER),
    ("access.apply", USER),
    ("access.apply", "ann"),
    ("audit.read", "eve"),
];

/// Nothing in the trails was done by the operator, and all that people did has their names.
async fn the_trail_is_complete(app: &TestApp, eve: &Person<'_>, [left, gone]: [&'static str; 2]) {
    let trail = trail(eve).await;
    let is = |line: &Value, action: &str, user: &str, result: &str| {
        line["action"] == action && line["user"] == user && line["result"] == result
    };
    let last = [("member.remove", left), ("member.add", left)];
    for (action, user) in DONE.iter().copied().chain(last) {
        assert!(trail.iter().any(|line| is(line, action, user, "done")), "{user} did {action}");
    }
    // Each was refused once.
    for (action, user) in [("stack.delete", "bob"), ("member.role", "eve"), ("team.create", "eve")] {
        assert!(trail.iter().any(|line| is(line, action, user, "refused")), "{user} was refused {action}");
    }
    let added = format!("{gone} as admin");
    let is_added = |line: &Value| is(line, "member.add", left, "done") && line["detail"] == added.as_str();
    assert!(trail.iter().any(is_added), "{left} added {gone}");
    let count = |action: &str, user: &str| trail.iter().filter(|line| is(line, action, user, "done")).count();
    assert_eq!((count("update.end", ORG), count("state.write", ORG)), (31, 31));
    assert_eq!(count("token.exchange", ORG), 32, "one more made the stack");
    for line in trail.iter().filter(|line| line["user"].is_null()) {
        let detail = line["detail"].as_str().unwrap_or_default();
        assert!(line["action"] == "update.end" && detail.contains("begun by cleo"), "{line}");
    }
    let org = OrgName::parse(ORG).unwrap();
    for of in [None, Some(&org)] {
        let query = AuditRecord::of_trail(of).query(None, Order::Ascending, 1_000);
        let page = app.context.ledger.query(&query).await.unwrap();
        assert!(!page.items.is_empty() && !page.more, "{of:?}");
        for item in &page.items {
            let record = AuditRecord::decode(&item.value).unwrap();
            assert_ne!(record.action, "command", "{record:?}");
        }
    }
}

/// What the operator's `check` would find.
async fn problems(app: &TestApp) -> Vec<String> {
    let ctx = &app.context;
    let data = DataFolder::open_beside(app.folder(), Arc::new(SystemIds)).await.unwrap();
    let mut problems = check::store(ctx, &data).await.unwrap();
    let stacks = check::stacks(ctx, &data).await.unwrap();
    let states = check_states::states(ctx, &data).await.unwrap();
    assert_eq!((stacks.len(), states.len()), (2, 1));
    for id in stacks {
        problems.extend(check::stack(ctx, id).await.unwrap().problems);
    }
    for id in states {
        problems.extend(check_states::state(ctx, id).await.unwrap().problems);
    }
    problems
}

#[tokio::test]
async fn an_org_runs_a_month_without_the_operator() {
    let issuer = Issuer::new(ISSUER);
    let app = TestApp::embedded_on_manual_clock_asking(Arc::<Issuer>::clone(&issuer)).await;
    let mut month = Month { app: &app, issuer: &issuer, day: 1 };
    let mut alice = Person::new(&app, USER, app.token.clone());

    let (ann, _) = alice.invites("ann", "admin", "90").await;
    let (bob, mut browser) = alice.invites("bob", "apply", "90").await;
    let set = [("password", "the forgotten password"), ("again", "the forgotten password")];
    browser.submit("/user/settings/password", &set).await.leads("/user/settings/account");
    let (cleo, _) = alice.invites("cleo", "apply", "90").await;
    let (mut eve, _) = alice.invites("eve", "auditor", "365").await;
    the_ci_is_registered(&alice, &month).await;
    month.reaches(3).await;
    a_team_gets_a_role(&alice, &bob).await;
    month.reaches(4).await;
    two_people_edit_an_environment(&bob, &ann).await;
    month.reaches(6).await;
    a_stack_is_protected(&alice, &bob).await;
    let nightly = alice.asks(&["token", "create", "nightly", "--org", ORG, "--may", "plan"]).await;
    let first = Person::new(&app, ORG, nightly.trim().to_owned());
    month.reaches(8).await;
    let second = a_token_is_rotated(&alice, &first).await;
    month.reaches(9).await;
    first.get(&format!("{WEB}/export")).await.expect(200);
    month.reaches(10).await;
    first.get(&format!("{WEB}/export")).await.refused(401);
    app.get(&format!("{WEB}/export")).token(&second).send().await.expect(200);
    month.reaches(11).await;
    tokens_get_a_limit(&mut alice, &mut eve).await;
    app.get(&format!("{WEB}/export")).token(&second).send().await.refused(403);
    month.reaches(13).await;
    a_password_is_reset(&alice, &bob).await;
    month.reaches(20).await;
    a_member_leaves_during_an_update(&alice, &cleo).await;
    month.reaches(25).await;
    two_admins_apply_documents(&alice, &ann).await;
    month.reaches(30).await;
    let left_and_gone = two_admins_remove_each_other(&alice, &ann).await;
    month.reaches(32).await;

    eve.asks(&["audit", "tail", ORG]).await;
    the_auditor_does_nothing_else(&eve).await;
    the_trail_is_complete(&app, &eve, left_and_gone).await;
    assert_eq!(problems(&app).await, [""; 0]);
}
