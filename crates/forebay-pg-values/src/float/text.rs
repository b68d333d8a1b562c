//! The text of floats: what C's strtod reads, and the shortest digits that read back as the same float.
//!
//! PostgreSQL writes with Ryu, and takes no digits that lie exactly half way to a neighbouring float; other writers do where reading
//! rounds to even (`1e+23` there is `9.999999999999999e+22` here and in PostgreSQL). Exponents are written from 1e+15 on (1e+06 for
//! real) and below 1e-04.

use std::fmt::Write;

use super::{store4, store8};
use crate::integer::is_space;
use crate::{Owned, Result, ValueError};

/// A number's extent in a text, and what is known of it without reading it.
enum Token<'a> {
    /// Decimal digits, maybe with a point and an exponent.
    Decimal {
        number: &'a str,
        zero: bool,
    },
    Infinity {
        negative: bool,
    },
    Nan,
}

/// Splits a number off the front of a text as C's strtod does; nothing if there is none.
fn split<'a>(text: &'a str, type_name: &str) -> Result<Option<(Token<'a>, &'a str)>> {
    let bytes = text.as_bytes();
    let signed = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let negative = bytes.first() == Some(&b'-');
    let after = &bytes[signed..];
    let begins = |word: &str| after.len() >= word.len() && after[..word.len()].eq_ignore_ascii_case(word.as_bytes());
    for word in ["infinity", "inf"] {
        if begins(word) {
            return Ok(Some((Token::Infinity { negative }, &text[signed + word.len()..])));
        }
    }
    if begins("nan") {
        return Ok(Some((Token::Nan, &text[signed + 3..])));
    }
    if begins("0x")
        && after
            .get(2)
            .is_some_and(|byte| byte.is_ascii_hexdigit() || *byte == b'.')
    {
        return Err(ValueError::unsupported(format!(
            "hexadecimal text of type {type_name} is"
        )));
    }
    let digits = |from: usize| {
        bytes[from.min(bytes.len())..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    let whole = digits(signed);
    let mut end = signed + whole;
    let mut count = whole;
    if bytes.get(end) == Some(&b'.') {
        let fraction = digits(end + 1);
        count += fraction;
        end += 1 + fraction;
    }
    if count == 0 {
        return Ok(None);
    }
    let zero = bytes[signed..end].iter().all(|byte| matches!(byte, b'0' | b'.'));
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    let number = &text[..end];
    Ok(Some((Token::Decimal { number, zero }, &text[end..])))
}

fn parse<F: std::str::FromStr>(
    text: &str,
    type_name: &str,
    special: impl Fn(f64) -> F,
    fits: impl Fn(&F, bool) -> bool,
) -> Result<F> {
    let invalid = || ValueError::invalid_text("22P02", type_name, text);
    let trimmed = text.trim_start_matches(|character: char| u8::try_from(character).is_ok_and(is_space));
    let (token, rest) = split(trimmed, type_name)?.ok_or_else(invalid)?;
    let float = match token {
        Token::Nan => special(f64::NAN),
        Token::Infinity { negative } => special(if negative { f64::NEG_INFINITY } else { f64::INFINITY }),
        Token::Decimal { number, zero } => {
            let float = number.parse().map_err(|_| invalid())?;
            if !fits(&float, zero) {
                return Err(ValueError::new(
                    "22003",
                    format!("\"{number}\" is out of range for type {type_name}"),
                ));
            }
            float
        }
    };
    if !rest.bytes().all(is_space) {
        return Err(invalid());
    }
    Ok(float)
}

/// Reads a double precision.
pub(crate) fn parse8(text: &str) -> Result<Owned> {
    store8(parse(
        text,
        "double precision",
        |float| float,
        |float: &f64, zero| float.is_finite() && (zero || *float != 0.0),
    )?)
}

/// Reads a real.
pub(crate) fn parse4(text: &str) -> Result<Owned> {
    #[allow(clippy::cast_possible_truncation, reason = "NaN and infinities")]
    let special = |float: f64| float as f32;
    store4(parse(text, "real", special, |float: &f32, zero| {
        float.is_finite() && (zero || *float != 0.0)
    })?)
}

/// Writes a double precision.
pub(crate) fn write8(float: f64, out: &mut String) {
    if write_special(float, out) {
        return;
    }
    let bits = float.abs().to_bits();
    let mantissa = bits & ((1 << 52) - 1);
    let exponent = i32::try_from(bits >> 52).expect("eleven bits");
    let parts = if exponent == 0 {
        (mantissa, -1074)
    } else {
        (mantissa | 1 << 52, exponent - 1075)
    };
    let narrow = mantissa == 0 && exponent > 1;
    let magnitude = float.abs();
    let shortest = ryu::Buffer::new().format_finite(magnitude).to_owned();
    let digits = inside(&shortest, parts, narrow, |digits| {
        let text = format!("{magnitude:.digits$e}");
        (text.parse() == Ok(magnitude)).then_some(text)
    });
    layout(&digits, 15, out);
}

/// Writes a real.
pub(crate) fn write4(float: f32, out: &mut String) {
    if write_special(f64::from(float), out) {
        return;
    }
    let bits = float.abs().to_bits();
    let mantissa = bits & ((1 << 23) - 1);
    let exponent = i32::try_from(bits >> 23).expect("eight bits");
    let parts = if exponent == 0 {
        (mantissa, -149)
    } else {
        (mantissa | 1 << 23, exponent - 150)
    };
    let narrow = mantissa == 0 && exponent > 1;
    let magnitude = float.abs();
    let shortest = ryu::Buffer::new().format_finite(magnitude).to_owned();
    let digits = inside(&shortest, (u64::from(parts.0), parts.1), narrow, |digits| {
        let text = format!("{magnitude:.digits$e}");
        (text.parse() == Ok(magnitude)).then_some(text)
    });
    layout(&digits, 6, out);
}

/// Writes the sign, and all of what has no digits.
fn write_special(float: f64, out: &mut String) -> bool {
    if float.is_nan() {
        out.push_str("NaN");
        return true;
    }
    if float.is_sign_negative() {
        out.push('-');
    }
    if float.is_infinite() {
        out.push_str("Infinity");
    } else if float == 0.0 {
        out.push('0');
    }
    float.is_infinite() || float == 0.0
}

/// Digits without a point or zeros around them, and the exponent of the first.
fn decompose(text: &str) -> (String, i32) {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().expect("an exponent is an integer");
    let point = mantissa.find('.').unwrap_or(mantissa.len());
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let significant = digits.trim_start_matches('0');
    let zeros = digits.len() - significant.len();
    let first = i32::try_from(point).expect("few digits") - 1 - i32::try_from(zeros).expect("few digits");
    (significant.trim_end_matches('0').to_owned(), exponent + first)
}

/// The shortest digits if they are not exactly on the border to a neighbour, else the shortest that are inside.
fn inside(shortest: &str, parts: (u64, i32), narrow: bool, longer: impl Fn(usize) -> Option<String>) -> (String, i32) {
    let found = decompose(shortest);
    if parts.0 % 2 == 1 || !on_border(&found, parts, narrow) {
        return found;
    }
    // As many digits as decide between any two floats are enough.
    (found.0.len()..18)
        .filter_map(&longer)
        .map(|text| decompose(&text))
        .find(|candidate| !on_border(candidate, parts, narrow))
        .unwrap_or(found)
}

/// Whether the decimal lies exactly half way between the float `mantissa * 2^exponent` and a neighbour. `narrow`: the one below is only
/// half as far away as the one above.
fn on_border((digits, first): &(String, i32), (mantissa, exponent): (u64, i32), narrow: bool) -> bool {
    let Ok(decimal) = digits.parse::<u128>() else {
        return false;
    };
    let ten = first - i32::try_from(digits.len()).expect("few digits") + 1;
    let lower = if narrow {
        (u128::from(mantissa) * 4 - 1, exponent - 2)
    } else {
        (u128::from(mantissa) * 2 - 1, exponent - 1)
    };
    let upper = (u128::from(mantissa) * 2 + 1, exponent - 1);
    [lower, upper].into_iter().any(|border| equal(decimal, ten, border))
}

/// Whether `decimal * 10^ten` is `odd * 2^two`.
fn equal(decimal: u128, ten: i32, (odd, two): (u128, i32)) -> bool {
    // The odd parts must be equal, and the powers of two.
    let Some(fives) = 5_u128.checked_pow(ten.unsigned_abs()).filter(|_| ten.abs() <= 27) else {
        return false;
    };
    let scaled = if ten >= 0 {
        decimal.checked_mul(fives)
    } else {
        decimal.is_multiple_of(fives).then(|| decimal / fives)
    };
    let Some(scaled) = scaled.filter(|scaled| *scaled != 0) else {
        return false;
    };
    let zeros = scaled.trailing_zeros();
    scaled >> zeros == odd && i32::try_from(zeros).is_ok_and(|zeros| zeros + ten == two)
}

/// Lays digits out as PostgreSQL does.
fn layout((digits, exponent): &(String, i32), fixed_below: i32, out: &mut String) {
    let exponent = *exponent;
    if !(-4..fixed_below).contains(&exponent) {
        let (first, rest) = digits.split_at(1);
        out.push_str(first);
        if !rest.is_empty() {
            out.push('.');
            out.push_str(rest);
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        write!(out, "e{sign}{:02}", exponent.unsigned_abs()).expect("a String takes everything");
        return;
    }
    let Ok(point) = usize::try_from(exponent + 1) else {
        out.push_str("0.");
        out.extend(std::iter::repeat_n('0', exponent.unsigned_abs() as usize - 1));
        out.push_str(digits);
        return;
    };
    if point == 0 {
        out.push_str("0.");
        out.push_str(digits);
    } else if digits.len() <= point {
        out.push_str(digits);
        out.extend(std::iter::repeat_n('0', point - digits.len()));
    } else {
        let (whole, fraction) = digits.split_at(point);
        out.push_str(whole);
        out.push('.');
        out.push_str(fraction);
    }
}
