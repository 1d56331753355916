//! A backup of a store as of one moment, as blobs in a bucket or a folder.
//!
//! | key | content |
//! | --- | --- |
//! | `backup.json` | names the parts of the last finished backup and its time; written last |
//! | `items/ID/NUMBER` | a part of the items: the gzip of a JSON object a line |
//! | `blobs/KEY` | a blob of the store, under its key there |
//! | `runs/ID` | a backup that was begun and is not finished |
//!
//! The items come from a copy of the table that AWS brought to that moment, and that nothing changes. The blobs come
//! from the bucket in use. They never change, and stay for weeks after no item names them. So the next backup copies
//! new blobs only. Until its `backup.json` is written, the backup before it is valid.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use super::check;
use super::copy::{BLOB_BYTES_AT_ONCE, BLOBS_AT_ONCE, Progress, Source, Wrapped};
use crate::context::Context;
use crate::domain::ids::KeyOwner;
use crate::layout::{
    EnvironmentHead, Record, Signer, StackHead, StateHead, VerifyingKeyRecord, WrappedDataKey,
    describes_the_store, named_blobs,
};
use crate::ports::{BlobKey, BoxError, Inventory, Item, ItemKey, Revision, Timestamp, Wrap};
use crate::services::error::MaintenanceError;
use crate::services::store::compression::{gunzip, gzip};
use crate::services::work::in_background;
use crate::services::{Error, store};

/// The format of `backup.json`. Format 1 is that of folder backups, whose file has the same name.
const FORMAT: u32 = 2;

/// The size of a part of the items, in bytes before compression: a part is stored once it has this many.
const PART_BYTES: usize = 8 << 20;

/// How long the files of an unfinished backup are kept after it began.
const RUNS_FOR: Duration = Duration::from_secs(7 * 24 * 3600);

/// The description of a finished backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    format: u32,
    /// The moment of the backup, in RFC 3339.
    pub at: String,
    /// The name of the master key that wraps the data keys in the backup, as of then.
    pub master_key: String,
    /// The number of items.
    pub items: u64,
    /// The id of the key that signs the store's update tokens, which identifies the store.
    source: String,
    /// The parts, each with the hex SHA-256 of its bytes.
    parts: Vec<(String, String)>,
    /// The items of signing keys, which a copy looks up by key.
    signing_keys: Vec<Line>,
}

impl Made {
    /// The parts of the items, each with the hex SHA-256 of its bytes.
    pub fn parts(&self) -> Vec<(BlobKey, String)> {
        let parsed = |(key, sha256): &(String, String)| Some((BlobKey::parse(key)?, sha256.clone()));
        self.parts.iter().filter_map(parsed).collect()
    }

    /// The items that a copy looks up by key.
    ///
    /// # Errors
    /// [`Error::Broken`] if one is not an item.
    pub fn looked_up(&self) -> Result<Vec<Item>, Error> {
        self.signing_keys.iter().map(Line::item).collect()
    }
}

/// An item as a line of a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Line {
    partition: String,
    sort: String,
    revision: u64,
    /// In base64.
    value: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<i64>,
}

impl Line {
    fn of(item: &Item) -> Self {
        Self {
            partition: item.key.partition.clone(),
            sort: item.key.sort.clone(),
            revision: item.revision.0,
            value: STANDARD.encode(&item.value),
            expires: item.expires.map(|at| at.0),
        }
    }

    fn item(&self) -> Result<Item, Error> {
        let broken = |error| Error::Broken(format!("an item of the backup: {error}"));
        Ok(Item {
            key: ItemKey::new(self.partition.clone(), self.sort.clone()),
            revision: Revision(self.revision),
            value: STANDARD.decode(&self.value).map_err(broken)?.into(),
            expires: self.expires.map(Timestamp),
        })
    }
}

