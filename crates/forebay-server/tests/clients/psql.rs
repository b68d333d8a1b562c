//! psql: what a person sees who types at it.

use std::time::Duration;

use testbed::Program;

use crate::{
    program::{checks, run, with_one_stream},
    server::Server,
};

const FOR_EVER: &str = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";

/// As Ctrl-C sends it.
const SIGNAL_INTERRUPT: i32 = 2;

const TABLE: &str = "CREATE TABLE people (id bigint PRIMARY KEY, name text NOT NULL UNIQUE, price numeric, at timestamptz, \
                     ok boolean, data bytea, doc json, uid uuid, born date)";
const PERSON: &str = "INSERT INTO people VALUES (1, 'naïve ''é''', 12.5, '2024-02-29 23:59:59.25+00', true, '\\x00ff', \
                      '{\"a\": [1]}', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '1970-01-01')";
const NULLS: &str = "INSERT INTO people (id, name) VALUES (2, 'nulls')";

pub(crate) fn check(server: &Server) {
    run(server, &psql(server, &["-q", "-c", TABLE, "-c", PERSON, "-c", NULLS]))
        .unwrap_or_else(|output| panic!("{output}"));
    checks([
        ("connect", &|| connect(server)),
        ("types", &|| types(server)),
        ("returning and counts", &|| returning_and_counts(server)),
        ("errors", &|| errors(server)),
        ("transactions", &|| transactions(server)),
        ("several statements", &|| several_statements(server)),
        ("descriptions", &|| descriptions(server)),
        ("cancel", &|| cancel(server)),
    ]);
}

/// psql with these words after the usual ones; none of the user's own settings.
fn psql(server: &Server, arguments: &[&str]) -> Program {
    let url = server.url();
    let mut words = vec!["-X", "-d", &url];
    words.extend(arguments);
    let mut program = with_one_stream("psql", &words);
    program.environment.push(("PGOPTIONS".into(), "".into()));
    program.environment.push(("PAGER".into(), "".into()));
    program
}

/// What psql prints for these commands, each in a `-c` of its own.
fn shown(server: &Server, commands: &[&str]) -> String {
    let arguments: Vec<&str> = commands.iter().flat_map(|command| ["-c", command]).collect();
    run(server, &psql(server, &arguments)).unwrap_or_else(|output| panic!("{output}"))
}

/// What psql prints when the last of these commands fails, which makes it end with a failure.
fn shown_failing(server: &Server, commands: &[&str]) -> String {
    let arguments: Vec<&str> = commands.iter().flat_map(|command| ["-c", command]).collect();
    match run(server, &psql(server, &arguments)) {
        Ok(output) => panic!("{commands:?} did not fail:\n{output}"),
        Err(output) => output,
    }
}

/// The bare values that these statements, in one string, end with.
pub(crate) fn value(server: &Server, sql: &str) -> String {
    let output = run(server, &psql(server, &["-q", "-A", "-t", "-c", sql]));
    output.unwrap_or_else(|output| panic!("{output}")).trim_end().to_owned()
}

#[track_caller]
fn contains(output: &str, expected: &str) {
    assert!(output.contains(expected), "expected:\n{expected}\nin:\n{output}");
}

fn connect(server: &Server) {
    let output = shown(
        server,
        &["\\echo :ENCODING", "SELECT 1 AS one, 'two' AS two", "\\conninfo"],
    );
    contains(&output, "UTF8\n");
    contains(&output, " one | two \n-----+-----\n   1 | two\n(1 row)\n");
    contains(&output, "You are connected to database");
    assert_eq!(value(server, "SHOW server_encoding"), "UTF8");
    assert_eq!(value(server, "SHOW standard_conforming_strings"), "on");
}

