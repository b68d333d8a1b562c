//! Reserved address space, and memory in it that is given back.
//!
//! Promises: a reservation costs no memory. What is written takes memory, by the system's pages, until it is discarded. Many ranges
//! are discarded by one system call where the kernel supports that, with one flush of the processors' TLBs. Discarded memory reads
//! as zero, and takes memory again when it is written. What the system needs to know where a *window* of the address space is (a page
//! table: 4 KiB for 2 MiB) it keeps when memory is discarded, until the window is renewed.
//!
//! After Leis, Alhomssi, Ziegler, Loeck, Dietrich: "Virtual-Memory Assisted Buffer Management" (SIGMOD 2023). Knows nothing of
//! files, pages and who reads.

use std::io;
use std::ops::Range;
use std::ptr::{self, NonNull};

/// Reserved address space.
pub(crate) struct Region {
    start: NonNull<u8>,
    length: usize,
    /// What is mapped, in bytes.
    mapped: usize,
    /// The mapping begins with a window and ends with one, and nothing else is in them.
    has_windows: bool,
}

// SAFETY: it owns its address space; who may touch which part is the affair of its user.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Reserves so many bytes.
    pub(crate) fn reserve(length: usize) -> io::Result<Self> {
        Self::map(length, length.max(1))
    }

    /// Reserves so many bytes, in windows of their own if they fill one. Smaller ones share theirs, or many small files would take a page
    /// table each.
    pub(crate) fn reserve_windows(length: usize) -> io::Result<Self> {
        let window = window_bytes();
        if length < window {
            return Self::reserve(length);
        }
        let too_much = || io::Error::from_raw_os_error(libc::ENOMEM);
        let mapped = length.checked_next_multiple_of(window).ok_or_else(too_much)?;
        let mut region = Self::map(length, mapped.checked_add(window).ok_or_else(too_much)?)?;
        // What is before the first whole window, and behind the last one.
        let before = region.start.addr().get().wrapping_neg() % window;
        let behind = window - before;
        // SAFETY: parts of what was just mapped, which nobody has seen.
        unsafe {
            let start = region.start.as_ptr();
            if before > 0 {
                libc::munmap(start.cast(), before);
            }
            libc::munmap(start.add(before + mapped).cast(), behind);
            region.start = region.start.add(before);
        }
        region.mapped = mapped;
        region.has_windows = true;
        Ok(region)
    }

    /// Maps `mapped` bytes, of which `length` are of use.
    fn map(length: usize, mapped: usize) -> io::Result<Self> {
        // SAFETY: a new mapping, anywhere, of nothing.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast::<u8>()).expect("the kernel maps nothing at zero unless asked to");
        // SAFETY: what was just mapped.
        unsafe { advise(start, mapped) };
        Ok(Self {
            start,
            length,
            mapped,
            has_windows: false,
        })
    }

    /// How long its windows are, in bytes, the first of which begins where it begins; `None` if it has none of its own.
    pub(crate) fn window(&self) -> Option<usize> {
        self.has_windows.then(window_bytes)
    }

    /// Maps these windows anew: they read as zero, and there is no page table for them until they are written.
    ///
    /// # Safety
    /// Nobody reads or writes there until this returns.
    pub(crate) unsafe fn renew(&self, windows: Range<usize>) {
        let window = self.window().expect("it has windows");
        let bytes = windows.start * window..windows.end * window;
        assert!(
            bytes.start <= bytes.end && bytes.end <= self.mapped,
            "within the reservation"
        );
        // SAFETY: within what is mapped.
        let start = unsafe { self.start.add(bytes.start) };
        let length = bytes.end - bytes.start;
        // SAFETY: as the caller promised.
        match unsafe { map_again(start, length) } {
            // SAFETY: within what is mapped.
            Ok(()) => unsafe { advise(start, length) },
            Err(cause) => {
                // Where there are too many mappings it is as it was, with a table that can wait.
                // SAFETY: as the caller promised.
                let refused = unsafe { libc::madvise(start.as_ptr().cast(), length, libc::MADV_DONTNEED) } != 0;
                // Locked memory is refused with another error.
                if refused && io::Error::last_os_error().raw_os_error() == Some(libc::ENOMEM) {
                    // Others might get this address, and what is loaded here would overwrite theirs.
                    tracing::error!(%cause, "the address space of a file was lost");
                    std::process::abort();
                }
            }
        }
    }

    /// Where the byte at `offset` is.
    #[inline]
    pub(crate) fn at(&self, offset: usize) -> NonNull<u8> {
        debug_assert!(offset <= self.length, "within the reservation");
        // SAFETY: within the reservation.
        unsafe { self.start.add(offset) }
    }

    /// These bytes as a range that can be discarded together with others.
    pub(crate) fn range(&self, bytes: Range<usize>) -> MemoryRange {
        assert!(
            bytes.start <= bytes.end && bytes.end <= self.length,
            "within the reservation"
        );
        MemoryRange {
            start: self.at(bytes.start),
            length: bytes.end - bytes.start,
        }
    }
}

