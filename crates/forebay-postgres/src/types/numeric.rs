//! numeric: decimal numbers of any length, between their text and the server's base of 10,000.
//!
//! Promises: exact, digits and scale, both ways. Texts that are not plain decimal numbers of a sensible size do not fit, and
//! are left to the server.

use bytes::{BufMut, BytesMut};

use super::scratch::Scratch;
use forebay_write::Value;

const POSITIVE: u16 = 0;
const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xc000;
const INFINITY: u16 = 0xd000;
const NEGATIVE_INFINITY: u16 = 0xf000;
/// How many decimal digits are in one of the server's.
const GROUP: i32 = 4;
/// Longer numbers are read by the server, which knows its own limits.
const DIGITS_MAX: usize = 1_000;
const EXPONENT_MAX: i32 = 1_000;

/// Whether [`write()`] will write it.
pub(super) fn fits(value: &Value) -> bool {
    match value {
        Value::Integer(_) | Value::Real(_) => true,
        Value::Text(text) => Decimal::of(text.as_bytes()).is_some(),
        _ => false,
    }
}

/// Writes the binary form; `None`, with nothing written, if it does not fit.
pub(super) fn write(value: &Value, out: &mut BytesMut) -> Option<()> {
    match value {
        Value::Integer(integer) => integer_in_groups(*integer, out),
        Value::Real(real) if real.is_nan() => header(0, 0, NAN, 0, out),
        Value::Real(real) if real.is_infinite() => {
            let sign = if *real > 0.0 { INFINITY } else { NEGATIVE_INFINITY };
            header(0, 0, sign, 0, out);
        }
        Value::Real(real) => Decimal::of(Scratch::scientific(*real).as_bytes())?.write(out),
        Value::Text(text) => Decimal::of(text.as_bytes())?.write(out),
        _ => return None,
    }
    Some(())
}

fn header(groups: u16, weight: i16, sign: u16, scale: u16, out: &mut BytesMut) {
    out.put_u16(groups);
    out.put_i16(weight);
    out.put_u16(sign);
    out.put_u16(scale);
}

fn integer_in_groups(integer: i64, out: &mut BytesMut) {
    // 10,000^5 is more than any of them.
    let mut groups = [0_u16; 5];
    let mut left = integer.unsigned_abs();
    let mut count = 0;
    while left > 0 {
        groups[count] = u16::try_from(left % 10_000).expect("a remainder of 10,000");
        left /= 10_000;
        count += 1;
    }
    let used = groups[..count].iter().rev();
    let sign = if integer < 0 { NEGATIVE } else { POSITIVE };
    let length = u16::try_from(count).expect("at most 5");
    header(
        length,
        i16::try_from(count).expect("at most 5") - i16::from(count > 0),
        sign,
        0,
        out,
    );
    for group in used {
        out.put_u16(*group);
    }
}

/// `±whole.fraction e exponent`.
struct Decimal<'a> {
    negative: bool,
    /// ASCII digits, as those of `fraction`; not both are empty.
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i32,
}

impl<'a> Decimal<'a> {
    fn of(text: &'a [u8]) -> Option<Self> {
        let (negative, text) = signed(text);
        let (whole, text) = digits(text);
        let (fraction, text) = match text.split_first() {
            Some((b'.', rest)) => digits(rest),
            _ => (&text[..0], text),
        };
        let exponent = match text.split_first() {
            None => 0,
            Some((b'e' | b'E', rest)) => {
                let (below_one, rest) = signed(rest);
                let (digits, rest) = digits(rest);
                if !rest.is_empty() || !(1..=4).contains(&digits.len()) {
                    return None;
                }
                let size = digits.iter().fold(0, |size, digit| size * 10 + i32::from(digit - b'0'));
                if below_one { -size } else { size }
            }
            Some(_) => return None,
        };
        let length = whole.len() + fraction.len();
        ((1..=DIGITS_MAX).contains(&length) && exponent.abs() <= EXPONENT_MAX).then_some(Self {
            negative,
            whole,
            fraction,
            exponent,
        })
    }

