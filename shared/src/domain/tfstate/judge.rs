//! Decides whether a write of a state is accepted: a pure function of what is stored and what was sent.
//!
//! Clients check serial and lineage themselves, after they locked and read, and do not report when a user forced a write. So a
//! write of the lock's holder is trusted; a write without the lock is held to the rules.

use serde::{Deserialize, Serialize};

/// The default time after which a lock for a plan can be taken over, in seconds. Such a lock protects no write, and a user who
/// may only plan could otherwise block every apply.
pub const PLAN_LOCK_EXPIRES_AFTER_SECONDS: u64 = 3_600;

/// The policy of a state. Everything is off by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Policy {
    /// Refuse writes without the lock, even when the state is not locked.
    pub locks_required: bool,
    /// Refuse writes with a lower serial or another lineage, even by the holder of the lock.
    pub strict: bool,
    /// Seconds after which a lock can be taken over. A later write of the former holder is stored as a refused one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock_expires_after_seconds: Option<u64>,
    /// The same for a lock for a plan, if sooner. 0 means no other time than for other locks; `None` means
    /// [`PLAN_LOCK_EXPIRES_AFTER_SECONDS`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_lock_expires_after_seconds: Option<u64>,
    /// A client's DELETE deletes the state, as a user's would: it can be undeleted for a while.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub delete_allowed: bool,
}

impl Policy {
    /// Seconds after which a lock can be taken over, for a plan lock or another one; `None` for never.
    pub fn lock_expires_after(&self, is_for_plan: bool) -> Option<u64> {
        let plan = self.plan_lock_expires_after_seconds.unwrap_or(PLAN_LOCK_EXPIRES_AFTER_SECONDS);
        let plan = Some(plan).filter(|seconds| is_for_plan && *seconds > 0);
        self.lock_expires_after_seconds.into_iter().chain(plan).min()
    }
}

/// The current version of a state, as far as it matters to a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Current<'a> {
    /// The SHA-256 of its bytes, in hex.
    pub sha256: &'a str,
    pub serial: Option<u64>,
    pub lineage: Option<&'a str>,
    /// The lock under which it was written, with the SHA-256 of what that run wrote last.
    pub under: Option<(&'a str, &'a [String])>,
    /// Whether the state is protected and may have resources, so that a write has to leave some.
    pub is_protected: bool,
}

/// A write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent<'a> {
    /// The SHA-256 of its bytes, in hex.
    pub sha256: &'a str,
    pub serial: Option<u64>,
    pub lineage: Option<&'a str>,
    /// The lock that the client claims to hold.
    pub lock_id: Option<&'a str>,
    /// Whether it has no resources. False for a text that its client encrypted.
    pub is_empty: bool,
}

/// The lock of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder<'a> {
    /// Its ID, which every refused caller sees.
    pub id: &'a str,
    /// Whether the sender holds it.
    pub is_sender: bool,
}

/// The decision about a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It was accepted before, and the answer was lost.
    Replayed,
    /// It becomes the next version.
    Taken(Taken),
    /// It is stored as a refused write.
    Refused(Refused),
}

/// A remark about an accepted write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taken {
    /// The serial is not higher than that of the previous version.
    pub serial_fell: bool,
    /// The lineage differs from that of the previous version.
    pub lineage_changed: bool,
}

/// Why a write is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refused {
    /// Another caller holds the lock.
    Locked,
    /// The lock of its run was taken away.
    Displaced,
    /// It came without a lock, and the state has changed since.
    Stale,
    /// The state requires the lock.
    LockRequired,
    /// The state is strict, and the serial is lower or the lineage differs.
    Strict,
    /// The state was deleted and can be undeleted.
    #[serde(rename = "removed")]
    Deleted,
    /// The state is protected, and the write leaves it without resources, as after a destroy.
    Protected,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Locked => "somebody else holds the lock of the state: wait for it, and write again",
            Self::Displaced => "this run lost its lock, which was broken or given to another run: run the client again",
            Self::Stale => "this write came without a lock, and another one was first: run the client again",
            Self::LockRequired => "this state takes writes under its lock only: run the client with locking on",
            Self::Deleted => "the state was deleted: undelete it first",
            Self::Protected => "the state is protected, and this write leaves it without resources: ask an admin to lift the protection",
            Self::Strict => "this state is strict, so its serial must rise and its lineage must stay: pull it, and change that",
        })
    }
}

