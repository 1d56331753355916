//! Errors of deployments.

use crate::domain::json::Malformed;

/// A text is not a deployment. The message says what was expected, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this is not a deployment as the CLI writes it: {0}")]
pub struct DeploymentError(pub(super) String);

impl From<Malformed> for DeploymentError {
    fn from(fault: Malformed) -> Self {
        Self(fault.to_string())
    }
}

/// What the server reports to the CLI, in `metadata.integrity_error`, about a state that the CLI will not
/// work with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntegrityError {
    /// The version of the deployment's schema, as the CLI itself writes it here.
    pub version: String,
    /// The command that wrote the state.
    pub command: String,
    pub error: String,
}
