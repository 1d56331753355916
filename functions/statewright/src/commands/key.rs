//! `statewright key`.

use clap::Subcommand;
use serde::Serialize;
use statewright_shared::adapters::embedded::{DataFolder, FolderError};
use statewright_shared::context::Context;
use statewright_shared::domain::names::StackAddress;
use statewright_shared::domain::plural::count;
use statewright_shared::ports::Inventory;
use statewright_shared::services::identity::directory;
use statewright_shared::services::keys::data_keys;
use statewright_shared::services::keys::master_key;
use statewright_shared::services::keys::master_key::Rewrapped;
use statewright_shared::services::store::stack_lookup;
use statewright_shared::services::updates;

use crate::args::{self, Data, Store};
use crate::data;
use crate::data::rotation::rewrap;
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
    /// Replace the master key, which wraps all data keys, and the key that signs update tokens. While a
    /// server runs, the old master key stays in the file until the server's next start.
    ///
    /// An older copy of the folder with its key can still read its own secrets. It can also read later
    /// secrets until their data keys are replaced (--data-keys). It can sign tokens for updates that are
    /// running now, for six minutes at most: such a token is not renewed. Updates that an older version of
    /// the server began are not renewed either and end within five minutes.
    Rotate {
        /// Also create a new data key for every stack, state and environment that has one: later secrets are
        /// encrypted with it.
        #[arg(long, conflicts_with = "stack")]
        data_keys: bool,
        /// Create a new data key for this stack only, ORGANIZATION/PROJECT/STACK: later secrets are encrypted
        /// with it.
        #[arg(long, value_name = "STACK", value_parser = args::stack_address)]
        stack: Option<StackAddress>,
    },
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Rotated {
    /// The stack that got a new data key; `None` if the master key was replaced.
    stack: Option<String>,
    data_key: Option<u32>,
    /// `None` on AWS, as is everything about the master key.
    keys: Option<u64>,
    rewrapped: Option<u64>,
    old_key_removed: Option<bool>,
    /// Stacks, states and environments with a new data key.
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
fn old_copies_note(data_keys: Option<u64>) -> String {
    match data_keys {
        Some(_) => {
            "Anyone with an older copy and its key can read the secrets in that copy and those that a \
                    running server encrypts in the next five minutes. They can sign tokens for updates that \
                    are running now, for six minutes at most: such a token is not renewed."
                .to_owned()
        }
        None => {
            "Anyone with an older copy and its key can read the secrets in that copy. They can also read \
                 later secrets, which are encrypted with the same data keys: add --data-keys to change that. \
                 They can sign tokens for updates that are running now, for six minutes at most: such a \
                 token is not renewed."
                .to_owned()
        }
    }
}

fn new_data_keys(data_keys: Option<u64>) -> String {
    data_keys.map_or_else(String::new, |renewed| format!(" Replaced {}.", count(renewed, "data key")))
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
            "Update tokens have a new signing key.{} The master key stays: KMS rotates it each year since \
             `statewright aws setup`, or at once with `aws kms rotate-key-on-demand`. To use another KMS \
             key, copy the store to a folder, and from there to a table, bucket and key of your choice.\n{}",
            new_data_keys(data_keys),
            old_copies_note(data_keys)
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
    // More than one key: continue a rotation that was not finished.
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
            true => "The old one was removed from master.key.",
            false => {
                "The running server may still use the old one, which stays in master.key until the server's \
                 next start, or until you run this command while the server is stopped."
            }
        };
        format!(
            "A new master key wraps {}, and update tokens have a new signing key.{} \
             {old}\nCopy master.key to where you keep it. Keep your copy of the old one for earlier \
             backups.\n{}",
            count(keys, "key"),
            new_data_keys(data_keys),
            old_copies_note(data_keys)
        )
    })
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
            "{address} has data key {key}: a running server encrypts new secrets with it within five \
             minutes. Existing secrets can still be read"
        )
    })
}
