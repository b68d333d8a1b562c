//! Frames: where messages begin and end in bytes that pass through.
//!
//! Promises: a length is checked before anything follows from it. Knows no message's meaning.

/// The first byte and the length of a message.
pub(crate) const HEADER_BYTES: usize = 5;

/// Messages longer than this pass through in pieces, where nothing but their beginning matters.
pub(crate) const WHOLE_BYTES_MAX: usize = 64 * 1024;

/// No message has more.
const LENGTH_MAX: u32 = 0x3fff_ffff;

/// A message's first byte, and the length of the whole of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) tag: u8,
    pub(crate) length: usize,
}

impl Frame {
    /// Whether so many bytes of a client's message are enough to take it: the whole, or the beginning of one that passes in pieces. What
    /// a text says, only its whole tells.
    pub(crate) fn can_be_taken(self, here: usize) -> bool {
        here >= self.length || (here >= WHOLE_BYTES_MAX && !self.has_text())
    }

    /// Whether the whole of it must be held before it is passed on.
    pub(crate) fn has_text(self) -> bool {
        matches!(self.tag, b'Q' | b'P')
    }
}

/// A length that no message has.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message {:?} with an invalid length", char::from(*.0))]
pub(crate) struct BadLength(pub(crate) u8);

/// The message that begins here, when its header is whole.
pub(crate) fn frame(bytes: &[u8]) -> Result<Option<Frame>, BadLength> {
    let Some(&[tag, length @ ..]) = bytes.first_chunk::<HEADER_BYTES>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(length);
    if !(4..=LENGTH_MAX).contains(&length) {
        return Err(BadLength(tag));
    }
    let length = 1 + usize::try_from(length).expect("30 bits fit into a word");
    Ok(Some(Frame { tag, length }))
}

/// Whether a message can be taken from these bytes, if only to be refused.
pub(crate) fn has_message(bytes: &[u8]) -> bool {
    match frame(bytes) {
        Ok(Some(frame)) => frame.can_be_taken(bytes.len()),
        Ok(None) => false,
        Err(_) => true,
    }
}

/// Whether a client says in these bytes that it goes, to the end of that word.
pub(crate) fn says_farewell(mut bytes: &[u8]) -> bool {
    while let Ok(Some(frame)) = frame(bytes) {
        let Some(rest) = bytes.get(frame.length..) else { break };
        if frame.tag == b'X' {
            return true;
        }
        bytes = rest;
    }
    false
}

/// Whether that is the first that it says.
pub(crate) fn begins_with_farewell(bytes: &[u8]) -> bool {
    bytes.first() == Some(&b'X') && says_farewell(bytes)
}

/// The text up to the next zero, and what follows that.
pub(crate) fn zero_terminated(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|&byte| byte == 0)?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

/// A field of an error or a notice, by its letter.
pub(crate) fn field(mut body: &[u8], letter: u8) -> Option<&[u8]> {
    while let Some((&kind, rest)) = body.split_first().filter(|(kind, _)| **kind != 0) {
        let (text, behind) = zero_terminated(rest)?;
        if kind == letter {
            return Some(text);
        }
        body = behind;
    }
    None
}

/// Whether the error of this body is the last thing that its connection says.
pub(crate) fn ends_the_session(body: &[u8]) -> bool {
    // In English, whatever language the server speaks; servers before 9.6 say it in that alone.
    let severity = field(body, b'V').or_else(|| field(body, b'S'));
    matches!(severity, Some(b"FATAL" | b"PANIC"))
}

/// Where the last thing that was asked is refused with this code, in whole messages of a server's.
pub(crate) fn last_refusal(said: &[u8], code: &[u8]) -> Option<usize> {
    let (mut at, mut refused_at) = (0, None);
    while let Ok(Some(Frame { tag, length })) = frame(&said[at..]) {
        let body = said.get(at + HEADER_BYTES..at + length)?;
        match tag {
            b'E' if field(body, b'C') == Some(code) => refused_at = Some(at),
            // It may be followed by what is no answer.
            b'Z' | b'N' | b'S' | b'A' => {}
            _ => refused_at = None,
        }
        at += length;
    }
    refused_at
}

/// Appends a message of this body.
pub(crate) fn put(out: &mut bytes::BytesMut, tag: u8, body: &[&[u8]]) {
    let length = 4 + body.iter().map(|part| part.len()).sum::<usize>();
    put_header(out, tag, length);
    for part in body {
        out.extend_from_slice(part);
    }
}

/// Appends a header; `length` counts itself and the body.
pub(crate) fn put_header(out: &mut bytes::BytesMut, tag: u8, length: usize) {
    out.extend_from_slice(&[tag]);
    out.extend_from_slice(
        &u32::try_from(length)
            .expect("a message has less than 1 GiB")
            .to_be_bytes(),
    );
}

/// Whether a message is there to its end.
pub(crate) fn is_whole(message: &[u8]) -> bool {
    matches!(frame(message), Ok(Some(frame)) if frame.length == message.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(messages: &[(u8, &[u8])]) -> Vec<u8> {
        let mut out = bytes::BytesMut::new();
        for (tag, body) in messages {
            put(&mut out, *tag, &[body]);
        }
        out.to_vec()
    }

    #[test]
    fn a_refusal_counts_where_nothing_was_answered_behind_it() {
        const CANCELLED: &[u8] = b"SERROR\0C57014\0\0";
        const OTHER: &[u8] = b"SERROR\0C22012\0\0";
        let last = |messages: &[(u8, &[u8])]| last_refusal(&said(messages), b"57014");
        let done: (u8, &[u8]) = (b'C', b"INSERT 0 1\0");
        let ready: (u8, &[u8]) = (b'Z', b"I");
        assert_eq!(last(&[(b'E', CANCELLED), ready]), Some(0));
        assert_eq!(last(&[(b'1', b""), (b'2', b""), (b'E', CANCELLED), ready]), Some(10));
        assert!(last(&[done, ready, (b'E', CANCELLED), (b'S', b"a\0b\0"), ready]).is_some());
        assert_eq!(last(&[(b'E', CANCELLED), ready, done, ready]), None, "another was done");
        assert_eq!(last(&[(b'E', OTHER), ready]), None);
        assert_eq!(last(&[(b'E', CANCELLED), ready, (b'E', OTHER), ready]), None);
        assert_eq!(last(&[done, ready]), None);
        let cut = said(&[(b'E', CANCELLED), done]);
        assert_eq!(last_refusal(&cut[..cut.len() - 1], b"57014"), None, "it may be more");
    }
}
