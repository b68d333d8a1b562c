//! Between PostgreSQL's counts of days and microseconds and the fields of a calendar and a clock. Knows no zones: a moment here is local.

use jiff::Span;
use jiff::civil::{Date, DateTime, Time, Weekday};

use super::limits::{DAY, EPOCH_JULIAN, HOUR, MINUTE, SECOND, beyond_stored_years, timestamp_in_range};
use crate::Result;

/// Day 0.
const EPOCH: Date = Date::constant(2000, 1, 1);

/// A local moment in fields. Within the calendar that `jiff` has: years -9999 to 9999, year 0 being 1 BC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Fields {
    pub(crate) year: i32,
    pub(crate) month: i32,
    pub(crate) day: i32,
    pub(crate) hour: i32,
    pub(crate) minute: i32,
    pub(crate) second: i32,
    pub(crate) micros: i32,
}

impl Fields {
    /// The fields of a moment.
    pub(crate) fn of(local: i64) -> Result<Self> {
        let date = date_of(local.div_euclid(DAY))?;
        let mut fields = Self::of_date(date);
        fields.set_time(local.rem_euclid(DAY));
        Ok(fields)
    }

    /// Midnight of a date.
    pub(crate) fn of_date(date: Date) -> Self {
        Self {
            year: i32::from(date.year()),
            month: i32::from(date.month()),
            day: i32::from(date.day()),
            ..Self::default()
        }
    }

    /// With this time of day, `0 <= micros <= DAY`.
    #[allow(clippy::cast_possible_truncation, reason = "parts of a day")]
    pub(crate) fn set_time(&mut self, micros: i64) {
        self.hour = (micros / HOUR) as i32;
        self.minute = (micros % HOUR / MINUTE) as i32;
        self.second = (micros % MINUTE / SECOND) as i32;
        self.micros = (micros % SECOND) as i32;
    }

    /// The time of day.
    pub(crate) fn time(&self) -> i64 {
        i64::from(self.hour) * HOUR
            + i64::from(self.minute) * MINUTE
            + i64::from(self.second) * SECOND
            + i64::from(self.micros)
    }

    /// The date.
    pub(crate) fn date(&self) -> Result<Date> {
        date(self.year.into(), self.month, self.day)
    }

    /// The moment; a time past its day reaches into the next.
    pub(crate) fn local(&self) -> Result<i64> {
        let days = days_of(self.date()?);
        timestamp_in_range(
            i64::from(days)
                .checked_mul(DAY)
                .and_then(|day| day.checked_add(self.time())),
        )
    }

    /// For the zones' rules, which know whole seconds before the day's end.
    #[allow(clippy::cast_possible_truncation, reason = "a clock's fields are small")]
    pub(crate) fn date_time(&self) -> Result<DateTime> {
        let clamped = |value: i32, last: i32| value.clamp(0, last) as i8;
        let time = Time::new(
            clamped(self.hour, 23),
            clamped(self.minute, 59),
            clamped(self.second, 59),
            0,
        )
        .expect("within a day");
        Ok(self.date()?.to_datetime(time))
    }
}

/// A date of the calendar; that the month and the day exist is the caller's care.
pub(crate) fn date(year: i64, month: i32, day: i32) -> Result<Date> {
    let (Ok(year), Ok(month), Ok(day)) = (i16::try_from(year), i8::try_from(month), i8::try_from(day)) else {
        return Err(beyond_stored_years());
    };
    Date::new(year, month, day).map_err(|_| beyond_stored_years())
}

/// How many days that month has.
pub(crate) fn days_in_month(year: i64, month: i32) -> Result<i32> {
    Ok(i32::from(date(year, month, 1)?.days_in_month()))
}

/// The date of that day.
pub(crate) fn date_of(days: i64) -> Result<Date> {
    Span::new()
        .try_days(days)
        .and_then(|span| EPOCH.checked_add(span))
        .map_err(|_| beyond_stored_years())
}

/// The days up to that date.
pub(crate) fn days_of(date: Date) -> i32 {
    EPOCH.until(date).expect("days between any two dates fit").get_days()
}

/// PostgreSQL's Julian day, which begins at midnight.
pub(crate) fn julian(date: Date) -> i64 {
    i64::from(days_of(date)) + EPOCH_JULIAN
}

/// Sunday is 0.
pub(crate) fn day_of_week(date: Date) -> i32 {
    i32::from(date.weekday().to_sunday_zero_offset())
}

/// ISO 8601's year and week.
pub(crate) fn iso_week(date: Date) -> (i32, i32) {
    let week = date.iso_week_date();
    (i32::from(week.year()), i32::from(week.week()))
}

/// Monday of that week of ISO 8601.
pub(crate) fn monday_of(year: i32, week: i32) -> Result<Date> {
    // Week 1 is the one with January 4.
    let fourth = date(year.into(), 1, 4)?;
    let monday = days_of(fourth) - i32::from(fourth.weekday().since(Weekday::Monday));
    date_of(i64::from(monday) + 7 * (i64::from(week) - 1))
}
