//! Caches of several processes over one database and a real Redis: what one changes the others do not serve, and one fetches for all.
//!
//! In `changes`, `leases` and `cuts` the processes are caches side by side, each with connections of its own; in `processes` they are processes, which
//! are killed, stopped and cut off.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod changes;
mod cuts;
mod leases;
mod pitfalls;
mod processes;
mod storm;
mod tags;

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use forebay_cache::backplane::redis::RedisBackplane;
use forebay_cache::tier::{Form, KeyForm, Postcard, TierSettings, redis::RedisTier};
use forebay_cache::{Cache, CacheBuilder, Fetched};
use parking_lot::Mutex;
use testbed::Redis;

type Member = Cache<u64, u64, Infallible>;

const HOUR: Duration = Duration::from_secs(3600);
const SECOND: Duration = Duration::from_secs(1);

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// What all read from. A fetch reads its row when it begins, and takes as long as it is told to.
#[derive(Clone, Default)]
struct Database(Arc<Rows>);

#[derive(Default)]
struct Rows {
    rows: Mutex<HashMap<u64, u64>>,
    takes_ms: AtomicU64,
    fetches: AtomicU64,
}

impl Database {
    fn write(&self, key: u64, value: u64) {
        self.0.rows.lock().insert(key, value);
    }

    fn take(&self, time: Duration) {
        self.0.takes_ms.store(time.as_millis() as u64, SeqCst);
    }

    fn fetches(&self) -> u64 {
        self.0.fetches.load(SeqCst)
    }

    /// A cache of it. All values have the tag `all`, and each the tag of its key's last digit.
    fn cache(&self) -> CacheBuilder<u64, u64, Infallible> {
        let rows = Arc::clone(&self.0);
        let source = move |key: u64| {
            let rows = Arc::clone(&rows);
            async move {
                rows.fetches.fetch_add(1, SeqCst);
                let value = rows.rows.lock().get(&key).copied();
                tokio::time::sleep(ms(rows.takes_ms.load(SeqCst))).await;
                Ok(Fetched::from(value).tag("all").tag(format!("digit{}", key % 10)))
            }
        };
        Cache::builder(source).fresh_for(HOUR)
    }
}

fn url(address: SocketAddr) -> String {
    format!("redis://{address}/")
}

fn backplane(address: SocketAddr) -> RedisBackplane<u64> {
    RedisBackplane::open(&url(address), "fleet").unwrap()
}

fn tier(address: SocketAddr) -> RedisTier<u64, u64> {
    RedisTier::open(&url(address), Form::new("fleet", KeyForm::display(), Postcard)).unwrap()
}

fn leasing(lease_for: Duration) -> TierSettings {
    let mut settings = TierSettings::default();
    settings.lease_for = Some(lease_for);
    settings
}

/// Waits until something is so.
async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let waiting = async {
        while !is_so().await {
            tokio::time::sleep(ms(1)).await;
        }
    };
    tokio::time::timeout(10 * SECOND, waiting)
        .await
        .unwrap_or_else(|_| panic!("{what}"));
}

/// As many caches with memory and a backplane, which hear one another.
async fn members(
    redis: &Redis,
    database: &Database,
    count: usize,
    with: impl Fn(CacheBuilder<u64, u64, Infallible>) -> CacheBuilder<u64, u64, Infallible>,
) -> Vec<Member> {
    let member = |_| with(database.cache().backplane(backplane(redis.address()), 5 * SECOND)).build();
    let members: Vec<Member> = (0..count).map(member).collect();
    for teller in &members {
        for member in &members {
            hears(teller, member).await;
        }
    }
    members
}

/// Waits until the one forgets what the other has changed.
async fn hears<E: Debug + Send + Sync + 'static>(teller: &Cache<u64, u64, E>, member: &Cache<u64, u64, E>) {
    const PROBE: u64 = 99;
    until("what one changes is heard", async || {
        member.get(&PROBE).await.unwrap();
        teller.invalidate(&PROBE).await;
        tokio::time::sleep(ms(5)).await;
        member.get_if_fresh(&PROBE).is_none()
    })
    .await;
}
