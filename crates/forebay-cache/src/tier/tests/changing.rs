//! Fills, inserts and invalidations.

use crate::tier::By;
use tokio::time::advance;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_fetched_value_goes_into_every_tier_and_is_dropped_where_one_fails() {
    let (well, ill) = (Fake::new("well"), Fake::new("ill"));
    let tiers = tiers(&[&ill, &well]);
    *ill.puts.lock() = Mood::Fails;
    tiers.fill_with(put(1, 10, epoch()));
    tiers.settled().await;
    assert_eq!((ill.value(1), well.value(1)), (None, Some(10)));
    assert_eq!(well.kept_for.lock()[&1], Duration::from_secs(3600));
    // While it is left alone, values are dropped at once and not kept waiting.
    tiers.fill_with(put(2, 20, epoch()));
    tiers.settled().await;
    let stats = stats(&tiers);
    assert_eq!((stats.puts, stats.dropped, stats.errors, stats.owed), (0, 2, 1, 0));
    assert_eq!(ill.calls("put").len(), 1);
    *ill.puts.lock() = Mood::Works;
    advance(ms(100)).await;
    tiers.fill_with(put(3, 30, epoch()));
    tiers.settled().await;
    assert_eq!((ill.value(1), ill.value(2), ill.value(3)), (None, None, Some(30)));
}

