//! Opening: the tokens of a statement from its beginning, past what a server passes over.
//!
//! Promises: hints are left out, and so are empty statements before the first one; what MariaDB and MySQL execute in a comment
//! is a token, as they execute it. Knows no statement.

use super::dialect::Dialect;
use super::lexer::{Kind, Lexer, Token, Unclosed};

/// The tokens of the statement, and of what follows it.
pub(super) fn statement(dialect: Dialect, sql: &str) -> impl Iterator<Item = Result<Token<'_>, Unclosed>> {
    let mut has_begun = false;
    Lexer::new(dialect, sql).filter(move |token| match token {
        Ok(token) if token.kind == Kind::Hint => false,
        Ok(token) if !has_begun && token.is_symbol(";") => false,
        _ => {
            has_begun = true;
            true
        }
    })
}

/// The word that it begins with, past parentheses; none if it begins otherwise.
pub(super) fn first_word(dialect: Dialect, sql: &str) -> Option<&str> {
    let mut tokens = statement(dialect, sql).map_while(Result::ok);
    let first = tokens.find(|token| !token.is_symbol("("))?;
    (first.kind == Kind::Word).then_some(first.text)
}

/// Whether the word it begins with is one of these.
pub(super) fn begins_with(dialect: Dialect, sql: &str, words: &[&str]) -> bool {
    first_word(dialect, sql).is_some_and(|first| words.iter().any(|word| first.eq_ignore_ascii_case(word)))
}

/// Whether a word stands anywhere in the text, outside of quotes.
pub(super) fn has_word(dialect: Dialect, sql: &str, word: &str) -> bool {
    Lexer::new(dialect, sql).any(|token| token.is_ok_and(|token| token.is_word(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_is_found_behind_what_is_passed_over() {
        for (dialect, sql, word) in [
            (Dialect::Postgres, "select 1", Some("select")),
            (
                Dialect::Postgres,
                "-- DROP\n/* CREATE */ ;\n((select 1))",
                Some("select"),
            ),
            (Dialect::Postgres, "/*+ Leading(a b) */ SELECT 1", Some("SELECT")),
            (Dialect::Postgres, "\"select\" 1", None),
            (Dialect::Postgres, "/* unclosed SELECT", None),
            (Dialect::MySql, "# DROP\n-- CREATE\nSHOW TABLES", Some("SHOW")),
            (Dialect::MySql, "/*! SHOW */ TABLES", None),
            (Dialect::MySql, "--SHOW", None),
            (Dialect::MySql, "", None),
        ] {
            assert_eq!(first_word(dialect, sql), word, "{sql}");
        }
    }
}
