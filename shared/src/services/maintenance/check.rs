//! Checks that everything in a store can be read and is consistent, for the operator.
//!
//! The check changes nothing. A server may be running: what changes during its check is checked again.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::check_states::Depth;
use super::walk::walk;
use super::{check_audit, check_dependencies, check_environments, check_states};
use crate::context::Context;
use crate::domain::deployment;
use crate::domain::ids::StackId;
use crate::domain::names::{OrgName, StackAddress};
use crate::domain::update::{Status, Update};
use crate::layout::{
    DeletedStack, Due, Record, Snapshot, StackEntry, StackHead, StackOutputs, StackVersion, StateEdge,
    StateGraph, Stored, named_blobs,
};
use crate::ports::{BlobKey, Inventory, Item, Order};
use crate::services::keys::data_keys;
use crate::services::store::compression::gunzip;
use crate::services::store::resource_index;
use crate::services::store::stack_lookup;
use crate::services::updates::publish;
use crate::services::work::in_background;
use crate::services::{Error, store, updates};

/// Checks of a stack that keeps changing, at most. Then the problems of the last one are reported.
const ATTEMPTS_MAX: usize = 3;

/// The result of checking one stack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StackReport {
    /// The address, if the head can be read.
    pub address: Option<StackAddress>,
    /// Whether it was deleted, and can be undeleted.
    pub is_deleted: bool,
    /// The number of versions that were checked.
    pub versions: u64,
    /// The problems, as text.
    pub problems: Vec<String>,
}

/// The ids of all stacks, including deleted ones.
///
/// # Errors
/// Those of the ports.
pub async fn stacks(ctx: &Context, inventory: &dyn Inventory) -> Result<BTreeSet<StackId>, Error> {
    let ids = walk(ctx, inventory, "STACK#", async |item| Ok(StackHead::stack_in(&item.key).ok()));
    Ok(ids.await?.into_iter().collect())
}

/// Checks one stack: its head, every stored version with its blob and deployment, its outputs, its data keys, and the
/// log of a running update.
///
/// # Errors
/// Those of the ports. Problems of the stack are in the report.
pub async fn stack(ctx: &Context, id: StackId) -> Result<StackReport, Error> {
    stack_to(ctx, id, Depth::Blobs).await
}

async fn stack_to(ctx: &Context, id: StackId, depth: Depth) -> Result<StackReport, Error> {
    let key = StackHead::key(id);
    let mut attempts = 0;
    loop {
        attempts += 1;
        let before = store::get(ctx, &key).await?;
        let report = check_one(ctx, id, before.as_ref(), depth).await?;
        let after = store::get(ctx, &key).await?;
        let is_same = before.map(|item| item.revision) == after.map(|item| item.revision);
        if report.problems.is_empty() || is_same || attempts == ATTEMPTS_MAX {
            return Ok(report);
        }
    }
}

