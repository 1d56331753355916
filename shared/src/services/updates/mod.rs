//! The life of an update: create, start, begin (create and start in one request), renew, complete, cancel.

pub mod checkpoints;
pub mod direct;
pub(super) mod emptying;
pub mod events;
pub(super) mod fold;
pub mod log;
pub(super) mod next_version;
pub mod previews;
pub mod publish;
pub mod recovery;
pub(super) mod renewal;
pub(super) mod retention;
pub mod room;
pub mod running;
pub mod takeover;
pub mod tokens;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use super::audit::About;
use super::caller::{Caller, Taken, What};
use super::store::stack_lookup;
use super::store::stack_lookup::Located;
use super::store::stack_tags::check_tags;
use super::store::update_record::{entry_writes, fenced, read_own, update_write};
use super::{Error, Holder, audit, store};
use crate::context::Context;
use crate::domain::claims::Claims;
use crate::domain::ids::{StackId, UpdateId};
use crate::domain::names::StackAddress;
use crate::domain::role::Right;
use crate::domain::update::{
    Command, NotNow, Outcome, Requester, START_WITHIN, SealedBy, Status, Update, UpdateKind,
};
use crate::layout::{Record, StackEntry, StackHead, Stored, UpdateDetail};
use crate::limits::{BEGIN_DEPLOYMENT_BYTES_MAX, UPDATE_DETAIL_BYTES_MAX};
use crate::ports::{Expect, Timestamp, Write};
use crate::services::error::{AccessError, UpdateError};
use crate::services::store::retry::Attempts;

/// The highest journal version that this server replays.
pub const JOURNAL_VERSION_MAX: u32 = 2;

/// The minimum length of a lease, in seconds.
const LEASE_SECONDS_MIN: i64 = 1;

/// A client's request to create an update.
#[derive(Debug)]
pub struct NewUpdate {
    /// Which operation the update runs.
    pub kind: UpdateKind,
    /// Whether it is a preview.
    pub dry_run: bool,
    /// The message, environment and configuration, stored for display.
    pub detail: UpdateDetail,
}

/// The answer to a client whose update starts.
#[derive(Debug)]
pub struct Started {
    /// The ID of the update.
    pub update: UpdateId,
    /// The version that the update will publish; for a dry run, the current version.
    pub version: u64,
    /// The update token, which authenticates every later request of the update.
    pub token: String,
    /// When the lease expires.
    pub expires: Timestamp,
    /// The journal version; 0 if the update saves checkpoints.
    pub journal_version: u32,
    /// The URL of the server that decrypts the secrets of the base state, if known.
    pub secrets_url: Option<String>,
}

/// Creates an update. It holds no lock, and expires by itself unless it is started within an hour.
///
/// # Errors
/// `StackError::NotFound`; `StackError::Protected` for a destroy; `AccessError::NotAllowed` if the caller may only
/// preview; [`Error::TooLarge`] if the detail exceeds its maximum size.
pub async fn create(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    new: NewUpdate,
) -> Result<UpdateId, Error> {
    check_detail(&new)?;
    let located = stack_lookup::locate(ctx, caller, address).await?;
    check_writes(ctx, caller, address, new.dry_run).await?;
    check_destroyable(&located.head.value, new.kind, new.dry_run)?;
    let id = UpdateId::new(ctx.ids.uuid());
    let update = not_started(ctx, caller, located.id, &new);
    let mut writes = vec![update_write(ctx, id, Expect::Absent, &update), detail_write(ctx, id, &new)];
    writes.extend(entry_writes(ctx, id, &update, update.created.plus(START_WITHIN)));
    let entry = audit::entry(ctx, "update.create", &About::Update(address, id));
    match audit::commit_by_writer(ctx, writes, entry).await? {
        Ok(()) => Ok(id),
        Err(_) => Err(Error::Contended("a new update")),
    }
}

