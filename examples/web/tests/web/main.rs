//! The service as its visitors see it: the program is started with a database, asked over HTTP, and its tables looked into.
//!
//! `on_sqlite` has what the service does on any database, `on_servers` what each database answers.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod on_servers;
mod on_sqlite;
mod program;
