//! What looks like SQL and is not PostgreSQL's, and PostgreSQL's that is not carried out: each under its right SQLSTATE and tag.

use crate::client::{Client, parse};
use crate::server;

fn with_products() -> (testbed::Forebay, Client) {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE products (sku text PRIMARY KEY, n int, a int[])");
    client.run("INSERT INTO products VALUES ('a', 1, '{1,2}'), ('b', 2, NULL), ('c', 3, NULL)");
    (server, client)
}

#[test]
fn what_is_refused_has_its_sqlstate() {
    let (_server, mut client) = with_products();
    for (sql, sqlstate, words) in [
        ("SELECT 'a' 'b'", "42601", "'b'"),
        ("SELECT sku FROM 'products'", "42601", "'products'"),
        ("SELECT sku AS 'x' FROM products", "42601", "'x'"),
        ("SELECT p.sku FROM products AS 'p'", "42601", "'p'"),
        ("SELECT products.'sku' FROM products", "42601", "'sku'"),
        ("INSERT INTO products ('sku') VALUES ('d')", "42601", "'sku'"),
        ("UPDATE products SET 'n' = 1", "42601", "'n'"),
        ("CREATE INDEX 'i' ON products (n)", "42601", "'i'"),
        ("WITH 'w' AS (SELECT 1) SELECT 1", "42601", "'w'"),
        ("ALTER TABLE products ADD COLUMN 'z' int", "42601", "'z'"),
        ("SELECT 'abc' COLLATE 'C'", "42601", "'C'"),
        ("SELECT extract('year' FROM now()) AS 'x'", "42601", "'x'"),
        ("SELECT 1 year", "42601", "year"),
        ("INSERT products VALUES ('d')", "42601", "products"),
        ("SELECT count() FROM products", "42809", "count(*) must be used"),
        ("SELECT count(DISTINCT *) FROM products", "42601", "*"),
        ("SELECT [sku] FROM products", "42601", "["),
        ("SELECT 1 + [1]", "42601", "["),
        ("SELECT 1 == 1", "42883", "integer == integer"),
        ("INSERT OVERWRITE INTO products VALUES ('d')", "42601", "OVERWRITE"),
        ("CREATE TABLE q (LIKE products INCLUDING ALL)", "0A000", "INCLUDING"),
        ("CREATE TABLE q (x bytea[])", "0A000", "bytea[]"),
        ("SELECT inet '1.2.3.4'", "0A000", "inet"),
        ("SELECT macaddr '08:00:2b:01:02:03'", "0A000", "macaddr"),
        ("SELECT ctid FROM products", "0A000", "ctid"),
        ("SELECT products.xmax FROM products", "0A000", "xmax"),
        ("SELECT xmin", "42703", "xmin"),
        ("EXPLAIN UPDATE products SET n = 1", "0A000", "EXPLAIN"),
        ("EXPLAIN UPDATE nope SET n = 1", "42P01", "nope"),
        ("REINDEX TABLE products", "0A000", "REINDEX"),
        (
            "CREATE TABLE q (a int CHECK (a IN (SELECT 1)))",
            "0A000",
            "cannot use subquery in check constraint",
        ),
        (
            "CREATE TABLE q (a int DEFAULT (SELECT 1))",
            "0A000",
            "cannot use subquery in DEFAULT expression",
        ),
        (
            "CREATE INDEX ON products (n) WHERE EXISTS (SELECT 1)",
            "0A000",
            "cannot use subquery in index predicate",
        ),
    ] {
        let answer = client.query(sql);
        assert_eq!(answer.sqlstate(), sqlstate, "{sql}: {:?}", answer.error());
        let message = answer.error().unwrap().message().to_owned();
        assert!(message.contains(words), "{sql}: {message}");
    }
}

