//! `fleet`: caches of several processes over one Redis: how soon a change is heard, what a cold key costs them all, and what listening costs a
//! hit.
//!
//! Promises: every member has connections of its own; every value that is got is checked. The members are caches side by side in one process, so
//! that one clock measures them. Beside the time until a change is heard stands what a message takes that is published and received by bare connections
//! to the same server.

mod members;

use std::convert::Infallible;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use forebay::cache::backplane::redis::RedisBackplane;
use forebay::cache::{Cache, Event};
use testbed::Redis;

use crate::closed_loop::two_workers;
use crate::failure::Failure;
use crate::goal::{Beside, Goal, Key};
use crate::judged::Wanted;
use crate::latency::Latencies;
use crate::measurement::Reading;
use crate::scenario::{FOREBAY, LIMIT, Scenario, Stage, Trial, Yardsticks};
use members::{FETCH_TAKES, MAX_LAG, Members, hears, messages};

const HEARD: &str = "a change is heard";
const COLD: &str = "a cold key, ten processes";
const HIT: &str = "hits";

const P50: &str = "p50";
const P99: &str = "p99";
const FETCHES: &str = "fetches a key";
const SLOWEST: &str = "slowest ÷ a fetch";
const HITS: &str = "hits";

/// The scenario.
#[derive(Debug)]
pub(crate) struct Fleet;

impl Scenario for Fleet {
    fn name(&self) -> String {
        "fleet".to_owned()
    }

    fn about(&self) -> String {
        format!(
            "Caches with a backplane over one Redis. A change: from the call of invalidate until another's memory has forgotten; the limit is a\n\
             message between bare connections. A cold key: ten caches with a tier and leases, five gets each at once, of a source that takes {} ms. \
             Hits:\none thread, one key; the limit has no backplane.",
            FETCH_TAKES.as_millis()
        )
    }

    fn versions(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn prepare(&self, _: &Stage<'_>, _: &mut Vec<Failure>) -> Result<Vec<Box<dyn Trial>>, Failure> {
        let redis = Arc::new(Redis::start()?);
        let trial = |system, case, measure| {
            Box::new(Measured {
                system,
                case,
                measure,
                redis: Arc::clone(&redis),
            })
        };
        Ok(vec![
            trial(LIMIT, HEARD, message as Measure),
            trial(FOREBAY, HEARD, change),
            trial(FOREBAY, COLD, cold),
            trial(LIMIT, HIT, hit_alone),
            trial(FOREBAY, HIT, hit),
        ])
    }

    fn yardsticks(&self) -> Yardsticks {
        Yardsticks::default()
    }

    fn goals(&self) -> Vec<Goal> {
        let goal = |text: &str, metric, case, beside, wanted| Goal {
            text: text.to_owned(),
            metric,
            ours: Key::new(FOREBAY, case),
            beside,
            wanted,
        };
        let limit = |case| Beside::Ratio(vec![Key::new(LIMIT, case)]);
        vec![
            goal(
                "a change is heard, p50 ÷ a message's",
                P50,
                HEARD,
                limit(HEARD),
                Wanted::AtMost(2.0),
            ),
            goal(
                "a change is heard, p99 ÷ a message's",
                P99,
                HEARD,
                limit(HEARD),
                Wanted::AtMost(2.0),
            ),
            goal(
                "ten processes: fetches of a cold key",
                FETCHES,
                COLD,
                Beside::Nothing,
                Wanted::AtMost(1.0),
            ),
            goal(
                "ten processes: the slowest ÷ a fetch",
                SLOWEST,
                COLD,
                Beside::Nothing,
                Wanted::AtMost(1.5),
            ),
            goal(
                "hits with a backplane ÷ without",
                HITS,
                HIT,
                limit(HIT),
                Wanted::AtLeast(0.97),
            ),
        ]
    }
}

type Measure = fn(&Redis, Duration) -> Result<Vec<Reading>, Failure>;

struct Measured {
    system: &'static str,
    case: &'static str,
    measure: Measure,
    redis: Arc<Redis>,
}

impl Trial for Measured {
    fn system(&self) -> &str {
        self.system
    }

    fn case(&self) -> &str {
        self.case
    }

