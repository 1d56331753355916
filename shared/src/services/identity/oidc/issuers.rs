//! The issuers whose tokens an organization accepts. An issuer has its policies in its own record, so both are deleted
//! together.

use std::time::Duration;

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::keys::{self, NoKeys};
use crate::context::Context;
use crate::domain::hidden::has_hidden;
use crate::domain::names::OrgName;
use crate::domain::oidc::aws::ISSUER as AWS;
use crate::domain::oidc::{IssuerUrl, jwk, lifetime};
use crate::layout::{Issuer, Record as _, Stored, delete};
use crate::ports::Expect;
use crate::services::caller::Caller;
use crate::services::error::OidcError;
use crate::services::store::retry::Attempts;
use crate::services::{Error, store};

/// Issuers of an organization, at most.
pub const ISSUERS_MAX: usize = 50;

/// Thumbprints of an issuer, at most.
pub const THUMBPRINTS_MAX: usize = 20;

/// The length of an issuer's name in characters, at most.
const NAME_CHARACTERS_MAX: usize = 100;

/// The length of registered keys in bytes of JSON, at most. An item of the ledger holds 400 KB.
const KEYS_BYTES_MAX: usize = 64 << 10;

/// The parts of a registration that can change.
#[derive(Debug, Clone, Default)]
pub struct Edit {
    /// A name for people.
    pub name: Option<String>,
    /// The SHA-256 of its certificates, in hex.
    pub thumbprints: Option<Vec<String>>,
    /// Its public keys, if they are not to be fetched: a set as in RFC 7517; `Some(None)` to fetch them.
    pub keys: Option<Option<Value>>,
    /// The longest lifetime of a token for one of its tokens, in seconds; `Some(None)` for the longest of all.
    pub seconds_max: Option<Option<i64>>,
}

/// An issuer with its ID.
#[derive(Debug, Clone)]
pub struct Registered {
    /// The ID, which is the ID of its policies too.
    pub id: Uuid,
    /// The record.
    pub issuer: Issuer,
}

