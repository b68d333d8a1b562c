//! Arguments as numbers and results as stored values: what all functions of these types begin and end with.

use super::stored::{
    date_from_days, date_to_days, time_from_micros, time_to_micros, timestamp_from_micros, timestamp_to_micros,
    timetz_from_parts, timetz_to_parts,
};
use crate::interval::Interval;
use crate::{Arguments, Function, Owned, Result, ValueError};

pub(super) fn date(arguments: &Arguments<'_>, index: usize) -> Result<i32> {
    date_to_days(arguments.text(index)?)
}

/// A timestamp or timestamptz.
pub(super) fn timestamp(arguments: &Arguments<'_>, index: usize) -> Result<i64> {
    timestamp_to_micros(arguments.text(index)?)
}

pub(super) fn time(arguments: &Arguments<'_>, index: usize) -> Result<i64> {
    time_to_micros(arguments.text(index)?)
}

pub(super) fn timetz(arguments: &Arguments<'_>, index: usize) -> Result<(i64, i32)> {
    timetz_to_parts(arguments.text(index)?)
}

pub(super) fn interval(arguments: &Arguments<'_>, index: usize) -> Result<Interval> {
    Interval::from_stored(arguments.text(index)?)
}

/// PostgreSQL's int4.
pub(super) fn int4(arguments: &Arguments<'_>, index: usize) -> Result<i32> {
    i32::try_from(arguments.integer(index)?).map_err(|_| ValueError::out_of_range("integer"))
}

pub(super) fn of_date(days: i32) -> Result<Owned> {
    Ok(Owned::Text(date_from_days(days)?))
}

pub(super) fn of_timestamp(micros: i64) -> Result<Owned> {
    Ok(Owned::Text(timestamp_from_micros(micros)?))
}

pub(super) fn of_time(micros: i64) -> Result<Owned> {
    Ok(Owned::Text(time_from_micros(micros)))
}

pub(super) fn of_timetz((micros, west): (i64, i32)) -> Result<Owned> {
    Ok(Owned::Text(timetz_from_parts(micros, west)))
}

pub(super) fn of_interval(interval: Interval) -> Result<Owned> {
    Ok(Owned::Text(interval.to_stored()))
}

/// How many functions there are in some tables.
pub(super) const fn count(tables: &[&[Function]]) -> usize {
    let mut sum = 0;
    let mut table = 0;
    while table < tables.len() {
        sum += tables[table].len();
        table += 1;
    }
    sum
}

/// The functions of some tables, which have [`count`] of them.
pub(super) const fn concatenate<const COUNT: usize>(tables: &[&[Function]]) -> [Function; COUNT] {
    let mut all = [Function::new("", |_| Ok(Owned::Null)); COUNT];
    let (mut table, mut row, mut at) = (0, 0, 0);
    while table < tables.len() {
        if row == tables[table].len() {
            table += 1;
            row = 0;
            continue;
        }
        all[at] = tables[table][row];
        at += 1;
        row += 1;
    }
    all
}
