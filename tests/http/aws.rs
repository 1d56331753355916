//! The server over the store on AWS, where answers are lost on every way.

use reqwest::Method;
use serde_json::{Value, json};
use statewright_tests::app::{ORG, TestApp};
use statewright_tests::aws::{Gateway, Play, StandIn};

use crate::states::text;
use crate::world::Stack;

/// A life with all that a store is asked for: a secret, a batch in the table, one that goes into the bucket, a version.
/// Gives what the stack is then.
async fn live(app: &TestApp) -> Value {
    let stack = Stack::new(app).await;
    let body = json!({ "plaintext": "aHVudGVyMg==" });
    let sealed = stack.post("/encrypt", &body).send().await.expect(200)["ciphertext"].clone();
    let run = stack.begin().await;
    run.append(&[stack.made(1, "small")]).await.expect(204);
    let mut large = stack.made(2, "large");
    // Does not compress: it is larger than what the table takes.
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

fn noise(length: u32) -> String {
    (0..length).map(|at| char::from(b'a' + (at.wrapping_mul(2_654_435_761) >> 21) as u8 % 26)).collect()
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

/// Each request to AWS in turn is lost on its way there or back, or failed inside: no client notices.
#[tokio::test]
async fn i3_acked_kept_and_i5_repeatable_whichever_answer_of_aws_is_lost() {
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

/// A state with all that is asked of a store for one: a lock, two writes, a refused one, an unlock.
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

/// The same of a state: whichever answer of AWS is lost, no client of Terraform's notices.
#[tokio::test]
async fn i3_acked_kept_and_i5_repeatable_of_a_state_whichever_answer_of_aws_is_lost() {
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
