//! Reads the resources of a deployment in the order of their tree.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use super::codec::put_number;
use super::hash::{Key, TextHash, hash_of_members, key_of};
use super::model::{EdgeKind, Flag, Flags, ID_CHARS_MAX, Row, name_in};
use super::writer::{Writer, Written};
use crate::domain::json::{self, Reader, members};
use crate::domain::resource::{Resource, flag, text};
use crate::domain::urn::{ROOT_STACK_TYPE, Urn};

/// Rows of a block of edges, at most.
const EDGE_ROWS_PER_BLOCK: usize = 1024;

/// The resources of a deployment, without the versions that changed them. Its texts are those of the deployment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scanned<'a> {
    /// In the order of the tree.
    pub(super) rows: Vec<ScannedRow<'a>>,
    /// Of each row, in the same order.
    pub(super) edges: Written,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScannedRow<'a> {
    pub(super) row: Row<Cow<'a, str>>,
    pub(super) key: Key,
    pub(super) hash: TextHash,
    /// The position in the text.
    pub(super) place: u32,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

/// A resource as the tree needs it.
struct Node<'a> {
    raw: &'a str,
    offset: usize,
    urn: Cow<'a, str>,
    parent: Cow<'a, str>,
    is_delete: bool,
}

/// Reads an untyped deployment with this number of resources. `None` for a text that is not one.
pub fn scan(text: &[u8], resources: usize) -> Option<Scanned<'_>> {
    let nodes = read_nodes(text, resources).ok()?;
    let known = Known::of(&nodes);
    let tree = Tree::of(&nodes, &known);
    let mut row_of = vec![0_u32; nodes.len()];
    for (row, (place, _)) in (0_u32..).zip(&tree.order) {
        *row_of.get_mut(*place as usize)? = row;
    }
    let mut rows: Vec<ScannedRow<'_>> = Vec::with_capacity(nodes.len());
    let mut edges = Writer::default();
    for (place, parent) in &tree.order {
        let node = nodes.get(*place as usize)?;
        let resource = Resource::read(&mut Reader::new(node.raw)).ok()?;
        // A client may repeat a reference any number of times.
        let mut references_to = BTreeSet::new();
        for (urn, kind) in references(&resource) {
            if let Some(to) = known.find(urn)
                && to != *place
            {
                references_to.insert((*row_of.get(to as usize)?, kind));
            }
        }
        edges.add(EDGE_ROWS_PER_BLOCK, 0, |out| write_edges(out, &references_to));
        let parent = parent.and_then(|parent| row_of.get(parent as usize)).copied();
        let depth = parent.and_then(|parent| rows.get(parent as usize));
        let depth = depth.map_or(0, |parent| parent.row.depth.saturating_add(1));
        let members = members(node.raw).ok()?;
        let row = Row { depth, parent, ..row_of_resource(resource, parent.is_some(), &members) };
        rows.push(ScannedRow {
            key: key_of(&row.urn, node.is_delete),
            hash: hash_of_members(&row.urn, &members),
            row,
            place: *place,
            offset: node.offset as u64,
            bytes: node.raw.len() as u64,
        });
    }
    count_below(&mut rows);
    Some(Scanned { rows, edges: edges.end() })
}

/// Writes the edges of a row: the rows that it refers to, and how.
fn write_edges(out: &mut Vec<u8>, edges: &BTreeSet<(u32, EdgeKind)>) {
    put_number(out, edges.len() as u64);
    for (to, kind) in edges {
        out.push(*kind as u8);
        put_number(out, u64::from(*to));
    }
}

