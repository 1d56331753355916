//! Rules for people who sign in with an OpenID Connect provider: which login they get, and which roles their
//! groups give. All of it reads the claims of an ID token whose signature was verified.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::names::{InvalidName, Login, OrgName, TeamName};
use super::role::Role;

/// Rules of one provider, at most.
pub const RULES_MAX: usize = 500;

/// Groups of one person that are read, at most. A provider that sends more than 200 usually sends a reference
/// instead of the groups.
pub const GROUPS_MAX: usize = 1_000;

/// The length of the name of a group, in bytes, at most.
pub const GROUP_BYTES_MAX: usize = 256;

/// The claim that names a person's groups, unless the operator names another.
pub const GROUPS_CLAIM: &str = "groups";

/// The claim that names a new user, unless the operator names another.
pub const LOGIN_CLAIM: &str = "preferred_username";

/// A rule of a provider: the people of a group are members of an organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignInRule {
    /// The group, as the provider names it. `*` stands for any text, so a lone `*` means everybody whom the
    /// provider lets in.
    pub group: String,
    pub org: OrgName,
    /// The role in the organization.
    pub role: Role,
    /// A team of the organization, if they are members of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<TeamName>,
}

/// A text that is not a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRule {
    #[error(
        "write a rule as GROUP=ORGANIZATION:ROLE or GROUP=ORGANIZATION:ROLE:TEAM, such as platform=acme:apply"
    )]
    Form,
    #[error(transparent)]
    Name(#[from] InvalidName),
    #[error("use one of the roles {}", Role::ALL.map(Role::as_str).join(", "))]
    Role,
}

impl FromStr for SignInRule {
    type Err = InvalidRule;

    /// Parses `GROUP=ORGANIZATION:ROLE`, with `:TEAM` for a team. A group may contain `=`, as the names of directories
    /// do.
    fn from_str(text: &str) -> Result<Self, InvalidRule> {
        let (group, given) = text.rsplit_once('=').unwrap_or_default();
        let (org, role, team) = match given.split(':').collect::<Vec<_>>()[..] {
            [org, role] => (org, role, None),
            [org, role, team] => (org, role, Some(TeamName::parse(team)?)),
            _ => return Err(InvalidRule::Form),
        };
        let (org, role) = (OrgName::parse(org)?, Role::parse(role).ok_or(InvalidRule::Role)?);
        Ok(Self { group: group.to_owned(), org, role, team })
    }
}

/// The teams of organizations.
pub type Teams = BTreeSet<(OrgName, TeamName)>;

impl SignInRule {
    fn applies_to(&self, groups: &BTreeSet<String>) -> bool {
        self.group == "*" || groups.iter().any(|group| matches(&self.group, group))
    }
}

/// Why the claims of a person cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadClaims {
    /// The provider did not send the groups, because there are too many of them.
    #[error(
        "the provider left out your groups, because you are in too many of them: its administrator has to send only the \
         groups that are assigned to this application"
    )]
    GroupsLeftOut,
    /// The claim of groups is not a list of texts.
    #[error(
        "the claim {0:?} of the ID token is not a list of names of groups: its administrator has to change that"
    )]
    GroupsNotAList(String),
    /// There are more groups than are read.
    #[error("the ID token names more than {GROUPS_MAX} groups: its administrator has to send fewer")]
    TooManyGroups,
    /// The claim that names the login is missing.
    #[error("the ID token has no claim {0:?}, which names your user here: its administrator has to send it")]
    NoLogin(String),
    /// The claim has no text that can be a login.
    #[error(
        "the claim {claim:?} of the ID token is {found:?}, which cannot be the name of a user: the operator creates a user \
         for you with `statewright user create`, and then you link your account"
    )]
    NotALogin {
        /// The name of the claim.
        claim: String,
        /// Its text, shortened.
        found: String,
    },
}

/// The groups in the claims of a person. Without the claim, a person is in none.
///
/// # Errors
/// [`BadClaims`]. A provider that leaves the groups out is not read as one that names none: rules could then take
/// roles away.
pub fn groups(claims: &Map<String, Value>, claim: &str) -> Result<BTreeSet<String>, BadClaims> {
    // Microsoft Entra sends these instead of more than 200 groups.
    // Source: MicrosoftDocs, "Configure group claims and app roles in tokens", groups overage claim.
    let elsewhere = claims.get("_claim_names").and_then(Value::as_object);
    let is_left_out = claims.get("hasgroups").is_some_and(|has| *has != Value::Bool(false))
        || elsewhere.is_some_and(|names| names.contains_key(claim) || names.contains_key(GROUPS_CLAIM));
    if is_left_out {
        return Err(BadClaims::GroupsLeftOut);
    }
    let not_a_list = || BadClaims::GroupsNotAList(claim.to_owned());
    match claims.get(claim) {
        None | Some(Value::Null) => Ok(BTreeSet::new()),
        Some(Value::String(group)) => Ok(BTreeSet::from([group.clone()])),
        Some(Value::Array(groups)) if groups.len() > GROUPS_MAX => Err(BadClaims::TooManyGroups),
        Some(Value::Array(groups)) => {
            groups.iter().map(|group| group.as_str().map(str::to_owned).ok_or_else(not_a_list)).collect()
        }
        Some(_) => Err(not_a_list()),
    }
}

