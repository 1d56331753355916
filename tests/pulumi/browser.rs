//! People at a browser: signing in with a real provider, `pulumi login`, `statewright login`, and the pages of their
//! own user.
//!
//! Each page is checked for faults of accessibility in both themes, for errors of the console, which include violations
//! of the content security policy, and for its width on a phone. `STATEWRIGHT_PICTURES=FOLDER` also takes pictures.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use serde_json::Value;
use statewright_shared::domain::names::{Login, OrgName, ProviderName};
use statewright_shared::domain::role::Role;
use statewright_shared::domain::sign_in::SignInRule;
use statewright_shared::layout::SignInProvider;
use statewright_shared::services::identity::{invitations, passwords, providers};
use statewright_tests::app::{Backend, ORG, START, TestApp, USER};
use statewright_tests::browser::{CLIENT_ID, CLIENT_SECRET, Chromium, Provider};
use statewright_tests::cli::{Output, PulumiCli};
use statewright_tests::running::Running;
use statewright_tests::tools;
use statewright_tests::visitor::Visitor;

use crate::BACKEND;
use crate::support::assert_says;

/// Adds a real provider, whose people of the group `dev` may apply.
async fn provider_of(app: &TestApp) -> Provider {
    provider_named(app, "corp", "Example Corp").await
}

async fn provider_named(app: &TestApp, name: &str, title: &str) -> Provider {
    let provider = Provider::start(&format!("{}/signin/{name}/callback", app.url)).await;
    let added = SignInProvider {
        name: ProviderName::parse(name).unwrap(),
        title: title.to_owned(),
        issuer: provider.issuer.clone(),
        client_id: CLIENT_ID.to_owned(),
        server: app.url.clone(),
        scopes: vec!["profile".to_owned()],
        login_claim: "preferred_username".to_owned(),
        groups_claim: "groups".to_owned(),
        days: 30,
        rules: vec![SignInRule {
            group: "dev".to_owned(),
            org: OrgName::parse(ORG).unwrap(),
            role: Role::Apply,
            team: None,
        }],
        created: START,
    };
    providers::add(&app.context, added, Some(CLIENT_SECRET)).await.unwrap();
    provider
}

/// Signs in at the provider's own pages, from where its first one is open.
async fn at_provider(page: &mut Chromium, provider: &Provider, name: &str) {
    page.arrives(&provider.issuer).await;
    page.fill("input[name=login]", name).await;
    page.fill("input[name=password]", "any").await;
    page.click("button[type=submit]").await;
    page.click("button[type=submit]:has-text('Continue')").await;
}

/// The address that `pulumi login` prints when it cannot open a browser.
async fn printed_address(login: &Running) -> String {
    login.says("Waiting for login to complete").await;
    let printed = login.stdout_text();
    let address = printed.split_whitespace().find(|word| word.contains("/cli-login?"));
    address.unwrap_or_else(|| panic!("no address: {printed}")).to_owned()
}

#[tokio::test]
async fn pulumi_logs_in_by_a_browser_and_a_provider() {
    Box::pin(pulumi_logs_in(BACKEND)).await;
}

