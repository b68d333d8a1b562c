//! A file of the pool, as its readers see it.
//!
//! Promises: a handle reads the file as it was when it was opened, or when somebody last found it changed in place: all handles of one
//! file see the same. A handle of a file that was *replaced* (another one has its name now) goes on with the old one until it is
//! invalidated, as an open file descriptor does.
//!
//! Knows nothing of how pages are loaded and evicted.

use std::ops::{Bound, Range, RangeBounds};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, mem};

use parking_lot::{Mutex, RwLock};

use crate::blocking::blocking;
use crate::checksum::Checksums;
use crate::error::PageError;
use crate::load::reader::Reader;
use crate::memory::mapping::Mapping;
use crate::memory::pins::Pins;
use crate::opener::Opener;
use crate::view::View;

/// A file to be opened: [`PagePool::file`](crate::PagePool::file).
///
/// ```
/// use forebay::pages::{Checksums, PagePool};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("data");
/// std::fs::write(&path, [7; 1000])?;
/// let pool = PagePool::builder().memory(1 << 20).build()?;
/// let all_are_sevens = Checksums::function(|_, page| page.iter().all(|byte| *byte == 7));
/// let file = pool.file(&path).checksums(all_are_sevens).open().await?;
/// assert_eq!(file.read(..).await?.len(), 1000);
/// # Ok(())
/// # }
/// ```
#[must_use = "it does nothing until it is opened"]
pub struct FileBuilder<'a> {
    opener: &'a Arc<Opener>,
    reader: &'a Arc<Reader>,
    path: PathBuf,
    checksums: Option<Checksums>,
}

impl<'a> FileBuilder<'a> {
    pub(crate) fn new(opener: &'a Arc<Opener>, reader: &'a Arc<Reader>, path: &Path) -> Self {
        Self {
            opener,
            reader,
            path: path.to_path_buf(),
            checksums: None,
        }
    }

    /// Verifies every page against its checksum when it is loaded; a mismatch is an error for those who want the page
    /// ([`PageError::Checksum`]). Others who have the file open are served verified pages from then on as well. When the file changes
    /// its side file has to change with it, otherwise nobody can open it ([`PageError::Checksums`]).
    pub fn checksums(mut self, checksums: Checksums) -> Self {
        self.checksums = Some(checksums);
        self
    }

    /// Opens it. Its pages in memory are found again, unless the file has changed since.
    ///
    /// # Errors
    /// [`PageError::File`], [`PageError::Checksums`], [`PageError::AddressSpace`].
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    ///
    /// # Cancel safety
    /// Dropping it opens the file or does not.
    pub async fn open(self) -> Result<PagedFile, PageError> {
        let (opener, reader) = (Arc::clone(self.opener), Arc::clone(self.reader));
        let checksums = self.checksums;
        let path = self.path;
        blocking(move || {
            let path: Arc<Path> = std::path::absolute(&path).unwrap_or(path).into();
            let mapping = opener.open(&path, checksums.as_ref())?;
            Ok(PagedFile(Arc::new(Handle {
                opener,
                reader,
                path,
                checksums,
                current: RwLock::new(mapping),
                invalidation: Mutex::default(),
            })))
        })
        .await
    }
}

/// A file whose pages the pool keeps. Cloning it is cheap, and a clone is the same handle.
///
/// It shows the file as it was when it was opened, or when somebody last found it changed in place, by opening or invalidating it: all
/// handles of one file see the same. If the file is *replaced* (another one gets its name), a handle goes on with the old
/// one until it is itself invalidated, as an open file descriptor does.
///
/// Dropping the last handle keeps the pages: opening the file again finds them. They are evicted as others need the room.
///
/// ```
/// use forebay::pages::PagePool;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("data");
/// std::fs::write(&path, "the old text")?;
/// let pool = PagePool::builder().memory(1 << 20).build()?;
/// let file = pool.open(&path).await?;
/// let old = file.read(4..7).await?;
/// assert_eq!((&*old, file.len()), (&b"old"[..], 12));
///
/// std::fs::write(&path, "the new text")?;
/// file.invalidate(..).await?; // Read anew from now on.
/// assert_eq!(&*file.read(4..7).await?, b"new");
/// assert_eq!(&*old, b"old"); // A view keeps what it has.
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PagedFile(Arc<Handle>);

struct Handle {
    opener: Arc<Opener>,
    reader: Arc<Reader>,
    /// Absolute, as it was opened.
    path: Arc<Path>,
    checksums: Option<Checksums>,
    current: RwLock<Arc<Mapping>>,
    /// One at a time: whoever looked at the file first must not be the last to say which mapping serves.
    invalidation: Mutex<()>,
}

impl PagedFile {
    /// How long the file was when it was opened, or when it was last found to be changed, in bytes.
    #[expect(clippy::len_without_is_empty, reason = "of a file, as in std::fs::Metadata")]
    pub fn len(&self) -> u64 {
        self.0.current().length
    }

