//! An error means no effect, also where SQLite itself would keep what a statement had done before it failed.

use forebay_write::{StatementErrorKind as Kind, Write, WriteError, Writer};
use rusqlite::functions::FunctionFlags;

use crate::{Database, assert_ok, kind, together_plainly};

/// `bad` between two good ones, twice: the second time the Writer may know the statement already. Nothing of it stays.
async fn leaves_nothing(schema: &str, bad: &'static str, expected: Kind) {
    let database = Database::new(&format!(
        "CREATE TABLE good (at INTEGER PRIMARY KEY AUTOINCREMENT); {schema}"
    ));
    let tables = database
        .read("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('good', 'sqlite_sequence')");
    let contents = || -> Vec<Vec<String>> {
        tables
            .iter()
            .map(|table| database.read(&format!("SELECT * FROM {table}")))
            .collect()
    };
    let before = contents();
    let open = || {
        database.open_with(|connection| {
            connection.create_scalar_function("fails", 0, FunctionFlags::SQLITE_UTF8, |_| {
                Err::<i64, _>(rusqlite::Error::UserFunctionError("as asked".into()))
            })?;
            connection.create_scalar_function("panics", 0, FunctionFlags::SQLITE_UTF8, |_| -> rusqlite::Result<i64> {
                std::panic::panic_any("as asked")
            })
        })
    };
    let sqlite = open();
    for round in 1..=2 {
        let good = "INSERT INTO good DEFAULT VALUES";
        let answers = together_plainly(&sqlite, &[good, bad, good]).await;
        assert_eq!(kind(&answers[1]), expected, "{bad}");
        assert_ok(&answers[0]);
        assert_ok(&answers[2]);
        assert_eq!(contents(), before, "{bad} left something");
        let commits = database.take_commits();
        assert!(
            round == 1 || commits == 1,
            "{bad}: known, and yet it cost {commits} commits"
        );
    }
    assert_eq!(
        database.read("SELECT count(*), max(at) FROM good"),
        ["4|4"],
        "{bad} took a neighbour along"
    );

    // The same promise where nothing can be run again: in a transaction of the caller's own.
    // Opened anew, so that nothing is known of the statement yet.
    drop(sqlite);
    let writer = Writer::new(open());
    let mut own = writer.begin().await.unwrap();
    own.execute("INSERT INTO good DEFAULT VALUES", ()).await.unwrap();
    let answer = own.execute(bad, ()).await;
    assert_eq!(kind(&answer), expected, "{bad}");
    assert!(!own.is_lost(), "{bad}");
    own.commit().await.unwrap();
    assert_eq!(contents(), before, "{bad} left something in its transaction");
    assert_eq!(database.read("SELECT max(at) FROM good"), ["5"]);
}

#[tokio::test]
async fn a_constraint_at_a_later_row() {
    let t =
        "CREATE TABLE t (n UNIQUE, v NOT NULL DEFAULT 0, w CHECK (w < 9)); INSERT INTO t VALUES (1, 1, 1), (2, 2, 2)";
    leaves_nothing(t, "INSERT INTO t (n) VALUES (7), (8), (2)", Kind::Unique).await;
    leaves_nothing(t, "UPDATE t SET n = 7", Kind::Unique).await;
    leaves_nothing(t, "UPDATE t SET w = w + 7", Kind::Check).await;
    let upsert = "INSERT INTO t (n) VALUES (7), (1) ON CONFLICT (n) DO UPDATE SET v = NULL";
    leaves_nothing(t, upsert, Kind::NotNull).await;
    leaves_nothing(
        t,
        "REPLACE INTO t (n, v) VALUES (1, 5), (2, 5), (3, x'') RETURNING CAST(x'ff' AS TEXT)",
        Kind::Type,
    )
    .await;
    let text_key = "CREATE TABLE t (k TEXT PRIMARY KEY, n) WITHOUT ROWID; INSERT INTO t VALUES ('b', 1)";
    leaves_nothing(text_key, "INSERT INTO t VALUES ('a', 1), ('b', 1)", Kind::Unique).await;
    let indexed = "CREATE TABLE t (n); CREATE INDEX i ON t (abs(n))";
    leaves_nothing(indexed, "INSERT INTO t VALUES (1), (-9223372036854775808)", Kind::Text).await;
    let searched = "CREATE VIRTUAL TABLE t USING fts5 (a)";
    leaves_nothing(
        searched,
        "INSERT INTO t (rowid, a) VALUES (1, 'x'), (1, 'y')",
        Kind::Unique,
    )
    .await;
}

