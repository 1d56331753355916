//! Keys of blobs, and which blobs an item names.

use super::{
    AuditRoot, Broken, Due, EventBatch, KeptState, Payload, Record, RejectedState, Slot, Snapshot, StackHead,
    StackOutputs, StackVersion, StateHead, StateVersion,
};
use crate::ports::{BlobKey, Item};

/// A blob that an item names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedBlob {
    /// Where the blob is stored.
    pub key: BlobKey,
    /// The hex SHA-256 of its bytes; `None` if the item only schedules the blob's deletion.
    pub sha256: Option<String>,
}

/// The blobs that an item names, for an item of any kind.
///
/// # Errors
/// [`Broken`] if the item does not read back.
pub fn named_blobs(item: &Item) -> Result<Vec<NamedBlob>, Broken> {
    let (partition, sort) = (item.key.partition.as_str(), item.key.sort.as_str());
    let kind = partition.split_once('#').map_or(partition, |(kind, _)| kind);
    match (kind, sort.split_once('#').map_or(sort, |(kind, _)| kind)) {
        ("STACK", "HEAD") => match StackHead::decode(&item.value)?.snapshot {
            Some(snapshot) => of_snapshot(&snapshot),
            None => Ok(Vec::new()),
        },
        ("STACK", "V") => of_snapshot(&StackVersion::decode(&item.value)?.snapshot),
        ("STACK", "OUTPUTS") => of_payload(&StackOutputs::decode(&item.value)?.payload),
        ("TFSTATE", "HEAD") => match StateHead::decode(&item.value)?.current {
            Some(kept) => of_kept(&kept),
            None => Ok(Vec::new()),
        },
        ("TFSTATE", "V") => {
            let version = StateVersion::decode(&item.value)?;
            let mut named = of_kept(&version.kept)?;
            if let Some(index) = &version.index {
                named.extend(of_payload(index)?);
            }
            Ok(named)
        }
        ("TFSTATE", "R") => of_kept(&RejectedState::decode(&item.value)?.kept),
        ("UPDATE", "L") => Slot::decode(&item.value)?.content.payload().map_or(Ok(Vec::new()), of_payload),
        ("AUDITED", sort) if sort != "ERASED" => {
            let root = AuditRoot::decode(&item.value)?;
            Ok(vec![named(&root.blob, Some(&root.sha256))?])
        }
        ("EVENTS", _) => of_payload(&EventBatch::decode(&item.value)?.payload),
        ("DUE", _) => match Due::decode(&item.value)? {
            Due::Outputs { key, .. } | Due::Blob { key, .. } => Ok(vec![named(&key, None)?]),
            Due::Update(_)
            | Due::Versions(_)
            | Due::Stack(_)
            | Due::StateVersions(_)
            | Due::State(_)
            | Due::RejectedState { .. }
            | Due::Environment { .. }
            | Due::Audit { .. } => Ok(Vec::new()),
        },
        _ => Ok(Vec::new()),
    }
}

fn of_snapshot(snapshot: &Snapshot) -> Result<Vec<NamedBlob>, Broken> {
    snapshot.blobs().map(|(key, sha256)| named(&key, Some(sha256))).collect()
}

fn of_kept(kept: &KeptState) -> Result<Vec<NamedBlob>, Broken> {
    kept.blobs().map(|(key, sha256)| named(&key, Some(sha256))).collect()
}

fn of_payload(payload: &Payload) -> Result<Vec<NamedBlob>, Broken> {
    match payload {
        Payload::Inline => Ok(Vec::new()),
        Payload::Blob { key, sha256 } => Ok(vec![named(key, Some(sha256))?]),
    }
}

fn named(key: &str, sha256: Option<&str>) -> Result<NamedBlob, Broken> {
    let parsed = BlobKey::parse(key);
    let damaged = || Broken::Damaged { name: "blob's name", detail: format!("{key:?} is not a blob key") };
    Ok(NamedBlob { key: parsed.ok_or_else(damaged)?, sha256: sha256.map(str::to_owned) })
}

/// The blob that is written and deleted to check write access. It always has the same bytes.
pub fn probe_blob() -> BlobKey {
    blob("probe/ready".to_owned())
}

pub(super) fn blob(text: String) -> BlobKey {
    BlobKey::parse(&text).expect("fixed words, UUIDs and numbers are valid segments")
}
