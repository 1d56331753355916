//! Dependencies between the Terraform states of an organization, as edges: an output of one state is an input of
//! another.
//!
//! Edges name states by id, so that a rename changes nothing. All edges of an organization are in one partition, with
//! an item that every change moves. So a request that adds an edge has seen all others, and two edges that together
//! make a cycle cannot be added at the same time.

use std::collections::{BTreeSet, HashMap};

use futures::StreamExt;

use super::{Located, StateRef};
use crate::context::Context;
use crate::domain::access::{Tags, Unit};
use crate::domain::ids::{EdgeId, StateId};
use crate::domain::names::{InputName, Login, OrgName, OutputName, StateAddress};
use crate::domain::tfstate::{Direction, Ends, Graph, Layers, default_input};
use crate::layout::{Record, StateEdge, StateGraph, StateHead, Stored, check, delete};
use crate::ports::{Expect, Item, Timestamp, Write};
use crate::services::caller::Caller;
use crate::services::error::StateError;
use crate::services::standing::Sight;
use crate::services::states;
use crate::services::store::due::{Next, Pages};
use crate::services::store::page;
use crate::services::store::retry::Attempts;
use crate::services::{Error, store};

/// Edges of an organization, at most.
pub const EDGES_MAX: usize = 10_000;

/// The longest JSON text of a mock value, which replaces a missing output, in bytes.
pub const MOCK_BYTES_MAX: usize = 4_096;

/// Edges that one page of a list reads, before the filter.
pub const EDGES_PAGE: usize = 500;

/// States whose heads are read one by one for their names. For more, the list of names is read.
const HEADS_MAX: usize = 200;

/// States that are read at the same time.
pub(super) const READ_AT_ONCE: usize = 16;

/// Edges that one commit deletes.
const EDGES_PER_COMMIT: usize = 90;

/// A dependency between two states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// The id, which follows from the ends.
    pub id: EdgeId,
    /// The output and the input that it connects.
    pub ends: Ends,
    /// The JSON text of a mock value, which replaces an output that does not exist.
    pub mock: Option<String>,
    /// When it was added.
    pub created: Timestamp,
    /// The user who added it.
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

/// All edges of an organization.
pub(super) async fn all(ctx: &Context, org: &OrgName) -> Result<Vec<Edge>, Error> {
    // Edges above [`EDGES_MAX`] are read too: no decision uses a part of the graph.
    store::query_all(ctx, StateEdge::of_org(org), usize::MAX).await?.iter().map(Edge::read).collect()
}

pub(super) fn graph<'a>(edges: impl IntoIterator<Item = &'a Edge>) -> Graph<StateId> {
    Graph::of(edges.into_iter().map(|edge| (edge.ends.producer, edge.ends.consumer)))
}

/// A dependency to add.
#[derive(Debug, Clone)]
pub struct NewEdge {
    /// The state that has the output, or will have it.
    pub producer: StateRef,
    pub output: OutputName,
    /// The state that reads the output.
    pub consumer: StateRef,
    /// The consumer's name for the output; by default, a name made from the producer and the output.
    pub input: Option<InputName>,
    /// The JSON text of a mock value, which replaces the output until that exists.
    pub mock: Option<String>,
}

/// An edge with the names of its states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub edge: Edge,
    /// The state that has the output.
    pub producer: End,
    /// The state that reads the output.
    pub consumer: End,
}

/// One end of an edge, as lists show it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct End {
    /// The address, or the last one before the deletion; `None` for an erased state.
    pub address: Option<StateAddress>,
    pub id: StateId,
    /// Whether it was deleted.
    pub is_deleted: bool,
}

impl End {
    fn of(id: StateId, head: &StateHead) -> Self {
        Self { address: Some(head.address.clone()), id, is_deleted: head.deleted.is_some() }
    }

    /// Whether a request may show the state. Grants by label do not count here: only its name is known.
    pub(super) fn is_shown(&self, sight: &Sight<'_>) -> bool {
        match &self.address {
            Some(address) => sight.shows(&Unit::state(address, Tags::None)),
            // An erased state has only its ID left.
            None => true,
        }
    }

