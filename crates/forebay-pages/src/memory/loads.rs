//! The loads of a file that are in flight, as those who wait for their pages see them.
//!
//! Promises: a page is in one load at most. Waiting for a load ends when it has ended, whenever the wait began, and each waiter is
//! told only of the pages that it wants. Giving up (dropping the future) changes nothing for others, nor does a waker that panics.
//!
//! Knows neither I/O nor memory.

use std::collections::BTreeMap;
use std::ops::Range;
use std::pin::pin;
use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;

use crate::error::PageError;
use crate::wakers;

/// A page that could not be loaded, and why.
pub(crate) type PageFailure = (u32, PageError);

/// A load in flight.
pub(crate) struct Load {
    /// Set when it has ended; empty if all pages came.
    failures: OnceLock<Vec<PageFailure>>,
    ended: Notify,
}

impl Load {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            failures: OnceLock::new(),
            ended: Notify::new(),
        })
    }

    /// It has ended. To be called once, when the states of its pages say so.
    pub(crate) fn end(&self, failures: Vec<PageFailure>) {
        let first = self.failures.set(failures).is_ok();
        debug_assert!(first, "a load ends once");
        self.ended.notify_waiters();
    }

    /// Waits until it has ended.
    ///
    /// # Cancel safety
    /// Dropping it changes nothing.
    pub(crate) async fn wait(&self) {
        let mut ended = pin!(self.ended.notified());
        ended.as_mut().enable();
        if self.failures.get().is_none() {
            wakers::guarded(ended).await;
        }
        debug_assert!(self.failures.get().is_some(), "notified when it has ended");
    }

    /// Why one of these pages did not come, if one did not.
    pub(crate) fn failure(&self, is_wanted: impl Fn(u32) -> bool) -> Option<PageError> {
        let mut failures = self.failures.get()?.iter();
        failures
            .find(|(page, _)| is_wanted(*page))
            .map(|(_, error)| error.clone())
    }
}

/// The loads in flight, by the first page of each extent that they load; extents do not overlap.
#[derive(Default)]
pub(crate) struct Loads(BTreeMap<u32, (u32, Arc<Load>)>);

impl Loads {
    pub(crate) fn insert(&mut self, pages: Range<u32>, load: &Arc<Load>) {
        self.0.insert(pages.start, (pages.end, Arc::clone(load)));
    }

    pub(crate) fn remove(&mut self, pages: &Range<u32>) {
        let removed = self.0.remove(&pages.start);
        debug_assert!(
            removed.is_some_and(|(end, _)| end == pages.end),
            "removed by its own load"
        );
    }

    /// The load that brings this page.
    pub(crate) fn of(&self, page: u32) -> Option<&Arc<Load>> {
        let (_, (end, load)) = self.0.range(..=page).next_back()?;
        (page < *end).then_some(load)
    }

    #[cfg(all(test, not(forebay_loom)))]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use std::task::{Context, Waker};

    use super::*;
    use crate::testing::{Flag, PanickingWaker};

    #[test]
    fn a_page_has_the_load_whose_extent_it_is_in() {
        let mut loads = Loads::default();
        let (one, other) = (Load::new(), Load::new());
        loads.insert(2..4, &one);
        loads.insert(5..6, &one);
        loads.insert(8..11, &other);
        let of = |loads: &Loads, page| loads.of(page).map(|load| if Arc::ptr_eq(load, &one) { 1 } else { 2 });
        let all: Vec<u32> = (0..12).map(|page| of(&loads, page).unwrap_or(0)).collect();
        assert_eq!(all, [0, 0, 1, 1, 0, 1, 0, 0, 2, 2, 2, 0]);
        loads.remove(&(2..4));
        assert_eq!((of(&loads, 3), of(&loads, 5), of(&loads, 9)), (None, Some(1), Some(2)));
        loads.remove(&(5..6));
        loads.remove(&(8..11));
        assert!(loads.is_empty());
    }

    #[tokio::test]
    async fn a_waker_that_panics_keeps_nobody_else_waiting() {
        let load = Load::new();
        // More than are woken at a time, the one that panics among the first.
        let mut waiters: Vec<_> = (0..100).map(|_| Box::pin(load.wait())).collect();
        let panicking = PanickingWaker::waker();
        let flags: Vec<_> = (0..waiters.len()).map(|_| Arc::new(Flag::default())).collect();
        for (number, (waiter, flag)) in waiters.iter_mut().zip(&flags).enumerate() {
            let waker = if number == 1 {
                panicking.clone()
            } else {
                Waker::from(Arc::clone(flag))
            };
            assert!(waiter.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        }
        load.end(Vec::new());
        let unwoken = flags
            .iter()
            .enumerate()
            .filter(|(_, flag)| !flag.is_set())
            .map(|(number, _)| number);
        assert_eq!(unwoken.collect::<Vec<_>>(), [1], "and that one was, too");
        for waiter in waiters {
            waiter.await;
        }
    }
}