/// Parses the items of a part.
///
/// # Errors
/// If the bytes are not a part.
pub fn items_of_part(part: &[u8]) -> Result<Vec<Item>, BoxError> {
    let text = gunzip(part)?;
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| Ok(serde_json::from_slice::<Line>(line)?.item()?)).collect()
}

/// The place where backups are stored.
#[derive(Clone, Copy)]
pub struct Shelf<'a> {
    /// The context of the place. Only its blobs are used.
    pub ctx: &'a Context,
    /// Lists the keys of the blobs.
    pub inventory: &'a dyn Inventory,
}

/// The input of a backup.
#[derive(Clone, Copy)]
pub struct BackupRequest<'a> {
    /// The store as of the moment, which nothing changes.
    pub moment: Source<'a>,
    /// The store in use.
    pub live: &'a Context,
    /// The moment.
    pub at: Timestamp,
    /// The name of the master key that wraps the data keys in the backup.
    pub master_key: &'a str,
    /// That key, if it is not the store's own.
    pub wrap: Option<&'a dyn Wrap>,
    /// Whether to read and compare the blobs that are already in the backup.
    pub verify: bool,
}

/// The result of a backup.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackedUp {
    /// The number of items.
    pub items: u64,
    /// The number of blobs that the items name.
    pub blobs: u64,
    /// The blobs that this run copied.
    pub blobs_copied: u64,
    /// The bytes of these blobs.
    pub bytes_copied: u64,
    /// Blobs that an item names and the store does not have.
    pub missing: BTreeSet<BlobKey>,
    /// Blobs whose hash differs from the one in their item. They are copied as they are.
    pub damaged: BTreeSet<BlobKey>,
    /// Items that cannot be decoded, or whose key cannot be unwrapped. They are copied as they are.
    pub unreadable: BTreeSet<ItemKey>,
}

/// The last finished backup in this place, if it has this format.
///
/// # Errors
/// [`Error::Broken`] if it cannot be read, [`MaintenanceError::BackupFormat`] if a newer program wrote it; those of
/// the ports.
pub async fn last(shelf: &Context) -> Result<Option<Made>, Error> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let Some(bytes) = store::get_blob(shelf, &key("backup.json")?, 0).await? else { return Ok(None) };
    let broken = |error: serde_json::Error| Error::Broken(format!("backup.json: {error}"));
    match serde_json::from_slice::<Format>(&bytes).map_err(broken)?.format {
        FORMAT => Ok(Some(serde_json::from_slice(&bytes).map_err(broken)?)),
        older if older < FORMAT => Ok(None),
        newer => Err(MaintenanceError::BackupFormat { found: newer, known: FORMAT }.into()),
    }
}

/// The problems of the store as of the moment that the store in use does not have. DynamoDB brings back each item as
/// of within a second of the moment, but not all items as of the same instant. Empty if the moment is consistent.
///
/// # Errors
/// Those of the ports.
pub async fn torn(moment: Source<'_>, live: Source<'_>) -> Result<Vec<String>, Error> {
    let mut found = check::items(moment.ctx, moment.inventory).await?;
    if !found.is_empty() {
        let there = check::items(live.ctx, live.inventory).await?;
        found.retain(|problem| !there.contains(problem));
    }
    Ok(found)
}

