//! Aggregates whose results are numerics: exact sums, and what is computed from them.

use std::cmp::Ordering;

use super::{Accumulator, Start};
use crate::numeric::{Decimal, Number, division_scale, rounded_product};
use crate::{Arguments, Datum, Owned, Result};

/// What is asked of the sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    Sum,
    Mean,
    Spread { variance: bool, sample: bool },
}

/// Sums of values and of their squares; infinities and NaN are counted aside, since no sum of them could be taken back.
struct Sums {
    question: Question,
    count: i128,
    sum: Decimal,
    squares: Decimal,
    infinities: i64,
    negative_infinities: i64,
    not_numbers: i64,
}

impl Sums {
    fn start(question: Question) -> Box<dyn Accumulator> {
        Box::new(Self {
            question,
            count: 0,
            sum: Decimal::ZERO,
            squares: Decimal::ZERO,
            infinities: 0,
            negative_infinities: 0,
            not_numbers: 0,
        })
    }

    /// What the sum is beside finite numbers, if it is not finite.
    fn special(&self) -> Option<Number> {
        match (self.not_numbers, self.infinities, self.negative_infinities) {
            (0, 0, 0) => None,
            (0, _, 0) => Some(Number::Infinity),
            (0, 0, _) => Some(Number::NegativeInfinity),
            _ => Some(Number::Nan),
        }
    }

    /// PostgreSQL's numeric_stddev_internal.
    fn spread(&self, variance: bool, sample: bool) -> Result<Owned> {
        let total = self.count + i128::from(self.infinities + self.negative_infinities + self.not_numbers);
        if total <= i128::from(sample) {
            return Ok(Owned::Null);
        }
        if self.special().is_some() {
            return Number::Nan.store();
        }
        let count = Decimal::from(self.count);
        let scale = i64::from(self.sum.scale) * 2;
        let squared_sum = rounded_product(&self.sum, &self.sum, scale);
        let numerator = rounded_product(&count, &self.squares, scale).subtract(&squared_sum);
        if numerator.compare(&Decimal::ZERO) != Ordering::Greater {
            return Number::from(Decimal::ZERO).store();
        }
        let denominator = Decimal::from(self.count * (self.count - i128::from(sample)));
        let scale = division_scale(&numerator, &denominator);
        let spread = numerator.divide(&denominator, scale, true)?;
        Number::from(if variance { spread } else { spread.square_root(scale) }).store()
    }
}

impl Accumulator for Sums {
    fn add(&mut self, arguments: Arguments<'_>) -> Result<()> {
        let number = match arguments.values.first() {
            Some(Datum::Null) => return Ok(()),
            Some(Datum::Integer(integer)) => Number::from(*integer),
            _ => Number::stored(arguments.text(0)?)?,
        };
        match number {
            Number::Infinity => self.infinities += 1,
            Number::NegativeInfinity => self.negative_infinities += 1,
            Number::Nan => self.not_numbers += 1,
            Number::Finite(decimal) => {
                self.count += 1;
                self.sum = self.sum.add(&decimal);
                if matches!(self.question, Question::Spread { .. }) {
                    self.squares = self.squares.add(&decimal.multiply(&decimal));
                }
            }
        }
        Ok(())
    }

    fn finish(&self) -> Result<Owned> {
        if let Question::Spread { variance, sample } = self.question {
            return self.spread(variance, sample);
        }
        if let Some(special) = self.special() {
            return special.store();
        }
        if self.count == 0 {
            return Ok(Owned::Null);
        }
        let sum = Number::from(self.sum.clone());
        if self.question == Question::Sum {
            return sum.store();
        }
        sum.divide(&Decimal::from(self.count).into())?.store()
    }
}

/// The least or the greatest; of equal ones the one that came last, as PostgreSQL keeps it.
struct Extreme {
    value: Option<String>,
    kept: Ordering,
}

impl Accumulator for Extreme {
    fn add(&mut self, arguments: Arguments<'_>) -> Result<()> {
        if arguments.values.contains(&Datum::Null) {
            return Ok(());
        }
        let text = arguments.text(0)?;
        let keep = matches!(&self.value, Some(value) if crate::numeric::compare(value, text) == self.kept);
        if !keep {
            self.value = Some(text.to_owned());
        }
        Ok(())
    }

    fn finish(&self) -> Result<Owned> {
        Ok(self.value.clone().into())
    }
}

fn sum() -> Box<dyn Accumulator> {
    Sums::start(Question::Sum)
}

fn mean() -> Box<dyn Accumulator> {
    Sums::start(Question::Mean)
}

fn variance_of_sample() -> Box<dyn Accumulator> {
    Sums::start(Question::Spread {
        variance: true,
        sample: true,
    })
}

fn variance_of_population() -> Box<dyn Accumulator> {
    Sums::start(Question::Spread {
        variance: true,
        sample: false,
    })
}

fn deviation_of_sample() -> Box<dyn Accumulator> {
    Sums::start(Question::Spread {
        variance: false,
        sample: true,
    })
}

fn deviation_of_population() -> Box<dyn Accumulator> {
    Sums::start(Question::Spread {
        variance: false,
        sample: false,
    })
}

fn least() -> Box<dyn Accumulator> {
    Box::new(Extreme {
        value: None,
        kept: Ordering::Less,
    })
}

fn greatest() -> Box<dyn Accumulator> {
    Box::new(Extreme {
        value: None,
        kept: Ordering::Greater,
    })
}

pub(super) const AGGREGATES: &[(&str, Start)] = &[
    ("min(numeric)", least),
    ("max(numeric)", greatest),
    ("sum(int8)", sum),
    ("sum(numeric)", sum),
    ("avg(int2)", mean),
    ("avg(int4)", mean),
    ("avg(int8)", mean),
    ("avg(numeric)", mean),
    ("variance(int2)", variance_of_sample),
    ("variance(int4)", variance_of_sample),
    ("variance(int8)", variance_of_sample),
    ("variance(numeric)", variance_of_sample),
    ("var_samp(int2)", variance_of_sample),
    ("var_samp(int4)", variance_of_sample),
    ("var_samp(int8)", variance_of_sample),
    ("var_samp(numeric)", variance_of_sample),
    ("var_pop(int2)", variance_of_population),
    ("var_pop(int4)", variance_of_population),
    ("var_pop(int8)", variance_of_population),
    ("var_pop(numeric)", variance_of_population),
    ("stddev(int2)", deviation_of_sample),
    ("stddev(int4)", deviation_of_sample),
    ("stddev(int8)", deviation_of_sample),
    ("stddev(numeric)", deviation_of_sample),
    ("stddev_samp(int2)", deviation_of_sample),
    ("stddev_samp(int4)", deviation_of_sample),
    ("stddev_samp(int8)", deviation_of_sample),
    ("stddev_samp(numeric)", deviation_of_sample),
    ("stddev_pop(int2)", deviation_of_population),
    ("stddev_pop(int4)", deviation_of_population),
    ("stddev_pop(int8)", deviation_of_population),
    ("stddev_pop(numeric)", deviation_of_population),
];
