//! An OpenID Connect provider whose answers a test can make wrong.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ed25519_dalek::{Signer as _, SigningKey};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use statewright_shared::domain::names::ProviderName;
use statewright_shared::domain::sign_in::{GROUPS_CLAIM, LOGIN_CLAIM, SignInRule};
use statewright_shared::layout::SignInProvider;
use statewright_shared::ports::Timestamp;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The client ID of this server.
pub const CLIENT_ID: &str = "statewright";

/// The client secret of this server.
pub const CLIENT_SECRET: &str = "hunter2 is not a secret";

/// How a provider behaves.
#[derive(Clone)]
pub struct Behavior {
    /// The number of the key that signs.
    pub signs_with: u8,
    /// The numbers of the keys that it publishes.
    pub publishes: Vec<u8>,
    /// The algorithm that a token names; with `none`, it has no signature, and with `HS256` one by the secret.
    pub algorithm: &'static str,
    /// Claims that replace those of a token; `null` removes one.
    pub claims: BTreeMap<&'static str, Value>,
    /// The status of every answer instead of the right one.
    pub fails: Option<StatusCode>,
    /// Whether it gives no answer at all.
    pub is_silent: bool,
    /// The issuer that its document names instead of its own.
    pub names: Option<&'static str>,
}

impl Default for Behavior {
    fn default() -> Self {
        Self {
            signs_with: 1,
            publishes: vec![1],
            algorithm: "EdDSA",
            claims: BTreeMap::new(),
            fails: None,
            is_silent: false,
            names: None,
        }
    }
}

/// A code that was given and not used yet.
struct Grant {
    nonce: String,
    challenge: String,
    redirect_uri: String,
    subject: String,
}

#[derive(Default)]
struct Inner {
    issuer: String,
    behavior: Behavior,
    now: i64,
    grants: HashMap<String, Grant>,
    requests: Vec<String>,
    codes: u64,
}

/// The provider. It ends when it is dropped.
pub struct FakeProvider {
    pub issuer: String,
    inner: Arc<Mutex<Inner>>,
    server: JoinHandle<()>,
}

impl Drop for FakeProvider {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn key(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

impl FakeProvider {
    /// A provider whose clock shows this time, in seconds.
    pub async fn start(now: i64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port is free");
        let address: SocketAddr = listener.local_addr().expect("a bound socket has an address");
        let issuer = format!("http://{address}");
        let inner = Arc::new(Mutex::new(Inner { issuer: issuer.clone(), now, ..Inner::default() }));
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(configuration))
            .route("/keys", get(keys))
            .route("/token", post(token))
            .with_state(Arc::clone(&inner));
        let server = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("serving does not end by itself");
        });
        Self { issuer, inner, server }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This provider as the server at this address has it, with the name `corp`.
    pub fn registration(&self, server: &str, rules: Vec<SignInRule>, created: Timestamp) -> SignInProvider {
        SignInProvider {
            name: ProviderName::parse("corp").expect("valid"),
            title: "Corp".to_owned(),
            issuer: self.issuer.clone(),
            client_id: CLIENT_ID.to_owned(),
            server: server.to_owned(),
            scopes: Vec::new(),
            login_claim: LOGIN_CLAIM.to_owned(),
            groups_claim: GROUPS_CLAIM.to_owned(),
            days: 30,
            rules,
            created,
        }
    }

    /// Changes how it behaves from now on.
    pub fn behaves(&self, behavior: Behavior) {
        self.inner().behavior = behavior;
    }

    /// Sets its clock, in seconds.
    pub fn shows(&self, now: i64) {
        self.inner().now = now;
    }

    /// The paths that were asked for since the last call.
    pub fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.inner().requests)
    }

    /// What its page does when a person signs in there: takes the address that the browser was led to, and returns
    /// the query with which the browser is sent back.
    ///
    /// # Panics
    /// If the address is not one of this provider.
    pub fn sign_in(&self, address: &str, subject: &str) -> String {
        let rest =
            address.strip_prefix(&format!("{}/authorize?", self.issuer)).expect("it leads to the provider");
        let query: HashMap<String, String> = pairs(rest).into_iter().collect();
        let text = |name: &str| query.get(name).cloned().unwrap_or_default();
        assert_eq!((text("client_id").as_str(), text("response_type").as_str()), (CLIENT_ID, "code"));
        assert_eq!(text("code_challenge_method"), "S256");
        assert!(text("scope").split(' ').any(|scope| scope == "openid"), "{address}");
        let mut inner = self.inner();
        inner.codes += 1;
        let code = format!("code-{}", inner.codes);
        let grant = Grant {
            nonce: text("nonce"),
            challenge: text("code_challenge"),
            redirect_uri: text("redirect_uri"),
            subject: subject.to_owned(),
        };
        inner.grants.insert(code.clone(), grant);
        format!("code={code}&state={}", text("state"))
    }
}

