//! The implementations of the ports.
//!
//! The single binary uses [`embedded`]; functions and servers that share a store use [`aws`]. The tests
//! of everything above use the memory adapters, wrapped in those that count and those that fail.

#![expect(missing_docs, reason = "unpublished: a doc comment is for what the name does not say")]

#[cfg(any(feature = "aws", feature = "embedded", feature = "testing"))]
mod cursor;
mod finding;
mod https;
mod kept;
#[cfg(any(feature = "embedded", feature = "testing", all(test, feature = "aws")))]
mod key_range;
#[cfg(any(feature = "embedded", feature = "testing"))]
mod master_key;
mod system_clock;
mod system_ids;
mod unavailable;

#[cfg(feature = "aws")]
pub mod aws;
#[cfg(feature = "embedded")]
pub mod embedded;

#[cfg(feature = "testing")]
mod counting;
#[cfg(feature = "testing")]
mod faulty;
#[cfg(feature = "testing")]
mod manual_clock;
#[cfg(feature = "testing")]
mod memory;
#[cfg(feature = "testing")]
mod seeded_ids;
#[cfg(feature = "testing")]
mod stepping_clock;

pub use finding::{Finding, State};
pub use https::{Https, InvalidEndpoint, StsEndpoint};
pub use kept::{Decode, Kept};
pub use system_clock::SystemClock;
pub use system_ids::SystemIds;
pub use unavailable::Unavailable;

#[cfg(feature = "testing")]
pub use counting::{Calls, Counter, Counting};
#[cfg(feature = "testing")]
pub use faulty::{Fault, Faults, Faulty};
#[cfg(feature = "testing")]
pub use manual_clock::ManualClock;
#[cfg(feature = "testing")]
pub use memory::{MemoryBlobs, MemoryKeys, MemoryLedger};
#[cfg(feature = "testing")]
pub use seeded_ids::SeededIds;
#[cfg(feature = "testing")]
pub use stepping_clock::SteppingClock;
