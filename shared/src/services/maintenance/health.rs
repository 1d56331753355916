//! Checks that the ports work, and counts running updates.

use std::time::Duration;

use bytes::Bytes;

use crate::context::Context;
use crate::layout::{Signer, probe_blob};
use crate::services::updates::running;
use crate::services::{Error, store, updates};

/// A part that a server needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The ledger, which stores items: they can be read.
    Ledger,
    /// The master key: it unwraps what it wrapped.
    Keys,
    /// The blob store: blobs can be put.
    Blobs,
}

impl Part {
    /// The name of the part, for messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ledger => "the ledger",
            Self::Keys => "the master key",
            Self::Blobs => "the blob store",
        }
    }
}

/// Tries each part that this process uses once: a read, an unwrap, and a put and a deletion of a few bytes. Nothing
/// is retried.
///
/// # Errors
/// The first part that failed, with its error; without one if there was no answer within `wait_max`.
pub async fn check(ctx: &Context, wait_max: Duration) -> Result<(), (Part, Option<Error>)> {
    let ledger = async { Ok(ctx.ledger.get(&Signer::key()).await.map(drop)?) };
    within(ctx, Part::Ledger, wait_max, ledger).await?;
    if ctx.rights.keys {
        within(ctx, Part::Keys, wait_max, updates::tokens::try_signer(ctx)).await?;
    }
    if !ctx.rights.blobs {
        return Ok(());
    }
    let blobs = async {
        ctx.blobs.put(&probe_blob(), Bytes::from_static(b"ready")).await?;
        Ok(ctx.blobs.delete(&probe_blob()).await?)
    };
    within(ctx, Part::Blobs, wait_max, blobs).await
}

/// Whether the master key unwraps the key that signs update tokens; `false` if no server has created one yet.
///
/// # Errors
/// Those of the ports; [`Error::Broken`] if it cannot be unwrapped.
pub async fn signer_opens(ctx: &Context) -> Result<bool, Error> {
    let is_there = store::get(ctx, &Signer::key()).await?.is_some();
    if is_there {
        updates::tokens::try_signer(ctx).await?;
    }
    Ok(is_there)
}

async fn within(
    ctx: &Context,
    part: Part,
    wait_max: Duration,
    work: impl Future<Output = Result<(), Error>>,
) -> Result<(), (Part, Option<Error>)> {
    tokio::select! {
        biased;
        done = work => done.map_err(|error| (part, Some(error))),
        () = ctx.clock.sleep(wait_max) => Err((part, None)),
    }
}

/// The number of running updates without previews. The search stops at some thousands. One query for each shard of
/// due items, and one read for each item.
///
/// # Errors
/// Those of the ports.
pub async fn updates_running(ctx: &Context) -> Result<usize, Error> {
    Ok(running::find(ctx, 1).await?.values().filter(|update| !update.dry_run).count())
}
