//! The pool: how its parts are put together, and what users ask of it.
//!
//! Promises: the limits that were set are kept. A limit of zero is refused where it is set, other settings that cannot be when the
//! pool is built. Dropping the pool and its files ends its threads; views stay valid.
//!
//! Knows all parts of the pool, and nothing of how they work.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;

use crate::blocking::blocking;
use crate::checksum;
use crate::create::creator::Creator;
use crate::create::directory::Directories;
use crate::create::new_file::NewFile;
use crate::error::PageError;
use crate::eviction::evictor::Evictor;
use crate::eviction::sweeper::{self, Publish};
use crate::file::{FileBuilder, PagedFile};
use crate::load::admission::Admission;
use crate::load::discard::DiscardBuffer;
use crate::load::plan::Reach;
use crate::load::reader::Reader;
use crate::load::run::RunContext;
use crate::memory::files::Files;
use crate::memory::frames::FrameBudget;
use crate::memory::mapping::MappingContext;
use crate::memory::notes::Notes;
use crate::memory::region;
use crate::metrics;
use crate::monitor::Monitor;
use crate::opener::Opener;
use crate::stats::{Counters, Stats};
use crate::storage::faults::Faults;
use crate::storage::local::LocalStorage;
use crate::storage::local::engine::Engine;
use crate::storage::local::settings::{Kind, Settings};

/// The smallest page: what disks read, and most systems map.
const PAGE_SIZE_MIN: usize = 4096;
const PAGE_SIZE_MAX: usize = 1 << 30;
/// The most I/Os at once.
const DEPTH_MAX: usize = 4096;

/// By what means files are read and written.
///
/// ```
/// use forebay::pages::{Io, PagePool};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = PagePool::builder().io(Io::Threads).build()?;
/// assert_eq!(pool.stats().io, "threads");
///
/// let pool = PagePool::new()?; // `Io::Auto`
/// let stats = pool.stats();
/// println!("{} {}", stats.io, stats.why_not_io_uring.as_deref().unwrap_or_default());
/// assert_eq!(stats.io == "io_uring", stats.why_not_io_uring.is_none());
/// # Ok(())
/// # }
/// ```
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

/// Chooses a pool's limits; see [`PagePool::builder`].
///
/// ```
/// use std::time::Duration;
/// use forebay::pages::{PageError, PagePool};
///
/// # fn main() -> Result<(), PageError> {
/// let pool = PagePool::builder()
///     .memory(64 << 20)
///     .page_size(4 << 10) // small scattered reads
///     .max_gap_bytes(32 << 10)
///     .memory_timeout(Duration::from_secs(2))
///     .build()?;
/// assert_eq!(pool.stats().capacity_bytes, 64 << 20);
///
/// let refused = PagePool::builder().page_size(5_000).build().unwrap_err();
/// assert!(matches!(refused, PageError::Settings(_)), "{refused}");
/// # Ok(())
/// # }
/// ```
#[must_use = "a builder does nothing until it is built"]
pub struct PagePoolBuilder {
    memory: u64,
    page_size: usize,
    io: Io,
    direct: bool,
    max_run_bytes: u64,
    max_gap_bytes: u64,
    depth: usize,
    depth_per_read: usize,
    memory_timeout: Duration,
    name: Option<Arc<str>>,
    faults: Option<Arc<dyn Faults>>,
}

