use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::key::{Key, META};
use super::record::Record;
use crate::domain::ids::{EnvironmentId, SessionId};
use crate::domain::names::{Login, OrgName};
use crate::ports::Timestamp;

/// An environment that a user opened. Written by the open: the revisions that it was made of, so that every later read
/// of the session gives the same values. No value is stored. The tail is its text, sealed, where it was opened as a
/// text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentSession {
    pub org: OrgName,
    /// What was opened: `project/environment`; `None` for a text.
    pub opened: Option<String>,
    /// The revisions of what was opened and of all that it imports, by what each is called there.
    pub revisions: BTreeMap<String, OpenedRevision>,
    /// Who opened it, and may read it.
    pub by: Login,
    /// When that user was created, since another may have the login later; `None` where an older program wrote the record.
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
    /// What it is called in the text that names it: `project/environment`, with or without `@version`.
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