#[test]
fn vacuum_and_analyze_are_read() {
    let (_server, mut client) = with_products();
    for (sql, tag) in [
        ("VACUUM ANALYZE products", "VACUUM"),
        ("VACUUM (ANALYZE) products (n), products", "VACUUM"),
        ("VACUUM (FULL, VERBOSE false) public.products", "VACUUM"),
        ("VACUUM FULL", "VACUUM"),
        ("VACUUM", "VACUUM"),
        ("VACUUM pg_class", "VACUUM"),
        ("ANALYSE products (sku)", "ANALYZE"),
        ("ANALYZE", "ANALYZE"),
    ] {
        assert_eq!(client.query(sql).tags(), [tag], "{sql}");
    }
    for (sql, sqlstate) in [
        ("VACUUM main", "42P01"),
        ("ANALYZE nope", "42P01"),
        ("VACUUM x.products", "3F000"),
        ("ANALYZE products (nope)", "42703"),
        ("VACUUM products (n)", "0A000"),
        ("VACUUM (NOPE)", "42601"),
        ("VACUUM INTO '/tmp/x'", "42601"),
        ("VACUUM products; SELECT 1", "25001"),
    ] {
        assert_eq!(client.query(sql).sqlstate(), sqlstate, "{sql}");
    }
    for (sql, message) in [
        ("VACUUM products", "VACUUM cannot run inside a transaction block"),
        (
            "CREATE INDEX CONCURRENTLY i ON products (n)",
            "CREATE INDEX CONCURRENTLY cannot run inside a transaction block",
        ),
        ("PRAGMA wal_checkpoint", "PRAGMA cannot run inside a transaction block"),
        ("PRAGMA optimize", "PRAGMA cannot run inside a transaction block"),
        (
            "PRAGMA incremental_vacuum",
            "PRAGMA cannot run inside a transaction block",
        ),
    ] {
        client.query("BEGIN");
        client.run("ANALYZE products");
        let error = client.query(sql).error().unwrap();
        assert_eq!((error.sqlstate(), error.message()), ("25001", message));
        client.query("ROLLBACK");
    }
}

#[test]
fn a_table_made_of_a_query_tells_its_rows() {
    let (_server, mut client) = with_products();
    for (sql, tag) in [
        ("CREATE TABLE copy AS TABLE products", "SELECT 3"),
        ("CREATE TABLE IF NOT EXISTS copy AS SELECT 1", "CREATE TABLE AS"),
        ("TABLE copy", "SELECT 3"),
        ("SELECT * FROM copy UNION DISTINCT TABLE copy", "SELECT 3"),
        ("CREATE INDEX CONCURRENTLY i ON copy (n)", "CREATE INDEX"),
        ("DROP INDEX CONCURRENTLY i", "DROP INDEX"),
    ] {
        assert_eq!(client.query(sql).tags(), [tag], "{sql}");
    }
}

#[test]
fn what_pg_dump_writes_is_taken() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    for sql in [
        "SET xmloption = content",
        "SET row_security = off",
        "SET default_table_access_method = heap",
        "CREATE TABLE public.t (id integer NOT NULL, no integer NOT NULL, s text, \
         CONSTRAINT c CHECK (((s)::text = ANY ((ARRAY['a'::character varying, 'b'::character varying])::text[]))))",
        "ALTER TABLE public.t OWNER TO postgres",
        "CREATE VIEW public.v AS SELECT t.id FROM public.t",
        "ALTER TABLE public.v OWNER TO postgres",
        "CREATE SEQUENCE public.t_id_seq AS integer START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1",
        "ALTER TABLE public.t_id_seq OWNER TO postgres",
        "ALTER TABLE public.t ALTER COLUMN no ADD GENERATED ALWAYS AS IDENTITY ( SEQUENCE NAME public.t_no_seq \
         START WITH 100 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1 )",
        "ALTER TABLE ONLY public.t ALTER COLUMN id SET DEFAULT nextval('public.t_id_seq'::regclass)",
        "INSERT INTO public.t (no, s) OVERRIDING SYSTEM VALUE VALUES (7, 'a')",
        "SELECT pg_catalog.setval('public.t_no_seq', 41, true)",
        "ALTER TABLE ONLY public.t ADD CONSTRAINT t_pkey PRIMARY KEY (id)",
        "CREATE INDEX i ON public.t USING btree (no) WHERE (s = ANY (ARRAY['a'::text, 'b'::text]))",
        "INSERT INTO public.t (s) VALUES ('b')",
        "SELECT setval('public.t_id_seq'::regclass, 9), nextval('t_id_seq'::regclass)",
    ] {
        client.run(sql);
    }
    assert_eq!(
        client.ask("SELECT string_agg(concat(id, ' ', no, ' ', s), ', ' ORDER BY id) FROM t"),
        "1 7 a, 2 42 b"
    );
    assert_eq!(client.query("INSERT INTO t (s) VALUES ('c')").sqlstate(), "23514");
    assert_eq!(client.query("INSERT INTO t (no) VALUES (1)").sqlstate(), "428C9");
}