fn types(server: &Server) {
    let expected = "1|naïve 'é'|12.5|2024-02-29 23:59:59.25+00|t|\\x00ff|{\"a\": [1]}|a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11|1970-01-01\n2|nulls|||||||";
    assert_eq!(value(server, "SELECT * FROM people ORDER BY id"), expected);
    // Numbers stand right, texts left: psql aligns by the types it was told.
    let output = shown(
        server,
        &["\\pset null NULL", "SELECT id, name, price, ok FROM people ORDER BY id"],
    );
    contains(
        &output,
        " id |   name    | price |  ok  \n----+-----------+-------+------\n  1 | naïve 'é' |  12.5 | t\n  2 | nulls     |  NULL | NULL\n(2 rows)\n",
    );
}

fn returning_and_counts(server: &Server) {
    let commands = [
        "CREATE TABLE counted (id bigserial PRIMARY KEY, name text)",
        "INSERT INTO counted (name) VALUES ('a'), ('b'), ('c') RETURNING id, name",
        "UPDATE counted SET name = name || '!' WHERE id > 1",
        "DELETE FROM counted WHERE id = 99",
        "DELETE FROM counted",
    ];
    let table = " id | name \n----+------\n  1 | a\n  2 | b\n  3 | c\n(3 rows)\n\n";
    let expected = format!("CREATE TABLE\n{table}INSERT 0 3\nUPDATE 2\nDELETE 0\nDELETE 3\n");
    assert_eq!(shown(server, &commands), expected);
}

fn errors(server: &Server) {
    // The caret stands under the first letter of what is wrong.
    contains(&shown_failing(server, &["SELEC 1"]), "LINE 1: SELEC 1\n        ^");
    contains(
        &shown_failing(server, &["SELECT 1,\n  missing FROM people"]),
        "LINE 2:   missing FROM people\n          ^",
    );
    contains(
        &shown_failing(server, &["SELECT * FROM missing"]),
        "relation \"missing\" does not exist\nLINE 1: SELECT * FROM missing\n                      ^",
    );
    let states = [
        ("23505", "INSERT INTO people (id, name) VALUES (3, 'nulls')"),
        ("23502", "INSERT INTO people (id, name) VALUES (3, NULL)"),
        ("42P01", "SELECT * FROM missing"),
        ("42703", "SELECT missing FROM people"),
        ("42601", "SELEC 1"),
        ("22P02", "SELECT 'x'::int"),
    ];
    for (state, statement) in states {
        // The statement fails, and the next one on the same connection does not.
        let output = shown(server, &["\\set VERBOSITY verbose", statement, "SELECT 'goes on'"]);
        contains(&output, &format!("ERROR:  {state}: "));
        contains(&output, "goes on");
    }
}

fn transactions(server: &Server) {
    let commands = [
        "CREATE TABLE ledger (id bigint PRIMARY KEY)",
        "BEGIN",
        "INSERT INTO ledger VALUES (1)",
        "SAVEPOINT inner_one",
        "INSERT INTO ledger VALUES (2)",
        "ROLLBACK TO inner_one",
        "RELEASE inner_one",
        "COMMIT",
        "BEGIN",
        "INSERT INTO ledger VALUES (3)",
        "ROLLBACK",
        "BEGIN",
        "INSERT INTO ledger VALUES (1)",
        "SELECT 1",
        "COMMIT",
    ];
    let output = shown(server, &commands);
    contains(
        &output,
        "CREATE TABLE\nBEGIN\nINSERT 0 1\nSAVEPOINT\nINSERT 0 1\nROLLBACK\nRELEASE\nCOMMIT\nBEGIN\nINSERT 0 1\nROLLBACK\nBEGIN\nERROR:  ",
    );
    contains(
        &output,
        "current transaction is aborted, commands ignored until end of transaction block\nROLLBACK\n",
    );
    assert_eq!(value(server, "SELECT id FROM ledger"), "1");
}

