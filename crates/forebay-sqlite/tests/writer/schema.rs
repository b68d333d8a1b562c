//! What the Writer knows of a statement follows the schema: changed by a neighbour, by another connection, or changed and
//! rolled back.

use forebay_write::{StatementErrorKind as Kind, Value, Write, Writer};

use crate::{Database, assert_ok, kind, together, together_plainly};

const GUARD: &str = "CREATE TRIGGER guard AFTER INSERT ON t WHEN NEW.n = 13 BEGIN SELECT RAISE(FAIL, 'unlucky'); END";
const TWO: &str = "INSERT INTO t (n) VALUES (12), (13)";

#[tokio::test]
async fn a_neighbour_in_the_batch_may_change_the_schema() {
    let database = Database::new("CREATE TABLE t (n)");
    let answers = together_plainly(
        &database.open(),
        &[
            TWO,
            "CREATE TABLE u (n UNIQUE)",
            "INSERT INTO u VALUES (1)",
            GUARD,
            TWO,
            "DROP TRIGGER guard",
            TWO,
            "ALTER TABLE t ADD COLUMN more DEFAULT 'm'",
            "UPDATE t SET more = 'x' WHERE n = 12 RETURNING *",
            "DROP TABLE u",
            "INSERT INTO u VALUES (2)",
        ],
    )
    .await;
    let failed: Vec<usize> = (0..answers.len()).filter(|index| answers[*index].is_err()).collect();
    assert_eq!(failed, [4, 10]);
    assert_eq!(
        (kind(&answers[4]), kind(&answers[10])),
        (Kind::OtherConstraint, Kind::Text)
    );
    assert_eq!(assert_ok(&answers[8]).rows.len(), 2);
    assert_eq!(database.take_commits(), 1);
    assert_eq!(database.read("SELECT n, more FROM t"), ["12|x", "13|m", "12|x", "13|m"]);
}

#[tokio::test]
async fn another_connection_may_change_the_schema_between_batches() {
    let database = Database::new("CREATE TABLE t (n)");
    let sqlite = database.open();
    assert_ok(&together_plainly(&sqlite, &[TWO]).await[0]);
    database.plain().execute_batch(GUARD).unwrap();
    let answers = together_plainly(
        &sqlite,
        &["INSERT INTO t (n) VALUES (1)", TWO, "INSERT INTO t (n) VALUES (2)"],
    )
    .await;
    assert_eq!(kind(&answers[1]), Kind::OtherConstraint);
    assert_eq!(
        database.read("SELECT n FROM t"),
        ["12", "13", "1", "2"],
        "half of it stayed"
    );
    // The same in a transaction of the caller's own.
    database.plain().execute_batch("DROP TRIGGER guard").unwrap();
    assert_ok(&together_plainly(&sqlite, &[TWO]).await[0]);
    database.plain().execute_batch(GUARD).unwrap();
    let writer = Writer::new(sqlite);
    let mut own = writer.begin().await.unwrap();
    assert_eq!(kind(&own.execute(TWO, ()).await), Kind::OtherConstraint);
    own.commit().await.unwrap();
    assert_eq!(database.read("SELECT count(*) FROM t"), ["6"]);
}

#[tokio::test]
async fn returned_columns_follow_the_table() {
    let database = Database::new("CREATE TABLE t (a)");
    let sqlite = database.open();
    let all = "INSERT INTO t (a) VALUES (1) RETURNING *";
    let columns = async || {
        let answer = together_plainly(&sqlite, &[all]).await.remove(0).unwrap();
        assert_eq!(answer.rows[0].len(), answer.columns.len());
        answer.columns
    };
    assert_eq!(columns().await, ["a"]);
    database
        .plain()
        .execute_batch("ALTER TABLE t ADD COLUMN b DEFAULT 2")
        .unwrap();
    assert_eq!(columns().await, ["a", "b"]);
    database.plain().execute_batch("ALTER TABLE t DROP COLUMN b").unwrap();
    assert_eq!(columns().await, ["a"]);
    let answers = together_plainly(&sqlite, &[all, "ALTER TABLE t ADD COLUMN c", all]).await;
    assert_eq!(assert_ok(&answers[0]).columns, ["a"]);
    assert_eq!(assert_ok(&answers[2]).columns, ["a", "c"]);
    assert_eq!(database.read("SELECT count(*) FROM t"), ["5"]);
}

