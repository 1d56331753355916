//! Opening the store as the context of use cases.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use directories::ProjectDirs;
use statewright_shared::adapters::aws::{AwsStore, Clients, Names, Options};
use statewright_shared::adapters::embedded::DataFolder;
use statewright_shared::adapters::{SystemClock, SystemIds};
use statewright_shared::context::Context;
use statewright_shared::layout;
use statewright_shared::ports::{BlobKey, BoxError, Ids, Inventory, Item, Wrap};
use statewright_shared::services::copy::refuse_unfinished;

use crate::args::{self, Data, Place, Store};
use crate::commands::misused;

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
        Store::Aws => aws_place(&data.aws)?,
    })
}

/// Where the data on AWS lie, for a person to read.
pub(crate) fn aws_place(aws: &args::AwsStore) -> anyhow::Result<String> {
    let Names { table, bucket, .. } = aws_names(aws)?;
    Ok(format!("the table {table} and the bucket {bucket}"))
}

/// The store for a server. A folder is for one server, and made on the first start: as long as the value lives, no other can
/// have it.
pub(crate) async fn open_server(data: &Data) -> anyhow::Result<(Option<DataFolder>, Context)> {
    if data.store == Store::Aws {
        // Others may be publishing what this one meets, so it is no one's heir.
        let (_, context) = open_aws(&data.aws, format!("server {}", SystemIds.uuid())).await?;
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
        return Ok((None, open_aws(&data.aws, format!("command {}", SystemIds.uuid())).await?.1));
    }
    let (folder, context) = open_folder_beside(data).await?;
    Ok((Some(folder), context))
}

/// The store for a command beside servers that looks at all of it.
pub(crate) async fn open_whole(data: &Data) -> anyhow::Result<(Box<dyn Inventory>, Context)> {
    if data.store == Store::Aws {
        let (store, context) = open_aws(&data.aws, format!("command {}", SystemIds.uuid())).await?;
        return Ok((Box::new(store), context));
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
        Store::Aws => connect_aws(&data.aws, publisher).await?.1,
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

    fn on_aws((store, context): (AwsStore, Context)) -> Self {
        Self { context, wrap: Box::new(store.keys.clone()), inventory: Box::new(store) }
    }
}

/// The store that a copy is made of; a folder is this process's alone.
pub(crate) async fn open_source(place: &Place, aws: &args::AwsStore) -> anyhow::Result<Side> {
    Ok(match place {
        Place::Aws => Side::on_aws(open_aws(aws, format!("copy {}", SystemIds.uuid())).await?),
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
        Place::Aws => Side::on_aws(connect_aws(aws, publisher).await?),
        Place::Folder(path) => {
            refuse_foreign(path)?;
            let folder = DataFolder::open_server(path, Arc::new(SystemIds)).await?;
            let context = context(&folder, publisher);
            Side::of_folder(folder, context)
        }
    })
}

/// Refuses a folder with files that no store has made.
fn refuse_foreign(path: &Path) -> anyhow::Result<()> {
    let names = match fs::read_dir(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.with_context(|| format!("{} cannot be read", path.display()))?,
    };
    let names = names.map(|entry| Ok(entry?.file_name())).collect::<std::io::Result<Vec<_>>>()?;
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

/// The blobs that an item names, for a backup to look for them.
pub(crate) fn named_blobs(item: &Item) -> Result<Vec<(BlobKey, Option<String>)>, BoxError> {
    let named = layout::named_blobs(item)?;
    Ok(named.into_iter().map(|blob| (blob.key, blob.sha256)).collect())
}

/// What the store on AWS consists of, all of it named.
pub(crate) fn aws_names(aws: &args::AwsStore) -> anyhow::Result<Names> {
    match (&aws.table, &aws.bucket, &aws.kms_key) {
        (Some(table), Some(bucket), Some(key)) => {
            Ok(Names { table: table.clone(), bucket: bucket.clone(), key: key.clone() })
        }
        _ => Err(misused("the store on AWS is named with --table, --bucket and --kms-key")),
    }
}

/// Clients of the services, with credentials and with this time for an attempt.
pub(crate) async fn aws_clients(aws: &args::AwsStore, attempt_timeout: Duration) -> anyhow::Result<Clients> {
    let options = Options { s3_path_style: aws.s3_path_style, attempt_timeout, ..Options::default() };
    Ok(Clients::connect(&options).await?.with_credentials().await?)
}

async fn open_aws(aws: &args::AwsStore, publisher: String) -> anyhow::Result<(AwsStore, Context)> {
    let (store, context) = connect_aws(aws, publisher).await?;
    refuse_unfinished(&context).await?;
    Ok((store, context))
}

async fn connect_aws(aws: &args::AwsStore, publisher: String) -> anyhow::Result<(AwsStore, Context)> {
    let (names, clients) = (aws_names(aws)?, aws_clients(aws, aws.attempt_timeout).await?);
    let store = AwsStore::new(&clients, &names, Arc::new(SystemClock), Arc::new(SystemIds));
    let context = Context::new(
        Arc::new(store.ledger.clone()),
        Arc::new(store.blobs.clone()),
        Arc::new(store.keys.clone()),
        Arc::new(SystemClock),
        Arc::new(SystemIds),
        publisher,
    );
    Ok((store, context))
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
