//! Loads and writes share the connections, and neither waits for all of the other's.

use std::time::Duration;

use forebay_write::Writer;

use super::*;

/// Longer than anything takes that does not wait.
const PATIENCE: Duration = Duration::from_secs(30);

async fn with_connections(database: &Database, connections: usize) -> MySql {
    let builder = MySql::builder(&database.url).unwrap().max_connections(connections);
    builder.retry_for(Duration::from_secs(3600)).connect().await.unwrap()
}

#[tokio::test]
async fn long_loads_do_not_stop_writes() {
    let database = &Database::new("CREATE TABLE t (id int)").await;
    let mysql = &with_connections(database, 3).await;
    // More than there are connections, and each of them for longer than the test.
    let loaders: Vec<Loader<i64, i64, ReadError>> = (0..6).map(|_| mysql.loader("SELECT sleep(?) + 88")).collect();
    let _loading: Vec<_> = loaders.iter().map(|loader| loader.register(10_000)).collect();
    while running(database, "+ 88").await < 2 {
        tokio::task::yield_now().await;
    }
    let writer = Writer::new(mysql.clone());
    for id in 0..10 {
        let written = writer.execute("INSERT INTO t VALUES (?)", (id,));
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
    let mysql = &with_connections(database, 3).await;
    let mut locker = database.connection().await;
    locker.query_drop("BEGIN; UPDATE t SET n = n + 1").await.unwrap();
    let writer = Writer::builder().max_in_flight(2).build(mysql.clone());
    let writes: Vec<_> = (0..20)
        .map(|_| {
            let writer = writer.clone();
            tokio::spawn(async move { writer.execute("UPDATE t SET n = n + 1 WHERE id = 2", ()).await })
        })
        .collect();
    while running(database, "WHERE id = 2").await < 1 {
        tokio::task::yield_now().await;
    }
    let loader: Loader<i64, i64, ReadError> = mysql.loader("SELECT n FROM t WHERE id = ?");
    for _ in 0..10 {
        let loaded = tokio::time::timeout(PATIENCE, loader.load_many([1, 2])).await;
        for outcome in loaded.expect("it waits for writes") {
            assert_eq!(outcome.unwrap(), Some(0));
        }
    }
    locker.query_drop("ROLLBACK").await.unwrap();
    for write in writes {
        assert_eq!(write.await.unwrap().unwrap().rows_affected, 1);
    }
}

#[tokio::test]
async fn transactions_that_stay_open_do_not_stop_loads() {
    let database =
        &Database::new("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0), (2, 0)").await;
    let mysql = &with_connections(database, 3).await;
    // As many as may be open, and more that wait to be.
    let open = (mysql.begin().await.unwrap(), mysql.begin().await.unwrap());
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let mysql = mysql.clone();
            tokio::spawn(async move { mysql.begin().await })
        })
        .collect();
    let loader: Loader<i64, i64, ReadError> = mysql.loader("SELECT n FROM t WHERE id = ?");
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
async fn running(database: &Database, text: &str) -> usize {
    let sql = "SELECT count(*) FROM information_schema.PROCESSLIST WHERE DB = ? AND COMMAND <> 'Sleep' AND INFO LIKE ? AND \
               ID <> CONNECTION_ID()";
    let mut connection = database.connection().await;
    let count: Option<usize> = connection
        .exec_first(sql, (&database.name, format!("%{text}%")))
        .await
        .unwrap();
    count.unwrap()
}
