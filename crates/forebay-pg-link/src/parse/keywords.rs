//! Keywords: a server told in `key = value` pairs.
//!
//! Promises: pairs as PostgreSQL's client library reads them: blanks around `=` do not matter, a value with blanks stands in
//! single quotes, a backslash takes what follows it as it is.

use crate::config::InvalidConfig;

/// A key and what it is set to.
type Pair = (String, String);

pub(super) fn pairs(text: &str) -> Result<Vec<Pair>, InvalidConfig> {
    let mut pairs = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (key, behind) = rest
            .split_once('=')
            .ok_or_else(|| InvalidConfig("an = is missing behind a key".to_owned()))?;
        let key = key.trim_end();
        if key.is_empty() || key.contains(char::is_whitespace) {
            // It is not repeated: it may be a part of a password that lacks its quotes.
            return Err(InvalidConfig(
                "an = is missing behind a key, or a key before it".to_owned(),
            ));
        }
        let (value, behind) = value(behind.trim_start())?;
        pairs.push((key.to_owned(), value));
        rest = behind.trim_start();
    }
    Ok(pairs)
}

/// The value, and what follows it.
fn value(text: &str) -> Result<(String, &str), InvalidConfig> {
    let (is_quoted, text) = match text.strip_prefix('\'') {
        Some(text) => (true, text),
        None => (false, text),
    };
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            '\'' if is_quoted => return Ok((value, &text[at + 1..])),
            blank if !is_quoted && blank.is_whitespace() => return Ok((value, &text[at..])),
            other => value.push(other),
        }
    }
    match is_quoted {
        true => Err(InvalidConfig("a quoted value has no end".to_owned())),
        false => Ok((value, "")),
    }
}
