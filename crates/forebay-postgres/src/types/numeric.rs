//! Which values are sent as numeric, and its binary format.
//!
//! Promises: exact, digits and scale, both ways. Texts that are not plain decimal numbers of a sensible size do not fit, and
//! are left to the server.

use bytes::BytesMut;
use forebay_pg_binary::numeric::{Decimal, Special, put_integer, text};

use super::scratch::Scratch;
use forebay_write::Value;

/// Longer numbers are read by the server.
const DIGITS_MAX: usize = 1_000;

/// Whether [`write()`] will write it.
pub(super) fn fits(value: &Value) -> bool {
    match value {
        Value::Integer(_) | Value::Unsigned(_) | Value::Real(_) => true,
        Value::Text(text) => short(text.as_bytes()).is_some(),
        _ => false,
    }
}

/// Writes the binary form; `None`, with nothing written, if it does not fit.
pub(super) fn write(value: &Value, out: &mut BytesMut) -> Option<()> {
    match value {
        Value::Integer(integer) => put_integer(*integer, out),
        Value::Unsigned(integer) => short(integer.to_string().as_bytes())?.put(out),
        Value::Real(real) if real.is_nan() => Special::NotANumber.put(out),
        Value::Real(f64::INFINITY) => Special::Infinity.put(out),
        Value::Real(f64::NEG_INFINITY) => Special::NegativeInfinity.put(out),
        Value::Real(real) => short(Scratch::scientific(*real).as_bytes())?.put(out),
        Value::Text(text) => short(text.as_bytes())?.put(out),
        _ => return None,
    }
    Some(())
}

fn short(text: &[u8]) -> Option<Decimal<'_>> {
    Decimal::of(text).filter(|decimal| decimal.digit_count() <= DIGITS_MAX)
}

/// The text of a binary numeric, as the server prints it; `None` if it is none.
pub(super) fn read(raw: &[u8]) -> Option<String> {
    text(raw).ok()
}
