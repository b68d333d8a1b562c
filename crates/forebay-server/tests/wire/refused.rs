//! What the guide lists as refused is refused, with 0A000; and each of the list's lines is tried here.

use std::{fs, path::Path};

use crate::client::{Client, query};
use crate::server;

/// Words of the guide's list, and a statement that asks for what they name.
const REFUSED: &[(&str, &str)] = &[
    (
        "`ALTER COLUMN … TYPE`",
        "ALTER TABLE checked ALTER COLUMN a TYPE char(3)",
    ),
    (
        "functions",
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    ),
    ("procedures", "CREATE PROCEDURE p() LANGUAGE sql AS 'SELECT 1'"),
    ("`CALL`", "CALL p()"),
    ("`DO`", "DO 'BEGIN END'"),
    ("triggers", "CREATE TRIGGER r AFTER INSERT ON t EXECUTE FUNCTION f()"),
    ("`CREATE RULE`", "CREATE RULE r AS ON INSERT TO t DO NOTHING"),
    ("policies", "CREATE POLICY p ON t"),
    ("row level security", "ALTER TABLE t ENABLE ROW LEVEL SECURITY"),
    ("`CREATE ROLE`", "CREATE ROLE r"),
    ("`GRANT`", "GRANT SELECT ON t TO public"),
    ("`REVOKE`", "REVOKE SELECT ON t FROM public"),
    ("`SET ROLE`", "SET ROLE r"),
    ("`CREATE EXTENSION`", "CREATE EXTENSION postgis"),
    ("`CREATE DATABASE`", "CREATE DATABASE d"),
    ("`ALTER SYSTEM`", "ALTER SYSTEM SET work_mem = '1MB'"),
    ("`CREATE PUBLICATION`", "CREATE PUBLICATION p"),
    ("foreign tables", "CREATE FOREIGN TABLE f (a int) SERVER s"),
    ("in schemas beside `public`", "ALTER TABLE s.t RENAME TO u"),
    (
        "under another `search_path`",
        "SET LOCAL search_path = s; CREATE VIEW u AS SELECT 1",
    ),
    ("`ALTER SCHEMA`", "ALTER SCHEMA s RENAME TO r"),
    ("`AUTHORIZATION`", "CREATE SCHEMA AUTHORIZATION r"),
    ("`COMMENT`", "COMMENT ON CONSTRAINT t_pkey ON t IS 'words'"),
    (
        "`ALTER SEQUENCE … RENAME TO`",
        "ALTER SEQUENCE t_id_seq RENAME TO numbers",
    ),
    ("`CACHE` of more than one number", "CREATE SEQUENCE numbers CACHE 10"),
    ("`CREATE TEMPORARY TABLE`", "CREATE TEMPORARY TABLE u (a int)"),
    ("`CREATE UNLOGGED TABLE`", "CREATE UNLOGGED TABLE u (a int)"),
    ("partitions", "CREATE TABLE u (a int) PARTITION BY RANGE (a)"),
    ("`INHERITS`", "CREATE TABLE u () INHERITS (t)"),
    ("`LIKE`", "CREATE TABLE u (LIKE t)"),
    ("materialized views", "CREATE MATERIALIZED VIEW m AS SELECT 1"),
    ("INSERT, UPDATE and DELETE of a view", "INSERT INTO v (a) VALUES (1)"),
    ("INSERT, UPDATE and DELETE of a view", "UPDATE v SET a = 1"),
    ("INSERT, UPDATE and DELETE of a view", "DELETE FROM v"),
    ("`CREATE TYPE`", "CREATE TYPE y AS ENUM ('a')"),
    ("`CREATE DOMAIN`", "CREATE DOMAIN d AS int"),
    (
        "`CREATE AGGREGATE`",
        "CREATE AGGREGATE g (int) (sfunc = int4pl, stype = int)",
    ),
    (
        "`CREATE OPERATOR`",
        "CREATE OPERATOR === (leftarg = int, rightarg = int, function = int4eq)",
    ),
    ("`CREATE CAST`", "CREATE CAST (int AS text) WITHOUT FUNCTION"),
    ("`CREATE COLLATION`", "CREATE COLLATION c FROM \"C\""),
    ("`USING gin`", "CREATE INDEX ON t USING gin (doc)"),
    ("`gist`", "CREATE INDEX ON t USING gist (a)"),
    ("`brin`", "CREATE INDEX ON t USING brin (a)"),
    ("`INCLUDE`", "CREATE INDEX ON t (a) INCLUDE (b)"),
    (
        "`NULLS NOT DISTINCT`",
        "CREATE UNIQUE INDEX ON t (a) NULLS NOT DISTINCT",
    ),
    ("`EXCLUDE`", "CREATE TABLE u (a int, EXCLUDE USING btree (a WITH =))"),
    ("`MATCH FULL`", "CREATE TABLE u (a int REFERENCES t (id) MATCH FULL)"),
    ("`DEFERRABLE`", "CREATE TABLE u (a int UNIQUE DEFERRABLE)"),
    ("`LATERAL`", "SELECT * FROM t, LATERAL (SELECT t.a) AS l"),
    ("`GROUPING SETS`", "SELECT a FROM t GROUP BY GROUPING SETS ((a))"),
    ("`ROLLUP`", "SELECT a FROM t GROUP BY ROLLUP (a)"),
    ("`CUBE`", "SELECT a FROM t GROUP BY CUBE (a)"),
    (
        "`FETCH … WITH TIES`",
        "SELECT a FROM t ORDER BY a FETCH FIRST 1 ROW WITH TIES",
    ),
    ("`TABLESAMPLE`", "SELECT a FROM t TABLESAMPLE SYSTEM (10)"),
    (
        "`ROWS FROM`",
        "SELECT * FROM ROWS FROM (generate_series(1, 2), generate_series(1, 3)) AS r",
    ),
    ("in a select list", "SELECT unnest(many) FROM t"),
    (
        "`SET DEFAULT` of a foreign key",
        "CREATE TABLE u (a int DEFAULT 1 REFERENCES t ON DELETE SET DEFAULT DEFERRABLE INITIALLY DEFERRED)",
    ),
    (
        "`SET DEFAULT` of a foreign key",
        "CREATE TABLE u (a int REFERENCES t ON UPDATE SET DEFAULT DEFERRABLE INITIALLY DEFERRED); \
         ALTER TABLE u ALTER a SET DEFAULT 1",
    ),
    ("`WITHIN GROUP`", "SELECT mode() WITHIN GROUP (ORDER BY a) FROM t"),
    (
        "over columns of an outer query",
        "SELECT (SELECT count(o.a) FROM t) FROM t AS o",
    ),
    (
        "`RANGE` with an offset",
        "SELECT sum(a) OVER (ORDER BY id RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
    ),
    ("`ROW(1, 2)`", "SELECT ROW(1, 2)"),
    ("`SELECT t FROM t`", "SELECT t FROM t"),
    ("`row_to_json(t)`", "SELECT row_to_json(t) FROM t"),
    ("slices of arrays", "SELECT many[1:2] FROM t"),
    ("`jsonpath`", "SELECT doc @? '$.a' FROM t"),
    ("`to_tsvector`", "SELECT to_tsvector('words')"),
    ("`@@`", "SELECT b @@ 'words' FROM t"),
    ("back references", "SELECT 'aa' ~ '(a)\\1'"),
    ("lookaround", "SELECT 'ab' ~ 'a(?=b)'"),
    ("collations", "SELECT 'a' COLLATE \"en_US\""),
    (
        "the catalog and tables of one's own",
        "SELECT relname FROM t JOIN pg_class ON relname = b",
    ),
    ("`EXPLAIN ANALYZE`", "EXPLAIN ANALYZE SELECT 1"),
    ("inside `WITH`", "WITH w AS (DELETE FROM t RETURNING a) SELECT a FROM w"),
    (
        "`MERGE`",
        "MERGE INTO t USING (SELECT 1 AS a) s ON t.a = s.a WHEN MATCHED THEN DELETE",
    ),
    ("`SET (a, b) = (SELECT …)`", "UPDATE t SET (a, b) = (SELECT 1, 'b')"),
    (
        "sets the key itself",
        "INSERT INTO t VALUES (1), (2) ON CONFLICT (id) DO UPDATE SET id = t.id + 1",
    ),
    ("`SELECT … INTO`", "SELECT a INTO u FROM t"),
    (
        "`RETURNING` of another table's columns",
        "UPDATE t SET a = 1 FROM v RETURNING v.a",
    ),
    (
        "a query in `RETURNING`",
        "UPDATE t SET a = 1 RETURNING (SELECT max(a) FROM t)",
    ),
    (
        "`ON CONFLICT (name) WHERE active`",
        "INSERT INTO t (a) VALUES (1) ON CONFLICT (a) WHERE a > 0 DO NOTHING",
    ),
    ("more than 64 ways", "DELETE FROM w0"),
    (
        "sets one foreign key of a row to NULL",
        "UPDATE low SET id = id; DELETE FROM top",
    ),
    ("`BINARY` cursors", "DECLARE c BINARY CURSOR FOR SELECT 1"),
    ("`WHERE CURRENT OF`", "DELETE FROM t WHERE CURRENT OF c"),
    ("`PREPARE TRANSACTION`", "PREPARE TRANSACTION 'p'"),
    ("`COPY` of a file", "COPY t TO '/tmp/t'"),
    ("of a program", "COPY t TO PROGRAM 'cat'"),
    ("`SET synchronous_commit = off`", "SET synchronous_commit = off"),
    ("`txid_current`", "SELECT txid_current()"),
    ("`pg_current_xact_id`", "SELECT pg_current_xact_id()"),
    ("large objects", "SELECT lo_create(0)"),
    ("`inet`", "SELECT '127.0.0.1'::inet"),
    ("`bit`", "SELECT B'101'"),
    ("`money`", "SELECT '1'::money"),
    ("with Unicode escapes", "SELECT U&\"a\" FROM t"),
    ("in upper and lower case only", "CREATE TABLE \"T\" (a int)"),
    ("in upper and lower case only", "CREATE TABLE u (a int, \"A\" int)"),
    (
        "in upper and lower case only",
        "CREATE TABLE u AS SELECT 1 AS a, 2 AS \"A\"",
    ),
    ("in upper and lower case only", "CREATE VIEW \"V\" AS SELECT 1"),
    ("in upper and lower case only", "ALTER TABLE t ADD COLUMN \"A\" int"),
    ("in upper and lower case only", "ALTER TABLE t RENAME COLUMN b TO \"A\""),
    ("in upper and lower case only", "ALTER TABLE t RENAME TO \"Checked\""),
    ("`xml`", "SELECT '<a/>'::xml"),
    ("`tsvector`", "SELECT 'a'::tsvector"),
    ("ranges", "SELECT '[1,2]'::int4range"),
    ("geometry", "SELECT point(1, 2)"),
    ("arrays of `bytea`", "SELECT ARRAY['a'::bytea]"),
    ("NaN", "SELECT 'NaN'::double precision"),
    ("years before 0001", "SELECT '0044-03-15 BC'::date"),
    ("after 9999", "SELECT '10000-01-01'::date"),
];

