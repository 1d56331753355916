//! Mistakes of similar servers over plain HTTP, with the correct outcome.

use std::collections::BTreeSet;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::json;
use statewright_tests::app::{ORG, START, TestApp};

use crate::world::{Stack, deployment, entry, new_project, raw, refusal};

#[tokio::test]
async fn a_repeated_batch_counts_once_and_an_overlap_adds_new_entries() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    let (a, b) = (stack.made(1, "a"), stack.made(2, "b"));
    run.append(std::slice::from_ref(&a)).await.expect(204);
    run.append(std::slice::from_ref(&a)).await.expect(204);
    run.append(&[a, b]).await.expect(204);
    run.complete("succeeded").await.expect(204);
    assert_eq!(stack.resources().await, ["a", "b"]);
}

#[tokio::test]
async fn batches_out_of_order_are_applied_by_their_sequence() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    run.append(&[stack.made(3, "c")]).await.expect(204);
    run.append(&[stack.made(2, "b"), stack.made(1, "a")]).await.expect(204);
    run.complete("succeeded").await.expect(204);
    assert_eq!(stack.resources().await, ["a", "b", "c"]);
}

#[tokio::test]
async fn entries_after_a_cancel_are_refused_and_change_nothing() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    run.append(&[stack.made(1, "a")]).await.expect(204);
    run.cancel().await.expect(204);
    let words = run.append(&[stack.made(2, "b")]).await.refused(403);
    assert!(words.contains("alice cancelled the update"), "{words}");
    assert_eq!(stack.resources().await, ["a"]);
}

#[tokio::test]
async fn a_failed_update_keeps_created_and_pending_resources() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    run.append(&[stack.made(1, "a"), stack.making(2, "b")]).await.expect(204);
    run.complete("failed").await.expect(204);
    assert_eq!(stack.resources().await, ["a"]);
    assert_eq!(stack.pending().await, ["b"]);
}

#[tokio::test]
async fn delete_and_pending_replacement_mark_and_do_not_remove() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    stack.publish(&["x", "y"]).await;
    let run = stack.begin().await;
    let replaced = entry(1, 1, &json!({ "deleteOld": 0, "state": stack.resource("x") }));
    let gone = entry(2, 1, &json!({ "pendingReplacementOld": 1 }));
    run.append(&[replaced, gone]).await.expect(204);
    run.complete("succeeded").await.expect(204);
    assert_eq!(stack.resources().await, ["x", "x(delete)", "y(pendingReplacement)"]);
}

#[tokio::test]
async fn entries_of_unknown_kinds_and_versions_are_refused() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    let mut of_version_7 = stack.made(1, "a");
    of_version_7["version"] = 7.into();
    for unknown in
        [entry(1, 99, &json!({})), entry(1, 11, &json!({})), entry(1, -1, &json!({})), of_version_7]
    {
        // The whole batch is refused, including the valid entry.
        let words = run.append(&[stack.made(2, "good"), unknown.clone()]).await.refused(400);
        assert!(words.contains("entry 1 of the batch"), "{words}");
    }
    let extension =
        json!({ "extensionRef": "r", "extension": { "name": "e", "version": "1.0.0", "value": "" } });
    let migration = json!({ "version": 2, "operationID": 0, "layout": [{ "stateIndex": 0 }], "states": [stack.resource("m")] });
    for known in
        [entry(3, 8, &extension), entry(4, 9, &json!({ "operationID": 0 })), entry(5, 10, &migration)]
    {
        run.append(&[known]).await.expect(204);
    }
    run.complete("succeeded").await.expect(204);
    assert_eq!(stack.resources().await, ["m"]);
}

#[tokio::test]
async fn the_features_of_a_state_of_version_4_survive_an_update() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let mut tainted = stack.resource("a");
    tainted["taint"] = true.into();
    let mut state = deployment(&[tainted]);
    state["version"] = 4.into();
    state["features"] = json!(["taint"]);
    stack.import(&state).await;
    let run = stack.begin().await;
    run.append(&[stack.made(1, "b")]).await.expect(204);
    run.complete("succeeded").await.expect(204);
    let export = stack.export().await;
    assert_eq!(export["version"], 4);
    assert_eq!(export["features"], json!(["taint"]));
    assert_eq!(export["deployment"]["resources"][1]["taint"], true);
}

