//! Tags: when each was last invalidated.
//!
//! Promises:
//! - To invalidate a tag takes one look into a table, however many entries carry it; entries are told by what they remember.
//! - Moments are counted, not timed: what was fetched by a fetch that began before a tag was invalidated never holds again, and what
//!   was fetched by one that began after it does, whatever clocks do.
//! - Memory is bounded by the tags of the entries that are or were there: a tag that nobody carries is forgotten when others come, and what a flight in the air may
//!   yet bring with it is taken for invalidated if anything that was forgotten was invalidated since that flight began. To forget takes a
//!   look at one part of the tags in [`PARTS`], so that nobody waits for long, however many there are.
//!
//! Does not know entries, flights or keys.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashTable;
use parking_lot::Mutex;
use triomphe::ThinArc;

/// Each has a lock of its own.
const PARTS: usize = 256;

/// Below so many tags of a part nothing is forgotten.
const FORGETS_FROM: usize = 8;

/// All tags of a cache.
pub(super) struct Tags {
    /// How many times a tag was invalidated: the present moment.
    now: AtomicU64,
    /// Chooses a tag's part.
    hasher: RandomState,
    parts: Box<[Mutex<Part>]>,
}

/// Some of the tags, by their hashes.
struct Part {
    known: HashTable<Tag>,
    /// When a tag that is forgotten was last invalidated.
    forgotten: u64,
    /// When there are so many, it is time to forget some.
    forgets_at: usize,
}

/// A tag: when it was last invalidated, and its name. A handle to what all who carry it share, in one piece, as there may be millions.
#[derive(Clone, Debug)]
struct Tag(ThinArc<AtomicU64, u8>);

/// The tags of an entry, and since when it is known. Clones are handles to the same.
#[derive(Clone, Debug)]
pub(super) struct Tagged(ThinArc<u64, Tag>);

impl Tags {
    pub(super) fn new() -> Self {
        Self {
            now: AtomicU64::new(0),
            hasher: RandomState::new(),
            parts: (0..PARTS).map(|_| Mutex::new(Part::new())).collect(),
        }
    }

    /// The one of this name.
    fn with<R>(&self, name: &str, with: impl FnOnce(&Tag) -> R) -> R {
        let hash = self.hasher.hash_one(name.as_bytes());
        // The table goes by the upper bits and the lowest.
        let mut part = self.parts[(hash >> 32) as usize % PARTS].lock();
        with(&part.tag(name, hash, &self.hasher))
    }

    /// The present moment. What is fetched from now on knows of all that was invalidated before.
    pub(super) fn now(&self) -> u64 {
        self.now.load(Ordering::Acquire)
    }

    /// What an entry with these tags remembers, whose fetch began at that moment.
    pub(super) fn tagged(&self, names: &[Arc<str>], since: u64) -> Tagged {
        let tags = names.iter().map(|name| self.with(name, Tag::clone));
        Tagged(ThinArc::from_header_and_iter(since, tags))
    }

    /// What has this tag and is known now does not hold any more.
    pub(super) fn invalidate(&self, name: &str) {
        self.with(name, |tag| {
            // Under the lock, so that of one tag the later moment is written later.
            let moment = self.now.fetch_add(1, Ordering::AcqRel) + 1;
            tag.invalidated_at().store(moment, Ordering::Release);
        });
    }

    /// How many are remembered.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.parts.iter().map(|part| part.lock().known.len()).sum()
    }
}

impl Part {
    fn new() -> Self {
        Self {
            known: HashTable::new(),
            forgotten: 0,
            forgets_at: FORGETS_FROM,
        }
    }

    fn tag(&mut self, name: &str, hash: u64, hasher: &RandomState) -> Tag {
        if let Some(tag) = self.known.find(hash, |tag| tag.name() == name.as_bytes()) {
            return tag.clone();
        }
        if self.known.len() >= self.forgets_at {
            self.forget(hasher);
        }
        let tag = Tag::new(name, self.forgotten);
        self.known
            .insert_unique(hash, tag.clone(), |tag| hasher.hash_one(tag.name()));
        tag
    }

