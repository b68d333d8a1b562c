//! Whatever the query and the keys: what a loader gives is what the query gives for each key alone.

use forebay_write::{Parameters, Value};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;

const SCHEMA: &str = "
    CREATE TABLE t (id int PRIMARY KEY, small smallint, big bigint unsigned, word char(3), name varchar(5) COLLATE utf8mb4_general_ci,
      num decimal(6, 2), note varchar(10), KEY (small), KEY (name));
    INSERT INTO t SELECT cast(seq AS int) - 20, (cast(seq AS int) - 20) % 5, seq * 3, char(97 + seq % 4), char(65 + seq % 3 + 32 * (seq % 2)), seq / 4,
      CASE WHEN seq % 6 > 0 THEN concat('x', seq % 7) END FROM seq_0_to_60;
    UPDATE t SET big = 18446744073709551615 - big WHERE id % 7 = 0;
    UPDATE t SET small = NULL WHERE id % 9 = 0;
    CREATE TABLE u (t_id int, tag varchar(10));
    INSERT INTO u SELECT seq % 11, concat('tag', seq) FROM seq_1_to_50;
    CREATE VIEW v AS SELECT id, small + 0 AS sum, word FROM t WHERE id > -10;
";

/// Queries of a whole number, with an order that leaves nothing open.
const OF_NUMBERS: &[&str] = &[
    "SELECT id, word FROM t WHERE id = ?",
    "SELECT id, word FROM t WHERE id IN (?)",
    "SELECT id, word FROM t WHERE big = ? ORDER BY id",
    "SELECT id, name FROM t WHERE small = ? ORDER BY id",
    "SELECT id, name FROM t WHERE (small = ?) AND id > -5 AND NOT word = 'a' ORDER BY id DESC",
    "SELECT id, name FROM t WHERE (id < 0 OR id > 5) AND small IN (?) ORDER BY 1",
    "SELECT id, word FROM t WHERE id < 0 OR small = ? ORDER BY id",
    "SELECT id, word FROM t WHERE small = ? ORDER BY id DESC LIMIT 3",
    "SELECT count(*), concat(min(id)) FROM t WHERE small = ?",
    "SELECT small, group_concat(word ORDER BY id) FROM t WHERE id > ? GROUP BY small HAVING small IS NOT NULL ORDER BY small",
    "SELECT DISTINCT id % 4, word FROM t WHERE small = ? ORDER BY 2, 1",
    "SELECT t.id, u.tag FROM t LEFT JOIN u ON u.t_id = t.id WHERE t.id = ? ORDER BY 2",
    "SELECT t.id, u.tag FROM t LEFT JOIN u ON u.t_id = t.id WHERE u.t_id = ? ORDER BY 2",
    "SELECT t.id, u.tag FROM t, u WHERE u.t_id = t.id AND t.small = ? ORDER BY t.id, tag",
    "SELECT id, (SELECT tag FROM u WHERE t_id = t.id ORDER BY tag LIMIT 1) FROM t WHERE small = ? ORDER BY id",
    "SELECT id, upper(ifnull(note, word)) FROM t WHERE id = ? AND EXISTS (SELECT 1 FROM u WHERE t_id = id)",
    "SELECT id, (SELECT tag FROM u WHERE t_id = id AND t_id < 3) FROM t WHERE id = ?",
    "SELECT id, word FROM (SELECT id, word, small FROM t WHERE word <> 'b') x WHERE x.small = ? ORDER BY id",
    "SELECT id, word FROM v WHERE sum = ? ORDER BY id",
    "SELECT id, note FROM t WHERE word = ? ORDER BY id",
    "SELECT id, note FROM t WHERE num = ? ORDER BY id",
    "SELECT id, note FROM t WHERE small = ? AND note ORDER BY id",
    "WITH RECURSIVE c (n) AS (SELECT CAST(? AS int) UNION ALL SELECT n + 1 FROM c WHERE n < 5) SELECT n, concat(n) FROM c ORDER BY 1",
    "SELECT rank() OVER (ORDER BY id), word FROM t WHERE small = ? ORDER BY 1 LIMIT 4",
    "SELECT id, concat(small) AS id FROM t WHERE id = ?",
    "VALUES (CAST(? AS int), 'a')",
];

const OF_TEXTS: &[&str] = &[
    "SELECT id, name FROM t WHERE name = ? ORDER BY id",
    "SELECT id, name FROM t WHERE name IN (?) ORDER BY id",
    "SELECT id, name FROM t WHERE word = ? ORDER BY id LIMIT 2",
    "SELECT id, name FROM t WHERE id = ? ORDER BY id",
    "SELECT count(*), max(note) FROM t WHERE note LIKE ?",
    "SELECT id, note FROM t WHERE num = ? ORDER BY id",
    "SELECT char_length(?), word FROM t WHERE id = 1",
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
        let loader: Loader<K, Vec<V>, ReadError> = database.mysql.loader_many(sql);
        let many = loader.load_many(keys.clone()).await;
        for (key, rows) in keys.into_iter().zip(many) {
            let value: Value = key.clone().into();
            let alone = database.mysql.query(sql, Parameters::from(vec![value])).await;
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
        Value::Integer(integer) => format!("Some(\"{integer}\")"),
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
