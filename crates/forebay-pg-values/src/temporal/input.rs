//! Text to stored values, for literals, parameters and casts.

use super::civil::{Fields, days_of};
use super::decode::{Decoded, Zone, decode};
use super::limits::{
    DATE_INFINITY, DATE_MINUS_INFINITY, DAY, DAY_SECONDS, SECOND, TIMESTAMP_INFINITY, TIMESTAMP_MINUS_INFINITY,
    UNIX_SECONDS, beyond_stored_years, is_finite,
};
use super::rounding::round_to;
use super::stored::{date_from_days, time_from_micros, timestamp_from_micros, timetz_from_parts};
use super::tokens::{Fault, are_long, tokens};
use super::zone;
use crate::interval::Interval;
use crate::{Environment, Kind, Owned, Result, ValueError};

/// The value of a text, as PostgreSQL's input function of the type reads it. `typmod` is PostgreSQL's, -1 for none.
pub fn parse(kind: Kind, typmod: i32, text: &str, environment: &Environment) -> Result<Owned> {
    Ok(Owned::Text(match kind {
        Kind::Date => date_from_days(parse_date(text, environment)?)?,
        Kind::Time => {
            let (micros, _) = parse_time(text, "time", environment)?;
            time_from_micros(round_to(micros, typmod))
        }
        Kind::Timetz => {
            let (micros, east) = parse_time(text, "time with time zone", environment)?;
            timetz_from_parts(round_to(micros, typmod), -east)
        }
        Kind::Timestamp => timestamp_from_micros(scale(parse_timestamp(text, environment)?, typmod))?,
        Kind::Timestamptz => timestamp_from_micros(scale(parse_timestamptz(text, environment)?, typmod))?,
        Kind::Interval => Interval::parse(text, typmod)?.to_stored(),
        _ => return Err(ValueError::unsupported(format!("type {} as a moment is", kind.name()))),
    }))
}

/// The same of a timestamp.
pub(crate) fn scale(micros: i64, precision: i32) -> i64 {
    if is_finite(micros) {
        round_to(micros, precision)
    } else {
        micros
    }
}

/// PostgreSQL's error of a text that it does not read.
fn fault_of(fault: Fault, type_name: &str, text: &str) -> ValueError {
    let field = || ValueError::new("22008", format!("date/time field value out of range: \"{text}\""));
    match fault {
        Fault::Syntax => ValueError::invalid_text("22007", type_name, text),
        Fault::Field => field(),
        Fault::MonthOrDay => field().with_hint("Perhaps you need a different \"datestyle\" setting."),
        Fault::Offset => ValueError::new("22009", format!("time zone displacement out of range: \"{text}\"")),
        Fault::Value(error) => error,
    }
}

/// The same of a function's argument.
pub(crate) fn fault_of_date(fault: Fault, text: &str) -> ValueError {
    fault_of(fault, "date", text)
}

fn read(text: &str, type_name: &str, time_alone: bool) -> Result<Decoded> {
    let tokens = tokens(text).map_err(|fault| fault_of(fault, type_name, text))?;
    let decoded = decode(&tokens, time_alone).map_err(|fault| fault_of(fault, type_name, text))?;
    if are_long(&tokens) {
        return Err(ValueError::unsupported(format!("a {type_name} written this long is")));
    }
    Ok(decoded)
}

/// The transaction's beginning in microseconds since 2000.
pub(crate) fn now(environment: &Environment) -> i64 {
    environment.now_micros - UNIX_SECONDS * SECOND
}

fn today(environment: &Environment) -> Result<i64> {
    Ok(zone::to_local(&environment.zone, now(environment))?.div_euclid(DAY))
}

