//! The OpenID Connect protocol: the authorization code flow with PKCE.
//!
//! A sign-in begins with state, nonce and PKCE verifier, which only this server can read: they are in a cookie,
//! encrypted. The provider's answer has to match them. Nothing is stored until the person is known.

use std::error::Error as StdError;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use openidconnect::core::{
    CoreAuthenticationFlow, CoreClient, CoreClientAuthMethod, CoreIdToken, CoreJsonWebKeySet,
    CoreJwsSigningAlgorithm, CoreProviderMetadata,
};
use openidconnect::http::{Method, Response};
use openidconnect::{
    AuthType, AuthorizationCode, ClaimsVerificationError, ClientId, ClientSecret, CsrfToken,
    EndpointMaybeSet, EndpointNotSet, EndpointSet, HttpRequest, HttpResponse, IdTokenVerifier, IssuerUrl,
    Nonce, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RequestTokenError, Scope,
    SignatureVerificationError, TokenResponse as _,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{providers, sealing};
use crate::cache::Issuer;
use crate::context::Context;
use crate::domain::names::{Login, ProviderName};
use crate::layout::SignInProvider;
use crate::ports::{Timestamp, Web, WebAnswer, WebError, WebRequest};
use crate::services::Error;
use crate::services::error::{BadToken, SignInError};

/// The time in which a person has to finish a sign-in.
pub const ATTEMPT_MAX: Duration = Duration::from_secs(600);

/// The time for which the documents of a provider are used from the cache.
const DOCUMENTS_REMEMBERED_FOR: Duration = Duration::from_secs(600);

/// The time between two requests for the keys of a provider, when a token names an unknown one.
const KEYS_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// The time for which a provider that did not answer is not asked again.
const DOWN_REMEMBERED_FOR: Duration = Duration::from_secs(5);

/// The difference between the clocks of a provider and of this server, in seconds, at most.
const CLOCKS_APART_SECONDS: i64 = 60;

/// The length of an ID token, in bytes, at most. 1,000 groups with names of 30 bytes fit.
const TOKEN_BYTES_MAX: usize = 64 << 10;

/// The length of a provider's error code that a page shows, at most.
const CODE_CHARACTERS_MAX: usize = 60;

/// The purpose of a sealed attempt.
const ATTEMPT: &str = "attempt to sign in";

/// Only signatures by which a public key proves the signer. `none`, and codes made with the client secret, are not
/// accepted, whatever the provider says of itself.
const ALGORITHMS: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// A sign-in that has begun. A browser has it in a cookie, encrypted.
#[derive(Debug, Serialize, Deserialize)]
pub struct Attempt {
    provider: ProviderName,
    state: String,
    nonce: String,
    verifier: String,
    /// The path to open afterwards.
    pub next: String,
    /// The signed-in user who links an account, with the time when that user was created.
    pub link: Option<(Login, Timestamp)>,
    until: Timestamp,
}

/// What a browser needs to begin a sign-in.
#[derive(Debug)]
pub struct Begun {
    /// The page of the provider.
    pub url: String,
    /// The text for the cookie.
    pub cookie: String,
}

/// The parameters with which the provider sends the browser back.
#[derive(Debug, Default, Clone, Copy)]
pub struct ProviderAnswer<'a> {
    /// The authorization code.
    pub code: Option<&'a str>,
    /// The state of the attempt.
    pub state: Option<&'a str>,
    /// The issuer, which some providers send (RFC 9207).
    pub issuer: Option<&'a str>,
    /// The code of an error.
    pub error: Option<&'a str>,
}

/// A person whom a provider vouches for.
#[derive(Debug, Clone)]
pub struct Person {
    /// The provider.
    pub provider: SignInProvider,
    /// The person at this issuer.
    pub subject: String,
    /// All claims of the ID token.
    pub claims: Map<String, Value>,
}