#[tokio::test(start_paused = true)]
async fn a_deletion_is_owed_until_it_is_acknowledged_and_its_key_not_read() {
    for mood in [Mood::Fails, Mood::Hangs, Mood::Panics] {
        let fake = Fake::new("ill");
        let tiers = tiers(&[&fake]);
        fake.keep(1, kept(10, epoch()));
        fake.keep(2, kept(20, epoch()));
        *fake.deletes.lock() = mood;
        drop(tiers.invalidate(1, By::This));
        for _ in 0..50 {
            assert_eq!(read(&tiers, &[1, 2]).await, [None, Some(20)], "{mood:?}");
            advance(ms(1_000)).await;
        }
        assert_eq!(stats(&tiers).owed, 1);
        *fake.deletes.lock() = Mood::Works;
        tiers.settled().await;
        assert_eq!(
            (stats(&tiers).owed, stats(&tiers).deletes, fake.value(1)),
            (0, 1, None),
            "{mood:?}"
        );
        fake.keep(1, kept(11, epoch()));
        assert_eq!(read(&tiers, &[1]).await, [Some(11)], "the key is read again");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_owed_is_tried_again_after_pauses_that_double_to_their_limit() {
    let fake = Fake::new("ill");
    let tiers = tiers(&[&fake]);
    *fake.deletes.lock() = Mood::Fails;
    drop(tiers.invalidate(1, By::This));
    while fake.calls("delete").len() < 14 {
        tokio::time::sleep(ms(10)).await;
    }
    let calls = fake.calls("delete");
    for (tried, pair) in calls.windows(2).enumerate() {
        let (pause, longest) = (pair[1].1 - pair[0].1, ms(100 << tried).min(ms(30_000)));
        // tokio's clock rounds up to the next millisecond.
        assert!(
            pause >= longest / 2 && pause <= longest + ms(1),
            "pause {tried} was {pause:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_inserted_value_is_kept_or_else_the_key_is_deleted() {
    let fake = Fake::new("ill");
    let tiers = tiers(&[&fake]);
    fake.keep(1, kept(9, epoch()));
    fake.changes(Mood::Fails);
    tiers.insert_with(put(1, 10, epoch()));
    for _ in 0..20 {
        advance(ms(100)).await;
        assert_eq!(
            read(&tiers, &[1]).await,
            [None],
            "neither the old value nor one of which nobody knows"
        );
    }
    assert_eq!(stats(&tiers).owed, 1);
    fake.changes(Mood::Works);
    tiers.settled().await;
    assert_eq!(fake.value(1), None, "the old value is gone");
    assert_eq!(fake.calls("put").len(), 1, "a put is not tried again: its deletion is");
    tiers.insert_with(put(1, 11, epoch()));
    tiers.settled().await;
    assert_eq!(read(&tiers, &[1]).await, [Some(11)]);
}

/// By the time it could be put there, another process may have written a newer one.
#[tokio::test(start_paused = true)]
async fn a_value_that_could_not_be_sent_at_once_is_not_put_into_a_shared_tier_later() {
    for is_shared in [false, true] {
        for refuses_deletions in [false, true] {
            let fake = Fake::new("away");
            fake.is_shared.store(is_shared, SeqCst);
            let tiers = tiers(&[&fake]);
            // The first is on its way when the tier goes away, the second waits behind it, the third comes while the tier is left alone.
            *fake.is_gated.lock() = true;
            tiers.insert_with(put(1, 10, epoch()));
            drop(tiers.invalidate(9, By::This));
            settle().await;
            tiers.insert_with(put(2, 20, epoch()));
            *fake.puts.lock() = Mood::Fails;
            if refuses_deletions {
                *fake.deletes.lock() = Mood::Fails;
            }
            *fake.is_gated.lock() = false;
            fake.gate.add_permits(3);
            settle().await;
            tiers.insert_with(put(3, 30, epoch()));
            tiers.validate();
            fake.changes(Mood::Works);
            tiers.settled().await;
            let left = [1, 2, 3].map(|key| fake.value(key));
            let kept = match (is_shared, refuses_deletions) {
                (false, true) => [None, Some(20), Some(30)],
                _ => [None; 3],
            };
            assert_eq!(
                left, kept,
                "shared: {is_shared}, refuses deletions: {refuses_deletions}"
            );
        }
    }
}

/// While what others do is not heard they may change what waits.
#[tokio::test(start_paused = true)]
async fn what_waits_for_a_shared_tier_is_deleted_where_changes_of_others_were_missed() {
    for is_shared in [false, true] {
        let fake = Fake::new("slow");
        fake.is_shared.store(is_shared, SeqCst);
        let tiers = tiers(&[&fake]);
        *fake.is_gated.lock() = true;
        tiers.insert_with(put(1, 10, epoch()));
        settle().await;
        tiers.insert_with(put(2, 20, epoch()));
        drop(tiers.missed_changes());
        tiers.validate();
        *fake.is_gated.lock() = false;
        fake.gate.add_permits(2);
        tiers.settled().await;
        let kept = (!is_shared).then_some(());
        assert_eq!((fake.value(1), fake.value(2)), (kept.map(|()| 10), kept.map(|()| 20)));
    }
}

#[tokio::test(start_paused = true)]
async fn the_latest_change_of_a_key_wins_also_while_a_batch_is_out() {
    let fake = Fake::new("slow");
    let tiers = tiers(&[&fake]);
    *fake.is_gated.lock() = true;
    tiers.fill_with(put(1, 10, epoch()));
    settle().await;
    assert_eq!(fake.calls("put").len(), 1);
    // All of these while the first is out.
    drop(tiers.invalidate(1, By::This));
    tiers.insert_with(put(1, 11, epoch()));
    tiers.fill_with(put(1, 12, epoch()));
    assert_eq!(stats(&tiers).owed, 1, "the last one stands for the invalidation too");
    *fake.is_gated.lock() = false;
    fake.gate.add_permits(2);
    tiers.settled().await;
    assert_eq!(fake.value(1), Some(12));
    assert_eq!((fake.calls("put").len(), fake.calls("delete").len()), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn a_fill_after_an_invalidation_that_failed_still_owes_it() {
    let fake = Fake::new("ill");
    let tiers = tiers(&[&fake]);
    fake.keep(1, kept(9, epoch()));
    *fake.is_gated.lock() = true;
    drop(tiers.invalidate(1, By::This));
    settle().await;
    // The deletion is out; this waits behind it, and alone would be dropped on failure.
    tiers.fill_with(put(1, 10, epoch()));
    fake.changes(Mood::Fails);
    *fake.is_gated.lock() = false;
    fake.gate.add_permits(2);
    for _ in 0..20 {
        settle().await;
        assert_eq!(read(&tiers, &[1]).await, [None]);
        advance(ms(100)).await;
    }
    fake.changes(Mood::Works);
    tiers.settled().await;
    assert_ne!(fake.value(1), Some(9), "the invalidation was lost with the fill");
}

#[tokio::test(start_paused = true)]
async fn changes_go_in_batches_of_at_most_512_what_is_owed_first() {
    let fake = Fake::new("slow");
    let tiers = tiers(&[&fake]);
    *fake.is_gated.lock() = true;
    tiers.fill_with(put(0, 0, epoch()));
    settle().await;
    for key in 1..=600 {
        tiers.fill_with(put(key, key, epoch()));
    }
    for key in 1001..=1600 {
        drop(tiers.invalidate(key, By::This));
    }
    *fake.is_gated.lock() = false;
    fake.gate.add_permits(2);
    tiers.settled().await;
    let calls: Vec<(&str, usize)> = fake.calls.lock().iter().map(|(name, size, _)| (*name, *size)).collect();
    let expected = [("put", 1), ("delete", 512), ("delete", 88), ("put", 424), ("put", 176)];
    assert_eq!(calls, expected);
    assert_eq!((stats(&tiers).puts, stats(&tiers).deletes), (601, 600));
}

#[tokio::test(start_paused = true)]
async fn a_full_tier_refuses_puts_and_deletions_go_on() {
    let fake = Fake::new("full");
    let tiers = tiers(&[&fake]);
    *fake.puts.lock() = Mood::Fails;
    for key in 0..20 {
        fake.keep(key, kept(9, epoch()));
        tiers.fill_with(put(100 + key, 1, epoch()));
        if key % 2 == 0 {
            drop(tiers.invalidate(key, By::This));
        } else {
            tiers.insert_with(put(key, 10, epoch()));
        }
        let begun = Instant::now();
        tiers.settled().await;
        assert_eq!(begun.elapsed(), ms(0), "key {key} waited for the puts' pause");
        assert_eq!(fake.value(key), None);
    }
    assert!(
        fake.calls("put").len() <= 2,
        "a full tier is hammered: {} puts",
        fake.calls("put").len()
    );
}

#[tokio::test(start_paused = true)]
async fn a_value_is_kept_no_longer_for_having_waited() {
    let fake = Fake::new("slow");
    let tiers = tiers(&[&fake]);
    *fake.is_gated.lock() = true;
    tiers.fill_with(put(0, 0, epoch()));
    settle().await;
    let short = |key, keep_for| Put {
        keep_for,
        ..put(key, key, epoch())
    };
    tiers.fill_with(short(1, ms(900)));
    tiers.fill_with(short(2, ms(400)));
    tiers.insert_with(short(3, ms(400)));
    fake.keep(3, kept(9, epoch()));
    advance(ms(500)).await;
    *fake.is_gated.lock() = false;
    fake.gate.add_permits(2);
    tiers.settled().await;
    assert_eq!(fake.kept_for.lock()[&1], ms(400));
    assert_eq!(
        (fake.value(2), fake.value(3)),
        (None, None),
        "what is over is not put, and what it replaced is gone"
    );
}

#[tokio::test(start_paused = true)]
async fn a_tier_whose_reads_work_again_gets_what_is_owed_at_once() {
    let fake = Fake::new("ill");
    let tiers = tiers(&[&fake]);
    fake.all(Mood::Fails);
    drop(tiers.invalidate(1, By::This));
    // The pause has grown to half a minute, and the breaker is open.
    while fake.calls("delete").len() < 12 {
        read(&tiers, &[2]).await;
        tokio::time::sleep(ms(100)).await;
    }
    fake.all(Mood::Works);
    let tried = fake.calls("delete").len();
    while stats(&tiers).hits + stats(&tiers).misses == 0 {
        tokio::time::sleep(ms(10)).await;
        read(&tiers, &[2]).await;
    }
    let begun = Instant::now();
    tiers.settled().await;
    assert_eq!(fake.calls("delete").len(), tried + 1);
    assert_eq!(begun.elapsed(), ms(0), "the deletion waited for its own pause");
}

/// What there is of the key is older, and is not to come back.
#[tokio::test(start_paused = true)]
async fn what_is_fetched_and_to_be_kept_for_no_time_takes_away_what_was_there() {
    // At once, or by the time that it is sent.
    for window in [Duration::ZERO, ms(40)] {
        let fake = Fake::new("a tier");
        let tiers = tiers(&[&fake]);
        tiers.fill_with(put(1, 10, epoch()));
        tiers.settled().await;
        *fake.is_gated.lock() = true;
        tiers.fill_with(put(2, 20, epoch()));
        settle().await;
        let mut newer = put(1, 11, epoch());
        newer.keep_for = window;
        tiers.fill_replacing(newer, true);
        advance(ms(100)).await;
        *fake.is_gated.lock() = false;
        fake.gate.add_permits(10);
        tiers.settled().await;
        assert_eq!((fake.value(1), fake.value(2)), (None, Some(20)), "{window:?}");
        // Of what is not there nothing is deleted; where a value is on its way it is.
        let deletes = fake.calls("delete").len();
        let mut short = put(3, 30, epoch());
        short.keep_for = Duration::ZERO;
        tiers.fill_with(short.clone());
        tiers.settled().await;
        assert_eq!(fake.calls("delete").len(), deletes);
        let fake = Fake::new("another");
        let tiers = self::tiers(&[&fake]);
        *fake.is_gated.lock() = true;
        tiers.fill_with(put(3, 30, epoch()));
        settle().await;
        tiers.fill_with(short);
        *fake.is_gated.lock() = false;
        fake.gate.add_permits(10);
        tiers.settled().await;
        assert_eq!(fake.value(3), None);
        tiers.validate();
    }
}

/// It is no deletion that somebody has asked for: nobody waits for it, and the tier is not cleared for it.
#[tokio::test(start_paused = true)]
async fn what_is_to_be_kept_for_no_time_owes_a_tier_nothing_that_refuses_it() {
    let fake = Fake::new("ill");
    let tiers = tiers_with(
        &[&fake],
        TierSettings {
            max_owed: 4,
            ..settings()
        },
    );
    fake.keep(1, kept(10, epoch()));
    *fake.deletes.lock() = Mood::Fails;
    for key in 0..100 {
        let mut short = put(key, 11, epoch());
        short.keep_for = Duration::ZERO;
        tiers.fill_replacing(short, true);
        settle().await;
    }
    let stats = stats(&tiers);
    assert_eq!((stats.owed, stats.overflows), (0, 0));
    assert_eq!(read(&tiers, &[1]).await, [Some(10)]);
    tiers.settled().await;
    tiers.validate();
}

/// By the next who comes with a runtime.
#[test]
fn what_was_changed_where_there_was_no_runtime_or_in_one_that_has_ended_is_sent_by_another() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let fake = Fake::new("a tier");
    let tiers = tiers(&[&fake]);
    let has_runtime = || tiers.has_runtime(|| Handle::try_current().ok());
    for (round, ends) in [false, true].into_iter().enumerate() {
        fake.keep(1, kept(10, epoch()));
        match ends {
            true => runtime().block_on(async { drop(tiers.invalidate(1, By::This)) }),
            false => drop(tiers.invalidate(1, By::This)),
        }
        has_runtime();
        assert_eq!(fake.value(1), Some(10), "nobody has a runtime");
        let told = async {
            has_runtime();
            settle().await;
        };
        runtime().block_on(told);
        assert_eq!(fake.value(1), None, "{ends}");
        assert_eq!(stats(&tiers).owed, 0);
        assert_eq!(fake.calls("delete").len(), round + 1, "once");
    }
}
