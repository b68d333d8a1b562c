//! Floats in text: the shortest digits that read back as the same float, laid out as PostgreSQL or as SQLite does.
//!
//! Knows nothing of types or errors.

use bytes::{BufMut, BytesMut};

/// Why a text is no float.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotAFloat {
    /// It is no number.
    Syntax,
    /// It is a number, but beyond the largest or below the smallest.
    Range,
}

/// A double from PostgreSQL's input syntax; infinities and NaN by name.
pub(super) fn parse_float8(text: &str) -> Result<f64, NotAFloat> {
    let text = text.trim_ascii();
    let number: f64 = text.parse().map_err(|_| NotAFloat::Syntax)?;
    check_range(text, number.is_infinite(), number == 0.0)?;
    Ok(number)
}

/// A float from PostgreSQL's input syntax, rounded once.
pub(super) fn parse_float4(text: &str) -> Result<f32, NotAFloat> {
    let text = text.trim_ascii();
    let number: f32 = text.parse().map_err(|_| NotAFloat::Syntax)?;
    check_range(text, number.is_infinite(), number == 0.0)?;
    Ok(number)
}

/// An infinity that was not written as one has overflowed; a zero that has another digit before its exponent has underflowed.
fn check_range(text: &str, infinite: bool, zero: bool) -> Result<(), NotAFloat> {
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    let overflow = infinite && text.bytes().any(|byte| byte.is_ascii_digit());
    let underflow = zero && mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    if overflow || underflow {
        Err(NotAFloat::Range)
    } else {
        Ok(())
    }
}

/// As PostgreSQL prints float8 (`extra_float_digits` above 0).
pub(super) fn put_float8(out: &mut BytesMut, number: f64) {
    if number.is_finite() {
        Digits::of(ryu::Buffer::new().format_finite(number)).put(out, 15, false);
    } else {
        put_not_finite(out, number);
    }
}

/// As PostgreSQL prints float4.
pub(super) fn put_float4(out: &mut BytesMut, number: f32) {
    if number.is_finite() {
        Digits::of(ryu::Buffer::new().format_finite(number)).put(out, 6, false);
    } else {
        put_not_finite(out, f64::from(number));
    }
}

/// As SQLite prints a Real: with a point, always.
pub(super) fn put_real(out: &mut BytesMut, number: f64) {
    if number.is_finite() {
        Digits::of(ryu::Buffer::new().format_finite(number)).put(out, 17, true);
    } else {
        out.put_slice(if number < 0.0 { b"-Inf" } else { b"Inf" });
    }
}

fn put_not_finite(out: &mut BytesMut, number: f64) {
    out.put_slice(if number.is_nan() {
        b"NaN"
    } else if number < 0.0 {
        b"-Infinity"
    } else {
        b"Infinity"
    });
}

/// A number as ±d.ddd × 10^exponent.
pub(super) struct Digits {
    negative: bool,
    /// ASCII, without zeros at either end; a lone "0" for zero.
    digits: [u8; 20],
    /// 1 <= length <= 17
    length: usize,
    exponent: i32,
}

impl Digits {
    /// The shortest digits of a finite double.
    pub(super) fn of_real(number: f64) -> Self {
        Self::of(ryu::Buffer::new().format_finite(number))
    }

    /// From ryu's output: digits, perhaps a point, perhaps an exponent.
    fn of(text: &str) -> Self {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let mut digits = Self {
            negative: false,
            digits: [b'0'; 20],
            length: 0,
            exponent: 0,
        };
        let mut before_point = exponent
            .parse::<i32>()
            .expect("ryu writes its exponents as integers");
        let mut point_seen = false;
        for byte in mantissa.bytes() {
            match byte {
                b'-' => digits.negative = true,
                b'.' => point_seen = true,
                b'0' if digits.length == 0 => before_point -= i32::from(point_seen),
                digit => {
                    digits.digits[digits.length] = digit;
                    digits.length += 1;
                    before_point += i32::from(!point_seen);
                }
            }
        }
        while digits.length > 0 && digits.digits[digits.length - 1] == b'0' {
            digits.length -= 1;
        }
        if digits.length == 0 {
            digits.length = 1;
        } else {
            digits.exponent = before_point - 1;
        }
        digits
    }

    pub(super) fn is_negative(&self) -> bool {
        self.negative
    }

    /// The digits (ASCII) and the exponent of the first one.
    pub(super) fn parts(&self) -> (&[u8], i32) {
        (&self.digits[..self.length], self.exponent)
    }

    /// Scientific from 10^`scientific_from` up and below 10^-4, plain between.
    fn put(&self, out: &mut BytesMut, scientific_from: i32, always_point: bool) {
        let (digits, exponent) = self.parts();
        if self.negative {
            out.put_u8(b'-');
        }
        if exponent < -4 || exponent >= scientific_from {
            out.put_u8(digits[0]);
            if digits.len() > 1 || always_point {
                out.put_u8(b'.');
                out.put_slice(if digits.len() > 1 { &digits[1..] } else { b"0" });
            }
            out.put_slice(if exponent < 0 { b"e-" } else { b"e+" });
            if exponent.abs() < 10 {
                out.put_u8(b'0');
            }
            out.put_slice(itoa::Buffer::new().format(exponent.abs()).as_bytes());
        } else if exponent < 0 {
            out.put_slice(b"0.");
            out.put_bytes(b'0', exponent.unsigned_abs() as usize - 1);
            out.put_slice(digits);
        } else {
            let whole = exponent.unsigned_abs() as usize + 1;
            if digits.len() > whole {
                out.put_slice(&digits[..whole]);
                out.put_u8(b'.');
                out.put_slice(&digits[whole..]);
            } else {
                out.put_slice(digits);
                out.put_bytes(b'0', whole - digits.len());
                if always_point {
                    out.put_slice(b".0");
                }
            }
        }
    }
}
