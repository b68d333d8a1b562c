//! The link: one raw, pipelined connection to MariaDB or MySQL, driven by whoever waits for an answer.
//!
//! Promises: what [`Link`] and [`connect()`] promise. Parameters and rows pass as bytes with their types; nothing is decoded to be
//! encoded again. Knows no pool, no value, and no statement's meaning.
//!
//! - [`config`]: which server, as whom, and how
//! - [`connect()`]: addresses in turn, TLS, the handshake
//! - [`Link`]: commands out ([`Outbox`]), packets in ([`Packet`])
//! - [`error`], [`ServerError`]: what can go wrong

mod answer;
pub mod config;
mod connect;
pub mod error;
mod greeting;
mod handshake;
mod inbox;
mod link;
mod outbox;
mod packet;
mod parse;
mod proof;
mod reader;
mod row;
mod server_error;
mod tls;

pub use self::config::Config;
pub use self::connect::{Connector, connect};
pub use self::error::{ConnectError, LinkError};
pub use self::link::Link;
pub use self::outbox::{Outbox, Parameter, TooLong, put_length_encoded};
pub use self::packet::{Definition, OkPacket, Packet, StatementPacket};
pub use self::reader::Malformed;
pub use self::row::{BinaryRow, TextRow};
pub use self::server_error::ServerError;
/// Types of columns and parameters, and what a server says of a session.
pub use mysql_common::constants::{ColumnFlags, ColumnType, StatusFlags};
/// A column as the server describes it.
pub use mysql_common::packets::Column;
