//! Checks the edges between Terraform states: see [`super::check`].

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use serde::de::IgnoredAny;

use super::check_states::found;
use crate::context::Context;
use crate::domain::ids::StateId;
use crate::domain::names::OrgName;
use crate::domain::tfstate::{Direction, Graph};
use crate::layout::{Org, StateEdge, StateGraph, StateHead, Stored};
use crate::ports::Item;
use crate::services::states::dependencies::Edge;
use crate::services::{Error, store};

/// Checks all edges of an organization, and the item that counts them and moves with each change. A graph that
/// changes meanwhile is checked again.
///
/// # Errors
/// Those of the ports. Problems of the edges are in the result, as text.
pub(super) async fn graph(ctx: &Context, org: &OrgName) -> Result<Vec<String>, Error> {
    const ATTEMPTS_MAX: usize = 3;
    let key = StateGraph::key(org);
    let mut attempts = 0;
    loop {
        attempts += 1;
        let before = store::get(ctx, &key).await?;
        let problems = check_one(ctx, org, before.as_ref()).await?;
        let after = store::get(ctx, &key).await?;
        let is_same = before.map(|item| item.revision) == after.map(|item| item.revision);
        if problems.is_empty() || is_same || attempts == ATTEMPTS_MAX {
            return Ok(problems
                .into_iter()
                .map(|problem| format!("the edges of {org}: {problem}"))
                .collect());
        }
    }
}

async fn check_one(ctx: &Context, org: &OrgName, graph: Option<&Item>) -> Result<Vec<String>, Error> {
    let mut problems = Vec::new();
    if store::get(ctx, &Org::key(org)).await?.is_none() {
        problems.push("there is no such organization".to_owned());
    }
    let items = store::query_all(ctx, StateEdge::of_org(org), usize::MAX).await?;
    match graph.map(Stored::<StateGraph>::read).transpose() {
        Ok(Some(graph)) if graph.value.edge_count == items.len() as u64 => {}
        Ok(Some(graph)) => {
            problems.push(format!(
                "there are {}, but the item that counts them has {}",
                items.len(),
                graph.value.edge_count
            ));
        }
        Ok(None) if items.is_empty() => {}
        Ok(None) => problems.push("the item that counts them is missing".to_owned()),
        Err(error) => problems.push(format!("the item that counts them: {error}")),
    }
    let mut heads = HashMap::new();
    let mut inputs = HashMap::new();
    let mut leads = Vec::new();
    for item in &items {
        let edge = match found(Edge::read(item))? {
            Ok(edge) => edge,
            Err(words) => {
                problems.push(format!("{}: {words}", item.key.sort));
                continue;
            }
        };
        let mut wrong = |words: String| problems.push(format!("edge {}: {words}", edge.id));
        if edge.ends.id() != edge.id {
            wrong(format!("by what it connects, its id should be {}", edge.ends.id()));
        }
        if edge.mock.as_ref().is_some_and(|mock| serde_json::from_str::<IgnoredAny>(mock).is_err()) {
            wrong("its mock value is not JSON".to_owned());
        }
        for (what, id) in [("producer", edge.ends.producer), ("consumer", edge.ends.consumer)] {
            let head = match heads.entry(id) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(head_of(ctx, id).await?),
            };
            match head {
                // The report of the state includes a head that cannot be read.
                Err(_) => {}
                Ok(None) => wrong(format!("there is no state {id}, its {what}")),
                Ok(Some(of)) if of != org => wrong(format!("its {what} {id} is a state of {of}")),
                Ok(Some(_)) => {}
            }
        }
        let input = (edge.ends.consumer, edge.ends.input.clone());
        if let Some(other) = inputs.insert(input, edge.id) {
            wrong(format!("its consumer also uses the input {} for edge {other}", edge.ends.input));
        }
        leads.push((edge.ends.producer, edge.ends.consumer));
    }
    let unordered: BTreeSet<StateId> =
        Graph::of(leads).layers(None, Direction::Down).unordered.into_iter().collect();
    if !unordered.is_empty() {
        let ids: Vec<String> = unordered.iter().map(StateId::to_string).collect();
        problems.push(format!("these states are in a cycle, or behind one: {}", ids.join(", ")));
    }
    Ok(problems)
}

/// The organization of a state; `None` if the state does not exist.
async fn head_of(ctx: &Context, id: StateId) -> Result<Result<Option<OrgName>, String>, Error> {
    let head = found(store::read(ctx, &StateHead::key(id)).await)?;
    Ok(head.map(|head| head.map(|head| head.value.address.org)))
}
