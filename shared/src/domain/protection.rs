//! The protection of a stack or a state: it cannot be deleted or destroyed until an admin has lifted that.

use serde::{Deserialize, Serialize};

use super::hidden::has_hidden;
use super::update::Requester;
use crate::ports::Timestamp;

/// The longest reason, in characters.
pub const REASON_CHARS_MAX: usize = 500;

/// Who protected a stack or a state, when, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protection {
    pub by: Requester,
    pub at: Timestamp,
    /// One line, which everyone reads whom the protection stops.
    pub reason: String,
}

/// Who holds a stack by hand, when, and why: nothing updates it until somebody releases it. It has the same form.
pub type Hold = Protection;

impl Protection {
    /// A protection; `None` if the reason is empty, too long, not one line, or has hidden characters.
    pub fn new(by: Requester, at: Timestamp, reason: &str) -> Option<Self> {
        let reason = reason.trim();
        let is_line = !reason.is_empty() && !has_hidden(reason);
        (is_line && reason.chars().count() <= REASON_CHARS_MAX).then(|| Self {
            by,
            at,
            reason: reason.to_owned(),
        })
    }

    /// Whether the other one only repeats this one later.
    pub fn is_repeated_by(&self, other: &Self) -> bool {
        self.by == other.by && self.reason == other.reason
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::names::{Login, TokenName};
    use crate::domain::principal::Principal;

    fn protection(reason: &str, at: i64) -> Option<Protection> {
        let (login, token) = (Login::parse("alice").unwrap(), TokenName::parse("laptop").unwrap());
        Protection::new(Requester { login, token, of: Principal::User }, Timestamp(at), reason)
    }

    #[test]
    fn a_reason_is_one_line() {
        assert_eq!(protection(" it is production ", 1).unwrap().reason, "it is production");
        assert!(protection(&"é".repeat(REASON_CHARS_MAX), 1).is_some());
        for bad in ["", "  ", "two\nlines", "turned\u{202e}around", &"é".repeat(REASON_CHARS_MAX + 1)] {
            assert_eq!(protection(bad, 1), None, "{bad:?}");
        }
    }

    #[test]
    fn the_same_reason_of_the_same_caller_is_a_repeat() {
        let first = protection("production", 1).unwrap();
        assert!(first.is_repeated_by(&protection("production", 2).unwrap()));
        assert!(!first.is_repeated_by(&protection("audit", 1).unwrap()));
    }
}
