//! One SQLite connection and an OS thread that does jobs on it, in order; whoever may block can do one himself, between two of them.
//!
//! SQLite's calls block, and a connection's statements and cursors belong to one thread at a time. A job is a closure over the
//! [`Session`], under its lock; its result comes back through a oneshot. A job that panics answers [`WriteError::Internal`] and
//! leaves the connection rolled back and usable. What jobs give and what panics carry is of the users' types: dropped on the thread, it
//! may panic as well, and is no other job's business.

use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use rusqlite::OpenFlags;
use tokio::sync::oneshot;

use super::session::{Session, Settings};
use forebay_batch::panics::{or_message, quietly};
use forebay_write::WriteError;

type Job = Box<dyn FnOnce(&mut Session) + Send>;

/// A handle to the thread. Dropped, the thread ends after the jobs it has.
pub(super) struct SqliteThread {
    // Before `jobs`: the thread has the last reference, and closes the connection.
    session: Arc<Mutex<Session>>,
    jobs: mpsc::Sender<Job>,
    /// Of use only to ask whether it has ended.
    thread: JoinHandle<()>,
}

impl SqliteThread {
    /// Starts the thread and opens its connection; `set_up` runs on it before the first job.
    pub(super) async fn start<R: Send + 'static>(
        name: &str,
        path: PathBuf,
        flags: OpenFlags,
        settings: Settings,
        set_up: impl FnOnce(&mut Session) -> rusqlite::Result<R> + Send + 'static,
    ) -> Result<(Self, R), StartError> {
        let (opened, opening) = oneshot::channel();
        let (jobs, thread) = Self::spawn(name, path, flags, settings, set_up, opened)?;
        let (session, ready) = opening.await.map_err(|_| StartError::Stopped)??;
        let own = Self { session, jobs, thread };
        Ok((own, ready))
    }

    /// As [`start`](Self::start), waiting on the calling thread.
    pub(super) fn start_blocking<R: Send + 'static>(
        name: &str,
        path: PathBuf,
        flags: OpenFlags,
        settings: Settings,
        set_up: impl FnOnce(&mut Session) -> rusqlite::Result<R> + Send + 'static,
    ) -> Result<(Self, R), StartError> {
        let (opened, opening) = mpsc::sync_channel(1);
        let (jobs, thread) = Self::spawn(name, path, flags, settings, set_up, opened)?;
        let (session, ready) = opening.recv().map_err(|_| StartError::Stopped)??;
        let own = Self { session, jobs, thread };
        Ok((own, ready))
    }

    fn spawn<R: Send + 'static>(
        name: &str,
        path: PathBuf,
        flags: OpenFlags,
        settings: Settings,
        set_up: impl FnOnce(&mut Session) -> rusqlite::Result<R> + Send + 'static,
        opened: impl Opened<R>,
    ) -> Result<(mpsc::Sender<Job>, JoinHandle<()>), StartError> {
        // Bounded by who sends: a thread is given to one user at a time, who waits for each job.
        let (jobs, queue) = mpsc::channel::<Job>();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            // What panics outside of all jobs ends the thread, and must not carry anything that std drops.
            quietly(|| {
                let mut session = match Session::open(&path, flags, settings) {
                    Ok(session) => session,
                    Err(error) => return opened.tell(Err(error)),
                };
                let ready = match set_up(&mut session) {
                    Ok(ready) => ready,
                    Err(error) => return opened.tell(Err(error)),
                };
                let session = Arc::new(Mutex::new(session));
                opened.tell(Ok((Arc::clone(&session), ready)));
                for job in queue {
                    job(&mut session.lock());
                }
            });
        })?;
        Ok((jobs, thread))
    }

    /// Does one job and gives its result.
    ///
    /// # Cancel safety
    /// Dropped before it completes, the job is done all the same and its result dropped.
    pub(super) fn run<R, J>(&self, job: J) -> impl Future<Output = Result<R, WriteError>> + Send + use<R, J>
    where
        R: Send + 'static,
        J: FnOnce(&mut Session) -> R + Send + 'static,
    {
        self.run_leaving(move |session| (job(session), ()))
    }

    /// As [`run`](Self::run), for a job that leaves something behind that takes time to drop: the result is given first.
    pub(super) fn run_leaving<R, L, J>(
        &self,
        job: J,
    ) -> impl Future<Output = Result<R, WriteError>> + Send + use<R, L, J>
    where
        R: Send + 'static,
        J: FnOnce(&mut Session) -> (R, L) + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let sent = self.jobs.send(Box::new(move |session| {
            let (result, left) = match caught(session, job) {
                Ok((result, left)) => (Ok(result), Some(left)),
                Err(error) => (Err(error), None),
            };
            // Nobody may be waiting any more: then the result is dropped here.
            quietly(|| drop(answer.send(result)));
            quietly(|| drop(left));
        }));
        async move {
            match sent {
                Ok(()) => answered.await.unwrap_or(Err(WriteError::Closed)),
                Err(_) => Err(WriteError::Closed),
            }
        }
    }

    /// Does one job on the calling thread, when the one that runs is done.
    pub(super) fn run_here<R>(&self, job: impl FnOnce(&mut Session) -> R) -> Result<R, WriteError> {
        caught(&mut self.session.lock(), job)
    }

    /// Does one job without waiting for it.
    pub(super) fn post(&self, job: impl FnOnce(&mut Session) + Send + 'static) {
        drop(self.run(job));
    }

    /// Whether the thread does no job any more. It ends by itself only where something panics that no job is to answer for.
    pub(super) fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends the thread by a panic outside of all jobs, behind what `work` does.
    #[cfg(test)]
    pub(super) fn end_by_panic(&self, work: impl FnOnce() + Send + 'static) {
        let sent = self.jobs.send(Box::new(move |_| {
            work();
            std::panic::panic_any("as asked");
        }));
        assert!(sent.is_ok(), "it has not ended before");
    }
}

/// Does a job; after a panic nothing of it is left.
fn caught<R>(session: &mut Session, job: impl FnOnce(&mut Session) -> R) -> Result<R, WriteError> {
    or_message(|| job(session)).map_err(|message| {
        session.close_cursors();
        session.rollback();
        WriteError::Internal {
            cause: message.as_ref().to_owned(),
        }
    })
}

/// A session that is open, and what its setting up gave.
type Open<R> = rusqlite::Result<(Arc<Mutex<Session>>, R)>;

/// Why a thread with its connection did not start.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    #[error("no thread: {0}")]
    Thread(#[from] std::io::Error),
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error("the thread stopped while it opened the database")]
    Stopped,
}

/// Where the thread tells whether it has opened its connection.
trait Opened<R>: Send + 'static {
    fn tell(self, opened: Open<R>);
}

impl<R: Send + 'static> Opened<R> for oneshot::Sender<Open<R>> {
    fn tell(self, opened: Open<R>) {
        // Whoever wanted it may have gone; the thread then ends with its queue.
        let _ = self.send(opened);
    }
}

impl<R: Send + 'static> Opened<R> for mpsc::SyncSender<Open<R>> {
    fn tell(self, opened: Open<R>) {
        let _ = self.send(opened);
    }
}