/// Begins a sign-in: makes the address of the provider's page, and the cookie that proves that this browser began
/// it.
///
/// # Errors
/// [`SignInError::NoProvider`], [`SignInError::ProviderDown`].
pub async fn begin(
    ctx: &Context,
    name: &ProviderName,
    next: &str,
    link: Option<(Login, Timestamp)>,
) -> Result<Begun, Error> {
    let (provider, secret) = providers::with_secret(ctx, name).await?;
    let documents = documents(ctx, &provider, DOCUMENTS_REMEMBERED_FOR).await?;
    let client = client(&provider, secret, &documents)?;
    let attempt = Attempt {
        provider: name.clone(),
        state: random(ctx),
        nonce: random(ctx),
        verifier: random(ctx),
        next: next.to_owned(),
        link,
        until: ctx.now().plus(ATTEMPT_MAX),
    };
    let verifier = PkceCodeVerifier::new(attempt.verifier.clone());
    let (state, nonce) = (CsrfToken::new(attempt.state.clone()), Nonce::new(attempt.nonce.clone()));
    let mut request = client
        .authorize_url(CoreAuthenticationFlow::AuthorizationCode, move || state, move || nonce)
        .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier));
    for scope in &provider.scopes {
        request = request.add_scope(Scope::new(scope.clone()));
    }
    let (url, _, _) = request.url();
    let text = serde_json::to_vec(&attempt).map_err(|error| Error::Broken(error.to_string()))?;
    let cookie = URL_SAFE_NO_PAD.encode(sealing::seal(ctx, ATTEMPT, &text).await?);
    Ok(Begun { url: url.into(), cookie })
}

/// Finishes a sign-in that this browser began with this provider.
///
/// # Errors
/// [`SignInError`] for anything that is not the provider's answer to exactly this attempt.
pub async fn finish(
    ctx: &Context,
    name: &ProviderName,
    cookie: Option<&str>,
    answer: ProviderAnswer<'_>,
) -> Result<(Person, Attempt), Error> {
    let attempt = opened(ctx, cookie).await?.ok_or(SignInError::NotBegun)?;
    // Each provider has an address of its own to send people back to, so that one cannot use the code of another.
    if attempt.provider != *name || attempt.until <= ctx.now() {
        return Err(SignInError::NotBegun.into());
    }
    if answer.state != Some(attempt.state.as_str()) {
        return Err(SignInError::OtherAnswer.into());
    }
    let (provider, secret) = providers::with_secret(ctx, name).await?;
    if answer.issuer.is_some_and(|issuer| issuer != provider.issuer) {
        return Err(SignInError::OtherAnswer.into());
    }
    if let Some(code) = answer.error {
        let code = code.chars().take(CODE_CHARACTERS_MAX).collect();
        return Err(SignInError::ProviderRefused { provider: name.clone(), code }.into());
    }
    let code = answer.code.ok_or(SignInError::OtherAnswer)?;
    let documents = documents(ctx, &provider, DOCUMENTS_REMEMBERED_FOR).await?;
    let token = exchange(ctx, &provider, secret, &documents, code, &attempt).await?;
    let subject = verify(ctx, &provider, documents, &token, &attempt.nonce).await?;
    let claims = payload(&token.to_string()).ok_or_else(|| bad_token(name, BadToken::Unreadable))?;
    Ok((Person { provider, subject, claims }, attempt))
}

async fn opened(ctx: &Context, cookie: Option<&str>) -> Result<Option<Attempt>, Error> {
    let Some(sealed) = cookie.and_then(|cookie| URL_SAFE_NO_PAD.decode(cookie).ok()) else { return Ok(None) };
    let text = sealing::open(ctx, ATTEMPT, &sealed).await?;
    Ok(text.and_then(|text| serde_json::from_slice(&text).ok()))
}

