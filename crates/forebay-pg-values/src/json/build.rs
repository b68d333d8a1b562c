//! Values of other types made into JSON: `to_json`, `json_build_object` and the aggregates.
//!
//! Promises: `json` and `jsonb` share what becomes of a value; they differ in white space, and in that jsonb sorts. A json that goes
//! into a json keeps its text.

use std::borrow::Cow;

use super::jsonb::Value;
use super::text;
use crate::array::Array;
use crate::{Arguments, Datum, Environment, Kind, Owned, Result, Type, ValueError, text_form};

/// What a value becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Category {
    Boolean,
    /// A number, if it is written as JSON's are; else a string.
    Number,
    /// Date and time in the spelling of ISO 8601.
    Moment,
    Json,
    String,
}

fn category(kind: Kind) -> Category {
    match kind {
        Kind::Bool => Category::Boolean,
        Kind::Int2 | Kind::Int4 | Kind::Int8 | Kind::Float4 | Kind::Float8 | Kind::Numeric => Category::Number,
        Kind::Date | Kind::Timestamp | Kind::Timestamptz => Category::Moment,
        Kind::Json | Kind::Jsonb => Category::Json,
        _ => Category::String,
    }
}

/// The text of a value as it stands in JSON, without quotes.
fn plain(kind: Kind, datum: Datum<'_>, environment: &Environment) -> Result<String> {
    if category(kind) == Category::Moment
        && let Datum::Text(stored) = datum
    {
        return moment(kind, stored, environment);
    }
    let mut out = String::new();
    text_form::write(kind, datum, environment, &mut out)?;
    Ok(out)
}

/// ISO 8601 with a `T`, and of a timestamptz with the minutes of the offset.
fn moment(kind: Kind, stored: &str, environment: &Environment) -> Result<String> {
    let mut out = String::new();
    text_form::write(kind, Datum::Text(stored), environment, &mut out)?;
    let Some(at) = out.find(' ') else {
        // A date, or infinite.
        return Ok(out);
    };
    out.replace_range(at..=at, "T");
    if kind == Kind::Timestamptz
        && let Some(offset) = out.rfind(['+', '-'])
        && !out[offset..].contains(':')
    {
        out.push_str(":00");
    }
    Ok(out)
}

/// Appends what `to_json` makes of a value. `line` stands before the elements of an array but the first.
pub(crate) fn write_json(
    of: Type,
    datum: Datum<'_>,
    line: &str,
    environment: &Environment,
    out: &mut String,
) -> Result<()> {
    let kind = match (of, datum) {
        (_, Datum::Null) => {
            out.push_str("null");
            return Ok(());
        }
        (Type::Array(kind), Datum::Text(stored)) => return write_array(kind, stored, line, environment, out),
        (Type::Array(_), _) => return Err(crate::array::damaged()),
        (Type::Scalar(kind), _) => kind,
    };
    match (category(kind), datum) {
        (Category::Boolean, Datum::Integer(truth)) => out.push_str(if truth == 0 { "false" } else { "true" }),
        (Category::Json, Datum::Text(json)) => out.push_str(json),
        (category, _) => {
            let plain = plain(kind, datum, environment)?;
            if category == Category::Number && text::is_number(&plain) {
                out.push_str(&plain);
            } else {
                text::quote(&plain, out);
            }
        }
    }
    Ok(())
}

fn write_array(kind: Kind, stored: &str, line: &str, environment: &Environment, out: &mut String) -> Result<()> {
    let array = Array::read(kind, stored)?;
    write_level(kind, array.dimensions(), array.elements(), line, environment, out)
}

/// One level of an array: `dimensions` are its own and those below it, `elements` all that are in it.
fn write_level(
    kind: Kind,
    dimensions: &[usize],
    elements: &[Owned],
    line: &str,
    environment: &Environment,
    out: &mut String,
) -> Result<()> {
    out.push('[');
    if let Some((length, below)) = dimensions.split_first() {
        for (at, part) in elements.chunks((elements.len() / length).max(1)).enumerate() {
            if at > 0 {
                out.push_str(line);
            }
            if below.is_empty() {
                write_json(Type::Scalar(kind), part[0].as_datum(), line, environment, out)?;
            } else {
                // Only the outermost level is broken into lines.
                write_level(kind, below, part, ",", environment, out)?;
            }
        }
    }
    out.push(']');
    Ok(())
}

