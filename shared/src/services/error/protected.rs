//! The refusals of what a protection, or a person who holds a stack, forbids.

use crate::domain::names::{StackAddress, StateAddress};
use crate::domain::protection::{Hold, Protection};

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

/// A stack that a person holds by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnHold {
    address: StackAddress,
    hold: Hold,
}

impl OnHold {
    pub(crate) fn of(address: &StackAddress, hold: &Hold) -> Box<Self> {
        Box::new(Self { address: address.clone(), hold: hold.clone() })
    }
}

impl std::error::Error for OnHold {}

impl std::fmt::Display for OnHold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { address, hold: Hold { by, at, reason } } = self;
        write!(
            f,
            "stack {address} is held by {} since {}, with the reason {reason:?}, and no update starts: wait, or ask a \
             member to run `statewright stack release {address}`",
            by.login,
            at.to_rfc3339()
        )
    }
}
