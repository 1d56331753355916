//! Blobs in an S3 bucket.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::http::HttpResponse;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::get_object::{GetObjectError, GetObjectOutput};
use aws_sdk_s3::presigning::PresigningConfig;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{ChecksumAlgorithm, ChecksumMode};
use bytes::Bytes;
use futures::{StreamExt, stream};

use super::failure::{Retries, is_turned_away, of_read, of_write};
use super::{Clients, timeouts};
use crate::ports::{Blob, BlobKey, Blobs, Clock, Cursor, Ids, Inventory, Item, Part, PortError, SignedUrl};

const STORING: &str = "storing a blob";
const READING: &str = "reading a blob";
const DELETING: &str = "deleting a blob";
const SIGNING: &str = "signing a URL of a blob";
const LISTING: &str = "listing the blobs";

/// The slowest upload, in bytes per second, that is not aborted. The timeout of an attempt is computed from it.
const UPLOAD_BYTES_PER_SECOND_MIN: u64 = 1 << 20;

/// Blobs as objects of one bucket, each under its key as it is. Clones share the client.
///
/// * Every object carries its SHA-256: S3 refuses a put whose bytes were altered on their way, and a stream
///   ends with an error if its bytes were altered.
/// * A put has no condition, and may be repeated: the bytes under a key are always the same.
/// * An absent object and an absent bucket are different errors. Without the right to list the bucket, S3
///   denies access in both cases; a role needs `s3:ListBucket` in addition to `s3:GetObject`.
#[derive(Clone)]
pub struct S3Blobs {
    client: Client,
    bucket: String,
    attempt_timeout: Duration,
    retries: Retries,
}

impl fmt::Debug for S3Blobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3Blobs").field("bucket", &self.bucket).finish_non_exhaustive()
    }
}

impl S3Blobs {
    /// The blobs of this bucket. `clock` waits before a retry, and `ids` gives the random length of the wait.
    pub fn new(clients: &Clients, bucket: String, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Self {
        Self {
            client: clients.s3(),
            bucket,
            attempt_timeout: clients.options.attempt_timeout,
            retries: Retries::new(clients, clock, ids),
        }
    }
}

impl S3Blobs {
    /// A part of the keys of all blobs: a thousand objects, in their order. Leaves out objects whose key is not
    /// a blob's: they are another program's.
    pub(super) async fn keys(&self, from: Option<&Cursor>) -> Result<Part<BlobKey>, PortError> {
        let list = self
            .client
            .list_objects_v2()
            .bucket(&self.bucket)
            .set_start_after(from.map(|from| from.0.clone()));
        let answer = self.retries.call(|| list.clone().send(), is_turned_away).await;
        let answer = answer.map_err(|error| of_read(LISTING, error))?;
        let keys = answer.contents().iter().filter_map(|object| object.key());
        let last = keys.clone().next_back().filter(|_| answer.is_truncated() == Some(true));
        Ok(Part {
            next: last.map(|last| Cursor(last.to_owned())),
            found: keys.filter_map(BlobKey::parse).collect(),
        })
    }
}

type GetError = SdkError<GetObjectError, HttpResponse>;

fn is_absent(error: &GetError) -> bool {
    error.as_service_error().is_some_and(GetObjectError::is_no_such_key)
}

fn is_beyond_the_end(error: &GetError) -> bool {
    error.as_service_error().and_then(ProvideErrorMetadata::code) == Some("InvalidRange")
}

fn empty() -> Blob {
    Blob { bytes_total: 0, stream: stream::empty().boxed() }
}

/// An object, or a part of one, as it is received.
fn blob(found: GetObjectOutput) -> Result<Blob, PortError> {
    let bytes_total = found
        .content_length
        .and_then(|length| u64::try_from(length).ok())
        .ok_or_else(|| PortError::not_done(READING, "the store did not say how long the blob is"))?;
    let chunks = stream::unfold(Some(found.body), |body| async {
        let mut body = body?;
        match body.next().await? {
            Ok(chunk) => Some((Ok(chunk), Some(body))),
            Err(error) => Some((Err(PortError::not_done(READING, error)), None)),
        }
    });
    Ok(Blob { bytes_total, stream: chunks.boxed() })
}

/// A bucket alone has no items.
#[async_trait]
impl Inventory for S3Blobs {
    async fn items(&self, _: &str, _: Option<&Cursor>) -> Result<Part<Item>, PortError> {
        Ok(Part { found: Vec::new(), next: None })
    }

