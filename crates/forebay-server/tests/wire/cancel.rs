//! Cancelling: by request and by time, whatever the statement does, and nobody else's.

use std::time::{Duration, Instant};

use crate::client::{Client, message, query, whole};
use crate::server;

const FOREVER: &str = "WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s) SELECT count(*) FROM s";

#[test]
fn what_reads_is_cancelled_by_its_own_secret_only() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.send(&query(FOREVER));
    let mut wrong = client.secret.clone();
    wrong[0] ^= 1;
    for secret in [&wrong[..], &[], &[0; 32], &client.secret[..3]] {
        client.cancel(secret);
    }
    assert!(
        client.read_within(Duration::from_millis(100)).is_none(),
        "a stranger cannot cancel"
    );
    let answer = client.cancel_until_answered();
    assert_eq!((answer.sqlstate().as_str(), answer.status), ("57014", 'I'));
    // A cancel that comes too late cancels nothing.
    client.cancel(&client.secret.clone());
    assert_eq!(client.ask("SELECT 1"), "1");
}

#[test]
fn what_writes_is_cancelled_and_has_no_effect() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a INTEGER)");
    let write = format!("INSERT INTO t {FOREVER}");
    client.send(&query(&write));
    let answer = client.cancel_until_answered();
    assert_eq!((answer.sqlstate().as_str(), answer.status), ("57014", 'I'));
    // In a transaction: a read that is cancelled can be stepped behind by a savepoint; a write takes the transaction with
    // it, for SQLite rolls all of it back.
    client.run("BEGIN; INSERT INTO t VALUES (1); SAVEPOINT a");
    client.send(&query(FOREVER));
    let answer = client.cancel_until_answered();
    assert_eq!((answer.sqlstate().as_str(), answer.status), ("57014", 'E'));
    client.run("ROLLBACK TO a");
    client.run("COMMIT");
    client.run("BEGIN; INSERT INTO t VALUES (5)");
    client.send(&query(&write));
    let answer = client.cancel_until_answered();
    assert_eq!((answer.sqlstate().as_str(), answer.status), ("57014", 'E'));
    assert_eq!(client.query("INSERT INTO t VALUES (6)").sqlstate(), "25P02");
    assert_eq!(client.run("COMMIT").tags(), ["ROLLBACK"]);
    assert_eq!(client.ask("SELECT string_agg(a::text, ',' ORDER BY a) FROM t"), "1");
    // Many neighbours in the same batch are not cancelled with it.
    let mut holder = Client::connect(server.address());
    holder.run("BEGIN; INSERT INTO t VALUES (2)");
    let mut neighbours: Vec<Client> = (0..10).map(|_| Client::connect(server.address())).collect();
    for (number, neighbour) in neighbours.iter_mut().enumerate() {
        neighbour.send(&query(&format!("INSERT INTO t VALUES ({})", number + 10)));
    }
    client.send(&query(&write));
    holder.run("COMMIT");
    assert_eq!(client.cancel_until_answered().sqlstate(), "57014");
    for neighbour in &mut neighbours {
        neighbour.answer().expect("not cancelled");
    }
    assert_eq!(client.ask("SELECT count(*) FROM t"), "12");
}