impl PagePoolBuilder {
    /// The most memory that pages take, in bytes: cached, loading and held ones together. Default: 256 MiB.
    ///
    /// Besides that the pool needs some bytes for each page in memory, and eight for each page that was ever touched of a file that is open
    /// or has pages in memory, once more for each older version of it of which a view is held. (These come by 4 KiB: an 8,192nd of what
    /// was read of a file, and a 512th with pages of 4 KiB.)
    ///
    /// The system's page tables are 4 KiB for each 2 MiB of a file in which there is a page in memory. They may take a 32nd of this limit (or
    /// 256 KiB) beside it; what they take beyond that there is less for pages, up to half of the limit, unless all of it is held, or waited
    /// for. So pages that are far from all others leave a 32nd of the room to their tables if they are of 64 KiB, and half of it if they are
    /// of 4 KiB. Not counted are 4 KiB for each GiB of address space, and for each file smaller than 2 MiB.
    ///
    /// # Panics
    ///
    /// When it is 0: no page would fit.
    #[track_caller]
    pub fn memory(mut self, bytes: u64) -> Self {
        assert!(bytes > 0, "memory must be at least 1: otherwise no page fits");
        self.memory = bytes;
        self
    }

    /// The size of a page in bytes: a power of two from 4 KiB (or the system's page size, if that is larger) to 1 GiB. Default: 64
    /// KiB. It is the least that is read and evicted; smaller pages waste less on small scattered reads, larger ones cost less a
    /// byte.
    pub fn page_size(mut self, bytes: usize) -> Self {
        self.page_size = bytes;
        self
    }

    /// By what means files are read and written. Default: [`Io::Auto`].
    pub fn io(mut self, io: Io) -> Self {
        self.io = io;
        self
    }

    /// Whether reads and writes bypass the kernel's page cache (O_DIRECT) where the file system supports it. Default: yes. Without it
    /// the bytes are in memory twice, and the kernel's part is not counted.
    pub fn direct(mut self, direct: bool) -> Self {
        self.direct = direct;
        self
    }

    /// The most that one I/O reads, in bytes, rounded to whole pages, and at most half of the pool. Default: 256 KiB. Times
    /// `depth_per_read` it is what one large read puts on the disk's queue ahead of the reads of others.
    ///
    /// # Panics
    ///
    /// When it is 0: nothing could be read.
    #[track_caller]
    pub fn max_run_bytes(mut self, bytes: u64) -> Self {
        assert!(bytes > 0, "max_run_bytes must be at least 1: otherwise nothing is read");
        self.max_run_bytes = bytes;
        self
    }

    /// The longest gap, in bytes, between two missing pages over which one I/O reads on, rather than two being made: about what the
    /// disk reads in the time that one more I/O costs. Rounded down to whole pages, and at most `max_run_bytes`. Default: 16 KiB (so
    /// none with pages of 64 KiB, four pages of 4 KiB), which suits a disk that does 60,000 reads or 1 GB a second; over a network
    /// it is more.
    pub fn max_gap_bytes(mut self, bytes: u64) -> Self {
        self.max_gap_bytes = bytes;
        self
    }

    /// How many I/Os run at once, up to 4,096. Default: 32.
    ///
    /// Reads that lack more than four runs take turns: four of them load at once, or more that lack less, up to twice `depth` runs
    /// in all (16 MiB by default). The others wait, the longer the more they lack, and take no memory until then.
    ///
    /// # Panics
    ///
    /// When it is 0: nothing could be read.
    #[track_caller]
    pub fn depth(mut self, ios: usize) -> Self {
        assert!(ios > 0, "depth must be at least 1: otherwise nothing is read");
        self.depth = ios;
        self
    }

    /// How many of the I/Os that run at once may belong to one read, up to 4,096. Default: 16.
    ///
    /// # Panics
    ///
    /// When it is 0: nothing could be read.
    #[track_caller]
    pub fn depth_per_read(mut self, ios: usize) -> Self {
        assert!(ios > 0, "depth_per_read must be at least 1: otherwise nothing is read");
        self.depth_per_read = ios;
        self
    }

    /// How long a read waits for memory that others hold before it fails with [`PageError::Full`]. Default: 10 seconds. Waiting reads
    /// are served in the order in which they came: a small read waits behind a large one. Waiting for the disk does not count.
    pub fn memory_timeout(mut self, timeout: Duration) -> Self {
        self.memory_timeout = timeout;
        self
    }

