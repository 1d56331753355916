//! What is deployed, beside the one route table, and on the stand-in for AWS.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use statewright_shared::adapters::SystemClock;
use statewright_shared::adapters::aws::{Names, Outcome, set_up};
use statewright_shared::api::routes::{Group, ROUTES};
use statewright_tests::aws::{Right, StandIn, clients};
use statewright_tests::functions::{Functions, Setting};
use statewright_tests::policies::{allowed, policies};
use statewright_tests::tools;

use statewright_tests::app::TestApp;

use crate::journeys;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../infra").join(name)
}

/// A text with what lies between each pair of marks replaced by what this makes of a group.
fn with_routes(text: &str, render: impl Fn(Group) -> String) -> String {
    let mut whole = text.to_owned();
    for group in Group::ALL {
        let (begin, end) = (
            format!("# begin: routes of {}\n", group.name()),
            format!("# end: routes of {}\n", group.name()),
        );
        let from = whole.find(&begin).unwrap_or_else(|| panic!("no mark {begin:?}")) + begin.len();
        let until = whole.find(&end).unwrap_or_else(|| panic!("no mark {end:?}"));
        // The mark's own indentation stays before it.
        let until = whole[..until].rfind('\n').map_or(until, |newline| newline + 1);
        whole.replace_range(from..until, &render(group));
    }
    whole
}

/// What a gateway passes to a group's function: the name, the method and the path of each route.
fn doors(group: Group) -> Vec<(String, String, String)> {
    let root = group.root();
    let is_below = |path: &str| root.is_some_and(|root| path.starts_with(root));
    let rows = ROUTES.iter().filter(|row| row.group == group && !is_below(row.path));
    let rows = rows.map(|row| (row.id(), row.method.to_string(), row.path.to_owned()));
    let (first, tail) = group.name().split_at(1);
    let id = format!("Any{}{tail}", first.to_uppercase());
    let rest = root.map(|root| (id, "ANY".to_owned(), format!("{root}{{proxy+}}")));
    rows.chain(rest).collect()
}

fn sam_events(group: Group) -> String {
    let mut text = String::new();
    for (id, method, path) in doors(group) {
        writeln!(text, "        {id}:").unwrap();
        writeln!(text, "          Type: HttpApi").unwrap();
        writeln!(text, "          Properties: {{ ApiId: !Ref Api, Method: {method}, Path: \"{path}\" }}")
            .unwrap();
    }
    if group == Group::DEFAULT {
        writeln!(text, "        Default:").unwrap();
        writeln!(text, "          Type: HttpApi").unwrap();
        writeln!(text, "          Properties: {{ ApiId: !Ref Api }}").unwrap();
    }
    text
}

fn pulumi_routes(group: Group) -> String {
    let mut text = String::new();
    let mut route = |id: &str, key: &str| {
        writeln!(text, "  route{id}:").unwrap();
        writeln!(text, "    type: aws:apigatewayv2:Route").unwrap();
        writeln!(text, "    properties:").unwrap();
        writeln!(text, "      apiId: ${{api.id}}").unwrap();
        writeln!(text, "      routeKey: \"{key}\"").unwrap();
        writeln!(text, "      target: integrations/${{{}Integration.id}}", group.name()).unwrap();
    };
    for (id, method, path) in doors(group) {
        route(&id, &format!("{method} {path}"));
    }
    if group == Group::DEFAULT {
        route("Default", "$default");
    }
    text
}

/// Fails when the file differs from the table; with `STATEWRIGHT_WRITE_TEMPLATES=1` it is written instead.
#[track_caller]
fn compare(name: &str, render: impl Fn(Group) -> String) {
    let path = file(name);
    let text = fs::read_to_string(&path).unwrap();
    let wanted = with_routes(&text, render);
    if std::env::var_os("STATEWRIGHT_WRITE_TEMPLATES").is_some() {
        fs::write(&path, &wanted).unwrap();
    } else {
        assert!(
            text == wanted,
            "infra/{name} is not what the route table says: run this test with STATEWRIGHT_WRITE_TEMPLATES=1"
        );
    }
}

#[test]
fn the_sam_template_has_the_routes_of_the_table() {
    compare("sam/template.yaml", sam_events);
}

#[test]
fn the_pulumi_program_has_the_routes_of_the_table() {
    compare("pulumi/Pulumi.yaml", pulumi_routes);
}

#[test]
fn names_made_of_routes_tell_them_apart() {
    let mut ids: Vec<String> = ROUTES.iter().map(|route| route.id()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), ROUTES.len());
}

/// Runs a linter, without an account, credentials or a home.
fn lint(program: &str, arguments: &[&str]) {
    let home = tempfile::tempdir().unwrap();
    let python = tools::template_python();
    // Through `python`: the first line of the program names a folder that was renamed.
    let linted = std::process::Command::new(python)
        .arg(python.with_file_name(program))
        .args(arguments)
        .arg(file("sam/template.yaml"))
        .env("AWS_DEFAULT_REGION", "us-east-1")
        .env("SAM_CLI_TELEMETRY", "0")
        .env("HOME", home.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&[linted.stdout, linted.stderr].concat()).into_owned();
    assert!(linted.status.success(), "{program}:\n{said}");
}

#[test]
fn linters_find_nothing_in_the_sam_template() {
    lint("cfn-lint", &["-t"]);
    lint("sam", &["validate", "--lint", "-t"]);
}

