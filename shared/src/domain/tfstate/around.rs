//! The resource instances around one of a state, some dependencies far.

use std::collections::{BTreeMap, BTreeSet};

use super::super::neighbours::{EDGES_MAX, HOPS_MAX, NODES_MAX};
use super::index::Whole;
use super::instance::{ADDRESS_BYTES_MAX, Found, unkeyed};
use super::resources::each;

/// A resource instance near another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Near {
    /// The address, as clients print it.
    pub address: String,
    /// The module instance that has it; `None` for the root module.
    pub module: Option<String>,
    /// `managed` or `data`.
    pub mode: String,
    pub kind: String,
    pub name: String,
    /// The key of `count` or `for_each`, as in the address.
    pub key: Option<String>,
}

/// The resource instances around one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Around {
    /// The one in the middle comes first.
    pub nodes: Vec<Near>,
    /// Places of nodes: the first depends on the second.
    pub edges: Vec<(usize, usize)>,
    /// Whether there are more nodes or edges.
    pub is_cut: bool,
}

/// What is kept of an instance while others are sought.
struct Known {
    near: Near,
    /// The address of its resource, without keys: dependencies name resources.
    of: String,
    /// The resources that it depends on.
    needs: BTreeSet<String>,
}

impl Known {
    fn of(whole: &Whole<'_>) -> Self {
        let near = Near {
            address: whole.address.clone(),
            module: (!whole.module.is_empty()).then(|| whole.module.to_owned()),
            mode: whole.mode.to_owned(),
            kind: whole.kind.to_owned(),
            name: whole.name.to_owned(),
            key: whole.key.map(str::to_owned),
        };
        let mut needs = BTreeSet::new();
        whole.own().each_need(|needed| {
            needs.insert(needed.to_owned());
        });
        Self { near, of: unkeyed(whole.of), needs }
    }
}

