//! Readers: many that read ranges of one file at once, through one system, and look at what they got.
//!
//! Promises: every reader reads its own drawn ranges, one after another, until its number or the time is over; every range is
//! looked at, and one wrong byte that the look covers fails all. Time runs from the first read's begin to the last one's end.
//! Readers are tasks of a runtime with two workers, and let each other have their turn after every range; those of a system
//! that blocks are threads. Where it is asked for, one more reads little at a time beside them, and how long that takes is told.
//! Knows no system.

use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::{Handle, Runtime};

use super::material::Look;
use super::ranges::Ranges;
use crate::failure::Failure;
use crate::latency::Latencies;
use crate::stopwatch::Stopwatch;

/// A system that serves ranges of the file.
pub(super) trait Serves: Send + Sync + 'static {
    type Reader: Reader;

    /// Whether a read occupies its thread until it is done.
    const BLOCKS: bool;

    /// One more reader.
    fn reader(&self) -> Self::Reader;

    /// Pages found and pages not found so far, where the system says.
    fn counted(&self) -> Option<Counted> {
        None
    }
}

/// One that reads, a range at a time.
pub(super) trait Reader: Send + 'static {
    /// Reads the range and looks at it, in one piece or several.
    fn read(&mut self, range: Range<u64>, look: Look) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// Lookups of pages.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counted {
    pub(super) hits: u64,
    pub(super) misses: u64,
}

/// What readers are to do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    pub(super) file_bytes: u64,
    pub(super) readers: u32,
    /// Ranges a reader, at most.
    pub(super) reads_max: usize,
    /// No read begins later than this.
    pub(super) duration: Duration,
    pub(super) look: Look,
    /// Whether one more reads little beside them, which is not counted with what they read.
    pub(super) has_a_small_one: bool,
}

/// What they did.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) bytes: u64,
    pub(super) reads: u64,
    pub(super) seconds: f64,
    /// Of this whole process, where the system tells.
    pub(super) processor_seconds: Option<f64>,
    /// How long each read of the small one took, if there was one.
    pub(super) small: Option<Latencies>,
}

/// What the small one reads at a time.
const SMALL_BYTES: u64 = 64 << 10;
/// How long it rests after each read.
const REST: Duration = Duration::from_millis(3);

/// A system that is open, whichever it is.
pub(super) trait Served {
    /// Lets readers read.
    fn turn(&self, runtime: &Runtime, turn: Turn) -> Result<Seen, Failure>;

    /// Reads the whole file once and touches all of it, with one reader.
    fn warm(&self, runtime: &Runtime, file_bytes: u64) -> Result<(), Failure>;

    /// Reads these ranges over and over with one reader; nanoseconds a read.
    fn repeat(&self, runtime: &Runtime, ranges: &[Range<u64>], duration: Duration) -> Result<f64, Failure>;

    /// As the system counts.
    fn counted(&self) -> Option<Counted>;
}

impl<S: Serves> Served for S {
    fn turn(&self, runtime: &Runtime, turn: Turn) -> Result<Seen, Failure> {
        runtime.block_on(async {
            let readers: Vec<_> = (0..turn.readers).map(|number| (number, self.reader())).collect();
            let stopwatch = Stopwatch::start();
            let until = Instant::now() + turn.duration;
            let tasks: Vec<_> = readers
                .into_iter()
                .map(|(number, reader)| start::<S, _>(read_ranges(reader, number, turn, until)))
                .collect();
            let is_over = Arc::new(AtomicBool::new(false));
            let small = turn
                .has_a_small_one
                .then(|| start::<S, _>(read_small(self.reader(), turn, Arc::clone(&is_over))));
            let (mut bytes, mut reads) = (0, 0);
            let mut wrong = None;
            for task in tasks {
                match task.await.expect("a reader does not panic") {
                    Ok((its_bytes, its_reads)) => (bytes, reads) = (bytes + its_bytes, reads + its_reads),
                    Err(failure) => wrong = Some(failure),
                }
            }
            let took = stopwatch.stop();
            is_over.store(true, Ordering::Relaxed);
            let small = match small {
                Some(small) => Some(small.await.expect("a reader does not panic")?),
                None => None,
            };
            let seen = Seen {
                bytes,
                reads,
                seconds: took.seconds,
                processor_seconds: took.processor_seconds,
                small,
            };
            wrong.map_or(Ok(seen), Err)
        })
    }

    fn warm(&self, runtime: &Runtime, file_bytes: u64) -> Result<(), Failure> {
        const PORTION: u64 = 4 << 20;
        let mut reader = self.reader();
        runtime.block_on(async {
            let read_all = async move {
                for from in (0..file_bytes).step_by(PORTION as usize) {
                    let range = from..(from + PORTION).min(file_bytes);
                    reader.read(range, Look::Touched).await?;
                }
                Ok(())
            };
            start::<S, _>(read_all).await.expect("a reader does not panic")
        })
    }

