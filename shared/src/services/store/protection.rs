//! Refuses what the protection of a stack or a state forbids.

use crate::layout::{StackHead, StateHead};
use crate::services::Error;
use crate::services::error::{Protected, StackError, StateError};

/// Refuses to delete or destroy a protected stack.
///
/// # Errors
/// [`StackError::Protected`].
pub(crate) fn check_stack(head: &StackHead) -> Result<(), Error> {
    match &head.protection {
        Some(protection) => Err(StackError::Protected(Protected::stack(&head.address, protection)).into()),
        None => Ok(()),
    }
}

/// Refuses to delete or empty a protected state.
///
/// # Errors
/// [`StateError::Protected`].
pub(crate) fn check_state(head: &StateHead) -> Result<(), Error> {
    match &head.protection {
        Some(protection) => Err(StateError::Protected(Protected::state(&head.address, protection)).into()),
        None => Ok(()),
    }
}
