use crate::domain::deployment::inspect;

const PROVIDER: &str = "urn:pulumi:dev::p::pulumi:providers:t::default";

/// The complaint about a deployment of these resources, each given as `"urn":..,"type":..` and more.
fn complaint(resources: &[&str]) -> Option<String> {
    let resources: Vec<String> = resources.iter().map(|members| format!("{{{members}}}")).collect();
    let text = format!(r#"{{"version":3,"deployment":{{"resources":[{}]}}}}"#, resources.join(","));
    inspect(text.as_bytes()).unwrap().integrity_error
}

#[test]
fn a_resource_needs_a_urn_and_a_type() {
    assert!(complaint(&[r#""type":"t""#]).unwrap().contains("no URN"));
    assert!(complaint(&[r#""urn":"a""#]).unwrap().contains("no type"));
}

#[test]
fn a_component_has_no_id() {
    assert!(complaint(&[r#""urn":"a","type":"t","id":"i""#]).unwrap().contains("has an ID"));
    assert_eq!(complaint(&[r#""urn":"a","type":"t","id":"i","custom":true"#]), None);
}

#[test]
fn resources_follow_those_that_they_refer_to() {
    let target = r#""urn":"a","type":"t""#;
    for reference in [
        r#""parent":"a""#,
        r#""dependencies":["a"]"#,
        r#""propertyDependencies":{"p":[],"q":["a"]}"#,
        r#""deletedWith":"a""#,
    ] {
        let resource = format!(r#""urn":"b","type":"t",{reference}"#);
        assert_eq!(complaint(&[target, &resource]), None);
        assert!(complaint(&[&resource, target]).unwrap().contains("comes after it"), "{reference}");
        assert!(complaint(&[&resource]).unwrap().contains("is missing"), "{reference}");
    }
    assert_eq!(complaint(&[r#""urn":"b","type":"t","replaceWith":["gone"]"#]), None);
}

#[test]
fn a_provider_is_named_by_urn_and_id() {
    let provider = format!(r#""urn":"{PROVIDER}","type":"pulumi:providers:t","custom":true,"id":"1""#);
    let unnamed = format!(r#""urn":"{PROVIDER}","type":"pulumi:providers:t","custom":true"#);
    let user = |reference: &str| format!(r#""urn":"b","type":"t","provider":"{reference}""#);
    assert_eq!(complaint(&[&provider, &user(&format!("{PROVIDER}::1"))]), None);
    assert_eq!(
        complaint(&[&unnamed, &user(&format!("{PROVIDER}::04da6b54-80e4-46f7-96ec-b56ff0331ba9"))]),
        None
    );
    assert!(complaint(&[&provider, &user(&format!("{PROVIDER}::2"))]).unwrap().contains("unknown provider"));
    assert!(complaint(&[&provider, &user("nonsense")]).unwrap().contains("malformed"));
    let replaced = format!(r#"{},"pendingReplacement":true"#, user(&format!("{PROVIDER}::2")));
    assert_eq!(complaint(&[&provider, &replaced]), None);
    assert!(complaint(&[r#""urn":"b","type":"pulumi:providers:t""#]).unwrap().contains("its URN"));
}

#[test]
fn of_one_urn_at_most_one_resource_lives() {
    let live = r#""urn":"a","type":"t""#;
    let dead = r#""urn":"a","type":"t","delete":true"#;
    assert_eq!(complaint(&[live, dead, dead]), None);
    assert_eq!(complaint(&[dead, dead]), None);
    assert!(complaint(&[live, dead, live]).unwrap().contains("more than once"));
}

#[test]
fn the_magic_belongs_to_the_version() {
    let text = |magic: &str| {
        format!(
            r#"{{"version":3,"deployment":{{"manifest":{{"time":"","magic":"{magic}","version":"v3.274.1"}}}}}}"#
        )
    };
    let wrong = text(&super::magic("v3.274.0"));
    assert!(inspect(wrong.as_bytes()).unwrap().integrity_error.unwrap().contains("magic"));
    let right = text(&super::magic("v3.274.1"));
    assert_eq!(inspect(right.as_bytes()).unwrap().integrity_error, None);
    assert_eq!(super::magic("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_eq!(super::magic(""), "");
}

#[test]
fn snippets_have_uuids_of_their_own() {
    let with = |snippets: &str| {
        let text = format!(r#"{{"version":4,"deployment":{{"snippets":[{snippets}]}}}}"#);
        inspect(text.as_bytes()).unwrap().integrity_error
    };
    assert_eq!(with(r#"{"uuid":"1"},{"uuid":"2"}"#), None);
    assert!(with(r#"{"uuid":"1"},{"uuid":"1"}"#).unwrap().contains("two snippets"));
    assert!(with("{}").unwrap().contains("no uuid"));
}

#[test]
fn a_complaint_is_short_however_long_the_urn() {
    let resource = format!(r#""urn":"{}","type":"t","parent":"gone""#, "\u{e9}".repeat(100_000));
    assert_eq!(complaint(&[&resource]).unwrap().chars().count(), 1_002);
}
