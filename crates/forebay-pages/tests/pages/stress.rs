//! Many tasks on several threads, a pool far smaller than its files, and files that change meanwhile: no reader sees wrong bytes,
//! none sees what was overwritten before an invalidation that ended before he began, and memory stays within its limit.
//!
//! The random choices follow a printed seed; `FOREBAY_SEED=… cargo test -p forebay-pages --test pages stress` repeats
//! them (the threads' interleaving it cannot repeat). `FOREBAY_ROUNDS` asks for more rounds.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use forebay_pages::faults::Fault;
use forebay_pages::{Io, PageError, PagePool, PagedFile, View};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::pattern;
use crate::trouble::{PATIENCE, Trouble, WAYS, in_a_process_of_its_own, nothing_leaked, polled};

const PAGE: u64 = 4096;
/// Of each file.
const PAGES: u64 = 96;
const FILES: u64 = 3;
const FRAMES: u64 = 40;
const READERS: u64 = 12;
const ROUNDS_OF_A_READER: u32 = 60;
/// The last page of a file is so long.
const TAIL: u64 = 1000;
const LENGTH: u64 = (PAGES - 1) * PAGE + TAIL;

/// Eight bytes of a file: what they are tells file, place and version, each for itself, so that a reader who meets a writer at
/// work can check them as well.
fn word(file: u64, index: u64, version: u64) -> [u8; 8] {
    let place = u64::from_le_bytes(pattern::word(file, index)) << 16;
    (place | version).to_le_bytes()
}

/// One file, and which version of each page is there.
struct Versioned {
    number: u64,
    path: PathBuf,
    /// What is being written or was.
    newest: Vec<AtomicU64>,
    /// Before what was written and invalidated nobody reads any more.
    oldest: Vec<AtomicU64>,
    writer: tokio::sync::Mutex<()>,
}

impl Versioned {
    fn new(number: u64, folder: &std::path::Path) -> Self {
        let versioned = Self {
            number,
            path: folder.join(number.to_string()),
            newest: (0..PAGES).map(|_| AtomicU64::new(0)).collect(),
            oldest: (0..PAGES).map(|_| AtomicU64::new(0)).collect(),
            writer: tokio::sync::Mutex::default(),
        };
        let bytes: Vec<u8> = (0..PAGES).flat_map(|page| versioned.page(page, 0)).collect();
        fs::write(&versioned.path, bytes).expect("written");
        versioned
    }

    fn page(&self, page: u64, version: u64) -> Vec<u8> {
        let end = LENGTH.min((page + 1) * PAGE);
        (page * PAGE / 8..end / 8)
            .flat_map(|index| word(self.number, index, version))
            .collect()
    }

    fn oldest(&self) -> Vec<u64> {
        self.oldest
            .iter()
            .map(|version| version.load(Ordering::SeqCst))
            .collect()
    }

    /// Panics unless every byte is the file's, of a version that whoever began when `oldest` held may see.
    fn check(&self, view: &View, oldest: &[u64], seed: u64) {
        assert!(view.offset().is_multiple_of(8) && view.len().is_multiple_of(8));
        for (bytes, index) in view.chunks_exact(8).zip(view.offset() / 8..) {
            let page = (index * 8 / PAGE) as usize;
            let version = u64::from(u16::from_le_bytes([bytes[0], bytes[1]]));
            let is_right = *bytes == word(self.number, index, version);
            let newest = self.newest[page].load(Ordering::SeqCst);
            assert!(
                is_right && version >= oldest[page] && version <= newest,
                "file {}, page {page}, {view:?}: version {version} ({}), though {} was invalidated; now {newest}; FOREBAY_SEED={seed}",
                self.number,
                if is_right { "right bytes" } else { "wrong bytes" },
                oldest[page],
            );
        }
    }

    /// Gives some pages a new version, and says so.
    async fn change(&self, handle: &PagedFile, from: u64, to: u64) {
        let _turn = self.writer.lock().await;
        let file = fs::OpenOptions::new().write(true).open(&self.path).expect("opened");
        let mut versions = Vec::new();
        for page in from..to {
            let version = self.newest[page as usize].fetch_add(1, Ordering::SeqCst) + 1;
            file.write_all_at(&self.page(page, version), page * PAGE)
                .expect("written");
            versions.push(version);
        }
        handle.invalidate(from * PAGE..to * PAGE).await.expect("it is there");
        for (page, version) in (from..to).zip(versions) {
            self.oldest[page as usize].store(version, Ordering::SeqCst);
        }
    }
}

