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
    /// The state with the output: PROJECT[/STATE], or its id. The output need not exist yet.
    #[arg(value_name = "PRODUCER", value_parser = StateRef::parse)]
    from: StateRef,
    /// The output. If it is left out, you choose from a list.
    #[arg(value_name = "OUTPUT", value_parser = OutputName::parse)]
    output: Option<OutputName>,
    /// The name of the input in the consuming state [default: derived from the names of the producer and the
    /// output].
    #[arg(long, value_name = "NAME", value_parser = InputName::parse)]
    input: Option<InputName>,
    /// A value, as JSON, to use until the output exists.
    #[arg(long, value_name = "JSON", value_parser = json_text)]
    mock: Option<Box<RawValue>>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Remove {
    /// The dependency: its id, or the name of the input.
    #[arg(value_name = "INPUT")]
    edge: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// List what other states read from this one, instead of what it reads.
    #[arg(long)]
    from: bool,
    /// List the dependencies of all states of the organization.
    #[arg(long, conflicts_with = "from")]
    all: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Search {
    /// The name of the output.
    #[arg(value_name = "OUTPUT", value_parser = OutputName::parse)]
    output: OutputName,
}

fn json_text(text: &str) -> anyhow::Result<Box<RawValue>> {
    serde_json::from_str(text).context("this is not JSON; write a string in double quotes: '\"text\"'")
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
    // The mock is sent as typed: parsing could lose digits of a number.
    let mut text = new.to_string();
    if let Some(mock) = &add.mock {
        text.truncate(text.len() - 1);
        text.push_str(&format!(",\"mock\":{mock}}}"));
    }
    // Repeatable: adding the same edge again changes nothing.
    let call = Call::post(path(&org)).text(text).repeatable();
    let edge: Document<Edge> = session.client.document(call).await?;
    session.out.answer(&edge.whole, |_| {
        let Edge { producer, output, consumer, input, .. } = &edge.read;
        format!(
            "{consumer} reads {output} of {producer} as {input}\nnext: `statewright dep sync` adds it to the \
             configuration, as local.{input}"
        )
    })
}

/// Lists the outputs and asks for one.
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
    ensure!(version > 0, "the producer has no version yet, so its outputs are unknown: name the output");
    let call = Call::get(["api", "tfstates", &id, "versions", &version.to_string()]);
    let Version { outputs } = session.client.json(call).await?;
    let names: Vec<&str> = outputs.iter().map(|output| output.name.as_str()).collect();
    ensure!(!names.is_empty(), "no outputs of the producer are known: name the output");
    let numbered = names.iter().enumerate().map(|(at, name)| format!("{}  {name}\n", at + 1));
    let answer =
        session.out.ask(&format!("{}Which output (number or name)", numbered.collect::<String>()))?;
    match answer {
        Some(answer) => chosen(&names, &answer),
        None => bail!("name the output: the producer has {}", names.join(", ")),
    }
}

/// The output that an answer names or numbers. No name is a number.
fn chosen(names: &[&str], answer: &str) -> anyhow::Result<OutputName> {
    let by_number = || names.get(answer.parse::<usize>().ok()?.checked_sub(1)?);
    let Some(name) = names.iter().find(|name| **name == answer).or_else(by_number) else {
        bail!(
            "the producer has no output {answer:?}; to read an output that does not exist yet, name it: \
             `statewright dep add PRODUCER OUTPUT`"
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
    session.out.answer(&json!({ "removed": id }), |_| format!("removed {words}"))
}

/// The edge of the consumer with this input.
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

/// Shortens a value for a table.
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
