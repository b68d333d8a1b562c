//! The text of a value of any scalar type, as clients write it and as PostgreSQL writes it back.

use crate::{
    Datum, Environment, Kind, Owned, Result, ValueError, boolean, bytea, float, integer, json, numeric, temporal, text,
    uuid,
};

/// Reads a client's text as a value of that type. `typmod` is the type's modifier, -1 for none.
///
/// # Errors
///
/// PostgreSQL's own for a text that is none of the type's, or a value that the type or its modifier does not hold.
pub fn parse(kind: Kind, typmod: i32, text: &str, environment: &Environment) -> Result<Owned> {
    match kind {
        Kind::Bool => boolean::parse(text),
        Kind::Int2 => integer::parse(integer::Width::Two, text),
        Kind::Int4 => integer::parse(integer::Width::Four, text),
        Kind::Int8 => integer::parse(integer::Width::Eight, text),
        Kind::Oid => integer::parse_oid(text),
        Kind::Float4 => float::parse4(text),
        Kind::Float8 => float::parse8(text),
        Kind::Numeric => numeric::parse(text, typmod),
        Kind::Date | Kind::Time | Kind::Timetz | Kind::Timestamp | Kind::Timestamptz | Kind::Interval => {
            temporal::parse(kind, typmod, text, environment)
        }
        Kind::Json => {
            json::validate(text)?;
            Ok(text.into())
        }
        Kind::Jsonb => Ok(json::jsonb::input(text)?.into()),
        Kind::Text | Kind::Unknown => Ok(text::input::parse_text(text)?.into()),
        Kind::Varchar => Ok(text::input::parse_varchar(text, typmod.into())?.into()),
        Kind::Bpchar => Ok(text::input::parse_bpchar(text, typmod.into())?.into()),
        Kind::Name => Ok(text::input::parse_name(text)?.into()),
        Kind::Char => Ok(text::input::parse_char(text)?.into()),
        Kind::Bytea => Ok(bytea::parse(text)?.into()),
        Kind::Uuid => Ok(uuid::parse(text)?.into()),
    }
}

/// Writes a stored value of that type as PostgreSQL writes it. NULL has no text, and writes nothing.
///
/// # Errors
///
/// XX001 for a value that is not stored as its type is.
pub fn write(kind: Kind, datum: Datum<'_>, environment: &Environment, out: &mut String) -> Result<()> {
    match (kind, datum) {
        (_, Datum::Null) => {}
        (Kind::Bool, Datum::Integer(truth)) => boolean::write(truth != 0, out),
        (Kind::Int2 | Kind::Int4 | Kind::Int8 | Kind::Oid, Datum::Integer(integer)) => integer::write(integer, out),
        #[allow(clippy::cast_possible_truncation, reason = "a stored real is a float widened")]
        (Kind::Float4, Datum::Real(real)) => float::write4(real as f32, out),
        (Kind::Float8, Datum::Real(real)) => float::write8(real, out),
        // SQLite keeps a float without a fraction as an integer in places.
        #[allow(clippy::cast_precision_loss, reason = "what SQLite made of a float is one")]
        (Kind::Float4, Datum::Integer(integer)) => float::write4(integer as f32, out),
        #[allow(clippy::cast_precision_loss, reason = "what SQLite made of a float is one")]
        (Kind::Float8, Datum::Integer(integer)) => float::write8(integer as f64, out),
        (Kind::Timestamptz, _) => return temporal::write(kind, datum, environment, out),
        // Stored as they are written.
        (
            Kind::Numeric
            | Kind::Text
            | Kind::Varchar
            | Kind::Bpchar
            | Kind::Name
            | Kind::Char
            | Kind::Unknown
            | Kind::Date
            | Kind::Time
            | Kind::Timetz
            | Kind::Timestamp
            | Kind::Interval
            | Kind::Uuid
            | Kind::Json
            | Kind::Jsonb,
            Datum::Text(text),
        ) => out.push_str(text),
        (Kind::Bytea, Datum::Blob(bytes)) => bytea::write(bytes, out),
        (_, other) => {
            return Err(ValueError::new(
                "XX001",
                format!("{other:?} is not stored as {} is", kind.display_name()),
            ));
        }
    }
    Ok(())
}
