//! Session: one SQLite connection with what belongs to it, used by one thread at a time.
//!
//! Executes a statement so that it has either its whole effect or none, and reports what it alone did. Keeps cursors that
//! are read step by step. Knows nothing of batches, threads or who waits.

pub(crate) mod beside;
mod cursors;
mod each;
mod edit;
mod native;
mod values;

pub use edit::SchemaEdit;

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::{Connection, OpenFlags, Statement, ffi};

use self::native::{LOOKASIDE_SLOTS, data_version, forget_last_rowid, last_rowid, set_lookaside_slots};
use self::values::{bind, gather};
use super::authorizer::Authorizer;
use super::error::{is_disk_failure, write_error};
use super::health::Health;
use super::location::Location;
use super::program::Program;
use forebay_write::Acceptance;
use forebay_write::{CancelToken, Outcome, Parameters, Sql, StatementError, StatementErrorKind, WriteError};

/// How many virtual-machine steps SQLite takes between two looks at the cancel token: some tens of microseconds.
const STEPS_BETWEEN_LOOKS: i32 = 2_000;

/// Longer texts are compiled anew each time: they are bulk that rarely comes again, and what is kept of each is several times its
/// length.
const KEPT_TEXT_BYTES_MAX: usize = 64 * 1024;

/// What a connection is opened with.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) busy_timeout: Duration,
    pub(super) statement_cache: usize,
    pub(super) max_rows_bytes: usize,
    pub(super) prepare: Option<Arc<Prepare>>,
}

/// Called on every new connection, to register functions and the like.
pub(super) type Prepare = dyn Fn(&mut Connection) -> rusqlite::Result<()> + Send + Sync;

/// One connection, its compiled statements and its open cursors.
pub struct Session {
    // Before `connection`: cursors borrow from it and go first.
    cursors: HashMap<u64, Cursor>,
    programs: HashMap<Box<str>, Rc<Program>>,
    /// The schema that `programs` were read under.
    schema_version: i64,
    /// What SQLite counts changes of the file by, when `schema_version` was looked up.
    data_version: u32,
    /// The open transaction has changed the schema: `programs` holds programs that a rollback makes untrue.
    schema_changed: bool,
    connection: Rc<Connection>,
    authorizer: Arc<Authorizer>,
    watch: Arc<Mutex<Option<CancelToken>>>,
    settings: Settings,
    /// Where the file belongs, and what becomes of writes: of the writing connection only.
    guard: Option<Guard>,
}

// SAFETY: what keeps it from being sent are counted references (`Rc`) and what borrows through them. All that point to one connection or
// program are inside one session while no job runs on it: a job may copy them, and ends without its copies, for it can neither return
// what is not `Send` nor keep what it borrowed. So they move together. SQLite lets a connection that was opened without its mutex be
// used by one thread after the other, and rusqlite has what is registered on one be `Send`.
unsafe impl Send for Session {}

/// What the writing connection minds beside its statements.
struct Guard {
    location: Option<Arc<Location>>,
    health: Arc<Health>,
    /// Rows changed on this connection when the open transaction began.
    changes_before: u64,
}

/// A compiled statement.
pub(super) enum Prepared<'c> {
    /// Goes back to the connection's cache.
    Kept(rusqlite::CachedStatement<'c>),
    /// Too long for that.
    Once(Statement<'c>),
}

impl<'c> Deref for Prepared<'c> {
    type Target = Statement<'c>;

    fn deref(&self) -> &Statement<'c> {
        match self {
            Self::Kept(statement) => statement,
            Self::Once(statement) => statement,
        }
    }
}

impl<'c> DerefMut for Prepared<'c> {
    fn deref_mut(&mut self) -> &mut Statement<'c> {
        match self {
            Self::Kept(statement) => statement,
            Self::Once(statement) => statement,
        }
    }
}

self_cell::self_cell!(
    struct Cursor {
        owner: Rc<Connection>,
        #[not_covariant]
        dependent: Prepared,
    }
);

