//! `to_date` and `to_timestamp` of a text by a pattern: the fields that have one meaning. Weeks, Julian days, eras, zones, `FX`, `TM` and
//! `TH` are refused.

use super::civil::{Fields, date, date_of, days_in_month, days_of};
use super::limits::{DAY_SECONDS, SECOND, beyond_stored_years, timestamp_in_range};
use super::pattern::{Piece, is_separator, is_space, pieces};
use super::to_char::{DAYS, MONTHS};
use super::values::{of_date, of_timestamp};
use super::zone::offset_of;
use crate::{Function, Result, ValueError};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("to_date", |arguments| {
        let fields = read(arguments.text(0)?, arguments.text(1)?)?;
        of_date(days_of(fields.date()?))
    }),
    Function::new("to_timestamp", |arguments| {
        let fields = read(arguments.text(0)?, arguments.text(1)?)?;
        let east = offset_of(&arguments.environment.zone, &fields)?;
        of_timestamp(timestamp_in_range(
            fields.local()?.checked_sub(i64::from(east) * SECOND),
        )?)
    })
    .in_session(),
];

/// What has been read.
#[derive(Default)]
struct Found {
    year: i32,
    month: i32,
    day: i32,
    day_of_year: i32,
    day_of_week: i32,
    hour: i32,
    minute: i32,
    second: i32,
    seconds_of_day: i32,
    milliseconds: i32,
    micros: i32,
    pm: i32,
    twelve_hours: bool,
    /// Of the shortest fraction; 0 if there was none.
    digits: usize,
}

struct Reader<'a> {
    rest: &'a str,
}

fn read(text: &str, pattern: &str) -> Result<Fields> {
    let pieces = pieces(pattern);
    let mut reader = Reader { rest: text };
    let mut found = Found::default();
    // Spaces passed over that the pattern has not asked for.
    let mut skipped = 0;
    for (at, piece) in pieces.iter().enumerate() {
        if reader.rest.is_empty() {
            break;
        }
        if at == 0 || matches!(piece, Piece::Field { .. }) {
            skipped += reader.skip_spaces();
        }
        match piece {
            Piece::Separator(_) => {
                skipped -= 1;
                if reader.rest.starts_with(|next| is_space(next) || is_separator(next)) {
                    reader.skip_character();
                    skipped += 1;
                }
            }
            // Not compared with the text.
            Piece::Text(_) => {
                if skipped > 0 {
                    skipped -= 1;
                } else {
                    reader.skip_character();
                }
            }
            Piece::Field {
                name,
                fill,
                translated,
                ordinal,
            } => {
                if *translated || ordinal.is_some() {
                    return Err(ValueError::unsupported(format!("the pattern \"{pattern}\" is")));
                }
                let open = *fill || ends_number(pieces.get(at + 1));
                reader.field(name, open, &mut found)?;
                skipped = reader.skip_spaces();
            }
        }
    }
    // A field that the text was too short for is still known to PostgreSQL.
    for piece in &pieces {
        if let Piece::Field { name, .. } = piece {
            known(name)?;
        }
    }
    found.fields(text)
}

/// The fields that are read.
fn known(name: &str) -> Result<()> {
    let upper = name.to_ascii_uppercase();
    let is_known = matches!(
        upper.as_str(),
        "YYYY"
            | "YYY"
            | "YY"
            | "Y"
            | "MM"
            | "MON"
            | "MONTH"
            | "DD"
            | "DDD"
            | "DAY"
            | "DY"
            | "HH24"
            | "HH12"
            | "HH"
            | "MI"
            | "SS"
            | "SSSS"
            | "SSSSS"
            | "MS"
            | "US"
            | "AM"
            | "PM"
            | "A.M."
            | "P.M."
    ) || upper.starts_with("FF");
    if is_known {
        Ok(())
    } else {
        Err(ValueError::unsupported(format!(
            "the pattern {name} in a text to read is"
        )))
    }
}

/// Whether what follows a number ends it, so that it may have any length.
fn ends_number(next: Option<&Piece>) -> bool {
    match next {
        None => true,
        Some(Piece::Field { name, .. }) => matches!(
            name.to_ascii_uppercase().as_str(),
            "A.D."
                | "A.M."
                | "AD"
                | "AM"
                | "B.C."
                | "BC"
                | "DAY"
                | "DY"
                | "MONTH"
                | "MON"
                | "OF"
                | "P.M."
                | "PM"
                | "RM"
                | "FX"
                | "TZ"
                | "TZH"
        ),
        Some(Piece::Separator(character) | Piece::Text(character)) => !character.is_ascii_digit(),
    }
}

