//! The permissions that the SAM template gives each function.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::OnceLock;

use serde_json::Value;
use statewright_shared::api::routes::Group;

use crate::aws::Right;
use crate::tools;

/// Each function's permissions, from the policies of the template after SAM has converted it to CloudFormation.
pub fn policies() -> &'static BTreeMap<&'static str, BTreeSet<Right>> {
    static POLICIES: OnceLock<BTreeMap<&'static str, BTreeSet<Right>>> = OnceLock::new();
    POLICIES.get_or_init(|| {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../infra/sam/template.yaml");
        let template = tools::template("sam", &file);
        tools::function_names().map(|name| (name, of_function(&template, name))).collect()
    })
}

fn of_function(template: &Value, name: &str) -> BTreeSet<Right> {
    let (first, rest) = name.split_at(1);
    let role = &template["Resources"][format!("{}{rest}Role", first.to_uppercase())]["Properties"];
    let documents = role["Policies"].as_array().into_iter().flatten();
    let statements = documents.flat_map(|policy| policy["PolicyDocument"]["Statement"].as_array());
    let all: BTreeSet<Right> = statements.flatten().flat_map(allowed).collect();
    // It has no store.
    let is_without = name == Group::Console.name();
    assert_eq!(all.is_empty(), is_without, "{name}: {role}");
    all
}

/// The permissions of a statement. Texts may be in a `Fn::Sub`.
pub fn allowed(statement: &Value) -> BTreeSet<Right> {
    assert_eq!(statement["Effect"], "Allow", "{statement}");
    let condition = &statement["Condition"];
    let partitions = texts(&condition["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]);
    let contexts = texts(&condition["ForAllValues:StringEquals"]["kms:EncryptionContextKeys"]);
    // Of `${Bucket.Arn}/snap/*`, the part after the bucket.
    let texts_of_resource = texts(&statement["Resource"]);
    let classes: Vec<String> = texts_of_resource
        .iter()
        .filter_map(|text| text.split_once("}/").map(|(_, class)| class.to_owned()))
        .collect();
    let of = |bucket: &str| {
        let of_it = texts_of_resource.iter().filter_map(|text| text.strip_prefix(bucket));
        of_it.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        of("${Bucket.Arn}"),
        of("${BucketArn}"),
        "an existing bucket has other permissions: {statement}"
    );
    let mut allowed = BTreeSet::new();
    for action in texts(&statement["Action"]) {
        let on = match action.split(':').next() {
            Some("dynamodb") => &partitions,
            Some("kms") => &contexts,
            // Its resource is the whole bucket, and it only distinguishes an absent object from a forbidden one.
            Some("s3") if action == "s3:ListBucket" => continue,
            Some("s3") => &classes,
            Some(_) | None => panic!("an action of another service: {action}"),
        };
        assert!(!on.is_empty(), "{action} without a restriction: {statement}");
        allowed.extend(
            on.iter().map(|on| Right { action: action.clone(), on: on.trim_end_matches('*').to_owned() }),
        );
    }
    allowed
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(all) => all.iter().flat_map(texts).collect(),
        Value::Object(function) => {
            // A created resource and an existing one: a role has the same permissions for either.
            let branches = function.get("Fn::If").and_then(Value::as_array).into_iter().flatten().skip(1);
            function.get("Fn::Sub").into_iter().chain(branches).flat_map(texts).collect()
        }
        Value::String(text) => vec![text.clone()],
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}
