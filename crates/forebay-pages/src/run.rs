//! A run: neighbouring pages that one I/O brings, and what becomes of them when it has.
//!
//! Promises: the run belongs to the pool: it lands, for all who wait for its pages, whoever of them is still there. If its I/O
//! fails it is tried once more page by page, so that only those who want the bad page get the error. A page becomes resident
//! after all of its bytes are there and are what its checksum says; one that fails is absent again, its memory given back,
//! before anybody is told. A run that nobody wants any more before it begins is called off, and costs no I/O.
//!
//! Knows nothing of who waits, and of other runs.

use std::io;
use std::ops::Range;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::PageError;
use super::admission::Turn;
use super::core::Core;
use super::io::{Landing, Operation, Piece, ShutDown, Transfer};
use super::mapping::{Loads, Mapping};
use super::memory::Frames;
use super::plan::PlannedRun;
use super::region;

/// What O_DIRECT wants lengths to be multiples of, at most.
const BLOCK: u64 = 4096;

/// A page's failure.
type Failure = (u32, PageError);

/// A run in flight.
pub(crate) struct Run {
    mapping: Arc<Mapping>,
    planned: PlannedRun,
    /// When each page that it loads was evicted, if it ever was.
    remembered: Vec<Option<u32>>,
    /// It is wanted though nobody holds its pages.
    prefetch: bool,
    /// Set when it has ended; empty if all went well.
    ended: OnceLock<Vec<Failure>>,
    told: Notify,
}

impl Run {
    /// The planned pages are loading from now on. Under the lock of the mapping's loads; the frames are for them.
    pub(crate) fn begin(
        mapping: &Arc<Mapping>,
        loads: &mut Loads,
        planned: PlannedRun,
        frames: &mut Frames<'_>,
        prefetch: bool,
    ) -> Arc<Self> {
        let count = planned.kept_count();
        frames.spend(count);
        mapping.took(count);
        let remembered = planned
            .kept()
            .flatten()
            .map(|page| mapping.word(page).begin())
            .collect();
        let run = Arc::new(Self {
            mapping: Arc::clone(mapping),
            planned,
            remembered,
            prefetch,
            ended: OnceLock::new(),
            told: Notify::new(),
        });
        for pages in run.planned.kept() {
            loads.insert(pages, &run);
        }
        run
    }

    /// The I/O that brings it, in this turn.
    pub(crate) fn transfer(self: &Arc<Self>, core: &Arc<Core>, turn: &Arc<Turn>) -> Transfer {
        let landing = Whole {
            core: Arc::clone(core),
            run: Arc::clone(self),
            turn: Arc::clone(turn),
        };
        let mut pieces = Vec::with_capacity(self.planned.stretches.len());
        for stretch in &self.planned.stretches {
            let bytes = self.bytes(&stretch.pages);
            let length = (bytes.end - bytes.start) as usize;
            if stretch.kept {
                let start = self.mapping.at(bytes.start).as_ptr();
                pieces.push(Piece { start, length });
            } else {
                pieces.extend(core.nobodys_memory(length));
            }
        }
        Transfer {
            file: Arc::clone(&self.mapping.file),
            operation: Operation::Read,
            offset: self.mapping.offset(self.planned.pages().start),
            pieces,
            landing: Box::new(landing),
        }
    }

    /// What of the file is read for these pages: not much more than it has.
    fn bytes(&self, pages: &Range<u32>) -> Range<u64> {
        let end = self.mapping.length.next_multiple_of(BLOCK);
        self.mapping.offset(pages.start)..self.mapping.offset(pages.end).min(end)
    }

    /// Waits until it has ended.
    ///
    /// # Cancel safety
    /// Dropping it changes nothing.
    pub(crate) async fn ended(&self) {
        let mut told = pin!(self.told.notified());
        told.as_mut().enable();
        if self.ended.get().is_none() {
            told.await;
        }
        debug_assert!(self.ended.get().is_some(), "told when it has ended");
    }

    /// Why one of these pages did not come, if one did not.
    pub(crate) fn failure(&self, is_wanted: impl Fn(u32) -> bool) -> Option<PageError> {
        let failures = self.ended.get()?;
        failures
            .iter()
            .find(|(page, _)| is_wanted(*page))
            .map(|(_, error)| error.clone())
    }

    /// So many bytes from the run's beginning on are in memory.
    fn arrived(&self, core: &Core, bytes: usize) {
        let begin = self.mapping.offset(self.planned.pages().start);
        let failures = self
            .planned
            .kept()
            .flatten()
            .filter_map(|page| Some((page, self.page_arrived(page, begin + bytes as u64).err()?)))
            .collect();
        self.land(core, failures);
    }

    /// The page is in memory as far as the file was read up to `end`.
    fn page_arrived(&self, page: u32, end: u64) -> Result<(), PageError> {
        let mapping = &self.mapping;
        let length = mapping.page_length(page);
        if end < mapping.offset(page) + length as u64 {
            return Err(PageError::Truncated {
                path: Arc::clone(&mapping.path),
                offset: end.max(mapping.offset(page)),
            });
        }
        let Some(verifier) = mapping.verifier() else {
            return Ok(());
        };
        // SAFETY: the page was read to its end, and is loading: nobody writes it or lets it go but this run.
        let bytes = unsafe { mapping.bytes(page) };
        if verifier.holds(u64::from(page), bytes) {
            return Ok(());
        }
        Err(PageError::Checksum {
            path: Arc::clone(&mapping.path),
            offset: mapping.offset(page),
            length: length as u64,
        })
    }

