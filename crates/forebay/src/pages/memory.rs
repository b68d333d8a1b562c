//! The pool's memory in frames, one a page: who may take some, who waits, and when the sweeper is needed.
//!
//! Promises: never more frames are out than there are. Who waits is served in the order of asking, and gets all that was asked
//! for at once, so nobody holds a part while waiting for the rest. A frame is out from before its page begins to load until its
//! memory is back with the system. Giving up (dropping the future) leaves nothing behind.
//!
//! Knows neither pages nor files.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::thread::Thread;
use std::time::Duration;

use tokio::sync::Semaphore;

/// The frames, and the sweeper's bell.
pub(crate) struct Memory {
    /// How many frames there are.
    pub(crate) capacity: usize,
    /// How many the sweeper keeps free, so that reads rarely wait for it.
    reserve: usize,
    free: Semaphore,
    /// 0 <= taken <= capacity.
    taken: AtomicUsize,
    /// The frames that all who wait have asked for.
    wanted: AtomicUsize,
    /// The sweeper found less than was wanted, and is to be told when a pin is given back.
    starved: AtomicBool,
    sweeper: OnceLock<Thread>,
}

/// Frames taken by somebody, and not yet by pages. Dropping it gives them back.
#[must_use]
pub(crate) struct Frames<'a> {
    memory: &'a Memory,
    count: usize,
}

impl Memory {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            reserve: (capacity / 32).min(1024),
            free: Semaphore::new(capacity),
            taken: AtomicUsize::new(0),
            wanted: AtomicUsize::new(0),
            starved: AtomicBool::new(false),
            sweeper: OnceLock::new(),
        }
    }

    /// Who is to be woken when frames run out.
    pub(crate) fn sweeper_is(&self, thread: Thread) {
        // There is one sweeper a pool; a second would be told nothing.
        let _ = self.sweeper.set(thread);
    }

    pub(crate) fn wake_sweeper(&self) {
        if let Some(sweeper) = self.sweeper.get() {
            sweeper.unpark();
        }
    }

    /// Frames that are out.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// So many frames if they are free and nobody waits.
    pub(crate) fn try_take(&self, count: usize) -> Option<Frames<'_>> {
        let permits = self.free.try_acquire_many(narrow(count)).ok()?;
        permits.forget();
        Some(self.took(count))
    }

    /// So many frames, when their turn has come; `None` if it has not come in time.
    ///
    /// # Cancel safety
    /// Dropping it gives up the place in line.
    pub(crate) async fn take(&self, count: usize, limit: Duration) -> Option<Frames<'_>> {
        debug_assert!(count <= self.capacity, "more than there are would wait for ever");
        let _wanting = Wanting::of(self, count);
        let permits = tokio::time::timeout(limit, self.free.acquire_many(narrow(count)))
            .await
            .ok()?
            .expect("this semaphore is never closed");
        permits.forget();
        Some(self.took(count))
    }

    fn took(&self, count: usize) -> Frames<'_> {
        let before = self.taken.fetch_add(count, Ordering::Relaxed);
        debug_assert!(before + count <= self.capacity, "never more than there are");
        if before + count + self.reserve / 2 > self.capacity {
            self.wake_sweeper();
        }
        Frames { memory: self, count }
    }

    /// So many frames are free again: their pages' memory is back with the system.
    pub(crate) fn give_back(&self, count: usize) {
        // Counted before it can be taken again, so that `taken` never shows more than there are.
        let before = self.taken.fetch_sub(count, Ordering::Relaxed);
        debug_assert!(before >= count, "what is given back was taken");
        self.free.add_permits(count);
    }

    /// How many pages should be evicted now: for those who wait, and to keep the reserve. `idle`: somebody asked for frames since.
    pub(crate) fn lacking(&self) -> usize {
        (self.taken() + self.wanted.load(Ordering::Relaxed) + self.reserve).saturating_sub(self.capacity)
    }

    /// Whether anybody waits for frames.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) > 0
    }

    /// Says that pins are waited for. The sweeper must look once more after this, since one may just have been given back.
    pub(crate) fn starve(&self) {
        self.starved.store(true, Ordering::SeqCst);
        // Either the next look of the sweeper sees the page without its pin, or who gave it back sees this.
        fence(Ordering::SeqCst);
    }

    pub(crate) fn is_fed(&self) {
        self.starved.store(false, Ordering::Relaxed);
    }

    /// A page may have become one that can be evicted. To be called after pins were given back, once for many.
    #[inline]
    pub(crate) fn pins_went(&self) {
        fence(Ordering::SeqCst);
        if self.starved.load(Ordering::Relaxed) {
            self.feed();
        }
    }

    #[cold]
    fn feed(&self) {
        if self.starved.swap(false, Ordering::Relaxed) {
            self.wake_sweeper();
        }
    }
}

impl Frames<'_> {
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Takes some of them for pages, which give them back when they are gone.
    pub(crate) fn spend(&mut self, count: usize) {
        self.count = self.count.checked_sub(count).expect("no more frames are spent than were taken");
    }

    /// These and others are one.
    pub(crate) fn join(&mut self, mut others: Frames<'_>) {
        self.count += others.count;
        others.count = 0;
    }
}

impl Drop for Frames<'_> {
    fn drop(&mut self) {
        if self.count > 0 {
            self.memory.give_back(self.count);
        }
    }
}

/// While it lives, the sweeper knows that somebody waits for so many frames.
struct Wanting<'a> {
    memory: &'a Memory,
    count: usize,
}

impl<'a> Wanting<'a> {
    fn of(memory: &'a Memory, count: usize) -> Self {
        memory.wanted.fetch_add(count, Ordering::Relaxed);
        memory.wake_sweeper();
        Self { memory, count }
    }
}

impl Drop for Wanting<'_> {
    fn drop(&mut self) {
        self.memory.wanted.fetch_sub(self.count, Ordering::Relaxed);
    }
}

/// The builder admits no more frames than this can say.
fn narrow(count: usize) -> u32 {
    u32::try_from(count).expect("no pool has more frames than 32 bits can count")
}
