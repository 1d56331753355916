//! The caches of a process. Any entry may be dropped at any time: a cache saves calls and never decides
//! anything.

mod passwords;

use std::borrow::Borrow;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub(crate) use self::passwords::{Failures, Passwords};
use crate::domain::claims::Claims;
use crate::domain::ids::{KeyOwner, StackId, StateId, UpdateId};
use crate::domain::names::{StackAddress, StateAddress};
use crate::domain::saves::Saved;
use crate::layout::{Token, User};
use crate::ports::{DataKey, Timestamp};

/// The time for which names, tokens and memberships are used from the cache. A revocation takes effect after
/// at most this time.
pub const REMEMBERED_FOR: Duration = Duration::from_secs(60);

/// The time for which an unwrapped data key is kept.
pub const DATA_KEY_REMEMBERED_FOR: Duration = Duration::from_secs(300);

/// The time for which a cached tail of a log is trusted. An older one is checked while the append that relies
/// on it runs.
pub const TAIL_REMEMBERED_FOR: Duration = Duration::from_secs(1);

/// Bytes of the last saved texts of running updates, for a dozen updates of large stacks. Deltas to a cached
/// text need not read the log; deltas to a longer text read it each time.
const TEXTS_BYTES_MAX: usize = 128 << 20;

/// The caches of a process.
#[derive(Default)]
pub(crate) struct Memory {
    /// Access tokens by hash, with their owners; client certificates and passwords too.
    pub(crate) callers: Remembered<String, (Token, User)>,
    /// Limits on password checks.
    pub(crate) passwords: Passwords,
    /// Stack ids by name. The head stores its own name, and readers compare it.
    pub(crate) names: Remembered<StackAddress, StackId>,
    /// State ids by name, in the same way.
    pub(crate) state_names: Remembered<StateAddress, StateId>,
    /// The number of the last slot of each log.
    pub(crate) tails: Remembered<UpdateId, u64>,
    /// The texts that running updates saved last.
    pub(crate) texts: Texts,
    /// Unwrapped data keys, by owner and key number.
    pub(crate) data_keys: Remembered<(KeyOwner, u32), DataKey>,
    /// The newest data key number of an owner.
    pub(crate) newest_keys: Remembered<KeyOwner, u32>,
    /// The public half of each signing key, and when another key replaced it.
    pub(crate) verifying_keys: Remembered<String, ([u8; 32], Option<Timestamp>)>,
    /// The last update token of each update and its claims, whose signature was valid.
    pub(crate) claims: Remembered<UpdateId, (String, Claims)>,
    /// The signing key.
    pub(crate) signer: Remembered<(), (String, DataKey)>,
    /// Hosts in requests for a stack whose state names another host: the log reports each once.
    pub(crate) strange_hosts: Remembered<String, ()>,
    /// Updates that this process is publishing. Other callers wait for the lock.
    pub(crate) publishing: Mutex<HashMap<UpdateId, Arc<tokio::sync::Mutex<()>>>>,
}

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
}

impl Memory {
    /// Forgets what is only needed while the update runs.
    pub(crate) fn forget_update(&self, id: UpdateId) {
        self.tails.forget(&id);
        self.claims.forget(&id);
        drop(self.texts.take(id));
    }
}

/// The last text of a log, and the number of the slot up to which it is the last.
#[derive(Debug, Clone)]
pub(crate) struct LastText {
    pub(crate) slot: u64,
    pub(crate) saved: Option<Saved>,
}

impl LastText {
    fn bytes(&self) -> usize {
        // An entry without a text costs memory too, which bounds the number of entries.
        4096 + self.saved.as_ref().map_or(0, |saved| saved.text.len())
    }
}

/// The last texts of logs. The least recently used are dropped first.
#[derive(Default)]
pub(crate) struct Texts(Mutex<VecDeque<(UpdateId, LastText)>>);

impl Texts {
    /// Takes the entry of a log out. The caller appends to the log, and puts the new last text back.
    pub(crate) fn take(&self, id: UpdateId) -> Option<LastText> {
        let mut texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let index = texts.iter().position(|(known, _)| *known == id)?;
        texts.remove(index).map(|(_, text)| text)
    }

    pub(crate) fn put(&self, id: UpdateId, text: LastText) {
        let mut texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        texts.retain(|(known, _)| *known != id);
        texts.push_back((id, text));
        let mut bytes: usize = texts.iter().map(|(_, text)| text.bytes()).sum();
        while bytes > TEXTS_BYTES_MAX {
            let Some((_, oldest)) = texts.pop_front() else { return };
            bytes -= oldest.bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use uuid::Uuid;

    use super::*;

    fn text(bytes: usize) -> LastText {
        LastText { slot: 1, saved: Some(Saved { sequence: 1, text: vec![b' '; bytes].into() }) }
    }

    fn id(number: u128) -> UpdateId {
        UpdateId::new(Uuid::from_u128(number))
    }

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
    }

    #[test]
    fn texts_are_limited_by_bytes_and_the_oldest_is_dropped_first() {
        let texts = Texts::default();
        let third = TEXTS_BYTES_MAX / 3 - 4096;
        for number in 1..=4 {
            texts.put(id(number), text(third));
        }
        assert!(texts.take(id(1)).is_none());
        for number in 2..=4 {
            let taken = texts.take(id(number)).and_then(|text| text.saved).map(|saved| saved.text.len());
            assert_eq!(taken, Some(third), "{number}");
        }
        texts.put(id(5), text(TEXTS_BYTES_MAX));
        assert!(texts.take(id(5)).is_none(), "one that is too long is not kept");
        texts.put(id(6), LastText { slot: 1, saved: None });
        texts.put(id(6), LastText { slot: 2, saved: Some(Saved { sequence: 1, text: Bytes::new() }) });
        assert_eq!(texts.take(id(6)).map(|text| text.slot), Some(2));
        assert!(texts.take(id(6)).is_none(), "the last put counts");
    }
}