/// The table, the bucket and the key that the template makes are what functions work on.
#[tokio::test]
async fn functions_work_on_what_the_sam_template_makes() {
    let stand_in = StandIn::of_this_process();
    let mut template = tools::template("sam", &file("sam/template.yaml"));
    let table = template["Resources"]["Table"]["Properties"].clone();
    let kept = ["Table", "Bucket", "BucketPolicy", "Key"];
    template["Resources"].as_object_mut().unwrap().retain(|name, _| kept.contains(&name.as_str()));
    template.as_object_mut().unwrap().remove("Outputs");
    let cloudformation = async |action: &str, more: &[(&str, &str)]| {
        let form = [("Action", action), ("StackName", "statewright"), ("Version", "2010-05-15")];
        let form: Vec<_> = form.iter().chain(more).collect();
        let answer = reqwest::Client::new().post(&stand_in.url).form(&form).send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert_eq!(status, 200, "{action}: {text}");
        text
    };
    cloudformation("CreateStack", &[("TemplateBody", &template.to_string())]).await;
    let physical = async |resource: &str| loop {
        let told = cloudformation("DescribeStackResources", &[("LogicalResourceId", resource)]).await;
        assert!(!told.contains("FAILED"), "{told}");
        let between = |name: &str| {
            let (_, rest) = told.split_once(&format!("<{name}>"))?;
            Some(rest.split_once('<')?.0.to_owned())
        };
        if between("ResourceStatus").as_deref() == Some("CREATE_COMPLETE") {
            return between("PhysicalResourceId").unwrap();
        }
        tokio::task::yield_now().await;
    };
    let names = Names {
        table: physical("Table").await,
        bucket: physical("Bucket").await,
        key: physical("Key").await,
    };

    // `aws setup` finds nothing that it would have made otherwise.
    let done = set_up(&clients(&stand_in.url).await, &names, &SystemClock).await.unwrap();
    let made: Vec<&str> =
        done.iter().filter(|step| step.outcome != Outcome::Found).map(|step| step.what).collect();
    // The two that the stand-in's CloudFormation passes over.
    assert_eq!(made, ["expiry of items", "recovery to any point of 35 days"]);
    assert_eq!(table["TimeToLiveSpecification"], json!({ "AttributeName": "ttl", "Enabled": true }));
    assert_eq!(table["PointInTimeRecoverySpecification"], json!({ "PointInTimeRecoveryEnabled": true }));
    journeys::life(&Functions::start_as(Setting { names: Some(names), ..Setting::default() }).await).await;
}

/// What is in both is the same in both.
#[test]
fn the_pulumi_program_is_as_the_sam_template() {
    let sam = tools::template("sam", &file("sam/template.yaml"));
    let pulumi = tools::template("yaml", &file("pulumi/Pulumi.yaml"));
    let resource = |name: &str| {
        let resource = &pulumi["resources"][name]["properties"];
        assert!(!resource.is_null(), "the program has no {name}");
        resource
    };
    for (name, policy) in policies() {
        let statements = &resource(&format!("{name}Policy"))["policy"]["fn::toJSON"]["Statement"];
        let statements = statements.as_array().unwrap().iter();
        let is_of_logs = |statement: &Value| statement["Action"].to_string().contains("logs:");
        let here: BTreeSet<Right> =
            statements.filter(|statement| !is_of_logs(statement)).flat_map(allowed).collect();
        assert_eq!(&here, policy, "{name}");

        let (first, rest) = name.split_at(1);
        let there = &sam["Resources"][format!("{}{rest}", first.to_uppercase())]["Properties"];
        assert_eq!(resource(name)["timeout"], there["Timeout"], "{name}");
        let parameter = there["MemorySize"]["Ref"].as_str().unwrap();
        let (first, rest) = parameter.split_at(1);
        assert_eq!(resource(name)["memorySize"], format!("${{{}{rest}}}", first.to_lowercase()), "{name}");
    }
    for (parameter, config) in pulumi["config"].as_object().unwrap() {
        let (first, rest) = parameter.split_at(1);
        let there = &sam["Parameters"][format!("{}{rest}", first.to_uppercase())];
        assert_eq!(config["default"], there["Default"], "{parameter}");
    }
    let variables = pulumi["variables"]["environment"].as_object().unwrap();
    let there = sam["Resources"]["Read"]["Properties"]["Environment"]["Variables"].as_object().unwrap();
    assert!(variables.keys().eq(there.keys()), "{variables:?}");
    assert_eq!(resource("table")["ttl"], json!({ "attributeName": "ttl", "enabled": true }));
    let lifecycle =
        sam["Resources"]["Bucket"]["Properties"]["LifecycleConfiguration"]["Rules"].as_array().unwrap();
    let rules = resource("bucketLifecycle")["rules"].as_array().unwrap();
    assert!(
        rules.iter().map(|rule| &rule["id"]).eq(lifecycle.iter().map(|rule| &rule["Id"])),
        "the bucket has other rules: {rules:?}"
    );
    let kept = ["table", "bucket", "key"];
    for name in kept {
        assert_eq!(pulumi["resources"][name]["options"]["retainOnDelete"], true, "{name}");
    }
}

#[tokio::test]
async fn the_openapi_document_has_the_routes_of_the_table() {
    let app = TestApp::memory().await;
    let document = app.get("/api/openapi/pulumi-spec.json").anonymous().send().await.expect(200);
    let paths = document["paths"].as_object().unwrap();
    let described: BTreeSet<(String, String)> = paths
        .iter()
        .flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(|method| (method.to_uppercase(), path.clone()))
        })
        .collect();
    let routes: BTreeSet<(String, String)> =
        ROUTES.iter().map(|route| (route.method.to_string(), route.path.to_owned())).collect();
    assert_eq!(described, routes);
    let export = &paths["/api/stacks/{org}/{project}/{stack}/export/{version}"]["get"];
    let parameters: Vec<&str> = export["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|parameter| parameter["name"].as_str().unwrap())
        .collect();
    assert_eq!(parameters, ["org", "project", "stack", "version"]);
    assert_eq!(export["security"], json!([{ "token": [] }]));
}
