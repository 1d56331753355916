//! Pulumi's own service provider, by its requests: each resource is created, read twice, changed and deleted.
//!
//! The provider cannot be built here (decision 48). So these are the requests of its sources, with their
//! headers and in their order: pulumi/pulumi-pulumiservice dc76a018, `provider/pkg/pulumiapi` and
//! `provider/pkg/resources`. The types here have the members that it reads, and no others. A resource has to
//! read back as it was created, or its user sees a difference in each preview.

use std::collections::BTreeMap;

use reqwest::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use statewright_shared::domain::names::Login;
use statewright_shared::domain::role::Role;
use statewright_shared::services::identity::users;
use statewright_tests::app::{Answer, ORG, TestApp, USER};
use statewright_tests::issuer::{ISSUER, Issuer};

use crate::world::Stack;

/// The HTTP client of the provider: `client.go`.
struct Provider<'a>(&'a TestApp);

/// The status and the message of a failed request.
type Failed = (u16, String);

impl Provider<'_> {
    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Answer {
        let call = self.0.request(method, &format!("/api/{path}"));
        let call = call.header("X-Pulumi-Source", "provider").header("Accept", "application/vnd.pulumi+9");
        let call = match body {
            Some(body) => call.json(body),
            // It names a type of content also where there is none.
            None => call.header("Content-Type", "application/json"),
        };
        call.send().await
    }

    /// Any status 2xx is a success, with or without a body.
    async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Failed> {
        let answer = self.send(method, path, body).await;
        let status = answer.status.as_u16();
        match answer.status.is_success() {
            true if answer.bytes.is_empty() => Ok(Value::Null),
            true => Ok(answer.value()),
            false => Err((status, answer.refused(status))),
        }
    }

    async fn post(&self, path: &str, body: Value) -> Result<Value, Failed> {
        self.ask(Method::POST, path, Some(&body)).await
    }

    async fn patch(&self, path: &str, body: Value) -> Result<Value, Failed> {
        self.ask(Method::PATCH, path, Some(&body)).await
    }

    async fn delete(&self, path: &str) -> Result<Value, Failed> {
        self.ask(Method::DELETE, path, None).await
    }

    /// `None` for 404: the resource is gone.
    async fn read<T: DeserializeOwned>(&self, path: &str) -> Option<T> {
        match self.ask(Method::GET, path, None).await {
            Ok(value) => Some(serde_json::from_value(value).unwrap()),
            Err((404, _)) => None,
            Err(failed) => panic!("{path}: {failed:?}"),
        }
    }
}

#[track_caller]
fn failed(result: Result<Value, Failed>, status: u16) -> String {
    let (found, message) = result.unwrap_err();
    assert_eq!(found, status, "{message}");
    message
}

fn of_org(tail: &str) -> String {
    format!("orgs/{ORG}/{tail}")
}

/// The resource `Team` is created, without members.
async fn make_team(provider: &Provider<'_>, name: &str) {
    let new = json!({
        "organization": ORG, "teamType": "pulumi", "name": name, "displayName": name, "description": "",
    });
    provider.post(&of_org("teams/pulumi"), new).await.unwrap();
}

/// An access token, as `accesstokens.go` reads it: from the first page of its list, by its ID.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Token {
    id: String,
    name: String,
    description: String,
    last_used: i64,
    admin: bool,
}

#[derive(Deserialize)]
struct Tokens {
    tokens: Vec<Token>,
}

