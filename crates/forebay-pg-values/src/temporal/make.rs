//! Moments out of their parts: `make_date` and its like, `to_timestamp` of a number, `date_bin`.

use super::civil::{self, Fields};
use super::decode::offset;
use super::input::fault_of_date;
use super::limits::{
    DAY, HOUR, MINUTE, SECOND, TIMESTAMP_INFINITY, TIMESTAMP_MINUS_INFINITY, UNIX_SECONDS, beyond_stored_years,
    interval_out_of_range, is_finite, timestamp_in_range, timestamp_out_of_range,
};
use super::tokens::Fault;
use super::values::{int4, interval, of_date, of_interval, of_time, of_timestamp, timestamp};
use super::zone::{at_time_zone, offset_of};
use crate::interval::Interval;
use crate::{Arguments, Function, Owned, Result, ValueError};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("make_date", |arguments| {
        // In its message PostgreSQL has counted a year 0 already.
        let fields = date_fields(&arguments, 1)?;
        of_date(civil::days_of(fields.date()?))
    }),
    Function::new("make_time", |arguments| of_time(time_of(&arguments, 0)?)),
    Function::new("make_timestamp", |arguments| of_timestamp(make_local(&arguments)?)),
    Function::new("make_timestamptz", |arguments| {
        let local = make_local(&arguments)?;
        let east = offset_of(&arguments.environment.zone, &Fields::of(local)?)?;
        of_timestamp(timestamp_in_range(local.checked_sub(i64::from(east) * SECOND))?)
    })
    .in_session(),
    Function::new("make_timestamptz_at_timezone", |arguments| {
        let local = make_local(&arguments)?;
        let east = offset_named(arguments.text(6)?, local)?;
        of_timestamp(timestamp_in_range(local.checked_sub(i64::from(east) * SECOND))?)
    }),
    Function::new("make_interval", |arguments| make_interval(&arguments)),
    Function::new("float8_timestamptz", |arguments| {
        of_timestamp(from_unix(arguments.real(0)?)?)
    }),
    Function::new("timestamp_bin", |arguments| bin(&arguments)),
    Function::new("timestamptz_bin", |arguments| bin(&arguments)),
];

/// Year, month and day of the first three arguments.
fn date_fields(arguments: &Arguments<'_>, before_christ_shift: i32) -> Result<Fields> {
    let (year, month, day) = (int4(arguments, 0)?, int4(arguments, 1)?, int4(arguments, 2)?);
    let error = |year: i32| {
        let year = if year < 0 { year + before_christ_shift } else { year };
        ValueError::new(
            "22008",
            format!("date field value out of range: {year}-{month:02}-{day:02}"),
        )
    };
    if year == 0 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return Err(error(year));
    }
    // Years repeat after 400.
    let like = if year < 0 { i64::from(year) + 1 } else { i64::from(year) }.rem_euclid(400) + 2_000;
    if day > civil::days_in_month(like, month)? {
        return Err(error(year));
    }
    if !(1..=9_999).contains(&year) {
        return Err(beyond_stored_years());
    }
    Ok(Fields {
        year,
        month,
        day,
        ..Fields::default()
    })
}

/// Hour, minute and second of three arguments.
#[allow(clippy::cast_possible_truncation, reason = "less than a minute")]
fn time_of(arguments: &Arguments<'_>, first: usize) -> Result<i64> {
    let (hour, minute) = (arguments.integer(first)?, arguments.integer(first + 1)?);
    let seconds = arguments.real(first + 2)?;
    let error = || {
        ValueError::new(
            "22008",
            format!(
                "time field value out of range: {hour}:{minute:02}:{}",
                two_places(seconds)
            ),
        )
    };
    let micros = (seconds * 1_000_000.0).round_ties_even();
    #[allow(clippy::cast_precision_loss, reason = "a minute")]
    let fits = (0.0..=MINUTE as f64).contains(&micros);
    if !(0..=24).contains(&hour) || !(0..60).contains(&minute) || !fits {
        return Err(error());
    }
    let time = hour * HOUR + minute * MINUTE + micros as i64;
    if time > DAY { Err(error()) } else { Ok(time) }
}

/// As C's `%02g` writes a number of seconds.
fn two_places(seconds: f64) -> String {
    let text = super::general_format(seconds);
    if text.len() < 2 { format!("0{text}") } else { text }
}

