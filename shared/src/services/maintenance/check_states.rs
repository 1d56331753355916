//! Checks the stored data of Terraform states: see [`super::check`].

use std::collections::BTreeSet;

use crate::context::Context;
use crate::domain::ids::{KeyOwner, StateId};
use crate::domain::names::{OrgName, StateAddress};
use crate::layout::{
    DeletedState, FormerStateName, KeptState, Record, RejectedState, StateEntry, StateHead, StateLock,
    StateLockEntry, StateLocksListed, StateVersion, StoredLabelPolicy,
};
use crate::ports::{Inventory, Item, Order};
use crate::services::keys::data_keys;
use crate::services::{Error, states, store};

/// How thorough a check is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// Checks that the items are consistent.
    Items,
    /// Also checks that every stored blob matches its item.
    Blobs,
}

/// The result of checking one state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateReport {
    /// The address, if the head can be read.
    pub address: Option<StateAddress>,
    /// Whether it was deleted, and can be undeleted.
    pub is_deleted: bool,
    /// The number of versions that were checked.
    pub versions: u64,
    /// The problems, as text.
    pub problems: Vec<String>,
}

/// The ids of all states, including deleted ones.
///
/// # Errors
/// Those of the ports.
pub async fn states(ctx: &Context, inventory: &dyn Inventory) -> Result<BTreeSet<StateId>, Error> {
    let (mut ids, mut from) = (BTreeSet::new(), None);
    loop {
        let part = store::inventory_items(ctx, inventory, "TFSTATE#", from.as_ref()).await?;
        let id = |item: &Item| item.key.partition.strip_prefix("TFSTATE#").and_then(StateId::parse);
        ids.extend(part.found.iter().filter_map(id));
        from = part.next;
        if from.is_none() {
            return Ok(ids);
        }
    }
}

/// Checks one state: its head, its name, every stored text, and its data keys. A state that changes meanwhile is
/// checked again.
///
/// # Errors
/// Those of the ports. Problems of the state are in the report.
pub async fn state(ctx: &Context, id: StateId) -> Result<StateReport, Error> {
    state_to(ctx, id, Depth::Blobs).await
}

pub(super) async fn state_to(ctx: &Context, id: StateId, depth: Depth) -> Result<StateReport, Error> {
    const ATTEMPTS_MAX: usize = 3;
    let key = StateHead::key(id);
    let mut attempts = 0;
    loop {
        attempts += 1;
        let before = store::get(ctx, &key).await?.map(|item| item.revision);
        let report = check_one(ctx, id, depth).await?;
        let after = store::get(ctx, &key).await?.map(|item| item.revision);
        if report.problems.is_empty() || before == after || attempts == ATTEMPTS_MAX {
            return Ok(report);
        }
    }
}

async fn check_one(ctx: &Context, id: StateId, depth: Depth) -> Result<StateReport, Error> {
    let mut report = StateReport::default();
    let head = match found(store::read(ctx, &StateHead::key(id)).await)? {
        Ok(Some(head)) => head.value,
        Ok(None) => {
            report.problems.push(format!("state {id} has no head"));
            return Ok(report);
        }
        Err(words) => {
            report.problems.push(format!("the head of state {id}: {words}"));
            return Ok(report);
        }
    };
    report.address = Some(head.address.clone());
    report.is_deleted = head.deleted.is_some();
    // A state that is being erased need not be complete.
    if head.erasing {
        return Ok(report);
    }
    if head.deleted.is_none() {
        let entry = found(store::read(ctx, &StateEntry::key(&head.address)).await)?;
        match entry.map(|entry| entry.is_some_and(|entry| entry.value.id == id)) {
            Ok(true) => {}
            Ok(false) => report.problems.push("its name does not lead to it".to_owned()),
            Err(words) => report.problems.push(format!("its name: {words}")),
        }
    }
    report.problems.extend(lock_problem(ctx, id, &head).await?);
    match found(states::schemas::read(ctx, id).await)?.map(|schemas| schemas.is_some()) {
        Ok(true) if !head.has_schemas => {
            report.problems.push("its head says that it has no schemas".to_owned())
        }
        Ok(false) if head.has_schemas => report.problems.push("its schemas are missing".to_owned()),
        Ok(_) => {}
        Err(words) => report.problems.push(format!("its schemas: {words}")),
    }
    check_versions(ctx, id, &head, depth, &mut report).await?;
    for item in store::query_all(ctx, RejectedState::of_state(id), usize::MAX).await? {
        let checked = async {
            let rejected = RejectedState::decode(&item.value)?;
            match depth {
                Depth::Items => Ok(()),
                Depth::Blobs => check_text(ctx, id, &rejected.kept).await,
            }
        };
        if let Err(words) = found(checked.await)? {
            report.problems.push(format!("the refused write {}: {words}", item.key.sort));
        }
    }
    report.problems.extend(data_keys::key_problems(ctx, KeyOwner::State(id)).await?);
    Ok(report)
}

