//! Refusals.

use serde::{Deserialize, Serialize};

use crate::domain::names::OrgName;
use crate::wire::Reason;

/// The body of every error. The client reads `code`, not the HTTP status.
#[derive(Debug, Serialize, Deserialize)]
pub struct ErrorBody {
    /// The HTTP status.
    pub code: u16,
    /// The text that the CLI shows.
    pub message: String,
    /// The same in one word, which stays when messages change.
    pub reason: Reason,
}

/// A refusal for want of a sign-in. The CLI shows its user the address of the page at which to sign in again, if it knows
/// a console: pulumi v3.274.1, `pkg/backend/httpstate/client/api.go`.
#[derive(Debug, Serialize)]
pub struct SignInAgain {
    /// The HTTP status.
    pub code: u16,
    /// The text of the error.
    pub message: String,
    /// The same in one word.
    pub reason: Reason,
    /// What the CLI makes the address of.
    pub errors: [SignInLink; 1],
}

/// The organization whose page leads to the sign-in: `/signin/sso/{organization}/reauth`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SignInLink {
    /// The word for which the CLI looks.
    pub error_type: &'static str,
    /// The organization.
    pub attribute: String,
}

impl SignInAgain {
    /// The refusal of a user of this organization.
    pub fn of(org: &OrgName, code: u16, message: String, reason: Reason) -> Self {
        let link = SignInLink { error_type: "saml_login_required", attribute: org.to_string() };
        Self { code, message, reason, errors: [link] }
    }
}
