//! `array_agg`, and `min` and `max` of arrays.

use std::cmp::Ordering;

use super::compare::compare;
use super::{Array, DIMENSIONS_MAX};
use crate::aggregate::{Accumulator, Start};
use crate::{Arguments, Datum, Owned, Result, Type, ValueError};

/// `array_agg` of values, or of arrays, which become one array of one dimension more.
#[derive(Debug, Default)]
struct ArrayAgg {
    /// The type of the values, and how many there were; none before the first.
    of: Option<(Type, usize)>,
    /// The dimensions of each of the arrays.
    dimensions: Vec<usize>,
    elements: Vec<Owned>,
}

impl ArrayAgg {
    fn add_array(&mut self, array: Array) -> Result<()> {
        let wrong = |message: &str| Err(ValueError::new("2202E", message));
        if self.of.is_none() {
            if array.dimensions.is_empty() {
                return wrong("cannot accumulate empty arrays");
            }
            if array.dimensions.len() + 1 > DIMENSIONS_MAX {
                return Err(super::text::too_many(array.dimensions.len() + 1));
            }
            self.dimensions = array.dimensions;
        } else if self.dimensions != array.dimensions {
            return wrong("cannot accumulate arrays of different dimensionality");
        }
        self.elements.extend(array.elements);
        Ok(())
    }
}

impl Accumulator for ArrayAgg {
    fn add(&mut self, arguments: Arguments<'_>) -> Result<()> {
        let (Some(value), Some(of)) = (arguments.values.first(), arguments.types.first()) else {
            return Err(ValueError::new("XX000", "array_agg takes a value of a known type"));
        };
        match (of, value) {
            (Type::Scalar(_), _) => self.elements.push((*value).into()),
            (Type::Array(_), Datum::Null) => return Err(ValueError::new("22004", "cannot accumulate null arrays")),
            (Type::Array(kind), _) => self.add_array(Array::read(*kind, arguments.text(0)?)?)?,
        }
        self.of.get_or_insert((*of, 0)).1 += 1;
        Ok(())
    }

    fn finish(&self) -> Result<Owned> {
        let Some((of, rows)) = self.of else {
            return Ok(Owned::Null);
        };
        let mut dimensions = vec![rows];
        dimensions.extend(&self.dimensions);
        Array::new(dimensions, self.elements.clone()).into_stored(of.kind())
    }
}

/// `min(anyarray)`, `max(anyarray)`.
#[derive(Debug)]
struct ArrayExtreme {
    /// How the kept one stands to another that does not take its place: of equal ones the last is kept.
    better: Ordering,
    kept: Option<String>,
}

impl Accumulator for ArrayExtreme {
    /// NULL does not count.
    fn add(&mut self, arguments: Arguments<'_>) -> Result<()> {
        if arguments.is_null(0) {
            return Ok(());
        }
        let Some(Type::Array(kind)) = arguments.types.first() else {
            return Err(ValueError::new(
                "XX000",
                "min and max of arrays take an array of a known type",
            ));
        };
        let value = arguments.text(0)?;
        let stays = match &self.kept {
            Some(kept) => compare(*kind, kept, value)? == self.better,
            None => false,
        };
        if !stays {
            self.kept = Some(value.to_owned());
        }
        Ok(())
    }

    fn finish(&self) -> Result<Owned> {
        Ok(self.kept.clone().into())
    }
}

fn array_agg() -> Box<dyn Accumulator> {
    Box::<ArrayAgg>::default()
}

fn extreme(better: Ordering) -> Box<dyn Accumulator> {
    Box::new(ArrayExtreme { better, kept: None })
}

/// By symbol. They read the types of their arguments.
pub(crate) const AGGREGATES: &[(&str, Start)] = &[
    ("array_agg(anynonarray)", array_agg),
    ("array_agg(anyarray)", array_agg),
    ("min(anyarray)", || extreme(Ordering::Less)),
    ("max(anyarray)", || extreme(Ordering::Greater)),
];
