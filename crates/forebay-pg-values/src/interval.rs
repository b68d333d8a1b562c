//! PostgreSQL's interval: months, days and microseconds that do not turn into one another by themselves. Its text, its order, and its
//! arithmetic. Knows no dates.

mod aggregate;
mod arithmetic;
mod input;
mod text;
mod typmod;

use std::cmp::Ordering;

pub use aggregate::Sum;

pub(crate) use aggregate::AGGREGATES;

/// See the module. The fields are those of PostgreSQL's binary format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Interval {
    /// Microseconds.
    pub micros: i64,
    /// Days.
    pub days: i32,
    /// Months.
    pub months: i32,
}

/// PostgreSQL's order of two stored intervals: a month has 30 days and a day 24 hours. What is not an interval comes first.
pub fn compare(left: &str, right: &str) -> Ordering {
    let span = |stored| Interval::from_stored(stored).ok().map(Interval::span);
    if left == right {
        return Ordering::Equal;
    }
    span(left).cmp(&span(right))
}

impl Interval {
    /// Its length as PostgreSQL compares it, in microseconds.
    pub(crate) fn span(self) -> i128 {
        let days = i128::from(self.months) * 30 + i128::from(self.days);
        days * i128::from(crate::temporal::DAY) + i128::from(self.micros)
    }
}
