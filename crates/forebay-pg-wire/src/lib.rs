//! The wire: PostgreSQL's frontend/backend protocol, from bytes to typed messages and back.
//!
//! Promises: whatever bytes a client sends, the answer is a typed message or a typed error, never a panic, and never more memory
//! than the configured limits. Does not know: what a statement means, the database, sessions, or who may do what after the handshake.
//!
//! - [`frontend`]: what clients send, read strictly from frames of bounded length
//! - [`startup`]: the handshake: TLS, protocol version, parameters, cancel requests
//! - [`tls`]: how it is encrypted
//! - [`gate`]: who decides who may enter
//! - [`authentication`]: who the client is, as a gate wants it shown, by what is [stored](verifier) of passwords
//! - [`backend`]: what the server sends, written straight into the output buffer
//! - [`budget`]: the memory budget that long messages of all clients share
//! - [`phase`]: the server's life, as its sessions see it
//! - [`error`]: errors as PostgreSQL's clients understand them

pub mod authentication;
pub mod backend;
pub mod budget;
pub mod error;
pub mod frontend;
pub mod gate;
pub mod phase;
pub mod startup;
pub mod tls;
pub mod verifier;
