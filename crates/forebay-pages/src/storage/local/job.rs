//! One transfer in progress: what is to be attempted next, until it has ended.
//!
//! Promises: its handler is called exactly once, even when the job is dropped halfway; a handler that panics does not
//! harm the thread. A short transfer is continued, an interrupted one is tried again, and one that the file system refuses to do
//! with `O_DIRECT` goes through the kernel's page cache.
//!
//! Knows which bytes to attempt and what follows from the result; a backend (`threads`, `uring`) makes the attempt.

use std::io;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::open_file::OpenFile;
use super::transfer::{Operation, Transfer};
use crate::latency::Histogram;
use crate::storage::faults::{Fault, Faults};
use crate::storage::request::{CompletionHandler, Piece};

/// More memory areas the kernel does not take at once (its UIO_MAXIOV).
const VECTORS_MAX: usize = 1024;
/// More bytes it does not transfer at once (2^31, less a page).
const BYTES_MAX: usize = 0x7fff_f000;
/// How long to wait when the kernel has no room for a request right now.
const AGAIN_AFTER: Duration = Duration::from_millis(1);
/// After so many attempts in a row that transferred nothing the job gives up.
const FRUITLESS_MAX: u32 = 10_000;

/// What all jobs of an engine share.
pub(super) struct JobContext {
    pub(super) latency: Histogram,
    pub(super) faults: Option<Arc<dyn Faults>>,
}

/// A memory area as the kernel takes it.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Vector(pub(super) libc::iovec);

// SAFETY: an address and a length, as in `Piece`, which is Send for the same reason.
unsafe impl Send for Vector {}

/// What a backend is to do next with a job.
pub(super) enum Step {
    /// Transfer `vectors` at `position`, from or to `descriptor`; then call `attempted`.
    Transfer,
    /// Make durable what was written to the file; then call `attempted`.
    Sync,
    /// Wait; then call `resume`.
    Pause(Duration),
    /// It is over: call `end`.
    End(io::Result<usize>),
}

/// A transfer that may run.
pub(super) struct Job {
    context: Arc<JobContext>,
    /// Since when it may run.
    began: Instant,
    /// It was wanted when it was about to begin.
    has_begun: bool,
    file: Arc<OpenFile>,
    operation: Operation,
    offset: u64,
    pieces: Vec<Piece>,
    /// `None`: it has been called.
    handler: Option<Box<dyn CompletionHandler>>,
    /// The bytes of all pieces.
    total: usize,
    /// Of these. <= `total`.
    done: usize,
    /// What is being attempted: areas of `pieces`, from the byte `done` on. They are not changed while an attempt runs.
    vectors: Vec<Vector>,
    /// How many bytes `vectors` have.
    attempted_bytes: usize,
    /// Whether the attempt bypasses the kernel's page cache.
    is_direct: bool,
    /// An attempt to bypass the page cache was refused.
    was_refused: bool,
    /// Attempts since the last one that transferred something.
    fruitless: u32,
}

impl Job {
    pub(super) fn new(context: Arc<JobContext>, transfer: Transfer) -> Self {
        let Transfer {
            file,
            operation,
            offset,
            pieces,
            handler,
        } = transfer;
        Self {
            context,
            began: Instant::now(),
            has_begun: false,
            file,
            operation,
            offset,
            total: pieces.iter().map(|piece| piece.length).sum(),
            pieces,
            handler: Some(handler),
            done: 0,
            vectors: Vec::new(),
            attempted_bytes: 0,
            is_direct: false,
            was_refused: false,
            fruitless: 0,
        }
    }

