//! Update tokens: signed, not stored. A token names its update and when it ends, so that before its end a request
//! needs no read to know whom it serves; the log's seal is what fences a client out.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};

use super::Error;
use super::store::{self, sha256_hex};
use crate::context::Context;
use crate::domain::claims::{Bearer, Claims};
use crate::domain::ids::UpdateId;
use crate::domain::names::StackAddress;
use crate::domain::update::Update;
use crate::layout::ItemKeys;
use crate::layout::record::{Record, put};
use crate::layout::records::{Signer, VerifyingKeyRecord};
use crate::ports::{DataKey, Expect, KeyContext, Timestamp, WrappedKey};

const VERSION: &str = "swu1";
const NOT_VALID: &str =
    "the update token is not valid for this update; run the command again to start a new update";

/// A token for one update, for who gets it.
///
/// # Errors
/// Those of the ports; the signing key is read once and remembered.
pub async fn issue(
    ctx: &Context,
    id: UpdateId,
    update: &Update,
    address: &StackAddress,
    expires: Timestamp,
    bearer: Option<Bearer>,
) -> Result<String, Error> {
    let (key, seed) = signer(ctx).await?;
    let claims = Claims {
        update: id,
        stack: update.stack,
        address: sha256_hex(address.to_string().as_bytes()),
        dry_run: update.dry_run,
        journals: update.journal_version > 0,
        expires,
        bearer,
    };
    let claims = serde_json::to_vec(&claims).expect("claims hold only what JSON can express");
    let signed = format!("{VERSION}.{key}.{}", URL_SAFE_NO_PAD.encode(claims));
    let signature = SigningKey::from_bytes(&seed.0).sign(signed.as_bytes());
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.to_bytes())))
}

/// What the token says, if it is one of ours for exactly this update of this stack.
///
/// # Errors
/// [`Error::Fenced`] for any other token: the client is told to stop, and tries no more.
pub async fn verify(
    ctx: &Context,
    token: &str,
    address: &StackAddress,
    update: &str,
) -> Result<Claims, Error> {
    let refused = || Error::Fenced(NOT_VALID.to_owned());
    // A signature that was good once is good for ever, and checking it is a good part of an append.
    let remembered = ctx.memory.claims.get(token, ctx.now(), Duration::MAX);
    let claims = match remembered {
        Some(claims) => claims,
        None => {
            let claims = read(ctx, token).await?.ok_or_else(refused)?;
            ctx.memory.claims.put(token.to_owned(), ctx.now(), claims.clone());
            claims
        }
    };
    if claims.update.to_string() != update || claims.address != sha256_hex(address.to_string().as_bytes()) {
        return Err(refused());
    }
    Ok(claims)
}

/// What the token says, if it was signed by one of our keys.
async fn read(ctx: &Context, token: &str) -> Result<Option<Claims>, Error> {
    let Some(parts) = Parts::of(token) else { return Ok(None) };
    let Some(public) = verifying_key(ctx, parts.key).await? else { return Ok(None) };
    Ok(parts.claims(&public))
}

/// A token, taken apart and not yet believed.
struct Parts<'a> {
    key: &'a str,
    claims: &'a str,
    /// What the signature is of.
    signed: &'a str,
    signature: Signature,
}

impl<'a> Parts<'a> {
    fn of(token: &'a str) -> Option<Self> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (version, rest) = signed.split_once('.')?;
        let (key, claims) = rest.split_once('.')?;
        let key_is_one = key.len() == 16 && key.bytes().all(|b| b.is_ascii_hexdigit());
        let signature = Signature::from_slice(&URL_SAFE_NO_PAD.decode(signature).ok()?).ok()?;
        (version == VERSION && key_is_one).then_some(Self { key, claims, signed, signature })
    }

    fn claims(&self, public: &[u8; 32]) -> Option<Claims> {
        let public = VerifyingKey::from_bytes(public).ok()?;
        public.verify_strict(self.signed.as_bytes(), &self.signature).ok()?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(self.claims).ok()?).ok()
    }
}

/// Makes the signing key unless there is one, and remembers it: what a server does before its first request.
///
/// # Errors
/// Those of the ports; [`Error::Broken`] when the key does not open under this master key.
pub async fn prepare(ctx: &Context) -> Result<(), Error> {
    signer(ctx).await.map(drop)
}

