//! The stand-in for AWS, and a gateway that imitates AWS where the stand-in differs.

use std::collections::{BTreeSet, HashMap};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Request, Response, StatusCode, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::pending;
use futures::{StreamExt, stream};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use statewright_shared::adapters::aws::{AwsStore, Clients, Names, Options, set_up};
use statewright_shared::adapters::{SystemClock, SystemIds};
use statewright_shared::ports::{Clock, Ids};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::meter::{Meter, Stored, Usage};
use crate::tools;

/// The stand-in for DynamoDB, S3 and KMS: one for each process, in memory, on 127.0.0.1. It ends with the
/// process, when its standard input closes.
pub struct StandIn {
    /// Its URL.
    pub url: String,
    _process: Child,
}

impl StandIn {
    /// The stand-in of this process, started by the first caller.
    pub fn of_this_process() -> &'static Self {
        static STAND_IN: OnceLock<StandIn> = OnceLock::new();
        STAND_IN.get_or_init(|| {
            let (python, program) = tools::aws_stand_in();
            Self::start(Command::new(python).arg(program))
        })
    }

    /// LocalStack, which forwards requests for DynamoDB to [`StandIn::of_this_process`].
    #[cfg(feature = "extended")]
    pub fn localstack() -> &'static Self {
        static STAND_IN: OnceLock<StandIn> = OnceLock::new();
        STAND_IN.get_or_init(|| {
            let (python, program) = tools::localstack();
            let mut command = Command::new(python);
            command.arg(&program).arg(&Self::of_this_process().url);
            // Where it looks for its way to DynamoDB.
            Self::start(command.env("PYTHONPATH", program.parent().unwrap_or(&program)))
        })
    }

    fn start(command: &mut Command) -> Self {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start the stand-in for AWS: {error}"));
        let mut port = String::new();
        let line = process.stdout.take().map(|stdout| BufReader::new(stdout).read_line(&mut port));
        let Ok(port) = port.trim().parse::<u16>() else {
            panic!("the stand-in for AWS ended before it reported its port ({line:?}); see its output above");
        };
        Self { url: format!("http://127.0.0.1:{port}"), _process: process }
    }

    /// Names that no other caller in this process gets.
    pub fn fresh_names() -> Names {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Names {
            table: format!("table-{number}"),
            bucket: format!("bucket-{number}"),
            key: format!("alias/key-{number}"),
        }
    }

    /// The environment of a `statewright` with this store.
    pub fn environment(&self, names: &Names) -> Vec<(&'static str, String)> {
        environment(&self.url, names)
    }

    /// Calls a JSON service without our adapters, such as `TrentService.DisableKey`, and returns its answer.
    pub async fn call(&self, target: &str, body: &Value) -> Value {
        let service = match target.split('_').next() {
            Some("DynamoDB") => "dynamodb",
            _ if target.starts_with("GraniteService") => "monitoring",
            _ => "kms",
        };
        let scope = format!("stand-in/20260101/us-east-1/{service}/aws4_request");
        let answer = reqwest::Client::new()
            .post(&self.url)
            .header("x-amz-target", target)
            .header("content-type", "application/x-amz-json-1.1")
            .header(
                "authorization",
                format!("AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0"),
            )
            .body(body.to_string())
            .send()
            .await
            .expect("the stand-in answers");
        let (status, text) = (answer.status(), answer.text().await.expect("the answer is whole"));
        assert!(status.is_success(), "{target}: {status} {text}");
        serde_json::from_str(&text).unwrap_or(Value::Null)
    }

    /// Sets a property of a bucket, such as `versioning`, to this body, or deletes it without a body.
    pub async fn set_bucket(&self, bucket: &str, what: &str, body: Option<&str>) {
        let url = format!("{}/{bucket}?{what}", self.url);
        let client = reqwest::Client::new();
        let request = match body {
            Some(body) => client.put(url).body(body.to_owned()),
            None => client.delete(url),
        };
        let scope = "stand-in/20260101/us-east-1/s3/aws4_request";
        let authorization = format!("AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0");
        let answer =
            request.header("authorization", authorization).send().await.expect("the stand-in answers");
        assert!(answer.status().is_success(), "{what}: {:?}", answer.text().await);
    }

    /// A property of a bucket, such as `policy`, as the service stores it.
    pub async fn bucket(&self, bucket: &str, what: &str) -> String {
        let request = reqwest::Client::new().get(format!("{}/{bucket}?{what}", self.url));
        let scope = "stand-in/20260101/us-east-1/s3/aws4_request";
        let authorization = format!("AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0");
        text(request.header("authorization", authorization)).await
    }

    /// Everything in this table and this bucket, byte by byte, by its name.
    pub async fn at_rest(&self, names: &Names) -> Vec<(String, Vec<u8>)> {
        // Read without the adapters, which would show only what they understand.
        let http = reqwest::Client::new();
        let mut found = Vec::new();
        let mut scan = json!({ "TableName": names.table });
        loop {
            let page = self.call("DynamoDB_20120810.Scan", &scan).await;
            for item in page["Items"].as_array().expect("a page has items") {
                let mut bytes = item.to_string().into_bytes();
                let attributes = item.as_object().into_iter().flatten();
                let binary = attributes.filter_map(|(_, value)| value["B"].as_str());
                bytes
                    .extend(binary.flat_map(|text| STANDARD.decode(text).expect("binary values are base64")));
                found.push((format!("items/{item}"), bytes));
            }
            match page.get("LastEvaluatedKey") {
                Some(last) => scan["ExclusiveStartKey"] = last.clone(),
                None => break,
            }
        }
        let bucket = format!("{}/{}", self.url, names.bucket);
        let listed = text(http.get(format!("{bucket}?list-type=2"))).await;
        assert!(!listed.contains("<IsTruncated>true"), "a test has at most one page of blobs");
        for part in listed.split("<Key>").skip(1) {
            let key = part.split("</Key>").next().unwrap_or_default();
            let blob = http.get(format!("{bucket}/{key}")).send().await.expect("the stand-in answers");
            found.push((format!("blobs/{key}"), blob.bytes().await.expect("the answer is whole").to_vec()));
        }
        found
    }

    /// Creates a new table, a bucket and a key.
    pub async fn fresh_store(&self) -> (AwsStore, Names) {
        let names = Self::fresh_names();
        let clients = clients(&self.url).await;
        set_up(&clients, &names, &SystemClock).await.unwrap_or_else(|error| panic!("{error:?}"));
        (AwsStore::new(&clients, &names, Arc::new(SystemClock), Arc::new(SystemIds)), names)
    }
}

