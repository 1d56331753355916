//! Stacks, while a server runs.

use statewright_tests::app::{ORG, TestApp};
use statewright_tests::commands::{document, refused, run, stdout_of};

use crate::support::{Run, export, import, stack, state};

const OLD: &str = "http://127.0.0.1:8080";
const NEW: &str = "https://state.example.com";

/// A table without the times and ids that differ from run to run.
fn plain(table: &str) -> String {
    let is_uuid = |word: &str| word.len() == 36 && word.split('-').map(str::len).eq([8, 4, 4, 4, 12]);
    let is_time = |word: &str| word.len() == 20 && word.as_bytes()[10] == b'T' && word.ends_with('Z');
    let word = |word: &str| match word {
        word if is_uuid(word) => "[id]".to_owned(),
        word if is_time(word) => "[time]".to_owned(),
        word => word.to_owned(),
    };
    let line = |line: &str| line.split_whitespace().map(word).collect::<Vec<_>>().join(" ");
    table.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn people_read_tables() {
    let app = TestApp::embedded().await;
    let folder = app.folder();
    stack(&app, "shop").await;
    stack(&app, "web").await;
    let named = format!("{ORG}/shop/dev");
    import(&app, "shop", &state("shop", OLD, &[("a", 1), ("c", 1)])).await;
    import(&app, "shop", &state("shop", NEW, &[("a", 2), ("b", 1)])).await;
    let run = Run::begin(&app, "shop").await;
    run.append(1, "d").await.expect(204);
    let ask = async |arguments: &[&str]| plain(&stdout_of(folder, arguments).await);
    insta::assert_snapshot!(ask(&["stack", "list"]).await, @r"
    STACK VERSION LAST UPDATE RESOURCES RUNNING
    acme/shop/dev 2 [time] 2 update by alice (first-start) since [time]
    acme/web/dev 0 - - -
    ");
    assert_eq!(ask(&["stack", "list", "--project", "web"]).await.lines().count(), 2);
    run.complete().await.expect(204);
    insta::assert_snapshot!(ask(&["stack", "versions", &named]).await, @r"
    VERSION KIND RESULT ENDED BY RESOURCES CHANGES MESSAGE
    3 update succeeded [time] alice (first-start) 3 Ship it
    2 import succeeded [time] alice (first-start) 2
    1 import succeeded [time] alice (first-start) 2
    ");
    assert_eq!(ask(&["stack", "versions", &named, "--last", "2"]).await.lines().count(), 3);
    insta::assert_snapshot!(stdout_of(folder, &["stack", "diff", &named, "1", "2"]).await, @r"
    - urn:pulumi:dev::shop::pkg:m:T::c
    + urn:pulumi:dev::shop::pkg:m:T::b
    ~ urn:pulumi:dev::shop::pkg:m:T::a
        ~ inputs.size
    ~ secrets_providers.state.url
    ");
    assert_eq!(
        stdout_of(folder, &["stack", "diff", &named, "2", "2"]).await,
        "versions 2 and 2 do not differ\n"
    );
    insta::assert_snapshot!(ask(&["stack", "show-log", &named]).await, @r"
    update [id]
    SLOT AT KIND ENTRIES BYTES PROBLEM
    1 [time] entries 1 195 -
    2 [time] seal - - -
    ");
}

#[tokio::test]
async fn a_version_is_restored_only_if_its_number_exists() {
    let app = TestApp::embedded().await;
    let folder = app.folder();
    stack(&app, "shop").await;
    let named = format!("{ORG}/shop/dev");
    import(&app, "shop", &state("shop", OLD, &[("a", 1)])).await;
    let first = export(&app, "shop").await;
    import(&app, "shop", &state("shop", OLD, &[])).await;
    let words = stdout_of(folder, &["stack", "restore", &named, "--version", "1"]).await;
    assert!(words.starts_with("published version 1 of acme/shop/dev again, as version 3"), "{words}");
    assert_eq!(export(&app, "shop").await, first);
    let words = refused(folder, 1, &["stack", "restore", &named, "--version", "7"]).await;
    assert!(
        words.contains("has no version 7") && words.contains("statewright stack versions STACK"),
        "{words}"
    );

    let update = Run::begin(&app, "shop").await;
    let words = refused(folder, 1, &["stack", "restore", &named, "--version", "1"]).await;
    assert!(words.contains("alice") && words.contains("statewright stack unlock STACK"), "{words}");
    update.complete().await.expect(204);
}

#[tokio::test]
async fn an_unreadable_log_is_shown_and_published_without_its_end() {
    // Its clock is so far behind that no process waits for its publishing.
    let app = TestApp::embedded_on_manual_clock().await;
    let folder = app.folder();
    stack(&app, "shop").await;
    let named = format!("{ORG}/shop/dev");
    let update = Run::begin(&app, "shop").await;
    for (sequence, name) in [(1, "a"), (2, "b"), (3, "c")] {
        update.append(sequence, name).await.expect(204);
    }
    update.damage(2).await;
    update.complete().await.refused(500);

    // A request that finds it gets the command to run.
    let words = refused(folder, 1, &["stack", "unlock", &named, "--yes"]).await;
    assert!(words.contains("a log slot record is damaged") && words.contains("stack show-log"), "{words}");
    let log = document(folder, &["stack", "show-log", &named]).await;
    assert_eq!((&log["lastGood"], &log["update"]), (&1.into(), &update.id.as_str().into()));
    let listed = document(folder, &["stack", "list"]).await;
    assert_eq!(listed["stacks"][0]["running"]["update"], update.id.as_str());

    let publish = ["stack", "publish", &named, "--from-log", "--update", &update.id, "--slot", "1"];
    let words = stdout_of(folder, &publish).await;
    assert!(words.contains("is version 1 of acme/shop/dev, without 2 slots of its log"), "{words}");
    let names: Vec<_> = export(&app, "shop").await["deployment"]["resources"].as_array().unwrap().clone();
    assert_eq!(names.len(), 1);
    let versions = document(folder, &["stack", "versions", &named]).await;
    assert_eq!(versions["versions"][0]["skipped"], 2);
    let words = refused(folder, 1, &publish).await;
    assert!(words.contains("no update holds acme/shop/dev"), "{words}");
}

#[tokio::test]
async fn a_rehome_lists_what_it_skips_and_a_second_one_does_nothing() {
    let app = TestApp::embedded().await;
    let folder = app.folder();
    for project in ["free", "held", "other"] {
        stack(&app, project).await;
        import(&app, project, &state(project, if project == "other" { NEW } else { OLD }, &[("a", 1)])).await;
    }
    let update = Run::begin(&app, "held").await;
    let rehome = ["rehome", "--from", OLD, "--to", "https://state.example.com/", "--json"];

    let dry = run(folder, &[&rehome[..], &["--dry-run"]].concat()).await;
    assert_eq!(dry.code, Some(1), "{}", dry.stderr);
    let dry: serde_json::Value = serde_json::from_str(&dry.stdout).unwrap();
    assert_eq!((&dry["stacks"][0]["outcome"], &dry["stacks"][1]["outcome"]), (&"due".into(), &"held".into()));
    let url = async || export(&app, "free").await["deployment"]["secrets_providers"]["state"]["url"].clone();
    assert_eq!(url().await, OLD);

    let first = run(folder, &rehome).await;
    assert_eq!(first.code, Some(1));
    assert!(first.stderr.starts_with("error: skipped 1 stack: fix the errors above"), "{}", first.stderr);
    let first: serde_json::Value = serde_json::from_str(&first.stdout).unwrap();
    assert_eq!(first["seen"], 3);
    assert_eq!((&first["stacks"][0]["outcome"], &first["stacks"][0]["version"]), (&"done".into(), &2.into()));
    assert_eq!(
        (&first["stacks"][1]["outcome"], first["stacks"].as_array().unwrap().len()),
        (&"held".into(), 2)
    );
    assert_eq!(url().await, NEW);

    update.complete().await.expect(204);
    let second = stdout_of(folder, &rehome[..5]).await;
    assert!(second.contains("acme/held/dev") && !second.contains("acme/free/dev"), "{second}");
    let third = stdout_of(folder, &rehome[..5]).await;
    assert_eq!(third, format!("3 stacks checked; none of them names {OLD}\n"));
}
