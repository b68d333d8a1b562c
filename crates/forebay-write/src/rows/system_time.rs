//! `SystemTime` as serde asks for it, a struct of two numbers, from the text of a moment.
//!
//! Promises: it is the moment that the text says; one before 1970, for which serde has no numbers, is an error that says so.

use serde::de::value::MapDeserializer;

use super::misfit::Misfit;
use crate::moment;

/// As serde calls them.
const FIELDS: [&str; 2] = ["secs_since_epoch", "nanos_since_epoch"];

/// The numbers by their names.
pub type Numbers<'de> = MapDeserializer<'de, std::array::IntoIter<(&'static str, u64), 2>, Misfit>;

/// Whether a struct of these fields is a `SystemTime`.
pub fn is_asked_for(fields: &[&str]) -> bool {
    fields == FIELDS
}

/// The numbers of the moment that a text says.
///
/// # Errors
/// If it says none, or one before 1970.
pub fn read<'de>(text: &str) -> Result<Numbers<'de>, Misfit> {
    let moment = moment::parse(text).ok_or_else(|| Misfit("the text says no moment".to_owned()))?;
    let (seconds, nanoseconds) = moment::since_1970(moment);
    let seconds = u64::try_from(seconds)
        .map_err(|_| Misfit("serde has no SystemTime before 1970: take it by TryFrom, or as text".to_owned()))?;
    let [of_seconds, of_nanoseconds] = FIELDS;
    let numbers = [(of_seconds, seconds), (of_nanoseconds, nanoseconds.into())];
    Ok(MapDeserializer::new(numbers.into_iter()))
}
