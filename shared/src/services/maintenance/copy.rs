//! Moving everything that a store holds into another one.
//!
//! A copy is a number of passes, each of which puts right in the target what differs from the source; it is finished when
//! a pass that compares everything, blobs by their bytes, finds nothing to put right. So one that was broken off goes on
//! with the next pass, and a source that moves meanwhile is noticed. Items keep their revisions, by which they are told
//! apart; data keys, and the seed of the key that signs update tokens, are opened with the keys of the one store and
//! wrapped with those of the other.
//!
//! Until then the target is marked, and whoever opens it asks [`refuse_unfinished`] first. Every write is on the condition that
//! the mark is still the one of this attempt: a process that was taken for dead writes nothing once another one has gone on, or a
//! server has begun.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures::{StreamExt, TryStreamExt, stream};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use super::health;
use crate::context::Context;
use crate::layout::{
    Record, Signer, UnfinishedCopy, VerifyingKeyRecord, WrappedDataKey, check, delete, describes_the_store,
    named_blobs, put,
};
use crate::ports::{
    BlobKey, DataKey, Expect, Inventory, Item, ItemKey, KeyContext, Revision, Wrap, WrappedKey, Write,
    WriteAction,
};
use crate::services::error::MaintenanceError;
use crate::services::keys::data_keys;
use crate::services::{Error, store, updates};

/// Writes of one commit, beside the check of the mark, and their bytes: what every store takes.
const WRITES_MAX: usize = 99;
const WRITES_BYTES_MAX: usize = 3_000_000;

/// Blobs that are copied or compared at once: a store syncs those together that wait for it.
pub(super) const BLOBS_AT_ONCE: usize = 64;

/// Bytes of blobs that are in memory at once, each as a whole. One that is longer has all of this for itself.
pub(super) const BLOB_BYTES_AT_ONCE: u32 = 128 << 20;

/// Passes that compare everything, before a source that always moves is given up on.
const PASSES_MAX: usize = 5;

/// Where everything is.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The store.
    pub ctx: &'a Context,
    /// All of it.
    pub inventory: &'a dyn Inventory,
    /// Whether servers may be using it.
    pub is_shared: bool,
}

/// Where everything is to be.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// The store.
    pub ctx: &'a Context,
    /// All of it.
    pub inventory: &'a dyn Inventory,
    /// Its keys, for those that come from elsewhere.
    pub wrap: &'a dyn Wrap,
}

/// What a copy did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Copied {
    /// Whether an earlier one was gone on with.
    pub resumed: bool,
    /// Whether all is there, and the target may be served.
    pub finished: bool,
    /// Items that the source has.
    pub items: u64,
    /// Those that were written now.
    pub items_written: u64,
    /// Wrapped keys among the items.
    pub keys: u64,
    /// Blobs that the items name.
    pub blobs: u64,
    /// Those that were copied now.
    pub blobs_copied: u64,
    /// The bytes of these.
    pub bytes_copied: u64,
    /// Items that the target had and the source does not, and that were removed: the source has changed since an earlier
    /// attempt. Blobs stay: nothing names them, and deleting has no condition that would keep it from being late.
    pub removed: u64,
    /// Blobs that an item names and the source does not have.
    pub missing: BTreeSet<BlobKey>,
    /// Blobs whose bytes are not those that the item says. They are copied as they are.
    pub damaged: BTreeSet<BlobKey>,
    /// Items that do not read back, or whose key does not open. They are copied as they are.
    pub unreadable: BTreeSet<ItemKey>,
}

impl Copied {
    /// Whether the source itself is whole.
    pub fn is_whole(&self) -> bool {
        self.missing.is_empty() && self.damaged.is_empty() && self.unreadable.is_empty()
    }
}

/// How far a copy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// So many items were looked at.
    Items(u64),
    /// So many blobs of so many.
    Blobs(u64, u64),
}

