//! Exponentials, logarithms and powers of numerics.
//!
//! Their last digits depend on how they are computed, so they are computed as PostgreSQL's `numeric.c` does it: the same series, the same
//! working scales (estimated with the same floating-point arithmetic), the same rounding at each step. Where PostgreSQL divides
//! approximately with sixteen guard digits, this divides exactly.

use std::cmp::Ordering;

use super::Number;
use super::arithmetic::{DISPLAY_SCALE_MAX, SIGNIFICANT_DIGITS, rounded_product};
use super::decimal::{Decimal, overflow};
use super::whole::Whole;
use crate::{Result, ValueError};

/// Beyond e to the power of three times this, no result is attempted.
const RESULT_SCALE_MAX: f64 = 2_000.0;

/// log10(e), to the digits that PostgreSQL has of it.
#[allow(clippy::approx_constant, reason = "its last digits are part of the estimate")]
const LOG10_E: f64 = 0.434_294_481_903_252;

/// log10(2), likewise.
#[allow(clippy::approx_constant, reason = "its last digits are part of the estimate")]
const LOG10_2: f64 = 0.301_029_995_663_981;

/// ln(10), likewise.
#[allow(clippy::approx_constant, reason = "its last digits are part of the estimate")]
const LN_10: f64 = 2.302_585_092_994_046;

/// Digits that a whole power of a fraction is computed with at most.
const FRACTION_DIGITS_MAX: i64 = 30_000;

/// The largest weight that can be stored.
const WEIGHT_MAX: i64 = 32_767;

/// C's conversion of a float to an int.
#[allow(clippy::cast_possible_truncation, reason = "towards zero is what is meant")]
fn truncated(float: f64) -> i64 {
    float as i64
}

fn one() -> Decimal {
    Decimal::from(1)
}

fn of_logarithm(message: &str) -> ValueError {
    ValueError::new("2201E", message)
}

fn of_power(message: &str) -> ValueError {
    ValueError::new("2201F", message)
}

fn negative_logarithm() -> ValueError {
    of_logarithm("cannot take logarithm of a negative number")
}

fn zero_logarithm() -> ValueError {
    of_logarithm("cannot take logarithm of zero")
}

/// e to the power of x, with `scale` digits behind the point (exp_var).
fn exponential(x: &Decimal, scale: i64) -> Result<Decimal> {
    let mut x = x.clone();
    let mut estimate = x.to_f64();
    if estimate.abs() >= RESULT_SCALE_MAX * 3.0 {
        return if estimate > 0.0 {
            Err(overflow())
        } else {
            Ok(Decimal::zero_at(scale))
        };
    }
    let weight = truncated(estimate * LOG10_E);

    // x is halved until it is small; the result is squared as often.
    let mut halvings = 0_u32;
    while estimate.abs() > 0.01 {
        halvings += 1;
        estimate /= 2.0;
    }
    if halvings > 0 {
        let working = i64::from(x.scale) + i64::from(halvings);
        x = x.divide(&Decimal::from(1_i128 << halvings), working, true)?;
    }

    let digits = 1 + weight + scale + truncated(f64::from(halvings) * LOG10_2);
    let digits = digits.max(0) + 8;
    let working = digits - 1;

    // Taylor's series.
    let mut result = one().add(&x);
    let mut step = 2;
    let mut element = rounded_product(&x, &x, working).divide(&Decimal::from(step), working, true)?;
    while !element.is_zero() {
        result = result.add(&element);
        step += 1;
        element = rounded_product(&element, &x, working).divide(&Decimal::from(step), working, true)?;
    }
    for _ in 0..halvings {
        let working = (digits - result.weight() * 2 * 4).max(0);
        result = rounded_product(&result, &result, working);
    }
    Ok(result.rounded(scale))
}

