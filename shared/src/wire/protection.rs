//! The protection of a stack or a state, as clients send and see it. Pulumi Cloud has none.

use serde::{Deserialize, Serialize};

use crate::domain::protection::Protection as Stored;

/// The body that protects.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewProtection {
    /// One line, which everyone reads whom the protection stops.
    pub reason: String,
}

/// The body that holds a stack by hand.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewHold {
    /// One line, which everyone reads whom the hold stops.
    pub reason: String,
}

/// A protection, or a hold.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Protection {
    /// The login of the user, or the name of the machine's organization.
    pub by: String,
    /// The name of the token.
    pub token: String,
    /// When, RFC 3339.
    pub at: String,
    pub reason: String,
}

impl From<Stored> for Protection {
    fn from(Stored { by, at, reason }: Stored) -> Self {
        Self { by: by.login.into(), token: by.token.into(), at: at.to_rfc3339(), reason }
    }
}
