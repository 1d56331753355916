//! Parts of a stack: targeted, replaced on request, refreshed and destroyed with the program's help, imported.

use serde_json::{Value, json};
use statewright_tests::app::TestApp;

use crate::BACKEND;
use crate::support::{
    DESTROY, REFRESH, UP, assert_says, bench, export, history, item, names, resources, sorted, stack, urn,
};

/// The `value` and the time of creation of each item of a state, in its order.
fn items(state: &Value) -> Vec<(Value, Value)> {
    let items = resources(state).into_iter().filter(|resource| resource["type"] == "bench:index:Item");
    items.map(|item| (item["inputs"]["value"].clone(), item["created"].clone())).collect()
}

#[tokio::test]
async fn only_what_is_targeted_is_changed_replaced_and_destroyed() {
    let app = TestApp::on(BACKEND).await;
    let cli = bench(&app, "parts", &[("count", "4"), ("chain", "true"), ("value", "a")]).await;
    cli.run(UP).await.assert_success();
    let first = items(&export(&cli).await);
    let second = urn("parts", "item-00001");

    cli.bench_project("parts", &[("count", "4"), ("chain", "true"), ("value", "b")]);
    let up = cli.run(UP.into_iter().chain(["--target", &second])).await.assert_success();
    assert_says(&up, &["~ 1 updated"]);
    let state = export(&cli).await;
    assert_eq!(
        names(&state),
        ["parts-dev", "default", "item-00000", "item-00001", "item-00002", "item-00003"]
    );
    let targeted = items(&state);
    assert_eq!(targeted.iter().map(|(value, _)| value.clone()).collect::<Vec<_>>(), ["a", "b", "a", "a"]);
    assert!(targeted.iter().zip(&first).all(|(now, then)| now.1 == then.1), "{targeted:?}");

    let up = cli.run(UP.into_iter().chain(["--target-replace", &second])).await.assert_success();
    assert_says(&up, &["+-1 replaced"]);
    let replaced = items(&export(&cli).await);
    let anew: Vec<_> = replaced.iter().zip(&first).map(|(now, then)| now.1 != then.1).collect();
    assert_eq!(anew, [false, true, false, false]);

    let last = urn("parts", "item-00003");
    let up = cli.run(UP.into_iter().chain(["--replace", &last])).await.assert_success();
    assert_says(&up, &["+-1 replaced", "~ 2 updated"]);
    let all = items(&export(&cli).await);
    assert!(all.iter().all(|(value, _)| value == "b"), "{all:?}");

    let third = urn("parts", "item-00002");
    let refused = cli.run(DESTROY.into_iter().chain(["--target", &third])).await.assert_failure();
    assert_says(&refused, &["will be destroyed but was not specified in --target list"]);
    assert_eq!(items(&export(&cli).await), all);
    let with_dependents = ["--target", &third, "--target-dependents"];
    let destroy = cli.run(DESTROY.into_iter().chain(with_dependents)).await.assert_success();
    assert_says(&destroy, &["- 2 deleted", "3 unchanged"]);
    assert_eq!(names(&export(&cli).await), ["parts-dev", "default", "item-00000", "item-00001"]);
    assert_eq!(history(&cli).await[..2], ["destroy succeeded", "destroy failed"]);
    assert_eq!(stack(&app, "parts").await["version"], 6);
}

#[tokio::test]
async fn a_refresh_and_a_destroy_ask_the_program() {
    let app = TestApp::on(BACKEND).await;
    let gone = [("count", "4"), ("chain", "true"), ("failAt", "1"), ("failOn", "gone")];
    let cli = bench(&app, "asked", &gone).await;
    cli.run(UP).await.assert_success();
    let run = |command: [&'static str; 3]| cli.run(command.into_iter().chain(["--run-program"]));

    let refresh = run(REFRESH).await.assert_success();
    assert_says(&refresh, &["- 1 deleted", "5 unchanged"]);
    let state = export(&cli).await;
    assert_eq!(names(&state), ["asked-dev", "default", "item-00000", "item-00002", "item-00003"]);
    assert_eq!(item(&state, "item-00002").get("dependencies"), None);

    let up = cli.run(UP.into_iter().chain(["--refresh", "--run-program"])).await.assert_success();
    assert_says(&up, &["+ 1 created", "4 unchanged"]);
    let state = export(&cli).await;
    assert_eq!(
        names(&state),
        ["asked-dev", "default", "item-00000", "item-00001", "item-00002", "item-00003"]
    );
    assert_eq!(item(&state, "item-00002")["dependencies"], json!([urn("asked", "item-00001")]));
    let destroy = run(DESTROY).await.assert_success();
    assert_says(&destroy, &["- 5 deleted"]);
    let past = ["destroy succeeded", "update succeeded", "refresh succeeded", "update succeeded"];
    assert_eq!(history(&cli).await, past);
    // The program registers its stack once more, without resources.
    assert_eq!(names(&export(&cli).await), Vec::<String>::new());
}

#[tokio::test]
async fn a_refresh_that_is_only_previewed_changes_nothing() {
    let app = TestApp::on(BACKEND).await;
    let cli = bench(&app, "looked", &[("count", "2"), ("failAt", "1"), ("failOn", "gone")]).await;
    cli.run(UP).await.assert_success();
    let before = (stack(&app, "looked").await, export(&cli).await);
    for more in [&["--preview-only"][..], &["--preview-only", "--diff"]] {
        let preview = cli.run(["refresh"].iter().chain(more)).await.assert_success();
        assert_says(&preview, &["- 1 to delete", "2 unchanged"]);
    }
    let preview = cli.run(["refresh", "--preview-only", "--json"]).await.assert_success().json();
    assert_eq!(preview["changeSummary"], json!({ "delete": 1, "same": 2 }));
    let preview = cli.run(["preview", "--diff", "--refresh"]).await.assert_success();
    assert_says(&preview, &["+ 1 to create"]);
    assert_eq!((stack(&app, "looked").await, export(&cli).await), before);
    assert_eq!(history(&cli).await, ["update succeeded"]);
}

#[tokio::test]
async fn many_resources_are_imported_from_a_file() {
    let app = TestApp::on(BACKEND).await;
    let cli = bench(&app, "taken", &[("count", "2"), ("chain", "true")]).await;
    let entry =
        |name: &str| json!({ "type": "bench:index:Item", "name": name, "id": format!("found-{name}") });
    let file = json!({ "resources": [entry("item-00000"), entry("item-00001")] });
    cli.write("import.json", &file.to_string());
    let import = ["import", "--file", "import.json", "--generate-code=false"];
    let preview = cli.run(import.into_iter().chain(["--preview-only"])).await.assert_success();
    assert_says(&preview, &["= 2 to import"]);
    assert_eq!(names(&export(&cli).await), Vec::<String>::new());
    cli.run(import.into_iter().chain(["--yes"])).await.assert_success();
    let state = export(&cli).await;
    assert_eq!(sorted(&state), ["default", "item-00000", "item-00001", "taken-dev"]);
    assert_eq!(item(&state, "item-00001")["id"], "found-item-00001");
    assert_eq!(item(&state, "item-00001")["protect"], true);
    assert_eq!(history(&cli).await, ["resource-import succeeded"]);
    let up = cli.run(UP).await.assert_success();
    assert_says(&up, &["~ 2 updated"]);
}
