//! The ports: everything that Statewright asks of the outside world, in terms of items, blobs, keys and time.
//!
//! Ports are narrow on purpose. They know nothing of stacks or updates, so that no rule of the domain can hide in an
//! adapter. Each method's documentation is its contract, and [`contract`] holds the suites that every adapter passes.

mod blobs;
mod clock;
#[cfg(any(test, feature = "testing"))]
pub mod contract;
mod ids;
mod inventory;
mod keys;
mod ledger;

pub use blobs::{Blob, BlobKey, Blobs};
pub use clock::{Clock, Timestamp};
pub use ids::Ids;
pub use inventory::{Cursor, Inventory, Part};
pub use keys::{DataKey, KeyContext, Keys, KeysError, Wrap, WrappedKey};
pub use ledger::{
    CommitError, Expect, Item, ItemKey, Ledger, Order, Page, Query, Refusal, Revision, Write, WriteAction,
    verify_writes,
};

/// Why a port could not answer. The two cases differ in what the caller may do next.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// Nothing happened: repeating the call is safe.
    #[error("{what} was not done")]
    NotDone {
        /// What was asked, for the operator's log.
        what: &'static str,
        /// The adapter's own error.
        #[source]
        source: BoxError,
    },
    /// The effect may or may not have happened: reread before deciding.
    #[error("{what} may or may not have been done")]
    Unknown {
        /// What was asked, for the operator's log.
        what: &'static str,
        /// The adapter's own error.
        #[source]
        source: BoxError,
    },
}

/// Any error of an adapter's library.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;

impl PortError {
    /// A failure before anything was attempted, or one that is known to have changed nothing.
    pub fn not_done(what: &'static str, source: impl Into<BoxError>) -> Self {
        Self::NotDone { what, source: source.into() }
    }

    /// A failure after which the effect is not known.
    pub fn unknown(what: &'static str, source: impl Into<BoxError>) -> Self {
        Self::Unknown { what, source: source.into() }
    }
}
