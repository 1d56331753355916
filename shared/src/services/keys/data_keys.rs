//! Encrypts the secrets of a stack or an environment with its own data key.
//!
//! A ciphertext is `format: u8 = 1 | key number: u32, big endian | nonce: 12 bytes | AES-256-GCM of the
//! plaintext`. The associated data is the owner's id, so a ciphertext opens for its own stack only, even
//! after a rename.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use aes_gcm::aead::{Aead, AeadInPlace, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce, Tag};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::cache::DATA_KEY_REMEMBERED_FOR;
use crate::context::Context;
use crate::domain::ids::{KeyOwner, StackId};
use crate::layout::{Record, WrappedDataKey, check};
use crate::ports::{DataKey, Expect, Item, KeyContext, Order, WrappedKey};
use crate::services::error::InvalidInput;
use crate::services::store::retry::Attempts;
use crate::services::work;
use crate::services::work::SMALL_BYTES_MAX;
use crate::services::{Error, store};

const FORMAT: u8 = 1;
const HEADER_BYTES: usize = 5;
const NONCE_BYTES: usize = 12;
const TAG_BYTES: usize = 16;
const DIGEST_BYTES: usize = 16;

/// Encrypts values for their owner. Creates or unwraps at most one data key for all of them.
///
/// # Errors
/// Errors of the ports; [`Error::Broken`] if the owner's key does not open.
pub async fn encrypt(
    ctx: &Context,
    owner: impl Into<KeyOwner>,
    plaintexts: Vec<Vec<u8>>,
) -> Result<Vec<Vec<u8>>, Error> {
    let owner = owner.into();
    let (number, key) = newest_key(ctx, owner).await?;
    let cipher = cipher(&key);
    let bytes = plaintexts.iter().map(Vec::len).sum();
    let ids = Arc::clone(&ctx.ids);
    let aad = owner.id();
    // Each plaintext is dropped as soon as it is encrypted.
    let seal = move |plaintext: Vec<u8>| {
        let mut ciphertext = Vec::with_capacity(HEADER_BYTES + NONCE_BYTES + plaintext.len() + TAG_BYTES);
        ciphertext.push(FORMAT);
        ciphertext.extend_from_slice(&number.to_be_bytes());
        let mut nonce = [0; NONCE_BYTES];
        ids.fill(&mut nonce);
        ciphertext.extend_from_slice(&nonce);
        ciphertext.extend_from_slice(&plaintext);
        let (_, body) = ciphertext.split_at_mut(HEADER_BYTES + NONCE_BYTES);
        let tag = cipher
            .encrypt_in_place_detached(Nonce::from_slice(&nonce), aad.as_bytes(), body)
            .map_err(|_| Error::Invalid(InvalidInput::TooLongToEncrypt))?;
        ciphertext.extend_from_slice(&tag);
        Ok(ciphertext)
    };
    let seal_all = move || plaintexts.into_iter().map(seal).collect();
    if bytes <= SMALL_BYTES_MAX { seal_all() } else { work::on(bytes, seal_all).await }
}

/// Decrypts ciphertexts.
///
/// # Errors
/// [`Error::Invalid`] if this server did not encrypt one of them for this owner.
pub async fn decrypt(
    ctx: &Context,
    owner: impl Into<KeyOwner>,
    ciphertexts: Vec<Vec<u8>>,
) -> Result<Vec<Vec<u8>>, Error> {
    let owner = owner.into();
    let foreign = move || Error::Invalid(InvalidInput::ForeignCiphertext(owner));
    // Load all keys first: the rest needs only the processor, and runs as one piece of work.
    let mut ciphers: BTreeMap<u32, Aes256Gcm> = BTreeMap::new();
    for ciphertext in &ciphertexts {
        let number = Sealed::of(ciphertext).ok_or_else(foreign)?.number;
        if let Entry::Vacant(missing) = ciphers.entry(number) {
            let key = data_key(ctx, owner, number).await?.ok_or_else(foreign)?;
            missing.insert(cipher(&key));
        }
    }
    let aad = owner.id();
    let bytes = ciphertexts.iter().map(Vec::len).sum();
    let open = move |ciphertext: Vec<u8>| {
        let Sealed { number, nonce, body } = Sealed::of(&ciphertext).ok_or_else(foreign)?;
        let cipher = ciphers.get(&number).ok_or_else(foreign)?;
        let payload = Payload { msg: body, aad: aad.as_bytes() };
        cipher.decrypt(Nonce::from_slice(nonce), payload).map_err(|_| foreign())
    };
    let open_all = move || ciphertexts.into_iter().map(open).collect();
    if bytes <= SMALL_BYTES_MAX { open_all() } else { work::on(bytes, open_all).await }
}

