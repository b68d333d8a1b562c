//! Settings: those of PostgreSQL's by which texts are read and planned, by name.

/// By these, as `pg_settings` calls them, a text and its constants are read when it is prepared. What `search_path` changes the server looks at again by itself.
pub const READING: [&str; 11] = [
    "DateStyle",
    "IntervalStyle",
    "TimeZone",
    "array_nulls",
    "backslash_quote",
    "client_encoding",
    "lc_monetary",
    "standard_conforming_strings",
    "timezone_abbreviations",
    "transform_null_equals",
    "xmloption",
];

/// By these a plan folds what hangs on nothing else: PostgreSQL declares the functions that ask for them immutable (`byteaout`, `float8out`, `interval_out`,
/// `quote_ident`, `timezone`), or users do (`to_tsvector`, `to_char`, in functions of theirs).
pub const FOLDING: [&str; 8] = [
    "IntervalStyle",
    "bytea_output",
    "default_text_search_config",
    "extra_float_digits",
    "lc_numeric",
    "lc_time",
    "quote_all_identifiers",
    "timezone_abbreviations",
];

/// The setting that `SET` has another word for.
pub(super) fn spelt_out(word: &str) -> &str {
    match word.to_ascii_lowercase().as_str() {
        "names" => "client_encoding",
        "time" => "TimeZone",
        "xml" => "xmloption",
        _ => word,
    }
}

/// Whether it is the name of one of these.
pub(super) fn is_among(called: &str, settings: &[&str]) -> bool {
    settings.iter().any(|name| name.eq_ignore_ascii_case(called))
}

/// The one of those by which texts are read or folded that is called so behind `SET`.
pub(super) fn of_reading_or_folding(called: &str) -> Option<&str> {
    let name = spelt_out(called);
    (is_among(name, &READING) || is_among(name, &FOLDING)).then_some(name)
}