/// Refuses a store into which a copy was begun and not finished: what everybody asks who opens one. A read.
///
/// # Errors
/// [`MaintenanceError::CopyUnfinished`].
pub async fn refuse_unfinished(ctx: &Context) -> Result<(), Error> {
    match store::get(ctx, &UnfinishedCopy::key()).await? {
        None => Ok(()),
        Some(_) => Err(MaintenanceError::CopyUnfinished.into()),
    }
}

/// Copies everything: to an empty store, or to one into which a copy of the same source was begun. With `despite_damage`
/// it is finished although the source lacks something; without, the target stays marked then.
///
/// What the target remembers of items that are there takes some 200 bytes of memory for each.
///
/// # Errors
/// [`MaintenanceError`] for a target that holds something else, for a source on which updates run, or that changes all the
/// time; those of the ports. Running it again goes on.
pub async fn copy(
    source: Source<'_>,
    target: Target<'_>,
    despite_damage: bool,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Copied, Error> {
    ready(source).await?;
    let (mark, resumed) = begin(source, target).await?;
    let copying = Copying { source, target, mark, progress };
    let mut done = Copied { resumed, ..Copied::default() };
    copying.pass(Depth::Names, &mut done).await?;
    for _ in 0..PASSES_MAX {
        if copying.pass(Depth::Bytes, &mut done).await? {
            refuse_running(source).await?;
            if done.is_whole() || despite_damage {
                done.finished = copying.finish().await?;
            }
            return Ok(done);
        }
    }
    Err(MaintenanceError::SourceChanges.into())
}

/// Refuses a source that cannot be copied now. Ask it before a place for the copy is made.
///
/// # Errors
/// [`MaintenanceError::UpdatesRunning`], [`MaintenanceError::NothingToCopy`]; those of the ports.
pub async fn ready(source: Source<'_>) -> Result<(), Error> {
    signer_of(source).await?;
    refuse_running(source).await
}

/// The id of the key that signs the update tokens of the source.
async fn signer_of(source: Source<'_>) -> Result<String, Error> {
    match store::read(source.ctx, &Signer::key()).await? {
        Some(signer) => Ok(signer.value.key),
        None => Err(MaintenanceError::NothingToCopy.into()),
    }
}

async fn refuse_running(source: Source<'_>) -> Result<(), Error> {
    let running = if source.is_shared { health::updates_running(source.ctx).await? } else { 0 };
    match running {
        0 => Ok(()),
        count => Err(MaintenanceError::UpdatesRunning(count).into()),
    }
}

/// Marks the target for this attempt alone, and tells whether an earlier one had marked it.
async fn begin(source: Source<'_>, target: Target<'_>) -> Result<(Revision, bool), Error> {
    let key = signer_of(source).await?;
    let ctx = target.ctx;
    let found = store::read(ctx, &UnfinishedCopy::key()).await?;
    // Its keys may have been rotated since the first attempt.
    let is_source = match &found {
        Some(mark) if mark.value.source == key => true,
        Some(mark) => store::get(source.ctx, &VerifyingKeyRecord::key(&mark.value.source)).await?.is_some(),
        None => false,
    };
    let expect = match &found {
        Some(mark) if is_source => mark.unchanged(),
        Some(_) => {
            return Err(MaintenanceError::TargetOfOtherCopy.into());
        }
        None if is_empty(target).await? => Expect::Absent,
        None => {
            return Err(MaintenanceError::TargetNotEmpty.into());
        }
    };
    let begun = found.as_ref().map_or_else(|| ctx.now(), |mark| mark.value.begun);
    let (revision, mark) = (ctx.ids.revision(), UnfinishedCopy { source: key, begun });
    match store::commit(ctx, vec![put(UnfinishedCopy::key(), expect, revision, &mark)]).await? {
        Ok(()) => Ok((revision, found.is_some())),
        Err(_) => Err(taken()),
    }
}

fn taken() -> Error {
    Error::Maintenance(MaintenanceError::OtherCopyBegan)
}

async fn is_empty(target: Target<'_>) -> Result<bool, Error> {
    let mut from = None;
    loop {
        let part = store::inventory_items(target.ctx, target.inventory, "", from.as_ref()).await?;
        if part.found.iter().any(|item| !describes_the_store(&item.key)) {
            return Ok(false);
        }
        from = part.next;
        if from.is_none() {
            break;
        }
    }
    Ok(store::inventory_blobs(target.ctx, target.inventory).await?.is_empty())
}

/// How closely what is there already is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// A blob of the right name is taken for the right one: a put stores all of it or nothing.
    Names,
    /// Every blob is read and hashed, every key opened.
    Bytes,
}

