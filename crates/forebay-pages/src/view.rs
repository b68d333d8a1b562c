//! Bytes of a file, where they lie in the pool.
//!
//! Promises: the bytes are contiguous and not copied, they do not change, and they stay as long as the view, a clone, or a
//! `Bytes` made of it lives. Cloning increments one count. A slice that needs fewer pages holds only those, so a small slice of a
//! large view releases the rest. When the last of them is dropped, the pages can be evicted.
//!
//! Knows nothing of loading and evicting.

use std::fmt;
use std::ops::{Bound, Deref, Range, RangeBounds};
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

use bytes::Bytes;

use crate::memory::pins::Pins;

/// A range of a file's bytes, held in memory while it lives: `&[u8]` by `Deref`.
///
/// It takes up some of the pool's memory: views that are kept for long leave less for reads, which wait for it and in the end fail
/// ([`PageError::Full`](crate::PageError::Full)).
///
/// ```
/// # use forebay::pages::PagePool;
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let path = tempfile::NamedTempFile::new().unwrap();
/// # std::fs::write(&path, [7; 100_000]).unwrap();
/// let pool = PagePool::builder().memory(64 << 20).build()?;
/// let view = pool.open(&path).await?.read(10..90_000).await?;
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
            Bound::Excluded(before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let to = match range.end_bound() {
            Bound::Included(last) => last.saturating_add(1),
            Bound::Excluded(to) => *to,
            Bound::Unbounded => self.length,
        };
        assert!(
            from <= to && to <= self.length,
            "{from}..{to} is not within a view of {} bytes",
            self.length
        );
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

/// No copy. All pages are held until the last clone and slice of the `Bytes` is dropped, since a slice of `Bytes` knows nothing of
/// pages. To keep a small part for long, call [`View::slice`] first.
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

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use std::ops::Bound;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::memory::mapping::Mapping;
    use crate::testing::SmallPool;

    /// A view of bytes of a file of ten pages, of which nobody knows what they are: they are not read here.
    fn view(mapping: &Arc<Mapping>, bytes: Range<u64>) -> View {
        let pages = mapping.pages_of(&bytes);
        for page in pages.clone() {
            mapping.word(page).begin_load();
            mapping.word(page).finish_load();
        }
        let pins = Pins::take(mapping, pages, &mut Vec::new());
        // SAFETY: the pages are resident, of zeros.
        unsafe { View::of(pins, bytes) }
    }

    fn pinned(mapping: &Mapping) -> Vec<u32> {
        mapping.pages().filter(|page| mapping.word(*page).is_pinned()).collect()
    }

    #[test]
    fn a_slice_holds_its_own_pages_and_an_empty_one_none() {
        let pool = SmallPool::start(16);
        let mapping = Arc::new(pool.mapping_of_zeros(10 * 4096));
        let whole = view(&mapping, 4000..30_000);
        assert_eq!(pinned(&mapping), [0, 1, 2, 3, 4, 5, 6, 7]);
        let clone = whole.clone();
        let slice = whole.slice(96..97);
        assert_eq!((slice.offset(), slice.len()), (4096, 1));
        drop(whole);
        assert_eq!(pinned(&mapping).len(), 8);
        drop(clone);
        assert_eq!(pinned(&mapping), [1]);
        let empty = slice.slice(1..);
        assert!(empty.is_empty() && empty.offset() == 4097);
        drop(slice);
        assert_eq!(pinned(&mapping), [0_u32; 0]);
        assert_eq!(Bytes::from(empty).len(), 0);
    }

    #[test]
    fn bounds_are_those_of_slices() {
        let pool = SmallPool::start(16);
        let mapping = Arc::new(pool.mapping_of_zeros(10 * 4096));
        let view = view(&mapping, 10..110);
        assert_eq!(view.slice(..).len(), 100);
        assert_eq!(view.slice(..=99).len(), 100);
        assert_eq!(view.slice(100..).len(), 0);
        let excluded = view.slice((Bound::Excluded(9), Bound::Included(10)));
        assert_eq!((excluded.offset(), excluded.len()), (20, 1));
        let refused =
            |from: Bound<usize>, to: Bound<usize>| catch_unwind(AssertUnwindSafe(|| view.slice((from, to)))).is_err();
        assert!(refused(Bound::Unbounded, Bound::Excluded(101)));
        assert!(refused(Bound::Included(101), Bound::Unbounded));
        assert!(refused(Bound::Included(5), Bound::Excluded(4)));
        assert!(refused(Bound::Unbounded, Bound::Included(usize::MAX)));
        assert!(refused(Bound::Excluded(usize::MAX), Bound::Unbounded));
    }
}
