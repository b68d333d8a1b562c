//! Random sequences of everything that a pool can be asked for, on small pools, against a plain copy of the file in memory.

use std::collections::VecDeque;
use std::fs;
use std::future::Future;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use forebay_pages::faults::Fault;
use forebay_pages::{Io, PageError, PagePool, PagedFile, View};
use proptest::prelude::*;

use crate::pattern;
use crate::trouble::{Trouble, WAYS, nothing_leaked, polled};

const PAGE: u64 = 4096;
/// Of the file, in bytes: its last page is not full.
const LENGTH: u64 = 40 * PAGE + 321;

#[derive(Clone, Debug)]
enum Step {
    Read(Range<u64>),
    ReadMany(Vec<Range<u64>>),
    ReadResident(Range<u64>),
    Prefetch(Range<u64>),
    /// A read that is polled so many times and then dropped, if it has not ended.
    Leave(Range<u64>, usize),
    /// What is read is kept.
    Keep(Range<u64>),
    /// Of the view that was kept first, only this part, in thousandths, is kept.
    Slice(u64, u64),
    /// The view that was kept first is dropped.
    Drop,
    Clear,
    /// The file gets other bytes there, and that is said.
    Change(Range<u64>),
    /// As above, and it is said through another handle, of all of the file.
    ChangeAll(Range<u64>),
    Open,
    /// The device cannot read these pages any more.
    Bad(Vec<u64>),
    Short(usize),
    Slow,
    Well,
}

fn range(pages_max: u64) -> impl Strategy<Value = Range<u64>> {
    (0..LENGTH, 0..pages_max * PAGE).prop_map(|(from, length)| from..LENGTH.min(from + length))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => range(8).prop_map(Step::Read),
        3 => proptest::collection::vec(range(3), 0..5).prop_map(Step::ReadMany),
        2 => range(4).prop_map(Step::ReadResident),
        2 => range(6).prop_map(Step::Prefetch),
        3 => (range(8), 0..4_usize).prop_map(|(range, polls)| Step::Leave(range, polls)),
        3 => range(4).prop_map(Step::Keep),
        1 => (0..1000_u64, 0..1000_u64).prop_map(|(from, length)| Step::Slice(from, length)),
        3 => Just(Step::Drop),
        1 => Just(Step::Clear),
        2 => range(5).prop_map(Step::Change),
        1 => range(5).prop_map(Step::ChangeAll),
        1 => Just(Step::Open),
        1 => proptest::collection::vec(0..41_u64, 1..4).prop_map(Step::Bad),
        1 => (1..20_000_usize).prop_map(Step::Short),
        1 => Just(Step::Slow),
        2 => Just(Step::Well),
    ]
}

/// A pool, a file, and what they should show.
struct Model {
    pool: PagePool,
    handles: [PagedFile; 2],
    bytes: Vec<u8>,
    kept: VecDeque<(View, Vec<u8>)>,
    bad: Vec<u64>,
    /// Those that were, when loads were begun that are in the air still, maybe: who joins one is told so.
    were_bad: Vec<u64>,
    /// How often the file was changed: what it gets next.
    seed: u64,
    /// Bytes that reads asked for and were not refused at once.
    asked: u64,
    /// Every page asked for was found, loaded or waited for once.
    is_exact: bool,
    turn: usize,
}

fn pages(range: &Range<u64>) -> Range<u64> {
    if range.is_empty() {
        0..0
    } else {
        range.start / PAGE..range.end.div_ceil(PAGE)
    }
}

impl Model {
    fn file(&mut self) -> PagedFile {
        self.turn += 1;
        self.handles[self.turn % 2].clone()
    }

    fn is(&self, view: &[u8], range: &Range<u64>) {
        assert!(
            *view == self.bytes[range.start as usize..range.end as usize],
            "wrong bytes in {range:?}"
        );
    }

    fn count(&self, ranges: &[Range<u64>]) -> usize {
        let all: std::collections::BTreeSet<u64> = ranges.iter().flat_map(pages).collect();
        all.len()
    }

    fn capacity(&self) -> usize {
        (self.pool.stats().capacity_bytes / PAGE) as usize
    }

