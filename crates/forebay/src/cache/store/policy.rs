//! Which entry has to go: S3-FIFO (Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023).
//!
//! A new entry enters a small queue of about a tenth of the weight. At its end, one that was used meanwhile moves to the main
//! queue; the others go, and a fingerprint of their keys stays behind in the ghost. A key whose fingerprint is there enters the
//! main queue at once. At the main queue's end, an entry that was used goes round again, one use less.
//!
//! Works under the shard's lock; knows nothing of keys, tables and readers.

use super::node::{NONE, Node, WAITING};

/// A place: an entry of the small queue.
const SMALL: u8 = WAITING + 1;
/// A place: an entry of the main queue.
const MAIN: u8 = WAITING + 2;
/// Uses are counted up to this.
pub(super) const USES_MAX: u8 = 3;
/// The small queue's share of the weight is one in so many.
const SMALL_ONE_IN: u64 = 10;
/// So many entries in a row may go round in the main queue before one goes whatever its uses: the bound of one eviction's work.
const ROUNDS_MAX: usize = 128;

/// Where the policy finds the nodes of its entries.
pub(super) trait Nodes {
    fn node(&self, number: u32) -> &Node;
}

impl<K, T> Nodes for super::slab::Slab<K, T> {
    fn node(&self, number: u32) -> &Node {
        Self::node(self, number)
    }
}

pub(super) struct Policy {
    small: Queue,
    main: Queue,
    ghost: Ghost,
}

/// A doubly linked list: entries come in at the front, `previous` leads to younger ones.
struct Queue {
    place: u8,
    front: u32,
    back: u32,
    len: usize,
    weight: u64,
}

impl Queue {
    const fn new(place: u8) -> Self {
        Self {
            place,
            front: NONE,
            back: NONE,
            len: 0,
            weight: 0,
        }
    }

    fn push(&mut self, nodes: &impl Nodes, number: u32) {
        let node = nodes.node(number);
        node.set_place(self.place);
        node.set_previous(NONE);
        node.set_next(self.front);
        match self.front {
            NONE => self.back = number,
            front => nodes.node(front).set_previous(number),
        }
        self.front = number;
        self.len += 1;
        self.weight += node.weight();
    }

    fn unlink(&mut self, nodes: &impl Nodes, number: u32) {
        let node = nodes.node(number);
        debug_assert_eq!(node.place(), self.place, "linked here");
        match node.previous() {
            NONE => self.front = node.next(),
            previous => nodes.node(previous).set_next(node.next()),
        }
        match node.next() {
            NONE => self.back = node.previous(),
            next => nodes.node(next).set_previous(node.previous()),
        }
        self.len -= 1;
        self.weight -= node.weight();
    }

    fn validate(&self, nodes: &impl Nodes) {
        let (mut number, mut younger, mut len, mut weight) = (self.front, NONE, 0, 0);
        while number != NONE {
            let node = nodes.node(number);
            assert_eq!(node.place(), self.place, "an entry of a queue says so");
            assert_eq!(node.previous(), younger, "links agree");
            len += 1;
            weight += node.weight();
            (younger, number) = (number, node.next());
        }
        assert_eq!(self.back, younger, "the last one is the back");
        assert_eq!(
            (len, weight),
            (self.len, self.weight),
            "a queue knows its length and weight"
        );
    }
}

