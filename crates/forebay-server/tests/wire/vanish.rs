//! Clients that vanish at the worst moment: what they did is there whole, or not at all, and nobody waits for them.

use crate::client::{Client, bind, execute, parse, query, sync, whole};
use crate::server;

#[test]
fn what_was_not_synced_is_not_there() {
    let server = server(&[]);
    let mut other = Client::connect(server.address());
    other.run("CREATE TABLE t (a INTEGER PRIMARY KEY)");
    let insert = |value: i32| whole("INSERT INTO t VALUES ($1)", &[&value.to_string()]);
    for (count, unfinished) in [
        parse("", "INSERT INTO t VALUES (1)"),
        [parse("", "INSERT INTO t VALUES (1)"), bind("", "", &[])].concat(),
        // Executed or not, it was never asked to be committed.
        insert(1),
        [insert(1), insert(2)].concat(),
        [insert(1), insert(2), b"S\0\0".to_vec()].concat(),
        query("BEGIN; INSERT INTO t VALUES (1)"),
        [
            query("BEGIN"),
            query("INSERT INTO t VALUES (1)"),
            query("COMMIT")[..3].to_vec(),
        ]
        .concat(),
    ]
    .into_iter()
    .enumerate()
    {
        let mut client = Client::connect(server.address());
        client.send(&unfinished);
        if count % 2 == 0 {
            drop(client);
        } else {
            // Half closed: the server answers what it can, then goes.
            client.stream.shutdown(std::net::Shutdown::Write).unwrap();
            client.last_words_or_answers();
        }
        // A write behind it, so that whatever it held has been given back.
        other.run("INSERT INTO t VALUES (100); DELETE FROM t WHERE a = 100");
        assert_eq!(other.ask("SELECT count(*) FROM t"), "0", "step {count}");
    }
}

#[test]
fn what_was_sent_whole_is_there_whole_or_not_at_all() {
    let server = server(&[]);
    let mut other = Client::connect(server.address());
    other.run("CREATE TABLE t (client INTEGER, a INTEGER)");
    for number in 0..100 {
        let mut client = Client::connect(server.address());
        let insert = |a: i32| whole("INSERT INTO t VALUES ($1, $2)", &[&number.to_string(), &a.to_string()]);
        client.send(&[insert(1), insert(2), insert(3), sync()].concat());
        if number % 2 == 0 {
            // Gone while it runs; a reset, for its answers are not read.
            drop(client);
        } else {
            client.answer();
        }
    }
    let halves = "SELECT count(*) FROM (SELECT client FROM t GROUP BY client HAVING count(*) <> 3)";
    assert_eq!(other.ask(halves), "0");
    assert_eq!(other.ask("SELECT count(*) FROM t WHERE client % 2 = 1"), "150");
}

#[test]
fn a_client_that_vanishes_from_a_batch_takes_nobody_with_it() {
    let server = server(&[]);
    let mut holder = Client::connect(server.address());
    holder.run("CREATE TABLE t (a INTEGER)");
    holder.run("BEGIN; INSERT INTO t VALUES (0)");
    // They gather behind the open transaction; every other one vanishes while it waits.
    let mut waiting: Vec<Client> = (1..=40).map(|_| Client::connect(server.address())).collect();
    for (number, client) in waiting.iter_mut().enumerate() {
        client.send(&query(&format!("INSERT INTO t VALUES ({})", number + 1)));
    }
    let mut kept = Vec::new();
    for (number, client) in waiting.into_iter().enumerate() {
        if number % 2 == 0 {
            kept.push(client);
        }
    }
    holder.run("COMMIT");
    for client in &mut kept {
        assert_eq!(
            client.answer().expect("a neighbour of the vanished").tags(),
            ["INSERT 0 1"]
        );
    }
    assert_eq!(holder.ask("SELECT count(*) FROM t WHERE a % 2 = 1"), "20");
    assert_eq!(holder.ask("SELECT count(*) - count(DISTINCT a) FROM t"), "0");
}

#[test]
fn an_idle_transaction_gives_the_writer_back_in_time() {
    let server = server(&["--idle-transaction-timeout", "300ms", "--readers", "1"]);
    let mut idle = Client::connect(server.address());
    idle.run("CREATE TABLE t (a INTEGER)");
    idle.run("BEGIN; INSERT INTO t VALUES (1)");
    let mut other = Client::connect(server.address());
    other.run("INSERT INTO t VALUES (2)");
    let words = idle.last_words();
    assert_eq!(words.last().unwrap().failure().sqlstate(), "25P03");
    assert_eq!(other.ask("SELECT string_agg(a::text, ',' ORDER BY a) FROM t"), "2");
    // One that holds nothing may idle: it is nobody's business.
    let mut reader = Client::connect(server.address());
    reader.run("BEGIN");
    reader.ask("SELECT count(*) FROM t");
    assert!(reader.read_within(std::time::Duration::from_millis(600)).is_none());
    assert_eq!(reader.ask("SELECT count(*) FROM t"), "1");
    reader.run("COMMIT");
    // An open portal holds the one reader that there is, and somebody waits for it; also while the message behind it is not finished.
    for tail in [Vec::new(), [bind("", "w", &[]), execute("", 0)].concat()] {
        let mut holder = Client::connect(server.address());
        holder.send(
            &[
                parse("w", "INSERT INTO t VALUES (3)"),
                parse("", "SELECT a FROM t UNION ALL SELECT 1"),
                bind("p", "", &[]),
                execute("p", 1),
                tail,
            ]
            .concat(),
        );
        // Read first, so that the portal is open before anybody asks for its reader.
        while holder.read().unwrap().kind != b's' {}
        other.send(&query("SELECT 1"));
        let words = holder.last_words();
        assert_eq!(words.last().unwrap().failure().sqlstate(), "25P03");
        other.answer().expect("the reader is free again");
    }
    assert_eq!(other.ask("SELECT string_agg(a::text, ',' ORDER BY a) FROM t"), "2");
}
