//! Portals: results in pieces, several at a time, with writes between, and as large as they like.

use std::io::Read;

use crate::client::{Client, bind, describe, execute, parse, parse_typed, sync, whole};
use crate::server;

const SERIES: &str = "WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < $1) SELECT n FROM s";

#[test]
fn a_portal_is_suspended_at_its_row_limit() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    let answer = client.pipeline(&[
        parse_typed("", SERIES, &[20]),
        bind("p", "", &["5"]),
        execute("p", 2),
        execute("p", 2),
        execute("p", 2),
        execute("p", 2),
    ]);
    assert_eq!(answer.kinds(), "12DDsDDsDCC", "{answer:?}");
    assert_eq!(answer.tags(), ["SELECT 1", "SELECT 0"]);
    // Exactly at the end: the client cannot know yet, and is told by the next.
    let answer = client.pipeline(&[
        parse_typed("", SERIES, &[20]),
        bind("p", "", &["4"]),
        execute("p", 4),
        execute("p", 4),
    ]);
    assert_eq!(answer.kinds(), "12DDDDsC");
    // Gone after Sync, outside a block.
    assert_eq!(client.pipeline(&[execute("p", 0)]).sqlstate(), "34000");
    assert_eq!(client.pipeline(&[describe(b'P', "p")]).sqlstate(), "34000");
    // A write is not run again.
    client.run("CREATE TABLE t (a INTEGER)");
    let answer = client.pipeline(&[
        parse("", "INSERT INTO t VALUES (1)"),
        bind("", "", &[]),
        execute("", 0),
        execute("", 0),
    ]);
    assert_eq!(answer.sqlstate(), "55000");
    assert_eq!(client.ask("SELECT count(*) FROM t"), "0");
    // Rows of RETURNING in pieces; the write is whole.
    client.run("BEGIN");
    let answer = client.pipeline(&[
        parse("", "INSERT INTO t VALUES (1), (2), (3) RETURNING a"),
        bind("w", "", &[]),
        execute("w", 2),
    ]);
    assert_eq!(answer.kinds(), "12DDs");
    let answer = client.pipeline(&[execute("w", 2)]);
    assert_eq!(answer.kinds(), "DC");
    assert_eq!(answer.tags(), ["INSERT 0 1"], "what this one has sent");
    client.run("COMMIT");
    assert_eq!(client.ask("SELECT count(*) FROM t"), "3");
}

#[test]
fn a_portal_of_a_failed_block_is_there_until_its_end() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a int); INSERT INTO t VALUES (1), (2)");
    client.pipeline(&[parse("s", "SELECT a FROM t"), parse("w", "INSERT INTO t VALUES (3)")]);
    for savepoint in ["", "SAVEPOINT a"] {
        client.run("BEGIN");
        client.query(savepoint);
        client
            .pipeline(&[bind("r", "s", &[]), bind("w", "w", &[]), execute("r", 1)])
            .expect("portals");
        assert_eq!(client.query("SELECT 1 / 0").sqlstate(), "22012");
        for message in [
            describe(b'P', "r"),
            describe(b'S', "s"),
            execute("r", 1),
            execute("w", 1),
        ] {
            assert_eq!(client.pipeline(&[message]).sqlstate(), "25P02");
        }
        assert_eq!(client.pipeline(&[describe(b'P', "w")]).kinds(), "n");
        assert_eq!(client.pipeline(&[describe(b'P', "nope")]).sqlstate(), "34000");
        client.run("ROLLBACK");
        assert_eq!(client.pipeline(&[describe(b'P', "r")]).sqlstate(), "34000");
    }
    // One that has failed itself is there as well.
    client.run("BEGIN");
    let answer = client.pipeline(&[
        parse("", "SELECT 1 / (a - 1) FROM t"),
        bind("z", "", &[]),
        execute("z", 0),
    ]);
    assert_eq!(answer.sqlstate(), "22012");
    assert_eq!(client.pipeline(&[describe(b'P', "z")]).sqlstate(), "25P02");
    client.run("ROLLBACK");
}

