//! Moving stacks to another public address of the server.
//!
//! A state names the server that opens its secrets, and the client looks for credentials of exactly that address. Each
//! stack whose state names the old one gets a version that names the new one; every other byte of it stays. Old
//! versions stay as they were published. A second run finds nothing to do.

use std::time::Duration;

use super::{ListFilter, ListPosition};
use crate::context::Context;
use crate::domain::names::StackAddress;
use crate::domain::server_url::{ServerUrl, comparable_host};
use crate::services::Error;
use crate::services::caller::Caller;
use crate::services::error::StackError;
use crate::services::stacks;
use crate::services::store::retry::Attempts;
use crate::services::updates;
use crate::services::updates::direct::Made;
use crate::services::updates::takeover;

/// What is to be done.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The address that states name.
    pub from: ServerUrl,
    /// The one that they are to name.
    pub to: ServerUrl,
    /// Whether nothing is to be changed.
    pub dry_run: bool,
}

/// What became of a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rehomed {
    /// Its state does not name the old address.
    Elsewhere,
    /// Its state names the old address, and nothing was to be changed.
    Due,
    /// This version names the new address.
    Done(u64),
}

/// A page of what became of the stacks that the caller may see, each with its address; and where the next page begins.
/// One that is held, or whose state does not read back, does not keep it from the others.
///
/// # Errors
/// Those of the ports when the page cannot be read.
pub async fn page(
    ctx: &Context,
    caller: &Caller,
    plan: &Plan,
    from: Option<ListPosition>,
) -> Result<(Vec<(StackAddress, Result<Rehomed, Error>)>, Option<ListPosition>), Error> {
    let (listed, next) = stacks::list(ctx, caller, &ListFilter::default(), from).await?;
    let mut done = Vec::with_capacity(listed.len());
    for stack in listed {
        let rehomed = stack_of(ctx, caller, plan, &stack.address).await;
        done.push((stack.address, rehomed));
    }
    Ok((done, next))
}

/// What to tell a client that asked under this host for a stack whose state names that server, if they differ. The
/// operator's log says it once for each host.
pub fn warning(ctx: &Context, host: &str, secrets_url: Option<&str>) -> Option<String> {
    let url = ServerUrl::parse(secrets_url?).ok()?;
    let host = comparable_host(host);
    if host.is_empty() || url.host() == host {
        return None;
    }
    if ctx.memory.strange_hosts.get(&host, ctx.now(), Duration::MAX).is_none() {
        ctx.memory.strange_hosts.put(host.clone(), ctx.now(), ());
        tracing::warn!(
            host,
            secrets_url = url.as_str(),
            "asked under a host that the state of a stack does not name; if the server has moved, `statewright rehome` \
             makes the states name its new address"
        );
    }
    Some(format!(
        "the state of this stack has its secrets opened at {url}, and this server was asked as {host}. The CLI looks for \
         credentials of exactly that address: log in there, or, if the server has moved, have its operator run \
         `statewright rehome --from {url} --to ADDRESS`."
    ))
}

async fn stack_of(
    ctx: &Context,
    caller: &Caller,
    plan: &Plan,
    address: &StackAddress,
) -> Result<Rehomed, Error> {
    let mut attempts = Attempts::at("the stack");
    loop {
        attempts.begin()?;
        let located = match takeover::locate_settled(ctx, caller, address).await {
            Ok(located) => located,
            // Removed or renamed since the page was read; a renamed one may have to be met on another page.
            Err(Error::Stack(StackError::NotFound(_))) => return Ok(Rehomed::Elsewhere),
            Err(error) => return Err(error),
        };
        let head = &located.head.value;
        let known = head.snapshot.as_ref().and_then(|snapshot| snapshot.secrets_url.as_deref());
        if known.is_some_and(|url| !plan.from.is(url)) {
            return Ok(Rehomed::Elsewhere);
        }
        // Its end would bring back what it began from, or what its client was told when it logged in.
        takeover::check_free(ctx, head).await?;
        let Some(snapshot) = &head.snapshot else { return Ok(Rehomed::Elsewhere) };
        if plan.dry_run {
            let url = match known {
                Some(url) => Some(url.to_owned()),
                None => updates::direct::secrets_url(ctx, snapshot).await?,
            };
            let is_due = url.is_some_and(|url| plan.from.is(&url));
            return Ok(if is_due { Rehomed::Due } else { Rehomed::Elsewhere });
        }
        let next = updates::direct::prepare_rehome(ctx, caller, &located, &plan.from, &plan.to).await?;
        let Some(next) = next else { return Ok(Rehomed::Elsewhere) };
        if let Some(Made { version, .. }) = updates::direct::take_head(ctx, located, next).await? {
            return Ok(Rehomed::Done(version));
        }
    }
}
