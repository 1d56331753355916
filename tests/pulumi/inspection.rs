//! Commands that show something and change nothing.

use serde_json::json;
use statewright_tests::app::TestApp;

use crate::BACKEND;
use crate::support::{UP, assert_says, stack, urn, yaml};

const PROGRAM: &str = "resources:
  first:
    type: bench:index:Item
    properties:
      value: open
      secretValue:
        fn::secret: hunter2
  second:
    type: bench:index:Item
    options:
      dependsOn: [\"${first}\"]
outputs:
  open: ${first.value}
  hidden: ${first.secretValue}
  words: it's \"quoted\"
";

#[tokio::test]
async fn outputs_and_resources_are_shown_in_every_form() {
    let app = TestApp::on(BACKEND).await;
    let cli = yaml(&app, "shown", PROGRAM).await;
    cli.run(UP).await.assert_success();
    let before = stack(&app, "shown").await;

    let one = cli.run(["stack", "output", "open"]).await.assert_success();
    assert_eq!(one.stdout, "open\n");
    let one = cli.run(["stack", "output", "hidden", "--json"]).await.assert_success();
    assert_eq!(one.json(), "[secret]");
    let one = cli.run(["stack", "output", "hidden", "--show-secrets"]).await.assert_success();
    assert_eq!(one.stdout, "hunter2\n");
    let missing = cli.run(["stack", "output", "nothing"]).await.assert_failure();
    assert_says(&missing, &["current stack does not have output property 'nothing'"]);
    let shell = cli.run(["stack", "output", "--shell", "--show-secrets"]).await.assert_success();
    assert_eq!(shell.stdout, "hidden=hunter2\nopen=open\nwords='it'\\''s \"quoted\"'\n");

    cli.run(["stack", "graph", "graph.dot"]).await.assert_success();
    let graph = std::fs::read_to_string(cli.project_dir().join("graph.dot")).unwrap();
    let node = |wanted: &str| {
        let label = format!(" [label=\"{wanted}\"]");
        graph.lines().find_map(|line| line.trim().strip_suffix(';')?.strip_suffix(&label)).unwrap()
    };
    let (first, second) = (node(&urn("shown", "first")), node(&urn("shown", "second")));
    assert!(graph.contains(&format!("{first} -> {second} ")), "{graph}");

    let got = cli.run(["state", "get", "first", "--output", "json"]).await.assert_success().json();
    assert_eq!((&got["id"], &got["inputs"]["secretValue"]), (&json!("id-first"), &json!("[secret]")));
    let got = cli.run(["state", "get", "first", "--show-secrets"]).await.assert_success();
    assert_says(&got, &["hunter2"]);
    let about = cli.run(["about", "--output", "json"]).await.assert_success().json();
    assert_eq!(about["currentStack"]["fullyQualifiedName"], "acme/shown/dev");
    assert_eq!(about["currentStack"]["resources"].as_array().map(Vec::len), Some(4));
    assert_eq!(about["backend"]["user"], "alice");
    assert_eq!(about["backend"]["organizations"], json!(["acme"]));
    assert_eq!(stack(&app, "shown").await, before);
}

/// The client keeps logs of its commands on its machine, under a key that only the server can open.
#[tokio::test]
async fn the_log_of_a_client_is_read_with_the_key_of_its_stack() {
    let app = TestApp::on(BACKEND).await;
    let cli = yaml(&app, "logged", PROGRAM).await;
    cli.run(UP).await.assert_success();
    let listed = cli.run(["logs", "list"]).await.assert_success();
    assert_says(&listed, &["acme/logged/dev"]);
    let file = listed.stdout.lines().find(|line| line.starts_with("acme/logged/dev")).unwrap();
    let file = file.split_whitespace().next_back().unwrap();
    let raw = std::fs::read(file).unwrap();
    assert!(!raw.windows(11).any(|window| window == b"pulumi up -"), "the log is not encrypted");
    app.take_requests();
    let log = cli.run(["logs", "decrypt", file]).await.assert_success();
    assert_says(&log, &["\"Command\":\"pulumi up\""]);
    let requests = app.take_requests();
    assert!(requests.contains(&"POST /api/stacks/acme/logged/dev/decrypt".to_owned()), "{requests:?}");
}

/// The client does not know the address of the console, and says so instead of failing.
#[tokio::test]
async fn a_console_of_unknown_address_is_not_opened() {
    let app = TestApp::on(BACKEND).await;
    let cli = yaml(&app, "console", PROGRAM).await;
    let opened = cli.run(["console"]).await.assert_success();
    assert_says(&opened, &["Please visit:"]);
    let whoami = cli.run(["whoami", "--verbose", "--output", "json"]).await.assert_success().json();
    assert_eq!(whoami, json!({ "user": "alice", "organizations": ["acme"], "url": "" }));
}

/// It knows the operations of Pulumi Cloud by name, and fills in the selected stack.
#[tokio::test]
async fn pulumi_api_finds_operations_by_name() {
    let app = TestApp::on(BACKEND).await;
    let cli = yaml(&app, "named", PROGRAM).await;
    let members = cli.run(["api", "ListOrganizationMembers"]).await.assert_success().json();
    assert_eq!(members["members"][0]["user"]["githubLogin"], "alice", "{members}");
    let arguments = ["api", "AddStackTag", "-F", "name=team", "-F", "value=web"];
    cli.run(arguments).await.assert_success();
    let shown = cli.run(["api", "GetStack"]).await.assert_success().json();
    assert_eq!((&shown["stackName"], &shown["tags"]["team"]), (&json!("dev"), &json!("web")), "{shown}");
    let arguments = ["api", "DeleteStackTag", "-F", "tagName=team"];
    cli.run(arguments).await.assert_success();
    let shown = cli.run(["api", "GetStack"]).await.assert_success().json();
    assert_eq!(shown["tags"]["team"], json!(null), "{shown}");
    let listed = cli.run(["api", "list"]).await.assert_success();
    assert_says(&listed, &["List the members of an organization, with their roles"]);
    let described = cli.run(["api", "describe", "ListUserStacks"]).await.assert_success();
    assert_says(&described, &["continuationToken", "resourceCount"]);
}