/// Whether a cursor has more to give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The visitor asked to stop; the next fetch goes on behind that row.
    Paused,
    /// The last row was visited; the cursor is closed.
    Done,
}

/// The transaction a statement is executed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transaction {
    /// None: it commits by itself.
    None,
    /// One that strangers share: each must have the outcome it would have had alone.
    Shared,
    /// Its caller's own.
    Own,
}

/// Why a transaction was not committed.
#[derive(Debug)]
pub(super) enum Uncommitted {
    /// Perhaps by the fault of one statement: without it the others may be committed.
    BySome(WriteError),
    /// By the fault of none: to run it again in parts is of no use.
    ByAll(WriteError),
}

/// A failure, and whether the transaction it happened in is still good.
pub(super) struct Failure {
    pub(super) error: WriteError,
    /// The statement left something behind, or SQLite has rolled back: the transaction must be rolled back and its other
    /// statements run again.
    pub(super) spoils_transaction: bool,
}

impl Session {
    pub(super) fn open(path: &Path, flags: OpenFlags, settings: Settings) -> rusqlite::Result<Self> {
        let mut connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(settings.busy_timeout)?;
        connection.set_prepared_statement_cache_capacity(settings.statement_cache);
        if let Some(prepare) = &settings.prepare {
            // What is registered stays: of hundreds of functions, nothing would be left of it for statements.
            set_lookaside_slots(&connection, 0);
            prepare(&mut connection)?;
            set_lookaside_slots(&connection, LOOKASIDE_SLOTS);
        }
        let watch = Arc::new(Mutex::new(None::<CancelToken>));
        let watched = Arc::clone(&watch);
        connection.progress_handler(
            STEPS_BETWEEN_LOOKS,
            Some(move || watched.lock().as_ref().is_some_and(CancelToken::interrupts)),
        )?;
        let authorizer = Authorizer::install(&mut connection)?;
        Ok(Self {
            cursors: HashMap::new(),
            programs: HashMap::new(),
            schema_version: 0,
            data_version: 0,
            schema_changed: false,
            connection: Rc::new(connection),
            authorizer,
            watch,
            settings,
            guard: None,
        })
    }

    /// From now on every commit looks at the place of the file, and tells how it went.
    pub(super) fn mind(&mut self, location: Option<Arc<Location>>, health: Arc<Health>) {
        self.guard = Some(Guard {
            location,
            health,
            changes_before: 0,
        });
    }

    fn look_at_place(&self) -> Result<(), WriteError> {
        match self.guard.as_ref().and_then(|guard| guard.location.as_ref()) {
            Some(location) => location.look(),
            None => Ok(()),
        }
    }

    /// The connection, for what has no form of its own here: looking at the schema, preparing to describe.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The same, for a job that the token interrupts where it takes long.
    pub fn interruptible<R>(&self, token: &CancelToken, job: impl FnOnce(&Connection) -> R) -> R {
        let _watching = Watching::start(&self.watch, Some(token));
        job(&self.connection)
    }

    pub(super) fn shared_connection(&self) -> Rc<Connection> {
        Rc::clone(&self.connection)
    }

    /// Brings what this connection knows of the schema up to date. SQLite looks only when a statement is stepped, so a
    /// statement that is merely prepared may be described as it was before another connection changed its tables.
    ///
    /// # Errors
    /// SQLite's, if the file cannot be read.
    pub fn refresh_schema(&self) -> Result<(), WriteError> {
        let looked = self
            .connection
            .prepare_cached("SELECT 1 FROM sqlite_schema LIMIT 1")
            .and_then(|mut statement| statement.exists(()));
        looked.map(|_| ()).map_err(|error| self.explain(&error))
    }

