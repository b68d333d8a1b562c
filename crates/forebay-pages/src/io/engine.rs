//! The engine: takes transfers, keeps them in line, and has a backend run them.
//!
//! Promises: handing over never waits for I/O. An engine that is dropped does not wait either: what has not begun lands with
//! [`ShutDown`], what runs lands when it ends, and then the engine's threads end. Without io_uring (an old kernel, one that
//! forbids it, another system) the same is done by threads, and `readings` says why.
//!
//! Knows the backends, not what they do.

use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::mem;
use std::sync::{Arc, OnceLock};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::Transfer;
use super::faults::Faults;
use super::job::{self, Job};
use super::latency::{Histogram, Latencies};
use super::queue::{Queue, ReaderNumber};
use super::threads;
#[cfg(target_os = "linux")]
use super::uring;

/// More transfers at once the engine does not run, whatever is asked for.
const DEPTH_MAX: usize = 4096;

/// Which backend is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// io_uring where the kernel has it and allows it, else threads.
    Auto,
    /// io_uring, or an error.
    Uring,
    /// Threads.
    Threads,
}

/// Which backend runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    /// io_uring.
    Uring,
    /// Threads with `preadv` and `pwritev`.
    Threads,
}

/// How an engine is to be.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) kind: Kind,
    /// How many transfers run at once, 1 to 4096.
    pub(crate) depth: usize,
    /// How many of those that were handed over together run at once.
    pub(crate) depth_per_reader: usize,
    /// How many threads there are at most, where threads run transfers; each runs one at a time.
    pub(crate) threads_max: usize,
    /// What goes wrong, in tests.
    pub(crate) faults: Option<Arc<dyn Faults>>,
    /// As if the kernel forbade io_uring, in tests.
    pub(crate) uring_is_forbidden: bool,
    /// How many requests the ring takes at once, in tests; else as many as can run.
    pub(crate) ring_entries: Option<u32>,
    /// After so many calls the ring fails, in tests.
    pub(crate) ring_fails_after: Option<u32>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            kind: Kind::Auto,
            depth: 64,
            depth_per_reader: 32,
            threads_max: 64,
            faults: None,
            uring_is_forbidden: false,
            ring_entries: None,
            ring_fails_after: None,
        }
    }
}

/// Why a transfer that was handed over never began: the engine was dropped. In an `io::Error`; see [`ShutDown::is_in`].
#[derive(Debug)]
pub(crate) struct ShutDown;

impl ShutDown {
    pub(crate) fn is_in(error: &io::Error) -> bool {
        matches!(error.get_ref(), Some(cause) if cause.is::<Self>())
    }
}

impl fmt::Display for ShutDown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the pool has been shut down")
    }
}

impl Error for ShutDown {}

/// What there is to see of an engine.
#[derive(Clone, Debug)]
pub(crate) struct Readings {
    /// Transfers that have begun and not ended.
    pub(crate) in_flight: usize,
    /// Transfers that have not begun.
    pub(crate) queued: usize,
    /// How long those took that have ended, from their beginning.
    pub(crate) latency: Latencies,
    pub(crate) backend: Backend,
    /// Why it is not io_uring, where that was asked for or left open.
    pub(crate) why_not_uring: Option<Arc<str>>,
}

/// Runs transfers.
pub(crate) struct Engine(Arc<Shared>);

impl Engine {
    pub(crate) fn start(settings: Settings) -> io::Result<Self> {
        let depth = settings.depth.clamp(1, DEPTH_MAX);
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                queue: Queue::new(depth, settings.depth_per_reader.clamp(1, DEPTH_MAX)),
                handed_back: Vec::new(),
                backend: Backend::Threads,
                why_not_uring: None,
                is_shut: false,
                ring_sleeps: false,
                threads: 0,
                threads_idle: 0,
            }),
            arrival: Condvar::new(),
            ring_alarm: OnceLock::new(),
            depth,
            threads_max: settings.threads_max.max(1),
            latency: Histogram::new(),
            faults: settings.faults.clone(),
        });
        let kind = settings.kind;
        if kind != Kind::Threads {
            match start_ring(&shared, settings) {
                Ok(()) => return Ok(Self(shared)),
                Err(cause) if kind == Kind::Uring => return Err(cause),
                Err(cause) => {
                    tracing::info!(%cause, "without io_uring: files are read by threads");
                    shared.state.lock().why_not_uring = Some(cause.to_string().into());
                }
            }
        }
        threads::start(&shared)?;
        Ok(Self(shared))
    }

    /// Hands over the transfers of one reader. They begin in this order, in turns with those of other readers.
    pub(crate) fn submit(&self, transfers: Vec<Transfer>) {
        if transfers.is_empty() {
            return;
        }
        let mut state = self.0.state.lock();
        state.queue.submit(transfers);
        self.0.rouse(state);
    }

    pub(crate) fn readings(&self) -> Readings {
        let state = self.0.state.lock();
        Readings {
            in_flight: state.queue.running(),
            queued: state.queue.waiting(),
            latency: self.0.latency.snapshot(),
            backend: state.backend,
            why_not_uring: state.why_not_uring.clone(),
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.is_shut = true;
        self.0.arrival.notify_all();
        self.0.rouse(state);
    }
}

