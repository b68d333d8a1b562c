//! Moments as clocks in UTC show them, and as texts.
//!
//! Promises: what is shown is the moment, with nothing rounded; a text that is read says which moment it is, or is not read.
//! The calendar is the Gregorian one, also before there was one; days are counted as in Hinnant, "chrono-Compatible Low-Level Date
//! Algorithms" (2013). Knows no database.

use std::fmt;
use std::time::{Duration, SystemTime};

const DAY_SECONDS: i64 = 86_400;
const NANOSECONDS: u32 = 1_000_000_000;
/// After so many years, and days, the calendar is the same again.
const ERA_YEARS: i64 = 400;
const ERA_DAYS: i64 = 146_097;
/// From the first of March of the year 0, where an era begins, to 1970.
const EPOCH_DAYS: i64 = 719_468;

/// A moment as a clock in UTC shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Utc {
    /// 0 is the year before 1.
    pub year: i64,
    /// From 1.
    pub month: u8,
    /// From 1.
    pub day: u8,
    /// To 23.
    pub hour: u8,
    /// To 59.
    pub minute: u8,
    /// To 59.
    pub second: u8,
    /// Below a second.
    pub nanosecond: u32,
}

impl Utc {
    /// What it shows at a moment.
    pub fn of(moment: SystemTime) -> Self {
        let (seconds, nanosecond) = since_1970(moment);
        let (year, month, day) = date_of(seconds.div_euclid(DAY_SECONDS));
        let second_of_day = seconds.rem_euclid(DAY_SECONDS);
        let below = |whole: i64, unit: i64| u8::try_from(whole % unit).expect("less than 60");
        Self {
            year,
            month,
            day,
            hour: below(second_of_day / 3600, 24),
            minute: below(second_of_day / 60, 60),
            second: below(second_of_day, 60),
            nanosecond,
        }
    }

    /// Below a second, in whole microseconds.
    pub fn microsecond(&self) -> u32 {
        self.nanosecond / 1000
    }
}

/// `2026-11-28 01:30:00.5+00:00`: without needless zeros, so that texts are ordered as the moments are, and a year before 1 as
/// PostgreSQL has it.
impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            year,
            month,
            day,
            hour,
            minute,
            second,
            nanosecond,
        } = *self;
        let shown = if year > 0 { year } else { 1 - year };
        write!(f, "{shown:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")?;
        if nanosecond > 0 {
            let fraction = format!("{nanosecond:09}");
            write!(f, ".{}", fraction.trim_end_matches('0'))?;
        }
        f.write_str(if year > 0 { "+00:00" } else { "+00:00 BC" })
    }
}

/// Whole seconds, and the nanoseconds after them.
pub fn since_1970(moment: SystemTime) -> (i64, u32) {
    match moment.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => (after.as_secs().cast_signed(), after.subsec_nanos()),
        Err(before) => {
            let before = before.duration();
            let seconds = before.as_secs().cast_signed().wrapping_neg();
            match before.subsec_nanos() {
                0 => (seconds, 0),
                part => (seconds - 1, NANOSECONDS - part),
            }
        }
    }
}

/// A moment so many seconds from 1970, and nanoseconds after that; none if no clock of this machine shows it.
pub(crate) fn from_1970(seconds: i64, nanoseconds: u32) -> Option<SystemTime> {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let second = if seconds < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(whole)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(whole)
    };
    second?.checked_add(Duration::from_nanos(nanoseconds.into()))
}

/// The date of a day that is counted from 1970. Years are counted from March here, so that what a leap year has more is its end.
fn date_of(day: i64) -> (i64, u8, u8) {
    let day = day + EPOCH_DAYS;
    let (era, day_of_era) = (day.div_euclid(ERA_DAYS), day.rem_euclid(ERA_DAYS));
    // As if no year had a 366th day: those that have passed are taken off.
    let leap_days = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - days_before(year_of_era);
    // Five months from March, or from August, have 153 days.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - days_before_month(month_from_march) + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * ERA_YEARS + year_of_era + i64::from(month <= 2);
    let small = |number: i64| u8::try_from(number).expect("a month or a day of one");
    (year, small(month), small(day_of_month))
}

/// The day, counted from 1970, of a date; none if there is no such date.
fn day_of(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let from_march = year.checked_sub(i64::from(month <= 2))?;
    let (era, year_of_era) = (from_march.div_euclid(ERA_YEARS), from_march.rem_euclid(ERA_YEARS));
    let day_of_year = days_before_month((month + 9) % 12) + day - 1;
    let number = era
        .checked_mul(ERA_DAYS)?
        .checked_add(days_before(year_of_era) + day_of_year - EPOCH_DAYS)?;
    // The 30th of February is another date.
    let (_, is_month, is_day) = date_of(number);
    (i64::from(is_month) == month && i64::from(is_day) == day).then_some(number)
}

/// Days of an era before a year of it.
fn days_before(year_of_era: i64) -> i64 {
    365 * year_of_era + year_of_era / 4 - year_of_era / 100
}

/// Days of a year from March before a month of it.
fn days_before_month(month_from_march: i64) -> i64 {
    (153 * month_from_march + 2) / 5
}

