//! Values spelled as text that the server reads: numbers, bytes and moments.
//!
//! Knows PostgreSQL's notations; knows no binary form.

use std::fmt::Write;
use std::time::SystemTime;

use bytes::{BufMut, BytesMut};

use super::scratch::Scratch;
use forebay_write::moment::Utc;

/// Decimal digits.
pub(super) fn integer(integer: i64, out: &mut BytesMut) {
    write!(out, "{integer}").expect("a buffer grows as it must");
}

/// Decimal digits.
pub(super) fn unsigned(integer: u64, out: &mut BytesMut) {
    write!(out, "{integer}").expect("a buffer grows as it must");
}

/// `2026-11-28 01:30:00.5+00:00`, with at most six digits after the point.
pub(super) fn moment(moment: SystemTime, out: &mut BytesMut) {
    let shown = Utc::of(moment);
    let kept = Utc {
        nanosecond: shown.microsecond() * 1000,
        ..shown
    };
    write!(out, "{kept}").expect("a buffer grows as it must");
}

/// The shortest digits that read back as the same number, in the notation of the server's own output: `0.1`, `1e+20`,
/// `Infinity`.
pub(super) fn real<T: std::fmt::LowerExp + Into<f64> + Copy>(real: T, out: &mut BytesMut) {
    /// Exponents from which on the server writes one.
    const SCIENTIFIC_FROM: i32 = 15;
    const SCIENTIFIC_BELOW: i32 = -4;
    let wide: f64 = real.into();
    if !wide.is_finite() {
        out.put_slice(match (wide.is_nan(), wide > 0.0) {
            (true, _) => b"NaN",
            (false, true) => b"Infinity",
            (false, false) => b"-Infinity",
        });
        return;
    }
    let scratch = Scratch::scientific(real);
    let text = scratch.as_bytes();
    let (negative, text) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        _ => (false, text),
    };
    let e = text
        .iter()
        .position(|&byte| byte == b'e')
        .expect("the notation has an exponent");
    let exponent: i32 = std::str::from_utf8(&text[e + 1..])
        .ok()
        .and_then(|digits| digits.parse().ok())
        .expect("the exponent is a small integer");
    let first = text[0];
    // After the first digit stands a point, if more digits follow.
    let rest = text.get(2..e).unwrap_or_default();
    if negative {
        out.put_u8(b'-');
    }
    if !(SCIENTIFIC_BELOW..SCIENTIFIC_FROM).contains(&exponent) {
        out.put_u8(first);
        if !rest.is_empty() {
            out.put_u8(b'.');
            out.put_slice(rest);
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        write!(out, "e{sign}{:02}", exponent.unsigned_abs()).expect("a buffer grows as it must");
    } else if exponent < 0 {
        out.put_slice(b"0.");
        out.put_bytes(b'0', (-exponent - 1).unsigned_abs() as usize);
        out.put_u8(first);
        out.put_slice(rest);
    } else {
        let before_the_point = exponent.unsigned_abs() as usize;
        out.put_u8(first);
        match rest.split_at_checked(before_the_point) {
            Some((whole, [])) => out.put_slice(whole),
            Some((whole, fraction)) => {
                out.put_slice(whole);
                out.put_u8(b'.');
                out.put_slice(fraction);
            }
            None => {
                out.put_slice(rest);
                out.put_bytes(b'0', before_the_point - rest.len());
            }
        }
    }
}

/// Two digits a byte.
pub(super) fn hex(bytes: &[u8], out: &mut BytesMut) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.reserve(bytes.len() * 2);
    for byte in bytes {
        out.put_u8(DIGITS[usize::from(byte >> 4)]);
        out.put_u8(DIGITS[usize::from(byte & 15)]);
    }
}
