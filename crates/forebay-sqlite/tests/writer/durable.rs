//! Acknowledged means there: at once for every other connection, and after reopening. A lock held elsewhere is waited
//! for; a disk that fails in the commit is not glossed over.

use std::process::Command;
use std::time::{Duration, Instant};

use forebay_sqlite::Sqlite;
use forebay_write::{WriteError, Writer};
use futures_util::FutureExt;

use crate::{Database, assert_ok, together_plainly};

#[tokio::test]
async fn an_acknowledged_write_is_there_for_another_connection_at_once() {
    let database = Database::new("CREATE TABLE t (n INTEGER PRIMARY KEY)");
    let writer = Writer::new(database.open());
    let other = database.plain();
    for n in 1..=50_i64 {
        writer.execute("INSERT INTO t VALUES (?1)", [n]).await.unwrap();
        assert_eq!(
            other
                .query_row("SELECT max(n) FROM t", (), |row| row.get::<_, i64>(0))
                .unwrap(),
            n
        );
    }
}

#[tokio::test]
async fn an_acknowledged_write_is_there_after_reopening() {
    let database = Database::new("CREATE TABLE t (n INTEGER PRIMARY KEY)");
    for n in 1..=5_i64 {
        let sqlite = database.open();
        let writer = Writer::new(sqlite.clone());
        writer.execute("INSERT INTO t VALUES (?1)", [n]).await.unwrap();
        sqlite.close().await;
        drop((writer, sqlite));
        assert_eq!(database.read("SELECT count(*), max(n) FROM t"), [format!("{n}|{n}")]);
    }
    // As after a power failure in which everything that was not forced is lost but the files are whole: the copies are
    // taken while the writer still has its own open.
    let sqlite = database.open();
    Writer::new(sqlite.clone())
        .execute("INSERT INTO t VALUES (6)", ())
        .await
        .unwrap();
    let copies = tempfile::tempdir().unwrap();
    for name in ["test.db", "test.db-wal"] {
        std::fs::copy(database.path.with_file_name(name), copies.path().join(name)).unwrap();
    }
    let copy = rusqlite::Connection::open(copies.path().join("test.db")).unwrap();
    assert_eq!(crate::rows_of(&copy, "SELECT max(n) FROM t"), ["6"]);
}

#[tokio::test]
async fn a_lock_held_elsewhere_is_waited_for_then_busy_then_all_is_well() {
    let database = Database::new("CREATE TABLE t (n)");
    let timeout = Duration::from_millis(100);
    let sqlite = database.builder(|_| Ok(())).busy_timeout(timeout).open().unwrap();
    let other = database.plain();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let began = Instant::now();
    let answers = together_plainly(&sqlite, &["INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)"]).await;
    let busy = Err(WriteError::Busy { waited: timeout });
    assert_eq!(answers, [busy.clone(), busy]);
    assert!(began.elapsed() >= timeout, "it did not wait");
    let writer = Writer::new(sqlite.clone());
    assert!(matches!(writer.begin().await, Err(WriteError::Busy { .. })));
    other.execute_batch("INSERT INTO t VALUES (0); COMMIT").unwrap();
    for answer in together_plainly(&sqlite, &["INSERT INTO t VALUES (3)", "INSERT INTO t VALUES (4)"]).await {
        assert_ok(&answer);
    }
    assert_eq!(database.read("SELECT n FROM t"), ["0", "3", "4"]);
}

#[tokio::test]
async fn a_lock_that_is_given_back_in_time_is_waited_for() {
    let database = Database::new("CREATE TABLE t (n)");
    let sqlite = database
        .builder(|_| Ok(()))
        .busy_timeout(Duration::from_secs(60))
        .open()
        .unwrap();
    let writer = Writer::new(sqlite);
    let other = database.plain();
    other
        .execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES (0)")
        .unwrap();
    let mut waiting = Box::pin(writer.execute("INSERT INTO t VALUES (1)", ()));
    assert!(waiting.as_mut().now_or_never().is_none());
    while writer.stats().in_flight == 0 {
        tokio::task::yield_now().await;
    }
    for _ in 0..100 {
        assert!(waiting.as_mut().now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    other.execute_batch("COMMIT").unwrap();
    assert_ok(&waiting.await);
    assert_eq!(database.read("SELECT n FROM t"), ["0", "1"]);
}

const CHILD: &str = "FOREBAY_TEST_DISK_FAILURE";

/// A child that may write no more than a few hundred kilobytes to a file: its commits begin to fail half-way.
#[test]
fn a_disk_that_fails_in_the_commit_leaves_the_outcome_unknown_and_says_so() {
    if let Some(path) = std::env::var_os(CHILD) {
        return failing_disk_child(path.as_ref());
    }
    let database = Database::new("CREATE TABLE t (n INTEGER PRIMARY KEY, v)");
    let program = std::env::current_exe().unwrap();
    let output = Command::new("sh")
        .arg("-c")
        // Blocks of 512 or 1024 bytes, as the shell likes. Ignored, the signal becomes an error of the write.
        .arg("trap '' XFSZ; ulimit -f 300 && exec \"$0\" --exact durable::a_disk_that_fails_in_the_commit_leaves_the_outcome_unknown_and_says_so --nocapture")
        .arg(program)
        .env(CHILD, &database.path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let numbers = |word: &str| -> Vec<String> {
        text.lines()
            .filter_map(|line| line.strip_prefix(word))
            .map(str::to_owned)
            .collect()
    };
    let (acknowledged, unknown) = (numbers("acknowledged "), numbers("unknown "));
    assert!(!acknowledged.is_empty() && !unknown.is_empty(), "{text}");
    let there = database.read("SELECT n FROM t");
    for n in &acknowledged {
        assert!(there.contains(n), "{n} was acknowledged and is lost");
    }
    for n in &there {
        assert!(
            acknowledged.contains(n) || unknown.contains(n),
            "{n} was refused and is there"
        );
    }
    assert_eq!(database.read("PRAGMA integrity_check"), ["ok"]);
}

fn failing_disk_child(path: &std::path::Path) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let writer = Writer::new(Sqlite::open(path).unwrap());
        for n in 0..100_i64 {
            let answer = writer
                .execute("INSERT INTO t VALUES (?1, randomblob(20000))", [n])
                .await;
            match answer {
                Ok(_) => println!("acknowledged {n}"),
                Err(WriteError::OutcomeUnknown { .. }) => println!("unknown {n}"),
                Err(error) => println!("refused {n}: {error:?}"),
            }
        }
    });
}
