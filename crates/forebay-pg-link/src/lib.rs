//! The link: one raw, pipelined connection to PostgreSQL, driven by whoever waits for an answer.
//!
//! Promises: what [`Link`] and [`connect()`] promise. Parameters and rows pass as bytes with their types' numbers and format codes;
//! nothing is decoded to be encoded again. Knows no pool, no value, and no statement's meaning.
//!
//! - [`config`]: which server, as whom, and how
//! - [`connect()`]: hosts in turn, TLS, the handshake
//! - [`Link`]: messages out ([`Outbox`]), messages in ([`Message`])
//! - [`secret`]: what proves a user without a password
//! - [`CancelToken`]: to stop what a link is at
//! - [`error`], [`ServerError`]: what can go wrong

mod cancel;
mod channel_binding;
pub mod config;
mod connect;
mod dial;
pub mod error;
mod handshake;
mod inbox;
mod link;
mod message;
mod outbox;
mod parse;
mod scram;
pub mod secret;
mod server_error;
mod tls;

pub use self::cancel::CancelToken;
pub use self::config::Config;
pub use self::connect::{Connector, connect};
pub use self::error::{ConnectError, LinkError};
pub use self::link::{Link, Parts, TransactionStatus};
pub use self::message::{ColumnDescription, HEADER_BYTES, Malformed, Message, Row, Tag};
pub use self::outbox::{Named, Outbox, Unsendable};
pub use self::server_error::{ServerError, Severity};
/// For [`Connector::tls`]: the rustls that is spoken here.
#[cfg(feature = "tls")]
pub use forebay_stream::rustls;
/// What a parameter's encoder says: whether it is NULL.
pub use postgres_protocol::IsNull;
