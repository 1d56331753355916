//! Who asks, what they may see, and what they may do.

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

/// What stands in the place of an access token's name where somebody showed a password. No token is given this name.
pub const PASSWORD: &str = "password";

/// The clocks of the machines that write into a store differ by no more than this.
pub(super) const CLOCKS_APART: Duration = Duration::from_secs(60);

/// Something that somebody took: a lock, or an update.
#[derive(Debug, Clone, Copy)]
pub struct Taken<'a> {
    /// Who took it.
    pub by: &'a Requester,
    /// When that user was made; `None` where an older program wrote down who took it.
    pub user_made: Option<Timestamp>,
    /// When.
    pub at: Timestamp,
    /// The role that taking it needs.
    pub needs: Role,
}

/// What ending something is called: for the user who took it, and for all others.
#[derive(Debug, Clone, Copy)]
pub struct What {
    /// Of what the caller's user took, with another token.
    pub own: &'static str,
    /// Of what somebody else took.
    pub others: &'static str,
}

/// An authenticated caller.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The user.
    pub user: User,
    /// The access token that was shown, or what stands for the client certificate or the password.
    pub token: Token,
    /// What is asked for needs this role in the organization that it is about.
    needs: Role,
    asked: Arc<Asked>,
}

/// Which organization a caller was found to ask about, for a record of it: a request may name it by an id alone, and the answer to somebody
/// who is no member says nothing of it.
#[derive(Debug, Default)]
pub struct Asked {
    org: OnceLock<OrgName>,
    is_foreign: AtomicBool,
}

impl Asked {
    /// The organization that was asked about first.
    pub fn org(&self) -> Option<&OrgName> {
        self.org.get()
    }

    /// Whether the caller asked about one without being a member.
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
    /// A caller who asks for something that needs everything, until [`Caller::asking_for`] says what it needs.
    pub fn new(user: User, token: Token) -> Self {
        Self { user, token, needs: Role::Admin, asked: Arc::default() }
    }

    /// This caller asking for what needs this role.
    #[must_use]
    pub fn asking_for(self, needs: Role) -> Self {
        Self { needs, ..self }
    }

    /// What this caller, and each clone of it, is found to ask about.
    pub fn asked(&self) -> &Arc<Asked> {
        &self.asked
    }

    /// The role that is needed for what is asked for.
    pub fn needs(&self) -> Role {
        self.needs
    }

    /// This caller as the one who asks for an update.
    pub fn requester(&self) -> Requester {
        Requester { login: self.user.login.clone(), token: self.token.name.clone() }
    }

    /// This caller as the one who gets an update token.
    pub(super) fn bearer(&self) -> Bearer {
        let (login, token) = (self.user.login.clone(), self.token.name.clone());
        Bearer { login, token, made: self.token.created }
    }

    /// Whether the caller is a member.
    pub fn is_member(&self, org: &OrgName) -> bool {
        self.user.role_in(org).is_some()
    }

    /// What the caller may do where the user has this role: the lesser of what the user may and what the token may.
    fn bounded(&self, role: Role) -> Role {
        self.token.may.map_or(role, |may| may.min(role))
    }

    /// Refuses whoever is not a member, exactly as if the organization did not exist, and whoever may not do there what is
    /// asked for.
    ///
    /// # Errors
    /// [`AccessError::NoOrg`], [`AccessError::NotAllowed`].
    pub fn check_org(&self, org: &OrgName) -> Result<(), Error> {
        self.check(org, || Error::Access(AccessError::NoOrg(org.clone())))
    }

    /// As [`Caller::check_org`], for something in an organization, which looks to others as if it did not exist.
    ///
    /// # Errors
    /// `missing`, [`AccessError::NotAllowed`].
    pub fn check(&self, org: &OrgName, missing: impl FnOnce() -> Error) -> Result<(), Error> {
        let role = self.user.role_in(org);
        self.asked.note(org, role.is_some());
        self.judge(Some(org), role.ok_or_else(missing)?, self.needs, "this")
    }

    /// Refuses a member who may not do what needs more than what is asked for in general, such as to write what was begun;
    /// `what` says it in words. Whoever is no member is refused by [`Caller::check`].
    ///
    /// # Errors
    /// [`AccessError::NotAllowed`].
    pub fn check_more(&self, org: &OrgName, needs: Role, what: &'static str) -> Result<(), Error> {
        self.user.role_in(org).map_or(Ok(()), |role| self.judge(Some(org), role, needs, what))
    }

    /// Whether this is the user who had this login: if that one was made at another time, another has the login since. `None` where
    /// that is not known.
    pub fn is_user(&self, login: &Login, made: Option<Timestamp>) -> bool {
        self.user.login == *login && made.is_none_or(|made| self.user.created == made)
    }

    /// Whether the caller took this. An id of it proves nothing, since others see ids. Another token of the same user has to
    /// be one that may take it, so that one that may only plan does not touch what another one applies; and a user or a token
    /// that was made since has no more than the name.
    pub fn has_taken(&self, org: &OrgName, taken: &Taken<'_>) -> bool {
        let is_token = taken.by.token == self.token.name && was_there(self.token.created, taken.at);
        self.is_of_user(taken)
            && (is_token || self.user.role_in(org).is_some_and(|role| self.bounded(role) >= taken.needs))
    }

    /// Whether the caller's user took this, with whatever token.
    fn is_of_user(&self, taken: &Taken<'_>) -> bool {
        self.is_user(&taken.by.login, taken.user_made)
            && (taken.user_made.is_some() || was_there(self.user.created, taken.at))
    }

