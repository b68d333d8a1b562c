//! Callers on several threads and runtimes, who forget their calls, carry them elsewhere or leave.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::mpsc;
use std::task::{Context, Waker};

use forebay::batch::{Batcher, Call, CallError};
use parking_lot::Mutex;

use super::*;

fn enter<I, O, E>(call: &mut Call<'_, I, O, E>) {
    let polled = Pin::new(call).poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending());
}

/// Three threads in turn, on two lanes or more, each entering strictly after the one before.
#[test]
fn who_entered_after_another_on_any_thread_is_processed_after_it() {
    const ITEMS: u64 = 60_000;
    const THREADS: u64 = 3;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let of_process = Arc::clone(&seen);
    let batcher = Batcher::builder()
        .max_items(7)
        .runtime(runtime.handle().clone())
        .build(move |items: Vec<u64>| {
            of_process.lock().extend_from_slice(&items);
            async move { Ok::<_, Infallible>(items) }
        });
    let turn = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for own in 0..THREADS {
            let (batcher, turn) = (&batcher, &turn);
            scope.spawn(move || {
                let mut calls = Vec::new();
                for number in (own..ITEMS).step_by(THREADS as usize) {
                    while turn.load(SeqCst) != number {
                        std::thread::yield_now();
                    }
                    let mut call = batcher.call_owned(number);
                    enter(&mut call);
                    turn.store(number + 1, SeqCst);
                    calls.push(call);
                }
                // Dropped, those still in line would be taken out.
                std::mem::forget(calls);
            });
        }
    });
    runtime.block_on(batcher.drain());
    assert!(seen.lock().iter().copied().eq(0..ITEMS));
}

/// Calls that are never dropped, some of them borrowed from a handle that is gone by then.
#[tokio::test]
async fn forgotten_calls_are_processed_and_harm_nobody() {
    let processed = Arc::new(AtomicU64::new(0));
    let of_process = Arc::clone(&processed);
    let batcher = Batcher::builder().max_items(10).build(move |items: Vec<u64>| {
        of_process.fetch_add(items.len() as u64, SeqCst);
        async move { Ok::<_, Infallible>(items) }
    });
    for number in 0..1000 {
        let handle = batcher.clone();
        let mut call = handle.call(number);
        enter(&mut call);
        std::mem::forget(call);
        drop(handle);
        if number % 100 == 0 {
            assert_eq!(ends(batcher.call(number)).await.unwrap(), number);
        }
    }
    ends(batcher.drain()).await;
    assert_eq!(processed.load(SeqCst), 1010);
    drop(batcher);
    settle().await;
    assert_eq!(Arc::strong_count(&processed), 1, "the batcher is gone");
}

/// Entered in one runtime, polled in another, awaited in a third, while the first two are gone.
#[test]
fn a_call_can_be_carried_from_runtime_to_runtime() {
    let new = || {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .build()
            .unwrap()
    };
    let own = new();
    let (send, receive) = mpsc::channel();
    let gate = gate();
    let of_process = Arc::clone(&gate);
    let batcher = Batcher::builder()
        .runtime(own.handle().clone())
        .build(move |items: Vec<u64>| {
            let gate = Arc::clone(&of_process);
            async move {
                gate.acquire().await.unwrap().forget();
                Ok::<_, Infallible>(items)
            }
        });
    for number in 0..50 {
        let mut call = batcher.call_owned(number);
        let first = new();
        first.block_on(async { enter(&mut call) });
        drop(first);
        let second = new();
        let sender = send.clone();
        second.spawn(async move {
            enter(&mut call);
            sender.send(call).unwrap();
        });
        let call = receive.recv().unwrap();
        drop(second);
        gate.add_permits(1);
        assert_eq!(new().block_on(call).unwrap(), number);
    }
}

