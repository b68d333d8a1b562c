//! Errors of the real server, and of the client.

use postgres_types::ToSql;

use super::{super::test_server::session, *};
use crate::types::{Column, Parameter};
use forebay_write::Value;

const TABLES: &str = "
    CREATE TEMP TABLE parents (id int PRIMARY KEY);
    CREATE TEMP TABLE things (
        id int CONSTRAINT things_key PRIMARY KEY,
        name varchar(3) NOT NULL DEFAULT 'a',
        age int2 CONSTRAINT age_sensible CHECK (age >= 0),
        parent int CONSTRAINT has_parent REFERENCES parents DEFERRABLE,
        span int4range,
        CONSTRAINT apart EXCLUDE USING gist (span WITH &&)
    );
    INSERT INTO parents VALUES (1);
    INSERT INTO things (id, age, parent, span) VALUES (1, 1, 1, '[1,5)');
    CREATE TEMP VIEW young AS SELECT * FROM things WHERE age < 10 WITH CHECK OPTION;
    CREATE TEMP TABLE closed (id int);
";

#[tokio::test]
async fn every_kind_is_told_by_its_state() {
    let session = session().await;
    session.batch_execute(TABLES).await.unwrap();
    let cases = [
        (
            "INSERT INTO things VALUES (1)",
            "23505",
            Kind::Unique,
            Some("things_key"),
        ),
        ("INSERT INTO things VALUES (2, NULL)", "23502", Kind::NotNull, None),
        (
            "INSERT INTO things (id, age) VALUES (2, -1)",
            "23514",
            Kind::Check,
            Some("age_sensible"),
        ),
        (
            "INSERT INTO things (id, parent) VALUES (2, 9)",
            "23503",
            Kind::ForeignKey,
            Some("has_parent"),
        ),
        (
            "INSERT INTO things (id, span) VALUES (2, '[4,9)')",
            "23P01",
            Kind::OtherConstraint,
            Some("apart"),
        ),
        (
            "INSERT INTO young (id, age) VALUES (2, 50)",
            "44000",
            Kind::OtherConstraint,
            None,
        ),
        (
            "DO $$ BEGIN RAISE EXCEPTION 'no'; END $$",
            "P0001",
            Kind::OtherConstraint,
            None,
        ),
        ("INSERT INTO things VALUES (2, 'long')", "22001", Kind::Type, None),
        ("SELECT 'x'::int", "22P02", Kind::Type, None),
        ("SELECT 40000::int2", "22003", Kind::Type, None),
        ("SELEC 1", "42601", Kind::Text, None),
        ("SELECT * FROM absent", "42P01", Kind::Text, None),
        ("SELECT absent FROM things", "42703", Kind::Text, None),
        ("SELECT absent()", "42883", Kind::Text, None),
        (
            "DO $$ BEGIN EXECUTE 'SELECT $2' USING 1; END $$",
            "42P02",
            Kind::ParameterCount,
            None,
        ),
        ("SELECT 1 FROM absent.things", "42P01", Kind::Text, None),
        ("CREATE TABLE absent.things ()", "3F000", Kind::Text, None),
        (
            "DO $$ BEGIN RAISE SQLSTATE '25006'; END $$",
            "25006",
            Kind::ReadOnly,
            None,
        ),
        (
            "DO $$ BEGIN RAISE SQLSTATE '42501'; END $$",
            "42501",
            Kind::Permission,
            None,
        ),
        ("DO $$ BEGIN RAISE SQLSTATE '53100'; END $$", "53100", Kind::Full, None),
        (
            "DO $$ BEGIN RAISE SQLSTATE '53200'; END $$",
            "53200",
            Kind::OutOfMemory,
            None,
        ),
        (
            "DO $$ BEGIN RAISE SQLSTATE '54000'; END $$",
            "54000",
            Kind::TooLarge,
            None,
        ),
        (
            "DO $$ BEGIN RAISE SQLSTATE '57014'; END $$",
            "57014",
            Kind::Timeout,
            None,
        ),
        ("DO $$ BEGIN RAISE SQLSTATE '58030'; END $$", "58030", Kind::Io, None),
        (
            "DO $$ BEGIN RAISE SQLSTATE 'XX001'; END $$",
            "XX001",
            Kind::Corrupt,
            None,
        ),
        ("DO $$ BEGIN RAISE SQLSTATE 'XX000'; END $$", "XX000", Kind::Other, None),
        // Codes that would mean more, had the server said them of this connection: a function did.
        ("DO $$ BEGIN RAISE SQLSTATE '08006'; END $$", "08006", Kind::Other, None),
        ("DO $$ BEGIN RAISE SQLSTATE '57P01'; END $$", "57P01", Kind::Other, None),
        ("DO $$ BEGIN RAISE SQLSTATE '25P02'; END $$", "25P02", Kind::Other, None),
        ("DO $$ BEGIN RAISE SQLSTATE '0A000'; END $$", "0A000", Kind::Text, None),
    ];
    for (sql, state, kind, constraint) in cases {
        let error = session.batch_execute(sql).await.unwrap_err();
        let Failure::Statement(told) = failure(&error, sql) else {
            panic!("{sql}: {:?}", failure(&error, sql));
        };
        assert_eq!(told.sqlstate.as_deref(), Some(state), "{sql}");
        assert_eq!(told.kind, kind, "{sql}");
        assert_eq!(told.constraint.as_deref(), constraint, "{sql}");
        assert_eq!(told.code, 0);
    }
}

