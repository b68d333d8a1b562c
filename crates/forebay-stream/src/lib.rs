//! The bytes' way to a database over the network, and whose certificates are trusted on it.
//!
//! Promises: what [`Stream`] and `client_builder` promise. Knows no protocol that is spoken on it, and no setting's name.

mod stream;
#[cfg(feature = "tls")]
mod tls;

pub use self::stream::{Socket, Stream};
#[cfg(feature = "tls")]
pub use self::tls::{Checked, certificates, client_builder, encrypt};
/// The rustls that is spoken here.
#[cfg(feature = "tls")]
pub use tokio_rustls::rustls;
