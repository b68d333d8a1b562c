//! Connections and servers that go away: before the commit it is written again, and once; during it nobody knows, and says so.

use std::time::Duration;

use forebay_mysql::MySql;
use forebay_write::{ReadError, Write, WriteError, Writer};
use mysql_async::prelude::Queryable;
use testbed::{Behaviour, MariaDb, Proxy};

use crate::{Database, assert_ok, together};

const SCHEMA: &str = "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n INT)";

fn insert(n: i64) -> Write {
    Write::new("INSERT INTO t (n) VALUES (?)", [n])
}

/// A database on a server of the test's own, and a proxy before it, with the URL that leads through it.
async fn behind_a_proxy() -> (MariaDb, Proxy, Database, String) {
    let server = MariaDb::start().unwrap();
    let proxy = Proxy::start(server.address()).unwrap();
    let database = Database::on(&server.url(), SCHEMA).await;
    let url = database
        .url
        .replace(&server.address().to_string(), &proxy.address().to_string());
    (server, proxy, database, url)
}

/// Ends all of Forebay's connections to that database.
async fn kill_all(database: &Database) {
    let mut conn = database.plain().await;
    let name = database.url.rsplit_once('/').unwrap().1;
    let ids = format!("SELECT ID FROM information_schema.PROCESSLIST WHERE DB = '{name}' AND ID <> CONNECTION_ID()");
    for id in crate::rows_of(&mut conn, &ids).await {
        // It may have ended by itself.
        let _ = conn.query_drop(format!("KILL {id}")).await;
    }
}

