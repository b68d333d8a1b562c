//! How a read gets its pages: from memory, from a load that is under way, or by one of its own.
//!
//! Promises: a read holds no pages while it waits for memory, or for its turn to load much, so reads cannot wait for each other
//! in a circle; it waits for all that it needs at once, in turn with the others, no longer than the pool's limit. It loads what
//! nobody loads yet, and joins what others load. Dropping it at any point lets its pages go, and stops no load that others wait
//! for.
//!
//! Knows nothing of handles and of how files are opened.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use super::PageError;
use super::admission::Turn;
use super::core::Core;
use super::mapping::{Mapping, Pins};
use super::memory::Frames;
use super::plan::{PlannedRun, Reach, plan};
use super::run::Run;
use super::word::State;

/// What a look at the missing pages has led to.
enum Look {
    /// These runs bring them, unless the flag says that some were leaving: then there is more to do.
    UnderWay { runs: Vec<Arc<Run>>, again: bool },
    /// There are not as many frames free as there are absent pages, which is so many.
    LacksFrames(usize),
    /// So many pages are absent that they have to wait for their turn.
    LacksTurn(usize),
}

/// Holds all these pages, resident, each span's for itself, for a read of so many bytes.
///
/// # Cancel safety
/// Dropping it lets go what it held.
pub(crate) async fn bring(
    core: &Arc<Core>,
    mapping: &Arc<Mapping>,
    spans: &[Range<u32>],
    asked: u64,
) -> Result<Vec<Pins>, PageError> {
    let mut missing = Vec::new();
    let pins = pin(mapping, spans, &mut missing);
    core.counters.asked(asked, (pages_in(spans) - missing.len()) as u64);
    load(core, mapping, spans, pins, missing).await
}

/// As [`bring`], for a reader who has looked already: `pins` are his, and `missing` is what was not resident.
pub(crate) async fn load(
    core: &Arc<Core>,
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
        match look(core, mapping, &missing, &mut turn, held.take(), false) {
            Look::LacksTurn(absent) => {
                pins.clear();
                core.counters.waited();
                turn = Some(core.admission.admit(absent).await);
                // To wait for the disk is not to wait for memory.
                began = Instant::now();
            }
            Look::LacksFrames(lacking) => {
                pins.clear();
                // What was resident may be evicted while this waits without a hold on it: then it asks for all that nobody else
                // holds. To ask for those as well would be to wait for frames that their holders need not give back.
                let wanted = if waits == 0 {
                    lacking
                } else {
                    unheld(mapping, spans).max(lacking)
                };
                waits += 1;
                match wait_for_frames(core, wanted, began).await {
                    Ok(frames) => held = Some(frames),
                    // Others may have brought some of its pages meanwhile, so that it lacks less than it waited for.
                    Err(_) if !time_is_up => time_is_up = true,
                    Err(full) => return Err(full),
                }
            }
            Look::UnderWay { runs, again } => {
                if again {
                    core.wait_for_evictor();
                }
                // The last one asked for is likely the last to come: then this is woken once.
                for run in runs.iter().rev() {
                    run.ended().await;
                }
                let is_ours = |page| missing.binary_search(&page).is_ok();
                if let Some(error) = runs.iter().find_map(|run| run.failure(is_ours)) {
                    return Err(error);
                }
                // Held since before they landed, so they stay. Those that were leaving, and those of a run that was called off
                // just as this joined it, are still to be brought.
                missing.retain(|page| mapping.word(*page).state() != State::Resident);
                continue;
            }
        }
        missing.clear();
        pins = pin(mapping, spans, &mut missing);
    }
}

