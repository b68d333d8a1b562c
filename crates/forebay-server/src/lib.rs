//! The server as a library: the program `forebay` is a thin shell around it, and tests start it in their own process.
pub mod access;
pub mod check;
pub mod claim;
pub mod config;
mod denials;
mod door;
mod embedded;
pub mod error;
mod figures;
mod handover;
pub mod health;
pub mod http;
mod listeners;
pub mod log;
mod proxied;
pub mod server;
pub mod tls;
pub mod users;
