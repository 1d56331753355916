//! The variants of the protocol: the current one, and those that older clients and settings use.

use std::time::Duration;

use bytes::Bytes;
use statewright_shared::domain::ids::UpdateId;
use statewright_shared::domain::update::Update;
use statewright_shared::layout::{Content, Record, Slot};
use statewright_shared::ports::Order;
use statewright_shared::settings::Settings;
use statewright_tests::app::TestApp;
use statewright_tests::tools;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

use crate::BACKEND;
use crate::support::{
    DESTROY, UP, assert_says, bench, client, export, names, pending, resources, stack, state,
};

const SETTINGS: &[(&str, &str)] = &[("count", "3"), ("chain", "true"), ("secretEvery", "2")];

/// Those of a client's requests that begin updates, without the stack's address and the update's id.
fn beginnings(requests: &[String], project: &str) -> Vec<String> {
    let base = format!("POST /api/stacks/acme/{project}/dev/");
    let begins = |path: &&str| {
        let mut parts = path.split('/');
        let (first, rest) = (parts.next(), parts.count());
        matches!(first, Some("begin-update" | "update" | "preview" | "destroy" | "refresh")) && rest <= 1
    };
    let paths = requests.iter().filter_map(|request| request.strip_prefix(&base)).filter(begins);
    paths.map(|path| path.split_once('/').map_or(path.to_owned(), |(kind, _)| format!("{kind}/ID"))).collect()
}

/// The record of the stack's last update, and the kinds of entries in its log.
async fn last_update(app: &TestApp, project: &str) -> (Update, Vec<&'static str>) {
    let id = stack(app, project).await["activeUpdate"].as_str().and_then(UpdateId::parse).unwrap();
    let record = app.context.ledger.get(&Update::key(id)).await.unwrap().unwrap();
    let query = Slot::of_update(id).query(None, Order::Ascending, 1000);
    let slots = app.context.ledger.query(&query).await.unwrap().items;
    let kind = |value: &Bytes| match Slot::decode(value).unwrap().content {
        Content::Entries(_) => "entries",
        Content::Checkpoint(_) => "checkpoint",
        Content::Verbatim(_) => "verbatim",
        Content::Delta(_) => "delta",
        Content::Seal(_) => "seal",
    };
    let kinds = slots.iter().map(|slot| kind(&slot.value)).collect();
    (Update::decode(&record.value).unwrap(), kinds)
}

#[tokio::test]
async fn a_modern_client_begins_in_one_call_and_sends_a_journal() {
    let app = TestApp::on(BACKEND).await;
    let cli = bench(&app, "modern", SETTINGS).await;
    app.take_requests();
    cli.run(["up", "--yes"]).await.assert_success();
    assert_eq!(beginnings(&app.take_requests(), "modern"), ["begin-update", "begin-update"]);

    let (update, mut log) = last_update(&app, "modern").await;
    assert_eq!(update.journal_version, 2);
    assert_eq!(log.pop(), Some("seal"));
    assert!(!log.is_empty() && log.iter().all(|kind| *kind == "entries"), "{log:?}");
    assert_eq!(names(&export(&cli).await).len(), 5);

    app.take_requests();
    cli.run(["stack", "output", "count"]).await.assert_success();
    let requests = app.take_requests();
    assert!(requests.contains(&"GET /api/stacks/acme/modern/dev/outputs".to_owned()), "{requests:?}");
}

/// A proxy before the server that makes clients ask for this journal version. It ends with the value.
async fn asking_for_journal(version: &str, app: &TestApp) -> (Child, String) {
    let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let proxy = Command::new(tools::bench_tools())
        .args(["proxy", "-listen", &address.to_string(), "-target", &app.url, "-journal-version", version])
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let listening = async {
        while TcpStream::connect(address).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), listening).await.unwrap();
    (proxy, format!("http://{address}"))
}

/// Clients before 3.274 ask for version 1, whose journal differs only for state migrations.
#[tokio::test]
async fn a_client_that_asks_for_journal_version_1_sends_a_journal() {
    let app = TestApp::on(BACKEND).await;
    let (_proxy, url) = asking_for_journal("1", &app).await;
    let cli = client(&app).backend(url);
    cli.bench_project("first", SETTINGS);
    cli.run(["stack", "init", "dev"]).await.assert_success();
    cli.run(UP).await.assert_success();
    let (update, mut log) = last_update(&app, "first").await;
    assert_eq!(update.journal_version, 1);
    assert_eq!(log.pop(), Some("seal"));
    assert!(!log.is_empty() && log.iter().all(|kind| *kind == "entries"), "{log:?}");
    assert_eq!(names(&state(&app, "first").await).len(), 5);

    cli.run(DESTROY).await.assert_success();
    assert_eq!(resources(&state(&app, "first").await).len(), 0);
}

