//! The extended protocol: names, pipelines, errors that skip to Sync, what is one transaction.

use std::time::Duration;

use crate::client::{
    Client, bind, bind_raw, close, describe, execute, flush, message, parse, parse_typed, query, sync, whole,
};
use crate::server;

const INT4: u32 = 23;
const INT8: u32 = 20;

#[test]
fn names_are_taken_once_and_missed_by_name() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    let mut state = |messages: &[Vec<u8>]| client.pipeline(messages).sqlstate();
    assert_eq!(state(&[parse("s", "SELECT 1")]), "00000");
    assert_eq!(state(&[parse("s", "SELECT 2")]), "42P05");
    assert_eq!(
        state(&[parse("", "SELECT 1"), parse("", "SELECT 2")]),
        "00000",
        "the unnamed one is replaced"
    );
    assert_eq!(state(&[parse("", "SELECT nothing")]), "42703");
    assert_eq!(
        state(&[bind("", "", &[])]),
        "26000",
        "the unnamed one is gone, even for one that fails"
    );
    assert_eq!(state(&[bind("p", "s", &[]), bind("p", "s", &[])]), "42P03");
    assert_eq!(
        state(&[bind("", "s", &[]), bind("", "s", &[]), execute("", 0)]),
        "00000"
    );
    assert_eq!(state(&[bind("", "nobody", &[])]), "26000");
    assert_eq!(state(&[describe(b'S', "nobody")]), "26000");
    assert_eq!(state(&[describe(b'P', "nobody")]), "34000");
    assert_eq!(state(&[execute("nobody", 0)]), "34000");
    assert_eq!(
        state(&[close(b'S', "nobody"), close(b'P', "nobody")]),
        "00000",
        "closing nothing is no error"
    );
    assert_eq!(state(&[close(b'S', "s"), bind("", "s", &[])]), "26000");
    assert_eq!(state(&[parse("", "SELECT 1; SELECT 2")]), "42601");
    assert_eq!(
        state(&[parse("x", "SELECT 1"), whole("DEALLOCATE x", &[]), bind("", "x", &[])]),
        "26000"
    );
    assert_eq!(state(&[whole("DEALLOCATE nobody", &[])]), "26000");
    // Names are names, whatever is in them.
    for name in ["\"; DROP TABLE t; --", "'", "a b", "ü", "\\", "$1", "--"] {
        assert_eq!(
            state(&[
                parse(name, "SELECT 1"),
                bind(name, name, &[]),
                execute(name, 0),
                close(b'S', name)
            ]),
            "00000",
            "{name}"
        );
    }
}

#[test]
fn an_error_skips_to_sync_and_each_sync_is_answered_once() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a INTEGER PRIMARY KEY)");
    let insert = |value: &str| {
        [
            parse("", "INSERT INTO t VALUES ($1)"),
            bind("", "", &[value]),
            execute("", 0),
        ]
        .concat()
    };
    let answer = client.pipeline(&[
        insert("1"),
        whole("SELECT absent", &[]),
        insert("2"),
        query("INSERT INTO t VALUES (3)"),
        flush(),
    ]);
    assert_eq!((answer.kinds().as_str(), answer.status), ("12CE", 'I'));
    assert_eq!(client.ask("SELECT count(*) FROM t"), "0", "all or nothing up to Sync");
    // Three Syncs at once: three answers, the errors in their own.
    client.send(&[insert("1"), sync(), insert("1"), sync(), insert("2"), sync(), sync()].concat());
    let states: Vec<String> = (0..4).map(|_| client.answer().sqlstate()).collect();
    assert_eq!(states, ["00000", "23505", "00000", "00000"]);
    assert_eq!(
        client.read_within(Duration::from_millis(50)).map(|_| ()),
        None,
        "and not one more"
    );
    assert_eq!(client.ask("SELECT string_agg(a::text, ',' ORDER BY a) FROM t"), "1,2");
}

