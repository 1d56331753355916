//! `statewright backup` and `statewright restore`.

use std::path::PathBuf;

use anyhow::bail;
use indicatif::ProgressBar;
use serde::Serialize;
use statewright_shared::adapters::embedded::{RestoreFrom, back_up, restore as bring_back};
use statewright_shared::ports::{BlobKey, ItemKey};

use crate::args::{Data, Store};
use crate::commands::misused;
use crate::data;
use crate::output::Output;

#[derive(Debug, clap::Args)]
pub(crate) struct Backup {
    #[command(flatten)]
    data: Data,
    /// The folder of the backup: a new one, or one of a backup before, to which only what is new is copied.
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
    /// Leave the master key out. Without it nobody can read the secrets in the backup, or restore it: keep a copy of
    /// master.key elsewhere.
    #[arg(long)]
    without_key: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Restore {
    #[command(flatten)]
    data: Data,
    /// The folder of the backup.
    #[arg(long, value_name = "FOLDER")]
    from: PathBuf,
    /// The master key, for a backup that was made without it.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Restore what can be restored, though blobs are missing or damaged.
    #[arg(long)]
    despite_damage: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BackedUp {
    folder: String,
    items: u64,
    blobs: u64,
    blobs_copied: u64,
    bytes_copied: u64,
    master_key: bool,
    missing: Vec<String>,
    damaged: Vec<String>,
    unreadable: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Restored {
    folder: String,
    made: String,
    items: u64,
    blobs: u64,
    missing: Vec<String>,
    damaged: Vec<String>,
    unreadable: Vec<String>,
}

pub(crate) async fn backup(backup: Backup, out: Output) -> anyhow::Result<()> {
    let Backup { data, to, without_key } = backup;
    if data.store == Store::Aws {
        return Err(misused(
            "a backup is of a folder. On AWS the table can be brought back as it was at any moment of its last 35 days, and \
             the bucket keeps what it named for as long; `statewright copy --from aws --to FOLDER` makes a folder of all of it",
        ));
    }
    let (folder, ctx) = data::open_folder_beside(&data).await?;
    let bar = out.progress("blobs", Some(0));
    let made = back_up(&folder, &to, !without_key, ctx.now(), data::named_blobs, &shown(&bar)).await;
    bar.finish_and_clear();
    let made = made?;
    let made = BackedUp {
        folder: to.display().to_string(),
        items: made.items,
        blobs: made.blobs,
        blobs_copied: made.blobs_copied,
        bytes_copied: made.bytes_copied,
        master_key: made.has_key,
        missing: names(&made.missing),
        damaged: names(&made.damaged),
        unreadable: items(&made.unreadable),
    };
    out.answer(&made, |made| {
        let key = match made.master_key {
            true => {
                "The master key is in it: whoever has this folder can read every secret. Keep it as you keep the \
                 data folder."
            }
            false => {
                "The master key is not in it: without your own copy of master.key nobody can read its secrets or \
                 restore it."
            }
        };
        format!(
            "{} holds a backup: {} items, {} blobs, {} of them copied now ({} bytes).\n{key}",
            made.folder, made.items, made.blobs, made.blobs_copied, made.bytes_copied
        )
    })?;
    complain(wrong(&made.missing, &made.damaged, &made.unreadable), "the rest is in the backup")
}

pub(crate) async fn restore(restore: Restore, out: Output) -> anyhow::Result<()> {
    let Restore { data, from, key, despite_damage } = restore;
    let to = data::path(&data)?;
    let bar = out.progress("blobs", Some(0));
    let from = RestoreFrom { backup: &from, key: key.as_deref(), despite_damage };
    let done = bring_back(from, &to, data::named_blobs, &shown(&bar)).await;
    bar.finish_and_clear();
    let done = done?;
    let done = Restored {
        folder: to.display().to_string(),
        made: done.made,
        items: done.items,
        blobs: done.blobs,
        missing: names(&done.missing),
        damaged: names(&done.damaged),
        unreadable: items(&done.unreadable),
    };
    out.answer(&done, |done| {
        format!(
            "{} holds what there was at {}: {} items, {} blobs. `statewright serve --data {}` serves it.",
            done.folder, done.made, done.items, done.blobs, done.folder
        )
    })?;
    complain(wrong(&done.missing, &done.damaged, &done.unreadable), "the rest is restored")
}

fn shown(bar: &ProgressBar) -> impl Fn(u64, u64) + Sync + use<> {
    let bar = bar.clone();
    move |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    }
}

fn names(keys: &[BlobKey]) -> Vec<String> {
    keys.iter().map(ToString::to_string).collect()
}

fn items(keys: &[ItemKey]) -> Vec<String> {
    keys.iter().map(|key| format!("{} {}", key.partition, key.sort)).collect()
}

fn wrong<'a>(
    missing: &'a [String],
    damaged: &'a [String],
    unreadable: &'a [String],
) -> [(&'static str, &'a [String]); 3] {
    [("blobs are missing", missing), ("blobs are damaged", damaged), ("items cannot be read", unreadable)]
}

/// Ends with what is wrong, after the answer.
fn complain(wrong: [(&str, &[String]); 3], rest: &str) -> anyhow::Result<()> {
    let words: Vec<String> = wrong
        .iter()
        .filter(|(_, what)| !what.is_empty())
        .map(|(words, what)| format!("{} {words}: {}", what.len(), what.join(", ")))
        .collect();
    if words.is_empty() { Ok(()) } else { bail!("{}; {rest}", words.join("; ")) }
}
