//! AWS STS, as a server asks it about the principals of AWS.

use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use ring::hmac;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use statewright_shared::adapters::aws::{Clients, Options};
use statewright_shared::domain::oidc::aws::Proof;
use statewright_shared::domain::server_url::ServerUrl;
use statewright_shared::ports::{Timestamp, Web, WebAnswer, WebError, WebRequest};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::https_server::{Answer, Authority, HttpsServer};

/// The address under which an organization registers AWS as an issuer.
pub const AWS: &str = "https://sts.amazonaws.com";

/// The principal at first: a session of the role `deploy`.
pub const DEPLOY: &str = "arn:aws:sts::123456789012:assumed-role/deploy/run";

/// Answers about one principal, to one server.
pub struct Sts {
    server: String,
    status: AtomicU16,
    principal: Mutex<String>,
    request_count: AtomicUsize,
    /// Has a permit for each answer that the test lets it give.
    open: Semaphore,
}

impl Sts {
    /// Answers with this status to the server at this address.
    pub fn answering(server: &str, status: u16) -> Arc<Self> {
        Self::with_permits(server, status, Semaphore::MAX_PERMITS)
    }

    /// The same, without an answer until the test lets it give some.
    pub fn holding(server: &str, status: u16) -> Arc<Self> {
        Self::with_permits(server, status, 0)
    }

    fn with_permits(server: &str, status: u16, permits: usize) -> Arc<Self> {
        Arc::new(Self {
            server: server.to_owned(),
            status: status.into(),
            principal: Mutex::new(DEPLOY.to_owned()),
            request_count: 0.into(),
            open: Semaphore::new(permits),
        })
    }

    /// Answers with this status from now on.
    pub fn set(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }

    /// Answers that the principal is this one from now on: an ARN, which has the account.
    pub fn knows(&self, principal: &str) {
        principal.clone_into(&mut self.principal.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Lets it give this many more answers.
    pub fn let_answer(&self, count: usize) {
        self.open.add_permits(count);
    }

    pub fn request_count(&self) -> usize {
        self.request_count.load(Ordering::Relaxed)
    }

    /// What it says about the principal.
    fn identity(&self) -> String {
        let arn = self.principal.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let account = arn.split(':').nth(4).expect("an ARN has an account");
        let result = json!({ "Arn": arn, "Account": account, "UserId": "AROA:run" });
        json!({ "GetCallerIdentityResponse": { "GetCallerIdentityResult": result } }).to_string()
    }

    /// The answer to a request with this head: 403 without the right signature.
    fn answer_signed(&self, head: &str) -> Answer {
        self.request_count.fetch_add(1, Ordering::Relaxed);
        let (status, body) = match is_signed(head) {
            true => (self.status.load(Ordering::Relaxed), self.identity()),
            false => (403, json!({ "Error": { "Code": "SignatureDoesNotMatch" } }).to_string()),
        };
        Answer { status, location: None, body }
    }
}

#[async_trait]
impl Web for Sts {
    async fn send(&self, request: WebRequest) -> Result<WebAnswer, WebError> {
        assert!(request.url.starts_with("https://sts.eu-central-1.amazonaws.com/?"), "{}", request.url);
        assert_eq!(request.headers, [("x-statewright-server".to_owned(), self.server.clone())]);
        self.request_count.fetch_add(1, Ordering::Relaxed);
        self.open.acquire().await.expect("it stays open").forget();
        let status = self.status.load(Ordering::Relaxed);
        Ok(WebAnswer { status, body: self.identity().into(), certificate: [0; 32] })
    }
}

/// The host of AWS that [`ServedSts`] stands in for.
const HOST: &str = "sts.eu-central-1.amazonaws.com";

/// The secret key of the principal of [`prove`].
const SECRET: &str = "stand-in";

/// A proof for this server, made at this time in seconds: proofs of one second for one server are equal.
pub async fn prove(server: &str, made: i64) -> Proof {
    let options = Options { region: Some("eu-central-1".to_owned()), ..Options::default() };
    let clients = Box::pin(Clients::of_stand_in(&options)).await.expect("it has a region");
    let server = ServerUrl::parse(server).expect("valid");
    Box::pin(clients.prove(&server, Timestamp::from_seconds(made))).await.expect("it has credentials")
}

/// AWS STS over HTTPS on this machine. It checks the signatures of [`prove`], as AWS does. Dropping it ends it.
pub struct ServedSts {
    pub sts: Arc<Sts>,
    /// Where it listens, such as `127.0.0.1:41234`.
    pub endpoint: String,
    _server: HttpsServer,
}

impl ServedSts {
    /// Starts it on a free port, as a host of AWS.
    pub async fn start(authority: &Authority) -> Self {
        Self::named(authority, HOST).await
    }

    /// The same with a certificate for another host.
    pub async fn named(authority: &Authority, host: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let endpoint = listener.local_addr().expect("it listens").to_string();
        let sts = Sts::answering("of any server", 200);
        let asked = Arc::clone(&sts);
        let server =
            HttpsServer::start(listener, authority, &[host], move |head| Some(asked.answer_signed(head)));
        Self { sts, endpoint, _server: server }
    }
}

/// Whether a request has a signature of [`SECRET`]. Source: AWS Signature Version 4, presigned requests.
fn is_signed(head: &str) -> bool {
    let path = head.split(' ').nth(1).unwrap_or_default();
    let header = |wanted: &str| {
        let fields = head.lines().skip(1).filter_map(|line| line.split_once(": "));
        fields.filter(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value).next()
    };
    let (Some(query), Some(host), Some(server)) =
        (path.strip_prefix("/?"), header("host"), header("x-statewright-server"))
    else {
        return false;
    };
    let pairs: Vec<(&str, &str)> = query.split('&').filter_map(|pair| pair.split_once('=')).collect();
    let value = |wanted: &str| pairs.iter().find(|(name, _)| *name == wanted).map_or("", |(_, value)| *value);
    let mut signed: Vec<String> = pairs
        .iter()
        .filter(|(name, _)| *name != "X-Amz-Signature")
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    signed.sort_unstable();
    let canonical = format!(
        "GET\n/\n{}\nhost:{host}\nx-statewright-server:{server}\n\nhost;x-statewright-server\n{}",
        signed.join("&"),
        hex::encode(Sha256::digest(""))
    );
    let credential = value("X-Amz-Credential").replace("%2F", "/");
    let Some((_key, scope)) = credential.split_once('/') else { return false };
    let text = format!(
        "AWS4-HMAC-SHA256\n{}\n{scope}\n{}",
        value("X-Amz-Date"),
        hex::encode(Sha256::digest(canonical))
    );
    let tag = |key: &[u8], text: &str| {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes());
        tag.as_ref().to_vec()
    };
    let first = format!("AWS4{SECRET}").into_bytes();
    let key = scope.split('/').fold(first, |key, part| tag(&key, part));
    host == HOST && hex::encode(tag(&key, &text)) == value("X-Amz-Signature")
}
