//! Values as text: PostgreSQL's input and output functions, by kind.

use crate::{Datum, Environment, Kind, Owned, Result, ValueError};

/// Reads a value as PostgreSQL's input function does.
pub fn parse(kind: Kind, _typmod: i32, text: &str, _environment: &Environment) -> Result<Owned> {
    let wrong = || ValueError::invalid_text("22P02", kind.display_name(), text);
    Ok(match kind {
        Kind::Bool => match text.trim().to_ascii_lowercase().as_str() {
            "t" | "true" => Owned::from(true),
            "f" | "false" => Owned::from(false),
            _ => return Err(wrong()),
        },
        Kind::Int2 | Kind::Int4 | Kind::Int8 | Kind::Oid => Owned::Integer(text.trim().parse().map_err(|_| wrong())?),
        Kind::Float8 => Owned::Real(text.trim().parse().map_err(|_| wrong())?),
        Kind::Float4 => Owned::Real(f64::from(text.trim().parse::<f32>().map_err(|_| wrong())?)),
        Kind::Json => {
            crate::json::validate(text)?;
            Owned::from(text)
        }
        Kind::Jsonb => Owned::Text(crate::json::jsonb::input(text)?),
        Kind::Bytea => return Err(ValueError::unsupported("bytea here is")),
        _ => Owned::from(text),
    })
}

/// Appends the text that PostgreSQL's output function gives.
pub fn write(kind: Kind, datum: Datum<'_>, _environment: &Environment, out: &mut String) -> Result<()> {
    use std::fmt::Write;
    let written = match datum {
        Datum::Null => Ok(()),
        Datum::Integer(integer) if kind == Kind::Bool => out.write_str(if integer != 0 { "t" } else { "f" }),
        Datum::Integer(integer) => write!(out, "{integer}"),
        #[allow(clippy::cast_possible_truncation, reason = "a float4 is stored widened")]
        Datum::Real(real) if kind == Kind::Float4 => write!(out, "{}", real as f32),
        Datum::Real(real) => write!(out, "{real}"),
        Datum::Text(text) => out.write_str(text),
        Datum::Blob(_) => return Err(ValueError::unsupported("bytea here is")),
    };
    written.expect("a String takes everything");
    Ok(())
}
