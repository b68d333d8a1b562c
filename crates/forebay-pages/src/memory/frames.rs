//! The pool's memory, counted in frames of a page each: who may take some, who waits, and when the sweeper is needed.
//!
//! Promises: never more frames are taken than there are. Those who wait are served in the order in which they asked, and get all
//! that they asked for at once, so nobody holds a part while waiting for the rest. A frame is taken from before its page begins to
//! load until its memory is back with the system. Giving up (dropping the future) leaves nothing behind.
//!
//! Page tables are memory, too. What they take beyond a share of the pool's is *withheld*: frames that no page gets, as soon as they are
//! free, and as long as nobody waits for whom no page can be evicted.
//!
//! Knows neither pages nor files.

use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use tokio::sync::Semaphore;

use super::region;
use crate::sync::{AtomicBool, Ordering, fence};
use crate::wakers;

/// What part of the pool's memory page tables may take beside it.
const TABLES_SHARE: usize = 32;
/// So many there may be in any case.
const TABLES_MIN: usize = 64;
/// What part of the frames page tables may take, so that reads go on.
const WITHHELD_SHARE: usize = 2;

/// All frames of a pool.
pub(crate) struct FrameBudget {
    /// How many frames there are.
    pub(crate) capacity: usize,
    /// How many the sweeper keeps free, so that reads rarely wait for it.
    reserve: usize,
    free: Semaphore,
    /// 0 <= taken <= capacity.
    taken: AtomicUsize,
    /// Of those that are taken, in place of page tables.
    withheld: AtomicUsize,
    /// The page tables of all mappings.
    tables: AtomicUsize,
    /// How many of them cost no frame.
    tables_free: usize,
    /// How many of the others cost one.
    tables_per_frame: usize,
    /// The frames that all who wait have asked for.
    wanted: AtomicUsize,
    /// The sweeper found less than was wanted, and is to be woken when a pin is released.
    awaits_pins: AtomicBool,
    /// Wakes the sweeper.
    wake: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// Frames that were taken, and not yet spent on pages. Dropping it gives them back.
#[must_use]
pub(crate) struct Frames<'a> {
    budget: &'a FrameBudget,
    count: usize,
}

