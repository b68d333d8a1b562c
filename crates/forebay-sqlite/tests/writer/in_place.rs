//! A statement that nobody else writes beside is executed on its caller's thread, and nobody can tell: outcomes, order, cancelling
//! and whom it waits for are those of the others.

use std::collections::BTreeSet;
use std::sync::mpsc;
use std::time::Instant;

use forebay_write::{CancelToken, StatementErrorKind as Kind};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rusqlite::functions::FunctionFlags;

use super::*;

const SCHEMA: &str = "CREATE TABLE t (at INTEGER PRIMARY KEY AUTOINCREMENT, n UNIQUE)";
const INSERT: &str = "INSERT INTO t (n) VALUES ($1)";

/// The name of the thread that executes the statement.
fn register_thread(connection: &Connection) -> rusqlite::Result<()> {
    connection.create_scalar_function("thread", 0, FunctionFlags::SQLITE_UTF8, |_| {
        Ok(std::thread::current().name().unwrap_or_default().to_owned())
    })
}

async fn thread_of(writer: &Writer) -> String {
    let write = Write::new("INSERT INTO t (n) VALUES (NULL) RETURNING thread()", ());
    let outcome = writer.submit_in_place(write).await.unwrap();
    outcome.rows[0][0].as_text().unwrap().to_owned()
}

/// A writer that has been used by one caller only, for long.
async fn lonely(database: &Database) -> Writer {
    let writer = Writer::new(database.open_with(register_thread));
    be_used_by_one(&writer).await;
    writer
}

async fn be_used_by_one(writer: &Writer) {
    for _ in 0..50 {
        writer.execute("UPDATE t SET n = n WHERE 0", ()).await.unwrap();
    }
    // The last has its answer a moment before its batch has ended.
    while writer.stats().in_flight > 0 {
        tokio::task::yield_now().await;
    }
}

