//! A transaction of the caller's own: its own view, savepoints, all or nothing, and nobody else writes meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use forebay_sqlite::connection;
use forebay_write::{CancelToken, StatementErrorKind as Kind, Value, Write, WriteError, Writer};
use futures_util::FutureExt;
use rusqlite::functions::FunctionFlags;

use crate::{Database, integers, kind};

#[tokio::test]
async fn it_sees_what_it_wrote_and_others_only_after_the_commit() {
    let database = Database::new("CREATE TABLE t (n)");
    let sqlite = database.open();
    let writer = Writer::new(sqlite.clone());
    let mut own = writer.begin().await.unwrap();
    let done = own.execute("INSERT INTO t VALUES (?1), (2)", [1]).await.unwrap();
    assert_eq!((done.rows_affected, done.last_insert_id), (2, Some(2)));
    assert_eq!(
        own.query("SELECT n FROM t ORDER BY n", ()).await.unwrap().rows,
        [integers(&[1]), integers(&[2])]
    );
    assert_eq!(
        sqlite.query("SELECT count(*) FROM t", ()).await.unwrap().rows,
        [integers(&[0])]
    );
    assert_eq!(database.read("SELECT count(*) FROM t"), ["0"]);
    own.commit().await.unwrap();
    assert_eq!(
        sqlite.query("SELECT count(*) FROM t", ()).await.unwrap().rows,
        [integers(&[2])]
    );
    assert_eq!(database.read("SELECT count(*) FROM t"), ["2"]);
}

#[tokio::test]
async fn dropped_or_rolled_back_it_leaves_nothing() {
    let database = Database::new("CREATE TABLE t (n)");
    let writer = Writer::new(database.open());
    let mut own = writer.begin().await.unwrap();
    own.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
    drop(own);
    let mut own = writer.begin().await.unwrap();
    assert_eq!(
        own.query("SELECT count(*) FROM t", ()).await.unwrap().rows,
        [integers(&[0])]
    );
    own.execute("INSERT INTO t VALUES (2)", ()).await.unwrap();
    own.rollback().await.unwrap();
    writer.execute("INSERT INTO t VALUES (3)", ()).await.unwrap();
    assert_eq!(database.read("SELECT n FROM t"), ["3"]);
}

#[tokio::test]
async fn one_whose_begin_was_dropped_does_not_keep_others_from_writing() {
    let database = Database::new("CREATE TABLE t (n)");
    let writer = Writer::new(database.open());
    for _ in 0..20 {
        // Polled once, it is on its way to the database; then it is dropped.
        let begun = writer.begin().now_or_never();
        assert!(begun.is_none() || begun.is_some_and(|own| own.is_ok()));
    }
    writer.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
    assert_eq!(database.read("SELECT n FROM t"), ["1"]);
}

#[tokio::test]
async fn a_statement_that_fails_undoes_only_itself() {
    let database = Database::new("CREATE TABLE t (n UNIQUE)");
    let writer = Writer::new(database.open());
    let mut own = writer.begin().await.unwrap();
    own.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
    assert_eq!(
        kind(&own.execute("INSERT OR FAIL INTO t VALUES (2), (1)", ()).await),
        Kind::Unique
    );
    assert_eq!(
        kind(&own.execute("INSERT INTO absent VALUES (1)", ()).await),
        Kind::Text
    );
    own.execute("INSERT INTO t VALUES (3)", ()).await.unwrap();
    own.commit().await.unwrap();
    assert_eq!(database.read("SELECT n FROM t"), ["1", "3"]);
}

#[tokio::test]
async fn savepoints() {
    let database = Database::new("CREATE TABLE t (n)");
    let writer = Writer::new(database.open());
    let mut own = writer.begin().await.unwrap();
    own.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
    own.savepoint("odd \"name\"; --").await.unwrap();
    own.execute("INSERT INTO t VALUES (2)", ()).await.unwrap();
    own.savepoint("inner").await.unwrap();
    own.execute("INSERT INTO t VALUES (3)", ()).await.unwrap();
    own.rollback_to("inner").await.unwrap();
    own.execute("INSERT INTO t VALUES (4)", ()).await.unwrap();
    own.release("inner").await.unwrap();
    assert_eq!(
        kind(&own.release("inner").await.map(|()| Default::default())),
        Kind::Text
    );
    assert_eq!(
        own.query("SELECT sum(n) FROM t", ()).await.unwrap().rows,
        [integers(&[7])]
    );
    own.rollback_to("odd \"name\"; --").await.unwrap();
    own.execute("INSERT INTO t VALUES (5)", ()).await.unwrap();
    assert!(!own.is_lost());
    own.commit().await.unwrap();
    assert_eq!(database.read("SELECT n FROM t"), ["1", "5"]);
}

