//! Who holds the lock of a state, in the words of the client that took it.

use serde::{Deserialize, Serialize};

/// What a client says of itself when it locks a state. It is the client's claim, and proves nothing; only the ID matters.
///
/// Source: opentofu v1.12.6, `internal/states/statemgr/locker.go`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockInfo {
    /// Made by the client for each run, opaque; never empty.
    pub id: String,
    /// Such as `OperationTypeApply`.
    pub operation: String,
    /// Empty with this backend; the reason of a lock that was taken by hand.
    pub info: String,
    /// `user@host`.
    pub who: String,
    /// The client's version.
    pub version: String,
    /// When, by the client's clock.
    pub created: String,
    /// Empty with this backend.
    pub path: String,
}

/// A lock that cannot be taken or given back so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLock {
    /// Without an ID nobody could give it back.
    #[error("the lock has no ID")]
    NoId,
    /// A part is longer than is taken.
    #[error("the lock's {what} of {bytes} bytes is over the limit of {bytes_max} bytes")]
    TooLong {
        /// Which part.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The longest that is taken.
        bytes_max: usize,
    },
}

/// The longest ID, in bytes. Clients send UUIDs.
const ID_BYTES_MAX: usize = 128;

/// The longest of the other parts, in bytes.
const PART_BYTES_MAX: usize = 1024;

impl LockInfo {
    /// Checks what a client sent.
    ///
    /// # Errors
    /// [`InvalidLock`].
    pub fn check(&self) -> Result<(), InvalidLock> {
        if self.id.is_empty() {
            return Err(InvalidLock::NoId);
        }
        let parts = [
            ("ID", &self.id, ID_BYTES_MAX),
            ("operation", &self.operation, PART_BYTES_MAX),
            ("info", &self.info, PART_BYTES_MAX),
            ("owner", &self.who, PART_BYTES_MAX),
            ("version", &self.version, PART_BYTES_MAX),
            ("time", &self.created, PART_BYTES_MAX),
            ("path", &self.path, PART_BYTES_MAX),
        ];
        match parts.into_iter().find(|(_, part, bytes_max)| part.len() > *bytes_max) {
            Some((what, part, bytes_max)) => Err(InvalidLock::TooLong { what, bytes: part.len(), bytes_max }),
            None => Ok(()),
        }
    }
}