/// Exchanges the code for an ID token.
async fn exchange(
    ctx: &Context,
    provider: &SignInProvider,
    secret: Option<String>,
    documents: &CoreProviderMetadata,
    code: &str,
    attempt: &Attempt,
) -> Result<CoreIdToken, Error> {
    let name = &provider.name;
    let client = client(provider, secret, documents)?;
    let request = client
        .exchange_code(AuthorizationCode::new(code.to_owned()))
        .map_err(|_| down(name, &"its document names no token endpoint"))?
        .set_pkce_verifier(PkceCodeVerifier::new(attempt.verifier.clone()));
    let web = web(ctx)?;
    let send = move |request| send(Arc::clone(&web), request);
    let answered = request.request_async(&send).await.map_err(|error| match error {
        // A code that was used before, or that was given to another client.
        RequestTokenError::ServerResponse(refused) => {
            let code = refused.error().as_ref().chars().take(CODE_CHARACTERS_MAX).collect();
            Error::from(SignInError::ProviderRefused { provider: name.clone(), code })
        }
        RequestTokenError::Request(error) => down(name, &error),
        RequestTokenError::Parse(error, _) => down(name, &error),
        RequestTokenError::Other(error) => down(name, &error),
    })?;
    let token = answered.id_token().ok_or_else(|| bad_token(name, BadToken::Missing))?;
    if token.to_string().len() > TOKEN_BYTES_MAX {
        return Err(bad_token(name, BadToken::TooLong));
    }
    Ok(token.clone())
}

/// The subject of an ID token that the provider signed for this attempt.
async fn verify(
    ctx: &Context,
    provider: &SignInProvider,
    documents: Arc<CoreProviderMetadata>,
    token: &CoreIdToken,
    nonce: &str,
) -> Result<String, Error> {
    match verified(ctx, provider, documents.jwks(), token, nonce) {
        // The provider may have a new key since its documents were read.
        Err(ClaimsVerificationError::SignatureVerification(SignatureVerificationError::NoMatchingKey)) => {
            let newer = self::documents(ctx, provider, KEYS_AGAIN_AFTER).await?;
            verified(ctx, provider, newer.jwks(), token, nonce)
        }
        done => done,
    }
    .map_err(|error| {
        tracing::warn!(
            provider = provider.name.as_str(),
            error = &error as &dyn StdError,
            "an ID token is refused"
        );
        bad_token(&provider.name, reason(&error))
    })
}

fn verified(
    ctx: &Context,
    provider: &SignInProvider,
    keys: &CoreJsonWebKeySet,
    token: &CoreIdToken,
    nonce: &str,
) -> Result<String, ClaimsVerificationError> {
    let issuer = IssuerUrl::new(provider.issuer.clone())
        .map_err(|error| ClaimsVerificationError::InvalidIssuer(error.to_string()))?;
    let now = ctx.now();
    let latest = now.seconds() + CLOCKS_APART_SECONDS;
    // The library refuses a token at its expiry, and its clock is this one.
    let earliest = instant(now.seconds() - CLOCKS_APART_SECONDS);
    // As a client without a secret, so that no secret can verify a signature.
    let verifier =
        IdTokenVerifier::new_public_client(ClientId::new(provider.client_id.clone()), issuer, keys.clone())
            .set_allowed_algs(ALGORITHMS)
            .set_time_fn(move || earliest)
            .set_issue_time_verifier_fn(move |issued| match issued.timestamp() <= latest {
                true => Ok(()),
                false => Err("it was issued in the future".to_owned()),
            });
    let claims = token.claims(&verifier, &Nonce::new(nonce.to_owned()))?;
    Ok(claims.subject().to_string())
}

/// What is wrong with a token, for the person.
fn reason(error: &ClaimsVerificationError) -> BadToken {
    match error {
        ClaimsVerificationError::Expired(_) => BadToken::Expired,
        ClaimsVerificationError::InvalidAudience(_) => BadToken::Audience,
        ClaimsVerificationError::InvalidIssuer(_) => BadToken::Issuer,
        ClaimsVerificationError::InvalidNonce(_) => BadToken::Nonce,
        ClaimsVerificationError::SignatureVerification(_) => BadToken::Signature,
        _ => BadToken::Claims,
    }
}

type Client = CoreClient<
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

