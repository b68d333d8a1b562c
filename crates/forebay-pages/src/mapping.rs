//! One file as it was when it was opened: its place in memory, its pages' words, its loads.
//!
//! Promises: page n of the file has one place, for as long as the mapping lives; what is pinned and resident there is the file's
//! bytes. When the file has changed the mapping is *retired*: it serves those who have it, and a successor serves all others.
//! Dropping the last owner gives the address space back, so whoever has an address in it owns the mapping: views, transfers.
//!
//! Knows nothing of other files, of I/O and of which page goes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};

use parking_lot::{Mutex, MutexGuard};

use super::PageError;
use super::checksum::{Checksums, Verifier};
use super::core::Core;
use super::io::{Identity, OpenFile};
use super::memory::Memory;
use super::region::{Region, Stretch};
use super::run::Run;
use super::word::{State, Word, Words};

/// A file's place in memory.
pub(crate) struct Mapping {
    /// What the policy calls it.
    pub(crate) id: u32,
    pub(crate) path: Arc<Path>,
    pub(crate) file: Arc<OpenFile>,
    /// Of the file, in bytes.
    pub(crate) length: u64,
    identity: Mutex<Identity>,
    checked: Option<(Checksums, Verifier)>,
    page_size: usize,
    region: Region,
    words: Words,
    loads: Mutex<Loads>,
    /// Frames that its pages have: loading, resident or leaving.
    taken: AtomicUsize,
    retired: AtomicBool,
    /// Set before `retired`; the newest there was when the last one came.
    successor: Mutex<Option<Arc<Mapping>>>,
    pub(crate) memory: Arc<Memory>,
    outdated: Arc<Outdated>,
}

/// Pages of retired mappings that nobody holds any more, for the sweeper.
#[derive(Default)]
pub(crate) struct Outdated(Mutex<OutdatedList>);

#[derive(Default)]
struct OutdatedList {
    parts: Vec<(Arc<Mapping>, Range<u32>)>,
    /// The pool is gone: nobody takes anything from here any more, so that what is put here would keep itself alive.
    is_closed: bool,
}

/// The runs in flight by the first page of each stretch that they load; stretches do not overlap.
#[derive(Default)]
pub(crate) struct Loads(BTreeMap<u32, (u32, Arc<Run>)>);

impl Loads {
    pub(crate) fn insert(&mut self, pages: Range<u32>, run: &Arc<Run>) {
        self.0.insert(pages.start, (pages.end, Arc::clone(run)));
    }

    pub(crate) fn remove(&mut self, pages: &Range<u32>) {
        let removed = self.0.remove(&pages.start);
        debug_assert!(
            removed.is_some_and(|(end, _)| end == pages.end),
            "removed by its own run"
        );
    }

    /// The run that brings this page.
    pub(crate) fn of(&self, page: u32) -> Option<&Arc<Run>> {
        let (_, (end, run)) = self.0.range(..=page).next_back()?;
        (page < *end).then_some(run)
    }
}

impl Outdated {
    pub(crate) fn take(&self) -> Vec<(Arc<Mapping>, Range<u32>)> {
        std::mem::take(&mut self.0.lock().parts)
    }

    /// There is no sweeper any more.
    pub(crate) fn close(&self) {
        self.0.lock().is_closed = true;
        // Not under the lock: it may be the end of mappings, and of what they own.
        drop(self.take());
    }

    fn add(&self, mapping: &Arc<Mapping>, pages: Range<u32>) {
        let mut list = self.0.lock();
        if !list.is_closed {
            list.parts.push((Arc::clone(mapping), pages));
        }
    }
}

impl Mapping {
    /// An open file's, all of whose pages are absent.
    pub(crate) fn new(
        core: &Core,
        id: u32,
        path: Arc<Path>,
        file: Arc<OpenFile>,
        checked: Option<(Checksums, Verifier)>,
    ) -> Result<Self, PageError> {
        let page_size = core.settings.page_size;
        let identity = file.identity();
        let length = identity.length;
        let pages = length.div_ceil(page_size as u64);
        if u32::try_from(pages).is_err() {
            return Err(PageError::Settings(
                "the file has more pages than 32 bits can count: use larger pages",
            ));
        }
        let space = pages * page_size as u64;
        let no_space = |cause| PageError::AddressSpace {
            path: Arc::clone(&path),
            length: space,
            cause: Arc::new(cause),
        };
        let region = Region::reserve(space as usize).map_err(no_space)?;
        let words = Words::absent(pages as usize).map_err(no_space)?;
        Ok(Self {
            id,
            path,
            file,
            length,
            identity: Mutex::new(identity),
            checked,
            page_size,
            region,
            words,
            loads: Mutex::default(),
            taken: AtomicUsize::new(0),
            retired: AtomicBool::new(false),
            successor: Mutex::default(),
            memory: Arc::clone(&core.memory),
            outdated: Arc::clone(&core.outdated),
        })
    }

