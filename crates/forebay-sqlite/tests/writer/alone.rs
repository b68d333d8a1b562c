//! Statements that cannot live in a shared transaction run alone, in their turn; those that would change what callers
//! share are refused, with a hint.

use forebay_write::{Value, Write, WriteError, Writer};

use crate::{Database, assert_ok, together_plainly};

#[tokio::test]
async fn what_cannot_share_runs_alone_and_in_its_turn() {
    let database =
        Database::new("CREATE TABLE t (at INTEGER PRIMARY KEY AUTOINCREMENT, n); INSERT INTO t (n) VALUES (0)");
    let sqlite = database.open();
    for alone in [
        "VACUUM",
        "PRAGMA wal_checkpoint",
        "PRAGMA wal_checkpoint(TRUNCATE)",
        "PRAGMA journal_mode",
        "PRAGMA incremental_vacuum(10)",
    ] {
        let seen = "SELECT max(at) FROM t";
        let good = "INSERT INTO t (n) VALUES (1)";
        let answers = together_plainly(&sqlite, &[seen, good, alone, seen, good]).await;
        let at = |index: usize| assert_ok(&answers[index]).rows[0][0].as_integer().unwrap();
        assert!(answers.iter().all(Result::is_ok), "{alone}: {answers:?}");
        assert_eq!(at(3), at(0) + 1, "{alone}");
        let last: i64 = database.read(seen)[0].parse().unwrap();
        assert_eq!(last, at(0) + 2, "{alone}");
    }
    assert_eq!(database.read("PRAGMA integrity_check"), ["ok"]);
}

#[tokio::test]
async fn what_runs_alone_does_its_work() {
    let database = Database::new("CREATE TABLE t (v); INSERT INTO t VALUES (zeroblob(400000)); DELETE FROM t");
    let pages = |rows: Vec<String>| rows[0].parse::<i64>().unwrap();
    let before = pages(database.read("PRAGMA page_count"));
    let answers = together_plainly(
        &database.open(),
        &[
            "PRAGMA user_version = 41",
            "VACUUM",
            "PRAGMA user_version",
            "PRAGMA user_version = 42",
            "PRAGMA wal_checkpoint(TRUNCATE)",
            "PRAGMA user_version",
        ],
    )
    .await;
    let version = |index: usize| assert_ok(&answers[index]).rows[0][0].clone();
    assert_eq!((version(2), version(5)), (Value::Integer(41), Value::Integer(42)));
    assert_eq!(assert_ok(&answers[4]).rows, [crate::integers(&[0, 0, 0])]);
    assert!(pages(database.read("PRAGMA page_count")) < before / 2);
    assert_eq!(database.read("PRAGMA user_version"), ["42"]);
}

#[tokio::test]
async fn one_that_fails_alone_fails_alone() {
    let database = Database::new("CREATE TABLE t (n)");
    let answers = together_plainly(
        &database.open(),
        &[
            "INSERT INTO t VALUES (1)",
            "VACUUM absent",
            "INSERT INTO t VALUES (2)",
            "VACUUM INTO '/no/such/folder/file'",
            "INSERT INTO t VALUES (3)",
        ],
    )
    .await;
    assert!(answers[1].is_err() && answers[3].is_err());
    assert_eq!(database.read("SELECT n FROM t"), ["1", "2", "3"]);
}

#[tokio::test]
async fn what_would_change_what_is_shared_is_refused_with_a_hint() {
    let database = Database::new("CREATE TABLE t (n)");
    let sqlite = database.open();
    let refused = [
        ("BEGIN", "Writer::begin"),
        ("BEGIN IMMEDIATE", "Writer::begin"),
        ("COMMIT", "Writer::begin"),
        ("END", "Writer::begin"),
        ("ROLLBACK", "Writer::begin"),
        ("SAVEPOINT s", "Writer::begin"),
        ("RELEASE forebay_statement", "Writer::begin"),
        ("ROLLBACK TO forebay_statement", "Writer::begin"),
        ("ATTACH ':memory:' AS other", "shared"),
        ("ATTACH ':mem' || 'ory:' AS other", "shared"),
        ("DETACH 'oth' || 'er'", "shared"),
        ("DETACH other", "shared"),
        ("CREATE TEMP TABLE x (n)", "ordinary table"),
        ("CREATE TABLE temp.x (n)", "ordinary table"),
        (
            "CREATE TEMP TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END",
            "ordinary table",
        ),
        ("PRAGMA foreign_keys = OFF", "foreign_keys"),
        ("PRAGMA defer_foreign_keys = ON", "defer_foreign_keys"),
        ("PRAGMA synchronous = OFF", "synchronous"),
        ("PRAGMA journal_mode = DELETE", "journal_mode"),
        ("PRAGMA recursive_triggers = ON", "recursive_triggers"),
        ("PRAGMA schema_version = 1", "schema_version"),
        ("SELECT load_extension('x')", "load_extension"),
        ("INSERT INTO t SELECT last_insert_rowid()", "RETURNING"),
        ("UPDATE t SET n = changes()", "outcome"),
    ];
    for (sql, hint) in refused {
        let good = "INSERT INTO t VALUES (1)";
        let answers = together_plainly(&sqlite, &[good, sql, good]).await;
        assert!(
            matches!(&answers[1], Err(WriteError::Refused { reason }) if reason.contains(hint)),
            "{sql}: {:?}",
            answers[1]
        );
        assert_eq!(database.take_commits(), 1, "{sql}");
    }
    assert_eq!(
        database.read("SELECT count(*) FROM t"),
        [(refused.len() * 2).to_string()]
    );
    assert_eq!(database.read("PRAGMA journal_mode"), ["wal"]);

    let writer = Writer::new(sqlite);
    let mut own = writer.begin().await.unwrap();
    for (sql, hint) in refused {
        let answer = own.execute(sql, ()).await;
        assert!(
            matches!(&answer, Err(WriteError::Refused { reason }) if reason.contains(hint)),
            "{sql}: {answer:?}"
        );
    }
    for sql in ["VACUUM", "PRAGMA wal_checkpoint"] {
        let answer = own.execute(sql, ()).await;
        assert!(matches!(&answer, Err(WriteError::Refused { .. })), "{sql}: {answer:?}");
    }
    own.commit().await.unwrap();
}

#[tokio::test]
async fn settings_of_the_connection_stay_as_they_were() {
    let database = Database::new("CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (p REFERENCES p)");
    let writer = Writer::new(database.open());
    writer.execute("PRAGMA foreign_keys = OFF", ()).await.unwrap_err();
    writer.execute("INSERT INTO c VALUES (1)", ()).await.unwrap_err();
    let synchronous = writer.submit(Write::new("PRAGMA synchronous", ())).await.unwrap();
    assert_eq!(synchronous.rows, [[Value::Integer(2)]], "FULL");
}
