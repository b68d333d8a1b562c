//! Forebay's pool, as its users use it.
//!
//! Promises: its settings are its own defaults but for what a case is about, which is told there. Every range is held as a
//! view while it is looked at, and let go before the next is asked for.

use std::future::Future;
use std::ops::Range;
use std::time::Instant;

use forebay::pages::{PagePool, PagedFile};
use tokio::runtime::Runtime;

use super::material::{Look, Material};
use super::readers::{Counted, Reader, Served, Serves};
use super::ring::Took;
use super::runs::Run;
use crate::failure::Failure;

pub(super) fn failed(error: &forebay::pages::PageError) -> Failure {
    Failure::Wrong(format!("forebay: {error}"))
}

struct Pool {
    pool: PagePool,
    file: PagedFile,
}

impl Pool {
    async fn of(pool: PagePool, material: &Material) -> Result<Self, Failure> {
        let file = pool.open(&material.path).await.map_err(|error| failed(&error))?;
        Ok(Self { pool, file })
    }
}

/// With its defaults.
pub(super) fn open(runtime: &Runtime, material: &Material, memory: u64) -> Result<Box<dyn Served>, Failure> {
    let pool = PagePool::builder()
        .memory(memory)
        .build()
        .map_err(|error| failed(&error))?;
    Ok(Box::new(runtime.block_on(Pool::of(pool, material))?))
}

impl Serves for Pool {
    type Reader = PagedFile;

    const BLOCKS: bool = false;

    fn reader(&self) -> PagedFile {
        self.file.clone()
    }

    fn counted(&self) -> Option<Counted> {
        let stats = self.pool.stats();
        Some(Counted {
            hits: stats.hits,
            misses: stats.misses + stats.joined,
        })
    }
}

impl Reader for PagedFile {
    async fn read(&mut self, range: Range<u64>, look: Look) -> Result<(), Failure> {
        let place = range.start;
        let view = PagedFile::read(self, range).await.map_err(|error| failed(&error))?;
        look.at(place, &view)
    }
}

/// All of the file in one read, with runs of that size and so many of them at once.
pub(super) fn read_once(runtime: &Runtime, material: &Material, memory: u64, run: Run) -> Result<Took, Failure> {
    let pool = PagePool::builder()
        .memory(memory)
        .max_run_bytes(run.bytes)
        .depth(run.depth as usize)
        .depth_per_read(run.depth as usize)
        .build()
        .map_err(|error| failed(&error))?;
    runtime.block_on(async {
        let Pool { pool, file } = Pool::of(pool, material).await?;
        let (view, seconds) = timed(file.read(..)).await;
        let view = view.map_err(|error| failed(&error))?;
        Look::HandedOut.at(0, &view)?;
        let bytes = pool.stats().read_bytes;
        if bytes != material.bytes || view.len() as u64 != material.bytes {
            return Err(Failure::Wrong(format!(
                "forebay read {bytes} bytes of {}",
                material.bytes
            )));
        }
        Ok(Took { bytes, seconds })
    })
}

/// All of these ranges by one `read_many`, with pages of that size, over gaps of that many bytes; `bytes` is what was read of the disk.
pub(super) fn read_sparse(
    runtime: &Runtime,
    material: &Material,
    memory: u64,
    (page_size, gap): (usize, u64),
    ranges: &[Range<u64>],
) -> Result<Took, Failure> {
    let pool = PagePool::builder()
        .memory(memory)
        .page_size(page_size)
        .max_gap_bytes(gap)
        .build()
        .map_err(|error| failed(&error))?;
    runtime.block_on(async {
        let Pool { pool, file } = Pool::of(pool, material).await?;
        let (views, seconds) = timed(file.read_many(ranges.iter().cloned())).await;
        let views = views.map_err(|error| failed(&error))?;
        if views.len() != ranges.len() {
            return Err(Failure::Wrong(format!(
                "{} views of {} ranges",
                views.len(),
                ranges.len()
            )));
        }
        for (range, view) in ranges.iter().zip(&views) {
            Look::Touched.at(range.start, view)?;
        }
        let bytes = pool.stats().read_bytes;
        Ok(Took { bytes, seconds })
    })
}

async fn timed<T>(work: impl Future<Output = T>) -> (T, f64) {
    let begun = Instant::now();
    let done = work.await;
    (done, begun.elapsed().as_secs_f64())
}
