//! The stored forms of dates, times and timestamps, and PostgreSQL's numbers for them, which are also those of its binary format.

use std::fmt::Write;

use super::civil::{date, date_of, days_of};
use super::limits::{
    DATE_INFINITY, DATE_MINUS_INFINITY, DAY, HOUR, MINUTE, SECOND, TIMESTAMP_INFINITY, TIMESTAMP_MINUS_INFINITY,
    beyond_stored_years, date_in_range, timestamp_in_range,
};
use crate::{Result, ValueError};

const INFINITY: &str = "infinity";
const MINUS_INFINITY: &str = "-infinity";

fn damaged(type_name: &str, text: &str) -> ValueError {
    ValueError::new("XX001", format!("\"{text}\" is not stored as a {type_name} is"))
}

fn digits(bytes: &[u8]) -> Option<i64> {
    if bytes.is_empty() || bytes.len() > 12 {
        return None;
    }
    bytes.iter().try_fold(0_i64, |value, byte| {
        byte.is_ascii_digit().then(|| value * 10 + i64::from(byte - b'0'))
    })
}

#[allow(clippy::cast_possible_truncation, reason = "two digits")]
fn read_date(bytes: &[u8]) -> Option<i32> {
    let [_, _, _, _, b'-', _, _, b'-', _, _] = bytes else {
        return None;
    };
    let (year, month, day) = (digits(&bytes[..4])?, digits(&bytes[5..7])?, digits(&bytes[8..])?);
    date(year, month as i32, day as i32).ok().map(days_of)
}

fn read_time(bytes: &[u8]) -> Option<i64> {
    let (clock, fraction) = bytes.split_at_checked(8)?;
    let [_, _, b':', _, _, b':', _, _] = clock else {
        return None;
    };
    let micros = match fraction {
        [] => 0,
        [b'.', fraction @ ..] if fraction.len() <= 6 => {
            digits(fraction)? * 10_i64.pow(6 - u32::try_from(fraction.len()).ok()?)
        }
        _ => return None,
    };
    Some(digits(&clock[..2])? * HOUR + digits(&clock[3..5])? * MINUTE + digits(&clock[6..])? * SECOND + micros)
}

/// Days since 2000-01-01 of a stored date.
pub fn date_to_days(stored: &str) -> Result<i32> {
    match stored {
        INFINITY => Ok(DATE_INFINITY),
        MINUS_INFINITY => Ok(DATE_MINUS_INFINITY),
        _ => read_date(stored.as_bytes()).ok_or_else(|| damaged("date", stored)),
    }
}

/// The stored date of that many days since 2000-01-01; `date out of range` where PostgreSQL has no such date.
pub fn date_from_days(days: i32) -> Result<String> {
    let mut out = String::with_capacity(10);
    match days {
        DATE_INFINITY => out.push_str(INFINITY),
        DATE_MINUS_INFINITY => out.push_str(MINUS_INFINITY),
        _ => write_date(date_in_range(days.into())?.into(), &mut out)?,
    }
    Ok(out)
}

fn write_date(days: i64, out: &mut String) -> Result<()> {
    let date = date_of(days)?;
    if date.year() < 1 {
        return Err(beyond_stored_years());
    }
    let _ = write!(out, "{:04}-{:02}-{:02}", date.year(), date.month(), date.day());
    Ok(())
}

/// Microseconds since 2000-01-01 of a stored timestamp or timestamptz.
pub fn timestamp_to_micros(stored: &str) -> Result<i64> {
    match stored {
        INFINITY => Ok(TIMESTAMP_INFINITY),
        MINUS_INFINITY => Ok(TIMESTAMP_MINUS_INFINITY),
        _ => read_timestamp(stored.as_bytes()).ok_or_else(|| damaged("timestamp", stored)),
    }
}

fn read_timestamp(bytes: &[u8]) -> Option<i64> {
    let (date, time) = bytes.split_at_checked(10)?;
    let time = time.strip_prefix(b" ")?;
    Some(i64::from(read_date(date)?) * DAY + read_time(time)?)
}

/// The stored timestamp or timestamptz of that many microseconds since 2000-01-01; `timestamp out of range` where PostgreSQL has no such
/// moment.
pub fn timestamp_from_micros(micros: i64) -> Result<String> {
    let mut out = String::with_capacity(26);
    match micros {
        TIMESTAMP_INFINITY => out.push_str(INFINITY),
        TIMESTAMP_MINUS_INFINITY => out.push_str(MINUS_INFINITY),
        _ => {
            let micros = timestamp_in_range(Some(micros))?;
            write_date(micros.div_euclid(DAY), &mut out)?;
            out.push(' ');
            write_time(micros.rem_euclid(DAY), &mut out);
        }
    }
    Ok(out)
}

/// Microseconds since midnight of a stored time.
pub fn time_to_micros(stored: &str) -> Result<i64> {
    read_time(stored.as_bytes()).ok_or_else(|| damaged("time", stored))
}

/// The stored time of that many microseconds since midnight.
pub fn time_from_micros(micros: i64) -> String {
    let mut out = String::with_capacity(15);
    write_time(micros, &mut out);
    out
}

/// A clock, with a fraction if there is one and without zeros at its end.
pub(crate) fn write_time(micros: i64, out: &mut String) {
    let (hours, minutes) = (micros / HOUR, micros % HOUR / MINUTE);
    let _ = write!(out, "{hours:02}:{minutes:02}:{:02}", micros % MINUTE / SECOND);
    write_fraction(micros % SECOND, out);
}

/// `.5` of half a million microseconds.
pub(crate) fn write_fraction(micros: i64, out: &mut String) {
    if micros != 0 {
        let fraction = format!("{micros:06}");
        out.push('.');
        out.push_str(fraction.trim_end_matches('0'));
    }
}

/// A stored timetz: microseconds since midnight, and seconds *west* of UTC, as PostgreSQL has it.
pub fn timetz_to_parts(stored: &str) -> Result<(i64, i32)> {
    let at = stored.rfind(['+', '-']).ok_or_else(|| damaged("timetz", stored))?;
    let (clock, offset) = stored.split_at(at);
    let mut seconds = 0;
    let mut unit = 3_600;
    for part in offset[1..].split(':') {
        seconds += unit * digits(part.as_bytes()).ok_or_else(|| damaged("timetz", stored))?;
        unit /= 60;
    }
    let seconds = i32::try_from(seconds).map_err(|_| damaged("timetz", stored))?;
    Ok((
        time_to_micros(clock)?,
        if offset.starts_with('-') { seconds } else { -seconds },
    ))
}

/// The stored timetz of microseconds since midnight and seconds west of UTC.
pub fn timetz_from_parts(micros: i64, west_seconds: i32) -> String {
    let mut out = time_from_micros(micros);
    write_offset(-west_seconds, &mut out);
    out
}

/// `+02`, `+05:30`, `+00:53:28`.
pub(crate) fn write_offset(east_seconds: i32, out: &mut String) {
    let (sign, seconds) = (if east_seconds < 0 { '-' } else { '+' }, east_seconds.unsigned_abs());
    let (minutes, rest) = (seconds / 60 % 60, seconds % 60);
    let _ = write!(out, "{sign}{:02}", seconds / 3_600);
    if minutes != 0 || rest != 0 {
        let _ = write!(out, ":{minutes:02}");
    }
    if rest != 0 {
        let _ = write!(out, ":{rest:02}");
    }
}
