//! What a caller may do with one stack, state or environment, or with an organization.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::caller::{Caller, Taken, What, existed_at};
use super::error::{AccessError, NotAllowed};
use super::{Error, store};
use crate::context::Context;
use crate::domain::access::{self, Access, NameRange, Tags, Unit};
use crate::domain::names::{EnvironmentAddress, OrgName, StackAddress, StateAddress};
use crate::domain::role::{Right, Rights, Role};
use crate::domain::tfstate::Labels;

const SECONDS_OF_A_DAY: u64 = 24 * 3_600;

impl Caller {
    /// Refuses a caller who is not a member, exactly as if the organization did not exist, and a member without the
    /// right that the request needs in the organization itself.
    ///
    /// # Errors
    /// [`AccessError::NoOrg`], [`AccessError::NotAllowed`].
    pub async fn check_org(&self, ctx: &Context, org: &OrgName) -> Result<(), Error> {
        self.in_org(ctx, org).await?.check(self.needs(), "this")
    }

    /// What the caller may do in an organization itself: with its members, its policies and everything in it.
    ///
    /// # Errors
    /// [`AccessError::NoOrg`] for a caller who is not a member.
    pub async fn in_org(&self, ctx: &Context, org: &OrgName) -> Result<Standing<'_>, Error> {
        Ok(self.sight(ctx, org).await?.in_org())
    }

    /// What the caller may see in an organization, for lists.
    ///
    /// # Errors
    /// [`AccessError::NoOrg`] for a caller who is not a member; [`AccessError::NotAllowed`] for a member who may do
    /// nothing that the request needs anywhere in it.
    pub async fn lists(&self, ctx: &Context, org: &OrgName) -> Result<Sight<'_>, Error> {
        let sight = self.sight(ctx, org).await?;
        sight.anywhere().check(self.needs(), "this")?;
        Ok(sight)
    }

    async fn sight(&self, ctx: &Context, org: &OrgName) -> Result<Sight<'_>, Error> {
        let role = self.member(org)?;
        let access = store::access::of(ctx, org).await?;
        self.check_days_left(ctx, org, &access)?;
        Ok(Sight::new(self, org, role, access))
    }

    /// Refuses an access token that has more time left than the organization allows, or no end.
    fn check_days_left(&self, ctx: &Context, org: &OrgName, access: &Access) -> Result<(), Error> {
        match access.token_days_max {
            Some(days_max) if !self.ends_within(ctx, days_max) => {
                Err(AccessError::TokenLivesTooLong { org: org.clone(), days_max }.into())
            }
            _ => Ok(()),
        }
    }

    /// Whether an organization that allows access tokens this number of days accepts the caller.
    pub(super) fn ends_within(&self, ctx: &Context, days_max: u32) -> bool {
        let latest = ctx.now().plus(Duration::from_secs(u64::from(days_max) * SECONDS_OF_A_DAY));
        !self.is_by_access_token() || self.token.expires.is_some_and(|expires| expires <= latest)
    }

    /// Checks a stack by its name, before anything of it is read: so the time of the answer does not reveal what exists.
    ///
    /// # Errors
    /// `missing` for a stack that the caller may not see; [`AccessError::NotAllowed`].
    pub async fn check_stack(
        &self,
        ctx: &Context,
        address: &StackAddress,
        missing: impl FnOnce() -> Error,
    ) -> Result<Standing<'_>, Error> {
        let standing = self.on_stack(ctx, address).await;
        self.admit(standing, missing)
    }

    /// What the caller may do with a stack. Its tags are read only if a grant depends on them.
    ///
    /// # Errors
    /// [`AccessError::NoOrg`] for a caller who is not a member.
    pub async fn on_stack(&self, ctx: &Context, address: &StackAddress) -> Result<Standing<'_>, Error> {
        let sight = self.sight(ctx, &address.org).await?;
        match sight.on(&Unit::stack(address, Tags::Unknown)) {
            (standing, false) => Ok(standing),
            (_, true) => {
                let tags = store::access::tags_of_stack(ctx, address).await?;
                Ok(sight.on(&Unit::stack(address, Tags::Tags(&tags))).0)
            }
        }
    }

    /// Whether the caller may see the values of a stack that are no secrets: of its resources, and of its configuration.
    ///
    /// # Errors
    /// [`AccessError::NoOrg`] for a caller who is not a member.
    pub async fn sees_values(&self, ctx: &Context, address: &StackAddress) -> Result<bool, Error> {
        Ok(self.on_stack(ctx, address).await?.has(Right::Plan))
    }

    /// What the caller may do with a stack that does not exist yet. No tag gives a right to it.
    ///
    /// # Errors
    /// [`AccessError::NoOrg`] for a caller who is not a member.
    pub async fn on_new_stack(&self, ctx: &Context, address: &StackAddress) -> Result<Standing<'_>, Error> {
        let sight = self.sight(ctx, &address.org).await?;
        Ok(sight.on(&Unit::stack(address, Tags::None)).0)
    }

    /// What the caller may do with a state, as far as its name tells: its labels are in its head, which is not read yet.
    /// The second value tells whether they can add rights.
    ///
    /// # Errors
    /// [`AccessError::NoOrg`] for a caller who is not a member.
    pub async fn on_state_name(
        &self,
        ctx: &Context,
        address: &StateAddress,
    ) -> Result<(Standing<'_>, bool), Error> {
        let sight = self.sight(ctx, &address.org).await?;
        Ok(sight.on(&Unit::state(address, Tags::Unknown)))
    }

    /// What the caller may do with a state.
    ///
    /// # Errors
    /// [`AccessError::NoOrg`] for a caller who is not a member.
    pub async fn on_state(
        &self,
        ctx: &Context,
        address: &StateAddress,
        labels: &Labels,
    ) -> Result<Standing<'_>, Error> {
        let sight = self.sight(ctx, &address.org).await?;
        Ok(sight.on(&Unit::state(address, Tags::Labels(labels))).0)
    }

    /// What the caller may do with an environment. Grants reach environments by their names.
    ///
    /// # Errors
    /// [`AccessError::NoOrg`] for a caller who is not a member.
    pub async fn on_environment(
        &self,
        ctx: &Context,
        address: &EnvironmentAddress,
    ) -> Result<Standing<'_>, Error> {
        let sight = self.sight(ctx, &address.org).await?;
        Ok(sight.on(&Unit::environment(address, Tags::None)).0)
    }

    /// The standing, if it has the right that the request needs.
    ///
    /// # Errors
    /// `missing` for a caller who may not see the unit; [`AccessError::NotAllowed`].
    pub fn admit<'a>(
        &self,
        standing: Result<Standing<'a>, Error>,
        missing: impl FnOnce() -> Error,
    ) -> Result<Standing<'a>, Error> {
        match standing {
            Err(Error::Access(AccessError::NoOrg(_))) => Err(missing()),
            Err(other) => Err(other),
            Ok(standing) if !standing.has(Right::See) && self.token_sees() => Err(missing()),
            Ok(standing) => standing.check(self.needs(), "this").map(|()| standing),
        }
    }

    /// Whether the token lets its owner see anything: if not, the refusal names the token.
    fn token_sees(&self) -> bool {
        self.limit().has(Right::See)
    }

    /// Refuses, before anything of it is read, a caller who cannot have the needed right anywhere in the organization
    /// that the request names, or, if it names none, in any of the caller's organizations. A non-member passes here, and
    /// is refused once the addressed item is located. `unit` is what the path names besides the organization, whether it
    /// exists or not: the refusal proposes a grant on it.
    ///
    /// # Errors
    /// [`AccessError::NotAllowed`].
    pub async fn check_early(
        &self,
        ctx: &Context,
        org: Option<&OrgName>,
        unit: Option<&Unit<'_>>,
    ) -> Result<(), Error> {
        let orgs: Vec<&OrgName> = match org {
            Some(org) => self.user.orgs.iter().filter(|own| *own == org).collect(),
            None => self.user.orgs.iter().collect(),
        };
        let Some(first) = orgs.first() else { return Ok(()) };
        let role_in = |org: &OrgName| self.user.role_in(org).unwrap_or(Role::None);
        let mut most = orgs.iter().map(|org| role_in(org).rights()).fold(Rights::NONE, Rights::or);
        let mut here = None;
        if !most.has(self.needs()) && self.limit().has(self.needs()) {
            // Grants are read only if no role suffices.
            for one in &orgs {
                let access = store::access::of(ctx, one).await?;
                let actor = self.actor(role_in(one));
                most = most.or(access::most(&access, &actor));
                here = unit.map(|unit| access::held(&access, &actor, Some(unit)).rights);
            }
        }
        if Standing::anywhere(self, first, most).has(self.needs()) {
            return Ok(());
        }
        let is_outside =
            unit.is_some_and(|unit| self.actor(role_in(first)).works_with(Some(unit)) == Some(false));
        let on = unit.map(|unit| unit.address(first));
        let rights = here.unwrap_or(most);
        let standing = Standing { on, is_outside, ..Standing::anywhere(self, first, rights) };
        standing.check_named(self.needs(), "this", orgs.len() == 1)
    }
}

