//! One stack reads the outputs of another.

use serde_json::json;
use statewright_shared::domain::role::Role;
use statewright_tests::app::TestApp;

use crate::BACKEND;
use crate::support::{UP, assert_says, export, resources, yaml};

#[tokio::test]
async fn a_stack_reads_the_outputs_of_another() {
    let app = TestApp::on(BACKEND).await;
    let producer = yaml(
        &app,
        "producer",
        "resources:
  item:
    type: bench:index:Item
    properties:
      secretValue: hunter2
outputs:
  greeting: hello
  password: ${item.secretValue}
",
    )
    .await;
    producer.run(UP).await.assert_success();

    let consumer = yaml(
        &app,
        "consumer",
        "resources:
  other:
    type: pulumi:pulumi:StackReference
    properties:
      name: acme/producer/dev
  item:
    type: bench:index:Item
    properties:
      value: ${other.outputs[\"greeting\"]}
      secretValue: ${other.outputs[\"password\"]}
outputs:
  heard: ${other.outputs[\"greeting\"]}
  learned: ${other.outputs[\"password\"]}
",
    )
    .await;
    app.take_requests();
    consumer.run(UP).await.assert_success();
    let requests = app.take_requests();
    assert!(requests.contains(&"GET /api/stacks/acme/producer/dev/outputs".to_owned()), "{requests:?}");

    let outputs = consumer.run(["stack", "output", "--json"]).await.assert_success().json();
    assert_eq!(outputs, json!({"heard": "hello", "learned": "[secret]"}));
    let outputs = consumer.run(["stack", "output", "--json", "--show-secrets"]).await.assert_success().json();
    assert_eq!(outputs, json!({"heard": "hello", "learned": "hunter2"}));
    let state = export(&consumer).await;
    assert!(!state.to_string().contains("hunter2"), "{state}");
    assert!(resources(&state).iter().any(|resource| resource["inputs"]["value"] == "hello"), "{state}");

    // A person who may preview the consumer, and has no grant on the producer.
    let bob = app.member_with_role(Role::None, "bob", "ci").await;
    let grant = |on: &str| json!({ "to": "user:bob", "on": on, "role": "plan" });
    let grants = "/api/orgs/acme/grants";
    app.post(grants, &grant("consumer/*")).send().await.expect(200);
    let bob = consumer.clone().token(&bob);
    let refused = bob.run(["preview"]).await.assert_failure();
    assert_says(&refused, &["acme/producer/dev"]);
    app.post(grants, &grant("producer/dev")).send().await.expect(200);
    bob.run(["preview"]).await.assert_success();
}
