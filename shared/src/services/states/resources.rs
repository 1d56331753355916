//! The resources of Terraform states: a page of them, one with its attributes, and the versions that changed one.

use futures::StreamExt;

use super::versions::{StateVersionRef, found};
use super::{Located, StateRef, blobs, index, rows};
use crate::account;
use crate::context::Context;
use crate::domain::ids::StateId;
use crate::domain::names::StateAddress;
use crate::domain::tfstate::{
    ATTRIBUTES_BYTES_MAX, Around, Detail, InvalidState, Op, Page, Place, Told, Values, around, detail_of,
    page_of, values_of,
};
use crate::layout::{KeptState, Record, StateVersion};
use crate::ports::{Item, Order};
use crate::services::caller::Caller;
use crate::services::error::{InvalidInput, StateError};
use crate::services::{Error, states, store, work};

/// Resources on one page, if the request does not say.
pub const PAGE: usize = 200;

/// Resources on one page, at most.
pub const PAGE_MAX: usize = 1_000;

/// The longest filter in bytes.
pub const FILTER_BYTES_MAX: usize = 200;

/// Versions that one page of a history looks at.
pub const HISTORY_PAGE: usize = 50;

/// Indexes that are read at the same time.
const READ_AT_ONCE: usize = 4;

/// The most memory for what is parsed from a text, in addition to the text, as a multiple of it.
const READ_FACTOR: usize = 2;

/// What a page lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The version or refused write; the current version if absent.
    pub which: Option<StateVersionRef>,
    /// Words that each address or provider has.
    pub filter: String,
    /// The place after which the page begins.
    pub after: Option<Place>,
    /// The number of resources on the page.
    pub size: usize,
}

/// What a text of a state has, with its version; `None` for a state without a version.
pub type OfVersion<T> = (Option<StateVersionRef>, T);

/// One page of the resource instances of a state, by module and address. One read, and one of a blob: of the text, or of
/// the first rows of a long text. One read more of the blob for a later page of rows, and one for a version that the
/// request names.
///
/// # Errors
/// [`StateError::NotFound`], [`StateError::NoVersion`], [`StateError::ResourcesUnknown`].
pub async fn list(
    ctx: &Context,
    caller: &Caller,
    state: &StateRef,
    wanted: Wanted,
) -> Result<OfVersion<Page>, Error> {
    let Wanted { which, filter, after, size } = wanted;
    let Some(Text { which, kept, id, .. }) = text_of(ctx, caller, state, which).await? else {
        return Ok((None, Page::default()));
    };
    let of_rows = Box::pin(rows::page(ctx, id, &kept, &filter, after.as_ref(), size)).await;
    if let Some(page) = rows::unless_damaged(of_rows)? {
        return Ok((Some(which), page));
    }
    let page = read(ctx, id, &kept, &which, move |text| page_of(text, &filter, after.as_ref(), size)).await?;
    Ok((Some(which), page))
}

/// One resource instance, without its values.
///
/// # Errors
/// As [`list`]; [`StateError::NoResource`].
pub async fn get(
    ctx: &Context,
    caller: &Caller,
    state: &StateRef,
    which: Option<StateVersionRef>,
    address: &str,
) -> Result<(StateVersionRef, Detail), Error> {
    let (text, missing) = text_with(ctx, caller, state, which, address).await?;
    let of_rows = Box::pin(rows::detail(ctx, text.id, &text.kept, address)).await;
    if let Some(found) = rows::unless_damaged(of_rows)? {
        return Ok((text.which, found.ok_or(missing)?));
    }
    let wanted = address.to_owned();
    let found = read(ctx, text.id, &text.kept, &text.which, move |text| detail_of(text, &wanted)).await?;
    Ok((text.which, found.ok_or(missing)?))
}

/// The resource instances that are at most `hops` dependencies away from one.
///
/// # Errors
/// As [`get`].
pub async fn neighbours(
    ctx: &Context,
    caller: &Caller,
    state: &StateRef,
    which: Option<StateVersionRef>,
    address: &str,
    hops: u64,
) -> Result<(StateVersionRef, Around), Error> {
    let (text, missing) = text_with(ctx, caller, state, which, address).await?;
    let wanted = address.to_owned();
    let found = read(ctx, text.id, &text.kept, &text.which, move |text| around(text, &wanted, hops)).await?;
    Ok((text.which, found.ok_or(missing)?))
}

