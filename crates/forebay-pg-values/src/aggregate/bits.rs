//! Aggregates that fold values of a type into one of it: of truth values, and of the bits of integers.

use super::{Accumulator, Start};
use crate::{Arguments, Datum, Owned, Result};

struct Fold {
    value: Option<i64>,
    step: fn(i64, i64) -> i64,
}

impl Accumulator for Fold {
    fn add(&mut self, arguments: Arguments<'_>) -> Result<()> {
        if arguments.values.contains(&Datum::Null) {
            return Ok(());
        }
        let integer = arguments.integer(0)?;
        self.value = Some(self.value.map_or(integer, |value| (self.step)(value, integer)));
        Ok(())
    }

    fn finish(&self) -> Result<Owned> {
        Ok(self.value.into())
    }
}

fn all() -> Box<dyn Accumulator> {
    Box::new(Fold {
        value: None,
        step: |left, right| left & right,
    })
}

fn any() -> Box<dyn Accumulator> {
    Box::new(Fold {
        value: None,
        step: |left, right| left | right,
    })
}

fn odd() -> Box<dyn Accumulator> {
    Box::new(Fold {
        value: None,
        step: |left, right| left ^ right,
    })
}

pub(super) const AGGREGATES: &[(&str, Start)] = &[
    ("bool_and(bool)", all),
    ("every(bool)", all),
    ("bool_or(bool)", any),
    ("bit_and(int2)", all),
    ("bit_and(int4)", all),
    ("bit_and(int8)", all),
    ("bit_or(int2)", any),
    ("bit_or(int4)", any),
    ("bit_or(int8)", any),
    ("bit_xor(int2)", odd),
    ("bit_xor(int4)", odd),
    ("bit_xor(int8)", odd),
];
