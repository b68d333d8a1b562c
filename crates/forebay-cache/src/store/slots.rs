//! Where a key's entry is: a table from 32-bit tags to 32-bit entry numbers, read without a lock, that grows by small steps.
//!
//! Promises:
//! - [`find`](Slots::find) keeps what a [segment](super::segment) promises, also while the table grows.
//! - A step of its growth copies one segment, a few thousand entries at most, and now and then a pointer for each segment. (More where
//!   the tags of many keys are alike, which no hash that is worth its name has.)
//! - Memory follows the entries: eight bytes for each place, of which half and more are filled.
//!
//! The upper bits of a tag say which segment it is in. A segment that is full is replaced by a larger one, and one that is as large as
//! they get by two, a bit of the tags further down (extendible hashing: Fagin, Nievergelt, Pippenger, Strong, ACM TODS 1979).
//!
//! Writers come one at a time: the caller holds a lock. Does not know keys or entries, nor when memory may be reused: who replaces
//! a segment gets the old one, to be freed when no reader can see it.

use super::segment::{Address, Bucket, Position, USUAL_MAX, class_for, entries_max};
use super::sync::{AtomicPtr, Ordering};

/// Of the tags so many bits choose a segment at most.
const DEPTH_MAX: u32 = if cfg!(forebay_loom) { 1 } else { 22 };
/// A segment is not split where one of the halves would have less than one part in so many.
const SMALLEST_HALF: usize = 8;

/// What readers see. Dropping it frees no segment, which others may share: see [`free`](Slots::free).
pub(super) struct Slots {
    /// By the upper bits of the tags, a power of two of them; neighbours may be the same.
    segments: Box<[AtomicPtr<Bucket>]>,
    /// By so many bits a tag is shifted down to be the place in there.
    shift: u32,
}

/// What only writers see: for each place in the directory, how its segment is doing.
pub(super) struct Loads(Vec<Load>);

#[derive(Clone, Copy)]
struct Load {
    /// Of the segment's entries; kept at the first of its places.
    entries: u32,
    /// The upper bits that all its tags share.
    depth: u32,
}

/// What became of a wish for room.
pub(super) enum Room {
    /// There is.
    Enough,
    /// This segment was replaced; look again.
    Replaced(Address),
    /// The directory must be larger: put [`doubled`](Slots::doubled) in this one's place and look again.
    TooFewPlaces,
}

impl Slots {
    /// Empty ones, with a segment of that class.
    pub(super) fn new(class: usize) -> (Self, Loads) {
        let slots = Self {
            segments: Box::new([Address::new(class).place()]),
            shift: u32::BITS,
        };
        (slots, Loads(vec![Load { entries: 0, depth: 0 }]))
    }

    #[inline]
    fn index_of(&self, tag: u32) -> usize {
        (u64::from(tag) >> self.shift) as usize
    }

    #[inline]
    fn address_of(&self, tag: u32) -> Address {
        // Sequentially consistent: comes after the reader's entrance, see `readers`. Release and acquire: the segment is initialized.
        Address::load(&self.segments[self.index_of(tag)], Ordering::SeqCst)
    }

    /// For readers: what `matches` makes of the number of an entry with this tag, of the first of which it makes something.
    #[inline]
    pub(super) fn find<R>(&self, tag: u32, matches: impl FnMut(u32) -> Option<R>) -> Option<R> {
        // SAFETY: it was in the directory after this began; who frees what was taken out has waited for it to end.
        unsafe { self.address_of(tag).segment() }.find(tag, matches)
    }

    /// For writers: the number of the entry with this tag that matches, and its place.
    #[inline]
    pub(super) fn locate(&self, tag: u32, matches: impl FnMut(u32) -> bool) -> Option<(Position, u32)> {
        // SAFETY: as in `find`.
        unsafe { self.address_of(tag).segment() }.locate(tag, matches)
    }

    /// Where the entry of this number is; it must be in the table.
    #[inline]
    pub(super) fn position_of(&self, tag: u32, number: u32) -> Position {
        // SAFETY: as in `find`.
        unsafe { self.address_of(tag).segment() }.position_of(tag, number)
    }

    /// The caller has made sure that there is room and that nothing that matches is there.
    #[inline]
    pub(super) fn insert(&self, loads: &mut Loads, tag: u32, number: u32) {
        // SAFETY: as in `find`.
        unsafe { self.address_of(tag).segment() }.insert(tag, number);
        loads.of(self, tag).entries += 1;
    }

