//! EXECUTE, DECLARE, FETCH, MOVE: prepared statements and cursors by SQL, which are those of the protocol. What is expected is what
//! PostgreSQL answers.

use crate::client::{Answer, Client, bind, close, describe, execute, parse, whole};
use crate::server;

/// A client of a server whose table `t` has these numbers of `a`.
fn client_of(server: &testbed::Forebay, rows: u32) -> Client {
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a integer)");
    client.run(&format!("INSERT INTO t SELECT g FROM generate_series(1, {rows}) g"));
    client
}

/// The first column of each row, joined by commas, behind the tag.
fn told(answer: &Answer) -> String {
    let rows: Vec<String> = answer.rows().into_iter().flat_map(|row| row[0].clone()).collect();
    let tags = answer.tags().join(";");
    let error = answer
        .error()
        .map_or_else(String::new, |error| error.sqlstate().to_owned());
    format!("{tags}{error}: {}", rows.join(","))
}

#[track_caller]
fn expect(client: &mut Client, script: &[(&str, &str)]) {
    for (sql, expected) in script {
        assert_eq!(told(&client.query(sql)), *expected, "{sql}");
    }
}

#[test]
fn a_cursor_reads_forward_what_was_there_when_it_was_declared() {
    let server = server(&[]);
    let mut client = client_of(&server, 10);
    expect(
        &mut client,
        &[
            ("DECLARE c CURSOR FOR SELECT 1", "25P01: "),
            ("BEGIN", "BEGIN: "),
            ("DECLARE c CURSOR FOR SELECT a FROM t ORDER BY a", "DECLARE CURSOR: "),
            (
                "DECLARE late NO SCROLL CURSOR WITHOUT HOLD FOR SELECT a FROM t",
                "DECLARE CURSOR: ",
            ),
            ("FETCH c", "FETCH 1: 1"),
            ("FETCH FORWARD 2 FROM c", "FETCH 2: 2,3"),
            ("MOVE 1 IN c", "MOVE 1: "),
            ("DELETE FROM t WHERE a <> 9", "DELETE 9: "),
            ("FETCH RELATIVE 2 c", "FETCH 1: 6"),
            ("FETCH ALL FROM c", "FETCH 4: 7,8,9,10"),
            ("FETCH c", "FETCH 0: "),
            ("MOVE ALL FROM late", "MOVE 10: "),
            ("CLOSE c", "CLOSE CURSOR: "),
            ("FETCH c", "34000: "),
            ("ROLLBACK", "ROLLBACK: "),
            // Inside the transaction's own state, too.
            ("BEGIN; INSERT INTO t VALUES (11)", "BEGIN;INSERT 0 1: "),
            (
                "DECLARE c CURSOR FOR SELECT a FROM t WHERE a > 8 ORDER BY a",
                "DECLARE CURSOR: ",
            ),
            ("UPDATE t SET a = 0", "UPDATE 11: "),
            ("FETCH ALL c", "FETCH 3: 9,10,11"),
            ("COMMIT", "COMMIT: "),
            ("FETCH c", "34000: "),
            // Of a script alone.
            (
                "DECLARE c CURSOR FOR VALUES (1), (2); FETCH c",
                "DECLARE CURSOR;FETCH 1: 1",
            ),
            ("FETCH c", "34000: "),
        ],
    );
}

#[test]
fn only_a_scroll_cursor_goes_back() {
    let server = server(&[]);
    let mut client = client_of(&server, 5);
    expect(
        &mut client,
        &[
            (
                "BEGIN; DECLARE c CURSOR FOR SELECT a FROM t ORDER BY a",
                "BEGIN;DECLARE CURSOR: ",
            ),
            ("SAVEPOINT s", "SAVEPOINT: "),
            ("FETCH PRIOR FROM c", "55000: "),
            ("ROLLBACK TO s", "ROLLBACK: "),
            ("FETCH c", "55000: "),
            ("ROLLBACK TO s", "ROLLBACK: "),
            (
                "DECLARE s SCROLL CURSOR FOR SELECT a FROM t ORDER BY a",
                "DECLARE CURSOR: ",
            ),
            ("DELETE FROM t WHERE a = 2", "DELETE 1: "),
            ("FETCH LAST s", "FETCH 1: 5"),
            ("FETCH BACKWARD 2 FROM s", "FETCH 2: 4,3"),
            ("FETCH FORWARD 0 FROM s", "FETCH 1: 3"),
            ("MOVE ABSOLUTE 1 IN s", "MOVE 1: "),
            ("FETCH -1 FROM s", "FETCH 0: "),
            ("FETCH ALL s", "FETCH 5: 1,2,3,4,5"),
            ("COMMIT", "COMMIT: "),
        ],
    );
}

