//! The backend of io_uring: one thread has the ring to itself.
//!
//! Promises: what begins together is submitted together. The thread sleeps only when nothing may begin and nothing has ended, and is
//! woken through an eventfd only then. A job whose memory the kernel may touch is neither moved out nor freed before its completion
//! was taken from the ring, whatever fails meanwhile. When the ring fails, the threads of `threads` go on with everything that the
//! kernel has not taken, and this thread waits until the kernel has completed the rest.
//!
//! Knows the ring; which bytes go where is the job's affair.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::mem;
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use io_uring::types::{Fd, FsyncFlags, Timespec};
use io_uring::{IoUring, Probe, opcode, squeue};
use rustix::event::EventfdFlags;

use super::dispatch::{Backend, Dispatch, Found, RunningJob};
use super::job::{Job, Step};
use super::settings::Settings;
use super::threads;
use super::transfer::Operation;

/// The number of the alarm's request; all others are numbers of slots.
const ALARM: u64 = u64::MAX;
/// How long to wait when the kernel has no room right now, or before a failed ring is looked at again.
const MOMENT: Duration = Duration::from_millis(1);

/// Starts the thread with the ring. An error: io_uring cannot be used here, and nothing has changed.
pub(super) fn start(dispatch: &Arc<Dispatch>, settings: Settings) -> io::Result<()> {
    if settings.uring_is_forbidden {
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    let (report, reported) = sync_channel(1);
    let dispatch = Arc::clone(dispatch);
    let body = move || {
        // A ring that only one thread may use must be made by that thread.
        let worker = match Worker::new(dispatch, &settings) {
            Ok(worker) => worker,
            Err(cause) => return drop(report.send(Err(cause))),
        };
        worker.dispatch.state.lock().backend = Backend::Uring;
        if report.send(Ok(())).is_ok() {
            worker.work();
        }
    };
    thread::Builder::new().name("forebay-pages".into()).spawn(body)?;
    reported
        .recv()
        .unwrap_or_else(|_| Err(io::Error::other("the thread of the ring panicked before it began")))
}

/// A ring for so many transfers and the alarm, in the cheapest mode that the kernel has: completions are processed only when the
/// thread asks for them (Linux 6.1), or at least without interrupting it (5.19).
fn build(depth: usize, entries: Option<u32>) -> io::Result<IoUring> {
    let wanted = u32::try_from(depth + 1)
        .expect("the depth is bounded")
        .next_power_of_two();
    let entries = entries.unwrap_or(wanted);
    let mut newest = IoUring::builder();
    newest.setup_single_issuer().setup_defer_taskrun().setup_submit_all();
    let mut newer = IoUring::builder();
    newer.setup_coop_taskrun();
    let mut outcome = Err(io::ErrorKind::Unsupported.into());
    for mut builder in [newest, newer, IoUring::builder()] {
        outcome = builder.dontfork().setup_cqsize(2 * wanted.max(entries)).build(entries);
        if outcome.as_ref().err().and_then(io::Error::raw_os_error) != Some(libc::EINVAL) {
            break;
        }
    }
    let ring = outcome?;
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe)?;
    let needed = [
        opcode::Readv::CODE,
        opcode::Writev::CODE,
        opcode::Fsync::CODE,
        opcode::PollAdd::CODE,
        opcode::Timeout::CODE,
    ];
    if needed.into_iter().all(|code| probe.is_supported(code)) {
        Ok(ring)
    } else {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "io_uring lacks what is needed",
        ))
    }
}

/// A job between submission and completion. Boxed, because the kernel reads `pause` where it lies.
struct Pending {
    job: RunningJob,
    /// Its request is a timeout, not the job's attempt.
    is_paused: bool,
    pause: Timespec,
}

/// Pending jobs by number. Those that are left when this is dropped are never freed: the kernel may be writing to their memory.
#[derive(Default)]
struct Slots {
    places: Vec<Option<Box<Pending>>>,
    free: Vec<usize>,
}

impl Slots {
    fn insert(&mut self, pending: Box<Pending>) -> u64 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.places[place] = Some(pending);
        place as u64
    }

    fn remove(&mut self, number: u64) -> Box<Pending> {
        let place = usize::try_from(number).expect("numbers are places");
        let pending = self.places[place]
            .take()
            .expect("the kernel completes each request once");
        self.free.push(place);
        pending
    }

    fn is_empty(&self) -> bool {
        self.free.len() == self.places.len()
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        self.places.drain(..).flatten().for_each(mem::forget);
    }
}

/// The ring, and what is pending in it.
struct Worker {
    // Dropped first: the kernel is told to end what is left.
    ring: IoUring,
    dispatch: Arc<Dispatch>,
    alarm: File,
    slots: Slots,
    /// The requests in the submission queue that the kernel has not taken, in order; and one for which there was no room when
    /// the ring failed.
    unsubmitted: VecDeque<u64>,
    /// Completions that have not been looked at: number and result.
    completions: VecDeque<(u64, i32)>,
    /// The ring fails after so many calls, in tests.
    fails_after: Option<u32>,
}