#[test]
fn what_waits_is_cancelled_and_never_runs() {
    let server = server(&[]);
    let mut holder = Client::connect(server.address());
    holder.run("CREATE TABLE t (a INTEGER)");
    holder.run("BEGIN; INSERT INTO t VALUES (1)");
    let mut client = Client::connect(server.address());
    for sql in [
        "INSERT INTO t VALUES (2)",
        "BEGIN ISOLATION LEVEL SERIALIZABLE; INSERT INTO t VALUES (3)",
        "/* batch:0 */ INSERT INTO t VALUES (4)",
    ] {
        client.send(&query(sql));
        let answer = client.cancel_until_answered();
        assert_eq!(answer.sqlstate(), "57014", "{sql}");
        client.run("ROLLBACK");
    }
    // Also where it waits before its text, which is not known yet, can be compiled; and it does not wait once more for having waited.
    client.run("BEGIN ISOLATION LEVEL SERIALIZABLE");
    client.send(&query("SELECT a + 1, 'first' FROM t WHERE a = 4711"));
    let answer = client.cancel_until_answered();
    assert_eq!((answer.sqlstate().as_str(), answer.status), ("57014", 'E'));
    client.run("ROLLBACK; SET lock_timeout = '1500ms'; BEGIN ISOLATION LEVEL SERIALIZABLE");
    let begun = Instant::now();
    let answer = client.query("SELECT a + 2, 'second' FROM t WHERE a = 4712");
    assert_eq!(answer.sqlstate(), "55P03");
    assert!(begun.elapsed() < Duration::from_millis(2900), "{:?}", begun.elapsed());
    client.run("ROLLBACK; RESET lock_timeout");
    let answer = {
        client.send(
            &[
                whole("INSERT INTO t VALUES (5)", &[]),
                whole("INSERT INTO t VALUES (6)", &[]),
                crate::client::sync(),
            ]
            .concat(),
        );
        client.cancel_until_answered()
    };
    assert_eq!((answer.sqlstate().as_str(), answer.status), ("57014", 'I'));
    holder.run("COMMIT");
    assert_eq!(client.ask("SELECT string_agg(a::text, ',' ORDER BY a) FROM t"), "1");
}

#[test]
fn a_statement_ends_at_its_timeout() {
    let server = server(&["--statement-timeout", "20s"]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a INTEGER)");
    client.run("SET statement_timeout = '150ms'");
    let timed = |client: &mut Client, sql: &str| {
        let begun = Instant::now();
        let answer = client.query(sql);
        assert_eq!(answer.sqlstate(), "57014", "{sql}");
        assert!(answer.error().unwrap().message().contains("timeout"), "{answer:?}");
        assert!(
            begun.elapsed() >= Duration::from_millis(140),
            "{sql}: after {:?}",
            begun.elapsed()
        );
    };
    timed(&mut client, FOREVER);
    timed(&mut client, &format!("INSERT INTO t {FOREVER}"));
    let mut holder = Client::connect(server.address());
    holder.run("BEGIN; INSERT INTO t VALUES (1)");
    timed(&mut client, "INSERT INTO t VALUES (2)");
    client.run("BEGIN");
    timed(&mut client, "INSERT INTO t VALUES (3)");
    client.run("ROLLBACK");
    holder.run("COMMIT");
    // The server's own limit cannot be lifted by a session.
    client.run("SET statement_timeout = 0");
    assert_eq!(client.ask("SELECT string_agg(a::text, ',' ORDER BY a) FROM t"), "1");
    let strict = crate::server(&["--statement-timeout", "100ms"]);
    let mut client = Client::connect(strict.address());
    client.run("SET statement_timeout = 0");
    assert_eq!(client.query(FOREVER).sqlstate(), "57014");
    client.run("SET statement_timeout = '1h'");
    assert_eq!(client.query(FOREVER).sqlstate(), "57014");
}

#[test]
fn a_copy_is_cancelled_while_it_waits_for_data() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a int)");
    client.send(&query("COPY t FROM STDIN"));
    assert_eq!(client.read().unwrap().kind, b'G');
    client.send(&message(b'd', b"1\n"));
    let answer = client.cancel_until_answered();
    assert_eq!((answer.sqlstate().as_str(), answer.status), ("57014", 'I'));
    assert_eq!(client.ask("SELECT count(*) FROM t"), "0");
}

/// A function of SQLite's that computes for long does not come back to SQLite in between.
#[test]
fn a_long_search_for_a_regular_expression_is_ended() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    let endless = "regexp_replace(repeat('a', 300000), 'a(.*b)?', 'x', 'g')";
    client.send(&query(&format!("SELECT length({endless})")));
    assert_eq!(client.cancel_until_answered().sqlstate(), "57014");
    client.run("SET statement_timeout = '50ms'");
    let ended = client.query(&format!("SELECT length({endless})"));
    assert_eq!(
        ended.error().unwrap().message(),
        "canceling statement due to statement timeout"
    );
    // As one that writes, it would hold the writer.
    client.run("CREATE TABLE held AS SELECT 1 AS a");
    let ended = client.query(&format!("UPDATE held SET a = length({endless})"));
    assert_eq!(ended.sqlstate(), "57014");
    client.run("RESET statement_timeout");
    assert_eq!(client.ask("SELECT a FROM held"), "1");
}