    fn digit(&self, index: usize) -> u8 {
        let digit = match index.checked_sub(self.whole.len()) {
            None => self.whole[index],
            Some(index) => self.fraction[index],
        };
        digit - b'0'
    }

    fn write(&self, out: &mut BytesMut) {
        let size = |length: usize| i32::try_from(length).expect("at most DIGITS_MAX");
        let length = self.whole.len() + self.fraction.len();
        let scale = u16::try_from((size(self.fraction.len()) - self.exponent).max(0)).expect("at most both limits");
        let first = (0..length).find(|&index| self.digit(index) != 0);
        let last = (0..length).rfind(|&index| self.digit(index) != 0);
        let (Some(first), Some(last)) = (first, last) else {
            return header(0, 0, POSITIVE, scale, out);
        };
        // The power of ten that the digit before index 0 would have.
        let top = size(self.whole.len()) + self.exponent;
        let power = |index: usize| top - 1 - size(index);
        let weight = power(first).div_euclid(GROUP);
        let lowest = power(last).div_euclid(GROUP);
        let sign = if self.negative { NEGATIVE } else { POSITIVE };
        let within = "both limits are some thousands of digits";
        header(
            u16::try_from(weight - lowest + 1).expect(within),
            i16::try_from(weight).expect(within),
            sign,
            scale,
            out,
        );
        for group in (lowest..=weight).rev() {
            let mut value = 0;
            for power in (group * GROUP..(group + 1) * GROUP).rev() {
                let digit = usize::try_from(top - 1 - power)
                    .ok()
                    .filter(|index| (first..=last).contains(index))
                    .map_or(0, |index| self.digit(index));
                value = value * 10 + u16::from(digit);
            }
            out.put_u16(value);
        }
    }
}

fn signed(text: &[u8]) -> (bool, &[u8]) {
    match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    }
}

fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    text.split_at(length)
}

/// The text of a binary numeric, as the server prints it; `None` if it is none.
pub(super) fn read(raw: &[u8]) -> Option<String> {
    let (header, groups) = raw.split_first_chunk::<8>()?;
    let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let (count, weight, sign, scale) = (
        usize::from(word(0)),
        i32::from(word(2).cast_signed()),
        word(4),
        usize::from(word(6)),
    );
    match sign {
        NAN => return Some("NaN".to_owned()),
        INFINITY => return Some("Infinity".to_owned()),
        NEGATIVE_INFINITY => return Some("-Infinity".to_owned()),
        POSITIVE | NEGATIVE if groups.len() == count * 2 => {}
        _ => return None,
    }
    let group = |weight_of_it: i32| {
        usize::try_from(weight - weight_of_it)
            .ok()
            .filter(|index| *index < count)
            .map_or(0, |index| {
                u16::from_be_bytes([groups[index * 2], groups[index * 2 + 1]])
            })
    };
    let whole_groups = usize::try_from(weight + 1).unwrap_or(0);
    let mut text = String::with_capacity(whole_groups * 4 + scale + 3);
    if sign == NEGATIVE {
        text.push('-');
    }
    if weight < 0 {
        text.push('0');
    }
    for position in (0..=weight).rev() {
        push_group(group(position), position < weight, &mut text);
    }
    if scale > 0 {
        text.push('.');
        let end = text.len() + scale;
        let mut position = -1;
        while text.len() < end {
            push_group(group(position), true, &mut text);
            position -= 1;
        }
        text.truncate(end);
    }
    Some(text)
}

fn push_group(group: u16, padded: bool, text: &mut String) {
    let mut divisor = 1_000;
    let mut leading = !padded;
    while divisor > 0 {
        let digit = group / divisor % 10;
        leading &= digit == 0 && divisor > 1;
        if !leading {
            text.push(char::from(b'0' + u8::try_from(digit).expect("a remainder of 10")));
        }
        divisor /= 10;
    }
}
