use std::time::Duration;

use super::*;
use crate::domain::access::{Grant, GrantedRole, Grantee, Scope};
use crate::domain::names::{Login, TeamName, TokenName};
use crate::domain::principal::Principal;
use crate::domain::update::Requester;
use crate::layout::{Token, User};
use crate::ports::Timestamp;
use crate::services::caller::CLOCKS_APART;

const NOW: Timestamp = Timestamp(0);

fn org(text: &str) -> OrgName {
    OrgName::parse(text).unwrap()
}

fn caller(roles: &[(&str, Role)], may: Option<Role>) -> Caller {
    let login = Login::parse("bob").unwrap();
    let token = Token { may, ..Token::personal(login.clone(), TokenName::parse("ci").unwrap(), NOW) };
    let user = User::new(login, NOW);
    Caller::new(roles.iter().fold(user, |user, (name, role)| user.as_member(&org(name), *role)), token)
}

fn sight<'a>(caller: &'a Caller, name: &str, grants: &[(&str, &str, Role)]) -> Result<Sight<'a>, Error> {
    let grant = |(to, on, role): &(&str, &str, Role)| Grant {
        to: Grantee::parse(to).unwrap(),
        on: Scope::parse(on).unwrap(),
        role: GrantedRole(*role),
    };
    let access = Access { grants: grants.iter().map(grant).collect(), ..Access::default() };
    Ok(Sight::new(caller, &org(name), caller.member(&org(name))?, Arc::new(access)))
}

fn in_acme(caller: &Caller) -> Standing<'_> {
    sight(caller, "acme", &[]).unwrap().in_org()
}

fn check(caller: &Caller) -> Result<(), Error> {
    in_acme(caller).check(caller.needs(), "this")
}

fn by(login: &str, token: &str) -> Requester {
    let (login, token) = (Login::parse(login).unwrap(), TokenName::parse(token).unwrap());
    Requester { login, token, of: Principal::User }
}

fn text_of(refused: Result<(), Error>) -> String {
    refused.unwrap_err().to_string()
}

#[test]
fn a_caller_is_limited_by_both_user_and_token() {
    for role in Role::ALL {
        for may in Role::ALL.map(Some).into_iter().chain([None]) {
            for needs in Right::ALL {
                let caller = caller(&[("acme", role)], may).asking_for(needs);
                let allowed = role.gives(needs) && may.is_none_or(|may| may.gives(needs));
                assert_eq!(
                    check(&caller).is_ok(),
                    allowed,
                    "{role} with a token for {may:?} asks for {needs:?}"
                );
                let foreign = sight(&caller, "other", &[]).map(drop);
                assert_eq!(
                    text_of(foreign),
                    "organization other not found: check its name, and that your user is a member"
                );
            }
        }
    }
}

#[test]
fn a_caller_with_no_stated_need_needs_admin() {
    check(&caller(&[("acme", Role::Member)], None)).unwrap_err();
    check(&caller(&[("acme", Role::Admin)], None)).unwrap();
}

#[test]
fn a_token_of_one_organization_sees_no_other() {
    let mut bob = caller(&[("acme", Role::Admin), ("beta", Role::Admin)], None);
    let token = Token { org: Some(org("beta")), ..bob.token.clone() };
    bob = Caller::new(bob.user, token);
    assert!(sight(&bob, "acme", &[]).is_err() && sight(&bob, "beta", &[]).is_ok());
}

#[test]
fn a_refusal_names_the_role_and_who_grants_it() {
    let bob = caller(&[("acme", Role::Plan)], None).asking_for(Right::Apply);
    assert_eq!(
        text_of(check(&bob)),
        "this needs the role apply in acme, and bob has plan: an admin of acme gives it in the console or with \
         `statewright org member role acme bob apply --server`, and the operator with the same command without --server"
    );
    let address = StackAddress::parse("acme", "web", "dev").unwrap();
    let seen = sight(&bob, "acme", &[]).unwrap();
    assert_eq!(
        text_of(seen.on(&Unit::stack(&address, Tags::None)).0.check(Right::Apply, "this")),
        "this needs the role apply in acme/web/dev, and bob has plan: an admin of acme gives it in the console or with \
         `statewright org grant add acme user:bob web/dev apply --server`, and the operator with the same command \
         without --server"
    );
    let ci = caller(&[("acme", Role::Admin)], Some(Role::Plan)).asking_for(Right::Apply);
    assert_eq!(
        text_of(check(&ci)),
        "this needs the role apply in acme, and the token \"ci\" of bob allows at most plan: use another token; bob \
         makes one in the console, and the operator with `statewright token create NAME --user bob --may apply`"
    );
    let both = caller(&[("acme", Role::Outputs)], Some(Role::Plan)).asking_for(Right::Apply);
    let message = text_of(check(&both));
    assert!(message.contains("--may apply") && message.contains("member role acme bob apply"), "{message}");
}

