//! Stacks of the SAM template, deployed once, again, and next to each other; and the reasons for which a
//! deployment is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::adapters::aws::{
    FEATURES, LIFECYCLE, Names, Outcome, Then, examine, set_up, tls_only,
};
use statewright_shared::adapters::{State, SystemClock};
use statewright_shared::api::routes::Group;
use statewright_tests::app::ORG;
use statewright_tests::aws::{StandIn, clients};
use statewright_tests::functions::Functions;
use statewright_tests::tools;

use crate::deployment::{Deployment, alarms};
use crate::journeys;
use crate::templates::file;

/// A function's answer to a request, with the status.
async fn ask(functions: &Functions, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let answer = reqwest::Client::new()
        .request(method, format!("{}{path}", functions.url))
        .header("Authorization", format!("token {}", functions.token))
        .json(body)
        .send()
        .await
        .unwrap();
    let status = answer.status().as_u16();
    (status, serde_json::from_str(&answer.text().await.unwrap()).unwrap_or(Value::Null))
}

/// A state without resources, different for each number.
fn state(number: u32) -> Value {
    let manifest = json!({ "time": format!("2026-01-01T00:00:{number:02}Z"), "magic": "", "version": "" });
    json!({ "version": 3, "deployment": { "manifest": manifest, "resources": [] } })
}

/// Makes the stack `dev` of a project, with this many versions.
async fn stack(functions: &Functions, project: &str, versions: u32) {
    let path = format!("/api/stacks/{ORG}/{project}");
    let body = json!({ "stackName": "dev" });
    assert_eq!(ask(functions, Method::POST, &path, &body).await.0, 200);
    for number in 1..=versions {
        let (status, answer) =
            ask(functions, Method::POST, &format!("{path}/dev/import"), &state(number)).await;
        assert_eq!(status, 200, "{answer}");
    }
}

/// Whether a version of the stack `dev` exists.
async fn has_version(functions: &Functions, project: &str, version: u32) -> bool {
    let path = format!("/api/stacks/{ORG}/{project}/dev/export/{version}");
    ask(functions, Method::GET, &path, &Value::Null).await.0 == 200
}

#[tokio::test]
async fn the_sam_template_creates_a_correct_store() {
    let deployment = Deployment::create("whole", &[]).await.unwrap();
    let (stand_in, names) = (StandIn::of_this_process(), deployment.names().await);
    let clients = clients(&stand_in.url).await;
    // `aws setup` finds nothing to change, and `doctor` nothing that is not good.
    let done = set_up(&clients, &names, &SystemClock).await.unwrap();
    let made: Vec<&str> =
        done.iter().filter(|step| step.outcome != Outcome::Found).map(|step| step.what).collect();
    // The three that the stand-in's CloudFormation ignores.
    assert_eq!(made, [FEATURES[0], FEATURES[1], "lifecycle of objects"]);
    let found = examine(&clients, &names, &SystemClock).await;
    assert!(found.iter().all(|finding| finding.state == State::Good), "{found:?}");
    journeys::life(&Functions::start_as(deployment.setting().await).await).await;
}

