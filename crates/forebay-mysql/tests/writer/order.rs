//! Order without a key: INSERTs of one row are in nobody's, all else is in that of its text.

use std::time::Duration;

use forebay_write::{StatementErrorKind as Kind, Value, Write, Writer};
use futures_util::future::join_all;
use mysql_async::prelude::Queryable;

use crate::{Database, assert_ok, kind, lock_waiter, together};

const SCHEMA: &str = "CREATE TABLE t (n INT PRIMARY KEY)";
const INSERT: &str = "INSERT INTO t (n) VALUES (?)";
/// Longer than any of this takes, shorter than what is waited for where it goes wrong.
const SOON: Duration = Duration::from_secs(30);
const LONG: Duration = Duration::from_secs(600);

/// One whose row somebody has locked does not hold the next, which is of the same text.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_insert_that_waits_does_not_hold_the_next() {
    let database = Database::new(SCHEMA).await;
    let mut other = database.plain().await;
    other.query_drop("BEGIN; INSERT INTO t VALUES (1)").await.unwrap();
    let writer = Writer::new(database.builder().lock_timeout(LONG).connect().await.unwrap());
    let blocked = tokio::spawn({
        let writer = writer.clone();
        async move { writer.execute(INSERT, [1]).await }
    });
    lock_waiter(&database).await;
    let next = tokio::time::timeout(SOON, writer.execute(INSERT, [2])).await;
    assert_ok(&next.expect("it was held"));
    assert!(!blocked.is_finished());
    other.query_drop("ROLLBACK").await.unwrap();
    assert_ok(&blocked.await.unwrap());
    assert_eq!(database.read("SELECT n FROM t ORDER BY n").await, ["1", "2"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn updates_of_one_text_keep_their_order() {
    let database = Database::new("CREATE TABLE t (v TEXT); INSERT INTO t VALUES ('')").await;
    let writer = Writer::new(database.open().await);
    let update = |n: i32| {
        let parameters = vec![Value::Text(format!("{n} "))];
        writer.execute("UPDATE t SET v = CONCAT(v, ?)", parameters)
    };
    let answers = join_all((0..600).map(update)).await;
    assert!(answers.iter().all(Result::is_ok));
    let expected: String = (0..600).map(|n| format!("{n} ")).collect();
    assert_eq!(database.read("SELECT v FROM t").await, [expected]);
}

/// Who asks for a window shares it, however many lanes are idle.
#[tokio::test]
async fn inserts_that_wait_for_company_have_it() {
    let database = Database::new(SCHEMA).await;
    let writer = Writer::builder().max_items(10).max_wait(LONG);
    let writer = writer.build(database.open().await);
    let writing = join_all((0..10).map(|n| writer.execute(INSERT, [n])));
    let answers = tokio::time::timeout(SOON, writing).await.expect("they wait apart");
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(writer.stats().batches, 1);
}

/// Rows in conflict would have lanes wait for one another's locks. 1,200 rows are two full batches in one lane, and in several
/// none that is full.
#[tokio::test]
async fn inserts_that_were_in_conflict_of_late_stay_together() {
    let database = Database::new(SCHEMA).await;
    let mysql = database.open().await;
    let twice = (0..40).map(|n| Write::new(INSERT, [n / 2])).collect();
    assert_eq!(kind(&together(&mysql, twice).await[1]), Kind::Unique);
    let writer = Writer::builder().max_items(600).max_wait(LONG).build(mysql);
    let writing = join_all((100..1300).map(|n| writer.execute(INSERT, [n])));
    let answers = tokio::time::timeout(SOON, writing).await.expect("they wait apart");
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(writer.stats().batches, 2);
}
