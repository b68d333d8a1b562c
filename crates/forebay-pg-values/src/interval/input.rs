//! Reading intervals: `1 year 2 days 03:04:05`, `@ 1 hour ago`, `1-2 3 4:05:06` and ISO 8601's `P1Y2DT3H`, by the rules of PostgreSQL's
//! documentation ("Interval Input").

use super::Interval;
use super::typmod::{DAYS, FULL, HOURS, MINUTES, MONTH, SECONDS, YEAR, fields};
use crate::temporal::keywords::{Keyword, Unit, keyword, unit};
use crate::temporal::tokens::{Fault, Shape, fraction, fraction_micros, leading_int, leading_integer, tokens};
use crate::temporal::{DAY, HOUR, MINUTE, SECOND, interval_out_of_range};
use crate::{Result, ValueError};

impl Interval {
    /// Of anything that PostgreSQL reads as an interval; `typmod` is PostgreSQL's, -1 for none.
    pub fn parse(text: &str, typmod: i32) -> Result<Self> {
        let amounts = match verbose(text, fields(typmod)) {
            Err(Fault::Syntax) => iso_8601(text),
            other => other,
        };
        let amounts = amounts.map_err(|fault| match fault {
            Fault::Syntax => ValueError::invalid_text("22007", "interval", text),
            Fault::Field | Fault::MonthOrDay => {
                ValueError::new("22015", format!("interval field value out of range: \"{text}\""))
            }
            Fault::Offset => ValueError::new("22009", format!("time zone displacement out of range: \"{text}\"")),
            Fault::Value(error) => error,
        })?;
        amounts.interval()?.with_typmod(typmod)
    }
}

/// What has been read so far.
#[derive(Debug, Default)]
struct Amounts {
    years: i32,
    months: i32,
    days: i32,
    micros: i64,
}

impl Amounts {
    fn interval(&self) -> Result<Interval> {
        let months = i64::from(self.years) * 12 + i64::from(self.months);
        Ok(Interval {
            micros: self.micros,
            days: self.days,
            months: i32::try_from(months).map_err(|_| interval_out_of_range())?,
        })
    }

    fn add_years(&mut self, years: i64, scale: i64) -> Result<(), Fault> {
        add(&mut self.years, years, scale)
    }

    fn add_months(&mut self, months: i64) -> Result<(), Fault> {
        add(&mut self.months, months, 1)
    }

    fn add_days(&mut self, days: i64, scale: i64) -> Result<(), Fault> {
        add(&mut self.days, days, scale)
    }

    fn add_micros(&mut self, value: i64, scale: i64) -> Result<(), Fault> {
        self.micros = value
            .checked_mul(scale)
            .and_then(|micros| self.micros.checked_add(micros))
            .ok_or(Fault::Field)?;
        Ok(())
    }

    #[allow(clippy::cast_possible_truncation, reason = "less than a year")]
    fn add_fraction_of_years(&mut self, fraction: f64, years: f64) -> Result<(), Fault> {
        self.add_months((fraction * years * 12.0).round_ties_even() as i64)
    }

    #[allow(clippy::cast_possible_truncation, reason = "less than a month")]
    fn add_fraction_of_days(&mut self, fraction: f64, days: f64) -> Result<(), Fault> {
        let days = fraction * days;
        self.add_days(days as i64, 1)?;
        self.add_fraction_of_micros(days - days.trunc(), DAY)
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "less than a day"
    )]
    fn add_fraction_of_micros(&mut self, fraction: f64, scale: i64) -> Result<(), Fault> {
        let micros = fraction * scale as f64;
        let rest = micros - micros.trunc();
        let carry = if rest > 0.5 { 1 } else { -i64::from(rest < -0.5) };
        self.add_micros(micros as i64, 1)?;
        self.add_micros(carry, 1)
    }

    fn negate(&mut self) -> Result<(), Fault> {
        let minus = |value: i32| value.checked_neg().ok_or(Fault::Field);
        (self.years, self.months, self.days) = (minus(self.years)?, minus(self.months)?, minus(self.days)?);
        self.micros = self.micros.checked_neg().ok_or(Fault::Field)?;
        Ok(())
    }

    /// A number of units.
    fn add_unit(&mut self, unit: Unit, value: i64, fraction: f64) -> Result<(), Fault> {
        let micros = match unit {
            Unit::Microsecond => 1,
            Unit::Millisecond => 1_000,
            Unit::Second => SECOND,
            Unit::Minute => MINUTE,
            Unit::Hour => HOUR,
            Unit::Day => {
                self.add_days(value, 1)?;
                return self.add_fraction_of_micros(fraction, DAY);
            }
            Unit::Week => {
                self.add_days(value, 7)?;
                return self.add_fraction_of_days(fraction, 7.0);
            }
            Unit::Month => {
                self.add_months(value)?;
                return self.add_fraction_of_days(fraction, 30.0);
            }
            Unit::Year | Unit::Decade | Unit::Century | Unit::Millennium => {
                let years = match unit {
                    Unit::Year => 1_i32,
                    Unit::Decade => 10,
                    Unit::Century => 100,
                    _ => 1_000,
                };
                self.add_years(value, years.into())?;
                return self.add_fraction_of_years(fraction, years.into());
            }
            _ => return Err(Fault::Syntax),
        };
        self.add_micros(value, micros)?;
        self.add_fraction_of_micros(fraction, micros)
    }
}

