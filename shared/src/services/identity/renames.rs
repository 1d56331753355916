//! The grants on one exact name, when a stack or a state of that name gets another one.
//!
//! A name reaches a stack, a state and an environment alike. So a grant that goes along may be one on something else
//! too, and it may reach something else at the new name. Then it moves only for a caller who may give it at both names.

use std::sync::Arc;

use futures::future::try_join_all;

use super::grants::Kind;
use crate::context::Context;
use crate::domain::access::{self, Grant, Scope, Tags, Unit};
use crate::domain::names::{EnvironmentAddress, OrgName, StackAddress, StateAddress};
use crate::domain::role::{Right, Rights};
use crate::layout::{
    DeletedEnvironment, DeletedStack, DeletedState, EnvironmentHead, OrgAccess, StackEntry, StateEntry, check,
};
use crate::ports::{Expect, ItemKey, Order, Query, Write};
use crate::services::caller::Caller;
use crate::services::standing::Sight;
use crate::services::{Error, store};

/// The grants that go along with a rename.
#[derive(Debug, Default)]
pub(crate) struct Following {
    grants: Vec<Grant>,
    /// Whether they count at the old name as well, because something else has it.
    are_kept: bool,
    /// For the commit of the rename: the grants, and the conditions under which they may go along.
    pub(crate) writes: Vec<Write>,
}

impl Following {
    /// The text for the record of the rename; empty without grants.
    pub(crate) fn detail(&self) -> String {
        let start = match (self.grants.is_empty(), self.are_kept) {
            (true, _) => return String::new(),
            (false, true) => "grants are copied",
            (false, false) => "grants go along",
        };
        let grants: Vec<String> =
            self.grants.iter().map(|grant| format!("{} {}", grant.to, grant.role.0)).collect();
        format!("{start}: {}", grants.join(", "))
    }

    /// After the commit: this process reads the grants again.
    pub(crate) fn committed(&self, ctx: &Context, org: &OrgName) {
        if !self.grants.is_empty() {
            ctx.memory.access.forget(org);
        }
    }
}

/// The grants on exactly the old name of a stack or a state, which go along to the new one.
///
/// They go along for every caller if nothing else has or had either name, and if they give no more than the caller
/// has at the new one. Otherwise only for a caller who may give roles at both names. If something else has the old name,
/// they stay there too.
///
/// # Errors
/// `AccessError::NotAllowed`; `IdentityError::AccessTooLarge`.
pub(crate) async fn follow(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    own: Kind,
    from: &Unit<'_>,
    to: &Unit<'_>,
) -> Result<Following, Error> {
    let Some(stored) = store::access::stored(ctx, org).await? else { return Ok(Following::default()) };
    let (old, new) = (Scope::exactly(from.project, from.name), Scope::exactly(to.project, to.name));
    let grants: Vec<Grant> = stored.value.grants.iter().filter(|grant| grant.on == old).cloned().collect();
    if grants.is_empty() {
        return Ok(Following::default());
    }
    let (here, there) = futures::try_join!(others(ctx, org, own, from), others(ctx, org, own, to))?;
    let may_here = caller.may_grant(&stored.value, org, &old);
    if !may_here || !caller.may_grant(&stored.value, org, &new) {
        // What the names alone give: tags may change.
        let sight = Sight::new(caller, org, caller.member(org)?, Arc::new(stored.value.0.clone()));
        let on = |unit: &Unit<'_>| sight.on(&Unit { tags: Tags::None, ..*unit }).0;
        let given = grants.iter().fold(Rights::NONE, |rights, grant| rights.or(grant.role.0.rights()));
        let why = match (on(to).rights().contains(given), there.exist, here.exist) {
            (false, ..) => Some("taking along grants that give more than your rights"),
            (true, true, _) => Some("taking grants along to a name that something else has or had"),
            (true, false, true) => Some("taking along grants on a name that something else has or had"),
            (true, false, false) => None,
        };
        if let Some(why) = why {
            let lacking = if may_here { on(to) } else { on(from) };
            return Err(lacking.refusal(Right::Admin, why, true));
        }
    }
    let next = access::renamed(&stored.value, &old, &new, here.exist);
    store::access::check_size(org, &next)?;
    let mut writes = vec![store::put(ctx, OrgAccess::key(org), stored.unchanged(), &OrgAccess(next))];
    writes.extend(here.still_absent);
    writes.extend(there.still_absent);
    Ok(Following { grants, are_kept: here.exist, writes })
}

/// What else has a name.
struct Others {
    /// Whether something else has it, or anything had it that can be undeleted.
    exist: bool,
    /// The conditions that nothing takes it meanwhile.
    still_absent: Vec<Write>,
}

/// Finds what has a name besides what is renamed. Up to two reads and three queries, at the same time.
async fn others(ctx: &Context, org: &OrgName, own: Kind, unit: &Unit<'_>) -> Result<Others, Error> {
    let (org, project, name) = (org.as_str(), unit.project.as_str(), unit.name);
    let (mut keys, mut deleted): (Vec<(Kind, ItemKey)>, Vec<Query>) = (Vec::new(), Vec::new());
    // A name that breaks a rule of one kind is of the others only.
    if let Ok(stack) = StackAddress::parse(org, project, name) {
        keys.push((Kind::Stack, StackEntry::key(&stack).into()));
        let name = Some((&stack.project, &stack.stack));
        deleted.push(DeletedStack::of_org(&stack.org, name).query(None, Order::Ascending, 1));
    }
    if let Ok(state) = StateAddress::parse(org, project, Some(name)) {
        keys.push((Kind::State, StateEntry::key(&state).into()));
        let (project, name) = (Some(&state.project), Some(&state.state));
        deleted.push(DeletedState::of_org(&state.org, project, name).query(None, Order::Ascending, 1));
    }
    if let Ok(environment) = EnvironmentAddress::parse(org, project, name) {
        keys.push((Kind::Environment, EnvironmentHead::key(&environment).into()));
        deleted.push(DeletedEnvironment::of_name(&environment).query(None, Order::Ascending, 1));
    }
    // Of its own kind, the old name is its own, and the rename itself needs the new one to be free.
    keys.retain(|(kind, _)| *kind != own);
    let live = try_join_all(keys.iter().map(|(_, key)| store::get(ctx, key)));
    let deleted = try_join_all(deleted.iter().map(|query| store::query(ctx, query)));
    let (live, deleted) = futures::try_join!(live, deleted)?;
    let exist = live.iter().any(Option::is_some) || deleted.iter().any(|page| !page.items.is_empty());
    let absent = keys.into_iter().zip(&live).filter(|(_, item)| item.is_none());
    Ok(Others { exist, still_absent: absent.map(|((_, key), _)| check(key, Expect::Absent)).collect() })
}