#[test]
fn writes_before_one_sync_are_one_transaction() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    let mut other = Client::connect(server.address());
    client.run("CREATE TABLE t (a INTEGER PRIMARY KEY)");
    let insert = |value: i32| whole("INSERT INTO t VALUES ($1)", &[&value.to_string()]);
    client.send(&[insert(1), insert(2), flush()].concat());
    for kind in "12C12C".bytes() {
        assert_eq!(client.read().unwrap().kind, kind);
    }
    assert_eq!(other.ask("SELECT count(*) FROM t"), "0", "not committed before Sync");
    client.send(&sync());
    assert_eq!(client.answer().status, 'I');
    assert_eq!(other.ask("SELECT count(*) FROM t"), "2");
    // The third fails: none is there.
    let answer = client.pipeline(&[insert(3), insert(4), insert(1)]);
    assert_eq!(
        (answer.sqlstate().as_str(), answer.kinds().as_str()),
        ("23505", "12C12C12E")
    );
    assert_eq!(other.ask("SELECT count(*) FROM t"), "2");
    // Inside BEGIN nothing is committed by Sync.
    assert_eq!(client.pipeline(&[whole("BEGIN", &[]), insert(5)]).status, 'T');
    assert_eq!(client.pipeline(&[insert(1)]).status, 'E');
    let skipped = client.pipeline(&[insert(6)]);
    assert_eq!((skipped.sqlstate().as_str(), skipped.status), ("25P02", 'E'));
    assert_eq!(client.pipeline(&[whole("COMMIT", &[])]).tags(), ["ROLLBACK"]);
    assert_eq!(other.ask("SELECT count(*) FROM t"), "2");
    // COMMIT and BEGIN in the middle of a pipeline.
    let answer = client.pipeline(&[
        whole("BEGIN", &[]),
        insert(7),
        whole("COMMIT", &[]),
        insert(8),
        insert(1),
    ]);
    assert_eq!((answer.sqlstate().as_str(), answer.status), ("23505", 'I'));
    assert_eq!(other.ask("SELECT string_agg(a::text, ',' ORDER BY a) FROM t"), "1,2,7");
}

#[test]
fn a_statement_that_runs_alone_is_refused_among_others() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a INTEGER)");
    assert_eq!(client.pipeline(&[whole("VACUUM", &[])]).sqlstate(), "00000");
    assert_eq!(
        client
            .pipeline(&[whole("INSERT INTO t VALUES (1)", &[]), whole("VACUUM", &[])])
            .sqlstate(),
        "25001"
    );
    assert_eq!(client.ask("SELECT count(*) FROM t"), "0");
    client.run("BEGIN");
    assert_eq!(client.query("VACUUM").sqlstate(), "25001");
}

#[test]
fn bindings_are_counted_and_checked() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    let two = || parse_typed("", "SELECT $1, $2", &[INT4, INT8]);
    let mut state = |bind: Vec<u8>| client.pipeline(&[two(), bind, execute("", 0)]).sqlstate();
    let (four, eight) = (Some([0, 0, 0, 1].as_slice()), Some([0, 0, 0, 0, 0, 0, 0, 2].as_slice()));
    assert_eq!(state(bind_raw("", "", &[1], &[four, eight], &[1])), "00000");
    assert_eq!(
        state(bind_raw("", "", &[], &[Some(b"1"), Some(b"2")], &[0, 1])),
        "00000"
    );
    assert_eq!(state(bind_raw("", "", &[1, 0], &[four, Some(b"2")], &[])), "00000");
    assert_eq!(state(bind_raw("", "", &[1], &[None, None], &[])), "00000");
    assert_eq!(state(bind_raw("", "", &[1], &[four], &[])), "08P01", "too few");
    assert_eq!(
        state(bind_raw("", "", &[1], &[four, eight, four], &[])),
        "08P01",
        "too many"
    );
    assert_eq!(
        state(bind_raw("", "", &[1, 1, 1], &[four, eight], &[])),
        "08P01",
        "too many formats"
    );
    assert_eq!(
        state(bind_raw("", "", &[1], &[four, eight], &[1, 1, 1])),
        "08P01",
        "too many result formats"
    );
    assert_eq!(
        state(bind_raw("", "", &[7], &[four, eight], &[])),
        "22023",
        "no such format"
    );
    assert_eq!(
        state(bind_raw("", "", &[1], &[eight, eight], &[])),
        "22P03",
        "wrong length"
    );
    assert_eq!(state(bind_raw("", "", &[1], &[Some(b""), eight], &[])), "22P03");
    assert_eq!(state(bind_raw("", "", &[], &[Some(b"one"), Some(b"2")], &[])), "22P02");
    assert_eq!(
        state(bind_raw("", "", &[], &[Some(b"99999999999"), Some(b"2")], &[])),
        "22003"
    );
    assert_eq!(state(bind_raw("", "", &[], &[Some(b"\xff"), Some(b"2")], &[])), "22021");
    let mut text = |bytes: &[u8]| {
        client
            .pipeline(&[
                parse_typed("", "SELECT $1", &[25]),
                bind_raw("", "", &[], &[Some(bytes)], &[]),
                execute("", 0),
            ])
            .sqlstate()
    };
    assert_eq!(text(b"a\0b"), "22021", "NUL is no character of a text");
    assert_eq!(text(b"\xc0\x80"), "22021");
    // A type nobody knows is as good as not declared, or refused; never a hang, never a crash.
    let answer = client.pipeline(&[
        parse_typed("", "SELECT $1", &[4_000_000_000]),
        bind("", "", &["x"]),
        execute("", 0),
    ]);
    assert!(
        ["00000", "42704", "0A000"].contains(&answer.sqlstate().as_str()),
        "{}",
        answer.sqlstate()
    );
    assert_eq!(client.ask("SELECT 1"), "1");
}

