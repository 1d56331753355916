//! Compares the templates with the route table, and deploys them on the stand-in for AWS.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use statewright_shared::adapters::SystemClock;
use statewright_shared::adapters::aws::{Names, Outcome, set_up};
use statewright_shared::api::routes::{Group, ROUTES};
use statewright_shared::domain::names::Login;
use statewright_shared::layout::Password;
use statewright_tests::aws::{Right, StandIn, clients};
use statewright_tests::policies::{allowed, policies};
use statewright_tests::tools;

use statewright_tests::app::TestApp;
use statewright_tests::cli::{Output, PulumiCli};

/// A file of `infra`.
pub(crate) fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../infra").join(name)
}

/// The text with the part between the marks of this name replaced.
fn between_marks(text: &str, name: &str, content: &str) -> String {
    let (begin, end) = (format!("# begin: {name}\n"), format!("# end: {name}\n"));
    let from = text.find(&begin).unwrap_or_else(|| panic!("no mark {begin:?}")) + begin.len();
    let until = text.find(&end).unwrap_or_else(|| panic!("no mark {end:?}"));
    // The mark's own indentation stays before it.
    let until = text[..until].rfind('\n').map_or(until, |newline| newline + 1);
    format!("{}{content}{}", &text[..from], &text[until..])
}

/// The routes that a gateway passes to a group's function: the name, the method and the path of each.
fn gateway_routes(group: Group) -> Vec<(String, String, String)> {
    let root = group.root();
    let is_below = |path: &str| root.is_some_and(|root| path.starts_with(root));
    let rows = ROUTES.iter().filter(|row| row.group == group && !is_below(row.path));
    let rows = rows.map(|row| (row.id(), row.method.to_string(), row.path.to_owned()));
    let (first, tail) = group.name().split_at(1);
    let id = format!("Any{}{tail}", first.to_uppercase());
    let rest = root.map(|root| (id, "ANY".to_owned(), format!("{root}{{proxy+}}")));
    rows.chain(rest).collect()
}

/// The paths of the API, as a part of an OpenAPI document.
fn sam_paths() -> String {
    let mut paths: Vec<(String, Vec<String>)> = Vec::new();
    let mut add = |path: &str, method: &str, group: Group| {
        let variables = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let variables: Vec<String> =
            variables.map(|name| format!("{{ name: {name}, in: path, required: true }}")).collect();
        let parameters = match variables.as_slice() {
            [] => String::new(),
            variables => format!("parameters: [{}], ", variables.join(", ")),
        };
        let method = if method == "ANY" { "x-amazon-apigateway-any-method" } else { method };
        let method = method.to_lowercase();
        let default = if path == "$default" { "isDefaultRoute: true, " } else { "" };
        let operation = format!(
            "{method}: {{ {default}{parameters}responses: {{}}, x-amazon-apigateway-integration: {{ $ref: \
             \"#/components/x-amazon-apigateway-integrations/{}\" }} }}",
            group.name()
        );
        match paths.iter_mut().find(|(known, _)| known == path) {
            Some((_, operations)) => operations.push(operation),
            None => paths.push((path.to_owned(), vec![operation])),
        }
    };
    for group in Group::ALL {
        gateway_routes(group).iter().for_each(|(_, method, path)| add(path, method, group));
    }
    add("$default", "ANY", Group::DEFAULT);
    let mut text = String::new();
    for (path, operations) in paths {
        writeln!(text, "          \"{path}\":").unwrap();
        operations.iter().for_each(|operation| writeln!(text, "            {operation}").unwrap());
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
    for (id, method, path) in gateway_routes(group) {
        route(&id, &format!("{method} {path}"));
    }
    if group == Group::DEFAULT {
        route("Default", "$default");
    }
    text
}

/// Fails when the file differs from the table; with `STATEWRIGHT_WRITE_TEMPLATES=1` writes it instead.
#[track_caller]
fn compare(name: &str, render: impl Fn(&str) -> String) {
    let path = file(name);
    let text = fs::read_to_string(&path).unwrap();
    let wanted = render(&text);
    if std::env::var_os("STATEWRIGHT_WRITE_TEMPLATES").is_some() {
        fs::write(&path, &wanted).unwrap();
    } else {
        assert!(
            text == wanted,
            "infra/{name} differs from the route table: run this test with STATEWRIGHT_WRITE_TEMPLATES=1"
        );
    }
}

#[test]
fn the_sam_template_has_the_routes_of_the_table() {
    compare("sam/template.yaml", |text| between_marks(text, "routes", &sam_paths()));
}

#[test]
fn the_pulumi_program_has_the_routes_of_the_table() {
    compare("pulumi/Pulumi.yaml", |text| {
        Group::ALL.into_iter().fold(text.to_owned(), |text, group| {
            between_marks(&text, &format!("routes of {}", group.name()), &pulumi_routes(group))
        })
    });
}

#[test]
fn names_made_of_routes_are_unique() {
    let mut ids: Vec<String> = ROUTES.iter().map(|route| route.id()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), ROUTES.iter().count());
}

