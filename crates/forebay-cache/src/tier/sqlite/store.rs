//! The file: entries in a table, in the order in which they were written.
//!
//! Promises as the parent module says. Knows keys and values as bytes only. Blocks: it belongs to one thread.
//!
//! The mark that says whether the file may be read is one row: the boot it was opened in, or `closed`. It is written with
//! `synchronous=FULL` and checkpointed into the file before the first change and after the last one, so a machine that crashed
//! in between left a file whose mark names a boot that is over.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, ErrorCode, OptionalExtension, params};

use crate::tier::{OpenError, TierError};

/// Marks the file as ours in its header: "FBtc".
const APPLICATION: i32 = 0x4642_7463;
/// Of the tables; a file of another version is begun anew.
const FORMAT: i32 = 1;
/// Besides its key and value, an entry counts for so many bytes.
const ENTRY_BYTES: u64 = 64;
/// An entry that is added takes so many pages at most, besides those that its bytes fill: of the table and of its two indexes.
const ENTRY_PAGES: u64 = 6;
/// Rows a sweep removes, so that nobody waits long behind it.
const SWEEP_ROWS: u32 = 256;
/// Another program may look at the file for a moment; the tier of a cache that was just dropped may still close it.
const BUSY: Duration = Duration::from_secs(2);
const CLOSED: &str = "closed";

/// What the file may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) entries: u64,
    pub(super) bytes: u64,
}

/// What becomes of a key: a value with its expiry in Unix milliseconds, or nothing.
pub(super) struct Change {
    pub(super) key: Vec<u8>,
    pub(super) value: Option<(Vec<u8>, i64)>,
}

/// See the module.
pub(super) struct Store {
    path: PathBuf,
    bounds: Bounds,
    begun_anew: Arc<AtomicU64>,
    /// None when even a new file could not be made; tried again at the next job.
    file: Option<File>,
}

/// An open file, and what is in it.
struct File {
    connection: Connection,
    holds: Bounds,
    page_bytes: u64,
}

/// What an existing file is to us.
enum Found {
    Usable(File),
    /// Ours, and left behind by a crash of the machine, or of another version.
    Untrusted,
    Foreign,
}

impl Store {
    pub(super) fn open(path: PathBuf, bounds: Bounds, begun_anew: Arc<AtomicU64>) -> Result<Self, OpenError> {
        let mut store = Self {
            path,
            bounds,
            begun_anew,
            file: None,
        };
        let name = || store.path.display().to_string();
        let failed = |cause: rusqlite::Error| match code(&cause) {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => OpenError::InUse { path: name() },
            _ => OpenError::Failed {
                what: name(),
                cause: cause.into(),
            },
        };
        let file = match File::open(&store.path, bounds) {
            Ok(Found::Usable(file)) => file,
            Ok(Found::Foreign) => return Err(OpenError::Foreign { path: name() }),
            Ok(Found::Untrusted) => store.begin_anew(false).map_err(failed)?,
            Err(error) if is_corrupt(&error) => store.begin_anew(true).map_err(failed)?,
            Err(error) => return Err(failed(error)),
        };
        store.file = Some(file);
        Ok(store)
    }

    /// What is stored of each key, unless it has expired.
    pub(super) fn read(&mut self, keys: &[Option<Vec<u8>>], now_ms: i64) -> Result<Vec<Option<Vec<u8>>>, TierError> {
        self.run("read from the tier's file", |file, _| file.read(keys, now_ms))
    }

    /// Makes all changes or none.
    pub(super) fn change(&mut self, changes: &[Change]) -> Result<(), TierError> {
        if changes.is_empty() {
            return Ok(());
        }
        let only_deletes = changes.iter().all(|change| change.value.is_none());
        let begun_anew = self.begun_anew.load(Relaxed);
        let changed = self.run("write to the tier's file", |file, bounds| file.change(changes, bounds));
        // In a new file there is nothing left to delete.
        if changed.is_err() && only_deletes && self.file.is_some() && begun_anew != self.begun_anew.load(Relaxed) {
            return Ok(());
        }
        changed
    }

    /// Removes everything.
    pub(super) fn clear(&mut self) -> Result<(), TierError> {
        let begun_anew = self.begun_anew.load(Relaxed);
        let cleared = self.run("clear the tier's file", |file, _| file.clear());
        if cleared.is_err() && self.file.is_some() && begun_anew != self.begun_anew.load(Relaxed) {
            return Ok(());
        }
        cleared
    }

