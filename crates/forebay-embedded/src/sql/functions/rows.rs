//! Functions that give rows, as JSON arrays of them: generate_series, unnest of several arrays, and those of JSON and texts.
//!
//! Promises: PostgreSQL's rows in PostgreSQL's order; all of them are in memory at a time, which has a bound. Knows nothing of statements.

use std::cmp::Ordering;

use forebay_pg_values::array::Array;
use forebay_pg_values::json::Flavor;
use forebay_pg_values::{Arguments, Datum, Kind, Owned, ValueError, json, temporal};
use rusqlite::functions::Context;
use rusqlite::types::Value;

use super::error::raised;
use super::session_context::session_context;
use super::value::{data, datum, text_at, type_at, utc, value};

/// More rows than this of one call of generate_series are refused: they are made before the first is read.
const SERIES_MAX: usize = 10_000_000;

type Result<T> = std::result::Result<T, ValueError>;

/// Arrays side by side: a row an element, as many as the longest has.
pub(super) fn abreast(context: &Context<'_>) -> rusqlite::Result<Value> {
    let mut arrays = Vec::new();
    for index in 0..context.len() {
        let elements: Vec<serde_json::Value> = match datum(context.get_raw(index))? {
            Datum::Text(text) => serde_json::from_str(text).map_err(|error| {
                raised(ValueError::new(
                    "XX001",
                    format!("a stored array cannot be read: {error}"),
                ))
            })?,
            _ => Vec::new(),
        };
        arrays.push(elements);
    }
    let count = arrays.iter().map(Vec::len).max().unwrap_or(0);
    let rows: Vec<serde_json::Value> = (0..count)
        .map(|row| {
            let of_row = arrays
                .iter_mut()
                .map(|array| array.get_mut(row).map(serde_json::Value::take));
            of_row.map(Option::unwrap_or_default).collect()
        })
        .collect();
    Ok(Value::Text(serde_json::Value::Array(rows).to_string()))
}

/// `(session, type, from, to, step)`: all values from one to another, as an array.
pub(super) fn series(context: &Context<'_>) -> rusqlite::Result<Value> {
    let session = session_context(text_at(context, 0)?)?;
    let kind = type_at(context, 1)?.kind();
    let given = data(context, context.len())?;
    let bounds = &given[2..];
    if bounds.contains(&Datum::Null) {
        return Ok(Value::Text("[]".to_owned()));
    }
    let made = series_of(kind, bounds, &session.values).map_err(raised)?;
    Array::of_elements(made)
        .into_stored(kind)
        .map_err(raised)
        .and_then(value)
}

/// Whether a series may have one row more: all of it is in memory at a time.
fn check_series(rows: usize) -> Result<()> {
    if rows >= SERIES_MAX {
        return Err(ValueError::new(
            "54000",
            format!("generate_series gives at most {SERIES_MAX} rows"),
        ));
    }
    forebay_pg_values::text::check_length(i64::try_from(rows * size_of::<Owned>()).unwrap_or(i64::MAX))
}

