//! What is sent in one write, before anything of it is answered: names that are given anew behind an error, and what stands on how a transaction ends.
//! Beside the PostgreSQL that is behind the proxy.

use std::net::SocketAddr;

use crate::client::{Client, bind, close, describe, execute, flush, parse, query, sync};
use crate::{at, postgres, proxy};

/// Names and types, formats: a table that is made anew has another number.
fn columns(body: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut rest = &body[2..];
    let mut columns = Vec::new();
    while let Some(end) = rest.iter().position(|byte| *byte == 0) {
        let name = String::from_utf8_lossy(&rest[..end]).into_owned();
        columns.push((name, rest[end + 5..end + 19].to_vec()));
        rest = &rest[end + 19..];
    }
    columns
}

/// What is told of each message, up to so many ReadyForQuery: rows byte by byte, errors by code and words.
pub(crate) fn told(client: &mut Client, messages: &[Vec<u8>]) -> Vec<String> {
    client.send(&messages.concat());
    let ends = messages
        .iter()
        .filter(|message| matches!(message[0], b'Q' | b'S' | b'F'));
    let mut told = Vec::new();
    for _ in 0..ends.count() {
        let answer = client.answer();
        told.extend(answer.messages.iter().map(|message| match message.kind {
            b'E' => {
                let failure = message.failure();
                format!("E {} {}", failure.sqlstate(), failure.message())
            }
            b'T' => format!("T {:?}", columns(&message.body)),
            kind => format!("{} {}", char::from(kind), message.body.escape_ascii()),
        }));
        told.push(format!("Z {}", answer.status));
    }
    told
}

/// One after the other.
fn each(client: &mut Client, writes: &[Vec<Vec<u8>>]) -> Vec<Vec<String>> {
    writes.iter().map(|write| told(client, write)).collect()
}

/// By a session straight at the server, and by one through the proxy of so many connections, behind the same statements; whatever connections others have.
fn alike(connections: usize, set_up: &str, writes: &[Vec<Vec<u8>>]) {
    let server = postgres();
    let mut admin = at(server.address());
    let mut of = |address: SocketAddr| {
        admin.run(set_up);
        each(&mut at(address), writes)
    };
    let straight = of(server.address());
    let proxy = proxy(server, &["--max-server-connections", &connections.to_string()]);
    assert_eq!(of(proxy.address()), straight, "{writes:?}");
}

fn used(name: &str, parameters: &[&str]) -> Vec<Vec<u8>> {
    vec![bind("", name, parameters), execute("", 0)]
}

/// A group that is closed by a Sync.
fn group(parts: &[Vec<Vec<u8>>]) -> Vec<Vec<u8>> {
    parts.iter().flatten().cloned().chain([sync()]).collect()
}

/// It fails a moment later, behind what was answered.
fn fails_late() -> Vec<Vec<u8>> {
    let sql = "SELECT 1 / (1 - length(pg_sleep(0.1)::text || 'x'))";
    [vec![parse("", sql)], used("", &[])].concat()
}

#[test]
fn a_name_that_is_given_anew_behind_an_error_stands_for_what_it_was_given_last() {
    let set_up = "DROP TABLE IF EXISTS given; CREATE TABLE given (id int PRIMARY KEY, n int); INSERT INTO given VALUES (1, 0), (2, 0)";
    let (first, last) = (
        "DELETE FROM given WHERE id = $1",
        "UPDATE given SET n = n + 1 WHERE id = $1",
    );
    let rows = || {
        let sql = "SELECT repeat('x', 100) FROM generate_series(1, 200)";
        [vec![parse("", sql)], used("", &[])].concat()
    };
    for between in [vec![flush()], rows(), vec![]] {
        for behind in [
            vec![close(b'S', "a"), parse("a", last), describe(b'S', "a")],
            vec![parse("a", last), describe(b'S', "a")],
            vec![],
        ] {
            let begin = vec![close(b'S', "a"), parse("a", first)];
            let failing = group(&[begin, between.clone(), fails_late(), vec![close(b'S', "a")]]);
            let at_once = [failing, group(&[behind])].concat();
            let after = [
                group(&[used("a", &["1"])]),
                vec![query("SELECT * FROM given ORDER BY id")],
                vec![query("EXECUTE a (2)")],
                vec![query("SELECT * FROM given ORDER BY id")],
                vec![query("DEALLOCATE a")],
                group(&[used("a", &["1"])]),
            ];
            alike(2, set_up, &[vec![at_once], after.to_vec()].concat());
        }
    }
}

#[test]
fn the_unnamed_statement_is_gone_behind_a_query_whatever_was_passed_over_before() {
    let passed_over = group(&[fails_late(), vec![parse("", "SELECT 'passed over'")]]);
    for before in [vec![parse("", "SELECT 'before'")], vec![]] {
        let at_once = [passed_over.clone(), vec![query("SELECT 1")]].concat();
        alike(1, "SELECT 1", &[group(&[before]), at_once, group(&[used("", &[])])]);
    }
}

