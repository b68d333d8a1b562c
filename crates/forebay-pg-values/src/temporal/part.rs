//! `extract` and `date_part`: one field of a moment. `extract` gives a numeric with the digits that the field can have, `date_part` a float.

use num_bigint::BigInt;

use super::casts::{date_to_timestamp, local};
use super::civil::{Fields, date_of, day_of_week, days_of, iso_week, julian};
use super::keywords::{Keyword, Unit, keyword, unit};
use super::limits::{DAY, DAY_SECONDS, SECOND, TIMESTAMP_INFINITY, UNIX_SECONDS, is_finite, is_finite_date};
use super::values::{date, interval, time, timestamp, timetz};
use super::zone::offset_at;
use crate::interval::Interval;
use crate::{Arguments, Function, Owned, Result, ValueError};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("extract_date", |arguments| of_date(&arguments)),
    Function::new("extract_time", |arguments| Ok(of_time(&arguments)?.numeric())),
    Function::new("extract_timetz", |arguments| Ok(of_timetz(&arguments)?.numeric())),
    Function::new("extract_timestamp", |arguments| Ok(of_timestamp(&arguments)?.numeric())),
    Function::new("extract_timestamptz", |arguments| {
        Ok(of_timestamptz(&arguments)?.numeric())
    })
    .in_session(),
    Function::new("extract_interval", |arguments| Ok(of_interval(&arguments)?.numeric())),
    Function::new("time_part", |arguments| Ok(of_time(&arguments)?.float())),
    Function::new("timetz_part", |arguments| Ok(of_timetz(&arguments)?.float())),
    Function::new("timestamp_part", |arguments| Ok(of_timestamp(&arguments)?.float())),
    Function::new("timestamptz_part", |arguments| Ok(of_timestamptz(&arguments)?.float())).in_session(),
    Function::new("interval_part", |arguments| Ok(of_interval(&arguments)?.float())),
    Function::new("date_part(text,date)", |arguments| {
        let midnight = date_to_timestamp(date(&arguments, 1)?);
        Ok(timestamp_field(&Field::of(arguments.text(0)?), TIMESTAMP, midnight, midnight, None)?.float())
    }),
];

const TIMESTAMP: &str = "timestamp without time zone";
const TIMESTAMPTZ: &str = "timestamp with time zone";

/// A field by its name, which is kept for messages.
pub(super) struct Field {
    name: String,
    meaning: Meaning,
}

enum Meaning {
    Unit(Unit),
    Epoch,
    /// A word that PostgreSQL keeps for other uses.
    Reserved,
    Unknown,
}

impl Field {
    pub(super) fn of(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        let meaning = match (unit(&name), keyword(&name)) {
            (Some(unit), _) | (None, Some(Keyword::Unit(unit))) => Meaning::Unit(unit),
            (None, Some(Keyword::Epoch)) => Meaning::Epoch,
            (
                None,
                Some(
                    Keyword::Now
                    | Keyword::Today
                    | Keyword::Tomorrow
                    | Keyword::Yesterday
                    | Keyword::AllBalls
                    | Keyword::Infinity
                    | Keyword::MinusInfinity,
                ),
            ) => Meaning::Reserved,
            _ => Meaning::Unknown,
        };
        Self { name, meaning }
    }

    /// A unit alone: what is no length is unknown.
    pub(super) fn of_unit(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        let meaning = unit(&name).map_or(Meaning::Unknown, Meaning::Unit);
        Self { name, meaning }
    }

    /// The unit, if it is one.
    pub(super) fn unit(&self, type_name: &str) -> Result<Unit> {
        match self.meaning {
            Meaning::Unit(unit) => Ok(unit),
            _ => Err(self.unknown(type_name)),
        }
    }

    pub(super) fn unknown(&self, type_name: &str) -> ValueError {
        ValueError::new(
            "22023",
            format!("unit \"{}\" not recognized for type {type_name}", self.name),
        )
    }

    pub(super) fn unsupported(&self, type_name: &str) -> ValueError {
        ValueError::new(
            "0A000",
            format!("unit \"{}\" not supported for type {type_name}", self.name),
        )
    }
}

/// What a field holds.
enum Value {
    Null,
    Whole(i64),
    /// So many units of the last of some digits, and the same as a float.
    Decimal(i128, u32, f64),
    /// Of a Julian day: the day and the microseconds in it.
    Julian(i64, i64),
    Infinite {
        negative: bool,
    },
}

