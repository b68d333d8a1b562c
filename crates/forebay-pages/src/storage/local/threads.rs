//! The backend of threads: each runs one transfer at a time, with `preadv`, `pwritev` and `fdatasync`.
//!
//! Promises: threads are started as they are needed, up to the limit; all but one end when they have been idle for long. While
//! something may begin and a thread is free or may be started, one is on its way to it: a thread that takes a job wakes or starts
//! the next if there is more to do.
//!
//! Knows blocking calls to the kernel, not what they are for.

use std::io;
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::MutexGuard;

use super::dispatch::{Dispatch, Found, RunningJob, State};
use super::job::{Job, Step};
use super::transfer::Operation;

/// A thread that has been idle for so long ends.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// Starts the first thread, which stays until the engine is gone.
pub(super) fn start(dispatch: &Arc<Dispatch>) -> io::Result<()> {
    dispatch.state.lock().threads += 1;
    spawn(dispatch)
}

/// Wakes a thread if there is something to do, or starts one.
pub(super) fn rouse(dispatch: &Arc<Dispatch>, mut state: MutexGuard<'_, State>) {
    if !state.has_work() {
        return;
    }
    if state.threads_idle > 0 {
        dispatch.arrival.notify_one();
    } else if state.threads < dispatch.max_threads {
        state.threads += 1;
        drop(state);
        if let Err(cause) = spawn(dispatch) {
            // There is at least one, so that all is done, if slower.
            tracing::warn!(%cause, "no further thread for reading files");
            dispatch.state.lock().threads -= 1;
        }
    }
}

fn spawn(dispatch: &Arc<Dispatch>) -> io::Result<()> {
    let dispatch = Arc::clone(dispatch);
    thread::Builder::new()
        .name("forebay-pages".into())
        .spawn(move || work(&dispatch))
        .map(drop)
}

/// Runs transfers as long as there are some. The caller has counted the thread.
pub(super) fn work(dispatch: &Arc<Dispatch>) {
    loop {
        match dispatch.next() {
            Found::Job(job) => {
                rouse(dispatch, dispatch.state.lock());
                // A panic of the engine ends this job (its drop calls the handler), not the thread.
                let _ = catch_unwind(AssertUnwindSafe(|| run(job)));
            }
            Found::Shut(mut state) => {
                state.threads -= 1;
                return;
            }
            Found::Nothing(mut state) => {
                state.threads_idle += 1;
                let waited = dispatch.arrival.wait_for(&mut state, IDLE_MAX);
                state.threads_idle -= 1;
                if waited.timed_out() && !state.has_work() && !state.is_shut && state.threads > 1 {
                    state.threads -= 1;
                    return;
                }
            }
        }
    }
}

fn run(mut job: RunningJob) {
    let Some(mut step) = job.begin() else { return };
    loop {
        step = match step {
            Step::Transfer => {
                let outcome = transfer(&job);
                job.attempted(outcome)
            }
            Step::Sync => {
                let outcome = job.descriptor().and_then(std::fs::File::sync_data).map(|()| 0);
                job.attempted(outcome)
            }
            Step::Pause(pause) => {
                #[allow(clippy::disallowed_methods)] // A thread for blocking, and this job is all it has to do.
                thread::sleep(pause);
                job.resume()
            }
            Step::End(outcome) => return job.finish(outcome),
        };
    }
}

fn transfer(job: &Job) -> io::Result<usize> {
    let descriptor = job.descriptor()?.as_raw_fd();
    let areas = job.vectors().as_ptr().cast::<libc::iovec>();
    let count = libc::c_int::try_from(job.vectors().len()).expect("at most 1024");
    let position = libc::off_t::try_from(job.position()).expect("checked when the job began");
    let bytes = if job.operation() == Operation::Read {
        // SAFETY: `areas` are `count` areas (`Vector` is an iovec) that the job keeps for the whole of this call, and their
        // memory is the handler's, and nobody else uses it until the handler is called, which is later.
        unsafe { libc::preadv(descriptor, areas, count, position) }
    } else {
        // SAFETY: as above.
        unsafe { libc::pwritev(descriptor, areas, count, position) }
    };
    usize::try_from(bytes).map_err(|_| io::Error::last_os_error())
}
