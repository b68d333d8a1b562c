//! Arrays in both formats: [`forebay_pg_values::array`]'s, each element as a column of its type would be.
//!
//! Promises: an element that is no value of its type is refused, as it is in a column. Knows no scalars.

use bytes::{BufMut, BytesMut};
use forebay_pg_values::{Datum, Environment, Kind, ValueError, array};
use forebay_write::Value;
use postgres_types::Type;
use rusqlite::types::ValueRef;

use super::binary;
use super::form::Form;
use super::refusal::{refused, unfit};
use super::stored::canonical;
use super::text::valid_text;
use forebay_pg_wire::error::{WireError, sqlstate};

/// The stored form of an array sent in binary format.
pub(super) fn decode(kind: &Type, element: Kind, bytes: &[u8], environment: &Environment) -> Result<Value, WireError> {
    let of_elements = element_type(kind);
    let mut failure = None;
    array::decode(element, bytes, |bytes| {
        binary::decode(of_elements, Form::Scalar(element), bytes, environment)
            .map_err(|error| keep(error, &mut failure))
    })
    .map(Value::Text)
    .map_err(|error| failure.unwrap_or_else(|| error.into()))
}

/// Appends the literal of a stored array.
pub(super) fn encode_text(
    kind: &Type,
    element: Kind,
    value: ValueRef<'_>,
    environment: &Environment,
    out: &mut BytesMut,
) -> Result<(), WireError> {
    let stored = match checked(kind, element, value, environment) {
        Ok(stored) => stored,
        // Arrays of the catalog whose subscripts do not begin at 1 have no stored form, and pass.
        Err(error) => match value {
            ValueRef::Text(text) if is_bounded(text) && error.sqlstate == sqlstate::FEATURE_NOT_SUPPORTED => {
                out.put_slice(text);
                return Ok(());
            }
            _ => return Err(error),
        },
    };
    let mut text = String::with_capacity(stored.len());
    array::write(element, &stored, environment, &mut text)?;
    out.put_slice(text.as_bytes());
    Ok(())
}

/// Appends a stored array in binary format.
pub(super) fn encode_binary(
    kind: &Type,
    element: Kind,
    value: ValueRef<'_>,
    environment: &Environment,
    out: &mut BytesMut,
) -> Result<(), WireError> {
    let stored = checked(kind, element, value, environment)?;
    let of_elements = element_type(kind);
    let mut failure = None;
    let mut bytes = Vec::new();
    array::encode(element, &stored, &mut bytes, |datum, out| {
        binary::encode(of_elements, Form::Scalar(element), reference(datum), out)
            .map_err(|error| keep(error, &mut failure))
    })
    .map_err(|error| failure.unwrap_or_else(|| error.into()))?;
    out.put_slice(&bytes);
    Ok(())
}

/// The stored form of what a column holds, all of whose elements are values of their type.
fn checked(kind: &Type, element: Kind, value: ValueRef<'_>, environment: &Environment) -> Result<String, WireError> {
    let ValueRef::Text(text) = value else {
        return Err(unfit(kind, value));
    };
    let text = valid_text(text)?;
    if text.starts_with('{') || is_bounded(text.as_bytes()) {
        return array::parse(element, -1, text, environment).map_err(|error| match error.sqlstate {
            sqlstate::FEATURE_NOT_SUPPORTED => refused(error, text),
            _ => unfit(kind, value).with_detail(error.message),
        });
    }
    let of_elements = element_type(kind);
    let mut failure = None;
    array::convert_elements(element, element, text, |datum| {
        canonical(of_elements, element, reference(datum)).map_err(|error| keep(error, &mut failure))
    })
    .map_err(|error| {
        failure.unwrap_or_else(|| match error.sqlstate {
            sqlstate::FEATURE_NOT_SUPPORTED => error.into(),
            _ => unfit(kind, value),
        })
    })
}

/// `[0:1]={1,2}`; in JSON such signs stand in a string only.
fn is_bounded(text: &[u8]) -> bool {
    let bounds = text.windows(3).position(|window| window == b"]={");
    text.starts_with(b"[") && bounds.is_some_and(|end| !text[..end].contains(&b'"'))
}

fn element_type(kind: &Type) -> &Type {
    match kind.kind() {
        postgres_types::Kind::Array(element) => element,
        _ => kind,
    }
}

fn reference(datum: Datum<'_>) -> ValueRef<'_> {
    match datum {
        Datum::Null => ValueRef::Null,
        Datum::Integer(integer) => ValueRef::Integer(integer),
        Datum::Real(real) => ValueRef::Real(real),
        Datum::Text(text) => ValueRef::Text(text.as_bytes()),
        Datum::Blob(bytes) => ValueRef::Blob(bytes),
    }
}

/// The error of an element on its way through those that know no wire: it is kept, and another one stops them.
fn keep(error: WireError, kept: &mut Option<WireError>) -> ValueError {
    let stop = ValueError::new(error.sqlstate, "an element is refused");
    *kept = Some(error);
    stop
}
