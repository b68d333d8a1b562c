//! What an engine and its threads share: the queue, which backend runs, and who has to be woken.
//!
//! Promises: a job counts as running until it is dropped, and only then may the next of its reader begin. Once the engine is gone
//! whatever has not begun ends with [`ShutDown`].
//!
//! Lock: no code but the engine's runs while the state is locked.
//!
//! Knows nothing of how a backend runs jobs.

use std::fs::File;
use std::io::{self, Write};
use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::job::{self, Job, JobContext};
use super::queue::{Queue, ReaderNumber};
use super::transfer::Transfer;
use crate::error::ShutDown;

/// Which backend runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    /// io_uring.
    Uring,
    /// Threads with `preadv` and `pwritev`.
    Threads,
}

/// What is shared.
pub(super) struct Dispatch {
    pub(super) state: Mutex<State>,
    /// Something to do, for the threads of `threads`.
    pub(super) arrival: Condvar,
    /// Wakes the ring's thread when something is written to it (an eventfd).
    pub(super) ring_alarm: OnceLock<File>,
    pub(super) depth: usize,
    pub(super) max_threads: usize,
    pub(super) jobs: Arc<JobContext>,
}

/// What changes.
pub(super) struct State {
    pub(super) queue: Queue<Transfer>,
    /// Jobs that began in a ring that failed, for the threads to finish.
    pub(super) handed_back: Vec<RunningJob>,
    pub(super) backend: Backend,
    pub(super) why_not_uring: Option<Arc<str>>,
    /// The engine is gone: nothing more begins.
    pub(super) is_shut: bool,
    /// The ring's thread has seen that nothing may begin, and must be woken when that changes.
    pub(super) ring_sleeps: bool,
    /// How many threads of `threads` there are.
    pub(super) threads: usize,
    /// How many of them wait for `arrival`.
    pub(super) threads_idle: usize,
}

impl State {
    /// Whether a thread would find something to do.
    pub(super) fn has_work(&self) -> bool {
        self.queue.has_next() || !self.handed_back.is_empty()
    }
}

/// A job that counts as running until this is dropped.
pub(super) struct RunningJob {
    job: Job,
    reader: ReaderNumber,
    dispatch: Arc<Dispatch>,
}

impl RunningJob {
    /// It is over.
    pub(super) fn finish(mut self, outcome: io::Result<usize>) {
        self.job.end(outcome);
    }
}

impl Deref for RunningJob {
    type Target = Job;

    fn deref(&self) -> &Job {
        &self.job
    }
}

impl DerefMut for RunningJob {
    fn deref_mut(&mut self) -> &mut Job {
        &mut self.job
    }
}

impl Drop for RunningJob {
    fn drop(&mut self) {
        self.job.abandon();
        self.dispatch.state.lock().queue.ended(self.reader);
    }
}

/// What a thread of the engine finds.
pub(super) enum Found<'a> {
    Job(RunningJob),
    /// Nothing may begin now. Still locked, so that nothing is missed before the thread sleeps.
    Nothing(MutexGuard<'a, State>),
    /// Nothing will ever begin again.
    Shut(MutexGuard<'a, State>),
}

impl Dispatch {
    /// The next job. Once the engine is gone, ends everything that waits.
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
                job::complete(transfer.handler, Err(io::Error::other(ShutDown)));
            }
            return Found::Shut(self.state.lock());
        }
        match state.queue.next() {
            Some((reader, transfer)) => {
                drop(state);
                Found::Job(RunningJob {
                    job: Job::new(Arc::clone(&self.jobs), transfer),
                    reader,
                    dispatch: Arc::clone(self),
                })
            }
            None => Found::Nothing(state),
        }
    }

    /// Wakes the ring's thread if it sleeps.
    pub(super) fn wake_ring(&self, mut state: MutexGuard<'_, State>) {
        if mem::take(&mut state.ring_sleeps) {
            drop(state);
            let mut alarm = self.ring_alarm.get().expect("set before the ring's thread sleeps");
            // It can fail only when so much has been written that the thread will wake in any case.
            let _ = alarm.write(&1_u64.to_ne_bytes());
        }
    }
}
