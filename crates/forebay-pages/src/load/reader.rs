//! How a read gets its pages: from memory, from a load that is in flight, or by a load of its own.
//!
//! Promises: a read holds no pages while it waits for memory, or for its turn to load much, so reads cannot wait for each other
//! in a circle. It waits for all that it needs at once, in turn with the others, no longer than the pool's limit. It loads what
//! nobody loads yet, and joins the loads of others. Dropping it at any point releases its pages, and stops no load that others
//! wait for.
//!
//! Knows nothing of handles and of how files are opened.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::admission::{Admission, Turn};
use super::plan::{PlannedRun, Reach, plan};
use super::run::{Run, RunContext};
use crate::error::PageError;
use crate::memory::frames::{FrameBudget, Frames};
use crate::memory::loads::Load;
use crate::memory::mapping::Mapping;
use crate::memory::pins::Pins;
use crate::memory::word::State;
use crate::stats::Counters;

/// Reads pages of a pool's files.
pub(crate) struct Reader {
    /// In bytes.
    pub(crate) page_size: usize,
    pub(crate) reach: Reach,
    /// How long a read waits for memory.
    pub(crate) memory_timeout: Duration,
    pub(crate) counters: Arc<Counters>,
    pub(crate) frames: Arc<FrameBudget>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) runs: Arc<RunContext>,
}

/// What a look at the missing pages has led to.
enum Look {
    /// These loads bring them, except for some that were leaving if the flag says so: then the caller must look again.
    Loading { loads: Vec<Arc<Load>>, again: bool },
    /// So many pages are absent, and fewer frames are free.
    LacksFrames(usize),
    /// So many pages are absent, and have to wait for their turn.
    LacksTurn(usize),
}

impl Reader {
    /// Holds the pages of these bytes, and adds those that are not resident to `missing`.
    #[inline]
    pub(crate) fn pin(
        &self,
        mapping: &Arc<Mapping>,
        bytes: &Range<u64>,
        missing: &mut Vec<u32>,
    ) -> Result<Pins, PageError> {
        let pages = mapping.pages_of(bytes);
        let count = pages.len();
        self.check_fits(count)?;
        let pins = Pins::take(mapping, pages, missing);
        let hits = count - missing.len();
        self.counters.asked(bytes.end - bytes.start, hits as u64);
        Ok(pins)
    }

    /// An error if so many pages can never be in memory together.
    fn check_fits(&self, pages: usize) -> Result<(), PageError> {
        if pages <= self.frames.capacity {
            return Ok(());
        }
        Err(PageError::TooLarge {
            wanted_bytes: self.bytes(pages),
            capacity_bytes: self.bytes(self.frames.capacity),
        })
    }

    fn bytes(&self, pages: usize) -> u64 {
        pages as u64 * self.page_size as u64
    }

    /// Holds the pages of all these spans, resident, each span by itself, for reads of so many bytes in all.
    ///
    /// # Cancel safety
    /// Dropping it releases what it held.
    pub(crate) async fn read_spans(
        &self,
        mapping: &Arc<Mapping>,
        spans: &[Range<u32>],
        bytes: u64,
    ) -> Result<Vec<Pins>, PageError> {
        let pages = pages_in(spans);
        self.check_fits(pages)?;
        let mut missing = Vec::new();
        let pins = pin_spans(mapping, spans, &mut missing);
        self.counters.asked(bytes, (pages - missing.len()) as u64);
        self.load(mapping, spans, pins, missing).await
    }

    /// As [`read_spans`](Self::read_spans), for a caller that has pinned the spans already; `missing` is what was not resident.
    pub(crate) async fn load(
        &self,
        mapping: &Arc<Mapping>,
        spans: &[Range<u32>],
        mut pins: Vec<Pins>,
        mut missing: Vec<u32>,
    ) -> Result<Vec<Pins>, PageError> {
        let mut turn: Option<Turn> = None;
        let mut held: Option<Frames<'_>> = None;
        let mut waits = 0;
        let mut time_is_up = false;
        let mut began = Instant::now();
        loop {
            if missing.is_empty() {
                return Ok(pins);
            }
            match self.look(mapping, &missing, &mut turn, held.take(), false) {
                Look::LacksTurn(absent) => {
                    pins.clear();
                    self.counters.waited();
                    turn = Some(self.admission.admit(absent).await);
                    // Waiting for the disk does not count as waiting for memory.
                    began = Instant::now();
                }
                Look::LacksFrames(lacking) => {
                    pins.clear();
                    // What was resident may be evicted while this waits without holding it: the next time it asks for all pages that
                    // nobody else holds. To ask for those as well would be to wait for frames that their holders need not give back.
                    let wanted = if waits == 0 {
                        lacking
                    } else {
                        unheld(mapping, spans).max(lacking)
                    };
                    waits += 1;
                    match self.wait_for_frames(wanted, began).await {
                        Ok(frames) => held = Some(frames),
                        // Others may have loaded some of its pages meanwhile, so that it lacks less than it waited for.
                        Err(_) if !time_is_up => time_is_up = true,
                        Err(full) => return Err(full),
                    }
                }
                Look::Loading { loads, again } => {
                    if again {
                        self.runs.evictor.wait();
                    }
                    // The last one asked for is likely the last to end: then this is woken once.
                    for load in loads.iter().rev() {
                        load.wait().await;
                    }
                    let is_ours = |page| missing.binary_search(&page).is_ok();
                    if let Some(error) = loads.iter().find_map(|load| load.failure(is_ours)) {
                        return Err(error);
                    }
                    // Held since before they became resident, so they stay. Those that were leaving, and those of a run that was
                    // cancelled just as this read joined it, are still to be loaded.
                    missing.retain(|page| mapping.word(*page).state() != State::Resident);
                    continue;
                }
            }
            missing.clear();
            pins = pin_spans(mapping, spans, &mut missing);
        }
    }

