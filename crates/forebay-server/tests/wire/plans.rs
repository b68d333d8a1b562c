//! What was compiled is used again: for the same text, and for one that differs in nothing but literals; never for a schema that has
//! changed since.

use crate::client::{Client, bind, describe, execute, parse, query, whole};
use crate::server;

#[test]
fn other_literals_are_other_values_and_nothing_else() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (id integer PRIMARY KEY, v varchar(3), n numeric(6, 2), b bytea, d date)");
    for (row, stored) in [
        (r"(1, 'a', 1.005, '\x00', '2024-02-29')", "1 a 1.01 00 2024-02-29"),
        (
            r"(2, 'it''s'::varchar(2), 7, '\x01ff', '2024-03-01')",
            "2 it 7.00 01ff 2024-03-01",
        ),
        (r"(-3, 'b', -2.5, E'\\x02', 'infinity')", "-3 b -2.50 02 infinity"),
        (r"(4, 'c  ', '8', '', '1 March 2025')", "4 c   8.00  2025-03-01"),
        (r"(5, 'xyz ', 9.999, 'a', '-infinity')", "5 xyz 10.00 61 -infinity"),
        (r"(6, '', 0, 'a\134', 'epoch')", "6  0.00 615c 1970-01-01"),
    ] {
        client.run(&format!("INSERT INTO t VALUES {row}"));
        let id = stored.split(' ').next().unwrap();
        let of_row = "id || ' ' || v || ' ' || n || ' ' || encode(b, 'hex') || ' ' || d";
        assert_eq!(client.ask(&format!("SELECT {of_row} FROM t WHERE id = {id}")), stored);
        assert_eq!(client.ask(&format!("SELECT id FROM t WHERE id IN ({id}, 100)")), id);
        assert_eq!(client.ask(&format!("SELECT id FROM t WHERE id = '{id}'")), id);
        assert_eq!(
            client.ask(&format!("SELECT count(*) FROM t WHERE id > {id}.5 AND id < {id}.75")),
            "0"
        );
    }
    for (statement, sqlstate, position) in [
        ("INSERT INTO t (id, v) VALUES (7, 'long')", "22001", None),
        ("INSERT INTO t (id, v) VALUES (3000000000, 'a')", "22003", None),
        ("INSERT INTO t (id, n) VALUES (7, 'x')", "22P02", Some(34)),
        ("SELECT id FROM t WHERE id = 'x'", "22P02", Some(29)),
        ("SELECT id FROM t WHERE d = '2024-02-30'", "22008", Some(28)),
        ("SELECT id FROM t WHERE nothing = 1", "42703", Some(24)),
        ("INSERT INTO t (id, v) VALUES (1, 'a')", "23505", None),
    ] {
        for _ in 0..2 {
            let error = client.query(statement).error().unwrap();
            assert_eq!(
                (error.sqlstate(), error.position()),
                (sqlstate, position),
                "{statement}"
            );
        }
    }
    // The tag's count and a failed block are as ever.
    assert_eq!(client.query("UPDATE t SET v = 'q' WHERE id = 1").tags(), ["UPDATE 1"]);
    assert_eq!(client.query("UPDATE t SET v = 'r' WHERE id = 99").tags(), ["UPDATE 0"]);
    client.run("BEGIN");
    client.send(&query("SELECT id FROM t WHERE id = 'x'"));
    assert_eq!(client.answer().sqlstate(), "22P02");
    client.send(&query("SELECT id FROM t WHERE id = '1'"));
    assert_eq!(client.answer().sqlstate(), "25P02");
    client.run("ROLLBACK");
}

#[test]
fn a_text_with_parameters_is_no_simple_query_though_it_is_known() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a integer)");
    assert_eq!(
        client
            .pipeline(&[whole("SELECT a FROM t WHERE a = $1", &["1"])])
            .sqlstate(),
        "00000"
    );
    client.send(&query("SELECT a FROM t WHERE a = $1"));
    assert_eq!(client.answer().sqlstate(), "42P02");
}

#[test]
fn prepared_statements_follow_the_schema() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    let mut other = Client::connect(server.address());
    client.run("CREATE TABLE t (a integer, b text)");
    client.pipeline(&[
        parse("add", "INSERT INTO t (a) VALUES ($1::text::integer)"),
        parse("all", "SELECT * FROM t"),
        parse("one", "SELECT a FROM t"),
    ]);
    other.run("ALTER TABLE t ALTER a TYPE numeric(5, 1)");
    let run = |client: &mut Client, name: &str, parameters: &[&str]| {
        client.pipeline(&[bind("", name, parameters), execute("", 0)])
    };
    assert_eq!(run(&mut client, "add", &["7"]).sqlstate(), "00000");
    assert_eq!(client.ask("SELECT a FROM t"), "7.0");
    let refused = run(&mut client, "one", &[]).error().unwrap();
    assert_eq!(
        (refused.sqlstate(), refused.message()),
        ("0A000", "cached plan must not change result type")
    );
    other.run("ALTER TABLE t ALTER a TYPE integer");
    assert_eq!(run(&mut client, "one", &[]).value().unwrap(), "7");
    assert_eq!(run(&mut client, "all", &[]).sqlstate(), "00000");
    other.run("ALTER TABLE t ADD c integer");
    assert_eq!(run(&mut client, "all", &[]).sqlstate(), "0A000");
    assert_eq!(client.pipeline(&[describe(b'S', "all")]).sqlstate(), "0A000");
    other.run("DROP TABLE t");
    assert_eq!(run(&mut client, "one", &[]).sqlstate(), "42P01");
}

