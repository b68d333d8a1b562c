//! PagePool: ranges of large files, read by many tasks. Neighbouring reads become one I/O, then one copy in memory.
//!
//! Promises:
//! - Right bytes: a [`View`] is the file's bytes where they lie in the pool, contiguous and not copied. They stay and do not
//!   change as long as it lives.
//! - Memory never exceeds the pool's: cached, loading and held pages are all counted. A read that does not fit now waits for
//!   others to release theirs, and fails with a clear error when it has waited long enough, or could never fit. Reads that wait
//!   hold nothing, so they never wait for each other in a circle.
//! - A page is loaded once, however many wait for it. The load belongs to the pool: cancelling a reader harms no other.
//! - Missing pages that are neighbours are one I/O, a *run*, even over a *gap* where reading on costs less than another I/O. Runs
//!   are bounded, and so are I/Os in flight, in all and for each read; reads take turns. Large reads that would only wait for the
//!   disk wait before they take memory.
//! - What is read often stays when somebody reads everything once.
//! - An I/O that fails is an error for those who wanted its bytes: path, offset, length, cause. The next read tries again.
//! - A hit makes no system call, and costs one atomic addition a page besides a shared lock to look up the file's mapping.
//!
//! Knows files, memory and I/O; nothing of the rest of this project.
//!
//! Not promised: that a change of a file by others is noticed at once. It is noticed when the file is opened again or
//! [invalidated](PagedFile::invalidate); until then pages in memory are served as they were, and others are read as they are. Opening it
//! goes by inode, length and times, and does not trust times that are so young that the next change could leave them as they are. So it
//! does not notice a write that went on while the file was opened, writes through `mmap` that change no time, a change that gets the old
//! time from a clock that was set back, and what a network file system does not tell yet.
//!
//! # How it is built
//!
//! In layers, each of which knows only those before it:
//!
//! - `storage`: where files are. A trait, and `local`, whose engine reads and writes the files of this machine.
//! - `memory`: what is in memory, and who holds it. A file's `mapping` has address space for all of it, and a `word` a page.
//! - `eviction`: which pages leave, and when. The `sweeper` has the `evictor` ask the `policy`, ahead of need.
//! - `load`: how pages get there. The `reader` pins pages and `plan`s `run`s for those that are missing, after its `admission`
//!   if they are many.
//! - `create`: new files. Beside `load`, and knows nothing of it.
//! - `opener`, `file`, `view`, `pool`: what users hold; `pool` puts the parts together.
//!
//! Beside them are `monitor` and `metrics`, what a pool shows of itself; beneath all of them `error`, `stats`, `latency`, `checksum`,
//! `blocking` and `sync`.
//!
//! # Reading
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! # let file = tempfile::NamedTempFile::new().unwrap();
//! # std::fs::write(file.path(), vec![42; 4 << 20]).unwrap();
//! # let path = file.path();
//! use forebay::pages::PagePool;
//!
//! let pool = PagePool::builder().memory(64 << 20).build()?;
//! let file = pool.open(path).await?;
//! let view = file.read(4096..1 << 20).await?;               // &[u8], held while it lives
//! assert_eq!((view.len(), view[0]), ((1 << 20) - 4096, 42));
//!
//! let views = file.read_many([0..100, 2 << 20..3 << 20, 150..300]).await?; // planned as one
//! assert_eq!(views[2].len(), 150);
//! file.prefetch(3 << 20..4 << 20).await?;                   // begun, not waited for
//! # Ok::<(), forebay::pages::PageError>(()) }).unwrap();
//! ```
//!
//! # What a page size does
//!
//! A page is the least that is read and evicted: 64 KiB by default. Small scattered reads waste less with smaller pages, down to 4
//! KiB; hits of megabytes cost less with larger ones.
//!
//! 2,000 ranges of 4 to 16 KiB, scattered, took half the time with pages of 4 KiB, and a fifth of the bytes (`docs/benchmarks.md`).
//! [`PagePoolBuilder::max_gap_bytes`] is rounded down to whole pages.
//!
//! # Metrics
//!
//! With a [name](PagePoolBuilder::name) the pool publishes [`Stats`] once a second, with the label `pool`: counters
//! `forebay_pages_hits_total`, `misses`, `joined`, `runs`, `asked_bytes`, `read_bytes`, `gap_bytes`, `evictions`, `waits`,
//! `failures`, `written_bytes`, `published`, `syncs_shared` (all `forebay_pages_…_total`); gauges `forebay_pages_resident_bytes`,
//! `pinned_bytes`, `capacity_bytes`, `io_in_flight`, `io_queued`, and `io_seconds` with the label `quantile`.
//!
//! # Errors
//!
//! [`PageError`], each with what to do. A hundred readers who want a page that cannot be read get a hundred errors, and the
//! hundred and first tries again.
//!
//! # Platforms
//!
//! 64-bit Unix. On Linux files are read by io_uring where the kernel allows it, otherwise by threads ([`Stats::io`] says which), and
//! past the kernel's page cache (`O_DIRECT`) where the file system supports that, otherwise through it; with the same results. From
//! Linux 6.13 on one system call gives the memory of many pages back.

#[cfg(not(all(unix, target_pointer_width = "64")))]
compile_error!("the PagePool needs a 64-bit Unix: a file's pages have their place in address space");

mod blocking;
mod checksum;
mod create;
mod error;
mod eviction;
mod file;
mod latency;
mod load;
mod memory;
mod metrics;
#[cfg(all(test, forebay_loom))]
mod model;
mod monitor;
mod opener;
mod pool;
mod stats;
mod storage;
mod sync;
#[cfg(all(test, not(forebay_loom)))]
mod testing;
mod view;
mod wakers;

pub use checksum::Checksums;
pub use create::new_file::NewFile;
pub use error::PageError;
pub use file::{FileBuilder, PagedFile};
pub use latency::{Latencies, LatencyBucket};
pub use pool::{Io, PagePool, PagePoolBuilder};
pub use stats::Stats;
pub use view::View;

/// For the lab, which compares policies.
#[doc(hidden)]
pub use eviction::policy::simulation::Simulation as PolicySimulation;

/// What tests make go wrong with I/O.
#[doc(hidden)]
pub mod faults {
    pub use crate::storage::faults::{Fault, Faults};
}