#[tokio::test]
async fn a_schema_change_that_was_rolled_back_is_forgotten() {
    let database = Database::new(&format!("CREATE TABLE t (n); {GUARD}"));
    let writer = Writer::new(database.open());
    // In its own transaction the statement is harmless, and is looked at there.
    let mut own = writer.begin().await.unwrap();
    own.execute("DROP TRIGGER guard", ()).await.unwrap();
    own.execute(TWO, ()).await.unwrap();
    own.rollback().await.unwrap();
    writer.execute(TWO, ()).await.unwrap_err();
    assert_eq!(database.read("SELECT n FROM t"), [""; 0], "half of it stayed");

    let mut own = writer.begin().await.unwrap();
    own.savepoint("before").await.unwrap();
    own.execute("DROP TRIGGER guard", ()).await.unwrap();
    own.execute(TWO, ()).await.unwrap();
    own.rollback_to("before").await.unwrap();
    own.execute(TWO, ()).await.unwrap_err();
    own.commit().await.unwrap();
    assert_eq!(database.read("SELECT n FROM t"), [""; 0], "half of it stayed");

    let mut own = writer.begin().await.unwrap();
    own.savepoint("before").await.unwrap();
    own.execute("DROP TRIGGER guard", ()).await.unwrap();
    own.execute(TWO, ()).await.unwrap();
    own.rollback_to("before").await.unwrap();
    own.commit().await.unwrap();
    writer.execute(TWO, ()).await.unwrap_err();
    assert_eq!(database.read("SELECT n FROM t"), [""; 0], "half of it stayed");
}

#[tokio::test]
async fn a_schema_change_that_the_database_rolled_back_is_forgotten() {
    let database = Database::new(&format!(
        "CREATE TABLE t (n); CREATE TABLE r (n UNIQUE ON CONFLICT ROLLBACK); {GUARD}"
    ));
    let writer = Writer::new(database.open());
    let mut own = writer.begin().await.unwrap();
    own.execute("DROP TRIGGER guard", ()).await.unwrap();
    own.execute(TWO, ()).await.unwrap();
    own.execute("INSERT INTO r VALUES (1), (1)", ()).await.unwrap_err();
    assert!(own.is_lost());
    drop(own);
    writer.execute(TWO, ()).await.unwrap_err();
    assert_eq!(database.read("SELECT n FROM t"), [""; 0], "half of it stayed");
}

#[tokio::test]
async fn a_schema_change_of_a_neighbour_that_was_run_again() {
    let database = Database::new("CREATE TABLE t (n); CREATE TABLE r (n UNIQUE ON CONFLICT ROLLBACK)");
    let roll_back = "INSERT INTO r VALUES (1), (1)";
    let answers = together_plainly(
        &database.open(),
        &[TWO, GUARD, TWO, roll_back, TWO, "DROP TRIGGER guard", TWO],
    )
    .await;
    let failed: Vec<usize> = (0..answers.len()).filter(|index| answers[*index].is_err()).collect();
    assert_eq!(failed, [2, 3, 4]);
    assert_eq!(database.read("SELECT n FROM t"), ["12", "13", "12", "13"]);
}

#[tokio::test]
async fn more_statements_than_the_cache_holds() {
    let database = Database::new("CREATE TABLE t (n UNIQUE)");
    let sqlite = database.builder(|_| Ok(())).statement_cache(4).open().unwrap();
    let texts: Vec<String> = (0..40)
        .map(|n| format!("INSERT OR FAIL INTO t VALUES (?1 + {n}), (?1 + {n})"))
        .collect();
    for _ in 0..2 {
        let writes = texts
            .iter()
            .map(|text| Write::new(text.clone(), [Value::Integer(1)]))
            .collect();
        for answer in together(&sqlite, writes).await {
            assert_eq!(kind(&answer), Kind::Unique);
        }
    }
    assert_eq!(database.read("SELECT count(*) FROM t"), ["0"]);
}