/// Starts a created update, for the user who created it. A repeat for a running update, as after a lost answer, returns
/// the same answer with a new token. It changes neither the holder nor the lease.
///
/// # Errors
/// [`UpdateError::Held`] while another update, or this one for another user, holds the stack; [`UpdateError::NotYours`]
/// for any other update that another user created; [`UpdateError::NotNow`] when this update is over.
pub async fn start(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    update: &str,
    tags: Option<BTreeMap<String, String>>,
    journal_version: u32,
) -> Result<Started, Error> {
    if let Some(tags) = &tags {
        check_tags(tags)?;
    }
    let mut attempts = Attempts::at("the stack");
    loop {
        attempts.begin()?;
        let (located, id, record) = stack_lookup::update(ctx, caller, address, update).await?;
        check_writes(ctx, caller, address, record.value.dry_run).await?;
        check_created(ctx, caller, &located, &record.value).await?;
        let located = takeover::take_over_if_expired(ctx, located).await?;
        if let Status::Running { until, .. } = record.value.status
            && ctx.now() <= until
        {
            // An older program started it: its tokens in circulation carry no secret.
            if record.value.renewed_by.is_empty() {
                return issue_token(ctx, caller, address, &located, id, &record.value, None).await;
            }
            let (next, secret) = renewal::bind(ctx, &record.value);
            let write = update_write(ctx, id, record.unchanged(), &next);
            if store::commit(ctx, vec![write]).await?.is_ok() {
                return issue_token(ctx, caller, address, &located, id, &next, Some(secret)).await;
            }
            continue;
        }
        let command = start_command(&located.head.value, journal_version);
        let next = record.value.decide(command, ctx.now()).map_err(UpdateError::NotNow)?;
        let (next, secret) = renewal::bind(ctx, &next);
        let expect = record.unchanged();
        check_destroyable(&located.head.value, next.kind, next.dry_run)?;
        check_takeable(ctx, &located, &next).await?;
        // The token is signed after the commit. A signing key that cannot be opened must not leave the stack held by an
        // update for which no client has a token.
        tokens::prepare(ctx).await?;
        let mut writes = Vec::new();
        if !next.dry_run {
            let name = stack_lookup::read_name(ctx, address).await?;
            check_granted_tags(ctx, caller, address, &name.value, tags.as_ref()).await?;
            writes.push(name_write(ctx, address, &name, tags.as_ref()));
        }
        if commit_start(ctx, &located, id, &next, expect, writes, "update.start").await? {
            return issue_token(ctx, caller, address, &located, id, &next, Some(secret)).await;
        }
    }
}

/// The answer to a client that begins an update: [`Started`], and what the client would request next.
#[derive(Debug)]
pub struct Begun {
    /// The same as for a start.
    pub started: Started,
    /// The stack and its head, which names the running update.
    pub located: Located,
    /// The tags of the stack after the begin.
    pub tags: BTreeMap<String, String>,
    /// The gzip of the base deployment's text; `None` for a stack without one, or for one over the size limit, which
    /// the client has to export.
    pub base: Option<Bytes>,
}

/// Creates and starts an update in one request.
///
/// # Errors
/// Those of [`create`] and [`start`]; [`Error::Broken`] when the base is missing or altered, and then nothing is held.
pub async fn begin(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    new: NewUpdate,
    tags: Option<BTreeMap<String, String>>,
    journal_version: u32,
) -> Result<Begun, Error> {
    if let Some(tags) = &tags {
        check_tags(tags)?;
    }
    check_detail(&new)?;
    let id = UpdateId::new(ctx.ids.uuid());
    let mut attempts = Attempts::at("the stack");
    loop {
        attempts.begin()?;
        let located = takeover::locate_settled(ctx, caller, address).await?;
        check_writes(ctx, caller, address, new.dry_run).await?;
        check_destroyable(&located.head.value, new.kind, new.dry_run)?;
        let command = start_command(&located.head.value, journal_version);
        let next = not_started(ctx, caller, located.id, &new)
            .decide(command, ctx.now())
            .map_err(UpdateError::NotNow)?;
        let (next, secret) = renewal::bind(ctx, &next);
        check_takeable(ctx, &located, &next).await?;
        let (base, name, ()) = futures::try_join!(
            small_base(ctx, &located),
            stack_lookup::read_name(ctx, address),
            tokens::prepare(ctx),
        )?;
        let mut writes = vec![detail_write(ctx, id, &new)];
        let tags = tags.as_ref().filter(|_| !new.dry_run);
        if !new.dry_run {
            check_granted_tags(ctx, caller, address, &name.value, tags).await?;
            writes.push(name_write(ctx, address, &name, tags));
        }
        if commit_start(ctx, &located, id, &next, Expect::Absent, writes, "update.begin").await? {
            let started = issue_token(ctx, caller, address, &located, id, &next, Some(secret)).await?;
            let tags = tags.cloned().unwrap_or(name.value.tags);
            let mut located = located;
            if !new.dry_run {
                (located.head.value.running, located.head.value.last) = (Some(id), Some(id));
            }
            return Ok(Begun { started, located, tags, base });
        }
    }
}

