//! Fetches that are dropped, and connections that end.

use std::time::Duration;

use forebay_mysql::all_rows;

use super::*;

/// Connections of that database that run something that has this in its text.
async fn running(database: &Database, text: &str) -> Vec<u64> {
    let sql = "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = ? AND COMMAND <> 'Sleep' AND INFO LIKE ?";
    let mut connection = database.connection().await;
    connection
        .exec(sql, (&database.name, format!("%{text}%")))
        .await
        .map(|mut ids: Vec<u64>| {
            ids.retain(|id| *id != u64::from(connection.id()));
            ids
        })
        .unwrap()
}

#[tokio::test]
async fn a_query_without_end_is_ended_when_its_time_is_over() {
    let database = Database::new("CREATE TABLE t (id int); INSERT INTO t VALUES (10000), (10001)").await;
    for sql in [
        "SELECT 1, sleep(?) + 77",
        "SELECT id, sleep(id) + 77 FROM t WHERE id = ? LIMIT 1",
    ] {
        let loader: Loader<i64, (i64, i64), ReadError> = Loader::builder()
            .fetch_timeout(Duration::from_millis(200))
            .build(one_row(&database.mysql, sql));
        for outcome in loader.load_many([10_000, 10_001]).await {
            assert!(matches!(outcome, Err(LoadError::TimedOut(_))), "{outcome:?}");
        }
        // Soon, and not in three hours.
        let patience = tokio::time::Instant::now() + Duration::from_secs(20);
        while !running(&database, "+ 77").await.is_empty() {
            assert!(tokio::time::Instant::now() < patience, "it still runs");
            tokio::task::yield_now().await;
        }
    }
    // The connections are as good as new.
    for _ in 0..8 {
        assert_eq!(
            values::<i64, i64>(&database, "SELECT ? DIV 1", vec![1, 2]).await,
            [Some(1), Some(2)]
        );
    }
}

#[tokio::test]
async fn a_query_that_is_not_answered_in_time_is_ended_too() {
    let mut database = Database::new("").await;
    let builder = MySql::builder(&database.url).unwrap();
    database.mysql = builder
        .answer_timeout(Duration::from_millis(300))
        .connect()
        .await
        .unwrap();
    for outcome in load::<i64, i64>(&database, "SELECT sleep(?) + 66", vec![10_000]).await {
        let Err(LoadError::Fetch(error)) = &outcome else {
            panic!("{outcome:?}");
        };
        assert!(matches!(**error, ReadError::Unavailable { .. }), "{error:?}");
    }
    let patience = tokio::time::Instant::now() + Duration::from_secs(20);
    while !running(&database, "+ 66").await.is_empty() {
        assert!(tokio::time::Instant::now() < patience, "it still runs");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_cancelled_load_harms_no_other() {
    let database = Database::new("CREATE TABLE t (id int); INSERT INTO t SELECT seq FROM seq_1_to_100").await;
    let loader: Loader<i64, i64, ReadError> = database.mysql.loader("SELECT id FROM t WHERE id = ?");
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
        Loader::new(all_rows(&database.mysql, "SELECT id FROM t WHERE id = ?"));
    for _ in 0..3 {
        assert_eq!(loader.load(1).await.unwrap(), Some(vec![1]));
        let mut connection = database.connection().await;
        let ids: Vec<u64> = connection
            .exec(
                "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = ? AND ID <> CONNECTION_ID()",
                (&database.name,),
            )
            .await
            .unwrap();
        for id in ids {
            // One that is gone already is as good.
            let _ = connection.query_drop(format!("KILL {id}")).await;
        }
    }
}

#[tokio::test]
async fn a_connection_that_ends_in_the_middle_is_replaced_and_all_is_read_again() {
    let database = Database::new("CREATE TABLE t (id int); INSERT INTO t VALUES (1), (2)").await;
    let loader: Loader<i64, i64, ReadError> = database
        .mysql
        .loader("SELECT id + sleep(2) * 0 FROM t WHERE id = ? LIMIT 1");
    let loading = tokio::spawn(async move { loader.load_many([1, 2]).await });
    let mut connection = database.connection().await;
    let id = loop {
        if let [id] = running(&database, "sleep(2)").await[..] {
            break id;
        }
        tokio::task::yield_now().await;
    };
    connection.query_drop(format!("KILL {id}")).await.unwrap();
    let found: Vec<Option<i64>> = loading.await.unwrap().into_iter().map(Result::unwrap).collect();
    assert_eq!(found, [Some(1), Some(2)]);
}

#[tokio::test]
async fn after_close_nothing_is_read() {
    let database = Database::new("").await;
    database.mysql.close().await;
    let outcomes = load::<i64, i64>(&database, "SELECT ? DIV 1", vec![1]).await;
    let Err(LoadError::Fetch(error)) = &outcomes[0] else {
        panic!("{outcomes:?}");
    };
    assert_eq!(**error, ReadError::Closed);
}
