//! A transaction of its caller's own.

use forebay_write::{StatementErrorKind as Kind, Value, Write, WriteError, Writer};

use crate::{Database, kind, together};

const SCHEMA: &str = "CREATE TABLE t (n INT PRIMARY KEY)";
const INSERT: &str = "INSERT INTO t (n) VALUES (?)";

#[tokio::test]
async fn nothing_is_seen_before_the_commit_and_all_after_it() {
    let database = Database::new(SCHEMA).await;
    let writer = Writer::new(database.open().await);
    let mut transaction = writer.begin().await.unwrap();
    assert_eq!(transaction.execute(INSERT, [1]).await.unwrap().rows_affected, 1);
    assert_eq!(kind(&transaction.execute(INSERT, [1]).await), Kind::Unique);
    transaction.execute(INSERT, [2]).await.unwrap();
    assert!(!transaction.is_lost());
    let seen = transaction.query("SELECT COUNT(*) FROM t", ()).await.unwrap();
    assert_eq!(seen.rows, [[Value::Integer(2)]]);
    assert_eq!(database.read("SELECT n FROM t").await, [""; 0]);
    transaction.commit().await.unwrap();
    assert_eq!(database.read("SELECT n FROM t").await, ["1", "2"]);
}

#[tokio::test]
async fn dropped_or_rolled_back_nothing_is_left_and_the_connection_is_good() {
    let database = Database::new(SCHEMA).await;
    let writer = Writer::new(database.builder().max_connections(1).connect().await.unwrap());
    for roll_back in [true, false] {
        let mut transaction = writer.begin().await.unwrap();
        transaction.execute(INSERT, [1]).await.unwrap();
        if roll_back {
            transaction.rollback().await.unwrap();
        } else {
            drop(transaction);
        }
        // With one connection, this waits until the transaction is gone.
        let seen = writer.execute("SELECT COUNT(*) FROM t", ()).await.unwrap();
        assert_eq!(seen.rows, [[Value::Integer(0)]]);
    }
}

#[tokio::test]
async fn savepoints_undo_what_came_after_them() {
    let database = Database::new(SCHEMA).await;
    let mut transaction = Writer::new(database.open().await).begin().await.unwrap();
    transaction.execute(INSERT, [1]).await.unwrap();
    transaction.savepoint("a `quoted` name").await.unwrap();
    transaction.execute(INSERT, [2]).await.unwrap();
    transaction.rollback_to("a `quoted` name").await.unwrap();
    transaction.execute(INSERT, [3]).await.unwrap();
    transaction.release("a `quoted` name").await.unwrap();
    assert!(transaction.rollback_to("a `quoted` name").await.is_err());
    transaction.commit().await.unwrap();
    assert_eq!(database.read("SELECT n FROM t").await, ["1", "3"]);
}

#[tokio::test]
async fn what_would_commit_before_its_time_is_refused() {
    let database = Database::new(SCHEMA).await;
    let mut transaction = Writer::new(database.open().await).begin().await.unwrap();
    transaction.execute(INSERT, [1]).await.unwrap();
    for sql in [
        "COMMIT",
        "BEGIN",
        "CREATE TABLE u (a INT)",
        "TRUNCATE t",
        "SET autocommit = 1",
    ] {
        let refused = transaction.execute(sql, ()).await;
        assert!(matches!(refused, Err(WriteError::Refused { .. })), "{sql}: {refused:?}");
    }
    transaction.rollback().await.unwrap();
    assert_eq!(database.read("SELECT n FROM t").await, [""; 0]);
}

#[tokio::test]
async fn one_that_is_killed_is_lost() {
    let database = Database::new(SCHEMA).await;
    let mut transaction = Writer::new(database.open().await).begin().await.unwrap();
    transaction.execute(INSERT, [1]).await.unwrap();
    let id = transaction.query("SELECT CONNECTION_ID()", ()).await.unwrap().rows[0][0]
        .as_integer()
        .unwrap();
    database.run(&format!("KILL {id}")).await;
    assert_eq!(transaction.execute(INSERT, [2]).await, Err(WriteError::TransactionLost));
    assert!(transaction.is_lost());
    assert_eq!(transaction.commit().await, Err(WriteError::TransactionLost));
    assert_eq!(database.read("SELECT n FROM t").await, [""; 0]);
}

#[tokio::test]
async fn what_it_leaves_in_its_session_the_next_does_not_find() {
    let database = Database::new(SCHEMA).await;
    let writer = Writer::new(database.builder().max_connections(1).connect().await.unwrap());
    let mut transaction = writer.begin().await.unwrap();
    transaction.execute("SELECT 5 INTO @mine", ()).await.unwrap();
    transaction.commit().await.unwrap();
    let seen = writer.execute("SELECT @mine", ()).await.unwrap();
    assert_eq!(seen.rows, [[Value::Null]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_named_lock_ends_with_what_took_it() {
    let database = Database::new("CREATE TABLE t (n INT)").await;
    let mysql = database.builder().max_connections(4).connect().await.unwrap();
    let writer = Writer::new(mysql.clone());
    let name = database.url.rsplit_once('/').unwrap().1;
    let take = format!("SELECT GET_LOCK('{name}', 0)");
    let free = format!("SELECT IS_FREE_LOCK('{name}')");
    writer.execute(take.clone(), ()).await.unwrap();
    assert_eq!(database.read(&free).await, ["1"], "a write");
    let both = vec![Write::new(take.clone(), ()), Write::new("INSERT INTO t VALUES (1)", ())];
    together(&mysql, both).await;
    assert_eq!(database.read(&free).await, ["1"], "a batch");
    mysql.query(take.clone(), ()).await.unwrap();
    assert_eq!(database.read(&free).await, ["1"], "a query");
    for commits in [true, false] {
        let mut own = writer.begin().await.unwrap();
        own.execute(take.clone(), ()).await.unwrap();
        assert_eq!(database.read(&free).await, ["0"]);
        if commits {
            own.commit().await.unwrap();
        } else {
            own.rollback().await.unwrap();
        }
        assert_eq!(database.read(&free).await, ["1"], "a transaction");
    }
}
