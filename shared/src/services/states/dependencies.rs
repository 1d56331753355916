//! Edges between the Terraform states of an organization: which output of which state is which input of which other.
//!
//! They name states by their ids, so that a rename changes nothing. All edges of an organization lie in one partition, with an
//! item that each change of them moves: whoever adds an edge has seen all others, and two that would make a cycle together are
//! not added at once.

use std::collections::{BTreeSet, HashMap};

use futures::StreamExt;

use super::{Located, StateRef};
use crate::context::Context;
use crate::domain::ids::{EdgeId, StateId};
use crate::domain::names::{InputName, Login, OrgName, OutputName, StateAddress};
use crate::domain::tfstate::{Direction, Ends, Graph, Layers, default_input};
use crate::layout::{Record, StateEdge, StateGraph, StateHead, Stored, check, delete};
use crate::ports::{Expect, Item, Order, Timestamp, Write};
use crate::services::caller::Caller;
use crate::services::error::StateError;
use crate::services::states;
use crate::services::store::due::{Next, Pages};
use crate::services::store::retry::Attempts;
use crate::services::{Error, store};

/// Edges of an organization.
pub const EDGES_MAX: usize = 10_000;

/// The longest JSON text of a value in place of an output, in bytes.
pub const MOCK_BYTES_MAX: usize = 4_096;

/// Edges that one page of a list looks at.
pub const EDGES_PAGE: usize = 500;

/// States whose heads are read one by one for their names; for more of them the list of names is read.
const HEADS_MAX: usize = 200;

/// States that are read at once.
pub(super) const READ_AT_ONCE: usize = 16;

/// Edges that one commit removes.
const EDGES_PER_COMMIT: usize = 90;

/// An edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// Its id.
    pub id: EdgeId,
    /// What it connects.
    pub ends: Ends,
    /// The JSON text of a value that stands in for an output which does not exist.
    pub mock: Option<String>,
    /// When it was made.
    pub created: Timestamp,
    /// Who made it.
    pub created_by: Login,
}

impl Edge {
    pub(crate) fn read(item: &Item) -> Result<Self, Error> {
        let id = StateEdge::id_in(&item.key)?;
        let (StateEdge { ends, created, created_by }, mock) = StateEdge::decode_with(&item.value)?;
        let mock = (!mock.is_empty()).then(|| String::from_utf8_lossy(&mock).into_owned());
        Ok(Self { id, ends, mock, created, created_by })
    }

    fn write(&self, ctx: &Context, org: &OrgName, expect: Expect) -> Write {
        let Self { id, ends, mock, created, created_by } = self.clone();
        let record = StateEdge { ends, created, created_by };
        store::put_with(ctx, StateEdge::key(org, id), expect, &record, mock.unwrap_or_default().as_bytes())
    }
}

/// All edges of an organization, of which there are [`EDGES_MAX`] at most.
pub(super) async fn all(ctx: &Context, org: &OrgName) -> Result<Vec<Edge>, Error> {
    // What lies there beyond the bound is read too: nothing is judged by a part of the graph.
    store::query_all(ctx, StateEdge::of_org(org), usize::MAX).await?.iter().map(Edge::read).collect()
}

/// The graph of these edges.
pub(super) fn graph<'a>(edges: impl IntoIterator<Item = &'a Edge>) -> Graph<StateId> {
    Graph::of(edges.into_iter().map(|edge| (edge.ends.producer, edge.ends.consumer)))
}

/// What is to be connected.
#[derive(Debug, Clone)]
pub struct NewEdge {
    /// The state that has the output, or will have it.
    pub producer: StateRef,
    /// The output.
    pub output: OutputName,
    /// The state that reads it.
    pub consumer: StateRef,
    /// What it is called there; else it gets a name made of the others.
    pub input: Option<InputName>,
    /// The JSON text of a value that stands in for the output until that exists.
    pub mock: Option<String>,
}

