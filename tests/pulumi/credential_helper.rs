//! The real client with our program as its credential helper: no `pulumi login`, and no token in its files.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use statewright_shared::domain::names::{Login, TokenName};
use statewright_shared::services::identity::tokens;
use statewright_tests::app::{ORG, TestApp, USER};
use statewright_tests::cli::{Output, PulumiCli};
use statewright_tests::tools;

use crate::BACKEND;
use crate::support::{UP, assert_says};

/// A client that finds the helper in its PATH. Nothing is selected, and it is not logged in.
struct Helped {
    cli: PulumiCli,
    /// The folder with the helper.
    bin: PathBuf,
}

impl Helped {
    fn new() -> Self {
        let cli = PulumiCli::new();
        let bin = cli.home_dir().join("bin");
        fs::create_dir(&bin).unwrap();
        let mut path = OsString::from(tools::pulumi_bin_dir());
        path.push(":");
        path.push(&bin);
        Self { cli: cli.env("PATH", path), bin }
    }

    async fn ours(&self, arguments: &[&str]) -> Output {
        let arguments: Vec<_> = arguments.iter().map(OsStr::new).collect();
        self.cli.run_program(tools::statewright(), &arguments).await
    }

    /// Logs our program in with this token, and installs it.
    async fn logged_in(app: &TestApp, token: &str, more: &[&str]) -> Self {
        let helped = Self::new();
        let with_token =
            Self { cli: helped.cli.clone().env("STATEWRIGHT_TOKEN", token), bin: helped.bin.clone() };
        with_token.ours(&["login", &app.url]).await.assert_success();
        helped.install(more).await;
        helped
    }

    async fn install(&self, more: &[&str]) -> Output {
        let install = ["credential-helper", "install", "--folder", self.bin.to_str().unwrap()];
        self.ours(&[&install[..], more].concat()).await.assert_success()
    }

    fn at(&self, url: &str) -> PulumiCli {
        self.cli.clone().backend(url)
    }
}

/// The names of the user's short-lived tokens.
async fn short_lived(app: &TestApp) -> Vec<TokenName> {
    let listed =
        tokens::list_all(&app.context, &tokens::Owner::User(Login::parse(USER).unwrap())).await.unwrap();
    let names = listed.into_iter().map(|used| used.entry.token.name);
    names.filter(|name| name.as_str().starts_with("short-")).collect()
}

#[tokio::test]
async fn pulumi_needs_no_login_of_its_own() {
    let app = TestApp::on(BACKEND).await;
    let helped = Helped::logged_in(&app, &app.token, &[]).await;
    let cli = helped.at(&app.url);
    let whoami = cli.run(["whoami", "--verbose"]).await.assert_success();
    let helper = helped.bin.join("pulumi-credential-helper");
    assert_says(
        &whoami,
        &[
            "User: alice",
            &format!("Credentials helper: {}", helper.display()),
            "Access token source: credentials helper",
        ],
    );
    cli.bench_project("helped", &[("count", "3")]);
    cli.run(["stack", "init", "dev"]).await.assert_success();
    let up = cli.run(UP).await.assert_success();
    // The links lead to the server, although the client cannot know where its pages are.
    assert_says(&up, &[&format!("{}/{ORG}/helped/dev/updates/1", app.url)]);

    // All commands shared one token, which lasts an hour, and no file of the client has one.
    let before = short_lived(&app).await;
    assert_eq!(before.len(), 1, "{before:?}");
    let file = fs::read_to_string(cli.home_dir().join("pulumi/credentials.json")).unwrap_or_default();
    assert!(!file.contains("swt_"), "{file}");

    // A token that the server rejects is replaced by a new one.
    let alice = Login::parse(USER).unwrap();
    tokens::revoke_token(&app.context, &alice, &before[0]).await.unwrap();
    cli.run(["stack", "ls"]).await.assert_success();
    let after = short_lived(&app).await;
    assert_eq!(after.len(), 1, "{after:?}");
    assert_ne!(before, after);

    // The short-lived token ends with the logout.
    helped.ours(&["logout", &app.url]).await.assert_success();
    assert!(short_lived(&app).await.is_empty());
    let refused = cli.run(["whoami"]).await.assert_failure();
    assert_says(&refused, &["this command requires logging in"]);
}

