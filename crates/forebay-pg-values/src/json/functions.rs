//! The functions and operators of json and jsonb, by symbol.

use std::cmp::Ordering;
use std::collections::HashSet;

use super::jsonb::{self, Value};
use super::path::{self, Change};
use super::rows::part_text;
use super::text::{self, Shape};
use super::{build, number};
use crate::array::Array;
use crate::{Arguments, Function, Kind, Owned, Result, ValueError};

/// What reads the types of its arguments and the session's time zone.
const fn of_any(symbol: &'static str, body: crate::Body) -> Function {
    Function::new(symbol, body).typed().in_session()
}

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new("json_in", |a| {
        text::validate(a.text(0)?)?;
        Ok(a.text(0)?.into())
    }),
    Function::new("json_out", |a| Ok(a.text(0)?.into())),
    Function::new("jsonb_in", |a| Ok(jsonb::input(a.text(0)?)?.into())),
    Function::new("jsonb_out", |a| Ok(a.text(0)?.into())),
    // Parts.
    Function::new("json_object_field", |a| Ok(json_field(a)?.into())),
    Function::new("json_object_field_text", |a| {
        Ok(json_field(a)?.and_then(part_text).into())
    }),
    Function::new("json_array_element", |a| Ok(json_element(a)?.into())),
    Function::new("json_array_element_text", |a| {
        Ok(json_element(a)?.and_then(part_text).into())
    }),
    Function::new("json_extract_path", |a| Ok(json_path(a)?.into())),
    Function::new("json_extract_path_text", |a| {
        Ok(json_path(a)?.and_then(part_text).into())
    }),
    Function::new("jsonb_object_field", |a| {
        Ok(path::member(a.text(0)?, a.text(1)?)?.into())
    }),
    Function::new("jsonb_object_field_text", |a| {
        Ok(path::member(a.text(0)?, a.text(1)?)?.and_then(part_text).into())
    }),
    Function::new("jsonb_array_element", |a| Ok(jsonb_element(a)?.into())),
    Function::new("jsonb_array_element_text", |a| {
        Ok(jsonb_element(a)?.and_then(part_text).into())
    }),
    Function::new("jsonb_extract_path", |a| Ok(jsonb_path(a)?.into())),
    Function::new("jsonb_extract_path_text", |a| {
        Ok(jsonb_path(a)?.and_then(part_text).into())
    }),
    // What it is.
    Function::new("json_typeof", |a| Ok(text::shape(a.text(0)?)?.name().into())),
    Function::new("jsonb_typeof", |a| Ok(text::shape(a.text(0)?)?.name().into())),
    Function::new("json_array_length", array_length),
    Function::new("jsonb_array_length", array_length),
    // Comparisons.
    Function::new("jsonb_eq", |a| Ok(order(a)?.is_eq().into())),
    Function::new("jsonb_ne", |a| Ok(order(a)?.is_ne().into())),
    Function::new("jsonb_lt", |a| Ok(order(a)?.is_lt().into())),
    Function::new("jsonb_le", |a| Ok(order(a)?.is_le().into())),
    Function::new("jsonb_gt", |a| Ok(order(a)?.is_gt().into())),
    Function::new("jsonb_ge", |a| Ok(order(a)?.is_ge().into())),
    Function::new("jsonb_contains", |a| Ok(read(a, 0)?.contains(&read(a, 1)?).into())),
    Function::new("jsonb_contained", |a| Ok(read(a, 1)?.contains(&read(a, 0)?).into())),
    Function::new("jsonb_exists", |a| Ok(read(a, 0)?.exists(a.text(1)?).into())),
    Function::new("jsonb_exists_any", |a| {
        let document = read(a, 0)?;
        let there = document.keys();
        Ok(keys(a, 1)?
            .iter()
            .flatten()
            .any(|key| there.contains(key.as_str()))
            .into())
    }),
    Function::new("jsonb_exists_all", |a| {
        let document = read(a, 0)?;
        let there = document.keys();
        Ok(keys(a, 1)?
            .iter()
            .flatten()
            .all(|key| there.contains(key.as_str()))
            .into())
    }),
    // Changes.
    Function::new("jsonb_concat", |a| done(read(a, 0)?.concatenate(read(a, 1)?))),
    Function::new("jsonb_delete", |a| delete_keys(a, &[a.text(1)?.to_owned()])),
    Function::new("jsonb_delete_array", |a| {
        let keys = path_keys(a, 1)?;
        delete_keys(a, &keys.into_iter().flatten().collect::<Vec<_>>())
    }),
    Function::new("jsonb_delete_idx", delete_index),
    Function::new("jsonb_delete_path", |a| {
        change(a, &Change::Delete, "cannot delete path in scalar")
    }),
    Function::new("jsonb_set", set),
    Function::new("jsonb_set_lax", set_lax).called_on_null(),
    Function::new("jsonb_insert", |a| {
        let value = read(a, 2)?;
        let after = a.truth(3)?;
        change(a, &Change::Insert { value, after }, "cannot set path in scalar")
    }),
    Function::new("json_strip_nulls", |a| {
        text::parse(a.text(0)?, true, &mut text::Nothing)?;
        let mut out = String::new();
        strip_nulls(a.text(0)?, &mut out)?;
        Ok(out.into())
    }),
    Function::new("jsonb_strip_nulls", |a| done(read(a, 0)?.strip_nulls())),
    Function::new("jsonb_pretty", |a| {
        let mut out = String::new();
        read(a, 0)?.write_pretty(0, &mut out);
        Ok(out.into())
    }),
    // Made of other values.
    of_any("to_json", build::to_json),
    of_any("to_jsonb", build::to_jsonb),
    of_any("array_to_json", build::to_json),
    of_any("array_to_json_pretty", build::array_to_json_pretty),
    of_any("json_build_object", build::json_build_object).called_on_null(),
    of_any("json_build_array", build::json_build_array).called_on_null(),
    of_any("jsonb_build_object", build::jsonb_build_object).called_on_null(),
    of_any("jsonb_build_array", build::jsonb_build_array).called_on_null(),
    Function::new("json_build_object_noargs", |_| Ok("{}".into())),
    Function::new("json_build_array_noargs", |_| Ok("[]".into())),
    Function::new("jsonb_build_object_noargs", |_| Ok("{}".into())),
    Function::new("jsonb_build_array_noargs", |_| Ok("[]".into())),
    Function::new("json_object", build::json_object),
    Function::new("json_object_two_arg", build::json_object_two_arg),
    Function::new("jsonb_object", build::jsonb_object),
    Function::new("jsonb_object_two_arg", build::jsonb_object_two_arg),
    // Casts.
    Function::new("jsonb_bool", |a| match read(a, 0)? {
        Value::Boolean(truth) => Ok(truth.into()),
        other => Err(cannot_cast(&other, Kind::Bool)),
    }),
    Function::new("jsonb_numeric", |a| {
        number_of(a, Kind::Numeric, |number| Ok(number.into()))
    }),
    Function::new("jsonb_int2", |a| {
        to_integer(a, Kind::Int2, i64::from(i16::MIN), i64::from(i16::MAX))
    }),
    Function::new("jsonb_int4", |a| {
        to_integer(a, Kind::Int4, i64::from(i32::MIN), i64::from(i32::MAX))
    }),
    Function::new("jsonb_int8", |a| to_integer(a, Kind::Int8, i64::MIN, i64::MAX)),
    Function::new("jsonb_float4", |a| {
        number_of(a, Kind::Float4, |number| {
            let real: f32 = number.parse().unwrap_or(f32::INFINITY);
            to_real(number, f64::from(real), Kind::Float4)
        })
    }),
    Function::new("jsonb_float8", |a| {
        number_of(a, Kind::Float8, |number| {
            to_real(number, number.parse().unwrap_or(f64::INFINITY), Kind::Float8)
        })
    }),
];

