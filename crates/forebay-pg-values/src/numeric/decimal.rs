//! A finite decimal: a whole number and how many of its digits stand behind the point (PostgreSQL's display scale).
//!
//! What PostgreSQL's results depend on beside the value is kept: the display scale, and the weight in PostgreSQL's own base of 10,000
//! ([`Decimal::weight`]), which its rules for the scale of quotients, roots and logarithms are written in.

use std::cmp::Ordering;

use super::whole::Whole;
use crate::{Result, ValueError};

/// Digits before the point that PostgreSQL can store.
const DIGITS_MAX: i64 = 131_072;

/// Digits behind the point that PostgreSQL can store.
pub(crate) const SCALE_MAX: u32 = 16_383;

/// See the module. Its value is `unscaled / 10^scale`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decimal {
    pub(crate) unscaled: Whole,
    pub(crate) scale: u32,
}

/// `value overflows numeric format` (22003).
pub(crate) fn overflow() -> ValueError {
    ValueError::new("22003", "value overflows numeric format")
}

impl From<i128> for Decimal {
    fn from(integer: i128) -> Self {
        Self {
            unscaled: Whole::Small(integer),
            scale: 0,
        }
    }
}

impl Decimal {
    pub(crate) const ZERO: Self = Self {
        unscaled: Whole::ZERO,
        scale: 0,
    };

    /// `unscaled / 10^scale`.
    pub(crate) fn new(unscaled: Whole, scale: u32) -> Self {
        Self { unscaled, scale }
    }

    /// Zero with that many digits behind the point.
    pub(crate) fn zero_at(scale: i64) -> Self {
        Self::new(Whole::ZERO, u32::try_from(scale).unwrap_or(0))
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.unscaled.is_zero()
    }

    pub(crate) fn is_negative(&self) -> bool {
        self.unscaled.is_negative()
    }

    /// -1, 0 or 1.
    pub(crate) fn signum(&self) -> i32 {
        if self.is_zero() {
            0
        } else if self.is_negative() {
            -1
        } else {
            1
        }
    }

    /// The decimal exponent of the first digit; 0 for zero.
    pub(crate) fn magnitude(&self) -> i64 {
        if self.is_zero() {
            return 0;
        }
        i64::from(self.unscaled.digit_count()) - 1 - i64::from(self.scale)
    }

    /// The exponent of the first digit in base 10,000; 0 for zero.
    pub(crate) fn weight(&self) -> i64 {
        self.magnitude().div_euclid(4)
    }

    /// The first `count` digits in base 10,000, as one number; 0 for zero.
    pub(crate) fn leading(&self, count: u32) -> i128 {
        let lowest = (self.weight() - i64::from(count) + 1) * 4;
        self.absolute().scaled_to(-lowest).to_i128().unwrap_or(0)
    }

    /// How many digits it has in base 10,000, none of them zeros at the end.
    pub(crate) fn base_digits(&self) -> u32 {
        if self.is_zero() {
            return 0;
        }
        let least = self.least_scale();
        // The last digit stands at this place of base 10,000, before or behind the point.
        let last = if least > 0 {
            -i64::from(least.div_ceil(4))
        } else {
            let digits = self.truncated(0).unscaled.digits();
            let zeros = digits.len() - digits.trim_end_matches('0').len();
            i64::try_from(zeros / 4).expect("a count of digits")
        };
        u32::try_from(self.weight() - last + 1).expect("the last digit is not before the first")
    }

    /// The digits as a whole number at another scale, towards zero.
    fn scaled_to(&self, scale: i64) -> Whole {
        let by = scale - i64::from(self.scale);
        let power = Whole::power_of_ten(u32::try_from(by.unsigned_abs()).unwrap_or(u32::MAX));
        if by >= 0 {
            self.unscaled.multiply(&power)
        } else {
            self.unscaled.divide(&power).0
        }
    }

    pub(crate) fn absolute(&self) -> Self {
        Self::new(self.unscaled.absolute(), self.scale)
    }

    pub(crate) fn negated(&self) -> Self {
        Self::new(self.unscaled.negated(), self.scale)
    }

    /// With more digits behind the point, zeros.
    pub(crate) fn extended(&self, scale: u32) -> Self {
        if scale <= self.scale {
            return self.clone();
        }
        let power = Whole::power_of_ten(scale - self.scale);
        Self::new(self.unscaled.multiply(&power), scale)
    }

    /// Rounded to `scale` digits behind the point, halves away from zero. A scale below zero rounds before the point and leaves none.
    pub(crate) fn rounded(&self, scale: i64) -> Self {
        self.cut(scale, Whole::divide_rounding)
    }

    /// As [`Self::rounded`], towards zero.
    pub(crate) fn truncated(&self, scale: i64) -> Self {
        self.cut(scale, |whole, power| whole.divide(power).0)
    }

