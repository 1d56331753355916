//! Encrypts what sign-ins need: the client secrets of providers, and the cookie of a sign-in that has begun.
//!
//! A ciphertext is `format: u8 = 1 | nonce: 12 bytes | AES-256-GCM of the plaintext`. The associated data is the
//! purpose, so a ciphertext opens for its own purpose only.

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};

use crate::cache::DATA_KEY_REMEMBERED_FOR;
use crate::context::Context;
use crate::layout::{Record, SignInKey};
use crate::ports::{DataKey, Expect, KeyContext, WrappedKey};
use crate::services::store::retry::Attempts;
use crate::services::{Error, store};

const FORMAT: u8 = 1;
const NONCE_BYTES: usize = 12;

/// The key context, which binds the wrapped key to its purpose.
pub(crate) fn context() -> KeyContext {
    KeyContext { name: "sign-in", value: "key".to_owned() }
}

/// Encrypts bytes for a purpose.
pub(super) async fn seal(ctx: &Context, purpose: &str, plaintext: &[u8]) -> Result<Vec<u8>, Error> {
    let key = key(ctx).await?;
    let mut nonce = [0; NONCE_BYTES];
    ctx.ids.fill(&mut nonce);
    let payload = Payload { msg: plaintext, aad: purpose.as_bytes() };
    let sealed = cipher(&key)
        .encrypt(Nonce::from_slice(&nonce), payload)
        .map_err(|_| Error::Broken("a text for a sign-in cannot be encrypted".to_owned()))?;
    Ok([&[FORMAT], nonce.as_slice(), &sealed].concat())
}

/// Decrypts bytes; `None` if this store's key did not encrypt them for this purpose.
pub(super) async fn open(ctx: &Context, purpose: &str, sealed: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    let Some((&FORMAT, rest)) = sealed.split_first() else { return Ok(None) };
    let Some((nonce, ciphertext)) = rest.split_at_checked(NONCE_BYTES) else { return Ok(None) };
    let key = key(ctx).await?;
    let payload = Payload { msg: ciphertext, aad: purpose.as_bytes() };
    Ok(cipher(&key).decrypt(Nonce::from_slice(nonce), payload).ok())
}

fn cipher(key: &DataKey) -> Aes256Gcm {
    Aes256Gcm::new(&key.0.into())
}

/// The key of this store, created when it is first needed. Two concurrent first callers get the same one.
async fn key(ctx: &Context) -> Result<DataKey, Error> {
    let now = ctx.now();
    if let Some(key) = ctx.memory.sign_in_key.get(&(), now, DATA_KEY_REMEMBERED_FOR) {
        return Ok(key);
    }
    let mut attempts = Attempts::at("the sign-in key");
    let key = loop {
        attempts.begin()?;
        if let Some(item) = store::get(ctx, &SignInKey::key()).await? {
            let (_, wrapped) = SignInKey::decode_with(&item.value)?;
            break store::unwrap_key(ctx, &WrappedKey(wrapped.to_vec()), &context()).await?;
        }
        let (key, wrapped) = store::generate_key(ctx, &context()).await?;
        let record = SignInKey { created: now };
        let write = store::put_with(ctx, SignInKey::key(), Expect::Absent, &record, &wrapped.0);
        if store::commit(ctx, vec![write]).await?.is_ok() {
            break key;
        }
    };
    ctx.memory.sign_in_key.put((), now, key.clone());
    Ok(key)
}
