//! A row that a request has written. Knows no database.

use std::time::{SystemTime, UNIX_EPOCH};

/// A row to write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) value: i32,
    /// Milliseconds since 1970.
    pub(crate) created_at: i64,
}

impl Entry {
    pub(crate) fn now(value: i32) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            value,
            created_at: i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        }
    }
}
