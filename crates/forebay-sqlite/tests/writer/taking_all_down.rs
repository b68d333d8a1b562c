//! Where SQLite rolls the whole transaction back for one statement, the guilty one is told so; the innocent are run again
//! and told the truth.

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use forebay_write::{CancelToken, StatementErrorKind as Kind, Write, WriteError, Writer};
use rusqlite::functions::FunctionFlags;

use crate::{Answer, Database, assert_ok, kind, together, together_plainly};

const GOOD: &str = "INSERT INTO good (name) VALUES ('good') RETURNING at";

/// Good, bad, good, bad, good: every good one is acknowledged once, with the place it really has.
async fn spares_the_innocent(schema: &str, bad: &'static str, expected: Kind) {
    let database = Database::new(&format!(
        "CREATE TABLE good (at INTEGER PRIMARY KEY AUTOINCREMENT, name); {schema}"
    ));
    let sqlite = database.open();
    let answers = together_plainly(&sqlite, &[GOOD, bad, GOOD, bad, GOOD]).await;
    for (index, at) in [(0, 1), (2, 2), (4, 3)] {
        assert_eq!(assert_ok(&answers[index]).rows, [crate::integers(&[at])], "{bad}");
    }
    assert_eq!((kind(&answers[1]), kind(&answers[3])), (expected, expected), "{bad}");
    assert_eq!(database.read("SELECT count(*), max(at) FROM good"), ["3|3"]);
    assert_eq!(database.read("SELECT count(*) FROM t"), ["1"], "{bad} left something");
    assert!(database.take_commits() <= 3);

    let answer = together_plainly(&sqlite, &[GOOD]).await.remove(0);
    assert_eq!(
        assert_ok(&answer).rows,
        [crate::integers(&[4])],
        "{bad}: the writer goes on"
    );
}

#[tokio::test]
async fn or_rollback() {
    let schema = "CREATE TABLE t (n UNIQUE); INSERT INTO t VALUES (1)";
    spares_the_innocent(schema, "INSERT OR ROLLBACK INTO t VALUES (2), (1)", Kind::Unique).await;
    let table = "CREATE TABLE t (n UNIQUE ON CONFLICT ROLLBACK); INSERT INTO t VALUES (1)";
    spares_the_innocent(table, "INSERT INTO t VALUES (2), (1)", Kind::Unique).await;
}

#[tokio::test]
async fn raise_rollback() {
    let schema = "CREATE TABLE t (n); INSERT INTO t VALUES (1);
        CREATE TRIGGER guard AFTER INSERT ON t WHEN NEW.n = 3 BEGIN SELECT RAISE(ROLLBACK, 'no'); END";
    spares_the_innocent(schema, "INSERT INTO t VALUES (2), (3)", Kind::OtherConstraint).await;
}

#[tokio::test]
async fn a_deferred_foreign_key() {
    let schema = "CREATE TABLE p (id INTEGER PRIMARY KEY); INSERT INTO p VALUES (1);
        CREATE TABLE t (p REFERENCES p DEFERRABLE INITIALLY DEFERRED); INSERT INTO t VALUES (1)";
    spares_the_innocent(schema, "INSERT INTO t VALUES (1), (2)", Kind::ForeignKey).await;
    spares_the_innocent(schema, "DELETE FROM p", Kind::ForeignKey).await;
}

#[tokio::test]
async fn a_full_disk() {
    let database = Database::new("CREATE TABLE good (at INTEGER PRIMARY KEY AUTOINCREMENT, name); CREATE TABLE t (v)");
    let sqlite = database.open_with(|connection| {
        connection.pragma_update(None, "cache_size", 5)?;
        connection.pragma_update_and_check(None, "max_page_count", 60, |_| Ok(()))
    });
    let large = "INSERT INTO t VALUES (zeroblob(500000))";
    for round in 0..2 {
        let answers = together_plainly(&sqlite, &[GOOD, large, GOOD]).await;
        assert_eq!(assert_ok(&answers[0]).rows, [crate::integers(&[round * 2 + 1])]);
        assert_eq!(kind(&answers[1]), Kind::Full);
        assert_eq!(assert_ok(&answers[2]).rows, [crate::integers(&[round * 2 + 2])]);
    }
    assert_eq!(database.read("SELECT count(*), max(at) FROM good"), ["4|4"]);
    assert_eq!(database.read("SELECT count(*) FROM t"), ["0"]);
    assert_eq!(database.read("PRAGMA integrity_check"), ["ok"]);
}

