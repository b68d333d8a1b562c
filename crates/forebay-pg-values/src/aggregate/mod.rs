//! Aggregates, as accumulators that are fed one row at a time. Those of numbers and truth values are here, others with their types.
//!
//! An aggregate's symbol is its name with the names of its arguments' types: `sum(int8)`, `corr(float8,float8)`. Those here pass over
//! rows with a NULL among their arguments; all give NULL if no row is left (the count of regr_count: 0). The order of the rows counts
//! where PostgreSQL's does: in sums of floats.

mod accumulator;
mod bits;
mod float;
mod numeric;

pub use accumulator::{Accumulator, Start};

/// The accumulator of the aggregate of that symbol, for one group.
pub fn accumulator(symbol: &str) -> Option<Box<dyn Accumulator>> {
    symbols().find(|(known, _)| *known == symbol).map(|(_, start)| start())
}

/// All symbols, with what begins a group of each.
pub fn symbols() -> impl Iterator<Item = (&'static str, Start)> {
    [
        bits::AGGREGATES,
        float::AGGREGATES,
        numeric::AGGREGATES,
        crate::interval::AGGREGATES,
        crate::json::AGGREGATES,
        crate::array::AGGREGATES,
        crate::text::AGGREGATES,
    ]
    .into_iter()
    .flatten()
    .copied()
}
