//! Bytes of a file, where they lie in the pool.
//!
//! Promises: the bytes are contiguous and not copied, they do not change, and they stay as long as the view, a clone, or a
//! `Bytes` made of it lives. Cloning costs one count; a slice that needs fewer pages holds only those, so a small slice of a
//! large view lets the rest go. Dropping the last of them makes the pages ones that can be evicted.
//!
//! Knows nothing of loading and evicting.

use std::fmt;
use std::ops::{Bound, Deref, Range, RangeBounds};
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

use bytes::Bytes;

use super::mapping::Pins;

/// A range of a file's bytes, held in memory while it lives: `&[u8]` by `Deref`.
///
/// It takes part of the pool's memory: views that are kept for long leave less for reads, which wait for it and in the end fail
/// ([`PageError::Full`](super::PageError::Full)).
///
/// ```
/// # use forebay::pages::PagePool;
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let path = tempfile::NamedTempFile::new().unwrap();
/// # std::fs::write(&path, [7; 100_000]).unwrap();
/// let pool = PagePool::builder().memory(64 << 20).build()?;
/// let view = pool.open(path).await?.read(10..90_000).await?;
/// assert!(view.iter().all(|byte| *byte == 7));
/// let bytes: bytes::Bytes = view.slice(..100).into();      // no copy; holds one page
/// assert_eq!(bytes.len(), 100);
/// # Ok::<(), forebay::pages::PageError>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct View {
    /// Where the first byte is; dangling if there is none.
    start: NonNull<u8>,
    length: usize,
    /// Of the first byte, in the file.
    offset: u64,
    /// None if there are no bytes.
    pins: Option<Arc<Pins>>,
}

// SAFETY: it is a shared slice of bytes that nobody writes as long as it lives.
unsafe impl Send for View {}
// SAFETY: as above.
unsafe impl Sync for View {}

impl View {
    /// The bytes of the file in `bytes`, whose pages are held.
    ///
    /// # Safety
    /// Every page of the pins has been seen resident, and the bytes are within them.
    pub(crate) unsafe fn of(pins: Pins, bytes: Range<u64>) -> Self {
        debug_assert!(pins.mapping().pages_of(&bytes) == pins.pages() && pins.are_resident());
        if bytes.is_empty() {
            return Self::empty(bytes.start);
        }
        Self {
            start: pins.mapping().at(bytes.start),
            length: (bytes.end - bytes.start) as usize,
            offset: bytes.start,
            pins: Some(Arc::new(pins)),
        }
    }

    pub(crate) fn empty(offset: u64) -> Self {
        Self {
            start: NonNull::dangling(),
            length: 0,
            offset,
            pins: None,
        }
    }

    /// Where in the file it begins, in bytes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// A part of it, by positions in the view. No copy; holds only the pages that it needs.
    ///
    /// # Panics
    /// If the range is not within the view, as with slices.
    #[must_use]
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Self {
        let from = match range.start_bound() {
            Bound::Included(from) => *from,
            Bound::Excluded(before) => before + 1,
            Bound::Unbounded => 0,
        };
        let to = match range.end_bound() {
            Bound::Included(last) => last + 1,
            Bound::Excluded(to) => *to,
            Bound::Unbounded => self.length,
        };
        assert!(from <= to && to <= self.length, "{from}..{to} is not within a view of {} bytes", self.length);
        let offset = self.offset + from as u64;
        let Some(pins) = self.pins.as_ref().filter(|_| from < to) else {
            return Self::empty(offset);
        };
        let pages = pins.mapping().pages_of(&(offset..self.offset + to as u64));
        let pins = if pages == pins.pages() {
            Arc::clone(pins)
        } else {
            Arc::new(pins.part(pages))
        };
        Self {
            // SAFETY: within the view.
            start: unsafe { self.start.add(from) },
            length: to - from,
            offset,
            pins: Some(pins),
        }
    }
}

impl Deref for View {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the pages were seen resident under the pins, which live as long as this; nobody writes them until they are
        // let go. Without pins the length is zero.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl AsRef<[u8]> for View {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// No copy: the pages are held until the last clone and slice of the `Bytes` is dropped, and all of them that long: a slice of
/// `Bytes` does not know pages. To keep a small part for long, [`View::slice`] first.
impl From<View> for Bytes {
    fn from(view: View) -> Self {
        Self::from_owner(view)
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View({}..{})", self.offset, self.offset + self.length as u64)
    }
}
