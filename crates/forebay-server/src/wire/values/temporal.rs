//! Dates and times: ISO 8601 text as PostgreSQL and SQLite write it, and PostgreSQL's binary counts since 2000-01-01.
//!
//! Promises: every date from 0001-01-01 to 9999-12-31, to the microsecond, comes back as it went in; anything else (infinity, BC,
//! later years, 24:00, second 60) is refused with its reason. Sub-microsecond digits round, as PostgreSQL's do.
//! Knows no time zones but UTC and fixed offsets.

use bytes::BufMut;
use forebay::write::Value;
use jiff::SignedDuration;
use jiff::civil::{Date, date};
use postgres_types::Type;

use super::{display_name, excerpt};
use crate::wire::error::{WireError, sqlstate};

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Day 0 of PostgreSQL's binary formats.
const EPOCH: Date = date(2000, 1, 1);

/// From 0001-01-01 to before 10000-01-01, in days since the epoch.
const DAYS: std::ops::Range<i64> = -730_119..2_921_940;

const OUT_OF_YEARS: &str = "years from 0001 to 9999 are supported";
const INFINITE: &str = "infinity is not supported";
const BEFORE_CHRIST: &str = "years before Christ are not supported";

/// Why a text is no date or time.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotATime {
    Syntax,
    Range(&'static str),
}

impl NotATime {
    pub(super) fn for_parameter(&self, kind: &Type, text: &str) -> WireError {
        let (name, text) = (display_name(kind), excerpt(text));
        match self {
            Self::Syntax => {
                WireError::new(sqlstate::INVALID_DATETIME_FORMAT, format!("invalid input syntax for type {name}: \"{text}\""))
                    .with_hint("Use ISO 8601, for example 2024-01-31 10:00:00, with an offset such as +01:00 or none for UTC.")
            }
            Self::Range(why) => {
                let message = format!("date/time field value out of range for type {name}: \"{text}\"");
                WireError::new(sqlstate::DATETIME_FIELD_OVERFLOW, message).with_detail(*why)
            }
        }
    }

    pub(super) fn why(&self) -> &'static str {
        match self {
            Self::Syntax => "it is not written as ISO 8601",
            Self::Range(why) => why,
        }
    }
}

/// A date and time as written, in microseconds since the epoch, and its offset in microseconds if one was written.
#[derive(Debug)]
pub(super) struct Moment {
    local: i64,
    offset: Option<i64>,
}

impl Moment {
    /// As the clock showed it, whatever the offset.
    pub(super) fn local(&self) -> Result<i64, NotATime> {
        check_timestamp(self.local)
    }

    /// In UTC; without an offset it was UTC.
    pub(super) fn utc(&self) -> Result<i64, NotATime> {
        check_timestamp(self.local - self.offset.unwrap_or(0))
    }
}

/// A time of day in microseconds, and its offset if one was written.
#[derive(Debug)]
pub(super) struct TimeOfDay {
    pub(super) micros: i64,
    pub(super) offset: Option<i64>,
}

/// `YYYY-MM-DD`, perhaps with a time of midnight: days since the epoch.
pub(super) fn parse_date(text: &str) -> Result<i32, NotATime> {
    let moment = parse_timestamp(text)?;
    if moment.local % DAY != 0 || moment.offset.is_some_and(|offset| offset != 0) {
        return Err(NotATime::Range("a date has no time of day"));
    }
    check_timestamp(moment.local)?;
    i32::try_from(moment.local / DAY).map_err(|_| NotATime::Range(OUT_OF_YEARS))
}

/// `HH:MM[:SS[.f…]]`, perhaps with an offset.
pub(super) fn parse_time(text: &str) -> Result<TimeOfDay, NotATime> {
    let mut rest = Rest(text.trim_ascii().as_bytes());
    let micros = rest.time()?;
    let offset = rest.offset()?;
    rest.end()?;
    Ok(TimeOfDay {
        micros: check_time(micros)?,
        offset,
    })
}

