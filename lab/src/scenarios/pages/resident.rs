//! Resident memory: what the process holds of the machine's, looked at every 10 ms while something runs.
//!
//! Promises: it is the resident set of the whole process, as the kernel counts it, less what it was when the watch began; what
//! the heap had kept for later is given back before. Knows nothing of what runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::kernel;
use crate::failure::Failure;
use crate::measurement::{Course, MIB};

const EVERY: Duration = Duration::from_millis(10);
/// Of the kernel's tables, on every machine that the lab runs on.
const KERNEL_PAGE_BYTES: u64 = 4096;

/// Looks until it is told to end.
pub(super) struct Watch {
    ends: Arc<AtomicBool>,
    looks: JoinHandle<Vec<(f64, f64)>>,
}

impl Watch {
    /// What is resident now counts as nothing.
    pub(super) fn begin() -> Result<Self, Failure> {
        kernel::trim_heap();
        let before = resident_bytes()?;
        let ends = Arc::new(AtomicBool::new(false));
        let (begun, told) = (Instant::now(), Arc::clone(&ends));
        #[allow(
            clippy::disallowed_methods,
            reason = "a thread of its own that looks again and again"
        )]
        let looks = std::thread::spawn(move || {
            let mut looks = Vec::new();
            // Relaxed: one look more does no harm.
            while !told.load(Ordering::Relaxed) {
                if let Ok(resident) = resident_bytes() {
                    looks.push((begun.elapsed().as_secs_f64(), (resident as f64 - before as f64) / MIB));
                }
                std::thread::sleep(EVERY);
            }
            looks
        });
        Ok(Self { ends, looks })
    }

    /// What was seen, in MiB over the seconds.
    pub(super) fn end(self) -> Course {
        self.ends.store(true, Ordering::Relaxed);
        let points = self.looks.join().expect("a look does not panic");
        Course::new("resident memory", "MiB", &points)
    }
}

/// The second field is the resident set, in pages.
fn resident_bytes() -> Result<u64, Failure> {
    let statm = std::fs::read_to_string("/proc/self/statm").map_err(Failure::system("read /proc/self/statm"))?;
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages
        .map(|pages| pages * KERNEL_PAGE_BYTES)
        .ok_or_else(|| Failure::Wrong(format!("/proc/self/statm is {statm:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "it gives the watch time to look")]
    fn memory_that_is_touched_is_seen_and_memory_that_was_there_is_not() {
        let before = std::hint::black_box(vec![1_u8; 64 << 20]);
        let watch = Watch::begin().unwrap();
        let more = std::hint::black_box(vec![1_u8; 256 << 20]);
        std::thread::sleep(3 * EVERY);
        let course = watch.end();
        drop((before, more));
        // Other tests of this process have memory, too.
        assert!((200.0..2_000.0).contains(&course.most()), "{course:?}");
        assert!(course.points().windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
