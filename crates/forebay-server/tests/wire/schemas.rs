//! Schemas beside `public`: where names are looked up and made, and what the catalog tells of them. What is expected is what PostgreSQL
//! answers.

use crate::client::{Client, message};
use crate::server;

/// All values of the answer's rows; or the error's SQLSTATE and message.
fn told(client: &mut Client, sql: &str) -> String {
    let answer = client.query(sql);
    if let Some(error) = answer.error() {
        return format!("{} {}", error.sqlstate(), error.message());
    }
    let values = |row: Vec<Option<String>>| {
        row.into_iter()
            .map(Option::unwrap_or_default)
            .collect::<Vec<_>>()
            .join(" ")
    };
    answer.rows().into_iter().map(values).collect::<Vec<_>>().join(", ")
}

#[track_caller]
fn expect(client: &mut Client, script: &[(&str, &str)]) {
    for (sql, expected) in script {
        assert_eq!(told(client, sql), *expected, "{sql}");
    }
}

#[test]
fn tables_of_the_same_name_are_told_apart() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    expect(
        &mut client,
        &[
            ("CREATE TABLE x.t (a int)", "3F000 schema \"x\" does not exist"),
            ("CREATE SCHEMA x", ""),
            ("CREATE SCHEMA x", "42P06 schema \"x\" already exists"),
            ("CREATE SCHEMA IF NOT EXISTS x", ""),
            ("CREATE SCHEMA pg_x", "42939 unacceptable schema name \"pg_x\""),
            (
                "CREATE TABLE x.t (id serial PRIMARY KEY, a int UNIQUE, b text NOT NULL DEFAULT 'd')",
                "",
            ),
            ("CREATE TABLE t (id serial PRIMARY KEY, a int UNIQUE)", ""),
            ("CREATE TABLE x.t (a int)", "42P07 relation \"t\" already exists"),
            ("INSERT INTO x.t (a) VALUES (1), (2) RETURNING id, a, b", "1 1 d, 2 2 d"),
            ("INSERT INTO t (a) VALUES (7) RETURNING id, a", "1 7"),
            ("SELECT x.t.a, t.b FROM x.t WHERE t.id = 2", "2 d"),
            (
                "SELECT public.t.a FROM x.t",
                "42P01 missing FROM-clause entry for table \"t\"",
            ),
            ("SELECT u.a, t.a FROM x.t u JOIN t ON t.id = u.id", "1 7"),
            (
                "INSERT INTO x.t (a) VALUES (1)",
                "23505 duplicate key value violates unique constraint \"t_a_key\"",
            ),
            (
                "INSERT INTO x.t (b) VALUES (NULL)",
                "23502 null value in column \"b\" of relation \"t\" violates not-null constraint",
            ),
            (
                "INSERT INTO x.t (a) VALUES (1) ON CONFLICT ON CONSTRAINT t_a_key DO NOTHING RETURNING a",
                "",
            ),
            ("UPDATE x.t SET a = 5 WHERE x.t.id = 2 RETURNING a", "5"),
            ("SELECT currval('x.t_id_seq') > 2, currval('t_id_seq')", "t 1"),
            (
                "SELECT nextval('x.nosuch')",
                "42P01 relation \"x.nosuch\" does not exist",
            ),
            ("CREATE INDEX t_b ON x.t (b)", ""),
            ("CREATE TABLE t_b (a int)", ""),
            ("ALTER TABLE x.t ADD COLUMN c int DEFAULT 3, ADD UNIQUE (c, a)", ""),
            (
                "ALTER TABLE x.t ADD COLUMN c int",
                "42701 column \"c\" of relation \"t\" already exists",
            ),
            (
                "CREATE TABLE x.child (id int REFERENCES x.t (id), o int REFERENCES t (id))",
                "",
            ),
            ("INSERT INTO x.child VALUES (1, 1)", ""),
            (
                "SELECT told::text FROM (VALUES (1)) v (told) WHERE EXISTS (SELECT 1 FROM x.child WHERE id = told)",
                "1",
            ),
            (
                "DROP TABLE x.t",
                "2BP01 cannot drop table x.t because other objects depend on it",
            ),
            ("CREATE VIEW x.v AS SELECT a FROM x.t", ""),
            ("SELECT a FROM x.v ORDER BY a", "1, 5"),
            ("COPY x.t (a) TO STDOUT", ""),
            // What would be a name of another schema in the file is nobody's.
            ("CREATE TABLE \"a::b\" (a int)", "0A000 a name with :: is not supported"),
            (
                "CREATE INDEX \"x::i\" ON t (a)",
                "0A000 a name with :: is not supported",
            ),
            (
                "ALTER TABLE t_b RENAME TO \"x::b\"",
                "0A000 a name with :: is not supported",
            ),
            (
                "ALTER TABLE t_b ADD CONSTRAINT \"x::b\" UNIQUE (a)",
                "0A000 a name with :: is not supported",
            ),
            (
                "SELECT nextval('\"x::t_id_seq\"')",
                "42P01 relation \"\"x::t_id_seq\"\" does not exist",
            ),
            ("SELECT * FROM \"x::t\"", "42P01 relation \"x::t\" does not exist"),
        ],
    );
    // Into the table of that schema.
    client.send(&crate::client::query("COPY x.t (a) FROM STDIN"));
    client.send(&[message(b'd', b"11\n"), message(b'c', b"")].concat());
    assert_eq!(client.answer().tags(), ["COPY 1"]);
    expect(
        &mut client,
        &[
            ("SELECT count(*) FROM x.t WHERE a = 11", "1"),
            ("SELECT count(*) FROM t", "1"),
            (
                "DROP SCHEMA x",
                "2BP01 cannot drop schema x because other objects depend on it",
            ),
            ("DROP SCHEMA x CASCADE", ""),
            ("SELECT * FROM x.t", "42P01 relation \"x.t\" does not exist"),
            ("SELECT a FROM t", "7"),
            ("DROP SCHEMA x", "3F000 schema \"x\" does not exist"),
            ("DROP SCHEMA IF EXISTS x", ""),
            ("BEGIN; CREATE SCHEMA z; CREATE TABLE z.t (a int); ROLLBACK", ""),
            ("CREATE TABLE z.t (a int)", "3F000 schema \"z\" does not exist"),
        ],
    );
}

