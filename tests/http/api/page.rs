//! The page of the HTTP API: its tables are the route table, with what the OpenAPI document says of each route.

use std::fmt::Write as _;
use std::fs;

use statewright_shared::api::routes::{Auth, Parameter, ROUTES, Route};
use statewright_shared::domain::role::Right;
use statewright_tests::document;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/docs/http-api.md");

/// Around what is generated.
const BEGIN: &str = "<!-- generated -->\n";
const BEGIN_QUERIES: &str = "<!-- generated queries -->\n";
const END: &str = "<!-- end -->";

/// The headings of the tables, in the page's order.
const SECTIONS: [&str; 7] = [
    "Server and users",
    "Stacks",
    "Updates",
    "Environments",
    "Terraform states",
    "Backends of Terraform",
    "Pages for a browser",
];

/// The heading below which a route is listed.
fn section(route: &Route) -> &'static str {
    let path = route.path;
    let below = |prefix: &str| path.starts_with(prefix);
    match path {
        _ if route.auth.is_page() => SECTIONS[6],
        _ if below("/tfstate/") => SECTIONS[5],
        _ if below("/api/tfstates/") || path.contains("/tfstate") => SECTIONS[4],
        _ if ["outputs", "dependency-map"].iter().any(|of| below(&format!("/api/orgs/{{org}}/{of}"))) => {
            SECTIONS[4]
        }
        _ if below("/api/esc/") => SECTIONS[3],
        _ if path.contains("/{update}") => SECTIONS[2],
        _ if ["/update", "/preview", "/refresh", "/destroy", "/begin-update"]
            .iter()
            .any(|end| path.ends_with(end)) =>
        {
            SECTIONS[2]
        }
        _ if below("/api/stacks/")
            || below("/api/orgs/{org}/restore-stack")
            || path == "/api/user/stacks" =>
        {
            SECTIONS[1]
        }
        _ => SECTIONS[0],
    }
}

/// Who may call a route.
fn caller(route: &Route) -> String {
    match (route.auth, route.needs) {
        (Auth::Public | Auth::Page, _) => "public".to_owned(),
        (Auth::Exchange, _) => "a token of a registered issuer, or the code of a login".to_owned(),
        (Auth::Session, _) => "a person who is signed in".to_owned(),
        (Auth::UpdateToken, _) => "the update's token".to_owned(),
        (_, None) if route.path.contains("{team}") => "`admin`, or an admin of the team".to_owned(),
        (_, None) if route.path.starts_with("/api/admin/") => "an admin of the server".to_owned(),
        (_, None) => "any access token".to_owned(),
        (_, Some(Right::See)) => "`view` or `outputs`".to_owned(),
        (_, Some(right)) => format!("`{right}`"),
    }
}

fn tables() -> String {
    let mut text = String::new();
    for heading in SECTIONS {
        write!(text, "\n### {heading}\n\n| route | who may call | purpose |\n|---|---|---|\n").unwrap();
        for route in ROUTES.iter().filter(|route| section(route) == heading) {
            let summary = document::operation(route)["summary"].as_str().unwrap();
            let (method, path) = (route.method.as_str(), route.path);
            writeln!(text, "| `{method} {path}` | {} | {summary} |", caller(route)).unwrap();
        }
    }
    text + "\n"
}

/// The query parameters, by route.
fn queries() -> String {
    let mut text = "\n| route | parameter | form | meaning |\n|---|---|---|---|\n".to_owned();
    for heading in SECTIONS {
        for route in ROUTES.iter().filter(|route| section(route) == heading) {
            let mut shown = format!("`{} {}`", route.method, route.path);
            for Parameter { name, form, is_required, about } in route.query {
                let needed = if *is_required { ", needed" } else { "" };
                writeln!(text, "| {shown} | `{name}` | {}{needed} | {about} |", form.as_str()).unwrap();
                // The lines below are of the same route.
                shown.clear();
            }
        }
    }
    text + "\n"
}

/// Made again with `UPDATE_PAGES=1 cargo test --workspace --test http the_page_of_the_api`.
#[test]
fn the_page_of_the_api_has_every_route() {
    let page = fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has a generated part");
    let (_, after) = rest.split_once(END).expect("the generated part has an end");
    let (between, rest) = after.split_once(BEGIN_QUERIES).expect("the page has a part for queries");
    let (_, after) = rest.split_once(END).expect("the part for queries has an end");
    let wanted = format!("{before}{BEGIN}{}{END}{between}{BEGIN_QUERIES}{}{END}{after}", tables(), queries());
    if std::env::var_os("UPDATE_PAGES").is_some() {
        fs::write(PAGE, &wanted).unwrap();
    }
    assert_eq!(fs::read_to_string(PAGE).unwrap(), wanted, "{PAGE} is not what the table of routes says");
    let rows = wanted.lines().filter(|line| line.starts_with("| `")).count();
    assert!(rows >= ROUTES.iter().count(), "{rows} rows");
}
