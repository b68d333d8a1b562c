//! One write as it is handed over: text, parameters, and the limits its caller sets.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use super::{CancelToken, Outcome, Parameters, WriteError};

/// The text of one statement. Made from a `&'static str`, a `String` or an `Arc<str>`; the first and the last cost no
/// allocation a call.
#[derive(Debug, Clone, Eq)]
pub enum Sql {
    /// A literal in the program.
    Static(&'static str),
    /// Text made at run time, shared.
    Shared(Arc<str>),
}

impl Deref for Sql {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Static(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl PartialEq for Sql {
    fn eq(&self, other: &Self) -> bool {
        let (one, two): (&str, &str) = (self, other);
        std::ptr::eq(one, two) || one == two
    }
}

impl From<&'static str> for Sql {
    fn from(text: &'static str) -> Self {
        Self::Static(text)
    }
}

impl From<String> for Sql {
    fn from(text: String) -> Self {
        Self::Shared(text.into())
    }
}

impl From<Arc<str>> for Sql {
    fn from(text: Arc<str>) -> Self {
        Self::Shared(text)
    }
}

/// One statement to write, with its parameters and its caller's limits.
#[derive(Debug, Clone)]
pub struct Write {
    pub(crate) sql: Sql,
    pub(crate) parameters: Parameters,
    pub(crate) max_wait: Option<Duration>,
    pub(crate) cancel: Option<CancelToken>,
    pub(crate) acceptance: Option<Acceptance>,
}

/// Whether the caller takes an outcome; if not, why.
#[derive(Clone)]
pub(crate) struct Acceptance(Arc<Accept>);

/// Looks at an outcome before it is committed; the text says why it is not taken.
type Accept = dyn Fn(&Outcome) -> Result<(), String> + Send + Sync;

impl Acceptance {
    pub(crate) fn of(&self, outcome: &Outcome) -> Result<(), WriteError> {
        (self.0)(outcome).map_err(|reason| WriteError::Refused { reason })
    }
}

impl fmt::Debug for Acceptance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Acceptance")
    }
}

impl Write {
    /// A statement and its parameters: `?1`, `$1` is the first of them, whatever the order they stand in the text.
    pub fn new(sql: impl Into<Sql>, parameters: impl Into<Parameters>) -> Self {
        Self {
            sql: sql.into(),
            parameters: parameters.into(),
            max_wait: None,
            cancel: None,
            acceptance: None,
        }
    }

    /// Its own window: the longest it may wait for others to share its commit. Zero: at once.
    #[must_use]
    pub fn max_wait(mut self, max_wait: Duration) -> Self {
        self.max_wait = Some(max_wait);
        self
    }

    /// Can be cancelled, or has a deadline.
    #[must_use]
    pub fn cancel(mut self, token: CancelToken) -> Self {
        self.cancel = Some(token);
        self
    }

    /// Asks `accept` before the commit. An outcome that it does not take is undone, and its reason is the caller's
    /// [`WriteError::Refused`]. It runs on the database's thread, so it must be quick and must not panic.
    #[must_use]
    pub fn accept_if(mut self, accept: impl Fn(&Outcome) -> Result<(), String> + Send + Sync + 'static) -> Self {
        self.acceptance = Some(Acceptance(Arc::new(accept)));
        self
    }

    /// Bytes that this write holds while it waits; what `max_weight` counts.
    pub(crate) fn weight(&self) -> usize {
        let text = match &self.sql {
            Sql::Static(_) => 0,
            Sql::Shared(text) => text.len(),
        };
        size_of::<Self>()
            + text
            + self
                .parameters
                .values()
                .iter()
                .map(|value| size_of_val(value) + value.heap_bytes())
                .sum::<usize>()
    }
}
