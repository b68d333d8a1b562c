//! The text of numerics as clients write it, their type modifier (precision and scale), and the stored form.

use super::Number;
use super::decimal::{Decimal, overflow};
use super::whole::Whole;
use crate::integer::is_space;
use crate::{Owned, Result, ValueError};

/// The digits that a value has at most: PostgreSQL stores so many before the point, and so many behind it.
const DIGITS_MAX: usize = 131_072 + 16_383;

impl Number {
    /// Reads the stored form.
    pub(crate) fn stored(text: &str) -> Result<Self> {
        // A file that somebody else wrote may hold anything.
        stored(text).ok_or_else(|| ValueError::new("XX001", format!("\"{text}\" is not stored as a numeric is")))
    }
}

/// Reads the stored form; nothing if it is none.
fn stored(text: &str) -> Option<Number> {
    match text {
        "NaN" => return Some(Number::Nan),
        "Infinity" => return Some(Number::Infinity),
        "-Infinity" => return Some(Number::NegativeInfinity),
        _ => {}
    }
    let bytes = text.as_bytes();
    let (negative, digits) = match bytes.split_first()? {
        (b'-', rest) => (true, rest),
        _ => (false, bytes),
    };
    let point = digits.iter().position(|byte| *byte == b'.');
    let (whole, fraction) = point.map_or((digits, &[][..]), |at| (&digits[..at], &digits[at + 1..]));
    if whole.len() + fraction.len() == 0 || !whole.iter().chain(fraction).all(u8::is_ascii_digit) {
        return None;
    }
    Some(finite(negative, whole, fraction).into())
}

fn finite(negative: bool, whole: &[u8], fraction: &[u8]) -> Decimal {
    let unscaled = if fraction.is_empty() {
        Whole::from_digits(whole)
    } else {
        Whole::from_digits(&[whole, fraction].concat())
    };
    let unscaled = if negative { unscaled.negated() } else { unscaled };
    Decimal::new(unscaled, u32::try_from(fraction.len()).unwrap_or(u32::MAX))
}

/// Precision and scale of a type modifier, if it is one.
fn modifier(typmod: i32) -> Option<(i64, i64)> {
    let packed = typmod.checked_sub(4).filter(|packed| *packed >= 0)?;
    let scale = ((packed & 0x7ff) ^ 1024) - 1024;
    Some((i64::from((packed >> 16) & 0xffff), i64::from(scale)))
}

fn field_overflow(detail: String) -> ValueError {
    ValueError::new("22003", "numeric field overflow").with_detail(detail)
}

fn too_large(precision: i64, scale: i64) -> ValueError {
    let digits = precision - scale;
    let bound = if digits == 0 {
        "1".to_owned()
    } else {
        format!("10^{digits}")
    };
    field_overflow(format!(
        "A field with precision {precision}, scale {scale} must round to an absolute value less than {bound}."
    ))
}

/// Brings a value into `numeric(precision, scale)`.
pub(crate) fn apply_modifier(number: Number, typmod: i32) -> Result<Number> {
    let Some((precision, scale)) = modifier(typmod) else {
        return Ok(number);
    };
    match number {
        Number::Nan => Ok(number),
        Number::Infinity | Number::NegativeInfinity => Err(field_overflow(format!(
            "A field with precision {precision}, scale {scale} cannot hold an infinite value."
        ))),
        Number::Finite(decimal) => {
            let rounded = decimal.rounded(scale);
            if !rounded.is_zero() && rounded.magnitude() + 1 > precision - scale {
                return Err(too_large(precision, scale));
            }
            Ok(rounded.into())
        }
    }
}

/// Reads what a client wrote, as a value of the type with that modifier (-1 for none).
pub(crate) fn parse(text: &str, typmod: i32) -> Result<Owned> {
    read(text, typmod)?.store()
}

fn read(text: &str, typmod: i32) -> Result<Number> {
    let invalid = || ValueError::invalid_text("22P02", "numeric", text);
    let bytes = text
        .trim_start_matches(|character: char| u8::try_from(character).is_ok_and(is_space))
        .as_bytes();
    let only_spaces = |rest: &[u8]| rest.iter().copied().all(is_space);

    let words: [(&str, Number); 7] = [
        ("nan", Number::Nan),
        ("infinity", Number::Infinity),
        ("+infinity", Number::Infinity),
        ("-infinity", Number::NegativeInfinity),
        ("inf", Number::Infinity),
        ("+inf", Number::Infinity),
        ("-inf", Number::NegativeInfinity),
    ];
    for (word, number) in words {
        if bytes.len() >= word.len() && bytes[..word.len()].eq_ignore_ascii_case(word.as_bytes()) {
            if !only_spaces(&bytes[word.len()..]) {
                return Err(invalid());
            }
            return apply_modifier(number, typmod);
        }
    }

    let (negative, bytes) = match bytes.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, bytes),
    };
    let digits = |from: &[u8]| from.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (whole, rest) = bytes.split_at(digits(bytes));
    let (fraction, rest) = match rest.split_first() {
        Some((b'.', after)) => after.split_at(digits(after)),
        _ => (&[][..], rest),
    };
    // A point alone is no number, and a second one no part of it.
    if whole.len() + fraction.len() == 0 || rest.first() == Some(&b'.') {
        return Err(invalid());
    }
    let (exponent, rest) = match rest.split_first() {
        Some((b'e' | b'E', after)) => exponent(after).ok_or_else(invalid)?,
        _ => (0, rest),
    };
    if exponent.unsigned_abs() >= u64::from(i32::MAX.unsigned_abs() / 2) {
        return Err(overflow());
    }
    if !only_spaces(rest) {
        return Err(invalid());
    }
    // Before the work, which grows with their square.
    let zeros = whole.iter().chain(fraction).take_while(|digit| **digit == b'0').count();
    if whole.len() + fraction.len() - zeros > DIGITS_MAX {
        return Err(overflow());
    }
    scaled(finite(negative, whole, fraction), exponent, typmod)
}

/// An exponent as C's strtol reads it, and what follows.
fn exponent(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let bytes = bytes.trim_ascii_start_c();
    let (negative, bytes) = match bytes.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, bytes),
    };
    let length = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if length == 0 {
        return None;
    }
    let magnitude = bytes[..length].iter().fold(0_i64, |value, digit| {
        value.saturating_mul(10).saturating_add(i64::from(digit - b'0'))
    });
    Some((if negative { -magnitude } else { magnitude }, &bytes[length..]))
}

trait TrimSpace {
    fn trim_ascii_start_c(&self) -> &Self;
}

impl TrimSpace for [u8] {
    fn trim_ascii_start_c(&self) -> &Self {
        &self[self.iter().take_while(|byte| is_space(**byte)).count()..]
    }
}

/// The decimal times 10 to the power of the exponent. What PostgreSQL could not store without its modifier is refused even where the
/// modifier would round it to something it could: so it is for literals, whose text PostgreSQL reads before the modifier is applied.
fn scaled(decimal: Decimal, exponent: i64, typmod: i32) -> Result<Number> {
    let scale = i64::from(decimal.scale) - exponent;
    let exact = if let Ok(scale) = u32::try_from(scale) {
        Decimal::new(decimal.unscaled, scale)
    } else if scale > 0 {
        return Err(overflow());
    } else if decimal.is_zero() {
        Decimal::ZERO
    } else if scale < -140_000 {
        return Err(overflow());
    } else {
        let power = Whole::power_of_ten(u32::try_from(-scale).expect("below zero"));
        Decimal::new(decimal.unscaled.multiply(&power), 0)
    };
    apply_modifier(exact.checked()?.into(), typmod)
}
