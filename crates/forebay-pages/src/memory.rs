//! The pool's memory in frames, one a page: who may take some, who waits, and when the sweeper is needed.
//!
//! Promises: never more frames are out than there are. Who waits is served in the order of asking, and gets all that was asked
//! for at once, so nobody holds a part while waiting for the rest. A frame is out from before its page begins to load until its
//! memory is back with the system. Giving up (dropping the future) leaves nothing behind.
//!
//! Knows neither pages nor files.

use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use tokio::sync::Semaphore;

use super::sync::{AtomicBool, Ordering, fence};

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
    /// Wakes the sweeper.
    bell: OnceLock<Box<dyn Fn() + Send + Sync>>,
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
            bell: OnceLock::new(),
        }
    }

    /// How the sweeper is woken when frames run out.
    pub(crate) fn sweeper_is_woken_by(&self, bell: impl Fn() + Send + Sync + 'static) {
        // There is one sweeper a pool; a second would be told nothing.
        let _ = self.bell.set(Box::new(bell));
    }

    pub(crate) fn wake_sweeper(&self) {
        if let Some(bell) = self.bell.get() {
            bell();
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
            .ok()?;
        permits.expect("this semaphore is never closed").forget();
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

    /// How many pages should be evicted now: for those who wait, and to keep the reserve.
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
        self.count = self
            .count
            .checked_sub(count)
            .expect("no more frames are spent than were taken");
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

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::task::Poll;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// Memory, and how often its sweeper was woken.
    fn watched(capacity: usize) -> (Memory, Arc<AtomicUsize>) {
        let memory = Memory::new(capacity);
        let woken = Arc::new(AtomicUsize::new(0));
        let bell = Arc::clone(&woken);
        memory.sweeper_is_woken_by(move || {
            bell.fetch_add(1, Ordering::Relaxed);
        });
        (memory, woken)
    }

    /// Nothing is out, nobody waits.
    fn check_all_is_free(memory: &Memory) {
        assert_eq!((memory.taken(), memory.is_wanted()), (0, false));
        assert!(memory.try_take(memory.capacity).is_some());
    }

    #[test]
    fn no_more_are_out_than_there_are() {
        let (memory, _) = watched(4);
        let mut three = memory.try_take(3).expect("free");
        assert!(memory.try_take(2).is_none());
        let one = memory.try_take(1).expect("free");
        assert_eq!((memory.taken(), one.count()), (4, 1));
        assert!(memory.try_take(0).is_some() && memory.try_take(1).is_none());
        three.join(one);
        assert_eq!((memory.taken(), three.count()), (4, 4));
        // Three are pages' now, which give them back.
        three.spend(3);
        drop(three);
        assert_eq!(memory.taken(), 3);
        memory.give_back(3);
        check_all_is_free(&memory);
    }

    #[tokio::test]
    async fn who_waits_gets_all_at_once_and_in_turn() {
        let (memory, woken) = watched(4);
        let out = memory.try_take(3).expect("free");
        let mut large = Box::pin(memory.take(4, LONG));
        let mut small = Box::pin(memory.take(1, LONG));
        assert!(futures_util::future::poll_immediate(&mut large).await.is_none());
        assert!(woken.load(Ordering::Relaxed) > 0, "somebody has to make room");
        assert!(futures_util::future::poll_immediate(&mut small).await.is_none());
        // One is free, and nobody's: it waits for the rest of the large one's.
        assert!(memory.try_take(1).is_none());
        assert_eq!(memory.lacking(), 3 + 4 + 1 - 4);
        drop(out);
        let got = large.await.expect("its turn");
        assert_eq!((got.count(), memory.taken()), (4, 4));
        assert!(futures_util::future::poll_immediate(&mut small).await.is_none());
        drop(got);
        assert_eq!(small.await.expect("its turn").count(), 1);
        check_all_is_free(&memory);
    }

    #[tokio::test]
    async fn giving_up_leaves_nothing_behind() {
        let (memory, _) = watched(4);
        let out = memory.try_take(2).expect("free");
        assert!(memory.take(3, Duration::from_millis(1)).await.is_none(), "in time");
        assert!(!memory.is_wanted());
        for is_given_back_before in [false, true] {
            let mut waiting = Box::pin(memory.take(4, LONG));
            std::future::poll_fn(|context| {
                assert!(waiting.as_mut().poll(context).is_pending());
                Poll::Ready(())
            })
            .await;
            // What it was given and has not come to take is free again, too.
            let more = (!is_given_back_before).then(|| memory.try_take(0).expect("nothing"));
            drop(waiting);
            drop(more);
            assert_eq!((memory.taken(), memory.is_wanted()), (2, false));
            drop(memory.try_take(2).expect("the two that are free"));
        }
        drop(out);
        check_all_is_free(&memory);
    }

    #[test]
    fn the_sweeper_is_woken_by_a_pin_that_goes_only_while_it_starves() {
        let (memory, woken) = watched(4);
        let times = || woken.load(Ordering::Relaxed);
        memory.pins_went();
        assert_eq!(times(), 0);
        memory.starve();
        memory.pins_went();
        memory.pins_went();
        assert_eq!(times(), 1, "once");
        memory.starve();
        memory.is_fed();
        memory.pins_went();
        assert_eq!(times(), 1);
    }

    #[test]
    fn a_large_pool_keeps_some_free_ahead_of_need() {
        let (memory, woken) = watched(3200);
        let most = memory.try_take(3100).expect("free");
        assert_eq!((memory.lacking(), woken.load(Ordering::Relaxed)), (0, 0));
        let more = memory.try_take(60).expect("free");
        assert_eq!((memory.lacking(), woken.load(Ordering::Relaxed)), (60, 1));
        drop((most, more));
        check_all_is_free(&memory);
    }
}