/// An edge with what its states are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The edge.
    pub edge: Edge,
    /// The state that has the output.
    pub producer: End,
    /// The state that reads it.
    pub consumer: End,
}

/// A state as others show it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct End {
    /// What it is called, or was when it was removed; `None` for one of which nothing is left.
    pub address: Option<StateAddress>,
    /// Its id.
    pub id: StateId,
    /// Whether it was removed.
    pub removed: bool,
}

impl End {
    fn of(id: StateId, head: &StateHead) -> Self {
        Self { address: Some(head.address.clone()), id, removed: head.deleted.is_some() }
    }

    /// One of which nothing is known.
    pub(crate) fn gone(id: StateId) -> Self {
        Self { address: None, id, removed: true }
    }
}

/// `project/state`, or the id of a state of which nothing else is known.
impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.address {
            Some(address) => write!(f, "{}/{}", address.project, address.state),
            None => self.id.fmt(f),
        }
    }
}

/// Connects an output of a state with an input of another one. Repeated, it is the same edge; with another mock value, it has
/// that. Three reads at once, one query, one commit.
///
/// # Errors
/// `AccessError::NoOrg`, [`StateError::NotFound`]; [`StateError::Cycle`] for a cycle, for an input that the consumer calls so already, and
/// where there are as many as may be; [`StateError::NoInputName`] where no name can be made of the others.
pub async fn add(ctx: &Context, caller: &Caller, org: &OrgName, new: &NewEdge) -> Result<Named, Error> {
    caller.check_org(org)?;
    let mut attempts = Attempts::at("the graph of states");
    loop {
        attempts.begin()?;
        let graph_key = StateGraph::key(org);
        // Before the edges: what is added behind it moves it.
        let (producer, consumer, stored) = futures::try_join!(
            locate(ctx, caller, org, &new.producer),
            locate(ctx, caller, org, &new.consumer),
            store::read(ctx, &graph_key),
        )?;
        let edges = all(ctx, org).await?;
        let named = |edge| Named {
            edge,
            producer: End::of(producer.id, &producer.head.value),
            consumer: End::of(consumer.id, &consumer.head.value),
        };
        let is_it = |edge: &&Edge| {
            let Ends { producer: from, output, consumer: to, input } = &edge.ends;
            (*from, output, *to) == (producer.id, &new.output, consumer.id)
                && new.input.as_ref().is_none_or(|new| new == input)
        };
        if let Some(known) = edges.iter().find(is_it) {
            return match &new.mock {
                Some(mock) if known.mock.as_ref() != Some(mock) => {
                    set_mock(ctx, caller, org, known.id, Some(mock.clone())).await
                }
                Some(_) | None => Ok(named(known.clone())),
            };
        }
        let edge = judge(ctx, caller, &edges, new, [&producer, &consumer]).await?;
        let count = edges.len() as u64 + 1;
        let graph = StateGraph { edge_count: count };
        let unmoved = stored.as_ref().map_or(Expect::Absent, Stored::unchanged);
        let mut writes = vec![
            edge.write(ctx, org, Expect::Absent),
            store::put(ctx, graph_key, unmoved, &graph),
            // A state that is removed meanwhile gets no edge any more, so that whoever erases it finds all of them.
            check(StateHead::key(producer.id), producer.head.unchanged()),
        ];
        if producer.id != consumer.id {
            writes.push(check(StateHead::key(consumer.id), consumer.head.unchanged()));
        }
        if store::commit(ctx, writes).await?.is_ok() {
            return Ok(named(edge));
        }
    }
}

/// A state of this organization.
async fn locate(ctx: &Context, caller: &Caller, org: &OrgName, place: &StateRef) -> Result<Located, Error> {
    let located = states::locate(ctx, caller, place).await?;
    if located.head.value.address.org == *org {
        Ok(located)
    } else {
        Err(StateError::NotFound(place.to_string()).into())
    }
}