/// The login of a new user, from a claim. Of an email address, this is the part before the `@`.
///
/// # Errors
/// [`BadClaims::NoLogin`], [`BadClaims::NotALogin`].
pub fn login(claims: &Map<String, Value>, claim: &str) -> Result<Login, BadClaims> {
    let text = claims.get(claim).and_then(Value::as_str).filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| BadClaims::NoLogin(claim.to_owned()))?;
    let name = text.split_once('@').map_or(text, |(name, _)| name);
    // Logins may not have periods, which many directories put between names.
    let name = name.replace('.', "-").to_ascii_lowercase();
    Login::parse(&name)
        .map_err(|_| BadClaims::NotALogin { claim: claim.to_owned(), found: text.chars().take(60).collect() })
}

/// The roles that rules give to a person with these groups: the highest one for each organization.
pub fn roles(rules: &[SignInRule], groups: &BTreeSet<String>) -> BTreeMap<OrgName, Role> {
    let mut roles: BTreeMap<OrgName, Role> = BTreeMap::new();
    for rule in rules.iter().filter(|rule| rule.applies_to(groups)) {
        let role = roles.entry(rule.org.clone()).or_insert(rule.role);
        *role = higher(*role, rule.role);
    }
    roles
}

/// The teams that rules give to a person with these groups.
pub fn teams(rules: &[SignInRule], groups: &BTreeSet<String>) -> Teams {
    let applied = rules.iter().filter(|rule| rule.applies_to(groups));
    applied.filter_map(|rule| Some((rule.org.clone(), rule.team.clone()?))).collect()
}

/// The role that a member has after a sign-in. `has` is the role now, `gave` the one that the rules gave at the last
/// sign-in, and `gives` the one that they give now. What somebody else gave in between is not lowered.
pub fn settled(has: Option<Role>, gave: Option<Role>, gives: Option<Role>) -> Option<Role> {
    match (has.filter(|_| has != gave), gives) {
        (Some(own), Some(gives)) => Some(higher(own, gives)),
        (own, gives) => own.or(gives),
    }
}

fn higher(one: Role, other: Role) -> Role {
    if rank(other) > rank(one) { other } else { one }
}

/// The place of a role among all, lowest first.
fn rank(role: Role) -> Option<usize> {
    Role::ALL.iter().position(|other| *other == role)
}

