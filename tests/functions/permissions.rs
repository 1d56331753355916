//! Each function's policy in the template beside the calls that the function makes.
//!
//! Goal: no function needs what its policy lacks, and no policy allows what no journey needs. Each function finds AWS at an
//! address of its own, where its calls are noted as the rights that they take; the policies are those of the template after
//! SAM made CloudFormation of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use serde_json::Value;
use statewright_shared::adapters::SystemIds;
use statewright_shared::domain::ids::StackId;
use statewright_shared::domain::ids::UpdateId;
use statewright_shared::layout::ItemKeys;
use statewright_shared::layout::keys::snapshot_blob;
use statewright_shared::layout::record::{Record as _, put};
use statewright_shared::layout::records::Due;
use statewright_shared::ports::{Expect, Ids as _};
use statewright_tests::app::{ORG, START, TestApp};
use statewright_tests::aws::{Gateway, Right, StandIn};
use statewright_tests::cli::PulumiCli;
use statewright_tests::functions::{Functions, Setting};
use statewright_tests::tools;

use crate::journeys;
use crate::support::{UP, bench};

/// What a policy allows though no journey here needs it, with the reason.
const UNUSED: &[(&str, &str, &str, &str)] = &[];

fn right(action: &str, on: &str) -> Right {
    Right { action: action.to_owned(), on: on.to_owned() }
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(all) => all.iter().flat_map(texts).collect(),
        Value::Object(sub) => sub.get("Fn::Sub").map(texts).unwrap_or_default(),
        Value::String(text) => vec![text.clone()],
        _ => Vec::new(),
    }
}

/// What a statement allows, in the words of [`Right`].
fn allowed(statement: &Value) -> BTreeSet<Right> {
    assert_eq!(statement["Effect"], "Allow", "{statement}");
    let condition = &statement["Condition"];
    let partitions = texts(&condition["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]);
    let contexts = texts(&condition["ForAllValues:StringEquals"]["kms:EncryptionContextKeys"]);
    let classes: Vec<String> = texts(&statement["Resource"])
        .iter()
        .filter_map(|text| text.strip_prefix("${Bucket.Arn}/"))
        .map(str::to_owned)
        .collect();
    let mut allowed = BTreeSet::new();
    for action in texts(&statement["Action"]) {
        let on = match action.split(':').next() {
            Some("dynamodb") => &partitions,
            Some("kms") => &contexts,
            Some("s3") if action == "s3:ListBucket" => continue,
            Some("s3") => &classes,
            _ => panic!("an action of another service: {action}"),
        };
        assert!(!on.is_empty(), "{action} without a bound: {statement}");
        allowed.extend(on.iter().map(|on| right(&action, on.trim_end_matches('*'))));
    }
    allowed
}

/// What each function may do by the template.
fn policies() -> BTreeMap<&'static str, BTreeSet<Right>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../infra/sam/template.yaml");
    let template = tools::template("sam", &file);
    let of = |name: &str| {
        let (first, rest) = name.split_at(1);
        let role = &template["Resources"][format!("{}{rest}Role", first.to_uppercase())]["Properties"];
        let documents = role["Policies"].as_array().into_iter().flatten();
        let statements = documents.flat_map(|policy| policy["PolicyDocument"]["Statement"].as_array());
        let all: BTreeSet<Right> = statements.flatten().flat_map(allowed).collect();
        assert!(!all.is_empty(), "{name} has no policy: {role}");
        all
    };
    tools::function_names().map(|name| (name, of(name))).collect()
}

/// A stack that was removed, and an update that nobody ended, both before the clock of the functions came to be.
async fn past(app: &TestApp) {
    let cli = PulumiCli::new().backend(&app.url).token(&app.token);
    cli.bench_project("old", &[("count", "3"), ("secretEvery", "2")]);
    cli.run(["stack", "init", "dev"]).await.assert_success();
    cli.run(UP).await.assert_success();
    cli.run(["stack", "rm", "--yes", "--force"]).await.assert_success();

    let left = format!("/api/stacks/{ORG}/left");
    app.post(&left, &serde_json::json!({ "stackName": "dev" })).send().await.expect(200);
    let program = serde_json::json!({ "name": "left", "runtime": "yaml", "main": "", "description": "", "options": {}, "config": {}, "metadata": {} });
    let begin = serde_json::json!({ "updateKind": "update", "journalVersion": 1, "program": program });
    app.post(&format!("{left}/dev/begin-update"), &begin).send().await.expect(200);
}

#[tokio::test]
async fn policies_allow_what_functions_do_and_nothing_else() {
    let stand_in = StandIn::of_this_process();
    let names = stand_in.fresh_store().await.1;
    past(&TestApp::aws(&stand_in.url, &names).await).await;
    let mut gateways = HashMap::new();
    for name in tools::function_names() {
        gateways.insert(name, Gateway::before(stand_in).await);
    }
    let urls: HashMap<&str, String> =
        gateways.iter().map(|(name, gateway)| (*name, gateway.url.clone())).collect();
    let endpoint = move |name: &str| urls[name].clone();
    let setting = Setting { names: Some(names), endpoint: Box::new(endpoint), ..Setting::default() };
    let functions = Functions::start_as(setting).await;

    everything(&functions).await;

    let policies = policies();
    let mut wrong = Vec::new();
    for (name, gateway) in &gateways {
        let (needed, allowed) = (gateway.rights(), &policies[name]);
        wrong.extend(
            needed.difference(allowed).map(|right| format!("{name} lacks {} on {}", right.action, right.on)),
        );
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
    said_nothing_secret(&functions);
}

/// All that functions do.
async fn everything(functions: &Functions) {
    journeys::life(functions).await;
    let cli =
        bench(functions, "second", &[("count", "4"), ("payloadBytes", "30000"), ("secretEvery", "2")]).await;
    cli.run(UP).await.assert_success();
    let swept = functions.sweep().await.unwrap();
    assert_eq!(swept["failed"], 0, "{swept}");
    // A blob that nothing names is due 36 days after that; here it is due now.
    let (stack, update) = (StackId::new(SystemIds.uuid()), UpdateId::new(SystemIds.uuid()));
    let due = Due::Blob { key: snapshot_blob(stack, update).to_string(), stack: Some(stack) };
    let write = put(ItemKeys::due(&due, START), Expect::Any, SystemIds.revision(), due.encode());
    functions.context.ledger.commit(vec![write]).await.unwrap();
    functions.sweep().await.unwrap();
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