    async fn blobs(&self, from: Option<&Cursor>) -> Result<Part<BlobKey>, PortError> {
        self.keys(from).await
    }
}

#[async_trait]
impl Blobs for S3Blobs {
    async fn put(&self, key: &BlobKey, body: Bytes) -> Result<(), PortError> {
        let upload = Duration::from_secs(body.len() as u64 / UPLOAD_BYTES_PER_SECOND_MIN);
        let send = || {
            self.client
                .put_object()
                .bucket(&self.bucket)
                .key(key.as_str())
                .checksum_algorithm(ChecksumAlgorithm::Sha256)
                .body(ByteStream::from(body.clone()))
                .customize()
                .config_override(
                    aws_sdk_s3::Config::builder().timeout_config(timeouts(self.attempt_timeout + upload)),
                )
                .send()
        };
        self.retries.call(send, is_turned_away).await.map(drop).map_err(|error| of_write(STORING, error))
    }

    async fn get(&self, key: &BlobKey) -> Result<Option<Blob>, PortError> {
        let get = self
            .client
            .get_object()
            .bucket(&self.bucket)
            .key(key.as_str())
            .checksum_mode(ChecksumMode::Enabled);
        match self.retries.call(|| get.clone().send(), is_turned_away).await {
            Ok(found) => blob(found).map(Some),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(of_read(READING, error)),
        }
    }

    async fn get_range(&self, key: &BlobKey, range: Range<u64>) -> Result<Option<Blob>, PortError> {
        let is_empty = range.is_empty();
        // A request cannot ask for no bytes. One byte tells whether the blob exists.
        let range = if is_empty { 0..1 } else { range };
        let get = self.client.get_object().bucket(&self.bucket).key(key.as_str()).range(format!(
            "bytes={}-{}",
            range.start,
            range.end - 1
        ));
        match self.retries.call(|| get.clone().send(), is_turned_away).await {
            Ok(_) if is_empty => Ok(Some(empty())),
            Ok(found) => blob(found).map(Some),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) if is_beyond_the_end(&error) => Ok(Some(empty())),
            Err(error) => Err(of_read(READING, error)),
        }
    }

    async fn signed_url(
        &self,
        key: &BlobKey,
        valid_for: Duration,
        file: &str,
    ) -> Result<Option<SignedUrl>, PortError> {
        let presigning =
            PresigningConfig::expires_in(valid_for).map_err(|error| PortError::not_done(SIGNING, error))?;
        // The signature covers the headers of the answer: the client inflates gzip, no cache on the way
        // keeps it, and a browser saves it instead of showing it.
        let signed = self
            .client
            .get_object()
            .bucket(&self.bucket)
            .key(key.as_str())
            .response_content_encoding("gzip")
            .response_content_type("application/json")
            .response_cache_control("no-store")
            .response_content_disposition(format!("attachment; filename=\"{file}\""))
            .presigned(presigning)
            .await
            .map_err(|error| PortError::not_done(SIGNING, error))?;
        Ok(Some(SignedUrl(signed.uri().to_owned())))
    }

    async fn delete(&self, key: &BlobKey) -> Result<(), PortError> {
        let delete = self.client.delete_object().bucket(&self.bucket).key(key.as_str());
        match self.retries.call(|| delete.clone().send(), is_turned_away).await {
            Ok(_) => Ok(()),
            // S3 itself answers the same whether or not there was an object; other services with its protocol
            // may not.
            Err(error)
                if error.as_service_error().and_then(ProvideErrorMetadata::code) == Some("NoSuchKey") =>
            {
                Ok(())
            }
            Err(error) => Err(of_write(DELETING, error)),
        }
    }
}
