//! The engine as its user sees it, with both backends, on a disk and on a file system in memory.

mod ring;
mod stress;

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, LazyLock, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tempfile::TempDir;

use super::*;

/// Longer than anything here takes, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// The byte of the test files at this offset. Every 512 bytes differ from all others.
fn pattern(offset: u64) -> u8 {
    let mixed = (offset / 512 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (offset % 512 / 8);
    mixed.to_le_bytes()[(offset % 8) as usize]
}

/// Memory as the pool would give it: aligned to pages.
struct Memory {
    start: *mut u8,
    length: usize,
}

// SAFETY: it owns what it points to.
unsafe impl Send for Memory {}

impl Memory {
    fn new(length: usize) -> Self {
        // SAFETY: the layout is not empty.
        let start = unsafe { alloc_zeroed(Self::layout(length)) };
        assert!(!start.is_null());
        Self { start, length }
    }

    fn of(bytes: impl ExactSizeIterator<Item = u8>) -> Self {
        let memory = Self::new(bytes.len());
        // SAFETY: nobody else has the memory, which is `length` bytes long.
        let target = unsafe { std::slice::from_raw_parts_mut(memory.start, memory.length) };
        target.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        memory
    }

    fn layout(length: usize) -> Layout {
        Layout::from_size_align(length.max(1), 4096).unwrap()
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: whoever has the memory again knows that its transfer has landed.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }

    /// All of it, in pieces of this length.
    fn pieces(&self, length: usize) -> Vec<Piece> {
        let starts = (0..self.length).step_by(length);
        starts
            .map(|from| Piece {
                start: self.start.wrapping_add(from),
                length: length.min(self.length - from),
            })
            .collect()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated by `new` with this layout.
        unsafe { dealloc(self.start, Self::layout(self.length)) };
    }
}

#[derive(Debug)]
enum Outcome {
    Ended(io::Result<usize>),
    CalledOff,
}

impl Outcome {
    fn bytes(self) -> usize {
        match self {
            Self::Ended(Ok(bytes)) => bytes,
            other => panic!("{other:?}"),
        }
    }

    fn error(self) -> io::Error {
        match self {
            Self::Ended(Err(error)) => error,
            other => panic!("{other:?}"),
        }
    }
}

struct Told {
    number: usize,
    memory: Memory,
    outcome: Outcome,
}

/// Counts what runs, sends what became of it.
struct TestLanding {
    number: usize,
    memory: Memory,
    told: Sender<Told>,
    is_wanted: bool,
    running: Option<Arc<Running>>,
}

#[derive(Default)]
struct Running {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Landing for TestLanding {
    fn wanted(&self) -> bool {
        if let Some(running) = &self.running {
            let now = running.now.fetch_add(1, Ordering::SeqCst) + 1;
            running.most.fetch_max(now, Ordering::SeqCst);
        }
        self.is_wanted
    }

    fn lands(self: Box<Self>, outcome: io::Result<usize>) {
        if let Some(running) = &self.running {
            running.now.fetch_sub(1, Ordering::SeqCst);
        }
        let Self {
            number, memory, told, ..
        } = *self;
        let _ = told.send(Told {
            number,
            memory,
            outcome: Outcome::Ended(outcome),
        });
    }

    fn called_off(self: Box<Self>) {
        let Self {
            number, memory, told, ..
        } = *self;
        let _ = told.send(Told {
            number,
            memory,
            outcome: Outcome::CalledOff,
        });
    }
}

/// One place for test files and one way to open them.
struct Place {
    directory: TempDir,
    direct: bool,
}

impl Place {
    fn disk() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            direct: true,
        }
    }

    fn all() -> Vec<Self> {
        let mut places = vec![
            Self::disk(),
            Self {
                direct: false,
                ..Self::disk()
            },
        ];
        if Path::new("/dev/shm").is_dir() {
            places.push(Self {
                directory: tempfile::tempdir_in("/dev/shm").unwrap(),
                direct: true,
            });
        }
        places
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("file")
    }

    /// A file of so many bytes of the pattern.
    fn file(&self, length: u64) -> Arc<OpenFile> {
        fill(&self.path(), 0..length);
        self.open()
    }

    fn open(&self) -> Arc<OpenFile> {
        Arc::new(OpenFile::open(self.path(), self.direct).unwrap())
    }
}

