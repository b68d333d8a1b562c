//! A part of the table from tags to entry numbers: open-addressed, read without a lock.
//!
//! Promises:
//! - [`find`](Segment::find) takes no lock and writes nothing, and waits for no writer when it finds what it looks for.
//! - It finds what was in the segment all the time of the search, also while writers insert, remove and move neighbours.
//! - What it finds was in the segment at some moment of the search.
//! - Tags that are equal are told apart by `matches`, which is asked about each candidate, and about the first one of all maybe twice.
//! - Its [`Address`] says in one word where it is and how large, so that a search waits for no other memory than its slots.
//!
//! Writers come one at a time: the caller holds a lock. Does not know keys or entries, nor when its memory may be freed.
//!
//! # How
//!
//! A slot is `number + 1 << 32 | tag`, or zero when empty; four of them, half a cache line, are a bucket. A tag's home is the bucket
//! that follows from its lower bits (which of the segments it is in follows from the upper ones); an entry is in its home, or in the
//! next bucket with room when that was full. So a search looks at whole buckets, from the home to the first that is not full; its
//! branches predict well, since nearly always that is one bucket.
//!
//! Removing from a full bucket moves a later entry back into the gap, so there are no tombstones and searches stay short. A
//! search that such a move overtakes may miss what it looks for: `sequence` is odd during a move and different after it, and a
//! search that found nothing is made again if that was so. (Whoever sees a slot that a move has written sees, by its release, the
//! odd sequence written before it.)

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::marker::PhantomData;

use super::sync::{AtomicPtr, AtomicU64, Ordering};

/// Slots of a bucket; few in the model, where every load is a step.
const WAYS: usize = if cfg!(forebay_loom) { 2 } else { 4 };
/// Of a segment's slots so many eighths are filled at most.
const FILLED_MAX: usize = if cfg!(forebay_loom) { 4 } else { 6 };
/// Searches that were overtaken before the reader lets other threads go first.
#[cfg(not(forebay_loom))]
const SEARCHES_BEFORE_YIELD: usize = 64;

/// How large a segment can be: a class each, from 8 buckets by a fifth on average (a quarter at most).
const CLASSES: usize = if cfg!(forebay_loom) { 48 } else { 108 };
/// Segments that are larger than this one's are made only where that cannot be helped; so much is copied at once.
pub(super) const USUAL_MAX: usize = if cfg!(forebay_loom) { 1 } else { 28 };

/// The buckets of a class, times a tag's part of 2^32: a reader's way to the home, so without a memory of classes.
#[inline]
const fn of_buckets(class: usize, part: u32) -> usize {
    if cfg!(forebay_loom) {
        (((class as u64 + 1) * part as u64) >> u32::BITS) as usize
    } else {
        (((class as u64 % 4 + 4) * part as u64) >> (u32::BITS - 1 - class as u32 / 4)) as usize
    }
}

/// The buckets of a class.
const fn buckets_of(class: usize) -> usize {
    if cfg!(forebay_loom) {
        class + 1
    } else {
        (class % 4 + 4) << (class / 4 + 1)
    }
}

/// A segment begins on a cache line, and every other one, which leaves the lower bits of its address to say its class.
const ALIGNMENT: usize = 128;
const CLASS: usize = ALIGNMENT - 1;

#[repr(align(32))]
pub(super) struct Bucket([AtomicU64; WAYS]);

/// Behind the buckets: what few look at.
#[repr(C, align(64))]
struct Tail {
    /// Written at moves.
    sequence: AtomicU64,
}

/// Where a segment is, and of which class. Owns it, by agreement with those that have it: [`free`](Self::free) is called once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address(*mut Bucket);

/// A segment to work with.
#[derive(Clone, Copy)]
pub(super) struct Segment<'a> {
    address: Address,
    lives: PhantomData<&'a Bucket>,
}

/// A slot, found under the lock and good as long as the lock is held and nothing else is removed.
#[derive(Clone, Copy)]
pub(super) struct Position {
    bucket: usize,
    way: usize,
}

fn packed(tag: u32, number: u32) -> u64 {
    (u64::from(number) + 1) << 32 | u64::from(tag)
}

#[inline]
fn tag_of(slot: u64) -> u32 {
    slot as u32
}

#[inline]
fn number_of(slot: u64) -> u32 {
    ((slot >> 32) as u32).wrapping_sub(1)
}

impl Bucket {
    fn new() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }

    #[inline]
    fn empty_way(&self) -> Option<usize> {
        self.0.iter().position(|slot| slot.load(Ordering::Relaxed) == 0)
    }
}

/// The most entries that a segment of that class may hold; so there is always a bucket that is not full, which ends each search.
#[inline]
pub(super) fn entries_max(class: usize) -> usize {
    let slots = buckets_of(class) * WAYS;
    (slots * FILLED_MAX / 8).min(slots - 1)
}