    /// What the file was when it was last found to be what is served here.
    pub(crate) fn identity(&self) -> Identity {
        *self.identity.lock()
    }

    /// The file was found to be this, and what has changed of it is dropped.
    pub(crate) fn found(&self, identity: Identity) {
        let mut known = self.identity.lock();
        if known.is_same_file(&identity) && known.length == identity.length {
            *known = identity;
        }
    }

    /// The checksums that its pages are held against, and what does it.
    pub(crate) fn checked(&self) -> Option<(Checksums, Verifier)> {
        self.checked.clone()
    }

    /// Whether its pages are held against these checksums, or none are asked for.
    pub(crate) fn is_checked_by(&self, checksums: Option<&Checksums>) -> bool {
        checksums.is_none_or(|asked| self.checked.as_ref().is_some_and(|(own, _)| own.are(asked)))
    }

    /// Whether its pages are held against a side file, which changes when the file does.
    pub(crate) fn has_side_file(&self) -> bool {
        self.checked.as_ref().is_some_and(|(own, _)| own.are_a_side_file())
    }

    pub(crate) fn verifier(&self) -> Option<&Verifier> {
        self.checked.as_ref().map(|(_, verifier)| verifier)
    }

    /// All of its pages.
    pub(crate) fn pages(&self) -> Range<u32> {
        0..self.words.len() as u32
    }

    /// The pages in which these bytes are.
    #[inline]
    pub(crate) fn pages_of(&self, bytes: &Range<u64>) -> Range<u32> {
        let shift = self.page_size.trailing_zeros();
        if bytes.is_empty() {
            let at = (bytes.start >> shift) as u32;
            return at..at;
        }
        (bytes.start >> shift) as u32..((bytes.end - 1) >> shift) as u32 + 1
    }

    #[inline]
    pub(crate) fn word(&self, page: u32) -> &Word {
        &self.words[page as usize]
    }

    /// Where the page begins in the file.
    pub(crate) fn offset(&self, page: u32) -> u64 {
        u64::from(page) * self.page_size as u64
    }

    /// How many bytes of the file the page has: only the last one is not full.
    pub(crate) fn page_length(&self, page: u32) -> usize {
        (self.length - self.offset(page)).min(self.page_size as u64) as usize
    }

    /// Where in memory the file's byte at `offset` is, when its page is resident.
    #[inline]
    pub(crate) fn at(&self, offset: u64) -> NonNull<u8> {
        self.region.at(offset as usize)
    }

    /// The bytes of a page.
    ///
    /// # Safety
    /// The page is resident and pinned, or has been read and is still loading, for as long as the slice is used.
    pub(crate) unsafe fn bytes(&self, page: u32) -> &[u8] {
        // SAFETY: within the region, and as the caller promised, initialized and not written meanwhile.
        unsafe { slice::from_raw_parts(self.at(self.offset(page)).as_ptr(), self.page_length(page)) }
    }

    /// The page's memory, to be discarded.
    pub(crate) fn stretch(&self, page: u32) -> Stretch {
        let start = self.offset(page) as usize;
        self.region.stretch(start..start + self.page_size)
    }

