//! Wraps data keys under a master key in memory.

use aes_gcm::aead::{Aead, Payload};
use aes_gcm::{Aes256Gcm, Key, KeyInit, Nonce};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::ports::{BoxError, DataKey, Ids, KeyContext, KeysError, PortError, WrappedKey};

/// The only format so far: this byte, the master key's id, the nonce, the sealed data key with its tag.
const FORMAT: u8 = 1;
const ID_BYTES: usize = 8;
const NONCE_BYTES: usize = 12;
const HEADER_BYTES: usize = 1 + ID_BYTES;

/// A master key that wraps and unwraps.
struct MasterKey {
    /// Identifies a master key without revealing any of its bytes.
    id: [u8; ID_BYTES],
    cipher: Aes256Gcm,
}

impl MasterKey {
    fn new(bytes: &[u8; 32]) -> Self {
        let digest = Sha256::new_with_prefix(b"statewright master key id").chain_update(bytes).finalize();
        let mut id = [0; ID_BYTES];
        id.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
        Self { id, cipher: Aes256Gcm::new(Key::<Aes256Gcm>::from_slice(bytes)) }
    }

    fn wrap(&self, data_key: &DataKey, ids: &dyn Ids, context: &KeyContext) -> Result<WrappedKey, KeysError> {
        let mut nonce = [0; NONCE_BYTES];
        ids.fill(&mut nonce);

        let mut wrapped = Vec::with_capacity(HEADER_BYTES + NONCE_BYTES + 32 + 16);
        wrapped.push(FORMAT);
        wrapped.extend_from_slice(&self.id);
        let bound = bound_data(&wrapped, context);
        let sealed = self
            .cipher
            .encrypt(Nonce::from_slice(&nonce), Payload { msg: &data_key.0, aad: &bound })
            .map_err(|_| PortError::not_done("wrapping a data key", BoxError::from("the cipher refused")))?;
        wrapped.extend_from_slice(&nonce);
        wrapped.extend_from_slice(&sealed);
        Ok(WrappedKey(wrapped))
    }

    /// Whether a wrapped key's header names this master key.
    fn has_wrapped(&self, wrapped: &WrappedKey) -> bool {
        wrapped.0.get(1..HEADER_BYTES) == Some(self.id.as_slice())
    }

    /// Opens a wrapped key.
    fn unwrap(&self, wrapped: &WrappedKey, context: &KeyContext) -> Result<DataKey, KeysError> {
        let (header, rest) = wrapped.0.split_at_checked(HEADER_BYTES).ok_or(KeysError::Mismatch)?;
        let (nonce, sealed) = rest.split_at_checked(NONCE_BYTES).ok_or(KeysError::Mismatch)?;
        // The cipher also binds the header. The check here keeps the formats apart.
        if header.split_first() != Some((&FORMAT, self.id.as_slice())) {
            return Err(KeysError::Mismatch);
        }
        let plain = self
            .cipher
            .decrypt(Nonce::from_slice(nonce), Payload { msg: sealed, aad: &bound_data(header, context) })
            .map(Zeroizing::new)
            .map_err(|_| KeysError::Mismatch)?;
        plain.as_slice().try_into().map(DataKey).map_err(|_| KeysError::Mismatch)
    }
}

/// All master keys, the newest first: the newest wraps, all of them open.
pub(crate) struct KeyRing(Vec<MasterKey>);

impl KeyRing {
    /// A ring of these keys, the newest first.
    pub(crate) fn new<'a>(keys: impl IntoIterator<Item = &'a [u8; 32]>) -> Self {
        Self(keys.into_iter().map(MasterKey::new).collect())
    }

    fn newest(&self) -> Result<&MasterKey, KeysError> {
        self.0.first().ok_or(KeysError::Mismatch)
    }

    /// Whether the ring has the master key of a wrapped key.
    #[cfg(feature = "embedded")]
    pub(crate) fn knows(&self, wrapped: &WrappedKey) -> bool {
        self.0.iter().any(|key| key.has_wrapped(wrapped))
    }

    /// A new data key, plain and wrapped.
    pub(crate) fn generate(
        &self,
        ids: &dyn Ids,
        context: &KeyContext,
    ) -> Result<(DataKey, WrappedKey), KeysError> {
        let mut data_key = DataKey([0; 32]);
        ids.fill(&mut data_key.0);
        let wrapped = self.newest()?.wrap(&data_key, ids, context)?;
        Ok((data_key, wrapped))
    }

    /// Wraps this data key.
    pub(crate) fn wrap(
        &self,
        key: &DataKey,
        ids: &dyn Ids,
        context: &KeyContext,
    ) -> Result<WrappedKey, KeysError> {
        self.newest()?.wrap(key, ids, context)
    }

    /// Opens a wrapped key.
    pub(crate) fn unwrap(&self, wrapped: &WrappedKey, context: &KeyContext) -> Result<DataKey, KeysError> {
        let key = self.0.iter().find(|key| key.has_wrapped(wrapped)).ok_or(KeysError::Mismatch)?;
        key.unwrap(wrapped, context)
    }

    /// The same data key under the newest master key; `None` if that wraps it already.
    pub(crate) fn rewrap(
        &self,
        wrapped: &WrappedKey,
        ids: &dyn Ids,
        context: &KeyContext,
    ) -> Result<Option<WrappedKey>, KeysError> {
        let data_key = self.unwrap(wrapped, context)?;
        let newest = self.newest()?;
        if newest.has_wrapped(wrapped) { Ok(None) } else { newest.wrap(&data_key, ids, context).map(Some) }
    }
}

/// The associated data of a wrapped key: its header and its context. The name's length comes before the
/// name, so that no two contexts give the same bytes.
fn bound_data(header: &[u8], context: &KeyContext) -> Vec<u8> {
    let mut bound = header.to_vec();
    bound.extend_from_slice(&(context.name.len() as u64).to_be_bytes());
    bound.extend_from_slice(context.name.as_bytes());
    bound.extend_from_slice(context.value.as_bytes());
    bound
}
