//! The map of an organization: which stacks and states read the outputs of which others.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{dependencies, staleness};
use crate::account;
use crate::context::Context;
use crate::domain::access::{Tags, Unit};
use crate::domain::deployment::referenced;
use crate::domain::ids::StateId;
use crate::domain::names::{OrgName, ProjectName, StackAddress, StateAddress};
use crate::domain::tfstate::{Direction, Graph, StateStatus};
use crate::layout::{KeyPrefix, Record, StackEntry, StateEntry};
use crate::ports::{Item, Timestamp};
use crate::services::Error;
use crate::services::caller::Caller;
use crate::services::standing::Sight;
use crate::services::store::page;

pub use super::outputs::Kind;

/// Stacks that are read for a map, at most, and the same number of states.
pub const READ_MAX: usize = 2_000;

/// Stacks and states on a map, at most.
pub const NODES_MAX: usize = 2_000;

/// Arrows on a map, at most: each stack may read a hundred others.
const ARROWS_MAX: usize = 10_000;

/// States whose status is computed for a map, at most.
pub const STATUSES_MAX: usize = 500;

/// Names of outputs that one arrow has, at most.
const OUTPUTS_MAX: usize = 20;

/// Names that one query reads.
const PAGE: usize = 500;

/// A stack or a state on the map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Stack or state.
    pub kind: Kind,
    pub id: String,
    pub project: ProjectName,
    /// Its name in the project.
    pub name: String,
    /// Whether it ran with the current values of what it reads; `None` if that was not computed.
    pub status: Option<StateStatus>,
    /// When its current version was published or written.
    pub changed: Option<Timestamp>,
    /// Resources in the current version, if they are known.
    pub resource_count: Option<u64>,
    /// Its place in an order to apply all of them, from 0. `None` in or after a cycle, which references of stacks can make.
    pub layer: Option<usize>,
}

/// What one stack or state reads of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrow {
    /// The one that has the outputs, by its place in the list of nodes.
    pub from: usize,
    /// The one that reads them.
    pub to: usize,
    /// The kind of both ends: references lead from stack to stack, edges from state to state.
    pub kind: Kind,
    /// Whether the reader may have run with other values than the current ones. Of a reference it is known only that the
    /// other stack was updated since.
    pub is_stale: Option<bool>,
    /// The first outputs that it reads, sorted. Not known of references.
    pub outputs: Vec<String>,
}

/// The map of an organization, as the caller may see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Map {
    /// Those that read others or are read, in the order to apply them.
    pub nodes: Vec<Node>,
    /// What they read of each other.
    pub arrows: Vec<Arrow>,
    /// The number of others that were read, which have no arrows.
    pub apart: usize,
    /// Whether the organization has more than one map shows.
    pub is_cut: bool,
}

