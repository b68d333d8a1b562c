//! numeric: exact decimals between PostgreSQL's two formats and what SQLite can keep without rounding.
//!
//! Promises: [`Number::to_value`] never rounds (it refuses); text and binary carry the same digits and the same scale.
//! Knows nothing of columns.

use bytes::{Buf, BufMut, BytesMut};
use forebay::write::Value;
use postgres_types::Type;

use super::float::Digits;
use super::{invalid_text, not_a_number, out_of_range};
use crate::wire::error::{WireError, sqlstate};

/// PostgreSQL's own limits: digits before the point, and after it.
const WHOLE_DIGITS_MAX: i64 = 131_072;
const SCALE_MAX: i64 = 16_383;

/// How many significant digits every double keeps.
const DOUBLE_DIGITS: usize = 15;

const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xC000;
const INFINITY: u16 = 0xD000;
const NEGATIVE_INFINITY: u16 = 0xF000;

/// A numeric value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Number {
    Finite(Decimal),
    NaN,
    Infinity { negative: bool },
}

/// ±0.d₁d₂d₃… × 10^exponent
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decimal {
    negative: bool,
    /// Each 0..=9, without zeros at either end; empty for zero.
    digits: Vec<u8>,
    /// -SCALE_MAX <= exponent <= WHOLE_DIGITS_MAX
    exponent: i32,
    /// Digits after the point that are shown, at least: 1.50 has 2. 0 <= scale <= SCALE_MAX
    scale: u16,
}

/// Why a text is no numeric.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotANumber {
    Syntax,
    Range,
}

impl NotANumber {
    pub(super) fn for_parameter(&self, kind: &Type, text: &str) -> WireError {
        match self {
            Self::Syntax => invalid_text(kind, text),
            Self::Range => out_of_range(kind, text),
        }
    }
}

impl Decimal {
    /// From digits with perhaps zeros at their ends.
    fn new(
        negative: bool,
        mut digits: Vec<u8>,
        exponent: i64,
        scale: i64,
    ) -> Result<Self, NotANumber> {
        let zeros = digits.iter().take_while(|digit| **digit == 0).count();
        digits.drain(..zeros);
        while digits.last() == Some(&0) {
            digits.pop();
        }
        let exponent = if digits.is_empty() {
            0
        } else {
            exponent - i64::try_from(zeros).map_err(|_| NotANumber::Range)?
        };
        let shown = scale
            .max(i64::try_from(digits.len()).map_err(|_| NotANumber::Range)? - exponent)
            .max(0);
        if exponent > WHOLE_DIGITS_MAX || shown > SCALE_MAX {
            return Err(NotANumber::Range);
        }
        Ok(Self {
            negative: negative && !digits.is_empty(),
            digits,
            exponent: i32::try_from(exponent).map_err(|_| NotANumber::Range)?,
            scale: u16::try_from(shown).map_err(|_| NotANumber::Range)?,
        })
    }
}