#[tokio::test]
async fn a_foreign_key_may_stay_open_until_the_commit_which_fails() {
    let database = Database::new(
        "CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (p REFERENCES p DEFERRABLE INITIALLY DEFERRED)",
    );
    let writer = Writer::new(database.open());
    let mut healed = writer.begin().await.unwrap();
    healed.execute("INSERT INTO c VALUES (1)", ()).await.unwrap();
    healed.execute("INSERT INTO p VALUES (1)", ()).await.unwrap();
    healed.commit().await.unwrap();
    let mut open = writer.begin().await.unwrap();
    open.execute("INSERT INTO c VALUES (2)", ()).await.unwrap();
    assert_eq!(
        kind(&open.commit().await.map(|()| Default::default())),
        Kind::ForeignKey
    );
    writer.execute("INSERT INTO p VALUES (2)", ()).await.unwrap();
    assert_eq!(database.read("SELECT p FROM c"), ["1"]);
    assert_eq!(database.read("SELECT id FROM p"), ["1", "2"]);
}

#[tokio::test]
async fn writers_wait_behind_it_in_order() {
    let database = Database::new("CREATE TABLE t (at INTEGER PRIMARY KEY AUTOINCREMENT, n)");
    let writer = Writer::new(database.open());
    let mut own = writer.begin().await.unwrap();
    let mut waiting: Vec<_> = (1..=20)
        .map(|n| {
            let writer = writer.clone();
            Box::pin(async move { writer.execute("INSERT INTO t (n) VALUES (?1)", [n]).await })
        })
        .collect();
    for future in &mut waiting {
        assert!(future.as_mut().now_or_never().is_none());
    }
    // Time for the batch to run past the transaction, if it could.
    for n in 100..120 {
        own.execute("INSERT INTO t (n) VALUES (?1)", [n]).await.unwrap();
        tokio::task::yield_now().await;
    }
    let mut second = Box::pin(writer.begin());
    assert!(second.as_mut().now_or_never().is_none());
    own.commit().await.unwrap();
    for future in waiting {
        future.await.unwrap();
    }
    drop(second);
    let expected: Vec<String> = (100..120).chain(1..=20).map(|n| n.to_string()).collect();
    assert_eq!(database.read("SELECT n FROM t ORDER BY at"), expected);
}

/// A transaction whose `execute` future was dropped while the statement ran: the interrupt has rolled it back.
#[tokio::test]
async fn after_an_interrupted_statement_nothing_more_is_written() {
    let database = Database::new("CREATE TABLE t (n)");
    let started = Arc::new(AtomicBool::new(false));
    let starts = Arc::clone(&started);
    let sqlite = database.open_with(move |connection| {
        let starts = Arc::clone(&starts);
        connection.create_scalar_function("started", 0, FunctionFlags::SQLITE_UTF8, move |_| {
            starts.store(true, Ordering::SeqCst);
            Ok(1)
        })
    });
    let writer = Writer::new(sqlite.clone());
    let mut own = sqlite.begin().await.unwrap();
    own.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
    {
        let endless =
            "INSERT INTO t WITH RECURSIVE x (i) AS (SELECT started() UNION ALL SELECT i + 1 FROM x) SELECT i FROM x";
        let mut running = Box::pin(own.execute(endless, ()));
        while !started.load(Ordering::SeqCst) {
            assert!(running.as_mut().now_or_never().is_none());
            tokio::task::yield_now().await;
        }
    }
    let answer = own.execute("INSERT INTO t VALUES (2)", ()).await;
    assert_eq!(
        answer,
        Err(WriteError::TransactionLost),
        "it would have been committed by itself"
    );
    assert!(own.is_lost());
    assert_eq!(own.savepoint("s").await, Err(WriteError::TransactionLost));
    assert_eq!(
        connection::run(&own, &CancelToken::new(), |_| ()).await,
        Err(WriteError::TransactionLost)
    );
    assert_eq!(own.commit().await, Err(WriteError::TransactionLost));
    writer.execute("INSERT INTO t VALUES (3)", ()).await.unwrap();
    assert_eq!(database.read("SELECT n FROM t"), ["3"]);
}