/// The stand-in's answer.
async fn text(request: reqwest::RequestBuilder) -> String {
    let answer = request.send().await.expect("the stand-in answers");
    let (status, text) = (answer.status(), answer.text().await.expect("the answer is whole"));
    assert!(status.is_success(), "{text}");
    text
}

fn environment(url: &str, names: &Names) -> Vec<(&'static str, String)> {
    vec![
        ("STATEWRIGHT_STORE", "aws".to_owned()),
        ("STATEWRIGHT_TABLE", names.table.clone()),
        ("STATEWRIGHT_BUCKET", names.bucket.clone()),
        ("STATEWRIGHT_KMS_KEY", names.key.clone()),
        ("STATEWRIGHT_S3_PATH_STYLE", "true".to_owned()),
        ("AWS_ENDPOINT_URL", url.to_owned()),
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_ACCESS_KEY_ID", "stand-in".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "stand-in".to_owned()),
    ]
}

/// Clients of the service at this URL, with a timeout that a busy machine does not reach.
pub async fn clients(url: &str) -> Clients {
    clients_with_timeout(url, Duration::from_secs(60)).await
}

/// The same, with another timeout.
pub async fn clients_with_timeout(url: &str, attempt_timeout: Duration) -> Clients {
    let options = Options { endpoint: Some(url.to_owned()), attempt_timeout, ..Options::default() };
    Clients::of_stand_in(&options).await.unwrap_or_else(|error| panic!("{error}"))
}

/// What happens to a request on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Play {
    /// The service answers this, without having done anything.
    Answer { status: u16, body: String },
    /// The request is done, and the connection breaks before the answer.
    LoseTheAnswer,
    /// The connection breaks before the request is done.
    LoseTheRequest,
    /// The request is done, and the answer never comes.
    HoldTheAnswer,
    /// The answer breaks off in the middle of its body.
    CutTheAnswer,
    /// The answer's body has one bit flipped.
    GarbleTheAnswer,
    /// The connection breaks, and the request is done later, after this number of other requests.
    DoItLate(usize),
}

