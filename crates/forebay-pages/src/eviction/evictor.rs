//! How pages leave memory, one caller at a time.
//!
//! Promises: pages are evicted in batches, each of which returns its memory to the system in one call. A page that is leaving has
//! left when the evictor's lock can be taken. A mapping is known as long as its pages have frames or somebody has it open, and is
//! forgotten, its file closed, when neither holds.
//!
//! Locks, in this order, each of which may be left out: `turn` or `held_of_late`, `policy`, the files, the loads of a mapping.
//!
//! Knows nothing of I/O, and of how reads wait.

use std::io;
use std::mem;
use std::ops::Range;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};

use super::policy::queues::Pages;
use super::policy::{PageName, Policy};
use crate::memory::files::Files;
use crate::memory::frames::FrameBudget;
use crate::memory::mapping::{Mapping, MappingContext, Outdated};
use crate::memory::region;
use crate::memory::uses::Look;
use crate::memory::word::{Judgement, State, Word};
use crate::stats::Counters;

/// The most that is given back to the system at a time: a reader that wants one of these pages again waits that long.
const BATCH_BYTES: usize = 8 << 20;
/// How many words are looked at while the lock is held.
const WORDS_AT_ONCE: usize = 1 << 16;

/// What part of the pool's memory the page tables of empty windows may take beside it: to give each back at once made a scan slower by a
/// tenth.
const EMPTY_WINDOWS_SHARE: usize = 64;
/// So many there may be in any case.
const EMPTY_WINDOWS_MIN: usize = 16;

/// A count of the pages that are held serves for so long, and for so many times as long as it took: who is refused for want of memory is
/// seldom alone.
const COUNT_SERVES: (Duration, u32) = (Duration::from_millis(10), 20);

/// Pages of a mapping that are leaving.
struct Departure {
    mapping: Arc<Mapping>,
    pages: Vec<u32>,
}

/// The pool's pages, as the policy sees them.
struct PoolPages<'a> {
    files: &'a Files,
    /// Neighbours in a queue are often of one file.
    last: Option<&'a Mapping>,
    taken: Vec<PageName>,
}

impl<'a> PoolPages<'a> {
    fn of(files: &'a Files) -> Self {
        Self {
            files,
            last: None,
            taken: Vec::new(),
        }
    }

    fn word(&mut self, name: PageName) -> Option<&'a Word> {
        if self.last.is_none_or(|last| last.id != name.mapping) {
            self.last = self.files.by_id(name.mapping).map(|mapping| &**mapping);
        }
        self.last.map(|mapping| mapping.word(name.page))
    }
}

impl Pages<PageName> for PoolPages<'_> {
    fn look(&mut self, name: PageName) -> Look {
        let Some(word) = self.word(name) else {
            return Look::Gone;
        };
        let look = word.look();
        if look == Look::Gone {
            word.dequeue();
        }
        look
    }

    fn spend(&mut self, name: PageName) {
        if let Some(word) = self.word(name) {
            word.spend();
        }
    }

    fn take(&mut self, name: PageName) -> bool {
        let Some(word) = self.word(name).filter(|word| word.take() == Judgement::Taken) else {
            return false;
        };
        word.dequeue();
        self.taken.push(name);
        true
    }
}

/// Evicts the pages of a pool.
pub(crate) struct Evictor {
    frames: Arc<FrameBudget>,
    outdated: Arc<Outdated>,
    files: Arc<RwLock<Files>>,
    counters: Arc<Counters>,
    /// How many pages leave at a time.
    batch: usize,
    policy: Mutex<Policy>,
    /// Windows that were left empty, by the ids of their mappings, with their page tables.
    empty_windows: Mutex<Vec<(u32, u32)>>,
    max_empty_windows: usize,
    /// Held from taking pages until they have left.
    turn: Mutex<()>,
    /// How many pages were held when they were last counted for who was refused, and until when that serves.
    held_of_late: Mutex<Option<(usize, Instant)>>,
    /// Held while idle files are closed: of two at a time each would take the other's look at them for a use.
    closing_idle: Mutex<()>,
}