async fn check_one(
    ctx: &Context,
    id: StackId,
    head: Option<&Item>,
    depth: Depth,
) -> Result<StackReport, Error> {
    let mut report = StackReport::default();
    let Some(item) = head else {
        report.problems.push(format!("stack {id} has no head"));
        return Ok(report);
    };
    let head = match StackHead::decode(&item.value) {
        Ok(head) => head,
        Err(error) => {
            report.problems.push(format!("the head of stack {id}: {error}"));
            return Ok(report);
        }
    };
    report.address = Some(head.address.clone());
    report.is_deleted = head.deleted.is_some();
    let name = match head.deleted {
        None => store::get(ctx, &StackEntry::key(&head.address)).await?,
        Some(_) => match store::get(ctx, &DeletedStack::key(&head.address, id)).await? {
            Some(deleted) => Some(deleted),
            // It is being erased, or was deleted before stacks could be undeleted: it need not be complete.
            None => return Ok(report),
        },
    };
    let leads_here = match (&name, head.deleted) {
        (None, _) => Ok(false),
        (Some(name), None) => StackEntry::decode(&name.value).map(|name| name.id == id),
        (Some(deleted), Some(_)) => DeletedStack::decode(&deleted.value).map(|deleted| deleted.name.id == id),
    };
    match leads_here {
        Ok(true) => {}
        Ok(false) => report.problems.push("its name does not lead to it".to_owned()),
        Err(error) => report.problems.push(format!("its name: {error}")),
    }
    check_versions(ctx, id, &head, depth, &mut report).await?;
    let outputs = async {
        let Some(item) = store::get(ctx, &StackOutputs::key(id)).await? else { return Ok(head.version == 0) };
        let (outputs, tail) = StackOutputs::decode_with(&item.value)?;
        match depth {
            Depth::Items => Ok(true),
            Depth::Blobs => store::fetch(ctx, &outputs.payload, tail).await.map(|_| true),
        }
    };
    match found(outputs.await)? {
        Ok(true) => {}
        Ok(false) => report.problems.push("it has no outputs".to_owned()),
        Err(words) => report.problems.push(format!("its outputs: {words}")),
    }
    report.problems.extend(data_keys::key_problems(ctx, id.into()).await?);
    // A program that does not know the mark may have begun the update, so a missing mark is not a problem.
    let is_marked = name.filter(|_| head.deleted.is_none()).map(|name| StackEntry::decode(&name.value));
    if head.running.is_none() && matches!(is_marked, Some(Ok(StackEntry { is_updating: true, .. }))) {
        report.problems.push("its name is marked as held by an update, but no update holds it".to_owned());
    }
    if head.hold.is_none() && matches!(is_marked, Some(Ok(StackEntry { is_held: true, .. }))) {
        report.problems.push("its name is marked as held by a person, but no person holds it".to_owned());
    }
    if let Some(running) = head.running {
        let update = store::get(ctx, &Update::key(running)).await?;
        match update.map(|item| Stored::<Update>::read(&item)) {
            None => report.problems.push(format!("the update {running} that holds it has no record")),
            Some(Err(error)) => report.problems.push(format!("the update {running} that holds it: {error}")),
            Some(Ok(update)) => match update.value.status {
                Status::Running { .. } | Status::Sealed { .. } => {
                    let log = publish::preview_of_log(ctx, running, head.snapshot.as_ref()).await.map(drop);
                    if let Err(words) = found(log)? {
                        report.problems.push(format!("the log of the update {running}: {words}"));
                    }
                }
                Status::NotStarted | Status::Ended { .. } => {
                    report.problems.push(format!("the update {running} holds it but does not run"));
                }
            },
        }
    }
    Ok(report)
}

async fn check_versions(
    ctx: &Context,
    id: StackId,
    head: &StackHead,
    depth: Depth,
    report: &mut StackReport,
) -> Result<(), Error> {
    let mut query = StackVersion::of_stack(id).query(None, Order::Ascending, 100);
    let mut seen = BTreeSet::new();
    let mut last: Option<(u64, Option<Snapshot>)> = None;
    loop {
        let page = store::query(ctx, &query).await?;
        query.after = page.items.last().map(|item| item.key.sort.clone());
        for item in &page.items {
            report.versions += 1;
            let number = match StackVersion::number_in(&item.key) {
                Ok(number) => number,
                Err(error) => {
                    report.problems.push(error.to_string());
                    continue;
                }
            };
            // The oldest versions are deleted first, so only the first one left may lack its predecessor.
            if let Some((before, _)) = &last
                && before + 1 != number
            {
                report.problems.push(format!("versions {} to {} are missing", before + 1, number - 1));
            }
            let version = match StackVersion::decode(&item.value) {
                Ok(version) => version,
                Err(error) => {
                    report.problems.push(format!("version {number}: {error}"));
                    last = Some((number, None));
                    continue;
                }
            };
            if version.version != number {
                report
                    .problems
                    .push(format!("the record of version {number} has the number {}", version.version));
            }
            if depth == Depth::Blobs && seen.insert(version.snapshot.blob.clone()) {
                let deployment = check_deployment(ctx, &version.snapshot).await;
                if let Err(words) = found(deployment)? {
                    report.problems.push(format!("version {number}: {words}"));
                }
            }
            if depth == Depth::Blobs
                && let Some(index) = &version.snapshot.index
                && seen.insert(version.snapshot.index_blob(index))
                && let Err(words) = found(resource_index::check(ctx, &version.snapshot, index).await)?
            {
                report.problems.push(format!("version {number}: {words}"));
            }
            last = Some((number, Some(version.snapshot)));
        }
        if !page.more {
            break;
        }
    }
    let (number, snapshot) = last.map_or((0, None), |(number, snapshot)| (number, snapshot));
    if head.version != number {
        report
            .problems
            .push(format!("its head is at version {}, but the last one is {number}", head.version));
    } else if !is_same_snapshot(head.snapshot.as_ref(), snapshot.as_ref()) {
        report.problems.push(format!("its head differs from version {number}"));
    }
    Ok(())
}

