//! The second step of reading a date or time: what each token means, given those before it. The rules are those of PostgreSQL's
//! documentation ("Date/Time Input Interpretation") with DateStyle ISO, MDY.
//!
//! Julian days and numbers with a unit of a date (`y2020m1`) are refused.

use jiff::tz::TimeZone;

use super::abbreviations::{Abbreviation, abbreviation};
use super::civil::{self, Fields};
use super::keywords::{Keyword, keyword};
use super::limits::{DAY, HOUR, MINUTE, SECOND, beyond_stored_years};
use super::tokens::{Fault, Shape, Token, fraction_micros, leading_int};
use super::zone;
use crate::ValueError;

/// What a text says.
#[derive(Debug, Clone)]
pub(crate) enum Decoded {
    /// A date, with a time (midnight if there was none) and perhaps a zone.
    Moment {
        local: Fields,
        zone: Option<Zone>,
    },
    /// A time alone.
    Time {
        micros: i64,
        date: Option<Fields>,
        zone: Option<Zone>,
    },
    Now,
    /// Midnight so many days from today; with a time of day and perhaps a zone.
    Day {
        days: i64,
        micros: i64,
        zone: Option<Zone>,
    },
    Epoch,
    Infinity,
    MinusInfinity,
}

/// A zone given in a text.
#[derive(Debug, Clone)]
pub(crate) enum Zone {
    /// Seconds east of UTC.
    Offset(i32),
    Named(TimeZone),
}

const YEAR: u32 = 1;
const MONTH: u32 = 1 << 1;
const DAY_OF_MONTH: u32 = 1 << 2;
const DATE: u32 = YEAR | MONTH | DAY_OF_MONTH;
const TIME: u32 = 1 << 3;
const ZONE: u32 = 1 << 4;
const DAY_OF_YEAR: u32 = 1 << 5;
const HALF_OF_DAY: u32 = 1 << 6;
const ERA: u32 = 1 << 7;
const DAY_OF_WEEK: u32 = 1 << 8;
const RESERVED: u32 = 1 << 9;

#[derive(Default)]
struct Decoder {
    seen: u32,
    year: i32,
    month: i32,
    day: i32,
    day_of_year: i32,
    hour: i32,
    minute: i32,
    second: i32,
    micros: i64,
    month_is_word: bool,
    year_is_short: bool,
    time_follows: bool,
    pm: Option<bool>,
    before_christ: bool,
    zone: Option<Zone>,
    special: Option<Decoded>,
}

/// What the tokens of a date or timestamp say; of a time, if `time_alone`.
pub(crate) fn decode(tokens: &[Token], time_alone: bool) -> Result<Decoded, Fault> {
    let mut decoder = Decoder::default();
    for (at, token) in tokens.iter().enumerate() {
        let found = if time_alone {
            decoder.token_of_time(tokens, at)?
        } else {
            decoder.token(token)?
        };
        if found & decoder.seen != 0 {
            return Err(Fault::Syntax);
        }
        decoder.seen |= found;
    }
    decoder.finish(time_alone)
}

impl Decoder {
    fn has(&self, all: u32) -> bool {
        self.seen & all == all
    }

    fn token(&mut self, token: &Token) -> Result<u32, Fault> {
        let text = token.text.as_str();
        match token.shape {
            Shape::Date if self.time_follows || self.has(MONTH | DAY_OF_MONTH) => {
                if text.starts_with(|first: char| first.is_ascii_digit()) || self.time_follows {
                    self.time_follows = false;
                    if self.has(TIME) {
                        return Err(Fault::Syntax);
                    }
                    self.time_with_offset(text, self.seen)
                } else {
                    self.named_zone(text)
                }
            }
            Shape::Date => self.date(text),
            Shape::Clock => {
                self.time_follows = false;
                self.clock(text)?;
                self.check_time()?;
                Ok(TIME)
            }
            Shape::Offset => {
                self.zone = Some(Zone::Offset(offset(text)?));
                Ok(ZONE)
            }
            Shape::Number if self.time_follows => {
                self.time_follows = false;
                let (_, rest) = leading_int(text)?;
                if !rest.is_empty() && !rest.starts_with('.') {
                    return Err(Fault::Syntax);
                }
                match self.run_together(text, self.seen | DATE)? {
                    TIME => Ok(TIME),
                    _ => Err(Fault::Syntax),
                }
            }
            Shape::Number => match text.find('.') {
                Some(_) if self.seen & DATE == 0 => self.date(text),
                Some(at) if at > 2 => self.run_together(text, self.seen),
                _ if text.len() >= 6 && (self.seen & DATE == 0 || !self.has(TIME)) => {
                    self.run_together(text, self.seen)
                }
                _ => self.number(text, self.month_is_word, self.seen),
            },
            Shape::Word | Shape::Special => self.word(text),
        }
    }

