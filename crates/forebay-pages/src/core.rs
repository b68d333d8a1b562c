//! What all files of a pool share, and how pages leave it.
//!
//! Promises: pages are evicted by one at a time, in batches whose memory goes back to the system in one call. A page that is
//! leaving is gone when the evictor's lock can be taken. A mapping is known as long as its pages have frames or somebody has it,
//! and is forgotten, its file closed, when neither holds.
//!
//! Locks: the evictor's, then the policy's, then that of the files, then a mapping's loads; each may be left out.
//!
//! Knows nothing of runs' I/O and of how reads wait.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};

use super::PageError;
use super::admission::Admission;
use super::create::Directories;
use super::files::Files;
use super::io::{Backend, Engine, Piece, Transfer};
use super::mapping::{Mapping, Outdated};
use super::memory::Memory;
use super::plan::Reach;
use super::policy::{Fate, PageName, Policy, Rule};
use super::region::{self, Region};
use super::stats::{Counters, Stats};
use super::sweeper;
use super::word::{Judgement, State};

/// How a pool was built.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) page_size: usize,
    pub(crate) reach: Reach,
    pub(crate) direct: bool,
    /// How many I/Os run at once.
    pub(crate) depth: usize,
    /// How long a read waits for memory.
    pub(crate) wait_limit: Duration,
    /// In metrics.
    pub(crate) name: Option<Arc<str>>,
}

/// So much memory is there for what is read past. More than that goes to the same place again.
const NOBODYS_BYTES_MAX: usize = 256 << 10;
/// So many words are looked at in one turn of the evictor.
const LOOKED_AT_ONCE: usize = 1 << 16;

/// Pages of a mapping that are leaving, each with the stamp that its word is to remember.
struct Departure {
    mapping: Arc<Mapping>,
    pages: Vec<(u32, u32)>,
}

/// A pool.
pub(crate) struct Core {
    pub(crate) settings: Settings,
    pub(crate) memory: Arc<Memory>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) outdated: Arc<Outdated>,
    pub(crate) files: RwLock<Files>,
    pub(crate) directories: Directories,
    pub(crate) counters: Counters,
    engine: Engine,
    policy: Mutex<Policy>,
    /// Held from taking pages until they have left.
    evictor: Mutex<()>,
    /// What is read past goes here, from all runs at once: nobody looks at it.
    nobodys: Region,
    nobodys_bytes: usize,
}

impl Core {
    pub(crate) fn start(
        settings: Settings,
        frames: usize,
        engine: Engine,
        directories: Directories,
    ) -> Result<Arc<Self>, PageError> {
        let gap = (settings.reach.gap_pages as usize).saturating_mul(settings.page_size);
        let nobodys_bytes = gap.min(NOBODYS_BYTES_MAX);
        let nobodys =
            Region::reserve(nobodys_bytes).map_err(|_| PageError::Settings("no address space for the gap"))?;
        let core = Arc::new(Self {
            memory: Arc::new(Memory::new(frames)),
            admission: Admission::new(settings.depth, settings.reach.run_pages as usize),
            outdated: Arc::default(),
            files: RwLock::default(),
            directories,
            counters: Counters::default(),
            engine,
            policy: Mutex::new(Policy::new(frames)),
            evictor: Mutex::default(),
            nobodys,
            nobodys_bytes,
            settings,
        });
        sweeper::start(&core).map_err(|_| PageError::Settings("no thread for the sweeper could be started"))?;
        Ok(core)
    }

    /// One reader's transfers.
    pub(crate) fn submit(&self, transfers: Vec<Transfer>) {
        self.engine.submit(transfers);
    }

    /// Where so many bytes go that nobody wants.
    pub(crate) fn nobodys_memory(&self, length: usize) -> impl Iterator<Item = Piece> {
        // Without a gap nothing is read past.
        let most = self.nobodys_bytes.max(1);
        (0..length).step_by(most).map(move |from| Piece {
            start: self.nobodys.at(0).as_ptr(),
            length: most.min(length - from),
        })
    }

