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
pub(in crate::sql) fn write_out(text: &str, original: &Tree, rewritten: &Tree) -> Result<String, SqlError> {
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
                words.extend(["INSERT", "OR", "REPLACE"].map(str::to_owned));
            }
            "NEXT" => words.push("FIRST".to_owned()),
            word if OPTIONAL.contains(&word) && token.kind == Kind::Word => {}
            _ => words.push(folded.clone()),
        }
        after_limit = folded == "LIMIT" && token.kind == Kind::Word;
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};

    use super::*;

    fn table_named(name: &str) -> Tree {
        let mut tree = grammar::parse("DROP TABLE t").unwrap().unwrap();
        if let Tree::Drop { names, .. } = &mut tree {
            names[0] = ObjectName(vec![ObjectNamePart::Identifier(Ident::new(name))]);
        }
        tree
    }

    #[test]
    fn a_text_that_would_be_read_as_another_tree_is_not_written() {
        let original = table_named("t");
        assert_eq!(
            write_out("drop table t", &original, &table_named("u")).unwrap(),
            "DROP TABLE u"
        );
        for misread in ["u CASCADE", "u; DROP TABLE v", "", "'"] {
            let error = write_out("DROP TABLE t", &original, &table_named(misread)).unwrap_err();
            assert!(matches!(error, SqlError::Untranslatable { .. }), "{misread}: {error}");
        }
    }

    #[test]
    fn a_word_that_the_tree_has_lost_is_named() {
        let error = write_out("DROP TABLE t MYSTERY", &table_named("t"), &table_named("t")).unwrap_err();
        assert!(error.to_string().contains("MYSTERY"), "{error}");
    }
}
