//! The functions of json and jsonb that give rows.
//!
//! Promises: the rows stand in the order of the document; parts of a json keep their text.

use super::Flavor;
use super::text::{self, Shape};
use crate::{Owned, Result, ValueError};

fn wrong(message: &str) -> ValueError {
    ValueError::new("22023", message)
}

/// What the document is. PostgreSQL has read a scalar before it sees that it is one, so that its escapes count first.
fn shape(flavor: Flavor, document: &str, with_escapes: bool) -> Result<Shape> {
    let shape = text::shape(document)?;
    if flavor == Flavor::Json && with_escapes && !matches!(shape, Shape::Object | Shape::Array) {
        text::validate_escapes(document)?;
    }
    Ok(shape)
}

fn members(flavor: Flavor, document: &str, function: &str) -> Result<Vec<(String, String)>> {
    let shape = shape(flavor, document, true)?;
    if shape != Shape::Object {
        return Err(match (flavor, shape) {
            (Flavor::Jsonb, _) => wrong(&format!("cannot call {function} on a non-object")),
            (Flavor::Json, Shape::Array) => wrong("cannot deconstruct an array as an object"),
            (Flavor::Json, _) => wrong("cannot deconstruct a scalar"),
        });
    }
    if flavor == Flavor::Json {
        text::validate_escapes(document)?;
    }
    let members = text::members(document)?.into_iter();
    let members = members.map(|(key, value)| (text::unquote(key).into_owned(), value.to_owned()));
    Ok(members.collect())
}

/// What `->>` gives of a part.
pub(crate) fn part_text(part: &str) -> Option<String> {
    match part.as_bytes().first() {
        Some(b'n') => None,
        Some(b'"') => Some(text::unquote(part).into_owned()),
        _ => Some(part.to_owned()),
    }
}

/// `json_each`, `jsonb_each`: keys and values.
pub fn each(flavor: Flavor, document: &str) -> Result<Vec<(String, Owned)>> {
    let members = members(flavor, document, "jsonb_each")?.into_iter();
    Ok(members.map(|(key, value)| (key, value.into())).collect())
}

/// `json_each_text`, `jsonb_each_text`: keys and the texts of values.
pub fn each_text(flavor: Flavor, document: &str) -> Result<Vec<(String, Owned)>> {
    let members = members(flavor, document, "jsonb_each_text")?.into_iter();
    Ok(members.map(|(key, value)| (key, part_text(&value).into())).collect())
}

/// `json_object_keys`, `jsonb_object_keys`.
pub fn object_keys(flavor: Flavor, document: &str) -> Result<Vec<String>> {
    let function = match flavor {
        Flavor::Json => "json_object_keys",
        Flavor::Jsonb => "jsonb_object_keys",
    };
    match shape(flavor, document, true)? {
        Shape::Object => {}
        Shape::Array => return Err(wrong(&format!("cannot call {function} on an array"))),
        _ => return Err(wrong(&format!("cannot call {function} on a scalar"))),
    }
    Ok(members(flavor, document, function)?
        .into_iter()
        .map(|(key, _)| key)
        .collect())
}

fn elements<'a>(flavor: Flavor, document: &'a str, function: &str) -> Result<Vec<&'a str>> {
    match (shape(flavor, document, function.ends_with("text"))?, flavor) {
        (Shape::Array, _) => text::elements(document),
        (Shape::Object, Flavor::Json) => Err(wrong(&format!("cannot call {function} on a non-array"))),
        (_, Flavor::Json) => Err(wrong(&format!("cannot call {function} on a scalar"))),
        (Shape::Object, Flavor::Jsonb) => Err(wrong("cannot extract elements from an object")),
        (_, Flavor::Jsonb) => Err(wrong("cannot extract elements from a scalar")),
    }
}

/// `json_array_elements`, `jsonb_array_elements`.
pub fn array_elements(flavor: Flavor, document: &str) -> Result<Vec<Owned>> {
    let elements = elements(flavor, document, "json_array_elements")?;
    Ok(elements.into_iter().map(Owned::from).collect())
}

/// `json_array_elements_text`, `jsonb_array_elements_text`.
pub fn array_elements_text(flavor: Flavor, document: &str) -> Result<Vec<Owned>> {
    let elements = elements(flavor, document, "json_array_elements_text")?;
    if flavor == Flavor::Json {
        text::validate_escapes(document)?;
    }
    Ok(elements.into_iter().map(|element| part_text(element).into()).collect())
}