/// Longer than a token lasts: an answer says that it ends a second too late for the client, which asks again from 30
/// seconds before the end.
#[tokio::test]
async fn an_update_outlives_the_tokens_of_the_helper() {
    let app = TestApp::on(BACKEND).await;
    let helped = Helped::logged_in(&app, &app.token, &[]).await;
    let (script, log) = (helped.cli.home_dir().join("soon"), helped.cli.home_dir().join("asked"));
    let helper = helped.bin.join("pulumi-credential-helper");
    let text = format!(
        r#"#!/bin/sh
PATH=/usr/bin:/bin
asked=$(cat)
printf '%s\n' "$asked" >> '{log}'
answer=$(printf '%s' "$asked" | '{helper}') || exit 1
at=$(($(date +%s) + 31))
soon=$(date -u -d "@$at" +%Y-%m-%dT%H:%M:%SZ 2>/dev/null || date -u -r "$at" +%Y-%m-%dT%H:%M:%SZ)
printf '%s' "$answer" | sed "s/\"expiresAt\":\"[^\"]*\"/\"expiresAt\":\"$soon\"/"
"#,
        log = log.display(),
        helper = helper.display()
    );
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let cli = helped.at(&app.url).env("PULUMI_CREDENTIAL_HELPER", &script);
    // Each resource has a secret, which the client sends to be encrypted while the update runs.
    let slow = [("count", "3"), ("chain", "true"), ("delayMs", "1500"), ("secretEvery", "1")];
    cli.bench_project("slow", &slow);
    cli.run(["stack", "init", "dev"]).await.assert_success();
    fs::remove_file(&log).unwrap();
    cli.run(UP).await.assert_success();
    let asked = fs::read_to_string(&log).unwrap();
    let reason = |line: &str| {
        let asked: serde_json::Value = serde_json::from_str(line).unwrap();
        asked["reason"].as_str().unwrap().to_owned()
    };
    let reasons: Vec<String> = asked.lines().map(reason).collect();
    assert_eq!(reasons[0], "initial", "{reasons:?}");
    assert!(reasons.len() > 1 && reasons[1..].iter().all(|reason| reason == "expired"), "{reasons:?}");
    // The token itself has time left, so all of them got the same.
    assert_eq!(short_lived(&app).await.len(), 1);
}

#[tokio::test]
async fn a_token_of_the_environment_counts_more_than_the_helper() {
    let app = TestApp::on(BACKEND).await;
    let helped = Helped::logged_in(&app, &app.token, &[]).await;
    let bob = app.member("bob", "laptop").await;
    let whoami = helped.at(&app.url).token(bob).run(["whoami"]).await.assert_success();
    assert_eq!(whoami.stdout.trim(), "bob");
    assert!(short_lived(&app).await.is_empty());
}

#[tokio::test]
async fn other_servers_get_nothing_of_the_helper() {
    let (app, other) = (TestApp::on(BACKEND).await, TestApp::on(BACKEND).await);
    let helped = Helped::logged_in(&app, &app.token, &["--default"]).await;
    let refused = helped.at(&other.url).run(["whoami"]).await.assert_failure();
    assert_says(&refused, &["this command requires logging in"]);
    let whoami =
        helped.at(&other.url).token(&other.token).run(["whoami", "--verbose"]).await.assert_success();
    assert_says(&whoami, &["User: alice"]);
    assert!(!whoami.stdout.contains("credentials helper"), "{whoami}");
    helped.cli.clone().diy("pass").run(["stack", "ls", "--all"]).await.assert_success();
    assert!(short_lived(&app).await.is_empty());
    assert!(short_lived(&other).await.is_empty());
}

#[tokio::test]
async fn the_default_selects_the_server_of_the_last_login() {
    let app = TestApp::on(BACKEND).await;
    let helped = Helped::logged_in(&app, &app.token, &["--default"]).await;
    let whoami = helped.cli.run(["whoami"]).await.assert_success();
    assert_eq!(whoami.stdout.trim(), USER);
    // It is installed again as before, and removed.
    helped.install(&["--default"]).await;
    let bin = helped.bin.to_str().unwrap();
    let removed = helped.ours(&["credential-helper", "uninstall", "--folder", bin]).await.assert_success();
    assert_says(&removed, &[&format!("removed {bin}/pulumi-credential-helper")]);
    helped.at(&app.url).run(["whoami"]).await.assert_failure();
    // A helper of somebody else stays.
    fs::write(helped.bin.join("pulumi-credential-helper"), "#!/bin/sh\n").unwrap();
    let install = ["credential-helper", "install", "--folder", bin];
    assert_says(&helped.ours(&install).await.assert_failure(), &["is not a link to statewright"]);
}

#[tokio::test]
async fn a_login_that_has_ended_is_reported() {
    let app = TestApp::on(BACKEND).await;
    let (alice, name) = (Login::parse(USER).unwrap(), TokenName::parse("laptop").unwrap());
    let token = tokens::create_token(&app.context, &alice, &name, None).await.unwrap();
    let helped = Helped::logged_in(&app, &token, &[]).await;
    tokens::revoke_token(&app.context, &alice, &name).await.unwrap();
    let refused = helped.at(&app.url).run(["whoami"]).await.assert_failure();
    assert_says(&refused, &[&format!("log in again with `statewright login {}`", app.url)]);
}

#[tokio::test]
async fn the_token_of_a_machine_is_given_as_it_is() {
    let app = TestApp::on(BACKEND).await;
    let new = serde_json::json!({ "name": "deploy" });
    let made = app.post(&format!("/api/orgs/{ORG}/tokens"), &new).send().await.expect(200);
    let helped = Helped::logged_in(&app, made["tokenValue"].as_str().unwrap(), &[]).await;
    let whoami = helped.at(&app.url).run(["whoami", "--verbose"]).await.assert_success();
    assert_says(&whoami, &["Token type: organization", "Access token source: credentials helper"]);
    // Jobs that exchange a token of their own turn the helper off.
    let login = ["login", &app.url, "--oidc-token", "a.b.c"];
    let refused = helped.cli.run(login).await.assert_failure();
    assert_says(&refused, &["set PULUMI_CREDENTIAL_HELPER=none to disable it"]);
    let off = helped.cli.clone().env("PULUMI_CREDENTIAL_HELPER", "none").run(login).await.assert_failure();
    assert!(!off.stderr.contains("credentials helper"), "{off}");
}