    /// Its name, made absolute when it was opened.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Whether reads bypass the kernel's page cache, so that pages are in memory only once.
    pub fn is_direct(&self) -> bool {
        self.0.current().file.is_direct()
    }

    /// The bytes of a range, from memory or from the file. Neighbouring pages that are not in memory become one I/O; what others
    /// are loading is waited for and not loaded again. An empty range within the file is an empty view.
    ///
    /// # Errors
    /// [`PageError::PastEnd`] and [`PageError::Backwards`] for the range; [`PageError::TooLarge`] if it can never fit in the
    /// pool, [`PageError::Full`] if it did not within the pool's `memory_timeout`; [`PageError::Io`], [`PageError::Truncated`],
    /// [`PageError::Checksum`] if its own pages could not be loaded: the next read tries again. [`PageError::Closed`].
    ///
    /// # Cancel safety
    /// Dropping it releases the pages. Loads that it has begun go on; those that have not begun, and that nobody else wants, are
    /// cancelled.
    ///
    /// # Panics
    /// If it has to wait for memory or for its turn to load much outside of a tokio runtime, or in one whose timer is not enabled.
    pub async fn read(&self, range: impl RangeBounds<u64>) -> Result<View, PageError> {
        let mapping = self.0.current();
        let bytes = self.0.counted(resolve(&range, &mapping))?;
        let mut missing = Vec::new();
        let pins = self.0.counted(self.0.reader.pin(&mapping, &bytes, &mut missing))?;
        if missing.is_empty() {
            // SAFETY: none was missing, so all were seen resident, under these pins.
            return Ok(unsafe { View::of(pins, bytes) });
        }
        // Apart, so that the future of a read that hits is small.
        Box::pin(self.0.load(&mapping, pins, missing, bytes)).await
    }

    /// The bytes of a range if all of them are in memory: never waits, and begins no I/O.
    ///
    /// # Errors
    /// [`PageError::PastEnd`], [`PageError::Backwards`], [`PageError::TooLarge`].
    pub fn read_resident(&self, range: impl RangeBounds<u64>) -> Result<Option<View>, PageError> {
        let mapping = self.0.current();
        let bytes = self.0.counted(resolve(&range, &mapping))?;
        let mut missing = Vec::new();
        let pins = self.0.counted(self.0.reader.pin(&mapping, &bytes, &mut missing))?;
        // SAFETY: as in `read`.
        Ok(missing.is_empty().then(|| unsafe { View::of(pins, bytes) }))
    }

    /// The bytes of many ranges, in the order of the ranges. What is missing of all of them is planned as one: ranges that lie
    /// near each other share I/Os, over gaps up to the pool's `max_gap_bytes`. All of them are held at once, so together they have to
    /// fit in the pool; they may overlap.
    ///
    /// # Errors
    /// As [`read`](Self::read); the first error fails the whole call.
    ///
    /// # Panics
    /// As [`read`](Self::read).
    ///
    /// # Cancel safety
    /// As [`read`](Self::read).
    pub async fn read_many(&self, ranges: impl IntoIterator<Item = Range<u64>>) -> Result<Vec<View>, PageError> {
        let mapping = self.0.current();
        let ranges: Result<Vec<Range<u64>>, PageError> =
            ranges.into_iter().map(|range| resolve(&range, &mapping)).collect();
        let ranges = self.0.counted(ranges)?;
        let spans: Vec<Range<u32>> = ranges.iter().map(|bytes| mapping.pages_of(bytes)).collect();
        let length = ranges.iter().map(|bytes| bytes.end - bytes.start).sum();
        let read = Box::pin(self.0.reader.read_spans(&mapping, &spans, length)).await;
        let pins = self.0.counted(read)?;
        Ok(pins
            .into_iter()
            .zip(ranges)
            // SAFETY: `read_spans` returns pins of pages that were seen resident under them.
            .map(|(pins, bytes)| unsafe { View::of(pins, bytes) })
            .collect())
    }

    /// Begins to load what of a range is not in memory, and does not wait for it. Waits for its turn if memory is short.
    ///
    /// # Errors
    /// As [`read`](Self::read), except for errors of I/O, which are not reported.
    ///
    /// # Panics
    /// As [`read`](Self::read).
    ///
    /// # Cancel safety
    /// Dropping it loads the range or does not.
    pub async fn prefetch(&self, range: impl RangeBounds<u64>) -> Result<(), PageError> {
        let mapping = self.0.current();
        let bytes = self.0.counted(resolve(&range, &mapping))?;
        let pages = mapping.pages_of(&bytes);
        self.0.counted(Box::pin(self.0.reader.prefetch(&mapping, pages)).await)
    }

