//! Versions that one request creates, without a log: imports, renames, restored versions and rehomed stacks.

use bytes::Bytes;

use super::fold::Folded;
use super::next_version::{NewVersion, StoredVersion, advance, store_version};
use super::takeover::locate_free;
use super::{emptying, fold, room};
use crate::account;
use crate::context::Context;
use crate::domain::deployment::Counted;
use crate::domain::ids::{StackId, UpdateId};
use crate::domain::names::StackAddress;
use crate::domain::server_url::ServerUrl;
use crate::domain::update::{Outcome, SealedBy, Status, Update, UpdateKind};
use crate::layout::{Snapshot, StackEntry, StackHead, UpdateDetail};
use crate::ports::Expect;
use crate::services::audit::About;
use crate::services::caller::Caller;
use crate::services::store::retry::Attempts;
use crate::services::store::stack_lookup;
use crate::services::store::stack_lookup::Located;
use crate::services::store::update_record::{entry_writes, update_write};
use crate::services::{Error, audit, store, work};

/// The maximum size of a deployment that is compared with the previous one, in bytes. A longer one is stored again
/// instead: both texts at once need more memory than a server has next to its other requests.
const COMPARED_BYTES_MAX: u64 = 128 << 20;

/// Checks a whole deployment and stores it as the version after `head`.
pub(crate) async fn prepare_import(
    ctx: &Context,
    caller: &Caller,
    stack: StackId,
    head: &StackHead,
    text: Bytes,
) -> Result<StoredVersion, Error> {
    let (base, detail) = match &head.snapshot {
        Some(snapshot) => {
            let base = async {
                match snapshot.bytes_text.max(text.len() as u64) <= COMPARED_BYTES_MAX {
                    true => stack_lookup::fetch_snapshot(ctx, snapshot, fold::BASE_FACTOR).await.map(Some),
                    false => Ok(None),
                }
            };
            let (base, last) = futures::try_join!(
                base,
                stack_lookup::read_version(ctx, stack, &head.address, head.version),
            )?;
            (base, detail_after(last.detail, String::new()))
        }
        None => (None, UpdateDetail::default()),
    };
    // The reservation for the sent text covers its processing, and the one made at the fetch covers the base's.
    let base_bytes = fold::weight(&base, &[]);
    account::take(base_bytes.saturating_mul(fold::BASE_FACTOR)).await?;
    // Many small resources take more than their text. Their index is made in the same memory.
    let sent = text.clone();
    room::make(work::on(text.len(), move || Ok(Counted::of(&sent))).await?).await?;
    let bytes = base_bytes + text.len();
    let folded = work::on(bytes, move || fold::fold_import(base, &text)).await?;
    emptying::check(ctx, head, &folded).await?;
    store_at_once(ctx, caller, stack, head, UpdateKind::Import, detail, folded).await
}

/// The key of the stack's configured environments, in what the client describes of an update (pulumi v3.274.1,
/// `pkg/backend/httpstate/client/client.go`).
const STACK_ENVIRONMENTS: &str = "stack.environments";

/// The detail of a version that no program run created. `pulumi config refresh` takes the configuration from the newest
/// history entry, so this entry copies that of the version that the state comes from.
fn detail_after(mut from: UpdateDetail, message: String) -> UpdateDetail {
    from.environment.retain(|name, _| name == STACK_ENVIRONMENTS);
    UpdateDetail { message, ..from }
}

/// Stores the current deployment under another address of the stack, as the version after `head`; `None` for a stack
/// without one.
pub(crate) async fn prepare_rename(
    ctx: &Context,
    caller: &Caller,
    stack: StackId,
    head: &StackHead,
    to: &StackAddress,
) -> Result<Option<StoredVersion>, Error> {
    let Some(snapshot) = &head.snapshot else { return Ok(None) };
    let (base, last) = futures::try_join!(
        stack_lookup::fetch_snapshot(ctx, snapshot, fold::FACTOR),
        stack_lookup::read_version(ctx, stack, &head.address, head.version),
    )?;
    let addresses = (head.address.clone(), to.clone());
    let bytes = fold::weight([&base], &[]);
    let fold = move || fold::fold_rename(&base, &addresses.0, &addresses.1);
    let folded = work::with(bytes, fold::FACTOR, fold).await?;
    let detail = detail_after(last.detail, format!("Rename {} to {to}", head.address));
    store_at_once(ctx, caller, stack, head, UpdateKind::Rename, detail, folded).await.map(Some)
}

/// Stores a version that one request creates, without a log.
async fn store_at_once(
    ctx: &Context,
    caller: &Caller,
    stack: StackId,
    head: &StackHead,
    kind: UpdateKind,
    detail: UpdateDetail,
    folded: Folded,
) -> Result<StoredVersion, Error> {
    let id = UpdateId::new(ctx.ids.uuid());
    let now = ctx.now();
    let version = NewVersion {
        update: id,
        kind,
        outcome: Outcome::Succeeded,
        requester: caller.requester(),
        started: now,
        ended: now,
        resource_changes: None,
        detail,
        left_out: None,
    };
    let mut stored = store_version(ctx, stack, head, version, folded).await?;
    let update = Update {
        stack,
        kind,
        dry_run: false,
        requester: caller.requester(),
        user_made: Some(caller.user.created),
        created: now,
        base_version: head.version,
        journal_version: 0,
        renewed_by: Vec::new(),
        status: Status::Ended { since: now, at: now, outcome: Outcome::Succeeded, by: SealedBy::Client },
    };
    stored.writes.push(update_write(ctx, id, Expect::Absent, &update));
    // The record is erased together with the update's events.
    stored.writes.extend(entry_writes(ctx, id, &update, now.plus(ctx.settings.retention.events)));
    Ok(stored)
}

