//! Reads the resources of a deployment in the order of their tree.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use super::hash::{Key, TextHash, hash_of_members, key_of};
use super::model::{Edge, EdgeKind, Flag, Flags, ID_CHARS_MAX, Row, name_in};
use crate::domain::json::{self, Reader, members};
use crate::domain::resource::{Resource, flag, text};
use crate::domain::urn::{ROOT_STACK_TYPE, Urn};

/// The resources of a deployment, without the versions that changed them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scanned {
    /// In the order of the tree.
    pub(super) rows: Vec<ScannedRow>,
    /// By row.
    pub(super) edges: Vec<Edge>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScannedRow {
    pub(super) row: Row,
    pub(super) key: Key,
    pub(super) hash: TextHash,
    /// The position in the text.
    pub(super) place: u32,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

impl Scanned {
    /// The memory that it takes, in bytes.
    pub fn bytes(&self) -> usize {
        let rows: usize = self.rows.iter().map(|row| row.row.bytes() + size_of::<ScannedRow>()).sum();
        rows + self.edges.len() * size_of::<Edge>()
    }

    /// Moves the texts of resources that begin at `from` or later, for a text that changed in front of them.
    pub fn shift(&mut self, from: usize, before: usize, after: usize) {
        for row in self.rows.iter_mut().filter(|row| row.offset >= from as u64) {
            row.offset = row.offset.saturating_sub(before as u64).saturating_add(after as u64);
        }
    }
}

/// A resource as the tree needs it.
struct Node<'a> {
    raw: &'a str,
    offset: usize,
    urn: Cow<'a, str>,
    parent: Cow<'a, str>,
    is_delete: bool,
}

/// Reads an untyped deployment. `None` for a text that is not one.
pub fn scan(text: &[u8]) -> Option<Scanned> {
    let nodes = read_nodes(text).ok()?;
    let known = Known::of(&nodes);
    let tree = Tree::of(&nodes, &known);
    let mut scanned = Scanned { rows: Vec::with_capacity(nodes.len()), edges: Vec::new() };
    let mut row_of = vec![0_u32; nodes.len()];
    for (row, (place, _)) in (0_u32..).zip(&tree.order) {
        *row_of.get_mut(*place as usize)? = row;
    }
    for (place, parent) in &tree.order {
        let node = nodes.get(*place as usize)?;
        let resource = Resource::read(&mut Reader::new(node.raw)).ok()?;
        let from = *row_of.get(*place as usize)?;
        // A client may repeat a reference any number of times.
        let mut edges = BTreeSet::new();
        for (urn, kind) in references(&resource) {
            if let Some(to) = known.find(urn)
                && to != *place
            {
                edges.insert(Edge { from, to: *row_of.get(to as usize)?, kind });
            }
        }
        scanned.edges.extend(edges);
        let parent = parent.and_then(|parent| row_of.get(parent as usize)).copied();
        let depth = parent.and_then(|parent| scanned.rows.get(parent as usize));
        let members = members(node.raw).ok()?;
        let row = Row {
            depth: depth.map_or(0, |parent| parent.row.depth.saturating_add(1)),
            parent,
            parent_urn: parent.map(|_| resource.parent.clone().into_owned()).unwrap_or_default(),
            ..row_of_resource(&resource, &members)
        };
        scanned.rows.push(ScannedRow {
            key: key_of(&row.urn, node.is_delete),
            hash: hash_of_members(&row.urn, &members),
            row,
            place: *place,
            offset: node.offset as u64,
            bytes: node.raw.len() as u64,
        });
    }
    count_below(&mut scanned.rows);
    Some(scanned)
}

fn count_below(rows: &mut [ScannedRow]) {
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

fn row_of_resource(resource: &Resource<'_>, members: &[(json::Key<'_>, &str)]) -> Row {
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
        urn: resource.urn.clone().into_owned(),
        own_type: resource.own_type.clone().into_owned(),
        id: resource.id.chars().take(ID_CHARS_MAX).collect(),
        provider: resource.provider.clone().into_owned(),
        flags: flags.into_iter().fold(Flags::default(), |flags, (flag, is_set)| flags.with(flag, is_set)),
        ..Row::default()
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

fn read_nodes(text: &[u8]) -> json::Result<Vec<Node<'_>>> {
    let mut nodes = Vec::new();
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
