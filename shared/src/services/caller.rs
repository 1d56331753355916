//! The authenticated caller: who it is, and what it took. [`super::standing`] tells what it may do.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::Error;
use super::ahead::{Ahead, Search};
use crate::context::Context;
use crate::domain::access::{self, Access, Actor, Scope};
use crate::domain::claims::Bearer;
use crate::domain::names::{Login, OrgName, StackAddress};
use crate::domain::principal::Principal;
use crate::domain::role::{Right, Rights, Role};
use crate::domain::update::Requester;
use crate::layout::{Token, User};
use crate::ports::Timestamp;
use crate::services::error::AccessError;

/// The token name of a caller who authenticated with a password. No token can have this name.
pub const PASSWORD: &str = "password";

/// The token name of a caller who is signed in with a browser. No token can have this name.
pub const SESSION: &str = "browser";

/// The maximum difference between the clocks of machines that write into one store.
pub(super) const CLOCKS_APART: Duration = Duration::from_secs(60);

/// A lock or an update that a caller took.
#[derive(Debug, Clone, Copy)]
pub struct Taken<'a> {
    /// The user and the token that took it.
    pub by: &'a Requester,
    /// When that user was created; `None` if an older program recorded the requester.
    pub user_made: Option<Timestamp>,
    /// When it was taken.
    pub at: Timestamp,
    /// The right that is needed to take it.
    pub needs: Right,
}

/// The name of the act of ending something, as errors quote it: for the holder's own user and for other users.
#[derive(Debug, Clone, Copy)]
pub struct What {
    /// For what the caller's user took with another token.
    pub own: &'static str,
    /// For what another user took.
    pub others: &'static str,
}

/// An authenticated caller.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The authenticated user.
    pub user: User,
    /// The access token, or a record that represents the client certificate or the password.
    pub token: Token,
    /// The right that the request needs on what it addresses.
    needs: Right,
    /// Whether the request was sent with an access token: organizations may limit the time that these have left.
    is_by_access_token: bool,
    addressed: Arc<AddressedOrg>,
    ahead: Ahead,
}

/// The organization that a request turned out to address, for the audit record. A request may name it only by the ID
/// of something in it, and the answer to a non-member does not reveal it.
#[derive(Debug, Default)]
pub struct AddressedOrg {
    org: OnceLock<OrgName>,
    is_foreign: AtomicBool,
}

impl AddressedOrg {
    /// The first organization that the request addressed.
    pub fn org(&self) -> Option<&OrgName> {
        self.org.get()
    }

    /// Whether the request addressed an organization that the caller is not a member of.
    pub fn is_foreign(&self) -> bool {
        self.is_foreign.load(Ordering::Relaxed)
    }

    fn note(&self, org: &OrgName, is_member: bool) {
        self.org.get_or_init(|| org.clone());
        if !is_member {
            self.is_foreign.store(true, Ordering::Relaxed);
        }
    }
}

impl Caller {
    /// A caller whose request needs every right, until [`Caller::asking_for`] sets what it needs.
    pub fn new(user: User, token: Token) -> Self {
        let user = match &token.org {
            Some(only) => user.only_in(only),
            None => user,
        };
        Self {
            user,
            token,
            needs: Right::Admin,
            is_by_access_token: false,
            addressed: Arc::default(),
            ahead: Ahead::default(),
        }
    }

    /// This caller with an access token, and not with a password or a certificate.
    #[must_use]
    pub(super) fn with_access_token(self) -> Self {
        Self { is_by_access_token: true, ..self }
    }

    /// This caller with a request that needs this right.
    #[must_use]
    pub fn asking_for(self, needs: Right) -> Self {
        Self { needs, ..self }
    }

    /// Adds the search for the stack that the path of the request names.
    pub(crate) fn look_ahead(&mut self, search: Search) {
        self.ahead = Ahead::of(search);
    }

    /// Takes the search for this stack, if one has begun.
    pub(super) fn search(&self, address: &StackAddress) -> Option<Search> {
        self.ahead.take(address)
    }

    /// What the requests of this caller and its clones turned out to address.
    pub fn addressed(&self) -> &Arc<AddressedOrg> {
        &self.addressed
    }

    /// The right that the request needs.
    pub fn needs(&self) -> Right {
        self.needs
    }

    /// This caller as the requester of an update.
    pub fn requester(&self) -> Requester {
        let of = self.token.of.clone();
        Requester { login: self.user.login.clone(), token: self.token.name.clone(), of }
    }