impl Evictor {
    pub(crate) fn new(context: &MappingContext, files: Arc<RwLock<Files>>, counters: Arc<Counters>) -> Self {
        let memory = context.frames.capacity.saturating_mul(context.page_size);
        Self {
            frames: Arc::clone(&context.frames),
            outdated: Arc::clone(&context.outdated),
            files,
            counters,
            batch: (BATCH_BYTES / context.page_size).max(1),
            policy: Mutex::new(Policy::new(Arc::clone(&context.notes))),
            empty_windows: Mutex::default(),
            max_empty_windows: (memory / region::system_page() / EMPTY_WINDOWS_SHARE).max(EMPTY_WINDOWS_MIN),
            turn: Mutex::default(),
            held_of_late: Mutex::default(),
            closing_idle: Mutex::default(),
        }
    }

    /// Has `wake` called when frames run out; what it wakes is to call `make_room`.
    pub(crate) fn set_sweeper(&self, wake: impl Fn() + Send + Sync + 'static) {
        self.frames.set_sweeper(wake);
    }

    /// Evicts until there are frames enough for those who wait, and for the reserve; or until nothing can be evicted. Then the next
    /// pin that is released, and the next page that is loaded, calls for it again.
    pub(crate) fn make_room(&self) {
        let mut may_withhold = true;
        loop {
            if may_withhold {
                self.frames.withhold();
            }
            let shortfall = self.frames.shortfall().min(self.batch);
            if shortfall == 0 {
                self.frames.ignore_pins();
                return;
            }
            if self.evict(shortfall) > 0 {
                continue;
            }
            if !self.frames.has_waiters() {
                return;
            }
            // Not to be withheld again before whoever waits has had its turn.
            if mem::take(&mut may_withhold) && self.frames.withhold_nothing() {
                continue;
            }
            self.frames.await_pins();
            // A pin may have been released just before that was said.
            if self.evict(shortfall) == 0 {
                return;
            }
        }
    }

    /// Drops pages of retired mappings, which are of no use to anybody once they are not held.
    pub(crate) fn drop_outdated(&self) {
        for (mapping, pages) in self.outdated.take() {
            self.drop_pages(&mapping, pages);
            self.forget_if_idle(mapping);
        }
    }

    /// These pages of a mapping are resident now.
    pub(crate) fn entered(&self, mapping: &Mapping, pages: Vec<u32>) {
        let mut policy = self.policy.lock();
        {
            let files = self.files.read();
            let mut others = PoolPages::of(&files);
            let now = policy.loaded(pages.len());
            for page in pages {
                let name = PageName {
                    mapping: mapping.id,
                    page,
                };
                let (is_new, before) = mapping.word(page).enter(now);
                // A page that left without the policy knowing still has its name in a queue.
                policy.entered(name, before, is_new, &mut others);
            }
        }
        if policy.len() > 2 * self.frames.capacity {
            self.tidy(&mut policy);
        }
    }

    /// Takes names out of the policy's queues whose pages are not there.
    fn tidy(&self, policy: &mut Policy) {
        let files = self.files.read();
        policy.forget(|name| {
            let Some(mapping) = files.by_id(name.mapping) else {
                return true;
            };
            let word = mapping.word(name.page);
            let is_gone = word.state() != State::Resident;
            if is_gone {
                word.dequeue();
            }
            is_gone
        });
    }

    /// Evicts up to so many pages, in the policy's order. Returns how many.
    fn evict(&self, wanted: usize) -> usize {
        // Dropped behind the lock: with its last page goes a mapping, and with that the user's code.
        let taken;
        let _turn = self.turn.lock();
        taken = self.take(wanted);
        self.release(&taken)
    }

    /// Takes up to so many pages, which are leaving from now on.
    fn take(&self, wanted: usize) -> Vec<Departure> {
        let mut policy = self.policy.lock();
        let files = self.files.read();
        let mut pages = PoolPages::of(&files);
        policy.make_room(wanted, &mut pages);
        let mut taken = pages.taken;
        taken.sort_unstable_by_key(|name| (name.mapping, name.page));
        taken
            .chunk_by(|one, next| one.mapping == next.mapping)
            .map(|names| {
                let mapping = files.by_id(names[0].mapping).expect("a page of it was just taken");
                Departure {
                    mapping: Arc::clone(mapping),
                    pages: names.iter().map(|name| name.page).collect(),
                }
            })
            .collect()
    }

