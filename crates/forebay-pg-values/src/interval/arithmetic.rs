//! Sums, multiples and parts of intervals. Multiples pass the fractions of months on to days and those of days on to microseconds, with
//! PostgreSQL's roundings on the way (its documentation: "Date/Time Functions and Operators").

use super::Interval;
use crate::temporal::{DAY, interval_out_of_range};
use crate::{Result, ValueError};

const DAY_SECONDS: f64 = 86_400.0;

impl Interval {
    /// The sum, part by part.
    pub fn checked_add(self, other: Self) -> Result<Self> {
        let sum = || {
            Some(Self {
                micros: self.micros.checked_add(other.micros)?,
                days: self.days.checked_add(other.days)?,
                months: self.months.checked_add(other.months)?,
            })
        };
        sum().ok_or_else(interval_out_of_range)
    }

    /// The difference, part by part.
    pub fn checked_sub(self, other: Self) -> Result<Self> {
        let difference = || {
            Some(Self {
                micros: self.micros.checked_sub(other.micros)?,
                days: self.days.checked_sub(other.days)?,
                months: self.months.checked_sub(other.months)?,
            })
        };
        difference().ok_or_else(interval_out_of_range)
    }

    /// The same length the other way.
    pub fn checked_neg(self) -> Result<Self> {
        Self::default().checked_sub(self)
    }

    /// So many times as long.
    pub fn multiply(self, factor: f64) -> Result<Self> {
        self.scale(|part| part * factor)
    }

    /// One of so many parts.
    pub fn divide(self, divisor: f64) -> Result<Self> {
        if divisor == 0.0 {
            return Err(ValueError::division_by_zero());
        }
        self.scale(|part| part / divisor)
    }

    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "PostgreSQL scales with floats and drops fractions; what does not fit is refused"
    )]
    fn scale(self, by: impl Fn(f64) -> f64) -> Result<Self> {
        let whole = |scaled: f64| {
            if scaled >= f64::from(i32::MIN) && scaled < -f64::from(i32::MIN) {
                Ok(scaled as i32)
            } else {
                Err(interval_out_of_range())
            }
        };
        let months_exact = by(f64::from(self.months));
        let months = whole(months_exact)?;
        let days_exact = by(f64::from(self.days));
        let mut days = whole(days_exact)?;

        let days_of_months = to_micros((months_exact - f64::from(months)) * 30.0);
        let mut seconds =
            to_micros((days_exact - f64::from(days) + days_of_months - f64::from(days_of_months as i32)) * DAY_SECONDS);
        // Roundings can make a whole day of the rest.
        if seconds.abs() >= DAY_SECONDS {
            let more = (seconds / DAY_SECONDS) as i32;
            days = days.checked_add(more).ok_or_else(interval_out_of_range)?;
            seconds -= f64::from(more) * DAY_SECONDS;
        }
        days = days
            .checked_add(days_of_months as i32)
            .ok_or_else(interval_out_of_range)?;
        let micros = (by(self.micros as f64) + seconds * 1_000_000.0).round_ties_even();
        // The float above i64::MAX is 2^63 itself.
        if !(micros >= i64::MIN as f64 && micros < -(i64::MIN as f64)) {
            return Err(interval_out_of_range());
        }
        Ok(Self {
            micros: micros as i64,
            days,
            months,
        })
    }

    /// Days out of hours.
    pub(crate) fn justify_hours(mut self) -> Result<Self> {
        self.move_to_days(self.micros / DAY)?;
        if self.days > 0 && self.micros < 0 {
            self.micros += DAY;
            self.days -= 1;
        } else if self.days < 0 && self.micros > 0 {
            self.micros -= DAY;
            self.days += 1;
        }
        Ok(self)
    }

    /// Months out of days.
    pub(crate) fn justify_days(mut self) -> Result<Self> {
        self.move_to_months(self.days / 30)?;
        if self.months > 0 && self.days < 0 {
            self.days += 30;
            self.months -= 1;
        } else if self.months < 0 && self.days > 0 {
            self.days -= 30;
            self.months += 1;
        }
        Ok(self)
    }

    /// Months and days out of all, with one sign.
    pub(crate) fn justify(mut self) -> Result<Self> {
        // Days that would be too many once the hours are in give months first.
        if (self.days > 0 && self.micros > 0) || (self.days < 0 && self.micros < 0) {
            self.move_to_months(self.days / 30)?;
        }
        self.move_to_days(self.micros / DAY)?;
        self.move_to_months(self.days / 30)?;
        if self.months > 0 && (self.days < 0 || (self.days == 0 && self.micros < 0)) {
            self.days += 30;
            self.months -= 1;
        } else if self.months < 0 && (self.days > 0 || (self.days == 0 && self.micros > 0)) {
            self.days -= 30;
            self.months += 1;
        }
        if self.days > 0 && self.micros < 0 {
            self.micros += DAY;
            self.days -= 1;
        } else if self.days < 0 && self.micros > 0 {
            self.micros -= DAY;
            self.days += 1;
        }
        Ok(self)
    }

    fn move_to_days(&mut self, days: i64) -> Result<()> {
        self.micros -= days * DAY;
        self.days = i32::try_from(days)
            .ok()
            .and_then(|days| self.days.checked_add(days))
            .ok_or_else(interval_out_of_range)?;
        Ok(())
    }

    fn move_to_months(&mut self, months: i32) -> Result<()> {
        self.days -= months * 30;
        self.months = self.months.checked_add(months).ok_or_else(interval_out_of_range)?;
        Ok(())
    }
}

/// Rounded to six digits after the point.
fn to_micros(value: f64) -> f64 {
    (value * 1_000_000.0).round_ties_even() / 1_000_000.0
}
