//! Syntax: texts to the parser's trees, within bounds, and the small pieces that every reader of trees needs.
//!
//! Promises: a text that is too long for its tree to be walked is not parsed; one text is one statement. Knows nothing of what
//! is looked for in a tree.

use sqlparser::ast;
use sqlparser::parser::Parser;

use super::dialect::{Dialect, Placeholders};
use super::lexer::{Kind, Lexer};

/// Most tokens of a text that is parsed. A chain of operators is a tree as deep as the chain is long, and trees are walked,
/// compared and dropped recursively.
const TOKENS_MAX: usize = 4096;

/// Deepest nesting that the parser follows.
const NESTING_MAX: usize = 50;

/// The statement's tree; nothing if it is not one statement that the parser understands as the server does.
pub(super) fn parse(dialect: Dialect, sql: &str) -> Option<ast::Statement> {
    if Lexer::new(dialect, sql).nth(TOKENS_MAX).is_some() || continues_a_string(dialect, sql) {
        return None;
    }
    let mut statements = Parser::new(dialect.grammar())
        .with_recursion_limit(NESTING_MAX)
        .try_with_sql(sql)
        .ok()?
        .parse_statements()
        .ok()?;
    match statements.len() {
        1 => statements.pop(),
        _ => None,
    }
}

/// Whether a string stands right behind another one: they are one to the server, and a name behind a string to the parser.
pub(super) fn continues_a_string(dialect: Dialect, sql: &str) -> bool {
    let mut was_text = false;
    Lexer::new(dialect, sql).any(|token| {
        let is_text = token.is_ok_and(|token| token.kind == Kind::Text);
        std::mem::replace(&mut was_text, is_text) && is_text
    })
}

/// Whether the text has quotes that are a string by default and a name by a setting of the server (`ANSI_QUOTES`).
pub(super) fn quotes_depend_on_settings(dialect: Dialect, sql: &str) -> bool {
    dialect.lexis().has_strings_in_double_quotes()
        && Lexer::new(dialect, sql)
            .any(|token| token.is_ok_and(|token| token.kind == Kind::Text && token.text.starts_with('"')))
}

/// The number of a parameter, the first is 0, of which `before` stand before it in the text.
pub(super) fn parameter(dialect: Dialect, text: &str, before: usize) -> Option<usize> {
    match dialect.lexis().placeholders {
        Placeholders::InOrder => (text == "?").then_some(before),
        Placeholders::Numbered => {
            let digits = text.strip_prefix('$')?;
            let is_number = digits.starts_with(|first: char| ('1'..='9').contains(&first))
                && digits.bytes().all(|byte| byte.is_ascii_digit());
            is_number
                .then(|| digits.parse::<usize>().ok()?.checked_sub(1))
                .flatten()
        }
    }
}

/// A parameter, as it stands in SQL.
pub(super) fn write_parameter(dialect: Dialect, number: usize) -> String {
    match dialect.lexis().placeholders {
        Placeholders::InOrder => "?".to_owned(),
        Placeholders::Numbered => format!("${}", number + 1),
    }
}
