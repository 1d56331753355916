//! I10 cheap: the calls of each row of the function `account`, of a warm process and of a cold one. None of them grows
//! with the number of members, tokens or teams. And each action among these rows has one audit record.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use statewright_shared::adapters::Counter;
use statewright_shared::api::routes::{Auth, Group, ROUTES, Route};
use statewright_shared::domain::names::{Login, OrgName, TokenName};
use statewright_shared::domain::role::Role;
use statewright_shared::domain::sign_in::SignInRule;
use statewright_shared::layout::SignedInBy;
use statewright_shared::services::audit;
use statewright_shared::services::identity::tokens::{NewToken, Owner};
use statewright_shared::services::identity::{invitations, passwords, providers, sessions, tokens};
use statewright_tests::app::{Answer, ORG, START, TestApp, USER};
use statewright_tests::fake_provider::{CLIENT_SECRET, FakeProvider};
use statewright_tests::issuer::Issuer;
use statewright_tests::visitor::{Shown, Visitor};

use crate::api::call_counts::{counted, describe_calls};
use crate::world::Stack;

const PASSWORD: &str = "correct horse battery";

/// The calls of each row, by its operation.
type Costs = BTreeMap<&'static str, String>;

fn row(operation: &str) -> &'static Route {
    let mut rows = ROUTES.iter().filter(|row| row.group == Group::Account);
    rows.find(|row| row.operation == operation).unwrap_or_else(|| panic!("no row {operation}"))
}

/// The audit log has one record of an action, with who did it and where, and none of any other request.
#[track_caller]
fn check_audit(app: &TestApp, row: &Route, status: u16, by: Option<&str>) {
    let (records, what) = (app.take_audit(), row.operation);
    let Some(action) = row.action else {
        assert_eq!(records, [Value::Null; 0], "{what}");
        return;
    };
    let [record] = &records[..] else { panic!("not one record of {what}: {records:?}") };
    let result = if status < 400 { "done" } else { "refused" };
    assert_eq!((&record["action"], &record["result"]), (&json!(action), &json!(result)), "{record}");
    assert_eq!(record["status"], status, "{record}");
    assert_eq!(record["user"].as_str(), by, "{what}: {record}");
    let token = record["token"].as_str();
    match row.auth {
        _ if by.is_none() => assert_eq!(token, None, "{what}: {record}"),
        Auth::Exchange => assert!(token.is_some_and(|name| name.starts_with("oidc-")), "{what}: {record}"),
        Auth::Page | Auth::Session => assert_eq!(token, Some("browser"), "{what}: {record}"),
        _ => assert_eq!(token, Some("first-start"), "{what}: {record}"),
    }
    let is_of_org =
        row.path.contains("{org}") || row.auth == Auth::Exchange || action.starts_with("consent.");
    assert!(!is_of_org || record["organization"] == ORG, "{what}: {record}");
}

/// Each row once.
struct Pass<'a> {
    app: &'a TestApp,
    counter: &'a Counter,
    /// Whether each request is the first of its process.
    is_cold: bool,
    /// A part of the names that this pass makes.
    tail: String,
    /// The parts of paths.
    names: BTreeMap<&'static str, String>,
    costs: Costs,
}

impl<'a> Pass<'a> {
    fn new(app: &'a TestApp, counter: &'a Counter, stack: &Stack<'_>, tail: &str, is_cold: bool) -> Self {
        let member = format!("member-{tail}");
        let names = [
            ("{org}", ORG),
            ("{project}", stack.project.as_str()),
            ("{stack}", "dev"),
            ("{user}", member.as_str()),
            ("{provider}", "corp"),
            ("{role}", "view"),
        ];
        let names = names.into_iter().map(|(name, value)| (name, value.to_owned())).collect();
        Self { app, counter, is_cold, tail: tail.to_owned(), names, costs: Costs::new() }
    }

    /// A name that no other pass has.
    fn named(&self, what: &str) -> String {
        format!("{what}-{}", self.tail)
    }

    fn keep(&mut self, name: &'static str, value: &Value) {
        self.names.insert(name, value.as_str().unwrap_or_else(|| panic!("{name}: {value}")).to_owned());
    }

    fn path(&self, row: &Route) -> String {
        self.names.iter().fold(row.path.to_owned(), |path, (name, value)| path.replace(name, value))
    }

