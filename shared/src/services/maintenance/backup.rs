//! A backup of a store as it was at one moment, among blobs: those of a bucket, or of a folder.
//!
//! | key | content |
//! | --- | --- |
//! | `backup.json` | says which parts are the last finished backup, and when that was; written last |
//! | `items/ID/NUMBER` | a part of the items: the gzip of a JSON object a line |
//! | `blobs/KEY` | a blob of the store, under its key there |
//! | `runs/ID` | a backup that was begun and is not finished |
//!
//! The items are those of a store that does not move: a table that was brought back as it was at the moment. Its blobs are
//! taken from the bucket that goes on being used, where they are for weeks after what named them, and never change. So the
//! next backup copies the blobs that are new. Until its `backup.json` is there the one before is good.

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

/// The format of `backup.json`. The one before is of backups of folders, which have the same name for it.
const FORMAT: u32 = 2;

/// A part of the items is put when it is as long as this, before it is compressed.
const PART_BYTES: usize = 8 << 20;

/// What is left of a backup that was begun longer ago than this, and is not finished, goes.
const RUNS_FOR: Duration = Duration::from_secs(7 * 24 * 3600);

/// What a backup that was made says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    format: u32,
    /// The moment, in RFC 3339.
    pub at: String,
    /// The master key that its data keys are under: what it was called when the backup was made.
    pub master_key: String,
    /// How many items there are.
    pub items: u64,
    /// The id of the key that signs the update tokens of the store, which tells stores apart.
    source: String,
    /// The parts, each with the hex SHA-256 of its bytes.
    parts: Vec<(String, String)>,
    /// The items about signing keys, which are looked up by their keys.
    signing_keys: Vec<Line>,
}

impl Made {
    /// The parts of the items, each with the hex SHA-256 of its bytes.
    pub fn parts(&self) -> Vec<(BlobKey, String)> {
        let parsed = |(key, sha256): &(String, String)| Some((BlobKey::parse(key)?, sha256.clone()));
        self.parts.iter().filter_map(parsed).collect()
    }

    /// The items that a copy looks up by their keys.
    ///
    /// # Errors
    /// [`Error::Broken`] for what is not an item.
    pub fn looked_up(&self) -> Result<Vec<Item>, Error> {
        self.signing_keys.iter().map(Line::item).collect()
    }
}

/// An item in a part.
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

/// The items of a part, from its bytes.
///
/// # Errors
/// For what is not a part.
pub fn items_of_part(part: &[u8]) -> Result<Vec<Item>, BoxError> {
    let text = gunzip(part)?;
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| Ok(serde_json::from_slice::<Line>(line)?.item()?)).collect()
}

/// Where a backup is kept.
#[derive(Clone, Copy)]
pub struct Shelf<'a> {
    /// Its blobs; nothing else of it is asked.
    pub ctx: &'a Context,
    /// The keys of these.
    pub inventory: &'a dyn Inventory,
}

/// What a backup is made of.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// The store as it was at the moment, which nothing changes.
    pub moment: Source<'a>,
    /// The store as it goes on.
    pub live: &'a Context,
    /// When the moment was.
    pub at: Timestamp,
    /// What the master key is called that the data keys are under in the backup.
    pub master_key: &'a str,
    /// That key, where it is not the store's own.
    pub wrap: Option<&'a dyn Wrap>,
    /// Whether to read what the backup has already, and compare it.
    pub verify: bool,
}

/// What a backup did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackedUp {
    /// Items.
    pub items: u64,
    /// Blobs that they name.
    pub blobs: u64,
    /// Those that were copied now.
    pub blobs_copied: u64,
    /// The bytes of these.
    pub bytes_copied: u64,
    /// Blobs that an item names and the store does not have.
    pub missing: BTreeSet<BlobKey>,
    /// Blobs whose bytes are not those that the item says. They are copied as they are.
    pub damaged: BTreeSet<BlobKey>,
    /// Items that do not read back, or whose key does not open. They are copied as they are.
    pub unreadable: BTreeSet<ItemKey>,
}

/// The last finished backup that is kept there, if there is one of this format.
///
/// # Errors
/// [`Error::Broken`] where it does not read back; those of the ports.
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

/// What does not fit together in the store of the moment, and does in the one that goes on: DynamoDB brings each item back
/// as it was within a second of the moment, and not all of them as of the same instant. Empty for a moment that is good.
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

/// Makes a backup. One that was broken off leaves the last finished one as it was.
///
/// # Errors
/// [`MaintenanceError`] for a place that holds something else, or a store that nothing has used; those of the ports.
pub async fn back_up(
    wanted: Wanted<'_>,
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

/// Refuses what a backup would refuse: what is asked before the work that comes first.
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

/// A backup that is being made.
#[derive(Serialize, Deserialize)]
struct Run {
    begun: Timestamp,
}

fn key(text: &str) -> Result<BlobKey, Error> {
    BlobKey::parse(text).ok_or_else(|| Error::Broken(format!("{text:?} is not a key")))
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::Broken(format!("what a backup says of itself: {error}"))
}

/// The key that a blob of the store has in a backup.
fn kept(blob: &BlobKey) -> Result<BlobKey, Error> {
    key(&format!("{KEPT}{blob}"))
}

/// What stands before the keys of the store's blobs.
pub const KEPT: &str = "blobs/";

/// Refuses a place that holds anything but backups of this store; gives the keys of all that is there.
async fn refuse_other(ctx: &Context, source: &str, shelf: Shelf<'_>) -> Result<BTreeSet<BlobKey>, Error> {
    let there = store::inventory_blobs(shelf.ctx, shelf.inventory).await?;
    match last(shelf.ctx).await? {
        Some(last) if last.source == source => return Ok(there),
        Some(last) => {
            // The signing key may have been rotated since.
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

/// What the items told.
struct Found {
    named: BTreeMap<BlobKey, Option<String>>,
    signing_keys: Vec<Line>,
}

async fn items(
    wanted: &Wanted<'_>,
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
    // A key is made before anything is sealed under it, and is good without that: so it may be younger than the moment.
    for owner in owners.without_keys() {
        for item in store::query_all(wanted.live, WrappedDataKey::of_owner(owner), usize::MAX).await? {
            add(wanted, writing, item, &mut found, done).await?;
        }
    }
    writing.put().await?;
    Ok(found)
}

async fn add(
    wanted: &Wanted<'_>,
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

/// The item's value with its key under another master key.
async fn wrapped_by(ctx: &Context, wrap: &dyn Wrap, wrapped: Result<Wrapped, Error>) -> Result<Bytes, Error> {
    let wrapped = wrapped?;
    let key = wrapped.open(ctx).await?;
    Ok(wrapped.under(&store::wrap_key(ctx, wrap, &key, &wrapped.context).await?))
}

/// Who may have data keys, and who has.
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
    wanted: &Wanted<'_>,
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
    let mut looked_at = 0;
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
            // Of one that is only to go nobody says that it is there.
            OfBlob::Missing if sha256.is_none() => {}
            OfBlob::Missing => drop(done.missing.insert(key.clone())),
        }
        looked_at += 1;
        progress(Progress::Blobs(looked_at, done.blobs));
    }
    Ok(())
}

/// What became of one blob.
enum OfBlob {
    Kept,
    Copied { bytes: u64, is_damaged: bool },
    Missing,
}

async fn one_blob(
    wanted: &Wanted<'_>,
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

/// Removes the items of backups that were replaced, and those of backups that were broken off long ago. `there` is what was
/// there when this backup began: what another one has brought since is not looked at.
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
