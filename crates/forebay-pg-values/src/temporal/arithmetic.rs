//! `+`, `-`, `*`, `/` and age.

use super::casts::date_to_timestamp;
use super::civil::{Fields, date_of, days_in_month};
use super::compare::periods_overlap;
use super::input::now;
use super::limits::{
    DAY, SECOND, date_in_range, interval_out_of_range, is_finite, is_finite_date, timestamp_in_range,
    timestamp_out_of_range,
};
use super::values::{date, interval, of_date, of_interval, of_time, of_timestamp, of_timetz, time, timestamp, timetz};
use super::zone::{offset_of, to_local, to_utc};
use crate::interval::Interval;
use crate::{Arguments, Environment, Function, Owned, Result, ValueError};
use jiff::tz::TimeZone;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("date_pli", |arguments| {
        days_later(date(&arguments, 0)?, arguments.integer(1)?)
    }),
    Function::new("integer_pl_date(int4,date)", |arguments| {
        days_later(date(&arguments, 1)?, arguments.integer(0)?)
    }),
    Function::new("date_mii", |arguments| {
        days_later(date(&arguments, 0)?, -arguments.integer(1)?)
    }),
    Function::new("date_mi", |arguments| {
        let (left, right) = (date(&arguments, 0)?, date(&arguments, 1)?);
        if !is_finite_date(left) || !is_finite_date(right) {
            return Err(ValueError::new("22008", "cannot subtract infinite dates"));
        }
        Ok(Owned::Integer(i64::from(left) - i64::from(right)))
    }),
    Function::new("date_pl_interval", |arguments| plus(&arguments, midnight, 0, 1)),
    Function::new("interval_pl_date(interval,date)", |arguments| {
        plus(&arguments, midnight, 1, 0)
    }),
    Function::new("date_mi_interval", |arguments| {
        let span = negated(interval(&arguments, 1)?);
        of_timestamp(add_interval(midnight(&arguments, 0)?, span, None)?)
    }),
    Function::new("timestamp_pl_interval", |arguments| plus(&arguments, timestamp, 0, 1)),
    Function::new("interval_pl_timestamp(interval,timestamp)", |arguments| {
        plus(&arguments, timestamp, 1, 0)
    }),
    Function::new("timestamp_mi_interval", |arguments| {
        let span = negated(interval(&arguments, 1)?);
        of_timestamp(add_interval(timestamp(&arguments, 0)?, span, None)?)
    }),
    Function::new("timestamptz_pl_interval", |arguments| {
        plus_in_session(&arguments, 0, interval(&arguments, 1)?)
    })
    .in_session(),
    Function::new("interval_pl_timestamptz(interval,timestamptz)", |arguments| {
        plus_in_session(&arguments, 1, interval(&arguments, 0)?)
    })
    .in_session(),
    Function::new("timestamptz_mi_interval", |arguments| {
        plus_in_session(&arguments, 0, negated(interval(&arguments, 1)?))
    })
    .in_session(),
    Function::new("timestamp_mi", |arguments| {
        of_interval(difference(timestamp(&arguments, 0)?, timestamp(&arguments, 1)?)?)
    }),
    Function::new("datetime_timestamp", |arguments| {
        of_timestamp(at_time(midnight(&arguments, 0)?, time(&arguments, 1)?)?)
    }),
    Function::new("timedate_pl(time,date)", |arguments| {
        of_timestamp(at_time(midnight(&arguments, 1)?, time(&arguments, 0)?)?)
    }),
    Function::new("timestamptz(date,time)", |arguments| {
        let local = at_time(midnight(&arguments, 0)?, time(&arguments, 1)?)?;
        of_timestamp(to_utc(&arguments.environment.zone, local)?)
    })
    .in_session(),
    Function::new("datetimetz_timestamptz", |arguments| {
        of_timestamp(at_timetz(midnight(&arguments, 0)?, timetz(&arguments, 1)?)?)
    }),
    Function::new("timetzdate_pl(timetz,date)", |arguments| {
        of_timestamp(at_timetz(midnight(&arguments, 1)?, timetz(&arguments, 0)?)?)
    }),
    Function::new("time_mi_time", |arguments| {
        of_interval(Interval {
            micros: time(&arguments, 0)? - time(&arguments, 1)?,
            ..Interval::default()
        })
    }),
    Function::new("time_pl_interval", |arguments| {
        of_time(on_the_clock(time(&arguments, 0)?, interval(&arguments, 1)?.micros))
    }),
    Function::new("interval_pl_time(interval,time)", |arguments| {
        of_time(on_the_clock(time(&arguments, 1)?, interval(&arguments, 0)?.micros))
    }),
    Function::new("time_mi_interval", |arguments| {
        of_time(on_the_clock(
            time(&arguments, 0)?,
            interval(&arguments, 1)?.micros.wrapping_neg(),
        ))
    }),
    Function::new("timetz_pl_interval", |arguments| {
        let (micros, west) = timetz(&arguments, 0)?;
        of_timetz((on_the_clock(micros, interval(&arguments, 1)?.micros), west))
    }),
    Function::new("interval_pl_timetz(interval,timetz)", |arguments| {
        let (micros, west) = timetz(&arguments, 1)?;
        of_timetz((on_the_clock(micros, interval(&arguments, 0)?.micros), west))
    }),
    Function::new("timetz_mi_interval", |arguments| {
        let (micros, west) = timetz(&arguments, 0)?;
        of_timetz((
            on_the_clock(micros, interval(&arguments, 1)?.micros.wrapping_neg()),
            west,
        ))
    }),
    Function::new("interval_um", |arguments| {
        of_interval(interval(&arguments, 0)?.checked_neg()?)
    }),
    Function::new("interval_pl", |arguments| {
        of_interval(interval(&arguments, 0)?.checked_add(interval(&arguments, 1)?)?)
    }),
    Function::new("interval_mi", |arguments| {
        of_interval(interval(&arguments, 0)?.checked_sub(interval(&arguments, 1)?)?)
    }),
    Function::new("interval_mul", |arguments| {
        of_interval(interval(&arguments, 0)?.multiply(arguments.real(1)?)?)
    }),
    Function::new("mul_d_interval", |arguments| {
        of_interval(interval(&arguments, 1)?.multiply(arguments.real(0)?)?)
    }),
    Function::new("interval_div", |arguments| {
        of_interval(interval(&arguments, 0)?.divide(arguments.real(1)?)?)
    }),
    Function::new("interval_justify_hours", |arguments| {
        of_interval(interval(&arguments, 0)?.justify_hours()?)
    }),
    Function::new("interval_justify_days", |arguments| {
        of_interval(interval(&arguments, 0)?.justify_days()?)
    }),
    Function::new("interval_justify_interval", |arguments| {
        of_interval(interval(&arguments, 0)?.justify()?)
    }),
    Function::new("date_finite", |arguments| {
        Ok(is_finite_date(date(&arguments, 0)?).into())
    }),
    Function::new("timestamp_finite", |arguments| {
        Ok(is_finite(timestamp(&arguments, 0)?).into())
    }),
    Function::new("interval_finite", |_| Ok(true.into())),
    Function::new("timestamp_age", |arguments| {
        of_interval(age(timestamp(&arguments, 0)?, timestamp(&arguments, 1)?, None)?)
    }),
    Function::new("timestamptz_age", |arguments| {
        let zone = &arguments.environment.zone;
        of_interval(age(timestamp(&arguments, 0)?, timestamp(&arguments, 1)?, Some(zone))?)
    })
    .in_session(),
    Function::new("age(timestamp)", |arguments| {
        of_interval(age(today(arguments.environment)?, timestamp(&arguments, 0)?, None)?)
    })
    .in_session(),
    Function::new("age(timestamptz)", |arguments| {
        let zone = &arguments.environment.zone;
        let today = to_utc(zone, today(arguments.environment)?)?;
        of_interval(age(today, timestamp(&arguments, 0)?, Some(zone))?)
    })
    .in_session(),
    Function::new("overlaps(timestamp,interval,timestamp,interval)", |arguments| {
        overlaps(&arguments, [true, true], |left, span| add_interval(left, span, None))
    })
    .called_on_null(),
    Function::new("overlaps(timestamp,timestamp,timestamp,interval)", |arguments| {
        overlaps(&arguments, [false, true], |left, span| add_interval(left, span, None))
    })
    .called_on_null(),
    Function::new("overlaps(timestamp,interval,timestamp,timestamp)", |arguments| {
        overlaps(&arguments, [true, false], |left, span| add_interval(left, span, None))
    })
    .called_on_null(),
    Function::new("overlaps(timestamptz,interval,timestamptz,interval)", |arguments| {
        overlaps_in_session(&arguments, [true, true])
    })
    .called_on_null()
    .in_session(),
    Function::new("overlaps(timestamptz,timestamptz,timestamptz,interval)", |arguments| {
        overlaps_in_session(&arguments, [false, true])
    })
    .called_on_null()
    .in_session(),
    Function::new("overlaps(timestamptz,interval,timestamptz,timestamptz)", |arguments| {
        overlaps_in_session(&arguments, [true, false])
    })
    .called_on_null()
    .in_session(),
    Function::new("overlaps(time,interval,time,interval)", |arguments| {
        overlaps_of_times(&arguments, [true, true])
    })
    .called_on_null(),
    Function::new("overlaps(time,time,time,interval)", |arguments| {
        overlaps_of_times(&arguments, [false, true])
    })
    .called_on_null(),
    Function::new("overlaps(time,interval,time,time)", |arguments| {
        overlaps_of_times(&arguments, [true, false])
    })
    .called_on_null(),
];

