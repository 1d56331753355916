//! The bundle of ports that a use case gets, with what a process remembers between requests.

use std::borrow::Borrow;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use argon2::Block;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::domain::claims::Claims;
use crate::domain::ids::{KeyOwner, StackId, StateId, UpdateId};
use crate::domain::names::{Login, StackAddress, StateAddress};
use crate::domain::saves::Saved;
use crate::domain::update::Update;
use crate::layout::records::{Token, User};
use crate::ports::{Blobs, Clock, DataKey, Ids, Keys, Ledger, Timestamp};

/// Names, tokens and memberships are believed for so long without asking again, so a revocation takes as long.
pub const REMEMBERED_FOR: Duration = Duration::from_secs(60);

/// An unwrapped data key is kept for so long.
pub const DATA_KEY_REMEMBERED_FOR: Duration = Duration::from_secs(300);

/// A remembered tail of a log older than this is checked beside the append that relies on it.
pub const TAIL_REMEMBERED_FOR: Duration = Duration::from_secs(1);

/// So many bytes of texts that running updates saved last are remembered, so that a delta need not read the log: those of
/// a dozen updates of large stacks. A longer one is read from the log for each delta.
const TEXTS_BYTES_MAX: usize = 128 << 20;

/// What the operator chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Clients without a journal are offered to send deltas between texts of at least so many bytes; `None` for no
    /// offer. See decision 4.
    pub delta_cutoff_bytes: Option<u64>,
    /// What is kept, and for how long.
    pub retention: Retention,
    /// How long Terraform states may be.
    pub states: StateLimits,
}

impl Settings {
    /// What holds where the operator chose nothing.
    pub const DEFAULT: Self =
        Self { delta_cutoff_bytes: None, retention: Retention::DEFAULT, states: StateLimits::SERVER };
}

/// How long a Terraform state may be, in bytes as its client sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateLimits {
    /// A longer one is refused. That is after the infrastructure has changed, so this is high.
    pub bytes_max: usize,
    /// Whoever writes one as long as this is warned.
    pub warn_from: usize,
    /// A state whose last version is as long as this cannot be locked: whoever would write the next one learns before the
    /// infrastructure changes that there is no way for it. `None` where nothing but `bytes_max` is in the way.
    pub no_lock_from: Option<usize>,
}

impl StateLimits {
    /// Where requests may be as long as they are.
    pub const SERVER: Self = Self { bytes_max: 256 << 20, warn_from: 10 << 20, no_lock_from: None };

    /// Where a gateway takes no longer requests than this: a warning from half of it, and no locks from nine tenths.
    pub const fn of_gateway(bytes_max: usize) -> Self {
        Self { bytes_max, warn_from: bytes_max / 2, no_lock_from: Some(bytes_max / 10 * 9) }
    }

    /// These, where a gateway takes no longer requests than that.
    #[must_use]
    pub fn behind_gateway(self, bytes_max: usize) -> Self {
        let gateway = Self::of_gateway(bytes_max);
        Self {
            bytes_max: self.bytes_max.min(gateway.bytes_max),
            warn_from: self.warn_from.min(gateway.warn_from),
            no_lock_from: self.no_lock_from.into_iter().chain(gateway.no_lock_from).min(),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What is kept, and for how long. The sweeper judges each thing when it is due, with the settings of that day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// The newest versions of a stack that are kept; `None` for all.
    pub versions: Option<NonZeroU64>,
    /// An update's log is kept for so long after its end.
    pub logs: Duration,
    /// An update's events are kept for so long after its end.
    pub events: Duration,
    /// A removed stack can be brought back for so long, and so can a removed state.
    pub removed_stacks: Duration,
    /// The newest versions of a Terraform state that are kept; `None` for all.
    pub state_versions: Option<NonZeroU64>,
    /// A write of a Terraform state that was refused is kept for so long.
    pub rejected_states: Duration,
}

impl Retention {
    /// What is kept where the operator chose nothing.
    pub const DEFAULT: Self = Self {
        versions: None,
        logs: Duration::from_secs(90 * DAY_SECONDS),
        events: Duration::from_secs(365 * DAY_SECONDS),
        removed_stacks: Duration::from_secs(30 * DAY_SECONDS),
        state_versions: None,
        rejected_states: Duration::from_secs(30 * DAY_SECONDS),
    };
}

const DAY_SECONDS: u64 = 24 * 3600;

/// What this process may do beside reading and writing the ledger. A server may do all of it; a function no more than its role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    /// It may publish an update that is over. Where it may not, it shows a stack as its log stands, and leaves the rest to who
    /// may.
    pub publish: bool,
    /// It has blobs to write.
    pub blobs: bool,
    /// It has keys to open.
    pub keys: bool,
}

impl Rights {
    /// Those of a server.
    pub const ALL: Self = Self { publish: true, blobs: true, keys: true };
}

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
    /// What the operator chose.
    pub settings: Settings,
    /// What this process may do.
    pub rights: Rights,
    /// Hears of each update that ends though no one asks for it. Set where an audit log is kept.
    pub(crate) on_lapse: OnceLock<OnLapse>,
    pub(crate) memory: Memory,
}

