//! Issuers, their policies, consents, and the exchange of tokens, in the shapes of Pulumi Cloud.
//!
//! Sources: pulumi v3.274.1, `pkg/backend/httpstate/client`; pulumi/pulumi-cloud-sdk v1.20261104.0, `apitype`; RFC 6749
//! and RFC 8693. Consents are of this server alone.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::Reason;
use crate::domain::oidc::policy::Policy;
use crate::layout::{Issuer as Record, IssuerConsent};
use crate::ports::Timestamp;

/// `POST /api/oauth/token`: a form as the CLI sends it, or JSON as the action for GitHub does. The last three are of
/// other grant types than the exchange.
#[derive(Debug, Default, Deserialize)]
pub struct TokenRequest {
    pub grant_type: Option<String>,
    pub audience: Option<String>,
    pub subject_token_type: Option<String>,
    pub subject_token: Option<String>,
    pub requested_token_type: Option<String>,
    /// Empty or absent for a token of the organization, `admin`, `team:NAME` or `user:LOGIN`.
    pub scope: Option<String>,
    /// Seconds.
    pub expiration: Option<i64>,
    /// The code of a login, for `authorization_code`.
    pub code: Option<String>,
    /// What proves that the same program began the login.
    pub code_verifier: Option<String>,
    /// A personal access token, for `refresh_token`: the answer has a short-lived one.
    pub refresh_token: Option<String>,
}

/// The answer with a token. Clients accept the status 200 only.
#[derive(Debug, Serialize, Deserialize)]
pub struct TokenAnswer {
    pub access_token: String,
    pub issued_token_type: String,
    /// Always `token`: the scheme of the `Authorization` header.
    pub token_type: String,
    /// Seconds.
    pub expires_in: u64,
    pub scope: String,
}

/// A refusal of the exchange (RFC 6749, section 5.2). One client prints the two members, the other the whole body.
#[derive(Debug, Serialize)]
pub struct TokenError {
    pub error: &'static str,
    pub error_description: String,
    /// The status, as other errors have it.
    pub code: u16,
    /// The text again, as other errors have it.
    pub message: String,
    pub reason: Reason,
}

/// `POST /api/orgs/{org}/oidc/issuers`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewIssuer {
    pub name: Option<String>,
    pub url: Option<String>,
    pub thumbprints: Option<Vec<String>>,
    /// A JSON Web Key Set, for an issuer that the server cannot reach.
    pub jwks: Option<Value>,
    /// Seconds.
    pub max_expiration: Option<i64>,
}

/// `PATCH /api/orgs/{org}/oidc/issuers/{issuer}`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EditIssuer {
    /// Required, although it need not change.
    pub name: Option<String>,
    pub thumbprints: Option<Vec<String>>,
    /// `null` lets the server fetch the keys.
    #[serde(default, deserialize_with = "given")]
    pub jwks: Option<Option<Value>>,
    /// Seconds; `null` for the longest lifetime of all.
    #[serde(default, deserialize_with = "given")]
    pub max_expiration: Option<Option<i64>>,
}

/// A member that is absent differs from one that is `null`.
fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// A registered issuer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Issuer {
    pub id: String,
    pub name: String,
    pub url: String,
    /// What its tokens have in `iss`: the same address.
    pub issuer: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thumbprints: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwks: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_expiration: Option<u32>,
    pub created: String,
    pub modified: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used: Option<String>,
}

impl Issuer {
    pub fn of(id: String, record: Record) -> Self {
        let url = record.url.to_string();
        Self {
            id,
            name: record.name,
            issuer: url.clone(),
            url,
            thumbprints: record.thumbprints,
            jwks: record.keys,
            max_expiration: record.seconds_max,
            created: record.created.to_rfc3339(),
            modified: record.changed.to_rfc3339(),
            last_used: record.last_used.map(Timestamp::to_rfc3339),
        }
    }
}

/// `GET /api/orgs/{org}/oidc/issuers`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Issuers {
    pub oidc_issuers: Vec<Issuer>,
}

/// The policies of an issuer.
#[derive(Debug, Serialize, Deserialize)]
pub struct Policies {
    /// The ID of the issuer.
    pub id: String,
    pub version: u64,
    pub created: String,
    pub modified: String,
    pub policies: Vec<Policy>,
}

impl Policies {
    pub fn of(id: String, issuer: Record) -> Self {
        Self {
            id,
            version: issuer.policies_version,
            created: issuer.created.to_rfc3339(),
            modified: issuer.policies_changed.to_rfc3339(),
            policies: issuer.policies,
        }
    }
}

/// `PATCH /api/orgs/{org}/auth/policies/{policy}`.
#[derive(Debug, Deserialize)]
pub struct NewPolicies {
    #[serde(default, deserialize_with = "or_empty")]
    pub policies: Vec<Policy>,
}

fn or_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Policy>, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// `POST /api/user/oidc/consents`.
#[derive(Debug, Deserialize)]
pub struct NewConsent {
    pub organization: String,
    /// The issuer's address or its ID.
    pub issuer: String,
}

/// A user's consent to personal tokens for the jobs of an issuer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Consent {
    pub organization: String,
    pub issuer_id: String,
    pub url: String,
    pub created: String,
}

impl From<IssuerConsent> for Consent {
    fn from(consent: IssuerConsent) -> Self {
        Self {
            organization: consent.org.to_string(),
            issuer_id: consent.issuer.to_string(),
            url: consent.url.to_string(),
            created: consent.at.to_rfc3339(),
        }
    }
}

/// `GET /api/user/oidc/consents`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Consents {
    pub consents: Vec<Consent>,
}
