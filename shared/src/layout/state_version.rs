use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::blobs::blob;
use super::kept_state::KeptState;
use super::key::{Key, KeyPrefix, parsed};
use super::payload::Payload;
use super::record::{Broken, Record};
use crate::domain::ids::StateId;
use crate::domain::tfstate::{Changes, Output};
use crate::domain::update::Requester;
use crate::ports::{BlobKey, ItemKey, Timestamp};

const PREFIX: &str = "V#";

/// A version of a Terraform state. Written in the commit that makes it current. Later, only the validity of
/// its outputs changes. The tail, or the blob, is the encrypted index of its instances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateVersion {
    pub version: u64,
    pub at: Timestamp,
    /// When the run that wrote it began, which is when it took the lock. `None` for a write without a lock,
    /// and for versions that were written before this field existed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<Timestamp>,
    pub by: Requester,
    pub source: StateSource,
    /// The lock that the writer held, if any.
    pub lock: Option<LockOf>,
    pub kept: KeptState,
    /// The outputs, without their values.
    pub outputs: Vec<Output>,
    /// Where its index is stored; `None` if it has none, or rows instead, which tell the same.
    pub index: Option<Payload>,
    /// The changes since the previous version; `None` if they are not known.
    pub changes: Option<Changes>,
    /// The serial is not higher than that of the previous version.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub serial_fell: bool,
    /// The lineage differs from that of the previous version.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lineage_changed: bool,
}

impl Record for StateVersion {
    const NAME: &'static str = "state version";
}

impl StateVersion {
    pub fn key(state: StateId, version: u64) -> Key<Self> {
        Key::new(format!("TFSTATE#{state}"), format!("{PREFIX}{version:020}"))
    }

    pub fn of_state(state: StateId) -> KeyPrefix<Self> {
        KeyPrefix::new(format!("TFSTATE#{state}"), PREFIX)
    }

    /// The version's number in a key.
    ///
    /// # Errors
    /// [`Broken`] for the key of another record.
    pub fn number_in(key: &ItemKey) -> Result<u64, Broken> {
        parsed::<Self, _>(key, key.sort.strip_prefix(PREFIX).and_then(|number| number.parse().ok()))
    }

    /// The blob of the encrypted index of a write, if it is too long for an item.
    pub fn new_index_blob(state: StateId, write: Uuid) -> BlobKey {
        blob(format!("tf/{state}/{write}-index"))
    }
}

/// The origin of a version of a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StateSource {
    /// A client wrote it.
    Written,
    /// A user restored this older version.
    Restored(u64),
    /// A user promoted this refused write.
    Promoted(String),
}

/// The lock under which a version was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockOf {
    pub id: String,
    /// The operation of its holder, such as `OperationTypeApply`.
    pub operation: String,
    /// The holder, as the client reported it.
    pub who: String,
    /// The version of the client.
    pub version: String,
}

#[cfg(test)]
pub(super) mod examples {
    use super::super::kept_state::examples::{encrypted, kept, with_rows};
    use super::*;
    use crate::domain::tfstate::{Mark, Standing, Validity};
    use crate::layout::formats::*;

    fn judged_outputs() -> Vec<Output> {
        let output = |status, message: Option<&str>, path: Option<&str>| {
            let validity =
                Validity { status, message: message.map(str::to_owned), path: path.map(str::to_owned) };
            Output { name: format!("{status:?}"), sensitive: false, mark: None, validity: Some(validity) }
        };
        vec![
            output(Standing::Valid, None, None),
            output(Standing::Invalid, Some("it is not of type string"), Some("$.a[0]")),
            output(Standing::Error, Some("it takes too many steps to check"), None),
            output(Standing::NotValidated, None, None),
        ]
    }

    fn written() -> StateVersion {
        let changes = Changes {
            added_count: 1,
            changed_count: 0,
            removed_count: 60,
            added: vec!["terraform_data.a".to_owned()],
            changed: Vec::new(),
            removed: vec!["terraform_data.b[0]".to_owned()],
        };
        let outputs = [("url", false), ("password", true)];
        StateVersion {
            version: 3,
            at: LATER,
            began: None,
            by: requester(),
            source: StateSource::Written,
            lock: Some(LockOf {
                id: lock_id(),
                operation: "OperationTypeApply".to_owned(),
                who: "alice@ci".to_owned(),
                version: "1.12.6".to_owned(),
            }),
            kept: kept(),
            outputs: outputs
                .map(|(name, sensitive)| Output {
                    name: name.to_owned(),
                    sensitive,
                    mark: None,
                    validity: None,
                })
                .to_vec(),
            index: Some(Payload::Inline),
            changes: Some(changes),
            serial_fell: true,
            lineage_changed: true,
        }
    }

    pub(crate) fn read(files: &mut Files) {
        let version = written();
        files.hold("state-version.v1", &version, b"\x01sealed");
        let mark = Mark { digest: "k7Qk0o0yJ1m5l7T3vZk2XQ".to_owned(), since: CREATED, version: 2 };
        let url = Output { name: "url".to_owned(), sensitive: false, mark: Some(mark), validity: None };
        let marked = StateVersion { began: Some(CREATED), outputs: vec![url], ..version.clone() };
        files.hold("state-version-marked.v1", &marked, b"\x01sealed");
        let judged = StateVersion { outputs: judged_outputs(), ..version.clone() };
        files.hold("state-version-judged.v1", &judged, b"\x01sealed");
        let long = StateVersion { kept: with_rows(), index: None, ..version.clone() };
        files.hold("state-version-with-rows.v1", &long, b"");
        let index = Payload::Blob { key: format!("{}-index", kept().blob), sha256: "ef".repeat(32) };
        let restored = StateVersion {
            source: StateSource::Restored(1),
            lock: None,
            index: Some(index),
            serial_fell: false,
            lineage_changed: false,
            ..version
        };
        files.hold("state-version-restored.v1", &restored, b"");
        let promoted = StateVersion {
            source: StateSource::Promoted("cd".repeat(16)),
            kept: encrypted(),
            outputs: Vec::new(),
            index: None,
            changes: None,
            ..restored
        };
        files.hold("state-version-promoted.v1", &promoted, b"");
    }
}
