//! One file as it was when it was opened: its place in memory, its pages' words, its loads.
//!
//! Promises: page n of the file has one place, for as long as the mapping lives; what is pinned and resident there is the file's
//! bytes. When the file has changed the mapping is *retired*: it serves those who have it, and a successor serves everybody else.
//! Dropping the last owner releases the address space, so whoever has an address in it owns the mapping: views, loads.
//!
//! Knows nothing of other files, of I/O and of which page is evicted when.

use std::ops::Range;
use std::path::Path;
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};

use super::frames::FrameBudget;
use super::loads::Loads;
use super::notes::Notes;
use super::region::{MemoryRange, Region};
use super::tables::Tables;
use super::word::{State, Word, Words};
use crate::checksum::{Checksums, Verifier};
use crate::error::PageError;
use crate::storage::StoredFile;
use crate::storage::identity::{FileId, Identity};

/// How many windows are renewed while no load of the file can begin.
const WINDOWS_AT_ONCE: usize = 16;

/// What all mappings of a pool share.
#[derive(Clone)]
pub(crate) struct MappingContext {
    /// In bytes.
    pub(crate) page_size: usize,
    pub(crate) frames: Arc<FrameBudget>,
    pub(crate) notes: Arc<Notes>,
    pub(crate) outdated: Arc<Outdated>,
}

/// A file's place in memory.
pub(crate) struct Mapping {
    /// What the policy calls it.
    pub(crate) id: u32,
    pub(crate) path: Arc<Path>,
    pub(crate) file: Arc<dyn StoredFile>,
    /// For those who use its pages.
    pub(crate) notes: Arc<Notes>,
    /// Of the file, in bytes.
    pub(crate) length: u64,
    identity: Mutex<Identity>,
    /// None of its pages was read before.
    created: Instant,
    checked: Option<(Checksums, Verifier)>,
    page_size: usize,
    region: Region,
    words: Words,
    loads: Mutex<Loads>,
    /// Of its windows. Changed under the lock of the loads.
    tables: Mutex<Tables>,
    /// How many frames its pages have: loading, resident or leaving.
    taken: AtomicUsize,
    retired: AtomicBool,
    /// Set before `retired`; the newest one at the time when it was set last.
    successor: Mutex<Option<Arc<Mapping>>>,
    frames: Arc<FrameBudget>,
    outdated: Arc<Outdated>,
}

/// Pages of retired mappings that nobody holds any more, for the sweeper to drop.
#[derive(Default)]
pub(crate) struct Outdated(Mutex<OutdatedList>);

#[derive(Default)]
struct OutdatedList {
    parts: Vec<(Arc<Mapping>, Range<u32>)>,
    /// The pool is gone and nobody takes anything from here: what is added would keep itself alive.
    is_closed: bool,
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
    /// Of an open file; all of its pages are absent.
    pub(crate) fn new(
        context: &MappingContext,
        id: u32,
        path: Arc<Path>,
        file: Arc<dyn StoredFile>,
        checked: Option<(Checksums, Verifier)>,
    ) -> Result<Self, PageError> {
        let page_size = context.page_size;
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
        let region = Region::reserve_windows(space as usize).map_err(no_space)?;
        let words = Words::absent(pages as usize).map_err(no_space)?;
        Ok(Self {
            id,
            path,
            file,
            notes: Arc::clone(&context.notes),
            length,
            identity: Mutex::new(identity),
            created: Instant::now(),
            checked,
            page_size,
            region,
            words,
            loads: Mutex::default(),
            tables: Mutex::default(),
            taken: AtomicUsize::new(0),
            retired: AtomicBool::new(false),
            successor: Mutex::default(),
            frames: Arc::clone(&context.frames),
            outdated: Arc::clone(&context.outdated),
        })
    }

    /// Which file it is in its storage.
    pub(crate) fn file_id(&self) -> FileId {
        self.file.identity().file
    }

    /// What the file was when it was last found to have the bytes that are served here.
    pub(crate) fn identity(&self) -> Identity {
        *self.identity.lock()
    }

    /// Whether it has the bytes of the file that was found to be `now`, by who began to look at `began`.
    pub(crate) fn shows(&self, now: &Identity, began: Instant) -> bool {
        let known = self.identity();
        // All that is read since then is what the file was then, or later.
        known.is_unchanged(now) || (known.is_same(now) && self.created > began)
    }

