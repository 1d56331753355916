//! Limits on password checks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use argon2::Block;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::failures::{Failures, Sources};
use crate::domain::names::Login;
use crate::ports::Ids;

/// Passwords that are checked at once. A check takes 19 MiB, and a processor for some 20 ms.
const PASSWORDS_AT_ONCE_MAX: usize = 2;

/// Limits the rate of password checks.
pub(crate) struct Passwords {
    /// The key of the cache's hashes of correct passwords, so that they reveal nothing.
    key: OnceLock<[u8; 32]>,
    slots: Arc<Semaphore>,
    /// The memory of each slot that is not in use. It is allocated at the first use and kept, since an
    /// allocator would keep a multiple of it if each check allocated and freed it.
    memory: Arc<Mutex<Vec<Vec<Block>>>>,
    failures: Mutex<HashMap<Login, Arc<tokio::sync::Mutex<Failures>>>>,
    /// The wrong passwords of each source.
    pub(crate) sources: Sources,
}

/// The permit for a password check, with the memory for it.
pub(crate) struct PasswordSlot {
    memory: Vec<Block>,
    back: Arc<Mutex<Vec<Vec<Block>>>>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl PasswordSlot {
    /// The memory for Argon2.
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

impl Default for Passwords {
    fn default() -> Self {
        let slots = Arc::new(Semaphore::new(PASSWORDS_AT_ONCE_MAX));
        Self {
            key: OnceLock::new(),
            slots,
            memory: Arc::default(),
            failures: Mutex::default(),
            sources: Sources::default(),
        }
    }
}

impl Passwords {
    /// This process's key for hashes in the cache.
    pub(crate) fn key(&self, ids: &dyn Ids) -> &[u8; 32] {
        self.key.get_or_init(|| {
            let mut key = [0; 32];
            ids.fill(&mut key);
            key
        })
    }

    /// Waits for a permit to check a password.
    pub(crate) async fn slot(&self) -> PasswordSlot {
        // No code closes the semaphore.
        let permit = Arc::clone(&self.slots).acquire_owned().await.ok();
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        PasswordSlot { memory, back: Arc::clone(&self.memory), _permit: permit }
    }

    /// The failures of a login, whether there is such a user or not. Only the holder of the lock may check a
    /// password.
    pub(crate) fn failures(&self, login: &Login) -> Arc<tokio::sync::Mutex<Failures>> {
        let mut map = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if map.len() >= FAILURES_MAX && !map.contains_key(login) {
            forget_fewest(&mut map);
        }
        Arc::clone(map.entry(login.clone()).or_default())
    }
}

/// Forgets a quarter of the logins: those with the fewest wrong passwords, and of these the oldest. To clear
/// a count, an attacker would have to send as many wrong passwords for each of many other logins. A login
/// with a check in progress stays.
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

/// Logins whose wrong passwords are counted, at most.
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
        // A check in progress counts when it ends.
        let checked = passwords.failures(&Login::parse("carol").unwrap());
        for number in 0..2 * FAILURES_MAX {
            fails(&format!("more-{number}"), 1);
        }
        checked.try_lock().unwrap().in_a_row += 1;
        assert_eq!(fails("carol", 0), 1);
    }
}
