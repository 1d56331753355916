//! Renamed stacks: in their project, into another one, into another organization.

use serde_json::{Value, json};
use statewright_tests::app::{ORG, TestApp};

use crate::BACKEND;
use crate::support::{
    REFRESH, UP, assert_says, client, export, export_version, history, outputs, resources, yaml,
};

const PROGRAM: &str = "resources:
  first:
    type: bench:index:Item
    properties:
      secretValue:
        fn::secret: hunter2
      value: in-the-open
  second:
    type: bench:index:Item
    properties:
      value: ${first.value}
    options:
      dependsOn: [\"${first}\"]
outputs:
  open: ${second.value}
  hidden: ${first.secretValue}
";

fn urns(state: &Value) -> Vec<String> {
    resources(state).iter().map(|resource| resource["urn"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_renamed_stack_keeps_its_secrets_and_its_history() {
    let app = TestApp::on(BACKEND).await;
    let cli = yaml(&app, "shop", PROGRAM).await;
    cli.run(["config", "set", "--secret", "password", "correct-horse"]).await.assert_success();
    cli.run(UP).await.assert_success();
    let before = export(&cli).await;

    cli.run(["stack", "rename", "dev2"]).await.assert_success();
    let shown = cli.run(["stack", "--show-name"]).await.assert_success();
    assert_eq!(shown.stdout.trim(), "dev2");
    assert!(cli.project_dir().join("Pulumi.dev2.yaml").exists());
    let renamed: Vec<String> = urns(&before)
        .iter()
        .map(|urn| urn.replace(":dev::", ":dev2::").replace("::shop-dev", "::shop-dev2"))
        .collect();
    assert_eq!(urns(&export(&cli).await), renamed);
    let got = cli.run(["config", "get", "password"]).await.assert_success();
    assert_eq!(got.stdout.trim(), "correct-horse");
    assert_eq!(outputs(&cli).await, json!({ "open": "in-the-open", "hidden": "hunter2" }));

    let up = cli.run(UP).await.assert_success();
    assert_says(&up, &["3 unchanged"]);
    let refresh = cli.run(REFRESH).await.assert_success();
    assert_says(&refresh, &["3 unchanged"]);
    assert_eq!(outputs(&cli).await, json!({ "open": "in-the-open", "hidden": "hunter2" }));
    assert_eq!(
        history(&cli).await,
        ["refresh succeeded", "update succeeded", "rename succeeded", "update succeeded"]
    );

    // The first version is unchanged. It has the old name, and the client asks for its secrets there.
    assert_eq!(export_version(&cli, 1).await, before);
    app.take_requests();
    let shown = cli.run(["stack", "export", "--version", "1", "--show-secrets"]).await.assert_success();
    assert!(shown.stdout.contains("hunter2"), "{shown}");
    let requests = app.take_requests();
    assert!(requests.contains(&"POST /api/stacks/acme/shop/dev/batch-decrypt".to_owned()), "{requests:?}");

    let listed = cli.run(["stack", "ls", "--json"]).await.assert_success().json();
    assert_eq!((listed.as_array().map(Vec::len), &listed[0]["name"]), (Some(1), &json!("dev2")));
    let gone = cli.run(["stack", "select", "dev"]).await.assert_failure();
    assert_says(&gone, &["no stack named 'dev' found"]);

    // The old name is free for another stack.
    cli.run(["stack", "init", "dev"]).await.assert_success();
    let taken = cli.run(["stack", "rename", "dev2"]).await.assert_failure();
    assert_says(&taken, &["already exists"]);
    cli.run(UP).await.assert_success();
    assert_eq!(outputs(&cli).await, json!({ "open": "in-the-open", "hidden": "hunter2" }));
}

#[tokio::test]
async fn a_stack_moves_to_another_project_and_one_without_updates_too() {
    let app = TestApp::on(BACKEND).await;
    let cli = yaml(&app, "shop", PROGRAM).await;
    cli.run(UP).await.assert_success();
    cli.run(["stack", "rename", "acme/store/prod"]).await.assert_success();
    cli.yaml_project("store", PROGRAM);
    cli.run(["stack", "select", "acme/store/prod"]).await.assert_success();
    let up = cli.run(UP).await.assert_success();
    assert_says(&up, &["3 unchanged"]);
    assert_eq!(outputs(&cli).await, json!({ "open": "in-the-open", "hidden": "hunter2" }));
    assert_eq!(history(&cli).await, ["update succeeded", "rename succeeded", "update succeeded"]);
    assert_eq!(
        urns(&export(&cli).await).first().unwrap(),
        "urn:pulumi:prod::store::pulumi:pulumi:Stack::store-prod"
    );
    let tags = cli.run(["stack", "tag", "ls", "--json"]).await.assert_success().json();
    assert_eq!(tags["pulumi:project"], "store");

    cli.run(["stack", "init", "acme/store/new"]).await.assert_success();
    cli.run(["stack", "rename", "newer"]).await.assert_success();
    assert_eq!(history(&cli).await, Vec::<String>::new());
    let listed = cli.run(["stack", "ls", "--json"]).await.assert_success().json();
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|stack| &stack["name"]).collect();
    assert_eq!(names, ["newer", "prod"]);
    cli.run(UP).await.assert_success();
}

#[tokio::test]
async fn another_stack_reads_the_outputs_under_the_new_name() {
    let app = TestApp::on(BACKEND).await;
    let producer = yaml(&app, "producer", PROGRAM).await;
    producer.run(UP).await.assert_success();
    let program = |name: &str| {
        format!(
            "resources:\n  other:\n    type: pulumi:pulumi:StackReference\n    properties:\n      name: {name}\n\
             outputs:\n  learned: ${{other.outputs[\"hidden\"]}}\n"
        )
    };
    let consumer = yaml(&app, "consumer", &program("acme/producer/dev")).await;
    consumer.run(UP).await.assert_success();

    producer.run(["stack", "rename", "prod"]).await.assert_success();
    let missing = consumer.run(UP).await.assert_failure();
    assert_says(&missing, &["acme/producer/dev"]);
    consumer.yaml_project("consumer", &program("acme/producer/prod"));
    consumer.run(UP).await.assert_success();
    assert_eq!(outputs(&consumer).await, json!({ "learned": "hunter2" }));
}

#[tokio::test]
async fn a_transferred_stack_keeps_its_secrets() {
    let app = TestApp::on(BACKEND).await;
    let token = app.member_of(&[ORG, "beta"], "carol", "laptop").await;
    let cli = client(&app).token(&token);
    cli.yaml_project("shop", PROGRAM);
    cli.run(["stack", "init", "acme/shop/dev"]).await.assert_success();
    cli.run(["config", "set", "--secret", "password", "correct-horse"]).await.assert_success();
    cli.run(UP).await.assert_success();
    let transfer = app.post("/api/stacks/acme/shop/dev/transfer", &json!({ "toOrg": "beta" }));
    transfer.token(&token).send().await.expect(200);

    cli.run(["stack", "select", "beta/shop/dev"]).await.assert_success();
    let got = cli.run(["config", "get", "password"]).await.assert_success();
    assert_eq!(got.stdout.trim(), "correct-horse");
    let up = cli.run(UP).await.assert_success();
    assert_says(&up, &["3 unchanged"]);
    assert_eq!(outputs(&cli).await, json!({ "open": "in-the-open", "hidden": "hunter2" }));
    assert_eq!(history(&cli).await, ["update succeeded", "rename succeeded", "update succeeded"]);
}