/// Appends these bytes of the pattern.
fn fill(path: &Path, range: Range<u64>) {
    File::options()
        .create(true)
        .append(true)
        .open(path)
        .unwrap()
        .write_all(&pattern_of(range))
        .unwrap();
}

fn kinds() -> Vec<Kind> {
    match Engine::start(Settings {
        kind: Kind::Uring,
        ..Settings::default()
    }) {
        Ok(_) => vec![Kind::Threads, Kind::Uring],
        Err(cause) => {
            println!("no io_uring here: {cause}");
            vec![Kind::Threads]
        }
    }
}

fn start(kind: Kind) -> Engine {
    Engine::start(Settings {
        kind,
        ..Settings::default()
    })
    .unwrap()
}

fn start_with(kind: Kind, faults: impl Faults + 'static) -> Engine {
    Engine::start(Settings {
        kind,
        faults: Some(Arc::new(faults)),
        ..Settings::default()
    })
    .unwrap()
}

/// A transfer of all the memory, in pieces of this length.
fn transfer(
    file: &Arc<OpenFile>,
    operation: Operation,
    offset: u64,
    memory: Memory,
    piece: usize,
    told: &Sender<Told>,
) -> Transfer {
    let pieces = memory.pieces(piece);
    let landing = TestLanding {
        number: 0,
        memory,
        told: told.clone(),
        is_wanted: true,
        running: None,
    };
    Transfer {
        file: Arc::clone(file),
        operation,
        offset,
        pieces,
        landing: Box::new(landing),
    }
}

/// One transfer to its end.
fn run(engine: &Engine, file: &Arc<OpenFile>, operation: Operation, offset: u64, memory: Memory, piece: usize) -> Told {
    let (told, outcome) = channel();
    engine.submit(vec![transfer(file, operation, offset, memory, piece, &told)]);
    outcome.recv_timeout(PATIENCE).expect("every transfer ends")
}

fn read(engine: &Engine, file: &Arc<OpenFile>, range: Range<u64>) -> Told {
    run(
        engine,
        file,
        Operation::Read,
        range.start,
        Memory::new((range.end - range.start) as usize),
        4096,
    )
}

/// What ended does not count as in flight any more, soon after its landing was told.
fn assert_becomes_idle(engine: &Engine) {
    let until = Instant::now() + PATIENCE;
    while engine.readings().in_flight + engine.readings().queued > 0 {
        assert!(Instant::now() < until, "depth was lost: {:?}", engine.readings());
        thread::yield_now();
    }
}

fn assert_pattern(bytes: &[u8], offset: u64) {
    if bytes != &*pattern_of(offset..offset + bytes.len() as u64) {
        let place = (offset..).zip(bytes).find(|(place, byte)| **byte != pattern(*place));
        panic!("at {place:?}, in the read of {} bytes at {offset}", bytes.len());
    }
}

/// Many bytes of the pattern, which cost much one by one.
fn pattern_of(range: Range<u64>) -> Cow<'static, [u8]> {
    static BEGINNING: LazyLock<Vec<u8>> = LazyLock::new(|| (0..4 << 20).map(pattern).collect());
    match BEGINNING.get(range.start as usize..range.end as usize) {
        Some(bytes) => Cow::Borrowed(bytes),
        None => Cow::Owned(range.map(pattern).collect()),
    }
}

/// Faults as a function of how many attempts there were before.
struct Script<F>(AtomicUsize, F);

impl<F: Fn(usize, u64, u64) -> Option<Fault> + Send + Sync> Faults for Script<F> {
    fn fault(&self, _path: &Path, _write: bool, offset: u64, length: u64) -> Option<Fault> {
        (self.1)(self.0.fetch_add(1, Ordering::SeqCst), offset, length)
    }
}

fn script<F: Fn(usize, u64, u64) -> Option<Fault> + Send + Sync>(faults: F) -> Script<F> {
    Script(AtomicUsize::new(0), faults)
}

