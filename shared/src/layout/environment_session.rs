use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::key::{Key, META};
use super::record::Record;
use crate::domain::ids::{EnvironmentId, SessionId};
use crate::domain::names::{Login, OrgName};
use crate::domain::principal::Principal;
use crate::ports::Timestamp;

/// An opened environment. Written when a user opens it: with the revisions that were read, so that all later
/// reads of the session return the same values. Values are not stored. If a text was opened, the tail is the
/// text, encrypted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentSession {
    pub org: OrgName,
    /// `project/environment`; `None` for a text.
    pub opened: Option<String>,
    /// The revisions of the opened environment and of all its imports, by the names that refer to them.
    pub revisions: BTreeMap<String, OpenedRevision>,
    /// The user who opened it, and the only one who may read it; or the organization of the machine.
    pub by: Login,
    /// The kind of principal.
    #[serde(default, skip_serializing_if = "Principal::is_user")]
    pub of: Principal,
    /// When that user was created, since a later user may have the same login; `None` in records of older
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_made: Option<Timestamp>,
    pub until: Timestamp,
}

impl Record for EnvironmentSession {
    const NAME: &'static str = "opened environment";
}

impl EnvironmentSession {
    pub fn key(session: SessionId) -> Key<Self> {
        Key::new(format!("OPENED#{session}"), META)
    }
}

/// A revision that was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenedRevision {
    /// The name in the text that refers to it: `project/environment`, with or without `@version`.
    pub name: String,
    pub id: EnvironmentId,
    pub revision: u64,
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        let opened = |name: &str| OpenedRevision { name: name.to_owned(), id: environment_id(), revision: 3 };
        let session = EnvironmentSession {
            org: OrgName::parse("acme").unwrap(),
            opened: Some("web/prod".to_owned()),
            revisions: BTreeMap::from([(String::new(), opened("web/prod"))]),
            by: login("alice"),
            of: Principal::User,
            user_made: None,
            until: LATER,
        };
        files.hold("opened-environment.v1", &session, b"");
        let of_user = EnvironmentSession { user_made: Some(CREATED), ..session.clone() };
        files.hold("opened-environment-of-user.v1", &of_user, b"");
        let text = EnvironmentSession {
            opened: None,
            revisions: BTreeMap::from([("web/prod@stable".to_owned(), opened("web/prod@stable"))]),
            ..session
        };
        files.hold("opened-text.v1", &text, b"\x01sealed");
    }
}
