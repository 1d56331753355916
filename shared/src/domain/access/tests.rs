use std::collections::BTreeMap;

use super::scope::matches;
use super::*;
use crate::domain::names::{Login, ProjectName, TeamName, TokenName};
use crate::domain::principal::Principal;
use crate::domain::role::{Right, Rights, Role};
use crate::ports::Timestamp;

fn team(members: &[&str]) -> Team {
    let member = |login: &&str| (Login::parse(login).unwrap(), TeamRole::Member);
    Team {
        created: Timestamp(0),
        display_name: String::new(),
        description: String::new(),
        members: members.iter().map(member).collect(),
    }
}

fn access(grants: &[(&str, &str, Role)]) -> Access {
    let grant = |(to, on, role): &(&str, &str, Role)| Grant {
        to: Grantee::parse(to).unwrap(),
        on: Scope::parse(on).unwrap(),
        role: GrantedRole(*role),
    };
    Access {
        teams: [(TeamName::parse("ops").unwrap(), team(&["bob"]))].into(),
        grants: grants.iter().map(grant).collect(),
        token_days_max: None,
    }
}

fn rights(access: &Access, of: &Principal, login: &str, unit: Option<(&str, &str, Tags<'_>)>) -> Held {
    let (login, token) = (Login::parse(login).unwrap(), TokenName::parse("ci").unwrap());
    let actor = Actor { of, login: &login, token: &token, role: Role::None, within: None };
    let project = unit.map(|(project, ..)| ProjectName::parse(project).unwrap());
    let unit = unit.zip(project.as_ref()).map(|((_, name, tags), project)| Unit { project, name, tags });
    held(access, &actor, unit.as_ref())
}

#[test]
fn texts_of_grants_read_back() {
    for text in ["everybody", "user:bob", "team:ops", "token:ci"] {
        assert_eq!(Grantee::parse(text).unwrap().to_string(), text);
    }
    for text in ["*", "web/*", "*/prod", "we*b/x", "tag:env=prod", "tag:a:b=", "tag:team/size=3"] {
        assert_eq!(Scope::parse(text).unwrap().to_string(), text);
    }
    for text in ["", "everyone", "user:", "team:a/b", "bob", "user:b b"] {
        assert!(Grantee::parse(text).is_err(), "{text}");
    }
    for text in ["", "web", "web/", "/x", "a/b/c", "tag:", "tag:env", "tag:=x", "a b/*", "tag:a=\u{7}"] {
        assert!(Scope::parse(text).is_err(), "{text}");
    }
    // Stored ones are read, and new ones are refused.
    let turning = Scope::parse("tag:team=a\u{202e}b").unwrap();
    assert!(turning.check_new().unwrap_err().to_string().contains("hidden characters"));
    Scope::parse("tag:team=a b").unwrap().check_new().unwrap();
}

#[test]
fn patterns_match_whole_names() {
    for (pattern, name, expected) in [
        ("*", "web", true),
        ("web", "web", true),
        ("web", "web2", false),
        ("web*", "web2", true),
        ("*prod", "eu-prod", true),
        ("*prod", "prod-eu", false),
        ("a*b*c", "a-b-b-c", true),
        ("a*b*c", "abc", true),
        ("a*a", "a", false),
        ("a**b", "ab", true),
        ("*a*", "b", false),
    ] {
        assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
    }
}

#[test]
fn a_grant_reaches_its_grantee_on_its_scope_only() {
    let all = access(&[
        ("user:bob", "web/*", Role::Apply),
        ("team:ops", "*/prod", Role::Plan),
        ("everybody", "*", Role::View),
        ("token:ci", "net/*", Role::Member),
    ]);
    let user = Principal::User;
    let on = |login, project, name| rights(&all, &user, login, Some((project, name, Tags::None))).rights;
    assert_eq!(on("bob", "web", "dev"), Role::Apply.rights());
    assert_eq!(on("bob", "net", "prod"), Role::Plan.rights());
    assert_eq!(on("ann", "net", "prod"), Role::View.rights());
    let machine = Principal::Organization;
    let on = |project| rights(&all, &machine, "acme", Some((project, "dev", Tags::None))).rights;
    assert_eq!(on("net"), Role::Member.rights());
    assert_eq!(on("web"), Rights::NONE, "a machine is not everybody");
    let ops = Principal::Team(TeamName::parse("ops").unwrap());
    let prod = Some(("net", "prod", Tags::None));
    assert_eq!(rights(&all, &ops, "acme", prod).rights, Role::Member.rights(), "as a team, and as a token");
    assert_eq!(rights(&all, &user, "bob", None).rights, Role::View.rights(), "in the organization itself");
}

#[test]
fn tags_that_are_not_known_yet_leave_it_open() {
    let all = access(&[("user:bob", "tag:env=dev", Role::Apply), ("user:bob", "web/*", Role::View)]);
    let on = |tags| rights(&all, &Principal::User, "bob", Some(("web", "x", tags)));
    let (view, apply) = (Role::View.rights(), Role::Apply.rights());
    assert_eq!(on(Tags::Unknown), Held { rights: view, rights_max: apply });
    assert_eq!(on(Tags::None), Held { rights: view, rights_max: view });
    let tags = BTreeMap::from([("env".to_owned(), "dev".to_owned())]);
    assert_eq!(on(Tags::Tags(&tags)).rights, apply);
    let tags = BTreeMap::from([("env".to_owned(), "prod".to_owned())]);
    assert_eq!(on(Tags::Tags(&tags)), Held { rights: view, rights_max: view });
    assert!(is_tag_granted(&all, "env") && !is_tag_granted(&all, "owner"));
}

#[test]
fn a_right_has_all_its_reasons() {
    let all = access(&[("team:ops", "*/prod", Role::Plan), ("user:bob", "web/*", Role::View)]);
    let (login, token) = (Login::parse("bob").unwrap(), TokenName::parse("ci").unwrap());
    let role = Role::Outputs;
    let actor = Actor { of: &Principal::User, login: &login, token: &token, role, within: None };
    let web = ProjectName::parse("web").unwrap();
    let unit = Unit { project: &web, name: "prod", tags: Tags::None };
    let why = |right| reasons(&all, &actor, Some(&unit), right).len();
    assert_eq!((why(Right::View), why(Right::Outputs), why(Right::Apply)), (2, 2, 0));
    assert_eq!(most(&all, &actor), Role::Plan.rights());
}

#[test]
fn a_token_with_a_scope_works_there_alone() {
    let all = access(&[("user:bob", "net/*", Role::Apply), ("user:bob", "web/*", Role::Plan)]);
    let (login, token) = (Login::parse("bob").unwrap(), TokenName::parse("ci").unwrap());
    let (web, net) = (ProjectName::parse("web").unwrap(), ProjectName::parse("net").unwrap());
    let tags = BTreeMap::from([("env".to_owned(), "dev".to_owned())]);
    let scope = |text: &str| Scope::parse(text).unwrap();
    let (in_web, tagged, everything) = (scope("web/*"), scope("tag:env=dev"), scope("*"));
    let of = Principal::User;
    let actor = |role, within| Actor { of: &of, login: &login, token: &token, role, within: Some(within) };
    let on = |actor: &Actor<'_>, project: &ProjectName, tags: Tags<'_>| {
        held(&all, actor, Some(&Unit { project, name: "dev", tags }))
    };

    let admin = actor(Role::Admin, &in_web);
    assert_eq!(on(&admin, &web, Tags::Unknown).rights, Role::Admin.rights());
    assert_eq!(on(&admin, &net, Tags::Unknown).rights_max, Rights::NONE);
    assert_eq!(held(&all, &admin, None).rights, Rights::NONE, "the organization itself");
    let outside = Unit { project: &net, name: "dev", tags: Tags::None };
    assert!(reasons(&all, &admin, Some(&outside), Right::See).is_empty());
    let may = |on: &str| may_grant(&all, &admin, &scope(on));
    assert_eq!((may("web/dev"), may("net/dev"), may("*")), (true, false, false));

    let without_role = actor(Role::None, &in_web);
    assert_eq!(on(&without_role, &web, Tags::None).rights, Role::Plan.rights(), "it adds nothing");
    assert_eq!(on(&without_role, &net, Tags::None).rights, Rights::NONE);

    let (member, rights) = (actor(Role::Member, &tagged), Role::Member.rights());
    assert_eq!(on(&member, &web, Tags::Unknown), Held { rights: Rights::NONE, rights_max: rights });
    assert_eq!(on(&member, &web, Tags::None).rights_max, Rights::NONE);
    assert_eq!(on(&member, &web, Tags::Tags(&tags)).rights, rights);

    assert_eq!(held(&all, &actor(Role::Admin, &everything), None).rights, Role::Admin.rights());
}

#[test]
fn a_list_reads_the_names_that_grants_reach() {
    let (login, token) = (Login::parse("bob").unwrap(), TokenName::parse("ci").unwrap());
    let read = |grants: &[&str], role, within: Option<&str>| {
        let grants: Vec<_> = grants.iter().map(|on| ("user:bob", *on, Role::Plan)).collect();
        let within = within.map(|within| Scope::parse(within).unwrap());
        let (of, within) = (&Principal::User, within.as_ref());
        let actor = Actor { of, login: &login, token: &token, role, within };
        let all = ranges(&access(&grants), &actor, Right::Plan);
        all.into_iter().map(|range| (range.start, range.is_whole)).collect::<Vec<_>>()
    };
    let range = |start: &str, is_whole| (start.to_owned(), is_whole);
    assert_eq!(read(&["web/*"], Role::Plan, None), [range("", false)], "the role reaches everything");
    assert_eq!(read(&["web/*", "net/dev"], Role::View, None), [range("net/dev", true), range("web/", false)]);
    assert_eq!(read(&["web/d*", "web/dev", "we*/x"], Role::None, None), [range("we", false)]);
    assert_eq!(
        read(&["web/dev", "web/dev-2", "web/dev*x"], Role::None, None),
        [range("web/dev", false)],
        "a range contains the names in it"
    );
    for everything in ["*", "*/prod", "tag:env=dev"] {
        assert_eq!(read(&["web/*", everything], Role::None, None), [range("", false)], "{everything}");
    }
    let many: Vec<String> = (0..=RANGES_MAX).map(|at| format!("web/{at}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(read(&many[1..], Role::None, None).len(), RANGES_MAX);
    assert_eq!(read(&many, Role::None, None), [range("", false)]);
    assert_eq!(read(&[], Role::Admin, Some("web/*")), [range("web/", false)]);
    assert_eq!(read(&["*", "net/*"], Role::None, Some("web/d*")), [range("web/d", false)]);
    assert_eq!(read(&["web/dev", "net/*"], Role::None, Some("web/*")), [range("web/dev", true)]);
    assert!(read(&["net/*"], Role::None, Some("web/*")).is_empty());
}

#[test]
fn a_scope_covers_what_it_always_contains() {
    let scope = |text: &str| Scope::parse(text).unwrap();
    for (outer, inner, expected) in [
        ("*", "web/*", true),
        ("*", "tag:env=dev", true),
        ("web/*", "web/dev", true),
        ("web/*", "web/*", true),
        ("web/*", "web*/dev", false),
        ("web*/*", "web-*/dev", true),
        ("web/d*", "web/*", false),
        ("web/a*a", "web/a*", false),
        ("*/*", "*", false),
        ("*/*", "tag:env=dev", false),
        ("tag:env=dev", "tag:env=dev", true),
        ("tag:env=dev", "tag:env=prod", false),
    ] {
        assert_eq!(scope(outer).covers(&scope(inner)), expected, "{outer} covers {inner}");
    }
    assert_eq!(scope("web/dev").exact(), Some(("web", "dev")));
    assert_eq!((scope("web/*").exact(), scope("*").exact()), (None, None));
}

#[test]
fn an_admin_of_a_part_gives_roles_in_that_part() {
    let all = access(&[("team:ops", "web/*", Role::Admin), ("user:bob", "net/*", Role::Member)]);
    let token = TokenName::parse("ci").unwrap();
    let may = |login: &str, role, on: &str| {
        let login = Login::parse(login).unwrap();
        let actor = Actor { of: &Principal::User, login: &login, token: &token, role, within: None };
        may_grant(&all, &actor, &Scope::parse(on).unwrap())
    };
    assert!(may("bob", Role::None, "web/dev") && may("bob", Role::None, "web/d*"));
    for on in ["*", "net/dev", "*/dev", "tag:env=dev"] {
        assert!(!may("bob", Role::Member, on), "{on}");
        assert!(may("ann", Role::Admin, on), "{on}");
    }
    assert!(!may("ann", Role::Member, "web/dev"), "not in the team");
}

#[test]
fn a_rename_moves_the_grants_on_one_name_or_copies_them() {
    let (from, to) = (Scope::parse("web/dev").unwrap(), Scope::parse("net/prod").unwrap());
    let all = access(&[("user:bob", "web/dev", Role::Apply), ("team:ops", "web/*", Role::View)]);
    let moved = access(&[("user:bob", "net/prod", Role::Apply), ("team:ops", "web/*", Role::View)]);
    assert_eq!(renamed(&all, &from, &to, false), moved);
    let both = Access { grants: all.grants.union(&moved.grants).cloned().collect(), ..all.clone() };
    assert_eq!(renamed(&all, &from, &to, true), both);
    assert_eq!(renamed(&moved, &from, &to, false), moved);
}

#[test]
fn a_user_who_left_leaves_no_right_behind() {
    let all = access(&[("user:bob", "web/*", Role::Apply), ("team:ops", "*", Role::View)]);
    let (bob, ann) = (Login::parse("bob").unwrap(), Login::parse("ann").unwrap());
    let next = without_member(&all, &bob).unwrap();
    assert_eq!(next.grants.len(), 1);
    assert!(next.teams.values().all(|team| team.members.is_empty()));
    assert_eq!((without_member(&next, &bob), without_member(&all, &ann)), (None, None));
    let difference = Difference::between(&all, &next);
    assert_eq!((difference.teams_changed.len(), difference.grants_removed.len()), (1, 1));
    assert!(difference.teams_added.is_empty() && !difference.is_empty());
    assert!(Difference::between(&all, &all).is_empty());
}

#[test]
fn a_role_on_one_scope_replaces_the_others_there() {
    let mut all = access(&[("team:ops", "web/dev", Role::Plan), ("team:ops", "web/dev", Role::View)]);
    let (ops, on) = (Grantee::parse("team:ops").unwrap(), Scope::parse("web/dev").unwrap());
    assert_eq!(role_on(&all, &ops, &on), Some(Role::Plan));
    set_role_on(&mut all, &ops, &on, Some(Role::Apply));
    assert_eq!((all.grants.len(), role_on(&all, &ops, &on)), (1, Some(Role::Apply)));
    let web = ProjectName::parse("web").unwrap();
    let unit = Unit { project: &web, name: "dev", tags: Tags::None };
    let team = TeamName::parse("ops").unwrap();
    assert_eq!(held_by_team(&all, &team, &unit), Role::Apply.rights());
    assert_eq!(most_of_team(&all, &team), Role::Apply.rights());
    set_role_on(&mut all, &ops, &on, None);
    assert_eq!((all.grants.len(), most_of_team(&all, &team)), (0, Rights::NONE));
}
