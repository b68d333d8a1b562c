//! The server as a library: the program `forebay` is a thin shell around it, and tests start it in their own process.
pub mod catalog;
pub mod claim;
pub mod config;
pub mod denials;
pub mod errors;
pub mod health;
pub mod http;
pub mod server;
pub mod session;
pub mod sql;
pub mod tls;
pub mod users;
pub mod wire;
