//! The authenticated caller: identity, membership and permissions.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::Error;
use crate::domain::claims::Bearer;
use crate::domain::names::{Login, OrgName};
use crate::domain::role::Role;
use crate::domain::update::Requester;
use crate::layout::{Token, User};
use crate::ports::Timestamp;
use crate::services::error::{AccessError, NotAllowed};

/// The token name of a caller who authenticated with a password. No token can have this name.
pub const PASSWORD: &str = "password";

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
    /// The role that is needed to take it.
    pub needs: Role,
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
    /// The role that the request needs in the organization that it addresses.
    needs: Role,
    asked: Arc<Asked>,
}

/// The organization that a request turned out to address, for the audit record. A request may name it only by the ID
/// of something in it, and the answer to a non-member does not reveal it.
#[derive(Debug, Default)]
pub struct Asked {
    org: OnceLock<OrgName>,
    is_foreign: AtomicBool,
}

impl Asked {
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
    /// A caller whose request needs every permission, until [`Caller::asking_for`] sets what it needs.
    pub fn new(user: User, token: Token) -> Self {
        Self { user, token, needs: Role::Admin, asked: Arc::default() }
    }

    /// This caller with a request that needs this role.
    #[must_use]
    pub fn asking_for(self, needs: Role) -> Self {
        Self { needs, ..self }
    }

    /// What the requests of this caller and its clones turned out to address.
    pub fn asked(&self) -> &Arc<Asked> {
        &self.asked
    }

    /// The role that the request needs.
    pub fn needs(&self) -> Role {
        self.needs
    }

    /// This caller as the requester of an update.
    pub fn requester(&self) -> Requester {
        Requester { login: self.user.login.clone(), token: self.token.name.clone() }
    }

    /// This caller as the bearer of an update token.
    pub(super) fn bearer(&self) -> Bearer {
        let (login, token) = (self.user.login.clone(), self.token.name.clone());
        Bearer { login, token, made: self.token.created }
    }

    /// Whether the caller is a member.
    pub fn is_member(&self, org: &OrgName) -> bool {
        self.user.role_in(org).is_some()
    }

    /// The lower of the user's role and the maximum role of the token.
    fn bounded(&self, role: Role) -> Role {
        self.token.may.map_or(role, |may| may.min(role))
    }

    /// Refuses a caller who is not a member, exactly as if the organization did not exist, and a member without the role
    /// that the request needs.
    ///
    /// # Errors
    /// [`AccessError::NoOrg`], [`AccessError::NotAllowed`].
    pub fn check_org(&self, org: &OrgName) -> Result<(), Error> {
        self.check(org, || Error::Access(AccessError::NoOrg(org.clone())))
    }

    /// Like [`Caller::check_org`], for an item of an organization. To a non-member, the item does not exist.
    ///
    /// # Errors
    /// `missing`, [`AccessError::NotAllowed`].
    pub fn check(&self, org: &OrgName, missing: impl FnOnce() -> Error) -> Result<(), Error> {
        let role = self.user.role_in(org);
        self.asked.note(org, role.is_some());
        self.judge(Some(org), role.ok_or_else(missing)?, self.needs, "this")
    }

    /// Refuses a member for a step that needs a higher role than the request itself, such as writing after a begin.
    /// `what` describes the step. Non-members pass: [`Caller::check`] refuses them.
    ///
    /// # Errors
    /// [`AccessError::NotAllowed`].
    pub fn check_more(&self, org: &OrgName, needs: Role, what: &'static str) -> Result<(), Error> {
        self.user.role_in(org).map_or(Ok(()), |role| self.judge(Some(org), role, needs, what))
    }

    /// Whether the caller is the user with this login that was created at `made`. A user created at another time only has
    /// the same login. `None` means that the time of creation is unknown, so the login decides.
    pub fn is_user(&self, login: &Login, made: Option<Timestamp>) -> bool {
        self.user.login == *login && made.is_none_or(|made| self.user.created == made)
    }

    /// Whether the caller took this. Knowing its ID proves nothing, since other users see IDs. Another token of the same user
    /// counts only if it has the role to take it: a token that can only plan must not touch what another token applies. A
    /// user or a token created later under the same name does not count.
    pub fn has_taken(&self, org: &OrgName, taken: &Taken<'_>) -> bool {
        let is_token = taken.by.token == self.token.name && existed_at(self.token.created, taken.at);
        self.is_of_user(taken)
            && (is_token || self.user.role_in(org).is_some_and(|role| self.bounded(role) >= taken.needs))
    }

    /// Whether the caller's user took this, with any token.
    fn is_of_user(&self, taken: &Taken<'_>) -> bool {
        self.is_user(&taken.by.login, taken.user_made)
            && (taken.user_made.is_some() || existed_at(self.user.created, taken.at))
    }

