//! The pool: how it is built, and what it is asked for.
//!
//! Promises: what is set is kept to: memory, page size, run length, gap, depth, the time a read waits. Settings that cannot be
//! are refused when the pool is built. Dropping the pool and its files ends its threads; views stay valid.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::PageError;
use super::checksum;
use super::core::{self, Core};
use super::create::{Directories, NewFile};
use super::file::{FileBuilder, PagedFile, blocking};
use super::io::{self, Engine, Faults};
use super::plan::Reach;
use super::region;
use super::stats::Stats;

/// The smallest page: what disks read, and most systems map.
const PAGE_SIZE_MIN: usize = 4096;
const PAGE_SIZE_MAX: usize = 1 << 30;

/// By what means files are read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Io {
    /// io_uring where the kernel has it and allows it, else threads.
    #[default]
    Auto,
    /// io_uring; building the pool fails where there is none.
    Uring,
    /// A pool of threads with `preadv` and `pwritev`.
    Threads,
}

/// How a pool is to be: [`PagePool::builder`].
#[must_use = "it does nothing until it is built"]
pub struct Builder {
    memory: u64,
    page_size: usize,
    io: Io,
    direct: bool,
    run_length: u64,
    gap: u64,
    depth: usize,
    depth_per_read: usize,
    wait_limit: Duration,
    name: Option<Arc<str>>,
    faults: Option<Arc<dyn Faults>>,
}

impl Builder {
    /// The most memory that pages take, in bytes: cached, loading and held ones together. 256 MiB unless told otherwise. Less
    /// than a page is refused. Beside it the pool needs eight bytes for each page of an open file that was ever touched, and some
    /// for each page in memory.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// The size of a page in bytes: a power of two from 4 KiB (or what the system maps, if that is more) to 1 GiB, 64 KiB unless
    /// told otherwise. What is read and evicted at least; smaller ones waste less on small scattered reads, larger ones cost less
    /// a byte.
    pub fn page_size(mut self, bytes: usize) -> Self {
        self.page_size = bytes;
        self
    }

    /// By what means files are read.
    pub fn io(mut self, io: Io) -> Self {
        self.io = io;
        self
    }

    /// Whether files are read past the kernel's cache (O_DIRECT) where their file system can do that; yes unless told otherwise.
    /// Without it memory is taken twice, and the kernel's part is not counted.
    pub fn direct(mut self, direct: bool) -> Self {
        self.direct = direct;
        self
    }

    /// The most that one I/O reads, in bytes, rounded to whole pages, and at most half of the pool: 256 KiB unless told otherwise.
    /// Times `depth_per_read` it is what one large read puts before the reads of others on the disk's queue.
    pub fn run_length(mut self, bytes: u64) -> Self {
        self.run_length = bytes;
        self
    }

    /// Over how many bytes between two missing pages one I/O reads on, rather than being two: about what the disk reads in the
    /// time that one more I/O costs, rounded down to whole pages, and at most `run_length`. 16 KiB unless told otherwise (so none
    /// with pages of 64 KiB, four pages of 4 KiB), which suits a disk that does 60,000 reads or 1 GB a second; over a network it
    /// is more.
    pub fn gap(mut self, bytes: u64) -> Self {
        self.gap = bytes;
        self
    }

    /// How many I/Os run at once, 1 to 4,096; 32 unless told otherwise.
    ///
    /// Reads that lack more than four runs take turns: four of them load at once, or more that lack less, up to twice `depth` runs
    /// in all (16 MiB unless told otherwise). The others wait, the longer the more they lack, and take no memory until then.
    pub fn depth(mut self, ios: usize) -> Self {
        self.depth = ios;
        self
    }

    /// How many of them may be one read's, 1 to 4,096; 16 unless told otherwise.
    pub fn depth_per_read(mut self, ios: usize) -> Self {
        self.depth_per_read = ios;
        self
    }

    /// How long a read waits for memory that others hold before it fails with [`PageError::Full`]; 10 seconds unless told
    /// otherwise. Those that wait are served in the order in which they came: a small read waits behind a large one. To wait for the
    /// disk is not limited by this.
    pub fn wait_limit(mut self, limit: Duration) -> Self {
        self.wait_limit = limit;
        self
    }

    /// The pool's name in metrics (the label `pool`). None unless told otherwise, and then no metrics.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// What goes wrong, in tests.
    #[doc(hidden)]
    pub fn faults(mut self, faults: Arc<dyn Faults>) -> Self {
        self.faults = Some(faults);
        self
    }