    pub(crate) fn loads(&self) -> MutexGuard<'_, Loads> {
        self.loads.lock()
    }

    /// Its pages have got so many frames.
    pub(crate) fn took(&self, frames: usize) {
        self.taken.fetch_add(frames, Ordering::Relaxed);
    }

    /// So many frames of its pages are free again.
    pub(crate) fn give_back(&self, frames: usize) {
        let before = self.taken.fetch_sub(frames, Ordering::Release);
        debug_assert!(before >= frames, "what is given back was taken");
        self.memory.give_back(frames);
    }

    /// Frames that its pages have.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }

    /// Holds these pages, and adds those that are not resident to `missing`.
    #[inline]
    pub(crate) fn pin(self: &Arc<Self>, pages: Range<u32>, missing: &mut Vec<u32>) -> Pins {
        for (word, page) in self.words[pages.start as usize..pages.end as usize]
            .iter()
            .zip(pages.clone())
        {
            if !word.pin() {
                missing.push(page);
            }
        }
        Pins {
            mapping: Arc::clone(self),
            pages,
        }
    }

    /// From now on `successor` serves who asks, and what nobody holds here is for the sweeper. Again when that one is retired:
    /// else a view of the first would keep them all.
    pub(crate) fn retire(self: &Arc<Self>, successor: Arc<Mapping>) {
        if self.successor.lock().replace(successor).is_some() {
            return;
        }
        self.retired.store(true, Ordering::Release);
        // Either the sweeper's look at all pages sees a page without its pin, or who gave that back sees the flag.
        fence(Ordering::SeqCst);
        self.leave_to_sweeper(self.pages());
    }

    /// What nobody holds of these pages, and itself if nobody has it, is dropped soon.
    pub(crate) fn leave_to_sweeper(self: &Arc<Self>, pages: Range<u32>) {
        self.outdated.add(self, pages);
        self.memory.wake_sweeper();
    }

    #[inline]
    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// What serves those who ask now.
    pub(crate) fn latest(self: &Arc<Self>) -> Arc<Self> {
        let mut latest = Arc::clone(self);
        loop {
            let next = latest.successor.lock().clone();
            match next {
                Some(next) => latest = next,
                None => return latest,
            }
        }
    }

    /// These pages may have become free to go. To be called after pins were given back and after a load has landed.
    #[inline]
    pub(crate) fn pins_went(self: &Arc<Self>, pages: &Range<u32>) {
        self.memory.pins_went();
        // Behind the fence in there. The last one to give a page back sees that nobody holds it.
        if self.retired.load(Ordering::Relaxed) && pages.clone().any(|page| !self.word(page).is_pinned()) {
            self.leave_to_sweeper(pages.clone());
        }
    }

    /// Checks that every word fits to what is known of the mapping while nothing of it goes on; for tests.
    #[cfg(test)]
    pub(crate) fn validate(&self) {
        let resident = self
            .words
            .iter()
            .inspect(|word| assert!(matches!(word.state(), State::Absent | State::Resident)))
            .filter(|word| word.state() == State::Resident)
            .count();
        assert_eq!(resident, self.taken());
        assert!(self.loads().0.is_empty());
    }
}

/// Neighbouring pages that are held. Dropping it lets them go.
pub(crate) struct Pins {
    mapping: Arc<Mapping>,
    pages: Range<u32>,
}

impl Pins {
    pub(crate) fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    pub(crate) fn pages(&self) -> Range<u32> {
        self.pages.clone()
    }

    /// Some of these pages, held for themselves.
    pub(crate) fn part(&self, pages: Range<u32>) -> Self {
        assert!(
            self.pages.start <= pages.start && pages.end <= self.pages.end,
            "a part of what is held"
        );
        for page in pages.clone() {
            self.mapping.word(page).pin_again();
        }
        Self {
            mapping: Arc::clone(&self.mapping),
            pages,
        }
    }

    /// Whether all of them are resident: then their bytes may be read as long as this lives.
    pub(crate) fn are_resident(&self) -> bool {
        self.pages()
            .all(|page| self.mapping.word(page).state() == State::Resident)
    }
}

