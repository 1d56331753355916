//! `statewright outputs`: the outputs of stacks and states of an organization, at a server.

use std::borrow::Cow;

use anyhow::{Context as _, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use statewright_shared::domain::ids::StateId;
use statewright_shared::domain::names::{DEFAULT_STATE, OrgName, ProjectName, StateAddress};

use super::state::wire::State;
use crate::args;
use crate::client::{At, Call, Client, StateRef};
use crate::output::{Output, table};

#[derive(Debug, clap::Args)]
pub(crate) struct Outputs {
    #[command(flatten)]
    at: At,
    /// The stack or state: PROJECT/NAME, ORGANIZATION/PROJECT/NAME, PROJECT for its state `default`, or the
    /// id of a state [default: list all].
    #[arg(value_name = "PROJECT/NAME", value_parser = SourceRef::parse)]
    named: Option<SourceRef>,
    /// Print only this output, also if it is sensitive; a string is printed without quotes. For a secret of a
    /// stack this is the ciphertext.
    #[arg(short = 'o', long, value_name = "NAME", requires = "named")]
    output: Option<String>,
    /// List this project only.
    #[arg(long, value_name = "NAME", value_parser = args::project, conflicts_with = "named")]
    project: Option<ProjectName>,
    /// Whether a stack or a state is meant, where both have this name.
    #[arg(long, value_enum, requires = "named")]
    kind: Option<Kind>,
    /// Also show secrets: those of a state in plain text, those of a stack as ciphertexts, which `pulumi
    /// stack output` decrypts.
    #[arg(long, requires = "named")]
    show_secrets: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Kind {
    Stack,
    Tfstate,
}

impl Kind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Stack => "stack",
            Self::Tfstate => "tfstate",
        }
    }
}

/// A stack or a state as named on the command line. A name does not say which of the two it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SourceRef {
    Id(StateId),
    Name { org: Option<OrgName>, project: ProjectName, name: String },
}