fn read<'a>(arguments: Arguments<'a>, index: usize) -> Result<Value<'a>> {
    Value::read(arguments.text(index)?)
}

#[allow(clippy::needless_pass_by_value, reason = "the end of a chain of owned documents")]
fn done(value: Value<'_>) -> Result<Owned> {
    value.stored()
}

fn order(arguments: Arguments<'_>) -> Result<Ordering> {
    Ok(jsonb::compare(arguments.text(0)?, arguments.text(1)?))
}

fn json_field(arguments: Arguments<'_>) -> Result<Option<&str>> {
    text::validate_escapes(arguments.text(0)?)?;
    path::member(arguments.text(0)?, arguments.text(1)?)
}

fn json_element(arguments: Arguments<'_>) -> Result<Option<&str>> {
    text::validate_escapes(arguments.text(0)?)?;
    path::element(arguments.text(0)?, arguments.integer(1)?)
}

/// A scalar counts as an array of one here.
fn jsonb_element(arguments: Arguments<'_>) -> Result<Option<&str>> {
    let document = arguments.text(0)?;
    match text::shape(document)? {
        Shape::Object => Ok(None),
        Shape::Array => path::element(document, arguments.integer(1)?),
        _ => Ok(path::position(arguments.integer(1)?, 1).map(|_| document)),
    }
}

