//! `statewright protect`, `unprotect`: stacks and states that cannot be deleted or destroyed, at a server.

use anyhow::bail;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use statewright_shared::domain::role::Role;

use super::outputs::{Kind, SourceRef};
use super::state::of_command;
use crate::client::{At, Call, Client, Named, StateRef};
use crate::output::Output;

#[derive(Debug, clap::Args)]
pub(crate) struct Protect {
    #[command(flatten)]
    at: At,
    #[command(flatten)]
    what: What,
    /// The reason, on one line: shown to everyone whom the protection stops.
    #[arg(long, value_name = "WHY")]
    reason: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Unprotect {
    #[command(flatten)]
    at: At,
    #[command(flatten)]
    what: What,
}

#[derive(Debug, clap::Args)]
struct What {
    /// The stack or state: PROJECT/NAME, ORGANIZATION/PROJECT/NAME, PROJECT for its state `default`, or the
    /// id of a state.
    #[arg(value_name = "PROJECT/NAME", value_parser = SourceRef::parse)]
    named: SourceRef,
    /// Whether a stack or a state is meant, where both have this name.
    #[arg(long, value_enum)]
    kind: Option<Kind>,
}

/// A stack or a state of the server.
struct Found {
    kind: Kind,
    name: String,
    /// The segments of the path of its protection.
    path: Vec<String>,
}

impl Found {
    fn stack(parts: [&str; 3]) -> Self {
        let path = ["api", "stacks"].into_iter().chain(parts).chain(["protection"]);
        Self { kind: Kind::Stack, name: parts.join("/"), path: path.map(str::to_owned).collect() }
    }

    fn state(id: &str, name: String) -> Self {
        let path = ["api", "tfstates", id, "protection"].map(str::to_owned).to_vec();
        Self { kind: Kind::Tfstate, name, path }
    }

    fn path(&self) -> impl Iterator<Item = &str> {
        self.path.iter().map(String::as_str)
    }
}

#[derive(Serialize)]
struct Answer {
    kind: &'static str,
    name: String,
    /// `None` if it was lifted.
    protection: Option<Value>,
}

pub(crate) async fn protect(protect: Protect, out: Output) -> anyhow::Result<()> {
    let done = async {
        let client = Client::open(&protect.at)?;
        let found = find(&client, &protect.what).await?;
        let call = Call::put(found.path()).json(&json!({ "reason": protect.reason }));
        let protection = client.json::<Value>(call).await?;
        anyhow::Ok((found, protection))
    };
    let (Found { kind, name, .. }, protection) =
        done.await.map_err(|error| of_command(error, Role::Admin))?;
    let answer = Answer { kind: kind.as_str(), name, protection: Some(protection) };
    out.answer(&answer, |Answer { kind, name, .. }| {
        format!(
            "{name} is protected: it cannot be deleted or destroyed until an admin runs `statewright unprotect \
             {name} --kind {kind}`"
        )
    })
}

pub(crate) async fn unprotect(unprotect: Unprotect, out: Output) -> anyhow::Result<()> {
    let done = async {
        let client = Client::open(&unprotect.at)?;
        let found = find(&client, &unprotect.what).await?;
        client.send(Call::delete(found.path()).repeatable()).await?;
        anyhow::Ok(found)
    };
    let Found { kind, name, .. } = done.await.map_err(|error| of_command(error, Role::Admin))?;
    let answer = Answer { kind: kind.as_str(), name, protection: None };
    out.answer(&answer, |answer| format!("{} is not protected", answer.name))
}

/// The stack or the state with this name.
async fn find(client: &Client, what: &What) -> anyhow::Result<Found> {
    #[derive(Deserialize)]
    struct State {
        id: String,
    }
    let (org, project, name) = match &what.named {
        SourceRef::Id(_) if what.kind == Some(Kind::Stack) => {
            bail!("this is the id of a state: write the stack as PROJECT/NAME")
        }
        SourceRef::Id(id) => {
            let Named { id, name } = client.named(Some(&StateRef::Id(*id))).await?;
            return Ok(Found::state(&id.to_string(), name));
        }
        SourceRef::Name { org: Some(org), project, name } => (org.clone(), project, name),
        SourceRef::Name { org: None, project, name } => (client.organization().await?, project, name),
    };
    let (org, project, name) = (org.as_str(), project.as_str(), name.as_str());
    let is_either = what.kind.is_none();
    let mut found = Vec::new();
    if what.kind != Some(Kind::Tfstate) {
        match client.send(Call::get(["api", "stacks", org, project, name])).await {
            Ok(_) => found.push(Found::stack([org, project, name])),
            Err(failure) if failure.is_not_there() && is_either => {}
            Err(failure) => return Err(failure.into()),
        }
    }
    if what.kind != Some(Kind::Stack) {
        match client.json::<State>(Call::get(["api", "orgs", org, "tfstates", project, name])).await {
            Ok(state) => found.push(Found::state(&state.id, format!("{org}/{project}/{name}"))),
            Err(failure) if failure.is_not_there() && is_either => {}
            Err(failure) => return Err(failure.into()),
        }
    }
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (None, _) => bail!("{org} has neither a stack nor a state named {project}/{name}"),
        (Some(_), Some(_)) => {
            bail!("both a stack and a state are named {project}/{name}: add --kind stack or --kind tfstate")
        }
        (Some(only), None) => Ok(only),
    }
}