    /// Drops these pages of a mapping, however much they were used. Returns whether certainly none of them is left, pinned or loading.
    pub(crate) fn drop_pages(&self, mapping: &Arc<Mapping>, pages: Range<u32>) -> bool {
        if pages.len() <= 2 * self.frames.capacity + WORDS_AT_ONCE {
            return self.drop_each(mapping, pages);
        }
        // Of a file far larger than the pool only what is in memory is looked at, which leaves out what is still loading.
        let is_of_it = |name: &&PageName| name.mapping == mapping.id && pages.contains(&name.page);
        let mut there: Vec<u32> = self
            .policy
            .lock()
            .names()
            .filter(is_of_it)
            .map(|name| name.page)
            .collect();
        there.sort_unstable();
        self.drop_each(mapping, there.into_iter()) && mapping.taken() == 0
    }

    fn drop_each(&self, mapping: &Arc<Mapping>, pages: impl Iterator<Item = u32>) -> bool {
        let mut none_left = true;
        let mut left = pages.peekable();
        // In parts: whoever waits for the lock waits for one of them. A mapping without frames has nothing to drop.
        while left.peek().is_some() && mapping.taken() > 0 {
            none_left &= self.drop_some(mapping, &mut left);
        }
        none_left
    }

    /// Takes the first of these pages from the iterator and drops them.
    fn drop_some(&self, mapping: &Arc<Mapping>, pages: &mut impl Iterator<Item = u32>) -> bool {
        let _turn = self.turn.lock();
        let mut none_left = true;
        let mut taken = Vec::new();
        for page in pages.take(WORDS_AT_ONCE) {
            let word = mapping.word(page);
            match word.take() {
                Judgement::Taken => taken.push(page),
                Judgement::Gone => {}
                // Not to be asked again: by then it may be resident.
                Judgement::Loading | Judgement::Pinned => none_left = false,
            }
            if taken.len() == self.batch {
                break;
            }
        }
        self.release(&[Departure {
            mapping: Arc::clone(mapping),
            pages: taken,
        }]);
        none_left
    }

    /// Drops all pages that nobody holds.
    pub(crate) fn clear(&self) {
        let mappings: Vec<Arc<Mapping>> = self.files.read().all().cloned().collect();
        for mapping in mappings {
            if mapping.taken() > 0 {
                self.drop_pages(&mapping, mapping.pages());
            }
            self.forget_if_idle(mapping);
        }
    }

    /// The taken pages leave, and their frames are free. Returns how many.
    fn release(&self, taken: &[Departure]) -> usize {
        let mut memory = taken
            .iter()
            .flat_map(|Departure { mapping, pages }| pages.iter().map(|page| mapping.memory(*page)))
            .collect();
        // SAFETY: the mappings live; a page that is leaving is nobody's but the evictor's.
        unsafe { region::discard(&mut memory) };
        let mut count = 0;
        for Departure { mapping, pages } in taken {
            for page in pages {
                mapping.word(*page).finish_leaving();
            }
            self.left_empty(mapping, pages.iter().copied());
            mapping.give_back(pages.len());
            count += pages.len();
            if mapping.taken() == 0 {
                // The two expected owners: the table and this list.
                let _forgotten = self.files.write().forget_if_idle(mapping.id, 2);
            }
        }
        self.counters.evicted(count);
        count
    }

    /// These pages, in order, are absent now, and perhaps all others in their windows of the address space. There a page table is left,
    /// which is given back when there are so many that it is worth it.
    pub(crate) fn left_empty(&self, mapping: &Mapping, pages: impl Iterator<Item = u32>) {
        let windows = mapping.empty_windows(pages);
        let empty = {
            let mut empty = self.empty_windows.lock();
            empty.extend(windows.into_iter().map(|window| (mapping.id, window)));
            if empty.len() > self.max_empty_windows {
                // Some are here more than once, as they were filled and left empty again.
                empty.sort_unstable();
                empty.dedup();
            }
            if empty.len() <= self.max_empty_windows {
                return;
            }
            mem::take(&mut *empty)
        };
        for windows in empty.chunk_by(|(one, _), (next, _)| one == next) {
            // Who is not known any more has no windows any more.
            let mapping = self.files.read().by_id(windows[0].0).cloned();
            if let Some(mapping) = mapping {
                let windows: Vec<u32> = windows.iter().map(|(_, window)| *window).collect();
                mapping.renew_windows(&windows);
                // It may be the last owner, and must not be dropped under the locks that are held here.
                mapping.leave_to_sweeper(0..0);
            }
        }
    }

