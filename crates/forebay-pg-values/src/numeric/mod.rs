//! numeric: exact decimals of any length, NaN and the infinities; their order, text, arithmetic, and casts.
//!
//! Stored as the text that PostgreSQL writes. The scale of every result is PostgreSQL's own; the rules are those of its manual where it
//! says them, and otherwise those that its `numeric.c` (version 15) goes by, which the functions here name.

mod arithmetic;
mod compare;
mod decimal;
mod functions;
mod logarithm;
mod text;
mod whole;

pub(crate) use arithmetic::{division_scale, rounded_product};
pub use compare::compare;
pub(crate) use decimal::Decimal;
pub(crate) use functions::FUNCTIONS;
pub(crate) use text::{apply_modifier, parse};

use crate::{Owned, Result};

/// A value of the type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Number {
    NegativeInfinity,
    Finite(Decimal),
    Infinity,
    Nan,
}

impl Number {
    /// An infinity, or NaN for no sign.
    pub(crate) fn infinite(sign: i32) -> Self {
        match sign {
            0 => Self::Nan,
            1.. => Self::Infinity,
            _ => Self::NegativeInfinity,
        }
    }

    /// -1, 0 or 1; 0 for NaN.
    pub(crate) fn signum(&self) -> i32 {
        match self {
            Self::NegativeInfinity => -1,
            Self::Finite(decimal) => decimal.signum(),
            Self::Infinity => 1,
            Self::Nan => 0,
        }
    }

    pub(crate) fn is_infinite(&self) -> bool {
        matches!(self, Self::Infinity | Self::NegativeInfinity)
    }

    /// Writes it as PostgreSQL does.
    pub(crate) fn write(&self, out: &mut String) {
        match self {
            Self::NegativeInfinity => out.push_str("-Infinity"),
            Self::Finite(decimal) => decimal.write(out),
            Self::Infinity => out.push_str("Infinity"),
            Self::Nan => out.push_str("NaN"),
        }
    }

    /// The stored form, if PostgreSQL could store the value.
    pub(crate) fn store(self) -> Result<Owned> {
        let checked = match self {
            Self::Finite(decimal) => Self::Finite(decimal.checked()?),
            other => other,
        };
        let mut text = String::new();
        checked.write(&mut text);
        Ok(Owned::Text(text))
    }
}

impl From<Decimal> for Number {
    fn from(decimal: Decimal) -> Self {
        Self::Finite(decimal)
    }
}

impl From<i64> for Number {
    fn from(integer: i64) -> Self {
        Self::Finite(Decimal::from(i128::from(integer)))
    }
}
