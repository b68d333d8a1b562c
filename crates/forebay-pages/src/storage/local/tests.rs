//! The engine as its user sees it, with both backends, on a disk and on a file system in memory.

mod attempts;
mod content;
mod ring;
mod stress;
mod turns;

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

use super::dispatch::Backend;
use super::engine::Engine;
use super::open_file::OpenFile;
use super::settings::{Kind, Settings};
use super::transfer::{Operation, Transfer};
use crate::error::ShutDown;
use crate::storage::faults::{Fault, Faults};
use crate::storage::request::{CompletionHandler, Piece};

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
    Cancelled,
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
struct TestHandler {
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

impl CompletionHandler for TestHandler {
    fn is_wanted(&self) -> bool {
        if let Some(running) = &self.running {
            let now = running.now.fetch_add(1, Ordering::SeqCst) + 1;
            running.most.fetch_max(now, Ordering::SeqCst);
        }
        self.is_wanted
    }

    fn completed(self: Box<Self>, outcome: io::Result<usize>) {
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

    fn cancelled(self: Box<Self>) {
        let Self {
            number, memory, told, ..
        } = *self;
        let _ = told.send(Told {
            number,
            memory,
            outcome: Outcome::Cancelled,
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
    let handler = TestHandler {
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
        handler: Box::new(handler),
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

/// What ended does not count as in flight any more, soon after its handler was told.
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

/// Waits until the engine's threads have ended: then nobody has its faults any more.
fn assert_ends<F>(faults: &Weak<F>) {
    let until = Instant::now() + PATIENCE;
    while faults.strong_count() > 0 {
        assert!(Instant::now() < until, "the engine's threads do not end");
        thread::yield_now();
    }
}
