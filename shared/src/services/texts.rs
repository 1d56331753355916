//! The texts of states and batches: compressed and not, and judged away from the threads that serve.

use std::io::{Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;

use super::Error;
use crate::domain::secret;

/// Refuses what would put a secret at rest unencrypted.
///
/// # Errors
/// [`Error::Invalid`].
pub fn refuse_plaintext(text: &[u8]) -> Result<(), Error> {
    if secret::holds_plaintext(text) {
        return Err(Error::Invalid(
            "it holds secrets in plain text, and these are never stored: send it with `pulumi stack import`, which \
             encrypts them first, or make it from an export without --show-secrets"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Compresses. The header carries no time, so the same input gives the same bytes.
pub fn gzip(bytes: &[u8]) -> Bytes {
    compress(bytes, Compression::fast())
}

/// The same in more time and less space: for what is small and paid for by its size.
pub(crate) fn gzip_well(bytes: &[u8]) -> Bytes {
    compress(bytes, Compression::best())
}

fn compress(bytes: &[u8], level: Compression) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4 + 64), level);
    encoder.write_all(bytes).expect("writing to memory does not fail");
    encoder.finish().expect("writing to memory does not fail").into()
}

/// Inflates what this server stored.
///
/// # Errors
/// [`Error::Broken`] for what is no gzip: the stored bytes are damaged.
pub fn gunzip(gzip: &[u8]) -> Result<Vec<u8>, Error> {
    let mut text = Vec::with_capacity(gzip.len() * 4);
    MultiGzDecoder::new(gzip)
        .read_to_end(&mut text)
        .map_err(|error| Error::Broken(format!("stored bytes do not inflate: {error}")))?;
    Ok(text)
}

/// Folding is arithmetic over what may be many megabytes: it must not hold up the requests of others.
pub(super) async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Error::Broken(format!("folding was interrupted: {error}")))?
}
