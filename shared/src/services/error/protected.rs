//! The refusal of what a protection forbids.

use crate::domain::names::{StackAddress, StateAddress};
use crate::domain::protection::Protection;

/// A stack or a state that is protected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protected {
    /// `stack` or `state`.
    what: &'static str,
    /// The kind, as the option of a command names it.
    kind: &'static str,
    address: String,
    protection: Protection,
}

impl Protected {
    pub(crate) fn stack(address: &StackAddress, protection: &Protection) -> Box<Self> {
        Box::new(Self {
            what: "stack",
            kind: "stack",
            address: address.to_string(),
            protection: protection.clone(),
        })
    }

    pub(crate) fn state(address: &StateAddress, protection: &Protection) -> Box<Self> {
        Box::new(Self {
            what: "state",
            kind: "tfstate",
            address: address.to_string(),
            protection: protection.clone(),
        })
    }

    /// The address of the stack or the state.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }
}

impl std::error::Error for Protected {}

impl std::fmt::Display for Protected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { what, kind, address, protection: Protection { by, at, reason } } = self;
        write!(
            f,
            "{what} {address} is protected by {} since {}, with the reason {reason:?}: ask an admin to run \
             `statewright unprotect {address} --kind {kind}`",
            by.login,
            at.to_rfc3339()
        )
    }
}