/// What `to_jsonb` makes of a value.
pub(crate) fn to_value(of: Type, datum: Datum<'_>, environment: &Environment) -> Result<Value<'static>> {
    let kind = match (of, datum) {
        (_, Datum::Null) => return Ok(Value::Null),
        (Type::Array(kind), Datum::Text(stored)) => {
            let array = Array::read(kind, stored)?;
            return values(kind, array.dimensions(), array.elements(), environment);
        }
        (Type::Array(_), _) => return Err(crate::array::damaged()),
        (Type::Scalar(kind), _) => kind,
    };
    match (category(kind), datum) {
        (Category::Boolean, Datum::Integer(truth)) => Ok(Value::Boolean(truth != 0)),
        (Category::Json, Datum::Text(json)) => Ok(into_static(Value::read(json)?)),
        (category, _) => {
            let plain = plain(kind, datum, environment)?;
            if category == Category::Number && text::is_number(&plain) {
                Ok(Value::Number(Cow::Owned(
                    super::number::canonical(&plain)?.into_owned(),
                )))
            } else {
                Ok(Value::String(Cow::Owned(plain)))
            }
        }
    }
}

fn values(kind: Kind, dimensions: &[usize], elements: &[Owned], environment: &Environment) -> Result<Value<'static>> {
    let Some((length, below)) = dimensions.split_first() else {
        return Ok(Value::Array(Vec::new()));
    };
    let parts = elements.chunks((elements.len() / length).max(1));
    let parts = parts.map(|part| {
        if below.is_empty() {
            to_value(Type::Scalar(kind), part[0].as_datum(), environment)
        } else {
            values(kind, below, part, environment)
        }
    });
    Ok(Value::Array(parts.collect::<Result<_>>()?))
}

/// With texts of its own.
pub(crate) fn into_static(value: Value<'_>) -> Value<'static> {
    match value {
        Value::Null => Value::Null,
        Value::Boolean(truth) => Value::Boolean(truth),
        Value::Number(number) => Value::Number(Cow::Owned(number.into_owned())),
        Value::String(string) => Value::String(Cow::Owned(string.into_owned())),
        Value::Array(elements) => Value::Array(elements.into_iter().map(into_static).collect()),
        Value::Object(members) => Value::Object(
            members
                .into_iter()
                .map(|(key, value)| (Cow::Owned(key.into_owned()), into_static(value)))
                .collect(),
        ),
    }
}

/// The text of a key. None for NULL.
pub(super) fn key(of: Type, datum: Datum<'_>, environment: &Environment) -> Result<Option<String>> {
    let kind = match of {
        _ if datum == Datum::Null => return Ok(None),
        Type::Scalar(Kind::Json | Kind::Jsonb) | Type::Array(_) => {
            return Err(ValueError::new(
                "22023",
                "key value must be scalar, not array, composite, or json",
            ));
        }
        Type::Scalar(kind) => kind,
    };
    if let (Kind::Bool, Datum::Integer(truth)) = (kind, datum) {
        return Ok(Some(if truth == 0 { "false" } else { "true" }.to_owned()));
    }
    plain(kind, datum, environment).map(Some)
}

pub(super) fn type_of(arguments: &Arguments<'_>, index: usize) -> Type {
    // Without a type it is a literal, which is text to these functions.
    arguments.types.get(index).copied().unwrap_or(Type::Scalar(Kind::Text))
}

fn of_pairs(count: usize, function: &str) -> Result<()> {
    if count.is_multiple_of(2) {
        return Ok(());
    }
    Err(
        ValueError::new("22023", "argument list must have even number of elements").with_hint(format!(
            "The arguments of {function}() must consist of alternating keys and values."
        )),
    )
}

pub(crate) fn json_build_object(arguments: Arguments<'_>) -> Result<Owned> {
    of_pairs(arguments.values.len(), "json_build_object")?;
    let mut out = "{".to_owned();
    for (at, pair) in arguments.values.chunks(2).enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        let Some(key) = key(type_of(&arguments, 2 * at), pair[0], arguments.environment)? else {
            return Err(
                ValueError::new("22023", format!("argument {} cannot be null", 2 * at + 1))
                    .with_hint("Object keys should be text."),
            );
        };
        text::quote(&key, &mut out);
        out.push_str(" : ");
        write_json(
            type_of(&arguments, 2 * at + 1),
            pair[1],
            ",",
            arguments.environment,
            &mut out,
        )?;
    }
    out.push('}');
    Ok(out.into())
}

pub(crate) fn json_build_array(arguments: Arguments<'_>) -> Result<Owned> {
    let mut out = "[".to_owned();
    for (at, value) in arguments.values.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        write_json(type_of(&arguments, at), *value, ",", arguments.environment, &mut out)?;
    }
    out.push(']');
    Ok(out.into())
}

pub(crate) fn jsonb_build_object(arguments: Arguments<'_>) -> Result<Owned> {
    of_pairs(arguments.values.len(), "jsonb_build_object")?;
    let mut members = Vec::new();
    for (at, pair) in arguments.values.chunks(2).enumerate() {
        let Some(key) = key(type_of(&arguments, 2 * at), pair[0], arguments.environment)? else {
            return Err(ValueError::new(
                "22023",
                format!("argument {}: key must not be null", 2 * at + 1),
            ));
        };
        members.push((
            Cow::Owned(key),
            to_value(type_of(&arguments, 2 * at + 1), pair[1], arguments.environment)?,
        ));
    }
    Value::object(members).stored()
}