    /// Builds the pool and starts its threads.
    ///
    /// # Errors
    /// [`PageError::Settings`]; [`PageError::Engine`] if the I/O that was asked for is not to be had.
    pub fn build(self) -> Result<PagePool, PageError> {
        let Self { page_size, .. } = self;
        if !page_size.is_power_of_two() || !(PAGE_SIZE_MIN..=PAGE_SIZE_MAX).contains(&page_size) {
            return Err(PageError::Settings(
                "the page size has to be a power of two from 4 KiB to 1 GiB",
            ));
        }
        if page_size < region::system_page() {
            // To give back one of the pool's pages would be to give back its neighbours.
            return Err(PageError::Settings(
                "the page size has to be a page of this system's at least",
            ));
        }
        let frames = usize::try_from(self.memory / page_size as u64)
            .ok()
            .filter(|frames| u32::try_from(*frames).is_ok())
            .ok_or(PageError::Settings("so much memory needs larger pages"))?;
        if frames == 0 {
            return Err(PageError::Settings("the memory has to hold a page at least"));
        }
        let depths = 1..=4096;
        if !depths.contains(&self.depth) || !depths.contains(&self.depth_per_read) {
            return Err(PageError::Settings("depths are from 1 to 4096"));
        }
        let pages = |bytes: u64| u32::try_from(bytes / page_size as u64).unwrap_or(u32::MAX);
        // No run is longer than what memory could hold of it.
        let run_pages = pages(self.run_length).clamp(1, (frames as u32).div_ceil(2));
        let settings = core::Settings {
            page_size,
            reach: Reach {
                run_pages,
                gap_pages: pages(self.gap).min(run_pages),
                keeps_gaps: true,
            },
            direct: self.direct,
            depth: self.depth,
            wait_limit: self.wait_limit,
            name: self.name,
        };
        let engine = Engine::start(io::Settings {
            kind: match self.io {
                Io::Auto => io::Kind::Auto,
                Io::Uring => io::Kind::Uring,
                Io::Threads => io::Kind::Threads,
            },
            depth: self.depth,
            depth_per_reader: self.depth_per_read,
            faults: self.faults.clone(),
            ..io::Settings::default()
        })
        .map_err(|cause| PageError::Engine { cause: Arc::new(cause) })?;
        Ok(PagePool(Core::start(
            settings,
            frames,
            engine,
            Directories::new(self.faults),
        )?))
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("memory", &self.memory)
            .field("page_size", &self.page_size)
            .field("io", &self.io)
            .finish_non_exhaustive()
    }
}

/// Memory for ranges of large files, shared by all who read them. Cloning it is cheap, and a clone is the same pool.
#[derive(Clone)]
pub struct PagePool(Arc<Core>);

impl PagePool {
    /// How the pool is to be.
    pub fn builder() -> Builder {
        Builder {
            memory: 256 << 20,
            page_size: 64 << 10,
            io: Io::Auto,
            direct: true,
            run_length: 256 << 10,
            gap: 16 << 10,
            depth: 32,
            depth_per_read: 16,
            wait_limit: Duration::from_secs(10),
            name: None,
            faults: None,
        }
    }

    /// Opens a file. What the pool has of it in memory is found again, unless the file has changed since.
    ///
    /// # Errors
    /// [`PageError::File`], [`PageError::AddressSpace`].
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    ///
    /// # Cancel safety
    /// Dropping it opens the file or does not.
    pub async fn open(&self, path: impl AsRef<Path>) -> Result<PagedFile, PageError> {
        self.file(path).open().await
    }

    /// A file to be opened, with more to be said about it.
    pub fn file(&self, path: impl AsRef<Path>) -> FileBuilder<'_> {
        FileBuilder::new(&self.0, path.as_ref())
    }

    /// A new file, to be written and then published under this name. What has the name stays as it is until then. Its temporary
    /// file is in the same directory, `.NAME.….forebay-new`; what killed processes have left of that kind in the
    /// directory is removed (which is looked for once in a second at most). The file gets the mode that new files get, also where
    /// it replaces one with another.
    ///
    /// # Errors
    /// [`PageError::File`].
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    ///
    /// # Cancel safety
    /// Dropping it makes no file, or one that is removed again.
    pub async fn create(&self, path: impl AsRef<Path>) -> Result<NewFile, PageError> {
        NewFile::create(&self.0, path.as_ref()).await
    }

    /// Makes the side file with the checksums of a file as it is ([`Checksums::side_file`](super::Checksums::side_file)), by
    /// reading it once: for files that [`NewFile::checksums`] has not written. It appears whole, or not at all.
    ///
    /// # Errors
    /// [`PageError::Checksums`] if another file than one of checksums has the side file's name; [`PageError::File`],
    /// [`PageError::Io`].
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    ///
    /// # Cancel safety
    /// Dropping it makes the side file or does not.
    pub async fn write_checksums(&self, file: impl AsRef<Path>, side_file: impl AsRef<Path>) -> Result<(), PageError> {
        let absolute =
            |path: &Path| -> Arc<Path> { std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).into() };
        let (file, side_file) = (absolute(file.as_ref()), absolute(side_file.as_ref()));
        let (page_size, under) = (self.0.settings.page_size, Arc::clone(&side_file));
        let made = blocking(move || checksum::made_for(&file, &under, page_size)).await?;
        let mut new = self.create(side_file).await?;
        new.write(made).await?;
        new.publish().await
    }

    /// Drops everything that nobody holds. Blocks for as long as the system needs to take the memory back, some tenths of a second
    /// a gigabyte.
    pub fn clear(&self) {
        self.0.clear();
    }

    /// The counters. Counts what is held, at some nanoseconds a page in memory.
    pub fn stats(&self) -> Stats {
        self.0.stats()
    }
}

impl fmt::Debug for PagePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PagePool")
            .field("settings", &self.0.settings)
            .field("frames", &self.0.memory.capacity)
            .finish_non_exhaustive()
    }
}