    /// Its end: all pages are resident, but for those that failed.
    fn land(&self, core: &Core, mut failures: Vec<Failure>) {
        failures.sort_unstable_by_key(|(page, _)| *page);
        let failed = |page| failures.binary_search_by_key(&page, |(bad, _)| *bad).is_ok();
        if !failures.is_empty() {
            let mut stretches = failures.iter().map(|(page, _)| self.mapping.stretch(*page)).collect();
            // SAFETY: the mapping lives; pages that are loading are read by nobody, and the I/O of this run has ended.
            unsafe { region::discard(&mut stretches) };
        }
        {
            let mut loads = self.mapping.loads();
            for pages in self.planned.kept() {
                loads.remove(&pages);
                for page in pages {
                    if failed(page) {
                        self.mapping.word(page).revert();
                    } else {
                        self.mapping.word(page).land();
                    }
                }
            }
        }
        let landed = self.planned.kept().flatten().zip(&self.remembered);
        core.entered(
            &self.mapping,
            landed
                .filter(|(page, _)| !failed(*page))
                .map(|(page, stamp)| (page, *stamp)),
        );
        if !failures.is_empty() {
            self.mapping.give_back(failures.len());
        }
        self.end(failures);
        self.mapping.pins_went(&self.planned.pages());
    }

    /// It never began: its memory was not touched.
    fn call_off(&self) {
        {
            let mut loads = self.mapping.loads();
            for pages in self.planned.kept() {
                loads.remove(&pages);
                pages.for_each(|page| self.mapping.word(page).revert());
            }
        }
        self.mapping.give_back(self.remembered.len());
        self.end(Vec::new());
    }

    fn end(&self, failures: Vec<Failure>) {
        let first = self.ended.set(failures).is_ok();
        debug_assert!(first, "a run ends once");
        self.told.notify_waiters();
    }

    fn is_wanted(&self) -> bool {
        self.prefetch
            || self
                .planned
                .kept()
                .flatten()
                .any(|page| self.mapping.word(page).is_pinned())
    }

    fn io_error(&self, bytes: Range<u64>, cause: io::Error) -> PageError {
        if ShutDown::is_in(&cause) {
            return PageError::Closed;
        }
        PageError::Io {
            path: Arc::clone(&self.mapping.path),
            offset: bytes.start,
            length: bytes.end - bytes.start,
            cause: Arc::new(cause),
        }
    }
}

/// The run as one I/O.
struct Whole {
    core: Arc<Core>,
    run: Arc<Run>,
    /// Goes when the I/O has ended, before anybody is told: who reads on at once finds it given back.
    turn: Arc<Turn>,
}

impl Landing for Whole {
    fn wanted(&self) -> bool {
        self.run.is_wanted()
    }

    fn lands(self: Box<Self>, outcome: io::Result<usize>) {
        let Self { core, run, turn } = *self;
        drop(turn);
        core.counters.run(run.planned.pages().len() - run.planned.wanted);
        match outcome {
            Ok(bytes) => {
                core.counters.read(bytes as u64);
                run.arrived(&core, bytes);
            }
            Err(cause) if run.remembered.len() == 1 || ShutDown::is_in(&cause) => {
                let failures = run
                    .planned
                    .kept()
                    .flatten()
                    .map(|page| (page, run.io_error(run.bytes(&run.planned.pages()), again(&cause))))
                    .collect();
                run.land(&core, failures);
            }
            Err(_) => Single::try_each(&core, &run),
        }
    }

    fn called_off(self: Box<Self>) {
        let Self { run, turn, .. } = *self;
        drop(turn);
        run.call_off();
    }
}

/// One page of a run that failed as a whole.
struct Single {
    core: Arc<Core>,
    run: Arc<Run>,
    page: u32,
    tries: Arc<Tries>,
}

/// How the pages of a failed run fare, each for itself.
struct Tries {
    left: AtomicUsize,
    failures: Mutex<Vec<Failure>>,
}

impl Single {
    fn try_each(core: &Arc<Core>, run: &Arc<Run>) {
        let tries = Arc::new(Tries {
            left: AtomicUsize::new(run.remembered.len()),
            failures: Mutex::default(),
        });
        let transfers = run
            .planned
            .kept()
            .flatten()
            .map(|page| {
                let bytes = run.bytes(&(page..page + 1));
                Transfer {
                    file: Arc::clone(&run.mapping.file),
                    operation: Operation::Read,
                    offset: bytes.start,
                    pieces: vec![Piece {
                        start: run.mapping.at(bytes.start).as_ptr(),
                        length: (bytes.end - bytes.start) as usize,
                    }],
                    landing: Box::new(Single {
                        core: Arc::clone(core),
                        run: Arc::clone(run),
                        page,
                        tries: Arc::clone(&tries),
                    }),
                }
            })
            .collect();
        core.submit(transfers);
    }
}

impl Landing for Single {
    /// The run has begun, and its other pages wait for this one.
    fn wanted(&self) -> bool {
        true
    }

    fn lands(self: Box<Self>, outcome: io::Result<usize>) {
        let Self { core, run, page, tries } = *self;
        let bytes = run.bytes(&(page..page + 1));
        core.counters.run(0);
        let landed = match outcome {
            Ok(count) => {
                core.counters.read(count as u64);
                run.page_arrived(page, bytes.start + count as u64)
            }
            Err(cause) => Err(run.io_error(bytes, cause)),
        };
        if let Err(error) = landed {
            tries.failures.lock().push((page, error));
        }
        // The last one sees what the others found.
        if tries.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            let failures = std::mem::take(&mut *tries.failures.lock());
            run.land(&core, failures);
        }
    }

    fn called_off(self: Box<Self>) {
        unreachable!("it is always wanted");
    }
}

/// The same error once more, for each page that it hit.
fn again(cause: &io::Error) -> io::Error {
    match cause.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(cause.kind(), cause.to_string()),
    }
}