impl FrameBudget {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            reserve: (capacity / 32).min(1024),
            free: Semaphore::new(capacity),
            taken: AtomicUsize::new(0),
            withheld: AtomicUsize::new(0),
            tables: AtomicUsize::new(0),
            tables_free: usize::MAX,
            tables_per_frame: 1,
            wanted: AtomicUsize::new(0),
            awaits_pins: AtomicBool::new(false),
            wake: OnceLock::new(),
        }
    }

    /// Frames are so many bytes, and page tables count.
    pub(crate) fn with_tables(self, frame_bytes: usize) -> Self {
        let tables_per_frame = (frame_bytes / region::system_page()).max(1);
        let all = self.capacity.saturating_mul(tables_per_frame);
        Self {
            tables_free: (all / TABLES_SHARE).max(TABLES_MIN),
            tables_per_frame,
            ..self
        }
    }

    /// How the sweeper is woken when frames run out.
    pub(crate) fn set_sweeper(&self, wake: impl Fn() + Send + Sync + 'static) {
        // A pool has one sweeper; a second would never be woken.
        let _ = self.wake.set(Box::new(wake));
    }

    pub(crate) fn wake_sweeper(&self) {
        if let Some(wake) = self.wake.get() {
            wake();
        }
    }

    /// How many frames are taken.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// How many frames pages have, or are about to have.
    pub(crate) fn taken_by_pages(&self) -> usize {
        self.taken().saturating_sub(self.withheld())
    }

    /// There are so many page tables more. Frames that are free are withheld at once; the sweeper sees to the others.
    pub(crate) fn tables_added(&self, count: usize) {
        if count > 0 {
            self.tables.fetch_add(count, Ordering::Relaxed);
            self.withhold_free();
        }
    }

    /// There are so many page tables fewer.
    pub(crate) fn tables_gone(&self, count: usize) {
        let before = self.tables.fetch_sub(count, Ordering::Relaxed);
        debug_assert!(before >= count, "what goes was added");
    }

    fn withheld(&self) -> usize {
        self.withheld.load(Ordering::Relaxed)
    }

    /// How many frames the page tables are worth that have no share of their own.
    fn due(&self) -> usize {
        let tables = self.tables.load(Ordering::Relaxed).saturating_sub(self.tables_free);
        (tables / self.tables_per_frame).min(self.capacity / WITHHELD_SHARE)
    }

    /// Withholds what is due as far as it is free, and gives back what is not due any more. By the sweeper.
    pub(crate) fn withhold(&self) {
        let (due, withheld) = (self.due(), self.withheld());
        if due < withheld {
            self.withheld.fetch_sub(withheld - due, Ordering::Relaxed);
            self.give_back(withheld - due);
        } else {
            self.withhold_free();
        }
    }

    /// Withholds what is due, as far as it is free. Two who do it at once may withhold too much, until the sweeper's next look.
    fn withhold_free(&self) {
        let lacking = self.due().saturating_sub(self.withheld());
        let free = lacking.min(self.free.available_permits());
        if free > 0
            && let Ok(permits) = self.free.try_acquire_many(narrow(free))
        {
            permits.forget();
            self.taken.fetch_add(free, Ordering::Relaxed);
            self.withheld.fetch_add(free, Ordering::Relaxed);
        }
    }

    /// Gives what is withheld to those who wait. Returns whether there was anything. By the sweeper.
    pub(crate) fn withhold_nothing(&self) -> bool {
        let withheld = self.withheld.swap(0, Ordering::Relaxed);
        self.give_back(withheld);
        withheld > 0
    }

    /// Takes so many frames if they are free and nobody waits.
    pub(crate) fn try_take(&self, count: usize) -> Option<Frames<'_>> {
        let permits = self.free.try_acquire_many(narrow(count)).ok()?;
        permits.forget();
        Some(self.took(count))
    }

    /// Takes so many frames when the caller's turn has come; `None` if it has not come in time.
    ///
    /// # Cancel safety
    /// Dropping it gives up the place in line.
    pub(crate) async fn take(&self, count: usize, limit: Duration) -> Option<Frames<'_>> {
        debug_assert!(
            count <= self.capacity,
            "who asks for more than there are would wait for ever"
        );
        let _wanting = Wanting::of(self, count);
        let turn = wakers::guarded(self.free.acquire_many(narrow(count)));
        let permits = tokio::time::timeout(limit, turn).await.ok()?;
        permits.expect("this semaphore is never closed").forget();
        Some(self.took(count))
    }

    fn took(&self, count: usize) -> Frames<'_> {
        let before = self.taken.fetch_add(count, Ordering::Relaxed);
        debug_assert!(before + count <= self.capacity, "never more than there are");
        if before + count + self.reserve / 2 + self.due().saturating_sub(self.withheld()) > self.capacity {
            self.wake_sweeper();
        }
        Frames { budget: self, count }
    }

    /// So many frames are free again: their pages' memory is back with the system.
    pub(crate) fn give_back(&self, count: usize) {
        // Counted before it can be taken again, so that `taken` never shows more than there are.
        let before = self.taken.fetch_sub(count, Ordering::Relaxed);
        debug_assert!(before >= count, "what is given back was taken");
        self.free.add_permits(count);
    }

    /// How many pages should be evicted now: for those who wait, for page tables, and to keep the reserve.
    pub(crate) fn shortfall(&self) -> usize {
        let wanted = self.wanted.load(Ordering::Relaxed) + self.due().saturating_sub(self.withheld());
        (self.taken() + wanted + self.reserve).saturating_sub(self.capacity)
    }

    /// Whether anybody waits for frames.
    pub(crate) fn has_waiters(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) > 0
    }

    /// The next pin that is released wakes the sweeper. It must look once more after this, since one may just have been released.
    pub(crate) fn await_pins(&self) {
        self.awaits_pins.store(true, Ordering::SeqCst);
        // Either the sweeper's next look sees the page without its pin, or whoever released the pin sees this.
        fence(Ordering::SeqCst);
    }

    /// There is enough: released pins need not wake the sweeper.
    pub(crate) fn ignore_pins(&self) {
        self.awaits_pins.store(false, Ordering::Relaxed);
    }

    /// A page may be evictable now. To be called after pins were released, once for many.
    #[inline]
    pub(crate) fn pins_released(&self) {
        fence(Ordering::SeqCst);
        if self.awaits_pins.load(Ordering::Relaxed) {
            self.wake_for_pins();
        }
    }

    #[cold]
    fn wake_for_pins(&self) {
        if self.awaits_pins.swap(false, Ordering::Relaxed) {
            self.wake_sweeper();
        }
    }
}

