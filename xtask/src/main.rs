//! Every chore of the project, as `cargo xtask …`: what a developer runs is what continuous integration runs.
//!
//! Promises: a chore that fails exits with a failure; nothing is skipped in silence.
//!
//! Does not know the library or the server: it runs cargo and other programs, as a person would.

mod api;
mod check;
mod circles;
mod command;
mod dependencies;
mod documents;
mod frameworks;
mod guide;
mod install;
mod interface;
mod reasons;
mod report;
mod setup;
mod steps;
mod suites;
mod test;
mod toolchain;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use test::Extent;

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    about = "Every chore of the project.",
    disable_help_subcommand = true
)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Everything that must hold before a change lands: format, lints, circles of files, names of other crates in the facade, tests, the interface, documentation, models, real clients and frameworks, suites of others through the proxy, a real browser.
    Test {
        /// Leave out what takes minutes: the models, the other compiler, the real clients, frameworks and suites, the measurements and the browser.
        #[arg(long, conflicts_with = "long")]
        quick: bool,
        /// Behind all of it what takes an hour: a million statements beside PostgreSQL, all of the suites, and the lab's soaks.
        #[arg(long)]
        long: bool,
    },
    /// The fast part while writing: circles of files, names of other crates in the facade, format, lints, cargo check, rustdoc.
    Check,
    /// Installs what the tests need and this machine lacks: PostgreSQL, MariaDB, Redis, ab, wrk, the Python, Node.js and Go clients, the frameworks (also of Java and PHP), the suites of others, a browser, cargo-deny and cargo-machete.
    Setup,
    /// Makes the guide into a book, target/guide/index.html, and checks the links and examples of all documents.
    Guide,
    /// Compares the interface of the library with what docs/api says of it.
    Api {
        /// Write it down as it is now.
        #[arg(long)]
        update: bool,
    },
    /// Shows the circles of files that import one another, of these crates or of all.
    Circles {
        /// The crates.
        crates: Vec<String>,
    },
    /// Measures: `cargo xtask lab SCENARIO [--quick] [--json FILE]`, `cargo xtask lab report`, `cargo xtask lab figures`.
    #[command(disable_help_flag = true)]
    Lab {
        /// What the lab is to do.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

/// Whether it passed; if not, why not.
fn shown(outcome: &report::Outcome) -> bool {
    use report::Outcome::{DidNotRun, Failed, OptionalDidNotRun, Passed};
    match outcome {
        Passed => return true,
        Failed(how) | DidNotRun(how) | OptionalDidNotRun(how) => eprintln!("{how}"),
    }
    false
}

fn main() -> ExitCode {
    let passed = match Arguments::parse().chore {
        Chore::Test { quick: true, .. } => test::run(Extent::Quick),
        Chore::Test { long: true, .. } => test::run(Extent::Long),
        Chore::Test { .. } => test::run(Extent::Usual),
        Chore::Check => check::run(),
        Chore::Setup => setup::run(),
        Chore::Guide => guide::run(),
        Chore::Api { update } => shown(&if update { api::update() } else { api::step() }),
        Chore::Circles { crates } => circles::show(&crates).unwrap_or_else(|error| {
            eprintln!("{error}");
            false
        }),
        Chore::Lab { arguments } => {
            let lab = command::cargo(["run", "--release", "--package", "lab", "--"]).arguments(arguments);
            lab.run().is_ok()
        }
    };
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