    /// Waits for a read, unless it may be one that waits for views that are kept here.
    async fn read<T>(&mut self, ranges: &[Range<u64>], read: impl Future<Output = Result<T, PageError>>) -> Option<T> {
        let held = (self.pool.stats().pinned_bytes / PAGE) as usize;
        let count = self.count(ranges);
        if count <= self.capacity() {
            self.asked += ranges.iter().map(|range| range.end - range.start).sum::<u64>();
        }
        let outcome = if held + count > self.capacity() {
            self.is_exact = false;
            tokio::time::timeout(Duration::from_millis(3), read).await.ok()?
        } else {
            read.await
        };
        match outcome {
            Ok(read) => return Some(read),
            Err(PageError::TooLarge {
                wanted_bytes,
                capacity_bytes,
            }) => {
                assert_eq!(
                    (wanted_bytes, capacity_bytes),
                    (count as u64 * PAGE, self.pool.stats().capacity_bytes)
                );
                assert!(wanted_bytes > capacity_bytes);
            }
            Err(PageError::Io {
                offset, length, cause, ..
            }) => {
                assert_eq!((cause.raw_os_error(), length <= PAGE), (Some(libc::EIO), true));
                let page = offset / PAGE;
                let is_bad = self.bad.contains(&page) || self.were_bad.contains(&page);
                assert!(is_bad, "page {page} is good");
                assert!(
                    ranges.iter().any(|range| pages(range).contains(&page)),
                    "page {page} was not asked for"
                );
            }
            Err(other) => panic!("{other}"),
        }
        None
    }

    async fn step(&mut self, step: Step, trouble: &Trouble) {
        let file = self.file();
        match step {
            Step::Read(range) => {
                let read = self.read(std::slice::from_ref(&range), file.read(range.clone())).await;
                read.iter().for_each(|view| self.is(view, &range));
            }
            Step::Keep(range) => {
                let read = self.read(std::slice::from_ref(&range), file.read(range.clone())).await;
                self.kept
                    .extend(read.map(|view| (view, self.bytes[range.start as usize..range.end as usize].to_vec())));
            }
            Step::ReadMany(ranges) => {
                let read = self.read(&ranges, file.read_many(ranges.clone())).await;
                let views = read.into_iter().flatten().zip(&ranges);
                views.for_each(|(view, range)| self.is(&view, range));
            }
            Step::ReadResident(range) => {
                let read = self
                    .read(std::slice::from_ref(&range), async {
                        file.read_resident(range.clone())
                    })
                    .await;
                match read.flatten() {
                    Some(view) => self.is(&view, &range),
                    // What is not there is not counted.
                    None => self.is_exact = false,
                }
            }
            Step::Prefetch(range) => {
                self.is_exact = false;
                let asked = self.asked;
                self.read(std::slice::from_ref(&range), file.prefetch(range.clone()))
                    .await;
                self.asked = asked;
            }
            Step::Leave(range, polls) => {
                self.is_exact = false;
                let fits = polls > 0 && self.count(std::slice::from_ref(&range)) <= self.capacity();
                self.asked += if fits { range.end - range.start } else { 0 };
                if let Some(Ok(view)) = polled(file.read(range.clone()), polls).await {
                    self.is(&view, &range);
                }
            }
            Step::Slice(from, length) => {
                if let Some((view, bytes)) = self.kept.pop_front() {
                    let from = bytes.len() * from as usize / 1000;
                    let to = bytes.len().min(from + bytes.len() * length as usize / 1000);
                    self.kept.push_back((view.slice(from..to), bytes[from..to].to_vec()));
                }
            }
            Step::Drop => drop(self.kept.pop_front()),
            Step::Clear => self.pool.clear(),
            Step::Change(range) | Step::ChangeAll(range) if range.is_empty() => {}
            Step::Change(ref range) | Step::ChangeAll(ref range) => {
                self.seed += 1;
                let bytes = pattern::bytes(self.seed, range.start, range.end);
                let path = file.path();
                let written = fs::OpenOptions::new().write(true).open(path).expect("opened");
                written.write_all_at(&bytes, range.start).expect("written");
                self.bytes[range.start as usize..range.end as usize].copy_from_slice(&bytes);
                match step {
                    Step::Change(range) => file.invalidate(range).await.expect("it is there"),
                    _ => self.file().invalidate(..).await.expect("it is there"),
                }
            }
            Step::Open => {
                let path = file.path().to_path_buf();
                self.handles[self.turn % 2] = self.pool.open(&path).await.expect("opened");
            }
            Step::Bad(pages) => {
                self.is_exact = false;
                trouble.bad(pages.iter().map(|page| page * PAGE).collect());
                self.were_bad.append(&mut self.bad);
                self.bad = pages;
            }
            Step::Short(bytes) => {
                trouble.rule(move |_, _| Some(Fault::Short(bytes)));
                self.were_bad.append(&mut self.bad);
            }
            Step::Slow => {
                trouble.rule(|offset, _| Some(Fault::Delay(Duration::from_micros(offset / PAGE % 4 * 300))));
                self.were_bad.append(&mut self.bad);
            }
            Step::Well => {
                trouble.over();
                self.were_bad.append(&mut self.bad);
            }
        }
        for (view, bytes) in &self.kept {
            assert!(**view == **bytes, "{view:?} was kept and has changed");
        }
        self.stats();
    }

