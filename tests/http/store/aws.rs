//! The server on the store on AWS, with lost answers, disabled keys and restored tables.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::adapters::aws::Names;
use statewright_shared::context::Context;
use statewright_shared::layout::named_blobs;
use statewright_shared::ports::{BlobKey, Expect, Inventory, Item, Ledger, Write, WriteAction};
use statewright_shared::services::maintenance::check;
use statewright_shared::services::maintenance::sweep::{Swept, sweep};
use statewright_shared::settings::{Retention, Settings};
use statewright_tests::app::{ORG, TestApp};
use statewright_tests::aws::{Gateway, Play, StandIn};

use crate::states::lifecycle::text;
use crate::world::{Stack, hex};

/// A session that uses every store: a secret, a batch in the table, a batch in the bucket, a version. Returns
/// the stack afterwards.
async fn live(app: &TestApp) -> Value {
    let stack = Stack::new(app).await;
    let body = json!({ "plaintext": "aHVudGVyMg==" });
    let sealed = stack.post("/encrypt", &body).send().await.expect(200)["ciphertext"].clone();
    let run = stack.begin().await;
    run.append(&[stack.made(1, "small")]).await.expect(204);
    let mut large = stack.made(2, "large");
    // It does not compress, so it is too large for the table.
    large["state"]["outputs"] = json!({ "bytes": noise(40_000) });
    run.append(&[large]).await.expect(204);
    run.event(1).await.expect(204);
    run.renew(300).await.expect(200);
    run.complete("succeeded").await.expect(204);
    let opened = stack.post("/decrypt", &json!({ "ciphertext": sealed })).send().await.expect(200);
    json!({
        "resources": stack.resources().await,
        "pending": stack.pending().await,
        "version": stack.version().await,
        "history": stack.history().await.len(),
        "secret": opened["plaintext"],
        "status": run.status().await,
    })
}

fn noise(length: usize) -> String {
    let mut noise: String = (0..=length / 64).map(|number| hex(&number.to_string())).collect();
    noise.truncate(length);
    noise
}

fn expected() -> Value {
    json!({
        "resources": ["small", "large"],
        "pending": [],
        "version": 1,
        "history": 1,
        "secret": "aHVudGVyMg==",
        "status": "succeeded",
    })
}

/// Each request to AWS in turn is lost on its way there or back, or fails inside: no client notices.
#[tokio::test]
async fn i3_acked_kept_i5_repeatable_when_any_answer_of_aws_is_lost() {
    let stand_in = StandIn::of_this_process();
    let (_, names) = stand_in.fresh_store().await;
    let gateway = Gateway::before(stand_in).await;
    let app = TestApp::aws(&gateway.url, &names).await;
    let before = gateway.seen().len();
    assert_eq!(live(&app).await, expected());
    let calls = gateway.seen().split_off(before);
    for operation in ["PutItem", "TransactWriteItems", "GetItem", "Query", "PUT", "GET", "GenerateDataKey"] {
        assert!(calls.iter().any(|call| call == operation), "no {operation} among {calls:?}");
    }
    let plays = [Play::LoseTheAnswer, Play::LoseTheRequest, Play::json_error(500, "InternalServerError")];
    for nth in 1..=calls.len() {
        let play = plays[nth % plays.len()].clone();
        gateway.play_at(nth, play.clone());
        assert_eq!(live(&app).await, expected(), "{play:?} at request {nth} of {calls:?}");
    }
}

/// Disables or enables the master key.
async fn switch_key(names: &Names, action: &str) {
    let stand_in = StandIn::of_this_process();
    let described = stand_in.call("TrentService.DescribeKey", &json!({ "KeyId": names.key })).await;
    let id = json!({ "KeyId": described["KeyMetadata"]["KeyId"] });
    stand_in.call(&format!("TrentService.{action}"), &id).await;
}