/// What a caller sees of an organization.
pub struct Sight<'a> {
    caller: &'a Caller,
    org: OrgName,
    role: Role,
    access: Arc<Access>,
}

impl<'a> Sight<'a> {
    pub(super) fn new(caller: &'a Caller, org: &OrgName, role: Role, access: Arc<Access>) -> Self {
        Self { caller, org: org.clone(), role, access }
    }

    /// What the caller may do in the organization itself.
    pub(super) fn in_org(&self) -> Standing<'a> {
        let actor = self.caller.actor(self.role);
        let rights = access::held(&self.access, &actor, None).rights;
        Standing { is_outside: actor.works_with(None) != Some(true), ..self.standing(None, rights) }
    }

    /// The most that the caller may do with anything in it.
    pub(super) fn anywhere(&self) -> Standing<'a> {
        let rights = access::most(&self.access, &self.caller.actor(self.role));
        self.standing(None, rights)
    }

    /// What the caller may do with a unit, and whether tags that are not known yet can add to it.
    pub(super) fn on(&self, unit: &Unit<'_>) -> (Standing<'a>, bool) {
        let actor = self.caller.actor(self.role);
        let held = access::held(&self.access, &actor, Some(unit));
        let on = unit.address(&self.org);
        let is_outside = actor.works_with(Some(unit)) != Some(true);
        let standing = Standing { is_outside, ..self.standing(Some(on), held.rights) };
        (standing, held.rights != held.rights_max)
    }

    fn standing(&self, on: Option<String>, rights: Rights) -> Standing<'a> {
        Standing { caller: self.caller, org: self.org.clone(), on, rights, is_outside: false }
    }

    /// The names that a list reads: all with which the caller may do what the request needs. [`Sight::shows`] decides
    /// about each.
    pub(super) fn names(&self) -> Vec<NameRange> {
        access::ranges(&self.access, &self.caller.actor(self.role), self.caller.needs())
    }

    /// Whether the request may show this unit, all of whose tags are known.
    pub fn shows(&self, unit: &Unit<'_>) -> bool {
        let held = access::held(&self.access, &self.caller.actor(self.role), Some(unit));
        held.rights.and(self.caller.limit()).has(self.caller.needs())
    }
}