/// The parts of a ciphertext.
struct Sealed<'a> {
    number: u32,
    nonce: &'a [u8; NONCE_BYTES],
    body: &'a [u8],
}

impl<'a> Sealed<'a> {
    fn of(ciphertext: &'a [u8]) -> Option<Self> {
        let (&[format, k0, k1, k2, k3], rest) = ciphertext.split_first_chunk::<HEADER_BYTES>()?;
        let (nonce, body) = rest.split_first_chunk::<NONCE_BYTES>()?;
        (format == FORMAT).then_some(Self { number: u32::from_be_bytes([k0, k1, k2, k3]), nonce, body })
    }
}

/// Encrypts a long text in place for its owner, in the same form.
///
/// # Errors
/// Errors of the ports; [`Error::Broken`] if the owner's key does not open.
pub(crate) async fn seal(ctx: &Context, owner: KeyOwner, text: Vec<u8>) -> Result<Vec<u8>, Error> {
    let (number, key) = newest_key(ctx, owner).await?;
    let mut nonce = [0; NONCE_BYTES];
    ctx.ids.fill(&mut nonce);
    work::on(text.len(), move || {
        // In the same memory: memory may have room for the text only once.
        let mut sealed = text;
        sealed.reserve_exact(HEADER_BYTES + NONCE_BYTES + TAG_BYTES);
        sealed.splice(0..0, [FORMAT].into_iter().chain(number.to_be_bytes()).chain(nonce));
        let (_, body) = sealed.split_at_mut(HEADER_BYTES + NONCE_BYTES);
        let tag = cipher(&key)
            .encrypt_in_place_detached(Nonce::from_slice(&nonce), owner.id().as_bytes(), body)
            .map_err(|_| Error::Invalid(InvalidInput::TooLongToEncrypt))?;
        sealed.extend_from_slice(&tag);
        Ok(sealed)
    })
    .await
}

/// Decrypts in place what [`seal`] returned.
///
/// # Errors
/// Errors of the ports; [`Error::Broken`] for anything else, since the text comes from this server's own
/// store.
pub(crate) async fn open(ctx: &Context, owner: KeyOwner, mut sealed: Vec<u8>) -> Result<Vec<u8>, Error> {
    let foreign = || Error::Broken(format!("a text of {owner} does not open with its key"));
    let (&[format, k0, k1, k2, k3], rest) = sealed.split_first_chunk::<HEADER_BYTES>().ok_or_else(foreign)?;
    let (&nonce, _) = rest.split_first_chunk::<NONCE_BYTES>().ok_or_else(foreign)?;
    let tag: [u8; TAG_BYTES] = rest.last_chunk().copied().ok_or_else(foreign)?;
    if format != FORMAT || rest.len() < NONCE_BYTES + TAG_BYTES {
        return Err(foreign());
    }
    let number = u32::from_be_bytes([k0, k1, k2, k3]);
    let key = data_key(ctx, owner, number).await?.ok_or_else(foreign)?;
    work::on(sealed.len(), move || {
        sealed.truncate(sealed.len() - TAG_BYTES);
        sealed.drain(..HEADER_BYTES + NONCE_BYTES);
        cipher(&key)
            .decrypt_in_place_detached(
                Nonce::from_slice(&nonce),
                owner.id().as_bytes(),
                &mut sealed,
                Tag::from_slice(&tag),
            )
            .map_err(|_| Error::Broken(format!("a text of {owner} does not open with its key")))?;
        Ok(sealed)
    })
    .await
}

