//! The function `account`: machines and people get in, and what it changes takes effect on the other functions.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use statewright_gateway::Between;
use statewright_shared::adapters::SystemClock;
use statewright_shared::domain::oidc::aws::{PROOF_TYPE, Proof};
use statewright_shared::domain::role::Role;
use statewright_shared::ports::Clock as _;
use statewright_tests::app::{Answer, Backend, ORG, TestApp};
use statewright_tests::cli::PulumiCli;
use statewright_tests::fake_provider::{Behavior, CLIENT_ID, CLIENT_SECRET, FakeProvider};
use statewright_tests::functions::Setting;
use statewright_tests::https_server::Authority;
use statewright_tests::issuer::{Issuer, Served};
use statewright_tests::sign_ins;
use statewright_tests::sts::{AWS, DEPLOY, ServedSts, prove};
use statewright_tests::visitor::Visitor;

use crate::states::text;

/// The claims of a job of this issuer.
pub(crate) fn claims(issuer: &Issuer) -> Value {
    let now = SystemClock.now().seconds();
    let audience = format!("urn:pulumi:org:{ORG}");
    json!({ "iss": issuer.url, "aud": audience, "sub": "job:deploy", "iat": now, "exp": now + 300 })
}

/// The body of an exchange of this token for one of the organization.
pub(crate) fn exchange(token: &str) -> Value {
    json!({
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "audience": format!("urn:pulumi:org:{ORG}"),
        "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
        "subject_token": token,
        "requested_token_type": "urn:pulumi:token-type:access_token:organization",
    })
}

/// A policy list that gives tokens of the organization to these jobs.
pub(crate) fn policies() -> Value {
    json!({ "policies": [{
        "decision": "allow", "tokenType": "organization", "authorizedPermissions": [], "rules": { "sub": "job:*" },
    }] })
}

/// The address that clients know, which principals of AWS sign.
pub(crate) const ADDRESS: &str = "https://state.example.com";

/// The variables of functions at [`ADDRESS`] that reach AWS STS on this machine.
pub(crate) fn of_sts(authority: &Authority, sts: &ServedSts) -> Vec<(&'static str, String)> {
    vec![
        ("SSL_CERT_FILE", authority.file.to_str().unwrap().to_owned()),
        ("STATEWRIGHT_STS_ENDPOINT", sts.endpoint.clone()),
        ("STATEWRIGHT_ADDRESS", ADDRESS.to_owned()),
    ]
}

/// The body of an exchange of this proof for a token of the organization.
pub(crate) fn exchange_of(proof: &Proof) -> Value {
    let mut body = exchange(&URL_SAFE_NO_PAD.encode(serde_json::to_string(proof).unwrap()));
    body["subject_token_type"] = PROOF_TYPE.into();
    body
}

/// A policy list that gives tokens of the organization to the principals of one account.
pub(crate) fn policies_of_account() -> Value {
    json!({ "policies": [{
        "decision": "allow", "tokenType": "organization", "rules": { "aws:account": "123456789012" },
    }] })
}

/// Functions that trust the authority of an issuer on this machine.
async fn with_issuer(between: Between) -> (TestApp, Served) {
    let served = Served::start().await;
    let authority = served.authority.to_str().unwrap().to_owned();
    let environment = vec![("SSL_CERT_FILE", authority)];
    let app = TestApp::on_functions(Setting { between, environment, ..Setting::default() }).await;
    (app, served)
}

/// The events of the trail, oldest first, with who did what, or was refused it.
async fn events(app: &TestApp) -> Vec<String> {
    let page = app.get(&format!("/api/orgs/{ORG}/auditlogs/v2")).send().await.expect(200);
    let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let summary = |event: &Value| {
        let refused = if event["authFailure"] == true { " refused" } else { "" };
        format!("{} {}{refused}", word(&event["user"]["githubLogin"]), word(&event["event"]))
    };
    let mut events: Vec<String> = page["auditLogEvents"].as_array().unwrap().iter().map(summary).collect();
    events.reverse();
    events
}

