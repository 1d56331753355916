//! `statewright state outputs`.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use statewright_shared::domain::ids::StateId;

use super::{About, Session};
use crate::client::{Call, Named, StateRef};
use crate::commands::outputs::{missing, one_line, plain};
use crate::output::table;

#[derive(Debug, clap::Args)]
pub(super) struct Outputs {
    #[command(flatten)]
    about: About,
    /// Only this one: a text is printed without quotes, also one that is sensitive.
    #[arg(short = 'o', long = "output", value_name = "NAME")]
    name: Option<String>,
    /// Show the values of sensitive ones too.
    #[arg(long)]
    show_sensitive: bool,
}

/// Of one version. Values stay as they were written, since a number may be one that would lose digits.
#[derive(Debug, Deserialize)]
struct Known {
    version: u64,
    encrypted: bool,
    outputs: Option<BTreeMap<String, Output>>,
}

#[derive(Debug, Deserialize)]
struct Found {
    id: StateId,
}

#[derive(Debug, Deserialize, Serialize)]
struct Output {
    value: Option<Box<RawValue>>,
    #[serde(rename = "type", default)]
    kind: Option<Box<RawValue>>,
    #[serde(default)]
    sensitive: bool,
}

#[derive(Serialize)]
struct Answer {
    state: String,
    version: u64,
    outputs: BTreeMap<String, Output>,
}

impl Output {
    /// In a table: on one line, and in quotes where that would not tell it from something else.
    fn short(&self) -> String {
        match &self.value {
            None => "(sensitive)".to_owned(),
            Some(value) => one_line(value.get()),
        }
    }
}

pub(super) async fn run(session: &Session, outputs: &Outputs) -> anyhow::Result<()> {
    let (id, name) = match session.or(&outputs.about) {
        // A token for outputs gets no state by its name, and its outputs it does.
        Some(named @ StateRef::Name { .. }) => {
            let address = session.client.address(named).await?;
            let (org, project, state) =
                (address.org.as_str(), address.project.as_str(), address.state.as_str());
            let call = Call::get(["api", "orgs", org, "outputs", "tfstate", project, state]);
            let Found { id } = session.client.json(call).await?;
            (id, address.to_string())
        }
        named => session.id(named).await?,
    };
    let body = session.client.send(Call::get(Named::path(&id.to_string(), &["outputs"]))).await?;
    let Known { version, encrypted, outputs: known } =
        serde_json::from_slice(&body).context("the server's answer lacks what this program looks for")?;
    anyhow::ensure!(
        !encrypted,
        "the outputs of {name} are not known to the server, since its client encrypted the state"
    );
    let mut known = known.unwrap_or_default();
    if let Some(wanted) = &outputs.name {
        let found = known
            .remove(wanted)
            .with_context(|| missing(wanted, &name, &known.keys().map(String::as_str).collect::<Vec<_>>()))?;
        return match session.out.is_json() {
            true => session.out.answer(&found, |_| String::new()),
            false => session.out.text(&plain(found.value.as_deref())),
        };
    }
    if !outputs.show_sensitive {
        for output in known.values_mut().filter(|output| output.sensitive) {
            output.value = None;
        }
    }
    session.out.answer(&Answer { state: name, version, outputs: known }, |answer| {
        let rows = answer.outputs.iter().map(|(name, output)| vec![name.clone(), output.short()]);
        table(&["OUTPUT", "VALUE"], rows)
    })
}
