//! What was taken out of the table and may still be seen by readers: entries, replaced tables, and all that a `clear` left.
//!
//! Two batches: one is watched until every reader that could see it has left, the other gathers meanwhile. Works under the
//! shard's lock; knows how long to wait, not what waiting threads do, and drops nothing itself.

use super::node::{NONE, WAITING};
use super::readers::{Readers, Watch};
use super::slab::Slab;

pub(super) struct Limbo<R> {
    gathering: Batch<R>,
    watched: Option<(Batch<R>, Watch)>,
}

/// Things that became unreachable before the same watch began. `R`: what is not an entry.
pub(super) struct Batch<R> {
    /// Entries, linked by `Node::next`.
    first: u32,
    entries: usize,
    weight: u64,
    pub(super) retired: Vec<R>,
}

/// How much waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Backlog {
    pub(super) entries: usize,
    pub(super) weight: u64,
    pub(super) retired: usize,
}

impl<R> Batch<R> {
    const fn new() -> Self {
        Self {
            first: NONE,
            entries: 0,
            weight: 0,
            retired: Vec::new(),
        }
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.entries == 0 && self.retired.is_empty()
    }

    /// Calls `each` with the number of each entry, which it may make free.
    #[inline]
    pub(super) fn drain<K, T>(&self, slab: &mut Slab<K, T>, mut each: impl FnMut(&mut Slab<K, T>, u32)) {
        let mut number = self.first;
        while number != NONE {
            let next = slab.node(number).next();
            each(slab, number);
            number = next;
        }
    }

    #[inline]
    pub(super) fn entries(&self) -> usize {
        self.entries
    }
}

impl<R> Limbo<R> {
    pub(super) const fn new() -> Self {
        Self {
            gathering: Batch::new(),
            watched: None,
        }
    }

    /// An entry that is out of the table and of every queue.
    #[inline]
    pub(super) fn add<K, T>(&mut self, slab: &Slab<K, T>, number: u32) {
        let node = slab.node(number);
        node.set_place(WAITING);
        node.set_next(self.gathering.first);
        self.gathering.first = number;
        self.gathering.entries += 1;
        self.gathering.weight += node.weight();
    }

    #[inline]
    pub(super) fn retire(&mut self, thing: R) {
        self.gathering.retired.push(thing);
    }

    /// The entries that wait stay with their slab, which is retired whole.
    #[inline]
    pub(super) fn forget_entries(&mut self) {
        let watched = self.watched.as_mut().map(|(batch, _)| batch);
        for batch in std::iter::once(&mut self.gathering).chain(watched) {
            (batch.first, batch.entries, batch.weight) = (NONE, 0, 0);
        }
    }

    #[inline]
    pub(super) fn backlog(&self) -> Backlog {
        let (entries, weight, retired) = self.watched.as_ref().map_or((0, 0, 0), |(batch, _)| {
            (batch.entries, batch.weight, batch.retired.len())
        });
        Backlog {
            entries: entries + self.gathering.entries,
            weight: weight + self.gathering.weight,
            retired: retired + self.gathering.retired.len(),
        }
    }

    /// Looks once; what comes back can be seen by no reader any more.
    #[inline]
    pub(super) fn settle(&mut self, readers: &Readers) -> Option<Batch<R>> {
        let (batch, mut watch) = match self.watched.take() {
            Some(watched) => watched,
            None if self.gathering.is_empty() => return None,
            None => (std::mem::replace(&mut self.gathering, Batch::new()), readers.watch()),
        };
        if readers.look(&mut watch) {
            return Some(batch);
        }
        self.watched = Some((batch, watch));
        None
    }
}
