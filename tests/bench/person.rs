//! An hour of a person at the console, ten minutes of which an update is watched: what the pages ask for.

use std::collections::BTreeMap;
use std::io;

use reqwest::Method;
use serde_json::json;
use statewright_tests::app::{ORG, SeenRequest, TestApp};
use statewright_tests::cli::PulumiCli;

/// Dollars of the hour, at most.
pub(crate) const LIMIT: f64 = 0.002;

/// How often each page is opened. Each time it is loaded again, which is more than happens within the console.
const VIEWS: [(&str, usize); 9] = [
    ("home", 4),
    ("list", 4),
    ("stack", 10),
    ("resources", 4),
    ("activity", 4),
    ("update", 6),
    ("versions", 4),
    ("locks", 2),
    ("audit", 2),
];

/// Home shows the last update of this many stacks.
const STACKS_AT_HOME: usize = 10;

/// The files of the console, which a browser loads once. More than there are.
const FILES: usize = 40;

/// What a page that stays open asks for each minute: the stacks, the states and their locks, and what the person may do.
const EACH_MINUTE: [&str; 4] = [
    "GET /api/user/stacks",
    "GET /api/orgs/{org}/tfstates",
    "GET /api/orgs/{org}/tfstate-locks",
    "GET /api/orgs/{org}/rights",
];

/// What the lists have besides the stack that is looked at.
const STACKS: usize = 100;
const STATES: usize = 200;
const LOCKS: usize = 5;

const MINUTES: usize = 60;
const MINUTES_WATCHED: usize = 10;

/// Seconds between two requests for the events of a running update: at first, and after [`OFTEN_FOR`].
const OFTEN: usize = 1;
const SELDOM: usize = 5;
const OFTEN_FOR: usize = 30;

/// Seconds between two requests for a stack that is being updated.
const STACK_EVERY: usize = 5;

const STACK: &str = "GET /api/stacks/{org}/{project}/{stack}";
const EVENTS: &str = "GET /api/stacks/{org}/{project}/{stack}/{kind}/{update}/events";

/// The requests that each page makes when it is opened, by rows. A test of the pages keeps the file true.
fn pages() -> io::Result<BTreeMap<String, Vec<String>>> {
    Ok(serde_json::from_str(include_str!("../data/console-requests.json"))?)
}

/// The rows that are asked for in the hour, in groups of at most a minute: a function remembers who asks for as long.
fn hour() -> io::Result<Vec<Vec<String>>> {
    let pages = pages()?;
    let mut groups = Vec::new();
    for (name, times) in VIEWS {
        let rows = pages.get(name).ok_or_else(|| io::Error::other(format!("there is no page {name}")))?;
        let of_each = |row: &String| {
            if row.ends_with("/updates/latest") && name == "home" { STACKS_AT_HOME } else { 1 }
        };
        let rows: Vec<String> =
            rows.iter().flat_map(|row| std::iter::repeat_n(row.clone(), of_each(row))).collect();
        groups.extend(std::iter::repeat_n(rows, times));
    }
    groups.extend((MINUTES_WATCHED..MINUTES).map(|_| EACH_MINUTE.map(str::to_owned).to_vec()));
    for minute in 0..MINUTES_WATCHED {
        let seconds = (minute * 60)..((minute + 1) * 60);
        let pause = |second: usize| if second < OFTEN_FOR { OFTEN } else { SELDOM };
        let events = seconds.clone().filter(|second| second.is_multiple_of(pause(*second)));
        let stacks = seconds.filter(|second| second.is_multiple_of(STACK_EVERY));
        groups.push(events.map(|_| EVENTS.to_owned()).chain(stacks.map(|_| STACK.to_owned())).collect());
    }
    Ok(groups)
}

/// Makes the stacks and states of an organization, as clients do: with tags, labels, and some locks.
async fn fill(app: &TestApp) -> io::Result<()> {
    for number in 0..STACKS {
        let project = format!("service-{number:03}");
        let tags = json!({
            "pulumi:project": project, "pulumi:runtime": "nodejs", "pulumi:description": "A service of the shop",
            "gitHub:owner": "acme", "gitHub:repo": project, "vcs:kind": "github.com", "vcs:owner": "acme",
            "vcs:repo": project, "team": "shop", "environment": "production",
        });
        let stack = json!({ "stackName": "prod", "tags": tags });
        app.post(&format!("/api/stacks/{ORG}/{project}"), &stack).send().await.expect(200);
    }
    for number in 0..STATES {
        let labels = json!({ "team": "network", "environment": "production" });
        let state = json!({ "project": format!("network-{number:03}"), "labels": labels });
        let made = app.post(&format!("/api/orgs/{ORG}/tfstates"), &state).send().await.expect(200);
        if number < LOCKS {
            let id = made["id"].as_str().ok_or_else(|| io::Error::other("a state has no ID"))?;
            let reason = json!({ "reason": "the network is moved" });
            app.post(&format!("/api/tfstates/{id}/lock"), &reason).send().await.expect(200);
        }
    }
    // The first list makes the entries of locks that older programs took.
    app.get(&format!("/api/orgs/{ORG}/tfstate-locks")).send().await.expect(200);
    Ok(())
}