/// The lines of the chapter's last part.
fn list() -> Vec<String> {
    let chapter = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guide/src/server.md");
    let text = fs::read_to_string(chapter).unwrap();
    let (_, list) = text.split_once("\n## What is refused\n").unwrap();
    list.lines()
        .filter_map(|line| line.strip_prefix("- "))
        .map(str::to_owned)
        .collect()
}

#[test]
fn what_the_guide_lists_is_refused() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (id serial PRIMARY KEY, a int, b text, many int[], doc jsonb)");
    client.run("CREATE VIEW v AS SELECT a FROM t; CREATE TABLE checked (a text CHECK (a <> 'b '))");
    client.run("CREATE SCHEMA s; CREATE TABLE s.t (a int)");
    client.run("CREATE TABLE w0 (id int PRIMARY KEY)");
    for table in 1..8 {
        let key = |to: i32| format!(", k{to} int REFERENCES w{to} ON DELETE CASCADE");
        let keys: String = (0..table).map(key).collect();
        client.run(&format!("CREATE TABLE w{table} (id int PRIMARY KEY{keys})"));
    }
    client.run("CREATE TABLE w (a int REFERENCES w7 ON DELETE CASCADE, b int REFERENCES w7)");
    client.run("CREATE TABLE top (id int PRIMARY KEY)");
    client.run("CREATE TABLE low (id int PRIMARY KEY, loose int REFERENCES top ON DELETE SET NULL)");
    client.run("CREATE TABLE middle (id int PRIMARY KEY, up int REFERENCES top ON DELETE CASCADE)");
    client.run("ALTER TABLE low ADD COLUMN up int REFERENCES middle ON DELETE CASCADE");
    client.run("INSERT INTO top VALUES (1); INSERT INTO middle VALUES (1, 1); INSERT INTO low VALUES (1, 1, 1)");
    let list = list();
    let mut wrong = Vec::new();
    for (words, statement) in REFUSED {
        if !list.iter().any(|line| line.contains(words)) {
            wrong.push(format!("the guide does not list {words}"));
        }
        client.send(&query(statement));
        let sqlstate = client.answer().sqlstate();
        if sqlstate != "0A000" {
            wrong.push(format!("{statement}: {sqlstate}"));
        }
    }
    for line in list {
        if !REFUSED.iter().any(|(words, _)| line.contains(words)) {
            wrong.push(format!("nothing is tried of: {line}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
