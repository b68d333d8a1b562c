//! When a page was used last, and how often: what is known of it by which one decides whether it stays.
//!
//! Promises: uses within a moment are one, for they are likely one reader's, who reads a page in pieces. Old uses fade.
//!
//! Time is counted in pages that were loaded: while as many are loaded as the pool holds, [`TICKS`] go by. Where all pages are found time stands
//! still, and nobody writes anything.

/// A moment of a pool's time, in [`TICK_BITS`] bits. It wraps after the loads of two million pools: what was used that long ago looks new.
pub(crate) type Tick = u32;

pub(crate) const TICK_BITS: u32 = 28;
/// While as many pages are loaded as the pool holds.
pub(crate) const TICKS: u64 = 128;
/// Uses that are less than this apart are one.
pub(crate) const MOMENT: Tick = 4;
/// The most uses that are counted.
pub(crate) const COUNT_MAX: u8 = 15;
/// The count is halved when 2^this ticks have gone by, which are the loads of sixteen pools.
const HALVED_AFTER: u32 = 11;

/// The uses of one page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Uses {
    pub(crate) last: Tick,
    /// As it was at `last`, loads included. 0: there was none.
    pub(crate) count: u8,
}

/// What the evictor sees of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Nobody holds it. `again`: it was used since that was asked last, and spent.
    Free { uses: Uses, again: bool },
    /// Somebody holds it.
    Held,
    /// It is not there any more, or not yet.
    Gone,
}

impl Uses {
    /// How often it was used, as it counts now.
    pub(crate) fn count_at(self, now: Tick) -> u8 {
        let halvings = (now >> HALVED_AFTER).saturating_sub(self.last >> HALVED_AFTER);
        self.count.checked_shr(halvings).unwrap_or(0)
    }

    /// With one use more, now.
    #[must_use]
    pub(crate) fn and_now(self, now: Tick) -> Self {
        Self {
            last: now,
            count: (self.count_at(now) + 1).min(COUNT_MAX),
        }
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use super::*;

    #[test]
    fn uses_are_counted_up_to_a_most_and_fade() {
        let mut uses = Uses::default();
        assert_eq!(uses.count_at(5), 0);
        for now in 1..30 {
            uses = uses.and_now(now);
        }
        assert_eq!((uses.last, uses.count), (29, COUNT_MAX));
        let epoch = 1 << HALVED_AFTER;
        assert_eq!(
            [epoch - 1, epoch, 3 * epoch, 90 * epoch].map(|now| uses.count_at(now)),
            [15, 7, 1, 0]
        );
        assert_eq!(
            uses.and_now(2 * epoch),
            Uses {
                last: 2 * epoch,
                count: 4
            }
        );
        assert_eq!(uses.count_at(0), 15, "time has wrapped");
    }
}