/// It has failed, and nobody knows yet that it is over.
#[test]
fn what_follows_the_end_of_a_transaction_that_has_failed_has_the_columns_that_were_told() {
    let server = postgres();
    let mut admin = at(server.address());
    let set_up = "DROP TABLE IF EXISTS ending; CREATE TABLE ending (id int, a text, b text); INSERT INTO ending VALUES (1, 'A', 'B')";
    let alter = "ALTER TABLE ending RENAME a TO c; ALTER TABLE ending RENAME b TO a; ALTER TABLE ending RENAME c TO b; ALTER TABLE ending ADD z int";
    let ext = |sql: &str| [vec![parse("", sql)], used("", &[])].concat();
    for (number, end) in [
        vec![query("ROLLBACK")],
        vec![query("COMMIT")],
        vec![query("ROLLBACK"), query("BEGIN")],
        group(&[ext("ROLLBACK")]),
        ext("ROLLBACK"),
        ext("COMMIT"),
        vec![],
    ]
    .into_iter()
    .enumerate()
    {
        for asked in [used("s", &["1"]), vec![describe(b'S', "s")]] {
            let mut of = |address: SocketAddr, others: usize| {
                admin.run(set_up);
                let mut client = at(address);
                let text = format!("SELECT * FROM ending WHERE id = $1 -- {number}");
                told(&mut client, &group(&[vec![parse("s", &text), describe(b'S', "s")]]));
                // The next transaction is on another connection.
                let mut others: Vec<Client> = (0..others).map(|_| at(address)).collect();
                others.iter_mut().for_each(|other| drop(other.run("BEGIN")));
                admin.run(alter);
                client.run("BEGIN");
                client.query("SELECT 1/0");
                let last = group(&[end.clone(), asked.clone()]);
                [told(&mut client, &last), told(&mut client, &[query("ROLLBACK")])]
            };
            let straight = of(server.address(), 0);
            let proxy = proxy(server, &["--max-server-connections", "2"]);
            assert_eq!(of(proxy.address(), 1), straight, "{end:?} {asked:?}");
        }
    }
}

#[test]
fn what_is_prepared_is_executed_by_its_name_behind_the_end_of_a_transaction_that_has_failed() {
    let prepared = group(&[vec![parse("s", "SELECT $1::int + 1")]]);
    for end in ["ROLLBACK", "COMMIT"] {
        let failed = vec![query("BEGIN"), query("SELECT 1/0")];
        let at_once = vec![
            query(end),
            query("EXECUTE s (1)"),
            query("DEALLOCATE s"),
            query("EXECUTE s (1)"),
        ];
        alike(1, "SELECT 1", &[prepared.clone(), failed, at_once]);
    }
    let at_once = vec![
        query("BEGIN"),
        query("SELECT 1/0"),
        query("EXECUTE s (1)"),
        query("ROLLBACK"),
        query("EXECUTE s (1)"),
    ];
    alike(1, "SELECT 1", &[prepared, at_once]);
}

/// Of those that others have drawn on the connection before there are none.
#[test]
fn numbers_hold_inside_of_a_transaction_also_where_all_of_it_comes_at_once() {
    let server = postgres();
    at(server.address()).run("CREATE SEQUENCE at_once_numbers");
    let proxy = proxy(server, &["--max-server-connections", "1"]);
    let texts = [
        "BEGIN",
        "SELECT nextval('at_once_numbers') > 0",
        "SELECT currval('at_once_numbers') > 0",
        "COMMIT",
    ];
    let simple = texts.map(query).to_vec();
    let extended = texts.map(|sql| group(&[vec![parse("", sql)], used("", &[])])).concat();
    for at_once in [simple, extended] {
        let mut other = at(proxy.address());
        other.run("SELECT nextval('at_once_numbers')");
        let told = told(&mut at(proxy.address()), &at_once);
        assert!(told.iter().all(|told| !told.starts_with('E')), "{told:?}");
    }
}

#[test]
fn what_is_prepared_in_one_write_with_an_alter_is_of_the_table_as_it_is_then() {
    let server = postgres();
    let mut admin = at(server.address());
    let set_up =
        "DROP TABLE IF EXISTS altered; CREATE TABLE altered (id int, a text); INSERT INTO altered VALUES (1, 'A')";
    let alter = "ALTER TABLE altered ADD z int";
    let ext = |sql: &str| [vec![parse("", sql)], used("", &[])].concat();
    for (number, before) in [
        vec![query(alter)],
        vec![query(&format!("SELECT 1; {alter}"))],
        group(&[ext(alter)]),
        ext(alter),
        vec![query("BEGIN"), query(alter)],
        vec![query(&format!("DO $$ BEGIN {alter}; END $$"))],
    ]
    .into_iter()
    .enumerate()
    {
        for describes in [true, false] {
            let text = format!("SELECT * FROM altered WHERE id = $1 -- {number} {describes}");
            let asked = |name: &str| {
                let described = describes.then(|| describe(b'S', name));
                let prepared: Vec<_> = [parse(name, &text)].into_iter().chain(described).collect();
                [prepared, used(name, &["1"])].concat()
            };
            let mut of = |address: SocketAddr| {
                admin.run(set_up);
                let mut before_it = at(address);
                told(&mut before_it, &group(&[asked("o")]));
                let at_once = group(&[before.clone(), asked("n")]);
                let mut client = at(address);
                [told(&mut client, &at_once), told(&mut client, &[query("ROLLBACK")])]
            };
            let straight = of(server.address());
            let proxy = proxy(server, &["--max-server-connections", "1"]);
            assert_eq!(of(proxy.address()), straight, "{before:?} {describes}");
        }
    }
}
