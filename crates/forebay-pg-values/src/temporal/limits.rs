//! PostgreSQL's numbers for moments, and how far they go. What it counts in: days and microseconds since 2000-01-01, with the ends of the
//! integers for the infinities. Its range is wider than that of the stored forms, which end with the years 0001 and 9999.

use crate::{Result, ValueError};

/// Microseconds of a second.
pub(crate) const SECOND: i64 = 1_000_000;
/// Microseconds of a minute.
pub(crate) const MINUTE: i64 = 60 * SECOND;
/// Microseconds of an hour.
pub(crate) const HOUR: i64 = 60 * MINUTE;
/// Microseconds of a day.
pub(crate) const DAY: i64 = 24 * HOUR;
/// Seconds of a day.
pub(crate) const DAY_SECONDS: i64 = 86_400;
/// Seconds from 1970-01-01 to 2000-01-01.
pub(crate) const UNIX_SECONDS: i64 = 946_684_800;
/// 2000-01-01 as a Julian day.
pub(crate) const EPOCH_JULIAN: i64 = 2_451_545;

/// PostgreSQL's `infinity` of a timestamp.
pub const TIMESTAMP_INFINITY: i64 = i64::MAX;
/// PostgreSQL's `-infinity` of a timestamp.
pub const TIMESTAMP_MINUS_INFINITY: i64 = i64::MIN;
/// PostgreSQL's `infinity` of a date.
pub const DATE_INFINITY: i32 = i32::MAX;
/// PostgreSQL's `-infinity` of a date.
pub const DATE_MINUS_INFINITY: i32 = i32::MIN;

/// PostgreSQL's first timestamp, 4714-11-24 00:00:00 BC.
const TIMESTAMP_FIRST: i64 = -211_813_488_000_000_000;
/// The moment after PostgreSQL's last timestamp, 294277-01-01 00:00:00.
const TIMESTAMP_END: i64 = 9_223_371_331_200_000_000;
/// PostgreSQL's first date, 4714-11-24 BC.
const DATE_FIRST: i64 = -EPOCH_JULIAN;
/// The day after PostgreSQL's last date, 5874898-01-01.
const DATE_END: i64 = 2_147_483_494 - EPOCH_JULIAN;

/// Whether a timestamp is finite.
pub(crate) fn is_finite(micros: i64) -> bool {
    micros != TIMESTAMP_INFINITY && micros != TIMESTAMP_MINUS_INFINITY
}

/// Whether a date is finite.
pub(crate) fn is_finite_date(days: i32) -> bool {
    days != DATE_INFINITY && days != DATE_MINUS_INFINITY
}

/// `timestamp out of range`.
pub(crate) fn timestamp_out_of_range() -> ValueError {
    ValueError::new("22008", "timestamp out of range")
}

/// `date out of range`.
pub(crate) fn date_out_of_range() -> ValueError {
    ValueError::new("22008", "date out of range")
}

/// `interval out of range`.
pub(crate) fn interval_out_of_range() -> ValueError {
    ValueError::new("22008", "interval out of range")
}

/// What PostgreSQL has and the stored forms have not.
pub(crate) fn beyond_stored_years() -> ValueError {
    ValueError::unsupported("years before 0001 and after 9999 are")
}

/// A finite timestamp that PostgreSQL has, or its error.
pub(crate) fn timestamp_in_range(micros: Option<i64>) -> Result<i64> {
    micros
        .filter(|micros| (TIMESTAMP_FIRST..TIMESTAMP_END).contains(micros))
        .ok_or_else(timestamp_out_of_range)
}

/// A finite date that PostgreSQL has, or its error.
pub(crate) fn date_in_range(days: i64) -> Result<i32> {
    if (DATE_FIRST..DATE_END).contains(&days) {
        i32::try_from(days).map_err(|_| date_out_of_range())
    } else {
        Err(date_out_of_range())
    }
}
