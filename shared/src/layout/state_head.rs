use serde::{Deserialize, Serialize};

use super::audit_record::AuditMark;
use super::kept_state::KeptState;
use super::key::{Key, parsed};
use super::record::{Broken, Record};
use crate::domain::ids::StateId;
use crate::domain::names::{Login, StateAddress};
use crate::domain::protection::Protection;
use crate::domain::tfstate::{Labels, Policy};
use crate::ports::{ItemKey, Timestamp};

/// A Terraform state's head: the one item that changes with every change of the state. Written by every
/// write, and by changes of its name, policy, labels and schemas.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateHead {
    pub address: StateAddress,
    pub created: Timestamp,
    pub created_by: Login,
    /// The current version; 0 before the first.
    pub version: u64,
    /// The current version's text; `None` before the first.
    pub current: Option<KeptState>,
    /// When the current version was written.
    pub last_write: Option<Timestamp>,
    /// The lock under which it was written, if any.
    pub under: Option<WrittenUnder>,
    /// The rules for writers.
    #[serde(default)]
    pub policy: Policy,
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// Whether its outputs have schemas. If not, writes do not read any.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_schemas: bool,
    /// When the state was deleted. Its name is free from then on.
    pub deleted: Option<Timestamp>,
    /// Whether the state is being erased, so that it cannot be undeleted any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub erasing: bool,
    /// Whether it may not be deleted or destroyed. Since format 2: an older program would drop this with its next
    /// write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protection: Option<Protection>,
    /// The end of the chain of its audit records. An older program drops it with its next write, which ends the
    /// chain; the next record begins another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trail: Option<AuditMark>,
}

impl Record for StateHead {
    const NAME: &'static str = "state head";
    const FORMAT: u8 = 2;

    fn format(&self) -> u8 {
        if self.protection.is_none() { 1 } else { 2 }
    }
}

impl StateHead {
    pub fn key(state: StateId) -> Key<Self> {
        Key::new(format!("TFSTATE#{state}"), "HEAD")
    }

    /// The state in the key of its head, or of any other item of its partition.
    ///
    /// # Errors
    /// [`Broken`] for a key of another partition.
    pub fn state_in(key: &ItemKey) -> Result<StateId, Broken> {
        parsed::<Self, _>(key, key.partition.strip_prefix("TFSTATE#").and_then(StateId::parse))
    }
}

/// What was written under one lock. It distinguishes a delayed request from a new one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenUnder {
    /// The ID of the lock.
    pub lock: String,
    /// The hex SHA-256 of each text, newest last; at most as many as a run writes in an hour.
    pub texts: Vec<String>,
}

#[cfg(test)]
pub(super) mod examples {
    use super::super::audit_record::examples::mark;
    use super::super::kept_state::examples::{kept, with_rows};
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn new() -> StateHead {
        StateHead {
            address: StateAddress::parse("acme", "net", Some("prod")).unwrap(),
            created: CREATED,
            created_by: login("alice"),
            version: 0,
            current: None,
            last_write: None,
            under: None,
            policy: Policy::default(),
            labels: Labels::new(),
            has_schemas: false,
            deleted: None,
            erasing: false,
            protection: None,
            trail: None,
        }
    }

    pub(crate) fn read(files: &mut Files) {
        files.hold("state-head-new.v1", &new(), b"");
        files.hold("state-head-labelled.v1", &StateHead { labels: labels(), ..new() }, b"");
        files.hold("state-head-with-schemas.v1", &StateHead { has_schemas: true, ..new() }, b"");
        let policy = Policy { delete_allowed: true, ..Policy::default() };
        files.hold("state-head-deletable.v1", &StateHead { policy, ..new() }, b"");
        let policy = Policy { plan_lock_expires_after_seconds: Some(0), ..Policy::default() };
        files.hold("state-head-plan-lock.v1", &StateHead { policy, ..new() }, b"");
        let written = StateHead {
            version: 3,
            current: Some(kept()),
            last_write: Some(LATER),
            under: Some(WrittenUnder { lock: lock_id(), texts: vec!["cd".repeat(32)] }),
            policy: Policy {
                locks_required: true,
                strict: true,
                lock_expires_after_seconds: Some(3_600),
                ..Policy::default()
            },
            ..new()
        };
        files.hold("state-head.v1", &written, b"");
        let long = StateHead { current: Some(with_rows()), ..written };
        files.hold("state-head-with-rows.v1", &long, b"");
        files.hold("state-head-audited.v1", &StateHead { trail: Some(mark()), ..new() }, b"");
        let erasing = StateHead { deleted: Some(LATER), erasing: true, ..new() };
        files.hold("state-head-erasing.v1", &erasing, b"");
        files.hold("state-head-protected.v2", &StateHead { protection: Some(protection()), ..new() }, b"");
    }
}