/// Fills the organization, makes a stack with two updates, and returns the ID of a third, which runs.
pub(crate) async fn prepare(app: &TestApp, cli: &PulumiCli) -> io::Result<String> {
    fill(app).await?;
    cli.bench_project("person", &[("count", "20"), ("secretEvery", "10")]);
    cli.run(["stack", "init", "dev"]).await.assert_success();
    for _ in 0..2 {
        cli.run(["up", "--yes", "--skip-preview", "--stack", "dev"]).await.assert_success();
    }
    let begin = json!({ "updateKind": "update", "program": {} });
    let begun =
        app.post(&format!("/api/stacks/{ORG}/person/dev/begin-update"), &begin).send().await.expect(200);
    begun["updateID"].as_str().map(str::to_owned).ok_or_else(|| io::Error::other("no update has begun"))
}

/// Makes the requests of the hour to a server on this store, and returns them with those for the console itself. This
/// update runs.
pub(crate) async fn work(app: &TestApp, update: &str) -> io::Result<Vec<SeenRequest>> {
    let filled = |row: &str| {
        let row = row.replace("{org}", ORG).replace("{project}", "person").replace("{stack}", "dev");
        row.replace("{kind}", "update")
            .replace("{update}", update)
            .replace("{version}", "1")
            .replace("{other}", "1")
    };
    let mut seen = Vec::new();
    for rows in hour()? {
        // It remembers nothing of the minute before.
        let process = app.another_process("console").await;
        for row in rows {
            let row = filled(&row);
            let (_, path) = row.split_once(' ').ok_or_else(|| io::Error::other(format!("no row: {row}")))?;
            let answer = process.request(Method::GET, path).send().await;
            if !answer.status.is_success() {
                return Err(io::Error::other(format!("{row}: {} {}", answer.status, answer.text())));
            }
        }
        seen.extend(process.take_seen());
    }
    let pages: usize = VIEWS.iter().map(|(_, times)| times).sum();
    let of_console = |_| SeenRequest { line: format!("GET /{ORG}"), bytes: 0 };
    seen.extend((0..pages + FILES).map(of_console));
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use statewright_tests::rows::route;

    use super::*;

    /// A millionth of a dollar for the gateway alone, and as much for everything else.
    #[test]
    fn the_hour_has_few_requests() {
        let requests: usize = hour().unwrap().iter().map(Vec::len).sum();
        assert!((600..850).contains(&requests), "{requests}");
        let watching: usize = hour().unwrap().iter().rev().take(MINUTES_WATCHED).map(Vec::len).sum();
        assert_eq!(watching, 30 + (600 - 30) / 5 + 600 / 5);
    }

    #[test]
    fn each_request_of_a_page_is_a_row() {
        let pages = pages().unwrap();
        for row in pages.values().flatten().map(String::as_str).chain(EACH_MINUTE).chain([STACK, EVENTS]) {
            let found = route(row).map(|route| format!("{} {}", route.method, route.path));
            assert_eq!(found.as_deref(), Some(row));
        }
        let opened: BTreeSet<&str> = VIEWS.iter().map(|(name, _)| *name).collect();
        assert_eq!(pages.keys().map(String::as_str).collect::<BTreeSet<_>>(), opened);
    }

    /// As the sources of the console have it.
    #[test]
    fn a_running_update_is_asked_for_as_often_as_its_page_does() {
        let events = include_str!("../../functions/console/web/src/events.ts");
        for (name, seconds) in [("OFTEN", OFTEN), ("SELDOM", SELDOM), ("OFTEN_FOR", OFTEN_FOR)] {
            let line = format!("const {name} = {};", seconds * 1000);
            assert!(events.replace('_', "").contains(&line.replace('_', "")), "{line}");
        }
        let queries = include_str!("../../functions/console/web/src/api/queries.ts");
        assert!(queries.contains(&format!("currentOperation ? {STACK_EVERY}_000 : EVERY_MINUTE")));
        assert!(queries.contains("const EVERY_MINUTE = 60_000;"));
    }
}
