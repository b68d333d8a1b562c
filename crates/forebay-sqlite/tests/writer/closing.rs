//! Drained or closed, a writer takes nothing more, and leaves nobody without an answer.

use std::time::Duration;

use forebay_sqlite::connection;
use forebay_write::{WriteError, Writer};
use futures_util::FutureExt;
use futures_util::future::join_all;

use crate::{Database, assert_ok};

#[tokio::test]
async fn drain_writes_what_waits_and_takes_no_more() {
    let database = Database::new("CREATE TABLE t (n)");
    let writer = Writer::builder()
        .max_wait(Duration::from_secs(600))
        .build(database.open());
    let mut calls: Vec<_> = (0..50)
        .map(|n| Box::pin(writer.execute("INSERT INTO t VALUES (?1)", [n])))
        .collect();
    for call in &mut calls {
        assert!(call.as_mut().now_or_never().is_none());
    }
    writer.drain().await;
    assert_eq!(
        database.read("SELECT count(*) FROM t"),
        ["50"],
        "drained, and not yet written"
    );
    for answer in join_all(calls).await {
        assert_ok(&answer);
    }
    assert_eq!(
        writer.execute("INSERT INTO t VALUES (1)", ()).await,
        Err(WriteError::Closed)
    );
    writer.drain().await;
    assert_eq!(database.read("SELECT count(*) FROM t"), ["50"]);
}

/// Whoever has it open may be the one who drains.
#[tokio::test]
async fn behind_a_drain_no_transaction_begins_and_one_that_is_open_goes_on() {
    let database = Database::new("CREATE TABLE t (n)");
    let writer = Writer::new(database.open());
    let mut own = writer.begin().await.unwrap();
    writer.drain().await;
    assert!(matches!(writer.begin().await, Err(WriteError::Closed)));
    own.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
    own.commit().await.unwrap();
    assert_eq!(database.read("SELECT count(*) FROM t"), ["1"]);
}

#[tokio::test]
async fn close_waits_for_the_transaction_that_is_open_and_refuses_what_comes_after() {
    let database = Database::new("CREATE TABLE t (n)");
    let sqlite = database.open();
    let writer = Writer::new(sqlite.clone());
    let mut own = writer.begin().await.unwrap();
    own.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
    let mut closing = Box::pin(sqlite.close());
    assert!(closing.as_mut().now_or_never().is_none());
    let mut waiting = Box::pin(writer.execute("INSERT INTO t VALUES (2)", ()));
    assert!(waiting.as_mut().now_or_never().is_none());
    own.commit().await.unwrap();
    closing.await;
    assert_eq!(waiting.await, Err(WriteError::Closed));
    assert_eq!(
        writer.execute("INSERT INTO t VALUES (3)", ()).await,
        Err(WriteError::Closed)
    );
    assert!(matches!(writer.begin().await, Err(WriteError::Closed)));
    assert!(matches!(connection::reader(&sqlite).await, Err(WriteError::Closed)));
    assert_eq!(database.read("SELECT n FROM t"), ["1"]);
}

#[tokio::test]
async fn the_last_handle_closes_the_file() {
    let database = Database::new("CREATE TABLE t (n)");
    let sqlite = database.open();
    let reader = connection::reader(&sqlite).await.unwrap();
    let writer = Writer::new(sqlite.clone());
    writer.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
    drop((writer, sqlite, reader));
    // The last connection of all removes the WAL; the threads end by themselves, so it may take them a moment.
    let wal = database.path.with_extension("db-wal");
    let until = std::time::Instant::now() + Duration::from_secs(20);
    while wal.exists() && std::time::Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(!wal.exists());
    assert_eq!(database.read("SELECT n FROM t"), ["1"]);
}

/// The runtime that executes the batch ends in the midst of it: the caller cannot be told that nothing happened.
#[test]
fn a_runtime_that_ends_leaves_the_outcome_unknown() {
    let database = Database::new("CREATE TABLE t (n)");
    let sqlite = database.open();
    let ending = tokio::runtime::Runtime::new().unwrap();
    let staying = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (writer, own) = ending.block_on(async {
        let writer = Writer::new(sqlite);
        let own = writer.begin().await.unwrap();
        (writer, own)
    });
    let mut call = Box::pin(writer.execute("INSERT INTO t VALUES (1)", ()));
    // Polled there, its batch runs there.
    ending.block_on(async {
        assert!(call.as_mut().now_or_never().is_none());
        while writer.stats().in_flight == 0 {
            tokio::task::yield_now().await;
        }
    });
    drop(ending);
    let answer = staying.block_on(call);
    assert!(matches!(answer, Err(WriteError::OutcomeUnknown { .. })), "{answer:?}");
    drop(own);
}

#[tokio::test]
async fn once_closed_the_file_alone_has_everything() {
    let database = Database::new("CREATE TABLE t (n)");
    let sqlite = database.open();
    let writer = Writer::new(sqlite.clone());
    for n in 0..100 {
        writer.execute("INSERT INTO t VALUES (?1)", [n]).await.unwrap();
    }
    writer.drain().await;
    sqlite.close().await;
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    std::fs::copy(sqlite.path(), &copy).unwrap();
    let copied = rusqlite::Connection::open(copy).unwrap();
    let rows: i64 = copied
        .query_row("SELECT count(*) FROM t", (), |row| row.get(0))
        .unwrap();
    assert_eq!(rows, 100);
}
