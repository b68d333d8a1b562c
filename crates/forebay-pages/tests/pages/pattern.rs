//! Files whose every eight bytes tell where they are and of which file, and a check of views against that.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use forebay_pages::View;
use tempfile::TempDir;

/// The eight bytes at this place of a file of this seed.
pub(crate) fn word(seed: u64, index: u64) -> [u8; 8] {
    // SplitMix64 (Steele, Lea, Flood, 2014): every place has a value of its own.
    let mut value = (seed << 40).wrapping_add(index).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (value ^ (value >> 31)).to_le_bytes()
}

/// The bytes of a file of this seed in a range.
pub(crate) fn bytes(seed: u64, from: u64, to: u64) -> Vec<u8> {
    let words = (from / 8..to.div_ceil(8)).flat_map(|index| word(seed, index));
    words.skip((from % 8) as usize).take((to - from) as usize).collect()
}

/// Writes a file of this seed and length.
pub(crate) fn write(path: &Path, seed: u64, length: u64) {
    let mut file = BufWriter::new(File::create(path).expect("created"));
    let mut at = 0;
    while at < length {
        let to = length.min(at + (1 << 20));
        file.write_all(&bytes(seed, at, to)).expect("written");
        at = to;
    }
    file.flush().expect("written");
}

/// A folder on the disk, which goes at the end, and a file in it.
pub(crate) fn file(seed: u64, length: u64) -> (TempDir, PathBuf) {
    let folder = folder();
    let path = folder.path().join("data");
    write(&path, seed, length);
    (folder, path)
}

/// A folder where the build is: on a disk, where /tmp may be memory.
pub(crate) fn folder() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder")
}

/// Panics unless the view is what a file of this seed has there.
#[track_caller]
pub(crate) fn check(view: &View, seed: u64) {
    let from = view.offset();
    let expected = bytes(seed, from, from + view.len() as u64);
    if **view != *expected {
        let at = view.iter().zip(&expected).position(|(is, should)| is != should);
        panic!("{view:?}: wrong from its byte {at:?} on");
    }
}
