//! ALTER TABLE as clients see it: at once on every connection, not before its commit, and never by writing to the schema themselves.

use crate::client::{Client, query};
use crate::server;

/// The SQLSTATE of a statement's error, `00000` if there is none.
fn refused(client: &mut Client, sql: &str) -> String {
    client.send(&query(sql));
    client.answer().sqlstate()
}

#[test]
fn other_connections_see_an_alteration_once_it_is_committed() {
    let server = server(&[]);
    let mut first = Client::connect(server.address());
    let mut second = Client::connect(server.address());
    first.run("CREATE TABLE t (a integer, b text)");
    first.run("INSERT INTO t VALUES (1, '10')");
    assert_eq!(second.ask("SELECT b FROM t"), "10");
    first.run("BEGIN");
    first.run("ALTER TABLE t ALTER b TYPE integer USING b::integer + 1, ADD c text DEFAULT 'new'");
    assert_eq!(first.ask("SELECT c FROM t"), "new");
    assert_eq!(second.ask("SELECT b FROM t"), "10");
    assert_eq!(refused(&mut second, "SELECT c FROM t"), "42703");
    first.run("COMMIT");
    assert_eq!(second.ask("SELECT b FROM t"), "11");
    assert_eq!(second.ask("SELECT c FROM t"), "new");
    second.run("ALTER TABLE t RENAME TO u");
    assert_eq!(refused(&mut first, "SELECT c FROM t"), "42P01");
    first.run("INSERT INTO u (a) VALUES (2)");
    assert_eq!(second.ask("SELECT count(c) FROM u"), "2");
    first.run("BEGIN");
    first.run("ALTER TABLE u DROP COLUMN c");
    first.run("ROLLBACK");
    assert_eq!(first.ask("SELECT count(c) FROM u"), "2");
    assert_eq!(first.ask("PRAGMA integrity_check"), "ok");
}

#[test]
fn clients_cannot_write_to_the_schema_themselves() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a integer)");
    client.run("ALTER TABLE t ADD b integer DEFAULT 1");
    for attempt in [
        "PRAGMA writable_schema = ON",
        "PRAGMA schema_version = 7",
        "UPDATE sqlite_schema SET sql = ''",
        "UPDATE sqlite_master SET sql = ''",
        "SELECT * FROM forebay_altered",
    ] {
        assert_ne!(refused(&mut client, attempt), "00000", "{attempt}");
    }
    assert_eq!(client.ask("SELECT count(*) FROM t"), "0");
}

#[test]
fn a_column_with_a_deferred_key_comes_in_one_script() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE p (id integer PRIMARY KEY)");
    client.run("CREATE TABLE t (a integer)");
    client.run(
        "ALTER TABLE t ADD COLUMN p integer NULL CONSTRAINT t_p_fk REFERENCES p (id) DEFERRABLE INITIALLY DEFERRED; \
         SET CONSTRAINTS t_p_fk IMMEDIATE",
    );
    client.run("BEGIN");
    client.run("INSERT INTO t (p) VALUES (7)");
    assert_eq!(refused(&mut client, "SET CONSTRAINTS ALL IMMEDIATE"), "23503");
    client.run("ROLLBACK");
}

