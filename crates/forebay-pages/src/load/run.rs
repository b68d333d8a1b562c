//! A run: neighbouring pages that one I/O brings, and what becomes of them when it has ended.
//!
//! Promises: the run belongs to the pool, not to a reader, and all who still wait for its pages are told when it ends. If its
//! I/O fails, it is tried once more page by page, so that only those who want a bad page get the error. A page becomes resident
//! after all of its bytes are in memory and match its checksum; a page that fails is absent again, its memory given back,
//! before anybody is told. A run that nobody wants any more before its I/O begins is cancelled, and costs no I/O.
//!
//! Knows nothing of who waits, and of other runs.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::admission::Turn;
use super::discard::DiscardBuffer;
use super::plan::PlannedRun;
use crate::error::{PageError, ShutDown};
use crate::eviction::evictor::Evictor;
use crate::memory::frames::Frames;
use crate::memory::loads::{Load, Loads, PageFailure};
use crate::memory::mapping::Mapping;
use crate::memory::region;
use crate::stats::Counters;
use crate::storage::request::{CompletionHandler, Piece, ReadRequest};

/// The largest alignment that O_DIRECT asks of lengths.
const BLOCK: u64 = 4096;

/// What all runs of a pool share.
pub(crate) struct RunContext {
    pub(crate) evictor: Arc<Evictor>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) discard_buffer: DiscardBuffer,
}

/// A run in flight.
pub(crate) struct Run {
    mapping: Arc<Mapping>,
    planned: PlannedRun,
    /// It is wanted even though nobody holds its pages.
    prefetch: bool,
    load: Arc<Load>,
}

impl Run {
    /// The planned pages are loading from now on, into these frames. Under the lock of the mapping's loads.
    pub(crate) fn begin(
        mapping: &Arc<Mapping>,
        loads: &mut Loads,
        planned: PlannedRun,
        frames: &mut Frames<'_>,
        prefetch: bool,
    ) -> Self {
        let count = planned.kept_count();
        frames.spend(count);
        mapping.took(count);
        planned
            .kept()
            .flatten()
            .for_each(|page| mapping.word(page).begin_load());
        let load = Load::new();
        for pages in planned.kept() {
            mapping.will_touch(&pages);
            loads.insert(pages, &load);
        }
        Self {
            mapping: Arc::clone(mapping),
            planned,
            prefetch,
            load,
        }
    }

    /// What readers of its pages wait for.
    pub(crate) fn load(&self) -> &Arc<Load> {
        &self.load
    }

    /// The I/O that brings it, in this turn.
    pub(crate) fn request(self, context: &Arc<RunContext>, turn: &Arc<Turn>) -> ReadRequest {
        let mut pieces = Vec::with_capacity(self.planned.extents.len());
        for extent in &self.planned.extents {
            let bytes = self.bytes(&extent.pages);
            let length = (bytes.end - bytes.start) as usize;
            if extent.kept {
                let start = self.mapping.at(bytes.start).as_ptr();
                pieces.push(Piece { start, length });
            } else {
                pieces.extend(context.discard_buffer.pieces(length));
            }
        }
        ReadRequest {
            offset: self.mapping.offset(self.planned.pages().start),
            pieces,
            handler: Box::new(WholeRun {
                context: Arc::clone(context),
                run: self,
                turn: Arc::clone(turn),
            }),
        }
    }

    /// Which bytes of the file are read for these pages: up to the end of its last block.
    fn bytes(&self, pages: &Range<u32>) -> Range<u64> {
        let end = self.mapping.length.next_multiple_of(BLOCK);
        self.mapping.offset(pages.start)..self.mapping.offset(pages.end).min(end)
    }

