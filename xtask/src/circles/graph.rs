//! Circles in any graph: its strongly connected components of more than one node (Tarjan). Knows nothing of files.

use std::collections::BTreeMap;

/// Sets of nodes that can all be reached from one another, each in order.
pub(super) fn circles<N: Copy + Ord>(edges: &BTreeMap<N, Vec<N>>) -> Vec<Vec<N>> {
    let mut search = Search {
        edges,
        seen: BTreeMap::new(),
        open: Vec::new(),
        circles: Vec::new(),
    };
    for node in edges.keys() {
        if !search.seen.contains_key(node) {
            search.visit(*node);
        }
    }
    search.circles.sort();
    search.circles
}

struct Search<'a, N> {
    edges: &'a BTreeMap<N, Vec<N>>,
    /// When a node was first come to, counted from 0.
    seen: BTreeMap<N, usize>,
    /// Nodes whose component is not complete, in the order in which they were come to.
    open: Vec<N>,
    circles: Vec<Vec<N>>,
}

impl<N: Copy + Ord> Search<'_, N> {
    /// Returns the earliest open node that can be reached from this one.
    fn visit(&mut self, node: N) -> usize {
        let place = self.seen.len();
        self.seen.insert(node, place);
        self.open.push(node);
        let mut earliest = place;
        for next in self.edges.get(&node).into_iter().flatten() {
            if !self.seen.contains_key(next) {
                earliest = earliest.min(self.visit(*next));
            } else if self.open.contains(next) {
                earliest = earliest.min(self.seen[next]);
            }
        }
        if earliest == place {
            let from = self.open.iter().position(|open| *open == node);
            let mut component = self.open.split_off(from.expect("it was opened above"));
            if component.len() > 1 {
                component.sort();
                self.circles.push(component);
            }
        }
        earliest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles_of(edges: &[(char, char)]) -> Vec<String> {
        let mut graph: BTreeMap<char, Vec<char>> = BTreeMap::new();
        for (from, to) in edges {
            graph.entry(*from).or_default().push(*to);
        }
        circles(&graph).into_iter().map(String::from_iter).collect()
    }

    #[test]
    fn a_tree_and_shared_nodes_are_no_circles() {
        assert!(circles_of(&[('a', 'b'), ('a', 'c'), ('b', 'd'), ('c', 'd'), ('d', 'd')]).is_empty());
    }

    #[test]
    fn circles_that_share_a_node_are_one_and_others_are_apart() {
        let edges = [
            ('a', 'b'),
            ('b', 'c'),
            ('c', 'a'),
            ('c', 'd'),
            ('d', 'c'),
            ('d', 'e'),
            ('e', 'f'),
            ('f', 'e'),
            ('e', 'g'),
        ];
        assert_eq!(circles_of(&edges), ["abcd", "ef"]);
    }
}