/// Opens the signing key as it is stored, whatever is remembered of it. A read and an unwrap, neither repeated.
///
/// # Errors
/// Those of the ports; [`Error::Broken`] when there is no key, or it does not open under this master key.
pub(crate) async fn try_signer(ctx: &Context) -> Result<(), Error> {
    let missing = || Error::Broken("the signing key is missing".to_owned());
    let item = ctx.ledger.get(&ItemKeys::signer()).await?.ok_or_else(missing)?;
    let (record, wrapped) = Signer::decode_with(&item.value)?;
    ctx.keys.unwrap(&WrappedKey(wrapped.to_vec()), &context(&record.key)).await?;
    Ok(())
}

async fn signer(ctx: &Context) -> Result<(String, DataKey), Error> {
    let now = ctx.now();
    if let Some(signer) = ctx.memory.signer.get(&(), now, Duration::MAX) {
        return Ok(signer);
    }
    let signer = loop {
        if let Some(item) = store::get(ctx, &ItemKeys::signer()).await? {
            let (record, wrapped) = Signer::decode_with(&item.value)?;
            let seed = store::unwrap_key(ctx, &WrappedKey(wrapped.to_vec()), &context(&record.key)).await?;
            break (record.key, seed);
        }
        let mut id = [0; 8];
        ctx.ids.fill(&mut id);
        let key = hex::encode(id);
        let (seed, wrapped) = store::generate_key(ctx, &context(&key)).await?;
        let public = SigningKey::from_bytes(&seed.0).verifying_key();
        let writes = vec![
            put(
                ItemKeys::signer(),
                Expect::Absent,
                ctx.ids.revision(),
                Signer { key: key.clone(), created: now }.encode_with(&wrapped.0),
            ),
            put(
                ItemKeys::verifying_key(&key),
                Expect::Absent,
                ctx.ids.revision(),
                VerifyingKeyRecord { created: now }.encode_with(public.as_bytes()),
            ),
        ];
        // Refused: another process was first. The loop reads its key.
        if store::commit(ctx, writes).await?.is_ok() {
            break (key, seed);
        }
    };
    ctx.memory.signer.put((), now, signer.clone());
    Ok(signer)
}

/// Whether the signing key opens, and its public half is there and belongs to it.
pub(super) async fn check_signer(ctx: &Context) -> Result<(), Error> {
    let Some(item) = store::get(ctx, &ItemKeys::signer()).await? else {
        return Err(Error::Broken("there is none".to_owned()));
    };
    let (record, wrapped) = Signer::decode_with(&item.value)?;
    let seed = store::unwrap_key(ctx, &WrappedKey(wrapped.to_vec()), &context(&record.key)).await?;
    let Some(item) = store::get(ctx, &ItemKeys::verifying_key(&record.key)).await? else {
        return Err(Error::Broken("its public half is missing".to_owned()));
    };
    let (_, public) = VerifyingKeyRecord::decode_with(&item.value)?;
    if SigningKey::from_bytes(&seed.0).verifying_key().as_bytes().as_slice() != public.as_ref() {
        return Err(Error::Broken("its public half belongs to another key".to_owned()));
    }
    Ok(())
}

/// What a signing key is for.
pub(super) fn context(key: &str) -> KeyContext {
    KeyContext { name: "signer", value: key.to_owned() }
}

async fn verifying_key(ctx: &Context, key: &str) -> Result<Option<[u8; 32]>, Error> {
    let now = ctx.now();
    if let Some(public) = ctx.memory.verifying_keys.get(key, now, Duration::MAX) {
        return Ok(Some(public));
    }
    let Some(item) = store::get(ctx, &ItemKeys::verifying_key(key)).await? else { return Ok(None) };
    let (_, tail): (VerifyingKeyRecord, Bytes) = Record::decode_with(&item.value)?;
    let public: [u8; 32] = tail
        .as_ref()
        .try_into()
        .map_err(|_| Error::Broken(format!("the verifying key {key} is not 32 bytes")))?;
    ctx.memory.verifying_keys.put(key.to_owned(), now, public);
    Ok(Some(public))
}
