//! Tags of environments, and tags of their revisions. All of them are stored in the environment's head.

use std::collections::BTreeMap;

use super::lookup::{RevisionRef, locate};
use crate::context::Context;
use crate::domain::names::{EnvironmentAddress, EnvironmentTagName};
use crate::layout::{EnvironmentHead, EnvironmentTag, RevisionTag};
use crate::services::caller::Caller;
use crate::services::error::EnvironmentError;
use crate::services::{Error, environments};

/// Tags of each kind that an environment may have, at most.
pub const TAGS_MAX: usize = 200;

/// The longest value of a tag, in bytes.
pub const VALUE_BYTES_MAX: usize = 256;

fn missing(address: &EnvironmentAddress, name: &EnvironmentTagName) -> Error {
    EnvironmentError::NoTag { environment: address.clone(), tag: name.clone() }.into()
}

fn exists(name: &EnvironmentTagName) -> Error {
    EnvironmentError::TagExists(name.clone()).into()
}

type Tags<T> = BTreeMap<EnvironmentTagName, T>;

fn check_new<T>(tags: &Tags<T>, name: &EnvironmentTagName) -> Result<(), Error> {
    if tags.contains_key(name) {
        return Err(exists(name));
    }
    if tags.len() >= TAGS_MAX {
        return Err(EnvironmentError::TooManyTags { max: TAGS_MAX }.into());
    }
    Ok(())
}

fn take<T>(tags: &mut Tags<T>, address: &EnvironmentAddress, name: &EnvironmentTagName) -> Result<T, Error> {
    tags.remove(name).ok_or_else(|| missing(address, name))
}

fn find<T: Clone>(
    tags: &Tags<T>,
    address: &EnvironmentAddress,
    name: &EnvironmentTagName,
) -> Result<T, Error> {
    tags.get(name).cloned().ok_or_else(|| missing(address, name))
}

fn check_value(value: &str) -> Result<(), Error> {
    if value.len() <= VALUE_BYTES_MAX {
        return Ok(());
    }
    Err(EnvironmentError::TagTooLong { bytes: value.len(), bytes_max: VALUE_BYTES_MAX }.into())
}

/// Adds a tag to an environment.
///
/// # Errors
/// As [`locate`]; [`EnvironmentError::TagExists`], [`EnvironmentError::TooManyTags`],
/// [`EnvironmentError::TagTooLong`].
pub async fn add(
    ctx: &Context,
    caller: &Caller,
    address: &EnvironmentAddress,
    name: &EnvironmentTagName,
    value: &str,
) -> Result<EnvironmentTag, Error> {
    check_value(value)?;
    let now = ctx.now();
    let by = caller.user.login.clone();
    environments::edit(ctx, caller, address, |head| {
        check_new(&head.tags, name)?;
        let tag = EnvironmentTag { value: value.to_owned(), created: now, modified: now, by: by.clone() };
        head.tags.insert(name.clone(), tag.clone());
        Ok(tag)
    })
    .await
}

/// Changes the name and the value of a tag, if it still has the expected value.
///
/// # Errors
/// As [`locate`]; [`EnvironmentError::NoTag`], [`EnvironmentError::TagExists`], [`EnvironmentError::TagTooLong`],
/// [`EnvironmentError::Moved`].
pub async fn replace(
    ctx: &Context,
    caller: &Caller,
    address: &EnvironmentAddress,
    name: &EnvironmentTagName,
    expected: Option<&str>,
    (new_name, new_value): (&EnvironmentTagName, &str),
) -> Result<EnvironmentTag, Error> {
    check_value(new_value)?;
    let now = ctx.now();
    environments::edit(ctx, caller, address, |head| {
        let tag = take(&mut head.tags, address, name)?;
        if expected.is_some_and(|expected| expected != tag.value) {
            return Err(EnvironmentError::Moved(address.clone()).into());
        }
        check_new(&head.tags, new_name)?;
        let by = caller.user.login.clone();
        let tag = EnvironmentTag { value: new_value.to_owned(), modified: now, by, ..tag };
        head.tags.insert(new_name.clone(), tag.clone());
        Ok(tag)
    })
    .await
}