    fn token_of_time(&mut self, tokens: &[Token], at: usize) -> Result<u32, Fault> {
        let text = tokens[at].text.as_str();
        let date_may_lead = at == 0
            && tokens.len() >= 2
            && (tokens[tokens.len() - 1].shape == Shape::Date || tokens[1].shape == Shape::Clock);
        match tokens[at].shape {
            Shape::Date if date_may_lead && !self.time_follows => self.date(text),
            Shape::Date => {
                if text.starts_with(|first: char| first.is_ascii_digit()) {
                    self.time_follows = false;
                    if self.has(TIME) {
                        return Err(Fault::Syntax);
                    }
                    self.time_with_offset(text, self.seen | DATE)
                } else {
                    self.named_zone(text)
                }
            }
            Shape::Clock => {
                self.time_follows = false;
                self.clock(text)?;
                Ok(TIME)
            }
            Shape::Number if self.time_follows => self.token(&tokens[at]),
            Shape::Number => match text.find('.') {
                Some(_) if at == 0 && tokens.len() >= 2 && tokens[tokens.len() - 1].shape == Shape::Date => {
                    self.date(text)
                }
                Some(point) if point > 2 => self.run_together(text, self.seen | DATE),
                Some(_) => Err(Fault::Syntax),
                None if text.len() > 4 => self.run_together(text, self.seen | DATE),
                None => self.number(text, false, self.seen | DATE),
            },
            Shape::Word if keyword(text) == Some(Keyword::IsoTime) => {
                // A filler before the time itself.
                match tokens.get(at + 1).map(|next| next.shape) {
                    Some(Shape::Number | Shape::Clock | Shape::Date) => {
                        self.time_follows = true;
                        Ok(0)
                    }
                    _ => Err(Fault::Syntax),
                }
            }
            Shape::Word if keyword(text) == Some(Keyword::Now) => {
                self.special = Some(Decoded::Now);
                Ok(TIME)
            }
            Shape::Word if matches!(keyword(text), Some(Keyword::Month(_))) => Err(Fault::Syntax),
            Shape::Word | Shape::Special
                if matches!(
                    keyword(text),
                    Some(
                        Keyword::Today
                            | Keyword::Tomorrow
                            | Keyword::Yesterday
                            | Keyword::Epoch
                            | Keyword::Infinity
                            | Keyword::MinusInfinity
                            | Keyword::DayOfWeek(_)
                    )
                ) =>
            {
                Err(Fault::Syntax)
            }
            Shape::Offset | Shape::Word | Shape::Special => self.token(&tokens[at]),
        }
    }

    fn word(&mut self, text: &str) -> Result<u32, Fault> {
        if self.time_follows {
            return Err(Fault::Syntax);
        }
        match abbreviation(text) {
            Some(Abbreviation::Fixed(seconds)) => {
                self.zone = Some(Zone::Offset(seconds));
                return Ok(ZONE);
            }
            Some(Abbreviation::Moving) => return Err(Fault::Value(zone::moving(text))),
            None => {}
        }
        let Some(keyword) = keyword(text) else {
            return match zone::named(text).map_err(Fault::Value)? {
                Some(named) => {
                    self.zone = Some(Zone::Named(named));
                    Ok(ZONE)
                }
                None => Err(Fault::Syntax),
            };
        };
        let mut day = |days| {
            if self.special.is_some() {
                return Err(Fault::Value(ValueError::unsupported(
                    "several special dates in one are",
                )));
            }
            self.special = Some(Decoded::Day {
                days,
                micros: 0,
                zone: None,
            });
            Ok(DATE)
        };
        match keyword {
            Keyword::Ignored => Ok(0),
            Keyword::Today => day(0),
            Keyword::Tomorrow => day(1),
            Keyword::Yesterday => day(-1),
            Keyword::Now => {
                self.special = Some(Decoded::Now);
                Ok(DATE | TIME | ZONE)
            }
            // With these nothing else in the text counts.
            Keyword::Epoch => self.reserved(Decoded::Epoch),
            Keyword::Infinity => self.reserved(Decoded::Infinity),
            Keyword::MinusInfinity => self.reserved(Decoded::MinusInfinity),
            Keyword::AllBalls => {
                // Takes the meaning from an epoch or infinity before it.
                if self.seen & RESERVED != 0 {
                    self.special = None;
                }
                (self.hour, self.minute, self.second, self.micros) = (0, 0, 0, 0);
                self.zone = Some(Zone::Offset(0));
                Ok(TIME | ZONE)
            }
            Keyword::Month(month) => {
                let mut found = MONTH;
                // The number before it was the day then.
                if self.has(MONTH)
                    && !self.month_is_word
                    && self.seen & DAY_OF_MONTH == 0
                    && (1..=31).contains(&self.month)
                {
                    self.day = self.month;
                    found = DAY_OF_MONTH;
                }
                self.month_is_word = true;
                self.month = month;
                Ok(found)
            }
            Keyword::DayOfWeek(_) => Ok(DAY_OF_WEEK),
            Keyword::Am => {
                self.pm = Some(false);
                Ok(HALF_OF_DAY)
            }
            Keyword::Pm => {
                self.pm = Some(true);
                Ok(HALF_OF_DAY)
            }
            Keyword::AnnoDomini => Ok(ERA),
            Keyword::BeforeChrist => {
                self.before_christ = true;
                Ok(ERA)
            }
            Keyword::IsoTime => {
                if !self.has(DATE) {
                    return Err(Fault::Syntax);
                }
                self.time_follows = true;
                Ok(0)
            }
            Keyword::DaylightSaving | Keyword::Unit(_) => Err(Fault::Value(ValueError::unsupported(format!(
                "\"{text}\" in dates and times is"
            )))),
        }
    }

