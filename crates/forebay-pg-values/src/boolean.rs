//! boolean: its text, its casts, and the steps of its aggregates.

use crate::integer::is_space;
use crate::{Arguments, Function, Owned, Result, ValueError};

/// Reads a truth value: `true`, `yes`, `on`, `1` and their opposites, any beginning of a word that says which, in either case.
pub(crate) fn parse(text: &str) -> Result<Owned> {
    let invalid = || ValueError::invalid_text("22P02", "boolean", text);
    let trimmed = text.trim_matches(|character: char| u8::try_from(character).is_ok_and(is_space));
    let word = trimmed.to_ascii_lowercase();
    let begins = |full: &str| !word.is_empty() && full.starts_with(&word);
    if begins("true") || begins("yes") || word == "on" || word == "1" {
        return Ok(true.into());
    }
    // One `o` may be either.
    if begins("false") || begins("no") || word == "of" || word == "off" || word == "0" {
        return Ok(false.into());
    }
    Err(invalid())
}

/// Writes `t` or `f`.
pub(crate) fn write(truth: bool, out: &mut String) {
    out.push(if truth { 't' } else { 'f' });
}

fn as_integer(arguments: Arguments<'_>) -> Result<Owned> {
    Ok(arguments.truth(0)?.into())
}

fn as_text(arguments: Arguments<'_>) -> Result<Owned> {
    Ok(if arguments.truth(0)? { "true" } else { "false" }.into())
}

fn both(arguments: Arguments<'_>) -> Result<Owned> {
    Ok((arguments.truth(0)? && arguments.truth(1)?).into())
}

fn either(arguments: Arguments<'_>) -> Result<Owned> {
    Ok((arguments.truth(0)? || arguments.truth(1)?).into())
}

/// See [`crate::function()`].
pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new("bool_int4", as_integer),
    Function::new("int4_bool", as_integer),
    Function::new("booltext", as_text),
    Function::new("booland_statefunc", both),
    Function::new("boolor_statefunc", either),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_their_beginnings() {
        for text in ["t", "TR", "true", " y ", "yes", "on", "1", "\tYe\n"] {
            assert_eq!(parse(text), Ok(Owned::Integer(1)), "{text}");
        }
        for text in ["f", "fals", "FALSE", "n", "no", "of", "off", "0"] {
            assert_eq!(parse(text), Ok(Owned::Integer(0)), "{text}");
        }
        for text in ["", " ", "o", "tru e", "truee", "2", "yess", "00"] {
            let error = parse(text).expect_err(text);
            assert_eq!(error.sqlstate, "22P02");
            assert_eq!(
                error.message,
                format!("invalid input syntax for type boolean: \"{text}\"")
            );
        }
    }
}
