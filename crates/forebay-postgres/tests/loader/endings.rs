//! Fetches that are dropped, and connections that end.

use std::time::Duration;

use forebay_postgres::all_rows;

use super::*;

/// How many other connections run something in this database.
async fn running(database: &Database) -> i64 {
    let sql = "SELECT count(*) FROM pg_stat_activity
               WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'";
    database.client.query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_query_without_end_is_cancelled_when_its_time_is_over() {
    let database = Database::new("").await;
    for sql in ["SELECT 1, pg_sleep($1)::text", "SELECT 1, pg_sleep($1)::text, '\\'"] {
        let loader: Loader<i64, (i64, String), ReadError> = Loader::builder()
            .fetch_timeout(Duration::from_millis(100))
            .build(one_row(&database.postgres, sql));
        for outcome in loader.load_many([10_000, 10_001]).await {
            assert!(matches!(outcome, Err(LoadError::TimedOut(_))));
        }
        // Soon, and not in three hours.
        let patience = tokio::time::Instant::now() + Duration::from_secs(20);
        while running(&database).await > 0 {
            assert!(tokio::time::Instant::now() < patience, "it still runs");
            tokio::task::yield_now().await;
        }
    }
    // The connections are as good as new.
    for _ in 0..8 {
        assert_eq!(
            values::<i64, i64>(&database, "SELECT $1::int", vec![1, 2]).await,
            [Some(1), Some(2)]
        );
    }
}

#[tokio::test]
async fn a_cancelled_load_harms_no_other() {
    let database = Database::new("CREATE TABLE t (id int); INSERT INTO t SELECT generate_series(1, 100)").await;
    let loader: Loader<i64, i64, ReadError> = database.postgres.loader("SELECT id FROM t WHERE id = ANY($1)");
    let mut loads: Vec<_> = (1..=100).map(|key| Some(loader.register(key))).collect();
    for load in loads.iter_mut().step_by(2) {
        *load = None;
    }
    for (key, load) in (1..).zip(loads) {
        if let Some(load) = load {
            assert_eq!(load.await.unwrap(), Some(key));
        }
    }
}

#[tokio::test]
async fn a_connection_that_was_ended_is_replaced() {
    let database = Database::new("CREATE TABLE t (id int); INSERT INTO t VALUES (1)").await;
    let loader: Loader<i64, Vec<i64>, ReadError> =
        Loader::new(all_rows(&database.postgres, "SELECT id FROM t WHERE id = $1"));
    for _ in 0..3 {
        assert_eq!(loader.load(1).await.unwrap(), Some(vec![1]));
        database
            .say(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE datname = current_database() AND pid <> pg_backend_pid()",
            )
            .await;
    }
}

#[tokio::test]
async fn after_close_nothing_is_read() {
    let database = Database::new("").await;
    database.postgres.close().await;
    let outcomes = load::<i64, i64>(&database, "SELECT $1::int", vec![1]).await;
    let Err(LoadError::Fetch(error)) = &outcomes[0] else {
        panic!("{outcomes:?}");
    };
    assert_eq!(**error, ReadError::Closed);
}
