//! `statewright issuer` and `statewright consent`: which jobs of a CI get tokens, at a server.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Subcommand;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use statewright_shared::domain::names::Login;
use statewright_shared::domain::plural::count;
use statewright_shared::domain::role::Role;

use super::state::read_json;
use crate::args;
use crate::client::{At, Call, Client};
use crate::output::{Output, table, to_the_second};

#[derive(Debug, clap::Args)]
pub(crate) struct Issuer {
    #[command(flatten)]
    at: At,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the issuers whose tokens the organization accepts.
    List,
    /// Register an issuer. It allows nothing until it has a policy.
    Add(Add),
    /// Show an issuer with its policies.
    Show {
        /// The issuer, by its address or its ID.
        issuer: String,
    },
    /// Add a policy that gives tokens to the jobs whose claims match all rules.
    Allow(Allow),
    /// Replace all policies of an issuer.
    SetPolicies {
        /// The issuer, by its address or its ID.
        issuer: String,
        /// The file with the policies: a list, or an object with the list `policies`, as `issuer show --json`
        /// prints it; `-` for stdin.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Delete an issuer with its policies. Tokens that its jobs already have work until they expire.
    Remove {
        /// The issuer, by its address or its ID.
        issuer: String,
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, clap::Args)]
struct Add {
    /// The issuer's address, exactly as its tokens have it in `iss`.
    #[arg(value_name = "URL")]
    url: String,
    /// The name that people see [default: the host of the address].
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// The file with the issuer's public keys, a JSON Web Key Set, for an issuer that the server cannot reach.
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
    /// The longest lifetime of tokens for its jobs, at most 25h [default: 25h].
    #[arg(long, value_name = "DURATION", value_parser = args::duration)]
    max_lifetime: Option<Duration>,
}

#[derive(Debug, clap::Args)]
struct Allow {
    /// The issuer, by its address or its ID.
    issuer: String,
    /// A claim and the pattern of its text: `sub=repo:acme/app:*`. `*` is any text, `?` one character or none. Repeat
    /// it for more rules, all of which have to match.
    #[arg(long = "rule", value_name = "CLAIM=PATTERN", required = true, value_parser = rule)]
    rules: Vec<(String, String)>,
    /// The role of the tokens: view, auditor, outputs, plan, apply, member or admin [default: member; a team's own
    /// rights for tokens of a team].
    #[arg(long, value_name = "ROLE", value_parser = args::role, conflicts_with = "user")]
    role: Option<Role>,
    /// Give tokens of this team, instead of the organization.
    #[arg(long, value_name = "NAME", conflicts_with = "user")]
    team: Option<String>,
    /// Give personal tokens of this user, who has to consent: `statewright consent add`.
    #[arg(long, value_name = "NAME", value_parser = args::login)]
    user: Option<Login>,
}

fn rule(text: &str) -> anyhow::Result<(String, String)> {
    let (claim, pattern) = text.split_once('=').context("write a rule as CLAIM=PATTERN")?;
    Ok((claim.to_owned(), pattern.to_owned()))
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    id: String,
    name: String,
    url: String,
    last_used: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Issuers {
    oidc_issuers: Vec<Shown>,
}

#[derive(Debug, Deserialize)]
struct Policies {
    version: u64,
    policies: Vec<Value>,
}

/// The API of an organization's issuers.
struct Issuing {
    client: Client,
    org: String,
}

impl Issuing {
    async fn open(at: &At) -> anyhow::Result<Self> {
        let client = Client::open(at)?;
        let org = client.organization().await?.to_string();
        Ok(Self { client, org })
    }

    fn path<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        [&["api", "orgs", self.org.as_str()][..], more].concat()
    }

    /// The issuer with this address or this ID.
    async fn find(&self, issuer: &str) -> anyhow::Result<Shown> {
        let all: Issuers = self.client.json(Call::get(self.path(&["oidc", "issuers"]))).await?;
        let found = all.oidc_issuers.into_iter().find(|known| known.url == issuer || known.id == issuer);
        found.with_context(|| {
            format!(
                "{} has no issuer {issuer}: see `statewright issuer list` for addresses and IDs",
                self.org
            )
        })
    }

    async fn policies(&self, id: &str) -> anyhow::Result<crate::client::Document<Policies>> {
        self.client.document(Call::get(self.path(&["auth", "policies", "oidcissuers", id]))).await
    }

    async fn set_policies(&self, id: &str, policies: Vec<Value>, out: Output) -> anyhow::Result<()> {
        let call = Call::patch(self.path(&["auth", "policies", id]));
        let set = self.client.document::<Policies>(call.json(&json!({ "policies": policies }))).await?;
        out.answer(&set.whole, |_| set.read.describe())
    }
}

impl Policies {
    fn describe(&self) -> String {
        if self.policies.is_empty() {
            return "No policies: no token of this issuer is accepted.".to_owned();
        }
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let rows = self.policies.iter().map(|policy| {
            let part = |name: &str| policy.get(name).map(text).unwrap_or_default();
            let owner = [part("tokenType"), part("teamName"), part("userLogin")];
            let is_admin =
                policy["authorizedPermissions"].as_array().is_some_and(|all| all.contains(&"admin".into()));
            let role = if is_admin { "admin".to_owned() } else { part("roleID") };
            let rules = policy.get("rules").and_then(Value::as_object).into_iter().flatten();
            let rules: Vec<String> =
                rules.map(|(claim, pattern)| format!("{claim}={}", text(pattern))).collect();
            vec![part("decision"), owner.join(" ").trim_end().to_owned(), role, rules.join(", ")]
        });
        format!("version {}\n{}", self.version, table(&["DECISION", "TOKEN", "ROLE", "RULES"], rows))
    }
}

pub(crate) async fn run(issuer: Issuer, out: Output) -> anyhow::Result<()> {
    let at = Issuing::open(&issuer.at).await?;
    match issuer.command {
        Command::List => {
            let all = at.client.document::<Issuers>(Call::get(at.path(&["oidc", "issuers"]))).await?;
            out.answer(&all.whole, |_| {
                let rows = all.read.oidc_issuers.iter().map(|issuer| {
                    let used = issuer.last_used.as_deref().map_or_else(|| "never".to_owned(), to_the_second);
                    vec![issuer.name.clone(), issuer.url.clone(), used, issuer.id.clone()]
                });
                table(&["NAME", "ISSUER", "LAST USED", "ID"], rows)
            })
        }
        Command::Add(add) => {
            let host =
                add.url.trim_start_matches("https://").split('/').next().unwrap_or_default().to_owned();
            let mut body = json!({ "name": add.name.unwrap_or(host), "url": add.url });
            if let Some(file) = &add.keys {
                body["jwks"] = read_json(file)?;
            }
            if let Some(lifetime) = add.max_lifetime {
                body["maxExpiration"] = lifetime.as_secs().into();
            }
            let call = Call::post(at.path(&["oidc", "issuers"])).json(&body);
            let added = at.client.document::<Shown>(call).await?;
            out.answer(&added.whole, |_| {
                let url = &added.read.url;
                format!(
                    "registered {url}; allow jobs with `statewright issuer allow {url} --rule CLAIM=PATTERN`"
                )
            })
        }
        Command::Show { issuer } => {
            let found = at.find(&issuer).await?;
            let policies = at.policies(&found.id).await?;
            out.answer(&policies.whole, |_| {
                format!("{} ({})\n{}", found.url, found.name, policies.read.describe())
            })
        }
        Command::Allow(allow) => {
            let found = at.find(&allow.issuer).await?;
            let mut policies = at.policies(&found.id).await?.read.policies;
            policies.push(allow.policy()?);
            at.set_policies(&found.id, policies, out).await
        }
        Command::SetPolicies { issuer, file } => {
            let found = at.find(&issuer).await?;
            let policies = match read_json(&file)? {
                Value::Array(policies) => Some(policies),
                mut object => match object.get_mut("policies").map(Value::take) {
                    Some(Value::Array(policies)) => Some(policies),
                    _ => None,
                },
            };
            let policies = policies.context(
                "the file contains no policies: write a list, or an object with the list `policies`",
            )?;
            at.set_policies(&found.id, policies, out).await
        }
        Command::Remove { issuer, yes } => {
            let found = at.find(&issuer).await?;
            if !yes {
                let policies = count(at.policies(&found.id).await?.read.policies.len(), "policy");
                let question = format!(
                    "Delete {} with {policies}, so that its jobs get no more tokens of {}?",
                    found.url, at.org
                );
                out.confirm(&question, yes)?;
            }
            at.client.send(Call::delete(at.path(&["oidc", "issuers", &found.id]))).await?;
            out.answer(&json!({ "id": found.id, "url": found.url }), |_| {
                format!("deleted {} with its policies", found.url)
            })
        }
    }
}

impl Allow {
    fn policy(self) -> anyhow::Result<Value> {
        let mut rules = Map::new();
        for (claim, pattern) in self.rules {
            let before = rules.insert(claim.clone(), pattern.into());
            ensure!(before.is_none(), "two rules are for {claim}: use two policies, or one pattern");
        }
        let kind = match (&self.team, &self.user) {
            (Some(_), _) => "team",
            (None, Some(_)) => "personal",
            (None, None) => "organization",
        };
        let permissions: &[&str] = if self.role == Some(Role::Admin) { &["admin"] } else { &[] };
        let mut policy = json!({
            "decision": "allow", "tokenType": kind, "authorizedPermissions": permissions, "rules": rules,
        });
        let parts = [
            ("teamName", self.team),
            ("userLogin", self.user.map(|user| user.to_string())),
            ("roleID", self.role.map(|role| role.to_string())),
        ];
        for (name, value) in parts {
            if let Some(value) = value {
                policy[name] = value.into();
            }
        }
        Ok(policy)
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Consent {
    #[command(flatten)]
    at: At,
    #[command(subcommand)]
    command: OfConsent,
}

#[derive(Debug, Subcommand)]
enum OfConsent {
    /// List the issuers whose jobs may get personal tokens of yours.
    List,
    /// Consent to personal tokens of yours for the jobs of an issuer, as far as its policies allow them.
    Add {
        /// The issuer, by its address or its ID.
        issuer: String,
    },
    /// Withdraw a consent. Tokens that jobs already have work until they expire.
    Remove {
        /// The issuer, by its address or its ID.
        issuer: String,
    },
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GivenConsent {
    organization: String,
    issuer_id: String,
    url: String,
    created: String,
}

#[derive(Debug, Deserialize)]
struct Consents {
    consents: Vec<GivenConsent>,
}

const CONSENTS: [&str; 4] = ["api", "user", "oidc", "consents"];

pub(crate) async fn consent(consent: Consent, out: Output) -> anyhow::Result<()> {
    let client = Client::open(&consent.at)?;
    match consent.command {
        OfConsent::List => {
            let all = client.document::<Consents>(Call::get(CONSENTS)).await?;
            out.answer(&all.whole, |_| {
                let rows = all.read.consents.iter().map(|given| {
                    let at = to_the_second(&given.created);
                    vec![given.organization.clone(), given.url.clone(), at, given.issuer_id.clone()]
                });
                table(&["ORGANIZATION", "ISSUER", "SINCE", "ID"], rows)
            })
        }
        OfConsent::Add { issuer } => {
            let org = client.organization().await?;
            let body = json!({ "organization": org.as_str(), "issuer": issuer });
            let given =
                client.document::<GivenConsent>(Call::post(CONSENTS).json(&body).repeatable()).await?;
            out.answer(&given.whole, |_| {
                format!(
                    "jobs of {} may get personal tokens of yours in {org}, as its policies allow",
                    given.read.url
                )
            })
        }
        OfConsent::Remove { issuer } => {
            let org = client.organization().await?;
            let all: Consents = client.json(Call::get(CONSENTS)).await?;
            let is_it = |given: &&GivenConsent| {
                given.organization == org.as_str() && (given.url == issuer || given.issuer_id == issuer)
            };
            let found = all.consents.iter().find(is_it);
            let found = found.with_context(|| {
                format!("you have no consent for {issuer} in {org}: see `statewright consent list`")
            })?;
            let path = CONSENTS.into_iter().chain([found.issuer_id.as_str()]);
            client.send(Call::delete(path)).await?;
            out.answer(&json!({ "organization": org.as_str(), "url": found.url }), |_| {
                format!("withdrew the consent for {} in {org}", found.url)
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_made_from_rules() {
        assert_eq!(rule("sub=a=b").unwrap(), ("sub".to_owned(), "a=b".to_owned()));
        rule("sub").unwrap_err();
        let allow = |rules: &[(&str, &str)]| Allow {
            issuer: String::new(),
            rules: rules
                .iter()
                .map(|(claim, pattern)| ((*claim).to_owned(), (*pattern).to_owned()))
                .collect(),
            role: Some(Role::Admin),
            team: None,
            user: None,
        };
        let expected = json!({
            "decision": "allow", "tokenType": "organization", "authorizedPermissions": ["admin"], "roleID": "admin",
            "rules": { "sub": "job:*" },
        });
        assert_eq!(allow(&[("sub", "job:*")]).policy().unwrap(), expected);
        allow(&[("sub", "a"), ("sub", "b")]).policy().unwrap_err();
    }
}
