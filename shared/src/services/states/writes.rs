//! Writing Terraform states. Every accepted write becomes a version. A refused write is stored too: when a client
//! sends a state, the infrastructure has already changed, and the write may be the only record of how.

use bytes::Bytes;

use super::blobs;
use super::blobs::{SealedText, SentText};
use super::schemas::Origin;
use super::{StateRef, WithLock};
use super::{index, locks, rows, schemas, versions};
use crate::account;
use crate::context::Context;
use crate::domain::ids::StateId;
use crate::domain::names::StateAddress;
use crate::domain::tfstate::{
    Current, Holder, Index, Output, Refused, Sent, Taken, Verdict, judge, with_serial,
};
use crate::domain::update::Requester;
use crate::layout::{
    Due, KeptState, LockOf, Payload, RejectedState, StateHead, StateHolder, StateLock, StateSchemas,
    StateSource, StateVersion, Stored, WrittenUnder, check,
};
use crate::ports::{Expect, Timestamp, Write};
use crate::services::audit::About;
use crate::services::caller::Caller;
use crate::services::error::{AccessError, InvalidInput, Protected, ReservedName, StateError};
use crate::services::states;
use crate::services::store::due::due_write;
use crate::services::store::retry::Attempts;
use crate::services::{Error, audit, store};

/// Memory for a restore in addition to the fetched text, as a multiple of it.
const RESTORE_FACTOR: usize = 2;

/// Texts of one run whose hashes are kept. A run saves at most one every 20 seconds.
const TEXTS_REMEMBERED_MAX: usize = 180;

/// The operations, as clients call them, that change a state alone. They do not read what the state depends on, so a
/// version that one of them writes keeps the start time of the run before it.
///
/// Source: opentofu v1.12.6 and terraform v1.5.7, the calls of `clistate.NewLocker` in `internal/command`.
const EDITS: [&str; 6] = ["taint", "untaint", "state-mv", "state-rm", "state-push", "state-replace-provider"];

/// The result of an accepted write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The state's address.
    pub address: StateAddress,
    /// Its current version.
    pub version: u64,
    /// Whether the client sent this write again and it was already stored.
    pub replayed: bool,
}

/// Stores a state that a client wrote as the next version. `lock_id` is the lock that the client claims to hold.
/// `verify` checks that the text is what the client sent, while the text is hashed. Two reads at the same time, one
/// more for the version before, one blob, and one commit. If the text is long, one blob more, and one read of that of the
/// version before.
///
/// # Errors
/// Those of `verify`; [`StateError::Locked`], [`StateError::WriteRefused`], [`StateError::WriteOfProtected`] and
/// [`StateError::WriteOfDeleted`] for a write that is stored, but not as a version; [`Error::Invalid`] for a text that is
/// not a state; [`Error::TooLarge`].
pub async fn write(
    ctx: &Context,
    caller: &Caller,
    state: &StateRef,
    lock_id: Option<&str>,
    text: Bytes,
    verify: impl FnOnce() -> Result<(), Error> + Send + 'static,
) -> Result<Written, Error> {
    let bytes_max = ctx.settings.states.bytes_max;
    if text.len() > bytes_max {
        return Err(Error::TooLarge { what: "a state", bytes: text.len(), bytes_max });
    }
    let text = blobs::read(text, ctx.settings.states.rows_above, verify).await?;
    let sent = SentState { by: caller.requester(), text, source: StateSource::Written, began: None };
    // Stored once, even if several other writes are first.
    let mut stored = None;
    let mut attempts = Attempts::at("the state");
    loop {
        attempts.begin()?;
        let WithLock { id, head, lock } = match states::find_or_create(ctx, caller, state).await {
            Err(Error::State(StateError::Deleted(deleted))) => {
                return Err(sent.reject_deleted(ctx, deleted, lock_id, stored).await?);
            }
            found => found?,
        };
        let holder = lock.as_ref().and_then(|lock| lock.value.holder.as_ref());
        let standing = caller.on_state(ctx, &head.value.address, &head.value.labels).await?;
        let verdict = {
            let (current, sent) = (current_of(&head.value), sent.to_judge(lock_id));
            let held = holder.map(|holder| Holder {
                id: &holder.info.id,
                is_sender: standing.has_taken(&locks::taken(holder)),
            });
            judge(current, held, head.value.policy, sent)
        };
        let taken = match verdict {
            Verdict::Replayed => {
                if let Some(stored) = stored {
                    stored.discard(ctx).await;
                }
                return Ok(Written {
                    address: head.value.address,
                    version: head.value.version,
                    replayed: true,
                });
            }
            Verdict::Refused(why) => {
                let kept = sent.reject(ctx, id, head.value.version, lock_id, why, stored).await?;
                return Err(match (why, holder, &head.value.protection) {
                    (Refused::Locked, Some(holder), _) => {
                        Error::State(StateError::Locked(Box::new(holder.clone())))
                    }
                    (Refused::Protected, _, Some(protection)) => {
                        let protected = Protected::state(&head.value.address, protection);
                        Error::State(StateError::WriteOfProtected { protected, kept })
                    }
                    _ => Error::State(StateError::WriteRefused { why, kept }),
                });
            }
            Verdict::Taken(taken) => taken,
        };
        if let Some(version) = sent.commit_version(ctx, id, &head, lock.as_ref(), taken, &mut stored).await? {
            return Ok(Written { address: head.value.address, version, replayed: false });
        }
    }
}