#[test]
fn every_range_has_its_own_bytes() {
    for place in Place::all() {
        let length = 3 << 20;
        let file = place.file(length);
        for kind in kinds() {
            let engine = start(kind);
            let (told, outcomes) = channel();
            let mut random = SmallRng::seed_from_u64(6);
            let mut asked = Vec::new();
            for _ in 0..20 {
                let transfers = (0..20).map(|_| {
                    let offset = random.random_range(0..length / 4096) * 4096;
                    let size = random.random_range(1..=64_u64).min((length - offset) / 4096) * 4096;
                    let piece = 4096 * random.random_range(1..10);
                    let mut transfer =
                        transfer(&file, Operation::Read, offset, Memory::new(size as usize), piece, &told);
                    let memory = Memory::new(size as usize);
                    transfer.pieces = memory.pieces(piece);
                    transfer.landing = Box::new(TestLanding {
                        number: asked.len(),
                        memory,
                        told: told.clone(),
                        is_wanted: true,
                        running: None,
                    });
                    asked.push(offset);
                    transfer
                });
                let transfers: Vec<_> = transfers.collect();
                engine.submit(transfers);
            }
            for _ in 0..asked.len() {
                let Told {
                    number,
                    memory,
                    outcome,
                } = outcomes.recv_timeout(PATIENCE).unwrap();
                assert_eq!(outcome.bytes(), memory.length);
                assert_pattern(memory.bytes(), asked[number]);
            }
            assert_eq!(engine.readings().latency.count(), asked.len() as u64);
        }
    }
}

#[test]
fn what_is_not_aligned_is_read_all_the_same() {
    for place in Place::all() {
        let file = place.file(100_000);
        for kind in kinds() {
            let engine = start(kind);
            for range in [1..2, 511..70_000, 4096..4097, 0..99_999, 8191..8193] {
                let told = read(&engine, &file, range.clone());
                assert_eq!(told.outcome.bytes() as u64, range.end - range.start);
                assert_pattern(told.memory.bytes(), range.start);
            }
            let aligned = read(&engine, &file, 4096..8192);
            assert_pattern(aligned.memory.bytes(), 4096);
        }
    }
}

#[test]
fn a_read_ends_with_the_file() {
    for place in Place::all() {
        for length in [0, 1, 4095, 4096, 10_000, 12_288] {
            let _ = fs::remove_file(place.path());
            let file = place.file(length);
            for kind in kinds() {
                let engine = start(kind);
                for offset in (0..=length + 8192).step_by(4096) {
                    let told = read(&engine, &file, offset..offset + 65_536);
                    let bytes = told.outcome.bytes();
                    assert_eq!(bytes as u64, length.saturating_sub(offset), "{offset} of {length}");
                    assert_pattern(&told.memory.bytes()[..bytes], offset);
                }
            }
        }
    }
}

#[test]
fn a_file_that_grew_or_shrank_is_read_to_where_it_ends_now() {
    for place in Place::all() {
        for kind in kinds() {
            let _ = fs::remove_file(place.path());
            let file = place.file(10_000);
            let engine = start(kind);
            fill(&place.path(), 10_000..30_000);
            let told = read(&engine, &file, 4096..69_632);
            assert_eq!(told.outcome.bytes(), 30_000 - 4096);
            assert_pattern(&told.memory.bytes()[..30_000 - 4096], 4096);
            File::options()
                .write(true)
                .open(place.path())
                .unwrap()
                .set_len(5000)
                .unwrap();
            let told = read(&engine, &file, 4096..69_632);
            assert_eq!(told.outcome.bytes(), 5000 - 4096);
        }
    }
}

#[test]
fn short_transfers_are_continued() {
    for place in Place::all() {
        let file = place.file(1 << 20);
        for kind in kinds() {
            for bytes in [1, 4096, 5000, 123_456] {
                let engine = start_with(kind, script(move |_, _, _| Some(Fault::Short(bytes))));
                let told = read(&engine, &file, 8192..200_704);
                assert_eq!(told.outcome.bytes(), 192_512);
                assert_pattern(told.memory.bytes(), 8192);
            }
        }
    }
}

