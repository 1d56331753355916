//! The keys that seal secrets, and the master key that seals them.

pub mod data_keys;
pub mod master_key;