#[tokio::test]
async fn a_disabled_master_key_stops_only_requests_for_secrets() {
    let stand_in = StandIn::of_this_process();
    let (_, names) = stand_in.fresh_store().await;
    let gateway = Gateway::before(stand_in).await;
    let app = TestApp::aws(&gateway.url, &names).await;
    let (stack, new) = (Stack::new(&app).await, Stack::new(&app).await);
    let plain = json!({ "plaintext": "aHVudGVyMg==" });
    let sealed = stack.post("/encrypt", &plain).send().await.expect(200)["ciphertext"].clone();
    let sealed = json!({ "ciphertext": sealed });
    stack.publish(&["before"]).await;
    // Longer than an opened key is cached.
    app.context.clock.sleep(Duration::from_secs(600)).await;

    switch_key(&names, "DisableKey").await;
    let seen_before = gateway.seen().len();
    for refused in [
        stack.post("/decrypt", &sealed).send().await,
        stack.post("/encrypt", &plain).send().await,
        stack.post("/batch-decrypt", &json!({ "ciphertexts": [sealed["ciphertext"]] })).send().await,
        // It has no data key yet.
        new.post("/encrypt", &plain).send().await,
    ] {
        let words = refused.refused(424);
        assert!(words.contains("master key is disabled") && words.contains("statewright doctor"), "{words}");
    }
    // A retry would change nothing.
    let calls = gateway.seen().split_off(seen_before);
    let keys = calls.iter().filter(|call| matches!(call.as_str(), "Decrypt" | "GenerateDataKey")).count();
    assert_eq!(keys, 4, "{calls:?}");

    let run = stack.begin().await;
    run.append(&[stack.made(1, "meanwhile")]).await.expect(204);
    run.complete("succeeded").await.expect(204);
    assert_eq!(stack.resources().await, ["meanwhile", "before"]);
    // A server that was started since has no key to sign with, and can read.
    let cold = app.another_process("cold").await;
    assert_eq!(stack.at(&cold).resources().await, ["meanwhile", "before"]);
    stack.at(&cold).begin_call("update", false).send().await.refused(424);

    switch_key(&names, "EnableKey").await;
    for app in [&app, &cold] {
        let opened = stack.at(app).post("/decrypt", &sealed).send().await.expect(200);
        assert_eq!(opened["plaintext"], plain["plaintext"]);
        stack.at(app).begin().await.cancel().await;
    }
}

#[tokio::test]
async fn a_missing_or_altered_blob_is_never_served() {
    let stand_in = StandIn::of_this_process();
    let (store, names) = stand_in.fresh_store().await;
    let gateway = Gateway::before(stand_in).await;
    let app = TestApp::aws(&gateway.url, &names).await;
    let stack = Stack::new(&app).await;
    stack.publish(&["a"]).await;
    let whole = stack.export().await;
    let problems = async || {
        let id = check::stacks(&app.context, &store).await.unwrap().pop_first().unwrap();
        check::stack(&app.context, id).await.unwrap().problems
    };
    assert_eq!(problems().await, Vec::<String>::new());
    // Altered on its way: the next attempt succeeds.
    for play in [Play::GarbleTheAnswer, Play::CutTheAnswer] {
        gateway.play("GET", 1, play);
        assert_eq!(stack.export().await, whole);
    }

    let blob = blobs(&store).await.into_iter().find(|key| key.as_str().starts_with("snap/")).unwrap();
    let bytes = app.context.blobs.get(&blob).await.unwrap().unwrap().into_bytes().await.unwrap();
    let mut altered = bytes.to_vec();
    altered[bytes.len() / 2] ^= 1;
    app.context.blobs.put(&blob, altered.into()).await.unwrap();
    let refuses = async || {
        for refused in [
            stack.get("/export").send().await,
            stack.get("/export/1").send().await,
            stack.begin_call("update", false).send().await,
        ] {
            assert!(refused.refused(500).contains("stored data cannot be used"), "{refused:?}");
        }
    };
    refuses().await;
    let found = problems().await;
    assert!(found.iter().any(|words| words.contains("does not match its hash")), "{found:?}");

    app.context.blobs.delete(&blob).await.unwrap();
    refuses().await;
    let found = problems().await;
    assert!(found.iter().any(|words| words.contains("is missing")), "{found:?}");

    app.context.blobs.put(&blob, bytes).await.unwrap();
    assert_eq!(stack.export().await, whole);
}