/// `YYYY-MM-DD[( |T)HH:MM[:SS[.f…]][Z|±HH[[:]MM[:SS]]]]`.
pub(super) fn parse_timestamp(text: &str) -> Result<Moment, NotATime> {
    let text = text.trim_ascii();
    if text
        .trim_start_matches(['-', '+'])
        .eq_ignore_ascii_case("infinity")
    {
        return Err(NotATime::Range(INFINITE));
    }
    if text.len() > 2 && text.as_bytes()[text.len() - 2..].eq_ignore_ascii_case(b"BC") {
        return Err(NotATime::Range(BEFORE_CHRIST));
    }
    let mut rest = Rest(text.as_bytes());
    let days = rest.date()?;
    let (mut time, mut offset) = (0, None);
    if rest.take(b' ') || rest.take(b'T') || rest.take(b't') {
        time = rest.time()?;
        offset = rest.offset()?;
    }
    rest.end()?;
    Ok(Moment {
        local: i64::from(days) * DAY + time,
        offset,
    })
}

/// Days within the supported years.
pub(super) fn check_days(days: i32) -> Result<i32, NotATime> {
    if days == i32::MAX || days == i32::MIN {
        return Err(NotATime::Range(INFINITE));
    }
    if DAYS.contains(&i64::from(days)) {
        Ok(days)
    } else {
        Err(NotATime::Range(OUT_OF_YEARS))
    }
}

/// A time of day within a day.
pub(super) fn check_time(micros: i64) -> Result<i64, NotATime> {
    if micros == DAY {
        return Err(NotATime::Range("24:00:00 is not supported; use 00:00:00"));
    }
    if (0..DAY).contains(&micros) {
        Ok(micros)
    } else {
        Err(NotATime::Range(
            "a time of day is from 00:00:00 to 23:59:59.999999",
        ))
    }
}

/// A timestamp within the supported years.
pub(super) fn check_timestamp(micros: i64) -> Result<i64, NotATime> {
    if micros == i64::MAX || micros == i64::MIN {
        return Err(NotATime::Range(INFINITE));
    }
    if DAYS.contains(&micros.div_euclid(DAY)) {
        Ok(micros)
    } else {
        Err(NotATime::Range(OUT_OF_YEARS))
    }
}

/// Appends `YYYY-MM-DD`. The days were checked.
pub(super) fn put_date(out: &mut impl BufMut, days: i32) {
    let date = EPOCH
        .checked_add(SignedDuration::from_hours(i64::from(days) * 24))
        .expect("days were checked to be in the supported years");
    let mut text = *b"0000-00-00";
    put_digits(&mut text[..4], i64::from(date.year()));
    put_digits(&mut text[5..7], i64::from(date.month()));
    put_digits(&mut text[8..], i64::from(date.day()));
    out.put_slice(&text);
}

/// Appends `HH:MM:SS[.f…]` without trailing zeros. The time was checked.
pub(super) fn put_time(out: &mut impl BufMut, micros: i64) {
    let mut text = *b"00:00:00.000000";
    put_digits(&mut text[..2], micros / HOUR);
    put_digits(&mut text[3..5], micros / MINUTE % 60);
    put_digits(&mut text[6..8], micros / SECOND % 60);
    put_digits(&mut text[9..], micros % SECOND);
    let mut end = text.len();
    if micros % SECOND == 0 {
        end = 8;
    }
    while end > 8 && text[end - 1] == b'0' {
        end -= 1;
    }
    out.put_slice(&text[..end]);
}

/// Appends `YYYY-MM-DD HH:MM:SS[.f…]`. The timestamp was checked.
pub(super) fn put_timestamp(out: &mut impl BufMut, micros: i64) {
    put_date(
        out,
        i32::try_from(micros.div_euclid(DAY))
            .expect("micros were checked to be in the supported years"),
    );
    out.put_u8(b' ');
    put_time(out, micros.rem_euclid(DAY));
}

/// What is stored for a date.
pub(super) fn date_text(days: i32) -> Value {
    stored(|out| put_date(out, days))
}

/// What is stored for a time.
pub(super) fn time_text(micros: i64) -> Value {
    stored(|out| put_time(out, micros))
}

/// What is stored for a timestamp.
pub(super) fn timestamp_text(micros: i64) -> Value {
    stored(|out| put_timestamp(out, micros))
}

fn stored(put: impl FnOnce(&mut Vec<u8>)) -> Value {
    let mut text = Vec::with_capacity(26);
    put(&mut text);
    Value::Text(String::from_utf8(text).expect("dates and times are written in ASCII"))
}

