//! Integers of any length: 128 bits where they suffice, num-bigint beyond. One value has one form, so that equality is of forms.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};
use num_traits::{Signed, ToPrimitive, Zero};

/// See the module. `Big` is only what 128 bits cannot hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Whole {
    Small(i128),
    Big(BigInt),
}

impl From<BigInt> for Whole {
    fn from(big: BigInt) -> Self {
        big.to_i128().map_or(Self::Big(big), Self::Small)
    }
}

impl From<i128> for Whole {
    fn from(small: i128) -> Self {
        Self::Small(small)
    }
}

impl Whole {
    pub(crate) const ZERO: Self = Self::Small(0);

    pub(crate) fn to_big(&self) -> BigInt {
        match self {
            Self::Small(small) => BigInt::from(*small),
            Self::Big(big) => big.clone(),
        }
    }

    pub(crate) fn to_i128(&self) -> Option<i128> {
        match self {
            Self::Small(small) => Some(*small),
            Self::Big(_) => None,
        }
    }

    /// 10 to the power of `exponent`.
    pub(crate) fn power_of_ten(exponent: u32) -> Self {
        match 10_i128.checked_pow(exponent) {
            Some(small) => Self::Small(small),
            None => Self::Big(BigInt::from(10).pow(exponent)),
        }
    }

    /// Reads decimal digits and nothing else.
    pub(crate) fn from_digits(digits: &[u8]) -> Self {
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        let digits = &digits[zeros..];
        // 38 digits are below 2^127.
        if digits.len() <= 38 {
            return Self::Small(
                digits
                    .iter()
                    .fold(0, |value, digit| value * 10 + i128::from(digit - b'0')),
            );
        }
        BigInt::parse_bytes(digits, 10).map_or(Self::ZERO, Self::from)
    }

    pub(crate) fn is_zero(&self) -> bool {
        matches!(self, Self::Small(0))
    }

    pub(crate) fn is_negative(&self) -> bool {
        match self {
            Self::Small(small) => *small < 0,
            Self::Big(big) => big.sign() == Sign::Minus,
        }
    }

    pub(crate) fn is_odd(&self) -> bool {
        match self {
            Self::Small(small) => small & 1 == 1,
            Self::Big(big) => big.bit(0),
        }
    }

    pub(crate) fn negated(&self) -> Self {
        match self {
            Self::Small(small) => small
                .checked_neg()
                .map_or_else(|| (-BigInt::from(*small)).into(), Self::Small),
            Self::Big(big) => (-big).into(),
        }
    }

    pub(crate) fn absolute(&self) -> Self {
        if self.is_negative() {
            self.negated()
        } else {
            self.clone()
        }
    }

    pub(crate) fn add(&self, other: &Self) -> Self {
        if let (Self::Small(left), Self::Small(right)) = (self, other)
            && let Some(sum) = left.checked_add(*right)
        {
            return Self::Small(sum);
        }
        (self.to_big() + other.to_big()).into()
    }

    pub(crate) fn subtract(&self, other: &Self) -> Self {
        if let (Self::Small(left), Self::Small(right)) = (self, other)
            && let Some(difference) = left.checked_sub(*right)
        {
            return Self::Small(difference);
        }
        (self.to_big() - other.to_big()).into()
    }

    pub(crate) fn multiply(&self, other: &Self) -> Self {
        if let (Self::Small(left), Self::Small(right)) = (self, other)
            && let Some(product) = left.checked_mul(*right)
        {
            return Self::Small(product);
        }
        match (self, other) {
            (Self::Big(left), Self::Big(right)) => (left * right).into(),
            (Self::Big(big), Self::Small(small)) | (Self::Small(small), Self::Big(big)) => (big * small).into(),
            (Self::Small(left), Self::Small(right)) => (BigInt::from(*left) * right).into(),
        }
    }

    /// Quotient towards zero and remainder; the divisor is not zero.
    pub(crate) fn divide(&self, divisor: &Self) -> (Self, Self) {
        if let (Self::Small(left), Self::Small(right)) = (self, divisor)
            && let (Some(quotient), Some(remainder)) = (left.checked_div(*right), left.checked_rem(*right))
        {
            return (Self::Small(quotient), Self::Small(remainder));
        }
        let (left, right) = (self.to_big(), divisor.to_big());
        let quotient = &left / &right;
        let remainder = left - &quotient * right;
        (quotient.into(), remainder.into())
    }

    /// The quotient, halves rounded away from zero; the divisor is not zero.
    pub(crate) fn divide_rounding(&self, divisor: &Self) -> Self {
        let (quotient, remainder) = self.divide(divisor);
        let twice = remainder.multiply(&Self::Small(2)).absolute();
        if twice.compare(&divisor.absolute()) == Ordering::Less {
            return quotient;
        }
        let step = if self.is_negative() == divisor.is_negative() {
            1
        } else {
            -1
        };
        quotient.add(&Self::Small(step))
    }

    /// The integer square root; the value is not negative.
    pub(crate) fn square_root(&self) -> Self {
        match self {
            Self::Small(small) => Self::Small(small.isqrt()),
            Self::Big(big) => big.sqrt().into(),
        }
    }

    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Small(left), Self::Small(right)) => left.cmp(right),
            (Self::Big(left), Self::Big(right)) => left.cmp(right),
            (Self::Small(_), Self::Big(big)) => {
                if big.is_negative() {
                    Ordering::Greater
                } else {
                    Ordering::Less
                }
            }
            (Self::Big(_), Self::Small(_)) => other.compare(self).reverse(),
        }
    }

    /// How many decimal digits it has; zero has none.
    pub(crate) fn digit_count(&self) -> u32 {
        match self {
            Self::Small(small) => small.unsigned_abs().checked_ilog10().map_or(0, |log| log + 1),
            Self::Big(big) => {
                // 2^(bits-1) <= |value| < 2^bits, so that the count is one of two; no power of two in reach comes so near to a power of
                // ten that the float could err.
                #[allow(
                    clippy::cast_precision_loss,
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "memory ends long before"
                )]
                let least = ((big.bits() - 1) as f64 * std::f64::consts::LOG10_2) as u32 + 1;
                if big.magnitude() >= Self::power_of_ten(least).to_big().magnitude() {
                    least + 1
                } else {
                    least
                }
            }
        }
    }

    /// The decimal digits without a sign.
    pub(crate) fn digits(&self) -> String {
        match self {
            Self::Small(small) => small.unsigned_abs().to_string(),
            Self::Big(big) => big.magnitude().to_string(),
        }
    }

    /// The greatest common divisor, not negative.
    pub(crate) fn greatest_common_divisor(&self, other: &Self) -> Self {
        let (mut left, mut right) = (self.to_big().abs(), other.to_big().abs());
        while !right.is_zero() {
            let remainder = &left % &right;
            left = std::mem::replace(&mut right, remainder);
        }
        left.into()
    }
}
