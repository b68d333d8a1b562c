//! What a batcher counts about itself.
//!
//! Promises: one consistent reading, taken under the intake's lock, whose counters cost a call nothing of their own. Knows
//! nothing of exporters.

/// A reading of a batcher's counters.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::convert::Infallible;
///
/// use forebay::batch::Batcher;
///
/// let echo = Batcher::new(async |items: Vec<u32>| Ok::<_, Infallible>(items));
/// let _ = tokio::join!(echo.call(1), echo.call(2));
/// assert_eq!(echo.stats().batches, 1); // they shared it
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Items that entered so far.
    pub calls: u64,
    /// Batches started so far.
    pub batches: u64,
    /// Items whose call was cancelled before the processor got them, so far.
    pub cancelled: u64,
    /// Items in the queue now; never more than `max_queued`.
    pub queued: usize,
    /// Items of calls that wait their turn, behind the queue.
    pub waiting: usize,
    /// Batches that run now, until their callers have their outcomes.
    pub in_flight: usize,
}

impl Stats {
    /// Both together, for parts that are made of several batchers.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            batches: self.batches + other.batches,
            cancelled: self.cancelled + other.cancelled,
            queued: self.queued + other.queued,
            waiting: self.waiting + other.waiting,
            in_flight: self.in_flight + other.in_flight,
        }
    }
}
