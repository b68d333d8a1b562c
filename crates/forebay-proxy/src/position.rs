//! Position: where the database's log is, which a client is told on its behalf, so that what is read for others may be asked to be behind it.
//!
//! Promises: whatever the client was told to be committed before it asked is before it: it is the database's own answer, on a connection of the client's.

use crate::frames::HEADER_BYTES;

/// What a client asks who wants to know it, in a simple query.
const ASKED: [&[u8]; 3] = [b"SHOW", b"FOREBAY", b"LSN"];
/// Longer than anybody asks for it.
const ASKED_BYTES_MAX: usize = 64;
/// What the database is asked, as one message.
const ASK: &[u8] = b"Q\0\0\0\x39SELECT pg_catalog.pg_current_wal_insert_lsn() AS lsn\0";

/// What the database is to get in place of this simple query; none where that is the query itself.
pub(crate) fn in_place_of(message: &[u8]) -> Option<&'static [u8]> {
    if message.len() > ASKED_BYTES_MAX {
        return None;
    }
    let text = message.get(HEADER_BYTES..)?.strip_suffix(&[0])?;
    let end = text
        .iter()
        .rposition(|byte| *byte != b';' && !byte.is_ascii_whitespace())?;
    let mut words = text[..=end]
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    let is_next = |asked: &&[u8]| words.next().is_some_and(|word| word.eq_ignore_ascii_case(asked));
    (ASKED.iter().all(is_next) && words.next().is_none()).then_some(ASK)
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;
    use crate::frames::{frame, put};

    #[test]
    fn it_is_asked_of_the_database_in_place_of_what_the_client_asks() {
        let asked = frame(ASK).unwrap().unwrap();
        assert_eq!((asked.tag, asked.length), (b'Q', ASK.len()));
        for (text, is_it) in [
            ("SHOW FOREBAY LSN", true),
            (" show\tforebay\nlsn ; ;", true),
            ("SHOW FOREBAY LSN now", false),
            ("SHOW FOREBAY", false),
            ("SHOW FOREBAY LSN; SELECT 1", false),
            ("SHOW FOREBAY STATUS", false),
            ("SHOWFOREBAYLSN", false),
            (";", false),
            ("", false),
        ] {
            let mut message = BytesMut::new();
            put(&mut message, b'Q', &[text.as_bytes(), &[0]]);
            assert_eq!(in_place_of(&message), is_it.then_some(ASK), "{text}");
        }
    }
}
