//! How everything is laid down in the ledger and among the blobs: the one schema of every store.
//!
//! [`keys`] makes item and blob keys, [`record`] is the envelope of every persisted value, [`records`] are the values
//! themselves, [`slot`] are the entries of an update's log.

pub mod keys;
pub mod named;
pub mod record;
pub mod records;
pub mod slot;

pub use keys::ItemKeys;
pub use named::{NamedBlob, named_blobs};
pub use record::{Broken, Record};

#[cfg(test)]
mod formats;
