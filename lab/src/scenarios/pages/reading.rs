//! Random ranges: read by many from memory that is cold, warm, or has all of the file.
//!
//! Promises: a cold turn begins with a new system and a file that the kernel has forgotten; a warm one with memory that is
//! full of it; a hot one with all of the file in memory, loaded before. Of Forebay the process' resident memory is watched
//! through each cold and warm turn, from before the pool is made. Memory of the turn before is given back first. Of a turn with
//! a small reader only its reads are told. Knows no system from within.

use std::cell::RefCell;
use std::rc::Rc;

use tokio::runtime::Runtime;

use super::material::{Look, Material};
use super::readers::{Served, Turn};
use super::resident::Watch;
use crate::closed_loop::{LATENCY_P99, two_workers};
use crate::failure::Failure;
use crate::measurement::{Course, MIB, Reading};
use crate::scenario::{FOREBAY, Stage, Trial};
use crate::stopwatch::THROUGHPUT;

/// By how much the resident set was ever over the pool's memory; below zero where it stayed under it.
pub(super) const OVER_THE_CAP: &str = "resident over the cap";
/// What the process may hold besides.
pub(super) const OVER_THE_CAP_MAX_MIB: f64 = 64.0;
/// With so many readers the memory is followed over time.
const FOREBAY_LOOKED_AT: u32 = 50;

/// What a published turn had a reader read.
const READS_A_READER: usize = 200;
/// A hot turn's share of a measurement's time: memory is steady soon.
const SHARE_OF_HOT: f64 = 1.0 / 6.0;

/// Opens a system on a file, with so much memory where it has its own.
pub(super) type Open = fn(&Runtime, &Material, u64) -> Result<Box<dyn Served>, Failure>;

/// What is in memory when the readers begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begins {
    /// Nothing.
    Cold,
    /// As much as fits.
    Warm,
    /// All, since an earlier turn.
    Hot,
}

/// A system that stays open for its next hot turn; there is memory for one.
#[derive(Default)]
pub(super) struct Kept(RefCell<Option<KeptOpen>>);

struct KeptOpen {
    system: &'static str,
    // Before the runtime, whose tasks it may have.
    served: Box<dyn Served>,
    runtime: Runtime,
}

impl Kept {
    /// Gives its memory back.
    pub(super) fn clear(&self) {
        *self.0.borrow_mut() = None;
    }

    /// Does something with the open system, which is opened and loaded first unless it was the last one.
    pub(super) fn with<T>(
        &self,
        (system, open): (&'static str, Open),
        material: &Material,
        memory: u64,
        then: impl FnOnce(&Runtime, &dyn Served) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut kept = self.0.borrow_mut();
        if kept.as_ref().is_none_or(|kept| kept.system != system) {
            *kept = None;
            let runtime = two_workers()?;
            let served = open(&runtime, material, memory)?;
            served.warm(&runtime, material.bytes)?;
            *kept = Some(KeptOpen {
                system,
                served,
                runtime,
            });
        }
        let kept = kept.as_ref().expect("it was opened above");
        then(&kept.runtime, &*kept.served)
    }
}

/// One system in one case.
pub(super) struct ReadTrial {
    pub(super) system: &'static str,
    pub(super) case: String,
    pub(super) open: Open,
    pub(super) begins: Begins,
    pub(super) look: Look,
    pub(super) readers: u32,
    pub(super) memory: u64,
    pub(super) material: Rc<Material>,
    pub(super) kept: Rc<Kept>,
    /// Of a measurement's time.
    pub(super) share: f64,
    pub(super) course: Option<Course>,
    pub(super) has_a_small_one: bool,
}

impl ReadTrial {
    fn turn(&self, stage: &Stage<'_>) -> Turn {
        let (reads_max, share) = match self.begins {
            Begins::Hot => (usize::MAX, SHARE_OF_HOT),
            Begins::Warm => (usize::MAX, self.share),
            Begins::Cold => (READS_A_READER, self.share),
        };
        Turn {
            file_bytes: self.material.bytes,
            readers: self.readers,
            reads_max,
            duration: stage.effort.duration.mul_f64(share),
            look: self.look,
            has_a_small_one: self.has_a_small_one,
        }
    }

    /// From a system that is made for this turn.
    fn anew(&mut self, turn: Turn) -> Result<Vec<Reading>, Failure> {
        self.kept.clear();
        self.material.leave_the_kernels_cache()?;
        let runtime = two_workers()?;
        let watch = (self.system == FOREBAY && !self.has_a_small_one)
            .then(Watch::begin)
            .transpose()?;
        let served = (self.open)(&runtime, &self.material, self.memory)?;
        if self.begins == Begins::Warm {
            served.warm(&runtime, self.material.bytes)?;
        }
        let mut readings = read(&runtime, &*served, turn)?;
        if let Some(watch) = watch {
            let cap = self.memory as f64 / MIB;
            let course = watch.end().bounded("cap", cap);
            readings.push(Reading::new(OVER_THE_CAP, "MiB", course.most() - cap));
            self.course = Some(course);
        }
        Ok(readings)
    }
}

/// Hits are told of this turn alone.
fn read(runtime: &Runtime, served: &dyn Served, turn: Turn) -> Result<Vec<Reading>, Failure> {
    let before = served.counted();
    let seen = served.turn(runtime, turn)?;
    if let Some(small) = seen.small {
        let quantile = |named: &'static str, part| Reading::new(named, "ms", small.quantile_ns(part) / 1e6);
        return Ok(vec![quantile("latency p90", 0.9), quantile(LATENCY_P99, 0.99)]);
    }
    let mut readings = vec![
        Reading::new(THROUGHPUT, "GB/s", seen.bytes as f64 / 1e9 / seen.seconds),
        Reading::new("ranges read", "ranges/s", seen.reads as f64 / seen.seconds),
    ];
    // What others' work on the machine changes least.
    if let Some(seconds) = seen.processor_seconds {
        readings.push(Reading::new(
            "processor",
            "ms/GB",
            seconds * 1e3 / (seen.bytes as f64 / 1e9),
        ));
    }
    if let Some((before, after)) = before.zip(served.counted()) {
        let (hits, misses) = (after.hits - before.hits, after.misses - before.misses);
        let share = 100.0 * hits as f64 / (hits + misses).max(1) as f64;
        readings.push(Reading::new("hit ratio", "%", share));
    }
    Ok(readings)
}

impl Trial for ReadTrial {
    fn system(&self) -> &str {
        self.system
    }

    fn case(&self) -> &str {
        &self.case
    }

    fn measure(&mut self, stage: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        let turn = self.turn(stage);
        if self.begins == Begins::Hot {
            let kept = Rc::clone(&self.kept);
            return kept.with(
                (self.system, self.open),
                &self.material,
                self.memory,
                |runtime, served| read(runtime, served, turn),
            );
        }
        self.anew(turn)
    }

    /// Of the most readers: the plots of the others look alike.
    fn course(&mut self) -> Option<Course> {
        self.course.take().filter(|_| self.readers == FOREBAY_LOOKED_AT)
    }
}
