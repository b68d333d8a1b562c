//! numeric's binary format: digits of base 10,000, the weight of the first, a sign, and how many decimal digits stand behind the point.
//!
//! Promises: text and binary carry the same digits and the same scale. Knows no arithmetic and no columns.

use bytes::{Buf, BufMut};

use forebay_pg_wire::error::{WireError, sqlstate};

/// PostgreSQL's own limits: digits before the point, and after it.
const WHOLE_DIGITS_MAX: usize = 131_072;
const SCALE_MAX: u16 = 0x3FFF;

const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xC000;
const INFINITY: u16 = 0xD000;
const NEGATIVE_INFINITY: u16 = 0xF000;

/// Whether a text is a numeric as PostgreSQL writes it, which is its stored form.
pub(super) fn is_written(text: &str) -> bool {
    if matches!(text, "NaN" | "Infinity" | "-Infinity") {
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

/// Appends the binary format of a written numeric.
pub(super) fn put_binary(text: &str, out: &mut impl BufMut) {
    let sign = match text {
        "NaN" => NAN,
        "Infinity" => INFINITY,
        "-Infinity" => NEGATIVE_INFINITY,
        _ => return put_finite(text, out),
    };
    out.put_u32(0);
    out.put_u16(sign);
    // PostgreSQL's infinities have a bit of their own where the scale is.
    out.put_u16(if sign == NAN { 0 } else { 0x20 });
}

fn put_finite(text: &str, out: &mut impl BufMut) {
    let unsigned = text.trim_start_matches('-');
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    // The first group may be short at its front, the last one at its end.
    let groups_before = whole.len().div_ceil(4);
    let missing = groups_before * 4 - whole.len();
    let digit_count = missing + whole.len() + fraction.len();
    let digit = |place: usize| match place.checked_sub(missing) {
        None => 0,
        Some(place) => whole
            .as_bytes()
            .get(place)
            .or_else(|| fraction.as_bytes().get(place - whole.len()))
            .map_or(0, |digit| u16::from(digit - b'0')),
    };
    let mut groups: Vec<u16> = (0..digit_count.div_ceil(4))
        .map(|group| (0..4).fold(0, |sum, place| sum * 10 + digit(group * 4 + place)))
        .collect();
    while groups.last() == Some(&0) {
        groups.pop();
    }
    let zeros = groups.iter().take_while(|group| **group == 0).count();
    groups.drain(..zeros);
    let places = |count: usize| i64::try_from(count).expect("a numeric has at most 147,455 digits");
    let weight = if groups.is_empty() {
        0
    } else {
        places(groups_before) - 1 - places(zeros)
    };
    out.put_int(places(groups.len()), 2);
    out.put_int(weight, 2);
    out.put_u16(if text.starts_with('-') { NEGATIVE } else { 0 });
    out.put_int(places(fraction.len()), 2);
    for group in groups {
        out.put_u16(group);
    }
}

/// Reads the binary format; the numeric as PostgreSQL writes it. Digits behind the scale are cut off, as PostgreSQL does.
pub(super) fn from_binary(mut bytes: &[u8]) -> Result<String, WireError> {
    if bytes.len() < 8 {
        return Err(invalid("insufficient data left in message"));
    }
    let count = usize::from(bytes.get_u16());
    let weight = i32::from(bytes.get_i16());
    let sign = bytes.get_u16();
    let scale = bytes.get_u16();
    if !matches!(sign, 0 | NEGATIVE | NAN | INFINITY | NEGATIVE_INFINITY) {
        return Err(invalid("invalid sign in external \"numeric\" value"));
    }
    if scale > SCALE_MAX {
        return Err(invalid("invalid scale in external \"numeric\" value"));
    }
    if bytes.len() < count * 2 {
        return Err(invalid("insufficient data left in message"));
    }
    if bytes.len() > count * 2 {
        return Err(invalid("incorrect binary data format"));
    }
    let mut groups = Vec::with_capacity(count);
    while bytes.has_remaining() {
        let group = bytes.get_u16();
        if group > 9_999 {
            return Err(invalid("invalid digit in external \"numeric\" value"));
        }
        groups.push(group);
    }
    Ok(match sign {
        NAN => "NaN".to_owned(),
        INFINITY => "Infinity".to_owned(),
        NEGATIVE_INFINITY => "-Infinity".to_owned(),
        _ => finite(sign == NEGATIVE, &groups, weight, usize::from(scale)),
    })
}

fn finite(negative: bool, groups: &[u16], weight: i32, scale: usize) -> String {
    let group = |place: i32| {
        usize::try_from(weight - place)
            .ok()
            .and_then(|index| groups.get(index))
            .copied()
            .unwrap_or(0)
    };
    let mut out = String::new();
    for place in (0..=weight).rev() {
        push_group(group(place), &mut out);
    }
    let whole = out.trim_start_matches('0').len();
    out.drain(..out.len() - whole);
    if out.is_empty() {
        out.push('0');
    }
    if scale > 0 {
        out.push('.');
        let end = out.len() + scale;
        let mut place = -1;
        while out.len() < end {
            push_group(group(place), &mut out);
            place -= 1;
        }
        out.truncate(end);
    }
    if negative && out.bytes().any(|byte| matches!(byte, b'1'..=b'9')) {
        out.insert(0, '-');
    }
    out
}

fn push_group(group: u16, out: &mut String) {
    for unit in [1_000, 100, 10, 1] {
        let digit = u32::from(group / unit % 10);
        out.push(char::from_digit(digit, 10).expect("a remainder of ten"));
    }
}

fn invalid(message: &str) -> WireError {
    WireError::new(sqlstate::INVALID_BINARY_REPRESENTATION, message)
}
