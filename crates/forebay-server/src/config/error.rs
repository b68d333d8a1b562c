//! Why the options cannot be used.
//!
//! Promises: each error names the option, as the file has it, or the place in the file.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Why the options cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// The file cannot be read.
    #[error("configuration file {}: {error}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        error: std::io::Error,
    },
    /// The file cannot be understood: the error shows the line.
    #[error("configuration file {}: {error}", path.display())]
    Parse {
        /// Which file.
        path: PathBuf,
        /// Why, and where.
        error: Box<toml::de::Error>,
    },
    /// An option has a value it may not have.
    #[error("{option}: {why}")]
    Value {
        /// Its name, as in the file.
        option: &'static str,
        /// Why not.
        why: String,
    },
    /// Everyone who reaches the address could read and change everything.
    #[error(
        "{option} = {address} can be reached from other machines, and there are no users: everyone could read and change everything. \
         Make a user with `forebay user add NAME` and start with --users forebay.users, or say --insecure if that is what you want"
    )]
    OpenToEveryone {
        /// listen or http.
        option: &'static str,
        /// Its address.
        address: SocketAddr,
    },
}

/// An option has a value it may not have.
pub(super) fn value(option: &'static str, why: &str) -> OptionsError {
    OptionsError::Value {
        option,
        why: why.to_owned(),
    }
}