#[tokio::test]
async fn the_provider_makes_tokens_of_each_kind() {
    let app = TestApp::memory().await;
    let provider = Provider(&app);
    make_team(&provider, "ops").await;
    let named = |name: &str| json!({ "name": name, "description": "deploys" });
    let with_admin =
        |name: &str, admin: bool| json!({ "name": name, "description": "deploys", "admin": admin });
    for (list, new, admin) in [
        ("user/tokens".to_owned(), json!({ "description": "deploys" }), false),
        (of_org("tokens"), with_admin("ci", false), false),
        (of_org("tokens"), with_admin("root", true), true),
        (of_org("teams/ops/tokens"), named("of-ops"), false),
    ] {
        let name = new["name"].as_str().map(str::to_owned);
        let made = provider.post(&list, new.clone()).await.unwrap();
        let (id, secret) = (made["id"].as_str().unwrap(), made["tokenValue"].as_str().unwrap());
        app.get("/api/user").token(secret).send().await.expect(200);
        let read = async || {
            let Tokens { tokens } = provider.read(&list).await.unwrap();
            tokens.into_iter().find(|token| token.id == id)
        };
        for _ in 0..2 {
            let token = read().await.unwrap();
            assert_eq!((token.description.as_str(), token.admin), ("deploys", admin), "{list}");
            assert!(name.as_ref().is_none_or(|name| *name == token.name), "{list}: {token:?}");
        }
        // A change replaces the token, under another name if it is a machine's.
        if name.is_some() {
            failed(provider.post(&list, new).await, 409);
        }
        provider.delete(&format!("{list}/{id}")).await.unwrap();
        assert_eq!(read().await, None, "{list}");
        failed(provider.delete(&format!("{list}/{id}")).await, 404);
    }
}