#[test]
fn interrupted_and_refused_attempts_are_made_again() {
    for kind in kinds() {
        let place = Place::disk();
        let file = place.file(100_000);
        for number in [libc::EINTR, libc::EAGAIN] {
            let engine = start_with(
                kind,
                script(move |attempt, _, _| (attempt < 3).then_some(Fault::Error(number))),
            );
            let told = read(&engine, &file, 0..65_536);
            assert_eq!(told.outcome.bytes(), 65_536);
            assert_pattern(told.memory.bytes(), 0);
        }
        assert_eq!(
            file.is_direct(),
            place.open().is_direct(),
            "neither says anything of O_DIRECT"
        );
    }
}

#[test]
fn an_attempt_that_is_interrupted_for_ever_ends_at_last() {
    for kind in kinds() {
        let file = Place::disk().file(8192);
        let engine = start_with(kind, script(|_, _, _| Some(Fault::Error(libc::EINTR))));
        assert_eq!(
            read(&engine, &file, 0..4096).outcome.error().raw_os_error(),
            Some(libc::EINTR)
        );
    }
}

#[test]
fn a_file_system_that_takes_o_direct_and_refuses_to_read_is_read_through_its_cache() {
    for kind in kinds() {
        let place = Place::disk();
        let file = place.file(100_000);
        if !file.is_direct() {
            return println!("no O_DIRECT here");
        }
        // Refused in the middle of a transfer, too.
        let engine = start_with(
            kind,
            script(|attempt, _, _| match attempt {
                0 => Some(Fault::Short(8192)),
                1 => Some(Fault::Error(libc::EINVAL)),
                _ => None,
            }),
        );
        // The file is found although its path leads elsewhere now.
        fs::rename(place.path(), place.directory.path().join("moved")).unwrap();
        fs::write(place.path(), vec![0; 100_000]).unwrap();
        let told = read(&engine, &file, 0..65_536);
        assert_eq!(told.outcome.bytes(), 65_536);
        assert_pattern(told.memory.bytes(), 0);
        assert!(!file.is_direct(), "remembered");
        assert_pattern(read(&engine, &file, 4096..8192).memory.bytes(), 4096);
    }
}

#[test]
fn an_error_is_the_transfers_own() {
    for kind in kinds() {
        let place = Place::disk();
        let file = place.file(100_000);
        let engine = start_with(
            kind,
            script(|_, offset, _| (offset == 4096).then_some(Fault::Error(libc::EIO))),
        );
        assert_eq!(
            read(&engine, &file, 4096..8192).outcome.error().raw_os_error(),
            Some(libc::EIO)
        );
        assert_pattern(read(&engine, &file, 8192..12_288).memory.bytes(), 8192);
        // The kernel's own: the file was not opened for writing.
        let written = run(&engine, &file, Operation::Write, 0, Memory::new(4096), 4096);
        assert_eq!(written.outcome.error().raw_os_error(), Some(libc::EBADF));
    }
}

#[test]
fn nothing_to_transfer_ends_at_once() {
    for kind in kinds() {
        let file = Place::disk().file(100_000);
        let engine = start_with(kind, script(|_, _, _| Some(Fault::Error(libc::EIO))));
        for memory in [Memory::new(0), Memory::new(0)] {
            assert_eq!(run(&engine, &file, Operation::Read, 5, memory, 4096).outcome.bytes(), 0);
        }
        let (told, outcome) = channel();
        let mut empty = transfer(&file, Operation::Write, 0, Memory::new(0), 1, &told);
        empty.pieces = vec![
            Piece {
                start: std::ptr::dangling_mut(),
                length: 0
            };
            3
        ];
        engine.submit(vec![empty]);
        assert_eq!(outcome.recv_timeout(PATIENCE).unwrap().outcome.bytes(), 0);
        engine.submit(Vec::new());
        assert_becomes_idle(&engine);
    }
}

#[test]
fn an_offset_where_no_file_can_be_is_an_error() {
    for kind in kinds() {
        let file = Place::disk().file(100_000);
        let engine = start(kind);
        for offset in [u64::MAX, i64::MAX as u64, i64::MAX as u64 - 4095] {
            let told = run(&engine, &file, Operation::Read, offset, Memory::new(4096), 4096);
            assert_eq!(told.outcome.error().kind(), io::ErrorKind::InvalidInput, "{offset}");
        }
    }
}