#[tokio::test]
async fn a_job_gets_in_through_warm_functions() {
    job(Between::Waits).await;
}

#[tokio::test]
async fn a_job_gets_in_through_cold_functions() {
    job(Between::Killed).await;
}

async fn job(between: Between) {
    let (app, served) = with_issuer(between).await;
    let issuer = &served.issuer;
    let new = json!({ "name": "ci", "url": issuer.url });
    let registered = app.post(&format!("/api/orgs/{ORG}/oidc/issuers"), &new).send().await.expect(200);
    let id = registered["id"].as_str().unwrap();
    app.patch(&format!("/api/orgs/{ORG}/auth/policies/{id}"), &policies()).send().await.expect(200);
    let show = async |token: &str| app.post("/api/oauth/token", &exchange(token)).anonymous().send().await;
    let given = show(&issuer.token(&claims(issuer))).await.expect(200);
    let token = given["access_token"].as_str().unwrap();

    // On the functions head, read and tfstate; the function account does not let it administer.
    let stacks = format!("/api/stacks/{ORG}/of-ci");
    app.post(&stacks, &json!({ "stackName": "dev" })).token(token).send().await.expect(200);
    app.get(&format!("{stacks}/dev")).token(token).send().await.expect(200);
    app.post(&format!("/tfstate/{ORG}/net"), &text(1, ["a".to_owned()]))
        .token(token)
        .send()
        .await
        .expect(200);
    app.get(&format!("/tfstate/{ORG}/net")).token(token).send().await.expect(200);
    app.get(&format!("/api/orgs/{ORG}/oidc/issuers")).token(token).send().await.refused(403);
    let other = app.other_user("bob", "beta").await;
    app.get(&format!("{stacks}/dev")).token(&other).send().await.refused(404);

    // A token that another key signed, one for another organization, and one that is over.
    let forged = Issuer::new(&issuer.url).token(&claims(issuer));
    let with = |name: &str, value: Value| {
        let mut claims = claims(issuer);
        claims[name] = value;
        issuer.token(&claims)
    };
    let now = SystemClock.now().seconds();
    for wrong in [forged, with("aud", json!("urn:pulumi:org:beta")), with("exp", json!(now - 3_600))] {
        assert_eq!(show(&wrong).await.expect(403)["error"], "access_denied");
    }

    let events = events(&app).await;
    let of_job = format!("{ORG} token.exchange");
    let machine = |event: &str| format!("{ORG} {event}");
    for expected in [
        "alice issuer.create".to_owned(),
        "alice issuer.policies".to_owned(),
        of_job.clone(),
        machine("stack.create"),
        machine("state.write"),
        machine("state.read"),
    ] {
        assert!(events.contains(&expected), "no {expected:?} in {events:#?}");
    }
    let count = |wanted: &str| events.iter().filter(|event| *event == wanted).count();
    assert_eq!(count(&of_job), 1, "{events:#?}");
    // Of the refused ones, the two that the issuer signed. One process sums them up.
    assert!((1..=2).contains(&count(&format!("{of_job} refused"))), "{events:#?}");
    let cli = PulumiCli::new().backend(&app.url).token(&app.token);
    let listed = cli.run(["org", "audit-log", "list", "--org", ORG, "--all"]).await.assert_success();
    for event in ["issuer.create", "token.exchange", "stack.create", "state.write"] {
        assert!(listed.stdout.contains(event), "{event}: {}", listed.stdout);
    }
}

#[tokio::test]
async fn a_principal_of_aws_gets_in_through_warm_functions() {
    Box::pin(principal(Between::Waits)).await;
}

#[tokio::test]
async fn a_principal_of_aws_gets_in_through_cold_functions() {
    Box::pin(principal(Between::Killed)).await;
}

