//! numeric's stored form, which is its text as PostgreSQL writes it, and its binary format.
//!
//! Promises: text and binary carry the same digits and the same scale. Knows no arithmetic and no columns.

use bytes::BufMut;
use forebay_pg_binary::numeric::{Decimal, SCALE_MAX, Special, WHOLE_DIGITS_MAX, text};

use forebay_pg_wire::error::{WireError, sqlstate};

/// Whether a text is a numeric as PostgreSQL writes it, which is its stored form.
pub(super) fn is_written(text: &str) -> bool {
    if Special::of(text).is_some() {
        return true;
    }
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, text),
    };
    let (whole, fraction) = match unsigned.split_once('.') {
        Some((_, "")) => return false,
        Some((whole, fraction)) => (whole, fraction),
        None => (unsigned, ""),
    };
    let digits = || whole.bytes().chain(fraction.bytes());
    !whole.is_empty()
        && (whole == "0" || !whole.starts_with('0'))
        && whole.len() <= WHOLE_DIGITS_MAX
        && fraction.len() <= usize::from(SCALE_MAX)
        && digits().all(|digit| digit.is_ascii_digit())
        && !(negative && digits().all(|digit| digit == b'0'))
}

/// Appends the binary format of a written numeric ([`is_written`]).
pub(super) fn put_binary(text: &str, out: &mut impl BufMut) {
    match Special::of(text) {
        Some(special) => special.put(out),
        None => Decimal::of(text.as_bytes())
            .expect("what is written is a decimal within PostgreSQL's limits")
            .put(out),
    }
}

/// Reads the binary format; the numeric as PostgreSQL writes it. Digits behind the scale are cut off, as PostgreSQL does.
pub(super) fn from_binary(bytes: &[u8]) -> Result<String, WireError> {
    text(bytes).map_err(|malformed| WireError::new(sqlstate::INVALID_BINARY_REPRESENTATION, malformed.to_string()))
}
