//! `statewright token`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use serde::Serialize;
use statewright_shared::domain::access::Scope;
use statewright_shared::domain::names::{Login, OrgName, TeamName, TokenName};
use statewright_shared::domain::role::Role;
use statewright_shared::layout::TokenEntry;
use statewright_shared::ports::Timestamp;
use statewright_shared::services::identity::last_use::UsedToken;
use statewright_shared::services::identity::tokens::{self, Issued, NewToken};
use statewright_shared::services::updates::running::Begun;

use super::running::{self, Running};
use crate::args::{self, Data};
use crate::output::{Output, Rfc3339, table};
use crate::{certificate, data};

#[derive(Debug, clap::Args)]
pub(crate) struct Token {
    #[command(flatten)]
    data: Data,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create a token, which is printed only once: the server stores only its hash. Or register a client
    /// certificate, which replaces a token for `tofu` and `terraform`.
    Create {
        /// The name of the token, as shown in histories.
        #[arg(value_parser = args::token_name)]
        name: TokenName,
        #[command(flatten)]
        owner: Owner,
        /// When the token expires, from now, such as 12h or 90d [default: never, or with its certificate].
        #[arg(long, value_name = "DURATION", value_parser = args::duration)]
        expires_in: Option<Duration>,
        /// Register this client certificate instead, a PEM file from any issuer. The private key is not
        /// needed.
        #[arg(long, value_name = "FILE", conflicts_with_all = ["org", "description"])]
        certificate: Option<PathBuf>,
        /// The highest role of requests with this token: view, auditor, outputs, plan, apply, member or admin
        /// [default: no limit beyond the owner's role; member for an organization's token, which has this role].
        #[arg(long, value_name = "ROLE", value_parser = args::role)]
        may: Option<Role>,
        /// The only part of an organization in which the token works, such as `web/*`, web/dev or `tag:env=dev`
        /// [default: all of it].
        #[arg(long, value_name = "SCOPE", value_parser = args::scope, conflicts_with = "certificate")]
        on: Option<Scope>,
        /// What the token is for, as lists show it.
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
    },
    /// List the tokens of a user with client certificates, of an organization, or of a team. Shows fingerprints,
    /// not the tokens themselves.
    List {
        #[command(flatten)]
        owner: Owner,
    },
    /// Replace the secret of a token, and print the new one, which is shown only once. The token keeps its name,
    /// and its running updates continue.
    Rotate {
        /// The name of the token.
        #[arg(value_parser = args::token_name)]
        name: TokenName,
        #[command(flatten)]
        owner: Owner,
        /// How long the old secret still works, such as 1h [default: it ends within a minute].
        #[arg(long, value_name = "DURATION", value_parser = args::duration)]
        grace: Option<Duration>,
        /// When the token expires, from now, such as 12h or 90d [default: as before].
        #[arg(long, value_name = "DURATION", value_parser = args::duration)]
        expires_in: Option<Duration>,
    },
    /// Revoke a token. Running servers apply it within a minute, and updates begun with it end within five
    /// minutes; those still running are listed.
    Revoke {
        /// The name of the token.
        #[arg(value_parser = args::token_name)]
        name: TokenName,
        #[command(flatten)]
        owner: Owner,
    },
}

#[derive(Debug, clap::Args)]
struct Owner {
    /// The owner of the token.
    #[arg(long, value_name = "NAME", default_value = "admin", value_parser = args::login)]
    user: Login,
    /// The organization that owns the token, instead of a user: for machines.
    #[arg(long, value_name = "NAME", value_parser = args::organization, conflicts_with = "user")]
    org: Option<OrgName>,
    /// The team of the organization that owns the token.
    #[arg(long, value_name = "NAME", value_parser = args::team_name, requires = "org")]
    team: Option<TeamName>,
}

impl From<Owner> for tokens::Owner {
    fn from(Owner { user, org, team }: Owner) -> Self {
        match (org, team) {
            (Some(org), Some(team)) => Self::Team(org, team),
            (Some(org), None) => Self::Organization(org),
            (None, _) => Self::User(user),
        }
    }
}

/// The owner of a token, in answers.
#[derive(Debug, Clone, Serialize)]
struct Owned {
    /// `None` for a machine.
    user: Option<Login>,
    /// The organization of a machine.
    organization: Option<OrgName>,
    /// The team of a machine.
    team: Option<TeamName>,
}

impl From<&tokens::Owner> for Owned {
    fn from(owner: &tokens::Owner) -> Self {
        let (user, organization, team) = match owner.clone() {
            tokens::Owner::User(user) => (Some(user), None, None),
            tokens::Owner::Organization(org) => (None, Some(org), None),
            tokens::Owner::Team(org, team) => (None, Some(org), Some(team)),
        };
        Self { user, organization, team }
    }
}

impl Owned {
    /// For people.
    fn describe(&self) -> String {
        match (&self.user, &self.organization, &self.team) {
            (Some(user), ..) => user.to_string(),
            (None, Some(org), Some(team)) => format!("the team {team} of {org}"),
            (None, Some(org), None) => org.to_string(),
            (None, None, _) => String::new(),
        }
    }
}

/// A new token, or a newly registered client certificate.
#[derive(Serialize)]
struct Created {
    name: TokenName,
    #[serde(flatten)]
    owner: Owned,
    token: Option<String>,
    /// The certificate's fingerprint: the SHA-256 of its DER form, in hex.
    certificate: Option<String>,
}