#[tokio::test]
async fn a_foreign_key_at_a_later_row() {
    for action in ["", "ON DELETE RESTRICT", "ON DELETE SET DEFAULT"] {
        let schema = format!(
            "CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (p DEFAULT 77 REFERENCES p {action});
             INSERT INTO p VALUES (1), (2), (3); INSERT INTO c VALUES (2)"
        );
        leaves_nothing(&schema, "DELETE FROM p", Kind::ForeignKey).await;
        leaves_nothing(&schema, "DELETE FROM p WHERE id < 3", Kind::ForeignKey).await;
        leaves_nothing(&schema, "UPDATE p SET id = id + 10", Kind::ForeignKey).await;
        leaves_nothing(&schema, "INSERT INTO c VALUES (1), (9)", Kind::ForeignKey).await;
        leaves_nothing(&schema, "UPDATE c SET p = 9", Kind::ForeignKey).await;
    }
    let cascade = "CREATE TABLE p (id INTEGER PRIMARY KEY);
        CREATE TABLE c (p NOT NULL REFERENCES p ON DELETE SET NULL ON UPDATE CASCADE CHECK (p < 9));
        INSERT INTO p VALUES (1), (2); INSERT INTO c VALUES (2)";
    leaves_nothing(cascade, "DELETE FROM p", Kind::NotNull).await;
    leaves_nothing(cascade, "UPDATE p SET id = id + 7", Kind::Check).await;
}

#[tokio::test]
async fn on_conflict_fail_in_the_statement() {
    let schema = "CREATE TABLE t (n UNIQUE)";
    leaves_nothing(schema, "INSERT OR FAIL INTO t VALUES (1), (2), (1)", Kind::Unique).await;
    let filled = "CREATE TABLE t (n UNIQUE); INSERT INTO t VALUES (1), (2), (3), (5)";
    leaves_nothing(
        filled,
        "UPDATE OR FAIL t SET n = CASE n WHEN 3 THEN 5 ELSE n + 100 END",
        Kind::Unique,
    )
    .await;
}

#[tokio::test]
async fn on_conflict_fail_in_the_table() {
    leaves_nothing(
        "CREATE TABLE t (n UNIQUE ON CONFLICT FAIL)",
        "INSERT INTO t VALUES (1), (1)",
        Kind::Unique,
    )
    .await;
    leaves_nothing(
        "CREATE TABLE t (n NOT NULL ON CONFLICT FAIL)",
        "INSERT INTO t VALUES (1), (NULL)",
        Kind::NotNull,
    )
    .await;
    leaves_nothing(
        "CREATE TABLE t (n PRIMARY KEY ON CONFLICT FAIL) WITHOUT ROWID",
        "INSERT INTO t VALUES (1), (1)",
        Kind::Unique,
    )
    .await;
}

#[tokio::test]
async fn raise_fail_in_a_trigger() {
    let trigger = "CREATE TABLE t (n);
        CREATE TRIGGER guard AFTER INSERT ON t WHEN NEW.n = 2 BEGIN SELECT RAISE(FAIL, 'no'); END";
    leaves_nothing(trigger, "INSERT INTO t VALUES (1), (2)", Kind::OtherConstraint).await;
    let nested = "CREATE TABLE t (n); CREATE TABLE u (n UNIQUE);
        CREATE TRIGGER copy AFTER INSERT ON t BEGIN INSERT OR FAIL INTO u VALUES (NEW.n); END";
    leaves_nothing(nested, "INSERT INTO t VALUES (1), (1)", Kind::Unique).await;
}

#[tokio::test]
async fn a_type_error_in_the_second_row_of_a_strict_table() {
    leaves_nothing(
        "CREATE TABLE t (n INTEGER) STRICT",
        "INSERT INTO t VALUES (1), ('x')",
        Kind::Type,
    )
    .await;
    leaves_nothing(
        "CREATE TABLE t (n INTEGER) STRICT",
        "INSERT OR IGNORE INTO t VALUES (1), ('x')",
        Kind::Type,
    )
    .await;
    leaves_nothing(
        "CREATE TABLE t (n INTEGER) STRICT; INSERT INTO t VALUES (1), (2)",
        "UPDATE t SET n = CASE n WHEN 1 THEN 5 ELSE 'x' END",
        Kind::Type,
    )
    .await;
}

#[tokio::test]
async fn an_error_that_sqlite_did_not_foresee() {
    let sums = "CREATE TABLE t (n); CREATE TABLE s (g, v);
        INSERT INTO s VALUES (1, 1), (2, 9223372036854775807), (2, 1), (3, 1)";
    leaves_nothing(sums, "INSERT INTO t SELECT sum(v) FROM s GROUP BY g", Kind::Text).await;
    let chain = "CREATE TABLE p (id INTEGER PRIMARY KEY, up REFERENCES p ON DELETE CASCADE);
        INSERT INTO p VALUES (1, NULL);
        INSERT INTO p WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 1500) SELECT i, i - 1 FROM n;
        CREATE INDEX ups ON p (up)";
    leaves_nothing(chain, "DELETE FROM p WHERE id = 1", Kind::Text).await;
    let mismatch = "CREATE TABLE t (id INTEGER PRIMARY KEY)";
    leaves_nothing(mismatch, "INSERT OR REPLACE INTO t VALUES (1), ('x')", Kind::Type).await;
}

