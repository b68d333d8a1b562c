//! Whether a page has the bytes that were written: by CRC32C (Castagnoli, 1993) from a side file, or by a function of the user's.
//!
//! Promises: a side file is verified itself before it is used, and refused if it is for another file. A function that panics rejects
//! the page.
//!
//! A side file contains, in little-endian numbers of 32 bits: `FBCR`, the version (1), the page size, the number of pages, the length
//! of the file (64 bits), the CRC32C of each page's bytes (the last page as long as it is), and the CRC32C of all that.
//!
//! Knows nothing of memory and I/O.

use std::io::{ErrorKind, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, fs};

use crate::error::PageError;

const MAGIC: &[u8; 4] = b"FBCR";
const VERSION: u32 = 1;
/// Magic, version, page size, number of pages, length.
const HEADER: usize = 24;
/// How many bytes a checksum has.
const SUM: usize = 4;

/// Where the checksums of a file's pages are: CRC32C in a side file, or a function of the user's. A page is verified once, when it is
/// loaded, before anybody sees it.
///
/// ```
/// use forebay::pages::{Checksums, PageError, PagePool};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("data");
/// # let side_file = folder.path().join("data.sums");
/// std::fs::write(&path, vec![7; 1 << 20])?;
/// let pool = PagePool::builder().memory(64 << 20).build()?;
/// pool.write_checksums(&path, &side_file).await?; // of the file as it is now
///
/// let mut bytes = std::fs::read(&path)?;
/// bytes[500_000] ^= 1; // A bit flips.
/// std::fs::write(&path, bytes)?;
/// let file = pool.file(&path).checksums(Checksums::side_file(&side_file)).open().await?;
/// assert!(file.read(0..100_000).await.is_ok());
/// let error = file.read(450_000..550_000).await.unwrap_err();
/// assert!(matches!(error, PageError::Checksum { offset: 458_752, .. }), "{error}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Checksums(Kind);

#[derive(Clone)]
enum Kind {
    SideFile(PathBuf),
    Function(Verifier),
}

/// Says whether a page has the right bytes.
#[derive(Clone)]
pub(crate) struct Verifier(Arc<IsRight>);

/// Given the number and the bytes of a page.
type IsRight = dyn Fn(u64, &[u8]) -> bool + Send + Sync;

impl Checksums {
    /// Those in a side file, as [`PagePool::write_checksums`](super::PagePool::write_checksums) makes it and
    /// [`NewFile::checksums`](super::NewFile::checksums) leaves it, by a pool with pages of the same size.
    pub fn side_file(path: impl Into<PathBuf>) -> Self {
        Self(Kind::SideFile(path.into()))
    }

    /// By a function that says whether the page of this number, counted from zero, has the right bytes; the last page may be shorter.
    /// It runs on a thread of the pool's I/O, which waits for it. If it panics the page is rejected.
    pub fn function(is_right: impl Fn(u64, &[u8]) -> bool + Send + Sync + 'static) -> Self {
        Self(Kind::Function(Verifier(Arc::new(is_right))))
    }

    /// Whether these are the same: the side file of the same name, or the same function.
    pub(crate) fn are(&self, others: &Self) -> bool {
        match (&self.0, &others.0) {
            (Kind::SideFile(own), Kind::SideFile(other)) => own == other,
            (Kind::Function(own), Kind::Function(other)) => Arc::ptr_eq(&own.0, &other.0),
            _ => false,
        }
    }

    pub(crate) fn are_a_side_file(&self) -> bool {
        matches!(self.0, Kind::SideFile(_))
    }

    /// The verifier of a file of this length in pages of this size. Reads the side file. Blocks.
    pub(crate) fn verifier(&self, page_size: usize, length: u64) -> Result<Verifier, PageError> {
        let path = match &self.0 {
            Kind::Function(verifier) => return Ok(verifier.clone()),
            Kind::SideFile(path) => path,
        };
        let bytes = fs::read(path).map_err(|cause| PageError::file(&Arc::from(path.as_path()), cause))?;
        let sums = parse(&bytes, page_size, length).map_err(|reason| PageError::Checksums {
            path: Arc::from(path.as_path()),
            reason: reason.into(),
        })?;
        Ok(Verifier(Arc::new(move |page, bytes| {
            sums.get(page as usize) == Some(&crc32c::crc32c(bytes))
        })))
    }
}