    /// These pages of a mapping are resident now, and were evicted last at those times.
    pub(crate) fn entered(&self, mapping: &Mapping, pages: impl Iterator<Item = (u32, Option<u32>)>) {
        let mut policy = self.policy.lock();
        for (page, remembered) in pages {
            // A page that left without the policy's doing stands in its queue still.
            if mapping.word(page).enqueue() {
                let name = PageName {
                    mapping: mapping.id,
                    page,
                };
                policy.entered(name, remembered);
            }
        }
        if policy.len() > 2 * self.memory.capacity {
            self.tidy(&mut policy);
        }
    }

    /// Takes names out of the policy's queues whose pages are not there.
    fn tidy(&self, policy: &mut Policy) {
        let files = self.files.read();
        policy.forget(|name| {
            let Some(mapping) = files.by_id(name.mapping) else {
                return true;
            };
            let word = mapping.word(name.page);
            let is_gone = word.state() != State::Resident;
            if is_gone {
                word.dequeue();
            }
            is_gone
        });
    }

    /// Evicts up to so many pages, those that the policy names first; how many it were.
    pub(crate) fn evict(&self, wanted: usize) -> usize {
        let _turn = self.evictor.lock();
        let taken = self.take(wanted);
        self.let_go(&taken)
    }

    /// Up to so many pages that are leaving now, with their stamps, by mappings.
    fn take(&self, wanted: usize) -> Vec<Departure> {
        let mut pages = Vec::with_capacity(wanted);
        let mut policy = self.policy.lock();
        let files = self.files.read();
        policy.make_room(wanted, |name, rule| {
            let Some(mapping) = files.by_id(name.mapping) else {
                return Fate::Gone;
            };
            let word = mapping.word(name.page);
            let (judgement, stamp) = match rule {
                Rule::Anyway { stamp } => (word.take(), stamp),
                Rule::Unused => (word.judge(), 0),
            };
            match judgement {
                Judgement::Used => return Fate::Used,
                Judgement::Pinned => return Fate::Pinned,
                Judgement::Taken => pages.push((name, stamp)),
                Judgement::Loading | Judgement::Gone => {}
            }
            word.dequeue();
            if judgement == Judgement::Taken {
                Fate::Taken
            } else {
                Fate::Gone
            }
        });
        pages.sort_unstable_by_key(|(name, _)| (name.mapping, name.page));
        pages
            .chunk_by(|(one, _), (next, _)| one.mapping == next.mapping)
            .map(|pages| {
                let mapping = files.by_id(pages[0].0.mapping).expect("a page of it was just taken");
                let pages = pages.iter().map(|(name, stamp)| (name.page, *stamp)).collect();
                Departure {
                    mapping: Arc::clone(mapping),
                    pages,
                }
            })
            .collect()
    }

    /// Drops these pages of a mapping, whoever used them; whether none of them is left for sure, neither pinned nor loading.
    pub(crate) fn drop_pages(&self, mapping: &Arc<Mapping>, pages: Range<u32>) -> bool {
        if pages.len() <= 2 * self.memory.capacity + LOOKED_AT_ONCE {
            return self.drop_each(mapping, pages);
        }
        // Of a file far larger than the pool only what is in memory is looked at. What is on its way in is not among that.
        let is_of_it = |name: &&PageName| name.mapping == mapping.id && pages.contains(&name.page);
        let mut there: Vec<u32> = self
            .policy
            .lock()
            .names()
            .filter(is_of_it)
            .map(|name| name.page)
            .collect();
        there.sort_unstable();
        self.drop_each(mapping, there.into_iter()) && mapping.taken() == 0
    }

    fn drop_each(&self, mapping: &Arc<Mapping>, pages: impl Iterator<Item = u32>) -> bool {
        let mut none_left = true;
        let mut left = pages.peekable();
        // In parts: who waits for the evictor waits for one of them. What has no frames has nothing to be dropped.
        while left.peek().is_some() && mapping.taken() > 0 {
            none_left &= self.drop_some(mapping, &mut left);
        }
        none_left
    }