/// What a caller may do with one unit, or with the organization itself.
#[derive(Debug)]
pub struct Standing<'a> {
    caller: &'a Caller,
    org: OrgName,
    /// The address of the unit; `None` for the organization itself.
    on: Option<String>,
    /// The rights of the user or the machine. The token limits them.
    rights: Rights,
    /// Whether the token does not work here, whatever its owner may do.
    is_outside: bool,
}

impl<'a> Standing<'a> {
    /// The most that a caller may do anywhere in the organizations that a request may be about.
    pub(super) fn anywhere(caller: &'a Caller, org: &OrgName, rights: Rights) -> Self {
        Self { caller, org: org.clone(), on: None, rights, is_outside: false }
    }

    /// Whether the caller has this right.
    pub fn has(&self, right: Right) -> bool {
        self.rights().has(right)
    }

    /// The rights, limited by the token.
    pub fn rights(&self) -> Rights {
        self.rights.and(self.caller.limit())
    }

    /// Refuses a caller without this right. `what` describes the action.
    ///
    /// # Errors
    /// [`AccessError::NotAllowed`].
    pub fn check(&self, needs: Right, what: &'static str) -> Result<(), Error> {
        self.check_named(needs, what, true)
    }

    pub(super) fn check_named(&self, needs: Right, what: &'static str, is_named: bool) -> Result<(), Error> {
        match self.has(needs) {
            true => Ok(()),
            false => Err(self.refusal(needs, what, is_named)),
        }
    }

