//! Callers that leave in masses, one after another or all at once, while a fetch hangs.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use forebay::load::{Load, Loader, LoaderBuilder, Rejected};

use super::*;

type Hanging = Loader<u64, u64>;

/// A fetch that is let through by permits.
fn hanging(limits: LoaderBuilder<u64, u64, Infallible>, gate: &Arc<Semaphore>) -> Hanging {
    let of_fetch = Arc::clone(gate);
    limits.build(move |keys: Vec<u64>| {
        let gate = Arc::clone(&of_fetch);
        async move {
            gate.acquire().await.unwrap().forget();
            Ok(keys.into_iter().map(Some).collect::<Vec<_>>())
        }
    })
}

fn poll_once(load: &mut Load<'_, u64, u64, Infallible>) -> Poll<()> {
    Pin::new(load).poll(&mut Context::from_waker(Waker::noop())).map(drop)
}

/// Keys in line whose callers have all left are in nobody's way.
#[tokio::test(start_paused = true)]
async fn keys_that_nobody_wants_any_more_make_room_in_the_line() {
    let gate = gate();
    let loader = hanging(Loader::builder().max_queued(2), &gate);
    let busy = loader.register(0);
    settle().await;
    let (one, two) = (loader.try_register(1).unwrap(), loader.try_register(2).unwrap());
    assert!(matches!(loader.try_register(3), Err(Rejected::Overloaded(3))));
    drop((one, two));
    let three = loader.try_register(3).expect("nobody waits in line");
    let four = loader.try_register(4).expect("one waits in line");
    assert!(matches!(loader.try_register(5), Err(Rejected::Overloaded(5))));
    gate.add_permits(2);
    assert_eq!(ends(busy).await.unwrap(), Some(0));
    assert_eq!(
        (ends(three).await.unwrap(), ends(four).await.unwrap()),
        (Some(3), Some(4))
    );
}

/// What is in line when it is looked at, and then left by its callers, is given back also if no batch is cut for long.
#[tokio::test(start_paused = true)]
async fn a_line_that_callers_only_pass_through_stays_short() {
    for max_wait in [Duration::ZERO, Duration::from_secs(3600)] {
        let gate = gate();
        let limits = Loader::builder()
            .max_wait(max_wait)
            .max_items(1 << 20)
            .max_queued(1 << 20);
        let loader = hanging(limits, &gate);
        let busy = loader.register(0);
        settle().await;
        let mut before = loader.register(1);
        for key in 2..50_000 {
            let next = loader.try_register(key).unwrap();
            drop(std::mem::replace(&mut before, next));
        }
        let queued = loader.stats().keys_queued;
        assert!(queued < 2_000, "one wants a key, {queued} are in line");
        gate.add_permits(10);
        drop(busy);
        ends(async {
            loader.drain().await;
            assert_eq!(before.await.unwrap(), Some(49_999));
        })
        .await;
    }
}

/// All callers of a hot key leave at once: what that costs grows with their number and not with its square.
#[tokio::test(start_paused = true)]
async fn the_callers_of_a_hot_key_can_all_leave_at_once() {
    const CALLERS: usize = 400_000;
    let gate = gate();
    let loader = hanging(Loader::builder().max_in_flight(2), &gate);
    let first = loader.register(1);
    settle().await;
    let mut loads: Vec<_> = (0..CALLERS).map(|_| loader.register(1)).collect();
    settle().await;
    let begin = std::time::Instant::now();
    for load in loads.drain(..CALLERS - 1) {
        drop(load);
    }
    let took = begin.elapsed();
    println!("{took:?}");
    assert!(poll_once(&mut loads[0]).is_pending());
    gate.add_permits(1);
    assert_eq!(ends(first).await.unwrap(), Some(1));
    assert_eq!(ends(loads.remove(0)).await.unwrap(), Some(1));
    assert!(took < Duration::from_secs(8), "{took:?}");
}

/// As above, with a key each, in a window.
#[tokio::test(start_paused = true)]
async fn the_callers_of_many_keys_can_all_leave_a_window_at_once() {
    const CALLERS: u64 = 60_000;
    let gate = gate();
    let limits = Loader::builder()
        .max_wait(Duration::from_secs(3600))
        .max_items(1 << 20)
        .max_queued(1 << 20);
    let loader = hanging(limits, &gate);
    let mut loads: Vec<_> = (0..CALLERS).map(|key| loader.register(key)).collect();
    settle().await;
    let begin = std::time::Instant::now();
    for load in loads.drain(1..) {
        drop(load);
    }
    let took = begin.elapsed();
    println!("{took:?}");
    gate.add_permits(1);
    ends(loader.drain()).await;
    assert_eq!(ends(loads.remove(0)).await.unwrap(), Some(0));
    assert!(took < Duration::from_secs(8), "{took:?}");
}
