//! The holder of a state's lock, as the client describes itself.

use serde::{Deserialize, Serialize};

/// The lock info that a client sends. It is the client's claim and proves nothing; only the ID matters.
///
/// Source: opentofu v1.12.6, `internal/states/statemgr/locker.go`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockInfo {
    /// Opaque; the client makes one for each run. Never empty.
    pub id: String,
    /// Such as `OperationTypeApply`.
    pub operation: String,
    /// Empty with this backend, but for a lock taken by hand: there it is the reason.
    pub info: String,
    /// `user@host`.
    pub who: String,
    /// The client's version.
    pub version: String,
    /// When the lock was taken, by the client's clock.
    pub created: String,
    /// Always empty with this backend.
    pub path: String,
}

/// Why lock info is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLock {
    /// Without an ID, the lock could not be released.
    #[error("the lock has no ID: send one")]
    NoId,
    /// A member is too long.
    #[error("the lock's {what} of {bytes} bytes is too long: use at most {bytes_max} bytes")]
    TooLong {
        what: &'static str,
        bytes: usize,
        /// The longest accepted length.
        bytes_max: usize,
    },
}

/// The longest ID, in bytes. Clients send UUIDs.
const ID_BYTES_MAX: usize = 128;

/// The longest other member, in bytes.
const PART_BYTES_MAX: usize = 1024;

impl LockInfo {
    /// Checks lock info from a client.
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
