//! Update tokens, which are signed but not stored. A token names its update and its expiry, so that until then a request
//! needs no read to authenticate; the log's seal is what fences a client out.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};

use crate::cache::REMEMBERED_FOR;
use crate::context::Context;
use crate::domain::claims::{Bearer, Claims};
use crate::domain::ids::UpdateId;
use crate::domain::names::StackAddress;
use crate::domain::update::{LEASE, Update};
use crate::layout::{Record, Signer, VerifyingKeyRecord, delete};
use crate::ports::{DataKey, Expect, KeyContext, Timestamp, WrappedKey, Write};
use crate::services::Error;
use crate::services::error::Fenced;
use crate::services::store;
use crate::services::store::retry::Attempts;
use crate::services::store::sha256_hex;

const VERSION: &str = "swu1";

/// The maximum time after a rotation in which a process may still sign with the previous key: as long as it caches it.
const OLD_SIGNS_FOR: Duration = REMEMBERED_FOR;

/// The time after a rotation in which the previous key verifies tokens: until the last token that it signed expires.
const OLD_VERIFIES_FOR: Duration = OLD_SIGNS_FOR.saturating_add(LEASE);

/// Issues a token for one update and bearer, with the secret that renews it.
///
/// # Errors
/// Those of the ports; the signing key is read once and cached.
pub async fn issue(
    ctx: &Context,
    id: UpdateId,
    update: &Update,
    address: &StackAddress,
    expires: Timestamp,
    bearer: Option<Bearer>,
    renewal: Option<String>,
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
        renewal,
        is_of_former_key: false,
    };
    let claims = serde_json::to_vec(&claims).expect("claims hold only what JSON can express");
    let signed = format!("{VERSION}.{key}.{}", URL_SAFE_NO_PAD.encode(claims));
    let signature = SigningKey::from_bytes(&seed.0).sign(signed.as_bytes());
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.to_bytes())))
}

/// The claims of a token that this server signed. [`check`] decides whether it belongs to the addressed update.
///
/// # Errors
/// `UpdateError::Fenced` for any other token: the client then stops, without a retry.
pub async fn verify(ctx: &Context, token: &str, update: &str) -> Result<Claims, Error> {
    let refused = || Error::from(Fenced::TokenNotValid);
    // Verifying a signature takes a considerable part of an append's time, so the claims are cached.
    let id = UpdateId::parse(update).ok_or_else(refused)?;
    if let Some((shown, claims)) = ctx.memory.claims.get(&id, ctx.now(), REMEMBERED_FOR)
        && shown == token
    {
        return Ok(claims);
    }
    let claims = read(ctx, token).await?.ok_or_else(refused)?;
    if claims.update == id {
        ctx.memory.claims.put(id, ctx.now(), (token.to_owned(), claims.clone()));
    }
    Ok(claims)
}

/// Refuses a token that is not for exactly this update of this stack.
///
/// # Errors
/// `UpdateError::Fenced`.
pub fn check(claims: &Claims, address: &StackAddress, update: &str) -> Result<(), Error> {
    let is_it =
        claims.update.to_string() == update && claims.address == sha256_hex(address.to_string().as_bytes());
    if is_it { Ok(()) } else { Err(Fenced::TokenNotValid.into()) }
}

/// The claims of a token, if one of this server's keys signed it.
async fn read(ctx: &Context, token: &str) -> Result<Option<Claims>, Error> {
    let Some(parts) = Parts::of(token) else { return Ok(None) };
    let Some((public, replaced)) = verifying_key(ctx, parts.key).await? else { return Ok(None) };
    let Some(mut claims) = parts.claims(&public) else { return Ok(None) };
    let Some(replaced) = replaced else { return Ok(Some(claims)) };
    claims.is_of_former_key = true;
    // Somebody may have a copy of the former key and sign with it. Such a token is good only for an update that was running
    // at the rotation, not for a later one.
    let began = store::read(ctx, &Update::key(claims.update)).await?;
    let ran = began.is_some_and(|update| update.value.created <= replaced.plus(OLD_SIGNS_FOR));
    Ok((ran && ctx.now() <= replaced.plus(OLD_VERIFIES_FOR)).then_some(claims))
}

/// A parsed token, not yet verified.
struct Parts<'a> {
    key: &'a str,
    claims: &'a str,
    /// The bytes that the signature covers.
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