    /// In one step: who searches finds the old number or the new one.
    pub(super) fn replace(&self, tag: u32, position: Position, number: u32) {
        // SAFETY: as in `find`.
        unsafe { self.address_of(tag).segment() }.replace(position, number);
    }

    #[inline]
    pub(super) fn remove(&self, loads: &mut Loads, tag: u32, position: Position) {
        // SAFETY: as in `find`.
        unsafe { self.address_of(tag).segment() }.remove(position);
        loads.of(self, tag).entries -= 1;
    }

    /// Asks the processor for the memory that the tag's entry will be looked for in.
    #[inline]
    pub(super) fn prefetch(&self, tag: u32) {
        self.address_of(tag).prefetch(tag);
    }

    /// Makes room for one more entry, of that tag.
    #[inline]
    pub(super) fn make_room(&self, loads: &mut Loads, tag: u32) -> Room {
        let entries = loads.of(self, tag).entries as usize;
        if entries < entries_max(self.address_of(tag).class()) {
            return Room::Enough;
        }
        self.make_larger(loads, tag)
    }

    #[cold]
    pub(super) fn make_larger(&self, loads: &mut Loads, tag: u32) -> Room {
        let (load, old) = (*loads.of(self, tag), self.address_of(tag));
        // SAFETY: as in `find`.
        let segment = unsafe { old.segment() };
        if old.class() >= USUAL_MAX && load.depth < DEPTH_MAX {
            let is_upper = |tag: u32| tag >> (u32::BITS - 1 - load.depth) & 1 == 1;
            let mut upper = 0;
            segment.for_each(|tag, _| upper += usize::from(is_upper(tag)));
            let lower = load.entries as usize - upper;
            if upper.min(lower) * SMALLEST_HALF >= load.entries as usize {
                if load.depth == u32::BITS - self.shift {
                    return Room::TooFewPlaces;
                }
                let halves = [lower, upper].map(|entries| Address::new(class_for(entries)));
                // SAFETY: nobody else has them yet, and they are freed by who replaces them.
                let [into_lower, into_upper] = halves.map(|half| unsafe { half.segment() });
                segment.for_each(|tag, number| {
                    let half = if is_upper(tag) { into_upper } else { into_lower };
                    half.insert(tag, number);
                });
                let (first, places) = self.places(load, tag);
                for (half, (address, entries)) in halves.into_iter().zip([lower, upper]).enumerate() {
                    let load = Load {
                        entries: entries as u32,
                        depth: load.depth + 1,
                    };
                    self.put(loads, first + half * places / 2, places / 2, address, load);
                }
                return Room::Replaced(old);
            }
        }
        let larger = Address::new(old.class() + 1);
        // SAFETY: as for the halves.
        let into = unsafe { larger.segment() };
        segment.for_each(|tag, number| into.insert(tag, number));
        let (first, places) = self.places(load, tag);
        self.put(loads, first, places, larger, load);
        Room::Replaced(old)
    }

    /// Where the tag's segment is in the directory: its first place, and how many it has.
    fn places(&self, load: Load, tag: u32) -> (usize, usize) {
        let places = 1 << (u32::BITS - self.shift - load.depth);
        (self.index_of(tag) & !(places - 1), places)
    }

    fn put(&self, loads: &mut Loads, first: usize, places: usize, segment: Address, load: Load) {
        for place in first..first + places {
            segment.store(&self.segments[place], Ordering::Release);
            loads.0[place] = load;
        }
    }

    /// The same segments in a directory of twice as many places. This one is for those readers only who have it already.
    pub(super) fn doubled(&self, loads: &mut Loads) -> Self {
        loads.0 = loads.0.iter().flat_map(|load| [*load; 2]).collect();
        let twice = |place| [Address::load(place, Ordering::Relaxed); 2];
        Self {
            segments: self.segments.iter().flat_map(twice).map(Address::place).collect(),
            shift: self.shift - 1,
        }
    }

    /// All that are there, each once.
    fn addresses(&self) -> impl Iterator<Item = Address> {
        let mut last = None;
        let addresses = self
            .segments
            .iter()
            .map(|place| Address::load(place, Ordering::Relaxed));
        addresses.filter(move |address| last.replace(*address) != Some(*address))
    }

    /// Calls `each` with tag and number of all that is there; under the lock.
    #[cfg(test)]
    pub(super) fn for_each(&self, mut each: impl FnMut(u32, u32)) {
        for address in self.addresses() {
            // SAFETY: as in `find`.
            unsafe { address.segment() }.for_each(&mut each);
        }
    }