/// Decides about a write.
pub fn judge(
    current: Option<Current<'_>>,
    holder: Option<Holder<'_>>,
    policy: Policy,
    sent: Sent<'_>,
) -> Verdict {
    if let Some(current) = current {
        // A delayed request must not bring back what its own run has replaced since.
        let under = current.under.filter(|(lock, _)| Some(*lock) == sent.lock_id);
        let was_written =
            under.is_some_and(|(_, written)| written.iter().any(|sha256| sha256 == sent.sha256));
        if current.sha256 == sent.sha256 || was_written {
            return Verdict::Replayed;
        }
    }
    match (holder, sent.lock_id) {
        (Some(holder), Some(claimed)) if holder.id == claimed && holder.is_sender => {}
        (Some(_), _) => return Verdict::Refused(Refused::Locked),
        (None, Some(_)) => return Verdict::Refused(Refused::Displaced),
        (None, None) if policy.locks_required => return Verdict::Refused(Refused::LockRequired),
        (None, None) => {}
    }
    if current.is_some_and(|current| current.is_protected) && sent.is_empty {
        return Verdict::Refused(Refused::Protected);
    }
    let taken = current.map_or_else(Taken::default, |current| Taken {
        serial_fell: matches!((current.serial, sent.serial), (Some(old), Some(new)) if new <= old),
        lineage_changed: current.lineage != sent.lineage,
    });
    if policy.strict && (taken.serial_fell || taken.lineage_changed) {
        return Verdict::Refused(Refused::Strict);
    }
    // Two runs without locks started from the same version. The second would undo the first.
    if holder.is_none() && taken.serial_fell && !taken.lineage_changed {
        return Verdict::Refused(Refused::Stale);
    }
    Verdict::Taken(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at<'a>(serial: u64, written: &'a [String]) -> Current<'a> {
        Current {
            sha256: "now",
            serial: Some(serial),
            lineage: Some("A"),
            under: Some(("run", written)),
            is_protected: false,
        }
    }

    fn sent<'a>(sha256: &'a str, serial: u64, lock_id: Option<&'a str>) -> Sent<'a> {
        Sent { sha256, serial: Some(serial), lineage: Some("A"), lock_id, is_empty: false }
    }

    /// The lock with this ID, held by the sender.
    fn own(id: &str) -> Holder<'_> {
        Holder { id, is_sender: true }
    }

    fn plain(current: Option<Current<'_>>, holder: Option<&str>, sent: Sent<'_>) -> Verdict {
        judge(current, holder.map(own), Policy::default(), sent)
    }

    const FINE: Verdict = Verdict::Taken(Taken { serial_fell: false, lineage_changed: false });
    const FELL: Verdict = Verdict::Taken(Taken { serial_fell: true, lineage_changed: false });

    #[test]
    fn the_holder_of_the_lock_is_believed() {
        assert_eq!(plain(None, Some("run"), sent("new", 1, Some("run"))), FINE);
        assert_eq!(plain(Some(at(5, &[])), Some("run"), sent("new", 6, Some("run"))), FINE);
        assert_eq!(plain(Some(at(5, &[])), Some("run"), sent("new", 5, Some("run"))), FELL);
        assert_eq!(plain(Some(at(5, &[])), Some("run"), sent("new", 3, Some("run"))), FELL);
        let other = Sent { lineage: Some("B"), ..sent("new", 6, Some("run")) };
        let changed = Taken { lineage_changed: true, ..Taken::default() };
        assert_eq!(plain(Some(at(5, &[])), Some("run"), other), Verdict::Taken(changed));
    }

    #[test]
    fn writes_without_the_lock_are_refused() {
        for claimed in [None, Some("other")] {
            let verdict = plain(Some(at(5, &[])), Some("run"), sent("new", 6, claimed));
            assert_eq!(verdict, Verdict::Refused(Refused::Locked), "{claimed:?}");
        }
        let displaced = plain(Some(at(5, &[])), None, sent("new", 6, Some("run")));
        assert_eq!(displaced, Verdict::Refused(Refused::Displaced));
        assert_eq!(plain(None, None, sent("new", 1, Some("run"))), Verdict::Refused(Refused::Displaced));
    }

    #[test]
    fn the_id_of_another_users_lock_proves_nothing() {
        let theirs = Some(Holder { id: "run", is_sender: false });
        for current in [None, Some(at(5, &[]))] {
            let verdict = judge(current, theirs, Policy::default(), sent("new", 6, Some("run")));
            assert_eq!(verdict, Verdict::Refused(Refused::Locked));
        }
    }

    #[test]
    fn a_write_that_empties_a_protected_state_is_refused() {
        let protected = Current { is_protected: true, ..at(5, &[]) };
        let empty = Sent { is_empty: true, ..sent("new", 6, Some("run")) };
        assert_eq!(plain(Some(protected), Some("run"), empty), Verdict::Refused(Refused::Protected));
        assert_eq!(plain(Some(protected), Some("run"), sent("new", 6, Some("run"))), FINE);
        assert_eq!(plain(Some(at(5, &[])), Some("run"), empty), FINE);
        // Its lock counts first, and a repeat of what is stored empties nothing.
        let other = Sent { lock_id: Some("other"), ..empty };
        assert_eq!(plain(Some(protected), Some("run"), other), Verdict::Refused(Refused::Locked));
        let again = Sent { sha256: "now", ..empty };
        assert_eq!(plain(Some(protected), Some("run"), again), Verdict::Replayed);
    }

    #[test]
    fn a_lock_for_a_plan_ends_sooner_unless_the_policy_says_not() {
        let after = |all, plan| {
            let (lock_expires_after_seconds, plan_lock_expires_after_seconds) = (all, plan);
            let policy =
                Policy { lock_expires_after_seconds, plan_lock_expires_after_seconds, ..Policy::default() };
            (policy.lock_expires_after(true), policy.lock_expires_after(false))
        };
        assert_eq!(after(None, None), (Some(3_600), None));
        assert_eq!(after(Some(60), None), (Some(60), Some(60)));
        assert_eq!(after(Some(7_200), None), (Some(3_600), Some(7_200)));
        assert_eq!(after(None, Some(60)), (Some(60), None));
        assert_eq!(after(None, Some(0)), (None, None));
        assert_eq!(after(Some(7_200), Some(0)), (Some(7_200), Some(7_200)));
    }

    #[test]
    fn without_locks_the_first_of_two_counts() {
        assert_eq!(plain(None, None, sent("new", 1, None)), FINE);
        assert_eq!(plain(Some(at(5, &[])), None, sent("new", 6, None)), FINE);
        for serial in [4, 5] {
            let verdict = plain(Some(at(5, &[])), None, sent("new", serial, None));
            assert_eq!(verdict, Verdict::Refused(Refused::Stale), "{serial}");
        }
    }

    #[test]
    fn a_repeated_write_is_a_replay_with_any_lock() {
        for (holder, claimed) in [(Some("run"), Some("run")), (Some("other"), Some("run")), (None, None)] {
            assert_eq!(plain(Some(at(5, &[])), holder, sent("now", 5, claimed)), Verdict::Replayed);
        }
        // The same run has continued since. From another run, it would be a forced push.
        let written = ["earlier".to_owned()];
        let delayed = sent("earlier", 4, Some("run"));
        assert_eq!(plain(Some(at(5, &written)), Some("run"), delayed), Verdict::Replayed);
        let forced = sent("earlier", 4, Some("next"));
        assert_eq!(plain(Some(at(5, &written)), Some("next"), forced), FELL);
    }

    #[test]
    fn a_policy_holds_for_everybody() {
        let strict = Policy { strict: true, ..Policy::default() };
        let fallen = sent("new", 5, Some("run"));
        assert_eq!(
            judge(Some(at(5, &[])), Some(own("run")), strict, fallen),
            Verdict::Refused(Refused::Strict)
        );
        assert_eq!(judge(Some(at(5, &[])), Some(own("run")), strict, sent("new", 9, Some("run"))), FINE);
        let locked = Policy { locks_required: true, ..Policy::default() };
        let unlocked = judge(Some(at(5, &[])), None, locked, sent("new", 6, None));
        assert_eq!(unlocked, Verdict::Refused(Refused::LockRequired));
    }

    #[test]
    fn an_encrypted_state_without_a_serial_is_not_held_to_one() {
        let sent = Sent { serial: None, ..sent("new", 0, None) };
        assert_eq!(plain(Some(at(5, &[])), None, sent), FINE);
    }
}
