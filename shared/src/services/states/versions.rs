//! Reading Terraform states: the current text, older versions, the difference between two, and the outputs alone.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{Located, StateRef};
use super::{blobs, index, schemas};
use crate::account;
use crate::context::Context;
use crate::domain::ids::StateId;
use crate::domain::names::StateAddress;
use crate::domain::tfstate::{
    Changes, Document, Index, InstanceChanges, Output, changes_of_one, instance_changes, outputs_document,
    outputs_of,
};
use crate::layout::{KeptState, Record, RejectedState, StateHead, StateVersion};
use crate::ports::{Order, Timestamp};
use crate::services::caller::Caller;
use crate::services::error::StateError;
use crate::services::states;
use crate::services::{Error, store, work};

/// Versions on one page of a list.
pub const VERSIONS_PAGE: usize = 100;

/// A reference to one of the texts of a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateVersionRef {
    /// A version, by its number.
    Version(u64),
    /// A refused write, by its id.
    Rejected(String),
}

impl StateVersionRef {
    /// Parses the number of a version, or the id of a refused write.
    pub fn parse(text: &str) -> Option<Self> {
        let is_id = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if is_id {
            return Some(Self::Rejected(text.to_owned()));
        }
        text.parse().ok().filter(|version| *version > 0).map(Self::Version)
    }
}

impl std::fmt::Display for StateVersionRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Version(version) => version.fmt(f),
            Self::Rejected(id) => id.fmt(f),
        }
    }
}

/// The gzip of the current text of a state, as its client sent it; `None` for a state without a version, and for a
/// name that no state has. One read, and one of the blob.
///
/// # Errors
/// As [`states::find`].
pub async fn current_gzip(ctx: &Context, caller: &Caller, state: &StateRef) -> Result<Option<Bytes>, Error> {
    let Some(Located { id, head }) = states::find(ctx, caller, state).await? else { return Ok(None) };
    let Some(kept) = &head.value.current else { return Ok(None) };
    blobs::fetch_gzip(ctx, id, kept).await.map(Some)
}

/// The address of a state, and the gzip of one of its texts, as its client sent it.
///
/// # Errors
/// [`StateError::NotFound`], [`StateError::NoVersion`].
pub async fn download(
    ctx: &Context,
    caller: &Caller,
    state: &StateRef,
    which: &StateVersionRef,
) -> Result<(StateAddress, Bytes), Error> {
    let Located { id, head } = states::locate(ctx, caller, state).await?;
    let kept = kept(ctx, id, which).await?;
    Ok((head.value.address, blobs::fetch_gzip(ctx, id, &kept).await?))
}

/// Where a text of a state is stored.
async fn kept(ctx: &Context, id: StateId, which: &StateVersionRef) -> Result<KeptState, Error> {
    found(ctx, id, which).await.map(|(kept, _)| kept)
}

/// Where a text of a state is stored, and when the run that made it began. If that is not known, the time of the
/// write.
pub(super) async fn found(
    ctx: &Context,
    id: StateId,
    which: &StateVersionRef,
) -> Result<(KeptState, Timestamp), Error> {
    let missing =
        || Error::State(StateError::NoVersion { state: id.to_string(), version: which.to_string() });
    Ok(match which {
        StateVersionRef::Version(version) => {
            let key = StateVersion::key(id, *version);
            let version = store::read(ctx, &key).await?.ok_or_else(missing)?.value;
            (version.kept, version.began.unwrap_or(version.at))
        }
        StateVersionRef::Rejected(rejected) => {
            let key = RejectedState::key(id, rejected);
            let rejected = store::read(ctx, &key).await?.ok_or_else(missing)?.value;
            (rejected.kept, rejected.at)
        }
    })
}

/// The data of a version that the next one is compared with.
#[derive(Debug, Default)]
pub(crate) struct Before {
    /// The index; `None` if the version has none, or is no longer stored.
    pub(crate) index: Option<Index>,
    /// The outputs.
    pub(crate) outputs: Vec<Output>,
    /// When the run that made the version began.
    pub(crate) began: Option<Timestamp>,
}

/// Reads the data of a version that the next one is compared with. One read, and one of a blob if the index is long or the
/// text has rows. Rows that cannot be read stop no write: then the changes are unknown.
pub(super) async fn before(ctx: &Context, id: StateId, version: u64) -> Result<Before, Error> {
    if version == 0 {
        return Ok(Before { index: Some(Index::default()), ..Before::default() });
    }
    let item = store::get(ctx, &StateVersion::key(id, version)).await?;
    let Some(item) = item else { return Ok(Before::default()) };
    let (version, tail) = StateVersion::decode_with(&item.value)?;
    let index = match index::fetch(ctx, id, &version, tail).await {
        Err(error) if version.kept.rows.is_some() => {
            tracing::warn!(error = &error as &dyn std::error::Error, "the changes of a version are unknown");
            None
        }
        fetched => fetched?,
    };
    Ok(Before { index, began: Some(version.began.unwrap_or(version.at)), outputs: version.outputs })
}

