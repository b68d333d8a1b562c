//! Times without end, and without length.

use crate::tier::{BreakerState, By};
use tokio::time::advance;

use super::*;

#[tokio::test(start_paused = true)]
async fn times_without_end_are_for_ever() {
    let fake = Fake::new("ill");
    let mut settings = settings();
    settings.pause = (Duration::MAX, Duration::MAX);
    settings.retry_after = (Duration::MAX, Duration::MAX);
    settings.max_clock_skew = Duration::MAX;
    settings.failures_to_open = 2;
    let tiers = tiers_with(&[&fake], settings);
    fake.keep(1, kept(10, epoch() + Duration::from_secs(1 << 30)));
    assert_eq!(read(&tiers, &[1]).await, [Some(10)], "from the future");
    fake.all(Mood::Fails);
    for _ in 0..5 {
        assert_eq!(read(&tiers, &[1]).await, [None]);
        drop(tiers.invalidate(2, By::This));
        advance(Duration::from_secs(3600)).await;
        settle().await;
    }
    assert_eq!((fake.calls("get").len(), fake.calls("delete").len()), (3, 1));
    assert_eq!((stats(&tiers).breaker, stats(&tiers).owed), (BreakerState::Open, 1));
}

/// A tier that takes the thousandth deletion.
struct Stubborn(AtomicUsize);

impl Tier<u64, u64> for Stubborn {
    fn name(&self) -> &str {
        "stubborn"
    }

    fn get_many<'a>(&'a self, keys: &'a [u64]) -> BoxFuture<'a, Result<Vec<Option<Kept<u64>>>, TierError>> {
        Box::pin(std::future::ready(Ok(vec![None; keys.len()])))
    }

    fn put_many<'a>(&'a self, _: &'a [Put<u64, u64>]) -> BoxFuture<'a, Result<(), TierError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn delete_many<'a>(&'a self, _: &'a [u64]) -> BoxFuture<'a, Result<(), TierError>> {
        let is_taken = self.0.fetch_add(1, SeqCst) >= 1_000;
        let refused = TierError::failed("delete", "not yet");
        Box::pin(std::future::ready(is_taken.then_some(()).ok_or(refused)))
    }

    fn clear<'a>(&'a self) -> BoxFuture<'a, Result<(), TierError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

#[tokio::test(start_paused = true)]
async fn what_fails_at_once_is_not_tried_again_before_others_went_on() {
    let stubborn = Arc::new(Stubborn(AtomicUsize::new(0)));
    let mut settings = settings();
    settings.retry_after = (Duration::ZERO, Duration::ZERO);
    let tier = Arc::clone(&stubborn) as Arc<dyn Tier<u64, u64>>;
    let tiers = Tiers::new(vec![tier], settings, None, Arc::new(|| Handle::try_current().ok()));
    drop(tiers.invalidate(1, By::This));
    settle().await;
    assert_eq!(stubborn.0.load(SeqCst), 1);
    tiers.settled().await;
    assert_eq!(stubborn.0.load(SeqCst), 1_001);
}
