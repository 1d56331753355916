//! Tests of the harness itself, with Pulumi's own backend in a folder.

use serde_json::Value;
use statewright_tests::cli::{PulumiCli, processes_of};
use statewright_tests::tools;

/// The types and names of a deployment's resources, in its order.
fn resources(export: &Value) -> Vec<String> {
    export["deployment"]["resources"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|resource| resource["urn"].as_str()?.split("::").last().map(str::to_owned))
        .collect()
}

#[tokio::test]
async fn a_bench_program_goes_up_and_down() {
    let cli = PulumiCli::new().diy("correct horse");
    cli.bench_project(
        "harness",
        &[("count", "5"), ("chain", "true"), ("payloadBytes", "64"), ("secretEvery", "2")],
    );
    cli.run(["stack", "init", "dev"]).await.assert_success();

    let up = cli.run(["up", "--yes", "--skip-preview", "--parallel", "1"]).await.assert_success();
    cli.snapshots().bind(|| {
        insta::assert_snapshot!(up, @r"
$ pulumi up --yes --skip-preview --parallel 1
exit code: 0
----- stdout -----
Updating (dev):

 +  pulumi:pulumi:Stack harness-dev creating ([TIME])
 +  bench:index:Item item-00000 creating ([TIME])
 +  bench:index:Item item-00000 created ([TIME])
 +  bench:index:Item item-00001 creating ([TIME])
 +  bench:index:Item item-00001 created ([TIME])
 +  bench:index:Item item-00002 creating ([TIME])
 +  bench:index:Item item-00002 created ([TIME])
 +  bench:index:Item item-00003 creating ([TIME])
 +  bench:index:Item item-00003 created ([TIME])
 +  bench:index:Item item-00004 creating ([TIME])
 +  bench:index:Item item-00004 created ([TIME])
 +  pulumi:pulumi:Stack harness-dev created ([TIME])
Outputs:
    count: 5

Resources:
    + 6 created

Duration: [TIME]
----- stderr -----
")
    });

    let export = cli.run(["stack", "export"]).await.assert_success().json();
    let mut names = resources(&export);
    names.sort();
    assert_eq!(
        names,
        ["default", "harness-dev", "item-00000", "item-00001", "item-00002", "item-00003", "item-00004"]
    );

    cli.run(["destroy", "--yes", "--skip-preview"]).await.assert_success();
    let export = cli.run(["stack", "export"]).await.assert_success().json();
    assert_eq!(resources(&export), Vec::<String>::new());
}

#[tokio::test]
async fn a_yaml_program_goes_up_and_down() {
    let cli = PulumiCli::new().diy("correct horse");
    cli.yaml_project(
        "harness",
        "resources:
  first:
    type: bench:index:Item
    properties:
      secretValue: hunter2
  second:
    type: bench:index:Item
    properties:
      value: ${first.rev}
outputs:
  seen: ${second.value}
  secret: ${first.secretValue}
",
    );
    cli.run(["stack", "init", "dev"]).await.assert_success();
    cli.run(["up", "--yes", "--skip-preview"]).await.assert_success();

    let outputs = cli.run(["stack", "output", "--json"]).await.assert_success().json();
    assert_eq!(outputs, serde_json::json!({"seen": 1, "secret": "[secret]"}));

    cli.run(["destroy", "--yes", "--skip-preview"]).await.assert_success();
    let export = cli.run(["stack", "export"]).await.assert_success().json();
    assert_eq!(resources(&export), Vec::<String>::new());
}

/// A killed client must leave a pending operation.
#[tokio::test]
async fn a_killed_client_leaves_its_operation_pending() {
    let cli = PulumiCli::new().diy("correct horse");
    // Two items in a row, each of which takes ten minutes: the first is begun and not ended when the client dies.
    cli.bench_project("harness", &[("count", "2"), ("chain", "true"), ("delayMs", "600000")]);
    cli.run(["stack", "init", "dev"]).await.assert_success();

    let up = cli.spawn(["up", "--yes", "--skip-preview"]);
    up.says("item-00000 creating").await;
    // The client's output may be ahead of what it has saved; each check takes a client's start.
    let mut looks = 0;
    while pending(&cli).await.is_empty() {
        looks += 1;
        assert!(looks < 100, "it prints that it creates, but does not save it");
    }
    let killed = up.kill().await;
    assert_eq!(killed.code, None, "{killed}");
    assert_eq!(pending(&cli).await, ["creating item-00000"]);

    let home = cli.home_dir().to_owned();
    drop(cli);
    assert_eq!(processes_of(&home), [], "the plugins outlived the client's home");
}

/// The pending operations in the stack's state.
async fn pending(cli: &PulumiCli) -> Vec<String> {
    let export = cli.run(["stack", "export"]).await.assert_success().json();
    let operations = export["deployment"]["pending_operations"].as_array().cloned().unwrap_or_default();
    operations
        .iter()
        .map(|operation| {
            let urn = operation["resource"]["urn"].as_str().unwrap_or_default();
            format!(
                "{} {}",
                operation["type"].as_str().unwrap_or_default(),
                urn.rsplit("::").next().unwrap_or_default()
            )
        })
        .collect()
}

#[tokio::test]
async fn an_interrupted_client_winds_down_by_itself() {
    let cli = PulumiCli::new().diy("correct horse");
    cli.bench_project("harness", &[("count", "2"), ("chain", "true"), ("delayMs", "600000")]);
    cli.run(["stack", "init", "dev"]).await.assert_success();

    let up = cli.spawn(["up", "--yes", "--skip-preview"]);
    up.says("item-00000 creating").await;
    // The first interrupt waits for the running step, here for ten minutes; the second does not.
    up.interrupt();
    up.says("press ^C again").await;
    up.interrupt();
    let stopped = up.wait().await.assert_failure();
    assert!(!stopped.stdout.contains("item-00001"), "{stopped}");
}

#[tokio::test]
async fn a_fresh_client_is_logged_in_nowhere() {
    let cli = PulumiCli::new();
    let refused = cli.run(["whoami"]).await.assert_failure();
    cli.snapshots().bind(|| {
        insta::assert_snapshot!(refused, @r"
$ pulumi whoami
exit code: 3
----- stdout -----

----- stderr -----
error: this command requires logging in; try running `pulumi login` first
")
    });
}

#[tokio::test]
async fn a_failure_differs_from_a_success() {
    let cli = PulumiCli::new().diy("correct horse");
    cli.bench_project("harness", &[("count", "2"), ("failAt", "1")]);
    cli.run(["stack", "init", "dev"]).await.assert_success();
    let failed = cli.run(["up", "--yes", "--skip-preview"]).await.assert_failure();
    assert!(failed.stdout.contains("bench: create failed as asked"), "{failed}");
}

#[tokio::test]
async fn a_paused_client_continues_where_it_stopped() {
    let cli = PulumiCli::new().diy("correct horse");
    cli.bench_project("harness", &[("count", "3"), ("chain", "true"), ("delayMs", "50")]);
    cli.run(["stack", "init", "dev"]).await.assert_success();

    let up = cli.spawn(["up", "--yes", "--skip-preview"]);
    up.says("item-00000 creating").await;
    up.pause();
    // Another client works meanwhile. It reads no state: the paused one may have written half of it.
    cli.run(["whoami"]).await.assert_success();
    up.resume();
    let up = up.wait().await.assert_success();
    assert!(up.stdout.contains("+ 4 created"), "{up}");
}

#[test]
fn the_binary_of_this_tree_is_built_on_demand() {
    assert!(tools::statewright().is_file());
}
