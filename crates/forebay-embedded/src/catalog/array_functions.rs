//! The catalog's functions of arrays, and those that give rows, which come as arrays.
//!
//! Promises: what a query may make of them has a bound. Knows nothing of the catalog.

use rusqlite::functions::Context;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Result};
use serde_json::Value as Json;

use super::arguments::{PURE, bounded, bounded_value, integer, pure, string};
use super::arrays;
use super::error::RuntimeError;

/// Elements a set-returning function may produce, and bytes an array may have: a query for more is refused, not run.
const SERIES_MAX: i64 = 100_000;

pub(super) fn register_arrays(connection: &Connection) -> Result<()> {
    let pure = |name: &str, function: fn(&Context<'_>) -> Result<Value>| pure(connection, name, function);
    pure("forebay_elements", |context| {
        let numeric = integer(context, 1)? != 0;
        bounded_value(Json::Array(json_elements(&string(context, 0)?, numeric)?).to_string())
    })?;
    pure("forebay_expanded", |context| {
        let numeric = integer(context, 1)? != 0;
        let elements = json_elements(&string(context, 0)?, numeric)?;
        let rows = elements
            .into_iter()
            .enumerate()
            .map(|(index, element)| serde_json::json!({ "x": element, "n": index + 1 }))
            .collect();
        bounded_value(Json::Array(rows).to_string())
    })?;
    pure("forebay_subscripts", |context| {
        let array = array(context, 0)?;
        let rows = (array.first..)
            .zip(array.elements)
            .map(|(subscript, _)| Json::from(subscript))
            .collect();
        bounded_value(Json::Array(rows).to_string())
    })?;
    pure("forebay_series", |context| {
        let (first, last) = (integer(context, 0)?, integer(context, 1)?);
        let step = if context.len() > 2 { integer(context, 2)? } else { 1 };
        if step == 0 {
            return Err(RuntimeError::raise("22023", "step size cannot equal zero"));
        }
        let mut rows = Vec::new();
        let mut next = Some(first);
        while let Some(value) = next.filter(|value| if step > 0 { *value <= last } else { *value >= last }) {
            rows.push(Json::from(value));
            if i64::try_from(rows.len()).unwrap_or(i64::MAX) > SERIES_MAX {
                return Err(RuntimeError::raise(
                    "54000",
                    format!("generate_series produces more than {SERIES_MAX} rows"),
                ));
            }
            next = value.checked_add(step);
        }
        bounded_value(Json::Array(rows).to_string())
    })?;
    // Set-returning functions of one SELECT list run in step: row i of each, NULL where one is shorter. Not strict: a NULL set is empty.
    connection.create_scalar_function("forebay_in_step", -1, PURE, |context| {
        let mut sets: Vec<Vec<Json>> = Vec::new();
        for index in 0..context.len() {
            let set = context
                .get::<Option<String>>(index)?
                .and_then(|text| serde_json::from_str(&text).ok());
            sets.push(set.unwrap_or_default());
        }
        let length = sets.iter().map(Vec::len).max().unwrap_or(0);
        let rows: Vec<Json> = (0..length)
            .map(|row| {
                sets.iter()
                    .map(|set| set.get(row).cloned().unwrap_or(Json::Null))
                    .collect()
            })
            .collect();
        bounded(Json::Array(rows).to_string())
    })?;
    pure("forebay_array", |context| {
        let rows: Vec<Json> = serde_json::from_str(&string(context, 0)?).unwrap_or_default();
        let elements: Vec<Option<String>> = rows
            .into_iter()
            .map(|element| match element {
                Json::Null => None,
                Json::String(text) => Some(text),
                other => Some(other.to_string()),
            })
            .collect();
        Ok(Value::Text(arrays::format(&elements)))
    })?;
    pure("forebay_array_of_vector", |context| {
        Ok(Value::Text(arrays::format_vector(&elements(context, 0)?)))
    })?;
    pure("forebay_subscript", |context| {
        let (wanted, numeric) = (integer(context, 1)?, integer(context, 2)? != 0);
        let arrays::Array { first, mut elements } = array(context, 0)?;
        let index = wanted.checked_sub(first).and_then(|index| usize::try_from(index).ok());
        let Some(index) = index.filter(|index| *index < elements.len()) else {
            return Ok(Value::Null);
        };
        Ok(match elements.swap_remove(index) {
            None => Value::Null,
            Some(text) if numeric => text.parse().map_or(Value::Null, Value::Integer),
            Some(text) => Value::Text(text),
        })
    })?;
    // Not strict: NULL beside an array is the empty array.
    connection.create_scalar_function("forebay_array_concat", 2, PURE, |context| {
        let mut all: Option<Vec<Option<String>>> = None;
        for index in 0..2 {
            if !matches!(context.get_raw(index), ValueRef::Null) {
                all.get_or_insert_default().extend(elements(context, index)?);
            }
        }
        all.map(|all| bounded(arrays::format(&all))).transpose()
    })?;
    // Its third argument may be NULL: then NULL elements are left out.
    connection.create_scalar_function("array_to_string", -1, PURE, |context| {
        if matches!(context.get_raw(0), ValueRef::Null) || matches!(context.get_raw(1), ValueRef::Null) {
            return Ok(None);
        }
        let separator = string(context, 1)?;
        let null = if context.len() > 2 {
            context.get::<Option<String>>(2)?
        } else {
            None
        };
        let parts: Vec<String> = elements(context, 0)?
            .into_iter()
            .filter_map(|element| element.or_else(|| null.clone()))
            .collect();
        bounded(parts.join(&separator)).map(Some)
    })?;
    pure("array_length", |context| {
        let count = elements(context, 0)?.len();
        Ok(if count == 0 || integer(context, 1)? != 1 {
            Value::Null
        } else {
            Value::Integer(i64::try_from(count).unwrap_or(i64::MAX))
        })
    })?;
    pure("forebay_array_bound", |context| {
        let array = array(context, 0)?;
        let (dimension, upper) = (integer(context, 1)?, integer(context, 2)? != 0);
        if array.elements.is_empty() || dimension != 1 {
            return Ok(Value::Null);
        }
        let length = i64::try_from(array.elements.len()).unwrap_or(i64::MAX);
        Ok(Value::Integer(if upper {
            array.first + length - 1
        } else {
            array.first
        }))
    })?;
    pure("cardinality", |context| {
        Ok(Value::Integer(
            i64::try_from(elements(context, 0)?.len()).unwrap_or(i64::MAX),
        ))
    })
}

pub(super) fn array(context: &Context<'_>, index: usize) -> Result<arrays::Array> {
    let text = string(context, index)?;
    arrays::parse(&text).ok_or_else(|| RuntimeError::raise("22P02", format!("malformed array literal: \"{text}\"")))
}

pub(super) fn elements(context: &Context<'_>, index: usize) -> Result<Vec<Option<String>>> {
    Ok(array(context, index)?.elements)
}

pub(super) fn json_elements(text: &str, numeric: bool) -> Result<Vec<Json>> {
    let malformed = || RuntimeError::raise("22P02", format!("malformed array literal: \"{text}\""));
    arrays::parse(text)
        .ok_or_else(malformed)?
        .elements
        .into_iter()
        .map(|element| match element {
            None => Ok(Json::Null),
            Some(text) if numeric => text.trim().parse::<i64>().map(Json::from).map_err(|_| malformed()),
            Some(text) => Ok(Json::String(text)),
        })
        .collect()
}