#[test]
fn a_function_is_no_word() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a int); INSERT INTO t VALUES (1)");
    for word in [
        "now",
        "version",
        "statement_timestamp",
        "current_database",
        "pg_backend_pid",
    ] {
        for sql in [
            format!("SELECT {word} FROM t"),
            format!("DELETE FROM t WHERE {word} IS NOT NULL"),
        ] {
            assert_eq!(client.query(&sql).sqlstate(), "42703", "{sql}");
        }
        assert_eq!(client.ask(&format!("SELECT {word}() IS NOT NULL")), "t", "{word}");
    }
    for word in [
        "current_date",
        "localtimestamp",
        "current_catalog",
        "current_schema",
        "user",
        "SESSION_USER",
    ] {
        assert_eq!(client.ask(&format!("SELECT {word} IS NOT NULL FROM t")), "t", "{word}");
    }
}

#[test]
fn an_operator_that_does_not_associate_stands_alone() {
    let (_server, mut client) = with_products();
    for (sql, near) in [
        ("SELECT 1 < 2 = true", "="),
        ("SELECT 1 < 2 < 3", "<"),
        ("SELECT 1 = 1 = true", "="),
        ("SELECT true = 1 < 2", "<"),
        ("SELECT 1 BETWEEN 0 AND 2 BETWEEN true AND true", "BETWEEN"),
        ("SELECT 'a' LIKE 'a' LIKE 'a'", "LIKE"),
        ("SELECT 'a' LIKE 'a' NOT LIKE 'a'", "NOT"),
        ("SELECT 1 IS DISTINCT FROM 2 IS TRUE", "IS"),
        ("UPDATE products SET n = 1 WHERE n = 1 = true", "="),
    ] {
        let error = client.query(sql).error().unwrap();
        assert_eq!(error.sqlstate(), "42601", "{sql}");
        let message = format!("syntax error at or near \"{near}\"");
        assert_eq!(error.message(), message, "{sql}");
    }
    for (sql, value) in [
        ("SELECT (1 < 2) = true", "t"),
        ("SELECT true = (1 < 2)", "t"),
        ("SELECT 1 = 1 IS TRUE = true", "t"),
        ("SELECT 1 IS NULL IS NULL", "f"),
        ("SELECT 1 = 2 IS DISTINCT FROM true", "t"),
        ("SELECT 'a' LIKE 'a' = true", "t"),
        ("SELECT 1 BETWEEN 0 AND 2 = true", "t"),
        ("SELECT true = 1 IN (1)", "t"),
        ("SELECT 1 NOT IN (1) = true", "f"),
        ("SELECT 1 < any(array[1]) = true", "f"),
        ("SELECT extract('year' FROM date '2024-02-29')", "2024"),
    ] {
        assert_eq!(client.ask(sql), value, "{sql}");
    }
}

