//! Rotates keys: wraps every key again under the newest master key, replaces the key that signs update
//! tokens, and, if the operator asks for it, all data keys.
//!
//! Each put requires that the wrapped key has not changed, so this can be interrupted anywhere and run again:
//! keys under the newest master key stay as they are.

use std::collections::HashSet;

use super::data_keys;
use crate::context::Context;
use crate::layout::{Record, SignInKey, Signer, WrappedDataKey, put_bytes};
use crate::ports::{Expect, Inventory, Item, KeyContext, WrappedKey};
use crate::services::identity::sealing;
use crate::services::store::retry::Attempts;
use crate::services::{Error, store, updates};

/// The counts of a rotation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rewrapped {
    /// Keys that were checked.
    pub keys: u64,
    /// Keys of these that were under an older master key.
    pub rewrapped: u64,
}

/// Wraps every data key under the newest master key. If the key that signs update tokens is under an older
/// one, replaces it: a holder of a copy must not sign any more.
///
/// # Errors
/// Errors of the ports; [`Error::Broken`] for a key that no master key opens: keep the older master keys
/// then.
pub async fn rewrap(
    ctx: &Context,
    inventory: &dyn Inventory,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Rewrapped, Error> {
    let mut done = Rewrapped::default();
    let mut from = None;
    loop {
        let part = store::inventory_items(ctx, inventory, "KEY#", from.as_ref()).await?;
        for item in &part.found {
            let owner = WrappedDataKey::owner_in(&item.key)?;
            rewrap_one::<WrappedDataKey>(ctx, item.clone(), &data_keys::context(owner), &mut done).await?;
            progress(done.keys);
        }
        from = part.next;
        if from.is_none() {
            break;
        }
    }
    if let Some(item) = store::get(ctx, &SignInKey::key()).await? {
        rewrap_one::<SignInKey>(ctx, item, &sealing::context(), &mut done).await?;
    }
    if let Some(item) = store::get(ctx, &Signer::key()).await? {
        done.keys += 1;
        let (signer, wrapped) = Signer::decode_with(&item.value)?;
        let context = updates::tokens::context(&signer.key);
        if store::rewrap_key(ctx, &WrappedKey(wrapped.to_vec()), &context).await?.is_some() {
            updates::tokens::renew_signer(ctx).await?;
            done.rewrapped += 1;
        }
    }
    Ok(done)
}

/// Creates a new data key for each owner that has one, and returns the number of owners. The server encrypts
/// new secrets with it; the older keys still decrypt theirs. Servers that cache an older key use it for some
/// more minutes.
///
/// # Errors
/// Errors of the ports.
pub async fn renew_data_keys(
    ctx: &Context,
    inventory: &dyn Inventory,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<u64, Error> {
    let mut owners = HashSet::new();
    let mut from = None;
    loop {
        let part = store::inventory_items(ctx, inventory, "KEY#", from.as_ref()).await?;
        owners.extend(part.found.iter().filter_map(|item| WrappedDataKey::owner_in(&item.key).ok()));
        from = part.next;
        if from.is_none() {
            break;
        }
    }
    let mut renewed = 0;
    for owner in owners {
        renewed += u64::from(data_keys::renew_newest_key(ctx, owner).await?.is_some());
        progress(renewed);
    }
    Ok(renewed)
}

async fn rewrap_one<T: Record>(
    ctx: &Context,
    mut item: Item,
    context: &KeyContext,
    done: &mut Rewrapped,
) -> Result<(), Error> {
    done.keys += 1;
    let mut attempts = Attempts::at("a data key");
    loop {
        attempts.begin()?;
        let (record, wrapped) = T::decode_with(&item.value)?;
        let wrapped = store::rewrap_key(ctx, &WrappedKey(wrapped.to_vec()), context).await;
        let named = |error| match error {
            Error::Broken(detail) => Error::Broken(format!("{:?}: {detail}", item.key)),
            other => other,
        };
        let Some(wrapped) = wrapped.map_err(named)? else { return Ok(()) };
        let expect = Expect::Revision(item.revision);
        let write = put_bytes(item.key.clone(), expect, ctx.ids.revision(), record.encode_with(&wrapped.0));
        if store::commit(ctx, vec![write]).await?.is_ok() {
            done.rewrapped += 1;
            return Ok(());
        }
        // Changed or deleted meanwhile.
        match store::get(ctx, &item.key).await? {
            Some(now) => item = now,
            None => return Ok(()),
        }
    }
}