fn add(to: &mut i32, value: i64, scale: i64) -> Result<(), Fault> {
    *to = value
        .checked_mul(scale)
        .and_then(|value| i32::try_from(value).ok())
        .and_then(|value| to.checked_add(value))
        .ok_or(Fault::Field)?;
    Ok(())
}

/// The unit of a number without one, by the fields of the type.
fn unit_of_fields(fields: i32) -> Unit {
    match fields {
        YEAR => Unit::Year,
        _ if fields == MONTH || fields == YEAR | MONTH => Unit::Month,
        DAYS => Unit::Day,
        _ if fields == FULL || fields & SECONDS != 0 => Unit::Second,
        _ if fields & MINUTES != 0 => Unit::Minute,
        _ if fields & HOURS != 0 => Unit::Hour,
        _ => Unit::Second,
    }
}

/// Which parts have been given: a bit for each, so that none is given twice.
fn bits(unit: Unit, has_fraction: bool) -> u32 {
    match unit {
        Unit::Second if has_fraction => bits(Unit::Second, false) | bits(Unit::Millisecond, false) | 1,
        _ => 1 << unit as u32,
    }
}

fn clock_bits() -> u32 {
    bits(Unit::Hour, false) | bits(Unit::Minute, false) | bits(Unit::Second, true)
}

/// PostgreSQL's own spelling. Read from the end: a unit stands behind its number.
fn verbose(text: &str, fields: i32) -> Result<Amounts, Fault> {
    let tokens = tokens(text)?;
    let mut amounts = Amounts::default();
    let mut seen = 0;
    let mut next_unit = None;
    let mut ago = false;
    for token in tokens.iter().rev() {
        let mut found = 0;
        let text = token.text.as_str();
        match token.shape {
            Shape::Clock => {
                let micros = clock(text, fields)?;
                amounts.add_micros(micros, 1)?;
                found = clock_bits();
                next_unit = Some(Unit::Day);
            }
            Shape::Offset if text[1..].contains(':') && clock(&text[1..], fields).is_ok() => {
                let micros = clock(&text[1..], fields)?;
                amounts.add_micros(if text.starts_with('-') { -micros } else { micros }, 1)?;
                found = clock_bits();
                next_unit = Some(Unit::Day);
            }
            Shape::Offset | Shape::Date | Shape::Number => {
                let mut unit = next_unit.unwrap_or_else(|| unit_of_fields(fields));
                let (mut value, rest) = leading_integer(text)?;
                let mut part = 0.0;
                if let Some(months) = rest.strip_prefix('-') {
                    let (months, rest) = leading_int(months)?;
                    if !(0..12).contains(&months) {
                        return Err(Fault::Field);
                    }
                    if !rest.is_empty() {
                        return Err(Fault::Syntax);
                    }
                    let months = i64::from(if text.starts_with('-') { -months } else { months });
                    unit = Unit::Month;
                    value = value
                        .checked_mul(12)
                        .and_then(|value| value.checked_add(months))
                        .ok_or(Fault::Field)?;
                } else if rest.starts_with('.') {
                    part = fraction(rest)?;
                    if text.starts_with('-') {
                        part = -part;
                    }
                } else if !rest.is_empty() {
                    return Err(Fault::Syntax);
                }
                amounts.add_unit(unit, value, part)?;
                found = bits(unit, part != 0.0);
                next_unit = Some(if unit == Unit::Hour { Unit::Day } else { unit });
            }
            Shape::Word | Shape::Special => {
                if text == "ago" {
                    ago = true;
                    // A number needs a unit before it; the quarter is none that an interval has.
                    next_unit = Some(Unit::Quarter);
                } else if let Some(unit) = unit(text) {
                    next_unit = Some(unit);
                } else {
                    match keyword(text) {
                        Some(Keyword::Unit(unit)) => {
                            next_unit = Some(unit);
                        }
                        _ => return Err(Fault::Syntax),
                    }
                }
            }
        }
        if found & seen != 0 {
            return Err(Fault::Syntax);
        }
        seen |= found;
    }
    if seen == 0 {
        return Err(Fault::Syntax);
    }
    if ago {
        amounts.negate()?;
    }
    Ok(amounts)
}

