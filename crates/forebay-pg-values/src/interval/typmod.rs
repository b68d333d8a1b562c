//! PostgreSQL's modifier of the type interval: which fields, and how many digits of a second.

use super::Interval;
use crate::temporal::{HOUR, MINUTE, SECOND, round_to};
use crate::{Result, ValueError};

pub(super) const MONTH: i32 = 1 << 1;
pub(super) const YEAR: i32 = 1 << 2;
pub(super) const DAYS: i32 = 1 << 3;
pub(super) const HOURS: i32 = 1 << 10;
pub(super) const MINUTES: i32 = 1 << 11;
pub(super) const SECONDS: i32 = 1 << 12;
/// All fields.
pub(super) const FULL: i32 = 0x7FFF;
/// The bits of the digits of a second.
const PRECISION: i32 = 0xFFFF;

/// The fields of a modifier.
pub(super) fn fields(typmod: i32) -> i32 {
    if typmod < 0 { FULL } else { typmod >> 16 & FULL }
}

impl Interval {
    /// Without the fields that the modifier leaves out, and rounded.
    pub(crate) fn with_typmod(mut self, typmod: i32) -> Result<Self> {
        if typmod < 0 {
            return Ok(self);
        }
        let fields = fields(typmod);
        if fields != FULL {
            // Fields larger than the first named stay; smaller ones than the last are dropped.
            let last = [SECONDS, MINUTES, HOURS, DAYS, MONTH, YEAR]
                .into_iter()
                .find(|field| fields & field != 0)
                .ok_or_else(|| ValueError::new("XX000", "unrecognized interval typmod"))?;
            match last {
                SECONDS => {}
                MINUTES => self.micros -= self.micros % MINUTE,
                HOURS => self.micros -= self.micros % HOUR,
                DAYS => self.micros = 0,
                MONTH => (self.micros, self.days) = (0, 0),
                _ => (self.micros, self.days, self.months) = (0, 0, self.months / 12 * 12),
            }
        }
        let precision = typmod & PRECISION;
        if precision < 6 {
            // PostgreSQL lets these overflow.
            if self.micros.unsigned_abs() > (i64::MAX - SECOND).unsigned_abs() {
                return Err(ValueError::unsupported("rounding the longest intervals is"));
            }
            self.micros = round_to(self.micros, precision);
        }
        Ok(self)
    }
}