fn several_statements(server: &Server) {
    assert_eq!(
        value(
            server,
            "CREATE TABLE strung (id bigint PRIMARY KEY); INSERT INTO strung VALUES (1), (2); SELECT count(*) FROM strung"
        ),
        "2"
    );
    let rebuilt =
        "DROP TABLE IF EXISTS strung; CREATE TABLE strung (id bigint PRIMARY KEY); INSERT INTO strung VALUES (1), (2)";
    assert_eq!(value(server, &format!("{rebuilt}; SELECT count(*) FROM strung")), "2");
    // Statements in one string are one transaction.
    let failing = "INSERT INTO strung VALUES (3); INSERT INTO strung VALUES (1); INSERT INTO strung VALUES (4)";
    shown_failing(server, &[failing]);
    assert_eq!(value(server, "SELECT count(*) FROM strung"), "2");
    // Unless they say otherwise.
    shown_failing(
        server,
        &["BEGIN; INSERT INTO strung VALUES (5); COMMIT; INSERT INTO strung VALUES (1)"],
    );
    assert_eq!(value(server, "SELECT count(*) FROM strung"), "3");
    assert_eq!(value(server, ""), "");
}

fn descriptions(server: &Server) {
    let squeezed = |output: &str| -> Vec<String> {
        output
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect()
    };
    let has_lines = |output: &str, expected: &[&str]| {
        let lines = squeezed(output);
        for line in expected {
            assert!(
                lines.iter().any(|found| found == line),
                "no line {line:?} in:\n{output}"
            );
        }
    };
    let tables = shown(server, &["\\dt"]);
    contains(&tables, "List of relations");
    contains(&tables, " people ");
    contains(&tables, " ledger ");
    contains(&shown(server, &["\\d"]), " people ");
    let people = shown(server, &["\\d people"]);
    contains(&people, "Table \"public.people\"");
    has_lines(
        &people,
        &[
            "id | bigint | | not null |",
            "name | text | | not null |",
            "price | numeric | | |",
            "at | timestamp with time zone | | |",
            "ok | boolean | | |",
            "data | bytea | | |",
            "doc | json | | |",
            "uid | uuid | | |",
            "born | date | | |",
            "Indexes:",
        ],
    );
    contains(&people, "PRIMARY KEY, btree (id)");
    contains(
        &shown_failing(server, &["\\d missing"]),
        "Did not find any relation named \"missing\".",
    );
    // With -c a backslash command has to stand alone, so this one goes through a file.
    let folder = testbed::Folder::new("psql", None).unwrap();
    std::fs::write(
        folder.file("script.sql"),
        "SELECT id, name, price, at FROM people \\gdesc\n",
    )
    .unwrap();
    let file = folder.file("script.sql").display().to_string();
    let described = run(server, &psql(server, &["-f", &file])).unwrap_or_else(|output| panic!("{output}"));
    has_lines(
        &described,
        &[
            "id | bigint",
            "name | text",
            "price | numeric",
            "at | timestamp with time zone",
        ],
    );
}

fn cancel(server: &Server) {
    // What psql prints to its standard output waits in a buffer until it ends; a warning does not.
    let program = psql(server, &["-c", "\\warn begun", "-c", FOR_EVER]);
    let mut process = program.start().unwrap();
    process
        .wait_for_output(Duration::from_secs(30), |output| output.contains("begun").then_some(()))
        .unwrap();
    // As Ctrl-C does. One that comes before the statement does nothing, so another is sent if nothing came of it.
    for attempt in 1.. {
        process.signal(SIGNAL_INTERRUPT).unwrap();
        let told = |output: &str| output.contains("canceling statement due to user request").then_some(());
        if process.wait_for_output(Duration::from_secs(1), told).is_ok() {
            break;
        }
        assert!(
            attempt < 10,
            "not cancelled:\n{}\n{}",
            process.output(),
            server.output()
        );
    }
    // psql ends as after any other error, instead of waiting for a connection that was cut off.
    let status = process.wait(Duration::from_secs(30)).unwrap();
    let output = process.output();
    assert_eq!(
        status.and_then(|status| status.code()),
        Some(1),
        "{output}\n{}",
        server.output()
    );
}