impl Policy {
    pub(super) fn new() -> Self {
        Self {
            small: Queue::new(SMALL),
            main: Queue::new(MAIN),
            ghost: Ghost::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.small.len + self.main.len
    }

    pub(super) fn weight(&self) -> u64 {
        self.small.weight + self.main.weight
    }

    /// A new entry, whose key was not there.
    pub(super) fn admit(&mut self, nodes: &impl Nodes, number: u32) {
        if self.ghost.take(nodes.node(number).tag()) {
            self.main.push(nodes, number);
        } else {
            self.small.push(nodes, number);
        }
    }

    /// The same key's new entry: its use goes on.
    pub(super) fn replace(&mut self, nodes: &impl Nodes, old: u32, new: u32) {
        let queue = self.queue_of(nodes, old);
        queue.unlink(nodes, old);
        queue.push(nodes, new);
        nodes.node(new).set_uses(nodes.node(old).uses());
    }

    /// An entry that goes for another reason.
    pub(super) fn remove(&mut self, nodes: &impl Nodes, number: u32) {
        self.queue_of(nodes, number).unlink(nodes, number);
    }

    fn queue_of(&mut self, nodes: &impl Nodes, number: u32) -> &mut Queue {
        if nodes.node(number).place() == MAIN {
            &mut self.main
        } else {
            &mut self.small
        }
    }

    /// Picks the entry that has to go and forgets it; never `spared`, whose key is being written. None: there is no other.
    pub(super) fn evict(&mut self, nodes: &impl Nodes, spared: Option<u32>) -> Option<u32> {
        if self.len() <= usize::from(spared.is_some()) {
            return None;
        }
        let mut rounds = 0;
        loop {
            let from_small = self.small.len > 0
                && (self.main.len == 0 || self.small.weight.saturating_mul(SMALL_ONE_IN) > self.weight());
            let number = if from_small { self.small.back } else { self.main.back };
            let node = nodes.node(number);
            if spared == Some(number) {
                // Goes round; when it is alone in its queue, the other queue's turn comes.
                if from_small {
                    self.small.unlink(nodes, number);
                } else {
                    self.main.unlink(nodes, number);
                }
                self.main.push(nodes, number);
                if !from_small && self.main.len == 1 {
                    let number = self.small.back;
                    self.small.unlink(nodes, number);
                    return Some(number);
                }
            } else if from_small {
                self.small.unlink(nodes, number);
                if node.uses() > 1 {
                    node.set_uses(0);
                    self.main.push(nodes, number);
                } else {
                    self.ghost.remember(node.tag(), self.main.len);
                    return Some(number);
                }
            } else {
                self.main.unlink(nodes, number);
                let uses = node.uses();
                if uses == 0 || rounds >= ROUNDS_MAX {
                    return Some(number);
                }
                node.set_uses(uses - 1);
                self.main.push(nodes, number);
                rounds += 1;
            }
        }
    }

    pub(super) fn validate(&self, nodes: &impl Nodes) {
        self.small.validate(nodes);
        self.main.validate(nodes);
    }
}

/// Fingerprints of keys that went, the oldest forgotten first: a table of short queues.
struct Ghost {
    /// Queues of `WAYS`, the youngest first; 0: none.
    fingerprints: Vec<[u16; WAYS]>,
}

const WAYS: usize = 8;

impl Ghost {
    const fn new() -> Self {
        Self {
            fingerprints: Vec::new(),
        }
    }

    fn place_of(&self, tag: u32) -> (usize, u16) {
        let queue = (u64::from(tag) * self.fingerprints.len() as u64) >> 32;
        (queue as usize, (tag as u16).max(1))
    }

    /// Grows with the main queue; what it knew is forgotten then.
    fn remember(&mut self, tag: u32, main: usize) {
        let queues = main / WAYS + 1;
        if self.fingerprints.len() < queues {
            self.fingerprints = vec![[0; WAYS]; queues + queues / 4];
        }
        let (queue, fingerprint) = self.place_of(tag);
        let queue = &mut self.fingerprints[queue];
        queue.rotate_right(1);
        queue[0] = fingerprint;
    }

    fn take(&mut self, tag: u32) -> bool {
        if self.fingerprints.is_empty() {
            return false;
        }
        let (queue, fingerprint) = self.place_of(tag);
        let queue = &mut self.fingerprints[queue];
        match queue.iter().position(|&known| known == fingerprint) {
            Some(position) => {
                queue.copy_within(position + 1.., position);
                queue[WAYS - 1] = 0;
                true
            }
            None => false,
        }
    }
}