/// Reads the map of an organization. The queries of the lists of stacks, states and edges, and what
/// [`staleness::of_all`] reads for a page, of [`STATUSES_MAX`] states at most.
///
/// # Errors
/// `AccessError::NoOrg`.
pub async fn of_org(ctx: &Context, caller: &Caller, org: &OrgName) -> Result<Map, Error> {
    let sight = caller.lists(ctx, org).await?;
    let (stacks, states, edges) = futures::try_join!(
        read_stacks(ctx, org, &sight),
        read_states(ctx, org, &sight),
        dependencies::all(ctx, org)
    )?;
    let is_cut = stacks.is_cut || states.is_cut;
    let places: HashMap<StateId, usize> =
        states.ids.iter().zip(stacks.nodes.len()..).map(|(id, place)| (*id, place)).collect();

    // An end that the caller may not see is not shown, nor is a deleted one.
    let consumers: BTreeSet<StateId> = edges.iter().map(|edge| edge.ends.consumer).collect();
    let mut wanted: Vec<StateId> = consumers.into_iter().filter(|id| places.contains_key(id)).collect();
    wanted.truncate(STATUSES_MAX);
    let mut is_stale: HashMap<(StateId, StateId), bool> = HashMap::new();
    let mut statuses: HashMap<StateId, StateStatus> = HashMap::new();
    for report in staleness::of_edges(ctx, edges.clone(), &wanted).await? {
        let is_unknown = report.is_partial && report.status == StateStatus::Clean;
        if !is_unknown {
            statuses.insert(report.state.id, report.status);
        }
        for judged in report.edges {
            let ends = (judged.edge.ends.producer, report.state.id);
            *is_stale.entry(ends).or_default() |= judged.status.makes_stale();
        }
    }
    let mut arrows: BTreeMap<(usize, usize), Arrow> = BTreeMap::new();
    let mut reads: BTreeSet<StateId> = BTreeSet::new();
    for edge in &edges {
        let (producer, consumer) = (edge.ends.producer, edge.ends.consumer);
        reads.insert(consumer);
        let (Some(&from), Some(&to)) = (places.get(&producer), places.get(&consumer)) else { continue };
        let is_stale = is_stale.get(&(producer, consumer)).copied();
        let arrow = arrows.entry((from, to)).or_insert_with(|| Arrow {
            from,
            to,
            kind: Kind::State,
            is_stale,
            outputs: Vec::new(),
        });
        arrow.outputs.push(edge.ends.output.as_str().to_owned());
    }
    for arrow in arrows.values_mut() {
        arrow.outputs.sort();
        arrow.outputs.dedup();
        arrow.outputs.truncate(OUTPUTS_MAX);
    }
    let mut nodes = stacks.nodes;
    for reference in references(&nodes, &stacks.references, &stacks.ids) {
        arrows.insert((reference.from, reference.to), reference);
    }
    judge_stacks(&mut nodes, arrows.values());
    for (mut node, id) in states.nodes.into_iter().zip(&states.ids) {
        // A state that reads nothing is clean.
        node.status = if reads.contains(id) { statuses.get(id).copied() } else { Some(StateStatus::Clean) };
        nodes.push(node);
    }
    let map = laid_out(nodes, arrows.into_values().collect());
    Ok(Map { is_cut: is_cut || map.is_cut, ..map })
}

/// What is read of an organization's stacks or states.
struct Listed<T> {
    nodes: Vec<Node>,
    /// For each stack, the names of what it reads.
    references: Vec<Vec<String>>,
    /// The ids, in the order of the nodes.
    ids: Vec<T>,
    is_cut: bool,
}

async fn read_stacks(ctx: &Context, org: &OrgName, sight: &Sight<'_>) -> Result<Listed<StackAddress>, Error> {
    let mut found = Listed { nodes: Vec::new(), references: Vec::new(), ids: Vec::new(), is_cut: false };
    let all = || StackEntry::of_org(org, None);
    found.is_cut = read_names(ctx, all, sight, |item| {
        let (project, stack) = StackEntry::name_in(&item.key)?;
        let entry = StackEntry::decode(&item.value)?;
        let address = StackAddress { org: org.clone(), project, stack };
        if sight.shows(&Unit::stack(&address, Tags::Tags(&entry.tags))) {
            found.nodes.push(Node {
                kind: Kind::Stack,
                id: entry.id.to_string(),
                project: address.project.clone(),
                name: address.stack.to_string(),
                status: Some(StateStatus::Clean),
                changed: entry.last_update,
                resource_count: entry.resource_count,
                layer: None,
            });
            found.references.push(entry.references);
            found.ids.push(address);
        }
        Ok(())
    })
    .await?;
    account::take(found.references.iter().flatten().map(String::len).sum()).await?;
    Ok(found)
}

async fn read_states(ctx: &Context, org: &OrgName, sight: &Sight<'_>) -> Result<Listed<StateId>, Error> {
    let mut found = Listed { nodes: Vec::new(), references: Vec::new(), ids: Vec::new(), is_cut: false };
    let all = || StateEntry::of_org(org, None);
    found.is_cut = read_names(ctx, all, sight, |item| {
        let (project, state) = StateEntry::name_in(&item.key)?;
        let entry = StateEntry::decode(&item.value)?;
        let address = StateAddress { org: org.clone(), project, state };
        if sight.shows(&Unit::state(&address, Tags::Labels(&entry.labels))) {
            found.nodes.push(Node {
                kind: Kind::State,
                id: entry.id.to_string(),
                project: address.project,
                name: address.state.to_string(),
                status: None,
                changed: entry.last_write,
                resource_count: entry.resource_count,
                layer: None,
            });
            found.ids.push(entry.id);
        }
        Ok(())
    })
    .await?;
    Ok(found)
}

