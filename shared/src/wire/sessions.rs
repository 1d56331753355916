//! The browsers in which people are signed in. These shapes are of this server alone.

use serde::{Deserialize, Serialize};

use crate::layout::WebSession;

/// The sessions of a person.
#[derive(Debug, Serialize, Deserialize)]
pub struct Sessions {
    /// Newest first.
    pub sessions: Vec<Session>,
}

/// A session without its secret.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// A part of a hash. With it, a session is ended; it opens none.
    pub id: String,
    /// RFC 3339.
    pub signed_in: String,
    /// RFC 3339.
    pub until: String,
    /// `provider`, `password` or `invitation`.
    pub by: String,
    /// The provider; `null` for the other ways.
    pub provider: Option<String>,
    /// The browser, as it named itself.
    pub browser: String,
}

impl Session {
    pub fn of(id: String, record: WebSession) -> Self {
        Self {
            id,
            signed_in: record.signed_in.to_rfc3339(),
            until: record.until.to_rfc3339(),
            by: record.by.as_str().to_owned(),
            provider: record.by.provider().map(ToString::to_string),
            browser: record.browser,
        }
    }
}

/// The answer to the end of all sessions of a member.
#[derive(Debug, Serialize, Deserialize)]
pub struct EndedSessions {
    /// How many were ended.
    pub ended: usize,
}
