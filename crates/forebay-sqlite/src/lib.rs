//! The Writer's SQLite: one writing connection with a thread of its own, a pool of reading connections.
//!
//! WAL, so that readers and the writer do not wait for each other; `synchronous=FULL` by default, so that a commit is on
//! the disk before it is acknowledged. Writes from other processes are waited for, up to the busy timeout.
//!
//! Users have it as `forebay::sqlite`, but for [`connection`].

mod authorizer;
mod batch;
pub mod connection;
mod database;
mod error;
mod health;
mod load;
mod location;
mod open_error;
mod program;
mod readers;
mod session;
mod thread;
mod transaction;
mod writing;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

pub use forebay_write::{Answered, Read, ReadError, SqlKey};
pub use load::{all_rows, one_row};
pub use open_error::OpenError;
pub use transaction::Transaction;

use self::health::Health;
use self::location::Location;
use self::readers::{Reader, Readers};
use self::session::{Session, Settings};
use self::thread::SqliteThread;
use self::writing::WritingConnection;
use forebay_write::{CancelToken, IntoParameters, Outcome, Sql, Write, WriteError};

/// The longest that SQLite can wait, in whole days.
const BUSY_TIMEOUT_MAX: Duration = Duration::from_secs(24 * 24 * 60 * 60);

/// How much of a commit is on the disk when it is acknowledged.
///
/// ```
/// use forebay::sqlite::Synchronous;
///
/// assert_eq!(Synchronous::default(), Synchronous::Full);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Synchronous {
    /// All of it: an acknowledged write survives a power failure.
    #[default]
    Full,
    /// Written, not forced: an acknowledged write survives a killed process, and may be lost in a power failure.
    Normal,
    /// As `Normal`, and a power failure may damage the file.
    Off,
}

impl Synchronous {
    /// SQLite's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Normal => "NORMAL",
            Self::Off => "OFF",
        }
    }
}

/// An open SQLite database. Clones are handles to the same one; the last one dropped closes it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("app.db");
/// use forebay::sqlite::Sqlite;
///
/// let database = Sqlite::open(path)?;
/// let sum: i64 = database.query("SELECT ?1 + ?2", (2, 3)).await?.one()?;
/// assert_eq!(sum, 5);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Sqlite {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    writing: Arc<WritingConnection>,
    readers: Arc<Readers>,
    read_only: bool,
    /// None where files cannot be told apart.
    location: Option<Arc<Location>>,
    health: Arc<Health>,
}

/// Chooses settings of a database that is to be opened; see [`Sqlite::builder`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("app.db");
/// use std::time::Duration;
///
/// use forebay::sqlite::{Sqlite, Synchronous};
///
/// let database = Sqlite::builder(path)
///     .synchronous(Synchronous::Normal) // faster, and the last commits may be lost with the power
///     .max_readers(4)
///     .busy_timeout(Duration::from_secs(1))
///     .open()?;
/// assert!(!database.is_read_only());
/// # Ok(())
/// # }
/// ```
#[must_use = "a builder does nothing until it opens"]
pub struct SqliteBuilder {
    path: PathBuf,
    synchronous: Synchronous,
    max_readers: usize,
    settings: Settings,
}