    /// Removes some of what has expired. What goes wrong with that goes wrong again for someone who is told.
    pub(super) fn sweep(&mut self, now_ms: i64) {
        let _ = self.run("sweep the tier's file", |file, _| file.sweep(now_ms));
    }

    /// Leaves a file that the next start may read, whatever becomes of the machine.
    pub(super) fn close(mut self) {
        if let Some(file) = self.file.take()
            && let Err(error) = file.close()
        {
            tracing::debug!(path = %self.path.display(), %error, "the tier's file was not closed in order");
        }
    }

    fn run<T>(
        &mut self,
        what: &'static str,
        job: impl FnOnce(&mut File, Bounds) -> rusqlite::Result<T>,
    ) -> Result<T, TierError> {
        let failed = |error: rusqlite::Error| TierError::failed(what, error);
        if self.file.is_none() {
            self.file = Some(self.begin_anew(false).map_err(failed)?);
        }
        let file = self.file.as_mut().expect("it was made a line above");
        match job(file, self.bounds) {
            Err(error) if is_corrupt(&error) => {
                self.file = None;
                tracing::warn!(path = %self.path.display(), %error, "the tier's file is corrupt and begun anew");
                self.file = self.begin_anew(true).ok();
                Err(failed(error))
            }
            outcome => outcome.map_err(failed),
        }
    }

    /// Removes the file, or sets it aside, and makes an empty one.
    fn begin_anew(&self, set_aside: bool) -> rusqlite::Result<File> {
        let beside = |suffix: &str| {
            let mut name = self.path.clone().into_os_string();
            name.push(suffix);
            PathBuf::from(name)
        };
        // One that cannot be moved is removed; one that cannot be removed is met again below.
        if !set_aside || fs::rename(&self.path, beside(".corrupt")).is_err() {
            let _ = fs::remove_file(&self.path);
        }
        // Pages of the old file must not get into the new one.
        for suffix in ["-wal", "-shm", "-journal"] {
            let _ = fs::remove_file(beside(suffix));
        }
        self.begun_anew.fetch_add(1, Relaxed);
        match File::open(&self.path, self.bounds)? {
            Found::Usable(file) => Ok(file),
            Found::Untrusted | Found::Foreign => Err(rusqlite::Error::InvalidPath(self.path.clone())),
        }
    }
}