fn count_below(rows: &mut [ScannedRow<'_>]) {
    for index in (0..rows.len()).rev() {
        let Some((parent, below)) = rows.get(index).and_then(|row| Some((row.row.parent?, row.row.below)))
        else {
            continue;
        };
        if let Some(parent) = rows.get_mut(parent as usize) {
            parent.row.children += 1;
            parent.row.below += below + 1;
        }
    }
}

fn row_of_resource<'a>(
    resource: Resource<'a>,
    has_parent: bool,
    members: &[(json::Key<'_>, &str)],
) -> Row<Cow<'a, str>> {
    // Members that a `Resource` does not have. One of another kind than the CLI writes counts as absent.
    let is_true = |name: &str| {
        let last = members.iter().rfind(|(key, _)| key.name == name);
        last.is_some_and(|(_, value)| value.trim_ascii_end() == "true")
    };
    let flags = [
        (Flag::Custom, resource.custom),
        (Flag::Delete, resource.delete),
        (Flag::External, is_true("external")),
        (Flag::Protect, is_true("protect")),
        (Flag::PendingReplacement, resource.pending_replacement),
    ];
    Row {
        urn: resource.urn,
        own_type: resource.own_type,
        id: cut(resource.id),
        provider: resource.provider,
        parent_urn: if has_parent { resource.parent } else { Cow::default() },
        flags: flags.into_iter().fold(Flags::default(), |flags, (flag, is_set)| flags.with(flag, is_set)),
        ..Row::default()
    }
}

/// The part of an ID that a row holds.
fn cut(id: Cow<'_, str>) -> Cow<'_, str> {
    let end = id.char_indices().nth(ID_CHARS_MAX).map(|(end, _)| end);
    match (id, end) {
        (id, None) => id,
        (Cow::Borrowed(id), Some(end)) => Cow::Borrowed(id.get(..end).unwrap_or(id)),
        (Cow::Owned(mut id), Some(end)) => {
            id.truncate(end);
            Cow::Owned(id)
        }
    }
}

/// The URNs that a resource refers to, apart from its parent.
fn references<'r, 'a>(resource: &'r Resource<'a>) -> impl Iterator<Item = (&'r str, EdgeKind)> {
    let one = |urn: &'r str, kind| (!urn.is_empty()).then_some((urn, kind)).into_iter();
    let all = |urns: &'r [Cow<'a, str>], kind| urns.iter().map(move |urn| (urn.as_ref(), kind));
    let provider = resource.provider.rsplit_once("::").map_or("", |(urn, _)| urn);
    all(&resource.dependencies, EdgeKind::Dependency)
        .chain(resource.property_dependencies.iter().flat_map(move |(_, urns)| all(urns, EdgeKind::Property)))
        .chain(one(provider, EdgeKind::Provider))
        .chain(one(&resource.deleted_with, EdgeKind::DeletedWith))
        .chain(all(&resource.replace_with, EdgeKind::ReplaceWith))
        .chain(one(&resource.view_of, EdgeKind::ViewOf))
}

/// The shortest resource with the comma after it, in bytes: `{},`.
const RESOURCE_BYTES_MIN: usize = 3;

fn read_nodes(text: &[u8], resources: usize) -> json::Result<Vec<Node<'_>>> {
    // Not grown: a list that is copied as it grows takes three times its memory.
    let mut nodes = Vec::with_capacity(resources.min(text.len() / RESOURCE_BYTES_MIN));
    Reader::from_bytes(text)?.object(|reader, key| match key.name.as_ref() {
        "deployment" => {
            // A member that comes twice counts as it does elsewhere: the last one.
            nodes.clear();
            reader
                .optional(|reader| {
                    reader.object(|reader, key| {
                        if key.name != "resources" {
                            return reader.raw().map(drop);
                        }
                        nodes.clear();
                        reader
                            .optional(|reader| {
                                reader.array(|reader| {
                                    nodes.push(read_node(reader)?);
                                    Ok(())
                                })
                            })
                            .map(drop)
                    })
                })
                .map(drop)
        }
        _ => reader.raw().map(drop),
    })?;
    Ok(nodes)
}

