//! Due items: what a sweep is to look at, and when.

use std::time::Duration;

use crate::context::Context;
use crate::layout::Due;
use crate::ports::{Expect, Timestamp, Write};
use crate::services::store;

/// A blob outlives the last item that named it by so long. A table can be restored to any moment of its last 35 days,
/// and finds all its blobs then.
pub(crate) const BLOB_OUTLIVES: Duration = Duration::from_secs(36 * 24 * 3600);

/// Commits that a sweep makes for one due item before it turns to the next one.
const PAGES_MAX: usize = 50;

/// The write that makes something be looked at after this instant.
pub(crate) fn due_write(ctx: &Context, due: &Due, at: Timestamp) -> Write {
    store::put(ctx, due.key(at), Expect::Any, due)
}

/// What becomes of a due item that was looked at.
pub(crate) enum Next {
    /// There is nothing more to do.
    Done,
    /// It is looked at again after this instant, which lies ahead.
    At(Timestamp),
    /// Something else is looked at after this instant.
    Becomes(Due, Timestamp),
    /// There is more to do than was done at once: it stays due, and so do the others.
    MoreOfIt,
    /// Something changed at this moment: the next sweep sees what.
    AsItIs,
}

impl Swept {
    /// Adds what another sweep did after this one, which says whether more is due.
    pub fn add(&mut self, next: &Self) {
        let &Self { ended, running, over, erased, pruned, blobs, failed, overdue_seconds, more } = next;
        self.ended += ended;
        self.running += running;
        self.over += over;
        self.erased += erased;
        self.pruned += pruned;
        self.blobs += blobs;
        self.failed += failed;
        self.overdue_seconds = self.overdue_seconds.max(overdue_seconds);
        self.more = more;
    }

    /// Says in the log what was done.
    pub fn log(&self) {
        let &Self { ended, running, over, erased, pruned, blobs, failed, overdue_seconds, more: _ } = self;
        tracing::info!(ended, running, over, erased, pruned, blobs, failed, overdue_seconds, "swept");
    }
}

/// How many pages may still be removed for a due item.
pub(crate) struct Pages(usize);

impl Default for Pages {
    fn default() -> Self {
        Self(PAGES_MAX)
    }
}

impl Pages {
    /// Takes one, if there is one left.
    pub(crate) fn take(&mut self) -> bool {
        let left = self.0.checked_sub(1);
        self.0 = left.unwrap_or(0);
        left.is_some()
    }
}

/// What a sweep did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Updates that were ended because their lease was over, or published because nobody had.
    pub ended: usize,
    /// Updates that still run or are just being published, to be looked at later.
    pub running: usize,
    /// Updates that were over, to be looked at later for what they left.
    pub over: usize,
    /// Updates and removed stacks of which the last was erased.
    pub erased: usize,
    /// Versions that were removed, because more are there than are kept.
    pub pruned: usize,
    /// Blobs that were removed.
    pub blobs: usize,
    /// Due items that could not be looked at; the log says why, and the next sweep tries again.
    pub failed: usize,
    /// For how long the oldest of these has been due, in seconds.
    pub overdue_seconds: u64,
    /// Whether more may be due.
    pub more: bool,
}
