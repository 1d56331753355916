//! Errors of the use cases, in domain terms: one family for each room, and errors that any room can return.
//! Only `api::error` maps them to statuses and reasons.
//!
//! A variant carries data. Its text is written only here: what happened, what causes it, and what to do.

#![expect(
    missing_docs,
    reason = "the name of a member says what it is; a comment adds what the name does not"
)]

mod access;
mod environment;
mod identity;
mod input;
mod maintenance;
mod oidc;
mod protected;
mod sign_in;
mod stack;
mod state;
#[cfg(test)]
mod tests;
mod update;

pub use access::{AccessError, NotAllowed};
pub use environment::EnvironmentError;
pub use identity::{IdentityError, OperatorsAlone};
pub use input::InvalidInput;
pub use maintenance::MaintenanceError;
pub use oidc::{BadParameter, ExchangeError, OidcError};
pub use protected::{OnHold, Protected};
pub use sign_in::{BadToken, SignInError};
pub use stack::StackError;
pub use state::{ReservedName, StateError};
pub use update::{Fenced, Holder, Revoked, UpdateError};

use crate::account::Full;
use crate::domain::names::InvalidName;
use crate::domain::saves::DeltaError;
use crate::domain::sign_in::BadClaims;
use crate::layout::Broken;
use crate::ports::{BoxError, KeysError, PortError};

/// Why a use case refuses or fails.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request's input is invalid.
    #[error(transparent)]
    Invalid(#[from] InvalidInput),
    /// The input is longer than its limit.
    #[error("{what} of {bytes} bytes is too long: use at most {bytes_max} bytes")]
    TooLarge {
        /// The kind of input, as the error names it.
        what: &'static str,
        /// Its length in bytes; the limit plus one if reading stopped there.
        bytes: usize,
        /// The limit in bytes.
        bytes_max: usize,
    },
    /// The caller is not authenticated, or may not do this.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// An error about users, organizations, tokens or passwords.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// An error about issuers of tokens, or the exchange of one.
    #[error(transparent)]
    Oidc(Box<OidcError>),
    /// An error about signing in with a browser.
    #[error(transparent)]
    SignIn(#[from] SignInError),
    /// An error about a stack.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// An error about an update.
    #[error(transparent)]
    Update(#[from] UpdateError),
    /// An error about a Terraform state.
    #[error(transparent)]
    State(#[from] StateError),
    /// An error about an environment.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// An error about a copy or a backup of a store.
    #[error(transparent)]
    Maintenance(#[from] MaintenanceError),
    /// Other requests changed the named item at the moment of this one.
    #[error("others changed {0} at the same moment: try again")]
    Contended(&'static str),
    /// Other requests hold the memory that this request needs.
    #[error(transparent)]
    NoRoom(#[from] Full),
    /// A port failed.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The master key is disabled, deleted, or not accessible to the server. Requests that need no key still work.
    #[error("the master key cannot be used")]
    MasterKey(#[source] BoxError),
    /// Stored data is damaged. The text describes the damage, for the operator alone: clients get a fixed text, and no
    /// code decides by it. A sentence is all that it has to carry, because each kind of damage has other data.
    #[error("stored data cannot be used: {0}")]
    Broken(String),
    /// The index of a version's resources is damaged or missing. Its deployment is not, so the index can be made again. The
    /// text describes the damage, for the operator alone.
    #[error(
        "the index of a version's resources cannot be used: {0}; run `statewright stack index` to make it again"
    )]
    IndexDamaged(String),
    /// The program failed in a way that it rules out, so it has a bug. The text is for the operator alone, as that of
    /// [`Error::Broken`].
    #[error("a bug of this program: {0}")]
    Internal(String),
    /// A newer version of the program stored the data, so it is not damaged. The text is for the operator alone.
    #[error("stored data cannot be used: {0}")]
    TooNew(String),
}

impl From<InvalidName> for Error {
    fn from(error: InvalidName) -> Self {
        Self::Invalid(error.into())
    }
}

impl From<OidcError> for Error {
    fn from(error: OidcError) -> Self {
        Self::Oidc(Box::new(error))
    }
}

impl From<ExchangeError> for Error {
    fn from(error: ExchangeError) -> Self {
        OidcError::from(error).into()
    }
}

impl From<BadClaims> for Error {
    fn from(error: BadClaims) -> Self {
        Self::SignIn(error.into())
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