/// The pairs of a query.
fn pairs(query: &str) -> Vec<(String, String)> {
    let url = reqwest::Url::parse(&format!("http://x/?{query}")).expect("it is a query");
    url.query_pairs().into_owned().collect()
}

type Shared = State<Arc<Mutex<Inner>>>;

/// Notes a request, and fails if the provider is to fail.
async fn enter(inner: &Mutex<Inner>, path: &str) -> Result<(), StatusCode> {
    let behavior = {
        let mut inner = inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.requests.push(path.to_owned());
        inner.behavior.clone()
    };
    if behavior.is_silent {
        std::future::pending::<()>().await;
    }
    behavior.fails.map_or(Ok(()), Err)
}

async fn configuration(State(inner): Shared) -> Result<Json<Value>, StatusCode> {
    enter(&inner, "configuration").await?;
    let (issuer, names) = {
        let inner = inner.lock().unwrap_or_else(PoisonError::into_inner);
        (inner.issuer.clone(), inner.behavior.names)
    };
    Ok(Json(json!({
        "issuer": names.unwrap_or(&issuer),
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "jwks_uri": format!("{issuer}/keys"),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        // As if the server had to believe it.
        "id_token_signing_alg_values_supported": ["EdDSA", "RS256", "HS256", "none"],
    })))
}

async fn keys(State(inner): Shared) -> Result<Json<Value>, StatusCode> {
    enter(&inner, "keys").await?;
    let publishes = inner.lock().unwrap_or_else(PoisonError::into_inner).behavior.publishes.clone();
    let keys: Vec<Value> = publishes
        .into_iter()
        .map(|number| {
            let public = URL_SAFE_NO_PAD.encode(key(number).verifying_key().as_bytes());
            json!({ "kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": number.to_string(), "x": public })
        })
        .collect();
    Ok(Json(json!({ "keys": keys })))
}

async fn token(
    State(inner): Shared,
    headers: HeaderMap,
    body: String,
) -> Result<(StatusCode, Json<Value>), StatusCode> {
    enter(&inner, "token").await?;
    let refused = |code: &str| Ok((StatusCode::BAD_REQUEST, Json(json!({ "error": code }))));
    let form: HashMap<String, String> = pairs(&body).into_iter().collect();
    let text = |name: &str| form.get(name).cloned().unwrap_or_default();
    let encoded: String = CLIENT_SECRET.replace(' ', "+");
    let basic = format!("Basic {}", STANDARD.encode(format!("{CLIENT_ID}:{encoded}")));
    if headers.get("authorization").and_then(|value| value.to_str().ok()) != Some(basic.as_str()) {
        return refused("invalid_client");
    }
    let mut inner = inner.lock().unwrap_or_else(PoisonError::into_inner);
    // A code works once.
    let Some(grant) = inner.grants.remove(&text("code")) else { return refused("invalid_grant") };
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(text("code_verifier")));
    if challenge != grant.challenge || text("redirect_uri") != grant.redirect_uri {
        return refused("invalid_grant");
    }
    let id_token = id_token(&inner, &grant);
    Ok((
        StatusCode::OK,
        Json(
            json!({ "access_token": "unused", "token_type": "Bearer", "expires_in": 60, "id_token": id_token }),
        ),
    ))
}

fn id_token(inner: &Inner, grant: &Grant) -> String {
    let behavior = &inner.behavior;
    let header = match behavior.algorithm {
        "none" => json!({ "alg": "none" }),
        algorithm => json!({ "alg": algorithm, "kid": behavior.signs_with.to_string() }),
    };
    let mut claims = json!({
        "iss": inner.issuer,
        "aud": CLIENT_ID,
        "sub": grant.subject,
        "nonce": grant.nonce,
        "iat": inner.now,
        "exp": inner.now + 300,
        "preferred_username": grant.subject,
        "groups": ["dev"],
    });
    for (name, value) in &behavior.claims {
        match value {
            Value::Null => drop(claims.as_object_mut().expect("it is one").remove(*name)),
            value => claims[*name] = value.clone(),
        }
    }
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(&header), part(&claims));
    let signature = match behavior.algorithm {
        "none" => Vec::new(),
        "HS256" => hmac_sha256(CLIENT_SECRET.as_bytes(), signed.as_bytes()),
        _ => key(behavior.signs_with).sign(signed.as_bytes()).to_bytes().to_vec(),
    };
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// HMAC with SHA-256, as RFC 2104 defines it.
fn hmac_sha256(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut padded = [0; 64];
    padded[..key.len()].copy_from_slice(key);
    let with = |pad: u8| padded.map(|byte| byte ^ pad);
    let inner = Sha256::digest([with(0x36).as_slice(), text].concat());
    Sha256::digest([with(0x5c).as_slice(), &inner].concat()).to_vec()
}
