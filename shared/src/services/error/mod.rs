//! Why a use case refuses, in the words of the domain: a family for each room, and what every room may meet.
//! `api::error` alone turns these into statuses and reasons.
//!
//! A variant carries data. Its text is written here, and nowhere else: what happened, what causes it, and what to do.

mod access;
mod environment;
mod identity;
mod input;
mod maintenance;
mod stack;
mod state;
#[cfg(test)]
mod tests;
mod update;

pub use access::{AccessError, NotAllowed};
pub use environment::EnvironmentError;
pub use identity::IdentityError;
pub use input::InvalidInput;
pub use maintenance::MaintenanceError;
pub use stack::StackError;
pub use state::{ReservedName, StateError};
pub use update::{Fenced, Holder, Revoked, UpdateError};

use crate::account::Full;
use crate::domain::names::InvalidName;
use crate::domain::saves::DeltaError;
use crate::layout::Broken;
use crate::ports::{BoxError, KeysError, PortError};

/// Why a use case refuses or cannot answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What was sent cannot be used.
    #[error(transparent)]
    Invalid(#[from] InvalidInput),
    /// What was sent is longer than the limit.
    #[error("{what} of {bytes} bytes is too long: use at most {bytes_max} bytes")]
    TooLarge {
        /// The kind of thing.
        what: &'static str,
        /// Its length; the limit plus one where reading stopped there.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// The caller is not let in, or may not do this.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// About users, organizations, tokens and passwords.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// About a stack.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// About an update.
    #[error(transparent)]
    Update(#[from] UpdateError),
    /// About a Terraform state.
    #[error(transparent)]
    State(#[from] StateError),
    /// About an environment.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// About a copy or a backup of a store.
    #[error(transparent)]
    Maintenance(#[from] MaintenanceError),
    /// Others changed the item at every attempt. It carries the item's name.
    #[error("others changed {0} at every attempt: try again")]
    Contended(&'static str),
    /// Others hold the memory that the request needs.
    #[error(transparent)]
    NoRoom(#[from] Full),
    /// A port failed.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The master key is disabled, gone, or forbidden to the server; what needs none goes on.
    #[error("the master key cannot be used")]
    MasterKey(#[source] BoxError),
    /// What is stored does not read back. The text is for the operator alone, and says what is damaged.
    #[error("what is stored cannot be used: {0}")]
    Broken(String),
    /// A newer version of the program stored it, so it is not damaged. The text is for the operator alone.
    #[error("what is stored cannot be used: {0}")]
    TooNew(String),
}

impl From<InvalidName> for Error {
    fn from(error: InvalidName) -> Self {
        Self::Invalid(error.into())
    }
}

impl From<DeltaError> for Error {
    fn from(error: DeltaError) -> Self {
        Self::Update(UpdateError::NoFit(error))
    }
}

impl From<Fenced> for Error {
    fn from(error: Fenced) -> Self {
        Self::Update(error.into())
    }
}

impl From<Broken> for Error {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::TooNew { .. } => Self::TooNew(broken.to_string()),
            Broken::Damaged { .. } => Self::Broken(broken.to_string()),
        }
    }
}

impl From<KeysError> for Error {
    fn from(error: KeysError) -> Self {
        match error {
            KeysError::Mismatch => Self::Broken(error.to_string()),
            KeysError::Unusable(source) => Self::MasterKey(source),
            KeysError::Port(port) => Self::Port(port),
        }
    }
}
