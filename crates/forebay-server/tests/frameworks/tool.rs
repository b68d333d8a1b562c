//! Tools for people: what they ask of a server, as a file that psql runs, beside what a real PostgreSQL answered.
//!
//! The answers are compared word for word, group by group (`FOREBAY_SHOW_DIFFERENCES=1` prints those that differ); what no two servers
//! have equal (versions, roles, settings) a file only asks for.

use std::{collections::HashMap, env, ffi::OsString, fmt::Write, fs};

use testbed::Program;

use crate::{
    installed::{below_target, on_path},
    program::{name_of_test, run, sources},
    refused,
    server::Server,
};

/// Runs `tools/NAME.sql`, which must print what `tools/NAME.expected` says.
pub(crate) fn check(name: &str) {
    let server = Server::start();
    let statements = sources("tools").join(format!("{name}.sql"));
    // What it says of errors comes on a stream of its own, in no order with the answers; each names its line of the file.
    let refusals = below_target("tmp").join(format!("{name}.refusals"));
    let script = ["-c", "exec 2>\"$0\"; exec \"$@\""].map(OsString::from);
    let words = [
        "-qX".into(),
        "-v".into(),
        "VERBOSITY=terse".into(),
        "-d".into(),
        server.url().into(),
        "-f".into(),
    ];
    let words = [refusals.clone().into(), on_path("psql").into()]
        .into_iter()
        .chain(words);
    let words = script
        .into_iter()
        .chain(words)
        .chain([statements.clone().into_os_string()]);
    let mut psql = Program::new("/bin/sh", words);
    psql.environment.push(("PGOPTIONS".into(), "".into()));
    let found = run(&server, &psql);
    let refused_at = refused_lines(&fs::read_to_string(&refusals).unwrap());
    let refused = groups_of(&fs::read_to_string(&statements).unwrap(), &refused_at);
    let expected = fs::read_to_string(sources("tools").join(format!("{name}.expected"))).unwrap();
    let differing = differences(&found, &expected, &refused);
    if env::var_os("FOREBAY_SHOW_DIFFERENCES").is_some() {
        for (_, told) in &differing {
            println!("{told}");
        }
    }
    let differing: Vec<String> = differing.into_iter().map(|(group, _)| group).collect();
    refused::compare(&name_of_test(), &differing, false);
}

/// The lines of the file that were refused, each with the words.
fn refused_lines(told: &str) -> Vec<(usize, String)> {
    let refused = told.lines().filter_map(|line| {
        let (place, words) = line.split_once(": ERROR:  ")?;
        let line = place.rsplit(':').next()?.parse().ok()?;
        Some((line, words.to_owned()))
    });
    refused.collect()
}

/// The groups of the file that these lines stand in, each with the first words.
fn groups_of(file: &str, refused: &[(usize, String)]) -> HashMap<String, String> {
    let mut groups = HashMap::new();
    for (line, words) in refused {
        let name = file
            .lines()
            .skip(line - 1)
            .find_map(|line| line.strip_prefix("\\echo ok "));
        let name = name.unwrap_or("end").trim().to_owned();
        groups.entry(name).or_insert_with(|| words.clone());
    }
    groups
}

/// The groups of lines, each up to its `ok NAME`, that differ: with what tells them apart, and both in full.
fn differences(found: &str, expected: &str, refused: &HashMap<String, String>) -> Vec<(String, String)> {
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
        let refusal = refused.get(&name);
        if found == expected && refusal.is_none() {
            continue;
        }
        let first = found.lines().find(|line| !expected.lines().any(|known| known == *line));
        let reason = match (refusal, first) {
            (Some(words), _) => words,
            (None, Some(line)) => line.trim(),
            (None, None) => "lines are missing",
        };
        let shown: String = reason.chars().take(160).collect();
        let told = format!("--- PostgreSQL:\n{expected}\n--- found:\n{found}");
        differing.push((format!("{name}: {shown}"), told));
    }
    differing
}
