//! Errors of the real server, and of the client.

use postgres_types::ToSql;

use super::{super::test_server::connection, *};
use crate::connection::Connection;
use crate::pipeline::Whose;
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
    let (mut session, _server) = connection().await;
    session.command(TABLES).await.unwrap();
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
        let told = match session.command(sql).await.unwrap_err() {
            Failure::Statement(told) => told,
            other => panic!("{sql}: {other:?}"),
        };
        assert_eq!(told.sqlstate.as_deref(), Some(state), "{sql}");
        assert_eq!(told.kind, kind, "{sql}");
        assert_eq!(told.constraint.as_deref(), constraint, "{sql}");
        assert_eq!(told.code, 0);
    }
}

#[tokio::test]
async fn the_message_has_the_detail_and_the_offset_is_in_bytes() {
    let (mut session, _server) = connection().await;
    session.command(TABLES).await.unwrap();
    let told = |failure: Failure| match failure {
        Failure::Statement(told) => told,
        other => panic!("{other:?}"),
    };
    let sql = "INSERT INTO things VALUES (1)";
    let unique = told(session.command(sql).await.unwrap_err());
    assert_eq!(
        unique.message,
        "duplicate key value violates unique constraint \"things_key\" (Key (id)=(1) already exists.)"
    );
    assert_eq!(unique.offset, None);
    // Characters of two, three and four bytes stand before it.
    let sql = "SELECT 'ä€😀', absent FROM things";
    let column = told(session.prepare(sql, &[]).await.err().unwrap());
    assert_eq!(column.offset, sql.find("absent"));
    let sql = "SELECT 'ä' +";
    let end = told(session.prepare(sql, &[]).await.err().unwrap());
    assert_eq!(end.offset, Some(sql.len()));
    // A text that the caller did not write.
    let sql = "DO $$ BEGIN EXECUTE 'SELEC 1'; END $$";
    let internal = told(session.command(sql).await.unwrap_err());
    assert_eq!(internal.kind, Kind::Text);
    assert_eq!(internal.offset, None);
    // A text shorter than the server's own.
    assert_eq!(byte_offset("a", 3), None);
    assert_eq!(byte_offset("a", 0), None);
}

#[tokio::test]
async fn what_cannot_run_in_a_transaction_runs_alone() {
    let (mut session, _server) = connection().await;
    session
        .command(
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
        session.command(&format!("BEGIN; {before}")).await.unwrap();
        let error = session.command(sql).await.unwrap_err();
        match error {
            Failure::Alone(told) => assert_eq!(told.sqlstate.as_deref(), Some(state)),
            other => panic!("{sql}: {other:?}"),
        }
        let next = session.command("SELECT 1").await.unwrap_err();
        assert!(matches!(next, Failure::Skipped(_)));
        session.command("ROLLBACK").await.unwrap();
    }
}

#[tokio::test]
async fn a_statement_whose_commit_fails_has_failed() {
    let (mut session, _server) = connection().await;
    session
        .command(
            "CREATE TEMP TABLE things (id int UNIQUE DEFERRABLE INITIALLY DEFERRED);
             CREATE FUNCTION pg_temp.ends() RETURNS trigger LANGUAGE plpgsql AS
                'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END';
             CREATE TEMP TABLE ending (id int);
             CREATE CONSTRAINT TRIGGER ends AFTER INSERT ON ending DEFERRABLE INITIALLY DEFERRED
                FOR EACH ROW EXECUTE FUNCTION pg_temp.ends()",
        )
        .await
        .unwrap();
    let insert = "INSERT INTO things VALUES ($1)";
    let prepared = session.prepare(insert, &[]).await;
    let prepared = prepared.unwrap_or_else(|_| panic!("it is prepared"));
    for is_new in [true, false] {
        let inserted = session.execute(Whose::Callers, &prepared, [7_i32], insert).await;
        match inserted {
            Ok(_) => assert!(is_new),
            Err(Failure::Statement(told)) => assert_eq!((is_new, told.sqlstate.as_deref()), (false, Some("23505"))),
            Err(other) => panic!("{other:?}"),
        }
    }
    // Those that commit together fail together.
    let answers = session
        .pipeline(|pipeline| {
            pipeline.together(|together| {
                for id in [8_i32, 7] {
                    together.execute(Whose::Callers, &prepared, [id]);
                }
            });
            pipeline.execute(Whose::Callers, &prepared, [9_i32]);
        })
        .await
        .unwrap();
    let kinds: Vec<bool> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(kinds, [false, false, true]);

    let insert = "INSERT INTO ending VALUES ($1)";
    let prepared = session.prepare(insert, &[]).await;
    let prepared = prepared.unwrap_or_else(|_| panic!("it is prepared"));
    let answers = session
        .pipeline(|pipeline| pipeline.execute(Whose::Callers, &prepared, [7_i32]))
        .await
        .unwrap();
    // It was executed, so nothing less can be said of it.
    assert!(
        matches!(&answers[..], [Err(Refusal::Lost(cause))] if cause.contains("57P01")),
        "{answers:?}"
    );
}

