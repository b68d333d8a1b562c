//! COPY: what PostgreSQL 15 makes of the same data, message by message. What stands here as an answer is what PostgreSQL answered.

use crate::client::{Answer, Client, bind, execute, message, parse, query, sync};
use crate::server;

/// A COPY FROM STDIN with its data, cut into pieces of so many bytes.
fn copy_in(client: &mut Client, sql: &str, data: &[u8], piece_bytes: usize) -> Answer {
    let mut sent = query(sql);
    for piece in data.chunks(piece_bytes) {
        sent.extend(message(b'd', piece));
    }
    sent.extend(message(b'c', b""));
    client.send(&sent);
    client.answer()
}

/// The data of a COPY TO STDOUT.
fn copy_out(client: &mut Client, sql: &str) -> String {
    let answer = client.run(sql);
    let data = answer.messages.iter().filter(|message| message.kind == b'd');
    String::from_utf8_lossy(&data.flat_map(|message| message.body.clone()).collect::<Vec<u8>>()).into_owned()
}

#[test]
fn text_goes_in_and_comes_out() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a int PRIMARY KEY, b text, c numeric(5,2) DEFAULT 1.5)");
    let data = b"1\ta\\\nb\t2\n2\t\\x41\\101\\t\\q\t\\N\n3\t\\N\t1.005\n";
    for piece_bytes in 1..data.len() {
        client.run("DELETE FROM t");
        let answer = copy_in(&mut client, "COPY t FROM STDIN", data, piece_bytes);
        assert_eq!(answer.kinds(), "GC", "{:?}", answer.error());
        assert_eq!(answer.tags(), ["COPY 3"]);
        assert_eq!(answer.messages[0].body, [0, 0, 3, 0, 0, 0, 0, 0, 0]);
    }
    assert_eq!(
        copy_out(&mut client, "COPY t TO STDOUT"),
        "1\ta\\nb\t2.00\n2\tAA\\tq\t\\N\n3\t\\N\t1.01\n"
    );
    assert_eq!(
        copy_out(&mut client, "COPY t (b, a) TO STDOUT (DELIMITER '|', NULL 'x')"),
        "a\\nb|1\nAA\tq|2\nx|3\n".replace('\t', "\\t")
    );
    assert_eq!(
        copy_out(
            &mut client,
            "COPY (SELECT a + $$1$$::int AS s FROM t ORDER BY a DESC) TO STDOUT (HEADER)"
        ),
        "s\n4\n3\n2\n"
    );
    assert_eq!(
        copy_in(&mut client, "COPY t (a) FROM STDIN", b"9\n\\.\n10\n", 5).tags(),
        ["COPY 1"]
    );
    assert_eq!(client.ask("SELECT c FROM t WHERE a = 9"), "1.50", "the default");
    assert_eq!(
        copy_in(
            &mut client,
            "COPY t (a, b) FROM STDIN (HEADER MATCH)",
            b"a\tb\n11\tx",
            100
        )
        .tags(),
        ["COPY 1"]
    );
    assert_eq!(
        copy_in(&mut client, "copy public.t (a) from stdin", b"", 1).tags(),
        ["COPY 0"]
    );
    let answer = client.run("SELECT 1; COPY (SELECT 1, NULL, '') TO STDOUT; SELECT 2");
    assert_eq!(answer.kinds(), "TDCHdcCTDC");
}

#[test]
fn csv_goes_in_and_comes_out() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a int, b text, c text)");
    let out = "COPY (SELECT 1, NULL, '', 'a,b', 'a\"b', E'a\\nb', ' x ', '\\.') TO STDOUT CSV";
    assert_eq!(
        copy_out(&mut client, out),
        "1,,\"\",\"a,b\",\"a\"\"b\",\"a\nb\", x ,\\.\n"
    );
    assert_eq!(
        copy_out(&mut client, "COPY (SELECT '\\.' AS x) TO STDOUT CSV"),
        "\"\\.\"\n"
    );
    let data = b"a,b,c\n1,\"x\n\"\"y\"\"\",\n2,,\"\"\n3,\"a\"b\"c\", d \n";
    for piece_bytes in 1..data.len() {
        client.run("DELETE FROM t");
        let answer = copy_in(&mut client, "COPY t FROM STDIN (FORMAT csv, HEADER)", data, piece_bytes);
        assert_eq!(answer.tags(), ["COPY 3"], "{:?}", answer.error());
    }
    assert_eq!(
        copy_out(&mut client, "COPY t TO STDOUT WITH CSV HEADER FORCE QUOTE b"),
        "a,b,c\n1,\"x\n\"\"y\"\"\",\n2,,\"\"\n3,\"abc\", d \n"
    );
    client.run("DELETE FROM t");
    let options = "COPY t FROM STDIN (FORMAT csv, NULL 'N', QUOTE '''', ESCAPE '\\', DELIMITER ';', FORCE_NOT_NULL (b), FORCE_NULL (c))";
    assert_eq!(
        copy_in(&mut client, options, b"1;N;'N'\n2;'it\\'s';N\n", 3).tags(),
        ["COPY 2"]
    );
    assert_eq!(copy_out(&mut client, "COPY t TO STDOUT"), "1\tN\t\\N\n2\tit's\t\\N\n");
}

