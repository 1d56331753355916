//! What leaves a stack without resources: its deletion, and a version that has none.

use bytes::Bytes;

use super::fold;
use super::fold::Folded;
use crate::context::Context;
use crate::layout::{Snapshot, StackHead};
use crate::services::error::{Protected, StackError};
use crate::services::store::stack_lookup::fetch_snapshot;
use crate::services::{Error, work};

/// Whether a stack with this snapshot has resources. The root resource represents the stack itself, so it does not count;
/// Pulumi Cloud and the CLI's own backend do the same (pulumi v3.274.1, `pkg/backend/diy/backend.go`).
pub(crate) async fn has_resources(ctx: &Context, snapshot: &Snapshot) -> Result<bool, Error> {
    if let Some(known) = known(snapshot.resource_count, snapshot.pending_count) {
        return Ok(known);
    }
    let gzip = fetch_snapshot(ctx, snapshot, fold::BASE_FACTOR).await?;
    let bytes = fold::weight([&gzip], &[]);
    let has_only_its_root = move || fold::has_only_its_root(&gzip);
    work::with(bytes, fold::BASE_FACTOR, has_only_its_root).await.map(|only_root| !only_root)
}

/// The answer, if the numbers of resources and of pending operations are enough for it.
fn known(resources: u64, pending: u64) -> Option<bool> {
    match (resources, pending) {
        (0, _) => Some(false),
        // It may be the root.
        (1, 0) => None,
        _ => Some(true),
    }
}

/// Refuses a version without resources for a protected stack that has some. The commit of the version moves the head, so
/// a protection that comes meanwhile counts too.
///
/// # Errors
/// [`StackError::VersionOfProtected`].
pub(super) async fn check(ctx: &Context, head: &StackHead, folded: &Folded) -> Result<(), Error> {
    let (Some(protection), Some(current), Folded::New(new)) = (&head.protection, &head.snapshot, folded)
    else {
        return Ok(());
    };
    let has_some = match known(new.resource_count, new.pending_count) {
        Some(known) => known,
        None => !only_root(new.gzip.clone()).await?,
    };
    if has_some || !has_resources(ctx, current).await? {
        return Ok(());
    }
    let protected = Protected::stack(&head.address, protection);
    Err(StackError::VersionOfProtected(protected).into())
}

/// Whether a new deployment has only its root. The memory of its fold covers this.
async fn only_root(gzip: Bytes) -> Result<bool, Error> {
    let bytes = fold::weight([&gzip], &[]);
    work::on(bytes, move || fold::has_only_its_root(&gzip)).await
}
