//! Opening the data folder as the context of use cases.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use directories::ProjectDirs;
use statewright_shared::adapters::embedded::DataFolder;
use statewright_shared::adapters::{SystemClock, SystemIds};
use statewright_shared::context::Context;
use statewright_shared::layout;
use statewright_shared::ports::{BlobKey, BoxError, Ids, Item};

use crate::args::Data;

/// The folder that was asked for, or this platform's place for the data of programs.
pub(crate) fn path(data: &Data) -> anyhow::Result<PathBuf> {
    if let Some(folder) = &data.folder {
        return Ok(folder.clone());
    }
    let dirs = ProjectDirs::from("", "", "statewright")
        .context("this user has no home folder to put data into; name a folder with --data")?;
    Ok(dirs.data_dir().to_owned())
}

/// The folder for its one server, made on the first start. As long as the value lives, no other server can have it.
pub(crate) async fn open_server(data: &Data) -> anyhow::Result<(DataFolder, Context)> {
    let folder = DataFolder::open_server(&path(data)?, Arc::new(SystemIds)).await?;
    // A data folder has one server at a time, so a new one need not wait for what the last one may be publishing.
    let context = context(&folder, "server".to_owned());
    Ok((folder, context))
}

/// The folder for a command beside the server.
pub(crate) async fn open_beside(data: &Data) -> anyhow::Result<(DataFolder, Context)> {
    let folder = DataFolder::open_beside(&path(data)?, Arc::new(SystemIds)).await?;
    let context = context(&folder, format!("command {}", SystemIds.uuid()));
    Ok((folder, context))
}

/// The folder for a command that needs it to itself. As long as the value lives, no server can have it.
pub(crate) async fn open_alone(data: &Data) -> anyhow::Result<(DataFolder, Context)> {
    let folder = DataFolder::open_alone(&path(data)?, Arc::new(SystemIds)).await?;
    let context = context(&folder, format!("command {}", SystemIds.uuid()));
    Ok((folder, context))
}

/// The blobs that an item names, for a backup to look for them.
pub(crate) fn named_blobs(item: &Item) -> Result<Vec<(BlobKey, Option<String>)>, BoxError> {
    let named = layout::named_blobs(item)?;
    Ok(named.into_iter().map(|blob| (blob.key, blob.sha256)).collect())
}

fn context(folder: &DataFolder, publisher: String) -> Context {
    Context::new(
        Arc::new(folder.ledger.clone()),
        Arc::new(folder.blobs.clone()),
        Arc::new(folder.keys.clone()),
        Arc::new(SystemClock),
        Arc::new(SystemIds),
        publisher,
    )
}