/// The smallest class that has room for so many and then some.
pub(super) fn class_for(entries: usize) -> usize {
    let with_room = entries + entries / 8;
    (0..CLASSES - 1)
        .find(|class| entries_max(*class) > with_room)
        .unwrap_or(CLASSES - 1)
}

impl Address {
    /// A new one, empty.
    pub(super) fn new(class: usize) -> Self {
        assert!(class < CLASSES, "a segment has at most 2^32 slots");
        let (layout, tail_at) = Self::layout_of(class);
        // SAFETY: of some size, since there are buckets.
        let memory = unsafe { alloc(layout) };
        if memory.is_null() {
            handle_alloc_error(layout);
        }
        let buckets: *mut Bucket = memory.cast();
        for bucket in 0..buckets_of(class) {
            // SAFETY: within the memory, which is aligned for buckets and nobody else's.
            unsafe { buckets.add(bucket).write(Bucket::new()) };
        }
        let sequence = AtomicU64::new(0);
        // SAFETY: the layout has room for a tail there, aligned as it must be.
        unsafe { memory.add(tail_at).cast::<Tail>().write(Tail { sequence }) };
        Self(buckets.map_addr(|address| address | class))
    }

    fn layout_of(class: usize) -> (Layout, usize) {
        let buckets = Layout::array::<Bucket>(buckets_of(class));
        let whole = buckets.and_then(|buckets| buckets.align_to(ALIGNMENT)?.extend(Layout::new::<Tail>()));
        whole.expect("a segment fits into memory")
    }

    #[inline]
    pub(super) fn load(place: &AtomicPtr<Bucket>, ordering: Ordering) -> Self {
        Self(place.load(ordering))
    }

    #[inline]
    pub(super) fn store(self, place: &AtomicPtr<Bucket>, ordering: Ordering) {
        place.store(self.0, ordering);
    }

    #[inline]
    pub(super) fn place(self) -> AtomicPtr<Bucket> {
        AtomicPtr::new(self.0)
    }

    #[inline]
    pub(super) fn class(self) -> usize {
        self.0.addr() & CLASS
    }

    #[inline]
    fn first(self) -> *mut Bucket {
        self.0.map_addr(|address| address & !CLASS)
    }

    /// # Safety
    ///
    /// It is not freed while what comes back is used.
    #[inline]
    pub(super) unsafe fn segment<'a>(self) -> Segment<'a> {
        Segment {
            address: self,
            lives: PhantomData,
        }
    }

    /// Asks the processor for the memory that a search for the tag will need first.
    #[inline]
    pub(super) fn prefetch(self, tag: u32) {
        let bucket = home(tag, self.class());
        super::prefetch::prefetch(self.first().wrapping_add(bucket));
    }

    /// # Safety
    ///
    /// Nobody works with it any more, or will.
    pub(super) unsafe fn free(self) {
        let (layout, tail_at) = Self::layout_of(self.class());
        let len = buckets_of(self.class());
        // SAFETY: from `new`, by that layout; nobody else has it, says the caller.
        unsafe {
            std::ptr::slice_from_raw_parts_mut(self.first(), len).drop_in_place();
            self.first().byte_add(tail_at).cast::<Tail>().drop_in_place();
            dealloc(self.first().cast(), layout);
        }
    }
}

#[inline]
fn home(tag: u32, class: usize) -> usize {
    of_buckets(class, tag.rotate_left(16))
}

