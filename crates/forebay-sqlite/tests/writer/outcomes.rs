//! Counts, ids, rows and values are the caller's own, as the database told them: never a neighbour's, never guessed.

use forebay_write::{StatementErrorKind as Kind, Value, Write, WriteError, Writer};

use crate::{Database, assert_ok, integers, kind, together, together_plainly};

const SCHEMA: &str = "
    CREATE TABLE t (id INTEGER PRIMARY KEY, k TEXT UNIQUE, n INTEGER);
    CREATE TABLE log (id INTEGER PRIMARY KEY AUTOINCREMENT, what TEXT);
    INSERT INTO log VALUES (1000, 'old');
    CREATE TABLE keyed (k TEXT PRIMARY KEY, n) WITHOUT ROWID;
    CREATE TRIGGER logged AFTER INSERT ON t BEGIN
        INSERT INTO log (what) VALUES ('insert 1'), ('insert 2');
    END;
    CREATE TRIGGER changed AFTER UPDATE ON t BEGIN INSERT INTO log (what) VALUES ('update'); END;
    CREATE VIEW v AS SELECT k, n FROM t;
    CREATE TRIGGER through INSTEAD OF INSERT ON v BEGIN INSERT INTO t (k, n) VALUES (NEW.k, NEW.n); END;
    CREATE TABLE p (id INTEGER PRIMARY KEY);
    CREATE TABLE c (p REFERENCES p ON DELETE CASCADE);
    INSERT INTO p VALUES (1), (2);
    INSERT INTO c VALUES (1), (1), (2);
";

