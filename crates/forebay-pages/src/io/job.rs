//! One transfer on its way: what is to be attempted next, until it has ended.
//!
//! Promises: its landing is told exactly once what became of it, also when a job is dropped halfway, and whatever the landing does,
//! panicking included, the thread goes on. A transfer that was cut short is continued, one that was interrupted is tried again, and
//! one that the file system will not do past the kernel's cache goes through it.
//!
//! Knows which bytes to attempt, and what to make of the answer; a backend (`threads`, `uring`) makes the attempt.

use std::io;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::engine::Shared;
use super::faults::Fault;
use super::queue::ReaderNumber;
use super::{Landing, OpenFile, Operation, Piece, Transfer};

/// More memory areas the kernel does not take at once (its UIO_MAXIOV).
const VECTORS_MAX: usize = 1024;
/// More bytes it does not transfer at once (2^31, less a page).
const BYTES_MAX: usize = 0x7fff_f000;
/// How long to wait when the kernel has no room for a request right now.
const AGAIN_AFTER: Duration = Duration::from_millis(1);
/// So many attempts in a row that bring nothing are too many.
const FRUITLESS_MAX: u32 = 10_000;

/// A memory area as the kernel takes it.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Vector(pub(super) libc::iovec);

// SAFETY: an address and a length, as in `Piece`, which is Send for the same reason.
unsafe impl Send for Vector {}

/// What a backend is to do next with a job.
pub(super) enum Step {
    /// Transfer `vectors` at `position`, from or to `descriptor`; then ask `completed`.
    Transfer,
    /// Make durable what was written to the file; then ask `completed`.
    Sync,
    /// Wait; then ask `resume`.
    Pause(Duration),
    /// It is over: `land`.
    End(io::Result<usize>),
}

/// A transfer that has its turn.
pub(super) struct Job {
    shared: Arc<Shared>,
    reader: ReaderNumber,
    /// When it got its turn.
    began: Instant,
    /// Somebody wanted it then.
    has_begun: bool,
    file: Arc<OpenFile>,
    operation: Operation,
    offset: u64,
    pieces: Vec<Piece>,
    /// `None`: it has been told.
    landing: Option<Box<dyn Landing>>,
    /// The bytes of all pieces.
    total: usize,
    /// <= `total`.
    done: usize,
    /// What is being attempted: areas of `pieces`, from the byte `done` on. They are not changed while an attempt runs.
    vectors: Vec<Vector>,
    /// How many bytes `vectors` have.
    attempted: usize,
    /// Whether the attempt goes past the kernel's cache.
    is_direct: bool,
    /// An attempt to go past the kernel's cache was refused.
    was_refused: bool,
    /// Attempts since the last one that brought something.
    fruitless: u32,
}

impl Job {
    pub(super) fn new(shared: Arc<Shared>, reader: ReaderNumber, transfer: Transfer) -> Self {
        let Transfer {
            file,
            operation,
            offset,
            pieces,
            landing,
        } = transfer;
        Self {
            shared,
            reader,
            began: Instant::now(),
            has_begun: false,
            file,
            operation,
            offset,
            total: pieces.iter().map(|piece| piece.length).sum(),
            pieces,
            landing: Some(landing),
            done: 0,
            vectors: Vec::new(),
            attempted: 0,
            is_direct: false,
            was_refused: false,
            fruitless: 0,
        }
    }

    /// The first step, or the next one of a job that was handed back. `None`: nobody wants it any more, and that has been told.
    pub(super) fn begin(&mut self) -> Option<Step> {
        if mem::replace(&mut self.has_begun, true) {
            return Some(self.attempt());
        }
        let landing = self.landing.as_ref().expect("a job that has not begun has not landed");
        if guarded(|| landing.wanted()) != Some(true) {
            let landing = self.landing.take().expect("it was there");
            guarded(|| landing.called_off());
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

    /// The pause is over: the attempt that was put off.
    pub(super) fn resume(&self) -> Step {
        if self.operation == Operation::Sync {
            Step::Sync
        } else {
            Step::Transfer
        }
    }

    /// The attempt has ended: with so many bytes, or why not. The next step.
    pub(super) fn completed(&mut self, outcome: io::Result<usize>) -> Step {
        self.judge(outcome).unwrap_or_else(|| self.attempt())
    }

    pub(super) fn operation(&self) -> Operation {
        self.operation
    }

    /// Where in the file the attempt begins.
    pub(super) fn position(&self) -> u64 {
        self.offset + self.done as u64
    }

    /// The memory of the attempt. It stays where it is, and unchanged, until the next call of `completed`.
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

    /// It is over.
    pub(super) fn land(mut self, outcome: io::Result<usize>) {
        self.tell(outcome);
    }

    fn tell(&mut self, outcome: io::Result<usize>) {
        if let Some(landing) = self.landing.take() {
            self.shared.latency.record(self.began.elapsed());
            lands(landing, outcome);
        }
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
        let faults = self.shared.faults.as_ref()?;
        let writes = self.operation != Operation::Read;
        guarded(|| faults.fault(self.file.path(), writes, self.position(), self.attempted as u64)).flatten()
    }

    /// Makes `vectors` what is left of the pieces, but not more than the kernel takes at once, nor than `bytes_max`.
    fn prepare(&mut self, bytes_max: usize) {
        self.vectors.clear();
        self.attempted = 0;
        let mut skip = self.done;
        for piece in &self.pieces {
            if skip >= piece.length {
                skip -= piece.length;
                continue;
            }
            let length = (piece.length - skip).min(bytes_max - self.attempted);
            if length == 0 || self.vectors.len() == VECTORS_MAX {
                break;
            }
            let start = piece.start.wrapping_add(skip).cast();
            self.vectors.push(Vector(libc::iovec {
                iov_base: start,
                iov_len: length,
            }));
            self.attempted += length;
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
                    // The file system, or this range of the file, is not for O_DIRECT; or it is wrong in both ways.
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
            bytes <= self.attempted,
            "the kernel transferred {bytes} bytes of {}",
            self.attempted
        );
        if self.was_refused {
            // What was aligned went through the cache, after it did not go past it.
            self.file.refuse_direct();
        }
        if bytes > 0 {
            self.fruitless = 0;
            self.done += bytes;
        } else if self.operation == Operation::Write {
            return Some(Step::End(Err(io::ErrorKind::WriteZero.into())));
        }
        // A read that ends where the file ended when it was opened need not look once more.
        let at_known_end = bytes < self.attempted && self.position() == self.file.identity().length;
        let is_over = bytes == 0 || self.done == self.total || (at_known_end && self.operation == Operation::Read);
        is_over.then_some(Step::End(Ok(self.done)))
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        // Only a panic in the engine leads here with a landing that has not been told.
        self.tell(Err(io::Error::other("given up: the I/O engine panicked")));
        self.shared.ended(self.reader);
    }
}

/// Tells a landing how its transfer ended.
pub(super) fn lands(landing: Box<dyn Landing>, outcome: io::Result<usize>) {
    guarded(|| landing.lands(outcome));
}

/// Calls what is not the engine's. `None`: it panicked.
fn guarded<R>(call: impl FnOnce() -> R) -> Option<R> {
    let outcome = catch_unwind(AssertUnwindSafe(call));
    if outcome.is_err() {
        tracing::error!("what was to be told of an I/O panicked; the engine goes on");
    }
    outcome.ok()
}
