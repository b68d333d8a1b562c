//! The proof by real clients: each talks to the program `forebay` as its users would, and finds what PostgreSQL would give it.
//!
//! Every client makes the same checks in the same order, as far as it can: *connect* (parameters the server reports), *types*
//! (both ways, text and binary, NULL), *returning*, *counts* (rows affected), *errors* (SQLSTATE; the connection goes on),
//! *transactions* (commit, rollback, savepoint, failed until rolled back), *prepared* (reuse), *portions* (rows a few at a
//! time), *concurrency* (20 connections), *cancel*, *pipeline* (several statements sent together, one of them bad).
//!
//! The checks know nothing of Forebay: `FOREBAY_CLIENTS_AGAINST=postgres cargo test --test clients` makes them against a
//! real PostgreSQL, which shows that it is PostgreSQL's behaviour that they ask for; `proxy` makes them through the proxy in
//! front of one.
//!
//! What the README and the guide show, sessions at psql and programs, is typed too: `transcripts`.
//!
//! A client that is not installed is a failure that says how to install it: `cargo xtask setup`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod installed;
mod pgbench;
mod program;
mod psql;
mod rust;
mod server;
mod transcripts;

/// One test a client, and one of what the documents show; `cargo xtask test` runs each as a step of its own.
mod real_client {
    use crate::{pgbench, program, psql, rust, server::Server, transcripts};

    #[test]
    fn tokio_postgres() {
        rust::check(&Server::start());
    }

    #[test]
    fn psql() {
        psql::check(&Server::start());
    }

    #[test]
    fn documents() {
        transcripts::check();
    }

    #[test]
    fn pgbench() {
        pgbench::check(&Server::start());
    }

    #[test]
    fn psycopg() {
        program::check_python(&Server::start());
    }

    #[test]
    fn node_postgres() {
        program::check_node(&Server::start());
    }

    #[test]
    fn pgx() {
        program::check_go(&Server::start());
    }
}
