//! Bytes under a key, streamed.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use futures::stream::BoxStream;

use super::PortError;

/// The name of a blob: `<class>/<owner>/<writer>[-<part>]`, made only by `layout::blobs`.
///
/// It consists of `/`-separated, non-empty segments of ASCII letters, digits, `-`, `_` and `.`. No
/// segment starts with a dot, so the name is a valid object key and a safe relative path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobKey(String);

impl BlobKey {
    /// Parses a key; `None` if the text is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let segment_ok = |segment: &str| {
            !segment.is_empty()
                && !segment.starts_with('.')
                && segment.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        };
        (text.len() <= 512 && text.split('/').all(segment_ok)).then(|| Self(text.to_owned()))
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BlobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A blob that is being read.
pub struct Blob {
    /// Its length in bytes.
    pub bytes_total: u64,
    /// Its content; ends early with an error if the store fails.
    pub stream: BoxStream<'static, Result<Bytes, PortError>>,
}

impl Blob {
    /// The whole content in one piece.
    ///
    /// # Errors
    /// The stream's own, or [`PortError::NotDone`] when the store delivered another length than it announced.
    pub async fn into_bytes(mut self) -> Result<Bytes, PortError> {
        let expected = usize::try_from(self.bytes_total)
            .map_err(|_| PortError::not_done("reading a blob", "the blob does not fit into memory"))?;
        // A single piece is not copied. The stream is read to its end in any case: only there a store
        // reports that bytes were altered.
        let (mut first, mut several) = (Bytes::new(), None);
        while let Some(chunk) = self.stream.next().await {
            let chunk = chunk?;
            if first.is_empty() {
                first = chunk;
                continue;
            }
            let whole = several.get_or_insert_with(|| {
                let mut whole = BytesMut::with_capacity(expected);
                whole.extend_from_slice(&first);
                whole
            });
            whole.extend_from_slice(&chunk);
        }
        let whole = several.map_or(first, BytesMut::freeze);
        if whole.len() != expected {
            return Err(PortError::not_done(
                "reading a blob",
                "the store delivered another length than announced",
            ));
        }
        Ok(whole)
    }
}

/// A URL that gives access to a blob.
pub struct SignedUrl(pub String);

impl fmt::Debug for SignedUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignedUrl(…)")
    }
}

/// Bytes under a key.
///
/// Only one update writes a key, always with the same bytes, so a put needs no condition: writing twice
/// is harmless, and a reader sees the whole blob or none.
#[async_trait]
pub trait Blobs: Send + Sync + 'static {
    /// Stores `body`. After success the blob survives the loss of the process and of power.
    async fn put(&self, key: &BlobKey, body: Bytes) -> Result<(), PortError>;

    /// The blob, or `None` if there is none.
    async fn get(&self, key: &BlobKey) -> Result<Option<Blob>, PortError>;

    /// The part of the blob in this range of bytes, or `None` if the blob does not exist. The range is cut at the end
    /// of the blob, so a part may be shorter, or empty. Its bytes are not checked against any hash: the reader knows one.
    async fn get_range(&self, key: &BlobKey, range: Range<u64>) -> Result<Option<Blob>, PortError>;

    /// A URL under which its holder may read the blob, a gzip of JSON, for `valid_for`, under another
    /// host name than ours and without other credentials. A browser saves it as a file of this name,
    /// which has ASCII letters, digits, `.`, `_` and `-` only. `None` if the store has no such URLs. It is
    /// as good as the blob: never log it.
    async fn signed_url(
        &self,
        key: &BlobKey,
        valid_for: Duration,
        file: &str,
    ) -> Result<Option<SignedUrl>, PortError> {
        let _ = (key, valid_for, file);
        Ok(None)
    }

    /// Deletes the blob. Succeeds if there is none.
    async fn delete(&self, key: &BlobKey) -> Result<(), PortError>;
}
