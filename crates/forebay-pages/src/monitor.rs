//! The figures of a pool, gathered from its parts.
//!
//! Knows nothing of what becomes of them.

use std::sync::Arc;

use crate::eviction::evictor::Evictor;
use crate::memory::frames::FrameBudget;
use crate::stats::{Counters, Stats};
use crate::storage::local::dispatch::Backend;
use crate::storage::local::engine::Engine;

/// Gathers them.
#[derive(Clone)]
pub(crate) struct Monitor {
    /// In bytes.
    pub(crate) page_size: usize,
    pub(crate) counters: Arc<Counters>,
    pub(crate) frames: Arc<FrameBudget>,
}

impl Monitor {
    pub(crate) fn stats(&self, evictor: &Evictor, engine: &Engine) -> Stats {
        let counted = self.counters.counted();
        let readings = engine.readings();
        let bytes = |pages: usize| pages as u64 * self.page_size as u64;
        Stats {
            hits: counted.hits,
            misses: counted.misses,
            joined: counted.joined,
            runs: counted.runs,
            asked_bytes: counted.asked_bytes,
            read_bytes: counted.read_bytes,
            gap_bytes: counted.gap_pages * self.page_size as u64,
            evictions: counted.evictions,
            waits: counted.waits,
            failures: counted.failures,
            written_bytes: counted.written_bytes,
            published: counted.published,
            syncs_shared: counted.syncs_shared,
            resident_bytes: bytes(self.frames.taken_by_pages()),
            pinned_bytes: bytes(evictor.pinned_pages()),
            capacity_bytes: bytes(self.frames.capacity),
            io_in_flight: readings.in_flight,
            io_queued: readings.queued,
            io_latency: readings.latency,
            io: match readings.backend {
                Backend::Uring => "io_uring",
                Backend::Threads => "threads",
            },
            why_not_io_uring: readings.why_not_uring,
        }
    }
}