#[derive(Serialize)]
struct Listed {
    tokens: Vec<Line>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    name: TokenName,
    created: Rfc3339,
    expires: Option<Rfc3339>,
    /// When it was last used, to the hour; `None` for never.
    last_used: Option<Rfc3339>,
    certificate: Option<String>,
    /// The highest role; `None` for no limit beyond the owner's role.
    may: Option<Role>,
    /// The only part of each organization in which it works; `None` for all of it.
    on: Option<Scope>,
    description: String,
    /// The login of the creator; `None` for the operator.
    created_by: Option<Login>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rotated {
    name: TokenName,
    #[serde(flatten)]
    owner: Owned,
    token: String,
    expires: Option<Rfc3339>,
    /// When the old secret ends; `None` if it has ended.
    previous_expires: Option<Rfc3339>,
}

#[derive(Serialize)]
struct Revoked {
    name: TokenName,
    #[serde(flatten)]
    owner: Owned,
    running: Vec<Running>,
}

pub(crate) async fn run(token: Token, out: Output) -> anyhow::Result<()> {
    let (_folder, ctx) = data::open_beside(&token.data).await?;
    match token.command {
        Command::Create { name, owner, expires_in, may, certificate: None, on, description } => {
            let owner = tokens::Owner::from(owner);
            let owned = Owned::from(&owner);
            let may = match owner {
                tokens::Owner::Organization(_) => may.or(Some(Role::Member)),
                tokens::Owner::User(_) | tokens::Owner::Team(..) => may,
            };
            let new = NewToken {
                may,
                within: on,
                expires: expires_in.map(|duration| ctx.now().plus(duration)),
                description: description.unwrap_or_default(),
                ..NewToken::new(owner, name.clone())
            };
            let Issued { secret, .. } = tokens::issue(&ctx, new).await?;
            let created = Created { name, owner: owned, token: Some(secret.clone()), certificate: None };
            out.answer(&created, |_| secret)
        }
        Command::Create { name, owner, expires_in, may, certificate: Some(file), on: _, description: _ } => {
            let user = owner.user.clone();
            let owner = Owned::from(&tokens::Owner::from(owner));
            let read = certificate::read(&file)?;
            let entry = tokens::create_certificate(&ctx, &user, &name, &read, may, expires_in).await?;
            let expires = shown(entry.token.expires);
            out.answer(&Created { name, owner, token: None, certificate: entry.certificate }, |created| {
                format!(
                    "registered the certificate in {2} as {0} of {1}, until {expires}",
                    created.name,
                    user,
                    file.display()
                )
            })
        }
        Command::List { owner } => {
            let tokens = tokens::list_all(&ctx, &owner.into()).await?;
            let line = |UsedToken { entry: TokenEntry { token, certificate, .. }, used }| Line {
                name: token.name,
                created: Rfc3339(token.created),
                expires: token.expires.map(Rfc3339),
                last_used: used.map(Rfc3339),
                certificate,
                may: token.may,
                on: token.within,
                description: token.description,
                created_by: token.created_by,
            };
            out.answer(&Listed { tokens: tokens.into_iter().map(line).collect() }, |listed| {
                let rows = listed.tokens.iter().map(|token| {
                    let certificate = token.certificate.clone().unwrap_or_default();
                    let at = |time: Option<Rfc3339>| shown(time.map(|at| at.0));
                    let may = token.may.map_or_else(|| "as its owner".to_owned(), |may| may.to_string());
                    vec![
                        token.name.to_string(),
                        token.created.to_string(),
                        at(token.expires),
                        at(token.last_used),
                        may,
                        token.on.as_ref().map_or_else(|| "*".to_owned(), Scope::to_string),
                        certificate,
                        token.description.clone(),
                    ]
                });
                let head =
                    ["NAME", "CREATED", "EXPIRES", "LAST USED", "ROLE", "ON", "CERTIFICATE", "DESCRIPTION"];
                table(&head, rows)
            })
        }
        Command::Rotate { name, owner, grace, expires_in } => {
            let owner = tokens::Owner::from(owner);
            let expires = expires_in.map(|duration| ctx.now().plus(duration));
            let rotated = tokens::rotate(&ctx, &owner, &name, grace.unwrap_or_default(), expires).await?;
            let Issued { secret, entry } = rotated;
            let answer = Rotated {
                name,
                owner: Owned::from(&owner),
                token: secret.clone(),
                expires: entry.token.expires.map(Rfc3339),
                previous_expires: entry.former.map(|former| Rfc3339(former.until)),
            };
            out.answer(&answer, |_| secret)
        }
        Command::Revoke { name, owner } => {
            let owner = tokens::Owner::from(owner);
            tokens::revoke(&ctx, &owner, &name).await?;
            let (login, of) = (owner.login(), owner.principal());
            let begun = Begun { login: &login, of: &of, token: Some(&name), org: None, above: None };
            let running = running::find(&ctx, &begun).await?;
            out.answer(&Revoked { name, owner: Owned::from(&owner), running }, |revoked| {
                let message = format!(
                    "{} of {} is revoked; running servers apply this within a minute",
                    revoked.name,
                    revoked.owner.describe()
                );
                running::after(message, &revoked.running)
            })
        }
    }
}

fn shown(time: Option<Timestamp>) -> String {
    time.map_or_else(|| "never".to_owned(), |at| Rfc3339(at).to_string())
}
