//! Wrong guesses, and where they come from.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::ports::Timestamp;

/// Sources whose wrong guesses are counted, at most.
const SOURCES_MAX: usize = 10_000;

/// The wrong passwords for one user, or the wrong passwords or the refused proofs of one source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failures {
    /// Wrong ones since the last correct one.
    pub(crate) in_a_row: u32,
    /// The time before which none is checked.
    pub(crate) refused_until: Timestamp,
}

impl Default for Failures {
    fn default() -> Self {
        Self { in_a_row: 0, refused_until: Timestamp(0) }
    }
}

/// The wrong guesses of each source.
#[derive(Default)]
pub(crate) struct Sources(Mutex<HashMap<String, Failures>>);

impl Sources {
    /// The wrong guesses of a source.
    pub(crate) fn failures(&self, source: &str) -> Failures {
        let map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        map.get(source).copied().unwrap_or_default()
    }

    /// Counts a wrong guess of a source.
    pub(crate) fn count(&self, source: &str, count: impl FnOnce(&mut Failures)) {
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if map.len() >= SOURCES_MAX && !map.contains_key(source) {
            forget_fewest(&mut map);
        }
        count(map.entry(source.to_owned()).or_default());
    }

    /// Forgets the wrong guesses of a source, because one was right.
    pub(crate) fn forget(&self, source: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(source);
    }
}

/// Forgets a quarter of the sources: those with the fewest wrong guesses, and of these the oldest.
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
        let sources = Sources::default();
        let fails = |source: &str, times: u32| sources.count(source, |failures| failures.in_a_row += times);
        fails("one", 11);
        for number in 0..3 * SOURCES_MAX {
            fails(&format!("other-{number}"), 1);
        }
        assert_eq!(sources.failures("one").in_a_row, 11);
        assert!(sources.0.lock().unwrap().len() <= SOURCES_MAX, "it is bounded");
        sources.forget("one");
        assert_eq!(sources.failures("one").in_a_row, 0);
    }
}
