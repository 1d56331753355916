use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::key::{Key, META};
use super::record::Record;
use crate::domain::names::{Login, OrgName, ProviderName};
use crate::domain::role::Role;
use crate::domain::sign_in::Teams;
use crate::ports::Timestamp;

/// The user of a person at a provider, who is known by issuer and subject only. Written at the first sign-in, or
/// when a user links an account, and at each sign-in. Format 1 had no role `auditor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub issuer: String,
    pub subject: String,
    pub login: Login,
    /// When the user was created: a later user may have the same login.
    pub user_made: Timestamp,
    pub provider: ProviderName,
    pub linked: Timestamp,
    pub signed_in: Timestamp,
    /// The roles that the provider's rules gave at the last sign-in. Only these are taken away when the rules no
    /// longer give them.
    pub roles: BTreeMap<OrgName, Role>,
    /// The teams that they gave.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub teams: Teams,
}

impl Record for Identity {
    const NAME: &'static str = "identity";
    const FORMAT: u8 = 2;

    fn format(&self) -> u8 {
        let is_new = self.roles.values().any(|role| *role == Role::Auditor);
        if is_new { 2 } else { 1 }
    }
}

impl Identity {
    /// The key has the hex SHA-256 of issuer and subject.
    pub fn key(hash: &str) -> Key<Self> {
        Key::new(format!("IDENTITY#{hash}"), META)
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::domain::names::TeamName;
    use crate::layout::formats::*;

    fn acme() -> OrgName {
        OrgName::parse("acme").unwrap()
    }

    pub(crate) fn read(files: &mut Files) {
        let identity = Identity {
            issuer: "https://id.example.com".to_owned(),
            subject: "00u1a2b3".to_owned(),
            login: login("alice"),
            user_made: CREATED,
            provider: ProviderName::parse("corp").unwrap(),
            linked: CREATED,
            signed_in: LATER,
            roles: BTreeMap::from([(acme(), Role::Apply)]),
            teams: BTreeSet::new(),
        };
        files.hold("identity.v1", &identity, b"");
        let teams = BTreeSet::from([(acme(), TeamName::parse("web").unwrap())]);
        files.hold("identity-with-teams.v1", &Identity { teams, ..identity.clone() }, b"");
        let roles = BTreeMap::from([(acme(), Role::Auditor)]);
        files.hold("identity-auditor.v2", &Identity { roles, ..identity }, b"");
    }
}
