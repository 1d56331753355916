//! Opens the store for use cases.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, ensure};
use directories::ProjectDirs;
use statewright_shared::adapters::embedded::{DataFolder, FileBlobs};
use statewright_shared::adapters::{Kept, SystemClock, SystemIds, Unavailable};
use statewright_shared::context::Context;
use statewright_shared::layout;
use statewright_shared::ports::{BlobKey, Blobs, BoxError, Ids, Inventory, Item, Wrap};
use statewright_shared::services::maintenance::backup;
use statewright_shared::services::maintenance::copy::refuse_unfinished;

use crate::args::{self, Data, Shelf, Store, StoreLocation, misused};

pub(crate) mod inspect;
#[cfg(feature = "aws")]
pub(crate) mod on_aws;
#[cfg(not(feature = "aws"))]
#[path = "data/without_aws.rs"]
pub(crate) mod on_aws;
pub(crate) mod rotation;
/// In the tests of a program with AWS too, so that they run with all others.
#[cfg(all(test, feature = "aws"))]
mod without_aws;

/// The named folder, or the platform's default folder for application data.
pub(crate) fn path(data: &Data) -> anyhow::Result<PathBuf> {
    if data.store != Store::Folder {
        return Err(misused("this command needs a data folder, but the store is on AWS"));
    }
    if let Some(folder) = &data.folder {
        return Ok(folder.clone());
    }
    let dirs = ProjectDirs::from("", "", "statewright")
        .context("this user has no home folder for the data: name a folder with --data")?;
    Ok(dirs.data_dir().to_owned())
}

pub(crate) fn location(data: &Data) -> anyhow::Result<String> {
    Ok(match data.store {
        Store::Folder => path(data)?.display().to_string(),
        Store::Aws => on_aws::location(&data.aws)?,
    })
}

/// Opens the store for a server. Creates a data folder on the first start and locks it: no other server can
/// open it while the returned value lives.
pub(crate) async fn open_server(data: &Data) -> anyhow::Result<(Option<DataFolder>, Context)> {
    if data.store == Store::Aws {
        // Other servers may be publishing the updates that this one finds, so it must not take over their
        // work.
        let context = open_aws(&data.aws, format!("server {}", SystemIds.uuid())).await?.context;
        return Ok((None, context));
    }
    let folder = DataFolder::open_server(&path(data)?, Arc::new(SystemIds)).await?;
    // A data folder has one server at a time, so a new server need not wait for publications of the previous
    // one.
    let context = context(&folder, "server".to_owned());
    refuse_unfinished(&context).await?;
    Ok((Some(folder), context))
}

/// The store that this command opened, for the record of the command at its end.
static OPENED: Mutex<Option<Context>> = Mutex::new(None);

fn remember(context: &Context) {
    *OPENED.lock().unwrap_or_else(PoisonError::into_inner) = Some(context.sharing());
}

/// The store that this command opened and changed.
pub(crate) fn changed() -> Option<Context> {
    OPENED.lock().unwrap_or_else(PoisonError::into_inner).take().filter(Context::has_committed)
}

/// Opens the store for a command that may run at the same time as servers.
pub(crate) async fn open_beside(data: &Data) -> anyhow::Result<(Option<DataFolder>, Context)> {
    if data.store == Store::Aws {
        let context = open_aws(&data.aws, format!("command {}", SystemIds.uuid())).await?.context;
        remember(&context);
        return Ok((None, context));
    }
    let (folder, context) = open_folder_beside(data).await?;
    Ok((Some(folder), context))
}

/// Like [`open_beside`], with an inventory of everything stored.
pub(crate) async fn open_whole(data: &Data) -> anyhow::Result<(Box<dyn Inventory>, Context)> {
    if data.store == Store::Aws {
        let side = open_aws(&data.aws, format!("command {}", SystemIds.uuid())).await?;
        remember(&side.context);
        return Ok((side.inventory, side.context));
    }
    let (folder, context) = open_folder_beside(data).await?;
    Ok((Box::new(folder), context))
}

/// Opens a data folder for a command that may run at the same time as the server.
pub(crate) async fn open_folder_beside(data: &Data) -> anyhow::Result<(DataFolder, Context)> {
    let folder = DataFolder::open_beside(&path(data)?, Arc::new(SystemIds)).await?;
    let context = context(&folder, format!("command {}", SystemIds.uuid()));
    refuse_unfinished(&context).await?;
    remember(&context);
    Ok((folder, context))
}

