//! Limits on proofs of principals of AWS: to check one, this server sends a request to AWS.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Semaphore;

use super::Failures;

/// Requests to AWS at once, at most. Each holds a connection for some 100 ms.
const PROOFS_AT_ONCE_MAX: usize = 16;

/// Sources whose refused proofs are counted, at most.
const SOURCES_MAX: usize = 10_000;

/// Limits the number and the rate of requests to AWS.
pub(crate) struct Proofs {
    /// A permit for each request that may be under way.
    pub(crate) slots: Semaphore,
    /// The refused proofs of each source.
    failures: Mutex<HashMap<String, Failures>>,
}

impl Default for Proofs {
    fn default() -> Self {
        Self { slots: Semaphore::new(PROOFS_AT_ONCE_MAX), failures: Mutex::default() }
    }
}

impl Proofs {
    /// The refused proofs of a source.
    pub(crate) fn failures(&self, source: &str) -> Failures {
        let map = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        map.get(source).copied().unwrap_or_default()
    }

    /// Counts a refused proof of a source.
    pub(crate) fn count(&self, source: &str, count: impl FnOnce(&mut Failures)) {
        let mut map = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if map.len() >= SOURCES_MAX && !map.contains_key(source) {
            forget_fewest(&mut map);
        }
        count(map.entry(source.to_owned()).or_default());
    }

    /// Forgets the refused proofs of a source, because one was accepted.
    pub(crate) fn forget(&self, source: &str) {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).remove(source);
    }
}

/// Forgets a quarter of the sources: those with the fewest refused proofs, and of these the oldest.
fn forget_fewest(map: &mut HashMap<String, Failures>) {
    let mut counts: Vec<_> = map
        .iter()
        .map(|(source, failures)| (failures.in_a_row, failures.refused_until, source.clone()))
        .collect();
    counts.sort();
    for (_, _, source) in counts.into_iter().take(SOURCES_MAX / 4) {
        map.remove(&source);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_other_sources_does_not_clear_a_count() {
        let proofs = Proofs::default();
        let fails = |source: &str, times: u32| proofs.count(source, |failures| failures.in_a_row += times);
        fails("one", 11);
        for number in 0..3 * SOURCES_MAX {
            fails(&format!("other-{number}"), 1);
        }
        assert_eq!(proofs.failures("one").in_a_row, 11);
        assert!(proofs.failures.lock().unwrap().len() <= SOURCES_MAX, "it is bounded");
        proofs.forget("one");
        assert_eq!(proofs.failures("one").in_a_row, 0);
    }
}
