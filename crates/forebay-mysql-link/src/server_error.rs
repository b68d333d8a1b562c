//! Server error: what an error packet says.
//!
//! Promises: a packet that is cut short is [`Malformed`]; text that is no UTF-8 is told as well as it can be. Knows no statement.

use crate::reader::{Malformed, Reader};

/// An error of the server's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("ERROR {code} ({sqlstate}): {message}")]
pub struct ServerError {
    /// The server's own number.
    pub code: u16,
    /// Five characters; `HY000` where the server says none.
    pub sqlstate: String,
    /// In words.
    pub message: String,
}

impl ServerError {
    /// Of a packet's body, its first byte (0xff) included. Before the handshake is over there may be no SQLSTATE in it.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn read(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(body);
        reader.u8()?;
        let code = reader.u16()?;
        let (sqlstate, message) = match reader.0.split_first_chunk::<6>() {
            Some(([b'#', state @ ..], message)) => (String::from_utf8_lossy(state).into_owned(), message),
            _ => ("HY000".to_owned(), reader.0),
        };
        Ok(Self {
            code,
            sqlstate,
            message: String::from_utf8_lossy(message).into_owned(),
        })
    }

    /// Whether a connection that was refused so may be had a moment later: too many of them, of all or of this user's, or the
    /// server is on its way down.
    pub fn is_passing(&self) -> bool {
        matches!(self.code, 1040 | 1053 | 1152 | 1158..=1161 | 1203 | 1226)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_read_with_a_state_and_without() {
        let told = ServerError::read(b"\xff\x15\x04#28000Access denied").unwrap();
        assert_eq!(told.to_string(), "ERROR 1045 (28000): Access denied");
        let told = ServerError::read(b"\xff\x10\x04Too many connections").unwrap();
        assert_eq!(told.to_string(), "ERROR 1040 (HY000): Too many connections");
        assert!(told.is_passing());
        assert_eq!(ServerError::read(b"\xff\x10"), Err(Malformed));
        assert_eq!(ServerError::read(b"\xff\x10\x04\xfe").unwrap().message, "\u{fffd}");
    }
}
