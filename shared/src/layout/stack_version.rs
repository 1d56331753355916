use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::key::{Key, KeyPrefix, parsed};
use super::record::{Broken, Record};
use super::snapshot::Snapshot;
use super::update_detail::UpdateDetail;
use crate::domain::ids::{StackId, UpdateId};
use crate::domain::update::{Outcome, Requester, UpdateKind};
use crate::ports::{ItemKey, Timestamp};

const PREFIX: &str = "V#";

/// A published version of a stack, and an entry of its history. Written once, in the commit that publishes
/// it. The tail is the [`UpdateDetail`]'s tail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackVersion {
    pub version: u64,
    /// The update that published it.
    pub update: UpdateId,
    pub kind: UpdateKind,
    pub outcome: Outcome,
    pub requester: Requester,
    pub started: Timestamp,
    /// When the update's log was sealed.
    pub ended: Timestamp,
    pub snapshot: Snapshot,
    /// The engine's totals: the number of resources for each operation.
    pub resource_changes: Option<BTreeMap<String, u64>>,
    /// Journal entries that could not be applied. They are never fatal. A slot that an operator skipped
    /// because it did not read back counts as one.
    pub skipped_count: u64,
    /// The first of them: the sequence ID (0 for a slot) and the reason.
    pub skipped: Vec<(i64, String)>,
    /// The integrity rule that the deployment breaks, if any.
    pub integrity_error: Option<String>,
    pub detail: UpdateDetail,
}

impl Record for StackVersion {
    const NAME: &'static str = "version";
}

impl StackVersion {
    pub fn key(stack: StackId, version: u64) -> Key<Self> {
        Key::new(format!("STACK#{stack}"), format!("{PREFIX}{version:020}"))
    }

    pub fn of_stack(stack: StackId) -> KeyPrefix<Self> {
        KeyPrefix::new(format!("STACK#{stack}"), PREFIX)
    }

    /// The version's number in a key.
    ///
    /// # Errors
    /// [`Broken`] for the key of another record.
    pub fn number_in(key: &ItemKey) -> Result<u64, Broken> {
        parsed::<Self, _>(key, key.sort.strip_prefix(PREFIX).and_then(|number| number.parse().ok()))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn versions_sort_by_their_numbers() {
        let stack = StackId::new(Uuid::from_u128(1));
        assert!(StackVersion::key(stack, 99).sort < StackVersion::key(stack, 100).sort);
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::super::snapshot::examples::{addressed, indexed, snapshot};
    use super::super::update_detail::examples::detail;
    use super::super::update_summary::examples::changes;
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        let version = StackVersion {
            version: 7,
            update: update_id(2),
            kind: UpdateKind::Update,
            outcome: Outcome::Failed,
            requester: requester(),
            started: CREATED,
            ended: LATER,
            snapshot: snapshot(),
            resource_changes: Some(changes()),
            skipped_count: 1,
            skipped: vec![(4, "no such operation".to_owned())],
            integrity_error: Some("a parent is missing".to_owned()),
            detail: detail(),
        };
        files.hold("version.v1", &version, b"");
        let renamed = StackVersion { kind: UpdateKind::Rename, ..version.clone() };
        files.hold("version-renamed.v1", &renamed, b"");
        let of_server = StackVersion { snapshot: addressed(), ..version.clone() };
        files.hold("version-addressed.v1", &of_server, b"");
        files.hold("version-indexed.v1", &StackVersion { snapshot: indexed(), ..version }, b"");
    }
}
