//! The rotation of the master key of a folder.

use std::sync::Arc;

use statewright_shared::adapters::embedded::DataFolder;
use statewright_shared::context::Context;
use statewright_shared::services::keys::master_key::{self, Rewrapped};

pub(crate) async fn rewrap(
    folder: &DataFolder,
    ctx: &Context,
    progress: &(dyn Fn(u64) + Sync),
) -> anyhow::Result<Rewrapped> {
    let done = master_key::rewrap(ctx, folder, progress).await?;
    folder.rewrap_check().await?;
    Ok(done)
}

/// Finishes a rotation that ran while a server did. Called at the server's start, when no process uses the
/// old key.
pub(crate) async fn finish_rotation(folder: &DataFolder, ctx: &Arc<Context>) -> anyhow::Result<()> {
    if folder.keys.master_count()? == 1 {
        return Ok(());
    }
    let _lock = folder.lock_keys()?;
    rewrap(folder, ctx, &|_| {}).await?;
    folder.keys.forget_old_masters()?;
    tracing::info!("the old master key was removed from the file");
    Ok(())
}
