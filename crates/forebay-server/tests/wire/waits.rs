//! What a session does while another one has the right to write: waits as long as it said, fails at once, or skips; and how long the
//! other one may idle.

use std::time::{Duration, Instant};

use testbed::Forebay;

use crate::client::{Client, bind, execute, message, parse, query};
use crate::server;

/// A server, one client that holds the right to write, and one that wants it.
fn held() -> (Forebay, Client, Client) {
    let server = server(&[]);
    let mut holder = Client::connect(server.address());
    holder.run("CREATE TABLE jobs (id int PRIMARY KEY, done bool); INSERT INTO jobs VALUES (1, false), (2, false)");
    holder.run("BEGIN; UPDATE jobs SET done = done WHERE id = 1");
    let client = Client::connect(server.address());
    (server, holder, client)
}

#[test]
fn a_lock_is_waited_for_no_longer_than_lock_timeout() {
    let (_server, mut holder, mut client) = held();
    client.run("SET lock_timeout = '300ms'");
    let change = "UPDATE jobs SET done = true WHERE id = 2";
    let times_out = |client: &mut Client, sql: &str| {
        let began = Instant::now();
        let error = client.query(sql).error().unwrap();
        assert_eq!(
            (error.sqlstate(), error.message()),
            ("55P03", "canceling statement due to lock timeout"),
            "{sql}"
        );
        assert!(began.elapsed() >= Duration::from_millis(250), "{sql}");
    };
    for sql in [
        change,
        "/* batch:0 */ UPDATE jobs SET done = true WHERE id = 2",
        "INSERT INTO jobs VALUES (3, false) RETURNING id",
        "CREATE TABLE other (a int)",
        "SELECT id FROM jobs FOR UPDATE",
    ] {
        times_out(&mut client, sql);
    }
    for sql in [change, "SELECT id FROM jobs FOR SHARE", "LOCK TABLE jobs"] {
        client.run("BEGIN");
        times_out(&mut client, sql);
        client.run("ROLLBACK");
    }
    client.run("BEGIN; SET LOCAL lock_timeout = 0");
    client.send(&query(change));
    assert!(client.read_within(Duration::from_millis(600)).is_none(), "it waits");
    holder.run("COMMIT");
    client.answer().expect("its turn");
    client.run("COMMIT");
    client.run("UPDATE jobs SET done = NOT done");
    assert_eq!(
        holder.ask("SELECT string_agg(id || done::text, ',' ORDER BY id) FROM jobs"),
        "1true,2false",
        "what timed out had no effect"
    );
}

#[test]
fn a_transaction_idles_no_longer_than_its_session_allows() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("SET idle_in_transaction_session_timeout = '300ms'");
    assert!(
        client.read_within(Duration::from_millis(600)).is_none(),
        "outside of a transaction it may idle"
    );
    // Nobody waits for anything.
    client.run("BEGIN");
    let began = Instant::now();
    let words = client.last_words();
    let error = words.last().unwrap().failure();
    assert_eq!(
        (error.field(b'S'), error.sqlstate(), error.message()),
        (
            Some("FATAL"),
            "25P03",
            "terminating connection due to idle-in-transaction timeout"
        )
    );
    assert!(began.elapsed() >= Duration::from_millis(250));
    // Between the messages of a group it is not idle, nor while the client sends what is copied.
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a int)");
    client.run("SET idle_in_transaction_session_timeout = '300ms'");
    client.send(
        &[
            parse("", "INSERT INTO t VALUES (1)"),
            bind("", "", &[]),
            execute("", 0),
            message(b'H', b""),
        ]
        .concat(),
    );
    while client.read().unwrap().kind != b'C' {}
    assert!(client.read_within(Duration::from_millis(600)).is_none());
    client.send(&message(b'S', b""));
    client.answer().expect("the group has ended");
    client.send(&query("BEGIN; COPY t FROM STDIN"));
    while client.read().unwrap().kind != b'G' {}
    assert!(client.read_within(Duration::from_millis(600)).is_none());
    client.send(&[message(b'd', b"2\n"), message(b'c', b"")].concat());
    client.answer().expect("copied");
    client.run("COMMIT");
    assert_eq!(client.ask("SELECT sum(a) FROM t"), "3");
}

