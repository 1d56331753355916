//! Finds running updates through the due items: each has one for the end of its lease.

use std::collections::BTreeMap;

use crate::context::Context;
use crate::domain::ids::UpdateId;
use crate::domain::names::{Login, OrgName, StackAddress, TokenName};
use crate::domain::principal::Principal;
use crate::domain::role::Role;
use crate::domain::update::{LEASE, Status, Update};
use crate::layout::{DUE_SHARDS, Due, Record, StackHead};
use crate::ports::{Item, Order};
use crate::services::{Error, store};

/// The maximum number of due items that one query returns.
const PAGE: usize = 1_000;

/// Finds the running updates, including previews. Reads at most `pages_max` pages of each shard of due items, and one
/// record for each item that is due before a lease can end.
pub(crate) async fn find(ctx: &Context, pages_max: usize) -> Result<BTreeMap<UpdateId, Update>, Error> {
    // A running update is due at the end of its lease. Later items belong to ended updates.
    let latest = ctx.now().plus(LEASE);
    let is_soon = |item: &&Item| Due::time_in(&item.key).ok().is_none_or(|at| at <= latest);
    let mut running = BTreeMap::new();
    for shard in 0..DUE_SHARDS {
        let mut after = None;
        for _ in 0..pages_max {
            let query = Due::of_shard(shard).query(after, Order::Ascending, PAGE);
            let page = store::query(ctx, &query).await?;
            let soon: Vec<&Item> = page.items.iter().take_while(is_soon).collect();
            for item in &soon {
                let Due::Update(id) = Due::decode(&item.value)? else { continue };
                let update = store::read(ctx, &Update::key(id)).await?;
                let runs = |update: &Update| matches!(update.status, Status::Running { .. });
                running.extend(update.map(|it| it.value).filter(runs).map(|update| (id, update)));
            }
            after = soon.last().map(|item| item.key.sort.clone());
            if !page.more || soon.len() < page.items.len() {
                break;
            }
        }
    }
    Ok(running)
}

/// A filter for running updates.
#[derive(Debug, Clone)]
pub struct Begun<'a> {
    /// The user who began them, or the organization of the machine.
    pub login: &'a Login,
    /// The kind of principal.
    pub of: &'a Principal,
    /// The access token that began them; `None` for any token.
    pub token: Option<&'a TokenName>,
    /// The organization of their stacks; `None` for any organization.
    pub org: Option<&'a OrgName>,
    /// Only updates that need more than this role; `None` for all.
    pub above: Option<Role>,
}

/// A running update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// The current address of its stack.
    pub address: StackAddress,
    /// The ID of the update.
    pub id: UpdateId,
    /// The record of the update.
    pub update: Update,
}

/// Lists the running updates that match a filter, ordered by stack, for the operator.
///
/// # Errors
/// Those of the ports.
pub async fn begun(ctx: &Context, begun: &Begun<'_>) -> Result<Vec<Running>, Error> {
    let mut found = Vec::new();
    for (id, update) in find(ctx, usize::MAX).await? {
        let by = &update.requester;
        let is_meant = by.of == *begun.of
            && by.login == *begun.login
            && begun.token.is_none_or(|token| *token == by.token)
            && begun.above.is_none_or(|role| !role.gives(update.needs()))
            && matches!(update.status, Status::Running { until, .. } if ctx.now() <= until);
        if !is_meant {
            continue;
        }
        let Some(head) = store::read(ctx, &StackHead::key(update.stack)).await? else { continue };
        let address = head.value.address;
        if begun.org.is_none_or(|org| *org == address.org) {
            found.push(Running { address, id, update });
        }
    }
    found.sort_by_key(|one| (one.address.to_string(), one.id));
    Ok(found)
}