/// Begins to load what of these pages is absent, and waits for none of it.
///
/// # Cancel safety
/// Dropping it before it has begun leaves nothing behind.
pub(crate) async fn prefetch(core: &Arc<Core>, mapping: &Arc<Mapping>, pages: Range<u32>) -> Result<(), PageError> {
    let began = Instant::now();
    let mut held = None;
    loop {
        let mut turn = Some(Turn::of_its_own());
        let missing: Vec<u32> = pages
            .clone()
            .filter(|page| matches!(mapping.word(*page).state(), State::Absent | State::Leaving))
            .collect();
        match look(core, mapping, &missing, &mut turn, held.take(), true) {
            Look::LacksTurn(_) => unreachable!("it has its own"),
            Look::UnderWay { again: false, .. } => return Ok(()),
            Look::UnderWay { again: true, .. } => core.wait_for_evictor(),
            Look::LacksFrames(lacking) => {
                held = Some(wait_for_frames(core, lacking, began).await?);
            }
        }
    }
}

fn pin(mapping: &Arc<Mapping>, spans: &[Range<u32>], missing: &mut Vec<u32>) -> Vec<Pins> {
    let pins = spans.iter().map(|span| mapping.pin(span.clone(), missing)).collect();
    if spans.len() > 1 {
        missing.sort_unstable();
        missing.dedup();
    }
    pins
}

/// How many pages are in these spans, each counted once.
pub(crate) fn pages_in(spans: &[Range<u32>]) -> usize {
    distinct(spans).map(|pages| pages.len()).sum()
}

/// How many of these pages could go before they are looked at again: nobody holds them.
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

/// Looks at pages that were missing: joins what is loading, and begins to load what is absent if there are frames for all of it,
/// those in `held` among them. Then the turn is used, and what is absent later needs another.
fn look<'a>(
    core: &'a Arc<Core>,
    mapping: &Arc<Mapping>,
    missing: &[u32],
    turn: &mut Option<Turn>,
    held: Option<Frames<'a>>,
    prefetch: bool,
) -> Look {
    let mut absent = Vec::new();
    let mut runs: Vec<Arc<Run>> = Vec::new();
    let mut joined = 0;
    let mut again = false;
    let mut transfers = Vec::new();
    // Not dropped under the lock: that wakes who is next.
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
                    let run = loads
                        .of(page)
                        .expect("a page that is loading is so by a run that is known under this lock");
                    if !runs.last().is_some_and(|last| Arc::ptr_eq(last, run)) {
                        runs.push(Arc::clone(run));
                    }
                }
            }
        }
        if turn.is_none() {
            *turn = core.admission.try_admit(absent.len());
        }
        let Some(admitted) = turn.take() else {
            drop(loads);
            return Look::LacksTurn(absent.len());
        };
        let state = |page| mapping.word(page).state();
        let has = held.as_ref().map_or(0, Frames::count);
        // With the gaps where there is room for them, else past them.
        let found = [true, false].into_iter().find_map(|keeps_gaps| {
            let reach = Reach {
                keeps_gaps,
                ..core.settings.reach
            };
            let planned = plan(&absent, reach, state);
            let needed: usize = planned.iter().map(PlannedRun::kept_count).sum();
            let more = core.memory.try_take(needed.saturating_sub(has))?;
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
            transfers.push(run.transfer(core, &used));
            runs.push(run);
        }
    }
    core.counters.missed(absent.len(), joined);
    if !transfers.is_empty() {
        core.submit(transfers);
    }
    Look::UnderWay { runs, again }
}

/// So many frames, within what is left of the time since `began`.
async fn wait_for_frames(core: &Arc<Core>, wanted: usize, began: Instant) -> Result<Frames<'_>, PageError> {
    core.counters.waited();
    let left = core.settings.wait_limit.saturating_sub(began.elapsed());
    let wanted = wanted.min(core.memory.capacity);
    let frames = core.memory.take(wanted, left).await;
    frames.ok_or_else(|| full(core, wanted))
}

fn full(core: &Core, wanted: usize) -> PageError {
    let bytes = |frames: usize| frames as u64 * core.settings.page_size as u64;
    PageError::Full {
        wanted: bytes(wanted),
        pinned: bytes(core.pinned_pages()),
        capacity: bytes(core.memory.capacity),
        waited: core.settings.wait_limit,
    }
}
