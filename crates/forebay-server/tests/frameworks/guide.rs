//! What the guide says of the frameworks is what the tests find: its table has a line for each framework's test, with as many checks
//! as the program makes and as many failures as `refused/` knows.
//!
//! Does not know why a check fails: that a line says so is held, what it says is not.

use std::{collections::BTreeMap, fs, path::Path};

use crate::refused;

/// The tests of frameworks, and what the guide calls them.
const NAMES: [(&str, &str); 18] = [
    ("alembic", "Alembic"),
    ("asyncpg", "asyncpg"),
    ("django", "Django with `GenericIPAddressField`"),
    ("django_without_addresses", "Django without `GenericIPAddressField`"),
    ("drizzle", "Drizzle"),
    ("gorm", "GORM"),
    ("hibernate", "Hibernate, with its own schema update"),
    ("knex", "Knex"),
    ("lib_pq", "lib/pq"),
    ("pdo", "PDO"),
    ("pgjdbc", "pgjdbc with HikariCP"),
    ("pgx", "pgx"),
    ("prisma", "Prisma's client"),
    ("psycopg_copy", "psycopg 3's COPY"),
    ("sequelize", "Sequelize"),
    ("sqlalchemy_asyncpg", "SQLAlchemy with asyncpg"),
    ("sqlalchemy_psycopg", "SQLAlchemy with psycopg 3"),
    ("typeorm", "TypeORM"),
];

/// A line of the guide's table, but for the framework's name.
struct Line {
    passed: usize,
    checks: usize,
    /// What does not work.
    reason: String,
}

fn chapter() -> String {
    let chapter = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guide/src/clients.md");
    fs::read_to_string(chapter).unwrap()
}

/// The chapter's table of frameworks, by their names.
fn table() -> BTreeMap<String, Line> {
    let chapter = chapter();
    let (_, below) = chapter.split_once("\n| framework | checks that pass |").unwrap();
    let lines = below.lines().skip(2).take_while(|line| line.starts_with('|'));
    let entry = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, framework, passed, reason, _] = cells[..] else {
            panic!("not three cells: {line}")
        };
        let (passed, checks) = passed.split_once(" of ").unwrap();
        let line = Line {
            passed: passed.parse().unwrap(),
            checks: checks.parse().unwrap(),
            reason: reason.to_owned(),
        };
        (framework.to_owned(), line)
    };
    lines.map(entry).collect()
}

/// Holds the guide's line against the checks that a framework's program makes.
pub(crate) fn compare_checks(test: &str, checks: usize) {
    let (_, framework) = NAMES.iter().find(|(name, _)| *name == test).expect("the guide has it");
    let told = table()[*framework].checks;
    assert_eq!(told, checks, "checks of {framework} in guide/src/clients.md");
}

#[test]
fn the_guide_tells_what_is_known_to_fail() {
    let table = table();
    let named: Vec<&String> = table.keys().collect();
    let mut names: Vec<&str> = NAMES.iter().map(|(_, framework)| *framework).collect();
    names.sort_unstable();
    assert_eq!(named, names);
    for (test, framework) in NAMES {
        let Line { passed, checks, reason } = &table[framework];
        let failing = refused::known(test).lines().count();
        assert_eq!(
            checks - passed,
            failing,
            "{framework}: {passed} of {checks}; refused/{test}.txt"
        );
        assert_eq!(
            reason.is_empty(),
            failing == 0,
            "{framework}: what does not work is {reason:?}"
        );
    }
}

/// Holds the guide's sentence against the statements of the corpus.
pub(crate) fn compare_statements(all: usize) {
    let thousands = |count: usize| match (count / 1000, count % 1000) {
        (0, below) => below.to_string(),
        (above, below) => format!("{above},{below:03}"),
    };
    let understood = all - refused::known("corpus").lines().count();
    let sentence = format!(
        "Of {} statements that frameworks and tools send, {} mean",
        thousands(all),
        thousands(understood)
    );
    assert!(
        chapter().contains(&sentence),
        "guide/src/clients.md does not say: {sentence}"
    );
}