    /// Refuses a caller who did not take this, and may not end what others took either.
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

    /// Refuses, before anything is read, whoever cannot be allowed what is asked for: in the organization that the request
    /// names, or in any, where it names none. Who is no member there is left to who finds what it is about.
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

    /// Whether it is enough that the user has this role.
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

/// Whether something that was made at this time can have been there when something else was taken.
fn was_there(made: Timestamp, taken: Timestamp) -> bool {
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

    fn words(refused: Result<(), Error>) -> String {
        refused.unwrap_err().to_string()
    }

    #[test]
    fn a_caller_may_do_the_lesser_of_what_the_user_and_the_token_may() {
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
                        words(caller.check_org(&org("other"))),
                        "organization other not found: check its name, and that your user is a member"
                    );
                }
            }
        }
    }

    #[test]
    fn who_asks_without_a_need_asks_for_everything() {
        caller(&[("acme", Role::Member)], None).check_org(&org("acme")).unwrap_err();
        caller(&[("acme", Role::Admin)], None).check_org(&org("acme")).unwrap();
    }

    #[test]
    fn what_is_missing_is_told_with_who_gives_it() {
        let bob = caller(&[("acme", Role::Plan)], None).asking_for(Role::Apply);
        assert_eq!(
            words(bob.check_org(&org("acme"))),
            "this needs the role apply in acme, and bob has plan: the operator grants more with `statewright org member \
             role acme bob apply`"
        );
        let ci = caller(&[("acme", Role::Admin)], Some(Role::Plan)).asking_for(Role::Apply);
        assert_eq!(
            words(ci.check_org(&org("acme"))),
            "this needs the role apply in acme, and the token \"ci\" of bob allows at most plan: use another token, or \
             have the operator make one with `statewright token create NAME --user bob --may apply`"
        );
        let both = caller(&[("acme", Role::Outputs)], Some(Role::Plan)).asking_for(Role::Apply);
        let said = words(both.check_org(&org("acme")));
        assert!(said.contains("--may apply") && said.contains("member role acme bob apply"), "{said}");
    }

    #[test]
    fn before_it_is_known_which_organization_is_meant_the_best_counts() {
        let bob = caller(&[("acme", Role::Plan), ("beta", Role::Apply)], None);
        bob.clone().asking_for(Role::Apply).check_early(None).unwrap();
        let said = words(bob.clone().asking_for(Role::Member).check_early(None));
        assert!(said.starts_with("this needs the role member, and bob has apply: "), "{said}");
        let ci = caller(&[("acme", Role::Admin)], Some(Role::Plan)).asking_for(Role::Apply);
        let said = words(ci.check_early(None));
        assert!(said.contains("--may apply") && !said.contains("member role"), "{said}");
        // Who is a member nowhere is told what there is, not what is missing.
        caller(&[], Some(Role::Plan)).asking_for(Role::Apply).check_early(None).unwrap();
        bob.asking_for(Role::Member).check_early(Some(&org("other"))).unwrap();
    }

    #[test]
    fn what_was_taken_is_ended_by_who_took_it_and_by_members() {
        let end = |role, by: &Requester, needs| {
            let taken = Taken { by, user_made: None, at: NOW, needs };
            let what = What { own: "ending yours", others: "ending that of others" };
            caller(&[("acme", role)], None).check_may_end(&org("acme"), &taken, what)
        };
        end(Role::Plan, &by("bob", "ci"), Role::Apply).expect("the very token, whatever it may by now");
        end(Role::Plan, &by("bob", "laptop"), Role::Plan).unwrap();
        end(Role::Apply, &by("bob", "laptop"), Role::Apply).unwrap();
        end(Role::Member, &by("alice", "ci"), Role::Apply).unwrap();
        let said = words(end(Role::Plan, &by("bob", "laptop"), Role::Apply));
        assert!(said.starts_with("ending yours needs the role apply in acme, and bob has plan"), "{said}");
        let said = words(end(Role::Apply, &by("alice", "ci"), Role::Plan));
        assert!(said.starts_with("ending that of others needs the role member in acme"), "{said}");
    }

    #[test]
    fn only_the_user_has_taken_it_with_a_token_that_may() {
        let has = |role, may, by: &Requester, needs| {
            let taken = Taken { by, user_made: None, at: NOW, needs };
            caller(&[("acme", role)], may).has_taken(&org("acme"), &taken)
        };
        assert!(has(Role::Apply, None, &by("bob", "laptop"), Role::Apply));
        assert!(!has(Role::Apply, Some(Role::Plan), &by("bob", "laptop"), Role::Apply));
        assert!(has(Role::Apply, Some(Role::Plan), &by("bob", "laptop"), Role::Plan));
        assert!(!has(Role::Apply, None, &by("bob", "laptop"), Role::Member), "by hand");
        for role in Role::ALL {
            assert!(!has(role, None, &by("alice", "ci"), Role::Plan), "{role} has not what others took");
        }
    }

    #[test]
    fn a_name_that_was_given_again_is_not_the_same() {
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
    fn where_it_is_known_when_its_user_was_made_that_counts() {
        let ours = by("bob", "ci");
        let taken = Taken { by: &ours, user_made: Some(NOW), at: NOW, needs: Role::Apply };
        let mut bob = caller(&[("acme", Role::Admin)], None);
        assert!(bob.has_taken(&org("acme"), &taken));
        bob.user.created = NOW.plus(Duration::from_nanos(1));
        assert!(!bob.has_taken(&org("acme"), &taken), "another user of this name");
    }
}
