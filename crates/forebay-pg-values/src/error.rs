//! Why there is no value: PostgreSQL's SQLSTATE and message, so that a client sees what PostgreSQL would have told it.

use std::fmt;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueError {
    /// Five characters.
    pub sqlstate: &'static str,
    /// PostgreSQL's own words where it would give this error too.
    pub message: String,
    /// More about this case.
    pub detail: Option<String>,
    /// What to do.
    pub hint: Option<String>,
}

impl ValueError {
    /// An error as PostgreSQL would give it.
    pub fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self {
            sqlstate,
            message: message.into(),
            detail: None,
            hint: None,
        }
    }

    /// PostgreSQL has an answer to this, and it cannot be given here. `what` reads as in "arrays of arrays are not supported".
    pub fn unsupported(what: impl fmt::Display) -> Self {
        Self::new("0A000", format!("{what} not supported"))
    }

    /// `invalid input syntax for type date: "x"` (22P02, which temporal types spell 22007).
    pub fn invalid_text(sqlstate: &'static str, type_name: &str, text: &str) -> Self {
        Self::new(
            sqlstate,
            format!("invalid input syntax for type {type_name}: \"{text}\""),
        )
    }

    /// `integer out of range` (22003).
    pub fn out_of_range(type_name: &str) -> Self {
        Self::new("22003", format!("{type_name} out of range"))
    }

    /// `division by zero` (22012).
    pub fn division_by_zero() -> Self {
        Self::new("22012", "division by zero")
    }

    /// With a detail.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// With a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for ValueError {}
