//! A server at two addresses: clients use the one, and links of the CLI lead to the other.

use std::path::Path;
use std::process::Stdio;

use reqwest::Client;
use statewright_tests::commands::{run, run_with, statewright};
use statewright_tests::visitor::Visitor;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;

const PASSWORD: &str = "correct horse battery";

/// A server that listens at two addresses, which it prints.
async fn start(folder: &Path) -> (Child, String, String) {
    let serve = ["serve", "--listen", "127.0.0.1:0", "--console-listen", "127.0.0.1:0"];
    let mut server =
        statewright(folder, &serve).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut url = async |beginning: &str| {
        let line = lines.next_line().await.unwrap().unwrap();
        let rest = line.strip_prefix(beginning).unwrap_or_else(|| panic!("{line}"));
        rest.split(',').next().unwrap().to_owned()
    };
    let main = url("Statewright listens on ").await;
    let console = url("The console is also on ").await;
    // Until it has printed the token.
    while lines.next_line().await.unwrap().is_some_and(|line| !line.starts_with("    statewright login ")) {}
    // A server whose output is closed ends.
    tokio::spawn(async move { while lines.next_line().await.is_ok_and(|line| line.is_some()) {} });
    (server, main, console)
}

#[tokio::test]
async fn a_session_of_one_address_works_at_both() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, main, console) = start(folder.path()).await;
    assert_ne!(main, console);
    let set = run_with(folder.path(), &["user", "password", "admin"], &format!("{PASSWORD}\n")).await;
    assert_eq!(set.code, Some(0), "{}", set.stderr);
    let mut admin = Visitor::new(&console);
    // The page that `pulumi login` opens leads to the sign-in, and back.
    let login = "/cli-login?cliSessionPort=43210&cliSessionNonce=00&cliSessionDescription=x";
    let led = admin.open(login).await;
    assert!(led.leads_to.starts_with("/signin?next=/cli-login"), "{led:?}");
    admin
        .submit("/signin", &[("login", "admin"), ("password", PASSWORD)])
        .await
        .leads("/user/settings/account");
    // Cookies ignore ports, so the browser sends the session to both.
    let cookie = format!("statewright={}", admin.cookies["statewright"]);
    let http = Client::builder().no_proxy().build().unwrap();
    let ask = async |url: &str, origin: &str| {
        let request = http.get(format!("{url}/api/user")).header("Cookie", &cookie).header("Origin", origin);
        let request = request.header("X-Statewright-Console", "1").header("Sec-Fetch-Site", "same-origin");
        request.send().await.unwrap().status().as_u16()
    };
    for (url, other) in [(&main, &console), (&console, &main)] {
        let page =
            http.get(format!("{url}/main/-/stacks")).header("Accept", "text/html").send().await.unwrap();
        assert!(page.text().await.unwrap().contains("<div id=\"root\">"), "{url}");
        assert_eq!(ask(url, url).await, 200);
        assert_eq!(ask(url, other).await, 403, "a page of {other} asks {url}");
    }
}

#[tokio::test]
async fn an_address_that_was_chosen_has_to_be_free() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (_server, _, console) = start(folder.path()).await;
    let taken = console.trim_start_matches("http://");
    let refused = run(other.path(), &["serve", "--listen", "127.0.0.1:0", "--console-listen", taken]).await;
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("another address with --console-listen"), "{}", refused.stderr);
}
