//! The caches whose size is varied, each as its users speak to it. Knows no loop.

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use forebay::cache::Cache;

/// Longer than any measurement.
const FRESH_FOR: Duration = Duration::from_secs(3_600);

/// A cache of u64 by u64.
pub(crate) trait Filled: Sized {
    /// Empty, told how many entries it may hold.
    fn with_room_for(entries: u64) -> Self;

    fn put(&self, key: u64, value: u64);

    fn value(&self, key: u64) -> Option<u64>;

    /// What it has put off is done.
    fn settle(&self) {}
}

/// Knows no ages.
pub(crate) struct QuickCache(quick_cache::sync::Cache<u64, u64>);

impl Filled for QuickCache {
    fn with_room_for(entries: u64) -> Self {
        Self(quick_cache::sync::Cache::new(entries as usize))
    }

    #[inline]
    fn put(&self, key: u64, value: u64) {
        self.0.insert(key, value);
    }

    #[inline]
    fn value(&self, key: u64) -> Option<u64> {
        self.0.get(&key)
    }
}

/// With a time to live.
pub(crate) struct Moka(moka::sync::Cache<u64, u64>);

impl Filled for Moka {
    fn with_room_for(entries: u64) -> Self {
        Self(
            moka::sync::Cache::builder()
                .max_capacity(entries)
                .time_to_live(FRESH_FOR)
                .build(),
        )
    }

    #[inline]
    fn put(&self, key: u64, value: u64) {
        self.0.insert(key, value);
    }

    #[inline]
    fn value(&self, key: u64) -> Option<u64> {
        self.0.get(&key)
    }

    fn settle(&self) {
        self.0.run_pending_tasks();
    }
}

/// With a window in which values are fresh; `get`, which a hit ends at its first poll.
pub(crate) struct Forebay(Cache<u64, u64>);

impl Filled for Forebay {
    fn with_room_for(entries: u64) -> Self {
        let cache = Cache::builder(|_: u64| async { Ok::<Option<u64>, Infallible>(None) })
            .capacity(entries)
            .fresh_for(FRESH_FOR)
            .build();
        Self(cache)
    }

    #[inline]
    fn put(&self, key: u64, value: u64) {
        // There are no tiers to hear of it.
        drop(self.0.insert(key, value));
    }

    #[inline]
    fn value(&self, key: u64) -> Option<u64> {
        let get = pin!(self.0.get(&key));
        match get.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(got) => got.ok().flatten(),
            Poll::Pending => None,
        }
    }
}