#[test]
fn a_cursor_ends_with_its_savepoint_and_outlives_others() {
    let server = server(&[]);
    let mut client = client_of(&server, 3);
    expect(
        &mut client,
        &[
            (
                "BEGIN; DECLARE c CURSOR FOR SELECT a FROM t ORDER BY a",
                "BEGIN;DECLARE CURSOR: ",
            ),
            ("SAVEPOINT s", "SAVEPOINT: "),
            ("DECLARE d CURSOR FOR SELECT a FROM t", "DECLARE CURSOR: "),
            ("DECLARE f CURSOR FOR SELECT 1 / (a - 1) FROM t", "DECLARE CURSOR: "),
            ("FETCH c", "FETCH 1: 1"),
            ("SELECT 1 / 0", "22012: "),
            ("FETCH c", "25P02: "),
            ("ROLLBACK TO s", "ROLLBACK: "),
            ("FETCH c", "FETCH 1: 2"),
            ("FETCH d", "34000: "),
            ("ROLLBACK TO s", "ROLLBACK: "),
            ("RELEASE s", "RELEASE: "),
            ("DECLARE f CURSOR FOR SELECT 1 / (a - 1) FROM t", "DECLARE CURSOR: "),
            ("SAVEPOINT s", "SAVEPOINT: "),
            ("FETCH f", "22012: "),
            ("ROLLBACK TO s", "ROLLBACK: "),
            ("FETCH f", "55000: "),
            ("ROLLBACK", "ROLLBACK: "),
        ],
    );
}

#[test]
fn a_held_cursor_outlives_its_commit_and_no_rollback() {
    let server = server(&[]);
    let mut client = client_of(&server, 4);
    expect(
        &mut client,
        &[
            // By itself it is a transaction.
            (
                "DECLARE h CURSOR WITH HOLD FOR SELECT a FROM t ORDER BY a",
                "DECLARE CURSOR: ",
            ),
            ("DELETE FROM t WHERE a = 2", "DELETE 1: "),
            ("FETCH 2 h", "FETCH 2: 1,2"),
            ("BEGIN; SELECT 1 / 0", "BEGIN22012: "),
            ("ROLLBACK", "ROLLBACK: "),
            ("FETCH ALL h", "FETCH 2: 3,4"),
            ("CLOSE h", "CLOSE CURSOR: "),
            (
                "BEGIN; DECLARE h SCROLL CURSOR WITH HOLD FOR SELECT a FROM t ORDER BY a",
                "BEGIN;DECLARE CURSOR: ",
            ),
            ("FETCH h", "FETCH 1: 1"),
            ("COMMIT", "COMMIT: "),
            ("FETCH h", "FETCH 1: 3"),
            ("FETCH FIRST FROM h", "FETCH 1: 1"),
            ("DISCARD ALL", "DISCARD ALL: "),
            ("FETCH h", "34000: "),
            (
                "BEGIN; DECLARE h CURSOR WITH HOLD FOR SELECT a FROM t",
                "BEGIN;DECLARE CURSOR: ",
            ),
            ("ROLLBACK", "ROLLBACK: "),
            ("FETCH h", "34000: "),
            // What cannot be kept is not committed.
            (
                "BEGIN; DECLARE h CURSOR WITH HOLD FOR SELECT 1 / (a - 1) FROM t; INSERT INTO t VALUES (9)",
                "BEGIN;DECLARE CURSOR;INSERT 0 1: ",
            ),
            ("COMMIT", "22012: "),
            ("FETCH h", "34000: "),
            ("SELECT count(*) FROM t", "SELECT 1: 3"),
        ],
    );
}

#[test]
fn a_cursor_is_a_portal() {
    let server = server(&[]);
    let mut client = client_of(&server, 5);
    client.run("BEGIN");
    client
        .pipeline(&[whole(
            "DECLARE c CURSOR FOR SELECT a FROM t WHERE a > $1 ORDER BY a",
            &["1"],
        )])
        .expect("declared with a parameter");
    assert_eq!(client.pipeline(&[describe(b'P', "c")]).kinds(), "T");
    assert_eq!(told(&client.pipeline(&[execute("c", 1)])), ": 2");
    // FETCH is a statement with a result, which can be described, bound and executed in pieces.
    let answer = client.pipeline(&[
        parse("", "FETCH 2 FROM c"),
        describe(b'S', ""),
        bind("", "", &[]),
        execute("", 1),
        execute("", 1),
        execute("", 1),
    ]);
    assert_eq!(answer.kinds(), "1tT2DsDsC", "{answer:?}");
    assert_eq!(
        told(&answer),
        "FETCH 0: 3,4",
        "the tag counts what the last piece has sent"
    );
    assert_eq!(client.pipeline(&[close(b'P', "c")]).kinds(), "3");
    assert_eq!(client.query("FETCH c").sqlstate(), "34000");
    client.run("ROLLBACK");
    // And a portal is a cursor.
    client.run("BEGIN");
    client
        .pipeline(&[
            parse("", "SELECT a FROM t ORDER BY a"),
            bind("p", "", &[]),
            execute("p", 2),
        ])
        .expect("read in part");
    assert_eq!(told(&client.query("FETCH 2 FROM p")), "FETCH 2: 3,4");
    assert_eq!(client.query("DECLARE p CURSOR FOR SELECT 1").sqlstate(), "42P03");
    client.run("ROLLBACK");
}

