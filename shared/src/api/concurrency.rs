//! How many requests one caller may have under way at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::error::Failure;
use crate::domain::ids::UpdateId;
use crate::domain::update::Requester;

/// Whose requests are counted together: those that show the same token.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Who {
    Person(Requester),
    Update(UpdateId),
}

/// Counts the requests that are under way for each token.
#[derive(Debug)]
pub(super) struct Gate {
    per_token_max: usize,
    inside: Mutex<HashMap<Who, usize>>,
}

impl Gate {
    pub(super) fn new(per_token_max: usize) -> Self {
        Self { per_token_max, inside: Mutex::default() }
    }

    /// Lets a request in until the pass is dropped.
    pub(super) fn enter(self: &Arc<Self>, who: Who) -> Result<Pass, Failure> {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        let count = inside.entry(who.clone()).or_insert(0);
        if *count >= self.per_token_max {
            return Err(Failure::TooManyRequests(self.per_token_max));
        }
        *count += 1;
        Ok(Pass { gate: Arc::clone(self), who })
    }
}

/// A request that is inside.
#[derive(Debug)]
pub(super) struct Pass {
    gate: Arc<Gate>,
    who: Who,
}

impl Pass {
    /// Whose request it is.
    pub(super) fn who(&self) -> &Who {
        &self.who
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut inside = self.gate.inside.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = inside.get_mut(&self.who) {
            *count -= 1;
            if *count == 0 {
                inside.remove(&self.who);
            }
        }
    }
}