    /// The pool's name in metrics (the label `pool`). Default: none, and then there are no metrics.
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
    /// [`PageError::Settings`]; [`PageError::Engine`] if the I/O that was asked for is not available.
    pub fn build(self) -> Result<PagePool, PageError> {
        let Self { page_size, .. } = self;
        if !page_size.is_power_of_two() || !(PAGE_SIZE_MIN..=PAGE_SIZE_MAX).contains(&page_size) {
            return Err(PageError::Settings(
                "the page size has to be a power of two from 4 KiB to 1 GiB",
            ));
        }
        if page_size < region::system_page() {
            // To give back one of the pool's pages would be to give back its neighbours.
            return Err(PageError::Settings("the page size has to be at least this system's"));
        }
        let frames = usize::try_from(self.memory / page_size as u64)
            .ok()
            .filter(|frames| u32::try_from(*frames).is_ok())
            .ok_or(PageError::Settings("so much memory needs larger pages"))?;
        if frames == 0 {
            return Err(PageError::Settings("the memory has to hold at least one page"));
        }
        if self.depth > DEPTH_MAX || self.depth_per_read > DEPTH_MAX {
            return Err(PageError::Settings("depths are from 1 to 4096"));
        }
        let pages = |bytes: u64| u32::try_from(bytes / page_size as u64).unwrap_or(u32::MAX);
        // No run is longer than what memory could hold of it.
        let run_pages = pages(self.max_run_bytes).clamp(1, (frames as u32).div_ceil(2));
        let reach = Reach {
            run_pages,
            gap_pages: pages(self.max_gap_bytes).min(run_pages),
        };
        let engine = Engine::start(Settings {
            kind: match self.io {
                Io::Auto => Kind::Auto,
                Io::Uring => Kind::Uring,
                Io::Threads => Kind::Threads,
            },
            depth: self.depth,
            depth_per_read: self.depth_per_read,
            faults: self.faults.clone(),
            ..Settings::default()
        })
        .map_err(|cause| PageError::Engine { cause: Arc::new(cause) })?;
        let pool = Arc::new(self.assemble(frames, reach, engine)?);
        let publish = pool
            .name
            .clone()
            .map(|name| publish(name, pool.monitor.clone(), &pool.engine));
        sweeper::start(&pool.evictor, publish)
            .map_err(|_| PageError::Settings("no thread for the sweeper could be started"))?;
        Ok(PagePool(pool))
    }

    /// The parts of a pool.
    fn assemble(self, frames: usize, reach: Reach, engine: Engine) -> Result<Pool, PageError> {
        let Self { page_size, direct, .. } = self;
        let bytes = |pages: u32| (pages as usize).saturating_mul(page_size);
        let engine = Arc::new(engine);
        let counters = Arc::<Counters>::default();
        let files = Arc::<RwLock<Files>>::default();
        let context = MappingContext {
            page_size,
            frames: Arc::new(FrameBudget::new(frames).with_tables(page_size)),
            notes: Arc::new(Notes::new(frames)),
            outdated: Arc::default(),
        };
        let evictor = Arc::new(Evictor::new(&context, Arc::clone(&files), Arc::clone(&counters)));
        let discard_buffer = DiscardBuffer::reserve(bytes(reach.gap_pages))
            .map_err(|_| PageError::Settings("no address space for the discard buffer"))?;
        let monitor = Monitor {
            page_size,
            counters: Arc::clone(&counters),
            frames: Arc::clone(&context.frames),
        };
        let reader = Reader {
            page_size,
            reach,
            memory_timeout: self.memory_timeout,
            counters: Arc::clone(&counters),
            frames: Arc::clone(&context.frames),
            admission: Admission::new(self.depth, reach.run_pages as usize),
            runs: Arc::new(RunContext {
                evictor: Arc::clone(&evictor),
                counters: Arc::clone(&counters),
                discard_buffer,
            }),
        };
        let creator = Creator {
            engine: Arc::clone(&engine),
            directories: Directories::new(self.faults),
            direct,
            page_size,
            run_bytes: bytes(reach.run_pages),
            counters,
            evictor: Arc::clone(&evictor),
        };
        let opener = Opener {
            // Another kind of storage takes its place here.
            storage: Arc::new(LocalStorage::new(Arc::clone(&engine), direct)),
            context,
            files,
            evictor: Arc::clone(&evictor),
        };
        Ok(Pool {
            name: self.name,
            monitor,
            engine,
            evictor,
            opener: Arc::new(opener),
            reader: Arc::new(reader),
            creator: Arc::new(creator),
        })
    }
}