impl File {
    fn open(path: &Path, bounds: Bounds) -> rusqlite::Result<Found> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY)?;
        // Before the first look, so that the lock is taken for good, and the index of the log is in memory.
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        let application: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
        let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        if application != APPLICATION && (application != 0 || tables != 0) {
            return Ok(Found::Foreign);
        }
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "journal_size_limit", 8 << 20)?;
        let boot = boot();
        if application == APPLICATION {
            let format: i32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
            if format != FORMAT {
                return Ok(Found::Untrusted);
            }
            let mark: Option<String> = connection
                .query_row("SELECT value FROM mark", [], |row| row.get(0))
                .optional()?;
            let is_trusted = mark.is_some_and(|mark| mark == CLOSED || Some(mark) == boot);
            if !is_trusted {
                return Ok(Found::Untrusted);
            }
        } else {
            connection.execute_batch(&format!(
                "BEGIN;
                 CREATE TABLE entries (
                     id INTEGER PRIMARY KEY, -- grows: the oldest has the least
                     key BLOB NOT NULL UNIQUE,
                     value BLOB NOT NULL,
                     expires_at_ms INTEGER NOT NULL
                 );
                 CREATE INDEX entries_by_expiry ON entries (expires_at_ms);
                 CREATE TABLE mark (value TEXT NOT NULL);
                 PRAGMA application_id = {APPLICATION};
                 PRAGMA user_version = {FORMAT};
                 COMMIT;"
            ))?;
        }
        // A system that does not name its boots gets a name that no boot has.
        set_mark(&connection, boot.as_deref().unwrap_or("unknown"))?;
        connection.pragma_update(None, "synchronous", "OFF")?;
        let page_bytes: u64 = connection
            .pragma_query_value(None, "page_size", |row| row.get::<_, i64>(0))?
            .unsigned_abs();
        let pages = ((bounds.bytes * 2 + (1 << 20)) / page_bytes.max(512)).min(u64::from(u32::MAX) - 1);
        let sizes = "SELECT count(*), ifnull(sum(2 * length(key) + length(value)), 0) FROM entries";
        let (entries, bytes) =
            connection.query_row(sizes, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
        let entries = entries.unsigned_abs();
        let holds = Bounds {
            entries,
            bytes: bytes.unsigned_abs() + entries * ENTRY_BYTES,
        };
        let mut file = Self {
            connection,
            holds,
            page_bytes,
        };
        // It may have been allowed to be larger before.
        match file.shrink(bounds, pages) {
            Err(error) if is_corrupt(&error) => return Err(error),
            Err(error) => {
                tracing::debug!(path = %path.display(), %error, "the tier's file stays larger than it is to be");
            }
            Ok(()) => {}
        }
        // No fewer than there are: then those are all.
        let limit = format!("PRAGMA max_page_count = {pages}");
        file.connection.query_row(&limit, [], |_| Ok(()))?;
        Ok(Found::Usable(file))
    }

    /// Keeps what is within the bounds, and so many pages, if need be by writing all that is kept anew.
    fn shrink(&mut self, bounds: Bounds, pages: u64) -> rusqlite::Result<()> {
        let mut holds = self.holds;
        evict(&self.connection, &mut holds, bounds)?;
        self.holds = holds;
        if self.count("page_count")? > pages {
            self.connection.execute_batch("VACUUM")?;
            checkpoint(&self.connection)?;
        }
        Ok(())
    }

    /// What the pragma of this name says.
    fn count(&self, pragma: &str) -> rusqlite::Result<u64> {
        let counted = self
            .connection
            .pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
        Ok(counted?.unsigned_abs())
    }

    fn read(&self, keys: &[Option<Vec<u8>>], now_ms: i64) -> rusqlite::Result<Vec<Option<Vec<u8>>>> {
        let mut find = self
            .connection
            .prepare_cached("SELECT value FROM entries WHERE key = ?1 AND expires_at_ms > ?2")?;
        let mut find = |key: &Option<Vec<u8>>| match key {
            Some(key) => find.query_row(params![key, now_ms], |row| row.get(0)).optional(),
            None => Ok(None),
        };
        keys.iter().map(&mut find).collect()
    }

    /// Makes all changes or none. Where the file's pages do not suffice for them the oldest go, some at a time.
    fn change(&mut self, changes: &[Change], bounds: Bounds) -> rusqlite::Result<()> {
        let some = self.holds.entries.div_ceil(8);
        loop {
            match self.try_change(changes, bounds) {
                Err(error) if code(&error) == Some(ErrorCode::DiskFull) && self.may_lack_pages(changes)? => {
                    let mut holds = self.holds;
                    let fewer = Bounds {
                        entries: holds.entries.saturating_sub(some),
                        ..bounds
                    };
                    evict(&self.connection, &mut holds, fewer)?;
                    self.holds = holds;
                }
                outcome => return outcome,
            }
        }
    }

    /// Whether these may need more pages than the file may still have, and something can go: else it is the disk that is full, and on it nothing
    /// is gained by that.
    fn may_lack_pages(&self, changes: &[Change]) -> rusqlite::Result<bool> {
        let (all, used, free) = (
            self.count("max_page_count")?,
            self.count("page_count")?,
            self.count("freelist_count")?,
        );
        let needs = |change: &Change| change.bytes().map_or(0, |bytes| bytes / self.page_bytes + ENTRY_PAGES);
        let needed: u64 = changes.iter().map(needs).sum();
        Ok(self.holds.entries > 0 && all.saturating_sub(used) + free < needed)
    }

    fn try_change(&mut self, changes: &[Change], bounds: Bounds) -> rusqlite::Result<()> {
        let mut holds = self.holds;
        let transaction = self.connection.transaction()?;
        {
            let mut remove = transaction
                .prepare_cached("DELETE FROM entries WHERE key = ?1 RETURNING 2 * length(key) + length(value)")?;
            let mut add =
                transaction.prepare_cached("INSERT INTO entries (key, value, expires_at_ms) VALUES (?1, ?2, ?3)")?;
            // All that make room first, so that it is there for those that come.
            let mut coming = Bounds { entries: 0, bytes: 0 };
            for change in changes {
                let removed: Option<i64> = remove.query_row([&change.key], |row| row.get(0)).optional()?;
                holds.remove(removed);
                coming.add(change.bytes().filter(|bytes| *bytes <= bounds.bytes));
            }
            evict(&transaction, &mut holds, bounds.less(coming))?;
            for change in changes {
                let Some((value, expires_at_ms)) = &change.value else {
                    continue;
                };
                let mut this = Bounds { entries: 0, bytes: 0 };
                this.add(change.bytes().filter(|bytes| *bytes <= bounds.bytes));
                if this.entries > 0 {
                    // Of what comes the first go, too, where all of it is too much.
                    evict(&transaction, &mut holds, bounds.less(this))?;
                    add.execute(params![change.key, value, expires_at_ms])?;
                    holds.add(Some(this.bytes));
                }
            }
        }
        transaction.commit()?;
        self.holds = holds;
        Ok(())
    }

    fn clear(&mut self) -> rusqlite::Result<()> {
        self.connection.execute("DELETE FROM entries", [])?;
        self.holds = Bounds { entries: 0, bytes: 0 };
        Ok(())
    }

    fn sweep(&mut self, now_ms: i64) -> rusqlite::Result<()> {
        let mut holds = self.holds;
        {
            let mut sweep = self.connection.prepare_cached(
                "DELETE FROM entries WHERE id IN
                     (SELECT id FROM entries WHERE expires_at_ms <= ?1 ORDER BY expires_at_ms LIMIT ?2)
                 RETURNING 2 * length(key) + length(value)",
            )?;
            let mut rows = sweep.query(params![now_ms, SWEEP_ROWS])?;
            while let Some(row) = rows.next()? {
                holds.remove(Some(row.get(0)?));
            }
        }
        self.holds = holds;
        Ok(())
    }

    fn close(self) -> rusqlite::Result<()> {
        // All entries first, then the word that they are whole.
        self.connection.pragma_update(None, "synchronous", "FULL")?;
        checkpoint(&self.connection)?;
        set_mark(&self.connection, CLOSED)?;
        self.connection.close().map_err(|(_, error)| error)
    }
}