impl Number {
    /// From PostgreSQL's input syntax.
    pub(super) fn parse(text: &str) -> Result<Self, NotANumber> {
        let text = text.trim_ascii();
        if text.eq_ignore_ascii_case("nan") {
            return Ok(Self::NaN);
        }
        let (negative, unsigned) = match text.as_bytes() {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        if unsigned.eq_ignore_ascii_case(b"infinity") || unsigned.eq_ignore_ascii_case(b"inf") {
            return Ok(Self::Infinity { negative });
        }
        let (mantissa, exponent) =
            match unsigned.iter().position(|byte| matches!(byte, b'e' | b'E')) {
                Some(at) => (&unsigned[..at], parse_exponent(&unsigned[at + 1..])?),
                None => (unsigned, 0),
            };
        let mut digits = Vec::with_capacity(mantissa.len());
        let mut point = None;
        for byte in mantissa {
            match byte {
                b'0'..=b'9' => digits.push(byte - b'0'),
                b'.' if point.is_none() => point = Some(digits.len()),
                _ => return Err(NotANumber::Syntax),
            }
        }
        if digits.is_empty() {
            return Err(NotANumber::Syntax);
        }
        let length = |digits: usize| i64::try_from(digits).map_err(|_| NotANumber::Range);
        let whole = length(point.unwrap_or(digits.len()))?;
        let fraction = length(digits.len())? - whole;
        Decimal::new(negative, digits, whole + exponent, fraction - exponent).map(Self::Finite)
    }

    pub(super) fn from_integer(integer: i64) -> Self {
        let mut buffer = itoa::Buffer::new();
        let text = buffer.format(integer.unsigned_abs()).bytes();
        let digits: Vec<u8> = text.map(|byte| byte - b'0').collect();
        let exponent = digits.len() as i64;
        Self::Finite(
            Decimal::new(integer < 0, digits, exponent, 0).expect("an i64 has at most 19 digits"),
        )
    }

    /// The shortest decimal that reads back as the same double.
    pub(super) fn from_real(real: f64) -> Self {
        if real.is_nan() {
            return Self::NaN;
        }
        if real.is_infinite() {
            return Self::Infinity {
                negative: real < 0.0,
            };
        }
        let shortest = Digits::of_real(real);
        let (digits, exponent) = shortest.parts();
        let digits = digits.iter().map(|byte| byte - b'0').collect();
        let decimal = Decimal::new(shortest.is_negative(), digits, i64::from(exponent) + 1, 0);
        Self::Finite(decimal.expect("a double's exponent is far below numeric's limits"))
    }

    /// From the binary format; the error says what is wrong with it.
    pub(super) fn from_binary(mut bytes: &[u8]) -> Result<Self, &'static str> {
        if bytes.len() < 8 {
            return Err("header cut short");
        }
        let groups = bytes.get_u16();
        let weight = bytes.get_i16();
        let sign = bytes.get_u16();
        let scale = bytes.get_u16();
        if bytes.len() != usize::from(groups) * 2 {
            return Err("digits cut short or left over");
        }
        let negative = match sign {
            0 => false,
            NEGATIVE => true,
            NAN => return Ok(Self::NaN),
            INFINITY => return Ok(Self::Infinity { negative: false }),
            NEGATIVE_INFINITY => return Ok(Self::Infinity { negative: true }),
            _ => return Err("invalid sign"),
        };
        if i64::from(scale) > SCALE_MAX {
            return Err("invalid scale");
        }
        let mut digits = Vec::with_capacity(usize::from(groups) * 4);
        while bytes.has_remaining() {
            let group = bytes.get_u16();
            if group > 9999 {
                return Err("invalid digit");
            }
            digits.extend(
                [group / 1000, group / 100 % 10, group / 10 % 10, group % 10]
                    .map(|digit| digit as u8),
            );
        }
        let exponent = (i64::from(weight) + 1) * 4;
        Decimal::new(negative, digits, exponent, i64::from(scale))
            .map(Self::Finite)
            .map_err(|_| "too many digits")
    }