/// Hears of an update whose lease was over.
pub(crate) type OnLapse = Box<dyn Fn(UpdateId, &Update) + Send + Sync>;

impl Context {
    /// A context over these ports, with the default settings and all rights.
    pub fn new(
        ledger: Arc<dyn Ledger>,
        blobs: Arc<dyn Blobs>,
        keys: Arc<dyn Keys>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
        publisher: String,
    ) -> Self {
        Self {
            ledger,
            blobs,
            keys,
            clock,
            ids,
            publisher,
            settings: Settings::default(),
            rights: Rights::ALL,
            on_lapse: OnceLock::new(),
            memory: Memory::default(),
        }
    }

    /// Now.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

/// What a process remembers. All of it may be forgotten at any time: it saves calls, and nothing is decided by it.
#[derive(Default)]
pub(crate) struct Memory {
    /// Access tokens by hash, with their owners; client certificates and passwords too.
    pub(crate) callers: Remembered<String, (Token, User)>,
    /// How passwords are looked at.
    pub(crate) passwords: Passwords,
    /// Stack names. The head names its stack, and is compared.
    pub(crate) names: Remembered<StackAddress, StackId>,
    /// Names of Terraform states, in the same way.
    pub(crate) state_names: Remembered<StateAddress, StateId>,
    /// Tails of logs: the number of the last slot.
    pub(crate) tails: Remembered<UpdateId, u64>,
    /// The texts that running updates saved last.
    pub(crate) texts: Texts,
    /// Unwrapped data keys, by owner and key number.
    pub(crate) data_keys: Remembered<(KeyOwner, u32), DataKey>,
    /// The newest data key number of an owner.
    pub(crate) newest_keys: Remembered<KeyOwner, u32>,
    /// Public halves of signing keys, and when another key took their place.
    pub(crate) verifying_keys: Remembered<String, ([u8; 32], Option<Timestamp>)>,
    /// The update tokens that were shown last, each with what it says: their signatures were good.
    pub(crate) claims: Remembered<UpdateId, (String, Claims)>,
    /// The signing key.
    pub(crate) signer: Remembered<(), (String, DataKey)>,
    /// Hosts under which it was asked for a stack whose state names another one: the log says so once.
    pub(crate) strange_hosts: Remembered<String, ()>,
    /// Updates that this process publishes right now: whoever else wants to waits for it.
    pub(crate) publishing: Mutex<HashMap<UpdateId, Arc<tokio::sync::Mutex<()>>>>,
}

/// Passwords that are looked at at once. Each takes 19 MiB, and a processor for some 20 ms.
const PASSWORDS_AT_ONCE_MAX: usize = 2;

/// What bounds how passwords are tried.
pub(crate) struct Passwords {
    /// What hashes of right ones are made with, so that they tell nothing to whoever sees them.
    key: OnceLock<[u8; 32]>,
    slots: Arc<Semaphore>,
    /// The memory of each slot, while nobody uses it. Made once, when it is first needed, and kept: to make and to free it each time
    /// leaves an allocator with many times as much.
    memory: Arc<Mutex<Vec<Vec<Block>>>>,
    failures: Mutex<HashMap<Login, Arc<tokio::sync::Mutex<Failures>>>>,
}

/// A turn to look at a password, with the memory for it.
pub(crate) struct PasswordSlot {
    memory: Vec<Block>,
    back: Arc<Mutex<Vec<Vec<Block>>>>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl PasswordSlot {
    /// Its memory.
    pub(crate) fn memory(&mut self) -> &mut Vec<Block> {
        &mut self.memory
    }
}

impl Drop for PasswordSlot {
    fn drop(&mut self) {
        let memory = std::mem::take(&mut self.memory);
        self.back.lock().unwrap_or_else(PoisonError::into_inner).push(memory);
    }
}

/// Wrong passwords for one user.
#[derive(Debug)]
pub(crate) struct Failures {
    /// How many there were since a right one.
    pub(crate) in_a_row: u32,
    /// None is looked at before.
    pub(crate) refused_until: Timestamp,
}

impl Default for Failures {
    fn default() -> Self {
        Self { in_a_row: 0, refused_until: Timestamp(0) }
    }
}

impl Default for Passwords {
    fn default() -> Self {
        let slots = Arc::new(Semaphore::new(PASSWORDS_AT_ONCE_MAX));
        Self { key: OnceLock::new(), slots, memory: Arc::default(), failures: Mutex::default() }
    }
}

impl Passwords {
    /// The key of this process.
    pub(crate) fn key(&self, ids: &dyn Ids) -> &[u8; 32] {
        self.key.get_or_init(|| {
            let mut key = [0; 32];
            ids.fill(&mut key);
            key
        })
    }

    /// A turn to look at a password.
    pub(crate) async fn slot(&self) -> PasswordSlot {
        // Nobody closes it.
        let permit = Arc::clone(&self.slots).acquire_owned().await.ok();
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        PasswordSlot { memory, back: Arc::clone(&self.memory), _permit: permit }
    }