/// Refuses an update of a caller who may only preview. Clients create previews and updates with the same request.
async fn check_writes(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    dry_run: bool,
) -> Result<(), Error> {
    match caller.on_stack(ctx, address).await {
        // The lookup refuses a caller who may not see it, as if it did not exist.
        Err(Error::Access(AccessError::NoOrg(_))) => Ok(()),
        Ok(standing) if dry_run || !standing.has(Right::See) => Ok(()),
        standing => standing?.check(Right::Apply, "an update other than a preview"),
    }
}

/// Refuses new tags of a stack that a grant names, as an edit of the tags does. A client sends all tags with each update.
async fn check_granted_tags(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    name: &StackEntry,
    tags: Option<&BTreeMap<String, String>>,
) -> Result<(), Error> {
    match tags.filter(|tags| **tags != name.tags) {
        Some(tags) => {
            let standing = caller.on_stack(ctx, address).await?;
            Box::pin(standing.check_changed_tags(ctx, &name.tags, tags)).await
        }
        None => Ok(()),
    }
}

/// Refuses to destroy a protected stack. The preview of that changes nothing.
fn check_destroyable(head: &StackHead, kind: UpdateKind, dry_run: bool) -> Result<(), Error> {
    match kind {
        UpdateKind::Destroy if !dry_run => store::protection::check_stack(head),
        _ => Ok(()),
    }
}

fn taken(update: &Update) -> Taken<'_> {
    Taken { by: &update.requester, user_made: update.user_made, at: update.created, needs: update.needs() }
}

/// Refuses a caller who did not create the update. The ID proves nothing: every user who sees the stack sees it.
async fn check_created(
    ctx: &Context,
    caller: &Caller,
    located: &Located,
    update: &Update,
) -> Result<(), Error> {
    let runs = match update.status {
        Status::NotStarted => false,
        Status::Running { until, .. } if ctx.now() <= until => true,
        // It is over for every caller, and `start` reports that.
        Status::Running { .. } | Status::Sealed { .. } | Status::Ended { .. } => return Ok(()),
    };
    let Located { head, .. } = located;
    if caller.on_stack(ctx, &head.value.address).await?.has_taken(&taken(update)) {
        return Ok(());
    }
    if runs && !update.dry_run {
        takeover::check_free(ctx, &head.value).await?;
    }
    Err(UpdateError::NotYours { dry_run: update.dry_run, requester: update.requester.clone() }.into())
}

fn not_started(ctx: &Context, caller: &Caller, stack: StackId, new: &NewUpdate) -> Update {
    Update {
        stack,
        kind: new.kind,
        dry_run: new.dry_run,
        requester: caller.requester(),
        user_made: Some(caller.user.created),
        created: ctx.now(),
        base_version: 0,
        journal_version: 0,
        renewed_by: Vec::new(),
        status: Status::NotStarted,
    }
}

fn start_command(head: &StackHead, journal_version: u32) -> Command {
    Command::Start { base_version: head.version, journal_version: journal_version.min(JOURNAL_VERSION_MAX) }
}

/// Bounds the detail before anything is stored, so that its size cannot prevent publishing the update later.
fn check_detail(new: &NewUpdate) -> Result<(), Error> {
    let bytes = new.detail.encode().len();
    if bytes > UPDATE_DETAIL_BYTES_MAX {
        return Err(Error::TooLarge {
            what: "an update's message, environment and configuration",
            bytes,
            bytes_max: UPDATE_DETAIL_BYTES_MAX,
        });
    }
    Ok(())
}

fn detail_write(ctx: &Context, id: UpdateId, new: &NewUpdate) -> Write {
    store::put(ctx, UpdateDetail::key(id), Expect::Any, &new.detail)
}

/// Refuses an update while another one holds the stack. A dry run takes no lock, so it is never refused.
async fn check_takeable(ctx: &Context, located: &Located, update: &Update) -> Result<(), Error> {
    if update.dry_run { Ok(()) } else { takeover::check_free(ctx, &located.head.value).await }
}

/// Marks the stack's list entry as updating, and sets these tags.
fn name_write(
    ctx: &Context,
    address: &StackAddress,
    name: &Stored<StackEntry>,
    tags: Option<&BTreeMap<String, String>>,
) -> Write {
    let tags = tags.unwrap_or(&name.value.tags).clone();
    let next = StackEntry { tags, is_updating: true, ..name.value.clone() };
    store::put(ctx, StackEntry::key(address), name.unchanged(), &next)
}