/// Whether a text has the form of a pattern, in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claims(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    fn org(name: &str) -> OrgName {
        OrgName::parse(name).unwrap()
    }

    fn rule(group: &str, name: &str, role: Role) -> SignInRule {
        SignInRule { group: group.to_owned(), org: org(name), role, team: None }
    }

    fn set(groups: &[&str]) -> BTreeSet<String> {
        groups.iter().map(|group| (*group).to_owned()).collect()
    }

    #[test]
    fn a_rule_has_a_group_an_organization_and_a_role() {
        let parsed: SignInRule = "cn=dev,ou=teams=acme:apply".parse().unwrap();
        assert_eq!(parsed, rule("cn=dev,ou=teams", "acme", Role::Apply));
        let with_team: SignInRule = "dev=acme:none:web".parse().unwrap();
        assert_eq!(with_team.team, TeamName::parse("web").ok());
        for bad in ["", "dev", "dev=acme", "dev:apply", "dev=acme:owner", "dev=a:plan", "dev=acme:plan:a:b"] {
            assert!(bad.parse::<SignInRule>().is_err(), "{bad:?} was accepted as a rule");
        }
    }

    #[test]
    fn groups_are_read_from_the_named_claim() {
        let all = claims(json!({ "groups": ["dev", "ops"], "roles": "admins", "odd": [1], "more": {} }));
        assert_eq!(groups(&all, "groups"), Ok(set(&["dev", "ops"])));
        assert_eq!(groups(&all, "roles"), Ok(set(&["admins"])));
        assert_eq!(groups(&all, "missing"), Ok(set(&[])));
        assert_eq!(groups(&all, "odd"), Err(BadClaims::GroupsNotAList("odd".to_owned())));
        assert_eq!(groups(&all, "more"), Err(BadClaims::GroupsNotAList("more".to_owned())));
        let many: Vec<String> = (0..=GROUPS_MAX).map(|number| number.to_string()).collect();
        assert_eq!(groups(&claims(json!({ "groups": many })), "groups"), Err(BadClaims::TooManyGroups));
    }

    #[test]
    fn groups_that_were_left_out_are_not_read_as_none() {
        for left_out in [
            json!({ "hasgroups": true }),
            json!({ "hasgroups": "true" }),
            json!({ "_claim_names": { "groups": "src1" }, "_claim_sources": {} }),
            json!({ "_claim_names": { "groups": "src1" }, "groups": ["dev"] }),
        ] {
            assert_eq!(
                groups(&claims(left_out.clone()), "groups"),
                Err(BadClaims::GroupsLeftOut),
                "{left_out}"
            );
        }
        let none = json!({ "hasgroups": false, "_claim_names": { "picture": "src1" } });
        assert_eq!(groups(&claims(none), "groups"), Ok(set(&[])));
    }

    #[test]
    fn the_login_is_made_from_its_claim() {
        let of = |text: &str| login(&claims(json!({ "name": text })), "name").map(String::from);
        assert_eq!(of("alice"), Ok("alice".to_owned()));
        assert_eq!(of("Alice.Smith@example.com"), Ok("alice-smith".to_owned()));
        for bad in ["al", "alice smith", "älice", "@example.com", "a/b/c", "<script>"] {
            let found = bad.to_owned();
            assert_eq!(of(bad), Err(BadClaims::NotALogin { claim: "name".to_owned(), found }), "{bad}");
        }
        for none in [json!({}), json!({ "name": "" }), json!({ "name": 7 })] {
            let missing = Err(BadClaims::NoLogin("name".to_owned()));
            assert_eq!(login(&claims(none.clone()), "name"), missing, "{none}");
        }
    }

    #[test]
    fn the_highest_role_of_all_rules_counts() {
        let rules = [
            rule("dev", "acme", Role::Apply),
            rule("*", "acme", Role::Plan),
            rule("ops-*", "acme", Role::Admin),
            rule("dev", "beta", Role::Outputs),
            rule("audit", "beta", Role::Auditor),
        ];
        let of = |groups: &[&str]| roles(&rules, &set(groups));
        assert_eq!(of(&["audit"]).get(&org("beta")), Some(&Role::Auditor));
        assert_eq!(of(&["audit", "dev"]).get(&org("beta")), Some(&Role::Outputs));
        assert_eq!(of(&[]), BTreeMap::from([(org("acme"), Role::Plan)]));
        assert_eq!(of(&["dev"]), BTreeMap::from([(org("acme"), Role::Apply), (org("beta"), Role::Outputs)]));
        assert_eq!(of(&["ops-eu"]), BTreeMap::from([(org("acme"), Role::Admin)]));
        assert_eq!(of(&["Dev", "ops"]), BTreeMap::from([(org("acme"), Role::Plan)]));
        assert_eq!(roles(&rules[..1], &set(&["x"])), BTreeMap::new());
    }

    #[test]
    fn rules_give_teams() {
        let team = |name: &str| TeamName::parse(name).unwrap();
        let with = |group: &str, name: &str| SignInRule {
            team: Some(team(name)),
            ..rule(group, "acme", Role::None)
        };
        let rules = [with("dev", "web"), with("*", "all"), rule("dev", "beta", Role::Plan)];
        let all = (org("acme"), team("all"));
        assert_eq!(teams(&rules, &set(&[])), BTreeSet::from([all.clone()]));
        assert_eq!(teams(&rules, &set(&["dev"])), BTreeSet::from([all, (org("acme"), team("web"))]));
    }

    #[test]
    fn rules_take_away_only_what_they_gave() {
        use Role::{Admin, Apply, Plan};
        for (has, gave, gives, expected) in [
            (None, None, Some(Plan), Some(Plan)),
            (None, Some(Plan), Some(Plan), Some(Plan)),
            (None, Some(Plan), None, None),
            (Some(Plan), Some(Plan), None, None),
            (Some(Apply), Some(Apply), Some(Plan), Some(Plan)),
            (Some(Plan), Some(Plan), Some(Apply), Some(Apply)),
            (Some(Admin), Some(Plan), None, Some(Admin)),
            (Some(Admin), None, Some(Plan), Some(Admin)),
            (Some(Plan), None, Some(Apply), Some(Apply)),
            (Some(Plan), Some(Apply), Some(Apply), Some(Apply)),
        ] {
            assert_eq!(settled(has, gave, gives), expected, "{has:?} {gave:?} {gives:?}");
        }
    }

    #[test]
    fn a_pattern_matches_the_whole_name() {
        for (pattern, text, expected) in [
            ("dev", "dev", true),
            ("dev", "devs", false),
            ("dev", "a-dev", false),
            ("*", "", true),
            ("dev-*", "dev-", true),
            ("*-dev", "eu-dev", true),
            ("*-dev", "eu-dev2", false),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "ac", false),
            ("a*a", "a", false),
            ("a**c", "abc", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