impl Sqlite {
    /// Opens the file, or makes it, with the defaults of the [`builder`](Self::builder). Blocks for as long as that takes.
    ///
    /// # Errors
    /// [`OpenError`], which names the file and the cause.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::builder(path).open()
    }

    /// Settings other than the defaults.
    pub fn builder(path: impl AsRef<Path>) -> SqliteBuilder {
        SqliteBuilder {
            path: path.as_ref().to_owned(),
            synchronous: Synchronous::Full,
            max_readers: 64,
            settings: Settings {
                busy_timeout: Duration::from_secs(5),
                statement_cache: 256,
                max_rows_bytes: 64 << 20,
                prepare: None,
            },
        }
    }

    /// The file's path as it was given.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Whether the file can only be read; every write is refused then.
    pub fn is_read_only(&self) -> bool {
        self.inner.read_only
    }

    /// Whether somebody waits for the right to write, or for a reading connection: who holds one and does nothing with it is
    /// in the way.
    pub fn is_waited_for(&self) -> bool {
        self.inner.writing.is_waited_for() || self.inner.readers.are_all_taken()
    }

    /// Whether the file that is open is still in its place. A file that was deleted, moved or replaced while it was open
    /// would take writes that nobody finds again: they are refused from then on, and a commit that may have met the moment is
    /// [`WriteError::OutcomeUnknown`].
    ///
    /// # Errors
    /// A [`StatementErrorKind::Io`](forebay_write::StatementErrorKind::Io) that names the file and says what happened to it.
    pub fn check_file(&self) -> Result<(), WriteError> {
        self.inner.location.as_ref().map_or(Ok(()), |location| location.look())
    }

    /// What the last write failed with, if it was the disk's fault (full, failing, damaged) and nothing was written since.
    pub fn last_fault(&self) -> Option<WriteError> {
        self.inner.health.fault()
    }

    /// Writes without changing anything, to see whether the disk takes it: durable when it is done. Waits its turn.
    ///
    /// # Errors
    /// What a write would meet now.
    pub async fn probe(&self) -> Result<(), WriteError> {
        let writing = &self.inner.writing;
        let permit = writing.turn().await?;
        writing
            .thread
            .run(move |session| {
                let _permit = permit;
                session.probe()
            })
            .await?
    }

    /// Takes a reading connection; waits if all are in use.
    pub(crate) async fn reader(&self) -> Result<Reader, WriteError> {
        self.inner.readers.take().await
    }

    /// Reads all rows of a query. It sees every write acknowledged before.
    ///
    /// # Errors
    /// The statement's own; [`ReadError::Refused`] if it would write; [`ReadError::Closed`].
    pub async fn query(&self, sql: impl Into<Sql>, parameters: impl IntoParameters) -> Result<Outcome, ReadError> {
        let (sql, parameters) = (sql.into(), parameters.into_parameters());
        let reader = self.reader().await?;
        let token = CancelToken::new();
        let watched = token.clone();
        let read = reader.run(&token, move |session| session.query(&sql, &parameters, &watched));
        Ok(read.await??)
    }

    /// Begins a transaction that may write, when its turn has come. Nobody else writes while it is open, so keep it short.
    ///
    /// # Errors
    /// [`WriteError::Busy`], [`WriteError::Closed`].
    ///
    /// # Cancel safety
    /// Dropped before it completes, nothing has happened.
    pub async fn begin(&self) -> Result<Transaction, WriteError> {
        Transaction::begin(Arc::clone(&self.inner.writing)).await
    }

    /// As [`begin`](Self::begin), but waits for no other transaction: none if one is open, or its turn comes first. Batches that are
    /// being written are waited for.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    ///
    /// # Cancel safety
    /// As [`begin`](Self::begin).
    pub async fn begin_unless_another(&self) -> Result<Option<Transaction>, WriteError> {
        Transaction::begin_unless_another(Arc::clone(&self.inner.writing)).await
    }

    /// Writes a batch; one outcome a write, in order.
    async fn write(&self, batch: Vec<Write>) -> Vec<Result<Outcome, WriteError>> {
        let count = batch.len();
        let writing = &self.inner.writing;
        let permit = match writing.turn().await {
            Ok(permit) => permit,
            Err(error) => return vec![Err(error); count],
        };
        let ran = writing
            .thread
            .run_leaving(move |session| {
                let _permit = permit;
                let outcomes = batch::run(session, &batch);
                // Thousands of parameters are dropped while their callers are being answered, not before.
                (outcomes, batch)
            })
            .await;
        ran.unwrap_or_else(|error| vec![Err(unknown_after_panic(error)); count])
    }

    /// Writes one on this thread, if nobody has the right to write, here or in another process; otherwise it comes back, and nothing
    /// was done.
    fn write_in_place(&self, write: Write) -> Result<Result<Outcome, WriteError>, Write> {
        let writing = &self.inner.writing;
        let Some(_permit) = writing.turn_at_once() else {
            return Err(write);
        };
        match writing
            .thread
            .run_here(|session| batch::run_unless_locked(session, &write))
        {
            Ok(Some(outcome)) => Ok(outcome),
            Ok(None) => Err(write),
            Err(error) => Ok(Err(unknown_after_panic(error))),
        }
    }

    /// Takes no more work: what comes gets [`WriteError::Closed`]. Waits for the transaction or batch that runs, and for what was in line before this (what
    /// a writer has not brought here by then gets that error, too), and moves what was committed from the write-ahead log into the file itself, so that the file can be copied alone; where
    /// somebody still reads, for as long as the busy timeout at most.
    pub async fn close(&self) {
        let writing = &self.inner.writing;
        let last = writing.turn().await;
        writing.close();
        self.inner.readers.close();
        if last.is_ok() && !self.inner.read_only {
            // At best: what was acknowledged is durable in the log as well.
            let _ = writing.thread.run(|session| session.checkpoint()).await;
        }
        drop(last);
    }
}

