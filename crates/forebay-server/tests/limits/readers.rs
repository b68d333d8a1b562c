//! Clients that keep reading connections and do not read: others read on.

use std::time::{Duration, Instant};

use crate::client::{Client, bind, execute, parse, query};
use crate::server;

/// Two hundred megabytes: more than any socket takes.
const LARGE: &str =
    "WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 20000) SELECT repeat('x', 10000) FROM s";

#[test]
fn clients_that_take_nothing_block_nobody() {
    let server = server(&["--readers", "4"]);
    let mut other = Client::connect(server.address());
    other.ask("SELECT 1");
    // Four may stand aside, four are in use, and four wait.
    let mut silent: Vec<Client> = (0..12).map(|_| Client::connect(server.address())).collect();
    for client in &mut silent {
        client.send(&query(LARGE));
    }
    assert_eq!(silent[0].read().unwrap().kind, b'T', "there is a result to be read");
    let begun = Instant::now();
    for _ in 0..20 {
        assert_eq!(other.ask("SELECT 1"), "1");
    }
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(8), "{took:?}");
}

#[test]
fn a_client_that_pauses_has_its_whole_result() {
    let server = server(&["--readers", "1"]);
    let mut slow = Client::connect(server.address());
    slow.send(&query(LARGE));
    // It has not read a byte, and its reader is the only one.
    let mut other = Client::connect(server.address());
    let begun = Instant::now();
    for _ in 0..10 {
        assert_eq!(other.ask("SELECT 1"), "1");
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!(slow.answer().expect("the whole of it").rows().len(), 20_000);
}

#[test]
fn a_snapshot_does_not_wait_for_its_client_for_ever() {
    let server = server(&[
        "--idle-snapshot-timeout",
        "500ms",
        "--idle-transaction-timeout",
        "0",
        "--readers",
        "2",
        "--busy-timeout",
        "100ms",
    ]);
    let mut other = Client::connect(server.address());
    other.run("CREATE TABLE t (a INTEGER)");
    other.run("INSERT INTO t VALUES (1), (2), (3)");
    // Whether everything could be moved out of the log: nobody reads an old state.
    let is_free = |other: &mut Client| {
        other.run("INSERT INTO t VALUES (4)");
        other.run("PRAGMA wal_checkpoint(TRUNCATE)").value().as_deref() == Some("0")
    };
    let mut portal = Client::connect(server.address());
    portal.run("BEGIN");
    let one = |portal: &mut Client| portal.pipeline(&[execute("p", 1)]);
    portal
        .pipeline(&[parse("s", "SELECT a FROM t"), bind("p", "s", &[]), execute("p", 1)])
        .expect("bound");
    let mut block = Client::connect(server.address());
    block.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    assert_eq!(block.ask("SELECT count(*) FROM t"), "3");
    // Both have been at work meanwhile, which does not make their snapshots younger.
    for _ in 0..2 {
        assert!(portal.read_within(Duration::from_millis(200)).is_none());
        one(&mut portal).expect("still there");
    }
    assert!(
        portal.read_within(Duration::from_millis(600)).is_none(),
        "nobody is sent away"
    );
    assert!(is_free(&mut other));
    let answer = one(&mut portal);
    assert_eq!((answer.sqlstate().as_str(), answer.status), ("72000", 'E'));
    portal.run("ROLLBACK");
    assert_eq!(portal.ask("SELECT count(*) FROM t"), "4");
    let answer = block.query("SELECT count(*) FROM t");
    assert_eq!((answer.sqlstate().as_str(), answer.status), ("72000", 'E'));
    block.run("ROLLBACK");
    assert_eq!(block.ask("SELECT count(*) FROM t"), "4");
}
