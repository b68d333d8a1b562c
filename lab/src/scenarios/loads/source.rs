//! What is loaded, and what a database is that it is loaded from.
//!
//! Promises: keys are drawn alike for all systems, and every value is checked. Knows no database.

use forebay::load::{Loader, Stats};
use forebay::write::ReadError;

use crate::closed_loop::{Ask, answer};
use crate::failure::Failure;

/// How many rows there are to load.
pub(super) const ROWS: u64 = 100_000;

/// A running server with the table, filled. All of it is called within a tokio runtime.
pub(super) trait Source: 'static {
    /// So many connections, the query prepared on each, shared by all callers.
    type Pool: Ask;

    async fn pool(&self, connections: u32) -> Result<Self::Pool, Failure>;

    /// Forebay, connected, with all limits at their defaults.
    async fn loader(&self) -> Result<Forebay, Failure>;
}

/// A loader.
#[derive(Clone)]
pub(super) struct Forebay {
    pub(super) loader: Loader<i32, i64, ReadError>,
}

impl Forebay {
    pub(super) fn stats(&self) -> Stats {
        self.loader.stats()
    }
}

impl Ask for Forebay {
    async fn ask(&self, item: u64) -> Result<u64, String> {
        let loaded = self.loader.load(key(item)).await.map_err(|error| error.to_string())?;
        told(item, loaded)
    }
}

/// The key that an item is loaded by: drawn alike for all systems (SplitMix64, Steele, Lea and Flood, 2014).
pub(super) fn key(item: u64) -> i32 {
    let mut mixed = item.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    i32::try_from((mixed ^ (mixed >> 31)) % ROWS).expect("there are not so many rows")
}

/// What the row of a key has.
fn value(key: i32) -> i64 {
    i64::from(key) * 3 + 7
}

/// The answer that is wanted for an item, if its row had the right value.
pub(super) fn told(item: u64, loaded: Option<i64>) -> Result<u64, String> {
    let key = key(item);
    if loaded == Some(value(key)) {
        Ok(answer(item))
    } else {
        Err(format!("{key} has {}, and {loaded:?} was loaded", value(key)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_wrong_or_missing_is_seen() {
        let right = value(key(7));
        assert_eq!(told(7, Some(right)), Ok(answer(7)));
        assert!(told(7, Some(right + 1)).is_err());
        assert!(told(7, None).is_err());
        let keys: std::collections::BTreeSet<i32> = (0..1_000).map(key).collect();
        assert!(keys.len() > 990, "drawn from all rows: {}", keys.len());
    }
}
