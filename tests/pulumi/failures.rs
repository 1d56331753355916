//! Updates that fail, and how users continue.

use statewright_tests::app::TestApp;

use crate::BACKEND;
use crate::support::{DESTROY, UP, assert_says, bench, export, names, stack};

#[tokio::test]
async fn resources_made_before_a_failure_are_kept() {
    let app = TestApp::on(BACKEND).await;
    let failing = [("count", "6"), ("chain", "true"), ("failAt", "5")];
    let cli = bench(&app, "halfway", &failing).await;
    let failed = cli.run(UP).await.assert_failure();
    assert_says(&failed, &["bench: create failed as asked"]);
    let made: Vec<_> = (0..5).map(|item| format!("item-0000{item}")).collect();
    let mut expected = vec!["halfway-dev".to_owned(), "default".to_owned()];
    expected.extend(made);
    assert_eq!(names(&export(&cli).await), expected);
    assert_eq!(stack(&app, "halfway").await["version"], 1);
    let history = cli.run(["stack", "history", "--json"]).await.assert_success().json();
    assert_eq!(history[0]["result"], "failed", "{history}");

    cli.bench_project("halfway", &[("count", "6"), ("chain", "true")]);
    let up = cli.run(UP).await.assert_success();
    assert_says(&up, &["+ 1 created", "6 unchanged"]);
    expected.push("item-00005".to_owned());
    assert_eq!(names(&export(&cli).await), expected);
    cli.run(DESTROY).await.assert_success();
    assert_eq!(names(&export(&cli).await), Vec::<String>::new());
}

#[tokio::test]
async fn a_replacement_that_cannot_delete_the_old_keeps_both() {
    let app = TestApp::on(BACKEND).await;
    let stuck = [("count", "1"), ("replaceKey", "a"), ("failAt", "0"), ("failOn", "delete")];
    let cli = bench(&app, "stuck", &stuck).await;
    cli.run(UP).await.assert_success();

    cli.bench_project("stuck", &[("count", "1"), ("replaceKey", "b")]);
    let failed = cli.run(UP).await.assert_failure();
    assert_says(&failed, &["bench: delete failed as asked"]);
    let mut state = export(&cli).await;
    assert_eq!(names(&state), ["stuck-dev", "default", "item-00000", "item-00000 (delete)"]);
    let keys = |at: usize| state["deployment"]["resources"][at]["inputs"]["replaceKey"].clone();
    assert_eq!((keys(2), keys(3)), ("b".into(), "a".into()));

    // The cause is fixed: here by editing the setting that makes the deletion fail out of the state.
    let old = &mut state["deployment"]["resources"][3];
    for properties in ["inputs", "outputs"] {
        old[properties].as_object_mut().unwrap().remove("failOn");
    }
    cli.write("state.json", &state.to_string());
    cli.run(["stack", "import", "--file", "state.json"]).await.assert_success();
    cli.run(UP).await.assert_success();
    assert_eq!(names(&export(&cli).await), ["stuck-dev", "default", "item-00000"]);
    cli.run(DESTROY).await.assert_success();
}
