//! Secrets: decrypting gives what was encrypted, for its own stack only, and no plaintext is stored in between.

use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::adapters::{Counter, Counting, MemoryBlobs, MemoryKeys, MemoryLedger, SeededIds};
use statewright_shared::ports::{Blobs, Ids};
use statewright_tests::app::{ORG, TestApp};

use crate::world::Stack;

async fn seal(stack: &Stack<'_>, plaintext: &[u8]) -> String {
    let body = json!({ "plaintext": STANDARD.encode(plaintext) });
    stack.post("/encrypt", &body).send().await.expect(200)["ciphertext"].as_str().unwrap().to_owned()
}

async fn open(stack: &Stack<'_>, ciphertext: &str) -> Vec<u8> {
    let opened = stack.post("/decrypt", &json!({ "ciphertext": ciphertext })).send().await.expect(200);
    STANDARD.decode(opened["plaintext"].as_str().unwrap()).unwrap()
}

async fn batch(stack: &Stack<'_>, tail: &str, body: &Value) -> Value {
    let call = stack.app.request(Method::POST, &format!("{}/{tail}", stack.path));
    call.gzip(body.to_string().as_bytes()).send().await.expect(200)
}

#[tokio::test]
async fn values_of_every_kind_round_trip() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let every_byte: Vec<u8> = (0..=255).collect();
    let values = [Vec::new(), vec![0], b"\"hunter2\"".to_vec(), every_byte, vec![0xa5; 1 << 20]];
    for value in values {
        let (one, two) = (seal(&stack, &value).await, seal(&stack, &value).await);
        assert_ne!(one, two, "encrypting a value twice gives two ciphertexts");
        assert_eq!(open(&stack, &one).await, value);
        assert_eq!(open(&stack, &two).await, value);
    }
}

#[tokio::test]
async fn a_thousand_secrets_go_in_one_batch_and_one_more_is_refused() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let plaintexts: Vec<_> = (0..1_000).map(|number| STANDARD.encode(format!("secret {number}"))).collect();
    let sealed = batch(&stack, "batch-encrypt", &json!({ "plaintexts": plaintexts })).await;
    let ciphertexts: Vec<&str> =
        sealed["ciphertexts"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    assert_eq!(ciphertexts.len(), 1_000);
    let opened = batch(&stack, "batch-decrypt", &json!({ "ciphertexts": ciphertexts })).await;
    let opened = opened["plaintexts"].as_object().unwrap();
    assert_eq!(opened.len(), 1_000);
    for (plaintext, ciphertext) in plaintexts.iter().zip(&ciphertexts) {
        assert_eq!(opened[*ciphertext], *plaintext);
    }

    let too_many = vec![""; 1_001];
    for (tail, name) in [("/batch-encrypt", "plaintexts"), ("/batch-decrypt", "ciphertexts")] {
        let words = stack.post(tail, &json!({ name: too_many })).send().await.refused(400);
        assert!(words.contains("1000") && words.contains("1001"), "{words}");
    }
}

#[tokio::test]
async fn a_batch_is_answered_under_the_keys_that_were_sent() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let (a, b) = (seal(&stack, b"a").await, seal(&stack, b"b").await);
    // The CLI sends duplicates, and panics if a key is missing.
    let opened = batch(&stack, "batch-decrypt", &json!({ "ciphertexts": [a, b, a] })).await;
    assert_eq!(opened["plaintexts"], json!({ a: STANDARD.encode("a"), b: STANDARD.encode("b") }));

    for nothing in [json!({}), json!({ "ciphertexts": null }), json!({ "ciphertexts": [] })] {
        assert_eq!(batch(&stack, "batch-decrypt", &nothing).await, json!({ "plaintexts": {} }));
    }
    for nothing in [json!({}), json!({ "plaintexts": null }), json!({ "plaintexts": [] })] {
        assert_eq!(batch(&stack, "batch-encrypt", &nothing).await, json!({ "ciphertexts": [] }));
    }
}

#[tokio::test]
async fn i7_secret_foreign_and_altered_ciphertexts_are_refused() {
    let app = TestApp::memory().await;
    let (stack, other) = (Stack::new(&app).await, Stack::new(&app).await);
    let ciphertext = seal(&stack, b"hunter2").await;
    // The other stack has a key of its own, or none yet.
    other.post("/decrypt", &json!({ "ciphertext": ciphertext })).send().await.refused(400);
    seal(&other, b"x").await;
    let words = other.post("/decrypt", &json!({ "ciphertext": ciphertext })).send().await.refused(400);
    assert!(words.contains("not encrypted by this server for this stack"), "{words}");

    let bytes = STANDARD.decode(&ciphertext).unwrap();
    for at in 0..bytes.len() {
        let mut altered = bytes.clone();
        altered[at] ^= 1;
        let altered = STANDARD.encode(altered);
        stack.post("/decrypt", &json!({ "ciphertext": altered })).send().await.refused(400);
        // One invalid value refuses the batch without revealing the others.
        let both = json!({ "ciphertexts": [ciphertext, altered] });
        let words = stack.post("/batch-decrypt", &both).send().await.refused(400);
        assert!(!words.contains(&STANDARD.encode("hunter2")), "{words}");
    }
    for end in 0..bytes.len() {
        let cut = STANDARD.encode(&bytes[..end]);
        stack.post("/decrypt", &json!({ "ciphertext": cut })).send().await.refused(400);
    }
    // A stack that is created again under the same name does not open what the old one sealed.
    app.request(Method::DELETE, &format!("{}?force=true", stack.path)).send().await.expect(204);
    let again = Stack::in_project(&app, &stack.project).await;
    again.post("/decrypt", &json!({ "ciphertext": ciphertext })).send().await.refused(400);
}