/// `pulumi login` of two people at one provider, of whom a rule lets one in.
pub(crate) async fn pulumi_logs_in(backend: Backend) {
    let app = Box::pin(TestApp::on(backend)).await;
    let provider = provider_of(&app).await;
    let host = app.url.strip_prefix("http://").unwrap();
    let cli = PulumiCli::new().env("PULUMI_CONSOLE_DOMAIN", host);
    let login = cli.spawn_at_terminal(["login", &app.url]);
    // By its last words it reads keys one by one.
    login.says("/user/settings/tokens").await;
    login.types("\r");
    let address = printed_address(&login).await;
    assert!(address.starts_with(&format!("{}/cli-login?", app.url)), "{address}");

    // A person whom no rule lets in gets no token, and the CLI waits on.
    let mut eve = Chromium::start();
    eve.open(&address).await;
    eve.click("text=Sign in with Example Corp").await;
    at_provider(&mut eve, &provider, "eve+sales").await;
    eve.arrives(&format!("{}/signin/corp/callback", app.url)).await;
    let text = eve.text().await;
    assert!(text.contains("No rule of the provider corp lets you in"), "{text}");
    drop(eve);

    let mut page = Chromium::start();
    page.open(&address).await;
    page.check_page("sign-in").await;
    page.click("text=Sign in with Example Corp").await;
    at_provider(&mut page, &provider, "bob+dev").await;
    page.arrives(address.split('?').next().unwrap()).await;
    let text = page.text().await;
    assert!(text.contains("an access token of bob") && text.contains("pulumi login"), "{text}");
    page.check_page("cli-login").await;

    // A program that guesses the nonce gets nothing, and the CLI waits on.
    let port = address.split("cliSessionPort=").nth(1).unwrap().split('&').next().unwrap();
    let guess = format!("http://127.0.0.1:{port}/?accessToken=swt_0&nonce={}", "0".repeat(64));
    assert_eq!(reqwest::get(guess).await.unwrap().status(), 400);

    // By keyboard alone: past the link to the start, the user's links and the choice of days.
    let mut presses = 0;
    while page.focused().await != "Allow" {
        page.press("Tab").await;
        presses += 1;
        assert!(presses < 12, "the button cannot be reached");
    }
    page.press("Enter").await;
    page.arrives(&format!("{}/welcome/cli", app.url)).await;
    page.check_page("welcome").await;

    let done = login.wait().await.assert_success();
    assert_says(&done, &["Logged in to", "as bob"]);
    let whoami = cli.run(["whoami", "--verbose"]).await.assert_success();
    assert_says(&whoami, &["User: bob", &format!("Organizations: {ORG}")]);
    cli.run(["stack", "ls", "--all"]).await.assert_success();

    // The person sees the token, and revokes it.
    page.open(&format!("{}/user/settings/tokens", app.url)).await;
    let text = page.text().await;
    assert!(text.contains("cli-") && text.contains("Generated by pulumi login"), "{text}");
    page.check_page("tokens").await;
    page.click("button:has-text('Revoke')").await;
    assert!(page.text().await.contains("You have no access tokens"));
    page.open(&format!("{}/user/settings/account", app.url)).await;
    page.check_page("account").await;
    page.open(&format!("{}/signout", app.url)).await;
    page.check_page("sign-out").await;
    page.click("main button").await;
    page.arrives(&format!("{}/signin", app.url)).await;
    page.open(&format!("{}/user/settings/account", app.url)).await;
    assert!(page.url().await.contains("/signin?next=/user/settings/account"));
}

/// The value of a parameter in an address.
fn parameter<'a>(address: &'a str, name: &str) -> &'a str {
    let query = address.split_once('?').unwrap().1;
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).unwrap()
}

#[tokio::test]
async fn a_real_provider_is_not_replayed_or_mixed_up() {
    Box::pin(is_not_replayed_or_mixed_up(BACKEND)).await;
}

/// Answers of two real providers, each where and when it does not belong, and one of them down. As with the provider of
/// `tests/http/identity/sign_in.rs`, by a browser without a screen.
pub(crate) async fn is_not_replayed_or_mixed_up(backend: Backend) {
    const ACCOUNT: &str = "/user/settings/account";
    let app = Box::pin(TestApp::on(backend)).await;
    let corp = provider_of(&app).await;
    let other = provider_named(&app, "other", "Example Other").await;
    let back = |led: String| led.strip_prefix(&app.url).unwrap().to_owned();

    let mut bob = Visitor::new(&app.url);
    let led = bob.open("/signin/corp").await.leads_to;
    let callback = back(corp.sign_in(&led, "bob+dev").await);
    let begun = bob.cookies.clone();
    // An answer of one provider, at the address of the other.
    bob.open(&callback.replace("/corp/", "/other/")).await.refuses(400);
    bob.cookies.clone_from(&begun);
    bob.open(&callback).await.leads(ACCOUNT);
    assert_eq!(bob.user().await.as_deref(), Some("bob"));
    // The same answer again, as from the history of a browser.
    let mut again = Visitor::new(&app.url);
    again.cookies = begun;
    let replayed = again.open(&callback).await.refuses(403);
    assert!(replayed.contains("refused the sign-in (invalid_grant)"), "{replayed}");
    assert_eq!(again.user().await, None);

    // A code of the other provider in the place of the right one, with and without its issuer.
    let mut ann = Visitor::new(&app.url);
    let led = ann.open("/signin/other").await.leads_to;
    let of_other = other.sign_in(&led, "ann+dev").await;
    let mut eve = Visitor::new(&app.url);
    let led = eve.open("/signin/corp").await.leads_to;
    let (code, state) = (parameter(&of_other, "code"), parameter(&led, "state"));
    let swapped = format!("/signin/corp/callback?code={code}&state={state}");
    let begun = eve.cookies.clone();
    eve.open(&format!("{swapped}&iss={}", parameter(&of_other, "iss"))).await.refuses(400);
    eve.cookies = begun;
    eve.open(&swapped).await.refuses(403);
    assert_eq!(eve.user().await, None);
    ann.open(&back(of_other)).await.leads(ACCOUNT);
    assert_eq!(ann.user().await.as_deref(), Some("ann"));

    // One of them ends while a person is at its pages. The other one still lets people in.
    let led = eve.open("/signin/corp").await.leads_to;
    let callback = back(corp.sign_in(&led, "eve+dev").await);
    corp.kill().await;
    let refused = eve.open(&callback).await.refuses(503);
    assert!(refused.starts_with("The provider corp does not answer"), "{refused}");
    assert_eq!(eve.user().await, None);
    let led = again.open("/signin/other").await.leads_to;
    again.open(&back(other.sign_in(&led, "ann+dev").await)).await.leads(ACCOUNT);
}

