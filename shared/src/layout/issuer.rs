use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::key::{Key, KeyPrefix};
use super::record::Record;
use crate::domain::names::OrgName;
use crate::domain::oidc::IssuerUrl;
use crate::domain::oidc::policy::Policy;
use crate::domain::role::Role;
use crate::ports::Timestamp;

const PREFIX: &str = "ISSUER#";

/// An issuer whose tokens an organization accepts, with its policies. Written by the organization's admins, and at most
/// once an hour when a token of the issuer is accepted. Format 1 had no role `auditor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issuer {
    /// A name for people.
    pub name: String,
    pub url: IssuerUrl,
    /// The SHA-256 of the issuer's certificates, in hex, as its admin gave them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thumbprints: Vec<String>,
    /// Its public keys, if they are registered and not fetched: a set as in RFC 7517.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Value>,
    /// The longest lifetime of a token that is given for one of its tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_max: Option<u32>,
    pub created: Timestamp,
    pub changed: Timestamp,
    /// The number of times that the policies were written.
    pub policies_version: u64,
    pub policies_changed: Timestamp,
    pub policies: Vec<Policy>,
    /// When a token of it was last accepted, to the hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used: Option<Timestamp>,
}

impl Record for Issuer {
    const NAME: &'static str = "issuer";
    const FORMAT: u8 = 2;

    fn format(&self) -> u8 {
        let is_new = self.policies.iter().any(|policy| policy.role == Some(Role::Auditor));
        if is_new { 2 } else { 1 }
    }
}

impl Issuer {
    /// The ID is made from the address, so that an organization has each issuer once.
    pub fn key(org: &OrgName, id: &Uuid) -> Key<Self> {
        Key::new(format!("ORG#{org}"), format!("{PREFIX}{id}"))
    }

    pub fn of_org(org: &OrgName) -> KeyPrefix<Self> {
        KeyPrefix::new(format!("ORG#{org}"), PREFIX)
    }
}

#[cfg(test)]
pub(super) mod examples {
    use serde_json::json;

    use super::*;
    use crate::domain::oidc::policy::{Decision, Permission, TokenKind};
    use crate::layout::formats::*;

    fn policies() -> Vec<Policy> {
        let rules = |rules: &[(&str, &str)]| {
            rules.iter().map(|(path, pattern)| ((*path).to_owned(), (*pattern).to_owned())).collect()
        };
        let plain = Policy {
            decision: Decision::Allow,
            token_type: TokenKind::Organization,
            team_name: None,
            user_login: None,
            runner: None,
            role: Some(Role::Plan),
            authorized_permissions: vec![Permission::Standard],
            rules: rules(&[("repository_owner", "acme"), ("sub", "repo:acme/*")]),
        };
        let team = Policy {
            token_type: TokenKind::Team,
            team_name: Some("web-*".to_owned()),
            role: None,
            ..plain.clone()
        };
        let personal = Policy {
            decision: Decision::Deny,
            token_type: TokenKind::Personal,
            user_login: Some(login("alice")),
            role: None,
            authorized_permissions: Vec::new(),
            rules: rules(&[("\"kubernetes.io\".namespace", "ci")]),
            ..plain.clone()
        };
        let admin = Policy { role: None, authorized_permissions: vec![Permission::Admin], ..plain.clone() };
        vec![plain, team, personal, admin]
    }

    pub(crate) fn read(files: &mut Files) {
        let plain = Issuer {
            name: "GitHub".to_owned(),
            url: IssuerUrl::parse("https://token.actions.githubusercontent.com").unwrap(),
            thumbprints: Vec::new(),
            keys: None,
            seconds_max: None,
            created: CREATED,
            changed: CREATED,
            policies_version: 0,
            policies_changed: CREATED,
            policies: Vec::new(),
            last_used: None,
        };
        files.hold("issuer.v1", &plain, b"");
        let full = Issuer {
            thumbprints: vec!["ab".repeat(32)],
            keys: Some(json!({ "keys": [{ "crv": "Ed25519", "kty": "OKP", "x": "A".repeat(43) }] })),
            seconds_max: Some(3600),
            changed: LATER,
            policies_version: 2,
            policies_changed: LATER,
            policies: policies(),
            last_used: Some(LATER),
            ..plain.clone()
        };
        files.hold("issuer-full.v1", &full, b"");
        let auditor = Policy { role: Some(Role::Auditor), ..policies().remove(0) };
        files.hold("issuer-auditor.v2", &Issuer { policies: vec![auditor], ..plain }, b"");
    }
}
