//! The links that `pulumi` prints lead to the pages that they name, and those pages show what `pulumi` says.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use statewright_tests::app::{ORG, TestApp, USER};
use statewright_tests::browser::Chromium;
use statewright_tests::cli::{Output, PulumiCli};
use statewright_tests::console::signed_in_at;

use crate::BACKEND;
use crate::support::{UP, client, secret, write_program};

/// The address after this label of a line that `pulumi` printed.
#[track_caller]
fn printed(output: &Output, label: &str) -> String {
    let rest = output.stdout.split_once(label).unwrap_or_else(|| panic!("no {label:?} in:\n{output}")).1;
    // A terminal gets marks for colors after it.
    rest.trim_start().chars().take_while(char::is_ascii_graphic).collect()
}

/// A client that works for the pull request 7 of a repository, as GitHub Actions runs it.
fn in_ci(cli: PulumiCli) -> PulumiCli {
    let event = json!({ "action": "opened", "number": 7, "pull_request": { "head": { "ref": "trunk" } } });
    cli.write("event.json", &event.to_string());
    let path = cli.project_dir().join("event.json");
    let variables = [
        ("GITHUB_ACTIONS", "true"),
        ("GITHUB_EVENT_NAME", "pull_request"),
        ("GITHUB_REPOSITORY", "acme/links"),
        ("GITHUB_RUN_ID", "41"),
    ];
    let cli = variables.into_iter().fold(cli, |cli, (name, value)| cli.env(name, value));
    cli.env("GITHUB_EVENT_PATH", path)
}

/// Three items: one with a diff of its properties by name alone, one with a detailed diff, and one that is replaced.
fn items(is_changed: bool) -> Value {
    let pick = |before: Value, after: Value| if is_changed { after } else { before };
    let plainly = json!({
        "value": pick(json!({ "a": 1, "same": 0, "list": ["x", "y"] }), json!({ "a": 2, "same": 0, "list": ["x"] })),
        "secretValue": secret(if is_changed { "hunter3" } else { "hunter2" }),
    });
    let finely = json!({
        "detailed": true,
        "value": pick(
            json!({ "a": { "b": 1 }, "list": ["x", "y", "z"], "gone": true }),
            json!({ "a": { "b": 2 }, "list": ["x", "q"], "added": { "c": [1] } }),
        ),
        "secretValue": secret(if is_changed { "hunter3" } else { "hunter2" }),
    });
    let swapped = json!({
        "detailed": true,
        "replaceKey": { "zone": if is_changed { "b" } else { "a" }, "size": 1 },
    });
    json!([
        { "name": "plainly", "object": plainly },
        { "name": "finely", "object": finely },
        { "name": "swapped", "object": swapped },
    ])
}

/// What `preview --json` says of each changed resource: the paths of its detailed diff, or else the names of the
/// properties that changed.
fn changes(preview: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let mut found = BTreeMap::new();
    for step in preview["steps"].as_array().unwrap() {
        let name = step["urn"].as_str().unwrap().rsplit("::").next().unwrap();
        let detailed = step["detailedDiff"].as_object().filter(|paths| !paths.is_empty());
        let paths: BTreeSet<String> = match detailed {
            Some(paths) => paths.keys().cloned().collect(),
            None => {
                let names = step["diffReasons"].as_array().into_iter().flatten();
                names.filter_map(Value::as_str).map(str::to_owned).collect()
            }
        };
        if !paths.is_empty() {
            found.entry(name.to_owned()).or_insert(paths);
        }
    }
    found
}

/// Opens each changed resource on the page of an update or a preview, and compares what is shown with what `pulumi`
/// says. Where it says only the name of a property, the page may show the places in it that differ.
async fn shows_the_changes(page: &mut Chromium, expected: &BTreeMap<String, BTreeSet<String>>) {
    for (name, paths) in expected {
        page.click(&format!(".step-head:has-text('{name}')")).await;
        let listed = format!(".step.open:has-text('{name}') .diff-path");
        page.sees(&listed).await;
        let texts = page.texts(&listed).await;
        let top = |path: &str| path.split(['.', '[']).next().unwrap_or_default().to_owned();
        let shown: BTreeSet<String> =
            texts.iter().map(|path| if paths.contains(path) { path.clone() } else { top(path) }).collect();
        assert_eq!(&shown, paths, "{name} at {} shows {texts:?}", page.url().await);
        if name == "plainly" {
            let texts: BTreeSet<&str> = texts.iter().map(String::as_str).collect();
            assert_eq!(texts, BTreeSet::from(["secretValue", "value.a", "value.list[1]"]));
        }
    }
    assert!(!page.text().await.contains("hunter"), "a secret is shown");
}

