use serde::{Deserialize, Serialize};

use super::audit_record::AuditDay;
use super::key::{Key, KeyPrefix, parsed};
use super::record::{Broken, Record};
use crate::domain::ids::{EnvironmentId, StackId, StateId, UpdateId};
use crate::domain::names::{EnvironmentAddress, OrgName};
use crate::ports::{ItemKey, Timestamp};

/// The number of partitions that due items are spread over.
pub const DUE_SHARDS: u8 = 4;

/// What a sweep checks when its time has come. Written in the commit that makes the check necessary. Format 1
/// had updates only, in the same form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Due {
    /// An update: when its lease expires, the sweep ends it; later, it deletes the log and the events.
    Update(UpdateId),
    /// A stack that has more versions than are kept.
    Versions(StackId),
    /// A stack that was deleted.
    Stack(StackId),
    /// The outputs of a stack's version, once the next version replaces them.
    Outputs {
        stack: StackId,
        /// The blob's key.
        key: String,
    },
    /// A blob that no item named when this was written.
    Blob {
        key: String,
        /// The stack whose versions may name it again; `None` for a blob that only one item ever names.
        stack: Option<StackId>,
    },
    /// A Terraform state that has more versions than are kept. Since format 3.
    StateVersions(StateId),
    /// A Terraform state that was deleted. Since format 3.
    State(StateId),
    /// A write of a Terraform state that was refused. Since format 3.
    RejectedState {
        state: StateId,
        /// The id of the refused write.
        id: String,
    },
    /// An environment that was deleted. Since format 4.
    Environment {
        id: EnvironmentId,
        /// The name that the environment had.
        address: EnvironmentAddress,
    },
    /// A day of an audit trail: to be signed after its end, and later erased. Since format 5.
    Audit {
        /// The organization; `None` for the trail of the server.
        trail: Option<OrgName>,
        day: AuditDay,
    },
}

impl Record for Due {
    const NAME: &'static str = "due item";
    const FORMAT: u8 = 5;

    fn format(&self) -> u8 {
        match self {
            Self::Audit { .. } => 5,
            Self::Environment { .. } => 4,
            _ => 3,
        }
    }
}

impl Due {
    /// The key: the time, in a partition that depends on the thing to check.
    pub fn key(&self, at: Timestamp) -> Key<Self> {
        let what = match self {
            Self::Update(update) => update.to_string(),
            Self::Versions(stack) => format!("versions-{stack}"),
            Self::Stack(stack) => format!("stack-{stack}"),
            Self::Outputs { key, .. } => format!("outputs-{key}"),
            Self::Blob { key, .. } => format!("blob-{key}"),
            Self::StateVersions(state) => format!("tf-versions-{state}"),
            Self::State(state) => format!("tf-{state}"),
            Self::RejectedState { state, id } => format!("tf-rejected-{state}-{id}"),
            Self::Environment { id, .. } => format!("env-{id}"),
            // The trail last: all days of a trail are in one shard, so they are signed in their order.
            Self::Audit { trail, day } => {
                format!("audit-{day}-{}", trail.as_ref().map_or("", OrgName::as_str))
            }
        };
        let shard = what.bytes().last().unwrap_or(0) % DUE_SHARDS;
        Key::new(Self::of_shard(shard).partition, format!("{:020}#{what}", at.0.max(0)))
    }

    /// The items of one of [`DUE_SHARDS`] partitions, by when they are due.
    pub fn of_shard(shard: u8) -> KeyPrefix<Self> {
        KeyPrefix::new(format!("DUE#{shard}"), "")
    }

    /// The time in a key.
    ///
    /// # Errors
    /// [`Broken`] for the key of another record.
    pub fn time_in(key: &ItemKey) -> Result<Timestamp, Broken> {
        let time = key.sort.split_once('#').and_then(|(time, _)| time.parse().ok());
        parsed::<Self, _>(key, time.map(Timestamp))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn due_items_sort_by_their_time() {
        let update = Due::Update(UpdateId::new(Uuid::from_u128(1)));
        let (early, late) = (Timestamp(9), Timestamp(10));
        assert!(update.key(early).sort < update.key(late).sort);
        assert_eq!(Due::time_in(&update.key(late)).unwrap(), late);
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::super::kept_state::examples::kept;
    use super::super::snapshot::examples::snapshot;
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        let outputs = || format!("snap/{}/{}-outputs", stack(), update_id(2));
        files.hold("due.v1", &Due::Update(update_id(3)), b"");
        files.hold("due-update.v2", &Due::Update(update_id(3)), b"");
        files.hold("due-versions.v2", &Due::Versions(stack()), b"");
        files.hold("due-stack.v2", &Due::Stack(stack()), b"");
        files.hold("due-outputs.v2", &Due::Outputs { stack: stack(), key: outputs() }, b"");
        files.hold("due-blob.v2", &Due::Blob { key: snapshot().blob, stack: Some(stack()) }, b"");
        let once = Due::Blob { key: format!("log/{}/00000000000000ff", update_id(2)), stack: None };
        files.hold("due-blob-once.v2", &once, b"");
        files.hold("due-update.v3", &Due::Update(update_id(3)), b"");
        files.hold("due-versions.v3", &Due::Versions(stack()), b"");
        files.hold("due-stack.v3", &Due::Stack(stack()), b"");
        files.hold("due-outputs.v3", &Due::Outputs { stack: stack(), key: outputs() }, b"");
        files.hold("due-blob.v3", &Due::Blob { key: kept().blob, stack: None }, b"");
        files.hold("due-state-versions.v3", &Due::StateVersions(state_id()), b"");
        files.hold("due-state.v3", &Due::State(state_id()), b"");
        let rejected = Due::RejectedState { state: state_id(), id: "cd".repeat(16) };
        files.hold("due-rejected-state.v3", &rejected, b"");
        let address = EnvironmentAddress::parse("acme", "web", "prod").unwrap();
        let trail = Some(OrgName::parse("acme").unwrap());
        files.hold("due-audit.v5", &Due::Audit { trail, day: AuditDay::of(CREATED) }, b"");
        files.hold("due-environment.v4", &Due::Environment { id: environment_id(), address }, b"");
    }
}
