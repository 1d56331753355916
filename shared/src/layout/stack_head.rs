use serde::{Deserialize, Serialize};

use super::audit_record::AuditMark;
use super::key::{Key, parsed};
use super::record::{Broken, Record};
use super::snapshot::Snapshot;
use crate::domain::ids::{StackId, UpdateId};
use crate::domain::names::{Login, StackAddress};
use crate::domain::protection::{Hold, Protection};
use crate::ports::{ItemKey, Timestamp};

/// A stack's head: the one item that changes with every change of the stack. Written by everything that
/// begins or ends an update, publishes a version, or renames, deletes or undeletes the stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackHead {
    pub address: StackAddress,
    pub created: Timestamp,
    /// `None` for stacks that were created before this field existed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<Login>,
    /// The current version; 0 before the first.
    pub version: u64,
    /// The current version's deployment; `None` before the first.
    pub snapshot: Option<Snapshot>,
    /// The update that holds the stack.
    pub running: Option<UpdateId>,
    /// The update that last held it.
    pub last: Option<UpdateId>,
    /// When the stack was deleted. Its name is free from then on.
    pub deleted: Option<Timestamp>,
    /// Where its configuration is stored, if not in a file of its project. Since format 2: a program that
    /// knows only format 1 would drop this with its next write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<StackConfig>,
    /// Whether it may not be deleted or destroyed. Since format 3: an older program would drop this with its next
    /// write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protection: Option<Protection>,
    /// Whether a person holds it, so that no update starts. Since format 4: an older program would start one, and drop
    /// this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// The end of the chain of its audit records. An older program drops it with its next write, which ends the
    /// chain; the next record begins another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trail: Option<AuditMark>,
}

impl Record for StackHead {
    const NAME: &'static str = "stack head";
    const FORMAT: u8 = 4;

    fn format(&self) -> u8 {
        match (&self.hold, &self.protection, &self.config) {
            (Some(_), _, _) => 4,
            (None, Some(_), _) => 3,
            (None, None, Some(_)) => 2,
            (None, None, None) => 1,
        }
    }
}

impl StackHead {
    pub fn key(stack: StackId) -> Key<Self> {
        Key::new(format!("STACK#{stack}"), "HEAD")
    }

    /// The stack in the key of its head, or of any other item of its partition.
    ///
    /// # Errors
    /// [`Broken`] for a key of another partition.
    pub fn stack_in(key: &ItemKey) -> Result<StackId, Broken> {
        parsed::<Self, _>(key, key.partition.strip_prefix("STACK#").and_then(StackId::parse))
    }
}

/// Where the server stores the configuration of a stack (`apitype.StackConfig`, pulumi v3.274.1).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackConfig {
    /// `project/environment`, with or without `@version`.
    pub environment: String,
    /// The secrets provider of the stack's state, as the client chose it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub secrets_provider: String,
    /// The key that the secrets provider wrapped.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub encrypted_key: String,
    /// The salt of a passphrase.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub encryption_salt: String,
}

#[cfg(test)]
pub(super) mod examples {
    use super::super::audit_record::examples::mark;
    use super::super::snapshot::examples::{addressed, indexed, snapshot};
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn head() -> StackHead {
        StackHead {
            address: StackAddress::parse("acme", "web", "dev").unwrap(),
            created: CREATED,
            created_by: None,
            version: 7,
            snapshot: Some(snapshot()),
            running: Some(update_id(3)),
            last: Some(update_id(2)),
            deleted: None,
            config: None,
            protection: None,
            hold: None,
            trail: None,
        }
    }

    pub(crate) fn read(files: &mut Files) {
        files.hold("head.v1", &head(), b"");
        let new = StackHead {
            version: 0,
            snapshot: None,
            running: None,
            last: None,
            deleted: Some(LATER),
            ..head()
        };
        files.hold("head-new.v1", &new, b"");
        let of_somebody = StackHead { created_by: Some(login("alice")), ..head() };
        files.hold("head-of-somebody.v1", &of_somebody, b"");
        files.hold("head-addressed.v1", &StackHead { snapshot: Some(addressed()), ..head() }, b"");
        files.hold("head-indexed.v1", &StackHead { snapshot: Some(indexed()), ..head() }, b"");
        files.hold("head-audited.v1", &StackHead { trail: Some(mark()), ..head() }, b"");
        let config = StackConfig {
            environment: "web/prod".to_owned(),
            secrets_provider: "awskms://alias/key".to_owned(),
            encrypted_key: "AQID".to_owned(),
            encryption_salt: String::new(),
        };
        files.hold("head-configured.v2", &StackHead { config: Some(config), ..head() }, b"");
        files.hold("head-protected.v3", &StackHead { protection: Some(protection()), ..head() }, b"");
        files.hold("head-held.v4", &StackHead { hold: Some(protection()), ..head() }, b"");
    }
}
