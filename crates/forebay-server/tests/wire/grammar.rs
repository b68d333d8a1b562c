//! What looks like SQL and is not PostgreSQL's, and PostgreSQL's that is not carried out: each under its right SQLSTATE and tag.

use crate::client::Client;
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
