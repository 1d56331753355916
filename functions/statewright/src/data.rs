//! Opening the store as the context of use cases.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use directories::ProjectDirs;
use statewright_shared::adapters::embedded::{DataFolder, FileBlobs};
use statewright_shared::adapters::{Kept, SystemClock, SystemIds, Unavailable};
use statewright_shared::context::Context;
use statewright_shared::layout;
use statewright_shared::ports::{BlobKey, Blobs, BoxError, Ids, Inventory, Item, Wrap};
use statewright_shared::services::maintenance::backup;
use statewright_shared::services::maintenance::copy::refuse_unfinished;

use crate::args::{self, Data, Place, Shelf, Store, misused};

#[cfg(feature = "aws")]
pub(crate) mod on_aws;
#[cfg(not(feature = "aws"))]
#[path = "data/without_aws.rs"]
pub(crate) mod on_aws;

/// The folder that was asked for, or this platform's place for the data of programs.
pub(crate) fn path(data: &Data) -> anyhow::Result<PathBuf> {
    if data.store != Store::Folder {
        return Err(misused("this command is about a folder with data, and the store is on AWS"));
    }
    if let Some(folder) = &data.folder {
        return Ok(folder.clone());
    }
    let dirs = ProjectDirs::from("", "", "statewright")
        .context("this user has no home folder to put data into; name a folder with --data")?;
    Ok(dirs.data_dir().to_owned())
}

/// Where the data lie, for a person to read.
pub(crate) fn place(data: &Data) -> anyhow::Result<String> {
    Ok(match data.store {
        Store::Folder => path(data)?.display().to_string(),
        Store::Aws => on_aws::place(&data.aws)?,
    })
}

/// The store for a server. A folder is for one server, and made on the first start: as long as the value lives, no other can
/// have it.
pub(crate) async fn open_server(data: &Data) -> anyhow::Result<(Option<DataFolder>, Context)> {
    if data.store == Store::Aws {
        // Others may be publishing what this one meets, so it is no one's heir.
        let context = open_aws(&data.aws, format!("server {}", SystemIds.uuid())).await?.context;
        return Ok((None, context));
    }
    let folder = DataFolder::open_server(&path(data)?, Arc::new(SystemIds)).await?;
    // A data folder has one server at a time, so a new one need not wait for what the last one may be publishing.
    let context = context(&folder, "server".to_owned());
    refuse_unfinished(&context).await?;
    Ok((Some(folder), context))
}

/// The store for a command beside servers.
pub(crate) async fn open_beside(data: &Data) -> anyhow::Result<(Option<DataFolder>, Context)> {
    if data.store == Store::Aws {
        return Ok((None, open_aws(&data.aws, format!("command {}", SystemIds.uuid())).await?.context));
    }
    let (folder, context) = open_folder_beside(data).await?;
    Ok((Some(folder), context))
}

/// The store for a command beside servers that looks at all of it.
pub(crate) async fn open_whole(data: &Data) -> anyhow::Result<(Box<dyn Inventory>, Context)> {
    if data.store == Store::Aws {
        let side = open_aws(&data.aws, format!("command {}", SystemIds.uuid())).await?;
        return Ok((side.inventory, side.context));
    }
    let (folder, context) = open_folder_beside(data).await?;
    Ok((Box::new(folder), context))
}

/// The folder for a command that is about a folder, beside the server.
pub(crate) async fn open_folder_beside(data: &Data) -> anyhow::Result<(DataFolder, Context)> {
    let folder = DataFolder::open_beside(&path(data)?, Arc::new(SystemIds)).await?;
    let context = context(&folder, format!("command {}", SystemIds.uuid()));
    refuse_unfinished(&context).await?;
    Ok((folder, context))
}

/// The folder for a command that needs it to itself. As long as the value lives, no server can have it.
pub(crate) async fn open_alone(data: &Data) -> anyhow::Result<(DataFolder, Context)> {
    open_folder_alone(&path(data)?).await
}

async fn open_folder_alone(path: &Path) -> anyhow::Result<(DataFolder, Context)> {
    let folder = DataFolder::open_alone(path, Arc::new(SystemIds)).await?;
    let context = context(&folder, format!("command {}", SystemIds.uuid()));
    refuse_unfinished(&context).await?;
    Ok((folder, context))
}

/// The store beside servers, whatever it is like.
pub(crate) async fn look(data: &Data) -> anyhow::Result<Context> {
    let publisher = format!("command {}", SystemIds.uuid());
    Ok(match data.store {
        Store::Aws => on_aws::connect(&data.aws, publisher).await?.context,
        Store::Folder => {
            let folder = DataFolder::open_beside(&path(data)?, Arc::new(SystemIds)).await?;
            context(&folder, publisher)
        }
    })
}

/// A store that a copy is made of or into.
pub(crate) struct Side {
    pub(crate) context: Context,
    pub(crate) inventory: Box<dyn Inventory>,
    pub(crate) wrap: Box<dyn Wrap>,
}

impl Side {
    fn of_folder(folder: DataFolder, context: Context) -> Self {
        Self { context, wrap: Box::new(folder.keys.clone()), inventory: Box::new(folder) }
    }
}

