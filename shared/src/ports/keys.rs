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
    /// The owner's id.
    pub value: String,
}

/// Why a key could not be made or opened.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// The wrapped key was made under another master key or another context, or it was altered.
    #[error("the wrapped key does not open under this master key and context")]
    Mismatch,
    /// The master key is missing, disabled, or not accessible. Retrying does not help until an operator
    /// has fixed that; the data keys open again then.
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

    /// The same data key under the newest master key; `None` if that wraps it already.
    ///
    /// # Errors
    /// As [`Keys::unwrap`], if the key has to be opened.
    async fn rewrap(
        &self,
        wrapped: &WrappedKey,
        context: &KeyContext,
    ) -> Result<Option<WrappedKey>, KeysError>;
}

/// Wraps data keys that another master key has opened, to move them to another store. No server does
/// so, and the role of a server does not allow it.
#[async_trait]
pub trait Wrap: Send + Sync + 'static {
    /// Wraps this data key under the newest master key. It opens like a key that [`Keys::generate`] has
    /// made with an equal context.
    async fn wrap(&self, key: &DataKey, context: &KeyContext) -> Result<WrappedKey, KeysError>;
}