/// Makes a backup. If it is interrupted, the last finished one stays valid.
///
/// # Errors
/// [`MaintenanceError`] if the place stores anything else, or if the store was never used; those of the ports.
pub async fn back_up(
    wanted: BackupRequest<'_>,
    shelf: Shelf<'_>,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<BackedUp, Error> {
    let source = source_of(wanted.moment.ctx).await?;
    let there = refuse_other(wanted.moment.ctx, &source, shelf).await?;
    let id = shelf.ctx.ids.uuid().simple().to_string();
    let run = key(&format!("runs/{id}"))?;
    let begun = serde_json::to_vec(&Run { begun: shelf.ctx.now() }).map_err(unwritable)?;
    store::put_blob(shelf.ctx, &run, begun.into()).await?;

    let mut done = BackedUp::default();
    let mut writing = Writing { shelf, id: &id, lines: Vec::new(), parts: Vec::new() };
    let Found { named, signing_keys } = items(&wanted, &mut writing, &mut done, progress).await?;
    blobs(&wanted, shelf, &there, &named, &mut done, progress).await?;
    let made = Made {
        format: FORMAT,
        at: wanted.at.to_rfc3339(),
        master_key: wanted.master_key.to_owned(),
        items: done.items,
        source,
        parts: writing.parts,
        signing_keys,
    };
    let made = serde_json::to_vec_pretty(&made).map_err(unwritable)?;
    store::put_blob(shelf.ctx, &key("backup.json")?, made.into()).await?;
    tidy(shelf.ctx, &there).await?;
    store::delete_blob(shelf.ctx, &run).await?;
    Ok(done)
}

/// Refuses what [`back_up`] would refuse. Call it before expensive preparations.
///
/// # Errors
/// As [`back_up`].
pub async fn ready(ctx: &Context, shelf: Shelf<'_>) -> Result<(), Error> {
    let source = source_of(ctx).await?;
    refuse_other(ctx, &source, shelf).await.map(drop)
}

/// The id of the key that signs the store's update tokens.
async fn source_of(ctx: &Context) -> Result<String, Error> {
    match store::read(ctx, &Signer::key()).await? {
        Some(signer) => Ok(signer.value.key),
        None => Err(MaintenanceError::NothingToBackUp.into()),
    }
}

/// The record of an unfinished backup.
#[derive(Serialize, Deserialize)]
struct Run {
    begun: Timestamp,
}

fn key(text: &str) -> Result<BlobKey, Error> {
    BlobKey::parse(text).ok_or_else(|| Error::Broken(format!("{text:?} is not a key")))
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::Internal(format!("cannot encode a backup: {error}"))
}

/// The key of a store's blob within a backup.
fn kept(blob: &BlobKey) -> Result<BlobKey, Error> {
    key(&format!("{KEPT}{blob}"))
}

/// The prefix of the store's blobs in a backup.
pub const KEPT: &str = "blobs/";

/// Refuses a place that stores anything but backups of this store. Returns the keys of all blobs there.
async fn refuse_other(ctx: &Context, source: &str, shelf: Shelf<'_>) -> Result<BTreeSet<BlobKey>, Error> {
    let there = store::inventory_blobs(shelf.ctx, shelf.inventory).await?;
    match last(shelf.ctx).await? {
        Some(last) if last.source == source => return Ok(there),
        Some(last) => {
            // The signing key may have been rotated since that backup.
            if store::get(ctx, &VerifyingKeyRecord::key(&last.source)).await?.is_some() {
                return Ok(there);
            }
            return Err(MaintenanceError::OtherBackup.into());
        }
        None => {}
    }
    let was_begun = there.iter().any(|key| key.as_str().starts_with("runs/"));
    let is_ours = |key: &BlobKey| ["runs/", "items/", KEPT].iter().any(|ours| key.as_str().starts_with(ours));
    if there.is_empty() || (was_begun && there.iter().all(is_ours)) {
        return Ok(there);
    }
    Err(MaintenanceError::NotABackup.into())
}

/// The parts that are being written.
struct Writing<'a> {
    shelf: Shelf<'a>,
    id: &'a str,
    lines: Vec<u8>,
    parts: Vec<(String, String)>,
}

impl Writing<'_> {
    async fn add(&mut self, line: &Line) -> Result<(), Error> {
        serde_json::to_writer(&mut self.lines, line).map_err(unwritable)?;
        self.lines.push(b'\n');
        if self.lines.len() >= PART_BYTES { self.put().await } else { Ok(()) }
    }

    async fn put(&mut self) -> Result<(), Error> {
        if self.lines.is_empty() {
            return Ok(());
        }
        let lines = std::mem::take(&mut self.lines);
        let part: Bytes = in_background(move || Ok(gzip(&lines))).await?;
        let key = key(&format!("items/{}/{:06}", self.id, self.parts.len()))?;
        self.parts.push((key.to_string(), store::sha256_hex(&part)));
        store::put_blob(self.shelf.ctx, &key, part).await
    }
}