    /// The file was found to be this, and whatever has changed in it was dropped; or, if `everything`, all that was read before.
    pub(crate) fn found(&self, identity: Identity, everything: bool) {
        let mut known = self.identity.lock();
        if known.file == identity.file && known.length == identity.length {
            // What remains may be from before a change that the identity known so far does not show.
            let is_settled = identity.is_settled && (everything || known.is_settled);
            *known = Identity { is_settled, ..identity };
        }
    }

    /// The checksums that its pages are verified against, and their verifier.
    pub(crate) fn checked(&self) -> Option<(Checksums, Verifier)> {
        self.checked.clone()
    }

    /// Whether its pages are verified against these checksums, or none are asked for.
    pub(crate) fn is_checked_by(&self, checksums: Option<&Checksums>) -> bool {
        checksums.is_none_or(|asked| self.checked.as_ref().is_some_and(|(own, _)| own.are(asked)))
    }

    /// Whether its pages are verified against a side file, which changes when the file does.
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

    /// The words of neighbouring pages.
    #[inline]
    pub(crate) fn words(&self, pages: &Range<u32>) -> &[Word] {
        &self.words[pages.start as usize..pages.end as usize]
    }

    /// Where the page begins in the file, in bytes.
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
    pub(crate) fn memory(&self, page: u32) -> MemoryRange {
        let start = self.offset(page) as usize;
        self.region.range(start..start + self.page_size)
    }

    /// The windows of the address space, in order, where these pages are, in order, and no page has memory. None, if the file is so small
    /// that it shares its window with others.
    pub(crate) fn empty_windows(&self, pages: impl Iterator<Item = u32>) -> Vec<u32> {
        let Some(window) = self.region.window() else {
            return Vec::new();
        };
        let mut empty: Vec<u32> = pages.map(|page| page / self.window_pages(window)).collect();
        empty.dedup();
        empty.retain(|number| self.is_empty(window, *number));
        empty
    }

    /// Gives back the page tables of those of these windows, in order, in which no page has memory.
    pub(crate) fn renew_windows(&self, windows: &[u32]) {
        let Some(window) = self.region.window() else { return };
        let page_windows = self.page_size.div_ceil(window);
        for neighbours in windows.chunk_by(|one, next| one + 1 == *next) {
            for some in neighbours.chunks(WINDOWS_AT_ONCE) {
                // Under this lock no load begins, and an absent page's memory is touched by loads alone.
                let _loads = self.loads();
                for empty in some.split(|number| !self.is_empty(window, *number)) {
                    if let (Some(first), Some(last)) = (empty.first(), empty.last()) {
                        let windows = *first as usize * page_windows..(*last as usize + 1) * page_windows;
                        // SAFETY: nobody has a reference to, or a transfer into, a page that is absent.
                        unsafe { self.region.renew(windows) };
                        let mut tables = self.tables.lock();
                        let gone = (*first..=*last).filter(|number| tables.remove(*number)).count();
                        self.frames.tables_gone(gone * page_windows);
                    }
                }
            }
        }
    }

    /// These pages are about to be loaded. Under the lock of the loads.
    pub(crate) fn will_touch(&self, pages: &Range<u32>) {
        let Some(window) = self.region.window() else { return };
        if pages.is_empty() {
            return;
        }
        let window_pages = self.window_pages(window);
        let mut tables = self.tables.lock();
        let windows = pages.start / window_pages..=(pages.end - 1) / window_pages;
        let new = windows.filter(|number| tables.add(*number)).count();
        self.frames.tables_added(new * self.page_size.div_ceil(window));
    }

    /// How many pages are in a window of so many bytes: one, if a page has many windows, which are counted as one then.
    fn window_pages(&self, window: usize) -> u32 {
        (window / self.page_size).max(1) as u32
    }

    /// Whether no page of this window has memory.
    fn is_empty(&self, window: usize, number: u32) -> bool {
        let pages = self.window_pages(window);
        let first = number * pages;
        let pages = first..first.saturating_add(pages).min(self.words.len() as u32);
        self.words(&pages).iter().all(|word| word.state() == State::Absent)
    }

