//! Whose an error is, and what it says.

use std::sync::Arc;
use std::time::Duration;

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
    let database = &Database::new(
        "CREATE TABLE t (id int, n int); INSERT INTO t VALUES (1, 1), (2, 1), (2, 2), (3, 3);
         CREATE TABLE keyed (id int PRIMARY KEY); INSERT INTO keyed VALUES (1), (2), (3)",
    )
    .await;
    // One query for all, and its error is of one.
    let sql = "SELECT (SELECT n FROM t WHERE t.id = keyed.id) FROM keyed WHERE id = ?";
    // Each its own.
    let alone = "SELECT (SELECT n FROM t WHERE id = ?)";
    for sql in [sql, alone] {
        let outcomes = load::<i64, i64>(database, sql, vec![1, 2, 3]).await;
        assert_eq!(*outcomes[0].as_ref().unwrap(), Some(1));
        assert!(matches!(&outcomes[1], Err(LoadError::Key(_))), "{outcomes:?}");
        assert_eq!(*outcomes[2].as_ref().unwrap(), Some(3));
    }
    // What is known not to fit without asking.
    let outcomes = load::<Odd, i64>(
        database,
        "SELECT id FROM keyed WHERE id = ?",
        vec![Odd(0), Odd(1), Odd(2)],
    )
    .await;
    assert_eq!(*outcomes[0].as_ref().unwrap(), None);
    assert_eq!(*outcomes[2].as_ref().unwrap(), Some(2));
    assert_eq!(kind(&outcomes[1]), (Kind::Type, false));
}

/// A key that is a list, if it is odd.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Odd(i64);

impl forebay_write::IntoParameters for Odd {
    fn into_parameters(self) -> forebay_write::Parameters {
        if self.0 % 2 == 0 {
            [self.0].into()
        } else {
            (vec![self.0],).into()
        }
    }
}

#[tokio::test]
async fn a_row_that_does_not_fit_is_its_keys_error_and_names_the_column() {
    let database = &Database::new("CREATE TABLE t (id int, name text); INSERT INTO t VALUES (1, 'a'), (2, NULL)").await;
    let outcomes = load::<i64, (i64, String)>(database, "SELECT id, name FROM t WHERE id = ?", vec![1, 2]).await;
    assert_eq!(*outcomes[0].as_ref().unwrap(), Some((1, "a".to_owned())));
    let Err(LoadError::Key(error)) = &outcomes[1] else {
        panic!("{outcomes:?}");
    };
    assert!(error.to_string().contains("column name"), "{error}");
}

#[tokio::test]
async fn rows_beyond_the_limit_are_their_keys_error() {
    let database = &Database::new(
        "CREATE TABLE t (id int PRIMARY KEY, big longtext); INSERT INTO t VALUES (1, 'a'), (2, repeat('b', 100000)), (3, 'c')",
    )
    .await;
    let mysql = MySql::builder(&database.url).unwrap().max_rows_bytes(50_000);
    let mysql = mysql.connect().await.unwrap();
    for sql in [
        "SELECT big FROM t WHERE id = ?",
        "SELECT big FROM t WHERE id = ? LIMIT 1",
    ] {
        let loader: Loader<i64, String, ReadError> = mysql.loader(sql);
        let outcomes = loader.load_many([1, 2, 3]).await;
        assert_eq!(outcomes[0].as_ref().unwrap().as_deref(), Some("a"));
        assert_eq!(kind(&outcomes[1]), (Kind::TooLarge, false));
        assert_eq!(outcomes[2].as_ref().unwrap().as_deref(), Some("c"));
    }
    // All rows of a fetch together: of neighbours that fit alone, not more than fit together.
    database.say("UPDATE t SET big = repeat('d', 30000)").await;
    let loader: Loader<i64, String, ReadError> = mysql.loader("SELECT big FROM t WHERE id = ?");
    let outcomes = loader.load_many([1, 2, 3]).await;
    assert!(outcomes[0].is_ok());
    assert_eq!(kind(&outcomes[2]), (Kind::TooLarge, false));
}