/// What a signature of a day of an audit trail covers before its text, so that no such text is a token.
pub(crate) const AUDIT_PREFIX: &str = "swa1.";

/// A signature by the current signing key.
pub(crate) struct Signed {
    /// The ID of the key.
    pub(crate) key: String,
    pub(crate) public: [u8; 32],
    pub(crate) signature: [u8; 64],
}

/// Signs the statement about a day of an audit trail.
pub(crate) async fn sign_audit(ctx: &Context, statement: &str) -> Result<Signed, Error> {
    let (key, seed) = signer(ctx).await?;
    let signing = SigningKey::from_bytes(&seed.0);
    let signature = signing.sign(format!("{AUDIT_PREFIX}{statement}").as_bytes()).to_bytes();
    Ok(Signed { key, public: signing.verifying_key().to_bytes(), signature })
}

/// Whether the key with this public half signed the statement.
pub(crate) fn is_signed(statement: &str, public: &[u8], signature: &[u8]) -> bool {
    let public = public.try_into().ok().and_then(|public| VerifyingKey::from_bytes(public).ok());
    let signature = Signature::from_slice(signature).ok();
    public.zip(signature).is_some_and(|(public, signature)| {
        public.verify_strict(format!("{AUDIT_PREFIX}{statement}").as_bytes(), &signature).is_ok()
    })
}

/// The public half of the current signing key, computed from its secret half; after it, those of the keys that a
/// rotation replaced.
pub(crate) async fn signing_keys(ctx: &Context) -> Result<Vec<[u8; 32]>, Error> {
    let (_, seed) = signer(ctx).await?;
    let mut keys = vec![SigningKey::from_bytes(&seed.0).verifying_key().to_bytes()];
    for item in store::query_all(ctx, VerifyingKeyRecord::all(), OLD_KEYS_MAX).await? {
        let (record, public) = VerifyingKeyRecord::decode_with(&item.value)?;
        if record.replaced.is_some() {
            keys.extend(<[u8; 32]>::try_from(public.as_ref()).ok());
        }
    }
    Ok(keys)
}

/// Creates the signing key unless it exists, and caches it. A server does this before its first request.
///
/// # Errors
/// Those of the ports; [`Error::Broken`] when this master key does not decrypt the signing key.
pub async fn prepare(ctx: &Context) -> Result<(), Error> {
    signer(ctx).await.map(drop)
}

/// Decrypts the stored signing key, without using the cache. Takes a read and an unwrap, without retries.
///
/// # Errors
/// Those of the ports; [`Error::Broken`] when the key is missing, or this master key does not decrypt it.
pub(crate) async fn try_signer(ctx: &Context) -> Result<(), Error> {
    let missing = || Error::Broken("the signing key is missing".to_owned());
    let item = ctx.ledger.get(&Signer::key()).await?.ok_or_else(missing)?;
    let (record, wrapped) = Signer::decode_with(&item.value)?;
    ctx.keys.unwrap(&WrappedKey(wrapped.to_vec()), &context(&record.key)).await?;
    Ok(())
}

async fn signer(ctx: &Context) -> Result<(String, DataKey), Error> {
    let now = ctx.now();
    let remembered = ctx.memory.signer.get(&(), now, Duration::MAX);
    if ctx.memory.signer.get(&(), now, REMEMBERED_FOR).is_some()
        && let Some(signer) = remembered
    {
        return Ok(signer);
    }
    let signer = loop {
        if let Some(item) = store::get(ctx, &Signer::key()).await? {
            let (record, wrapped) = Signer::decode_with(&item.value)?;
            if let Some((key, seed)) = &remembered
                && *key == record.key
            {
                break (record.key, seed.clone());
            }
            let seed = store::unwrap_key(ctx, &WrappedKey(wrapped.to_vec()), &context(&record.key)).await?;
            break (record.key, seed);
        }
        let New { key, seed, writes } = new_signer(ctx, Expect::Absent).await?;
        // Refused: another process was first. The loop reads its key.
        if store::commit(ctx, writes).await?.is_ok() {
            break (key, seed);
        }
    };
    ctx.memory.signer.put((), now, signer.clone());
    Ok(signer)
}

/// A signing key that is not yet stored.
struct New {
    key: String,
    seed: DataKey,
    writes: Vec<Write>,
}

