//! The backend of threads: each runs one transfer at a time, with `preadv`, `pwritev` and `fdatasync`.
//!
//! Promises: threads are started as they are needed, up to the limit, and end when they have been idle for long, but for one. As
//! long as something may begin and a thread is free or may be started, one is on its way to it: whoever takes something sees
//! whether there is more, and wakes or starts the next.
//!
//! Knows blocking calls to the kernel, not what they are for.

use std::io;
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::MutexGuard;

use super::Operation;
use super::engine::{Found, Shared, State};
use super::job::{Job, Step};

/// A thread that has been idle for so long ends.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// Starts the first thread, which stays until the engine is gone.
pub(super) fn start(shared: &Arc<Shared>) -> io::Result<()> {
    shared.state.lock().threads += 1;
    spawn(shared)
}

/// Wakes a thread if there is something to do, or starts one.
pub(super) fn rouse(shared: &Arc<Shared>, mut state: MutexGuard<'_, State>) {
    if !state.has_work() {
        return;
    }
    if state.threads_idle > 0 {
        shared.arrival.notify_one();
    } else if state.threads < shared.threads_max {
        state.threads += 1;
        drop(state);
        if let Err(cause) = spawn(shared) {
            // There is at least one, so that all is done, if slower.
            tracing::warn!(%cause, "no further thread for reading files");
            shared.state.lock().threads -= 1;
        }
    }
}

fn spawn(shared: &Arc<Shared>) -> io::Result<()> {
    let shared = Arc::clone(shared);
    thread::Builder::new()
        .name("forebay-pages".into())
        .spawn(move || work(&shared))
        .map(drop)
}

/// Runs transfers as long as there are some. The caller has counted the thread.
pub(super) fn work(shared: &Arc<Shared>) {
    loop {
        match shared.next() {
            Found::Job(job) => {
                rouse(shared, shared.state.lock());
                // A panic of the engine ends this job (its drop says so), not the thread.
                let _ = catch_unwind(AssertUnwindSafe(|| run(job)));
            }
            Found::Shut(mut state) => {
                state.threads -= 1;
                return;
            }
            Found::Nothing(mut state) => {
                state.threads_idle += 1;
                let waited = shared.arrival.wait_for(&mut state, IDLE_MAX);
                state.threads_idle -= 1;
                if waited.timed_out() && !state.has_work() && !state.is_shut && state.threads > 1 {
                    state.threads -= 1;
                    return;
                }
            }
        }
    }
}

fn run(mut job: Job) {
    let Some(mut step) = job.begin() else { return };
    loop {
        step = match step {
            Step::Transfer => {
                let outcome = transfer(&job);
                job.completed(outcome)
            }
            Step::Sync => {
                let outcome = job.descriptor().and_then(std::fs::File::sync_data).map(|()| 0);
                job.completed(outcome)
            }
            Step::Pause(pause) => {
                #[allow(clippy::disallowed_methods)] // A thread for blocking, and this job is all it has to do.
                thread::sleep(pause);
                job.resume()
            }
            Step::End(outcome) => return job.land(outcome),
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
        // memory is the landing's, for nobody else until it has been told, which is later.
        unsafe { libc::preadv(descriptor, areas, count, position) }
    } else {
        // SAFETY: as above.
        unsafe { libc::pwritev(descriptor, areas, count, position) }
    };
    usize::try_from(bytes).map_err(|_| io::Error::last_os_error())
}
