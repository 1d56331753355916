//! Moves stacks to another public URL of the server.
//!
//! A state names the server that decrypts its secrets, and the client looks up credentials for exactly that URL. Each
//! stack whose state names the old URL gets a new version that names the new one; no other byte changes. Old versions stay
//! as they were published. A second run finds nothing to do.

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

/// A requested rehome.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The URL that states name now.
    pub from: ServerUrl,
    /// The URL that states will name.
    pub to: ServerUrl,
    /// Whether to report without changing anything.
    pub dry_run: bool,
}

/// The result for a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rehomed {
    /// Its state does not name the old URL.
    Elsewhere,
    /// Its state names the old URL, and this is a dry run.
    Due,
    /// This version names the new URL.
    Done(u64),
}

/// Rehomes one page of the stacks that the caller may see. Returns each address with its result, and the position of the
/// next page. A stack that is held or whose state is unreadable does not stop the others.
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

/// The warning for a client whose request used a host other than the one that the stack's state names. The operator's log
/// has it once for each host.
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
            "a request used a host that the state of its stack does not name; if the server has moved, run \
             `statewright rehome` so that states name its new URL"
        );
    }
    Some(format!(
        "the state of this stack names {url} for its secrets, but this request used the host {host}. The CLI needs \
         credentials for exactly that URL: log in there, or, if the server has moved, ask its operator to run \
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
            // Deleted or renamed after the page was read. A renamed stack may appear again on a later page.
            Err(Error::Stack(StackError::NotFound(_))) => return Ok(Rehomed::Elsewhere),
            Err(error) => return Err(error),
        };
        let head = &located.head.value;
        let known = head.snapshot.as_ref().and_then(|snapshot| snapshot.secrets_url.as_deref());
        if known.is_some_and(|url| !plan.from.is(url)) {
            return Ok(Rehomed::Elsewhere);
        }
        // Publishing the running update would write the old URL again: its base has it, and so does the client's login.
        takeover::check_no_update(ctx, head).await?;
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
        if let Some(Made { version, .. }) =
            updates::direct::take_head(ctx, located, next, "stack.rehome").await?
        {
            return Ok(Rehomed::Done(version));
        }
    }
}