/// A huge page would take memory that nobody has counted; a core dump does not need a file's bytes. Where these fail, the kernel does
/// neither.
///
/// # Safety
/// The bytes are in a region.
unsafe fn advise(start: NonNull<u8>, length: usize) {
    #[cfg(target_os = "linux")]
    for advice in [libc::MADV_NOHUGEPAGE, libc::MADV_DONTDUMP] {
        // SAFETY: mapped, as the caller promised; these kinds of advice change no content.
        unsafe { libc::madvise(start.as_ptr().cast(), length, advice) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, length);
}

/// Puts an empty mapping in the place of a part of a region.
///
/// # Safety
/// The bytes are in a region, and nobody uses them.
unsafe fn map_again(start: NonNull<u8>, length: usize) -> io::Result<()> {
    // SAFETY: as the caller promised.
    let mapped = unsafe {
        libc::mmap(
            start.as_ptr().cast(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED,
            -1,
            0,
        )
    };
    if mapped == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// How much of the address space one page table is for: it is one of the system's pages, with eight bytes for each of them.
pub(crate) fn window_bytes() -> usize {
    let page = system_page();
    page * (page / 8)
}

/// The system's page size, in bytes: memory goes back to it in whole pages only.
pub(crate) fn system_page() -> usize {
    // SAFETY: a call without pointers.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).expect("every system has pages")
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: mapped by `reserve`, and nobody refers to it any more: views and transfers own it with others.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.mapped) };
    }
}

/// A part of a region whose memory is to be discarded. Of no use after its region was dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryRange {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: an address; `discard` says what must hold when it is used.
unsafe impl Send for MemoryRange {}

/// Gives the memory of these ranges back to the system; sorts them and joins neighbours.
///
/// # Safety
/// The ranges' regions exist, and nobody reads or writes the ranges until this returns.
pub(crate) unsafe fn discard(ranges: &mut Vec<MemoryRange>) {
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, before| {
        let joined = before.start.addr().get() + before.length == next.start.addr().get();
        if joined {
            before.length += next.length;
        }
        joined
    });
    ranges.retain(|range| range.length > 0);
    let together = if ranges.len() > 1 {
        all_at_once::discard(ranges)
    } else {
        0
    };
    for range in &ranges[together..] {
        // SAFETY: as the caller promised.
        unsafe { discard_one(range) };
    }
}

/// # Safety
/// As for [`discard`].
unsafe fn discard_one(range: &MemoryRange) {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: as the caller promised.
        let refused = unsafe { libc::madvise(range.start.as_ptr().cast(), range.length, libc::MADV_DONTNEED) };
        if refused == 0 {
            return;
        }
    }
    // On other systems such advice frees nothing, and Linux refuses it where memory is locked: to map the range again frees it.
    // SAFETY: replaces a part of a region by an empty mapping; nobody uses it, as the caller promised.
    if let Err(cause) = unsafe { map_again(range.start, range.length) } {
        tracing::error!(%cause, bytes = range.length, "memory of evicted pages could not be given back");
    }
}

