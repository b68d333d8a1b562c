//! What became of a suite's tests both ways, by their names.

use std::{collections::BTreeMap, ffi::OsString, fs, path::Path, time::Duration};

use testbed::{Error, Program};

use crate::{installed::on_path, known};

/// What became of each test.
pub(crate) type Outcomes = BTreeMap<String, Outcome>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    Failed,
    /// By its own decision.
    Skipped,
}

/// Holds what failed through the proxy against what fails straight, and what is known to differ.
///
/// The same tests must have run, and as many as this at least.
pub(crate) fn compare(suite: &str, straight: &Outcomes, through: &Outcomes, tests_min: usize) {
    let names = |outcomes: &Outcomes| outcomes.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(straight), names(through), "not the same tests ran");
    let made = through.values().filter(|outcome| **outcome != Outcome::Skipped).count();
    assert!(made >= tests_min, "only {made} tests ran");
    let failing = |outcomes: &Outcomes| {
        let failing = outcomes.iter().filter(|(_, outcome)| **outcome == Outcome::Failed);
        failing.map(|(test, _)| test.clone()).collect::<Vec<_>>()
    };
    let (straight_failing, through_failing) = (failing(straight), failing(through));
    println!("{made} tests; failing straight: {straight_failing:?}, through the proxy: {through_failing:?}");
    let known = known::of(suite);
    let differing: Vec<&String> = through
        .iter()
        .filter(|(test, outcome)| **outcome != straight[*test] && **outcome != Outcome::Passed)
        .map(|(test, _)| test)
        .filter(|test| !known.iter().any(|known| known.is_of(test)))
        .collect();
    assert!(
        differing.is_empty(),
        "these fail through the proxy alone: {differing:?}"
    );
}

/// Runs a program, which may fail, with all that it prints in this file; returns the text.
pub(crate) fn printed(program: Program, file: &Path, within: Duration) -> String {
    let script = ["-c", "file=$1; shift; exec \"$@\" >\"$file\" 2>&1", "sh"].map(OsString::from);
    let words = [file.into(), program.path.clone().into_os_string()];
    let mut shell = program;
    let words = script.into_iter().chain(words).chain(shell.arguments);
    shell.arguments = words.collect();
    shell.path = on_path("sh");
    match shell.run(within) {
        Ok(_) | Err(Error::Failed { .. }) => fs::read_to_string(file).unwrap(),
        Err(error) => panic!("{error}\n{}", fs::read_to_string(file).unwrap_or_default()),
    }
}