fn put_digits(place: &mut [u8], mut number: i64) {
    for byte in place.iter_mut().rev() {
        *byte = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// What is left to read of a text.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take(&mut self, byte: u8) -> bool {
        match self.0.split_first() {
            Some((first, rest)) if *first == byte => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), NotATime> {
        if self.take(byte) {
            Ok(())
        } else {
            Err(NotATime::Syntax)
        }
    }

    fn end(&self) -> Result<(), NotATime> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(NotATime::Syntax)
        }
    }

    /// Between `least` and `most` digits.
    fn number(&mut self, least: usize, most: usize) -> Result<i64, NotATime> {
        let digits = self
            .0
            .iter()
            .take(most)
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if digits < least {
            return Err(NotATime::Syntax);
        }
        let (number, rest) = self.0.split_at(digits);
        self.0 = rest;
        Ok(number
            .iter()
            .fold(0, |sum, byte| sum * 10 + i64::from(byte - b'0')))
    }

    /// Days since the epoch.
    fn date(&mut self) -> Result<i32, NotATime> {
        let year = self.number(4, 6)?;
        self.expect(b'-')?;
        let month = self.number(1, 2)?;
        self.expect(b'-')?;
        let day = self.number(1, 2)?;
        if !(1..=9999).contains(&year) {
            return Err(NotATime::Range(OUT_OF_YEARS));
        }
        let (Ok(year), Ok(month), Ok(day)) =
            (i16::try_from(year), i8::try_from(month), i8::try_from(day))
        else {
            return Err(NotATime::Range(OUT_OF_YEARS));
        };
        let date =
            Date::new(year, month, day).map_err(|_| NotATime::Range("there is no such day"))?;
        Ok(i32::try_from(date.duration_since(EPOCH).as_hours() / 24)
            .expect("ten thousand years of days fit"))
    }

    /// Microseconds of the day; may be a whole day, by rounding up.
    fn time(&mut self) -> Result<i64, NotATime> {
        let hours = self.number(1, 2)?;
        self.expect(b':')?;
        let minutes = self.number(2, 2)?;
        let seconds = if self.take(b':') {
            self.number(2, 2)?
        } else {
            0
        };
        if minutes > 59 || seconds > 59 || hours > 23 {
            return Err(NotATime::Range(
                "a time of day is from 00:00:00 to 23:59:59.999999",
            ));
        }
        let fraction = if self.take(b'.') { self.fraction()? } else { 0 };
        Ok(hours * HOUR + minutes * MINUTE + seconds * SECOND + fraction)
    }

    /// Microseconds, rounded to the nearest.
    fn fraction(&mut self) -> Result<i64, NotATime> {
        let digits = self
            .0
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if digits == 0 {
            return Err(NotATime::Syntax);
        }
        let (fraction, rest) = self.0.split_at(digits);
        self.0 = rest;
        let micros = (0..6).fold(0, |sum, place| {
            sum * 10 + i64::from(fraction.get(place).map_or(0, |byte| byte - b'0'))
        });
        Ok(micros + i64::from(fraction.get(6).is_some_and(|byte| *byte >= b'5')))
    }

    /// `Z`, `UTC` or `±HH[[:]MM[:SS]]`, in microseconds; none is none.
    fn offset(&mut self) -> Result<Option<i64>, NotATime> {
        if self.0.is_empty() {
            return Ok(None);
        }
        while self.take(b' ') {}
        if self.0.eq_ignore_ascii_case(b"Z") || self.0.eq_ignore_ascii_case(b"UTC") {
            self.0 = &[];
            return Ok(Some(0));
        }
        let negative = self.take(b'-');
        if !negative {
            self.expect(b'+')?;
        }
        let hours = self.number(1, 2)?;
        let minutes = if self.take(b':') || self.0.len() == 2 {
            self.number(2, 2)?
        } else {
            0
        };
        let seconds = if self.take(b':') {
            self.number(2, 2)?
        } else {
            0
        };
        if hours > 15 || minutes > 59 || seconds > 59 {
            return Err(NotATime::Range("an offset is from -15:59:59 to +15:59:59"));
        }
        let offset = hours * HOUR + minutes * MINUTE + seconds * SECOND;
        Ok(Some(if negative { -offset } else { offset }))
    }
}