impl Change {
    /// What the entry counts for that it leaves, if it leaves one. Its key is in the table and in its index.
    fn bytes(&self) -> Option<u64> {
        let (value, _) = self.value.as_ref()?;
        Some((2 * self.key.len() + value.len()) as u64 + ENTRY_BYTES)
    }
}

impl Bounds {
    fn add(&mut self, bytes: Option<u64>) {
        if let Some(bytes) = bytes {
            self.entries += 1;
            self.bytes += bytes;
        }
    }

    /// What is left where these are to have room.
    fn less(self, coming: Self) -> Self {
        Self {
            entries: self.entries.saturating_sub(coming.entries),
            bytes: self.bytes.saturating_sub(coming.bytes),
        }
    }

    fn remove(&mut self, bytes: Option<i64>) {
        if let Some(bytes) = bytes {
            self.entries = self.entries.saturating_sub(1);
            self.bytes = self.bytes.saturating_sub(bytes.unsigned_abs() + ENTRY_BYTES);
        }
    }
}

/// Removes the oldest until what is left is within the bounds.
fn evict(connection: &Connection, holds: &mut Bounds, bounds: Bounds) -> rusqlite::Result<()> {
    if holds.entries <= bounds.entries && holds.bytes <= bounds.bytes {
        return Ok(());
    }
    let mut last = None;
    let mut oldest =
        connection.prepare_cached("SELECT id, 2 * length(key) + length(value) FROM entries ORDER BY id")?;
    let mut rows = oldest.query([])?;
    while (holds.entries > bounds.entries || holds.bytes > bounds.bytes)
        && let Some(row) = rows.next()?
    {
        last = Some(row.get::<_, i64>(0)?);
        holds.remove(Some(row.get(1)?));
    }
    drop(rows);
    let mut remove = connection.prepare_cached("DELETE FROM entries WHERE id <= ?1")?;
    remove.execute([last])?;
    Ok(())
}

/// Writes the mark, and into the file itself. Durable when `synchronous` is FULL.
fn set_mark(connection: &Connection, mark: &str) -> rusqlite::Result<()> {
    connection.execute_batch("BEGIN; DELETE FROM mark")?;
    let set = connection.execute("INSERT INTO mark (value) VALUES (?1)", [mark]);
    if let Err(error) = set.and_then(|_| connection.execute_batch("COMMIT")) {
        // What failed to be written may have ended the transaction already.
        let _ = connection.execute_batch("ROLLBACK");
        return Err(error);
    }
    checkpoint(connection)
}

fn checkpoint(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// The name of the machine's present boot, where the system has one.
fn boot() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(name.trim().to_owned())
}

fn code(error: &rusqlite::Error) -> Option<ErrorCode> {
    error.sqlite_error_code()
}

fn is_corrupt(error: &rusqlite::Error) -> bool {
    matches!(code(error), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Milliseconds since 1970, as the store keeps times.
pub(super) fn unix_ms(time: SystemTime) -> i64 {
    whole_ms(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

pub(super) fn whole_ms(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
