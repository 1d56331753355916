//! Finds environments and their revisions. Reads only.

use crate::context::Context;
use crate::domain::names::{
    DEFAULT_ENVIRONMENT_PROJECT, EnvironmentAddress, EnvironmentTagName, LATEST, OrgName,
};
use crate::domain::role::Right;
use crate::layout::{EnvironmentHead, EnvironmentRevision, Record, Retracted, Stored};
use crate::services::caller::Caller;
use crate::services::error::{AccessError, EnvironmentError};
use crate::services::{Error, store};

/// Replacements that are followed from a retracted revision, at most.
const REPLACEMENTS_MAX: usize = 16;

/// The head of an environment, without a check of the caller's rights.
pub(crate) async fn head_of(
    ctx: &Context,
    address: &EnvironmentAddress,
) -> Result<Option<Stored<EnvironmentHead>>, Error> {
    store::read(ctx, &EnvironmentHead::key(address)).await
}

/// The head of an environment for a caller. One read.
///
/// # Errors
/// [`EnvironmentError::NotFound`] if it does not exist, and the same if the caller may not see its organization;
/// `AccessError::NotAllowed`.
pub async fn locate(
    ctx: &Context,
    caller: &Caller,
    address: &EnvironmentAddress,
) -> Result<Stored<EnvironmentHead>, Error> {
    let missing = || Error::Environment(EnvironmentError::NotFound(address.clone()));
    caller.admit(caller.on_environment(ctx, address).await, missing)?;
    head_of(ctx, address).await?.ok_or_else(missing)
}

/// Refuses a caller who may not see an environment, as if it did not exist.
///
/// # Errors
/// [`EnvironmentError::NotFound`].
pub(in crate::services) async fn check_seen(
    ctx: &Context,
    caller: &Caller,
    address: &EnvironmentAddress,
) -> Result<(), Error> {
    match caller.on_environment(ctx, address).await {
        Ok(standing) if standing.has(Right::See) => Ok(()),
        Ok(_) | Err(Error::Access(AccessError::NoOrg(_))) => {
            Err(EnvironmentError::NotFound(address.clone()).into())
        }
        Err(error) => Err(error),
    }
}

/// Parses the name of an environment within an organization, with or without a revision.
///
/// # Errors
/// [`Error::Invalid`] for a name, [`EnvironmentError::NotARevision`].
pub fn parse(org: &OrgName, name: &str) -> Result<(EnvironmentAddress, RevisionRef), Error> {
    let (path, which) = match name.split_once('@') {
        Some((path, version)) => (path, RevisionRef::parse(version)?),
        None => (name, RevisionRef::Latest),
    };
    let (project, name) = path.split_once('/').unwrap_or((DEFAULT_ENVIRONMENT_PROJECT, path));
    Ok((EnvironmentAddress::parse(org.as_str(), project, name)?, which))
}

/// A reference to a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RevisionRef {
    /// The current revision.
    Latest,
    /// A revision by its number.
    Number(u64),
    /// A revision by its tag.
    Tag(EnvironmentTagName),
}

impl RevisionRef {
    /// Parses `latest`, a number, or a tag.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a name, [`EnvironmentError::NotARevision`].
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text == LATEST {
            return Ok(Self::Latest);
        }
        if !text.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(Self::Tag(EnvironmentTagName::parse(text)?));
        }
        let number = text.parse().ok().filter(|number| *number > 0);
        number.map(Self::Number).ok_or_else(|| EnvironmentError::NotARevision.into())
    }
}

impl std::fmt::Display for RevisionRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Latest => f.write_str(LATEST),
            Self::Number(number) => write!(f, "revision {number}"),
            Self::Tag(tag) => write!(f, "revision tag {tag}"),
        }
    }
}

/// The number of the revision that a reference leads to.
pub(super) fn number(
    address: &EnvironmentAddress,
    head: &EnvironmentHead,
    which: &RevisionRef,
) -> Result<u64, Error> {
    let found = match which {
        RevisionRef::Latest => Some(head.revision),
        RevisionRef::Number(number) => Some(*number).filter(|number| *number <= head.revision),
        RevisionRef::Tag(tag) => head.revision_tags.get(tag).map(|tag| tag.revision),
    };
    found.ok_or_else(|| {
        EnvironmentError::NoRevision { environment: address.clone(), revision: which.to_string() }.into()
    })
}

/// Reads a revision as it is stored, retracted or not.
pub(crate) async fn read(
    ctx: &Context,
    address: &EnvironmentAddress,
    head: &EnvironmentHead,
    number: u64,
) -> Result<(EnvironmentRevision, String), Error> {
    let item = store::get(ctx, &EnvironmentRevision::key(head.id, number)).await?;
    let item = item.ok_or_else(|| Error::Broken(format!("revision {number} of {address} is missing")))?;
    let (record, text) = EnvironmentRevision::decode_with(&item.value)?;
    let text = String::from_utf8(text.to_vec())
        .map_err(|_| Error::Broken(format!("revision {number} of {address} is not valid UTF-8")))?;
    Ok((record, text))
}

/// The number and the text of the referenced revision, or of its replacement if it is retracted.
pub(crate) async fn text(
    ctx: &Context,
    address: &EnvironmentAddress,
    head: &EnvironmentHead,
    which: &RevisionRef,
) -> Result<(u64, String), Error> {
    let mut number = number(address, head, which)?;
    for _ in 0..REPLACEMENTS_MAX {
        let (record, text) = read(ctx, address, head, number).await?;
        match record.retracted {
            Some(Retracted { replacement, .. }) => number = replacement,
            None => return Ok((number, text)),
        }
    }
    Err(EnvironmentError::AllRetracted { environment: address.clone(), revision: which.to_string() }.into())
}
