//! The types of parameters and columns, by describing statements on a real schema.

use postgres_types::Type;
use rusqlite::Connection;

use super::{database, one, run};
use crate::sql::{Description, Kind, describe, parameter_number};

fn schema() -> Connection {
    let connection = database();
    run(
        &connection,
        "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL, age INT, score REAL, data BLOB, born DATE,
             seen TIMESTAMPTZ, made TIMESTAMP, active BOOLEAN, price NUMERIC(10,2), doc JSONB, token UUID, at TIME, free);
         CREATE TABLE posts (id bigserial PRIMARY KEY, user_id bigint REFERENCES users (id), title varchar(80), views int);
         CREATE VIEW stats AS SELECT u.name, count(*) AS posts, avg(p.views) AS mean, max(u.seen) AS last
             FROM users u JOIN posts p ON p.user_id = u.id GROUP BY u.id;
         CREATE VIEW deep AS SELECT posts + 1 AS more FROM stats",
    )
    .unwrap();
    connection
}

fn described(connection: &Connection, sql: &str) -> Description {
    describe(connection, &one(sql), &[]).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn names(kinds: &[Type]) -> String {
    kinds.iter().map(Type::name).collect::<Vec<_>>().join(" ")
}

#[test]
fn parameters_are_of_the_type_of_what_they_meet() {
    let connection = schema();
    for (sql, expected) in [
        // INSERT.
        (
            "INSERT INTO users VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
            "int8 text int8 float8 bytea date timestamptz timestamp bool numeric jsonb uuid time text",
        ),
        ("INSERT INTO users (name, age) VALUES ($2, $1)", "int8 text"),
        ("INSERT INTO users (name, age) VALUES ('a', $1), ($2, 3)", "int8 text"),
        ("INSERT INTO users (age, name) SELECT $1, $2", "int8 text"),
        (
            "INSERT INTO users (age, born) SELECT $1, $2 UNION ALL SELECT $3, $4",
            "int8 date int8 date",
        ),
        (
            "INSERT INTO users (age) SELECT views FROM posts WHERE title = $1",
            "text",
        ),
        (
            "INSERT INTO users (id, name) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET score = $3, seen = excluded.seen WHERE users.age > $4",
            "int8 text float8 int8",
        ),
        ("INSERT INTO users (age) VALUES ($1 + 1)", "int8"),
        ("INSERT INTO users (born) VALUES (coalesce($1, current_date))", "date"),
        (
            "INSERT OR REPLACE INTO public.users (name, active) VALUES ($1, $2)",
            "text bool",
        ),
        // UPDATE, DELETE.
        (
            "UPDATE users SET name = $1, age = age + $2, seen = $3 WHERE id = $4",
            "text int8 timestamptz int8",
        ),
        ("UPDATE users SET (age, born) = ($1, $2)", "int8 date"),
        ("UPDATE users SET (age, born) = (SELECT $1, $2)", "int8 date"),
        (
            "UPDATE users SET score = p.views FROM posts AS p WHERE p.user_id = users.id AND p.title = $1 AND users.active = $2",
            "text bool",
        ),
        ("DELETE FROM users WHERE token = $1 OR price > $2", "uuid numeric"),
        (
            "DELETE FROM users AS u WHERE u.seen < $1 RETURNING $2 + age",
            "timestamptz int8",
        ),
        // Comparisons.
        ("SELECT * FROM users WHERE id = $1", "int8"),
        ("SELECT * FROM users WHERE $1 = id", "int8"),
        (
            "SELECT * FROM users WHERE id == ?1 AND age <> ?2 AND score >= ?3",
            "int8 int8 float8",
        ),
        (
            "SELECT * FROM users WHERE born < $1 AND made > $2 AND at = $3",
            "date timestamp time",
        ),
        ("SELECT * FROM users WHERE id IS NOT $1 AND age IS $2", "int8 int8"),
        ("SELECT * FROM users WHERE id IS DISTINCT FROM $1", "int8"),
        (
            "SELECT * FROM users WHERE seen BETWEEN $1 AND $2",
            "timestamptz timestamptz",
        ),
        ("SELECT * FROM users WHERE $1 BETWEEN born AND $2", "date date"),
        ("SELECT * FROM users WHERE id IN ($1, $2, 5)", "int8 int8"),
        ("SELECT * FROM users WHERE $1 IN (SELECT token FROM users)", "uuid"),
        (
            "SELECT * FROM users WHERE id NOT IN (SELECT user_id FROM posts WHERE views > $1)",
            "int8",
        ),
        ("SELECT * FROM users WHERE (id, born) = ($1, $2)", "int8 date"),
        (
            "SELECT * FROM users WHERE (id, born) IN (($1, $2), ($3, $4))",
            "int8 date int8 date",
        ),
        ("SELECT * FROM users WHERE (id, born) > ($1, $2)", "int8 date"),
        ("SELECT * FROM users WHERE data = $1 AND doc = $2", "bytea jsonb"),
        ("SELECT * FROM users WHERE free = $1", "text"),
        ("SELECT * FROM users WHERE rowid = $1 OR users.oid = $2", "int8 int8"),
        ("SELECT * FROM users WHERE ($1) = (id)", "int8"),
        ("SELECT * FROM users WHERE id = -$1", "int8"),
        (
            "SELECT * FROM users WHERE name LIKE $1 AND name ILIKE $2 AND name GLOB $3",
            "text text text",
        ),
        (
            "SELECT * FROM users WHERE lower(name) = lower($1) AND length(name) > $2",
            "text int8",
        ),
        // Truth.
        ("SELECT * FROM users WHERE $1", "bool"),
        ("SELECT * FROM users WHERE NOT $1 AND ($2 OR active)", "bool bool"),
        ("SELECT CASE WHEN $1 THEN 1 END", "bool"),
        ("SELECT iif($1, age, $2) FROM users", "bool int8"),
        ("SELECT count(*) FILTER (WHERE $1) FROM users", "bool"),
        // Casts.
        (
            "SELECT $1::int, $2::date, CAST($3 AS timestamptz), $4::text, $5::numeric(5,2)",
            "int8 date timestamptz text numeric",
        ),
        ("SELECT ($1)::uuid", "uuid"),
        ("SELECT CAST($1 AS INTEGER)", "int8"),
        // Arithmetic and functions.
        ("SELECT $1 + 1, score * $2, age / $3 FROM users", "int8 float8 int8"),
        (
            "SELECT coalesce(age, $1), ifnull($2, born), nullif(name, $3) FROM users",
            "int8 date text",
        ),
        (
            "SELECT CASE age WHEN $1 THEN seen ELSE $2 END FROM users",
            "int8 timestamptz",
        ),
        (
            "SELECT max($1, age), abs($2 + score), substr(name, $3, $4) FROM users",
            "int8 float8 int8 int8",
        ),
        ("SELECT 'a' || $1", "text"),
        ("SELECT name -> $1 FROM users", "text"),
        ("SELECT * FROM users LIMIT $1 OFFSET $2", "int8 int8"),
        ("SELECT * FROM users LIMIT $1, $2", "int8 int8"),
        (
            "SELECT * FROM users ORDER BY id OFFSET $1 ROWS FETCH FIRST $2 ROWS ONLY",
            "int8 int8",
        ),
        // Scopes.
        (
            "SELECT * FROM users u JOIN posts p ON p.user_id = u.id AND p.title = $1 WHERE u.born = $2",
            "text date",
        ),
        ("SELECT * FROM users AS posts WHERE posts.born = $1", "date"),
        (
            "SELECT * FROM (SELECT born AS b, id FROM users) AS s WHERE s.b = $1",
            "date",
        ),
        (
            "WITH c AS (SELECT born AS b FROM users WHERE id = $1) SELECT * FROM c WHERE b = $2",
            "int8 date",
        ),
        (
            "WITH c (x) AS (SELECT seen FROM users) SELECT * FROM c WHERE x = $1",
            "timestamptz",
        ),
        (
            "WITH users AS (SELECT 'a' AS id) SELECT * FROM users WHERE id = $1",
            "text",
        ),
        (
            "WITH RECURSIVE n (i, d) AS (SELECT 1, born FROM users UNION ALL SELECT i + 1, d FROM n WHERE i < $1) SELECT * FROM n WHERE d = $2",
            "int8 date",
        ),
        (
            "WITH c AS (SELECT $1 AS x) INSERT INTO users (born, name) SELECT $2, x FROM c",
            "text date",
        ),
        (
            "SELECT (SELECT title FROM posts WHERE posts.user_id = users.id AND views = $1) FROM users WHERE made = $2",
            "int8 timestamp",
        ),
        (
            "SELECT * FROM users WHERE EXISTS (SELECT 1 FROM posts WHERE user_id = users.id AND users.seen > $1)",
            "timestamptz",
        ),
        (
            "SELECT * FROM users WHERE id = (SELECT user_id FROM posts WHERE born = $1)",
            "date",
        ),
        (
            "SELECT name AS born2 FROM users WHERE \"born\" = $1 AND `made` = $2 AND [at] = $3",
            "date timestamp time",
        ),
        (
            "SELECT * FROM stats WHERE posts > $1 AND mean < $2 AND name = $3",
            "int8 float8 text",
        ),
        ("SELECT * FROM deep WHERE more = $1", "int8"),
        ("SELECT id FROM users UNION SELECT $1", "int8"),
        ("SELECT sum(age) OVER (PARTITION BY $1 ORDER BY id) FROM users", "text"),
        ("VALUES ($1, 2), (DATE '2024-01-01', $2)", "date int8"),
        ("EXPLAIN QUERY PLAN SELECT * FROM users WHERE born = $1", "date"),
        // Numbers and repetition.
        ("SELECT * FROM users WHERE born = $2", "text date"),
        ("SELECT $1 FROM users WHERE id = $1", "int8"),
        ("SELECT * FROM users WHERE id = $1 OR name = $1", "int8"),
        ("SELECT * FROM users WHERE id = ? AND born = ?", "int8 date"),
        ("SELECT $1", "text"),
        // The grammar does not know INDEXED BY.
        ("SELECT * FROM users NOT INDEXED WHERE id = $2", "text text"),
    ] {
        let found = described(&connection, sql);
        assert_eq!(names(&found.parameters), expected, "{sql}");
    }
}

#[test]
fn columns_are_of_the_type_they_were_declared_or_of_their_expression() {
    let connection = schema();
    for (sql, expected) in [
        (
            "SELECT * FROM users",
            "int8 text int8 float8 bytea date timestamptz timestamp bool numeric jsonb uuid time text",
        ),
        (
            "SELECT u.born AS b, p.* FROM users u, posts p",
            "date int8 int8 text int8",
        ),
        ("SELECT rowid FROM posts", "int8"),
        ("SELECT * FROM stats", "text int8 float8 timestamptz"),
        ("SELECT * FROM deep", "int8"),
        (
            "SELECT count(*), count(id), length(name), sum(age), sum(score), avg(age), total(age) FROM users",
            "int8 int8 int8 int8 float8 float8 float8",
        ),
        ("SELECT sum(price), sum(free) FROM users", "numeric numeric"),
        (
            "SELECT min(born), max(seen), max(age, score) FROM users",
            "date timestamptz float8",
        ),
        (
            "SELECT id = 1, age > 2 AND active, NOT active, id IN (1), EXISTS (SELECT 1), name IS NULL, age BETWEEN 1 AND 2, name LIKE 'a', true, id IS 5 FROM users",
            "bool bool bool bool bool bool bool bool bool bool",
        ),
        (
            "SELECT 1, 1.5, 'a', x'00', NULL, false, 99999999999999999999",
            "int8 float8 text bytea text bool float8",
        ),
        (
            "SELECT age + 1, age / 2, age * 1.5, score - 1, -age, price * 2, free + 1, age % 2, ~age, age << 1 FROM users",
            "int8 int8 float8 float8 int8 numeric numeric int8 int8 int8",
        ),
        (
            "SELECT name || age, upper(name), substr(name, 1), group_concat(name) FROM users",
            "text text text text",
        ),
        (
            "SELECT name::int, age::text, age::bool, '2024-01-01'::date, CAST(name AS timestamptz), name::uuid, CAST(name AS REAL) FROM users",
            "int8 text bool date timestamptz uuid float8",
        ),
        (
            "SELECT CASE WHEN active THEN age ELSE 0 END, CASE WHEN active THEN age ELSE score END, CASE WHEN active THEN age ELSE name END FROM users",
            "int8 float8 text",
        ),
        (
            "SELECT CASE WHEN active THEN born END, CASE WHEN active THEN born ELSE '2024-01-01' END, CASE WHEN active THEN age ELSE 'none' END FROM users",
            "date date text",
        ),
        (
            "SELECT coalesce(born, '2024-01-01'), coalesce(age, 0), nullif(seen, now()), ifnull(name, 'x'), coalesce(age, free) FROM users",
            "date int8 timestamptz text text",
        ),
        (
            "SELECT now(), current_timestamp, localtimestamp, current_date, current_time",
            "timestamptz timestamptz timestamp date time",
        ),
        (
            "SELECT version(), current_user, pg_backend_pid(), pg_is_in_recovery(), current_schema(), gen_random_uuid()",
            "text text int8 bool text uuid",
        ),
        (
            "SELECT (SELECT seen FROM users), (SELECT count(*) FROM posts)",
            "timestamptz int8",
        ),
        (
            "SELECT json_object('a', 1), doc -> 'a', doc ->> 'a', json_extract(doc, '$.a'), json_valid(doc) FROM users",
            "json json text text bool",
        ),
        (
            "SELECT row_number() OVER (ORDER BY id), rank() OVER (ORDER BY id), lag(born) OVER (ORDER BY id), sum(age) OVER (), first_value(seen) OVER () FROM users",
            "int8 int8 date int8 timestamptz",
        ),
        (
            "SELECT n, d FROM (SELECT count(*) AS n, max(born) AS d FROM users)",
            "int8 date",
        ),
        ("WITH c (n) AS (SELECT count(*) FROM users) SELECT n + 1 FROM c", "int8"),
        (
            "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 3) SELECT n FROM c",
            "int8",
        ),
        ("SELECT id FROM users UNION SELECT 1.5", "int8"),
        ("SELECT 1 UNION SELECT 2.5", "float8"),
        ("SELECT 1 UNION SELECT 'a'", "text"),
        ("VALUES (1, 'a', 2), (2, 'b', 2.5)", "int8 text float8"),
        ("SELECT $1::date, $1", "date date"),
        ("SELECT $1, coalesce($1, 5) FROM users WHERE id = $1", "int8 int8"),
        (
            "SELECT * FROM users u JOIN posts USING (id)",
            "int8 text int8 float8 bytea date timestamptz timestamp bool numeric jsonb uuid time text int8 text int8",
        ),
        (
            "SELECT count(*), * FROM users NATURAL JOIN posts",
            "int8 int8 text int8 float8 bytea date timestamptz timestamp bool numeric jsonb uuid time text int8 text int8",
        ),
        // RETURNING.
        (
            "INSERT INTO users (name) VALUES ('a') RETURNING id, born, seen AS s, age + 1, name || 'x', free",
            "int8 date timestamptz int8 text text",
        ),
        (
            "INSERT INTO posts (title) VALUES ('a') RETURNING *",
            "int8 int8 text int8",
        ),
        (
            "UPDATE users SET age = 1 RETURNING *, active AND true",
            "int8 text int8 float8 bytea date timestamptz timestamp bool numeric jsonb uuid time text bool",
        ),
        ("DELETE FROM users RETURNING token, rowid", "uuid int8"),
        ("WITH c AS (SELECT 1) DELETE FROM users RETURNING born", "date"),
        // Told by SQLite about itself.
        ("PRAGMA table_info(users)", "int8 text text int8 text int8"),
        ("PRAGMA user_version", "int8"),
        ("EXPLAIN QUERY PLAN SELECT 1", "int8 int8 int8 text"),
        ("SELECT key, value FROM json_each('[1]')", "text text"),
        ("SELECT count(*) FROM users NOT INDEXED", "text"),
    ] {
        let found = described(&connection, sql);
        let kinds: Vec<Type> = found.columns.into_iter().map(|column| column.kind).collect();
        assert_eq!(names(&kinds), expected, "{sql}");
    }
}

#[test]
fn statements_without_rows_have_no_columns_and_say_whether_they_write() {
    let connection = schema();
    for (sql, read_only, columns) in [
        ("INSERT INTO users (name) VALUES ('a')", false, 0),
        ("INSERT INTO users (name) VALUES ('a') RETURNING id", false, 1),
        ("CREATE TABLE x (a)", false, 0),
        ("SELECT 1", true, 1),
        ("PRAGMA user_version", true, 1),
        ("PRAGMA user_version = 5", false, 0),
        ("PRAGMA wal_checkpoint", false, 3),
        ("PRAGMA optimize", false, 1),
        ("PRAGMA incremental_vacuum", false, 0),
        ("VACUUM", false, 0),
    ] {
        let found = described(&connection, sql);
        assert_eq!((found.read_only, found.columns.len()), (read_only, columns), "{sql}");
    }
    let version: i64 = connection
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap();
    assert_eq!(version, 0, "describing runs nothing");
}

#[test]
fn declared_types_win_and_unknown_ones_are_kept() {
    let connection = schema();
    let statement = one("SELECT $1, $2, $3, $4 FROM users WHERE id = $1 AND id = $2 AND id = $3");
    let found = describe(&connection, &statement, &[23, 0, 705, 999_999]).unwrap();
    let oids: Vec<u32> = found.parameters.iter().map(Type::oid).collect();
    assert_eq!(oids, [23, 20, 20, 999_999]);
    assert_eq!(found.columns[0].kind, Type::INT4);
    let found = describe(&connection, &one("SELECT 1"), &[25, 25]).unwrap();
    assert_eq!(found.parameters.len(), 2, "what the client declares it may bind");
}

#[test]
fn names_and_origins_are_sqlites() {
    let connection = schema();
    let found = described(&connection, "SELECT u.born AS b, 1 + 1, name FROM users u");
    let names: Vec<&str> = found.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["b", "1 + 1", "name"]);
    let origin = found.columns[0].origin.as_ref().unwrap();
    assert_eq!((origin.table.as_str(), origin.column.as_str()), ("users", "born"));
    assert_eq!(found.columns[1].origin, None);
}

