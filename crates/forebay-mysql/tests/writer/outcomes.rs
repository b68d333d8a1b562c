//! Counts, ids and rows are the caller's own, as the database told them: never a neighbour's, never guessed.

use forebay_write::{Value, Write, WriteError, Writer};

use crate::{Database, assert_ok, text, together, together_plainly};

const SCHEMA: &str = "
    CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, k VARCHAR(20) UNIQUE, n INT);
    CREATE TABLE keyed (k VARCHAR(20) PRIMARY KEY, n INT);
";

/// Statements, each with the rows and the id that its caller must be told: in one batch, and each by itself.
async fn tells(steps: &[(&'static str, u64, Option<i64>)]) {
    let statements: Vec<&str> = steps.iter().map(|step| step.0).collect();
    let batched = Database::new(SCHEMA).await;
    let answers = together_plainly(&batched.open().await, &statements).await;
    let alone = Database::new(SCHEMA).await;
    let writer = Writer::new(alone.open().await);
    for ((sql, rows, id), answer) in steps.iter().zip(&answers) {
        let outcome = assert_ok(answer);
        assert_eq!((outcome.rows_affected, outcome.last_insert_id), (*rows, *id), "{sql}");
        let outcome = writer.execute(*sql, ()).await.unwrap();
        assert_eq!(
            (outcome.rows_affected, outcome.last_insert_id),
            (*rows, *id),
            "alone: {sql}"
        );
    }
    let all = "SELECT k, n FROM t ORDER BY k";
    assert_eq!(batched.read(all).await, alone.read(all).await);
}

#[tokio::test]
async fn rows_affected_and_ids_are_the_statements_own() {
    tells(&[
        ("INSERT INTO t (k, n) VALUES ('a', 1), ('b', 2), ('c', 3)", 3, Some(1)),
        ("UPDATE t SET n = n + 1", 3, None),
        ("UPDATE t SET n = n", 0, None),
        ("UPDATE t SET n = 0 WHERE k = 'nobody'", 0, None),
        ("INSERT INTO t (id, k) VALUES (50, 'explicit')", 1, Some(50)),
        ("INSERT INTO t (k) VALUES ('d')", 1, Some(51)),
        ("INSERT INTO keyed VALUES ('x', 1)", 1, None),
        ("REPLACE INTO keyed VALUES ('x', 2)", 2, None),
        ("REPLACE INTO keyed VALUES ('y', 2)", 1, None),
        (
            "INSERT INTO keyed VALUES ('x', 9) ON DUPLICATE KEY UPDATE n = 9",
            2,
            None,
        ),
        (
            "INSERT INTO keyed VALUES ('x', 9) ON DUPLICATE KEY UPDATE n = 9",
            0,
            None,
        ),
        ("INSERT IGNORE INTO keyed VALUES ('x', 9), ('z', 9)", 1, None),
        ("DELETE FROM keyed WHERE k IN ('x', 'z')", 2, None),
        ("DELETE FROM keyed WHERE k = 'nobody'", 0, None),
        ("SELECT 1", 0, None),
    ])
    .await;
}

#[tokio::test]
async fn an_upsert_tells_the_id_that_it_would_tell_alone() {
    tells(&[
        ("INSERT INTO t (k, n) VALUES ('a', 1)", 1, Some(1)),
        ("INSERT INTO t (k, n) VALUES ('b', 1)", 1, Some(2)),
        (
            "INSERT INTO t (k, n) VALUES ('a', 1) ON DUPLICATE KEY UPDATE n = n + 1, id = LAST_INSERT_ID(id)",
            2,
            Some(1),
        ),
    ])
    .await;
}

#[tokio::test]
async fn returning_rows_are_the_callers_own() {
    let database = Database::new(SCHEMA).await;
    let answers = together_plainly(
        &database.open().await,
        &[
            "INSERT INTO t (k, n) VALUES ('a', 1), ('b', 2) RETURNING id, k",
            "INSERT INTO t (k, n) VALUES ('c', 3) RETURNING id",
            "SELECT k FROM t ORDER BY k",
            "DELETE FROM t WHERE n > 1 RETURNING k",
            "REPLACE INTO keyed VALUES ('x', 2) RETURNING n + 1 AS more",
        ],
    )
    .await;
    let first = assert_ok(&answers[0]);
    assert_eq!(first.columns, ["id", "k"]);
    assert_eq!(
        first.rows,
        [[Value::Integer(1), text("a")], [Value::Integer(2), text("b")]]
    );
    assert_eq!(first.rows_affected, 2);
    assert_eq!(assert_ok(&answers[1]).rows, [[Value::Integer(3)]]);
    assert_eq!(assert_ok(&answers[2]).rows, [[text("a")], [text("b")], [text("c")]]);
    assert_eq!(assert_ok(&answers[2]).rows_affected, 0);
    assert_eq!(assert_ok(&answers[3]).rows_affected, 2);
    assert_eq!(assert_ok(&answers[4]).columns, ["more"]);
}

#[tokio::test]
async fn what_was_ignored_is_not_counted_where_rows_are_returned() {
    let database = Database::new(SCHEMA).await;
    let answers = together_plainly(
        &database.open().await,
        &[
            "INSERT INTO keyed VALUES ('x', 1)",
            "INSERT IGNORE INTO keyed VALUES ('x', 9), ('y', 9) RETURNING k",
            "INSERT IGNORE INTO keyed VALUES ('x', 9) RETURNING k",
        ],
    )
    .await;
    assert_eq!(assert_ok(&answers[1]).rows_affected, 1, "{answers:?}");
    assert_eq!(assert_ok(&answers[2]).rows_affected, 0, "{answers:?}");
}

#[tokio::test]
async fn statements_run_in_the_order_of_their_arrival() {
    let database = Database::new("CREATE TABLE t (at INT AUTO_INCREMENT PRIMARY KEY, n INT)").await;
    let writes = (0..200).map(|n| {
        if n % 10 == 3 {
            Write::new("UPDATE t SET n = n WHERE n = ?", [n])
        } else {
            Write::new("INSERT INTO t (n) VALUES (?)", [n])
        }
    });
    let answers = together(&database.open().await, writes.collect()).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    let expected: Vec<String> = (0..200).filter(|n| n % 10 != 3).map(|n| n.to_string()).collect();
    assert_eq!(database.read("SELECT n FROM t ORDER BY at").await, expected);
}

#[tokio::test]
async fn an_outcome_that_is_not_accepted_is_undone_and_nothing_else() {
    let database = Database::new(SCHEMA).await;
    let mysql = database.open().await;
    let add = |k: &'static str| Write::new("INSERT INTO keyed (k, n) VALUES (?, 1)", [k]);
    let never = |_: &_| Err("not that".to_owned());
    let answers = together(
        &mysql,
        vec![
            add("before"),
            add("refused").accept_if(never),
            add("taken").accept_if(|outcome| {
                assert_eq!(outcome.rows_affected, 1);
                Ok(())
            }),
            add("after"),
        ],
    )
    .await;
    assert!(matches!(&answers[1], Err(WriteError::Refused { reason }) if reason == "not that"));
    for kept in [0, 2, 3] {
        assert_ok(&answers[kept]);
    }
    let alone = Writer::new(mysql).submit(add("alone").accept_if(never)).await;
    assert!(matches!(alone, Err(WriteError::Refused { .. })));
    assert_eq!(
        database.read("SELECT k FROM keyed ORDER BY k").await,
        ["after", "before", "taken"]
    );
}

#[tokio::test]
async fn rows_beyond_the_limit_are_an_error_without_effect() {
    let database = Database::new(SCHEMA).await;
    let mysql = database.builder().max_rows_bytes(2000).connect().await.unwrap();
    let answers = together_plainly(
        &mysql,
        &[
            "INSERT INTO keyed VALUES ('before', 1)",
            "INSERT INTO keyed VALUES ('x', 1) RETURNING REPEAT('x', 3000)",
            "INSERT INTO keyed VALUES ('after', 1)",
        ],
    )
    .await;
    assert_eq!(crate::kind(&answers[1]), forebay_write::StatementErrorKind::TooLarge);
    assert_eq!(
        database.read("SELECT k FROM keyed ORDER BY k").await,
        ["after", "before"]
    );
}

/// What people and their tools write before a statement.
const BEFORE: [&str; 6] = [
    "-- name: add\n",
    "# INSERT\n",
    "/* SELECT */ ",
    "/*+ hint */",
    "--\t;\n\n",
    "/* a */ # b\n-- c\n ",
];

#[tokio::test]
async fn comments_before_a_statement_change_nothing_of_its_outcome() {
    let database = Database::new(SCHEMA).await;
    let mysql = database.open().await;
    let mut transaction = Writer::new(mysql.clone()).begin().await.unwrap();
    for before in BEFORE {
        let shown = format!("{before}SHOW TABLES");
        assert!(transaction.execute(shown.clone(), ()).await.is_ok(), "{shown}");
        let refused = transaction.execute(format!("{before}CREATE TABLE x (n INT)"), ()).await;
        assert!(
            matches!(refused, Err(WriteError::Refused { .. })),
            "{before}: {refused:?}"
        );
    }
    transaction.rollback().await.unwrap();
    for (before, number) in BEFORE.into_iter().zip(0..) {
        let insert = format!("{before}INSERT /*!40000 IGNORE */ INTO keyed (k, n) VALUES (?, 1) RETURNING k");
        let alone = Writer::new(mysql.clone()).execute(insert.clone(), [number]).await;
        let alone = assert_ok(&alone).clone();
        assert_eq!((alone.rows_affected, alone.rows.len()), (1, 1), "{before}");
        let read = format!("{before}(SELECT k FROM keyed WHERE k = ?)");
        let shared = together(
            &mysql,
            vec![
                Write::new(insert.clone(), [number]),
                Write::new(insert.clone(), [number + 100]),
                Write::new(read.clone(), [number]),
            ],
        )
        .await;
        let counts: Vec<(u64, usize)> = shared
            .iter()
            .map(|answer| (assert_ok(answer).rows_affected, assert_ok(answer).rows.len()))
            .collect();
        assert_eq!(counts, [(0, 0), (1, 1), (0, 1)], "{before}");
    }
}

#[tokio::test]
async fn what_was_committed_and_returned_too_much_is_never_said_to_have_no_effect() {
    let database = Database::new(SCHEMA).await;
    let adds = "CREATE PROCEDURE adds() BEGIN INSERT INTO keyed VALUES ('p', 1); SELECT REPEAT('x', 3000); END";
    database.run(adds).await;
    let mysql = database.builder().max_rows_bytes(2000).connect().await.unwrap();
    let writer = Writer::new(mysql);
    for (before, number) in BEFORE.into_iter().zip(0..) {
        let insert = format!("{before}INSERT INTO keyed VALUES (?, 1) RETURNING REPEAT('x', 3000)");
        let answer = writer.execute(insert, [number]).await;
        assert!(
            matches!(answer, Err(WriteError::OutcomeUnknown { .. })),
            "{before}: {answer:?}"
        );
    }
    let answer = writer.execute("CALL adds()", ()).await;
    assert!(matches!(answer, Err(WriteError::OutcomeUnknown { .. })), "{answer:?}");
    let kept = database.read("SELECT k FROM keyed ORDER BY k").await;
    assert_eq!(kept, ["0", "1", "2", "3", "4", "5", "p"]);
}