    /// Refuses a caller who neither took this nor may end what others took.
    ///
    /// # Errors
    /// [`AccessError::NotAllowed`].
    pub fn check_may_end(&self, org: &OrgName, taken: &Taken<'_>, what: What) -> Result<(), Error> {
        if self.has_taken(org, taken) {
            return Ok(());
        }
        match self.is_of_user(taken) {
            true => self.check_more(org, taken.needs, what.own),
            false => self.check_more(org, Role::Member, what.others),
        }
    }

    /// Refuses, before anything is read, a caller who cannot have the needed role: in the organization that the request
    /// names, or, if it names none, in any of the caller's organizations. A non-member passes here, and is refused once
    /// the addressed item is located.
    ///
    /// # Errors
    /// [`AccessError::NotAllowed`].
    pub fn check_early(&self, org: Option<&OrgName>) -> Result<(), Error> {
        let role = match org {
            Some(org) => self.user.role_in(org),
            None => self.user.orgs.iter().filter_map(|org| self.user.role_in(org)).max(),
        };
        role.map_or(Ok(()), |role| self.judge(org, role, self.needs, "this"))
    }

    /// Refuses a role that is too low, after the token has limited it.
    fn judge(&self, org: Option<&OrgName>, role: Role, needs: Role, what: &'static str) -> Result<(), Error> {
        if self.bounded(role) >= needs {
            return Ok(());
        }
        Err(AccessError::NotAllowed(Box::new(NotAllowed {
            what,
            needs,
            role,
            may: self.token.may,
            org: org.cloned(),
            login: self.user.login.clone(),
            token: self.token.name.clone(),
        }))
        .into())
    }
}

