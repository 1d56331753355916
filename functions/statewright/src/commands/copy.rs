//! `statewright copy`.

use std::path::{PathBuf, absolute};

use anyhow::bail;
use indicatif::ProgressBar;
use serde::Serialize;
use statewright_shared::services::maintenance::copy as service;
use statewright_shared::services::maintenance::copy::{Progress, Source, Target};

use crate::args::{self, Place, misused};
use crate::data::{self, Side};
use crate::output::Output;

#[derive(Debug, clap::Args)]
pub(crate) struct Copy {
    #[command(flatten)]
    aws: args::AwsStore,
    /// What is copied: a folder, whose server must not be running, or `aws`, while no updates run.
    #[arg(long, value_name = "FOLDER|aws", value_parser = args::place)]
    from: Place,
    /// Where to: a new folder, or `aws` with an empty table and bucket.
    #[arg(long, value_name = "FOLDER|aws", value_parser = args::place)]
    to: Place,
    /// Finish the copy although the source lacks something, or holds what does not read back.
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
            Place::Aws => "from AWS to AWS a copy goes by way of a folder",
            Place::Folder(_) => "a store is not copied into itself",
        }));
    }
    let source = data::open_source(&from, &aws).await?;
    let Side { context, inventory, .. } = &source;
    let from_store = Source { ctx: context, inventory: &**inventory, is_shared: from == Place::Aws };
    // A target is made only when there is something that goes into it.
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
            "{} holds {} items, {} of them keys that were wrapped anew, and {} blobs of {}; all of it was compared. \
             Written now: {} items and {} blobs ({} bytes).",
            copied.to,
            copied.items,
            copied.keys,
            copied.blobs,
            copied.from,
            copied.items_written,
            copied.blobs_copied,
            copied.bytes_copied
        );
        if !copied.finished {
            return format!("{what}\nThe copy is not finished, and nothing serves from it.");
        }
        let serve = match &to {
            Place::Aws => "statewright serve --store aws".to_owned(),
            Place::Folder(path) => format!("statewright serve --data {}", path.display()),
        };
        format!(
            "{what}\n`{serve}` serves it. States name the address of their server: keep that, or see `statewright \
             rehome`. Do not serve what was copied any more: the two would go different ways."
        )
    })?;
    let wrong: Vec<String> = [
        ("blobs are missing", &copied.missing),
        ("blobs are damaged", &copied.damaged),
        ("items cannot be read", &copied.unreadable),
    ]
    .into_iter()
    .filter(|(_, what)| !what.is_empty())
    .map(|(words, what)| format!("{} {words}: {}", what.len(), what.join(", ")))
    .collect();
    match (wrong.is_empty(), copied.finished) {
        (true, _) => Ok(()),
        (false, true) => bail!("{}; the rest is copied", wrong.join("; ")),
        (false, false) => {
            bail!("{}; run it with --despite-damage to be done with the rest", wrong.join("; "))
        }
    }
}

/// Shows how far a copy is.
pub(crate) fn shown(bar: &ProgressBar) -> impl Fn(Progress) + Sync + use<> {
    let bar = bar.clone();
    move |progress| match progress {
        Progress::Items(done) => {
            bar.set_message("items");
            bar.set_length(done);
            bar.set_position(done);
        }
        Progress::Blobs(done, total) => {
            bar.set_message("blobs");
            bar.set_length(total);
            bar.set_position(done);
        }
    }
}

fn is_same(from: &Place, to: &Place) -> bool {
    let real =
        |path: &PathBuf| path.canonicalize().or_else(|_| absolute(path)).unwrap_or_else(|_| path.clone());
    match (from, to) {
        (Place::Aws, Place::Aws) => true,
        (Place::Folder(from), Place::Folder(to)) => real(from) == real(to),
        (Place::Aws, Place::Folder(_)) | (Place::Folder(_), Place::Aws) => false,
    }
}

/// A store, for a person to read.
fn words(place: &Place, aws: &args::AwsStore) -> anyhow::Result<String> {
    Ok(match place {
        Place::Folder(path) => path.display().to_string(),
        Place::Aws => data::on_aws::place(aws)?,
    })
}
