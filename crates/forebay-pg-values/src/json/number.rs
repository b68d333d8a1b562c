//! Numbers of JSON as PostgreSQL's numeric keeps them: exact, with their scale, without an exponent.
//!
//! Knows nothing of documents.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::{Result, ValueError};

/// Digits before the point that a numeric holds.
const WHOLE_DIGITS_MAX: i64 = 131_072;
/// Digits behind the point that a numeric holds.
const SCALE_MAX: i64 = 16_383;

/// A number of JSON as numeric writes it.
pub(crate) fn canonical(number: &str) -> Result<Cow<'_, str>> {
    let (negative, unsigned) = match number.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, number),
    };
    // Nothing to do for what has no exponent, fits, and is not a zero with a sign.
    if unsigned.len() <= 16_000
        && !unsigned.contains(['e', 'E'])
        && (!negative || unsigned.contains(|c| matches!(c, '1'..='9')))
    {
        return Ok(Cow::Borrowed(number));
    }
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], exponent(&unsigned[at + 1..])),
        None => (unsigned, Some(0)),
    };
    let exponent = exponent
        .filter(|exponent| exponent.abs() < i64::from(i32::MAX / 2))
        .ok_or_else(|| ValueError::invalid_text("22P02", "numeric", number))?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    // The point stands before digits[point].
    let point = length(whole) + exponent;
    let scale = (length(fraction) - exponent).max(0);
    let zeros = length(&digits[..digits.len() - digits.trim_start_matches('0').len()]);
    let zero = zeros == length(&digits);
    if scale > SCALE_MAX || (!zero && point - zeros > WHOLE_DIGITS_MAX) {
        return Err(ValueError::new("22003", "value overflows numeric format"));
    }
    let digit = |at: i64| -> char {
        usize::try_from(at)
            .ok()
            .and_then(|at| digits.as_bytes().get(at))
            .map_or('0', |byte| char::from(*byte))
    };
    let mut out = String::new();
    if negative && !zero {
        out.push('-');
    }
    if zero || point <= zeros {
        out.push('0');
    } else {
        out.extend((zeros..point).map(digit));
    }
    if scale > 0 {
        out.push('.');
        out.extend((point..point + scale).map(digit));
    }
    Ok(Cow::Owned(out))
}

fn exponent(text: &str) -> Option<i64> {
    text.strip_prefix('+').unwrap_or(text).parse().ok()
}

fn length(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}

/// The order of two numbers as numeric writes them, without NaN and infinities.
pub(crate) fn compare(left: &str, right: &str) -> Ordering {
    let (left, right) = (Parts::of(left), Parts::of(right));
    match (left.sign, right.sign) {
        (a, b) if a != b => a.cmp(&b),
        (-1, _) => right.magnitude().cmp(&left.magnitude()),
        (0, _) => Ordering::Equal,
        _ => left.magnitude().cmp(&right.magnitude()),
    }
}

struct Parts<'a> {
    sign: i8,
    whole: &'a str,
    fraction: &'a str,
}

impl<'a> Parts<'a> {
    fn of(number: &'a str) -> Self {
        let (negative, unsigned) = match number.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, number),
        };
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let whole = whole.trim_start_matches('0');
        let fraction = fraction.trim_end_matches('0');
        let sign = match (whole.is_empty() && fraction.is_empty(), negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        Self { sign, whole, fraction }
    }

    fn magnitude(&self) -> (usize, &'a str, &'a str) {
        (self.whole.len(), self.whole, self.fraction)
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
