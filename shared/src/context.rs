//! The bundle of ports that a use case gets, with what a process remembers between requests.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::domain::ids::{StackId, UpdateId};
use crate::domain::names::StackAddress;
use crate::layout::records::{Token, User};
use crate::ports::{Blobs, Clock, DataKey, Ids, Keys, Ledger, Timestamp};

/// Names, tokens and memberships are believed for so long without asking again, so a revocation takes as long.
pub const REMEMBERED_FOR: Duration = Duration::from_secs(60);

/// An unwrapped data key is kept for so long.
pub const DATA_KEY_REMEMBERED_FOR: Duration = Duration::from_secs(300);

/// A remembered tail of a log older than this is checked beside the append that relies on it.
pub const TAIL_REMEMBERED_FOR: Duration = Duration::from_secs(1);

/// What every use case works with.
pub struct Context {
    /// Small items.
    pub ledger: Arc<dyn Ledger>,
    /// Bytes.
    pub blobs: Arc<dyn Blobs>,
    /// Data keys.
    pub keys: Arc<dyn Keys>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub ids: Arc<dyn Ids>,
    /// Names this process where it publishes. A process that takes the place of one that is surely dead (the one
    /// server on a data folder) has the same name, so it need not wait for it.
    pub publisher: String,
    pub(crate) memory: Memory,
}

impl Context {
    /// A context over these ports.
    pub fn new(
        ledger: Arc<dyn Ledger>,
        blobs: Arc<dyn Blobs>,
        keys: Arc<dyn Keys>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
        publisher: String,
    ) -> Self {
        Self { ledger, blobs, keys, clock, ids, publisher, memory: Memory::default() }
    }

    /// Now.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

/// What a process remembers. All of it may be forgotten at any time: it saves calls, and nothing is decided by it.
#[derive(Default)]
pub(crate) struct Memory {
    /// Access tokens by hash, with their owners.
    pub(crate) callers: Remembered<String, (Token, User)>,
    /// Stack names. The head names its stack, and is compared.
    pub(crate) names: Remembered<StackAddress, StackId>,
    /// Tails of logs: the number of the last slot.
    pub(crate) tails: Remembered<UpdateId, u64>,
    /// Unwrapped data keys, by stack and key number.
    pub(crate) data_keys: Remembered<(StackId, u32), DataKey>,
    /// The newest data key number of a stack.
    pub(crate) newest_keys: Remembered<StackId, u32>,
    /// Public halves of signing keys. They never change.
    pub(crate) verifying_keys: Remembered<String, [u8; 32]>,
    /// The signing key.
    pub(crate) signer: Remembered<(), (String, DataKey)>,
    /// Updates that this process publishes right now: whoever else wants to waits for it.
    pub(crate) publishing: Mutex<HashMap<UpdateId, Arc<tokio::sync::Mutex<()>>>>,
}

/// A bounded map from keys to values with the time at which they were learned.
pub(crate) struct Remembered<K, V>(Mutex<HashMap<K, (Timestamp, V)>>);

impl<K, V> Default for Remembered<K, V> {
    fn default() -> Self {
        Self(Mutex::new(HashMap::new()))
    }
}

/// More than this is forgotten all at once; a process that serves so much at a time relearns quickly.
const REMEMBERED_ENTRIES_MAX: usize = 10_000;

impl<K: Eq + Hash, V: Clone> Remembered<K, V> {
    /// What is remembered, if it was learned within the last `within`.
    pub(crate) fn get(&self, key: &K, now: Timestamp, within: Duration) -> Option<V> {
        let map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (learned, value) = map.get(key)?;
        // A clock that jumped back makes an entry look as if it came from the future: it is not believed.
        (*learned <= now && now.since(*learned) <= within).then(|| value.clone())
    }

    pub(crate) fn put(&self, key: K, now: Timestamp, value: V) {
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if map.len() >= REMEMBERED_ENTRIES_MAX {
            map.clear();
        }
        map.insert(key, (now, value));
    }

    pub(crate) fn forget(&self, key: &K) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}
