//! A tier in a SQLite file of its own: the next start of the program finds what this one fetched.
//!
//! Promises:
//! - A change is durable against the end of this process, however it ends: what was acknowledged as deleted is gone after it, and
//!   what was kept is there. Nothing waits for the disk to sync (`synchronous=OFF`), because a file that a crash of the **machine**
//!   left behind is not read: it knows the boot it was written in, and whether it was closed in order, which is synced.
//! - Bounded in entries and in bytes, the oldest go first; what has expired goes in small steps. The file stays below
//!   about twice the bytes, also where it was larger at the start: where its pages do not suffice, more of the oldest go. What does not fit on the disk is a failed put.
//! - A file that is corrupt is renamed (`….corrupt`, in place of the one before) and a new one is made, at the start or when it is met; a
//!   database of another program is refused and not touched.
//! - SQLite runs on a thread of its own; a caller who goes away stops nothing and waits for nothing.
//!
//! Does not know other processes: the file is locked for this one.

mod store;
mod thread;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::SystemTime;

use futures_util::future::BoxFuture;

use self::store::{Bounds, Change, unix_ms, whole_ms};
use self::thread::StoreThread;
use super::{Form, Kept, OpenError, Put, Tier, TierError};

/// One transaction's values are about so large at most.
const TRANSACTION_BYTES: usize = 4 << 20;

/// Chooses a tier's limits; see [`SqliteTier::builder`].
#[must_use = "a builder does nothing until it opens"]
pub struct SqliteTierBuilder<K, V> {
    path: PathBuf,
    form: Form<K, V>,
    bounds: Bounds,
}

impl<K, V> SqliteTierBuilder<K, V> {
    /// Most entries. Default: 1,000,000.
    ///
    /// # Panics
    ///
    /// When it is 0: nothing could be kept.
    #[track_caller]
    pub fn max_entries(mut self, entries: u64) -> Self {
        assert!(entries > 0, "max_entries must be at least 1: otherwise nothing is kept");
        self.bounds.entries = entries;
        self
    }

    /// Most bytes of values, and of keys twice, for they are in the index too, and 64 for each entry. Default: 1 GiB.
    ///
    /// # Panics
    ///
    /// When it is 0: nothing could be kept.
    #[track_caller]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        assert!(bytes > 0, "max_bytes must be at least 1: otherwise nothing is kept");
        self.bounds.bytes = bytes.min(1 << 45);
        self
    }

    /// Opens the file, or begins it. Takes as long as opening a file does.
    ///
    /// # Errors
    /// When the file is another program's database, is in use, or cannot be made.
    pub fn open(self) -> Result<SqliteTier<K, V>, OpenError> {
        self.form.check()?;
        let begun_anew = Arc::new(AtomicU64::new(0));
        let thread = StoreThread::start(self.path, self.bounds, Arc::clone(&begun_anew))?;
        Ok(SqliteTier {
            thread,
            form: self.form,
            begun_anew,
        })
    }
}

impl<K, V> fmt::Debug for SqliteTierBuilder<K, V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SqliteTierBuilder")
            .field("path", &self.path)
            .field("form", &self.form)
            .field("bounds", &self.bounds)
            .finish()
    }
}

/// A tier in a SQLite file.
///
/// ```no_run
/// use forebay::cache::tier::{Form, KeyForm, Postcard, sqlite::SqliteTier};
///
/// let form: Form<u64, String> = Form::new("names", KeyForm::display(), Postcard);
/// let tier = SqliteTier::builder("names.cache", form).max_bytes(256 << 20).open()?;
/// # Ok::<(), forebay::cache::tier::OpenError>(())
/// ```
pub struct SqliteTier<K, V> {
    thread: StoreThread,
    form: Form<K, V>,
    begun_anew: Arc<AtomicU64>,
}

impl<K, V> fmt::Debug for SqliteTier<K, V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SqliteTier")
            .field("form", &self.form)
            .finish_non_exhaustive()
    }
}

impl<K, V> SqliteTier<K, V> {
    /// A tier in this file, with nothing chosen yet. A file has one namespace: others' entries in it are not read.
    pub fn builder(path: impl AsRef<Path>, form: Form<K, V>) -> SqliteTierBuilder<K, V> {
        SqliteTierBuilder {
            path: path.as_ref().to_path_buf(),
            form,
            bounds: Bounds {
                entries: 1_000_000,
                bytes: 1 << 30,
            },
        }
    }

    /// How often the file was found corrupt, or left behind by a crash of the machine, and was begun anew; since it was opened,
    /// the opening included.
    #[must_use]
    pub fn begun_anew(&self) -> u64 {
        self.begun_anew.load(Relaxed)
    }

    /// Closes the file in order and waits until that is done, so that it can be opened elsewhere. Dropping the tier closes it too,
    /// a moment later.
    pub async fn close(self) {
        self.thread.close().await;
    }
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static> SqliteTier<K, V> {
    async fn read(&self, keys: &[K]) -> Result<Vec<Option<Kept<V>>>, TierError> {
        let written: Vec<Option<Vec<u8>>> = keys.iter().map(|key| self.form.key(key)).collect();
        let now_ms = unix_ms(SystemTime::now());
        let (written, stored) = self.thread.read(written, now_ms).await?;
        let entries = written.iter().zip(stored);
        // Here and not on the thread, so that many values are decoded by many.
        Ok(entries
            .map(|(key, stored)| Some(self.form.open(key.as_deref()?, &stored?)?.kept))
            .collect())
    }

    async fn write(&self, entries: &[Put<K, V>]) -> Result<(), TierError> {
        let (mut changes, mut bytes) = (Vec::new(), 0);
        for put in entries {
            let Some(key) = self.form.key(&put.key) else { continue };
            let value = self
                .form
                .seal(&key, &put.kept, put.since)
                .filter(|_| !put.keep_for.is_zero());
            bytes += key.len() + value.as_ref().map_or(0, Vec::len);
            let expires_at_ms = unix_ms(SystemTime::now()).saturating_add(whole_ms(put.keep_for));
            changes.push(Change {
                key,
                value: value.map(|value| (value, expires_at_ms)),
            });
            if bytes >= TRANSACTION_BYTES {
                self.thread.change(std::mem::take(&mut changes)).await?;
                bytes = 0;
            }
        }
        self.thread.change(changes).await
    }
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static> Tier<K, V> for SqliteTier<K, V> {
    fn name(&self) -> &str {
        "sqlite"
    }

    fn get_many<'a>(&'a self, keys: &'a [K]) -> BoxFuture<'a, Result<Vec<Option<Kept<V>>>, TierError>> {
        Box::pin(self.read(keys))
    }

    fn put_many<'a>(&'a self, entries: &'a [Put<K, V>]) -> BoxFuture<'a, Result<(), TierError>> {
        Box::pin(self.write(entries))
    }

    fn delete_many<'a>(&'a self, keys: &'a [K]) -> BoxFuture<'a, Result<(), TierError>> {
        let written = keys.iter().filter_map(|key| self.form.key(key));
        let changes = written.map(|key| Change { key, value: None }).collect();
        Box::pin(self.thread.change(changes))
    }

    fn clear<'a>(&'a self) -> BoxFuture<'a, Result<(), TierError>> {
        Box::pin(self.thread.clear())
    }

    fn undecodable(&self) -> u64 {
        self.form.undecodable()
    }
}
