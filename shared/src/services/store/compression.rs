//! Compresses and inflates the texts of states and batches.

use std::io::{Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;

use crate::domain::secret;
use crate::services::Error;
use crate::services::error::StackError;

/// Refuses a text that would store a secret in plaintext.
///
/// # Errors
/// [`StackError::PlaintextSecrets`].
pub fn refuse_plaintext(text: &[u8]) -> Result<(), Error> {
    if secret::holds_plaintext(text) {
        return Err(StackError::PlaintextSecrets.into());
    }
    Ok(())
}

/// Compresses bytes. The header has no timestamp, so the same input results in the same bytes.
pub fn gzip(bytes: &[u8]) -> Bytes {
    gzip_parts([bytes])
}

/// Compresses the parts of a text. The same parts result in the same bytes.
pub(crate) fn gzip_parts<'a>(parts: impl IntoIterator<Item = &'a [u8], IntoIter: Clone>) -> Bytes {
    compress(parts.into_iter(), Compression::fast())
}

/// Like [`gzip`], but slower and smaller: for small texts whose storage is billed by size.
pub(crate) fn gzip_well(bytes: &[u8]) -> Bytes {
    compress([bytes].into_iter(), Compression::best())
}

fn compress<'a>(parts: impl Iterator<Item = &'a [u8]> + Clone, level: Compression) -> Bytes {
    let bytes: usize = parts.clone().map(<[u8]>::len).sum();
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes / 4 + 64), level);
    parts.for_each(|part| encoder.write_all(part).expect("writing to memory does not fail"));
    encoder.finish().expect("writing to memory does not fail").into()
}

/// The inflated length in bytes that the end of a gzip claims, which is that of its last member. What this server stores has
/// one member, and a true length.
pub(crate) fn declared_length(gzip: &[u8]) -> usize {
    let declared = gzip.last_chunk().map_or(0, |last| u32::from_le_bytes(*last) as usize);
    declared.min(gzip.len().saturating_mul(INFLATES_MAX))
}

/// The maximum ratio of inflated to compressed bytes in Deflate.
const INFLATES_MAX: usize = 1032;

/// Inflates bytes that this server stored.
///
/// # Errors
/// [`Error::Broken`] for bytes that are not a gzip: the stored bytes are damaged.
pub fn gunzip(gzip: &[u8]) -> Result<Vec<u8>, Error> {
    // One byte more, so that the reader finds the end without growing the buffer.
    let mut text = Vec::with_capacity(declared_length(gzip) + 1);
    MultiGzDecoder::new(gzip).read_to_end(&mut text).map_err(not_inflating)?;
    Ok(text)
}

/// Like [`gunzip`]; `None` if the text exceeds `bytes_max` bytes.
pub(crate) fn gunzip_within(gzip: &[u8], bytes_max: usize) -> Result<Option<Vec<u8>>, Error> {
    let mut text = Vec::with_capacity(declared_length(gzip).min(bytes_max) + 1);
    let decoder = MultiGzDecoder::new(gzip);
    decoder.take(bytes_max as u64 + 1).read_to_end(&mut text).map_err(not_inflating)?;
    Ok((text.len() <= bytes_max).then_some(text))
}

fn not_inflating(error: std::io::Error) -> Error {
    Error::Broken(format!("stored bytes do not inflate: {error}"))
}
