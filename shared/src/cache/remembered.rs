//! A bounded map whose entries have an age.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::ports::Timestamp;

/// A bounded map of values with the times at which they were stored.
pub(crate) struct Remembered<K, V>(Mutex<Generations<K, V>>);

/// Recently used entries, and older ones. An entry that is used moves to the new ones. When those are full,
/// they replace the old ones. So a dropped entry was not used while at least a full generation of others was.
struct Generations<K, V> {
    new: HashMap<K, (Timestamp, V)>,
    old: HashMap<K, (Timestamp, V)>,
}

impl<K, V> Default for Remembered<K, V> {
    fn default() -> Self {
        Self(Mutex::new(Generations { new: HashMap::new(), old: HashMap::new() }))
    }
}

/// Entries of a generation. A process that needs more at a time reads dropped entries again.
const GENERATION_MAX: usize = 2_000;

impl<K: Eq + Hash, V> Generations<K, V> {
    fn put(&mut self, key: K, entry: (Timestamp, V)) {
        if self.new.len() >= GENERATION_MAX && !self.new.contains_key(&key) {
            // Frees the memory of the old ones too.
            self.old = std::mem::take(&mut self.new);
        }
        self.old.remove(&key);
        self.new.insert(key, entry);
    }
}

impl<K: Eq + Hash, V: Clone> Remembered<K, V> {
    /// The cached value, if it was stored within the last `within`.
    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q, now: Timestamp, within: Duration) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((key, entry)) = map.old.remove_entry(key) {
            map.put(key, entry);
        }
        let (learned, value) = map.new.get(key)?;
        // If the clock jumped back, an entry seems to come from the future and is not used.
        (*learned <= now && now.since(*learned) <= within).then(|| value.clone())
    }

    pub(crate) fn put(&self, key: K, now: Timestamp, value: V) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).put(key, (now, value));
    }

    pub(crate) fn forget(&self, key: &K) {
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        map.new.remove(key);
        map.old.remove(key);
    }

    /// Forgets all values of which this is true. It reads every entry.
    pub(crate) fn forget_those(&self, goes: impl Fn(&V) -> bool) {
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        map.new.retain(|_, (_, value)| !goes(value));
        map.old.retain(|_, (_, value)| !goes(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_entry_is_dropped_first() {
        let (remembered, now) = (Remembered::<u64, u64>::default(), Timestamp::from_seconds(1));
        let get = |key: u64| remembered.get(&key, now, Duration::MAX);
        remembered.put(0, now, 0);
        for key in 1..5 * GENERATION_MAX as u64 {
            remembered.put(key, now, key);
            assert_eq!(get(0), Some(0), "it is used");
        }
        assert_eq!((get(1), get(5 * GENERATION_MAX as u64 - 1)), (None, Some(5 * GENERATION_MAX as u64 - 1)));
        let map = remembered.0.lock().unwrap();
        assert!(map.new.len() + map.old.len() <= 2 * GENERATION_MAX);
        drop(map);
        remembered.forget(&0);
        assert_eq!(get(0), None);
        remembered.put(7, now, 70);
        remembered.put(8, now, 80);
        remembered.forget_those(|value| *value == 70);
        assert_eq!((get(7), get(8)), (None, Some(80)));
    }
}
