//! `statewright outputs`: what stacks and states of an organization put out, side by side, at a server.

use std::borrow::Cow;

use anyhow::{Context as _, bail};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use statewright_shared::domain::names::{DEFAULT_STATE, ProjectName};

use crate::args;
use crate::client::{At, Call, Client};
use crate::output::{Output, table};

#[derive(Debug, clap::Args)]
pub(crate) struct Outputs {
    #[command(flatten)]
    at: At,
    /// The stack or the state, as PROJECT/NAME, or PROJECT for its state `default`; without it, all are listed.
    #[arg(value_name = "PROJECT/NAME")]
    named: Option<String>,
    /// Of this project only.
    #[arg(long, value_name = "NAME", value_parser = args::project, conflicts_with = "named")]
    project: Option<ProjectName>,
    /// Which of the two, where a stack and a state are called the same.
    #[arg(long, value_enum, requires = "named")]
    kind: Option<Kind>,
    /// Show the values of secrets too: of a state as they are, of a stack as ciphertexts, which `pulumi stack output` opens.
    #[arg(long, requires = "named")]
    show_secrets: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    Stack,
    Tfstate,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Stack => "stack",
            Self::Tfstate => "tfstate",
        }
    }
}

#[derive(Debug, Deserialize, Serialize)]
struct Source {
    kind: String,
    id: String,
    project: String,
    name: String,
    version: u64,
    outputs: Option<Vec<OneOutput>>,
}

/// An output. A value stays as it was written, since a number may be one that would lose digits.
#[derive(Debug, Deserialize, Serialize)]
struct OneOutput {
    name: String,
    secret: bool,
    #[serde(default)]
    value: Option<Box<RawValue>>,
}

pub(crate) async fn run(outputs: Outputs, out: Output) -> anyhow::Result<()> {
    let client = Client::open(&outputs.at)?;
    let org = client.organization().await?;
    let path = ["api", "orgs", org.as_str(), "outputs"];
    let Some(named) = &outputs.named else {
        let mut call = Call::get(path);
        if let Some(project) = &outputs.project {
            call = call.query("project", project.as_str());
        }
        let all = client.pages::<Source>(call, "sources", None).await?;
        return out.answer(&all.whole, |_| {
            let row = |it: &Source| {
                let name = format!("{}/{}", it.project, it.name);
                vec![it.kind.clone(), name, it.version.to_string(), it.names().into_owned()]
            };
            table(&["KIND", "NAME", "VERSION", "OUTPUTS"], all.read.iter().map(row))
        });
    };
    let (project, name) = named.split_once('/').unwrap_or((named, DEFAULT_STATE));
    ProjectName::parse(project)?;
    let kinds = outputs.kind.map_or_else(|| vec![Kind::Stack, Kind::Tfstate], |kind| vec![kind]);
    let mut found = Vec::new();
    for kind in &kinds {
        let call = Call::get(path.into_iter().chain([kind.as_str(), project, name]));
        match client.send(call).await {
            Ok(body) => {
                let read = serde_json::from_slice::<Source>(&body);
                found.push(read.context("the server's answer lacks what this program looks for")?);
            }
            Err(failure) if failure.status() == Some(StatusCode::NOT_FOUND) && kinds.len() > 1 => {}
            Err(failure) => return Err(failure.into()),
        }
    }
    let mut found = found.into_iter();
    let mut source = match (found.next(), found.next()) {
        (None, _) => bail!("neither a stack nor a state of {org} is called {project}/{name}"),
        (Some(_), Some(_)) => {
            bail!("a stack and a state are called {project}/{name}: say --kind stack or --kind tfstate")
        }
        (Some(source), None) => source,
    };
    if !outputs.show_secrets {
        let all = source.outputs.iter_mut().flatten();
        all.filter(|output| output.secret).for_each(|output| output.value = None);
    }
    out.answer(&source, |source| match &source.outputs {
        None => format!("the outputs of {project}/{name} are not known to the server, since its client encrypted the state"),
        Some(outputs) => table(&["OUTPUT", "VALUE"], outputs.iter().map(OneOutput::row)),
    })
}

impl Source {
    /// The names of its outputs; a secret has a mark.
    fn names(&self) -> Cow<'_, str> {
        let Some(outputs) = &self.outputs else { return Cow::Borrowed("(encrypted by its client)") };
        let names = outputs.iter().map(|output| match output.secret {
            true => format!("{} (secret)", output.name),
            false => output.name.clone(),
        });
        Cow::Owned(names.collect::<Vec<_>>().join(", "))
    }
}

impl OneOutput {
    fn row(&self) -> Vec<String> {
        let value = self.value.as_ref().map_or("(secret)", |value| value.get());
        vec![self.name.clone(), value.to_owned()]
    }
}