    /// The version of the schema as the open transaction has it, or as it was read last. Versions only grow. Costs no look at the file
    /// while nobody has written to it.
    ///
    /// # Errors
    /// SQLite's, if the file cannot be read.
    pub fn schema_version(&mut self) -> Result<i64, WriteError> {
        if self.schema_changed || data_version(&self.connection) != self.data_version {
            let checked = self.check_schema();
            checked.map_err(|error| self.explain(&error))?;
        }
        Ok(self.schema_version)
    }

    /// # Errors
    /// [`WriteError::SchemaChanged`] if there is a version, and the schema has another.
    pub(super) fn is_under(&mut self, version: Option<i64>) -> Result<(), WriteError> {
        match version {
            Some(version) if self.schema_version()? != version => Err(WriteError::SchemaChanged),
            _ => Ok(()),
        }
    }

    /// Why the authorizer refused what was prepared last through [`connection`](Self::connection), if it did.
    pub fn take_refusal(&self) -> Option<String> {
        self.authorizer.take_refusal()
    }

    /// Executes one statement of a transaction that is its caller's own: whole, or not at all.
    pub(super) fn execute_in_own_transaction(
        &mut self,
        sql: &Sql,
        parameters: &Parameters,
        token: Option<&CancelToken>,
    ) -> Result<Outcome, Failure> {
        let connection = Rc::clone(&self.connection);
        let mut statement = self.prepare(&connection, sql)?;
        let program = self.program(sql, &statement)?;
        if !program.shares {
            return Err(Failure::clean(WriteError::Refused {
                reason: "this statement cannot run inside a transaction".to_owned(),
            }));
        }
        self.execute_prepared(&mut statement, &program, parameters, token, None, Transaction::Own)
    }

    /// Executes one statement of a transaction that is its caller's own once for each of these parameters, up to the first that
    /// fails.
    ///
    /// # Errors
    /// The statement's own, with the place of the parameters it failed for. Those before have been executed.
    pub fn execute_many(
        &mut self,
        sql: &Sql,
        parameters: &[Parameters],
        token: &CancelToken,
    ) -> Result<(), (usize, WriteError)> {
        for (place, parameters) in parameters.iter().enumerate() {
            self.execute_in_own_transaction(sql, parameters, Some(token))
                .map_err(|failure| (place, failure.error))?;
        }
        Ok(())
    }

    /// Executes one statement: whole, or not at all, and reports what it did.
    pub(super) fn execute_prepared(
        &mut self,
        statement: &mut Statement<'_>,
        program: &Program,
        parameters: &Parameters,
        token: Option<&CancelToken>,
        acceptance: Option<&Acceptance>,
        transaction: Transaction,
    ) -> Result<Outcome, Failure> {
        bind(statement, program, parameters).map_err(Failure::clean)?;
        if let Some(token) = token {
            token.claim().map_err(Failure::clean)?;
        }
        let savepoint = !statement.readonly()
            && match transaction {
                Transaction::None => false,
                Transaction::Shared => program.fails_half_way.get(),
                // Nothing can be run again here: whatever it fails with, it must be undone by itself.
                Transaction::Own => true,
            };
        if savepoint {
            self.trusted("SAVEPOINT forebay_statement")?;
        }
        let result = self.step_to_end(statement, program, token).and_then(|outcome| {
            // What is not accepted has been executed, and must go.
            acceptance
                .map_or(Ok(()), |acceptance| acceptance.of(&outcome))
                .map_err(Failure::spoiling)?;
            Ok(outcome)
        });
        match result {
            Ok(outcome) => {
                if savepoint {
                    self.trusted("RELEASE forebay_statement")?;
                }
                // In a transaction of its caller's own a foreign key may stay open until the commit.
                if program.counts_foreign_keys && transaction == Transaction::Shared && self.owes_foreign_keys() {
                    return Err(Failure::spoiling(WriteError::Statement(StatementError::new(
                        StatementErrorKind::ForeignKey,
                        ffi::SQLITE_CONSTRAINT_FOREIGNKEY,
                        "FOREIGN KEY constraint failed",
                    ))));
                }
                if program.changes_schema {
                    self.programs.clear();
                    self.schema_changed = true;
                }
                Ok(outcome)
            }
            Err(mut failure) => {
                if savepoint && !self.connection.is_autocommit() {
                    let undone = self
                        .trusted("ROLLBACK TO forebay_statement")
                        .and_then(|()| self.trusted("RELEASE forebay_statement"));
                    failure.spoils_transaction = undone.is_err();
                } else if failure.spoils_transaction && !self.connection.is_autocommit() {
                    // Once is enough: from now on a savepoint undoes this statement, and nobody is run again for it.
                    program.fails_half_way.set(true);
                }
                Err(failure)
            }
        }
    }

