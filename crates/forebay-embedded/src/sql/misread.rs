//! Texts that the parser accepts, though PostgreSQL would refuse them or read them as something else.
//!
//! Promises: PostgreSQL's error where there is one, otherwise a refusal by name. Looks at tokens only.

use sqlparser::ast::DataType;
use sqlparser::parser::Parser;

use super::compile::types::has_values;
use super::dialect::ForebayDialect;
use super::error::{SqlError, character_position};
use super::facts;
use super::lexer::{Kind, Token};

/// Words behind which an expression begins, so that a bracket there is no subscript.
const BEFORE_EXPRESSIONS: [&str; 30] = [
    "SELECT",
    "WHERE",
    "HAVING",
    "ON",
    "AND",
    "OR",
    "NOT",
    "IN",
    "IS",
    "LIKE",
    "ILIKE",
    "SIMILAR",
    "BETWEEN",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "BY",
    "RETURNING",
    "SET",
    "VALUES",
    "FROM",
    "LIMIT",
    "OFFSET",
    "DISTINCT",
    "ALL",
    "ANY",
    "SOME",
    "USING",
    "DEFAULT",
];

pub(super) fn refuse(script: &str, tokens: &[Token]) -> Result<(), SqlError> {
    precision_of_an_interval(script, tokens)?;
    for pair in tokens.windows(2) {
        let [before, text] = pair else { continue };
        if text.kind != Kind::Text {
            continue;
        }
        if matches!(before.kind, Kind::Text | Kind::EscapedText) {
            let between = &script[before.range.end..text.range.start];
            if !between.contains('\n') || between.contains("/*") {
                return Err(syntax_error(script, text));
            }
            if before.kind == Kind::EscapedText {
                return Err(SqlError::unsupported("E'…' that goes on in another line"));
            }
        }
        if before.kind == Kind::Word {
            typed_literal(before.text(script))?;
        }
    }
    if let Some(pair) = tokens
        .windows(2)
        .find(|pair| pair[0].is_word(script, "INSERT") && pair[1].is_word(script, "OVERWRITE"))
    {
        return Err(syntax_error(script, &pair[1]));
    }
    brackets(script, tokens)
}

/// `interval(3) '…'`.
fn precision_of_an_interval(script: &str, tokens: &[Token]) -> Result<(), SqlError> {
    let misread = tokens.windows(5).any(|five| {
        five[0].is_word(script, "INTERVAL")
            && five[1].kind == Kind::Open
            && five[3].kind == Kind::Close
            && five[4].kind == Kind::Text
    });
    if misread {
        return Err(SqlError::unsupported_but(
            "INTERVAL(precision) before a literal",
            "Cast the literal instead: '…'::interval(2).",
        ));
    }
    Ok(())
}

/// `inet '…'`, which the parser reads as a column with an alias where it does not know the type.
fn typed_literal(word: &str) -> Result<(), SqlError> {
    let name = word.to_ascii_lowercase();
    let Some(oid) = facts::type_named(&name) else {
        return Ok(());
    };
    if !has_values(oid) {
        return Err(SqlError::unsupported(format!("the type {name}")));
    }
    let read = Parser::new(&ForebayDialect)
        .try_with_sql(&name)
        .and_then(|mut parser| parser.parse_data_type());
    if matches!(read, Ok(DataType::Custom(..))) {
        return Err(SqlError::unsupported_but(
            format!("{name} before a literal"),
            format!("Cast the literal instead: '…'::{name}."),
        ));
    }
    Ok(())
}

/// `[…]` is a subscript, a part of a type's name, or belongs to ARRAY; by itself it is nothing.
fn brackets(script: &str, tokens: &[Token]) -> Result<(), SqlError> {
    // Of each open bracket, whether elements stand in it.
    let mut open = Vec::new();
    for (place, token) in tokens.iter().enumerate() {
        match token.text(script) {
            "[" if token.kind == Kind::Operator => {
                let before = place.checked_sub(1).map(|before| &tokens[before]);
                let elements = match before {
                    Some(before) if before.is_word(script, "ARRAY") => true,
                    Some(before) if before.kind == Kind::Comma || before.text(script) == "[" => {
                        if open.last() != Some(&true) {
                            return Err(syntax_error(script, token));
                        }
                        true
                    }
                    Some(before) if follows_a_value(script, before) => false,
                    _ => return Err(syntax_error(script, token)),
                };
                open.push(elements);
            }
            "]" if token.kind == Kind::Operator => {
                open.pop();
            }
            _ => {}
        }
    }
    Ok(())
}

fn follows_a_value(script: &str, token: &Token) -> bool {
    match token.kind {
        Kind::Word => !BEFORE_EXPRESSIONS.iter().any(|word| token.is_word(script, word)),
        Kind::QuotedName | Kind::Parameter | Kind::Close => true,
        Kind::Operator => token.text(script) == "]",
        _ => false,
    }
}

fn syntax_error(script: &str, token: &Token) -> SqlError {
    SqlError::Syntax {
        message: format!("syntax error at or near \"{}\"", token.text(script)),
        position: Some(character_position(script, token.range.start)),
    }
}
