//! The ports: everything that Statewright asks of the outside world, in terms of items, blobs, keys, requests and time.
//!
//! Ports are narrow on purpose. They know nothing of stacks or updates, so that no rule of the domain
//! can hide in an adapter. Each method's documentation is its contract, and [`contract`] holds the
//! suites that every adapter passes.

#![expect(missing_docs, reason = "unpublished: a doc comment is for what the name does not say")]

mod blobs;
mod clock;
#[cfg(any(test, feature = "testing"))]
pub mod contract;
mod ids;
mod inventory;
mod keys;
mod ledger;
mod web;

pub use blobs::{Blob, BlobKey, Blobs, SignedUrl};
pub use clock::{Clock, Timestamp};
pub use ids::Ids;
pub use inventory::{Cursor, Inventory, Part};
pub use keys::{DataKey, KeyContext, Keys, KeysError, Wrap, WrappedKey};
pub use ledger::{
    CommitError, Expect, ITEM_BYTES_MAX, Item, ItemKey, Ledger, Order, Page, Query, Refusal, Revision, Write,
    WriteAction, verify_writes,
};
pub use web::{WEB_ANSWER_BYTES_MAX, WEB_TIME_MAX, Web, WebAnswer, WebError, WebRequest};

/// Why a port failed. The two cases differ in what the caller may do next.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// Nothing happened: repeating the call is safe.
    #[error("{what} was not done")]
    NotDone {
        /// The call, for the operator's log.
        what: &'static str,
        /// The adapter's own error.
        #[source]
        source: BoxError,
    },
    /// The effect may or may not have happened: reread before deciding.
    #[error("{what} may or may not have been done")]
    Unknown {
        /// The call, for the operator's log.
        what: &'static str,
        /// The adapter's own error.
        #[source]
        source: BoxError,
    },
}

/// The store is full. This is the source of a [`PortError`], and the text says what helps.
#[derive(Debug, thiserror::Error)]
#[error("the store has no room left")]
pub struct NoRoom(#[source] BoxError);

impl NoRoom {
    /// The source of a failure of this kind.
    pub fn because(source: impl Into<BoxError>) -> BoxError {
        Box::new(Self(source.into()))
    }
}

/// Any error of an adapter's library.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;

impl PortError {
    /// A failure before anything was attempted, or one that is known to have changed nothing.
    pub fn not_done(what: &'static str, source: impl Into<BoxError>) -> Self {
        Self::NotDone { what, source: source.into() }
    }

    /// Whether it failed because the store is full.
    pub fn has_no_room(&self) -> bool {
        let (Self::NotDone { source, .. } | Self::Unknown { source, .. }) = self;
        source.is::<NoRoom>()
    }

    /// A failure after which the effect is not known.
    pub fn unknown(what: &'static str, source: impl Into<BoxError>) -> Self {
        Self::Unknown { what, source: source.into() }
    }
}
