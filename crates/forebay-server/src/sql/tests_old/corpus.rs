//! SQLite's own SQL stays SQLite's own, byte for byte.

use super::{database, one, parse, run};
use crate::sql::Kind;

/// Varied statements of SQLite's SQL. They run one after the other on one database.
const STATEMENTS: &[&str] = &[
    "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL, age INT, data BLOB, score REAL DEFAULT 0.5)",
    "CREATE TABLE IF NOT EXISTS posts(id INTEGER PRIMARY KEY AUTOINCREMENT, user_id INTEGER REFERENCES users(id) ON DELETE CASCADE, body, at TEXT DEFAULT CURRENT_TIMESTAMP)",
    "CREATE TABLE kv (k TEXT PRIMARY KEY, v) WITHOUT ROWID",
    "CREATE TABLE strict_one (a INT, b TEXT, c ANY) STRICT",
    "create table [weird name] (\"a b\" int, `c d` text, [e f] blob)",
    "CREATE TABLE computed (w INT, h INT, area INT GENERATED ALWAYS AS (w * h) STORED, half INT AS (w / 2))",
    "CREATE TABLE untyped (a, b, c)",
    "CREATE TABLE dec (d DECIMAL(10,2), t TIMESTAMP, b BOOLEAN DEFAULT true, CHECK (d > 0), UNIQUE (t, b) ON CONFLICT IGNORE)",
    "CREATE UNIQUE INDEX users_name ON users (name COLLATE NOCASE)",
    "CREATE INDEX posts_partial ON posts (user_id DESC) WHERE body IS NOT NULL",
    "CREATE INDEX posts_expr ON posts (lower(body))",
    "CREATE VIEW names AS SELECT id, name FROM users WHERE age > 18",
    "CREATE TRIGGER log_user AFTER INSERT ON users BEGIN INSERT INTO kv VALUES (new.name, 'it''s; new') ON CONFLICT DO NOTHING; SELECT changes(); END",
    "CREATE VIRTUAL TABLE docs USING fts5(title, body)",
    "INSERT INTO users (name, age) VALUES ('Ada', 36), ('Grace', 45)",
    "INSERT INTO users VALUES (NULL, 'Linus', 21, x'CAFE', 1e3)",
    "INSERT OR REPLACE INTO users (id, name) VALUES (1, 'Ada L')",
    "INSERT OR IGNORE INTO users (id, name) VALUES (1, 'nobody')",
    "REPLACE INTO kv VALUES ('a', 1)",
    "INSERT INTO kv (k, v) VALUES ('a', 2) ON CONFLICT (k) DO UPDATE SET v = excluded.v WHERE excluded.v > kv.v RETURNING *",
    "INSERT INTO kv SELECT 'u' || id, name FROM users WHERE true ON CONFLICT DO NOTHING",
    "INSERT OR IGNORE INTO users DEFAULT VALUES",
    "INSERT INTO users (name, age) VALUES (?1, ?2) RETURNING id, name AS n",
    "INSERT INTO untyped VALUES ($2, $1, 'E''not an escape\\n')",
    "INSERT INTO docs VALUES ('one', 'some text')",
    "UPDATE users SET age = age + 1, score = score * 2 WHERE id = 1 RETURNING age",
    "UPDATE OR IGNORE users SET name = upper(name)",
    "UPDATE kv SET v = (SELECT count(*) FROM users) WHERE k GLOB 'u*'",
    "UPDATE users SET (age, score) = (30, 1.5) WHERE id = 2",
    "UPDATE posts SET body = u.name FROM users AS u WHERE u.id = posts.user_id",
    "DELETE FROM kv WHERE k == 'a' OR k != 'b'",
    "DELETE FROM posts WHERE id IN (SELECT id FROM posts ORDER BY id LIMIT 1) RETURNING *",
    "SELECT 1",
    "SELECT 1, 'two', 3.0, NULL, x'04', 0x5, 1e3, .5",
    "SELECT * FROM users",
    "SELECT u.*, p.body FROM users u LEFT JOIN posts p ON p.user_id = u.id",
    "SELECT u.name AS \"the name\", count(*) n FROM users u, posts p WHERE p.user_id = u.id GROUP BY 1 HAVING n > 0",
    "SELECT DISTINCT age FROM users ORDER BY age DESC NULLS LAST LIMIT 10 OFFSET 0",
    "SELECT name FROM users LIMIT 1, 2",
    "SELECT name FROM users WHERE age IS NOT 5 AND age IS 36",
    "SELECT name FROM users WHERE age IS NULL OR age ISNULL OR age NOTNULL OR age NOT NULL",
    "SELECT name FROM users WHERE name LIKE 'a%' ESCAPE '\\' AND name NOT LIKE '%z'",
    "SELECT name FROM users WHERE name GLOB '[A-G]*'",
    "SELECT name FROM users WHERE age BETWEEN 1 AND 40 AND id IN (1, 2, 3) AND id NOT IN ()",
    "SELECT name FROM users WHERE (age, id) = (36, 1)",
    "SELECT CASE WHEN age > 40 THEN 'old' ELSE 'young' END FROM users",
    "SELECT CASE age WHEN 36 THEN 1 WHEN 45 THEN 2 END FROM users",
    "SELECT CAST('12abc' AS INTEGER), CAST(3.7 AS INT), CAST(5 AS TEXT), CAST('x' AS BLOB), CAST('1' AS NUMERIC), CAST(1 AS REAL)",
    "SELECT '{\"a\": 1}' -> 'a', '{\"a\": [2]}' ->> '$.a[0]'",
    "SELECT json_extract('{\"a\":1}', '$.a'), json_group_array(id) FROM users",
    "SELECT key, value FROM json_each('[1,2]')",
    "SELECT 7 / 2, 7 % 2, 1 << 3, 6 & 3, 6 | 1, ~5, -5, +5, 'a' || 'b'",
    "SELECT row_number() OVER (PARTITION BY age ORDER BY id) FROM users",
    "SELECT sum(age) OVER w FROM users WINDOW w AS (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
    "SELECT count(*) FILTER (WHERE age > 20), total(age), group_concat(name, ', ') FROM users",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT sum(i) FROM n",
    "WITH a AS MATERIALIZED (SELECT 1 AS x), b AS NOT MATERIALIZED (SELECT 2 AS x) SELECT * FROM a UNION SELECT * FROM b",
    "SELECT 1 UNION ALL SELECT 2 EXCEPT SELECT 2 INTERSECT SELECT 1",
    "VALUES (1, 'a'), (2, 'b')",
    "SELECT * FROM (VALUES (1, 2)) AS v",
    "SELECT column1 FROM (VALUES (1), (2)) ORDER BY 1",
    "SELECT EXISTS (SELECT 1 FROM users), NOT EXISTS (SELECT 1 FROM kv)",
    "SELECT (SELECT max(age) FROM users) AS oldest",
    "SELECT rowid, oid, _rowid_ FROM users",
    "SELECT * FROM users INDEXED BY users_name WHERE name = 'x' COLLATE NOCASE",
    "SELECT * FROM users NOT INDEXED",
    "SELECT * FROM users NATURAL JOIN names",
    "SELECT * FROM users JOIN names USING (id)",
    "SELECT * FROM users CROSS JOIN kv",
    "SELECT * FROM users FULL OUTER JOIN posts ON users.id = posts.user_id",
    "SELECT * FROM docs WHERE docs MATCH 'text' ORDER BY rank",
    "SELECT date('now'), datetime('2024-01-01', '+1 day'), strftime('%s', 'now'), CURRENT_DATE, CURRENT_TIME, CURRENT_TIMESTAMP",
    "SELECT coalesce(NULL, 1), ifnull(NULL, 2), nullif(1, 1), iif(1, 2, 3), min(1, 2), max(1, 2)",
    "SELECT typeof(1), hex(x'00ff'), quote('it''s'), printf('%d', 5), substr('hello', 2, 3), instr('a', 'a'), trim('  a ')",
    "SELECT 1 IS DISTINCT FROM 2, 1 IS NOT DISTINCT FROM NULL, 1 IS TRUE, 0 IS NOT FALSE",
    "SELECT a, \"b\", `c`, [a] FROM untyped",
    "SELECT /* a; comment */ 1 -- and; another\n, 2",
    "SELECT 'batch:5 /* not a comment */', '--', \"b\" FROM untyped",
    "SELECT user, name FROM (SELECT 1 AS user, 2 AS name)",
    "SELECT changes FROM (SELECT 3 AS changes)",
    "SELECT raise_ FROM (SELECT 1 AS raise_) WHERE raise_ < ?3",
    "ALTER TABLE users ADD COLUMN email TEXT DEFAULT 'none'",
    "ALTER TABLE users RENAME COLUMN email TO mail",
    "ALTER TABLE users DROP COLUMN mail",
    "ALTER TABLE untyped RENAME TO typeless",
    "EXPLAIN QUERY PLAN SELECT * FROM users WHERE id = 1",
    "EXPLAIN SELECT 1",
    "PRAGMA table_info(users)",
    "PRAGMA user_version",
    "ANALYZE",
    "REINDEX users_name",
    "DROP TRIGGER IF EXISTS log_user",
    "DROP INDEX posts_expr",
    "DROP VIEW names",
    "DROP TABLE IF EXISTS nowhere",
    "VACUUM",
];