#[test]
fn nothing_stands_right_behind_a_number() {
    let (_server, mut client) = with_products();
    for junk in ["1a", "1e", "1e5x", "1.5a", "0x1F", "1_000", "1.a", ".5a", "1é"] {
        let error = client.query(&format!("SELECT {junk}")).error().unwrap();
        let message = format!("trailing junk after numeric literal at or near \"{junk}\"");
        assert_eq!((error.sqlstate(), error.message()), ("42601", message.as_str()));
    }
    for sql in [
        "SELECT $1a",
        "SELECT 1..2",
        "SELECT 1.2.3",
        "INSERT INTO products VALUES ('d', 1and)",
    ] {
        assert_eq!(client.query(sql).sqlstate(), "42601", "{sql}");
    }
    for (sql, value) in [
        ("SELECT 1 a", "1"),
        ("SELECT 1.", "1"),
        ("SELECT 1.e2", "100"),
        ("SELECT 1e+2", "100"),
        ("SELECT .5e-1", "0.05"),
        ("SELECT 1-1", "0"),
    ] {
        assert_eq!(client.ask(sql), value, "{sql}");
    }
}

#[test]
fn a_constant_in_a_clause_is_a_place_in_the_list() {
    let (_server, mut client) = with_products();
    for (sql, sqlstate, message) in [
        (
            "SELECT n FROM products ORDER BY -1",
            "42P10",
            "ORDER BY position -1 is not in select list",
        ),
        (
            "SELECT n FROM products ORDER BY -(1)",
            "42P10",
            "ORDER BY position -1 is not in select list",
        ),
        (
            "SELECT n FROM products ORDER BY 1.5",
            "42601",
            "non-integer constant in ORDER BY",
        ),
        (
            "SELECT n FROM products UNION SELECT 3 ORDER BY 2",
            "42P10",
            "ORDER BY position 2 is not in select list",
        ),
        (
            "SELECT count(*) FROM products GROUP BY -1",
            "42P10",
            "GROUP BY position -1 is not in select list",
        ),
        (
            "SELECT count(*) FROM products GROUP BY 2",
            "42P10",
            "GROUP BY position 2 is not in select list",
        ),
        (
            "SELECT count(*) FROM products GROUP BY 'a'",
            "42601",
            "non-integer constant in GROUP BY",
        ),
        (
            "SELECT count(*) FROM products GROUP BY true",
            "42601",
            "non-integer constant in GROUP BY",
        ),
        (
            "SELECT DISTINCT ON (5) n FROM products",
            "42P10",
            "DISTINCT ON position 5 is not in select list",
        ),
        (
            "SELECT DISTINCT ON ('a') n FROM products",
            "42601",
            "non-integer constant in DISTINCT ON",
        ),
        (
            "INSERT INTO products (n) VALUES (1) on conflict (n) where n > 3 do nothing",
            "0A000",
            "a condition on the target of ON CONFLICT is not supported",
        ),
        (
            "INSERT INTO products (n) VALUES (1) ON CONFLICT (abs(n)) DO NOTHING",
            "0A000",
            "an expression as the target of ON CONFLICT is not supported",
        ),
        (
            "SELECT DISTINCT ON (n) n FROM products ORDER BY n, max(n) OVER ()",
            "0A000",
            "DISTINCT ON by a window function is not supported",
        ),
    ] {
        let error = client.query(sql).error().unwrap();
        assert_eq!((error.sqlstate(), error.message()), (sqlstate, message), "{sql}");
    }
    // Two signs are none, and a plus is an operator.
    for sql in [
        "SELECT n FROM products ORDER BY - -1 LIMIT 1",
        "SELECT n FROM products ORDER BY +1, n LIMIT 1",
    ] {
        assert_eq!(client.ask(sql), "1", "{sql}");
    }
}

