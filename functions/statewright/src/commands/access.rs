//! `statewright org access` and `statewright org grant`.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Subcommand;
use serde::Serialize;
use statewright_shared::domain::access::{Difference, Grant, GrantedRole, Grantee, Scope};
use statewright_shared::domain::names::OrgName;
use statewright_shared::domain::role::Role;
use statewright_shared::services::identity::{directory, grants};
use statewright_shared::wire::access::{AccessDocument, Grants};

use super::place::{Ask, Place};
use super::state::read_json;
use crate::args::{self, Data};
use crate::client::Call;
use crate::output::{Output, in_json, table};

#[derive(Debug, clap::Args)]
pub(super) struct OfAccess {
    #[command(flatten)]
    pub(super) ask: Ask,
    #[command(subcommand)]
    command: AccessCommand,
}

#[derive(Debug, clap::Args)]
pub(super) struct OfGrants {
    #[command(flatten)]
    pub(super) ask: Ask,
    #[command(subcommand)]
    command: GrantCommand,
}

#[derive(Debug, Subcommand)]
enum AccessCommand {
    /// Print the teams and grants of an organization as one JSON document, for a repository.
    Export {
        /// The organization.
        #[arg(value_parser = args::organization)]
        org: OrgName,
    },
    /// Replace the teams and grants of an organization with those of a document. A running server applies it
    /// within a minute.
    Apply {
        /// The organization.
        #[arg(value_parser = args::organization)]
        org: OrgName,
        /// The file with the document, as printed by `org access export`; `-` for stdin.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Only print what would change.
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Debug, Subcommand)]
enum GrantCommand {
    /// Grant a role on a part of an organization. A running server applies it within a minute.
    Add(OneGrant),
    /// List the grants of an organization.
    List {
        /// The organization.
        #[arg(value_parser = args::organization)]
        org: OrgName,
    },
    /// Remove a grant. A running server applies it within a minute.
    Remove(OneGrant),
}

#[derive(Debug, clap::Args)]
struct OneGrant {
    /// The organization.
    #[arg(value_parser = args::organization)]
    org: OrgName,
    /// Who gets the role: everybody, user:LOGIN, team:NAME or token:NAME.
    #[arg(value_parser = args::grantee)]
    to: Grantee,
    /// Where: `*` for the organization, PROJECT/NAME with `*` for any characters, or tag:NAME=VALUE.
    #[arg(value_parser = args::scope)]
    on: Scope,
    /// The role: view, auditor (on `*` only), outputs, plan, apply, member or admin.
    #[arg(value_parser = args::role)]
    role: Role,
}

impl OneGrant {
    fn parts(self) -> (OrgName, Grant) {
        (self.org, Grant { to: self.to, on: self.on, role: GrantedRole(self.role) })
    }
}

#[derive(Serialize)]
struct Changed {
    organization: OrgName,
    grant: Grant,
    changed: bool,
}

#[derive(Serialize)]
struct Listed {
    organization: OrgName,
    grants: Vec<Grant>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Applied {
    organization: OrgName,
    dry_run: bool,
    #[serde(flatten)]
    difference: Difference,
}

/// The path in the API of a part of an organization.
fn of_org<'a>(org: &'a OrgName, part: &'a str) -> [&'a str; 4] {
    ["api", "orgs", org.as_str(), part]
}

pub(super) async fn access(data: &Data, access: OfAccess, out: Output) -> anyhow::Result<()> {
    let place = access.ask.open(data).await?;
    match access.command {
        AccessCommand::Export { org } => {
            let document = match place {
                Place::Store(store) => {
                    let operator = directory::operator(&store.ctx, Some(&org)).await?;
                    let (document, version) = grants::export(&store.ctx, &operator, &org).await?;
                    AccessDocument::new(document, version)
                }
                Place::Server(client) => client.json(Call::get(of_org(&org, "access"))).await?,
            };
            let text = serde_json::to_string_pretty(&document).context("cannot serialize the document")?;
            out.answer(&document, |_| in_json(&text).into_owned())
        }
        AccessCommand::Apply { org, file, dry_run } => {
            let document: AccessDocument = serde_json::from_value(read_json(&file)?)
                .with_context(|| format!("{} is not a document of access", file.display()))?;
            let difference: Difference = match place {
                Place::Store(store) => {
                    let operator = directory::operator(&store.ctx, Some(&org)).await?;
                    let (document, version) = document.read()?;
                    grants::apply(&store.ctx, &operator, &org, &document, version.as_deref(), dry_run).await?
                }
                Place::Server(client) => {
                    let body = serde_json::to_value(&document).context("cannot serialize the document")?;
                    let call = Call::put(of_org(&org, "access")).json(&body);
                    // A second delivery would find a newer version, or nothing left to change.
                    let call = if dry_run { call.query("dryRun", "true") } else { call.once() };
                    client.json(call).await?
                }
            };
            out.answer(&Applied { organization: org, dry_run, difference }, describe)
        }
    }
}