impl Play {
    /// An error as DynamoDB and KMS send it.
    pub fn json_error(status: u16, code: &str) -> Self {
        Self::Answer { status, body: json_error_body(code) }
    }

    /// A canceled transaction with these reasons, one for each of its writes.
    pub fn cancelled(reasons: &[&str]) -> Self {
        let reasons: Vec<Value> = reasons.iter().map(|code| json!({ "Code": code })).collect();
        let body = json!({
            "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
            "Message": "Transaction cancelled, please refer cancellation reasons for specific reasons",
            "CancellationReasons": reasons,
        });
        Self::Answer { status: 400, body: body.to_string() }
    }

    /// An error as S3 sends it.
    pub fn xml_error(status: u16, code: &str) -> Self {
        let body = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>as played by the test</Message></Error>"
        );
        Self::Answer { status, body }
    }
}

/// A proxy before the stand-in. It counts requests, and imitates what AWS does but the stand-in does not.
pub struct Gateway {
    /// Its URL.
    pub url: String,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

struct Shared {
    upstream: String,
    http: reqwest::Client,
    script: Mutex<Vec<Scene>>,
    seen: Mutex<Vec<String>>,
    signers: Mutex<BTreeSet<String>>,
    rights: Mutex<BTreeSet<Right>>,
    /// The number of requests so far, for tasks that wait for it.
    count: watch::Sender<usize>,
    chance: Mutex<Option<Chance>>,
    late: Mutex<JoinSet<()>>,
    meter: Mutex<Meter>,
    /// See [`Gateway::keep_kms_strict`].
    wrapped: Mutex<Option<Vec<Wrapped>>>,
}

/// A data key that was generated.
struct Wrapped {
    /// Its plaintext, in base64.
    blob: Value,
    /// The master key, as the request named it.
    key: Value,
}

struct Scene {
    /// Any operation, if there is none.
    operation: Option<String>,
    /// The number of requests that pass before it.
    before: usize,
    left: usize,
    play: Play,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Gateway {
    /// A proxy before this service.
    pub async fn before(stand_in: &StandIn) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("127.0.0.1 has a free port");
        let url = format!("http://{}", listener.local_addr().expect("a listener has an address"));
        let shared = Arc::new(Shared {
            upstream: stand_in.url.clone(),
            http: reqwest::Client::new(),
            script: Mutex::default(),
            seen: Mutex::default(),
            signers: Mutex::default(),
            rights: Mutex::default(),
            count: watch::Sender::new(0),
            chance: Mutex::default(),
            late: Mutex::default(),
            meter: Mutex::default(),
            wrapped: Mutex::default(),
        });
        let serving = Arc::clone(&shared);
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = Arc::clone(&serving);
                let service = service_fn(move |request| serve(Arc::clone(&shared), request));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { url, shared, server }
    }

    /// The environment of a `statewright` with this store behind the proxy.
    pub fn environment(&self, names: &Names) -> Vec<(&'static str, String)> {
        environment(&self.url, names)
    }

    /// Cancels the planned faults.
    pub fn play_no_more(&self) {
        lock(&self.shared.script).clear();
    }

    /// Plays this fault at the next `times` requests for an operation: its name in the API for DynamoDB and
    /// KMS, such as `PutItem`, the method for S3.
    pub fn play(&self, operation: &str, times: usize, play: Play) {
        let operation = Some(operation.to_owned());
        lock(&self.shared.script).push(Scene { operation, before: 0, left: times, play });
    }

    /// Plays this fault at the `nth` request for an operation from now on; 1 is the next.
    pub fn play_at_nth(&self, operation: &str, nth: usize, play: Play) {
        let (operation, before) = (Some(operation.to_owned()), nth.saturating_sub(1));
        lock(&self.shared.script).push(Scene { operation, before, left: 1, play });
    }

    /// Plays this fault at the `nth` request of any kind from now on; 1 is the next.
    pub fn play_at(&self, nth: usize, play: Play) {
        let before = nth.saturating_sub(1);
        lock(&self.shared.script).push(Scene { operation: None, before, left: 1, play });
    }