/// One list: what `aws setup` sets, what `doctor` checks, and what the templates have.
#[tokio::test]
async fn setup_doctor_and_templates_agree_on_settings() {
    let sam = tools::template("sam", &file("sam/template.yaml"));
    let properties = |name: &str| &sam["Resources"][name]["Properties"];
    let rules = properties("Bucket")["LifecycleConfiguration"]["Rules"].as_array().unwrap();
    assert_eq!(rules.len(), LIFECYCLE.len());
    for (rule, wanted) in rules.iter().zip(LIFECYCLE) {
        let mut expected = json!({ "Id": wanted.id, "Status": "Enabled" });
        if !wanted.prefix.is_empty() {
            expected["Prefix"] = wanted.prefix.into();
        }
        match wanted.then {
            Then::AbortUploads(days) => {
                expected["AbortIncompleteMultipartUpload"] = json!({ "DaysAfterInitiation": days });
            }
            Then::Expire(days) => expected["ExpirationInDays"] = days.into(),
            Then::InfrequentAccess(days) => {
                expected["Transitions"] =
                    json!([{ "StorageClass": "STANDARD_IA", "TransitionInDays": days }]);
            }
        }
        assert_eq!(rule, &expected);
    }
    let mut policy = tls_only("ARN");
    policy["Resource"] = json!([{ "Fn::GetAtt": ["Bucket", "Arn"] }, { "Fn::Sub": "${Bucket.Arn}/*" }]);
    assert_eq!(properties("BucketPolicy")["PolicyDocument"]["Statement"], json!([policy]));
    assert_eq!(properties("BucketPolicy")["Bucket"], json!({ "Ref": "Bucket" }));
    let table = properties("Table");
    assert_eq!(table["TimeToLiveSpecification"], json!({ "AttributeName": "ttl", "Enabled": true }));
    assert_eq!(table["PointInTimeRecoverySpecification"], json!({ "PointInTimeRecoveryEnabled": true }));
    assert_eq!(table["DeletionProtectionEnabled"], true);
    assert_eq!(properties("Key")["EnableKeyRotation"], true);
    assert_eq!(
        properties("Bucket")["BucketEncryption"]["ServerSideEncryptionConfiguration"][0]["ServerSideEncryptionByDefault"],
        json!({ "SSEAlgorithm": "AES256" })
    );
    let closed = properties("Bucket")["PublicAccessBlockConfiguration"].as_object().unwrap();
    assert!(closed.len() == 4 && closed.values().all(|closed| *closed == true), "{closed:?}");

    let (clients, names) = (clients(&StandIn::of_this_process().url).await, StandIn::fresh_names());
    let done = set_up(&clients, &names, &SystemClock).await.unwrap();
    let parts = ["table", "bucket", "key"];
    let set: Vec<&str> = done.iter().map(|step| step.what).filter(|what| !parts.contains(what)).collect();
    assert_eq!(set, FEATURES);
    let found = examine(&clients, &names, &SystemClock).await;
    let checked: BTreeSet<&str> = found.iter().map(|finding| finding.what).collect();
    let missing: Vec<&&str> = FEATURES.iter().filter(|what| !checked.contains(**what)).collect();
    assert_eq!(missing, [&""; 0], "doctor does not check it");
}

/// A version of a function depends on its code alone unless something adds to it, and the API may call a version.
#[tokio::test]
async fn changed_parameters_reach_the_called_functions() {
    for (name, warm) in [("cold", "0"), ("warm", "1")] {
        let warm = ("ProvisionedConcurrency", warm);
        let deployment = Deployment::create(name, &[warm]).await.unwrap();
        let functions = Functions::start_as(deployment.setting().await).await;
        stack(&functions, "kept", 3).await;
        let scan = json!({ "TableName": deployment.names().await.table });
        let makes_old_versions_due = async || {
            let items = StandIn::of_this_process().call("DynamoDB_20120810.Scan", &scan).await;
            items.to_string().contains("#versions-")
        };
        assert!(!makes_old_versions_due().await, "all versions are kept by default");
        let before = deployment.environments().await;

        let changed = [("KeepVersions", "2"), ("KeepLogs", "30d"), ("OtlpEndpoint", "http://127.0.0.1:1")];
        let memory = [("HeadMemory", "4096"), ("OtherMemory", "1024"), ("SweepMemory", "4096")];
        let parameters = [&changed[..], &memory, &[warm]].concat();
        let deployment = deployment.update(&parameters).await;
        let after = deployment.environments().await;
        for (function, variables) in &after {
            let mut expected = before[function].clone();
            for (variable, value) in
                ["STATEWRIGHT_KEEP_VERSIONS", "STATEWRIGHT_KEEP_LOGS", "OTEL_EXPORTER_OTLP_ENDPOINT"]
                    .into_iter()
                    .zip(changed.map(|(_, value)| value))
            {
                expected.insert(variable.to_owned(), value.to_owned());
            }
            assert_eq!(variables, &expected, "{name}: {function}");
            let memory = if ["head", "sweep"].contains(&function.as_str()) { 4096 } else { 1024 };
            assert_eq!(deployment.function(function).await["MemorySize"], memory, "{name}: {function}");
        }

        // And through the gateway: the function that makes the next version adds a due item for the oldest.
        let functions = Functions::start_as(deployment.setting().await).await;
        let path = format!("/api/stacks/{ORG}/kept/dev/import");
        assert_eq!(ask(&functions, Method::POST, &path, &state(4)).await.0, 200);
        assert!(makes_old_versions_due().await, "{name}: the function keeps all versions");
        let deployment = deployment.update(&[warm]).await;
        assert_eq!(deployment.environments().await, before, "{name}: and back");
    }
}

