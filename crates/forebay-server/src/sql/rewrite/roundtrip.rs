//! Writes a rewritten tree out as text, and makes sure that nothing went missing on the way.
//!
//! Contract: the text is returned only if the grammar read every word of what the client wrote, and reads the new text as exactly the
//! tree that was meant. Knows nothing of what was rewritten.

use std::collections::HashMap;

use sqlparser::ast::Statement as Tree;

use crate::sql::error::SqlError;
use crate::sql::lexer::{self, Kind};
use crate::sql::{TOKENS_MAX, grammar};

/// Words that may be written or left out without a difference; ROW and ROWS, of OFFSET, mean the same.
const OPTIONAL: [&str; 7] = ["AS", "INNER", "OUTER", "ROW", "ROWS", "COLUMN", "ASC"];

/// The text of `rewritten`. `text` is what `original` was parsed from.
pub(in crate::sql) fn write_out(
    text: &str,
    original: &Tree,
    rewritten: &Tree,
) -> Result<String, SqlError> {
    if let Some(word) = lost_word(text, &original.to_string())? {
        return Err(SqlError::Untranslatable {
            what: format!("it is not certain what \"{word}\" means here"),
        });
    }
    let written = rewritten.to_string();
    match grammar::parse(&written)? {
        Some(again) if again == *rewritten => Ok(written),
        _ => Err(SqlError::Untranslatable {
            what: format!("its translation is read differently: {written}"),
        }),
    }
}

/// A word or sign that stands in one text more often than in the other.
fn lost_word(text: &str, written: &str) -> Result<Option<String>, SqlError> {
    let mut counts: HashMap<String, i64> = HashMap::new();
    for (source, one) in [(text, 1), (written, -1)] {
        for word in words(source)? {
            *counts.entry(word).or_default() += one;
        }
    }
    Ok(counts
        .into_iter()
        .filter(|(_, count)| *count != 0)
        .map(|(word, _)| word)
        .min())
}

fn words(source: &str) -> Result<Vec<String>, SqlError> {
    let tokens = lexer::tokens(source, TOKENS_MAX)?;
    let mut words = Vec::with_capacity(tokens.len());
    let mut after_limit = false;
    for token in tokens.iter().filter(|token| !token.is_comment()) {
        let text = token.text(source);
        let folded = match token.kind {
            Kind::Word | Kind::Blob | Kind::Number => text.to_ascii_uppercase(),
            _ => text.to_owned(),
        };
        match folded.as_str() {
            // LIMIT ALL is no limit, and is written out as none.
            "ALL" if after_limit => {
                words.pop();
            }
            "!=" => words.push("<>".to_owned()),
            "==" => words.push("=".to_owned()),
            "NOTNULL" => words.extend(["IS", "NOT", "NULL"].map(str::to_owned)),
            // The grammar reads one as the other, which SQLite has it be.
            "REPLACE" if words.is_empty() => {
                words.extend(["INSERT", "OR", "REPLACE"].map(str::to_owned))
            }
            "NEXT" => words.push("FIRST".to_owned()),
            word if OPTIONAL.contains(&word) && token.kind == Kind::Word => {}
            _ => words.push(folded.clone()),
        }
        after_limit = folded == "LIMIT" && token.kind == Kind::Word;
    }
    Ok(words)
}