/// The edge as it is to be added to these.
async fn judge(
    ctx: &Context,
    caller: &Caller,
    edges: &[Edge],
    new: &NewEdge,
    [producer, consumer]: [&Located; 2],
) -> Result<Edge, Error> {
    let address = &producer.head.value.address;
    let input =
        new.input.clone().or_else(|| default_input(address, &new.output)).ok_or_else(|| {
            StateError::NoInputName { producer: address.clone(), output: new.output.clone() }
        })?;
    if let Some(other) =
        edges.iter().find(|edge| edge.ends.consumer == consumer.id && edge.ends.input == input)
    {
        let (consumer, id) = (consumer.head.value.address.clone(), other.id.to_string());
        return Err(StateError::InputTaken { consumer: Box::new(consumer), input, id }.into());
    }
    if edges.len() >= EDGES_MAX {
        return Err(StateError::TooManyDependencies { count: edges.len(), max: EDGES_MAX }.into());
    }
    if let Some(cycle) = graph(edges).cycle_with(producer.id, consumer.id) {
        let names = describe(ctx, &address.org, cycle.iter().copied()).await?;
        let first = cycle.first();
        let words: Vec<String> = cycle
            .iter()
            .chain(first)
            .map(|id| names.get(id).map_or_else(|| id.to_string(), End::to_string))
            .collect();
        return Err(StateError::Cycle(shortened(&words)).into());
    }
    let output = new.output.clone();
    let ends = Ends { producer: producer.id, output, consumer: consumer.id, input };
    let created_by = caller.user.login.clone();
    Ok(Edge { id: ends.id(), ends, mock: new.mock.clone(), created: ctx.now(), created_by })
}

/// A way from state to state, without its middle where it is long.
fn shortened(words: &[String]) -> String {
    const SHOWN_AT_EACH_END: usize = 8;
    if words.len() <= 2 * SHOWN_AT_EACH_END + 1 {
        return words.join(" -> ");
    }
    let (first, rest) = words.split_at(SHOWN_AT_EACH_END);
    let (middle, last) = rest.split_at(rest.len() - SHOWN_AT_EACH_END);
    format!("{} -> … {} more … -> {}", first.join(" -> "), middle.len(), last.join(" -> "))
}

/// What states are called, and whether they were removed. A read for each, some at once; where they are many, one query for all
/// names of the organization, and reads for what is not in it.
pub(super) async fn describe(
    ctx: &Context,
    org: &OrgName,
    ids: impl IntoIterator<Item = StateId>,
) -> Result<HashMap<StateId, End>, Error> {
    let mut wanted: BTreeSet<StateId> = ids.into_iter().collect();
    let mut found = HashMap::with_capacity(wanted.len());
    if wanted.len() > HEADS_MAX {
        for states::Listed { address, entry } in states::all(ctx, org).await? {
            if wanted.remove(&entry.id) {
                found.insert(entry.id, End { address: Some(address), id: entry.id, removed: false });
            }
        }
    }
    let read = |id| async move {
        let head = store::read(ctx, &StateHead::key(id)).await?;
        Ok::<_, Error>((id, head.map_or_else(|| End::gone(id), |head| End::of(id, &head.value))))
    };
    let mut reads = futures::stream::iter(wanted.into_iter().map(read)).buffered(READ_AT_ONCE);
    while let Some(end) = reads.next().await {
        let (id, end) = end?;
        found.insert(id, end);
    }
    Ok(found)
}

/// Gives edges the names of their states.
async fn name(ctx: &Context, org: &OrgName, edges: Vec<Edge>) -> Result<Vec<Named>, Error> {
    let ids = edges.iter().flat_map(|edge| [edge.ends.producer, edge.ends.consumer]);
    let names = describe(ctx, org, ids).await?;
    let end = |id: StateId| names.get(&id).cloned().unwrap_or_else(|| End::gone(id));
    Ok(edges
        .into_iter()
        .map(|edge| {
            let (producer, consumer) = (end(edge.ends.producer), end(edge.ends.consumer));
            Named { edge, producer, consumer }
        })
        .collect())
}

