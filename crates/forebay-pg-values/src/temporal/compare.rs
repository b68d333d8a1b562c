//! Comparisons for which bytes are not enough: across types, and of intervals and timetz. A date counts as its midnight, in the session's
//! zone where it meets a timestamptz.

use std::cmp::Ordering;

use super::casts::{date_to_timestamp, date_to_timestamptz};
use super::limits::SECOND;
use super::values::{date, interval, time, timestamp, timetz};
use super::zone::to_utc;
use crate::{Arguments, Function, Owned, Result};

/// The seven functions of one order.
macro_rules! comparisons {
    ($order:path, [$eq:literal, $ne:literal, $lt:literal, $le:literal, $gt:literal, $ge:literal, $cmp:literal] $($session:ident)?) => {
        &[
            Function::new($eq, |arguments| Ok($order(&arguments)?.is_eq().into()))$(.$session())?,
            Function::new($ne, |arguments| Ok($order(&arguments)?.is_ne().into()))$(.$session())?,
            Function::new($lt, |arguments| Ok($order(&arguments)?.is_lt().into()))$(.$session())?,
            Function::new($le, |arguments| Ok($order(&arguments)?.is_le().into()))$(.$session())?,
            Function::new($gt, |arguments| Ok($order(&arguments)?.is_gt().into()))$(.$session())?,
            Function::new($ge, |arguments| Ok($order(&arguments)?.is_ge().into()))$(.$session())?,
            Function::new($cmp, |arguments| Ok(Owned::Integer($order(&arguments)? as i64)))$(.$session())?,
        ]
    };
}

#[rustfmt::skip]
pub(super) const TABLES: [&[Function]; 11] = [
    comparisons!(date_and_timestamp, ["date_eq_timestamp", "date_ne_timestamp", "date_lt_timestamp", "date_le_timestamp", "date_gt_timestamp", "date_ge_timestamp", "date_cmp_timestamp"]),
    comparisons!(timestamp_and_date, ["timestamp_eq_date", "timestamp_ne_date", "timestamp_lt_date", "timestamp_le_date", "timestamp_gt_date", "timestamp_ge_date", "timestamp_cmp_date"]),
    comparisons!(date_and_timestamptz, ["date_eq_timestamptz", "date_ne_timestamptz", "date_lt_timestamptz", "date_le_timestamptz", "date_gt_timestamptz", "date_ge_timestamptz", "date_cmp_timestamptz"] in_session),
    comparisons!(timestamptz_and_date, ["timestamptz_eq_date", "timestamptz_ne_date", "timestamptz_lt_date", "timestamptz_le_date", "timestamptz_gt_date", "timestamptz_ge_date", "timestamptz_cmp_date"] in_session),
    comparisons!(timestamp_and_timestamptz, ["timestamp_eq_timestamptz", "timestamp_ne_timestamptz", "timestamp_lt_timestamptz", "timestamp_le_timestamptz", "timestamp_gt_timestamptz", "timestamp_ge_timestamptz", "timestamp_cmp_timestamptz"] in_session),
    comparisons!(timestamptz_and_timestamp, ["timestamptz_eq_timestamp", "timestamptz_ne_timestamp", "timestamptz_lt_timestamp", "timestamptz_le_timestamp", "timestamptz_gt_timestamp", "timestamptz_ge_timestamp", "timestamptz_cmp_timestamp"] in_session),
    comparisons!(of_intervals, ["interval_eq", "interval_ne", "interval_lt", "interval_le", "interval_gt", "interval_ge", "interval_cmp"]),
    comparisons!(of_timetzs, ["timetz_eq", "timetz_ne", "timetz_lt", "timetz_le", "timetz_gt", "timetz_ge", "timetz_cmp"]),
    comparisons!(of_text, ["timestamp_eq", "timestamp_ne", "timestamp_lt", "timestamp_le", "timestamp_gt", "timestamp_ge", "timestamp_cmp"]),
    comparisons!(of_text, ["date_eq", "date_ne", "date_lt", "date_le", "date_gt", "date_ge", "date_cmp"]),
    comparisons!(of_text, ["time_eq", "time_ne", "time_lt", "time_le", "time_gt", "time_ge", "time_cmp"]),
];

fn date_and_timestamp(arguments: &Arguments<'_>) -> Result<Ordering> {
    Ok(date_to_timestamp(date(arguments, 0)?).cmp(&timestamp(arguments, 1)?))
}

fn timestamp_and_date(arguments: &Arguments<'_>) -> Result<Ordering> {
    Ok(timestamp(arguments, 0)?.cmp(&date_to_timestamp(date(arguments, 1)?)))
}

fn date_and_timestamptz(arguments: &Arguments<'_>) -> Result<Ordering> {
    let left = date_to_timestamptz(date(arguments, 0)?, arguments.environment)?;
    Ok(left.cmp(&timestamp(arguments, 1)?))
}

