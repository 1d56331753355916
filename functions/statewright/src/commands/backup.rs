//! `statewright backup` and `statewright restore`.

use std::path::PathBuf;

use anyhow::bail;
use indicatif::ProgressBar;
use serde::Serialize;
use statewright_shared::adapters::embedded::{RestoreFrom, back_up, restore as restore_folder};
use statewright_shared::domain::plural::count;
use statewright_shared::ports::{BlobKey, ItemKey};
use statewright_shared::services::maintenance::copy::Copied;

use super::copied::lacking;
use crate::args::{self, Data, Kept, Shelf, Store, misused};
#[cfg(feature = "aws")]
use crate::commands::backup_on_aws;
use crate::commands::restore_on_aws;
use crate::data;
use crate::output::Output;

#[derive(Debug, clap::Args)]
pub(crate) struct Backup {
    #[command(flatten)]
    data: Data,
    #[command(flatten)]
    kept: Kept,
    /// Where to keep the backup: a new folder, or the folder of an earlier backup, to which only new data is
    /// copied. For a store on AWS also a dedicated bucket, `s3://BUCKET`.
    #[arg(long, value_name = "FOLDER|s3://BUCKET", value_parser = args::shelf)]
    to: Shelf,
    /// Leave out the master key of a data folder. Without it the secrets in the backup cannot be read and the
    /// backup cannot be restored: keep a copy of master.key elsewhere.
    #[arg(long)]
    without_key: bool,
    /// For a store on AWS: also read the blobs that the backup already has, and copy damaged ones again.
    #[arg(long)]
    verify: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Restore {
    #[command(flatten)]
    data: Data,
    #[command(flatten)]
    kept: Kept,
    /// The backup to restore.
    #[arg(long, value_name = "FOLDER|s3://BUCKET", value_parser = args::shelf)]
    from: Shelf,
    /// The master key, for a backup of a folder that was made with --without-key.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Restore everything else even if blobs are missing or damaged.
    #[arg(long)]
    despite_damage: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BackedUp {
    folder: String,
    made: String,
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
    let made = match backup.data.store {
        Store::Aws => of_aws(&backup, out).await?,
        Store::Folder => of_folder(&backup, out).await?,
    };
    out.answer(&made, |made| {
        let key = match made.master_key {
            _ if backup.data.store == Store::Aws => {
                "Its data keys are wrapped by a KMS key. A restore needs that key, or its replica in another \
                 region."
            }
            true => {
                "It includes the master key: anyone with this folder can read every secret. Protect it like \
                 the data folder."
            }
            false => {
                "It does not include the master key: without your own copy of master.key it cannot be \
                 restored, and its secrets cannot be read."
            }
        };
        format!(
            "{} holds a backup as of {}: {}, {}, {} of them copied now ({}).\n{key}",
            made.folder,
            made.made,
            count(made.items, "item"),
            count(made.blobs, "blob"),
            made.blobs_copied,
            count(made.bytes_copied, "byte")
        )
    })?;
    complain(lacking(&made.missing, &made.damaged, &made.unreadable), "everything else is in the backup")
}

#[cfg(not(feature = "aws"))]
async fn of_aws(_: &Backup, _: Output) -> anyhow::Result<BackedUp> {
    Err(data::on_aws::missing())
}

#[cfg(feature = "aws")]
async fn of_aws(backup: &Backup, out: Output) -> anyhow::Result<BackedUp> {
    let Backup { data, kept, to, without_key, verify } = backup;
    if *without_key {
        return Err(misused("--without-key applies to a folder: a backup never includes a KMS key"));
    }
    let made = Box::pin(backup_on_aws::backup(data, to, kept, *verify, out)).await?;
    Ok(BackedUp {
        folder: to.to_string(),
        made: made.at.to_rfc3339(),
        items: made.done.items,
        blobs: made.done.blobs,
        blobs_copied: made.done.blobs_copied,
        bytes_copied: made.done.bytes_copied,
        master_key: false,
        missing: names(&made.done.missing),
        damaged: names(&made.done.damaged),
        unreadable: items(&made.done.unreadable),
    })
}

async fn of_folder(backup: &Backup, out: Output) -> anyhow::Result<BackedUp> {
    let Backup { data, to, without_key, verify, .. } = backup;
    if *verify {
        return Err(misused(
            "--verify applies to a store on AWS: for a folder, `statewright restore` verifies the whole \
             backup",
        ));
    }
    let Shelf::Folder(to) = to else {
        return Err(misused(
            "a folder is backed up to another folder: copy that to a bucket with AWS's own tools",
        ));
    };
    let (folder, ctx) = data::open_folder_beside(data).await?;
    let (bar, at) = (out.progress("blobs", Some(0)), ctx.now());
    let made = back_up(&folder, to, !without_key, at, data::named_blobs, &shown(&bar)).await;
    bar.finish_and_clear();
    let made = made?;
    Ok(BackedUp {
        folder: to.display().to_string(),
        made: at.to_rfc3339(),
        items: made.items,
        blobs: made.blobs,
        blobs_copied: made.blobs_copied,
        bytes_copied: made.bytes_copied,
        master_key: made.has_key,
        missing: names(&made.missing),
        damaged: names(&made.damaged),
        unreadable: items(&made.unreadable),
    })
}

pub(crate) async fn restore(restore: Restore, out: Output) -> anyhow::Result<()> {
    let Restore { data, kept, from, key, despite_damage } = restore;
    let of_aws = Box::pin(restore_on_aws::restore(&data, &from, &kept, despite_damage, out)).await?;
    let (done, is_finished) = match (of_aws, &from) {
        (Some(done), _) => {
            let is_finished = done.done.finished;
            (restored(done), is_finished)
        }
        (None, Shelf::Bucket(_)) => {
            bail!("{from} has no finished backup: make one there with `statewright backup`")
        }
        (None, Shelf::Folder(_)) if data.store == Store::Aws => {
            bail!(
                "{from} has no finished backup of a store on AWS. To move a folder's backup to AWS, restore \
                 it into a folder and run `statewright copy`"
            )
        }
        (None, Shelf::Folder(from)) => {
            let to = data::path(&data)?;
            let bar = out.progress("blobs", Some(0));
            let from = RestoreFrom { backup: from, key: key.as_deref(), despite_damage };
            let done = restore_folder(from, &to, data::named_blobs, &shown(&bar)).await;
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
            (done, true)
        }
    };
    let serve = match data.store {
        Store::Aws => "statewright serve --store aws".to_owned(),
        Store::Folder => format!("statewright serve --data {}", done.folder),
    };
    let what = lacking(&done.missing, &done.damaged, &done.unreadable);
    if !is_finished {
        return complain(
            what,
            "the restore is not finished, so no server can run on it: use another backup, or add \
             --despite-damage",
        );
    }
    out.answer(&done, |done| {
        format!(
            "{} holds the data as of {}: {}, {}. Start the server with `{serve}`.",
            done.folder,
            done.made,
            count(done.items, "item"),
            count(done.blobs, "blob")
        )
    })?;
    complain(what, "everything else is restored")
}

fn restored(restored: restore_on_aws::Restored) -> Restored {
    let restore_on_aws::Restored { made, location, done } = restored;
    let Copied { items: item_count, blobs, missing, damaged, unreadable, .. } = done;
    Restored {
        folder: location,
        made,
        items: item_count,
        blobs,
        missing: names(&missing),
        damaged: names(&damaged),
        unreadable: items(&unreadable),
    }
}

fn shown(bar: &ProgressBar) -> impl Fn(u64, u64) + Sync + use<> {
    let bar = bar.clone();
    move |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    }
}

fn names<'a>(keys: impl IntoIterator<Item = &'a BlobKey>) -> Vec<String> {
    keys.into_iter().map(ToString::to_string).collect()
}

fn items<'a>(keys: impl IntoIterator<Item = &'a ItemKey>) -> Vec<String> {
    keys.into_iter().map(|key| format!("{} {}", key.partition, key.sort)).collect()
}

/// Fails with the list of problems, after the answer was printed.
fn complain(lacking: Option<String>, rest: &str) -> anyhow::Result<()> {
    match lacking {
        Some(words) => bail!("{words}; {rest}"),
        None => Ok(()),
    }
}
