//! What is deployed, beside the one route table, and on the stand-in for AWS.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use statewright_shared::api::routes::{Group, ROUTES};

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

fn sam_events(group: Group) -> String {
    let mut text = String::new();
    for route in ROUTES.iter().filter(|route| route.group == group) {
        let (id, method, path) = (route.id(), &route.method, route.path);
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
    for row in ROUTES.iter().filter(|row| row.group == group) {
        route(&row.id(), &format!("{} {}", row.method, row.path));
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
