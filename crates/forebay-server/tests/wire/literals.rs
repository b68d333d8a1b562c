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