#[test]
fn sqlites_own_statements_are_not_touched_and_run() {
    let connection = database();
    for statement in STATEMENTS {
        let parsed = one(statement);
        assert_eq!(parsed.kind, Kind::Sql, "{statement}");
        assert!(!parsed.rewritten, "{statement} became {}", parsed.sql);
        assert_eq!(&*parsed.sql, *statement);
        run(&connection, statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

#[test]
fn a_script_of_all_of_them_is_cut_where_they_end() {
    let script = STATEMENTS.join(" ;\n;; ");
    let parsed = parse(&script).unwrap();
    let found: Vec<&str> = parsed.iter().map(|statement| &*statement.sql).collect();
    assert_eq!(found, STATEMENTS);
    for statement in &parsed {
        assert!(script[statement.offset..].starts_with(&*statement.sql));
    }
}

/// Most of the statements are read by the grammar, and what it reads it writes out without losing a word: the check that guards
/// rewritten statements refuses none that it should not.
#[test]
fn the_grammar_knows_most_of_it_and_loses_nothing() {
    use crate::sql::rewrite::lexical::for_grammar;
    let lexical_text = |statement: &str| for_grammar(statement).unwrap().unwrap_or_else(|| statement.to_owned());
    let mut unknown = Vec::new();
    for statement in STATEMENTS {
        let parsed = one(statement);
        match parsed.tree() {
            None => unknown.push(*statement),
            Some(tree) => {
                crate::sql::rewrite::roundtrip::write_out(&lexical_text(statement), tree, tree)
                    .unwrap_or_else(|error| panic!("{statement}: {error}"));
            }
        }
    }
    assert!(unknown.len() <= 9, "{unknown:#?}");
}
