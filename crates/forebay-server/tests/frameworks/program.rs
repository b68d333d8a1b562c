//! Frameworks' programs: how they are run, and what they must print.
//!
//! A test passes only when all checks it names were printed, in order, and exactly those failed that are known to ([`refused`]): a
//! program that ends early, or does nothing, does not pass.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use testbed::{Error, Program};

use crate::{
    guide,
    installed::{below_target, on_path},
    refused,
    server::Server,
};

/// No program takes a quarter of it on a machine that does nothing else, unless something hangs.
const ENDS_WITHIN: Duration = Duration::from_secs(180);

pub(crate) fn check_python(program: &str, arguments: &[&str], checks: &[&str]) {
    let python = below_target("frameworks/python/bin/python3");
    // Without the files that Python would leave beside the sources.
    let words = [OsString::from("-B"), sources("python").join(program).into()];
    check(Program::new(python, words), arguments, checks);
}

/// A program in the folder of this name, with the packages that were installed for it.
pub(crate) fn check_node(folder: &str, program: &str, checks: &[&str]) {
    let mut node = Program::new(on_path("node"), [sources(folder).join(program)]);
    let modules = below_target(&format!("frameworks/{folder}/node_modules"));
    node.environment.push(("NODE_PATH".into(), modules.into()));
    check(node, &[], checks);
}

pub(crate) fn check_go(framework: &str, checks: &[&str]) {
    let program = below_target("frameworks/go/frameworks");
    check(Program::new(program, [framework]), &[], checks);
}

pub(crate) fn check_java(class: &str, checks: &[&str]) {
    let libraries = below_target("frameworks/java/libraries").join("*");
    let classes = below_target("frameworks/java/classes");
    let mut path = classes.into_os_string();
    path.push(":");
    path.push(libraries);
    // Short-lived: its first compiler is enough.
    let words = ["-XX:TieredStopAtLevel=1".into(), "-cp".into(), path, class.into()];
    check(Program::new(on_path("java"), words), &[], checks);
}

pub(crate) fn check_php(program: &str, checks: &[&str]) {
    check(
        Program::new(on_path("php"), [sources("php").join(program)]),
        &[],
        checks,
    );
}

/// The folder of what is run for a language, or of the tools.
pub(crate) fn sources(language: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/frameworks")
        .join(language)
}

/// Runs the program with the URL of a server of its own, then these arguments.
fn check(mut program: Program, arguments: &[&str], checks: &[&str]) {
    let server = Server::start();
    program.arguments.push(server.url().into());
    program.arguments.extend(arguments.iter().map(OsString::from));
    let (output, succeeded) = match program.run(ENDS_WITHIN) {
        Ok(output) => (output, true),
        Err(Error::Failed { output, .. }) => (output, false),
        Err(error) => panic!("{error}\n--- the server said:\n{}", server.output()),
    };
    let made: Vec<&str> = output
        .lines()
        .filter_map(|line| line.strip_prefix("ok ").or_else(|| line.strip_prefix("FAILED ")))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let failures = failures(&output);
    assert!(
        made == checks && succeeded == failures.is_empty(),
        "the program did not make all checks, or hides how they ended:\n{output}\n--- the server said:\n{}",
        server.output()
    );
    let test = name_of_test();
    guide::compare_checks(&test, checks.len());
    refused::compare(&test, &failures, false);
}

/// The checks that failed, each with the first thing that was said of it.
fn failures(output: &str) -> Vec<String> {
    let mut failures = Vec::new();
    let mut lines = output.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(told) = line.strip_prefix("FAILED ") else {
            continue;
        };
        let (check, mut reason) = told.split_once(' ').unwrap_or((told, ""));
        while let Some(line) = lines.next_if(|line| !line.starts_with("ok ") && !line.starts_with("FAILED ")) {
            // Python tells the error last, the others first; behind it stands where to read more.
            let is_last_word = !line.starts_with([' ', '(', '[']) && line.contains(": ");
            if reason.is_empty() || reason.starts_with("Traceback") && is_last_word {
                reason = line;
            }
        }
        failures.push(format!("{check}: {}", reason.trim()));
    }
    failures
}

/// The last part of the path of the test that runs in this thread.
pub(crate) fn name_of_test() -> String {
    let thread = std::thread::current();
    let name = thread.name().expect("a test runs in a thread of its name");
    name.rsplit("::").next().unwrap_or(name).to_owned()
}

/// Runs it to its end and returns what it printed; panics when it fails, with what the server printed too.
pub(crate) fn run(server: &Server, program: &Program) -> String {
    program
        .run(ENDS_WITHIN)
        .unwrap_or_else(|error| panic!("{error}\n--- the server said:\n{}", server.output()))
}
