//! What an organization demands of the labels of its states: one document. Every change names the version that it
//! replaces.

use crate::context::Context;
use crate::domain::names::OrgName;
use crate::domain::tfstate::{LabelPolicy, Labels};
use crate::layout::{Stored, StoredLabelPolicy};
use crate::ports::Expect;
use crate::services::caller::Caller;
use crate::services::error::{InvalidInput, StateError};
use crate::services::{Error, store};

/// The policy of an organization; `None` if none was ever set. One read.
///
/// # Errors
/// `AccessError::NoOrg`.
pub async fn get(ctx: &Context, caller: &Caller, org: &OrgName) -> Result<Option<StoredLabelPolicy>, Error> {
    caller.check_org(ctx, org).await?;
    Ok(read(ctx, org).await?.map(|stored| stored.value))
}

async fn read(ctx: &Context, org: &OrgName) -> Result<Option<Stored<StoredLabelPolicy>>, Error> {
    store::read(ctx, &StoredLabelPolicy::key(org)).await
}

/// Replaces the policy of an organization if it is still at `version`; 0 for the first one. A repeated call by the
/// same user succeeds. Existing states stay as they are: a report lists those that do not comply.
///
/// # Errors
/// `AccessError::NoOrg`, [`StateError::LabelPolicyMoved`], [`Error::Invalid`] for a policy that no state can satisfy.
pub async fn replace(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    version: u64,
    policy: LabelPolicy,
) -> Result<StoredLabelPolicy, Error> {
    caller.check_org(ctx, org).await?;
    policy.check().map_err(InvalidInput::from)?;
    let mut current = read(ctx, org).await?;
    let next = StoredLabelPolicy {
        version: version.saturating_add(1),
        at: ctx.now(),
        by: caller.requester(),
        policy,
    };
    if current.as_ref().map_or(0, |current| current.value.version) == version {
        let expect = current.as_ref().map_or(Expect::Absent, Stored::unchanged);
        let write = store::put(ctx, StoredLabelPolicy::key(org), expect, &next);
        match store::commit(ctx, vec![write]).await? {
            Ok(()) => return Ok(next),
            Err(refusal) => current = refusal.current.as_ref().map(Stored::read).transpose()?,
        }
    }
    match current.map(|current| current.value) {
        Some(there)
            if there.version == next.version && there.by == next.by && there.policy == next.policy =>
        {
            Ok(there)
        }
        current => Err(StateError::LabelPolicyMoved {
            version: current.as_ref().map_or(0, |current| current.version),
            changed: current.map(|current| (current.by.login, current.at)),
        }
        .into()),
    }
}

/// Checks that the labels of a state of this organization may change like this. One read.
///
/// # Errors
/// [`StateError::LabelPolicyViolated`] with the rule that they would break.
pub(super) async fn judge(
    ctx: &Context,
    org: &OrgName,
    before: &Labels,
    after: &Labels,
) -> Result<(), Error> {
    let Some(Stored { value, .. }) = read(ctx, org).await? else { return Ok(()) };
    value.policy.judge(before, after).map_err(|violation| {
        StateError::LabelPolicyViolated {
            org: org.clone(),
            version: value.version,
            violation: Box::new(violation),
        }
        .into()
    })
}