/// A version that one request created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// The ID of the update that created it.
    pub update: UpdateId,
    /// The number of the new version.
    pub version: u64,
    /// The URL of the server that decrypts its secrets, if it names one.
    pub secrets_url: Option<String>,
}

/// Makes a deployment the next version of the stack.
///
/// # Errors
/// `UpdateError::Held` while an update runs; `StackError::VersionOfProtected`; [`Error::Invalid`] for a text that is not a
/// deployment.
pub async fn import(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    text: Bytes,
) -> Result<Made, Error> {
    let mut attempts = Attempts::at("the stack");
    loop {
        attempts.begin()?;
        let located = locate_free(ctx, caller, address).await?;
        let next = prepare_import(ctx, caller, located.id, &located.head.value, text.clone()).await?;
        if let Some(made) = take_head(ctx, located, next, "stack.import").await? {
            return Ok(made);
        }
    }
}

/// Publishes a stored version as the stack's current one; `None` if the head has moved since the stack was located.
/// `action` is for the audit trail.
pub(crate) async fn take_head(
    ctx: &Context,
    located: Located,
    next: StoredVersion,
    action: &str,
) -> Result<Option<Made>, Error> {
    let Located { id, head } = located;
    let address = &head.value.address;
    let name = stack_lookup::read_name(ctx, address).await?;
    let (mut new_head, mut new_name) = (head.value.clone(), name.value.clone());
    let entry = audit::entry(ctx, action, &About::Stack(address)).saying(format!("version {}", next.version));
    let rider = audit::ride(ctx, entry, head.value.trail.as_ref());
    advance(&mut new_head, &mut new_name, &next);
    new_head.trail = rider.mark();
    let made = Made { update: next.update, version: next.version, secrets_url: next.snapshot.secrets_url };
    let mut writes = next.writes;
    writes.push(store::put(ctx, StackHead::key(id), head.unchanged(), &new_head));
    writes.push(store::put(ctx, StackEntry::key(address), name.unchanged(), &new_name));
    Ok(audit::commit(ctx, writes, rider).await?.is_ok().then_some(made))
}

/// The URL of the server that decrypts the secrets of a snapshot, as the snapshot's text has it.
pub(crate) async fn secrets_url(ctx: &Context, snapshot: &Snapshot) -> Result<Option<String>, Error> {
    let gzip = stack_lookup::fetch_snapshot(ctx, snapshot, fold::FACTOR).await?;
    work::with(fold::weight([&gzip], &[]), fold::FACTOR, move || fold::secrets_url(&gzip)).await
}

/// Stores the current deployment with its secrets decrypted at another URL, as the version after `head`; `None` if they
/// are not decrypted at `from`.
pub(crate) async fn prepare_rehome(
    ctx: &Context,
    caller: &Caller,
    located: &Located,
    from: &ServerUrl,
    to: &ServerUrl,
) -> Result<Option<StoredVersion>, Error> {
    let head = &located.head.value;
    let Some(snapshot) = &head.snapshot else { return Ok(None) };
    let (base, last) = futures::try_join!(
        stack_lookup::fetch_snapshot(ctx, snapshot, fold::FACTOR),
        stack_lookup::read_version(ctx, located.id, &head.address, head.version),
    )?;
    let urls = (from.clone(), to.clone());
    let bytes = fold::weight([&base], &[]);
    let fold = move || fold::fold_rehome(&base, &urls.0, &urls.1);
    let Some(folded) = work::with(bytes, fold::FACTOR, fold).await? else { return Ok(None) };
    let detail = detail_after(last.detail, format!("Rehome from {from} to {to}"));
    store_at_once(ctx, caller, located.id, head, UpdateKind::Rename, detail, folded).await.map(Some)
}

/// Stores the deployment of an old version, under the current name of the stack, as the version after `head`.
pub(crate) async fn prepare_restore(
    ctx: &Context,
    caller: &Caller,
    located: &Located,
    version: u64,
) -> Result<StoredVersion, Error> {
    let head = &located.head.value;
    let old = stack_lookup::read_version(ctx, located.id, &head.address, version).await?;
    let gzip = stack_lookup::fetch_snapshot(ctx, &old.snapshot, fold::FACTOR).await?;
    let address = head.address.clone();
    let bytes = fold::weight([&gzip], &[]);
    let folded = work::with(bytes, fold::FACTOR, move || fold::fold_restore(&gzip, &address)).await?;
    emptying::check(ctx, head, &folded).await?;
    let detail = detail_after(old.detail, format!("Restore version {version}"));
    store_at_once(ctx, caller, located.id, head, UpdateKind::Import, detail, folded).await
}