#[test]
fn names_are_looked_up_along_the_search_path() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run(
        "CREATE SCHEMA x; CREATE SCHEMA y; CREATE TABLE t (a int); CREATE TABLE x.a (n int); CREATE TABLE y.a (m text)",
    );
    client.run("INSERT INTO x.a VALUES (1); INSERT INTO y.a VALUES ('y')");
    expect(
        &mut client,
        &[
            ("SELECT * FROM a", "42P01 relation \"a\" does not exist"),
            ("SET search_path TO x", ""),
            ("SELECT * FROM a", "1"),
            ("SELECT current_schema(), current_schemas(true)", "x {pg_catalog,x}"),
            ("CREATE TABLE b (n int)", ""),
            ("SELECT count(*) FROM x.b", "0"),
            ("SELECT * FROM t", "42P01 relation \"t\" does not exist"),
            ("SET search_path TO y, x, public", ""),
            ("SELECT * FROM a", "y"),
            ("SELECT count(*) FROM t", "0"),
            ("SELECT 'a'::regclass, 'x.a'::regclass, 'public.t'::regclass", "a x.a t"),
            ("SET search_path TO nosuch", ""),
            ("SELECT * FROM t", "42P01 relation \"t\" does not exist"),
            (
                "CREATE TABLE c (n int)",
                "3F000 no schema has been selected to create in",
            ),
            ("SELECT current_schema() IS NULL", "t"),
            ("RESET search_path", ""),
            ("BEGIN; SET LOCAL search_path TO x", ""),
            ("SELECT * FROM a", "1"),
            ("ROLLBACK", ""),
            ("SELECT * FROM a", "42P01 relation \"a\" does not exist"),
            // A view means what it meant when it was made.
            ("CREATE VIEW v AS SELECT * FROM t", ""),
            ("SET search_path TO x, public", ""),
            ("CREATE TABLE x.t (other int)", ""),
            ("INSERT INTO x.t VALUES (4)", ""),
            ("SELECT count(*) FROM v", "0"),
            (
                "CREATE VIEW w AS SELECT * FROM t",
                "0A000 CREATE VIEW under another search_path than public is not supported",
            ),
        ],
    );
}

