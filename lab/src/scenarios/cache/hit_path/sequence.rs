//! The order in which keys are asked for: drawn beforehand, so that drawing costs what is measured nothing.
//!
//! Promises: the same sequence in every run and for every system; whole batches; key `rank` is drawn as often as Zipf's law
//! says, 1 ÷ (rank + 1) to the power of the skew. The numbers of keys say nothing about where a cache keeps them, since each
//! hashes them its own way.

use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Between readings of the clock.
pub(crate) const GETS_A_BATCH: usize = 1_024;
/// 1 MiB: it stays in the processor's second cache, and holds each of 10,000 keys nearly surely.
const LENGTH: usize = 256 * GETS_A_BATCH;

/// A sequence of keys from 0 on.
#[derive(Debug)]
pub(crate) struct Sequence(Vec<u32>);

impl Sequence {
    /// By Zipf's law.
    pub(crate) fn zipf(keys: u32, skew: f64) -> Self {
        let mut below = 0.0;
        let sums: Vec<f64> = (1..=keys)
            .map(|rank| {
                below += f64::from(rank).powf(-skew);
                below
            })
            .collect();
        let mut state = 0;
        let mut draw = || {
            let part = (split_mix(&mut state) >> 11) as f64 / (1_u64 << 53) as f64;
            sums.partition_point(|sum| *sum <= part * below) as u32
        };
        Self((0..LENGTH).map(|_| draw().min(keys - 1)).collect())
    }

    /// Endless batches, from a place of this thread's own on.
    pub(crate) fn batches(&self, thread: u32, threads: u32) -> impl Iterator<Item = &[u32]> {
        let batches = self.0.len() / GETS_A_BATCH;
        let begin = batches * thread as usize / threads as usize;
        (0..batches)
            .cycle()
            .skip(begin)
            .map(|index| &self.0[index * GETS_A_BATCH..][..GETS_A_BATCH])
    }

    /// For the peers in Go: four bytes a key, little-endian.
    pub(crate) fn write(&self, folder: &Path) -> Result<PathBuf, Failure> {
        let file = folder.join("keys");
        let bytes: Vec<u8> = self.0.iter().flat_map(|key| key.to_le_bytes()).collect();
        std::fs::write(&file, bytes).map_err(Failure::system(format!("write {}", file.display())))?;
        Ok(file)
    }
}

/// SplitMix64.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_as_often_as_the_law_says() {
        let sequence = Sequence::zipf(10_000, 0.99);
        let mut counts = vec![0_u32; 10_000];
        for key in &sequence.0 {
            counts[*key as usize] += 1;
        }
        let all: f64 = (1..=10_000).map(|rank| f64::from(rank).powf(-0.99)).sum();
        for rank in [0_u32, 1, 9, 99] {
            let expected = f64::from(rank + 1).powf(-0.99) / all * LENGTH as f64;
            let off = (f64::from(counts[rank as usize]) - expected).abs();
            // Five standard deviations of a count.
            assert!(
                off < 5.0 * expected.sqrt(),
                "key {rank}: {expected} expected, off by {off}"
            );
        }
        assert!(counts[5_000..].iter().any(|count| *count > 0), "the tail is drawn too");
    }

    #[test]
    fn every_thread_sees_all_of_it_from_a_place_of_its_own() {
        let sequence = Sequence::zipf(100, 0.99);
        let first = |thread| sequence.batches(thread, 2).next().unwrap().as_ptr();
        assert_ne!(first(0), first(1));
        let seen: Vec<u32> = sequence
            .batches(0, 2)
            .take(LENGTH / GETS_A_BATCH)
            .flatten()
            .copied()
            .collect();
        assert_eq!(seen, sequence.0);
        assert_eq!(
            sequence.batches(0, 1).nth(LENGTH / GETS_A_BATCH).unwrap().as_ptr(),
            first(0)
        );
    }

    #[test]
    fn what_is_written_is_the_same_for_go() {
        let folder = tempfile::tempdir().unwrap();
        let sequence = Sequence::zipf(1_000, 0.99);
        let bytes = std::fs::read(sequence.write(folder.path()).unwrap()).unwrap();
        assert_eq!(bytes.len(), 4 * LENGTH);
        let read: Vec<u32> = bytes
            .as_chunks()
            .0
            .iter()
            .map(|four| u32::from_le_bytes(*four))
            .collect();
        assert_eq!(read, sequence.0);
    }
}
