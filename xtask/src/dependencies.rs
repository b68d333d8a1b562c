//! What is depended upon: from where, under which licences, and whether it is used at all.
//!
//! Promises: `deny.toml` alone says what is allowed; the tools that look are installed, in the versions named here, if they are
//! missing. Their programs are kept outside the workspace, so that a fresh clone does not compile them again. Nothing is looked
//! up that changes without this repository: advisories would be.

use std::{env, path::PathBuf};

use crate::{
    command::{Command, cargo},
    report::Outcome,
    steps::outcome_of,
    workspace,
};

/// A program of cargo's registry.
struct Tool {
    name: &'static str,
    version: &'static str,
}

const DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
};
const MACHETE: Tool = Tool {
    name: "cargo-machete",
    version: "0.9.2",
};

/// Installs the tools that look.
pub(crate) fn prepare() -> Result<(), String> {
    DENY.installed().and(MACHETE.installed()).map(drop)
}

/// Every dependency comes from one registry, none from a repository: what `deny.toml` says of sources, seen before anything is
/// fetched from them.
pub(crate) fn sources() -> Outcome {
    let lock = match std::fs::read_to_string(workspace::root().join("Cargo.lock")) {
        Ok(lock) => lock,
        Err(error) => return Outcome::Failed(format!("could not read Cargo.lock: {error}")),
    };
    match foreign_source(&lock) {
        None => Outcome::Passed,
        Some(source) => Outcome::Failed(format!(
            "a dependency comes from elsewhere than the registry of the others: {source}"
        )),
    }
}

fn foreign_source(lock: &str) -> Option<&str> {
    let sources = || lock.lines().filter_map(|line| line.strip_prefix("source = "));
    let registry = sources().next()?;
    sources().find(|source| *source != registry || !source.starts_with("\"registry+"))
}

/// Licences, sources, bans: as `deny.toml` says.
pub(crate) fn licences() -> Outcome {
    let deny = match DENY.installed() {
        Ok(deny) => deny,
        Err(why) => return Outcome::DidNotRun(why),
    };
    // Licences stand in the crates themselves, also in those of other systems, which no build here brings.
    match outcome_of(&cargo(["fetch", "--locked", "--quiet"])) {
        Outcome::Passed => {}
        Outcome::Failed(why) => return Outcome::DidNotRun(why),
        other => return other,
    }
    outcome_of(&deny.arguments(["--frozen", "check", "bans", "licenses", "sources"]))
}

/// No manifest names what its crate does not use.
pub(crate) fn unused() -> Outcome {
    match MACHETE.installed() {
        Ok(machete) => outcome_of(&machete),
        Err(why) => Outcome::DidNotRun(why),
    }
}

impl Tool {
    /// The command, after it was installed if need be. Compiled without optimization: it runs for seconds, in a tenth of its
    /// compiling.
    fn installed(&self) -> Result<Command, String> {
        let folder = kept();
        // Cargo itself knows whether it has to do anything.
        cargo(["install", "--locked", "--quiet", "--debug"])
            .arguments(["--version", self.version, self.name, "--root"])
            .arguments([&folder])
            .set("CARGO_PROFILE_DEV_DEBUG", "false")
            .run()
            .map_err(|how| {
                format!(
                    "{how}; install by hand: cargo install --locked {}@{}",
                    self.name, self.version
                )
            })?;
        Ok(Command::new(folder.join("bin").join(self.name)))
    }
}

/// Where the tools are kept from one clone to the next: in the user's cache.
fn kept() -> PathBuf {
    let folder = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    folder("XDG_CACHE_HOME")
        .or_else(|| folder("HOME").map(|home| home.join(".cache")))
        .map_or_else(
            || workspace::target().join("tools"),
            |cache| cache.join("forebay/tools"),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_from_elsewhere_is_seen() {
        let registry = "source = \"registry+https://example.com/index\"\n";
        assert_eq!(foreign_source(registry), None);
        let foreign = format!("{registry}source = \"git+https://example.com/a\"\n");
        assert_eq!(foreign_source(&foreign), Some("\"git+https://example.com/a\""));
    }
}