    /// Drops the first of these pages, and takes them out of the line.
    fn drop_some(&self, mapping: &Arc<Mapping>, pages: &mut impl Iterator<Item = u32>) -> bool {
        let _turn = self.evictor.lock();
        let most = (sweeper::BATCH_BYTES / self.settings.page_size).max(1);
        let mut none_left = true;
        let mut taken = Vec::new();
        for page in pages.take(LOOKED_AT_ONCE) {
            let word = mapping.word(page);
            match word.take() {
                Judgement::Taken => taken.push((page, 0)),
                Judgement::Gone => {}
                // Not to be asked once more: by then it may have landed.
                Judgement::Loading | Judgement::Pinned | Judgement::Used => none_left = false,
            }
            if taken.len() == most {
                break;
            }
        }
        self.let_go(&[Departure {
            mapping: Arc::clone(mapping),
            pages: taken,
        }]);
        none_left
    }

    /// Drops what nobody holds, of all files.
    pub(crate) fn clear(&self) {
        let mappings: Vec<Arc<Mapping>> = self.files.read().all().cloned().collect();
        for mapping in mappings {
            if mapping.taken() > 0 {
                self.drop_pages(&mapping, mapping.pages());
            }
            self.forget_if_idle(mapping);
        }
    }

    /// The taken pages, with their stamps, leave.
    fn let_go(&self, taken: &[Departure]) -> usize {
        let mut stretches = taken
            .iter()
            .flat_map(|Departure { mapping, pages }| pages.iter().map(|(page, _)| mapping.stretch(*page)))
            .collect();
        // SAFETY: the mappings live; a page that is leaving is nobody's but the evictor's.
        unsafe { region::discard(&mut stretches) };
        let mut count = 0;
        for Departure { mapping, pages } in taken {
            for (page, stamp) in pages {
                mapping.word(*page).left(*stamp);
            }
            mapping.give_back(pages.len());
            count += pages.len();
            if mapping.taken() == 0 {
                // Two know of it that do not count: the table and this list.
                let _forgotten = self.files.write().forget_if_idle(mapping.id, 2);
            }
        }
        self.counters.evicted(count);
        count
    }

    /// Waits until pages that were leaving have left; that takes as long as the kernel needs for one batch.
    pub(crate) fn wait_for_evictor(&self) {
        drop(self.evictor.lock());
    }

    /// Opens something; where there are no descriptors left, once more after `close_idle`.
    pub(crate) fn with_descriptors<T>(&self, open: impl Fn() -> io::Result<T>) -> io::Result<T> {
        open().or_else(|cause| match cause.raw_os_error() {
            // Files that nobody reads are open for what is in memory of them: better they than this one.
            Some(libc::EMFILE | libc::ENFILE) => {
                self.close_idle();
                open()
            }
            _ => Err(cause),
        })
    }

    /// Closes files that nobody has open here, at the price of what is in memory of them.
    pub(crate) fn close_idle(&self) {
        let idle: Vec<Arc<Mapping>> = {
            let files = self.files.read();
            files
                .all()
                .filter(|mapping| Arc::strong_count(mapping) == 1)
                .cloned()
                .collect()
        };
        for mapping in idle {
            self.drop_pages(&mapping, mapping.pages());
            self.forget_if_idle(mapping);
        }
    }

    /// How many pages views and reads hold.
    pub(crate) fn pinned_pages(&self) -> usize {
        let policy = self.policy.lock();
        let files = self.files.read();
        let is_pinned = |name: &&PageName| {
            files
                .by_id(name.mapping)
                .is_some_and(|mapping| mapping.word(name.page).is_pinned())
        };
        policy.names().filter(is_pinned).count()
    }