#[test]
fn prepared_statements_follow_the_search_path() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    for schema in ["one", "two"] {
        client.run(&format!("CREATE SCHEMA {schema}"));
        client.run(&format!("CREATE TABLE {schema}.t (id integer PRIMARY KEY, whose text)"));
        client.run(&format!("INSERT INTO {schema}.t VALUES (1, '{schema}')"));
    }
    client.run("CREATE SCHEMA three");
    client.run("CREATE TABLE three.t (id bigint PRIMARY KEY, whose text)");
    let run = |client: &mut Client, name: &str, parameters: &[&str]| {
        client.pipeline(&[bind("", name, parameters), execute("", 0)])
    };
    client.run("SET search_path = one");
    client.pipeline(&[
        parse("read", "SELECT whose FROM t WHERE id = $1"),
        parse("whole", "SELECT * FROM t"),
        parse("add", "INSERT INTO t VALUES ($1, $2)"),
    ]);
    client.run("PREPARE again AS SELECT whose FROM t WHERE id = $1");
    for schema in ["one", "two", "one", "two"] {
        client.run(&format!("SET search_path = {schema}, public"));
        assert_eq!(run(&mut client, "read", &["1"]).value().unwrap(), schema);
        assert_eq!(run(&mut client, "whole", &[]).sqlstate(), "00000");
        assert_eq!(client.ask("EXECUTE again (1)"), schema);
    }
    assert_eq!(run(&mut client, "add", &["2", "new"]).tags(), ["INSERT 0 1"]);
    assert_eq!(client.ask("SELECT count(*) FROM one.t"), "1");
    assert_eq!(client.ask("SELECT count(*) FROM two.t"), "2");

    client.run("BEGIN");
    client.run("SET LOCAL search_path = one");
    assert_eq!(run(&mut client, "read", &["1"]).value().unwrap(), "one");
    client.run("ROLLBACK");
    assert_eq!(run(&mut client, "read", &["1"]).value().unwrap(), "two");

    client.run("SET search_path = three");
    assert_eq!(run(&mut client, "read", &["1"]).tags(), ["SELECT 0"]);
    assert_eq!(run(&mut client, "whole", &[]).sqlstate(), "0A000");
    client.run("SET search_path = public");
    assert_eq!(run(&mut client, "read", &["1"]).sqlstate(), "42P01");
}

#[test]
fn a_schema_that_is_named_like_the_user_is_that_users_alone() {
    let server = server(&[]);
    let as_user = |user| Client::connect_with(server.address(), &[("user", user)]).unwrap();
    let (mut alice, mut bob) = (as_user("alice"), as_user("bob"));
    alice.run("CREATE SCHEMA bob");
    alice.run("CREATE TABLE public.t (whose text)");
    alice.run("INSERT INTO public.t VALUES ('everybody')");
    bob.run("CREATE TABLE bob.t (whose text)");
    bob.run("INSERT INTO bob.t VALUES ('bob')");
    for _ in 0..2 {
        assert_eq!(alice.ask("SELECT max(whose) FROM t"), "everybody");
        assert_eq!(bob.ask("SELECT max(whose) FROM t"), "bob");
        for (client, whose) in [(&mut alice, "everybody"), (&mut bob, "bob")] {
            client.run(&format!("INSERT INTO t VALUES ('{whose}')"));
        }
    }
    assert_eq!(alice.ask("SELECT count(*) FROM bob.t"), "3");
}

#[test]
fn a_prepared_statement_reads_settings_as_they_are() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("SET app.tenant = 'one'");
    client.run("PREPARE tenant AS SELECT current_setting('app.tenant')");
    client.pipeline(&[parse("tenant", "SELECT current_setting('app.tenant')")]);
    for tenant in ["one", "two", "three"] {
        client.run(&format!("SET app.tenant = '{tenant}'"));
        let answer = client.pipeline(&[bind("", "tenant", &[]), execute("", 0)]);
        assert_eq!(answer.value().unwrap(), tenant);
        assert_eq!(client.ask("EXECUTE tenant"), tenant);
    }
}

