//! Every SQLSTATE that is promised, made by a statement that deserves it, and where in the statement it points.

use crate::client::{Client, bind, execute, parse};
use crate::server;

#[test]
fn each_error_has_its_sqlstate() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE p (id INTEGER PRIMARY KEY)");
    client.run(
        "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT NOT NULL, c INTEGER CHECK (c > 0), p INTEGER REFERENCES p (id))",
    );
    client.run("INSERT INTO t VALUES (1, 'x', 1, NULL)");
    for (sql, sqlstate, position) in [
        ("INSERT INTO t VALUES (1, 'y', 1, NULL)", "23505", None),
        ("INSERT INTO t VALUES (2, NULL, 1, NULL)", "23502", None),
        ("INSERT INTO t VALUES (2, 'y', 1, 77)", "23503", None),
        ("INSERT INTO t VALUES (2, 'y', 0, NULL)", "23514", None),
        ("SELECT * FROM nowhere", "42P01", Some(15)),
        ("INSERT INTO nowhere VALUES (1)", "42P01", Some(13)),
        ("SELECT 'ü', now() FROM \"NoWhere\"", "42P01", Some(24)),
        ("CREATE TABLE t (a INTEGER)", "42P07", None),
        ("SELECT absent FROM t", "42703", Some(8)),
        ("SELECT rank() FROM t", "42809", None),
        ("SELECT 1 COLLATE \"C\"", "42804", None),
        ("WITH a AS (SELECT 1), a AS (SELECT 2) SELECT 1", "42712", Some(23)),
        ("SELECT a,\n  absent FROM t", "42703", Some(13)),
        ("INSERT INTO t (absent) VALUES (1)", "42703", Some(16)),
        ("SELEKT 1", "42601", Some(1)),
        ("SELECT 'ü', FROM FROM", "42601", None),
        ("SELECT no_such_function(1)", "42883", Some(8)),
        ("INSERT INTO t (a) VALUES ('x')", "22P02", Some(27)),
        ("SELECT * FROM t WHERE a = '1x'", "22P02", Some(27)),
        ("SELECT 'x'::int", "22P02", Some(8)),
        ("SELECT '99999999999999999999'::bigint", "22003", Some(8)),
        (
            "SELECT 9223372036854775807 + 1 FROM (SELECT sum(n) FROM (SELECT 9223372036854775807 AS n UNION ALL SELECT 1))",
            "22003",
            None,
        ),
        ("SELECT $1", "42P02", None),
        ("LOAD 'x'", "0A000", None),
        ("COPY t FROM '/tmp/x'", "0A000", None),
        ("SAVEPOINT x", "25P01", None),
        ("COMMIT AND CHAIN", "25P01", None),
        ("SELECT 1; COMMIT AND CHAIN", "25P01", None),
        ("SELECT 1; ROLLBACK AND CHAIN", "25P01", None),
    ] {
        let answer = client.query(sql);
        assert_eq!(
            (answer.sqlstate().as_str(), answer.status),
            (sqlstate, 'I'),
            "{sql}: {:?}",
            answer.error()
        );
        let error = answer.error().unwrap();
        assert_eq!(error.field(b'S'), Some("ERROR"));
        assert!(
            !error.message().is_empty() && !error.message().contains("forebay:"),
            "{error:?}"
        );
        if position.is_some() {
            assert_eq!(error.position(), position, "{sql}: {error:?}");
        }
    }
    let unique = client.query("INSERT INTO t VALUES (1, 'y', 1, NULL)").error().unwrap();
    assert_eq!(
        (unique.field(b't'), unique.field(b'n'), unique.field(b'D')),
        (Some("t"), Some("t_pkey"), Some("Key (a)=(1) already exists."))
    );
    for (sql, sqlstate) in [("ROLLBACK TO x", "3B001"), ("SELECT 1", "25P02")] {
        client.query("BEGIN");
        assert_eq!(
            client.query(sql).sqlstate(),
            if sql == "SELECT 1" { "00000" } else { sqlstate }
        );
        if sql == "SELECT 1" {
            client.query("nonsense");
            assert_eq!(client.query(sql).sqlstate(), sqlstate);
        }
        client.run("ROLLBACK");
    }
    let answer = client.query("BEGIN READ ONLY; INSERT INTO t VALUES (3, 'z', 1, NULL)");
    assert_eq!((answer.sqlstate().as_str(), answer.status), ("25006", 'E'));
    client.run("ROLLBACK");
    client.run("SET default_transaction_read_only = on");
    assert_eq!(client.query("DELETE FROM t").sqlstate(), "25006");
    client.run("RESET default_transaction_read_only");
    client.run("BEGIN");
    assert_eq!(client.query("VACUUM").sqlstate(), "25001");
    client.run("ROLLBACK");
    // In the second statement of a script the position counts from the script's start.
    let error = client.query("SELECT 1; SELECT absent FROM t").error().unwrap();
    assert_eq!((error.sqlstate(), error.position()), ("42703", Some(18)));
    let answer = client.pipeline(&[
        parse("", "SELECT a FROM t WHERE absent = $1"),
        bind("", "", &["1"]),
        execute("", 0),
    ]);
    assert_eq!(
        (answer.sqlstate().as_str(), answer.error().unwrap().position()),
        ("42703", Some(23))
    );
}

