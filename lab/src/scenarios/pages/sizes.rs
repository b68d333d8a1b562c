//! How large files and memories are, and who reads, by effort.
//!
//! Promises: one memory is smaller than the file and one larger. Knows no system.

use crate::effort::Effort;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// One run's.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) file: u64,
    /// A second file, of twice the size.
    pub(super) double: Option<u64>,
    /// Memory that does not hold the file.
    pub(super) under: u64,
    /// Memory that does, with room to spare.
    pub(super) over: u64,
    /// How many read at once where the disk is asked.
    pub(super) readers: &'static [u32],
    /// How many read from the peers' memory.
    pub(super) peers_readers: &'static [u32],
    /// What cold and warm turns take of a measurement's time.
    pub(super) share: f64,
    /// Small ranges that are read together.
    pub(super) sparse: usize,
    /// What a thousand files have together.
    pub(super) many: u64,
}

/// How many read at once where all is in memory.
pub(super) const READERS: &[u32] = &[1, 10, 25, 50];

impl Sizes {
    pub(super) fn of(effort: Effort, is_quick: bool) -> Self {
        if !effort.meaningful {
            return Self {
                file: 16 * MIB,
                double: None,
                under: 8 * MIB,
                over: 24 * MIB,
                readers: &[1, 10],
                peers_readers: &[10],
                share: 0.5,
                sparse: 200,
                // No more than the one file, and a page each.
                many: 1_000 * 64 * 1024,
            };
        }
        if is_quick {
            return Self {
                file: GIB / 2,
                double: None,
                under: GIB / 4,
                over: 3 * GIB / 4,
                // More would hold most of the smaller memory between them.
                readers: &[1, 10],
                peers_readers: &[25],
                share: 0.2,
                sparse: 2_000,
                many: 250 * MIB,
            };
        }
        Self {
            file: 2 * GIB,
            double: Some(4 * GIB),
            under: GIB,
            over: 3 * GIB,
            readers: READERS,
            peers_readers: READERS,
            share: 1.0,
            sparse: 2_000,
            many: 1_000 * MIB,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_are_smaller_and_larger_than_the_file_whatever_the_effort() {
        for sizes in [
            Sizes::of(Effort::full(), false),
            Sizes::of(Effort::quick(), true),
            Sizes::of(Effort::tiny(), false),
        ] {
            assert!(sizes.under < sizes.file && sizes.file < sizes.over, "{sizes:?}");
            assert!(sizes.double.is_none_or(|double| double == 2 * sizes.file));
        }
        assert_eq!(Sizes::of(Effort::full(), false).file, 2 << 30);
    }
}