#[test]
fn binary_goes_in_and_comes_out() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a int, b text, c bytea, d timestamptz); CREATE TABLE u (a int, b text, c bytea, d timestamptz)");
    client.run("INSERT INTO t VALUES (1, 'x', '\\x00ff', '2024-01-02 03:04:05+00'), (NULL, NULL, NULL, NULL)");
    let answer = client.run("COPY t TO STDOUT (FORMAT binary)");
    let messages = |answer: &Answer| -> Vec<Vec<u8>> {
        let data = answer.messages.iter().filter(|message| message.kind == b'd');
        data.map(|message| message.body.to_vec()).collect()
    };
    let rows_and_trailer = messages(&answer);
    assert_eq!(rows_and_trailer.len(), 3, "the header is the first row's");
    let nothing = client.run("COPY u TO STDOUT (FORMAT binary)");
    assert_eq!(messages(&nothing), [b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\xff\xff"]);
    let data = rows_and_trailer.concat();
    assert!(
        data.starts_with(b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\x04\0\0\0\x04\0\0\0\x01\0\0\0\x01x\0\0\0\x02\0\xff"),
        "{data:?}"
    );
    assert!(data.ends_with(b"\xff\xff"));
    for piece_bytes in 1..data.len() {
        let answer = copy_in(&mut client, "COPY u FROM STDIN BINARY", &data, piece_bytes);
        assert_eq!(answer.tags(), ["COPY 2"], "{:?}", answer.error());
    }
    assert_eq!(
        client.ask("SELECT count(*) FROM (SELECT * FROM t EXCEPT SELECT * FROM u) AS x"),
        "0"
    );
    for (wrong, message) in [
        (
            &b"PGCOPX\n\xff\r\n\0\0\0\0\0\0\0\0\0"[..],
            "COPY file signature not recognized",
        ),
        (&data[..data.len() - 3], "unexpected EOF in COPY data"),
    ] {
        let error = copy_in(&mut client, "COPY u FROM STDIN BINARY", wrong, 7)
            .error()
            .unwrap();
        assert_eq!((error.sqlstate(), error.message()), ("22P04", message));
    }
}

#[test]
fn errors_say_where_they_are_and_undo_all() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run(
        "CREATE TABLE t (a int PRIMARY KEY, b text, c numeric(5,2) DEFAULT 1.5); CREATE VIEW v AS SELECT * FROM t",
    );
    client.run("CREATE TABLE u (a int NOT NULL CHECK (a > 0), b bool); CREATE TABLE g (a int, b int GENERATED ALWAYS AS (a * 2) STORED)");
    for (sql, data, sqlstate, message, context) in [
        (
            "COPY t FROM STDIN",
            "x\t1\t2\n",
            "22P02",
            "invalid input syntax for type integer: \"x\"",
            "COPY t, line 1, column a: \"x\"",
        ),
        (
            "COPY t FROM STDIN",
            "1\ta\n",
            "22P04",
            "missing data for column \"c\"",
            "COPY t, line 1: \"1\ta\"",
        ),
        (
            "COPY t FROM STDIN",
            "1\ta\t1\t4\n",
            "22P04",
            "extra data after last expected column",
            "COPY t, line 1: \"1\ta\t1\t4\"",
        ),
        (
            "COPY t FROM STDIN",
            "1\ta\t1\n2\tb\t99999\n",
            "22003",
            "numeric field overflow",
            "COPY t, line 2, column c: \"99999\"",
        ),
        (
            "COPY t FROM STDIN",
            "1\ta\t1\n1\tb\t2\n",
            "23505",
            "duplicate key value violates unique constraint \"t_pkey\"",
            "COPY t, line 2",
        ),
        (
            "COPY t (a, b) FROM STDIN",
            "1\t\\N\n\\N\tb\n",
            "23502",
            "null value in column \"a\" of relation \"t\" violates not-null constraint",
            "COPY t, line 2: \"\\N\tb\"",
        ),
        (
            "COPY u FROM STDIN",
            "-1\tt\n",
            "23514",
            "new row for relation \"u\" violates check constraint \"u_a_check\"",
            "COPY u, line 1: \"-1\tt\"",
        ),
        (
            "COPY u FROM STDIN CSV",
            "1,maybe\n",
            "22P02",
            "invalid input syntax for type boolean: \"maybe\"",
            "COPY u, line 1, column b: \"maybe\"",
        ),
        (
            "COPY t FROM STDIN (FORMAT csv, HEADER MATCH)",
            "a,x,c\n",
            "22P04",
            "column name mismatch in header line field 2: got \"x\", expected \"b\"",
            "COPY t, line 1: \"a,x,c\"",
        ),
    ] {
        let error = copy_in(&mut client, sql, data.as_bytes(), 4)
            .error()
            .unwrap_or_else(|| panic!("{sql} {data}"));
        assert_eq!(
            (error.sqlstate(), error.message(), error.field(b'W')),
            (sqlstate, message, Some(context)),
            "{sql} {data}"
        );
        assert_eq!(
            client.ask("SELECT (SELECT count(*) FROM t) + (SELECT count(*) FROM u)"),
            "0",
            "{sql} {data}"
        );
    }
    for (sql, sqlstate) in [
        ("COPY t (a, nosuch) FROM STDIN", "42703"),
        ("COPY nosuch FROM STDIN", "42P01"),
        ("COPY v TO STDOUT", "42809"),
        ("COPY v FROM STDIN", "42809"),
        ("COPY t (a, a) FROM STDIN", "42701"),
        ("COPY g (a, b) FROM STDIN", "42P10"),
        ("COPY t TO STDOUT (FORMAT foo)", "22023"),
        ("COPY t TO STDOUT (foo)", "42601"),
        ("COPY t TO STDOUT (DELIMITER 'ab')", "0A000"),
        ("COPY t TO STDOUT (QUOTE '\"')", "0A000"),
        ("COPY t FROM STDIN (FORMAT csv, FORCE_QUOTE (b))", "0A000"),
        ("COPY t TO STDOUT (FORMAT csv, FORCE_NOT_NULL (b))", "0A000"),
        ("COPY t FROM STDIN (FORMAT csv, FORMAT text)", "42601"),
        ("COPY t FROM STDIN (FORMAT csv, DELIMITER '\"')", "22023"),
        ("COPY t FROM STDIN (DELIMITER 'a')", "22023"),
        ("COPY t FROM STDIN (NULL E'a\\nb')", "22023"),
        ("COPY t FROM '/tmp/x'", "0A000"),
        ("COPY t TO PROGRAM 'ls'", "0A000"),
        ("COPY t FROM STDIN WHERE a > 1", "0A000"),
        ("COPY (DELETE FROM t RETURNING a) TO STDOUT", "0A000"),
        ("BEGIN READ ONLY; COPY t FROM STDIN", "25006"),
    ] {
        let error = client.query(sql).error().unwrap_or_else(|| panic!("{sql}"));
        assert_eq!(error.sqlstate(), sqlstate, "{sql}: {}", error.message());
    }
    client.run("ROLLBACK");
    assert_eq!(copy_out(&mut client, "COPY g TO STDOUT"), "");
    client.send(
        &[
            query("COPY t FROM STDIN"),
            message(b'd', b"1\ta\t1\n"),
            message(b'f', b"no more\0"),
        ]
        .concat(),
    );
    let error = client.answer().error().unwrap();
    assert_eq!(
        (error.sqlstate(), error.message()),
        ("57014", "COPY from stdin failed: no more")
    );
    assert_eq!(client.ask("SELECT count(*) FROM t"), "0");
}

#[test]
fn it_is_part_of_its_transaction() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a int PRIMARY KEY)");
    client.run("BEGIN; INSERT INTO t VALUES (1)");
    assert_eq!(copy_in(&mut client, "COPY t FROM STDIN", b"2\n3\n", 9).status, 'T');
    assert_eq!(copy_out(&mut client, "COPY t TO STDOUT"), "1\n2\n3\n");
    client.run("ROLLBACK");
    assert_eq!(client.ask("SELECT count(*) FROM t"), "0");
    client.run("BEGIN; SAVEPOINT s");
    assert_eq!(copy_in(&mut client, "COPY t FROM STDIN", b"2\nx\n", 9).status, 'E');
    client.run("ROLLBACK TO s");
    assert_eq!(copy_in(&mut client, "COPY t FROM STDIN", b"2\n", 9).status, 'T');
    client.run("COMMIT");
    assert_eq!(client.ask("SELECT count(*) FROM t"), "1");
}