#[test]
fn flush_sends_what_is_there() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.send(&[parse_typed("", "SELECT $1", &[INT4]), flush()].concat());
    assert_eq!(client.read().unwrap().kind, b'1');
    client.send(&[describe(b'S', ""), flush()].concat());
    assert_eq!(
        client.read().unwrap(),
        crate::client::Message {
            kind: b't',
            body: [&[0, 1][..], &INT4.to_be_bytes()].concat()
        }
    );
    assert_eq!(client.read().unwrap().kind, b'T');
    client.send(&[bind("", "", &["7"]), execute("", 0), message(b'H', b"")].concat());
    for kind in "2DC".bytes() {
        assert_eq!(client.read().unwrap().kind, kind);
    }
    // An error is sent at Flush too, and Sync is still awaited.
    client.send(&[execute("gone", 0), flush()].concat());
    assert_eq!(client.read().unwrap().failure().sqlstate(), "34000");
    client.send(&[whole("SELECT 1", &[]), sync()].concat());
    assert_eq!(client.answer().kinds(), "");
}

#[test]
fn what_returning_gives_is_what_was_written() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER)");
    client
        .pipeline(&[parse("s", "INSERT INTO t (a) VALUES ($1) RETURNING *")])
        .expect("prepared");
    // The schema changes under the prepared statement.
    client.run("ALTER TABLE t ADD COLUMN b INTEGER");
    let answer = client.pipeline(&[bind("", "s", &["1"]), execute("", 0)]);
    let there = client.ask("SELECT count(*) FROM t");
    let expected = if answer.error().is_some() { "0" } else { "1" };
    assert_eq!(there, expected, "an error means no effect: {answer:?}");
    // A value that its column's type cannot hold.
    client.run("CREATE TABLE u (a INTEGER)");
    let answer = client.query("INSERT INTO u VALUES ('no number') RETURNING a");
    let there = client.ask("SELECT count(*) FROM u");
    let expected = if answer.error().is_some() { "0" } else { "1" };
    assert_eq!(there, expected, "an error means no effect: {answer:?}");
}

#[test]
fn what_defines_may_be_prepared_before_what_it_names_is_there() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    let prepared = client.pipeline(&[
        parse("table", "CREATE TABLE t (a int)"),
        parse("index", "CREATE UNIQUE INDEX i ON t (a)"),
        describe(b'S', "index"),
        parse("column", "ALTER TABLE t ADD b int"),
        parse("again", "CREATE TABLE t (a int)"),
        parse("drop", "DROP TABLE t"),
    ]);
    assert_eq!(prepared.kinds(), "11tn111", "{:?}", prepared.error());
    let mut run = |names: &[&str]| {
        let messages = names.iter().flat_map(|name| [bind("", name, &[]), execute("", 0)]);
        let answer = client.pipeline(&messages.collect::<Vec<_>>());
        (answer.tags().join(", "), answer.sqlstate())
    };
    assert_eq!(run(&["index"]), (String::new(), "42P01".to_owned()));
    assert_eq!(
        run(&["table", "index", "column"]),
        ("CREATE TABLE, CREATE INDEX, ALTER TABLE".to_owned(), "00000".to_owned())
    );
    assert_eq!(run(&["again"]).1, "42P07");
    assert_eq!(run(&["drop", "again"]).0, "DROP TABLE, CREATE TABLE");
    client.run("DROP TABLE t");
    assert_eq!(client.pipeline(&[describe(b'S', "column")]).kinds(), "tn");
    // Nothing is put off for what can never be.
    assert_eq!(client.pipeline(&[parse("", "CREATE TABLE (a)")]).sqlstate(), "42601");
    assert_eq!(
        client
            .pipeline(&[parse("", "INSERT INTO missing VALUES (1)")])
            .sqlstate(),
        "42P01"
    );
}

#[test]
fn what_gives_no_rows_takes_any_formats_of_them() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a int)");
    for (sql, sqlstate) in [
        ("INSERT INTO t VALUES (1)", "00000"),
        ("BEGIN", "00000"),
        ("COMMIT", "00000"),
        ("SELECT a FROM t", "08P01"),
        ("INSERT INTO t VALUES (1) RETURNING a", "08P01"),
    ] {
        let answer = client.pipeline(&[parse("", sql), bind_raw("", "", &[], &[], &[1, 0]), execute("", 0)]);
        assert_eq!(answer.sqlstate(), sqlstate, "{sql}");
    }
}

