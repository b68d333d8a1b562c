//! The functions, by symbol. Each family of types has a module with a table of its own; this is where they meet.

use crate::Function;

/// The function of that symbol.
pub fn function(symbol: &str) -> Option<&'static Function> {
    use std::collections::HashMap;
    use std::sync::OnceLock;
    static BY_SYMBOL: OnceLock<HashMap<&'static str, &'static Function>> = OnceLock::new();
    BY_SYMBOL
        .get_or_init(|| functions().map(|function| (function.symbol, function)).collect())
        .get(symbol)
        .copied()
}

/// All functions.
pub fn functions() -> impl Iterator<Item = &'static Function> {
    FAMILIES.iter().copied().flatten()
}

/// One table a family of types.
const FAMILIES: &[&[Function]] = &[
    crate::array::FUNCTIONS,
    crate::boolean::FUNCTIONS,
    crate::bytea::FUNCTIONS,
    crate::float::FUNCTIONS,
    crate::identifier::FUNCTIONS,
    crate::integer::FUNCTIONS,
    crate::json::FUNCTIONS,
    crate::number_format::FUNCTIONS,
    crate::numeric::FUNCTIONS,
    crate::temporal::FUNCTIONS,
    crate::text::case::FUNCTIONS,
    crate::text::encode::FUNCTIONS,
    crate::text::format::FUNCTIONS,
    crate::text::input::FUNCTIONS,
    crate::text::like::FUNCTIONS,
    crate::text::pad::FUNCTIONS,
    crate::text::quote::FUNCTIONS,
    crate::text::regex::FUNCTIONS,
    crate::text::search::FUNCTIONS,
    crate::text::slice::FUNCTIONS,
    crate::uuid::FUNCTIONS,
];
