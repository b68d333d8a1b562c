//! Texts that clients send, as values.
//!
//! Promises: what is not text, or not a value of its type, is refused in PostgreSQL's words.

use forebay_pg_values::{Environment, Kind, Owned, text_form};

use super::refusal::{not_a_number, refused};
use forebay_pg_wire::error::{WireError, sqlstate};
use forebay_pg_wire::frontend::invalid_utf8;

/// UTF-8 without NUL: what PostgreSQL calls text.
pub(super) fn valid_text(bytes: &[u8]) -> Result<&str, WireError> {
    if bytes.contains(&0) {
        return Err(WireError::new(
            sqlstate::CHARACTER_NOT_IN_REPERTOIRE,
            "invalid byte sequence for encoding \"UTF8\": 0x00",
        ));
    }
    std::str::from_utf8(bytes).map_err(|error| invalid_utf8(bytes, error))
}

pub(super) fn decode_scalar_text(scalar: Kind, text: &str, environment: &Environment) -> Result<Owned, WireError> {
    text_form::parse(scalar, -1, text, environment).map_err(|error| {
        let is_float = matches!(scalar, Kind::Float4 | Kind::Float8);
        if is_float && error.sqlstate == sqlstate::FEATURE_NOT_SUPPORTED && names_nan(text) {
            not_a_number()
        } else {
            refused(error, text)
        }
    })
}

fn names_nan(text: &str) -> bool {
    let unsigned = text.trim_ascii().trim_start_matches(['+', '-']);
    unsigned.eq_ignore_ascii_case("nan")
}