#[tokio::test]
async fn the_message_has_the_detail_and_the_offset_is_in_bytes() {
    let session = session().await;
    session.batch_execute(TABLES).await.unwrap();
    let told = |error: tokio_postgres::Error, sql| match failure(&error, sql) {
        Failure::Statement(told) => told,
        other => panic!("{other:?}"),
    };
    let sql = "INSERT INTO things VALUES (1)";
    let unique = told(session.execute(sql, &[]).await.unwrap_err(), sql);
    assert_eq!(
        unique.message,
        "duplicate key value violates unique constraint \"things_key\" (Key (id)=(1) already exists.)"
    );
    assert_eq!(unique.offset, None);
    // Characters of two, three and four bytes stand before it.
    let sql = "SELECT 'ä€😀', absent FROM things";
    let column = told(session.prepare(sql).await.unwrap_err(), sql);
    assert_eq!(column.offset, sql.find("absent"));
    let sql = "SELECT 'ä' +";
    let end = told(session.prepare(sql).await.unwrap_err(), sql);
    assert_eq!(end.offset, Some(sql.len()));
    // A text that the caller did not write.
    let sql = "DO $$ BEGIN EXECUTE 'SELEC 1'; END $$";
    let internal = told(session.batch_execute(sql).await.unwrap_err(), sql);
    assert_eq!(internal.kind, Kind::Text);
    assert_eq!(internal.offset, None);
    // A text shorter than the server's own.
    assert_eq!(byte_offset("a", 3), None);
    assert_eq!(byte_offset("a", 0), None);
}

#[tokio::test]
async fn what_cannot_run_in_a_transaction_runs_alone() {
    let session = session().await;
    session
        .batch_execute(
            "CREATE TEMP TABLE parents (id int PRIMARY KEY);
             CREATE TEMP TABLE things (parent int REFERENCES parents DEFERRABLE INITIALLY DEFERRED);
             CREATE OR REPLACE PROCEDURE pg_temp.commits() LANGUAGE plpgsql AS 'BEGIN COMMIT; END';
             CREATE TYPE pg_temp.mood AS ENUM ('sad')",
        )
        .await
        .unwrap();
    let cases = [
        ("", "VACUUM", "25001"),
        ("", "CALL pg_temp.commits()", "2D000"),
        (
            "INSERT INTO things VALUES (1)",
            "ALTER TABLE things ADD COLUMN more int",
            "55006",
        ),
        (
            "ALTER TYPE pg_temp.mood ADD VALUE 'new'",
            "SELECT 'new'::pg_temp.mood",
            "55P04",
        ),
    ];
    for (before, sql, state) in cases {
        session.batch_execute(&format!("BEGIN; {before}")).await.unwrap();
        let error = session.batch_execute(sql).await.unwrap_err();
        match failure(&error, sql) {
            Failure::Alone(told) => assert_eq!(told.sqlstate.as_deref(), Some(state)),
            other => panic!("{sql}: {other:?}"),
        }
        let next = session.batch_execute("SELECT 1").await.unwrap_err();
        assert!(matches!(failure(&next, "SELECT 1"), Failure::Skipped(_)));
        session.batch_execute("ROLLBACK").await.unwrap();
    }
}