#[test]
fn the_catalog_tells_schemas() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE SCHEMA x; CREATE TABLE t (id serial PRIMARY KEY); CREATE TABLE x.t (id serial PRIMARY KEY, p int REFERENCES t)");
    expect(
        &mut client,
        &[
            ("SELECT nspname FROM pg_namespace WHERE oid >= 16384", "x"),
            (
                "SELECT table_schema, table_name FROM information_schema.tables WHERE table_name = 't' ORDER BY 1",
                "public t, x t",
            ),
            (
                "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
                 WHERE n.nspname = 'x' ORDER BY 2",
                "x t, x t_id_seq, x t_pkey",
            ),
            (
                "SELECT table_schema, column_default FROM information_schema.columns WHERE column_name = 'id' ORDER BY 1",
                "public nextval('t_id_seq'::regclass), x nextval('x.t_id_seq'::regclass)",
            ),
            (
                "SELECT constraint_schema, constraint_name FROM information_schema.table_constraints \
                 WHERE table_schema = 'x' AND constraint_type <> 'CHECK' ORDER BY 2",
                "x t_p_fkey, x t_pkey",
            ),
            ("SELECT pg_get_serial_sequence('x.t', 'id')", "x.t_id_seq"),
            (
                "SELECT indexdef FROM pg_indexes WHERE schemaname = 'x'",
                "CREATE UNIQUE INDEX t_pkey ON x.t USING btree (id)",
            ),
            (
                "SELECT 'x.t'::regclass, 'x'::regnamespace, to_regclass('y.t') IS NULL",
                "x.t x t",
            ),
            (
                "SELECT pg_table_is_visible('x.t'::regclass), pg_table_is_visible('t'::regclass)",
                "f t",
            ),
            ("SELECT 'y'::regnamespace", "3F000 schema \"y\" does not exist"),
        ],
    );
}

#[test]
fn what_is_said_of_a_table_of_another_schema_names_it() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run(
        "CREATE SCHEMA x; CREATE TABLE x.t (id int PRIMARY KEY, n int UNIQUE CHECK (n < 9), m text NOT NULL); \
         CREATE TABLE x.r (t_id int REFERENCES x.t); INSERT INTO x.t VALUES (1, 1, 'a'); INSERT INTO x.r VALUES (1)",
    );
    // Of each: message, detail, schema, table, column and constraint.
    for (sql, expected) in [
        (
            "INSERT INTO x.t VALUES (1, 2, 'b')",
            "duplicate key value violates unique constraint \"t_pkey\"|Key (id)=(1) already exists.|x|t||t_pkey",
        ),
        (
            "INSERT INTO x.t VALUES (2, 10, 'b')",
            "new row for relation \"t\" violates check constraint \"t_n_check\"|Failing row contains (2, 10, b).|x|t||t_n_check",
        ),
        (
            "INSERT INTO x.t VALUES (2, 3, NULL)",
            "null value in column \"m\" of relation \"t\" violates not-null constraint|Failing row contains (2, 3, null).|x|t|m|",
        ),
        (
            "INSERT INTO x.r VALUES (5)",
            "insert or update on table \"r\" violates foreign key constraint \"r_t_id_fkey\"\
             |Key (t_id)=(5) is not present in table \"t\".|x|r||r_t_id_fkey",
        ),
        (
            "DELETE FROM x.t",
            "update or delete on table \"t\" violates foreign key constraint \"r_t_id_fkey\" on table \"r\"\
             |Key (id)=(1) is still referenced from table \"r\".|x|r||r_t_id_fkey",
        ),
    ] {
        let answer = client.query(sql);
        let error = answer.error().unwrap();
        let fields = [b'M', b'D', b's', b't', b'c', b'n'].map(|code| error.field(code).unwrap_or_default());
        assert_eq!(fields.join("|"), expected, "{sql}");
    }
    expect(
        &mut client,
        &[
            ("COMMENT ON TABLE x.t IS 'words'", ""),
            ("SELECT obj_description('x.t'::regclass)", "words"),
            (
                "CREATE VIEW x.v AS SELECT * FROM x.t; CREATE VIEW w AS SELECT n FROM x.v",
                "",
            ),
            ("SELECT x.v.n FROM x.v", "1"),
            (
                "DROP VIEW x.v",
                "2BP01 cannot drop view x.v because other objects depend on it",
            ),
            ("ANALYZE x.t", ""),
            ("ANALYZE x.q", "42P01 relation \"x.q\" does not exist"),
            ("ANALYZE y.q", "3F000 schema \"y\" does not exist"),
            // Where nothing is looked up, each name says its schema.
            ("CREATE SEQUENCE s; SET search_path TO ''", ""),
            ("SELECT setval('public.s', 4), nextval('public.s')", "4 5"),
            ("CREATE VIEW public.z AS SELECT id FROM x.t", ""),
            ("SELECT * FROM public.z", "1"),
            (
                "CREATE VIEW public.y AS SELECT id FROM t",
                "42P01 relation \"t\" does not exist",
            ),
            // A view of two tables goes once.
            ("CREATE TABLE x.a (i int); CREATE TABLE x.b (i int)", ""),
            ("CREATE VIEW x.ab AS SELECT a.i FROM x.a JOIN x.b ON a.i = b.i", ""),
            ("DROP TABLE x.a, x.b CASCADE", ""),
            ("SELECT * FROM x.ab", "42P01 relation \"x.ab\" does not exist"),
        ],
    );
}
