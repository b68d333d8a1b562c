//! A queue of entries, oldest to newest: a doubly linked list through their nodes, with its weight.
//!
//! Works under the shard's lock; knows nothing of keys and policies.

use super::node::{NONE, Node};

/// Where a policy finds the nodes of its entries.
pub(super) trait Nodes {
    fn node(&self, number: u32) -> Node<'_>;
}

impl<K, T> Nodes for super::slab::Slab<K, T> {
    #[inline]
    fn node(&self, number: u32) -> Node<'_> {
        Self::node(self, number)
    }
}

pub(super) struct Queue {
    /// What the nodes of this queue's entries say of their place.
    pub(super) place: u8,
    pub(super) oldest: u32,
    newest: u32,
    pub(super) len: usize,
    pub(super) weight: u64,
}

impl Queue {
    pub(super) const fn new(place: u8) -> Self {
        Self {
            place,
            oldest: NONE,
            newest: NONE,
            len: 0,
            weight: 0,
        }
    }

    /// The entry becomes the newest.
    #[inline]
    pub(super) fn push(&mut self, nodes: &impl Nodes, number: u32) {
        let node = nodes.node(number);
        node.set_place(self.place);
        node.set_previous(self.newest);
        node.set_next(NONE);
        match self.newest {
            NONE => self.oldest = number,
            newest => nodes.node(newest).set_next(number),
        }
        self.newest = number;
        self.len += 1;
        self.weight += node.weight();
    }

    #[inline]
    pub(super) fn unlink(&mut self, nodes: &impl Nodes, number: u32) {
        let node = nodes.node(number);
        debug_assert_eq!(node.place(), self.place, "linked here");
        match node.previous() {
            NONE => self.oldest = node.next(),
            previous => nodes.node(previous).set_next(node.next()),
        }
        match node.next() {
            NONE => self.newest = node.previous(),
            next => nodes.node(next).set_previous(node.previous()),
        }
        self.len -= 1;
        self.weight -= node.weight();
    }

    #[cfg(test)]
    pub(super) fn validate(&self, nodes: &impl Nodes) {
        let (mut number, mut older, mut len, mut weight) = (self.oldest, NONE, 0, 0);
        while number != NONE {
            let node = nodes.node(number);
            assert_eq!(node.place(), self.place, "an entry of a queue says so");
            assert_eq!(node.previous(), older, "links agree");
            len += 1;
            weight += node.weight();
            (older, number) = (number, node.next());
        }
        assert_eq!(self.newest, older, "the last one is the newest");
        assert_eq!(
            (len, weight),
            (self.len, self.weight),
            "a queue knows its length and weight"
        );
    }
}