#[test]
fn a_table_that_is_read_keeps_its_shape() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1), (2, 2)");
    client.run("CREATE VIEW v AS SELECT id FROM t; CREATE TABLE u (id int)");
    for (query, steps) in [
        ("SELECT id FROM t", ""),
        ("SELECT id FROM t", "FETCH ALL FROM c"),
        ("SELECT id FROM v", ""),
        ("SELECT 1 WHERE EXISTS (SELECT 1 FROM t)", "FETCH c"),
    ] {
        for (sql, command) in [
            ("ALTER TABLE t ADD COLUMN z int", "ALTER TABLE"),
            ("ALTER TABLE t ALTER COLUMN n SET DEFAULT 4", "ALTER TABLE"),
            ("DROP TABLE t CASCADE", "DROP TABLE"),
            ("TRUNCATE t", "TRUNCATE"),
            ("CREATE INDEX ON t (n)", "CREATE INDEX"),
        ] {
            client.run("BEGIN");
            client.run(&format!("DECLARE c CURSOR FOR {query}"));
            client.query(steps);
            let error = client.query(sql).error().unwrap();
            let message = format!("cannot {command} \"t\" because it is being used by active queries in this session");
            assert_eq!(
                (error.sqlstate(), error.message()),
                ("55006", message.as_str()),
                "{query}: {sql}"
            );
            client.run("ROLLBACK");
        }
    }
    // What is bound reads, too, though not a row was asked for; what is not bound any more does not.
    client.pipeline(&[parse("s", "SELECT id FROM t")]);
    client.run("BEGIN");
    client.pipeline(&[bind("p", "s", &[])]);
    assert_eq!(client.query("ALTER TABLE t ADD COLUMN z int").sqlstate(), "55006");
    client.run("ROLLBACK");
    let suspended = [bind("p", "s", &[]), execute("p", 1)].concat();
    let answer = client.pipeline(&[suspended, whole("TRUNCATE t", &[])]);
    assert_eq!(answer.sqlstate(), "55006");
    for (before, sql) in [
        (
            "DECLARE c CURSOR FOR SELECT id FROM t",
            "ALTER TABLE u ADD COLUMN z int",
        ),
        (
            "DECLARE c CURSOR FOR SELECT id FROM t",
            "ALTER TABLE t RENAME COLUMN n TO m",
        ),
        ("DECLARE c CURSOR FOR SELECT id FROM u", "ALTER TABLE u RENAME TO q"),
        ("DECLARE c CURSOR FOR SELECT id FROM v", "DROP VIEW v"),
        (
            "DECLARE c CURSOR FOR SELECT id FROM t",
            "CREATE TABLE r (id int REFERENCES t)",
        ),
        ("DECLARE c CURSOR FOR SELECT 1", "ALTER TABLE t ADD COLUMN z int"),
        (
            "DECLARE c CURSOR FOR WITH t AS (SELECT 1) SELECT * FROM t",
            "ALTER TABLE t ADD COLUMN z int",
        ),
    ] {
        client.run("BEGIN");
        client.run(before);
        client.run(sql);
        client.run("ROLLBACK");
    }
    client.run("BEGIN; DECLARE h CURSOR WITH HOLD FOR SELECT id FROM t ORDER BY 1; COMMIT");
    client.run("ALTER TABLE t ADD COLUMN zz int");
    assert_eq!(client.ask("FETCH h"), "1");
    client.run("BEGIN");
    client.pipeline(&[bind("", "s", &[]), execute("", 1)]).expect("a row");
    client.run("ALTER TABLE t ADD COLUMN zzz int");
    client.run("ROLLBACK");
}

/// The values of `count` executions of that portal, in order.
fn pieces(client: &mut Client, portal: &str, rows: u32) -> Vec<String> {
    let answer = client.pipeline(&[execute(portal, rows)]);
    assert_eq!(answer.error(), None);
    answer.rows().into_iter().map(|row| row[0].clone().unwrap()).collect()
}

#[test]
fn portals_are_read_by_turns() {
    let server = server(&["--readers", "4"]);
    let mut client = Client::connect(server.address());
    client.run("BEGIN");
    client.pipeline(&[parse_typed("s", SERIES, &[20])]).expect("prepared");
    for portal in ["a", "b", "c"] {
        client.pipeline(&[bind(portal, "s", &["10"])]).expect("bound");
    }
    for from in 0..5 {
        for portal in ["a", "b", "c"] {
            let expected = [from * 2 + 1, from * 2 + 2].map(|number: i32| number.to_string());
            assert_eq!(pieces(&mut client, portal, 2), expected);
        }
    }
    client.run("COMMIT");
    assert_eq!(
        client.pipeline(&[execute("a", 1)]).sqlstate(),
        "34000",
        "gone with its block"
    );
}

