//! The texts of Terraform states. They contain plaintext secrets, so each is stored compressed with gzip and sealed
//! with its state's data key.

use std::sync::Arc;

use bytes::Bytes;

use crate::context::Context;
use crate::domain::ids::StateId;
use crate::domain::tfstate::{Document, Output, marked};
use crate::layout::KeptState;
use crate::ports::{BlobKey, Timestamp};
use crate::services::error::InvalidInput;
use crate::services::keys::data_keys;
use crate::services::store::compression::{gunzip, gzip};
use crate::services::work;
use crate::services::work::in_background;
use crate::services::{Error, store};

/// A text that a client sent, with what was parsed from it.
#[derive(Debug)]
pub(crate) struct SentText {
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
    pub(crate) document: Arc<Document>,
    /// Hashes of the output values, in the document's order. They would reveal a short secret, so they are not
    /// stored.
    value_hashes: Vec<[u8; 32]>,
    gzip: Bytes,
    /// The text, if it is long: rows are made of it while it is stored.
    pub(super) long_text: Option<Bytes>,
}

/// Parses, hashes and compresses a state at the same time, off the serving threads. `verify` runs alongside. A text of more
/// than `rows_above` bytes is long.
pub(super) async fn read(
    text: Bytes,
    rows_above: usize,
    verify: impl FnOnce() -> Result<(), Error> + Send + 'static,
) -> Result<SentText, Error> {
    // One turn for all three: in parallel, they end soon.
    let turn = Arc::new(work::turn(text.len()).await);
    let turns = [Arc::clone(&turn), Arc::clone(&turn), turn];
    let [of_gzip, of_hash, of_reading] = turns;
    let (whole, same) = (text.clone(), text.clone());
    let long_text = (text.len() > rows_above).then(|| text.clone());
    let gzip = in_background(move || {
        let _turn = of_gzip;
        Ok(gzip(&whole))
    });
    let sha256 = in_background(move || {
        let _turn = of_hash;
        verify().map(|()| store::sha256_hex(&same))
    });
    let read = in_background(move || {
        let _turn = of_reading;
        let document = Document::read(&text).map_err(InvalidInput::from)?;
        let value_hashes = document.value_hashes(&text);
        Ok((document, value_hashes, text.len() as u64))
    });
    let (sha256, read, gzip) = futures::join!(sha256, read, gzip);
    // `verify` first: a text that was damaged on its way may be an invalid state for that reason alone.
    let (sha256, (document, value_hashes, bytes), gzip) = (sha256?, read?, gzip?);
    let document = Arc::new(document);
    Ok(SentText { bytes, sha256, document, value_hashes, gzip, long_text })
}

impl SentText {
    /// The text. Unless it is long, it is not kept in memory while it is stored, so it is decompressed again.
    pub(crate) async fn text(&self) -> Result<Bytes, Error> {
        if let Some(text) = &self.long_text {
            return Ok(text.clone());
        }
        let (gzip, bytes) = (self.gzip.clone(), usize::try_from(self.bytes).unwrap_or(usize::MAX));
        work::with(bytes, 1, move || Ok(gunzip(&gzip)?.into())).await
    }
}

/// A text in its stored form.
#[derive(Debug)]
pub(crate) struct SealedText {
    bytes: Bytes,
    sha256: String,
}

/// Seals a text. Once the state's key is loaded, this is only work for the processor.
pub(super) async fn seal(ctx: &Context, state: StateId, sent: &SentText) -> Result<SealedText, Error> {
    let bytes = Bytes::from(data_keys::seal(ctx, state.into(), sent.gzip.to_vec()).await?);
    work::on(bytes.len(), move || Ok(SealedText { sha256: store::sha256_hex(&bytes), bytes })).await
}

/// Stores a text under a new key, without rows.
pub(super) async fn keep(
    ctx: &Context,
    key: &BlobKey,
    sent: &SentText,
    sealed: SealedText,
) -> Result<KeptState, Error> {
    let SealedText { bytes: sealed, sha256: blob_sha256 } = sealed;
    let blob_bytes = sealed.len() as u64;
    store::put_blob(ctx, key, sealed).await?;
    let document = &sent.document;
    Ok(KeptState {
        blob: key.to_string(),
        blob_sha256,
        blob_bytes,
        sha256: sent.sha256.clone(),
        bytes: sent.bytes,
        serial: document.serial,
        lineage: document.lineage.clone(),
        terraform_version: document.terraform_version.clone(),
        is_encrypted: document.is_encrypted,
        resource_count: document.index.as_ref().map(|index| index.len() as u64),
        output_count: document.output_count,
        rows: None,
    })
}

/// Memory that [`fetch`] takes, in bytes: the text and its blob.
pub(super) fn weight(kept: &KeptState) -> usize {
    usize::try_from(kept.bytes.saturating_add(kept.blob_bytes)).unwrap_or(usize::MAX)
}

/// The gzip of a stored text.
pub(super) async fn fetch_gzip(ctx: &Context, state: StateId, kept: &KeptState) -> Result<Bytes, Error> {
    let sealed = store::fetch_blob(ctx, &kept.blob, &kept.blob_sha256).await?;
    data_keys::open(ctx, state.into(), Vec::from(sealed)).await.map(Bytes::from)
}

/// A text as its client sent it.
pub(crate) async fn fetch(ctx: &Context, state: StateId, kept: &KeptState) -> Result<Bytes, Error> {
    let gzip = fetch_gzip(ctx, state, kept).await?;
    let (sha256, bytes) = (kept.sha256.clone(), usize::try_from(kept.bytes).unwrap_or(usize::MAX));
    work::with(bytes, 1, move || {
        let text = gunzip(&gzip)?;
        if store::sha256_hex(&text) != sha256 {
            return Err(Error::Broken("a stored state differs from what its client sent".to_owned()));
        }
        Ok(text.into())
    })
    .await
}

/// The outputs of a text that becomes this version. Each is marked by whether its value changed since the version
/// before.
pub(super) async fn mark_outputs(
    ctx: &Context,
    state: StateId,
    sent: &SentText,
    outputs: &[Output],
    before: &[Output],
    version: u64,
    at: Timestamp,
) -> Result<Vec<Output>, Error> {
    if outputs.is_empty() {
        return Ok(Vec::new());
    }
    let digester = data_keys::digester(ctx, state.into()).await?;
    let digests = sent.value_hashes.iter().map(|hash| digester.digest(hash));
    Ok(marked(outputs, digests, before, version, at))
}

/// Deletes the blobs of a write that was not needed and that no item names.
pub(super) async fn discard(ctx: &Context, keys: impl IntoIterator<Item = &str>) {
    for key in keys.into_iter().filter_map(BlobKey::parse) {
        if let Err(error) = store::delete_blob(ctx, &key).await {
            // The operator's check lists the leftover blob. The request succeeds all the same.
            tracing::warn!(%key, error = &error as &dyn std::error::Error, "cannot delete a blob that is not needed");
        }
    }
}
