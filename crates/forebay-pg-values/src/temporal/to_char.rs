//! `to_char` of timestamps and intervals. Names of months and days are English, those of PostgreSQL's locale C.

use std::fmt::Write;

use jiff::tz::TimeZone;

use super::civil::{Fields, date_of, day_of_week, days_of, iso_week, julian, monday_of};
use super::limits::{HOUR, MINUTE, SECOND, beyond_stored_years, is_finite};
use super::pattern::{Ordinal, Piece, pieces};
use super::values::{interval, timestamp};
use super::zone::{instant, offset_at};
use crate::{Function, Owned, Result, ValueError};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("timestamp_to_char", |arguments| {
        let (micros, pattern) = (timestamp(&arguments, 0)?, arguments.text(1)?);
        if pattern.is_empty() || !is_finite(micros) {
            return Ok(Owned::Null);
        }
        Ok(Owned::Text(format(&Moment::of(micros, None)?, pattern)?))
    }),
    Function::new("timestamptz_to_char", |arguments| {
        let (micros, pattern) = (timestamp(&arguments, 0)?, arguments.text(1)?);
        if pattern.is_empty() || !is_finite(micros) {
            return Ok(Owned::Null);
        }
        let moment = Moment::of(micros, Some(&arguments.environment.zone))?;
        Ok(Owned::Text(format(&moment, pattern)?))
    })
    .in_session(),
    Function::new("interval_to_char", |arguments| {
        let (interval, pattern) = (interval(&arguments, 0)?, arguments.text(1)?);
        if pattern.is_empty() {
            return Ok(Owned::Null);
        }
        let micros = interval.micros;
        let moment = Moment {
            year: i64::from(interval.months / 12),
            month: i64::from(interval.months % 12),
            day: interval.days.into(),
            // PostgreSQL's overflows.
            day_of_year: i64::from(interval.months.wrapping_mul(30).wrapping_add(interval.days)),
            hour: micros / HOUR,
            minute: micros % HOUR / MINUTE,
            second: micros % MINUTE / SECOND,
            micros: micros % SECOND,
            date: None,
            east: 0,
            zone: String::new(),
        };
        Ok(Owned::Text(format(&moment, pattern)?))
    }),
];

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(super) const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
const ROMAN: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// What is written: a timestamp, or an interval, which has no date.
struct Moment {
    year: i64,
    month: i64,
    day: i64,
    day_of_year: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    date: Option<jiff::civil::Date>,
    east: i32,
    zone: String,
}

impl Moment {
    fn of(micros: i64, zone: Option<&TimeZone>) -> Result<Self> {
        let (east, name) = match zone {
            Some(zone) => {
                let info = zone.to_offset_info(instant(micros));
                (offset_at(zone, micros), info.abbreviation().to_owned())
            }
            None => (0, String::new()),
        };
        let fields = Fields::of(micros + i64::from(east) * SECOND)?;
        if fields.year < 1 {
            return Err(beyond_stored_years());
        }
        let date = fields.date()?;
        Ok(Self {
            year: fields.year.into(),
            month: fields.month.into(),
            day: fields.day.into(),
            day_of_year: date.day_of_year().into(),
            hour: fields.hour.into(),
            minute: fields.minute.into(),
            second: fields.second.into(),
            micros: fields.micros.into(),
            date: Some(date),
            east,
            zone: name,
        })
    }

    fn date(&self) -> Result<jiff::civil::Date> {
        self.date.ok_or_else(|| {
            ValueError::new("22007", "invalid format specification for an interval value")
                .with_hint("Intervals are not tied to specific calendar dates.")
        })
    }

    /// For fields that PostgreSQL writes of an interval as if it were a date.
    fn date_of_interval(&self, name: &str) -> Result<jiff::civil::Date> {
        self.date
            .ok_or_else(|| ValueError::unsupported(format!("{name} of an interval is")))
    }
}

