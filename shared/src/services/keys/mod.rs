//! Data keys, which encrypt secrets, and the master key, which wraps data keys.

pub mod data_keys;
pub mod master_key;
