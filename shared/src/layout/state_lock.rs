use serde::{Deserialize, Serialize};

use super::key::Key;
use super::record::Record;
use crate::domain::ids::StateId;
use crate::domain::tfstate::LockInfo;
use crate::domain::update::Requester;
use crate::ports::Timestamp;

/// The lock of a state. Written by lock, unlock, and the first writer after the lock expired. The item stays
/// after an unlock, to distinguish a repeated unlock from a wrong one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateLock {
    pub holder: Option<StateHolder>,
    /// The last few IDs that were unlocked or displaced, newest last.
    pub ended: Vec<String>,
}

impl Record for StateLock {
    const NAME: &'static str = "state lock";
}

impl StateLock {
    pub fn key(state: StateId) -> Key<Self> {
        Key::new(format!("TFSTATE#{state}"), "LOCK")
    }
}

/// The holder of a state's lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateHolder {
    /// The lock info that the client sent.
    pub info: LockInfo,
    /// The user and the token of the request.
    pub by: Requester,
    /// When that user was created, since a later user may have the same login; `None` in records of older
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_made: Option<Timestamp>,
    /// When the lock was taken, by the server's clock.
    pub since: Timestamp,
    /// Whether a user locked the state by hand, to keep others out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_hand: bool,
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    fn holder(by_hand: bool) -> StateHolder {
        let text = str::to_owned;
        let info = LockInfo {
            id: lock_id(),
            operation: text("OperationTypeApply"),
            info: text("maintenance"),
            who: text("alice@ci"),
            version: text("1.12.6"),
            created: text("2026-01-01T00:00:00.5Z"),
            path: String::new(),
        };
        StateHolder { info, by: requester(), user_made: None, since: CREATED, by_hand }
    }

    pub(crate) fn read(files: &mut Files) {
        let held = StateLock { holder: Some(holder(false)), ended: vec!["before".to_owned()] };
        files.hold("state-lock.v1", &held, b"");
        let of_user = StateHolder { user_made: Some(CREATED), ..holder(false) };
        let of_user = StateLock { holder: Some(of_user), ended: Vec::new() };
        files.hold("state-lock-of-user.v1", &of_user, b"");
        let by_hand = StateLock { holder: Some(holder(true)), ..held };
        files.hold("state-lock-by-hand.v1", &by_hand, b"");
        let free = StateLock { holder: None, ended: vec![lock_id()] };
        files.hold("state-lock-free.v1", &free, b"");
    }
}
