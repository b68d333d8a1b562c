//! Asked to end: in order, in time, with nothing lost and nothing twice.

use std::time::{Duration, Instant};

use testbed::Forebay;

use crate::client::{Client, query, sync, whole};
use crate::load::{self, Load};
use crate::server;

/// Ends it by the signal; says how long that took.
fn end(server: &mut Forebay, signal: i32) -> Duration {
    let begun = Instant::now();
    server.signal(signal).unwrap();
    let status = server.wait(Duration::from_secs(15)).unwrap().expect("it ends");
    assert_eq!(status.code(), Some(0), "{}", server.output());
    begun.elapsed()
}

#[test]
fn a_signal_under_load_loses_nothing() {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let mut server = server(&[]);
        Client::connect(server.address()).run("CREATE TABLE t (a INTEGER)");
        let mut load = Load::start(server.address(), 50, 1);
        load.wait_for_acknowledged(500);
        let took = end(&mut server, signal);
        assert!(
            took < Duration::from_secs(5),
            "nobody is in a transaction, yet it took {took:?}"
        );
        let mut log = server.database().as_os_str().to_owned();
        log.push("-wal");
        let left = std::fs::metadata(log).map_or(0, |log| log.len());
        assert_eq!(left, 0, "the database is one file after a clean stop");
        let inserted = load.finish();
        for insert in &inserted {
            assert!(
                ["00000", "57P01", "57P03", ""].contains(&insert.sqlstate.as_str()),
                "{}",
                insert.sqlstate
            );
        }
        server.restart().unwrap();
        load::check(&inserted, &load::numbers(&mut Client::connect(server.address())));
    }
}

#[test]
fn an_open_transaction_may_finish() {
    let mut server = server(&[]);
    let mut client = Client::connect(server.address());
    let mut idle = Client::connect(server.address());
    client.run("CREATE TABLE t (a INTEGER)");
    client.run("BEGIN; INSERT INTO t VALUES (1)");
    server.signal(libc::SIGTERM).unwrap();
    // It has heard of it: who is idle is sent away.
    assert_eq!(idle.last_words().last().unwrap().failure().sqlstate(), "57P01");
    client.run("INSERT INTO t VALUES (2)");
    client.send(&query("COMMIT"));
    assert_eq!(client.answer().tags(), ["COMMIT"]);
    assert_eq!(client.last_words().last().unwrap().failure().sqlstate(), "57P01");
    assert_eq!(server.wait(Duration::from_secs(10)).unwrap().unwrap().code(), Some(0));
    server.restart().unwrap();
    assert_eq!(Client::connect(server.address()).ask("SELECT count(*) FROM t"), "2");
}

#[test]
fn what_was_acknowledged_ends_in_ready_for_query() {
    let mut server = server(&[]);
    let mut client = Client::connect(server.address());
    let mut idle = Client::connect(server.address());
    client.run("CREATE TABLE t (a INTEGER)");
    // The Sync has begun, so the write commits by itself; the rest of it comes when the server is known to stop.
    let sync = sync();
    let (begun, rest) = sync.split_at(1);
    client.send(&[&whole("INSERT INTO t VALUES (1)", &[])[..], begun].concat());
    while client.read().unwrap().kind != b'C' {}
    server.signal(libc::SIGTERM).unwrap();
    assert_eq!(idle.last_words().last().unwrap().failure().sqlstate(), "57P01");
    client.send(rest);
    assert_eq!(client.answer().status, 'I', "acknowledged, and nothing went wrong");
    assert_eq!(client.last_words().last().unwrap().failure().sqlstate(), "57P01");
    assert_eq!(server.wait(Duration::from_secs(10)).unwrap().unwrap().code(), Some(0));
    server.restart().unwrap();
    assert_eq!(Client::connect(server.address()).ask("SELECT count(*) FROM t"), "1");
}

#[test]
fn who_waits_or_runs_is_told_that_the_server_stops() {
    let mut server = server(&["--drain-timeout", "2s", "--readers", "2"]);
    let mut holder = Client::connect(server.address());
    holder.run("CREATE TABLE t (a INTEGER)");
    holder.run("BEGIN; INSERT INTO t VALUES (1)");
    let mut others: Vec<Client> = (0..4).map(|_| Client::connect(server.address())).collect();
    let forever = "WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s) SELECT count(*) FROM s";
    // Two that run, and take the readers; one that waits for a reader, one for the right to write.
    for other in &mut others[..3] {
        other.send(&query(forever));
    }
    others[3].send(&query("INSERT INTO t VALUES (2)"));
    for other in &mut others {
        let early = other.read_within(Duration::from_millis(100));
        assert!(early.is_none(), "{early:?}");
    }
    server.signal(libc::SIGTERM).unwrap();
    let mut is_acknowledged = false;
    for (place, other) in others.iter_mut().enumerate() {
        // Who waits to write may come to its turn, when the one before is sent away, and is answered then.
        let words = other.last_words_or_answers();
        is_acknowledged |= place == 3 && words.iter().any(|word| word.kind == b'C');
        let last = words.last().unwrap().failure();
        assert_eq!(
            (last.sqlstate(), last.field(b'S')),
            ("57P01", Some("FATAL")),
            "{place}: {words:?}"
        );
        assert!(
            words
                .iter()
                .all(|word| word.kind != b'E' || word.failure().sqlstate() == "57P01"),
            "{words:?}"
        );
        assert!(
            place == 3 || words.iter().all(|word| word.kind != b'C'),
            "{place}: {words:?}"
        );
    }
    server.restart().unwrap();
    let there = Client::connect(server.address()).ask("SELECT count(*) FROM t WHERE a = 2");
    assert!(!is_acknowledged || there == "1");
}

#[test]
fn nobody_can_hold_a_stop_up() {
    let mut server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a INTEGER)");
    // An idle transaction that has written; statements that read and write for ever; one that waits; half a start-up; half a
    // message; a portal behind which nothing comes; a client that reads nothing.
    let forever = "WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s) SELECT";
    client.run("BEGIN; INSERT INTO t VALUES (1)");
    let mut others: Vec<Client> = (0..5).map(|_| Client::connect(server.address())).collect();
    others[0].send(&query(&format!("{forever} count(*) FROM s")));
    others[1].send(&query("INSERT INTO t VALUES (2)"));
    others[2].send(&query(&format!("{forever} repeat('x', 1000) FROM s")));
    others[3].send(&query("SELECT 1")[..5]);
    others[4].send(&whole("INSERT INTO t VALUES (3)", &[]));
    let mut half = Client::raw(server.address());
    half.send(&[0, 0]);
    let took = end(&mut server, libc::SIGTERM);
    assert!(took < Duration::from_secs(10), "{took:?}");
    server.restart().unwrap();
    let mut client = Client::connect(server.address());
    assert_eq!(client.ask("SELECT count(*) FROM t WHERE a IN (1, 3)"), "0");
    // The one writer, by a statement that never ends.
    client.send(&query(&format!("INSERT INTO t {forever} n FROM s")));
    let took = end(&mut server, libc::SIGTERM);
    assert!(took < Duration::from_secs(10), "{took:?}");
    server.restart().unwrap();
    assert_eq!(
        Client::connect(server.address()).ask("SELECT count(*) FROM t WHERE a <> 2"),
        "0"
    );
}

#[test]
fn half_a_start_up_is_not_waited_for() {
    let mut server = server(&[]);
    let mut half = Client::raw(server.address());
    half.send(&[0, 0]);
    Client::connect(server.address()).ask("SELECT 1");
    let took = end(&mut server, libc::SIGTERM);
    assert!(took < Duration::from_secs(2), "{took:?}");
}
