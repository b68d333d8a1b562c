//! Parts of texts, by characters: length, substring, overlay, left, right, reverse, repeat; and concatenation.

use std::ops::Range;

use super::{ALLOCATION_BYTES_MAX, check_length, length, offset_of, too_large};
use crate::{Arguments, Function, Owned, Result, ValueError};

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new("textcat", |arguments| {
        Ok(Owned::Text([arguments.text(0)?, arguments.text(1)?].concat()))
    }),
    Function::new("textlen", |arguments| Ok(length(arguments.text(0)?).into())),
    Function::new("bpcharlen", |arguments| {
        Ok(length(arguments.text(0)?.trim_end_matches(' ')).into())
    }),
    Function::new("textoctetlen", octets),
    Function::new("bpcharoctetlen", octets),
    Function::new("bit_length(text)", |arguments| bits(arguments.text(0)?.len())),
    Function::new("text_substr", |arguments| {
        let (start, count) = (arguments.integer(1)?, arguments.integer(2)?);
        Ok(substring(arguments.text(0)?, start, Some(count))?.into())
    }),
    Function::new("text_substr_no_len", |arguments| {
        Ok(substring(arguments.text(0)?, arguments.integer(1)?, None)?.into())
    }),
    Function::new("textoverlay", |arguments| {
        overlay(
            arguments.text(0)?,
            arguments.text(1)?,
            arguments.integer(2)?,
            arguments.integer(3)?,
        )
    }),
    Function::new("textoverlay_no_len", |arguments| {
        let by = arguments.text(1)?;
        overlay(arguments.text(0)?, by, arguments.integer(2)?, length(by))
    }),
    Function::new("text_left", |arguments| {
        Ok(left(arguments.text(0)?, arguments.integer(1)?).into())
    }),
    Function::new("text_right", |arguments| {
        Ok(right(arguments.text(0)?, arguments.integer(1)?).into())
    }),
    Function::new("text_reverse", |arguments| {
        Ok(Owned::Text(arguments.text(0)?.chars().rev().collect()))
    }),
    Function::new("repeat", |arguments| repeat(arguments.text(0)?, arguments.integer(1)?)),
];

fn octets(arguments: Arguments<'_>) -> Result<Owned> {
    Ok(bytes(arguments.text(0)?.len()).into())
}

fn bytes(count: usize) -> i64 {
    i64::try_from(count).expect("a value is no longer than memory")
}

pub(crate) fn bits(count: usize) -> Result<Owned> {
    match i32::try_from(bytes(count) * 8) {
        Ok(bits) => Ok(i64::from(bits).into()),
        Err(_) => Err(ValueError::out_of_range("integer")),
    }
}

/// Where a part from `start` (counted from 1, maybe before the value) of `count` lies, counted from 0; no end: to the value's end.
pub(crate) fn part(start: i64, count: Option<i64>) -> Result<Range<usize>> {
    let first = usize::try_from(start.max(1) - 1).expect("at least 0");
    let end = match count {
        Some(count) if count < 0 => {
            return Err(ValueError::new("22011", "negative substring length not allowed"));
        }
        // The end counts from the start as given, also where that lies before the value; beyond int4 it is the value's end.
        Some(count) => match i32::try_from(start + count) {
            Ok(end) => usize::try_from((i64::from(end) - 1).max(0)).expect("at least 0"),
            Err(_) => usize::MAX,
        },
        None => usize::MAX,
    };
    Ok(first..end.max(first))
}

/// `substring(text FROM start FOR count)`.
pub fn substring(text: &str, start: i64, count: Option<i64>) -> Result<&str> {
    let part = part(start, count)?;
    let rest = &text[offset_of(text, part.start)..];
    Ok(&rest[..offset_of(rest, part.len())])
}

/// Where the part to be replaced ends: both the kept parts are substrings of the value.
pub(crate) fn overlay_end(start: i64, count: i64) -> Result<i64> {
    if start <= 0 {
        return Err(ValueError::new("22011", "negative substring length not allowed"));
    }
    match i32::try_from(start + count) {
        Ok(end) => Ok(i64::from(end)),
        Err(_) => Err(ValueError::out_of_range("integer")),
    }
}

fn overlay(text: &str, by: &str, start: i64, count: i64) -> Result<Owned> {
    let end = overlay_end(start, count)?;
    let (before, after) = (substring(text, 1, Some(start - 1))?, substring(text, end, None)?);
    Ok(Owned::Text([before, by, after].concat()))
}

/// The first `count` characters, or all but the last `-count`.
pub fn left(text: &str, count: i64) -> &str {
    let count = if count < 0 { length(text) + count } else { count };
    &text[..offset_of(text, usize::try_from(count).unwrap_or(0))]
}

/// The last `count` characters, or all but the first `-count`.
pub fn right(text: &str, count: i64) -> &str {
    let skipped = if count == i64::from(i32::MIN) {
        // PostgreSQL's int4 has no such positive number, and skips nothing.
        0
    } else if count < 0 {
        -count
    } else {
        length(text) - count
    };
    &text[offset_of(text, usize::try_from(skipped).unwrap_or(0))..]
}

fn repeat(text: &str, count: i64) -> Result<Owned> {
    let count = count.max(0);
    // The four bytes are PostgreSQL's own, before every value.
    if bytes(text.len()).saturating_mul(count).saturating_add(4) > ALLOCATION_BYTES_MAX {
        return Err(too_large());
    }
    check_length(bytes(text.len()).saturating_mul(count))?;
    Ok(Owned::Text(text.repeat(usize::try_from(count).unwrap_or(0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_answers() {
        assert_eq!(substring("héllo", 2, Some(3)), Ok("éll"));
        assert_eq!(substring("héllo", -1, Some(3)), Ok("h"));
        assert_eq!(substring("héllo", -1, Some(2)), Ok(""));
        assert_eq!(substring("héllo", 3, Some(i64::from(i32::MAX))), Ok("llo"));
        assert_eq!(
            substring("héllo", i64::from(i32::MIN), Some(i64::from(i32::MAX))),
            Ok("")
        );
        assert_eq!(substring("héllo", 1, Some(-1)).expect_err("negative").sqlstate, "22011");
        assert_eq!(
            (left("héllo", -2), right("héllo", -2), right("héllo", 2)),
            ("hél", "llo", "lo")
        );
        assert_eq!(
            (left("é", i64::from(i32::MIN)), right("é", i64::from(i32::MIN))),
            ("", "é")
        );
        assert_eq!(overlay("Txxxxas", "hom", 2, 4), Ok(Owned::from("Thomas")));
        assert_eq!(
            overlay("abc", "x", i64::from(i32::MAX), 3)
                .expect_err("beyond")
                .sqlstate,
            "22003"
        );
        assert_eq!(repeat("abc", 1_000_000_000), Err(too_large()));
    }
}