/// Publishes the figures of a pool as long as its engine is there.
fn publish(name: Arc<str>, monitor: Monitor, engine: &Arc<Engine>) -> Publish {
    let engine = Arc::downgrade(engine);
    Box::new(move |evictor| {
        if let Some(engine) = engine.upgrade() {
            metrics::publish(&name, &monitor.stats(evictor, &engine));
        }
    })
}

impl fmt::Debug for PagePoolBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PagePoolBuilder")
            .field("memory", &self.memory)
            .field("page_size", &self.page_size)
            .field("io", &self.io)
            .finish_non_exhaustive()
    }
}

/// Memory for ranges of large files, shared by all who read them. Cloning it is cheap, and a clone is the same pool.
///
/// ```
/// use forebay::pages::PagePool;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("data");
/// std::fs::write(&path, vec![7; 1 << 20])?;
/// let pool = PagePool::builder().memory(64 << 20).build()?; // one for the whole program
/// let file = pool.open(&path).await?;
/// let (one, other) = tokio::join!(file.read(0..100_000), file.read(50_000..200_000)); // share what overlaps
/// assert_eq!((one?.len(), other?.len()), (100_000, 150_000));
///
/// let elsewhere = file.clone(); // the same pages
/// assert!(elsewhere.read_resident(0..200_000)?.is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PagePool(Arc<Pool>);

/// The parts of a pool.
struct Pool {
    /// In metrics.
    name: Option<Arc<str>>,
    monitor: Monitor,
    engine: Arc<Engine>,
    evictor: Arc<Evictor>,
    opener: Arc<Opener>,
    reader: Arc<Reader>,
    creator: Arc<Creator>,
}

impl PagePool {
    /// A pool with the default limits, and its threads; see [`PagePoolBuilder`] for each.
    ///
    /// # Errors
    /// [`PageError::Settings`]; [`PageError::Engine`].
    pub fn new() -> Result<Self, PageError> {
        Self::builder().build()
    }

    /// Chooses limits; [`PagePoolBuilder::build`] makes the pool.
    pub fn builder() -> PagePoolBuilder {
        PagePoolBuilder {
            memory: 256 << 20,
            page_size: 64 << 10,
            io: Io::Auto,
            direct: true,
            max_run_bytes: 256 << 10,
            max_gap_bytes: 16 << 10,
            depth: 32,
            depth_per_read: 16,
            memory_timeout: Duration::from_secs(10),
            name: None,
            faults: None,
        }
    }

    /// Opens a file. Its pages in memory are found again, unless the file has changed since, as its inode, length and times tell; or had
    /// changed just before it was opened last (20 ms; 2 s where times are kept in whole seconds), and may have once more at the same time.
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