/// Whether the head has the snapshot of the last version. A program that does not know indexes drops them from the head.
fn is_same_snapshot(of_head: Option<&Snapshot>, of_version: Option<&Snapshot>) -> bool {
    match (of_head, of_version) {
        (Some(head), Some(version)) => {
            let index = head.index.as_ref().and(version.index.clone());
            *head == Snapshot { index, ..version.clone() }
        }
        (head, version) => head == version,
    }
}

/// Checks that a deployment is the published one, and is complete.
async fn check_deployment(ctx: &Context, snapshot: &Snapshot) -> Result<(), Error> {
    #[derive(Deserialize)]
    struct Marked {
        deployment: Option<MarkedDeployment>,
    }
    #[derive(Deserialize)]
    struct MarkedDeployment {
        metadata: Option<Mark>,
    }
    #[derive(Deserialize)]
    struct Mark {
        integrity_error: Option<IgnoredAny>,
    }
    let gzip = stack_lookup::fetch_snapshot(ctx, snapshot, 0).await?;
    let expected = snapshot.clone();
    in_background(move || {
        let broken = |words: String| Error::Broken(format!("the deployment in {}: {words}", expected.blob));
        let text = gunzip(&gzip)?;
        if (gzip.len() as u64, text.len() as u64) != (expected.bytes_gzip, expected.bytes_text) {
            return Err(broken("its length differs from the one in its item".to_owned()));
        }
        let inspection = deployment::inspect(&text).map_err(|error| broken(error.to_string()))?;
        if inspection.resource_count as u64 != expected.resource_count {
            return Err(broken("its number of resources differs from the one in its item".to_owned()));
        }
        let Some(rule) = inspection.integrity_error else { return Ok(()) };
        let marked: Marked = serde_json::from_slice(&text).map_err(|error| broken(error.to_string()))?;
        let mark = marked.deployment.and_then(|deployment| deployment.metadata?.integrity_error);
        if mark.is_some() { Ok(()) } else { Err(broken(format!("{rule}, but it is not marked as damaged"))) }
    })
    .await
}

/// Separates problems of the stored data from a store that does not answer.
fn found<T>(result: Result<T, Error>) -> Result<Result<T, String>, Error> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(error @ (Error::Port(_) | Error::MasterKey(_))) => Err(error),
        Err(Error::Broken(words)) => Ok(Err(words)),
        Err(other) => Ok(Err(other.to_string())),
    }
}

/// Checks that all items are consistent: each stack, each state, and what belongs to neither. Reads no blobs except
/// those of running updates.
///
/// # Errors
/// Those of the ports. Problems are in the result.
pub async fn items(ctx: &Context, inventory: &dyn Inventory) -> Result<Vec<String>, Error> {
    let mut problems = store(ctx, inventory).await?;
    for id in stacks(ctx, inventory).await? {
        let found = stack_to(ctx, id, Depth::Items).await?;
        problems.extend(found.problems.into_iter().map(|problem| format!("stack {id}: {problem}")));
    }
    for id in check_states::states(ctx, inventory).await? {
        let found = check_states::state_to(ctx, id, Depth::Items).await?;
        problems.extend(found.problems.into_iter().map(|problem| format!("state {id}: {problem}")));
    }
    Ok(problems)
}

