//! Settling, shutting down, and what is left behind.

use crate::tier::{By, Scales};
use futures_util::poll;
use tokio::runtime::Builder;
use tokio::time::advance;

use super::*;

#[tokio::test(start_paused = true)]
async fn settled_waits_for_what_was_asked_before_and_not_for_more() {
    let (slow, fast) = (Fake::new("slow"), Fake::new("fast"));
    let tiers = tiers(&[&fast, &slow]);
    tiers.settled().await;
    *slow.is_gated.lock() = true;
    drop(tiers.invalidate(1, By::This));
    let mut settled = Box::pin(tiers.settled());
    settle().await;
    assert!(poll!(settled.as_mut()).is_pending(), "one tier has not acknowledged");
    // Asked later: waits in line, and then hangs for good.
    drop(tiers.invalidate(2, By::This));
    slow.gate.add_permits(2);
    settled.await;
    let mut later = Box::pin(tiers.settled());
    settle().await;
    assert!(poll!(later.as_mut()).is_pending());
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_changed_again_and_again_still_settles() {
    let fake = Fake::new("slow");
    let tiers = tiers(&[&fake]);
    *fake.is_gated.lock() = true;
    drop(tiers.invalidate(1, By::This));
    let mut settled = Box::pin(tiers.settled());
    settle().await;
    drop(tiers.invalidate(1, By::This));
    fake.gate.add_permits(2);
    settle().await;
    assert!(
        poll!(settled.as_mut()).is_ready(),
        "the first deletion was acknowledged"
    );
}

#[tokio::test(start_paused = true)]
async fn without_handles_what_waits_is_tried_once_more_and_given_up() {
    let fake = Fake::new("ill");
    let handle = tiers(&[&fake]);
    let other = handle.clone();
    fake.changes(Mood::Fails);
    drop(handle.invalidate(1, By::This));
    while fake.calls("delete").len() < 10 {
        tokio::time::sleep(ms(100)).await;
    }
    settle().await;
    drop(handle);
    settle().await;
    assert_eq!(
        (fake.calls("delete").len(), Arc::strong_count(&fake)),
        (10, 2),
        "a handle is left"
    );
    drop(other);
    settle().await;
    assert_eq!(fake.calls("delete").len(), 11, "tried once more, at once");
    assert_eq!(Arc::strong_count(&fake), 1, "somebody still holds the tier");
}

#[tokio::test(start_paused = true)]
async fn without_handles_what_works_is_done() {
    let fake = Fake::new("well");
    let tiers = tiers(&[&fake]);
    fake.keep(1, kept(9, epoch()));
    drop(tiers.invalidate(1, By::This));
    tiers.fill_with(put(2, 20, epoch()));
    drop(tiers);
    settle().await;
    assert_eq!((fake.value(1), fake.value(2)), (None, Some(20)));
    assert_eq!(Arc::strong_count(&fake), 1);
}

/// One whose clock stands still.
fn runtime() -> tokio::runtime::Runtime {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().start_paused(true).build().unwrap()
}

#[test]
fn what_a_runtime_left_undone_the_next_one_does() {
    let fake = Fake::new("slow");
    let first = runtime();
    let tiers = first.block_on(async {
        let tiers = tiers(&[&fake]);
        *fake.is_gated.lock() = true;
        drop(tiers.invalidate(1, By::This));
        settle().await;
        assert_eq!(fake.calls("delete").len(), 1);
        tiers
    });
    drop(first);
    *fake.is_gated.lock() = false;
    fake.keep(1, kept(9, epoch()));
    // Outside of any runtime: nobody can send it, and it is owed all the same.
    drop(tiers.invalidate(2, By::This));
    assert_eq!(stats(&tiers).owed, 2);
    runtime().block_on(async {
        assert_eq!(read(&tiers, &[1]).await, [None]);
        tiers.settled().await;
    });
    assert_eq!((fake.value(1), stats(&tiers).owed), (None, 0));
}

#[test]
fn who_waits_has_it_sent_though_the_runtime_that_was_sending_it_ends() {
    let fake = Fake::new("slow");
    let (first, second) = (runtime(), runtime());
    let tiers = first.block_on(async {
        let tiers = tiers(&[&fake]);
        *fake.is_gated.lock() = true;
        drop(tiers.invalidate(1, By::This));
        settle().await;
        assert_eq!(fake.calls("delete").len(), 1);
        tiers
    });
    let mut settled = Box::pin(tiers.settled());
    second.block_on(async { assert!(poll!(settled.as_mut()).is_pending()) });
    drop(first);
    *fake.is_gated.lock() = false;
    let settled = second.block_on(async { tokio::time::timeout(ms(60_000), settled).await });
    assert!(settled.is_ok());
}

/// The one that was named for it has ended long ago.
#[tokio::test(start_paused = true)]
async fn who_waits_has_it_sent_though_the_runtime_for_it_has_ended() {
    let fake = Fake::new("tier");
    let ended = std::thread::spawn(|| {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.handle().clone()
    });
    let ended = ended.join().unwrap();
    let tier = Arc::clone(&fake) as Arc<dyn Tier<u64, u64>>;
    let tiers = Tiers::new(vec![tier], settings(), None, Arc::new(move || Some(ended.clone())));
    fake.keep(1, kept(1, epoch()));
    drop(tiers.invalidate(1, By::This));
    let settled = tokio::time::timeout(ms(60_000), tiers.settled()).await;
    assert_eq!((settled, fake.value(1)), (Ok(()), None));
}

/// Ways to weigh values by what they are, of which those together that wait for a tier weigh at most 100.
fn by_value(panics_at: u64) -> Scales<u64, u64> {
    Scales {
        weigher: Arc::new(move |_: &u64, value: Option<&u64>| {
            let value = *value.unwrap_or(&0);
            assert_ne!(value, panics_at, "told to panic");
            value as u32
        }),
        max: 100,
    }
}

fn weighed(fakes: &[&Arc<Fake>], scales: Scales<u64, u64>) -> Tiers<u64, u64> {
    let tiers = fakes.iter().map(|fake| Arc::clone(fake) as Arc<dyn Tier<u64, u64>>);
    let runtime = Arc::new(|| Handle::try_current().ok());
    Tiers::new(tiers.collect(), settings(), Some(scales), runtime)
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_one_tier_does_not_weigh_on_another() {
    let (upper, lower) = (Fake::new("upper"), Fake::new("lower"));
    let tiers = weighed(&[&upper, &lower], by_value(0));
    tiers.fill_with(put(1, 60, epoch()));
    tiers.settled().await;
    assert_eq!((upper.value(1), lower.value(1)), (Some(60), Some(60)));
    lower.changes(Mood::Hangs);
    for key in 2..30 {
        tiers.insert_with(put(key, 60, epoch()));
        settle().await;
        assert_eq!(upper.value(key), Some(60), "{key}");
    }
    lower.changes(Mood::Works);
    tiers.settled().await;
}

#[tokio::test(start_paused = true)]
async fn a_weigher_that_panics_costs_what_is_kept_of_its_value_alone() {
    let (upper, lower) = (Fake::new("upper"), Fake::new("lower"));
    let tiers = weighed(&[&upper, &lower], by_value(3));
    for key in 1..5 {
        lower.keep(key, kept(key, epoch()));
    }
    assert_eq!(read(&tiers, &[1, 2, 3, 4]).await, [1, 2, 3, 4].map(Some));
    tiers.settled().await;
    let above: Vec<_> = (1..5).map(|key| upper.value(key)).collect();
    assert_eq!(above, [Some(1), Some(2), None, Some(4)]);
}

#[tokio::test(start_paused = true)]
async fn what_waits_of_values_weighs_no_more_than_it_may() {
    let fake = Fake::new("slow");
    let tiers = weighed(&[&fake], by_value(0));
    for key in [2, 3] {
        fake.keep(key, kept(1, epoch()));
    }
    tiers.fill_with(put(1, 60, epoch()));
    tiers.fill_with(put(2, 50, epoch()));
    assert_eq!(stats(&tiers).dropped, 1);
    // What was there must go all the same.
    tiers.insert_with(put(3, 41, epoch()));
    tiers.fill_with(put(4, 40, epoch()));
    assert_eq!(read(&tiers, &[3]).await, [None]);
    tiers.settled().await;
    let all = |keys: &[u64]| keys.iter().map(|key| fake.value(*key)).collect::<Vec<_>>();
    assert_eq!(all(&[1, 2, 3, 4]), [Some(60), Some(1), None, Some(40)]);
    // What does not wait any more weighs nothing; what is heavier than all may wait alone.
    tiers.fill_with(put(5, 1_000, epoch()));
    tiers.fill_with(put(6, 1, epoch()));
    tiers.settled().await;
    tiers.fill_with(put(6, 100, epoch()));
    tiers.settled().await;
    assert_eq!(all(&[5, 6]), [Some(1_000), Some(100)]);
    // Nor what was replaced, or did not come in time.
    for _ in 0..10 {
        tiers.insert_with(put(7, 60, epoch()));
        drop(tiers.invalidate(7, By::This));
    }
    tiers.insert_with(put(7, 60, epoch()));
    tiers.settled().await;
    assert_eq!(all(&[7]), [Some(60)]);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_read_harms_nobody() {
    let fake = Fake::new("slow");
    let tiers = tiers(&[&fake]);
    fake.keep(1, kept(10, epoch()));
    *fake.is_gated.lock() = true;
    let mut reading = Box::pin(tiers.get_many(&[1], &|_, _, _| true));
    assert!(poll!(reading.as_mut()).is_pending());
    drop(reading);
    *fake.is_gated.lock() = false;
    advance(ms(1)).await;
    assert_eq!(read(&tiers, &[1]).await, [Some(10)]);
}