#[test]
fn nowait_fails_at_once() {
    let (_server, mut holder, mut client) = held();
    let refused = |client: &mut Client, sql: &str| {
        let error = client.query(sql).error().unwrap();
        assert_eq!(error.sqlstate(), "55P03", "{sql}");
        error.message().to_owned()
    };
    for sql in [
        "SELECT * FROM jobs FOR UPDATE NOWAIT",
        "SELECT * FROM public.jobs j FOR NO KEY UPDATE OF j NOWAIT",
        "UPDATE jobs SET done = true WHERE id = (SELECT id FROM jobs FOR UPDATE NOWAIT LIMIT 1)",
    ] {
        let message = refused(&mut client, sql);
        assert_eq!(message, "could not obtain lock on row in relation \"jobs\"", "{sql}");
    }
    client.run("BEGIN");
    let message = refused(&mut client, "LOCK TABLE jobs IN EXCLUSIVE MODE NOWAIT");
    assert_eq!(message, "could not obtain lock on relation \"jobs\"");
    client.run("ROLLBACK");
    assert_eq!(
        holder.ask("SELECT count(*) FROM (SELECT 1 FROM jobs FOR UPDATE NOWAIT) AS own"),
        "2",
        "who has it needs not wait"
    );
    holder.run("COMMIT");
    client.run("BEGIN");
    assert_eq!(
        client.ask("SELECT count(*) FROM (SELECT 1 FROM jobs FOR UPDATE NOWAIT) AS free"),
        "2"
    );
    assert_eq!(refused(&mut holder, "SELECT * FROM jobs FOR SHARE NOWAIT").len(), 47);
}

#[test]
fn what_another_transaction_may_change_is_skipped() {
    let (_server, mut holder, mut client) = held();
    let next = "SELECT id FROM jobs WHERE NOT done ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1";
    assert!(client.query(next).rows().is_empty());
    client.run("BEGIN; SAVEPOINT s");
    let answer = client.query(next);
    assert_eq!((answer.rows().len(), answer.tags()), (0, vec!["SELECT 0".to_owned()]));
    assert_eq!(
        client.ask("SELECT count(*) FROM jobs"),
        "2",
        "who only reads skips nothing"
    );
    assert_eq!(holder.ask(next), "1", "its own are not locked for it");
    holder.run("UPDATE jobs SET done = true WHERE id = 1");
    holder.run("COMMIT");
    assert_eq!(client.ask(next), "2");
    client.run("ROLLBACK TO s; COMMIT");
    for sql in [
        "SELECT count(*) FROM jobs FOR UPDATE SKIP LOCKED",
        "SELECT DISTINCT id FROM jobs FOR UPDATE",
        "SELECT id FROM jobs GROUP BY id FOR UPDATE",
        "SELECT id FROM jobs UNION SELECT id FROM jobs FOR UPDATE",
    ] {
        assert_eq!(client.query(sql).sqlstate(), "0A000", "{sql}");
    }
}

#[test]
fn no_job_is_given_twice() {
    const JOBS: usize = 200;
    const WORKERS: usize = 8;
    let server = server(&["--synchronous", "off"]);
    let mut client = Client::connect(server.address());
    client.run(&format!(
        "CREATE TABLE jobs (id int PRIMARY KEY, done bool); INSERT INTO jobs SELECT id, false FROM generate_series(1, {JOBS}) AS id"
    ));
    let take = "UPDATE jobs SET done = true WHERE id = \
         (SELECT id FROM jobs WHERE NOT done ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING id";
    let mut taken: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|number| {
                let mut worker = Client::connect(server.address());
                scope.spawn(move || {
                    let mut taken = Vec::new();
                    loop {
                        // Some by themselves, some in a transaction that locks first.
                        let in_transaction = (taken.len() + number) % 3 == 0;
                        if in_transaction {
                            worker.run("BEGIN");
                            worker.run("SELECT id FROM jobs WHERE NOT done FOR UPDATE SKIP LOCKED LIMIT 1");
                        }
                        let job = worker.query(take).value();
                        if in_transaction {
                            worker.run("COMMIT");
                        }
                        match job {
                            Some(job) => taken.push(job),
                            None => return taken,
                        }
                    }
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert_eq!(taken.len(), JOBS);
    taken.sort_unstable();
    taken.dedup();
    assert_eq!(taken.len(), JOBS);
}

#[test]
fn extensions_that_are_built_in_are_there_already() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    for name in ["pgcrypto", "\"uuid-ossp\"", "plpgsql"] {
        let answer = client.query(&format!("CREATE EXTENSION IF NOT EXISTS {name} WITH SCHEMA public"));
        assert_eq!(answer.tags(), ["CREATE EXTENSION"], "{name}");
        assert!(answer.notice().unwrap().message().ends_with("already exists, skipping"));
        assert_eq!(
            client.query(&format!("CREATE EXTENSION {name}")).sqlstate(),
            "42710",
            "{name}"
        );
        assert_eq!(
            client.query(&format!("DROP EXTENSION IF EXISTS {name}")).sqlstate(),
            "0A000",
            "{name}"
        );
    }
    let error = client.query("CREATE EXTENSION IF NOT EXISTS hstore").error().unwrap();
    assert_eq!(
        (error.sqlstate(), error.message()),
        ("0A000", "extension \"hstore\" is not available")
    );
    let answer = client.query("DROP EXTENSION IF EXISTS hstore CASCADE");
    assert_eq!(answer.tags(), ["DROP EXTENSION"]);
    assert_eq!(
        answer.notice().unwrap().message(),
        "extension \"hstore\" does not exist, skipping"
    );
    assert_eq!(client.query("DROP EXTENSION hstore").sqlstate(), "42704");
    client.run("SELECT gen_random_uuid(), uuid_generate_v4()");
}