    fn stats(&self) {
        let stats = self.pool.stats();
        assert!(
            stats.resident_bytes <= stats.capacity_bytes && stats.pinned_bytes <= stats.resident_bytes,
            "{stats:?}"
        );
        assert_eq!(stats.asked_bytes, self.asked);
        assert!(stats.gap_bytes <= stats.read_bytes);
    }
}

/// Runs the steps, and looks for what they left behind.
async fn run(io: Io, frames: u64, reach: (u64, u64), steps: Vec<Step>) {
    let (_folder, path) = pattern::file(1, LENGTH);
    let (trouble, builder) = Trouble::pool(io, frames);
    let pool = builder
        .max_run_bytes(reach.0 * PAGE)
        .max_gap_bytes(reach.1 * PAGE)
        .build()
        .expect("a pool");
    let handles = [
        pool.open(&path).await.expect("opened"),
        pool.open(&path).await.expect("opened"),
    ];
    let mut model = Model {
        pool: pool.clone(),
        handles,
        bytes: pattern::bytes(1, 0, LENGTH),
        kept: VecDeque::new(),
        bad: Vec::new(),
        were_bad: Vec::new(),
        seed: 1,
        asked: 0,
        is_exact: true,
        turn: 0,
    };
    let mut pages_asked = 0;
    for step in steps {
        let before = pool.stats();
        let ranges = match &step {
            Step::Read(range) | Step::Keep(range) | Step::ReadResident(range) => vec![range.clone()],
            Step::ReadMany(ranges) => ranges.clone(),
            _ => Vec::new(),
        };
        let count = model.count(&ranges);
        let fits = count <= model.capacity();
        // While it is exact, a read finds, loads, or waits for every page of it once.
        let is_quiet = pool.stats().io_in_flight + pool.stats().io_queued == 0;
        model.is_exact = is_quiet && model.bad.is_empty();
        if is_quiet {
            model.were_bad.clear();
        }
        model.step(step, &trouble).await;
        let after = pool.stats();
        if fits && model.is_exact && after.waits == before.waits {
            pages_asked += count as u64;
            let seen = |stats: &forebay_pages::Stats| stats.hits + stats.misses + stats.joined;
            assert_eq!(seen(&after) - seen(&before), count as u64, "{before:?} {after:?}");
        }
    }
    assert!(pool.stats().hits + pool.stats().misses + pool.stats().joined >= pages_asked);
    trouble.over();
    drop(model);
    nothing_leaked(&pool).await;
    let stats = pool.stats();
    assert!(stats.read_bytes >= stats.gap_bytes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]
    #[test]
    fn whatever_is_asked_for_is_what_the_file_has(
        way in 0..2_usize,
        frames in 4..64_u64,
        run_length in 1..16_u64,
        gap in 0..6_u64,
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().expect("a runtime");
        runtime.block_on(run(WAYS[way], frames, (run_length, gap), steps));
    }
}
