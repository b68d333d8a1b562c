//! Whose an error is, and what it says.

use std::sync::Arc;

use forebay_write::StatementErrorKind as Kind;

use super::*;

/// The kind of the statement's error; whether it is the whole fetch's.
fn kind<V: std::fmt::Debug>(outcome: &Result<Option<V>, LoadError<ReadError>>) -> (Kind, bool) {
    let (error, is_of_all): (&Arc<ReadError>, bool) = match outcome {
        Err(LoadError::Key(error)) => (error, false),
        Err(LoadError::Fetch(error)) => (error, true),
        other => panic!("{other:?}"),
    };
    match &**error {
        ReadError::Statement(error) => (error.kind, is_of_all),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_error_of_one_key_is_that_keys() {
    let database = &Database::new("CREATE TABLE t (u uuid, i int); INSERT INTO t VALUES (NULL, 1)").await;
    let keys: Vec<i64> = (0..600).collect();
    let outcomes = load::<i64, i64>(database, "SELECT 100 / ($1::int % 7 - 5)", keys).await;
    for (key, outcome) in outcomes.iter().enumerate() {
        match key as i64 % 7 - 5 {
            0 => assert_eq!(kind(outcome), (Kind::Type, false)),
            divisor => assert_eq!(*outcome.as_ref().unwrap(), Some(100 / divisor)),
        }
    }
    // What the server does not read as the column's type, and what is known not to fit without asking.
    let keys = vec!["nonsense".to_owned(), "00000000-0000-0000-0000-000000000000".to_owned()];
    let outcomes = load::<String, i64>(database, "SELECT i FROM t WHERE u = $1", keys).await;
    assert_eq!(kind(&outcomes[0]), (Kind::Type, false));
    assert_eq!(*outcomes[1].as_ref().unwrap(), None);
    let outcomes = load::<i64, i64>(database, "SELECT i FROM t WHERE i = ANY($1)", vec![1 << 40, 1, 1 << 50]).await;
    assert_eq!(kind(&outcomes[0]), (Kind::Type, false));
    assert_eq!(*outcomes[1].as_ref().unwrap(), Some(1));
    assert_eq!(kind(&outcomes[2]), (Kind::Type, false));
}

#[tokio::test]
async fn a_row_that_does_not_fit_is_its_keys_error_and_names_the_column() {
    let database = &Database::new("CREATE TABLE t (id int, name text); INSERT INTO t VALUES (1, 'a'), (2, NULL)").await;
    let outcomes = load::<i64, (i64, String)>(database, "SELECT id, name FROM t WHERE id = $1", vec![1, 2]).await;
    assert_eq!(*outcomes[0].as_ref().unwrap(), Some((1, "a".to_owned())));
    let Err(LoadError::Key(error)) = &outcomes[1] else {
        panic!("{outcomes:?}");
    };
    assert!(error.to_string().contains("column name"), "{error}");
}

#[tokio::test]
async fn an_error_of_the_text_is_the_whole_fetchs() {
    let database =
        &Database::new("CREATE TABLE t (id int); CREATE TYPE mood AS ENUM ('happy'); CREATE TABLE r (r point)").await;
    for (sql, expected) in [
        ("SELECT id FROM absent WHERE id = $1", Kind::Text),
        ("SELEC id", Kind::Text),
        ("SELECT id FROM t", Kind::ParameterCount),
        ("SELECT id FROM t WHERE id = $1 AND id = $2", Kind::ParameterCount),
        ("SELECT r FROM r WHERE $1::int = 1", Kind::Type),
        ("INSERT INTO t VALUES ($1) RETURNING id", Kind::ReadOnly),
        (
            "WITH x AS (DELETE FROM t WHERE id = $1 RETURNING id) SELECT id FROM x",
            Kind::ReadOnly,
        ),
        ("SELECT id FROM t WHERE id = $1 FOR UPDATE", Kind::ReadOnly),
    ] {
        for keys in [vec![1], vec![1, 2]] {
            for outcome in load::<i64, i64>(database, sql, keys).await {
                assert_eq!(kind(&outcome), (expected, true), "{sql}");
            }
        }
    }
    for sql in [
        "SELECT id FROM t WHERE id = $1; SELECT 1",
        "SET search_path = x",
        "VACUUM",
        "COMMIT",
        "",
    ] {
        for outcome in load::<i64, i64>(database, sql, vec![1, 2]).await {
            let Err(LoadError::Fetch(error)) = &outcome else {
                panic!("{sql}: {outcome:?}");
            };
            assert!(matches!(**error, ReadError::Refused { .. }), "{error:?}");
        }
    }
}

#[tokio::test]
async fn a_table_that_changes_is_read_as_it_is_now() {
    let database = &Database::new("CREATE TABLE t (id int, name text); INSERT INTO t VALUES (1, 'a'), (2, 'b')").await;
    let loader: Loader<i64, serde_json::Value, ReadError> =
        database.postgres.loader("SELECT * FROM t WHERE id = ANY($1)");
    let both = async || -> Vec<_> { loader.load_many([1, 2]).await };
    assert_eq!(both().await[1].as_ref().unwrap().as_ref().unwrap()["name"], "b");
    database.say("ALTER TABLE t ADD COLUMN more int DEFAULT 7").await;
    for _ in 0..2 {
        assert_eq!(both().await[0].as_ref().unwrap().as_ref().unwrap()["more"], 7);
        assert_eq!(loader.load(1).await.unwrap().unwrap()["more"], 7);
    }
    database.say("ALTER TABLE t ALTER COLUMN id TYPE bigint").await;
    assert_eq!(both().await[0].as_ref().unwrap().as_ref().unwrap()["id"], 1);
    database.say("DROP TABLE t").await;
    for _ in 0..2 {
        for outcome in both().await {
            assert_eq!(kind(&outcome), (Kind::Text, true));
        }
    }
    database
        .say("CREATE TABLE t (id int, other text); INSERT INTO t VALUES (2, 'c')")
        .await;
    let again = both().await;
    assert_eq!(*again[0].as_ref().unwrap(), None);
    assert_eq!(again[1].as_ref().unwrap().as_ref().unwrap()["other"], "c");
}