/// A team, as `teams.go` reads it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Team {
    kind: String,
    name: String,
    display_name: String,
    description: String,
    #[serde(default)]
    members: Vec<TeamMember>,
    #[serde(default)]
    stacks: Vec<OnStack>,
    #[serde(default)]
    environments: Vec<OnEnvironment>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TeamMember {
    github_login: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OnStack {
    project_name: String,
    stack_name: String,
    permission: i64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OnEnvironment {
    project_name: String,
    env_name: String,
    permission: String,
    max_open_duration: Option<String>,
}

#[tokio::test]
async fn the_provider_makes_changes_and_deletes_a_team() {
    let app = TestApp::memory().await;
    for login in ["ann", "bob"] {
        app.member(login, "laptop").await;
    }
    let provider = Provider(&app);
    let path = of_org("teams/Ops");
    let change = async |action: &str, login: &str| {
        provider.patch(&path, json!({ "memberAction": action, "member": login })).await
    };
    make_team(&provider, "Ops").await;
    change("add", "bob").await.unwrap();
    // The provider takes 409 for success.
    assert!(failed(change("add", "bob").await, 409).contains("already in the team"));
    let read = async || {
        let team: Team = provider.read(&path).await?;
        let mut members: Vec<String> = team.members.into_iter().map(|member| member.github_login).collect();
        members.sort();
        Some((team.kind, team.name, team.display_name, team.description, members))
    };
    let shown = |display_name: &str, description: &str, members: &[&str]| {
        let members = members.iter().map(|login| (*login).to_owned()).collect::<Vec<_>>();
        let [kind, name, display_name, description] =
            ["pulumi", "Ops", display_name, description].map(str::to_owned);
        Some((kind, name, display_name, description, members))
    };
    // The user of the token is not in it: the provider would see a member to remove.
    for _ in 0..2 {
        assert_eq!(read().await, shown("Ops", "", &["bob"]));
    }
    // A member that it cannot add leaves a team that it reads again.
    assert!(failed(change("add", "stranger").await, 400).contains("stranger is not a member"));
    assert_eq!(read().await, shown("Ops", "", &["bob"]));
    // An update changes the texts, then removes members, then adds members.
    let texts = json!({ "newDisplayName": "Operations", "newDescription": "runs it" });
    provider.patch(&path, texts).await.unwrap();
    change("remove", "bob").await.unwrap();
    change("add", "ann").await.unwrap();
    for _ in 0..2 {
        assert_eq!(read().await, shown("Operations", "runs it", &["ann"]));
    }
    provider.delete(&path).await.unwrap();
    assert_eq!(read().await, None);
    let github = json!({ "organization": ORG, "teamType": "github", "githubTeamID": 7 });
    failed(provider.post(&of_org("teams/github"), github).await, 404);
}

#[tokio::test]
async fn the_provider_gives_a_team_permissions() {
    let app = TestApp::memory().await;
    let provider = Provider(&app);
    make_team(&provider, "ops").await;
    let path = of_org("teams/ops");
    let edit = async |name: &str, value: Value| provider.patch(&path, json!({ name: value })).await;

    let on_stack = async || {
        let team: Team = provider.read(&path).await.unwrap();
        let is_it = |on: &OnStack| (on.project_name.as_str(), on.stack_name.as_str()) == ("web", "dev");
        team.stacks.into_iter().find(is_it).map(|on| on.permission)
    };
    let stack = json!({ "projectName": "web", "stackName": "dev" });
    let with = |permission: i64| {
        let mut with = stack.clone();
        with["permission"] = json!(permission);
        with
    };
    // A change of the permission is a replacement: the new one comes before the old one goes, or after it.
    for permission in [101, 102, 103] {
        edit("addStackPermission", with(permission)).await.unwrap();
        for _ in 0..2 {
            assert_eq!(on_stack().await, Some(permission));
        }
    }
    edit("editStackPermission", with(101)).await.unwrap();
    assert_eq!(on_stack().await, Some(101));
    for _ in 0..2 {
        edit("removeStack", stack.clone()).await.unwrap();
        assert_eq!(on_stack().await, None);
    }
    // Other clients change what is not there, too.
    edit("editStackPermission", with(102)).await.unwrap();
    assert_eq!(on_stack().await, Some(102));
    edit("editStackPermission", with(0)).await.unwrap();
    assert_eq!(on_stack().await, None);

    let on_environment = async || {
        let team: Team = provider.read(&path).await.unwrap();
        let is_it = |on: &OnEnvironment| (on.project_name.as_str(), on.env_name.as_str()) == ("web", "base");
        let found = team.environments.into_iter().find(is_it);
        found.map(|on| (on.permission, on.max_open_duration))
    };
    let environment = json!({ "projectName": "web", "envName": "base" });
    let with = |permission: &str| {
        let mut with = environment.clone();
        with["permission"] = json!(permission);
        with
    };
    let shown = |permission: &str| Some((permission.to_owned(), None));
    for permission in ["read", "open", "write", "admin"] {
        edit("addEnvironmentPermission", with(permission)).await.unwrap();
        for _ in 0..2 {
            assert_eq!(on_environment().await, shown(permission));
        }
    }
    edit("editEnvironmentPermission", with("read")).await.unwrap();
    assert_eq!(on_environment().await, shown("read"));
    let mut lasting = with("open");
    lasting["maxOpenDuration"] = json!("1h0m0s");
    assert!(failed(edit("addEnvironmentPermission", lasting).await, 400).contains("maxOpenDuration"));
    assert_eq!(on_environment().await, shown("read"));
    for _ in 0..2 {
        edit("removeEnvironment", environment.clone()).await.unwrap();
        assert_eq!(on_environment().await, None);
    }
    edit("editEnvironmentPermission", with("write")).await.unwrap();
    assert_eq!(on_environment().await, shown("write"));
    // It has nothing, so there is nothing to read.
    edit("addEnvironmentPermission", with("none")).await.unwrap();
    assert_eq!(on_environment().await, None);
}

/// The price of grants on names, which decision 40 names.
#[tokio::test]
async fn one_name_has_one_permission_of_a_team() {
    let app = TestApp::memory().await;
    let provider = Provider(&app);
    make_team(&provider, "ops").await;
    let path = of_org("teams/ops");
    let on_stack = json!({ "projectName": "web", "stackName": "dev", "permission": 103 });
    let on_environment = json!({ "projectName": "web", "envName": "dev", "permission": "open" });
    provider.patch(&path, json!({ "addStackPermission": on_stack })).await.unwrap();
    provider.patch(&path, json!({ "addEnvironmentPermission": on_environment })).await.unwrap();
    let team: Team = provider.read(&path).await.unwrap();
    assert_eq!((team.stacks[0].permission, team.environments[0].permission.as_str()), (101, "open"));
}

/// A role, as the generated part of the provider reads it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NamedRole {
    id: String,
    name: String,
    #[serde(default)]
    default_identifier: String,
    details: Value,
    created: String,
    modified: String,
}

#[derive(Deserialize)]
struct Roles {
    roles: Vec<NamedRole>,
}

async fn roles(provider: &Provider<'_>) -> Vec<NamedRole> {
    let Roles { roles } = provider.read(&of_org("roles?uxPurpose=role")).await.unwrap();
    for role in &roles {
        // One role that does not parse would make all of them unreadable.
        assert_eq!(role.details["__type"], "PermissionDescriptorAllow", "{role:?}");
        for at in [&role.created, &role.modified] {
            assert_eq!(at, "1970-01-01T00:00:00Z", "{role:?}");
        }
    }
    roles
}

#[tokio::test]
async fn the_provider_gives_a_team_a_role() {
    let app = TestApp::memory().await;
    let provider = Provider(&app);
    make_team(&provider, "ops").await;
    let of_team = of_org("teams/ops/roles");
    let held = async || {
        let Roles { roles } = provider.read(&of_team).await?;
        Some(roles.into_iter().map(|role| (role.id, role.name)).collect::<Vec<_>>())
    };
    let one = |role: &str| Some(vec![(role.to_owned(), role.to_owned())]);
    assert_eq!(held().await, Some(Vec::new()));
    for role in roles(&provider).await.into_iter().filter(|role| role.id != "none") {
        let path = format!("{of_team}/{}", role.id);
        // Without a body. It replaces the role that the team had.
        provider.ask(Method::POST, &path, None).await.unwrap();
        for _ in 0..2 {
            assert_eq!(held().await, one(&role.id));
        }
    }
    let path = format!("{of_team}/admin");
    provider.delete(&path).await.unwrap();
    assert_eq!(held().await, Some(Vec::new()));
    // The provider takes 404 for success, here and where the team is gone.
    failed(provider.delete(&path).await, 404);
    failed(provider.ask(Method::POST, &format!("{of_team}/owner"), None).await, 404);
    provider.delete(&of_org("teams/ops")).await.unwrap();
    assert_eq!(held().await, None);
    failed(provider.delete(&path).await, 404);
}

/// A member, as `members.go` reads it.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Member {
    role: String,
    user: Person,
    known_to_pulumi: bool,
    virtual_admin: bool,
    fga_role: Option<FgaRole>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Person {
    name: String,
    github_login: String,
}

#[derive(Debug, PartialEq, Deserialize)]
struct FgaRole {
    id: String,
    name: String,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Members {
    members: Vec<Member>,
    continuation_token: Option<String>,
}

/// What the provider stores of a member: the built-in role by its name, or another one by its ID.
#[derive(Debug, PartialEq)]
enum Has {
    BuiltIn(String),
    Other(String),
}

/// Reads a member from both lists, and then the roles.
async fn member(provider: &Provider<'_>, login: &str) -> Option<Has> {
    let backend: Members = provider.read(&of_org("members?type=backend")).await.unwrap();
    let frontend: Members = provider.read(&of_org("members?type=frontend")).await.unwrap();
    assert_eq!(backend, frontend);
    assert_eq!(backend.continuation_token, None);
    let found = backend.members.into_iter().find(|member| member.user.github_login == login)?;
    assert_eq!((found.user.name.as_str(), found.virtual_admin), (login, false));
    let role = found.fga_role.unwrap();
    let named = roles(provider).await.into_iter().find(|named| named.name == role.name).unwrap();
    Some(match named.default_identifier.as_str() {
        "" => Has::Other(named.id),
        built_in => Has::BuiltIn(built_in.to_owned()),
    })
}

/// Gives a member a built-in role: by its ID, which the list of roles has.
async fn set_built_in(provider: &Provider<'_>, login: &str, role: &str) -> Result<Value, Failed> {
    let found = roles(provider).await.into_iter().find(|named| named.default_identifier == role).unwrap();
    provider.patch(&of_org(&format!("members/{login}")), json!({ "fgaRoleId": found.id })).await
}

#[tokio::test]
async fn the_provider_manages_a_member() {
    let app = TestApp::memory().await;
    users::create(&app.context, &Login::parse("bob").unwrap(), &[], Role::Member).await.unwrap();
    let provider = Provider(&app);
    let path = of_org("members/bob");
    let built_in = |role: &str| Some(Has::BuiltIn(role.to_owned()));
    assert_eq!(member(&provider, "bob").await, None);
    provider.post(&path, json!({ "role": "member" })).await.unwrap();
    for _ in 0..2 {
        assert_eq!(member(&provider, "bob").await, built_in("member"));
    }
    set_built_in(&provider, "bob", "admin").await.unwrap();
    for _ in 0..2 {
        assert_eq!(member(&provider, "bob").await, built_in("admin"));
    }
    provider.patch(&path, json!({ "fgaRoleId": "plan" })).await.unwrap();
    for _ in 0..2 {
        assert_eq!(member(&provider, "bob").await, Some(Has::Other("plan".to_owned())));
    }
    // A second resource adopts the member, sets the role, and sets it back in the end.
    failed(provider.post(&path, json!({ "role": "member" })).await, 409);
    set_built_in(&provider, "bob", "member").await.unwrap();
    assert_eq!(member(&provider, "bob").await, built_in("member"));

    for (login, body, status) in
        [("stranger", json!({ "role": "member" }), 404), ("bob", json!({ "role": "billing-manager" }), 400)]
    {
        failed(provider.post(&of_org(&format!("members/{login}")), body).await, status);
    }
    assert!(failed(set_built_in(&provider, USER, "member").await, 409).contains("is the last admin"));
    provider.delete(&path).await.unwrap();
    assert_eq!(member(&provider, "bob").await, None);
    failed(provider.delete(&path).await, 404);
    let of_user = provider.ask(Method::GET, "user", None).await.unwrap();
    assert_eq!((&of_user["id"], &of_user["githubLogin"]), (&json!(USER), &json!(USER)));
}

/// An issuer, as `oidc_issuer.go` reads it.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OidcIssuer {
    id: String,
    name: String,
    url: String,
    issuer: String,
    #[serde(default)]
    thumbprints: Vec<String>,
    max_expiration: Option<i64>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Policies {
    id: String,
    version: i64,
    policies: Vec<Policy>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Policy {
    decision: String,
    token_type: String,
    team_name: Option<String>,
    user_login: Option<String>,
    #[serde(rename = "runnerID")]
    runner_id: Option<String>,
    #[serde(rename = "roleID")]
    role_id: Option<String>,
    authorized_permissions: Vec<String>,
    rules: BTreeMap<String, String>,
}

fn policies_in(text: &Value) -> Vec<Policy> {
    serde_json::from_value(text.clone()).unwrap()
}

#[tokio::test]
async fn the_provider_registers_an_issuer_with_policies() {
    let app = TestApp::memory_asking(Issuer::new(ISSUER)).await;
    let provider = Provider(&app);
    let path = |id: &str| of_org(&format!("oidc/issuers/{id}"));
    let register = async || {
        let new = json!({ "name": "ci", "url": ISSUER });
        let made = provider.post(&of_org("oidc/issuers"), new).await.unwrap();
        serde_json::from_value::<OidcIssuer>(made).unwrap()
    };
    // The policies are read right after the registration, and then replaced by their own ID.
    let policies = async |id: &str| {
        let of_issuer = of_org(&format!("auth/policies/oidcissuers/{id}"));
        provider.read::<Policies>(&of_issuer).await.unwrap()
    };
    let replace = async |id: &str, new: &Value| {
        provider.patch(&of_org(&format!("auth/policies/{id}")), json!({ "policies": new })).await
    };
    let made = register().await;
    assert_eq!((made.url.as_str(), made.issuer.as_str(), made.max_expiration), (ISSUER, ISSUER, None));
    let first = policies(&made.id).await;
    assert!(first.policies.is_empty(), "{first:?}");
    let allow = |kind: &str, permissions: Value, rules: Value| {
        json!({
            "decision": "allow", "tokenType": kind, "authorizedPermissions": permissions, "rules": rules,
        })
    };
    let with = |mut policy: Value, name: &str, value: &str| {
        policy[name] = json!(value);
        policy
    };
    let checks = json!({ "aud": "urn:pulumi:org:acme", "sub": "check:*" });
    let denied = with(allow("personal", json!([]), json!({ "sub": "*" })), "userLogin", USER);
    let wanted = json!([
        allow("organization", json!(["standard"]), json!({ "sub": "job:*" })),
        with(allow("organization", json!([]), checks), "roleID", "plan"),
        with(allow("team", json!([]), json!({ "sub": "ops:*" })), "teamName", "ops"),
        with(denied, "decision", "deny"),
    ]);
    let set: Policies = serde_json::from_value(replace(&first.id, &wanted).await.unwrap()).unwrap();
    assert_eq!((&set.id, &set.policies), (&first.id, &policies_in(&wanted)));
    for _ in 0..2 {
        assert_eq!(provider.read::<OidcIssuer>(&path(&made.id)).await.as_ref(), Some(&made));
        assert_eq!(policies(&made.id).await, set);
    }
    // An update sends all of it, and `null` for the thumbprints that its user did not choose.
    let edit = json!({ "name": "pipelines", "thumbprints": null, "maxExpiration": 600 });
    let edited = provider.patch(&path(&made.id), edit).await.unwrap();
    let edited: OidcIssuer = serde_json::from_value(edited).unwrap();
    let expected = OidcIssuer { name: "pipelines".to_owned(), max_expiration: Some(600), ..made };
    assert_eq!(edited, expected);
    let wanted = json!([allow("organization", json!(["admin"]), json!({ "sub": "job:root" }))]);
    let before = policies(&edited.id).await;
    replace(&before.id, &wanted).await.unwrap();
    for _ in 0..2 {
        assert_eq!(provider.read::<OidcIssuer>(&path(&edited.id)).await.as_ref(), Some(&expected));
        assert_eq!(policies(&edited.id).await.policies, policies_in(&wanted));
    }
    provider.delete(&path(&edited.id)).await.unwrap();
    assert_eq!(provider.read::<OidcIssuer>(&path(&edited.id)).await, None);
    // The provider takes 404 for success.
    failed(provider.delete(&path(&edited.id)).await, 404);

    // Policies that are refused: the provider deletes the issuer that it has just registered.
    let again = register().await;
    let everybody = json!([allow("organization", json!([]), json!({ "sub": "*" }))]);
    let refused = failed(replace(&policies(&again.id).await.id, &everybody).await, 400);
    assert!(refused.contains("policy 1"), "{refused}");
    provider.delete(&path(&again.id)).await.unwrap();
    assert_eq!(provider.read::<OidcIssuer>(&path(&again.id)).await, None);
}

/// A stack, as `stack_tags.go` reads it.
#[derive(Debug, PartialEq, Deserialize)]
struct WithTags {
    #[serde(default)]
    tags: BTreeMap<String, String>,
}

#[tokio::test]
async fn the_provider_makes_a_stack_with_tags() {
    let app = TestApp::memory().await;
    let provider = Provider(&app);
    let (project, path) = (format!("stacks/{ORG}/web"), format!("stacks/{ORG}/web/dev"));
    let tags = async || provider.read::<WithTags>(&path).await.map(|stack| stack.tags);
    let shown = |tags: &[(&str, &str)]| {
        let tags = tags.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Some(tags.collect::<BTreeMap<_, _>>())
    };
    let add = async |name: &str, value: &str| {
        provider.post(&format!("{path}/tags"), json!({ "name": name, "value": value })).await
    };
    assert_eq!(tags().await, None);
    provider.post(&project, json!({ "stackName": "dev" })).await.unwrap();
    for _ in 0..2 {
        assert_eq!(tags().await, shown(&[]));
    }
    failed(provider.post(&project, json!({ "stackName": "dev" })).await, 409);
    for (name, value) in [("owner", "web"), ("tier:name", "one")] {
        add(name, value).await.unwrap();
    }
    for _ in 0..2 {
        assert_eq!(tags().await, shown(&[("owner", "web"), ("tier:name", "one")]));
    }
    // A new value is a tag that goes and comes.
    failed(add("owner", "net").await, 400);
    provider.delete(&format!("{path}/tags/owner")).await.unwrap();
    add("owner", "net").await.unwrap();
    provider.delete(&format!("{path}/tags/tier:name")).await.unwrap();
    assert_eq!(tags().await, shown(&[("owner", "net")]));
    failed(provider.delete(&format!("{path}/tags/tier:name")).await, 404);
    provider.delete(&path).await.unwrap();
    assert_eq!(tags().await, None);

    // With `forceDestroy`, also a stack that has resources.
    let stack = Stack::in_project(&app, "web").await;
    stack.publish(&["a"]).await;
    assert!(failed(provider.delete(&path).await, 400).contains("still contains resources"));
    provider.delete(&format!("{path}?forceDestroy=true")).await.unwrap();
    assert_eq!(tags().await, None);
}

/// The client of environments, which is another one: `cmd/esc/cli/client` of pulumi/esc v0.25.0.
async fn of_environments(app: &TestApp, method: Method, tail: &str, body: Option<&str>) -> Answer {
    let call = app.request(method, &format!("/api/esc/environments/{ORG}{tail}"));
    let call = call.header("Accept", "application/vnd.pulumi+8").header("Content-Type", "application/json");
    let call = match body {
        Some(text) => call.raw(text.as_bytes().to_vec()),
        None => call,
    };
    call.send().await
}

#[tokio::test]
async fn the_provider_writes_an_environment_and_names_revisions() {
    let app = TestApp::memory().await;
    let provider = Provider(&app);
    let send = async |method: Method, tail: &str, body: Option<&str>| {
        of_environments(&app, method, tail, body).await
    };
    let revision = |answer: &Answer| answer.headers["pulumi-esc-revision"].to_str().unwrap().to_owned();
    let read = async || {
        let answer = send(Method::GET, "/web/base", None).await;
        answer.status.is_success().then(|| (answer.text().trim().to_owned(), revision(&answer)))
    };
    let write = async |text: &str| {
        let answer = send(Method::PATCH, "/web/base", Some(text)).await;
        // The provider takes any list for a failure, also an empty one.
        assert_eq!(answer.expect(200), json!({}));
        revision(&answer)
    };
    let (first, second) = ("values:\n  region: eu", "values:\n  region: us");
    send(Method::POST, "/yaml/check?showSecrets=false", Some(first)).await.expect(200);
    let named = json!({ "project": "web", "name": "base" }).to_string();
    send(Method::POST, "", Some(&named)).await.expect(204);
    assert_eq!(write(first).await, "2");
    // It goes without the ID, which it reads from a path of the hosted service.
    let metadata = format!("esc/environments/{ORG}/web/base/metadata");
    assert_eq!(provider.read::<Value>(&metadata).await, None);
    for _ in 0..2 {
        assert_eq!(read().await, Some((first.to_owned(), "2".to_owned())));
    }
    assert_eq!(write(second).await, "3");
    for _ in 0..2 {
        assert_eq!(read().await, Some((second.to_owned(), "3".to_owned())));
    }

    let (tags, tag) = ("/web/base/versions/tags", "/web/base/versions/tags/stable");
    let tagged = async || {
        let answer = send(Method::GET, tag, None).await;
        answer.status.is_success().then(|| answer.value()["revision"].as_u64())
    };
    send(Method::POST, tags, Some(r#"{"name":"stable","revision":2}"#)).await.expect(204);
    for _ in 0..2 {
        assert_eq!(tagged().await, Some(Some(2)));
    }
    send(Method::PATCH, tag, Some(r#"{"revision":3}"#)).await.expect(204);
    assert_eq!(tagged().await, Some(Some(3)));
    send(Method::DELETE, tag, None).await.expect(204);
    assert_eq!(tagged().await, None);
    send(Method::GET, tag, None).await.refused(404);
    send(Method::DELETE, "/web/base", None).await.expect(204);
    assert_eq!(read().await, None);
}

/// What the server does not have fails at its creation, so nothing is stored that does nothing.
#[tokio::test]
async fn other_resources_of_the_provider_are_refused() {
    let app = TestApp::memory().await;
    Stack::in_project(&app, "web").await;
    let provider = Provider(&app);
    for (path, body, status) in [
        (of_org("roles"), json!({ "name": "mine", "uxPurpose": "role" }), 400),
        (of_org("agent-pools"), json!({ "name": "mine" }), 404),
        (of_org("hooks"), json!({ "name": "mine" }), 404),
        (of_org("policygroups"), json!({ "name": "mine" }), 404),
        (format!("stacks/{ORG}/web/dev/hooks"), json!({ "name": "mine" }), 404),
    ] {
        let message = failed(provider.post(&path, body).await, status);
        let is_named = message.contains("not supported") || message.contains("no custom roles");
        assert!(is_named, "{path}: {message}");
    }
}
