//! What of the frameworks is known not to work today: `refused/NAME.txt`, a line each, with the reason.
//!
//! A test passes when exactly that fails, so a regression shows, and so does a line that is no longer true. A name without a file has
//! nothing that fails. `FOREBAY_WRITE_REFUSED=1` writes the files anew, after what is found.

use std::{env, fmt::Write, fs, path::PathBuf};

use crate::program::sources;

/// Compares what was found to fail with what is known to. Each is a line: what, then the reason, between them `: `.
///
/// Of `whole` lines all is compared, of others what stands before the reason, for that may hold numbers of the day.
pub(crate) fn compare(name: &str, found: &[String], whole: bool) {
    if env::var_os("FOREBAY_WRITE_REFUSED").is_some() {
        if found.is_empty() {
            let _ = fs::remove_file(file(name));
        } else {
            fs::write(file(name), found.join("\n") + "\n").unwrap();
        }
        return;
    }
    // A real PostgreSQL refuses nothing.
    let known = if env::var_os("FOREBAY_CLIENTS_AGAINST").is_some() {
        String::new()
    } else {
        known(name)
    };
    let key = |line: &str| match line.split_once(": ") {
        Some((what, _)) if !whole => what.to_owned(),
        _ => line.to_owned(),
    };
    let known: Vec<&str> = known.lines().collect();
    let mut told = String::new();
    for line in found
        .iter()
        .filter(|line| !known.iter().any(|known| key(known) == key(line)))
    {
        writeln!(told, "fails, and is not known to: {line}").expect("a String takes all that is written");
    }
    for line in known
        .iter()
        .filter(|line| !found.iter().any(|found| key(found) == key(line)))
    {
        writeln!(told, "is known to fail, and does not: {line}").expect("a String takes all that is written");
    }
    assert!(
        told.is_empty(),
        "{name}: refused/{name}.txt is not what was found:\n{told}"
    );
}

/// The lines that are known, with their reasons.
pub(crate) fn known(name: &str) -> String {
    fs::read_to_string(file(name)).unwrap_or_default()
}

fn file(name: &str) -> PathBuf {
    sources("refused").join(format!("{name}.txt"))
}