#[test]
fn what_is_written_is_read_again() {
    for place in Place::all() {
        for kind in kinds() {
            let _ = fs::remove_file(place.path());
            let file = Arc::new(OpenFile::create_new(place.path(), place.direct).unwrap());
            let engine = start_with(
                kind,
                script(|attempt, _, length| match attempt % 3 {
                    0 => Some(Fault::Short(length as usize / 2)),
                    1 => Some(Fault::Error(libc::EINTR)),
                    _ => None,
                }),
            );
            // The tail is not aligned.
            for range in [0..1_u64 << 20, (1 << 20)..(1 << 20) + 5000] {
                let length = (range.end - range.start) as usize;
                let memory = Memory::of((0..length).map(|place| pattern(range.start + place as u64)));
                let told = run(&engine, &file, Operation::Write, range.start, memory, 8192);
                assert_eq!(told.outcome.bytes(), length);
            }
            assert_eq!(
                run(&engine, &file, Operation::Sync, 0, Memory::new(0), 1)
                    .outcome
                    .bytes(),
                0
            );
            let written = fs::read(place.path()).unwrap();
            assert_eq!(written.len(), (1 << 20) + 5000);
            assert_pattern(&written, 0);
            assert_pattern(read(&engine, &file, 4096..65_536).memory.bytes(), 4096);
        }
    }
}

#[test]
fn more_pieces_than_the_kernel_takes_at_once() {
    for place in Place::all() {
        let file = place.file(1 << 20);
        for kind in kinds() {
            let engine = start(kind);
            for piece in [128, 512] {
                let told = run(&engine, &file, Operation::Read, 0, Memory::new(1 << 20), piece);
                assert_eq!(told.outcome.bytes(), 1 << 20);
                assert_pattern(told.memory.bytes(), 0);
            }
        }
    }
}

#[test]
fn more_bytes_than_the_kernel_transfers_at_once() {
    for kind in kinds() {
        let place = Place::disk();
        let length = (1_u64 << 31) + (1 << 30);
        // A hole, but for its last bytes.
        let hole = File::create(place.path()).unwrap();
        hole.set_len(length).unwrap();
        drop(hole);
        fill(&place.path(), length..length + 4096);
        let file = place.open();
        let engine = start(kind);
        let (told, outcome) = channel();
        // Always the same memory: what was there before is of no use here.
        let memory = Memory::new(4 << 20);
        let whole = Piece {
            start: memory.start,
            length: 4 << 20,
        };
        let count = usize::try_from(length >> 22).unwrap();
        let mut large = transfer(&file, Operation::Read, 0, memory, 4 << 20, &told);
        large.pieces = vec![whole; count];
        large.pieces.push(Piece {
            start: whole.start,
            length: 4096,
        });
        engine.submit(vec![large]);
        let told = outcome.recv_timeout(PATIENCE).unwrap();
        assert_eq!(told.outcome.bytes() as u64, length + 4096);
        assert_pattern(&told.memory.bytes()[..4096], length);
    }
}

#[test]
fn the_limits_hold_and_are_used() {
    for kind in kinds() {
        let file = Place::disk().file(1 << 20);
        let engine = Engine::start(Settings {
            kind,
            depth: 8,
            depth_per_reader: 3,
            faults: Some(Arc::new(script(|_, _, _| Some(Fault::Delay(Duration::from_millis(1)))))),
            ..Settings::default()
        });
        let engine = engine.unwrap();
        let (told, outcomes) = channel();
        let all = Arc::new(Running::default());
        let most_of_one = Arc::new(AtomicUsize::new(0));
        struct Counting {
            inner: TestLanding,
            all: Arc<Running>,
        }
        impl Landing for Counting {
            fn wanted(&self) -> bool {
                let now = self.all.now.fetch_add(1, Ordering::SeqCst) + 1;
                self.all.most.fetch_max(now, Ordering::SeqCst);
                self.inner.wanted()
            }
            fn lands(self: Box<Self>, outcome: io::Result<usize>) {
                self.all.now.fetch_sub(1, Ordering::SeqCst);
                Box::new(self.inner).lands(outcome);
            }
            fn called_off(self: Box<Self>) {}
        }
        let readers: Vec<_> = (0..5).map(|_| Arc::new(Running::default())).collect();
        // In the end only one has anything left.
        for (reader, running) in readers.iter().enumerate() {
            let transfers = (0..20 * (reader + 1)).map(|number| {
                let memory = Memory::new(4096);
                let pieces = memory.pieces(4096);
                let running = Some(Arc::clone(running));
                let inner = TestLanding {
                    number,
                    memory,
                    told: told.clone(),
                    is_wanted: true,
                    running,
                };
                let landing = Box::new(Counting {
                    inner,
                    all: Arc::clone(&all),
                });
                Transfer {
                    file: Arc::clone(&file),
                    operation: Operation::Read,
                    offset: 0,
                    pieces,
                    landing,
                }
            });
            engine.submit(transfers.collect());
        }
        assert!(engine.readings().in_flight + engine.readings().queued > 0);
        for _ in 0..20 * 15 {
            assert!(engine.readings().in_flight <= 8);
            outcomes.recv_timeout(PATIENCE).unwrap().outcome.bytes();
        }
        assert_eq!(all.most.load(Ordering::SeqCst), 8, "{kind:?}");
        for running in &readers {
            most_of_one.fetch_max(running.most.load(Ordering::SeqCst), Ordering::SeqCst);
        }
        assert_eq!(most_of_one.load(Ordering::SeqCst), 3, "{kind:?}");
    }
}

