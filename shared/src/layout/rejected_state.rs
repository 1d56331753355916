use serde::{Deserialize, Serialize};

use super::kept_state::KeptState;
use super::key::{Key, KeyPrefix};
use super::record::Record;
use crate::domain::ids::StateId;
use crate::domain::tfstate::Refused;
use crate::domain::update::Requester;
use crate::ports::Timestamp;

const PREFIX: &str = "R#";

/// A write of a state that was refused. It is stored so that the client's work is not lost. Format 1 lacks the
/// reason [`Refused::Protected`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedState {
    /// When it was first sent.
    pub at: Timestamp,
    pub by: Requester,
    /// The ID of the lock that the client sent with it.
    pub lock: Option<String>,
    pub why: Refused,
    /// The state's version at that time.
    pub version: u64,
    pub kept: KeptState,
}

impl Record for RejectedState {
    const NAME: &'static str = "refused state";
    const FORMAT: u8 = 2;

    fn format(&self) -> u8 {
        if self.why == Refused::Protected { 2 } else { 1 }
    }
}

impl RejectedState {
    /// The id is the start of the SHA-256 of the text, so a repeat has the same id.
    pub fn key(state: StateId, id: &str) -> Key<Self> {
        Key::new(format!("TFSTATE#{state}"), format!("{PREFIX}{id}"))
    }

    pub fn of_state(state: StateId) -> KeyPrefix<Self> {
        KeyPrefix::new(format!("TFSTATE#{state}"), PREFIX)
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::super::kept_state::examples::{kept, with_rows};
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        let rejected = RejectedState {
            at: LATER,
            by: requester(),
            lock: Some(lock_id()),
            why: Refused::Displaced,
            version: 3,
            kept: kept(),
        };
        files.hold("rejected-state.v1", &rejected, b"");
        let long = RejectedState { kept: with_rows(), ..rejected.clone() };
        files.hold("rejected-state-with-rows.v1", &long, b"");
        let deleted = RejectedState { lock: None, why: Refused::Deleted, ..rejected };
        files.hold("rejected-state-removed.v1", &deleted, b"");
        let protected = RejectedState { why: Refused::Protected, ..deleted };
        files.hold("rejected-state-protected.v2", &protected, b"");
    }
}