impl Value {
    fn numeric(self) -> Owned {
        match self {
            Self::Null => Owned::Null,
            Self::Whole(value) => Owned::Text(value.to_string()),
            Self::Decimal(value, digits, _) => Owned::Text(decimal(value, digits)),
            Self::Julian(day, micros) => Owned::Text(julian_numeric(day, micros)),
            Self::Infinite { negative } => (if negative { "-Infinity" } else { "Infinity" }).into(),
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "a float is asked for")]
    fn float(self) -> Owned {
        match self {
            Self::Null => Owned::Null,
            Self::Whole(value) => Owned::Real(value as f64),
            Self::Decimal(_, _, value) => Owned::Real(value),
            Self::Julian(day, micros) => {
                let seconds = (micros / SECOND) as f64 + (micros % SECOND) as f64 / 1_000_000.0;
                Owned::Real(day as f64 + seconds / DAY_SECONDS as f64)
            }
            Self::Infinite { negative } => Owned::Real(if negative { f64::NEG_INFINITY } else { f64::INFINITY }),
        }
    }
}

fn decimal(value: i128, digits: u32) -> String {
    let unit = 10_u128.pow(digits);
    let size = value.unsigned_abs();
    let width = digits as usize;
    format!(
        "{}{}.{:0width$}",
        if value < 0 { "-" } else { "" },
        size / unit,
        size % unit
    )
}

/// The day and a quotient of numerics, with as many digits as PostgreSQL's division gives: 16 significant ones at least, counted in groups
/// of four (its documentation, "Numeric Types", and the rule of its `numeric` division).
fn julian_numeric(day: i64, micros: i64) -> String {
    let (weight, first_digits) = groups(micros);
    let (day_weight, day_first_digits) = groups(DAY);
    let mut quotient_weight = weight - day_weight;
    if first_digits <= day_first_digits {
        quotient_weight -= 1;
    }
    let digits = u32::try_from((16 - quotient_weight * 4).max(0)).expect("small");
    let unit = BigInt::from(10).pow(digits);
    let twice: BigInt = BigInt::from(micros) * &unit * 2 / DAY;
    let fraction: BigInt = (twice + 1) / 2;
    let value = BigInt::from(day) * unit + fraction;
    let text = value.to_string();
    let (whole, fraction) = text.split_at(text.len() - digits as usize);
    format!("{whole}.{fraction}")
}

/// How many groups of four digits follow the first one, and the first one.
fn groups(value: i64) -> (i32, i64) {
    let (mut value, mut weight) = (value, 0);
    while value >= 10_000 {
        value /= 10_000;
        weight += 1;
    }
    (weight, value)
}

