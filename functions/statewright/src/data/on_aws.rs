//! The store on AWS, with the feature `aws`. `without_aws.rs` has the same functions for a program without it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use statewright_shared::adapters::aws::{
    AwsStore, Clients, KmsKeys, Names, NoCredentials, Options, Outcome, S3Blobs, SET_UP_ATTEMPT_TIMEOUT,
    examine as examine_store, set_up as set_up_store,
};
use statewright_shared::adapters::{Finding, SystemClock, SystemIds};
use statewright_shared::context::Context;
use statewright_shared::domain::server_url::ServerUrl;
use statewright_shared::ports::{Blobs, Clock as _, Ids as _, Inventory};

use super::Side;
use crate::args::{self, misused};

/// What the store on AWS consists of, all of it named.
pub(crate) fn names(aws: &args::AwsStore) -> anyhow::Result<Names> {
    match (&aws.table, &aws.bucket, &aws.kms_key) {
        (Some(table), Some(bucket), Some(key)) => {
            Ok(Names { table: table.clone(), bucket: bucket.clone(), key: key.clone() })
        }
        _ => Err(misused("for a store on AWS, set --table, --bucket and --kms-key")),
    }
}

/// The location of the store on AWS, as text for people.
pub(crate) fn location(aws: &args::AwsStore) -> anyhow::Result<String> {
    let Names { table, bucket, .. } = names(aws)?;
    Ok(format!("the table {table} and the bucket {bucket}"))
}

/// Clients of the services, with credentials and with this time for an attempt.
pub(crate) async fn clients(aws: &args::AwsStore, attempt_timeout: Duration) -> anyhow::Result<Clients> {
    let options = Options { s3_path_style: aws.s3_path_style, attempt_timeout, ..Options::default() };
    Ok(Clients::connect(&options).await?.with_credentials().await?)
}

/// The store on AWS, finished or not.
pub(crate) async fn connect(aws: &args::AwsStore, publisher: String) -> anyhow::Result<Side> {
    side_of(&names(aws)?, aws, publisher).await
}

/// A store on AWS with this table and the configured bucket and key.
pub(crate) async fn table(aws: &args::AwsStore, table: &str) -> anyhow::Result<Side> {
    let names = Names { table: table.to_owned(), ..names(aws)? };
    side_of(&names, aws, format!("backup {}", SystemIds.uuid())).await
}

async fn side_of(names: &Names, aws: &args::AwsStore, publisher: String) -> anyhow::Result<Side> {
    let clients = clients(aws, aws.attempt_timeout).await?;
    let store = AwsStore::new(&clients, names, Arc::new(SystemClock), Arc::new(SystemIds));
    let context = Context::new(
        Arc::new(store.ledger.clone()),
        Arc::new(store.blobs.clone()),
        Arc::new(store.keys.clone()),
        Arc::new(SystemClock),
        Arc::new(SystemIds),
        publisher,
    );
    Ok(Side { context, wrap: Box::new(store.keys.clone()), inventory: Box::new(store) })
}

/// A bucket that holds a backup.
pub(crate) async fn bucket(
    name: &str,
    kept: &args::Kept,
    aws: &args::AwsStore,
) -> anyhow::Result<(Arc<dyn Blobs>, Box<dyn Inventory>)> {
    let clients = clients_of_backup(kept, aws, kept.backup_region.as_deref()).await?;
    let bucket = S3Blobs::new(&clients, name.to_owned(), Arc::new(SystemClock), Arc::new(SystemIds));
    Ok((Arc::new(bucket.clone()), Box::new(bucket)))
}

/// A key of KMS that a backup's data keys are under.
pub(crate) async fn key_of_backup(
    key: &str,
    kept: &args::Kept,
    aws: &args::AwsStore,
) -> anyhow::Result<KmsKeys> {
    // An ARN says which region its key is in: `arn:aws:kms:REGION:ACCOUNT:key/ID`.
    let region = key.strip_prefix("arn:").and_then(|arn| arn.split(':').nth(2));
    let clients = clients_of_backup(kept, aws, region).await?;
    Ok(KmsKeys::new(&clients, key.to_owned(), Arc::new(SystemClock), Arc::new(SystemIds)))
}

async fn clients_of_backup(
    kept: &args::Kept,
    aws: &args::AwsStore,
    region: Option<&str>,
) -> anyhow::Result<Clients> {
    let options = Options {
        region: region.map(str::to_owned),
        profile: kept.backup_profile.clone(),
        s3_path_style: aws.s3_path_style,
        attempt_timeout: aws.attempt_timeout,
        ..Options::default()
    };
    Ok(Clients::connect(&options).await?.with_credentials().await?)
}

/// A proof for this server of the principal whose credentials this machine has, as the server reads it.
pub(crate) async fn prove(server: &ServerUrl) -> anyhow::Result<String> {
    let clients = Clients::connect(&Options::default()).await?.with_credentials().await?;
    let proof = clients.prove(server, SystemClock.now()).await.map_err(anyhow::Error::from_boxed)?;
    let text = serde_json::to_string(&proof).context("cannot serialize the proof")?;
    Ok(URL_SAFE_NO_PAD.encode(text))
}

/// What `doctor` finds of table, bucket and key.
pub(crate) async fn examine(aws: &args::AwsStore) -> anyhow::Result<Vec<Finding>> {
    let clients = match clients(aws, aws.attempt_timeout).await {
        Ok(clients) => clients,
        Err(error) => return error.downcast::<NoCredentials>().map(|error| vec![error.finding()]),
    };
    Ok(examine_store(&clients, &names(aws)?, &SystemClock).await)
}

/// Makes or finds table, bucket and key: for each what it is, its name, and whether it was there.
pub(crate) async fn set_up(
    aws: &args::AwsStore,
) -> anyhow::Result<Vec<(&'static str, String, &'static str)>> {
    let names = names(aws)?;
    let clients = clients(aws, SET_UP_ATTEMPT_TIMEOUT).await?;
    let done = set_up_store(&clients, &names, &SystemClock).await?;
    let outcome = |outcome| match outcome {
        Outcome::Found => "found",
        Outcome::Made => "made",
        Outcome::NotImplemented => "not implemented",
    };
    Ok(done.into_iter().map(|done| (done.what, done.name, outcome(done.outcome))).collect())
}
