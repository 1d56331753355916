//! Terraform states through an HTTP API, which passes only the methods of HTTP.

use reqwest::Method;
use serde_json::{Value, json};
use statewright_gateway::GatewayKind;
use statewright_shared::limits::{BALANCER_BYTES_MAX, FUNCTION_BYTES_MAX};
use statewright_shared::settings::StateLimits;
use statewright_tests::app::{Backend, ORG, TestApp};
use statewright_tests::functions::Setting;

/// A state with this serial and these resources.
pub(crate) fn text(serial: u64, resources: impl IntoIterator<Item = String>) -> Value {
    let resource = |name: String| {
        json!({
            "mode": "managed", "type": "terraform_data", "name": name,
            "provider": "provider[\"terraform.io/builtin/terraform\"]",
            "instances": [{ "schema_version": 0, "attributes": { "id": name, "input": "in-the-dark" } }],
        })
    };
    json!({
        "version": 4, "terraform_version": "1.12.6", "serial": serial, "lineage": "aaaa",
        "outputs": { "url": { "value": format!("v{serial}"), "type": "string" } },
        "resources": resources.into_iter().map(resource).collect::<Vec<_>>(), "check_results": null,
    })
}

/// A lock with this ID, in the format of clients.
pub(crate) fn lock(id: &str) -> Value {
    json!({
        "ID": id, "Operation": "OperationTypeApply", "Info": "", "Who": "alice@ci", "Version": "1.12.6",
        "Created": "2026-01-02T03:04:05Z", "Path": "",
    })
}

#[tokio::test]
async fn every_spelling_that_a_gateway_passes_reaches_the_states() {
    let app = TestApp::on(Backend::Functions).await;
    let path = format!("/tfstate/{ORG}/net");
    let texts = [1, 2, 3].map(|serial| text(serial, ["a".to_owned()]));
    for (method, tail, body) in [
        (Method::PUT, "", &texts[0]),
        (Method::PATCH, "", &texts[1]),
        (Method::POST, "/", &texts[2]),
        (Method::PUT, "/lock", &lock("run")),
        (Method::PUT, "/unlock", &lock("run")),
        (Method::POST, "/lock", &lock("next")),
        (Method::DELETE, "/lock/", &lock("next")),
    ] {
        let answer = app.request(method.clone(), &format!("{path}{tail}")).json(body).send().await;
        assert_eq!(answer.status, 200, "{method} {tail}: {}", answer.text());
    }
    let states = app.get(&format!("/api/orgs/{ORG}/tfstates/net/default")).send().await.expect(200);
    assert_eq!((&states["version"], &states["lock"]), (&json!(3), &Value::Null));
    assert_eq!(app.get(&format!("{path}/default/")).send().await.expect(200), texts[2]);
    assert_eq!(app.request(Method::HEAD, &path).send().await.status, 200);
    let outputs = app.get(&format!("{path}/outputs/")).send().await.expect(200);
    assert_eq!(outputs["outputs"]["url"]["value"], "v3");
    app.request(Method::DELETE, &path).send().await.refused(405);
    app.get(&format!("{path}/lock")).send().await.refused(405);
}

#[tokio::test]
async fn functions_answer_repeats_and_odd_requests_as_a_server_does() {
    let app = TestApp::on(Backend::Functions).await;
    let path = format!("/tfstate/{ORG}/net");
    let locks = format!("{path}/lock");
    let take = async |id: &str| app.post(&locks, &lock(id)).send().await;
    let give = async |body: &Value| app.request(Method::DELETE, &locks).json(body).send().await;
    let write = async |text: &Value, id: &str| app.post(&format!("{path}?ID={id}"), text).send().await;
    let texts = [1, 2, 3].map(|serial| text(serial, ["a".to_owned()]));
    // The same lock, and the same write, again.
    for _ in 0..2 {
        take("run").await.expect(200);
    }
    let held = take("other").await;
    held.refused(423);
    assert_eq!((&held.value()["ID"], &held.value()["Who"]), (&json!("run"), &json!("alice@ci")));
    for text in [&texts[0], &texts[0], &texts[1], &texts[1], &texts[0]] {
        write(text, "run").await.expect(200);
    }
    let changed =
        app.post(&format!("{path}?ID=run"), &texts[2]).header("Content-MD5", "1B2M2Y8AsgTpgAmY7PhCfg==");
    changed.send().await.refused(400);
    write(&texts[2], "other").await.refused(423);
    give(&lock("other")).await.refused(409);
    // Without a body, as Terraform breaks one, and then by the run that had it.
    app.request(Method::DELETE, &locks)
        .header("Content-MD5", "1B2M2Y8AsgTpgAmY7PhCfg==")
        .send()
        .await
        .expect(200);
    for _ in 0..2 {
        give(&lock("run")).await.expect(200);
    }
    write(&texts[2], "run").await.refused(409);
    assert_eq!(app.get(&path).send().await.expect(200), texts[1]);
    let state = app.get(&format!("/api/orgs/{ORG}/tfstates/net/default")).send().await.expect(200);
    assert_eq!((&state["version"], &state["lock"]), (&json!(2), &Value::Null));
    let rejected = format!("/api/tfstates/{}/rejected", state["id"].as_str().unwrap());
    let rejected = app.get(&rejected).send().await.expect(200);
    // A repeated write is kept once.
    assert_eq!(rejected["rejected"].as_array().unwrap().len(), 1, "{rejected}");
}