#[tokio::test]
async fn a_disk_that_fills_up_in_the_middle_of_a_batch_fails_those_that_do_not_fit() {
    let database = Database::new("CREATE TABLE t (at INTEGER PRIMARY KEY, v)");
    let sqlite =
        database.open_with(|connection| connection.pragma_update_and_check(None, "max_page_count", 40, |_| Ok(())));
    let insert = |at: i64| Write::new("INSERT INTO t VALUES (?1, zeroblob(15000))", [at]);
    let answers = together(&sqlite, (0..30).map(insert).collect()).await;
    let acknowledged: Vec<String> = (0..30)
        .filter(|at| answers[*at].is_ok())
        .map(|at| at.to_string())
        .collect();
    assert!((5..25).contains(&acknowledged.len()), "{acknowledged:?}");
    for answer in answers.iter().filter(|answer| answer.is_err()) {
        assert_eq!(kind(answer), Kind::Full);
    }
    assert_eq!(database.read("SELECT at FROM t ORDER BY at"), acknowledged);
}

/// A function that says it was called, and cancels a token at the n-th call.
fn cancelling(database: &Database, token: &CancelToken) -> (forebay_sqlite::Sqlite, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let (counted, token) = (Arc::clone(&calls), token.clone());
    let sqlite = database.open_with(move |connection| {
        let (counted, token) = (Arc::clone(&counted), token.clone());
        connection.create_scalar_function("tick", 0, FunctionFlags::SQLITE_UTF8, move |_| {
            if counted.fetch_add(1, Ordering::SeqCst) == 5 {
                token.cancel();
            }
            Ok(1)
        })
    });
    (sqlite, calls)
}

const ENDLESS: &str =
    "INSERT INTO t WITH RECURSIVE x (i) AS (SELECT tick() UNION ALL SELECT i + tick() FROM x) SELECT i FROM x";

#[tokio::test]
async fn a_statement_that_runs_for_ever_is_interrupted_alone() {
    let database = Database::new("CREATE TABLE good (at INTEGER PRIMARY KEY AUTOINCREMENT, name); CREATE TABLE t (v)");
    let token = CancelToken::new();
    let (sqlite, calls) = cancelling(&database, &token);
    let answers = together(
        &sqlite,
        vec![
            Write::new(GOOD, ()),
            Write::new(ENDLESS, ()).cancel(token),
            Write::new(GOOD, ()),
        ],
    )
    .await;
    assert!(calls.load(Ordering::SeqCst) > 5, "it ran, and was not withdrawn before");
    assert_eq!(answers[1], Err(WriteError::Cancelled));
    assert_eq!(assert_ok(&answers[0]).rows, [crate::integers(&[1])]);
    assert_eq!(assert_ok(&answers[2]).rows, [crate::integers(&[2])]);
    assert_eq!(database.read("SELECT count(*) FROM t"), ["0"]);
    assert_eq!(database.read("SELECT count(*), max(at) FROM good"), ["2|2"]);
}

#[tokio::test]
async fn a_deadline_interrupts_what_runs_for_ever() {
    let database = Database::new("CREATE TABLE good (at INTEGER PRIMARY KEY AUTOINCREMENT, name); CREATE TABLE t (v)");
    let (sqlite, _) = cancelling(&database, &CancelToken::new());
    let deadline = std::time::Instant::now() + std::time::Duration::from_millis(300);
    let late = CancelToken::with_deadline(Some(deadline));
    let answers = together(
        &sqlite,
        vec![
            Write::new(GOOD, ()),
            Write::new(ENDLESS, ()).cancel(late),
            Write::new(GOOD, ()),
        ],
    )
    .await;
    assert_eq!(answers[1], Err(WriteError::TimedOut));
    assert!(answers[0].is_ok() && answers[2].is_ok());
    assert_eq!(
        database.read("SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM good)"),
        ["0|2"]
    );
}

#[tokio::test]
async fn a_neighbour_cancelled_while_it_is_to_be_run_again_has_no_effect() {
    let database = Database::new("CREATE TABLE t (n UNIQUE ON CONFLICT ROLLBACK); CREATE TABLE u (n UNIQUE)");
    let token = CancelToken::new();
    let (sqlite, _) = cancelling(&database, &token);
    let calls_tick_six_times = "WITH x (i) AS (VALUES (1), (2), (3), (4), (5), (6)) SELECT sum(tick()) FROM x";
    let answers: Vec<Answer> = together(
        &sqlite,
        vec![
            Write::new("INSERT INTO u VALUES (1)", ()).cancel(token),
            // Fails while the first is there; once that has been cancelled, nothing is in its way.
            Write::new("INSERT INTO u VALUES (1)", ()),
            Write::new(calls_tick_six_times, ()),
            Write::new("INSERT INTO t VALUES (1), (1)", ()),
            Write::new("INSERT INTO u VALUES (2)", ()),
        ],
    )
    .await;
    assert_eq!(answers[0], Err(WriteError::Cancelled));
    assert_ok(&answers[1]);
    assert_eq!(kind(&answers[3]), Kind::Unique);
    assert_ok(&answers[4]);
    assert_eq!(database.read("SELECT n FROM u ORDER BY n"), ["1", "2"]);
}

