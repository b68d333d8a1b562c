//! The file that is read, and what must be in it.
//!
//! Promises: every word of it is another one and tells its place, so that bytes of the wrong place, or of no place, are seen.
//! What a look at bytes covers is said where it is chosen. A file is on the disk, and no longer in the kernel's cache, when
//! it has been made. Knows no system that reads it.

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::kernel;
use crate::failure::Failure;

/// Places are told apart by words of this many bytes.
const WORD_BYTES: u64 = 8;
/// Bytes are looked at page by page; the page of the pool's default.
pub(super) const PAGE_BYTES: u64 = 64 << 10;
/// Odd, so that no two words of a file are the same.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
const SUMMAND: u64 = 0xd1b5_4a32_d192_ed03;
/// What is written at once.
const PORTION_BYTES: u64 = 1 << 20;

/// The word at this index of every file.
fn word(index: u64) -> u64 {
    index.wrapping_mul(FACTOR).wrapping_add(SUMMAND)
}

/// The sum of the words from `first` up to `end`: of an arithmetic progression, so none of them has to be made.
fn sum_of_words(first: u64, end: u64) -> u64 {
    let count = end - first;
    let twice = u128::from(first + end).saturating_sub(1) * u128::from(count);
    ((twice / 2) as u64)
        .wrapping_mul(FACTOR)
        .wrapping_add(count.wrapping_mul(SUMMAND))
}

fn byte(place: u64) -> u8 {
    word(place / WORD_BYTES).to_le_bytes()[(place % WORD_BYTES) as usize]
}

/// A file of such words.
#[derive(Debug, Clone)]
pub(super) struct Material {
    pub(super) path: PathBuf,
    /// Where its first byte is in the file whose part it is.
    pub(super) begin: u64,
    pub(super) bytes: u64,
}

impl Material {
    /// Makes it; `bytes` is a multiple of a page.
    pub(super) fn make(path: &Path, bytes: u64) -> Result<Self, Failure> {
        Self::make_part(path, 0..bytes)
    }

    /// Makes a file of this part of a larger one; it begins and ends with whole pages.
    pub(super) fn make_part(path: &Path, part: Range<u64>) -> Result<Self, Failure> {
        let failed = |what: &str| Failure::system(format!("{what} {}", path.display()));
        let mut file = File::create(path).map_err(failed("make"))?;
        let mut portion = vec![0; PORTION_BYTES as usize];
        for begin in part.clone().step_by(portion.len()) {
            let portion = &mut portion[..PORTION_BYTES.min(part.end - begin) as usize];
            for (index, bytes) in (begin / WORD_BYTES..).zip(portion.as_chunks_mut::<8>().0) {
                *bytes = word(index).to_le_bytes();
            }
            file.write_all(portion).map_err(failed("write"))?;
        }
        file.sync_all().map_err(failed("sync"))?;
        let made = Self {
            path: path.to_owned(),
            begin: part.start,
            bytes: part.end - part.start,
        };
        made.leave_the_kernels_cache()?;
        Ok(made)
    }

    /// The next that reads it through the kernel has to ask the disk.
    pub(super) fn leave_the_kernels_cache(&self) -> Result<(), Failure> {
        kernel::forget(&self.path).map_err(Failure::system(format!(
            "have the kernel forget {}",
            self.path.display()
        )))
    }
}

/// How closely bytes that were read are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// The first word and the last page's, as `HandedOut`: that it is the right place.
    Ends,
    /// Of one range in sixteen as `HandedOut`, of the others as `Ends`: to look at every page costs many times what it costs to
    /// hand it out.
    Sampled,
    /// The first and the last whole word of every page: that the right bytes were handed out.
    HandedOut,
    /// Every byte: the sum of each page's words.
    Touched,
}

impl Look {
    /// What it is for a reader's range of this number.
    pub(super) fn of_range(self, number: u64) -> Self {
        match self {
            Self::Sampled if number.is_multiple_of(16) => Self::HandedOut,
            Self::Sampled => Self::Ends,
            look => look,
        }
    }

    /// Looks at the bytes that are said to be at this place of a file.
    pub(super) fn at(self, place: u64, bytes: &[u8]) -> Result<(), Failure> {
        if self == Self::Ends && bytes.len() as u64 > 2 * PAGE_BYTES {
            let last = bytes.len() - PAGE_BYTES as usize;
            Self::HandedOut.at(place, &bytes[..WORD_BYTES as usize])?;
            return Self::HandedOut.at(place + last as u64, &bytes[last..]);
        }
        let mut from = place;
        let mut rest = bytes;
        while !rest.is_empty() {
            let left_in_page = PAGE_BYTES - from % PAGE_BYTES;
            let (of_page, others) = rest.split_at(rest.len().min(left_in_page as usize));
            if !self.is_right(from, of_page) {
                return Err(Failure::Wrong(format!(
                    "{} bytes that are said to be at {from} of the file are not those that were written there",
                    of_page.len()
                )));
            }
            from += of_page.len() as u64;
            rest = others;
        }
        Ok(())
    }

