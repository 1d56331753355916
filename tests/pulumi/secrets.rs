//! Secrets: what is hidden, from whom, and what the store contains.

use std::io::Read;

use flate2::read::MultiGzDecoder;
use serde_json::{Map, json};
use statewright_tests::app::TestApp;

use crate::BACKEND;
use crate::support::{
    DESTROY, REFRESH, SECRET_PROGRAM, UP, assert_says, client, export, item, resources, secret,
    write_program, yaml,
};

const PLAINTEXT: &str = "correct-horse-battery-staple";

#[tokio::test]
async fn secrets_are_shown_to_their_owner_and_stored_sealed() {
    let app = TestApp::on(BACKEND).await;
    let cli = yaml(&app, "hidden", SECRET_PROGRAM).await;
    cli.run(["config", "set", "--secret", "password", PLAINTEXT]).await.assert_success();
    let config = std::fs::read_to_string(cli.project_dir().join("Pulumi.dev.yaml")).unwrap();
    assert!(config.contains("secure:") && !config.contains(PLAINTEXT), "{config}");
    let got = cli.run(["config", "get", "password"]).await.assert_success();
    assert_eq!(got.stdout.trim(), PLAINTEXT);

    let up = cli.run(["up", "--yes"]).await.assert_success();
    assert!(!up.stdout.contains(PLAINTEXT), "{up}");
    assert_says(&up, &["hidden: [secret]"]);

    let hidden = cli.run(["stack", "output", "--json"]).await.assert_success().json();
    assert_eq!(hidden, serde_json::json!({"open": "in-the-open", "hidden": "[secret]"}));
    let shown = cli.run(["stack", "output", "--json", "--show-secrets"]).await.assert_success().json();
    assert_eq!(shown, serde_json::json!({"open": "in-the-open", "hidden": PLAINTEXT}));

    let state = export(&cli).await;
    let item = resources(&state).into_iter().find(|resource| resource["type"] == "bench:index:Item").unwrap();
    assert!(item["inputs"]["secretValue"]["ciphertext"].is_string(), "{item}");
    assert!(!state.to_string().contains(PLAINTEXT));
    let shown = cli.run(["stack", "export", "--show-secrets"]).await.assert_success();
    assert!(shown.stdout.contains(PLAINTEXT), "{shown}");

    // Plain values are found in the ledger and among the blobs, so the search would find a plain secret there.
    let open = at_rest_with(&app, "in-the-open").await;
    let in_blobs = |place: &String| place.contains("blobs/");
    assert!(open.iter().any(in_blobs) && !open.iter().all(in_blobs), "{open:?}");
    assert_eq!(at_rest_with(&app, PLAINTEXT).await, Vec::<String>::new());
    let encoded = app.get("/api/stacks/acme/hidden/dev/export").send().await.text();
    assert!(!encoded.contains(PLAINTEXT));
}

/// Users can encrypt secrets by themselves: then the server never gets one, and no request for one.
#[tokio::test]
async fn secrets_may_be_kept_under_a_passphrase() {
    let app = TestApp::on(BACKEND).await;
    let cli = client(&app).env("PULUMI_CONFIG_PASSPHRASE", "of the user alone");
    cli.yaml_project("own", SECRET_PROGRAM);
    cli.run(["stack", "init", "dev", "--secrets-provider", "passphrase"]).await.assert_success();
    cli.run(["config", "set", "--secret", "password", PLAINTEXT]).await.assert_success();
    cli.run(["up", "--yes"]).await.assert_success();
    let shown = cli.run(["stack", "output", "--json", "--show-secrets"]).await.assert_success().json();
    assert_eq!(shown, serde_json::json!({"open": "in-the-open", "hidden": PLAINTEXT}));
    let requests: Vec<_> =
        app.take_requests().into_iter().filter(|request| request.ends_with("crypt")).collect();
    assert_eq!(requests, Vec::<String>::new());

    let wrong = cli.env("PULUMI_CONFIG_PASSPHRASE", "of somebody else");
    let refused = wrong.run(["stack", "output", "--show-secrets"]).await.assert_failure();
    assert_says(&refused, &["incorrect passphrase"]);
}

