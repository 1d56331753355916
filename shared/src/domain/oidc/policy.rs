//! Policies of an issuer: which claims get which token.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::issuer_url::IssuerUrl;
use super::pattern::{PATTERN_CHARACTERS_MAX, Pattern};
use super::selector::{ClaimPath, texts};
use crate::domain::names::Login;
use crate::domain::role::Role;

/// Policies of an issuer, at most.
pub const POLICIES_MAX: usize = 50;

/// Rules of a policy, at most.
pub const RULES_MAX: usize = 20;

/// What a policy decides about tokens that match it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    Allow,
    Deny,
}

/// The owner of the token that a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenKind {
    Organization,
    Team,
    Personal,
}

/// More than the usual rights, or only these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Permission {
    Admin,
    Standard,
}

/// A policy. The members are those of Pulumi Cloud's API, in which clients write and read them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    pub decision: Decision,
    pub token_type: TokenKind,
    /// A pattern for the name of the team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_login: Option<Login>,
    /// Always `None`: this server has no runners, and a policy that names one is refused.
    #[serde(default, rename = "runnerID", skip_serializing_if = "Option::is_none")]
    pub runner: Option<String>,
    /// The role of an organization's or a team's token.
    #[serde(default, rename = "roleID", skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    #[serde(default)]
    pub authorized_permissions: Vec<Permission>,
    /// Patterns by the paths of claims, all of which have to match.
    pub rules: BTreeMap<String, String>,
}

/// Why a list of policies is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidPolicies {
    /// The number of the policy in the list, from 1; 0 for the list itself.
    pub number: usize,
    pub what: String,
}

impl std::error::Error for InvalidPolicies {}

impl fmt::Display for InvalidPolicies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            0 => f.write_str(&self.what),
            number => write!(f, "policy {number}: {}", self.what),
        }
    }
}

/// A request for a token, as its client names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestedToken<'a> {
    pub kind: TokenKind,
    /// The name of the team, or the login of the user.
    pub owner: Option<&'a str>,
}

/// What the policies decide about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// At least one policy allows it, and none denies it. The most that the token may do by these policies; `None` for
    /// everything that its owner may do.
    Allowed(Option<Role>),
    /// A policy denies it.
    Denied,
    /// No policy allows it.
    NotAllowed,
}

/// Decides about a request with a verified token. One policy that denies is enough to refuse, and without one that
/// allows, nothing is allowed.
pub fn decide(policies: &[Policy], wanted: RequestedToken<'_>, claims: &Value) -> Verdict {
    let matching = || policies.iter().filter(|policy| policy.matches(wanted, claims));
    if matching().any(|policy| policy.decision == Decision::Deny) {
        return Verdict::Denied;
    }
    let given: Vec<Option<Role>> = matching().map(Policy::gives).collect();
    if given.is_empty() {
        return Verdict::NotAllowed;
    }
    let roles: Option<Vec<Role>> = given.into_iter().collect();
    let highest = |roles: Vec<Role>| Role::ALL.into_iter().rev().find(|role| roles.contains(role));
    Verdict::Allowed(roles.and_then(highest))
}

impl Policy {
    fn matches(&self, wanted: RequestedToken<'_>, claims: &Value) -> bool {
        self.token_type == wanted.kind && self.is_for(wanted.owner) && self.is_met_by(claims)
    }

    fn is_for(&self, owner: Option<&str>) -> bool {
        let is_team = |pattern: &String| {
            Pattern::parse(pattern).is_some_and(|pattern| owner.is_some_and(|owner| pattern.matches(owner)))
        };
        match self.token_type {
            TokenKind::Organization => true,
            TokenKind::Team => self.team_name.as_ref().is_none_or(is_team),
            TokenKind::Personal => self.user_login.as_ref().is_none_or(|login| owner == Some(login.as_str())),
        }
    }