/// The problem with the lock of a state, as text.
async fn lock_problem(ctx: &Context, id: StateId, head: &StateHead) -> Result<Option<String>, Error> {
    let (key, org) = (StateLock::key(id), &head.address.org);
    let lock = match found(store::read(ctx, &key).await)? {
        Ok(Some(lock)) => lock,
        Ok(None) => return Ok(None),
        Err(words) => return Ok(Some(format!("its lock: {words}"))),
    };
    // Before the first list of locks, those of older programs have no entries.
    let needs_entry = lock.value.holder.is_some()
        && head.deleted.is_none()
        && store::get(ctx, &StateLocksListed::key(org)).await?.is_some();
    if !needs_entry || store::get(ctx, &StateLockEntry::key(org, id)).await?.is_some() {
        return Ok(None);
    }
    // The entry moves with the lock: if that is unchanged, the entry did not move while it was read.
    let has_moved = store::get(ctx, &key).await?.is_none_or(|now| now.revision != lock.revision);
    Ok((!has_moved).then(|| "its lock is not in the list of locks".to_owned()))
}

async fn check_versions(
    ctx: &Context,
    id: StateId,
    head: &StateHead,
    depth: Depth,
    report: &mut StateReport,
) -> Result<(), Error> {
    let mut query = StateVersion::of_state(id).query(None, Order::Ascending, 100);
    let mut last: Option<(u64, Option<StateVersion>)> = None;
    loop {
        let page = store::query(ctx, &query).await?;
        query.after = page.items.last().map(|item| item.key.sort.clone());
        for item in &page.items {
            report.versions += 1;
            let number = StateVersion::number_in(&item.key).unwrap_or(0);
            // The oldest versions are deleted first, so only the first one left may lack its predecessor.
            if let Some((before, _)) = &last
                && before + 1 != number
            {
                report.problems.push(format!("versions {} to {} are missing", before + 1, number - 1));
            }
            let checked = async {
                let (version, tail) = StateVersion::decode_with(&item.value)?;
                if depth == Depth::Blobs {
                    check_text(ctx, id, &version.kept).await?;
                    if version.kept.rows.is_none() {
                        states::index::fetch(ctx, id, &version, tail).await?;
                    }
                }
                Ok(version)
            };
            let checked = found(checked.await)?;
            if let Err(words) = &checked {
                report.problems.push(format!("version {number}: {words}"));
            }
            last = Some((number, checked.ok()));
        }
        if !page.more {
            break;
        }
    }
    let (number, version) = last.map_or((0, None), |(number, version)| (number, version));
    if head.version != number {
        report
            .problems
            .push(format!("its head is at version {}, but the last one is {number}", head.version));
    } else if version.is_some_and(|version| !is_same_text(head.current.as_ref(), &version.kept)) {
        report.problems.push(format!("its head differs from version {number}"));
    }
    Ok(())
}