    /// Steps the statement to its end, gathering what RETURNING gives.
    fn step_to_end(
        &mut self,
        statement: &mut Statement<'_>,
        program: &Program,
        token: Option<&CancelToken>,
    ) -> Result<Outcome, Failure> {
        let was_autocommit = self.connection.is_autocommit();
        let changes_before = self.connection.total_changes();
        if program.inserts {
            forget_last_rowid(&self.connection);
        }
        let watching = Watching::start(&self.watch, token);
        beside::take_met();
        let mut outcome = Outcome::default();
        let stepped = if statement.column_count() == 0 {
            statement.raw_execute().map(|_| true)
        } else {
            gather(statement, self.settings.max_rows_bytes, &mut outcome.rows)
        };
        drop(watching);
        let (error, undone) = match stepped {
            Ok(true) => {
                if self.connection.total_changes() != changes_before && !program.changes_schema {
                    // DROP TABLE counts the rows that it looks at for foreign keys.
                    outcome.rows_affected = beside::take_met().unwrap_or_else(|| self.connection.changes());
                }
                if program.inserts && outcome.rows_affected > 0 {
                    outcome.last_insert_id = last_rowid(&self.connection);
                }
                // Only now: the schema may have changed since it was compiled, and stepping it has compiled it anew.
                outcome.columns = statement.column_names().map(str::to_owned).collect();
                return Ok(outcome);
            }
            // SQLite makes all changes before the first row is returned: they are there, and must go.
            Ok(false) => (self.returned_too_much(), false),
            Err(error) => match token {
                Some(token) if statement_code(&error) == ffi::SQLITE_INTERRUPT && token.interrupts() => {
                    (token.reason(), false)
                }
                _ => (self.explain(&error), undoes_the_statement(&error)),
            },
        };
        Err(Failure {
            error,
            spoils_transaction: !was_autocommit
                && (self.connection.is_autocommit() || !(undone || statement.readonly())),
        })
    }

    fn returned_too_much(&self) -> WriteError {
        WriteError::Statement(StatementError::new(
            StatementErrorKind::TooLarge,
            ffi::SQLITE_TOOBIG,
            format!(
                "the rows returned take more than {} bytes",
                self.settings.max_rows_bytes
            ),
        ))
    }

    /// Begins a transaction that writes, and forgets programs that are not true any more.
    pub(super) fn begin(&mut self) -> Result<(), Failure> {
        self.trusted("BEGIN IMMEDIATE")?;
        if let Some(guard) = &mut self.guard {
            guard.changes_before = self.connection.total_changes();
        }
        let checked = self.check_schema();
        checked.map_err(|error| {
            let failure = Failure::clean(self.explain(&error));
            self.rollback();
            failure
        })
    }

    /// As [`begin`](Self::begin), but does not wait where another process has the file's lock.
    pub(super) fn begin_unless_locked(&mut self) -> Result<(), Failure> {
        self.wait_for_locks(Duration::ZERO)?;
        let begun = self.begin();
        if let Err(failure) = self.wait_for_locks(self.settings.busy_timeout) {
            self.rollback();
            return Err(failure);
        }
        begun
    }

