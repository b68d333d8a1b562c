//! The text of a value, as its type's output function writes it.

use crate::{Datum, Environment, Kind, Result, ValueError, bytea};

/// Appends the text of a value that is not NULL.
pub fn write(kind: Kind, datum: Datum<'_>, _environment: &Environment, out: &mut String) -> Result<()> {
    match (kind, datum) {
        (Kind::Bool, Datum::Integer(truth)) => out.push(if truth == 0 { 'f' } else { 't' }),
        (Kind::Int2 | Kind::Int4 | Kind::Int8 | Kind::Oid, Datum::Integer(integer)) => {
            out.push_str(&integer.to_string())
        }
        (
            Kind::Text
            | Kind::Varchar
            | Kind::Bpchar
            | Kind::Name
            | Kind::Char
            | Kind::Unknown
            | Kind::Uuid
            | Kind::Numeric
            | Kind::Json
            | Kind::Jsonb,
            Datum::Text(text),
        ) => out.push_str(text),
        (Kind::Bytea, Datum::Blob(bytes)) => bytea::write(bytes, out),
        _ => {
            return Err(ValueError::unsupported(format!(
                "the text of type {} is",
                kind.display_name()
            )));
        }
    }
    Ok(())
}