impl fmt::Debug for Checksums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::SideFile(path) => f.debug_tuple("SideFile").field(path).finish(),
            Kind::Function(_) => f.write_str("Function"),
        }
    }
}

impl Verifier {
    pub(crate) fn holds(&self, page: u64, bytes: &[u8]) -> bool {
        catch_unwind(AssertUnwindSafe(|| (self.0)(page, bytes))).unwrap_or_else(|_| {
            tracing::error!(page, "the function that verifies pages panicked");
            false
        })
    }
}

/// The checksums of a file's pages, computed as its bytes are written.
pub(crate) struct Sums {
    page_size: usize,
    /// Of the pages that are complete.
    sums: Vec<u32>,
    /// Of the bytes of the next page so far, and how many there are; < `page_size`.
    partial: (u32, usize),
}

impl Sums {
    pub(crate) fn new(page_size: usize) -> Self {
        Self {
            page_size,
            sums: Vec::new(),
            partial: (0, 0),
        }
    }

    /// The file goes on with these bytes.
    pub(crate) fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (sum, length) = self.partial;
            let (page, rest) = bytes.split_at(bytes.len().min(self.page_size - length));
            bytes = rest;
            self.partial = (crc32c::crc32c_append(sum, page), length + page.len());
            if self.partial.1 == self.page_size {
                self.sums.push(self.partial.0);
                self.partial = (0, 0);
            }
        }
    }

    /// The file ends here: its side file's bytes.
    pub(crate) fn side_file(mut self) -> Vec<u8> {
        let length = self.sums.len() as u64 * self.page_size as u64 + self.partial.1 as u64;
        if self.partial.1 > 0 {
            self.sums.push(self.partial.0);
        }
        side_file(self.page_size, length, &self.sums)
    }
}

/// A side file's bytes for a file of this length, whose pages have these checksums (`crc32c` of each page's bytes).
pub(crate) fn side_file(page_size: usize, length: u64, sums: &[u32]) -> Vec<u8> {
    debug_assert_eq!(sums.len() as u64, length.div_ceil(page_size as u64), "one a page");
    let mut bytes = Vec::with_capacity(HEADER + SUM * (sums.len() + 1));
    bytes.extend_from_slice(MAGIC);
    for number in [VERSION, page_size as u32, sums.len() as u32] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(&length.to_le_bytes());
    for sum in sums {
        bytes.extend_from_slice(&sum.to_le_bytes());
    }
    let all = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&all.to_le_bytes());
    bytes
}

/// The bytes of a side file for a file as it is now, if they may go under that name: there is no other file, nor the file itself.
/// Blocks.
pub(crate) fn made_for(file: &Arc<Path>, side_file: &Arc<Path>, page_size: usize) -> Result<Vec<u8>, PageError> {
    let mut begin = [0; MAGIC.len()];
    match fs::File::open(side_file).and_then(|mut found| found.read_exact(&mut begin)) {
        Ok(()) if begin == *MAGIC && file != side_file => {}
        Err(cause) if cause.kind() == ErrorKind::NotFound => {}
        Err(cause) if cause.kind() != ErrorKind::UnexpectedEof => return Err(PageError::file(side_file, cause)),
        _ => {
            return Err(PageError::Checksums {
                path: Arc::clone(side_file),
                reason: "it is no file of checksums, and is not overwritten".into(),
            });
        }
    }
    let mut sums = Sums::new(page_size);
    let mut bytes = vec![0; 1 << 20];
    let mut open = fs::File::open(file).map_err(|cause| PageError::file(file, cause))?;
    loop {
        match open.read(&mut bytes) {
            Ok(0) => return Ok(sums.side_file()),
            Ok(count) => sums.add(&bytes[..count]),
            Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
            Err(cause) => return Err(PageError::file(file, cause)),
        }
    }
}

