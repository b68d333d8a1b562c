//! What the scenario asks of the kernel that std does not offer: maps of files, reads past the kernel's cache, forgetting.
//!
//! Promises: all of the scenario's unsafe code but the ring's is here. Knows no system that is measured.

use std::fs::{File, OpenOptions};
use std::io::{Error, Result};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// What reads past the kernel's cache begin and end on, in the file and in memory.
pub(super) const BLOCK_BYTES: usize = 4096;

/// Opens a file to be read past the kernel's cache.
pub(super) fn open_direct(path: &Path) -> Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path)
}

/// Takes the file out of the kernel's cache; what is dirty of it stays there.
pub(super) fn forget(path: &Path) -> Result<()> {
    let file = File::open(path)?;
    // SAFETY: a call with numbers alone, on a descriptor that is open until it returns.
    let code = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    if code == 0 {
        Ok(())
    } else {
        Err(Error::from_raw_os_error(code))
    }
}

/// Gives back what the heap keeps for later, so that it is not given back while memory is being watched.
pub(super) fn trim_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes a number, and may be called by any thread at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Memory that begins on a block, for reads past the kernel's cache.
#[derive(Debug)]
pub(super) struct Aligned {
    memory: Vec<u8>,
    from: usize,
    bytes: usize,
}

impl Aligned {
    /// So many bytes, all zero.
    pub(super) fn new(bytes: usize) -> Self {
        let memory = vec![0; bytes + BLOCK_BYTES];
        let from = memory.as_ptr().align_offset(BLOCK_BYTES);
        Self { memory, from, bytes }
    }
}

impl AsRef<[u8]> for Aligned {
    fn as_ref(&self) -> &[u8] {
        &self.memory[self.from..self.from + self.bytes]
    }
}

impl AsMut<[u8]> for Aligned {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.from..self.from + self.bytes]
    }
}

/// A whole file as memory.
#[derive(Debug)]
pub(super) struct Map {
    begin: *const u8,
    bytes: usize,
}

// SAFETY: the memory is only ever read, and stays where it is until the map is dropped.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Map {
    /// Maps the file, which nobody may change or cut short while it is mapped: it is this run's own.
    pub(super) fn of(path: &Path) -> Result<Self> {
        let file = File::open(path)?;
        let bytes = usize::try_from(file.metadata()?.len()).map_err(Error::other)?;
        // SAFETY: a new map at a place that the kernel chooses touches no memory that is in use.
        let begin = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if begin == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        Ok(Self {
            begin: begin.cast(),
            bytes,
        })
    }

    /// All of it.
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: `begin` is the begin of a readable map of `bytes` bytes, which lives as long as `self`; the file is this
        // run's own, and written by nobody after it was made.
        unsafe { std::slice::from_raw_parts(self.begin, self.bytes) }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: it is this map, and no slice of it outlives `self`. A failure would leave it mapped, which harms nobody.
        unsafe { libc::munmap(self.begin.cast_mut().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::scenarios::pages::folder_on_a_disk;

    #[test]
    fn a_map_and_a_read_past_the_cache_show_what_is_in_the_file() {
        let folder = folder_on_a_disk();
        let path = folder.path().join("file");
        let text: Vec<u8> = (0..2 * BLOCK_BYTES).map(|place| (place % 251) as u8).collect();
        std::fs::write(&path, &text).unwrap();
        forget(&path).unwrap();
        assert_eq!(Map::of(&path).unwrap().bytes(), text);
        let mut memory = Aligned::new(BLOCK_BYTES);
        let direct = open_direct(&path).unwrap();
        direct.read_exact_at(memory.as_mut(), BLOCK_BYTES as u64).unwrap();
        assert_eq!(memory.as_ref(), &text[BLOCK_BYTES..]);
    }
}
