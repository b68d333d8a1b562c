//! The runs in which a file is read once, by whoever reads it.

/// Bytes a read, and reads at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) bytes: u64,
    pub(super) depth: u32,
}

pub(super) const RUNS: [Run; 2] = [
    Run {
        bytes: 128 << 10,
        depth: 32,
    },
    Run {
        bytes: 1 << 20,
        depth: 8,
    },
];

impl Run {
    pub(super) fn case(self) -> String {
        format!("file read once, runs of {} KiB, depth {}", self.bytes >> 10, self.depth)
    }
}