    /// The failures of a login, whether there is such a user or not. Whoever holds the lock is the only one to try.
    pub(crate) fn failures(&self, login: &Login) -> Arc<tokio::sync::Mutex<Failures>> {
        let mut map = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if map.len() >= FAILURES_MAX && !map.contains_key(login) {
            forget_fewest(&mut map);
        }
        Arc::clone(map.entry(login.clone()).or_default())
    }
}

/// Forgets a quarter of the logins: those with the fewest wrong passwords, and of these the longest ago. Who floods with other logins
/// would have to try as many wrong passwords for each of them as for the one that is to be forgotten. None that is being looked at goes.
fn forget_fewest(map: &mut HashMap<Login, Arc<tokio::sync::Mutex<Failures>>>) {
    let count = |(login, failures): (&Login, &Arc<tokio::sync::Mutex<Failures>>)| {
        let failures = (Arc::strong_count(failures) == 1).then(|| failures.try_lock().ok())??;
        Some((failures.in_a_row, failures.refused_until, login.clone()))
    };
    let mut counts: Vec<_> = map.iter().filter_map(count).collect();
    counts.sort();
    for (_, _, login) in counts.into_iter().take(FAILURES_MAX / 4) {
        map.remove(&login);
    }
}

/// A bounded map from keys to values with the time at which they were learned.
pub(crate) struct Remembered<K, V>(Mutex<Generations<K, V>>);

/// What was learned or asked for lately, and what was before that. An entry that is used moves to the first; when that is full, it
/// takes the place of the other one. So what is forgotten was not used for as many others as there may be.
struct Generations<K, V> {
    new: HashMap<K, (Timestamp, V)>,
    old: HashMap<K, (Timestamp, V)>,
}

impl<K, V> Default for Remembered<K, V> {
    fn default() -> Self {
        Self(Mutex::new(Generations { new: HashMap::new(), old: HashMap::new() }))
    }
}

/// Logins whose wrong passwords are counted at once.
const FAILURES_MAX: usize = 10_000;

/// Entries of a generation. A process that serves more at a time learns again what it forgot.
const GENERATION_MAX: usize = 2_000;

impl<K: Eq + Hash, V> Generations<K, V> {
    fn put(&mut self, key: K, entry: (Timestamp, V)) {
        if self.new.len() >= GENERATION_MAX && !self.new.contains_key(&key) {
            // The room of the older ones goes with them.
            self.old = std::mem::take(&mut self.new);
        }
        self.old.remove(&key);
        self.new.insert(key, entry);
    }
}

impl<K: Eq + Hash, V: Clone> Remembered<K, V> {
    /// What is remembered, if it was learned within the last `within`.
    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q, now: Timestamp, within: Duration) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((key, entry)) = map.old.remove_entry(key) {
            map.put(key, entry);
        }
        let (learned, value) = map.new.get(key)?;
        // A clock that jumped back makes an entry look as if it came from the future: it is not believed.
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
    /// Forgets what only an update that runs is asked for.
    pub(crate) fn forget_update(&self, id: UpdateId) {
        self.tails.forget(&id);
        self.claims.forget(&id);
        drop(self.texts.take(id));
    }
}

/// The last text of a log, and the number of the slot up to which that is so.
#[derive(Debug, Clone)]
pub(crate) struct LastText {
    pub(crate) slot: u64,
    pub(crate) saved: Option<Saved>,
}

impl LastText {
    fn bytes(&self) -> usize {
        // An entry costs something even without a text, so that their number is bounded too.
        4096 + self.saved.as_ref().map_or(0, |saved| saved.text.len())
    }
}

/// The last texts of logs, those that were used longest ago forgotten first.
#[derive(Default)]
pub(crate) struct Texts(Mutex<VecDeque<(UpdateId, LastText)>>);

impl Texts {
    /// Takes out what is remembered of a log: whoever appends puts back what it is after that.
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
    fn a_flood_of_other_logins_does_not_clear_a_count() {
        let passwords = Passwords::default();
        let fails = |login: &str, times: u32| {
            let failures = passwords.failures(&Login::parse(login).unwrap());
            let mut failures = failures.try_lock().unwrap();
            failures.in_a_row += times;
            failures.in_a_row
        };
        fails("bob", 11);
        for number in 0..3 * FAILURES_MAX {
            fails(&format!("other-{number}"), 1);
        }
        assert_eq!(fails("bob", 0), 11);
        assert!(passwords.failures.lock().unwrap().len() <= FAILURES_MAX, "it is bounded");
        // One that is being looked at counts when that is done.
        let looked_at = passwords.failures(&Login::parse("carol").unwrap());
        for number in 0..2 * FAILURES_MAX {
            fails(&format!("more-{number}"), 1);
        }
        looked_at.try_lock().unwrap().in_a_row += 1;
        assert_eq!(fails("carol", 0), 1);
    }

    #[test]
    fn what_was_used_longest_ago_is_forgotten_first() {
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
    fn texts_are_bounded_by_their_bytes_and_the_oldest_goes_first() {
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