#[tokio::test]
async fn an_older_client_begins_in_separate_calls() {
    let app = TestApp::on(BACKEND).await;
    let cli = bench(&app, "older", SETTINGS).await.env("PULUMI_DISABLE_BEGIN_UPDATE", "true");
    app.take_requests();
    cli.run(["up", "--yes"]).await.assert_success();
    let requests = app.take_requests();
    assert_eq!(
        beginnings(&requests, "older"),
        ["update", "update/ID", "update", "update/ID"],
        "{requests:?}"
    );
    let first = state(&app, "older").await;
    assert_eq!(names(&first), ["older-dev", "default", "item-00000", "item-00001", "item-00002"]);
    let shown = cli.run(["stack", "output", "count"]).await.assert_success();
    assert_eq!(shown.stdout.trim(), "3");

    cli.run(DESTROY).await.assert_success();
    assert_eq!(beginnings(&app.take_requests(), "older"), ["destroy", "update/ID"]);
    assert_eq!(resources(&state(&app, "older").await).len(), 0);
}

#[tokio::test]
async fn a_client_without_a_journal_sends_whole_checkpoints() {
    let app = TestApp::on(BACKEND).await;
    let cli = bench(&app, "whole", SETTINGS).await.env("PULUMI_DISABLE_JOURNALING", "true");
    cli.run(UP).await.assert_success();
    let (update, mut log) = last_update(&app, "whole").await;
    assert_eq!(update.journal_version, 0);
    assert_eq!(log.pop(), Some("seal"));
    assert!(!log.is_empty() && log.iter().all(|kind| *kind == "checkpoint"), "{log:?}");
    let state = export(&cli).await;
    assert_eq!(names(&state), ["whole-dev", "default", "item-00000", "item-00001", "item-00002"]);
    assert!(resources(&state)[2]["inputs"]["secretValue"]["ciphertext"].is_string());

    cli.run(DESTROY).await.assert_success();
    assert_eq!(names(&export(&cli).await), Vec::<String>::new());
}

/// The client makes the text and all offsets: a wrong delta would be refused, and the text sent whole.
#[tokio::test]
async fn a_client_that_is_offered_deltas_sends_them() {
    let settings = Settings { delta_cutoff_bytes: Some(2_000), ..Settings::default() };
    let app = TestApp::on_with(BACKEND, settings).await;
    let unicode = [("count", "6"), ("chain", "true"), ("value", "日本 naïve 🦀"), ("secretEvery", "2")];
    let cli = bench(&app, "deltas", &unicode).await.env("PULUMI_DISABLE_JOURNALING", "true");
    app.take_requests();
    cli.run(UP).await.assert_success();
    let first = saves(&app, "deltas", 6).await;
    assert!(first.0 >= 1 && first.1 >= 6, "whole and deltas: {first:?}");
    let made = export(&cli).await;
    let items = (0..6).map(|item| format!("item-0000{item}"));
    let expected: Vec<String> =
        ["deltas-dev".to_owned(), "default".to_owned()].into_iter().chain(items).collect();
    assert_eq!(names(&made), expected);
    assert_eq!(resources(&made)[7]["inputs"]["value"], "日本 naïve 🦀");
    assert_eq!(pending(&made), Vec::<String>::new());

    cli.bench_project("deltas", &[("count", "5"), ("chain", "true"), ("value", "öther")]);
    app.take_requests();
    let changed = cli.run(UP).await.assert_success();
    assert_says(&changed, &["~ 5 updated", "- 1 deleted"]);
    let second = saves(&app, "deltas", 6).await;
    assert!(second.1 > second.0, "more deltas than whole texts: {second:?}");
    let changed = export(&cli).await;
    assert_eq!(names(&changed), expected[..7]);
    assert!(resources(&changed)[2..].iter().all(|item| item["inputs"]["value"] == "öther"));

    // The journal gives the same result.
    let journaling = cli.clone().env("PULUMI_DISABLE_JOURNALING", "false");
    let same = journaling.run(UP).await.assert_success();
    assert_says(&same, &["6 unchanged"]);
    assert_eq!(resources(&export(&cli).await), resources(&changed));

    cli.run(DESTROY).await.assert_success();
    assert_eq!(names(&export(&cli).await), Vec::<String>::new());
}

/// The number of whole texts and of deltas that the last update saved. Fails if one was refused.
async fn saves(app: &TestApp, project: &str, steps: usize) -> (usize, usize) {
    let (update, mut log) = last_update(app, project).await;
    assert_eq!(update.journal_version, 0);
    assert_eq!(log.pop(), Some("seal"));
    let count = |kind: &str| log.iter().filter(|found| **found == kind).count();
    let (whole, deltas) = (count("verbatim"), count("delta"));
    assert_eq!(whole + deltas, log.len(), "{log:?}");
    assert!(whole + deltas >= steps, "{log:?}");
    let requests = app.take_requests();
    let sent = |tail: &str| requests.iter().filter(|request| request.ends_with(tail)).count();
    assert_eq!((sent("/checkpointverbatim"), sent("/checkpointdelta")), (whole, deltas));
    assert_eq!(sent("/checkpoint"), 0);
    (whole, deltas)
}
