//! The proof by others' tests: the suites of PostgreSQL and of its clients, straight and through the proxy.
//!
//! Nobody here says what is right: each suite runs at a fresh PostgreSQL, and at a proxy in front of another, and what fails at the
//! one may fail at the other. Other clients ask at both all the time. What may differ stands in `known/`, as data: each difference with its reason, which is a sentence of the
//! guide's "What is different"; a test sees to that.
//!
//! The usual form of a suite leaves out what takes long; `FOREBAY_SUITES_WHOLE=1` runs all of it. What is not installed is a failure
//! that says how to install it: `cargo xtask setup`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod beside;
#[path = "../wire/client.rs"]
mod client;
#[path = "../clients/installed.rs"]
mod installed;
mod known;
mod libpq_pipeline;
mod outcomes;
mod pgx;
mod regress;
mod tokio_postgres;
mod ways;

/// One test a suite; `cargo xtask test` runs each as a step of its own.
mod foreign_suite {
    #[test]
    fn regress() {
        crate::regress::check();
    }

    #[test]
    fn libpq_pipeline() {
        crate::libpq_pipeline::check();
    }

    #[test]
    fn pgx() {
        crate::pgx::check();
    }

    #[test]
    fn tokio_postgres() {
        crate::tokio_postgres::check();
    }
}