    /// The end for a state without a record.
    pub(crate) fn gone(id: StateId) -> Self {
        Self { address: None, id, is_deleted: true }
    }
}

/// `project/state`, or the id of a state whose address is not known.
impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.address {
            Some(address) => write!(f, "{}/{}", address.project, address.state),
            None => self.id.fmt(f),
        }
    }
}

/// Connects an output of a state with an input of another. A repeated call returns the same edge; with another mock
/// value, it replaces that value. Three reads at the same time, one query, one commit.
///
/// # Errors
/// `AccessError::NoOrg`, [`StateError::NotFound`]; [`StateError::Cycle`]; [`StateError::InputTaken`] if the consumer
/// has an input of this name; [`StateError::TooManyDependencies`]; [`StateError::NoInputName`] if no default name can
/// be made.
pub async fn add(ctx: &Context, caller: &Caller, org: &OrgName, new: &NewEdge) -> Result<Named, Error> {
    caller.lists(ctx, org).await?;
    let mut attempts = Attempts::at("the graph of states");
    loop {
        attempts.begin()?;
        let graph_key = StateGraph::key(org);
        // Read before the edges: an edge that is added after this read moves the graph's item.
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
            // A state that is deleted meanwhile gets no new edge, so that the sweep that erases it finds all of them.
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

/// Finds a state of this organization.
async fn locate(ctx: &Context, caller: &Caller, org: &OrgName, state: &StateRef) -> Result<Located, Error> {
    let located = Box::pin(states::locate(ctx, caller, state)).await?;
    if located.head.value.address.org == *org {
        Ok(located)
    } else {
        Err(StateError::NotFound(state.to_string()).into())
    }
}

/// Checks a new edge against the existing ones, and builds it.
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

/// The path from state to state, without its middle if it is long.
fn shortened(words: &[String]) -> String {
    const SHOWN_AT_EACH_END: usize = 8;
    if words.len() <= 2 * SHOWN_AT_EACH_END + 1 {
        return words.join(" -> ");
    }
    let (first, rest) = words.split_at(SHOWN_AT_EACH_END);
    let (middle, last) = rest.split_at(rest.len() - SHOWN_AT_EACH_END);
    format!("{} -> … {} more … -> {}", first.join(" -> "), middle.len(), last.join(" -> "))
}

/// The addresses of states, and whether they are deleted. One read for each, some at the same time. For more than
/// [`HEADS_MAX`], one query for all names of the organization, and reads for those that are missing there.
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
                found.insert(entry.id, End { address: Some(address), id: entry.id, is_deleted: false });
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

/// Adds the names of their states to edges.
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

/// Which edges a list shows: those that meet all conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only edges that start at this state, which may be deleted.
    pub producer: Option<StateRef>,
    /// Only edges that lead to this state, which may be deleted.
    pub consumer: Option<StateRef>,
    /// Only edges of outputs with this name.
    pub output: Option<OutputName>,
}

/// One page of an organization's edges, by id, with the start of the next page. A page may be empty although others
/// follow.
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
    let sight = caller.lists(ctx, org).await?;
    let (producer, consumer) = futures::try_join!(
        id_of(ctx, caller, org, filter.producer.as_ref()),
        id_of(ctx, caller, org, filter.consumer.as_ref())
    )?;
    let (items, next) = page::read(ctx, StateEdge::of_org(org), after, EDGES_PAGE).await?;
    let mut edges = items.iter().map(Edge::read).collect::<Result<Vec<_>, _>>()?;
    edges.retain(|Edge { ends, .. }| {
        producer.is_none_or(|id| id == ends.producer)
            && consumer.is_none_or(|id| id == ends.consumer)
            && filter.output.as_ref().is_none_or(|output| *output == ends.output)
    });
    let mut named = name(ctx, org, edges).await?;
    named.retain(|named| named.consumer.is_shown(&sight));
    Ok((named, next))
}

