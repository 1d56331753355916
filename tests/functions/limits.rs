//! States that do not fit through the door of a function.

use statewright_tests::app::ORG;
use statewright_tests::functions::Functions;

use crate::support::{UP, bench, export, resources};

/// The state is longer than what a function may answer, and so is a batch of its journal.
#[tokio::test]
async fn a_state_that_is_longer_than_an_answer_is_had_from_the_bucket() {
    let mut functions = Functions::start().await;
    // The client takes its credentials to no other host, and the stand-in for the bucket is on this address too.
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
    let said =
        functions.lines().into_iter().find(|(_, line)| line.contains(signature) || line.contains("X-Amz-"));
    assert_eq!(said, None, "the URL is as good as the state, and stands in no log");

    let second = cli.run(UP).await.assert_success();
    assert!(second.stderr.contains("lets through") || second.stdout.contains("lets through"), "{second}");
}