/// How a caller with an expired token proves that they hold the lock. They also have to be the user who took it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof<'a> {
    /// The ID of the lock, if they sent one.
    Id(Option<&'a str>),
    /// No ID, because a read carries none, and a run reads once more before it writes a state for the first time. So
    /// it has to be the same token that took the lock.
    Token,
}

/// Whether a caller with an expired token may continue: they hold the lock, and took it before the token expired.
///
/// # Errors
/// [`AccessError::TokenExpiredWithoutLock`] if not.
pub async fn check_grace(
    ctx: &Context,
    caller: &Caller,
    state: &StateRef,
    proof: Proof<'_>,
    ended: Timestamp,
) -> Result<(), Error> {
    const OVER: Error = Error::Access(AccessError::TokenExpiredWithoutLock);
    let found = match states::find_with_lock(ctx, caller, state).await {
        Err(Error::State(StateError::NotFound(_))) => return Err(OVER),
        found => found?,
    };
    let WithLock { head, lock, .. } = found.ok_or(OVER)?;
    let holder = lock.and_then(|lock| lock.value.holder).ok_or(OVER)?;
    let is_meant = match proof {
        Proof::Id(id) => Some(holder.info.id.as_str()) == id,
        Proof::Token => holder.by == caller.requester(),
    };
    let standing = caller.on_state(ctx, &head.value.address, &head.value.labels).await?;
    let is_theirs = standing.has_taken(&locks::taken(&holder));
    if is_meant && is_theirs && holder.since <= ended { Ok(()) } else { Err(OVER) }
}

/// Makes an older version, or a refused write, the next version, with a serial above the newest, so that the next
/// apply continues from it. Only the serial changes. The text of a state that its client encrypted stays as it is,
/// since the server cannot change the serial inside; the new version is marked if its serial is not above the newest.
/// Restoring the current version changes nothing.
///
/// # Errors
/// [`StateError::NoVersion`]; [`StateError::Locked`] while the lock is held; [`StateError::Protected`] for a text without
/// resources.
pub async fn restore(
    ctx: &Context,
    caller: &Caller,
    state: &StateRef,
    which: &versions::StateVersionRef,
) -> Result<Written, Error> {
    let mut prepared: Option<(Option<u64>, SentState)> = None;
    let mut stored: Option<StoredState> = None;
    let mut attempts = Attempts::at("the state");
    loop {
        attempts.begin()?;
        let WithLock { id, head, lock } = states::locate_with_lock(ctx, caller, state).await?;
        if matches!(which, versions::StateVersionRef::Version(version) if *version == head.value.version) {
            return Ok(Written { address: head.value.address, version: head.value.version, replayed: true });
        }
        if let Some(holder) = lock.as_ref().and_then(|lock| lock.value.holder.clone()) {
            return Err(StateError::Locked(Box::new(holder)).into());
        }
        let newest = head.value.current.as_ref().and_then(|kept| kept.serial);
        // Prepared again if another write moved the state meanwhile.
        if prepared.as_ref().is_none_or(|(made_for, _)| *made_for != newest) {
            drop(prepared.take());
            if let Some(old) = stored.take() {
                old.discard(ctx).await;
            }
            prepared = Some((newest, prepare_restore(ctx, caller, id, newest, which).await?));
        }
        let Some((_, sent)) = &prepared else { continue };
        if sent.is_empty() && head.value.keeps_resources() {
            if let Some(stored) = stored.take() {
                stored.discard(ctx).await;
            }
            store::protection::check_state(&head.value)?;
        }
        let lineage = sent.text.document.lineage.as_deref();
        let changed = head.value.current.as_ref().is_some_and(|kept| kept.lineage.as_deref() != lineage);
        let serial = sent.text.document.serial;
        let serial_fell = newest.zip(serial).is_some_and(|(newest, serial)| serial <= newest);
        let taken = Taken { serial_fell, lineage_changed: changed };
        if let Some(version) = sent.commit_version(ctx, id, &head, lock.as_ref(), taken, &mut stored).await? {
            return Ok(Written { address: head.value.address, version, replayed: false });
        }
    }
}

