//! Whatever the query and the keys: what a loader gives is what the query gives for each key alone.

use forebay_write::{Parameters, Value};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;

const SCHEMA: &str = "
    CREATE COLLATION caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
    CREATE TABLE t (id int, small smallint, word text, name text COLLATE caseless, num numeric, note varchar(10));
    INSERT INTO t SELECT n, n % 5, chr(97 + n % 4), chr(65 + n % 3 + 32 * (n % 2)), n / 4.0, CASE WHEN n % 6 > 0 THEN 'x' || n % 7 END
      FROM generate_series(-20, 40) n;
    CREATE TABLE u (t_id int, tag text);
    INSERT INTO u SELECT n % 11, 'tag' || n FROM generate_series(1, 50) n;
";

/// Queries of a whole number, with an order that leaves nothing open.
const OF_NUMBERS: &[&str] = &[
    "SELECT id, word FROM t WHERE id = ANY($1)",
    "SELECT id, word FROM t WHERE small = ANY($1) ORDER BY id",
    "SELECT id, word FROM t WHERE small = $1 ORDER BY id DESC LIMIT 3",
    "SELECT count(*), min(id)::text FROM t WHERE small = $1",
    "SELECT small, string_agg(word, ',' ORDER BY id) FROM t WHERE id > $1 GROUP BY small ORDER BY small",
    "SELECT DISTINCT small, word FROM t WHERE id < $1 ORDER BY 2, 1 OFFSET 1",
    "SELECT t.id, u.tag FROM t LEFT JOIN u ON u.t_id = t.id WHERE t.id = $1 ORDER BY 2",
    "SELECT id, tag FROM t, LATERAL (SELECT tag FROM u WHERE t_id = t.id AND t_id <> ALL($1) LIMIT 1) x WHERE small = ANY($1::int[]) ORDER BY id, tag",
    "WITH RECURSIVE c (n) AS (SELECT $1::int UNION ALL SELECT n + 1 FROM c WHERE n < 5) SELECT n, n::text FROM c ORDER BY 1",
    "SELECT rank() OVER (ORDER BY id), word FROM t WHERE small = $1 ORDER BY 1 LIMIT 4",
    "SELECT 10 / $1::int, 'x'",
    "SELECT id, word FROM t WHERE NOT EXISTS (SELECT FROM u WHERE t_id = id AND t_id = $1) AND id = $1",
    "VALUES ($1::int, 'a')",
    "SELECT $1::int, current_setting('search_path') WHERE $1 IN (SELECT id FROM t)",
];

const OF_TEXTS: &[&str] = &[
    "SELECT id, name FROM t WHERE name = ANY($1) ORDER BY id",
    "SELECT id, name FROM t WHERE word = $1 ORDER BY id LIMIT 2",
    "SELECT count(*), max(note) FROM t WHERE note = $1",
    "SELECT count(*), max(note) FROM t WHERE note LIKE $1",
    "SELECT id, note FROM t WHERE num = $1::text::numeric ORDER BY id",
    "SELECT id, note FROM t WHERE num = ANY($1) ORDER BY id",
    "SELECT length($1), upper($1)",
];

fn check<K, V>(
    database: &Database,
    runtime: &tokio::runtime::Runtime,
    sql: &'static str,
    keys: Vec<K>,
) -> Result<(), TestCaseError>
where
    K: Key + SqlKey + std::fmt::Debug + Into<Value>,
    V: DeserializeOwned + Clone + Send + Sync + PartialEq + std::fmt::Debug + 'static,
{
    runtime.block_on(async {
        let loader: Loader<K, Vec<V>, ReadError> = database.postgres.loader_many(sql);
        let many = loader.load_many(keys.clone()).await;
        for (key, rows) in keys.into_iter().zip(many) {
            let value: Value = key.clone().into();
            // The parameter as the server wants it: a list of one, or itself.
            let parameter = if sql.contains("ANY($1)") || sql.contains("ANY($1::") {
                Value::Array(vec![value])
            } else {
                value
            };
            let alone = database.postgres.query(sql, Parameters::from(vec![parameter])).await;
            match (rows, alone) {
                (Ok(rows), Ok(alone)) => {
                    let rows = format!("{:?}", rows.unwrap());
                    let alone: Vec<String> = alone.rows.iter().map(|row| shown(row)).collect();
                    prop_assert_eq!(rows, format!("[{}]", alone.join(", ")), "{} for {:?}", sql, key);
                }
                (Err(LoadError::Key(error)), Err(alone)) => {
                    prop_assert_eq!(&*error, &alone, "{} for {:?}", sql, key);
                }
                (rows, alone) => prop_assert!(false, "{} for {:?}: {:?}, alone {:?}", sql, key, rows, alone),
            }
        }
        Ok(())
    })
}

/// As the debug form of `(i64, Option<String>)`.
fn shown(row: &[Value]) -> String {
    let text = match &row[1] {
        Value::Null => "None".to_owned(),
        other => format!("Some({:?})", other.as_text().unwrap()),
    };
    format!("({}, {text})", row[0].as_integer().unwrap())
}

#[test]
fn the_loader_gives_what_the_query_gives_alone() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let database = runtime.block_on(Database::new(SCHEMA));
    let numbers = prop::collection::vec(-25_i64..45, 1..12);
    let texts = prop::collection::vec("[a-dA-D]|x[0-7]|%|x_|[0-9](\\.[0-9]{1,2})?|'|\\\\", 1..8);
    let mut runner = TestRunner::new(Config {
        cases: 200,
        failure_persistence: None,
        ..Config::default()
    });
    runner
        .run(&(0..OF_NUMBERS.len(), numbers), |(query, keys)| {
            check::<i64, (i64, Option<String>)>(&database, &runtime, OF_NUMBERS[query], keys)
        })
        .unwrap();
    runner
        .run(&(0..OF_TEXTS.len(), texts), |(query, keys)| {
            check::<String, (i64, Option<String>)>(&database, &runtime, OF_TEXTS[query], keys)
        })
        .unwrap();
}
