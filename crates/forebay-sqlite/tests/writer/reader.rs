//! Reading beside the writer: every acknowledged write is seen, cursors go on where they paused, a snapshot stays.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use forebay_sqlite::ReadError;
use forebay_sqlite::connection::{self, Progress, Reader};
use forebay_write::{CancelToken, StatementErrorKind as Kind, WriteError, Writer};
use futures_util::FutureExt;

use crate::{Database, integers, kind, kind_of_read};

const NUMBERS: &str = "WITH RECURSIVE x (i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM x WHERE i < ?2) SELECT i FROM x";
const ENDLESS: &str = "WITH RECURSIVE x (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM x) SELECT sum(i) FROM x";

async fn open(reader: &Reader, cursor: u64, from: i64, to: i64) {
    let token = CancelToken::new();
    let opened = reader.run(&token, move |session| {
        session.open_cursor(cursor, &NUMBERS.into(), &(from, to).into())
    });
    opened.await.unwrap().unwrap();
}

/// The next rows of a cursor, at most so many.
async fn fetch(reader: &Reader, cursor: u64, rows_max: usize) -> (Vec<i64>, Progress) {
    let token = CancelToken::new();
    let fetched = reader.run(&token, move |session| {
        let mut rows = Vec::new();
        let progress = session.fetch(cursor, None, &mut |row| {
            rows.push(row.get(0).unwrap());
            if rows.len() == rows_max {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        Ok::<_, WriteError>((rows, progress))
    });
    fetched.await.unwrap().unwrap()
}

#[tokio::test]
async fn it_sees_every_write_acknowledged_before() {
    let database = Database::new("CREATE TABLE t (n)");
    let sqlite = database.open();
    let writer = Writer::new(sqlite.clone());
    for n in 1..=30 {
        writer.execute("INSERT INTO t VALUES (?1)", [n]).await.unwrap();
        assert_eq!(
            sqlite.query("SELECT count(*) FROM t", ()).await.unwrap().rows,
            [integers(&[n])]
        );
    }
}

#[tokio::test]
async fn it_refuses_to_write() {
    let database = Database::new("CREATE TABLE t (n)");
    let sqlite = database.open();
    for sql in [
        "INSERT INTO t VALUES (1)",
        "DELETE FROM t RETURNING n",
        "CREATE TABLE u (n)",
        "BEGIN",
    ] {
        let answer = sqlite.query(sql, ()).await;
        assert!(matches!(answer, Err(ReadError::Refused { .. })), "{sql}: {answer:?}");
    }
    assert_eq!(
        kind_of_read(&sqlite.query("SELECT * FROM absent", ()).await),
        Kind::Text
    );
    assert_eq!(
        sqlite.query("SELECT count(*) FROM t", ()).await.unwrap().rows,
        [integers(&[0])]
    );
}

#[tokio::test]
async fn what_was_refused_before_is_not_the_next_ones_error() {
    let database = Database::new("");
    let reader = connection::reader(&database.open()).await.unwrap();
    let token = CancelToken::new();
    let answer = reader.run(&token, |session| {
        session
            .connection()
            .prepare("ATTACH ':memory:' AS other")
            .map(|_| ())
            .unwrap_err();
        session
            .open_cursor(1, &"SELECT * FROM absent".into(), &().into())
            .map(|()| Default::default())
    });
    assert_eq!(kind(&answer.await.unwrap()), Kind::Text);
}

#[tokio::test]
async fn cursors_pause_and_go_on_beside_one_another() {
    let database = Database::new("");
    let sqlite = database.open();
    let reader = connection::reader(&sqlite).await.unwrap();
    open(&reader, 1, 1, 5).await;
    open(&reader, 2, 101, 103).await;
    assert_eq!(fetch(&reader, 1, 2).await, (vec![1, 2], Progress::Paused));
    assert_eq!(fetch(&reader, 2, 1).await, (vec![101], Progress::Paused));
    assert_eq!(fetch(&reader, 1, 2).await, (vec![3, 4], Progress::Paused));
    assert_eq!(fetch(&reader, 2, 9).await, (vec![102, 103], Progress::Done));
    // Done is done: it does not begin anew.
    assert_eq!(fetch(&reader, 2, 9).await, (vec![], Progress::Done));
    assert_eq!(fetch(&reader, 1, 1).await, (vec![5], Progress::Paused));
    assert_eq!(fetch(&reader, 1, 1).await, (vec![], Progress::Done));
    assert_eq!(fetch(&reader, 7, 1).await, (vec![], Progress::Done), "never opened");

    // Opened anew under its number it begins anew, paused or not.
    open(&reader, 3, 1, 3).await;
    assert_eq!(fetch(&reader, 3, 1).await, (vec![1], Progress::Paused));
    open(&reader, 3, 11, 12).await;
    assert_eq!(fetch(&reader, 3, 9).await, (vec![11, 12], Progress::Done));
}

#[tokio::test]
async fn a_reader_given_back_leaves_nothing_to_the_next() {
    let database = Database::new("CREATE TABLE t (n); INSERT INTO t VALUES (1), (2)");
    let sqlite = database.builder(|_| Ok(())).max_readers(1).open().unwrap();
    let reader = connection::reader(&sqlite).await.unwrap();
    reader.hold_snapshot().await.unwrap();
    open(&reader, 1, 1, 5).await;
    assert_eq!(fetch(&reader, 1, 2).await, (vec![1, 2], Progress::Paused));
    assert!(
        connection::reader(&sqlite).now_or_never().is_none(),
        "there is only one"
    );
    drop(reader);
    Writer::new(sqlite.clone())
        .execute("INSERT INTO t VALUES (3)", ())
        .await
        .unwrap();
    let reader = connection::reader(&sqlite).await.unwrap();
    assert_eq!(fetch(&reader, 1, 2).await, (vec![], Progress::Done));
    drop(reader);
    assert_eq!(
        sqlite.query("SELECT count(*) FROM t", ()).await.unwrap().rows,
        [integers(&[3])]
    );
}

#[tokio::test]
async fn a_snapshot_is_held_until_the_reader_is_dropped() {
    let database = Database::new("CREATE TABLE t (n); INSERT INTO t VALUES (1)");
    let sqlite = database.open();
    let writer = Writer::new(sqlite.clone());
    let reader = connection::reader(&sqlite).await.unwrap();
    reader.hold_snapshot().await.unwrap();
    writer.execute("INSERT INTO t VALUES (2)", ()).await.unwrap();
    let count = async || {
        let token = CancelToken::new();
        let counted = reader.run(&token, |session| {
            session
                .connection()
                .query_row("SELECT count(*) FROM t", (), |row| row.get::<_, i64>(0))
                .unwrap()
        });
        counted.await.unwrap()
    };
    assert_eq!(count().await, 1);
    writer.execute("DELETE FROM t", ()).await.unwrap();
    assert_eq!(count().await, 1);
    drop(reader);
    assert_eq!(
        sqlite.query("SELECT count(*) FROM t", ()).await.unwrap().rows,
        [integers(&[0])]
    );
}

#[tokio::test]
async fn a_read_that_runs_for_ever_is_interrupted() {
    let database = Database::new("");
    let sqlite = database.builder(|_| Ok(())).max_readers(1).open().unwrap();
    let reader = connection::reader(&sqlite).await.unwrap();
    let late = CancelToken::with_deadline(Some(Instant::now() + Duration::from_millis(50)));
    let watched = late.clone();
    let fetched = reader.run(&late, move |session| {
        session.open_cursor(1, &ENDLESS.into(), &().into())?;
        session.fetch(1, Some(&watched), &mut |_| ControlFlow::Continue(()))
    });
    assert_eq!(fetched.await.unwrap(), Err(WriteError::TimedOut));
    assert_eq!(
        fetch(&reader, 1, 1).await,
        (vec![], Progress::Done),
        "an interrupted cursor is closed"
    );
    drop(reader);
    // Dropped in the midst, a query is interrupted too: the only reader comes back.
    {
        let mut query = Box::pin(sqlite.query(ENDLESS, ()));
        for _ in 0..1000 {
            assert!(query.as_mut().now_or_never().is_none());
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(sqlite.query("SELECT 1", ()).await.unwrap().rows, [integers(&[1])]);
}

#[tokio::test]
async fn a_visitor_that_panics_harms_nobody_else() {
    let database = Database::new("");
    let sqlite = database.builder(|_| Ok(())).max_readers(1).open().unwrap();
    let reader = connection::reader(&sqlite).await.unwrap();
    open(&reader, 1, 1, 5).await;
    let token = CancelToken::new();
    let answer = reader.run(&token, |session| {
        session.fetch(1, None, &mut |_| std::panic::panic_any("as asked"))
    });
    assert_eq!(
        answer.await,
        Err(WriteError::Internal {
            cause: "as asked".to_owned()
        })
    );
    assert_eq!(fetch(&reader, 1, 9).await, (vec![], Progress::Done));
    open(&reader, 1, 1, 2).await;
    assert_eq!(fetch(&reader, 1, 9).await, (vec![1, 2], Progress::Done));
}

#[tokio::test]
async fn a_result_over_the_limit_is_an_error() {
    let database = Database::new("");
    let sqlite = database.builder(|_| Ok(())).max_rows_bytes(10_000).open().unwrap();
    assert_eq!(kind_of_read(&sqlite.query(NUMBERS, (1, 10_000)).await), Kind::TooLarge);
    assert_eq!(sqlite.query(NUMBERS, (1, 10)).await.unwrap().rows.len(), 10);
}

/// One of more readers than there may be waits its turn, and a cancelled one leaves its place.
#[tokio::test]
async fn readers_wait_their_turn() {
    let database = Database::new("");
    let sqlite = database.builder(|_| Ok(())).max_readers(2).open().unwrap();
    let (one, two) = (
        connection::reader(&sqlite).await.unwrap(),
        connection::reader(&sqlite).await.unwrap(),
    );
    let mut given_up = Box::pin(connection::reader(&sqlite));
    assert!(given_up.as_mut().now_or_never().is_none());
    let mut third = Box::pin(connection::reader(&sqlite));
    assert!(third.as_mut().now_or_never().is_none());
    drop(given_up);
    drop(one);
    let third = third.await.unwrap();
    open(&third, 1, 1, 1).await;
    assert_eq!(fetch(&third, 1, 9).await, (vec![1], Progress::Done));
    drop((two, third));
}