async fn prepare_restore(
    ctx: &Context,
    caller: &Caller,
    id: StateId,
    newest: Option<u64>,
    which: &versions::StateVersionRef,
) -> Result<SentState, Error> {
    let (kept, began) = versions::found(ctx, id, which).await?;
    // Memory for the text with another serial, and for reading that as a new text.
    let made = usize::try_from(kept.bytes).unwrap_or(usize::MAX).saturating_mul(RESTORE_FACTOR);
    account::take_ahead(blobs::weight(&kept).saturating_add(made)).await?;
    account::take(made).await?;
    let text = blobs::fetch(ctx, id, &kept).await?;
    let text = if kept.is_encrypted {
        text
    } else {
        let serial = newest.max(kept.serial).unwrap_or(0).checked_add(1).ok_or(StateError::SerialAtEnd)?;
        with_serial(&text, serial).map_err(InvalidInput::from)?.into()
    };
    let source = match which {
        versions::StateVersionRef::Version(version) => StateSource::Restored(*version),
        versions::StateVersionRef::Rejected(id) => StateSource::Promoted(id.clone()),
    };
    let text = blobs::read(text, ctx.settings.states.rows_above, || Ok(())).await?;
    Ok(SentState { by: caller.requester(), text, source, began: Some(began) })
}

fn current_of(head: &StateHead) -> Option<Current<'_>> {
    let kept = head.current.as_ref()?;
    let under = head.under.as_ref().map(|under| (under.lock.as_str(), under.texts.as_slice()));
    Some(Current {
        sha256: &kept.sha256,
        serial: kept.serial,
        lineage: kept.lineage.as_deref(),
        under,
        is_protected: head.keeps_resources(),
    })
}

/// A text to store as a version.
struct SentState {
    by: Requester,
    text: SentText,
    source: StateSource,
    /// When the run that made the text began, if that was before the text was sent.
    began: Option<Timestamp>,
}

/// A text whose blobs are stored. No version names them yet.
#[derive(Clone)]
struct StoredState {
    kept: KeptState,
    /// `None` if the text has rows, and for a refused write.
    index: Option<SealedIndex>,
}

/// The sealed index of instances, with its bytes if it is stored inline.
type SealedIndex = (Payload, Bytes);

impl StoredState {
    /// Deletes the blobs, which no item names.
    async fn discard(self, ctx: &Context) {
        let mut keys: Vec<String> = self.kept.blobs().map(|(key, _)| key).collect();
        if let Some((Payload::Blob { key, .. }, _)) = self.index {
            keys.push(key);
        }
        blobs::discard(ctx, keys.iter().map(String::as_str)).await;
    }
}

impl SentState {
    fn to_judge<'a>(&'a self, lock_id: Option<&'a str>) -> Sent<'a> {
        let document = &self.text.document;
        Sent {
            sha256: &self.text.sha256,
            serial: document.serial,
            lineage: document.lineage.as_deref(),
            lock_id,
            is_empty: self.is_empty(),
        }
    }

    /// Whether it has no resources, as far as the server can read it.
    fn is_empty(&self) -> bool {
        self.text.document.index.as_ref().is_some_and(Index::is_empty)
    }