async fn blobs(inventory: &dyn Inventory) -> Vec<BlobKey> {
    inventory.blobs(None).await.unwrap().found
}

async fn items(inventory: &dyn Inventory) -> Vec<Item> {
    let (mut items, mut from) = (Vec::new(), None);
    loop {
        let part = inventory.items("", from.as_ref()).await.unwrap();
        items.extend(part.found);
        from = part.next;
        if from.is_none() {
            return items;
        }
    }
}

/// Sweeps until nothing is due.
async fn sweep_all(ctx: &Context) -> Swept {
    let mut all = Swept::default();
    loop {
        let swept = sweep(ctx).await.unwrap();
        assert_eq!(swept.failed, 0, "{swept:?}");
        all.pruned += swept.pruned;
        all.blobs += swept.blobs;
        if !swept.more {
            return all;
        }
    }
}

/// Goal: the table as it was at any moment of its last 35 days finds all of its blobs in today's bucket.
///
/// Method: copy all items at one moment, and put them into a new table 35 days later, as point-in-time recovery
/// does (which the stand-in lacks). In between, everything that can be deleted is deleted: old versions, logs,
/// events.
#[tokio::test]
async fn a_table_restored_to_the_last_35_days_finds_all_its_blobs() {
    const DAY: Duration = Duration::from_secs(86_400);
    let stand_in = StandIn::of_this_process();
    let (store, names) = stand_in.fresh_store().await;
    let app = TestApp::aws(&stand_in.url, &names).await;
    let stack = Stack::new(&app).await;
    let plain = json!({ "plaintext": "aHVudGVyMg==" });
    let sealed = stack.post("/encrypt", &plain).send().await.expect(200)["ciphertext"].clone();
    for name in ["one", "two", "three"] {
        let run = stack.begin().await;
        // Large enough that the log has it in the bucket.
        let mut made = stack.made(1, name);
        made["state"]["outputs"] = json!({ "bytes": noise(40_000) });
        run.append(&[made]).await.expect(204);
        run.event(1).await.expect(204);
        run.complete("succeeded").await.expect(204);
    }
    let mut versions = Vec::new();
    for version in 1..=3 {
        versions.push(stack.get(&format!("/export/{version}")).send().await.expect(200));
    }
    let moment = items(&store).await;
    let named: Vec<BlobKey> = moment
        .iter()
        .flat_map(|item| named_blobs(item).unwrap())
        .filter_map(|blob| blob.sha256.map(|_| blob.key))
        .collect();
    assert!(named.iter().any(|key| key.as_str().starts_with("log/")), "{named:?}");

    let hour = DAY / 24;
    let retention =
        Retention { versions: NonZeroU64::new(1), logs: hour, events: hour, ..Retention::DEFAULT };
    let settings = Settings { retention, ..Settings::default() };
    let strict = app.over(Arc::clone(&app.context.ledger), settings).await;
    let sweeper = &*strict.context;
    let clock = Arc::clone(&app.context.clock);
    stack.at(&strict).publish(&["four"]).await;
    let mut gone = Swept::default();
    for _ in 0..35 {
        let swept = sweep_all(sweeper).await;
        gone.pruned += swept.pruned;
        gone.blobs += swept.blobs;
        clock.sleep(DAY).await;
    }
    assert_eq!((gone.pruned, gone.blobs), (3, 0));
    stack.get("/export/1").send().await.refused(404);

    let (restored, _) = stand_in.fresh_store().await;
    let puts = moment.into_iter().map(|Item { key, revision, value, expires }| {
        let action = WriteAction::Put { revision, value, expires };
        restored.ledger.commit(vec![Write { key, expect: Expect::Absent, action }])
    });
    let put: Result<Vec<()>, _> = stream::iter(puts).buffer_unordered(8).try_collect().await;
    put.unwrap();
    let ledger: Arc<dyn Ledger> = Arc::new(restored.ledger.clone());
    let then = app.over(ledger, Settings::default()).await;
    let problems = async || {
        let id = check::stacks(&then.context, &restored).await.unwrap().pop_first().unwrap();
        check::stack(&then.context, id).await.unwrap().problems
    };
    assert_eq!(problems().await, Vec::<String>::new());
    for key in &named {
        assert!(app.context.blobs.get(key).await.unwrap().is_some(), "{key} is gone");
    }
    for (version, expected) in (1..).zip(versions) {
        let found = stack.at(&then).get(&format!("/export/{version}")).send().await.expect(200);
        assert_eq!(found, expected);
    }
    let opened = stack.at(&then).post("/decrypt", &json!({ "ciphertext": sealed })).send().await.expect(200);
    assert_eq!(opened["plaintext"], plain["plaintext"]);

    // After that they are deleted, and an older table would miss them.
    clock.sleep(3 * DAY).await;
    let went = sweep_all(sweeper).await;
    assert!(went.blobs >= 3, "{went:?}");
    assert!(!problems().await.is_empty());
}

