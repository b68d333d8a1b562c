//! Kind: what a type is to whoever reads or writes its values, and what messages call both.

use postgres_types::{Kind, Type};

use forebay_write::Value;
use forebay_write::moment::Utc;

/// A value that its parameter's type does not take: the message says which and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Misfit(pub(super) String);

impl Misfit {
    pub(super) fn of(value: &Value, taker: &Type) -> Self {
        let wanted = match *base_of(taker) {
            Type::BOOL => ": 0, 1 or text is wanted",
            Type::TIMESTAMP | Type::TIMESTAMPTZ if matches!(value, Value::Timestamp(_)) => {
                ": it has those from 4714 BC to 294276"
            }
            Type::DATE | Type::TIME | Type::TIMETZ | Type::TIMESTAMP | Type::TIMESTAMPTZ | Type::INTERVAL => {
                ": text is wanted"
            }
            Type::UUID => ": text or 16 bytes are wanted",
            Type::BYTEA => ": bytes are wanted",
            _ => "",
        };
        Self(format!(
            "{} cannot be of type {}{wanted}",
            kind_of(value),
            name_of(taker)
        ))
    }
}

/// What a message calls the value; texts, bytes and lists may be long or secret and are not shown.
pub(super) fn kind_of(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(integer) => format!("the integer {integer}"),
        Value::Unsigned(integer) => format!("the integer {integer}"),
        Value::Timestamp(moment) => format!("a moment of the year {}", Utc::of(*moment).year),
        Value::Real(real) => format!("the real number {real:?}"),
        Value::Text(text) if text.contains('\0') => "text with a NUL character".to_owned(),
        Value::Text(_) => "this text".to_owned(),
        Value::Blob(bytes) => format!("a blob of {} bytes", bytes.len()),
        Value::Array(_) => "an array".to_owned(),
    }
}

/// What a message calls the type: as a user would write it.
pub(super) fn name_of(named: &Type) -> String {
    match named.kind() {
        Kind::Array(member) if !is_vector(named) => format!("{}[]", name_of(member)),
        _ => named.name().to_owned(),
    }
}

/// The type under all domains.
pub(super) fn base_of(domain: &Type) -> &Type {
    let mut base = domain;
    while let Kind::Domain(under) = base.kind() {
        base = under;
    }
    base
}

/// The type of the elements, if it is an array.
pub(super) fn member_of(array: &Type) -> Option<&Type> {
    match array.kind() {
        Kind::Array(member) => Some(member),
        _ => None,
    }
}

/// Arrays to a reader, but written without braces and with elements counted from 0.
pub(super) fn is_vector(array: &Type) -> bool {
    matches!(*array, Type::INT2_VECTOR | Type::OID_VECTOR)
}

/// Text, of whichever length and collation.
pub(super) fn is_text(text: &Type) -> bool {
    matches!(
        *text,
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN | Type::CSTRING
    ) || matches!(text.kind(), Kind::Enum(_))
        || (matches!(text.kind(), Kind::Simple) && text.name() == "citext")
}
