//! One run of the user's fetch: whatever it does, it ends with an outcome.
//!
//! Promises: a panic, in the fetch or in making sense of its answer, is an outcome; so is running past the limit, after which
//! the fetch is dropped; so is a list of the wrong length. Knows nothing of callers, batches and flights.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;

use super::answer::{Answer, Outcomes};
use super::error::LoadError;
use crate::panics::{or_message, panic_message, quietly};

/// The answer of a fetch, or why there is none.
pub(super) type Fetched<A, E> = Result<A, LoadError<E>>;

/// What a batch of keys ends with.
pub(super) enum End<V, E> {
    /// Each key has its own outcome, in the order of the keys.
    Each {
        outcomes: Vec<Result<Option<V>, E>>,
        /// Values of keys that were not asked for.
        ignored: usize,
    },
    /// All have the same.
    All(LoadError<E>),
}

/// Asks the fetch, for as long as it may take.
pub(super) async fn ask<K, A, E, F, Fut>(fetch: &F, keys: Vec<K>, timeout: Option<Duration>) -> Fetched<A, E>
where
    F: Fn(Vec<K>) -> Fut,
    Fut: Future<Output = Result<A, E>>,
{
    // The timeout is inside, so that a panic of the dropped fetch is caught too.
    let asking = async {
        let fetching = async { fetch(keys).await };
        match timeout {
            None => Ok(fetching.await),
            Some(limit) => tokio::time::timeout(limit, fetching).await.map_err(|_| limit),
        }
    };
    match AssertUnwindSafe(asking).catch_unwind().await {
        Ok(Ok(Ok(answer))) => Ok(answer),
        Ok(Ok(Err(error))) => Err(LoadError::Fetch(Arc::new(error))),
        Ok(Err(limit)) => Err(LoadError::TimedOut(limit)),
        Err(panic) => Err(panicked(panic)),
    }
}

/// Gives each key its part of the answer.
pub(super) fn sort<'k, K, A, E>(fetched: Fetched<A, E>, keys: impl ExactSizeIterator<Item = &'k K>) -> End<A::Value, E>
where
    K: 'k,
    A: Answer<K, E>,
{
    let answer = match fetched {
        Ok(answer) => answer,
        Err(error) => return End::All(error),
    };
    let expected = keys.len();
    // Runs the user's Hash, Eq and Drop.
    match or_message(|| answer.into_outcomes(keys)) {
        Ok(Outcomes { of_keys, ignored }) if of_keys.len() == expected => End::Each {
            outcomes: of_keys,
            ignored,
        },
        Ok(Outcomes { of_keys, .. }) => {
            let returned = of_keys.len();
            quietly(|| drop(of_keys));
            End::All(LoadError::WrongCount { expected, returned })
        }
        Err(message) => End::All(LoadError::Panicked(message)),
    }
}

fn panicked<E>(panic: Box<dyn Any + Send>) -> LoadError<E> {
    let message = panic_message(&*panic);
    quietly(|| drop(panic));
    LoadError::Panicked(message)
}
