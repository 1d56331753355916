//! The graph of states connected by edges: upstream and downstream states, and their order.
//!
//! An edge points downstream, from producer to consumer. There are no cycles: an edge that would close one is refused. The
//! algorithms here end even if there is a cycle.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::hash::Hash;

/// A direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Along the edges, from producers to consumers.
    Down,
    /// Against the edges.
    Up,
}

/// The graph. Queries cost time proportional to the number of edges.
#[derive(Debug, Clone)]
pub struct Graph<T> {
    nodes: Vec<T>,
    numbers: HashMap<T, usize>,
    down: Vec<Vec<usize>>,
    up: Vec<Vec<usize>>,
}

/// Nodes in dependency order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layers<T> {
    /// Each node is in the first layer after all nodes that point to it. Sorted within a layer.
    pub layers: Vec<Vec<T>>,
    /// Nodes in a cycle or downstream of one. Empty, since edges that would close a cycle are refused.
    pub unordered: Vec<T>,
}

impl<T: Copy + Eq + Hash + Ord> Graph<T> {
    /// The graph of these edges, each from a producer to a consumer. Two states may have any number of edges.
    pub fn of(edges: impl IntoIterator<Item = (T, T)>) -> Self {
        let mut graph = Self { nodes: Vec::new(), numbers: HashMap::new(), down: Vec::new(), up: Vec::new() };
        for (producer, consumer) in edges {
            let (producer, consumer) = (graph.number(producer), graph.number(consumer));
            graph.down[producer].push(consumer);
            graph.up[consumer].push(producer);
        }
        graph
    }

    fn number(&mut self, node: T) -> usize {
        *self.numbers.entry(node).or_insert_with(|| {
            self.nodes.push(node);
            self.down.push(Vec::new());
            self.up.push(Vec::new());
            self.nodes.len() - 1
        })
    }

    fn next(&self, node: usize, direction: Direction) -> &[usize] {
        let lists = match direction {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        };
        lists.get(node).map_or(&[], Vec::as_slice)
    }

    /// All nodes that have an edge.
    pub fn nodes(&self) -> &[T] {
        &self.nodes
    }