    fn measure(&mut self, stage: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        (self.measure)(&self.redis, stage.effort.duration)
    }
}

fn quantiles(latencies: &Latencies) -> Vec<Reading> {
    vec![
        Reading::new(P50, "µs", latencies.quantile_ns(0.5) / 1_000.0),
        Reading::new(P99, "µs", latencies.quantile_ns(0.99) / 1_000.0),
    ]
}

fn message(redis: &Redis, duration: Duration) -> Result<Vec<Reading>, Failure> {
    two_workers()?
        .block_on(messages(redis, duration))
        .map(|latencies| quantiles(&latencies))
}

fn change(redis: &Redis, duration: Duration) -> Result<Vec<Reading>, Failure> {
    two_workers()?.block_on(async {
        let members = Members::with_backplanes(redis, 2);
        let [teller, hearer] = &members.caches[..] else {
            unreachable!("two were asked for")
        };
        hears(teller, hearer).await?;
        // Waited for, as a message is: who looks again and again takes a core from those who are to tell.
        let mut events = hearer.events();
        let mut latencies = Latencies::new();
        let began = Instant::now();
        let mut key = 0;
        while began.elapsed() < duration || key == 0 {
            key += 1;
            members.get(hearer, key).await?;
            let told = Instant::now();
            drop(teller.invalidate(&key));
            let has_heard = |event| matches!(event, Event::Changed { key: of, elsewhere: true } if of == key);
            while !events.next().await.is_some_and(has_heard) {}
            latencies.note(told.elapsed());
            if let Some(value) = hearer.get_if_fresh(&key) {
                return Err(Failure::Wrong(format!(
                    "{key} is still {value:?}, though its change was heard"
                )));
            }
        }
        Ok(quantiles(&latencies))
    })
}

fn cold(redis: &Redis, duration: Duration) -> Result<Vec<Reading>, Failure> {
    two_workers()?.block_on(async {
        let members = Members::with_leases(redis, 10);
        let began = Instant::now();
        let (mut keys, mut slowest) = (0_u64, Duration::ZERO);
        while began.elapsed() < duration || keys == 0 {
            keys += 1;
            let asked = Instant::now();
            let gets = members.caches.iter().cycle().take(50).map(|cache| {
                let cache = cache.clone();
                tokio::spawn(async move { cache.get(&keys).await })
            });
            for get in gets.collect::<Vec<_>>() {
                let value = get.await.ok().and_then(Result::ok).flatten();
                if value != Some(!keys) {
                    return Err(Failure::Wrong(format!("{keys} is {value:?}")));
                }
            }
            slowest += asked.elapsed();
        }
        let a_key = |all: f64| all / keys as f64;
        let fetches = members.fetches.load(SeqCst) as f64;
        Ok(vec![
            Reading::new(FETCHES, "a key", a_key(fetches)),
            Reading::new(SLOWEST, "×", a_key(slowest.as_secs_f64() / FETCH_TAKES.as_secs_f64())),
        ])
    })
}

fn hit_alone(_: &Redis, duration: Duration) -> Result<Vec<Reading>, Failure> {
    hits(None, duration)
}

fn hit(redis: &Redis, duration: Duration) -> Result<Vec<Reading>, Failure> {
    hits(Some(members::backplane(redis)), duration)
}

fn hits(backplane: Option<RedisBackplane<u64>>, duration: Duration) -> Result<Vec<Reading>, Failure> {
    let runtime = two_workers()?;
    let _inside = runtime.enter();
    let builder = Cache::builder(|key: u64| async move { Ok::<_, Infallible>(Some(!key)) });
    let cache = match backplane {
        None => builder,
        Some(backplane) => builder.backplane(backplane, MAX_LAG),
    };
    let cache = cache.fresh_for(Duration::from_secs(3_600)).build();
    runtime.block_on(async {
        let mut hits = 0_u64;
        cache.get(&1).await.map_err(|error| Failure::Wrong(error.to_string()))?;
        // Until it listens entries are looked at twice.
        tokio::time::sleep(Duration::from_millis(200).min(duration)).await;
        cache.get(&1).await.map_err(|error| Failure::Wrong(error.to_string()))?;
        let began = Instant::now();
        while began.elapsed() < duration || hits == 0 {
            for _ in 0..1_000 {
                let value = cache.get(black_box(&1)).await;
                if !matches!(value, Ok(Some(value)) if value == !1) {
                    return Err(Failure::Wrong(format!("1 is {value:?}")));
                }
            }
            hits += 1_000;
        }
        Ok(vec![Reading::new(
            HITS,
            "/s",
            hits as f64 / began.elapsed().as_secs_f64(),
        )])
    })
}