impl Drop for Pins {
    #[inline]
    fn drop(&mut self) {
        for word in &self.mapping.words[self.pages.start as usize..self.pages.end as usize] {
            word.unpin();
        }
        self.mapping.pins_went(&self.pages);
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use super::*;

    fn land(mapping: &Mapping, pages: Range<u32>) {
        for page in pages {
            mapping.word(page).begin();
            mapping.word(page).land();
        }
    }

    #[test]
    fn bytes_have_their_pages_and_the_last_page_is_as_long_as_the_file() {
        let core = Core::small(16);
        let mapping = core.mapping_of_zeros(3 * 4096 + 5);
        assert_eq!(mapping.pages(), 0..4);
        for (bytes, pages) in [
            (0..1, 0..1),
            (0..4096, 0..1),
            (4095..4097, 0..2),
            (4096..8192, 1..2),
            (0..12293, 0..4),
            (12292..12293, 3..4),
            (0..0, 0..0),
            (5000..5000, 1..1),
            (12293..12293, 3..3),
        ] {
            assert_eq!(mapping.pages_of(&bytes), pages, "{bytes:?}");
        }
        assert_eq!([2, 3].map(|page| mapping.page_length(page)), [4096, 5]);
        assert_eq!(mapping.offset(3), 12288);
        assert_eq!(mapping.at(12290).addr().get() - mapping.at(0).addr().get(), 12290);
        // At its end, where a page would begin.
        let even = core.mapping_of_zeros(2 * 4096);
        assert_eq!((even.pages(), even.pages_of(&(8192..8192))), (0..2, 2..2));
        let none = core.mapping_of_zeros(0);
        assert_eq!((none.pages(), none.pages_of(&(0..0))), (0..0, 0..0));
    }

    #[test]
    fn pins_say_what_is_missing_and_are_given_back_once() {
        let core = Core::small(16);
        let mapping = Arc::new(core.mapping_of_zeros(8 * 4096));
        land(&mapping, 1..3);
        land(&mapping, 5..6);
        let mut missing = Vec::new();
        let pins = mapping.pin(0..7, &mut missing);
        assert_eq!(missing, [0, 3, 4, 6]);
        assert!(!pins.are_resident() && pins.part(1..3).are_resident());
        let part = pins.part(2..3);
        drop(pins);
        let pinned = |mapping: &Mapping| -> Vec<u32> {
            mapping.pages().filter(|page| mapping.word(*page).is_pinned()).collect()
        };
        assert_eq!(pinned(&mapping), [2]);
        drop(part);
        assert_eq!(pinned(&mapping), [0_u32; 0]);
    }

    #[test]
    fn who_asks_a_retired_one_is_led_to_the_last_and_its_pages_are_for_the_sweeper() {
        let core = Core::small(16);
        let [first, second, third] = [(); 3].map(|()| Arc::new(core.mapping_of_zeros(8 * 4096)));
        land(&first, 2..4);
        let pins = first.pin(2..4, &mut Vec::new());
        assert!(!first.is_retired() && Arc::ptr_eq(&first.latest(), &first));
        first.retire(Arc::clone(&second));
        second.retire(Arc::clone(&third));
        assert!(first.is_retired() && second.is_retired() && !third.is_retired());
        assert!(Arc::ptr_eq(&first.latest(), &third));
        // What is held is not dropped, and is as soon as it is let go. Its frames were never taken: they are not looked at here.
        assert!(pins.are_resident());
        first.took(2);
        core.memory.try_take(2).expect("free").spend(2);
        drop(pins);
        let began = std::time::Instant::now();
        while first.taken() > 0 {
            assert!(began.elapsed().as_secs() < 60, "the sweeper was not told");
            std::thread::yield_now();
        }
        first.validate();
    }

    #[test]
    fn a_page_has_the_run_whose_stretch_it_is_in() {
        use crate::plan::{PlannedRun, Stretch};
        let core = Core::small(16);
        let mapping = Arc::new(core.mapping_of_zeros(16 * 4096));
        let mut frames = core.memory.try_take(6).expect("free");
        let mut loads = mapping.loads();
        let stretch = |pages, kept| Stretch { pages, kept };
        let mut begin = |stretches| {
            Run::begin(
                &mapping,
                &mut loads,
                PlannedRun { stretches, wanted: 1 },
                &mut frames,
                false,
            )
        };
        let one = begin(vec![stretch(2..4, true), stretch(4..5, false), stretch(5..6, true)]);
        let other = begin(vec![stretch(8..11, true)]);
        let of = |loads: &Loads, page| loads.of(page).map(|run| if Arc::ptr_eq(run, &one) { 1 } else { 2 });
        let all: Vec<u32> = (0..12).map(|page| of(&loads, page).unwrap_or(0)).collect();
        assert_eq!(all, [0, 0, 1, 1, 0, 1, 0, 0, 2, 2, 2, 0]);
        loads.remove(&(2..4));
        assert_eq!((of(&loads, 3), of(&loads, 5), of(&loads, 9)), (None, Some(1), Some(2)));
        assert_eq!((mapping.taken(), frames.count()), (6, 0));
        // Nothing lands here: they would stay in flight for ever.
        loads.remove(&(5..6));
        loads.remove(&(8..11));
        drop((loads, other));
        mapping.give_back(6);
    }
}
