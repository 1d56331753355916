//! Terraform states: the clients' protocol request by request, and the requests of people.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::adapters::{Fault, Faults, Faulty, MemoryBlobs, MemoryKeys, MemoryLedger, SeededIds};
use statewright_shared::domain::ids::StateId;
use statewright_shared::domain::names::{Login, OrgName, TokenName};
use statewright_shared::domain::role::Role;
use statewright_shared::layout::{StateLock, StateLockEntry, delete, put};
use statewright_shared::ports::{BlobKey, Blobs as _, Expect, Ids, Ledger, Order, Query};
use statewright_shared::services::identity::tokens;
use statewright_shared::services::maintenance::{check, check_states, sweep};
use statewright_shared::settings::{Retention, Settings, StateLimits};
use statewright_tests::app::{Answer, Backend, ORG, TestApp, USER};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::api::call_counts::counted;
use crate::api::routes::STATE;
use crate::world::{new_project, raw, refusal};

const DAY: Duration = Duration::from_secs(86_400);

/// A state with this serial and these resources, and a secret in plain text, like every state.
pub(crate) fn text(serial: u64, resources: &[&str]) -> Value {
    let resource = |name: &&str| {
        json!({
            "mode": "managed", "type": "terraform_data", "name": name,
            "provider": "provider[\"terraform.io/builtin/terraform\"]",
            "instances": [{ "schema_version": 0, "attributes": { "id": name, "input": "hunter2" } }],
        })
    };
    json!({
        "version": 4, "terraform_version": "1.12.6", "serial": serial, "lineage": "aaaa",
        "outputs": { "url": { "value": format!("v{serial}"), "type": "string" },
                     "password": { "value": "hunter2", "type": "string", "sensitive": true } },
        "resources": resources.iter().map(resource).collect::<Vec<_>>(), "check_results": null,
    })
}

fn info(id: &str) -> Value {
    json!({
        "ID": id, "Operation": "OperationTypeApply", "Info": "", "Who": "alice@ci", "Version": "1.12.6",
        "Created": "2026-01-02T03:04:05Z", "Path": "",
    })
}

/// A state by its name, not created yet.
struct Net<'a> {
    app: &'a TestApp,
    path: String,
    project: String,
}

impl<'a> Net<'a> {
    fn new(app: &'a TestApp) -> Self {
        let project = new_project();
        Self { app, path: format!("/tfstate/{ORG}/{project}"), project }
    }

    async fn lock(&self, id: &str) -> Answer {
        self.app.request(verb("LOCK"), &self.path).json(&info(id)).send().await
    }

    async fn unlock(&self, id: &str) -> Answer {
        self.app.request(verb("UNLOCK"), &self.path).json(&info(id)).send().await
    }

    async fn write(&self, text: &Value, lock: Option<&str>) -> Answer {
        let query = lock.map(|lock| format!("?ID={lock}")).unwrap_or_default();
        self.app.post(&format!("{}{query}", self.path), text).send().await
    }

    async fn read(&self) -> Answer {
        self.app.get(&self.path).send().await
    }

    async fn shown(&self) -> Value {
        let path = format!("/api/orgs/{ORG}/tfstates/{}/default", self.project);
        self.app.get(&path).send().await.expect(200)
    }

    /// Its path in the API.
    async fn api(&self) -> String {
        format!("/api/tfstates/{}", self.shown().await["id"].as_str().unwrap())
    }

    async fn versions(&self) -> Vec<Value> {
        let path = format!("{}/versions", self.api().await);
        self.app.get(&path).send().await.expect(200)["versions"].as_array().unwrap().clone()
    }

    async fn rejected(&self) -> Vec<Value> {
        let path = format!("{}/rejected", self.api().await);
        self.app.get(&path).send().await.expect(200)["rejected"].as_array().unwrap().clone()
    }

    async fn policy(&self, policy: &Value) {
        self.app.patch(&self.api().await, &json!({ "policy": policy })).send().await.expect(200);
    }
}

fn verb(name: &str) -> Method {
    Method::from_bytes(name.as_bytes()).unwrap()
}

pub(crate) async fn with_settings(settings: Settings) -> TestApp {
    let ids: Arc<dyn Ids> = Arc::new(SeededIds::new(1));
    let keys = MemoryKeys::new(Arc::clone(&ids));
    let ledger = Arc::new(MemoryLedger::new());
    TestApp::memory_with_settings(ledger, Arc::new(MemoryBlobs::new()), Arc::new(keys), ids, settings).await
}

