//! Advisory locks, sleeping and telling one another: what sessions do to each other without a table.

use std::time::{Duration, Instant};

use crate::client::{Client, query};
use crate::server;

#[test]
fn locks_are_held_between_sessions() {
    let server = server(&[]);
    let mut one = Client::connect(server.address());
    let mut two = Client::connect(server.address());
    assert_eq!(one.ask("SELECT pg_advisory_lock(7)"), "");
    assert_eq!(
        one.ask("SELECT * FROM pg_try_advisory_lock(7)"),
        "t",
        "again by the same"
    );
    assert_eq!(two.ask("SELECT pg_try_advisory_lock(7)"), "f");
    assert_eq!(
        two.ask("SELECT pg_try_advisory_lock(0, 7)"),
        "t",
        "two numbers are another key"
    );
    assert_eq!(two.ask("SELECT pg_try_advisory_lock_shared(7)"), "f");
    assert_eq!(one.ask("SELECT pg_advisory_unlock(7)"), "t");
    assert_eq!(two.ask("SELECT pg_try_advisory_lock(7)"), "f", "held once more");
    assert_eq!(one.ask("SELECT pg_advisory_unlock(7)"), "t");
    let answer = one.query("SELECT pg_advisory_unlock(7)");
    assert_eq!(answer.value().unwrap(), "f");
    let warning = answer.notice().unwrap();
    assert_eq!(
        (warning.sqlstate(), warning.message()),
        ("01000", "you don't own a lock of type ExclusiveLock")
    );
    one.run("SELECT pg_advisory_lock_shared(7)");
    assert_eq!(two.ask("SELECT pg_try_advisory_lock_shared(7)"), "t");
    assert_eq!(two.ask("SELECT pg_try_advisory_lock(7)"), "f");
    assert_eq!(one.query("SELECT pg_advisory_lock(NULL)").rows(), [[None]], "strict");
    assert_eq!(one.query("SELECT pg_advisory_lock('x')").sqlstate(), "22P02");
    assert_eq!(one.query("SELECT pg_advisory_lock(1.5)").sqlstate(), "42883");
    assert_eq!(
        one.query("SELECT 1 WHERE pg_try_advisory_lock(1)").sqlstate(),
        "0A000",
        "only as a column"
    );
    drop(one);
    two.run("SELECT pg_advisory_lock(7)");
}

#[test]
fn locks_of_a_transaction_end_with_it() {
    let server = server(&[]);
    let mut one = Client::connect(server.address());
    let mut two = Client::connect(server.address());
    one.run("SELECT pg_advisory_xact_lock(1)");
    assert_eq!(
        two.ask("SELECT pg_try_advisory_xact_lock(1)"),
        "t",
        "outside of a transaction it lasts for the statement"
    );
    one.run(
        "BEGIN; SELECT pg_advisory_xact_lock(1); SAVEPOINT a; SELECT pg_advisory_xact_lock(2), pg_advisory_lock(3)",
    );
    let free = |client: &mut Client, key: i32| client.ask(&format!("SELECT pg_try_advisory_xact_lock({key})"));
    assert_eq!([1, 2, 3].map(|key| free(&mut two, key)), ["f", "f", "f"]);
    one.run("ROLLBACK TO a");
    assert_eq!([1, 2, 3].map(|key| free(&mut two, key)), ["f", "t", "f"]);
    assert_eq!(one.ask("SELECT pg_advisory_unlock(1)"), "f", "not to be given back");
    one.run("COMMIT");
    assert_eq!([1, 2, 3].map(|key| free(&mut two, key)), ["t", "t", "f"]);
    one.run("BEGIN; SELECT pg_advisory_xact_lock(1)");
    assert_eq!(one.query("SELECT 1/0").sqlstate(), "22012");
    assert_eq!(free(&mut two, 1), "t", "a failed transaction holds nothing");
}

#[test]
fn who_waits_gets_it_in_turn_or_gives_up() {
    let server = server(&[]);
    let mut one = Client::connect(server.address());
    let mut two = Client::connect(server.address());
    one.run("SELECT pg_advisory_lock(1)");
    two.send(&query("SELECT pg_advisory_lock(1)"));
    assert!(two.read_within(Duration::from_millis(200)).is_none(), "it waits");
    let mut three = Client::connect(server.address());
    assert_eq!(three.ask("SELECT pg_try_advisory_lock_shared(1)"), "f");
    one.run("SELECT pg_advisory_unlock(1)");
    two.answer().expect("its turn");
    let began = Instant::now();
    let error = three
        .query("SET lock_timeout = 300; SELECT pg_advisory_lock(1)")
        .error()
        .unwrap();
    assert_eq!(
        (error.sqlstate(), error.message()),
        ("55P03", "canceling statement due to lock timeout")
    );
    assert!(began.elapsed() >= Duration::from_millis(250));
    three.run("SET lock_timeout = 0; SET statement_timeout = 200");
    assert_eq!(three.query("SELECT pg_advisory_lock(1)").sqlstate(), "57014");
    three.run("SET statement_timeout = 0");
    three.send(&query("SELECT pg_advisory_lock(1)"));
    assert_eq!(three.cancel_until_answered().sqlstate(), "57014");
    two.run("SELECT pg_advisory_unlock(1)");
    assert_eq!(
        three.ask("SELECT pg_try_advisory_lock(1)"),
        "t",
        "who gave up is in nobody's way"
    );
}

