//! The `Batcher` as its user sees it: one test for each line of its contract, named after the line.
//!
//! Time is tokio's stopped clock and runs only when every task waits, so windows are checked to the millisecond and no test
//! sleeps and hopes. Knows only the public interface.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod alone;
mod bounds;
mod dispatch;
mod endings;
mod outcomes;
mod window;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use forebay_batch::batch::{Batcher, Call, CallError, Rejected};
use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::task::yield_now;
use tokio::time::{Instant, advance, sleep};

type Doubling = Batcher<u64, u64>;

type Doubled = Pin<Box<dyn Future<Output = Result<Vec<u64>, Infallible>> + Send>>;

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Sees every batch, and lets one through for each permit.
#[derive(Clone)]
struct Gate {
    batches: Arc<Mutex<Vec<Vec<u64>>>>,
    permits: Arc<Semaphore>,
}

impl Gate {
    fn shut() -> Self {
        Self {
            batches: Arc::default(),
            permits: Arc::new(Semaphore::new(0)),
        }
    }

    fn open() -> Self {
        let gate = Self::shut();
        gate.let_through(1_000_000);
        gate
    }

    fn let_through(&self, batches: usize) {
        self.permits.add_permits(batches);
    }

    fn seen(&self) -> Vec<Vec<u64>> {
        self.batches.lock().clone()
    }

    fn sizes(&self) -> Vec<usize> {
        self.batches.lock().iter().map(Vec::len).collect()
    }

    /// A processor that doubles.
    fn doubling(&self) -> impl Fn(Vec<u64>) -> Doubled + Send + Sync + 'static {
        let gate = self.clone();
        move |items| {
            let gate = gate.clone();
            Box::pin(async move {
                gate.batches.lock().push(items.clone());
                gate.permits.acquire().await.unwrap().forget();
                Ok(items.into_iter().map(|item| item * 2).collect())
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

/// Calls that are in line, in this order.
fn enter(batcher: &Doubling, items: impl IntoIterator<Item = u64>) -> Vec<Call<'static, u64, u64, Infallible>> {
    items
        .into_iter()
        .map(|item| {
            let mut call = batcher.call_owned(item);
            assert!(poll_once(&mut call).is_pending());
            call
        })
        .collect()
}