    async fn process(&self) -> Option<TestApp> {
        match self.is_cold {
            true => Some(self.app.another_process("cold").await),
            false => None,
        }
    }

    fn note(&mut self, operation: &'static str) {
        let before = self.costs.insert(operation, describe_calls(self.counter.take()));
        assert_eq!(before, None, "{operation} was asked for twice");
    }

    /// A request with the token of an admin, or without one where the row takes none.
    async fn ask(&mut self, operation: &'static str, query: &str, body: &Value) -> Answer {
        let (row, cold) = (row(operation), self.process().await);
        let app = cold.as_ref().unwrap_or(self.app);
        let call = app.request(row.method.clone(), &format!("{}{query}", self.path(row)));
        let call = if row.auth == Auth::Exchange { call.anonymous() } else { call };
        let call = if body.is_null() { call } else { call.json(body) };
        if cold.is_none() {
            // A change forgets what the process knew of teams and grants.
            app.get(&format!("/api/orgs/{ORG}")).send().await.expect(200);
        }
        app.take_audit();
        self.counter.take();
        let answer = call.send().await;
        self.note(operation);
        let by = if row.auth == Auth::Exchange { ORG } else { USER };
        check_audit(app, row, answer.status.as_u16(), Some(by));
        answer
    }

    /// The same, which is not refused.
    async fn done(&mut self, operation: &'static str, body: &Value) -> Value {
        self.done_with(operation, "", body).await
    }

    async fn done_with(&mut self, operation: &'static str, query: &str, body: &Value) -> Value {
        let answer = self.ask(operation, query, body).await;
        assert!(answer.status.is_success(), "{operation}: {} {}", answer.status, answer.text());
        serde_json::from_slice(&answer.bytes).unwrap_or_default()
    }

    /// A request of a browser.
    async fn page(
        &mut self,
        operation: &'static str,
        query: &str,
        form: Option<&[(&str, &str)]>,
        visitor: &mut Visitor,
    ) -> Shown {
        let (row, cold) = (row(operation), self.process().await);
        let (method, path) = (row.method.clone(), format!("{}{query}", self.path(row)));
        let app = cold.as_ref().unwrap_or(self.app);
        app.take_audit();
        self.counter.take();
        let shown = match &cold {
            None => visitor.send(method, &path, "same-origin", form).await,
            Some(cold) => {
                let mut other = Visitor::new(&cold.url);
                other.cookies.clone_from(&visitor.cookies);
                let shown = other.send(method, &path, "same-origin", form).await;
                visitor.cookies.clone_from(&other.cookies);
                shown
            }
        };
        let by = match operation {
            // The session is over, and the record does not say whose it was.
            "SignOut" => None,
            "SignInWithProvider" => Some(self.named("bob")),
            _ => Some(USER.to_owned()),
        };
        check_audit(app, row, shown.status.as_u16(), by.as_deref());
        self.note(operation);
        assert!(shown.status.as_u16() < 400, "{operation}: {} {}", shown.status, shown.text);
        shown
    }

    async fn machines(&mut self) {
        let url = format!("https://ci-{}.example.com", self.tail);
        let issuer = Issuer::new(&url);
        let new = json!({ "name": "ci", "url": url, "jwks": issuer.key_set() });
        let registered = self.done("RegisterOidcIssuer", &new).await;
        self.keep("{issuer}", &registered["id"]);
        self.keep("{policy}", &registered["id"]);
        self.done("List_orgs_oidc_issuers", &Value::Null).await;
        self.done("GetOidcIssuer", &Value::Null).await;
        self.done("UpdateOidcIssuer", &json!({ "name": "CI" })).await;
        self.ask("RegenerateThumbprints", "", &json!({})).await.refused(400);
        let policy = json!({
            "decision": "allow", "tokenType": "organization", "authorizedPermissions": [],
            "rules": { "sub": "job:*" },
        });
        self.done("UpdateAuthPolicy", &json!({ "policies": [policy] })).await;
        self.done("GetAuthPolicy", &Value::Null).await;
        let (audience, now) = (format!("urn:pulumi:org:{ORG}"), self.app.context.now().seconds());
        let claims = json!({ "iss": url, "aud": audience, "sub": "job:a", "iat": now, "exp": now + 300 });
        let exchange = json!({
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "audience": audience,
            "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
            "subject_token": issuer.token(&claims),
            "requested_token_type": "urn:pulumi:token-type:access_token:organization",
        });
        self.done("Token", &exchange).await;
        self.done("GiveOidcConsent", &json!({ "organization": ORG, "issuer": url })).await;
        self.done("ListOidcConsents", &Value::Null).await;
        self.done("WithdrawOidcConsent", &Value::Null).await;
        self.done("DeleteOidcIssuer", &Value::Null).await;
    }

