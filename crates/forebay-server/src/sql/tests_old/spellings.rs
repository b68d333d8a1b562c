//! Every PostgreSQL spelling, by running it.

use rusqlite::types::Value;

use super::{database, one, parse, run, text, value};
use crate::sql::{SqlError, marked_error};

/// Expressions, and what they are.
#[test]
fn expressions_have_the_values_postgresql_gives_them() {
    let connection = database();
    let null = Value::Null;
    let (int, real) = (Value::Integer, Value::Real);
    let cases: Vec<(&str, Value)> = vec![
        // Session.
        ("SELECT version()", text("PostgreSQL 15.0 (Forebay)")),
        ("SELECT current_schema()", text("public")),
        ("SELECT current_schema", text("public")),
        ("SELECT current_database()", text("forebay")),
        ("SELECT current_catalog", text("forebay")),
        ("SELECT current_user", text("o'brien")),
        ("SELECT session_user", text("o'brien")),
        ("SELECT user", text("o'brien")),
        ("SELECT pg_backend_pid()", int(4711)),
        ("SELECT pg_is_in_recovery()", int(0)),
        ("SELECT current_setting('server_version')", text("15.0")),
        ("SELECT current_setting('Server_Version', true)", text("15.0")),
        ("SELECT current_setting('no.such', true)", null.clone()),
        ("SELECT pg_catalog.version()", text("PostgreSQL 15.0 (Forebay)")),
        ("SELECT pg_catalog.lower('ABC')", text("abc")),
        // Literals.
        (r"SELECT E'a\'b\n\x41\u00e9\101\\'", text("a'b\nAéA\\")),
        ("SELECT $$it's; plain$$", text("it's; plain")),
        ("SELECT $tag$a $$ b$tag$", text("a $$ b")),
        ("SELECT 'a''b' || E'\\t' || 'it''''s'", text("a'b\tit''s")),
        ("SELECT true", int(1)),
        ("SELECT false OR true", int(1)),
        ("SELECT 0x10 + '1'::int", int(17)),
        ("SELECT ? + ? + ?1 + '1'::int", int(22)),
        ("SELECT /* outer /* inner */ still outer */ 5", int(5)),
        ("SELECT 5 + /* a /* b */ DROP TABLE x; */ 1", int(6)),
        // Casts.
        ("SELECT '42'::int", int(42)),
        ("SELECT ' 42 '::bigint", int(42)),
        ("SELECT '42'::int4 + 1", int(43)),
        ("SELECT CAST('7' AS BIGINT)", int(7)),
        ("SELECT 2.5::int", int(3)),
        ("SELECT (-2.5)::int", int(-3)),
        ("SELECT -2.5::int", int(-3)),
        ("SELECT (1.0/2)::float8::int", int(0)),
        ("SELECT (3.0/2)::float8::int", int(2)),
        ("SELECT (5.0/2)::float8::int", int(2)),
        ("SELECT 42::text", text("42")),
        ("SELECT 'hello'::varchar(3)", text("hel")),
        ("SELECT 'hello'::varchar", text("hello")),
        ("SELECT 'hello'::character varying(2)", text("he")),
        ("SELECT CAST('hello' AS VARCHAR(4))", text("hell")),
        ("SELECT true::text", text("true")),
        ("SELECT 'yes'::bool", int(1)),
        ("SELECT 'F'::boolean", int(0)),
        ("SELECT 5::bool", int(1)),
        ("SELECT '1.25'::float8", real(1.25)),
        ("SELECT '1e3'::double precision", real(1000.0)),
        ("SELECT 3::real", real(3.0)),
        ("SELECT '1.50'::numeric", real(1.5)),
        ("SELECT '12'::numeric", int(12)),
        ("SELECT '1.255'::numeric(10,2)", real(1.26)),
        ("SELECT 1.005::decimal(10,2)", real(1.01)),
        ("SELECT 3.7::numeric(3)", int(4)),
        ("SELECT '2024-02-29'::date", text("2024-02-29")),
        ("SELECT '2024-2-9'::date", text("2024-02-09")),
        ("SELECT DATE '2024-01-31'", text("2024-01-31")),
        ("SELECT '2024-01-31 10:20:30.120'::date", text("2024-01-31")),
        (
            "SELECT '2024-01-31T10:20:30.120'::timestamp",
            text("2024-01-31 10:20:30.12"),
        ),
        (
            "SELECT '2024-01-31 10:20:30+02'::timestamp",
            text("2024-01-31 10:20:30"),
        ),
        ("SELECT TIMESTAMP '2024-01-31'", text("2024-01-31 00:00:00")),
        (
            "SELECT '2024-01-31 23:59:59.9999999'::timestamp",
            text("2024-02-01 00:00:00"),
        ),
        ("SELECT '2024-01-31 24:00:00'::timestamp", text("2024-02-01 00:00:00")),
        (
            "SELECT '2024-01-31 10:20:30+02:30'::timestamptz",
            text("2024-01-31 07:50:30"),
        ),
        (
            "SELECT '2024-01-31 10:20-0800'::timestamp with time zone",
            text("2024-01-31 18:20:00"),
        ),
        (
            "SELECT '2024-01-31T10:20:30Z'::timestamptz",
            text("2024-01-31 10:20:30"),
        ),
        ("SELECT '1:02'::time", text("01:02:00")),
        (
            "SELECT '{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}'::uuid",
            text("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        ),
        ("SELECT '{\"a\": [1, 2]}'::jsonb", text("{\"a\": [1, 2]}")),
        ("SELECT '{\"a\": [1, 2]}'::json ->> 'a'", text("[1,2]")),
        (r"SELECT '\xCAFE'::bytea", Value::Blob(vec![0xca, 0xfe])),
        (r"SELECT 'a\\b\001'::bytea", Value::Blob(vec![b'a', b'\\', b'b', 1])),
        ("SELECT NULL::int", null.clone()),
        ("SELECT typeof('2024-01-01'::date::text)", text("text")),
        // Patterns.
        ("SELECT 'ÄRGER' ILIKE 'är%'", int(1)),
        ("SELECT 'abc' NOT ILIKE 'A_D'", int(1)),
        ("SELECT 'a%c' ILIKE 'A!%C' ESCAPE '!'", int(1)),
        ("SELECT 1 = 1 AND 'x' ILIKE 'X' || ''", int(1)),
        ("SELECT NULL ILIKE 'a'", null),
        // Rows.
        (
            "SELECT x FROM (SELECT 1 AS x UNION SELECT 2) ORDER BY x FETCH FIRST 1 ROWS ONLY",
            int(1),
        ),
        (
            "SELECT x FROM (SELECT 1 AS x UNION SELECT 2) ORDER BY x FETCH FIRST ROW ONLY",
            int(1),
        ),
        (
            "SELECT x FROM (SELECT 1 AS x UNION SELECT 2) ORDER BY x OFFSET 1 ROW FETCH NEXT 5 ROWS ONLY",
            int(2),
        ),
        (
            "SELECT x FROM (SELECT 1 AS x UNION SELECT 2) ORDER BY x OFFSET 1",
            int(2),
        ),
        (
            "SELECT x FROM (SELECT 1 AS x UNION SELECT 2 UNION SELECT 3) ORDER BY x OFFSET 1 LIMIT 1",
            int(2),
        ),
        ("SELECT count(*) FROM (SELECT 1 UNION SELECT 2 LIMIT ALL)", int(2)),
    ];
    for (script, expected) in cases {
        assert_eq!(value(&connection, script), expected, "{script} as {}", one(script).sql);
    }
}

#[test]
fn a_cast_that_postgresql_refuses_fails_with_its_code() {
    let connection = database();
    for (script, sqlstate) in [
        ("SELECT 'abc'::int", "22P02"),
        ("SELECT ''::int", "22P02"),
        ("SELECT '99999999999999999999'::bigint", "22003"),
        ("SELECT 1e30::bigint", "22003"),
        ("SELECT 'maybe'::bool", "22P02"),
        ("SELECT 'o'::bool", "22P02"),
        ("SELECT 1.5::bool", "42846"),
        ("SELECT 'x'::float8", "22P02"),
        ("SELECT 'NaN'::float8", "22003"),
        ("SELECT '1e999'::float8", "22003"),
        ("SELECT '1.2.3'::numeric", "22P02"),
        ("SELECT '0.1234567890123456789'::numeric", "22003"),
        ("SELECT '1234.5'::numeric(5,2)", "22003"),
        ("SELECT '2024-02-30'::date", "22008"),
        ("SELECT 'tomorrow-ish'::date", "22007"),
        ("SELECT '2024-01-01 25:00'::timestamp", "22008"),
        ("SELECT 'infinity'::timestamptz", "22008"),
        ("SELECT 'zz'::uuid", "22P02"),
        ("SELECT '{a}'::json", "22P02"),
        (r"SELECT '\xABC'::bytea", "22P02"),
        ("SELECT 5::date", "42846"),
        (r"SELECT 'a' ILIKE 'a\'", "22025"),
        ("SELECT 'a' ILIKE 'a' ESCAPE 'xy'", "22025"),
    ] {
        let message = run(&connection, script).expect_err(script);
        let (code, rest) = marked_error(&message).unwrap_or_else(|| panic!("{script}: {message}"));
        assert_eq!(code, sqlstate, "{script}: {rest}");
    }
}

#[test]
fn the_clock_is_in_the_stored_form() {
    let connection = database();
    for name in [
        "now()",
        "transaction_timestamp()",
        "statement_timestamp()",
        "clock_timestamp()",
        "localtimestamp",
        "current_timestamp",
        "current_timestamp(3)",
        "current_timestamp(0)",
        "pg_catalog.now()",
    ] {
        let script = format!("SELECT {name} AS t");
        let Value::Text(moment) = value(&connection, &script) else {
            panic!("{script}")
        };
        let cast = value(&connection, &format!("SELECT '{moment}'::timestamp"));
        assert_eq!(cast, text(&moment), "{name} is canonical");
        let age = value(
            &connection,
            &format!("SELECT abs(julianday('now') - julianday('{moment}')) < 0.001"),
        );
        assert_eq!(age, Value::Integer(1), "{name} is now: {moment}");
    }
    let today = value(&connection, "SELECT current_date = date('now')");
    assert_eq!(today, Value::Integer(1));
}

#[test]
fn trailing_zeros_of_a_moment_go_and_those_of_a_second_stay() {
    let connection = database();
    // The expression that now() becomes, with moments in the place of 'now'.
    let now = one("SELECT now()").sql.to_string();
    for (moment, expected) in [
        ("2024-01-01 10:00:00.000", "2024-01-01 10:00:00"),
        ("2024-01-01 10:00:10.500", "2024-01-01 10:00:10.5"),
        ("2024-01-01 10:00:59.120", "2024-01-01 10:00:59.12"),
    ] {
        assert_eq!(
            value(&connection, &now.replace("'now'", &format!("'{moment}'"))),
            text(expected)
        );
    }
}

#[test]
fn columns_keep_postgresqls_names() {
    let connection = database();
    for (script, name) in [
        ("SELECT now()", "now"),
        ("SELECT version()", "version"),
        ("SELECT current_user", "current_user"),
        ("SELECT '1'::int", "int4"),
        ("SELECT '1'::bigint", "int8"),
        ("SELECT 'x'::varchar(3)", "varchar"),
        ("SELECT x::int FROM (SELECT '1' AS x)", "x"),
        ("SELECT s.x::int FROM (SELECT '1' AS x) s", "x"),
        ("SELECT lower('A')::text", "lower"),
        ("SELECT '1'::int AS one", "one"),
        ("SELECT gen_random_uuid()", "gen_random_uuid"),
    ] {
        let statement = one(script);
        let prepared = connection.prepare(&statement.sql).unwrap();
        assert_eq!(prepared.column_name(0).unwrap(), name, "{script} as {}", statement.sql);
    }
}

#[test]
fn random_uuids_are_of_version_4_and_differ() {
    let connection = database();
    let first = value(&connection, "SELECT gen_random_uuid()");
    let second = value(&connection, "SELECT gen_random_uuid()");
    assert_ne!(first, second);
    let Value::Text(uuid) = first else { panic!("{first:?}") };
    let parsed = uuid::Uuid::parse_str(&uuid).unwrap();
    assert_eq!(parsed.get_version_num(), 4);
    assert_eq!(parsed.hyphenated().to_string(), uuid);
}

#[test]
fn serial_and_identity_primary_keys_number_themselves() {
    for definition in [
        "id serial PRIMARY KEY, v text",
        "id bigserial NOT NULL PRIMARY KEY, v text",
        "id smallserial, v text, PRIMARY KEY (id)",
        "id SERIAL, v text, CONSTRAINT pk PRIMARY KEY (ID)",
        "id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v text",
        "id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, v text",
        "id bigint PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY (START WITH 1), v text",
        "\"id\" bigint GENERATED BY DEFAULT AS IDENTITY, v varchar(9) NOT NULL, PRIMARY KEY (\"id\")",
    ] {
        let connection = database();
        let script = format!(
            "CREATE TABLE t ({definition});
             INSERT INTO t (v) VALUES ('a');
             INSERT INTO t (id, v) VALUES (DEFAULT, 'b'), (DEFAULT, 'c');
             DELETE FROM t WHERE id = 3;
             INSERT INTO t (v) VALUES ('d') RETURNING id"
        );
        assert_eq!(value(&connection, &script), Value::Integer(4), "{definition}");
    }
}

#[test]
fn a_serial_that_is_no_primary_key_is_refused_by_name() {
    for script in [
        "CREATE TABLE t (id int PRIMARY KEY, counter serial)",
        "CREATE TABLE t (counter bigint GENERATED ALWAYS AS IDENTITY)",
        "CREATE TABLE t (counter serial, b int, PRIMARY KEY (counter, b))",
        "ALTER TABLE t ADD COLUMN counter serial",
    ] {
        let error = parse(script).expect_err(script);
        assert!(matches!(error, SqlError::InvalidTable { .. }), "{script}: {error}");
        assert!(error.to_string().contains("\"counter\""), "{script}: {error}");
    }
}

#[test]
fn defaults_and_type_names_survive() {
    let connection = database();
    run(
        &connection,
        "CREATE TABLE public.everything (
            id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
            a timestamp with time zone NOT NULL DEFAULT now(),
            b timestamptz DEFAULT current_timestamp,
            c timestamp(3) without time zone DEFAULT localtimestamp,
            d character varying(20) DEFAULT 'x'::character varying,
            e double precision DEFAULT '1.5'::float8,
            f boolean DEFAULT true,
            g jsonb DEFAULT '{}'::jsonb,
            h numeric(10,2) DEFAULT 0.00,
            i bytea DEFAULT '\\xff'::bytea,
            j date DEFAULT current_date,
            k int DEFAULT -1,
            l text DEFAULT 'it''s'
        )",
    )
    .unwrap();
    let rows = run(
        &connection,
        "INSERT INTO public.everything (k) VALUES (5);
         SELECT length(id), a = c, length(b), d, e, f, g, i, j = date('now'), k, l FROM public.everything",
    )
    .unwrap();
    assert_eq!(rows[0][0], Value::Integer(36));
    assert_eq!(rows[0][1], Value::Integer(1), "one statement has one now");
    assert_eq!(rows[0][2], Value::Integer(19));
    assert_eq!(
        rows[0][3..],
        [
            text("x"),
            Value::Real(1.5),
            Value::Integer(1),
            text("{}"),
            Value::Blob(vec![0xff]),
            Value::Integer(1),
            Value::Integer(5),
            text("it's"),
        ]
    );
    let types = run(
        &connection,
        "SELECT lower(type) FROM pragma_table_info('everything') ORDER BY cid",
    )
    .unwrap();
    let types: Vec<String> = types
        .into_iter()
        .map(|mut row| {
            if let Value::Text(name) = row.remove(0) {
                name
            } else {
                String::new()
            }
        })
        .collect();
    assert_eq!(
        types,
        [
            "uuid",
            "timestamp with time zone",
            "timestamptz",
            "timestamp without time zone",
            "character varying(20)",
            "double precision",
            "boolean",
            "jsonb",
            "numeric(10,2)",
            "bytea",
            "date",
            "int",
            "text",
        ]
    );
}

#[test]
fn the_schema_holds_plain_sqlite_alone() {
    // A connection without this server's functions reads it.
    let connection = database();
    run(
        &connection,
        "CREATE TABLE t (a text DEFAULT (now()), b int DEFAULT '5'::int, c text DEFAULT upper('x'))",
    )
    .unwrap();
    run(
        &connection,
        "CREATE VIEW v AS SELECT a::text AS a, now() AS n FROM public.t",
    )
    .unwrap();
    let schema = run(&connection, "SELECT sql FROM sqlite_schema").unwrap();
    assert!(!format!("{schema:?}").contains("forebay_"), "{schema:?}");
    for refused in [
        "CREATE TABLE u (a int CHECK (a::int > 0))",
        "CREATE VIEW w AS SELECT a::int FROM t",
        "CREATE INDEX i ON t ((a::date))",
        "CREATE VIEW w AS SELECT * FROM t WHERE a ILIKE 'x'",
        "CREATE TABLE u (a text DEFAULT current_user)",
        "CREATE TABLE u (a int DEFAULT 'abc'::int)",
    ] {
        let error = parse(refused).expect_err(refused);
        assert_eq!(error.sqlstate(), "0A000", "{refused}: {error}");
        assert!(error.hint().is_some(), "{refused}");
    }
}

#[test]
fn public_is_taken_off_every_name() {
    let connection = database();
    let script = "
        CREATE TABLE public.a (id int PRIMARY KEY, v text);
        CREATE TABLE \"public\".\"b\" (a_id int REFERENCES public.a (id), CONSTRAINT f FOREIGN KEY (a_id) REFERENCES public.a (id));
        CREATE INDEX a_v ON public.a (v);
        CREATE VIEW public.va AS SELECT public.a.* FROM public.a;
        ALTER TABLE public.a ADD COLUMN w int;
        INSERT INTO public.a (id, v) VALUES (1, 'x'), (2, 'y') ON CONFLICT (id) DO NOTHING;
        INSERT INTO public.b SELECT id FROM public.a WHERE id = 1;
        UPDATE public.a SET v = 'z' WHERE public.a.id = 1;
        DELETE FROM public.a WHERE a.id = 2;
        SELECT count(*) FROM public.a JOIN \"public\".b ON b.a_id = a.id JOIN public.va ON va.id = a.id";
    assert_eq!(value(&connection, script), Value::Integer(1));
    run(&connection, "DROP VIEW public.va; DROP TABLE public.b, public.a")
        .expect_err("SQLite drops one table at a time");
    run(
        &connection,
        "DROP VIEW IF EXISTS public.va; DROP TABLE public.b; DROP TABLE public.a",
    )
    .unwrap();
}

#[test]
fn what_shared_connections_cannot_answer_is_refused_by_name() {
    for (script, name) in [
        ("SELECT last_insert_rowid()", "last_insert_rowid()"),
        ("SELECT changes() FROM t", "changes()"),
        ("SELECT total_changes ( )", "total_changes()"),
        ("SELECT lastval()", "lastval()"),
        ("SELECT currval('s')", "currval()"),
        ("SELECT nextval('s'::regclass)", "nextval()"),
        ("SELECT load_extension('x')", "load_extension()"),
        ("SELECT \"last_insert_rowid\"()", "last_insert_rowid()"),
        ("SELECT * FROM t NOT INDEXED WHERE changes() > 0", "changes()"),
        ("PRAGMA journal_mode = DELETE", "journal_mode"),
        ("EXPLAIN PRAGMA synchronous = off", "EXPLAIN of a PRAGMA"),
        ("EXPLAIN QUERY PLAN PRAGMA table_info(t)", "EXPLAIN of a PRAGMA"),
        ("SELECT * FROM t FOR UPDATE", "FOR UPDATE"),
        ("SELECT * FROM t FOR SHARE", "FOR SHARE"),
        ("SELECT now() - interval '1 day'", "INTERVAL"),
        ("SELECT * FROM t WHERE id = ANY($1)", "ANY"),
        ("SELECT 'x'::flurb", "flurb"),
        ("SELECT 'x'::char(5)", "CHAR(5)"),
        ("SELECT now()::timestamp(0)", "TIMESTAMP(0)"),
        ("SELECT current_setting('no.such')", "no.such"),
        ("CREATE TABLE t (tags text[])", "array"),
        ("INSERT INTO t VALUES (DEFAULT, 1)", "DEFAULT"),
        ("INSERT INTO t (a, b) VALUES (DEFAULT, 1), (1, 2)", "DEFAULT"),
        ("SELECT 1 FETCH FIRST 2 ROWS WITH TIES", "WITH TIES"),
    ] {
        let error = parse(script).expect_err(script);
        assert_eq!(error.sqlstate(), "0A000", "{script}: {error}");
        assert!(
            error.to_string().to_uppercase().contains(&name.to_uppercase()),
            "{script}: {error}"
        );
    }
    // Names that only look alike.
    for fine in [
        "INSERT INTO changes (a) VALUES (1)",
        "CREATE TABLE nextval (a)",
        "WITH changes(a) AS (SELECT 1) SELECT a FROM changes",
        "SELECT 'changes()'",
    ] {
        parse(fine).unwrap();
    }
}

#[test]
fn a_word_the_grammar_would_lose_is_never_lost() {
    // The parser takes AUTO_INCREMENT and forgets it; with a default to rewrite, that would go unseen.
    let error = parse("CREATE TABLE t (id INTEGER AUTO_INCREMENT, at text DEFAULT now())");
    assert!(
        error.is_err() || !one("CREATE TABLE t (id INTEGER AUTO_INCREMENT, at text DEFAULT now())").rewritten,
        "{error:?}"
    );
}

/// Statements as object-relational mappers for PostgreSQL write them.
#[test]
fn what_mappers_send_works() {
    for (script, expected) in [
        (
            r#"CREATE TABLE "User" ("id" SERIAL NOT NULL, "email" TEXT NOT NULL,
                "createdAt" TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP, CONSTRAINT "User_pkey" PRIMARY KEY ("id"));
               CREATE UNIQUE INDEX "User_email_key" ON "User"("email");
               INSERT INTO "public"."User" ("email") VALUES ('a') RETURNING "id""#,
            Value::Integer(1),
        ),
        (
            r#"CREATE TABLE "users" ("id" bigserial primary key, "name" character varying, "created_at" timestamp(6) NOT NULL DEFAULT now());
               INSERT INTO "users" ("name") VALUES ('x') RETURNING "id""#,
            Value::Integer(1),
        ),
        (
            r#"CREATE TABLE "app_user" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "name" varchar(100) NOT NULL,
                "team_id" bigint NULL);
               INSERT INTO "app_user" ("name", "team_id") VALUES ('x', NULL) RETURNING "app_user"."id""#,
            Value::Integer(1),
        ),
        (
            "CREATE TABLE users (\n\tid SERIAL NOT NULL, \n\tname VARCHAR(50), \n\tfullname VARCHAR, \n\tPRIMARY KEY (id)\n);
             INSERT INTO users (name, fullname) VALUES ('7'::VARCHAR, $1::VARCHAR) RETURNING users.id;
             SELECT users.id AS users_id FROM users WHERE users.name = $1::VARCHAR LIMIT $2::INTEGER",
            Value::Integer(1),
        ),
        (
            r#"CREATE TABLE "item" ("id" uuid NOT NULL DEFAULT uuid_generate_v4(), "title" character varying(20) NOT NULL,
                "at" TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT now(), CONSTRAINT "PK_1" PRIMARY KEY ("id"));
               INSERT INTO "item"("id", "title", "at") VALUES (DEFAULT, 't', DEFAULT) RETURNING length("id")"#,
            Value::Integer(36),
        ),
        (
            r#"CREATE TABLE IF NOT EXISTS "users" ("id" serial PRIMARY KEY NOT NULL, "name" text, "created_at" timestamp DEFAULT now() NOT NULL);
               insert into "users" ("id", "name", "created_at") values (default, $1, default) returning "id";
               select "id", "name" from "users" where ("users"."name" ilike '%' and "users"."id" = '1'::int) order by "id" desc limit $2;
               select count(*) as "n" from "users" where "name" = '7'"#,
            Value::Integer(1),
        ),
        (
            r#"CREATE TABLE IF NOT EXISTS "Users" ("id"  SERIAL , "n" VARCHAR(255) NOT NULL UNIQUE, "b" BOOLEAN DEFAULT false,
                "price" DECIMAL(10,2) CHECK ("price" > 0), PRIMARY KEY ("id"));
               INSERT INTO "Users" ("id","n","b") VALUES (DEFAULT,'x',true) ON CONFLICT ("n") DO UPDATE SET "b"=EXCLUDED."b" RETURNING "id""#,
            Value::Integer(1),
        ),
        (
            "CREATE TABLE a (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
             CREATE TABLE b (id bigserial PRIMARY KEY, a_id int NOT NULL REFERENCES public.a (id) ON DELETE CASCADE ON UPDATE NO ACTION
                DEFERRABLE INITIALLY DEFERRED, note text COLLATE nocase DEFAULT E'it\\'s', CONSTRAINT positive CHECK (a_id > 0));
             WITH added AS (SELECT 5 AS x) INSERT INTO public.a SELECT x FROM added RETURNING id::text::int",
            Value::Integer(5),
        ),
    ] {
        assert_eq!(value(&database(), script), expected, "{script}");
    }
}
