//! Input of text, varchar(n), char(n), name and `"char"`, and the casts among them.
//!
//! A modifier is PostgreSQL's: the declared length and four more, or -1. Texts come as `&str`, so that what is not UTF-8 was refused
//! before ([`from_utf8`]); a zero byte is refused here.

use super::{length, offset_of};
use crate::{Arguments, Function, Owned, Result, ValueError};

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new("textin", |arguments| Ok(parse_text(arguments.text(0)?)?.into())),
    Function::new("textout", same),
    Function::new("varcharin", |arguments| {
        Ok(parse_varchar(arguments.text(0)?, arguments.integer(2)?)?.into())
    }),
    Function::new("varcharout", same),
    Function::new("bpcharin", |arguments| {
        Ok(parse_bpchar(arguments.text(0)?, arguments.integer(2)?)?.into())
    }),
    Function::new("bpcharout", same),
    Function::new("namein", |arguments| Ok(parse_name(arguments.text(0)?)?.into())),
    Function::new("nameout", same),
    Function::new("charin", |arguments| Ok(parse_char(arguments.text(0)?)?.into())),
    Function::new("charout", same),
    Function::new("varchar", |arguments| {
        Ok(varchar(arguments.text(0)?, arguments.integer(1)?, arguments.truth(2)?)?.into())
    }),
    Function::new("bpchar", |arguments| {
        Ok(bpchar(arguments.text(0)?, arguments.integer(1)?, arguments.truth(2)?)?.into())
    }),
    Function::new("text_name", |arguments| Ok(name(arguments.text(0)?).into())),
    Function::new("bpchar_name", |arguments| {
        Ok(name(arguments.text(0)?).trim_end_matches(' ').into())
    }),
    Function::new("name_text", same),
    Function::new("name_bpchar", same),
    Function::new("char_text", same),
    Function::new("char_bpchar", same),
    Function::new("text_char", |arguments| Ok(parse_char(arguments.text(0)?)?.into())),
    Function::new("chartoi4", |arguments| match arguments.text(0)?.bytes().next() {
        None => Ok(Owned::Integer(0)),
        Some(code @ 0..=127) => Ok(i64::from(code).into()),
        Some(_) => Err(high_char()),
    }),
    Function::new("i4tochar", |arguments| match arguments.integer(0)? {
        code @ 0..=127 => Ok(Owned::Text(byte_as_char(u8::try_from(code).expect("below 128"))?)),
        -128..=-1 => Err(high_char()),
        _ => Err(ValueError::out_of_range("\"char\"")),
    }),
    Function::new("text_pattern_lt", |arguments| {
        Ok((arguments.text(0)? < arguments.text(1)?).into())
    }),
    Function::new("text_pattern_le", |arguments| {
        Ok((arguments.text(0)? <= arguments.text(1)?).into())
    }),
    Function::new("text_pattern_gt", |arguments| {
        Ok((arguments.text(0)? > arguments.text(1)?).into())
    }),
    Function::new("text_pattern_ge", |arguments| {
        Ok((arguments.text(0)? >= arguments.text(1)?).into())
    }),
    Function::new("bpchar_pattern_lt", |arguments| {
        ordered(arguments, std::cmp::Ordering::is_lt)
    }),
    Function::new("bpchar_pattern_le", |arguments| {
        ordered(arguments, std::cmp::Ordering::is_le)
    }),
    Function::new("bpchar_pattern_gt", |arguments| {
        ordered(arguments, std::cmp::Ordering::is_gt)
    }),
    Function::new("bpchar_pattern_ge", |arguments| {
        ordered(arguments, std::cmp::Ordering::is_ge)
    }),
];

fn same(arguments: Arguments<'_>) -> Result<Owned> {
    Ok(arguments.text(0)?.into())
}

fn ordered(arguments: Arguments<'_>, wanted: fn(std::cmp::Ordering) -> bool) -> Result<Owned> {
    Ok(wanted(compare_bpchar(arguments.text(0)?, arguments.text(1)?)).into())
}

/// The order of char(n): of bytes, without trailing spaces.
pub fn compare_bpchar(left: &str, right: &str) -> std::cmp::Ordering {
    left.trim_end_matches(' ').cmp(right.trim_end_matches(' '))
}

/// Bytes that a client sent as text, or PostgreSQL's words about the first that are none.
pub fn from_utf8(bytes: &[u8]) -> Result<&str> {
    let invalid = |at: usize| {
        // PostgreSQL shows as many bytes as the first one promises.
        let promised = match bytes[at] {
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            _ => 1,
        };
        let shown: Vec<String> = bytes[at..]
            .iter()
            .take(promised)
            .map(|byte| format!("0x{byte:02x}"))
            .collect();
        ValueError::new(
            "22021",
            format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" ")),
        )
    };
    let zero = memchr::memchr(0, bytes);
    match (std::str::from_utf8(bytes), zero) {
        (Err(error), Some(zero)) => Err(invalid(zero.min(error.valid_up_to()))),
        (Err(error), None) => Err(invalid(error.valid_up_to())),
        (Ok(_), Some(zero)) => Err(invalid(zero)),
        (Ok(text), None) => Ok(text),
    }
}