/// What a backup collects while it reads the items.
struct Found {
    named: BTreeMap<BlobKey, Option<String>>,
    signing_keys: Vec<Line>,
}

async fn items(
    wanted: &BackupRequest<'_>,
    writing: &mut Writing<'_>,
    done: &mut BackedUp,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Found, Error> {
    let Source { ctx, inventory, .. } = wanted.moment;
    let mut found = Found { named: BTreeMap::new(), signing_keys: Vec::new() };
    let mut owners = Owners::default();
    let mut from = None;
    loop {
        let part = store::inventory_items(ctx, inventory, "", from.as_ref()).await?;
        for item in part.found.into_iter().filter(|item| !describes_the_store(&item.key)) {
            owners.note(&item);
            add(wanted, writing, item, &mut found, done).await?;
        }
        progress(Progress::Items(done.items));
        from = part.next;
        if from.is_none() {
            break;
        }
    }
    // A data key is created before anything is sealed under it, and an unused key does no harm. So a key that did not
    // exist at the moment is taken from the store in use.
    for owner in owners.without_keys() {
        for item in store::query_all(wanted.live, WrappedDataKey::of_owner(owner), usize::MAX).await? {
            add(wanted, writing, item, &mut found, done).await?;
        }
    }
    writing.put().await?;
    Ok(found)
}

async fn add(
    wanted: &BackupRequest<'_>,
    writing: &mut Writing<'_>,
    mut item: Item,
    found: &mut Found,
    done: &mut BackedUp,
) -> Result<(), Error> {
    done.items += 1;
    match named_blobs(&item) {
        Ok(blobs) => {
            for blob in blobs {
                let known = found.named.entry(blob.key).or_default();
                *known = known.take().or(blob.sha256);
            }
        }
        Err(_) => drop(done.unreadable.insert(item.key.clone())),
    }
    if let Some(wrap) = wanted.wrap
        && let Some(wrapped) = Wrapped::of(&item)
    {
        match wrapped_by(wanted.moment.ctx, wrap, wrapped).await {
            Ok(value) => item.value = value,
            Err(Error::Broken(_)) => drop(done.unreadable.insert(item.key.clone())),
            Err(error) => return Err(error),
        }
    }
    let line = Line::of(&item);
    writing.add(&line).await?;
    if item.key == Signer::key() || item.key.partition == VerifyingKeyRecord::all().partition {
        found.signing_keys.push(line);
    }
    Ok(())
}

/// The value of an item, with its key wrapped by another master key.
async fn wrapped_by(ctx: &Context, wrap: &dyn Wrap, wrapped: Result<Wrapped, Error>) -> Result<Bytes, Error> {
    let wrapped = wrapped?;
    let key = wrapped.open(ctx).await?;
    Ok(wrapped.under(&store::wrap_key(ctx, wrap, &key, &wrapped.context).await?))
}

/// The possible owners of data keys, and those that have one.
#[derive(Default)]
struct Owners {
    all: HashSet<KeyOwner>,
    with_keys: HashSet<KeyOwner>,
}

impl Owners {
    fn note(&mut self, item: &Item) {
        self.with_keys.extend(WrappedDataKey::owner_in(&item.key));
        self.all.extend(StackHead::stack_in(&item.key).map(KeyOwner::Stack));
        self.all.extend(StateHead::state_in(&item.key).map(KeyOwner::State));
        if EnvironmentHead::name_in(&item.key).is_ok() {
            let head = EnvironmentHead::decode(&item.value).ok();
            self.all.extend(head.map(|head| KeyOwner::Environment(head.id)));
        }
    }

    fn without_keys(&self) -> impl Iterator<Item = KeyOwner> {
        self.all.difference(&self.with_keys).copied()
    }
}

async fn blobs(
    wanted: &BackupRequest<'_>,
    shelf: Shelf<'_>,
    there: &BTreeSet<BlobKey>,
    named: &BTreeMap<BlobKey, Option<String>>,
    done: &mut BackedUp,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<(), Error> {
    let room = &Semaphore::new(BLOB_BYTES_AT_ONCE as usize);
    done.blobs = named.len() as u64;
    let copies = named.iter().map(|(key, sha256)| async move {
        let copied = one_blob(wanted, shelf, there, (key, sha256.as_deref()), room).await?;
        Ok::<_, Error>((key, sha256, copied))
    });
    let mut copies = stream::iter(copies).buffer_unordered(BLOBS_AT_ONCE);
    let mut handled = 0;
    while let Some((key, sha256, copied)) = copies.try_next().await? {
        match copied {
            OfBlob::Kept => {}
            OfBlob::Copied { bytes, is_damaged } => {
                done.blobs_copied += 1;
                done.bytes_copied += bytes;
                if is_damaged {
                    done.damaged.insert(key.clone());
                }
            }
            // Only an item about its deletion names this blob, so it may be gone.
            OfBlob::Missing if sha256.is_none() => {}
            OfBlob::Missing => drop(done.missing.insert(key.clone())),
        }
        handled += 1;
        progress(Progress::Blobs(handled, done.blobs));
    }
    Ok(())
}

/// The result for one blob.
enum OfBlob {
    Kept,
    Copied { bytes: u64, is_damaged: bool },
    Missing,
}

async fn one_blob(
    wanted: &BackupRequest<'_>,
    shelf: Shelf<'_>,
    there: &BTreeSet<BlobKey>,
    (key, sha256): (&BlobKey, Option<&str>),
    room: &Semaphore,
) -> Result<OfBlob, Error> {
    let in_backup = kept(key)?;
    if there.contains(&in_backup) {
        let is_good = match sha256 {
            Some(sha256) if wanted.verify => {
                store::hash_blob(shelf.ctx, &in_backup).await?.as_deref() == Some(sha256)
            }
            _ => true,
        };
        if is_good {
            return Ok(OfBlob::Kept);
        }
    }
    let found = store::get_blob_in(wanted.moment.ctx, key, room, BLOB_BYTES_AT_ONCE).await?;
    let Some((bytes, _in_memory)) = found else { return Ok(OfBlob::Missing) };
    let is_damaged = sha256.is_some_and(|sha256| sha256 != store::sha256_hex(&bytes));
    let length = bytes.len() as u64;
    store::put_blob(shelf.ctx, &in_backup, bytes).await?;
    Ok(OfBlob::Copied { bytes: length, is_damaged })
}

/// Deletes the items of replaced backups, and those of backups that were interrupted more than [`RUNS_FOR`] ago.
/// `there` has the keys from before this backup began, so that files of a backup that began later stay.
async fn tidy(shelf: &Context, there: &BTreeSet<BlobKey>) -> Result<(), Error> {
    let mut young = HashSet::new();
    for run in there {
        let Some(id) = run.as_str().strip_prefix("runs/") else { continue };
        let Some(bytes) = store::get_blob(shelf, run, 0).await? else { continue };
        let begun = serde_json::from_slice::<Run>(&bytes).map_or(Timestamp(0), |run| run.begun);
        if shelf.now().since(begun) < RUNS_FOR {
            young.insert(id);
        } else {
            store::delete_blob(shelf, run).await?;
        }
    }
    for part in there {
        let Some((id, _)) = part.as_str().strip_prefix("items/").and_then(|rest| rest.split_once('/')) else {
            continue;
        };
        if !young.contains(id) {
            store::delete_blob(shelf, part).await?;
        }
    }
    Ok(())
}
