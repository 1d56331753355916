//! An issuer of tokens for the jobs of a CI, in this process: asked through the port, or over HTTPS on this machine.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use statewright_shared::ports::{Web, WebAnswer, WebError, WebRequest};
use tokio::net::TcpListener;

use crate::https_server::{Answer, Authority, HttpsServer};

/// The address of an issuer that is asked through the port.
pub const ISSUER: &str = "https://ci.example.com";

/// How an issuer answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answers {
    /// As it should.
    Well,
    /// Not at all.
    Never,
    /// With this status, and a `Location`.
    Redirect,
    /// With more bytes than any set of keys has.
    TooMuch,
    /// As another issuer.
    As(String),
    /// With a set without keys.
    WithoutKeys,
    /// As this issuer, whose keys are at this address.
    KeysAt(String, String),
}

/// An issuer.
pub struct Issuer {
    pub url: String,
    keys: Mutex<BTreeMap<String, Arc<EcdsaKeyPair>>>,
    answers: Mutex<Answers>,
    request_count: AtomicUsize,
}

impl Issuer {
    /// An issuer at this address, with the key `key-1`.
    pub fn new(url: &str) -> Arc<Self> {
        let issuer = Self {
            url: url.to_owned(),
            keys: Mutex::default(),
            answers: Mutex::new(Answers::Well),
            request_count: AtomicUsize::new(0),
        };
        issuer.add_key("key-1");
        Arc::new(issuer)
    }

    /// Publishes one more key.
    pub fn add_key(&self, id: &str) {
        self.keys().insert(id.to_owned(), Arc::new(new_key()));
    }

    /// Publishes a key no longer.
    pub fn withdraw_key(&self, id: &str) {
        self.keys().remove(id).expect("it has this key");
    }

    fn keys(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<EcdsaKeyPair>>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers like this from now on.
    pub fn set(&self, answers: Answers) {
        *self.answers.lock().unwrap_or_else(PoisonError::into_inner) = answers;
    }

    /// The number of times that its configuration was asked for.
    pub fn request_count(&self) -> usize {
        self.request_count.load(Ordering::Relaxed)
    }

    /// The set of its public keys.
    pub fn key_set(&self) -> Value {
        let keys = self.keys();
        let keys: Vec<Value> = keys.iter().map(|(id, key)| public(id, key)).collect();
        json!({ "keys": keys })
    }

    /// A token with these claims, signed with this key.
    pub fn token_with(&self, key: &str, claims: &Value) -> String {
        let pair = self.keys().get(key).cloned().expect("it has this key");
        signed(&json!({ "alg": "ES256", "typ": "JWT", "kid": key }), claims, &pair)
    }

    /// A token with this text as its claims, signed with this key.
    pub fn token_of_text(&self, key: &str, claims: &str) -> String {
        let pair = self.keys().get(key).cloned().expect("it has this key");
        let header = json!({ "alg": "ES256", "kid": key }).to_string();
        let unsigned = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        sign(&unsigned, &pair)
    }

    /// A token with these claims, signed with the key `key-1`.
    pub fn token(&self, claims: &Value) -> String {
        self.token_with("key-1", claims)
    }

    /// The public key `key-1` as bytes, which a bad verifier might take for a shared secret.
    pub fn public_bytes(&self) -> Vec<u8> {
        self.keys().get("key-1").expect("it has this key").public_key().as_ref().to_vec()
    }

    fn answer(&self, path: &str) -> (u16, String) {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let own_keys = format!("{}/keys", self.url);
        let (issuer, keys) = match &answers {
            Answers::As(other) => (other, &own_keys),
            Answers::KeysAt(issuer, keys) => (issuer, keys),
            _ => (&self.url, &own_keys),
        };
        let configuration = json!({ "issuer": issuer, "jwks_uri": keys });
        let is_configuration = path.ends_with("/.well-known/openid-configuration");
        if is_configuration {
            self.request_count.fetch_add(1, Ordering::Relaxed);
        }
        match (is_configuration, answers) {
            (_, Answers::Redirect) => (302, "{}".to_owned()),
            (_, Answers::TooMuch) => (200, format!("{{\"keys\":[],\"x\":\"{}\"}}", "x".repeat(2 << 20))),
            (false, Answers::WithoutKeys) => (200, "{\"keys\":[]}".to_owned()),
            (true, _) => (200, configuration.to_string()),
            (false, _) if path.ends_with("/keys") => (200, self.key_set().to_string()),
            (false, _) => (404, "{}".to_owned()),
        }
    }

    /// The answer to a request with this head, over a connection.
    fn over(&self, head: &str) -> Option<Answer> {
        if self.is_silent() {
            return None;
        }
        let (status, body) = self.answer(head.split(' ').nth(1).unwrap_or_default());
        Some(Answer { status, location: Some(format!("{}/elsewhere", self.url)), body })
    }

    fn is_silent(&self) -> bool {
        *self.answers.lock().unwrap_or_else(PoisonError::into_inner) == Answers::Never
    }
}

#[async_trait]
impl Web for Issuer {
    async fn send(&self, request: WebRequest) -> Result<WebAnswer, WebError> {
        let Some(path) = request.url.strip_prefix(&self.url) else {
            return Err(WebError::Failed("no such host".into()));
        };
        if self.is_silent() {
            self.request_count.fetch_add(1, Ordering::Relaxed);
            return Err(WebError::Slow);
        }
        let (status, body) = self.answer(path);
        if body.len() > statewright_shared::ports::WEB_ANSWER_BYTES_MAX {
            return Err(WebError::TooLong);
        }
        Ok(WebAnswer { status, body: Bytes::from(body), certificate: [7; 32] })
    }
}

fn new_key() -> EcdsaKeyPair {
    let random = SystemRandom::new();
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
    let document = document.expect("a key can be made");
    EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random)
        .expect("a new key is valid")
}