/// `hours:minutes[:seconds[.fraction]]`, or `minutes:seconds` for a type of those fields.
fn clock(text: &str, fields: i32) -> Result<i64, Fault> {
    let (mut hours, rest) = leading_integer(text)?;
    let (mut minutes, rest) = leading_int(rest.strip_prefix(':').ok_or(Fault::Syntax)?)?;
    let (mut seconds, mut micros) = (0, 0);
    let two_are_minutes = |hours: &mut i64, minutes: &mut i32, seconds: &mut i32| {
        *seconds = *minutes;
        *minutes = i32::try_from(*hours).map_err(|_| Fault::Field)?;
        *hours = 0;
        Ok(())
    };
    if rest.is_empty() {
        if fields == MINUTES | SECONDS {
            two_are_minutes(&mut hours, &mut minutes, &mut seconds)?;
        }
    } else if rest.starts_with('.') {
        micros = fraction_micros(rest)?;
        two_are_minutes(&mut hours, &mut minutes, &mut seconds)?;
    } else {
        let (value, rest) = leading_int(rest.strip_prefix(':').ok_or(Fault::Syntax)?)?;
        seconds = value;
        if !rest.is_empty() {
            micros = fraction_micros(rest)?;
        }
    }
    if hours < 0 || !(0..60).contains(&minutes) || !(0..=60).contains(&seconds) {
        return Err(Fault::Field);
    }
    hours
        .checked_mul(HOUR)
        .and_then(|sum| sum.checked_add(i64::from(minutes) * MINUTE + i64::from(seconds) * SECOND + micros))
        .ok_or(Fault::Field)
}

/// ISO 8601 with designators; its alternative format, a date and a clock after the P, is refused.
fn iso_8601(text: &str) -> Result<Amounts, Fault> {
    let mut rest = text
        .strip_prefix('P')
        .filter(|rest| !rest.is_empty())
        .ok_or(Fault::Syntax)?;
    let mut amounts = Amounts::default();
    let mut in_date = true;
    while !rest.is_empty() {
        if let Some(time) = rest.strip_prefix('T') {
            in_date = false;
            rest = time;
            continue;
        }
        let end = rest
            .find(|next: char| !next.is_ascii_digit() && next != '.' && next != '-' && next != '+')
            .unwrap_or(rest.len());
        if !rest.starts_with(|first: char| first.is_ascii_digit() || first == '-' || first == '.') {
            return Err(Fault::Syntax);
        }
        let (number, after) = rest.split_at(end);
        let alternative = || Fault::Value(ValueError::unsupported(format!("the interval \"{text}\" is")));
        let mut designators = after.chars();
        let designator = designators.next().ok_or_else(alternative)?;
        let unit = match (designator, in_date) {
            ('Y', true) => Unit::Year,
            ('M', true) => Unit::Month,
            ('W', true) => Unit::Week,
            ('D', true) => Unit::Day,
            ('H', false) => Unit::Hour,
            ('M', false) => Unit::Minute,
            ('S', false) => Unit::Second,
            ('T' | ':' | 'e' | 'E', _) => return Err(alternative()),
            _ => return Err(Fault::Syntax),
        };
        rest = designators.as_str();
        let value: f64 = number.parse().map_err(|_| alternative())?;
        if value.abs() > 1.0e15 {
            return Err(Fault::Field);
        }
        #[allow(clippy::cast_possible_truncation, reason = "at most 1e15")]
        amounts.add_unit(unit, value.trunc() as i64, value - value.trunc())?;
    }
    Ok(amounts)
}
