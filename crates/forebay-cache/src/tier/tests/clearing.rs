//! Clears, watermarks, bounds.

use crate::tier::By;
use tokio::time::advance;

use super::*;

#[tokio::test(start_paused = true)]
async fn nothing_that_was_there_is_read_after_a_clear_though_the_tier_does_not_do_it() {
    let fake = Fake::new("ill");
    let tiers = tiers(&[&fake]);
    fake.keep(1, kept(10, epoch()));
    *fake.deletes.lock() = Mood::Fails;
    drop(tiers.clear(By::This));
    assert_eq!(read(&tiers, &[1]).await, [None]);
    assert_eq!(stats(&tiers).owed, 1);
    for _ in 0..60 {
        advance(ms(1_000)).await;
        assert_eq!(read(&tiers, &[1]).await, [None]);
    }
    // Nothing that would be newer is there yet.
    fake.keep(2, kept(20, epoch() + ms(1)));
    assert_eq!(read(&tiers, &[2]).await, [None]);
    *fake.deletes.lock() = Mood::Works;
    tiers.settled().await;
    assert!(
        fake.kept.lock().is_empty(),
        "the clear was not tried until it was acknowledged"
    );
    assert!(fake.calls("clear").len() > 2);
    // What is fetched later is read, and another process's late fill of what it fetched before is not.
    fake.keep(2, kept(20, epoch() + ms(1)));
    fake.keep(1, kept(10, epoch()));
    assert_eq!(read(&tiers, &[1, 2]).await, [None, Some(20)]);
}