#[tokio::test]
async fn starting_an_update_twice_keeps_its_lease_and_both_tokens() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.created().await;
    let first = run.start(Some(2)).await.expect(200);
    app.advance(Duration::from_secs(5));
    let second = run.start(Some(2)).await.expect(200);
    assert_eq!(second["tokenExpiration"], first["tokenExpiration"]);
    for answer in [first, second] {
        run.with_token(answer["token"].as_str().unwrap()).renew(300).await.expect(200);
    }
}

#[tokio::test]
async fn a_completed_update_cannot_be_started_again() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.created().await;
    let started = run.start(Some(2)).await.expect(200);
    run.with_token(started["token"].as_str().unwrap()).complete("succeeded").await.expect(204);
    let words = run.start(Some(2)).await.refused(409);
    assert!(words.contains("ended as succeeded"), "{words}");
    assert_eq!(stack.version().await, 1);
}

#[tokio::test]
async fn a_request_with_the_token_from_before_a_renewal_still_passes() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    app.advance(Duration::from_secs(150));
    let renewed = run.renew(300).await.expect(200)["token"].as_str().unwrap().to_owned();
    run.append(&[stack.made(1, "a")]).await.expect(204);
    // Also after the old token's own expiry, while the recorded lease lasts.
    app.advance(Duration::from_secs(200));
    run.append(&[stack.made(2, "b")]).await.expect(204);
    run.with_token(&renewed).complete("succeeded").await.expect(204);
    assert_eq!(stack.resources().await, ["a", "b"]);
}

#[tokio::test]
async fn a_lease_is_not_renewed_for_ten_years() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let renewed = stack.begin().await.renew(10 * 365 * 24 * 3600).await.expect(200);
    assert_eq!(renewed["tokenExpiration"], START.seconds() + 300);
}

#[tokio::test]
async fn an_update_token_cancels_neither_its_own_nor_another_update() {
    let app = TestApp::memory().await;
    let (stack, other) = (Stack::new(&app).await, Stack::new(&app).await);
    let (run, theirs) = (stack.begin().await, other.begin().await);
    for path in [
        format!("{}/cancel", run.path),
        format!("{}/update/{}/cancel", other.path, run.id),
        format!("{}/cancel", theirs.path),
    ] {
        app.request(Method::POST, &path).update_token(&run.token).send().await.refused(401);
    }
    // A person too can cancel an update only under its own stack.
    other.post(&format!("/update/{}/cancel", run.id), &json!({})).send().await.refused(404);
    assert_eq!([run.status().await, theirs.status().await], ["running", "running"]);
}

#[tokio::test]
async fn concurrent_first_secrets_of_24_callers_all_open() {
    let app = TestApp::memory().await;
    // Two processes with separate caches, so that they race for the stack's first key.
    let other = app.another_process("other").await;
    for _ in 0..10 {
        let stack = Stack::new(&app).await;
        let calls = (0..24).map(|number| {
            let stack = stack.at(if number % 2 == 0 { &app } else { &other });
            async move {
                let body = json!({ "plaintext": STANDARD.encode(format!("secret {number}")) });
                stack.post("/encrypt", &body).send().await.expect(200)
            }
        });
        for (number, sealed) in (0..).zip(futures::future::join_all(calls).await) {
            let opened = stack.at(&other).post("/decrypt", &sealed).send().await.expect(200);
            assert_eq!(opened["plaintext"], STANDARD.encode(format!("secret {number}")));
        }
    }
}