#[test]
fn the_schema_may_change_while_data_comes() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    let mut other = Client::connect(server.address());
    client.run("CREATE TABLE t (a int PRIMARY KEY, b text)");
    let mut copied = |begin: &str, change: &str| {
        client.run(begin);
        client.send(&query("COPY t FROM STDIN"));
        assert_eq!(client.read().unwrap().kind, b'G');
        client.send(&message(b'd', b"1\tx\n"));
        other.run(change);
        client.send(&message(b'c', b""));
        let answer = client.answer();
        client.run("COMMIT; DELETE FROM t");
        if answer.error().is_some() {
            answer.sqlstate()
        } else {
            answer.tags().join(" ")
        }
    };
    assert_eq!(copied("", "CREATE TABLE u (a int)"), "COPY 1");
    assert_eq!(copied("BEGIN", "DROP TABLE u"), "COPY 1");
    assert_eq!(copied("", "ALTER TABLE t ALTER b SET NOT NULL"), "COPY 1");
    assert_eq!(
        copied("", "CREATE UNIQUE INDEX ON t (b); INSERT INTO t VALUES (9, 'x')"),
        "23505"
    );
    // The rows were understood by the columns that there were.
    assert_eq!(copied("", "ALTER TABLE t ADD c int"), "40001");
    assert_eq!(
        copied("ALTER TABLE t DROP c", "ALTER TABLE t ALTER a TYPE bigint"),
        "40001"
    );
}

