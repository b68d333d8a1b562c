//! Which ranges are read: drawn from a seed, so that every system reads the same ones.
//!
//! Promises: a reader's ranges follow from the seed and the reader's number alone; none is empty, all end within the file.
//! Knows no system.

use std::ops::Range;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::kernel::BLOCK_BYTES;

/// All draws of a run begin with it; the report names it.
pub(super) const SEED: u64 = 6;
/// Ranges are of any length up to this, each as likely.
pub(super) const RANGE_BYTES_MAX: u64 = 20 << 20;

/// Endless ranges of one reader.
#[derive(Debug)]
pub(super) struct Ranges {
    draw: StdRng,
    file_bytes: u64,
    range_bytes_max: u64,
}

impl Ranges {
    /// Of that reader. A small file has smaller ranges, a quarter of it at most.
    pub(super) fn of(reader: u32, file_bytes: u64) -> Self {
        Self {
            draw: StdRng::seed_from_u64(SEED << 32 | u64::from(reader)),
            file_bytes,
            range_bytes_max: RANGE_BYTES_MAX.min(file_bytes / 4),
        }
    }
}

impl Iterator for Ranges {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        let bytes = self.draw.random_range(1..=self.range_bytes_max);
        let from = self.draw.random_range(0..=self.file_bytes - bytes);
        Some(from..from + bytes)
    }
}

/// Places for short reads of that many bytes: a thousand over the file, so that what is read is in the processor's cache and
/// the way to it is what takes time.
pub(super) fn places(file_bytes: u64, bytes: u64) -> Vec<Range<u64>> {
    const PLACES: usize = 1000;
    let mut draw = StdRng::seed_from_u64(SEED);
    let place = |from: u64| from..from + bytes;
    (0..PLACES)
        .map(|_| place(draw.random_range(0..=file_bytes - bytes)))
        .collect()
}

/// Small ranges far from each other, in order: of 4 to 16 KiB, with gaps of 16 KiB to 1 MiB between them, as many of each
/// size as of any other by factors. At most so many, and none past the end.
pub(super) fn sparse(file_bytes: u64, most: usize) -> Vec<Range<u64>> {
    let mut draw = StdRng::seed_from_u64(SEED);
    let mut end = 0;
    let mut ranges = Vec::new();
    while ranges.len() < most {
        let gap = f64::from(16 << 10) * 64_f64.powf(draw.random::<f64>());
        let from = end + gap as u64;
        let bytes = draw.random_range(4 << 10..=16 << 10);
        end = from + bytes;
        if end > file_bytes {
            break;
        }
        ranges.push(from..end);
    }
    ranges
}

/// The blocks of the disk that a range lies in.
pub(super) fn blocks(range: &Range<u64>) -> Range<u64> {
    let block = BLOCK_BYTES as u64;
    range.start / block * block..range.end.next_multiple_of(block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_readers_ranges_are_its_own_every_time_and_inside_the_file() {
        let drawn = |reader| Ranges::of(reader, 1 << 20).take(200).collect::<Vec<_>>();
        assert_eq!(drawn(0), drawn(0));
        assert_ne!(drawn(0), drawn(1));
        for range in drawn(2) {
            assert!(range.start < range.end && range.end <= 1 << 20, "{range:?}");
        }
        let longest = Ranges::of(0, 2 << 30)
            .take(1000)
            .map(|range| range.end - range.start)
            .max();
        assert!(longest.is_some_and(|bytes| (19 << 20..=RANGE_BYTES_MAX).contains(&bytes)));
    }

    #[test]
    fn sparse_ranges_are_in_order_and_apart() {
        let ranges = sparse(1 << 30, 2000);
        assert_eq!(ranges.len(), 2000);
        for pair in ranges.windows(2) {
            let gap = pair[1].start - pair[0].end;
            assert!((16 << 10..=1 << 20).contains(&gap), "{pair:?}");
        }
        let few = sparse(4 << 20, 2000);
        assert!(few.len() < 100 && few.iter().all(|range| range.end <= 4 << 20));
        assert_eq!(blocks(&(4097..8192)), 4096..8192);
        assert_eq!(blocks(&(4095..8193)), 0..12288);
    }
}
