//! Invalidations of tags: how they are told, and what is not read meanwhile.

use std::collections::HashSet;

use crate::details::Details;
use crate::tier::By;
use tokio::time::{advance, timeout};

use super::*;

fn fake() -> Arc<Fake> {
    let fake = Fake::new("with tags");
    fake.keeps_tags.store(true, SeqCst);
    fake
}

fn tag(number: usize) -> Arc<str> {
    Arc::from(format!("tag{number}"))
}

fn tagged(value: u64, tags: &[Arc<str>]) -> Kept<u64> {
    let details = Details {
        tags: tags.to_vec(),
        ..Details::default()
    };
    Kept {
        details: Some(Arc::new(details)),
        ..kept(value, epoch())
    }
}

/// However many there are, each call has its time.
#[tokio::test(start_paused = true)]
async fn many_tags_are_told_so_many_at_a_time_the_oldest_first() {
    let fake = fake();
    let tiers = tiers(&[&fake]);
    fake.changes(Mood::Fails);
    for number in 0..2_000 {
        drop(tiers.invalidate_tag(&tag(number), By::This));
        // Once more, which changes nothing.
        drop(tiers.invalidate_tag(&tag(number / 2), By::This));
    }
    settle().await;
    tiers.validate();
    assert_eq!(stats(&tiers).owed, 2_000);
    fake.changes(Mood::Works);
    let settled = timeout(Duration::from_secs(3600), tiers.settled()).await;
    settled.expect("all have been told");
    let told = fake.tags.lock();
    for (batch, tags) in told.iter().enumerate() {
        let (tags, first): (HashSet<_>, _) = (tags.iter().cloned().collect(), batch * 512);
        assert_eq!(tags, (first..2_000.min(first + 512)).map(tag).collect());
    }
    assert_eq!((told.len(), stats(&tiers).owed), (4, 0));
    tiers.validate();
}

/// Reads of which the tier has taken its time.
#[tokio::test(start_paused = true)]
async fn what_carries_a_tag_that_was_owed_when_it_was_asked_for_is_not_used() {
    for told in [1, 20] {
        let fake = fake();
        let tiers = tiers(&[&fake]);
        fake.keep(1, tagged(10, &[tag(0), tag(77)]));
        fake.keep(2, tagged(20, &[tag(77)]));
        fake.keep(3, kept(30, epoch()));
        fake.changes(Mood::Fails);
        drop(tiers.invalidate_tag(&tag(0), By::This));
        settle().await;
        assert_eq!(read(&tiers, &[1, 2, 3]).await, [None, Some(20), Some(30)]);
        *fake.is_gated.lock() = true;
        let reading = tokio::spawn({
            let tiers = tiers.clone();
            async move { read(&tiers, &[1, 2, 3]).await }
        });
        settle().await;
        *fake.is_gated.lock() = false;
        fake.changes(Mood::Works);
        advance(ms(100)).await;
        settle().await;
        for number in 1..told {
            drop(tiers.invalidate_tag(&tag(number), By::This));
            settle().await;
        }
        tiers.settled().await;
        assert_eq!(fake.tags.lock().len(), told);
        fake.gate.add_permits(1);
        // With so many between nobody knows any more which they were.
        let other = (told == 1).then_some(20);
        assert_eq!(reading.await.unwrap(), [None, other, Some(30)], "{told}");
        assert_eq!(
            read(&tiers, &[1, 2]).await,
            [Some(10), Some(20)],
            "it is the tier's to know"
        );
    }
}

/// A tier that keeps no tags is cleared for each; what another has of other tags is there all the time.
#[tokio::test(start_paused = true)]
async fn a_tag_told_during_a_read_takes_from_it_what_tiers_without_tags_have_and_nothing_else() {
    for without_is_above in [true, false] {
        let (with, without) = (fake(), Fake::new("without tags"));
        let tiers = match without_is_above {
            true => tiers(&[&without, &with]),
            false => tiers(&[&with, &without]),
        };
        with.keep(1, tagged(10, &[tag(1)]));
        without.keep(2, tagged(20, &[tag(2)]));
        let last = if without_is_above { &with } else { &without };
        *last.is_gated.lock() = true;
        let reading = tokio::spawn({
            let tiers = tiers.clone();
            async move { read(&tiers, &[1, 2]).await }
        });
        settle().await;
        // It looks, and has not answered yet.
        last.gate.add_permits(1);
        settle().await;
        drop(tiers.invalidate_tag(&tag(3), By::This));
        *last.is_gated.lock() = false;
        last.gate.add_permits(100);
        assert_eq!(reading.await.unwrap(), [Some(10), None], "{without_is_above}");
        tiers.settled().await;
        let carried = (without.value(1), with.value(2));
        assert_eq!(carried, (None, None), "what came before the clear is not put behind it");
        assert_eq!(with.value(1), Some(10));
    }
}
