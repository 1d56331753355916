//! Data keys under a KMS key.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use aws_sdk_kms::Client;
use aws_sdk_kms::config::http::HttpResponse;
use aws_sdk_kms::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_kms::operation::decrypt::DecryptError;
use aws_sdk_kms::primitives::Blob;
use aws_sdk_kms::types::DataKeySpec;
use zeroize::Zeroizing;

use super::Clients;
use super::failure::{Described, Retries, is_turned_away, of_read};
use crate::ports::{Clock, DataKey, Ids, KeyContext, Keys, KeysError, PortError, Wrap, WrappedKey};

const GENERATING: &str = "making a data key";
const UNWRAPPING: &str = "opening a data key";
const WRAPPING: &str = "wrapping a data key";

/// The largest ciphertext that KMS decrypts, in bytes. Source: `Decrypt` in the KMS API reference.
const CIPHERTEXT_BYTES_MAX: usize = 6144;

/// Data keys that KMS generates and decrypts under one of its keys. The encryption context is bound to the
/// wrapped key and appears in CloudTrail, and a role's policy can require it. Clones share the client.
///
/// A key that is disabled, missing or not accessible is unusable, not a mismatch: once that is fixed, the data
/// keys open again.
#[derive(Clone)]
pub struct KmsKeys {
    client: Client,
    key: String,
    retries: Retries,
}

impl fmt::Debug for KmsKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KmsKeys").field("key", &self.key).finish_non_exhaustive()
    }
}

impl KmsKeys {
    /// Data keys under this master key: see [`super::Names::key`]. `clock` waits before a retry, and `ids`
    /// gives the random length of the wait.
    pub fn new(clients: &Clients, key: String, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Self {
        Self { client: clients.kms(), key, retries: Retries::new(clients, clock, ids) }
    }
}

#[async_trait]
impl Keys for KmsKeys {
    async fn generate(&self, context: &KeyContext) -> Result<(DataKey, WrappedKey), KeysError> {
        let generate = self
            .client
            .generate_data_key()
            .key_id(&self.key)
            .key_spec(DataKeySpec::Aes256)
            .encryption_context(context.name, &context.value);
        let answer = self.retries.call(|| generate.clone().send(), is_turned_away).await;
        let answer = answer.map_err(|error| failure(GENERATING, error))?;
        let wrapped = answer.ciphertext_blob.map(Blob::into_inner).filter(|wrapped| !wrapped.is_empty());
        let wrapped =
            wrapped.ok_or_else(|| PortError::not_done(GENERATING, "KMS answered without the wrapped key"))?;
        Ok((data_key(answer.plaintext, GENERATING)?, WrappedKey(wrapped)))
    }

    async fn unwrap(&self, wrapped: &WrappedKey, context: &KeyContext) -> Result<DataKey, KeysError> {
        // KMS rejects this length with the same code as a malformed call.
        if wrapped.0.is_empty() || wrapped.0.len() > CIPHERTEXT_BYTES_MAX {
            return Err(KeysError::Mismatch);
        }
        let decrypt = self
            .client
            .decrypt()
            // Name the key instead of trusting the wrapped key, which might name another key that this role may
            // use.
            .key_id(&self.key)
            .ciphertext_blob(Blob::new(wrapped.0.clone()))
            .encryption_context(context.name, &context.value);
        match self.retries.call(|| decrypt.clone().send(), is_turned_away).await {
            Ok(answer) => Ok(data_key(answer.plaintext, UNWRAPPING)?),
            Err(error) => match error.as_service_error() {
                Some(
                    DecryptError::InvalidCiphertextException(_) | DecryptError::IncorrectKeyException(_),
                ) => Err(KeysError::Mismatch),
                _ => Err(failure(UNWRAPPING, error)),
            },
        }
    }

    /// KMS rotates key material by itself, and opens what the old material wrapped. So no data key is under an
    /// older one.
    async fn rewrap(
        &self,
        wrapped: &WrappedKey,
        context: &KeyContext,
    ) -> Result<Option<WrappedKey>, KeysError> {
        self.unwrap(wrapped, context).await.map(|_| None)
    }
}

/// Needs the right to encrypt under the key, which nothing else needs.
#[async_trait]
impl Wrap for KmsKeys {
    async fn wrap(&self, key: &DataKey, context: &KeyContext) -> Result<WrappedKey, KeysError> {
        let encrypt = self
            .client
            .encrypt()
            .key_id(&self.key)
            .plaintext(Blob::new(key.0.to_vec()))
            .encryption_context(context.name, &context.value);
        let answer = self.retries.call(|| encrypt.clone().send(), is_turned_away).await;
        let answer = answer.map_err(|error| failure(WRAPPING, error))?;
        let wrapped = answer.ciphertext_blob.map(Blob::into_inner).filter(|wrapped| !wrapped.is_empty());
        let wrapped =
            wrapped.ok_or_else(|| PortError::not_done(WRAPPING, "KMS answered without the wrapped key"))?;
        Ok(WrappedKey(wrapped))
    }
}

/// The codes with which KMS says that the master key itself is the problem.
///
/// Source: the error lists of `GenerateDataKey`, `Decrypt` and `Encrypt` in the KMS API reference.
const UNUSABLE: &[&str] = &[
    "AccessDeniedException",
    "DisabledException",
    "InvalidKeyUsageException",
    "KMSInvalidStateException",
    "NotFoundException",
];

fn failure<E>(what: &'static str, error: SdkError<E, HttpResponse>) -> KeysError
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    match error.as_service_error().and_then(ProvideErrorMetadata::code) {
        Some(code) if UNUSABLE.contains(&code) => KeysError::Unusable(Described(error).into()),
        _ => of_read(what, error).into(),
    }
}

fn data_key(plaintext: Option<Blob>, what: &'static str) -> Result<DataKey, PortError> {
    let plain = Zeroizing::new(plaintext.map(Blob::into_inner).unwrap_or_default());
    let bytes = plain.as_slice().try_into();
    bytes.map(DataKey).map_err(|_| PortError::not_done(what, "KMS answered with a key of another length"))
}