/// Commits a running update, and unless it is a dry run, the stack's head with it. False when the head or the update
/// changed meanwhile. `action` is for the audit trail.
async fn commit_start(
    ctx: &Context,
    located: &Located,
    id: UpdateId,
    update: &Update,
    expect: Expect,
    mut writes: Vec<Write>,
    action: &str,
) -> Result<bool, Error> {
    let entry = audit::entry(ctx, action, &About::Update(&located.head.value.address, id));
    writes.push(update_write(ctx, id, expect, update));
    writes.extend(entry_writes(ctx, id, update, lease(update)?));
    let done = if update.dry_run {
        writes.push(previews::entry_write(ctx, id, update));
        audit::commit_by_writer(ctx, writes, entry).await?
    } else {
        let before = located.head.value.clone();
        let rider = audit::ride(ctx, entry, before.trail.as_ref());
        let head = StackHead { running: Some(id), last: Some(id), trail: rider.mark(), ..before };
        writes.push(store::put(ctx, StackHead::key(located.id), located.head.unchanged(), &head));
        audit::commit(ctx, writes, rider).await?
    };
    if done.is_err() {
        return Ok(false);
    }
    // The log is empty, so the first append need not read its tail.
    ctx.memory.tails.put(id, ctx.now(), 0);
    Ok(true)
}

/// When the lease of a running update expires.
fn lease(update: &Update) -> Result<Timestamp, Error> {
    match update.status {
        Status::Running { until, .. } => Ok(until),
        Status::NotStarted | Status::Sealed { .. } | Status::Ended { .. } => {
            Err(UpdateError::NotNow(NotNow::NotStarted).into())
        }
    }
}

/// The answer for a running update. The caller has already called [`tokens::prepare`].
async fn issue_token(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    located: &Located,
    id: UpdateId,
    update: &Update,
    secret: Option<String>,
) -> Result<Started, Error> {
    let (version, expires) = (update.base_version + u64::from(!update.dry_run), lease(update)?);
    let bearer = Some(caller.bearer());
    let token = tokens::issue(ctx, id, update, address, expires, bearer, secret).await?;
    let secrets_url = located.head.value.snapshot.as_ref().and_then(|snapshot| snapshot.secrets_url.clone());
    let journal_version = update.journal_version;
    Ok(Started { update: id, version, token, expires, journal_version, secrets_url })
}

/// Extends the lease, if the bearer may still run the update. Takes two rounds of calls: parallel reads, then a write.
/// The old token stays valid until its own expiry.
///
/// # Errors
/// [`UpdateError::Fenced`] when the update is over, its user may not continue, or this server did not issue the token.
/// The client then ends, as it must.
pub async fn renew(
    ctx: &Context,
    address: &StackAddress,
    claims: &Claims,
    duration_seconds: i64,
) -> Result<(String, Timestamp), Error> {
    let seconds = u64::try_from(duration_seconds.max(LEASE_SECONDS_MIN)).unwrap_or(0);
    let mut attempts = Attempts::at("the lease");
    loop {
        attempts.begin()?;
        let (record, standing) = renewal::read(ctx, claims).await?;
        let command = Command::Renew(Duration::from_secs(seconds));
        let next = record.value.decide(command, ctx.now()).map_err(fenced)?;
        standing.check(ctx, address, &record.value).await?;
        renewal::check_bound(claims, &record.value)?;
        let write = update_write(ctx, claims.update, record.unchanged(), &next);
        if store::commit(ctx, vec![write]).await?.is_ok() {
            let Status::Running { until, .. } = next.status else { return Err(fenced(NotNow::NotStarted)) };
            let (bearer, secret) = (claims.bearer.clone(), claims.renewal.clone());
            let token = tokens::issue(ctx, claims.update, &next, address, until, bearer, secret).await?;
            return Ok((token, until));
        }
    }
}

/// Ends an update at its client's request: seals the log and publishes its content, whatever the outcome. A repeat, as
/// after a lost answer, joins the first request or finds it completed.
///
/// # Errors
/// [`UpdateError::Fenced`] when it ended in another way: it was cancelled, or its lease expired.
pub async fn complete(ctx: &Context, claims: &Claims, outcome: Outcome) -> Result<(), Error> {
    // The seal needs the tail: it is read in parallel with the record.
    let tail = async { if claims.dry_run { Ok(0) } else { log::tail(ctx, claims.update).await } };
    let (record, tail) = futures::try_join!(read_own(ctx, claims), tail)?;
    let end = publish::End::new(outcome, SealedBy::Client);
    let ended = seal_and_publish(ctx, claims.update, record, Some(tail), end).await;
    ended.map_err(|error| match error {
        Error::Update(UpdateError::NotNow(why)) => fenced(why),
        other => other,
    })
}

