//! What a process knows of the audit trails: its own chains, which days have due items, and requests that are
//! summed up.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::remembered::Remembered;
use crate::domain::names::{Login, OrgName, TokenName};
use crate::domain::principal::Principal;
use crate::layout::{AuditDay, AuditEntry, AuditMark, AuditResult};
use crate::ports::Timestamp;

/// Chains that are kept for later records. More are in use only while more requests write records.
const CHAINS_MAX: usize = 64;

/// The time within which alike requests are summed up.
const SUMMED_FOR: Duration = Duration::from_secs(60);

/// Kinds of requests that are summed up at the same time. Beyond it, each request gets its own record.
const SUMS_MAX: usize = 2_000;

/// Sums that one call returns to be stored.
const OVER_MAX: usize = 20;

/// What requests have in common that are summed up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Alike {
    pub(crate) trail: Option<OrgName>,
    pub(crate) user: Option<Login>,
    pub(crate) of: Principal,
    pub(crate) token: Option<TokenName>,
    pub(crate) action: String,
    pub(crate) result: AuditResult,
    /// What they are about, or who sent them if it is not a user. `None` if requests about different things are summed
    /// up.
    pub(crate) target: Option<String>,
}

/// Alike requests since the first one, whose record is stored.
struct Sum {
    since: Timestamp,
    /// The newest of the others, with their number. Not stored yet.
    others: Option<AuditEntry>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Trails {
    /// The ends of chains that no request uses now. A request takes one, so each chain has one writer at a time.
    chains: Mutex<Vec<AuditMark>>,
    /// The days whose due items are stored.
    pub(crate) days: Remembered<(Option<OrgName>, AuditDay), ()>,
    sums: Mutex<HashMap<Alike, Sum>>,
    /// Records of this process, for their order within one instant. Begins again at 0 after the largest number.
    records: AtomicU16,
}

impl Trails {
    /// The number of the next record.
    pub(crate) fn next_record(&self) -> u16 {
        self.records.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes the end of a chain; `None` if a new chain has to begin.
    pub(crate) fn take_chain(&self) -> Option<AuditMark> {
        self.chains.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Returns a chain with its new end, or with the old one if nothing was stored. A chain of which it is not known
    /// whether its record was stored is not returned.
    pub(crate) fn return_chain(&self, end: AuditMark) {
        let mut chains = self.chains.lock().unwrap_or_else(PoisonError::into_inner);
        if chains.len() < CHAINS_MAX {
            chains.push(end);
        }
    }

    /// Sums a request up. Returns the entries to store now: this one if it is the first for a minute, and those of
    /// sums that are over.
    pub(crate) fn sum_up(&self, alike: Alike, entry: AuditEntry) -> Vec<AuditEntry> {
        let now = entry.record.at;
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sum) = sums.get_mut(&alike)
            && sum.since <= now
            && now.since(sum.since) < SUMMED_FOR
        {
            let count = sum.others.as_ref().map_or(1, |others| others.record.count.saturating_add(1));
            let mut others = entry;
            others.record.count = count;
            sum.others = Some(others);
            return Vec::new();
        }
        let mut over = take_over(&mut sums, now, OVER_MAX);
        if let Some(Sum { others: Some(others), .. }) = sums.remove(&alike) {
            over.push(others);
        }
        if sums.len() < SUMS_MAX {
            sums.insert(alike, Sum { since: now, others: None });
        }
        over.push(entry);
        over
    }

    /// Takes the sums that are over, or all of them.
    pub(crate) fn take_sums(&self, now: Timestamp, all: bool) -> Vec<AuditEntry> {
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        if all {
            return sums.drain().filter_map(|(_, sum)| sum.others).collect();
        }
        take_over(&mut sums, now, OVER_MAX)
    }

    /// Lets the next such request be stored on its own, because the record of this one was not.
    pub(crate) fn forget(&self, alike: &Alike) {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner).remove(alike);
    }
}

fn take_over(sums: &mut HashMap<Alike, Sum>, now: Timestamp, max: usize) -> Vec<AuditEntry> {
    let mut over = Vec::new();
    sums.retain(|_, sum| {
        if sum.since <= now && now.since(sum.since) < SUMMED_FOR || over.len() == max {
            return true;
        }
        over.extend(sum.others.take());
        false
    });
    over
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::AuditRecord;

    fn request(user: &str, second: i64) -> (Alike, AuditEntry) {
        let user = Some(Login::parse(user).unwrap());
        let alike = Alike {
            trail: None,
            user: user.clone(),
            of: Principal::User,
            token: None,
            action: "access".to_owned(),
            result: AuditResult::Refused,
            target: None,
        };
        let record = AuditRecord { user, ..AuditRecord::new(Timestamp::from_seconds(second), "access") };
        (alike, AuditEntry { trail: None, record })
    }

    fn sum_up(trails: &Trails, user: &str, second: i64) -> Vec<(String, u32, i64)> {
        let (alike, entry) = request(user, second);
        counts(trails.sum_up(alike, entry))
    }

    fn counts(entries: Vec<AuditEntry>) -> Vec<(String, u32, i64)> {
        let counts = entries.into_iter().map(|AuditEntry { record, .. }| {
            (record.user.unwrap().to_string(), record.count, record.at.seconds())
        });
        let mut counts: Vec<_> = counts.collect();
        counts.sort();
        counts
    }

    fn of(user: &str, count: u32, second: i64) -> (String, u32, i64) {
        (user.to_owned(), count, second)
    }

    #[test]
    fn requests_of_a_minute_become_two_records() {
        let trails = Trails::default();
        assert_eq!(sum_up(&trails, "alice", 0), [of("alice", 1, 0)]);
        for second in [10, 20, 59] {
            assert_eq!(sum_up(&trails, "alice", second), []);
        }
        assert_eq!(sum_up(&trails, "bob", 59), [of("bob", 1, 59)]);
        assert_eq!(sum_up(&trails, "bob", 60), []);
        assert_eq!(sum_up(&trails, "alice", 60), [of("alice", 1, 60), of("alice", 3, 59)]);
        assert_eq!(sum_up(&trails, "alice", 119), []);
        assert_eq!(counts(trails.take_sums(Timestamp::from_seconds(119), false)), [of("bob", 1, 60)]);
        assert_eq!(counts(trails.take_sums(Timestamp::from_seconds(119), true)), [of("alice", 1, 119)]);
        assert_eq!(counts(trails.take_sums(Timestamp::from_seconds(999), true)), []);
    }

    #[test]
    fn the_number_of_sums_is_bounded() {
        let trails = Trails::default();
        for number in 0..2 * SUMS_MAX {
            assert_eq!(sum_up(&trails, &format!("user{number}"), 0).len(), 1);
        }
        assert_eq!(trails.sums.lock().unwrap().len(), SUMS_MAX);
        // Those of the minute before make room.
        assert_eq!(sum_up(&trails, "late", 60).len(), 1);
        assert_eq!(trails.sums.lock().unwrap().len(), 1);
    }

    #[test]
    fn a_chain_is_used_by_one_writer_at_a_time() {
        let trails = Trails::default();
        let end = |number| AuditMark { chain: "c".to_owned(), number, hash: String::new(), at: Timestamp(0) };
        assert_eq!(trails.take_chain(), None);
        trails.return_chain(end(1));
        assert_eq!(trails.take_chain(), Some(end(1)));
        assert_eq!(trails.take_chain(), None);
        for number in 0..2 * CHAINS_MAX as u64 {
            trails.return_chain(end(number));
        }
        assert_eq!(trails.chains.lock().unwrap().len(), CHAINS_MAX);
    }
}
