//! Casts as PostgreSQL has them, into the forms in which values are stored.
//!
//! Contract: the value itself, in its canonical form, or an error with PostgreSQL's SQLSTATE; never a near miss. Stored forms:
//! boolean 0 or 1; timestamps `YYYY-MM-DD HH:MM:SS[.ffffff]` in UTC without an offset, no trailing zeros; dates `YYYY-MM-DD`;
//! uuid in lower case with hyphens; json as written. Integers are 64 bits wide.

use std::borrow::Cow;
use std::fmt;

use jiff::civil::{Date, DateTime, Time};
use jiff::{SignedDuration, Unit};
use rusqlite::types::{Value, ValueRef};
use rust_decimal::prelude::ToPrimitive;
use rust_decimal::{Decimal, RoundingStrategy};

/// A cast that failed, with the code PostgreSQL gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CastError {
    sqlstate: &'static str,
    message: String,
}

impl CastError {
    pub(crate) fn new(sqlstate: &'static str, message: String) -> Self {
        Self { sqlstate, message }
    }
}

impl fmt::Display for CastError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}{}: {}",
            super::MARKER,
            self.sqlstate,
            self.message
        )
    }
}

impl std::error::Error for CastError {}

/// The types that need more than SQLite's CAST.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are PostgreSQL's own")]
pub(crate) enum Target {
    Integer,
    Float,
    Numeric,
    Boolean,
    Date,
    Time,
    Timestamp,
    TimestampWithTimeZone,
    Uuid,
    Json,
    Bytea,
}

impl Target {
    pub(crate) const ALL: [Self; 11] = [
        Self::Integer,
        Self::Float,
        Self::Numeric,
        Self::Boolean,
        Self::Date,
        Self::Time,
        Self::Timestamp,
        Self::TimestampWithTimeZone,
        Self::Uuid,
        Self::Json,
        Self::Bytea,
    ];

    /// The SQL function that casts to this type.
    pub(crate) fn function_name(self) -> &'static str {
        match self {
            Self::Integer => "forebay_int8",
            Self::Float => "forebay_float8",
            Self::Numeric => "forebay_numeric",
            Self::Boolean => "forebay_bool",
            Self::Date => "forebay_date",
            Self::Time => "forebay_time",
            Self::Timestamp => "forebay_timestamp",
            Self::TimestampWithTimeZone => "forebay_timestamptz",
            Self::Uuid => "forebay_uuid",
            Self::Json => "forebay_json",
            Self::Bytea => "forebay_bytea",
        }
    }

    /// PostgreSQL's name, for messages.
    fn name(self) -> &'static str {
        match self {
            Self::Integer => "bigint",
            Self::Float => "double precision",
            Self::Numeric => "numeric",
            Self::Boolean => "boolean",
            Self::Date => "date",
            Self::Time => "time",
            Self::Timestamp => "timestamp",
            Self::TimestampWithTimeZone => "timestamp with time zone",
            Self::Uuid => "uuid",
            Self::Json => "json",
            Self::Bytea => "bytea",
        }
    }
}

/// The value as text, as SQLite would show it; `None` for NULL.
pub(super) fn as_text(value: ValueRef<'_>) -> Option<Cow<'_, str>> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(integer) => Some(integer.to_string().into()),
        ValueRef::Real(real) => Some(format!("{real:?}").into()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes)),
    }
}