fn series_of(kind: Kind, bounds: &[Datum<'_>], environment: &forebay_pg_values::Environment) -> Result<Vec<Owned>> {
    let no_step = || ValueError::new("22023", "step size cannot equal zero");
    let mut made = Vec::new();
    match (kind, bounds) {
        (Kind::Int4 | Kind::Int8, [Datum::Integer(from), Datum::Integer(to), rest @ ..]) => {
            let step = match rest {
                [Datum::Integer(step)] => *step,
                _ => 1,
            };
            if step == 0 {
                return Err(no_step());
            }
            let mut current = *from;
            while if step > 0 { current <= *to } else { current >= *to } {
                check_series(made.len())?;
                made.push(Owned::Integer(current));
                match current.checked_add(step) {
                    Some(next) => current = next,
                    None => break,
                }
            }
        }
        (Kind::Numeric, [Datum::Text(from), Datum::Text(to), rest @ ..]) => {
            let step = match rest {
                [Datum::Text(step)] => *step,
                _ => "1",
            };
            let compare = forebay_pg_values::numeric::compare;
            for (bound, name) in [(*from, "start"), (*to, "stop"), (step, "step")] {
                if matches!(bound, "NaN" | "Infinity" | "-Infinity") {
                    return Err(ValueError::new(
                        "22023",
                        format!(
                            "{name} value cannot be {}",
                            if bound == "NaN" { "NaN" } else { "infinity" }
                        ),
                    ));
                }
            }
            let sign = compare(step, "0");
            if sign == Ordering::Equal {
                return Err(no_step());
            }
            let add = forebay_pg_values::function("numeric_add")
                .ok_or_else(|| ValueError::unsupported("generate_series of numeric is"))?;
            let mut current = (*from).to_owned();
            while compare(&current, to) != sign {
                check_series(made.len())?;
                let next = add.call(Arguments {
                    values: &[Datum::Text(&current), Datum::Text(step)],
                    types: &[],
                    environment,
                })?;
                made.push(Owned::Text(current));
                match next {
                    Owned::Text(next) => current = next,
                    _ => break,
                }
            }
        }
        (Kind::Timestamp | Kind::Timestamptz, [Datum::Text(from), Datum::Text(to), Datum::Text(step)]) => {
            let step = forebay_pg_values::interval::Interval::from_stored(step)?;
            let zone = (kind == Kind::Timestamptz).then_some(&environment.zone);
            let stored = step.to_stored();
            let sign = forebay_pg_values::interval::compare(&stored, "00:00:00");
            if sign == Ordering::Equal {
                return Err(no_step());
            }
            let (mut current, end) = (temporal::timestamp_to_micros(from)?, temporal::timestamp_to_micros(to)?);
            while current.cmp(&end) != sign {
                check_series(made.len())?;
                made.push(Owned::Text(temporal::timestamp_from_micros(current)?));
                let next = temporal::add_interval(current, step, zone)?;
                if next.cmp(&current) != sign {
                    break;
                }
                current = next;
            }
        }
        _ => {
            return Err(ValueError::unsupported(format!(
                "generate_series of {} is",
                kind.display_name()
            )));
        }
    }
    Ok(made)
}

/// `(name, argument, …)`: the rows of a function, as a JSON array.
pub(super) fn rows(context: &Context<'_>) -> rusqlite::Result<Value> {
    let name = text_at(context, 0)?;
    let given = data(context, context.len())?;
    let strict = name != "string_to_table";
    if given.get(1) == Some(&Datum::Null) || strict && given[1..].contains(&Datum::Null) {
        return Ok(Value::Text("[]".to_owned()));
    }
    let Some(Datum::Text(first)) = given.get(1) else {
        return Err(raised(ValueError::unsupported(format!("{name} of this value is"))));
    };
    let flavor = if name.starts_with("jsonb") {
        Flavor::Jsonb
    } else {
        Flavor::Json
    };
    let list = |values: Vec<Owned>| serde_json::Value::Array(values.into_iter().map(plain).collect());
    let pairs = |pairs: Vec<(String, Owned)>| {
        serde_json::Value::Array(
            pairs
                .into_iter()
                .map(|(name, value)| serde_json::Value::Array(vec![name.into(), plain(value)]))
                .collect(),
        )
    };
    let texts = |texts: Vec<String>| serde_json::Value::from(texts);
    let made = match name {
        "json_array_elements" | "jsonb_array_elements" => json::array_elements(flavor, first).map(list),
        "json_array_elements_text" | "jsonb_array_elements_text" => json::array_elements_text(flavor, first).map(list),
        "json_object_keys" | "jsonb_object_keys" => json::object_keys(flavor, first).map(texts),
        "json_each" | "jsonb_each" => json::each(flavor, first).map(pairs),
        "json_each_text" | "jsonb_each_text" => json::each_text(flavor, first).map(pairs),
        "string_to_table" | "regexp_split_to_table" => {
            let symbol = match (name, given.len()) {
                ("string_to_table", 3) => "text_to_array",
                ("string_to_table", _) => "text_to_array_null",
                (_, 3) => "regexp_split_to_array_no_flags",
                _ => "regexp_split_to_array",
            };
            let split = forebay_pg_values::function(symbol)
                .ok_or_else(|| raised(ValueError::unsupported(format!("the function {name} is"))))?;
            return split
                .call(Arguments {
                    values: &given[1..],
                    types: &[],
                    environment: utc(),
                })
                .map_err(raised)
                .and_then(value);
        }
        _ => Err(ValueError::unsupported(format!("the function {name} is"))),
    };
    made.map_err(raised).map(|json| Value::Text(json.to_string()))
}

fn plain(value: Owned) -> serde_json::Value {
    match value {
        Owned::Null => serde_json::Value::Null,
        Owned::Integer(integer) => integer.into(),
        Owned::Real(real) => real.into(),
        Owned::Text(text) => text.into(),
        Owned::Blob(_) => serde_json::Value::Null,
    }
}