/// What all tasks of a round share.
struct Round {
    seed: u64,
    pool: PagePool,
    files: Vec<Versioned>,
    errors: AtomicUsize,
}

impl Round {
    async fn reader(&self, number: u64, may_fail: bool) {
        let mut random = StdRng::seed_from_u64(self.seed ^ (number << 32));
        let mut kept: VecDeque<(View, usize, Vec<u64>)> = VecDeque::new();
        let mut handles: Vec<PagedFile> = Vec::new();
        for file in &self.files {
            handles.push(self.pool.open(&file.path).await.expect("opened"));
        }
        for _ in 0..ROUNDS_OF_A_READER {
            let which = random.random_range(0..self.files.len());
            let (file, handle) = (&self.files[which], handles[which].clone());
            let from = random.random_range(0..LENGTH / 8) * 8;
            let range = from..LENGTH.min(from + random.random_range(0..12 * PAGE / 8) * 8);
            let oldest = file.oldest();
            match random.random_range(0..100) {
                0..45 => match handle.read(range).await {
                    Ok(view) => {
                        file.check(&view, &oldest, self.seed);
                        if random.random_ratio(1, 4) {
                            kept.push_back((view, which, oldest));
                        }
                    }
                    Err(error) => self.failed(&error, may_fail),
                },
                45..60 => {
                    let near = LENGTH.min(range.end + 3 * PAGE)..LENGTH.min(range.end + 4 * PAGE);
                    match handle.read_many([range, near]).await {
                        Ok(views) => views.iter().for_each(|view| file.check(view, &oldest, self.seed)),
                        Err(error) => self.failed(&error, may_fail),
                    }
                }
                60..75 => {
                    let polls = random.random_range(0..4);
                    match polled(handle.read(range), polls).await {
                        Some(Ok(view)) => file.check(&view, &oldest, self.seed),
                        Some(Err(error)) => self.failed(&error, may_fail),
                        None => {}
                    }
                }
                75..80 => drop(polled(handle.prefetch(range), 2).await),
                80..85 => {
                    let view = handle.read_resident(range).expect("it could fit");
                    view.iter().for_each(|view| file.check(view, &oldest, self.seed));
                }
                85..93 => {
                    let to = (from / PAGE + random.random_range(1..4)).min(PAGES);
                    file.change(&handle, from / PAGE, to).await;
                }
                93..95 => self.pool.clear(),
                _ => handles[which] = self.pool.open(&file.path).await.expect("opened"),
            }
            // What is kept does not change, and is not much: the readers' views must leave room for a read.
            if kept.len() > 1 || random.random_ratio(1, 3) {
                kept.pop_front();
            }
            for (view, which, oldest) in &mut kept {
                self.files[*which].check(view, oldest, self.seed);
                let half = view.len() / 16 * 8;
                *view = view.slice(half..view.len().min(half + 800));
            }
            let stats = self.pool.stats();
            assert!(
                stats.resident_bytes <= stats.capacity_bytes,
                "{stats:?}; FOREBAY_SEED={}",
                self.seed
            );
        }
    }

    fn failed(&self, error: &PageError, may_fail: bool) {
        assert!(
            may_fail && matches!(error, PageError::Io { .. }),
            "{error}; FOREBAY_SEED={}",
            self.seed
        );
        self.errors.fetch_add(1, Ordering::Relaxed);
    }
}

async fn round(seed: u64, io: Io, may_fail: bool) {
    let mut random = StdRng::seed_from_u64(seed);
    let folder = pattern::folder();
    let (trouble, builder) = Trouble::pool(io, FRAMES);
    let pool = builder
        .max_run_bytes(random.random_range(1..16) * PAGE)
        .max_gap_bytes(random.random_range(0..5) * PAGE)
        .depth(random.random_range(1..8))
        .memory_timeout(PATIENCE)
        .build()
        .expect("a pool");
    let mut ios = 0_u64;
    let step = random.random_range(3..9);
    trouble.rule(move |offset, _| {
        ios += 1;
        match ios % step {
            0 => Some(Fault::Delay(Duration::from_micros(offset % 7 * 100))),
            1 => Some(Fault::Short(5000)),
            2 if may_fail => Some(Fault::Error(libc::EIO)),
            _ => None,
        }
    });
    let round = Arc::new(Round {
        seed,
        pool: pool.clone(),
        files: (1..=FILES)
            .map(|number| Versioned::new(number, folder.path()))
            .collect(),
        errors: AtomicUsize::new(0),
    });
    let readers: Vec<_> = (1..=READERS)
        .map(|number| {
            let round = Arc::clone(&round);
            tokio::spawn(async move { round.reader(number, may_fail).await })
        })
        .collect();
    for reader in readers {
        reader
            .await
            .unwrap_or_else(|error| panic!("{error}; FOREBAY_SEED={seed}"));
    }
    nothing_leaked(&pool).await;
    let stats = pool.stats();
    assert!(stats.evictions > 0 && stats.joined > 0 && stats.hits > 0, "{stats:?}");
}

