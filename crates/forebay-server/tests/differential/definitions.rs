//! Tables as they are defined, broken and changed: scripts that both servers run from beginning to end.
//!
//! Promises: each statement's answer is PostgreSQL's, whole: rows, tags, and of an error all that tells programs and people what is
//! wrong. Nothing in these scripts is refused.

use crate::connection::{Answer, Send};
use crate::servers::Pair;
use crate::tree::Rendered;
use crate::verdict::shown;

/// Statements, one a line; what one line makes, the next ones use.
const SCRIPTS: &str = include_str!("definitions.sql");

/// Types of keys, and values of them: some equal, and not all of those written alike.
const KEYS: &[(&str, &[&str])] = &[
    ("numeric", &["1.0", "1.00", "2"]),
    ("numeric", &["-0", "0.0", "1e2"]),
    ("numeric", &["1e2", "100", "99"]),
    ("numeric(6,2)", &["1.0", "1.00", "2"]),
    ("char(3)", &["a", "a ", "b", "a  "]),
    ("bpchar", &["a", "a ", "b"]),
    ("interval", &["1 day", "24 hours", "1 mon", "30 days", "2 days"]),
    ("timetz", &["12:00+00", "13:00+01", "12:00+00:00"]),
    ("jsonb", &["{\"a\":1}", "{\"a\":1.0}", "[1]", "{\"a\": 1}"]),
    ("float8", &["0", "-0", "1.5", "1.50"]),
    ("float4", &["0", "-0", "2"]),
    ("numeric[]", &["{1.0}", "{1.00}", "{2}"]),
    ("bpchar[]", &["{a}", "{\"a \"}", "{b}"]),
    ("interval[]", &["{1 day}", "{24:00:00}", "{2 days}"]),
    ("jsonb[]", &["{1}", "{1.0}", "{2}"]),
    ("text[]", &["{a}", "{\"a\"}", "{A}"]),
    ("int[]", &["{1}", "{01}", "{2}"]),
    ("text", &["a", "a ", "A"]),
    ("varchar(3)", &["a", "a ", "A"]),
    ("timestamptz", &["2020-01-01 00:00+00", "2020-01-01 01:00+01"]),
    (
        "uuid",
        &[
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "A0EEBC999C0B4EF8BB6D6BB9BD380A11",
        ],
    ),
    ("bytea", &["\\x00", "\\x01"]),
    ("boolean", &["t", "true", "f"]),
];