    fn wait_for_locks(&self, longest: Duration) -> Result<(), Failure> {
        let set = self.connection.busy_timeout(longest);
        set.map_err(|error| Failure::clean(self.explain(&error)))
    }

    /// Commits. After an error the transaction is rolled back, or lost with its file.
    pub(super) fn commit(&mut self) -> Result<(), Uncommitted> {
        if let Err(error) = self.look_at_place() {
            self.rollback();
            return Err(Uncommitted::ByAll(error));
        }
        if let Err(error) = self.control("COMMIT") {
            self.rollback();
            let explained = self.explain(&error);
            return Err(match explained {
                _ if is_disk_failure(&error) => Uncommitted::ByAll(WriteError::OutcomeUnknown {
                    cause: explained.to_string(),
                }),
                // A lock that is not waited for once more by everyone.
                WriteError::Busy { .. } => Uncommitted::ByAll(explained),
                _ => Uncommitted::BySome(explained),
            });
        }
        // What was remembered under the new schema is forgotten at the next `begin`, which sees its version.
        self.schema_changed = false;
        if let Err(error) = self.look_at_place() {
            // The file may have gone just before the commit or just behind it.
            return Err(Uncommitted::ByAll(WriteError::OutcomeUnknown {
                cause: error.to_string(),
            }));
        }
        if let Some(guard) = &self.guard
            && self.connection.total_changes() != guard.changes_before
        {
            guard.health.succeeded();
        }
        Ok(())
    }

