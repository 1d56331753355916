//! Old versions of a stack: comparing two of them, and restoring one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use crate::context::Context;
use crate::domain::deployment::{Change, Diff, How};
use crate::domain::ids::StackId;
use crate::domain::names::StackAddress;
use crate::domain::resource_index::Differences;
use crate::services::caller::Caller;
use crate::services::keys::data_keys;
use crate::services::store::retry::Attempts;
use crate::services::store::stack_lookup;
use crate::services::store::stack_lookup::Located;
use crate::services::updates;
use crate::services::updates::direct::Made;
use crate::services::updates::{fold, takeover};
use crate::services::{Error, work};

/// Makes the deployment of an old version the next version, under the stack's current name. Cloud resources do not
/// change: the next `pulumi refresh` or `up` compares them with the restored state.
///
/// # Errors
/// `StackError::NoVersion`; `UpdateError::Held` while an update runs; `StackError::VersionOfProtected`.
pub async fn restore(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    version: u64,
) -> Result<Made, Error> {
    let mut attempts = Attempts::at("the stack");
    loop {
        attempts.begin()?;
        let located = takeover::locate_free(ctx, caller, address).await?;
        let next = updates::direct::prepare_restore(ctx, caller, &located, version).await?;
        if let Some(made) = updates::direct::take_head(ctx, located, next, "stack.restore").await? {
            return Ok(made);
        }
    }
}

/// The differences from version `one` of a stack to version `other`, both under the stack's current name, as a page
/// shows them: values if the caller may see them, and no secrets. A secret that was encrypted again counts as changed.
///
/// # Errors
/// `StackError::NoVersion`, `StackError::Pruned`.
pub async fn differences(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    one: u64,
    other: u64,
) -> Result<Differences, Error> {
    let Located { id, .. } = takeover::locate_settled(ctx, caller, address).await?;
    let sees_values = caller.sees_values(ctx, address).await?;
    let (one, other) = both(ctx, id, address, one, other).await?;
    let address = address.clone();
    let bytes = fold::weight([&one, &other], &[]);
    let differ = move || fold::shown_differences(&one, &other, &address, sees_values);
    work::with(bytes, fold::FACTOR, differ).await
}

/// The compressed deployments of two versions.
async fn both(
    ctx: &Context,
    id: StackId,
    address: &StackAddress,
    one: u64,
    other: u64,
) -> Result<(Bytes, Bytes), Error> {
    let read = async |version| {
        let version = stack_lookup::read_version(ctx, id, address, version).await?;
        stack_lookup::fetch_snapshot(ctx, &version.snapshot, fold::FACTOR).await
    };
    futures::try_join!(read(one), read(other))
}

/// The differences from version `one` of a stack to version `other`, both under the stack's current name. Secrets are
/// decrypted for the comparison, but never returned. Secrets that this server cannot decrypt differ if their ciphertexts
/// do.
///
/// # Errors
/// `StackError::NoVersion`.
pub async fn compare(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    one: u64,
    other: u64,
) -> Result<Diff, Error> {
    let Located { id, .. } = takeover::locate_settled(ctx, caller, address).await?;
    let (one, other) = both(ctx, id, address, one, other).await?;
    let address = address.clone();
    let bytes = fold::weight([&one, &other], &[]);
    let differ = move || fold::differences(&one, &other, &address);
    let mut diff = work::with(bytes, fold::FACTOR, differ).await?;
    for (_, changes) in &mut diff.changed {
        *changes = without_equal_secrets(ctx, id, std::mem::take(changes)).await?;
    }
    diff.changed.retain(|(_, changes)| !changes.is_empty());
    diff.deployment = without_equal_secrets(ctx, id, diff.deployment).await?;
    Ok(diff)
}

async fn without_equal_secrets(
    ctx: &Context,
    stack: StackId,
    changes: Vec<Change>,
) -> Result<Vec<Change>, Error> {
    let mut differing = Vec::with_capacity(changes.len());
    for change in changes {
        let is_equal = match &change.how {
            How::Sealed(one, other) => same_secret(ctx, stack, one, other).await?,
            How::Added | How::Removed | How::Changed => false,
        };
        if !is_equal {
            differing.push(change);
        }
    }
    Ok(differing)
}

async fn same_secret(ctx: &Context, stack: StackId, one: &str, other: &str) -> Result<bool, Error> {
    let (Ok(one), Ok(other)) = (STANDARD.decode(one), STANDARD.decode(other)) else { return Ok(false) };
    match data_keys::decrypt(ctx, stack, vec![one, other]).await {
        Ok(opened) => Ok(opened.first() == opened.get(1)),
        // Another server encrypted them.
        Err(Error::Invalid(_)) => Ok(false),
        Err(error) => Err(error),
    }
}