/// The number of the data key that sealed these bytes; `None` for other bytes.
pub(crate) fn number_of(sealed: &[u8]) -> Option<u32> {
    Sealed::of(sealed).map(|sealed| sealed.number)
}

/// Loads a data key, so that what it sealed opens without a call while it is cached.
///
/// # Errors
/// Errors of the ports; [`Error::Broken`] if the owner's key does not open.
pub(crate) async fn load(ctx: &Context, owner: KeyOwner, number: u32) -> Result<(), Error> {
    data_key(ctx, owner, number).await.map(drop)
}

/// Makes digests of values with a key derived from the owner's data key. A digest alone does not let an
/// attacker test guesses of its value.
pub(crate) struct Digester(Hmac<Sha256>);

impl Digester {
    /// The digest of the value with this hash.
    pub(crate) fn digest(&self, hash: &[u8]) -> String {
        let mut mac = self.0.clone();
        mac.update(hash);
        let digest = mac.finalize().into_bytes();
        URL_SAFE_NO_PAD.encode(digest.get(..DIGEST_BYTES).unwrap_or_default())
    }
}

/// Returns the owner's digester. It always uses the first data key, so that digests stay comparable after a
/// rotation. Costs no call if the key is cached, as it is after [`seal`].
///
/// # Errors
/// Errors of the ports; [`Error::Broken`] if the owner's key does not open.
pub(crate) async fn digester(ctx: &Context, owner: KeyOwner) -> Result<Digester, Error> {
    let key = match data_key(ctx, owner, 1).await? {
        Some(key) => key,
        None => newest_key(ctx, owner).await?.1,
    };
    // Derive a separate key: the data key itself is for a cipher.
    let subkey = keyed(&key.0).chain_update(b"digests of values").finalize().into_bytes();
    Ok(Digester(keyed(&subkey)))
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("this takes keys of any length")
}

fn cipher(key: &DataKey) -> Aes256Gcm {
    Aes256Gcm::new(&key.0.into())
}

/// The context that the owner's data keys are bound to.
pub(crate) fn context(owner: KeyOwner) -> KeyContext {
    KeyContext { name: owner.kind(), value: owner.id() }
}

/// Creates a new data key for a stack, and returns its number. The server encrypts new secrets with it; the
/// older keys still decrypt theirs. Servers that cache an older key use it for some more minutes.
///
/// # Errors
/// Errors of the ports.
pub async fn renew_key(ctx: &Context, stack: StackId) -> Result<u32, Error> {
    match renew_newest_key(ctx, stack).await? {
        Some(number) => Ok(number),
        None => Ok(newest_key(ctx, stack.into()).await?.0),
    }
}

/// The same for any owner that has a data key; `None` for one that has none, as when it is erased meanwhile.
pub(super) async fn renew_newest_key(
    ctx: &Context,
    owner: impl Into<KeyOwner>,
) -> Result<Option<u32>, Error> {
    let owner = owner.into();
    let mut attempts = Attempts::at("a data key");
    loop {
        attempts.begin()?;
        let Some(newest) = newest_item(ctx, owner).await? else { return Ok(None) };
        let number =
            key_number(owner, &newest)?.checked_add(1).ok_or(InvalidInput::TooManyDataKeys(owner))?;
        let (_, wrapped) = store::generate_key(ctx, &context(owner)).await?;
        let record = WrappedDataKey { created: ctx.now() };
        let key = WrappedDataKey::key(owner, number);
        // An erased owner gets no key: nothing would delete it.
        let is_there = check(newest.key, Expect::Revision(newest.revision));
        let writes = vec![is_there, store::put_with(ctx, key, Expect::Absent, &record, &wrapped.0)];
        if store::commit(ctx, writes).await?.is_ok() {
            ctx.memory.newest_keys.forget(&owner);
            return Ok(Some(number));
        }
    }
}