    fn cut(&self, scale: i64, divide: impl Fn(&Whole, &Whole) -> Whole) -> Self {
        let places = i64::from(self.scale) - scale;
        if places <= 0 {
            return self.extended(u32::try_from(scale).expect("not below the scale there is"));
        }
        let result_scale = u32::try_from(scale).unwrap_or(0);
        // More places than there are digits, and one for a carry: nothing is left.
        if places > i64::from(self.unscaled.digit_count()) + 1 {
            return Self::new(Whole::ZERO, result_scale);
        }
        let power = Whole::power_of_ten(u32::try_from(places).expect("checked against a count"));
        let kept = divide(&self.unscaled, &power);
        let back = Whole::power_of_ten(u32::try_from(-scale).unwrap_or(0));
        Self::new(if scale < 0 { kept.multiply(&back) } else { kept }, result_scale)
    }

    /// The fewest digits behind the point that hold the value.
    pub(crate) fn least_scale(&self) -> u32 {
        if self.is_zero() {
            return 0;
        }
        if let Whole::Small(mut small) = self.unscaled {
            let mut scale = self.scale;
            while scale > 0 && small % 10 == 0 {
                small /= 10;
                scale -= 1;
            }
            return scale;
        }
        let digits = self.unscaled.digits();
        let zeros = digits.len() - digits.trim_end_matches('0').len();
        self.scale - self.scale.min(u32::try_from(zeros).unwrap_or(u32::MAX))
    }

    fn aligned(&self, other: &Self) -> (Whole, Whole, u32) {
        let scale = self.scale.max(other.scale);
        (self.extended(scale).unscaled, other.extended(scale).unscaled, scale)
    }

    pub(crate) fn add(&self, other: &Self) -> Self {
        let (left, right, scale) = self.aligned(other);
        Self::new(left.add(&right), scale)
    }

    pub(crate) fn subtract(&self, other: &Self) -> Self {
        let (left, right, scale) = self.aligned(other);
        Self::new(left.subtract(&right), scale)
    }

    /// The exact product.
    pub(crate) fn multiply(&self, other: &Self) -> Self {
        Self::new(self.unscaled.multiply(&other.unscaled), self.scale + other.scale)
    }

    /// The quotient with `scale` digits behind the point, halves away from zero or cut towards zero.
    pub(crate) fn divide(&self, divisor: &Self, scale: i64, rounding: bool) -> Result<Self> {
        if divisor.is_zero() {
            return Err(ValueError::division_by_zero());
        }
        let shift = scale + i64::from(divisor.scale) - i64::from(self.scale);
        let power = Whole::power_of_ten(u32::try_from(shift.unsigned_abs()).map_err(|_| overflow())?);
        let (numerator, denominator) = if shift >= 0 {
            (self.unscaled.multiply(&power), divisor.unscaled.clone())
        } else {
            (self.unscaled.clone(), divisor.unscaled.multiply(&power))
        };
        let quotient = if rounding {
            numerator.divide_rounding(&denominator)
        } else {
            numerator.divide(&denominator).0
        };
        Ok(Self::new(quotient, u32::try_from(scale).map_err(|_| overflow())?))
    }

    /// The remainder of the division towards zero, with the sign of the dividend.
    pub(crate) fn modulo(&self, divisor: &Self) -> Result<Self> {
        if divisor.is_zero() {
            return Err(ValueError::division_by_zero());
        }
        let (left, right, scale) = self.aligned(divisor);
        Ok(Self::new(left.divide(&right).1, scale))
    }

    /// The square root of what is not negative, correctly rounded to `scale` digits behind the point, which may be below zero.
    pub(crate) fn square_root(&self, scale: i64) -> Self {
        // One digit more than asked for decides the rounding; a root cut there is half or more exactly if the true one is.
        let working = scale + 1;
        let root = self.scaled_to(2 * working).square_root();
        let rounded = root.divide_rounding(&Whole::Small(10));
        match u32::try_from(scale) {
            Ok(scale) => Self::new(rounded, scale),
            Err(_) => Self::new(
                rounded.multiply(&Whole::power_of_ten(u32::try_from(-scale).expect("below zero"))),
                0,
            ),
        }
    }

    /// The order of the values.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        if self.scale == other.scale {
            return self.unscaled.compare(&other.unscaled);
        }
        let (left, right, _) = self.aligned(other);
        left.compare(&right)
    }

    /// The value, if it is within what PostgreSQL can store.
    pub(crate) fn checked(self) -> Result<Self> {
        if self.scale > SCALE_MAX || self.magnitude() >= DIGITS_MAX {
            return Err(overflow());
        }
        Ok(self)
    }

    /// Writes it as PostgreSQL does: all digits of its scale, no exponent.
    pub(crate) fn write(&self, out: &mut String) {
        let digits = self.unscaled.digits();
        let scale = self.scale as usize;
        if self.is_negative() {
            out.push('-');
        }
        if digits.len() > scale {
            let (whole, fraction) = digits.split_at(digits.len() - scale);
            out.push_str(whole);
            if scale > 0 {
                out.push('.');
                out.push_str(fraction);
            }
        } else {
            out.push_str("0.");
            out.extend(std::iter::repeat_n('0', scale - digits.len()));
            out.push_str(&digits);
        }
    }

    /// The nearest double, infinite beyond the range.
    pub(crate) fn to_f64(&self) -> f64 {
        let mut text = String::new();
        self.write(&mut text);
        text.parse().expect("digits with a point are a float")
    }
}
