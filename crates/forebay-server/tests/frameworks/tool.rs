//! Tools for people: what they ask of a server, as a file that psql runs, beside what a real PostgreSQL answered.
//!
//! The answers are compared word for word; what no two servers have equal (versions, roles, settings) a file only asks for.

use std::{fmt::Write, fs};

use testbed::Program;

use crate::{
    installed::on_path,
    program::{run, sources},
    server::Server,
};

/// Runs `tools/NAME.sql`, which must print what `tools/NAME.expected` says.
pub(crate) fn check(name: &str) {
    let server = Server::start();
    let statements = sources("tools").join(format!("{name}.sql")).into_os_string();
    let words = ["-qX".into(), "-d".into(), server.url().into(), "-f".into(), statements];
    let mut psql = Program::new(on_path("psql"), words);
    psql.environment.push(("PGOPTIONS".into(), "".into()));
    let found = run(&server, &psql);
    let expected = fs::read_to_string(sources("tools").join(format!("{name}.expected"))).unwrap();
    assert!(
        found == expected,
        "other answers than PostgreSQL's, group by group:\n{}",
        differences(&found, &expected)
    );
}

/// The groups of lines, each up to its `ok NAME`, that differ.
fn differences(found: &str, expected: &str) -> String {
    let mut told = String::new();
    let mut found = found.split_inclusive("\nok ");
    for expected in expected.split_inclusive("\nok ") {
        let found = found.next().unwrap_or("(nothing)");
        if found != expected {
            writeln!(told, "--- PostgreSQL:\n{expected}\n--- found:\n{found}")
                .expect("a String takes all that is written");
        }
    }
    told
}