fn inserts(n: i64) -> Write {
    Write::new(INSERT, [n])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_writes_alone_writes_on_its_own_thread() {
    let database = Database::new(SCHEMA);
    let writer = Writer::new(database.open_with(register_thread));
    assert_eq!(
        thread_of(&writer).await,
        "forebay-write",
        "others may be about to write"
    );
    let writer = lonely(&database).await;
    for _ in 0..20 {
        assert_ne!(thread_of(&writer).await, "forebay-write");
    }
    assert_eq!(writer.stats().calls, 70);
    assert_eq!(writer.stats().batches, 70);
}

#[tokio::test]
async fn who_must_not_block_the_runtime_writes_on_the_writers_thread() {
    let database = Database::new(SCHEMA);
    assert_eq!(thread_of(&lonely(&database).await).await, "forebay-write");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_outcome_is_its_own() {
    let database = Database::new(SCHEMA);
    let writer = lonely(&database).await;
    let done = writer.submit_in_place(inserts(1)).await.unwrap();
    assert_eq!((done.rows_affected, done.last_insert_id), (1, Some(1)));
    assert_eq!(kind(&writer.submit_in_place(inserts(1)).await), Kind::Unique);
    assert_eq!(
        kind(&writer.submit_in_place(Write::new("nonsense", ())).await),
        Kind::Text
    );
    let refused = inserts(2).accept_if(|_| Err("as asked".to_owned()));
    assert!(matches!(
        writer.submit_in_place(refused).await,
        Err(WriteError::Refused { .. })
    ));
    assert_ok(&writer.submit_in_place(Write::new("VACUUM", ())).await);
    assert_ok(&writer.submit_in_place(inserts(3)).await);
    assert_eq!(database.read("SELECT n FROM t"), ["1", "3"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_panic_the_connection_is_as_before() {
    let database = Database::new(SCHEMA);
    let writer = lonely(&database).await;
    let panics = inserts(1).accept_if(|_| std::panic::panic_any("as asked"));
    assert!(writer.submit_in_place(panics).await.is_err());
    assert_ok(&writer.submit_in_place(inserts(2)).await);
    assert_eq!(database.read("SELECT n FROM t"), ["2"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_process_locks_is_not_waited_for_here() {
    let database = Database::new(SCHEMA);
    let writer = lonely(&database).await;
    let other = database.plain();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // A thread that waits for the lock could not be told that it is too late: the busy timeout is five seconds.
    let begun = Instant::now();
    let token = CancelToken::with_deadline(Some(begun + Duration::from_millis(20)));
    let late = writer.submit_in_place(inserts(1).cancel(token)).await;
    assert!(matches!(late, Err(WriteError::TimedOut)), "{late:?}");
    assert!(begun.elapsed() < Duration::from_secs(4));
    other.execute_batch("COMMIT").unwrap();
    // The busy timeout holds for others as it did.
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let waits = tokio::spawn(async move { writer.submit_in_place(inserts(2)).await });
    tokio::task::spawn_blocking(move || other.execute_batch("COMMIT").unwrap())
        .await
        .unwrap();
    assert_ok(&waits.await.unwrap());
    assert_eq!(database.read("SELECT n FROM t"), ["2"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_transaction_is_waited_for() {
    let database = Database::new(SCHEMA);
    let writer = lonely(&database).await;
    let transaction = writer.begin().await.unwrap();
    let token = CancelToken::new();
    let (waiting, withdrawn) = (writer.clone(), token.clone());
    let waits = tokio::spawn(async move { waiting.submit_in_place(inserts(1)).await });
    let gone = tokio::spawn({
        let writer = writer.clone();
        async move { writer.submit_in_place(inserts(2).cancel(withdrawn)).await }
    });
    token.cancel();
    assert!(matches!(gone.await.unwrap(), Err(WriteError::Cancelled)));
    assert!(!waits.is_finished());
    transaction.rollback().await.unwrap();
    assert_ok(&waits.await.unwrap());
    assert_eq!(database.read("SELECT n FROM t"), ["1"]);
}

/// With one worker: whatever is blocked, it is not that.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn while_one_writes_in_place_others_are_served_and_gather() {
    let database = Database::new(SCHEMA);
    let (running, runs) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let held = Arc::new(std::sync::Mutex::new((running, goes_on)));
    let sqlite = database.open_with(move |connection| {
        let held = Arc::clone(&held);
        connection.create_scalar_function("held", 0, FunctionFlags::SQLITE_UTF8, move |_| {
            let held = held.lock().unwrap();
            held.0
                .send(std::thread::current().name() == Some("forebay-write"))
                .unwrap();
            held.1.recv().unwrap();
            Ok(0)
        })
    });
    let writer = Writer::new(sqlite.clone());
    be_used_by_one(&writer).await;
    let alone = tokio::spawn({
        let writer = writer.clone();
        async move {
            writer
                .submit_in_place(Write::new("INSERT INTO t (n) VALUES (held())", ()))
                .await
        }
    });
    let is_writers = tokio::task::spawn_blocking(move || runs.recv().unwrap()).await.unwrap();
    assert!(!is_writers);
    assert_eq!(
        sqlite.query("SELECT count(*) FROM t", ()).await.unwrap().rows,
        [integers(&[0])]
    );
    database.take_commits();
    let gathered: Vec<_> = (1..=10)
        .map(|n| {
            let writer = writer.clone();
            tokio::spawn(async move { writer.submit_in_place(inserts(n)).await })
        })
        .collect();
    while writer.stats().queued < 10 {
        tokio::task::yield_now().await;
    }
    go_on.send(()).unwrap();
    assert_ok(&alone.await.unwrap());
    for answer in gathered {
        assert_ok(&answer.await.unwrap());
    }
    assert_eq!(database.take_commits(), 2, "those that came meanwhile share a commit");
}

/// Some write in place, some in line, some in transactions, some are cancelled; each is told what became of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn in_whatever_company_each_is_told_the_truth() {
    const TASKS: i64 = 4;
    const EACH: i64 = 250;
    let seed: u64 = rand::rng().random();
    println!("seed {seed}");
    let database = Database::new(SCHEMA);
    let writer = lonely(&database).await;
    // What some collide with.
    assert_ok(&writer.execute("INSERT INTO t VALUES (1, NULL)", ()).await);
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let writer = writer.clone();
            let mut random = SmallRng::seed_from_u64(seed ^ task as u64);
            tokio::spawn(async move {
                let (mut there, mut absent) = (BTreeSet::new(), BTreeSet::new());
                // The first is alone for most of the time.
                let steps = if task == 0 { EACH } else { EACH / 10 };
                for step in 0..steps {
                    let n = task * EACH + step;
                    let token = CancelToken::new();
                    let answer = match random.random_range(0..10) {
                        0 => writer.submit(inserts(n)).await,
                        1 => {
                            let mut transaction = writer.begin().await.unwrap();
                            let answer = transaction.execute(INSERT, [n]).await;
                            transaction.commit().await.unwrap();
                            answer
                        }
                        2 => {
                            let cancels = token.clone();
                            let cancelling = tokio::spawn(async move { cancels.cancel() });
                            let answer = writer.submit_in_place(inserts(n).cancel(token)).await;
                            cancelling.await.unwrap();
                            answer
                        }
                        3 => {
                            assert_eq!(
                                kind(
                                    &writer
                                        .submit_in_place(Write::new("INSERT INTO t VALUES (1, $1)", [n]))
                                        .await
                                ),
                                Kind::Unique
                            );
                            writer.submit_in_place(inserts(n)).await
                        }
                        4 => {
                            tokio::task::yield_now().await;
                            writer.submit_in_place(inserts(n)).await
                        }
                        _ => writer.submit_in_place(inserts(n)).await,
                    };
                    match answer {
                        Ok(_) => there.insert(n),
                        Err(WriteError::Cancelled) => absent.insert(n),
                        Err(error) => panic!("{error:?}"),
                    };
                }
                (there, absent)
            })
        })
        .collect();
    let mut acknowledged = BTreeSet::new();
    for task in tasks {
        let (there, absent) = task.await.unwrap();
        assert!(there.is_disjoint(&absent));
        acknowledged.extend(there);
    }
    writer.drain().await;
    let refused = writer.submit_in_place(inserts(-1)).await;
    assert!(matches!(refused, Err(WriteError::Closed)), "{refused:?}");
    let read = database.read("SELECT n FROM t WHERE n IS NOT NULL ORDER BY n");
    let expected: Vec<String> = acknowledged.iter().map(ToString::to_string).collect();
    assert_eq!(read, expected, "seed {seed}");
    let stats = writer.stats();
    assert_eq!((stats.queued, stats.in_flight), (0, 0));
}
