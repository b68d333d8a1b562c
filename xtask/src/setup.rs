//! `cargo xtask setup`: all that the tests and the lab need, installed one after the other.
//!
//! Promises: each thing is tried, so that one run tells of all that cannot be installed. Does not know how anything is installed.

use crate::{dependencies, frameworks::LANGUAGES, install, report::Outcome, steps::Steps, suites::SUITES};

/// Installs everything and returns whether all of it is there.
pub(crate) fn run() -> bool {
    let outcome = |prepared: Result<(), String>| match prepared {
        Ok(()) => Outcome::Passed,
        // Setting up is what was asked for: here a thing that is missing is a failure.
        Err(why) => Outcome::Failed(why),
    };
    let mut steps = Steps::default();
    steps.step("PostgreSQL", move || outcome(install::servers()));
    steps.step("PostgreSQL 18", move || outcome(install::postgresql_18().map(drop)));
    steps.step("MariaDB", move || outcome(install::mariadb()));
    steps.step("Redis", move || outcome(install::redis()));
    steps.step("load generators", move || outcome(install::load_generators()));
    for client in install::CLIENTS {
        steps.step(&format!("client {}", client.name), move || {
            outcome(client.prepare().map(drop))
        });
    }
    for language in LANGUAGES {
        steps.step(&format!("frameworks: {}", language.name), move || {
            outcome(language.prepare())
        });
    }
    for suite in SUITES {
        steps.step(&format!("suite {}", suite.name), move || outcome(suite.prepare()));
    }
    steps.step("cargo-deny and cargo-machete", move || outcome(dependencies::prepare()));
    steps.step("browser", move || outcome(install::browser()));
    steps.run()
}