    /// The file has changed in this range: what begins to read after this returns reads it from the file as it is now. Views keep
    /// the bytes that they have.
    ///
    /// Changes outside of the range are not looked for, now or later, unless the file's length has changed.
    ///
    /// Pages of the range that nobody holds are dropped. If somebody holds or loads one of them, or the file is another one (it was
    /// replaced, or its length has changed), or a side file has its checksums, then all of its pages are dropped, and the side file
    /// is read again.
    ///
    /// # Errors
    /// [`PageError::File`] if there is no file of that name any more: the range is dropped from memory, and reads go on with the file
    /// that was opened. [`PageError::Checksums`] if the file has another length now and its side file is still for the old one: reads
    /// go on with what was opened. [`PageError::Backwards`]; a range that ends past the end of the file is cut off there.
    ///
    /// # Cancel safety
    /// Dropping it invalidates the range or does not.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn invalidate(&self, range: impl RangeBounds<u64>) -> Result<(), PageError> {
        let bytes = bounds(&range, u64::MAX);
        if bytes.start > bytes.end {
            return self.0.counted(Err(PageError::Backwards {
                start: bytes.start,
                end: bytes.end,
            }));
        }
        let handle = Arc::clone(&self.0);
        let ended = blocking(move || handle.invalidate(bytes)).await;
        self.0.counted(ended)
    }
}

impl Handle {
    /// The mapping that serves now.
    fn current(&self) -> Arc<Mapping> {
        let mapping = Arc::clone(&self.current.read());
        if mapping.is_retired() {
            return self.follow(&mapping);
        }
        mapping
    }

    #[cold]
    fn follow(&self, retired: &Arc<Mapping>) -> Arc<Mapping> {
        let latest = retired.latest();
        let mut current = self.current.write();
        // Another may have followed, or have found the file replaced.
        if Arc::ptr_eq(&current, retired) {
            *current = latest;
        }
        Arc::clone(&current)
    }

    async fn load(
        &self,
        mapping: &Arc<Mapping>,
        pins: Pins,
        missing: Vec<u32>,
        bytes: Range<u64>,
    ) -> Result<View, PageError> {
        let spans = [pins.pages()];
        let loaded = self.reader.load(mapping, &spans, vec![pins], missing).await;
        let mut pins = self.counted(loaded)?;
        let pins = pins.pop().expect("one span, one set of pins");
        // SAFETY: `load` returns pins of pages that were seen resident under them.
        Ok(unsafe { View::of(pins, bytes) })
    }

    fn invalidate(&self, bytes: Range<u64>) -> Result<(), PageError> {
        let _turn = self.invalidation.lock();
        // In this order: a mapping that another puts in the place of this one has nothing from before the look.
        let now = self.opener.identify(&self.path);
        let mut mapping = self.current();
        let is_same = match &now {
            Ok(identity) => identity.file == mapping.file_id() && identity.length == mapping.length,
            // Reads go on with the old one.
            Err(_) => true,
        };
        if !is_same {
            let next = self.opener.open(&self.path, self.checksums.as_ref())?;
            drop(mapping);
            let before = mem::replace(&mut *self.current.write(), Arc::clone(&next));
            self.opener.evictor.forget_if_idle(before);
            // Others may have pages of it from before.
            mapping = next;
        }
        let bytes = bytes.start.min(mapping.length)..bytes.end.min(mapping.length);
        let none_left = self.opener.evictor.drop_pages(&mapping, mapping.pages_of(&bytes));
        // A side file describes its file as a whole.
        if !none_left || (is_same && mapping.has_side_file()) {
            self.opener.replace(&mapping)?;
        }
        // Whatever serves now began to load after the change.
        let everything = !none_left || bytes == (0..mapping.length);
        mapping.latest().found(now?, everything);
        Ok(())
    }

    fn counted<T>(&self, outcome: Result<T, PageError>) -> Result<T, PageError> {
        if outcome.is_err() {
            self.reader.counters.failed();
        }
        outcome
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.opener.close(self.current.get_mut());
    }
}

impl fmt::Debug for FileBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileBuilder")
            .field("path", &self.path)
            .field("checksums", &self.checksums)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for PagedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PagedFile")
            .field("path", &self.path())
            .field("length", &self.len())
            .finish_non_exhaustive()
    }
}

/// The bytes that a range means in a file of this length.
fn bounds(range: &impl RangeBounds<u64>, length: u64) -> Range<u64> {
    let start = match range.start_bound() {
        Bound::Included(start) => *start,
        Bound::Excluded(before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(last) => last.saturating_add(1),
        Bound::Excluded(end) => *end,
        Bound::Unbounded => length,
    };
    start..end
}

fn resolve(range: &impl RangeBounds<u64>, mapping: &Mapping) -> Result<Range<u64>, PageError> {
    let Range { start, end } = bounds(range, mapping.length);
    if end > mapping.length || start > mapping.length {
        return Err(PageError::PastEnd {
            path: Arc::clone(&mapping.path),
            start,
            end,
            file_length: mapping.length,
        });
    }
    if start > end {
        return Err(PageError::Backwards { start, end });
    }
    Ok(start..end)
}
