//! Dates, times, timestamps and intervals: their text, their numbers, their functions.
//!
//! Promises: as for the crate. Dates and timestamps end with the years 0001 and 9999, in UTC for a timestamptz; what PostgreSQL has beyond
//! is refused. DateStyle is `ISO, MDY` and IntervalStyle `postgres`.
//!
//! Functions count as PostgreSQL does, in days and microseconds since 2000-01-01 ([`date_to_days`], [`timestamp_to_micros`]); the calendar
//! and the zones are `jiff`'s. Knows nothing of the format of the wire, though its numbers are the same.

mod abbreviations;
mod arithmetic;
mod casts;
mod civil;
mod compare;
mod decode;
mod from_char;
mod general;
mod input;
pub(crate) mod keywords;
mod limits;
mod make;
mod output;
mod part;
mod pattern;
mod rounding;
mod stored;
mod to_char;
pub(crate) mod tokens;
mod truncate;
mod values;
mod zone;

pub use arithmetic::add_interval;
pub use input::parse;
pub use limits::{DATE_INFINITY, DATE_MINUS_INFINITY, TIMESTAMP_INFINITY, TIMESTAMP_MINUS_INFINITY};
pub use output::write;
pub use stored::{
    date_from_days, date_to_days, time_from_micros, time_to_micros, timestamp_from_micros, timestamp_to_micros,
    timetz_from_parts, timetz_to_parts,
};
pub use zone::{at_time_zone, parse_zone};

use general::general_format;
pub(crate) use limits::{DAY, HOUR, MINUTE, SECOND, interval_out_of_range};
pub(crate) use rounding::round_to;
pub(crate) use stored::write_fraction;

use crate::Function;

/// All of the family.
pub(crate) const FUNCTIONS: &[Function] = &values::concatenate::<{ values::count(TABLES) }>(TABLES);

const TABLES: &[&[Function]] = &[
    arithmetic::FUNCTIONS,
    casts::FUNCTIONS,
    compare::FUNCTIONS,
    make::FUNCTIONS,
    part::FUNCTIONS,
    from_char::FUNCTIONS,
    to_char::FUNCTIONS,
    truncate::FUNCTIONS,
    compare::TABLES[0],
    compare::TABLES[1],
    compare::TABLES[2],
    compare::TABLES[3],
    compare::TABLES[4],
    compare::TABLES[5],
    compare::TABLES[6],
    compare::TABLES[7],
    compare::TABLES[8],
    compare::TABLES[9],
    compare::TABLES[10],
];

#[cfg(test)]
mod tests;