/// A session with every request of a state: a lock, two writes, a refused one, an unlock.
async fn live_state(app: &TestApp) -> Value {
    let project = crate::world::new_project();
    let path = format!("/tfstate/{ORG}/{project}");
    let (info, other) = (json!({ "ID": "run" }), json!({ "ID": "other" }));
    app.post(&format!("{path}/lock"), &info).send().await.expect(200);
    app.post(&format!("{path}/lock"), &other).send().await.refused(423);
    for serial in 1..=2 {
        app.post(&format!("{path}?ID=run"), &text(serial, &["a"])).send().await.expect(200);
    }
    app.post(&format!("{path}?ID=other"), &text(3, &["late"])).send().await.refused(423);
    app.request(Method::DELETE, &format!("{path}/lock")).json(&info).send().await.expect(200);
    let state = app.get(&format!("/api/orgs/{ORG}/tfstates/{project}/default")).send().await.expect(200);
    let api = format!("/api/tfstates/{}", state["id"].as_str().unwrap());
    let rejected = app.get(&format!("{api}/rejected")).send().await.expect(200);
    json!({
        "text": app.get(&path).send().await.expect(200),
        "version": state["version"],
        "lock": state["lock"],
        "rejected": rejected["rejected"].as_array().unwrap().len(),
    })
}

/// The same for a state: whichever answer of AWS is lost, no client of Terraform notices.
#[tokio::test]
async fn i3_acked_kept_i5_repeatable_for_states_with_any_lost_answer() {
    let stand_in = StandIn::of_this_process();
    let (_, names) = stand_in.fresh_store().await;
    let gateway = Gateway::before(stand_in).await;
    let app = TestApp::aws(&gateway.url, &names).await;
    let expected = json!({ "text": text(2, &["a"]), "version": 2, "lock": null, "rejected": 1 });
    let before = gateway.seen().len();
    assert_eq!(live_state(&app).await, expected);
    let calls = gateway.seen().split_off(before);
    for operation in ["PutItem", "TransactWriteItems", "GetItem", "PUT", "GET", "GenerateDataKey"] {
        assert!(calls.iter().any(|call| call == operation), "no {operation} among {calls:?}");
    }
    let plays = [Play::LoseTheAnswer, Play::LoseTheRequest, Play::json_error(500, "InternalServerError")];
    for nth in 1..=calls.len() {
        let play = plays[nth % plays.len()].clone();
        gateway.play_at(nth, play.clone());
        assert_eq!(live_state(&app).await, expected, "{play:?} at request {nth} of {calls:?}");
    }
}
