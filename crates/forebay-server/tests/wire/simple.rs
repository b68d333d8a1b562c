//! Simple queries: blocks, implicit ones too, the status byte, settings.

use crate::client::{Answer, Client};
use crate::server;

#[test]
fn a_script_is_one_transaction() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a INTEGER PRIMARY KEY)");
    let answer = client.query(
        "INSERT INTO t VALUES (1); INSERT INTO t VALUES (2); INSERT INTO t VALUES (1); INSERT INTO t VALUES (3)",
    );
    assert_eq!((answer.sqlstate().as_str(), answer.status), ("23505", 'I'));
    assert_eq!(
        answer.tags(),
        ["INSERT 0 1", "INSERT 0 1"],
        "nothing behind the error is run"
    );
    assert_eq!(client.ask("SELECT count(*) FROM t"), "0", "the error undoes all");
    // COMMIT inside: what is before it stays.
    let answer = client.query("INSERT INTO t VALUES (1); COMMIT; INSERT INTO t VALUES (2); SELECT absent");
    assert_eq!(answer.status, 'I');
    assert_eq!(answer.notice().unwrap().sqlstate(), "25P01");
    assert_eq!(client.ask("SELECT string_agg(a::text, ',' ORDER BY a) FROM t"), "1");
    // BEGIN inside takes the implicit block over, with what was done in it.
    let answer = client.query("INSERT INTO t VALUES (2); BEGIN; INSERT INTO t VALUES (3)");
    assert_eq!((answer.sqlstate().as_str(), answer.status), ("00000", 'T'));
    client.run("ROLLBACK");
    assert_eq!(client.ask("SELECT string_agg(a::text, ',' ORDER BY a) FROM t"), "1");
    let answer = client.run("BEGIN; INSERT INTO t VALUES (4); COMMIT; INSERT INTO t VALUES (5)");
    assert_eq!(answer.tags(), ["BEGIN", "INSERT 0 1", "COMMIT", "INSERT 0 1"]);
    assert_eq!(client.ask("SELECT count(*) FROM t"), "3");
    // A mistake in the text: nothing of it is run.
    assert_eq!(client.query("INSERT INTO t VALUES (9); SELEKT 1").sqlstate(), "42601");
    assert_eq!(client.ask("SELECT count(*) FROM t"), "3");
}

#[test]
fn the_status_byte_is_true() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a INTEGER PRIMARY KEY)");
    let mut step = |sql: &str, sqlstate: &str, status: char| {
        let answer = client.query(sql);
        assert_eq!((answer.sqlstate().as_str(), answer.status), (sqlstate, status), "{sql}");
        answer
    };
    step("BEGIN", "00000", 'T');
    assert_eq!(step("BEGIN", "00000", 'T').notice().unwrap().sqlstate(), "25001");
    step("INSERT INTO t VALUES (1)", "00000", 'T');
    step("SAVEPOINT a", "00000", 'T');
    step("INSERT INTO t VALUES (1)", "23505", 'E');
    step("SELECT 1", "25P02", 'E');
    step("", "00000", 'E');
    step("SAVEPOINT b", "25P02", 'E');
    step("ROLLBACK TO SAVEPOINT b", "3B001", 'E');
    step("ROLLBACK TO SAVEPOINT a", "00000", 'T');
    step("INSERT INTO t VALUES (2)", "00000", 'T');
    step("RELEASE a", "00000", 'T');
    step("RELEASE a", "3B001", 'E');
    assert_eq!(
        step("COMMIT", "00000", 'I').tags(),
        ["ROLLBACK"],
        "a failed block is not committed, and says so"
    );
    assert_eq!(step("SELECT count(*) FROM t", "00000", 'I').value().unwrap(), "0");
    assert_eq!(step("COMMIT", "00000", 'I').notice().unwrap().sqlstate(), "25P01");
    assert_eq!(step("ROLLBACK", "00000", 'I').notice().unwrap().sqlstate(), "25P01");
    step("SAVEPOINT a", "25P01", 'I');
    step("BEGIN", "00000", 'T');
    step("syntax error here", "42601", 'E');
    step("ROLLBACK", "00000", 'I');
    // An error before anything was written; savepoints set before the first write.
    step("BEGIN; SAVEPOINT s; SAVEPOINT \"S\"", "00000", 'T');
    step("INSERT INTO t VALUES (7)", "00000", 'T');
    step("ROLLBACK TO \"S\"", "00000", 'T');
    step("INSERT INTO t VALUES (8)", "00000", 'T');
    assert_eq!(step("COMMIT AND CHAIN", "00000", 'T').tags(), ["COMMIT"]);
    step("ROLLBACK AND CHAIN", "00000", 'T');
    step("ROLLBACK", "00000", 'I');
    assert_eq!(
        step("SELECT string_agg(a::text, ',' ORDER BY a) FROM t", "00000", 'I')
            .value()
            .unwrap(),
        "8"
    );
}

