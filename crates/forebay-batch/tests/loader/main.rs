//! The `Loader` as its user sees it: tests for each line of its contract, named after the line.
//!
//! Time is tokio's stopped clock where it matters and runs only when every task waits, so windows and limits are checked to
//! the millisecond and no test sleeps and hopes. Knows only the public interface.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod cancelling;
mod endings;
mod faults;
mod nested;
mod outcomes;
mod scope;
mod sharing;

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use forebay_batch::load::{Load, LoadError, Loader, Rejected};
use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::task::yield_now;

/// Doubles its keys; keys from 1,000 on are missing.
type Doubling = Loader<u64, u64, String>;

type Doubled = Pin<Box<dyn Future<Output = Result<HashMap<u64, u64>, String>> + Send>>;

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

const HOUR: Duration = Duration::from_secs(3600);

/// Sees the keys of every fetch, and lets one fetch through for each permit.
#[derive(Clone)]
struct Gate {
    fetches: Arc<Mutex<Vec<Vec<u64>>>>,
    permits: Arc<Semaphore>,
}

impl Gate {
    fn shut() -> Self {
        Self {
            fetches: Arc::default(),
            permits: Arc::new(Semaphore::new(0)),
        }
    }

    fn open() -> Self {
        let gate = Self::shut();
        gate.let_through(1_000_000);
        gate
    }

    fn let_through(&self, fetches: usize) {
        self.permits.add_permits(fetches);
    }

    fn seen(&self) -> Vec<Vec<u64>> {
        self.fetches.lock().clone()
    }

    fn sizes(&self) -> Vec<usize> {
        self.fetches.lock().iter().map(Vec::len).collect()
    }

    /// A fetch that doubles.
    fn doubling(&self) -> impl Fn(Vec<u64>) -> Doubled + Send + Sync + 'static {
        let gate = self.clone();
        move |keys| {
            let gate = gate.clone();
            Box::pin(async move {
                gate.fetches.lock().push(keys.clone());
                gate.permits.acquire().await.unwrap().forget();
                let known = keys.into_iter().filter(|key| *key < 1000);
                Ok(known.map(|key| (key, key * 2)).collect())
            })
        }
    }
}

/// Lets every task that can run do so, on the single thread of these tests.
async fn settle() {
    for _ in 0..50 {
        yield_now().await;
    }
}

fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

fn register(loader: &Doubling, keys: impl IntoIterator<Item = u64>) -> Vec<Load<'static, u64, u64, String>> {
    keys.into_iter().map(|key| loader.register(key)).collect()
}

/// Awaits loads of these keys and looks at their values.
async fn expect_doubled(loads: Vec<Load<'_, u64, u64, String>>, keys: impl IntoIterator<Item = u64>) {
    let outcomes = join_all(loads).await;
    let expected: Vec<_> = keys.into_iter().map(|key| (key < 1000).then_some(key * 2)).collect();
    let values: Vec<_> = outcomes.into_iter().map(Result::unwrap).collect();
    assert_eq!(values, expected);
}
