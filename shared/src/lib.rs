//! The one crate behind every Statewright function and the single binary.
//!
//! In reading order: [`ports`] says what is asked of the outside world; [`domain`] knows Pulumi's own things and their
//! rules; [`journal`] makes a new state of an old one and what an update reported.

pub mod domain;
pub mod journal;
pub mod ports;