/// The resource instances that are at most `hops` dependencies away from the one with this address. Reads the text once
/// for each step and once more, and keeps the instances that it returns.
///
/// # Errors
/// [`InvalidState`](super::InvalidState).
pub fn around(text: &[u8], address: &str, hops: u64) -> Found<Around> {
    let mut middle = None;
    let is_known = each(text, &mut |whole: Whole<'_>| {
        if whole.address == address {
            middle = Some(Known::of(&whole));
        }
    })?;
    if !is_known {
        return Ok(None);
    }
    let Some(middle) = middle else { return Ok(Some(None)) };
    let mut known = vec![middle];
    let mut addresses = BTreeSet::from([address.to_owned()]);
    let (mut outermost, mut is_cut) = (0, false);
    for _ in 0..hops.clamp(1, HOPS_MAX) {
        let edge = known.get(outermost..).unwrap_or_default();
        let own: BTreeSet<&str> = edge.iter().map(|one| one.of.as_str()).collect();
        let needed: BTreeSet<&str> =
            edge.iter().flat_map(|one| one.needs.iter().map(String::as_str)).collect();
        let mut found: BTreeMap<String, Known> = BTreeMap::new();
        each(text, &mut |whole: Whole<'_>| {
            if addresses.contains(&whole.address) || found.contains_key(&whole.address) {
                return;
            }
            let is_near = needed.contains(unkeyed(whole.of).as_str())
                || whole.own().needs_any(|needed| own.contains(needed));
            if !is_near {
                return;
            }
            if whole.address.len() > ADDRESS_BYTES_MAX || addresses.len() + found.len() >= NODES_MAX {
                is_cut = true;
                return;
            }
            found.insert(whole.address.clone(), Known::of(&whole));
        })?;
        outermost = known.len();
        addresses.extend(found.keys().cloned());
        known.extend(found.into_values());
    }
    let mut of_resource: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, one) in known.iter().enumerate() {
        of_resource.entry(&one.of).or_default().push(place);
    }
    let mut edges = Vec::new();
    for (from, one) in known.iter().enumerate() {
        let needed = one.needs.iter().filter_map(|needed| of_resource.get(needed.as_str())).flatten();
        for to in needed.filter(|to| **to != from) {
            match edges.len() < EDGES_MAX {
                true => edges.push((from, *to)),
                false => is_cut = true,
            }
        }
    }
    let nodes = known.into_iter().map(|one| one.near).collect();
    Ok(Some(Some(Around { nodes, edges, is_cut })))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATE: &str = r#"{"version":4,"serial":1,"resources":[
        {"mode":"managed","type":"t","name":"base","instances":[{}]},
        {"module":"module.m[\"a]\"]","mode":"managed","type":"t","name":"mid","instances":[
            {"index_key":0,"dependencies":["t.base","data.t.gone"]},{"index_key":1,"dependencies":["t.base"]}]},
        {"mode":"managed","type":"t","name":"top","instances":[{"dependencies":["module.m.t.mid","t.base"]}]},
        {"mode":"managed","type":"t","name":"apart","instances":[{}]}]}"#;

    const MID: [&str; 2] = ["module.m[\"a]\"].t.mid[0]", "module.m[\"a]\"].t.mid[1]"];

    /// The nodes in their order, and `from -> to` of each edge.
    fn drawn(text: &str, address: &str, hops: u64) -> (Vec<String>, Vec<String>) {
        let found = around(text.as_bytes(), address, hops).unwrap().unwrap().unwrap();
        let Around { nodes, edges, is_cut } = found;
        assert!(!is_cut);
        let name = |place: usize| nodes[place].address.clone();
        let edges = edges.iter().map(|(from, to)| format!("{} -> {}", name(*from), name(*to))).collect();
        (nodes.iter().map(|near| near.address.clone()).collect(), edges)
    }

    #[test]
    fn each_step_adds_what_it_needs_and_what_needs_it() {
        let [zero, one] = MID;
        let (nodes, edges) = drawn(STATE, zero, 1);
        assert_eq!(nodes, [zero, "t.base", "t.top"]);
        let first = [format!("{zero} -> t.base"), format!("t.top -> {zero}"), "t.top -> t.base".to_owned()];
        assert_eq!(edges, first);
        // The other instance is two steps away, and nothing is further.
        for hops in [2, 3, 9] {
            let (nodes, edges) = drawn(STATE, zero, hops);
            assert_eq!(nodes, [zero, "t.base", "t.top", one]);
            assert_eq!(edges.len(), 5, "{edges:?}");
        }
        assert_eq!(drawn(STATE, zero, 0), drawn(STATE, zero, 1));
        assert_eq!(drawn(STATE, "t.apart", 3), (vec!["t.apart".to_owned()], Vec::new()));
        assert_eq!(around(STATE.as_bytes(), "t.none", 1).unwrap(), Some(None));
        let encrypted = br#"{"serial":1,"encryption_version":"v0","encrypted_data":""}"#;
        assert_eq!(around(encrypted, "t.base", 1).unwrap(), None);
    }

    #[test]
    fn many_around_one_are_cut_and_it_says_so() {
        let many: Vec<_> = (0..NODES_MAX + 7)
            .map(|n| format!(r#"{{"type":"t","name":"n{n}","instances":[{{"dependencies":["t.base"]}}]}}"#))
            .collect();
        let text = format!(
            r#"{{"serial":1,"resources":[{},{{"type":"t","name":"base","instances":[{{}}]}}]}}"#,
            many.join(",")
        );
        let found = around(text.as_bytes(), "t.base", 1).unwrap().unwrap().unwrap();
        assert_eq!((found.nodes.len(), found.edges.len(), found.is_cut), (NODES_MAX, NODES_MAX - 1, true));
        assert_eq!(found.nodes[0].address, "t.base");
        // Few may have many dependencies of each other.
        let all: Vec<_> = (0..90).map(|n| format!("\"t.n{n}\"")).collect();
        let each = |n: u64| {
            let needs = all.join(",");
            format!(r#"{{"type":"t","name":"n{n}","instances":[{{"dependencies":[{needs}]}}]}}"#)
        };
        let all: Vec<_> = (0..90).map(each).collect();
        let text = format!(r#"{{"serial":1,"resources":[{}]}}"#, all.join(","));
        let found = around(text.as_bytes(), "t.n0", 1).unwrap().unwrap().unwrap();
        assert_eq!((found.nodes.len(), found.edges.len(), found.is_cut), (90, EDGES_MAX, true));
        let long = format!("m{}", "x".repeat(ADDRESS_BYTES_MAX));
        let text = format!(
            r#"{{"serial":1,"resources":[{{"type":"t","name":"base","instances":[{{}}]}},
                {{"type":"t","name":"{long}","instances":[{{"dependencies":["t.base"]}}]}}]}}"#
        );
        let found = around(text.as_bytes(), "t.base", 1).unwrap().unwrap().unwrap();
        assert_eq!((found.nodes.len(), found.is_cut), (1, true));
    }
}
