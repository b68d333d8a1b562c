//! The caches, and the bare connections beside them.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use forebay::cache::backplane::redis::RedisBackplane;
use forebay::cache::tier::{Form, KeyForm, Postcard, TierSettings, redis::RedisTier};
use forebay::cache::{Cache, CacheBuilder};
use futures_util::StreamExt;
use testbed::Redis;

use crate::failure::Failure;
use crate::latency::Latencies;

pub(super) const MAX_LAG: Duration = Duration::from_secs(5);
/// Of a key that ten want.
pub(super) const FETCH_TAKES: Duration = Duration::from_millis(50);
const NAMESPACE: &str = "fleet";
const A_WHILE: Duration = Duration::from_secs(10);

pub(super) type Member = Cache<u64, u64, Infallible>;

/// Caches over one source.
pub(super) struct Members {
    pub(super) caches: Vec<Member>,
    /// Of all of them.
    pub(super) fetches: Arc<AtomicU64>,
}

pub(super) fn backplane(redis: &Redis) -> RedisBackplane<u64> {
    RedisBackplane::open(&redis.url(), NAMESPACE).expect("a Redis' own address")
}

impl Members {
    /// They hear one another; their source takes no time.
    pub(super) fn with_backplanes(redis: &Redis, count: usize) -> Self {
        Self::new(count, Duration::ZERO, |builder| {
            builder.backplane(backplane(redis), MAX_LAG)
        })
    }

    /// One fetches for all.
    pub(super) fn with_leases(redis: &Redis, count: usize) -> Self {
        // Each time another namespace: nothing is there.
        let namespace = format!("{NAMESPACE}{}", rand::random::<u32>());
        Self::new(count, FETCH_TAKES, |builder| {
            let form = Form::new(&namespace, KeyForm::display(), Postcard);
            let mut settings = TierSettings::default();
            settings.lease_for = Some(Duration::from_secs(2));
            let tier = RedisTier::open(&redis.url(), form).expect("a Redis' own address");
            builder.tier(tier).tier_settings(settings)
        })
    }

    fn new(
        count: usize,
        takes: Duration,
        with: impl Fn(CacheBuilder<u64, u64, Infallible>) -> CacheBuilder<u64, u64, Infallible>,
    ) -> Self {
        let fetches = Arc::new(AtomicU64::new(0));
        let member = |_| {
            let fetches = Arc::clone(&fetches);
            let source = move |key: u64| {
                fetches.fetch_add(1, SeqCst);
                async move {
                    tokio::time::sleep(takes).await;
                    Ok(Some(!key))
                }
            };
            with(Cache::builder(source)).build()
        };
        Self {
            caches: (0..count).map(member).collect(),
            fetches,
        }
    }

    pub(super) async fn get(&self, member: &Member, key: u64) -> Result<(), Failure> {
        match member.get(&key).await {
            Ok(Some(value)) if value == !key => Ok(()),
            other => Err(Failure::Wrong(format!("{key} is {other:?}"))),
        }
    }
}

/// Waits until one hears what the other changes.
pub(super) async fn hears(teller: &Member, hearer: &Member) -> Result<(), Failure> {
    let began = Instant::now();
    loop {
        drop(hearer.get(&0).await);
        teller.invalidate(&0).await;
        tokio::time::sleep(Duration::from_millis(2)).await;
        if hearer.get_if_fresh(&0).is_none() {
            return Ok(());
        }
        if began.elapsed() > A_WHILE {
            return Err(Failure::Wrong("a change is not heard".to_owned()));
        }
    }
}

/// What a message takes that bare connections publish and receive, one after another.
pub(super) async fn messages(redis: &Redis, duration: Duration) -> Result<Latencies, Failure> {
    let failed = |error: redis::RedisError| Failure::Wrong(format!("Redis: {error}"));
    let client = redis::Client::open(redis.url()).map_err(failed)?;
    let mut publisher = client.get_multiplexed_async_connection().await.map_err(failed)?;
    let mut subscription = client.get_async_pubsub().await.map_err(failed)?;
    subscription.subscribe("bare").await.map_err(failed)?;
    let mut messages = subscription.into_on_message();
    let mut latencies = Latencies::new();
    let began = Instant::now();
    loop {
        let told = Instant::now();
        let mut publish = redis::cmd("PUBLISH");
        publish.arg("bare").arg([0_u8; 16].as_slice());
        let published = publish.query_async::<i64>(&mut publisher);
        let (published, received) = tokio::join!(published, messages.next());
        published.map_err(failed)?;
        if received.is_none() {
            return Err(Failure::Wrong("the subscription ended".to_owned()));
        }
        latencies.note(told.elapsed());
        if began.elapsed() > duration {
            return Ok(latencies);
        }
    }
}
