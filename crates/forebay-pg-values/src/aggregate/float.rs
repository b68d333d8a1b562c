//! Aggregates of floats: sums in the type's own arithmetic, and moments by the method of Youngs and Cramer (E. A. Youngs, E. M. Cramer:
//! Some Results Relevant to Choice of Sum and Sum-of-Product Algorithms, Technometrics 13, 1971), each step in PostgreSQL's order.

use super::{Accumulator, Start};
use crate::float::{overflow, real4, store4, store8};
use crate::{Arguments, Datum, Owned, Result};

/// sum(float8).
#[derive(Default)]
struct Sum8(Option<f64>);

impl Accumulator for Sum8 {
    fn add(&mut self, arguments: Arguments<'_>) -> Result<()> {
        if arguments.values.contains(&Datum::Null) {
            return Ok(());
        }
        let float = arguments.real(0)?;
        let sum = self.0.map_or(float, |sum| sum + float);
        if sum.is_infinite() && !float.is_infinite() && self.0.is_some_and(f64::is_finite) {
            return Err(overflow());
        }
        self.0 = Some(sum);
        Ok(())
    }

    fn finish(&self) -> Result<Owned> {
        self.0.map_or(Ok(Owned::Null), store8)
    }
}

/// sum(float4).
#[derive(Default)]
struct Sum4(Option<f32>);

impl Accumulator for Sum4 {
    fn add(&mut self, arguments: Arguments<'_>) -> Result<()> {
        if arguments.values.contains(&Datum::Null) {
            return Ok(());
        }
        let float = real4(arguments, 0)?;
        let sum = self.0.map_or(float, |sum| sum + float);
        if sum.is_infinite() && !float.is_infinite() && self.0.is_some_and(f32::is_finite) {
            return Err(overflow());
        }
        self.0 = Some(sum);
        Ok(())
    }

    fn finish(&self) -> Result<Owned> {
        self.0.map_or(Ok(Owned::Null), store4)
    }
}

/// Count, sum, and sum of squared differences from the mean.
#[derive(Default)]
struct Moments {
    count: f64,
    sum: f64,
    squares: f64,
}

/// What is asked of the moments.
type MomentsQuestion = fn(&Moments) -> Option<f64>;

struct OfMoments {
    moments: Moments,
    question: MomentsQuestion,
}

impl Accumulator for OfMoments {
    fn add(&mut self, arguments: Arguments<'_>) -> Result<()> {
        if arguments.values.contains(&Datum::Null) {
            return Ok(());
        }
        let float = arguments.real(0)?;
        let Moments { count, sum, squares } = &mut self.moments;
        let (previous_count, previous_sum) = (*count, *sum);
        *count += 1.0;
        *sum += float;
        if previous_count > 0.0 {
            let difference = float * *count - *sum;
            *squares += difference * difference / (*count * previous_count);
            if sum.is_infinite() || squares.is_infinite() {
                if !previous_sum.is_infinite() && !float.is_infinite() {
                    return Err(overflow());
                }
                *squares = f64::NAN;
            }
        } else if float.is_infinite() {
            *squares = f64::NAN;
        }
        Ok(())
    }

    fn finish(&self) -> Result<Owned> {
        (self.question)(&self.moments).map_or(Ok(Owned::Null), store8)
    }
}

fn of_moments(question: MomentsQuestion) -> Box<dyn Accumulator> {
    Box::new(OfMoments {
        moments: Moments::default(),
        question,
    })
}

fn mean() -> Box<dyn Accumulator> {
    of_moments(|moments| (moments.count != 0.0).then(|| moments.sum / moments.count))
}

fn variance_of_population() -> Box<dyn Accumulator> {
    of_moments(|moments| (moments.count != 0.0).then(|| moments.squares / moments.count))
}

fn variance_of_sample() -> Box<dyn Accumulator> {
    of_moments(|moments| (moments.count > 1.0).then(|| moments.squares / (moments.count - 1.0)))
}

fn deviation_of_population() -> Box<dyn Accumulator> {
    of_moments(|moments| (moments.count != 0.0).then(|| (moments.squares / moments.count).sqrt()))
}

