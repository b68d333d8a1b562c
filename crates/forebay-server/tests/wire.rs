//! The PostgreSQL protocol, byte by byte against the real program: what it must answer, and what must not shake it.

#![allow(clippy::unwrap_used, reason = "a test that fails says so by a panic")]

#[path = "wire/client.rs"]
mod client;

#[path = "wire/advisory.rs"]
mod advisory;
#[path = "wire/alter.rs"]
mod alter;
#[path = "wire/bytes.rs"]
mod bytes;
#[path = "wire/cancel.rs"]
mod cancel;
#[path = "wire/copy.rs"]
mod copy;
#[path = "wire/cursors.rs"]
mod cursors;
#[path = "wire/errors.rs"]
mod errors;
#[path = "wire/extended.rs"]
mod extended;
#[path = "wire/follows.rs"]
mod follows;
#[path = "wire/grammar.rs"]
mod grammar;
#[path = "wire/identifiers.rs"]
mod identifiers;
#[path = "wire/joins.rs"]
mod joins;
#[path = "wire/literals.rs"]
mod literals;
#[path = "wire/own_session.rs"]
mod own_session;
#[path = "wire/plans.rs"]
mod plans;
#[path = "wire/portals.rs"]
mod portals;
#[path = "wire/refused.rs"]
mod refused;
#[path = "wire/schemas.rs"]
mod schemas;
#[path = "wire/settings.rs"]
mod settings;
#[path = "wire/sharing.rs"]
mod sharing;
#[path = "wire/simple.rs"]
mod simple;
#[path = "wire/vanish.rs"]
mod vanish;
#[path = "wire/waits.rs"]
mod waits;

use testbed::Forebay;

/// The program with these arguments, on a database of its own.
fn server(arguments: &[&str]) -> Forebay {
    Forebay::builder(env!("CARGO_BIN_EXE_forebay"))
        .arguments(arguments)
        .start()
        .unwrap_or_else(|error| panic!("{error}"))
}
