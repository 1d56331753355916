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
    /// Print only this output, also if it is sensitive; a string is printed without quotes.
    #[arg(short = 'o', long = "output", value_name = "NAME")]
    name: Option<String>,
    /// Also show sensitive values.
    #[arg(long)]
    show_sensitive: bool,
}

/// The outputs of one version. Values are kept as written: parsing could lose digits of a number.
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
    /// The value on one line, for a table; in quotes where it would be ambiguous without.
    fn short(&self) -> String {
        match &self.value {
            None => "(sensitive)".to_owned(),
            Some(value) => one_line(value.get()),
        }
    }
}

pub(super) async fn run(session: &Session, outputs: &Outputs) -> anyhow::Result<()> {
    let (id, name) = match session.or(&outputs.about) {
        // A token with the role `outputs` may not read the state itself.
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
        serde_json::from_slice(&body).context("the server's response cannot be read")?;
    anyhow::ensure!(
        !encrypted,
        "the server cannot read the outputs of {name}, since the client encrypted the state"
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
