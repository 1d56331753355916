//! The one crate behind every Statewright function and the single binary.
//!
//! In reading order: [`ports`] says what is asked of the outside world, [`adapters`]
//! answer it.

pub mod adapters;
pub mod journal;
pub mod ports;
