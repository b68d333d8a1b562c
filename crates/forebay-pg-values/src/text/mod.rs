//! text, varchar, char(n), name and `"char"`: their input, and the functions of PostgreSQL over characters.
//!
//! Promises: characters are code points; case and classes of characters are those of the C.UTF-8 locale ([`characters`]), whatever the
//! Rust library at hand thinks of Unicode. Patterns have rooms of their own: [`like`], [`regex`].

pub mod aggregate;
pub mod case;
pub mod characters;
pub mod encode;
pub mod format;
pub mod input;
pub mod like;
pub mod pad;
pub mod quote;
pub mod regex;
pub mod search;
pub mod slice;

pub(crate) use aggregate::AGGREGATES;
use std::sync::atomic::{AtomicI64, Ordering};

pub use input::{parse_bpchar, parse_char, parse_name, parse_text, parse_varchar};

/// The byte offset of a character, or the text's end if it has no so many.
fn offset_of(text: &str, characters: usize) -> usize {
    if characters >= text.len() {
        // No text has more characters than bytes.
        return text.len();
    }
    if text.as_bytes()[..characters].is_ascii() {
        return characters;
    }
    text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at)
}

/// PostgreSQL's largest allocation, which bounds what some functions may make.
const ALLOCATION_BYTES_MAX: i64 = 0x3fff_ffff;

/// The longest result of functions that make much out of little; see [`limit_results`].
static RESULT_BYTES_MAX: AtomicI64 = AtomicI64::new(ALLOCATION_BYTES_MAX);

/// Bounds the results of functions that make much out of little (`repeat`, `lpad`, `replace`), in the whole process: memory is the
/// process's. PostgreSQL's own limit holds in any case.
pub fn limit_results(bytes_max: usize) {
    let bytes_max = i64::try_from(bytes_max).unwrap_or(i64::MAX);
    RESULT_BYTES_MAX.store(bytes_max.min(ALLOCATION_BYTES_MAX), Ordering::Relaxed);
}

/// An error if a result of so many bytes is too long; see [`limit_results`].
///
/// # Errors
/// 54000.
pub fn check_length(bytes: i64) -> Result<(), crate::ValueError> {
    if bytes > RESULT_BYTES_MAX.load(Ordering::Relaxed) {
        return Err(too_large());
    }
    Ok(())
}

/// What PostgreSQL says of a result beyond its largest allocation.
fn too_large() -> crate::ValueError {
    crate::ValueError::new("54000", "requested length too large")
}

/// The number of characters, as PostgreSQL counts: an int4.
fn length(text: &str) -> i64 {
    i64::try_from(text.chars().count()).expect("a text is no longer than memory")
}

#[cfg(test)]
mod tests {
    #[test]
    fn functions_answer_as_postgresql_does() {
        crate::recorded::check(include_str!("recorded.txt"));
    }
}