fn public(id: &str, key: &EcdsaKeyPair) -> Value {
    // An uncompressed point: a byte, and two numbers of 32.
    let (x, y) = key.public_key().as_ref()[1..].split_at(32);
    let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
    json!({ "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": id, "x": x, "y": y })
}

/// The two parts of a token that are signed.
pub fn unsigned(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", part(header), part(claims))
}

fn signed(header: &Value, claims: &Value, key: &EcdsaKeyPair) -> String {
    sign(&unsigned(header, claims), key)
}

fn sign(unsigned: &str, key: &EcdsaKeyPair) -> String {
    let signature = key.sign(&SystemRandom::new(), unsigned.as_bytes()).expect("a key signs");
    format!("{unsigned}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
}

/// The claims of a job as this CI makes them, from `tests/data/ci-tokens`, with times around `now`.
pub fn claims_of(ci: &str, audience: &str, now: i64) -> Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data/ci-tokens").join(format!("{ci}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut claims: Value = serde_json::from_str(&text).expect("a fixture is JSON");
    claims["aud"] = match &claims["aud"] {
        Value::Array(_) => json!([audience]),
        _ => json!(audience),
    };
    for (name, offset) in [("iat", 0), ("nbf", 0), ("exp", 300)] {
        if !claims[name].is_null() {
            claims[name] = json!(now + offset);
        }
    }
    claims
}

/// An issuer that serves HTTPS on this machine. Dropping it ends the server.
pub struct Served {
    pub issuer: Arc<Issuer>,
    /// The file with the certificate of its authority, for `SSL_CERT_FILE`.
    pub authority: PathBuf,
    _vouches: Arc<Authority>,
    _server: HttpsServer,
}

impl Served {
    /// Starts one on a free port.
    pub async fn start() -> Self {
        Self::of(Authority::new()).await
    }

    /// Starts one for which this authority vouches.
    pub async fn of(authority: Arc<Authority>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let port = listener.local_addr().expect("it listens").port();
        let issuer = Issuer::new(&format!("https://localhost:{port}/issuer"));
        let asked = Arc::clone(&issuer);
        let server = HttpsServer::start(listener, &authority, &["localhost", "127.0.0.1"], move |head| {
            asked.over(head)
        });
        Self { issuer, authority: authority.file.clone(), _vouches: authority, _server: server }
    }
}