impl Worker {
    fn new(dispatch: Arc<Dispatch>, settings: &Settings) -> io::Result<Self> {
        let ring = build(dispatch.depth, settings.ring_entries)?;
        let alarm = File::from(rustix::event::eventfd(
            0,
            EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK,
        )?);
        dispatch
            .ring_alarm
            .set(alarm.try_clone()?)
            .expect("an engine has one ring");
        let mut worker = Self {
            ring,
            dispatch,
            alarm,
            slots: Slots::default(),
            unsubmitted: VecDeque::new(),
            completions: VecDeque::new(),
            fails_after: settings.ring_fails_after_calls,
        };
        // A sandbox may allow a ring and forbid its use: the first call shows it.
        worker.watch_alarm()?;
        worker.ring.submit()?;
        worker.unsubmitted.clear();
        Ok(worker)
    }

    /// Runs transfers until the engine is gone and all have ended.
    fn work(mut self) {
        let cause = match catch_unwind(AssertUnwindSafe(|| self.run())) {
            Ok(Ok(())) => return,
            Ok(Err(cause)) => cause,
            Err(_) => io::Error::other("its thread panicked"),
        };
        tracing::error!(%cause, "the I/O ring failed: files are read by threads from now on");
        let dispatch = Arc::clone(&self.dispatch);
        self.fail_over(&cause);
        threads::work(&dispatch);
    }

    fn run(&mut self) -> io::Result<()> {
        loop {
            let is_shut = self.begin()?;
            if is_shut && self.slots.is_empty() {
                return Ok(());
            }
            self.enter(1)?;
            self.take_completions();
            while let Some((number, result)) = self.completions.pop_front() {
                self.completed(number, result)?;
            }
        }
    }

    /// Prepares requests for all that may begin. Returns whether nothing will ever begin again.
    fn begin(&mut self) -> io::Result<bool> {
        let dispatch = Arc::clone(&self.dispatch);
        loop {
            match dispatch.next() {
                Found::Job(mut job) => {
                    if let Some(step) = job.begin() {
                        self.advance(
                            Box::new(Pending {
                                job,
                                is_paused: false,
                                pause: Timespec::new(),
                            }),
                            step,
                        )?;
                    }
                }
                Found::Nothing(mut state) => {
                    state.ring_sleeps = true;
                    return Ok(false);
                }
                Found::Shut(_) => return Ok(true),
            }
        }
    }

    fn completed(&mut self, number: u64, result: i32) -> io::Result<()> {
        if number == ALARM {
            if result < 0 {
                return Err(io::Error::from_raw_os_error(-result));
            }
            // Clears it. That it is clear already is no error here.
            let _ = self.alarm.read(&mut [0; 8]);
            return self.watch_alarm();
        }
        let mut pending = self.slots.remove(number);
        let step = next_step(&mut pending, result);
        self.advance(pending, step)
    }

    /// Prepares the request for the next step of a job, or ends it.
    fn advance(&mut self, mut pending: Box<Pending>, step: Step) -> io::Result<()> {
        let entry = match step {
            Step::End(outcome) => {
                pending.job.finish(outcome);
                return Ok(());
            }
            Step::Pause(pause) => {
                pending.is_paused = true;
                pending.pause = Timespec::new().sec(pause.as_secs()).nsec(pause.subsec_nanos());
                opcode::Timeout::new(&raw const pending.pause).build()
            }
            Step::Transfer | Step::Sync => match request(&pending.job) {
                Ok(entry) => entry,
                Err(cause) => {
                    pending.job.finish(Err(cause));
                    return Ok(());
                }
            },
        };
        let number = self.slots.insert(pending);
        self.push(number, &entry)
    }

    fn watch_alarm(&mut self) -> io::Result<()> {
        let events = u32::try_from(libc::POLLIN).expect("a small number");
        self.push(ALARM, &opcode::PollAdd::new(Fd(self.alarm.as_raw_fd()), events).build())
    }

    /// Puts a request into the submission queue; if that is full, submits it first.
    fn push(&mut self, number: u64, entry: &squeue::Entry) -> io::Result<()> {
        let entry = entry.clone().user_data(number);
        loop {
            // SAFETY: what the entry points to must be valid until its completion. The alarm's points to nothing. The others point
            // into a `Pending` that is in `slots` by now: a box whose job keeps its areas, its open file, and by its handler the
            // memory of its pieces. It leaves `slots` in `remove` only, by the completion or because the kernel never takes the
            // entry (`fail_over`); where the worker ends otherwise, it is leaked.
            if unsafe { self.ring.submission().push(&entry) }.is_ok() {
                self.unsubmitted.push_back(number);
                return Ok(());
            }
            if let Err(cause) = self.enter(0) {
                self.unsubmitted.push_back(number);
                return Err(cause);
            }
        }
    }