async fn new_signer(ctx: &Context, expect: Expect) -> Result<New, Error> {
    let created = ctx.now();
    let mut id = [0; 8];
    ctx.ids.fill(&mut id);
    let key = hex::encode(id);
    let (seed, wrapped) = store::generate_key(ctx, &context(&key)).await?;
    let public = SigningKey::from_bytes(&seed.0).verifying_key();
    let signer = Signer { key: key.clone(), created };
    let verifying = VerifyingKeyRecord { created, replaced: None };
    let verifying_key = VerifyingKeyRecord::key(&key);
    let writes = vec![
        store::put_with(ctx, Signer::key(), expect, &signer, &wrapped.0),
        store::put_with(ctx, verifying_key, Expect::Absent, &verifying, public.as_bytes()),
    ];
    Ok(New { key, seed, writes })
}

/// Creates a new signing key. The previous key verifies tokens of the updates that run now until they end, and the first
/// rotation after that deletes it. Running processes pick up the new key within a minute.
///
/// # Errors
/// Those of the ports.
pub async fn renew_signer(ctx: &Context) -> Result<(), Error> {
    let mut attempts = Attempts::at("the signing key");
    loop {
        attempts.begin()?;
        let Some(item) = store::get(ctx, &Signer::key()).await? else { return prepare(ctx).await };
        let current = VerifyingKeyRecord::key(&Signer::decode(&item.value)?.key);
        let New { mut writes, .. } = new_signer(ctx, Expect::Revision(item.revision)).await?;
        if let Some(item) = store::get(ctx, &current).await? {
            let (record, public) = VerifyingKeyRecord::decode_with(&item.value)?;
            let record = VerifyingKeyRecord { replaced: Some(ctx.now()), ..record };
            let expect = Expect::Revision(item.revision);
            writes.push(store::put_with(ctx, current, expect, &record, &public));
        }
        for item in store::query_all(ctx, VerifyingKeyRecord::all(), OLD_KEYS_MAX).await? {
            let replaced = VerifyingKeyRecord::decode(&item.value)?.replaced;
            if replaced.is_some_and(|at| at.plus(OLD_VERIFIES_FOR) < ctx.now()) {
                writes.push(delete(item.key, Expect::Revision(item.revision)));
            }
        }
        if store::commit(ctx, writes).await?.is_ok() {
            ctx.memory.signer.forget(&());
            return Ok(());
        }
    }
}

/// The maximum number of old keys that one rotation reads: as many as a commit may delete.
const OLD_KEYS_MAX: usize = 50;

/// Checks that the signing key can be decrypted, and that its public half exists and matches.
pub(crate) async fn check_signer(ctx: &Context) -> Result<(), Error> {
    let Some(item) = store::get(ctx, &Signer::key()).await? else {
        return Err(Error::Broken("there is none".to_owned()));
    };
    let (record, wrapped) = Signer::decode_with(&item.value)?;
    let seed = store::unwrap_key(ctx, &WrappedKey(wrapped.to_vec()), &context(&record.key)).await?;
    let Some(item) = store::get(ctx, &VerifyingKeyRecord::key(&record.key)).await? else {
        return Err(Error::Broken("its public half is missing".to_owned()));
    };
    let (_, public) = VerifyingKeyRecord::decode_with(&item.value)?;
    if SigningKey::from_bytes(&seed.0).verifying_key().as_bytes().as_slice() != public.as_ref() {
        return Err(Error::Broken("its public half belongs to another key".to_owned()));
    }
    Ok(())
}

/// The key context, which binds a wrapped signing key to its purpose.
pub(crate) fn context(key: &str) -> KeyContext {
    KeyContext { name: "signer", value: key.to_owned() }
}

async fn verifying_key(ctx: &Context, key: &str) -> Result<Option<([u8; 32], Option<Timestamp>)>, Error> {
    let now = ctx.now();
    if let Some(known) = ctx.memory.verifying_keys.get(key, now, REMEMBERED_FOR) {
        return Ok(Some(known));
    }
    let Some(item) = store::get(ctx, &VerifyingKeyRecord::key(key)).await? else { return Ok(None) };
    let (record, tail): (VerifyingKeyRecord, Bytes) = Record::decode_with(&item.value)?;
    let public: [u8; 32] = tail
        .as_ref()
        .try_into()
        .map_err(|_| Error::Broken(format!("the verifying key {key} is not 32 bytes")))?;
    ctx.memory.verifying_keys.put(key.to_owned(), now, (public, record.replaced));
    Ok(Some((public, record.replaced)))
}
