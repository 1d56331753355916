//! A stack that was found.

use crate::domain::ids::StackId;
use crate::layout::{StackHead, Stored};

/// A stack that was found.
#[derive(Debug, Clone)]
pub struct Located {
    /// The ID of the stack.
    pub id: StackId,
    /// The head, as it was read.
    pub head: Stored<StackHead>,
}