    fn repeat(&self, runtime: &Runtime, ranges: &[Range<u64>], duration: Duration) -> Result<f64, Failure> {
        let (mut reader, ranges) = (self.reader(), Arc::<[Range<u64>]>::from(ranges));
        runtime.block_on(async {
            let read_again = async move {
                let begun = Instant::now();
                let mut rounds = 0_u32;
                // Once unmeasured, for what the first time costs more.
                for range in &*ranges {
                    reader.read(range.clone(), Look::HandedOut).await?;
                }
                let begun_again = Instant::now();
                while begun.elapsed() < duration || rounds == 0 {
                    for range in &*ranges {
                        reader.read(range.clone(), Look::HandedOut).await?;
                    }
                    rounds += 1;
                }
                let reads = f64::from(rounds) * ranges.len() as f64;
                Ok(begun_again.elapsed().as_secs_f64() * 1e9 / reads)
            };
            start::<S, _>(read_again).await.expect("a reader does not panic")
        })
    }

    fn counted(&self) -> Option<Counted> {
        Serves::counted(self)
    }
}

/// On a worker, or on a thread of its own.
fn start<S: Serves, T: Send + 'static>(
    work: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> tokio::task::JoinHandle<Result<T, Failure>> {
    if S::BLOCKS {
        let handle = Handle::current();
        tokio::task::spawn_blocking(move || handle.block_on(work))
    } else {
        tokio::spawn(work)
    }
}

/// Bytes and ranges that one reader has read.
async fn read_ranges(mut reader: impl Reader, number: u32, turn: Turn, until: Instant) -> Result<(u64, u64), Failure> {
    let (mut bytes, mut reads) = (0, 0);
    for range in Ranges::of(number, turn.file_bytes).take(turn.reads_max) {
        if Instant::now() >= until && reads > 0 {
            break;
        }
        let asked = range.end - range.start;
        reader.read(range, turn.look.of_range(reads)).await?;
        bytes += asked;
        reads += 1;
        // A range that is there never waits: two readers would have both workers for themselves.
        tokio::task::yield_now().await;
    }
    Ok((bytes, reads))
}

/// One that reads little, anywhere, until the others are done.
async fn read_small(mut reader: impl Reader, turn: Turn, is_over: Arc<AtomicBool>) -> Result<Latencies, Failure> {
    let mut latencies = Latencies::new();
    let places = Ranges::of(u32::MAX, turn.file_bytes).map(|range| range.start.min(turn.file_bytes - SMALL_BYTES));
    for from in places {
        let began = Instant::now();
        reader.read(from..from + SMALL_BYTES, turn.look).await?;
        latencies.note(began.elapsed());
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        tokio::time::sleep(REST).await;
    }
    Ok(latencies)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::closed_loop::two_workers;
    use crate::scenarios::pages::material::Material;
    use crate::scenarios::pages::systems::Buffer;

    const TURN: Turn = Turn {
        file_bytes: 1 << 20,
        readers: 3,
        reads_max: 50,
        duration: Duration::from_secs(60),
        look: Look::Touched,
        has_a_small_one: false,
    };

    #[test]
    fn every_reader_reads_its_ranges_and_all_bytes_count() {
        let folder = tempfile::tempdir().unwrap();
        let material = Material::make(&folder.path().join("file"), TURN.file_bytes).unwrap();
        let runtime = two_workers().unwrap();
        let buffer = Buffer::of(&material).unwrap();
        let seen = buffer.turn(&runtime, TURN).unwrap();
        let asked = (0..3).flat_map(|reader| Ranges::of(reader, TURN.file_bytes).take(50));
        let bytes: u64 = asked.map(|range| range.end - range.start).sum();
        assert_eq!((seen.bytes, seen.reads), (bytes, 150));
        let at_once = Turn {
            duration: Duration::ZERO,
            ..TURN
        };
        assert_eq!(buffer.turn(&runtime, at_once).unwrap().reads, 3, "each reads once");
        let beside = Turn {
            has_a_small_one: true,
            ..TURN
        };
        let beside = buffer.turn(&runtime, beside).unwrap();
        assert_eq!((beside.bytes, beside.reads), (bytes, 150), "it is not one of them");
        assert!(seen.small.is_none() && beside.small.unwrap().quantile_ns(0.5) > 0.0);
        buffer.warm(&runtime, TURN.file_bytes).unwrap();
        let place = 4096..8192;
        assert!(buffer.repeat(&runtime, &[place], Duration::ZERO).unwrap() > 0.0);

        std::fs::write(&material.path, vec![0; 1 << 20]).unwrap();
        let spoilt = Buffer::of(&material).unwrap();
        assert!(spoilt.turn(&runtime, TURN).is_err());
        assert!(spoilt.warm(&runtime, TURN.file_bytes).is_err());
    }
}