impl Reader<'_> {
    fn skip_character(&mut self) {
        let mut characters = self.rest.chars();
        characters.next();
        self.rest = characters.as_str();
    }

    fn skip_spaces(&mut self) -> i32 {
        let mut count = 0;
        while self.rest.starts_with(is_space) {
            self.skip_character();
            count += 1;
        }
        count
    }

    fn field(&mut self, name: &str, open: bool, found: &mut Found) -> Result<()> {
        known(name)?;
        let upper = name.to_ascii_uppercase();
        match upper.as_str() {
            "YYYY" => self.integer(name, 4, open, &mut found.year).map(drop),
            "YYY" | "YY" | "Y" => {
                let length = self.integer(name, name.len(), open, &mut found.year)?;
                if length < 4 {
                    found.year = near_2020(found.year);
                }
                Ok(())
            }
            "MM" => self.integer(name, 2, open, &mut found.month).map(drop),
            "DD" => self.integer(name, 2, open, &mut found.day).map(drop),
            "DDD" => self.integer(name, 3, open, &mut found.day_of_year).map(drop),
            "HH24" => self.integer(name, 2, open, &mut found.hour).map(drop),
            "HH" | "HH12" => {
                found.twelve_hours = true;
                self.integer(name, 2, open, &mut found.hour).map(drop)
            }
            "MI" => self.integer(name, 2, open, &mut found.minute).map(drop),
            "SS" => self.integer(name, 2, open, &mut found.second).map(drop),
            "SSSS" | "SSSSS" => self
                .integer(name, name.len(), open, &mut found.seconds_of_day)
                .map(drop),
            "MS" => {
                let length = self.integer(name, 3, open, &mut found.milliseconds)?;
                found.milliseconds = scaled(found.milliseconds, 3, length)?;
                Ok(())
            }
            "AM" | "PM" => self.half(name, ["am", "pm"], found),
            "A.M." | "P.M." => self.half(name, ["a.m.", "p.m."], found),
            "MONTH" => {
                let month = self.word(name, &MONTHS)?;
                set(&mut found.month, month + 1, name)
            }
            "MON" => {
                let month = self.word(name, &MONTHS.map(|month| &month[..3]))?;
                set(&mut found.month, month + 1, name)
            }
            // A day of the week says nothing of a date.
            "DAY" | "DY" => {
                let day = if upper == "DAY" {
                    self.word(name, &DAYS)?
                } else {
                    self.word(name, &DAYS.map(|day| &day[..3]))?
                };
                // Compared with the number of an earlier one, which counts from 1 then.
                set(&mut found.day_of_week, day, name)?;
                found.day_of_week += 1;
                Ok(())
            }
            _ => {
                let digits = match upper.as_bytes() {
                    [b'F', b'F', digit] => usize::from(digit - b'0'),
                    _ => 6,
                };
                let length = self.integer(name, digits, open, &mut found.micros)?;
                if length > digits {
                    return Err(ValueError::unsupported("a fraction longer than its pattern is"));
                }
                found.micros = scaled(found.micros, 6, length)?;
                found.digits = if found.digits == 0 {
                    digits
                } else {
                    found.digits.min(digits)
                };
                Ok(())
            }
        }
    }

    fn half(&mut self, name: &str, words: [&str; 2], found: &mut Found) -> Result<()> {
        found.twelve_hours = true;
        let half = self.word(name, &words)?;
        set(&mut found.pm, half, name)
    }

    /// Reads one of some words, whatever their case.
    fn word(&mut self, name: &str, words: &[&str]) -> Result<i32> {
        for (at, word) in (0..).zip(words) {
            if self
                .rest
                .get(..word.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(word))
            {
                self.rest = &self.rest[word.len()..];
                return Ok(at);
            }
        }
        let shown = self.rest.split(is_space).next().unwrap_or("");
        Err(
            ValueError::new("22007", format!("invalid value \"{shown}\" for \"{name}\""))
                .with_detail("The given value did not match any of the allowed values for this field."),
        )
    }

    /// Reads a number of that length, or of any if `open`; gives the length.
    fn integer(&mut self, name: &str, length: usize, open: bool, field: &mut i32) -> Result<usize> {
        self.skip_spaces();
        let shown: String = self.rest.chars().take(length).collect();
        let source = if open { self.rest } else { shown.as_str() };
        if !open && source.len() < length {
            return Err(ValueError::new(
                "22007",
                format!("source string too short for \"{name}\" formatting field"),
            )
            .with_detail(format!(
                "Field requires {length} characters, but only {} remain.",
                source.len()
            ))
            .with_hint("If your source string is not fixed-width, try using the \"FM\" modifier."));
        }
        let sign = usize::from(source.starts_with(['+', '-']));
        let digits = source[sign..]
            .find(|next: char| !next.is_ascii_digit())
            .unwrap_or(source.len() - sign);
        let used = if digits == 0 { 0 } else { sign + digits };
        let invalid = |detail: String| {
            ValueError::new("22007", format!("invalid value \"{shown}\" for \"{name}\"")).with_detail(detail)
        };
        if used == 0 {
            return Err(invalid("Value must be an integer.".to_owned()));
        }
        if !open && used < length {
            return Err(invalid(format!(
                "Field requires {length} characters, but only {used} could be parsed."
            ))
            .with_hint("If your source string is not fixed-width, try using the \"FM\" modifier."));
        }
        let value = source[..used].parse::<i32>().map_err(|_| {
            ValueError::new(
                "22008",
                format!("value for \"{name}\" in source string is out of range"),
            )
            .with_detail(format!("Value must be in the range {} to {}.", i32::MIN, i32::MAX))
        })?;
        set(field, value, name)?;
        self.rest = &self.rest[used..];
        Ok(used)
    }
}