#[tokio::test]
async fn a_token_cancels_a_statement_of_it() {
    let database = Database::new("CREATE TABLE t (n)");
    let sqlite = database.open();
    let mut own = sqlite.begin().await.unwrap();
    let token = CancelToken::new();
    token.cancel();
    let answer = own
        .execute_with("INSERT INTO t VALUES (1)".into(), ().into(), token)
        .await;
    assert_eq!(answer, Err(WriteError::Cancelled));
    assert!(!own.is_lost(), "it did not run");
    let late = CancelToken::with_deadline(Some(std::time::Instant::now() + Duration::from_millis(50)));
    let endless = "WITH RECURSIVE x (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM x) SELECT sum(i) FROM x";
    assert_eq!(
        own.execute_with(endless.into(), ().into(), late).await,
        Err(WriteError::TimedOut)
    );
    assert!(!own.is_lost(), "a read that is interrupted undoes nothing");
    own.execute("INSERT INTO t VALUES (2)", ()).await.unwrap();
    own.commit().await.unwrap();
    assert_eq!(database.read("SELECT n FROM t"), ["2"]);
}

#[tokio::test]
async fn a_job_that_panics_rolls_back() {
    let database = Database::new("CREATE TABLE t (n)");
    let sqlite = database.open();
    let writer = Writer::new(sqlite.clone());
    let mut own = sqlite.begin().await.unwrap();
    own.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
    let answer = connection::run(&own, &CancelToken::new(), |_| -> () {
        std::panic::panic_any("as asked")
    })
    .await;
    assert_eq!(
        answer,
        Err(WriteError::Internal {
            cause: "as asked".to_owned()
        })
    );
    assert_eq!(
        own.execute("INSERT INTO t VALUES (2)", ()).await,
        Err(WriteError::TransactionLost)
    );
    drop(own);
    writer.execute("INSERT INTO t VALUES (3)", ()).await.unwrap();
    assert_eq!(database.read("SELECT n FROM t"), ["3"]);
}

#[tokio::test]
async fn a_cursor_in_it_sees_what_it_wrote() {
    let database = Database::new("CREATE TABLE t (n)");
    let sqlite = database.open();
    let mut own = sqlite.begin().await.unwrap();
    own.execute("INSERT INTO t VALUES (1), (2)", ()).await.unwrap();
    let token = CancelToken::new();
    let seen = connection::run(&own, &token, |session| {
        let mut seen = Vec::new();
        session.open_cursor(1, &"SELECT n FROM t".into(), &().into())?;
        session.fetch(1, None, &mut |row| {
            seen.push(row.get::<_, i64>(0).unwrap());
            std::ops::ControlFlow::Continue(())
        })?;
        session
            .open_cursor(2, &"DELETE FROM t RETURNING n".into(), &().into())
            .expect_err("a cursor reads");
        Ok::<_, WriteError>(seen)
    });
    assert_eq!(seen.await.unwrap().unwrap(), [1, 2]);
    own.commit().await.unwrap();
    assert_eq!(database.read("SELECT count(*) FROM t"), ["2"]);
}

#[tokio::test]
async fn returned_rows_and_parameters_as_everywhere() {
    let database = Database::new("CREATE TABLE t (a, b)");
    let writer = Writer::new(database.open());
    let mut own = writer.begin().await.unwrap();
    let done = own
        .execute("INSERT INTO t VALUES ($2, $1) RETURNING a, b", (1, "two"))
        .await
        .unwrap();
    assert_eq!(done.rows, [[Value::from("two"), Value::from(1)]]);
    own.commit().await.unwrap();
    let shared = writer.submit(Write::new("SELECT a FROM t", ())).await.unwrap();
    assert_eq!(shared.rows, [[Value::from("two")]]);
}