#[test]
fn what_cursors_keep_has_a_bound() {
    let server = server(&["--max-result-bytes", "256KiB"]);
    let mut client = client_of(&server, 4_000);
    let refused = |client: &mut Client, sql: &str| {
        let answer = client.query(sql);
        assert_eq!(answer.sqlstate(), "54000", "{sql}: {answer:?}");
    };
    refused(&mut client, "DECLARE h CURSOR WITH HOLD FOR SELECT a, a, a, a FROM t");
    client.run("BEGIN; DECLARE s SCROLL CURSOR FOR SELECT a, a, a, a FROM t");
    refused(&mut client, "FETCH s");
    client.run("ROLLBACK; BEGIN; DECLARE c CURSOR FOR SELECT a, a, a, a FROM t");
    assert_eq!(client.run("FETCH 1000 FROM c").tags(), ["FETCH 1000"]);
    assert_eq!(client.run("MOVE 2900 FROM c").tags(), ["MOVE 2900"]);
    assert_eq!(client.run("FETCH ALL FROM c").tags(), ["FETCH 100"]);
    client.run("ROLLBACK; BEGIN; DECLARE c CURSOR FOR SELECT a, a, a, a FROM t");
    refused(&mut client, "FETCH ALL FROM c");
    client.run("ROLLBACK");
}

#[test]
fn execute_gives_a_prepared_statement_its_arguments() {
    let server = server(&[]);
    let mut client = client_of(&server, 3);
    expect(
        &mut client,
        &[
            (
                "PREPARE q (integer) AS SELECT a FROM t WHERE a >= $1 ORDER BY a",
                "PREPARE: ",
            ),
            ("PREPARE q AS SELECT 1", "42P05: "),
            ("EXECUTE q(2)", "SELECT 2: 2,3"),
            ("EXECUTE q(1 + 1.6)", "SELECT 1: 3"),
            ("EXECUTE q('2')", "SELECT 2: 2,3"),
            ("EXECUTE q(true)", "42804: "),
            ("EXECUTE q('x')", "22P02: "),
            ("EXECUTE q", "42601: "),
            ("EXECUTE q(1, 2)", "42601: "),
            ("EXECUTE q((SELECT 1))", "0A000: "),
            ("EXECUTE q(max(1))", "42803: "),
            ("EXECUTE q(a)", "42703: "),
            ("EXECUTE nosuch(1)", "26000: "),
            ("PREPARE i AS INSERT INTO t VALUES ($1) RETURNING a", "PREPARE: "),
            ("BEGIN; EXECUTE i(7)", "BEGIN;INSERT 0 1: 7"),
            ("ROLLBACK", "ROLLBACK: "),
            ("EXECUTE i(8); EXECUTE i(9)", "INSERT 0 1;INSERT 0 1: 8,9"),
            ("PREPARE x AS EXECUTE q(1)", "42601: "),
            ("DEALLOCATE q", "DEALLOCATE: "),
            ("EXECUTE q(2)", "26000: "),
            ("DEALLOCATE ALL", "DEALLOCATE ALL: "),
            ("EXECUTE i(8)", "26000: "),
        ],
    );
    // One namespace for both.
    client
        .pipeline(&[parse("p", "SELECT $1::text || 'x'")])
        .expect("parsed");
    expect(
        &mut client,
        &[("EXECUTE p('a')", "SELECT 1: ax"), ("PREPARE p AS SELECT 1", "42P05: ")],
    );
    client.run("PREPARE r AS SELECT a FROM t WHERE a < 3");
    let answer = client.pipeline(&[bind("", "r", &[]), execute("", 0)]);
    assert_eq!(told(&answer), "SELECT 2: 1,2");
    // An EXECUTE can be described and read in pieces.
    client.run("BEGIN");
    let answer = client.pipeline(&[
        parse("", "EXECUTE r"),
        describe(b'S', ""),
        bind("", "", &[]),
        execute("", 1),
        execute("", 0),
    ]);
    assert_eq!(answer.kinds(), "1tT2DsDC", "{answer:?}");
    client.run("COMMIT");
    // One that stands for itself is no loop.
    client.pipeline(&[parse("loop", "EXECUTE loop")]).expect("parsed");
    assert_eq!(client.query("EXECUTE loop").sqlstate(), "0A000");
}
