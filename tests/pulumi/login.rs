//! Logging in: login, whoami, logout, tokens.

use std::time::Duration;

use statewright_shared::domain::names::{Login, TokenName};
use statewright_shared::services::identity::tokens;
use statewright_tests::app::{TestApp, USER};
use statewright_tests::cli::{Output, PulumiCli};
use statewright_tests::sign_ins;

use crate::BACKEND;
use crate::support::{assert_says, client};

#[tokio::test]
async fn a_user_logs_in_looks_and_logs_out() {
    let app = TestApp::on(BACKEND).await;
    let cli = PulumiCli::new();
    let login = cli.clone().token(&app.token).run(["login", &app.url]).await.assert_success();
    assert_says(&login, &["Logged in to", "as alice"]);

    let whoami = cli.run(["whoami", "--verbose"]).await.assert_success();
    assert_says(&whoami, &["User: alice", "Organizations: acme"]);
    cli.run(["stack", "ls", "--all"]).await.assert_success();

    let logout = cli.run(["logout"]).await.assert_success();
    assert_says(&logout, &["Logged out"]);
    let refused = cli.run(["whoami"]).await.assert_failure();
    assert_says(&refused, &["this command requires logging in"]);
}

#[tokio::test]
async fn a_wrong_or_missing_token_is_refused() {
    let app = TestApp::on(BACKEND).await;
    let wrong = PulumiCli::new().token("swt_0000000000000000000000000000000000000000000");
    let refused = wrong.run(["login", &app.url]).await.assert_failure();
    assert_says(&refused, &["Unauthorized: No credentials provided or are invalid."]);
    let refused = wrong.backend(&app.url).run(["stack", "ls", "--all"]).await.assert_failure();
    assert_says(&refused, &["Unauthorized: No credentials provided or are invalid."]);

    let missing = PulumiCli::new();
    let refused = missing.run(["login", &app.url]).await.assert_failure();
    assert_says(&refused, &["PULUMI_ACCESS_TOKEN"]);
    let refused = missing.backend(&app.url).run(["stack", "ls", "--all"]).await.assert_failure();
    assert_says(&refused, &["PULUMI_ACCESS_TOKEN"]);
}

/// As in CI: two variables, and no `pulumi login`.
#[tokio::test]
async fn the_environment_is_enough() {
    let app = TestApp::on(BACKEND).await;
    let cli = client(&app);
    let whoami = cli.run(["whoami"]).await.assert_success();
    assert_eq!(whoami.stdout.trim(), "alice");
    cli.run(["stack", "ls", "--all"]).await.assert_success();
}

#[tokio::test]
async fn an_expired_token_is_refused() {
    let app = TestApp::on_manual_clock(BACKEND).await;
    let (login, name) = (Login::parse(USER).unwrap(), TokenName::parse("ci").unwrap());
    let hour = Duration::from_secs(3600);
    let token = tokens::create_token(&app.context, &login, &name, Some(hour)).await.unwrap();
    let cli = PulumiCli::new().backend(&app.url).token(token);
    app.advance(hour - Duration::from_secs(1));
    cli.run(["stack", "ls", "--all"]).await.assert_success();
    app.advance(Duration::from_secs(1));
    let refused = cli.run(["stack", "ls", "--all"]).await.assert_failure();
    assert_says(&refused, &["this command requires logging in"]);
}

/// A person's provider confirms the person at each sign-in, for some time.
#[tokio::test]
async fn a_stopped_token_shows_where_to_sign_in_again() {
    let app = TestApp::on_manual_clock(BACKEND).await;
    let token = app.member("bob", "laptop").await;
    let hour = Duration::from_secs(3600);
    sign_ins::confirm_for(&app, "bob", hour).await;

    let with_console = || PulumiCli::new().env("PULUMI_CONSOLE_DOMAIN", "app.example.com");
    let cli = with_console().backend(&app.url).token(&token);
    cli.run(["stack", "ls", "--all"]).await.assert_success();
    app.advance(hour);
    let shows = |refused: &Output| {
        assert_says(refused, &["Log in at:", "http://app.example.com/signin/sso/acme/reauth"]);
        assert_eq!(refused.code, Some(3), "{refused}");
    };
    shows(&cli.run(["stack", "ls", "--all"]).await.assert_failure());

    // The login of another machine says who the user is, and its next command says what is missing.
    let other = with_console();
    let login = other.clone().token(&token).run(["login", &app.url]).await.assert_success();
    assert_says(&login, &["Logged in to", "as bob"]);
    shows(&other.run(["stack", "ls", "--all"]).await.assert_failure());
}
