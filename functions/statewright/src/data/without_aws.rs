//! The functions of `on_aws.rs` in a program that was built without the feature `aws`: each names the build command.

use std::sync::Arc;

use statewright_shared::adapters::{Finding, Unavailable};
use statewright_shared::domain::server_url::ServerUrl;
use statewright_shared::ports::{Blobs, Inventory};

use super::Side;
use crate::args::{self, misused};

/// An error of usage, which says how to build a program that has AWS.
pub(crate) fn missing() -> anyhow::Error {
    misused(
        "this program was built without AWS. Build one with AWS: cargo build --profile dist --features dist",
    )
}

pub(crate) fn location(_: &args::AwsStore) -> anyhow::Result<String> {
    Err(missing())
}

pub(crate) async fn connect(_: &args::AwsStore, _publisher: String) -> anyhow::Result<Side> {
    Err(missing())
}

pub(crate) async fn bucket(
    _name: &str,
    _: &args::Kept,
    _: &args::AwsStore,
) -> anyhow::Result<(Arc<dyn Blobs>, Box<dyn Inventory>)> {
    Err(missing())
}

pub(crate) async fn key_of_backup(
    _key: &str,
    _: &args::Kept,
    _: &args::AwsStore,
) -> anyhow::Result<Unavailable> {
    Err(missing())
}

pub(crate) async fn prove(_: &ServerUrl) -> anyhow::Result<String> {
    Err(missing())
}

pub(crate) async fn examine(_: &args::AwsStore) -> anyhow::Result<Vec<Finding>> {
    Err(missing())
}

pub(crate) async fn set_up(_: &args::AwsStore) -> anyhow::Result<Vec<(&'static str, String, &'static str)>> {
    Err(missing())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::args::Misused;

    /// Why a function refuses, which is an error of usage.
    fn refusal<T>(done: anyhow::Result<T>) -> String {
        let error = done.err().unwrap();
        assert!(error.is::<Misused>(), "{error:#}");
        error.to_string()
    }

    #[tokio::test]
    async fn without_aws_each_function_names_the_build_command() {
        let aws = args::AwsStore {
            table: Some("table".to_owned()),
            bucket: Some("bucket".to_owned()),
            kms_key: Some("alias/key".to_owned()),
            s3_path_style: false,
            attempt_timeout: Duration::from_secs(1),
        };
        let kept = args::Kept { backup_region: None, backup_profile: None, backup_kms_key: None };
        let server = ServerUrl::parse("https://state.example.com").unwrap();
        for refusal in [
            refusal(location(&aws)),
            refusal(connect(&aws, "test".to_owned()).await),
            refusal(bucket("backup", &kept, &aws).await),
            refusal(key_of_backup("alias/key", &kept, &aws).await),
            refusal(prove(&server).await),
            refusal(examine(&aws).await),
            refusal(set_up(&aws).await),
        ] {
            assert!(refusal.ends_with(": cargo build --profile dist --features dist"), "{refusal}");
        }
    }
}