/// Opens a data folder for exclusive use. No server can open it while the returned value lives.
pub(crate) async fn open_alone(data: &Data) -> anyhow::Result<(DataFolder, Context)> {
    let (folder, context) = open_folder_alone(&path(data)?).await?;
    remember(&context);
    Ok((folder, context))
}

async fn open_folder_alone(path: &Path) -> anyhow::Result<(DataFolder, Context)> {
    let folder = DataFolder::open_alone(path, Arc::new(SystemIds)).await?;
    let context = context(&folder, format!("command {}", SystemIds.uuid()));
    refuse_unfinished(&context).await?;
    Ok((folder, context))
}

/// Opens the store without checking that it is complete.
pub(crate) async fn open_unchecked(data: &Data) -> anyhow::Result<Context> {
    let publisher = format!("command {}", SystemIds.uuid());
    Ok(match data.store {
        Store::Aws => on_aws::connect(&data.aws, publisher).await?.context,
        Store::Folder => {
            let folder = DataFolder::open_beside(&path(data)?, Arc::new(SystemIds)).await?;
            context(&folder, publisher)
        }
    })
}

/// The source or target of a copy.
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

/// Opens the source of a copy. A folder is opened exclusively.
pub(crate) async fn open_source(location: &StoreLocation, aws: &args::AwsStore) -> anyhow::Result<Side> {
    Ok(match location {
        StoreLocation::Aws => open_aws(aws, format!("copy {}", SystemIds.uuid())).await?,
        StoreLocation::Folder(path) => {
            let (folder, context) = open_folder_alone(path).await?;
            Side::of_folder(folder, context)
        }
    })
}

/// Opens the target of a copy, which may be unfinished. A folder is created if needed and opened exclusively.
pub(crate) async fn open_target(location: &StoreLocation, aws: &args::AwsStore) -> anyhow::Result<Side> {
    let publisher = format!("copy {}", SystemIds.uuid());
    Ok(match location {
        StoreLocation::Aws => on_aws::connect(aws, publisher).await?,
        StoreLocation::Folder(path) => {
            refuse_foreign(path)?;
            let folder = DataFolder::open_server(path, Arc::new(SystemIds)).await?;
            let context = context(&folder, publisher);
            Side::of_folder(folder, context)
        }
    })
}

/// An opened place for backups, which stores only blobs.
pub(crate) struct OpenShelf {
    /// Has blobs, but no ledger and no keys.
    pub(crate) context: Context,
    #[cfg_attr(not(feature = "aws"), expect(dead_code, reason = "a restore reads blobs that it knows"))]
    pub(crate) inventory: Box<dyn Inventory>,
    blobs: Arc<dyn Blobs>,
}

/// Opens the place of a backup. With `make`, creates a missing folder.
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
                FileBlobs::open_or_create(path).with_context(|| format!("cannot use {}", path.display()))?;
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

/// The KMS key that wraps a backup's data keys.
// An ARN includes the region of its key: `arn:aws:kms:REGION:ACCOUNT:key/ID`.
/// Opens a backup as a store to copy from. Its data keys are opened with the named key, else with the key
/// that the backup names.
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

/// Refuses a folder with files that do not belong to a store.
fn refuse_foreign(path: &Path) -> anyhow::Result<()> {
    let names = names_in(path)?;
    let is_ours = |name: &OsString| {
        let name = name.to_string_lossy();
        name.starts_with("ledger.sqlite") || matches!(&*name, "blobs" | "master.key" | "lock" | "key-lock")
    };
    ensure!(
        names.iter().all(is_ours),
        "{} contains other files: copy into a new folder. Nothing was changed",
        path.display()
    );
    Ok(())
}

/// Refuses a folder with files that do not belong to a backup of a store on AWS.
fn refuse_foreign_shelf(path: &Path) -> anyhow::Result<()> {
    let names = names_in(path)?;
    let is_ours = |name: &OsString| {
        matches!(&*name.to_string_lossy(), ".tmp" | "backup.json" | "blobs" | "items" | "runs")
    };
    ensure!(
        names.iter().all(is_ours),
        "{} contains other files: choose another folder. Nothing was changed",
        path.display()
    );
    Ok(())
}

fn names_in(path: &Path) -> anyhow::Result<Vec<OsString>> {
    let names = match fs::read_dir(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("cannot read {}", path.display()))?,
    };
    Ok(names.map(|entry| Ok(entry?.file_name())).collect::<std::io::Result<Vec<_>>>()?)
}

/// The blobs that an item refers to.
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