/// The attributes of one resource instance, with the address of its state. Values that the state marks as sensitive are
/// masked, unless `unmask`.
///
/// # Errors
/// As [`get`]; [`Error::TooLarge`].
pub async fn values(
    ctx: &Context,
    caller: &Caller,
    state: &StateRef,
    which: Option<StateVersionRef>,
    address: &str,
    unmask: bool,
) -> Result<(StateAddress, StateVersionRef, Values), Error> {
    let (text, missing) = text_with(ctx, caller, state, which, address).await?;
    let wanted = address.to_owned();
    let parse = move |text: &[u8]| values_of(text, &wanted, unmask);
    let values = read(ctx, text.id, &text.kept, &text.which, parse).await?.ok_or(missing)?;
    if values.bytes > ATTRIBUTES_BYTES_MAX {
        let (what, bytes) = ("the attributes of one resource", values.bytes);
        return Err(Error::TooLarge { what, bytes, bytes_max: ATTRIBUTES_BYTES_MAX });
    }
    Ok((text.address, text.which, values))
}

/// Refuses a request that names no resource. Who may not read the state learns nothing of that.
fn check_address(address: &str) -> Result<(), Error> {
    if address.is_empty() { Err(InvalidInput::ResourceAddress.into()) } else { Ok(()) }
}

/// Where a text is stored.
struct Text {
    which: StateVersionRef,
    kept: KeptState,
    id: StateId,
    address: StateAddress,
}

async fn text_of(
    ctx: &Context,
    caller: &Caller,
    state: &StateRef,
    which: Option<StateVersionRef>,
) -> Result<Option<Text>, Error> {
    let Located { id, head } = states::locate(ctx, caller, state).await?;
    let (which, kept) = match (which, head.value.current) {
        (Some(which), _) => {
            let (kept, _) = found(ctx, id, &which).await?;
            (which, kept)
        }
        (None, Some(kept)) => (StateVersionRef::Version(head.value.version), kept),
        (None, None) => return Ok(None),
    };
    Ok(Some(Text { which, kept, id, address: head.value.address }))
}

/// The text that must have a resource, and the error if it does not.
async fn text_with(
    ctx: &Context,
    caller: &Caller,
    state: &StateRef,
    which: Option<StateVersionRef>,
    address: &str,
) -> Result<(Text, Error), Error> {
    const SHOWN_CHARS_MAX: usize = 200;
    let text = text_of(ctx, caller, state, which).await?;
    check_address(address)?;
    let address = address.chars().filter(|c| !c.is_control()).take(SHOWN_CHARS_MAX).collect();
    let missing = |version| Error::State(StateError::NoResource { address, version });
    match text {
        Some(text) => {
            let version = text.which.to_string();
            Ok((text, missing(version)))
        }
        None => Err(missing("0".to_owned())),
    }
}

/// Reads a text off the serving threads. Memory for all of it is reserved first.
async fn read<T: Send + 'static>(
    ctx: &Context,
    id: StateId,
    kept: &KeptState,
    which: &StateVersionRef,
    parse: impl FnOnce(&[u8]) -> Result<Option<T>, InvalidState> + Send + 'static,
) -> Result<T, Error> {
    let unknown = || Error::State(StateError::ResourcesUnknown { version: which.to_string() });
    if kept.is_encrypted {
        return Err(unknown());
    }
    let bytes = usize::try_from(kept.bytes).unwrap_or(usize::MAX);
    let parsed = bytes.saturating_mul(READ_FACTOR);
    account::take_ahead(blobs::weight(kept).saturating_add(parsed)).await?;
    account::take(parsed).await?;
    let text = blobs::fetch(ctx, id, kept).await?;
    let found = work::on(bytes, move || {
        parse(&text).map_err(|error| Error::Broken(format!("the stored text is not a state: {error}")))
    });
    found.await?.ok_or_else(unknown)
}

/// A version that changed a resource instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The version, without what it has.
    pub version: StateVersion,
    /// What it did.
    pub op: Op,
}