/// The record of one version.
///
/// # Errors
/// [`StateError::NotFound`], [`StateError::NoVersion`].
pub async fn version(
    ctx: &Context,
    caller: &Caller,
    state: &StateRef,
    version: u64,
) -> Result<StateVersion, Error> {
    let Located { id, .. } = states::locate(ctx, caller, state).await?;
    let key = StateVersion::key(id, version);
    let found = store::read(ctx, &key).await?;
    let missing =
        || Error::State(StateError::NoVersion { state: id.to_string(), version: version.to_string() });
    Ok(found.ok_or_else(missing)?.value)
}

/// One page of a state's versions, newest first, below `before` if that is given. Returns whether there are more.
///
/// # Errors
/// [`StateError::NotFound`].
pub async fn versions(
    ctx: &Context,
    caller: &Caller,
    state: &StateRef,
    before: Option<u64>,
) -> Result<(Vec<StateVersion>, bool), Error> {
    let Located { id, .. } = states::locate(ctx, caller, state).await?;
    let after = before.map(|before| StateVersion::key(id, before).sort.clone());
    let query = StateVersion::of_state(id).query(after, Order::Descending, VERSIONS_PAGE);
    let page = store::query(ctx, &query).await?;
    let versions = page.items.iter().map(|item| StateVersion::decode(&item.value));
    Ok((versions.collect::<Result<_, _>>()?, page.more))
}

/// Refused writes of a state in a list, at most.
const REJECTED_MAX: usize = 500;

/// The stored refused writes of a state, newest first, with their ids.
///
/// # Errors
/// [`StateError::NotFound`].
pub async fn rejected(
    ctx: &Context,
    caller: &Caller,
    state: &StateRef,
) -> Result<Vec<(String, RejectedState)>, Error> {
    let Located { id, .. } = states::locate(ctx, caller, state).await?;
    let items = store::query_all(ctx, RejectedState::of_state(id), REJECTED_MAX).await?;
    let mut rejected = items
        .iter()
        .map(|item| {
            let id = item.key.sort.strip_prefix("R#").unwrap_or_default().to_owned();
            Ok((id, RejectedState::decode(&item.value)?))
        })
        .collect::<Result<Vec<_>, Error>>()?;
    rejected.sort_by_key(|(_, rejected)| std::cmp::Reverse(rejected.at));
    Ok(rejected)
}

/// The difference between two texts of a state. It contains no values: any of them may be a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The changed instances; `None` if those of one text are not known, as for an encrypted state.
    pub resources: Option<Changes>,
    /// The changed paths within the changed instances that are named.
    pub paths: Vec<InstanceChanges>,
    /// The names of new outputs.
    pub outputs_added: Vec<String>,
    /// The names of outputs with another value, type or mark.
    pub outputs_changed: Vec<String>,
    /// The names of outputs that no longer exist.
    pub outputs_removed: Vec<String>,
}

/// The difference from text `one` of a state to `other`; with `only`, in the instance with this address alone.
///
/// # Errors
/// [`StateError::NotFound`], [`StateError::NoVersion`].
pub async fn compare(
    ctx: &Context,
    caller: &Caller,
    state: &StateRef,
    one: &StateVersionRef,
    other: &StateVersionRef,
    only: Option<String>,
) -> Result<Difference, Error> {
    let Located { id, .. } = states::locate(ctx, caller, state).await?;
    let (one, other) = futures::try_join!(kept(ctx, id, one), kept(ctx, id, other))?;
    let bytes = usize::try_from(one.bytes.saturating_add(other.bytes)).unwrap_or(usize::MAX);
    // Reserves memory for both texts at once: a request that held one text while it waited for memory for the other
    // would block others.
    let texts = blobs::weight(&one).saturating_add(blobs::weight(&other));
    account::take_ahead(texts.saturating_add(bytes.saturating_mul(READ_FACTOR))).await?;
    account::take(bytes.saturating_mul(READ_FACTOR)).await?;
    let one = blobs::fetch(ctx, id, &one).await?;
    let other = blobs::fetch(ctx, id, &other).await?;
    work::on(bytes, move || match only {
        Some(address) => difference_of_one(&one, &other, &address),
        None => difference(&one, &other),
    })
    .await
}