#[test]
fn a_reader_with_a_thousand_does_not_starve_one_with_one() {
    for kind in kinds() {
        let file = Place::disk().file(1 << 20);
        let engine = Engine::start(Settings {
            kind,
            depth: 4,
            depth_per_reader: 4,
            faults: Some(Arc::new(script(|_, _, _| {
                Some(Fault::Delay(Duration::from_micros(300)))
            }))),
            ..Settings::default()
        });
        let engine = engine.unwrap();
        let (told, outcomes) = channel();
        let one = |number| {
            let memory = Memory::new(4096);
            let pieces = memory.pieces(4096);
            let landing = TestLanding {
                number,
                memory,
                told: told.clone(),
                is_wanted: true,
                running: None,
            };
            Transfer {
                file: Arc::clone(&file),
                operation: Operation::Read,
                offset: 0,
                pieces,
                landing: Box::new(landing),
            }
        };
        engine.submit((0..1000).map(|_| one(0)).collect());
        engine.submit(vec![one(1)]);
        let order: Vec<usize> = (0..1001)
            .map(|_| outcomes.recv_timeout(PATIENCE).unwrap().number)
            .collect();
        // How many landed while this thread was still handing over, nobody knows; most had not.
        let at = order.iter().position(|number| *number == 1).unwrap();
        assert!(at < 500, "it landed as number {at}");
    }
}

#[test]
fn what_nobody_wants_never_begins() {
    for kind in kinds() {
        let file = Place::disk().file(100_000);
        let engine = start_with(kind, script(|_, _, _| panic!("an attempt was made")));
        let (told, outcome) = channel();
        let memory = Memory::new(4096);
        let pieces = memory.pieces(4096);
        let landing = Box::new(TestLanding {
            number: 0,
            memory,
            told,
            is_wanted: false,
            running: None,
        });
        engine.submit(vec![Transfer {
            file,
            operation: Operation::Read,
            offset: 0,
            pieces,
            landing,
        }]);
        let told = outcome.recv_timeout(PATIENCE).unwrap();
        assert!(matches!(told.outcome, Outcome::CalledOff));
        assert!(told.memory.bytes().iter().all(|byte| *byte == 0));
    }
}

/// Waits until the engine's threads have ended: then nobody has its faults any more.
fn assert_ends<F>(faults: &Weak<F>) {
    let until = Instant::now() + PATIENCE;
    while faults.strong_count() > 0 {
        assert!(Instant::now() < until, "the engine's threads do not end");
        thread::yield_now();
    }
}

