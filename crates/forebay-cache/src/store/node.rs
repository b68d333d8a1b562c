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

#[repr(C)]
pub(super) struct Node {
    /// First, next to the key and the record: what readers touch lies together.
    uses: AtomicU8,
    place: AtomicU8,
    /// The tick of the last use, its lower half.
    last: AtomicU16,
    tag: AtomicU32,
    weight: AtomicU32,
    previous: AtomicU32,
    next: AtomicU32,
}

/// How often something was used that was used so often at `last`: as it is remembered now.
pub(super) fn faded(uses: u8, last: Tick, now: Tick) -> u8 {
    let halvings = (now >> HALVED_AFTER).saturating_sub(last >> HALVED_AFTER);
    uses.checked_shr(halvings).unwrap_or(0)
}

/// The moment whose lower half this is: the latest of them.
fn whole(half: u16, now: Tick) -> Tick {
    now.saturating_sub(Tick::from((now as u16).wrapping_sub(half)))
}

impl Node {
    pub(super) fn free() -> Self {
        Self {
            uses: AtomicU8::new(0),
            place: AtomicU8::new(FREE),
            last: AtomicU16::new(0),
            tag: AtomicU32::new(0),
            weight: AtomicU32::new(0),
            previous: AtomicU32::new(NONE),
            next: AtomicU32::new(NONE),
        }
    }

    pub(super) fn begin(&self, tag: u32, weight: u32) {
        self.tag.store(tag, Relaxed);
        self.weight.store(weight, Relaxed);
        self.previous.store(NONE, Relaxed);
        self.next.store(NONE, Relaxed);
        self.remember(0, 0);
    }

    pub(super) fn tag(&self) -> u32 {
        self.tag.load(Relaxed)
    }

    pub(super) fn weight(&self) -> u64 {
        u64::from(self.weight.load(Relaxed))
    }

    pub(super) fn previous(&self) -> u32 {
        self.previous.load(Relaxed)
    }

    pub(super) fn next(&self) -> u32 {
        self.next.load(Relaxed)
    }

    pub(super) fn set_previous(&self, number: u32) {
        self.previous.store(number, Relaxed);
    }

    pub(super) fn set_next(&self, number: u32) {
        self.next.store(number, Relaxed);
    }

    pub(super) fn place(&self) -> u8 {
        self.place.load(Relaxed)
    }

    pub(super) fn set_place(&self, place: u8) {
        self.place.store(place, Relaxed);
    }

    /// The count of its uses, as it is remembered now.
    pub(super) fn uses(&self, now: Tick) -> u8 {
        faded(self.uses.load(Relaxed) & USES_MAX, self.last_use(now), now)
    }

    pub(super) fn last_use(&self, now: Tick) -> Tick {
        whole(self.last.load(Relaxed), now)
    }

    /// It was used so often, last at that moment, and not since.
    pub(super) fn remember(&self, uses: u8, last: Tick) {
        self.uses.store(uses.min(USES_MAX), Relaxed);
        self.last.store(last as u16, Relaxed);
    }

    /// Takes over what another one knows of its uses.
    pub(super) fn remember_as(&self, other: &Self) {
        self.uses.store(other.uses.load(Relaxed), Relaxed);
        self.last.store(other.last.load(Relaxed), Relaxed);
    }

    /// Whether it was used since this was asked last.
    pub(super) fn take_used(&self) -> bool {
        let uses = self.uses.load(Relaxed);
        self.uses.store(uses & !USED, Relaxed);
        uses & USED != 0
    }

    /// It is used now. True if that is the first use in this tick: those that follow write nothing and count for nothing.
    #[inline]
    pub(super) fn mark_used(&self, now: Tick) -> bool {
        let (uses, last) = (self.uses.load(Relaxed), self.last.load(Relaxed));
        if last == now as u16 {
            if uses & USED == 0 {
                self.uses.store(uses | USED, Relaxed);
            }
            return false;
        }
        let count = faded(uses & USES_MAX, whole(last, now), now);
        self.last.store(now as u16, Relaxed);
        self.uses.store(USED | (count + 1).min(USES_MAX), Relaxed);
        true
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_use_counts_once_a_tick() {
        let node = Node::free();
        node.begin(1, 1);
        node.remember(1, 70_000);
        assert!(!node.take_used());
        assert!(!node.mark_used(70_000), "in the tick of its beginning");
        assert!(node.take_used() && !node.take_used(), "it is seen, once");
        assert_eq!(node.uses(70_000), 1);
        assert!(node.mark_used(70_001) && !node.mark_used(70_001));
        assert_eq!((node.uses(70_001), node.last_use(70_005)), (2, 70_001));
        for tick in 70_002..70_100 {
            node.mark_used(tick);
        }
        assert_eq!(node.uses(70_100), USES_MAX);
    }

    #[test]
    fn uses_fade() {
        let node = Node::free();
        let epoch = 1 << HALVED_AFTER;
        node.remember(12, epoch - 1);
        assert_eq!(
            (node.uses(epoch - 1), node.uses(epoch), node.uses(3 * epoch)),
            (12, 6, 1)
        );
        assert_eq!(node.uses(20 * epoch), 0);
        assert!(node.mark_used(2 * epoch));
        assert_eq!(node.uses(2 * epoch), 4, "halved twice, and one more");
    }
}