/// Refuses a caller who may not do what the request needs with the consumer of an edge, as if the edge did not exist. A
/// caller with the right in the whole organization costs no read.
async fn check_edge(ctx: &Context, caller: &Caller, org: &OrgName, edge: &Edge) -> Result<(), Error> {
    if caller.in_org(ctx, org).await?.has(caller.needs()) {
        return Ok(());
    }
    let sight = caller.lists(ctx, org).await?;
    let named = with_names(ctx, org, edge.clone()).await?;
    match named.consumer.is_shown(&sight) {
        true => Ok(()),
        false => Err(StateError::NoDependency(edge.id.to_string()).into()),
    }
}

/// The id of a state in a filter. A state given by its id need not exist: it may have been erased, and its edges may
/// remain.
async fn id_of(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    state: Option<&StateRef>,
) -> Result<Option<StateId>, Error> {
    Ok(match state {
        None => None,
        Some(StateRef::Id(id)) => Some(*id),
        Some(state @ StateRef::Name(_)) => Some(locate(ctx, caller, org, state).await?.id),
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
    caller.lists(ctx, org).await?;
    let edge = Edge::read(&find(ctx, org, id).await?)?;
    check_edge(ctx, caller, org, &edge).await?;
    with_names(ctx, org, edge).await
}

/// Sets or removes the JSON text of the mock value, which replaces an output that does not exist.
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
    caller.lists(ctx, org).await?;
    let mut attempts = Attempts::at("the edge");
    loop {
        attempts.begin()?;
        let item = find(ctx, org, id).await?;
        let edge = Edge { mock: mock.clone(), ..Edge::read(&item)? };
        check_edge(ctx, caller, org, &edge).await?;
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
    caller.lists(ctx, org).await?;
    let mut attempts = Attempts::at("the graph of states");
    loop {
        attempts.begin()?;
        let key = StateGraph::key(org);
        let stored = store::read(ctx, &key);
        let (stored, item) = futures::try_join!(stored, find(ctx, org, id))?;
        let edge = Edge::read(&item)?;
        check_edge(ctx, caller, org, &edge).await?;
        let gone = delete(item.key, Expect::Revision(item.revision));
        if store::commit(ctx, vec![gone, moved(ctx, org, stored.as_ref(), 1)]).await?.is_ok() {
            return with_names(ctx, org, edge).await;
        }
    }
}

/// The write of the graph's item for a commit that deletes `removed` edges.
fn moved(ctx: &Context, org: &OrgName, stored: Option<&Stored<StateGraph>>, removed: u64) -> Write {
    let count = stored.map_or(0, |stored| stored.value.edge_count);
    let graph = StateGraph { edge_count: count.saturating_sub(removed) };
    let unmoved = stored.map_or(Expect::Absent, Stored::unchanged);
    store::put(ctx, StateGraph::key(org), unmoved, &graph)
}

/// Deletes the edges of a state that is being erased, which can get no new ones. `None` once all are deleted;
/// otherwise, what the sweep does about the rest.
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
            // Another request changed the graph at this moment. The next sweep tries again.
            return Ok(Some(Next::AsItIs));
        }
    }
}

/// The states of an organization that have edges, or those that are reachable from one of them, in the order in which
/// they may be applied (down) or destroyed (up).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    /// Down or up.
    pub direction: Direction,
    /// See [`Layers`]. Each layer is sorted by name.
    pub layers: Layers<End>,
}

/// The order of all states that have edges, or of those that are reachable from one state.
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
    let shown = caller.lists(ctx, org).await?;
    let located = async {
        match from {
            Some(state) => locate(ctx, caller, org, state).await.map(|located| Some(located.id)),
            None => Ok(None),
        }
    };
    let (from, edges) = futures::try_join!(located, all(ctx, org))?;
    let Layers { layers, unordered } = graph(&edges).layers(from, direction);
    let names = describe(ctx, org, layers.iter().flatten().chain(&unordered).copied()).await?;
    let named = |layer: Vec<StateId>| {
        let mut ends: Vec<End> =
            layer.iter().map(|id| names.get(id).cloned().unwrap_or_else(|| End::gone(*id))).collect();
        ends.retain(|end| end.is_shown(&shown));
        ends.sort();
        ends
    };
    let layers = Layers { layers: layers.into_iter().map(named).collect(), unordered: named(unordered) };
    Ok(Topology { direction, layers })
}
