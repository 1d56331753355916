//! What is wrong with a deployment.

use crate::domain::json::Malformed;

/// A text that is no deployment. The message says what was expected and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this is not a deployment as the CLI writes it: {0}")]
pub struct DeploymentError(pub(super) String);

impl From<Malformed> for DeploymentError {
    fn from(fault: Malformed) -> Self {
        Self(fault.to_string())
    }
}

/// What the CLI is told, in `metadata.integrity_error`, about a state that it will not work with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntegrityError {
    /// The version of the deployment's schema, as the CLI itself puts it here.
    pub version: String,
    /// What wrote the state.
    pub command: String,
    /// What is wrong with it.
    pub error: String,
}