#[test]
fn a_portal_sees_no_write_that_came_behind_it() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a INTEGER)");
    client.run("INSERT INTO t VALUES (1), (2), (3)");
    for (begin, first) in [
        ("BEGIN", None),
        ("BEGIN ISOLATION LEVEL SERIALIZABLE", None),
        // In the block's own transaction, from its first write on.
        ("BEGIN", Some("UPDATE t SET a = a")),
    ] {
        client.run(begin);
        if let Some(first) = first {
            client.run(first);
        }
        client
            .pipeline(&[parse("s", "SELECT a FROM t"), bind("p", "s", &[])])
            .expect("bound");
        let mut seen = pieces(&mut client, "p", 1);
        // For each row a new one: without insensitive portals this never ends.
        for _ in 0..10 {
            client
                .pipeline(&[whole("INSERT INTO t SELECT a + 10 FROM t LIMIT 1", &[])])
                .expect("inserted");
            client
                .pipeline(&[whole("DELETE FROM t WHERE a = 3", &[])])
                .expect("deleted");
            seen.extend(pieces(&mut client, "p", 1));
        }
        assert_eq!(seen, ["1", "2", "3"], "{begin} {first:?}");
        client.run("ROLLBACK");
        client.run("DEALLOCATE ALL");
    }
    // DDL and a rollback to a savepoint while a portal is open.
    client.run("BEGIN; CREATE TABLE u (a INTEGER); SAVEPOINT x; INSERT INTO t VALUES (4)");
    client
        .pipeline(&[parse("s", "SELECT a FROM t"), bind("p", "s", &[])])
        .expect("bound");
    assert_eq!(pieces(&mut client, "p", 1), ["1"]);
    client.run("CREATE INDEX i ON u (a)");
    client.run("DROP TABLE u");
    client.run("ALTER TABLE t RENAME TO v");
    assert_eq!(pieces(&mut client, "p", 0), ["2", "3", "4"]);
    client.run("ROLLBACK TO x; COMMIT");
    assert_eq!(client.ask("SELECT count(*) FROM t"), "3");
}

#[test]
fn more_portals_than_readers_end_in_an_error_not_in_a_hang() {
    let server = server(&["--readers", "2"]);
    let mut client = Client::connect(server.address());
    client.run("BEGIN");
    client.pipeline(&[parse_typed("s", SERIES, &[20])]).expect("prepared");
    for portal in ["a", "b"] {
        client
            .pipeline(&[bind(portal, "s", &["10"]), execute(portal, 1)])
            .expect("there is a reader");
    }
    let answer = client.pipeline(&[bind("c", "s", &["10"]), execute("c", 1)]);
    assert_eq!((answer.sqlstate().as_str(), answer.status), ("53000", 'E'));
    client.run("ROLLBACK");
    assert_eq!(client.ask("SELECT 1"), "1");
}

fn resident_bytes(process: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

#[test]
fn a_large_result_takes_little_memory() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.ask("SELECT 1");
    let before = resident_bytes(server.process_id());
    // 200 MB, read slowly: nobody gathers it.
    let sql = SERIES
        .replace("$1", "20000")
        .replace("SELECT n FROM", "SELECT repeat('x', 10000) FROM");
    client.send(&crate::client::query(&sql));
    let (mut read, mut piece) = (0, vec![0; 1 << 20]);
    let mut other = Client::connect(server.address());
    let mut tail = [0; 6];
    while tail != [b'Z', 0, 0, 0, 5, b'I'] {
        let count = client.stream.read(&mut piece).unwrap();
        assert!(count > 0, "the connection stays");
        read += count;
        if count >= 6 {
            tail.copy_from_slice(&piece[count - 6..count]);
        } else {
            tail.rotate_left(count);
            tail[6 - count..].copy_from_slice(&piece[..count]);
        }
        if read % 64 == 0 {
            other.ask("SELECT 1");
        }
    }
    assert!(read > 200_000_000, "{read}");
    let grown = resident_bytes(server.process_id()) - before;
    assert!(grown < 48 << 20, "grew by {} MiB", grown >> 20);
}

#[test]
fn a_client_that_reads_nothing_harms_nobody() {
    let server = server(&["--readers", "2"]);
    let mut stalled = Client::connect(server.address());
    let sql = SERIES
        .replace("$1", "100000")
        .replace("SELECT n FROM", "SELECT repeat('x', 10000) FROM");
    stalled.send(&crate::client::query(&sql));
    let mut other = Client::connect(server.address());
    other.run("CREATE TABLE t (a INTEGER)");
    for _ in 0..50 {
        other.run("INSERT INTO t VALUES (1)");
        other.ask("SELECT count(*) FROM t");
    }
    drop(stalled);
    other.send(&sync());
    assert_eq!(other.answer().status, 'I');
}