#[tokio::test]
async fn links_of_pulumi_lead_to_pages_that_say_the_same() {
    let app = TestApp::on(BACKEND).await;
    let console = app.console().await;
    let cli = in_ci(client(&app));
    write_program(&cli, "links", &items(false));
    cli.run(["stack", "init", "dev"]).await.assert_success();
    let hash = cli.commit();
    // It knows no console of 127.0.0.1 by itself.
    let up = cli.run(UP).await.assert_success();
    assert!(!up.stdout.contains("View "), "{up}");

    let cli = cli.env("PULUMI_CONSOLE_DOMAIN", console.strip_prefix("http://").unwrap());
    write_program(&cli, "links", &items(true));
    let told = cli.run(["preview", "--json"]).await.assert_success().json();
    let plan = ["preview", "--diff", "--message", "Plan the change"];
    let planned = cli.run(plan).await.assert_success();
    // The CLI lists the secret that changed too.
    assert!(planned.stdout.contains("secretValue"), "{planned}");
    let preview = printed(&planned, "View Live:");
    let up = cli.run(UP.into_iter().chain(["--message", "Make the change"])).await.assert_success();
    let update = printed(&up, "View Live:");
    let listed = cli.run(["stack", "ls", "--json"]).await.assert_success().json();
    let stack = listed[0]["url"].as_str().unwrap_or_else(|| panic!("no url in {listed}")).to_owned();
    assert_eq!(stack, format!("{console}/{ORG}/links/dev"));
    assert_eq!(update, format!("{stack}/updates/2"));
    assert!(preview.starts_with(&format!("{stack}/previews/")), "{preview}");
    let changed = changes(&told);
    let paths = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(changed["plainly"], paths(&["secretValue", "value"]));
    let finely = ["secretValue", "value.a.b", "value.added", "value.gone", "value.list[1]", "value.list[2]"];
    assert_eq!(changed["finely"], paths(&finely));
    assert_eq!(changed["swapped"], paths(&["replaceKey.zone"]));

    // The preview, after the update that followed it, for a person who has to sign in first.
    let mut page = signed_in_at(&app, USER, &preview).await;
    page.sees("h2:text-is('Preview')").await;
    page.sees(".title-row:has-text('Succeeded')").await;
    page.sees("p.lead:has-text('Plan the change')").await;
    page.sees(".step:has-text('finely')").await;
    page.check_page("console-preview").await;
    let facts = page.value(".facts").await;
    for fact in [USER, "version 1", "trunk", &hash[..10], "tester", "GitHub Actions", "7"] {
        assert!(facts.contains(fact), "{fact:?} is not in {facts}");
    }
    page.sees(".facts a[href='https://github.com/acme/links/actions/runs/41']").await;
    shows_the_changes(&mut page, &changed).await;
    page.open(&update).await;
    page.sees("p.lead:has-text('Make the change')").await;
    shows_the_changes(&mut page, &changed).await;

    // Each preview is above the version that it started from.
    page.click(".tabs a:has-text('Activity')").await;
    page.sees("tr:has-text('Plan the change')").await;
    let rows = page.texts("tbody tr td:first-child").await;
    let expected = ["Update 2", "Preview from version 1", "Preview from version 1", "Update 1"];
    let is_as_expected =
        rows.len() == 4 && rows.iter().zip(expected).all(|(row, text)| row.starts_with(text));
    assert!(is_as_expected, "{rows:?}");
    let row = page.value("tr:has-text('Plan the change')").await;
    for part in [USER, "trunk", &hash[..8], "pull request 7", "GitHub Actions"] {
        assert!(row.contains(part), "{part:?} is not in {row}");
    }
    page.check_page("console-activity").await;

    let new = json!({ "project": "web", "name": "prod" });
    app.post(&format!("/api/esc/environments/{ORG}"), &new).send().await.expect(204);
    let found = app.get(&format!("/api/stacks/{ORG}/links/dev/updates/2")).send().await.expect(200);
    let (id, nothing) = (found["updateID"].as_str().unwrap(), "00000000-0000-4000-8000-000000000000");
    let of_org = format!("{console}/{ORG}");
    for (address, heading) in [
        (format!("{stack}?exception=1"), "h2:has-text('Last update')"),
        (format!("{stack}/settings/options"), "h2:has-text('Name, organization and end')"),
        (format!("{update}?explainFailure"), "h2:text-is('Update 2')"),
        (format!("{stack}/updates/{id}"), "h2:text-is('Update 2')"),
        (format!("{preview}?explainFailure"), "h2:text-is('Preview')"),
        (format!("{stack}/previews/{nothing}"), "p:has-text('This preview is no longer kept')"),
        (format!("{stack}/updates/{nothing}"), "p:has-text('No update with this ID is kept')"),
        (format!("{of_org}/resources?query=type:a"), "h1:has-text('does not search the resources')"),
        (format!("{of_org}/insights/policypacks/a/1.0.0"), "h1:has-text('no policy packs')"),
        (format!("{of_org}/neo/tasks/1"), "h1:has-text('no assistant')"),
        (format!("{console}/claim/abc"), "h1:has-text('gives no accounts away')"),
        // The draft of a change, of which this server has none: the environment as it is.
        (format!("{of_org}/esc/web/prod?version={nothing}"), "h1:has-text('prod')"),
        (format!("{console}/{USER}"), "h1:text-is('acme')"),
    ] {
        page.open(&address).await;
        page.sees(heading).await;
    }

    page.fresh().await;
    for link in [&update, &stack] {
        page.open(link).await;
        page.arrives(&format!("{console}/signin?next=")).await;
    }
}

/// A host with `api.` has its console at `app.`. The client asks the server of this test for that host, as a proxy.
#[tokio::test]
async fn pulumi_knows_the_console_of_a_host_with_api() {
    let app = TestApp::on(BACKEND).await;
    let cli = client(&app).backend("http://api.state.test").env("HTTP_PROXY", &app.url);
    cli.bench_project("remote", &[]);
    cli.run(["stack", "init", "dev"]).await.assert_success();
    let stack = format!("http://app.state.test/{ORG}/remote/dev");
    let listed = cli.run(["stack", "ls", "--json"]).await.assert_success().json();
    assert_eq!(listed[0]["url"], stack.as_str());
    // At a terminal, the link has another label.
    let preview = cli.spawn_at_sized_terminal(["preview"]).wait().await.assert_success();
    let link = printed(&preview, "View in Browser (Ctrl+O):");
    let id = link.strip_prefix(&format!("{stack}/previews/")).unwrap_or_else(|| panic!("{link}"));
    let found = app.get(&format!("/api/stacks/{ORG}/remote/dev/updates/{id}")).send().await.expect(200);
    assert_eq!(found["info"]["kind"], "preview");
}
