//! Due items: what a sweep has to handle, and when.

use std::time::Duration;

use crate::context::Context;
use crate::layout::Due;
use crate::ports::{Expect, Timestamp, Write};
use crate::services::store;

/// How long a blob outlives the last item that named it. A table can be restored to any moment of its last 35 days, and
/// then finds all its blobs.
pub(crate) const BLOB_OUTLIVES: Duration = Duration::from_secs(36 * 24 * 3600);

/// The maximum number of commits that a sweep makes for one due item before it continues with the next.
const PAGES_MAX: usize = 50;

/// The write that schedules something for a sweep after this instant.
pub(crate) fn due_write(ctx: &Context, due: &Due, at: Timestamp) -> Write {
    store::put(ctx, due.key(at), Expect::Any, due)
}

/// The result of handling a due item.
pub(crate) enum Next {
    /// Nothing more to do.
    Done,
    /// It is handled again after this instant, which is in the future.
    At(Timestamp),
    /// Another item is handled after this instant.
    Becomes(Due, Timestamp),
    /// One sweep could not finish it. It stays due, and so do the others.
    MoreOfIt,
    /// It changed at this moment. The next sweep decides again.
    AsItIs,
}

impl Swept {
    /// Adds the counts of a later sweep. Whether more is due is taken from that sweep alone.
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

    /// Logs the counts.
    pub fn log(&self) {
        let &Self { ended, running, over, erased, pruned, blobs, failed, overdue_seconds, more: _ } = self;
        tracing::info!(ended, running, over, erased, pruned, blobs, failed, overdue_seconds, "swept");
    }
}

/// The number of pages that may still be erased for a due item.
pub(crate) struct Pages(usize);

impl Default for Pages {
    fn default() -> Self {
        Self(PAGES_MAX)
    }
}

impl Pages {
    /// Takes one page; false if none is left.
    pub(crate) fn take(&mut self) -> bool {
        let left = self.0.checked_sub(1);
        self.0 = left.unwrap_or(0);
        left.is_some()
    }
}

/// The counts of a sweep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Updates that the sweep ended because their lease had expired, or published because no other process had.
    pub ended: usize,
    /// Updates that still run or are being published, to be handled later.
    pub running: usize,
    /// Ended updates whose logs and events are to be erased later.
    pub over: usize,
    /// Updates and deleted stacks that are now completely erased.
    pub erased: usize,
    /// Versions that were erased because they exceeded the retention setting.
    pub pruned: usize,
    /// Blobs that were erased.
    pub blobs: usize,
    /// Due items that failed. The log has the reason, and the next sweep tries again.
    pub failed: usize,
    /// The time that the oldest of the failed items has been due, in seconds.
    pub overdue_seconds: u64,
    /// Whether more items may be due.
    pub more: bool,
}