fn json_path(arguments: Arguments<'_>) -> Result<Option<&str>> {
    let Some(steps) = steps(arguments)? else {
        return Ok(None);
    };
    text::validate_escapes(arguments.text(0)?)?;
    path::find(
        arguments.text(0)?,
        &steps.iter().map(String::as_str).collect::<Vec<_>>(),
    )
}

fn jsonb_path(arguments: Arguments<'_>) -> Result<Option<&str>> {
    let Some(steps) = steps(arguments)? else {
        return Ok(None);
    };
    path::find(
        arguments.text(0)?,
        &steps.iter().map(String::as_str).collect::<Vec<_>>(),
    )
}

/// A path to look along: nothing is there if a step is NULL.
fn steps(arguments: Arguments<'_>) -> Result<Option<Vec<String>>> {
    Ok(keys(arguments, 1)?.into_iter().collect())
}

/// The elements of a text[], of however many dimensions.
fn keys(arguments: Arguments<'_>, index: usize) -> Result<Vec<Option<String>>> {
    let array = Array::read(Kind::Text, arguments.text(index)?)?;
    let elements = array.into_elements().into_iter();
    Ok(elements
        .map(|element| match element {
            Owned::Text(text) => Some(text),
            _ => None,
        })
        .collect())
}

/// The elements of a text[] of one dimension.
fn path_keys(arguments: Arguments<'_>, index: usize) -> Result<Vec<Option<String>>> {
    if Array::read(Kind::Text, arguments.text(index)?)?.dimensions().len() > 1 {
        return Err(ValueError::new("2202E", "wrong number of array subscripts"));
    }
    keys(arguments, index)
}

fn array_length(arguments: Arguments<'_>) -> Result<Owned> {
    let document = arguments.text(0)?;
    match text::shape(document)? {
        Shape::Array => {
            let length = text::elements(document)?.len();
            Ok(i64::try_from(length)
                .map_err(|_| ValueError::out_of_range("integer"))?
                .into())
        }
        Shape::Object => Err(ValueError::new("22023", "cannot get array length of a non-array")),
        _ => Err(ValueError::new("22023", "cannot get array length of a scalar")),
    }
}

fn delete_keys(arguments: Arguments<'_>, keys: &[String]) -> Result<Owned> {
    let keys: HashSet<&str> = keys.iter().map(String::as_str).collect();
    let is_named = |name: &str| keys.contains(name);
    done(match read(arguments, 0)? {
        Value::Object(members) => Value::Object(members.into_iter().filter(|(key, _)| !is_named(key)).collect()),
        Value::Array(elements) => Value::Array(
            elements
                .into_iter()
                .filter(|element| !matches!(element, Value::String(string) if is_named(string)))
                .collect(),
        ),
        _ => return Err(ValueError::new("22023", "cannot delete from scalar")),
    })
}

fn delete_index(arguments: Arguments<'_>) -> Result<Owned> {
    match read(arguments, 0)? {
        Value::Array(mut elements) => {
            if let Some(at) = path::position(arguments.integer(1)?, elements.len()) {
                elements.remove(at);
            }
            done(Value::Array(elements))
        }
        Value::Object(_) => Err(ValueError::new(
            "22023",
            "cannot delete from object using integer index",
        )),
        _ => Err(ValueError::new("22023", "cannot delete from scalar")),
    }
}