/// Input of text.
pub fn parse_text(text: &str) -> Result<&str> {
    from_utf8(text.as_bytes())
}

/// Input of varchar(n).
pub fn parse_varchar(text: &str, modifier: i64) -> Result<&str> {
    varchar(parse_text(text)?, modifier, false)
}

/// Input of char(n).
pub fn parse_bpchar(text: &str, modifier: i64) -> Result<String> {
    bpchar(parse_text(text)?, modifier, false)
}

/// Input of name.
pub fn parse_name(text: &str) -> Result<&str> {
    Ok(name(parse_text(text)?))
}

/// Input of `"char"`: the first byte, or one that is written as `\ooo`.
pub fn parse_char(text: &str) -> Result<String> {
    let bytes = parse_text(text)?.as_bytes();
    match bytes {
        [b'\\', octal @ b'0'..=b'7', eights @ b'0'..=b'7', ones @ b'0'..=b'7'] => {
            // Four hundred and above lose their highest bit, as in PostgreSQL.
            byte_as_char(((octal - b'0') << 6) | ((eights - b'0') << 3) | (ones - b'0'))
        }
        [] => Ok(String::new()),
        [first, ..] => byte_as_char(*first),
    }
}

/// A `"char"`: zero is the empty text.
fn byte_as_char(byte: u8) -> Result<String> {
    match byte {
        0 => Ok(String::new()),
        1..=127 => Ok(char::from(byte).into()),
        // PostgreSQL writes them as \ooo, a text whose order is not theirs.
        128.. => Err(high_char()),
    }
}

fn high_char() -> ValueError {
    ValueError::unsupported("values of type \"char\" above 127 are")
}

/// At most 63 bytes, whole characters.
pub fn name(text: &str) -> &str {
    &text[..text.floor_char_boundary(63)]
}

/// Cast to varchar(n): an explicit one cuts, any other may only lose spaces.
pub fn varchar(text: &str, modifier: i64, explicit: bool) -> Result<&str> {
    let Some(limit) = declared(modifier) else {
        return Ok(text);
    };
    cut(text, limit, explicit, "character varying")
}

/// Cast to char(n): padded with spaces, or cut as a varchar is.
pub fn bpchar(text: &str, modifier: i64, explicit: bool) -> Result<String> {
    let Some(limit) = declared(modifier) else {
        return Ok(text.to_owned());
    };
    let kept = cut(text, limit, explicit, "character")?;
    let missing = limit - usize::try_from(length(kept)).unwrap_or(limit);
    let mut padded = String::with_capacity(kept.len() + missing);
    padded.push_str(kept);
    padded.extend(std::iter::repeat_n(' ', missing));
    Ok(padded)
}

fn declared(modifier: i64) -> Option<usize> {
    if modifier < 4 {
        None
    } else {
        usize::try_from(modifier - 4).ok()
    }
}

fn cut<'a>(text: &'a str, limit: usize, explicit: bool, type_name: &str) -> Result<&'a str> {
    let end = offset_of(text, limit);
    if !explicit && !text[end..].bytes().all(|byte| byte == b' ') {
        return Err(ValueError::new(
            "22001",
            format!("value too long for type {type_name}({limit})"),
        ));
    }
    Ok(&text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_lengths() {
        assert_eq!(varchar("héllo", 9, false), Ok("héllo"));
        assert_eq!(varchar("héllo", 7, true), Ok("hél"));
        assert_eq!(varchar("hél  ", 7, false), Ok("hél"));
        let error = varchar("héllo", 7, false).expect_err("two too many");
        assert_eq!(
            (error.sqlstate, error.message.as_str()),
            ("22001", "value too long for type character varying(3)")
        );
        assert_eq!(bpchar("é", 7, false).as_deref(), Ok("é  "));
        assert_eq!(bpchar("é  ", -1, false).as_deref(), Ok("é  "));
        let error = bpchar("abcd", 7, false).expect_err("one too many");
        assert_eq!(error.message, "value too long for type character(3)");
    }

    #[test]
    fn names_and_chars() {
        assert_eq!(name(&"é".repeat(40)), "é".repeat(31));
        assert_eq!(parse_char("abc").as_deref(), Ok("a"));
        assert_eq!(parse_char("\\101").as_deref(), Ok("A"));
        assert_eq!(parse_char("\\000").as_deref(), Ok(""));
        assert_eq!(parse_char("é").expect_err("a high byte").sqlstate, "0A000");
    }

    #[test]
    fn bytes_that_are_no_text() {
        let message = |bytes: &[u8]| from_utf8(bytes).expect_err("not text").message;
        assert_eq!(message(b"a\xff"), "invalid byte sequence for encoding \"UTF8\": 0xff");
        assert_eq!(
            message(b"a\xe2\x80\x41"),
            "invalid byte sequence for encoding \"UTF8\": 0xe2 0x80 0x41"
        );
        assert_eq!(message(b"a\0\xff"), "invalid byte sequence for encoding \"UTF8\": 0x00");
        assert_eq!(message(b"\xe2"), "invalid byte sequence for encoding \"UTF8\": 0xe2");
    }
}
