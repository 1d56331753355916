//! States that are too large for a function.

use std::io::Read as _;

use flate2::read::MultiGzDecoder;
use serde_json::Value;
use statewright_shared::domain::names::Login;
use statewright_shared::services::identity::passwords;
use statewright_tests::app::{ORG, TestApp, USER};
use statewright_tests::aws::StandIn;
use statewright_tests::functions::Functions;
use statewright_tests::visitor::Visitor;

use crate::support::{UP, bench, export, resources};

const PASSWORD: &str = "correct horse battery";

/// The state is longer than a function's largest answer, and so is a batch of its journal.
#[tokio::test]
async fn a_state_that_is_longer_than_an_answer_is_had_from_the_bucket() {
    let mut functions = Functions::start().await;
    // The client sends its credentials to no other host, and the stand-in for the bucket has this address too.
    functions.url = functions.url.replace("127.0.0.1", "localhost");
    let cli = bench(&functions, "large", &[("count", "60"), ("payloadBytes", "120000")]).await;
    cli.run(UP).await.assert_success();
    assert_eq!(resources(&export(&cli).await).len(), 62);

    let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let answer = http
        .get(format!("{}/api/stacks/{ORG}/large/dev/export", functions.url))
        .header("Authorization", format!("token {}", functions.token))
        .header("Accept-Encoding", "gzip")
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 307);
    assert_eq!(answer.headers()["cache-control"], "no-store");
    let location = answer.headers()["location"].to_str().unwrap();
    assert!(location.starts_with("http://127.0.0.1:"), "another host than the API's: {location}");
    assert!(location.contains("X-Amz-Expires=60"), "{location}");
    let signature = location.split("X-Amz-Signature=").nth(1).unwrap().split('&').next().unwrap();
    let message =
        functions.lines().into_iter().find(|(_, line)| line.contains(signature) || line.contains("X-Amz-"));
    assert_eq!(message, None, "the URL gives access to the state, and must not be in a log");

    // A page may follow no redirect to the bucket. It gets the address, and the browser saves what is there.
    let login = Login::parse(USER).unwrap();
    passwords::set(&functions.context, &login, PASSWORD).await.unwrap();
    let mut alice = Visitor::new(&functions.url);
    alice.submit("/signin", &[("login", USER), ("password", PASSWORD)]).await;
    let cookies = alice.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
    let asked = http
        .post(format!("{}/api/stacks/{ORG}/large/dev/export/1", functions.url))
        .header("Cookie", cookies.join("; "))
        .header("X-Statewright-Console", "1")
        .header("Sec-Fetch-Site", "same-origin")
        .header("Accept-Encoding", "gzip");
    let answer = asked.send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert!(!answer.headers().contains_key("content-disposition"), "{answer:?}");
    let url = answer.json::<Value>().await.unwrap()["url"].as_str().unwrap().to_owned();
    let name = "response-content-disposition=attachment%3B%20filename%3D%22large-dev-1.json%22";
    assert!(url.starts_with("http://127.0.0.1:") && url.contains(name), "{url}");
    let mut text = Vec::new();
    let gzip = http.get(&url).send().await.unwrap().bytes().await.unwrap();
    MultiGzDecoder::new(&gzip[..]).read_to_end(&mut text).unwrap();
    assert_eq!(resources(&serde_json::from_slice(&text).unwrap()).len(), 62);

    let second = cli.run(UP).await.assert_success();
    assert!(second.stderr.contains("lets through") || second.stdout.contains("lets through"), "{second}");
}

/// A request that is too large for the gateway goes through a server on the same store.
#[tokio::test]
async fn an_import_too_large_for_functions_uses_a_server() {
    let functions = Functions::start().await;
    let cli = bench(&functions, "large", &[("count", "50"), ("payloadBytes", "160000")]).await;
    let stand_in = StandIn::of_this_process();
    let server = TestApp::of_store(&stand_in.url, functions.names(), &functions.token).await;
    let beside = cli.clone().backend(&server.url);
    // A client selects a stack of one address at a time.
    beside.run(["stack", "select", "dev"]).await.assert_success();
    beside.run(UP).await.assert_success();
    let state = export(&beside).await;
    assert_eq!(resources(&state).len(), 52);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state.json");
    std::fs::write(&file, state.to_string()).unwrap();
    let import = ["stack", "import", "--stack", "dev", "--file", file.to_str().unwrap()];
    let refused = cli.run(import).await;
    assert!(refused.stderr.contains("[0] Request Entity Too Large"), "{refused}");
    beside.run(import).await.assert_success();
    assert_eq!(resources(&export(&beside).await).len(), 52);
    let history = beside.run(["stack", "history", "--json"]).await.assert_success().json();
    assert_eq!(history[0]["kind"], "import", "{history}");
}