#[tokio::test]
async fn connections_that_were_killed_while_idle_are_not_noticed_by_callers() {
    let database = Database::new(SCHEMA).await;
    let mysql = database.open().await;
    let writer = Writer::new(mysql.clone());
    for round in 0..5 {
        let answers = together(&mysql, (0..20).map(insert).collect()).await;
        assert!(answers.iter().all(Result::is_ok), "{round}: {answers:?}");
        mysql.query("SELECT 1", ()).await.unwrap();
        kill_all(&database).await;
        // A batch: its transaction finds out before anything is written.
        let answers = together(&mysql, (0..2).map(insert).collect()).await;
        assert!(answers.iter().all(Result::is_ok), "{round}: {answers:?}");
        mysql.query("SELECT 1", ()).await.unwrap();
    }
    drop(writer);
    assert_eq!(database.read("SELECT COUNT(*) FROM t").await, ["110"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_whose_connection_is_killed_is_written_again_and_once() {
    let database = Database::new(SCHEMA).await;
    let mut other = database.plain().await;
    other
        .query_drop("INSERT INTO t VALUES (1, 0); BEGIN; UPDATE t SET n = 1 WHERE id = 1")
        .await
        .unwrap();
    let mysql = database
        .builder()
        .lock_timeout(Duration::from_secs(60))
        .connect()
        .await
        .unwrap();
    let writing = tokio::spawn(async move {
        let blocked = Write::new("UPDATE t SET n = n + 1 WHERE id = 1", ());
        let mut writes: Vec<Write> = (0..20).map(insert).collect();
        writes.push(blocked);
        writes.extend((0..20).map(insert));
        together(&mysql, writes).await
    });
    let id = crate::lock_waiter(&database).await;
    let mut conn = database.plain().await;
    conn.query_drop(format!("KILL {id}")).await.unwrap();
    other.query_drop("COMMIT").await.unwrap();
    let answers = writing.await.unwrap();
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(
        database.read("SELECT COUNT(*), MAX(id = 1 AND n = 2) FROM t").await,
        ["41|1"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_is_cut_off_is_an_unknown_outcome_and_never_written_twice() {
    let (server, proxy, database, url) = behind_a_proxy().await;
    let mysql = MySql::builder(&url)
        .unwrap()
        .retry_for(Duration::from_secs(2))
        .connect()
        .await
        .unwrap();
    assert!(
        together(&mysql, (0..20).map(insert).collect())
            .await
            .iter()
            .all(Result::is_ok)
    );

    // The server stops at the commit: readers of everything are let through, commits are not.
    let mut lock = database.plain().await;
    lock.query_drop("BACKUP STAGE START; BACKUP STAGE BLOCK_COMMIT")
        .await
        .unwrap();
    let writing = tokio::spawn({
        let mysql = mysql.clone();
        async move { together(&mysql, (100..120).map(insert).collect()).await }
    });
    let mut conn = Database { url: server.url() }.plain().await;
    let committing = "SELECT ID FROM information_schema.PROCESSLIST WHERE INFO = 'COMMIT'";
    while crate::rows_of(&mut conn, committing).await.is_empty() {
        tokio::task::yield_now().await;
    }
    proxy.cut();
    let answers = writing.await.unwrap();
    assert!(
        answers
            .iter()
            .all(|answer| matches!(answer, Err(WriteError::OutcomeUnknown { .. }))),
        "{answers:?}"
    );
    lock.query_drop("BACKUP STAGE END").await.unwrap();
    drop(lock);
    // The next are written, and what was unknown is there once or not at all.
    assert_ok(&Writer::new(mysql).submit(insert(7)).await);
    let doubled = database
        .read("SELECT n FROM t WHERE n >= 100 GROUP BY n HAVING COUNT(*) > 1")
        .await;
    assert_eq!(doubled, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stays_away_is_told_and_nothing_was_written() {
    let (_server, proxy, database, url) = behind_a_proxy().await;
    let mysql = MySql::builder(&url)
        .unwrap()
        .retry_for(Duration::from_millis(300))
        .connect()
        .await
        .unwrap();
    proxy.set(Behaviour::Refuse);
    let answers = together(&mysql, (0..20).map(insert).collect()).await;
    assert!(
        answers
            .iter()
            .all(|answer| matches!(answer, Err(WriteError::Unavailable { .. }))),
        "{answers:?}"
    );
    assert!(matches!(
        mysql.query("SELECT 1", ()).await,
        Err(ReadError::Unavailable { .. })
    ));
    proxy.set(Behaviour::Pass);
    assert!(
        together(&mysql, (0..20).map(insert).collect())
            .await
            .iter()
            .all(Result::is_ok)
    );
    assert_eq!(database.read("SELECT COUNT(*) FROM t").await, ["20"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_a_killed_server_and_writing_goes_on() {
    let mut server = MariaDb::builder().survives_kills().start().unwrap();
    let database = Database::on(&server.url(), SCHEMA).await;
    let proxyless = database.url.clone();
    let mysql = MySql::connect(&proxyless).await.unwrap();
    let writer = Writer::new(mysql);
    let writing: Vec<_> = (0..8)
        .map(|lane| {
            let writer = writer.clone();
            tokio::spawn(async move {
                let mut acknowledged = Vec::new();
                for n in 0.. {
                    let n = n * 8 + lane;
                    match writer.submit(insert(n).ordered_by(lane)).await {
                        Ok(_) => acknowledged.push(n),
                        Err(_) => return acknowledged,
                    }
                }
                acknowledged
            })
        })
        .collect();
    while writer.stats().batches < 50 {
        tokio::task::yield_now().await;
    }
    server.kill9().unwrap();
    server.restart().unwrap();
    let mut acknowledged = Vec::new();
    for lane in writing {
        acknowledged.extend(lane.await.unwrap());
    }
    let now = database.url.rsplit_once('/').unwrap().1;
    let restarted = Database {
        url: server.url().replace("/test", &format!("/{now}")),
    };
    let there = restarted.read("SELECT n FROM t").await;
    let there: std::collections::HashSet<i64> = there.iter().map(|n| n.parse().unwrap()).collect();
    assert_eq!(
        there.len(),
        restarted.read("SELECT n FROM t").await.len(),
        "written twice"
    );
    assert!(!acknowledged.is_empty());
    assert!(
        acknowledged.iter().all(|n| there.contains(n)),
        "an acknowledged write is lost"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_undone_is_not_done_again() {
    let database = Database::new(&format!("{SCHEMA}; CREATE TABLE kept (n INT) ENGINE = Aria")).await;
    let mut other = database.plain().await;
    other
        .query_drop("INSERT INTO t VALUES (1, 0); BEGIN; UPDATE t SET n = 1 WHERE id = 1")
        .await
        .unwrap();
    let mysql = database
        .builder()
        .lock_timeout(Duration::from_secs(60))
        .connect()
        .await
        .unwrap();
    let writing = tokio::spawn(async move {
        let kept = |n: i64| Write::new("INSERT INTO kept VALUES (? + 0)", [n]);
        let blocked = Write::new("UPDATE t SET n = n + 1 WHERE id = 1", ());
        together(&mysql, vec![kept(1), blocked, kept(2)]).await
    });
    let id = crate::lock_waiter(&database).await;
    let mut conn = database.plain().await;
    conn.query_drop(format!("KILL {id}")).await.unwrap();
    other.query_drop("COMMIT").await.unwrap();
    let answers = writing.await.unwrap();
    assert!(
        matches!(answers[0], Err(WriteError::OutcomeUnknown { .. })),
        "{answers:?}"
    );
    assert_ok(&answers[2]);
    assert_eq!(database.read("SELECT n FROM kept ORDER BY n").await, ["1", "2"]);
}

/// What was told that its outcome is not known, as it could not be undone, is not executed again with what is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_could_not_be_undone_is_not_written_again_after_a_loss() {
    let database = Database::new(SCHEMA).await;
    database.run("CREATE TABLE kept (n INT) ENGINE = MyISAM").await;
    let mut other = database.plain().await;
    let locking = "INSERT INTO t VALUES (1, 0); BEGIN; UPDATE t SET n = 1 WHERE id = 1";
    other.query_drop(locking).await.unwrap();
    let builder = database.builder().lock_timeout(Duration::from_secs(60));
    let mysql = builder.connect().await.unwrap();
    let writing = tokio::spawn(async move {
        let not_taken = Write::new("INSERT INTO kept VALUES (1)", ()).accept_if(|_| Err("not taken".to_owned()));
        let blocked = Write::new("UPDATE t SET n = n + 1 WHERE id = 1", ());
        together(&mysql, vec![not_taken, blocked]).await
    });
    let id = crate::lock_waiter(&database).await;
    let mut conn = database.plain().await;
    conn.query_drop(format!("KILL {id}")).await.unwrap();
    other.query_drop("COMMIT").await.unwrap();
    let answers = writing.await.unwrap();
    assert!(
        matches!(answers[0], Err(WriteError::OutcomeUnknown { .. })),
        "{answers:?}"
    );
    assert_eq!(database.read("SELECT COUNT(*) FROM kept").await, ["1"]);
}

/// Whether there are tables without transactions cannot be asked, so that what was executed is not told to have had no effect, nor
/// executed again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_have_stayed_is_unknown_where_the_server_cannot_be_asked() {
    let (_server, proxy, database, url) = behind_a_proxy().await;
    let builder = MySql::builder(&url).unwrap().retry_for(Duration::from_millis(300));
    let builder = builder.lock_timeout(Duration::from_secs(60));
    let mysql = builder.connect().await.unwrap();
    // Not there when it was asked.
    database.run("CREATE TABLE kept (n INT) ENGINE = MyISAM").await;
    let mut other = database.plain().await;
    let locking = "INSERT INTO t VALUES (1, 0); BEGIN; UPDATE t SET n = 1 WHERE id = 1";
    other.query_drop(locking).await.unwrap();
    let writing = tokio::spawn(async move {
        let kept = Write::new("INSERT INTO kept VALUES (1)", ());
        let blocked = Write::new("UPDATE t SET n = n + 1 WHERE id = 1", ());
        let after = Write::new("UPDATE t SET n = n + 2 WHERE id = 1", ());
        together(&mysql, vec![kept, blocked, after]).await
    });
    crate::lock_waiter(&database).await;
    proxy.set(Behaviour::Refuse);
    let answers = writing.await.unwrap();
    let is_unknown = |answer: &crate::Answer| matches!(answer, Err(WriteError::OutcomeUnknown { .. }));
    assert!(is_unknown(&answers[0]) && is_unknown(&answers[1]), "{answers:?}");
    assert!(matches!(answers[2], Err(WriteError::Unavailable { .. })), "{answers:?}");
    other.query_drop("COMMIT").await.unwrap();
    assert_eq!(database.read("SELECT COUNT(*) FROM kept").await, ["1"]);
}