/// Runs a linter on a template, without an account, credentials or a home.
fn lint(program: &str, arguments: &[&str], template: &str) {
    let home = tempfile::tempdir().unwrap();
    let python = tools::template_python();
    // Through `python`: the first line of the program names a folder that was renamed.
    let linted = std::process::Command::new(python)
        .arg(python.with_file_name(program))
        .args(arguments)
        .arg(file(template))
        .env("AWS_DEFAULT_REGION", "us-east-1")
        .env("SAM_CLI_TELEMETRY", "0")
        .env("HOME", home.path())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&[linted.stdout, linted.stderr].concat()).into_owned();
    assert!(linted.status.success(), "{program} {template}:\n{printed}");
}

#[test]
fn linters_find_nothing_in_the_templates() {
    for template in ["sam/template.yaml", "pulumi/store.yaml", "pulumi/front.yaml", "pulumi/alarms.yaml"] {
        lint("cfn-lint", &["-t"], template);
    }
    lint("sam", &["validate", "--lint", "-t"], "sam/template.yaml");
}

/// A preview of the program in a fresh home by the real client, with some of its text replaced, with a provider
/// that has AWS's types and no cloud behind it. The program is typed, so an unknown or missing property, or one
/// of another type, makes it fail.
async fn preview(app: &TestApp, stack: &str, (from, to): (&str, &str), config: &[&str]) -> Output {
    let previews = tools::aws_previews();
    let cli = PulumiCli::new()
        .backend(&app.url)
        .token(&app.token)
        .env("STATEWRIGHT_AWS_SCHEMA", previews.schema.as_os_str());
    let plugin = cli.home_dir().join("pulumi/plugins/resource-aws-v1.0.0");
    fs::create_dir_all(&plugin).unwrap();
    std::os::unix::fs::symlink(&previews.provider, plugin.join("pulumi-resource-aws")).unwrap();
    // The packages are not built, and their contents do not matter here.
    for name in tools::function_names() {
        let package = cli.project_dir().join(format!("target/lambda/statewright-{name}"));
        fs::create_dir_all(&package).unwrap();
        fs::write(package.join("bootstrap"), "").unwrap();
    }
    fs::create_dir_all(cli.project_dir().join("infra/pulumi")).unwrap();
    for name in ["Pulumi.yaml", "store.yaml", "front.yaml", "alarms.yaml"] {
        let text = fs::read_to_string(file("pulumi").join(name)).unwrap();
        let changed = text.replacen(from, to, 1);
        assert!(name != "Pulumi.yaml" || from == to || changed != text, "there is no {from:?}");
        cli.write(&format!("infra/pulumi/{name}"), &changed);
    }
    let run = async |arguments: &[&str]| cli.run(["--cwd", "infra/pulumi"].iter().chain(arguments)).await;
    run(&["stack", "init", stack]).await.assert_success();
    for setting in config {
        let (name, value) = setting.split_once('=').unwrap();
        run(&["config", "set", "--path", name, value]).await.assert_success();
    }
    run(&["preview", "--json"]).await
}

