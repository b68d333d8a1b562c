//! Loads and writes share the connections, and neither waits for all of the other's.

use std::time::Duration;

use forebay_write::Writer;

use super::*;

/// Longer than anything takes that does not wait.
const PATIENCE: Duration = Duration::from_secs(30);

async fn with_connections(database: &Database, connections: usize) -> Postgres {
    let builder = Postgres::builder(&database.url).unwrap().max_connections(connections);
    builder.retry_for(Duration::from_secs(3600)).connect().await.unwrap()
}

#[tokio::test]
async fn long_loads_do_not_stop_writes() {
    let database = &Database::new("CREATE TABLE t (id bigint)").await;
    let postgres = &with_connections(database, 3).await;
    // More than there are connections, and each of them for longer than the test.
    let loaders: Vec<Loader<i64, i64, ReadError>> = (0..6)
        .map(|_| postgres.loader("SELECT 88 FROM (SELECT pg_sleep($1)) AS slept"))
        .collect();
    let _loading: Vec<_> = loaders.iter().map(|loader| loader.register(10_000)).collect();
    while running(database, "88 FROM").await < 2 {
        tokio::task::yield_now().await;
    }
    let writer = Writer::new(postgres.clone());
    for id in 0..10_i64 {
        let written = writer.execute("INSERT INTO t VALUES ($1)", (id,));
        let outcome = tokio::time::timeout(PATIENCE, written)
            .await
            .expect("it waits for loads");
        assert_eq!(outcome.unwrap().rows_affected, 1);
    }
}

#[tokio::test]
async fn writes_that_wait_do_not_stop_loads() {
    let database =
        &Database::new("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0), (2, 0)").await;
    let postgres = &with_connections(database, 3).await;
    let locker = client(&database.url).await;
    locker.batch_execute("BEGIN; UPDATE t SET n = n + 1").await.unwrap();
    let writer = Writer::builder().max_in_flight(2).build(postgres.clone());
    let writes: Vec<_> = (0..20)
        .map(|_| {
            let writer = writer.clone();
            tokio::spawn(async move { writer.execute("UPDATE t SET n = n + 1 WHERE id = 2", ()).await })
        })
        .collect();
    while running(database, "WHERE id = 2").await < 1 {
        tokio::task::yield_now().await;
    }
    let loader: Loader<i64, i64, ReadError> = postgres.loader("SELECT n FROM t WHERE id = $1");
    for _ in 0..10 {
        let loaded = tokio::time::timeout(PATIENCE, loader.load_many([1, 2])).await;
        for outcome in loaded.expect("it waits for writes") {
            assert_eq!(outcome.unwrap(), Some(0));
        }
    }
    locker.batch_execute("ROLLBACK").await.unwrap();
    for write in writes {
        assert_eq!(write.await.unwrap().unwrap().rows_affected, 1);
    }
}

#[tokio::test]
async fn transactions_that_stay_open_do_not_stop_loads() {
    let database =
        &Database::new("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0), (2, 0)").await;
    let postgres = &with_connections(database, 3).await;
    // As many as may be open, and more that wait to be.
    let open = (postgres.begin().await.unwrap(), postgres.begin().await.unwrap());
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let postgres = postgres.clone();
            tokio::spawn(async move { postgres.begin().await })
        })
        .collect();
    let loader: Loader<i64, i64, ReadError> = postgres.loader("SELECT n FROM t WHERE id = $1");
    for _ in 0..10 {
        let loaded = tokio::time::timeout(PATIENCE, loader.load_many([1, 2])).await;
        for outcome in loaded.expect("it waits for writes") {
            assert_eq!(outcome.unwrap(), Some(0));
        }
    }
    assert!(
        waiting.iter().all(|begun| !begun.is_finished()),
        "a connection was to be left to loads"
    );
    drop(open);
    for begun in waiting {
        drop(begun.await.unwrap().unwrap());
    }
}

/// How many connections of that database run something that has this in its text.
async fn running(database: &Database, text: &str) -> i64 {
    let sql = "SELECT count(*) FROM pg_stat_activity
               WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'active' AND strpos(query, $1) > 0";
    database.client.query_one(sql, &[&text]).await.unwrap().get(0)
}