    /// What SQLite can keep of it exactly: an integer, or a double of at most 15 significant digits.
    pub(super) fn to_value(&self) -> Result<Value, WireError> {
        let refused = |why: String| WireError::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, why);
        let decimal = match self {
            Self::Finite(decimal) => decimal,
            Self::NaN => return Err(not_a_number()),
            Self::Infinity { .. } => {
                return Err(refused(
                    "a numeric infinity cannot be stored: use double precision".to_owned(),
                ));
            }
        };
        if let Some(integer) = decimal.to_integer() {
            return Ok(Value::Integer(integer));
        }
        let significant = decimal.digits.len();
        if significant <= DOUBLE_DIGITS {
            let mut text = String::from(if decimal.negative { "-0." } else { "0." });
            text.extend(decimal.digits.iter().map(|digit| char::from(b'0' + digit)));
            text.push('e');
            text.push_str(itoa::Buffer::new().format(decimal.exponent));
            match text.parse::<f64>() {
                // Below the normal range a double has fewer digits.
                Ok(real) if real.is_normal() => return Ok(Value::Real(real)),
                _ => {
                    return Err(refused(
                        "numeric value is outside what SQLite can keep: about 1e-307 to 1e308"
                            .to_owned(),
                    ));
                }
            }
        }
        Err(refused(format!("numeric value has {significant} significant digits; SQLite would round it to {DOUBLE_DIGITS}"))
            .with_hint("Store it as text, or scaled to an integer of at most 64 bits (cents instead of euros)."))
    }

    /// Plain decimal notation, never an exponent, as PostgreSQL prints numeric.
    pub(super) fn put_text(&self, out: &mut BytesMut) {
        let decimal = match self {
            Self::Finite(decimal) => decimal,
            Self::NaN => return out.put_slice(b"NaN"),
            Self::Infinity { negative: true } => return out.put_slice(b"-Infinity"),
            Self::Infinity { negative: false } => return out.put_slice(b"Infinity"),
        };
        if decimal.negative {
            out.put_u8(b'-');
        }
        if decimal.exponent <= 0 {
            out.put_u8(b'0');
        }
        for place in 0..decimal.exponent {
            out.put_u8(b'0' + decimal.digit(place));
        }
        if decimal.scale > 0 {
            out.put_u8(b'.');
            for place in decimal.exponent..decimal.exponent + i32::from(decimal.scale) {
                out.put_u8(b'0' + decimal.digit(place));
            }
        }
    }

    /// The binary format; the error means that it cannot hold the number.
    pub(super) fn put_binary(&self, out: &mut BytesMut) -> Result<(), ()> {
        let special = |out: &mut BytesMut, sign: u16| {
            out.put_slice(&[0; 4]);
            out.put_u16(sign);
            out.put_u16(0);
            Ok(())
        };
        let decimal = match self {
            Self::Finite(decimal) => decimal,
            Self::NaN => return special(out, NAN),
            Self::Infinity { negative: true } => return special(out, NEGATIVE_INFINITY),
            Self::Infinity { negative: false } => return special(out, INFINITY),
        };
        // The weight of the first group of four digits, and where that group begins among our digits (at most 3 before the first).
        let weight = if decimal.digits.is_empty() {
            0
        } else {
            (decimal.exponent - 1).div_euclid(4)
        };
        let begin = decimal.exponent - (weight + 1) * 4;
        let length = i32::try_from(decimal.digits.len()).map_err(|_| ())?;
        let groups = if length == 0 {
            0
        } else {
            (length - begin).div_euclid(4) + i32::from((length - begin).rem_euclid(4) != 0)
        };
        out.put_u16(u16::try_from(groups).map_err(|_| ())?);
        out.put_i16(i16::try_from(weight).map_err(|_| ())?);
        out.put_u16(if decimal.negative { NEGATIVE } else { 0 });
        out.put_u16(decimal.scale);
        for group in 0..groups {
            let start = begin + group * 4;
            out.put_u16(
                (start..start + 4).fold(0, |sum, place| sum * 10 + u16::from(decimal.digit(place))),
            );
        }
        Ok(())
    }
}

impl Decimal {
    /// The digit at `place`, counted from the first significant one; zero beyond either end.
    fn digit(&self, place: i32) -> u8 {
        usize::try_from(place)
            .ok()
            .and_then(|place| self.digits.get(place))
            .copied()
            .unwrap_or(0)
    }

    fn to_integer(&self) -> Option<i64> {
        if self.digits.is_empty() {
            return Some(0);
        }
        let places = usize::try_from(self.exponent).ok()?;
        if places > 19 || places < self.digits.len() {
            return None;
        }
        let magnitude = (0..self.exponent).fold(0_i128, |sum, place| {
            sum * 10 + i128::from(self.digit(place))
        });
        i64::try_from(if self.negative { -magnitude } else { magnitude }).ok()
    }
}

fn parse_exponent(text: &[u8]) -> Result<i64, NotANumber> {
    let digits = match text {
        [b'-' | b'+', rest @ ..] => rest,
        rest => rest,
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(NotANumber::Syntax);
    }
    let text = std::str::from_utf8(text).map_err(|_| NotANumber::Syntax)?;
    // Far beyond every limit, but still far from overflowing the sums it goes into.
    text.parse::<i64>()
        .ok()
        .filter(|exponent| exponent.abs() < i64::from(i32::MAX))
        .ok_or(NotANumber::Range)
}