/// What the target has under a key.
struct There {
    revision: Revision,
    digest: [u8; 32],
}

fn digest(item: &Item) -> [u8; 32] {
    let mut hash = Sha256::new_with_prefix(&item.value);
    hash.update(item.expires.map_or(i64::MIN, |expires| expires.0).to_be_bytes());
    hash.update([u8::from(item.expires.is_some())]);
    hash.finalize().into()
}

/// One attempt.
struct Copying<'a> {
    source: Source<'a>,
    target: Target<'a>,
    /// The mark of this attempt.
    mark: Revision,
    progress: &'a (dyn Fn(Progress) + Sync),
}

impl Copying<'_> {
    /// Puts right what differs; `true` where nothing did.
    async fn pass(&self, depth: Depth, done: &mut Copied) -> Result<bool, Error> {
        (done.items, done.keys) = (0, 0);
        done.missing.clear();
        done.damaged.clear();
        done.unreadable.clear();
        let before = (done.items_written, done.blobs_copied, done.removed);
        let named = self.items(depth, done).await?;
        self.blobs(depth, &named, done).await?;
        Ok(before == (done.items_written, done.blobs_copied, done.removed))
    }

    /// The items; gives the blobs that they name, with their hashes where these are known.
    async fn items(
        &self,
        depth: Depth,
        done: &mut Copied,
    ) -> Result<BTreeMap<BlobKey, Option<String>>, Error> {
        let Source { ctx, inventory, .. } = self.source;
        let mut there = index(self.target).await?;
        let mut named: BTreeMap<BlobKey, Option<String>> = BTreeMap::new();
        let mut from = None;
        loop {
            let part = store::inventory_items(ctx, inventory, "", from.as_ref()).await?;
            let mut puts = Vec::new();
            for item in part.found.into_iter().filter(|item| !describes_the_store(&item.key)) {
                done.items += 1;
                match named_blobs(&item) {
                    Ok(blobs) => {
                        for blob in blobs {
                            let known = named.entry(blob.key).or_default();
                            *known = known.take().or(blob.sha256);
                        }
                    }
                    Err(_) => drop(done.unreadable.insert(item.key.clone())),
                }
                let found = there.remove(&item.key);
                let expect = found.as_ref().map_or(Expect::Absent, |found| Expect::Revision(found.revision));
                let differing = differing(self.source, self.target, depth, item, found, done).await?;
                if let Some(Item { key, revision, value, expires }) = differing {
                    let action = WriteAction::Put { revision, value, expires };
                    puts.push(Write { key, expect, action });
                }
            }
            done.items_written += puts.len() as u64;
            self.write(puts).await?;
            (self.progress)(Progress::Items(done.items));
            from = part.next;
            if from.is_none() {
                break;
            }
        }
        done.removed += there.len() as u64;
        let gone = there.into_iter().map(|(key, found)| delete(key, Expect::Revision(found.revision)));
        self.write(gone.collect()).await?;
        Ok(named)
    }

    /// Commits the writes, as many at once as may be, each time on the condition that this attempt is the last.
    async fn write(&self, writes: Vec<Write>) -> Result<(), Error> {
        let mut writes = writes.into_iter().peekable();
        while writes.peek().is_some() {
            let mut commit = vec![check(UnfinishedCopy::key(), Expect::Revision(self.mark))];
            let mut bytes = 0;
            while let Some(write) = writes.next_if(|write| {
                bytes += bytes_of(write);
                commit.len() <= WRITES_MAX && (commit.len() == 1 || bytes <= WRITES_BYTES_MAX)
            }) {
                commit.push(write);
            }
            let keys: Vec<ItemKey> = commit.iter().map(|write| write.key.clone()).collect();
            if let Err(refusal) = store::commit(self.target.ctx, commit).await? {
                return Err(match keys.get(refusal.index) {
                    Some(key) if refusal.index > 0 => Error::Maintenance(MaintenanceError::TargetChanged {
                        partition: key.partition.clone(),
                        sort: key.sort.clone(),
                    }),
                    _ => taken(),
                });
            }
        }
        Ok(())
    }

    /// Removes the mark.
    async fn finish(&self) -> Result<bool, Error> {
        let mark = delete(UnfinishedCopy::key(), Expect::Revision(self.mark));
        match store::commit(self.target.ctx, vec![mark]).await? {
            Ok(()) => Ok(true),
            // The answer to an attempt that did it may be lost; or another copy of the same did it, since all was compared.
            Err(refusal) if refusal.current.is_none() => Ok(true),
            Err(_) => Err(taken()),
        }
    }

    async fn blobs(
        &self,
        depth: Depth,
        named: &BTreeMap<BlobKey, Option<String>>,
        done: &mut Copied,
    ) -> Result<(), Error> {
        let there = store::inventory_blobs(self.target.ctx, self.target.inventory).await?;
        let room = &Semaphore::new(BLOB_BYTES_AT_ONCE as usize);
        done.blobs = named.len() as u64;
        let copies = named.iter().map(|(key, sha256)| {
            let is_there = there.contains(key);
            async move {
                let sha = sha256.as_deref();
                let copied = one_blob(self.source, self.target, depth, (key, sha), is_there, room).await?;
                Ok::<_, Error>((key, sha256, copied))
            }
        });
        let mut copies = stream::iter(copies).buffer_unordered(BLOBS_AT_ONCE);
        let mut looked_at = 0;
        while let Some((key, sha256, (outcome, is_damaged))) = copies.try_next().await? {
            match outcome {
                Outcome::Same => {}
                Outcome::Copied(bytes) => {
                    done.blobs_copied += 1;
                    done.bytes_copied += bytes;
                }
                // Of one that is only to go nobody says that it is there.
                Outcome::Missing if sha256.is_none() => {}
                Outcome::Missing => drop(done.missing.insert(key.clone())),
            }
            if is_damaged {
                done.damaged.insert(key.clone());
            }
            looked_at += 1;
            (self.progress)(Progress::Blobs(looked_at, done.blobs));
        }
        Ok(())
    }
}