/// The value as that type.
pub(crate) fn cast(target: Target, value: ValueRef<'_>) -> Result<Value, CastError> {
    let text = match value {
        ValueRef::Null => return Ok(Value::Null),
        ValueRef::Text(bytes) => Some(std::str::from_utf8(bytes).map_err(|_| {
            CastError::new(
                "22021",
                "invalid byte sequence for encoding \"UTF8\"".to_owned(),
            )
        })?),
        _ => None,
    };
    match (target, value, text) {
        (Target::Integer, ValueRef::Integer(integer), _) => Ok(Value::Integer(integer)),
        (Target::Integer, ValueRef::Real(real), _) => integer_from_real(real),
        (Target::Integer, _, Some(text)) => integer_from_text(text),
        (Target::Float, ValueRef::Real(real), _) => Ok(Value::Real(real)),
        // SQLite's own rule, too: the nearest float.
        #[allow(clippy::cast_precision_loss, reason = "that is what the cast asks for")]
        (Target::Float, ValueRef::Integer(integer), _) => Ok(Value::Real(integer as f64)),
        (Target::Float, _, Some(text)) => float_from_text(text),
        (Target::Numeric, ValueRef::Integer(integer), _) => Ok(Value::Integer(integer)),
        (Target::Numeric, ValueRef::Real(real), _) => Ok(Value::Real(real)),
        (Target::Numeric, _, Some(text)) => stored_numeric(decimal(text)?),
        (Target::Boolean, ValueRef::Integer(integer), _) => {
            Ok(Value::Integer(i64::from(integer != 0)))
        }
        (Target::Boolean, _, Some(text)) => boolean_from_text(text),
        (Target::Json, ValueRef::Integer(_) | ValueRef::Real(_), _) => Ok(Value::Text(
            as_text(value).expect("a number is not NULL").into_owned(),
        )),
        (Target::Json, _, Some(text)) => {
            match serde_json::from_str::<serde::de::IgnoredAny>(text) {
                Ok(_) => Ok(Value::Text(text.to_owned())),
                Err(error) => Err(CastError::new(
                    "22P02",
                    format!("invalid input syntax for type json: {error}"),
                )),
            }
        }
        (Target::Uuid, _, Some(text)) => match uuid::Uuid::try_parse(text.trim()) {
            Ok(uuid) => Ok(Value::Text(uuid.hyphenated().to_string())),
            Err(_) => Err(invalid(target, text)),
        },
        (Target::Bytea, ValueRef::Blob(bytes), _) => Ok(Value::Blob(bytes.to_vec())),
        (Target::Bytea, _, Some(text)) => bytes_from_text(text)
            .ok_or_else(|| invalid(target, text))
            .map(Value::Blob),
        (Target::Date, _, Some(text)) => {
            Ok(Value::Text(moment(target, text)?.0.date().to_string()))
        }
        (Target::Time, _, Some(text)) => time_text(text).map(Value::Text),
        (Target::Timestamp, _, Some(text)) => {
            Ok(Value::Text(timestamp_text(moment(target, text)?.0)))
        }
        (Target::TimestampWithTimeZone, _, Some(text)) => {
            let (local, offset_seconds) = moment(target, text)?;
            let utc = local
                .checked_sub(SignedDuration::from_secs(offset_seconds.unwrap_or(0)))
                .map_err(|_| out_of_range(target, text))?;
            Ok(Value::Text(timestamp_text(utc)))
        }
        _ => {
            let from = match value {
                ValueRef::Integer(_) => "bigint",
                ValueRef::Real(_) => "double precision",
                _ => "bytea",
            };
            Err(CastError::new(
                "42846",
                format!("cannot cast type {from} to {}", target.name()),
            ))
        }
    }
}

/// The value as `numeric(precision, scale)`: rounded half away from zero, as PostgreSQL rounds numerics.
pub(super) fn numeric_scaled(
    value: ValueRef<'_>,
    precision: u32,
    scale: i32,
) -> Result<Value, CastError> {
    let Some(text) = as_text(value) else {
        return Ok(Value::Null);
    };
    let scale = u32::try_from(scale).unwrap_or(0);
    let rounded =
        decimal(&text)?.round_dp_with_strategy(scale, RoundingStrategy::MidpointAwayFromZero);
    let whole_digits = precision.saturating_sub(scale);
    let limit = 10_i128.checked_pow(whole_digits);
    if limit.is_some_and(|limit| {
        rounded
            .trunc()
            .to_i128()
            .is_none_or(|whole| whole.abs() >= limit)
    }) {
        return Err(CastError::new(
            "22003",
            format!(
                "numeric field overflow: a field with precision {precision}, scale {scale} must be less than 10^{whole_digits}"
            ),
        ));
    }
    stored_numeric(rounded)
}

fn invalid(target: Target, text: &str) -> CastError {
    let code = match target {
        Target::Date | Target::Time | Target::Timestamp | Target::TimestampWithTimeZone => "22007",
        _ => "22P02",
    };
    CastError::new(
        code,
        format!(
            "invalid input syntax for type {}: \"{text}\"",
            target.name()
        ),
    )
}

fn out_of_range(target: Target, text: &str) -> CastError {
    let code = match target {
        Target::Date | Target::Time | Target::Timestamp | Target::TimestampWithTimeZone => "22008",
        _ => "22003",
    };
    CastError::new(
        code,
        format!(
            "value \"{text}\" is out of range for type {}",
            target.name()
        ),
    )
}

fn integer_from_text(text: &str) -> Result<Value, CastError> {
    let trimmed = text.trim();
    trimmed
        .parse()
        .map(Value::Integer)
        .map_err(|error: std::num::ParseIntError| match error.kind() {
            std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => {
                out_of_range(Target::Integer, text)
            }
            _ => invalid(Target::Integer, text),
        })
}

/// Rounds half to even, as PostgreSQL rounds floats.
fn integer_from_real(real: f64) -> Result<Value, CastError> {
    let rounded = real.round_ties_even();
    // 2^63 is a float, i64::MAX is not.
    if !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&rounded) {
        return Err(CastError::new("22003", "bigint out of range".to_owned()));
    }
    #[allow(clippy::cast_possible_truncation, reason = "checked above")]
    Ok(Value::Integer(rounded as i64))
}