    /// Blocks until the pages that are leaving have left, which takes as long as the kernel needs for one batch.
    pub(crate) fn wait(&self) {
        drop(self.turn.lock());
    }

    /// Opens something; if no file descriptors are left, again after closing idle files, as long as there are any.
    pub(crate) fn with_descriptors<T>(&self, open: impl Fn() -> io::Result<T>) -> io::Result<T> {
        let has_none_left = |opened: &io::Result<T>| {
            let code = opened.as_ref().err().and_then(io::Error::raw_os_error);
            matches!(code, Some(libc::EMFILE | libc::ENFILE))
        };
        let mut opened = open();
        if has_none_left(&opened) {
            let _turn = self.closing_idle.lock();
            // Whoever had the turn before may have left some; and others open files meanwhile.
            opened = open();
            // Files that nobody has open here are kept for their pages in memory: they go before this one fails.
            while has_none_left(&opened) && self.close_idle() {
                opened = open();
            }
        }
        opened
    }

    /// Closes files that nobody has open here, at the price of their pages in memory. Whether there were any.
    fn close_idle(&self) -> bool {
        let idle: Vec<Arc<Mapping>> = {
            let files = self.files.read();
            files
                .all()
                .filter(|mapping| Arc::strong_count(mapping) == 1)
                .cloned()
                .collect()
        };
        let mut are_any = false;
        for mapping in idle {
            self.drop_pages(&mapping, mapping.pages());
            are_any |= self.forget_if_idle(mapping);
        }
        are_any
    }

    /// How many pages are held by views and reads, now or a moment ago.
    pub(crate) fn pinned_pages_of_late(&self, now: Instant) -> usize {
        let mut held_of_late = self.held_of_late.lock();
        if let Some((held, until)) = *held_of_late
            && now < until
        {
            return held;
        }
        let began = Instant::now();
        let held = self.pinned_pages();
        let (least, times) = COUNT_SERVES;
        let took = began.elapsed();
        *held_of_late = Some((held, now + took + (took * times).max(least)));
        held
    }

    /// How many pages are held by views and reads. Looks at all names.
    pub(crate) fn pinned_pages(&self) -> usize {
        let policy = self.policy.lock();
        let files = self.files.read();
        let is_pinned = |name: &&PageName| {
            files
                .by_id(name.mapping)
                .is_some_and(|mapping| mapping.word(name.page).is_pinned())
        };
        policy.names().filter(is_pinned).count()
    }

    /// The caller is done with a mapping: if nobody else has it and none of its pages is in memory, its file is closed.
    pub(crate) fn forget_if_idle(&self, mapping: Arc<Mapping>) -> bool {
        if mapping.taken() > 0 {
            return false;
        }
        let id = mapping.id;
        drop(mapping);
        let forgotten = self.files.write().forget_if_idle(id, 1);
        forgotten.is_some()
    }
}

#[cfg(all(test, not(forebay_loom)))]
impl Evictor {
    /// How many names the policy has.
    pub(crate) fn names(&self) -> usize {
        self.policy.lock().names().count()
    }
}

impl Drop for Evictor {
    fn drop(&mut self) {
        // The sweeper finds its evictor gone, and ends.
        self.frames.wake_sweeper();
        self.outdated.close();
        debug_assert!(thread::panicking() || self.frames.taken() <= self.frames.capacity);
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use super::*;
    use crate::memory::pins::Pins;
    use crate::testing::SmallPool;

    #[test]
    fn of_those_who_are_refused_together_one_counts_what_is_held() {
        let pool = SmallPool::start(16);
        let files = Arc::<RwLock<Files>>::default();
        let mapping = files.write().succeed(pool.mapping_of_zeros(4 * 4096));
        let evictor = Evictor::new(&pool.context, files, Arc::default());
        for page in mapping.pages() {
            mapping.word(page).begin_load();
            mapping.word(page).finish_load();
        }
        evictor.entered(&mapping, mapping.pages().collect());
        let pins = Pins::take(&mapping, 0..2, &mut Vec::new());
        let now = Instant::now();
        assert_eq!(evictor.pinned_pages_of_late(now), 2);
        drop(pins);
        assert_eq!(evictor.pinned_pages(), 0);
        assert_eq!(evictor.pinned_pages_of_late(now), 2, "it is not counted again");
        assert_eq!(evictor.pinned_pages_of_late(now + Duration::from_secs(3600)), 0);
    }
}
