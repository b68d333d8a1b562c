//! `date_trunc`.

use super::civil::{Fields, iso_week, monday_of};
use super::keywords::Unit;
use super::limits::{SECOND, is_finite, timestamp_in_range};
use super::part::Field;
use super::values::{interval, of_interval, of_timestamp, timestamp};
use super::zone::{at_time_zone, offset_at, offset_of};
use crate::interval::Interval;
use crate::temporal::{HOUR, MINUTE};
use crate::{Arguments, Function, Owned, Result};
use jiff::tz::TimeZone;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("timestamp_trunc", |arguments| {
        let micros = timestamp(&arguments, 1)?;
        if !is_finite(micros) {
            return of_timestamp(micros);
        }
        let mut fields = Fields::of(micros)?;
        truncate(
            &mut fields,
            &Field::of_unit(arguments.text(0)?),
            "timestamp without time zone",
        )?;
        of_timestamp(fields.local()?)
    }),
    Function::new("timestamptz_trunc", |arguments| {
        in_zone(&arguments, &arguments.environment.zone)
    })
    .in_session(),
    Function::new("timestamptz_trunc_zone", |arguments| {
        if is_finite(timestamp(&arguments, 1)?) {
            in_zone(&arguments, &at_time_zone(arguments.text(2)?)?)
        } else {
            Ok(arguments.values[1].into())
        }
    }),
    Function::new("interval_trunc", |arguments| of_interval_unit(&arguments)),
];

fn in_zone(arguments: &Arguments<'_>, zone: &TimeZone) -> Result<Owned> {
    let micros = timestamp(arguments, 1)?;
    if !is_finite(micros) {
        return of_timestamp(micros);
    }
    let mut east = offset_at(zone, micros);
    let mut fields = Fields::of(micros + i64::from(east) * SECOND)?;
    let unit = truncate(
        &mut fields,
        &Field::of_unit(arguments.text(0)?),
        "timestamp with time zone",
    )?;
    // Up to an hour the offset stays what it is, so that of two equal hours each keeps its own.
    if !matches!(
        unit,
        Unit::Microsecond | Unit::Millisecond | Unit::Second | Unit::Minute | Unit::Hour
    ) {
        east = offset_of(zone, &fields)?;
    }
    of_timestamp(timestamp_in_range(
        fields.local()?.checked_sub(i64::from(east) * SECOND),
    )?)
}

/// The beginning of the unit, and which one it was.
fn truncate(fields: &mut Fields, field: &Field, type_name: &str) -> Result<Unit> {
    let unit = field.unit(type_name)?;
    let year = fields.year;
    match unit {
        Unit::Microsecond => {}
        Unit::Millisecond => fields.micros = fields.micros / 1_000 * 1_000,
        Unit::Second => fields.micros = 0,
        Unit::Minute => (fields.second, fields.micros) = (0, 0),
        Unit::Hour => (fields.minute, fields.second, fields.micros) = (0, 0, 0),
        Unit::Day => fields.set_time(0),
        Unit::Week => {
            let (year, week) = iso_week(fields.date()?);
            *fields = Fields::of_date(monday_of(year, week)?);
        }
        Unit::Month => first_of(fields, year, fields.month),
        Unit::Quarter => first_of(fields, year, (fields.month - 1) / 3 * 3 + 1),
        Unit::Year => first_of(fields, year, 1),
        Unit::Decade => first_of(fields, year.div_euclid(10) * 10, 1),
        // The first century began with the year 1.
        Unit::Century => first_of(fields, (year - 1).div_euclid(100) * 100 + 1, 1),
        Unit::Millennium => first_of(fields, (year - 1).div_euclid(1_000) * 1_000 + 1, 1),
        _ => return Err(field.unsupported(type_name)),
    }
    Ok(unit)
}

fn first_of(fields: &mut Fields, year: i32, month: i32) {
    *fields = Fields {
        year,
        month,
        day: 1,
        ..Fields::default()
    };
}

fn of_interval_unit(arguments: &Arguments<'_>) -> Result<Owned> {
    const NAME: &str = "interval";
    let whole = interval(arguments, 1)?;
    let field = Field::of_unit(arguments.text(0)?);
    let down_to = |unit: i64| Interval {
        micros: whole.micros / unit * unit,
        ..whole
    };
    let months = |unit: i32| Interval {
        months: whole.months / unit * unit,
        ..Interval::default()
    };
    of_interval(match field.unit(NAME)? {
        Unit::Microsecond => whole,
        Unit::Millisecond => down_to(1_000),
        Unit::Second => down_to(SECOND),
        Unit::Minute => down_to(MINUTE),
        Unit::Hour => down_to(HOUR),
        Unit::Day => Interval { micros: 0, ..whole },
        Unit::Month => months(1),
        Unit::Quarter => months(3),
        Unit::Year => months(12),
        Unit::Decade => months(120),
        Unit::Century => months(1_200),
        Unit::Millennium => months(12_000),
        Unit::Week => {
            return Err(field
                .unsupported(NAME)
                .with_detail("Months usually have fractional weeks."));
        }
        _ => return Err(field.unsupported(NAME)),
    })
}
