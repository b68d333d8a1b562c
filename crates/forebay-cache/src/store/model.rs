//! Model checks: every interleaving of a few readers and a writer (loom explores them all).
//!
//! ```console
//! $ RUSTFLAGS="--cfg forebay_loom" cargo test -p forebay-cache --lib --release --target-dir target/loom -- store::model
//! ```
//!
//! `readers` and `slots` are the product's code; an entry is a cell that loom watches, so that freeing it while it may be read, or
//! reading it before it is filled, fails. Knows no policy and no capacity.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use super::readers::{Readers, is_reading};
use super::segment::Address;
use super::slots::{Loads, Room, Slots};

/// Tags with the first bucket of two for a home.
const TAGS: [u32; 3] = [1, 2, 3];
const FILLED: u64 = 7;
const FREED: u64 = 9;

struct Model {
    readers: Readers,
    slots: Slots,
    /// The writer's.
    loads: std::sync::Mutex<Loads>,
    entries: Vec<UnsafeCell<u64>>,
}

impl Drop for Model {
    fn drop(&mut self) {
        // SAFETY: the last one to have it; what was replaced is freed by the test.
        unsafe { self.slots.free() };
    }
}

// SAFETY: the cells are what is being checked: loom sees every access and fails if two could meet.
unsafe impl Sync for Model {}
// SAFETY: as above.
unsafe impl Send for Model {}

impl Model {
    /// With a segment of that class: in the model it has a bucket more than its number says.
    fn new(stripes: usize, class: usize) -> Arc<Self> {
        let (slots, loads) = Slots::new(class);
        Arc::new(Self {
            readers: Readers::new(stripes),
            slots,
            loads: std::sync::Mutex::new(loads),
            entries: TAGS.iter().map(|_| UnsafeCell::new(0)).collect(),
        })
    }

    fn fill(&self, number: u32) {
        // SAFETY: loom checks that nobody else is there.
        self.entries[number as usize].with_mut(|entry| unsafe { *entry = FILLED });
    }

    fn look_at(&self, number: u32) {
        // SAFETY: loom checks that nobody writes meanwhile.
        self.entries[number as usize].with(|entry| assert_eq!(unsafe { *entry }, FILLED));
    }

    fn insert(&self, number: u32) {
        self.fill(number);
        self.slots
            .insert(&mut self.loads.lock().unwrap(), TAGS[number as usize], number);
    }

    /// A read, counted when it hits: the number that it found.
    fn read(&self, stripe: usize, tag: u32) -> Option<u32> {
        let mut section = self.readers.enter_stripe(stripe);
        assert!(is_reading());
        let number = self.slots.find(tag, |number| {
            self.look_at(number);
            Some(number)
        })?;
        self.look_at(number);
        section.count();
        Some(number)
    }

    fn wait_and_free(&self, number: u32) {
        let mut watch = self.readers.watch();
        while !self.readers.look(&mut watch) {
            thread::yield_now();
        }
        // SAFETY: loom checks that no reader is left.
        self.entries[number as usize].with_mut(|entry| unsafe { *entry = FREED });
    }

    fn wait_and_free_segment(&self, segment: Address) {
        let mut watch = self.readers.watch();
        while !self.readers.look(&mut watch) {
            thread::yield_now();
        }
        // SAFETY: replaced, and seen by no reader any more.
        unsafe { segment.free() };
    }

    fn remove(&self, number: u32) {
        let tag = TAGS[number as usize];
        let (position, found) = self.slots.locate(tag, |_| true).unwrap();
        assert_eq!(found, number);
        self.slots.remove(&mut self.loads.lock().unwrap(), tag, position);
    }
}

fn explore(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(4);
    builder.check(model);
}

#[test]
fn loom_nothing_is_freed_while_it_is_read() {
    explore(|| {
        let model = Model::new(1, 0);
        model.insert(0);
        let shared = Arc::clone(&model);
        let reader = thread::spawn(move || {
            let found = shared.read(0, TAGS[0]);
            assert!(!is_reading());
            found
        });
        model.remove(0);
        model.wait_and_free(0);
        let found = reader.join().unwrap();
        assert_eq!(model.readers.counted(), u64::from(found.is_some()));
        assert_eq!(model.readers.open(), 0);
    });
}

#[test]
fn loom_each_stripe_is_waited_for() {
    explore(|| {
        let model = Model::new(2, 0);
        model.insert(0);
        let readers: Vec<_> = (0..2)
            .map(|stripe| {
                let shared = Arc::clone(&model);
                thread::spawn(move || shared.read(stripe, TAGS[0]))
            })
            .collect();
        model.remove(0);
        model.wait_and_free(0);
        let hits = readers.into_iter().filter_map(|reader| reader.join().unwrap()).count();
        assert_eq!(model.readers.counted(), hits as u64);
    });
}

#[test]
fn loom_readers_of_one_stripe_are_told_apart() {
    explore(|| {
        let model = Model::new(1, 0);
        model.insert(0);
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let shared = Arc::clone(&model);
                thread::spawn(move || shared.read(0, TAGS[0]))
            })
            .collect();
        model.remove(0);
        model.wait_and_free(0);
        let hits = readers.into_iter().filter_map(|reader| reader.join().unwrap()).count();
        assert_eq!((model.readers.counted(), model.readers.open()), (hits as u64, 0));
    });
}

