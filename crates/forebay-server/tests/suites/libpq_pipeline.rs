//! `libpq_pipeline`, by which PostgreSQL tests what its client library sends without waiting for the answers.
//!
//! Its checks must pass both ways, and where PostgreSQL's own test compares the messages of a check with what it expects, those that
//! came through the proxy must be those very messages.

use std::{ffi::OsString, fs, path::Path, time::Duration};

use testbed::{Folder, Program};

use crate::{
    installed::below_target,
    ways::{Server, both},
};

const ENDS_WITHIN: Duration = Duration::from_secs(60);
/// As many rows as PostgreSQL's own test asks for.
const ROWS: &str = "700";
/// No version that is served has fewer.
const CHECKS_MIN: usize = 10;

pub(crate) fn check() {
    let files = below_target("suites/postgresql/libpq_pipeline");
    let program = files.join("libpq_pipeline");
    let checks = Program::new(&program, ["tests"]).run(ENDS_WITHIN).unwrap();
    let checks: Vec<&str> = checks.split_whitespace().collect();
    assert!(checks.len() >= CHECKS_MIN, "{checks:?}");
    let [straight, through] = both(|way| {
        let server = Server::start(way);
        let folder = Folder::new("libpq-pipeline", None).unwrap();
        let run = |check: &&str| run(&program, check, &server, &folder, &files.join("traces"));
        checks.iter().map(run).collect::<Vec<_>>()
    });
    for ((check, straight), through) in checks.iter().zip(straight).zip(through) {
        assert!(
            through.is_ok() || straight.is_err(),
            "{check} fails through the proxy:\n{}",
            through.unwrap_err()
        );
    }
}

/// Makes one check; the error says what failed.
fn run(program: &Path, check: &str, server: &Server, folder: &Folder, traces: &Path) -> Result<(), String> {
    let mut words: Vec<OsString> = ["-r", ROWS].map(OsString::from).into();
    let (expected, trace) = (
        traces.join(format!("{check}.trace")),
        folder.file(&format!("{check}.trace")),
    );
    if expected.exists() {
        words.extend(["-t".into(), trace.clone().into()]);
    }
    words.extend([check.into(), server.url("postgres").into()]);
    let ended = Program::new(program, words).run(ENDS_WITHIN);
    ended.map_err(|error| error.to_string())?;
    if !expected.exists() {
        return Ok(());
    }
    let [expected, found] = [expected, trace].map(|file| fs::read_to_string(file).unwrap());
    if found == expected {
        Ok(())
    } else {
        Err(format!(
            "--- messages expected:\n{expected}\n--- messages found:\n{found}"
        ))
    }
}