fn client(
    provider: &SignInProvider,
    secret: Option<String>,
    documents: &CoreProviderMetadata,
) -> Result<Client, Error> {
    let broken = |error: openidconnect::url::ParseError| Error::Broken(error.to_string());
    let back = RedirectUrl::new(redirect_uri(provider)).map_err(broken)?;
    let methods = documents.token_endpoint_auth_methods_supported();
    // Without the list, a provider supports the first one. Source: OpenID Connect Discovery 1.0, section 3.
    let is_basic = methods.is_none_or(|methods| methods.contains(&CoreClientAuthMethod::ClientSecretBasic));
    let client_id = ClientId::new(provider.client_id.clone());
    Ok(CoreClient::from_provider_metadata(documents.clone(), client_id, secret.map(ClientSecret::new))
        .set_auth_type(if is_basic { AuthType::BasicAuth } else { AuthType::RequestBody })
        .set_redirect_uri(back))
}

/// The address that a provider sends people back to.
pub fn redirect_uri(provider: &SignInProvider) -> String {
    format!("{}/signin/{}/callback", provider.server.trim_end_matches('/'), provider.name)
}

/// The documents of the provider's issuer, at most this old.
async fn documents(
    ctx: &Context,
    provider: &SignInProvider,
    age_max: Duration,
) -> Result<Arc<CoreProviderMetadata>, Error> {
    let (name, now) = (&provider.name, ctx.now());
    let issuers = &ctx.memory.issuers;
    if let Some(Issuer::Down) = issuers.get(&provider.issuer, now, DOWN_REMEMBERED_FOR) {
        return Err(SignInError::ProviderDown(name.clone()).into());
    }
    if let Some(Issuer::Up(documents)) = issuers.get(&provider.issuer, now, age_max) {
        return Ok(documents);
    }
    let web = web(ctx)?;
    let send = move |request| send(Arc::clone(&web), request);
    let issuer = IssuerUrl::new(provider.issuer.clone()).map_err(|error| down(name, &error))?;
    match CoreProviderMetadata::discover_async(issuer, &send).await {
        Ok(documents) => {
            let documents = Arc::new(documents);
            issuers.put(provider.issuer.clone(), now, Issuer::Up(Arc::clone(&documents)));
            Ok(documents)
        }
        Err(error) => {
            issuers.put(provider.issuer.clone(), now, Issuer::Down);
            Err(down(name, &error))
        }
    }
}

fn web(ctx: &Context) -> Result<Arc<dyn Web>, Error> {
    ctx.web.clone().ok_or_else(|| SignInError::NoWeb.into())
}

/// Sends a request of the library.
async fn send(web: Arc<dyn Web>, request: HttpRequest) -> Result<HttpResponse, WebError> {
    let (parts, body) = request.into_parts();
    let is_post = parts.method == Method::POST;
    let headers = parts
        .headers
        .iter()
        .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())));
    let request = WebRequest {
        url: parts.uri.to_string(),
        headers: headers.collect(),
        body: is_post.then(|| body.into()),
    };
    let WebAnswer { status, body, .. } = web.send(request).await?;
    let answer = Response::builder().status(status).body(body.to_vec());
    answer.map_err(|error| WebError::Failed(error.into()))
}

/// The log gets the cause, which may name addresses; the person gets the name of the provider.
fn down(provider: &ProviderName, cause: &dyn Display) -> Error {
    tracing::warn!(provider = provider.as_str(), %cause, "a provider of sign-ins does not answer as one");
    SignInError::ProviderDown(provider.clone()).into()
}

fn bad_token(provider: &ProviderName, why: BadToken) -> Error {
    SignInError::BadToken { provider: provider.clone(), why }.into()
}

/// The claims of a token whose signature was verified.
fn payload(token: &str) -> Option<Map<String, Value>> {
    let text = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    serde_json::from_slice(&text).ok()
}

/// 256 random bits, in characters that need no escaping.
fn random(ctx: &Context) -> String {
    let mut bytes = [0; 32];
    ctx.ids.fill(&mut bytes);
    URL_SAFE_NO_PAD.encode(bytes)
}

fn instant(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).unwrap_or_default()
}