    fn reserved(&mut self, what: Decoded) -> Result<u32, Fault> {
        if self.special.is_some() && self.seen & RESERVED == 0 {
            return Err(Fault::Value(ValueError::unsupported(
                "several special dates in one are",
            )));
        }
        self.special = Some(what);
        Ok(RESERVED)
    }

    fn named_zone(&mut self, text: &str) -> Result<u32, Fault> {
        let named = zone::named(text)
            .map_err(Fault::Value)?
            .ok_or_else(|| Fault::Value(zone::not_recognized(text)))?;
        self.zone = Some(Zone::Named(named));
        Ok(ZONE)
    }

    /// `040506-08`.
    fn time_with_offset(&mut self, text: &str, seen: u32) -> Result<u32, Fault> {
        let at = text.find('-').ok_or(Fault::Syntax)?;
        self.zone = Some(Zone::Offset(offset(&text[at..])?));
        Ok(self.run_together(&text[..at], seen)? | ZONE)
    }

    /// A date with separators.
    fn date(&mut self, text: &str) -> Result<u32, Fault> {
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            rest = rest.trim_start_matches(|next: char| !next.is_ascii_alphanumeric());
            let first = rest.chars().next().ok_or(Fault::Syntax)?;
            let end = rest
                .find(|next: char| {
                    if first.is_ascii_digit() {
                        !next.is_ascii_digit()
                    } else {
                        !next.is_ascii_alphabetic()
                    }
                })
                .unwrap_or(rest.len());
            let (part, after) = rest.split_at(end);
            parts.push(part);
            // One separator goes with its part: one at the end is no fault.
            rest = after.get(1..).unwrap_or("");
        }
        let mut found = 0;
        let mut month_is_word = false;
        for part in &parts {
            if part.starts_with(|first: char| first.is_ascii_alphabetic()) {
                match keyword(part) {
                    Some(Keyword::Ignored) => continue,
                    Some(Keyword::Month(month)) => self.month = month,
                    _ => return Err(Fault::Syntax),
                }
                if (self.seen | found) & MONTH != 0 {
                    return Err(Fault::Syntax);
                }
                month_is_word = true;
                found |= MONTH;
            }
        }
        for part in &parts {
            if part.starts_with(|first: char| first.is_ascii_digit()) {
                let one = self.number(part, month_is_word, self.seen | found)?;
                if one & (self.seen | found) != 0 {
                    return Err(Fault::Syntax);
                }
                found |= one;
            }
        }
        if (self.seen | found) & !(DAY_OF_YEAR | ZONE) != DATE {
            return Err(Fault::Syntax);
        }
        Ok(found)
    }

    /// A number of a date, placed by what is known already.
    fn number(&mut self, text: &str, month_is_word: bool, seen: u32) -> Result<u32, Fault> {
        let (value, rest) = leading_int(text)?;
        if rest.len() == text.len() {
            return Err(Fault::Syntax);
        }
        if rest.starts_with('.') {
            if text.len() - rest.len() > 2 {
                return self.run_together(text, seen | DATE);
            }
            self.micros = fraction_micros(rest)?;
        } else if !rest.is_empty() {
            return Err(Fault::Syntax);
        }
        let long = text.len() >= 3;
        if text.len() == 3 && seen & DATE == YEAR && (1..=366).contains(&value) {
            self.day_of_year = value;
            return Ok(DAY_OF_YEAR | MONTH | DAY_OF_MONTH);
        }
        let found = match seen & DATE {
            0 if long => YEAR,
            0 | YEAR | DAY_OF_MONTH => MONTH,
            MONTH if month_is_word && long => YEAR,
            MONTH => DAY_OF_MONTH,
            known if known == YEAR | MONTH => {
                if month_is_word && long && self.year_is_short {
                    // What was taken for a year was the day.
                    self.day = self.year;
                    self.year = value;
                    self.year_is_short = false;
                    return Ok(DAY_OF_MONTH);
                }
                DAY_OF_MONTH
            }
            known if known == MONTH | DAY_OF_MONTH => YEAR,
            DATE => return self.run_together(text, seen),
            _ => return Err(Fault::Syntax),
        };
        match found {
            YEAR => {
                self.year = value;
                self.year_is_short = text.len() <= 2;
            }
            MONTH => self.month = value,
            _ => self.day = value,
        }
        Ok(found)
    }

    /// `20200131`, `200131`, `040506.789`, `0405`.
    #[allow(clippy::cast_possible_truncation, reason = "a fraction of a million")]
    fn run_together(&mut self, text: &str, seen: u32) -> Result<u32, Fault> {
        let mut digits = text;
        if let Some(at) = text.find('.') {
            let fraction: f64 = format!("0{}", &text[at..]).parse().map_err(|_| Fault::Syntax)?;
            self.micros = (fraction * 1_000_000.0).round_ties_even() as i64;
            digits = &text[..at];
        } else if seen & DATE != DATE && digits.len() >= 6 {
            let (rest, day) = digits.split_at(digits.len() - 2);
            let (year, month) = rest.split_at(rest.len() - 2);
            // A number too large for PostgreSQL's years is cut by it; none of them is kept here.
            self.year = year.parse().map_err(|_| Fault::Value(beyond_stored_years()))?;
            (self.month, self.day) = (two_digits(month)?, two_digits(day)?);
            if year.len() == 2 {
                self.year_is_short = true;
            }
            return Ok(DATE);
        }
        if seen & TIME == 0 && (digits.len() == 6 || digits.len() == 4) {
            self.hour = two_digits(&digits[..2])?;
            self.minute = two_digits(&digits[2..4])?;
            self.second = if digits.len() == 6 {
                two_digits(&digits[4..])?
            } else {
                0
            };
            return Ok(TIME);
        }
        Err(Fault::Syntax)
    }

    /// `04:05`, `04:05:06.789`.
    fn clock(&mut self, text: &str) -> Result<(), Fault> {
        let (hour, rest) = leading_int(text)?;
        let (minute, rest) = leading_int(rest.strip_prefix(':').ok_or(Fault::Syntax)?)?;
        (self.hour, self.minute, self.second, self.micros) = (hour, minute, 0, 0);
        if rest.starts_with('.') {
            // Two fields with a fraction are minutes and seconds.
            (self.hour, self.minute, self.second) = (0, hour, minute);
            self.micros = fraction_micros(rest)?;
        } else if !rest.is_empty() {
            let (second, rest) = leading_int(rest.strip_prefix(':').ok_or(Fault::Syntax)?)?;
            self.second = second;
            if !rest.is_empty() {
                self.micros = fraction_micros(rest)?;
            }
        }
        if self.hour < 0 || !(0..60).contains(&self.minute) || !(0..=60).contains(&self.second) {
            return Err(Fault::Field);
        }
        Ok(())
    }

    fn time(&self) -> i64 {
        i64::from(self.hour) * HOUR + i64::from(self.minute) * MINUTE + i64::from(self.second) * SECOND + self.micros
    }

    fn check_time(&self) -> Result<(), Fault> {
        let fits = (0..=24).contains(&self.hour)
            && (0..60).contains(&self.minute)
            && (0..=60).contains(&self.second)
            && self.time() <= DAY;
        if fits { Ok(()) } else { Err(Fault::Field) }
    }

    fn finish(mut self, time_alone: bool) -> Result<Decoded, Fault> {
        if self.time_follows {
            return Err(Fault::Syntax);
        }
        self.check_date()?;
        if let Some(pm) = self.pm {
            if self.hour > 12 {
                return Err(Fault::Field);
            }
            if pm && self.hour != 12 {
                self.hour += 12;
            } else if !pm && self.hour == 12 {
                self.hour = 0;
            }
        }
        if time_alone {
            return self.finish_time();
        }
        match self.special.take() {
            Some(Decoded::Day { days, .. }) => {
                return Ok(Decoded::Day {
                    days,
                    micros: self.time(),
                    zone: self.zone,
                });
            }
            Some(special) => return Ok(special),
            None => {}
        }
        if !self.has(DATE) {
            return Err(Fault::Syntax);
        }
        Ok(Decoded::Moment {
            local: self.fields(),
            zone: self.zone,
        })
    }

    #[allow(clippy::cast_possible_truncation, reason = "at most a million")]
    fn fields(&self) -> Fields {
        Fields {
            year: self.year,
            month: self.month,
            day: self.day,
            hour: self.hour,
            minute: self.minute,
            second: self.second,
            micros: self.micros as i32,
        }
    }

    fn finish_time(mut self) -> Result<Decoded, Fault> {
        if let Some(special) = self.special.take() {
            return Ok(special);
        }
        self.check_time()?;
        if !self.has(TIME) {
            return Err(Fault::Syntax);
        }
        let date = self.has(DATE).then(|| self.fields());
        if let (Some(Zone::Named(zone)), None) = (&self.zone, &date) {
            // Which offset it has depends on the date.
            if !zone::is_constant(zone) {
                return Err(Fault::Syntax);
            }
        }
        Ok(Decoded::Time {
            micros: self.time(),
            date,
            zone: self.zone,
        })
    }

    fn check_date(&mut self) -> Result<(), Fault> {
        if matches!(self.special, Some(Decoded::Now | Decoded::Day { .. })) {
            return Ok(());
        }
        if self.seen & YEAR != 0 {
            if self.before_christ {
                if self.year <= 0 {
                    return Err(Fault::Field);
                }
                self.year = 1 - self.year;
            } else if self.year_is_short {
                self.year += if self.year < 70 { 2_000 } else { 1_900 };
            } else if self.year <= 0 {
                return Err(Fault::Field);
            }
        }
        if self.seen & DAY_OF_YEAR != 0 {
            let first = civil::date(self.year.into(), 1, 1).map_err(Fault::Value)?;
            let day = civil::date_of(i64::from(civil::days_of(first)) + i64::from(self.day_of_year) - 1);
            let day = day.map_err(Fault::Value)?;
            (self.year, self.month, self.day) = (day.year().into(), day.month().into(), day.day().into());
        }
        if self.seen & MONTH != 0 && !(1..=12).contains(&self.month) {
            return Err(Fault::MonthOrDay);
        }
        if self.seen & DAY_OF_MONTH != 0 && !(1..=31).contains(&self.day) {
            return Err(Fault::MonthOrDay);
        }
        if self.has(DATE) {
            // Leap years repeat, so that years no calendar here has can be checked.
            let year = if (1..=9_999).contains(&self.year) {
                self.year
            } else {
                self.year.rem_euclid(400) + 2_000
            };
            if self.day > civil::days_in_month(year.into(), self.month).map_err(Fault::Value)? {
                return Err(Fault::Field);
            }
        }
        Ok(())
    }
}

fn two_digits(text: &str) -> Result<i32, Fault> {
    text.parse().map_err(|_| Fault::Syntax)
}

/// Seconds east of UTC of `+2`, `-0530`, `+05:30:15`.
pub(crate) fn offset(text: &str) -> Result<i32, Fault> {
    let (mut hours, rest) = leading_int(&text[1..]).map_err(|_| Fault::Offset)?;
    let (mut minutes, mut seconds) = (0, 0);
    let mut end = rest;
    if let Some(after) = rest.strip_prefix(':') {
        (minutes, end) = leading_int(after).map_err(|_| Fault::Offset)?;
        if let Some(after) = end.strip_prefix(':') {
            (seconds, end) = leading_int(after).map_err(|_| Fault::Offset)?;
        }
    } else if rest.is_empty() && text.len() > 3 {
        (hours, minutes) = (hours / 100, hours % 100);
    }
    if !(0..=15).contains(&hours) || !(0..60).contains(&minutes) || !(0..60).contains(&seconds) {
        return Err(Fault::Offset);
    }
    if !end.is_empty() {
        return Err(Fault::Syntax);
    }
    let east = hours * 3_600 + minutes * 60 + seconds;
    Ok(if text.starts_with('-') { -east } else { east })
}