#[test]
fn deadlocks_are_found() {
    let server = server(&[]);
    let mut one = Client::connect(server.address());
    let mut two = Client::connect(server.address());
    one.run("CREATE TABLE t (a int)");
    one.run("SELECT pg_advisory_lock(1)");
    two.run("SELECT pg_advisory_lock(2)");
    two.send(&query("SELECT pg_advisory_lock(1)"));
    assert!(two.read_within(Duration::from_millis(300)).is_none(), "it waits");
    one.send(&query("SELECT pg_advisory_lock(2)"));
    assert_eq!(
        two.answer().sqlstate(),
        "40P01",
        "who has waited for longer looks first"
    );
    two.run("SELECT pg_advisory_unlock_all()");
    one.answer().expect("the other goes on");
    one.run("SELECT pg_advisory_unlock_all()");
    two.run("SELECT pg_advisory_lock(2)");
    // By way of the right to write.
    one.run("BEGIN; INSERT INTO t VALUES (1)");
    two.send(&query("INSERT INTO t VALUES (2)"));
    assert_eq!(one.query("SELECT pg_advisory_lock(2)").sqlstate(), "40P01");
    two.answer().expect("the other goes on");
}

#[test]
fn sleeping_can_be_ended() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    let began = Instant::now();
    assert_eq!(client.ask("SELECT pg_sleep(0.2)"), "");
    assert!(began.elapsed() >= Duration::from_millis(200));
    assert_eq!(client.ask("SELECT pg_sleep_for('1 millisecond')"), "");
    client.run("SET statement_timeout = '100ms'");
    assert_eq!(client.query("SELECT pg_sleep(60)").sqlstate(), "57014");
}

#[test]
fn sessions_tell_one_another() {
    let server = server(&[]);
    let mut one = Client::connect(server.address());
    let mut two = Client::connect(server.address());
    one.run("LISTEN news");
    two.run("BEGIN; NOTIFY news, 'a'; NOTIFY news, 'a'; SAVEPOINT s; NOTIFY news, 'lost'; ROLLBACK TO s; SELECT pg_notify('news', 'b')");
    assert!(
        one.read_within(Duration::from_millis(200)).is_none(),
        "nothing before the commit"
    );
    two.run("COMMIT");
    for payload in ["a", "b"] {
        let told = one.read().unwrap();
        assert_eq!(told.kind, b'A');
        assert!(
            told.body[4..].starts_with(format!("news\0{payload}\0").as_bytes()),
            "{told:?}"
        );
    }
    // Inside a transaction it is kept until the end.
    one.run("BEGIN");
    two.run("NOTIFY news");
    assert!(!one.run("SELECT 1").kinds().contains('A'));
    assert_eq!(one.run("COMMIT").kinds(), "CA");
    // What was not committed was not listened to.
    one.run("UNLISTEN *");
    one.run("BEGIN; LISTEN news; ROLLBACK");
    two.run("NOTIFY news");
    assert_eq!(one.run("SELECT 1").kinds(), "TDC");
    assert_eq!(
        two.query(&format!("NOTIFY news, '{}'", "x".repeat(8000))).sqlstate(),
        "22023"
    );
}

#[test]
fn for_update_takes_the_right_to_write() {
    let server = server(&[]);
    let mut one = Client::connect(server.address());
    let mut two = Client::connect(server.address());
    one.run("CREATE TABLE t (a int PRIMARY KEY, b int); INSERT INTO t VALUES (1, 0)");
    one.run("BEGIN");
    assert_eq!(one.ask("SELECT b FROM t WHERE a = 1 FOR UPDATE"), "0");
    two.send(&query("UPDATE t SET b = b + 1 WHERE a = 1"));
    assert!(two.read_within(Duration::from_millis(200)).is_none(), "it waits");
    one.run("UPDATE t SET b = b + 1 WHERE a = 1");
    one.run("COMMIT");
    two.answer().expect("its turn");
    assert_eq!(one.ask("SELECT b FROM t"), "2");
}