/// A literal was read as one of the type that the column had; PostgreSQL casts its value wherever it is used.
#[test]
fn a_default_is_of_the_type_that_its_column_had() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    for (from, default, to, value) in [
        ("date", "'1/2/2024'", "text", "2024-01-02"),
        ("int", "'007'", "text", "7"),
        ("bigint", "' 7 '", "varchar(9)", "7"),
        ("boolean", "'on'", "text", "true"),
        ("jsonb", r#"'{"b":1, "a":2}'"#, "text", r#"{"a": 2, "b": 1}"#),
        ("timestamp", "'2024-01-02'", "text", "2024-01-02 00:00:00"),
        ("float8", "'1e3'", "text", "1000"),
        ("numeric", "'1e3'", "text", "1000"),
        ("numeric(5,2)", "5", "text", "5"),
        ("bigint", "1.6", "text", "1.6"),
        ("time", "'1:2:3'", "text", "01:02:03"),
        ("interval", "'36:00'", "text", "36:00:00"),
        ("int[]", "'{1, 2}'", "text", "{1,2}"),
        (
            "uuid",
            "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'",
            "text",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        ),
        ("bytea", "'abc'", "text", r"\x616263"),
        ("float8", "'2.5'", "int", "2"),
        ("numeric", "'2.5'", "int", "3"),
        ("float8", "2.5", "int", "3"),
        ("date", "'2024-03-01'", "timestamp", "2024-03-01 00:00:00"),
        ("text", "'a '", "varchar(5)", "a "),
        ("varchar(5)", "'a '", "text", "a "),
        ("char(5)", "'a'", "text", "a"),
        ("int", "7", "bigint", "7"),
        ("boolean", "true", "text", "true"),
    ] {
        client.run("DROP TABLE IF EXISTS t");
        client.run(&format!("CREATE TABLE t (id int, c {from} DEFAULT {default})"));
        client.run(&format!("ALTER TABLE t ALTER c TYPE {to}"));
        client.run("INSERT INTO t VALUES (1)");
        assert_eq!(client.ask("SELECT c::text FROM t"), value, "{from} {default} {to}");
    }
    let twice = "ALTER TABLE t ALTER c TYPE varchar, ALTER c TYPE text";
    assert_eq!(refused(&mut client, twice), "0A000");
    client.run("CREATE TABLE r (c interval(0) DEFAULT '1.6 s')");
    assert_eq!(refused(&mut client, "ALTER TABLE r ALTER c TYPE text"), "0A000");
    // The zone is that of who inserts.
    client.run("SET TimeZone = 'Europe/Berlin'; CREATE TABLE w (id int, d date DEFAULT '2024-03-01')");
    client.run("ALTER TABLE w ALTER d TYPE timestamptz; SET TimeZone = 'UTC'; INSERT INTO w VALUES (1)");
    assert_eq!(client.ask("SELECT d FROM w"), "2024-03-01 00:00:00+00");
    client.run("SET TimeZone = 'Asia/Tokyo'; CREATE TABLE v (id int, d timestamptz DEFAULT '2024-01-02 23:30+00')");
    client.run("SET TimeZone = 'America/New_York'; ALTER TABLE v ALTER d TYPE timestamp; INSERT INTO v VALUES (1)");
    assert_eq!(client.ask("SELECT d FROM v"), "2024-01-02 18:30:00");
}

/// PostgreSQL keeps the types that a condition's literals had. What would be read otherwise is refused.
#[test]
fn a_check_does_not_change_its_meaning_with_its_columns_type() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    for (from, check, to, state) in [
        ("timestamptz", "c >= '2024-01-01 12:00+00'", "date", "0A000"),
        ("text", "c IN ('a ', 'b')", "char(3)", "0A000"),
        ("numeric", "c / 2 > 1", "bigint", "0A000"),
        ("timestamp", "c < '2024-01-01 12:00'", "date", "0A000"),
        ("char(5)", "c <> 'ab '", "text", "0A000"),
        ("numeric", "c < '1.5'", "int", "0A000"),
        ("int", "c < '10'", "text", "0A000"),
        ("int", "c > 0", "bigint", "00000"),
        ("int", "c < '10'", "bigint", "00000"),
        ("int", "c / 2 > 1", "numeric", "0A000"),
        ("int", "c > 0.1", "float8", "0A000"),
        ("int", "c >= id", "float8", "0A000"),
        ("int", "c::int % 2 = 1", "bigint", "0A000"),
        ("varchar(3)", "c::varchar(3) <> 'abc'", "varchar(9)", "0A000"),
        ("int", "c >= 0", "numeric", "00000"),
        ("varchar(3)", "c::text <> 'abc'", "varchar(9)", "00000"),
        ("varchar(5)", "c <> 'ab'", "text", "00000"),
        ("numeric(5,2)", "c > 0.5", "numeric(7,2)", "00000"),
        ("text", "id > 0", "char(3)", "00000"),
    ] {
        client.run("DROP TABLE IF EXISTS t");
        client.run(&format!(
            "CREATE TABLE t (id int, c {from}, CONSTRAINT sound CHECK ({check}))"
        ));
        let altered = refused(&mut client, &format!("ALTER TABLE t ALTER c TYPE {to}"));
        assert_eq!(altered, state, "{from} {check} {to}");
        // As the hint says.
        if state != "00000" {
            client.run("ALTER TABLE t DROP CONSTRAINT sound");
            client.run(&format!("ALTER TABLE t ALTER c TYPE {to}"));
        }
    }
}