impl SqliteBuilder {
    /// How durable an acknowledged write is. Default: [`Synchronous::Full`].
    pub fn synchronous(mut self, synchronous: Synchronous) -> Self {
        self.synchronous = synchronous;
        self
    }

    /// The most reading connections, each with a thread of its own, which is started when it is wanted. Default: 64. `usize::MAX`: as many
    /// as are wanted at a time.
    ///
    /// # Panics
    ///
    /// When it is 0: nothing could be read.
    #[track_caller]
    pub fn max_readers(mut self, max_readers: usize) -> Self {
        assert!(
            max_readers > 0,
            "max_readers must be at least 1: otherwise nothing is read"
        );
        self.max_readers = max_readers;
        self
    }

    /// How long to wait while another process holds the file's lock. Default: 5 s. More than 24 days are 24 days: SQLite counts
    /// milliseconds, in 32 bits.
    pub fn busy_timeout(mut self, busy_timeout: Duration) -> Self {
        self.settings.busy_timeout = busy_timeout.min(BUSY_TIMEOUT_MAX);
        self
    }

    /// How many compiled statements each connection keeps. Default: 256.
    ///
    /// # Panics
    ///
    /// When it is 0: a statement is compiled before it is executed.
    #[track_caller]
    pub fn statement_cache(mut self, statements: usize) -> Self {
        assert!(
            statements > 0,
            "statement_cache must be at least 1: otherwise nothing is compiled"
        );
        self.settings.statement_cache = statements;
        self
    }

    /// The most memory that the rows of one statement may take, in bytes; one that returns more fails with
    /// [`TooLarge`](forebay_write::StatementErrorKind::TooLarge), without effect. Default: 64 MiB.
    pub fn max_rows_bytes(mut self, bytes: usize) -> Self {
        self.settings.max_rows_bytes = bytes;
        self
    }

    /// Called once on every new connection, to register functions and collations.
    fn prepare_connections(
        mut self,
        prepare: impl Fn(&mut Connection) -> rusqlite::Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.settings.prepare = Some(Arc::new(prepare));
        self
    }

    /// Opens the file, or makes it. Blocks for as long as that takes.
    ///
    /// # Errors
    /// [`OpenError`], which names the file and the cause.
    pub fn open(self) -> Result<Sqlite, OpenError> {
        let Self {
            path,
            synchronous,
            max_readers,
            settings,
        } = self;
        if path.as_os_str().is_empty() || path.as_os_str() == ":memory:" {
            return Err(OpenError::not_a_file(path));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let health = Arc::new(Health::default());
        let (opened, told) = (path.clone(), Arc::clone(&health));
        let (writer, (read_only, location)) =
            SqliteThread::start_blocking("forebay-write", path.clone(), flags, settings.clone(), move |session| {
                set_up_writer(session, synchronous, &opened, told)
            })
            .map_err(|error| OpenError::new(&path, error))?;
        Ok(Sqlite {
            inner: Arc::new(Inner {
                writing: Arc::new(WritingConnection::new(writer)),
                readers: Readers::new(path.clone(), settings, location.clone(), max_readers),
                path,
                read_only,
                location,
                health,
            }),
        })
    }
}

/// What a panic ended may have been committed before, in part.
fn unknown_after_panic(error: WriteError) -> WriteError {
    match error {
        WriteError::Internal { cause } => WriteError::OutcomeUnknown { cause },
        other => other,
    }
}

/// Makes the file a WAL database with the durability that was asked for. Tells whether it can only be read, and its location.
fn set_up_writer(
    session: &mut Session,
    synchronous: Synchronous,
    path: &Path,
    health: Arc<Health>,
) -> rusqlite::Result<(bool, Option<Arc<Location>>)> {
    let (read_only, location) = session.trust_set_up(|connection| {
        // Fails here, not at the first write, if the file is no database.
        connection.query_row("SELECT count(*) FROM sqlite_schema", (), |_| Ok(()))?;
        let read_only = connection.is_readonly("main")?;
        if !read_only {
            connection.pragma_update(None, "journal_mode", "WAL")?;
            connection.pragma_update(None, "synchronous", synchronous.as_str())?;
        }
        Ok((read_only, Location::of(path, connection)?.map(Arc::new)))
    })?;
    session.mind(location.clone(), health);
    Ok((read_only, location))
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sqlite")
            .field("path", &self.inner.path)
            .field("read_only", &self.inner.read_only)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SqliteBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteBuilder")
            .field("path", &self.path)
            .field("synchronous", &self.synchronous)
            .field("max_readers", &self.max_readers)
            .finish_non_exhaustive()
    }
}