type Read<T> = fn(&Arguments<'_>, usize) -> Result<T>;

fn midnight(arguments: &Arguments<'_>, index: usize) -> Result<i64> {
    date(arguments, index).map(date_to_timestamp)
}

fn today(environment: &Environment) -> Result<i64> {
    Ok(to_local(&environment.zone, now(environment))?.div_euclid(DAY) * DAY)
}

fn days_later(days: i32, more: i64) -> Result<Owned> {
    if !is_finite_date(days) {
        return of_date(days);
    }
    of_date(date_in_range(i64::from(days) + more)?)
}

fn plus(arguments: &Arguments<'_>, read: Read<i64>, moment: usize, span: usize) -> Result<Owned> {
    of_timestamp(add_interval(
        read(arguments, moment)?,
        interval(arguments, span)?,
        None,
    )?)
}

fn plus_in_session(arguments: &Arguments<'_>, moment: usize, span: Interval) -> Result<Owned> {
    let zone = &arguments.environment.zone;
    of_timestamp(add_interval(timestamp(arguments, moment)?, span, Some(zone))?)
}

/// As PostgreSQL negates before it adds: the smallest number stays what it is.
fn negated(span: Interval) -> Interval {
    Interval {
        micros: span.micros.wrapping_neg(),
        days: span.days.wrapping_neg(),
        months: span.months.wrapping_neg(),
    }
}

/// A timestamp that much later: first months, to the end of a month at most, then days, then microseconds. Months and days of a timestamptz
/// are counted on the clocks of its zone.
pub fn add_interval(micros: i64, span: Interval, zone: Option<&TimeZone>) -> Result<i64> {
    if !is_finite(micros) {
        return Ok(micros);
    }
    let mut micros = micros;
    if span.months != 0 {
        let mut fields = Fields::of(local_in(micros, zone)?)?;
        let months = i64::from(fields.year) * 12 + i64::from(fields.month - 1) + i64::from(span.months);
        let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
        if !(-4_713..=294_276).contains(&year) {
            return Err(timestamp_out_of_range());
        }
        #[allow(clippy::cast_possible_truncation, reason = "of a calendar")]
        {
            (fields.year, fields.month) = (year as i32, month as i32);
        }
        fields.day = fields.day.min(days_in_month(year, fields.month)?);
        micros = moment_in(&fields, zone)?;
    }
    if span.days != 0 {
        let mut fields = Fields::of(local_in(micros, zone)?)?;
        let days = i64::from(super::civil::days_of(fields.date()?)) + i64::from(span.days);
        timestamp_in_range(days.checked_mul(DAY))?;
        let day = Fields::of_date(date_of(days)?);
        (fields.year, fields.month, fields.day) = (day.year, day.month, day.day);
        micros = moment_in(&fields, zone)?;
    }
    timestamp_in_range(micros.checked_add(span.micros))
}

fn local_in(micros: i64, zone: Option<&TimeZone>) -> Result<i64> {
    zone.map_or(Ok(micros), |zone| to_local(zone, micros))
}

fn moment_in(fields: &Fields, zone: Option<&TimeZone>) -> Result<i64> {
    let east = match zone {
        Some(zone) => offset_of(zone, fields)?,
        None => 0,
    };
    timestamp_in_range(fields.local()?.checked_sub(i64::from(east) * SECOND))
}

/// What lies between two timestamps, in days and less.
fn difference(left: i64, right: i64) -> Result<Interval> {
    if !is_finite(left) || !is_finite(right) {
        return Err(ValueError::new("22008", "cannot subtract infinite timestamps"));
    }
    let micros = left.checked_sub(right).ok_or_else(interval_out_of_range)?;
    Interval {
        micros,
        ..Interval::default()
    }
    .justify_hours()
}

fn at_time(midnight: i64, time: i64) -> Result<i64> {
    if is_finite(midnight) {
        timestamp_in_range(midnight.checked_add(time))
    } else {
        Ok(midnight)
    }
}

fn at_timetz(midnight: i64, (micros, west): (i64, i32)) -> Result<i64> {
    at_time(midnight, micros + i64::from(west) * SECOND)
}

/// A time of day moved round the clock; as PostgreSQL's, the sum overflows.
fn on_the_clock(time: i64, by: i64) -> i64 {
    time.wrapping_add(by).rem_euclid(DAY)
}

/// The difference in years, months, days and less, counted on the clocks of a zone. Days borrowed from a month are as many as the earlier
/// date's month has.
fn age(left: i64, right: i64, zone: Option<&TimeZone>) -> Result<Interval> {
    if !is_finite(left) || !is_finite(right) {
        // PostgreSQL computes with the number that stands for infinity.
        return Err(ValueError::unsupported("the age of an infinite timestamp is"));
    }
    let (later, earlier, sign) = if left < right {
        (right, left, -1)
    } else {
        (left, right, 1)
    };
    let (to, from) = (
        Fields::of(local_in(later, zone)?)?,
        Fields::of(local_in(earlier, zone)?)?,
    );
    let mut micros = to.time() - from.time();
    let mut days = to.day - from.day;
    let mut months = (to.year - from.year) * 12 + to.month - from.month;
    while micros < 0 {
        micros += DAY;
        days -= 1;
    }
    while days < 0 {
        days += days_in_month(from.year.into(), from.month)?;
        months -= 1;
    }
    Ok(Interval {
        micros: micros * i64::from(sign),
        days: days * sign,
        months: months * sign,
    })
}

/// The ends of two periods, of which some are given by their length.
fn overlaps(
    arguments: &Arguments<'_>,
    lengths: [bool; 2],
    add: impl Fn(i64, Interval) -> Result<i64>,
) -> Result<Owned> {
    overlaps_of(arguments, lengths, timestamp, add)
}

fn overlaps_in_session(arguments: &Arguments<'_>, lengths: [bool; 2]) -> Result<Owned> {
    let zone = &arguments.environment.zone;
    overlaps(arguments, lengths, |left, span| add_interval(left, span, Some(zone)))
}

fn overlaps_of_times(arguments: &Arguments<'_>, lengths: [bool; 2]) -> Result<Owned> {
    overlaps_of(arguments, lengths, time, |left, span| {
        Ok(on_the_clock(left, span.micros))
    })
}

fn overlaps_of(
    arguments: &Arguments<'_>,
    lengths: [bool; 2],
    read: Read<i64>,
    add: impl Fn(i64, Interval) -> Result<i64>,
) -> Result<Owned> {
    let period = |at: usize, is_length: bool| -> Result<_> {
        let given = |index| !arguments.is_null(index);
        let from = given(at).then(|| read(arguments, at)).transpose()?;
        let to = match (given(at + 1), is_length, from) {
            (false, _, _) | (true, true, None) => None,
            (true, false, _) => Some(read(arguments, at + 1)?),
            (true, true, Some(from)) => Some(add(from, interval(arguments, at + 1)?)?),
        };
        Ok((from, to))
    };
    Ok(periods_overlap(period(0, lengths[0])?, period(2, lengths[1])?).into())
}
