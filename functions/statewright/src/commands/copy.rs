//! `statewright copy`.

use std::path::{PathBuf, absolute};

use anyhow::bail;
use serde::Serialize;
use statewright_shared::domain::plural::count;
use statewright_shared::services::maintenance::copy as service;
use statewright_shared::services::maintenance::copy::{Source, Target};

use super::copied::{lacking, shown};
use crate::args::{self, StoreLocation, misused};
use crate::data::{self, Side};
use crate::output::Output;

#[derive(Debug, clap::Args)]
pub(crate) struct Copy {
    #[command(flatten)]
    aws: args::AwsStore,
    /// The source: a folder whose server is stopped, or `aws` while no updates run.
    #[arg(long, value_name = "FOLDER|aws", value_parser = args::store_location)]
    from: StoreLocation,
    /// The target: a new folder, or `aws` with an empty table and bucket.
    #[arg(long, value_name = "FOLDER|aws", value_parser = args::store_location)]
    to: StoreLocation,
    /// Finish the copy even if the source has missing or damaged data.
    #[arg(long)]
    despite_damage: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Copied {
    from: String,
    to: String,
    resumed: bool,
    finished: bool,
    items: u64,
    items_written: u64,
    keys: u64,
    blobs: u64,
    blobs_copied: u64,
    bytes_copied: u64,
    removed: u64,
    missing: Vec<String>,
    damaged: Vec<String>,
    unreadable: Vec<String>,
}

pub(crate) async fn run(copy: Copy, out: Output) -> anyhow::Result<()> {
    let Copy { aws, from, to, despite_damage } = copy;
    if is_same(&from, &to) {
        return Err(misused(match from {
            StoreLocation::Aws => "to copy from AWS to AWS, copy to a folder first",
            StoreLocation::Folder(_) => "--from and --to are the same store",
        }));
    }
    let source = data::open_source(&from, &aws).await?;
    let Side { context, inventory, .. } = &source;
    let from_store = Source { ctx: context, inventory: &**inventory, is_shared: from == StoreLocation::Aws };
    // Opened first, so that no target is created for a source that cannot be read.
    service::ready(from_store).await?;
    let target = data::open_target(&to, &aws).await?;
    let bar = out.progress("items", None);
    let shown = shown(&bar);
    let Side { context, inventory, wrap } = &target;
    let to_store = Target { ctx: context, inventory: &**inventory, wrap: &**wrap };
    let done = service::copy(from_store, to_store, despite_damage, &shown).await;
    bar.finish_and_clear();
    let done = done?;
    let copied = Copied {
        from: words(&from, &aws)?,
        to: words(&to, &aws)?,
        resumed: done.resumed,
        finished: done.finished,
        items: done.items,
        items_written: done.items_written,
        keys: done.keys,
        blobs: done.blobs,
        blobs_copied: done.blobs_copied,
        bytes_copied: done.bytes_copied,
        removed: done.removed,
        missing: done.missing.iter().map(ToString::to_string).collect(),
        damaged: done.damaged.iter().map(ToString::to_string).collect(),
        unreadable: done.unreadable.iter().map(|key| format!("{} {}", key.partition, key.sort)).collect(),
    };
    out.answer(&copied, |copied| {
        let what = format!(
            "{} holds {} (with {}) and {} from {}; everything was compared. Written now: {} and {} ({}).",
            copied.to,
            count(copied.items, "item"),
            count(copied.keys, "rewrapped key"),
            count(copied.blobs, "blob"),
            copied.from,
            count(copied.items_written, "item"),
            count(copied.blobs_copied, "blob"),
            count(copied.bytes_copied, "byte")
        );
        if !copied.finished {
            return format!("{what}\nThe copy is not finished, so no server can run on it.");
        }
        let serve = match &to {
            StoreLocation::Aws => "statewright serve --store aws".to_owned(),
            StoreLocation::Folder(path) => format!("statewright serve --data {}", path.display()),
        };
        format!(
            "{what}\nStart the server with `{serve}`. States name the address of their server: keep that \
             address, or see `statewright rehome`. Do not serve the source any more: the two stores would \
             diverge."
        )
    })?;
    match (lacking(&copied.missing, &copied.damaged, &copied.unreadable), copied.finished) {
        (None, _) => Ok(()),
        (Some(words), true) => bail!("{words}; everything else is copied"),
        (Some(words), false) => {
            bail!("{words}; to finish without them, run it with --despite-damage")
        }
    }
}

fn is_same(from: &StoreLocation, to: &StoreLocation) -> bool {
    let real =
        |path: &PathBuf| path.canonicalize().or_else(|_| absolute(path)).unwrap_or_else(|_| path.clone());
    match (from, to) {
        (StoreLocation::Aws, StoreLocation::Aws) => true,
        (StoreLocation::Folder(from), StoreLocation::Folder(to)) => real(from) == real(to),
        (StoreLocation::Aws, StoreLocation::Folder(_)) | (StoreLocation::Folder(_), StoreLocation::Aws) => {
            false
        }
    }
}

fn words(location: &StoreLocation, aws: &args::AwsStore) -> anyhow::Result<String> {
    Ok(match location {
        StoreLocation::Folder(path) => path.display().to_string(),
        StoreLocation::Aws => data::on_aws::location(aws)?,
    })
}