/// Whether a user or token created at `made` can have existed when something was taken.
fn existed_at(made: Timestamp, taken: Timestamp) -> bool {
    made <= taken.plus(CLOCKS_APART)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::domain::names::TokenName;
    use crate::ports::Timestamp;

    const NOW: Timestamp = Timestamp(0);

    fn org(text: &str) -> OrgName {
        OrgName::parse(text).unwrap()
    }

    fn caller(roles: &[(&str, Role)], may: Option<Role>) -> Caller {
        let login = Login::parse("bob").unwrap();
        let token = Token {
            name: TokenName::parse("ci").unwrap(),
            login: login.clone(),
            created: NOW,
            expires: None,
            may,
        };
        let user = User { login, created: NOW, orgs: Vec::new(), roles: BTreeMap::new() };
        Caller::new(roles.iter().fold(user, |user, (name, role)| user.as_member(&org(name), *role)), token)
    }

    fn by(login: &str, token: &str) -> Requester {
        Requester { login: Login::parse(login).unwrap(), token: TokenName::parse(token).unwrap() }
    }

    fn text_of(refused: Result<(), Error>) -> String {
        refused.unwrap_err().to_string()
    }

    #[test]
    fn a_caller_is_limited_by_both_user_and_token() {
        for role in Role::ALL {
            for may in Role::ALL.map(Some).into_iter().chain([None]) {
                for needs in Role::ALL {
                    let caller = caller(&[("acme", role)], may).asking_for(needs);
                    let allowed = role >= needs && may.is_none_or(|may| may >= needs);
                    let what = format!("{role} with a token for {may:?} asks for {needs}");
                    assert_eq!(caller.check_org(&org("acme")).is_ok(), allowed, "{what}");
                    assert_eq!(caller.check_early(Some(&org("acme"))).is_ok(), allowed, "{what}");
                    assert_eq!(caller.check_early(None).is_ok(), allowed, "{what}");
                    assert_eq!(
                        text_of(caller.check_org(&org("other"))),
                        "organization other not found: check its name, and that your user is a member"
                    );
                }
            }
        }
    }

    #[test]
    fn a_caller_with_no_stated_need_needs_admin() {
        caller(&[("acme", Role::Member)], None).check_org(&org("acme")).unwrap_err();
        caller(&[("acme", Role::Admin)], None).check_org(&org("acme")).unwrap();
    }

    #[test]
    fn a_refusal_names_the_role_and_who_grants_it() {
        let bob = caller(&[("acme", Role::Plan)], None).asking_for(Role::Apply);
        assert_eq!(
            text_of(bob.check_org(&org("acme"))),
            "this needs the role apply in acme, and bob has plan: the operator grants more with `statewright org member \
             role acme bob apply`"
        );
        let ci = caller(&[("acme", Role::Admin)], Some(Role::Plan)).asking_for(Role::Apply);
        assert_eq!(
            text_of(ci.check_org(&org("acme"))),
            "this needs the role apply in acme, and the token \"ci\" of bob allows at most plan: use another token, or \
             have the operator make one with `statewright token create NAME --user bob --may apply`"
        );
        let both = caller(&[("acme", Role::Outputs)], Some(Role::Plan)).asking_for(Role::Apply);
        let said = text_of(both.check_org(&org("acme")));
        assert!(said.contains("--may apply") && said.contains("member role acme bob apply"), "{said}");
    }

    #[test]
    fn without_an_organization_the_highest_role_counts() {
        let bob = caller(&[("acme", Role::Plan), ("beta", Role::Apply)], None);
        bob.clone().asking_for(Role::Apply).check_early(None).unwrap();
        let said = text_of(bob.clone().asking_for(Role::Member).check_early(None));
        assert!(said.starts_with("this needs the role member, and bob has apply: "), "{said}");
        let ci = caller(&[("acme", Role::Admin)], Some(Role::Plan)).asking_for(Role::Apply);
        let said = text_of(ci.check_early(None));
        assert!(said.contains("--may apply") && !said.contains("member role"), "{said}");
        // A caller without any organization passes: the lookup reports that nothing was found, not a missing role.
        caller(&[], Some(Role::Plan)).asking_for(Role::Apply).check_early(None).unwrap();
        bob.asking_for(Role::Member).check_early(Some(&org("other"))).unwrap();
    }

    #[test]
    fn the_holder_and_members_may_end_what_was_taken() {
        let end = |role, by: &Requester, needs| {
            let taken = Taken { by, user_made: None, at: NOW, needs };
            let what = What { own: "ending yours", others: "ending that of others" };
            caller(&[("acme", role)], None).check_may_end(&org("acme"), &taken, what)
        };
        end(Role::Plan, &by("bob", "ci"), Role::Apply).expect("the same token, whatever its role is now");
        end(Role::Plan, &by("bob", "laptop"), Role::Plan).unwrap();
        end(Role::Apply, &by("bob", "laptop"), Role::Apply).unwrap();
        end(Role::Member, &by("alice", "ci"), Role::Apply).unwrap();
        let said = text_of(end(Role::Plan, &by("bob", "laptop"), Role::Apply));
        assert!(said.starts_with("ending yours needs the role apply in acme, and bob has plan"), "{said}");
        let said = text_of(end(Role::Apply, &by("alice", "ci"), Role::Plan));
        assert!(said.starts_with("ending that of others needs the role member in acme"), "{said}");
    }

    #[test]
    fn another_token_of_the_user_needs_the_role() {
        let has = |role, may, by: &Requester, needs| {
            let taken = Taken { by, user_made: None, at: NOW, needs };
            caller(&[("acme", role)], may).has_taken(&org("acme"), &taken)
        };
        assert!(has(Role::Apply, None, &by("bob", "laptop"), Role::Apply));
        assert!(!has(Role::Apply, Some(Role::Plan), &by("bob", "laptop"), Role::Apply));
        assert!(has(Role::Apply, Some(Role::Plan), &by("bob", "laptop"), Role::Plan));
        assert!(!has(Role::Apply, None, &by("bob", "laptop"), Role::Member), "by hand");
        for role in Role::ALL {
            assert!(!has(role, None, &by("alice", "ci"), Role::Plan), "{role} did not take what others took");
        }
    }

    #[test]
    fn a_later_user_or_token_of_the_same_name_has_taken_nothing() {
        let at = NOW.plus(CLOCKS_APART + Duration::from_secs(1));
        let ours = by("bob", "ci");
        let before = Taken { by: &ours, user_made: None, at: NOW, needs: Role::Apply };
        let mut bob = caller(&[("acme", Role::Plan)], None);
        assert!(bob.has_taken(&org("acme"), &before));
        bob.token.created = at;
        assert!(!bob.has_taken(&org("acme"), &before), "another token of this name");
        assert!(bob.has_taken(&org("acme"), &Taken { at, ..before }));
        let mut bob = caller(&[("acme", Role::Apply)], None);
        bob.user.created = at;
        assert!(!bob.has_taken(&org("acme"), &before), "another user of this name");
    }

    #[test]
    fn the_creation_time_of_the_user_counts_if_known() {
        let ours = by("bob", "ci");
        let taken = Taken { by: &ours, user_made: Some(NOW), at: NOW, needs: Role::Apply };
        let mut bob = caller(&[("acme", Role::Admin)], None);
        assert!(bob.has_taken(&org("acme"), &taken));
        bob.user.created = NOW.plus(Duration::from_nanos(1));
        assert!(!bob.has_taken(&org("acme"), &taken), "another user of this name");
    }
}
