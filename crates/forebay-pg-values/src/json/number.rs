//! Numbers of JSON as numeric keeps them.
//!
//! Knows nothing of documents.

use std::borrow::Cow;

use crate::{Owned, Result, numeric};

/// A number of JSON as numeric writes it.
pub(crate) fn canonical(number: &str) -> Result<Cow<'_, str>> {
    let digits = number.strip_prefix('-').unwrap_or(number);
    let is_zero = || !digits.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    // Nothing to do for what has no exponent, fits for sure, and is not a zero with a sign.
    if digits.len() <= 16_000 && !digits.contains(['e', 'E']) && (digits.len() == number.len() || !is_zero()) {
        return Ok(Cow::Borrowed(number));
    }
    match numeric::parse(number, -1)? {
        Owned::Text(canonical) => Ok(Cow::Owned(canonical)),
        other => unreachable!("a numeric is stored as text, not as {other:?}"),
    }
}

/// Rounded to a whole number, halves away from zero, if it fits.
pub(crate) fn to_integer(number: &str) -> Option<i64> {
    let (negative, unsigned) = match number.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, number),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let whole: i128 = whole.parse().ok()?;
    let rounded = whole.checked_add(i128::from(
        fraction.as_bytes().first().is_some_and(|digit| *digit >= b'5'),
    ))?;
    i64::try_from(if negative { -rounded } else { rounded }).ok()
}
