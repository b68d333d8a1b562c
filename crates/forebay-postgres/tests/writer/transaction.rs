//! A transaction of its caller's own.

use forebay_write::{StatementErrorKind as Kind, Writer};

use crate::{Database, integers, kind};

#[tokio::test(flavor = "multi_thread")]
async fn others_see_it_after_the_commit_and_a_failure_undoes_only_itself() {
    let database = Database::new("CREATE TABLE t (n int UNIQUE)").await;
    let writer = Writer::new(database.open().await);
    let mut own = writer.begin().await.unwrap();
    own.execute("INSERT INTO t VALUES ($1)", [1]).await.unwrap();
    assert_eq!(kind(&own.execute("INSERT INTO t VALUES ($1)", [1]).await), Kind::Unique);
    own.savepoint("here").await.unwrap();
    own.execute("INSERT INTO t VALUES ($1)", [2]).await.unwrap();
    own.rollback_to("here").await.unwrap();
    own.execute("INSERT INTO t VALUES ($1)", [3]).await.unwrap();
    let seen = own.query("SELECT n FROM t ORDER BY n", ()).await.unwrap();
    assert_eq!(seen.rows, [integers(&[1]), integers(&[3])]);
    assert!(database.read("n FROM t").await.is_empty());
    own.commit().await.unwrap();
    assert_eq!(database.read("n FROM t ORDER BY n").await, ["1", "3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_or_rolled_back_it_leaves_nothing() {
    let database = Database::new("CREATE TABLE t (n int)").await;
    let writer = Writer::new(database.open().await);
    for by_drop in [true, false] {
        let mut own = writer.begin().await.unwrap();
        own.execute("INSERT INTO t VALUES ($1)", [1]).await.unwrap();
        if by_drop {
            drop(own);
        } else {
            own.rollback().await.unwrap();
        }
    }
    writer.execute("INSERT INTO t VALUES ($1)", [2]).await.unwrap();
    assert_eq!(database.read("n FROM t").await, ["2"]);
}
