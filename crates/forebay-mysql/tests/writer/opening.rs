//! Connecting: what is wrong is told at once and names no password; neither readers nor writers starve.

use std::time::{Duration, Instant};

use forebay_mysql::{ConnectError, MySql};
use forebay_write::{ReadError, WriteError, Writer};

use crate::Database;

#[tokio::test]
async fn a_wrong_password_is_told_at_once_with_user_and_host_but_no_password() {
    let database = Database::new("").await;
    let name = database.url.rsplit_once('/').unwrap().1.to_owned();
    database
        .run(&format!("CREATE USER '{name}'@'%' IDENTIFIED BY 'right'"))
        .await;
    let url = database.url.replace("root@", &format!("{name}:wr0ng-s3cret@"));
    let begun = Instant::now();
    let Err(error) = MySql::connect(&url).await else {
        panic!("it was let in")
    };
    assert!(begun.elapsed() < Duration::from_secs(5));
    let told = format!("{error} {error:?}");
    assert!(matches!(error, ConnectError::Unavailable { .. }));
    // Who, where, and which database.
    let place = url.rsplit_once('@').unwrap().1;
    assert!(told.contains(&format!("{name}@{place}:")), "{told}");
    assert!(!told.contains("wr0ng"), "{told}");
}

#[tokio::test]
async fn nobody_there_or_no_such_database_is_told_at_once() {
    let database = Database::new("").await;
    let begun = Instant::now();
    for url in [
        "mysql://root@127.0.0.1:1/test".to_owned(),
        format!("{}_nowhere", database.url),
    ] {
        let refused = MySql::connect(&url).await.err();
        assert!(
            matches!(refused, Some(ConnectError::Unavailable { .. })),
            "{url}: {refused:?}"
        );
    }
    assert!(begun.elapsed() < Duration::from_secs(10));
    for url in ["postgres://localhost", "mysql://root@127.0.0.1/test?what=this"] {
        let refused = MySql::connect(url).await.err();
        assert!(
            matches!(refused, Some(ConnectError::InvalidUrl { .. })),
            "{url}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn mariadb_may_be_called_by_its_name() {
    let database = Database::new("").await;
    let url = database.url.replace("mysql:", "mariadb:");
    let mysql = MySql::connect(&url).await.unwrap();
    assert_eq!(mysql.query("SELECT 1", ()).await.unwrap().rows.len(), 1);
}

#[tokio::test]
async fn a_password_that_has_to_be_encoded_is_told_and_not_repeated() {
    for url in [
        "mysql://app:p@ss/word@127.0.0.1:1/app",
        "mysql://app:p/word@127.0.0.1:1/app",
    ] {
        let Err(error) = MySql::builder(url) else {
            panic!("it was understood")
        };
        assert!(matches!(error, ConnectError::InvalidUrl { .. }));
        let told = format!("{error} {error:?}");
        assert!(told.contains("%40") && !told.contains("word@"), "{told}");
    }
}

#[tokio::test]
async fn readers_leave_a_connection_to_writers_and_writers_to_readers() {
    let database = Database::new("CREATE TABLE t (n INT)").await;
    let mysql = database.builder().max_connections(3).connect().await.unwrap();
    let writer = Writer::new(mysql.clone());
    // Writers hold all that they may have.
    let open = [writer.begin().await.unwrap(), writer.begin().await.unwrap()];
    mysql.query("SELECT 1", ()).await.unwrap();
    drop(open);
    // Readers hold all that they may have, until they are dropped.
    let slow = || mysql.query("SELECT SLEEP(600)", ());
    let (one, two, three) = (slow(), slow(), slow());
    tokio::select! {
        biased;
        _ = async { tokio::join!(one, two, three) } => panic!("it slept for too short"),
        done = writer.execute("INSERT INTO t VALUES (1)", ()) => { done.unwrap(); }
    }
    // Those who were dropped in the middle have taken no connection with them.
    for _ in 0..6 {
        mysql.query("SELECT 1", ()).await.unwrap();
    }
}

#[tokio::test]
async fn with_one_connection_who_comes_first_is_served_first() {
    let database = Database::new("CREATE TABLE t (n INT)").await;
    let mysql = database.builder().max_connections(1).connect().await.unwrap();
    let writer = Writer::new(mysql.clone());
    for n in 0..20 {
        let (write, read) = tokio::join!(
            writer.execute("INSERT INTO t VALUES (?)", [n]),
            mysql.query("SELECT COUNT(*) FROM t", ())
        );
        assert!(write.is_ok() && read.is_ok());
    }
}

#[tokio::test]
async fn more_texts_than_are_kept_prepared_are_written_all_the_same() {
    let database = Database::new("CREATE TABLE t (n INT)").await;
    let mysql = database
        .builder()
        .max_connections(1)
        .statement_cache(2)
        .connect()
        .await
        .unwrap();
    let writer = Writer::new(mysql.clone());
    for round in 0..3 {
        for n in 0..5 {
            let sql = format!("INSERT INTO t VALUES (? + {n})");
            writer.execute(sql, [round]).await.unwrap();
        }
    }
    let kept = mysql
        .query("SHOW SESSION STATUS LIKE 'Prepared_stmt_count'", ())
        .await
        .unwrap();
    let open = kept.rows[0][1].as_text().unwrap().to_owned();
    assert_eq!(database.read("SELECT COUNT(*) FROM t").await, ["15"]);
    // Global, as the server counts it, so only an upper bound can be told of a server that others use as well.
    assert!(open.parse::<u64>().unwrap() < 1000, "{open}");
}

#[tokio::test]
async fn what_is_closed_takes_no_more() {
    let database = Database::new("CREATE TABLE t (n INT)").await;
    let mysql = database.open().await;
    let writer = Writer::new(mysql.clone());
    writer.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
    mysql.close().await;
    assert_eq!(
        writer.execute("INSERT INTO t VALUES (1)", ()).await,
        Err(WriteError::Closed)
    );
    assert_eq!(mysql.query("SELECT 1", ()).await, Err(ReadError::Closed));
    assert!(matches!(writer.begin().await, Err(WriteError::Closed)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_the_server_takes_no_more_connections_one_is_waited_for() {
    let server = testbed::MariaDb::builder()
        .setting("max_connections", "10")
        .start()
        .unwrap();
    let database = Database::on(&server.url(), "CREATE TABLE t (n INT)").await;
    let mysql = database.builder().max_connections(2).connect().await.unwrap();
    let writer = Writer::new(mysql.clone());
    // One is taken by the transaction, so that the query needs another.
    let transaction = writer.begin().await.unwrap();
    let mut others = Vec::new();
    let options = mysql_async::OptsBuilder::from_opts(mysql_async::Opts::from_url(&database.url).unwrap());
    while let Ok(conn) = mysql_async::Conn::new(options.clone().prefer_socket(false)).await {
        others.push(conn);
    }
    let reading = tokio::spawn(async move { mysql.query("SELECT 1", ()).await });
    assert!(
        tokio::time::timeout(Duration::from_millis(200), async {
            while !reading.is_finished() {
                tokio::task::yield_now().await;
            }
        })
        .await
        .is_err()
    );
    drop(others);
    reading.await.unwrap().unwrap();
    transaction.rollback().await.unwrap();
}