/// The moment that a text says, as databases write them: a date and a time with a space or a `T` between, a fraction of up to nine
/// digits, `Z` or an offset, ` BC`. Without an offset it is UTC.
pub fn parse(text: &str) -> Option<SystemTime> {
    let (text, is_before_christ) = match text.strip_suffix(" BC") {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let (date, time) = text.split_once([' ', 'T'])?;
    let mut parts = date.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || year.len() < 4 {
        return None;
    }
    let year = number(year)?;
    let year = if is_before_christ { 1 - year } else { year };
    let (clock, offset) = match time.find(['Z', '+', '-']) {
        Some(at) => time.split_at(at),
        None => (time, "Z"),
    };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let seconds = sexagesimal(clock, 3, 3)?;
    let nanoseconds = match fraction.len() {
        length @ 1..=9 => number(fraction)? * 10_i64.pow(u32::try_from(9 - length).ok()?),
        _ => return None,
    };
    let offset = match offset.split_at(1) {
        ("Z", "") => 0,
        ("+", offset) => sexagesimal(offset, 1, 3)?,
        ("-", offset) => -sexagesimal(offset, 1, 3)?,
        _ => return None,
    };
    let day = day_of(year, two(month)?, two(day)?)?;
    let seconds = day.checked_mul(DAY_SECONDS)?.checked_add(seconds - offset)?;
    from_1970(seconds, u32::try_from(nanoseconds).ok()?)
}

/// All of it as decimal digits.
fn number(digits: &str) -> Option<i64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

fn two(digits: &str) -> Option<i64> {
    (digits.len() == 2).then(|| number(digits)).flatten()
}

/// `01:30:00` in seconds, of which so many parts are there.
fn sexagesimal(text: &str, least: usize, most: usize) -> Option<i64> {
    let parts: Option<Vec<i64>> = text.split(':').map(two).collect();
    let parts = parts.filter(|parts| (least..=most).contains(&parts.len()))?;
    if parts[0] > 23 || parts[1..].iter().any(|part| *part > 59) {
        return None;
    }
    let units = [3600, 60, 1];
    Some(parts.iter().zip(units).map(|(part, unit)| part * unit).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64, nanoseconds: u32) -> SystemTime {
        from_1970(seconds, nanoseconds).unwrap()
    }

    #[test]
    fn a_moment_is_shown_as_a_clock_in_utc_shows_it() {
        for (seconds, nanoseconds, text) in [
            (0, 0, "1970-01-01 00:00:00+00:00"),
            (-1, 999_999_999, "1969-12-31 23:59:59.999999999+00:00"),
            (951_782_400, 500_000_000, "2000-02-29 00:00:00.5+00:00"),
            (253_402_300_800, 0, "10000-01-01 00:00:00+00:00"),
            (-62_135_596_800, 0, "0001-01-01 00:00:00+00:00"),
            (-62_135_596_801, 0, "0001-12-31 23:59:59+00:00 BC"),
        ] {
            let moment = at(seconds, nanoseconds);
            assert_eq!(Utc::of(moment).to_string(), text);
            assert_eq!(parse(text), Some(moment), "{text}");
        }
    }

    /// Whatever a machine can say is shown, and no day is missed or told twice.
    #[test]
    fn every_day_has_one_date_and_every_date_one_day() {
        let mut before = (0, 0, 0);
        for day in -EPOCH_DAYS - 400..ERA_DAYS {
            let date = date_of(day);
            assert!(date > before || day == -EPOCH_DAYS - 400, "{before:?} {date:?}");
            assert_eq!(day_of(date.0, date.1.into(), date.2.into()), Some(day));
            before = date;
        }
        for seconds in [i64::MIN, i64::MIN + 1, i64::MAX] {
            let day = seconds.div_euclid(DAY_SECONDS);
            let (year, month, date) = date_of(day);
            assert_eq!(day_of(year, month.into(), date.into()), Some(day));
        }
    }

    #[test]
    fn what_databases_write_is_read_and_what_says_no_moment_is_not() {
        let moment = at(1_795_829_400, 120_000_000);
        for text in [
            "2026-11-28 01:30:00.12",
            "2026-11-28T01:30:00.12Z",
            "2026-11-28 01:30:00.120000+00",
            "2026-11-28 07:00:00.12+05:30",
            "2026-11-27 22:00:00.12-03:30",
        ] {
            assert_eq!(parse(text), Some(moment), "{text}");
        }
        for text in [
            "",
            "2026-11-28",
            "01:30:00",
            "2026-02-29 01:30:00",
            "2026-13-01 01:30:00",
            "2026-11-28 24:00:00",
            "2026-11-28 01:30",
            "2026-11-28 01:60:00",
            "2026-11-28 01:30:00.",
            "2026-11-28 01:30:00.1234567890",
            "2026-11-28 01:30:00+",
            "2026-11-28 01:30:00Z0",
            "2026-11-28 01:30:00 BC AD",
            "26-11-28 01:30:00",
            "infinity",
            "99999999999999999999-01-01 00:00:00",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
