//! Data keys under a master key.

use std::fmt;

use async_trait::async_trait;
use zeroize::ZeroizeOnDrop;

use super::{BoxError, PortError};

/// A plain data key of 256 bits. It is wiped when dropped and never shown.
#[derive(Clone, ZeroizeOnDrop)]
pub struct DataKey(pub [u8; 32]);

impl fmt::Debug for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DataKey(..)")
    }
}

/// A data key under the master key, as it may be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrappedKey(pub Vec<u8>);

/// What a data key is for, for example `("stack", "<stack id>")`. A wrapped key opens under the same context only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyContext {
    /// The kind of owner.
    pub name: &'static str,
    /// The owner.
    pub value: String,
}

/// Why a key could not be made or opened.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// The wrapped key was made under another master key or another context, or it was altered.
    #[error("the wrapped key does not open under this master key and context")]
    Mismatch,
    /// The master key is there no more, is disabled, or is not ours to use. Asking again gives the same until somebody has put
    /// that right; the data keys open again then.
    #[error("the master key cannot be used")]
    Unusable(#[source] BoxError),
    /// The port failed.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Makes data keys and opens them again, each bound to a context.
#[async_trait]
pub trait Keys: Send + Sync + 'static {
    /// A new data key, plain and wrapped.
    async fn generate(&self, context: &KeyContext) -> Result<(DataKey, WrappedKey), KeysError>;

    /// Opens a wrapped key.
    ///
    /// # Errors
    /// [`KeysError::Mismatch`] unless it was generated under this master key with an equal context.
    async fn unwrap(&self, wrapped: &WrappedKey, context: &KeyContext) -> Result<DataKey, KeysError>;

    /// The same data key under the newest master key; `None` where it is so already.
    ///
    /// # Errors
    /// As [`Keys::unwrap`], where it has to be opened.
    async fn rewrap(
        &self,
        wrapped: &WrappedKey,
        context: &KeyContext,
    ) -> Result<Option<WrappedKey>, KeysError>;
}

/// Wraps data keys that another master key has opened: what moving to another store asks for. No server does, so a role
/// that serves has no right to it.
#[async_trait]
pub trait Wrap: Send + Sync + 'static {
    /// This data key under the newest master key. It opens as one that [`Keys::generate`] has made with an equal context.
    async fn wrap(&self, key: &DataKey, context: &KeyContext) -> Result<WrappedKey, KeysError>;
}