    /// Whether every rule finds a claim that matches. A policy that denies matches a claim that cannot be read: this
    /// server reads all claims that have a text, so only a path to an object is one.
    fn is_met_by(&self, claims: &Value) -> bool {
        self.rules.iter().all(|(path, pattern)| {
            let (Some(path), Some(pattern)) = (ClaimPath::parse(path), Pattern::parse(pattern)) else {
                return self.decision == Decision::Deny;
            };
            let found = path.find(claims);
            found.is_some_and(|claim| texts(claim).iter().any(|text| pattern.matches(text)))
        })
    }

    /// The role of the token that this policy gives. A token of a team or a person has no role of its own.
    fn gives(&self) -> Option<Role> {
        match (self.authorized_permissions.contains(&Permission::Admin), self.token_type) {
            (true, _) => Some(Role::Admin),
            (false, TokenKind::Organization) => Some(self.role.unwrap_or(Role::Member)),
            (false, TokenKind::Team | TokenKind::Personal) => self.role,
        }
    }

    fn check(&self, issuer: &IssuerUrl) -> Result<(), String> {
        let is_admin = self.authorized_permissions.contains(&Permission::Admin);
        for (path, pattern) in &self.rules {
            if ClaimPath::parse(path).is_none() {
                return Err(format!(
                    "{:?} is not the path of a claim: write keys with periods between them, and a key that has a \
                     period in quotes, as in \"kubernetes.io\".namespace",
                    shortened(path)
                ));
            }
            if Pattern::parse(pattern).is_none() {
                return Err(format!(
                    "the pattern of {path} is empty or longer than {PATTERN_CHARACTERS_MAX} characters"
                ));
            }
        }
        if self.runner.is_some() {
            return Err("runnerID is for tokens of runners, which this server does not have".to_owned());
        }
        if self.rules.len() > RULES_MAX {
            return Err(format!("it has more than {RULES_MAX} rules"));
        }
        match self.token_type {
            TokenKind::Organization if self.team_name.is_some() || self.user_login.is_some() => {
                return Err("a token of the organization has neither teamName nor userLogin".to_owned());
            }
            TokenKind::Team if self.user_login.is_some() => {
                return Err("a token of a team has no userLogin".to_owned());
            }
            TokenKind::Personal if self.team_name.is_some() || self.role.is_some() || is_admin => {
                return Err(
                    "a personal token has no teamName, roleID or authorizedPermissions: it may do what its \
                            user may, without the role admin"
                        .to_owned(),
                );
            }
            _ => {}
        }
        let bad_team = |team: &String| Pattern::parse(team).is_none_or(Pattern::is_only_wildcards);
        if self.team_name.as_ref().is_some_and(bad_team) {
            return Err("teamName names no team: write the name, with wildcards in a part of it".to_owned());
        }
        if self.role == Some(Role::Admin) && !is_admin {
            return Err("the role admin also needs \"admin\" in authorizedPermissions".to_owned());
        }
        match self.decision {
            Decision::Deny => Ok(()),
            Decision::Allow => self.check_narrow(issuer),
        }
    }

    /// Refuses a policy that would let in tokens of everybody who can get one from the issuer.
    fn check_narrow(&self, issuer: &IssuerUrl) -> Result<(), String> {
        match self.token_type {
            TokenKind::Team if self.team_name.is_none() => {
                return Err("a policy that allows tokens of a team needs teamName".to_owned());
            }
            TokenKind::Personal if self.user_login.is_none() => {
                return Err("a policy that allows personal tokens needs userLogin".to_owned());
            }
            _ => {}
        }
        let rules = || {
            self.rules
                .iter()
                .filter_map(|(path, pattern)| Some((ClaimPath::parse(path)?, Pattern::parse(pattern)?)))
        };
        let says_something = |(path, pattern): (ClaimPath<'_>, Pattern<'_>)| {
            let is_of_every_token = path.is_single() && OF_EVERY_TOKEN.contains(&path.first());
            !is_of_every_token && !pattern.is_only_wildcards()
        };
        if !rules().any(says_something) {
            return Err("it allows every token of the issuer: add a rule for a claim that says who has the token, such \
                        as sub"
                .to_owned());
        }
        let Some((_, claims)) = SHARED.iter().find(|(url, _)| *url == issuer.as_str().trim_end_matches('/'))
        else {
            return Ok(());
        };
        let names_owner = |(path, pattern): (ClaimPath<'_>, Pattern<'_>)| {
            let claim = claims.iter().find(|claim| path.is_single() && claim.name == path.first());
            claim.is_some_and(|claim| claim.names_owner(pattern))
        };
        if rules().any(names_owner) {
            return Ok(());
        }
        let names = claims.iter().map(|claim| claim.name).collect::<Vec<_>>().join(", ");
        Err(format!(
            "{issuer} gives tokens to all of its customers, and no rule names yours: write a rule for one of {names} \
             without a wildcard in the name of the owner"
        ))
    }
}

