//! Cancelled before it is claimed a statement has no effect and never will; dropped later it is executed all the same.
//! Nobody's cancellation reaches a neighbour.

use std::time::{Duration, Instant};

use forebay_write::{CancelToken, Write, WriteError, Writer};
use futures_util::FutureExt;
use futures_util::future::join_all;

use crate::{Database, assert_ok, together};

#[tokio::test]
async fn dropped_before_its_turn_a_statement_that_shares_with_nobody_is_never_executed() {
    let database = Database::new("CREATE TABLE t (n)");
    let writer = Writer::new(database.open());
    let own = writer.begin().await.unwrap();
    let mut call = Box::pin(writer.submit_alone(Write::new("INSERT INTO t VALUES (1)", ())));
    assert!(call.as_mut().now_or_never().is_none());
    // It has begun to wait behind the transaction.
    tokio::task::yield_now().await;
    drop(call);
    own.rollback().await.unwrap();
    assert_ok(&writer.submit_alone(Write::new("INSERT INTO t VALUES (2)", ())).await);
    writer.drain().await;
    assert_eq!(database.read("SELECT n FROM t"), ["2"]);
}

#[tokio::test]
async fn cancelled_before_the_dispatch_it_is_never_executed() {
    let database = Database::new("CREATE TABLE t (n)");
    let writer = Writer::builder()
        .max_items(10)
        .max_wait(Duration::from_secs(600))
        .build(database.open());
    let tokens: Vec<CancelToken> = (0..10).map(|_| CancelToken::new()).collect();
    let mut calls: Vec<_> = tokens
        .iter()
        .zip(0_i64..)
        .map(|(token, n)| Box::pin(writer.submit(Write::new("INSERT INTO t VALUES (?1)", [n]).cancel(token.clone()))))
        .collect();
    for call in &mut calls {
        assert!(call.as_mut().now_or_never().is_none());
    }
    for token in tokens.iter().step_by(2) {
        token.cancel();
    }
    // The cancelled are told at once, long before the window ends.
    let (cancelled, waiting): (Vec<_>, Vec<_>) = calls.into_iter().enumerate().partition(|(n, _)| n % 2 == 0);
    for (_, call) in cancelled {
        assert_eq!(call.await, Err(WriteError::Cancelled));
    }
    let (answers, ()) = tokio::join!(join_all(waiting.into_iter().map(|(_, call)| call)), writer.drain());
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(database.read("SELECT n FROM t"), ["1", "3", "5", "7", "9"]);
}

#[tokio::test]
async fn cancelled_or_late_behind_a_transaction_it_is_told_at_once() {
    let database = Database::new("CREATE TABLE t (n)");
    let writer = Writer::new(database.open());
    let own = writer.begin().await.unwrap();
    let token = CancelToken::new();
    let insert = |n: i64| Write::new("INSERT INTO t VALUES (?1)", [n]);
    let late = CancelToken::with_deadline(Some(Instant::now() + Duration::from_millis(30)));
    let mut cancelled = Box::pin(writer.submit(insert(1).cancel(token.clone())));
    let mut timed_out = Box::pin(writer.submit(insert(2).cancel(late)));
    let mut innocent = Box::pin(writer.submit(insert(3)));
    assert!(cancelled.as_mut().now_or_never().is_none());
    assert!(timed_out.as_mut().now_or_never().is_none());
    assert!(innocent.as_mut().now_or_never().is_none());
    // The batch is on its way, and waits for the transaction.
    while writer.stats().in_flight == 0 {
        tokio::task::yield_now().await;
    }
    token.cancel();
    assert_eq!(cancelled.await, Err(WriteError::Cancelled));
    assert_eq!(timed_out.await, Err(WriteError::TimedOut));
    drop(own);
    assert_ok(&innocent.await);
    assert_eq!(database.read("SELECT n FROM t"), ["3"]);
}