fn deviation_of_sample() -> Box<dyn Accumulator> {
    of_moments(|moments| (moments.count > 1.0).then(|| (moments.squares / (moments.count - 1.0)).sqrt()))
}

/// The moments of pairs (y, x).
#[derive(Default)]
struct Pairs {
    count: f64,
    sum_x: f64,
    squares_x: f64,
    sum_y: f64,
    squares_y: f64,
    products: f64,
}

/// What is asked of the pairs.
type PairsQuestion = fn(&Pairs) -> Option<f64>;

struct OfPairs {
    pairs: Pairs,
    question: PairsQuestion,
}

impl Pairs {
    fn add(&mut self, y: f64, x: f64) -> Result<()> {
        let (previous_count, previous_x, previous_y) = (self.count, self.sum_x, self.sum_y);
        self.count += 1.0;
        self.sum_x += x;
        self.sum_y += y;
        if previous_count > 0.0 {
            let difference_x = x * self.count - self.sum_x;
            let difference_y = y * self.count - self.sum_y;
            let scale = 1.0 / (self.count * previous_count);
            self.squares_x += difference_x * difference_x * scale;
            self.squares_y += difference_y * difference_y * scale;
            self.products += difference_x * difference_y * scale;
            let finite_x = !previous_x.is_infinite() && !x.is_infinite();
            let finite_y = !previous_y.is_infinite() && !y.is_infinite();
            let overflow_x = (self.sum_x.is_infinite() || self.squares_x.is_infinite()) && finite_x;
            let overflow_y = (self.sum_y.is_infinite() || self.squares_y.is_infinite()) && finite_y;
            if overflow_x || overflow_y || (self.products.is_infinite() && finite_x && finite_y) {
                return Err(overflow());
            }
            for sum in [&mut self.squares_x, &mut self.squares_y, &mut self.products] {
                if sum.is_infinite() {
                    *sum = f64::NAN;
                }
            }
        } else {
            if x.is_infinite() {
                (self.squares_x, self.products) = (f64::NAN, f64::NAN);
            }
            if y.is_infinite() {
                (self.squares_y, self.products) = (f64::NAN, f64::NAN);
            }
        }
        Ok(())
    }

    /// The pairs, if there are any.
    fn some(&self) -> Option<&Self> {
        (self.count >= 1.0).then_some(self)
    }

    /// The pairs, if their x differ.
    fn varied(&self) -> Option<&Self> {
        self.some().filter(|pairs| pairs.squares_x != 0.0)
    }
}

impl Accumulator for OfPairs {
    fn add(&mut self, arguments: Arguments<'_>) -> Result<()> {
        if arguments.values.contains(&Datum::Null) {
            return Ok(());
        }
        self.pairs.add(arguments.real(0)?, arguments.real(1)?)
    }

    fn finish(&self) -> Result<Owned> {
        (self.question)(&self.pairs).map_or(Ok(Owned::Null), store8)
    }
}

fn of_pairs(question: PairsQuestion) -> Box<dyn Accumulator> {
    Box::new(OfPairs {
        pairs: Pairs::default(),
        question,
    })
}

fn correlation() -> Box<dyn Accumulator> {
    of_pairs(|pairs| {
        let pairs = pairs.varied().filter(|pairs| pairs.squares_y != 0.0)?;
        Some(pairs.products / (pairs.squares_x * pairs.squares_y).sqrt())
    })
}

fn covariance_of_population() -> Box<dyn Accumulator> {
    of_pairs(|pairs| pairs.some().map(|pairs| pairs.products / pairs.count))
}

fn covariance_of_sample() -> Box<dyn Accumulator> {
    of_pairs(|pairs| (pairs.count >= 2.0).then(|| pairs.products / (pairs.count - 1.0)))
}

fn mean_x() -> Box<dyn Accumulator> {
    of_pairs(|pairs| pairs.some().map(|pairs| pairs.sum_x / pairs.count))
}

fn mean_y() -> Box<dyn Accumulator> {
    of_pairs(|pairs| pairs.some().map(|pairs| pairs.sum_y / pairs.count))
}

fn squares_x() -> Box<dyn Accumulator> {
    of_pairs(|pairs| pairs.some().map(|pairs| pairs.squares_x))
}