/// The most memory for what is parsed from a text, in addition to the text, as a multiple of it.
const READ_FACTOR: usize = 2;

fn difference(one: &[u8], other: &[u8]) -> Result<Difference, Error> {
    let broken = |error| Error::Broken(format!("the stored text is not a state: {error}"));
    let read = |text| Document::read(text).map_err(broken);
    let (before, after) = (read(one)?, read(other)?);
    let old: BTreeMap<String, &str> =
        outputs_of(one).map_err(broken)?.unwrap_or_default().into_iter().collect();
    let new: BTreeMap<String, &str> =
        outputs_of(other).map_err(broken)?.unwrap_or_default().into_iter().collect();
    let names = |of: &BTreeMap<String, &str>, wanted: &dyn Fn(&str, &str) -> bool| {
        of.iter().filter(|(name, text)| wanted(name, text)).map(|(name, _)| name.clone()).collect()
    };
    let resources = after.index.zip(before.index).map(|(after, before)| after.changes_since(&before));
    let changed = resources.as_ref().map_or(&[][..], |resources| resources.changed.as_slice());
    let paths = instance_changes(one, other, changed).map_err(broken)?;
    Ok(Difference {
        resources,
        paths,
        outputs_added: names(&new, &|name, _| !old.contains_key(name)),
        outputs_changed: names(&new, &|name, text| old.get(name).is_some_and(|old| *old != text)),
        outputs_removed: names(&old, &|name, _| !new.contains_key(name)),
    })
}

/// The difference in one instance.
fn difference_of_one(one: &[u8], other: &[u8], address: &str) -> Result<Difference, Error> {
    let broken = |error| Error::Broken(format!("the stored text is not a state: {error}"));
    let read = |text| Document::read(text).map_err(broken);
    let (before, after) = (read(one)?, read(other)?);
    let resources = after.index.zip(before.index).map(|(after, before)| after.change_since(&before, address));
    let is_changed = resources.as_ref().is_some_and(|resources| resources.changed_count > 0);
    let paths = if is_changed { changes_of_one(one, other, address).map_err(broken)? } else { None };
    Ok(Difference {
        resources,
        paths: paths.into_iter().collect(),
        outputs_added: Vec::new(),
        outputs_changed: Vec::new(),
        outputs_removed: Vec::new(),
    })
}

/// The current outputs of a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outputs {
    /// The version; 0 if the state has none.
    pub version: u64,
    /// The names, each with the JSON text of its object (`value`, `type`, `sensitive`); `None` if the client
    /// encrypted the state.
    pub outputs: Option<Vec<(String, String)>>,
    /// The outputs with their validity; empty if there are no schemas.
    pub judged: Vec<Output>,
    /// A state that contains only these outputs; `None` for an encrypted state and one without a version.
    pub document: Option<String>,
}

/// The current outputs of a state; every member of its organization may see all of them. `None` for a name that no
/// state has.
///
/// # Errors
/// As [`states::find`].
pub async fn outputs(ctx: &Context, caller: &Caller, state: &StateRef) -> Result<Option<Outputs>, Error> {
    match states::find(ctx, caller, state).await? {
        Some(found) => outputs_of_found(ctx, found).await.map(Some),
        None => Ok(None),
    }
}

pub(super) async fn outputs_of_found(ctx: &Context, found: Located) -> Result<Outputs, Error> {
    let Located { id, head } = found;
    let StateHead { version, current: Some(kept), .. } = &head.value else {
        let nothing = Outputs { version: 0, outputs: Some(Vec::new()), judged: Vec::new(), document: None };
        return Ok(nothing);
    };
    let version = *version;
    if kept.is_encrypted {
        return Ok(Outputs { version, outputs: None, judged: Vec::new(), document: None });
    }
    let judged = schemas::current_outputs(ctx, id, &head.value);
    let bytes = usize::try_from(kept.bytes).unwrap_or(usize::MAX);
    let read = bytes.saturating_mul(READ_FACTOR);
    account::take_ahead(blobs::weight(kept).saturating_add(read)).await?;
    account::take(read).await?;
    let (text, judged) = futures::try_join!(blobs::fetch(ctx, id, kept), judged)?;
    work::on(bytes, move || {
        let broken = |error| Error::Broken(format!("the stored text is not a state: {error}"));
        let document = Document::read(&text).map_err(broken)?;
        let outputs = outputs_of(&text).map_err(broken)?;
        let only = outputs.as_ref().map(|outputs| outputs_document(&document, outputs));
        let owned = outputs
            .map(|outputs| outputs.into_iter().map(|(name, output)| (name, output.to_owned())).collect());
        Ok(Outputs { version, outputs: owned, judged, document: only })
    })
    .await
}