    /// Stores the text and what tells its instances: the rows of a long text, or an index. A refused write needs no
    /// index, since no version is compared with it.
    async fn store(
        &self,
        ctx: &Context,
        id: StateId,
        sealed: SealedText,
        is_refused: bool,
    ) -> Result<StoredState, Error> {
        let blob = KeptState::new_blob(id, ctx.ids.uuid());
        let instances = async {
            let rows = Box::pin(rows::keep(ctx, id, &blob, &self.text)).await;
            let index = match is_refused || rows.is_some() {
                true => None,
                false => index::keep(ctx, id, &self.text.document).await?,
            };
            Ok::<_, Error>((rows, index))
        };
        let (kept, (rows, index)) =
            futures::try_join!(blobs::keep(ctx, &blob, &self.text, sealed), instances)?;
        Ok(StoredState { kept: KeptState { rows, ..kept }, index })
    }

    /// Commits the text as the next version; `None` if another write was first. Stores its blobs at the first
    /// attempt.
    async fn commit_version(
        &self,
        ctx: &Context,
        id: StateId,
        head: &Stored<StateHead>,
        lock: Option<&Stored<StateLock>>,
        taken: Taken,
        stored: &mut Option<StoredState>,
    ) -> Result<Option<u64>, Error> {
        let before = versions::before(ctx, id, head.value.version);
        let schemas = async { if head.value.has_schemas { schemas::read(ctx, id).await } else { Ok(None) } };
        let (StoredState { kept, index }, before, schemas) = match stored {
            Some(stored) => {
                let (before, schemas) = futures::try_join!(before, schemas)?;
                (stored.clone(), before, schemas)
            }
            None => {
                // Sealed first, so that all later waits are at the same time.
                let sealed = blobs::seal(ctx, id, &self.text).await?;
                let (new, before, schemas) =
                    futures::try_join!(self.store(ctx, id, sealed, false), before, schemas)?;
                (stored.insert(new).clone(), before, schemas)
            }
        };
        let at = ctx.now();
        let holder = lock.and_then(|lock| lock.value.holder.as_ref());
        let document = &self.text.document;
        let changes =
            document.index.as_ref().zip(before.index.as_ref()).map(|(now, before)| now.changes_since(before));
        let version = head.value.version + 1;
        let (outputs, inferred) = self.judge_outputs(ctx, id, schemas, version, at).await?;
        let outputs =
            blobs::mark_outputs(ctx, id, &self.text, &outputs, &before.outputs, version, at).await?;
        let locked = holder.map(|holder| holder.since);
        let is_edit = holder.is_some_and(|holder| EDITS.contains(&holder.info.operation.as_str()));
        let began = self.began.or(if is_edit { before.began.or(locked) } else { locked });
        let (payload, tail) = index.map_or((None, Bytes::new()), |(payload, tail)| (Some(payload), tail));
        let record = StateVersion {
            version,
            at,
            began,
            by: self.by.clone(),
            source: self.source.clone(),
            lock: holder.map(lock_of),
            kept: kept.clone(),
            outputs,
            index: payload,
            changes,
            serial_fell: taken.serial_fell,
            lineage_changed: taken.lineage_changed,
        };
        let (action, detail) = match &self.source {
            StateSource::Written if holder.is_none() => {
                ("state.write", format!("version {version}, without a lock"))
            }
            StateSource::Written => ("state.write", format!("version {version}")),
            StateSource::Restored(old) => ("state.restore", format!("version {old} as {version}")),
            StateSource::Promoted(id) => ("state.restore", format!("version {id} as {version}")),
        };
        let entry = audit::entry(ctx, action, &About::State(&head.value.address)).saying(detail);
        let rider = audit::ride(ctx, entry, head.value.trail.as_ref());
        let next = StateHead {
            version,
            under: holder
                .map(|holder| written_under(head.value.under.as_ref(), &holder.info.id, &kept.sha256)),
            current: Some(kept),
            last_write: Some(at),
            trail: rider.mark(),
            ..head.value.clone()
        };
        let unmoved = lock.map_or(Expect::Absent, Stored::unchanged);
        let mut writes = vec![
            store::put(ctx, StateHead::key(id), head.unchanged(), &next),
            store::put_with(ctx, StateVersion::key(id, version), Expect::Absent, &record, &tail),
            check(StateLock::key(id), unmoved),
            states::entry_write(ctx, id, &next),
        ];
        writes.extend(inferred);
        if ctx.settings.retention.state_versions.is_some_and(|kept| version > kept.get()) {
            writes.push(due_write(ctx, &Due::StateVersions(id), at));
        }
        Ok(audit::commit(ctx, writes, rider).await?.is_ok().then_some(version))
    }

