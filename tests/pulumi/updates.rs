//! Daily work: preview, up, refresh, replacements, destroy, export, import.

use serde_json::Value;
use statewright_tests::app::TestApp;

use crate::BACKEND;
use crate::support::{
    DESTROY, REFRESH, UP, assert_says, bench, export, export_version, names, pending, resources, stack,
};

/// The `value` of each item of a state, in its order.
fn values(state: &Value) -> Vec<Value> {
    let items = resources(state).into_iter().filter(|resource| resource["type"] == "bench:index:Item");
    items.map(|item| item["inputs"]["value"].clone()).collect()
}

#[tokio::test]
async fn a_stack_lives_from_its_preview_to_its_destruction() {
    let app = TestApp::on(BACKEND).await;
    let cli = bench(&app, "life", &[("count", "2"), ("chain", "true"), ("value", "a")]).await;

    let before = stack(&app, "life").await;
    let preview = cli.run(["preview"]).await.assert_success();
    assert_says(&preview, &["+ 3 to create"]);
    assert_eq!(stack(&app, "life").await, before, "a preview left something behind");
    assert_eq!(before["version"], 0);
    assert_eq!(names(&export(&cli).await), Vec::<String>::new());

    let up = cli.run(["up", "--yes"]).await.assert_success();
    cli.snapshots().bind(|| {
        insta::assert_snapshot!(up, @r"
$ pulumi up --yes
exit code: 0
----- stdout -----
Previewing update (dev)


 +  pulumi:pulumi:Stack life-dev create
 +  bench:index:Item item-00000 create
 +  bench:index:Item item-00001 create
 +  pulumi:pulumi:Stack life-dev create
Outputs:
    count: 2

Resources:
    + 3 to create

Updating (dev)


 +  pulumi:pulumi:Stack life-dev creating ([TIME])
 +  bench:index:Item item-00000 creating ([TIME])
 +  bench:index:Item item-00000 created ([TIME])
 +  bench:index:Item item-00001 creating ([TIME])
 +  bench:index:Item item-00001 created ([TIME])
 +  pulumi:pulumi:Stack life-dev created ([TIME])
Outputs:
    count: 2

Resources:
    + 3 created

Duration: [TIME]
----- stderr -----
")
    });
    assert_eq!(stack(&app, "life").await["version"], 1);
    let first = export(&cli).await;
    assert_eq!(names(&first), ["life-dev", "default", "item-00000", "item-00001"]);

    cli.bench_project("life", &[("count", "3"), ("chain", "true"), ("value", "b")]);
    let changed = cli.run(UP).await.assert_success();
    assert_says(&changed, &["+ 1 created", "~ 2 updated"]);
    let second = export(&cli).await;
    assert_eq!(values(&second), ["b", "b", "b"]);

    // Nothing to do: a version of its own with the same state.
    let same = cli.run(UP).await.assert_success();
    assert_says(&same, &["4 unchanged"]);
    assert_eq!(stack(&app, "life").await["version"], 3);
    let third = export(&cli).await;
    assert_eq!(resources(&third), resources(&second));
    assert_eq!(resources(&export_version(&cli, 2).await), resources(&second));
    assert_eq!(resources(&export_version(&cli, 1).await), resources(&first));
    let missing = cli.run(["stack", "export", "--version", "4"]).await.assert_failure();
    assert_says(&missing, &["stack acme/life/dev has no version 4"]);

    let refresh = cli.run(REFRESH).await.assert_success();
    assert_says(&refresh, &["unchanged"]);
    assert_eq!(names(&export(&cli).await), names(&third));

    let before = stack(&app, "life").await;
    cli.run(["destroy", "--preview-only"]).await.assert_success();
    assert_eq!(stack(&app, "life").await, before, "a preview left something behind");
    let destroy = cli.run(["destroy", "--yes"]).await.assert_success();
    assert_says(&destroy, &["- 4 deleted"]);
    assert_eq!(names(&export(&cli).await), Vec::<String>::new());
    assert_eq!(stack(&app, "life").await["version"], 5);
    cli.run(["stack", "rm", "dev", "--yes"]).await.assert_success();
}

/// The engine orders what it refreshed differently from what it created. Every later command would refuse a
/// state in any other order.
#[tokio::test]
async fn a_vanished_resource_is_created_again_in_a_sound_state() {
    let app = TestApp::on(BACKEND).await;
    let gone = [("count", "5"), ("chain", "true"), ("failAt", "1"), ("failOn", "gone")];
    let cli = bench(&app, "vanish", &gone).await;
    cli.run(UP).await.assert_success();

    cli.bench_project("vanish", &[("count", "4"), ("chain", "true"), ("value", "b")]);
    cli.run(["up", "--yes", "--skip-preview", "--refresh"]).await.assert_success();
    let state = export(&cli).await;
    let expected = ["vanish-dev", "default", "item-00000", "item-00001", "item-00002", "item-00003"];
    assert_eq!(names(&state), expected);
    assert_eq!(values(&state), ["b"; 4]);

    cli.run(REFRESH).await.assert_success();
    assert_eq!(names(&export(&cli).await), expected);
    cli.run(DESTROY).await.assert_success();
    assert_eq!(names(&export(&cli).await), Vec::<String>::new());
}

#[tokio::test]
async fn a_refresh_drops_vanished_resources() {
    let app = TestApp::on(BACKEND).await;
    let cli = bench(&app, "gone", &[("count", "3"), ("failAt", "2"), ("failOn", "gone")]).await;
    cli.run(UP).await.assert_success();
    let refresh = cli.run(REFRESH).await.assert_success();
    assert_says(&refresh, &["- 1 deleted"]);
    let mut left = names(&export(&cli).await);
    left.sort();
    assert_eq!(left, ["default", "gone-dev", "item-00000", "item-00001"]);
}

#[tokio::test]
async fn replacements_in_both_orders_leave_only_the_new() {
    let app = TestApp::on(BACKEND).await;
    let cli = bench(&app, "replace", &[("count", "2"), ("chain", "true"), ("replaceKey", "a")]).await;
    cli.run(UP).await.assert_success();

    for (key, first) in [("b", "false"), ("c", "true")] {
        let settings =
            [("count", "2"), ("chain", "true"), ("replaceKey", key), ("deleteBeforeReplace", first)];
        cli.bench_project("replace", &settings);
        let up = cli.run(UP).await.assert_success();
        assert_says(&up, &["+-2 replaced"]);
        let state = export(&cli).await;
        assert_eq!(names(&state), ["replace-dev", "default", "item-00000", "item-00001"]);
        let keys: Vec<_> =
            resources(&state)[2..].iter().map(|item| item["inputs"]["replaceKey"].clone()).collect();
        assert_eq!(keys, [key, key]);
    }
    cli.run(DESTROY).await.assert_success();
    assert_eq!(names(&export(&cli).await), Vec::<String>::new());
}

#[tokio::test]
async fn an_exported_state_is_imported() {
    let app = TestApp::on(BACKEND).await;
    let cli = bench(&app, "moved", &[("count", "2"), ("chain", "true")]).await;
    cli.run(UP).await.assert_success();
    let mut state = export(&cli).await;

    // Edited as in an emergency: the last resource is removed.
    state["deployment"]["resources"].as_array_mut().unwrap().pop();
    cli.write("state.json", &state.to_string());
    let import = cli.run(["stack", "import", "--file", "state.json"]).await.assert_success();
    assert_says(&import, &["Import complete."]);
    let imported = export(&cli).await;
    assert_eq!(resources(&imported), resources(&state));
    assert_eq!(pending(&imported), Vec::<String>::new());
    assert_eq!(stack(&app, "moved").await["version"], 2);

    // The next update works on it.
    let up = cli.run(UP).await.assert_success();
    assert_says(&up, &["+ 1 created"]);
    cli.run(["state", "delete", "--yes", "urn:pulumi:dev::moved::bench:index:Item::item-00001"])
        .await
        .assert_success();
    assert_eq!(names(&export(&cli).await), ["moved-dev", "default", "item-00000"]);
}

/// A user who forces a broken state gets it, marked as broken; the one before it is not lost.
#[tokio::test]
async fn a_broken_import_is_undone_by_another() {
    let app = TestApp::on(BACKEND).await;
    let cli = bench(&app, "broken", &[("count", "1")]).await;
    cli.run(UP).await.assert_success();
    let sound = export(&cli).await;

    let mut dangling = sound.clone();
    dangling["deployment"]["resources"].as_array_mut().unwrap().remove(0);
    cli.write("broken.json", &dangling.to_string());
    let refused = cli.run(["stack", "import", "--file", "broken.json"]).await.assert_failure();
    assert_says(&refused, &["refers to missing parent"]);
    assert_eq!(stack(&app, "broken").await["version"], 1);

    cli.run(["stack", "import", "--force", "--file", "broken.json"]).await.assert_success();
    let refused = cli.run(UP).await.assert_failure();
    assert_says(&refused, &["refers to missing parent"]);
    // The client gives up without ending the update that it began.
    let held = cli.run(UP).await.assert_failure();
    assert_says(&held, &["it has not written anything yet", "run `pulumi cancel`"]);
    cli.run(["cancel", "--yes"]).await.assert_success();
    let marked = app.get("/api/stacks/acme/broken/dev/export").send().await.expect(200);
    assert!(marked["deployment"]["metadata"]["integrity_error"].is_object(), "{marked}");

    let old = app.get("/api/stacks/acme/broken/dev/export/1").send().await.expect(200);
    cli.write("sound.json", &old.to_string());
    cli.run(["stack", "import", "--file", "sound.json"]).await.assert_success();
    assert_eq!(resources(&export(&cli).await), resources(&sound));
    cli.run(UP).await.assert_success();
}

#[tokio::test]
async fn resources_are_imported_and_a_single_one_is_destroyed() {
    let app = TestApp::on(BACKEND).await;
    let cli = bench(&app, "adopt", &[("count", "2"), ("chain", "true")]).await;
    let import = [
        "import",
        "bench:index:Item",
        "item-00000",
        "id-0",
        "--yes",
        "--protect=false",
        "--generate-code=false",
    ];
    cli.run(import).await.assert_success();
    assert_eq!(names(&export(&cli).await), ["adopt-dev", "default", "item-00000"]);
    let history = cli.run(["stack", "history", "--json"]).await.assert_success().json();
    assert_eq!(
        (&history[0]["kind"], &history[0]["version"]),
        (&"resource-import".into(), &1.into()),
        "{history}"
    );

    let up = cli.run(UP).await.assert_success();
    assert_says(&up, &["+ 1 created"]);
    let target = "urn:pulumi:dev::adopt::bench:index:Item::item-00001";
    cli.run(["destroy", "--yes", "--skip-preview", "--target", target]).await.assert_success();
    assert_eq!(names(&export(&cli).await), ["adopt-dev", "default", "item-00000"]);
    cli.run(["destroy", "--yes", "--skip-preview", "--remove"]).await.assert_success();
    app.get("/api/stacks/acme/adopt/dev").send().await.refused(404);
}