fn read_node<'a>(reader: &mut Reader<'a>) -> json::Result<Node<'a>> {
    let offset = reader.start();
    let (mut urn, mut parent, mut is_delete) = (Cow::default(), Cow::default(), false);
    reader.object(|reader, key| {
        match key.name.as_ref() {
            "urn" => urn = text(reader)?,
            "parent" => parent = text(reader)?,
            "delete" => is_delete = flag(reader)?,
            _ => drop(reader.raw()?),
        }
        Ok(())
    })?;
    Ok(Node { raw: reader.text_since(offset), offset, urn, parent, is_delete })
}

/// The resource that a reference to a URN means: the first one that stays, or else the last one that waits for its
/// deletion.
struct Known<'a>(HashMap<&'a str, (Option<u32>, Option<u32>)>);

impl<'a> Known<'a> {
    fn of(nodes: &'a [Node<'_>]) -> Self {
        let mut known: HashMap<&str, (Option<u32>, Option<u32>)> = HashMap::with_capacity(nodes.len());
        for (place, node) in (0_u32..).zip(nodes) {
            let (stays, goes) = known.entry(node.urn.as_ref()).or_default();
            match node.is_delete {
                true => *goes = Some(place),
                false => *stays = stays.or(Some(place)),
            }
        }
        Self(known)
    }

    fn find(&self, urn: &str) -> Option<u32> {
        let (stays, goes) = self.0.get(urn)?;
        stays.or(*goes)
    }
}

/// The places of all resources, each with the place of its parent.
struct Tree {
    order: Vec<(u32, Option<u32>)>,
}

impl Tree {
    fn of(nodes: &[Node<'_>], known: &Known<'_>) -> Self {
        let parent_of = |place: u32, node: &Node<'_>| {
            (!node.parent.is_empty()).then(|| known.find(&node.parent)).flatten().filter(|it| *it != place)
        };
        // Children of one parent are next to each other, in their order.
        let mut by_parent: Vec<(Option<u32>, u32)> =
            (0_u32..).zip(nodes).map(|(place, node)| (parent_of(place, node), place)).collect();
        // The stack itself comes first, the others by name.
        let names: Vec<(bool, &str, &str, bool)> = nodes
            .iter()
            .map(|node| {
                let urn = node.urn.as_ref();
                let is_stack = Urn::parse(urn).is_some_and(|urn| urn.qualified_type == ROOT_STACK_TYPE);
                (!is_stack, name_in(urn), urn, node.is_delete)
            })
            .collect();
        let name = |place: u32| names.get(place as usize);
        by_parent.sort_unstable_by(|(parent, place), (other_parent, other)| {
            (parent, name(*place), place).cmp(&(other_parent, name(*other), other))
        });
        let children_of = |parent: Option<u32>| {
            let start = by_parent.partition_point(|(of, _)| *of < parent);
            let end = by_parent.partition_point(|(of, _)| *of <= parent);
            by_parent.get(start..end).unwrap_or_default()
        };
        let mut tree = Self { order: Vec::with_capacity(nodes.len()) };
        let mut is_seen = vec![false; nodes.len()];
        let mut waiting: Vec<(u32, Option<u32>)> = Vec::new();
        let mut descend = |roots: &mut dyn Iterator<Item = u32>| {
            for root in roots {
                waiting.push((root, None));
                while let Some((place, parent)) = waiting.pop() {
                    match is_seen.get_mut(place as usize) {
                        Some(is_seen) if !*is_seen => *is_seen = true,
                        _ => continue,
                    }
                    tree.order.push((place, parent));
                    waiting.extend(
                        children_of(Some(place)).iter().rev().map(|(_, child)| (*child, Some(place))),
                    );
                }
            }
        };
        descend(&mut children_of(None).iter().map(|(_, place)| *place));
        // What is left has a parent that is its own descendant: the deployment breaks a rule.
        descend(&mut (0..u32::try_from(nodes.len()).unwrap_or(u32::MAX)));
        tree
    }
}