impl Frames<'_> {
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Spends some of them on pages, which give them back when they are evicted.
    pub(crate) fn spend(&mut self, count: usize) {
        self.count = self
            .count
            .checked_sub(count)
            .expect("no more frames are spent than were taken");
    }

    /// Adds others to these.
    pub(crate) fn join(&mut self, mut others: Frames<'_>) {
        self.count += others.count;
        others.count = 0;
    }
}

impl Drop for Frames<'_> {
    fn drop(&mut self) {
        if self.count > 0 {
            self.budget.give_back(self.count);
        }
    }
}

/// While it lives, the sweeper knows that somebody waits for so many frames.
struct Wanting<'a> {
    budget: &'a FrameBudget,
    count: usize,
}

impl<'a> Wanting<'a> {
    fn of(budget: &'a FrameBudget, count: usize) -> Self {
        budget.wanted.fetch_add(count, Ordering::Relaxed);
        budget.wake_sweeper();
        Self { budget, count }
    }
}

impl Drop for Wanting<'_> {
    fn drop(&mut self) {
        self.budget.wanted.fetch_sub(self.count, Ordering::Relaxed);
    }
}

/// The builder allows no more frames than fit in 32 bits.
fn narrow(count: usize) -> u32 {
    u32::try_from(count).expect("no pool has more frames than 32 bits can count")
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::testing::{Flag, PanickingWaker};

    const LONG: Duration = Duration::from_secs(60);

    /// A budget, and how often its sweeper was woken.
    fn watched(capacity: usize) -> (FrameBudget, Arc<AtomicUsize>) {
        let frames = FrameBudget::new(capacity);
        let woken = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&woken);
        frames.set_sweeper(move || {
            count.fetch_add(1, Ordering::Relaxed);
        });
        (frames, woken)
    }

    /// Nothing is out, nobody waits.
    fn check_all_is_free(frames: &FrameBudget) {
        assert_eq!((frames.taken(), frames.has_waiters()), (0, false));
        assert!(frames.try_take(frames.capacity).is_some());
    }

    #[test]
    fn no_more_are_out_than_there_are() {
        let (frames, _) = watched(4);
        let mut three = frames.try_take(3).expect("free");
        assert!(frames.try_take(2).is_none());
        let one = frames.try_take(1).expect("free");
        assert_eq!((frames.taken(), one.count()), (4, 1));
        assert!(frames.try_take(0).is_some() && frames.try_take(1).is_none());
        three.join(one);
        assert_eq!((frames.taken(), three.count()), (4, 4));
        // Three are pages' now, which give them back.
        three.spend(3);
        drop(three);
        assert_eq!(frames.taken(), 3);
        frames.give_back(3);
        check_all_is_free(&frames);
    }

    #[tokio::test]
    async fn whoever_gives_frames_back_is_not_harmed_by_a_waker_that_panics() {
        let (frames, _) = watched(4);
        let out = frames.try_take(4).expect("free");
        let mut first = Box::pin(frames.take(2, LONG));
        let panicking = PanickingWaker::waker();
        assert!(first.as_mut().poll(&mut Context::from_waker(&panicking)).is_pending());
        let mut second = Box::pin(frames.take(2, LONG));
        let flag = Arc::new(Flag::default());
        let waker = Waker::from(Arc::clone(&flag));
        assert!(second.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        drop(out);
        assert!(flag.is_set(), "the one behind it is woken");
        assert!(first.await.is_some() && second.await.is_some());
        check_all_is_free(&frames);
    }

    #[tokio::test]
    async fn who_waits_gets_all_at_once_and_in_turn() {
        let (frames, woken) = watched(4);
        let out = frames.try_take(3).expect("free");
        let mut large = Box::pin(frames.take(4, LONG));
        let mut small = Box::pin(frames.take(1, LONG));
        assert!(futures_util::future::poll_immediate(&mut large).await.is_none());
        assert!(woken.load(Ordering::Relaxed) > 0, "somebody has to make room");
        assert!(futures_util::future::poll_immediate(&mut small).await.is_none());
        // One is free, and nobody's: it waits for the rest of the large one's.
        assert!(frames.try_take(1).is_none());
        assert_eq!(frames.shortfall(), 3 + 4 + 1 - 4);
        drop(out);
        let got = large.await.expect("its turn");
        assert_eq!((got.count(), frames.taken()), (4, 4));
        assert!(futures_util::future::poll_immediate(&mut small).await.is_none());
        drop(got);
        assert_eq!(small.await.expect("its turn").count(), 1);
        check_all_is_free(&frames);
    }

    #[tokio::test]
    async fn giving_up_leaves_nothing_behind() {
        let (frames, _) = watched(4);
        let out = frames.try_take(2).expect("free");
        assert!(frames.take(3, Duration::from_millis(1)).await.is_none(), "in time");
        assert!(!frames.has_waiters());
        for is_given_back_before in [false, true] {
            let mut waiting = Box::pin(frames.take(4, LONG));
            std::future::poll_fn(|context| {
                assert!(waiting.as_mut().poll(context).is_pending());
                Poll::Ready(())
            })
            .await;
            // What it was given and has not come to take is free again, too.
            let more = (!is_given_back_before).then(|| frames.try_take(0).expect("nothing"));
            drop(waiting);
            drop(more);
            assert_eq!((frames.taken(), frames.has_waiters()), (2, false));
            drop(frames.try_take(2).expect("the two that are free"));
        }
        drop(out);
        check_all_is_free(&frames);
    }

    #[tokio::test]
    async fn page_tables_beyond_their_share_take_frames_that_nobody_waits_for() {
        let (frames, woken) = watched(3200);
        // Each frame is worth 16 of the system's pages.
        let page = region::system_page();
        let frames = frames.with_tables(16 * page);
        frames.tables_added(3200 * 16 / 32);
        assert_eq!((frames.taken(), frames.shortfall()), (0, 0), "their share");
        let held = frames.try_take(2400).expect("free");
        frames.tables_added(16 * 700);
        assert_eq!((frames.taken(), frames.taken_by_pages()), (3100, 2400), "at once");
        let more = frames.try_take(100).expect("free");
        let before = woken.load(Ordering::Relaxed);
        frames.tables_added(16 * 100);
        assert_eq!(
            (frames.taken(), frames.shortfall()),
            (3200, 200),
            "none is free; and the reserve"
        );
        drop(more);
        assert_eq!(woken.load(Ordering::Relaxed), before);
        frames.withhold();
        assert_eq!((frames.taken(), frames.taken_by_pages()), (3200, 2400));
        assert_eq!(frames.shortfall(), 100);
        // Nothing can be evicted for one who waits.
        let mut waiting = Box::pin(frames.take(800, LONG));
        assert!(futures_util::future::poll_immediate(&mut waiting).await.is_none());
        assert!(frames.withhold_nothing() && !frames.withhold_nothing());
        drop(waiting.await.expect("its turn"));
        frames.withhold();
        assert_eq!(frames.taken_by_pages(), 2400);
        drop(held);
        frames.tables_added(16 * 3200);
        assert_eq!(
            (frames.taken(), frames.taken_by_pages()),
            (1600, 0),
            "half of all at most"
        );
        frames.tables_gone(16 * (3200 + 800) + 3200 * 16 / 32);
        frames.withhold();
        check_all_is_free(&frames);
    }

    #[test]
    fn a_released_pin_wakes_the_sweeper_only_while_it_awaits_one() {
        let (frames, woken) = watched(4);
        let times = || woken.load(Ordering::Relaxed);
        frames.pins_released();
        assert_eq!(times(), 0);
        frames.await_pins();
        frames.pins_released();
        frames.pins_released();
        assert_eq!(times(), 1, "once");
        frames.await_pins();
        frames.ignore_pins();
        frames.pins_released();
        assert_eq!(times(), 1);
    }

    #[test]
    fn a_large_pool_keeps_some_free_ahead_of_need() {
        let (frames, woken) = watched(3200);
        let most = frames.try_take(3100).expect("free");
        assert_eq!((frames.shortfall(), woken.load(Ordering::Relaxed)), (0, 0));
        let more = frames.try_take(60).expect("free");
        assert_eq!((frames.shortfall(), woken.load(Ordering::Relaxed)), (60, 1));
        drop((most, more));
        check_all_is_free(&frames);
    }
}
