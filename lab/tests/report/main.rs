//! The page of the last results, from the command line to the file, and in a real browser.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod synthetic;

use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes the page of these results.
fn report(results: &Path, out: &Path) -> String {
    let ran = Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(["report", "--results"])
        .arg(results)
        .arg("--out")
        .arg(out)
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(
        String::from_utf8(ran.stdout).unwrap().trim(),
        out.to_str().unwrap(),
        "it says where the page is"
    );
    std::fs::read_to_string(out).unwrap()
}

/// The page of synthetic results, where one can look at it afterwards.
fn synthetic_page(name: &str) -> (PathBuf, String) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    synthetic::write(&folder.join("results"));
    let out = folder.join("report.html");
    let page = report(&folder.join("results"), &out);
    (out, page)
}

#[test]
fn it_is_made() {
    synthetic_page("made");
}
