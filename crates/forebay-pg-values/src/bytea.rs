//! bytea: input as hexadecimal digits or with escapes, output as hexadecimal digits, and its functions.

use memchr::memmem;

use crate::text::slice::{bits, overlay_end, part};
use crate::{Arguments, Function, Owned, Result, ValueError};

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new("byteain", |arguments| Ok(Owned::Blob(parse(arguments.text(0)?)?))),
    Function::new("byteaout", |arguments| {
        let mut out = String::new();
        write(arguments.blob(0)?, &mut out);
        Ok(Owned::Text(out))
    }),
    Function::new("byteacat", |arguments| {
        Ok(Owned::Blob([arguments.blob(0)?, arguments.blob(1)?].concat()))
    }),
    Function::new("byteaoctetlen", |arguments| Ok(count(arguments.blob(0)?).into())),
    Function::new("bit_length(bytea)", |arguments| bits(arguments.blob(0)?.len())),
    Function::new("bytea_bit_count", |arguments| {
        Ok(arguments
            .blob(0)?
            .iter()
            .map(|byte| i64::from(byte.count_ones()))
            .sum::<i64>()
            .into())
    }),
    Function::new("bytea_substr", |arguments| {
        let (start, count) = (arguments.integer(1)?, arguments.integer(2)?);
        Ok(Owned::Blob(substring(arguments.blob(0)?, start, Some(count))?.to_vec()))
    }),
    Function::new("bytea_substr_no_len", |arguments| {
        Ok(Owned::Blob(
            substring(arguments.blob(0)?, arguments.integer(1)?, None)?.to_vec(),
        ))
    }),
    Function::new("byteaoverlay", |arguments| {
        overlay(
            arguments.blob(0)?,
            arguments.blob(1)?,
            arguments.integer(2)?,
            arguments.integer(3)?,
        )
    }),
    Function::new("byteaoverlay_no_len", |arguments| {
        let by = arguments.blob(1)?;
        overlay(arguments.blob(0)?, by, arguments.integer(2)?, count(by))
    }),
    Function::new("byteapos", |arguments| {
        let found = memmem::find(arguments.blob(0)?, arguments.blob(1)?);
        Ok(found
            .map_or(0, |at| i64::try_from(at).expect("a value is no longer than memory") + 1)
            .into())
    }),
    Function::new("bytealtrim", |arguments| trim(arguments, true, false)),
    Function::new("byteartrim", |arguments| trim(arguments, false, true)),
    Function::new("byteatrim", |arguments| trim(arguments, true, true)),
    Function::new("byteaGetByte", |arguments| {
        let (bytes, place) = (arguments.blob(0)?, arguments.integer(1)?);
        Ok(i64::from(bytes[index(place, bytes.len())?]).into())
    }),
    Function::new("byteaSetByte", |arguments| {
        let (mut bytes, place) = (arguments.blob(0)?.to_vec(), arguments.integer(1)?);
        let at = index(place, bytes.len())?;
        bytes[at] = (arguments.integer(2)? & 0xff) as u8;
        Ok(Owned::Blob(bytes))
    }),
    Function::new("byteaGetBit", |arguments| {
        let (bytes, place) = (arguments.blob(0)?, arguments.integer(1)?);
        let at = index(place, bytes.len() * 8)?;
        Ok(i64::from((bytes[at / 8] >> (at % 8)) & 1).into())
    }),
    Function::new("byteaSetBit", |arguments| {
        let (mut bytes, place) = (arguments.blob(0)?.to_vec(), arguments.integer(1)?);
        let at = index(place, bytes.len() * 8)?;
        match arguments.integer(2)? {
            0 => bytes[at / 8] &= !(1 << (at % 8)),
            1 => bytes[at / 8] |= 1 << (at % 8),
            _ => return Err(ValueError::new("22023", "new bit must be 0 or 1")),
        }
        Ok(Owned::Blob(bytes))
    }),
];

fn count(bytes: &[u8]) -> i64 {
    i64::try_from(bytes.len()).expect("a value is no longer than memory")
}

