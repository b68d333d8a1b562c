//! Connections are shared: what one caller's statement does to its session, nobody else sees.

use std::time::Duration;

use forebay_postgres::Postgres;
use forebay_write::{ReadError, StatementErrorKind as Kind, Write, WriteError, Writer};

use crate::{Database, kind, kind_of_read};

/// All through one connection, so that what stays on it is seen.
async fn on_one_connection(database: &Database) -> Postgres {
    let builder = Postgres::builder(&database.url).unwrap();
    builder.max_connections(1).connect().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_writes_nothing_and_begins_nothing() {
    let database = Database::new("CREATE TABLE t (n int)").await;
    let postgres = on_one_connection(&database).await;
    let writer = Writer::new(postgres.clone());
    for sql in ["BEGIN", "SET search_path = nowhere", "LISTEN a"] {
        let refused = postgres.query(sql, ()).await;
        assert!(matches!(refused, Err(ReadError::Refused { .. })), "{sql}: {refused:?}");
    }
    for sql in [
        "INSERT INTO t VALUES (1)",
        "WITH w AS (INSERT INTO t VALUES (1) RETURNING n) SELECT n FROM w",
        "EXPLAIN ANALYZE INSERT INTO t VALUES (1)",
        "CREATE TABLE made (n int)",
    ] {
        assert_eq!(kind_of_read(&postgres.query(sql, ()).await), Kind::ReadOnly, "{sql}");
    }
    let shown = postgres.query("SHOW transaction_read_only", ()).await.unwrap();
    assert_eq!(shown.rows[0][0].as_text(), Some("on"));
    writer.execute("INSERT INTO t VALUES (2)", ()).await.unwrap();
    assert_eq!(database.read("n FROM t").await, ["2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_locks_and_temporary_tables_do_not_outlive_their_statement() {
    let database = Database::new(
        "CREATE PROCEDURE sets() LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('app.name', 'ann', false); END $$",
    )
    .await;
    let postgres = on_one_connection(&database).await;
    let writer = Writer::builder().max_in_flight(1).build(postgres.clone());
    let mut own = writer.begin().await.unwrap();
    own.execute("SET app.name = 'ann'", ()).await.unwrap();
    own.execute("CREATE TEMP TABLE kept (n int) ON COMMIT PRESERVE ROWS", ())
        .await
        .unwrap();
    own.execute("SELECT pg_advisory_lock(6)", ()).await.unwrap();
    own.commit().await.unwrap();
    for sql in [
        "SELECT 1",
        "SELECT set_config('app.name', 'ann', false)",
        "SELECT pg_advisory_lock(5)",
        "SELECT 1 AS n INTO TEMP kept",
        "CALL sets()",
        "/*+ hint */ CALL sets()",
        "; -- name: sets\nCALL sets()",
    ] {
        writer.execute(sql, ()).await.unwrap();
        let left = "SELECT coalesce(current_setting('app.name', true), ''), to_regclass('kept')::text,
            (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),
            current_setting('lock_timeout')";
        let left = writer.execute(left, ()).await.unwrap();
        let expected = ["".into(), forebay_write::Value::Null, 0.into(), "1s".into()];
        assert_eq!(left.rows, [expected], "after {sql}");
    }
    let read = postgres
        .query("SELECT set_config('app.name', 'ann', false)", ())
        .await
        .unwrap();
    assert_eq!(read.rows.len(), 1);
    let left = postgres
        .query("SELECT coalesce(current_setting('app.name', true), '')", ())
        .await
        .unwrap();
    assert_eq!(left.rows[0][0].as_text(), Some(""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_is_ended_by_its_own_methods_alone() {
    let database = Database::new("CREATE TABLE t (n int)").await;
    let writer = Writer::new(database.open().await);
    let mut own = writer.begin().await.unwrap();
    assert_eq!(
        own.execute("INSERT INTO t SELECT 1", ()).await.unwrap().rows_affected,
        1
    );
    for sql in ["COMMIT", "ROLLBACK", "BEGIN", "SAVEPOINT a", "PREPARE TRANSACTION 'a'"] {
        let refused = own.execute(sql, ()).await;
        assert!(matches!(refused, Err(WriteError::Refused { .. })), "{sql}: {refused:?}");
    }
    assert!(!own.is_lost());
    own.execute("SET LOCAL statement_timeout = '5s'", ()).await.unwrap();
    own.execute("LOCK TABLE t IN SHARE MODE", ()).await.unwrap();
    assert_eq!(own.execute("UPDATE t SET n = 2", ()).await.unwrap().rows_affected, 1);
    assert!(database.read("n FROM t").await.is_empty());
    own.commit().await.unwrap();
    assert_eq!(database.read("n FROM t").await, ["2"]);
}

/// What has locked in the session, and then waits for another lock in vain, leaves nothing behind either; nor does it where it
/// keeps its place.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_locked_or_set_before_a_lock_was_waited_for_does_not_stay() {
    let database = Database::new("").await;
    let builder = Postgres::builder(&database.url).unwrap().max_connections(1);
    let builder = builder.lock_timeout(Duration::from_millis(400));
    let postgres = builder.retry_for(Duration::from_millis(600)).connect().await.unwrap();
    let writer = Writer::new(postgres.clone());
    let left = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 710001";
    let locked = "SELECT pg_advisory_lock(710002)";
    database.plain.batch_execute(locked).await.unwrap();
    let sql =
        "CREATE TABLE made AS SELECT pg_advisory_lock(710001)::text AS one, pg_advisory_lock(710002)::text AS other";
    for write in [Write::new(sql, ()), Write::new(sql, ()).ordered_by("k")] {
        assert_eq!(kind(&writer.submit(write).await), Kind::LockTimeout);
        assert_eq!(database.plain.query_one(left, &[]).await.unwrap().get::<_, i64>(0), 0);
    }
    let sql = "CREATE TABLE made AS SELECT set_config('app.name', 'ann', false), pg_advisory_xact_lock(710002)::text";
    let releasing = async {
        tokio::time::sleep(Duration::from_millis(600)).await;
        let unlock = "SELECT pg_advisory_unlock(710002)";
        database.plain.batch_execute(unlock).await.unwrap();
    };
    let set = writer.submit(Write::new(sql, ()).ordered_by("k"));
    let (set, ()) = futures_util::future::join(set, releasing).await;
    assert!(set.is_ok(), "{set:?}");
    let shown = postgres
        .query("SELECT current_setting('app.name', true)", ())
        .await
        .unwrap();
    assert_ne!(shown.rows[0][0].as_text(), Some("ann"));
}

/// However long is tried, and however short a lock is waited for: the server has limits of its own.
#[tokio::test(flavor = "multi_thread")]
async fn locks_are_waited_for_within_the_servers_limits() {
    let database = Database::new("CREATE TABLE t (n int); INSERT INTO t VALUES (1)").await;
    let builder = Postgres::builder(&database.url).unwrap();
    let builder = builder.lock_timeout(Duration::from_micros(500));
    let postgres = builder.retry_for(Duration::MAX).connect().await.unwrap();
    let shown = postgres.query("SHOW lock_timeout", ()).await.unwrap();
    assert_eq!(shown.rows[0][0].as_text(), Some("1ms"));
    database.plain.batch_execute("BEGIN; DELETE FROM t").await.unwrap();
    let releasing = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        database.plain.batch_execute("ROLLBACK").await.unwrap();
    };
    let writer = Writer::new(postgres);
    let written = writer.execute("UPDATE t SET n = 2", ());
    let (written, ()) = futures_util::future::join(written, releasing).await;
    assert_eq!(written.unwrap().rows_affected, 1);
}

/// What can only run alone, and has a place to keep, is given up after the second time that a lock was waited for.
#[tokio::test(flavor = "multi_thread")]
async fn what_runs_alone_in_its_place_does_not_wait_for_a_lock_for_ever() {
    let database = Database::new("CREATE TABLE t (n int)").await;
    let builder = Postgres::builder(&database.url).unwrap();
    let builder = builder.lock_timeout(Duration::from_millis(100));
    let writer = Writer::new(builder.connect().await.unwrap());
    let lock = "BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE";
    database.plain.batch_execute(lock).await.unwrap();
    for sql in ["VACUUM t", "ALTER TABLE t ADD m int"] {
        let given_up = writer.submit(Write::new(sql, ()).ordered_by("k"));
        let given_up = tokio::time::timeout(Duration::from_secs(3), given_up).await;
        assert_eq!(kind(&given_up.expect(sql)), Kind::LockTimeout, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn random_numbers_cannot_be_foretold_by_who_has_had_the_connection() {
    let database = Database::new("").await;
    let postgres = on_one_connection(&database).await;
    let writer = Writer::new(postgres.clone());
    let mut drawn = Vec::new();
    for _ in 0..2 {
        writer.execute("SELECT setseed(0.25)", ()).await.unwrap();
        drawn.push(postgres.query("SELECT random()", ()).await.unwrap().rows);
    }
    assert_ne!(drawn[0], drawn[1]);
}