/// The store that a copy is made of; a folder is this process's alone.
pub(crate) async fn open_source(place: &Place, aws: &args::AwsStore) -> anyhow::Result<Side> {
    Ok(match place {
        Place::Aws => open_aws(aws, format!("copy {}", SystemIds.uuid())).await?,
        Place::Folder(path) => {
            let (folder, context) = open_folder_alone(path).await?;
            Side::of_folder(folder, context)
        }
    })
}

/// The store that a copy is made into, finished or not; a folder is made, and this process's alone.
pub(crate) async fn open_target(place: &Place, aws: &args::AwsStore) -> anyhow::Result<Side> {
    let publisher = format!("copy {}", SystemIds.uuid());
    Ok(match place {
        Place::Aws => on_aws::connect(aws, publisher).await?,
        Place::Folder(path) => {
            refuse_foreign(path)?;
            let folder = DataFolder::open_server(path, Arc::new(SystemIds)).await?;
            let context = context(&folder, publisher);
            Side::of_folder(folder, context)
        }
    })
}

/// Where a backup is kept, as blobs.
pub(crate) struct OpenShelf {
    /// Nothing of it but its blobs is there.
    pub(crate) context: Context,
    #[cfg_attr(not(feature = "aws"), expect(dead_code, reason = "a restore reads blobs that it knows"))]
    pub(crate) inventory: Box<dyn Inventory>,
    blobs: Arc<dyn Blobs>,
}

/// The place of a backup. With `make` a folder is made where there is none.
pub(crate) async fn open_shelf(
    shelf: &Shelf,
    kept: &args::Kept,
    aws: &args::AwsStore,
    make: bool,
) -> anyhow::Result<OpenShelf> {
    let (clock, ids) = (Arc::new(SystemClock), Arc::new(SystemIds));
    let (blobs, inventory): (Arc<dyn Blobs>, Box<dyn Inventory>) = match shelf {
        Shelf::Folder(path) => {
            if make {
                refuse_foreign_shelf(path)?;
                FileBlobs::open_or_create(path)
                    .with_context(|| format!("{} cannot be used", path.display()))?;
            }
            let files = FileBlobs::open_existing(path);
            (Arc::new(files.clone()), Box::new(files))
        }
        Shelf::Bucket(name) => on_aws::bucket(name, kept, aws).await?,
    };
    let (nothing, name) = (Arc::new(Unavailable), "backup".to_owned());
    let context = Context::new(nothing.clone(), Arc::clone(&blobs), nothing, clock, ids, name);
    Ok(OpenShelf { context, inventory, blobs })
}

/// A backup as a store that is copied from. Its data keys are opened with the key that was named, or else that which the
/// backup names.
pub(crate) async fn open_kept(
    shelf: &OpenShelf,
    made: &backup::Made,
    kept: &args::Kept,
    aws: &args::AwsStore,
) -> anyhow::Result<(Kept, Context)> {
    let blobs = Arc::clone(&shelf.blobs);
    let store = Kept::new(blobs, backup::KEPT, made.parts(), made.looked_up()?, backup::items_of_part);
    let key = kept.backup_kms_key.as_deref().unwrap_or(&made.master_key);
    let keys = on_aws::key_of_backup(key, kept, aws).await?;
    let context = Context::new(
        Arc::new(store.clone()),
        Arc::new(store.clone()),
        Arc::new(keys),
        Arc::new(SystemClock),
        Arc::new(SystemIds),
        "restore".to_owned(),
    );
    Ok((store, context))
}

/// Refuses a folder with files that no store has made.
fn refuse_foreign(path: &Path) -> anyhow::Result<()> {
    let names = names_in(path)?;
    let is_ours = |name: &OsString| {
        let name = name.to_string_lossy();
        name.starts_with("ledger.sqlite") || matches!(&*name, "blobs" | "master.key" | "lock" | "key-lock")
    };
    ensure!(
        names.iter().all(is_ours),
        "{} holds something else. Nothing was changed. A copy goes into a new folder",
        path.display()
    );
    Ok(())
}

/// Refuses a folder with files that no backup of a store on AWS has made.
fn refuse_foreign_shelf(path: &Path) -> anyhow::Result<()> {
    let names = names_in(path)?;
    let is_ours = |name: &OsString| {
        matches!(&*name.to_string_lossy(), ".tmp" | "backup.json" | "blobs" | "items" | "runs")
    };
    ensure!(
        names.iter().all(is_ours),
        "{} holds something else. Nothing was changed. Choose another folder",
        path.display()
    );
    Ok(())
}

fn names_in(path: &Path) -> anyhow::Result<Vec<OsString>> {
    let names = match fs::read_dir(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("{} cannot be read", path.display()))?,
    };
    Ok(names.map(|entry| Ok(entry?.file_name())).collect::<std::io::Result<Vec<_>>>()?)
}

/// The blobs that an item names, for a backup to look for them.
pub(crate) fn named_blobs(item: &Item) -> Result<Vec<(BlobKey, Option<String>)>, BoxError> {
    let named = layout::named_blobs(item)?;
    Ok(named.into_iter().map(|blob| (blob.key, blob.sha256)).collect())
}

async fn open_aws(aws: &args::AwsStore, publisher: String) -> anyhow::Result<Side> {
    let side = on_aws::connect(aws, publisher).await?;
    refuse_unfinished(&side.context).await?;
    Ok(side)
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
