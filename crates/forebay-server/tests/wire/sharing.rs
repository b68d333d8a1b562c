//! Shared commits as clients see them: not at all, but for the speed; and the hints that steer them.

use testbed::Forebay;

use crate::client::{Client, query};
use crate::server;

#[test]
fn a_write_that_is_acknowledged_is_read_by_everyone() {
    let server = server(&["--synchronous", "off"]);
    let mut writer = Client::connect(server.address());
    let mut readers: Vec<Client> = (0..4).map(|_| Client::connect(server.address())).collect();
    writer.run("CREATE TABLE t (a INTEGER PRIMARY KEY)");
    for number in 1..=2000 {
        writer.run(&format!("INSERT INTO t VALUES ({number})"));
        let count = readers[number % 4].ask("SELECT count(*) FROM t");
        assert_eq!(count, number.to_string());
    }
}

fn batches(server: &Forebay) -> u64 {
    server.metric("forebay_write_batches_total").unwrap().unwrap_or(0.0) as u64
}

#[test]
fn hints_gather_and_part() {
    let server = server(&[]);
    let mut clients: Vec<Client> = (0..20).map(|_| Client::connect(server.address())).collect();
    clients[0].run("CREATE TABLE t (a SERIAL PRIMARY KEY)");
    let round = |clients: &mut Vec<Client>, hint: &str| {
        let before = batches(&server);
        for client in clients.iter_mut() {
            client.send(&query(&format!("/* batch:{hint} */ INSERT INTO t DEFAULT VALUES")));
        }
        for client in clients.iter_mut() {
            client.answer().expect("inserted");
        }
        batches(&server) - before
    };
    // A window far longer than twenty messages take: they share one commit, or two if the machine is busy.
    let gathered = round(&mut clients, "500");
    assert!((1..=2).contains(&gathered), "{gathered} batches");
    let alone = round(&mut clients, "0");
    assert_eq!(alone, 0, "those that go alone are no batches");
    assert_eq!(clients[0].ask("SELECT count(*) FROM t"), "40");
}

#[test]
fn each_caller_in_a_batch_has_its_own_outcome() {
    let server = server(&[]);
    let mut holder = Client::connect(server.address());
    holder.run("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT CHECK (b <> 'bad'))");
    holder.run("INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'three')");
    holder.run("BEGIN; UPDATE t SET b = b");
    let statements = [
        (
            "INSERT INTO t VALUES (10, 'ten') RETURNING a, b",
            "00000",
            "INSERT 0 1",
            Some("10"),
        ),
        ("INSERT INTO t VALUES (1, 'again')", "23505", "", None),
        ("INSERT INTO t VALUES (11, 'bad')", "23514", "", None),
        ("UPDATE t SET b = b || '!' WHERE a < 3", "00000", "UPDATE 2", None),
        ("DELETE FROM t WHERE a = 99", "00000", "DELETE 0", None),
        ("INSERT INTO nowhere VALUES (1)", "42P01", "", None),
        (
            "DELETE FROM t WHERE a = 3 RETURNING b",
            "00000",
            "DELETE 1",
            Some("three"),
        ),
        ("INSERT INTO t VALUES (12, 'a'), (13, 'b'), (2, 'c')", "23505", "", None),
        (
            "INSERT INTO t VALUES (14, 'a'), (15, 'b') RETURNING a",
            "00000",
            "INSERT 0 2",
            Some("14"),
        ),
    ];
    let mut clients: Vec<Client> = statements.iter().map(|_| Client::connect(server.address())).collect();
    for (client, (sql, ..)) in clients.iter_mut().zip(&statements) {
        client.send(&query(sql));
    }
    holder.run("COMMIT");
    for (client, (sql, sqlstate, tag, value)) in clients.iter_mut().zip(&statements) {
        let answer = client.answer();
        assert_eq!(
            (answer.sqlstate().as_str(), answer.status),
            (*sqlstate, 'I'),
            "{sql}: {:?}",
            answer.error()
        );
        assert_eq!(answer.tags().first().map_or("", String::as_str), *tag, "{sql}");
        assert_eq!(answer.value().as_deref(), *value, "{sql}");
    }
    assert_eq!(
        holder.ask("SELECT string_agg(a || b, ',' ORDER BY a) FROM t"),
        "1one!,2two!,10ten,14a,15b"
    );
}
