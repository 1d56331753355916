use serde::{Deserialize, Serialize};

use super::audit_record::{AuditDay, trail};
use super::blobs::blob;
use super::key::{Key, KeyPrefix, parsed};
use super::record::{Broken, Record};
use crate::domain::names::OrgName;
use crate::ports::{BlobKey, ItemKey};

const PARTITION: &str = "AUDITED#";

/// The signed root of one day of an audit trail. Written by the sweep after the end of the day, and erased with
/// the day. Its text is a blob, which is stored before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRoot {
    /// The blob with the signed text.
    pub blob: String,
    /// The hex SHA-256 of the blob.
    pub sha256: String,
}

impl Record for AuditRoot {
    const NAME: &'static str = "audit root";
}

impl AuditRoot {
    pub fn key(trail: Option<&OrgName>, day: AuditDay) -> Key<Self> {
        Key::new(Self::of_trail(trail).partition, day.to_string())
    }

    /// The roots of a trail, by day: their keys start with the year.
    pub fn of_trail(trail: Option<&OrgName>) -> KeyPrefix<Self> {
        KeyPrefix::new(format!("{PARTITION}{}", trail.map_or("", OrgName::as_str)), "2")
    }

    /// The partitions of the roots of all trails start with this.
    pub fn all_trails() -> &'static str {
        PARTITION
    }

    /// The trail and the day in a key.
    ///
    /// # Errors
    /// [`Broken`] for the key of another record.
    pub fn day_in(key: &ItemKey) -> Result<(Option<OrgName>, AuditDay), Broken> {
        let day = AuditDay::parse(&key.sort);
        parsed::<Self, _>(key, trail(&key.partition, PARTITION).zip(day))
    }

    /// The blob of a root. A day that is signed twice, after a crash, may get another text, so the key has a part
    /// of the text's hash.
    pub fn new_blob(trail: Option<&OrgName>, day: AuditDay, sha256: &str) -> BlobKey {
        let hash: String = sha256.chars().take(16).collect();
        match trail {
            Some(org) => blob(format!("audit/org/{org}/{day}-{hash}")),
            None => blob(format!("audit/server/{day}-{hash}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::Timestamp;

    #[test]
    fn a_key_names_its_trail_and_day() {
        let (org, day) = (OrgName::parse("acme").unwrap(), AuditDay::of(Timestamp::from_seconds(86_400)));
        for trail in [None, Some(org)] {
            let key = AuditRoot::key(trail.as_ref(), day);
            assert_eq!(AuditRoot::day_in(&key).unwrap(), (trail, day));
        }
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        let org = OrgName::parse("acme").unwrap();
        let sha256 = "cd".repeat(32);
        let blob = AuditRoot::new_blob(Some(&org), AuditDay::of(CREATED), &sha256).to_string();
        files.hold("audit-root.v1", &AuditRoot { blob, sha256 }, b"");
    }
}
