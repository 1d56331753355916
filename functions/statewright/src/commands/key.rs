//! `statewright key`.

use std::sync::Arc;

use clap::Subcommand;
use serde::Serialize;
use statewright_shared::adapters::embedded::{DataFolder, FolderError};
use statewright_shared::context::Context;
use statewright_shared::domain::names::StackAddress;
use statewright_shared::services::masters::{self, Rewrapped};
use statewright_shared::services::{directory, lookup, secrets};

use crate::args::{self, Data, Store};
use crate::commands::misused;
use crate::data;
use crate::output::Output;

#[derive(Debug, clap::Args)]
pub(crate) struct Key {
    #[command(flatten)]
    data: Data,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Put a new master key in the place of the old one. All data keys are wrapped under the new one; no secret is touched.
    /// While a server runs the old one stays in the file, and goes at its next start.
    Rotate {
        /// Make a new data key for this stack instead, ORGANIZATION/PROJECT/STACK: what is encrypted from now on is under it.
        #[arg(long, value_name = "STACK", value_parser = args::stack_address)]
        stack: Option<StackAddress>,
    },
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Rotated {
    /// The stack that got a data key; `None` where the master key was replaced.
    stack: Option<String>,
    data_key: Option<u32>,
    keys: Option<u64>,
    rewrapped: Option<u64>,
    old_key_removed: Option<bool>,
}

pub(crate) async fn run(key: Key, out: Output) -> anyhow::Result<()> {
    match key.command {
        Command::Rotate { stack: None } => rotate(&key.data, out).await,
        Command::Rotate { stack: Some(address) } => renew(&key.data, &address, out).await,
    }
}

async fn rotate(data: &Data, out: Output) -> anyhow::Result<()> {
    if data.store == Store::Aws {
        return Err(misused(
            "on AWS, KMS changes what is inside of the master key by itself, each year since `statewright aws setup`, or at \
             once with `aws kms rotate-key-on-demand`: nothing has to be wrapped anew. To come under another key, copy the \
             store to a folder and from there to a table, a bucket and the key that you want; for a new data key of one \
             stack add --stack",
        ));
    }
    let (folder, ctx, is_alone) = match data::open_alone(data).await {
        Ok((folder, ctx)) => (folder, ctx, true),
        Err(error) if matches!(error.downcast_ref(), Some(FolderError::Served { .. })) => {
            let (folder, ctx) = data::open_folder_beside(data).await?;
            (folder, ctx, false)
        }
        Err(error) => return Err(error),
    };
    let _lock = folder.lock_keys()?;
    // More than one: a rotation was not finished, and this one goes on with it.
    if folder.keys.master_count()? == 1 {
        folder.keys.add_master()?;
    }
    let bar = out.progress("keys", None);
    let rewrapped = rewrap(&folder, &ctx, &|keys| bar.set_position(keys)).await;
    bar.finish_and_clear();
    let Rewrapped { keys, rewrapped } = rewrapped?;
    if is_alone {
        folder.keys.forget_old_masters()?;
    }
    let rotated = Rotated {
        keys: Some(keys),
        rewrapped: Some(rewrapped),
        old_key_removed: Some(is_alone),
        ..Rotated::default()
    };
    out.answer(&rotated, |_| {
        let old = match is_alone {
            true => "The old one is gone from master.key.",
            false => {
                "The server runs and may be using the old one, which stays in master.key until its next start, or \
                 until this command is run while it is stopped."
            }
        };
        format!(
            "All {keys} keys are under a new master key. {old}\nCopy master.key to where you keep it; your copy of \
             the old one opens the backups from before."
        )
    })
}

async fn rewrap(
    folder: &DataFolder,
    ctx: &Context,
    progress: &(dyn Fn(u64) + Sync),
) -> anyhow::Result<Rewrapped> {
    let done = masters::rewrap(ctx, folder, progress).await?;
    folder.rewrap_check().await?;
    Ok(done)
}

/// Ends a rotation that was made beside a server: what a server does at its start, when nobody uses the old key.
pub(crate) async fn finish_rotation(folder: &DataFolder, ctx: &Arc<Context>) -> anyhow::Result<()> {
    if folder.keys.master_count()? == 1 {
        return Ok(());
    }
    let _lock = folder.lock_keys()?;
    rewrap(folder, ctx, &|_| {}).await?;
    folder.keys.forget_old_masters()?;
    tracing::info!("the master key was replaced; the old one is gone from the file");
    Ok(())
}

async fn renew(data: &Data, address: &StackAddress, out: Output) -> anyhow::Result<()> {
    let (folder, ctx) = data::open_beside(data).await?;
    // A rotation must not miss the new key.
    let _lock = folder.as_ref().map(DataFolder::lock_keys).transpose()?;
    let operator = directory::operator(&ctx, Some(&address.org)).await?;
    let stack = lookup::locate(&ctx, &operator, address).await?.id;
    let key = secrets::renew_key(&ctx, stack).await?;
    let renewed = Rotated { stack: Some(address.to_string()), data_key: Some(key), ..Rotated::default() };
    out.answer(&renewed, |_| {
        format!(
            "{address} has data key {key}: a running server seals new secrets under it within five minutes. What \
             was sealed before is opened as before"
        )
    })
}