fn bytes_of(write: &Write) -> usize {
    let value = match &write.action {
        WriteAction::Put { value, .. } => value.len(),
        WriteAction::Delete | WriteAction::Check => 0,
    };
    write.key.partition.len() + write.key.sort.len() + value
}

async fn index(target: Target<'_>) -> Result<HashMap<ItemKey, There>, Error> {
    let (mut there, mut from) = (HashMap::new(), None);
    loop {
        let part = store::inventory_items(target.ctx, target.inventory, "", from.as_ref()).await?;
        let found = part.found.into_iter().filter(|item| !describes_the_store(&item.key));
        there.extend(found.map(|item| {
            let found = There { revision: item.revision, digest: digest(&item) };
            (item.key, found)
        }));
        from = part.next;
        if from.is_none() {
            return Ok(there);
        }
    }
}

/// The item as it has to be in the target, unless it is so.
async fn differing(
    source: Source<'_>,
    target: Target<'_>,
    depth: Depth,
    item: Item,
    found: Option<There>,
    done: &mut Copied,
) -> Result<Option<Item>, Error> {
    let is_there = found.as_ref().is_some_and(|found| found.revision == item.revision);
    let Some(wrapped) = Wrapped::of(&item) else {
        let is_same = is_there && found.is_some_and(|found| found.digest == digest(&item));
        return Ok((!is_same).then_some(item));
    };
    done.keys += 1;
    let opened = match wrapped {
        Ok(wrapped) => {
            if is_there && depth == Depth::Names {
                return Ok(None);
            }
            wrapped.open(source.ctx).await.map(|key| (wrapped, key))
        }
        Err(error) => Err(error),
    };
    let (wrapped, key) = match opened {
        Ok(opened) => opened,
        Err(Error::Broken(_)) => {
            // Nobody can open it here or there.
            done.unreadable.insert(item.key.clone());
            let is_same = is_there && found.is_some_and(|found| found.digest == digest(&item));
            return Ok((!is_same).then_some(item));
        }
        Err(error) => return Err(error),
    };
    if is_there && opens_to(target.ctx, &item.key, &key).await? {
        return Ok(None);
    }
    let again = store::wrap_key(target.ctx, target.wrap, &key, &wrapped.context).await?;
    Ok(Some(Item { value: wrapped.under(&again), ..item }))
}