#[test]
fn a_deferred_constraint_fails_the_commit() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE p (id INTEGER PRIMARY KEY)");
    client.run("CREATE TABLE c (p INTEGER REFERENCES p (id) DEFERRABLE INITIALLY DEFERRED)");
    client.run("BEGIN");
    client.run("INSERT INTO c VALUES (1)");
    let answer = client.query("COMMIT");
    assert_eq!((answer.sqlstate().as_str(), answer.status), ("23503", 'I'));
    assert_eq!(client.ask("SELECT count(*) FROM c"), "0");
    client.run("BEGIN; INSERT INTO c VALUES (1); INSERT INTO p VALUES (1); COMMIT");
    assert_eq!(client.ask("SELECT count(*) FROM c"), "1");
}

#[test]
fn nothing_is_answered_as_nothing() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    for sql in ["", " ", ";", ";;", "-- ping", "/* ping */", "-- ping\n;"] {
        let answer = client.query(sql);
        assert_eq!((answer.kinds().as_str(), answer.status), ("I", 'I'), "{sql:?}");
    }
    assert_eq!(client.run(";;SELECT 1;;").rows().len(), 1);
    assert_eq!(client.query("SELECT $1").sqlstate(), "42P02");
}

#[test]
fn settings_are_told_reported_and_put_back() {
    let server = server(&[]);
    let mut client = Client::connect_with(server.address(), &[("application_name", "start")]).unwrap();
    assert_eq!(client.settings["application_name"], "start");
    for (name, value) in [
        ("client_encoding", "UTF8"),
        ("standard_conforming_strings", "on"),
        ("integer_datetimes", "on"),
        ("TimeZone", "UTC"),
    ] {
        assert_eq!(client.settings[name], value);
    }
    let reported = |name: &str| [("application_name".to_owned(), name.to_owned())];
    assert_eq!(client.run("SET application_name = 'one'").settings(), reported("one"));
    assert_eq!(client.ask("SHOW application_name"), "one");
    client.run("BEGIN");
    assert_eq!(client.run("SET application_name TO two").settings(), reported("two"));
    assert_eq!(client.run("ROLLBACK").settings(), reported("one"));
    client.run("BEGIN");
    assert_eq!(
        client.run("SET LOCAL application_name = 'three'").settings(),
        reported("three")
    );
    assert_eq!(client.run("COMMIT").settings(), reported("one"));
    // In a failed block, by the rollback too; and in a script that fails.
    client.run("BEGIN; SET application_name = 'four'");
    client.query("nonsense");
    assert_eq!(client.run("COMMIT").settings(), reported("one"));
    let answer = client.query("SET application_name = 'five'; SELECT absent");
    assert_eq!(answer.settings().last().unwrap().1, "one");
    assert_eq!(client.ask("SHOW application_name"), "one");
    assert_eq!(client.query("SET no_such_setting = 1").sqlstate(), "42704");
    assert_eq!(client.query("SHOW no_such_setting").sqlstate(), "42704");
    assert_eq!(client.query("SET client_encoding = 'LATIN1'").sqlstate(), "0A000");
    client.run("SET statement_timeout = '3s'");
    client.run("RESET ALL");
    assert_eq!(client.ask("SHOW statement_timeout"), "0");
    assert_eq!(
        Client::connect_with(server.address(), &[("no_such_setting", "1")])
            .unwrap_err()
            .sqlstate(),
        "42704"
    );
}