#[test]
fn what_sqlite_refuses_is_its_own_error() {
    let connection = schema();
    for (sql, message) in [
        ("SELECT * FROM nowhere", "no such table: nowhere"),
        ("SELECT nothing_here FROM users", "no such column: nothing_here"),
        ("SELEC 1", "near \"SELEC\": syntax error"),
        ("SELECT DISTINCT ON (id) id FROM users", "syntax error"),
    ] {
        let error = describe(&connection, &one(sql), &[]).expect_err(sql);
        assert!(error.to_string().contains(message), "{sql}: {error}");
    }
}

#[test]
fn parameters_are_known_by_number_wherever_they_stand() {
    let connection = schema();
    for (sql, expected) in [
        ("SELECT $2, $1, $2", vec![2, 1]),
        ("SELECT ?2, ?1", vec![1, 2]),
        ("SELECT ?, ?", vec![1, 2]),
    ] {
        let statement = one(sql);
        let prepared = connection.prepare(&statement.sql).unwrap();
        let numbers: Vec<usize> = (1..=prepared.parameter_count())
            .map(|index| parameter_number(&prepared, index).unwrap())
            .collect();
        assert_eq!(numbers, expected, "{sql}");
        assert_eq!(statement.parameter_count(), 2);
    }
}

#[test]
fn a_catalog_querys_parameters_are_found_on_the_catalogs_connection() {
    let connection = database();
    connection
        .execute_batch(
            "ATTACH ':memory:' AS pg_catalog; CREATE TABLE pg_catalog.pg_type (oid OID, typname NAME, typlen SMALLINT)",
        )
        .unwrap();
    for sql in [
        "SELECT typname FROM pg_catalog.pg_type t WHERE t.oid = $1 AND typname = $2",
        "SELECT typname FROM pg_type WHERE oid OPERATOR(pg_catalog.=) $1 AND oid = $1 AND typname LIKE $2",
    ] {
        let statement = one(sql);
        assert_eq!(statement.kind, Kind::Catalog, "{sql}");
        let found = describe(&connection, &statement, &[]).unwrap();
        assert_eq!(names(&found.parameters), "oid text", "{sql}");
        assert_eq!(found.columns, [], "the columns are the catalog's to say");
    }
}

#[test]
fn describing_takes_bounded_work() {
    let connection = schema();
    let started = std::time::Instant::now();
    // Each level is looked at twice for the next one.
    let between = format!("SELECT {}$1{}", "(".repeat(120), " BETWEEN 1 AND 2)".repeat(120));
    describe(&connection, &one(&between), &[]).unwrap();
    let mut nested = "SELECT 1".to_owned();
    for level in 0..40 {
        nested =
            format!("WITH RECURSIVE c{level} (i) AS (SELECT * FROM ({nested}) UNION SELECT 2) SELECT i FROM c{level}");
    }
    // SQLite may have a lower limit of its own.
    let _ = describe(&connection, &one(&nested), &[]);
    // Without a bound this would not end in a lifetime.
    assert!(started.elapsed() < std::time::Duration::from_secs(60));
}
