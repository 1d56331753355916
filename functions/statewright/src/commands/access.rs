//! `statewright org access` and `statewright org grant`.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Subcommand;
use serde::Serialize;
use statewright_shared::context::Context;
use statewright_shared::domain::access::{Difference, Grant, GrantedRole, Grantee, Scope};
use statewright_shared::domain::names::OrgName;
use statewright_shared::domain::role::Role;
use statewright_shared::services::identity::{directory, grants};
use statewright_shared::wire::access::AccessDocument;

use super::state::read_json;
use crate::args;
use crate::output::{Output, in_json, table};

#[derive(Debug, Subcommand)]
pub(super) enum AccessCommand {
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
pub(super) enum GrantCommand {
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
pub(super) struct OneGrant {
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

pub(super) async fn access(ctx: &Context, command: AccessCommand, out: Output) -> anyhow::Result<()> {
    match command {
        AccessCommand::Export { org } => {
            let operator = directory::operator(ctx, Some(&org)).await?;
            let (document, version) = grants::export(ctx, &operator, &org).await?;
            let document = AccessDocument::new(document, version);
            let text = serde_json::to_string_pretty(&document).context("cannot serialize the document")?;
            out.answer(&document, |_| in_json(&text).into_owned())
        }
        AccessCommand::Apply { org, file, dry_run } => {
            let operator = directory::operator(ctx, Some(&org)).await?;
            let document: AccessDocument = serde_json::from_value(read_json(&file)?)
                .with_context(|| format!("{} is not a document of access", file.display()))?;
            let (document, version) = document.read()?;
            let difference =
                grants::apply(ctx, &operator, &org, &document, version.as_deref(), dry_run).await?;
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

pub(super) async fn grant(ctx: &Context, command: GrantCommand, out: Output) -> anyhow::Result<()> {
    match command {
        GrantCommand::Add(one) => {
            let (organization, grant) = one.parts();
            let operator = directory::operator(ctx, Some(&organization)).await?;
            let changed = grants::add(ctx, &operator, &organization, &grant).await?;
            out.answer(&Changed { organization, grant, changed }, |done| {
                let had = if done.changed { "has" } else { "already had" };
                let Grant { to, on, role } = &done.grant;
                format!("{to} {had} the role {} on {on} in {}", role.0, done.organization)
            })
        }
        GrantCommand::List { org } => {
            let operator = directory::operator(ctx, Some(&org)).await?;
            let grants = grants::list(ctx, &operator, &org).await?;
            out.answer(&Listed { organization: org, grants }, |listed| {
                let row =
                    |Grant { to, on, role }: &Grant| vec![to.to_string(), on.to_string(), role.0.to_string()];
                table(&["TO", "ON", "ROLE"], listed.grants.iter().map(row))
            })
        }
        GrantCommand::Remove(one) => {
            let (organization, grant) = one.parts();
            let operator = directory::operator(ctx, Some(&organization)).await?;
            grants::remove(ctx, &operator, &organization, &grant).await?;
            out.answer(&Changed { organization, grant, changed: true }, |done| {
                let Grant { to, on, role } = &done.grant;
                format!("{to} no longer has the role {} on {on} in {}", role.0, done.organization)
            })
        }
    }
}