#[test]
fn a_refusal_names_admins_if_they_can_lift_it() {
    let named = |caller: &Caller| {
        let Err(Error::Access(AccessError::NotAllowed(mut why))) = check(caller) else {
            panic!("it is allowed")
        };
        why.admins = ["alice", "eve"].map(|login| Login::parse(login).unwrap()).to_vec();
        (why.lifted_in().is_some(), why.to_string().ends_with("; ask an admin: alice, eve"))
    };
    let bob = caller(&[("acme", Role::Plan)], None).asking_for(Right::Apply);
    assert_eq!(named(&bob), (true, true));
    let both = caller(&[("acme", Role::Outputs)], Some(Role::Plan)).asking_for(Right::Apply);
    assert_eq!(named(&both), (true, true));
    let ci = caller(&[("acme", Role::Admin)], Some(Role::Plan)).asking_for(Right::Apply);
    assert_eq!(named(&ci), (false, false), "only another token helps");
    let mut machine = caller(&[("acme", Role::Plan)], Some(Role::Plan)).asking_for(Right::Apply);
    machine.token.of = Principal::Organization;
    assert_eq!(named(&machine), (true, true));
}

#[test]
fn a_refused_token_of_a_part_names_the_part() {
    let mut bob = caller(&[("acme", Role::Admin)], None).asking_for(Right::Admin);
    bob.token.within = Scope::parse("web/*").ok();
    assert_eq!(
        text_of(check(&bob)),
        "this needs the role admin in acme, and the token \"ci\" of bob works only in web/*: use another token"
    );
    let Err(Error::Access(AccessError::NotAllowed(why))) = check(&bob) else { panic!("it is allowed") };
    assert_eq!(why.lifted_in(), None, "only another token helps");
    let seen = sight(&bob, "acme", &[]).unwrap();
    let address = StackAddress::parse("acme", "web", "dev").unwrap();
    seen.on(&Unit::stack(&address, Tags::None)).0.check(Right::Admin, "this").unwrap();
}

#[test]
fn a_refused_machine_learns_what_its_token_has() {
    let mut ci = caller(&[("acme", Role::Plan)], Some(Role::Plan)).asking_for(Right::Apply);
    ci.token.of = Principal::Organization;
    ci.user.login = (&org("acme")).into();
    assert_eq!(
        text_of(check(&ci)),
        "this needs the role apply in acme, and the organization token \"ci\" has plan: use another token, or have an \
         admin of acme grant more to it"
    );
    let address = StackAddress::parse("acme", "web", "dev").unwrap();
    let on_stack = |caller: &Caller| {
        let seen = sight(caller, "acme", &[]).unwrap();
        text_of(seen.on(&Unit::stack(&address, Tags::None)).0.check(Right::Apply, "this"))
    };
    assert_eq!(
        on_stack(&ci),
        "this needs the role apply in acme/web/dev, and the organization token \"ci\" has plan: use another token, or have an \
         admin of acme grant more to it with `statewright org grant add acme token:ci web/dev apply --server` or in the \
         console, or the operator with the same command without --server"
    );
    ci.token.of = Principal::Team(TeamName::parse("ops").unwrap());
    assert_eq!(
        on_stack(&ci),
        "this needs the role apply in acme/web/dev, and the team token \"ci\" allows at most plan: use another token"
    );
}