/// Sets a field that may have been set to the same value.
fn set(field: &mut i32, value: i32, name: &str) -> Result<()> {
    if *field != 0 && *field != value {
        return Err(ValueError::new(
            "22007",
            format!("conflicting values for \"{name}\" field in formatting string"),
        )
        .with_detail("This value contradicts a previous setting for the same field type."));
    }
    *field = value;
    Ok(())
}

/// A fraction of so many digits that was written with fewer.
fn scaled(value: i32, digits: usize, length: usize) -> Result<i32> {
    let missing = u32::try_from(digits.saturating_sub(length)).expect("at most six");
    value
        .checked_mul(10_i32.pow(missing))
        .ok_or_else(|| ValueError::unsupported("a fraction this long is"))
}

/// The year nearest to 2020 that ends so.
fn near_2020(year: i32) -> i32 {
    match year {
        ..70 => year + 2_000,
        70..100 => year + 1_900,
        100..520 => year + 2_000,
        520..1_000 => year + 1_000,
        _ => year,
    }
}

impl Found {
    fn fields(&self, text: &str) -> Result<Fields> {
        let out_of_range = || ValueError::new("22008", format!("date/time field value out of range: \"{text}\""));
        let (mut hour, mut minute, mut second) = (self.hour, self.minute, self.second);
        if self.seconds_of_day != 0 {
            hour = self.seconds_of_day / 3_600;
            minute = self.seconds_of_day % 3_600 / 60;
            second = self.seconds_of_day % 60;
            if self.minute != 0 || self.second != 0 || self.hour != 0 {
                return Err(ValueError::unsupported(
                    "seconds of the day beside a clock's fields are",
                ));
            }
        }
        if self.twelve_hours {
            if !(1..=12).contains(&hour) {
                return Err(
                    ValueError::new("22007", format!("hour \"{hour}\" is invalid for the 12-hour clock"))
                        .with_hint("Use the 24-hour clock, or give an hour between 1 and 12."),
                );
            }
            hour = hour % 12 + 12 * self.pm;
        }
        let (mut month, mut day) = (
            self.month.max(i32::from(self.month == 0)),
            self.day.max(i32::from(self.day == 0)),
        );
        if self.day_of_year != 0 && (month <= 1 || day <= 1) {
            if self.year == 0 {
                return Err(ValueError::new(
                    "22007",
                    "cannot calculate day of year without year information",
                ));
            }
            if !(1..=366).contains(&self.day_of_year) || self.month != 0 || self.day != 0 {
                return Err(ValueError::unsupported("this day of the year is"));
            }
            let first = date(self.year.into(), 1, 1)?;
            let found = date_of(i64::from(days_of(first)) + i64::from(self.day_of_year) - 1)?;
            if i32::from(found.year()) != self.year {
                return Err(ValueError::unsupported("a day of the year that it does not have is"));
            }
            (month, day) = (found.month().into(), found.day().into());
        }
        // Years repeat after 400; one that was not given is not looked at.
        let like = i64::from(self.year.rem_euclid(400)) + 2_000;
        if !(1..=12).contains(&month)
            || !(1..=31).contains(&day)
            || (self.year != 0 && day > days_in_month(like, month)?)
        {
            return Err(out_of_range());
        }
        let micros = i64::from(self.milliseconds) * 1_000 + i64::from(self.micros);
        if self.digits != 0 && micros % 10_i64.pow(u32::try_from(6 - self.digits).expect("at most six")) != 0 {
            // PostgreSQL rounds to the digits of one of them.
            return Err(ValueError::unsupported("several fractions of a second are"));
        }
        let time_fits = (0..24).contains(&hour)
            && (0..60).contains(&minute)
            && (0..60).contains(&second)
            && (0..SECOND).contains(&micros);
        if !time_fits {
            return Err(out_of_range());
        }
        if !(1..=9_999).contains(&self.year) {
            return Err(beyond_stored_years());
        }
        debug_assert!(i64::from(hour) * 3_600 < DAY_SECONDS, "within a day");
        Ok(Fields {
            year: self.year,
            month,
            day,
            hour,
            minute,
            second,
            micros: i32::try_from(micros).expect("less than a second"),
        })
    }
}