#[test]
fn what_is_unnamed_or_of_an_ended_transaction_is_gone() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    for script in ["selec", ";", "", "SELECT 1"] {
        client.pipeline(&[parse("", "SELECT 1")]);
        client.query(script);
        assert_eq!(client.pipeline(&[bind("", "", &[])]).sqlstate(), "26000", "{script}");
    }
    for sql in ["COMMIT", "ROLLBACK", "DISCARD ALL"] {
        let ended = [parse("", sql), bind("p", "", &[]), execute("p", 0)].concat();
        let again = client.pipeline(&[
            ended.clone(),
            parse("", "SELECT 1"),
            bind("p", "", &[]),
            execute("p", 0),
        ]);
        assert_eq!(again.sqlstate(), "00000", "{sql}: {:?}", again.error());
        assert_eq!(client.pipeline(&[ended, execute("p", 0)]).sqlstate(), "34000", "{sql}");
    }
}

#[test]
fn every_statement_takes_the_parameters_that_were_declared() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    for sql in [
        "SELECT 1",
        "BEGIN",
        "ROLLBACK",
        "SHOW TimeZone",
        "CREATE TABLE t (a int)",
        "DROP TABLE t",
    ] {
        let answer = client.pipeline(&[
            parse_typed("", sql, &[INT4]),
            describe(b'S', ""),
            bind("", "", &["7"]),
            execute("", 0),
        ]);
        assert_eq!(answer.sqlstate(), "00000", "{sql}");
        assert_eq!(answer.messages[1].body, [0, 1, 0, 0, 0, INT4 as u8], "{sql}");
    }
}

/// PostgreSQL's planner finds the NULL, and then does not evaluate what is evaluated only when the statement runs.
#[test]
fn what_the_planner_knows_to_be_null_keeps_what_may_fail_from_being_evaluated() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    let bad = "to_char(1.5, 'DD Mon')";
    for (sql, parameter) in [
        (format!("SELECT ($1::json ->> 'zz') || {bad}"), "{}"),
        (format!("SELECT replace($1::json ->> 5, NULL, {bad})"), "[1]"),
        (format!("SELECT {bad} || array_length($1::int4[], 0)"), "{1,2}"),
        (
            format!("SELECT {bad} SIMILAR TO substring($1::text FROM '[a-z]+(.)')"),
            "9",
        ),
        ("SELECT to_char($1::numeric, 'DD Mon YYYY') || NULL".to_owned(), "1"),
    ] {
        let answer = client.pipeline(&[whole(&sql, &[parameter])]).expect(&sql);
        assert_eq!(answer.rows(), [[None]], "{sql}");
    }
    for sql in [
        format!("SELECT ($1::json ->> 'a') || {bad}"),
        "SELECT to_char($1::json ->> 'a' || 1.5, 'DD') || 'x'".to_owned(),
    ] {
        assert_ne!(
            client.pipeline(&[whole(&sql, &["{\"a\": 1}"])]).sqlstate(),
            "00000",
            "{sql}"
        );
    }
}

#[test]
fn what_is_said_of_the_transaction_holds_for_the_whole_group() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a int)");
    let read_only = whole("SET TRANSACTION READ ONLY", &[]);
    let answer = client.pipeline(&[read_only.clone(), whole("INSERT INTO t VALUES (1)", &[])]);
    assert_eq!(answer.sqlstate(), "25006");
    assert_eq!(answer.notice().unwrap().sqlstate(), "25P01", "as PostgreSQL 15 warns");
    assert_eq!(client.ask("SELECT count(*) FROM t"), "0");
    // Only for the group.
    client.run("INSERT INTO t VALUES (2)");
    let isolation = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ";
    let answer = client.pipeline(&[whole(isolation, &[]), whole("SHOW transaction_isolation", &[])]);
    assert_eq!(answer.value().as_deref(), Some("repeatable read"));
    assert_eq!(client.ask("SHOW transaction_isolation"), "read committed");
    // A block that begins in it is of that kind.
    let answer = client.pipeline(&[read_only, whole("BEGIN", &[])]);
    assert_eq!((answer.status, answer.error()), ('T', None));
    assert_eq!(client.query("INSERT INTO t VALUES (3)").sqlstate(), "25006");
    client.run("ROLLBACK");
    client.run("CREATE TABLE parent (id int PRIMARY KEY)");
    client.run("CREATE TABLE child (id int REFERENCES parent DEFERRABLE INITIALLY DEFERRED)");
    let answer = client.pipeline(&[
        whole("SET CONSTRAINTS ALL IMMEDIATE", &[]),
        whole("INSERT INTO child VALUES (1)", &[]),
        whole("INSERT INTO parent VALUES (1)", &[]),
    ]);
    assert_eq!(answer.sqlstate(), "23503");
    assert_eq!(client.ask("SELECT count(*) FROM parent"), "0");
}
