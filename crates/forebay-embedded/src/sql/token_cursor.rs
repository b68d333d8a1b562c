//! A cursor over a statement's tokens, for the statements that are parsed by hand.
//!
//! Promises: never reads past the statement, and never guesses: a token is taken only if it is what was asked for. Knows nothing of
//! what the statements mean.

use super::error::{SqlError, character_position};
use super::identifier::cut;
use super::lexer::{Kind, Token, name_value, string_value};

/// A place in the tokens (comments taken out) of one statement.
#[derive(Debug, Clone)]
pub(crate) struct TokenCursor<'a> {
    pub(crate) source: &'a str,
    tokens: &'a [Token],
}

impl<'a> TokenCursor<'a> {
    pub(crate) fn new(source: &'a str, tokens: &'a [Token]) -> Self {
        Self { source, tokens }
    }

    pub(crate) fn peek(&self) -> Option<&'a Token> {
        self.tokens.first()
    }

    pub(crate) fn next(&mut self) -> Option<&'a Token> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first)
    }

    /// What was not read yet.
    pub(crate) fn rest(&self) -> &'a [Token] {
        self.tokens
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The next token, if it is a bare word, in upper case.
    pub(crate) fn peek_word(&self) -> String {
        match self.peek() {
            Some(token) if token.kind == Kind::Word => token.text(self.source).to_ascii_uppercase(),
            _ => String::new(),
        }
    }

    /// Takes these bare words if all of them come next.
    pub(crate) fn take_words(&mut self, words: &[&str]) -> bool {
        let here = self.tokens.len() >= words.len()
            && words
                .iter()
                .zip(self.tokens)
                .all(|(word, token)| token.is_word(self.source, word));
        if here {
            self.tokens = &self.tokens[words.len()..];
        }
        here
    }

    /// Takes this operator or punctuation if it comes next.
    pub(crate) fn take_sign(&mut self, sign: &str) -> bool {
        let here = self
            .peek()
            .is_some_and(|token| !matches!(token.kind, Kind::Word | Kind::Text) && token.text(self.source) == sign);
        if here {
            self.tokens = &self.tokens[1..];
        }
        here
    }

    /// A name, quoted or not, as PostgreSQL reads it: unquoted ones in lower case, all of them cut to its length.
    pub(crate) fn name(&mut self, what: &str) -> Result<String, SqlError> {
        let Some(token) = self.peek() else {
            return self.expected(what);
        };
        let Some(name) = name_value(token.kind, token.text(self.source)) else {
            return self.expected(what);
        };
        self.next();
        Ok(cut(if token.kind == Kind::Word {
            name.to_ascii_lowercase()
        } else {
            name
        }))
    }

    /// A string literal, if one comes next.
    pub(crate) fn string(&mut self) -> Result<Option<String>, SqlError> {
        let Some(token) = self.peek() else {
            return Ok(None);
        };
        let Some(value) = string_value(token.kind, token.text(self.source)) else {
            return Ok(None);
        };
        self.next();
        value.map(Some)
    }

    /// The error for anything but what is wanted here.
    pub(crate) fn expected<T>(&self, what: &str) -> Result<T, SqlError> {
        let (message, position) = match self.peek() {
            Some(token) => (
                format!("expected {what}, found \"{}\"", token.text(self.source)),
                Some(character_position(self.source, token.range.start)),
            ),
            None => (format!("expected {what} at the end of the statement"), None),
        };
        Err(SqlError::Syntax { message, position })
    }

    /// Fails unless the statement ends here.
    pub(crate) fn end(&self) -> Result<(), SqlError> {
        if self.is_at_end() {
            Ok(())
        } else {
            self.expected("the end of the statement")
        }
    }
}