    /// Submits what is prepared, and waits for so many completions. An error: the ring has failed.
    fn enter(&mut self, completions_min: usize) -> io::Result<()> {
        let outcome = match &mut self.fails_after {
            Some(0) => Err(io::Error::from_raw_os_error(libc::EBADF)),
            Some(calls) => {
                *calls -= 1;
                self.ring.submit_and_wait(completions_min)
            }
            None => self.ring.submit_and_wait(completions_min),
        };
        let not_taken = self.ring.submission().len();
        self.unsubmitted.drain(..self.unsubmitted.len() - not_taken);
        match outcome {
            Ok(_) => Ok(()),
            Err(cause) => match cause.raw_os_error() {
                Some(libc::EINTR) => Ok(()),
                // No memory for requests, or completions that must be taken first.
                Some(libc::EAGAIN | libc::EBUSY) => {
                    if self.take_completions() == 0 {
                        pause();
                    }
                    Ok(())
                }
                _ => Err(cause),
            },
        }
    }

    /// Takes completions from the ring. Returns how many.
    fn take_completions(&mut self) -> usize {
        let before = self.completions.len();
        self.completions.extend(
            self.ring
                .completion()
                .map(|completion| (completion.user_data(), completion.result())),
        );
        self.completions.len() - before
    }

    /// Leaves to the threads what the kernel has not taken, and waits for what it has. Requests that are still in the submission
    /// queue are never submitted.
    fn fail_over(mut self, cause: &io::Error) {
        let untaken = mem::take(&mut self.unsubmitted)
            .into_iter()
            .filter(|&number| number != ALARM);
        let untaken: Vec<RunningJob> = untaken.map(|number| self.slots.remove(number).job).collect();
        let mut state = self.dispatch.state.lock();
        state.backend = Backend::Threads;
        state.why_not_uring = Some(format!("the ring failed: {cause}").into());
        // This thread becomes one of them.
        state.threads += 1;
        state.handed_back.extend(untaken);
        threads::rouse(&self.dispatch, state);
        loop {
            while let Some((number, result)) = self.completions.pop_front() {
                if number == ALARM {
                    continue;
                }
                let mut pending = self.slots.remove(number);
                match next_step(&mut pending, result) {
                    Step::End(outcome) => pending.job.finish(outcome),
                    _ => self.dispatch.state.lock().handed_back.push(pending.job),
                }
                threads::rouse(&self.dispatch, self.dispatch.state.lock());
            }
            if self.slots.is_empty() {
                return;
            }
            // Has the kernel process completions; whether it succeeds shows in what they are.
            // SAFETY: it submits nothing, and passes no argument.
            let _ = unsafe {
                self.ring
                    .submitter()
                    .enter::<libc::sigset_t>(0, 0, ENTER_GETEVENTS, None)
            };
            if self.take_completions() == 0 {
                pause();
            }
        }
    }
}

/// The request for what the job is to attempt.
fn request(job: &Job) -> io::Result<squeue::Entry> {
    let descriptor = Fd(job.descriptor()?.as_raw_fd());
    let areas = job.vectors().as_ptr().cast::<libc::iovec>();
    let count = u32::try_from(job.vectors().len()).expect("at most 1024");
    Ok(match job.operation() {
        Operation::Read => opcode::Readv::new(descriptor, areas, count)
            .offset(job.position())
            .build()
            .flags(flags(job)),
        Operation::Write => opcode::Writev::new(descriptor, areas, count)
            .offset(job.position())
            .build(),
        Operation::Sync => opcode::Fsync::new(descriptor).flags(FsyncFlags::DATASYNC).build(),
    })
}

/// Reads of so many bytes and more begin on the kernel's own threads, several at once: finding and zeroing the memory for one takes
/// longer than waking a thread, and this thread alone could not keep a fast disk busy (decision 0008).
const ASYNC_BYTES_MIN: usize = 64 << 10;

fn flags(job: &Job) -> squeue::Flags {
    let bytes: usize = job.vectors().iter().map(|area| area.0.iov_len).sum();
    if bytes >= ASYNC_BYTES_MIN {
        squeue::Flags::ASYNC
    } else {
        squeue::Flags::empty()
    }
}

/// `IORING_ENTER_GETEVENTS`.
const ENTER_GETEVENTS: u32 = 1;

/// What follows for a job from its completion.
fn next_step(pending: &mut Pending, result: i32) -> Step {
    if mem::take(&mut pending.is_paused) {
        return pending.job.resume();
    }
    let outcome = usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(result.saturating_neg()));
    pending.job.attempted(outcome)
}

fn pause() {
    #[allow(clippy::disallowed_methods)] // A thread of its own, and there is nothing it could do meanwhile.
    thread::sleep(MOMENT);
}