#[test]
fn an_aggregate_of_outer_columns_is_no_aggregate_of_the_inner_query() {
    let (_server, mut client) = with_products();
    for argument in [
        "max((SELECT p.n LIMIT 1))",
        "max((SELECT o.n FROM products o WHERE o.sku = p.sku))",
        "count(EXISTS (SELECT 1 WHERE p.n > 1))",
        "count(1) FILTER (WHERE (SELECT p.n) > 1)",
        "count((SELECT (SELECT p.n)))",
        "count(array(SELECT p.n))",
    ] {
        let sql = format!("SELECT (SELECT {argument} FROM (VALUES (1), (2)) v(x)) FROM products p");
        let error = client.query(&sql).error().unwrap();
        assert_eq!(error.sqlstate(), "0A000", "{sql}");
        assert!(error.message().contains("outer query"), "{sql}: {}", error.message());
    }
    for (sql, values) in [
        ("SELECT sum((SELECT p.n)) FROM products p", vec!["6"]),
        (
            "SELECT (SELECT count((SELECT p.n + v.x)) FROM (VALUES (1), (2)) v(x)) FROM products p",
            vec!["2"; 3],
        ),
        (
            "SELECT sum((SELECT count(*) FROM products o WHERE o.sku = p.sku)) FROM products p",
            vec!["3"],
        ),
        (
            "SELECT (SELECT sum((SELECT count(o.n) FROM products o WHERE o.n = v.x)) FROM (VALUES (1), (2)) v(x)) FROM products p",
            vec!["2"; 3],
        ),
    ] {
        let rows = client.run(sql).rows();
        let found: Vec<&str> = rows.iter().filter_map(|row| row[0].as_deref()).collect();
        assert_eq!(found, values, "{sql}");
    }
}

#[test]
fn on_conflict_tells_its_two_rows_apart() {
    let (_server, mut client) = with_products();
    let upsert = "INSERT INTO products VALUES ('a', 5) ON CONFLICT (sku) DO UPDATE SET";
    for rest in ["n = n + 1", "n = products.n WHERE n > 0", "n = (SELECT n + 1)"] {
        let error = client.query(&format!("{upsert} {rest}")).error().unwrap();
        assert_eq!(
            (error.sqlstate(), error.message()),
            ("42702", "column reference \"n\" is ambiguous"),
            "{rest}"
        );
    }
    assert_eq!(
        client.ask(&format!("{upsert} n = products.n + excluded.n RETURNING n")),
        "6"
    );
    assert_eq!(
        client.ask(&format!("{upsert} n = (SELECT n FROM (SELECT 7 AS n) q) RETURNING n")),
        "7"
    );

    client.run("CREATE UNIQUE INDEX some ON products (n) WHERE n > 3");
    client.run("CREATE UNIQUE INDEX lowered ON products (lower(sku))");
    for target in ["n", "sku, n"] {
        for action in ["NOTHING", "UPDATE SET n = 1"] {
            let sql = format!("INSERT INTO products VALUES ('a', 5) ON CONFLICT ({target}) DO {action}");
            // Also where nothing is executed yet.
            let answer = client.pipeline(&[parse("", &sql)]);
            assert_eq!(answer.sqlstate(), "42P10", "{sql}");
        }
    }
    client.run("CREATE UNIQUE INDEX both ON products (n, sku)");
    client.run("INSERT INTO products VALUES ('a', 7) ON CONFLICT (sku, n) DO NOTHING");
    client.run("INSERT INTO products VALUES ('a', 7) ON CONFLICT (sku, sku) DO NOTHING");
}

#[test]
fn overlaps_stands_between_two_rows() {
    let (_server, mut client) = with_products();
    let rows = "(date '2024-01-01', date '2024-01-03') OVERLAPS (date '2024-01-02', date '2024-01-04')";
    for (sql, value) in [
        (format!("SELECT 'x' || {rows}"), "xtrue"),
        (format!("SELECT {rows} || 'x'"), "truex"),
        (format!("SELECT false = {rows}"), "f"),
        (format!("SELECT NOT {rows}::bool"), "f"),
        (format!("SELECT {rows}::text || 1"), "true1"),
    ] {
        assert_eq!(client.ask(&sql), value, "{sql}");
    }
}
