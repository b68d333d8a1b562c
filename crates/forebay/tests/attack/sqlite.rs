//! Hostile texts and keys, and a database that changes or is taken away between fetches.

use forebay::load::{LoadError, Loader};
use forebay::sqlite::ReadError;
use forebay::sqlite::Sqlite;
use forebay::write::Writer;
use futures_util::future::join_all;

use super::*;

async fn database(folder: &tempfile::TempDir, statements: &[&'static str]) -> (Sqlite, Writer) {
    let database = Sqlite::open(folder.path().join("app.db")).unwrap();
    let writer = Writer::new(database.clone());
    for statement in statements {
        writer.execute(*statement, ()).await.unwrap();
    }
    (database, writer)
}

#[tokio::test]
async fn keys_of_any_content_come_back_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let (database, _writer) = database(&folder, &[]).await;
    let texts: Loader<String, String, ReadError> = database.loader("SELECT ?1");
    for text in ["", "\0", "a\0b", "'; DROP TABLE t; --", "?1", "\u{10ffff}", "é\u{301}"] {
        assert_eq!(ends(texts.load(text.to_owned())).await.unwrap().as_deref(), Some(text));
    }
    let huge = "x".repeat(1 << 20);
    assert_eq!(ends(texts.load(huge.clone())).await.unwrap(), Some(huge));
    let numbers: Loader<i64, i64, ReadError> = database.loader("SELECT ?1");
    for number in [i64::MIN, -1, 0, i64::MAX] {
        assert_eq!(ends(numbers.load(number)).await.unwrap(), Some(number));
    }
    let sums: Loader<i64, i64, ReadError> = database.loader("SELECT abs(?1)");
    let outcomes = ends(sums.load_many([1, i64::MIN, -2])).await;
    assert_eq!(*outcomes[0].as_ref().unwrap(), Some(1));
    assert!(
        matches!(outcomes[1], Err(LoadError::Key(_))),
        "an overflow is its key's alone"
    );
    assert_eq!(*outcomes[2].as_ref().unwrap(), Some(2));
    // Text that is not UTF-8 is its own key's error.
    let broken: Loader<i64, String, ReadError> =
        database.loader("SELECT CASE ?1 WHEN 2 THEN CAST(x'ff00fe' AS TEXT) ELSE 'fine' END");
    let outcomes = ends(broken.load_many([1, 2, 3])).await;
    assert_eq!(outcomes[0].as_ref().unwrap().as_deref(), Some("fine"));
    assert!(matches!(outcomes[1], Err(LoadError::Key(_))));
    assert_eq!(outcomes[2].as_ref().unwrap().as_deref(), Some("fine"));
}

#[tokio::test]
async fn hostile_texts_are_errors_and_the_database_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (database, _writer) = database(
        &folder,
        &["CREATE TABLE t (k INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (1)"],
    )
    .await;
    for text in [
        "",
        ";",
        "-- nothing",
        "SELECT",
        "SELECT 1; DROP TABLE t",
        "SELECT \0 1",
        "DELETE FROM t WHERE k = ?1",
        "DELETE FROM t WHERE k = ?1 RETURNING k",
        "BEGIN",
        "COMMIT",
        "PRAGMA query_only = 0",
        "PRAGMA journal_mode = DELETE",
        "ATTACH 'other.db' AS other",
        "VACUUM",
        "SELECT ?1, ?2",
        "SELECT ?32767",
    ] {
        let loader: Loader<i64, i64, ReadError> = database.loader(text);
        let outcome = ends(loader.load(1)).await;
        assert!(outcome.is_err(), "{text:?}: {outcome:?}");
    }
    let rows: Loader<i64, i64, ReadError> = database.loader("SELECT k FROM t WHERE k = ?1");
    assert_eq!(ends(rows.load(1)).await.unwrap(), Some(1), "nothing was deleted");
}

#[tokio::test]
async fn a_table_that_goes_and_comes_back_is_an_error_only_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let (database, writer) = database(
        &folder,
        &[
            "CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT)",
            "INSERT INTO t VALUES (1, 'a')",
        ],
    )
    .await;
    let loader: Loader<i64, String, ReadError> = database.loader("SELECT v FROM t WHERE k = ?1");
    for round in 0..5 {
        assert!(ends(loader.load(1)).await.unwrap().is_some(), "round {round}");
        writer.execute("DROP TABLE t", ()).await.unwrap();
        let outcome = ends(loader.load(1)).await;
        // A statement that is kept compiled finds out only when it is executed, which is the key's own error.
        assert!(
            matches!(outcome, Err(LoadError::Fetch(_) | LoadError::Key(_))),
            "{outcome:?}"
        );
        writer
            .execute("CREATE TABLE t (v TEXT, more INTEGER, k INTEGER PRIMARY KEY)", ())
            .await
            .unwrap();
        assert_eq!(ends(loader.load(1)).await.unwrap(), None);
        writer.execute("INSERT INTO t VALUES ('b', 2, 1)", ()).await.unwrap();
    }
}

#[tokio::test]
async fn who_locks_the_database_for_writing_locks_no_reader_out() {
    let folder = tempfile::tempdir().unwrap();
    let (database, _writer) = database(
        &folder,
        &["CREATE TABLE t (k INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (1)"],
    )
    .await;
    let loader: Loader<i64, i64, ReadError> = database.loader("SELECT k FROM t WHERE k = ?1");
    let other = rusqlite::Connection::open(folder.path().join("app.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE; DELETE FROM t").unwrap();
    assert_eq!(ends(loader.load(1)).await.unwrap(), Some(1));
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(ends(loader.load(1)).await.unwrap(), None);
}

#[tokio::test]
async fn a_hundred_thousand_keys_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (database, _writer) = database(&folder, &[]).await;
    let loader: Loader<i64, i64, ReadError> = database.loader("SELECT ?1 * 2 WHERE ?1 % 3");
    let loads: Vec<_> = (0..100_000).map(|key| loader.register(key)).collect();
    let outcomes = join_all(loads).await;
    for (key, outcome) in (0..).zip(outcomes) {
        assert_eq!(outcome.unwrap(), (key % 3 != 0).then_some(key * 2));
    }
}
