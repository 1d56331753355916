//! `statewright dep add`, `remove`, `list` and `search`.

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use statewright_shared::domain::ids::EdgeId;
use statewright_shared::domain::names::{InputName, OrgName, OutputName};

use super::wire::Edge;
use super::{Consumer, Session, organization, within};
use crate::client::{Call, Document, StateRef};
use crate::output::table;

#[derive(Debug, clap::Args)]
pub(super) struct Add {
    /// The state that has the output, or will have it: PROJECT[/STATE], or its id.
    #[arg(value_name = "PRODUCER", value_parser = StateRef::parse)]
    from: StateRef,
    /// The output. Asked for if it is left out.
    #[arg(value_name = "OUTPUT", value_parser = OutputName::parse)]
    output: Option<OutputName>,
    /// What it is called in the state that reads it [default: made of the names of the producer and the output].
    #[arg(long, value_name = "NAME", value_parser = InputName::parse)]
    input: Option<InputName>,
    /// A value, as JSON, that stands in for the output as long as that does not exist.
    #[arg(long, value_name = "JSON", value_parser = json_text)]
    mock: Option<Box<RawValue>>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Remove {
    /// The edge: what the state calls the input, or the edge's id.
    #[arg(value_name = "INPUT")]
    edge: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// What others read of the state, instead of what it reads of others.
    #[arg(long)]
    from: bool,
    /// Of all states of the organization.
    #[arg(long, conflicts_with = "from")]
    all: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Search {
    /// The output.
    #[arg(value_name = "OUTPUT", value_parser = OutputName::parse)]
    output: OutputName,
}

fn json_text(text: &str) -> anyhow::Result<Box<RawValue>> {
    serde_json::from_str(text).context("that is no JSON; a text stands in double quotes: '\"text\"'")
}

fn path(org: &OrgName) -> [&str; 4] {
    ["api", "orgs", org.as_str(), "tfstate-edges"]
}

pub(super) async fn add(session: &Session, add: &Add) -> anyhow::Result<()> {
    let consumer = session.consumer().await?;
    let org = organization(&consumer.organization)?;
    let producer = within(&add.from, org.as_str())?;
    let output = match &add.output {
        Some(output) => output.clone(),
        None => ask_for_output(session, add).await?,
    };
    let mut new = json!({ "producer": producer, "output": output, "consumer": consumer.id });
    if let Some(input) = &add.input {
        new["input"] = input.to_string().into();
    }
    // What was typed is sent as it was typed: a number may be one that would lose digits.
    let mut text = new.to_string();
    if let Some(mock) = &add.mock {
        text.truncate(text.len() - 1);
        text.push_str(&format!(",\"mock\":{mock}}}"));
    }
    // The same edge again is the same, so it may be sent again.
    let call = Call::post(path(&org)).text(text).repeatable();
    let edge: Document<Edge> = session.client.document(call).await?;
    session.out.answer(&edge.whole, |_| {
        let Edge { producer, output, consumer, input, .. } = &edge.read;
        format!(
            "{consumer} reads {output} of {producer} as {input}\nnext: `statewright dep sync` writes it into the \
             configuration, as local.{input}"
        )
    })
}

/// Shows which outputs there are, and asks for one.
async fn ask_for_output(session: &Session, add: &Add) -> anyhow::Result<OutputName> {
    #[derive(Deserialize)]
    struct State {
        id: String,
        version: u64,
    }
    #[derive(Deserialize)]
    struct Version {
        outputs: Vec<Output>,
    }
    #[derive(Deserialize)]
    struct Output {
        name: String,
    }
    let State { id, version } = session.client.state::<State>(Some(&add.from)).await?.read;
    ensure!(version > 0, "that state has no version yet, and so no outputs: name the one that it will have");
    let call = Call::get(["api", "tfstates", &id, "versions", &version.to_string()]);
    let Version { outputs } = session.client.json(call).await?;
    let names: Vec<&str> = outputs.iter().map(|output| output.name.as_str()).collect();
    ensure!(!names.is_empty(), "no output of that state is known here: name the one that is meant");
    let numbered = names.iter().enumerate().map(|(at, name)| format!("{}  {name}\n", at + 1));
    let answer = session
        .out
        .ask(&format!("{}Which output, by its number or its name", numbered.collect::<String>()))?;
    match answer {
        Some(answer) => chosen(&names, &answer),
        None => bail!("name the output: that state has {}", names.join(", ")),
    }
}

/// The output that is meant by an answer: no name is a number.
fn chosen(names: &[&str], answer: &str) -> anyhow::Result<OutputName> {
    let by_number = || names.get(answer.parse::<usize>().ok()?.checked_sub(1)?);
    let Some(name) = names.iter().find(|name| **name == answer).or_else(by_number) else {
        bail!(
            "that state has no output {answer:?}; to read one that it will have, name it: `statewright dep add PRODUCER OUTPUT`"
        )
    };
    Ok(OutputName::parse(name)?)
}

pub(super) async fn remove(session: &Session, remove: &Remove) -> anyhow::Result<()> {
    let (org, id, words) = match EdgeId::parse(&remove.edge) {
        Some(id) if !session.has_state() => {
            (session.client.organization().await?, id.to_string(), format!("the edge {id}"))
        }
        by_id => {
            let consumer = session.consumer().await?;
            let org = organization(&consumer.organization)?;
            let (id, words) = match by_id {
                Some(id) => (id.to_string(), format!("the edge {id}")),
                None => find(session, &org, &consumer, &remove.edge).await?,
            };
            (org, id, words)
        }
    };
    session.client.send(Call::delete([&path(&org)[..], &[id.as_str()]].concat())).await?;
    session.out.answer(&json!({ "removed": id }), |_| format!("{words} is removed"))
}

/// The edge that a state calls so.
async fn find(
    session: &Session,
    org: &OrgName,
    consumer: &Consumer,
    input: &str,
) -> anyhow::Result<(String, String)> {
    let call = Call::get(path(org)).query("consumer", &consumer.id);
    let edges = session.client.pages::<Edge>(call, "edges", None).await?.read;
    let names: Vec<&str> = edges.iter().map(|edge| edge.input.as_str()).collect();
    let there =
        if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", names.join(", ")) };
    let found = edges.iter().find(|edge| edge.input == input);
    let edge = found.with_context(|| format!("{} has no input {input}; {there}", consumer.name()))?;
    let words = format!("the edge from {} of {} to {input} of {}", edge.output, edge.producer, edge.consumer);
    Ok((edge.id.clone(), words))
}

pub(super) async fn list(session: &Session, list: &List) -> anyhow::Result<()> {
    let call = if list.all {
        Call::get(path(&session.client.organization().await?))
    } else {
        let consumer = session.consumer().await?;
        let end = if list.from { "producer" } else { "consumer" };
        Call::get(path(&organization(&consumer.organization)?)).query(end, &consumer.id)
    };
    show(session, call).await
}

pub(super) async fn search(session: &Session, search: &Search) -> anyhow::Result<()> {
    let org = session.client.organization().await?;
    show(session, Call::get(path(&org)).query("output", search.output.as_str())).await
}

async fn show(session: &Session, call: Call) -> anyhow::Result<()> {
    let edges = session.client.pages::<Edge>(call, "edges", None).await?;
    session.out.answer(&edges.whole, |_| {
        let mut rows: Vec<Vec<String>> = edges.read.iter().map(row).collect();
        rows.sort();
        table(&["STATE", "INPUT", "PRODUCER", "OUTPUT", "MOCK", "ID"], rows)
    })
}

fn row(edge: &Edge) -> Vec<String> {
    let Edge { id, producer, output, consumer, input, mock } = edge;
    let mock = mock.as_ref().map_or_else(|| "-".to_owned(), short);
    vec![consumer.to_string(), input.clone(), producer.to_string(), output.clone(), mock, id.clone()]
}

/// A value as far as it fits into a table.
fn short(value: &Value) -> String {
    const CHARS_MAX: usize = 32;
    let text = value.to_string();
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_is_chosen_by_its_number_or_its_name() {
        let chosen = |answer| chosen(&["vpc", "zone"], answer).map(|name| name.to_string());
        for (answer, name) in [("1", "vpc"), ("vpc", "vpc"), ("2", "zone")] {
            assert_eq!(chosen(answer).unwrap(), name, "{answer}");
        }
        for answer in ["y", "0", "3", "vp", "-1"] {
            assert!(chosen(answer).unwrap_err().to_string().contains("has no output"), "{answer}");
        }
    }
}