/// Functions whose organization accepts the principals of one account.
async fn for_principals(between: Between, authority: &Authority, sts: &ServedSts) -> TestApp {
    let environment = of_sts(authority, sts);
    let app = TestApp::on_functions(Setting { between, environment, ..Setting::default() }).await;
    let new = json!({ "name": "aws", "url": AWS });
    let registered = app.post(&format!("/api/orgs/{ORG}/oidc/issuers"), &new).send().await.expect(200);
    let path = format!("/api/orgs/{ORG}/auth/policies/{}", registered["id"].as_str().unwrap());
    app.patch(&path, &policies_of_account()).send().await.expect(200);
    app
}

async fn show(app: &TestApp, proof: &Proof) -> Answer {
    app.post("/api/oauth/token", &exchange_of(proof)).anonymous().send().await
}

async fn principal(between: Between) {
    const ELSEWHERE: &str = "arn:aws:sts::210987654321:assumed-role/deploy/run";
    let authority = Authority::new();
    let served = ServedSts::start(&authority).await;
    let app = for_principals(between, &authority, &served).await;
    let refused = async |proof: &Proof| {
        let body = show(&app, proof).await.expect(403);
        assert_eq!(body["reason"], "token_not_accepted", "{body}");
    };
    let asked = || served.sts.request_count();

    let now = SystemClock.now().seconds();
    let first = prove(ADDRESS, now).await;
    let given = show(&app, &first).await.expect(200);
    let token = given["access_token"].as_str().unwrap();
    let stacks = format!("/api/stacks/{ORG}/of-aws");
    app.post(&stacks, &json!({ "stackName": "dev" })).token(token).send().await.expect(200);
    app.get(&format!("{stacks}/dev")).token(token).send().await.expect(200);
    assert_eq!(asked(), 1);

    // A principal of another account, and then the first proof a second time. AWS vouches for both.
    served.sts.knows(ELSEWHERE);
    refused(&prove(ADDRESS, now - 1).await).await;
    served.sts.knows(DEPLOY);
    refused(&first).await;
    assert_eq!(asked(), 3);
    // A proof for another server: AWS is not asked. If it claims to be for this one, AWS refuses its signature.
    let other = prove("https://other.example.com", now - 2).await;
    refused(&other).await;
    assert_eq!(asked(), 3);
    refused(&Proof { server: ADDRESS.to_owned(), ..other }).await;
    assert_eq!(asked(), 4);
    show(&app, &prove(ADDRESS, now - 3).await).await.expect(200);

    let page = format!("/api/orgs/{ORG}/auditlogs/v2?eventFilter=token.exchange");
    let page = app.get(&page).send().await.expect(200);
    let events = page["auditLogEvents"].as_array().unwrap();
    let count = |is_refused: bool, principal: &str| {
        let is_one = |event: &&Value| {
            let text = event["description"].as_str().unwrap();
            (event["authFailure"] == true) == is_refused && text.contains(principal)
        };
        events.iter().filter(is_one).count()
    };
    assert_eq!((count(false, DEPLOY), count(true, ELSEWHERE)), (2, 1), "{page}");
}

/// Where AWS STS is reached is a setting, and who answers is proven by the certificate.
#[tokio::test]
async fn only_a_certificate_of_aws_vouches_for_a_principal() {
    let authority = Authority::new();
    let served = ServedSts::named(&authority, "sts.example.com").await;
    let app = for_principals(Between::Waits, &authority, &served).await;
    let proof = prove(ADDRESS, SystemClock.now().seconds()).await;
    let refused = show(&app, &proof).await;
    assert_eq!(refused.expect(503)["error"], "temporarily_unavailable");
    assert_eq!(served.sts.request_count(), 0);
}