/// Runs rounds on several threads; one that takes too long hangs.
#[test]
fn nobody_sees_wrong_bytes_or_what_was_overwritten_before() {
    let seed: u64 = match std::env::var("FOREBAY_SEED") {
        Ok(seed) => seed.parse().expect("FOREBAY_SEED is a number"),
        Err(_) => rand::random(),
    };
    let rounds: u64 =
        std::env::var("FOREBAY_ROUNDS").map_or(12, |rounds| rounds.parse().expect("FOREBAY_ROUNDS is a number"));
    println!("FOREBAY_SEED={seed}");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(3)
        .enable_time()
        .build()
        .expect("a runtime");
    for number in 0..rounds {
        let io = WAYS[number as usize % 2];
        let running = runtime.spawn(round(seed.wrapping_add(number), io, number % 4 > 1));
        runtime.block_on(async {
            let ended = tokio::time::timeout(2 * PATIENCE, running).await;
            ended
                .unwrap_or_else(|_| panic!("a hung read; FOREBAY_SEED={seed}, round {number}"))
                .expect("all is as it should be");
        });
    }
}

/// What the process has of memory, in bytes.
pub(crate) fn resident() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = statm.split(' ').nth(1).expect("the second field");
    pages.parse::<u64>().expect("a number") * 4096
}

#[test]
fn the_process_takes_no_more_memory_than_the_pool_may() {
    // Alone, since all tests of a process have one memory.
    in_a_process_of_its_own("stress::the_process_takes_no_more_memory_than_the_pool_may", || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_time()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            const LARGE: u64 = 64 << 10;
            const CAP: u64 = 16 << 20;
            let (_folder, path) = pattern::file(1, 160 << 20);
            for io in WAYS {
                let pool = PagePool::builder()
                    .io(io)
                    .memory(CAP)
                    .page_size(LARGE as usize)
                    .build()
                    .expect("a pool");
                let file = pool.open(&path).await.expect("opened");
                let before = resident();
                let is_over = Arc::new(AtomicBool::new(false));
                let watch = tokio::task::spawn_blocking({
                    let (pool, is_over) = (pool.clone(), Arc::clone(&is_over));
                    move || {
                        let mut most = 0;
                        while !is_over.load(Ordering::Relaxed) {
                            most = most.max(resident());
                            let stats = pool.stats();
                            assert!(stats.resident_bytes <= stats.capacity_bytes, "{stats:?}");
                        }
                        most
                    }
                });
                let readers: Vec<_> = (0..8_u64)
                    .map(|number| {
                        let file = file.clone();
                        tokio::spawn(async move {
                            let mut random = StdRng::seed_from_u64(number);
                            for _ in 0..150 {
                                let from = random.random_range(0..file.len() - (4 << 20));
                                let view = file
                                    .read(from..from + random.random_range(0..4_u64 << 20))
                                    .await
                                    .expect("read");
                                // Some of it: all would take minutes here.
                                for part in [
                                    view.slice(..view.len().min(64)),
                                    view.slice(view.len().saturating_sub(64)..),
                                ] {
                                    pattern::check(&part, 1);
                                }
                            }
                        })
                    })
                    .collect();
                for reader in readers {
                    reader.await.expect("right bytes");
                }
                is_over.store(true, Ordering::Relaxed);
                let most = watch.await.expect("within the limit").saturating_sub(before);
                assert!(pool.stats().evictions > 1000, "it was tried");
                // Beside the pages: words, queues, what readers have for themselves.
                assert!(most <= CAP + (8 << 20), "{} MiB more than before", most >> 20);
                nothing_leaked(&pool).await;
                assert!(
                    resident() < before + (8 << 20),
                    "what was dropped is the system's again"
                );
            }
        });
    });
}
