//! Reading through tiers that are well, ill and in between.

use crate::tier::By;
use futures_util::poll;
use tokio::time::advance;

use super::super::BreakerState;
use super::*;

#[tokio::test(start_paused = true)]
async fn the_uppermost_value_is_found_one_answer_a_key_in_order() {
    let (upper, lower) = (Fake::new("upper"), Fake::new("lower"));
    let tiers = tiers(&[&upper, &lower]);
    upper.keep(1, kept(10, epoch()));
    lower.keep(1, kept(11, epoch()));
    lower.keep(3, kept(33, epoch()));
    assert_eq!(read(&tiers, &[3, 2, 1, 3]).await, [Some(33), None, Some(10), Some(33)]);
    assert_eq!(
        lower.calls("get")[0].0,
        3,
        "the lower tier is asked for what is still wanted"
    );
    let [upper, lower] = <[TierStats; 2]>::try_from(tiers.stats()).unwrap();
    assert_eq!((upper.gets, upper.hits, upper.misses), (4, 1, 3));
    assert_eq!((lower.gets, lower.hits, lower.misses), (3, 2, 1));
    assert_eq!((upper.name.as_str(), upper.read_latency.count), ("upper", 1));
    assert!(tiers_with(&[], settings()).is_empty() && !tiers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_lower_tiers_value_is_put_into_the_upper_ones_with_its_age() {
    let (upper, middle, lower) = (Fake::new("upper"), Fake::new("middle"), Fake::new("lower"));
    let mut settings = settings();
    settings.keep_for = ms(10_000);
    settings.keep_missing_for = ms(5_000);
    let tiers = tiers_with(&[&upper, &middle, &lower], settings);
    let missing = Kept::new(None, epoch());
    lower.keep(1, kept(10, epoch()));
    lower.keep(2, missing.clone());
    lower.keep(3, kept(30, epoch() - ms(9_000)));
    advance(ms(1_000)).await;
    let found = tiers.get_many(&[2], &|_, _, _| true).await.remove(0).unwrap();
    assert_eq!(
        (found.kept, found.is_shared),
        (missing.clone(), false),
        "that the source has none is worth knowing"
    );
    tiers.get_many(&[1, 3], &|_, _, _| true).await;
    tiers.settled().await;
    for tier in [&upper, &middle] {
        assert_eq!(
            *tier.kept.lock(),
            HashMap::from([(1, kept(10, epoch())), (2, missing.clone())]),
            "{}",
            tier.name
        );
        assert_eq!(
            tier.kept_for.lock()[&1],
            ms(9_000),
            "an age is not forgotten on the way up"
        );
        assert_eq!(tier.kept_for.lock()[&2], ms(4_000));
    }
    assert!(lower.calls("put").is_empty());
}

/// Its copy may be of before another process's change, of which nobody told it.
#[tokio::test(start_paused = true)]
async fn what_only_this_process_keeps_is_not_put_into_a_tier_that_all_share() {
    for (lower_is_shared, carried) in [(false, None), (true, Some(10))] {
        let (own, all, lower) = (Fake::new("own"), Fake::shared("all"), Fake::new("lower"));
        lower.is_shared.store(lower_is_shared, SeqCst);
        let tiers = tiers(&[&own, &all, &lower]);
        lower.keep(1, kept(10, epoch()));
        assert_eq!(read(&tiers, &[1]).await, [Some(10)]);
        tiers.settled().await;
        assert_eq!((own.value(1), all.value(1)), (Some(10), carried));
    }
}

#[tokio::test(start_paused = true)]
async fn a_tier_that_errs_panics_or_miscounts_is_skipped_and_counted() {
    for mood in [Mood::Fails, Mood::Panics, Mood::Miscounts] {
        let (upper, lower) = (Fake::new("upper"), Fake::new("lower"));
        let tiers = tiers(&[&upper, &lower]);
        *upper.reads.lock() = mood;
        for fake in [&upper, &lower] {
            fake.keep(1, kept(10, epoch()));
        }
        lower.keep(2, kept(20, epoch()));
        assert_eq!(read(&tiers, &[1, 2]).await, [Some(10), Some(20)], "{mood:?}");
        let stats = stats(&tiers);
        assert_eq!((stats.errors, stats.timeouts, stats.hits), (1, 0, 0), "{mood:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tier_that_hangs_costs_the_timeout_and_after_some_times_nothing() {
    let fake = Fake::new("slow");
    let tiers = tiers(&[&fake]);
    fake.keep(1, kept(10, epoch()));
    *fake.reads.lock() = Mood::Hangs;
    for _ in 0..5 {
        let begun = Instant::now();
        assert_eq!(read(&tiers, &[1]).await, [None]);
        assert_eq!(begun.elapsed(), ms(250));
    }
    assert_eq!(stats(&tiers).breaker, BreakerState::Open);
    let begun = Instant::now();
    assert_eq!(read(&tiers, &[1]).await, [None]);
    assert_eq!(begun.elapsed(), ms(0));
    assert_eq!((stats(&tiers).timeouts, stats(&tiers).skipped), (5, 1));
    // It works again without a restart: one probe finds out, and another does not wait for it.
    *fake.reads.lock() = Mood::Works;
    *fake.is_gated.lock() = true;
    advance(ms(1_000)).await;
    let mut probe = Box::pin(read(&tiers, &[1]));
    assert!(poll!(probe.as_mut()).is_pending());
    assert_eq!(stats(&tiers).breaker, BreakerState::HalfOpen);
    assert_eq!(read(&tiers, &[1]).await, [None]);
    fake.gate.add_permits(2);
    assert_eq!(probe.await, [Some(10)]);
    assert_eq!(stats(&tiers).breaker, BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_value_from_the_future_is_a_miss_and_counted() {
    let (upper, lower) = (Fake::new("upper"), Fake::new("lower"));
    let tiers = tiers(&[&upper, &lower]);
    lower.keep(1, kept(10, epoch() + ms(5_001)));
    lower.keep(2, kept(20, epoch() + ms(5_000)));
    assert_eq!(read(&tiers, &[1, 2]).await, [None, Some(20)]);
    tiers.settled().await;
    assert_eq!(upper.value(1), None, "it was carried up");
    let lower = &tiers.stats()[1];
    assert_eq!((lower.hits, lower.misses, lower.undecodable), (1, 1, 1));
}

/// A read that has its answer and is about to return it, and what may happen to the key before it does.
async fn changed_during_a_read(change: impl AsyncFnOnce(&Tiers<u64, u64>)) -> (Vec<Option<u64>>, Arc<Fake>) {
    let (upper, lower) = (Fake::new("upper"), Fake::new("lower"));
    let tiers = tiers(&[&upper, &lower]);
    lower.keep(1, kept(10, epoch()));
    lower.keep(2, kept(20, epoch()));
    *lower.is_gated.lock() = true;
    let mut reading = Box::pin(read(&tiers, &[1, 2]));
    assert!(poll!(reading.as_mut()).is_pending());
    // In: the answer is made, and held.
    lower.gate.add_permits(1);
    assert!(poll!(reading.as_mut()).is_pending());
    *lower.is_gated.lock() = false;
    change(&tiers).await;
    lower.gate.add_permits(1);
    let read = reading.await;
    tiers.settled().await;
    (read, upper)
}

#[tokio::test(start_paused = true)]
async fn a_read_that_began_before_a_change_does_not_bring_the_old_value() {
    let (read, upper) = changed_during_a_read(async |_| {}).await;
    assert_eq!(
        (read, upper.value(1)),
        (vec![Some(10), Some(20)], Some(10)),
        "nothing changed"
    );

    // Acknowledged by all tiers before the read is back: nothing is owed any more, and still the value is old.
    let invalidated = changed_during_a_read(async |tiers| {
        drop(tiers.invalidate(1, By::This));
        tiers.settled().await;
    });
    let (read, upper) = invalidated.await;
    assert_eq!(read, [None, Some(20)]);
    assert_eq!(
        upper.value(1),
        None,
        "the old value was carried up after the invalidation"
    );

    let inserted = changed_during_a_read(async |tiers| {
        tiers.insert_with(put(1, 11, epoch()));
        tiers.settled().await;
    });
    let (read, upper) = inserted.await;
    assert_eq!((read, upper.value(1)), (vec![None, Some(20)], Some(11)));

    let cleared = changed_during_a_read(async |tiers| {
        drop(tiers.clear(By::This));
        tiers.settled().await;
    });
    let (read, upper) = cleared.await;
    assert_eq!((read, upper.value(1), upper.value(2)), (vec![None, None], None, None));
}

#[tokio::test(start_paused = true)]
async fn a_waiting_change_is_not_replaced_by_a_value_that_comes_up() {
    let (upper, lower) = (Fake::new("upper"), Fake::new("lower"));
    let tiers = tiers(&[&upper, &lower]);
    upper.keep(1, kept(9, epoch()));
    *upper.is_gated.lock() = true;
    drop(tiers.invalidate(1, By::This));
    settle().await;
    // Meanwhile another process has put its value into the shared tier.
    lower.keep(1, kept(10, epoch()));
    assert_eq!(
        read(&tiers, &[1]).await,
        [Some(10)],
        "the upper tier has a deletion owed, the lower has not"
    );
    upper.gate.add_permits(2);
    *upper.is_gated.lock() = false;
    tiers.settled().await;
    assert_eq!(upper.value(1), None);
    assert_eq!(stats(&tiers).barred, 1);
}

#[tokio::test(start_paused = true)]
async fn a_tier_that_answers_in_time_is_read_to_the_end_however_many_keys_are_asked_for() {
    let fake = Fake::new("slow");
    let tiers = tiers(&[&fake]);
    let keys: Vec<u64> = (0..30_000).collect();
    for key in &keys {
        fake.keep(*key, kept(*key, epoch()));
    }
    // All of them at once would take it longer than a read may.
    let per_key = Duration::from_micros(125);
    *fake.per_key.lock() = per_key;
    assert!(read(&tiers, &keys).await.into_iter().eq(keys.iter().copied().map(Some)));
    let at_a_time = fake.calls("get").into_iter().map(|(size, _)| size);
    assert!(at_a_time.max().unwrap() <= 2_048, "others are served in between");
    // What it has answered before it hangs is of use; the rest is not asked for.
    fake.calls.lock().clear();
    *fake.is_gated.lock() = true;
    fake.gate.add_permits(4);
    let begun = Instant::now();
    let found = read(&tiers, &keys).await.into_iter().flatten().count();
    assert_eq!((found, fake.calls("get").len()), (2 * 1_024, 3));
    assert_eq!(begun.elapsed(), ms(250) + 2 * 1_024 * per_key);
    assert_eq!((stats(&tiers).timeouts, stats(&tiers).skipped), (1, 0));
}