    /// The refusal of a caller without this right.
    pub(in crate::services) fn refusal(&self, needs: Right, what: &'static str, is_named: bool) -> Error {
        let Caller { user, token, .. } = self.caller;
        AccessError::NotAllowed(Box::new(NotAllowed {
            what,
            needs,
            role: self.rights.highest_role(),
            is_held: self.rights.has(needs),
            may: token.may,
            org: is_named.then(|| self.org.clone()),
            on: self.on.clone(),
            of: token.of.clone(),
            login: user.login.clone(),
            token: token.name.clone(),
            within: token.within.clone().filter(|_| self.is_outside),
            admins: Vec::new(),
        }))
        .into()
    }

    /// Refuses a change of tags or labels that a grant names, unless the caller may give grants: it would give rights to
    /// somebody, or take them.
    ///
    /// # Errors
    /// [`AccessError::NotAllowed`].
    pub async fn check_tags(
        &self,
        ctx: &Context,
        changed: impl IntoIterator<Item = &str>,
    ) -> Result<(), Error> {
        if self.has(Right::Admin) {
            return Ok(());
        }
        let access = store::access::of(ctx, &self.org).await?;
        match changed.into_iter().any(|tag| access::is_tag_granted(&access, tag)) {
            true => self.check(Right::Admin, "a tag that a grant names"),
            false => Ok(()),
        }
    }

    /// As [`Standing::check_tags`], for all tags of a stack, before and after a change.
    ///
    /// # Errors
    /// [`AccessError::NotAllowed`].
    pub async fn check_changed_tags(
        &self,
        ctx: &Context,
        old: &BTreeMap<String, String>,
        new: &BTreeMap<String, String>,
    ) -> Result<(), Error> {
        let changed = old.keys().chain(new.keys()).filter(|tag| old.get(*tag) != new.get(*tag));
        self.check_tags(ctx, changed.map(String::as_str)).await
    }

    /// Refuses a new name that grants reach with more than the caller's own rights: the rename would give them.
    ///
    /// # Errors
    /// [`AccessError::NotAllowed`].
    pub async fn check_reached(&self, ctx: &Context, unit: &Unit<'_>) -> Result<(), Error> {
        let access = store::access::of(ctx, &self.org).await?;
        match self.rights().contains(access::reach(&access, unit)) {
            true => Ok(()),
            false => self.check(Right::Admin, "a name that grants reach with more than your rights"),
        }
    }

    /// Whether the caller took this. Knowing its ID proves nothing, since other users see IDs. Another token of the same user
    /// counts only if it has the right to take it: a token that can only plan must not touch what another token applies. A
    /// user or a token created later under the same name does not count.
    pub fn has_taken(&self, taken: &Taken<'_>) -> bool {
        let token = &self.caller.token;
        let is_token = taken.by.token == token.name && existed_at(token.created, taken.at);
        self.caller.is_of_user(taken) && (is_token || self.has(taken.needs))
    }

    /// Refuses a caller who neither took this nor may end what others took.
    ///
    /// # Errors
    /// [`AccessError::NotAllowed`].
    pub fn check_may_end(&self, taken: &Taken<'_>, what: What) -> Result<(), Error> {
        if self.has_taken(taken) {
            return Ok(());
        }
        match self.caller.is_of_user(taken) {
            true => self.check(taken.needs, what.own),
            false => self.check(Right::Member, what.others),
        }
    }
}

#[cfg(test)]
mod tests;