#[test]
fn isolation_levels_see_what_they_promise() {
    let server = server(&[]);
    let mut one = Client::connect(server.address());
    let mut two = Client::connect(server.address());
    one.run("CREATE TABLE t (a INTEGER)");
    let count = "SELECT count(*) FROM t";
    one.run("BEGIN");
    assert_eq!(one.ask(count), "0");
    two.run("INSERT INTO t VALUES (1)");
    assert_eq!(
        one.ask(count),
        "1",
        "READ COMMITTED: each statement sees what is committed"
    );
    one.run("COMMIT");
    one.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    assert_eq!(one.ask(count), "1");
    two.run("INSERT INTO t VALUES (2)");
    assert_eq!(one.ask(count), "1", "REPEATABLE READ: one state throughout");
    let answer = one.query("INSERT INTO t VALUES (3)");
    assert_eq!((answer.sqlstate().as_str(), answer.status), ("25006", 'E'));
    one.run("ROLLBACK");
    one.run("BEGIN ISOLATION LEVEL SERIALIZABLE");
    assert_eq!(one.ask("SHOW transaction_isolation"), "serializable");
    assert_eq!(one.query("SELECT count(*) FROM t").value().unwrap(), "2");
    assert_eq!(
        one.query("SET TRANSACTION ISOLATION LEVEL READ COMMITTED").sqlstate(),
        "25001"
    );
    one.run("ROLLBACK");
    // Lost updates cannot be: each reads what the other has written.
    one.run("BEGIN ISOLATION LEVEL SERIALIZABLE");
    let seen: i64 = one.ask("SELECT max(a) FROM t").parse().unwrap();
    two.send(&crate::client::query(
        "BEGIN ISOLATION LEVEL SERIALIZABLE; UPDATE t SET a = (SELECT max(a) FROM t) + 10; COMMIT",
    ));
    one.run(&format!("UPDATE t SET a = {}", seen + 1));
    one.run("COMMIT");
    two.answer().expect("the second waits for the first");
    assert_eq!(one.ask("SELECT string_agg(a::text, ',' ORDER BY a) FROM t"), "13,13");
}

#[test]
fn a_changed_table_is_seen_at_once() {
    // One reading connection, which has seen the table as it was.
    let server = server(&["--readers", "1"]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a INTEGER)");
    client.run("INSERT INTO t VALUES (1)");
    client.run("SELECT * FROM t");
    client.run("ALTER TABLE t ADD COLUMN added TEXT DEFAULT 'x'");
    let columns = |answer: &Answer| {
        let description = answer.messages.iter().find(|message| message.kind == b'T');
        String::from_utf8_lossy(&description.expect("columns are described").body).into_owned()
    };
    let answer = client.run("SELECT * FROM t");
    assert!(columns(&answer).contains("added\0"));
    assert_eq!(answer.rows()[0].len(), 2);
    client.run("ALTER TABLE t RENAME COLUMN added TO renamed");
    let answer = client.run("SELECT * FROM t");
    assert!(columns(&answer).contains("renamed\0") && !columns(&answer).contains("added\0"));
}

#[test]
fn a_lateral_subquery_gives_its_one_row() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE a (id integer); CREATE TABLE b (a integer, x text)");
    client.run("INSERT INTO a VALUES (1), (2), (3); INSERT INTO b VALUES (1, 'p'), (1, 'q'), (2, 'r')");
    let told = |client: &mut Client, sql: &str| {
        let rows = client.run(sql).rows().into_iter();
        let row = |row: Vec<Option<String>>| {
            row.into_iter()
                .map(Option::unwrap_or_default)
                .collect::<Vec<_>>()
                .join(" ")
        };
        rows.map(row).collect::<Vec<_>>().join(",")
    };
    let joined = |subquery: &str| {
        format!("SELECT a.id, l.* FROM a LEFT JOIN LATERAL (SELECT {subquery}) l ON true ORDER BY a.id")
    };
    let one = joined("x FROM b WHERE b.a = a.id ORDER BY x DESC LIMIT 1");
    assert_eq!(told(&mut client, &one), "1 q,2 r,3 ");
    let aggregate = joined("count(*), max(x) AS m FROM b WHERE b.a = a.id");
    assert_eq!(told(&mut client, &aggregate), "1 2 q,2 1 r,3 0 ");
    let found_to_be_one = joined("x FROM b WHERE b.a = a.id AND x > 'p'");
    assert_eq!(told(&mut client, &found_to_be_one), "1 q,2 r,3 ");
    // Also where nobody asks for its columns.
    let several = "SELECT a.id FROM a LEFT JOIN LATERAL (SELECT x FROM b WHERE b.a = a.id) l ON true";
    for refused in [
        several,
        &joined("random() AS n"),
        "SELECT 1 FROM a, LATERAL (SELECT a.id) l",
        "SELECT 1 FROM a LEFT JOIN LATERAL (SELECT a.id LIMIT 1) l ON true RIGHT JOIN b ON false",
        "SELECT 1 FROM b LEFT JOIN (a LEFT JOIN LATERAL (SELECT a.id LIMIT 1) l ON true) ON false",
    ] {
        assert_eq!(client.query(refused).sqlstate(), "0A000", "{refused}");
    }
}