/// Which edges are asked for; those for which all of it holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Those that lead from this state, which may have been removed.
    pub producer: Option<StateRef>,
    /// Those that lead to this state, which may have been removed.
    pub consumer: Option<StateRef>,
    /// Those of outputs of this name.
    pub output: Option<OutputName>,
}

/// One page of an organization's edges, by their ids, with where the next page begins. A page may be empty and others follow.
///
/// # Errors
/// `AccessError::NoOrg`, [`StateError::NotFound`] for a name that no state has.
pub async fn list(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    filter: &Filter,
    after: Option<String>,
) -> Result<(Vec<Named>, Option<String>), Error> {
    caller.check_org(org)?;
    let (producer, consumer) = futures::try_join!(
        id_of(ctx, caller, org, filter.producer.as_ref()),
        id_of(ctx, caller, org, filter.consumer.as_ref())
    )?;
    let query = StateEdge::of_org(org).query(after, Order::Ascending, EDGES_PAGE);
    let page = store::query(ctx, &query).await?;
    let last = page.items.last().map(|item| item.key.sort.clone());
    let mut edges = page.items.iter().map(Edge::read).collect::<Result<Vec<_>, _>>()?;
    edges.retain(|Edge { ends, .. }| {
        producer.is_none_or(|id| id == ends.producer)
            && consumer.is_none_or(|id| id == ends.consumer)
            && filter.output.as_ref().is_none_or(|output| *output == ends.output)
    });
    Ok((name(ctx, org, edges).await?, last.filter(|_| page.more)))
}

/// The id of a state that is asked for. One that is named by it may be gone: then it is in no edge, or in those that are left.
async fn id_of(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    place: Option<&StateRef>,
) -> Result<Option<StateId>, Error> {
    Ok(match place {
        None => None,
        Some(StateRef::Id(id)) => Some(*id),
        Some(place @ StateRef::Name(_)) => Some(locate(ctx, caller, org, place).await?.id),
    })
}

async fn find(ctx: &Context, org: &OrgName, id: EdgeId) -> Result<Item, Error> {
    let key = StateEdge::key(org, id);
    store::get(ctx, &key).await?.ok_or_else(|| Error::State(StateError::NoDependency(id.to_string())))
}

async fn with_names(ctx: &Context, org: &OrgName, edge: Edge) -> Result<Named, Error> {
    let id = edge.id;
    let named = name(ctx, org, vec![edge]).await?.pop();
    named.ok_or_else(|| Error::State(StateError::NoDependency(id.to_string())))
}

/// One edge.
///
/// # Errors
/// `AccessError::NoOrg`, [`StateError::NoDependency`].
pub async fn get(ctx: &Context, caller: &Caller, org: &OrgName, id: EdgeId) -> Result<Named, Error> {
    caller.check_org(org)?;
    with_names(ctx, org, Edge::read(&find(ctx, org, id).await?)?).await
}

/// Sets the JSON text of the value that stands in for an output which does not exist, or removes it.
///
/// # Errors
/// `AccessError::NoOrg`, [`StateError::NoDependency`].
pub async fn set_mock(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    id: EdgeId,
    mock: Option<String>,
) -> Result<Named, Error> {
    caller.check_org(org)?;
    let mut attempts = Attempts::at("the edge");
    loop {
        attempts.begin()?;
        let item = find(ctx, org, id).await?;
        let edge = Edge { mock: mock.clone(), ..Edge::read(&item)? };
        let write = edge.write(ctx, org, Expect::Revision(item.revision));
        if store::commit(ctx, vec![write]).await?.is_ok() {
            return with_names(ctx, org, edge).await;
        }
    }
}