fn format(moment: &Moment, pattern: &str) -> Result<String> {
    let mut out = String::new();
    for piece in pieces(pattern) {
        match piece {
            Piece::Separator(character) | Piece::Text(character) => out.push(character),
            Piece::Field {
                name,
                fill,
                translated,
                ordinal,
            } => {
                let pad = if fill { Pad::None } else { Pad::Zeros };
                if !word(moment, name, fill || translated, &mut out)? {
                    number(moment, name, pad, ordinal, &mut out)?;
                }
            }
        }
    }
    Ok(out)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pad {
    None,
    Zeros,
}

/// The case of a field's name is that of the word.
fn cased(name: &str, word: &str) -> String {
    let mut letters = name.chars().filter(char::is_ascii_alphabetic);
    match (letters.next(), letters.next()) {
        (Some(first), _) if first.is_ascii_lowercase() => word.to_ascii_lowercase(),
        (_, Some(second)) if second.is_ascii_uppercase() => word.to_ascii_uppercase(),
        _ => word.to_owned(),
    }
}

/// Writes a field that is a word; says no if it is a number.
fn word(moment: &Moment, name: &str, unpadded: bool, out: &mut String) -> Result<bool> {
    let month = |length: usize| -> Option<&str> {
        let at = usize::try_from(moment.month).ok()?.checked_sub(1)?;
        MONTHS.get(at).map(|month| month.get(..length).unwrap_or(month))
    };
    let mut full = |word: &str| {
        let word = cased(name, word);
        let width = if unpadded { 0 } else { 9 };
        let _ = write!(out, "{word:<width$}");
    };
    match name.to_ascii_uppercase().as_str() {
        "A.M." | "P.M." | "AM" | "PM" => {
            let dotted = name.contains('.');
            let word = match (moment.hour % 24 >= 12, dotted) {
                (true, true) => "P.M.",
                (true, false) => "PM",
                (false, true) => "A.M.",
                (false, false) => "AM",
            };
            out.push_str(&cased(name, word));
        }
        "A.D." | "B.C." | "AD" | "BC" => {
            moment.date()?;
            let word = match (moment.year <= 0, name.contains('.')) {
                (true, true) => "B.C.",
                (true, false) => "BC",
                (false, true) => "A.D.",
                (false, false) => "AD",
            };
            out.push_str(&cased(name, word));
        }
        "MONTH" => {
            moment.date()?;
            if let Some(month) = month(9) {
                full(month);
            }
        }
        "MON" => {
            moment.date()?;
            if let Some(month) = month(3) {
                out.push_str(&cased(name, month));
            }
        }
        "DAY" => full(DAYS[weekday(moment)?]),
        "DY" => out.push_str(&cased(name, &DAYS[weekday(moment)?][..3])),
        "RM" => {
            if moment.month == 0 && moment.year == 0 {
                return Ok(true);
            }
            let month = match moment.month {
                0 if moment.year >= 0 => 12,
                0 => 1,
                negative if negative < 0 => 13 + negative,
                month => month,
            };
            let at = usize::try_from(month - 1).map_err(|_| ValueError::unsupported("RM of this interval is"))?;
            let word = cased(if name == "RM" { "RM" } else { "rm" }, ROMAN[at]);
            let width = if unpadded { 0 } else { 4 };
            let _ = write!(out, "{word:<width$}");
        }
        "TZ" => {
            moment.date()?;
            out.push_str(&if name == "TZ" {
                moment.zone.clone()
            } else {
                moment.zone.to_ascii_lowercase()
            });
        }
        "FX" => {}
        _ => return Ok(false),
    }
    Ok(true)
}

fn weekday(moment: &Moment) -> Result<usize> {
    Ok(usize::try_from(day_of_week(moment.date()?)).expect("0 to 6"))
}

/// Writes a field that is a number.
fn number(moment: &Moment, name: &str, pad: Pad, ordinal: Option<Ordinal>, out: &mut String) -> Result<()> {
    let upper = name.to_ascii_uppercase();
    let padded = |value: i64, width: usize| match pad {
        Pad::None => value.to_string(),
        // The sign comes on top.
        Pad::Zeros if value < 0 => format!("-{:0width$}", value.unsigned_abs()),
        Pad::Zeros => format!("{value:0width$}"),
    };
    // The sign takes a place.
    let fitted = |value: i64, width: usize| match pad {
        Pad::None => value.to_string(),
        Pad::Zeros => format!("{value:0width$}"),
    };
    let iso_year = || moment.date_of_interval(&upper).map(|date| i64::from(iso_week(date).0));
    let part_of_year = |year: i64, unit: i64, width: usize| {
        // The sign of the whole makes it wider.
        let part = year % unit;
        if pad == Pad::Zeros && year < 0 {
            format!("{part:0width$}", width = width + 1)
        } else {
            padded(part, width)
        }
    };
    let east = i64::from(moment.east).abs();
    let sign = if moment.east >= 0 { '+' } else { '-' };
    let text = match upper.as_str() {
        "HH" | "HH12" => {
            let hour = if moment.hour % 12 == 0 { 12 } else { moment.hour % 12 };
            let width = if moment.hour >= 0 { 2 } else { 3 };
            fitted(hour, width)
        }
        "HH24" => padded(moment.hour, 2),
        "MI" => padded(moment.minute, 2),
        "SS" => padded(moment.second, 2),
        "FF1" => format!("{:01}", moment.micros / 100_000),
        "FF2" => format!("{:02}", moment.micros / 10_000),
        "FF3" | "MS" => format!("{:03}", moment.micros / 1_000),
        "FF4" => format!("{:04}", moment.micros / 100),
        "FF5" => format!("{:05}", moment.micros / 10),
        "FF6" | "US" => format!("{:06}", moment.micros),
        "SSSS" | "SSSSS" => (moment.hour * 3_600 + moment.minute * 60 + moment.second).to_string(),
        "TZH" => {
            moment.date()?;
            let _ = write!(out, "{sign}{:02}", east / 3_600);
            return Ok(());
        }
        "TZM" => {
            moment.date()?;
            let _ = write!(out, "{:02}", east % 3_600 / 60);
            return Ok(());
        }
        "OF" => {
            moment.date()?;
            let _ = write!(out, "{sign}{}", padded(east / 3_600, 2));
            if east % 3_600 != 0 {
                let _ = write!(out, ":{:02}", east % 3_600 / 60);
            }
            return Ok(());
        }
        "MM" => padded(moment.month, 2),
        "DDD" => fitted(moment.day_of_year, 3),
        "IDDD" => {
            let date = moment.date_of_interval(&upper)?;
            let first = monday_of(iso_week(date).0, 1)?;
            padded(i64::from(days_of(date) - days_of(first) + 1), 3)
        }
        "DD" => fitted(moment.day, 2),
        "D" => (weekday(moment)? + 1).to_string(),
        "ID" => match weekday(moment)? {
            0 => "7".to_owned(),
            day => day.to_string(),
        },
        "WW" => fitted((weeks_before(moment.day_of_year) + 1).into(), 2),
        "IW" => padded(iso_week(moment.date_of_interval(&upper)?).1.into(), 2),
        "Q" => {
            if moment.month == 0 {
                return Ok(());
            }
            ((moment.month - 1) / 3 + 1).to_string()
        }
        "CC" => {
            let century = match moment.date {
                None => moment.year / 100,
                Some(_) if moment.year > 0 => (moment.year - 1) / 100 + 1,
                Some(_) => moment.year / 100 - 1,
            };
            if (-99..=99).contains(&century) {
                padded(century, 2)
            } else {
                century.to_string()
            }
        }
        "Y,YYY" => format!("{},{:03}", moment.year / 1_000, moment.year % 1_000),
        "YYYY" => padded(moment.year, 4),
        "YYY" => part_of_year(moment.year, 1_000, 3),
        "YY" => part_of_year(moment.year, 100, 2),
        "Y" => (moment.year % 10).to_string(),
        "IYYY" => padded(iso_year()?, 4),
        "IYY" => part_of_year(iso_year()?, 1_000, 3),
        "IY" => part_of_year(iso_year()?, 100, 2),
        "I" => part_of_year(iso_year()?, 10, 1),
        "W" => (weeks_before(moment.day) + 1).to_string(),
        "J" => julian(date_of(days_of(moment.date_of_interval(&upper)?).into())?).to_string(),
        _ => return Err(ValueError::unsupported(format!("the pattern {name} is"))),
    };
    out.push_str(&text);
    if let Some(ordinal) = ordinal {
        out.push_str(ordinal_of(&text, ordinal));
    }
    Ok(())
}

/// Whole weeks before a day that is counted from 1; PostgreSQL's overflows.
fn weeks_before(day: i64) -> i32 {
    i32::try_from(day).expect("days are of int4").wrapping_sub(1) / 7
}

/// What English puts behind a number.
fn ordinal_of(number: &str, ordinal: Ordinal) -> &'static str {
    let digits = number.as_bytes();
    let is_teen = digits.len() > 1 && digits[digits.len() - 2] == b'1';
    let (upper, lower) = match digits.last() {
        Some(b'1') if !is_teen => ("ST", "st"),
        Some(b'2') if !is_teen => ("ND", "nd"),
        Some(b'3') if !is_teen => ("RD", "rd"),
        _ => ("TH", "th"),
    };
    match ordinal {
        Ordinal::Upper => upper,
        Ordinal::Lower => lower,
    }
}
