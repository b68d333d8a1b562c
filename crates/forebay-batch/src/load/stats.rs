//! What a loader counts about itself.
//!
//! Promises: counters only grow, and cost a load one or two relaxed additions. Knows nothing of exporters.

/// A reading of a loader's counters. Taken while it works they are of slightly different moments.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::convert::Infallible;
///
/// use forebay::load::Loader;
///
/// let same = Loader::new(async |keys: Vec<u32>| Ok::<_, Infallible>(keys.into_iter().map(Some).collect::<Vec<_>>()));
/// let _ = tokio::join!(same.load(1), same.load(2), same.load(1));
/// assert_eq!((same.stats().fetches, same.stats().keys_fetched), (1, 2));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Loads so far: each key of each call, duplicates included.
    pub loads: u64,
    /// Loads that shared the fetch of an equal key which was in line or in flight, so far.
    pub joined: u64,
    /// Calls of the fetch so far.
    pub fetches: u64,
    /// Keys that the fetch was given so far.
    pub keys_fetched: u64,
    /// Values that a fetch answered for keys which it was not asked for, so far.
    pub keys_ignored: u64,
    /// Keys in line now, those that wait behind a full line included.
    pub keys_queued: usize,
    /// Fetches that run now.
    pub in_flight: usize,
}
