//! The pool of reading connections.
//!
//! Each is an OS thread with a read-only connection of its own, started when one is wanted and none is idle, up to a
//! limit; then whoever wants one waits its turn. A read that starts sees every commit acknowledged before it started,
//! because a pooled connection holds no snapshot between its users. One whose thread has ended is nobody's any more: another is started.
//!
//! Whoever has a connection and cannot go on for a while (its own client takes nothing) may step aside: it keeps the
//! connection and what it reads, and another may have one in its place. At most as many may stand aside as the pool has connections.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::OpenFlags;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::location::Location;
use super::open_error::OpenError;
use super::session::{Session, Settings};
use super::thread::SqliteThread;
use forebay_write::{CancelToken, WriteError};

pub(super) struct Readers {
    path: PathBuf,
    settings: Settings,
    /// What a new connection must have opened.
    location: Option<Arc<Location>>,
    idle: Mutex<Vec<SqliteThread>>,
    /// One permit a connection that may be in use.
    permits: Arc<Semaphore>,
    /// One permit a connection that may be kept by who stands aside.
    aside: Arc<Semaphore>,
    idle_max: usize,
}

impl Readers {
    pub(super) fn new(
        path: PathBuf,
        settings: Settings,
        location: Option<Arc<Location>>,
        max_readers: usize,
    ) -> Arc<Self> {
        let max_readers = max_readers.min(Semaphore::MAX_PERMITS);
        Arc::new(Self {
            path,
            settings,
            location,
            idle: Mutex::new(Vec::new()),
            permits: Arc::new(Semaphore::new(max_readers)),
            aside: Arc::new(Semaphore::new(max_readers)),
            idle_max: max_readers,
        })
    }

    /// Takes a connection, a new one if none is idle.
    pub(super) async fn take(self: &Arc<Self>) -> Result<Reader, WriteError> {
        let permit = Arc::clone(&self.permits)
            .acquire_owned()
            .await
            .map_err(|_| WriteError::Closed)?;
        let thread = match self.take_idle() {
            Some(thread) => thread,
            None => self.start().await?,
        };
        Ok(Reader {
            thread: Some(thread),
            readers: Arc::clone(self),
            standing: Standing::InUse { _permit: permit },
        })
    }

    fn take_idle(&self) -> Option<SqliteThread> {
        loop {
            // A thread that has ended closes its connection when it is dropped: not under the lock.
            let thread = self.idle.lock().pop()?;
            if !thread.has_ended() {
                return Some(thread);
            }
        }
    }

    async fn start(&self) -> Result<SqliteThread, WriteError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let started = SqliteThread::start("forebay-read", self.path.clone(), flags, self.settings.clone(), |_| {
            Ok(())
        });
        match started.await {
            Ok((thread, ())) => {
                // Another file of the same name is another database: nobody is to read half from one and half from the other.
                self.location
                    .as_ref()
                    .map_or(Ok(()), |location| location.look_at_database())?;
                Ok(thread)
            }
            Err(error) => Err(OpenError::new(&self.path, error).into()),
        }
    }

    pub(super) fn are_all_taken(&self) -> bool {
        self.permits.available_permits() == 0
    }

    pub(super) fn close(&self) {
        self.permits.close();
        self.idle.lock().clear();
    }
}

/// A reading connection, taken from the pool until it is dropped. Cursors opened on it are closed then.
pub struct Reader {
    /// Always there until dropped.
    thread: Option<SqliteThread>,
    readers: Arc<Readers>,
    standing: Standing,
}

/// What a reader counts as.
enum Standing {
    /// One of the connections that may be in use.
    InUse { _permit: OwnedSemaphorePermit },
    /// One of those that are kept and not used.
    Aside { _permit: OwnedSemaphorePermit },
}

