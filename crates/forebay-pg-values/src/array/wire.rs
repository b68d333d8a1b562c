//! PostgreSQL's binary format of arrays (`array_send`, `array_recv`): number of dimensions, whether there are NULLs, the elements' OID,
//! for each dimension its length and lower bound, and then for each element its length (-1 for NULL) and bytes; all big-endian int4s.
//!
//! Promises: what a peer sends is not trusted; elements' own format is the caller's.

use super::text::too_many;
use super::{Array, DIMENSIONS_MAX, check_count};
use crate::{Datum, Kind, Owned, Result, ValueError};

/// What stands before the elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dimensions {
    /// The length of each dimension.
    pub lengths: Vec<usize>,
    /// Whether an element is NULL.
    pub has_null: bool,
}

/// The dimensions of a stored array.
pub fn read_dimensions(kind: Kind, stored: &str) -> Result<Dimensions> {
    let array = Array::read(kind, stored)?;
    Ok(Dimensions {
        has_null: array.elements.contains(&Owned::Null),
        lengths: array.dimensions,
    })
}

/// Appends the binary format of a stored array; `element` appends that of an element, without its length.
pub fn encode(
    kind: Kind,
    stored: &str,
    out: &mut Vec<u8>,
    mut element: impl FnMut(Datum<'_>, &mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    let array = Array::read(kind, stored)?;
    let has_null = array.elements.contains(&Owned::Null);
    put(out, array.dimensions.len())?;
    put(out, usize::from(has_null))?;
    out.extend_from_slice(&kind.oid().to_be_bytes());
    for length in &array.dimensions {
        put(out, *length)?;
        put(out, 1)?;
    }
    for value in &array.elements {
        if *value == Owned::Null {
            out.extend_from_slice(&(-1_i32).to_be_bytes());
            continue;
        }
        let at = out.len();
        out.extend_from_slice(&[0; 4]);
        element(value.as_datum(), out)?;
        let length = i32::try_from(out.len() - at - 4).map_err(|_| too_long())?;
        out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

fn put(out: &mut Vec<u8>, number: usize) -> Result<()> {
    out.extend_from_slice(&i32::try_from(number).map_err(|_| too_long())?.to_be_bytes());
    Ok(())
}

fn too_long() -> ValueError {
    ValueError::new("54000", "array size exceeds the maximum allowed (134217727)")
}

/// Reads the binary format; the stored form. `element` reads an element's bytes.
pub fn decode(kind: Kind, bytes: &[u8], mut element: impl FnMut(&[u8]) -> Result<Owned>) -> Result<String> {
    let mut rest = bytes;
    let count = take(&mut rest)?;
    let count = usize::try_from(count).map_err(|_| protocol(format!("invalid number of dimensions: {count}")))?;
    if count > DIMENSIONS_MAX {
        return Err(too_many(count));
    }
    let flags = take(&mut rest)?;
    if flags != 0 && flags != 1 {
        return Err(protocol("invalid array flags"));
    }
    let oid = take(&mut rest)?;
    if oid.cast_unsigned() != kind.oid() {
        return Err(ValueError::new("42804", "wrong element type"));
    }
    let mut lengths = Vec::new();
    let mut items: usize = 1;
    for _ in 0..count {
        let length = take(&mut rest)?;
        let lower = take(&mut rest)?;
        let length = usize::try_from(length).map_err(|_| too_long())?;
        if lower != 1 && length != 0 {
            return Err(ValueError::unsupported("arrays whose lower bound is not 1 are"));
        }
        items = items
            .checked_mul(length)
            .filter(|items| *items <= 134_217_727)
            .ok_or_else(too_long)?;
        lengths.push(length);
    }
    check_count(items)?;
    let mut elements = Vec::new();
    if count > 0 {
        for _ in 0..items {
            let length = take(&mut rest)?;
            if length == -1 {
                elements.push(Owned::Null);
                continue;
            }
            let length = usize::try_from(length).ok().filter(|length| *length <= rest.len());
            let (value, behind) = rest.split_at(length.ok_or_else(|| protocol("insufficient data left in message"))?);
            rest = behind;
            elements.push(element(value)?);
        }
    }
    if !rest.is_empty() {
        return Err(protocol("incorrect binary data format"));
    }
    if elements.is_empty() {
        return Array::empty().stored(kind);
    }
    Array::new(lengths, elements).stored(kind)
}

fn take(rest: &mut &[u8]) -> Result<i32> {
    let (head, behind) = rest
        .split_first_chunk()
        .ok_or_else(|| protocol("insufficient data left in message"))?;
    *rest = behind;
    Ok(i32::from_be_bytes(*head))
}

fn protocol(message: impl Into<String>) -> ValueError {
    ValueError::new("22P03", message)
}