    /// The outputs, each with its validity, and the write of newly inferred schemas.
    async fn judge_outputs(
        &self,
        ctx: &Context,
        id: StateId,
        schemas: Option<Stored<StateSchemas>>,
        version: u64,
        at: Timestamp,
    ) -> Result<(Vec<Output>, Option<Write>), Error> {
        let outputs = self.text.document.outputs.clone();
        let Some(stored) = schemas.filter(|_| !self.text.document.is_encrypted) else {
            return Ok((outputs, None));
        };
        let origin = Origin { version, at, by: self.by.login.clone() };
        let text = self.text.text().await?;
        let judged = schemas::judge(text, outputs, stored.value.clone(), origin).await?;
        let inferred = (judged.schemas != stored.value).then(|| {
            let key = StateSchemas::key(id);
            store::put(ctx, key, stored.unchanged(), &judged.schemas)
        });
        Ok((judged.outputs, inferred))
    }

    /// Stores the text with a deleted state, in case that is undeleted, and returns the error for the client.
    async fn reject_deleted(
        self,
        ctx: &Context,
        deleted: Box<ReservedName>,
        lock_id: Option<&str>,
        stored: Option<StoredState>,
    ) -> Result<Error, Error> {
        let head = store::read(ctx, &StateHead::key(deleted.id)).await?;
        let Some(head) = head else {
            // The state was erased meanwhile.
            if let Some(stored) = stored {
                stored.discard(ctx).await;
            }
            return Ok(Error::State(StateError::Deleted(deleted)));
        };
        let kept =
            self.reject(ctx, deleted.id, head.value.version, lock_id, Refused::Deleted, stored).await?;
        Ok(Error::State(StateError::WriteOfDeleted { deleted, kept }))
    }

    /// Stores the text as a refused write, and returns its id. A text that is sent twice is stored once.
    async fn reject(
        self,
        ctx: &Context,
        id: StateId,
        version: u64,
        lock_id: Option<&str>,
        why: Refused,
        stored: Option<StoredState>,
    ) -> Result<String, Error> {
        let name: String = self.text.sha256.chars().take(REJECTED_ID_CHARS).collect();
        let key = RejectedState::key(id, &name);
        if store::get(ctx, &key).await?.is_some() {
            if let Some(stored) = stored {
                stored.discard(ctx).await;
            }
            return Ok(name);
        }
        let StoredState { kept, index } = match stored {
            Some(stored) => stored,
            None => self.store(ctx, id, blobs::seal(ctx, id, &self.text).await?, true).await?,
        };
        if let Some((Payload::Blob { key, .. }, _)) = &index {
            blobs::discard(ctx, [key.as_str()]).await;
        }
        let at = ctx.now();
        let lock = lock_id.map(|lock| lock.chars().take(LOCK_ID_CHARS_MAX).collect());
        let stored: Vec<String> = kept.blobs().map(|(key, _)| key).collect();
        let record = RejectedState { at, by: self.by.clone(), lock, why, version, kept };
        let due = Due::RejectedState { state: id, id: name.clone() };
        let writes = vec![
            store::put(ctx, key, Expect::Absent, &record),
            due_write(ctx, &due, at.plus(ctx.settings.retention.rejected_states)),
        ];
        if store::commit(ctx, writes).await?.is_err() {
            // The client sent the same text twice at the same time, and the other request stored it.
            blobs::discard(ctx, stored.iter().map(String::as_str)).await;
        }
        Ok(name)
    }
}

/// The id of a refused write, in characters of its SHA-256 in hex.
const REJECTED_ID_CHARS: usize = 32;

/// The longest lock ID that is stored with a refused write, in characters. The client may send a longer one.
const LOCK_ID_CHARS_MAX: usize = 128;

fn lock_of(holder: &StateHolder) -> LockOf {
    let info = &holder.info;
    LockOf {
        id: info.id.clone(),
        operation: info.operation.clone(),
        who: info.who.clone(),
        version: info.version.clone(),
    }
}

fn written_under(before: Option<&WrittenUnder>, lock: &str, sha256: &str) -> WrittenUnder {
    let mut texts =
        before.filter(|under| under.lock == lock).map(|under| under.texts.clone()).unwrap_or_default();
    texts.push(sha256.to_owned());
    let surplus = texts.len().saturating_sub(TEXTS_REMEMBERED_MAX);
    texts.drain(..surplus);
    WrittenUnder { lock: lock.to_owned(), texts }
}