#[test]
fn create_table_as_with_no_data_copies_none() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a numeric(5, 1))");
    client.run("INSERT INTO t VALUES (1), (2)");
    for (sql, tag, count) in [
        ("CREATE TABLE u AS SELECT * FROM t WITH NO DATA", "CREATE TABLE AS", "0"),
        ("CREATE TABLE v AS TABLE t WITH DATA", "SELECT 2", "2"),
        ("CREATE TABLE w AS (SELECT a FROM t)", "SELECT 2", "2"),
    ] {
        assert_eq!(client.query(sql).tags(), [tag], "{sql}");
        let table = &sql[13..14];
        assert_eq!(client.ask(&format!("SELECT count(*) FROM {table}")), count, "{sql}");
    }
    client.run("INSERT INTO u VALUES (1.25)");
    assert_eq!(client.ask("SELECT a FROM u"), "1.3");
}

#[test]
fn the_last_statement_is_complete_when_it_is_committed() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run(
        "CREATE TABLE p (id int PRIMARY KEY); CREATE TABLE t (a int, p int REFERENCES p DEFERRABLE INITIALLY DEFERRED)",
    );
    for (script, kinds) in [
        ("INSERT INTO t VALUES (1, 5)", "E"),
        ("INSERT INTO t VALUES (1, 5); INSERT INTO t VALUES (2, 6)", "CE"),
        ("INSERT INTO t VALUES (1, 5) RETURNING a; SELECT 1", "TDCTDE"),
        ("SET TimeZone = 'Europe/Berlin'; INSERT INTO t VALUES (1, 5)", "SCSE"),
        (
            "SELECT 1; BEGIN; INSERT INTO t VALUES (1, 5); COMMIT; SELECT 1",
            "TDCCCE",
        ),
    ] {
        let answer = client.query(script);
        assert_eq!(
            (answer.kinds().as_str(), answer.sqlstate().as_str()),
            (kinds, "23503"),
            "{script}"
        );
    }
    assert_eq!(client.ask("SELECT count(*) FROM t"), "0");
}

#[test]
fn the_statement_timestamp_is_when_the_client_asked() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    assert_eq!(
        client.ask("SELECT count(DISTINCT statement_timestamp()) FROM generate_series(1, 5000)"),
        "1"
    );
    let times = "now() = statement_timestamp(), statement_timestamp() <= clock_timestamp()";
    let told = |client: &mut Client, sql: &str| {
        client
            .run(sql)
            .rows()
            .concat()
            .into_iter()
            .flatten()
            .collect::<String>()
    };
    assert_eq!(told(&mut client, &format!("SELECT {times}")), "tt");
    assert_eq!(
        told(&mut client, &format!("BEGIN; SELECT pg_sleep(0.01); SELECT {times}")),
        "tt"
    );
    assert_eq!(
        told(&mut client, &format!("SELECT {times}")),
        "ft",
        "of the block, and of this message"
    );
    client.run("ROLLBACK");
    // A default is the statement's too.
    client.run("CREATE TABLE t (a int, at timestamptz DEFAULT statement_timestamp())");
    client.run("INSERT INTO t (a) SELECT g FROM generate_series(1, 5000) g");
    assert_eq!(client.ask("SELECT count(DISTINCT at) FROM t"), "1");
}
