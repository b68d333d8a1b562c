//! Stopwatch: the time on the clock and on the processors that a piece of work takes.
//!
//! Promises: processor time is that of this whole process, in all threads, user and system. Where the system does not tell
//! (it is read from `/proc`), there is none rather than a guess. Knows nothing of what is timed.

use std::time::Instant;

use crate::measurement::Reading;

/// What a row costs the processors, in microseconds.
pub(crate) const PROCESSOR: &str = "processor";
/// Rows, or other things done, a second.
pub(crate) const THROUGHPUT: &str = "throughput";

/// `USER_HZ`: the unit of process times in `/proc` on Linux, whatever the kernel's own tick.
const TICKS_A_SECOND: f64 = 100.0;

/// Runs from when it was started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch {
    begun: Instant,
    processor_ticks: Option<u64>,
}

/// What it showed when it was stopped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Took {
    pub(crate) seconds: f64,
    /// To a hundredth of a second.
    pub(crate) processor_seconds: Option<f64>,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self {
            begun: Instant::now(),
            processor_ticks: processor_ticks(),
        }
    }

    pub(crate) fn stop(self) -> Took {
        let seconds = self.begun.elapsed().as_secs_f64();
        let processor_seconds = self
            .processor_ticks
            .zip(processor_ticks())
            .map(|(before, after)| after.saturating_sub(before) as f64 / TICKS_A_SECOND);
        Took {
            seconds,
            processor_seconds,
        }
    }
}

impl Took {
    /// Rows a second.
    pub(crate) fn throughput(&self, rows: u32) -> Reading {
        Reading::new(THROUGHPUT, "rows/s", f64::from(rows) / self.seconds)
    }

    /// Processor time a row: what others' work on the machine changes least.
    pub(crate) fn processor(&self, rows: u32) -> Option<Reading> {
        let microseconds = self.processor_seconds? * 1e6 / f64::from(rows);
        Some(Reading::new(PROCESSOR, "µs/row", microseconds))
    }
}

fn processor_ticks() -> Option<u64> {
    read_ticks(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

/// Fields 14 and 15. The second is the program's name in parentheses, which may hold spaces and parentheses.
fn read_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_read_behind_a_name_with_parentheses() {
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 200 34 0 0 20 0";
        assert_eq!(read_ticks(stat), Some(234));
        assert_eq!(read_ticks("7 (a) S 1 2"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn work_is_seen_on_the_clock_and_on_the_processor() {
        let stopwatch = Stopwatch::start();
        while stopwatch.begun.elapsed().as_millis() < 200 || stopwatch.stop().processor_seconds < Some(0.02) {
            std::hint::spin_loop();
        }
        let took = stopwatch.stop();
        assert!(took.seconds >= 0.2, "{took:?}");
        let rate = took.throughput(100).value;
        assert!(rate > 0.0 && rate <= 500.0, "{rate}");
        let microseconds = took.processor(10).unwrap().value;
        assert!(microseconds >= 2_000.0, "{microseconds}");
    }
}