/// Cancelled ones in between leave the number of batches what it must be.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn with_cancelled_ones_in_between_exactly_n_over_max_items_batches_run() {
    for max_items in [1, 2, 3, 7, 64, usize::MAX] {
        let gate = gate();
        let of_process = Arc::clone(&gate);
        let batcher = Batcher::builder().max_items(max_items).build(move |items: Vec<u64>| {
            let gate = Arc::clone(&of_process);
            async move {
                gate.acquire().await.unwrap().forget();
                Ok::<_, Infallible>(items)
            }
        });
        let busy = batcher.try_call_owned(0).unwrap();
        while batcher.stats().in_flight == 0 {
            yield_now().await;
        }
        let entering: Vec<_> = (0..8)
            .map(|task| {
                let batcher = batcher.clone();
                tokio::spawn(async move {
                    let entered = |number| batcher.try_call_owned(number).unwrap();
                    let mut calls: Vec<_> = (0..500).map(|number| (number, entered(task * 1000 + number))).collect();
                    calls.retain(|(number, _)| number % 3 != 1);
                    calls
                })
            })
            .collect();
        let mut calls = Vec::new();
        for task in entering {
            calls.extend(task.await.unwrap());
        }
        gate.add_permits(100_000);
        ends(busy).await.unwrap();
        let waiting = calls.len();
        for (number, call) in calls {
            assert_eq!(ends(call).await.unwrap() % 1000, number);
        }
        let stats = batcher.stats();
        assert_eq!(
            stats.batches as usize,
            1 + waiting.div_ceil(max_items),
            "max_items = {max_items}"
        );
        assert_eq!((stats.cancelled as usize, stats.queued), (4000 - waiting, 0));
    }
}

/// The drop of an outcome, of an item and of an error calls the batcher again.
#[tokio::test]
async fn what_is_dropped_may_call_the_batcher() {
    struct Calls(Batcher<u64, u64>, Arc<AtomicU64>);
    impl Drop for Calls {
        fn drop(&mut self) {
            drop(self.0.try_call(1).unwrap());
            let stays = self.0.try_call_owned(2).unwrap();
            let count = Arc::clone(&self.1);
            tokio::spawn(async move {
                assert_eq!(stays.await.unwrap(), 2);
                count.fetch_add(1, SeqCst);
            });
        }
    }
    let inner: Batcher<u64, u64> = Batcher::new(|items: Vec<u64>| async move { Ok(items) });
    let count = Arc::new(AtomicU64::new(0));
    let (of_process, of_outcomes) = (inner.clone(), Arc::clone(&count));
    let outer: Batcher<Calls, Calls, Calls> = Batcher::builder().max_items(4).build(move |items: Vec<Calls>| {
        let outcome = || Calls(of_process.clone(), Arc::clone(&of_outcomes));
        let answer = if items.len() == 1 {
            Err(outcome())
        } else {
            Ok(items.iter().map(|_| outcome()).collect())
        };
        async move { answer }
    });
    let item = || Calls(inner.clone(), Arc::clone(&count));
    let mut calls: Vec<_> = (0..5).map(|_| outer.try_call(item()).unwrap()).collect();
    settle().await;
    drop(calls.remove(0));
    assert!(matches!(ends(calls.pop().unwrap()).await, Err(CallError::Failed(_))));
    for call in calls {
        assert!(ends(call).await.is_ok());
    }
    ends(outer.drain()).await;
    // Five items, four outcomes and an error.
    ends(async {
        while count.load(SeqCst) < 10 {
            yield_now().await;
        }
        inner.drain().await;
    })
    .await;
}

/// Types that ask for more than a word of alignment.
#[tokio::test]
async fn over_aligned_types_stay_aligned() {
    #[repr(align(128))]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Wide(u8);
    #[repr(align(4096))]
    #[derive(Debug)]
    struct Page(u8);
    let batcher = Batcher::new(|items: Vec<Wide>| async move {
        assert!(
            items
                .iter()
                .all(|item| std::ptr::from_ref(item).addr().is_multiple_of(128))
        );
        Ok::<_, Infallible>(items.into_iter().map(|item| Page(item.0)).collect())
    });
    let calls: Vec<_> = (0..200).map(|number| batcher.try_call(Wide(number)).unwrap()).collect();
    for (number, call) in (0..).zip(calls) {
        assert_eq!(ends(call).await.unwrap().0, number);
    }
}