/// Everything that keys do, of this type.
fn key_script(kind: &str, values: &[&str]) -> String {
    let mut script = String::new();
    let first = values[0];
    let last = values[values.len() - 1];
    let each = |script: &mut String, statement: &str| {
        for value in values {
            line(script, statement.replace('?', &format!("'{value}'")));
        }
    };
    for (columns, into, row) in [
        (format!("a {kind} PRIMARY KEY"), "a", "?"),
        (format!("a {kind} UNIQUE"), "a", "?"),
        (format!("x integer, a {kind}, PRIMARY KEY (x, a)"), "x, a", "1, ?"),
    ] {
        line(&mut script, format!("CREATE TABLE k_t ({columns})"));
        each(&mut script, &format!("INSERT INTO k_t ({into}) VALUES ({row})"));
        each(
            &mut script,
            &format!("INSERT INTO k_t ({into}) VALUES ({row}) ON CONFLICT DO NOTHING"),
        );
        script.push_str("SELECT count(*) FROM k_t\nDROP TABLE k_t\n");
    }
    for key in ["PRIMARY KEY", "UNIQUE"] {
        line(&mut script, format!("CREATE TABLE k_p (a {kind} {key})"));
        line(
            &mut script,
            format!("CREATE TABLE k_c (a {kind} REFERENCES k_p (a) ON DELETE CASCADE)"),
        );
        line(&mut script, format!("INSERT INTO k_p VALUES ('{first}')"));
        each(&mut script, "INSERT INTO k_c VALUES (?)");
        script.push_str("SELECT count(*) FROM k_c\n");
        line(&mut script, format!("UPDATE k_p SET a = '{last}'"));
        script.push_str("DELETE FROM k_p\nSELECT * FROM k_c\nDROP TABLE k_c\nDROP TABLE k_p\n");
    }
    line(&mut script, format!("CREATE TABLE k_t (a {kind})"));
    each(&mut script, "INSERT INTO k_t VALUES (?)");
    each(&mut script, "SELECT count(*) FROM k_t WHERE a::text = ?");
    script.push_str(
        "SELECT count(DISTINCT a::text) FROM k_t\nSELECT count(*) FROM (SELECT DISTINCT a::text FROM k_t) AS s\n",
    );
    script.push_str("SELECT count(*) FROM k_t WHERE a::text IN (SELECT a::text FROM k_t)\n");
    script.push_str("ALTER TABLE k_t ADD CONSTRAINT k_u UNIQUE (a)\nALTER TABLE k_t ADD PRIMARY KEY (a)\n");
    script.push_str("DELETE FROM k_t\nALTER TABLE k_t ADD PRIMARY KEY (a)\n");
    line(&mut script, format!("CREATE TABLE k_c (a {kind})"));
    line(&mut script, format!("INSERT INTO k_t VALUES ('{first}')"));
    line(&mut script, format!("INSERT INTO k_c VALUES ('{}')", values[1]));
    script.push_str("ALTER TABLE k_c ADD FOREIGN KEY (a) REFERENCES k_t\n");
    script.push_str("DROP TABLE k_c\nDROP TABLE k_t\n");
    line(&mut script, format!("CREATE TABLE k_t (a {kind} UNIQUE, b integer)"));
    let update = "ON CONFLICT (a) DO UPDATE SET b = excluded.b, a = excluded.a";
    for pair in values.windows(2) {
        let [one, other] = [&pair[0], &pair[1]];
        line(
            &mut script,
            format!("INSERT INTO k_t VALUES ('{one}', 1), ('{other}', 2) {update}"),
        );
        let query = format!("SELECT v::{kind}, 3 FROM (VALUES ('{one}'), ('{other}')) AS s (v)");
        line(&mut script, format!("INSERT INTO k_t {query} {update}"));
    }
    script.push_str("SELECT count(*) FROM k_t\nDROP TABLE k_t\nCREATE TABLE k_t (a text PRIMARY KEY)\n");
    each(&mut script, "INSERT INTO k_t VALUES (?)");
    line(
        &mut script,
        format!("ALTER TABLE k_t ALTER a TYPE {kind} USING a::{kind}"),
    );
    each(&mut script, "INSERT INTO k_t VALUES (?)");
    script.push_str("SELECT count(*) FROM k_t\nDROP TABLE k_t\n");
    script
}

fn line(script: &mut String, statement: impl AsRef<str>) {
    script.push_str(statement.as_ref());
    script.push('\n');
}

/// What is different, told at length.
pub(crate) fn differences(pair: &mut Pair) -> Vec<String> {
    let mut scripts: Vec<String> = KEYS.iter().map(|(kind, values)| key_script(kind, values)).collect();
    scripts.push(SCRIPTS.to_owned());
    let mut told = Vec::new();
    for script in scripts {
        let statements: Vec<&str> = script
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with("--"))
            .collect();
        let cases: Vec<Vec<Send>> = statements.iter().map(|statement| vec![simple(statement)]).collect();
        let (postgres, forebay) = pair.run(&cases);
        let answers = postgres.iter().flatten().zip(forebay.iter().flatten());
        for (place, (wanted, given)) in answers.enumerate() {
            if !same(wanted, given) {
                let behind = statements[..place].iter().rev().take(4).rev();
                let before: Vec<&str> = behind.copied().collect();
                told.push(format!(
                    "{}\n  > {}\n    PostgreSQL  {}\n    Forebay     {}",
                    before.join("\n"),
                    statements[place],
                    shown(wanted),
                    shown(given)
                ));
            }
        }
    }
    told
}

pub(crate) fn simple(statement: &str) -> Send {
    Send {
        rendered: Rendered {
            sql: statement.to_owned(),
            parameters: Vec::new(),
        },
        is_simple: true,
        binary: false,
    }
}

fn same(wanted: &Answer, given: &Answer) -> bool {
    match (&wanted.error, &given.error) {
        (Some(wanted), Some(given)) => wanted == given,
        (None, None) => wanted.rows == given.rows && wanted.tag == given.tag,
        _ => false,
    }
}
