//! Greeting: the server's first packet: what it is and can, and what a proof is made over.
//!
//! Promises: one that is cut short is [`Malformed`]. Knows no password.

use mysql_common::constants::{CapabilityFlags, MariadbCapabilities, StatusFlags};

use crate::reader::{Malformed, Reader};

/// What a server says first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Greeting {
    pub(crate) version: (u16, u16, u16),
    pub(crate) connection_id: u32,
    pub(crate) capabilities: CapabilityFlags,
    /// None of them, if it is no MariaDB.
    pub(crate) mariadb_capabilities: MariadbCapabilities,
    pub(crate) status: StatusFlags,
    /// What the first proof is made over.
    pub(crate) nonce: [u8; 20],
    /// How the proof is made.
    pub(crate) method: Vec<u8>,
}

impl Greeting {
    pub(crate) fn read(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(body);
        if reader.u8()? != 10 {
            return Err(Malformed);
        }
        let version = reader.zero_terminated()?;
        let connection_id = reader.u32()?;
        let first = reader.bytes(8)?;
        reader.u8()?;
        let low = reader.u16()?;
        // Its collation.
        reader.u8()?;
        let status = StatusFlags::from_bits_truncate(reader.u16()?);
        let high = reader.u16()?;
        let capabilities = CapabilityFlags::from_bits_truncate(u32::from(low) | u32::from(high) << 16);
        let nonce_bytes = usize::from(reader.u8()?);
        reader.bytes(6)?;
        let extended = MariadbCapabilities::from_bits_truncate(reader.u32()?);
        let mut nonce = [0; 20];
        nonce[..8].copy_from_slice(first);
        if capabilities.contains(CapabilityFlags::CLIENT_SECURE_CONNECTION) {
            let second = reader.bytes(nonce_bytes.saturating_sub(8).max(13))?;
            nonce[8..].copy_from_slice(&second[..12]);
        }
        let method = match capabilities.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH) {
            // Some leave out the zero byte at its end.
            true => reader.zero_terminated().unwrap_or(reader.0).to_vec(),
            false => Vec::new(),
        };
        // What is set of every MySQL is not of a MariaDB that has more to say.
        let is_extended = !capabilities.contains(CapabilityFlags::CLIENT_LONG_PASSWORD);
        Ok(Self {
            version: numbers(version),
            connection_id,
            capabilities,
            mariadb_capabilities: match is_extended {
                true => extended,
                false => MariadbCapabilities::empty(),
            },
            status,
            nonce,
            method,
        })
    }
}

/// `10.11.6-MariaDB` or `8.0.36`; MariaDB says it behind a `5.5.5-`, for those who took it for an old MySQL.
fn numbers(version: &[u8]) -> (u16, u16, u16) {
    let text = String::from_utf8_lossy(version);
    let text = match text.strip_prefix("5.5.5-") {
        Some(rest) if rest.contains("MariaDB") => rest,
        _ => &text,
    };
    let mut parts = text.split(|letter: char| !letter.is_ascii_digit());
    let mut part = || parts.next().and_then(|part| part.parse().ok()).unwrap_or(0);
    (part(), part(), part())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn versions_are_read_as_they_are_written() {
        for (text, expected) in [
            ("5.5.5-10.11.19-MariaDB-0+deb12u1", (10, 11, 19)),
            ("11.8.2-MariaDB", (11, 8, 2)),
            ("8.0.36", (8, 0, 36)),
            ("5.5.5", (5, 5, 5)),
            ("9.1-log", (9, 1, 0)),
            ("?", (0, 0, 0)),
        ] {
            assert_eq!(numbers(text.as_bytes()), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_greeting_is_too_odd_to_be_read(rest in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = Greeting::read(&rest);
            let _ = Greeting::read(&[&b"\n8.0\0"[..], &rest].concat());
        }
    }
}
