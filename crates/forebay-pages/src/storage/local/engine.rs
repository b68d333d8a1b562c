//! The engine: takes transfers and has a backend run them, on threads of its own.
//!
//! Promises: each transfer that is submitted ends exactly once, by its handler, on a thread of the engine, and never before the
//! kernel has finished with its memory. At most `depth` transfers run at once, and at most `depth_per_read` of those submitted
//! together; readers who submit many take turns with the others. The results are the same whichever backend runs. Short transfers are
//! continued: a read that ends with fewer bytes than asked for has met the end of the file.
//!
//! Submitting never waits for I/O, nor does dropping the engine: what has not begun ends with
//! [`ShutDown`](crate::error::ShutDown), what runs ends when it is done, and then the threads end. Without io_uring (an old kernel,
//! one that forbids it, another system) threads do the same work, and `readings` says why.
//!
//! Knows the backends, not how they work.

use std::io;
use std::sync::{Arc, OnceLock};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::dispatch::{Backend, Dispatch, State};
use super::job::JobContext;
use super::queue::Queue;
use super::settings::{Kind, Settings};
use super::threads;
use super::transfer::Transfer;
#[cfg(target_os = "linux")]
use super::uring;
use crate::latency::{Histogram, Latencies};

/// The most transfers that run at once, whatever is asked for.
const DEPTH_MAX: usize = 4096;

/// What an engine shows of itself.
#[derive(Clone, Debug)]
pub(crate) struct Readings {
    /// Transfers that have begun and not ended.
    pub(crate) in_flight: usize,
    /// Transfers that have not begun.
    pub(crate) queued: usize,
    /// How long the transfers took that have ended, from their beginning.
    pub(crate) latency: Latencies,
    pub(crate) backend: Backend,
    /// Why it is not io_uring, where that was asked for or left open.
    pub(crate) why_not_uring: Option<Arc<str>>,
}

/// Runs transfers.
pub(crate) struct Engine(Arc<Dispatch>);

impl Engine {
    pub(crate) fn start(settings: Settings) -> io::Result<Self> {
        let depth = settings.depth.clamp(1, DEPTH_MAX);
        let dispatch = Arc::new(Dispatch {
            state: Mutex::new(State {
                queue: Queue::new(depth, settings.depth_per_read.clamp(1, DEPTH_MAX)),
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
            max_threads: settings.max_threads.max(1),
            jobs: Arc::new(JobContext {
                latency: Histogram::new(),
                faults: settings.faults.clone(),
            }),
        });
        let kind = settings.kind;
        if kind != Kind::Threads {
            match start_ring(&dispatch, settings) {
                Ok(()) => return Ok(Self(dispatch)),
                Err(cause) if kind == Kind::Uring => return Err(cause),
                Err(cause) => {
                    tracing::info!(%cause, "without io_uring: files are read by threads");
                    dispatch.state.lock().why_not_uring = Some(cause.to_string().into());
                }
            }
        }
        threads::start(&dispatch)?;
        Ok(Self(dispatch))
    }

    /// Takes the transfers of one reader. They begin in this order, in fair turns with those of other readers.
    pub(crate) fn submit(&self, transfers: Vec<Transfer>) {
        if transfers.is_empty() {
            return;
        }
        let mut state = self.0.state.lock();
        state.queue.submit(transfers);
        self.rouse(state);
    }

    /// Something arrived, or the engine was shut: makes sure that a thread looks.
    fn rouse(&self, state: MutexGuard<'_, State>) {
        match state.backend {
            Backend::Threads => threads::rouse(&self.0, state),
            Backend::Uring => self.0.wake_ring(state),
        }
    }

    pub(crate) fn readings(&self) -> Readings {
        let state = self.0.state.lock();
        Readings {
            in_flight: state.queue.running(),
            queued: state.queue.waiting(),
            latency: self.0.jobs.latency.snapshot(),
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
        self.rouse(state);
    }
}

#[cfg(target_os = "linux")]
fn start_ring(dispatch: &Arc<Dispatch>, settings: Settings) -> io::Result<()> {
    uring::start(dispatch, settings)
}

#[cfg(not(target_os = "linux"))]
fn start_ring(_dispatch: &Arc<Dispatch>, _settings: Settings) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "there is no io_uring on this system",
    ))
}