    /// A file to be opened, with settings of its own.
    pub fn file(&self, path: impl AsRef<Path>) -> FileBuilder<'_> {
        FileBuilder::new(&self.0.opener, &self.0.reader, path.as_ref())
    }

    /// A new file, to be written and then published under this name. What has the name stays as it is until then. Its temporary
    /// file is in the same directory, `.NAME.….forebay-new`; those that killed processes have left in the directory are removed
    /// (it is searched once a second at most). The file gets the mode of new files, even where it replaces one with another mode.
    ///
    /// # Errors
    /// [`PageError::File`].
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    ///
    /// # Cancel safety
    /// Dropping it creates no file, or one that is removed again.
    pub async fn create(&self, path: impl AsRef<Path>) -> Result<NewFile, PageError> {
        NewFile::create(&self.0.creator, path.as_ref()).await
    }

    /// Makes the side file with the checksums of a file as it is now ([`Checksums::side_file`](crate::Checksums::side_file)), by
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
        let (page_size, under) = (self.0.reader.page_size, Arc::clone(&side_file));
        let made = blocking(move || checksum::made_for(&file, &under, page_size)).await?;
        let mut new = self.create(side_file).await?;
        new.write(made).await?;
        new.publish().await
    }

    /// Drops all pages that nobody holds. Blocks for as long as the system needs to take the memory back, some tenths of a second a
    /// gigabyte.
    pub fn clear(&self) {
        self.0.evictor.clear();
    }

    /// What the pool counts about itself. Takes some nanoseconds for each page in memory, to count those that are held.
    pub fn stats(&self) -> Stats {
        self.0.monitor.stats(&self.0.evictor, &self.0.engine)
    }
}

impl fmt::Debug for PagePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PagePool")
            .field("name", &self.0.name)
            .field("page_size", &self.0.reader.page_size)
            .field("frames", &self.0.reader.frames.capacity)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn a_limit_of_zero_is_refused_where_it_is_set() {
        let refusals: [fn(PagePoolBuilder) -> PagePoolBuilder; 4] = [
            |builder| builder.memory(0),
            |builder| builder.max_run_bytes(0),
            |builder| builder.depth(0),
            |builder| builder.depth_per_read(0),
        ];
        for set in refusals {
            assert!(catch_unwind(AssertUnwindSafe(|| set(PagePool::builder()))).is_err());
        }
    }

    #[test]
    fn settings_that_cannot_be_are_refused_when_the_pool_is_built() {
        let refused: [fn(PagePoolBuilder) -> PagePoolBuilder; 6] = [
            |builder| builder.page_size(0),
            |builder| builder.page_size(2048),
            |builder| builder.page_size(12 << 10),
            |builder| builder.memory(4096),
            |builder| builder.depth(4097),
            |builder| builder.depth_per_read(4097),
        ];
        for set in refused {
            let built = set(PagePool::builder()).build();
            assert!(matches!(built, Err(PageError::Settings(_))), "{built:?}");
        }
    }

    #[tokio::test]
    async fn files_that_change_again_and_again_leave_no_names_and_no_mappings_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("data");
        std::fs::write(&path, [7; 12 * 4096]).expect("written");
        let built = PagePool::builder()
            .memory(16 * 4096)
            .page_size(4096)
            .io(Io::Threads)
            .max_run_bytes(8 * 4096)
            .max_gap_bytes(0)
            .build();
        let pool = built.expect("a pool");
        let file = pool.open(&path).await.expect("opened");
        let Pool {
            evictor,
            opener,
            reader,
            ..
        } = &*pool.0;
        // A view of the first content does not keep all that came after it.
        let first = file.read(..1).await.expect("read");
        for round in 0..300 {
            let view = file.read(..).await.expect("read");
            // With what is held the mapping is replaced, without it the pages are dropped.
            let held = (round % 3 > 0).then(|| view.slice(..1));
            drop(view);
            file.invalidate(..).await.expect("it is there");
            drop(held);
            let names = evictor.names();
            assert!(
                names <= 2 * reader.frames.capacity + 12,
                "{names} names in round {round}"
            );
        }
        let began = std::time::Instant::now();
        while opener.files.read().all().filter(|mapping| mapping.taken() > 0).count() > 2 {
            assert!(began.elapsed().as_secs() < 60, "pages of retired mappings stay");
            tokio::task::yield_now().await;
        }
        let known = opener.files.read().all().count();
        assert!(known <= 20, "{known} mappings pile up");
        drop((file, first));
        pool.clear();
        assert_eq!(reader.frames.taken(), 0);
    }
}