#[tokio::test]
async fn conflicts_and_locks_are_told_apart() {
    let (one, other) = (session().await, session().await);
    one.batch_execute("DROP TABLE IF EXISTS contended; CREATE TABLE contended (id int PRIMARY KEY, n int)")
        .await
        .unwrap();
    one.batch_execute("INSERT INTO contended VALUES (1, 0), (2, 0)")
        .await
        .unwrap();

    one.batch_execute("BEGIN; UPDATE contended SET n = 1 WHERE id = 1")
        .await
        .unwrap();
    let sql = "SET lock_timeout = '10ms'; UPDATE contended SET n = 2 WHERE id = 1";
    let error = other.batch_execute(sql).await.unwrap_err();
    assert!(matches!(failure(&error, sql), Failure::Lock(told) if told.kind == Kind::LockTimeout));
    let sql = "SELECT 1 FROM contended WHERE id = 1 FOR UPDATE NOWAIT";
    let error = other.batch_execute(sql).await.unwrap_err();
    assert!(matches!(failure(&error, sql), Failure::Lock(told) if told.kind == Kind::LockTimeout));
    other.batch_execute("RESET lock_timeout").await.unwrap();

    // Each waits for the other; the server ends one of them.
    other
        .batch_execute("BEGIN; UPDATE contended SET n = 2 WHERE id = 2")
        .await
        .unwrap();
    let (first, second) = tokio::join!(
        one.batch_execute("UPDATE contended SET n = 1 WHERE id = 2; COMMIT"),
        other.batch_execute("UPDATE contended SET n = 2 WHERE id = 1; COMMIT"),
    );
    let error = match (first, second) {
        (Err(error), Ok(())) | (Ok(()), Err(error)) => error,
        both => panic!("{both:?}"),
    };
    assert!(matches!(failure(&error, ""), Failure::Conflict(told) if told.sqlstate.as_deref() == Some("40P01")));
    let _ = tokio::join!(one.batch_execute("ROLLBACK"), other.batch_execute("ROLLBACK"));

    one.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM contended")
        .await
        .unwrap();
    other.batch_execute("UPDATE contended SET n = 3").await.unwrap();
    let error = one.batch_execute("UPDATE contended SET n = 4").await.unwrap_err();
    assert!(matches!(failure(&error, ""), Failure::Conflict(told) if told.kind == Kind::Conflict));
    one.batch_execute("ROLLBACK; DROP TABLE contended").await.unwrap();
}

#[tokio::test]
async fn a_plan_that_no_longer_holds_is_made_again() {
    let session = session().await;
    session
        .batch_execute("CREATE TEMP TABLE things (id int)")
        .await
        .unwrap();
    let sql = "SELECT * FROM things";
    let statement = session.prepare(sql).await.unwrap();
    session
        .batch_execute("ALTER TABLE things ADD COLUMN more int")
        .await
        .unwrap();
    let error = session.query(&statement, &[]).await.unwrap_err();
    assert!(matches!(failure(&error, sql), Failure::Replan(told) if told.sqlstate.as_deref() == Some("0A000")));
    let statement = session.prepare(sql).await.unwrap();
    session.batch_execute("DEALLOCATE ALL").await.unwrap();
    let error = session.query(&statement, &[]).await.unwrap_err();
    assert!(matches!(failure(&error, sql), Failure::Replan(told) if told.sqlstate.as_deref() == Some("26000")));
}

#[tokio::test]
async fn a_connection_that_ends_is_lost() {
    let session = session().await;
    let sql = "SELECT pg_terminate_backend(pg_backend_pid())";
    let error = session.batch_execute(sql).await.unwrap_err();
    assert!(matches!(failure(&error, sql), Failure::Lost(cause) if cause.contains("57P01")));
    // How long the client takes to notice is its own; afterwards it says so at once.
    let error = session.batch_execute("SELECT 1").await.unwrap_err();
    assert!(error.is_closed() || error.as_db_error().is_none());
    assert!(matches!(failure(&error, "SELECT 1"), Failure::Lost(_)));
}

#[tokio::test]
async fn what_the_client_refuses_is_the_statements_own() {
    let session = session().await;
    let own = |error: tokio_postgres::Error| match failure(&error, "") {
        Failure::Statement(told) => told,
        other => panic!("{other:?}"),
    };
    let statement = session.prepare("SELECT $1::bool").await.unwrap();
    let seven = Value::from(7);
    let misfit = own(session.query(&statement, &[&Parameter(&seven)]).await.unwrap_err());
    assert_eq!(misfit.kind, Kind::Type);
    assert!(
        misfit.message.contains("the integer 7 cannot be of type bool"),
        "{}",
        misfit.message
    );
    let column = session.prepare("SELECT $1::bool[]").await.unwrap();
    let misfit = own(session
        .query(&column, &[&Column::new([&seven].into_iter())])
        .await
        .unwrap_err());
    assert_eq!(misfit.kind, Kind::Type);
    // Of the slice's length; the client panics or errs by its version, the call below errs.
    let none: [&(dyn ToSql + Sync); 0] = [];
    let count = own(session.execute(&statement, &none).await.unwrap_err());
    assert_eq!(count.kind, Kind::ParameterCount);
    let text = own(session.batch_execute("SELECT '\0'").await.unwrap_err());
    assert_eq!(text.kind, Kind::Text);
    // The connection is as it was.
    session.batch_execute("SELECT 1").await.unwrap();
}
