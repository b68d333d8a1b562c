//! Client programs: where they are, how they are run, what they must print.
//!
//! The programs in other languages print `ok NAME` after each check; a test passes only when all of [`CHECKS`] were printed,
//! so that a program that ends early, or does nothing, does not pass.

use std::{
    env,
    ffi::OsString,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    time::Duration,
};

use testbed::Program;

use crate::{
    installed::{below_target, existing, on_path},
    server::Server,
};

/// What every client program checks, in this order.
const CHECKS: &[&str] = &[
    "connect",
    "types",
    "returning",
    "counts",
    "errors",
    "transactions",
    "prepared",
    "portions",
    "concurrency",
    "cancel",
    "pipeline",
];
/// No program takes a tenth of it, unless something hangs.
const ENDS_WITHIN: Duration = Duration::from_secs(120);

pub(crate) fn check_python(server: &Server) {
    check(server, Program::new(python(), [sources("python/checks.py")]));
}

/// Python, with psycopg.
pub(crate) fn python() -> PathBuf {
    installed("FOREBAY_CLIENT_PYTHON", "python/bin/python3")
}

pub(crate) fn check_node(server: &Server) {
    let modules = installed("FOREBAY_CLIENT_NODE_MODULES", "node/node_modules");
    let mut program = Program::new(on_path("node"), [sources("node/checks.js")]);
    program.environment.push(("NODE_PATH".into(), modules.into()));
    check(server, program);
}

pub(crate) fn check_go(server: &Server) {
    let program = installed("FOREBAY_CLIENT_GO", "go/pgx-client");
    check(server, Program::new(program, [] as [OsString; 0]));
}

fn check(server: &Server, mut program: Program) {
    program.arguments.push(server.url().into());
    let output = run(server, &program).unwrap_or_else(|output| panic!("{output}"));
    let passed: Vec<&str> = output.lines().filter_map(|line| line.strip_prefix("ok ")).collect();
    assert_eq!(
        passed, CHECKS,
        "the program ended without failure, yet not all checks were made:\n{output}"
    );
}

/// Runs a client program to its end. Returns what it printed; when it fails, with what the server printed too.
pub(crate) fn run(server: &Server, program: &Program) -> Result<String, String> {
    program
        .run(ENDS_WITHIN)
        .map_err(|error| format!("{error}\n--- the server said:\n{}", server.output()))
}

/// Makes all of these checks, whatever became of the one before, and panics if one failed: one run shows all that is wrong.
pub(crate) fn checks<const COUNT: usize>(checks: [(&'static str, &dyn Fn()); COUNT]) {
    let failed =
        |(name, check): &(&'static str, &dyn Fn())| catch_unwind(AssertUnwindSafe(check)).is_err().then_some(*name);
    let failed: Vec<&str> = checks.iter().filter_map(failed).collect();
    assert!(failed.is_empty(), "failed: {}; see above", failed.join(", "));
}

/// A program whose two output streams come as one, in the order they were written.
pub(crate) fn with_one_stream(name: &str, arguments: &[&str]) -> Program {
    let program = on_path(name);
    let script = ["-c", "exec \"$@\" 2>&1", "sh"].map(OsString::from);
    let words = [program.into_os_string()]
        .into_iter()
        .chain(arguments.iter().map(OsString::from));
    Program::new("/bin/sh", script.into_iter().chain(words))
}

/// The same, reading this file as if it were typed.
pub(crate) fn with_input(file: &Path, name: &str, arguments: &[&str]) -> Program {
    let program = with_one_stream(name, arguments);
    let script = ["-c", "file=$1; shift; exec \"$@\" <\"$file\"", "sh"].map(OsString::from);
    let words = [file.into(), program.path.into_os_string()];
    Program::new("/bin/sh", script.into_iter().chain(words).chain(program.arguments))
}

/// What `cargo xtask setup` installed: where the variable says, else at its usual place below cargo's target folder.
fn installed(variable: &str, place: &str) -> PathBuf {
    env::var_os(variable).map_or_else(
        || below_target(&format!("clients/{place}")),
        |path| existing(path.into()),
    )
}

fn sources(place: &str) -> OsString {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/clients")
        .join(place)
        .into_os_string()
}