    /// The first step, or the next one of a job that another backend began. `None`: nobody wanted it, and its handler knows.
    pub(super) fn begin(&mut self) -> Option<Step> {
        if mem::replace(&mut self.has_begun, true) {
            return Some(self.attempt());
        }
        let handler = self.handler.as_ref().expect("a job that has not begun has not ended");
        if guarded(|| handler.is_wanted()) != Some(true) {
            let handler = self.handler.take().expect("it was there");
            guarded(|| handler.cancelled());
            return None;
        }
        let end = i64::try_from(self.offset).ok().zip(i64::try_from(self.total).ok());
        if end.and_then(|(offset, total)| offset.checked_add(total)).is_none() {
            return Some(Step::End(Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "ends where no file can",
            ))));
        }
        if self.operation != Operation::Sync && self.total == 0 {
            return Some(Step::End(Ok(0)));
        }
        Some(self.attempt())
    }

    /// The pause is over: the attempt that was postponed.
    pub(super) fn resume(&self) -> Step {
        if self.operation == Operation::Sync {
            Step::Sync
        } else {
            Step::Transfer
        }
    }

    /// The attempt has ended: with so many bytes, or why not. The next step.
    pub(super) fn attempted(&mut self, outcome: io::Result<usize>) -> Step {
        self.judge(outcome).unwrap_or_else(|| self.attempt())
    }

    pub(super) fn operation(&self) -> Operation {
        self.operation
    }

    /// Where in the file the attempt begins.
    pub(super) fn position(&self) -> u64 {
        self.offset + self.done as u64
    }

    /// The memory of the attempt. It stays where it is, and unchanged, until the next call of `attempted`.
    pub(super) fn vectors(&self) -> &[Vector] {
        &self.vectors
    }

    /// The open file that the attempt goes to.
    pub(super) fn descriptor(&self) -> io::Result<&std::fs::File> {
        if self.is_direct || self.operation == Operation::Sync {
            Ok(self.file.file())
        } else {
            self.file.buffered()
        }
    }

    /// It has ended: calls the handler, unless that was called before.
    pub(super) fn end(&mut self, outcome: io::Result<usize>) {
        if let Some(handler) = self.handler.take() {
            self.context.latency.record(self.began.elapsed());
            complete(handler, outcome);
        }
    }

    /// It is dropped. Only a panic of the engine leads here with a handler that was not called.
    pub(super) fn abandon(&mut self) {
        self.end(Err(io::Error::other("given up: the I/O engine panicked")));
    }

    /// Prepares the next attempt.
    fn attempt(&mut self) -> Step {
        loop {
            self.prepare(BYTES_MAX);
            match self.fault() {
                None => {}
                Some(Fault::Delay(pause)) => return Step::Pause(pause),
                Some(Fault::Short(bytes)) => {
                    let unit = if self.is_direct {
                        self.file.alignment().unwrap_or(1)
                    } else {
                        1
                    };
                    self.prepare((bytes / unit * unit).max(unit));
                }
                Some(Fault::Error(number)) => match self.judge(Err(io::Error::from_raw_os_error(number))) {
                    Some(step) => return step,
                    None => continue,
                },
            }
            return match self.descriptor() {
                Ok(_) => self.resume(),
                Err(cause) => Step::End(Err(cause)),
            };
        }
    }

    fn fault(&self) -> Option<Fault> {
        let faults = self.context.faults.as_ref()?;
        let writes = self.operation != Operation::Read;
        guarded(|| faults.fault(self.file.path(), writes, self.position(), self.attempted_bytes as u64)).flatten()
    }

    /// Makes `vectors` what is left of the pieces, but not more than the kernel takes at once, nor than `bytes_max`.
    fn prepare(&mut self, bytes_max: usize) {
        self.vectors.clear();
        self.attempted_bytes = 0;
        let mut skip = self.done;
        for piece in &self.pieces {
            if skip >= piece.length {
                skip -= piece.length;
                continue;
            }
            let length = (piece.length - skip).min(bytes_max - self.attempted_bytes);
            if length == 0 || self.vectors.len() == VECTORS_MAX {
                break;
            }
            let start = piece.start.wrapping_add(skip).cast();
            self.vectors.push(Vector(libc::iovec {
                iov_base: start,
                iov_len: length,
            }));
            self.attempted_bytes += length;
            skip = 0;
        }
        let position = self.position();
        self.is_direct = !self.was_refused
            && self.file.alignment().is_some_and(|alignment| {
                position.is_multiple_of(alignment as u64)
                    && self.vectors.iter().all(|Vector(area)| {
                        (area.iov_base as usize).is_multiple_of(alignment) && area.iov_len.is_multiple_of(alignment)
                    })
            });
    }

    /// What follows from how an attempt ended. `None`: another attempt.
    fn judge(&mut self, outcome: io::Result<usize>) -> Option<Step> {
        let bytes = match outcome {
            Ok(bytes) => bytes,
            Err(cause) => {
                self.fruitless += 1;
                let may_try_again = self.fruitless <= FRUITLESS_MAX;
                return match cause.raw_os_error() {
                    Some(libc::EINTR) if may_try_again => None,
                    Some(libc::EAGAIN) if may_try_again => Some(Step::Pause(AGAIN_AFTER)),
                    // The file system refuses O_DIRECT, for this range at least; or the request is wrong in both ways.
                    Some(libc::EINVAL | libc::EOPNOTSUPP) if self.is_direct => {
                        self.was_refused = true;
                        None
                    }
                    _ => Some(Step::End(Err(cause))),
                };
            }
        };
        if self.operation == Operation::Sync {
            return Some(Step::End(Ok(0)));
        }
        assert!(
            bytes <= self.attempted_bytes,
            "the kernel transferred {bytes} bytes of {}",
            self.attempted_bytes
        );
        if self.was_refused {
            // An aligned transfer went through the page cache after it was refused with O_DIRECT.
            self.file.refuse_direct();
        }
        if bytes > 0 {
            self.fruitless = 0;
            self.done += bytes;
        } else if self.operation == Operation::Write {
            return Some(Step::End(Err(io::ErrorKind::WriteZero.into())));
        }
        // A read that ends where the file ended when it was opened need not look once more.
        let at_known_end = bytes < self.attempted_bytes && self.position() == self.file.identity().length;
        let is_over = bytes == 0 || self.done == self.total || (at_known_end && self.operation == Operation::Read);
        is_over.then_some(Step::End(Ok(self.done)))
    }
}

/// Calls a handler: its transfer has ended.
pub(super) fn complete(handler: Box<dyn CompletionHandler>, outcome: io::Result<usize>) {
    guarded(|| handler.completed(outcome));
}

/// Calls code that is not the engine's. `None`: it panicked.
fn guarded<R>(call: impl FnOnce() -> R) -> Option<R> {
    let outcome = catch_unwind(AssertUnwindSafe(call));
    if outcome.is_err() {
        tracing::error!("the completion handler of an I/O panicked; the engine goes on");
    }
    outcome.ok()
}
