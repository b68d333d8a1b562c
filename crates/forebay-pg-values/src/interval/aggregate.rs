//! `sum`, `avg` and `percentile_cont` of intervals.

use super::Interval;
use crate::Result;

/// The sum of intervals so far, and how many they are.
#[derive(Debug, Clone, Copy, Default)]
pub struct Accumulator {
    sum: Interval,
    count: i64,
}

impl Accumulator {
    /// Takes one more.
    pub fn add(&mut self, interval: Interval) -> Result<()> {
        self.sum = self.sum.checked_add(interval)?;
        self.count += 1;
        Ok(())
    }

    /// Takes one out again, as a window that moves does.
    pub fn remove(&mut self, interval: Interval) -> Result<()> {
        self.sum = self.sum.checked_sub(interval)?;
        self.count -= 1;
        Ok(())
    }

    /// `sum`; none of no rows.
    pub fn sum(&self) -> Option<Interval> {
        (self.count > 0).then_some(self.sum)
    }

    /// `avg`; none of no rows.
    pub fn average(&self) -> Result<Option<Interval>> {
        #[allow(clippy::cast_precision_loss, reason = "PostgreSQL divides by a float")]
        let average = self.sum().map(|sum| sum.divide(self.count as f64));
        average.transpose()
    }
}

impl Interval {
    /// What lies at that part, 0 to 1, of the way to another, as `percentile_cont` has it.
    pub fn between(self, other: Self, part: f64) -> Result<Self> {
        self.checked_add(other.checked_sub(self)?.multiply(part)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(text: &str) -> Interval {
        Interval::parse(text, -1).unwrap()
    }

    /// Answers of PostgreSQL 15 to the same sums.
    #[test]
    fn sums_and_averages() {
        let mut accumulator = Accumulator::default();
        assert_eq!(accumulator.sum(), None);
        assert_eq!(accumulator.average().unwrap(), None);
        for text in ["1 mon", "1 day 02:00", "10 days -00:00:01", "3 years"] {
            accumulator.add(interval(text)).unwrap();
        }
        assert_eq!(accumulator.sum().unwrap().to_stored(), "3 years 1 mon 11 days 01:59:59");
        assert_eq!(
            accumulator.average().unwrap().unwrap().to_stored(),
            "9 mons 10 days 06:29:59.75"
        );
        accumulator.remove(interval("3 years")).unwrap();
        assert_eq!(
            accumulator.average().unwrap().unwrap().to_stored(),
            "13 days 16:39:59.666667"
        );
        let between = interval("3 days 04:00").between(interval("1 mon"), 0.7).unwrap();
        assert_eq!(between.to_stored(), "22 days -01:12:00");
    }
}