#[test]
fn errors_are_worded_as_postgresql_words_them() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE p (id INTEGER PRIMARY KEY)");
    client.run(
        "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT NOT NULL, c INTEGER CHECK (c > 0), p INTEGER REFERENCES p (id), UNIQUE (b, c))",
    );
    client.run("INSERT INTO t VALUES (1, 'x', 1, NULL)");
    for (sql, message, constraint) in [
        (
            "INSERT INTO t VALUES (1, 'y', 1, NULL)",
            "duplicate key value violates unique constraint \"t_pkey\"",
            Some("t_pkey"),
        ),
        (
            "INSERT INTO t VALUES (2, 'x', 1, NULL)",
            "duplicate key value violates unique constraint \"t_b_c_key\"",
            Some("t_b_c_key"),
        ),
        (
            "INSERT INTO t VALUES (2, NULL, 1, NULL)",
            "null value in column \"b\" of relation \"t\" violates not-null constraint",
            None,
        ),
        (
            "INSERT INTO t VALUES (2, 'y', 0, NULL)",
            "new row for relation \"t\" violates check constraint \"t_c_check\"",
            Some("t_c_check"),
        ),
        (
            "INSERT INTO t VALUES (2, 'y', 1, 77)",
            "insert or update on table \"t\" violates foreign key constraint \"t_p_fkey\"",
            Some("t_p_fkey"),
        ),
        ("SELECT * FROM missing", "relation \"missing\" does not exist", None),
        ("SELECT nme FROM t", "column \"nme\" does not exist", None),
        (
            "INSERT INTO t (nme) VALUES (1)",
            "column \"nme\" of relation \"t\" does not exist",
            None,
        ),
        ("CREATE TABLE t (a INTEGER)", "relation \"t\" already exists", None),
    ] {
        let error = client.query(sql).error().unwrap();
        assert_eq!((error.message(), error.field(b'n')), (message, constraint), "{sql}");
        assert_eq!(
            error.field(b'D').is_some(),
            error.sqlstate().starts_with("23"),
            "the row or the key is told: {sql}"
        );
    }
}

#[test]
fn what_cannot_be_known_of_a_row_is_left_out() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a uuid DEFAULT gen_random_uuid(), b integer CHECK (b > 0), c serial)");
    client.run("INSERT INTO t (b) VALUES (1)");
    for (sql, detail) in [
        ("INSERT INTO t (b) VALUES (-1)", None),
        (
            "INSERT INTO t (a, b) VALUES (NULL, -1)",
            Some("Failing row contains (null, -1, 3)."),
        ),
        (
            "INSERT INTO t (a, b) VALUES (NULL, 5), (NULL, -2), (NULL, -3)",
            Some("Failing row contains (null, -2, 5)."),
        ),
        ("INSERT INTO t (a, b, c) SELECT NULL, -1, nextval('t_c_seq')", None),
    ] {
        let error = client.query(sql).error().unwrap();
        assert_eq!(error.sqlstate(), "23514", "{sql}");
        assert_eq!(error.field(b'D'), detail, "{sql}");
    }
    // What is stored already is known.
    let error = client.query("UPDATE t SET b = -1").error().unwrap();
    assert!(error.field(b'D').unwrap().ends_with(", -1, 1)."));
}

