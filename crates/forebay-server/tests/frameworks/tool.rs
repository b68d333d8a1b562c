//! Tools for people: what they ask of a server, as a file that psql runs, beside what a real PostgreSQL answered.
//!
//! The answers are compared word for word, group by group (`FOREBAY_SHOW_DIFFERENCES=1` prints those that differ); what no two servers have equal (versions, roles, settings) a file only asks for.

use std::{env, fmt::Write, fs};

use testbed::Program;

use crate::{
    installed::on_path,
    program::{name_of_test, run, sources},
    refused,
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
    let differing = differences(&found, &expected);
    if env::var_os("FOREBAY_SHOW_DIFFERENCES").is_some() {
        for (_, told) in &differing {
            println!("{told}");
        }
    }
    let differing: Vec<String> = differing.into_iter().map(|(group, _)| group).collect();
    refused::compare(&name_of_test(), &differing, false);
}

/// The groups of lines, each up to its `ok NAME`, that differ: with what tells them apart, and both in full.
fn differences(found: &str, expected: &str) -> Vec<(String, String)> {
    let groups = |text: &str| -> Vec<(String, String)> {
        let mut groups = Vec::new();
        let mut lines = String::new();
        for line in text.lines() {
            match line.strip_prefix("ok ") {
                Some(name) => groups.push((name.to_owned(), std::mem::take(&mut lines))),
                None => writeln!(lines, "{line}").expect("a String takes all that is written"),
            }
        }
        groups.push(("end".to_owned(), lines));
        groups
    };
    let (found, expected) = (groups(found), groups(expected));
    let names = |groups: &[(String, String)]| groups.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(
        names(&found),
        names(&expected),
        "psql did not come to the end of the file"
    );
    let mut differing = Vec::new();
    for ((name, found), (_, expected)) in found.into_iter().zip(expected) {
        if found == expected {
            continue;
        }
        let refusal = found.lines().find_map(|line| line.split_once("ERROR:  "));
        let first = found.lines().find(|line| !expected.lines().any(|known| known == *line));
        let reason = match (refusal, first) {
            (Some((_, message)), _) => message,
            (None, Some(line)) => line.trim(),
            (None, None) => "lines are missing",
        };
        let shown: String = reason.chars().take(160).collect();
        let told = format!("--- PostgreSQL:\n{expected}\n--- found:\n{found}");
        differing.push((format!("{name}: {shown}"), told));
    }
    differing
}
