//! Copies everything in a store into another one.
//!
//! A copy consists of passes. Each one corrects in the target what differs from the source. The copy is finished when
//! a pass that compares everything, blobs by their bytes, finds nothing to correct. So an interrupted copy continues
//! with the next pass, and changes of the source during the copy are noticed. Items keep their revisions, which
//! identify their content. Data keys, and the seed of the key that signs update tokens, are unwrapped with the keys
//! of the source and wrapped with those of the target.
//!
//! Until the copy is finished, the target has a mark, and every program that opens a store calls
//! [`refuse_unfinished`] first. Each write has the condition that the mark is still the one of this attempt. So a
//! process that was taken for dead writes nothing after another attempt has continued the copy, or a server has
//! started.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures::{StreamExt, TryStreamExt, stream};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use super::health;
use crate::context::Context;
use crate::layout::{
    Record, SignInKey, Signer, UnfinishedCopy, VerifyingKeyRecord, WrappedDataKey, check, delete,
    describes_the_store, named_blobs, put,
};
use crate::ports::{
    BlobKey, DataKey, Expect, Inventory, Item, ItemKey, KeyContext, Revision, Wrap, WrappedKey, Write,
    WriteAction,
};
use crate::services::error::MaintenanceError;
use crate::services::identity::sealing;
use crate::services::keys::data_keys;
use crate::services::{Error, store, updates};

/// Writes of one commit, in addition to the check of the mark. Every store takes this many.
const WRITES_MAX: usize = 99;
const WRITES_BYTES_MAX: usize = 3_000_000;

/// Blobs that are copied or compared at the same time. A store syncs the waiting ones together.
pub(super) const BLOBS_AT_ONCE: usize = 64;

/// Bytes of blobs in memory at the same time. Each blob is in memory as a whole; a longer one takes all of this.
pub(super) const BLOB_BYTES_AT_ONCE: u32 = 128 << 20;

/// Passes that compare everything, before the copy of a source that keeps changing is given up.
const PASSES_MAX: usize = 5;

/// The store to copy from.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The store.
    pub ctx: &'a Context,
    /// Lists its items and blobs.
    pub inventory: &'a dyn Inventory,
    /// Whether servers may be using it.
    pub is_shared: bool,
}

/// The store to copy to.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// The store.
    pub ctx: &'a Context,
    /// Lists its items and blobs.
    pub inventory: &'a dyn Inventory,
    /// Wraps the keys that come from the source.
    pub wrap: &'a dyn Wrap,
}

/// The result of a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Copied {
    /// Whether it continued an earlier one.
    pub resumed: bool,
    /// Whether the copy is complete, and servers may use the target.
    pub finished: bool,
    /// The number of items in the source.
    pub items: u64,
    /// The items that this run wrote.
    pub items_written: u64,
    /// Wrapped keys among the items.
    pub keys: u64,
    /// The number of blobs that the items name.
    pub blobs: u64,
    /// The blobs that this run copied.
    pub blobs_copied: u64,
    /// The bytes of these blobs.
    pub bytes_copied: u64,
    /// Items that were deleted from the target because the source no longer has them: it changed after an earlier
    /// attempt. Blobs stay: no item names them, and a deletion of a blob has no condition that could stop a late one.
    pub removed: u64,
    /// Blobs that an item names and the source does not have.
    pub missing: BTreeSet<BlobKey>,
    /// Blobs whose hash differs from the one in their item. They are copied as they are.
    pub damaged: BTreeSet<BlobKey>,
    /// Items that cannot be decoded, or whose key cannot be unwrapped. They are copied as they are.
    pub unreadable: BTreeSet<ItemKey>,
}

impl Copied {
    /// Whether the source has no damage.
    pub fn is_whole(&self) -> bool {
        self.missing.is_empty() && self.damaged.is_empty() && self.unreadable.is_empty()
    }
}

/// The progress of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Items read so far.
    Items(u64),
    /// Blobs handled so far, and blobs in total.
    Blobs(u64, u64),
}

/// Refuses a store with an unfinished copy. Every program that opens a store calls it first. One read.
///
/// # Errors
/// [`MaintenanceError::CopyUnfinished`].
pub async fn refuse_unfinished(ctx: &Context) -> Result<(), Error> {
    match store::get(ctx, &UnfinishedCopy::key()).await? {
        None => Ok(()),
        Some(_) => Err(MaintenanceError::CopyUnfinished.into()),
    }
}

