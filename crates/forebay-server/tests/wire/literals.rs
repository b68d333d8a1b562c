//! String literals of the simple protocol: stored and compared as values of the column they meet.

use crate::client::Client;
use crate::server;

const TABLE: &str = "CREATE TABLE t (id SERIAL PRIMARY KEY, data BYTEA, ok BOOLEAN, at TIMESTAMPTZ, uid UUID, born DATE, doc JSON, n INTEGER, name TEXT)";

#[test]
fn literals_are_stored_as_parameters_are() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run(TABLE);
    client.run(
        r"INSERT INTO t (data, ok, at, uid, born, n, name) VALUES ('\x00ff', 't', '2024-02-29 23:59:59.25+01', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', '2024-01-31', '12', 't'), ('\x01', 'no', NULL, NULL, NULL, 1, 'it''s')",
    );
    let stored = "SELECT encode(data, 'hex') || '|' || CAST(ok AS TEXT) || '|' || CAST(at AS TEXT) || '|' || CAST(uid AS TEXT) || '|' || CAST(born AS TEXT) || '|' || CAST(n + 1 AS TEXT) || '|' || name FROM t WHERE id = 1";
    assert_eq!(
        client.ask(stored),
        "00ff|true|2024-02-29 22:59:59.25+00|a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11|2024-01-31|13|t"
    );
    assert_eq!(client.ask("SELECT name FROM t WHERE ok = 'f'"), "it's");
    for condition in [
        "ok = 't'",
        "'true' = ok",
        "at > '2024-01-01 00:00+00'",
        "uid = 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'",
        r"data = '\x00ff'",
        r"data='\x00ff'AND ok='t'AND name='t'",
        r"data IN ('\x02', '\x00ff')",
        "at BETWEEN '2024-02-29 22:59+00' AND '2024-03-01 00:30+01'",
        "'yes' IN (ok)",
    ] {
        assert_eq!(
            client.ask(&format!("SELECT string_agg(id::text, ',') FROM t WHERE {condition}")),
            "1",
            "{condition}"
        );
    }
    client.run(r"UPDATE t SET data = '\x0a', ok = 'false' WHERE id = '1'");
    client.run("INSERT INTO t (id, ok) VALUES (2, 'f') ON CONFLICT (id) DO UPDATE SET ok = 'on'");
    assert_eq!(
        client.ask("SELECT string_agg(encode(data, 'hex') || CAST(ok AS TEXT), ',' ORDER BY id) FROM t"),
        "0afalse,01true"
    );
}

#[test]
fn literals_that_are_no_such_value_are_refused() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run(TABLE);
    for (sql, sqlstate, position) in [
        ("INSERT INTO t (n) VALUES ('abc')", "22P02", 27),
        ("SELECT 1; INSERT INTO t (ok) VALUES ('maybe')", "22P02", 38),
        ("INSERT INTO t (born) VALUES ('yesterdayish')", "22007", 30),
        ("INSERT INTO t (doc) VALUES ('{')", "22P02", 29),
        ("UPDATE t SET uid = 'x'", "22P02", 20),
    ] {
        let error = client.query(sql).error().unwrap();
        assert_eq!(
            (error.sqlstate(), error.position()),
            (sqlstate, Some(position)),
            "{sql}"
        );
    }
    assert_eq!(client.ask("SELECT count(*) FROM t"), "0");
}

#[test]
fn text_that_meets_no_typed_column_stays_as_it_is() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run(TABLE);
    client.run("INSERT INTO t (id, n, name) VALUES (1, NULL, '0x10')");
    assert_eq!(
        client.ask("SELECT coalesce(CAST(n AS TEXT), 'none') || name FROM t"),
        "none0x10"
    );
    // Of two arguments the one that has a type says of which type the other is.
    let error = client
        .query("SELECT coalesce(n, 'none') || name FROM t")
        .error()
        .unwrap();
    assert_eq!((error.sqlstate(), error.position()), ("22P02", Some(20)));
    let answer = client.run("SELECT CAST(id AS TEXT) FROM t UNION ALL SELECT 'abc'");
    assert_eq!(answer.rows().len(), 2);
    assert_eq!(client.ask("SELECT length('t') + '1' FROM t WHERE name = '0x10'"), "2");
}