fn parse_date(text: &str, environment: &Environment) -> Result<i32> {
    let days = match read(text, "date", false)? {
        Decoded::Infinity => return Ok(DATE_INFINITY),
        Decoded::MinusInfinity => return Ok(DATE_MINUS_INFINITY),
        Decoded::Epoch => -UNIX_SECONDS / DAY_SECONDS,
        Decoded::Now => today(environment)?,
        Decoded::Day { days, .. } => today(environment)? + days,
        Decoded::Moment { local, .. } => {
            in_calendar(&local, || format!("date out of range: \"{text}\""), 5_874_897)?;
            i64::from(days_of(local.date()?))
        }
        Decoded::Time { .. } => return Err(ValueError::invalid_text("22007", "date", text)),
    };
    i32::try_from(days).map_err(|_| beyond_stored_years())
}

/// Refuses what PostgreSQL has and this has not; PostgreSQL's error for what it has not.
fn in_calendar(local: &Fields, error: impl Fn() -> String, last_year: i32) -> Result<()> {
    if local.year > last_year || local.year < -4_713 {
        return Err(ValueError::new("22008", error()));
    }
    if (1..=9_999).contains(&local.year) {
        Ok(())
    } else {
        Err(beyond_stored_years())
    }
}

fn parse_timestamp(text: &str, environment: &Environment) -> Result<i64> {
    match read(text, "timestamp", false)? {
        Decoded::Infinity => Ok(TIMESTAMP_INFINITY),
        Decoded::MinusInfinity => Ok(TIMESTAMP_MINUS_INFINITY),
        Decoded::Epoch => Ok(-UNIX_SECONDS * SECOND),
        Decoded::Now => zone::to_local(&environment.zone, now(environment)),
        Decoded::Day { days, micros, .. } => Ok((today(environment)? + days) * DAY + micros),
        Decoded::Moment { local, .. } => {
            in_calendar(&local, || format!("timestamp out of range: \"{text}\""), 294_276)?;
            local.local()
        }
        Decoded::Time { .. } => Err(ValueError::invalid_text("22007", "timestamp", text)),
    }
}

fn parse_timestamptz(text: &str, environment: &Environment) -> Result<i64> {
    let (local, zone) = match read(text, "timestamp with time zone", false)? {
        Decoded::Infinity => return Ok(TIMESTAMP_INFINITY),
        Decoded::MinusInfinity => return Ok(TIMESTAMP_MINUS_INFINITY),
        Decoded::Epoch => return Ok(-UNIX_SECONDS * SECOND),
        Decoded::Now => return Ok(now(environment)),
        Decoded::Day { days, micros, zone } => {
            let mut local = Fields::of((today(environment)? + days) * DAY)?;
            local.set_time(micros);
            (local, zone)
        }
        Decoded::Moment { local, zone } => {
            in_calendar(&local, || format!("timestamp out of range: \"{text}\""), 294_276)?;
            (local, zone)
        }
        Decoded::Time { .. } => {
            return Err(ValueError::invalid_text("22007", "timestamp with time zone", text));
        }
    };
    let east = match zone {
        Some(Zone::Offset(east)) => east,
        Some(Zone::Named(named)) => zone::offset_of(&named, &local)?,
        None => zone::offset_of(&environment.zone, &local)?,
    };
    Ok(local.local()? - i64::from(east) * SECOND)
}

/// Microseconds since midnight, and seconds east of UTC.
fn parse_time(text: &str, type_name: &str, environment: &Environment) -> Result<(i64, i32)> {
    match read(text, type_name, true)? {
        Decoded::Now => {
            let now = now(environment);
            let east = zone::offset_at(&environment.zone, now);
            Ok(((now + i64::from(east) * SECOND).rem_euclid(DAY), east))
        }
        Decoded::Time { micros, date, zone } => {
            let local = |date: Option<Fields>| -> Result<Fields> {
                let mut local = match date {
                    Some(date) => date,
                    None => Fields::of(today(environment)? * DAY)?,
                };
                local.set_time(micros);
                Ok(local)
            };
            let east = match zone {
                Some(Zone::Offset(east)) => east,
                Some(Zone::Named(named)) => zone::offset_of(&named, &local(date)?)?,
                None => zone::offset_of(&environment.zone, &local(date)?)?,
            };
            Ok((micros, east))
        }
        _ => Err(ValueError::invalid_text("22007", type_name, text)),
    }
}