/// Describes what is wrong with an owner's data keys.
pub(crate) async fn key_problems(ctx: &Context, owner: KeyOwner) -> Result<Vec<String>, Error> {
    let mut problems = Vec::new();
    for item in store::query_all(ctx, WrappedDataKey::of_owner(owner), usize::MAX).await? {
        let opened = async {
            key_number(owner, &item)?;
            let (_, wrapped) = WrappedDataKey::decode_with(&item.value)?;
            store::unwrap_key(ctx, &WrappedKey(wrapped.to_vec()), &context(owner)).await
        };
        match opened.await {
            Ok(_) => {}
            Err(error @ (Error::Port(_) | Error::MasterKey(_))) => return Err(error),
            Err(error) => problems.push(format!("its data key {}: {error}", item.key.sort)),
        }
    }
    Ok(problems)
}

async fn newest_item(ctx: &Context, owner: KeyOwner) -> Result<Option<Item>, Error> {
    let query = WrappedDataKey::of_owner(owner).query(None, Order::Descending, 1);
    Ok(store::query(ctx, &query).await?.items.into_iter().next())
}

fn key_number(owner: KeyOwner, item: &Item) -> Result<u32, Error> {
    item.key
        .sort
        .parse()
        .map_err(|_| Error::Broken(format!("the data key {:?} of {owner} has no number", item.key.sort)))
}

/// The key for new secrets, created for the first one. Two concurrent first callers get the same key: the put
/// requires that there is none, and the loser reads the winner's.
async fn newest_key(ctx: &Context, owner: KeyOwner) -> Result<(u32, DataKey), Error> {
    let now = ctx.now();
    if let Some(number) = ctx.memory.newest_keys.get(&owner, now, DATA_KEY_REMEMBERED_FOR)
        && let Some(key) = data_key(ctx, owner, number).await?
    {
        return Ok((number, key));
    }
    let mut attempts = Attempts::at("a data key");
    loop {
        attempts.begin()?;
        if let Some(item) = newest_item(ctx, owner).await? {
            let number = key_number(owner, &item)?;
            let key = open_key(ctx, owner, number, &item).await?;
            ctx.memory.newest_keys.put(owner, now, number);
            return Ok((number, key));
        }
        let (key, wrapped) = store::generate_key(ctx, &context(owner)).await?;
        let record = WrappedDataKey { created: now };
        let first = WrappedDataKey::key(owner, 1);
        let write = store::put_with(ctx, first, Expect::Absent, &record, &wrapped.0);
        if store::commit(ctx, vec![write]).await?.is_ok() {
            ctx.memory.data_keys.put((owner, 1), now, key.clone());
            ctx.memory.newest_keys.put(owner, now, 1);
            return Ok((1, key));
        }
    }
}

async fn data_key(ctx: &Context, owner: KeyOwner, number: u32) -> Result<Option<DataKey>, Error> {
    if let Some(key) = remembered(ctx, owner, number) {
        return Ok(Some(key));
    }
    let Some(item) = store::get(ctx, &WrappedDataKey::key(owner, number)).await? else { return Ok(None) };
    open_key(ctx, owner, number, &item).await.map(Some)
}

fn remembered(ctx: &Context, owner: KeyOwner, number: u32) -> Option<DataKey> {
    ctx.memory.data_keys.get(&(owner, number), ctx.now(), DATA_KEY_REMEMBERED_FOR)
}

/// Unwraps a data key that was read, unless it is cached: the master key is a paid call over a network.
async fn open_key(ctx: &Context, owner: KeyOwner, number: u32, item: &Item) -> Result<DataKey, Error> {
    if let Some(key) = remembered(ctx, owner, number) {
        return Ok(key);
    }
    let now = ctx.now();
    let (_, wrapped) = WrappedDataKey::decode_with(&item.value)?;
    let key = store::unwrap_key(ctx, &WrappedKey(wrapped.to_vec()), &context(owner)).await?;
    ctx.memory.data_keys.put((owner, number), now, key.clone());
    Ok(key)
}