    /// A shortest cycle that an edge from `producer` to `consumer` would close, beginning with the producer and without its
    /// repetition at the end. `None` if it closes none.
    pub fn cycle_with(&self, producer: T, consumer: T) -> Option<Vec<T>> {
        if producer == consumer {
            return Some(vec![producer]);
        }
        let (end, start) = (*self.numbers.get(&producer)?, *self.numbers.get(&consumer)?);
        // Maps each reached node to the node that it was first reached from.
        let mut before = vec![None; self.nodes.len()];
        before[start] = Some(start);
        let mut queue = VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            if node == end {
                let mut path = vec![end];
                let mut at = end;
                while let Some(previous) = before[at].filter(|_| at != start) {
                    path.push(previous);
                    at = previous;
                }
                // The path was followed backwards, so it begins where the new edge does.
                path[1..].reverse();
                return Some(path.into_iter().map(|node| self.nodes[node]).collect());
            }
            for &next in self.next(node, Direction::Down) {
                if before[next].is_none() {
                    before[next] = Some(node);
                    queue.push_back(next);
                }
            }
        }
        None
    }

    /// The nodes reached from these, which are included if they have an edge. Sorted.
    pub fn reach(&self, from: impl IntoIterator<Item = T>, direction: Direction) -> Vec<T> {
        let marked = self.mark(from, direction);
        let mut nodes: Vec<T> =
            self.nodes.iter().zip(marked).filter(|(_, marked)| *marked).map(|(node, _)| *node).collect();
        nodes.sort();
        nodes
    }

    fn mark(&self, from: impl IntoIterator<Item = T>, direction: Direction) -> Vec<bool> {
        let mut marked = vec![false; self.nodes.len()];
        let mut stack: Vec<usize> =
            from.into_iter().filter_map(|node| self.numbers.get(&node).copied()).collect();
        while let Some(node) = stack.pop() {
            if !std::mem::replace(&mut marked[node], true) {
                stack.extend(self.next(node, direction).iter().filter(|next| !marked[**next]));
            }
        }
        marked
    }

    /// The layers of all nodes, or of those reached from one node, which is then the first layer. A node without edges is a layer
    /// of its own.
    pub fn layers(&self, from: Option<T>, direction: Direction) -> Layers<T> {
        let within = match from {
            Some(node) if !self.numbers.contains_key(&node) => {
                return Layers { layers: vec![vec![node]], unordered: Vec::new() };
            }
            Some(node) => self.mark([node], direction),
            None => vec![true; self.nodes.len()],
        };
        let inside = |node: &usize| within[*node];
        let mut waits_for = vec![0_usize; self.nodes.len()];
        for node in (0..self.nodes.len()).filter(inside) {
            for &next in self.next(node, direction) {
                waits_for[next] += 1;
            }
        }
        let mut layer: Vec<usize> =
            (0..self.nodes.len()).filter(inside).filter(|node| waits_for[*node] == 0).collect();
        let mut is_placed = vec![false; self.nodes.len()];
        let mut layers = Vec::new();
        while !layer.is_empty() {
            let mut following = Vec::new();
            for &node in &layer {
                is_placed[node] = true;
                for &next in self.next(node, direction) {
                    waits_for[next] -= 1;
                    if waits_for[next] == 0 {
                        following.push(next);
                    }
                }
            }
            layers.push(self.sorted(layer.iter().copied()));
            layer = following;
        }
        let left = (0..self.nodes.len()).filter(inside).filter(|node| !is_placed[*node]);
        Layers { layers, unordered: self.sorted(left) }
    }

    fn sorted(&self, nodes: impl Iterator<Item = usize>) -> Vec<T> {
        let mut nodes: Vec<T> = nodes.map(|node| self.nodes[node]).collect();
        nodes.sort();
        nodes
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const DIAMOND: [(u32, u32); 5] = [(1, 2), (1, 3), (2, 4), (3, 4), (1, 4)];

    #[test]
    fn a_layer_is_behind_everything_that_leads_to_it() {
        let graph = Graph::of(DIAMOND);
        let all = graph.layers(None, Direction::Down);
        assert_eq!(all.layers, [vec![1], vec![2, 3], vec![4]]);
        assert_eq!(graph.layers(None, Direction::Up).layers, [vec![4], vec![2, 3], vec![1]]);
        assert_eq!(graph.layers(Some(2), Direction::Down).layers, [vec![2], vec![4]]);
        assert_eq!(graph.layers(Some(3), Direction::Up).layers, [vec![3], vec![1]]);
        assert_eq!(graph.layers(Some(9), Direction::Up).layers, [vec![9]]);
    }

    #[test]
    fn an_edge_that_closes_a_cycle_returns_the_shortest_one() {
        let graph = Graph::of(DIAMOND);
        assert_eq!(graph.cycle_with(4, 1), Some(vec![4, 1]));
        assert_eq!(graph.cycle_with(2, 1), Some(vec![2, 1]));
        assert_eq!(Graph::of([(1, 2), (2, 3)]).cycle_with(3, 1), Some(vec![3, 1, 2]));
        assert_eq!(graph.cycle_with(7, 7), Some(vec![7]));
        for (producer, consumer) in [(2, 3), (1, 4), (4, 9), (9, 1)] {
            assert_eq!(graph.cycle_with(producer, consumer), None, "{producer} to {consumer}");
        }
    }

    #[test]
    fn ten_thousand_edges_are_ordered_and_judged_in_no_time() {
        const COUNT: u32 = 10_000;
        let chain = Graph::of((0..COUNT).map(|node| (node, node + 1)));
        assert_eq!(chain.layers(None, Direction::Down).layers.len(), COUNT as usize + 1);
        assert_eq!(chain.cycle_with(COUNT, 0).map(|cycle| cycle.len()), Some(COUNT as usize + 1));
        let star = Graph::of((0..COUNT).map(|node| (COUNT, node)));
        assert_eq!(star.layers(Some(COUNT), Direction::Down).layers[1].len(), COUNT as usize);
    }

    fn edges() -> impl Strategy<Value = Vec<(u8, u8)>> {
        prop::collection::vec((0..12_u8, 0..12_u8), 0..40)
    }

    /// Adds the edges that close no cycle, as a server does.
    fn without_cycles(edges: &[(u8, u8)]) -> Vec<(u8, u8)> {
        let mut taken: Vec<(u8, u8)> = Vec::new();
        for &(producer, consumer) in edges {
            if Graph::of(taken.iter().copied()).cycle_with(producer, consumer).is_none() {
                taken.push((producer, consumer));
            }
        }
        taken
    }

    /// Whether there is a path, by a method too slow and simple to be wrong: as many rounds as nodes.
    fn leads(edges: &[(u8, u8)], from: u8, to: u8) -> bool {
        let mut reached = BTreeSet::from([from]);
        for _ in 0..12 {
            for (producer, consumer) in edges {
                if reached.contains(producer) {
                    reached.insert(*consumer);
                }
            }
        }
        reached.contains(&to)
    }

    proptest! {
        #[test]
        fn an_edge_is_refused_exactly_if_it_closes_a_cycle(edges in edges(), new in (0..12_u8, 0..12_u8)) {
            let taken = without_cycles(&edges);
            let cycle = Graph::of(taken.iter().copied()).cycle_with(new.0, new.1);
            prop_assert_eq!(cycle.is_some(), leads(&taken, new.1, new.0));
            if let Some(cycle) = cycle {
                let mut with: Vec<_> = taken.clone();
                with.push(new);
                prop_assert_eq!(cycle[0], new.0);
                for (at, node) in cycle.iter().enumerate() {
                    let next = cycle[(at + 1) % cycle.len()];
                    prop_assert!(with.contains(&(*node, next)), "{} to {} is no edge", node, next);
                }
            }
        }

        #[test]
        fn outputs_can_be_ordered_in_both_directions(edges in edges()) {
            let taken = without_cycles(&edges);
            let graph = Graph::of(taken.iter().copied());
            for direction in [Direction::Down, Direction::Up] {
                let Layers { layers, unordered } = graph.layers(None, direction);
                prop_assert_eq!(unordered, Vec::<u8>::new());
                let at = |node: u8| layers.iter().position(|layer| layer.contains(&node)).unwrap();
                prop_assert_eq!(layers.iter().map(Vec::len).sum::<usize>(), graph.nodes().len());
                for (producer, consumer) in &taken {
                    let (first, then) = match direction {
                        Direction::Down => (*producer, *consumer),
                        Direction::Up => (*consumer, *producer),
                    };
                    prop_assert!(at(first) < at(then));
                }
                // In the earliest possible layer: a node of the layer before points to each.
                for (at, layer) in layers.iter().enumerate().skip(1) {
                    for node in layer {
                        let led = layers[at - 1].iter().any(|before| match direction {
                            Direction::Down => taken.contains(&(*before, *node)),
                            Direction::Up => taken.contains(&(*node, *before)),
                        });
                        prop_assert!(led, "{} is in layer {} for nothing", node, at);
                    }
                }
            }
        }

        #[test]
        fn the_reached_nodes_are_those_with_a_path(edges in edges(), from in 0..12_u8) {
            let graph = Graph::of(edges.iter().copied());
            let expected = |direction| {
                let is_reached = |node: &u8| match direction {
                    Direction::Down => leads(&edges, from, *node),
                    Direction::Up => leads(&edges, *node, from),
                };
                let mut nodes: Vec<u8> = graph.nodes().iter().copied().filter(is_reached).collect();
                nodes.sort();
                nodes
            };
            for direction in [Direction::Down, Direction::Up] {
                prop_assert_eq!(graph.reach([from], direction), expected(direction));
            }
        }

        #[test]
        fn a_cycle_that_should_not_be_there_ends_nothing_in_a_loop(edges in edges()) {
            let graph = Graph::of(edges.iter().copied());
            let Layers { layers, unordered } = graph.layers(None, Direction::Down);
            prop_assert_eq!(layers.iter().map(Vec::len).sum::<usize>() + unordered.len(), graph.nodes().len());
        }
    }
}