    /// `bytes` are of one page.
    fn is_right(self, place: u64, bytes: &[u8]) -> bool {
        let before = place.next_multiple_of(WORD_BYTES) - place;
        let Some((head, rest)) = bytes.split_at_checked(before as usize) else {
            return are_right(place, bytes);
        };
        let (words, tail) = rest.as_chunks::<8>();
        let first = (place + before) / WORD_BYTES;
        let end = first + words.len() as u64;
        match (self, words) {
            (_, []) => are_right(place, bytes),
            (Self::Ends | Self::Sampled | Self::HandedOut, [begins, .., ends]) => {
                u64::from_le_bytes(*begins) == word(first) && u64::from_le_bytes(*ends) == word(end - 1)
            }
            (Self::Ends | Self::Sampled | Self::HandedOut, [only]) => u64::from_le_bytes(*only) == word(first),
            (Self::Touched, words) => {
                sum(words) == sum_of_words(first, end) && are_right(place, head) && are_right(end * WORD_BYTES, tail)
            }
        }
    }
}

/// Every byte of every word has a part in it.
fn sum(words: &[[u8; 8]]) -> u64 {
    words
        .iter()
        .fold(0, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)))
}

fn are_right(place: u64, bytes: &[u8]) -> bool {
    (place..).zip(bytes).all(|(place, read)| byte(place) == *read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(bytes: u64) -> Vec<u8> {
        (0..bytes).map(byte).collect()
    }

    #[test]
    fn a_file_holds_what_it_is_looked_at_for_wherever_a_range_begins_and_ends() {
        let folder = tempfile::tempdir().unwrap();
        let made = Material::make(&folder.path().join("file"), 3 * PAGE_BYTES).unwrap();
        let all = std::fs::read(&made.path).unwrap();
        assert_eq!(all, written(made.bytes));
        for look in [Look::HandedOut, Look::Touched] {
            for (from, to) in [
                (0, all.len()),
                (0, 0),
                (3, 5),
                (3, 11),
                (1, 65_537),
                (65_535, 65_537),
                (65_530, 131_080),
                (7, 8),
                (8, 16),
            ] {
                look.at(from as u64, &all[from..to]).unwrap();
            }
        }
    }

    #[test]
    fn a_sample_is_every_page_of_one_range_in_sixteen_and_the_ends_of_the_others() {
        let all = written(4 * PAGE_BYTES);
        let page = PAGE_BYTES as usize;
        let mut doubled = all.clone();
        doubled.copy_within(page..2 * page, 2 * page);
        for number in 0..32 {
            let look = Look::Sampled.of_range(number);
            look.at(0, &all).unwrap();
            assert_eq!(look.at(0, &doubled).is_err(), number % 16 == 0, "{number}");
            assert!(look.at(PAGE_BYTES, &all).is_err(), "another place");
        }
    }

    #[test]
    fn what_is_of_another_place_is_wrong_and_touching_sees_every_byte() {
        let all = written(3 * PAGE_BYTES);
        let page = PAGE_BYTES as usize;
        let both = [Look::HandedOut, Look::Touched];
        for look in both {
            assert!(look.at(PAGE_BYTES, &all[..page]).is_err(), "another page's bytes");
            let mut merged = all.clone();
            merged.copy_within(..page, page);
            assert!(look.at(0, &merged).is_err(), "the first page's bytes twice");
            let mut turned = all.clone();
            turned[..2 * page].rotate_left(page);
            assert!(look.at(0, &turned).is_err(), "two pages in the wrong order");
            assert!(look.at(0, &vec![0; page]).is_err(), "nothing was read");
            assert!(look.at(3, &[all[3], all[4] ^ 1]).is_err(), "part of a word");
        }
        for place in [5, 8, 1_000, page - 1, 2 * page - 9, 3 * page - 1] {
            let mut spoilt = all.clone();
            spoilt[place] ^= 4;
            assert!(Look::Touched.at(5, &spoilt[5..]).is_err(), "the byte at {place}");
        }
    }

    #[test]
    fn a_sum_is_that_of_the_words() {
        for (first, end) in [(0, 0), (0, 1), (5, 6), (3, 8_195)] {
            let one_by_one = (first..end).map(word).fold(0, u64::wrapping_add);
            assert_eq!(sum_of_words(first, end), one_by_one, "{first}..{end}");
        }
    }
}