#[test]
fn one_command_does_not_update_a_row_twice() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (k text UNIQUE, n int)");
    client.run("CREATE TABLE d (k text UNIQUE DEFAULT 'same', n int)");
    client.run("CREATE TABLE many (n int)");
    client.run("INSERT INTO many VALUES (1), (2)");
    let set = "ON CONFLICT (k) DO UPDATE SET n = excluded.n";
    for source in [
        "t (k, n) SELECT 'same', n FROM many",
        "t (k, n) SELECT one.n::text, two.n FROM many one CROSS JOIN many two",
        "t (k, n) SELECT one.n::text, 1 FROM many one JOIN many two ON true WHERE one.n > 0",
        "t (k, n) SELECT n::text, n FROM many UNION ALL SELECT n::text, n FROM many",
        "t (k, n) SELECT * FROM unnest('{x,x}'::text[], '{1,2}'::int[])",
        "d (n) SELECT n FROM many",
        "d (n) VALUES (1), (2)",
    ] {
        assert_eq!(
            client.query(&format!("INSERT INTO {source} {set}")).sqlstate(),
            "21000",
            "{source}"
        );
    }
    assert_eq!(
        client.ask("SELECT (SELECT count(*) FROM t) + (SELECT count(*) FROM d)"),
        "0"
    );
    for source in [
        "t (k, n) SELECT 'same', max(n) FROM many",
        "t (k, n) SELECT 'same', 3",
        "t (k, n) SELECT DISTINCT 'same', 4 FROM many UNION SELECT 'same', 4",
        "d (n) SELECT n FROM many WHERE n = 1",
    ] {
        assert_eq!(
            client.query(&format!("INSERT INTO {source} {set}")).tags(),
            ["INSERT 0 1"],
            "{source}"
        );
    }
    assert_eq!(client.ask("SELECT n FROM t"), "4");
}

#[test]
fn a_check_is_named_by_the_one_column_it_speaks_of() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run(
        "CREATE TABLE x (a int, b int CHECK (x.a > 0), c int CHECK (true), d int CHECK (d > c AND d > e), \
         e int CHECK (e > 0 AND e < 5), CHECK (a + b < 10))",
    );
    assert_eq!(
        client
            .ask("SELECT string_agg(conname, ' ' ORDER BY conname) FROM pg_constraint WHERE conrelid = 'x'::regclass"),
        "x_a_check x_check x_check1 x_check2 x_e_check"
    );
    for (values, name) in [
        ("0, 1, 1, 3, 1", "x_a_check"),
        ("1, 1, 3, 2, 1", "x_check1"),
        ("9, 1, 1, 3, 1", "x_check2"),
        ("1, 1, 1, 9, 7", "x_e_check"),
    ] {
        let error = client
            .query(&format!("INSERT INTO x VALUES ({values})"))
            .error()
            .unwrap();
        assert_eq!((error.sqlstate(), error.field(b'n')), ("23514", Some(name)), "{values}");
    }
}

#[test]
fn the_text_of_a_number_is_immutable_and_that_of_a_moment_is_not() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run(
        "CREATE TABLE x (a int, n numeric, u uuid, d date, t timestamptz, \
         g text GENERATED ALWAYS AS ('v' || a) STORED, h int GENERATED ALWAYS AS (length(n::text)) STORED)",
    );
    for immutable in ["lower(a::text)", "(a || 'x')", "md5(n::text)", "upper(u::text)"] {
        client.run(&format!("CREATE INDEX ON x ({immutable})"));
    }
    for stable in ["lower(d::text)", "lower(t::text)"] {
        assert_eq!(
            client.query(&format!("CREATE INDEX ON x ({stable})")).sqlstate(),
            "42P17",
            "{stable}"
        );
    }
    assert_eq!(
        client.ask("INSERT INTO x (a, n) VALUES (-7, 2.50) RETURNING g || ' ' || h"),
        "v-7 4"
    );
    assert_eq!(client.ask("SELECT a FROM x WHERE lower(a::text) = '-7'"), "-7");
}

/// To look at the rows again would take hours, and nobody could end it.
#[test]
fn a_violation_is_told_soon_however_many_rows_there_are() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE many (id int); INSERT INTO many SELECT i FROM generate_series(1, 2000) i");
    client.run("CREATE TABLE keyed (id int PRIMARY KEY, CHECK (id < 100))");
    for (sql, state) in [
        (
            "INSERT INTO keyed SELECT a.id * 0 FROM many a, many b, many c LIMIT 8000000000",
            "23505",
        ),
        (
            "INSERT INTO keyed SELECT a.id + 100 FROM many a, many b, many c LIMIT 8000000000",
            "23514",
        ),
    ] {
        assert_eq!(client.query(sql).sqlstate(), state, "{sql}");
    }
}
