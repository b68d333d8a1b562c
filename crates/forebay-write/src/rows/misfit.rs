//! Why a row or a cell does not fit what is asked for. Knows nothing of either.

use std::fmt;

use serde::de;

/// Why a row or a cell does not fit.
#[derive(Debug)]
pub struct Misfit(pub String);

impl Misfit {
    pub(super) fn in_column(self, name: &str) -> Self {
        Self(format!("column {name}: {}", self.0))
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misfit {}

impl de::Error for Misfit {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}