impl<'a> Segment<'a> {
    #[inline]
    fn buckets(self) -> &'a [Bucket] {
        let len = buckets_of(self.address.class());
        // SAFETY: initialized in `new`, by that class; not freed, as who made this segment says. All of it is atomics, never borrowed mutably.
        unsafe { std::slice::from_raw_parts(self.address.first(), len) }
    }

    #[inline]
    fn tail(self) -> &'a Tail {
        let len = buckets_of(self.address.class());
        let tail_at = (len * size_of::<Bucket>()).next_multiple_of(align_of::<Tail>());
        // SAFETY: as for the buckets; there, by the layout that `new` uses.
        unsafe { &*self.address.first().byte_add(tail_at).cast::<Tail>() }
    }

    #[inline]
    fn after(self, bucket: usize) -> usize {
        if bucket + 1 == self.buckets().len() {
            0
        } else {
            bucket + 1
        }
    }

    /// How many steps a search takes from one bucket to the other.
    fn distance(self, from: usize, to: usize) -> usize {
        if to >= from {
            to - from
        } else {
            to + self.buckets().len() - from
        }
    }

    #[inline]
    fn home(self, tag: u32) -> usize {
        home(tag, self.address.class())
    }

    #[inline]
    fn slot(self, position: Position) -> &'a AtomicU64 {
        &self.buckets()[position.bucket].0[position.way]
    }

    /// Looks at every slot from the home to the first bucket that is not full.
    #[inline]
    fn search<R>(self, tag: u32, mut matches: impl FnMut(u32) -> Option<R>) -> Option<(Position, R)> {
        let mut bucket = self.home(tag);
        loop {
            let mut has_empty = false;
            for (way, slot) in self.buckets()[bucket].0.iter().enumerate() {
                // Sequentially consistent, here and in `find`: comes after the reader's entrance, see `readers`.
                let slot = slot.load(Ordering::SeqCst);
                if slot == 0 {
                    has_empty = true;
                } else if tag_of(slot) == tag
                    && let Some(found) = matches(number_of(slot))
                {
                    return Some((Position { bucket, way }, found));
                }
            }
            if has_empty {
                return None;
            }
            bucket = self.after(bucket);
        }
    }

    /// For readers: what `matches` makes of the number of an entry with this tag, of the first of which it makes something.
    #[inline]
    pub(super) fn find<R>(self, tag: u32, mut matches: impl FnMut(u32) -> Option<R>) -> Option<R> {
        // Nearly always it is in its home, and alone there with its tag: to pick it takes no branch that could be foreseen wrongly.
        let mut candidate = 0;
        for slot in &self.buckets()[self.home(tag)].0 {
            let slot = slot.load(Ordering::SeqCst);
            if tag_of(slot) == tag {
                candidate = slot;
            }
        }
        if candidate != 0
            && let Some(found) = matches(number_of(candidate))
        {
            return Some(found);
        }
        self.find_undisturbed(tag, matches)
    }

    /// The search of one that found nothing: hits do not read the sequence, which writers write.
    #[cold]
    #[inline(never)]
    fn find_undisturbed<R>(self, tag: u32, mut matches: impl FnMut(u32) -> Option<R>) -> Option<R> {
        let mut searches = 0;
        loop {
            let sequence = self.tail().sequence.load(Ordering::Acquire);
            if let Some((_, found)) = self.search(tag, &mut matches) {
                return Some(found);
            }
            if sequence.is_multiple_of(2) && self.tail().sequence.load(Ordering::Acquire) == sequence {
                return None;
            }
            searches += 1;
            pause(searches);
        }
    }

    /// For writers: the number of the entry with this tag that matches, and its place.
    #[inline]
    pub(super) fn locate(self, tag: u32, mut matches: impl FnMut(u32) -> bool) -> Option<(Position, u32)> {
        self.search(tag, |number| matches(number).then_some(number))
    }

    /// Where the entry of this number is; it must be in the segment.
    #[inline]
    pub(super) fn position_of(self, tag: u32, number: u32) -> Position {
        let wanted = packed(tag, number);
        let mut bucket = self.home(tag);
        loop {
            let is_it = |slot: &AtomicU64| slot.load(Ordering::Relaxed) == wanted;
            if let Some(way) = self.buckets()[bucket].0.iter().position(is_it) {
                return Position { bucket, way };
            }
            assert!(
                self.buckets()[bucket].empty_way().is_none(),
                "an entry that is linked is in the table"
            );
            bucket = self.after(bucket);
        }
    }

    /// The caller has made sure that there is room and that nothing that matches is there.
    #[inline]
    pub(super) fn insert(self, tag: u32, number: u32) {
        let mut bucket = self.home(tag);
        let way = loop {
            match self.buckets()[bucket].empty_way() {
                Some(way) => break way,
                None => bucket = self.after(bucket),
            }
        };
        // Release: who finds the number finds the entry filled.
        self.buckets()[bucket].0[way].store(packed(tag, number), Ordering::Release);
    }

    /// In one step: who searches finds the old number or the new one.
    pub(super) fn replace(self, position: Position, number: u32) {
        let slot = self.slot(position);
        let tag = tag_of(slot.load(Ordering::Relaxed));
        slot.store(packed(tag, number), Ordering::Release);
    }

    #[inline]
    pub(super) fn remove(self, position: Position) {
        if self.buckets()[position.bucket].empty_way().is_some() {
            self.slot(position).store(0, Ordering::Release);
        } else {
            self.remove_and_close(position);
        }
    }

    /// Takes out of a full bucket, to where an entry of before may have to come back.
    fn remove_and_close(self, position: Position) {
        let sequence = self.tail().sequence.load(Ordering::Relaxed);
        let mut moves = false;
        let mut gap = position;
        let mut bucket = position.bucket;
        // Where there is room no entry of an earlier home was driven past.
        while self.buckets()[bucket].empty_way().is_none() {
            bucket = self.after(bucket);
            let misplaced = |slot: &AtomicU64| {
                let slot = slot.load(Ordering::Relaxed);
                // One whose home is after the gap stays where it is.
                slot != 0 && self.distance(self.home(tag_of(slot)), bucket) >= self.distance(gap.bucket, bucket)
            };
            if bucket == gap.bucket {
                break;
            }
            if let Some(way) = self.buckets()[bucket].0.iter().position(misplaced) {
                let next = Position { bucket, way };
                if !moves {
                    moves = true;
                    self.tail().sequence.store(sequence + 1, Ordering::Relaxed);
                }
                self.slot(gap)
                    .store(self.slot(next).load(Ordering::Relaxed), Ordering::Release);
                gap = next;
            }
        }
        self.slot(gap).store(0, Ordering::Release);
        if moves {
            self.tail().sequence.store(sequence + 2, Ordering::Release);
        }
    }

    /// Calls `each` with tag and number of all that is there; under the lock.
    pub(super) fn for_each(self, mut each: impl FnMut(u32, u32)) {
        for slot in self.buckets().iter().flat_map(|bucket| &bucket.0) {
            let slot = slot.load(Ordering::Relaxed);
            if slot != 0 {
                each(tag_of(slot), number_of(slot));
            }
        }
    }

    /// How many buckets there are.
    #[cfg(test)]
    pub(super) fn buckets_len(self) -> usize {
        self.buckets().len()
    }

    /// Asserts that every entry can be found from its home, and says how many there are.
    #[cfg(test)]
    pub(super) fn validate(self) -> usize {
        let mut entries = 0;
        self.for_each(|tag, number| {
            entries += 1;
            self.position_of(tag, number);
        });
        entries
    }
}