    /// Compiles, or finds compiled, one statement; a refusal of the authorizer gets its reason.
    pub(super) fn prepare<'c>(&self, connection: &'c Connection, sql: &str) -> Result<Prepared<'c>, Failure> {
        if sql.contains('\0') {
            // SQLite would stop there, and execute a DELETE without its WHERE.
            return Err(Failure::clean(WriteError::Statement(StatementError::new(
                StatementErrorKind::Text,
                ffi::SQLITE_ERROR,
                "the statement's text holds a NUL character",
            ))));
        }
        // One that was left behind by what was described through `connection()` is not this statement's.
        self.authorizer.take_refusal();
        let prepared = if sql.len() <= KEPT_TEXT_BYTES_MAX {
            connection.prepare_cached(sql).map(Prepared::Kept)
        } else {
            connection.prepare(sql).map(Prepared::Once)
        };
        prepared.map_err(|error| Failure::clean(self.explain(&error)))
    }

    /// The program of a statement, remembered while the schema stays as it is.
    pub(super) fn program(&mut self, sql: &str, statement: &Statement<'_>) -> Result<Rc<Program>, Failure> {
        if let Some(program) = self.programs.get(sql) {
            return Ok(Rc::clone(program));
        }
        let program = Program::read(&self.connection, sql, statement).map_err(|error| {
            Failure::clean(match error {
                rusqlite::Error::InvalidParameterName(name) => WriteError::Refused {
                    reason: format!("parameters are numbered, $1 or ?1; {name} has a name"),
                },
                error => self.explain(&error),
            })
        })?;
        let program = Rc::new(program);
        if sql.len() <= KEPT_TEXT_BYTES_MAX {
            if self.programs.len() >= self.settings.statement_cache {
                self.programs.clear();
            }
            self.programs.insert(sql.into(), Rc::clone(&program));
        }
        Ok(program)
    }

    /// Forgets the programs if another process, or another connection, has changed the schema.
    /// To be called inside the transaction that will use them.
    fn check_schema(&mut self) -> rusqlite::Result<()> {
        let version = self
            .connection
            .prepare_cached("PRAGMA schema_version")?
            .query_row((), |row| row.get(0))?;
        if version != self.schema_version {
            self.programs.clear();
            self.schema_version = version;
        }
        self.data_version = data_version(&self.connection);
        Ok(())
    }

    /// Begins, ends or marks a transaction: what callers' statements may not.
    pub(super) fn trusted(&self, sql: &str) -> Result<(), Failure> {
        self.control(sql).map_err(|error| Failure {
            error: self.explain(&error),
            spoils_transaction: true,
        })
    }

    /// As [`trusted`](Self::trusted), with SQLite's own error.
    pub(super) fn control(&self, sql: &str) -> rusqlite::Result<()> {
        self.authorizer.trusting(|| {
            self.connection
                .prepare_cached(sql)
                .and_then(|mut statement| statement.raw_execute())
                .map(|_| ())
        })
    }

    /// Moves what was committed from the write-ahead log into the file, and empties the log.
    pub(super) fn checkpoint(&self) -> rusqlite::Result<()> {
        let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
        self.authorizer
            .trusting(|| self.connection.query_row(checkpoint, (), |_| Ok(())))
    }

    /// Writes the file's own user version anew: a page that stays as it was, and yet must reach the disk.
    pub(super) fn probe(&mut self) -> Result<(), WriteError> {
        self.begin().map_err(|failure| failure.error)?;
        let written = self.authorizer.trusting(|| {
            let version: i64 = self.connection.query_row("PRAGMA user_version", (), |row| row.get(0))?;
            self.connection.pragma_update(None, "user_version", version)
        });
        if let Err(error) = written {
            let error = self.explain(&error);
            self.rollback();
            return Err(error);
        }
        self.commit().map_err(|uncommitted| match uncommitted {
            Uncommitted::ByAll(error) | Uncommitted::BySome(error) => error,
        })?;
        if let Some(guard) = &self.guard {
            guard.health.succeeded();
        }
        Ok(())
    }

    /// Executes outside any transaction, free of the authorizer's rule against what VACUUM does inside.
    pub(super) fn execute_alone(
        &mut self,
        sql: &Sql,
        parameters: &Parameters,
        token: Option<&CancelToken>,
    ) -> Result<Outcome, WriteError> {
        debug_assert!(self.connection.is_autocommit());
        let authorizer = Arc::clone(&self.authorizer);
        let connection = Rc::clone(&self.connection);
        self.look_at_place()?;
        // Compiled under the rules, run without them: VACUUM attaches a database of its own.
        let mut statement = self.prepare(&connection, sql).map_err(|failure| failure.error)?;
        let program = self.program(sql, &statement).map_err(|failure| failure.error)?;
        let executed = authorizer
            .trusting(|| self.execute_prepared(&mut statement, &program, parameters, token, None, Transaction::None))
            .map_err(|failure| failure.error)?;
        self.look_at_place().map_err(|error| WriteError::OutcomeUnknown {
            cause: error.to_string(),
        })?;
        Ok(executed)
    }

    /// Sets the connection up, free of the authorizer.
    pub(super) fn trust_set_up<R>(
        &self,
        set_up: impl FnOnce(&Connection) -> rusqlite::Result<R>,
    ) -> rusqlite::Result<R> {
        self.authorizer.trusting(|| set_up(&self.connection))
    }

    pub(super) fn is_autocommit(&self) -> bool {
        self.connection.is_autocommit()
    }

    /// Undoes what was done since a savepoint of the caller's own.
    pub(super) fn rollback_to(&mut self, sql: &str) -> rusqlite::Result<()> {
        if self.schema_changed {
            self.programs.clear();
        }
        let undone = self.control(sql);
        if self.schema_changed {
            self.forget_schema();
        }
        undone
    }

    /// Rolls back what is open; nothing if nothing is.
    pub(super) fn rollback(&mut self) {
        let schema_changed = std::mem::take(&mut self.schema_changed);
        if schema_changed {
            self.programs.clear();
        }
        if !self.connection.is_autocommit()
            && let Err(error) = self.control("ROLLBACK")
        {
            // SQLite leaves no transaction open behind a failed ROLLBACK.
            tracing::warn!(%error, "rollback failed");
        }
        if schema_changed {
            self.forget_schema();
        }
    }

    /// SQLite's error as callers see it; a refusal of the authorizer in its own words.
    pub(super) fn explain(&self, error: &rusqlite::Error) -> WriteError {
        match self.authorizer.take_refusal() {
            Some(reason) => WriteError::Refused { reason },
            None => {
                let error = write_error(error, self.settings.busy_timeout);
                if let Some(guard) = &self.guard {
                    guard.health.failed(&error);
                }
                error
            }
        }
    }

    /// Reads all rows of a statement that reads.
    pub(super) fn query(
        &mut self,
        sql: &Sql,
        parameters: &Parameters,
        token: &CancelToken,
    ) -> Result<Outcome, WriteError> {
        let connection = Rc::clone(&self.connection);
        let mut statement = self.prepare(&connection, sql).map_err(|failure| failure.error)?;
        if !statement.readonly() {
            return Err(WriteError::Refused {
                reason: "a query reads; this statement writes: give it to a Writer".to_owned(),
            });
        }
        let program = self.program(sql, &statement).map_err(|failure| failure.error)?;
        self.execute_prepared(
            &mut statement,
            &program,
            parameters,
            Some(token),
            None,
            Transaction::None,
        )
        .map_err(|failure| failure.error)
    }

    /// Whether a foreign key is unsatisfied in the open transaction. Outside a shared transaction the statement would have
    /// failed for it, so it fails here too.
    pub fn owes_foreign_keys(&self) -> bool {
        let (mut current, mut highest) = (0, 0);
        // SAFETY: the handle is that of an open connection which this thread owns, and both out-pointers are to live
        // integers.
        let status = unsafe {
            ffi::sqlite3_db_status(
                self.connection.handle(),
                ffi::SQLITE_DBSTATUS_DEFERRED_FKS,
                &raw mut current,
                &raw mut highest,
                0,
            )
        };
        status == ffi::SQLITE_OK && current != 0
    }
}

