//! What of the frameworks is known not to work today: `refused/NAME.txt`, a line each, with the reason.
//!
//! A test passes when exactly that fails, so a regression shows, and so does a line that is no longer true. A name without a file has
//! nothing that fails. `FOREBAY_WRITE_REFUSED=1` writes the files anew, after what is found.
//!
//! What fails through the proxy stands in `refused/proxy`; at a real PostgreSQL nothing does.

use std::{env, fmt::Write, fs, path::PathBuf};

use crate::{program::sources, server::Against};

/// Compares what was found to fail with what is known to. Each is a line: what, then the reason, between them `: `.
///
/// Of `whole` lines all is compared, of others what stands before the reason, for that may hold numbers of the day.
pub(crate) fn compare(name: &str, found: &[String], whole: bool) {
    let file = file(Against::told(), name);
    if env::var_os("FOREBAY_WRITE_REFUSED").is_some() {
        if found.is_empty() {
            let _ = fs::remove_file(file);
        } else {
            fs::write(file, found.join("\n") + "\n").unwrap();
        }
        return;
    }
    let known = fs::read_to_string(file).unwrap_or_default();
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

/// The lines that are known of Forebay's own server, with their reasons.
pub(crate) fn known(name: &str) -> String {
    fs::read_to_string(file(Against::Forebay, name)).unwrap_or_default()
}

fn file(against: Against, name: &str) -> PathBuf {
    let folder = match against {
        Against::Forebay => sources("refused"),
        Against::Proxy => sources("refused/proxy"),
        // There is none: it refuses nothing.
        Against::Postgres => sources("refused/postgres"),
    };
    folder.join(format!("{name}.txt"))
}