/// What is there is younger than the clear by then.
#[tokio::test(start_paused = true)]
async fn nothing_that_was_there_is_read_after_a_clear_though_the_clock_was_set_back() {
    for (by_tag, before) in [(false, false), (false, true), (true, false), (true, true)] {
        let fake = Fake::new("slow");
        let begun = Instant::now();
        let is_back = Arc::new(AtomicBool::new(false));
        let back = Arc::clone(&is_back);
        let wall = move || epoch() + begun.elapsed() - if back.load(SeqCst) { ms(3_000) } else { ms(0) };
        let tiers = tiers_with(&[&fake], TierSettings::default().wall_clock(wall));
        fake.keep(1, kept(10, epoch()));
        *fake.is_gated.lock() = true;
        is_back.store(true, SeqCst);
        let mut reading = Box::pin(read(&tiers, &[1]));
        if before {
            assert!(futures_util::poll!(&mut reading).is_pending(), "it waits for the tier");
        }
        match by_tag {
            true => drop(tiers.invalidate_tag(&Arc::from("all"), By::This)),
            false => drop(tiers.clear(By::This)),
        }
        fake.gate.add_permits(4);
        assert_eq!(reading.await, [None]);
        tiers.settled().await;
        assert!(fake.kept.lock().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn changes_from_before_a_clear_are_forgotten_and_those_after_it_come_after_it() {
    let fake = Fake::new("slow");
    let tiers = tiers(&[&fake]);
    *fake.is_gated.lock() = true;
    tiers.fill_with(put(1, 10, epoch()));
    settle().await;
    tiers.fill_with(put(2, 20, epoch()));
    tiers.insert_with(put(3, 30, epoch()));
    advance(ms(1)).await;
    drop(tiers.clear(By::This));
    advance(ms(1)).await;
    tiers.fill_with(put(4, 40, epoch() + ms(2)));
    *fake.is_gated.lock() = false;
    fake.gate.add_permits(2);
    tiers.settled().await;
    assert_eq!(*fake.kept.lock(), HashMap::from([(4, kept(40, epoch() + ms(2)))]));
    assert_eq!(read(&tiers, &[1, 2, 3, 4]).await, [None, None, None, Some(40)]);
    let calls: Vec<&str> = fake.calls.lock().iter().map(|(name, ..)| *name).collect();
    assert_eq!(calls, ["put", "clear", "put", "get"]);
}

/// What was on its way then was fetched before, and comes behind the clear.
#[tokio::test(start_paused = true)]
async fn nothing_is_left_in_a_shared_tier_of_what_waited_when_another_process_cleared_it() {
    for by_tag in [false, true] {
        let fake = Fake::shared("slow");
        let tiers = tiers(&[&fake]);
        *fake.is_gated.lock() = true;
        tiers.insert_with(put(1, 10, epoch()));
        settle().await;
        tiers.insert_with(put(2, 20, epoch()));
        tiers.fill_with(put(3, 30, epoch()));
        // The other's, which the tier has acknowledged.
        fake.kept.lock().clear();
        match by_tag {
            true => drop(tiers.invalidate_tag(&Arc::from("all"), By::Another)),
            false => drop(tiers.clear(By::Another)),
        }
        tiers.validate();
        assert_eq!(read(&tiers, &[1, 2, 3]).await, [None; 3]);
        tiers.insert_with(put(4, 40, epoch()));
        *fake.is_gated.lock() = false;
        fake.gate.add_permits(2);
        tiers.settled().await;
        let left: Vec<u64> = fake.kept.lock().keys().copied().collect();
        assert_eq!((left, fake.calls("clear").len()), (vec![4], 0));
    }
}

fn bounded(max_owed: usize) -> TierSettings {
    let mut settings = settings();
    settings.max_owed = max_owed;
    settings
}

#[tokio::test(start_paused = true)]
async fn fills_over_the_bound_are_dropped_and_give_way_to_what_is_owed() {
    let fake = Fake::new("slow");
    let tiers = tiers_with(&[&fake], bounded(3));
    *fake.is_gated.lock() = true;
    tiers.fill_with(put(0, 0, epoch()));
    settle().await;
    // One is out, two wait, and then it is full.
    for key in 1..=3 {
        tiers.fill_with(put(key, key, epoch()));
    }
    assert_eq!(stats(&tiers).dropped, 1);
    // The oldest fill makes room.
    fake.keep(4, kept(9, epoch()));
    drop(tiers.invalidate(4, By::This));
    *fake.is_gated.lock() = false;
    fake.gate.add_permits(2);
    tiers.settled().await;
    let mut keys: Vec<u64> = fake.kept.lock().keys().copied().collect();
    keys.sort_unstable();
    assert_eq!(keys, [0, 2]);
    assert_eq!(stats(&tiers).overflows, 0);
}

#[tokio::test(start_paused = true)]
async fn more_owed_deletions_than_the_bound_become_a_watermark_and_a_clear() {
    let fake = Fake::new("ill");
    let tiers = tiers_with(&[&fake], bounded(100));
    for key in 0..200 {
        fake.keep(key, kept(9, epoch()));
    }
    advance(ms(10)).await;
    fake.changes(Mood::Fails);
    for key in 0..100 {
        drop(tiers.invalidate(key, By::This));
    }
    assert_eq!(
        read(&tiers, &[50, 150]).await,
        [None, Some(9)],
        "up to the bound only they are not read"
    );
    assert_eq!((stats(&tiers).owed, stats(&tiers).overflows), (100, 0));
    drop(tiers.invalidate(100, By::This));
    assert_eq!(stats(&tiers).overflows, 1);
    let all: Vec<u64> = (0..200).collect();
    for _ in 0..50 {
        assert!(
            read(&tiers, &all).await.iter().all(Option::is_none),
            "an old value was read"
        );
        assert!(stats(&tiers).owed <= 2, "the queue was emptied");
        advance(ms(1_000)).await;
    }
    fake.changes(Mood::Works);
    tiers.settled().await;
    assert!(fake.kept.lock().is_empty());
    assert_eq!(stats(&tiers).owed, 0);
    fake.keep(150, kept(10, epoch() + ms(11)));
    assert_eq!(read(&tiers, &[150]).await, [Some(10)], "what was fetched later is read");
}

/// What another process has put there, whose clock is ahead, was there before the clear all the same.
#[tokio::test(start_paused = true)]
async fn while_a_clear_is_owed_a_clock_that_is_ahead_brings_nothing_back() {
    for (ahead, is_read) in [(ms(0), false), (ms(4_999), false), (ms(5_001), true)] {
        let fake = Fake::shared("ill");
        let tiers = tiers(&[&fake]);
        fake.keep(1, kept(10, epoch() + ahead));
        *fake.deletes.lock() = Mood::Fails;
        drop(tiers.clear(By::This));
        // It says itself what it takes for the future.
        advance(ms(10)).await;
        let expected = is_read.then_some(10);
        assert_eq!(read(&tiers, &[1]).await, [expected], "{ahead:?}");
        // A read that began before the clear was done.
        *fake.is_gated.lock() = true;
        let reading = tokio::spawn({
            let tiers = tiers.clone();
            async move { read(&tiers, &[1]).await }
        });
        settle().await;
        fake.gate.add_permits(1);
        settle().await;
        *fake.is_gated.lock() = false;
        *fake.deletes.lock() = Mood::Works;
        tiers.settled().await;
        fake.gate.add_permits(1);
        assert_eq!(reading.await.unwrap(), [expected], "{ahead:?}");
        assert_eq!(read(&tiers, &[1]).await, [None]);
        // Behind it, what another has fetched since.
        fake.keep(2, kept(20, epoch() + ms(20)));
        assert_eq!(read(&tiers, &[2]).await, [Some(20)]);
    }
}