#[tokio::test]
async fn the_pulumi_program_is_typed_as_the_aws_provider_has_it() {
    let app = TestApp::embedded().await;
    let arn = |service: &str| format!("{service}=arn:aws:{service}");
    let config = [
        arn("kmsKeyArn"),
        arn("certificateArn"),
        arn("alarmTopicArns[0]"),
        "domainName=api.example.com".to_owned(),
        "consoleDomainName=app.example.com".to_owned(),
        "disableGeneratedAddress=true".to_owned(),
        "provisionedConcurrency=2".to_owned(),
        "sweepMemory=4096".to_owned(),
        "logClass=STANDARD".to_owned(),
        "alarms=DISABLED".to_owned(),
    ];
    let config = config.each_ref().map(String::as_str);
    for (stack, config) in [("defaults", &[][..]), ("choices", &config)] {
        let previewed = preview(&app, stack, ("", ""), config).await.assert_success().json();
        let steps = previewed["steps"].as_array().unwrap();
        let routes = |step: &&Value| step["newState"]["type"] == "aws:apigatewayv2/route:Route";
        let gateway_routes: usize = Group::ALL.into_iter().map(|group| gateway_routes(group).len()).sum();
        assert_eq!(steps.iter().filter(routes).count(), gateway_routes + 1, "and the default route");
        let inputs = |name: &str| {
            let is_it =
                |step: &&Value| step["urn"].as_str().is_some_and(|urn| urn.ends_with(&format!("::{name}")));
            &steps.iter().find(is_it).unwrap()["newState"]["inputs"]
        };
        let is_chosen = stack == "choices";
        assert_eq!(inputs("sweep")["memorySize"], if is_chosen { 4096 } else { 3008 });
        let parameters = &inputs("watch")["parameters"];
        assert_eq!(parameters["AlarmTopicArns"], if is_chosen { "arn:aws:alarmTopicArns[0]" } else { "" });
        assert_eq!(parameters["Alarms"], if is_chosen { "DISABLED" } else { "ENABLED" });
        assert_eq!(inputs("api")["disableExecuteApiEndpoint"], is_chosen);
        assert_eq!(
            inputs("logLog")["logGroupClass"],
            if is_chosen { "STANDARD" } else { "INFREQUENT_ACCESS" }
        );
        assert_eq!(inputs("sweepLog")["logGroupClass"], Value::Null, "metrics are read from it");
    }
    for (number, (from, to)) in [
        ("memorySize: ${headMemory}", "memroySize: ${headMemory}"),
        ("timeout: 900", "timeout: [900]"),
        ("      role: ${readRole.arn}\n", ""),
        ("logFormat: JSON, ", ""),
        ("${head.version}", "${head.versoin}"),
        ("aws:lambda:Function", "aws:lambda:Fucntion"),
    ]
    .into_iter()
    .enumerate()
    {
        preview(&app, &format!("wrong-{number}"), (from, to), &[]).await.assert_failure();
    }
}

/// As LocalStack starts it, except that its `awslocal` is the AWS CLI for the stand-in.
#[tokio::test]
async fn the_init_script_makes_the_store_and_may_run_again() {
    let stand_in = StandIn::of_this_process();
    let folder = tempfile::tempdir().unwrap();
    let awslocal = folder.path().join("awslocal");
    let python = tools::aws_cli_python().display();
    fs::write(
        &awslocal,
        format!("#!/bin/sh\nexec {python} -m awscli --endpoint-url {} \"$@\"\n", stand_in.url),
    )
    .unwrap();
    fs::set_permissions(&awslocal, fs::Permissions::from_mode(0o755)).unwrap();
    let name = || "statewright".to_owned();
    let names = Names { table: name(), bucket: name(), key: "alias/statewright".to_owned() };
    for _ in 0..2 {
        let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
        let ran = std::process::Command::new("bash")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../localstack/init/make-store.sh"))
            .envs(stand_in.environment(&names))
            .env("PATH", path)
            .env("AWS_DEFAULT_REGION", "us-east-1")
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
        assert!(ran.status.success(), "{printed}");
    }
    let done = set_up(&clients(&stand_in.url).await, &names, &SystemClock).await.unwrap();
    let made: Vec<&str> =
        done.iter().filter(|step| step.outcome != Outcome::Found).map(|step| step.what).collect();
    assert_eq!(made, [""; 0]);
}

/// Hashes of passwords are in a partition of their own, so that only the roles that check passwords read them.
#[test]
fn two_functions_read_the_hashes_of_passwords() {
    let on = Password::key(&Login::parse("bob").unwrap()).partition.clone();
    let hash = Right { action: "dynamodb:GetItem".to_owned(), on };
    let reads = |rights: &BTreeSet<Right>| rights.iter().any(|right| right.covers(&hash));
    let who: Vec<&str> =
        policies().iter().filter(|(_, rights)| reads(rights)).map(|(name, _)| *name).collect();
    assert_eq!(who, ["account", "tfstate"]);
}