    /// So many bytes from the run's beginning on are in memory.
    fn arrived(&self, evictor: &Evictor, bytes: usize) {
        let begin = self.mapping.offset(self.planned.pages().start);
        let failures = self
            .planned
            .kept()
            .flatten()
            .filter_map(|page| Some((page, self.page_arrived(page, begin + bytes as u64).err()?)))
            .collect();
        self.end(evictor, failures);
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
        // SAFETY: the page was read to its end, and is loading: nobody but this run writes or discards it.
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

    /// It has ended: all pages are resident, except for those that failed.
    fn end(&self, evictor: &Evictor, mut failures: Vec<PageFailure>) {
        failures.sort_unstable_by_key(|(page, _)| *page);
        let failed = |page| failures.binary_search_by_key(&page, |(bad, _)| *bad).is_ok();
        if !failures.is_empty() {
            let mut memory = failures.iter().map(|(page, _)| self.mapping.memory(*page)).collect();
            // SAFETY: the mapping lives; pages that are loading are read by nobody, and the I/O of this run has ended.
            unsafe { region::discard(&mut memory) };
        }
        {
            let mut loads = self.mapping.loads();
            for pages in self.planned.kept() {
                loads.remove(&pages);
                for page in pages {
                    if failed(page) {
                        self.mapping.word(page).fail_load();
                    } else {
                        self.mapping.word(page).finish_load();
                    }
                }
            }
        }
        let loaded = self.planned.kept().flatten().filter(|page| !failed(*page));
        evictor.entered(&self.mapping, loaded.collect());
        if !failures.is_empty() {
            evictor.left_empty(&self.mapping, failures.iter().map(|(page, _)| *page));
            self.mapping.give_back(failures.len());
        }
        self.load.end(failures);
        self.mapping.pins_released(&self.planned.pages());
    }

    /// Its I/O never began, and its memory was not touched.
    fn cancel(&self, evictor: &Evictor) {
        {
            let mut loads = self.mapping.loads();
            for pages in self.planned.kept() {
                loads.remove(&pages);
                pages.for_each(|page| self.mapping.word(page).fail_load());
            }
        }
        evictor.left_empty(&self.mapping, self.planned.kept().flatten());
        self.mapping.give_back(self.planned.kept_count());
        self.load.end(Vec::new());
    }

    fn is_wanted(&self) -> bool {
        self.prefetch
            || self
                .planned
                .kept()
                .flatten()
                .any(|page| self.mapping.word(page).is_pinned())
    }

    fn io_error(&self, bytes: &Range<u64>, cause: io::Error) -> PageError {
        PageError::io(&self.mapping.path, bytes.start, bytes.end - bytes.start, cause)
    }
}

/// The run as one I/O.
struct WholeRun {
    context: Arc<RunContext>,
    run: Run,
    /// Dropped when the I/O has ended, before anybody is told: a reader that reads on at once finds the turn given back.
    turn: Arc<Turn>,
}

impl CompletionHandler for WholeRun {
    fn is_wanted(&self) -> bool {
        self.run.is_wanted()
    }

    fn completed(self: Box<Self>, outcome: io::Result<usize>) {
        let Self { context, run, turn } = *self;
        drop(turn);
        context.counters.run(run.planned.pages().len() - run.planned.wanted);
        match outcome {
            Ok(bytes) => {
                context.counters.read(bytes as u64);
                run.arrived(&context.evictor, bytes);
            }
            Err(cause) if run.planned.kept_count() == 1 || ShutDown::is_in(&cause) => {
                let bytes = run.bytes(&run.planned.pages());
                let pages = run.planned.kept().flatten();
                let failures = pages
                    .map(|page| (page, run.io_error(&bytes, copy_of(&cause))))
                    .collect();
                run.end(&context.evictor, failures);
            }
            Err(_) => SinglePage::try_each(&context, run),
        }
    }

    fn cancelled(self: Box<Self>) {
        let Self { context, run, turn } = *self;
        drop(turn);
        run.cancel(&context.evictor);
    }
}

/// One page of a run that failed as a whole.
struct SinglePage {
    context: Arc<RunContext>,
    page: u32,
    retry: Arc<Retry>,
}

/// A run whose pages are tried one by one.
struct Retry {
    run: Run,
    pages_left: AtomicUsize,
    failures: Mutex<Vec<PageFailure>>,
}

impl SinglePage {
    fn try_each(context: &Arc<RunContext>, run: Run) {
        let retry = Arc::new(Retry {
            pages_left: AtomicUsize::new(run.planned.kept_count()),
            failures: Mutex::default(),
            run,
        });
        let run = &retry.run;
        let request = |page| {
            let bytes = run.bytes(&(page..page + 1));
            ReadRequest {
                offset: bytes.start,
                pieces: vec![Piece {
                    start: run.mapping.at(bytes.start).as_ptr(),
                    length: (bytes.end - bytes.start) as usize,
                }],
                handler: Box::new(Self {
                    context: Arc::clone(context),
                    page,
                    retry: Arc::clone(&retry),
                }),
            }
        };
        let requests = run.planned.kept().flatten().map(request).collect();
        run.mapping.file.read(requests);
    }
}

impl CompletionHandler for SinglePage {
    /// The run has begun, and its other pages wait for this one.
    fn is_wanted(&self) -> bool {
        true
    }

    fn completed(self: Box<Self>, outcome: io::Result<usize>) {
        let Self { context, page, retry } = *self;
        let run = &retry.run;
        let bytes = run.bytes(&(page..page + 1));
        context.counters.run(0);
        let arrived = match outcome {
            Ok(count) => {
                context.counters.read(count as u64);
                run.page_arrived(page, bytes.start + count as u64)
            }
            Err(cause) => Err(run.io_error(&bytes, cause)),
        };
        if let Err(error) = arrived {
            retry.failures.lock().push((page, error));
        }
        // The last one sees what the others found.
        if retry.pages_left.fetch_sub(1, Ordering::AcqRel) == 1 {
            let failures = std::mem::take(&mut *retry.failures.lock());
            run.end(&context.evictor, failures);
        }
    }

    fn cancelled(self: Box<Self>) {
        unreachable!("it is always wanted");
    }
}

/// The same error once more, for each page that it concerns.
fn copy_of(cause: &io::Error) -> io::Error {
    match cause.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None if ShutDown::is_in(cause) => io::Error::other(ShutDown),
        None => io::Error::new(cause.kind(), cause.to_string()),
    }
}
