use serde::{Deserialize, Serialize};

use super::audit_record::AuditDay;
use super::audit_root::AuditRoot;
use super::key::Key;
use super::record::Record;
use crate::domain::names::OrgName;

/// Until when the sweep erased an audit trail, signed. Without it, a missing day was not erased by the sweep. Written
/// with the erasure of each day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditErased {
    /// The last day that was erased.
    pub until: AuditDay,
    /// The public half of the key that signed it, in base64.
    pub public: String,
    /// The signature of [`AuditErased::statement`], in base64.
    pub signature: String,
}

impl Record for AuditErased {
    const NAME: &'static str = "mark of erased audit records";
}

impl AuditErased {
    pub fn key(trail: Option<&OrgName>) -> Key<Self> {
        Key::new(AuditRoot::of_trail(trail).partition, "ERASED")
    }

    /// The text that is signed.
    pub fn statement(trail: Option<&OrgName>, until: AuditDay) -> String {
        format!("erased {} until {until}", trail.map_or("the server", OrgName::as_str))
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        let (public, signature) = ("ab".repeat(20), "cd".repeat(40));
        files.hold("audit-erased.v1", &AuditErased { until: AuditDay::of(CREATED), public, signature }, b"");
    }
}