/// Statements of one batch, each with the rows and the id that its caller must be told.
async fn tells(steps: &[(&'static str, u64, Option<i64>)]) -> Database {
    let database = Database::new(SCHEMA);
    let statements: Vec<&str> = steps.iter().map(|step| step.0).collect();
    let answers = together_plainly(&database.open(), &statements).await;
    for ((sql, rows, id), answer) in steps.iter().zip(&answers) {
        let outcome = assert_ok(answer);
        assert_eq!((outcome.rows_affected, outcome.last_insert_id), (*rows, *id), "{sql}");
    }
    assert_eq!(database.take_commits(), 1);
    database
}

#[tokio::test]
async fn rows_affected_are_the_statements_own() {
    tells(&[
        ("INSERT INTO t (id, k, n) VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)", 3, Some(3)),
        ("INSERT OR IGNORE INTO t (k) VALUES ('a'), ('b')", 0, None),
        ("UPDATE t SET n = n + 1", 3, None),
        ("UPDATE t SET n = 0 WHERE k = 'nobody'", 0, None),
        ("INSERT INTO t (k, n) VALUES ('a', 9) ON CONFLICT (k) DO UPDATE SET n = excluded.n", 1, None),
        ("INSERT INTO t (k, n) VALUES ('a', 9) ON CONFLICT (k) DO NOTHING", 0, None),
        ("INSERT INTO t (k) VALUES ('a') ON CONFLICT (k) DO UPDATE SET n = 1 WHERE n > 100", 0, None),
        ("DELETE FROM t WHERE k = 'nobody'", 0, None),
        ("REPLACE INTO t (id, k, n) VALUES (7, 'a', 1)", 1, Some(7)),
        ("WITH few AS (SELECT id FROM t WHERE id < 4) DELETE FROM t WHERE id IN (SELECT id FROM few)", 2, None),
        ("WITH RECURSIVE x (i) AS (SELECT 20 UNION ALL SELECT i + 1 FROM x WHERE i < 29) INSERT INTO t (id) SELECT i FROM x", 10, Some(29)),
        ("SELECT count(*) FROM t", 0, None),
        ("CREATE TABLE u (id)", 0, None),
        ("INSERT INTO u SELECT id FROM t", 11, Some(11)),
        // The whole table at once, by the shortest way.
        ("DELETE FROM u", 11, None),
        ("DELETE FROM u", 0, None),
        ("ALTER TABLE u ADD COLUMN more", 0, None),
        ("CREATE TABLE w AS SELECT * FROM t", 0, None),
        ("CREATE INDEX i ON t (n)", 0, None),
        ("DROP TABLE u", 0, None),
        ("DELETE FROM p WHERE id = 1", 1, None),
        ("DELETE FROM c", 1, None),
        // Looks at every row of p for the sake of the foreign key, and counts them.
        ("DROP TABLE p", 0, None),
    ])
    .await;
}

#[tokio::test]
async fn ids_are_the_statements_own() {
    let database = tells(&[
        ("UPDATE t SET n = 1", 0, None),
        ("INSERT INTO t (id, k) VALUES (50, 'a')", 1, Some(50)),
        ("INSERT OR IGNORE INTO t (k) VALUES ('a')", 0, None),
        (
            "INSERT INTO t (k) VALUES ('a') ON CONFLICT (k) DO UPDATE SET n = 5",
            1,
            None,
        ),
        ("INSERT INTO keyed VALUES ('x', 1)", 1, None),
        ("UPDATE t SET n = 6", 1, None),
        ("DELETE FROM keyed", 1, None),
        (
            "INSERT INTO t (k) VALUES ('b'), ('a') ON CONFLICT (k) DO UPDATE SET n = 7",
            2,
            Some(51),
        ),
        ("INSERT INTO v (k, n) VALUES ('through', 1)", 0, None),
        ("INSERT INTO log (what) SELECT 'mine'", 1, Some(1009 + 1)),
        ("INSERT INTO t (id) VALUES (-5)", 1, Some(-5)),
    ])
    .await;
    assert_eq!(database.read("SELECT n FROM t WHERE k = 'a'"), ["7"]);
}

#[tokio::test]
async fn the_ids_of_a_batch_are_those_in_the_table() {
    let database = Database::new(SCHEMA);
    let insert = |n: i64| Write::new("INSERT INTO t (k, n) VALUES (?1, ?2)", (n.to_string(), n));
    let answers = together(&database.open(), (0..100).map(insert).collect()).await;
    for (n, answer) in answers.iter().enumerate() {
        let id = assert_ok(answer).last_insert_id.unwrap();
        assert_eq!(
            database.read(&format!("SELECT n FROM t WHERE id = {id}")),
            [n.to_string()]
        );
    }
}

#[tokio::test]
async fn returned_rows_are_the_callers_own() {
    let database = Database::new(SCHEMA);
    let insert = "INSERT INTO t (id, k) VALUES (?1, ?2), (?1 + 100, ?2 || '!') RETURNING id, k AS named";
    let writes = (1..=50_i64)
        .map(|id| Write::new(insert, (id, format!("k{id}"))))
        .collect();
    for (answer, id) in together(&database.open(), writes).await.iter().zip(1_i64..) {
        let outcome = assert_ok(answer);
        assert_eq!(outcome.columns, ["id", "named"]);
        let first = vec![Value::from(id), Value::from(format!("k{id}"))];
        let second = vec![Value::from(id + 100), Value::from(format!("k{id}!"))];
        assert_eq!(outcome.rows, [first, second]);
        assert_eq!((outcome.rows_affected, outcome.last_insert_id), (2, Some(id + 100)));
    }
    let answers = together_plainly(
        &database.open(),
        &[
            "UPDATE t SET n = 1 WHERE id <= 2 RETURNING id",
            "DELETE FROM t WHERE id > 148 RETURNING id",
            "DELETE FROM t WHERE id > 148 RETURNING id",
            "SELECT count(*) FROM t",
        ],
    )
    .await;
    let rows: Vec<_> = answers.iter().map(|answer| assert_ok(answer).rows.clone()).collect();
    assert_eq!(rows[0], [integers(&[1]), integers(&[2])]);
    assert_eq!(rows[1], [integers(&[149]), integers(&[150])]);
    assert!(rows[2].is_empty());
    assert_eq!(rows[3], [integers(&[98])]);
    assert_eq!(assert_ok(&answers[2]).columns, ["id"]);
}

#[tokio::test]
async fn parameters_go_by_their_numbers() {
    let database = Database::new("CREATE TABLE t (a, b, c)");
    let answers = together(
        &database.open(),
        vec![
            Write::new("INSERT INTO t VALUES ($2, $1, $2) RETURNING *", (1, 2)),
            Write::new("INSERT INTO t VALUES (?2, ?1, ?2) RETURNING *", (1, 2)),
            Write::new("INSERT INTO t VALUES (?, ?, ?) RETURNING *", (1, 2, 3)),
            Write::new("INSERT INTO t (a) VALUES (?2) RETURNING a, b, c", (1, 2)),
            Write::new("INSERT INTO t (a, b) VALUES ($3, $1) RETURNING a, b, c", (1, 2, 3)),
            Write::new("INSERT INTO t (a) VALUES ($1)", (1, 2)),
            Write::new("INSERT INTO t (a) VALUES ($4000000000)", [1]),
        ],
    )
    .await;
    let rows: Vec<Value> = answers[..3]
        .iter()
        .flat_map(|answer| assert_ok(answer).rows[0].clone())
        .collect();
    assert_eq!(rows, integers(&[2, 1, 2, 2, 1, 2, 1, 2, 3]));
    assert_eq!(assert_ok(&answers[3]).rows[0], [2.into(), Value::Null, Value::Null]);
    assert_eq!(assert_ok(&answers[4]).rows[0], [3.into(), 1.into(), Value::Null]);
    assert_eq!(kind(&answers[5]), Kind::ParameterCount);
    assert_eq!(kind(&answers[6]), Kind::ParameterCount);
    let named = together(
        &database.open(),
        vec![Write::new("INSERT INTO t (a) VALUES (:name)", [1])],
    )
    .await;
    assert!(
        matches!(&named[0], Err(WriteError::Refused { reason }) if reason.contains(":name")),
        "{named:?}"
    );
    assert_eq!(database.read("SELECT count(*) FROM t"), ["5"]);
}

#[tokio::test]
async fn a_parameter_of_before_is_not_bound_again() {
    let database = Database::new("CREATE TABLE t (a, b)");
    let sql = "INSERT INTO t VALUES (?1, ?2) RETURNING a, b";
    let writes = vec![
        Write::new(sql, ("a", "b")),
        Write::new(sql, (Value::Null, 1)),
        Write::new(sql, [Value::Null, Value::Null]),
    ];
    let answers = together(&database.open(), writes).await;
    let rows: Vec<_> = answers.iter().map(|answer| assert_ok(answer).rows[0].clone()).collect();
    assert_eq!(rows[1], [Value::Null, 1.into()]);
    assert_eq!(rows[2], [Value::Null, Value::Null]);
}

#[tokio::test]
async fn values_come_back_as_they_went() {
    let database = Database::new("CREATE TABLE t (v)");
    let values = [
        Value::Null,
        Value::Integer(i64::MIN),
        Value::Integer(i64::MAX),
        Value::Real(0.1),
        Value::Real(-0.0),
        Value::Real(f64::INFINITY),
        Value::Text(String::new()),
        Value::Text("zero\0 within, ü and 🜁".to_owned()),
        Value::Blob(Vec::new()),
        Value::Blob((0..=255).collect()),
        Value::Blob(vec![0xab; 3 << 20]),
        true.into(),
        Some(7_u8).into(),
        None::<i64>.into(),
    ];
    let writes = values
        .iter()
        .map(|value| Write::new("INSERT INTO t VALUES ($1) RETURNING v", [value.clone()]))
        .collect();
    for (answer, value) in together(&database.open(), writes).await.iter().zip(&values) {
        assert_eq!(assert_ok(answer).rows, [[value.clone()]]);
    }
    assert_eq!(database.take_commits(), 1);
    // SQL knows no such number; SQLite keeps NULL.
    let nan = together(
        &database.open(),
        vec![Write::new("INSERT INTO t VALUES ($1) RETURNING v", [f64::NAN])],
    )
    .await;
    assert_eq!(assert_ok(&nan[0]).rows, [[Value::Null]]);
}

#[tokio::test]
async fn a_commit_carries_no_more_bytes_than_its_limit() {
    let database = Database::new("CREATE TABLE t (v)");
    let writer = Writer::builder()
        .max_weight(100_000)
        .max_items(10)
        .max_wait(std::time::Duration::from_secs(600));
    let writer = writer.build(database.open());
    let insert = |bytes: usize| writer.execute("INSERT INTO t VALUES (?1)", [vec![1_u8; bytes]]);
    // 45 + 45, then 45, then a text of 60, then one that is too heavy for company; the last goes by drain.
    let text = format!("INSERT INTO t VALUES ('{}')", "x".repeat(60_000));
    let (a, b, c, d, e, f, ()) = tokio::join!(
        insert(45_000),
        insert(45_000),
        insert(45_000),
        writer.execute(text, ()),
        insert(150_000),
        insert(10),
        async { writer.drain().await },
    );
    for answer in [a, b, c, d, e, f] {
        assert_ok(&answer);
    }
    assert_eq!((writer.stats().batches, database.take_commits()), (5, 5));
}
