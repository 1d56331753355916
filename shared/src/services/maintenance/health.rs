//! Whether the ports do what is asked of them, and how much is going on.

use std::time::Duration;

use bytes::Bytes;

use crate::context::Context;
use crate::layout::{Signer, probe_blob};
use crate::services::updates::running;
use crate::services::{Error, store, updates};

/// What a server cannot do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Small items can be read.
    Ledger,
    /// The master key opens what it should.
    Keys,
    /// Bytes can be written.
    Blobs,
}

impl Part {
    /// The part in a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ledger => "the ledger",
            Self::Keys => "the master key",
            Self::Blobs => "the blob store",
        }
    }
}

/// Tries each part that the process works with once: a read, an unwrap, a put of a few bytes and its removal. No attempt is
/// repeated.
///
/// # Errors
/// The first part that failed with its error, or without one if it gave no answer in time.
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

/// Whether the key that signs update tokens opens under the master key; `false` where no server has made one yet.
///
/// # Errors
/// Those of the ports; [`Error::Broken`] when it does not open.
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

/// How many updates run; previews are not counted, nor what is beyond some thousands. A query for each shard of due items,
/// and a read for each item.
///
/// # Errors
/// Those of the ports.
pub async fn updates_running(ctx: &Context) -> Result<usize, Error> {
    Ok(running::find(ctx, 1).await?.values().filter(|update| !update.dry_run).count())
}