#[tokio::test]
async fn a_token_that_fired_before_is_answered_without_effect() {
    let database = Database::new("CREATE TABLE t (n)");
    let (fired, late) = (CancelToken::new(), CancelToken::with_deadline(Some(Instant::now())));
    fired.cancel();
    let insert = |token: &CancelToken| Write::new("INSERT INTO t VALUES (1)", ()).cancel(token.clone());
    let writer = Writer::new(database.open());
    assert_eq!(writer.submit(insert(&fired)).await, Err(WriteError::Cancelled));
    assert_eq!(writer.submit(insert(&late)).await, Err(WriteError::TimedOut));
    assert_eq!(database.read("SELECT count(*) FROM t"), ["0"]);
}

#[tokio::test]
async fn a_deadline_that_passed_stops_every_statement_that_carries_it() {
    let database = Database::new("CREATE TABLE t (n)");
    let deadline = Instant::now() + Duration::from_millis(200);
    let token = CancelToken::with_deadline(Some(deadline));
    let insert = |n: i64| Write::new("INSERT INTO t VALUES (?1)", [n]).cancel(token.clone());
    let endless = "WITH RECURSIVE x (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM x) SELECT sum(i) FROM x";
    let answers = together(
        &database.open(),
        vec![insert(1), Write::new(endless, ()).cancel(token.clone()), insert(2)],
    )
    .await;
    assert_ok(&answers[0]);
    assert_eq!(answers[1..], [Err(WriteError::TimedOut), Err(WriteError::TimedOut)]);
    assert_eq!(database.read("SELECT n FROM t"), ["1"]);
}

#[tokio::test]
async fn cancelled_after_its_answer_changes_nothing() {
    let database = Database::new("CREATE TABLE t (n)");
    let writer = Writer::new(database.open());
    let token = CancelToken::new();
    let done = writer
        .submit(Write::new("INSERT INTO t VALUES (1)", ()).cancel(token.clone()))
        .await;
    assert_ok(&done);
    token.cancel();
    token.cancel();
    writer.execute("INSERT INTO t VALUES (2)", ()).await.unwrap();
    assert_eq!(database.read("SELECT n FROM t"), ["1", "2"]);
}

#[tokio::test]
async fn dropped_before_the_dispatch_it_has_no_effect() {
    let database = Database::new("CREATE TABLE t (n)");
    let writer = Writer::builder()
        .max_items(100)
        .max_wait(Duration::from_secs(600))
        .build(database.open());
    let mut dropped = Box::pin(writer.execute("INSERT INTO t VALUES (1)", ()));
    let mut kept = Box::pin(writer.execute("INSERT INTO t VALUES (2)", ()));
    assert!(dropped.as_mut().now_or_never().is_none());
    assert!(kept.as_mut().now_or_never().is_none());
    drop(dropped);
    let (answer, ()) = tokio::join!(kept, writer.drain());
    assert_ok(&answer);
    assert_eq!(writer.stats().cancelled, 1);
    assert_eq!(database.read("SELECT n FROM t"), ["2"]);
}

#[tokio::test]
async fn dropped_after_the_dispatch_it_is_executed() {
    let database = Database::new("CREATE TABLE t (n)");
    let writer = Writer::new(database.open());
    let own = writer.begin().await.unwrap();
    let mut dropped = Box::pin(writer.execute("INSERT INTO t VALUES (1)", ()));
    assert!(dropped.as_mut().now_or_never().is_none());
    while writer.stats().in_flight == 0 {
        tokio::task::yield_now().await;
    }
    drop(dropped);
    drop(own);
    writer.drain().await;
    assert_eq!(database.read("SELECT n FROM t"), ["1"]);
}

#[tokio::test]
async fn a_window_of_its_own_is_not_a_neighbours() {
    let database = Database::new("CREATE TABLE t (n)");
    let writer = Writer::builder()
        .max_items(100)
        .max_wait(Duration::from_secs(600))
        .build(database.open());
    let mut patient = Box::pin(writer.execute("INSERT INTO t VALUES (1)", ()));
    assert!(patient.as_mut().now_or_never().is_none());
    let hasty = Write::new("INSERT INTO t VALUES (2)", ()).max_wait(Duration::ZERO);
    assert_ok(&writer.submit(hasty).await);
    // They were in one batch: the patient one went along.
    assert_ok(&patient.await);
    assert_eq!((writer.stats().batches, database.take_commits()), (1, 1));
}