/// Whether the target's own wrapped key is this one.
async fn opens_to(ctx: &Context, key: &ItemKey, expected: &DataKey) -> Result<bool, Error> {
    let Some(item) = store::get(ctx, key).await? else { return Ok(false) };
    let Some(Ok(wrapped)) = Wrapped::of(&item) else { return Ok(false) };
    match wrapped.open(ctx).await {
        Ok(found) => Ok(found.0 == expected.0),
        Err(Error::Broken(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// An item that is a key, wrapped.
pub(crate) struct Wrapped {
    record: WrappedRecord,
    key: WrappedKey,
    pub(crate) context: KeyContext,
}

enum WrappedRecord {
    DataKey(WrappedDataKey),
    Signer(Signer),
}

impl Wrapped {
    /// `None` for an item that is something else.
    pub(crate) fn of(item: &Item) -> Option<Result<Self, Error>> {
        if item.key == Signer::key() {
            let read = Signer::decode_with(&item.value).map_err(Error::from);
            return Some(read.map(|(record, wrapped)| Self {
                context: updates::tokens::context(&record.key),
                record: WrappedRecord::Signer(record),
                key: WrappedKey(wrapped.to_vec()),
            }));
        }
        let owner = WrappedDataKey::owner_in(&item.key).ok()?;
        let read = WrappedDataKey::decode_with(&item.value).map_err(Error::from);
        Some(read.map(|(record, wrapped)| Self {
            context: data_keys::context(owner),
            record: WrappedRecord::DataKey(record),
            key: WrappedKey(wrapped.to_vec()),
        }))
    }

    pub(crate) async fn open(&self, ctx: &Context) -> Result<DataKey, Error> {
        store::unwrap_key(ctx, &self.key, &self.context).await
    }

    /// The same record around another wrapped key.
    pub(crate) fn under(&self, wrapped: &WrappedKey) -> bytes::Bytes {
        match &self.record {
            WrappedRecord::DataKey(record) => record.encode_with(&wrapped.0),
            WrappedRecord::Signer(record) => record.encode_with(&wrapped.0),
        }
    }
}

/// What became of one blob.
enum Outcome {
    Same,
    Copied(u64),
    Missing,
}

/// Copies a blob unless the right one is there; and tells whether the source's is not what its item says.
async fn one_blob(
    source: Source<'_>,
    target: Target<'_>,
    depth: Depth,
    (key, sha256): (&BlobKey, Option<&str>),
    is_there: bool,
    room: &Semaphore,
) -> Result<(Outcome, bool), Error> {
    if is_there && depth == Depth::Names {
        return Ok((Outcome::Same, false));
    }
    let found = if is_there { store::hash_blob(target.ctx, key).await? } else { None };
    if found.is_some() && found.as_deref() == sha256 {
        return Ok((Outcome::Same, false));
    }
    let Some((bytes, _in_memory)) = store::get_blob_in(source.ctx, key, room, BLOB_BYTES_AT_ONCE).await?
    else {
        return Ok((Outcome::Missing, false));
    };
    let hash = store::sha256_hex(&bytes);
    let is_damaged = sha256.is_some_and(|sha256| sha256 != hash);
    if found.as_ref() == Some(&hash) {
        return Ok((Outcome::Same, is_damaged));
    }
    let length = bytes.len() as u64;
    store::put_blob(target.ctx, key, bytes).await?;
    Ok((Outcome::Copied(length), is_damaged))
}
