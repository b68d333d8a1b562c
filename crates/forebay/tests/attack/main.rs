//! What a hostile or broken caller may do to a `Batcher`, a `Loader` or a `Cache`: whatever it is, every other call ends, and with its own
//! outcome.
//!
//! Each test is one attack through the public interface: types that panic, callers that leave in masses while a fetch hangs,
//! futures that are forgotten or moved between runtimes. Knows only the public interface.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod batcher;
mod cache_ends;
mod cache_faults;
mod cancelled_masses;
mod panicking_types;
#[cfg(feature = "sqlite")]
mod sqlite;
mod unlucky_moments;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::yield_now;

/// Lets every task that can run do so, on a single thread.
async fn settle() {
    for _ in 0..50 {
        yield_now().await;
    }
}

/// A hang is a failure.
async fn ends<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(20), future)
        .await
        .expect("a call hangs")
}

fn gate() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(0))
}
