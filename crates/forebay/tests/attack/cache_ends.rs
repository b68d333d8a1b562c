//! A `Cache` at bad moments: runtimes that end under it, threads that end with it in hand, readers that leave in masses or are
//! forgotten, flights that nobody wants any more.

use std::future::pending;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};

use forebay::cache::{Cache, CacheError, Entry, State};
use tokio::runtime::{Builder, Runtime};

use super::*;

const HANGS: u64 = 0;
const SECOND: Duration = Duration::from_secs(1);

/// One fetch at a time, and that of the first key never ends.
fn narrow() -> Cache<u64, u64> {
    Cache::builder(|key: u64| async move {
        if key == HANGS {
            pending::<()>().await;
        }
        Ok(Some(key))
    })
    .max_fetches(1)
    .no_fetch_timeout()
    .build()
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

fn begin_get(runtime: &Runtime, cache: &Cache<u64, u64>, key: u64) -> tokio::task::JoinHandle<Option<u64>> {
    let cache = cache.clone();
    let get = runtime.spawn(async move { cache.get(&key).await.unwrap() });
    runtime.block_on(settle());
    get
}

#[test]
fn the_end_of_a_runtime_is_the_end_of_its_own_flights_and_nobody_elses() {
    let (cache, ends_early, stays) = (narrow(), runtime(), runtime());
    drop(begin_get(&ends_early, &cache, HANGS));
    // Enough to overflow the stack if each were ended inside of the one before.
    for key in 1..30_000 {
        let cache = cache.clone();
        drop(ends_early.spawn(async move { cache.get(&key).await }));
    }
    ends_early.block_on(async {
        while cache.stats().in_line < 29_999 {
            yield_now().await;
        }
    });
    let neighbour = begin_get(&stays, &cache, 30_000);
    assert_eq!(cache.stats().in_line, 30_000);
    drop(ends_early);
    assert_eq!(stays.block_on(ends(neighbour)).unwrap(), Some(30_000));
    let stats = cache.stats();
    assert_eq!((stats.in_flight, stats.in_line), (0, 0));
}

#[test]
fn who_waits_in_one_runtime_for_a_flight_of_another_hears_of_its_end() {
    let (cache, ends_early, stays) = (narrow(), runtime(), runtime());
    drop(begin_get(&ends_early, &cache, HANGS));
    let of_task = cache.clone();
    let waiting = stays.spawn(async move { of_task.get(&HANGS).await });
    stays.block_on(settle());
    // A fetch from the line whose runtime is gone by the time it has its turn; nobody is left in that runtime.
    let in_line = begin_get(&ends_early, &cache, 1);
    in_line.abort();
    ends_early.shutdown_background();
    let outcome = stays.block_on(ends(waiting)).unwrap();
    assert!(matches!(outcome, Err(CacheError::Stopped)));
    assert_eq!(stays.block_on(ends(cache.get(&1))).unwrap(), Some(1));
    assert_eq!(cache.stats().in_flight, 0);
}

#[test]
fn a_thread_may_use_the_cache_to_its_very_end() {
    struct Last(Cache<u64, u64>);

    impl Drop for Last {
        fn drop(&mut self) {
            let Self(cache) = self;
            assert_eq!(cache.get_if_fresh(&1), Some(Entry::Present(1)));
            assert!(matches!(poll_once(&mut cache.get(&1)), Poll::Ready(Ok(Some(1)))));
            // There is no runtime here.
            assert!(matches!(
                poll_once(&mut cache.get(&9)),
                Poll::Ready(Err(CacheError::Stopped))
            ));
            drop(cache.invalidate(&1));
            drop(cache.insert(2, 22));
            drop(cache.clear());
            drop(cache.insert(3, 33));
            drop(cache.hot_keys(9));
        }
    }

    thread_local! {
        static LAST: std::cell::RefCell<Option<Last>> = const { std::cell::RefCell::new(None) };
    }
    // The thread's first use of the cache is before or after it makes what is dropped: destructors run in that order too.
    for uses_first in [false, true] {
        let cache = narrow();
        drop(cache.insert(1, 1));
        let of_thread = cache.clone();
        let thread = std::thread::spawn(move || {
            if uses_first {
                assert_eq!(of_thread.get_if_fresh(&1), Some(Entry::Present(1)));
            }
            LAST.set(Some(Last(of_thread)));
        });
        thread.join().unwrap();
        assert_eq!(
            (cache.get_if_fresh(&2), cache.get_if_fresh(&3)),
            (None, Some(Entry::Present(33)))
        );
        assert_eq!(cache.stats().in_flight, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_line_of_readers_that_leave_all_at_once_is_gone_and_forgotten_ones_hold_nothing_up() {
    let cache = narrow();
    let keys: Vec<u64> = (0..20_000).collect();
    let mut gets: Vec<_> = keys.iter().map(|key| cache.get(key)).collect();
    for get in &mut gets {
        assert!(poll_once(get).is_pending());
    }
    assert_eq!(cache.stats().in_line, 19_999);
    drop(gets);
    assert_eq!((cache.stats().in_flight, cache.stats().in_line), (1, 0));

    let cache = Cache::builder(|key: u64| async move { Ok::<_, std::convert::Infallible>(Some(key)) })
        .max_fetches(1)
        .build();
    for key in &keys[..100] {
        let mut get = cache.get(key);
        assert!(poll_once(&mut get).is_pending());
        std::mem::forget(get);
    }
    assert_eq!(ends(cache.get(&500)).await.unwrap(), Some(500));
    assert_eq!(cache.get_if_fresh(&99), Some(Entry::Present(99)), "those came first");
    assert_eq!(cache.stats().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_refresh_in_line_that_a_write_has_overtaken_is_not_fetched() {
    let (gate, fetches) = (gate(), Arc::new(AtomicUsize::new(0)));
    let (of_source, counted) = (Arc::clone(&gate), Arc::clone(&fetches));
    let cache = Cache::builder(move |key: u64| {
        let (gate, fetches) = (Arc::clone(&of_source), Arc::clone(&counted));
        async move {
            fetches.fetch_add(1, SeqCst);
            gate.acquire().await.unwrap().forget();
            Ok::<_, std::convert::Infallible>(Some(key))
        }
    })
    .max_fetches(1)
    .build();
    drop(cache.insert(1, 10));
    drop(cache.mark_stale(&1));
    let first = tokio::spawn({
        let cache = cache.clone();
        async move { cache.get(&7).await }
    });
    settle().await;
    assert_eq!(ends(cache.lookup(&1)).await.unwrap().state, State::Stale);
    settle().await;
    assert_eq!(cache.stats().in_line, 1);
    drop(cache.insert(1, 11));
    gate.add_permits(9);
    assert_eq!(ends(first).await.unwrap().unwrap(), Some(7));
    settle().await;
    assert_eq!(fetches.load(SeqCst), 1);
    let stats = cache.stats();
    assert_eq!((stats.called_off, stats.in_flight, stats.in_line), (1, 0, 0));
    assert_eq!(ends(cache.get(&8)).await.unwrap(), Some(8), "its turn was given back");
}

#[tokio::test(start_paused = true)]
async fn what_an_older_fetch_brings_is_kept_where_the_newer_one_has_failed() {
    let (gate, fetches) = (gate(), Arc::new(AtomicUsize::new(0)));
    let (of_source, counted) = (Arc::clone(&gate), Arc::clone(&fetches));
    let cache = Cache::builder(move |key: u64| {
        let gate = Arc::clone(&of_source);
        let number = counted.fetch_add(1, SeqCst);
        async move {
            if number > 0 {
                return Err("as asked");
            }
            gate.acquire().await.unwrap().forget();
            Ok(Some(key))
        }
    })
    .max_fetches_per_key(usize::MAX)
    .fresh_for(SECOND)
    .build();
    let of_first = cache.clone();
    let first = tokio::spawn(async move { of_first.get(&1).await });
    settle().await;
    assert!(ends(cache.get(&1)).await.is_err());
    gate.add_permits(1);
    assert_eq!(ends(first).await.unwrap().unwrap(), Some(1));
    assert_eq!(cache.get_if_fresh(&1), Some(Entry::Present(1)));
}
