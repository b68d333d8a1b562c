//! Other people's locks: a deadlock is tried again, and one statement that waits does not hold its neighbours.

use std::time::{Duration, Instant};

use forebay::write::{StatementErrorKind as Kind, Write, Writer};
use futures_util::future::join_all;
use mysql_async::prelude::Queryable;

use crate::{Database, assert_ok, kind};

const SCHEMA: &str = "CREATE TABLE t (n INT PRIMARY KEY, v INT DEFAULT 0); INSERT INTO t (n) VALUES (1), (2)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_waits_does_not_hold_its_neighbours_and_is_written_in_the_end() {
    let database = Database::new(SCHEMA).await;
    let mut other = database.plain().await;
    other.query_drop("BEGIN; UPDATE t SET v = 9 WHERE n = 1").await.unwrap();
    let writer = Writer::builder()
        .max_in_flight(1)
        .max_items(3)
        .max_wait(Duration::from_secs(600));
    let writer = writer.build(database.open().await);
    let blocked = tokio::spawn({
        let writer = writer.clone();
        async move { writer.execute("UPDATE t SET v = v + 1 WHERE n = ?", [1]).await }
    });
    while writer.stats().queued < 1 {
        tokio::task::yield_now().await;
    }
    let begun = Instant::now();
    let neighbours = join_all((0..2).map(|n| writer.execute("INSERT INTO t (n) VALUES (?)", [10 + n]))).await;
    assert!(neighbours.iter().all(Result::is_ok), "{neighbours:?}");
    assert!(
        begun.elapsed() < Duration::from_secs(4),
        "held for {:?}",
        begun.elapsed()
    );
    assert!(!blocked.is_finished());
    other.query_drop("COMMIT").await.unwrap();
    assert_eq!(assert_ok(&blocked.await.unwrap()).rows_affected, 1);
    assert_eq!(database.read("SELECT v FROM t WHERE n = 1").await, ["10"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_of_many_that_waits_does_not_hold_the_others() {
    let database = Database::new(SCHEMA).await;
    let mut other = database.plain().await;
    other.query_drop("BEGIN; INSERT INTO t (n) VALUES (57)").await.unwrap();
    let mysql = database
        .builder()
        .retry_for(Duration::from_secs(2))
        .connect()
        .await
        .unwrap();
    let writer = Writer::builder()
        .max_in_flight(1)
        .max_items(100)
        .max_wait(Duration::from_secs(600))
        .build(mysql);
    let begun = Instant::now();
    let answers = join_all((10..110).map(|n| {
        let writer = &writer;
        async move {
            let answer = writer.execute("INSERT INTO t (n) VALUES (?)", [n]).await;
            (n, answer, begun.elapsed())
        }
    }))
    .await;
    for (n, answer, after) in answers {
        if n == 57 {
            assert_eq!(kind(&answer), Kind::LockTimeout);
        } else {
            assert_ok(&answer);
            assert!(after < Duration::from_secs(4), "{n} was held for {after:?}");
        }
    }
    assert_eq!(database.read("SELECT COUNT(*) FROM t").await, ["101"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_ordered_keeps_its_place_when_it_waits() {
    let database = Database::new(SCHEMA).await;
    let mut other = database.plain().await;
    other.query_drop("BEGIN; UPDATE t SET v = 1 WHERE n = 1").await.unwrap();
    let writer = Writer::builder()
        .max_in_flight(1)
        .max_items(3)
        .max_wait(Duration::from_secs(600));
    let writer = writer.build(database.open().await);
    let double = Write::new("UPDATE t SET v = v * 10 WHERE n = 1", ()).ordered_by(1);
    let add = Write::new("UPDATE t SET v = v + 5 WHERE n = 1", ()).ordered_by(1);
    let neighbour = Write::new("UPDATE t SET v = 7 WHERE n = 2", ()).ordered_by(1);
    let writing =
        tokio::spawn(async move { tokio::join!(writer.submit(neighbour), writer.submit(double), writer.submit(add)) });
    crate::lock_waiter(&database).await;
    other.query_drop("COMMIT").await.unwrap();
    let (first, second, third) = writing.await.unwrap();
    assert!(first.is_ok() && second.is_ok() && third.is_ok(), "{second:?} {third:?}");
    assert_eq!(database.read("SELECT v FROM t ORDER BY n").await, ["15", "7"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadlock_is_tried_again_and_nothing_is_written_twice() {
    let database = Database::new(SCHEMA).await;
    let mut other = database.plain().await;
    // It has written much, so that the server chooses the batch to be rolled back.
    other
        .query_drop("BEGIN; INSERT INTO t (n) SELECT seq FROM seq_1000_to_3000; UPDATE t SET v = 100 WHERE n = 2")
        .await
        .unwrap();
    let mysql = database
        .builder()
        .lock_timeout(Duration::from_secs(20))
        .connect()
        .await
        .unwrap();
    let writing = tokio::spawn(async move {
        crate::together_plainly(
            &mysql,
            &[
                "INSERT INTO t (n) VALUES (50)",
                "UPDATE t SET v = v + 1 WHERE n = 1",
                "UPDATE t SET v = v + 1 WHERE n = 2",
                "UPDATE t SET v = v + 1 WHERE n = 50",
            ],
        )
        .await
    });
    crate::lock_waiter(&database).await;
    other.query_drop("UPDATE t SET v = 100 WHERE n = 1").await.unwrap();
    other.query_drop("COMMIT").await.unwrap();
    let answers = writing.await.unwrap();
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(
        database.read("SELECT v FROM t WHERE n IN (1, 2, 50) ORDER BY n").await,
        ["101", "101", "1"]
    );
}
