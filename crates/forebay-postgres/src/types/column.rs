//! One parameter of many rows, as one array: what `unnest($1, $2, …)` takes apart again.
//!
//! Promises: the array holds the rows' values in their order, NULLs included, each as its own parameter would have been read.
//! Encoded straight from the rows, without a copy or an allocation a row.

use std::{error::Error, fmt};

use bytes::{BufMut, BytesMut};
use postgres_types::{IsNull, ToSql, Type, to_sql_checked};

use super::element::Element;
use super::kind::{Misfit, member_of};
use forebay_write::Value;

/// The values of all rows for one parameter, of the type that [`array_of`] tells. Every value must fit ([`fits_column`]):
/// encoding fails otherwise.
#[derive(Clone)]
pub(crate) struct Column<I>(I);

impl<'a, I: Iterator<Item = &'a Value> + Clone> Column<I> {
    /// The column of these values, one a row.
    pub(crate) fn new(values: I) -> Self {
        Self(values)
    }
}

/// The type of a [`Column`] of such elements, if they can travel in one: built-in types with a built-in array type, all of whose
/// values have a binary form that is written here.
pub(crate) fn array_of(element: &Type) -> Option<Type> {
    Some(match *element {
        Type::BOOL => Type::BOOL_ARRAY,
        Type::INT2 => Type::INT2_ARRAY,
        Type::INT4 => Type::INT4_ARRAY,
        Type::INT8 => Type::INT8_ARRAY,
        Type::OID => Type::OID_ARRAY,
        Type::FLOAT4 => Type::FLOAT4_ARRAY,
        Type::FLOAT8 => Type::FLOAT8_ARRAY,
        Type::NUMERIC => Type::NUMERIC_ARRAY,
        Type::TEXT => Type::TEXT_ARRAY,
        Type::VARCHAR => Type::VARCHAR_ARRAY,
        Type::BPCHAR => Type::BPCHAR_ARRAY,
        Type::JSON => Type::JSON_ARRAY,
        Type::JSONB => Type::JSONB_ARRAY,
        Type::BYTEA => Type::BYTEA_ARRAY,
        Type::UUID => Type::UUID_ARRAY,
        Type::DATE => Type::DATE_ARRAY,
        Type::TIME => Type::TIME_ARRAY,
        Type::TIMESTAMP => Type::TIMESTAMP_ARRAY,
        Type::TIMESTAMPTZ => Type::TIMESTAMPTZ_ARRAY,
        _ => return None,
    })
}

/// Whether a value can be an element of a [`Column`] of that element type. A text that only the server can read (`tomorrow`,
/// ` 1 `) cannot: it must be sent as a parameter of its own.
pub(crate) fn fits_column(element: &Type, value: &Value) -> bool {
    Element::of(element).is_some_and(|element| element.fits(value))
}

impl<'a, I: Iterator<Item = &'a Value> + Clone> ToSql for Column<I> {
    fn to_sql(&self, array: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let member = member_of(array).ok_or_else(|| Misfit(format!("{array} is no array")))?;
        let element =
            Element::of(member).ok_or_else(|| Misfit(format!("values of type {member} cannot travel in an array")))?;
        let values = self.0.clone();
        // Enough for numbers; for the rest, a beginning.
        out.reserve(20 + values.size_hint().0 * 12);
        let misfit = |value: &Value| Misfit::of(value, member);
        // The commonest are spelled out, so that each has a loop of its own.
        match element {
            Element::Int4 => rows(values, member, out, |value, out| {
                Element::Int4.field(value, out).ok_or_else(|| misfit(value))
            }),
            Element::Int8 => rows(values, member, out, |value, out| {
                Element::Int8.field(value, out).ok_or_else(|| misfit(value))
            }),
            Element::Text => rows(values, member, out, |value, out| {
                Element::Text.field(value, out).ok_or_else(|| misfit(value))
            }),
            other => rows(values, member, out, |value, out| {
                other.field(value, out).ok_or_else(|| misfit(value))
            }),
        }?;
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        // `to_sql` says what is wrong in better words.
        true
    }

    to_sql_checked!();
}

/// An array of one dimension. How many values there are is known when all have been written.
#[inline]
fn rows<'a>(
    values: impl Iterator<Item = &'a Value>,
    member: &Type,
    out: &mut BytesMut,
    field: impl Fn(&Value, &mut BytesMut) -> Result<(), Misfit>,
) -> Result<(), Misfit> {
    out.put_i32(1);
    // "May hold NULLs": the server looks for itself.
    out.put_i32(1);
    out.put_u32(member.oid());
    let count_at = out.len();
    out.put_i32(0);
    // Elements are counted from 1.
    out.put_i32(1);
    let mut count = 0_usize;
    for value in values {
        field(value, out)?;
        count += 1;
    }
    let count = i32::try_from(count).map_err(|_| Misfit(format!("{count} rows are too many for an array")))?;
    out[count_at..count_at + size_of::<i32>()].copy_from_slice(&count.to_be_bytes());
    Ok(())
}

impl<I> fmt::Debug for Column<I> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Column").finish_non_exhaustive()
    }
}