    /// From now on about one in `one_in` requests fails, in any of the ways of AWS. The seed and the order of
    /// requests decide which.
    pub fn play_by_chance(&self, seed: u64, one_in: u32) {
        *lock(&self.shared.chance) = Some(Chance { random: fastrand::Rng::with_seed(seed), one_in });
    }

    /// From now on no request fails. Returns when delayed requests are done.
    pub async fn calm(&self) {
        *lock(&self.shared.chance) = None;
        lock(&self.shared.script).clear();
        let late = std::mem::take(&mut *lock(&self.shared.late));
        if !late.is_empty() {
            // More requests than any of them waits for.
            self.shared.count.send_modify(|count| *count = count.saturating_add(usize::MAX / 2));
            late.join_all().await;
        }
    }

    /// Returns after this number of further requests.
    pub async fn sees_more(&self, requests: usize) {
        self.shared.sees_more(requests).await;
    }

    /// From now on KMS decrypts only what it has encrypted itself, under the master key of the request, and
    /// otherwise answers like AWS. The stand-in does not authenticate what it decrypts, and does not compare
    /// the keys.
    pub fn keep_kms_strict(&self) {
        *lock(&self.shared.wrapped) = Some(Vec::new());
    }

    /// Returns after this number of requests for an operation.
    pub async fn asked_for(&self, operation: &str, times: usize) {
        let is_there = |_: &usize| self.seen().iter().filter(|seen| *seen == operation).count() >= times;
        // The count lives as long as this.
        let _ = self.shared.count.subscribe().wait_for(is_there).await;
    }

    /// The access keys that signed the requests so far.
    pub fn signers(&self) -> BTreeSet<String> {
        lock(&self.shared.signers).clone()
    }

    /// The permissions that the requests so far needed.
    pub fn rights(&self) -> BTreeSet<Right> {
        lock(&self.shared.rights).clone()
    }

    /// The requests so far, in the units of the bill.
    pub fn usage(&self) -> Usage {
        lock(&self.shared.meter).usage()
    }

    /// The same by operation.
    pub fn usage_by_operation(&self) -> HashMap<String, Usage> {
        lock(&self.shared.meter).by_operation()
    }

    /// The part of the calls for the audit trail.
    pub fn usage_of_audit(&self) -> Usage {
        lock(&self.shared.meter).audit()
    }

    /// The bytes of audit records that the requests so far have left.
    pub fn stored_of_audit(&self) -> u64 {
        lock(&self.shared.meter).stored_of_audit()
    }

    /// The stored bytes that the requests so far have left.
    pub fn stored(&self) -> Stored {
        lock(&self.shared.meter).stored()
    }

    /// The operations so far, lost ones included, in order.
    pub fn seen(&self) -> Vec<String> {
        lock(&self.shared.seen).clone()
    }
}

/// A permission that a call needs: an action of IAM and its resource. For DynamoDB that is the class of the
/// partition, such as `STACK#`; for S3 the class of the blob, such as `snap/`; for KMS the name in the
/// encryption context.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// The action, such as `dynamodb:GetItem`.
    pub action: String,
    pub on: String,
}

impl Right {
    /// Whether this permission includes that one.
    pub fn covers(&self, needed: &Self) -> bool {
        self.action == needed.action && needed.on.starts_with(&self.on)
    }
}