impl Reader {
    /// Does `job` on the connection's thread.
    ///
    /// # Errors
    /// [`WriteError::Closed`] if the database was closed, [`WriteError::Internal`] if the job panicked.
    ///
    /// # Cancel safety
    /// Dropped before it completes, `token` is cancelled, so that what runs is interrupted.
    pub async fn run<R: Send + 'static>(
        &self,
        token: &CancelToken,
        job: impl FnOnce(&mut Session) -> R + Send + 'static,
    ) -> Result<R, WriteError> {
        let running = CancelOnDrop(Some(token));
        let result = self.thread().run(job).await;
        running.completed();
        result
    }

    /// Fixes what this reader sees to the state of now, until it is dropped.
    ///
    /// # Errors
    /// SQLite's, if the file cannot be read.
    pub async fn hold_snapshot(&self) -> Result<(), WriteError> {
        self.thread()
            .run(|session| {
                session.trusted("BEGIN DEFERRED").map_err(|failure| failure.error)?;
                let looked = session
                    .connection()
                    .query_row("SELECT count(*) FROM sqlite_schema", (), |_| Ok(()));
                looked.map_err(|error| session.explain(&error))
            })
            .await?
    }

    /// Lets another have a connection in its place, and keeps its own, with its cursors and its snapshot. Nothing may be run until
    /// [`step_back`](Self::step_back) is done. False if too many stand aside already: then nothing has changed.
    pub fn step_aside(&mut self) -> bool {
        if let Standing::InUse { .. } = self.standing {
            let Ok(permit) = Arc::clone(&self.readers.aside).try_acquire_owned() else {
                return false;
            };
            self.standing = Standing::Aside { _permit: permit };
        }
        true
    }

    /// Takes its place among those in use again; waits its turn for it. Nothing if it has not stepped aside.
    ///
    /// # Errors
    /// [`WriteError::Closed`].
    ///
    /// # Cancel safety
    /// Dropped before it completes, it stands aside as before.
    pub async fn step_back(&mut self) -> Result<(), WriteError> {
        if let Standing::Aside { .. } = self.standing {
            let permit = Arc::clone(&self.readers.permits)
                .acquire_owned()
                .await
                .map_err(|_| WriteError::Closed)?;
            self.standing = Standing::InUse { _permit: permit };
        }
        Ok(())
    }

    fn thread(&self) -> &SqliteThread {
        self.thread
            .as_ref()
            .expect("a reader has its thread until it is dropped")
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let thread = self.thread.take().expect("a reader is dropped once");
        // Done in order: whoever takes the thread next finds it clean.
        thread.post(|session| {
            session.close_cursors();
            session.rollback();
        });
        if !self.readers.permits.is_closed() && !thread.has_ended() {
            let mut idle = self.readers.idle.lock();
            // Those who stood aside had more of them than there are places.
            if idle.len() < self.readers.idle_max {
                idle.push(thread);
            }
        }
    }
}

/// Cancels the token if the future that waits for a job is dropped.
pub(super) struct CancelOnDrop<'a>(pub(super) Option<&'a CancelToken>);

impl CancelOnDrop<'_> {
    pub(super) fn completed(mut self) {
        self.0 = None;
    }
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(token) = self.0 {
            token.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::Sqlite;

    async fn until(what: impl Fn() -> bool) {
        let looks = async {
            while !what() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), looks)
            .await
            .expect("it comes to be so");
    }

    #[tokio::test]
    async fn a_thread_that_has_ended_is_nobodys_reader() {
        let folder = tempfile::tempdir().expect("a folder");
        let opened = Sqlite::builder(folder.path().join("test.db")).max_readers(1).open();
        let sqlite = opened.expect("a database");
        let readers = &sqlite.inner.readers;

        // While it is in use: it is not put back.
        let reader = sqlite.reader().await.expect("a reader");
        reader.thread().end_by_panic(|| {});
        until(|| reader.thread().has_ended()).await;
        drop(reader);
        assert_eq!(readers.idle.lock().len(), 0);
        assert!(sqlite.query("SELECT 1", ()).await.is_ok());

        // While it is idle: it is not taken.
        let reader = sqlite.reader().await.expect("a reader");
        let (let_go, wait) = std::sync::mpsc::channel::<()>();
        reader.thread().end_by_panic(move || {
            let _ = wait.recv();
        });
        drop(reader);
        assert_eq!(readers.idle.lock().len(), 1);
        drop(let_go);
        until(|| readers.idle.lock()[0].has_ended()).await;
        for _ in 0..2 {
            assert!(sqlite.query("SELECT 1", ()).await.is_ok());
        }
        assert_eq!(readers.idle.lock().len(), 1);
    }
}
