//! Revisions of environments: listing and retracting them.

use super::lookup::{RevisionRef, locate, number, read};
use crate::context::Context;
use crate::domain::names::{EnvironmentAddress, LATEST};
use crate::layout::{EnvironmentHead, EnvironmentRevision, Record, Retracted, check};
use crate::ports::{Expect, Order};
use crate::services::caller::Caller;
use crate::services::error::EnvironmentError;
use crate::services::store::retry::Attempts;
use crate::services::{Error, store};

/// Revisions on one page of a list, at most.
pub const LIST_PAGE: usize = 500;

/// The longest reason for a retraction, in bytes.
const REASON_BYTES_MAX: usize = 1024;

/// A revision in a list.
#[derive(Debug)]
pub struct Listed {
    pub number: u64,
    pub record: EnvironmentRevision,
    /// The tags that lead to it.
    pub tags: Vec<String>,
}

/// One page of an environment's revisions, newest first, from the one below `before`. Two reads.
///
/// # Errors
/// As [`locate`].
pub async fn list(
    ctx: &Context,
    caller: &Caller,
    address: &EnvironmentAddress,
    before: Option<u64>,
    count: usize,
) -> Result<Vec<Listed>, Error> {
    let head = locate(ctx, caller, address).await?.value;
    // The client sends 0 to request all.
    let before = before.filter(|before| *before > 0);
    let after = before.map(|before| EnvironmentRevision::key(head.id, before).sort.clone());
    let limit = count.clamp(1, LIST_PAGE);
    let query = EnvironmentRevision::of_environment(head.id).query(after, Order::Descending, limit);
    let mut listed = Vec::new();
    for item in store::query(ctx, &query).await?.items {
        let number = EnvironmentRevision::number_in(&item.key)?;
        let latest = (number == head.revision).then(|| LATEST.to_owned());
        let named = head.revision_tags.iter().filter(|(_, tag)| tag.revision == number);
        let tags = latest.into_iter().chain(named.map(|(name, _)| name.to_string())).collect();
        listed.push(Listed { number, record: EnvironmentRevision::decode(&item.value)?, tags });
    }
    Ok(listed)
}

/// Retracts a revision, and sets its replacement: the current one, unless another is named. The current revision
/// cannot be retracted. Retracting a revision again changes nothing.
///
/// # Errors
/// As [`locate`]; [`EnvironmentError::NoRevision`], [`EnvironmentError::RetractCurrent`],
/// [`EnvironmentError::ReplacesItself`], [`EnvironmentError::ReplacementRetracted`],
/// [`EnvironmentError::ReasonTooLong`].
pub async fn retract(
    ctx: &Context,
    caller: &Caller,
    address: &EnvironmentAddress,
    which: &RevisionRef,
    replacement: Option<u64>,
    reason: String,
) -> Result<(), Error> {
    if reason.len() > REASON_BYTES_MAX {
        return Err(EnvironmentError::ReasonTooLong { bytes_max: REASON_BYTES_MAX }.into());
    }
    let mut attempts = Attempts::at("the environment");
    loop {
        attempts.begin()?;
        let head = locate(ctx, caller, address).await?;
        let retracted = number(address, &head.value, which)?;
        if retracted == head.value.revision {
            return Err(EnvironmentError::RetractCurrent.into());
        }
        let replacement = replacement.unwrap_or(head.value.revision);
        number(address, &head.value, &RevisionRef::Number(replacement))?;
        if replacement == retracted || replacement == 0 {
            return Err(EnvironmentError::ReplacesItself.into());
        }
        let (in_its_place, _) = read(ctx, address, &head.value, replacement).await?;
        if in_its_place.retracted.is_some() {
            return Err(EnvironmentError::ReplacementRetracted(replacement).into());
        }
        let key = EnvironmentRevision::key(head.value.id, retracted);
        let item = store::get(ctx, &key).await?;
        let item =
            item.ok_or_else(|| Error::Broken(format!("revision {retracted} of {address} is missing")))?;
        let (record, text) = EnvironmentRevision::decode_with(&item.value)?;
        if record.retracted.is_some() {
            return Ok(());
        }
        let word =
            Retracted { replacement, at: ctx.now(), by: caller.user.login.clone(), reason: reason.clone() };
        let next = EnvironmentRevision { retracted: Some(word), ..record };
        let expect = Expect::Revision(item.revision);
        let writes = vec![
            store::put_with(ctx, key, expect, &next, &text),
            check(EnvironmentHead::key(address), head.unchanged()),
        ];
        if store::commit(ctx, writes).await?.is_ok() {
            return Ok(());
        }
    }
}