/// The permissions that a request needs.
fn rights(operation: &str, parts: &Parts, body: &Bytes) -> Vec<Right> {
    let right = |action: &str, on: &str| Right { action: action.to_owned(), on: on.to_owned() };
    // S3 uses methods, the others a name in a header. A stored blob may be JSON too.
    if !parts.headers.contains_key("x-amz-target") {
        let path = parts.uri.path().trim_start_matches('/');
        let key = path.split_once('/').map_or("", |(_bucket, key)| key);
        let class = key.split_inclusive('/').next().unwrap_or_default();
        return vec![right(&format!("s3:{}Object", capitalized(operation)), class)];
    }
    let request = serde_json::from_slice::<Value>(body).unwrap_or_default();
    let partition = |key: &Value| {
        let partition = key["partition"]["S"].as_str().unwrap_or_default();
        // Data keys of Terraform states and of environments are stored apart from those of stacks.
        if let Some(apart) = ["KEY#tf.", "KEY#env."].into_iter().find(|it| partition.starts_with(it)) {
            return apart.to_owned();
        }
        // A partition that is a class by itself has no number sign.
        partition.split_inclusive('#').next().unwrap_or_default().to_owned()
    };
    let dynamodb = |action: &str, key: &Value| right(&format!("dynamodb:{action}"), &partition(key));
    match operation {
        "GenerateDataKey" | "Decrypt" => {
            let context = request["EncryptionContext"].as_object();
            let name = context.and_then(|context| context.keys().next()).map_or("", String::as_str);
            vec![right(&format!("kms:{operation}"), name)]
        }
        "Query" => {
            let key = json!({ "partition": request["ExpressionAttributeValues"][":p"] });
            vec![dynamodb("Query", &key)]
        }
        "PutItem" => vec![dynamodb("PutItem", &request["Item"])],
        // A transaction needs the permissions of its parts. Source: Amazon DynamoDB, "Using IAM with
        // transactions".
        "TransactWriteItems" => {
            let writes = request["TransactItems"].as_array().into_iter().flatten();
            let right_of = |write: &Value| match () {
                () if write["Put"].is_object() => dynamodb("PutItem", &write["Put"]["Item"]),
                () if write["Delete"].is_object() => dynamodb("DeleteItem", &write["Delete"]["Key"]),
                () => dynamodb("ConditionCheckItem", &write["ConditionCheck"]["Key"]),
            };
            writes.map(right_of).collect()
        }
        _ => vec![dynamodb(operation, &request["Key"])],
    }
}

fn capitalized(method: &str) -> String {
    let (first, rest) = method.split_at(method.len().min(1));
    format!("{}{}", first.to_uppercase(), rest.to_lowercase())
}

/// Decides at random which requests fail.
struct Chance {
    random: fastrand::Rng,
    one_in: u32,
}

impl Chance {
    fn play(&mut self, operation: &str) -> Option<Play> {
        if self.random.u32(..self.one_in) > 0 {
            return None;
        }
        Some(match (self.random.u32(..6), operation) {
            (0, "PUT" | "GET" | "DELETE") => Play::xml_error(503, "SlowDown"),
            (0, _) => Play::json_error(400, "ThrottlingException"),
            (1, "PUT" | "GET" | "DELETE") => Play::xml_error(500, "InternalError"),
            (1, _) => Play::json_error(500, "InternalServerError"),
            (2, "TransactWriteItems") => Play::cancelled(&["TransactionConflict"]),
            (2 | 3, _) => Play::LoseTheAnswer,
            (4, _) => Play::LoseTheRequest,
            (_, _) => Play::DoItLate(self.random.usize(1..12)),
        })
    }
}

/// Breaks the connection: the server does that when its service fails.
#[derive(Debug, thiserror::Error)]
#[error("the connection breaks, by script")]
struct Broken;

/// The access key that signed a request.
fn signer(headers: &HeaderMap) -> Option<String> {
    let authorization = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    Some(authorization.split_once("Credential=")?.1.split('/').next()?.to_owned())
}