/// Passes the names that the caller may see on, up to [`READ_MAX`]. Returns whether there are more.
async fn read_names<T>(
    ctx: &Context,
    all: impl Fn() -> KeyPrefix<T>,
    sight: &Sight<'_>,
    mut each: impl FnMut(&Item) -> Result<(), Error>,
) -> Result<bool, Error> {
    let names = &sight.names();
    let (mut after, mut count) = (None, 0);
    loop {
        let named = page::Named { all: all(), listed: all(), end: "", names };
        let (items, next) = page::read_named(ctx, &named, after, PAGE.min(READ_MAX - count)).await?;
        items.iter().try_for_each(&mut each)?;
        count += items.len();
        after = next;
        if after.is_none() || count >= READ_MAX {
            return Ok(after.is_some());
        }
    }
}

/// The arrows of references to stacks that are among the nodes.
fn references(stacks: &[Node], names: &[Vec<String>], addresses: &[StackAddress]) -> Vec<Arrow> {
    let places: HashMap<&StackAddress, usize> =
        addresses.iter().enumerate().map(|(place, address)| (address, place)).collect();
    let mut arrows = Vec::new();
    for (to, (own, names)) in addresses.iter().zip(names).enumerate() {
        for from in names.iter().filter_map(|name| places.get(&referenced(own, name)?).copied()) {
            let changed = |place: usize| stacks.get(place).and_then(|node| node.changed);
            let is_stale = Some(changed(from) > changed(to));
            arrows.push(Arrow { from, to, kind: Kind::Stack, is_stale, outputs: Vec::new() });
        }
    }
    arrows
}

/// Marks the stacks that read a stack that was updated since, and all that read those: the values may be others.
fn judge_stacks<'a>(stacks: &mut [Node], arrows: impl Iterator<Item = &'a Arrow>) {
    let references: Vec<&Arrow> = arrows.filter(|arrow| arrow.kind == Kind::Stack).collect();
    let touched: Vec<usize> =
        references.iter().filter(|arrow| arrow.is_stale == Some(true)).map(|arrow| arrow.to).collect();
    let graph = Graph::of(references.iter().map(|arrow| (arrow.from, arrow.to)));
    for place in graph.reach(touched, Direction::Down) {
        if let Some(node) = stacks.get_mut(place) {
            node.status = Some(StateStatus::PotentiallyStale);
        }
    }
}

