//! Sums, products and quotients of numerics, NaN and infinities among them, with the scales of PostgreSQL's results.

use std::cmp::Ordering;

use super::Number;
use super::decimal::{Decimal, SCALE_MAX};
use super::whole::Whole;
use crate::{Result, ValueError};

/// Significant digits that a quotient, root or logarithm has at least (PostgreSQL's NUMERIC_MIN_SIG_DIGITS).
pub(crate) const SIGNIFICANT_DIGITS: i64 = 16;

/// Digits behind the point that a quotient, root or logarithm has at most (NUMERIC_MAX_DISPLAY_SCALE).
pub(crate) const DISPLAY_SCALE_MAX: i64 = 1_000;

/// The scale of a quotient (PostgreSQL's select_div_scale).
pub(crate) fn division_scale(dividend: &Decimal, divisor: &Decimal) -> i64 {
    let mut weight = dividend.weight() - divisor.weight();
    if dividend.leading(1) <= divisor.leading(1) {
        weight -= 1;
    }
    (SIGNIFICANT_DIGITS - weight * 4)
        .max(i64::from(dividend.scale))
        .max(i64::from(divisor.scale))
        .clamp(0, DISPLAY_SCALE_MAX)
}

/// The digits in base 10,000, from the first that is not zero to the last.
fn base_digits(decimal: &Decimal) -> Vec<u64> {
    let aligned = decimal
        .absolute()
        .extended(decimal.scale.next_multiple_of(4))
        .unscaled
        .digits();
    let front = aligned.len() % 4;
    let (first, rest) = aligned.as_bytes().split_at(front);
    let number = |chunk: &[u8]| {
        chunk
            .iter()
            .fold(0, |value, digit| value * 10 + u64::from(digit - b'0'))
    };
    let mut digits: Vec<u64> = Vec::with_capacity(aligned.len() / 4 + 1);
    if front > 0 {
        digits.push(number(first));
    }
    digits.extend(rest.chunks(4).map(number));
    let end = digits.iter().rposition(|digit| *digit != 0).map_or(0, |at| at + 1);
    digits.truncate(end);
    let start = digits.iter().position(|digit| *digit != 0).unwrap_or(0);
    digits.drain(..start);
    digits
}

/// The product with `scale` digits behind the point, computed from as many digits as PostgreSQL's mul_var takes: those further right
/// than two digits of base 10,000 behind the last that is asked for do not carry.
pub(crate) fn rounded_product(left: &Decimal, right: &Decimal, scale: i64) -> Decimal {
    if left.is_zero() || right.is_zero() {
        return Decimal::zero_at(scale);
    }
    let weight = left.weight() + right.weight() + 2;
    let available = weight + 1 + (scale + 3) / 4 + 2;
    let full = i64::from(left.base_digits()) + i64::from(right.base_digits()) + 1;
    if full <= available {
        return left.multiply(right).rounded(scale);
    }
    let Some(count) = usize::try_from(available).ok().filter(|count| *count >= 3) else {
        return Decimal::zero_at(scale);
    };
    let (short, long) = (base_digits(left), base_digits(right));
    let mut sums = vec![0_u64; count];
    for (at, digit) in short.iter().enumerate().take(count - 2) {
        for (sum, other) in sums[at + 2..].iter_mut().zip(&long) {
            *sum += digit * other;
        }
    }
    let mut text = vec![b'0'; count * 4];
    let mut carry = 0;
    for (sum, four) in sums.iter().zip(text.chunks_mut(4)).rev() {
        let mut rest = (sum + carry) % 10_000;
        carry = (sum + carry) / 10_000;
        for digit in four.iter_mut().rev() {
            *digit = b'0' + u8::try_from(rest % 10).expect("a digit");
            rest /= 10;
        }
    }
    let unscaled = Whole::from_digits(&text);
    let unscaled = if left.is_negative() == right.is_negative() {
        unscaled
    } else {
        unscaled.negated()
    };
    let behind = u32::try_from((scale + 3) / 4 + 2).expect("the scale is not below zero") * 4;
    Decimal::new(unscaled, behind).rounded(scale)
}

