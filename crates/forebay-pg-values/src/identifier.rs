//! parse_ident: takes a qualified name in SQL's spelling apart.

use crate::text::characters::to_lower;
use crate::{Arguments, Function, Owned, Result, ValueError};

pub(crate) const FUNCTIONS: &[Function] = &[Function::new("parse_ident", |arguments: Arguments<'_>| {
    let parts = parse(arguments.text(0)?, arguments.truth(1)?)?;
    Ok(Owned::Text(serde_json::Value::from(parts).to_string()))
})];

/// The parts of a qualified name. Strict: nothing may follow it.
pub fn parse(text: &str, strict: bool) -> Result<Vec<String>> {
    let invalid = || ValueError::new("22023", format!("string is not a valid identifier: \"{text}\""));
    let mut rest = skip_space(text);
    let mut parts = Vec::new();
    let mut after_dot = false;
    loop {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (part, after) =
                read_quoted(quoted).ok_or_else(|| invalid().with_detail("String has unclosed double quotes."))?;
            if part.is_empty() {
                return Err(invalid().with_detail("Quoted identifier must not be empty."));
            }
            parts.push(part);
            rest = after;
        } else {
            let end = rest.find(|character| !continues(character)).unwrap_or(rest.len());
            let starts = rest.starts_with(|first: char| continues(first) && !first.is_ascii_digit() && first != '$');
            if !starts {
                return Err(if rest.starts_with('.') {
                    invalid().with_detail("No valid identifier before \".\".")
                } else if after_dot {
                    invalid().with_detail("No valid identifier after \".\".")
                } else {
                    invalid()
                });
            }
            parts.push(rest[..end].chars().map(fold).collect());
            rest = &rest[end..];
        }
        rest = skip_space(rest);
        match rest.strip_prefix('.') {
            Some(after) => {
                after_dot = true;
                rest = skip_space(after);
            }
            None if rest.is_empty() || !strict => return Ok(parts),
            None => return Err(invalid()),
        }
    }
}

/// Folded as names are: ASCII alone, as in every encoding of many bytes.
fn fold(character: char) -> char {
    if character.is_ascii() {
        to_lower(character)
    } else {
        character
    }
}

fn continues(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '$') || !character.is_ascii()
}

fn skip_space(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', '\n', '\r', '\x0c'])
}

fn read_quoted(text: &str) -> Option<(String, &str)> {
    let mut part = String::new();
    let mut rest = text;
    loop {
        let (before, after) = rest.split_once('"')?;
        part.push_str(before);
        let Some(more) = after.strip_prefix('"') else {
            return Some((part, after));
        };
        part.push('"');
        rest = more;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_answers() {
        assert_eq!(
            parse(" Foo . \"B\"\"ar\" ", true),
            Ok(vec!["foo".to_owned(), "B\"ar".to_owned()])
        );
        assert_eq!(parse("foo.bar()", false), Ok(vec!["foo".to_owned(), "bar".to_owned()]));
        for (text, detail) in [
            ("a..b", Some("No valid identifier before \".\".")),
            ("a.", Some("No valid identifier after \".\".")),
            ("\"a", Some("String has unclosed double quotes.")),
            ("\"\"", Some("Quoted identifier must not be empty.")),
            ("1a", None),
            ("a b", None),
        ] {
            assert_eq!(parse(text, true).expect_err(text).detail.as_deref(), detail, "{text}");
        }
    }
}
