//! Literals and comments that SQLite reads differently: `E'…'`, `$$…$$`, and block comments inside block comments.
//!
//! Contract: every other byte stays as it is; `None` if there is nothing of the kind. Knows nothing of grammar: these are matters of
//! single tokens.

use crate::sql::TOKENS_MAX;
use crate::sql::error::SqlError;
use crate::sql::lexer::{self, Kind, string_value};
use crate::sql::split::Segment;

/// The statement's text with plain literals, and without comments if one of them nests.
pub(super) fn plain(script: &str, segment: &Segment) -> Result<Option<String>, SqlError> {
    let foreign = segment.nested_comment
        || segment
            .tokens
            .iter()
            .any(|token| matches!(token.kind, Kind::EscapedText | Kind::DollarText));
    if !foreign {
        return Ok(None);
    }
    let mut plain = String::with_capacity(segment.range.len());
    let mut done = segment.range.start;
    for token in &segment.tokens {
        let between = &script[done..token.range.start];
        if segment.nested_comment && !between.is_empty() {
            plain.push(' ');
        } else {
            plain.push_str(between);
        }
        match (token.kind, token.text(script)) {
            (Kind::EscapedText | Kind::DollarText, text) => {
                let value = string_value(token.kind, text).expect("both are strings")?;
                plain.push_str(&literal(&value));
            }
            (_, text) => plain.push_str(text),
        }
        done = token.range.end;
    }
    Ok(Some(plain))
}

/// The text with hexadecimal numbers written as decimal ones, because the grammar takes `0x10` for a blob; `None` if there are none.
pub(in crate::sql) fn for_grammar(text: &str) -> Result<Option<String>, SqlError> {
    if !text.contains("0x") && !text.contains("0X") {
        return Ok(None);
    }
    let (mut plain, mut done) = (String::with_capacity(text.len()), 0);
    for token in lexer::tokens(text, TOKENS_MAX)?
        .iter()
        .filter(|token| token.kind == Kind::Number)
    {
        let digits = token.text(text).to_ascii_lowercase();
        if let Some(number) = digits
            .strip_prefix("0x")
            .and_then(|digits| i64::from_str_radix(digits, 16).ok())
        {
            plain.push_str(&text[done..token.range.start]);
            plain.push_str(&number.to_string());
            done = token.range.end;
        }
    }
    plain.push_str(&text[done..]);
    Ok((done > 0).then_some(plain))
}

/// A string literal as both SQLs read it.
pub(super) fn literal(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}
