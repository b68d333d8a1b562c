//! LIKE, ILIKE and their escapes.
//!
//! A match needs no allocation (ILIKE: none if both are ASCII), and no more than one place to come back to: a `%` that was passed need
//! never be tried again once a later one is reached. The error about an escape at a pattern's end comes, as in PostgreSQL, only when
//! matching gets there.

use std::borrow::Cow;

use super::case::lower;
use crate::{Arguments, Function, Owned, Result, ValueError};

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new("textlike", |arguments| {
        Ok(like(arguments.text(0)?, arguments.text(1)?)?.into())
    }),
    Function::new("textnlike", |arguments| {
        Ok((!like(arguments.text(0)?, arguments.text(1)?)?).into())
    }),
    Function::new("namelike", |arguments| {
        Ok(like(arguments.text(0)?, arguments.text(1)?)?.into())
    }),
    Function::new("namenlike", |arguments| {
        Ok((!like(arguments.text(0)?, arguments.text(1)?)?).into())
    }),
    Function::new("texticlike", |arguments| {
        Ok(ilike(arguments.text(0)?, arguments.text(1)?)?.into())
    }),
    Function::new("texticnlike", |arguments| {
        Ok((!ilike(arguments.text(0)?, arguments.text(1)?)?).into())
    }),
    Function::new("nameiclike", |arguments| {
        Ok(ilike(arguments.text(0)?, arguments.text(1)?)?.into())
    }),
    Function::new("nameicnlike", |arguments| {
        Ok((!ilike(arguments.text(0)?, arguments.text(1)?)?).into())
    }),
    Function::new("bytealike", |arguments| Ok(like_bytes(arguments)?.into())),
    Function::new("byteanlike", |arguments| Ok((!like_bytes(arguments)?).into())),
    Function::new("like_escape", |arguments| {
        let (pattern, escape) = (arguments.text(0)?, arguments.text(1)?);
        if escape.chars().nth(1).is_some() {
            return Err(invalid_escape());
        }
        let bytes = with_backslash(pattern.as_bytes(), escape.as_bytes());
        Ok(Owned::Text(
            String::from_utf8(bytes).expect("whole characters were exchanged"),
        ))
    }),
    Function::new("like_escape_bytea", |arguments| {
        let (pattern, escape) = (arguments.blob(0)?, arguments.blob(1)?);
        if escape.len() > 1 {
            return Err(invalid_escape());
        }
        Ok(Owned::Blob(with_backslash(pattern, escape)))
    }),
];

/// What PostgreSQL says of an escape of two characters.
pub(crate) fn invalid_escape() -> ValueError {
    ValueError::new("22025", "invalid escape string").with_hint("Escape string must be empty or one character.")
}

/// Whether a text matches a pattern: `%` any characters, `_` one, `\` takes the meaning from what follows.
pub fn like(text: &str, pattern: &str) -> Result<bool> {
    matches::<Utf8>(text.as_bytes(), pattern.as_bytes())
}

/// The same, whatever the case.
pub fn ilike(text: &str, pattern: &str) -> Result<bool> {
    if text.is_ascii() && pattern.is_ascii() {
        return matches::<AsciiFolded>(text.as_bytes(), pattern.as_bytes());
    }
    let fold = |text| {
        if str::is_ascii(text) {
            Cow::Owned(text.to_ascii_lowercase())
        } else {
            Cow::<str>::Owned(lower(text))
        }
    };
    like(&fold(text), &fold(pattern))
}

fn like_bytes(arguments: Arguments<'_>) -> Result<bool> {
    matches::<Bytes>(arguments.blob(0)?, arguments.blob(1)?)
}

/// What a character is.
trait Characters {
    /// How many bytes the first character has.
    fn width(text: &[u8]) -> usize;
    /// What a byte counts as.
    fn fold(byte: u8) -> u8;
    /// Where the byte, folded, is first.
    fn find(byte: u8, text: &[u8]) -> Option<usize> {
        memchr::memchr(byte, text)
    }
}

struct Utf8;
struct AsciiFolded;
struct Bytes;

impl Characters for Utf8 {
    fn width(text: &[u8]) -> usize {
        match text[0] {
            0..=0xbf => 1,
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0.. => 4,
        }
    }
    fn fold(byte: u8) -> u8 {
        byte
    }
}

impl Characters for AsciiFolded {
    fn width(_: &[u8]) -> usize {
        1
    }
    fn fold(byte: u8) -> u8 {
        byte.to_ascii_lowercase()
    }
    fn find(byte: u8, text: &[u8]) -> Option<usize> {
        memchr::memchr2(byte, byte.to_ascii_uppercase(), text)
    }
}

impl Characters for Bytes {
    fn width(_: &[u8]) -> usize {
        1
    }
    fn fold(byte: u8) -> u8 {
        byte
    }
}

fn ends_with_escape() -> ValueError {
    ValueError::new("22025", "LIKE pattern must not end with escape character")
}

/// So many bytes are compared in vain at most, which takes about a second: nothing could interrupt it.
const COMPARED_MAX: usize = 1_000_000_000;

