//! A request reserves at least what it allocates. This test counts all allocations of the process, and adds
//! those of bodies with memory of their own.

#![expect(clippy::print_stdout, reason = "figures are shown with --nocapture")]

use axum::body::{Body, HttpBody as _};
use axum::http::{Method, Request};
use peak_alloc::PeakAlloc;
use serde_json::{Value, json};
use statewright_shared::services::store::compression::gzip;
use statewright_tests::app::{ORG, TestApp};
use tower::ServiceExt as _;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

const MIB: usize = 1 << 20;

/// Bytes of a text that is sent or stored.
const TEXT: usize = 24 * MIB;

/// The allocations of a request without its texts, and of an idle server.
const SLACK: usize = 3 * MIB;

struct Measured<'a> {
    app: &'a TestApp,
    failures: Vec<String>,
}

impl Measured<'_> {
    /// Sends a request to the handlers in this process, reads its answer frame by frame, and compares. The text
    /// that was sent has memory of its own.
    async fn send(
        &mut self,
        what: &str,
        method: Method,
        path: &str,
        authorization: &str,
        text: &str,
    ) -> Vec<u8> {
        let body = if text.is_empty() { Body::empty() } else { Body::from(gzip(text.as_bytes())) };
        let request = Request::builder().method(method).uri(path).header("Authorization", authorization);
        let request = request.body(body).expect("the request is whole");
        let own = if text.len() >= MIB { text.len() } else { 0 };
        let before = ALLOCATED.current_usage();
        self.app.most_reserved();
        ALLOCATED.reset_peak_usage();
        let response = self.app.router().oneshot(request).await.expect("it cannot fail");
        let status = response.status();
        let (mut first, mut read) = (Vec::new(), 0);
        let mut body = Box::pin(response.into_body());
        while let Some(frame) = futures::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            let bytes = frame.ok().and_then(|frame| frame.into_data().ok()).expect("answers are data");
            read += bytes.len();
            if first.len() < 4096 {
                first.extend_from_slice(&bytes[..bytes.len().min(4096)]);
            }
        }
        drop(body);
        let allocated = ALLOCATED.peak_usage().saturating_sub(before) + own;
        let reserved = self.app.most_reserved();
        let words = String::from_utf8_lossy(&first).into_owned();
        assert!(status.is_success(), "{what}: {status} {words}");
        let line = format!(
            "{what}: {:.1} MiB allocated, {:.1} reserved; {:.2} and {:.2} of the text; {read} bytes answered",
            allocated as f64 / MIB as f64,
            reserved as f64 / MIB as f64,
            allocated as f64 / TEXT as f64,
            reserved as f64 / TEXT as f64,
        );
        println!("{line}");
        if allocated > reserved + SLACK {
            self.failures.push(line);
        }
        first
    }
}