#[tokio::test]
async fn secrets_survive_a_restart() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let ciphertext = seal(&stack, b"hunter2").await;
    let restarted = app.another_process("server").await;
    assert_eq!(open(&stack.at(&restarted), &ciphertext).await, b"hunter2");
    let newer = seal(&stack.at(&restarted), b"hunter3").await;
    assert_eq!(open(&stack, &newer).await, b"hunter3");
}

#[tokio::test]
async fn secrets_survive_a_restart_of_the_embedded_store() {
    let app = TestApp::embedded_on_manual_clock().await;
    let stack = Stack::new(&app).await;
    let ciphertext = seal(&stack, b"hunter2").await;
    let restarted = app.another_process("server").await;
    assert_eq!(open(&stack.at(&restarted), &ciphertext).await, b"hunter2");
}

#[tokio::test]
async fn i10_cheap_a_batch_of_1000_costs_at_most_one_call_for_its_key() {
    let counter = Counter::new();
    let ids: Arc<dyn Ids> = Arc::new(SeededIds::new(1));
    let app = TestApp::memory_with(
        Arc::new(MemoryLedger::new()),
        Arc::new(MemoryBlobs::new()),
        Arc::new(Counting::new(MemoryKeys::new(Arc::clone(&ids)), counter.clone())),
        ids,
    )
    .await;
    let stack = Stack::new(&app).await;
    let plaintexts = json!({ "plaintexts": vec![STANDARD.encode("secret"); 1_000] });
    counter.take();
    let sealed = batch(&stack, "batch-encrypt", &plaintexts).await;
    let calls = counter.take();
    assert_eq!((calls.keys_generated, calls.keys_unwrapped), (1, 0), "the first creates the key");
    batch(&stack, "batch-decrypt", &sealed).await;
    batch(&stack, "batch-encrypt", &plaintexts).await;
    let calls = counter.take();
    assert_eq!((calls.keys_generated, calls.keys_unwrapped), (0, 0), "a warm process has it");
    let cold = app.another_process("server").await;
    batch(&stack.at(&cold), "batch-decrypt", &sealed).await;
    let calls = counter.take();
    assert_eq!((calls.keys_generated, calls.keys_unwrapped), (0, 1), "a cold one opens it once");
}

/// Every path of a secret through the server, and then a search of the whole store.
#[tokio::test]
async fn i7_secret_no_plaintext_is_stored_anywhere() {
    let (ledger, blobs) = (MemoryLedger::with_inline_bytes_max(64), MemoryBlobs::new());
    let ids: Arc<dyn Ids> = Arc::new(SeededIds::new(1));
    let keys = Arc::new(MemoryKeys::new(Arc::clone(&ids)));
    let app = TestApp::memory_with(Arc::new(ledger.clone()), Arc::new(blobs.clone()), keys, ids).await;
    let stack = Stack::new(&app).await;
    let secret = b"correct-horse-battery-staple";
    let ciphertext = seal(&stack, secret).await;
    let sealed = batch(&stack, "batch-encrypt", &json!({ "plaintexts": [STANDARD.encode(secret)] })).await;
    open(&stack, &ciphertext).await;
    batch(&stack, "batch-decrypt", &sealed).await;
    let mut resource = stack.resource("a");
    resource["outputs"] = json!({ "password": { "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": ciphertext } });
    let run = stack.begin().await;
    run.append(&[crate::world::entry(1, 1, &json!({ "state": resource }))]).await.expect(204);
    run.complete("succeeded").await.expect(204);
    assert!(stack.export().await.to_string().contains(&ciphertext));

    let encoded = STANDARD.encode(secret);
    let holds = |bytes: &[u8]| {
        [&secret[..], encoded.as_bytes(), app.token.as_bytes(), run.token.as_bytes()]
            .iter()
            .any(|needle| bytes.windows(needle.len()).any(|window| window == *needle))
    };
    let items = ledger.items();
    assert!(items.len() > 10);
    for item in items {
        assert!(!holds(&item.value), "{:?}", item.key);
    }
    let mut classes = BTreeSet::new();
    for key in blobs.keys() {
        classes.insert(key.to_string().split('/').next().unwrap().to_owned());
        let bytes = blobs.get(&key).await.unwrap().unwrap().into_bytes().await.unwrap();
        let text = statewright_shared::services::store::compression::gunzip(&bytes)
            .unwrap_or_else(|_| bytes.to_vec());
        assert!(!holds(&text), "{key}");
    }
    assert!(classes.len() >= 2, "the store has states and logs: {classes:?}");
}

#[tokio::test]
async fn a_secret_in_plain_text_is_refused_on_every_path() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let mut resource = stack.resource("a");
    resource["outputs"] = json!({ "password": { "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "plaintext": "\"hunter2\"" } });
    let state = crate::world::deployment(&[resource]);
    let call = app.request(Method::POST, &format!("{}/import", stack.path));
    let imported = call.gzip(state.to_string().as_bytes()).send().await.refused(400);
    let path = format!("/api/stacks/{ORG}/{}", stack.project);
    let created = app.post(&path, &json!({ "stackName": "other", "state": state })).send().await.refused(400);
    let run = stack.begin_whole().await;
    let saved = run.checkpoint(&state).await.refused(400);
    for words in [imported, created, saved] {
        assert!(!words.contains("hunter2"), "{words}");
    }
}
