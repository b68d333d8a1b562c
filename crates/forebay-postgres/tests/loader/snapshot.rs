//! All keys of a fetch are read in one snapshot, in which nothing can be written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::*;

/// A writer moves a token between two rows while a loader reads both: in one snapshot exactly one has it.
async fn token_is_never_lost(sql: &'static str, is_one: bool) {
    let database = Database::new("CREATE TABLE t (id int, has int); INSERT INTO t VALUES (0, 1), (1, 0)").await;
    let telling = sql.replace("has, pg_sleep(0.002)::text", "NOW");
    assert_eq!(is_one_query(&database, &telling, vec![0_i64, 1]).await, is_one);
    let done = Arc::new(AtomicBool::new(false));
    let moving = tokio::spawn({
        let (client, done) = (client(&database.url).await, Arc::clone(&done));
        async move {
            while !done.load(Ordering::Relaxed) {
                client.batch_execute("UPDATE t SET has = 1 - has").await.unwrap();
            }
        }
    });
    let loader: Loader<i64, (i64, String), ReadError> = Loader::builder()
        .max_items(2)
        .max_wait(Duration::from_secs(3600))
        .build(one_row(&database.postgres, sql));
    for _ in 0..100 {
        let both = loader.load_many([0, 1]).await;
        let has: i64 = both.into_iter().map(|row| row.unwrap().unwrap().0).sum();
        assert_eq!(has, 1);
    }
    done.store(true, Ordering::Relaxed);
    moving.await.unwrap();
}

#[tokio::test]
async fn of_one_query() {
    token_is_never_lost("SELECT has, pg_sleep(0.002)::text FROM t WHERE id = $1", true).await;
}

#[tokio::test]
async fn of_many_queries() {
    token_is_never_lost(
        "SELECT has, pg_sleep(0.002)::text FROM t WHERE id = $1 AND '\\' <> ''",
        false,
    )
    .await;
}

/// Also of those that are read after another key's error.
#[tokio::test]
async fn also_after_an_error() {
    let database = Database::new("CREATE TABLE t (n int); INSERT INTO t VALUES (0)").await;
    let done = Arc::new(AtomicBool::new(false));
    let counting = tokio::spawn({
        let (client, done) = (client(&database.url).await, Arc::clone(&done));
        async move {
            while !done.load(Ordering::Relaxed) {
                client.batch_execute("UPDATE t SET n = n + 1").await.unwrap();
            }
        }
    });
    let sql = "SELECT n, 1 / (3 - $1::int % 4), pg_sleep(0.001)::text FROM t";
    for _ in 0..20 {
        let outcomes = load::<i64, (i64, i64, String)>(&database, sql, (0..12).collect()).await;
        let seen: Vec<i64> = outcomes.iter().flatten().flatten().map(|(n, _, _)| *n).collect();
        assert_eq!(seen.len(), 9);
        assert!(seen.iter().all(|n| *n == seen[0]), "{seen:?}");
    }
    done.store(true, Ordering::Relaxed);
    counting.await.unwrap();
}

#[tokio::test]
async fn nothing_is_written() {
    let database = Database::new(
        "CREATE TABLE t (n int);
         CREATE FUNCTION put(n int) RETURNS int LANGUAGE sql AS 'INSERT INTO t VALUES (n) RETURNING n'",
    )
    .await;
    for keys in [vec![1], vec![1, 2]] {
        let outcomes = load::<i64, i64>(&database, "SELECT put($1)", keys).await;
        assert!(outcomes.iter().all(Result::is_err), "{outcomes:?}");
    }
    let count: i64 = database
        .client
        .query_one("SELECT count(*) FROM t", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(count, 0);
}
