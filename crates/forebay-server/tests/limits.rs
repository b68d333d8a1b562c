//! Clients that mean harm: who may come in, what SQL may not reach, and what nobody may make the server hold.

#![allow(clippy::unwrap_used, reason = "a test that fails says so by a panic")]

#[path = "wire/client.rs"]
mod client;

#[path = "limits/access.rs"]
mod access;
#[path = "limits/escape.rs"]
mod escape;
#[path = "limits/input.rs"]
mod input;
#[path = "limits/readers.rs"]
mod readers;
#[path = "limits/script.rs"]
mod script;
#[path = "limits/session.rs"]
mod session;
#[path = "limits/size.rs"]
mod size;
#[path = "limits/socket.rs"]
mod socket;
#[path = "limits/values.rs"]
mod values;

use testbed::Forebay;

const PROGRAM: &str = env!("CARGO_BIN_EXE_forebay");

/// The program with these arguments, on a database of its own.
fn server(arguments: &[&str]) -> Forebay {
    Forebay::builder(PROGRAM)
        .arguments(arguments)
        .start()
        .unwrap_or_else(|error| panic!("{error}"))
}

/// The most memory the process ever had, in bytes.
fn resident_bytes_max(server: &Forebay) -> usize {
    memory(server, "VmHWM")
}

/// From now on the most is what it has now, or more.
fn forget_resident_bytes_max(server: &Forebay) {
    // As proc(5) has it: 5 resets the peak.
    std::fs::write(format!("/proc/{}/clear_refs", server.process_id()), "5").unwrap();
}

/// The memory the process has, in bytes.
fn resident_bytes(server: &Forebay) -> usize {
    memory(server, "VmRSS")
}

fn memory(server: &Forebay, which: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process_id())).unwrap();
    let line = status.lines().find(|line| line.starts_with(which)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}