/// Checks that a text and its rows are as they were stored.
async fn check_text(ctx: &Context, id: StateId, kept: &KeptState) -> Result<(), Error> {
    states::blobs::fetch(ctx, id, kept).await?;
    Box::pin(states::rows::check(ctx, id, kept)).await
}

/// Whether the head has the text of the last version. A program that does not know rows drops them from the head.
fn is_same_text(of_head: Option<&KeptState>, of_version: &KeptState) -> bool {
    of_head.is_some_and(|head| {
        let rows = head.rows.as_ref().and(of_version.rows.clone());
        *head == KeptState { rows, ..of_version.clone() }
    })
}

/// Checks an item of an organization that is about states but outside their partitions: a name, a deleted state, or
/// the label policy. Returns the problem as text.
///
/// # Errors
/// Those of the ports.
pub(super) async fn check_item(ctx: &Context, org: &OrgName, item: &Item) -> Result<Option<String>, Error> {
    if *item.key.sort == *StoredLabelPolicy::key(org).sort {
        return Ok(StoredLabelPolicy::decode(&item.value).err().map(|error| format!("{org}: {error}")));
    }
    if let Ok((project, state)) = FormerStateName::name_in(&item.key) {
        let address = StateAddress { org: org.clone(), project, state };
        return check_former(ctx, &address, item).await;
    }
    let is_deleted = DeletedState::name_in(&item.key).is_ok();
    let name = StateEntry::name_in(&item.key).or_else(|_| DeletedState::name_in(&item.key));
    let Ok((project, state)) = name else { return Ok(None) };
    let address = StateAddress { org: org.clone(), project, state };
    let words = if is_deleted { "the deleted state" } else { "the name of a state" };
    let entry = match is_deleted {
        true => DeletedState::decode(&item.value).map(|deleted| deleted.entry),
        false => StateEntry::decode(&item.value),
    };
    let entry = match entry {
        Ok(entry) => entry,
        Err(error) => return Ok(Some(format!("{words}, {address}: {error}"))),
    };
    let head = found(store::read(ctx, &StateHead::key(entry.id)).await)?;
    // The report of the state includes a head that cannot be read.
    let Ok(head) = head else { return Ok(None) };
    let is_it =
        |head: &StateHead| head.address == address && head.deleted.is_some() == is_deleted && !head.erasing;
    let problem = match head.map(|head| head.value).filter(is_it) {
        None => "leads to no state of that name",
        Some(head) if states::entry_of(entry.id, &head) != entry => "differs from its head",
        Some(_) => return Ok(None),
    };
    // The item moves with the head: if it is unchanged, it did not move while the head was read.
    let has_moved = store::get(ctx, &item.key).await?.is_none_or(|now| now.revision != item.revision);
    Ok((!has_moved).then(|| format!("{words}, {address}, {problem}")))
}

/// Checks that a former name leads to a state of its organization, as it must until that state is erased.
async fn check_former(ctx: &Context, address: &StateAddress, item: &Item) -> Result<Option<String>, Error> {
    let former = match FormerStateName::decode(&item.value) {
        Ok(former) => former,
        Err(error) => return Ok(Some(format!("the former name of a state, {address}: {error}"))),
    };
    let head = found(store::read(ctx, &StateHead::key(former.id)).await)?;
    // The report of the state includes a head that cannot be read.
    let Ok(head) = head else { return Ok(None) };
    if head.is_some_and(|head| head.value.address.org == address.org) {
        return Ok(None);
    }
    // Erasing a state deletes its former names first.
    let has_moved = store::get(ctx, &item.key).await?.is_none_or(|now| now.revision != item.revision);
    Ok((!has_moved).then(|| format!("the former name of a state, {address}, leads to no state")))
}

/// Separates problems of the stored data from a store that does not answer.
pub(super) fn found<T>(result: Result<T, Error>) -> Result<Result<T, String>, Error> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(Error::Port(error)) => Err(Error::Port(error)),
        Err(Error::Broken(words)) => Ok(Err(words)),
        Err(other) => Ok(Err(other.to_string())),
    }
}