/// Claims that say nothing about who has the token.
const OF_EVERY_TOKEN: &[&str] = &["iss", "aud", "exp", "iat", "nbf", "jti"];

/// A claim that names a customer of an issuer.
struct OwnerClaim {
    name: &'static str,
    /// What follows the name of the owner and its prefix; `None` if the whole claim is the owner.
    ends_with: Option<&'static str>,
}

impl OwnerClaim {
    fn names_owner(&self, pattern: Pattern<'_>) -> bool {
        match self.ends_with {
            Some(end) => !pattern.has_wildcard() || pattern.literal_start().contains(end),
            None => !pattern.has_wildcard(),
        }
    }
}

const fn whole(name: &'static str) -> OwnerClaim {
    OwnerClaim { name, ends_with: None }
}

const fn start(name: &'static str, ends_with: &'static str) -> OwnerClaim {
    OwnerClaim { name, ends_with: Some(ends_with) }
}

/// Issuers that many organizations share, with the claims that name the organization. An issuer that belongs to one
/// organization, such as a cluster's or CircleCI's, is not in this list.
const SHARED: &[(&str, &[OwnerClaim])] = &[
    (
        "https://token.actions.githubusercontent.com",
        &[
            start("sub", "/"),
            start("repository", "/"),
            whole("repository_id"),
            whole("repository_owner"),
            whole("repository_owner_id"),
            whole("enterprise"),
            whole("enterprise_id"),
        ],
    ),
    (
        "https://gitlab.com",
        &[
            start("sub", "/"),
            start("project_path", "/"),
            whole("project_id"),
            start("namespace_path", "/"),
            whole("namespace_id"),
        ],
    ),
    (
        "https://agent.buildkite.com",
        &[start("sub", ":pipeline:"), whole("organization_slug"), whole("organization_id")],
    ),
    (
        super::aws::ISSUER,
        &[whole("aws:account"), start("aws:role", ":role/"), start("aws:arn", ":assumed-role/")],
    ),
    ("https://accounts.google.com", &[whole("sub"), whole("email")]),
];

fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Checks a list of policies that replaces the one of an issuer.
///
/// # Errors
/// [`InvalidPolicies`] with the first rule that is broken.
pub fn check_all(policies: &[Policy], issuer: &IssuerUrl) -> Result<(), InvalidPolicies> {
    // The text of Pulumi Cloud.
    if policies.is_empty() {
        return Err(InvalidPolicies { number: 0, what: "policy definition can not be empty".to_owned() });
    }
    if policies.len() > POLICIES_MAX {
        return Err(InvalidPolicies {
            number: 0,
            what: format!("an issuer has at most {POLICIES_MAX} policies"),
        });
    }
    for (index, policy) in policies.iter().enumerate() {
        policy.check(issuer).map_err(|what| InvalidPolicies { number: index + 1, what })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ALLOWED: Verdict = Verdict::Allowed(Some(Role::Member));

    const GITHUB: &str = "https://token.actions.githubusercontent.com";

    fn policy(text: Value) -> Policy {
        serde_json::from_value(text).unwrap()
    }

    fn allow(rules: &Value) -> Policy {
        policy(
            json!({ "decision": "allow", "tokenType": "organization", "authorizedPermissions": [], "rules": rules }),
        )
    }

    fn verdict(policies: &[Policy], kind: TokenKind, owner: Option<&str>) -> Verdict {
        let claims = json!({
            "sub": "repo:acme/app:ref:refs/heads/main", "repository_owner": "acme", "actor": "bob",
            "aud": ["urn:pulumi:org:acme", "other"],
        });
        decide(policies, RequestedToken { kind, owner }, &claims)
    }

    fn of_org(policies: &[Policy]) -> Verdict {
        verdict(policies, TokenKind::Organization, None)
    }

    #[test]
    fn nothing_is_allowed_by_default() {
        assert_eq!(of_org(&[]), Verdict::NotAllowed);
        assert_eq!(of_org(&[allow(&json!({ "sub": "repo:other/*" }))]), Verdict::NotAllowed);
        assert_eq!(of_org(&[allow(&json!({ "sub": "repo:acme/*", "missing": "*" }))]), Verdict::NotAllowed);
        let all = allow(&json!({ "sub": "repo:acme/*", "actor": "bob", "aud": "other" }));
        assert_eq!(of_org(&[all]), ALLOWED, "an array matches by one element");
    }

    #[test]
    fn one_policy_that_denies_is_enough() {
        let allowed = allow(&json!({ "sub": "repo:acme/*" }));
        let deny = |rules: Value| Policy { decision: Decision::Deny, ..allow(&rules) };
        let denied = deny(json!({ "actor": "b?b" }));
        for both in [[allowed.clone(), denied.clone()], [denied, allowed.clone()]] {
            assert_eq!(of_org(&both), Verdict::Denied);
        }
        let other = deny(json!({ "actor": "alice" }));
        assert_eq!(of_org(&[allowed.clone(), other]), ALLOWED);
        assert_eq!(of_org(&[allowed.clone(), deny(json!({}))]), Verdict::Denied, "no rule: it denies all");
        let of_teams = Policy { token_type: TokenKind::Team, ..deny(json!({})) };
        assert_eq!(of_org(&[allowed, of_teams]), ALLOWED, "of another kind");
    }

    #[test]
    fn a_policy_is_for_one_kind_of_token_and_its_owner() {
        let rules = json!({ "sub": "repo:acme/*" });
        let team =
            policy(json!({ "decision": "allow", "tokenType": "team", "teamName": "web-*", "rules": rules }));
        let own = policy(
            json!({ "decision": "allow", "tokenType": "personal", "userLogin": "bob", "rules": rules }),
        );
        let both = [team, own];
        let team = |owner| verdict(&both, TokenKind::Team, owner);
        let own = |owner| verdict(&both, TokenKind::Personal, owner);
        assert_eq!(team(Some("web-ops")), Verdict::Allowed(None), "all that the team may do");
        assert_eq!(own(Some("bob")), Verdict::Allowed(None));
        assert_eq!(of_org(&both), Verdict::NotAllowed);
        for other in [None, Some("ops"), Some("bob")] {
            assert_eq!(team(other), Verdict::NotAllowed, "{other:?}");
        }
        for other in [None, Some("bobby"), Some("Bob"), Some("web-ops")] {
            assert_eq!(own(other), Verdict::NotAllowed, "{other:?}");
        }
    }

    #[test]
    fn the_role_is_the_highest_that_a_policy_gives() {
        let rules = json!({ "sub": "repo:acme/*" });
        let plan = Policy { role: Some(Role::Plan), ..allow(&rules) };
        let apply = Policy { role: Some(Role::Apply), ..allow(&rules) };
        let admin = Policy { authorized_permissions: vec![Permission::Admin], ..allow(&rules) };
        let other = Policy { rules: [("sub".to_owned(), "no".to_owned())].into(), ..admin.clone() };
        assert_eq!(of_org(&[plan.clone(), other]), Verdict::Allowed(Some(Role::Plan)));
        assert_eq!(of_org(&[apply.clone(), plan.clone()]), Verdict::Allowed(Some(Role::Apply)));
        assert_eq!(of_org(&[plan, admin]), Verdict::Allowed(Some(Role::Admin)));
    }

    fn refusal(issuer: &str, policy: Policy) -> String {
        check_all(&[policy], &IssuerUrl::parse(issuer).unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn a_policy_must_say_who_has_the_token() {
        let own = "https://ci.example.com";
        let issuer = IssuerUrl::parse(own).unwrap();
        check_all(&[allow(&json!({ "sub": "job:*" }))], &issuer).unwrap();
        for wide in [
            json!({}),
            json!({ "sub": "*" }),
            json!({ "sub": "?*" }),
            json!({ "aud": "urn:pulumi:org:acme" }),
        ] {
            let message = refusal(own, allow(&wide));
            assert!(
                message.starts_with("policy 1: it allows every token of the issuer"),
                "{wide}: {message}"
            );
        }
        let deny_all = Policy { decision: Decision::Deny, ..allow(&json!({})) };
        check_all(&[deny_all], &issuer).unwrap();
        assert_eq!(check_all(&[], &issuer).unwrap_err().to_string(), "policy definition can not be empty");
    }

    #[test]
    fn a_policy_of_a_shared_issuer_must_name_the_owner() {
        let github = IssuerUrl::parse(GITHUB).unwrap();
        for good in [
            json!({ "sub": "repo:acme/app:*" }),
            json!({ "sub": "repo:acme/*" }),
            json!({ "repository_owner": "acme", "ref": "refs/heads/main" }),
            json!({ "repository": "acme/*" }),
            json!({ "repository_owner_id": "123" }),
        ] {
            check_all(&[allow(&good)], &github).unwrap_or_else(|error| panic!("{good}: {error}"));
        }
        for bad in [
            json!({ "sub": "repo:*" }),
            json!({ "sub": "repo:ac*/app:*" }),
            json!({ "sub": "*:environment:prod" }),
            json!({ "repository_owner": "acme*" }),
            json!({ "ref": "refs/heads/main" }),
            json!({ "actor": "bob" }),
        ] {
            for url in [GITHUB, "https://token.actions.githubusercontent.com/"] {
                let message = refusal(url, allow(&bad));
                assert!(
                    message.contains("no rule names yours") && message.contains("repository_owner"),
                    "{bad}: {message}"
                );
            }
        }
        assert!(refusal("https://gitlab.com", allow(&json!({ "ref": "main" }))).contains("namespace_path"));
    }

    #[test]
    fn a_policy_with_parts_that_do_not_fit_is_refused() {
        let own = "https://ci.example.com";
        let rules = json!({ "sub": "job" });
        let check = |text: Value| {
            let mut whole = json!({ "decision": "allow", "tokenType": "organization", "rules": rules });
            whole.as_object_mut().unwrap().extend(text.as_object().unwrap().clone());
            check_all(&[policy(whole)], &IssuerUrl::parse(own).unwrap()).map_err(|error| error.what)
        };
        check(json!({ "roleID": "plan" })).unwrap();
        check(json!({ "roleID": "admin", "authorizedPermissions": ["admin"] })).unwrap();
        for (text, why) in [
            (json!({ "roleID": "admin" }), "authorizedPermissions"),
            (json!({ "teamName": "web" }), "neither teamName"),
            (json!({ "runnerID": "x" }), "tokens of runners"),
            (json!({ "tokenType": "team" }), "needs teamName"),
            (json!({ "tokenType": "team", "teamName": "*" }), "names no team"),
            (json!({ "tokenType": "personal" }), "needs userLogin"),
            (
                json!({ "tokenType": "personal", "userLogin": "bob", "roleID": "plan" }),
                "a personal token has no",
            ),
            (
                json!({ "tokenType": "personal", "userLogin": "bob", "authorizedPermissions": ["admin"] }),
                "a personal token has no",
            ),
            (json!({ "rules": { "a..b": "x", "sub": "job" } }), "not the path of a claim"),
            (json!({ "rules": { "sub": "" } }), "empty or longer"),
        ] {
            let message = check(text.clone()).unwrap_err();
            assert!(message.contains(why), "{text}: {message}");
        }
    }
}