fn matches<C: Characters>(text: &[u8], pattern: &[u8]) -> Result<bool> {
    let (mut text, mut pattern) = (text, pattern);
    // What the last `%` was followed by, and the text it has not yet been held against.
    let mut again: Option<(&[u8], &[u8])> = None;
    let mut compared = 0_usize;
    loop {
        let matched = match (text, pattern) {
            // With the text at its end no later start can match either.
            ([], _) => return Ok(pattern.iter().all(|byte| *byte == b'%')),
            (_, [b'%', ..]) => {
                // `%_` wants a character, `%%` nothing more.
                while let [wild @ (b'%' | b'_'), rest @ ..] = pattern {
                    if *wild == b'_' {
                        if text.is_empty() {
                            return Ok(false);
                        }
                        text = &text[C::width(text)..];
                    }
                    pattern = rest;
                }
                let first = match pattern {
                    [] => return Ok(true),
                    [b'\\'] => return Err(ends_with_escape()),
                    [b'\\', first, ..] | [first, ..] => C::fold(*first),
                };
                let Some(at) = C::find(first, text) else {
                    return Ok(false);
                };
                text = &text[at..];
                again = Some((text, pattern));
                true
            }
            (_, [b'\\']) => return Err(ends_with_escape()),
            ([byte, text_rest @ ..], [b'\\', wanted, rest @ ..]) => {
                (text, pattern) = (text_rest, rest);
                C::fold(*byte) == C::fold(*wanted)
            }
            (_, [b'_', rest @ ..]) => {
                (text, pattern) = (&text[C::width(text)..], rest);
                true
            }
            ([byte, text_rest @ ..], [wanted, rest @ ..]) => {
                (text, pattern) = (text_rest, rest);
                C::fold(*byte) == C::fold(*wanted)
            }
            (_, []) => false,
        };
        if !matched {
            let Some((start, after)) = again else { return Ok(false) };
            compared += start.len() - text.len();
            if compared > COMPARED_MAX {
                return Err(ValueError::unsupported(
                    "a LIKE that nearly matches at so many places is",
                ));
            }
            let first = match after {
                [b'\\', first, ..] | [first, ..] => C::fold(*first),
                [] => unreachable!("a `%` at the end matches all"),
            };
            let next = &start[C::width(start)..];
            let Some(at) = C::find(first, next) else {
                return Ok(false);
            };
            (text, pattern) = (&next[at..], after);
            again = Some((text, pattern));
        }
    }
}

/// A pattern with the escape `\` that means what it means with another escape, or with none.
fn with_backslash(pattern: &[u8], escape: &[u8]) -> Vec<u8> {
    if escape == b"\\" {
        return pattern.to_vec();
    }
    let mut out = Vec::with_capacity(pattern.len() * 2);
    let (mut rest, mut escaped) = (pattern, false);
    while let [byte, after @ ..] = rest {
        if !escape.is_empty() && !escaped && rest.starts_with(escape) {
            out.push(b'\\');
            escaped = true;
            rest = &rest[escape.len()..];
            continue;
        }
        if *byte == b'\\' && !escaped {
            out.push(b'\\');
        }
        out.push(*byte);
        escaped = false;
        rest = after;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_answers() {
        for (text, pattern, wanted) in [
            ("abc", "abc", true),
            ("abc", "a%", true),
            ("abc", "_b_", true),
            ("abc", "c", false),
            ("héllo", "h_llo", true),
            ("日本語", "_本%", true),
            ("", "%", true),
            ("", "_", false),
            ("a%c", "a\\%c", true),
            ("abc", "a\\%c", false),
            ("aXbXcab", "%X%ab", true),
            ("aab", "%ab", true),
            ("mississippi", "%iss%ip%_", true),
            ("abc", "%__%_%", true),
            ("ab", "%__%_%", false),
        ] {
            assert_eq!(like(text, pattern), Ok(wanted), "{text} LIKE {pattern}");
        }
    }

    #[test]
    fn an_escape_at_the_end_is_an_error_where_matching_reaches_it() {
        for (text, pattern) in [("abc", "ab\\"), ("a", "%_\\"), ("abc", "%\\")] {
            assert_eq!(like(text, pattern).expect_err(pattern).sqlstate, "22025");
        }
        for (text, pattern) in [("abc", "x\\"), ("ab", "ab\\"), ("", "\\"), ("", "%\\")] {
            assert_eq!(like(text, pattern), Ok(false));
        }
    }

    #[test]
    fn whatever_the_case() {
        assert_eq!(ilike("ÉCOLE", "éc%"), Ok(true));
        assert_eq!(ilike("HeLLo", "h%L_"), Ok(true));
        assert_eq!(ilike("\u{212a}", "k"), Ok(true));
        assert_eq!(ilike("ß", "SS"), Ok(false));
    }

    #[test]
    fn escapes() {
        assert_eq!(with_backslash(b"a!%b\\", b"!"), b"a\\%b\\\\");
        assert_eq!(with_backslash(b"a\\%", b""), b"a\\\\%");
        assert_eq!(with_backslash(b"!!!\\", b"!"), b"\\!\\\\");
    }
}
