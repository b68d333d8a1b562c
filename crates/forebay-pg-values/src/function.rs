//! A function of PostgreSQL's: what it is called with, and what it does. Knows none by name.

use crate::{Datum, Environment, Owned, Result, Type, ValueError};

/// What a function gets.
#[derive(Debug, Clone, Copy)]
pub struct Arguments<'a> {
    /// The arguments in their stored forms. Of a strict function none is NULL.
    pub values: &'a [Datum<'a>],
    /// The type of each argument, if the function asked for them ([`Function::typed`]); else empty.
    pub types: &'a [Type],
    /// The session; UTC and 1970 if the function did not ask for it ([`Function::in_session`]).
    pub environment: &'a Environment,
}

/// What a function does.
pub type Body = fn(Arguments<'_>) -> Result<Owned>;

/// One of PostgreSQL's functions.
#[derive(Debug, Clone, Copy)]
pub struct Function {
    /// PostgreSQL's internal name for it.
    pub symbol: &'static str,
    /// NULL if an argument is NULL; the body is then not called.
    pub strict: bool,
    /// Wants to know the types of its arguments.
    pub typed: bool,
    /// Depends on the session: its time zone, or the moment.
    pub in_session: bool,
    /// What it does.
    pub body: Body,
}

impl Function {
    /// A function that gives NULL for NULL and depends on its arguments alone.
    pub const fn new(symbol: &'static str, body: Body) -> Self {
        Self {
            symbol,
            strict: true,
            typed: false,
            in_session: false,
            body,
        }
    }

    /// Called with NULL too.
    #[must_use]
    pub const fn called_on_null(mut self) -> Self {
        self.strict = false;
        self
    }

    /// Given the types of its arguments (those that PostgreSQL declares as "any", anyelement, anyarray).
    #[must_use]
    pub const fn typed(mut self) -> Self {
        self.typed = true;
        self
    }

    /// Given the session's time zone and moment.
    #[must_use]
    pub const fn in_session(mut self) -> Self {
        self.in_session = true;
        self
    }

    /// Calls it.
    pub fn call(&self, arguments: Arguments<'_>) -> Result<Owned> {
        if self.strict && arguments.values.contains(&Datum::Null) {
            return Ok(Owned::Null);
        }
        (self.body)(arguments)
    }
}

impl<'a> Arguments<'a> {
    /// An integer (or a truth value as 0 or 1).
    pub fn integer(&self, index: usize) -> Result<i64> {
        match self.values.get(index) {
            Some(Datum::Integer(integer)) => Ok(*integer),
            other => Err(Self::unexpected(index, other)),
        }
    }

    /// A truth value.
    pub fn truth(&self, index: usize) -> Result<bool> {
        Ok(self.integer(index)? != 0)
    }

    /// A float.
    pub fn real(&self, index: usize) -> Result<f64> {
        match self.values.get(index) {
            Some(Datum::Real(real)) => Ok(*real),
            // SQLite keeps a float without a fraction as an integer in places.
            #[allow(clippy::cast_precision_loss, reason = "what SQLite made of a float is one")]
            Some(Datum::Integer(integer)) => Ok(*integer as f64),
            other => Err(Self::unexpected(index, other)),
        }
    }

    /// A text, or anything that is stored as one.
    pub fn text(&self, index: usize) -> Result<&'a str> {
        match self.values.get(index) {
            Some(Datum::Text(text)) => Ok(text),
            other => Err(Self::unexpected(index, other)),
        }
    }

    /// Bytes.
    pub fn blob(&self, index: usize) -> Result<&'a [u8]> {
        match self.values.get(index) {
            Some(Datum::Blob(bytes)) => Ok(bytes),
            other => Err(Self::unexpected(index, other)),
        }
    }

    /// Whether the argument is NULL.
    pub fn is_null(&self, index: usize) -> bool {
        matches!(self.values.get(index), Some(Datum::Null))
    }

    fn unexpected(index: usize, found: Option<&Datum<'_>>) -> ValueError {
        // A file that somebody else wrote may hold anything.
        ValueError::new(
            "XX001",
            format!("argument {} is not stored as its type is: {found:?}", index + 1),
        )
    }
}