#[test]
fn what_was_compiled_beside_an_uncommitted_change_is_not_used_behind_it() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    let mut other = Client::connect(server.address());
    let count = |client: &mut Client| client.query("SELECT * FROM t WHERE a = 1").rows()[0].len();
    client.run("CREATE TABLE t (a integer)");
    client.run("INSERT INTO t VALUES (1)");
    for (end, columns) in [("ROLLBACK", 1), ("COMMIT", 2)] {
        client.run("BEGIN");
        client.run("ALTER TABLE t ADD b integer");
        assert_eq!((count(&mut other), count(&mut client)), (1, 2));
        client.pipeline(&[parse(end, "INSERT INTO t VALUES (1)")]);
        client.run(end);
        assert_eq!((count(&mut other), count(&mut client)), (columns, columns), "{end}");
        let inserted = client.pipeline(&[bind("", end, &[]), execute("", 0)]);
        assert_eq!(inserted.sqlstate(), "00000");
    }
    client.run("BEGIN");
    client.run("SAVEPOINT s");
    client.run("ALTER TABLE t ADD c integer");
    assert_eq!(count(&mut client), 3);
    client.run("ROLLBACK TO s");
    assert_eq!(count(&mut client), 2);
    client.run("COMMIT");
    assert_eq!((count(&mut other), count(&mut client)), (2, 2));
}

#[test]
fn a_change_that_the_server_has_not_made_is_met_where_a_plan_runs() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE own (a integer)");
    let file = rusqlite::Connection::open(server.database()).unwrap();
    file.execute_batch("CREATE TABLE t (a INTEGER)").unwrap();
    client.pipeline(&[
        parse("all", "SELECT * FROM t"),
        parse("add", "INSERT INTO t VALUES (1)"),
    ]);
    let given = |client: &mut Client, sql: &str| client.run(sql).rows()[0].len();
    for (columns, name) in [(1, "b"), (2, "c"), (3, "d")] {
        client.run("INSERT INTO t VALUES (1)");
        for sql in [
            "SELECT * FROM t WHERE a = 1",
            "SELECT * FROM t",
            "INSERT INTO t VALUES (1) RETURNING *",
        ] {
            assert_eq!(given(&mut client, sql), columns, "{sql}");
        }
        // A snapshot keeps its own schema, whatever others have compiled meanwhile.
        let mut old = Client::connect(server.address());
        old.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
        assert_eq!(given(&mut old, "SELECT * FROM t"), columns);
        file.execute_batch(&format!("ALTER TABLE t ADD COLUMN {name} INTEGER"))
            .unwrap();
        match columns {
            1 => assert_eq!(given(&mut client, "SELECT * FROM t WHERE a = 1"), 2),
            2 => assert_eq!(given(&mut client, "INSERT INTO t VALUES (1) RETURNING *"), 3),
            _ => {
                client.run("BEGIN");
                assert_eq!(given(&mut client, "INSERT INTO t VALUES (1) RETURNING *"), 4);
                client.run("COMMIT");
            }
        }
        assert_eq!(given(&mut client, "SELECT * FROM t"), columns + 1);
        assert_eq!(given(&mut old, "SELECT * FROM t"), columns);
        let [all, add] = ["all", "add"].map(|name| client.pipeline(&[bind("", name, &[]), execute("", 0)]));
        assert_eq!((all.sqlstate().as_str(), add.sqlstate().as_str()), ("0A000", "00000"));
    }
}

#[test]
fn copies_and_cursors_meet_the_schema_that_there_is() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    let all = |client: &mut Client, sql: &str| {
        let answer = client.run(sql);
        let data = answer.messages.iter().filter(|message| message.kind == b'd');
        let copied = data.map(|message| String::from_utf8(message.body.clone()).unwrap());
        let rows = answer.rows();
        let given = rows
            .iter()
            .map(|row| row.iter().flatten().map(String::as_str).collect::<Vec<_>>().join("\t"));
        copied.chain(given).collect::<String>().trim_end().to_owned()
    };
    let expect = |client: &mut Client, row: &str, text: &str| {
        assert_eq!(all(client, "COPY (SELECT * FROM t) TO STDOUT"), row);
        assert_eq!(all(client, "COPY t TO STDOUT"), row);
        client.run("DECLARE c CURSOR WITH HOLD FOR SELECT * FROM t");
        assert_eq!(all(client, "FETCH ALL FROM c"), row);
        client.run("CLOSE c");
        let call = "SELECT set_config('a.b', (SELECT a::text FROM t), false)";
        assert_eq!(all(client, call), text);
    };
    client.run("CREATE TABLE own (a integer)");
    // Changed by another process.
    let file = rusqlite::Connection::open(server.database()).unwrap();
    file.execute_batch("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1)")
        .unwrap();
    expect(&mut client, "1", "1");
    file.execute_batch("ALTER TABLE t ADD COLUMN b INTEGER DEFAULT 2")
        .unwrap();
    expect(&mut client, "1\t2", "1");
    // A snapshot has the schema that it was taken with, whatever others have compiled meanwhile.
    client.run("DROP TABLE t; CREATE TABLE t (a boolean); INSERT INTO t VALUES (true)");
    let mut old = Client::connect(server.address());
    old.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    expect(&mut old, "t", "true");
    client.run("ALTER TABLE t ALTER a TYPE integer USING 7");
    expect(&mut client, "7", "7");
    expect(&mut old, "t", "true");
}
