//! What a value may depend on beside its arguments: the session's time zone, and the moment its transaction began.

use jiff::tz::TimeZone;

/// See the module.
#[derive(Debug, Clone)]
pub struct Environment {
    /// The session's TimeZone.
    pub zone: TimeZone,
    /// When the transaction began, in microseconds since 1970-01-01 00:00:00 UTC.
    pub now_micros: i64,
}

impl Environment {
    /// UTC, at this moment.
    pub fn new(zone: TimeZone, now_micros: i64) -> Self {
        Self { zone, now_micros }
    }
}
