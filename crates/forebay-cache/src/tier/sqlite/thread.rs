//! The thread that owns the store, and does jobs on it in the order in which they were sent.
//!
//! Promises: a bounded queue, and an error at once where it is full; a read whose caller has gone is not made; idle, expired
//! entries are swept. Dropped, the thread does what was sent, closes the file in order, and ends.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, SystemTime};

use tokio::sync::oneshot;

use super::store::{Bounds, Change, Store, unix_ms};
use crate::tier::{OpenError, TierError};

/// Jobs that may wait. A read is some 10 µs a key; who waits behind so many has long given up.
const JOBS_MAX: usize = 1024;
/// How often an idle thread looks for what has expired.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

type Keys = Vec<Option<Vec<u8>>>;
type Stored = Vec<Option<Vec<u8>>>;

enum Job {
    Read {
        keys: Keys,
        now_ms: i64,
        answer: oneshot::Sender<Result<(Keys, Stored), TierError>>,
    },
    Change {
        changes: Vec<Change>,
        answer: oneshot::Sender<Result<(), TierError>>,
    },
    Clear {
        answer: oneshot::Sender<Result<(), TierError>>,
    },
    Close {
        closed: oneshot::Sender<()>,
    },
}

/// A handle to the thread.
pub(super) struct StoreThread {
    jobs: SyncSender<Job>,
}

impl StoreThread {
    /// Starts it and waits until the file is open.
    pub(super) fn start(path: PathBuf, bounds: Bounds, begun_anew: Arc<AtomicU64>) -> Result<Self, OpenError> {
        let (jobs, queue) = sync_channel(JOBS_MAX);
        let (opened, opening) = sync_channel(1);
        let what = path.display().to_string();
        let failed = |cause| OpenError::Failed {
            what: format!("the thread of {what}"),
            cause,
        };
        std::thread::Builder::new()
            .name("forebay-tier".into())
            .spawn(move || {
                // Whoever opened it waits for just this.
                match Store::open(path, bounds, begun_anew) {
                    Ok(store) => {
                        let _ = opened.send(Ok(()));
                        work(store, &queue);
                    }
                    Err(error) => drop(opened.send(Err(error))),
                }
            })
            .map_err(|error| failed(error.into()))?;
        let opened = opening.recv();
        opened.unwrap_or_else(|error| Err(failed(error.into())))?;
        Ok(Self { jobs })
    }

    /// What is stored of these keys, with the keys.
    pub(super) fn read(
        &self,
        keys: Keys,
        now_ms: i64,
    ) -> impl Future<Output = Result<(Keys, Stored), TierError>> + Send + use<> {
        self.send(move |answer| Job::Read { keys, now_ms, answer })
    }

    /// Makes these changes, all or none.
    pub(super) fn change(&self, changes: Vec<Change>) -> impl Future<Output = Result<(), TierError>> + Send + use<> {
        self.send(move |answer| Job::Change { changes, answer })
    }

    /// Removes everything.
    pub(super) fn clear(&self) -> impl Future<Output = Result<(), TierError>> + Send + use<> {
        self.send(move |answer| Job::Clear { answer })
    }

    /// Ends the thread when it has done what was sent.
    pub(super) async fn close(self) {
        let (closed, closing) = oneshot::channel();
        let mut job = Job::Close { closed };
        while let Err(TrySendError::Full(back)) = self.jobs.try_send(job) {
            job = back;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // Sent, or ended already: then the other end is gone.
        let _ = closing.await;
    }

    fn send<T, J>(&self, job: J) -> impl Future<Output = Result<T, TierError>> + Send + use<T, J>
    where
        T: Send + 'static,
        J: FnOnce(oneshot::Sender<Result<T, TierError>>) -> Job,
    {
        let (answer, answered) = oneshot::channel();
        let sent = self.jobs.try_send(job(answer));
        let sent = sent.map_err(|error| match error {
            TrySendError::Full(_) => TierError::Overloaded,
            TrySendError::Disconnected(_) => TierError::Closed,
        });
        async move {
            sent?;
            answered.await.unwrap_or(Err(TierError::Closed))
        }
    }
}

fn work(mut store: Store, queue: &Receiver<Job>) {
    loop {
        // That nobody waits for an answer any more is no error of the thread's.
        match queue.recv_timeout(SWEEP_EVERY) {
            Ok(Job::Read { keys, now_ms, answer }) => {
                if !answer.is_closed() {
                    let _ = answer.send(store.read(&keys, now_ms).map(|stored| (keys, stored)));
                }
            }
            Ok(Job::Change { changes, answer }) => {
                let _ = answer.send(store.change(&changes));
                store.sweep(unix_ms(SystemTime::now()));
            }
            Ok(Job::Clear { answer }) => {
                let _ = answer.send(store.clear());
            }
            Ok(Job::Close { closed }) => {
                store.close();
                let _ = closed.send(());
                return;
            }
            Err(RecvTimeoutError::Timeout) => store.sweep(unix_ms(SystemTime::now())),
            Err(RecvTimeoutError::Disconnected) => {
                store.close();
                return;
            }
        }
    }
}
