//! How values of a type look on the wire.
//!
//! Knows types; nothing of their values.

use forebay_pg_values::Kind;
use postgres_types::Type;

/// How a type's values look on the wire.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Scalar(Kind),
    /// Of elements of that kind.
    Array(Kind),
    /// An OID under a name of its own: a number in binary format, a number or a name in text format.
    OidAlias,
    Void,
    Other,
}

pub(super) fn form(kind: &Type) -> Form {
    Form::Scalar(match *kind {
        Type::INT8 => Kind::Int8,
        Type::TEXT => Kind::Text,
        Type::INT4 => Kind::Int4,
        Type::BOOL => Kind::Bool,
        Type::VARCHAR => Kind::Varchar,
        Type::BPCHAR => Kind::Bpchar,
        Type::NAME => Kind::Name,
        Type::UNKNOWN => Kind::Unknown,
        Type::INT2 => Kind::Int2,
        Type::OID => Kind::Oid,
        Type::FLOAT8 => Kind::Float8,
        Type::FLOAT4 => Kind::Float4,
        Type::BYTEA => Kind::Bytea,
        Type::NUMERIC => Kind::Numeric,
        Type::DATE => Kind::Date,
        Type::TIME => Kind::Time,
        Type::TIMETZ => Kind::Timetz,
        Type::TIMESTAMP => Kind::Timestamp,
        Type::TIMESTAMPTZ => Kind::Timestamptz,
        Type::INTERVAL => Kind::Interval,
        Type::JSON => Kind::Json,
        Type::JSONB => Kind::Jsonb,
        Type::UUID => Kind::Uuid,
        Type::CHAR => Kind::Char,
        Type::VOID => return Form::Void,
        Type::REGPROC | Type::REGCLASS | Type::REGTYPE | Type::REGNAMESPACE | Type::REGROLE | Type::XID | Type::CID => {
            return Form::OidAlias;
        }
        _ => {
            return match forebay_pg_values::Type::from_oid(kind.oid()) {
                Some(forebay_pg_values::Type::Array(element)) => Form::Array(element),
                _ => Form::Other,
            };
        }
    })
}