fn float_from_text(text: &str) -> Result<Value, CastError> {
    let trimmed = text.trim();
    let real: f64 = trimmed.parse().map_err(|_| invalid(Target::Float, text))?;
    if real.is_nan() {
        return Err(CastError::new(
            "22003",
            "NaN cannot be stored: SQLite would make it NULL".to_owned(),
        ));
    }
    if real.is_infinite() && trimmed.bytes().any(|byte| byte.is_ascii_digit()) {
        return Err(out_of_range(Target::Float, text));
    }
    Ok(Value::Real(real))
}

fn decimal(text: &str) -> Result<Decimal, CastError> {
    let trimmed = text.trim();
    let shaped = trimmed.bytes().any(|byte| byte.is_ascii_digit())
        && trimmed
            .bytes()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    if !shaped {
        return Err(invalid(Target::Numeric, text));
    }
    let parsed = if trimmed.contains(['e', 'E']) {
        Decimal::from_scientific(trimmed)
    } else {
        Decimal::from_str_exact(trimmed)
    };
    parsed.map_err(|error| match error {
        rust_decimal::Error::ErrorString(_) => invalid(Target::Numeric, text),
        _ => CastError::new(
            "22003",
            format!("numeric value \"{text}\" has more digits than can be stored exactly"),
        ),
    })
}

/// An integer where it is one, else a float, which holds 15 digits exactly.
fn stored_numeric(decimal: Decimal) -> Result<Value, CastError> {
    let normal = decimal.normalize();
    if normal.scale() == 0 {
        if let Some(integer) = normal.to_i64() {
            return Ok(Value::Integer(integer));
        }
    } else if normal.mantissa().unsigned_abs() < 10_u128.pow(15)
        && let Ok(real) = normal.to_string().parse()
    {
        return Ok(Value::Real(real));
    }
    Err(CastError::new(
        "22003",
        format!("numeric value {decimal} has more digits than SQLite would keep"),
    ))
}

fn boolean_from_text(text: &str) -> Result<Value, CastError> {
    let word = text.trim().to_ascii_lowercase();
    let spells = |whole: &str, least: usize| word.len() >= least && whole.starts_with(&word);
    if spells("true", 1) || spells("yes", 1) || spells("on", 2) || word == "1" {
        Ok(Value::Integer(1))
    } else if spells("false", 1) || spells("no", 1) || spells("off", 2) || word == "0" {
        Ok(Value::Integer(0))
    } else {
        Err(invalid(Target::Boolean, text))
    }
}