/// About the decimal exponent of the natural logarithm (estimate_ln_dweight).
fn logarithm_magnitude(value: &Decimal) -> i64 {
    if value.signum() <= 0 {
        return 0;
    }
    let near = |unscaled: i128| Decimal::new(Whole::Small(unscaled), 1);
    if value.compare(&near(9)) != Ordering::Less && value.compare(&near(11)) != Ordering::Greater {
        return value.subtract(&one()).magnitude();
    }
    let count = value.base_digits().min(2);
    #[allow(clippy::cast_precision_loss, reason = "at most eight digits")]
    let first = value.leading(count) as f64;
    #[allow(clippy::cast_precision_loss, reason = "an exponent")]
    let exponent = ((value.weight() - i64::from(count) + 1) * 4) as f64;
    // Two roundings, as in C without fused operations.
    let product = exponent * LN_10;
    truncated((first.ln() + product).abs().log10())
}

/// The natural logarithm with `scale` digits behind the point (ln_var).
fn natural_logarithm(value: &Decimal, scale: i64) -> Result<Decimal> {
    match value.signum() {
        0 => return Err(zero_logarithm()),
        1 => {}
        _ => return Err(negative_logarithm()),
    }
    let near = |unscaled: i128| Decimal::new(Whole::Small(unscaled), 1);
    let mut x = value.clone();
    let mut factor = Decimal::from(2);
    let mut roots = 0_u32;
    // Roots are taken until 0.9 < x < 1.1.
    while x.compare(&near(9)) != Ordering::Greater || x.compare(&near(11)) != Ordering::Less {
        x = x.square_root(scale - x.weight() * 4 / 2 + 8);
        factor = factor.multiply(&Decimal::from(2));
        roots += 1;
    }

    // The series of 0.5 * ln((1+z)/(1-z)), where z = (x-1)/(x+1).
    let working = scale + truncated(f64::from(roots + 1) * LOG10_2) + 8;
    let mut result = x.subtract(&one()).divide(&x.add(&one()), working, true)?;
    let mut power = result.clone();
    let square = rounded_product(&result, &result, working);
    let mut step = 1;
    loop {
        step += 2;
        power = rounded_product(&power, &square, working);
        let element = power.divide(&Decimal::from(step), working, true)?;
        if element.is_zero() {
            break;
        }
        result = result.add(&element);
        if element.weight() < result.weight() - working * 2 / 4 {
            break;
        }
    }
    Ok(rounded_product(&result, &factor, scale))
}

/// The logarithm to a base (log_var).
fn logarithm_to_base(base: &Decimal, value: &Decimal) -> Result<Decimal> {
    let base_magnitude = logarithm_magnitude(base);
    let value_magnitude = logarithm_magnitude(value);
    let magnitude = value_magnitude - base_magnitude;
    let scale = (SIGNIFICANT_DIGITS - magnitude)
        .max(i64::from(base.scale))
        .max(i64::from(value.scale))
        .clamp(0, DISPLAY_SCALE_MAX);
    let base_logarithm = natural_logarithm(base, (scale + magnitude - base_magnitude + 8).max(0))?;
    let value_logarithm = natural_logarithm(value, (scale + magnitude - value_magnitude + 8).max(0))?;
    value_logarithm.divide(&base_logarithm, scale, true)
}

fn is_whole(value: &Decimal) -> bool {
    value.least_scale() == 0
}

fn is_odd(whole: &Decimal) -> bool {
    whole.truncated(0).unscaled.is_odd()
}

/// A power of finite numbers (power_var).
fn power_of_finite(base: &Decimal, exponent: &Decimal) -> Result<Decimal> {
    let base_scale = i64::from(base.scale);
    if is_whole(exponent)
        && let Some(whole) = exponent
            .truncated(0)
            .unscaled
            .to_i128()
            .and_then(|whole| i32::try_from(whole).ok())
    {
        return whole_power(base, whole, SIGNIFICANT_DIGITS.max(base_scale).min(DISPLAY_SCALE_MAX));
    }
    if base.is_zero() {
        return Ok(Decimal::zero_at(SIGNIFICANT_DIGITS));
    }
    let mut negative = false;
    if base.is_negative() {
        if !is_whole(exponent) {
            return Err(of_power(
                "a negative number raised to a non-integer power yields a complex result",
            ));
        }
        negative = is_odd(exponent);
    }
    let base = base.absolute();

    // How large the result is about, from a logarithm of about eight digits.
    let magnitude = logarithm_magnitude(&base);
    let working = (8 - magnitude).max(0);
    let rough = rounded_product(&natural_logarithm(&base, working)?, exponent, working).to_f64();
    if rough.abs() > RESULT_SCALE_MAX * 3.01 {
        return if rough > 0.0 {
            Err(overflow())
        } else {
            Ok(Decimal::zero_at(DISPLAY_SCALE_MAX))
        };
    }
    let weight = truncated(rough * LOG10_E);
    let scale = (SIGNIFICANT_DIGITS - weight)
        .max(base_scale)
        .max(i64::from(exponent.scale))
        .clamp(0, DISPLAY_SCALE_MAX);
    let digits = (scale + weight).max(0);
    let working = (digits - magnitude + 8).max(0);
    let product = rounded_product(&natural_logarithm(&base, working)?, exponent, working);
    let result = exponential(&product, scale)?;
    Ok(if negative { result.negated() } else { result })
}