#[test]
fn loom_a_nested_read_keeps_what_the_outer_one_sees() {
    explore(|| {
        let model = Model::new(1, 0);
        model.insert(0);
        let shared = Arc::clone(&model);
        let reader = thread::spawn(move || {
            let section = shared.readers.enter_stripe(0);
            let found = shared.slots.find(TAGS[0], Some);
            shared.read(0, TAGS[0]);
            assert!(is_reading(), "the outer section is still open");
            if let Some(number) = found {
                shared.look_at(number);
            }
            drop(section);
        });
        model.remove(0);
        model.wait_and_free(0);
        reader.join().unwrap();
    });
}

#[test]
fn loom_a_replaced_entry_is_never_missing() {
    explore(|| {
        let model = Model::new(1, 0);
        model.insert(0);
        let shared = Arc::clone(&model);
        let reader = thread::spawn(move || {
            assert!(shared.read(0, TAGS[0]).is_some(), "the old one or the new one");
        });
        model.fill(1);
        model.slots.replace(TAGS[0], model.slots.position_of(TAGS[0], 0), 1);
        model.wait_and_free(0);
        reader.join().unwrap();
        assert_eq!(model.read(0, TAGS[0]), Some(1));
    });
}

#[test]
fn loom_what_is_found_is_filled() {
    explore(|| {
        let model = Model::new(1, 0);
        let shared = Arc::clone(&model);
        let reader = thread::spawn(move || shared.read(0, TAGS[0]));
        model.insert(0);
        reader.join().unwrap();
        assert_eq!(model.read(0, TAGS[0]), Some(0));
    });
}

#[test]
fn loom_a_moved_entry_is_never_missing() {
    explore(|| {
        let model = Model::new(1, 1);
        for number in 0..3 {
            model.insert(number);
        }
        let shared = Arc::clone(&model);
        // The third one did not fit into its home.
        let reader = thread::spawn(move || assert_eq!(shared.read(0, TAGS[2]), Some(2), "it was there all the time"));
        model.remove(0);
        reader.join().unwrap();
        assert_eq!(model.read(0, TAGS[2]), Some(2));
        assert_eq!(model.read(0, TAGS[0]), None);
    });
}

/// A segment that grows: the old one is freed only when no reader has it, and what it held is found in either.
#[test]
fn loom_a_replaced_segment_outlives_its_readers() {
    explore(|| {
        let model = Model::new(1, 0);
        model.insert(0);
        let shared = Arc::clone(&model);
        let reader = thread::spawn(move || {
            let _section = shared.readers.enter_stripe(0);
            assert_eq!(shared.slots.find(TAGS[0], Some), Some(0));
        });
        let Room::Replaced(segment) = model.slots.make_larger(&mut model.loads.lock().unwrap(), TAGS[0]) else {
            panic!("one entry is not split");
        };
        model.wait_and_free_segment(segment);
        model.insert(1);
        reader.join().unwrap();
        assert_eq!(model.read(0, TAGS[1]), Some(1));
    });
}

/// A directory that doubles and a segment that is split: who has the old directory finds what was there all the time.
#[test]
fn loom_what_is_there_is_found_while_a_segment_is_split() {
    explore(|| {
        let model = Model::new(1, 1);
        let tags = [1, u32::MAX];
        {
            let mut loads = model.loads.lock().unwrap();
            for (number, tag) in (0..).zip(tags) {
                model.fill(number);
                model.slots.insert(&mut loads, tag, number);
            }
        }
        let doubled = Arc::new(std::sync::OnceLock::new());
        let current = Arc::new(AtomicUsize::new(0));
        let reader = {
            let (model, doubled, current) = (Arc::clone(&model), Arc::clone(&doubled), Arc::clone(&current));
            thread::spawn(move || {
                let _section = model.readers.enter_stripe(0);
                let slots = if current.load(Ordering::SeqCst) == 0 {
                    &model.slots
                } else {
                    doubled.get().unwrap()
                };
                assert_eq!(slots.find(tags[1], Some), Some(1));
            })
        };
        let larger = {
            let mut loads = model.loads.lock().unwrap();
            assert!(matches!(
                model.slots.make_larger(&mut loads, tags[1]),
                Room::TooFewPlaces
            ));
            doubled.set(model.slots.doubled(&mut loads)).ok().unwrap();
            current.store(1, Ordering::SeqCst);
            doubled.get().unwrap()
        };
        let Room::Replaced(segment) = larger.make_larger(&mut model.loads.lock().unwrap(), tags[1]) else {
            panic!("two entries are split");
        };
        let mut watch = model.readers.watch();
        while !model.readers.look(&mut watch) {
            thread::yield_now();
        }
        reader.join().unwrap();
        assert_eq!(larger.find(tags[0], Some), Some(0));
        // SAFETY: nobody is there any more. The model frees the segment that was split.
        unsafe { larger.free() };
        drop(segment);
    });
}