/// Removes a tag.
///
/// # Errors
/// As [`locate`]; [`EnvironmentError::NoTag`].
pub async fn remove(
    ctx: &Context,
    caller: &Caller,
    address: &EnvironmentAddress,
    name: &EnvironmentTagName,
) -> Result<(), Error> {
    environments::edit(ctx, caller, address, |head| take(&mut head.tags, address, name).map(drop)).await
}

/// Reads a tag of an environment.
///
/// # Errors
/// As [`locate`]; [`EnvironmentError::NoTag`].
pub async fn get(
    ctx: &Context,
    caller: &Caller,
    address: &EnvironmentAddress,
    name: &EnvironmentTagName,
) -> Result<EnvironmentTag, Error> {
    find(&locate(ctx, caller, address).await?.value.tags, address, name)
}

/// Adds a tag to a revision: to the current one, or to that with the number.
///
/// # Errors
/// As [`locate`]; [`EnvironmentError::TagExists`], [`EnvironmentError::TooManyTags`],
/// [`EnvironmentError::NoRevision`].
pub async fn add_to_revision(
    ctx: &Context,
    caller: &Caller,
    address: &EnvironmentAddress,
    name: &EnvironmentTagName,
    revision: Option<u64>,
) -> Result<(), Error> {
    let now = ctx.now();
    environments::edit(ctx, caller, address, |head| {
        check_new(&head.revision_tags, name)?;
        let revision = named(address, head, revision)?;
        let by = caller.user.login.clone();
        head.revision_tags.insert(name.clone(), RevisionTag { revision, created: now, modified: now, by });
        Ok(())
    })
    .await
}

/// Moves a tag to another revision: to the current one, or to that with the number.
///
/// # Errors
/// As [`locate`]; [`EnvironmentError::NoTag`], [`EnvironmentError::NoRevision`].
pub async fn move_to_revision(
    ctx: &Context,
    caller: &Caller,
    address: &EnvironmentAddress,
    name: &EnvironmentTagName,
    revision: Option<u64>,
) -> Result<(), Error> {
    let now = ctx.now();
    environments::edit(ctx, caller, address, |head| {
        let revision = named(address, head, revision)?;
        let tag = head.revision_tags.get_mut(name).ok_or_else(|| missing(address, name))?;
        *tag = RevisionTag { revision, modified: now, by: caller.user.login.clone(), created: tag.created };
        Ok(())
    })
    .await
}

/// Removes a tag from its revision.
///
/// # Errors
/// As [`locate`]; [`EnvironmentError::NoTag`].
pub async fn remove_from_revision(
    ctx: &Context,
    caller: &Caller,
    address: &EnvironmentAddress,
    name: &EnvironmentTagName,
) -> Result<(), Error> {
    environments::edit(ctx, caller, address, |head| take(&mut head.revision_tags, address, name).map(drop))
        .await
}

/// The revision that a tag leads to. The tag of the current revision is `latest`.
///
/// # Errors
/// As [`locate`]; [`EnvironmentError::NoTag`], [`EnvironmentError::NumberIsNotATag`].
pub async fn of_revision(
    ctx: &Context,
    caller: &Caller,
    address: &EnvironmentAddress,
    which: &RevisionRef,
) -> Result<RevisionTag, Error> {
    let head = locate(ctx, caller, address).await?.value;
    match which {
        RevisionRef::Latest => Ok(latest(&head)),
        RevisionRef::Tag(name) => find(&head.revision_tags, address, name),
        RevisionRef::Number(_) => Err(EnvironmentError::NumberIsNotATag.into()),
    }
}

/// The tag `latest`, which leads to the current revision.
pub fn latest(head: &EnvironmentHead) -> RevisionTag {
    RevisionTag {
        revision: head.revision,
        created: head.created,
        modified: head.modified,
        by: head.created_by.clone(),
    }
}

fn named(address: &EnvironmentAddress, head: &EnvironmentHead, revision: Option<u64>) -> Result<u64, Error> {
    match revision {
        None => Ok(head.revision),
        Some(revision) if (1..=head.revision).contains(&revision) => Ok(revision),
        Some(revision) => {
            let revision = format!("revision {revision}");
            Err(EnvironmentError::NoRevision { environment: address.clone(), revision }.into())
        }
    }
}