/// A whole power (power_var_int).
fn whole_power(base: &Decimal, exponent: i32, scale: i64) -> Result<Decimal> {
    match exponent {
        0 => return Ok(one().rounded(scale)),
        1 => return Ok(base.rounded(scale)),
        -1 => return one().divide(base, scale, true),
        2 => return Ok(rounded_product(base, base, scale)),
        _ => {}
    }
    if base.is_zero() {
        return if exponent < 0 {
            Err(ValueError::division_by_zero())
        } else {
            Ok(Decimal::zero_at(scale))
        };
    }

    // How large the result is about, from the first sixteen digits.
    let count = base.base_digits().min(4);
    #[allow(clippy::cast_precision_loss, reason = "sixteen digits, rounded once as in C")]
    let first = base.leading(count) as f64;
    #[allow(clippy::cast_precision_loss, reason = "an exponent")]
    let place = ((base.weight() - i64::from(count) + 1) * 4) as f64;
    let estimate = f64::from(exponent) * (first.log10() + place);
    // More digits than can be stored, by far; PostgreSQL computes some of these before it says so.
    if estimate > 131_100.0 {
        return Err(overflow());
    }
    #[allow(clippy::cast_precision_loss, reason = "at most a thousand")]
    if estimate + 1.0 < -(scale as f64) || estimate + 1.0 < -(DISPLAY_SCALE_MAX as f64) {
        return Ok(Decimal::zero_at(scale));
    }
    let digits = 1 + scale + truncated(estimate) + truncated(f64::from(exponent).abs().ln()) + 8;

    // Such powers of fractions keep PostgreSQL busy for many seconds; here nothing could interrupt them.
    if digits > FRACTION_DIGITS_MAX && base.scale > 0 {
        return Err(ValueError::unsupported(format!(
            "a power of a fraction that needs {digits} digits is"
        )));
    }

    let mut mask = exponent.unsigned_abs();
    let mut square = base.clone();
    let mut result = if mask & 1 == 1 { base.clone() } else { one() };
    loop {
        mask >>= 1;
        if mask == 0 {
            break;
        }
        let working = (digits - 2 * square.weight() * 4)
            .min(2 * i64::from(square.scale))
            .max(0);
        square = rounded_product(&square, &square, working);
        if mask & 1 == 1 {
            let working = (digits - (square.weight() + result.weight()) * 4)
                .min(i64::from(square.scale) + i64::from(result.scale))
                .max(0);
            result = rounded_product(&square, &result, working);
        }
        if square.weight() > WEIGHT_MAX || result.weight() > WEIGHT_MAX {
            return if exponent < 0 {
                Ok(Decimal::zero_at(scale))
            } else {
                Err(overflow())
            };
        }
    }
    if exponent < 0 {
        return one().divide(&result, scale, true);
    }
    Ok(result.rounded(scale))
}

impl Number {
    pub(super) fn square_root(&self) -> Result<Self> {
        let negative = || of_power("cannot take square root of a negative number");
        let Self::Finite(decimal) = self else {
            return if *self == Self::NegativeInfinity {
                Err(negative())
            } else {
                Ok(self.clone())
            };
        };
        // (weight + 1) * 4 / 2 - 1 is the exponent of the root's first digit, about.
        let magnitude = (decimal.weight() + 1) * 4 / 2 - 1;
        let scale = (SIGNIFICANT_DIGITS - magnitude)
            .max(i64::from(decimal.scale))
            .clamp(0, DISPLAY_SCALE_MAX);
        match decimal.signum() {
            0 => Ok(Decimal::zero_at(scale).into()),
            1 => Ok(decimal.square_root(scale).into()),
            _ => Err(negative()),
        }
    }

