//! `statewright dep sync`: writes the inputs of a state to a file of its configuration.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use serde::Serialize;
use statewright_shared::domain::server_url::ServerUrl;

use super::Session;
use super::wire::{Dependencies, Dependency, End};
use crate::client::Call;
use crate::hcl::quoted;
use crate::managed::{self, HEADER};

pub(in crate::commands) const FILE: &str = "dependencies.tf";

#[derive(Debug, clap::Args)]
pub(super) struct Sync {
    /// The file to write.
    #[arg(long, value_name = "FILE", default_value = FILE)]
    file: PathBuf,
    /// Replace a file that statewright did not write.
    #[arg(long)]
    force: bool,
    /// Fail, and write nothing, if an input would get its mock value. For pipelines that apply.
    #[arg(long)]
    no_mocks: bool,
}

#[derive(Debug, Serialize)]
struct Answer {
    state: String,
    file: String,
    inputs: Vec<Input>,
}

#[derive(Debug, Serialize)]
struct Input {
    input: String,
    producer: String,
    output: String,
    from: From,
}

/// The source of an input's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum From {
    Output,
    /// The mock value, used until the output first exists.
    Mock,
    /// No value: the input is left out.
    Nothing,
}

impl From {
    fn of(edge: &Dependency) -> Self {
        match (edge.readable, &edge.mock) {
            (true, _) => Self::Output,
            // If the output existed once, a mock value could make the client replace resources that were made
            // with the real one.
            (false, Some(_)) if !edge.gone => Self::Mock,
            (false, _) => Self::Nothing,
        }
    }
}

pub(super) async fn run(session: &Session, sync: &Sync) -> anyhow::Result<()> {
    let name = sync.file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    ensure!(
        name.ends_with(".tf") || name.ends_with(".tofu"),
        "clients read only files that end in .tf or .tofu: rename {}",
        sync.file.display()
    );
    let consumer = session.consumer().await?;
    let call = Call::get(["api", "tfstates", &consumer.id, "dependencies"]);
    let read: Dependencies = session.client.document(call).await?.read;
    let mocked: Vec<&Dependency> = read.edges.iter().filter(|edge| From::of(edge) == From::Mock).collect();
    for edge in &mocked {
        let Dependency { input, producer, output, .. } = edge;
        session
            .out
            .note(format_args!("warning: {input} has a mock value: {producer} has no output {output} yet"));
    }
    ensure!(
        mocked.is_empty() || !sync.no_mocks,
        "inputs of {} would get mock values, which --no-mocks forbids: {} was not written",
        consumer.name(),
        sync.file.display()
    );
    let text = configuration(&consumer.name(), session.client.server(), &read.edges);
    managed::write(&sync.file, &text, sync.force)?;
    for edge in read.edges.iter().filter(|edge| From::of(edge) == From::Nothing) {
        session.out.note(format_args!("warning: {} is left out: {}", edge.input, why_not(edge)));
    }
    let inputs = read.edges.iter().map(|edge| Input {
        input: edge.input.clone(),
        producer: edge.producer.to_string(),
        output: edge.output.clone(),
        from: From::of(edge),
    });
    let file = sync.file.to_str().context("the file name is not valid UTF-8")?.to_owned();
    let answer = Answer { state: consumer.name(), file, inputs: inputs.collect() };
    session.out.answer(&answer, |answer| {
        let count = |from| answer.inputs.iter().filter(|input| input.from == from).count();
        let (values, mocks, left_out) = (count(From::Output), count(From::Mock), count(From::Nothing));
        let of = |count: usize, what: &str| (count > 0).then(|| format!("{count} {what}"));
        let parts = [of(values, "from outputs"), of(mocks, "mocked"), of(left_out, "left out")];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let what = if parts.is_empty() { "none".to_owned() } else { parts.join(", ") };
        format!("inputs of {}, written into {}: {what}", answer.state, answer.file)
    })
}

fn why_not(edge: &Dependency) -> String {
    let Dependency { producer, output, .. } = edge;
    if edge.gone {
        return format!(
            "output {output} of {producer} no longer exists, and a mock value must not replace a real one"
        );
    }
    format!("{producer} has no output {output} that this token can read, and no mock value")
}