pub(crate) fn jsonb_build_array(arguments: Arguments<'_>) -> Result<Owned> {
    let values = arguments.values.iter().enumerate();
    let values = values.map(|(at, value)| to_value(type_of(&arguments, at), *value, arguments.environment));
    Value::Array(values.collect::<Result<_>>()?).stored()
}

pub(crate) fn to_json(arguments: Arguments<'_>) -> Result<Owned> {
    let mut out = String::new();
    write_json(
        type_of(&arguments, 0),
        arguments.values[0],
        ",",
        arguments.environment,
        &mut out,
    )?;
    Ok(out.into())
}

pub(crate) fn to_jsonb(arguments: Arguments<'_>) -> Result<Owned> {
    to_value(type_of(&arguments, 0), arguments.values[0], arguments.environment)?.stored()
}

pub(crate) fn array_to_json_pretty(arguments: Arguments<'_>) -> Result<Owned> {
    let line = if arguments.truth(1)? { ",\n " } else { "," };
    let mut out = String::new();
    write_json(
        type_of(&arguments, 0),
        arguments.values[0],
        line,
        arguments.environment,
        &mut out,
    )?;
    Ok(out.into())
}

/// The pairs of `json_object(text[])`.
fn pairs_of_array(stored: &str) -> Result<Vec<(String, Option<String>)>> {
    let array = Array::read(Kind::Text, stored)?;
    match array.dimensions() {
        [] => {}
        [length] if length % 2 == 1 => return Err(ValueError::new("2202E", "array must have even number of elements")),
        [_] => {}
        [_, 2] => {}
        [_, _] => return Err(ValueError::new("2202E", "array must have two columns")),
        _ => return Err(ValueError::new("2202E", "wrong number of array subscripts")),
    }
    let pairs = array
        .elements()
        .chunks(2)
        .map(|pair| (as_text(&pair[0]), as_text(&pair[1])));
    pairs
        .map(|(key, value)| Ok((key.ok_or_else(null_key)?, value)))
        .collect()
}

/// The pairs of `json_object(text[], text[])`.
fn pairs_of_arrays(keys: &str, values: &str) -> Result<Vec<(String, Option<String>)>> {
    let (keys, values) = (Array::read(Kind::Text, keys)?, Array::read(Kind::Text, values)?);
    if keys.dimensions().len() > 1 || keys.dimensions().len() != values.dimensions().len() {
        return Err(ValueError::new("2202E", "wrong number of array subscripts"));
    }
    if keys.elements().len() != values.elements().len() {
        return Err(ValueError::new("2202E", "mismatched array dimensions"));
    }
    let pairs = keys.elements().iter().zip(values.elements());
    pairs
        .map(|(key, value)| Ok((as_text(key).ok_or_else(null_key)?, as_text(value))))
        .collect()
}

fn null_key() -> ValueError {
    ValueError::new("22004", "null value not allowed for object key")
}

fn as_text(value: &Owned) -> Option<String> {
    match value {
        Owned::Text(text) => Some(text.clone()),
        _ => None,
    }
}

fn json_of_pairs(pairs: &[(String, Option<String>)]) -> Owned {
    let mut out = "{".to_owned();
    for (at, (key, value)) in pairs.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        text::quote(key, &mut out);
        out.push_str(" : ");
        match value {
            Some(value) => text::quote(value, &mut out),
            None => out.push_str("null"),
        }
    }
    out.push('}');
    out.into()
}

fn jsonb_of_pairs(pairs: Vec<(String, Option<String>)>) -> Owned {
    let members = pairs.into_iter().map(|(key, value)| {
        let value = value.map_or(Value::Null, |value| Value::String(Cow::Owned(value)));
        (Cow::Owned(key), value)
    });
    Value::object(members.collect()).to_string().into()
}

pub(crate) fn json_object(arguments: Arguments<'_>) -> Result<Owned> {
    Ok(json_of_pairs(&pairs_of_array(arguments.text(0)?)?))
}

pub(crate) fn json_object_two_arg(arguments: Arguments<'_>) -> Result<Owned> {
    Ok(json_of_pairs(&pairs_of_arrays(arguments.text(0)?, arguments.text(1)?)?))
}

pub(crate) fn jsonb_object(arguments: Arguments<'_>) -> Result<Owned> {
    Ok(jsonb_of_pairs(pairs_of_array(arguments.text(0)?)?))
}

pub(crate) fn jsonb_object_two_arg(arguments: Arguments<'_>) -> Result<Owned> {
    Ok(jsonb_of_pairs(pairs_of_arrays(arguments.text(0)?, arguments.text(1)?)?))
}
