//! Casts between the types, to fewer digits, and between clocks of different zones; PostgreSQL's input and output functions.

use super::input::{now, parse, scale};
use super::limits::{
    DATE_INFINITY, DATE_MINUS_INFINITY, DAY, SECOND, TIMESTAMP_INFINITY, TIMESTAMP_MINUS_INFINITY, is_finite,
};
use super::output::write;
use super::rounding::round_to;
use super::values::{
    date, int4, interval, of_date, of_interval, of_time, of_timestamp, of_timetz, time, timestamp, timetz,
};
use super::zone::{at_time_zone, fixed, offset_at, to_local, to_utc};
use crate::interval::Interval;
use crate::{Arguments, Environment, Function, Kind, Owned, Result, ValueError};
use jiff::tz::TimeZone;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("date_in", |arguments| input(Kind::Date, &arguments)).in_session(),
    Function::new("time_in", |arguments| input(Kind::Time, &arguments)).in_session(),
    Function::new("timetz_in", |arguments| input(Kind::Timetz, &arguments)).in_session(),
    Function::new("timestamp_in", |arguments| input(Kind::Timestamp, &arguments)).in_session(),
    Function::new("timestamptz_in", |arguments| input(Kind::Timestamptz, &arguments)).in_session(),
    Function::new("interval_in", |arguments| input(Kind::Interval, &arguments)),
    Function::new("date_out", |arguments| output(Kind::Date, &arguments)),
    Function::new("time_out", |arguments| output(Kind::Time, &arguments)),
    Function::new("timetz_out", |arguments| output(Kind::Timetz, &arguments)),
    Function::new("timestamp_out", |arguments| output(Kind::Timestamp, &arguments)),
    Function::new("timestamptz_out", |arguments| output(Kind::Timestamptz, &arguments)).in_session(),
    Function::new("interval_out", |arguments| output(Kind::Interval, &arguments)),
    Function::new("timestamp_scale", |arguments| {
        of_timestamp(scale(timestamp(&arguments, 0)?, int4(&arguments, 1)?))
    }),
    Function::new("timestamptz_scale", |arguments| {
        of_timestamp(scale(timestamp(&arguments, 0)?, int4(&arguments, 1)?))
    }),
    Function::new("time_scale", |arguments| {
        of_time(round_to(time(&arguments, 0)?, int4(&arguments, 1)?))
    }),
    Function::new("timetz_scale", |arguments| {
        let (micros, west) = timetz(&arguments, 0)?;
        of_timetz((round_to(micros, int4(&arguments, 1)?), west))
    }),
    Function::new("interval_scale", |arguments| {
        of_interval(interval(&arguments, 0)?.with_typmod(int4(&arguments, 1)?)?)
    }),
    Function::new("date_timestamp", |arguments| {
        of_timestamp(date_to_timestamp(date(&arguments, 0)?))
    }),
    Function::new("date_timestamptz", |arguments| {
        of_timestamp(date_to_timestamptz(date(&arguments, 0)?, arguments.environment)?)
    })
    .in_session(),
    Function::new("timestamp_date", |arguments| {
        of_date(day_of(timestamp(&arguments, 0)?)?)
    }),
    Function::new("timestamptz_date", |arguments| of_date(day_of(local(&arguments, 0)?)?)).in_session(),
    Function::new("timestamp_time", |arguments| time_of_day(timestamp(&arguments, 0)?)),
    Function::new("timestamptz_time", |arguments| time_of_day(local(&arguments, 0)?)).in_session(),
    Function::new("timestamptz_timetz", |arguments| {
        let micros = timestamp(&arguments, 0)?;
        if !is_finite(micros) {
            return Ok(Owned::Null);
        }
        let east = offset_at(&arguments.environment.zone, micros);
        of_timetz(((micros + i64::from(east) * SECOND).rem_euclid(DAY), -east))
    })
    .in_session(),
    Function::new("timestamp_timestamptz", |arguments| {
        of_timestamp(to_utc(&arguments.environment.zone, timestamp(&arguments, 0)?)?)
    })
    .in_session(),
    Function::new("timestamptz_timestamp", |arguments| of_timestamp(local(&arguments, 0)?)).in_session(),
    Function::new("time_interval", |arguments| {
        of_interval(Interval {
            micros: time(&arguments, 0)?,
            ..Interval::default()
        })
    }),
    Function::new("interval_time", |arguments| {
        let micros = interval(&arguments, 0)?.micros;
        if micros < i64::MIN + 2 * DAY {
            // PostgreSQL's sum overflows.
            return Err(ValueError::unsupported("the time of day of the longest intervals is"));
        }
        of_time(micros.rem_euclid(DAY))
    }),
    Function::new("timetz_time", |arguments| of_time(timetz(&arguments, 0)?.0)),
    Function::new("time_timetz", |arguments| {
        let micros = time(&arguments, 0)?;
        let zone = &arguments.environment.zone;
        let midnight = to_local(zone, now(arguments.environment))?.div_euclid(DAY) * DAY;
        let utc = to_utc(zone, midnight + micros.min(DAY - 1))?;
        let east = (midnight + micros.min(DAY - 1) - utc) / SECOND;
        of_timetz((micros, -i32::try_from(east).expect("offsets are small")))
    })
    .in_session(),
    Function::new("timestamp_zone", |arguments| {
        of_finite(timestamp(&arguments, 1)?, |micros| {
            to_utc(&at_time_zone(arguments.text(0)?)?, micros)
        })
    }),
    Function::new("timestamptz_zone", |arguments| {
        of_finite(timestamp(&arguments, 1)?, |micros| {
            to_local(&at_time_zone(arguments.text(0)?)?, micros)
        })
    }),
    Function::new("timetz_zone", |arguments| {
        let east = offset_at(&at_time_zone(arguments.text(0)?)?, now(arguments.environment));
        timetz_at(timetz(&arguments, 1)?, east)
    })
    .in_session(),
    Function::new("timestamp_izone", |arguments| {
        of_finite(timestamp(&arguments, 1)?, |micros| {
            to_utc(&interval_zone(interval(&arguments, 0)?)?, micros)
        })
    }),
    Function::new("timestamptz_izone", |arguments| {
        of_finite(timestamp(&arguments, 1)?, |micros| {
            to_local(&interval_zone(interval(&arguments, 0)?)?, micros)
        })
    }),
    Function::new("timetz_izone", |arguments| {
        let zone = interval_zone(interval(&arguments, 0)?)?;
        timetz_at(timetz(&arguments, 1)?, offset_at(&zone, 0))
    }),
];