    /// Forgets the tags that no entry carries.
    fn forget(&mut self, hasher: &RandomState) {
        let forgotten = &mut self.forgotten;
        self.known.retain(|tag| {
            let carried = tag.is_carried();
            if !carried {
                *forgotten = (*forgotten).max(tag.invalidated_at().load(Ordering::Relaxed));
            }
            carried
        });
        self.forgets_at = FORGETS_FROM.max(2 * self.known.len());
        self.known.shrink_to(self.forgets_at, |tag| hasher.hash_one(tag.name()));
    }
}

impl Tag {
    fn new(name: &str, invalidated_at: u64) -> Self {
        Self(ThinArc::from_header_and_slice(
            AtomicU64::new(invalidated_at),
            name.as_bytes(),
        ))
    }

    fn invalidated_at(&self) -> &AtomicU64 {
        &self.0.header.header
    }

    /// In UTF-8.
    fn name(&self) -> &[u8] {
        &self.0.slice
    }

    /// Whether there are handles to it beside this one.
    fn is_carried(&self) -> bool {
        ThinArc::strong_count(&self.0) > 1
    }
}

impl Tagged {
    fn since(&self) -> u64 {
        self.0.header.header
    }

    /// Whether none of the tags was invalidated since.
    pub(super) fn holds(&self) -> bool {
        let holds = |tag: &Tag| tag.invalidated_at().load(Ordering::Acquire) <= self.since();
        self.0.slice.iter().all(holds)
    }

    /// What they are called.
    pub(super) fn names(&self) -> Vec<Arc<str>> {
        let name = |tag: &Tag| std::str::from_utf8(tag.name()).expect("made of a str").into();
        self.0.slice.iter().map(name).collect()
    }

    /// Whether it holds for somebody who asked at that moment, before it had come: as far as can be told, it was not invalidated between its
    /// fetch's beginning and then.
    pub(super) fn held_at(&self, moment: u64) -> bool {
        moment <= self.since() || self.holds()
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<Arc<str>> {
        names.iter().map(|name| Arc::from(*name)).collect()
    }

    #[test]
    fn what_was_known_before_does_not_hold_and_what_is_known_after_does() {
        let tags = Tags::new();
        let before = tags.now();
        let old = tags.tagged(&names(&["a", "b"]), before);
        let other = tags.tagged(&names(&["c"]), before);
        assert!(old.holds());
        tags.invalidate("b");
        // One that had begun before, and comes after.
        let late = tags.tagged(&names(&["b"]), before);
        let new = tags.tagged(&names(&["a", "b"]), tags.now());
        assert_eq!(
            (old.holds(), late.holds(), new.holds(), other.holds()),
            (false, false, true, true)
        );
        tags.invalidate("a");
        assert!(!new.holds());
    }

    #[test]
    fn who_asked_before_is_answered_and_who_asked_after_is_not() {
        let tags = Tags::new();
        let began = tags.now();
        tags.invalidate("a");
        let asked = tags.now();
        let late = tags.tagged(&names(&["a"]), began);
        assert!(late.held_at(began) && !late.held_at(asked));
        let other = tags.tagged(&names(&["b"]), began);
        assert!(other.held_at(asked));
    }

    #[test]
    fn a_tag_that_nobody_carries_is_forgotten_and_what_was_on_its_way_does_not_hold() {
        let tags = Tags::new();
        let began = tags.now();
        let kept: Vec<_> = (0..100)
            .map(|n| tags.tagged(&names(&[&format!("kept{n}")]), began))
            .collect();
        for n in 0..10_000 {
            tags.invalidate(&format!("tag{n}"));
        }
        assert!(
            tags.len() <= PARTS * FORGETS_FROM + 2 * kept.len(),
            "{} are remembered",
            tags.len()
        );
        assert!(kept.iter().all(Tagged::holds), "others are not concerned");
        assert!(!tags.tagged(&names(&["tag5"]), began).holds());
        assert!(tags.tagged(&names(&["tag5"]), tags.now()).holds());
        tags.invalidate("kept7");
        assert_eq!(kept.iter().filter(|kept| kept.holds()).count(), 99);
    }
}