    pub(super) fn exponential(&self) -> Result<Self> {
        match self {
            Self::NegativeInfinity => Ok(Decimal::ZERO.into()),
            Self::Infinity | Self::Nan => Ok(self.clone()),
            Self::Finite(decimal) => {
                let weight = truncated((decimal.to_f64() * LOG10_E).clamp(-RESULT_SCALE_MAX, RESULT_SCALE_MAX));
                let scale = (SIGNIFICANT_DIGITS - weight)
                    .max(i64::from(decimal.scale))
                    .clamp(0, DISPLAY_SCALE_MAX);
                Ok(exponential(decimal, scale)?.into())
            }
        }
    }

    pub(super) fn natural_logarithm(&self) -> Result<Self> {
        match self {
            Self::NegativeInfinity => Err(negative_logarithm()),
            Self::Infinity | Self::Nan => Ok(self.clone()),
            Self::Finite(decimal) => {
                let scale = (SIGNIFICANT_DIGITS - logarithm_magnitude(decimal))
                    .max(i64::from(decimal.scale))
                    .clamp(0, DISPLAY_SCALE_MAX);
                Ok(natural_logarithm(decimal, scale)?.into())
            }
        }
    }

    /// The logarithm of `value` to the base `self`.
    pub(super) fn logarithm_of(&self, value: &Self) -> Result<Self> {
        if let (Self::Finite(base), Self::Finite(value)) = (self, value) {
            return Ok(logarithm_to_base(base, value)?.into());
        }
        if *self == Self::Nan || *value == Self::Nan {
            return Ok(Self::Nan);
        }
        if self.signum() < 0 || value.signum() < 0 {
            return Err(negative_logarithm());
        }
        if self.signum() == 0 || value.signum() == 0 {
            return Err(zero_logarithm());
        }
        Ok(match (self.is_infinite(), value.is_infinite()) {
            (true, true) => Self::Nan,
            (true, false) => Decimal::ZERO.into(),
            _ => Self::Infinity,
        })
    }

    pub(crate) fn power(&self, exponent: &Self) -> Result<Self> {
        let is = |number: &Self, integer: i64| number.compare(&Self::from(integer)) == Ordering::Equal;
        match (self, exponent) {
            (Self::Nan, _) => {
                return Ok(if is(exponent, 0) { one().into() } else { Self::Nan });
            }
            (_, Self::Nan) => return Ok(if is(self, 1) { one().into() } else { Self::Nan }),
            _ => {}
        }
        let (sign, exponent_sign) = (self.signum(), exponent.signum());
        if sign == 0 && exponent_sign < 0 {
            return Err(of_power("zero raised to a negative power is undefined"));
        }
        if let (Self::Finite(base), Self::Finite(exponent)) = (self, exponent) {
            return Ok(power_of_finite(base, exponent)?.into());
        }
        // As POSIX has it of pow(3), without minus zero.
        if sign < 0 && matches!(exponent, Self::Finite(decimal) if !is_whole(decimal)) {
            return Err(of_power(
                "a negative number raised to a non-integer power yields a complex result",
            ));
        }
        if is(self, 1) || exponent_sign == 0 {
            return Ok(one().into());
        }
        if sign == 0 {
            return Ok(Decimal::ZERO.into());
        }
        if exponent.is_infinite() {
            if is(self, -1) {
                return Ok(one().into());
            }
            let above_one = self.absolute().compare(&Self::from(1)) == Ordering::Greater;
            return Ok(if above_one == (exponent_sign > 0) {
                Self::Infinity
            } else {
                Decimal::ZERO.into()
            });
        }
        if exponent_sign < 0 {
            return Ok(Decimal::ZERO.into());
        }
        let odd = matches!(exponent, Self::Finite(decimal) if is_odd(decimal));
        Ok(if sign < 0 && odd {
            Self::NegativeInfinity
        } else {
            Self::Infinity
        })
    }
}