#[tokio::test]
async fn conflicts_and_locks_are_told_apart() {
    let ((mut one, _server), (mut other, _)) = (connection().await, connection().await);
    one.command("DROP TABLE IF EXISTS contended; CREATE TABLE contended (id int PRIMARY KEY, n int)")
        .await
        .unwrap();
    one.command("INSERT INTO contended VALUES (1, 0), (2, 0)")
        .await
        .unwrap();

    one.command("BEGIN; UPDATE contended SET n = 1 WHERE id = 1")
        .await
        .unwrap();
    let sql = "SET lock_timeout = '10ms'; UPDATE contended SET n = 2 WHERE id = 1";
    let error = other.command(sql).await.unwrap_err();
    assert!(matches!(error, Failure::Lock(told) if told.kind == Kind::LockTimeout));
    let sql = "SELECT 1 FROM contended WHERE id = 1 FOR UPDATE NOWAIT";
    let error = other.command(sql).await.unwrap_err();
    assert!(matches!(error, Failure::Lock(told) if told.kind == Kind::LockTimeout));
    for session in [&mut one, &mut other] {
        session.command("SET lock_timeout = 0").await.unwrap();
    }

    // Each waits for the other; the server ends one of them.
    other
        .command("BEGIN; UPDATE contended SET n = 2 WHERE id = 2")
        .await
        .unwrap();
    let (first, second) = tokio::join!(
        one.command("UPDATE contended SET n = 1 WHERE id = 2; COMMIT"),
        other.command("UPDATE contended SET n = 2 WHERE id = 1; COMMIT"),
    );
    let error = match (first, second) {
        (Err(error), Ok(())) | (Ok(()), Err(error)) => error,
        both => panic!("{both:?}"),
    };
    assert!(matches!(error, Failure::Conflict(told) if told.sqlstate.as_deref() == Some("40P01")));
    let _ = tokio::join!(one.command("ROLLBACK"), other.command("ROLLBACK"));

    one.command("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM contended")
        .await
        .unwrap();
    other.command("UPDATE contended SET n = 3").await.unwrap();
    let error = one.command("UPDATE contended SET n = 4").await.unwrap_err();
    assert!(matches!(error, Failure::Conflict(told) if told.kind == Kind::Conflict));
    one.command("ROLLBACK; DROP TABLE contended").await.unwrap();
}

#[tokio::test]
async fn a_plan_that_no_longer_holds_is_made_again() {
    let (mut session, _server) = connection().await;
    session.command("CREATE TEMP TABLE things (id int)").await.unwrap();
    let sql = "SELECT * FROM things";
    let statement = session
        .prepare(sql, &[])
        .await
        .unwrap_or_else(|_| panic!("it is prepared"));
    session.command("ALTER TABLE things ADD COLUMN more int").await.unwrap();
    let none = [0_i32; 0];
    let error = session
        .execute(Whose::Callers, &statement, none, sql)
        .await
        .unwrap_err();
    assert!(matches!(error, Failure::Replan(told) if told.sqlstate.as_deref() == Some("0A000")));
    session.forget(sql);
    let statement = session
        .prepare(sql, &[])
        .await
        .unwrap_or_else(|_| panic!("it is prepared"));
    session.command("DEALLOCATE ALL").await.unwrap();
    let error = session
        .execute(Whose::Callers, &statement, none, sql)
        .await
        .unwrap_err();
    assert!(matches!(error, Failure::Replan(told) if told.sqlstate.as_deref() == Some("26000")));
}

#[tokio::test]
async fn a_connection_that_ends_is_lost() {
    let (mut session, _server) = connection().await;
    let sql = "SELECT pg_terminate_backend(pg_backend_pid())";
    let error = session.command(sql).await.unwrap_err();
    assert!(matches!(error, Failure::Lost(cause) if cause.contains("57P01")));
    let error = session.command("SELECT 1").await.unwrap_err();
    assert!(matches!(error, Failure::Lost(_)));
}

#[tokio::test]
async fn what_the_client_refuses_is_the_statements_own() {
    let (mut session, _server) = connection().await;
    let own = |failure: Failure| match failure {
        Failure::Statement(told) => told,
        other => panic!("{other:?}"),
    };
    async fn told(session: &mut Connection, sql: &str, parameter: &(dyn ToSql + Sync)) -> Failure {
        let statement = session
            .prepare(sql, &[])
            .await
            .unwrap_or_else(|_| panic!("it is prepared"));
        let executed = session.execute(Whose::Callers, &statement, [parameter], sql).await;
        executed.expect_err("it is refused")
    }
    let seven = Value::from(7);
    let misfit = own(told(&mut session, "SELECT $1::bool", &Parameter(&seven)).await);
    assert_eq!(misfit.kind, Kind::Type);
    assert!(
        misfit.message.contains("the integer 7 cannot be of type bool"),
        "{}",
        misfit.message
    );
    let column = Column::new([&seven].into_iter());
    let misfit = own(told(&mut session, "SELECT $1::bool[]", &column).await);
    assert_eq!(misfit.kind, Kind::Type);
    let text = own(session.command("SELECT '\0'").await.unwrap_err());
    assert_eq!(text.kind, Kind::Text);
    // The connection is as it was.
    session.command("SELECT 1").await.unwrap();
}
