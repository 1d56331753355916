//! The stack configuration that the service stores: in an environment, which the stack's head names.

use crate::context::Context;
use crate::domain::names::{OrgName, StackAddress};
use crate::layout::{StackConfig, StackHead};
use crate::ports::Write;
use crate::services::audit::About;
use crate::services::caller::Caller;
use crate::services::environments;
use crate::services::environments::lookup::{RevisionRef, check_seen, head_of, parse};
use crate::services::error::{EnvironmentError, StackError};
use crate::services::store::retry::Attempts;
use crate::services::store::stack_lookup::{Located, locate};
use crate::services::{Error, audit, store};

/// The maximum length of a secrets provider's text, in bytes.
const PROVIDER_BYTES_MAX: usize = 16 << 10;

/// Returns where the configuration of a stack is stored; `None` if it is in a file of its project.
///
/// # Errors
/// Those of [`locate`].
pub async fn get(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
) -> Result<Option<StackConfig>, Error> {
    Ok(locate(ctx, caller, address).await?.head.value.config)
}

/// The writes that a new stack with stored configuration needs: those of a new environment, unless one of this name exists.
pub(super) async fn prepare(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    config: &StackConfig,
) -> Result<Vec<Write>, Error> {
    check_lengths(config)?;
    let (address, which) = parse(org, &config.environment)?;
    if which == RevisionRef::Latest {
        return environments::prepare_for_stack(ctx, caller, &address).await;
    }
    find(ctx, caller, org, config).await.map(|()| Vec::new())
}

fn check_lengths(config: &StackConfig) -> Result<(), Error> {
    let StackConfig { environment: _, secrets_provider, encrypted_key, encryption_salt } = config;
    for text in [secrets_provider, encrypted_key, encryption_salt] {
        if text.len() > PROVIDER_BYTES_MAX {
            return Err(StackError::ProviderTooLong { bytes_max: PROVIDER_BYTES_MAX }.into());
        }
    }
    Ok(())
}

/// Checks that the named revision exists, for a caller who may see the environment.
async fn find(ctx: &Context, caller: &Caller, org: &OrgName, config: &StackConfig) -> Result<(), Error> {
    let (address, which) = parse(org, &config.environment)?;
    check_seen(ctx, caller, &address).await?;
    let head = head_of(ctx, &address).await?;
    let head = head.ok_or_else(|| EnvironmentError::NotFound(address.clone()))?;
    environments::lookup::text(ctx, &address, &head.value, &which).await?;
    Ok(())
}

/// Sets where the configuration of a stack is stored: in an existing environment, or in its project again. A running
/// update is not affected, since its client read the configuration before it began.
///
/// # Errors
/// Those of [`locate`]; [`EnvironmentError::NotFound`], [`EnvironmentError::NoRevision`].
pub async fn set(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    config: Option<StackConfig>,
) -> Result<(), Error> {
    let mut attempts = Attempts::at("the stack");
    loop {
        attempts.begin()?;
        let Located { id, head } = locate(ctx, caller, address).await?;
        if let Some(config) = &config {
            check_lengths(config)?;
            find(ctx, caller, &address.org, config).await?;
        }
        if head.value.config == config {
            return Ok(());
        }
        let entry = audit::entry(ctx, "stack.config", &About::Stack(address));
        let rider = audit::ride(ctx, entry, head.value.trail.as_ref());
        let next = StackHead { config: config.clone(), trail: rider.mark(), ..head.value.clone() };
        let write = store::put(ctx, StackHead::key(id), head.unchanged(), &next);
        if audit::commit(ctx, vec![write], rider).await?.is_ok() {
            return Ok(());
        }
    }
}