fn input(kind: Kind, arguments: &Arguments<'_>) -> Result<Owned> {
    // PostgreSQL's second argument is a type that these do not need.
    let typmod = if arguments.values.len() > 2 {
        int4(arguments, 2)?
    } else {
        -1
    };
    parse(kind, typmod, arguments.text(0)?, arguments.environment)
}

fn output(kind: Kind, arguments: &Arguments<'_>) -> Result<Owned> {
    let mut out = String::new();
    write(kind, arguments.values[0], arguments.environment, &mut out)?;
    Ok(Owned::Text(out))
}

/// Midnight of a date.
pub(super) fn date_to_timestamp(days: i32) -> i64 {
    match days {
        DATE_INFINITY => TIMESTAMP_INFINITY,
        DATE_MINUS_INFINITY => TIMESTAMP_MINUS_INFINITY,
        _ => i64::from(days) * DAY,
    }
}

/// Midnight of a date in the session's zone.
pub(super) fn date_to_timestamptz(days: i32, environment: &Environment) -> Result<i64> {
    to_utc(&environment.zone, date_to_timestamp(days))
}

/// A timestamptz as the clocks of the session show it.
pub(super) fn local(arguments: &Arguments<'_>, index: usize) -> Result<i64> {
    to_local(&arguments.environment.zone, timestamp(arguments, index)?)
}

pub(super) fn day_of(micros: i64) -> Result<i32> {
    match micros {
        TIMESTAMP_INFINITY => Ok(DATE_INFINITY),
        TIMESTAMP_MINUS_INFINITY => Ok(DATE_MINUS_INFINITY),
        _ => i32::try_from(micros.div_euclid(DAY)).map_err(|_| super::limits::date_out_of_range()),
    }
}

fn time_of_day(micros: i64) -> Result<Owned> {
    if is_finite(micros) {
        of_time(micros.rem_euclid(DAY))
    } else {
        Ok(Owned::Null)
    }
}

/// Infinities stay, whatever the zone.
fn of_finite(micros: i64, change: impl FnOnce(i64) -> Result<i64>) -> Result<Owned> {
    of_timestamp(if is_finite(micros) { change(micros)? } else { micros })
}

fn timetz_at((micros, west): (i64, i32), east: i32) -> Result<Owned> {
    let moved = micros + i64::from(west + east) * SECOND;
    of_timetz((moved.rem_euclid(DAY), -east))
}

fn interval_zone(interval: Interval) -> Result<TimeZone> {
    if interval.months != 0 || interval.days != 0 {
        return Err(ValueError::new(
            "22023",
            format!(
                "interval time zone \"{}\" must not include months or days",
                interval.to_stored()
            ),
        ));
    }
    fixed(interval.micros / SECOND).ok_or_else(|| ValueError::unsupported("a time zone of more than a day is"))
}