/// A change outside of a version makes none: CloudFormation would fail on one that equals the last.
#[test]
fn a_version_follows_exactly_the_parameters_of_its_function() {
    let sam = tools::template("sam", &file("sam/template.yaml"));
    let resources = sam["Resources"].as_object().unwrap();
    for (function, version) in [("Head", "HeadVersion"), ("Log", "LogVersion")] {
        let named = |value: &Value| parameters(value, &sam["Parameters"]);
        let mut of_function = named(&resources[function]["Properties"]);
        // New code makes a version by itself.
        assert!(of_function.remove("Architecture"));
        let version = resources.iter().find(|(name, _)| name.starts_with(version)).unwrap().1;
        assert_eq!(named(&version["Properties"]["Description"]), of_function, "{function}");
    }
}

/// The parameters that a part of a template names.
fn parameters(value: &Value, known: &Value) -> BTreeSet<String> {
    let named: Vec<&str> = match value {
        Value::Object(members) if members.contains_key("Ref") => {
            members["Ref"].as_str().into_iter().collect()
        }
        Value::Object(members) => {
            return members.values().flat_map(|value| parameters(value, known)).collect();
        }
        Value::Array(all) => return all.iter().flat_map(|value| parameters(value, known)).collect(),
        Value::String(text) => text.split("${").skip(1).filter_map(|rest| rest.split('}').next()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    };
    named.into_iter().filter(|name| known.get(name).is_some()).map(str::to_owned).collect()
}

#[tokio::test]
async fn dev_and_prod_in_one_account_do_not_meet() {
    let (dev, prod) = (
        Deployment::create("team-dev", &[]).await.unwrap(),
        Deployment::create("team-prod", &[]).await.unwrap(),
    );
    let shared: Vec<_> = dev
        .resources
        .iter()
        .filter(|(name, id)| *id != "$default" && prod.resources.get(*name) == Some(id))
        .collect();
    assert_eq!(shared, [], "both have it under one name");
    let (ours, theirs) = (dev.names().await, prod.names().await);
    assert!(ours.table != theirs.table && ours.bucket != theirs.bucket && ours.key != theirs.key);

    // Alarms watch their own deployment, and each sweep reports its own metrics.
    let alarms = alarms().await;
    for (deployment, name) in [(&dev, "team-dev"), (&prod, "team-prod")] {
        for alarm in ["SweepMissing", "PublishFailures", "OldestUnpublished"] {
            let answer = &alarms[&deployment.resources[alarm]];
            assert_eq!(answer["Dimensions"], json!([{ "Name": "Deployment", "Value": name }]), "{answer}");
            assert_eq!(answer["Namespace"], "Statewright");
        }
    }
    let mut running = Vec::new();
    for (deployment, name) in [(&dev, "team-dev"), (&prod, "team-prod")] {
        let functions = Functions::start_as(deployment.setting().await).await;
        functions.sweep().await.unwrap();
        let lines = functions.lines();
        let metrics: Vec<Value> = lines
            .iter()
            .filter_map(|(_, line)| serde_json::from_str::<Value>(line).ok())
            .filter(|line| line["_aws"].is_object())
            .collect();
        let [metrics] = metrics.as_slice() else { panic!("{metrics:?}") };
        assert_eq!(metrics["_aws"]["CloudWatchMetrics"][0]["Dimensions"], json!([["Deployment"]]));
        assert_eq!(metrics["_aws"]["CloudWatchMetrics"][0]["Namespace"], "Statewright");
        assert_eq!((&metrics["Deployment"], &metrics["Sweeps"]), (&json!(name), &json!(1)));
        running.push(functions);
    }

    let [dev, prod] = running.as_slice() else { panic!("two deployments") };
    stack(dev, "shop", 1).await;
    let path = format!("/api/stacks/{ORG}/shop/dev");
    assert_eq!(ask(dev, Method::GET, &path, &Value::Null).await.0, 200);
    assert_eq!(ask(prod, Method::GET, &path, &Value::Null).await.0, 404);
    let foreign = reqwest::Client::new().get(format!("{}{path}", prod.url));
    let foreign = foreign.header("Authorization", format!("token {}", dev.token)).send().await.unwrap();
    assert_eq!(foreign.status(), 401, "a token of one is not valid for the other");
}

/// The lines of a sweep make metrics, and those cost more than everything else in an idle deployment.
#[tokio::test]
async fn without_alarms_there_are_no_metrics_either() {
    let bare = Deployment::create("team-bare", &[("Alarms", "DISABLED")]).await.unwrap();
    let alarms = ["SweepMissing", "PublishFailures", "OldestUnpublished", "ServerErrors", "Throttles"];
    let made: Vec<&str> = alarms.into_iter().filter(|name| bare.resources.contains_key(*name)).collect();
    assert_eq!(made, [""; 0]);
    let functions = Functions::start_as(bare.setting().await).await;
    functions.sweep().await.unwrap();
    let lines = functions.lines();
    assert!(
        !lines.is_empty() && lines.iter().all(|(_, line)| !line.contains("CloudWatchMetrics")),
        "{lines:?}"
    );

    // With the alarms again, it writes them.
    let watched = bare.update(&[]).await;
    assert!(alarms.iter().all(|name| watched.resources.contains_key(*name)), "{:?}", watched.resources);
    assert_eq!(watched.environments().await["sweep"]["STATEWRIGHT_METRICS"], "ENABLED");
}

/// The recipe of the page: restore, `aws setup`, deploy with the existing resources.
#[tokio::test]
async fn a_restored_table_is_served_by_functions() {
    let (stand_in, restored) = (StandIn::of_this_process(), "shop-as-it-was");
    let deployment = Deployment::create("restored", &[]).await.unwrap();
    let before = deployment.names().await;
    let functions = Functions::start_as(deployment.setting().await).await;
    stack(&functions, "shop", 2).await;
    let clients = clients(&stand_in.url).await;
    // What the stand-in's CloudFormation ignores.
    set_up(&clients, &before, &SystemClock).await.unwrap();
    let path = format!("/api/stacks/{ORG}/shop/dev");
    let sealed = json!({ "plaintext": "aHVudGVyMg==" });
    let sealed = ask(&functions, Method::POST, &format!("{path}/encrypt"), &sealed).await.1;

    let restore = json!({
        "SourceTableName": before.table, "TargetTableName": restored, "UseLatestRestorableTime": true,
    });
    stand_in.call("DynamoDB_20120810.RestoreTableToPointInTime", &restore).await;
    // The mistake: from here on the old table is worthless.
    let removed = ask(&functions, Method::DELETE, &format!("{path}?force=true"), &Value::Null).await;
    assert!(removed.0 < 300, "{removed:?}");
    assert_eq!(ask(&functions, Method::GET, &path, &Value::Null).await.0, 404);

    let names = Names { table: restored.to_owned(), ..before.clone() };
    let made = |done: &[statewright_shared::adapters::aws::Done]| {
        let made = done.iter().filter(|step| step.outcome == Outcome::Made);
        made.map(|step| step.what).collect::<Vec<_>>()
    };
    // What a restored table lacks.
    assert_eq!(made(&set_up(&clients, &names, &SystemClock).await.unwrap()), FEATURES[..3]);
    assert_eq!(made(&set_up(&clients, &names, &SystemClock).await.unwrap()), [""; 0]);

    let (table, bucket) = (
        format!("arn:aws:dynamodb:us-east-1:000000000000:table/{restored}"),
        format!("arn:aws:s3:::{}", before.bucket),
    );
    let given = [("TableArn", table.as_str()), ("BucketArn", &bucket), ("KmsKeyArn", before.key.as_str())];
    let deployment = deployment.update(&given).await;
    assert_eq!(deployment.names().await, names);
    for kept in ["Table", "Bucket", "BucketPolicy", "Key"] {
        assert_eq!(deployment.resources.get(kept), None, "{kept} does not belong to the stack any more");
    }
    assert_eq!(made(&set_up(&clients, &names, &SystemClock).await.unwrap()), [""; 0], "all of it stays");
    let scan = json!({ "TableName": before.table, "Limit": 1 });
    stand_in.call("DynamoDB_20120810.Scan", &scan).await;

    let functions = Functions::start_as(deployment.setting().await).await;
    assert_eq!(ask(&functions, Method::GET, &path, &Value::Null).await.0, 200);
    assert!(has_version(&functions, "shop", 2).await, "the bucket has the blobs that the table names");
    let opened = ask(&functions, Method::POST, &format!("{path}/decrypt"), &sealed).await;
    assert_eq!(opened, (200, json!({ "plaintext": "aHVudGVyMg==" })));
    // A second deployment may take it over as well.
    let other = Deployment::create("restored-elsewhere", &given).await.unwrap();
    assert_eq!(other.names().await, names);
    assert_eq!(other.resources.get("Table"), None);
}

#[tokio::test]
async fn parameters_that_do_not_go_together_are_refused_at_once() {
    let table = "arn:aws:dynamodb:us-east-1:000000000000:table/t";
    let store = tools::template("cfn", &file("pulumi/store.yaml"));
    for (parameters, words) in [
        (&[("DomainName", "state.example.com")][..], "DomainName needs CertificateArn"),
        (&[("ConsoleDomainName", "app.example.com")], "ConsoleDomainName is a second name"),
        (&[("TableArn", table)], "TableArn needs BucketArn and KmsKeyArn"),
        (&[("TableArn", table), ("BucketArn", "arn:aws:s3:::b")], "TableArn needs BucketArn and KmsKeyArn"),
        (&[("BucketArn", "arn:aws:s3:::b")], "BucketArn needs TableArn"),
        (&[("TableArn", "t")], "TableArn"),
    ] {
        for refused in [
            Deployment::create("refused", parameters).await.err(),
            Deployment::of(&store, "refused-store", parameters).await.err(),
        ] {
            assert!(refused.as_ref().is_some_and(|refused| refused.contains(words)), "{refused:?}");
        }
    }
    let refused = Deployment::create("refused", &[("OtlpEndpoint", "collector:4318")]).await.err();
    assert!(refused.as_ref().is_some_and(|refused| refused.contains("OtlpEndpoint")), "{refused:?}");
}

/// The inputs of the Pulumi program from its store, whether created or existing.
#[tokio::test]
async fn the_store_of_the_pulumi_program_is_made_or_given() {
    let store = tools::template("cfn", &file("pulumi/store.yaml"));
    let made = Deployment::of(&store, "made-store", &[]).await.unwrap();
    let output = |deployment: &Deployment, name: &str| deployment.outputs[name].clone();
    assert_eq!(output(&made, "Table"), made.resources["Table"]);
    assert_eq!(output(&made, "Bucket"), made.resources["Bucket"]);
    assert!(output(&made, "KeyArn").starts_with("arn:aws:kms:"));
    let arns = ["TableArn", "BucketArn", "KeyArn"].map(|name| output(&made, name));
    let given = [("TableArn", &*arns[0]), ("BucketArn", &*arns[1]), ("KmsKeyArn", &*arns[2])];
    let given = Deployment::of(&store, "given-store", &given).await.unwrap();
    assert_eq!(given.outputs, made.outputs);
    assert_eq!(given.resources.keys().collect::<Vec<_>>(), ["Nothing"]);
}

/// Bytes of a function's resource policy. Source: AWS Lambda quotas.
const POLICY_BYTES_MAX: usize = 20 * 1024;

/// Routes of an API, and integrations of one. Source: Amazon API Gateway quotas for HTTP APIs.
const ROUTES_MAX: usize = 300;

/// Resources of a stack. Source: AWS CloudFormation quotas.
const RESOURCES_MAX: usize = 500;

/// Bytes of a template in a bucket. Source: AWS CloudFormation quotas.
const TEMPLATE_BYTES_MAX: usize = 1_000_000;

/// Fails when little of a limit is left, before a deployment does.
#[track_caller]
fn assert_room(what: &str, used: usize, max: usize) {
    let room = max.saturating_sub(used);
    assert!(room * 5 >= max, "{what}: {used} of {max} are used, which leaves room for {room}");
}

#[tokio::test]
async fn templates_have_room_below_the_limits_of_aws() {
    let deployment = Deployment::create("limits", &[("ProvisionedConcurrency", "1")]).await.unwrap();
    for name in tools::function_names() {
        let policies = deployment.policies(name).await;
        assert!(!policies.is_empty(), "no policy allows calls of {name}");
        for policy in policies {
            assert_room(&format!("bytes of the policy of {name}"), policy.len(), POLICY_BYTES_MAX);
        }
    }
    let sam = tools::template("sam", &file("sam/template.yaml"));
    let body = &sam["Resources"]["Api"]["Properties"]["Body"];
    let routes: usize =
        body["paths"].as_object().unwrap().values().map(|path| path.as_object().unwrap().len()).sum();
    assert_room("routes of the SAM template", routes, ROUTES_MAX);
    assert_room("resources of the SAM template", sam["Resources"].as_object().unwrap().len(), RESOURCES_MAX);
    assert_room("bytes of the SAM template", sam.to_string().len(), TEMPLATE_BYTES_MAX);

    let pulumi = tools::template("yaml", &file("pulumi/Pulumi.yaml"));
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for resource in pulumi["resources"].as_object().unwrap().values() {
        *kinds.entry(resource["type"].as_str().unwrap()).or_default() += 1;
    }
    assert_eq!(kinds["aws:apigatewayv2:Route"], routes);
    assert_room("routes of the program", kinds["aws:apigatewayv2:Route"], ROUTES_MAX);
    // The functions that the API calls, and the sweep; two of them have aliases that are kept warm.
    assert_eq!(
        kinds["aws:lambda:Permission"],
        Group::ALL.len() + 1 + 2,
        "permissions by route would fill a policy"
    );
}

/// CI templates and `sam sync` begin with it.
#[test]
fn sam_build_accepts_the_built_functions() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    fs::create_dir_all(at("infra/sam")).unwrap();
    fs::copy(file("sam/template.yaml"), at("infra/sam/template.yaml")).unwrap();
    for name in tools::function_names() {
        let package = at(&format!("target/lambda/statewright-{name}"));
        fs::create_dir_all(&package).unwrap();
        fs::write(package.join("bootstrap"), name).unwrap();
    }
    let python = tools::template_python();
    let built = Command::new(python)
        .arg(python.with_file_name("sam"))
        .args(["build", "--template", "infra/sam/template.yaml"])
        .current_dir(folder.path())
        .env("AWS_DEFAULT_REGION", "us-east-1")
        .env("SAM_CLI_TELEMETRY", "0")
        .env("HOME", folder.path())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&[built.stdout, built.stderr].concat()).into_owned();
    assert!(built.status.success(), "{printed}");
    // The result must lead to the same packages.
    let template = tools::template("cfn", &at(".aws-sam/build/template.yaml"));
    for name in tools::function_names() {
        let (first, rest) = name.split_at(1);
        let function = &template["Resources"][format!("{}{rest}", first.to_uppercase())]["Properties"];
        let package = at(".aws-sam/build").join(function["CodeUri"].as_str().unwrap());
        assert_eq!(fs::read_to_string(package.join("bootstrap")).unwrap(), name);
    }
}

/// The sources of credentials for people are as large as everything else of AWS in a function.
#[test]
fn functions_are_built_without_credentials_for_people() {
    let alias = fs::read_to_string(file("../.cargo/config.toml")).unwrap();
    for name in tools::function_names() {
        assert!(
            alias.contains(&format!("\"-p\", \"statewright-{name}\"")),
            "`cargo functions` builds {name}"
        );
    }
    let tree = |package: &str, features: &[&str]| {
        let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
        let answer = Command::new(cargo)
            .args(["tree", "--offline", "--edges", "normal", "--prefix", "none", "--package", package])
            .args(features)
            .current_dir(file(".."))
            .output()
            .unwrap();
        assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
        String::from_utf8(answer.stdout).unwrap()
    };
    let logins = ["aws-sdk-sso ", "aws-sdk-ssooidc ", "aws-sdk-signin "];
    for name in tools::function_names() {
        let tree = tree(&format!("statewright-{name}"), &[]);
        assert!(tree.contains("aws-config "), "{tree}");
        assert!(logins.iter().all(|login| !tree.contains(login)), "{name}: {tree}");
    }
    let program = tree("statewright", &["--features", "aws"]);
    assert!(logins.iter().all(|login| program.contains(login)), "{program}");
}
