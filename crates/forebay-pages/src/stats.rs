//! What a pool counts about itself.
//!
//! Promises: counters only grow. A read that finds everything in memory costs two additions, on a cache line that few threads share.
//!
//! Knows nothing of what it counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::latency::Latencies;

/// A reading of a pool's counters. Taken while it works they are of slightly different moments.
///
/// ```
/// use forebay::pages::PagePool;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("data");
/// std::fs::write(&path, vec![7; 1 << 20])?;
/// let pool = PagePool::builder().memory(64 << 20).build()?; // pages of 64 KiB
/// let file = pool.open(&path).await?;
/// file.read(..).await?;
/// let view = file.read(0..100_000).await?;
///
/// let stats = pool.stats();
/// assert_eq!((stats.misses, stats.hits), (16, 2));
/// assert_eq!(stats.runs, 4); // I/Os, of 256 KiB at most
/// assert_eq!((stats.resident_bytes, stats.pinned_bytes), (1 << 20, 2 * (64 << 10))); // The view holds two pages.
/// # drop(view);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Pages that reads found in memory, so far. A page is counted twice if a read looked for it twice, because it had to wait for
    /// memory in between.
    pub hits: u64,
    /// Pages that reads and prefetches had to load, so far.
    pub misses: u64,
    /// Pages that reads waited for while another's load brought them, so far.
    pub joined: u64,
    /// I/Os, so far.
    pub runs: u64,
    /// Bytes that reads asked for, so far.
    pub asked_bytes: u64,
    /// Bytes read from files, so far.
    pub read_bytes: u64,
    /// How many of these bytes were in gaps between pages that were asked for, in whole pages; kept where there was room.
    pub gap_bytes: u64,
    /// Pages evicted, so far.
    pub evictions: u64,
    /// Reads that had to wait for memory, or for their turn to load much, so far.
    pub waits: u64,
    /// Reads and other calls that ended with an error, so far.
    pub failures: u64,
    /// Bytes written to new files, so far.
    pub written_bytes: u64,
    /// Files published, so far.
    pub published: u64,
    /// Files published without a sync of the directory of their own, because they shared one, so far.
    pub syncs_shared: u64,
    /// Bytes of the pages that are in memory or being loaded, now.
    pub resident_bytes: u64,
    /// Bytes of those that views and reads hold, now.
    pub pinned_bytes: u64,
    /// The most that may be in memory, in bytes.
    pub capacity_bytes: u64,
    /// I/Os that run now.
    pub io_in_flight: usize,
    /// I/Os that wait for their turn now.
    pub io_queued: usize,
    /// How long I/Os took, so far.
    pub io_latency: Latencies,
    /// What does the I/O: `io_uring` or `threads`.
    pub io: &'static str,
    /// Why it is not io_uring, where io_uring was tried.
    pub why_not_io_uring: Option<Arc<str>>,
}

/// So many threads count on cache lines of their own.
const STRIPES: usize = 16;

/// The counters.
#[derive(Default)]
pub(crate) struct Counters {
    stripes: [Stripe; STRIPES],
    misses: AtomicU64,
    joined: AtomicU64,
    runs: AtomicU64,
    read_bytes: AtomicU64,
    gap_pages: AtomicU64,
    evictions: AtomicU64,
    waits: AtomicU64,
    failures: AtomicU64,
    written_bytes: AtomicU64,
    published: AtomicU64,
    syncs_shared: AtomicU64,
}

#[derive(Default)]
#[repr(align(128))]
struct Stripe {
    hits: AtomicU64,
    asked_bytes: AtomicU64,
}

/// What the counters say.
pub(crate) struct Counted {
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) joined: u64,
    pub(crate) runs: u64,
    pub(crate) asked_bytes: u64,
    pub(crate) read_bytes: u64,
    pub(crate) gap_pages: u64,
    pub(crate) evictions: u64,
    pub(crate) waits: u64,
    pub(crate) failures: u64,
    pub(crate) written_bytes: u64,
    pub(crate) published: u64,
    pub(crate) syncs_shared: u64,
}

impl Counters {
    #[inline]
    pub(crate) fn asked(&self, bytes: u64, hits: u64) {
        let stripe = &self.stripes[own_stripe()];
        stripe.asked_bytes.fetch_add(bytes, Ordering::Relaxed);
        stripe.hits.fetch_add(hits, Ordering::Relaxed);
    }

    pub(crate) fn missed(&self, misses: usize, joined: usize) {
        self.misses.fetch_add(misses as u64, Ordering::Relaxed);
        self.joined.fetch_add(joined as u64, Ordering::Relaxed);
    }

    /// An I/O, with so many pages that nobody asked for.
    pub(crate) fn run(&self, gap: usize) {
        self.runs.fetch_add(1, Ordering::Relaxed);
        self.gap_pages.fetch_add(gap as u64, Ordering::Relaxed);
    }

    pub(crate) fn read(&self, bytes: u64) {
        self.read_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn evicted(&self, pages: usize) {
        self.evictions.fetch_add(pages as u64, Ordering::Relaxed);
    }

    pub(crate) fn waited(&self) {
        self.waits.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn failed(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn wrote(&self, bytes: u64) {
        self.written_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn published(&self) {
        self.published.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn shared_sync(&self) {
        self.syncs_shared.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn counted(&self) -> Counted {
        let sum = |of: fn(&Stripe) -> &AtomicU64| {
            self.stripes
                .iter()
                .map(|stripe| of(stripe).load(Ordering::Relaxed))
                .sum()
        };
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counted {
            hits: sum(|stripe| &stripe.hits),
            misses: read(&self.misses),
            joined: read(&self.joined),
            runs: read(&self.runs),
            asked_bytes: sum(|stripe| &stripe.asked_bytes),
            read_bytes: read(&self.read_bytes),
            gap_pages: read(&self.gap_pages),
            evictions: read(&self.evictions),
            waits: read(&self.waits),
            failures: read(&self.failures),
            written_bytes: read(&self.written_bytes),
            published: read(&self.published),
            syncs_shared: read(&self.syncs_shared),
        }
    }
}

/// Threads get their stripes in turn.
fn own_stripe() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static OWN: usize = NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES);
    OWN.with(|own| *own)
}
