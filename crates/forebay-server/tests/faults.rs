//! The program when the world around it fails: files, disks, locks, signals, crashes, too many clients.

#![allow(clippy::unwrap_used, reason = "a test that fails says so by a panic")]

#[path = "wire/client.rs"]
mod client;

#[path = "faults/connections.rs"]
mod connections;
#[path = "faults/disk.rs"]
mod disk;
#[path = "faults/gone.rs"]
mod gone;
#[path = "faults/gone_clients.rs"]
mod gone_clients;
#[path = "faults/kill.rs"]
mod kill;
#[path = "faults/load.rs"]
mod load;
#[path = "faults/lock.rs"]
mod lock;
#[path = "faults/signals.rs"]
mod signals;
#[path = "faults/start.rs"]
mod start;

use testbed::Forebay;

const PROGRAM: &str = env!("CARGO_BIN_EXE_forebay");

/// The program with these arguments, on a database of its own.
fn server(arguments: &[&str]) -> Forebay {
    Forebay::builder(PROGRAM)
        .arguments(arguments)
        .start()
        .unwrap_or_else(|error| panic!("{error}"))
}
