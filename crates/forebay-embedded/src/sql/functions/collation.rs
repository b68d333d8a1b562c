//! Collations for types whose stored forms do not sort by their bytes.
//!
//! Promises: PostgreSQL's order of the type.

use std::cmp::Ordering;

use forebay_pg_values::Kind;

use crate::sql::compile::types::ARRAY_COLLATIONS;

type Comparison = fn(&str, &str) -> Ordering;

/// The collations of our own that are not of arrays.
pub(super) const COMPARISONS: [(&str, Comparison); 3] = [
    ("pg_numeric", forebay_pg_values::numeric::compare),
    ("pg_interval", forebay_pg_values::interval::compare),
    ("pg_jsonb", forebay_pg_values::json::jsonb::compare),
];

pub(super) fn compare_arrays(kind: Kind, left: &str, right: &str) -> Ordering {
    forebay_pg_values::array::compare(kind, left, right).unwrap_or_else(|_| left.cmp(right))
}

/// What a collation, SQLite's own or one of ours, says of two texts.
pub(super) fn compare_collated(collation: &str, left: &str, right: &str) -> Ordering {
    if collation == "RTRIM" {
        return left.trim_end_matches(' ').cmp(right.trim_end_matches(' '));
    }
    if let Some((_, comparison)) = COMPARISONS.iter().find(|(name, _)| *name == collation) {
        return comparison(left, right);
    }
    match ARRAY_COLLATIONS.iter().find(|(_, name)| *name == collation) {
        Some((kind, _)) => compare_arrays(*kind, left, right),
        None => left.cmp(right),
    }
}
