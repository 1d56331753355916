//! The indexes of versions: which instances a state had, and whether they changed. A long text has rows instead, which tell
//! the same.

use bytes::Bytes;

use super::rows;
use crate::context::Context;
use crate::domain::ids::StateId;
use crate::domain::tfstate::{Document, Index};
use crate::layout::{Payload, StateVersion};
use crate::services::keys::data_keys;
use crate::services::store::compression::{declared_length, gunzip, gzip};
use crate::services::{Error, store, work};

/// Memory for an index that is parsed into a map, as a multiple of its text.
const INDEX_FACTOR: usize = 3;

/// Seals an index, and stores it as a blob if it is too long for an item. `None` for a text without an index.
pub(super) async fn keep(
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

/// The index of a version, from the version's record and the tail of that record, or from the rows of its text.
pub(crate) async fn fetch(
    ctx: &Context,
    state: StateId,
    version: &StateVersion,
    tail: Bytes,
) -> Result<Option<Index>, Error> {
    let Some(payload) = &version.index else { return Box::pin(rows::index(ctx, state, &version.kept)).await };
    let sealed = store::fetch(ctx, payload, tail).await?;
    let gzip = data_keys::open(ctx, state.into(), Vec::from(sealed)).await?;
    let bytes = declared_length(&gzip);
    let read = move || Ok(String::from_utf8(gunzip(&gzip)?).ok().and_then(|text| Index::from_text(&text)));
    let index = work::with(bytes, INDEX_FACTOR, read).await?;
    index
        .map(Some)
        .ok_or_else(|| Error::Broken(format!("the index of version {} does not read back", version.version)))
}
