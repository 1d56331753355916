//! Each function's policy in the template beside the calls that the function makes.
//!
//! Goal: no function needs what its policy lacks, and no policy allows what no journey needs. Each function finds AWS at an
//! address of its own, where its calls are noted as the rights that they take. That none lacks one is looked at after every
//! journey through functions; that none is spare, here.

use std::collections::BTreeSet;

use serde_json::Value;
use statewright_gateway::Between;
use statewright_shared::adapters::SystemIds;
use statewright_shared::context::Settings;
use statewright_shared::domain::ids::{StackId, UpdateId};
use statewright_shared::layout::ItemKeys;
use statewright_shared::layout::keys::{events_blob, log_blob, snapshot_blob};
use statewright_shared::layout::record::{Record as _, put};
use statewright_shared::layout::records::Due;
use statewright_shared::ports::{Expect, Ids as _};
use statewright_tests::app::{ORG, START, TestApp};
use statewright_tests::aws::{Right, StandIn};
use statewright_tests::cli::PulumiCli;
use statewright_tests::functions::{Functions, Setting};
use statewright_tests::policies::policies;

use crate::journeys;
use crate::support::{UP, bench, export};

/// What a policy allows though no journey here needs it, with the reason.
const UNUSED: &[(&str, &str, &str, &str)] = &[(
    "head",
    "dynamodb:Query",
    "STACK#",
    "a version that is not kept any more is told from one that never was by the oldest that is",
)];

/// A stack that was removed, and an update that nobody ended, both before the clock of the functions came to be.
async fn past(app: TestApp) {
    let cli = PulumiCli::new().backend(&app.url).token(&app.token);
    cli.bench_project("old", &[("count", "3"), ("secretEvery", "2"), ("inputBytes", "20000")]);
    cli.run(["stack", "init", "dev"]).await.assert_success();
    cli.run(UP).await.assert_success();
    cli.run(["stack", "rm", "--yes", "--force"]).await.assert_success();

    // Its journal has entries that are too long for items.
    cli.bench_project("left", &[("count", "2")]);
    cli.run(["stack", "init", "dev"]).await.assert_success();
    cli.run(UP).await.assert_success();
    cli.bench_project(
        "left",
        &[("count", "3"), ("payloadBytes", "40000"), ("chain", "true"), ("delayMs", "2000")],
    );
    let up = cli.spawn(UP);
    // The one before it is in the journal then.
    up.says("item-00001 updating").await;
    drop(app);
    up.kill().await;
}