#[test]
fn an_engine_that_is_dropped_ends_what_runs_and_refuses_what_waits() {
    for kind in kinds() {
        let file = Place::disk().file(100_000);
        let faults = Arc::new(script(|_, _, _| Some(Fault::Delay(Duration::from_millis(200)))));
        let threads = Arc::downgrade(&faults);
        let engine = Engine::start(Settings {
            kind,
            depth: 2,
            faults: Some(faults),
            ..Settings::default()
        })
        .unwrap();
        let (told, outcomes) = channel();
        engine.submit(
            (0..10)
                .map(|_| transfer(&file, Operation::Read, 4096, Memory::new(4096), 4096, &told))
                .collect(),
        );
        while engine.readings().in_flight < 2 {
            thread::yield_now();
        }
        let began = Instant::now();
        drop(engine);
        assert!(
            began.elapsed() < Duration::from_millis(100),
            "dropping waits for nothing"
        );
        let (mut ended, mut refused) = (0, 0);
        for _ in 0..10 {
            match outcomes.recv_timeout(PATIENCE).unwrap() {
                Told {
                    outcome: Outcome::Ended(Ok(4096)),
                    memory,
                    ..
                } => {
                    assert_pattern(memory.bytes(), 4096);
                    ended += 1;
                }
                Told {
                    outcome: Outcome::Ended(Err(error)),
                    ..
                } if ShutDown::is_in(&error) => refused += 1,
                Told { outcome, .. } => panic!("{outcome:?}"),
            }
        }
        assert_eq!((ended, refused), (2, 8), "{kind:?}");
        assert_ends(&threads);
    }
}

#[test]
fn an_idle_engine_that_is_dropped_ends_its_threads() {
    for kind in kinds() {
        let faults = Arc::new(script(|_, _, _| None));
        let threads = Arc::downgrade(&faults);
        let engine = Engine::start(Settings {
            kind,
            faults: Some(faults),
            ..Settings::default()
        })
        .unwrap();
        assert_becomes_idle(&engine);
        drop(engine);
        assert_ends(&threads);
    }
}

#[test]
fn a_landing_that_panics_harms_nobody() {
    #[derive(Clone, Copy, PartialEq)]
    enum When {
        Asked,
        Landing,
        CalledOff,
        Dropped,
    }
    #[expect(dead_code, reason = "the memory lives as long as the landing")]
    struct Panics(When, Memory);
    impl Landing for Panics {
        fn wanted(&self) -> bool {
            assert!(self.0 != When::Asked, "on purpose");
            self.0 != When::CalledOff
        }
        fn lands(self: Box<Self>, _outcome: io::Result<usize>) {
            assert!(self.0 != When::Landing, "on purpose");
        }
        fn called_off(self: Box<Self>) {
            panic!("on purpose");
        }
    }
    impl Drop for Panics {
        fn drop(&mut self) {
            assert!(self.0 != When::Dropped, "on purpose");
        }
    }
    for kind in kinds() {
        let file = Place::disk().file(100_000);
        let engine = Engine::start(Settings {
            kind,
            depth: 2,
            depth_per_reader: 1,
            threads_max: 1,
            ..Settings::default()
        });
        let engine = engine.unwrap();
        for when in [When::Asked, When::Landing, When::CalledOff, When::Dropped] {
            let transfers = (0..5).map(|_| {
                let memory = Memory::new(4096);
                let pieces = memory.pieces(4096);
                let landing = Box::new(Panics(when, memory));
                Transfer {
                    file: Arc::clone(&file),
                    operation: Operation::Read,
                    offset: 0,
                    pieces,
                    landing,
                }
            });
            engine.submit(transfers.collect());
        }
        assert_pattern(read(&engine, &file, 4096..8192).memory.bytes(), 4096);
        assert_becomes_idle(&engine);
    }
}

#[test]
fn without_io_uring_threads_do_it() {
    let forbidden = Settings {
        uring_is_forbidden: true,
        ..Settings::default()
    };
    let engine = Engine::start(forbidden.clone()).unwrap();
    let readings = engine.readings();
    assert_eq!(readings.backend, Backend::Threads);
    assert!(readings.why_not_uring.unwrap().contains("not permitted"));
    let file = Place::disk().file(100_000);
    assert_pattern(read(&engine, &file, 4096..8192).memory.bytes(), 4096);
    let refused = Engine::start(Settings {
        kind: Kind::Uring,
        ..forbidden
    })
    .err()
    .unwrap();
    assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
    let threads = start(Kind::Threads).readings();
    assert_eq!((threads.backend, threads.why_not_uring), (Backend::Threads, None));
}
