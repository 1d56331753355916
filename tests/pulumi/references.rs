//! One stack reads the outputs of another.

use statewright_tests::app::TestApp;

use crate::BACKEND;
use crate::support::{UP, export, resources, yaml};

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
    assert_eq!(outputs, serde_json::json!({"heard": "hello", "learned": "[secret]"}));
    let outputs = consumer.run(["stack", "output", "--json", "--show-secrets"]).await.assert_success().json();
    assert_eq!(outputs, serde_json::json!({"heard": "hello", "learned": "hunter2"}));
    let state = export(&consumer).await;
    assert!(!state.to_string().contains("hunter2"), "{state}");
    assert!(resources(&state).iter().any(|resource| resource["inputs"]["value"] == "hello"), "{state}");
}