fn index(place: i64, count: usize) -> Result<usize> {
    usize::try_from(place)
        .ok()
        .filter(|place| *place < count)
        .ok_or_else(|| {
            let last = i64::try_from(count).unwrap_or(i64::MAX) - 1;
            ValueError::new("2202E", format!("index {place} out of valid range, 0..{last}"))
        })
}

fn substring(bytes: &[u8], start: i64, count: Option<i64>) -> Result<&[u8]> {
    let part = part(start, count)?;
    let rest = bytes.get(part.start..).unwrap_or(&[]);
    Ok(&rest[..part.len().min(rest.len())])
}

fn overlay(bytes: &[u8], by: &[u8], start: i64, count: i64) -> Result<Owned> {
    let end = overlay_end(start, count)?;
    let (before, after) = (substring(bytes, 1, Some(start - 1))?, substring(bytes, end, None)?);
    Ok(Owned::Blob([before, by, after].concat()))
}

fn trim(arguments: Arguments<'_>, left: bool, right: bool) -> Result<Owned> {
    let (mut bytes, set) = (arguments.blob(0)?, arguments.blob(1)?);
    while let ([first, rest @ ..], true) = (bytes, left) {
        if !set.contains(first) {
            break;
        }
        bytes = rest;
    }
    while let ([rest @ .., last], true) = (bytes, right) {
        if !set.contains(last) {
            break;
        }
        bytes = rest;
    }
    Ok(Owned::Blob(bytes.to_vec()))
}

/// Input: `\x` and hexadecimal digits, or text with escapes.
pub fn parse(text: &str) -> Result<Vec<u8>> {
    match text.strip_prefix("\\x") {
        Some(digits) => parse_hex(digits),
        None => parse_escape(text),
    }
}

/// Output: `\x` and hexadecimal digits.
pub fn write(bytes: &[u8], out: &mut String) {
    out.push_str("\\x");
    write_hex(bytes, out);
}

/// Hexadecimal digits alone.
pub fn write_hex(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.reserve(bytes.len() * 2);
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

/// Hexadecimal digits in pairs, with white space between the pairs.
pub(crate) fn parse_hex(text: &str) -> Result<Vec<u8>> {
    let digit = |character: char| {
        let digit = character.to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        digit.ok_or_else(|| ValueError::new("22023", format!("invalid hexadecimal digit: \"{character}\"")))
    };
    let mut out = Vec::with_capacity(text.len() / 2);
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if matches!(character, ' ' | '\n' | '\t' | '\r') {
            continue;
        }
        let high = digit(character)?;
        let Some(low) = characters.next() else {
            return Err(ValueError::new(
                "22023",
                "invalid hexadecimal data: odd number of digits",
            ));
        };
        out.push((high << 4) | digit(low)?);
    }
    Ok(out)
}

/// Bytes as they are, `\\`, and `\ooo`.
pub(crate) fn parse_escape(text: &str) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    loop {
        rest = match rest {
            [] => return Ok(out),
            [b'\\', b'\\', rest @ ..] => {
                out.push(b'\\');
                rest
            }
            [
                b'\\',
                high @ b'0'..=b'3',
                middle @ b'0'..=b'7',
                low @ b'0'..=b'7',
                rest @ ..,
            ] => {
                out.push(((high - b'0') << 6) | ((middle - b'0') << 3) | (low - b'0'));
                rest
            }
            [b'\\', ..] => return Err(ValueError::new("22P02", "invalid input syntax for type bytea")),
            [byte, rest @ ..] => {
                out.push(*byte);
                rest
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_and_output() {
        assert_eq!(parse("\\xDE aD\n").as_deref(), Ok([0xde, 0xad].as_slice()));
        assert_eq!(
            parse("a\\\\\\000\\377é").as_deref(),
            Ok([b'a', b'\\', 0, 255, 0xc3, 0xa9].as_slice())
        );
        assert_eq!(
            parse("\\xabc").expect_err("odd").message,
            "invalid hexadecimal data: odd number of digits"
        );
        assert_eq!(
            parse("\\xzé").expect_err("no digit").message,
            "invalid hexadecimal digit: \"z\""
        );
        assert_eq!(parse("\\12").expect_err("cut").sqlstate, "22P02");
        let mut out = String::new();
        write(&[0, 0xab], &mut out);
        assert_eq!(out, "\\x00ab");
    }
}