fn squares_y() -> Box<dyn Accumulator> {
    of_pairs(|pairs| pairs.some().map(|pairs| pairs.squares_y))
}

fn products() -> Box<dyn Accumulator> {
    of_pairs(|pairs| pairs.some().map(|pairs| pairs.products))
}

fn determination() -> Box<dyn Accumulator> {
    of_pairs(|pairs| {
        let pairs = pairs.varied()?;
        Some(if pairs.squares_y == 0.0 {
            1.0
        } else {
            (pairs.products * pairs.products) / (pairs.squares_x * pairs.squares_y)
        })
    })
}

fn slope() -> Box<dyn Accumulator> {
    of_pairs(|pairs| pairs.varied().map(|pairs| pairs.products / pairs.squares_x))
}

fn intercept() -> Box<dyn Accumulator> {
    of_pairs(|pairs| {
        pairs
            .varied()
            .map(|pairs| (pairs.sum_y - pairs.sum_x * pairs.products / pairs.squares_x) / pairs.count)
    })
}

/// regr_count.
#[derive(Default)]
struct Count(i64);

impl Accumulator for Count {
    fn add(&mut self, arguments: Arguments<'_>) -> Result<()> {
        self.0 += i64::from(!arguments.values.contains(&Datum::Null));
        Ok(())
    }

    fn finish(&self) -> Result<Owned> {
        Ok(self.0.into())
    }
}

/// The least or the greatest: of values that are equal, as 0 and -0 are, the last.
struct Extreme {
    greatest: bool,
    best: Option<f64>,
}

impl Extreme {
    fn least() -> Self {
        Self {
            greatest: false,
            best: None,
        }
    }

    fn greatest() -> Self {
        Self {
            greatest: true,
            best: None,
        }
    }
}

impl Accumulator for Extreme {
    fn add(&mut self, arguments: Arguments<'_>) -> Result<()> {
        if !arguments.is_null(0) {
            let value = arguments.real(0)?;
            let keeps = self
                .best
                .is_some_and(|best| if self.greatest { best > value } else { best < value });
            if !keeps {
                self.best = Some(value);
            }
        }
        Ok(())
    }

    fn finish(&self) -> Result<Owned> {
        Ok(self.best.into())
    }
}

pub(super) const AGGREGATES: &[(&str, Start)] = &[
    ("min(float4)", || Box::new(Extreme::least())),
    ("min(float8)", || Box::new(Extreme::least())),
    ("max(float4)", || Box::new(Extreme::greatest())),
    ("max(float8)", || Box::new(Extreme::greatest())),
    ("sum(float4)", || Box::new(Sum4::default())),
    ("sum(float8)", || Box::new(Sum8::default())),
    ("avg(float4)", mean),
    ("avg(float8)", mean),
    ("variance(float4)", variance_of_sample),
    ("variance(float8)", variance_of_sample),
    ("var_samp(float4)", variance_of_sample),
    ("var_samp(float8)", variance_of_sample),
    ("var_pop(float4)", variance_of_population),
    ("var_pop(float8)", variance_of_population),
    ("stddev(float4)", deviation_of_sample),
    ("stddev(float8)", deviation_of_sample),
    ("stddev_samp(float4)", deviation_of_sample),
    ("stddev_samp(float8)", deviation_of_sample),
    ("stddev_pop(float4)", deviation_of_population),
    ("stddev_pop(float8)", deviation_of_population),
    ("corr(float8,float8)", correlation),
    ("covar_pop(float8,float8)", covariance_of_population),
    ("covar_samp(float8,float8)", covariance_of_sample),
    ("regr_avgx(float8,float8)", mean_x),
    ("regr_avgy(float8,float8)", mean_y),
    ("regr_sxx(float8,float8)", squares_x),
    ("regr_syy(float8,float8)", squares_y),
    ("regr_sxy(float8,float8)", products),
    ("regr_r2(float8,float8)", determination),
    ("regr_slope(float8,float8)", slope),
    ("regr_intercept(float8,float8)", intercept),
    ("regr_count(float8,float8)", || Box::new(Count::default())),
];