#[tokio::test]
async fn of_200_concurrent_locks_through_functions_one_is_taken() {
    let app = TestApp::on(Backend::Functions).await;
    let path = format!("/tfstate/{ORG}/net");
    app.post(&path, &text(1, [])).send().await.expect(200);
    let ids: Vec<String> = (0..200).map(|number| format!("run-{number}")).collect();
    let locks = format!("{path}/lock");
    let answers = futures::future::join_all(ids.iter().map(|id| app.post(&locks, &lock(id)).send())).await;
    let taken: Vec<&String> =
        ids.iter().zip(&answers).filter(|(_, answer)| answer.status == 200).map(|(id, _)| id).collect();
    let [winner] = taken[..] else { panic!("the lock has several holders: {taken:?}") };
    for answer in answers.iter().filter(|answer| answer.status != 200) {
        answer.refused(423);
        assert_eq!(answer.value()["ID"], winner.as_str());
    }
}

/// I8: clients treat "not found" as an empty state, whichever function answers it.
#[tokio::test]
async fn no_function_answers_404_for_a_state() {
    let app = TestApp::on(Backend::Functions).await;
    for path in ["/tfstate", "/tfstate/", "/tfstate/acme/net/prod/more", "/tfstate/acme//net"] {
        for method in [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let answer = app.request(method.clone(), path).send().await;
            assert!([400, 401, 403].contains(&answer.status.as_u16()), "{method} {path}: {}", answer.status);
        }
    }
}

#[tokio::test]
async fn a_state_near_a_functions_limit_warns_and_above_cannot_lock() {
    fits(GatewayKind::HttpApi, FUNCTION_BYTES_MAX).await;
}

#[tokio::test]
async fn a_state_near_a_balancers_limit_warns_and_above_cannot_lock() {
    fits(GatewayKind::Balancer, BALANCER_BYTES_MAX).await;
}

/// Users learn the limit before an apply: at half of the gateway's limit there is a warning, and near the limit
/// no lock.
async fn fits(kind: GatewayKind, bytes_max: usize) {
    let limits = StateLimits::of_gateway(bytes_max);
    let app = TestApp::on_functions(Setting { kind, ..Setting::default() }).await;
    let path = format!("/tfstate/{ORG}/net");
    let padded = |serial: u64, bytes: usize| {
        let mut text = text(serial, []);
        let rest = bytes - text.to_string().len() - r#","padding":"""#.len();
        text["padding"] = "x".repeat(rest).into();
        text
    };
    let write = async |serial, bytes| app.post(&path, &padded(serial, bytes)).send().await;
    let warning = "x-statewright-state-size-warning";
    assert!(!write(1, limits.warn_from - 1).await.headers.contains_key(warning));
    let long = write(2, limits.warn_from).await;
    long.expect(200);
    assert!(long.headers.contains_key(warning));
    let from = limits.no_lock_from.unwrap();
    write(3, from - 1).await.expect(200);
    for method in [Method::POST, Method::DELETE] {
        app.request(method, &format!("{path}/lock")).json(&lock("run")).send().await.expect(200);
    }
    write(4, from).await.expect(200);
    let words = app.post(&format!("{path}/lock"), &lock("next")).send().await.refused(413);
    assert!(words.contains("container"), "{words}");
    write(5, limits.bytes_max + 1).await.refused(413);
    // With the headers of every client.
    let read = app.get(&path).header("Accept-Encoding", "gzip").send().await;
    assert_eq!(read.status, 200, "an existing state can still be read");
}
