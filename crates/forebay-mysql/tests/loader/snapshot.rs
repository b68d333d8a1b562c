//! All keys of a fetch are read in one snapshot, in which nothing can be written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::*;

/// Runs a statement again and again, until it is told that this is done.
async fn again_and_again(
    database: &Database,
    sql: &'static str,
    done: &Arc<AtomicBool>,
) -> tokio::task::JoinHandle<()> {
    let (mut connection, done) = (database.connection().await, Arc::clone(done));
    tokio::spawn(async move {
        while !done.load(Ordering::Relaxed) {
            connection.query_drop(sql).await.unwrap();
        }
    })
}

/// A writer moves a token between two rows while a loader reads both: in one snapshot exactly one has it.
async fn token_is_never_lost(database: &Database, sql: &'static str) {
    let done = Arc::new(AtomicBool::new(false));
    let moving = again_and_again(database, "UPDATE t SET has = 1 - has", &done).await;
    let loader: Loader<i64, (i64, i64), ReadError> = Loader::builder()
        .max_items(2)
        .max_wait(Duration::from_secs(3600))
        .build(one_row(&database.mysql, sql));
    for _ in 0..100 {
        let both = loader.load_many([0, 1]).await;
        let has: i64 = both.into_iter().map(|row| row.unwrap().unwrap().0).sum();
        assert_eq!(has, 1);
    }
    done.store(true, Ordering::Relaxed);
    moving.await.unwrap();
}

const TOKEN: &str = "CREATE TABLE t (id int, has int); INSERT INTO t VALUES (0, 1), (1, 0)";

#[tokio::test]
async fn of_one_query() {
    let database = &Database::new(TOKEN).await;
    let sql = "SELECT has, id FROM t WHERE id = ?";
    assert!(is_one_query(database, "SELECT EXECUTION FROM t WHERE id = ?", vec![0_i64, 1]).await);
    token_is_never_lost(database, sql).await;
}

#[tokio::test]
async fn of_many_queries() {
    let database = &Database::new(TOKEN).await;
    token_is_never_lost(database, "SELECT has, sleep(0.002) FROM t WHERE id = ? LIMIT 1").await;
}

/// Whatever isolation the server's sessions begin with.
#[tokio::test]
async fn whatever_isolation_the_session_has() {
    let database = &Database::on(odd_server_url, TOKEN).await;
    token_is_never_lost(database, "SELECT has, sleep(0.002) FROM t WHERE id = ? LIMIT 1").await;
}

/// Also of those that are read after another key's error, and of the queries of many chunks.
#[tokio::test]
async fn also_after_an_error_and_from_chunk_to_chunk() {
    let database = &Database::new(
        "CREATE TABLE t (n int); INSERT INTO t VALUES (0); CREATE TABLE two (n int); INSERT INTO two VALUES (1), (2);
         CREATE TABLE k (id int PRIMARY KEY); INSERT INTO k SELECT seq FROM seq_1_to_2000",
    )
    .await;
    let done = Arc::new(AtomicBool::new(false));
    let counting = again_and_again(database, "UPDATE t SET n = n + 1", &done).await;
    let sql = "SELECT n, (SELECT n FROM two WHERE two.n > 2 - (? % 4 = 3) * 2), sleep(0.001) FROM t";
    for _ in 0..20 {
        let outcomes = load::<i64, (i64, Option<i64>, i64)>(database, sql, (0..12).collect()).await;
        let seen: Vec<i64> = outcomes.iter().flatten().flatten().map(|(n, ..)| *n).collect();
        assert_eq!(seen.len(), 9, "{outcomes:?}");
        assert!(seen.iter().all(|n| *n == seen[0]), "{seen:?}");
    }
    for _ in 0..20 {
        let seen = values::<i64, i64>(database, "SELECT n FROM t, k WHERE k.id = ?", (1..=2000).collect()).await;
        assert!(seen.iter().all(|n| *n == seen[0]), "{seen:?}");
    }
    done.store(true, Ordering::Relaxed);
    counting.await.unwrap();
}

#[tokio::test]
async fn nothing_is_written() {
    let database =
        &Database::new("CREATE TABLE t (n int); CREATE TABLE one (id int); INSERT INTO one VALUES (1), (2)").await;
    database
        .say("CREATE FUNCTION put(n int) RETURNS int MODIFIES SQL DATA BEGIN INSERT INTO t VALUES (n); RETURN n; END")
        .await;
    database
        .say("CREATE VIEW putting AS SELECT id, put(id) AS n FROM one")
        .await;
    for sql in ["SELECT put(?)", "SELECT n FROM putting WHERE id = ?"] {
        for keys in [vec![1], vec![1, 2]] {
            let outcomes = load::<i64, i64>(database, sql, keys).await;
            assert!(outcomes.iter().all(Result::is_err), "{outcomes:?}");
        }
    }
    let count: Option<i64> = database
        .connection()
        .await
        .query_first("SELECT count(*) FROM t")
        .await
        .unwrap();
    assert_eq!(count, Some(0));
}

/// A table that was made anew after the snapshot is not in it: there has to be another snapshot.
#[tokio::test]
async fn a_table_that_changes_after_the_snapshot_is_read_in_another_one() {
    let mut database = Database::new("CREATE TABLE t (id int, n int); INSERT INTO t VALUES (1, 1), (2, 2)").await;
    let builder = MySql::builder(&database.url).unwrap().max_connections(1);
    database.mysql = builder.lock_timeout(Duration::from_secs(60)).connect().await.unwrap();
    for sql in ["SELECT n FROM t WHERE id = ?", "SELECT n FROM t WHERE id = ? LIMIT 1"] {
        let loader: Loader<i64, i64, ReadError> = database.mysql.loader(sql);
        let both = async |loader: Loader<i64, i64, ReadError>| -> Vec<Option<i64>> {
            let outcomes = loader.load_many([1, 2]).await;
            outcomes.into_iter().map(Result::unwrap).collect()
        };
        // What is prepared now waits for no lock later.
        assert_eq!(both(loader.clone()).await, [Some(1), Some(2)]);
        let mut changer = database.connection().await;
        changer.query_drop("LOCK TABLES t WRITE").await.unwrap();
        let loading = tokio::spawn(both(loader));
        let mut looker = database.connection().await;
        let waiting =
            "SELECT count(*) FROM information_schema.PROCESSLIST WHERE DB = ? AND STATE LIKE 'Waiting for table%'";
        while looker
            .exec_first::<i64, _, _>(waiting, (&database.name,))
            .await
            .unwrap()
            != Some(1)
        {
            tokio::task::yield_now().await;
        }
        changer
            .query_drop(
                "ALTER TABLE t ADD COLUMN more int, ALGORITHM = COPY; ALTER TABLE t DROP COLUMN more; UNLOCK TABLES",
            )
            .await
            .unwrap();
        assert_eq!(loading.await.unwrap(), [Some(1), Some(2)]);
    }
}
