//! A person at the console of a real server, while the real client works.

use reqwest::Client as Http;
use serde_json::{Value, json};
use statewright_tests::browser::Chromium;
use statewright_tests::server::Server;

use crate::support::{APPLY, Client, DESTROY, ONE, SLOW, TerraformCli, apply_slowly, go};

/// What the API answers to the first user.
async fn asked(server: &Server, path: &str) -> Value {
    let http = Http::builder().no_proxy().build().unwrap();
    let token = format!("token {}", server.token.as_deref().unwrap());
    let call = http.get(format!("{}{path}", server.url)).header("Authorization", token);
    let answer = call.send().await.unwrap();
    assert_eq!(answer.status(), 200, "{path}");
    answer.json().await.unwrap()
}

/// Confirms in the dialog that is open, with a reason.
async fn confirms(page: &mut Chromium, reason: &str, action: &str) {
    page.fill("[role=alertdialog] textarea", reason).await;
    page.click(&format!("[role=alertdialog] button:text-is('{action}')")).await;
    page.sees("body:not(:has([role=alertdialog]))").await;
}

/// Restores a version on the open page of versions, by this button.
async fn restores(page: &mut Chromium, button: &str) {
    page.click(button).await;
    page.click("[role=alertdialog] button:text-is('Restore it')").await;
    page.sees("body:not(:has([role=alertdialog]))").await;
}

#[tokio::test]
async fn a_person_mends_at_the_console_what_a_client_left() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(&folder.path().join("data"), "127.0.0.1:0").await;
    server.says("For the console, open this link in a browser.").await;
    let link = server.says("    ").await;
    let cli = TerraformCli::new(Client::Tofu, server.token.as_deref().unwrap());
    cli.backend_at(&server.url, "main/net");
    cli.write("main.tf", ONE);
    cli.run(["init"]).await.assert_success();
    cli.run(APPLY).await.assert_success();

    // The link of the first start signs the person in.
    let mut page = Chromium::start();
    page.open(&link).await;
    page.click("main button").await;
    page.arrives(&format!("{}/user/settings/account", server.url)).await;
    let state = format!("{}/main/-/states/net/default", server.url);
    page.open(&state).await;
    page.sees("h1:has-text('default')").await;

    // A run that hangs: its lock is shown with its holder, and taken from it with a reason.
    cli.write("main.tf", &format!("{ONE}{SLOW}"));
    let apply = apply_slowly(&cli).await;
    let shown = asked(&server, "/api/orgs/main/tfstates/net/default").await;
    let who = shown["lock"]["who"].as_str().unwrap();
    assert!(who.contains('@'), "{shown}");
    page.open(&state).await;
    page.sees(&format!(".notice:has-text('Locked for Apply') strong:text-is('{who}')")).await;
    page.click(".notice button:text-is('Unlock')").await;
    confirms(&mut page, "the run hangs", "Unlock").await;
    page.sees("main:not(:has-text('Locked for'))").await;

    // It goes on, and its write is refused. The server has what it sent, and the person makes it the next version.
    go(&cli);
    let failed = apply.wait().await.assert_failure();
    assert!(failed.stderr.contains("409"), "{failed}");
    page.open(&format!("{state}/versions")).await;
    let of_state = format!("/api/tfstates/{}", shown["id"].as_str().unwrap());
    let rejected = asked(&server, &format!("{of_state}/rejected")).await["rejected"][0].clone();
    let serial = rejected["serial"].as_u64().unwrap();
    let refused = "[aria-label='Refused writes'] tr:has-text('its lock was taken away')";
    page.sees(&format!("{refused}:has(td:text-is('{serial}'))")).await;
    restores(&mut page, &format!("{refused} button:text-is('Restore')")).await;
    page.sees("tr:has(.strong:text-is('2')):has-text('Refused write, accepted')").await;
    let plan = cli.run(["plan", "-detailed-exitcode"]).await.assert_success();
    assert!(plan.stdout.contains("No changes"), "{plan}");

    // The version before it, again, is what the next run begins with.
    restores(&mut page, "[aria-label='Restore version 1']").await;
    page.sees("tr:has(.strong:text-is('3')):has-text('Restored: 1')").await;
    let listed = cli.run(["state", "list"]).await.assert_success();
    assert_eq!(listed.stdout.trim(), "terraform_data.a");

    // A state that replaces it by force is marked.
    let mut pushed = cli.run(["state", "pull"]).await.assert_success().json();
    (pushed["serial"], pushed["lineage"]) = (json!(1), json!("another"));
    cli.write("push.tfstate", &pushed.to_string());
    cli.run(["state", "push", "-force", "push.tfstate"]).await.assert_success();
    page.open(&format!("{state}/versions")).await;
    page.sees("tr:has(.strong:text-is('4')):has-text('serial fell'):has-text('other lineage')").await;

    // A lock by hand stops a run, which prints the reason.
    page.click("button:has-text('Lock by hand')").await;
    confirms(&mut page, "we move the network", "Lock it").await;
    page.sees(".notice:has-text('Locked by hand'):has-text('we move the network')").await;
    let refused = cli.run(APPLY).await.assert_failure();
    assert!(refused.stderr.contains("we move the network"), "{refused}");
    page.click(".notice button:text-is('Unlock')").await;
    confirms(&mut page, "it is moved", "Unlock").await;

    // A protection stops a destroy, and the page says why its write was refused.
    page.click("button:has-text('Protect')").await;
    confirms(&mut page, "it is production", "Protect it").await;
    page.sees(".notice:has-text('it is production')").await;
    cli.run(DESTROY).await.assert_failure();
    page.open(&format!("{state}/versions")).await;
    page.sees("[aria-label='Refused writes'] tr:has-text('the state is protected')").await;
    for reason in ["the run hangs", "it is moved"] {
        page.open(&format!("{}/main/-/audit?event=state.unlock", server.url)).await;
        page.sees(&format!("tr:has-text('admin'):has-text('{reason}')")).await;
    }
    page.has_no_problem().await;
}