fn make_local(arguments: &Arguments<'_>) -> Result<i64> {
    let fields = date_fields(arguments, 0)?;
    let time = time_of(arguments, 3)?;
    timestamp_in_range(fields.local()?.checked_add(time))
}

/// The offset of a zone that must be an offset with its sign, an abbreviation, or a name.
fn offset_named(zone: &str, local: i64) -> Result<i32> {
    if zone.starts_with(|first: char| first.is_ascii_digit()) {
        return Err(ValueError::new(
            "22023",
            format!("invalid input syntax for type numeric time zone: \"{zone}\""),
        )
        .with_hint("Numeric time zones must have \"-\" or \"+\" as first character."));
    }
    if zone.starts_with(['+', '-']) {
        match offset(zone) {
            Ok(east) => return Ok(east),
            Err(Fault::Offset) => {
                return Err(ValueError::new(
                    "22023",
                    format!("numeric time zone \"{zone}\" out of range"),
                ));
            }
            Err(Fault::Syntax) => {}
            Err(other) => return Err(fault_of_date(other, zone)),
        }
    }
    offset_of(&at_time_zone(zone)?, &Fields::of(local)?)
}

#[allow(clippy::cast_possible_truncation, reason = "checked before")]
fn make_interval(arguments: &Arguments<'_>) -> Result<Owned> {
    let part = |index| arguments.integer(index);
    let seconds = arguments.real(6)?;
    let micros = (seconds * 1_000_000.0).round_ties_even();
    if !seconds.is_finite() {
        return Err(interval_out_of_range());
    }
    // PostgreSQL lets what is too large overflow.
    let overflow = || ValueError::unsupported("make_interval of parts this large is");
    if micros.abs() >= 9.0e18 {
        return Err(overflow());
    }
    let months = i32::try_from(part(0)? * 12 + part(1)?).map_err(|_| overflow())?;
    let days = i32::try_from(part(2)? * 7 + part(3)?).map_err(|_| overflow())?;
    let micros = part(4)?
        .checked_mul(HOUR)
        .and_then(|sum| sum.checked_add(part(5).ok()? * MINUTE))
        .and_then(|sum| sum.checked_add(micros as i64))
        .ok_or_else(overflow)?;
    of_interval(Interval { micros, days, months })
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "within PostgreSQL's range"
)]
fn from_unix(seconds: f64) -> Result<i64> {
    if seconds.is_infinite() {
        return Ok(if seconds > 0.0 {
            TIMESTAMP_INFINITY
        } else {
            TIMESTAMP_MINUS_INFINITY
        });
    }
    if seconds.is_nan() {
        return Err(ValueError::new("22008", "timestamp cannot be NaN"));
    }
    let error = || {
        ValueError::new(
            "22008",
            format!("timestamp out of range: \"{}\"", super::general_format(seconds)),
        )
    };
    // From 4714-11-24 BC to 294277-01-01.
    if !(-210_866_803_200.0..9_224_318_016_000.0).contains(&seconds) {
        return Err(error());
    }
    let micros = ((seconds - UNIX_SECONDS as f64) * 1_000_000.0).round_ties_even();
    timestamp_in_range(Some(micros as i64)).map_err(|_| error())
}

/// `date_bin(stride, source, origin)`.
fn bin(arguments: &Arguments<'_>) -> Result<Owned> {
    let (stride, source, origin) = (
        interval(arguments, 0)?,
        timestamp(arguments, 1)?,
        timestamp(arguments, 2)?,
    );
    if !is_finite(source) {
        return of_timestamp(source);
    }
    if !is_finite(origin) {
        return Err(ValueError::new("22008", "origin out of range"));
    }
    if stride.months != 0 {
        return Err(ValueError::new(
            "0A000",
            "timestamps cannot be binned into intervals containing months or years",
        ));
    }
    let stride = i64::from(stride.days)
        .checked_mul(DAY)
        .and_then(|days| days.checked_add(stride.micros))
        .ok_or_else(interval_out_of_range)?;
    if stride <= 0 {
        return Err(ValueError::new("22008", "stride must be greater than zero"));
    }
    let difference = source.checked_sub(origin).ok_or_else(interval_out_of_range)?;
    let bins = difference.div_euclid(stride);
    let start = bins.checked_mul(stride).and_then(|since| origin.checked_add(since));
    of_timestamp(timestamp_in_range(Some(start.ok_or_else(timestamp_out_of_range)?))?)
}