#[test]
fn the_extended_protocol_copies_too() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a int PRIMARY KEY)");
    // As libpq does: Sync is sent before the data, and again behind it.
    let begin = [
        parse("", "COPY t FROM STDIN"),
        bind("", "", &[]),
        execute("", 0),
        sync(),
    ]
    .concat();
    client.send(&begin);
    for kind in [b'1', b'2', b'G'] {
        assert_eq!(client.read().unwrap().kind, kind);
    }
    client.send(&[message(b'd', b"1\n2"), message(b'd', b"\n"), message(b'c', b""), sync()].concat());
    let answer = client.answer();
    assert_eq!((answer.kinds().as_str(), answer.status), ("C", 'I'));
    let answer = client.pipeline(&[parse("", "COPY t TO STDOUT"), bind("", "", &[]), execute("", 0)]);
    assert_eq!(answer.kinds(), "12HddcC");
    // An error: the rest of the data is passed over.
    client.send(&begin);
    client.send(&[message(b'd', b"x\n"), message(b'd', b"3\n"), message(b'c', b""), sync()].concat());
    assert_eq!(client.answer().sqlstate(), "22P02");
    assert_eq!(client.ask("SELECT count(*) FROM t"), "2");
}

#[test]
fn much_data_takes_little_memory_and_time() {
    let server = server(&["--max-message-bytes", "1MiB"]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a int, b text)");
    let filling = "x".repeat(1_000);
    let data: String = (0..20_000).map(|number| format!("{number}\t{filling}\n")).collect();
    assert_eq!(
        copy_in(&mut client, "COPY t FROM STDIN", data.as_bytes(), 65_536).tags(),
        ["COPY 20000"]
    );
    assert_eq!(
        client.ask("SELECT count(*) || ' ' || sum(a) || ' ' || sum(length(b)) FROM t"),
        "20000 199990000 20000000"
    );
    assert!(
        copy_out(&mut client, "COPY t TO STDOUT") == data,
        "what comes out is what went in"
    );
    let line = "y".repeat(3 << 20);
    assert_eq!(
        copy_in(&mut client, "COPY t (b) FROM STDIN", line.as_bytes(), 65_536).sqlstate(),
        "54000"
    );
}

#[test]
fn freeze_is_for_tables_that_are_new_to_the_transaction() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a int); CREATE SCHEMA x");
    const NOT_NEW: &str = "55000";
    for (before, sqlstate) in [
        ("SELECT 1", NOT_NEW),
        ("TRUNCATE t", "00000"),
        ("TRUNCATE t; SAVEPOINT s", NOT_NEW),
        ("SAVEPOINT s; TRUNCATE t; RELEASE s", "00000"),
        ("SAVEPOINT s; TRUNCATE t; ROLLBACK TO s", NOT_NEW),
        ("CREATE TABLE x.t (a int)", NOT_NEW),
        ("CREATE TABLE x.t (a int); SET LOCAL search_path = x", "00000"),
        ("CREATE TABLE IF NOT EXISTS t (a int)", NOT_NEW),
        ("DROP TABLE t; CREATE TABLE t AS SELECT 1 AS a", "00000"),
        ("TRUNCATE t; DECLARE c CURSOR FOR SELECT 1", "25000"),
    ] {
        client.run("BEGIN");
        client.run(before);
        let copied = copy_in(&mut client, "COPY t FROM STDIN WITH (FREEZE ON)", b"1\n", 10);
        assert_eq!(copied.sqlstate(), sqlstate, "{before}");
        client.run("ROLLBACK");
    }
    assert_eq!(
        copy_in(&mut client, "COPY t FROM STDIN FREEZE", b"1\n", 10).sqlstate(),
        NOT_NEW
    );
    assert_eq!(copy_out(&mut client, "COPY (SELECT 1) TO STDOUT (FREEZE)"), "1\n");
}
