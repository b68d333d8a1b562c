//! What the store knows of an entry besides its key and record: tag, weight, place in a queue, when and how often it was used.
//!
//! Written under the shard's lock, except for the uses, which readers note too; all of it relaxed atomics, so that readers and
//! writers may look at it at any time without unsafe code. Of two notes at once one may be lost. Knows no policy: what the places
//! above [`WAITING`] mean, and in which order the links run, is the policy's.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering::Relaxed};

/// The end of a list.
pub(super) const NONE: u32 = u32::MAX;

/// Holds no key and no record.
pub(super) const FREE: u8 = 0;
/// Out of the table; holds its key and record until no reader can see them.
pub(super) const WAITING: u8 = 1;

/// The count of uses saturates here.
pub(super) const USES_MAX: u8 = 15;
/// Set by a use, until the policy has seen it.
const USED: u8 = 0x80;
/// The count is halved when 2^this ticks have gone by: after 8 to 16 capacities of misses.
const HALVED_AFTER: u32 = 11;

/// A moment of a shard's clock, which ticks by misses; see `policy`. Wraps after more than 8 million capacities.
pub(super) type Tick = u32;

/// What readers write too, and what a write looks at together with it: lies in the entry, next to its key and record.
pub(super) struct Uses {
    count: AtomicU8,
    place: AtomicU8,
    /// The tick of the last use, its lower half.
    last: AtomicU16,
    tag: AtomicU32,
}

/// What writers alone need: lies elsewhere, so that more of what readers look for is in the processor's caches.
pub(super) struct Links {
    weight: AtomicU32,
    previous: AtomicU32,
    next: AtomicU32,
}

/// Both.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    pub(super) uses: &'a Uses,
    pub(super) links: &'a Links,
}

/// How often something was used that was used so often at `last`: as it is remembered now.
#[inline]
pub(super) fn faded(uses: u8, last: Tick, now: Tick) -> u8 {
    let halvings = (now >> HALVED_AFTER).saturating_sub(last >> HALVED_AFTER);
    uses.checked_shr(halvings).unwrap_or(0)
}

/// The moment whose lower half this is: the latest of them.
#[inline]
fn whole(half: u16, now: Tick) -> Tick {
    now.saturating_sub(Tick::from((now as u16).wrapping_sub(half)))
}

impl Links {
    pub(super) fn free() -> Self {
        Self {
            weight: AtomicU32::new(0),
            previous: AtomicU32::new(NONE),
            next: AtomicU32::new(NONE),
        }
    }

    #[inline]
    pub(super) fn weight(&self) -> u32 {
        self.weight.load(Relaxed)
    }
}

impl Uses {
    pub(super) fn free() -> Self {
        Self {
            count: AtomicU8::new(0),
            place: AtomicU8::new(FREE),
            last: AtomicU16::new(0),
            tag: AtomicU32::new(0),
        }
    }

    /// It was used so often, last at that moment, and not since.
    #[inline]
    fn remember(&self, uses: u8, last: Tick) {
        self.count.store(uses.min(USES_MAX), Relaxed);
        self.last.store(last as u16, Relaxed);
    }

    /// It is used now. True if that is the first use in this tick: those that follow write nothing and count for nothing.
    #[inline]
    pub(super) fn mark_used(&self, now: Tick) -> bool {
        let (uses, last) = (self.count.load(Relaxed), self.last.load(Relaxed));
        if last == now as u16 {
            if uses & USED == 0 {
                self.count.store(uses | USED, Relaxed);
            }
            return false;
        }
        let count = faded(uses & USES_MAX, whole(last, now), now);
        self.last.store(now as u16, Relaxed);
        self.count.store(USED | (count + 1).min(USES_MAX), Relaxed);
        true
    }
}

impl Node<'_> {
    #[inline]
    pub(super) fn begin(self, tag: u32, weight: u32) {
        self.uses.tag.store(tag, Relaxed);
        self.links.weight.store(weight, Relaxed);
        self.links.previous.store(NONE, Relaxed);
        self.links.next.store(NONE, Relaxed);
        self.remember(0, 0);
    }

    #[inline]
    pub(super) fn tag(self) -> u32 {
        self.uses.tag.load(Relaxed)
    }

    #[inline]
    pub(super) fn weight(self) -> u64 {
        u64::from(self.links.weight())
    }

    #[inline]
    pub(super) fn previous(self) -> u32 {
        self.links.previous.load(Relaxed)
    }

    #[inline]
    pub(super) fn next(self) -> u32 {
        self.links.next.load(Relaxed)
    }

    #[inline]
    pub(super) fn set_previous(self, number: u32) {
        self.links.previous.store(number, Relaxed);
    }

    #[inline]
    pub(super) fn set_next(self, number: u32) {
        self.links.next.store(number, Relaxed);
    }

    #[inline]
    pub(super) fn place(self) -> u8 {
        self.uses.place.load(Relaxed)
    }

    #[inline]
    pub(super) fn set_place(self, place: u8) {
        self.uses.place.store(place, Relaxed);
    }

    /// The count of its uses, as it is remembered now.
    #[inline]
    pub(super) fn uses(self, now: Tick) -> u8 {
        faded(self.uses.count.load(Relaxed) & USES_MAX, self.last_use(now), now)
    }

    #[inline]
    pub(super) fn last_use(self, now: Tick) -> Tick {
        whole(self.uses.last.load(Relaxed), now)
    }

    /// It was used so often, last at that moment, and not since.
    #[inline]
    pub(super) fn remember(self, uses: u8, last: Tick) {
        self.uses.remember(uses, last);
    }

    /// Takes over what another one knows of its uses.
    #[inline]
    pub(super) fn remember_as(self, other: Self) {
        self.uses.count.store(other.uses.count.load(Relaxed), Relaxed);
        self.uses.last.store(other.uses.last.load(Relaxed), Relaxed);
    }

    /// Whether it was used since this was asked last.
    #[inline]
    pub(super) fn take_used(self) -> bool {
        let uses = self.uses.count.load(Relaxed);
        self.uses.count.store(uses & !USED, Relaxed);
        uses & USED != 0
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_use_counts_once_a_tick() {
        let (uses, links) = (Uses::free(), Links::free());
        let node = Node {
            uses: &uses,
            links: &links,
        };
        node.begin(1, 1);
        node.remember(1, 70_000);
        assert!(!node.take_used());
        assert!(!uses.mark_used(70_000), "in the tick of its beginning");
        assert!(node.take_used() && !node.take_used(), "it is seen, once");
        assert_eq!(node.uses(70_000), 1);
        assert!(uses.mark_used(70_001) && !uses.mark_used(70_001));
        assert_eq!((node.uses(70_001), node.last_use(70_005)), (2, 70_001));
        for tick in 70_002..70_100 {
            uses.mark_used(tick);
        }
        assert_eq!(node.uses(70_100), USES_MAX);
    }

    #[test]
    fn uses_fade() {
        let (uses, links) = (Uses::free(), Links::free());
        let node = Node {
            uses: &uses,
            links: &links,
        };
        let epoch = 1 << HALVED_AFTER;
        node.remember(12, epoch - 1);
        assert_eq!(
            (node.uses(epoch - 1), node.uses(epoch), node.uses(3 * epoch)),
            (12, 6, 1)
        );
        assert_eq!(node.uses(20 * epoch), 0);
        assert!(uses.mark_used(2 * epoch));
        assert_eq!(node.uses(2 * epoch), 4, "halved twice, and one more");
    }
}
