//! The limits on trying passwords.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use argon2::Block;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::domain::names::Login;
use crate::ports::{Ids, Timestamp};

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

/// Logins whose wrong passwords are counted at once.
const FAILURES_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

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
}
