//! Finding and changing parts of texts: position, replace, translate, split_part, starts_with; and single characters.

use std::collections::HashMap;

use memchr::memmem;

use super::length;
use crate::{Function, Owned, Result, ValueError};

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new("textpos", |arguments| {
        Ok(position(arguments.text(0)?, arguments.text(1)?).into())
    }),
    Function::new("replace_text", |arguments| {
        Ok(Owned::Text(replace(
            arguments.text(0)?,
            arguments.text(1)?,
            arguments.text(2)?,
        )?))
    }),
    Function::new("translate", |arguments| {
        Ok(Owned::Text(translate(
            arguments.text(0)?,
            arguments.text(1)?,
            arguments.text(2)?,
        )))
    }),
    Function::new("split_part", |arguments| {
        Ok(split_part(arguments.text(0)?, arguments.text(1)?, arguments.integer(2)?)?.into())
    }),
    Function::new("text_starts_with", |arguments| {
        Ok(arguments.text(0)?.starts_with(arguments.text(1)?).into())
    }),
    Function::new("ascii", |arguments| {
        Ok(arguments
            .text(0)?
            .chars()
            .next()
            .map_or(0, |first| i64::from(u32::from(first)))
            .into())
    }),
    Function::new("chr", |arguments| {
        Ok(Owned::Text(character(arguments.integer(0)?)?.into()))
    }),
];

/// Where a part is, counted from 1 in characters; 0 if it is not.
pub fn position(text: &str, part: &str) -> i64 {
    memmem::find(text.as_bytes(), part.as_bytes()).map_or(0, |at| length(&text[..at]) + 1)
}

fn replace(text: &str, from: &str, to: &str) -> Result<String> {
    if from.is_empty() {
        // Rust would find the empty text between all characters.
        return Ok(text.to_owned());
    }
    if to.len() > from.len() {
        let grown = text.matches(from).count().saturating_mul(to.len() - from.len());
        super::check_length(i64::try_from(text.len().saturating_add(grown)).unwrap_or(i64::MAX))?;
    }
    Ok(text.replace(from, to))
}

/// Each character of `from` becomes the one at its place in `to`, or nothing.
fn translate(text: &str, from: &str, to: &str) -> String {
    let mut becomes = HashMap::new();
    let mut to = to.chars();
    for character in from.chars() {
        let replacement = to.next();
        // The first of its places counts.
        becomes.entry(character).or_insert(replacement);
    }
    text.chars()
        .filter_map(|character| becomes.get(&character).copied().unwrap_or(Some(character)))
        .collect()
}

/// The `field`th part, counted from 1, or from the end if negative.
fn split_part<'a>(text: &'a str, separator: &str, field: i64) -> Result<&'a str> {
    if field == 0 {
        return Err(ValueError::new("22023", "field position must not be zero"));
    }
    if separator.is_empty() {
        return Ok(if field.abs() == 1 { text } else { "" });
    }
    let place = usize::try_from(field.unsigned_abs() - 1).unwrap_or(usize::MAX);
    if field > 0 {
        return Ok(text.split(separator).nth(place).unwrap_or(""));
    }
    // Counted from the start: in "aaa" the separator "aa" is found once, at the start.
    let count = text.split(separator).count();
    Ok(count
        .checked_sub(place + 1)
        .and_then(|place| text.split(separator).nth(place))
        .unwrap_or(""))
}

fn character(code: i64) -> Result<char> {
    if code < 0 {
        return Err(ValueError::new("22023", "character number must be positive"));
    }
    if code == 0 {
        return Err(ValueError::new("54000", "null character not permitted"));
    }
    if code > 0x10_ffff {
        return Err(ValueError::new(
            "54000",
            format!("requested character too large for encoding: {code}"),
        ));
    }
    let character = u32::try_from(code).ok().and_then(char::from_u32);
    character.ok_or_else(|| ValueError::new("54000", format!("requested character not valid for encoding: {code}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_answers() {
        assert_eq!(
            (position("héllo", "llo"), position("héllo", ""), position("", "x")),
            (3, 1, 0)
        );
        assert_eq!(translate("12345é", "143é", "ax"), "a2x5");
        assert_eq!(replace("aaa", "aa", "b").as_deref(), Ok("ba"));
        assert_eq!(replace("aaa", "", "b").as_deref(), Ok("aaa"));
        assert_eq!(split_part("a,b,c", ",", -1), Ok("c"));
        assert_eq!(split_part("aaa", "aa", -1), Ok("a"));
        assert_eq!(split_part("a,b,c", ",", 4), Ok(""));
        assert_eq!(split_part("a", ",", 0).expect_err("zero").sqlstate, "22023");
        assert_eq!(character(0xd800).expect_err("half of a pair").sqlstate, "54000");
    }
}
