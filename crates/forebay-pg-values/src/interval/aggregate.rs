//! `sum`, `avg`, `min`, `max` and `percentile_cont` of intervals.

use super::Interval;
use crate::aggregate::{Accumulator, Start};
use crate::{Arguments, Owned, Result};

pub(crate) const AGGREGATES: &[(&str, Start)] = &[
    ("sum(interval)", || Box::new(Total::default())),
    ("avg(interval)", || Box::new(Mean::default())),
    ("min(interval)", || {
        Box::new(Extreme {
            best: None,
            least: true,
        })
    }),
    ("max(interval)", || {
        Box::new(Extreme {
            best: None,
            least: false,
        })
    }),
];

/// The sum of intervals so far, and how many they are.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sum {
    sum: Interval,
    count: i64,
}

impl Sum {
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

#[derive(Default)]
struct Total(Sum);

impl Accumulator for Total {
    fn add(&mut self, arguments: Arguments<'_>) -> Result<()> {
        if arguments.is_null(0) {
            return Ok(());
        }
        self.0.add(Interval::from_stored(arguments.text(0)?)?)
    }

    fn finish(&self) -> Result<Owned> {
        Ok(self.0.sum().map(Interval::to_stored).into())
    }
}

#[derive(Default)]
struct Mean(Sum);

impl Accumulator for Mean {
    fn add(&mut self, arguments: Arguments<'_>) -> Result<()> {
        if arguments.is_null(0) {
            return Ok(());
        }
        self.0.add(Interval::from_stored(arguments.text(0)?)?)
    }

    fn finish(&self) -> Result<Owned> {
        Ok(self.0.average()?.map(Interval::to_stored).into())
    }
}

/// The least or the greatest; of equal ones the last, as in PostgreSQL.
struct Extreme {
    best: Option<Interval>,
    least: bool,
}

impl Accumulator for Extreme {
    fn add(&mut self, arguments: Arguments<'_>) -> Result<()> {
        if arguments.is_null(0) {
            return Ok(());
        }
        let next = Interval::from_stored(arguments.text(0)?)?;
        let stays = self.best.is_some_and(|best| {
            if self.least {
                best.span() < next.span()
            } else {
                best.span() > next.span()
            }
        });
        if !stays {
            self.best = Some(next);
        }
        Ok(())
    }

    fn finish(&self) -> Result<Owned> {
        Ok(self.best.map(Interval::to_stored).into())
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
        let mut accumulator = Sum::default();
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

    /// As PostgreSQL: of equal ones the last.
    #[test]
    fn accumulators_pass_over_null() {
        let environment = crate::Environment::new(jiff::tz::TimeZone::UTC, 0);
        for (symbol, texts, result) in [
            ("sum(interval)", &["1 mon", "NULL", "1 day"][..], Some("1 mon 1 day")),
            ("avg(interval)", &["1 mon", "NULL", "1 day"], Some("15 days 12:00:00")),
            ("min(interval)", &["1 mon", "30 days", "40 days"], Some("30 days")),
            ("max(interval)", &["1 mon", "30 days", "NULL", "1 day"], Some("30 days")),
            ("sum(interval)", &["NULL"], None),
            ("max(interval)", &[], None),
        ] {
            let mut accumulator = crate::aggregate::accumulator(symbol).unwrap();
            for text in texts {
                let value = if *text == "NULL" {
                    crate::Datum::Null
                } else {
                    crate::Datum::Text(text)
                };
                accumulator
                    .add(Arguments {
                        values: &[value],
                        types: &[],
                        environment: &environment,
                    })
                    .unwrap();
            }
            assert_eq!(accumulator.finish().unwrap(), result.into(), "{symbol}");
        }
    }
}
