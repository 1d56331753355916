use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::key::{Key, KeyPrefix};
use super::record::Record;
use crate::domain::names::{Login, OrgName};
use crate::domain::oidc::IssuerUrl;
use crate::ports::Timestamp;

const PREFIX: &str = "CONSENT#";

/// A user's consent that an organization gives personal tokens of this user to an issuer's jobs. Written by that user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuerConsent {
    pub org: OrgName,
    pub issuer: Uuid,
    pub url: IssuerUrl,
    /// When the issuer was registered: a later registration of the same address needs a new consent.
    pub issuer_made: Timestamp,
    /// When the user was created: a later user may have the same login.
    pub user_made: Timestamp,
    pub at: Timestamp,
}

impl Record for IssuerConsent {
    const NAME: &'static str = "consent to an issuer";
}

impl IssuerConsent {
    /// The ID of an issuer is made from its organization too.
    pub fn key(login: &Login, issuer: &Uuid) -> Key<Self> {
        Key::new(format!("USER#{login}"), format!("{PREFIX}{issuer}"))
    }

    pub fn of_user(login: &Login) -> KeyPrefix<Self> {
        KeyPrefix::new(format!("USER#{login}"), PREFIX)
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        let consent = IssuerConsent {
            org: OrgName::parse("acme").unwrap(),
            issuer: Uuid::from_u128(7),
            url: IssuerUrl::parse("https://ci.example.com").unwrap(),
            issuer_made: CREATED,
            user_made: CREATED,
            at: LATER,
        };
        files.hold("issuer-consent.v1", &consent, b"");
    }
}