#[cfg(target_os = "linux")]
mod all_at_once {
    //! `process_madvise` on the process itself, which Linux allows for any advice from 6.13 on.

    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::MemoryRange;

    /// The most ranges that the kernel takes at once.
    const AT_ONCE: usize = 1024;

    /// This kernel has refused before.
    static REFUSED: AtomicBool = AtomicBool::new(false);

    /// Discards ranges from the front. Returns how many.
    pub(super) fn discard(ranges: &[MemoryRange]) -> usize {
        let mut done = 0;
        while done < ranges.len() && !REFUSED.load(Ordering::Relaxed) {
            let Some(process) = this_process() else { break };
            let some = &ranges[done..ranges.len().min(done + AT_ONCE)];
            let vectors: Vec<libc::iovec> = some
                .iter()
                .map(|range| libc::iovec {
                    iov_base: range.start.as_ptr().cast(),
                    iov_len: range.length,
                })
                .collect();
            let length: usize = some.iter().map(|range| range.length).sum();
            // SAFETY: the vectors live for the call; of the memory they name, what `discard` says holds.
            let advised = unsafe {
                libc::syscall(
                    libc::SYS_process_madvise,
                    process,
                    vectors.as_ptr(),
                    vectors.len(),
                    libc::MADV_DONTNEED,
                    0,
                )
            };
            if advised != length as libc::c_long {
                // It did nothing, or not everything: the rest goes one by one, and so does everything later.
                REFUSED.store(true, Ordering::Relaxed);
                break;
            }
            done += some.len();
        }
        done
    }

    /// This process's descriptor. In a forked child it would name the parent, so it is used only where the process is the same.
    fn this_process() -> Option<libc::c_int> {
        static PROCESS: OnceLock<(u32, libc::c_int)> = OnceLock::new();
        let own = std::process::id();
        let &(of, descriptor) = PROCESS.get_or_init(|| {
            // SAFETY: a call without pointers.
            let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, own, 0) };
            (own, descriptor as libc::c_int)
        });
        (of == own && descriptor >= 0).then_some(descriptor)
    }
}

#[cfg(not(target_os = "linux"))]
mod all_at_once {
    use super::MemoryRange;

    pub(super) fn discard(_: &[MemoryRange]) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 64 << 10;

    fn resident(region: &Region, bytes: Range<usize>) -> usize {
        let mut pages = vec![0_u8; (bytes.end - bytes.start) / 4096];
        // SAFETY: within the region; a byte for each of the system's pages.
        let refused = unsafe {
            libc::mincore(
                region.at(bytes.start).as_ptr().cast(),
                bytes.end - bytes.start,
                pages.as_mut_ptr(),
            )
        };
        assert_eq!(refused, 0, "{}", io::Error::last_os_error());
        pages.iter().filter(|page| **page & 1 == 1).count() * 4096
    }

    fn fill(region: &Region, bytes: Range<usize>) {
        // SAFETY: within the region, which nobody else uses.
        unsafe { ptr::write_bytes(region.at(bytes.start).as_ptr(), 7, bytes.end - bytes.start) };
    }

    #[test]
    fn a_reservation_of_terabytes_costs_nothing_and_what_is_discarded_is_given_back() {
        let region = Region::reserve(4 << 40).expect("address space");
        let far = 3 << 40;
        assert_eq!(resident(&region, far..far + 10 * PAGE), 0);
        fill(&region, far..far + 10 * PAGE);
        assert_eq!(resident(&region, far..far + 10 * PAGE), 10 * PAGE);
        // Out of order, neighbours among them, one of nothing.
        let mut ranges: Vec<MemoryRange> = [(5, 6), (0, 1), (1, 3), (9, 9), (7, 8)]
            .into_iter()
            .map(|(from, to)| region.range(far + from * PAGE..far + to * PAGE))
            .collect();
        // SAFETY: nobody else uses the region.
        unsafe { discard(&mut ranges) };
        assert_eq!(ranges.len(), 3, "neighbours are discarded as one");
        for (page, is_there) in [false, false, false, true, true, false, true, false, true, true]
            .into_iter()
            .enumerate()
        {
            let at = far + page * PAGE;
            assert_eq!(resident(&region, at..at + PAGE) == PAGE, is_there, "page {page}");
        }
    }