fn timestamptz_and_date(arguments: &Arguments<'_>) -> Result<Ordering> {
    let right = date_to_timestamptz(date(arguments, 1)?, arguments.environment)?;
    Ok(timestamp(arguments, 0)?.cmp(&right))
}

fn timestamp_and_timestamptz(arguments: &Arguments<'_>) -> Result<Ordering> {
    let left = to_utc(&arguments.environment.zone, timestamp(arguments, 0)?)?;
    Ok(left.cmp(&timestamp(arguments, 1)?))
}

fn timestamptz_and_timestamp(arguments: &Arguments<'_>) -> Result<Ordering> {
    let right = to_utc(&arguments.environment.zone, timestamp(arguments, 1)?)?;
    Ok(timestamp(arguments, 0)?.cmp(&right))
}

fn of_intervals(arguments: &Arguments<'_>) -> Result<Ordering> {
    Ok(interval(arguments, 0)?.span().cmp(&interval(arguments, 1)?.span()))
}

fn of_timetzs(arguments: &Arguments<'_>) -> Result<Ordering> {
    Ok(timetz_key(timetz(arguments, 0)?).cmp(&timetz_key(timetz(arguments, 1)?)))
}

fn of_text(arguments: &Arguments<'_>) -> Result<Ordering> {
    Ok(arguments.text(0)?.cmp(arguments.text(1)?))
}

/// By the moment of the day in UTC, then by the offset.
pub(super) fn timetz_key((micros, west): (i64, i32)) -> (i64, i32) {
    (micros + i64::from(west) * SECOND, west)
}

/// The larger and smaller of two, and what overlaps.
pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("interval_larger", |arguments| larger(&arguments, of_intervals)),
    Function::new("interval_smaller", |arguments| smaller(&arguments, of_intervals)),
    Function::new("timetz_larger", |arguments| larger(&arguments, of_timetzs)),
    Function::new("timetz_smaller", |arguments| smaller(&arguments, of_timetzs)),
    Function::new("date_larger", |arguments| larger(&arguments, of_text)),
    Function::new("date_smaller", |arguments| smaller(&arguments, of_text)),
    Function::new("time_larger", |arguments| larger(&arguments, of_text)),
    Function::new("time_smaller", |arguments| smaller(&arguments, of_text)),
    Function::new("timestamp_larger", |arguments| larger(&arguments, of_text)),
    Function::new("timestamp_smaller", |arguments| smaller(&arguments, of_text)),
    Function::new("overlaps_timestamp", |arguments| overlaps(&arguments, timestamp)).called_on_null(),
    Function::new("overlaps_time", |arguments| overlaps(&arguments, time)).called_on_null(),
    Function::new("overlaps_timetz", |arguments| {
        overlaps(&arguments, |arguments, index| timetz(arguments, index).map(timetz_key))
    })
    .called_on_null(),
];

type Order = fn(&Arguments<'_>) -> Result<Ordering>;

fn larger(arguments: &Arguments<'_>, order: Order) -> Result<Owned> {
    // Of two equal ones PostgreSQL gives the second.
    Ok(arguments.values[usize::from(order(arguments)?.is_le())].into())
}

fn smaller(arguments: &Arguments<'_>, order: Order) -> Result<Owned> {
    Ok(arguments.values[usize::from(order(arguments)?.is_ge())].into())
}

fn overlaps<T: Ord + Copy>(
    arguments: &Arguments<'_>,
    read: impl Fn(&Arguments<'_>, usize) -> Result<T>,
) -> Result<Owned> {
    let at = |index| {
        if arguments.is_null(index) {
            Ok(None)
        } else {
            read(arguments, index).map(Some)
        }
    };
    Ok(periods_overlap((at(0)?, at(1)?), (at(2)?, at(3)?)).into())
}

/// Whether two periods overlap; not known where an end that matters is not. A period's ends may be given in either order, and one that
/// ends where it begins is a moment.
pub(super) fn periods_overlap<T: Ord + Copy>(
    left: (Option<T>, Option<T>),
    right: (Option<T>, Option<T>),
) -> Option<bool> {
    let ends = |(from, to): (Option<T>, Option<T>)| match (from, to) {
        (Some(from), Some(to)) => Some((from.min(to), Some(from.max(to)))),
        (Some(one), None) | (None, Some(one)) => Some((one, None)),
        (None, None) => None,
    };
    let ((left_from, left_to), (right_from, right_to)) = (ends(left)?, ends(right)?);
    let (later_from, earlier_to, later_to) = match left_from.cmp(&right_from) {
        Ordering::Greater => (left_from, right_to, left_to),
        Ordering::Less => (right_from, left_to, right_to),
        Ordering::Equal => return (left_to.is_some() && right_to.is_some()).then_some(true),
    };
    if later_from < earlier_to? {
        return Some(true);
    }
    later_to.map(|_| false)
}
