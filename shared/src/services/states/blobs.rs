//! The texts of Terraform states. They hold secrets in the open, so each lies sealed with its state's data key, as a gzip.

use std::sync::Arc;

use bytes::Bytes;

use crate::context::Context;
use crate::domain::ids::StateId;
use crate::domain::tfstate::{Document, Index, Output, marked};
use crate::layout::{KeptState, Payload, StateVersion};
use crate::ports::{BlobKey, Timestamp};
use crate::services::error::InvalidInput;
use crate::services::keys::data_keys;
use crate::services::store::compression::{gunzip, gzip, length_said};
use crate::services::work;
use crate::services::work::in_background;
use crate::services::{Error, store};

/// An index is read from its text into a map.
const INDEX_FACTOR: usize = 3;

/// A text that was sent, with what is read of it.
#[derive(Debug)]
pub(crate) struct SentText {
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
    pub(crate) document: Document,
    /// Of the outputs that the document names, in its order. They tell what a short secret is: they are not kept.
    value_hashes: Vec<[u8; 32]>,
    gzip: Bytes,
}

/// Reads a state, hashes it and compresses it at the same time, away from the threads that serve. `verify` is run beside.
pub(super) async fn read(
    text: Bytes,
    verify: impl FnOnce() -> Result<(), Error> + Send + 'static,
) -> Result<SentText, Error> {
    // One turn for all three, which are over soon where they are done beside each other.
    let turn = Arc::new(work::turn(text.len()).await);
    let turns = [Arc::clone(&turn), Arc::clone(&turn), turn];
    let [of_gzip, of_hash, of_reading] = turns;
    let (whole, same) = (text.clone(), text.clone());
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
    // What was changed on its way may be no state for that reason alone.
    let (sha256, (document, value_hashes, bytes), gzip) = (sha256?, read?, gzip?);
    Ok(SentText { bytes, sha256, document, value_hashes, gzip })
}

impl SentText {
    /// The text once more, for who has to look into it again: nobody holds it while it is stored.
    pub(crate) async fn text(&self) -> Result<Bytes, Error> {
        let (gzip, bytes) = (self.gzip.clone(), usize::try_from(self.bytes).unwrap_or(usize::MAX));
        work::with(bytes, 1, move || Ok(gunzip(&gzip)?.into())).await
    }
}

/// A text as it is stored.
#[derive(Debug)]
pub(crate) struct SealedText {
    bytes: Bytes,
    sha256: String,
}

/// Seals a text. That is work for processors alone, once the state's key is there.
pub(super) async fn seal(ctx: &Context, state: StateId, sent: &SentText) -> Result<SealedText, Error> {
    let bytes = Bytes::from(data_keys::seal(ctx, state.into(), sent.gzip.to_vec()).await?);
    work::on(bytes.len(), move || Ok(SealedText { sha256: store::sha256_hex(&bytes), bytes })).await
}

/// Stores a text under a key of its own.
pub(super) async fn keep(
    ctx: &Context,
    state: StateId,
    sent: &SentText,
    sealed: SealedText,
) -> Result<KeptState, Error> {
    let SealedText { bytes: sealed, sha256: blob_sha256 } = sealed;
    let key = KeptState::new_blob(state, ctx.ids.uuid());
    let blob_bytes = sealed.len() as u64;
    store::put_blob(ctx, &key, sealed).await?;
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
    })
}

/// What [`fetch`] takes, in bytes: the text, and what it lies in.
pub(super) fn weight(kept: &KeptState) -> usize {
    usize::try_from(kept.bytes.saturating_add(kept.blob_bytes)).unwrap_or(usize::MAX)
}

/// The gzip of a text as it was kept.
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
            return Err(Error::Broken("a state is not what its client sent".to_owned()));
        }
        Ok(text.into())
    })
    .await
}

/// Seals an index, and stores it where it is too long for an item. `None` for a text that has none.
pub(super) async fn keep_index(
    ctx: &Context,
    state: StateId,
    document: &Document,
) -> Result<Option<(Payload, Bytes)>, Error> {
    let Some(index) = &document.index else { return Ok(None) };
    let gzip = gzip(index.to_text().as_bytes());
    let sealed = data_keys::seal(ctx, state.into(), Vec::from(gzip)).await?;
    let key = || StateVersion::new_index_blob(state, ctx.ids.uuid());
    store::keep(ctx, key, sealed.into()).await.map(Some)
}

/// The outputs of a text that becomes this version, each marked by whether its value is that of the version before.
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

/// The index of a version, from its record and that record's tail.
pub(crate) async fn fetch_index(
    ctx: &Context,
    state: StateId,
    version: &StateVersion,
    tail: Bytes,
) -> Result<Option<Index>, Error> {
    let Some(payload) = &version.index else { return Ok(None) };
    let sealed = store::fetch(ctx, payload, tail).await?;
    let gzip = data_keys::open(ctx, state.into(), Vec::from(sealed)).await?;
    let bytes = length_said(&gzip);
    let read = move || Ok(String::from_utf8(gunzip(&gzip)?).ok().and_then(|text| Index::from_text(&text)));
    let index = work::with(bytes, INDEX_FACTOR, read).await?;
    index.map(Some).ok_or_else(|| Error::Broken(format!("the index of version {} is none", version.version)))
}

/// Removes what was stored for a write that was not needed after all, and that no item names.
pub(super) async fn discard(ctx: &Context, keys: impl IntoIterator<Item = &str>) {
    for key in keys.into_iter().filter_map(BlobKey::parse) {
        if let Err(error) = store::delete_blob(ctx, &key).await {
            // It is rubbish, which an operator's check lists; the request is answered all the same.
            tracing::warn!(%key, error = &error as &dyn std::error::Error, "a blob that is not needed stays");
        }
    }
}