fn parse(bytes: &[u8], page_size: usize, length: u64) -> Result<Vec<u32>, String> {
    if bytes.len() < HEADER + SUM || &bytes[..4] != MAGIC {
        return Err("it is no file of checksums".into());
    }
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let (content, sum) = bytes.split_at(bytes.len() - SUM);
    if crc32c::crc32c(content).to_le_bytes() != *sum {
        return Err("it is damaged".into());
    }
    if number(4) != VERSION {
        return Err("its form is of another version".into());
    }
    if number(8) as usize != page_size {
        return Err(format!("it is for pages of {} bytes, not of {page_size}", number(8)));
    }
    let of = u64::from_le_bytes(bytes[16..HEADER].try_into().expect("eight bytes"));
    let sums = &content[HEADER..];
    if of != length
        || u64::from(number(12)) != length.div_ceil(page_size as u64)
        || sums.len() != number(12) as usize * SUM
    {
        return Err(format!("it is for a file of {of} bytes, not of {length}"));
    }
    Ok(sums
        .chunks_exact(SUM)
        .map(|sum| u32::from_le_bytes(sum.try_into().expect("four bytes")))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_file_tells_right_pages_from_wrong_ones() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, side) = (folder.path().join("data"), folder.path().join("data.crc"));
        fs::write(&file, [b"aaaa".repeat(1024), b"bb".to_vec()].concat()).expect("written");
        let (file, side): (Arc<Path>, Arc<Path>) = (file.into(), side.into());
        let made = made_for(&file, &side, 4096).expect("made");
        fs::write(&side, &made).expect("written");
        assert_eq!(made_for(&file, &side, 4096).expect("made once more"), made);
        // The two mistaken for each other, and one for both.
        for (of, under) in [(&side, &file), (&file, &file), (&side, &side)] {
            assert!(matches!(made_for(of, under, 4096), Err(PageError::Checksums { .. })));
        }
        let verifier = Checksums::side_file(&*side).verifier(4096, 4098).expect("usable");
        assert!(verifier.holds(0, &b"aaaa".repeat(1024)));
        assert!(verifier.holds(1, b"bb"));
        assert!(!verifier.holds(1, b"ba"));
        assert!(!verifier.holds(0, b"bb"));
        assert!(!verifier.holds(2, b""));
    }

    #[test]
    fn the_checksums_are_the_same_however_the_bytes_come() {
        let bytes: Vec<u8> = (0..10_000_u32).map(|at| (at * 7 % 251) as u8).collect();
        for length in [0, 1, 4095, 4096, 4097, 8192, 10_000] {
            let pages: Vec<u32> = bytes[..length].chunks(4096).map(crc32c::crc32c).collect();
            for step in [1, 7, 4096, 5000] {
                let mut sums = Sums::new(4096);
                bytes[..length].chunks(step).for_each(|piece| sums.add(piece));
                assert_eq!(
                    sums.side_file(),
                    side_file(4096, length as u64, &pages),
                    "{length} by {step}"
                );
            }
        }
    }

    #[test]
    fn a_side_file_that_does_not_fit_is_refused() {
        let good = side_file(4096, 5000, &[1, 2]);
        assert_eq!(parse(&good, 4096, 5000), Ok(vec![1, 2]));
        assert!(parse(&good, 8192, 5000).is_err());
        assert!(parse(&good, 4096, 5001).is_err());
        for at in 0..good.len() {
            let mut damaged = good.clone();
            damaged[at] ^= 1;
            assert!(parse(&damaged, 4096, 5000).is_err(), "byte {at}");
            assert!(parse(&good[..at], 4096, 5000).is_err(), "cut at {at}");
        }
        assert_eq!(parse(&side_file(4096, 0, &[]), 4096, 0), Ok(Vec::new()));
    }

    #[test]
    fn a_function_that_panics_is_an_answer_too() {
        let verifier = Checksums::function(|page, _| if page == 1 { panic!("on purpose") } else { true })
            .verifier(4096, 1)
            .expect("usable");
        assert!(verifier.holds(0, b""));
        assert!(!verifier.holds(1, b""));
    }
}
