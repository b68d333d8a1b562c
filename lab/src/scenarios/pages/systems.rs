//! The systems that Forebay is held against, each as its users would use it: a buffer, the kernel's map, the kernel's cache,
//! foyer.
//!
//! Promises: the memory that foyer is given is the pool's; what the kernel keeps is the kernel's affair. foyer's pages are
//! fetched past the kernel's cache, so that it has no second memory behind it, all that a range lacks at once and each once
//! (its own `get_or_fetch`), by threads that may block. Knows no cases.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use foyer_memory::{CacheBuilder, CacheProperties};
use futures_util::future::try_join_all;
use tokio::sync::Semaphore;

use super::kernel::{self, Aligned, Map};
use super::material::{Look, Material};
use super::ranges::RANGE_BYTES_MAX;
use super::readers::{Reader, Serves};
use crate::failure::Failure;

/// The whole file in memory of the lab's own: the limit of what memory can give.
pub(super) struct Buffer(Arc<Vec<u8>>);

impl Buffer {
    pub(super) fn of(material: &Material) -> Result<Self, Failure> {
        let bytes = std::fs::read(&material.path).map_err(Failure::system("read the file"))?;
        Ok(Self(Arc::new(bytes)))
    }
}

impl Serves for Buffer {
    type Reader = Arc<Vec<u8>>;

    const BLOCKS: bool = false;

    fn reader(&self) -> Arc<Vec<u8>> {
        Arc::clone(&self.0)
    }
}

impl Reader for Arc<Vec<u8>> {
    async fn read(&mut self, range: Range<u64>, look: Look) -> Result<(), Failure> {
        look.at(range.start, &self[range.start as usize..range.end as usize])
    }
}

/// `mmap` of the file: a page that is not in memory stops the thread that touches it.
pub(super) struct Mapped(Arc<Map>);

impl Mapped {
    pub(super) fn of(material: &Material) -> Result<Self, Failure> {
        let map = Map::of(&material.path).map_err(Failure::system("map the file"))?;
        Ok(Self(Arc::new(map)))
    }
}

impl Serves for Mapped {
    type Reader = Arc<Map>;

    const BLOCKS: bool = true;

    fn reader(&self) -> Arc<Map> {
        Arc::clone(&self.0)
    }
}

impl Reader for Arc<Map> {
    async fn read(&mut self, range: Range<u64>, look: Look) -> Result<(), Failure> {
        look.at(range.start, &self.bytes()[range.start as usize..range.end as usize])
    }
}

/// What reports call [`Pread`].
pub(super) const PREAD: &str = "pread";

/// `pread` through the kernel's cache: a copy into a buffer that each reader keeps.
pub(super) struct Pread(Arc<File>);

impl Pread {
    pub(super) fn of(material: &Material) -> Result<Self, Failure> {
        let file = File::open(&material.path).map_err(Failure::system("open the file"))?;
        Ok(Self(Arc::new(file)))
    }
}

impl Serves for Pread {
    type Reader = PreadReader;

    const BLOCKS: bool = true;

    fn reader(&self) -> PreadReader {
        PreadReader {
            file: Arc::clone(&self.0),
            // Not zero, so that it has its memory before it is read into.
            buffer: vec![1; RANGE_BYTES_MAX as usize],
        }
    }
}

pub(super) struct PreadReader {
    file: Arc<File>,
    buffer: Vec<u8>,
}

impl Reader for PreadReader {
    async fn read(&mut self, range: Range<u64>, look: Look) -> Result<(), Failure> {
        let buffer = &mut self.buffer[..(range.end - range.start) as usize];
        self.file
            .read_exact_at(buffer, range.start)
            .map_err(Failure::system("read the file"))?;
        look.at(range.start, buffer)
    }
}

/// foyer's memory, keyed by pages.
#[derive(Clone)]
pub(super) struct Foyer {
    pages: foyer_memory::Cache<u64, Bytes>,
    file: Arc<File>,
    /// Fetches at once: threads that block are not without cost.
    turns: Arc<Semaphore>,
}

impl Foyer {
    /// Larger than the pool's pages, for each costs a lookup: of 64 KiB ones a range of 20 MiB has 320.
    pub(super) const PAGE_BYTES: u64 = 1 << 20;
    const FETCHES_MAX: usize = 32;

    pub(super) fn of(material: &Material, memory: u64) -> Result<Self, Failure> {
        let file = kernel::open_direct(&material.path).map_err(Failure::system("open the file"))?;
        let pages = CacheBuilder::new(memory as usize)
            .with_weighter(|_: &u64, page: &Bytes| page.len())
            .build::<CacheProperties>();
        Ok(Self {
            pages,
            file: Arc::new(file),
            turns: Arc::new(Semaphore::new(Self::FETCHES_MAX)),
        })
    }

    async fn fetch(file: Arc<File>, turns: Arc<Semaphore>, page: u64) -> io::Result<Bytes> {
        let _turn = turns.acquire_owned().await.map_err(io::Error::other)?;
        let read = move || {
            let mut memory = Aligned::new(Self::PAGE_BYTES as usize);
            file.read_exact_at(memory.as_mut(), page * Self::PAGE_BYTES)?;
            Ok(Bytes::from_owner(memory))
        };
        tokio::task::spawn_blocking(read).await?
    }
}

impl Serves for Foyer {
    type Reader = Self;

    const BLOCKS: bool = false;

    fn reader(&self) -> Self {
        self.clone()
    }
}

impl Reader for Foyer {
    async fn read(&mut self, range: Range<u64>, look: Look) -> Result<(), Failure> {
        let numbers = range.start / Self::PAGE_BYTES..range.end.div_ceil(Self::PAGE_BYTES);
        let entries = numbers.clone().map(|page| {
            self.pages.get_or_fetch(&page, || {
                Self::fetch(Arc::clone(&self.file), Arc::clone(&self.turns), page)
            })
        });
        let entries = try_join_all(entries)
            .await
            .map_err(|error| Failure::Wrong(format!("foyer: {error}")))?;
        for (number, entry) in numbers.zip(&entries) {
            let begin = number * Self::PAGE_BYTES;
            let part = range.start.max(begin)..range.end.min(begin + Self::PAGE_BYTES);
            let bytes = entry.value();
            look.at(
                part.start,
                &bytes[(part.start - begin) as usize..(part.end - begin) as usize],
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::closed_loop::two_workers;
    use crate::scenarios::pages::folder_on_a_disk;
    use crate::scenarios::pages::readers::{Served, Turn};

    #[test]
    fn every_system_hands_out_what_is_in_the_file() {
        let folder = folder_on_a_disk();
        let material = Material::make(&folder.path().join("file"), 8 << 20).unwrap();
        let runtime = two_workers().unwrap();
        let systems: [Box<dyn Served>; 4] = [
            Box::new(Buffer::of(&material).unwrap()),
            Box::new(Mapped::of(&material).unwrap()),
            Box::new(Pread::of(&material).unwrap()),
            Box::new(Foyer::of(&material, 4 << 20).unwrap()),
        ];
        let turn = Turn {
            file_bytes: material.bytes,
            readers: 4,
            reads_max: 20,
            duration: Duration::from_secs(60),
            look: Look::Touched,
            has_a_small_one: false,
        };
        for system in systems {
            assert_eq!(system.turn(&runtime, turn).unwrap().reads, 80);
            system.warm(&runtime, material.bytes).unwrap();
        }
    }
}
