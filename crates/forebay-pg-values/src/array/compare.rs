//! The order of elements and of arrays.
//!
//! Promises: [`compare_scalar`] orders stored values of one kind as PostgreSQL's default operators do, NULL last; json has no order and is
//! refused with PostgreSQL's words before anything is compared.

use std::cmp::Ordering;

use super::Array;
use crate::{Datum, Kind, Owned, Result, ValueError};

/// Refuses kinds that have no equality.
pub(super) fn need_equality(kind: Kind) -> Result<()> {
    need(kind, "an equality operator")
}

/// Refuses kinds that have no order.
pub(super) fn need_order(kind: Kind) -> Result<()> {
    need(kind, "a comparison function")
}

fn need(kind: Kind, what: &str) -> Result<()> {
    match kind {
        Kind::Json | Kind::Unknown => Err(ValueError::new(
            "42883",
            format!("could not identify {what} for type {}", kind.display_name()),
        )),
        _ => Ok(()),
    }
}

/// The order of two values of a kind.
pub fn compare_scalar(kind: Kind, left: Datum<'_>, right: Datum<'_>) -> Ordering {
    match (left, right) {
        (Datum::Null, Datum::Null) => Ordering::Equal,
        (Datum::Null, _) => Ordering::Greater,
        (_, Datum::Null) => Ordering::Less,
        (Datum::Integer(left), Datum::Integer(right)) => left.cmp(&right),
        (Datum::Text(left), Datum::Text(right)) => compare_text(kind, left, right),
        (Datum::Blob(left), Datum::Blob(right)) => left.cmp(right),
        (left, right) => match (real(left), real(right)) {
            (Some(left), Some(right)) => left.partial_cmp(&right).unwrap_or(Ordering::Equal),
            _ => rank(left).cmp(&rank(right)),
        },
    }
}

#[allow(clippy::cast_precision_loss, reason = "what SQLite made of a float is one")]
fn real(datum: Datum<'_>) -> Option<f64> {
    match datum {
        Datum::Integer(integer) => Some(integer as f64),
        Datum::Real(real) => Some(real),
        _ => None,
    }
}

/// SQLite's order of storage classes, for values that are not stored as their type is.
fn rank(datum: Datum<'_>) -> u8 {
    match datum {
        Datum::Integer(_) | Datum::Real(_) => 0,
        Datum::Text(_) => 1,
        Datum::Blob(_) | Datum::Null => 2,
    }
}

fn compare_text(kind: Kind, left: &str, right: &str) -> Ordering {
    match kind {
        Kind::Numeric => crate::numeric::compare(left, right),
        Kind::Bpchar => left.trim_end_matches(' ').cmp(right.trim_end_matches(' ')),
        Kind::Jsonb => crate::json::jsonb::compare(left, right),
        Kind::Interval => crate::interval::compare(left, right),
        Kind::Timetz => timetz(left).cmp(&timetz(right)),
        _ => left.cmp(right),
    }
}

/// First by the moment, then the zones from east to west. What is no timetz comes first.
fn timetz(text: &str) -> Option<(i64, i32)> {
    let (micros, west) = crate::temporal::timetz_to_parts(text).ok()?;
    Some((micros + i64::from(west) * 1_000_000, west))
}

/// Whether two elements are equal; NULL equals NULL here.
pub(super) fn same(kind: Kind, left: &Owned, right: &Owned) -> bool {
    compare_scalar(kind, left.as_datum(), right.as_datum()).is_eq()
}

/// `=` of stored arrays.
pub fn equals(kind: Kind, left: &str, right: &str) -> Result<bool> {
    let (left, right) = (Array::read(kind, left)?, Array::read(kind, right)?);
    if left.dimensions != right.dimensions {
        return Ok(false);
    }
    // Of empty arrays PostgreSQL does not ask for the elements' operator before it looks for it.
    need_equality(kind)?;
    let mut pairs = left.elements.iter().zip(&right.elements);
    Ok(pairs.all(|(left, right)| same(kind, left, right)))
}

/// PostgreSQL's order of arrays: element by element, then by number of elements, of dimensions, and the dimensions.
pub fn compare(kind: Kind, left: &str, right: &str) -> Result<Ordering> {
    need_order(kind)?;
    let (left, right) = (Array::read(kind, left)?, Array::read(kind, right)?);
    let mut pairs = left.elements.iter().zip(&right.elements);
    let first = pairs.find_map(|(left, right)| {
        let order = compare_scalar(kind, left.as_datum(), right.as_datum());
        order.is_ne().then_some(order)
    });
    Ok(first.unwrap_or_else(|| {
        let shape = |array: &Array| (array.elements.len(), array.dimensions.len());
        shape(&left)
            .cmp(&shape(&right))
            .then_with(|| left.dimensions.cmp(&right.dimensions))
    }))
}

/// `value = ANY (array)`: unknown if it is not found and something was NULL.
pub fn contains_element(kind: Kind, stored: &str, value: Datum<'_>) -> Result<Option<bool>> {
    need_equality(kind)?;
    let array = Array::read(kind, stored)?;
    if array.elements.is_empty() {
        return Ok(Some(false));
    }
    if value == Datum::Null {
        return Ok(None);
    }
    let mut elements = array.elements.iter();
    if elements.any(|element| compare_scalar(kind, element.as_datum(), value).is_eq()) {
        return Ok(Some(true));
    }
    Ok((!array.elements.contains(&Owned::Null)).then_some(false))
}
