//! The Writer among faults, on PostgreSQL and MariaDB alike: what was acknowledged is there once, what failed is not there, what
//! is unknown is said to be, and nobody waits for longer than the limits that were set.
//!
//! Each file is one kind of fault; most tests are written once and run on both. Faults of the network are made by a proxy, at
//! moments that it tells by the bytes. What is there is asked of the server by a plain connection that goes past it.
//! `FOREBAY_TEST_POSTGRES` and `FOREBAY_TEST_MYSQL` may name the servers of those tests that neither kill nor configure theirs.

#![allow(
    clippy::unwrap_used,
    reason = "this is a test through and through, also where clippy sees no #[test]"
)]

mod ledger;
mod mariadb;
mod place;
mod postgres;

use std::time::Duration;

use forebay::write::{StatementErrorKind, Write, WriteError, Writer};
use futures_util::future::join_all;

use self::ledger::{Answer, Ledger};
use self::mariadb::Maria;
use self::place::{Place, Settings, Site};
use self::postgres::Pg;

/// Runs each of these on both databases.
macro_rules! on_both {
    ($($test:ident),* $(,)?) => {
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test::<crate::Pg>().await;
            })*
        }
        mod on_mariadb {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test::<crate::Maria>().await;
            })*
        }
    };
}

mod limits;
mod network;
mod parameters;
mod refusals;
mod schema;
mod server;
mod strangers;

/// What a loaded machine may take beside the limits that are set.
const SLACK: Duration = Duration::from_secs(10);

/// What is waited for, which must come within the limits that were set.
async fn within<T>(limit: Duration, what: impl Future<Output = T>) -> T {
    match tokio::time::timeout(limit + SLACK, what).await {
        Ok(outcome) => outcome,
        Err(_) => panic!("somebody waits for longer than {limit:?}"),
    }
}

/// Writes these numbers as one batch, in this order.
async fn together<S: Site>(handle: &S::Handle, numbers: impl IntoIterator<Item = i64>) -> Ledger {
    let numbers: Vec<i64> = numbers.into_iter().collect();
    let writes = numbers.iter().map(|n| Write::new(S::INSERT, [*n])).collect();
    let answers = batch::<S>(handle, writes).await;
    numbers.into_iter().zip(answers).collect()
}

/// Writes all of it as one batch, in this order.
async fn batch<S: Site>(handle: &S::Handle, writes: Vec<Write>) -> Vec<Answer> {
    // The batch goes because it is full: the window is never waited for.
    let writer = Writer::builder()
        .max_items(writes.len())
        .max_weight(usize::MAX)
        .max_in_flight(1)
        .max_wait(Duration::from_secs(600))
        .build(handle.clone());
    let answers = join_all(writes.into_iter().map(|write| writer.submit(write))).await;
    assert_eq!(writer.stats().batches, 1, "the statements were meant to share a batch");
    answers
}

#[track_caller]
fn kind(answer: &Answer) -> StatementErrorKind {
    match answer {
        Err(WriteError::Statement(error)) => error.kind,
        other => panic!("not the statement's own error: {other:?}"),
    }
}