    /// The counters.
    pub(crate) fn stats(&self) -> Stats {
        let counted = self.counters.counted();
        let readings = self.engine.readings();
        let bytes = |pages: usize| pages as u64 * self.settings.page_size as u64;
        Stats {
            hits: counted.hits,
            misses: counted.misses,
            joined: counted.joined,
            runs: counted.runs,
            bytes_asked: counted.bytes_asked,
            bytes_read: counted.bytes_read,
            bytes_gap: counted.pages_gap * self.settings.page_size as u64,
            evictions: counted.evictions,
            waits: counted.waits,
            failures: counted.failures,
            bytes_written: counted.bytes_written,
            published: counted.published,
            syncs_shared: counted.syncs_shared,
            resident: bytes(self.memory.taken()),
            pinned: bytes(self.pinned_pages()),
            capacity: bytes(self.memory.capacity),
            in_flight: readings.in_flight,
            queued: readings.queued,
            io_latency: readings.latency,
            io: match readings.backend {
                Backend::Uring => "io_uring",
                Backend::Threads => "threads",
            },
            why_not_io_uring: readings.why_not_uring,
        }
    }

    /// Somebody has done with a mapping: if nobody else has it and none of its pages is there, its file is closed.
    pub(crate) fn forget_if_idle(&self, mapping: Arc<Mapping>) {
        if mapping.taken() == 0 {
            let id = mapping.id;
            drop(mapping);
            let _forgotten = self.files.write().forget_if_idle(id, 1);
        }
    }
}

#[cfg(all(test, not(forebay_loom)))]
impl Core {
    /// A pool of so many pages of 4 KiB, for tests of its parts.
    pub(crate) fn small(frames: usize) -> Arc<Self> {
        let settings = Settings {
            page_size: 4096,
            reach: Reach {
                run_pages: 8,
                gap_pages: 0,
                keeps_gaps: true,
            },
            direct: true,
            depth: 32,
            wait_limit: Duration::from_secs(10),
            name: None,
        };
        let threads = super::io::Settings {
            kind: super::io::Kind::Threads,
            ..super::io::Settings::default()
        };
        let engine = Engine::start(threads).expect("threads");
        Self::start(settings, frames, engine, Directories::new(None)).expect("a pool")
    }

    /// A mapping, that the pool does not know, of a file of so many bytes that nobody can open any more.
    pub(crate) fn mapping_of_zeros(&self, length: u64) -> Mapping {
        let folder = tempfile::tempdir().expect("a folder");
        let path: Arc<std::path::Path> = folder.path().join("data").into();
        let file = std::fs::File::create(&path).expect("created");
        file.set_len(length).expect("holes cost nothing");
        let file = super::io::OpenFile::open(Arc::clone(&path), false).expect("opened");
        let id = self.files.write().new_id();
        Mapping::new(self, id, path, Arc::new(file), None).expect("address space")
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // The sweeper finds nobody to sweep for, and ends.
        self.memory.wake_sweeper();
        self.outdated.close();
        debug_assert!(thread::panicking() || self.memory.taken() <= self.memory.capacity);
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use super::*;
    use crate::file::FileBuilder;

    #[tokio::test]
    async fn files_that_change_again_and_again_leave_no_names_and_no_mappings_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("data");
        std::fs::write(&path, [7; 12 * 4096]).expect("written");
        let core = Core::small(16);
        let file = FileBuilder::new(&core, &path).open().await.expect("opened");
        // A view of the first content does not keep all that came after it.
        let first = file.read(..1).await.expect("read");
        for round in 0..300 {
            let view = file.read(..).await.expect("read");
            // With what is held the mapping is replaced, without it the pages are dropped.
            let held = (round % 3 > 0).then(|| view.slice(..1));
            drop(view);
            file.invalidate(..).await.expect("it is there");
            drop(held);
            let names = core.policy.lock().names().count();
            assert!(names <= 2 * core.memory.capacity + 12, "{names} names in round {round}");
        }
        let began = std::time::Instant::now();
        while core.files.read().all().filter(|mapping| mapping.taken() > 0).count() > 2 {
            assert!(began.elapsed().as_secs() < 60, "pages of retired mappings stay");
            tokio::task::yield_now().await;
        }
        let known = core.files.read().all().count();
        assert!(known <= 20, "{known} mappings pile up");
        drop((file, first));
        core.clear();
        assert_eq!(core.memory.taken(), 0);
    }
}
