//! Array literals: lists as the text that the server reads.
//!
//! Knows PostgreSQL's notation of arrays; how an element is spelled, [`Element`] knows.

use bytes::{BufMut, BytesMut};
use postgres_types::Type;

use super::element::Element;
use super::kind::base_of;
use forebay_write::Value;

/// `{1,NULL,{"text"}}`: every value must be one that the elements' type takes.
pub(super) fn array(values: &[Value], member: &Type, out: &mut BytesMut) {
    // The one built-in type whose values hold commas of their own.
    let delimiter = if *base_of(member) == Type::BOX { b';' } else { b',' };
    out.put_u8(b'{');
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            out.put_u8(delimiter);
        }
        match value {
            Value::Null => out.put_slice(b"NULL"),
            Value::Array(inner) => array(inner, member, out),
            Value::Text(text) => quoted(text.as_bytes(), out),
            Value::Blob(_) | Value::Integer(_) | Value::Unsigned(_) | Value::Real(_) | Value::Timestamp(_) => {
                let mut spelled = BytesMut::new();
                Element::of(base_of(member))
                    // Digits, for all the types that are only known to take numbers.
                    .unwrap_or(Element::Text)
                    .spell(value, &mut spelled);
                quoted(&spelled, out);
            }
        }
    }
    out.put_u8(b'}');
}

fn quoted(text: &[u8], out: &mut BytesMut) {
    out.reserve(text.len() + 2);
    out.put_u8(b'"');
    for &byte in text {
        if matches!(byte, b'"' | b'\\') {
            out.put_u8(b'\\');
        }
        out.put_u8(byte);
    }
    out.put_u8(b'"');
}
