//! `statewright state rename`, `delete`, `undelete`.

use anyhow::bail;
use serde::{Deserialize, Serialize};
use serde_json::json;
use statewright_shared::domain::ids::StateId;
use statewright_shared::domain::names::StateAddress;
use statewright_shared::domain::plural::count;

use super::wire::State;
use super::{About, Session};
use crate::client::{Call, Link, Named, StateRef};
use crate::output::to_the_second;

#[derive(Debug, clap::Args)]
#[command(allow_missing_positional = true)]
pub(super) struct Rename {
    #[command(flatten)]
    about: About,
    /// The new name, as PROJECT[/STATE], in the same organization.
    #[arg(value_name = "NEW", value_parser = StateRef::parse)]
    to: StateRef,
}

#[derive(Debug, clap::Args)]
pub(super) struct Delete {
    #[command(flatten)]
    about: About,
    #[arg(long)]
    force: bool,
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Undelete {
    #[command(flatten)]
    about: About,
}

pub(super) async fn rename(session: &Session, rename: &Rename) -> anyhow::Result<()> {
    let state = session.client.state::<State>(session.or(&rename.about)).await?.read;
    let old = state.name();
    let (project, name) = match &rename.to {
        StateRef::Id(id) => {
            bail!("{id} is an id, which cannot change: write the new name as PROJECT[/STATE]")
        }
        StateRef::Name { org: Some(org), .. } if org.as_str() != state.organization => {
            bail!("a state cannot move to another organization: {} is in {}", old, state.organization)
        }
        StateRef::Name { project, state, .. } => (project, state),
    };
    let address = StateAddress::parse(&state.organization, project, name.as_deref())?;
    let edit = json!({ "project": address.project, "state": address.state });
    let call = Call::patch(Named::path(&state.id, &[])).json(&edit);
    let renamed = session.client.document::<State>(call).await?;
    // The link file also has the name, for people.
    if let Some(linked) = session.client.linked().filter(|linked| linked.link.id.to_string() == state.id) {
        Link { address, ..linked.link.clone() }.write(&linked.folder)?;
    }
    session.out.answer(&renamed.whole, |_| {
        format!(
            "{old} is now {}. The old name still leads to it until another state gets that name: existing \
             backends keep working; update them when you can",
            renamed.read.name()
        )
    })
}

#[derive(Serialize)]
struct Deleted {
    state: String,
    id: String,
}

pub(super) async fn delete(session: &Session, delete: &Delete) -> anyhow::Result<()> {
    let state = session.client.state::<State>(session.or(&delete.about)).await?.read;
    let name = state.name();
    let resources = state.current.as_ref().and_then(|text| text.resource_count).unwrap_or(0);
    let with = match resources {
        0 => String::new(),
        resources => format!(" with {}", count(resources, "resource")),
    };
    session.out.confirm(&format!("Delete the state {name}{with}?"), delete.yes)?;
    let mut call = Call::delete(Named::path(&state.id, &[]));
    if delete.force {
        call = call.query("force", "true");
    }
    session.client.send(call).await?;
    session.out.answer(&Deleted { state: name, id: state.id }, |deleted| {
        format!("{} is deleted; to undo this, run `statewright state undelete {}`", deleted.state, deleted.id)
    })
}

pub(super) async fn undelete(session: &Session, undelete: &Undelete) -> anyhow::Result<()> {
    let id = match session.or(&undelete.about) {
        Some(StateRef::Id(id)) => *id,
        Some(named) => deleted(session, named).await?,
        None => match session.client.of_folder().await?.state {
            StateRef::Id(id) => id,
            named => deleted(session, &named).await?,
        },
    };
    let call = Call::post(Named::path(&id.to_string(), &["undelete"])).repeatable();
    let back = session.client.document::<State>(call).await?;
    session.out.answer(&back.whole, |_| {
        format!("{} is undeleted, at version {}", back.read.name(), back.read.version)
    })
}

/// The only deleted state of this name.
async fn deleted(session: &Session, named: &StateRef) -> anyhow::Result<StateId> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Candidate {
        id: StateId,
        version: u64,
        removed: String,
        removed_by: String,
    }
    let address = session.client.address(named).await?;
    let call = Call::get(["api", "orgs", address.org.as_str(), "tfstate-removed"])
        .query("project", address.project.as_str())
        .query("state", address.state.as_str());
    let found = session.client.pages::<Candidate>(call, "states", None).await?.read;
    match &found[..] {
        [] => bail!(
            "no deleted state is named {address}; `statewright state list --deleted` lists those that can be \
             undeleted"
        ),
        [only] => Ok(only.id),
        several => {
            let lines = several.iter().map(|Candidate { id, version, removed, removed_by }| {
                format!("\n  {id}  deleted {} by {removed_by}, at version {version}", to_the_second(removed))
            });
            bail!(
                "{} deleted states are named {address}; use the id of the one you want:{}",
                several.len(),
                lines.collect::<String>()
            )
        }
    }
}