/// The nodes that have arrows, in an order to apply them, up to a bound.
fn laid_out(nodes: Vec<Node>, arrows: Vec<Arrow>) -> Map {
    let graph = Graph::of(arrows.iter().map(|arrow| (arrow.from, arrow.to)));
    let order = graph.layers(None, Direction::Down);
    let layered = order.layers.iter().enumerate().map(|(layer, nodes)| (Some(layer), nodes));
    let mut order: Vec<(usize, Option<usize>)> = layered
        .chain([(None, &order.unordered)])
        .flat_map(|(layer, nodes)| nodes.iter().map(move |node| (*node, layer)))
        .collect();
    let (apart, is_cut) = (nodes.len().saturating_sub(order.len()), order.len() > NODES_MAX);
    order.truncate(NODES_MAX);
    let new_places: HashMap<usize, usize> =
        order.iter().enumerate().map(|(new, (old, _))| (*old, new)).collect();
    let placed =
        order.iter().filter_map(|(old, layer)| Some(Node { layer: *layer, ..nodes.get(*old)?.clone() }));
    let arrows = arrows.into_iter().filter_map(|arrow| {
        let (from, to) = (*new_places.get(&arrow.from)?, *new_places.get(&arrow.to)?);
        Some(Arrow { from, to, ..arrow })
    });
    let mut arrows: Vec<Arrow> = arrows.collect();
    let is_cut = is_cut || arrows.len() > ARROWS_MAX;
    arrows.truncate(ARROWS_MAX);
    Map { nodes: placed.collect(), arrows, apart, is_cut }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(number: i64) -> Node {
        Node {
            kind: Kind::Stack,
            id: format!("s-{number}"),
            project: ProjectName::parse("web").unwrap(),
            name: format!("s{number}"),
            status: Some(StateStatus::Clean),
            changed: Some(Timestamp(number)),
            resource_count: None,
            layer: None,
        }
    }

    fn addresses(count: i64) -> Vec<StackAddress> {
        (0..count).map(|number| StackAddress::parse("acme", "web", &format!("s{number}")).unwrap()).collect()
    }

    fn map_of(nodes: Vec<Node>, names: &[&[&str]]) -> Map {
        let mut nodes = nodes;
        let names: Vec<Vec<String>> =
            names.iter().map(|all| all.iter().map(|&name| name.to_owned()).collect()).collect();
        let arrows = references(&nodes, &names, &addresses(i64::try_from(nodes.len()).unwrap()));
        judge_stacks(&mut nodes, arrows.iter());
        laid_out(nodes, arrows)
    }

    #[test]
    fn a_stack_after_one_that_was_updated_since_may_be_stale() {
        // 3 reads 0 and 2; 0 was updated before it. 1 reads 2, which was updated later, and 4 reads 1.
        let nodes: Vec<Node> = (0..6).map(stack).collect();
        let names: [&[&str]; 6] =
            [&[], &["acme/web/s2"], &[], &["s0", "acme/s2"], &["s1", "acme/web/none", "other/web/s0"], &[]];
        let map = map_of(nodes, &names);
        let shown = |node: &Node| (node.name.clone(), node.layer, node.status);
        let (clean, may_be) = (Some(StateStatus::Clean), Some(StateStatus::PotentiallyStale));
        let expected = [
            ("s0".to_owned(), Some(0), clean),
            ("s2".to_owned(), Some(0), clean),
            ("s1".to_owned(), Some(1), may_be),
            ("s3".to_owned(), Some(1), clean),
            ("s4".to_owned(), Some(2), may_be),
        ];
        assert_eq!(map.nodes.iter().map(shown).collect::<Vec<_>>(), expected);
        let mut arrows: Vec<_> = map.arrows.iter().map(|one| (one.from, one.to, one.is_stale)).collect();
        arrows.sort();
        let (no, yes) = (Some(false), Some(true));
        assert_eq!(arrows, [(0, 3, no), (1, 2, yes), (1, 3, no), (2, 4, no)]);
        assert_eq!((map.apart, map.is_cut), (1, false));
    }

    #[test]
    fn references_in_a_circle_have_no_order_and_are_shown() {
        let map = map_of((0..3).map(stack).collect(), &[&["s1"], &["s0"], &["s0"]]);
        assert_eq!(map.nodes.len(), 3);
        assert!(map.nodes.iter().all(|node| node.layer.is_none()));
        assert_eq!(map.arrows.len(), 3);
    }

    #[test]
    fn a_map_of_too_many_is_cut_and_says_so() {
        let count = NODES_MAX + 1;
        let nodes: Vec<Node> = (0..i64::try_from(count).unwrap()).map(stack).collect();
        let arrow = |to| Arrow { from: 0, to, kind: Kind::Stack, is_stale: None, outputs: Vec::new() };
        let map = laid_out(nodes, (1..count).map(arrow).collect());
        assert_eq!((map.nodes.len(), map.arrows.len()), (NODES_MAX, NODES_MAX - 1));
        assert!(map.is_cut);
        // Few nodes may have many arrows.
        let nodes: Vec<Node> = (0..150).map(stack).collect();
        let arrow = |from, to| Arrow { from, to, kind: Kind::Stack, is_stale: None, outputs: Vec::new() };
        let arrows = (0..149).flat_map(|from| (from + 1..150).map(move |to| arrow(from, to))).collect();
        let map = laid_out(nodes, arrows);
        assert_eq!((map.nodes.len(), map.arrows.len(), map.is_cut), (150, ARROWS_MAX, true));
    }
}
