use serde::{Deserialize, Serialize};

use super::key::{Key, KeyPrefix};
use super::record::Record;
use crate::domain::names::ProviderName;
use crate::domain::role::Role;
use crate::domain::sign_in::SignInRule;
use crate::ports::Timestamp;

const PARTITION: &str = "SIGN-IN";
const PREFIX: &str = "PROVIDER#";

/// An OpenID Connect provider that people sign in with. Written when the operator adds it or changes its rules.
/// The tail is the client secret, encrypted; empty for a client without one. Format 1 had no role `auditor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignInProvider {
    pub name: ProviderName,
    /// The name on the sign-in page.
    pub title: String,
    /// The issuer, exactly as in its ID tokens.
    pub issuer: String,
    pub client_id: String,
    /// The address of this server that the provider knows, such as `https://state.example.com`.
    pub server: String,
    /// Scopes to ask for in addition to `openid`.
    pub scopes: Vec<String>,
    /// The claim from which the login of a new user is made.
    pub login_claim: String,
    /// The claim with the groups.
    pub groups_claim: String,
    /// Days without a sign-in after which the tokens of the provider's users stop.
    pub days: u32,
    pub rules: Vec<SignInRule>,
    pub created: Timestamp,
}

impl Record for SignInProvider {
    const NAME: &'static str = "provider of sign-ins";
    const FORMAT: u8 = 2;

    fn format(&self) -> u8 {
        let is_new = self.rules.iter().any(|rule| rule.role == Role::Auditor);
        if is_new { 2 } else { 1 }
    }
}

impl SignInProvider {
    pub fn key(name: &ProviderName) -> Key<Self> {
        Key::new(PARTITION, format!("{PREFIX}{name}"))
    }

    pub fn all() -> KeyPrefix<Self> {
        KeyPrefix::new(PARTITION, PREFIX)
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::domain::names::{OrgName, TeamName};
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        let org = OrgName::parse("acme").unwrap();
        let provider = SignInProvider {
            name: ProviderName::parse("corp").unwrap(),
            title: "Corp".to_owned(),
            issuer: "https://id.example.com".to_owned(),
            client_id: "statewright".to_owned(),
            server: "https://state.example.com".to_owned(),
            scopes: vec!["profile".to_owned(), "groups".to_owned()],
            login_claim: "preferred_username".to_owned(),
            groups_claim: "groups".to_owned(),
            days: 30,
            rules: vec![SignInRule { group: "dev-*".to_owned(), org, role: Role::Apply, team: None }],
            created: CREATED,
        };
        files.hold("sign-in-provider.v1", &provider, b"\x01sealed");
        let mut with_team = provider;
        with_team.rules[0].team = TeamName::parse("web").ok();
        files.hold("sign-in-provider-team.v1", &with_team, b"");
        let mut with_auditor = with_team;
        with_auditor.rules[0].role = Role::Auditor;
        files.hold("sign-in-provider-auditor.v2", &with_auditor, b"");
    }
}