/// Each function reads teams and grants at most once a minute, so a new process shows what it reads now.
#[tokio::test]
async fn teams_and_grants_take_effect_on_all_functions() {
    let app = TestApp::on_functions(Setting { between: Between::Killed, ..Setting::default() }).await;
    let stack = format!("/api/stacks/{ORG}/web/dev");
    app.post(&format!("/api/stacks/{ORG}/web"), &json!({ "stackName": "dev" })).send().await.expect(200);
    let state = format!("/tfstate/{ORG}/net");
    app.post(&state, &text(1, ["a".to_owned()])).send().await.expect(200);
    let bob = app.member_with_role(Role::None, "bob", "laptop").await;

    // Of read, head and tfstate, what needs the roles view, apply and plan.
    let tagged = json!({ "owner": "web" });
    let statuses = async || {
        let status = |answer: Answer| answer.status.as_u16();
        [
            status(app.get(&stack).token(&bob).send().await),
            status(app.patch(&format!("{stack}/tags"), &tagged).token(&bob).send().await),
            status(app.get(&state).token(&bob).send().await),
        ]
    };
    let nothing = statuses().await;
    assert!(nothing.iter().all(|status| [403, 404].contains(status)), "{nothing:?}");

    let teams = format!("/api/orgs/{ORG}/teams");
    let new = json!({ "name": "web", "displayName": "Web", "description": "", "teamType": "pulumi" });
    app.post(&format!("{teams}/pulumi"), &new).send().await.expect(201);
    let add = json!({ "memberAction": "add", "member": "bob" });
    app.patch(&format!("{teams}/web"), &add).send().await.expect(204);
    let grants = format!("/api/orgs/{ORG}/grants");
    let grant = |on: &str, role: &str| json!({ "to": "team:web", "on": on, "role": role });
    app.post(&grants, &grant("web/dev", "view")).send().await.expect(200);
    assert_eq!(statuses().await, [200, 403, nothing[2]]);
    app.post(&grants, &grant("web/*", "apply")).send().await.expect(200);
    app.post(&grants, &grant("net/*", "plan")).send().await.expect(200);
    assert_eq!(statuses().await, [200, 204, 200]);

    let leave = json!({ "memberAction": "remove", "member": "bob" });
    app.patch(&format!("{teams}/web"), &leave).send().await.expect(204);
    assert_eq!(statuses().await, nothing);

    let events = events(&app).await;
    for expected in
        ["alice team.create", "alice team.edit", "alice grant.add", "bob stack.tag", "bob state.read"]
    {
        assert!(events.contains(&expected.to_owned()), "no {expected:?} in {events:#?}");
    }
}

#[tokio::test]
async fn warm_functions_refuse_wrong_answers_of_a_provider() {
    let app = Box::pin(TestApp::on(Backend::Functions)).await;
    Box::pin(wrong_answers(&app)).await;
}

#[tokio::test]
async fn cold_functions_refuse_wrong_answers_of_a_provider() {
    let app = Box::pin(TestApp::on(Backend::ColdFunctions)).await;
    Box::pin(wrong_answers(&app)).await;
}

/// As on a server; `tests/http/identity/sign_in.rs` has what needs another clock.
async fn wrong_answers(app: &TestApp) {
    let provider = sign_ins::with_provider(app).await;
    Box::pin(sign_ins::keeps_providers_apart(app, &provider)).await;
    Box::pin(sign_ins::refuses_wrong_tokens(app, &provider, 60)).await;
    Box::pin(sign_ins::finds_a_provider_down_at_the_exchange(app, &provider)).await;
}

/// In real time: a provider that is down is asked again after five seconds, and one whose key is unknown after a minute.
#[tokio::test]
async fn warm_functions_find_a_rotated_key() {
    let app = Box::pin(TestApp::on(Backend::Functions)).await;
    let provider = sign_ins::with_provider(&app).await;
    let sign_in = async || Visitor::new(&app.url).sign_in(&provider, "corp", "bob").await;
    provider.behaves(Behavior { fails: Some(StatusCode::BAD_GATEWAY), ..Behavior::default() });
    let why = Visitor::new(&app.url).open("/signin/corp").await.refuses(503);
    assert!(why.starts_with("The provider corp does not answer"), "{why}");
    provider.behaves(Behavior::default());
    SystemClock.sleep(Duration::from_secs(6)).await;
    sign_in().await.leads("/user/settings/account");
    provider.behaves(Behavior { signs_with: 2, publishes: vec![2], ..Behavior::default() });
    SystemClock.sleep(Duration::from_secs(61)).await;
    sign_in().await.leads("/user/settings/account");
    // The key of before is withdrawn.
    provider.behaves(Behavior { signs_with: 1, publishes: vec![2], ..Behavior::default() });
    sign_in().await.refuses(403);
}