#[cfg(target_os = "linux")]
fn start_ring(shared: &Arc<Shared>, settings: Settings) -> io::Result<()> {
    uring::start(shared, settings)
}

#[cfg(not(target_os = "linux"))]
fn start_ring(_shared: &Arc<Shared>, _settings: Settings) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "there is no io_uring on this system",
    ))
}

/// What the engine and its threads have in common.
pub(super) struct Shared {
    pub(super) state: Mutex<State>,
    /// Something to do, for the threads of `threads`.
    pub(super) arrival: Condvar,
    /// Wakes the ring's thread when something is written to it (an eventfd).
    pub(super) ring_alarm: OnceLock<File>,
    pub(super) depth: usize,
    pub(super) threads_max: usize,
    pub(super) latency: Histogram,
    pub(super) faults: Option<Arc<dyn Faults>>,
}

/// Nothing that is not the engine's runs while this is locked.
pub(super) struct State {
    queue: Queue<Transfer>,
    /// Jobs that were taken, and that a failed ring gives to the threads.
    pub(super) handed_back: Vec<Job>,
    pub(super) backend: Backend,
    pub(super) why_not_uring: Option<Arc<str>>,
    /// The engine is gone: nothing more begins.
    pub(super) is_shut: bool,
    /// The ring's thread has seen that nothing may begin, and must be told when that changes.
    pub(super) ring_sleeps: bool,
    /// How many threads of `threads` there are, and how many of them wait for `arrival`.
    pub(super) threads: usize,
    pub(super) threads_idle: usize,
}

impl State {
    /// Whether a thread would find something to do.
    pub(super) fn has_work(&self) -> bool {
        self.queue.has_next() || !self.handed_back.is_empty()
    }
}

/// What a thread of the engine finds.
pub(super) enum Found<'a> {
    Job(Job),
    /// Nothing may begin now. Still locked, so that nothing is missed before the thread sleeps.
    Nothing(MutexGuard<'a, State>),
    /// Nothing will ever begin again.
    Shut(MutexGuard<'a, State>),
}

impl Shared {
    /// The next job. Once the engine is gone, lands all that waits.
    pub(super) fn next(self: &Arc<Self>) -> Found<'_> {
        let mut state = self.state.lock();
        if let Some(job) = state.handed_back.pop() {
            return Found::Job(job);
        }
        if state.is_shut {
            let waiting = state.queue.drain();
            if waiting.is_empty() {
                return Found::Shut(state);
            }
            drop(state);
            for transfer in waiting {
                job::lands(transfer.landing, Err(io::Error::other(ShutDown)));
            }
            return Found::Shut(self.state.lock());
        }
        match state.queue.next() {
            Some((reader, transfer)) => {
                drop(state);
                Found::Job(Job::new(Arc::clone(self), reader, transfer))
            }
            None => Found::Nothing(state),
        }
    }

    /// Something arrived, or the engine was shut: sees to it that a thread looks.
    pub(super) fn rouse(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        match state.backend {
            Backend::Threads => threads::rouse(self, state),
            Backend::Uring => {
                if mem::take(&mut state.ring_sleeps) {
                    drop(state);
                    let mut alarm = self.ring_alarm.get().expect("set before the ring's thread sleeps");
                    // It can fail only when so much has been written that the thread will wake in any case.
                    let _ = alarm.write(&1_u64.to_ne_bytes());
                }
            }
        }
    }

    /// A job of this reader has ended. The thread that ran it looks for the next one.
    pub(super) fn ended(&self, reader: ReaderNumber) {
        self.state.lock().queue.ended(reader);
    }
}