impl Failure {
    /// The statement had no effect and the transaction is as it was.
    pub(super) fn clean(error: WriteError) -> Self {
        Self {
            error,
            spoils_transaction: false,
        }
    }

    fn spoiling(error: WriteError) -> Self {
        Self {
            error,
            spoils_transaction: true,
        }
    }
}

/// While it lives, the progress handler looks at this statement's token.
struct Watching<'a> {
    watch: Option<&'a Mutex<Option<CancelToken>>>,
}

impl<'a> Watching<'a> {
    fn start(watch: &'a Mutex<Option<CancelToken>>, token: Option<&CancelToken>) -> Self {
        let watch = token.map(|token| {
            *watch.lock() = Some(token.clone());
            beside::set_running(Some(token));
            watch
        });
        Self { watch }
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        if let Some(watch) = self.watch {
            *watch.lock() = None;
            beside::set_running(None);
        }
    }
}

/// Whether SQLite itself undoes the whole statement that fails like that, and nothing else.
///
/// Inside a transaction it can undo one statement alone only if it foresaw, when it compiled the statement, that it may
/// have to. It foresees these. It does not foresee others: a type error in a STRICT table, an overflow in `sum`, foreign
/// keys that cascade too deep; the rows changed before them stay. A full disk or failing memory may take the whole
/// transaction.
fn undoes_the_statement(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|failure| {
        matches!(
            failure.extended_code,
            ffi::SQLITE_CONSTRAINT_UNIQUE
                | ffi::SQLITE_CONSTRAINT_PRIMARYKEY
                | ffi::SQLITE_CONSTRAINT_ROWID
                | ffi::SQLITE_CONSTRAINT_NOTNULL
                | ffi::SQLITE_CONSTRAINT_CHECK
                | ffi::SQLITE_CONSTRAINT_FOREIGNKEY
                | ffi::SQLITE_CONSTRAINT_TRIGGER
        )
    })
}

fn statement_code(error: &rusqlite::Error) -> i32 {
    error.sqlite_error().map_or(0, |failure| failure.extended_code & 0xff)
}