/// Seconds and their fractions, of microseconds within a minute.
#[allow(clippy::cast_precision_loss, reason = "a float is asked for")]
fn seconds_of(unit: Unit, micros: i64) -> Value {
    match unit {
        Unit::Microsecond => Value::Whole(micros),
        Unit::Millisecond => {
            let (seconds, rest) = (micros / SECOND, micros % SECOND);
            Value::Decimal(micros.into(), 3, seconds as f64 * 1_000.0 + rest as f64 / 1_000.0)
        }
        _ => {
            let (seconds, rest) = (micros / SECOND, micros % SECOND);
            Value::Decimal(micros.into(), 6, seconds as f64 + rest as f64 / 1_000_000.0)
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "a float is asked for")]
fn epoch_of(micros: i128) -> Value {
    Value::Decimal(micros, 6, micros as f64 / 1_000_000.0)
}

/// Fields of a clock that shows `micros`.
fn clock_field(unit: Unit, micros: i64) -> Option<Value> {
    Some(match unit {
        Unit::Microsecond | Unit::Millisecond | Unit::Second => seconds_of(unit, micros % (60 * SECOND)),
        Unit::Minute => Value::Whole(micros / (60 * SECOND) % 60),
        Unit::Hour => Value::Whole(micros / (3_600 * SECOND)),
        _ => return None,
    })
}

/// Fields of a calendar.
fn calendar_field(unit: Unit, fields: &Fields) -> Result<Option<i64>> {
    let year = fields.year;
    Ok(Some(i64::from(match unit {
        Unit::Day => fields.day,
        Unit::Month => fields.month,
        Unit::Quarter => (fields.month - 1) / 3 + 1,
        Unit::Week => iso_week(fields.date()?).1,
        // The years before 1 are counted without a year 0.
        Unit::Year => {
            if year > 0 {
                year
            } else {
                year - 1
            }
        }
        Unit::Decade => year.div_euclid(10),
        Unit::Century => {
            if year > 0 {
                (year + 99) / 100
            } else {
                -((99 - (year - 1)) / 100)
            }
        }
        Unit::Millennium => {
            if year > 0 {
                (year + 999) / 1_000
            } else {
                -((999 - (year - 1)) / 1_000)
            }
        }
        Unit::IsoYear => {
            let year = iso_week(fields.date()?).0;
            if year > 0 { year } else { year - 1 }
        }
        Unit::DayOfWeek => day_of_week(fields.date()?),
        Unit::IsoDayOfWeek => match day_of_week(fields.date()?) {
            0 => 7,
            day => day,
        },
        Unit::DayOfYear => i32::from(fields.date()?.day_of_year()),
        _ => return Ok(None),
    })))
}

/// What a field of an infinity holds: an infinity, if it grows with time.
fn infinite_field(field: &Field, type_name: &str, negative: bool) -> Result<Value> {
    match field.meaning {
        Meaning::Unit(Unit::Year | Unit::Decade | Unit::Century | Unit::Millennium | Unit::Julian | Unit::IsoYear)
        | Meaning::Epoch => Ok(Value::Infinite { negative }),
        Meaning::Unit(_) => Ok(Value::Null),
        Meaning::Reserved => Err(field.unsupported(type_name)),
        Meaning::Unknown => Err(field.unknown(type_name)),
    }
}

fn of_timestamp(arguments: &Arguments<'_>) -> Result<Value> {
    let micros = timestamp(arguments, 1)?;
    timestamp_field(&Field::of(arguments.text(0)?), TIMESTAMP, micros, micros, None)
}

fn of_timestamptz(arguments: &Arguments<'_>) -> Result<Value> {
    let micros = timestamp(arguments, 1)?;
    let field = Field::of(arguments.text(0)?);
    if !is_finite(micros) {
        return infinite_field(&field, TIMESTAMPTZ, micros != TIMESTAMP_INFINITY);
    }
    let east = offset_at(&arguments.environment.zone, micros);
    timestamp_field(&field, TIMESTAMPTZ, micros, local(arguments, 1)?, Some(east))
}

/// A field of a moment, of which the clocks show `local`.
fn timestamp_field(field: &Field, type_name: &str, micros: i64, local: i64, east: Option<i32>) -> Result<Value> {
    if !is_finite(micros) {
        return infinite_field(field, type_name, micros != TIMESTAMP_INFINITY);
    }
    let unit = match field.meaning {
        Meaning::Unit(unit) => unit,
        Meaning::Epoch => return Ok(epoch_of(i128::from(micros) + i128::from(UNIX_SECONDS * SECOND))),
        Meaning::Reserved => return Err(field.unsupported(type_name)),
        Meaning::Unknown => return Err(field.unknown(type_name)),
    };
    if let (Some(east), Some(value)) = (east, east.and_then(|east| zone_field(unit, east))) {
        debug_assert!(east.abs() < 2 * 86_400, "offsets are small");
        return Ok(value);
    }
    let time = local.rem_euclid(DAY);
    if let Some(value) = clock_field(unit, time) {
        return Ok(value);
    }
    let fields = Fields::of(local)?;
    if unit == Unit::Julian {
        return Ok(Value::Julian(julian(fields.date()?), time));
    }
    calendar_field(unit, &fields)?
        .map(Value::Whole)
        .ok_or_else(|| field.unsupported(type_name))
}

fn zone_field(unit: Unit, east: i32) -> Option<Value> {
    Some(Value::Whole(i64::from(match unit {
        Unit::Zone => east,
        Unit::ZoneHour => east / 3_600,
        Unit::ZoneMinute => east / 60 % 60,
        _ => return None,
    })))
}

fn of_date(arguments: &Arguments<'_>) -> Result<Owned> {
    const NAME: &str = "date";
    let days = date(arguments, 1)?;
    let field = Field::of(arguments.text(0)?);
    let unit = match field.meaning {
        Meaning::Unit(
            Unit::Microsecond
            | Unit::Millisecond
            | Unit::Second
            | Unit::Minute
            | Unit::Hour
            | Unit::Zone
            | Unit::ZoneHour
            | Unit::ZoneMinute,
        ) => return Err(field.unsupported(NAME)),
        _ if !is_finite_date(days) => return Ok(infinite_field(&field, NAME, days < 0)?.numeric()),
        Meaning::Unit(unit) => unit,
        Meaning::Epoch => {
            return Ok(Value::Whole(i64::from(days) * DAY_SECONDS + UNIX_SECONDS).numeric());
        }
        Meaning::Reserved => return Err(field.unsupported(NAME)),
        Meaning::Unknown => return Err(field.unknown(NAME)),
    };
    let date = date_of(days.into())?;
    debug_assert_eq!(days_of(date), days);
    if unit == Unit::Julian {
        return Ok(Value::Whole(julian(date)).numeric());
    }
    calendar_field(unit, &Fields::of_date(date))?
        .map(|value| Value::Whole(value).numeric())
        .ok_or_else(|| field.unsupported(NAME))
}

fn of_time(arguments: &Arguments<'_>) -> Result<Value> {
    const NAME: &str = "time without time zone";
    let micros = time(arguments, 1)?;
    let field = Field::of(arguments.text(0)?);
    match field.meaning {
        Meaning::Unit(unit) => clock_field(unit, micros).ok_or_else(|| field.unsupported(NAME)),
        Meaning::Epoch => Ok(epoch_of(micros.into())),
        Meaning::Reserved | Meaning::Unknown => Err(field.unknown(NAME)),
    }
}

fn of_timetz(arguments: &Arguments<'_>) -> Result<Value> {
    const NAME: &str = "time with time zone";
    let (micros, west) = timetz(arguments, 1)?;
    let field = Field::of(arguments.text(0)?);
    match field.meaning {
        Meaning::Unit(unit) => zone_field(unit, -west)
            .or_else(|| clock_field(unit, micros))
            .ok_or_else(|| field.unsupported(NAME)),
        #[allow(clippy::cast_precision_loss, reason = "a float is asked for")]
        Meaning::Epoch => {
            let sum = micros + i64::from(west) * SECOND;
            Ok(Value::Decimal(
                sum.into(),
                6,
                micros as f64 / 1_000_000.0 + f64::from(west),
            ))
        }
        Meaning::Reserved | Meaning::Unknown => Err(field.unknown(NAME)),
    }
}

fn of_interval(arguments: &Arguments<'_>) -> Result<Value> {
    const NAME: &str = "interval";
    let interval = interval(arguments, 1)?;
    let field = Field::of(arguments.text(0)?);
    let (years, months) = (i64::from(interval.months / 12), i64::from(interval.months % 12));
    Ok(match field.meaning {
        Meaning::Unit(unit) => match unit {
            Unit::Day => Value::Whole(interval.days.into()),
            Unit::Month => Value::Whole(months),
            Unit::Quarter => Value::Whole(months / 3 + 1),
            Unit::Year => Value::Whole(years),
            Unit::Decade => Value::Whole(years / 10),
            Unit::Century => Value::Whole(years / 100),
            Unit::Millennium => Value::Whole(years / 1_000),
            _ => return clock_field(unit, interval.micros).ok_or_else(|| field.unsupported(NAME)),
        },
        Meaning::Epoch => interval_epoch(interval, years, months),
        Meaning::Reserved | Meaning::Unknown => return Err(field.unknown(NAME)),
    })
}

/// A year of 365.25 days and a month of 30.
#[allow(clippy::cast_precision_loss, reason = "a float is asked for")]
fn interval_epoch(interval: Interval, years: i64, months: i64) -> Value {
    let quarters_of_days = 1_461 * years + 120 * months + 4 * i64::from(interval.days);
    let micros = i128::from(quarters_of_days) * i128::from(DAY / 4) + i128::from(interval.micros);
    let mut float = interval.micros as f64 / 1_000_000.0;
    float += 365.25 * 86_400.0 * years as f64;
    float += 30.0 * 86_400.0 * months as f64;
    float += 86_400.0 * f64::from(interval.days);
    Value::Decimal(micros, 6, float)
}