/// A client shows its user only the status, and does not retry.
#[tokio::test]
async fn an_invalid_lock_or_state_gets_a_400_and_changes_nothing() {
    let app = TestApp::memory().await;
    let net = Net::new(&app);
    let send = async |method: &str, body: &str| {
        app.request(verb(method), &net.path).raw(body.as_bytes().to_vec()).send().await
    };
    for body in ["", "{", "[]", "null", "{}", r#"{"ID":""}"#, r#"{"ID":7}"#, "\u{feff}{\"ID\":\"a\"}"] {
        send("LOCK", body).await.refused(400);
    }
    for body in
        ["", "{", "[]", "null", "{}", r#"{"serial":"1"}"#, r#"{"serial":-1,"lineage":"a"}"#, "no json"]
    {
        send("POST", body).await.refused(400);
    }
    for body in ["{", "[]", r#"{"ID":7}"#] {
        send("UNLOCK", body).await.refused(400);
    }
    assert_eq!(net.read().await.status, 204);
    let states = app.get(&format!("/api/orgs/{ORG}/tfstates")).send().await.expect(200);
    assert_eq!(states["states"], json!([]));
}

#[tokio::test]
async fn a_server_warns_from_10_mib_and_accepts_more() {
    let app = TestApp::memory().await;
    let net = Net::new(&app);
    let padded = |serial: u64, bytes: usize| {
        let mut text = text(serial, &[]);
        text["padding"] = "".into();
        let rest = bytes - text.to_string().len();
        text["padding"] = "x".repeat(rest).into();
        text
    };
    let warning = "x-statewright-state-size-warning";
    for (serial, bytes, warned) in [(1, (10 << 20) - 1, false), (2, 10 << 20, true)] {
        let answer = net.write(&padded(serial, bytes), None).await;
        answer.expect(200);
        assert_eq!(answer.headers.contains_key(warning), warned, "{bytes}");
    }
    net.lock("run").await.expect(200);
    assert_eq!(net.versions().await[0]["bytes"], 10 << 20);
}

/// A client whose upload breaks off retries twice, and then does not report why.
#[tokio::test]
async fn a_state_over_the_limit_is_read_to_its_end_before_the_refusal() {
    let states = StateLimits { bytes_max: 10_000, ..StateLimits::SERVER };
    let app = with_settings(Settings { states, ..Settings::default() }).await;
    let net = Net::new(&app);
    let body = vec![b'x'; 8 << 20];
    let mut socket = TcpStream::connect(app.url.trim_start_matches("http://")).await.unwrap();
    let request = format!(
        "POST {} HTTP/1.1\r\nHost: statewright\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\
         Content-Type: application/json\r\n\r\n",
        net.path,
        app.token,
        body.len()
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    // The client reads nothing meanwhile, as if it were busy sending.
    socket.write_all(&body).await.expect("all of it is taken");
    let mut answer = vec![0; 12];
    socket.read_exact(&mut answer).await.unwrap();
    assert_eq!(String::from_utf8(answer).unwrap(), "HTTP/1.1 413");
    // The connection still works for the next request.
    let head = format!("HEAD {} HTTP/1.1\r\nHost: statewright\r\nConnection: close\r\n\r\n", net.path);
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut rest = Vec::new();
    socket.read_to_end(&mut rest).await.unwrap();
    assert!(String::from_utf8_lossy(&rest).contains("HTTP/1.1 401"));
}

/// The stores of a state: memory, a folder, and AWS behind two processes.
async fn every_store() -> [TestApp; 3] {
    [TestApp::memory().await, TestApp::embedded().await, TestApp::on(Backend::Aws).await]
}

#[tokio::test]
async fn a_state_is_returned_byte_for_byte() {
    let app = TestApp::memory().await;
    for body in [
        "{\"version\": 4,\n  \"serial\": 1, \"lineage\": \"a\",  \"big\": 12345678901234567890.10}\n",
        " {\"serial\":1,\"encrypted_data\":\"q83v\",  \"encryption_version\":\"v0\",\"meta\":{}} ",
        "{\"serial\":18446744073709551615,\"lineage\":\"\\u00e4\\/\",\"outputs\":null,\"resources\":null}",
    ] {
        let net = Net::new(&app);
        app.request(Method::POST, &net.path).raw(body.into()).send().await.expect(200);
        assert_eq!(net.read().await.text(), body);
        let packed = app.get(&net.path).header("Accept-Encoding", "gzip").send().await;
        assert_eq!(packed.headers["content-encoding"], "gzip");
        let unpacked = statewright_shared::services::store::compression::gunzip(&packed.bytes).unwrap();
        assert_eq!(String::from_utf8(unpacked).unwrap(), body);
        let head = app.request(Method::HEAD, &net.path).send().await;
        assert_eq!((head.status.as_u16(), head.bytes.len()), (200, 0));
    }
}

#[tokio::test]
async fn a_lock_is_taken_once_however_often_it_is_requested() {
    for app in every_store().await {
        let net = Net::new(&app);
        net.lock("a").await.expect(200);
        net.lock("a").await.expect(200);
        let held = net.lock("b").await.refused(423);
        assert!(held.contains("alice"), "{held}");
        let body = net.lock("b").await.value();
        let mut expected = info("a");
        expected["principal"] = USER.into();
        expected["code"] = 423.into();
        expected["message"] = body["message"].clone();
        expected["reason"] = "state_locked".into();
        assert_eq!(body, expected);
        net.unlock("b").await.refused(409);
        net.unlock("a").await.expect(200);
        net.unlock("a").await.expect(200);
        // A repeated unlock whose first answer was lost, while another user has the lock.
        net.lock("b").await.expect(200);
        net.unlock("a").await.expect(200);
        net.unlock("never").await.refused(409);
        assert_eq!(net.shown().await["lock"]["ID"], "b");
        net.unlock("b").await.expect(200);
        assert_eq!(net.shown().await["lock"], Value::Null);
    }
}

/// The bytes that Terraform's `force-unlock` sends.
#[tokio::test]
async fn an_empty_chunked_unlock_breaks_whatever_lock_there_is() {
    for app in every_store().await {
        let authorization = STANDARD.encode(format!("anybody:{}", app.token));
        for (verb, tail) in [("UNLOCK", ""), ("UNLOCK", "/unlock"), ("DELETE", "/lock"), ("POST", "/unlock")]
        {
            let net = Net::new(&app);
            net.lock("a").await.expect(200);
            let mut socket = TcpStream::connect(app.url.trim_start_matches("http://")).await.unwrap();
            let request = format!(
                "{verb} {}{tail} HTTP/1.1\r\nHost: statewright\r\nConnection: close\r\nUser-Agent: Go-http-client/1.1\r\n\
                 Transfer-Encoding: chunked\r\nAuthorization: Basic {authorization}\r\n\
                 Content-Md5: 1B2M2Y8AsgTpgAmY7PhCfg==\r\nContent-Type: application/json\r\n\
                 Accept-Encoding: gzip\r\n\r\n0\r\n\r\n",
                net.path
            );
            socket.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            socket.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{verb} {tail}: {answer}");
            assert_eq!(net.shown().await["lock"], Value::Null, "{verb} {tail}");
            let record =
                app.take_audit().into_iter().find(|record| record["action"] == "state.unlock").unwrap();
            assert_eq!(record["detail"], "forced: lock a of alice");
        }
    }
}

#[tokio::test]
async fn a_write_that_is_sent_again_is_one_version() {
    for app in every_store().await {
        let net = Net::new(&app);
        net.lock("run").await.expect(200);
        let (first, second) = (text(1, &["a"]), text(2, &["a", "b"]));
        for (text, expected) in [(&first, "1"), (&first, "1"), (&second, "2"), (&second, "2")] {
            let answer = net.write(text, Some("run")).await;
            answer.expect(200);
            assert_eq!(answer.headers["x-statewright-version"], expected);
        }
        // A delayed write does not replace what its own run has written since.
        net.write(&first, Some("run")).await.expect(200);
        assert_eq!(net.read().await.expect(200), second);
        net.unlock("run").await.expect(200);
        net.write(&second, Some("run")).await.expect(200);
        assert_eq!(net.versions().await.len(), 2);
        assert_eq!(net.rejected().await, [Value::Null; 0]);
    }
}

#[tokio::test]
async fn a_body_that_was_changed_on_its_way_is_refused() {
    for app in every_store().await {
        let net = Net::new(&app);
        let body = text(1, &[]).to_string();
        let send = async |md5: &str| {
            let call = app.request(Method::POST, &net.path).header("Content-MD5", md5);
            call.raw(body.clone().into_bytes()).send().await
        };
        for wrong in ["1B2M2Y8AsgTpgAmY7PhCfg==", "", "no base64!", "AAAA"] {
            send(wrong).await.refused(400);
        }
        assert_eq!(net.read().await.status, 204);
        let right = {
            use md5::Digest as _;
            STANDARD.encode(md5::Md5::digest(&body))
        };
        send(&right).await.expect(200);
    }
}

#[tokio::test]
async fn a_refused_write_is_kept_and_can_become_a_version() {
    for app in every_store().await {
        let net = Net::new(&app);
        net.lock("first").await.expect(200);
        net.write(&text(1, &["a"]), Some("first")).await.expect(200);
        // Its lock is broken, and another run has it.
        app.request(verb("UNLOCK"), &net.path).send().await.expect(200);
        net.write(&text(2, &["a", "lost"]), Some("first")).await.refused(409);
        net.lock("second").await.expect(200);
        let locked = net.write(&text(2, &["a", "late"]), Some("first")).await;
        locked.refused(423);
        assert_eq!(locked.value()["ID"], "second");
        net.write(&text(2, &["a", "unlocked"]), None).await.refused(423);
        net.write(&text(2, &["a", "unlocked"]), None).await.refused(423);
        net.write(&text(2, &["b"]), Some("second")).await.expect(200);
        net.unlock("second").await.expect(200);
        net.write(&text(2, &["stale"]), None).await.refused(409);
        net.write(&text(3, &["c"]), None).await.expect(200);

        let rejected = net.rejected().await;
        let whys: Vec<_> =
            rejected.iter().map(|it| (it["why"].as_str().unwrap(), it["lock"].as_str())).collect();
        let mut expected =
            vec![("displaced", Some("first")), ("locked", Some("first")), ("locked", None), ("stale", None)];
        expected.sort();
        let mut found = whys.clone();
        found.sort();
        assert_eq!(found, expected);
        let lost = rejected.iter().find(|it| it["why"] == "displaced").unwrap();
        let (api, id) = (net.api().await, lost["id"].as_str().unwrap());
        let kept = app.get(&format!("{api}/versions/{id}/text")).send().await;
        assert_eq!(kept.expect(200), text(2, &["a", "lost"]));
        let diff = app.get(&format!("{api}/versions/1/diff/{id}")).send().await.expect(200);
        assert_eq!(diff["resources"]["added"], json!(["terraform_data.lost"]));

        let promoted =
            app.post(&format!("{api}/versions/{id}/restore"), &Value::Null).send().await.expect(200);
        assert_eq!(promoted["version"], 4);
        assert_eq!(net.read().await.expect(200), text(4, &["a", "lost"]).with_output_of(2));
        let newest = &net.versions().await[0];
        assert_eq!((&newest["source"], &newest["of"]), (&json!("promoted"), &json!(id)));
    }
}

trait WithOutput {
    /// The text with its output, under another serial.
    fn with_output_of(self, serial: u64) -> Self;
}

impl WithOutput for Value {
    fn with_output_of(mut self, serial: u64) -> Self {
        self["outputs"]["url"]["value"] = format!("v{serial}").into();
        self
    }
}

#[tokio::test]
async fn a_restored_version_is_new_and_has_a_higher_serial() {
    let app = TestApp::memory().await;
    let net = Net::new(&app);
    net.write(&text(1, &["a"]), None).await.expect(200);
    net.write(&text(5, &["a", "b"]), None).await.expect(200);
    let api = net.api().await;
    net.lock("run").await.expect(200);
    app.post(&format!("{api}/versions/1/restore"), &Value::Null).send().await.refused(423);
    net.unlock("run").await.expect(200);
    app.post(&format!("{api}/versions/9/restore"), &Value::Null).send().await.refused(404);
    let restored = app.post(&format!("{api}/versions/1/restore"), &Value::Null).send().await.expect(200);
    assert_eq!(restored, json!({ "version": 3 }));
    // The current one is unchanged.
    let restored = app.post(&format!("{api}/versions/3/restore"), &Value::Null).send().await.expect(200);
    assert_eq!((restored, net.versions().await.len()), (json!({ "version": 3 }), 3));
    // Only the serial changes, and the next apply continues from there.
    assert_eq!(net.read().await.text(), text(6, &["a"]).with_output_of(1).to_string());
    net.write(&text(7, &["a"]), None).await.expect(200);
    let versions = net.versions().await;
    let shown: Vec<_> = versions.iter().map(|it| (&it["source"], &it["of"], &it["serialFell"])).collect();
    let (written, none) = (json!("written"), Value::Null);
    let no = json!(false);
    assert_eq!(
        shown,
        [
            (&written, &none, &no),
            (&json!("restored"), &json!("1"), &no),
            (&written, &none, &no),
            (&written, &none, &no)
        ]
    );
    assert_eq!(versions[1]["changes"]["removed"], json!(["terraform_data.b"]));
    let first = app.get(&format!("{api}/versions/1/text")).send().await;
    assert_eq!(first.text(), text(1, &["a"]).to_string());

    let encrypted =
        json!({ "serial": 8, "lineage": "aaaa", "encrypted_data": "q83v", "encryption_version": "v0" });
    net.write(&encrypted, None).await.expect(200);
    let outputs = app.get(&format!("{api}/outputs")).send().await.expect(200);
    assert_eq!(outputs, json!({ "version": 5, "encrypted": true, "outputs": null }));
    assert_eq!(app.get(&format!("{}/outputs", net.path)).send().await.status, 403);
}

/// Only its client could give it another serial, and refuses to read the file.
#[tokio::test]
async fn an_encrypted_state_is_restored_as_it_is() {
    let app = TestApp::memory().await;
    let net = Net::new(&app);
    let encrypted = |serial: u64, data: &str| json!({ "serial": serial, "lineage": "aaaa", "encrypted_data": data, "encryption_version": "v0" });
    for (serial, data) in [(1, "AAAA"), (2, "BBBB")] {
        net.write(&encrypted(serial, data), None).await.expect(200);
    }
    let api = net.api().await;
    let restored = app.post(&format!("{api}/versions/1/restore"), &Value::Null).send().await.expect(200);
    assert_eq!(restored["version"], 3);
    assert_eq!(net.read().await.text(), encrypted(1, "AAAA").to_string());
    let newest = net.versions().await[0].clone();
    assert_eq!((&newest["serialFell"], &newest["lineageChanged"]), (&json!(true), &json!(false)));
    // A run continues from it.
    net.lock("run").await.expect(200);
    net.write(&encrypted(2, "CCCC"), Some("run")).await.expect(200);
    net.unlock("run").await.expect(200);
    // A refused write can be restored too.
    net.lock("other").await.expect(200);
    net.write(&encrypted(9, "DDDD"), Some("gone")).await.refused(423);
    net.unlock("other").await.expect(200);
    let id = net.rejected().await[0]["id"].as_str().unwrap().to_owned();
    app.post(&format!("{api}/versions/{id}/restore"), &Value::Null).send().await.expect(200);
    let newest = net.versions().await[0].clone();
    assert_eq!((&newest["serial"], &newest["serialFell"]), (&json!(9), &json!(false)));
}

/// No client writes such a name, but any user with `apply` can send one. The state must stay writable.
#[tokio::test]
async fn a_line_break_in_a_name_breaks_no_later_write() {
    let app = TestApp::memory().await;
    let path = format!("/tfstate/{ORG}/net/odd");
    for serial in 1..=4 {
        let name = if serial == 4 { "plain" } else { "a\nb" };
        let state = json!({
            "version": 4, "terraform_version": "1.5.7", "serial": serial, "lineage": "A", "outputs": {},
            "resources": [{
                "mode": "managed", "type": "t\nu", "name": name, "module": "module.m\nn", "provider": "p",
                "instances": [{ "attributes": {} }],
            }],
        });
        app.post(&path, &state).send().await.expect(200);
    }
}

#[tokio::test]
async fn outputs_are_read_without_the_state() {
    let app = TestApp::memory().await;
    let net = Net::new(&app);
    assert_eq!(app.get(&format!("{}/outputs", net.path)).send().await.status, 204);
    net.write(&text(3, &["a"]), None).await.expect(200);
    let only = app.get(&format!("{}/outputs", net.path)).send().await.expect(200);
    let mut expected = text(3, &[]);
    expected["resources"] = json!([]);
    assert_eq!(only, expected);
    let outputs = app.get(&format!("{}/outputs", net.api().await)).send().await.expect(200);
    assert_eq!(outputs, json!({ "version": 1, "encrypted": false, "outputs": expected["outputs"] }));
    assert!(!app.get(&net.api().await).send().await.text().contains("hunter2"));
    assert!(!net.versions().await.iter().any(|version| version.to_string().contains("hunter2")));
}

#[tokio::test]
async fn of_200_concurrent_locks_one_is_taken() {
    for app in every_store().await {
        let net = Net::new(&app);
        // So that they race for the lock and not for the name.
        net.write(&text(1, &[]), None).await.expect(200);
        let ids: Vec<String> = (0..200).map(|number| format!("run-{number}")).collect();
        let answers = futures::future::join_all(ids.iter().map(|id| net.lock(id))).await;
        let winners: Vec<&String> =
            ids.iter().zip(&answers).filter(|(_, answer)| answer.status == 200).map(|(id, _)| id).collect();
        let [winner] = winners[..] else { panic!("the lock has several holders: {winners:?}") };
        for answer in answers.iter().filter(|answer| answer.status != 200) {
            answer.refused(423);
            assert_eq!(answer.value()["ID"], winner.as_str());
        }
    }
}

#[tokio::test]
async fn a_first_lock_at_once_by_many_makes_one_state() {
    let app = TestApp::memory().await;
    let net = Net::new(&app);
    let ids: Vec<String> = (0..20).map(|number| format!("run-{number}")).collect();
    let answers = futures::future::join_all(ids.iter().map(|id| net.lock(id))).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 1);
    let listed =
        app.get(&format!("/api/orgs/{ORG}/tfstates?project={}", net.project)).send().await.expect(200);
    assert_eq!(listed["states"].as_array().unwrap().len(), 1);
}

/// Clients treat 404 as an empty state.
#[tokio::test]
async fn i8_walled_foreign_and_missing_states_look_alike_never_404() {
    let (app, counter) = counted().await;
    let stranger = app.other_user("mallory", "evil").await;
    let new = json!({ "id": STATE, "project": "net" });
    app.post(&format!("/api/orgs/{ORG}/tfstates"), &new).send().await.expect(200);
    app.post(&format!("/tfstate/{STATE}"), &text(1, &["a"])).send().await.expect(200);
    app.get("/api/user").token(&stranger).send().await.expect(200);
    let nowhere = STATE.replace("0001", "0002");
    let calls = [
        ("GET", ""),
        ("POST", ""),
        ("PUT", ""),
        ("LOCK", ""),
        ("UNLOCK", ""),
        ("POST", "/lock"),
        ("DELETE", "/lock"),
        ("UNLOCK", "/unlock"),
        ("GET", "/outputs"),
        ("DELETE", ""),
    ];
    for (method, tail) in calls {
        let mut body = text(9, &[]);
        body["ID"] = "x".into();
        let mut answers = Vec::new();
        for state in [STATE.to_owned(), nowhere.clone(), format!("{ORG}/net"), "nobody/net".to_owned()] {
            counter.take();
            let path = format!("/tfstate/{state}{tail}");
            let answer = app.request(verb(method), &path).token(&stranger).json(&body).send().await;
            answer.refused(403);
            answers.push((
                answer.text().replace(&state, "…").replace(&format!("{state}/default"), "…"),
                counter.take(),
            ));
        }
        assert_eq!(answers[0], answers[1], "{method} {tail}");
        assert_eq!(
            answers[2].0.replace("/default", ""),
            answers[3].0.replace("/default", ""),
            "{method} {tail}"
        );
        assert_eq!(answers[2].1, Default::default(), "{method} {tail} makes calls");
    }
    for (method, tail) in [
        ("GET", ""),
        ("PATCH", ""),
        ("DELETE", ""),
        ("GET", "/lock"),
        ("POST", "/lock"),
        ("DELETE", "/lock"),
        ("GET", "/versions"),
        ("GET", "/versions/1"),
        ("GET", "/versions/1/text"),
        ("POST", "/versions/1/text"),
        ("GET", "/rejected"),
        ("GET", "/versions/1/diff/1"),
        ("GET", "/resources"),
        ("GET", "/resource?address=terraform_data.a"),
        ("POST", "/resource/values"),
        ("GET", "/resource/history?address=terraform_data.a"),
        ("POST", "/versions/1/restore"),
        ("GET", "/outputs"),
        ("POST", "/outputs"),
        ("DELETE", "/protection"),
        ("POST", "/undelete"),
    ] {
        let mut answers = Vec::new();
        for state in [STATE, nowhere.as_str()] {
            counter.take();
            let call = app.request(verb(method), &format!("/api/tfstates/{state}{tail}")).token(&stranger);
            let answer = call.json(&json!({})).send().await;
            answer.refused(404);
            answers.push((answer.text().replace(state, "…"), counter.take()));
        }
        assert_eq!(answers[0], answers[1], "{method} {tail}");
    }
    // A taken id is taken for everyone, and the answer does not say by whom.
    let theirs = app.post("/api/orgs/evil/tfstates", &new).token(&stranger).send().await.refused(409);
    assert!(!theirs.contains("acme"), "{theirs}");
    assert_eq!(app.get(&format!("/tfstate/{STATE}")).send().await.expect(200), text(1, &["a"]));
}

#[tokio::test]
async fn a_method_that_is_none_is_answered_with_those_that_are() {
    let app = TestApp::memory().await;
    let net = Net::new(&app);
    for (method, tail, allowed) in [
        ("OPTIONS", "", "GET, HEAD, POST, PUT, PATCH, LOCK, UNLOCK"),
        ("GET", "/lock", "LOCK, POST, PUT, UNLOCK, DELETE"),
        ("LOCK", "/unlock", "UNLOCK, POST, PUT, DELETE"),
        ("POST", "/outputs", "GET, HEAD"),
    ] {
        let answer = app.request(verb(method), &format!("{}{tail}", net.path)).anonymous().send().await;
        answer.refused(405);
        assert_eq!(answer.headers["allow"], allowed);
    }
}

#[tokio::test]
async fn a_client_deletes_a_state_only_if_allowed_and_undeletably() {
    for app in every_store().await {
        let net = Net::new(&app);
        let delete = async |path: &str| app.request(Method::DELETE, path).send().await;
        let refused = async |answer: Answer| {
            let words = answer.refused(405);
            assert!(words.contains("--delete-allowed true"), "{words}");
            assert_eq!(answer.headers["allow"], "GET, HEAD, POST, PUT, PATCH, LOCK, UNLOCK");
        };
        refused(delete(&net.path).await).await;
        net.write(&text(1, &["a"]), None).await.expect(200);
        refused(delete(&net.path).await).await;
        app.request(Method::DELETE, &net.path).anonymous().send().await.refused(401);
        net.policy(&json!({ "deleteAllowed": true })).await;
        // A state with resources or a lock is kept.
        let words = delete(&net.path).await.refused(409);
        assert!(words.contains("resource"), "{words}");
        net.write(&text(2, &[]), None).await.expect(200);
        net.lock("run").await.expect(200);
        delete(&net.path).await.refused(423);
        net.unlock("run").await.expect(200);
        let id = net.shown().await["id"].as_str().unwrap().to_owned();
        delete(&format!("{}/", net.path)).await.expect(200);
        assert_eq!(net.read().await.status, 204);
        assert_eq!(delete(&format!("/tfstate/{id}")).await.status, 403);
        app.post(&format!("/api/tfstates/{id}/undelete"), &Value::Null).send().await.expect(200);
        assert_eq!(net.read().await.expect(200), text(2, &[]));
        assert_eq!(net.versions().await.len(), 2);
    }
}

/// I8: a mistyped address is not an empty state.
#[tokio::test]
async fn where_no_state_can_be_is_never_404() {
    let app = TestApp::memory().await;
    for path in ["/tfstate", "/tfstate/", "/tfstate/acme/net/prod/more", "/tfstate/acme//net", "/tfstate//"] {
        for method in ["GET", "HEAD", "POST", "PUT", "LOCK", "DELETE"] {
            for anonymous in [true, false] {
                let call = app.request(verb(method), path);
                let answer = if anonymous { call.anonymous() } else { call }.send().await;
                assert!(
                    [400, 401, 403].contains(&answer.status.as_u16()),
                    "{method} {path}: {}",
                    answer.status
                );
            }
        }
    }
    let (status, body) = raw(&app, "GET", "/tfstate/acme/net/a/b", &[], b"").await;
    refusal(status, &body);
}

#[tokio::test]
async fn a_token_is_accepted_in_every_form_that_clients_send() {
    let app = TestApp::memory().await;
    let net = Net::new(&app);
    net.write(&text(1, &[]), None).await.expect(200);
    let basic = |text: String| format!("Basic {}", STANDARD.encode(text));
    for good in [
        basic(format!("anybody:{}", app.token)),
        basic(format!(":{}", app.token)),
        basic(format!("{}:", app.token)),
        format!("Bearer {}", app.token),
        format!("bearer {}", app.token),
        format!("token {}", app.token),
    ] {
        let (status, _) = raw(&app, "GET", &net.path, &[("Authorization", &good)], b"").await;
        assert_eq!(status, 200, "{good}");
    }
    let refused = app.get(&net.path).anonymous().send().await;
    refused.refused(401);
    assert_eq!(refused.headers["www-authenticate"], "Basic realm=\"statewright\", charset=\"UTF-8\"");
}

/// The lock proves that the run began in time.
#[tokio::test]
async fn an_expired_token_of_a_lock_holder_saves_only_its_state() {
    let app = TestApp::memory().await;
    let name = |name: &str| TokenName::parse(name).unwrap();
    let hour = Some(Duration::from_secs(3_600));
    let login = Login::parse(USER).unwrap();
    let short = tokens::create_token(&app.context, &login, &name("short"), hour).await.unwrap();
    let others = app.member("bob", "laptop").await;
    let (net, free) = (Net::new(&app), Net::new(&app));
    app.request(verb("LOCK"), &net.path).token(&short).json(&info("run")).send().await.expect(200);
    free.write(&text(1, &[]), None).await.expect(200);
    app.advance(Duration::from_secs(3_601));
    let ask = async |method: &str, path: &str, body: &Value| {
        app.request(verb(method), path).token(&short).json(body).send().await
    };
    let with_lock = |id: &str| format!("{}?ID={id}", net.path);
    // Requests outside of its own run.
    ask("GET", &free.path, &Value::Null).await.refused(401);
    ask("LOCK", &net.path, &info("run")).await.refused(401);
    ask("POST", &net.path, &text(1, &[])).await.refused(401);
    ask("POST", &with_lock("other"), &text(1, &[])).await.refused(401);
    ask("UNLOCK", &net.path, &info("other")).await.refused(401);
    ask("POST", &free.path, &text(2, &[])).await.refused(401);
    ask("GET", &net.api().await, &Value::Null).await.refused(401);
    // Requests of its own run. A run reads once more before it writes a state for the first time.
    assert_eq!(ask("GET", &net.path, &Value::Null).await.status, 204);
    ask("POST", &with_lock("run"), &text(1, &["a"])).await.expect(200);
    app.advance(DAY - Duration::from_secs(10));
    ask("POST", &with_lock("run"), &text(2, &["a"])).await.expect(200);
    ask("UNLOCK", &net.path, &info("run")).await.expect(200);
    ask("POST", &with_lock("run"), &text(3, &["a"])).await.refused(401);
    ask("GET", &net.path, &Value::Null).await.refused(401);
    assert_eq!(net.read().await.expect(200), text(2, &["a"]));
    // A lock that was taken after the expiry proves nothing, nor does another user's lock.
    app.request(verb("LOCK"), &net.path).token(&others).json(&info("theirs")).send().await.expect(200);
    ask("POST", &with_lock("theirs"), &text(9, &[])).await.refused(401);
    app.request(verb("UNLOCK"), &net.path).token(&others).json(&info("theirs")).send().await.expect(200);
    net.lock("late").await.expect(200);
    ask("POST", &with_lock("late"), &text(9, &[])).await.refused(401);
    net.unlock("late").await.expect(200);
    // The grace ends.
    app.advance(Duration::from_secs(20));
    ask("POST", &with_lock("run"), &text(3, &["a"])).await.refused(401);
}

#[tokio::test]
async fn a_lock_expires_only_by_policy_and_its_run_loses_nothing() {
    let app = TestApp::memory().await;
    let net = Net::new(&app);
    net.lock("lost").await.expect(200);
    app.advance(100 * DAY);
    net.lock("next").await.refused(423);
    net.policy(&json!({ "lockExpiresAfterSeconds": 3600 })).await;
    assert_eq!(net.shown().await["lock"]["expired"], true);
    // It still belongs to its holder, until another user takes it.
    net.write(&text(1, &["a"]), Some("lost")).await.expect(200);
    net.lock("next").await.refused(423);
    app.advance(Duration::from_secs(3_600));
    net.lock("next").await.expect(200);
    net.write(&text(2, &["a", "late"]), Some("lost")).await.refused(423);
    assert_eq!(net.rejected().await.len(), 1);
    net.unlock("lost").await.expect(200);
    assert_eq!(net.shown().await["lock"]["ID"], "next");
    net.unlock("next").await.expect(200);
    // A lock that was taken by hand stays.
    let api = net.api().await;
    app.post(&format!("{api}/lock"), &json!({ "reason": "maintenance" })).send().await.expect(200);
    app.advance(DAY);
    let held = net.lock("next").await;
    held.refused(423);
    assert_eq!((&held.value()["Who"], &held.value()["Info"]), (&json!("alice"), &json!("maintenance")));
}

#[tokio::test]
async fn a_policy_refuses_every_violation() {
    let app = TestApp::memory().await;
    let net = Net::new(&app);
    net.write(&text(5, &["a"]), None).await.expect(200);
    net.policy(&json!({ "locksRequired": true, "strict": true })).await;
    net.write(&text(6, &["a"]), None).await.refused(409);
    net.lock("run").await.expect(200);
    net.write(&text(4, &["a"]), Some("run")).await.refused(409);
    net.write(&text(6, &["a"]), Some("run")).await.expect(200);
    net.policy(&json!({})).await;
    net.write(&text(4, &["a"]), Some("run")).await.expect(200);
    assert_eq!(net.versions().await[0]["serialFell"], true);
    let whys: Vec<Value> = net.rejected().await.into_iter().map(|it| it["why"].clone()).collect();
    assert_eq!(whys, ["lock-required", "strict"]);
}

#[tokio::test]
async fn a_large_state_warns_and_a_too_large_one_cannot_be_locked() {
    let states = StateLimits::of_gateway(10_000);
    let app = with_settings(Settings { states, ..Settings::default() }).await;
    let net = Net::new(&app);
    let padded = |serial: u64, bytes: usize| {
        let mut text = text(serial, &[]);
        text["padding"] = "x".repeat(bytes).into();
        text
    };
    let short = net.write(&padded(1, 10), None).await;
    short.expect(200);
    assert!(!short.headers.contains_key("x-statewright-state-size-warning"));
    let long = net.write(&padded(2, 5_000), None).await;
    long.expect(200);
    let warning = long.headers["x-statewright-state-size-warning"].to_str().unwrap();
    assert!(warning.contains("5000") && warning.contains("10000"), "{warning}");
    net.lock("run").await.expect(200);
    net.write(&padded(3, 9_000), Some("run")).await.expect(200);
    net.unlock("run").await.expect(200);
    let words = net.lock("next").await.refused(413);
    assert!(words.contains("container"), "{words}");
    net.write(&padded(4, 10_000), None).await.refused(413);
    assert_eq!(net.versions().await.len(), 3);
}

#[tokio::test]
async fn a_state_has_an_id_for_ever_and_names_that_change() {
    let app = TestApp::memory().await;
    let (project, other) = (new_project(), new_project());
    let states = format!("/api/orgs/{ORG}/tfstates");
    let new = json!({ "id": STATE, "project": project, "state": "prod" });
    let made = app.post(&states, &new).send().await.expect(200);
    assert_eq!(app.post(&states, &new).send().await.expect(200), made);
    assert_eq!(made["path"], format!("/tfstate/{STATE}"));
    app.post(&states, &json!({ "project": project, "state": "prod" })).send().await.refused(409);
    app.post(&states, &json!({ "id": STATE, "project": other })).send().await.refused(409);
    for wrong in
        [json!({ "id": "7", "project": project }), json!({ "project": "a b" }), json!({ "project": "lock" })]
    {
        app.post(&states, &wrong).send().await.refused(400);
    }
    let by_server = app.post(&states, &json!({ "project": other })).send().await.expect(200);
    assert_eq!(&by_server["id"].as_str().unwrap()[14..15], "7", "a UUID of version 7");
    assert_eq!(by_server["state"], "default");

    let name = format!("/tfstate/{ORG}/{project}/prod");
    app.post(&name, &text(1, &["a"])).send().await.expect(200);
    let renamed = json!({ "project": other, "state": "live" });
    app.patch(&format!("/api/tfstates/{STATE}"), &renamed).send().await.expect(200);
    for state in [STATE.to_owned(), format!("{ORG}/{other}/live"), format!("{ORG}/{project}/prod")] {
        assert_eq!(app.get(&format!("/tfstate/{state}")).send().await.expect(200), text(1, &["a"]));
    }
    app.patch(&format!("/api/tfstates/{STATE}"), &json!({ "state": "default" })).send().await.refused(409);
    let listed = app.get(&format!("{states}?project={other}")).send().await.expect(200);
    let names: Vec<_> =
        listed["states"].as_array().unwrap().iter().map(|it| (&it["state"], &it["serial"])).collect();
    assert_eq!(names, [(&json!("default"), &Value::Null), (&json!("live"), &json!(1))]);

    // Deleted and undeleted.
    let api = format!("/api/tfstates/{STATE}");
    app.request(Method::DELETE, &api).send().await.refused(409);
    app.request(Method::DELETE, &format!("{api}?force=true")).send().await.expect(204);
    app.get(&api).send().await.refused(404);
    assert_eq!(app.get(&format!("/tfstate/{STATE}")).send().await.status, 403);
    app.post(&format!("{api}/undelete"), &Value::Null).send().await.expect(200);
    assert_eq!(app.get(&format!("/tfstate/{STATE}")).send().await.expect(200), text(1, &["a"]));
}

#[tokio::test]
async fn lists_come_in_pages_and_so_do_the_locks_of_an_organization() {
    let app = TestApp::memory().await;
    let project = new_project();
    for number in 0..205 {
        let new = json!({ "project": project, "state": format!("s{number:03}") });
        app.post(&format!("/api/orgs/{ORG}/tfstates"), &new).send().await.expect(200);
    }
    for state in ["s003", "s204"] {
        let path = format!("/tfstate/{ORG}/{project}/{state}/lock");
        app.post(&path, &info(state)).send().await.expect(200);
    }
    for (path, list, expected) in [("tfstates", "states", 205), ("tfstate-locks", "locks", 2)] {
        let (mut found, mut after) = (Vec::new(), String::new());
        loop {
            let page = app.get(&format!("/api/orgs/{ORG}/{path}{after}")).send().await.expect(200);
            found.extend(page[list].as_array().unwrap().clone());
            let Some(token) = page["continuationToken"].as_str() else { break };
            after = format!("?continuationToken={token}");
        }
        assert_eq!(found.len(), expected, "{path}");
        if list == "locks" {
            let of: Vec<_> = found.iter().map(|it| (&it["state"], &it["lock"]["ID"])).collect();
            assert_eq!(of, [(&json!("s003"), &json!("s003")), (&json!("s204"), &json!("s204"))]);
        }
    }
}

/// They took and ended locks without entries in the organization's list.
#[tokio::test]
async fn the_list_has_the_locks_of_older_programs() {
    let app = TestApp::memory().await;
    let (net, org) = (Net::new(&app), OrgName::parse(ORG).unwrap());
    net.lock("run").await.expect(200);
    let id = StateId::parse(net.shown().await["id"].as_str().unwrap()).unwrap();
    let (ledger, entry) = (&app.context.ledger, StateLockEntry::key(&org, id));
    let listed = async || {
        let page = app.get(&format!("/api/orgs/{ORG}/tfstate-locks")).send().await.expect(200);
        page["locks"].as_array().unwrap().len()
    };
    ledger.commit(vec![delete(entry.clone(), Expect::Any)]).await.unwrap();
    assert_eq!(listed().await, 1, "the first list reads every lock");
    assert!(ledger.get(&entry).await.unwrap().is_some(), "and makes its entry");
    let ended = StateLock { holder: None, ended: vec!["run".to_owned()] };
    let revision = app.context.ids.revision();
    ledger.commit(vec![put(StateLock::key(id), Expect::Any, revision, &ended)]).await.unwrap();
    assert_eq!(listed().await, 0, "the lock decides, not its entry");
    net.lock("run-2").await.expect(200);
    assert_eq!(listed().await, 1);
    net.unlock("run-2").await.expect(200);
    assert_eq!(listed().await, 0);
    assert!(ledger.get(&entry).await.unwrap().is_none());
}

#[tokio::test]
async fn a_lock_says_whether_its_holder_has_written() {
    for app in every_store().await {
        let net = Net::new(&app);
        net.write(&text(1, &["a"]), None).await.expect(200);
        net.lock("run").await.expect(200);
        let api = net.api().await;
        let wrote = async || {
            let listed = app.get(&format!("/api/orgs/{ORG}/tfstate-locks")).send().await.expect(200);
            let id = net.shown().await["id"].clone();
            let of_it = listed["locks"].as_array().unwrap().iter().find(|it| it["stateId"] == id);
            let alone = app.get(&format!("{api}/lock")).send().await.expect(200)["wrote"].clone();
            let shown = net.shown().await["lock"]["wrote"].clone();
            (shown, alone, of_it.unwrap()["lock"]["wrote"].clone())
        };
        assert_eq!(wrote().await, (json!(false), json!(false), json!(false)));
        net.write(&text(2, &["a", "b"]), Some("run")).await.expect(200);
        assert_eq!(wrote().await, (json!(true), json!(true), json!(true)));
        net.unlock("run").await.expect(200);
        let by_hand = json!({ "reason": "we move" });
        let held = app.post(&format!("{api}/lock"), &by_hand).send().await.expect(200);
        assert_eq!(held["wrote"], false);
    }
}

/// A backend names its state by the name that the state had when the file was written.
#[tokio::test]
async fn an_old_name_leads_to_its_state_until_it_is_reused() {
    for app in every_store().await {
        let (net, other) = (Net::new(&app), new_project());
        net.lock("run").await.expect(200);
        net.write(&text(1, &["a"]), Some("run")).await.expect(200);
        net.unlock("run").await.expect(200);
        let api = net.api().await;
        let id = net.shown().await["id"].clone();
        let rename =
            async |api: &str, project: &str| app.patch(api, &json!({ "project": project })).send().await;
        rename(&api, &other).await.expect(200);
        // Every request of a client, under the old name.
        assert_eq!(net.read().await.expect(200), text(1, &["a"]));
        net.lock("run-2").await.expect(200);
        net.lock("run-3").await.refused(423);
        net.write(&text(2, &["a", "b"]), Some("run-2")).await.expect(200);
        net.unlock("run-2").await.expect(200);
        assert_eq!(
            app.get(&format!("/tfstate/{ORG}/{other}")).send().await.expect(200),
            text(2, &["a", "b"])
        );
        let shown = net.shown().await;
        assert_eq!((&shown["id"], &shown["project"]), (&id, &json!(other)));
        let listed =
            app.get(&format!("/api/orgs/{ORG}/tfstates?project={}", net.project)).send().await.expect(200);
        assert_eq!(listed["states"], json!([]), "a list has only the new name");
        // Back and forth.
        rename(&api, &net.project).await.expect(200);
        rename(&api, &other).await.expect(200);
        assert_eq!(net.read().await.expect(200), text(2, &["a", "b"]));
        // A user creates a state of that name.
        let new = app.post(&format!("/api/orgs/{ORG}/tfstates"), &json!({ "project": net.project }));
        let new = new.send().await.expect(200)["id"].as_str().unwrap().to_owned();
        assert_eq!(net.read().await.status, 204);
        rename(&api, &net.project).await.refused(409);
        // A rename takes an old name too.
        let api_of_new = format!("/api/tfstates/{new}");
        rename(&api_of_new, &new_project()).await.expect(200);
        assert_eq!(net.shown().await["id"], json!(new));
        rename(&api, &net.project).await.expect(200);
        assert_eq!(net.shown().await["id"], id);
        assert_eq!(
            app.get(&format!("/tfstate/{ORG}/{other}")).send().await.expect(200),
            text(2, &["a", "b"])
        );
    }
}

#[tokio::test]
async fn a_state_is_not_renamed_under_a_lock() {
    for app in every_store().await {
        let (net, other) = (Net::new(&app), new_project());
        net.lock("run").await.expect(200);
        let api = net.api().await;
        let rename = json!({ "project": other });
        let words = app.patch(&api, &rename).send().await.refused(423);
        assert!(words.contains("lock run"), "{words}");
        app.patch(&api, &json!({ "labels": { "env": "dev" } })).send().await.expect(200);
        net.write(&text(1, &["a"]), Some("run")).await.expect(200);
        net.unlock("run").await.expect(200);
        app.patch(&api, &rename).send().await.expect(200);
    }
}

/// A run may know its state by a former name alone.
#[tokio::test]
async fn a_former_name_stays_while_a_run_uses_it() {
    for app in every_store().await {
        let net = Net::new(&app);
        net.write(&text(1, &["a"]), None).await.expect(200);
        let (api, old) = (net.api().await, net.path.clone());
        app.patch(&api, &json!({ "project": new_project() })).send().await.expect(200);
        app.request(verb("LOCK"), &old).json(&info("run")).send().await.expect(200);
        let (states, named) = (format!("/api/orgs/{ORG}/tfstates"), json!({ "project": net.project }));
        app.post(&states, &named).send().await.refused(423);
        let another = Net::new(&app);
        another.write(&text(1, &[]), None).await.expect(200);
        app.patch(&another.api().await, &named).send().await.refused(423);
        app.post(&format!("{old}?ID=run"), &text(2, &["a", "b"])).send().await.expect(200);
        app.request(verb("UNLOCK"), &old).json(&info("run")).send().await.expect(200);
        // Without a run, users who may rename can take it.
        let applies = app.member_with_role(Role::Apply, "ann", "ci").await;
        app.post(&states, &named).token(&applies).send().await.refused(403);
        app.post(&states, &named).send().await.expect(200);
    }
}

/// A client that read nothing would create everything a second time.
#[tokio::test]
async fn a_deleted_name_is_reserved_while_its_state_can_be_undeleted() {
    for app in every_store().await {
        let net = Net::new(&app);
        net.write(&text(1, &["a"]), None).await.expect(200);
        let (api, old) = (net.api().await, net.path.clone());
        let renamed = new_project();
        app.patch(&api, &json!({ "project": renamed })).send().await.expect(200);
        let path = format!("/tfstate/{ORG}/{renamed}");
        let remove =
            async || app.request(Method::DELETE, &format!("{api}?force=true")).send().await.expect(204);
        let undelete = async || app.post(&format!("{api}/undelete"), &Value::Null).send().await;
        let create = async || {
            let created = app.post(&format!("/api/orgs/{ORG}/tfstates"), &json!({ "project": renamed }));
            created.send().await.expect(200)["id"].as_str().unwrap().to_owned()
        };
        remove().await;
        for path in [&path, &old] {
            app.get(path).send().await.refused(410);
            let words = app.post(path, &text(2, &["a"])).send().await.refused(410);
            assert!(words.contains("nothing that was sent is lost: the server keeps it as "), "{words}");
            assert!(words.contains(&format!("state rejected {ORG}/{renamed}/default")), "{words}");
            app.post(&format!("{path}?ID=run"), &text(3, &["a"])).send().await.refused(410);
            let answer = app.request(verb("LOCK"), path).json(&info("run")).send().await;
            let words = answer.refused(423);
            assert!(words.contains(&format!("was deleted by {USER} at ")), "{words}");
            // Terraform shows only the ID of a refused lock.
            let shown = answer.expect(423)["ID"].as_str().unwrap().to_owned();
            assert!(shown.contains(&format!("state undelete {ORG}/{renamed}/default")), "{shown}");
        }
        let words = app.get(&format!("/api/orgs/{ORG}/tfstates/{renamed}/default")).send().await.refused(410);
        assert!(words.contains("state undelete"), "{words}");
        let another = Net::new(&app);
        another.write(&text(1, &[]), None).await.expect(200);
        let onto = json!({ "project": renamed });
        app.patch(&another.api().await, &onto).send().await.refused(410);
        undelete().await.expect(200);
        for path in [&path, &old] {
            assert_eq!(app.get(path).send().await.expect(200), text(1, &["a"]));
        }
        // Each is kept once, however often it was sent.
        let rejected = app.get(&format!("{api}/rejected")).send().await.expect(200);
        let of = |it: &Value| (it["why"].clone(), it["serial"].clone(), it["lock"].clone());
        let mut kept: Vec<_> = rejected["rejected"].as_array().unwrap().iter().map(of).collect();
        kept.sort_by_key(|(_, serial, _)| serial.as_u64());
        let removed = || json!("removed");
        assert_eq!(kept, [(removed(), json!(2), Value::Null), (removed(), json!(3), json!("run"))]);
        // A new state has the name; while it is empty, the old one may replace it.
        remove().await;
        let new = create().await;
        assert_eq!(app.get(&path).send().await.status, 204);
        app.request(verb("LOCK"), &path).json(&info("run")).send().await.expect(200);
        undelete().await.refused(409);
        app.request(verb("UNLOCK"), &path).json(&info("run")).send().await.expect(200);
        undelete().await.expect(200);
        assert_eq!(app.get(&path).send().await.expect(200), text(1, &["a"]));
        app.get(&format!("/api/tfstates/{new}")).send().await.refused(404);
        remove().await;
        create().await;
        app.post(&path, &text(1, &["b"])).send().await.expect(200);
        undelete().await.refused(409);
        assert_eq!(app.get(&path).send().await.expect(200), text(1, &["b"]));
    }
}

#[tokio::test]
async fn a_name_is_reserved_for_resources_or_for_what_is_unknown() {
    let app = TestApp::memory().await;
    let encrypted = json!({
        "serial": 1, "lineage": "aaaa", "meta": {}, "encrypted_data": "AAAA", "encryption_version": "v0",
    });
    for (written, status) in [(None, 204), (Some(text(1, &[])), 204), (Some(encrypted), 410)] {
        let net = Net::new(&app);
        app.post(&format!("/api/orgs/{ORG}/tfstates"), &json!({ "project": net.project }))
            .send()
            .await
            .expect(200);
        if let Some(written) = &written {
            net.write(written, None).await.expect(200);
        }
        app.request(Method::DELETE, &format!("{}?force=true", net.api().await)).send().await.expect(204);
        assert_eq!(net.read().await.status, status, "{written:?}");
        if status == 204 {
            net.lock("run").await.expect(200);
        }
    }
}

#[tokio::test]
async fn an_erased_state_leaves_none_of_its_names_behind() {
    let app = TestApp::memory().await;
    let net = Net::new(&app);
    net.write(&text(1, &["a"]), None).await.expect(200);
    let api = net.api().await;
    for _ in 0..3 {
        app.patch(&api, &json!({ "project": new_project() })).send().await.expect(200);
    }
    app.request(Method::DELETE, &format!("{api}?force=true")).send().await.expect(204);
    let names = async || {
        let query = Query {
            partition: format!("ORG#{ORG}"),
            prefix: "TFFORMER#".to_owned(),
            after: None,
            order: Order::Ascending,
            limit: 100,
        };
        app.context.ledger.query(&query).await.unwrap().items.len()
    };
    assert_eq!(names().await, 4);
    net.read().await.refused(410);
    app.advance(31 * DAY);
    while sweep::sweep(&app.context).await.unwrap().more {}
    assert_eq!(names().await, 0);
    assert_eq!(net.read().await.status, 204);
    let id = api.rsplit('/').next().unwrap();
    assert_eq!(items(&app, &format!("TFSTATE#{id}")).await, 0);
}

/// I10 cheap.
#[tokio::test]
async fn i10_cheap_lock_and_unlock_are_one_conditional_write_each() {
    let (app, counter) = counted().await;
    let net = Net::new(&app);
    net.lock("a").await.expect(200);
    net.write(&text(1, &["a"]), Some("a")).await.expect(200);
    net.unlock("a").await.expect(200);
    counter.take();
    let mut costs = Vec::new();
    let mut note = |what: &str| {
        let calls = counter.take();
        let writes = calls.ledger_single_commits + calls.ledger_joint_commits;
        costs.push(format!(
            "{what}: {} reads, {} queries, {writes} writes, {} blobs read, {} written",
            calls.ledger_gets, calls.ledger_queries, calls.blob_gets, calls.blob_puts
        ));
    };
    net.lock("b").await.expect(200);
    note("lock");
    net.lock("c").await.refused(423);
    note("lock refused");
    net.read().await.expect(200);
    note("read");
    net.write(&text(2, &["a", "b"]), Some("b")).await.expect(200);
    note("write");
    net.write(&text(2, &["a", "b"]), Some("b")).await.expect(200);
    note("write sent again");
    net.unlock("b").await.expect(200);
    note("unlock");
    // A commit of a change has its audit record; a look, a refusal and a repetition store theirs alone.
    assert_eq!(
        costs,
        [
            "lock: 2 reads, 0 queries, 1 writes, 0 blobs read, 0 written",
            "lock refused: 2 reads, 0 queries, 1 writes, 0 blobs read, 0 written",
            "read: 1 reads, 0 queries, 1 writes, 1 blobs read, 0 written",
            "write: 3 reads, 0 queries, 1 writes, 0 blobs read, 1 written",
            "write sent again: 2 reads, 0 queries, 1 writes, 0 blobs read, 0 written",
            "unlock: 2 reads, 0 queries, 1 writes, 0 blobs read, 0 written",
        ]
    );
}

/// I7 secret: a state contains secrets in plain text, and is stored sealed.
#[tokio::test]
async fn i7_secret_no_part_of_a_state_is_stored_in_plain_text() {
    let ids: Arc<dyn Ids> = Arc::new(SeededIds::new(1));
    let (ledger, blobs) = (MemoryLedger::new(), MemoryBlobs::new());
    let keys = Arc::new(MemoryKeys::new(Arc::clone(&ids)));
    let app = TestApp::memory_with(Arc::new(ledger.clone()), Arc::new(blobs.clone()), keys, ids).await;
    let net = Net::new(&app);
    net.write(&text(1, &["a"]), None).await.expect(200);
    let keys = blobs.keys();
    assert_eq!(keys.len(), 1);
    assert!(keys[0].to_string().starts_with("tf/"), "{keys:?}");
    let blob = app.context.blobs.get(&keys[0]).await.unwrap().unwrap().into_bytes().await.unwrap();
    assert!(
        statewright_shared::services::store::compression::gunzip(&blob).is_err(),
        "it is sealed, not only packed"
    );
    for item in ledger.items() {
        assert!(!String::from_utf8_lossy(&item.value).contains("hunter2"), "{:?}", item.key);
    }
}

async fn items(app: &TestApp, partition: &str) -> usize {
    let partition = partition.to_owned();
    let query =
        Query { partition, prefix: String::new(), after: None, order: Order::Ascending, limit: 1_000 };
    app.context.ledger.query(&query).await.unwrap().items.len()
}

#[tokio::test]
async fn retention_deletes_old_versions_refused_writes_and_states() {
    let retention = Retention { state_versions: NonZeroU64::new(2), ..Retention::DEFAULT };
    let ids: Arc<dyn Ids> = Arc::new(SeededIds::new(1));
    let (ledger, blobs) = (MemoryLedger::new(), MemoryBlobs::new());
    let keys = Arc::new(MemoryKeys::new(Arc::clone(&ids)));
    let port: Arc<dyn Ledger> = Arc::new(ledger.clone());
    let settings = Settings { retention, ..Settings::default() };
    let app = TestApp::memory_with_settings(port, Arc::new(blobs.clone()), keys, ids, settings).await;
    let net = Net::new(&app);
    for serial in 1..=5 {
        net.write(&text(serial, &["a"]), None).await.expect(200);
    }
    net.write(&text(4, &["stale"]), None).await.refused(409);
    let (api, id) = (net.api().await, net.shown().await["id"].as_str().unwrap().to_owned());
    // Without the signed days of the audit trail, which are kept for longer.
    let of_states = || -> Vec<BlobKey> {
        blobs.keys().into_iter().filter(|key| !key.to_string().starts_with("audit/")).collect()
    };
    assert_eq!(of_states().len(), 6);
    let sweep_all = async || while sweep::sweep(&app.context).await.unwrap().more {};
    app.advance(Duration::from_secs(60));
    sweep_all().await;
    let kept: Vec<Value> = net.versions().await.iter().map(|it| it["version"].clone()).collect();
    assert_eq!(kept, [5, 4]);
    app.get(&format!("{api}/versions/3/text")).send().await.refused(404);
    app.advance(31 * DAY);
    sweep_all().await;
    assert_eq!(net.rejected().await, [Value::Null; 0]);
    app.advance(37 * DAY);
    sweep_all().await;
    assert_eq!(of_states().len(), 2, "those of the kept versions");
    assert_eq!(net.read().await.expect(200), text(5, &["a"]));

    app.request(Method::DELETE, &format!("{api}?force=true")).send().await.expect(204);
    app.advance(29 * DAY);
    sweep_all().await;
    app.post(&format!("{api}/undelete"), &Value::Null).send().await.expect(200);
    assert_eq!(net.read().await.expect(200), text(5, &["a"]));
    app.request(Method::DELETE, &format!("{api}?force=true")).send().await.expect(204);
    app.advance(31 * DAY);
    sweep_all().await;
    app.post(&format!("{api}/undelete"), &Value::Null).send().await.refused(404);
    assert_eq!(
        (items(&app, &format!("TFSTATE#{id}")).await, items(&app, &format!("KEY#tf.{id}")).await),
        (0, 0)
    );
    app.advance(40 * DAY);
    sweep_all().await;
    assert_eq!(of_states(), []);
}

/// The client's timeout, after which it retries.
#[tokio::test]
async fn an_unavailable_store_gets_a_503_with_retry_after() {
    let ids: Arc<dyn Ids> = Arc::new(SeededIds::new(1));
    let keys = Arc::new(MemoryKeys::new(Arc::clone(&ids)));
    let faults = Faults::none();
    let ledger = Faulty::new(MemoryLedger::new(), faults.clone());
    let app = TestApp::memory_with(Arc::new(ledger), Arc::new(MemoryBlobs::new()), keys, ids).await;
    let net = Net::new(&app);
    net.write(&text(1, &["a"]), None).await.expect(200);
    faults.fail_from(1, 1_000, Fault::Lost);
    let work = async {
        let answer = net.write(&text(2, &["a"]), None).await;
        answer.refused(503);
        assert_eq!(answer.headers["retry-after"], "2");
    };
    // The server waits between its own attempts.
    let time = async {
        loop {
            app.advance(Duration::from_millis(10));
            tokio::task::yield_now().await;
        }
    };
    tokio::select! { () = work => {}, () = time => {} }
    faults.heal();
    net.write(&text(2, &["a"]), None).await.expect(200);
    assert_eq!(net.versions().await.len(), 2);
}

#[tokio::test]
async fn check_finds_every_fault_of_a_state_and_none_in_a_sound_one() {
    let ids: Arc<dyn Ids> = Arc::new(SeededIds::new(1));
    let (ledger, blobs) = (MemoryLedger::with_inline_bytes_max(10), MemoryBlobs::new());
    let keys = Arc::new(MemoryKeys::new(Arc::clone(&ids)));
    let app = TestApp::memory_with(Arc::new(ledger.clone()), Arc::new(blobs.clone()), keys, ids).await;
    let net = Net::new(&app);
    for serial in 1..=2 {
        net.write(&text(serial, &["a"]), None).await.expect(200);
    }
    net.write(&text(1, &["stale"]), None).await.refused(409);
    let (ctx, inventory) = (&app.context, (ledger, blobs.clone()));
    let ids = check_states::states(ctx, &inventory).await.unwrap();
    assert_eq!(ids.len(), 1);
    let id = ids.into_iter().next().unwrap();
    let report = check_states::state(ctx, id).await.unwrap();
    assert_eq!((report.versions, report.problems), (2, Vec::new()));
    // Texts and indices, each named by an existing item.
    assert_eq!(blobs.keys().len(), 5);
    assert_eq!(check::orphans(ctx, &inventory).await.unwrap(), check::Orphans::default());
    for key in blobs.keys() {
        blobs.put(&key, Bytes::from_static(b"broken")).await.unwrap();
    }
    let problems = check_states::state(ctx, id).await.unwrap().problems;
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert!(problems[0].contains("version 1") && problems[2].contains("refused write"), "{problems:?}");
}
