//! The lab's own raw ring: what io_uring reads from the disk where nothing is done with the bytes. The limit.
//!
//! Promises: blocks are read past the kernel's cache, at most `depth` at once, into buffers of its own that are used again,
//! and every one is looked at. Knows neither pages nor memory that keeps them.

use std::ops::Range;
use std::os::fd::AsRawFd;
use std::time::Instant;

use io_uring::{IoUring, opcode, types};

use super::kernel::{self, Aligned};
use super::material::{Look, Material};
use crate::failure::Failure;

/// What a reading of the disk took.
#[derive(Debug, Clone, Copy)]
pub(super) struct Took {
    pub(super) bytes: u64,
    pub(super) seconds: f64,
}

/// Reads these parts of the file, which begin and end on blocks of the disk, in this order; none is longer than `most`.
pub(super) fn read(
    material: &Material,
    parts: impl Iterator<Item = Range<u64>>,
    most: u64,
    depth: u32,
) -> Result<Took, Failure> {
    let failed = |what: &'static str| Failure::system(format!("{what} the lab's ring"));
    let file = kernel::open_direct(&material.path).map_err(failed("open a file for"))?;
    let descriptor = types::Fd(file.as_raw_fd());
    let mut ring = IoUring::new(depth).map_err(failed("make"))?;
    let mut buffers: Vec<Aligned> = (0..depth).map(|_| Aligned::new(most as usize)).collect();
    let mut reading: Vec<Range<u64>> = vec![0..0; depth as usize];
    let mut idle: Vec<usize> = (0..depth as usize).collect();
    let mut parts = parts.peekable();
    let mut took = Took { bytes: 0, seconds: 0.0 };
    let mut wrong = None;
    let begun = Instant::now();
    loop {
        while let Some(slot) = idle.pop() {
            let Some(part) = parts.next_if(|_| wrong.is_none()) else {
                idle.push(slot);
                break;
            };
            let bytes = part.end - part.start;
            if bytes > most {
                wrong = Some(Failure::Wrong(format!("{part:?} is longer than the ring's buffers")));
                idle.push(slot);
                break;
            }
            let begin = buffers[slot].as_mut().as_mut_ptr();
            let entry = opcode::Read::new(descriptor, begin, bytes as u32)
                .offset(part.start)
                .build()
                .user_data(slot as u64);
            reading[slot] = part;
            // SAFETY: the buffer has `most` bytes, as many as are read or more. It is in `buffers`, which lives until the
            // loop has ended, when nothing is being read, or is never dropped. Until its read has ended, `slot` is not idle
            // and the buffer is not touched.
            let pushed = unsafe { ring.submission().push(&entry) };
            pushed.expect("the ring has a place for each buffer");
        }
        if idle.len() == buffers.len() {
            break;
        }
        if let Err(error) = ring.submit_and_wait(1)
            && error.raw_os_error() != Some(libc::EINTR)
        {
            // The kernel may still write into them.
            std::mem::forget(buffers);
            return Err(failed("wait for")(error));
        }
        for ended in ring.completion() {
            let slot = ended.user_data() as usize;
            let part = reading[slot].clone();
            let bytes = part.end - part.start;
            let looked = if ended.result() == bytes as i32 {
                Look::HandedOut.at(part.start, &buffers[slot].as_ref()[..bytes as usize])
            } else {
                Err(Failure::Wrong(format!(
                    "a read of {part:?} ended with {}",
                    ended.result()
                )))
            };
            wrong = wrong.or(looked.err());
            took.bytes += bytes;
            idle.push(slot);
        }
    }
    took.seconds = begun.elapsed().as_secs_f64();
    wrong.map_or(Ok(took), Err)
}

/// The whole file in parts of that size.
pub(super) fn whole(material: &Material, part: u64) -> impl Iterator<Item = Range<u64>> + use<> {
    let end = material.bytes;
    (0..end)
        .step_by(part as usize)
        .map(move |from| from..(from + part).min(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenarios::pages::folder_on_a_disk;

    #[test]
    fn all_parts_are_read_and_looked_at() {
        let folder = folder_on_a_disk();
        let material = Material::make(&folder.path().join("file"), 1 << 20).unwrap();
        let took = read(&material, whole(&material, 48 << 10), 48 << 10, 4).unwrap();
        assert_eq!(took.bytes, 1 << 20);
        let too_long = read(&material, whole(&material, 64 << 10), 48 << 10, 4);
        assert!(too_long.is_err());
        let past_the_end = read(&material, std::iter::once(1 << 20..(1 << 20) + 4096), 4096, 1);
        assert!(past_the_end.is_err());
        std::fs::write(&material.path, vec![0; 1 << 20]).unwrap();
        assert!(read(&material, whole(&material, 64 << 10), 64 << 10, 4).is_err());
    }
}