fn describe(applied: &Applied) -> String {
    let Applied { organization, dry_run, difference } = applied;
    if difference.is_empty() {
        return format!("the teams and grants of {organization} are as in the document");
    }
    let row = |sign: &str, what: &str, text: String| vec![sign.to_owned(), what.to_owned(), text];
    let grant = |grant: &Grant| format!("{} to {} on {}", grant.role.0, grant.to, grant.on);
    let mut rows = Vec::new();
    for (sign, teams) in
        [("+", &difference.teams_added), ("~", &difference.teams_changed), ("-", &difference.teams_removed)]
    {
        rows.extend(teams.iter().map(|team| row(sign, "team", team.to_string())));
    }
    for (sign, grants) in [("+", &difference.grants_added), ("-", &difference.grants_removed)] {
        rows.extend(grants.iter().map(|it| row(sign, "grant", grant(it))));
    }
    let heading = if *dry_run { "PLANNED" } else { "DONE" };
    table(&[heading, "WHAT", "NAME"], rows)
}

pub(super) async fn grant(data: &Data, grants: OfGrants, out: Output) -> anyhow::Result<()> {
    let place = grants.ask.open(data).await?;
    match grants.command {
        GrantCommand::Add(one) => {
            let (organization, grant) = one.parts();
            let changed = add(&place, &organization, &grant).await?;
            out.answer(&Changed { organization, grant, changed }, |done| {
                let had = if done.changed { "has" } else { "already had" };
                let Grant { to, on, role } = &done.grant;
                format!("{to} {had} the role {} on {on} in {}", role.0, done.organization)
            })
        }
        GrantCommand::List { org } => {
            let grants = list(&place, &org).await?;
            out.answer(&Listed { organization: org, grants }, |listed| {
                let row =
                    |Grant { to, on, role }: &Grant| vec![to.to_string(), on.to_string(), role.0.to_string()];
                table(&["TO", "ON", "ROLE"], listed.grants.iter().map(row))
            })
        }
        GrantCommand::Remove(one) => {
            let (organization, grant) = one.parts();
            remove(&place, &organization, &grant).await?;
            out.answer(&Changed { organization, grant, changed: true }, |done| {
                let Grant { to, on, role } = &done.grant;
                format!("{to} no longer has the role {} on {on} in {}", role.0, done.organization)
            })
        }
    }
}

async fn list(place: &Place, org: &OrgName) -> anyhow::Result<Vec<Grant>> {
    match place {
        Place::Store(store) => {
            let operator = directory::operator(&store.ctx, Some(org)).await?;
            Ok(grants::list(&store.ctx, &operator, org).await?)
        }
        Place::Server(client) => {
            let listed: Grants = client.json(Call::get(of_org(org, "grants"))).await?;
            Ok(listed.grants)
        }
    }
}

/// Gives a role, and returns whether the grant is new.
async fn add(place: &Place, org: &OrgName, grant: &Grant) -> anyhow::Result<bool> {
    match place {
        Place::Store(store) => {
            let operator = directory::operator(&store.ctx, Some(org)).await?;
            Ok(grants::add(&store.ctx, &operator, org, grant).await?)
        }
        Place::Server(client) => {
            let is_new = !list(place, org).await?.contains(grant);
            let body = serde_json::to_value(grant).context("cannot serialize the grant")?;
            client.send(Call::post(of_org(org, "grants")).json(&body).repeatable()).await?;
            Ok(is_new)
        }
    }
}

async fn remove(place: &Place, org: &OrgName, grant: &Grant) -> anyhow::Result<()> {
    match place {
        Place::Store(store) => {
            let operator = directory::operator(&store.ctx, Some(org)).await?;
            Ok(grants::remove(&store.ctx, &operator, org, grant).await?)
        }
        Place::Server(client) => {
            let Grant { to, on, role } = grant;
            let call = Call::delete(of_org(org, "grants"))
                .query("to", &to.to_string())
                .query("on", &on.to_string())
                .query("role", role.0.as_str());
            client.send(call).await?;
            Ok(())
        }
    }
}