/// The configuration of a provider is stored in the state like the inputs of any resource.
#[tokio::test]
async fn a_secret_of_a_provider_is_stored_nowhere_in_plain_text() {
    let app = TestApp::on(BACKEND).await;
    let program = "resources:
  own:
    type: pulumi:providers:bench
    properties:
      token:
        fn::secret: correct-horse-battery-staple
  item:
    type: bench:index:Item
    properties:
      value: in-the-open
    options:
      provider: ${own}
  other:
    type: bench:index:Item
";
    let cli = yaml(&app, "provided", program).await;
    // The default provider has the stack's settings.
    cli.run(["config", "set", "--secret", "bench:token", PLAINTEXT]).await.assert_success();
    cli.run(["up", "--yes"]).await.assert_success();
    let state = export(&cli).await;
    for provider in ["own", "default"].map(|name| item(&state, name)) {
        for side in ["inputs", "outputs"] {
            assert!(provider[side]["token"]["ciphertext"].is_string(), "{provider}");
        }
    }
    let used = item(&state, "item")["provider"].to_string();
    assert!(used.contains("::pulumi:providers:bench::own::"), "{used}");
    let shown = cli.run(["stack", "export", "--show-secrets"]).await.assert_success();
    assert!(shown.stdout.contains(PLAINTEXT), "{shown}");
    // The provider is configured from the state alone.
    for command in [REFRESH, DESTROY] {
        cli.run(command).await.assert_success();
    }
    assert_ne!(at_rest_with(&app, "in-the-open").await, Vec::<String>::new());
    assert_eq!(at_rest_with(&app, PLAINTEXT).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_thousand_secrets_are_sealed_and_opened_in_few_calls() {
    let app = TestApp::on(BACKEND).await;
    let cli = client(&app);
    let many = |from: usize, to: usize| {
        (from..to).map(|at| (format!("key-{at}"), secret(&format!("plain-secret-{at}"))))
    };
    let program = json!([
        { "name": "first", "object": many(0, 600).collect::<Map<_, _>>() },
        { "name": "second", "object": many(600, 1200).collect::<Map<_, _>>() },
    ]);
    write_program(&cli, "thousand", &program);
    cli.run(["stack", "init", "dev"]).await.assert_success();
    app.take_requests();
    cli.run(UP).await.assert_success();
    // Inputs and outputs of each, in separate journal entries.
    let sealed = calls(&app);
    assert!(sealed <= 8, "{sealed} calls");
    let state = export(&cli).await;
    assert!(!state.to_string().contains("plain-secret"));
    app.take_requests();
    let shown = cli.run(["stack", "export", "--show-secrets"]).await.assert_success();
    assert_eq!(shown.stdout.matches("plain-secret-").count(), 2400);
    assert_eq!(calls(&app), 3);
    let up = cli.run(UP).await.assert_success();
    assert_says(&up, &["3 unchanged"]);
    cli.run(DESTROY).await.assert_success();
    assert_eq!(at_rest_with(&app, "plain-secret-7").await, Vec::<String>::new());
}

/// The number of calls for secrets since the last call.
fn calls(app: &TestApp) -> usize {
    app.take_requests().iter().filter(|request| request.ends_with("crypt")).count()
}

/// The places of a store that contain this text, directly or in compressed data.
async fn at_rest_with(app: &TestApp, text: &str) -> Vec<String> {
    let text = text.as_bytes();
    let has =
        |bytes: &[u8]| contains(bytes, text) || streams(bytes).any(|inflated| contains(&inflated, text));
    let all = app.at_rest().await.into_iter();
    all.filter(|(_, bytes)| has(bytes)).map(|(place, _)| place).collect()
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}

/// Every gzip stream that begins anywhere in these bytes, as far as it goes.
fn streams(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    let begins = bytes.windows(3).enumerate().filter(|(_, window)| *window == [0x1f, 0x8b, 0x08]);
    begins.map(|(start, _)| {
        let mut inflated = Vec::new();
        // The data after the stream is not compressed, so an error at its end is expected.
        let _ = MultiGzDecoder::new(&bytes[start..]).read_to_end(&mut inflated);
        inflated
    })
}
