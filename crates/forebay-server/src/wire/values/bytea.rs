//! bytea's text format: hex (`\x6869`) out; hex or escape (`hi\000\\`) in. Knows nothing of types or errors.

use bytes::{BufMut, BytesMut};

/// The bytes that `text` stands for; `None` if it is neither form.
pub(super) fn parse(text: &str) -> Option<Vec<u8>> {
    match text.strip_prefix("\\x") {
        Some(hex) => parse_hex(hex.as_bytes()),
        None => parse_escaped(text.as_bytes()),
    }
}

/// Whitespace may stand between two bytes, not within one.
fn parse_hex(mut hex: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(hex.len() / 2);
    loop {
        match hex {
            [] => return Some(bytes),
            [space, rest @ ..] if space.is_ascii_whitespace() => hex = rest,
            [high, low, rest @ ..] => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                bytes.push(u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()?);
                hex = rest;
            }
            [_] => return None,
        }
    }
}

fn parse_escaped(mut text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    loop {
        match text {
            [] => return Some(bytes),
            [b'\\', b'\\', rest @ ..] => {
                bytes.push(b'\\');
                text = rest;
            }
            [
                b'\\',
                a @ b'0'..=b'3',
                b @ b'0'..=b'7',
                c @ b'0'..=b'7',
                rest @ ..,
            ] => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                text = rest;
            }
            [b'\\', ..] => return None,
            [byte, rest @ ..] => {
                bytes.push(*byte);
                text = rest;
            }
        }
    }
}

/// Appends the hex form.
pub(super) fn put(out: &mut BytesMut, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.reserve(2 + 2 * bytes.len());
    out.put_slice(b"\\x");
    for byte in bytes {
        out.put_slice(&[
            DIGITS[usize::from(byte >> 4)],
            DIGITS[usize::from(byte & 15)],
        ]);
    }
}