fn configuration(consumer: &str, server: &ServerUrl, edges: &[Dependency]) -> String {
    let mut text = format!(
        "{HEADER}: `statewright dep sync` overwrites this file.\n\
         # The inputs of {consumer} from other states. The token comes from the environment: `statewright tf -- plan`, or\n\
         # TF_HTTP_USERNAME and TF_HTTP_PASSWORD.\n"
    );
    let readable = edges.iter().filter(|edge| edge.readable).map(|edge| &edge.producer);
    let sources = names(readable);
    for (id, (producer, name)) in &sources {
        let address = quoted(&format!("{server}/tfstate/{id}/outputs"));
        text.push_str(&format!(
            "\n# {producer}\ndata \"terraform_remote_state\" \"{name}\" {{\n  backend = \"http\"\n  config = {{\n    \
             address = {address}\n  }}\n}}\n"
        ));
    }
    if edges.is_empty() {
        return text;
    }
    text.push_str("\nlocals {\n");
    let mut lines = Vec::new();
    for edge in edges {
        let Dependency { input, producer, output, mock, .. } = edge;
        let source = sources.get(producer.id.as_str()).filter(|_| edge.readable);
        let line = match (source, mock, From::of(edge)) {
            (Some((_, name)), ..) => {
                let output = quoted(output);
                Line::Setting(input, format!("data.terraform_remote_state.{name}.outputs[{output}]"))
            }
            (None, Some(mock), From::Mock) => {
                lines.push(Line::Comment(format!("{MOCK}, until {producer} has an output {output}.")));
                Line::Setting(input, format!("jsondecode({})", quoted(mock.get())))
            }
            (None, ..) => Line::Comment(format!("{input} is left out: {}.", why_not(edge))),
        };
        lines.push(line);
    }
    text.push_str(&written(&lines));
    text.push_str("}\n");
    text
}

/// The start of the comment above an input with a mock value. [`mocked_inputs`] looks for it.
const MOCK: &str = "A mock value";

/// The inputs with mock values in a file that `dep sync` wrote.
pub(in crate::commands) fn mocked_inputs(text: &str) -> Vec<&str> {
    let lines = text.lines().zip(text.lines().skip(1));
    let mocked = lines.filter(|(comment, _)| comment.trim_start().starts_with(&format!("# {MOCK}")));
    mocked.filter_map(|(_, setting)| Some(setting.split_once('=')?.0.trim())).collect()
}

enum Line<'a> {
    Comment(String),
    Setting(&'a str, String),
}

/// Formats lines like `tofu fmt`: aligns the equals signs of consecutive settings.
fn written(lines: &[Line<'_>]) -> String {
    let is_comment = |line: &Line<'_>| matches!(line, Line::Comment(_));
    let mut text = String::new();
    for part in lines.chunk_by(|one, other| is_comment(one) == is_comment(other)) {
        let name = |line: &Line<'_>| match line {
            Line::Comment(_) => 0,
            Line::Setting(name, _) => name.chars().count(),
        };
        let width = part.iter().map(name).max().unwrap_or(0);
        for line in part {
            text.push_str(&match line {
                Line::Comment(comment) => format!("  # {comment}\n"),
                Line::Setting(name, value) => format!("  {name:<width$} = {value}\n"),
            });
        }
    }
    text
}

/// Names of the data sources by the ids of their states. Where two names collide, the id is appended.
fn names<'a>(producers: impl Iterator<Item = &'a End>) -> BTreeMap<&'a str, (&'a End, String)> {
    let mut names: BTreeMap<&str, (&End, String)> =
        producers.map(|end| (end.id.as_str(), (end, identifier(end)))).collect();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (_, name) in names.values() {
        *counts.entry(name.clone()).or_default() += 1;
    }
    for (id, (_, name)) in &mut names {
        if counts.get(name).is_some_and(|count| *count > 1) {
            name.push_str(&format!("_{}", id.replace('-', "_")));
        }
    }
    names
}

