//! A typical stack: a program of more than 200 resources with secrets, from its first `up` to its end.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;
use statewright_tests::app::TestApp;

use crate::BACKEND;
use crate::support::{
    DESTROY, REFRESH, UP, assert_says, export, export_version, names, pending, resources, stack, yaml,
};

const COUNT: usize = 200;

/// Items in rows of ten, each depending on the one before it in its row; every fourth has a secret.
fn program(value: &str, count: usize) -> String {
    let mut text = String::from("resources:\n");
    for item in 0..count {
        writeln!(text, "  item-{item}:\n    type: bench:index:Item\n    properties:\n      value: {value}")
            .unwrap();
        if item % 4 == 0 {
            writeln!(text, "      secretValue:\n        fn::secret: plain-secret-{item}").unwrap();
        }
        if item % 10 != 0 {
            writeln!(text, "    options:\n      dependsOn:\n        - ${{item-{}}}", item - 1).unwrap();
        }
    }
    text.push_str("outputs:\n  hidden: ${item-0.secretValue}\n  value: ${item-1.value}\n");
    text
}

fn items(state: &Value) -> Vec<Value> {
    resources(state).into_iter().filter(|resource| resource["type"] == "bench:index:Item").collect()
}

#[tokio::test]
async fn two_hundred_resources_with_secrets_from_up_to_destroy() {
    let app = TestApp::on(BACKEND).await;
    let cli = yaml(&app, "big", &program("one", COUNT)).await.patience(Duration::from_secs(300));

    let up = cli.run(UP).await.assert_success();
    assert_says(&up, &[&format!("+ {} created", COUNT + 1)]);
    let first = export(&cli).await;
    assert_eq!(names(&first).len(), COUNT + 2);

    cli.yaml_project("big", &program("two", COUNT + 10));
    let up = cli.run(UP).await.assert_success();
    assert_says(&up, &["+ 10 created", &format!("~ {COUNT} updated")]);
    let refresh = cli.run(REFRESH).await.assert_success();
    assert_says(&refresh, &["unchanged"]);

    let state = export(&cli).await;
    let items = items(&state);
    assert_eq!(items.len(), COUNT + 10);
    assert_eq!(pending(&state), Vec::<String>::new());
    assert!(items.iter().all(|item| item["inputs"]["value"] == "two"));
    let with_secret =
        items.iter().filter(|item| item["inputs"]["secretValue"]["ciphertext"].is_string()).count();
    assert_eq!(with_secret, (COUNT + 10).div_ceil(4));
    assert!(!state.to_string().contains("plain-secret"));
    let outputs = cli.run(["stack", "output", "--json"]).await.assert_success().json();
    assert_eq!(outputs, serde_json::json!({"hidden": "[secret]", "value": "two"}));
    let outputs = cli.run(["stack", "output", "--json", "--show-secrets"]).await.assert_success().json();
    assert_eq!(outputs, serde_json::json!({"hidden": "plain-secret-0", "value": "two"}));

    cli.run(DESTROY).await.assert_success();
    assert_eq!(names(&export(&cli).await), Vec::<String>::new());
    assert_eq!(stack(&app, "big").await["version"], 4);
    assert_eq!(resources(&export_version(&cli, 1).await), resources(&first));
}