#[tokio::test]
async fn policies_allow_what_functions_do_and_nothing_else() {
    let stand_in = StandIn::of_this_process();
    let names = stand_in.fresh_store().await.1;
    past(TestApp::aws_long_ago(&stand_in.url, &names).await).await;
    let setting = Setting { names: Some(names), ..Setting::default() };
    let functions = Functions::start_as(setting).await;
    swept(&functions).await;
    journeys::life(&functions).await;
    said_nothing_secret(&functions);

    // Where nothing is remembered, most is read.
    let cold = Functions::start_as(Setting {
        between: Between::Killed,
        settings: Settings { delta_cutoff_bytes: Some(1_000), ..Settings::DEFAULT },
        ..Setting::default()
    })
    .await;
    everything_else(&cold).await;

    let mut wrong = Vec::new();
    for (name, allowed) in policies() {
        let needed: BTreeSet<Right> =
            [&functions, &cold].iter().flat_map(|functions| functions.aws(name).rights()).collect();
        let lacking = needed.difference(allowed);
        wrong.extend(lacking.map(|right| format!("{name} lacks {} on {}", right.action, right.on)));
        for right in allowed.difference(&needed) {
            let is_known = UNUSED.iter().any(|(function, action, on, _)| {
                function == name && *action == right.action && *on == right.on
            });
            if !is_known {
                wrong.push(format!("{name} need not have {} on {}", right.action, right.on));
            }
        }
    }
    wrong.sort();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The sweep ends what was left, erases what was removed, and deletes a blob of each class that has been due for long.
async fn swept(functions: &Functions) {
    let (stack, update) = (StackId::new(SystemIds.uuid()), UpdateId::new(SystemIds.uuid()));
    for key in [snapshot_blob(stack, update), log_blob(update, 1), events_blob(update, 1, 2)] {
        let due = Due::Blob { key: key.to_string(), stack: Some(stack) };
        let write = put(ItemKeys::due(&due, START), Expect::Any, SystemIds.revision(), due.encode());
        functions.context.ledger.commit(vec![write]).await.unwrap();
    }
    let swept = functions.sweep().await.unwrap();
    assert_eq!((&swept["ended"], &swept["failed"]), (&1.into(), &0.into()), "{swept}");
    functions.sweep().await.unwrap();
}

/// What a stack's life does not show: states saved whole and in deltas, an import, a cancelled update and its events, and lists.
async fn everything_else(functions: &Functions) {
    let cli =
        bench(functions, "whole", &[("count", "3"), ("payloadBytes", "40000"), ("secretEvery", "2")]).await;
    cli.clone().env("PULUMI_DISABLE_JOURNALING", "true").run(UP).await.assert_success();
    let http = reqwest::Client::new();
    let get = async |path: &str| {
        let request = http.get(format!("{}{path}", functions.url));
        let answer =
            request.header("Authorization", format!("token {}", functions.token)).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        answer.text().await.unwrap()
    };
    let look_at_update = async || {
        let stack: Value = serde_json::from_str(&get(&format!("/api/stacks/{ORG}/whole/dev")).await).unwrap();
        let update = stack["activeUpdate"].as_str().unwrap();
        get(&format!("/api/stacks/{ORG}/whole/dev/update/{update}/events")).await;
        get(&format!("/api/stacks/{ORG}/whole/dev/update/{update}")).await;
    };
    look_at_update().await;
    cli.write("state.json", &export(&cli).await.to_string());
    cli.run(["stack", "import", "--file", "state.json"]).await.assert_success();
    cli.run(["stack", "ls"]).await.assert_success();
    cli.run(["stack", "output", "--show-secrets"]).await.assert_success();

    let project = [("count", "8"), ("payloadBytes", "40000"), ("chain", "true"), ("delayMs", "3000")];
    cli.bench_project("whole", &project);
    let up = cli.spawn(UP);
    // The one before it is in the journal then.
    up.says("item-00001 updating").await;
    export(&cli).await;
    cli.run(["cancel", "--yes"]).await.assert_success();
    up.wait().await.assert_failure();

    get("/readyz").await;
    get(&format!("/api/stacks/{ORG}/whole/dev/updates/latest/timeline")).await;
    look_at_update().await;
}

/// I7: what functions write is lines of JSON, and none holds a credential, a secret or a state.
fn said_nothing_secret(functions: &Functions) {
    let lines = functions.lines();
    let mut metrics = BTreeSet::new();
    let mut requests = 0;
    for (function, line) in &lines {
        let value: Value =
            serde_json::from_str(line).unwrap_or_else(|_| panic!("{function}: no JSON: {line}"));
        for secret in [
            functions.token.as_str(),
            "swu1.",
            "in-the-dark",
            "ciphertext",
            "plain-",
            "X-Amz-",
            "\"deployment\"",
        ] {
            assert!(!line.contains(secret), "{function} said {secret:?}: {line}");
        }
        if value["target"] == "access" {
            requests += 1;
            for field in ["request_id", "duration_ms", "service_calls", "method", "route", "status"] {
                assert!(!value[field].is_null(), "{function}: no {field}: {line}");
            }
        }
        for directive in value["_aws"]["CloudWatchMetrics"].as_array().into_iter().flatten() {
            assert_eq!(directive["Dimensions"], serde_json::json!([[]]), "each dimension costs");
            let names = directive["Metrics"].as_array().into_iter().flatten();
            metrics.extend(names.map(|metric| metric["Name"].as_str().unwrap().to_owned()));
        }
    }
    assert!(requests > 20, "requests are told: {requests}");
    assert!(lines.iter().any(|(_, line)| line.contains("\"update.begin\"")), "audit records are told");
    assert!(metrics.contains("Sweeps") && metrics.len() <= 10, "{metrics:?}");
}