#[test]
fn a_grant_counts_on_its_scope_and_is_limited_by_the_token() {
    let grants: &[(&str, &str, Role)] = &[("user:bob", "web/*", Role::Apply)];
    let address = StackAddress::parse("acme", "web", "dev").unwrap();
    let other = StackAddress::parse("acme", "net", "dev").unwrap();
    let bob = caller(&[("acme", Role::None)], None).asking_for(Right::Apply);
    let seen = sight(&bob, "acme", grants).unwrap();
    let on = |address| seen.on(&Unit::stack(address, Tags::None)).0;
    on(&address).check(Right::Apply, "this").unwrap();
    assert!(!on(&other).has(Right::See));
    assert!(seen.in_org().check(Right::See, "this").is_err());
    assert!(seen.shows(&Unit::stack(&address, Tags::None)) && !seen.shows(&Unit::stack(&other, Tags::None)));
    let planner = caller(&[("acme", Role::None)], Some(Role::Plan)).asking_for(Right::Apply);
    let seen = sight(&planner, "acme", grants).unwrap();
    let message = text_of(seen.on(&Unit::stack(&address, Tags::None)).0.check(Right::Apply, "this"));
    assert!(
        message.starts_with("this needs the role apply in acme/web/dev, and the token \"ci\" of bob"),
        "{message}"
    );
}

fn taken(by: &Requester, user_made: Option<Timestamp>, needs: Right) -> Taken<'_> {
    Taken { by, user_made, at: NOW, needs }
}

#[test]
fn the_holder_and_members_may_end_what_was_taken() {
    let end = |role, by: &Requester, needs| {
        let what = What { own: "ending yours", others: "ending that of others" };
        in_acme(&caller(&[("acme", role)], None)).check_may_end(&taken(by, None, needs), what)
    };
    end(Role::Plan, &by("bob", "ci"), Right::Apply).expect("the same token, whatever its role is now");
    end(Role::Plan, &by("bob", "laptop"), Right::Plan).unwrap();
    end(Role::Apply, &by("bob", "laptop"), Right::Apply).unwrap();
    end(Role::Member, &by("alice", "ci"), Right::Apply).unwrap();
    let message = text_of(end(Role::Plan, &by("bob", "laptop"), Right::Apply));
    assert!(message.starts_with("ending yours needs the role apply in acme, and bob has plan"), "{message}");
    let message = text_of(end(Role::Apply, &by("alice", "ci"), Right::Plan));
    assert!(message.starts_with("ending that of others needs the role member in acme"), "{message}");
}

#[test]
fn another_token_of_the_user_needs_the_right() {
    let has = |role, may, by: &Requester, needs| {
        in_acme(&caller(&[("acme", role)], may)).has_taken(&taken(by, None, needs))
    };
    assert!(has(Role::Apply, None, &by("bob", "laptop"), Right::Apply));
    assert!(!has(Role::Apply, Some(Role::Plan), &by("bob", "laptop"), Right::Apply));
    assert!(has(Role::Apply, Some(Role::Plan), &by("bob", "laptop"), Right::Plan));
    assert!(!has(Role::Apply, None, &by("bob", "laptop"), Right::Member), "by hand");
    for role in Role::ALL {
        assert!(!has(role, None, &by("alice", "ci"), Right::Plan), "{role} did not take what others took");
    }
}

#[test]
fn a_later_user_or_token_of_the_same_name_has_taken_nothing() {
    let at = NOW.plus(CLOCKS_APART + Duration::from_secs(1));
    let ours = by("bob", "ci");
    let before = taken(&ours, None, Right::Apply);
    let mut bob = caller(&[("acme", Role::Plan)], None);
    assert!(in_acme(&bob).has_taken(&before));
    bob.token.created = at;
    assert!(!in_acme(&bob).has_taken(&before), "another token of this name");
    assert!(in_acme(&bob).has_taken(&Taken { at, ..before }));
    let mut bob = caller(&[("acme", Role::Apply)], None);
    bob.user.created = at;
    assert!(!in_acme(&bob).has_taken(&before), "another user of this name");
    let mut machine = caller(&[("acme", Role::Admin)], None);
    machine.token.of = Principal::Organization;
    assert!(!in_acme(&machine).has_taken(&before), "a machine of this name");
}

#[test]
fn the_creation_time_of_the_user_counts_if_known() {
    let ours = by("bob", "ci");
    let before = taken(&ours, Some(NOW), Right::Apply);
    let mut bob = caller(&[("acme", Role::Admin)], None);
    assert!(in_acme(&bob).has_taken(&before));
    bob.user.created = NOW.plus(Duration::from_nanos(1));
    assert!(!in_acme(&bob).has_taken(&before), "another user of this name");
}