/// The length of a template in a bucket, in bytes. Source: AWS CloudFormation quotas.
const TEMPLATE_BYTES_MAX: usize = 1 << 20;

/// Resources of a stack. Source: AWS CloudFormation quotas.
const RESOURCES_MAX: usize = 500;

/// Routes of an HTTP API, unless AWS raises the quota. Source: Amazon API Gateway quotas for HTTP APIs.
const ROUTES_MAX: usize = 300;

/// The inline policies of a role, in characters without white space. Source: IAM quotas.
const ROLE_CHARACTERS_MAX: usize = 10_240;

/// A permission for each route would fill the 20 KB of a function's own policy.
#[test]
fn the_templates_are_within_the_limits_of_aws() {
    let sam = tools::template("sam", &file("sam/template.yaml"));
    let pulumi = tools::template("yaml", &file("pulumi/Pulumi.yaml"));
    let bytes = fs::metadata(file("sam/template.yaml")).unwrap().len();
    assert!(usize::try_from(bytes).unwrap() <= TEMPLATE_BYTES_MAX / 2, "{bytes} bytes");
    let resources = sam["Resources"].as_object().unwrap();
    assert!(resources.len() <= RESOURCES_MAX / 2, "{} resources", resources.len());
    let routes: usize = Group::ALL.into_iter().map(|group| gateway_routes(group).len()).sum();
    assert!(routes < ROUTES_MAX, "{routes} routes and the default one");
    let of_program = |kind: &str| {
        let resources = pulumi["resources"].as_object().unwrap().values();
        resources.filter(|resource| resource["type"] == kind).count()
    };
    assert_eq!(of_program("aws:apigatewayv2/route:Route") + of_program("aws:apigatewayv2:Route"), routes + 1);
    // Each function, and each alias of one, has a policy of its own.
    let mut permissions: Vec<String> = resources
        .values()
        .filter(|resource| resource["Type"] == "AWS::Lambda::Permission")
        .map(|resource| resource["Properties"]["FunctionName"].to_string())
        .collect();
    permissions.sort();
    let all = permissions.len();
    permissions.dedup();
    assert_eq!(permissions.len(), all, "{permissions:#?}");
    assert!(all >= Group::ALL.len(), "{permissions:#?}");
    for group in Group::ALL {
        let (first, tail) = group.name().split_at(1);
        let role = format!("{}{tail}Role", first.to_uppercase());
        let policies = &resources[&role]["Properties"]["Policies"];
        if group == Group::Console {
            assert_eq!(policies, &Value::Null, "it writes its log, and nothing else");
            continue;
        }
        let characters = policies.to_string().chars().filter(|c| !c.is_whitespace()).count();
        assert!(characters > 100 && characters <= ROLE_CHARACTERS_MAX / 2, "{role}: {characters} characters");
    }
}

