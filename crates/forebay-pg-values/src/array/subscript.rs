//! `a[1]`, `a[1:2]`.

use super::Array;
use crate::{Kind, Owned, Result};

/// The bounds of a slice in one dimension; none where there was nothing written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Bounds {
    pub lower: Option<i64>,
    pub upper: Option<i64>,
}

/// The element at these subscripts, one for each dimension. NULL if there is none, or too few or too many subscripts.
pub fn subscript(kind: Kind, stored: &str, subscripts: &[i64]) -> Result<Owned> {
    let mut array = Array::read(kind, stored)?;
    if array.dimensions.is_empty() || array.dimensions.len() != subscripts.len() {
        return Ok(Owned::Null);
    }
    let mut at = 0;
    for (length, subscript) in array.dimensions.iter().zip(subscripts) {
        match usize::try_from(*subscript) {
            Ok(place) if (1..=*length).contains(&place) => at = at * length + place - 1,
            _ => return Ok(Owned::Null),
        }
    }
    Ok(array.elements.swap_remove(at))
}

/// The part of an array between bounds; dimensions without bounds are whole. Its lower bounds are 1.
pub fn slice(kind: Kind, stored: &str, bounds: &[Bounds]) -> Result<String> {
    let array = Array::read(kind, stored)?;
    if array.dimensions.len() < bounds.len() {
        return Array::empty().stored(kind);
    }
    let mut ranges = Vec::new();
    for (at, length) in array.dimensions.iter().enumerate() {
        let bounds = bounds.get(at).copied().unwrap_or(Bounds {
            lower: None,
            upper: None,
        });
        let lower = usize::try_from(bounds.lower.unwrap_or(1).max(1)).unwrap_or(usize::MAX);
        let upper = bounds
            .upper
            .map_or(*length, |upper| usize::try_from(upper.max(0)).unwrap_or(usize::MAX));
        let upper = upper.min(*length);
        if lower > upper {
            return Array::empty().stored(kind);
        }
        ranges.push(lower - 1..upper);
    }
    let mut elements = Vec::new();
    collect(&array.dimensions, &ranges, &array.elements, &mut elements);
    Array::new(ranges.iter().map(ExactSizeIterator::len).collect(), elements).stored(kind)
}

fn collect(dimensions: &[usize], ranges: &[std::ops::Range<usize>], elements: &[Owned], out: &mut Vec<Owned>) {
    let (Some((length, below)), Some((range, ranges))) = (dimensions.split_first(), ranges.split_first()) else {
        out.extend_from_slice(elements);
        return;
    };
    for part in elements
        .chunks(elements.len() / length)
        .take(range.end)
        .skip(range.start)
    {
        collect(below, ranges, part, out);
    }
}
