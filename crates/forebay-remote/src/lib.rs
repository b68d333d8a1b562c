//! What the databases over a network share: how a URL is read without giving a password away, which values may be equal,
//! pauses between tries, patience with locks, and how long a server may be silent.
//!
//! Promises: what each module promises. Knows what a write is; knows no database.

pub mod address;
pub mod alike;
pub mod patience;
pub mod retry;
pub mod silence;
