//! Terms: when what clients ask travels together.

use std::time::Duration;

/// When what clients ask travels together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sharing {
    /// Whether it does.
    pub is_on: bool,
    /// So many statements that read are on their way each by itself before others wait for company: few gain nothing by it.
    pub max_reads_alone: usize,
    /// The same, of those that change rows: the server gathers the commits of a few by itself.
    pub max_changes_alone: usize,
    /// Whoever travels with strangers was seen to be answered alone within this time, beyond what the quickest takes: the way to the server,
    /// and the commit.
    pub quick: Duration,
    /// The catalog is asked about a statement that was asked so often alone: most texts that come once never come again.
    pub min_asked: u64,
    /// So many who read a row each by its key, or insert a row each, are asked as one statement; fewer cost the server less each by itself.
    pub min_jointly: usize,
}

impl Default for Sharing {
    fn default() -> Self {
        Self {
            is_on: true,
            max_reads_alone: 12,
            max_changes_alone: 16,
            quick: Duration::from_millis(1),
            min_asked: 3,
            min_jointly: 3,
        }
    }
}
