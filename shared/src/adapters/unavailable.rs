//! The port of a process that lacks a store: a function whose role names no bucket or no key, or a
//! backup, which has blobs alone.

use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;

use crate::ports::{
    Blob, BlobKey, Blobs, CommitError, DataKey, Item, ItemKey, KeyContext, Keys, KeysError, Ledger, Page,
    PortError, Query, WrappedKey, Write,
};

/// Fails every call with [`PortError::NotDone`]. A program that uses it links no client of the service.
#[derive(Debug, Clone, Copy)]
pub struct Unavailable;

fn unavailable(what: &'static str) -> PortError {
    PortError::not_done(what, "this process is not configured for it, or its role does not allow it")
}

#[async_trait]
impl Blobs for Unavailable {
    async fn put(&self, _: &BlobKey, _: Bytes) -> Result<(), PortError> {
        Err(unavailable("storing a blob"))
    }

    async fn get(&self, _: &BlobKey) -> Result<Option<Blob>, PortError> {
        Err(unavailable("reading a blob"))
    }

    async fn get_range(&self, _: &BlobKey, _: Range<u64>) -> Result<Option<Blob>, PortError> {
        Err(unavailable("reading a part of a blob"))
    }

    async fn delete(&self, _: &BlobKey) -> Result<(), PortError> {
        Err(unavailable("deleting a blob"))
    }
}

#[async_trait]
impl Ledger for Unavailable {
    async fn get(&self, _: &ItemKey) -> Result<Option<Item>, PortError> {
        Err(unavailable("reading an item"))
    }

    async fn query(&self, _: &Query) -> Result<Page, PortError> {
        Err(unavailable("reading items"))
    }

    async fn commit(&self, _: Vec<Write>) -> Result<(), CommitError> {
        Err(unavailable("committing").into())
    }

    fn inline_bytes_max(&self) -> usize {
        0
    }
}

#[async_trait]
impl Keys for Unavailable {
    async fn generate(&self, _: &KeyContext) -> Result<(DataKey, WrappedKey), KeysError> {
        Err(unavailable("making a data key").into())
    }

    async fn unwrap(&self, _: &WrappedKey, _: &KeyContext) -> Result<DataKey, KeysError> {
        Err(unavailable("opening a data key").into())
    }

    async fn rewrap(&self, _: &WrappedKey, _: &KeyContext) -> Result<Option<WrappedKey>, KeysError> {
        Err(unavailable("rewrapping a data key").into())
    }
}