/// Checks what belongs to no stack and no state: names that lead nowhere, edges between states, label policies, the
/// key that signs update tokens, due items, and the audit trails.
///
/// # Errors
/// Those of the ports. Problems are in the result, as text.
pub async fn store(ctx: &Context, inventory: &dyn Inventory) -> Result<Vec<String>, Error> {
    let mut problems = Vec::new();
    let mut with_edges: BTreeSet<OrgName> = BTreeSet::new();
    let of_orgs = walk(ctx, inventory, "ORG#", async |item| {
        let Some(org) = item.key.partition.strip_prefix("ORG#").and_then(|org| OrgName::parse(org).ok())
        else {
            return Ok(Some(OfOrg::Wrong(vec![format!("{:?} is not an organization", item.key.partition)])));
        };
        if item.key.sort.starts_with(&StateEdge::of_org(&org).sort) || item.key == StateGraph::key(&org) {
            return Ok(Some(OfOrg::Edges(org)));
        }
        let wrong = match check_name(ctx, &org, item).await? {
            Some(wrong) => Some(wrong),
            None => check_states::check_item(ctx, &org, item).await?,
        };
        let mut wrong: Vec<String> = wrong.into_iter().collect();
        wrong.extend(check_environments::check_item(ctx, &org, item).await?);
        Ok(Some(OfOrg::Wrong(wrong)))
    });
    for found in of_orgs.await? {
        match found {
            OfOrg::Wrong(words) => problems.extend(words),
            OfOrg::Edges(org) => drop(with_edges.insert(org)),
        }
    }
    for org in &with_edges {
        problems.extend(check_dependencies::graph(ctx, org).await?);
    }
    walk(ctx, inventory, "DUE#", async |item| {
        Ok(Due::decode(&item.value).err().map(|error| format!("{:?}: {error}", item.key)))
    })
    .await
    .map(|found| problems.extend(found))?;
    if let Err(words) = found(updates::tokens::check_signer(ctx).await)? {
        problems.push(format!("the key that signs update tokens: {words}"));
    }
    problems.extend(check_audit::problems(ctx, inventory).await?);
    Ok(problems)
}

/// The result of checking one item of an organization.
enum OfOrg {
    /// The problems of the item.
    Wrong(Vec<String>),
    /// The organization has edges between states, which are checked together.
    Edges(OrgName),
}

/// The problem with the name of a stack, if it has one.
async fn check_name(ctx: &Context, org: &OrgName, item: &Item) -> Result<Option<String>, Error> {
    let Ok((project, stack)) = StackEntry::name_in(&item.key) else { return Ok(None) };
    let address = StackAddress { org: org.clone(), project, stack };
    let name = match StackEntry::decode(&item.value) {
        Ok(name) => name,
        Err(error) => return Ok(Some(format!("the name {address}: {error}"))),
    };
    let head = found(store::read(ctx, &StackHead::key(name.id)).await)?;
    // The report of the stack includes a head that cannot be read.
    let Ok(head) = head else { return Ok(None) };
    let is_it = head.is_some_and(|head| head.value.address == address && head.value.deleted.is_none());
    if is_it || store::get(ctx, &item.key).await?.is_none_or(|now| now.revision != item.revision) {
        return Ok(None);
    }
    Ok(Some(format!("the name {address} leads to no stack of that name")))
}

/// The blobs that no item names.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Orphans {
    /// The blobs, in the order of their keys.
    pub blobs: Vec<BlobKey>,
    /// Items that cannot be read, as text. A blob that only such an item names is listed as an orphan.
    pub problems: Vec<String>,
}

/// Finds the blobs that no item names, which failed requests left behind. A running update may be about to name one
/// when it is published.
///
/// # Errors
/// Those of the ports.
pub async fn orphans(ctx: &Context, inventory: &dyn Inventory) -> Result<Orphans, Error> {
    // The blobs first: a blob that is stored later is not in this list, and one that is named later is found as
    // named.
    let mut blobs = store::inventory_blobs(ctx, inventory).await?;
    let named = walk(ctx, inventory, "", async |item| {
        Ok(Some(named_blobs(item).map_err(|error| format!("{:?}: {error}", item.key))))
    });
    let mut problems = Vec::new();
    for named in named.await? {
        match named {
            Ok(named) => {
                for named in named {
                    blobs.remove(&named.key);
                }
            }
            Err(words) => problems.push(words),
        }
    }
    Ok(Orphans { blobs: blobs.into_iter().collect(), problems })
}
