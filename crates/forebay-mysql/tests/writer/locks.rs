//! Other people's locks: a deadlock is tried again, and one statement that waits does not hold its neighbours.

use std::time::{Duration, Instant};

use forebay_write::{StatementErrorKind as Kind, Write, Writer};
use futures_util::future::join_all;
use futures_util::poll;
use mysql_async::prelude::Queryable;

use crate::{Database, assert_ok, kind, together};

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

/// What has begun is executed, and a writer that is drained has nothing on its way any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_whose_caller_has_gone_while_it_waits_is_written_all_the_same() {
    let database = Database::new(SCHEMA).await;
    let mut other = database.plain().await;
    other.query_drop("BEGIN; UPDATE t SET v = 9 WHERE n = 1").await.unwrap();
    let writer = Writer::builder()
        .max_in_flight(1)
        .max_items(2)
        .max_wait(Duration::from_secs(600));
    let writer = writer.build(database.open().await);
    let mut blocked = Box::pin(writer.execute("UPDATE t SET v = v + 1 WHERE n = ?", [1]));
    assert!(poll!(&mut blocked).is_pending());
    assert_ok(&writer.execute("INSERT INTO t (n) VALUES (?)", [10]).await);
    drop(blocked);
    let mut drained = Box::pin(writer.drain());
    let early = tokio::time::timeout(Duration::from_millis(300), &mut drained).await;
    assert!(early.is_err(), "what it waits for is still locked");
    other.query_drop("COMMIT").await.unwrap();
    drained.await;
    assert_eq!(database.read("SELECT v FROM t WHERE n = 1").await, ["10"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_that_wait_hold_their_neighbours_hardly_longer_than_one() {
    let database = Database::new(SCHEMA).await;
    let mut other = database.plain().await;
    other.query_drop("BEGIN; UPDATE t SET v = 9 WHERE n = 1").await.unwrap();
    let writer = Writer::builder()
        .max_in_flight(1)
        .max_items(21)
        .max_wait(Duration::from_secs(600))
        .build(database.open().await);
    let update = |n: i64| writer.submit(Write::new("UPDATE t SET v = v + 1 WHERE n = ?", [n]));
    let begun = Instant::now();
    let mut blocked = Box::pin(join_all((0..20).map(|_| update(1))));
    let first = futures_util::future::select(&mut blocked, Box::pin(update(2))).await;
    let futures_util::future::Either::Right((free, _)) = first else {
        panic!("what was locked was written")
    };
    assert_ok(&free);
    let waited = begun.elapsed();
    assert!(waited < Duration::from_secs(4), "held for {waited:?}");
    other.query_drop("COMMIT").await.unwrap();
    for answer in blocked.await {
        assert_ok(&answer);
    }
    let read = database.read("SELECT v FROM t ORDER BY n").await;
    assert_eq!(read, ["29", "1"]);
}

/// The rows before the one that waits are committed meanwhile, once; it and those after it come when the lock is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_of_many_that_keeps_its_order_waits_in_its_place() {
    let database = Database::new("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n INT UNIQUE)").await;
    let mut other = database.plain().await;
    other.query_drop("BEGIN; INSERT INTO t (n) VALUES (57)").await.unwrap();
    let writer = Writer::builder()
        .max_in_flight(1)
        .max_items(100)
        .max_wait(Duration::from_secs(600))
        .build(database.open().await);
    let insert = |n: i64| writer.submit(Write::new("INSERT INTO t (n) VALUES (?)", [n]).ordered_by("k"));
    let releasing = async {
        while database.read("SELECT COUNT(*) FROM t WHERE n < 57").await != ["47"] {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        other.query_drop("ROLLBACK").await.unwrap();
    };
    let (answers, ()) = futures_util::future::join(join_all((10..110).map(insert)), releasing).await;
    for (n, answer) in (10..110).zip(&answers) {
        assert_eq!(answer.as_ref().map(|outcome| outcome.rows_affected), Ok(1), "{n}");
    }
    let in_order = database.read("SELECT n FROM t ORDER BY id").await;
    assert_eq!(in_order, (10..110).map(|n| n.to_string()).collect::<Vec<_>>());
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_rolls_all_back_on_a_timeout_loses_nobodys_write() {
    let server = testbed::MariaDb::builder()
        .setting("innodb_rollback_on_timeout", "ON")
        .start()
        .unwrap();
    let database = Database::on(&server.url(), SCHEMA).await;
    let mut other = database.plain().await;
    other.query_drop("BEGIN; UPDATE t SET v = 9 WHERE n = 1").await.unwrap();
    let mysql = database
        .builder()
        .retry_for(Duration::from_secs(1))
        .connect()
        .await
        .unwrap();
    let answers = crate::together_plainly(
        &mysql,
        &[
            "INSERT INTO t (n) VALUES (50)",
            "UPDATE t SET v = v + 1 WHERE n = 1",
            "INSERT INTO t (n) VALUES (51)",
        ],
    )
    .await;
    assert_eq!(kind(&answers[1]), Kind::LockTimeout);
    assert!(answers[0].is_ok() && answers[2].is_ok(), "{answers:?}");
    assert_eq!(
        database.read("SELECT n FROM t ORDER BY n").await,
        ["1", "2", "50", "51"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_one_writing_connection_who_waits_for_a_lock_leaves_it_to_others() {
    let database = Database::new(SCHEMA).await;
    let mut other = database.plain().await;
    other.query_drop("BEGIN; UPDATE t SET v = 9 WHERE n = 1").await.unwrap();
    let writer = Writer::new(database.builder().max_connections(2).connect().await.unwrap());
    let blocked = tokio::spawn({
        let writer = writer.clone();
        async move { writer.execute("UPDATE t SET v = v + 1 WHERE n = 1", ()).await }
    });
    crate::lock_waiter(&database).await;
    for n in 10..13 {
        let begun = Instant::now();
        writer.execute("INSERT INTO t (n) VALUES (?)", [n]).await.unwrap();
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
    other.query_drop("COMMIT").await.unwrap();
    assert_ok(&blocked.await.unwrap());
}

/// The same for a row that seems to be there already, and that somebody has deleted and not yet committed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_seems_to_be_in_conflict_keeps_its_place_too() {
    let schema = "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n INT UNIQUE); INSERT INTO t (n) VALUES (57)";
    let database = Database::new(schema).await;
    let mut other = database.plain().await;
    let mysql = database.open().await;
    let write = |n: i64| Write::new("INSERT INTO t (n) VALUES (?)", [n]).ordered_by("k");
    // From now on conflicts are expected.
    let answers = together(&mysql, (50..60).map(write).collect()).await;
    assert_eq!(kind(&answers[7]), Kind::Unique);
    // Without locks on the gaps beside it.
    let deleting = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; DELETE FROM t; INSERT INTO t (n) VALUES (157); \
        BEGIN; DELETE FROM t WHERE n = 157";
    other.query_drop(deleting).await.unwrap();
    let releasing = async {
        crate::lock_waiter(&database).await;
        tokio::time::sleep(Duration::from_millis(1500)).await;
        other.query_drop("COMMIT").await.unwrap();
    };
    let writing = together(&mysql, (110..210).map(write).collect());
    let (answers, ()) = futures_util::future::join(writing, releasing).await;
    for (n, answer) in (110..210).zip(&answers) {
        assert_eq!(answer.as_ref().map(|outcome| outcome.rows_affected), Ok(1), "{n}");
    }
    let in_order = database.read("SELECT n FROM t ORDER BY id").await;
    assert_eq!(in_order, (110..210).map(|n| n.to_string()).collect::<Vec<_>>());
}