fn deployment(bytes: usize, seed: &str) -> String {
    let outputs: Vec<String> = (0..10).map(|at| format!(r#""o{at}":"{}""#, "v".repeat(bytes / 20))).collect();
    format!(
        r#"{{"version":3,"deployment":{{"manifest":{{"time":"2026-01-02T03:04:05Z","magic":"","version":""}},"resources":[{{"urn":"urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev","custom":false,"type":"pulumi:pulumi:Stack","outputs":{{{}}}}}],"more":"{seed}{}"}}}}"#,
        outputs.join(","),
        "m".repeat(bytes / 2)
    )
}

/// The same for text that compresses badly: with a part of it as an output, or all of it as one, in a
/// deployment that breaks a rule.
fn noisy_deployment(bytes: usize, kind: usize) -> String {
    let mut random = fastrand::Rng::with_seed(7);
    let noise: String = std::iter::repeat_with(|| random.alphanumeric()).take(bytes).collect();
    let (output, more) = noise.split_at(if kind == 1 { 16 } else { noise.len() });
    let parent = if kind == 1 { "" } else { r#""parent":"urn:pulumi:dev::shop::a:b:C::gone","# };
    format!(
        r#"{{"version":3,"deployment":{{"manifest":{{"time":"2026-01-02T03:04:05Z","magic":"","version":""}},"resources":[{{"urn":"urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev",{parent}"custom":false,"type":"pulumi:pulumi:Stack","outputs":{{"o":"{output}"}}}}],"more":"{more}"}}}}"#
    )
}

fn small_resources(bytes: usize) -> String {
    let mut text = String::from(
        r#"{"version":3,"deployment":{"manifest":{"time":"2026-01-02T03:04:05Z","magic":"","version":""},"resources":["#,
    );
    let mut at = 0;
    while text.len() < bytes {
        if at > 0 {
            text.push(',');
        }
        text.push_str(&format!(
            r#"{{"urn":"urn:pulumi:dev::shop::a:b:C::r{at}","custom":false,"type":"a:b:C","outputs":{{"a":"{}"}}}}"#,
            "v".repeat(600)
        ));
        at += 1;
    }
    text.push_str("]}}");
    text
}

/// Resources of some seventy bytes, whose tables take more than their text.
fn tiny_resources(count: usize) -> String {
    let resource = |at: usize| {
        format!(r#"{{"urn":"urn:pulumi:dev::tiny::a:b:C::r{at}","custom":false,"type":"a:b:C"}}"#)
    };
    let resources: Vec<String> = (0..count).map(resource).collect();
    format!(
        r#"{{"version":3,"deployment":{{"manifest":{{"time":"2026-01-02T03:04:05Z","magic":"","version":""}},"resources":[{}]}}}}"#,
        resources.join(",")
    )
}

/// Resources of three bytes, of which every one breaks a rule, and the URNs on which another one depends.
fn empty_resources(count: usize, references: usize) -> String {
    let first = format!(r#"{{"dependencies":[{}""]}}"#, r#""","#.repeat(references));
    let others = ",{}".repeat(count - 1);
    format!(r#"{{"version":3,"deployment":{{"manifest":{{}},"resources":[{first}{others}]}}}}"#)
}

fn state(bytes: usize, serial: u64) -> String {
    let outputs: Vec<String> = (0..10)
        .map(|at| format!(r#""o{at}":{{"value":"{}","type":"string"}}"#, "v".repeat(bytes / 10)))
        .collect();
    format!(
        r#"{{"version":4,"terraform_version":"1.5.7","serial":{serial},"lineage":"l","outputs":{{{}}},"resources":[]}}"#,
        outputs.join(",")
    )
}

/// Resources of some hundred bytes.
fn state_of_many(bytes: usize, serial: u64) -> String {
    let mut text =
        format!(r#"{{"version":4,"terraform_version":"1.5.7","serial":{serial},"lineage":"l","resources":["#);
    let mut at = 0;
    while text.len() < bytes {
        let comma = if at == 0 { "" } else { "," };
        text.push_str(&format!(
            r#"{comma}{{"mode":"managed","type":"t","name":"r{at}","provider":"p","instances":[{{"attributes":{{"a":"{serial}{}"}}}}]}}"#,
            "v".repeat(250)
        ));
        at += 1;
    }
    text.push_str("]}");
    text
}

fn word(answer: &[u8], name: &str) -> String {
    let value: Value = serde_json::from_slice(answer).expect("the answer is JSON");
    value[name].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_request_reserves_at_least_what_it_allocates() {
    let app = TestApp::memory().await;
    let mut measured = Measured { app: &app, failures: Vec::new() };
    let token = format!("token {}", app.token);
    let project = format!("/api/stacks/{ORG}/shop");
    let stack = format!("{project}/dev");
    app.post(&project, &json!({ "stackName": "dev" })).send().await.expect(200);

    let (post, patch, get) = (Method::POST, Method::PATCH, Method::GET);
    let one = format!(r#"{{"plaintexts":["{}"]}}"#, "YWFh".repeat(TEXT / 4));
    let many = format!(
        r#"{{"plaintexts":[{}]}}"#,
        vec![format!(r#""{}""#, "YWFh".repeat(TEXT / 4000)); 1000].join(",")
    );
    for (what, text) in [("a secret", &one), ("a thousand secrets", &many)] {
        measured.send(what, post.clone(), &format!("{stack}/batch-encrypt"), &token, text).await;
    }
    drop((one, many));

    for (what, text) in [
        ("an import that does not compress", noisy_deployment(TEXT, 1)),
        ("an import of outputs alone, which is marked", noisy_deployment(TEXT, 2)),
    ] {
        measured.send(what, post.clone(), &format!("{stack}/import"), &token, &text).await;
    }
    let text = deployment(TEXT, "");
    measured.send("an import", post.clone(), &format!("{stack}/import"), &token, &text).await;
    measured
        .send("another import", post.clone(), &format!("{stack}/import"), &token, &deployment(TEXT, "x"))
        .await;
    measured.send("an export", get.clone(), &format!("{stack}/export"), &token, "").await;
    measured.send("outputs", get.clone(), &format!("{stack}/outputs"), &token, "").await;
    let of_org = format!("/api/orgs/{ORG}/outputs");
    measured.send("outputs by name", get.clone(), &of_org, &token, "").await;
    measured.send("outputs with values", get.clone(), &format!("{of_org}/stack/shop/dev"), &token, "").await;

    let begin = |journal: u64, dry_run: bool| {
        json!({ "updateKind": "update", "journalVersion": journal, "program": {
            "name": "shop", "runtime": "yaml", "main": "", "description": "", "config": {},
            "options": { "dryRun": dry_run }, "metadata": { "message": "", "environment": {} } } })
        .to_string()
    };
    let begun = app.post(&format!("{stack}/begin-update"), &serde_json::from_str(&begin(2, false)).unwrap());
    let begun = begun.send().await.bytes;
    let (update, of_update) = (
        format!("{stack}/update/{}", word(&begun, "updateID")),
        format!("update-token {}", word(&begun, "token")),
    );
    let event = json!({ "events": [{ "sequence": 1, "timestamp": 1, "diagnosticEvent": { "message": "m".repeat(TEXT) } }] });
    measured
        .send("events", post.clone(), &format!("{update}/events/batch"), &of_update, &event.to_string())
        .await;
    drop(event);
    measured.send("events, read", get.clone(), &format!("{update}/events"), &token, "").await;
    let entry = json!({ "entries": [{ "version": 1, "kind": 1, "sequenceID": 1, "operationID": 1, "state": {
        "urn": "urn:pulumi:dev::shop::a:b:C::r", "custom": false, "type": "a:b:C", "outputs": { "a": "v".repeat(TEXT) } } }] });
    measured
        .send(
            "journal entries",
            patch.clone(),
            &format!("{update}/journalentries"),
            &of_update,
            &entry.to_string(),
        )
        .await;
    drop(entry);
    let end = json!({ "status": "succeeded" }).to_string();
    measured.send("a publish", post.clone(), &format!("{update}/complete"), &of_update, &end).await;

    let text = small_resources(TEXT);
    measured
        .send("an import of small resources", post.clone(), &format!("{stack}/import"), &token, &text)
        .await;
    let begun = app.post(&format!("{stack}/begin-update"), &serde_json::from_str(&begin(0, false)).unwrap());
    let begun = begun.send().await.bytes;
    let (update, of_update) = (
        format!("{stack}/update/{}", word(&begun, "updateID")),
        format!("update-token {}", word(&begun, "token")),
    );
    measured
        .send(
            "a checkpoint",
            patch.clone(),
            &format!("{update}/checkpoint"),
            &of_update,
            &deployment(TEXT, "y"),
        )
        .await;
    measured.send("a publish of it", post.clone(), &format!("{update}/complete"), &of_update, &end).await;

    // Tiny resources, of whose texts the tables of an index are many times as large. The index of the version before is
    // read for the second.
    let project = format!("/api/stacks/{ORG}/tiny");
    app.post(&project, &json!({ "stackName": "dev" })).send().await.expect(200);
    let tiny = format!("{project}/dev");
    let imported = format!("{tiny}/import");
    let text = tiny_resources(120_000);
    measured.send("an import of tiny resources", post.clone(), &imported, &token, &text).await;
    let begun = app.post(&format!("{tiny}/begin-update"), &serde_json::from_str(&begin(2, false)).unwrap());
    let begun = begun.send().await.bytes;
    let (update, of_update) = (
        format!("{tiny}/update/{}", word(&begun, "updateID")),
        format!("update-token {}", word(&begun, "token")),
    );
    let entry = json!({ "entries": [{ "version": 1, "kind": 1, "sequenceID": 1, "operationID": 1, "state": {
        "urn": "urn:pulumi:dev::tiny::a:b:C::new", "custom": false, "type": "a:b:C" } }] });
    let append = app.request(patch.clone(), &format!("{update}/journalentries"));
    append.update_token(&word(&begun, "token")).json(&entry).send().await.expect(204);
    measured
        .send("a publish of tiny resources", post.clone(), &format!("{update}/complete"), &of_update, &end)
        .await;
    let restore = format!("{tiny}/updates/1/restore");
    measured.send("tiny resources, restored", post.clone(), &restore, &token, "").await;
    let rows = format!("{tiny}/resources");
    measured.send("a page of tiny resources", get.clone(), &rows, &token, "").await;
    let shown = app.get(&rows).send().await.expect(200);
    assert_eq!((&shown["total"], &shown["historyFrom"]), (&json!(120_000), &json!(1)), "it is indexed");

    // Resources that no search for their members finds, by an import and by a checkpoint.
    let project = format!("/api/stacks/{ORG}/empty");
    app.post(&project, &json!({ "stackName": "dev" })).send().await.expect(200);
    let empty = format!("{project}/dev");
    let imported = format!("{empty}/import");
    let text = empty_resources(120_000, 400_000);
    measured.send("an import of empty resources", post.clone(), &imported, &token, &text).await;
    let begun = app.post(&format!("{empty}/begin-update"), &serde_json::from_str(&begin(0, false)).unwrap());
    let begun = begun.send().await.bytes;
    let (update, of_update) = (
        format!("{empty}/update/{}", word(&begun, "updateID")),
        format!("update-token {}", word(&begun, "token")),
    );
    let checkpoint = format!("{update}/checkpoint");
    let text = tiny_resources(120_000);
    measured.send("a checkpoint of tiny resources", patch.clone(), &checkpoint, &of_update, &text).await;
    measured
        .send("a publish of that checkpoint", post.clone(), &format!("{update}/complete"), &of_update, &end)
        .await;
    for (text, words) in [
        (empty_resources(500_001, 0), "500001 resources and operations: use at most 500000"),
        (empty_resources(1, 4_000_000), "references and members: use at most 4000000"),
    ] {
        let body = Body::from(gzip(text.as_bytes()));
        let request = Request::post(&imported).header("Authorization", &token).body(body).unwrap();
        let refused = app.router().oneshot(request).await.expect("it cannot fail");
        assert_eq!(refused.status(), 413);
        let bytes = axum::body::to_bytes(refused.into_body(), 4096).await.unwrap();
        let answer = String::from_utf8_lossy(&bytes).into_owned();
        assert!(answer.contains(words), "{answer}");
    }

    // A secret in a string of JSON with very many values, in a resource with very many levels.
    let project = format!("/api/stacks/{ORG}/sealed");
    app.post(&project, &json!({ "stackName": "dev" })).send().await.expect(200);
    let sealed = format!("{project}/dev");
    let encrypted = app.post(&format!("{sealed}/encrypt"), &json!({ "plaintext": "ImEi" })).send().await;
    let secret = json!({
        "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270",
        "ciphertext": encrypted.expect(200)["ciphertext"],
    });
    let inside = Value::String(format!("[{}{secret}]", "0,".repeat(MIB)));
    let deep = format!("{}0{}", r#"{"":"#.repeat(MIB / 4), "}".repeat(MIB / 4));
    let urn = "urn:pulumi:dev::sealed::a:b:C::r";
    let resource = |name: &str, more: &str| {
        format!(r#"{{"urn":"{urn}{name}","custom":false,"type":"a:b:C","inputs":{{"a":{more}}}}}"#)
    };
    let first = resource("1", &format!(r#"{deep},"text":{inside}"#));
    let second = resource("2", &Value::String("v".repeat(9 * MIB)).to_string());
    let text = format!(r#"{{"version":3,"deployment":{{"manifest":{{}},"resources":[{first},{second}]}}}}"#);
    measured.send("an import with a secret", post.clone(), &format!("{sealed}/import"), &token, &text).await;
    let reveal = format!("{sealed}/resource/secret");
    let ask = json!({ "urn": format!("{urn}1"), "path": "/inputs/text" });
    measured.send("a secret, shown", post.clone(), &reveal, &token, &ask.to_string()).await;
    let ask = json!({ "urn": format!("{urn}2"), "path": "/inputs/a" });
    let refused = app.post(&reveal, &ask).send().await.refused(413);
    assert!(refused.contains("use at most 8388608 bytes"), "{refused}");

    let path = format!("/tfstate/{ORG}/shop");
    measured.send("a state", post.clone(), &path, &token, &state(TEXT, 1)).await;
    measured.send("the next state", post.clone(), &path, &token, &state(TEXT, 2)).await;
    measured.send("a state, read", get.clone(), &path, &token, "").await;
    measured.send("outputs of a state", get.clone(), &format!("{path}/outputs"), &token, "").await;
    let found = app.get(&format!("/api/orgs/{ORG}/tfstates/shop/default")).send().await.expect(200);
    let id = found["id"].as_str().unwrap();
    let versions = format!("/api/tfstates/{id}/versions/1");
    measured.send("a difference", get.clone(), &format!("{versions}/diff/2"), &token, "").await;
    measured.send("a restored state", post.clone(), &format!("{versions}/restore"), &token, "").await;
    let with_values = format!("{of_org}/tfstate/shop/default");
    measured.send("outputs of a state with values", get.clone(), &with_values, &token, "").await;

    let path = format!("/tfstate/{ORG}/many");
    for (what, serial) in [("a state of many resources", 1), ("the next one of many", 2)] {
        measured.send(what, post.clone(), &path, &token, &state_of_many(TEXT, serial)).await;
    }
    let found = app.get(&format!("/api/orgs/{ORG}/tfstates/many/default")).send().await.expect(200);
    let of_state = format!("/api/tfstates/{}", found["id"].as_str().unwrap());
    for (what, tail) in [
        ("a page of resources of a state", "/resources"),
        ("a long page of them", "/resources?size=1000"),
        ("a filter of them", "/resources?filter=r9"),
        ("one of them", "/resource?address=t.r77"),
    ] {
        measured.send(what, get.clone(), &format!("{of_state}{tail}"), &token, "").await;
    }
    let version = app.get(&format!("{of_state}/versions/2")).send().await.expect(200);
    assert!(version["changes"]["changedCount"].as_u64() > Some(50_000), "{version}");
    measured
        .send("many, restored", post.clone(), &format!("{of_state}/versions/1/restore"), &token, "")
        .await;

    let mut bomb = format!("values:\n  a0: {}", "x".repeat(1000));
    for at in 1..24 {
        bomb.push_str(&format!("\n  a{at}: ${{a{0}}}${{a{0}}}", at - 1));
    }
    let check = format!("/api/esc/environments/{ORG}/yaml/check");
    let request = Request::post(&check).header("Authorization", &token).body(Body::from(bomb)).unwrap();
    let before = ALLOCATED.current_usage();
    app.most_reserved();
    ALLOCATED.reset_peak_usage();
    let response = app.router().oneshot(request).await.expect("it cannot fail");
    let allocated = ALLOCATED.peak_usage().saturating_sub(before);
    let reserved = app.most_reserved();
    println!("an environment: {} {allocated} allocated, {reserved} reserved", response.status());
    assert!(allocated <= reserved + SLACK, "an environment: {allocated} allocated, {reserved} reserved");
    assert!(measured.failures.is_empty(), "{:#?}", measured.failures);
}
