//! `statewright state rename`, `delete`, `undelete`.

use anyhow::{Context as _, bail};
use serde::Serialize;
use serde_json::json;
use statewright_shared::domain::ids::StateId;
use statewright_shared::domain::names::StateAddress;

use super::wire::State;
use super::{About, Session};
use crate::client::{Call, Link, Named, StateRef};

#[derive(Debug, clap::Args)]
pub(super) struct Rename {
    /// The new name, as PROJECT[/STATE], in the same organization.
    #[arg(value_name = "NEW", value_parser = StateRef::parse)]
    to: StateRef,
}

#[derive(Debug, clap::Args)]
pub(super) struct Delete {
    #[command(flatten)]
    about: About,
    /// Though it has resources, which then nothing knows of any more.
    #[arg(long)]
    force: bool,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Undelete {
    /// The state's id [default: that of the folder's .statewright.json].
    #[arg(value_name = "ID", value_parser = id)]
    id: Option<StateId>,
}

fn id(text: &str) -> anyhow::Result<StateId> {
    StateId::parse(text).context("an id has the form 019b7c3a-0000-7000-8000-000000000001")
}

pub(super) async fn rename(session: &Session, rename: &Rename) -> anyhow::Result<()> {
    let state = session.client.state::<State>(session.state.as_ref()).await?.read;
    let old = state.name();
    let (project, name) = match &rename.to {
        StateRef::Id(id) => bail!("{id} is an id, which stays; name what the state is to be called"),
        StateRef::Name { org: Some(org), .. } if org.as_str() != state.organization => {
            bail!("a state stays in its organization: {} is in {}", old, state.organization)
        }
        StateRef::Name { project, state, .. } => (project, state),
    };
    let address = StateAddress::parse(&state.organization, project, name.as_deref())?;
    let edit = json!({ "project": address.project, "state": address.state });
    let call = Call::patch(Named::path(&state.id, &[])).json(&edit);
    let renamed = session.client.document::<State>(call).await?;
    // The folder's file tells people the name.
    if let Some(linked) = session.client.linked().filter(|linked| linked.link.id.to_string() == state.id) {
        Link { address, ..linked.link.clone() }.write(&linked.folder)?;
    }
    session.out.answer(&renamed.whole, |_| format!("{old} is called {} now", renamed.read.name()))
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
        resources => format!(", which has {resources} resources"),
    };
    session.out.confirm(&format!("This removes the state {name}{with}. Remove it?"), delete.yes)?;
    let mut call = Call::delete(Named::path(&state.id, &[]));
    if delete.force {
        call = call.query("force", "true");
    }
    session.client.send(call).await?;
    session.out.answer(&Deleted { state: name, id: state.id }, |deleted| {
        format!("{} is removed; `statewright state undelete {}` brings it back", deleted.state, deleted.id)
    })
}

pub(super) async fn undelete(session: &Session, undelete: &Undelete) -> anyhow::Result<()> {
    let of_option = match &session.state {
        Some(StateRef::Id(id)) => Some(*id),
        Some(StateRef::Name { .. }) => bail!("a state that was removed is named by its id"),
        None => session.client.linked().map(|linked| linked.link.id),
    };
    let id = undelete.id.or(of_option).context(
        "name the state by its id, which `state delete` told, and which is in the folder's .statewright.json",
    )?;
    let call = Call::post(Named::path(&id.to_string(), &["undelete"])).repeatable();
    let back = session.client.document::<State>(call).await?;
    session
        .out
        .answer(&back.whole, |_| format!("{} is back, at version {}", back.read.name(), back.read.version))
}