    /// The tokens of one owner, by the rows for them.
    async fn tokens(&mut self, rows: [&'static str; 4], name: &str) {
        let [create, list, rotate, delete] = rows;
        let new = json!({ "name": self.named(name), "description": "", "expires": 0 });
        let made = self.done(create, &new).await;
        self.keep("{token}", &made["id"]);
        self.done(list, &Value::Null).await;
        let rotated = self.done(rotate, &json!({})).await;
        self.keep("{token}", &rotated["id"]);
        self.done(delete, &Value::Null).await;
    }

    async fn members_and_teams(&mut self) {
        let member = self.names["{user}"].clone();
        self.app.other_user(&member, &format!("of-{member}")).await;
        self.done("AddOrganizationMember", &json!({ "role": "admin" })).await;
        self.done("UpdateOrganizationMember", &json!({ "role": "member" })).await;
        let invited = self.named("invited");
        self.names.insert("{user}", invited);
        self.done("InviteOrganizationMember", &json!({ "role": "plan" })).await;
        self.names.insert("{user}", member.clone());
        let login = Login::parse(&member).unwrap();
        let new = NewToken {
            org: OrgName::parse(ORG).ok(),
            ..NewToken::new(Owner::User(login), TokenName::parse("only-here").unwrap())
        };
        let issued = tokens::issue(&self.app.context, new).await.unwrap();
        self.names.insert("{token}", issued.entry.id().to_owned());
        self.done("ListMemberTokens", &Value::Null).await;
        self.done("DeleteMemberToken", &Value::Null).await;

        let team = self.named("team");
        let new = json!({ "name": team, "displayName": "", "description": "", "teamType": "pulumi" });
        self.done("CreatePulumiTeam", &new).await;
        self.names.insert("{team}", team.clone());
        let of_team = ["CreateTeamToken", "ListTeamTokens", "RotateTeamToken", "DeleteTeamToken"];
        self.tokens(of_team, "of-team").await;
        self.done("ListTeams", &Value::Null).await;
        self.done("GetTeam", &Value::Null).await;
        self.done("UpdateTeam", &json!({ "memberAction": "add", "member": member })).await;
        self.done("GetOrganizationMemberTeams", &Value::Null).await;
        self.done("UpdateTeamRoles", &Value::Null).await;
        self.done("ListTeamRoles", &Value::Null).await;
        self.done("DeleteTeamRole", &Value::Null).await;
        self.done("ListRolesByOrgIDAndUXPurpose", &Value::Null).await;
        self.ask("CreateRole", "", &json!({})).await.refused(400);
        self.done("GetRole", &Value::Null).await;
        self.done("ListUsersWithRole", &Value::Null).await;
        let to = format!("user:{member}");
        self.done("AddGrant", &json!({ "to": to, "on": "web/*", "role": "apply" })).await;
        self.done("ListGrants", &Value::Null).await;
        self.done_with("RemoveGrant", &format!("?to={to}&on=web/*&role=apply"), &Value::Null).await;
        let mut access = self.done("ExportAccess", &Value::Null).await;
        let more = json!({ "to": format!("team:{team}"), "on": "web/*", "role": "view" });
        access["grants"].as_array_mut().unwrap().push(more);
        self.done("ApplyAccess", &access).await;
        self.done("ExplainStackAccess", &Value::Null).await;
        self.done("ListStackTeams", &Value::Null).await;
        self.done("ListStackPermissions", &Value::Null).await;
        self.done("UpdateTeamStackPermissions", &json!({ "permissions": 101 })).await;
        self.done("ListMemberStackPermissions", &Value::Null).await;
        self.done("DeleteTeam", &Value::Null).await;
        self.done("DeleteOrganizationMember", &Value::Null).await;
        self.done("GetOrganization", &Value::Null).await;
        self.done("GetOwnRights", &Value::Null).await;
        self.done("UpdateOrganizationSettings", &json!({ "setMaxAccessTokenExpiryDays": 0 })).await;
    }

    /// Sessions of a member who is in no other organization, and one's own.
    async fn sessions(&mut self) {
        let guest = self.named("guest");
        self.app.member(&guest, "laptop").await;
        let member = self.names.insert("{user}", guest.clone()).unwrap();
        for user in [guest.as_str(), guest.as_str(), USER] {
            let login = Login::parse(user).unwrap();
            sessions::begin(&self.app.context, &login, SignedInBy::Password, "Firefox").await.unwrap();
        }
        let listed = self.done("ListMemberSessions", &Value::Null).await;
        self.keep("{browser}", &listed["sessions"][0]["id"]);
        self.done("EndMemberSession", &Value::Null).await;
        self.done("EndMemberSessions", &Value::Null).await;
        let listed = self.done("ListSessions", &Value::Null).await;
        self.keep("{browser}", &listed["sessions"][0]["id"]);
        self.done("EndSession", &Value::Null).await;
        self.names.insert("{user}", member);
    }

    async fn trail(&mut self) {
        for version in ["V1", "V2"] {
            let (list, export) = match version {
                "V1" => ("ListAuditLogEventsHandlerV1", "ExportAuditLogEventsHandlerV1"),
                _ => ("ListAuditLogEventsHandlerV2", "ExportAuditLogEventsHandlerV2"),
            };
            // A filter that no record matches reads the trail to its end, in one query.
            self.done_with(list, "?userFilter=no-user", &Value::Null).await;
            self.done_with(export, "?userFilter=no-user", &Value::Null).await;
        }
        self.done("ListAuditLogEventTypes", &Value::Null).await;
    }

    async fn people(&mut self, provider: &FakeProvider) {
        let ctx = Arc::clone(&self.app.context);
        let login = Login::parse(USER).unwrap();
        passwords::set(&ctx, &login, PASSWORD).await.unwrap();
        let invited = invitations::invite(&ctx, &login, Duration::from_secs(600)).await.unwrap();
        let mut alice = Visitor::new(&self.app.url);
        self.page("InvitationPage", &format!("?code={}", invited.code), None, &mut alice).await;
        self.page("SignInWithInvitation", "", Some(&[("code", invited.code.as_str())]), &mut alice).await;
        // Into the cache of a warm process.
        alice.open("/signout").await;
        self.page("AccountPage", "", None, &mut alice).await;
        self.page("TokensPage", "", None, &mut alice).await;
        let name = self.named("page");
        self.page("MakeOwnToken", "", Some(&[("name", name.as_str()), ("days", "7")]), &mut alice).await;
        self.page("RevokeOwnToken", "", Some(&[("name", name.as_str())]), &mut alice).await;
        self.page("LinkAccount", "", None, &mut alice).await;
        let nonce = "0a".repeat(32);
        let parameters = format!("?cliSessionPort=43210&cliSessionNonce={nonce}");
        self.page("CliLoginPage", &parameters, None, &mut alice).await;
        let form = [("cliSessionPort", "43210"), ("cliSessionNonce", nonce.as_str()), ("days", "7")];
        self.page("CliLogin", "", Some(&form), &mut alice).await;
        self.page("CliWelcomePage", "", None, &mut alice).await;
        // RFC 7636, appendix B.
        let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
        let asked = format!("?code_challenge={challenge}&code_challenge_method=S256");
        self.page("AuthorizePage", &asked, None, &mut alice).await;
        let form =
            [("code_challenge", challenge), ("days", "7"), ("port", "43210"), ("state", nonce.as_str())];
        self.page("AuthorizeLogin", "", Some(&form), &mut alice).await;
        self.page("ShowLoginCode", "", Some(&form), &mut alice).await;

        let mut other = Visitor::new(&self.app.url);
        self.page("SignInPage", "", None, &mut other).await;
        self.page("SignInAgain", "", None, &mut other).await;
        let form = [("login", USER), ("password", PASSWORD)];
        self.page("SignInWithPassword", "", Some(&form), &mut other).await;
        let page = other.open("/user/settings/account").await;
        let id =
            page.text.split("name=\"id\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
        self.page("EndOwnSession", "", Some(&[("id", id.as_str())]), &mut other).await;
        let set = [("password", PASSWORD), ("again", PASSWORD)];
        self.page("SetOwnPassword", "", Some(&set), &mut other).await;
        self.page("SignOutPage", "", None, &mut other).await;
        self.page("SignOut", "", Some(&[]), &mut other).await;

        // Another process has another address than the provider knows.
        let mut bob = Visitor::new(&self.app.url);
        let led = self.page("SignInAtProvider", "?led=yes", None, &mut bob).await;
        let query = provider.sign_in(&led.leads_to, &self.named("bob"));
        self.page("SignInWithProvider", &format!("?{query}"), None, &mut bob).await;
    }
}

/// Each row once, by a process that knows what it can or by processes that know nothing.
async fn costs(
    app: &TestApp,
    counter: &Counter,
    provider: &FakeProvider,
    tail: &str,
    is_cold: bool,
) -> Costs {
    // The audit trail sums up looks and refusals of a minute.
    app.advance(Duration::from_secs(61));
    audit::flush(&app.context, false).await.unwrap();
    provider.shows(app.context.now().seconds());
    let stack = Stack::new(app).await;
    if !is_cold {
        app.get(&stack.path).send().await.expect(200);
    }
    let mut pass = Pass::new(app, counter, &stack, tail, is_cold);
    pass.machines().await;
    let own = ["CreatePersonalToken", "ListPersonalTokens", "RotatePersonalToken", "DeletePersonalToken"];
    pass.tokens(own, "own").await;
    pass.tokens(["CreateOrgToken", "ListOrgTokens", "RotateOrgToken", "DeleteOrgToken"], "of-org").await;
    Box::pin(pass.members_and_teams()).await;
    Box::pin(pass.sessions()).await;
    pass.trail().await;
    Box::pin(pass.people(provider)).await;
    let counted: BTreeSet<&str> = pass.costs.keys().copied().collect();
    let rows = ROUTES.iter().filter(|row| row.group == Group::Account).map(|row| row.operation);
    assert_eq!(counted, rows.collect::<BTreeSet<&str>>(), "each row is asked for");
    pass.costs
}

async fn add_provider(app: &TestApp) -> FakeProvider {
    let provider = FakeProvider::start(START.seconds()).await;
    let org = OrgName::parse(ORG).unwrap();
    let rule = SignInRule { group: "dev".to_owned(), org, role: Role::Apply, team: None };
    let added = provider.registration(&app.url, vec![rule], START);
    providers::add(&app.context, added, Some(CLIENT_SECRET)).await.unwrap();
    provider
}

#[tokio::test]
async fn i10_cheap_each_row_of_account_costs_these_calls() {
    let (app, counter) = counted().await;
    let provider = add_provider(&app).await;
    // Fills the caches, and brings the due item of the day.
    costs(&app, &counter, &provider, "first", false).await;
    let warm = costs(&app, &counter, &provider, "warm", false).await;
    let cold = costs(&app, &counter, &provider, "cold", true).await;
    let mut table = String::new();
    for (operation, calls) in &warm {
        writeln!(table, "{operation:32} {calls:44} {}", cold[operation]).unwrap();
    }
    insta::assert_snapshot!("calls_of_account", table);

    for number in 0..40 {
        let member = app.member(&format!("more-{number}"), "laptop").await;
        let name = format!("more-{number}");
        app.post("/api/user/tokens", &json!({ "name": name, "expires": 0 })).send().await.expect(200);
        let of_org = json!({ "name": name, "description": "", "expires": 0 });
        app.post(&format!("/api/orgs/{ORG}/tokens"), &of_org).send().await.expect(200);
        let team = json!({ "name": name, "displayName": "", "description": "", "teamType": "pulumi" });
        app.post(&format!("/api/orgs/{ORG}/teams/pulumi"), &team).send().await.expect(201);
        app.get("/api/user").token(&member).send().await.expect(200);
    }
    let more = costs(&app, &counter, &provider, "more", false).await;
    for (operation, calls) in &more {
        assert_eq!(calls, &warm[operation], "{operation} costs more with more members, tokens and teams");
    }
}
