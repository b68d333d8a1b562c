//! Identifiers: PostgreSQL keeps 63 bytes of them, wherever they stand, and has none without any.

use crate::client::Client;
use crate::server;

/// Of 62 bytes: two names that differ behind one more character are the same.
fn long(first: char) -> String {
    format!("{first}{}", "a".repeat(61))
}

#[test]
fn what_is_equal_in_its_first_bytes_is_one_name() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    let a = long('s');
    client.run("CREATE TABLE t (n int); INSERT INTO t VALUES (10)");
    client.run("BEGIN");
    client.run(&format!("SAVEPOINT {a}x1"));
    client.run("UPDATE t SET n = 1");
    client.run(&format!("SAVEPOINT {a}x2"));
    client.run("UPDATE t SET n = 2");
    client.run(&format!("ROLLBACK TO {a}x1"));
    assert_eq!(client.ask("SELECT n FROM t"), "1", "the younger of two");
    client.run(&format!("RELEASE {a}x"));
    client.run("COMMIT");

    client.run(&format!("PREPARE {a}x1 AS SELECT 1"));
    assert_eq!(client.ask(&format!("EXECUTE {a}x2")), "1");
    assert_eq!(client.query(&format!("PREPARE {a}x2 AS SELECT 2")).sqlstate(), "42P05");
    client.run(&format!("DEALLOCATE {a}x"));

    client.run("BEGIN");
    client.run(&format!("DECLARE {a}x1 CURSOR FOR SELECT 1"));
    assert_eq!(client.ask(&format!("FETCH {a}x2")), "1");
    client.run(&format!("CLOSE {a}x3"));
    client.run("COMMIT");

    client.run(&format!("CREATE TABLE {a}x1 (i int)"));
    assert_eq!(client.query(&format!("COPY {a}x2 TO STDOUT")).tags(), ["COPY 0"]);
    assert_eq!(client.query(&format!("VACUUM {a}x3")).tags(), ["VACUUM"]);
    assert_eq!(client.ask(&format!("SELECT '{a}x4'::regclass")), format!("{a}x"));
    client.run(&format!("CREATE SEQUENCE {a}y1"));
    client.run(&format!("ALTER SEQUENCE {a}y2 RESTART WITH 7"));
    assert_eq!(client.ask(&format!("SELECT nextval('{a}y3')")), "7");
    client.run(&format!("SET my.{a}x1 = 5"));
    assert_eq!(client.ask(&format!("SHOW my.{a}x2")), "5");

    for (with, sqlstate) in [("x", "42712"), ("y", "00000")] {
        let sql = format!("WITH {a}x1 AS (SELECT 5), {a}{with}2 AS (SELECT 6) SELECT 1");
        assert_eq!(client.query(&sql).sqlstate(), sqlstate, "{with}");
    }
    // Counted in bytes, and no character is cut in two.
    let sql = format!("SELECT 1 AS {}é, 2 AS {}éé", "ü".repeat(31), "a".repeat(60));
    let answer = client.run(&sql);
    let columns = String::from_utf8_lossy(&answer.messages[0].body).into_owned();
    assert!(columns.contains(&format!("{}\0", "ü".repeat(31))), "{columns}");
    assert!(columns.contains(&format!("{}é\0", "a".repeat(60))), "{columns}");
}

#[test]
fn a_name_that_postgresql_makes_is_cut_as_it_cuts() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    let (table, c, d, e) = (long('t'), long('c'), long('d'), long('e'));
    client.run("CREATE TABLE o (id int PRIMARY KEY)");
    client.run(&format!(
        "CREATE TABLE {table} ({c} serial PRIMARY KEY, {d} int UNIQUE, {e} int CHECK ({e} > 0), f int REFERENCES o, UNIQUE ({e}, f), \
         UNIQUE (f))"
    ));
    client.run(&format!("CREATE INDEX ON {table} ({e})"));
    client.run(&format!("CREATE INDEX ON {table} ({e})"));
    client.run(&format!("CREATE INDEX ON {table} (f, {d})"));
    let cut = |name: &str, bytes: usize| name[..bytes].to_owned();
    let answer = client.run("SELECT conname FROM pg_constraint WHERE conname LIKE 'taaa%'");
    let mut constraints: Vec<String> = answer.rows().into_iter().filter_map(|mut row| row.remove(0)).collect();
    constraints.sort();
    let mut expected = vec![
        format!("{}_{}_check", cut(&table, 28), cut(&e, 28)),
        format!("{}_{}_key", cut(&table, 29), cut(&d, 29)),
        format!("{}_{}_key", cut(&table, 29), cut(&e, 29)),
        format!("{}_f_fkey", cut(&table, 56)),
        format!("{}_f_key", cut(&table, 57)),
        format!("{}_pkey", cut(&table, 58)),
    ];
    expected.sort();
    assert_eq!(constraints, expected);
    let answer = client.run("SELECT indexname FROM pg_indexes WHERE indexname LIKE 'taaa%idx%'");
    let mut indexes: Vec<String> = answer.rows().into_iter().filter_map(|mut row| row.remove(0)).collect();
    indexes.sort();
    let mut expected = vec![
        format!("{}_{}_idx", cut(&table, 29), cut(&e, 29)),
        format!("{}_{}_idx1", cut(&table, 29), cut(&e, 28)),
        format!("{}_f_{}_idx", cut(&table, 29), cut(&d, 27)),
    ];
    expected.sort();
    assert_eq!(indexes, expected);
    assert_eq!(
        client.ask(&format!("SELECT pg_get_serial_sequence('{table}', '{c}')")),
        format!("public.{}_{}_seq", cut(&table, 29), cut(&c, 29))
    );
}

#[test]
fn what_is_no_identifier_is_none() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    for sql in [
        "SELECT 1 AS \"\"",
        "SELECT \"\" FROM pg_class",
        "CREATE TABLE \"\" (a int)",
        "CREATE TABLE x (\"\" int)",
        "SAVEPOINT \"\"",
    ] {
        let error = client.query(sql).error().unwrap();
        assert_eq!(
            (error.sqlstate(), error.message()),
            ("42601", "zero-length delimited identifier at or near \"\"\"\""),
            "{sql}"
        );
    }
    for sql in [
        "SELECT u&\"n\" FROM (VALUES (1)) v(n)",
        "SELECT U&\"n\" FROM (VALUES (1)) v(n)",
    ] {
        let error = client.query(sql).error().unwrap();
        assert_eq!(error.sqlstate(), "0A000", "{sql}");
        assert!(error.message().contains("U&"), "{}", error.message());
    }
    assert_eq!(client.ask("SELECT u&\n3 FROM (VALUES (2)) v(u)"), "2");
    assert_eq!(client.ask("SELECT U&'d\\0061t\\+000061'"), "data");
}
