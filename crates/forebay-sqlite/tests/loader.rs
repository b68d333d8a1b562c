//! Loaders that read SQLite: a key's outcome is what its query gives alone.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use forebay_batch::load::{Key, LoadError, Loader};
use forebay_sqlite::Sqlite;
use forebay_sqlite::connection::{all_rows_with, one_row_with};
use forebay_sqlite::{ReadError, SqlKey, all_rows, one_row};
use forebay_write::{Parameters, StatementErrorKind, Writer};
use serde::Deserialize;
use serde::de::DeserializeOwned;

const HOUR: Duration = Duration::from_secs(3600);

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

struct Database {
    sqlite: Sqlite,
    /// Removed with its files when it is dropped.
    folder: tempfile::TempDir,
}

impl Database {
    fn new(schema: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test.db");
        rusqlite::Connection::open(&path)
            .unwrap()
            .execute_batch(schema)
            .unwrap();
        let sqlite = Sqlite::open(&path).unwrap();
        Self { sqlite, folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// What a loader over that query gives for these keys, which must be one fetch.
async fn load<K: Key + SqlKey, V>(
    database: &Database,
    sql: &'static str,
    keys: Vec<K>,
) -> Vec<Result<Option<V>, String>>
where
    V: DeserializeOwned + Clone + Send + Sync + 'static,
{
    let loader: Loader<K, V, ReadError> = database.sqlite.loader(sql);
    let outcomes = loader.load_many(keys).await;
    assert!(loader.stats().fetches <= 1);
    outcomes
        .into_iter()
        .map(|outcome| outcome.map_err(|error| error.to_string()))
        .collect()
}

async fn values<K: Key + SqlKey, V>(database: &Database, sql: &'static str, keys: Vec<K>) -> Vec<Option<V>>
where
    V: DeserializeOwned + Clone + Send + Sync + 'static,
{
    load(database, sql, keys)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect()
}

fn some(texts: &[&str]) -> Vec<Option<String>> {
    texts.iter().map(|text| Some((*text).to_owned())).collect()
}

const PEOPLE: &str = "
    CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT, height REAL, admin INTEGER, photo BLOB);
    INSERT INTO people VALUES (1, 'Ada', NULL, 1.65, 1, x'0102'), (2, 'Grace', 'grace@example.org', 2, 0, x'');
";

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Person {
    name: String,
    id: i64,
    email: Option<String>,
    height: f64,
    admin: bool,
    photo: Vec<u8>,
}

#[tokio::test]
async fn a_row_becomes_a_struct_by_the_names_of_its_columns() {
    let database = Database::new(PEOPLE);
    let people = values::<i64, Person>(&database, "SELECT * FROM people WHERE id = ?1", vec![2, 7, 1, 2]).await;
    let ada = Person {
        name: "Ada".to_owned(),
        id: 1,
        email: None,
        height: 1.65,
        admin: true,
        photo: vec![1, 2],
    };
    let grace = Person {
        name: "Grace".to_owned(),
        id: 2,
        email: Some("grace@example.org".to_owned()),
        height: 2.0,
        admin: false,
        photo: vec![],
    };
    assert_eq!(people, [Some(grace.clone()), None, Some(ada), Some(grace)]);
}

#[tokio::test]
async fn a_row_becomes_a_tuple_a_single_value_a_map_or_an_enum() {
    #[derive(Clone, Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Sex {
        Female,
    }
    #[derive(Clone, Debug, PartialEq, Deserialize)]
    struct Name(String);
    let database = Database::new(PEOPLE);
    let database = &database;
    let tuples = values::<i64, (i64, String)>(database, "SELECT id, name FROM people WHERE id = ?1", vec![1]).await;
    assert_eq!(tuples, [Some((1, "Ada".to_owned()))]);
    let names = values::<i64, Name>(database, "SELECT name FROM people WHERE id = ?1", vec![1]).await;
    assert_eq!(names, [Some(Name("Ada".to_owned()))]);
    // A row whose value is NULL is not a missing row.
    let emails = values::<i64, Option<String>>(database, "SELECT email FROM people WHERE id = ?1", vec![1, 2, 3]).await;
    assert_eq!(emails, [Some(None), Some(Some("grace@example.org".to_owned())), None]);
    let maps =
        values::<i64, BTreeMap<String, f64>>(database, "SELECT id, height FROM people WHERE id = ?1", vec![1]).await;
    assert_eq!(
        maps,
        [Some(BTreeMap::from([
            ("id".to_owned(), 1.0),
            ("height".to_owned(), 1.65)
        ]))]
    );
    let enums = values::<i64, Sex>(database, "SELECT 'female' FROM people WHERE id = ?1", vec![1]).await;
    assert_eq!(enums, [Some(Sex::Female)]);
    let json =
        values::<i64, serde_json::Value>(database, "SELECT id, email, name FROM people WHERE id = ?1", vec![1]).await;
    assert_eq!(
        json,
        [Some(serde_json::json!({ "id": 1, "email": null, "name": "Ada" }))]
    );
    let counts = values::<i64, u8>(database, "SELECT count(*) FROM people WHERE id > ?1", vec![0, 1, 9]).await;
    assert_eq!(counts, [Some(2), Some(1), Some(0)], "an aggregate of each key's own");
}

#[tokio::test]
async fn the_first_row_is_the_value_and_all_rows_are_the_many() {
    let database = Database::new(
        "CREATE TABLE posts (author INTEGER, at INTEGER, title TEXT);
         INSERT INTO posts VALUES (1, 3, 'c'), (2, 1, 'x'), (1, 1, 'a'), (1, 2, 'b')",
    );
    let sql = "SELECT title FROM posts WHERE author = ?1 ORDER BY at DESC";
    let latest = values::<i64, String>(&database, sql, vec![1, 2, 3]).await;
    assert_eq!(latest, [Some("c".to_owned()), Some("x".to_owned()), None]);

    let all: Loader<i64, Vec<String>, ReadError> = database.sqlite.loader_many(sql);
    let lists = all.load_many([1, 3, 2]).await;
    let lists: Vec<_> = lists.into_iter().map(|list| list.unwrap().unwrap().concat()).collect();
    assert_eq!(lists, ["cba", "", "x"]);
    assert_eq!(all.stats().fetches, 1);
    // LIMIT is each key's own.
    let two: Loader<i64, Vec<String>, ReadError> = database
        .sqlite
        .loader_many("SELECT title FROM posts WHERE author = ?1 ORDER BY at LIMIT 2");
    let lists = two.load_many([1, 2]).await;
    assert_eq!(lists[0].as_ref().unwrap().as_ref().unwrap().concat(), "ab");
    assert_eq!(lists[1].as_ref().unwrap().as_ref().unwrap().concat(), "x");
}

#[tokio::test]
async fn text_keys_compare_by_the_columns_collation() {
    let database = Database::new(
        "CREATE TABLE exact (name TEXT PRIMARY KEY, id INTEGER);
         CREATE TABLE loose (name TEXT COLLATE NOCASE PRIMARY KEY, id INTEGER);
         INSERT INTO exact VALUES ('ABC', 1); INSERT INTO loose VALUES ('ABC', 1)",
    );
    let keys = || ["abc", "ABC", "aBc", "abd"].map(str::to_owned).to_vec();
    let exact = values::<String, i64>(&database, "SELECT id FROM exact WHERE name = ?1", keys()).await;
    assert_eq!(exact, [None, Some(1), None, None]);
    // Different keys for Rust, the same row for the column: each of them gets it.
    let loose = values::<String, i64>(&database, "SELECT id FROM loose WHERE name = ?1", keys()).await;
    assert_eq!(loose, [Some(1), Some(1), Some(1), None]);
}

#[tokio::test]
async fn keys_follow_the_columns_affinity() {
    let database = Database::new(
        "CREATE TABLE t (number INTEGER, word TEXT, any);
         INSERT INTO t VALUES (42, '42', 42), (7, '007', '7')",
    );
    let database = &database;
    let texts = || vec!["42".to_owned(), "042".to_owned(), "x".to_owned()];
    let by_text = values::<String, i64>(database, "SELECT number FROM t WHERE number = ?1", texts()).await;
    assert_eq!(
        by_text,
        [Some(42), Some(42), None],
        "a number column compares as numbers"
    );
    let by_integer = values::<i64, String>(database, "SELECT word FROM t WHERE word = ?1", vec![42, 7]).await;
    assert_eq!(
        by_integer,
        [Some("42".to_owned()), None],
        "a text column compares as text"
    );
    let untyped = values::<i64, i64>(database, "SELECT number FROM t WHERE any = ?1", vec![42, 7]).await;
    assert_eq!(
        untyped,
        [Some(42), None],
        "a column without a type takes values as they are"
    );
}

#[tokio::test]
async fn keys_are_integers_text_bytes_arrays_tuples_and_own_types() {
    #[derive(Clone, PartialEq, Eq, Hash)]
    struct Slug(String);
    impl forebay_write::IntoParameters for Slug {
        fn into_parameters(self) -> Parameters {
            [self.0].into()
        }
    }
    let database = Database::new(
        "CREATE TABLE t (tenant INTEGER, slug TEXT, bytes BLOB, title TEXT);
         INSERT INTO t VALUES (1, 'a', x'00ff', 'one'), (2, 'a', x'000102030405060708090a0b0c0d0e0f', 'two'), (2, 'it''s; --', x'', 'three')",
    );
    let database = &database;
    let by_tenant = "SELECT title FROM t WHERE tenant = ?1 AND slug = ?2";
    let pairs = vec![
        (2_i64, "a".to_owned()),
        (1, "a".to_owned()),
        (2, "it's; --".to_owned()),
        (3, "a".to_owned()),
    ];
    let titles = values::<_, String>(database, by_tenant, pairs).await;
    assert_eq!(titles, [some(&["two", "one", "three"]), vec![None]].concat());
    // By number, not by where they stand.
    let swapped = values::<_, String>(
        database,
        "SELECT title FROM t WHERE slug = ?2 AND tenant = $1",
        vec![(2_i64, "a")],
    )
    .await;
    assert_eq!(swapped, some(&["two"]));

    let by_bytes = "SELECT title FROM t WHERE bytes = ?1";
    assert_eq!(
        values::<Vec<u8>, String>(database, by_bytes, vec![vec![0, 255], vec![]]).await,
        some(&["one", "three"])
    );
    let uuid: [u8; 16] = std::array::from_fn(|byte| byte as u8);
    assert_eq!(
        values::<[u8; 16], String>(database, by_bytes, vec![uuid]).await,
        some(&["two"])
    );

    let by_slug = "SELECT title FROM t WHERE slug = ?1 ORDER BY tenant";
    assert_eq!(
        values(database, by_slug, vec![Slug("a".to_owned())]).await,
        some(&["one"])
    );
    assert_eq!(
        values::<Arc<str>, String>(database, by_slug, vec!["it's; --".into()]).await,
        some(&["three"])
    );
    assert_eq!(
        values::<&'static str, String>(database, by_slug, vec!["a"]).await,
        some(&["one"])
    );
    assert_eq!(
        values::<bool, i64>(database, "SELECT ?1 + 1", vec![true, false]).await,
        [Some(2), Some(1)]
    );
}

#[tokio::test]
async fn more_keys_than_a_statement_has_parameters() {
    let database = Database::new("CREATE TABLE squares (n INTEGER PRIMARY KEY, square INTEGER)");
    let fill = "INSERT INTO squares WITH RECURSIVE x (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM x WHERE n < 49999) SELECT n, n * n FROM x";
    Writer::new(database.sqlite.clone()).execute(fill, ()).await.unwrap();
    let squares: Loader<i64, i64, ReadError> = Loader::builder()
        .max_items(100_000)
        .build(one_row(&database.sqlite, "SELECT square FROM squares WHERE n = ?1"));
    let outcomes = squares.load_many(0..50_001).await;
    assert_eq!(squares.stats().fetches, 1);
    for (n, square) in outcomes.into_iter().enumerate() {
        let n = n as i64;
        assert_eq!(square.unwrap(), (n < 50_000).then_some(n * n));
    }
}

#[tokio::test]
async fn an_error_in_one_keys_query_is_that_keys_alone() {
    let database = Database::new("CREATE TABLE t (n INTEGER)");
    let outcomes = load::<i64, i64>(&database, "SELECT abs(?1)", vec![-1, i64::MIN, -3]).await;
    assert_eq!(outcomes[0], Ok(Some(1)));
    assert_eq!(outcomes[2], Ok(Some(3)));
    assert!(
        outcomes[1]
            .as_ref()
            .unwrap_err()
            .starts_with("the key could not be loaded: integer overflow"),
        "{outcomes:?}"
    );
}

#[tokio::test]
async fn a_row_that_does_not_fit_is_its_keys_error_and_names_the_column() {
    let database = Database::new(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, age);
         INSERT INTO t VALUES (1, 'a', 5), (2, NULL, 5), (3, 'c', 'old'), (4, 'd', 700), (5, CAST(x'ff' AS TEXT), 5)",
    );
    let database = &database;
    #[derive(Clone, Debug, PartialEq, Deserialize)]
    struct Aged {
        name: String,
        age: u8,
    }
    let sql = "SELECT name, age FROM t WHERE id = ?1";
    let outcomes = load::<i64, Aged>(database, sql, vec![1, 2, 3, 4, 5]).await;
    assert!(outcomes[0].is_ok());
    for (at, column) in [
        (1, "column name"),
        (2, "column age"),
        (3, "column age"),
        (4, "column name: the text is not UTF-8"),
    ] {
        let error = outcomes[at].as_ref().unwrap_err();
        assert!(error.contains(column), "{error}");
    }
    // In a list of rows too, and the other keys keep theirs.
    let names: Loader<i64, Vec<String>, ReadError> = database
        .sqlite
        .loader_many("SELECT name FROM t WHERE id >= ?1 AND id < 3");
    let outcomes = names.load_many([1, 3]).await;
    assert!(matches!(&outcomes[0], Err(LoadError::Key(error)) if matches!(&**error, ReadError::Row { .. })));
    assert_eq!(outcomes[1].as_ref().unwrap().as_ref().unwrap().len(), 0);
    // A column that is not there, and more columns than are read.
    let outcomes = load::<i64, Aged>(database, "SELECT name FROM t WHERE id = ?1", vec![1]).await;
    assert!(outcomes[0].as_ref().unwrap_err().contains("missing field `age`"));
    for sql in ["SELECT id, name FROM t WHERE id = ?1"] {
        assert!(
            load::<i64, i64>(database, sql, vec![1]).await[0]
                .as_ref()
                .unwrap_err()
                .contains("2 columns")
        );
        assert!(
            load::<i64, (i64,)>(database, sql, vec![1]).await[0]
                .as_ref()
                .unwrap_err()
                .contains("gives 2")
        );
    }
}

#[tokio::test]
async fn rows_can_be_read_by_a_function() {
    let database = Database::new(PEOPLE);
    let names: Loader<i64, Arc<str>, ReadError> = Loader::new(one_row_with(
        &database.sqlite,
        "SELECT name FROM people WHERE id = ?1",
        |row| row.get("name"),
    ));
    assert_eq!(names.load(2).await.unwrap().as_deref(), Some("Grace"));
    let lengths: Loader<i64, Vec<usize>, ReadError> = Loader::new(all_rows_with(
        &database.sqlite,
        "SELECT name FROM people WHERE id >= ?1 ORDER BY id",
        |row| Ok(row.get::<_, String>(0)?.len()),
    ));
    assert_eq!(lengths.load(1).await.unwrap(), Some(vec![3, 5]));
    let wrong: Loader<i64, i64, ReadError> = Loader::new(one_row_with(
        &database.sqlite,
        "SELECT name FROM people WHERE id = ?1",
        |row| row.get("name"),
    ));
    assert!(matches!(wrong.load(2).await, Err(LoadError::Key(error)) if matches!(*error, ReadError::Row { .. })));
    let panics: Loader<i64, i64, ReadError> =
        Loader::new(one_row_with(&database.sqlite, "SELECT ?1", |_| panic!("as asked")));
    for _ in 0..2 {
        let outcome = panics.load(2).await;
        let Err(LoadError::Fetch(error)) = outcome else {
            panic!("{outcome:?}");
        };
        assert!(matches!(&*error, ReadError::Internal { cause } if cause == "as asked"));
    }
    assert_eq!(
        names.load(1).await.unwrap().as_deref(),
        Some("Ada"),
        "the connection is well"
    );
}

/// The kind of error that the whole fetch has.
async fn fetch_error(database: &Database, sql: &'static str) -> ReadError {
    let loader: Loader<i64, i64, ReadError> = database.sqlite.loader(sql);
    let outcome = loader.load_many([1, 2]).await.remove(1);
    match outcome {
        Err(LoadError::Fetch(error) | LoadError::Key(error)) => (*error).clone(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_text_that_cannot_be_run_is_an_error_that_says_why() {
    let database = Database::new("CREATE TABLE t (n INTEGER)");
    let database = &database;
    let kind = |error| match error {
        ReadError::Statement(error) => error.kind,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        kind(fetch_error(database, "SELECT n FROM absent WHERE n = ?1").await),
        StatementErrorKind::Text
    );
    assert_eq!(kind(fetch_error(database, "SELEC").await), StatementErrorKind::Text);
    assert_eq!(
        kind(fetch_error(database, "SELECT 1; SELECT ?1").await),
        StatementErrorKind::Text
    );
    assert_eq!(
        kind(fetch_error(database, "SELECT ?1 + ?2").await),
        StatementErrorKind::ParameterCount
    );
    assert_eq!(
        kind(fetch_error(database, "SELECT 1").await),
        StatementErrorKind::ParameterCount
    );
    for sql in [
        "INSERT INTO t VALUES (?1) RETURNING n",
        "DELETE FROM t WHERE n = ?1",
        "SELECT :key",
        "ATTACH 'other.db' AS other",
    ] {
        let error = fetch_error(database, sql).await;
        assert!(matches!(error, ReadError::Refused { .. }), "{sql}: {error:?}");
    }
    database.sqlite.close().await;
    assert_eq!(fetch_error(database, "SELECT ?1").await, ReadError::Closed);
}

#[tokio::test]
async fn every_write_acknowledged_before_is_read() {
    let database = Database::new("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)");
    let writer = Writer::new(database.sqlite.clone());
    let loader: Loader<i64, i64, ReadError> = database.sqlite.loader("SELECT n FROM t WHERE id = ?1");
    for n in 1..=50 {
        writer
            .execute("INSERT OR REPLACE INTO t VALUES (1, ?1)", [n])
            .await
            .unwrap();
        assert_eq!(loader.load(1).await.unwrap(), Some(n));
    }
    // Also after the table has changed.
    writer
        .execute("ALTER TABLE t ADD COLUMN note TEXT DEFAULT 'new'", ())
        .await
        .unwrap();
    let whole: Loader<i64, serde_json::Value, ReadError> = database.sqlite.loader("SELECT * FROM t WHERE id = ?1");
    assert_eq!(whole.load(1).await.unwrap().unwrap()["note"], "new");
    writer
        .execute("ALTER TABLE t ADD COLUMN more TEXT DEFAULT 'newer'", ())
        .await
        .unwrap();
    assert_eq!(whole.load(1).await.unwrap().unwrap()["more"], "newer");
}

/// A writer moves a token between two rows while a loader reads both: in one snapshot exactly one has it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_keys_of_a_fetch_are_read_in_one_snapshot() {
    let database = Database::new(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, has INTEGER);
         INSERT INTO t VALUES (0, 1), (1, 0)",
    );
    let writer = Writer::new(database.sqlite.clone());
    let moving = tokio::spawn(async move {
        for _ in 0..300 {
            writer.execute("UPDATE t SET has = 1 - has", ()).await.unwrap();
        }
    });
    // Slow enough between the two keys that a writer comes in.
    let sql = "SELECT has, (WITH RECURSIVE x (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM x WHERE i < 3000) SELECT sum(i) FROM x) FROM t WHERE id = ?1";
    // One fetch for both.
    let loader: Loader<i64, (i64, i64), ReadError> = Loader::builder()
        .max_items(2)
        .max_wait(HOUR)
        .build(one_row(&database.sqlite, sql));
    let mut reads = 0;
    while !moving.is_finished() {
        let both = loader.load_many([0, 1]).await;
        let has: i64 = both.into_iter().map(|row| row.unwrap().unwrap().0).sum();
        assert_eq!(has, 1);
        reads += 1;
    }
    moving.await.unwrap();
    assert!(reads > 10);
}

#[tokio::test]
async fn a_query_without_end_is_interrupted_when_its_time_is_over() {
    let database = Database::new("");
    let sqlite = Sqlite::builder(database.path().join("one.db"))
        .max_readers(1)
        .open()
        .unwrap();
    let endless = "WITH RECURSIVE x (i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM x) SELECT sum(i) FROM x";
    let loader: Loader<i64, i64, ReadError> = Loader::builder().fetch_timeout(ms(50)).build(one_row(&sqlite, endless));
    assert!(matches!(loader.load(1).await, Err(LoadError::TimedOut(_))));
    // The only connection is free again.
    assert_eq!(sqlite.query("SELECT 1", ()).await.unwrap().rows.len(), 1);
}

#[tokio::test]
async fn a_keys_rows_are_bounded_and_another_keys_are_not_affected() {
    let database = Database::new("");
    let sqlite = Sqlite::builder(database.path().join("bounded.db"))
        .max_rows_bytes(10_000)
        .open()
        .unwrap();
    let numbers = "WITH RECURSIVE x (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM x WHERE i < ?1) SELECT i FROM x";
    let loader: Loader<i64, Vec<i64>, ReadError> = Loader::new(all_rows(&sqlite, numbers));
    let outcomes = loader.load_many([3, 100_000, 4]).await;
    assert_eq!(*outcomes[0].as_ref().unwrap(), Some(vec![1, 2, 3]));
    assert_eq!(*outcomes[2].as_ref().unwrap(), Some(vec![1, 2, 3, 4]));
    let Err(LoadError::Key(error)) = &outcomes[1] else {
        panic!("{outcomes:?}");
    };
    assert!(matches!(&**error, ReadError::Statement(error) if error.kind == StatementErrorKind::TooLarge));
}

/// Its drop panics, and counts that it does.
#[derive(Debug)]
struct Grenade(Arc<AtomicUsize>);

impl Clone for Grenade {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl Drop for Grenade {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.0.fetch_add(1, SeqCst);
            panic!("dropped");
        }
    }
}

fn with_one_reader(database: &Database) -> Sqlite {
    let builder = Sqlite::builder(database.path().join("test.db"));
    builder.max_readers(1).open().unwrap()
}

#[tokio::test]
async fn a_value_that_panics_when_dropped_harms_no_other_reader() {
    let database = Database::new(PEOPLE);
    let sqlite = with_one_reader(&database);
    let dropped = Arc::new(AtomicUsize::new(0));
    let of_value = Arc::clone(&dropped);
    let (let_go, wait) = std::sync::mpsc::channel::<()>();
    let wait = parking_lot::Mutex::new(wait);
    let loader: Loader<i64, Grenade, ReadError> =
        Loader::builder()
            .fetch_timeout(ms(20))
            .build(one_row_with(&sqlite, "SELECT ?1", move |_| {
                let _ = wait.lock().recv();
                Ok(Grenade(Arc::clone(&of_value)))
            }));
    assert!(matches!(loader.load(1).await, Err(LoadError::TimedOut(_))));
    // Only now there is a value, and nobody who waits for it.
    drop(let_go);
    for _ in 0..3 {
        let rows = sqlite.query("SELECT name FROM people", ()).await.unwrap().rows;
        assert_eq!(rows.len(), 2, "the only reader is well");
    }
    assert_eq!(dropped.load(SeqCst), 1, "where nobody waited for it");
}

#[tokio::test]
async fn what_a_row_panics_with_harms_no_other_reader() {
    let database = Database::new(PEOPLE);
    let sqlite = with_one_reader(&database);
    let dropped = Arc::new(AtomicUsize::new(0));
    let of_panic = Arc::clone(&dropped);
    let loader: Loader<i64, i64, ReadError> = Loader::new(one_row_with(&sqlite, "SELECT ?1", move |_| {
        std::panic::panic_any(Grenade(Arc::clone(&of_panic)))
    }));
    for times in 1..4 {
        let outcome = loader.load(1).await;
        let Err(LoadError::Fetch(error)) = outcome else {
            panic!("{outcome:?}");
        };
        assert!(
            matches!(&*error, ReadError::Internal { cause } if cause == "a panic without a message"),
            "{error:?}"
        );
        assert_eq!(dropped.load(SeqCst), times);
        assert_eq!(sqlite.query("SELECT 1", ()).await.unwrap().rows.len(), 1);
    }
}

/// What a type has not enough digits for is an error.
#[tokio::test]
async fn no_real_number_is_rounded() {
    let database = Database::new(
        "CREATE TABLE n (id INTEGER PRIMARY KEY, x); \
         INSERT INTO n VALUES (1, 0.5), (2, 0.1), (3, 1e300), (4, 16777217), (5, 16777216), (6, 9007199254740993), (7, 9007199254740992)",
    );
    const SQL: &str = "SELECT x FROM n WHERE id = ?1";
    let small: Vec<Result<Option<f32>, String>> = load(&database, SQL, (1..8_u64).collect()).await;
    let fit: Vec<Option<f32>> = small.into_iter().map(|read| read.ok().flatten()).collect();
    assert_eq!(
        fit,
        [
            Some(0.5),
            None,
            None,
            None,
            Some(16_777_216.0),
            None,
            Some(9_007_199_254_740_992.0)
        ]
    );
    let large: Vec<Result<Option<f64>, String>> = load(&database, SQL, (1..8_u64).collect()).await;
    let fit: Vec<bool> = large.iter().map(Result::is_ok).collect();
    assert_eq!(fit, [true, true, true, true, true, false, true]);
    assert!(large[5].as_ref().unwrap_err().contains("a real number of this size"));
}