#[tokio::test]
async fn of_two_servers_on_one_store_one_starts_an_update() {
    let app = TestApp::memory().await;
    let other = app.another_process("other").await;
    let stack = Stack::new(&app).await;
    // Both have the stack in their caches.
    stack.at(&other).get("").send().await.expect(200);
    let (here, there) = (stack.begin_call("update", false), stack.at(&other).begin_call("update", false));
    let (here, there) = futures::join!(here.send(), there.send());
    let statuses: BTreeSet<u16> = [here.status.as_u16(), there.status.as_u16()].into();
    assert_eq!(statuses, BTreeSet::from([200, 409]));

    let begun = if here.status == 200 { here.value() } else { there.value() };
    let (path, token) =
        (format!("{}/update/{}", stack.path, begun["updateID"].as_str().unwrap()), &begun["token"]);
    for (sequence, server) in [(1, &app), (2, &other), (3, &app)] {
        let body = json!({ "entries": [stack.made(sequence, &format!("r{sequence}"))] });
        let call = server.patch(&format!("{path}/journalentries"), &body);
        call.update_token(token.as_str().unwrap()).send().await.expect(204);
    }
    for server in [&app, &other] {
        assert_eq!(stack.at(server).resources().await, ["r1", "r2", "r3"]);
    }
}

#[tokio::test]
async fn a_late_older_checkpoint_does_not_roll_back() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin_whole().await;
    let at = |time: &str, names: &[&str]| {
        let mut state = deployment(&names.iter().map(|name| stack.resource(name)).collect::<Vec<_>>());
        state["deployment"]["manifest"]["time"] = time.into();
        state
    };
    let older = at("2026-01-01T00:00:01.5Z", &["a"]);
    run.checkpoint(&older).await.expect(204);
    run.checkpoint(&at("2026-01-01T00:00:01.500000001Z", &["a", "b"])).await.expect(204);
    run.checkpoint(&older).await.expect(204);
    run.complete("succeeded").await.expect(204);
    assert_eq!(stack.resources().await, ["a", "b"]);
}

#[tokio::test]
async fn a_stack_is_not_deleted_while_its_update_runs() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    for force in ["true", "false"] {
        let path = format!("{}?force={force}", stack.path);
        let words = app.request(Method::DELETE, &path).send().await.refused(409);
        assert!(words.contains("alice") && words.contains("pulumi cancel"), "{words}");
    }
    run.append(&[stack.made(1, "a")]).await.expect(204);
    run.complete("succeeded").await.expect(204);
    assert_eq!(stack.resources().await, ["a"]);
}

#[tokio::test]
async fn failed_and_empty_updates_are_in_the_history_previews_are_not() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let first = stack.begin().await;
    first.append(&[stack.made(1, "a")]).await.expect(204);
    first.complete("succeeded").await.expect(204);
    stack.begin().await.complete("failed").await.expect(204);
    stack.preview().await.complete("succeeded").await.expect(204);
    stack.begin_kind("preview", true).await.complete("failed").await.expect(204);
    stack.begin_kind("refresh", false).await.complete("succeeded").await.expect(204);
    let history: Vec<_> = stack
        .history()
        .await
        .iter()
        .map(|entry| format!("{} {} {}", entry["version"], entry["kind"], entry["result"]))
        .collect();
    assert_eq!(
        history,
        [r#"3 "refresh" "succeeded""#, r#"2 "update" "failed""#, r#"1 "update" "succeeded""#]
    );
    assert_eq!(stack.resources().await, ["a"]);
}

#[tokio::test]
async fn a_secret_of_700_kilobytes_round_trips() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let plaintext = STANDARD.encode(vec![0xa5; 700_000]);
    let sealed = stack.post("/encrypt", &json!({ "plaintext": plaintext })).send().await.expect(200);
    assert_eq!(stack.post("/decrypt", &sealed).send().await.expect(200)["plaintext"], plaintext);
}

#[tokio::test]
async fn no_stack_is_named_by_dots() {
    let app = TestApp::memory().await;
    let authorization = format!("token {}", app.token);
    let path = format!("/api/stacks/{ORG}/{}", new_project());
    for name in [".", ".."] {
        app.post(&path, &json!({ "stackName": name })).send().await.refused(400);
        let headers = [("Authorization", authorization.as_str())];
        let (status, body) = raw(&app, "GET", &format!("{path}/{name}"), &headers, b"").await;
        assert!(status == 400 || status == 404, "{status}");
        refusal(status, &body);
    }
}