/// Copies everything to an empty store, or continues an unfinished copy of the same source. With `despite_damage`,
/// the copy is finished although the source is damaged; without, the target keeps its mark then.
///
/// Keeps an index of the target's items in memory, some 200 bytes for each.
///
/// # Errors
/// [`MaintenanceError`] for a target that stores anything else, and for a source with running updates or one that
/// keeps changing; those of the ports. Another run continues the copy.
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

/// Refuses a source that cannot be copied now. Call it before creating a place for the copy.
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

/// Marks the target for this attempt alone. Returns the mark, and whether an earlier attempt had marked it.
async fn begin(source: Source<'_>, target: Target<'_>) -> Result<(Revision, bool), Error> {
    let key = signer_of(source).await?;
    let ctx = target.ctx;
    let found = store::read(ctx, &UnfinishedCopy::key()).await?;
    // The keys of the source may have been rotated since the first attempt.
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

/// How thoroughly existing items and blobs of the target are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// A blob with the right key is taken as equal, because a put stores all of a blob or nothing.
    Names,
    /// Every blob is read and hashed, and every key is unwrapped.
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
    /// The revision of the mark of this attempt.
    mark: Revision,
    progress: &'a (dyn Fn(Progress) + Sync),
}

impl Copying<'_> {
    /// Corrects the differences; `true` if there were none.
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

    /// Copies the items. Returns the blobs that they name, with their hashes if known.
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

    /// Commits the writes in as few commits as possible. Each one has the condition that no later attempt has begun.
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

    /// Deletes the mark.
    async fn finish(&self) -> Result<bool, Error> {
        let mark = delete(UnfinishedCopy::key(), Expect::Revision(self.mark));
        match store::commit(self.target.ctx, vec![mark]).await? {
            Ok(()) => Ok(true),
            // The answer to the commit that deleted it may be lost. Or another copy of the same source deleted it,
            // after a complete comparison.
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
        let mut handled = 0;
        while let Some((key, sha256, (outcome, is_damaged))) = copies.try_next().await? {
            match outcome {
                Outcome::Same => {}
                Outcome::Copied(bytes) => {
                    done.blobs_copied += 1;
                    done.bytes_copied += bytes;
                }
                // Only an item about its deletion names this blob, so it may be gone.
                Outcome::Missing if sha256.is_none() => {}
                Outcome::Missing => drop(done.missing.insert(key.clone())),
            }
            if is_damaged {
                done.damaged.insert(key.clone());
            }
            handled += 1;
            (self.progress)(Progress::Blobs(handled, done.blobs));
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

/// The item to write to the target; `None` if the target has it.
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
            // It cannot be unwrapped here or there.
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

/// Whether the wrapped key in the target is this key.
async fn opens_to(ctx: &Context, key: &ItemKey, expected: &DataKey) -> Result<bool, Error> {
    let Some(item) = store::get(ctx, key).await? else { return Ok(false) };
    let Some(Ok(wrapped)) = Wrapped::of(&item) else { return Ok(false) };
    match wrapped.open(ctx).await {
        Ok(found) => Ok(found.0 == expected.0),
        Err(Error::Broken(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// An item that is a wrapped key.
pub(crate) struct Wrapped {
    record: WrappedRecord,
    key: WrappedKey,
    pub(crate) context: KeyContext,
}

enum WrappedRecord {
    DataKey(WrappedDataKey),
    Signer(Signer),
    SignIn(SignInKey),
}

impl Wrapped {
    /// `None` for any other item.
    pub(crate) fn of(item: &Item) -> Option<Result<Self, Error>> {
        if item.key == Signer::key() {
            let read = Signer::decode_with(&item.value).map_err(Error::from);
            return Some(read.map(|(record, wrapped)| Self {
                context: updates::tokens::context(&record.key),
                record: WrappedRecord::Signer(record),
                key: WrappedKey(wrapped.to_vec()),
            }));
        }
        if item.key == SignInKey::key() {
            let read = SignInKey::decode_with(&item.value).map_err(Error::from);
            return Some(read.map(|(record, wrapped)| Self {
                context: sealing::context(),
                record: WrappedRecord::SignIn(record),
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

    /// The same record with another wrapped key.
    pub(crate) fn under(&self, wrapped: &WrappedKey) -> bytes::Bytes {
        match &self.record {
            WrappedRecord::DataKey(record) => record.encode_with(&wrapped.0),
            WrappedRecord::Signer(record) => record.encode_with(&wrapped.0),
            WrappedRecord::SignIn(record) => record.encode_with(&wrapped.0),
        }
    }
}

/// The result for one blob.
enum Outcome {
    Same,
    Copied(u64),
    Missing,
}

/// Copies a blob unless the target has it. Also returns whether the source's bytes differ from the hash in the item.
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