/// What a server remembers of a provider for some minutes is gone with each process.
#[tokio::test]
async fn cold_functions_see_at_once_what_a_provider_changes() {
    let app = Box::pin(TestApp::on(Backend::ColdFunctions)).await;
    let provider = sign_ins::with_provider(&app).await;
    let sign_in = async || Visitor::new(&app.url).sign_in(&provider, "corp", "bob").await;
    let refused = async || Visitor::new(&app.url).open("/signin/corp").await.refuses(503);
    sign_in().await.leads("/user/settings/account");
    // A new key, and then the one that it replaced.
    provider.behaves(Behavior { signs_with: 2, publishes: vec![1, 2], ..Behavior::default() });
    sign_in().await.leads("/user/settings/account");
    provider.behaves(Behavior { signs_with: 1, publishes: vec![2], ..Behavior::default() });
    let signature = sign_in().await.refuses(403);
    assert!(signature.contains("its signature is not valid"), "{signature}");
    for behavior in [
        Behavior { fails: Some(StatusCode::BAD_GATEWAY), ..Behavior::default() },
        Behavior { is_silent: true, ..Behavior::default() },
    ] {
        provider.behaves(behavior);
        let why = refused().await;
        assert!(why.starts_with("The provider corp does not answer"), "{why}");
    }
    provider.behaves(Behavior::default());
    sign_in().await.leads("/user/settings/account");
}

#[tokio::test]
async fn people_sign_in_with_a_provider_of_the_environment() {
    let provider = FakeProvider::start(SystemClock.now().seconds()).await;
    let described = json!([{
        "name": "corp", "title": "Example Corp", "issuer": provider.issuer, "clientId": CLIENT_ID,
        "clientSecretVariable": "STATEWRIGHT_SIGN_IN_SECRET", "server": "http://127.0.0.1:1", "scopes": [],
        "rules": [format!("dev={ORG}:apply"), "dev=gone:admin".to_owned()],
    }]);
    let environment = vec![
        ("STATEWRIGHT_SIGN_IN_PROVIDERS", described.to_string()),
        ("STATEWRIGHT_SIGN_IN_SECRET", CLIENT_SECRET.to_owned()),
    ];
    let app = TestApp::on_functions(Setting { environment, ..Setting::default() }).await;
    let mut bob = Visitor::new(&app.url);
    let page = bob.open("/signin").await;
    assert!(page.text.contains("Example Corp"), "{}", page.text);
    // As if the browser came from the address that the provider knows.
    let led = bob.open("/signin/corp?led=yes").await;
    let query = provider.sign_in(&led.leads_to, "bob");
    let back = format!("/signin/corp/callback?{query}");
    bob.send(Method::GET, &back, "cross-site", None).await.leads("/user/settings/account");
    let made = bob.submit("/user/settings/tokens", &[("name", "laptop"), ("days", "7")]).await;
    assert_eq!(made.status, 200, "{}", made.text);
    let secret: String =
        made.text.split("swt_").nth(1).unwrap().chars().take_while(char::is_ascii_hexdigit).collect();
    let user = app.get("/api/user").token(&format!("swt_{secret}")).send().await.expect(200);
    assert_eq!(user["githubLogin"], "bob");
    let organizations = user["organizations"].as_array().unwrap();
    assert_eq!(
        organizations.len(),
        1,
        "a rule for an organization that does not exist gives nothing: {user}"
    );
    app.request(Method::DELETE, &format!("/api/orgs/{ORG}/members/bob")).send().await.expect(204);
}