/// Between searches that were overtaken.
#[cfg(not(forebay_loom))]
fn pause(searches: usize) {
    if searches < SEARCHES_BEFORE_YIELD {
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
}

#[cfg(forebay_loom)]
fn pause(_searches: usize) {
    loom::thread::yield_now();
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

        /// Tags crowd at the last home, so that entries are driven on, over the end, and moved back.
        #[test]
        fn agrees_with_a_map(class in 0_usize..5, steps in prop::collection::vec((any::<bool>(), 0_u32..64), 1..300)) {
            let address = Address::new(class);
            // SAFETY: freed at the end.
            let segment = unsafe { address.segment() };
            let tag = |number: u32| if number.is_multiple_of(2) { u32::MAX - number } else { number.wrapping_mul(0x0800_0001) };
            let tag = |number: u32| tag(number).rotate_right(16);
            let mut model = HashMap::new();
            for (adds, number) in steps {
                if adds && model.len() < entries_max(class) && !model.contains_key(&number) {
                    segment.insert(tag(number), number);
                    model.insert(number, tag(number));
                } else if model.remove(&number).is_some() {
                    segment.remove(segment.position_of(tag(number), number));
                }
                for number in 0..64 {
                    let found = segment.find(tag(number), |candidate| (candidate == number).then_some(number));
                    prop_assert_eq!(found, model.contains_key(&number).then_some(number));
                }
                prop_assert_eq!(segment.validate(), model.len());
            }
            // SAFETY: the last use.
            unsafe { address.free() };
        }
    }

    #[test]
    fn a_tag_of_zero_is_no_empty_slot() {
        let address = Address::new(0);
        // SAFETY: freed at the end.
        let segment = unsafe { address.segment() };
        assert_eq!(segment.find(0, Some), None);
        segment.insert(0, 0);
        segment.insert(0, u32::MAX - 1);
        assert_eq!(
            segment.find(0, |number| (number == 0).then_some(number)),
            Some(0),
            "found beside another of its tag"
        );
        assert_eq!(
            segment.find(0, |number| (number == u32::MAX - 1).then_some(number)),
            Some(u32::MAX - 1)
        );
        assert_eq!(segment.find(0, |_| None::<()>), None);
        // SAFETY: the last use.
        unsafe { address.free() };
    }

    #[test]
    fn there_is_room_for_what_is_asked() {
        for entries in 0..10_000 {
            let class = class_for(entries);
            assert!(entries_max(class) > entries);
            let is_usual = (64..entries_max(USUAL_MAX) * 7 / 8).contains(&entries);
            let slots = buckets_of(class) * WAYS;
            assert!(
                !is_usual || slots <= entries * 5 / 2 + WAYS,
                "up to twenty bytes an entry"
            );
        }
        const { assert!(CLASSES <= ALIGNMENT) };
        for class in 1..CLASSES {
            for part in [0, 1, u32::MAX / 3, u32::MAX - 1, u32::MAX] {
                let place = (buckets_of(class) as u128 * u128::from(part)) >> u32::BITS;
                assert_eq!(of_buckets(class, part) as u128, place);
            }
            let (buckets, before) = (buckets_of(class), buckets_of(class - 1));
            assert!(buckets > before && buckets <= before * 5 / 4);
        }
    }
}
