//! Statements that cannot live in a shared transaction run alone, in their turn; those that would change what callers
//! share are refused, with a hint.

use forebay_write::{ReadError, WriteError, Writer};

use crate::{Database, assert_ok, together_plainly};

#[tokio::test]
async fn what_commits_by_itself_runs_alone_and_in_its_turn() {
    let database = Database::new("CREATE TABLE t (at INT AUTO_INCREMENT PRIMARY KEY, n INT)").await;
    let answers = together_plainly(
        &database.open().await,
        &[
            "INSERT INTO t (n) VALUES (1)",
            "ALTER TABLE t ADD COLUMN m INT DEFAULT 5",
            "INSERT INTO t (n) VALUES (2)",
            "CREATE TABLE u (a INT)",
            "INSERT INTO u VALUES (1)",
            "TRUNCATE TABLE t",
            "INSERT INTO t (n) VALUES (3)",
        ],
    )
    .await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(database.read("SELECT * FROM t").await, ["1|3|5"]);
    assert_eq!(database.read("SELECT * FROM u").await, ["1"]);
}

#[tokio::test]
async fn one_that_fails_alone_fails_alone() {
    let database = Database::new("CREATE TABLE t (n INT)").await;
    let answers = together_plainly(
        &database.open().await,
        &[
            "INSERT INTO t VALUES (1)",
            "DROP TABLE nowhere",
            "INSERT INTO t VALUES (2)",
        ],
    )
    .await;
    assert_ok(&answers[0]);
    assert!(answers[1].is_err());
    assert_ok(&answers[2]);
    assert_eq!(database.read("SELECT n FROM t ORDER BY n").await, ["1", "2"]);
}

#[tokio::test]
async fn a_procedure_runs_alone_whatever_it_commits_or_leaves_open() {
    let database = Database::new(
        "CREATE TABLE t (n INT);
         CREATE PROCEDURE commits() BEGIN INSERT INTO t VALUES (10); COMMIT; INSERT INTO t VALUES (11); END;
         CREATE PROCEDURE rolls_back() BEGIN START TRANSACTION; INSERT INTO t VALUES (20); ROLLBACK; END;
         CREATE PROCEDURE leaves_open() BEGIN START TRANSACTION; INSERT INTO t VALUES (30); END",
    )
    .await;
    let answers = together_plainly(
        &database.open().await,
        &[
            "INSERT INTO t VALUES (1)",
            "CALL commits()",
            "INSERT INTO t VALUES (2)",
            "CALL rolls_back()",
            "INSERT INTO t VALUES (3)",
            "CALL leaves_open()",
            "INSERT INTO t VALUES (4)",
        ],
    )
    .await;
    assert!(
        matches!(answers[5], Err(WriteError::OutcomeUnknown { .. })),
        "{answers:?}"
    );
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 6, "{answers:?}");
    assert_eq!(
        database.read("SELECT n FROM t ORDER BY n").await,
        ["1", "2", "3", "4", "10", "11"]
    );
}

#[tokio::test]
async fn what_one_leaves_in_its_session_the_next_does_not_find() {
    let database = Database::new(
        "CREATE TABLE t (v VARCHAR(40));
         CREATE PROCEDURE changes() SET SESSION sql_mode = '', @mine = 1",
    )
    .await;
    let writer = Writer::builder()
        .max_in_flight(1)
        .build(database.builder().max_connections(1).connect().await.unwrap());
    writer.execute("CALL changes()", ()).await.unwrap();
    writer.execute("SELECT 'x' INTO @yours", ()).await.unwrap();
    writer
        .execute(
            "INSERT INTO t SELECT CONCAT(@@sql_mode <> '', @mine IS NULL, @yours IS NULL, @@time_zone)",
            (),
        )
        .await
        .unwrap();
    assert_eq!(database.read("SELECT v FROM t").await, ["111+00:00"]);
}

#[tokio::test]
async fn what_would_change_a_shared_connection_is_refused() {
    let database = Database::new("CREATE TABLE t (n INT)").await;
    let mysql = database.open().await;
    for sql in [
        "BEGIN",
        "START TRANSACTION",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT a",
        "SET autocommit = 0",
        "SET @a = 1",
        "USE mysql",
        "LOCK TABLES t WRITE",
        "CREATE TEMPORARY TABLE x (a INT)",
        "PREPARE s FROM 'SELECT 1'",
        "INSERT INTO t VALUES (LAST_INSERT_ID())",
        "INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)",
        "",
    ] {
        let answers = together_plainly(&mysql, &["INSERT INTO t VALUES (5)", sql, "INSERT INTO t VALUES (6)"]).await;
        assert_ok(&answers[0]);
        assert!(
            matches!(answers[1], Err(WriteError::Refused { .. })),
            "{sql}: {answers:?}"
        );
        assert_ok(&answers[2]);
    }
    assert_eq!(database.read("SELECT DISTINCT n FROM t ORDER BY n").await, ["5", "6"]);
}

#[tokio::test]
async fn a_query_reads_and_nothing_else() {
    let database = Database::new("CREATE TABLE t (n INT); INSERT INTO t VALUES (5)").await;
    let mysql = database.open().await;
    let outcome = mysql.query("SELECT n FROM t WHERE n = ?", [5]).await.unwrap();
    assert_eq!((outcome.rows.len(), outcome.rows_affected), (1, 0));
    for sql in ["DELETE FROM t", "INSERT INTO t VALUES (1)", "DROP TABLE t", "CALL p()"] {
        let refused = mysql.query(sql, ()).await;
        assert!(matches!(refused, Err(ReadError::Refused { .. })), "{sql}: {refused:?}");
    }
    assert_eq!(database.read("SELECT n FROM t").await, ["5"]);
}

/// Variables are a session's, and a session is shared: nobody sees what his neighbours have put there, or what they were told.
#[tokio::test(flavor = "multi_thread")]
async fn variables_are_not_seen_by_neighbours() {
    let database = Database::new("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n INT)").await;
    let mysql = database.open().await;
    let statements = [
        "INSERT INTO t (n) VALUES (1)",
        "INSERT INTO t (n) VALUES (@a := 5)",
        "INSERT INTO t (n) VALUES (@a)",
        "INSERT INTO t (n) VALUES (2)",
        "SELECT @@last_insert_id",
        "SELECT @@SESSION . identity",
        "SELECT @@warning_count",
    ];
    let answers = together_plainly(&mysql, &statements).await;
    for answer in &answers[..4] {
        assert_ok(answer);
    }
    for answer in &answers[4..] {
        assert!(matches!(answer, Err(WriteError::Refused { .. })), "{answer:?}");
    }
    let read = database.read("SELECT n FROM t ORDER BY id").await;
    assert_eq!(read, ["1", "5", "NULL", "2"]);
}
