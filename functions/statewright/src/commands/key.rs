//! `statewright key`.

use std::sync::Arc;

use clap::Subcommand;
use serde::Serialize;
use statewright_shared::adapters::embedded::{DataFolder, FolderError};
use statewright_shared::context::Context;
use statewright_shared::domain::names::StackAddress;
use statewright_shared::ports::Inventory;
use statewright_shared::services::identity::directory;
use statewright_shared::services::keys::data_keys;
use statewright_shared::services::keys::master_key;
use statewright_shared::services::keys::master_key::Rewrapped;
use statewright_shared::services::store::stack_lookup;
use statewright_shared::services::updates;

use crate::args::{self, Data, Store};
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
    /// Put new keys in the place of those that others may know: a new master key, which all data keys are wrapped under, and a new
    /// key that signs update tokens. While a server runs the old master key stays in the file, and goes at its next start.
    ///
    /// Who has an older copy of the folder with its key can still read what that copy holds. The copy opens later secrets too, until
    /// their data keys are new (--data-keys). It can sign for the updates that run now, for six minutes at most: such a token is not
    /// renewed. An update that an older version of the server began is not renewed either, and ends within five minutes.
    Rotate {
        /// Make a new data key for everything that has one as well: what is encrypted from now on is under it.
        #[arg(long, conflicts_with = "stack")]
        data_keys: bool,
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
    /// `None` on AWS, as all that is about the master key.
    keys: Option<u64>,
    rewrapped: Option<u64>,
    old_key_removed: Option<bool>,
    /// How many stacks, states and environments got a data key.
    data_keys: Option<u64>,
}

pub(crate) async fn run(key: Key, out: Output) -> anyhow::Result<()> {
    match key.command {
        Command::Rotate { stack: Some(address), .. } => renew(&key.data, &address, out).await,
        Command::Rotate { data_keys, .. } if key.data.store == Store::Aws => {
            rotate_on_aws(&key.data, data_keys, out).await
        }
        Command::Rotate { data_keys, .. } => rotate(&key.data, data_keys, out).await,
    }
}

/// What an older copy of the store can do after a rotation.
fn of_old_copies(data_keys: Option<u64>) -> String {
    match data_keys {
        Some(_) => "Who has an older copy and its key can read what that copy holds, and what a running server seals in the next \
                    five minutes, and can sign for updates that run now, for six minutes at most: such a token is not renewed."
            .to_owned(),
        None => "Who has an older copy and its key can read what that copy holds and can open later secrets too, since they are \
                 sealed under the same data keys: add --data-keys to change that. They can sign for updates that run now, for six \
                 minutes at most: such a token is not renewed."
            .to_owned(),
    }
}

fn new_data_keys(data_keys: Option<u64>) -> String {
    data_keys.map_or_else(String::new, |count| format!(" There are {count} new data keys."))
}

async fn rotate_on_aws(data: &Data, data_keys: bool, out: Output) -> anyhow::Result<()> {
    let (store, ctx) = data::open_whole(data).await?;
    updates::tokens::renew_signer(&ctx).await?;
    let data_keys = match data_keys {
        true => Some(renew_all(&*store, &ctx, out).await?),
        false => None,
    };
    let rotated = Rotated { data_keys, ..Rotated::default() };
    out.answer(&rotated, |_| {
        format!(
            "Update tokens have a new signing key.{} The master key stays: KMS changes what is inside of it by itself, each year \
             since `statewright aws setup`, or at once with `aws kms rotate-key-on-demand`. To come under another key, copy the \
             store to a folder, and from there to a table, a bucket and the key that you want.\n{}",
            new_data_keys(data_keys),
            of_old_copies(data_keys)
        )
    })
}

async fn renew_all(store: &dyn Inventory, ctx: &Context, out: Output) -> anyhow::Result<u64> {
    let bar = out.progress("data keys", None);
    let renewed = master_key::renew_data_keys(ctx, store, &|keys| bar.set_position(keys)).await;
    bar.finish_and_clear();
    Ok(renewed?)
}

async fn rotate(data: &Data, data_keys: bool, out: Output) -> anyhow::Result<()> {
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
    let data_keys = match data_keys {
        true => Some(renew_all(&folder, &ctx, out).await?),
        false => None,
    };
    if is_alone {
        folder.keys.forget_old_masters()?;
    }
    let rotated = Rotated {
        keys: Some(keys),
        rewrapped: Some(rewrapped),
        old_key_removed: Some(is_alone),
        data_keys,
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
            "All {keys} keys are under a new master key, and update tokens have a new signing key.{} {old}\nCopy master.key to \
             where you keep it; your copy of the old one opens the backups from before.\n{}",
            new_data_keys(data_keys),
            of_old_copies(data_keys)
        )
    })
}

async fn rewrap(
    folder: &DataFolder,
    ctx: &Context,
    progress: &(dyn Fn(u64) + Sync),
) -> anyhow::Result<Rewrapped> {
    let done = master_key::rewrap(ctx, folder, progress).await?;
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
    let stack = stack_lookup::locate(&ctx, &operator, address).await?.id;
    let key = data_keys::renew_key(&ctx, stack).await?;
    let renewed = Rotated { stack: Some(address.to_string()), data_key: Some(key), ..Rotated::default() };
    out.answer(&renewed, |_| {
        format!(
            "{address} has data key {key}: a running server seals new secrets under it within five minutes. What \
             was sealed before is opened as before"
        )
    })
}
