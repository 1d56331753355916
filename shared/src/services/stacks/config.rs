//! Where the configuration of a stack lies that the service holds: in an environment, which the head names.

use crate::context::Context;
use crate::domain::names::{OrgName, StackAddress};
use crate::layout::{StackConfig, StackHead};
use crate::ports::Write;
use crate::services::caller::Caller;
use crate::services::environments;
use crate::services::environments::lookup::{RevisionRef, head_of, parse};
use crate::services::error::{EnvironmentError, StackError};
use crate::services::store::retry::Attempts;
use crate::services::store::stack_lookup::{Located, locate};
use crate::services::{Error, store};

/// The longest text of a secrets provider, in bytes.
const PROVIDER_BYTES_MAX: usize = 16 << 10;

/// Where the configuration of a stack lies; `None` where that is a file of its project's.
///
/// # Errors
/// As [`locate`].
pub async fn get(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
) -> Result<Option<StackConfig>, Error> {
    Ok(locate(ctx, caller, address).await?.head.value.config)
}

/// What has to be written for a new stack to have its configuration there: an environment, where there is none of that name yet.
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
    find(ctx, org, config).await.map(|()| Vec::new())
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

/// Looks for the revision that is named.
async fn find(ctx: &Context, org: &OrgName, config: &StackConfig) -> Result<(), Error> {
    let (address, which) = parse(org, &config.environment)?;
    let head = head_of(ctx, &address).await?;
    let head = head.ok_or_else(|| EnvironmentError::NotFound(address.clone()))?;
    environments::lookup::text(ctx, &address, &head.value, &which).await?;
    Ok(())
}

/// Says where the configuration of a stack lies: in an environment that there is, or with its project again. What an update
/// runs with was read before it began.
///
/// # Errors
/// As [`locate`]; [`EnvironmentError::NotFound`], [`EnvironmentError::NoRevision`].
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
            find(ctx, &address.org, config).await?;
        }
        if head.value.config == config {
            return Ok(());
        }
        let next = StackHead { config: config.clone(), ..head.value.clone() };
        let write = store::put(ctx, StackHead::key(id), head.unchanged(), &next);
        if store::commit(ctx, vec![write]).await?.is_ok() {
            return Ok(());
        }
    }
}