fn bytes_from_text(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8, radix| {
        char::from(byte)
            .to_digit(radix)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    if let Some(hex) = text.strip_prefix("\\x") {
        let digits: Vec<u8> = hex
            .bytes()
            .filter(|byte| !byte.is_ascii_whitespace())
            .collect();
        if digits.len() % 2 != 0 {
            return None;
        }
        return digits
            .chunks(2)
            .map(|pair| Some(digit(pair[0], 16)? << 4 | digit(pair[1], 16)?))
            .collect();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        match (first, more) {
            (b'\\', [b'\\', more @ ..]) => {
                bytes.push(b'\\');
                rest = more;
            }
            (b'\\', [a @ b'0'..=b'3', b, c, more @ ..]) => {
                bytes.push(digit(*a, 8)? << 6 | digit(*b, 8)? << 3 | digit(*c, 8)?);
                rest = more;
            }
            (b'\\', _) => return None,
            _ => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    Some(bytes)
}

/// `YYYY-MM-DD[( |T)HH:MM[:SS[.f…]]][ ][Z|±HH[[:]MM[[:]SS]]]`: the moment as written, and its offset in seconds.
fn moment(target: Target, text: &str) -> Result<(DateTime, Option<i64>), CastError> {
    let trimmed = text.trim();
    if ["infinity", "-infinity", "+infinity"]
        .iter()
        .any(|word| trimmed.eq_ignore_ascii_case(word))
    {
        return Err(CastError::new(
            "22008",
            format!("{trimmed} cannot be stored as {}", target.name()),
        ));
    }
    let (date_text, clock_text) = match trimmed.find([' ', 'T', 't']) {
        Some(at) => (&trimmed[..at], trimmed[at + 1..].trim_start()),
        None => (trimmed, ""),
    };
    let date = date(date_text)
        .ok_or_else(|| invalid(target, text))?
        .map_err(|()| out_of_range(target, text))?;
    if clock_text.is_empty() {
        return Ok((date.to_datetime(Time::midnight()), None));
    }
    let (clock_text, offset) = split_offset(clock_text).ok_or_else(|| invalid(target, text))?;
    let (time, next_day) = clock(clock_text)
        .ok_or_else(|| invalid(target, text))?
        .map_err(|()| out_of_range(target, text))?;
    let mut moment = date.to_datetime(time);
    if next_day {
        moment = moment
            .checked_add(SignedDuration::from_hours(24))
            .map_err(|_| out_of_range(target, text))?;
    }
    Ok((moment, offset))
}

/// `None` if it does not look like a date, an error inside if there is no such day.
fn date(text: &str) -> Option<Result<Date, ()>> {
    let mut parts = text.split('-');
    let year = number(parts.next()?, 4, 4)?;
    let month = number(parts.next()?, 1, 2)?;
    let day = number(parts.next()?, 1, 2)?;
    if parts.next().is_some() {
        return None;
    }
    let narrow = |value: i64| i8::try_from(value).unwrap_or(i8::MAX);
    Some(
        Date::new(i16::try_from(year).ok()?, narrow(month), narrow(day))
            .map_err(|_| ())
            .and_then(|date| {
                // There is no year 0 in PostgreSQL.
                if year == 0 { Err(()) } else { Ok(date) }
            }),
    )
}

fn number(text: &str, least: usize, most: usize) -> Option<i64> {
    ((least..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())?
}

/// `HH:MM[:SS[.f…]]`, rounded to microseconds; the flag says that it is midnight of the next day (24:00, or a fraction rounded up).
fn clock(text: &str) -> Option<Result<(Time, bool), ()>> {
    let mut parts = text.split(':');
    let hour = number(parts.next()?, 1, 2)?;
    let minute = number(parts.next()?, 2, 2)?;
    let (second, nanosecond) = match parts.next() {
        None => (0, 0),
        Some(seconds) => {
            let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
            if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            let nine: String = fraction
                .chars()
                .chain(std::iter::repeat('0'))
                .take(9)
                .collect();
            (number(whole, 2, 2)?, nine.parse::<i32>().ok()?)
        }
    };
    if parts.next().is_some() {
        return None;
    }
    if (hour, minute, second, nanosecond) == (24, 0, 0, 0) {
        return Some(Ok((Time::midnight(), true)));
    }
    let narrow = |value: i64| i8::try_from(value).unwrap_or(i8::MAX);
    let exact = Time::new(narrow(hour), narrow(minute), narrow(second), nanosecond).map_err(|_| ());
    Some(exact.map(|exact| {
        let rounded = exact.round(Unit::Microsecond).unwrap_or(exact);
        (rounded, rounded < exact && rounded == Time::midnight())
    }))
}

/// The clock and the offset in seconds behind it.
fn split_offset(text: &str) -> Option<(&str, Option<i64>)> {
    if let Some(clock) = text.strip_suffix(['Z', 'z']) {
        return Some((clock.trim_end(), Some(0)));
    }
    let Some(at) = text.find(['+', '-']) else {
        return Some((text, None));
    };
    let sign = if text[at..].starts_with('-') { -1 } else { 1 };
    let digits = &text[at + 1..];
    let parts: Vec<&str> = if digits.contains(':') {
        digits.split(':').collect()
    } else {
        digits
            .as_bytes()
            .chunks(2)
            .map(|pair| std::str::from_utf8(pair).unwrap_or(""))
            .collect()
    };
    if parts.len() > 3 {
        return None;
    }
    let mut seconds = 0;
    for (part, (worth, most)) in parts.iter().zip([(3600, 15), (60, 59), (1, 59)]) {
        let value = number(part, 1, 2)?;
        if value > most {
            return None;
        }
        seconds += value * worth;
    }
    Some((text[..at].trim_end(), Some(sign * seconds)))
}

fn time_text(text: &str) -> Result<String, CastError> {
    let trimmed = text.trim();
    let clock_text = match trimmed.split_once([' ', 'T', 't']) {
        Some((date_text, clock_text)) if date(date_text).is_some() => clock_text,
        _ => trimmed,
    };
    let (clock_text, _) = split_offset(clock_text).ok_or_else(|| invalid(Target::Time, text))?;
    let (time, next_day) = clock(clock_text)
        .ok_or_else(|| invalid(Target::Time, text))?
        .map_err(|()| out_of_range(Target::Time, text))?;
    if next_day {
        return Err(out_of_range(Target::Time, text));
    }
    Ok(clock_form(time))
}

fn clock_form(time: Time) -> String {
    let microsecond = time.subsec_nanosecond() / 1000;
    let whole = format!(
        "{:02}:{:02}:{:02}",
        time.hour(),
        time.minute(),
        time.second()
    );
    if microsecond == 0 {
        return whole;
    }
    format!("{whole}.{microsecond:06}")
        .trim_end_matches('0')
        .to_owned()
}

fn timestamp_text(moment: DateTime) -> String {
    format!("{} {}", moment.date(), clock_form(moment.time()))
}