    #[test]
    fn more_stretches_than_the_kernel_takes_at_once() {
        let region = Region::reserve(6000 * 4096).expect("address space");
        fill(&region, 0..6000 * 4096);
        let mut ranges: Vec<MemoryRange> = (0..3000)
            .map(|page| region.range(page * 8192..page * 8192 + 4096))
            .collect();
        // SAFETY: nobody else uses the region.
        unsafe { discard(&mut ranges) };
        assert_eq!(resident(&region, 0..6000 * 4096), 3000 * 4096);
    }

    /// What this process's page tables take, in bytes.
    #[cfg(target_os = "linux")]
    fn tables() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
        let line = status.lines().find(|line| line.starts_with("VmPTE:")).expect("there");
        let kibibytes: usize = line
            .split_whitespace()
            .nth(1)
            .expect("a number")
            .parse()
            .expect("a number");
        kibibytes << 10
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn windows_that_are_renewed_have_no_page_tables() {
        let window = window_bytes();
        let region = Region::reserve_windows(2000 * window - 5).expect("address space");
        assert_eq!(region.window(), Some(window));
        assert_eq!(region.at(0).addr().get() % window, 0);
        let before = tables();
        for at in 0..2000 {
            fill(&region, at * window..at * window + 1);
        }
        // Other tests of this process have some, too.
        let margin = 500 * system_page();
        assert!(tables() > before + 2000 * system_page() - margin);
        // SAFETY: nobody else uses the region.
        unsafe { (0..2000).step_by(10).for_each(|at| region.renew(at..at + 9)) };
        assert!(tables() < before + 200 * system_page() + margin);
        for at in 0..2000 {
            // SAFETY: within the region, which nobody else uses.
            let byte = unsafe { region.at(at * window).read() };
            assert_eq!(byte, if at % 10 == 9 { 7 } else { 0 }, "window {at}");
        }
    }

    #[test]
    fn what_fills_no_window_or_shares_them_has_none() {
        for region in [
            Region::reserve_windows(window_bytes() - 1),
            Region::reserve(2 * window_bytes()),
        ] {
            assert_eq!(region.expect("address space").window(), None);
        }
    }

    /// Of 65,530 mappings that a process may have, a region takes a few, however often parts of it were mapped anew.
    #[cfg(target_os = "linux")]
    #[test]
    fn renewed_windows_join_their_neighbours() {
        let window = window_bytes();
        let region = Region::reserve_windows(500 * window).expect("address space");
        let addresses = region.at(0).addr().get()..region.at(500 * window).addr().get();
        for round in 0..3 {
            for at in 0..500 {
                fill(&region, at * window..at * window + 1);
            }
            // SAFETY: nobody else uses the region.
            unsafe { (round..500).step_by(3).for_each(|at| region.renew(at..at + 1)) };
        }
        let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux");
        let starts = maps.lines().map(|line| {
            let start = line.split('-').next().expect("an address");
            usize::from_str_radix(start, 16).expect("hexadecimal")
        });
        let parts = starts.filter(|start| addresses.contains(start)).count();
        assert!(parts <= 3, "{parts} mappings");
    }

    #[test]
    fn more_than_there_is() {
        assert!(Region::reserve_windows(usize::MAX / 2).is_err());
        assert!(Region::reserve_windows(usize::MAX).is_err());
        assert!(Region::reserve(usize::MAX / 2).is_err());
        assert!(Region::reserve(usize::MAX).is_err());
    }
}
