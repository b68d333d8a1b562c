//! Callers that each search one product after the other, through a cache, until time is up.
//!
//! Promises: every answer is checked, and a wrong one fails the measurement; an error is counted. Every request is timed, by
//! the clock before and after it; it ends when the last caller's last request has. A caller that only hits lets others run
//! every few hundred requests, as goroutines are made to. The peer in Go does all of this, too. Knows no setting.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use forebay::cache::Cache;

use super::database::Product;
use super::pacer::{Pacer, Pauses};
use super::traffic::Traffic;
use crate::failure::Failure;
use crate::latency::Latencies;

/// A few dozen microseconds of hits.
const REQUESTS_A_TURN: u64 = 256;

/// What all callers have seen.
#[derive(Debug)]
pub(crate) struct Searched {
    pub(crate) requests: u64,
    pub(crate) errors: u64,
    pub(crate) seconds: f64,
    pub(crate) took: Latencies,
}

/// Lets that many callers search for that long; each pauses after each request, if it is to.
pub(crate) async fn run<E>(
    cache: &Cache<String, Arc<Product>, E>,
    traffic: &Traffic,
    callers: u32,
    pause: Option<Duration>,
    duration: Duration,
) -> Result<Searched, Failure>
where
    E: fmt::Display + Send + Sync + 'static,
{
    let is_over = Arc::new(AtomicBool::new(false));
    let pacer = pause.map(Pacer::start);
    let begun = Instant::now();
    let running: Vec<_> = (0..callers)
        .map(|caller| {
            let caller = Caller {
                traffic: traffic.of(caller),
                requests: 0,
                errors: 0,
                took: Latencies::new(),
            };
            let pauses = pacer.as_ref().map(Pacer::pauses);
            tokio::spawn(caller.run(cache.clone(), pauses, Arc::clone(&is_over)))
        })
        .collect();
    tokio::time::sleep(duration).await;
    is_over.store(true, Ordering::Relaxed);
    let mut all = Searched {
        requests: 0,
        errors: 0,
        seconds: 0.0,
        took: Latencies::new(),
    };
    for caller in running {
        let caller = caller.await.map_err(|error| Failure::Wrong(error.to_string()))??;
        all.requests += caller.requests;
        all.errors += caller.errors;
        all.took.add(&caller.took);
    }
    all.seconds = begun.elapsed().as_secs_f64();
    Ok(all)
}

struct Caller {
    traffic: Traffic,
    requests: u64,
    errors: u64,
    took: Latencies,
}

impl Caller {
    /// One caller's life.
    async fn run<E>(
        mut self,
        cache: Cache<String, Arc<Product>, E>,
        pauses: Option<Pauses>,
        is_over: Arc<AtomicBool>,
    ) -> Result<Self, Failure>
    where
        E: fmt::Display + Send + Sync + 'static,
    {
        while !is_over.load(Ordering::Relaxed) {
            let (id, exists) = self.traffic.next();
            let begun = Instant::now();
            let got = cache.get(id).await;
            self.took.note(begun.elapsed());
            match got {
                Ok(product) => check(id, exists, product.as_deref())?,
                Err(_) => self.errors += 1,
            }
            self.requests += 1;
            if let Some(pauses) = &pauses {
                pauses.pause().await;
            } else if self.requests.is_multiple_of(REQUESTS_A_TURN) {
                tokio::task::yield_now().await;
            }
        }
        Ok(self)
    }
}

fn check(id: &str, exists: bool, product: Option<&Product>) -> Result<(), Failure> {
    let right = match product {
        Some(product) => exists && product.id == id,
        None => !exists,
    };
    if right {
        return Ok(());
    }
    let got = product.map_or("nothing", |product| &product.id);
    Err(Failure::Wrong(format!("{id} was answered with {got}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenarios::cold_start::database::Database;

    #[derive(Debug, thiserror::Error)]
    #[error("no")]
    struct Refused;

    async fn searched(
        odd: impl Fn(&str) -> Result<Option<&str>, Refused> + Send + Sync + 'static,
    ) -> Result<Searched, Failure> {
        let database = Arc::new(Database::new(100, Duration::ZERO));
        let odd = Arc::new(odd);
        let cache = Cache::builder(move |id: String| {
            let (database, odd) = (Arc::clone(&database), Arc::clone(&odd));
            async move {
                match odd(&id)? {
                    Some(id) => Ok::<_, Refused>(database.one(id).await),
                    None => Ok(None),
                }
            }
        })
        .build();
        run(&cache, &Traffic::new(), 3, None, Duration::from_millis(50)).await
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn requests_are_counted_and_each_is_timed() {
        let searched = searched(|id| Ok(Some(id))).await.unwrap();
        assert!(searched.requests > 100 && searched.seconds >= 0.05, "{searched:?}");
        assert_eq!(searched.errors, 0);
        assert!(searched.took.quantile_ns(0.5) > 0.0);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn errors_are_counted() {
        let searched = searched(|id| if id == "product-7" { Err(Refused) } else { Ok(Some(id)) })
            .await
            .unwrap();
        assert!(
            searched.errors > 0 && searched.errors < searched.requests,
            "{searched:?}"
        );
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn one_wrong_answer_fails_all() {
        let other = searched(|id| Ok(Some(if id == "product-7" { "product-8" } else { id }))).await;
        let said = other.unwrap_err().to_string();
        assert!(said.contains("product-7 was answered with product-8"), "{said}");
        let missing = searched(|id| Ok((id != "product-7").then_some(id))).await;
        let said = missing.unwrap_err().to_string();
        assert!(said.contains("product-7 was answered with nothing"), "{said}");
    }

    #[tokio::test]
    async fn callers_that_pause_ask_no_faster() {
        let cache = Cache::builder(|_: String| async { Err::<Option<Arc<Product>>, _>(Refused) }).build();
        let pause = Some(Duration::from_millis(10));
        let searched = run(&cache, &Traffic::new(), 2, pause, Duration::from_millis(50))
            .await
            .unwrap();
        assert!(
            searched.requests as f64 <= 2.0 * (searched.seconds / 0.010 + 1.0),
            "{searched:?}"
        );
    }
}
