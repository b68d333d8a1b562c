//! Real numbers as the types of users have them.
//!
//! Promises: none is rounded; what has not enough digits is no such number.

use serde::de::{self, Unexpected, Visitor};

use super::row::Misfit;

const OF_THIS_SIZE: &&str = &"a real number of this size";

/// A column may hold a whole number where others are not: SQLite's, for one.
pub(crate) fn exact(integer: impl Into<i128>) -> Option<f64> {
    const EXACT_MAX: u128 = 1 << f64::MANTISSA_DIGITS;
    let integer = integer.into();
    #[allow(clippy::cast_precision_loss, reason = "it has no more digits than are kept")]
    (integer.unsigned_abs() <= EXACT_MAX).then_some(integer as f64)
}

pub(crate) fn narrow(real: f64) -> Option<f32> {
    #[allow(clippy::cast_possible_truncation, reason = "what is lost is looked for")]
    let narrow = real as f32;
    (real.is_nan() || f64::from(narrow).to_bits() == real.to_bits()).then_some(narrow)
}

/// Shows a real number to who wants one of half its size.
///
/// # Errors
/// When it would be rounded.
pub fn show_f32<'de, V: Visitor<'de>>(real: f64, visitor: V) -> Result<V::Value, Misfit> {
    match narrow(real) {
        Some(real) => visitor.visit_f32(real),
        None => Err(de::Error::invalid_value(Unexpected::Float(real), OF_THIS_SIZE)),
    }
}

/// The same of a whole number.
///
/// # Errors
/// When it would be rounded.
pub fn show_integer_as_f32<'de, V: Visitor<'de>>(integer: impl Into<i128>, visitor: V) -> Result<V::Value, Misfit> {
    let integer = integer.into();
    match exact(integer).and_then(narrow) {
        Some(real) => visitor.visit_f32(real),
        None => Err(beyond(integer)),
    }
}

/// Shows a whole number to who wants a real one.
///
/// # Errors
/// When it would be rounded.
pub fn show_integer_as_f64<'de, V: Visitor<'de>>(integer: impl Into<i128>, visitor: V) -> Result<V::Value, Misfit> {
    let integer = integer.into();
    match exact(integer) {
        Some(real) => visitor.visit_f64(real),
        None => Err(beyond(integer)),
    }
}

fn beyond(integer: i128) -> Misfit {
    let integer = format!("integer `{integer}`");
    de::Error::invalid_value(Unexpected::Other(&integer), OF_THIS_SIZE)
}