    /// This caller as the bearer of an update token.
    pub(super) fn bearer(&self) -> Bearer {
        let (login, token) = (self.user.login.clone(), self.token.name.clone());
        Bearer { login, token, made: self.token.created, of: self.token.of.clone() }
    }

    /// Whether the caller is a member.
    pub fn is_member(&self, org: &OrgName) -> bool {
        self.user.role_in(org).is_some()
    }

    /// Whether the provider has to confirm the user again first. Such a caller only learns who it is.
    pub fn is_stopped(&self, ctx: &Context) -> bool {
        self.user.confirmed_until.is_some_and(|until| until <= ctx.now())
    }

    /// Whether the caller authenticated with an access token, and not with a password or a certificate.
    pub(super) fn is_by_access_token(&self) -> bool {
        self.is_by_access_token
    }

    /// Whether the caller may give roles on this part of an organization, and take them, by these teams and grants.
    pub(super) fn may_grant(&self, access: &Access, org: &OrgName, on: &Scope) -> bool {
        let role = self.user.role_in(org).unwrap_or(Role::None);
        self.limit().has(Right::Admin) && access::may_grant(access, &self.actor(role), on)
    }

    /// Whether the token allows its owner to give these rights to others, wherever they are.
    pub(super) fn may_pass_on(&self, rights: Rights) -> bool {
        self.token.within.is_none() && self.limit().contains(rights)
    }

    /// Refuses a caller who is not an admin of the server, or whose token is limited: it may be that of a job.
    ///
    /// # Errors
    /// [`AccessError::NotServerAdmin`].
    pub fn check_server_admin(&self, ctx: &Context) -> Result<(), Error> {
        match self.is_server_admin(ctx) {
            true => Ok(()),
            false => Err(AccessError::NotServerAdmin(self.user.login.clone()).into()),
        }
    }

    /// Whether the caller is an admin of the server, with a token that nothing limits.
    pub fn is_server_admin(&self, ctx: &Context) -> bool {
        let Token { of, org, within, .. } = &self.token;
        let is_unlimited = org.is_none() && within.is_none() && self.limit() == Rights::ALL;
        // An admin of an organization may have signed in as a user whose sign-in that admin reset.
        let is_person = of.is_user() && self.user.reset_by.is_none();
        is_person && is_unlimited && ctx.server_admins.contains(&self.user.login)
    }

    /// Whether the caller is the user with this login.
    pub(super) fn is_user(&self, login: &Login) -> bool {
        self.token.of.is_user() && self.user.login == *login
    }

    /// The caller's role in an organization.
    pub(super) fn member(&self, org: &OrgName) -> Result<Role, Error> {
        let role = self.user.role_in(org);
        self.addressed.note(org, role.is_some());
        role.ok_or_else(|| Error::Access(AccessError::NoOrg(org.clone())))
    }

    /// The most that the token allows, with anything.
    pub(super) fn limit(&self) -> Rights {
        match (&self.token.of, self.token.may) {
            // The role of an organization's token is what it has: grants add to it.
            (Principal::Organization, _) | (_, None) => Rights::ALL,
            (Principal::User | Principal::Team(_), Some(may)) => may.rights(),
        }
    }

    /// The caller as grants name it, in an organization that it is a member of.
    pub(super) fn actor(&self, role: Role) -> Actor<'_> {
        let Token { of, name, within, .. } = &self.token;
        Actor { of, login: &self.user.login, token: name, role, within: within.as_ref() }
    }

    /// Whether the caller is the principal with this login that was created at `made`. A user created at another time only
    /// has the same login. `None` means that the time of creation is unknown, so the login decides.
    pub fn is(&self, of: &Principal, login: &Login, made: Option<Timestamp>) -> bool {
        self.token.of == *of && self.user.login == *login && made.is_none_or(|made| self.user.created == made)
    }

    /// Whether the caller's user took this, with any token.
    pub(super) fn is_of_user(&self, taken: &Taken<'_>) -> bool {
        self.is(&taken.by.of, &taken.by.login, taken.user_made)
            && (taken.user_made.is_some() || existed_at(self.user.created, taken.at))
    }
}

/// Whether a user or token created at `made` can have existed when something was taken.
pub(super) fn existed_at(made: Timestamp, taken: Timestamp) -> bool {
    made <= taken.plus(CLOCKS_APART)
}