impl Number {
    pub(crate) fn negated(&self) -> Self {
        match self {
            Self::NegativeInfinity => Self::Infinity,
            Self::Infinity => Self::NegativeInfinity,
            Self::Nan => Self::Nan,
            Self::Finite(decimal) => Self::Finite(decimal.negated()),
        }
    }

    pub(crate) fn absolute(&self) -> Self {
        if self.signum() < 0 {
            self.negated()
        } else {
            self.clone()
        }
    }

    pub(crate) fn add(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Finite(left), Self::Finite(right)) => Self::Finite(left.add(right)),
            (Self::Nan, _)
            | (_, Self::Nan)
            | (Self::Infinity, Self::NegativeInfinity)
            | (Self::NegativeInfinity, Self::Infinity) => Self::Nan,
            (Self::Infinity, _) | (_, Self::Infinity) => Self::Infinity,
            _ => Self::NegativeInfinity,
        }
    }

    pub(crate) fn subtract(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Finite(left), Self::Finite(right)) => Self::Finite(left.subtract(right)),
            _ => self.add(&other.negated()),
        }
    }

    pub(crate) fn multiply(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Finite(left), Self::Finite(right)) => {
                let product = left.multiply(right);
                Self::Finite(if product.scale > SCALE_MAX {
                    product.rounded(i64::from(SCALE_MAX))
                } else {
                    product
                })
            }
            (Self::Nan, _) | (_, Self::Nan) => Self::Nan,
            // An infinity times zero is NaN, which `infinite` makes of no sign.
            _ => Self::infinite(self.signum() * other.signum()),
        }
    }

    /// What a quotient is when one side is not finite.
    fn quotient_of_specials(&self, other: &Self) -> Result<Self> {
        match (self, other) {
            (Self::Nan, _) | (_, Self::Nan) => Ok(Self::Nan),
            (Self::Finite(_), _) => Ok(Decimal::ZERO.into()),
            (_, Self::Finite(divisor)) if divisor.is_zero() => Err(ValueError::division_by_zero()),
            (_, Self::Finite(divisor)) => Ok(Self::infinite(self.signum() * divisor.signum())),
            _ => Ok(Self::Nan),
        }
    }

    pub(crate) fn divide(&self, other: &Self) -> Result<Self> {
        let (Self::Finite(left), Self::Finite(right)) = (self, other) else {
            return self.quotient_of_specials(other);
        };
        Ok(left.divide(right, division_scale(left, right), true)?.into())
    }

    /// The quotient without its fraction.
    pub(crate) fn divide_truncating(&self, other: &Self) -> Result<Self> {
        let (Self::Finite(left), Self::Finite(right)) = (self, other) else {
            return self.quotient_of_specials(other);
        };
        Ok(left.divide(right, 0, false)?.into())
    }

    pub(crate) fn modulo(&self, other: &Self) -> Result<Self> {
        match (self, other) {
            (Self::Finite(left), Self::Finite(right)) => Ok(left.modulo(right)?.into()),
            (Self::Nan, _) | (_, Self::Nan) => Ok(Self::Nan),
            (Self::Finite(_), _) => Ok(self.clone()),
            (_, Self::Finite(divisor)) if divisor.is_zero() => Err(ValueError::division_by_zero()),
            _ => Ok(Self::Nan),
        }
    }

    /// PostgreSQL's order: NaN is greatest and equals itself.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        let rank = |number: &Self| match number {
            Self::NegativeInfinity => 0,
            Self::Finite(_) => 1,
            Self::Infinity => 2,
            Self::Nan => 3,
        };
        match (self, other) {
            (Self::Finite(left), Self::Finite(right)) => left.compare(right),
            _ => rank(self).cmp(&rank(other)),
        }
    }
}
