//! `statewright dep status`.

use super::Session;
use super::wire::{Dependencies, Dependency};
use crate::client::{Call, Document};
use crate::output::{table, to_the_second};

#[derive(Debug, clap::Args)]
pub(super) struct Status {
    /// Show all states of the organization that read outputs of other states.
    #[arg(long)]
    all: bool,
}

pub(super) async fn run(session: &Session, status: &Status) -> anyhow::Result<()> {
    if status.all {
        let org = session.client.organization().await?;
        let call = Call::get(["api", "orgs", org.as_str(), "tfstate-statuses"]);
        let states = session.client.pages::<Dependencies>(call, "states", None).await?;
        return session.out.answer(&states.whole, |_| {
            let mut rows: Vec<Vec<String>> = states.read.iter().map(row_of_state).collect();
            rows.sort();
            table(&["STATE", "STATUS", "INPUTS", "RAN"], rows)
        });
    }
    let consumer = session.client.named(session.state.as_ref()).await?;
    let call = Call::get(["api", "tfstates", &consumer.id.to_string(), "dependencies"]);
    let state: Document<Dependencies> = session.client.document(call).await?;
    session.out.answer(&state.whole, |_| describe(&state.read))
}

fn or_dash(time: Option<&String>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| to_the_second(time))
}

/// `2 clean, 1 dirty`.
fn row_of_state(state: &Dependencies) -> Vec<String> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for edge in &state.edges {
        match counts.iter_mut().find(|(status, _)| *status == edge.status) {
            Some((_, count)) => *count += 1,
            None => counts.push((&edge.status, 1)),
        }
    }
    counts.sort();
    let inputs: Vec<String> = counts.iter().map(|(status, count)| format!("{count} {status}")).collect();
    vec![state.state.to_string(), state.status.clone(), inputs.join(", "), or_dash(state.ran.as_ref())]
}

fn describe(state: &Dependencies) -> String {
    let mut text = format!("{} is {}", state.state, state.status);
    match &state.ran {
        Some(ran) => text.push_str(&format!("; it ran at {}", to_the_second(ran))),
        None => text.push_str("; it has never run"),
    }
    if state.partial {
        text.push_str("\nit has too many upstream states to check all of them");
    }
    if !state.edges.is_empty() {
        let rows = state.edges.iter().map(row_of_edge);
        let table = table(&["INPUT", "STATUS", "PRODUCER", "OUTPUT", "VALUE SINCE", "VERSION"], rows);
        text.push_str(&format!("\n\n{table}"));
    }
    text
}

fn row_of_edge(edge: &Dependency) -> Vec<String> {
    vec![
        edge.input.clone(),
        edge.status.clone(),
        edge.producer.to_string(),
        edge.output.clone(),
        or_dash(edge.since.as_ref()),
        edge.version.map_or_else(|| "-".to_owned(), |version| version.to_string()),
    ]
}
