//! Opening the store as the context of use cases.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use directories::ProjectDirs;
use statewright_shared::adapters::aws::{ATTEMPT_TIMEOUT, AwsStore, Clients, Names, Options};
use statewright_shared::adapters::embedded::DataFolder;
use statewright_shared::adapters::{SystemClock, SystemIds};
use statewright_shared::context::Context;
use statewright_shared::layout;
use statewright_shared::ports::{BlobKey, BoxError, Ids, Item};

use crate::args::{self, Data, Store};
use crate::commands::misused;

/// The folder that was asked for, or this platform's place for the data of programs.
pub(crate) fn path(data: &Data) -> anyhow::Result<PathBuf> {
    if data.store != Store::Folder {
        return Err(misused("this command is about a folder with data; AWS has tools of its own for that"));
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
        Store::Aws => {
            let Names { table, bucket, .. } = aws_names(&data.aws)?;
            format!("the table {table} and the bucket {bucket}")
        }
    })
}

/// The store for a server. A folder is for one server, and made on the first start: as long as the value lives, no other can
/// have it.
pub(crate) async fn open_server(data: &Data) -> anyhow::Result<(Option<DataFolder>, Context)> {
    if data.store == Store::Aws {
        // Others may be publishing what this one meets, so it is no one's heir.
        return Ok((None, open_aws(&data.aws, format!("server {}", SystemIds.uuid())).await?));
    }
    let folder = DataFolder::open_server(&path(data)?, Arc::new(SystemIds)).await?;
    // A data folder has one server at a time, so a new one need not wait for what the last one may be publishing.
    let context = context(&folder, "server".to_owned());
    Ok((Some(folder), context))
}

/// The store for a command beside servers.
pub(crate) async fn open_beside(data: &Data) -> anyhow::Result<(Option<DataFolder>, Context)> {
    if data.store == Store::Aws {
        return Ok((None, open_aws(&data.aws, format!("command {}", SystemIds.uuid())).await?));
    }
    let (folder, context) = open_folder_beside(data).await?;
    Ok((Some(folder), context))
}

/// The folder for a command that is about a folder, beside the server.
pub(crate) async fn open_folder_beside(data: &Data) -> anyhow::Result<(DataFolder, Context)> {
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

/// What the store on AWS consists of, all of it named.
pub(crate) fn aws_names(aws: &args::AwsStore) -> anyhow::Result<Names> {
    match (&aws.table, &aws.bucket, &aws.kms_key) {
        (Some(table), Some(bucket), Some(key)) => {
            Ok(Names { table: table.clone(), bucket: bucket.clone(), key: key.clone() })
        }
        _ => Err(misused("the store on AWS is named with --table, --bucket and --kms-key")),
    }
}

/// Clients of the services, whose attempts may take so long.
pub(crate) async fn aws_clients(aws: &args::AwsStore, attempt_timeout: Duration) -> anyhow::Result<Clients> {
    let options = Options { s3_path_style: aws.s3_path_style, attempt_timeout, ..Options::default() };
    Ok(Clients::connect(&options).await?)
}

async fn open_aws(aws: &args::AwsStore, publisher: String) -> anyhow::Result<Context> {
    let (names, clients) = (aws_names(aws)?, aws_clients(aws, ATTEMPT_TIMEOUT).await?);
    let store = AwsStore::new(&clients, &names, Arc::new(SystemClock), Arc::new(SystemIds));
    Ok(Context::new(
        Arc::new(store.ledger),
        Arc::new(store.blobs),
        Arc::new(store.keys),
        Arc::new(SystemClock),
        Arc::new(SystemIds),
        publisher,
    ))
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