/// The word with this text that a command has printed.
fn printed(command: &Running, text: &str) -> String {
    let output = command.stdout_text();
    let word = output.split_whitespace().find(|word| word.contains(text));
    word.unwrap_or_else(|| panic!("no {text}: {output}")).to_owned()
}

/// Runs a command of `statewright` in the home of a client.
async fn ours(cli: &PulumiCli, arguments: &[&str]) -> Output {
    let arguments: Vec<_> = arguments.iter().map(OsStr::new).collect();
    cli.run_program(tools::statewright(), &arguments).await
}

/// The token that `statewright login` stored in the home of a client for this server.
fn stored_token(cli: &PulumiCli, url: &str) -> String {
    let file = fs::read(cli.home_dir().join(".config/statewright/credentials.json")).unwrap();
    let text: Value = serde_json::from_slice(&file).unwrap();
    text["tokens"][url]["token"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn our_command_line_logs_in_by_a_browser() {
    let app = TestApp::on(BACKEND).await;
    let provider = provider_of(&app).await;
    // The browser of the machine is a program that stores the page.
    let cli = PulumiCli::new();
    let (script, opened) = (cli.home_dir().join("browser"), cli.home_dir().join("opened"));
    fs::write(&script, format!("#!/bin/sh\nprintf %s \"$1\" > {}\n", opened.display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let cli = cli.env("BROWSER", &script);
    let login = cli.spawn_program_at_terminal(tools::statewright(), &["login", &app.url]);
    login.says("add --no-browser").await;
    let address = printed(&login, "/cli-login/authorize?");
    assert!(address.starts_with(&format!("{}/cli-login/authorize?", app.url)), "{address}");

    let mut page = Chromium::start();
    page.open(&address).await;
    page.click("text=Sign in with Example Corp").await;
    at_provider(&mut page, &provider, "bob+dev").await;
    page.arrives(address.split('?').next().unwrap()).await;
    let text = page.text().await;
    assert!(text.contains("asks to log in as bob") && text.contains("statewright login on "), "{text}");
    page.check_page("authorize").await;

    // A program that guesses the state changes nothing, and the command waits on.
    let port = address.split("&port=").nth(1).unwrap().split('&').next().unwrap();
    let guess = format!("http://127.0.0.1:{port}/?code=bob.swc_0&state={}", "0".repeat(43));
    assert_eq!(reqwest::get(guess).await.unwrap().status(), 400);
    page.click("button:has-text('Allow')").await;
    page.arrives(&format!("{}/welcome/cli", app.url)).await;
    let done = login.wait().await.assert_success();
    assert_says(&done, &[&format!("logged in as bob at {}", app.url), "and expires at "]);
    assert_eq!(fs::read_to_string(opened).unwrap(), address);

    let token = stored_token(&cli, &app.url);
    assert!(!done.stdout.contains(&token), "{done}");
    assert_says(&ours(&cli, &["whoami"]).await.assert_success(), &["bob at ", "`statewright login`"]);
    page.open(&format!("{}/user/settings/tokens", app.url)).await;
    let text = page.text().await;
    assert!(text.contains("cli-") && text.contains("statewright login on "), "{text}");

    app.get("/api/user").token(&token).send().await.expect(200);
    let out = ours(&cli, &["logout", &app.url]).await.assert_success();
    assert_says(&out, &["the token no longer works"]);
    page.open(&format!("{}/user/settings/tokens", app.url)).await;
    let text = page.text().await;
    assert!(!text.contains("statewright login on "), "{text}");
    ours(&cli, &["whoami"]).await.assert_failure();
}

#[tokio::test]
async fn our_command_line_takes_a_copied_code() {
    let app = TestApp::on(BACKEND).await;
    let alice = Login::parse(USER).unwrap();
    passwords::set(&app.context, &alice, "correct horse battery").await.unwrap();
    let mut page = Chromium::start();
    page.open(&format!("{}/signin", app.url)).await;
    page.fill("input[name=login]", USER).await;
    page.fill("input[name=password]", "correct horse battery").await;
    page.press("Enter").await;
    page.arrives(&format!("{}/user/settings/account", app.url)).await;

    let cli = PulumiCli::new();
    let mut code = String::new();
    for is_of_this_login in [true, false] {
        let login = cli.spawn_program_at_terminal(tools::statewright(), &["login", &app.url, "--no-browser"]);
        login.says("or an access token: ").await;
        if is_of_this_login {
            page.open(&printed(&login, "/cli-login/authorize?")).await;
            page.check_page("authorize-by-code").await;
            page.click("button:has-text('Show the code')").await;
            page.arrives(&format!("{}/cli-login/code", app.url)).await;
            page.check_page("login-code").await;
            code = page.value("code.secret").await;
        }
        login.types(&format!("{code}\r"));
        let done = login.wait().await;
        assert!(!done.stdout.contains(&code), "{done}");
        match is_of_this_login {
            true => assert_says(&done.assert_success(), &["logged in as alice"]),
            // The code of an earlier login, which was used too.
            false => assert_says(&done.assert_failure(), &["the code is not valid, was used already"]),
        }
    }
    ours(&cli, &["whoami"]).await.assert_success();
    // Without a screen, the code is asked for at once; an access token will do.
    let login = PulumiCli::new().spawn_program_at_terminal(tools::statewright(), &["login", &app.url]);
    login.says("or an access token: ").await;
    login.types(&format!("{}\r", app.token));
    assert_says(&login.wait().await.assert_success(), &["logged in as alice"]);
}

#[tokio::test]
async fn an_invited_person_sets_a_password_and_makes_a_token() {
    let app = TestApp::on(BACKEND).await;
    let alice = Login::parse(USER).unwrap();
    let invited = invitations::invite(&app.context, &alice, Duration::from_secs(3600)).await.unwrap();
    let link = format!("{}/invite?code={}", app.url, invited.code);
    let mut page = Chromium::start();
    page.open(&link).await;
    page.check_page("invitation").await;
    page.click("main button").await;
    page.arrives(&format!("{}/user/settings/account", app.url)).await;
    page.fill("input[name=password]", "correct horse battery").await;
    page.fill("input[name=again]", "correct horse battery").await;
    page.click("button:has-text('Set the password')").await;
    assert!(page.text().await.contains("You have a password"), "{}", page.text().await);
    page.check_page("account-without-provider").await;

    // The link is used up, in any browser.
    page.fresh().await;
    page.open(&link).await;
    assert!(page.text().await.contains("This invitation is not valid"));
    // A refused page is an error of the console too, so this one is not checked for them.
    page.open(&format!("{}/signin?next=/user/settings/tokens", app.url)).await;
    page.fill("input[name=login]", USER).await;
    page.fill("input[name=password]", "correct horse battery").await;
    page.press("Enter").await;
    page.arrives(&format!("{}/user/settings/tokens", app.url)).await;

    // Texts that try to be markup, to change directions, and to be wider than the page.
    let hostile = format!("<img src=x onerror=alert(1)>\u{202e}{}", "x".repeat(100));
    page.fill("input[name=name]:not([type=hidden])", &format!("laptop-{}", "y".repeat(90))).await;
    page.fill("input[name=description]", &hostile).await;
    page.click("button:has-text('Create the token')").await;
    let token = page.value("code.secret").await;
    page.fresh().await;
    let cli = PulumiCli::new().backend(&app.url).token(&token);
    let whoami = cli.run(["whoami"]).await.assert_success();
    assert_eq!(whoami.stdout.trim(), USER);
}

#[tokio::test]
async fn hostile_texts_stay_texts() {
    let app = TestApp::on(BACKEND).await;
    let alice = Login::parse(USER).unwrap();
    let invited = invitations::invite(&app.context, &alice, Duration::from_secs(3600)).await.unwrap();
    let mut page = Chromium::start();
    page.open(&format!("{}/invite?code={}", app.url, invited.code)).await;
    page.click("main button").await;
    page.open(&format!("{}/user/settings/tokens", app.url)).await;
    page.fill("input[name=name]:not([type=hidden])", &format!("laptop-{}", "y".repeat(90))).await;
    page.fill("input[name=description]", &format!("<img src=x onerror=alert(1)>{}", "x".repeat(150))).await;
    page.click("button:has-text('Create the token')").await;
    assert!(page.text().await.contains("<img src=x onerror=alert(1)>"));
    page.check_page("new-token").await;
    let query = format!(
        "cliSessionPort=43210&cliSessionNonce={}&cliSessionDescription={}&cliCommand={}",
        "0a".repeat(32),
        "%3Cscript%3Ealert(1)%3C/script%3E%E2%80%AE".to_owned() + &"x".repeat(500),
        "%3Cb%3E".repeat(30)
    );
    page.open(&format!("{}/cli-login?{query}", app.url)).await;
    let text = page.text().await;
    assert!(text.contains("<script>alert(1)</script>xxx") && !text.contains('\u{202e}'), "{text}");
    page.check_page("cli-login-hostile").await;
}
