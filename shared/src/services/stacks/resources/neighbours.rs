//! The resources around one: what it refers to and what refers to it, some steps far.

use std::collections::{BTreeMap, BTreeSet};

use super::{Found, Which, check_named, each_edge, find, find_row, missing, open, rows};
use crate::context::Context;
use crate::domain::names::StackAddress;
use crate::domain::neighbours::{EDGES_MAX, HOPS_MAX, NODES_MAX};
use crate::domain::resource_index::{Edge, EdgeKind, Row};
use crate::services::Error;
use crate::services::caller::Caller;

/// The resources around one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbours {
    /// The version that has them.
    pub version: u64,
    /// The one in the middle comes first.
    pub nodes: Vec<Row>,
    /// References between nodes, which are named by their positions.
    pub edges: Vec<Edge>,
    /// Whether there are more nodes or edges.
    pub is_cut: bool,
}

/// Returns the resources that are at most `hops` references from one. A provider is followed from the resources that use
/// it, but not to the others that use it, unless it is in the middle: nearly all resources share one.
///
/// # Errors
/// Those of [`super::get`].
pub async fn neighbours(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    which: Which<'_>,
    hops: u64,
) -> Result<Neighbours, Error> {
    let Found { version, snapshot, .. } = find(ctx, caller, address, which.version).await?;
    check_named(which.urn)?;
    let Some(snapshot) = snapshot else { return Err(missing(address, version, which.urn)) };
    let opened = open(ctx, address, version, &snapshot, false).await?;
    let middle = find_row(ctx, address, version, &opened, (which.urn, Some(which.is_delete))).await?;
    // The number of each row among the nodes.
    let mut nodes: BTreeMap<u32, u32> = BTreeMap::from([(middle, 0)]);
    let mut edge_of = BTreeSet::from([middle]);
    let mut is_cut = false;
    for _ in 0..hops.clamp(1, HOPS_MAX) {
        let mut found = BTreeSet::new();
        each_edge(ctx, &opened, |edge| {
            let is_back_allowed = edge.kind != EdgeKind::Provider || edge.to == middle;
            let forth = edge_of.contains(&edge.from).then_some(edge.to);
            let back = (is_back_allowed && edge_of.contains(&edge.to)).then_some(edge.from);
            for row in [forth, back].into_iter().flatten().filter(|row| !nodes.contains_key(row)) {
                if nodes.len() + found.len() < NODES_MAX {
                    found.insert(row);
                } else if !found.contains(&row) {
                    is_cut = true;
                }
            }
        })
        .await?;
        for row in &found {
            nodes.insert(*row, u32::try_from(nodes.len()).unwrap_or(u32::MAX));
        }
        edge_of = found;
    }
    let mut edges = Vec::new();
    each_edge(ctx, &opened, |edge| {
        if let (Some(from), Some(to)) = (nodes.get(&edge.from), nodes.get(&edge.to)) {
            match edges.len() < EDGES_MAX {
                true => edges.push(Edge { from: *from, to: *to, kind: edge.kind }),
                false => is_cut = true,
            }
        }
    })
    .await?;
    let wanted: BTreeSet<u32> = nodes.keys().copied().collect();
    let mut listed = rows(ctx, &opened, &wanted).await?;
    listed.sort_by_key(|(row, _)| nodes.get(row).copied());
    let nodes = listed.into_iter().map(|(_, row)| row).collect();
    Ok(Neighbours { version, nodes, edges, is_cut })
}
