//! Strangers' transactions that touch the same rows in another order: deadlocks and serialization failures are tried again, and
//! what was added is the sum of what was acknowledged.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use forebay::write::{Write, WriteError, Writer};
use futures_util::future::join_all;

use crate::place::Plain;
use crate::{Maria, Pg, Place, Settings, Site, within};

const ROWS: i64 = 6;
const SCHEMA: &str = "CREATE TABLE t (n BIGINT PRIMARY KEY, v BIGINT); INSERT INTO t VALUES (0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0)";

/// Adds one to a row, whichever.
fn add<S: Site>(row: i64) -> Write {
    let is_numbered = S::INSERT.contains('$');
    let sql = if is_numbered {
        "UPDATE t SET v = v + 1 WHERE n = $1"
    } else {
        "UPDATE t SET v = v + 1 WHERE n = ?"
    };
    Write::new(sql, [row])
}

async fn sum_is_what_was_acknowledged<S: Site>(place: &Place<S>, settings: &Settings, isolation: &str) {
    let writer = Writer::new(place.open(settings).await);
    let is_done = Arc::new(AtomicBool::new(false));
    let strangers = (0..2).map(|which| {
        let is_done = Arc::clone(&is_done);
        async move {
            let mut plain = place.plain().await;
            plain.say(isolation).await;
            let (mut added, mut round) = (0, which);
            while !is_done.load(Ordering::Relaxed) {
                // Against the order in which batches come, and with a pause in which they do.
                round += 1;
                let (first, second) = ((round + 3) % ROWS, round % ROWS);
                let mut outcome = plain.try_say("BEGIN").await;
                for row in [first, second] {
                    if outcome.is_ok() {
                        outcome = plain.try_say(&format!("UPDATE t SET v = v + 1 WHERE n = {row}")).await;
                    }
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                match outcome {
                    Ok(()) if plain.try_say("COMMIT").await.is_ok() => added += 2,
                    _ => {
                        // What failed is rolled back, or is nothing any more.
                        let _ = plain.try_say("ROLLBACK").await;
                    }
                }
            }
            added
        }
    });
    let writing = async {
        let mut added = 0;
        for round in 0..25 {
            let calls = (0..12).map(|n| writer.submit(add::<S>((n * 5 + round) % ROWS)));
            let answers = within(settings.retry_for * 3, join_all(calls)).await;
            for answer in answers {
                match answer {
                    Ok(outcome) => {
                        assert_eq!(outcome.rows_affected, 1);
                        added += 1;
                    }
                    // It had no effect, and is told so.
                    Err(WriteError::Statement(_)) => {}
                    Err(other) => panic!("{other:?}"),
                }
            }
        }
        is_done.store(true, Ordering::Relaxed);
        added
    };
    let (theirs, ours) = tokio::join!(join_all(strangers), writing);
    assert!(ours > 0);
    let sum: i64 = theirs.iter().sum::<i64>() + ours;
    assert_eq!(place.read("SELECT SUM(v) FROM t").await, [sum.to_string()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres_deadlocks_lose_and_double_nothing() {
    let place = Place::<Pg>::new(SCHEMA).await;
    let settings = Settings {
        options: "-c deadlock_timeout=5".to_owned(),
        ..Settings::default()
    };
    sum_is_what_was_acknowledged(&place, &settings, "SELECT 1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres_serialization_failures_lose_and_double_nothing() {
    let place = Place::<Pg>::new(SCHEMA).await;
    for isolation in ["serializable", "repeatable\\ read"] {
        let settings = Settings {
            options: format!("-c deadlock_timeout=5 -c default_transaction_isolation={isolation}"),
            ..Settings::default()
        };
        place.say("UPDATE t SET v = 0").await;
        let set = "SET default_transaction_isolation = 'serializable'";
        sum_is_what_was_acknowledged(&place, &settings, set).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_mariadb_deadlocks_lose_and_double_nothing() {
    let place = Place::<Maria>::new(SCHEMA).await;
    sum_is_what_was_acknowledged(&place, &Settings::default(), "SELECT 1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_mariadb_serializable_and_snapshot_conflicts_lose_and_double_nothing() {
    let settings = [("transaction-isolation", "SERIALIZABLE")];
    let place = Place::<Maria>::own(&settings, SCHEMA).await;
    sum_is_what_was_acknowledged(&place, &Settings::default(), "SELECT 1").await;
    // The row is another's since the snapshot: refused where the server is set to.
    place
        .say("SET GLOBAL tx_isolation = 'REPEATABLE-READ'; SET GLOBAL innodb_snapshot_isolation = ON; UPDATE t SET v = 0")
        .await;
    sum_is_what_was_acknowledged(&place, &Settings::default(), "SELECT 1").await;
}