fn identifier(end: &End) -> String {
    let named = match (&end.project, end.state.as_deref()) {
        (Some(project), Some("default") | None) => project.clone(),
        (Some(project), Some(state)) => format!("{project}_{state}"),
        (None, _) => end.id.clone(),
    };
    let name: String = named.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) { name } else { format!("_{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(input: &str, (project, state): (&str, &str), output: &str, readable: bool) -> Dependency {
        let id = format!("019b7c3a-0000-7000-8000-{:012}", project.len() * 100 + state.len());
        let producer =
            End { id, project: Some(project.to_owned()), state: Some(state.to_owned()), is_deleted: false };
        Dependency {
            producer,
            output: output.to_owned(),
            input: input.to_owned(),
            mock: None,
            status: "clean".to_owned(),
            readable,
            gone: false,
            since: None,
            version: None,
        }
    }

    fn mocked(edge: Dependency, mock: &str) -> Dependency {
        Dependency { mock: Some(serde_json::from_str(mock).unwrap()), ..edge }
    }

    #[test]
    fn each_producer_is_a_data_source_and_each_edge_a_local() {
        let server = ServerUrl::parse("https://state.example.com").unwrap();
        let edges = [
            edge("vpc", ("net", "default"), "vpc_id", true),
            edge("zone", ("net", "default"), "zone", true),
            mocked(edge("size", ("net", "default"), "size", false), r#"{"a": "${x}\n", "n": 1.50}"#),
            mocked(edge("url", ("db", "prod"), "url", true), "0"),
            edge("gone", ("db", "prod"), "gone", false),
            Dependency { gone: true, ..mocked(edge("lost", ("db", "prod"), "lost", false), "1") },
        ];
        let id =
            |number: u32| format!("https://state.example.com/tfstate/019b7c3a-0000-7000-8000-{number:012}");
        let (db, net) = (id(204), id(307));
        let expected = format!(
            r#"
# db/prod
data "terraform_remote_state" "db_prod" {{
  backend = "http"
  config = {{
    address = "{db}/outputs"
  }}
}}

# net/default
data "terraform_remote_state" "net" {{
  backend = "http"
  config = {{
    address = "{net}/outputs"
  }}
}}

locals {{
  vpc  = data.terraform_remote_state.net.outputs["vpc_id"]
  zone = data.terraform_remote_state.net.outputs["zone"]
  # A mock value, until net/default has an output size.
  size = jsondecode("{{\"a\": \"$${{x}}\\n\", \"n\": 1.50}}")
  url  = data.terraform_remote_state.db_prod.outputs["url"]
  # gone is left out: db/prod has no output gone that this token can read, and no mock value.
  # lost is left out: output lost of db/prod no longer exists, and a mock value must not replace a real one.
}}
"#
        );
        let text = configuration("acme/web/default", &server, &edges);
        let (head, body) = text.split_once("\n\n").unwrap();
        assert!(head.starts_with(HEADER) && head.contains("acme/web/default"), "{head}");
        assert_eq!(format!("\n{body}"), expected);
        assert_eq!(mocked_inputs(&text), ["size"]);
        let none = configuration("acme/web/default", &server, &[]);
        assert!(!none.contains("locals") && none.ends_with("TF_HTTP_PASSWORD.\n"), "{none}");
    }

    #[test]
    fn colliding_data_source_names_get_the_id_appended() {
        let ends = [("a.b", "c"), ("a", "b.c_"), ("a_b", "c_d"), ("9", "default")];
        let edges = ends.map(|end| edge("i", end, "o", true));
        let names = names(edges.iter().map(|edge| &edge.producer));
        let mut names: Vec<&str> = names.values().map(|(_, name)| name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["_9", "a_b_c", "a_b_c_", "a_b_c_d"]);
        let same = [("a.b", "c"), ("a", "b_c"), ("x", "y")].map(|end| edge("i", end, "o", true));
        let names = super::names(same.iter().map(|edge| &edge.producer));
        let names: Vec<&str> = names.values().map(|(_, name)| name.as_str()).collect();
        assert!(names.iter().filter(|name| name.starts_with("a_b_c_019b7c3a_")).count() == 2, "{names:?}");
        assert!(names.contains(&"x_y"), "{names:?}");
    }
}