    pub(crate) fn loads(&self) -> MutexGuard<'_, Loads> {
        self.loads.lock()
    }

    /// So many frames were spent on its pages.
    pub(crate) fn took(&self, frames: usize) {
        self.taken.fetch_add(frames, Ordering::Relaxed);
    }

    /// So many frames of its pages are free again.
    pub(crate) fn give_back(&self, frames: usize) {
        let before = self.taken.fetch_sub(frames, Ordering::Release);
        debug_assert!(before >= frames, "what is given back was taken");
        self.frames.give_back(frames);
    }

    /// How many frames its pages have.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }

    /// From now on `successor` serves new reads, and what nobody holds here is for the sweeper. Called again when that one is retired:
    /// otherwise a view of the first would keep them all.
    pub(crate) fn retire(self: &Arc<Self>, successor: Arc<Mapping>) {
        if self.successor.lock().replace(successor).is_some() {
            return;
        }
        self.retired.store(true, Ordering::Release);
        // Either the sweeper's look at all pages sees a page without its pin, or whoever released the pin sees the flag.
        fence(Ordering::SeqCst);
        self.leave_to_sweeper(self.pages());
    }

    /// Has the sweeper drop what nobody holds of these pages, and the mapping itself if nobody has it.
    pub(crate) fn leave_to_sweeper(self: &Arc<Self>, pages: Range<u32>) {
        self.outdated.add(self, pages);
        self.frames.wake_sweeper();
    }

    #[inline]
    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// The mapping that serves new reads.
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

    /// These pages may be evictable now. To be called after pins were released and after a load has ended.
    #[inline]
    pub(crate) fn pins_released(self: &Arc<Self>, pages: &Range<u32>) {
        self.frames.pins_released();
        // After the fence in there. Whoever releases the last pin of a page sees that nobody holds it.
        if self.retired.load(Ordering::Relaxed) && pages.clone().any(|page| !self.word(page).is_pinned()) {
            self.leave_to_sweeper(pages.clone());
        }
    }

    /// Checks that the words agree with what else is known of the mapping, while nothing happens to it; for tests.
    #[cfg(all(test, not(forebay_loom)))]
    pub(crate) fn validate(&self) {
        let resident = self
            .words
            .iter()
            .inspect(|word| assert!(matches!(word.state(), State::Absent | State::Resident)))
            .filter(|word| word.state() == State::Resident)
            .count();
        assert_eq!(resident, self.taken());
        assert!(self.loads().is_empty());
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if let Some(window) = self.region.window() {
            let tables = self.tables.get_mut().count();
            self.frames.tables_gone(tables * self.page_size.div_ceil(window));
        }
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use super::*;
    use crate::memory::pins::Pins;
    use crate::testing::SmallPool;

    fn land(mapping: &Mapping, pages: Range<u32>) {
        for page in pages {
            mapping.word(page).begin_load();
            mapping.word(page).finish_load();
        }
    }

    #[test]
    fn bytes_have_their_pages_and_the_last_page_is_as_long_as_the_file() {
        let pool = SmallPool::start(16);
        let mapping = pool.mapping_of_zeros(3 * 4096 + 5);
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
        let even = pool.mapping_of_zeros(2 * 4096);
        assert_eq!((even.pages(), even.pages_of(&(8192..8192))), (0..2, 2..2));
        let none = pool.mapping_of_zeros(0);
        assert_eq!((none.pages(), none.pages_of(&(0..0))), (0..0, 0..0));
    }

    #[test]
    fn who_asks_a_retired_one_is_led_to_the_last_and_its_pages_are_for_the_sweeper() {
        let pool = SmallPool::start(16);
        let [first, second, third] = [(); 3].map(|()| Arc::new(pool.mapping_of_zeros(8 * 4096)));
        land(&first, 2..4);
        let pins = Pins::take(&first, 2..4, &mut Vec::new());
        assert!(!first.is_retired() && Arc::ptr_eq(&first.latest(), &first));
        first.retire(Arc::clone(&second));
        second.retire(Arc::clone(&third));
        assert!(first.is_retired() && second.is_retired() && !third.is_retired());
        assert!(Arc::ptr_eq(&first.latest(), &third));
        // What is held is not dropped, and is as soon as it is let go. Its frames were never taken: they are not looked at here.
        assert!(pins.are_resident());
        first.took(2);
        pool.context.frames.try_take(2).expect("free").spend(2);
        drop(pins);
        let began = Instant::now();
        while first.taken() > 0 {
            assert!(began.elapsed().as_secs() < 60, "the sweeper was not told");
            std::thread::yield_now();
        }
        first.validate();
    }
}
