//! Limits the concurrent requests of a caller.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::error::Failure;
use crate::domain::ids::UpdateId;
use crate::domain::update::Requester;

/// The caller that a request counts for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Holder {
    Person(Requester),
    Update(UpdateId),
}

/// Counts the concurrent requests of each caller.
#[derive(Debug)]
pub(super) struct ConcurrencyLimit {
    per_token_max: usize,
    under_way: Mutex<HashMap<Holder, usize>>,
}

impl ConcurrencyLimit {
    pub(super) fn new(per_token_max: usize) -> Self {
        Self { per_token_max, under_way: Mutex::default() }
    }

    /// Admits a request, which counts until the permit is dropped.
    pub(super) fn acquire(self: &Arc<Self>, holder: Holder) -> Result<Permit, Failure> {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        let count = under_way.entry(holder.clone()).or_insert(0);
        if *count >= self.per_token_max {
            return Err(Failure::TooManyRequests(self.per_token_max));
        }
        *count += 1;
        Ok(Permit { limit: Arc::clone(self), holder })
    }
}

/// An admitted request.
#[derive(Debug)]
pub(super) struct Permit {
    limit: Arc<ConcurrencyLimit>,
    holder: Holder,
}

impl Permit {
    /// The caller that the request counts for.
    pub(super) fn holder(&self) -> &Holder {
        &self.holder
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut under_way = self.limit.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = under_way.get_mut(&self.holder) {
            *count -= 1;
            if *count == 0 {
                under_way.remove(&self.holder);
            }
        }
    }
}