    /// Begins to load what of these pages is absent, and waits for none of it.
    ///
    /// # Cancel safety
    /// Dropping it before it has begun leaves nothing behind.
    pub(crate) async fn prefetch(&self, mapping: &Arc<Mapping>, pages: Range<u32>) -> Result<(), PageError> {
        self.check_fits(pages.len())?;
        let began = Instant::now();
        let mut held = None;
        loop {
            let mut turn = Some(Turn::of_its_own());
            let missing: Vec<u32> = pages
                .clone()
                .filter(|page| matches!(mapping.word(*page).state(), State::Absent | State::Leaving))
                .collect();
            match self.look(mapping, &missing, &mut turn, held.take(), true) {
                Look::LacksTurn(_) => unreachable!("it has its own"),
                Look::Loading { again: false, .. } => return Ok(()),
                Look::Loading { again: true, .. } => self.runs.evictor.wait(),
                Look::LacksFrames(lacking) => {
                    held = Some(self.wait_for_frames(lacking, began).await?);
                }
            }
        }
    }

    /// Looks at pages that were missing: joins what is loading, and begins to load what is absent if there are frames for all of it,
    /// those in `held` included. Then the turn is used, and what is absent later needs another.
    fn look<'a>(
        &'a self,
        mapping: &Arc<Mapping>,
        missing: &[u32],
        turn: &mut Option<Turn>,
        held: Option<Frames<'a>>,
        prefetch: bool,
    ) -> Look {
        let mut absent = Vec::new();
        let mut awaited: Vec<Arc<Load>> = Vec::new();
        let mut joined = 0;
        let mut again = false;
        let mut requests = Vec::new();
        // Not dropped under the lock: that wakes whoever is next.
        let used;
        {
            let mut loads = mapping.loads();
            for &page in missing {
                match mapping.word(page).state() {
                    State::Resident => {}
                    State::Absent => absent.push(page),
                    State::Leaving => again = true,
                    State::Loading => {
                        joined += 1;
                        let load = loads
                            .of(page)
                            .expect("a page that is loading has a load that is known under this lock");
                        if !awaited.last().is_some_and(|last| Arc::ptr_eq(last, load)) {
                            awaited.push(Arc::clone(load));
                        }
                    }
                }
            }
            if turn.is_none() {
                *turn = self.admission.try_admit(absent.len());
            }
            let Some(admitted) = turn.take() else {
                drop(loads);
                return Look::LacksTurn(absent.len());
            };
            let state = |page| mapping.word(page).state();
            let has = held.as_ref().map_or(0, Frames::count);
            // With the pages in gaps if there are frames for them, else without.
            let found = [true, false].into_iter().find_map(|keeps_gaps| {
                let planned = plan(&absent, self.reach, keeps_gaps, state);
                let needed: usize = planned.iter().map(PlannedRun::kept_count).sum();
                let more = self.frames.try_take(needed.saturating_sub(has))?;
                Some((planned, more))
            });
            let Some((planned, mut frames)) = found else {
                drop(loads);
                *turn = Some(admitted);
                return Look::LacksFrames(absent.len());
            };
            used = admitted.used();
            if let Some(held) = held {
                frames.join(held);
            }
            for run in planned {
                let run = Run::begin(mapping, &mut loads, run, &mut frames, prefetch);
                awaited.push(Arc::clone(run.load()));
                requests.push(run.request(&self.runs, &used));
            }
        }
        self.counters.missed(absent.len(), joined);
        if !requests.is_empty() {
            mapping.file.read(requests);
        }
        Look::Loading { loads: awaited, again }
    }

    /// Takes so many frames, within what is left of the time since `began`.
    async fn wait_for_frames(&self, wanted: usize, began: Instant) -> Result<Frames<'_>, PageError> {
        self.counters.waited();
        let left = self.memory_timeout.saturating_sub(began.elapsed());
        let wanted = wanted.min(self.frames.capacity);
        let frames = self.frames.take(wanted, left).await;
        frames.ok_or_else(|| PageError::Full {
            wanted_bytes: self.bytes(wanted),
            pinned_bytes: self.bytes(self.runs.evictor.pinned_pages_of_late(Instant::now())),
            capacity_bytes: self.bytes(self.frames.capacity),
            waited: self.memory_timeout,
        })
    }
}

fn pin_spans(mapping: &Arc<Mapping>, spans: &[Range<u32>], missing: &mut Vec<u32>) -> Vec<Pins> {
    let pins = spans
        .iter()
        .map(|span| Pins::take(mapping, span.clone(), missing))
        .collect();
    if spans.len() > 1 {
        missing.sort_unstable();
        missing.dedup();
    }
    pins
}

/// How many pages are in these spans, each counted once.
fn pages_in(spans: &[Range<u32>]) -> usize {
    distinct(spans).map(|pages| pages.len()).sum()
}

/// How many of these pages may be evicted before they are looked at again, because nobody holds them.
fn unheld(mapping: &Mapping, spans: &[Range<u32>]) -> usize {
    distinct(spans)
        .flatten()
        .filter(|page| !mapping.word(*page).is_pinned())
        .count()
}

/// The pages of these spans in order, each once.
fn distinct(spans: &[Range<u32>]) -> impl Iterator<Item = Range<u32>> {
    let mut sorted: Vec<Range<u32>> = spans.to_vec();
    sorted.sort_unstable_by_key(|span| span.start);
    let mut end = 0;
    sorted.into_iter().map(move |span| {
        let pages = span.start.max(end)..span.end.max(end);
        end = end.max(span.end);
        pages
    })
}
