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