#[tokio::test]
async fn an_error_of_the_text_is_the_whole_fetchs() {
    let database = &Database::new(
        "CREATE TABLE t (id int);
         CREATE FUNCTION put(n int) RETURNS int RETURN n",
    )
    .await;
    for (sql, expected) in [
        ("SELECT id FROM absent WHERE id = ?", Kind::Text),
        ("SELECT absent FROM t WHERE id = ?", Kind::Text),
        ("SELECT id FROM t", Kind::ParameterCount),
        ("SELECT id FROM t WHERE id = ? AND id = ?", Kind::ParameterCount),
        ("SELECT id FROM t WHERE id = :id", Kind::Text),
    ] {
        for keys in [vec![1], vec![1, 2]] {
            for outcome in load::<i64, i64>(database, sql, keys).await {
                assert_eq!(kind(&outcome), (expected, true), "{sql}");
            }
        }
    }
    for sql in [
        "SELECT id FROM t WHERE id = ?; SELECT 1",
        "INSERT INTO t VALUES (?) RETURNING id",
        "SELECT id FROM t WHERE id = ? FOR UPDATE",
        "SELECT id FROM t WHERE id = ? LOCK IN SHARE MODE",
        "SELECT @n := ?",
        "SELECT get_lock(?, 1)",
        "SELECT last_insert_id() + ?",
        "SET @x = ?",
        "SELEC id",
        "OPTIMIZE TABLE t",
        "COMMIT",
        "",
    ] {
        for outcome in load::<i64, i64>(database, sql, vec![1, 2]).await {
            let Err(LoadError::Fetch(error)) = &outcome else {
                panic!("{sql}: {outcome:?}");
            };
            assert!(matches!(**error, ReadError::Refused { .. }), "{sql}: {error:?}");
        }
    }
}

#[tokio::test]
async fn a_table_that_stays_locked_is_the_whole_fetchs_error_and_waited_for_once() {
    let database = &Database::new("CREATE TABLE t (id int); INSERT INTO t VALUES (1)").await;
    let mut locker = database.connection().await;
    for sql in ["SELECT id FROM t WHERE id = ? LIMIT 1", "SELECT id FROM t WHERE id = ?"] {
        let loader: Loader<i64, i64, ReadError> = database.mysql.loader(sql);
        let both = async || -> Vec<_> { loader.load_many([1, 2]).await.into_iter().map(Result::unwrap).collect() };
        assert_eq!(both().await, [Some(1), None]);
        locker.query_drop("LOCK TABLES t WRITE").await.unwrap();
        // A second for the lock, and not a minute.
        let outcomes = tokio::time::timeout(Duration::from_secs(30), loader.load_many(0..60)).await;
        for outcome in outcomes.unwrap() {
            assert_eq!(kind(&outcome), (Kind::LockTimeout, true));
        }
        locker.query_drop("UNLOCK TABLES").await.unwrap();
        assert_eq!(both().await, [Some(1), None]);
    }
}

#[tokio::test]
async fn a_table_that_changes_is_read_as_it_is_now() {
    let database = &Database::new("CREATE TABLE t (id int, name text); INSERT INTO t VALUES (1, 'a'), (2, 'b')").await;
    let loader: Loader<i64, serde_json::Value, ReadError> = database.mysql.loader("SELECT * FROM t WHERE id = ?");
    let both = async || -> Vec<_> { loader.load_many([1, 2]).await };
    assert_eq!(both().await[1].as_ref().unwrap().as_ref().unwrap()["name"], "b");
    database.say("ALTER TABLE t ADD COLUMN more int DEFAULT 7").await;
    for _ in 0..2 {
        assert_eq!(both().await[0].as_ref().unwrap().as_ref().unwrap()["more"], 7);
        assert_eq!(loader.load(1).await.unwrap().unwrap()["more"], 7);
    }
    // From numbers to text, among which "1" and "01" are two and equal to one number.
    database
        .say("ALTER TABLE t MODIFY id varchar(10); INSERT INTO t VALUES ('02', 'c', 0)")
        .await;
    for _ in 0..2 {
        assert_eq!(both().await[0].as_ref().unwrap().as_ref().unwrap()["id"], "1");
    }
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