async fn serve(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Body>, Broken> {
    let (mut parts, body) = request.into_parts();
    let body = to_bytes(Body::new(body), usize::MAX).await.map_err(|_| Broken)?;
    let operation = operation(&parts.method, &parts.headers);
    lock(&shared.seen).push(operation.clone());
    lock(&shared.signers).extend(signer(&parts.headers));
    lock(&shared.rights).extend(rights(&operation, &parts, &body));
    shared.count.send_modify(|count| *count += 1);
    let play = shared.next(&operation);
    match &play {
        Some(Play::Answer { status, body }) => return Ok(answer(*status, body.clone())),
        Some(Play::LoseTheRequest) => return Err(Broken),
        _ => {}
    }
    if let Some(refusal) = shared.strict_refusal(&operation, &body) {
        return Ok(refusal);
    }
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let path = path.to_owned();
    parts.headers.remove(header::EXPECT);
    let passed_on = shared
        .http
        .request(parts.method, format!("{}{path}", shared.upstream))
        .headers(parts.headers)
        .body(body.clone());
    if let Some(Play::DoItLate(later)) = play {
        let waiting = Arc::clone(&shared);
        lock(&shared.late).spawn(async move {
            waiting.sees_more(later).await;
            // The sender does not get the answer.
            let _ = passed_on.send().await;
        });
        return Err(Broken);
    }
    let passed_on = passed_on.send().await.map_err(|_| Broken)?;
    let (status, mut headers) = (passed_on.status(), passed_on.headers().clone());
    let sent = body;
    let mut body = passed_on.bytes().await.map_err(|_| Broken)?;
    shared.remember_wrapped(&operation, &sent, &body);
    lock(&shared.meter).saw(&operation, &path, &sent, &body, status.is_success());
    match play {
        Some(Play::LoseTheAnswer) => return Err(Broken),
        Some(Play::HoldTheAnswer) => return pending().await,
        Some(Play::GarbleTheAnswer) => {
            let mut bytes = body.to_vec();
            let middle = bytes.len() / 2;
            bytes.iter_mut().skip(middle).take(1).for_each(|byte| *byte ^= 1);
            body = bytes.into();
        }
        _ => {}
    }
    headers.remove(header::TRANSFER_ENCODING);
    headers.remove(header::CONNECTION);
    let cut = play == Some(Play::CutTheAnswer);
    let body = if cut {
        let half = body.slice(..body.len() / 2);
        // This half is sent while the rest is missing.
        let rest = stream::once(async {
            tokio::task::yield_now().await;
            Err(Broken)
        });
        Body::from_stream(stream::iter([Ok(half)]).chain(rest))
    } else {
        Body::from(body)
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}

fn operation(method: &Method, headers: &HeaderMap) -> String {
    let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok());
    target.and_then(|target| target.rsplit('.').next()).unwrap_or(method.as_str()).to_owned()
}

fn answer(status: u16, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).expect("tests play statuses that exist");
    response
}

impl Shared {
    async fn sees_more(&self, requests: usize) {
        let mut count = self.count.subscribe();
        let wanted = count.borrow().saturating_add(requests);
        // This fails only when the counter is gone.
        let _ = count.wait_for(|count| *count >= wanted).await;
    }

    fn next(&self, operation: &str) -> Option<Play> {
        if let Some(chance) = lock(&self.chance).as_mut() {
            return chance.play(operation);
        }
        let mut script = lock(&self.script);
        let is_meant = |scene: &Scene| scene.operation.as_deref().is_none_or(|meant| meant == operation);
        let scene = script.iter_mut().find(|scene| scene.left > 0 && is_meant(scene))?;
        if scene.before > 0 {
            scene.before -= 1;
            return None;
        }
        scene.left -= 1;
        Some(scene.play.clone())
    }

    fn strict_refusal(&self, operation: &str, body: &Bytes) -> Option<Response<Body>> {
        let wrapped = lock(&self.wrapped);
        let known = wrapped.as_ref().filter(|_| operation == "Decrypt")?;
        let request: Value = serde_json::from_slice(body).ok()?;
        let code = match known.iter().find(|wrapped| wrapped.blob == request["CiphertextBlob"]) {
            None => "InvalidCiphertextException",
            // A request without a master key gets the one that the wrapped key names.
            Some(wrapped) if request["KeyId"].is_string() && request["KeyId"] != wrapped.key => {
                "IncorrectKeyException"
            }
            Some(_) => return None,
        };
        Some(answer(400, json_error_body(code)))
    }

    fn remember_wrapped(&self, operation: &str, request: &Bytes, response: &Bytes) {
        if let Some(known) =
            lock(&self.wrapped).as_mut().filter(|_| matches!(operation, "GenerateDataKey" | "Encrypt"))
            && let (Ok(mut sent), Ok(mut answered)) =
                (serde_json::from_slice::<Value>(request), serde_json::from_slice::<Value>(response))
        {
            known.push(Wrapped { blob: answered["CiphertextBlob"].take(), key: sent["KeyId"].take() });
        }
    }
}

fn json_error_body(code: &str) -> String {
    json!({ "__type": format!("com.amazonaws.example#{code}"), "message": "as played by the test" })
        .to_string()
}

/// The state behind a mutex. It is consistent even if a holder panicked: nothing here panics between two changes.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A store on AWS at this URL, with a clock and randomness that the test controls.
pub async fn store(url: &str, names: &Names, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> AwsStore {
    AwsStore::new(&clients(url).await, names, clock, ids)
}
