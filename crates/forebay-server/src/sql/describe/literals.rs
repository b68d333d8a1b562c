//! String literals that meet a typed column: PostgreSQL reads them as values of its type, SQLite would keep the text.
//!
//! Contract: exactly the literals that are stored to or compared with something of a known type change, to what a parameter of that
//! type would be stored as; every other byte stays. A literal that is no such value is refused. What the grammar cannot read, or
//! reads otherwise than the lexer, is left as it is. Knows nothing of how values look: the caller converts.

use std::collections::HashMap;

use forebay::write::Value;
use postgres_types::Type;
use rusqlite::Connection;

use super::infer::Inference;
use super::schema::Schema;
use crate::sql::lexer::{self, Kind as TokenKind, Token};
use crate::sql::rewrite::lexical::for_grammar;
use crate::sql::{Kind, Statement, TOKENS_MAX, grammar};

/// A literal that is no value of the type it meets: give another one.
#[derive(Debug)]
pub struct RefusedLiteral<E> {
    /// Why, as the conversion said it.
    pub error: E,
    /// Where the literal starts in the statement's SQL, in bytes.
    pub byte: usize,
}

/// The statement's SQL with its string literals in stored form; `None` if nothing changes. `parameters` are those it was described
/// with, `stored` makes the stored form of a text.
pub fn coerce_literals<E>(
    connection: &Connection,
    statement: &Statement,
    parameters: &[Type],
    stored: impl Fn(&Type, &str) -> Result<Value, E>,
) -> Result<Option<String>, RefusedLiteral<E>> {
    if statement.kind != Kind::Sql || !statement.has_string_literal {
        return Ok(None);
    }
    let sql = statement.sql.as_ref();
    let Some((tokens, kinds)) = literal_types(connection, sql, parameters) else {
        return Ok(None);
    };
    let (mut coerced, mut done) = (String::with_capacity(sql.len()), 0);
    for (ordinal, token) in string_tokens(&tokens).enumerate() {
        let Some(kind) = kinds.get(&ordinal) else {
            continue;
        };
        let written = token.text(sql);
        let text = written[1..written.len() - 1].replace("''", "'");
        let byte = token.range.start;
        let value = stored(kind, &text).map_err(|error| RefusedLiteral { error, byte })?;
        let Some(literal) = literal_of(&value).filter(|literal| literal != written) else {
            continue;
        };
        coerced.push_str(&sql[done..byte]);
        coerced.push_str(&literal);
        done = token.range.end;
    }
    coerced.push_str(&sql[done..]);
    // The grammar has the last word, as with every text that is not the client's.
    let readable = done > 0 && matches!(grammar::parse(&coerced), Ok(Some(_)));
    Ok(readable.then_some(coerced))
}

/// The statement's tokens, and by the ordinal of a string literal the type it meets.
fn literal_types(
    connection: &Connection,
    sql: &str,
    parameters: &[Type],
) -> Option<(Vec<Token>, HashMap<usize, Type>)> {
    let tokens = lexer::tokens(sql, TOKENS_MAX).ok()?;
    let readable = for_grammar(sql).ok()?;
    let text = readable.as_deref().unwrap_or(sql);
    let depth = grammar::check_depth(sql, &tokens).ok()?;
    // The text that runs is what is walked: where it was rewritten, the tree of what the client wrote has other places.
    let places = grammar::with_deep_stack(depth, || {
        let tree = grammar::parse(text).ok()??;
        let known = parameters.iter().cloned().map(Some).collect();
        let mut inference = Inference::new(Schema::new(connection), known);
        inference.literals = Some(HashMap::new());
        inference.statement(&tree);
        inference.literals
    })?;
    if places.is_empty() {
        return None;
    }
    let read = lexer::tokens(text, TOKENS_MAX).ok()?;
    let (mut kinds, mut place) = (HashMap::new(), Place::default());
    for (ordinal, token) in string_tokens(&read).enumerate() {
        place.advance(text, token.range.start);
        if let Some(kind) = places.get(&(place.line, place.column)) {
            kinds.insert(ordinal, kind.clone());
        }
    }
    let same = string_tokens(&read)
        .map(|token| token.text(text))
        .eq(string_tokens(&tokens).map(|token| token.text(sql)));
    // Literals that no token stands for were put together of several: those are left to SQLite.
    (same && kinds.len() == places.len()).then_some((tokens, kinds))
}

fn string_tokens(tokens: &[Token]) -> impl Iterator<Item = &Token> {
    tokens.iter().filter(|token| token.kind == TokenKind::Text)
}

/// A place as the parser counts: lines and characters, from 1.
struct Place {
    byte: usize,
    line: u64,
    column: u64,
}

impl Default for Place {
    fn default() -> Self {
        Self {
            byte: 0,
            line: 1,
            column: 1,
        }
    }
}

impl Place {
    fn advance(&mut self, text: &str, byte: usize) {
        for character in text[self.byte..byte].chars() {
            if character == '\n' {
                (self.line, self.column) = (self.line + 1, 1);
            } else {
                self.column += 1;
            }
        }
        self.byte = byte;
    }
}

/// The value as SQLite's literal; in parentheses where it could grow together with what stands beside it.
fn literal_of(value: &Value) -> Option<String> {
    Some(match value {
        // SQLite has no arrays, and none is ever read from it.
        Value::Null | Value::Array(_) => return None,
        Value::Integer(integer) => format!("({integer})"),
        Value::Real(real) if real.is_infinite() => {
            format!("({}9e999)", if *real < 0.0 { "-" } else { "" })
        }
        Value::Real(real) => format!("({real:?})"),
        Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
        Value::Blob(bytes) => {
            const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
            let mut literal = String::with_capacity(2 * bytes.len() + 5);
            literal.push_str("(X'");
            for byte in bytes {
                literal.push(char::from(DIGITS[usize::from(byte >> 4)]));
                literal.push(char::from(DIGITS[usize::from(byte & 15)]));
            }
            literal.push_str("')");
            literal
        }
    })
}
