//! Renames a stack: within its project, to another project, or to another organization.
//!
//! A stack's identity is its ID. Its address is stored in its head, in its list entry and in its state. All of these
//! change in one commit, with a new version: the state under the new address. Old versions stay as they were published.
//! They name the old address, so their secrets are still decrypted under it (see [`stack_lookup::locate_keys`]).

use crate::context::Context;
use crate::domain::access::{Tags, Unit};
use crate::domain::ids::UpdateId;
use crate::domain::names::{OrgName, ProjectName, StackAddress, StackName};
use crate::domain::role::Right;
use crate::layout::{FormerStackName, FormerStackNameEntry, StackEntry, StackHead, delete};
use crate::ports::Expect;
use crate::services::audit::About;
use crate::services::caller::Caller;
use crate::services::error::StackError;
use crate::services::identity::grants::Kind;
use crate::services::identity::renames::{self, Following};
use crate::services::store::retry::Attempts;
use crate::services::store::stack_lookup;
use crate::services::store::stack_lookup::Located;
use crate::services::updates::{next_version, takeover};
use crate::services::{Error, audit, store, updates};

/// The parts of an address to change; `None` keeps a part.
#[derive(Debug, Default)]
pub struct NewAddress {
    /// The new organization.
    pub org: Option<OrgName>,
    /// The new project.
    pub project: Option<ProjectName>,
    /// The new stack name.
    pub stack: Option<StackName>,
}

/// Changes the address of a stack, and returns the update that created the version under it; `None` for a stack without a
/// version. A repeat, as after a lost answer, finds the rename done.
///
/// # Errors
/// [`StackError::NotFound`], `AccessError::NoOrg`; [`StackError::Exists`] when the new address is taken, even by this stack;
/// `UpdateError::Held` while an update runs; [`StackError::Protected`] for a protected stack and another organization;
/// `AccessError::NotAllowed`, also if grants would reach what they should not: see `renames::follow`.
pub async fn rename(
    ctx: &Context,
    caller: &Caller,
    from: &StackAddress,
    new: NewAddress,
) -> Result<Option<UpdateId>, Error> {
    let to = StackAddress {
        org: new.org.unwrap_or_else(|| from.org.clone()),
        project: new.project.unwrap_or_else(|| from.project.clone()),
        stack: new.stack.unwrap_or_else(|| from.stack.clone()),
    };
    let mut attempts = Attempts::at("the stack");
    loop {
        attempts.begin()?;
        let Located { id, head } = match takeover::locate_settled(ctx, caller, from).await {
            Ok(located) => located,
            Err(Error::Stack(StackError::NotFound(address))) => {
                let renamed = stack_lookup::find_renamed(ctx, caller, from).await?;
                return match renamed.filter(|located| located.head.value.address == to) {
                    Some(located) => Ok(located.head.value.last),
                    None => Err(StackError::NotFound(address).into()),
                };
            }
            Err(error) => return Err(error),
        };
        let mut following = Following::default();
        if to != *from {
            let standing = caller.on_new_stack(ctx, &to).await?;
            standing.check(caller.needs(), "a new name")?;
            let tags = store::access::tags_of_stack(ctx, from).await?;
            let unit = Unit::stack(&to, Tags::Tags(&tags));
            standing.check_reached(ctx, &unit).await?;
            if to.org != from.org {
                // The admins there could lift its protection.
                store::protection::check_stack(&head.value)?;
            }
            if to.org == from.org {
                if standing.has(Right::Admin) {
                    // Admins give others rights on it, and lift its protection.
                    let here = caller.on_stack(ctx, from).await?;
                    here.check(Right::Admin, "renaming a stack to where you are an admin")?;
                }
                let old = Unit::stack(from, Tags::None);
                // Boxed because its future is large, and few stacks have grants of their own.
                following = Box::pin(renames::follow(ctx, caller, &to.org, Kind::Stack, &old, &unit)).await?;
            }
        }
        takeover::check_free(ctx, &head.value).await?;
        match stack_lookup::find(ctx, &to).await? {
            // A concurrent repeat renamed it after the stack was read. The next attempt detects that.
            Some(located) if located.id == id && to != *from => continue,
            Some(_) => return Err(StackError::Exists(to).into()),
            None => {}
        }
        let Some(name) = store::read(ctx, &StackEntry::key(from)).await? else { continue };
        let is_transfer = to.org != from.org;
        let action = if is_transfer { "stack.transfer" } else { "stack.rename" };
        let entry = audit::entry(ctx, action, &About::Stack(from)).saying(format!("to {to}"));
        let entry = entry.adding(&following.detail());
        let mut rider = audit::ride(ctx, entry, head.value.trail.as_ref());
        if is_transfer {
            let arrived = audit::entry(ctx, action, &About::Stack(&to)).saying(format!("from {from}"));
            rider = rider.and(ctx, arrived);
        }
        let mut new_head = StackHead { address: to.clone(), trail: rider.mark(), ..head.value.clone() };
        let mut new_name = name.value.clone();
        let next = updates::direct::prepare_rename(ctx, caller, id, &head.value, &to).await?;
        let update = next.as_ref().map(|next| next.update);
        let mut writes = Vec::new();
        if let Some(next) = next {
            next_version::advance(&mut new_head, &mut new_name, &next);
            writes.extend(next.writes);
        }
        writes.insert(0, store::put(ctx, StackEntry::key(&to), Expect::Absent, &new_name));
        writes.push(delete(StackEntry::key(from), name.unchanged()));
        writes.push(store::put(ctx, FormerStackName::key(from), Expect::Any, &FormerStackName { id }));
        let former = FormerStackNameEntry { address: from.clone() };
        writes.push(store::put(ctx, FormerStackNameEntry::key(id, from), Expect::Any, &former));
        writes.push(store::put(ctx, StackHead::key(id), head.unchanged(), &new_head));
        writes.append(&mut following.writes);
        if audit::commit(ctx, writes, rider).await?.is_ok() {
            ctx.memory.names.forget(from);
            following.committed(ctx, &to.org);
            return Ok(update);
        }
    }
}