#[test]
fn a_literal_of_a_definition_means_what_it_meant_to_who_made_it() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("SET TIME ZONE 'America/New_York'");
    client.run(
        "CREATE TABLE t (i int, a timestamptz DEFAULT '2020-01-01 00:00', \
         b timestamptz DEFAULT timestamptz '2020-01-01 00:00' + interval '1 hour', \
         c timestamptz[] DEFAULT '{2020-01-01 00:00}', d text DEFAULT '2020-01-01 00:00'::timestamptz, \
         e timestamp DEFAULT '2020-01-01 00:00', f timestamptz DEFAULT 'now', \
         g timestamptz CHECK (g < '2020-01-01 00:00'), h bool GENERATED ALWAYS AS (g < '2019-01-01 00:00') STORED)",
    );
    client.run("CREATE VIEW v AS SELECT '2020-01-01 00:00'::timestamptz AS at, i FROM t WHERE a = '2020-01-01 00:00'");
    client.run("CREATE VIEW w AS SELECT *, timestamptz '2021-01-01 00:00' AS till FROM v");
    client.run("SET TIME ZONE 'UTC'");
    // The other columns are read anew with it.
    client.run("ALTER TABLE t ALTER e TYPE timestamp(3)");
    client.run("ALTER TABLE t ADD j timestamptz DEFAULT '2022-01-01 00:00'");
    client.run("SET TIME ZONE 'Asia/Tokyo'");
    client.run("INSERT INTO t (i) VALUES (1)");
    client.run("ALTER TABLE t ALTER a SET DEFAULT '2023-01-01 00:00'");
    client.run("SET TIME ZONE 'UTC'");
    assert_eq!(
        client.ask("SELECT concat_ws('|', a, b, c, d, e, f < now(), j) FROM t"),
        "2020-01-01 05:00:00+00|2020-01-01 06:00:00+00|{\"2020-01-01 05:00:00+00\"}|2020-01-01 14:00:00+09|\
         2020-01-01 00:00:00|t|2022-01-01 00:00:00+00"
    );
    assert_eq!(
        client.ask("SELECT concat_ws('|', at, till, i) FROM w"),
        "2020-01-01 05:00:00+00|2021-01-01 05:00:00+00|1"
    );
    assert_eq!(
        client.ask("INSERT INTO t (a, g) VALUES (DEFAULT, '2019-01-01 04:59') RETURNING a::text || ' ' || h"),
        "2022-12-31 15:00:00+00 true"
    );
    client.run("INSERT INTO t (g) VALUES ('2020-01-01 04:59')");
    let late = client.query("INSERT INTO t (g) VALUES ('2020-01-01 05:00')");
    assert_eq!(late.sqlstate(), "23514");
}

#[test]
fn a_literal_that_is_of_two_types_is_of_the_zone_of_who_made_the_view() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("SET TIME ZONE 'America/New_York'; CREATE TABLE t (a timestamptz, b date)");
    client.run("INSERT INTO t VALUES ('today', 'infinity')");
    client.run("CREATE VIEW v AS SELECT 'today' BETWEEN a AND b AS is_between FROM t");
    client.run("SET TIME ZONE 'Asia/Tokyo'");
    assert_eq!(client.ask("SELECT is_between FROM v"), "t");
}

#[test]
fn now_is_read_anew_for_each_statement_in_arrays_too() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    let first = client.ask("SELECT '{now}'::timestamptz[]");
    assert_ne!(client.ask("SELECT '{now}'::timestamptz[]"), first);
}

#[test]
fn what_is_computed_from_the_moment_is_not_kept_in_a_definition() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    for (definition, sqlstate) in [
        ("CREATE TABLE t (d date CHECK (d <= 'today'::text::date))", "0A000"),
        (
            "CREATE TABLE t (a timestamptz CHECK (a < '2020-01-01'::text::timestamptz))",
            "0A000",
        ),
        (
            "CREATE TABLE t (d date, e date GENERATED ALWAYS AS (greatest(d, 'today'::text::date)) STORED)",
            "42P17",
        ),
    ] {
        assert_eq!(client.query(definition).sqlstate(), sqlstate, "{definition}");
    }
    client.run("CREATE TABLE t (d date DEFAULT 'today'::text::date, a date CHECK (a < '2020-01-01'::text::date))");
    let index = client.query("CREATE INDEX ON t (d) WHERE d < 'today'::text::date");
    assert_ne!(index.sqlstate(), "00000");
}