    /// Frees all segments that are there.
    ///
    /// # Safety
    ///
    /// Nobody works with these slots, or others that share the segments, any more, or will.
    pub(super) unsafe fn free(&self) {
        for address in self.addresses() {
            // SAFETY: says the caller.
            unsafe { address.free() };
        }
    }

    /// The buckets of all segments.
    #[cfg(test)]
    pub(super) fn buckets(&self) -> usize {
        // SAFETY: as in `find`.
        let buckets = |address: Address| unsafe { address.segment() }.buckets_len();
        self.addresses().map(buckets).sum()
    }

    /// Asserts that every entry can be found from its home, and that the loads are what is there.
    #[cfg(test)]
    pub(super) fn validate(&self, loads: &Loads) {
        assert_eq!(self.segments.len(), loads.0.len());
        assert_eq!(self.segments.len(), 1 << (u32::BITS - self.shift));
        let mut place = 0;
        while let Some(load) = loads.0.get(place) {
            let address = Address::load(&self.segments[place], Ordering::Relaxed);
            // SAFETY: as in `find`.
            let segment = unsafe { address.segment() };
            assert_eq!(segment.validate(), load.entries as usize, "a load is what is there");
            assert!(load.entries as usize <= entries_max(address.class()), "a search ends");
            let places = 1 << (u32::BITS - self.shift - load.depth);
            for other in &self.segments[place..place + places] {
                assert_eq!(Address::load(other, Ordering::Relaxed), address);
            }
            segment.for_each(|tag, _| assert_eq!(self.index_of(tag) & !(places - 1), place, "where it belongs"));
            place += places;
        }
    }
}

impl Loads {
    #[inline]
    fn of(&mut self, slots: &Slots, tag: u32) -> &mut Load {
        let index = slots.index_of(tag);
        let places = 1 << (u32::BITS - slots.shift - self.0[index].depth);
        &mut self.0[index & !(places - 1)]
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use std::collections::HashMap;

    use super::*;

    struct Table(Slots, Loads);

    impl Table {
        fn new() -> Self {
            let (slots, loads) = Slots::new(0);
            Self(slots, loads)
        }

        fn insert(&mut self, tag: u32, number: u32) {
            loop {
                match self.0.make_room(&mut self.1, tag) {
                    Room::Enough => break,
                    // SAFETY: nobody else is there.
                    Room::Replaced(segment) => unsafe { segment.free() },
                    Room::TooFewPlaces => self.0 = self.0.doubled(&mut self.1),
                }
            }
            self.0.insert(&mut self.1, tag, number);
        }

        fn remove(&mut self, tag: u32, number: u32) {
            let position = self.0.position_of(tag, number);
            self.0.remove(&mut self.1, tag, position);
        }
    }

    impl Drop for Table {
        fn drop(&mut self) {
            // SAFETY: nobody else is there.
            unsafe { self.0.free() };
        }
    }

    fn tag(number: u32) -> u32 {
        number.wrapping_mul(0x9E37_79B9)
    }

    #[test]
    fn grows_segment_by_segment() {
        let mut table = Table::new();
        for number in 0..40_000_u32 {
            table.insert(tag(number), number);
            if number.is_power_of_two() {
                table.0.validate(&table.1);
            }
        }
        table.0.validate(&table.1);
        assert!((16..=64).contains(&table.0.segments.len()));
        assert!(table.0.buckets() * 4 <= 40_000 * 5 / 2, "{}", table.0.buckets());
        for number in (0..40_000).step_by(3) {
            table.remove(tag(number), number);
        }
        table.0.validate(&table.1);
        let mut seen = HashMap::new();
        table.0.for_each(|tag, number| {
            seen.insert(number, tag);
        });
        for number in 0..40_000 {
            let is_there = number % 3 != 0;
            let found = table
                .0
                .find(tag(number), |candidate| (candidate == number).then_some(number));
            assert_eq!(found, is_there.then_some(number));
            assert_eq!(seen.contains_key(&number), is_there);
        }
    }

    /// Keys whose hash is the same, or nearly, are slow and nothing worse.
    #[test]
    fn tags_that_are_alike_have_room() {
        for spread in [0, 1, 1 << 31] {
            let mut table = Table::new();
            for number in 0..4_000_u32 {
                table.insert((number % 2) * spread, number);
            }
            table.0.validate(&table.1);
            for number in 0..4_000 {
                table.remove((number % 2) * spread, number);
            }
            table.0.validate(&table.1);
        }
    }
}
