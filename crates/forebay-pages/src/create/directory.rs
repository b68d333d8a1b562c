//! A directory in which files get their names, and how the names become durable: by one sync for many.
//!
//! Promises: a name is durable when its outcome says so. At most one sync of a directory runs; files that get their names meanwhile
//! share the next one. When a sync fails, all who waited for it get the error: the kernel reports it once, and a later sync that
//! succeeds proves nothing.
//!
//! Knows nothing of what is in the files.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::blocking::blocking;
use crate::storage::faults::{Fault, Faults};
use crate::storage::identity::FileId;
use crate::storage::local::open_file;
use crate::wakers::guarded;

/// How often at most a directory is searched for what killed processes have left: in a large one that takes its time.
const SEARCH_EVERY: Duration = Duration::from_secs(1);

/// The directories in which a pool makes files.
#[derive(Default)]
pub(crate) struct Directories {
    known: Mutex<HashMap<FileId, Known>>,
    faults: Option<Arc<dyn Faults>>,
}

#[derive(Default)]
struct Known {
    directory: Weak<Directory>,
    searched: Option<Instant>,
}

impl Directories {
    pub(crate) fn new(faults: Option<Arc<dyn Faults>>) -> Self {
        Self {
            known: Mutex::default(),
            faults,
        }
    }

    /// The directory that the path leads to now, one for all who make files in it; and whether it is to be searched.
    pub(super) fn open(&self, path: &Path) -> io::Result<(Arc<Directory>, bool)> {
        let file = File::open(path)?;
        let id = open_file::file_id_of(&file.metadata()?);
        let mut all = self.known.lock();
        all.retain(|_, known| !known.is_due() || known.directory.strong_count() > 0);
        let known = all.entry(id).or_default();
        let is_due = known.is_due();
        if is_due {
            known.searched = Some(Instant::now());
        }
        // As long as it is open no other directory has its id.
        if let Some(directory) = known.directory.upgrade() {
            return Ok((directory, is_due));
        }
        let directory = Arc::new(Directory {
            path: path.to_path_buf(),
            file,
            named: AtomicU64::new(0),
            synced: Arc::default(),
            faults: self.faults.clone(),
        });
        known.directory = Arc::downgrade(&directory);
        Ok((directory, is_due))
    }
}

impl Known {
    fn is_due(&self) -> bool {
        self.searched.is_none_or(|then| then.elapsed() >= SEARCH_EVERY)
    }
}

/// A directory.
pub(super) struct Directory {
    path: PathBuf,
    file: File,
    /// How many names were given so far. A name's number is this count, the name included.
    named: AtomicU64,
    synced: Arc<tokio::sync::Mutex<Synced>>,
    faults: Option<Arc<dyn Faults>>,
}

/// A name is durable; whether another's sync did it. Or why it is not durable.
pub(super) type Outcome = Result<bool, Arc<io::Error>>;

/// How far the names are durable. Locked while a sync runs.
#[derive(Default)]
struct Synced {
    /// All names up to this number have been through a sync.
    up_to: u64,
    /// The last number whose sync failed, and why.
    failed: Option<(u64, Arc<io::Error>)>,
}

impl Synced {
    /// How the name's sync ended, if it had one. After a failure, earlier names that have not asked yet get the error as well.
    fn of(&self, number: u64) -> Option<Result<(), Arc<io::Error>>> {
        match &self.failed {
            Some((up_to, cause)) if number <= *up_to => Some(Err(Arc::clone(cause))),
            _ => (number <= self.up_to).then_some(Ok(())),
        }
    }
}

impl Directory {
    /// A file has got its name; the name's number.
    pub(super) fn named(&self) -> u64 {
        // Release, with the load in `make_durable`: what that sees counted has been named.
        self.named.fetch_add(1, Ordering::Release) + 1
    }

    /// Makes the name of this number durable, unless a sync is running. Blocks.
    pub(super) fn make_durable_if_idle(&self, number: u64) -> Option<Outcome> {
        let mut synced = self.synced.try_lock().ok()?;
        Some(self.make_durable(number, &mut synced))
    }

    /// Waits until the name of this number is durable.
    pub(super) async fn durable(self: &Arc<Self>, number: u64) -> Outcome {
        // Waiters go on in the order in which they came, and find that the first of them synced for all.
        let mut synced = guarded(Arc::clone(&self.synced).lock_owned()).await;
        if let Some(outcome) = synced.of(number) {
            return outcome.map(|()| true);
        }
        let directory = Arc::clone(self);
        // The lock goes with it: this future may be dropped, but nobody may miss the outcome of the sync.
        let synced = blocking(move || Ok(directory.make_durable(number, &mut synced))).await;
        synced.unwrap_or_else(|_| Err(Arc::new(io::Error::other("the runtime is shutting down"))))
    }

    fn make_durable(&self, number: u64, synced: &mut Synced) -> Outcome {
        if let Some(outcome) = synced.of(number) {
            return outcome.map(|()| true);
        }
        let up_to = self.named.load(Ordering::Acquire);
        if let Err(cause) = self.sync() {
            synced.failed = Some((up_to, Arc::new(cause)));
        }
        synced.up_to = up_to;
        let outcome = synced.of(number).expect("a sync is for all who were named before it");
        outcome.map(|()| false)
    }

    fn sync(&self) -> io::Result<()> {
        match self
            .faults
            .as_ref()
            .and_then(|faults| faults.fault(&self.path, true, 0, 0))
        {
            Some(Fault::Error(number)) => return Err(io::Error::from_raw_os_error(number)),
            #[allow(clippy::disallowed_methods)] // In tests, on a thread that is there to block.
            Some(Fault::Delay(pause)) => std::thread::sleep(pause),
            Some(Fault::Short(_)) | None => {}
        }
        // Not only its data (fdatasync): file systems differ in what of a directory that is.
        self.file.sync_all()
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use std::future::Future;
    use std::task::Context;

    use super::*;
    use crate::testing::PanickingWaker;

    #[tokio::test]
    async fn whose_sync_ends_is_not_harmed_by_the_waker_of_who_waits_behind_it() {
        let folder = tempfile::tempdir().unwrap();
        let (directory, _) = Directories::new(None).open(folder.path()).unwrap();
        let number = directory.named();
        let syncing = Arc::clone(&directory.synced).lock_owned().await;
        let mut behind = Box::pin(directory.durable(number));
        let panicking = PanickingWaker::waker();
        assert!(behind.as_mut().poll(&mut Context::from_waker(&panicking)).is_pending());
        drop(syncing);
        assert!(behind.await.is_ok());
    }
}