/// The ID of an issuer: the same for each registration of its address in this organization, so that its record is found
/// without a search.
pub(super) fn id_of(org: &OrgName, url: &IssuerUrl) -> Uuid {
    let hash = Sha256::digest(format!("issuer\n{org}\n{url}"));
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

/// Reads an issuer by its ID as the caller sent it.
pub(super) async fn find(ctx: &Context, org: &OrgName, id: &str) -> Result<(Uuid, Stored<Issuer>), Error> {
    let missing = || Error::from(OidcError::NoIssuer(id.chars().take(60).collect()));
    let id = Uuid::parse_str(id).map_err(|_| missing())?;
    let stored = store::read(ctx, &Issuer::key(org, &id)).await?.ok_or_else(missing)?;
    Ok((id, stored))
}

/// The issuers of an organization. One query.
///
/// # Errors
/// `AccessError`.
pub async fn list(ctx: &Context, caller: &Caller, org: &OrgName) -> Result<Vec<Registered>, Error> {
    caller.check_org(ctx, org).await?;
    read_all(ctx, org).await
}

async fn read_all(ctx: &Context, org: &OrgName) -> Result<Vec<Registered>, Error> {
    let items = store::query_all(ctx, Issuer::of_org(org), usize::MAX).await?;
    let registered = |item: &crate::ports::Item| {
        let issuer = Issuer::decode(&item.value)?;
        Ok(Registered { id: id_of(org, &issuer.url), issuer })
    };
    items.iter().map(registered).collect()
}

/// One issuer.
///
/// # Errors
/// `AccessError`, [`OidcError::NoIssuer`].
pub async fn get(ctx: &Context, caller: &Caller, org: &OrgName, id: &str) -> Result<Registered, Error> {
    caller.check_org(ctx, org).await?;
    let (id, stored) = find(ctx, org, id).await?;
    Ok(Registered { id, issuer: stored.value })
}

/// Registers an issuer. Its keys are fetched once, unless they are registered too: so an address that does not work is
/// refused now, and not when the first job needs a token. A new issuer has no policies, so it allows nothing.
///
/// # Errors
/// `AccessError`; [`OidcError`] for parts that break their rules, an issuer that exists, or one without keys.
pub async fn create(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    url: &str,
    edit: Edit,
) -> Result<Registered, Error> {
    caller.check_org(ctx, org).await?;
    let url = IssuerUrl::parse(url).map_err(OidcError::from)?;
    let id = id_of(org, &url);
    let now = ctx.now();
    let new = Issuer {
        name: String::new(),
        url,
        thumbprints: Vec::new(),
        keys: None,
        seconds_max: None,
        created: now,
        changed: now,
        policies_version: 0,
        policies_changed: now,
        policies: Vec::new(),
        last_used: None,
    };
    let name = edit.name.clone().filter(|name| !name.trim().is_empty()).ok_or(OidcError::NoName)?;
    let has_thumbprints = edit.thumbprints.as_ref().is_some_and(|all| !all.is_empty());
    let mut issuer = edited(new, Edit { name: Some(name), ..edit })?;
    let others = read_all(ctx, org).await?;
    if others.iter().any(|other| other.id == id) {
        return Err(OidcError::IssuerExists(issuer.url).into());
    }
    if others.len() >= ISSUERS_MAX {
        return Err(OidcError::TooManyIssuers { max: ISSUERS_MAX }.into());
    }
    if issuer.url.as_str() == AWS {
        if ctx.address.is_none() {
            return Err(OidcError::NoAddress.into());
        }
        if issuer.keys.is_some() {
            return Err(OidcError::AwsHasNoKeys.into());
        }
    } else if issuer.keys.is_none() {
        let certificate = certificate(ctx, &issuer.url).await?;
        if !has_thumbprints {
            issuer.thumbprints = vec![certificate];
        }
    }
    let write = store::put(ctx, Issuer::key(org, &id), Expect::Absent, &issuer);
    match store::commit(ctx, vec![write]).await? {
        Ok(()) => Ok(Registered { id, issuer }),
        Err(_) => Err(OidcError::IssuerExists(issuer.url).into()),
    }
}

/// Changes a registration. Its address cannot change.
///
/// # Errors
/// `AccessError`, [`OidcError`].
pub async fn edit(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    id: &str,
    edit: Edit,
) -> Result<Registered, Error> {
    caller.check_org(ctx, org).await?;
    // Clients send the name with every change, as Pulumi Cloud demands.
    if edit.name.as_ref().is_none_or(|name| name.trim().is_empty()) {
        return Err(OidcError::NoName.into());
    }
    change(ctx, org, id, |issuer| {
        if issuer.url.as_str() == AWS && edit.keys.as_ref().is_some_and(Option::is_some) {
            return Err(OidcError::AwsHasNoKeys.into());
        }
        edited(issuer, edit.clone())
    })
    .await
}

/// Stores the thumbprint of the certificate that the issuer has now.
///
/// # Errors
/// `AccessError`, [`OidcError::NoIssuer`], [`OidcError::KeysAreRegistered`], [`OidcError::Unreachable`].
pub async fn renew_thumbprints(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    id: &str,
) -> Result<Registered, Error> {
    caller.check_org(ctx, org).await?;
    let (_, found) = find(ctx, org, id).await?;
    if found.value.keys.is_some() || found.value.url.as_str() == AWS {
        return Err(OidcError::KeysAreRegistered.into());
    }
    let thumbprints = vec![certificate(ctx, &found.value.url).await?];
    change(ctx, org, id, |issuer| Ok(Issuer { thumbprints: thumbprints.clone(), ..issuer })).await
}

/// Deletes an issuer with its policies. Tokens that were given for its tokens live until they expire.
///
/// # Errors
/// `AccessError`, [`OidcError::NoIssuer`].
pub async fn remove(ctx: &Context, caller: &Caller, org: &OrgName, id: &str) -> Result<(), Error> {
    caller.check_org(ctx, org).await?;
    let mut attempts = Attempts::at("the issuer");
    loop {
        let attempt = attempts.begin()?;
        let (id, found) = match find(ctx, org, id).await {
            // It existed a moment ago: an earlier attempt deleted it, and its answer was lost.
            Err(Error::Oidc(error)) if attempt > 0 && matches!(*error, OidcError::NoIssuer(_)) => {
                return Ok(());
            }
            found => found?,
        };
        let write = delete(Issuer::key(org, &id), found.unchanged());
        if store::commit(ctx, vec![write]).await?.is_ok() {
            return Ok(());
        }
    }
}

/// Changes the record of an issuer.
pub(super) async fn change(
    ctx: &Context,
    org: &OrgName,
    id: &str,
    change: impl Fn(Issuer) -> Result<Issuer, Error>,
) -> Result<Registered, Error> {
    let mut attempts = Attempts::at("the issuer");
    loop {
        attempts.begin()?;
        let (id, found) = find(ctx, org, id).await?;
        let expect = found.unchanged();
        let issuer = Issuer { changed: ctx.now(), ..change(found.value)? };
        let write = store::put(ctx, Issuer::key(org, &id), expect, &issuer);
        if store::commit(ctx, vec![write]).await?.is_ok() {
            return Ok(Registered { id, issuer });
        }
    }
}

async fn certificate(ctx: &Context, url: &IssuerUrl) -> Result<String, Error> {
    let certificate = keys::certificate(ctx, url).await;
    certificate
        .map(hex::encode)
        .map_err(|NoKeys(why)| OidcError::Unreachable { url: url.clone(), why }.into())
}

fn edited(mut issuer: Issuer, edit: Edit) -> Result<Issuer, Error> {
    if let Some(name) = edit.name {
        if name.chars().nth(NAME_CHARACTERS_MAX).is_some() {
            return Err(OidcError::NameTooLong { max: NAME_CHARACTERS_MAX }.into());
        }
        if has_hidden(&name) {
            return Err(OidcError::NameHidden.into());
        }
        issuer.name = name;
    }
    if let Some(thumbprints) = edit.thumbprints {
        let is_hash = |text: &&String| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let wrong =
            thumbprints.iter().find(|text| !is_hash(text)).or_else(|| thumbprints.get(THUMBPRINTS_MAX));
        if let Some(wrong) = wrong {
            let found = wrong.chars().take(80).collect();
            return Err(OidcError::Thumbprint { found, max: THUMBPRINTS_MAX }.into());
        }
        issuer.thumbprints = thumbprints;
    }
    if let Some(keys) = edit.keys {
        if let Some(keys) = &keys {
            jwk::check_registered(keys).map_err(OidcError::from)?;
            if keys.to_string().len() > KEYS_BYTES_MAX {
                return Err(OidcError::KeysTooLong { max: KEYS_BYTES_MAX }.into());
            }
        }
        issuer.keys = keys;
    }
    if let Some(seconds) = edit.seconds_max {
        let max = lifetime::MAX.as_secs();
        let is_lifetime = |seconds: &u32| *seconds > 0 && u64::from(*seconds) <= max;
        let seconds = seconds.map(|seconds| {
            u32::try_from(seconds).ok().filter(is_lifetime).ok_or(OidcError::Lifetime { max })
        });
        issuer.seconds_max = seconds.transpose()?;
    }
    Ok(issuer)
}

/// The longest lifetime of a token for one of this issuer's.
pub(super) fn lifetime_max(issuer: &Issuer) -> Option<Duration> {
    issuer.seconds_max.map(|seconds| Duration::from_secs(u64::from(seconds)))
}