/// A commit hook that refuses each transaction in which `poison()` was called, and counts the commits tried.
fn refusing(database: &Database) -> (forebay_sqlite::Sqlite, &'static (AtomicBool, AtomicUsize)) {
    unsafe extern "C" fn committing(state: *mut c_void) -> c_int {
        // SAFETY: the pointer is to a state that was leaked below, and so lives as long as the process.
        let (poisoned, tried) = unsafe { &*state.cast::<(AtomicBool, AtomicUsize)>() };
        tried.fetch_add(1, Ordering::SeqCst);
        c_int::from(poisoned.swap(false, Ordering::SeqCst))
    }
    let state: &'static (AtomicBool, AtomicUsize) = Box::leak(Box::default());
    let sqlite = database.open_with(move |connection| {
        let pointer = std::ptr::from_ref(state).cast_mut().cast();
        // SAFETY: the handle is that of an open connection on this thread, and `committing` fits what it is given.
        unsafe { rusqlite::ffi::sqlite3_commit_hook(connection.handle(), Some(committing), pointer) };
        connection.create_scalar_function("poison", 0, FunctionFlags::SQLITE_UTF8, move |_| {
            state.0.store(true, Ordering::SeqCst);
            Ok(1)
        })
    });
    (sqlite, state)
}

#[tokio::test]
async fn a_commit_that_fails_is_tried_in_halves_down_to_the_guilty() {
    let database = Database::new("CREATE TABLE t (at INTEGER PRIMARY KEY AUTOINCREMENT, n UNIQUE)");
    let (sqlite, state) = refusing(&database);
    let guilty = [3, 11, 12];
    let writes = (0..16)
        .map(|n| match n {
            n if guilty.contains(&n) => Write::new("INSERT INTO t (n) SELECT ?1 + 99 * poison()", [n]),
            // Fails by itself, each time.
            7 => Write::new("INSERT INTO t (n) VALUES (0)", ()),
            n => Write::new("INSERT INTO t (n) VALUES (?1)", [n]),
        })
        .collect();
    let answers = together(&sqlite, writes).await;
    for (n, answer) in answers.iter().enumerate() {
        if guilty.contains(&n.try_into().unwrap()) {
            assert_eq!(kind(answer), Kind::OtherConstraint, "{n}");
        } else if n == 7 {
            assert_eq!(kind(answer), Kind::Unique);
        } else {
            assert_ok(answer);
        }
    }
    let expected: Vec<String> = (0..16)
        .filter(|n| *n != 7 && !guilty.contains(n))
        .map(|n| n.to_string())
        .collect();
    assert_eq!(database.read("SELECT n FROM t ORDER BY at"), expected);
    let tried = state.1.load(Ordering::SeqCst);
    assert!(
        (4..=25).contains(&tried),
        "{tried} commits for three guilty among sixteen"
    );

    let writer = Writer::new(sqlite);
    let mut own = writer.begin().await.unwrap();
    own.execute("INSERT INTO t (n) SELECT 200 + poison()", ())
        .await
        .unwrap();
    assert_eq!(
        kind(&own.commit().await.map(|()| Default::default())),
        Kind::OtherConstraint
    );
    writer.execute("INSERT INTO t (n) VALUES (300)", ()).await.unwrap();
    assert_eq!(database.read("SELECT n FROM t WHERE n >= 100"), ["300"]);
}

#[tokio::test]
async fn a_transaction_that_the_database_rolled_back_is_lost() {
    let database = Database::new("CREATE TABLE t (n UNIQUE ON CONFLICT ROLLBACK)");
    let writer = Writer::new(database.open());
    let mut own = writer.begin().await.unwrap();
    own.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
    assert_eq!(kind(&own.execute("INSERT INTO t VALUES (1)", ()).await), Kind::Unique);
    assert!(own.is_lost());
    assert_eq!(
        own.execute("INSERT INTO t VALUES (2)", ()).await,
        Err(WriteError::TransactionLost)
    );
    assert_eq!(own.savepoint("a").await, Err(WriteError::TransactionLost));
    assert_eq!(own.commit().await, Err(WriteError::TransactionLost));
    assert_eq!(database.read("SELECT * FROM t"), [""; 0]);
    writer.execute("INSERT INTO t VALUES (3)", ()).await.unwrap();
    assert_eq!(database.read("SELECT * FROM t"), ["3"]);
}
