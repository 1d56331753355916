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
