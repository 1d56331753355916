//! Tokens of organizations and of teams with the real client.

use statewright_shared::domain::access::{Grant, GrantedRole, Grantee, Scope, Team};
use statewright_shared::domain::names::{OrgName, TeamName};
use statewright_shared::domain::role::Role;
use statewright_shared::layout::{OrgAccess, put};
use statewright_shared::ports::Expect;
use statewright_tests::app::{Backend, ORG, TestApp};

use crate::BACKEND;
use crate::support::{SECRET_PROGRAM, UP, assert_says, stack, yaml};

/// A team that may apply in one project.
async fn add_team(app: &TestApp, name: &str, project: &str) {
    let team = Team {
        created: app.context.now(),
        display_name: String::new(),
        description: String::new(),
        members: [].into(),
    };
    let grant = Grant {
        to: Grantee::parse(&format!("team:{name}")).unwrap(),
        on: Scope::parse(&format!("{project}/*")).unwrap(),
        role: GrantedRole(Role::Apply),
    };
    let mut access = OrgAccess::default();
    access.teams.insert(TeamName::parse(name).unwrap(), team);
    access.grants.insert(grant);
    let key = OrgAccess::key(&OrgName::parse(ORG).unwrap());
    let write = put(key, Expect::Absent, app.context.ids.revision(), &access);
    app.context.ledger.commit(vec![write]).await.unwrap();
}

#[tokio::test]
async fn machines_log_in_and_update_with_their_tokens() {
    let app = TestApp::on(BACKEND).await;
    add_team(&app, "platform", "machines").await;
    let cli = yaml(&app, "machines", SECRET_PROGRAM).await;
    cli.run(["config", "set", "--secret", "password", "hunter2"]).await.assert_success();
    let made = cli.run(["api", "CreateOrgToken", "-F", "name=ci", "-F", "description=jobs"]).await;
    let of_org = made.assert_success().json();
    let listed = cli.run(["api", "ListOrgTokens"]).await.assert_success().json();
    assert_eq!(listed["tokens"][0]["id"], of_org["id"], "{listed}");
    let made = cli.run(["api", "CreateTeamToken", "-F", "teamName=platform", "-F", "name=deploys"]).await;
    let of_team = made.assert_success().json();

    for (token, kind) in
        [(&of_org, "Token type: organization: acme"), (&of_team, "Token type: team: platform")]
    {
        let ci = cli.clone().token(token["tokenValue"].as_str().unwrap());
        let whoami = ci.run(["whoami", "--verbose"]).await.assert_success();
        assert_says(&whoami, &["User: acme", kind]);
        ci.run(["stack", "select", "acme/dev"]).await.assert_success();
        ci.run(UP).await.assert_success();
    }
    assert_eq!(stack(&app, "machines").await["version"], 2);
    let id = of_org["id"].as_str().unwrap();
    cli.run(["api", "DeleteOrgToken", "-F", &format!("tokenId={id}")]).await.assert_success();
    // Another process knows a token for up to a minute.
    if BACKEND == Backend::Embedded {
        let ci = cli.clone().token(of_org["tokenValue"].as_str().unwrap());
        ci.run(["preview"]).await.assert_failure();
    }
}
