//! Lines of COPY's CSV: values between delimiters, quoted where they would be misread.
//!
//! Promises: a value that was written is read back as it was, NULL and the empty string apart. Knows nothing of the values' types.

use bytes::{BufMut, BytesMut};

use super::{Column, bad_format};
use crate::sql::Copy;
use forebay_pg_wire::error::WireError;

/// Cuts a line into values, each with whether it was quoted.
pub(super) fn split(line: &[u8], copy: &Copy) -> Result<Vec<(Vec<u8>, bool)>, WireError> {
    let mut fields = Vec::new();
    let mut at = 0;
    loop {
        let (mut value, mut quoted, mut inside) = (Vec::new(), false, false);
        let ended = loop {
            let Some(&byte) = line.get(at) else {
                if inside {
                    return Err(bad_format("unterminated CSV quoted field"));
                }
                break true;
            };
            at += 1;
            if !inside {
                if byte == copy.delimiter {
                    break false;
                }
                if byte == copy.quote {
                    (quoted, inside) = (true, true);
                } else {
                    value.push(byte);
                }
                continue;
            }
            if byte == copy.escape
                && let Some(&next) = line.get(at)
                && (next == copy.escape || next == copy.quote)
            {
                value.push(next);
                at += 1;
                continue;
            }
            if byte == copy.quote {
                inside = false;
            } else {
                value.push(byte);
            }
        };
        fields.push((value, quoted));
        if ended {
            return Ok(fields);
        }
    }
}

/// The values of a line, some of them NULL.
pub(super) fn values(line: &[u8], copy: &Copy, columns: &[Column]) -> Result<Vec<Option<Vec<u8>>>, WireError> {
    let null = copy.null.as_bytes();
    let fields = split(line, copy)?;
    Ok(fields
        .into_iter()
        .enumerate()
        .map(|(place, (value, quoted))| {
            let column = columns.get(place);
            let forced = |of: fn(&Column) -> bool| column.is_some_and(of);
            let is_null = value == null
                && if quoted {
                    forced(|column| column.force_null)
                } else {
                    !forced(|column| column.force_not_null)
                };
            (!is_null).then_some(value)
        })
        .collect())
}

/// Appends a value; `alone` says that it is the only one of its line.
pub(super) fn write(value: &[u8], copy: &Copy, force: bool, alone: bool, out: &mut BytesMut) {
    let quotes = force
        || value == copy.null.as_bytes()
        || (alone && value == b"\\.")
        || value
            .iter()
            .any(|byte| *byte == copy.delimiter || *byte == copy.quote || matches!(byte, b'\n' | b'\r'));
    if !quotes {
        out.put_slice(value);
        return;
    }
    out.put_u8(copy.quote);
    for &byte in value {
        if byte == copy.quote || byte == copy.escape {
            out.put_u8(copy.escape);
        }
        out.put_u8(byte);
    }
    out.put_u8(copy.quote);
}