/// Removes an edge.
///
/// # Errors
/// `AccessError::NoOrg`, [`StateError::NoDependency`].
pub async fn remove(ctx: &Context, caller: &Caller, org: &OrgName, id: EdgeId) -> Result<Named, Error> {
    caller.check_org(org)?;
    let mut attempts = Attempts::at("the graph of states");
    loop {
        attempts.begin()?;
        let key = StateGraph::key(org);
        let stored = store::read(ctx, &key);
        let (stored, item) = futures::try_join!(stored, find(ctx, org, id))?;
        let edge = Edge::read(&item)?;
        let gone = delete(item.key, Expect::Revision(item.revision));
        if store::commit(ctx, vec![gone, moved(ctx, org, stored.as_ref(), 1)]).await?.is_ok() {
            return with_names(ctx, org, edge).await;
        }
    }
}

/// The write that goes with the removal of so many edges.
fn moved(ctx: &Context, org: &OrgName, stored: Option<&Stored<StateGraph>>, removed: u64) -> Write {
    let count = stored.map_or(0, |stored| stored.value.edge_count);
    let graph = StateGraph { edge_count: count.saturating_sub(removed) };
    let unmoved = stored.map_or(Expect::Absent, Stored::unchanged);
    store::put(ctx, StateGraph::key(org), unmoved, &graph)
}

/// Removes all edges of a state that was removed for good: none can be added any more. `None` when they are gone; else what is
/// to be done about the rest.
pub(super) async fn erase_of(
    ctx: &Context,
    org: &OrgName,
    state: StateId,
    pages: &mut Pages,
) -> Result<Option<Next>, Error> {
    loop {
        let Some(stored) = store::read(ctx, &StateGraph::key(org)).await? else {
            return Ok(None);
        };
        let mut edges = all(ctx, org).await?;
        edges.retain(|edge| edge.ends.producer == state || edge.ends.consumer == state);
        if edges.is_empty() {
            return Ok(None);
        }
        if !pages.take() {
            return Ok(Some(Next::MoreOfIt));
        }
        edges.truncate(EDGES_PER_COMMIT);
        let mut writes = vec![moved(ctx, org, Some(&stored), edges.len() as u64)];
        writes.extend(edges.iter().map(|edge| delete(StateEdge::key(org, edge.id), Expect::Any)));
        if store::commit(ctx, writes).await?.is_err() {
            // Somebody changes the graph at this moment; the next sweep looks again.
            return Ok(Some(Next::AsItIs));
        }
    }
}

/// The states of an organization that have edges, those that are reached from one of them, in the order in which they may be
/// applied (down), or destroyed (up).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    /// Which way.
    pub direction: Direction,
    /// See [`Layers`]; by their names within a layer.
    pub layers: Layers<End>,
}

/// The order of the states that are reached from one, or of all that have edges.
///
/// # Errors
/// `AccessError::NoOrg`, [`StateError::NotFound`].
pub async fn topology(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    from: Option<&StateRef>,
    direction: Direction,
) -> Result<Topology, Error> {
    caller.check_org(org)?;
    let located = async {
        match from {
            Some(place) => locate(ctx, caller, org, place).await.map(|located| Some(located.id)),
            None => Ok(None),
        }
    };
    let (from, edges) = futures::try_join!(located, all(ctx, org))?;
    let Layers { layers, unordered } = graph(&edges).layers(from, direction);
    let names = describe(ctx, org, layers.iter().flatten().chain(&unordered).copied()).await?;
    let named = |layer: Vec<StateId>| {
        let mut ends: Vec<End> =
            layer.iter().map(|id| names.get(id).cloned().unwrap_or_else(|| End::gone(*id))).collect();
        ends.sort();
        ends
    };
    let layers = Layers { layers: layers.into_iter().map(named).collect(), unordered: named(unordered) };
    Ok(Topology { direction, layers })
}
