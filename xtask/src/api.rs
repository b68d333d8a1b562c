//! The interface of the library as files of the repository, so that a change of it is seen where changes are reviewed: in the diff.
//!
//! Promises: what is public of the crates behind the facade stands in `docs/api`, a file a crate, an item a line, with its signature and
//! the traits that it has; a line more or less, and not in the file, fails. So does what the facade shows of types, traits, functions and macros without an example,
//! unless `docs/api/without-example.txt` has it; and one there that has an example, or is gone: the list only gets shorter.
//!
//! Goes by rustdoc's JSON, whose form is of one version of the compiler: the one that `rust-version` promises, which the crate `public-api` must
//! read. With another compiler and without that one on the machine, nothing is compared.

mod examples;
mod rustdoc;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use crate::{interface, report::Outcome, workspace};
use rustdoc::Documented;

/// Traits that every type has or has not by what is in it, and that nobody asks for.
const UNASKED: &[&str] = &[
    "core::marker::Freeze for ",
    "core::marker::Unpin for ",
    "core::marker::UnsafeUnpin for ",
    "core::panic::unwind_safe::RefUnwindSafe for ",
    "core::panic::unwind_safe::UnwindSafe for ",
];
const WITHOUT_EXAMPLE: &str = "without-example.txt";

/// Fails on every line that is not recorded, and on every recorded one that is not so.
pub(crate) fn step() -> Outcome {
    let told = match rustdoc::document() {
        Ok(Documented::Files(files)) => is_now(&files),
        Ok(Documented::NotHere(why)) => return Outcome::OptionalDidNotRun(why),
        Err(error) => Err(error),
    };
    let differences = told.map(|now| {
        let mut differences = Vec::new();
        for (name, text) in now {
            let recorded = fs::read_to_string(folder().join(&name)).unwrap_or_default();
            differences.extend(difference(&name, &recorded, &text));
        }
        differences
    });
    match differences {
        Ok(differences) if differences.is_empty() => Outcome::Passed,
        Ok(differences) => Outcome::Failed(format!(
            "the interface is not what docs/api says; if it is meant: cargo xtask api --update\n{}",
            differences.join("\n")
        )),
        Err(error) => Outcome::Failed(error),
    }
}

/// Writes the interface down as it is.
pub(crate) fn update() -> Outcome {
    let written = match rustdoc::document() {
        Ok(Documented::Files(files)) => is_now(&files),
        Ok(Documented::NotHere(why)) => return Outcome::DidNotRun(why),
        Err(error) => Err(error),
    };
    let written = written.and_then(|now| {
        fs::create_dir_all(folder()).map_err(|error| error.to_string())?;
        for (name, text) in now {
            fs::write(folder().join(&name), text).map_err(|error| format!("{name}: {error}"))?;
        }
        Ok(())
    });
    match written {
        Ok(()) => Outcome::Passed,
        Err(error) => Outcome::Failed(error),
    }
}

fn folder() -> PathBuf {
    workspace::root().join("docs/api")
}

/// The files' names and what should be in them.
fn is_now(files: &BTreeMap<String, PathBuf>) -> Result<BTreeMap<String, String>, String> {
    let shown = interface::rooms()?;
    let mut now = BTreeMap::new();
    let mut without_example = BTreeSet::new();
    for (room, file) in files {
        now.insert(format!("{room}.txt"), lines(file)?);
        let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let is_shown = |name: &str| {
            let part = shown.get(room).and_then(Option::as_ref);
            part.is_none_or(|names| names.contains(name))
        };
        let missing = examples::missing(&text, &is_shown).map_err(|error| format!("{}: {error}", file.display()))?;
        without_example.extend(missing.into_iter().map(|item| format!("{item}\n")));
    }
    now.insert(WITHOUT_EXAMPLE.to_owned(), without_example.into_iter().collect());
    Ok(now)
}

/// An item a line.
fn lines(file: &Path) -> Result<String, String> {
    let api = public_api::Builder::from_rustdoc_json(file)
        .sorted(true)
        .omit_blanket_impls(true)
        .build()
        .map_err(|error| format!("{}: {error}", file.display()))?;
    let lines = api.items().map(ToString::to_string);
    let asked = lines.filter(|line| !UNASKED.iter().any(|name| line.contains(name)));
    Ok(asked.map(|line| line + "\n").collect())
}

/// Lines that are in one of them only.
fn difference(name: &str, recorded: &str, now: &str) -> Vec<String> {
    let (recorded, now): (BTreeSet<&str>, BTreeSet<&str>) = (recorded.lines().collect(), now.lines().collect());
    let gone = recorded.difference(&now).map(|line| format!("{name}: - {line}"));
    let new = now.difference(&recorded).map(|line| format!("{name}: + {line}"));
    gone.chain(new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_new_or_gone_is_told() {
        assert_eq!(difference("a.txt", "one\ntwo\n", "one\ntwo\n"), [""; 0]);
        let told = difference("a.txt", "one\ntwo\n", "one\nthree\n");
        assert_eq!(told, ["a.txt: - two", "a.txt: + three"]);
    }
}