/// What both templates have is the same in both.
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
        let (logs, store): (Vec<&Value>, Vec<&Value>) = statements
            .as_array()
            .unwrap()
            .iter()
            .partition(|statement| statement["Action"].to_string().contains("logs:"));
        let here: BTreeSet<Right> = store.into_iter().flat_map(allowed).collect();
        assert_eq!(&here, policy, "{name}");
        // Each writes to its own log alone.
        let to_log = json!(["logs:CreateLogStream", "logs:PutLogEvents"]);
        let resource_here = format!("${{{name}Log.arn}}:*");
        assert_eq!(json!(logs), json!([{ "Effect": "Allow", "Action": to_log, "Resource": resource_here }]));
        let (first, rest) = name.split_at(1);
        let named = format!("{}{rest}", first.to_uppercase());
        let there = &sam["Resources"][format!("{named}LogRights")]["Properties"];
        let statement = &there["PolicyDocument"]["Statement"];
        let resource_there = json!({ "Fn::GetAtt": [format!("{named}Log"), "Arn"] });
        assert_eq!(
            statement,
            &json!([{ "Effect": "Allow", "Action": to_log, "Resource": resource_there }]),
            "{name}"
        );
        assert_eq!(there["Roles"], json!([{ "Ref": format!("{named}Role") }]));
        let role = &sam["Resources"][format!("{named}Role")]["Properties"];
        assert_eq!(role["ManagedPolicyArns"], Value::Null, "{name}");

        let there = &sam["Resources"][&named]["Properties"];
        assert_eq!(there["Role"], json!({ "Fn::GetAtt": [format!("{named}Role"), "Arn"] }));
        assert_eq!(resource(name)["timeout"], there["Timeout"], "{name}");
        let parameter = there["MemorySize"]["Ref"].as_str().unwrap();
        let (first, rest) = parameter.split_at(1);
        assert_eq!(resource(name)["memorySize"], format!("${{{}{rest}}}", first.to_lowercase()), "{name}");
    }
    let camel = |name: &str| {
        let (first, rest) = name.split_at(1);
        format!("{}{rest}", first.to_lowercase())
    };
    // The program has no conditions: it takes a list of topics, and further inputs instead of deriving them
    // from a domain.
    let mut known = BTreeSet::from(["alarmTopicArns".to_owned(), "disableGeneratedAddress".to_owned()]);
    let parameters = sam["Parameters"].as_object().unwrap();
    for (parameter, there) in parameters.iter().filter(|(name, _)| *name != "AlarmTopicArn") {
        let name = camel(parameter);
        assert_eq!(pulumi["config"][&name]["default"], there["Default"], "{parameter}");
        known.insert(name);
    }
    let config: BTreeSet<String> = pulumi["config"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(config, known);
    let (store, front) = (
        tools::template("cfn", &file("pulumi/store.yaml")),
        tools::template("cfn", &file("pulumi/front.yaml")),
    );
    for name in ["Table", "Bucket", "BucketPolicy", "Key"] {
        assert_eq!(store["Resources"][name], sam["Resources"][name], "{name}");
    }
    assert_eq!(store["Rules"], sam["Rules"]);
    for (name, parameter) in store["Parameters"].as_object().unwrap() {
        assert_eq!(parameter["AllowedPattern"], parameters[name]["AllowedPattern"], "{name}");
        assert_eq!(resource("store")["parameters"][name], format!("${{{}}}", camel(name)));
    }
    for name in ["Domain", "ConsoleDomain"] {
        assert_eq!(front["Resources"][name], sam["Resources"][name], "{name}");
        let mapping = format!("{name}Mapping");
        let (here, there) = (&front["Resources"][&mapping], &sam["Resources"][&mapping]);
        assert_eq!(here["Condition"], there["Condition"], "{mapping}");
        assert_eq!(here["Properties"]["DomainName"], there["Properties"]["DomainName"], "{mapping}");
    }
    for name in ["Head", "Log"] {
        let alias = &sam["Resources"][format!("{name}Aliaslive")]["Properties"];
        let here = &front["Resources"][format!("{name}Live")]["Properties"];
        assert_eq!(here["Name"], alias["Name"], "{name}");
        assert_eq!(here["ProvisionedConcurrencyConfig"], alias["ProvisionedConcurrencyConfig"], "{name}");
    }
    let variables = pulumi["variables"]["environment"].as_object().unwrap();
    let there = sam["Resources"]["Read"]["Properties"]["Environment"]["Variables"].as_object().unwrap();
    assert!(variables.keys().eq(there.keys()), "{variables:?}");
    for (here, there) in [("sweep", "Sweep"), ("account", "Account")] {
        let variables = resource(here)["environment"]["variables"].as_object().unwrap();
        let there = sam["Resources"][there]["Properties"]["Environment"]["Variables"].as_object().unwrap();
        assert!(variables.keys().eq(there.keys()), "{variables:?}");
    }
    let secret = &resource("account")["environment"]["variables"]["STATEWRIGHT_SIGN_IN_SECRET"];
    assert_eq!(
        (&parameters["SignInSecret"]["NoEcho"], secret),
        (&true.into(), &json!({ "fn::secret": "${signInSecret}" }))
    );
    for (name, there) in sam["Resources"].as_object().unwrap() {
        if there["Type"] == "AWS::Logs::QueryDefinition" {
            for (here, property) in [("name", "Name"), ("queryString", "QueryString")] {
                assert_eq!(resource(&camel(name))[here], there["Properties"][property], "{name}: {here}");
            }
            let groups_here = resource(&camel(name))["logGroupNames"].as_array().unwrap();
            let groups_there = there["Properties"]["LogGroupNames"].as_array().unwrap();
            let of_functions = Group::ALL.into_iter().map(|group| {
                let (first, rest) = group.name().split_at(1);
                let named = format!("/aws/lambda/${{{}{rest}}}", first.to_uppercase());
                (json!(format!("${{{}Log.name}}", group.name())), json!({ "Fn::Sub": named }))
            });
            for (here, there) in of_functions {
                assert!(groups_here.contains(&here) && groups_there.contains(&there), "{name}: {here}");
            }
        }
    }
    // Except for the name of the deployment, and that one takes one topic and the other a list of them.
    let alarms = |template: &Value| -> BTreeMap<String, Value> {
        let resources = template["Resources"].as_object().unwrap().iter();
        let alarms = resources.filter(|(_, resource)| resource["Type"] == "AWS::CloudWatch::Alarm");
        let alarms = alarms.map(|(name, alarm)| {
            let mut alarm = alarm.clone();
            let actions = alarm["Properties"]["AlarmActions"].take();
            assert_eq!(actions["Fn::If"][0], "TellsAlarms", "{name}");
            let mut dimensions = alarm["Properties"]["Dimensions"].take();
            if alarm["Properties"]["Namespace"] == "Statewright" {
                let value = dimensions[0]["Value"]["Ref"].take();
                assert!(value == "AWS::StackName" || value == "Deployment", "{name}: {value}");
            }
            alarm["Properties"]["Dimensions"] = dimensions;
            (name.clone(), alarm)
        });
        alarms.collect()
    };
    let there = alarms(&sam);
    assert_eq!(there.len(), 5);
    assert_eq!(alarms(&tools::template("cfn", &file("pulumi/alarms.yaml"))), there);
    let given = resource("watch")["parameters"].clone();
    assert_eq!(given["Alarms"], "${alarms}");
    assert_eq!(given["Deployment"], "${pulumi.project}-${pulumi.stack}");
    let mut resources = sam["Resources"].as_object().unwrap().values();
    let api = &resources.find(|it| it["Type"] == "AWS::ApiGatewayV2::Stage").unwrap()["Properties"];
    let stage = resource("stage");
    let (here, there) = (&stage["defaultRouteSettings"], &api["DefaultRouteSettings"]);
    for (setting, parameter) in
        [("hrottlingRateLimit", "hrottleRate"), ("hrottlingBurstLimit", "hrottleBurst")]
    {
        assert_eq!(there[format!("T{setting}")]["Ref"], format!("T{parameter}"));
        assert_eq!(here[format!("t{setting}")], format!("${{t{parameter}}}"));
    }
    let format = stage["accessLogSettings"]["format"].as_str().unwrap();
    assert_eq!(api["AccessLogSettings"]["Format"], format);
    // No path, which contains names, and no header, which contains credentials.
    assert!(
        format.contains("$context.routeKey") && !format.contains("path") && !format.contains("header"),
        "{format}"
    );
    serde_json::from_str::<Value>(format).unwrap();
    assert_eq!(resource("accessLog")["retentionInDays"], "${logRetentionDays}");
    assert_eq!(sam["Resources"]["AccessLog"]["Properties"]["RetentionInDays"]["Ref"], "LogRetentionDays");
    assert_eq!(pulumi["resources"]["store"]["options"], json!({ "protect": true, "retainOnDelete": true }));
}

#[tokio::test]
async fn the_openapi_document_has_the_routes_of_the_table() {
    let app = TestApp::memory().await;
    let document = app.get("/api/openapi/pulumi-spec.json").anonymous().send().await.expect(200);
    assert_eq!(app.get("/api/openapi").anonymous().send().await.expect(200), document);
    let paths = document["paths"].as_object().unwrap();
    let described: BTreeSet<(String, String)> = paths
        .iter()
        .flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(|method| (method.to_uppercase(), path.clone()))
        })
        .collect();
    let routes: BTreeSet<(String, String)> =
        ROUTES.iter().map(|route| (route.method.to_string(), route.path_in_document())).collect();
    assert_eq!(described, routes);
    let export = &paths["/api/stacks/{orgName}/{projectName}/{stackName}/export/{version}"]["get"];
    let parameters: Vec<&str> = export["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|parameter| parameter["name"].as_str().unwrap())
        .collect();
    assert_eq!(parameters, ["orgName", "projectName", "stackName", "version"]);
    assert_eq!(export["security"], json!([{ "token": [] }]));
}