impl SourceRef {
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        if let Some(id) = StateId::parse(text) {
            return Ok(Self::Id(id));
        }
        let parts: Vec<&str> = text.split('/').collect();
        let (org, project, name) = match parts[..] {
            [project] => (None, project, DEFAULT_STATE),
            [project, name] => (None, project, name),
            [org, project, name] => (Some(OrgName::parse(org)?), project, name),
            _ => bail!("write a stack or a state as PROJECT/NAME or ORGANIZATION/PROJECT/NAME"),
        };
        ensure!(
            !name.is_empty(),
            "write a stack or a state as PROJECT/NAME, or PROJECT for its state `default`"
        );
        Ok(Self::Name { org, project: ProjectName::parse(project)?, name: name.to_owned() })
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

/// An output. Its value is kept as written: parsing could lose digits of a number.
#[derive(Debug, Deserialize, Serialize)]
struct OneOutput {
    name: String,
    secret: bool,
    #[serde(default)]
    value: Option<Box<RawValue>>,
}

fn path(org: &OrgName) -> [&str; 4] {
    ["api", "orgs", org.as_str(), "outputs"]
}

pub(crate) async fn run(outputs: Outputs, out: Output) -> anyhow::Result<()> {
    let client = Client::open(&outputs.at)?;
    let Some(named) = outputs.named else {
        let org = client.organization().await?;
        let mut call = Call::get(path(&org));
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
    let (org, project, name, kinds) = match named {
        SourceRef::Id(_) if outputs.kind == Some(Kind::Stack) => {
            bail!("this is the id of a state: write the stack as PROJECT/NAME")
        }
        SourceRef::Id(id) => {
            let state = client.state::<State>(Some(&StateRef::Id(id))).await?.read;
            let (_, StateAddress { org, project, state }) = state.identity()?;
            (org, project, state.to_string(), vec![Kind::Tfstate])
        }
        SourceRef::Name { org, project, name } => {
            let org = match org {
                Some(org) => org,
                None => client.organization().await?,
            };
            (
                org,
                project,
                name,
                outputs.kind.map_or_else(|| vec![Kind::Stack, Kind::Tfstate], |kind| vec![kind]),
            )
        }
    };
    let mut found = Vec::new();
    for kind in &kinds {
        let call = Call::get(path(&org).into_iter().chain([kind.as_str(), project.as_str(), name.as_str()]));
        match client.send(call).await {
            Ok(body) => {
                let read = serde_json::from_slice::<Source>(&body);
                found.push(read.context("the server's response cannot be read")?);
            }
            Err(failure) if failure.is_not_there() && kinds.len() > 1 => {}
            Err(failure) => return Err(failure.into()),
        }
    }
    let mut found = found.into_iter();
    let mut source = match (found.next(), found.next()) {
        (None, _) => bail!("{org} has neither a stack nor a state named {project}/{name}"),
        (Some(_), Some(_)) => {
            bail!("both a stack and a state are named {project}/{name}: add --kind stack or --kind tfstate")
        }
        (Some(source), None) => source,
    };
    if let Some(wanted) = &outputs.output {
        let all = source.outputs.as_deref().unwrap_or_default();
        let found = all.iter().find(|output| output.name == *wanted);
        let found = found.with_context(|| {
            let names: Vec<&str> = all.iter().map(|output| output.name.as_str()).collect();
            missing(wanted, &format!("{project}/{name}"), &names)
        })?;
        return match out.is_json() {
            true => out.answer(found, |_| String::new()),
            false => out.text(&plain(found.value.as_deref())),
        };
    }
    if !outputs.show_secrets {
        let all = source.outputs.iter_mut().flatten();
        all.filter(|output| output.secret).for_each(|output| output.value = None);
    }
    out.answer(&source, |source| match &source.outputs {
        None => format!(
            "the server cannot read the outputs of {project}/{name}, since the client encrypted \
                         the state"
        ),
        Some(outputs) => table(&["OUTPUT", "VALUE"], outputs.iter().map(OneOutput::row)),
    })
}

impl Source {
    /// The names of the outputs; secrets are marked.
    fn names(&self) -> Cow<'_, str> {
        let Some(outputs) = &self.outputs else { return Cow::Borrowed("(encrypted by the client)") };
        let names = outputs.iter().map(|output| match output.secret {
            true => format!("{} (secret)", output.name),
            false => output.name.clone(),
        });
        Cow::Owned(names.collect::<Vec<_>>().join(", "))
    }
}

impl OneOutput {
    fn row(&self) -> Vec<String> {
        let value = self.value.as_ref().map_or_else(|| "(secret)".to_owned(), |value| one_line(value.get()));
        vec![self.name.clone(), value]
    }
}

/// A value for people and shells: strings have no quotes.
pub(super) fn plain(value: Option<&RawValue>) -> String {
    let json = value.map_or("null", RawValue::get);
    serde_json::from_str::<String>(json).unwrap_or_else(|_| json.to_owned())
}

/// Reports that there is no output of this name, and lists those that exist.
pub(super) fn missing(wanted: &str, of: &str, there: &[&str]) -> String {
    match there.is_empty() {
        true => format!("{of} has no outputs"),
        false => format!("{of} has no output {wanted}; its outputs are {}", there.join(", ")),
    }
}

/// Compacts JSON to one line and drops escapes that JSON does not require. Numbers stay as written.
pub(super) fn one_line(json: &str) -> String {
    let (mut line, mut rest) = (String::with_capacity(json.len()), json);
    while let Some(c) = rest.chars().next() {
        let behind = rest.get(c.len_utf8()..).unwrap_or_default();
        if c != '"' {
            match c {
                ',' | ':' => line.extend([c, ' ']),
                c if c.is_ascii_whitespace() => {}
                c => line.push(c),
            }
            rest = behind;
            continue;
        }
        let mut is_escaped = false;
        let end = behind.find(|c: char| {
            let ends = c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            ends
        });
        let (text, after) = rest.split_at(end.map_or(rest.len(), |end| end + 2));
        match serde_json::from_str::<String>(text) {
            Ok(text) => line.push_str(&serde_json::Value::from(text).to_string()),
            Err(_) => line.push_str(text),
        }
        rest = after;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_shown_on_one_line_without_needless_escapes() {
        for (json, line) in [
            (r#""MF\u003c\u0026""#, r#""MF<&""#),
            (
                "{\n  \"a\" : [ 1.50,\n 2 ],\n  \"b, c\": \"\\\" : \"\n}",
                r#"{"a": [1.50, 2], "b, c": "\" : "}"#,
            ),
            (r#""a\nb\\""#, r#""a\nb\\""#),
            ("12345678901234567890.10", "12345678901234567890.10"),
            ("null", "null"),
            ("\"broken", "\"broken"),
        ] {
            assert_eq!(one_line(json), line);
        }
    }

    #[test]
    fn stacks_and_states_are_named_the_same_way() {
        let named = |org: Option<&str>, project: &str, name: &str| SourceRef::Name {
            org: org.map(|org| OrgName::parse(org).unwrap()),
            project: ProjectName::parse(project).unwrap(),
            name: name.to_owned(),
        };
        assert_eq!(SourceRef::parse("net").unwrap(), named(None, "net", "default"));
        assert_eq!(SourceRef::parse("net/prod").unwrap(), named(None, "net", "prod"));
        assert_eq!(SourceRef::parse("acme/net/Prod.1").unwrap(), named(Some("acme"), "net", "Prod.1"));
        assert!(matches!(
            SourceRef::parse("019b7c3a-0000-7000-8000-000000000001").unwrap(),
            SourceRef::Id(_)
        ));
        for bad in ["", "/", "net/", "/prod", "a/b/c/d", "a b/c"] {
            assert!(SourceRef::parse(bad).is_err(), "{bad:?}");
        }
    }
}
