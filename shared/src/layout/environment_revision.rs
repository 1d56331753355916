use serde::{Deserialize, Serialize};

use super::key::{Key, KeyPrefix, parsed};
use super::record::{Broken, Record};
use crate::domain::ids::EnvironmentId;
use crate::domain::names::Login;
use crate::domain::update::Requester;
use crate::ports::{ItemKey, Timestamp};

const PREFIX: &str = "V#";

/// A revision of an environment. Written once with the head, and again when it is retracted. The tail is its
/// text, with all secrets encrypted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentRevision {
    pub created: Timestamp,
    pub by: Requester,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retracted: Option<Retracted>,
}

impl Record for EnvironmentRevision {
    const NAME: &'static str = "environment revision";
}

impl EnvironmentRevision {
    pub fn key(environment: EnvironmentId, revision: u64) -> Key<Self> {
        Key::new(format!("ENV#{environment}"), format!("{PREFIX}{revision:020}"))
    }

    pub fn of_environment(environment: EnvironmentId) -> KeyPrefix<Self> {
        KeyPrefix::new(format!("ENV#{environment}"), PREFIX)
    }

    /// The revision's number in a key.
    ///
    /// # Errors
    /// [`Broken`] for the key of another record.
    pub fn number_in(key: &ItemKey) -> Result<u64, Broken> {
        parsed::<Self, _>(key, key.sort.strip_prefix(PREFIX).and_then(|number| number.parse().ok()))
    }
}

/// Marks a revision that must not be used any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retracted {
    /// The revision to use instead.
    pub replacement: u64,
    pub at: Timestamp,
    pub by: Login,
    pub reason: String,
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        let revision = EnvironmentRevision { created: CREATED, by: requester(), retracted: None };
        files.hold("environment-revision.v1", &revision, b"values: {}\n");
        let retracted =
            Retracted { replacement: 3, at: LATER, by: login("bob"), reason: "a wrong region".to_owned() };
        let revision = EnvironmentRevision { retracted: Some(retracted), ..revision };
        files.hold("environment-revision-retracted.v1", &revision, b"values: {}\n");
    }
}
