//! What is asked of a pool of pages, in order: traces of real programs, and loads that are made up.
//!
//! Promises: the same requests each time. A page that is read in pieces is asked for a piece at a time. Knows nothing of pools.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::failure::Failure;
use crate::scenarios::cache::hit_ratio::Trace;

/// In how many pieces a page is read, where it is.
const PIECES: usize = 16;
/// Pages that are read at random.
const PAGES: u64 = 40_000;
/// Of a file of which ranges are read.
const FILE_PAGES: u64 = 32_768;
/// The longest range, in pages.
const RANGE_PAGES: u64 = 320;
const SEED: u64 = 6;

/// Who reads what.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Load {
    /// Of real programs.
    Trace(Trace),
    /// Some pages far more often than others.
    Zipf,
    /// The same, and of five reads two go through another, long file.
    ZipfAndScan,
    /// The same, and that file is read in pieces.
    ZipfAndScanInPieces,
    /// So many pages over and over.
    Loop(u64),
    /// The same after a load of another kind.
    ZipfThenLoop(u64),
    /// What is read often changes.
    Shifting,
    /// Ranges of a file, all alike likely.
    Ranges,
    /// Ranges of a file, some places far more often than others.
    SkewedRanges,
}

impl Load {
    pub(super) fn name(self) -> String {
        match self {
            Self::Trace(trace) => trace.name().to_owned(),
            Self::Zipf => "Zipf".to_owned(),
            Self::ZipfAndScan => "Zipf and a scan".to_owned(),
            Self::ZipfAndScanInPieces => "Zipf and a scan in pieces".to_owned(),
            Self::Loop(pages) => format!("loop of {pages}"),
            Self::ZipfThenLoop(pages) => format!("Zipf, then a loop of {pages}"),
            Self::Shifting => "shifting Zipf".to_owned(),
            Self::Ranges => "ranges".to_owned(),
            Self::SkewedRanges => "skewed ranges".to_owned(),
        }
    }

    /// A page each.
    pub(super) fn requests(self) -> Result<Vec<u64>, Failure> {
        let mut dice = StdRng::seed_from_u64(SEED);
        Ok(match self {
            Self::Trace(trace) => trace.read()?,
            Self::Zipf => zipf(&mut dice, 400_000),
            Self::ZipfAndScan => with_a_scan(&zipf(&mut dice, 240_000), 1),
            Self::ZipfAndScanInPieces => with_a_scan(&zipf(&mut dice, 240_000), PIECES),
            Self::Loop(pages) => (0..pages * 20).map(|at| at % pages).collect(),
            Self::ZipfThenLoop(pages) => {
                let mut requests = zipf(&mut dice, 150_000);
                requests.extend((0..pages * 20).map(|at| PAGES + at % pages));
                requests
            }
            Self::Shifting => {
                let shifted = |(at, page): (usize, u64)| (page + at as u64 / 50_000 * 5_000) % PAGES;
                zipf(&mut dice, 400_000).into_iter().enumerate().map(shifted).collect()
            }
            Self::Ranges => ranges(&mut dice, Rng::random),
            Self::SkewedRanges => ranges(&mut dice, |dice| dice.random::<f64>().powi(3)),
        })
    }
}

/// Of `PAGES`, by Zipf's law with exponent 0.9. The popular ones are spread over all.
fn zipf(dice: &mut StdRng, requests: usize) -> Vec<u64> {
    let mut sum = 0.0;
    let weights_up_to: Vec<f64> = (1..=PAGES)
        .map(|rank| {
            sum += (rank as f64).powf(-0.9);
            sum
        })
        .collect();
    let page = |_| {
        let point = dice.random::<f64>() * sum;
        let rank = weights_up_to.partition_point(|weight| *weight < point) as u64;
        // 7,919 has no divisor in common with the number of pages.
        rank * 7_919 % PAGES
    };
    (0..requests).map(page).collect()
}

/// After three of these, two pages of another file, which is long and read to its end.
fn with_a_scan(requests: &[u64], pieces: usize) -> Vec<u64> {
    let mut mixed = Vec::new();
    for (at, three) in (0_u64..).zip(requests.chunks(3)) {
        mixed.extend(three);
        for page in [2 * at, 2 * at + 1] {
            mixed.extend(std::iter::repeat_n(PAGES + page, pieces));
        }
    }
    mixed
}

/// Each from a place in the file, 0 to 1, on.
fn ranges(dice: &mut StdRng, place: impl Fn(&mut StdRng) -> f64) -> Vec<u64> {
    let mut requests = Vec::new();
    for _ in 0..5_000 {
        let pages = dice.random_range(1..=RANGE_PAGES);
        let start = (place(dice) * (FILE_PAGES - pages) as f64) as u64;
        requests.extend(start..start + pages);
    }
    requests
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn loads_are_what_they_are_called() {
        let pages = |load: Load| load.requests().unwrap().into_iter().collect::<HashSet<u64>>();
        assert_eq!(pages(Load::Loop(50)).len(), 50);
        assert!(pages(Load::Zipf).iter().all(|page| *page < PAGES));
        assert_eq!(pages(Load::ZipfAndScan), pages(Load::ZipfAndScanInPieces));
        assert!(pages(Load::Ranges).iter().all(|page| *page < FILE_PAGES));
        let in_first_half = |load: Load| {
            let requests = load.requests().unwrap();
            let first = requests.iter().filter(|page| **page < FILE_PAGES / 2).count();
            first as f64 / requests.len() as f64
        };
        assert!((0.4..0.6).contains(&in_first_half(Load::Ranges)));
        assert!(in_first_half(Load::SkewedRanges) > 0.7);
        assert_eq!(
            Load::Shifting.requests().unwrap(),
            Load::Shifting.requests().unwrap(),
            "the same each time"
        );
    }
}
