//! The public keys of issuers, fetched when they are needed.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::cache::FetchedKeys;
use crate::context::Context;
use crate::domain::oidc::IssuerUrl;
use crate::domain::oidc::jwk::{self, PublicKey};
use crate::ports::{Timestamp, WebError, WebRequest};

/// The time for which fetched keys are used. A key that its issuer withdraws is refused after at most this time.
pub const KEYS_REMEMBERED_FOR: Duration = Duration::from_secs(600);

/// The time between two fetches from one issuer, whatever the first one found.
pub const FETCH_PAUSE: Duration = Duration::from_secs(60);

/// Why an issuer has no keys here. The text is for the issuer's admin and for the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NoKeys(pub(super) String);

/// The keys of an issuer. Fetches them if they are unknown or old, or if `suffices` says that they lack one, but at
/// most once in [`FETCH_PAUSE`] in this process.
pub(super) async fn of(
    ctx: &Context,
    url: &IssuerUrl,
    suffices: impl Fn(&[PublicKey]) -> bool,
) -> Result<Arc<[PublicKey]>, NoKeys> {
    let slot = ctx.memory.issuer_keys.of(url);
    // Held while the keys are fetched: others wait for the same answer.
    let mut fetched = slot.lock().await;
    let now = ctx.now();
    let known = fetched.keys.clone().filter(|(at, _)| is_within(*at, now, KEYS_REMEMBERED_FOR));
    if let Some((_, keys)) = known.as_ref().filter(|(_, keys)| suffices(keys)) {
        return Ok(Arc::clone(keys));
    }
    let is_too_soon = fetched.tried.is_some_and(|tried| is_within(tried, now, FETCH_PAUSE));
    if !is_too_soon {
        fetched.tried = Some(now);
        match fetch(ctx, url).await {
            Ok((keys, certificate)) => {
                let keys: Arc<[PublicKey]> = keys.into();
                *fetched = FetchedKeys {
                    tried: Some(now),
                    keys: Some((now, Arc::clone(&keys))),
                    certificate: Some(certificate),
                    failure: None,
                };
                return Ok(keys);
            }
            Err(NoKeys(why)) => fetched.failure = Some(why),
        }
    }
    match known {
        Some((_, keys)) => Ok(keys),
        None => {
            let why = fetched.failure.clone().unwrap_or_default();
            Err(NoKeys(format!("{why} (it is asked at most once in {} s)", FETCH_PAUSE.as_secs())))
        }
    }
}

/// The SHA-256 of the certificate of an issuer, with which its configuration was fetched last.
pub(super) async fn certificate(ctx: &Context, url: &IssuerUrl) -> Result<[u8; 32], NoKeys> {
    of(ctx, url, |_| true).await?;
    let slot = ctx.memory.issuer_keys.of(url);
    let certificate = slot.lock().await.certificate;
    certificate.ok_or_else(|| NoKeys("its certificate is not known".to_owned()))
}

/// Whether `then` is at most this long ago. A clock that jumped back makes it the future, which is not.
fn is_within(then: Timestamp, now: Timestamp, time: Duration) -> bool {
    then <= now && now.since(then) < time
}

/// Fetches the configuration of an issuer, which names the address of its keys, and the keys.
async fn fetch(ctx: &Context, url: &IssuerUrl) -> Result<(Vec<PublicKey>, [u8; 32]), NoKeys> {
    let place = url.configuration();
    let (configuration, certificate) = get(ctx, &place).await?;
    let text = |name: &str| configuration.get(name).and_then(Value::as_str);
    if text("issuer") != Some(url.as_str()) {
        return Err(NoKeys(format!("{place} names another issuer than {url}")));
    }
    let keys_at = text("jwks_uri").ok_or_else(|| NoKeys(format!("{place} names no jwks_uri")))?;
    let (set, _) = get(ctx, keys_at).await?;
    let keys = jwk::usable(&set).map_err(|error| NoKeys(format!("{}: {error}", shown(keys_at))))?;
    Ok((keys, certificate))
}

async fn get(ctx: &Context, url: &str) -> Result<(Value, [u8; 32]), NoKeys> {
    let no_keys = |why: &dyn std::fmt::Display| NoKeys(format!("{}: {why}", shown(url)));
    let Some(web) = &ctx.web else {
        return Err(no_keys(&"this process sends no requests to other servers"));
    };
    let answer =
        web.send(WebRequest::get(url.to_owned())).await.map_err(|error: WebError| no_keys(&error))?;
    if answer.status != 200 {
        return Err(no_keys(&format_args!("the answer has the status {}", answer.status)));
    }
    let value = serde_json::from_slice(&answer.body).map_err(|_| no_keys(&"the answer is not JSON"))?;
    Ok((value, answer.certificate))
}

/// An address that an issuer chose, for a message.
fn shown(url: &str) -> String {
    url.chars().filter(|c| c.is_ascii_graphic()).take(200).collect()
}