/// A part of the history of a resource instance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// The versions that changed it, newest first.
    pub events: Vec<Event>,
    /// The versions of which it is not known: their client encrypted them, or the version before is not stored any more.
    pub unknown: Vec<u64>,
    /// The version below which the next part begins.
    pub next: Option<u64>,
}

/// The versions that changed a resource instance, newest first, of the next [`HISTORY_PAGE`] versions below `before`. One
/// query. What the lists of changes in the versions do not tell, their indexes or rows do: one blob at most for each version.
///
/// # Errors
/// [`StateError::NotFound`].
pub async fn history(
    ctx: &Context,
    caller: &Caller,
    state: &StateRef,
    address: &str,
    before: Option<u64>,
) -> Result<History, Error> {
    let Located { id, .. } = states::locate(ctx, caller, state).await?;
    check_address(address)?;
    let after = before.map(|before| StateVersion::key(id, before).sort.clone());
    // The last one is read for what came before the others.
    let query = StateVersion::of_state(id).query(after, Order::Descending, HISTORY_PAGE + 1);
    let page = store::query(ctx, &query).await?;
    let versions = page.items.iter().map(|item| StateVersion::decode(&item.value));
    let mut versions = versions.collect::<Result<Vec<_>, _>>()?;
    let told: Vec<Told> = versions.iter().map(|version| told(version, address)).collect();
    let looked_at = told.len().min(HISTORY_PAGE);

    let needs_index = |place: usize| told.get(place) == Some(&Told::Unlisted) && place < looked_at;
    let is_needed = |place: usize| needs_index(place) || place.checked_sub(1).is_some_and(needs_index);
    let needed: Vec<bool> = (0..told.len()).map(is_needed).collect();
    let more = page.more;
    let read = |(item, is_needed): (Item, bool)| async move {
        match is_needed {
            // Only the digest is kept of the index.
            true => account::apart(digest(ctx, id, item, address)).await,
            false => Ok(None),
        }
    };
    let reads = page.items.into_iter().zip(needed).map(read);
    let mut reads = futures::stream::iter(reads).buffered(READ_AT_ONCE);
    let mut digests = Vec::with_capacity(told.len());
    while let Some(digest) = reads.next().await {
        digests.push(digest?);
    }

    let mut history = History::default();
    if told.len() > HISTORY_PAGE || more {
        history.next = versions.get(looked_at.saturating_sub(1)).map(|version| version.version);
    }
    let numbers: Vec<u64> = versions.iter().map(|version| version.version).collect();
    versions.truncate(looked_at);
    for (place, version) in versions.into_iter().enumerate() {
        let op = match told.get(place) {
            Some(Told::Did(op)) => Some(*op),
            Some(Told::Nothing) | None => None,
            Some(Told::Unlisted) => {
                let is_first = version.version == 1;
                let is_next = numbers.get(place + 1).is_some_and(|number| number + 1 == version.version);
                let old = digests.get(place + 1).copied().flatten().filter(|_| is_next);
                let old = if is_first { Some(None) } else { old };
                match (old, digests.get(place).copied().flatten()) {
                    (Some(old), Some(new)) => Op::between(old, new),
                    _ => {
                        history.unknown.push(version.version);
                        None
                    }
                }
            }
        };
        if let Some(op) = op {
            history.events.push(Event { version, op });
        }
    }
    Ok(history)
}

fn told(version: &StateVersion, address: &str) -> Told {
    version.changes.as_ref().map_or(Told::Unlisted, |changes| changes.told(address))
}

/// The digest of an instance in a version, which may not have it; `None` if that is not known.
async fn digest(
    ctx: &Context,
    id: StateId,
    item: Item,
    address: &str,
) -> Result<Option<Option<[u8; 8]>>, Error> {
    let (version, tail) = StateVersion::decode_with(&item.value)?;
    if version.kept.rows.is_some() {
        let of_rows = Box::pin(rows::digest(ctx, id, &version.kept, address)).await;
        return rows::unless_damaged(of_rows);
    }
    let index = index::fetch(ctx, id, &version, tail).await?;
    Ok(index.map(|index| index.digest(address)))
}
