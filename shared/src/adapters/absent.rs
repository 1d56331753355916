//! What a process does not have: a function whose role names no bucket, or no key; a backup, which is blobs alone.

use async_trait::async_trait;
use bytes::Bytes;

use crate::ports::{
    Blob, BlobKey, Blobs, CommitError, DataKey, Item, ItemKey, KeyContext, Keys, KeysError, Ledger, Page,
    PortError, Query, WrappedKey, Write,
};

/// Does nothing, and says so. A program that has it links no client of the service.
#[derive(Debug, Clone, Copy)]
pub struct Absent;

fn absent(what: &'static str) -> PortError {
    PortError::not_done(what, "this process has neither the means nor the right")
}

#[async_trait]
impl Blobs for Absent {
    async fn put(&self, _: &BlobKey, _: Bytes) -> Result<(), PortError> {
        Err(absent("storing a blob"))
    }

    async fn get(&self, _: &BlobKey) -> Result<Option<Blob>, PortError> {
        Err(absent("reading a blob"))
    }

    async fn delete(&self, _: &BlobKey) -> Result<(), PortError> {
        Err(absent("deleting a blob"))
    }
}

#[async_trait]
impl Ledger for Absent {
    async fn get(&self, _: &ItemKey) -> Result<Option<Item>, PortError> {
        Err(absent("reading an item"))
    }

    async fn query(&self, _: &Query) -> Result<Page, PortError> {
        Err(absent("reading items"))
    }

    async fn commit(&self, _: Vec<Write>) -> Result<(), CommitError> {
        Err(absent("committing").into())
    }

    fn inline_bytes_max(&self) -> usize {
        0
    }
}

#[async_trait]
impl Keys for Absent {
    async fn generate(&self, _: &KeyContext) -> Result<(DataKey, WrappedKey), KeysError> {
        Err(absent("making a data key").into())
    }

    async fn unwrap(&self, _: &WrappedKey, _: &KeyContext) -> Result<DataKey, KeysError> {
        Err(absent("opening a data key").into())
    }

    async fn rewrap(&self, _: &WrappedKey, _: &KeyContext) -> Result<Option<WrappedKey>, KeysError> {
        Err(absent("wrapping a data key anew").into())
    }
}
