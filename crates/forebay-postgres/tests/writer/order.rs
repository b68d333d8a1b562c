//! Order without a key: INSERTs of one row are in nobody's, all else is in that of its text.

use std::time::Duration;

use forebay_postgres::Postgres;
use forebay_write::{Value, Writer};
use futures_util::future::join_all;

use crate::{Database, assert_ok};

const INSERT: &str = "INSERT INTO t (n) VALUES ($1)";
/// Longer than any of this takes, shorter than what is waited for where it goes wrong.
const SOON: Duration = Duration::from_secs(30);
const LONG: Duration = Duration::from_secs(600);

/// One whose row somebody has locked does not hold the next, which is of the same text.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_insert_that_waits_does_not_hold_the_next() {
    let database = Database::new("CREATE TABLE t (n int PRIMARY KEY)").await;
    database
        .plain
        .batch_execute("BEGIN; INSERT INTO t VALUES (1)")
        .await
        .unwrap();
    let postgres = Postgres::builder(&database.url).unwrap().lock_timeout(LONG);
    let writer = Writer::new(postgres.connect().await.unwrap());
    let blocked = tokio::spawn({
        let writer = writer.clone();
        async move { writer.execute(INSERT, [1]).await }
    });
    let in_flight = "count(*) FROM pg_locks WHERE NOT granted AND transactionid = pg_current_xact_id()::xid";
    while database.read(in_flight).await != ["1"] {
        tokio::task::yield_now().await;
    }
    let next = tokio::time::timeout(SOON, writer.execute(INSERT, [2])).await;
    assert_ok(&next.expect("it was held"));
    assert!(!blocked.is_finished());
    database.plain.batch_execute("ROLLBACK").await.unwrap();
    assert_ok(&blocked.await.unwrap());
    assert_eq!(database.read("n FROM t ORDER BY n").await, ["1", "2"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn updates_of_one_text_keep_their_order() {
    let database = Database::new("CREATE TABLE t (v text); INSERT INTO t VALUES ('')").await;
    let writer = Writer::new(database.open().await);
    let update = |n: i32| {
        let parameters = vec![Value::Text(format!("{n} "))];
        writer.execute("UPDATE t SET v = v || $1", parameters)
    };
    let answers = join_all((0..600).map(update)).await;
    assert!(answers.iter().all(Result::is_ok));
    let expected: String = (0..600).map(|n| format!("{n} ")).collect();
    assert_eq!(database.read("v FROM t").await, [expected]);
}

/// Who asks for a window shares it, however many lanes are idle.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inserts_that_wait_for_company_have_it() {
    let database = Database::new("CREATE TABLE t (n int PRIMARY KEY)").await;
    let writer = Writer::builder().max_items(10).max_wait(LONG);
    let writer = writer.build(database.open().await);
    let writing = join_all((0..10).map(|n| writer.execute(INSERT, [n])));
    let answers = tokio::time::timeout(SOON, writing).await.expect("they wait apart");
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(writer.stats().batches, 1);
}
