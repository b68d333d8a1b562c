//! A statement by itself whose text is prepared already: what goes by the short way is what would go by the long one.

use std::time::Duration;

use forebay_postgres::Postgres;
use forebay_write::{CancelToken, Parameters, Write, WriteError, Writer};

use crate::{Database, assert_ok};

/// On its only connection each text is prepared the second time.
async fn on_one_connection(database: &Database) -> (Writer, Postgres) {
    let builder = Postgres::builder(&database.url).unwrap().max_connections(1);
    let postgres = builder.lock_timeout(Duration::from_millis(50)).connect().await.unwrap();
    (Writer::new(postgres.clone()), postgres)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_that_is_not_accepted_is_undone() {
    let database = Database::new("CREATE TABLE t (n int)").await;
    let (writer, _) = on_one_connection(&database).await;
    let insert = |n: i64| Write::new("INSERT INTO t VALUES ($1)", [n]);
    assert_ok(&writer.submit(insert(1)).await);
    let never = insert(2).accept_if(|_| Err("not taken".to_owned()));
    assert!(matches!(writer.submit(never).await, Err(WriteError::Refused { .. })));
    assert_eq!(database.read("n FROM t").await, ["1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changes_the_session_leaves_nothing_there() {
    let database = Database::new("CREATE TABLE t (n int)").await;
    let (writer, postgres) = on_one_connection(&database).await;
    for _ in 0..2 {
        let locked = "SELECT pg_advisory_lock(7)::text, set_config('app.name', 'ann', false)";
        assert_ok(&writer.execute(locked, ()).await);
        let left = "count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7";
        assert_eq!(database.read(left).await, ["0"]);
        let name = postgres.query("SELECT current_setting('app.name', true)", ()).await;
        assert_ne!(name.unwrap().rows[0][0].as_text(), Some("ann"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_of_another_type_is_noticed() {
    let database = Database::new("CREATE TABLE t (v text)").await;
    let (writer, _) = on_one_connection(&database).await;
    let insert = || writer.execute("INSERT INTO t VALUES ($1)", Parameters::from(["{}"]));
    assert_ok(&insert().await);
    // Of text no json is made unasked: the server refuses what was prepared before.
    let change = "ALTER TABLE t ALTER COLUMN v TYPE json USING v::json";
    database.plain.batch_execute(change).await.unwrap();
    assert_ok(&insert().await);
    assert_eq!(database.read("v FROM t").await, ["{}", "{}"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_withdrawn_before_it_has_a_connection_is_never_executed() {
    let database = Database::new("CREATE TABLE t (n int)").await;
    let (writer, _) = on_one_connection(&database).await;
    let insert = |n: i64| Write::new("INSERT INTO t VALUES ($1)", [n]);
    assert_ok(&writer.submit(insert(1)).await);
    let held = writer.begin().await.unwrap();
    let token = CancelToken::new();
    let (withdrawn, ()) = tokio::join!(writer.submit(insert(2).cancel(token.clone())), async {
        while writer.stats().in_flight == 0 {
            tokio::task::yield_now().await;
        }
        token.cancel();
    });
    assert_eq!(withdrawn, Err(WriteError::Cancelled));
    held.rollback().await.unwrap();
    // Behind it.
    assert_ok(&writer.submit(insert(3)).await);
    writer.drain().await;
    assert_eq!(database.read("n FROM t ORDER BY n").await, ["1", "3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_waits_for_a_lock_keeps_its_place() {
    let database = Database::new(
        "CREATE SEQUENCE s; CREATE TABLE t (n int PRIMARY KEY, at int); INSERT INTO t VALUES (0, 0), (1, 0), (2, 0)",
    )
    .await;
    let postgres = Postgres::builder(&database.url).unwrap();
    let postgres = postgres.max_connections(4).lock_timeout(Duration::from_millis(20));
    let writer = Writer::new(postgres.connect().await.unwrap());
    let update = |n: i64| Write::new("UPDATE t SET at = nextval('s') WHERE n = $1", [n]).ordered_by("key");
    assert_ok(&writer.submit(update(0)).await);
    let lock = "BEGIN; SELECT FROM t WHERE n = 1 FOR UPDATE";
    database.plain.batch_execute(lock).await.unwrap();
    let first = tokio::spawn({
        let (writer, update) = (writer.clone(), update(1));
        async move { writer.submit(update).await }
    });
    let waits = "count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'UPDATE t SET at%'";
    while database.read(waits).await != ["1"] {
        tokio::task::yield_now().await;
    }
    let second = tokio::spawn({
        let (writer, update) = (writer.clone(), update(2));
        async move { writer.submit(update).await }
    });
    // For much longer than a lock is waited for at a time.
    database.plain.batch_execute("SELECT pg_sleep(0.2)").await.unwrap();
    assert!(!second.is_finished());
    database.plain.batch_execute("ROLLBACK").await.unwrap();
    assert_ok(&first.await.unwrap());
    assert_ok(&second.await.unwrap());
    assert_eq!(database.read("n FROM t ORDER BY at").await, ["0", "1", "2"]);
}