#[tokio::test]
async fn a_function_of_the_users_own_that_fails_or_panics() {
    let schema = "CREATE TABLE t (n); INSERT INTO t VALUES (1), (2)";
    leaves_nothing(
        schema,
        "UPDATE t SET n = CASE n WHEN 2 THEN fails() ELSE 7 END",
        Kind::Text,
    )
    .await;
    leaves_nothing(
        schema,
        "UPDATE t SET n = CASE n WHEN 2 THEN panics() ELSE 7 END",
        Kind::Text,
    )
    .await;
    leaves_nothing(
        schema,
        "INSERT INTO t SELECT CASE n WHEN 2 THEN fails() ELSE 7 END FROM t",
        Kind::Text,
    )
    .await;
}

#[tokio::test]
async fn rows_returned_that_are_too_many_or_no_text() {
    let schema = "CREATE TABLE t (n)";
    leaves_nothing(
        schema,
        "INSERT INTO t VALUES (1), (CAST(x'ff' AS TEXT)) RETURNING n",
        Kind::Type,
    )
    .await;

    let database = Database::new("CREATE TABLE t (n UNIQUE)");
    let sqlite = database.builder(|_| Ok(())).max_rows_bytes(10_000).open().unwrap();
    let large = "INSERT INTO t VALUES (randomblob(4000)), (randomblob(4000)), (randomblob(4000)) RETURNING n";
    for _ in 0..2 {
        let answers = together_plainly(
            &sqlite,
            &[
                "INSERT INTO t VALUES (random())",
                large,
                "INSERT INTO t VALUES (random())",
            ],
        )
        .await;
        assert_eq!(kind(&answers[1]), Kind::TooLarge);
        assert_ok(&answers[0]);
        assert_ok(&answers[2]);
    }
    assert_eq!(database.read("SELECT count(*), sum(length(n) = 4000) FROM t"), ["4|0"]);
    let answers = together_plainly(&sqlite, &["INSERT INTO t VALUES (randomblob(4000)) RETURNING n"]).await;
    assert_ok(&answers[0]);

    let writer = Writer::new(sqlite);
    let mut own = writer.begin().await.unwrap();
    let answer = own.execute(large, ()).await;
    assert_eq!(kind(&answer), Kind::TooLarge);
    own.commit().await.unwrap();
    assert_eq!(database.read("SELECT count(*) FROM t"), ["5"]);
}

#[tokio::test]
async fn a_foreign_key_left_open_fails_where_it_was_left_open() {
    let database = Database::new(
        "CREATE TABLE p (id INTEGER PRIMARY KEY);
         CREATE TABLE c (at INTEGER PRIMARY KEY, p REFERENCES p DEFERRABLE INITIALLY DEFERRED);",
    );
    // The parent comes too late: alone, the first would have been refused; what follows must not heal it.
    let answers = together_plainly(
        &database.open(),
        &[
            "INSERT INTO p VALUES (1)",
            "INSERT INTO c (p) VALUES (2)",
            "INSERT INTO p VALUES (2)",
            "INSERT INTO c (p) VALUES (2)",
            "DELETE FROM p WHERE id = 2",
            "INSERT INTO c (p) VALUES (1)",
        ],
    )
    .await;
    let failed: Vec<usize> = (0..6).filter(|index| answers[*index].is_err()).collect();
    assert_eq!(failed, [1, 4]);
    assert_eq!(
        (kind(&answers[1]), kind(&answers[4])),
        (Kind::ForeignKey, Kind::ForeignKey)
    );
    assert_eq!(database.read("SELECT p FROM c ORDER BY at"), ["2", "1"]);
    assert_eq!(database.read("SELECT id FROM p"), ["1", "2"]);
}

#[tokio::test]
async fn a_statement_that_cannot_be_bound_changes_nothing() {
    let database = Database::new("CREATE TABLE t (n)");
    let sqlite = database.open_with(|connection| {
        connection
            .set_limit(rusqlite::limits::Limit::SQLITE_LIMIT_LENGTH, 10_000)
            .map(|_| ())
    });
    let insert = |bytes: usize| Write::new("INSERT INTO t VALUES (?1)", [vec![7_u8; bytes]]);
    let answers = crate::together(&sqlite, vec![insert(10), insert(20_000), insert(30)]).await;
    assert_eq!(kind(&answers[1]), Kind::TooLarge);
    assert_eq!(database.take_commits(), 1);
    assert_eq!(database.read("SELECT length(n) FROM t"), ["10", "30"]);
    assert!(!matches!(answers[1], Err(WriteError::Internal { .. })));
}