fn change(arguments: Arguments<'_>, what: &Change<'_>, of_scalar: &str) -> Result<Owned> {
    let path = path_keys(arguments, 1)?;
    let document = read(arguments, 0)?;
    if document.is_scalar() {
        return Err(ValueError::new("22023", of_scalar));
    }
    let nothing_to_change = match &document {
        Value::Array(elements) => elements.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    };
    // Of an empty document nothing can be changed, so that the path is not looked at.
    if nothing_to_change && matches!(what, Change::Delete | Change::Set { create: false, .. }) {
        return done(document);
    }
    let path: Vec<Option<&str>> = path.iter().map(Option::as_deref).collect();
    done(path::change(document, &path, 0, what)?)
}

fn set(arguments: Arguments<'_>) -> Result<Owned> {
    let (value, create) = (read(arguments, 2)?, arguments.truth(3)?);
    change(arguments, &Change::Set { value, create }, "cannot set path in scalar")
}

fn set_lax(arguments: Arguments<'_>) -> Result<Owned> {
    if arguments.is_null(0) || arguments.is_null(1) || arguments.is_null(3) {
        return Ok(Owned::Null);
    }
    let of_null = |_| {
        ValueError::new(
            "22023",
            "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\"",
        )
    };
    if arguments.is_null(4) {
        return Err(of_null(()));
    }
    if !arguments.is_null(2) {
        return set(arguments);
    }
    match arguments.text(4)? {
        "raise_exception" => Err(ValueError::new("22004", "JSON value must not be null")
            .with_detail("Exception was raised because null_value_treatment is \"raise_exception\".")
            .with_hint(
                "To avoid, either change the null_value_treatment argument or ensure that an SQL NULL is not passed.",
            )),
        "use_json_null" => {
            let create = arguments.truth(3)?;
            let value = Value::Null;
            change(arguments, &Change::Set { value, create }, "cannot set path in scalar")
        }
        "delete_key" => change(arguments, &Change::Delete, "cannot delete path in scalar"),
        "return_target" => Ok(arguments.text(0)?.into()),
        _ => Err(of_null(())),
    }
}

/// Without white space, and without the members of objects that are null.
fn strip_nulls(document: &str, out: &mut String) -> Result<()> {
    match text::shape(document)? {
        Shape::Object => {
            out.push('{');
            let mut first = true;
            for (key, value) in text::members(document)? {
                if text::shape(value)? == Shape::Null {
                    continue;
                }
                if !std::mem::replace(&mut first, false) {
                    out.push(',');
                }
                text::quote(&text::unquote(key), out);
                out.push(':');
                strip_nulls(value, out)?;
            }
            out.push('}');
        }
        Shape::Array => {
            out.push('[');
            for (at, element) in text::elements(document)?.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                strip_nulls(element, out)?;
            }
            out.push(']');
        }
        Shape::String => text::quote(&text::unquote(text::trim(document)), out),
        _ => out.push_str(text::trim(document)),
    }
    Ok(())
}

fn cannot_cast(value: &Value<'_>, kind: Kind) -> ValueError {
    let what = match value.shape() {
        Shape::Number => "numeric",
        shape => shape.name(),
    };
    ValueError::new(
        "22023",
        format!("cannot cast jsonb {what} to type {}", kind.display_name()),
    )
}

fn number_of(arguments: Arguments<'_>, kind: Kind, convert: impl FnOnce(&str) -> Result<Owned>) -> Result<Owned> {
    match read(arguments, 0)? {
        Value::Number(number) => convert(&number),
        other => Err(cannot_cast(&other, kind)),
    }
}

fn to_integer(arguments: Arguments<'_>, kind: Kind, least: i64, most: i64) -> Result<Owned> {
    number_of(arguments, kind, |number| match number::to_integer(number) {
        Some(integer) if (least..=most).contains(&integer) => Ok(integer.into()),
        _ => Err(ValueError::out_of_range(kind.display_name())),
    })
}

/// A number of more digits than a float has range for is none of its values.
fn to_real(number: &str, real: f64, kind: Kind) -> Result<Owned> {
    let is_zero = crate::numeric::compare(number, "0").is_eq();
    if real.is_infinite() || (real == 0.0 && !is_zero) {
        return Err(ValueError::new(
            "22003",
            format!("\"{number}\" is out of range for type {}", kind.display_name()),
        ));
    }
    Ok(real.into())
}