/// The holder of a stack.
///
/// # Errors
/// Those of [`takeover::locate_settled`].
pub async fn holder(ctx: &Context, caller: &Caller, address: &StackAddress) -> Result<Option<Holder>, Error> {
    let located = takeover::locate_settled(ctx, caller, address).await?;
    takeover::holder(ctx, &located.head.value).await
}

/// Ends an update at a user's request: its client is refused from then on, and what it saved is published. Canceling a
/// cancelled update succeeds. The audit record has the reason, also if another process publishes. Returns the requester
/// who began the update.
///
/// # Errors
/// [`UpdateError::NothingToCancel`] when the stack's last update is over, [`UpdateError::NotNow`] when an older one is;
/// `AccessError::NotAllowed` for another user's update, and for a token that may not begin this one.
pub async fn cancel(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    update: &str,
    reason: Option<String>,
) -> Result<Requester, Error> {
    let (located, id, record) = stack_lookup::update(ctx, caller, address, update).await?;
    let what = What { own: "canceling your update", others: "canceling another user's update" };
    let standing = caller.on_stack(ctx, &located.head.value.address).await?;
    standing.check_may_end(&taken(&record.value), what)?;
    let begun_by = record.value.requester.clone();
    let by = SealedBy::Cancel(caller.user.login.clone());
    let requester = Some(Box::new(caller.requester()));
    let end = publish::End { outcome: Outcome::Cancelled, by, reason, requester };
    let ended = seal_and_publish(ctx, id, record, None, end).await;
    ended.map_err(|error| match error {
        Error::Update(UpdateError::NotNow(NotNow::Over { outcome, by, at }))
            if located.head.value.last == Some(id) =>
        {
            Error::Update(UpdateError::NothingToCancel { outcome, by, at })
        }
        other => other,
    })?;
    Ok(begun_by)
}

async fn seal_and_publish(
    ctx: &Context,
    id: UpdateId,
    mut record: Stored<Update>,
    tail: Option<u64>,
    end: publish::End,
) -> Result<(), Error> {
    let publish::End { outcome, by, .. } = &end;
    // An end by the client is not the same as one by a cancel or an expiry: the client must learn that it was fenced out.
    let is_same = |ended: Outcome, who: &SealedBy| {
        ended == *outcome && (*who == SealedBy::Client) == (*by == SealedBy::Client)
    };
    let mut attempts = Attempts::at("the update");
    loop {
        attempts.begin()?;
        match &record.value.status {
            Status::Sealed { seal, .. } if is_same(seal.outcome, &seal.by) => {
                return publish::publish(ctx, id, record).await;
            }
            Status::Ended { outcome, by, .. } if is_same(*outcome, by) => return Ok(()),
            Status::NotStarted | Status::Running { .. } | Status::Sealed { .. } | Status::Ended { .. } => {}
        }
        if record.value.dry_run {
            let command = Command::EndDryRun(*outcome, by.clone());
            let next = record.value.decide(command, ctx.now()).map_err(UpdateError::NotNow)?;
            let writes = vec![update_write(ctx, id, record.unchanged(), &next)];
            let action = if matches!(by, SealedBy::Cancel(_)) { "update.cancel" } else { "update.end" };
            let done = match audit::entry_of_update(ctx, action, id) {
                Some(entry) => audit::commit_by_writer(ctx, writes, entry).await?,
                None => store::commit(ctx, writes).await?,
            };
            if done.is_ok() {
                return Ok(());
            }
        } else if let Some(sealed) = publish::seal(ctx, id, &record, tail, end.clone(), Command::Seal).await?
        {
            return publish::publish(ctx, id, sealed).await;
        }
        record = store::read(ctx, &Update::key(id))
            .await?
            .ok_or_else(|| Error::Broken(format!("the update {id} lost its record")))?;
    }
}

async fn small_base(ctx: &Context, located: &Located) -> Result<Option<Bytes>, Error> {
    match &located.head.value.snapshot {
        Some(snapshot) if snapshot.bytes_gzip <= BEGIN_DEPLOYMENT_BYTES_MAX => {
            stack_lookup::fetch_snapshot(ctx, snapshot, 0).await.map(Some)
        }
        Some(_) | None => Ok(None),
    }
}
