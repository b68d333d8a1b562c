//! The Writer itself: lanes ([`Lanes`]), each of them a [`Batcher`] whose batches are transactions.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use forebay_batch::batch::{self, Batcher, CallError};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::{JoinError, JoinHandle, block_in_place};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::database::{Answer, Database};
use super::lanes::{Affinity, Lanes};
use super::{CancelToken, IntoParameters, Outcome, Sql, Transaction, Write, WriteError};

/// Writes for many callers at once. Clones are handles to the same writer.
///
/// Statements that wait while a commit runs share the next one; an idle database is written to at once. No caller sees
/// anything of it but the speed.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("app.db");
/// use forebay::write::Writer;
/// use forebay::sqlite::Sqlite;
///
/// let writer = Writer::new(Sqlite::open(path)?);
/// writer.execute("CREATE TABLE hits (page TEXT, at INTEGER)", ()).await?;
/// let done = writer.execute("INSERT INTO hits (page, at) VALUES (?1, ?2)", ("/", 1_700_000_000)).await?;
/// assert_eq!(done.rows_affected, 1); // durable now, and this caller's own outcome
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Writer {
    lanes: Lanes<Reply>,
    target: Target,
    /// The window of writes that bring none of their own.
    max_wait: Duration,
    /// Whether a write may be beside what the lanes have in flight.
    has_room_apart: bool,
}

/// Where writes go, and what of them is still on its way there.
#[derive(Clone)]
struct Target {
    database: Arc<dyn Database>,
    /// Those that are in no lane: that are deferred, and run again without their neighbours, and those that had none.
    apart: TaskTracker,
}

/// What the caller of a write gets.
enum Reply {
    Outcome(Result<Outcome, WriteError>),
    /// Whether he waits for it or not.
    Deferred(JoinHandle<Result<Outcome, WriteError>>),
}

impl Target {
    /// Writes a batch; one answer a write, in order. What stands in its neighbours' way is on its way when this returns.
    async fn write(&self, batch: Vec<Write>) -> Vec<Reply> {
        let answers = self.database.write(batch).await;
        answers.into_iter().map(|answer| self.follow(answer)).collect()
    }

    fn follow(&self, answer: Answer) -> Reply {
        match answer {
            Answer::Outcome(outcome) => Reply::Outcome(outcome),
            Answer::Deferred(writing) => Reply::Deferred(self.apart.spawn(writing)),
        }
    }

    /// As [`write`](Self::write), to its end also if whoever waits for it is dropped.
    async fn write_to_the_end(&self, batch: Vec<Write>) -> Result<Vec<Reply>, WriteError> {
        let tracked = self.open()?;
        let target = self.clone();
        let writing = tokio::spawn(async move {
            let _until_it_ends = tracked;
            target.write(batch).await
        });
        writing.await.map_err(|error| ended_early(&error))
    }

    /// What has who closes this wait for its end; unless it is closed.
    fn open(&self) -> Result<TaskTrackerToken, WriteError> {
        // First: who closes it then waits for this.
        let tracked = self.apart.token();
        match self.apart.is_closed() {
            true => Err(WriteError::Closed),
            false => Ok(tracked),
        }
    }

    /// Takes no more of those that have no neighbours.
    fn close(&self) {
        self.apart.close();
    }

    /// Waits for those that are in no lane.
    async fn finish(&self) {
        self.apart.close();
        self.apart.wait().await;
    }
}

impl Reply {
    async fn outcome(self) -> Result<Outcome, WriteError> {
        match self {
            Self::Outcome(outcome) => outcome,
            Self::Deferred(writing) => writing.await.unwrap_or_else(|error| Err(ended_early(&error))),
        }
    }
}

/// Withdraws a statement that has not been claimed.
struct WithdrawnOnDrop<'t>(Option<&'t CancelToken>);

impl Drop for WithdrawnOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(token) = self.0 {
            token.withdraw();
        }
    }
}

/// Some of what it did may have been committed before.
fn ended_early(error: &JoinError) -> WriteError {
    WriteError::OutcomeUnknown {
        cause: format!("writing did not come to its end: {error}"),
    }
}

/// Chooses a writer's limits; see [`Writer::builder`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("app.db");
/// use std::time::Duration;
///
/// use forebay::sqlite::Sqlite;
/// use forebay::write::Writer;
///
/// let writer = Writer::builder()
///     .max_items(1_000)
///     .max_wait(Duration::from_millis(2))
///     .build(Sqlite::open(path)?);
/// writer.execute("CREATE TABLE hits (page TEXT)", ()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until it is built"]
pub struct WriterBuilder {
    max_items: usize,
    max_weight: usize,
    max_wait: Duration,
    max_queued: usize,
    max_in_flight: Option<usize>,
}

impl Default for WriterBuilder {
    fn default() -> Self {
        Self {
            max_items: 4096,
            max_weight: 16 << 20,
            max_wait: Duration::ZERO,
            max_queued: 100_000,
            max_in_flight: None,
        }
    }
}

impl WriterBuilder {
    /// The most statements that share a commit. Default: 4096.
    ///
    /// # Panics
    ///
    /// When it is 0: no batch could take a statement.
    #[track_caller]
    pub fn max_items(mut self, max_items: usize) -> Self {
        assert!(
            max_items > 0,
            "max_items must be at least 1: a batch of 0 statements writes nothing"
        );
        self.max_items = max_items;
        self
    }

    /// The most bytes that share a commit: of parameters, and of statements made at run time. Default: 16 MiB. With 0 every
    /// statement that has some goes alone.
    pub fn max_weight(mut self, bytes: usize) -> Self {
        self.max_weight = bytes;
        self
    }

    /// The window: how long a statement may wait for others, counted from the first. Default: zero, which gathers while
    /// a commit runs and makes nobody wait on an idle database.
    pub fn max_wait(mut self, max_wait: Duration) -> Self {
        self.max_wait = max_wait;
        self
    }

    /// The most batches in flight at a time, each on a connection of its own. With 1, all writes are committed in the order of
    /// their arrival; with more, those of one [key](Write::ordered_by), or without a key of one text that is more than a plain
    /// INSERT of one row: such INSERTs go wherever there is room. Default: 4 that share, and beside them, while there are few such
    /// INSERTs, as many that are alone as the database's pool has room for; with SQLite always 1, as it has one writer.
    ///
    /// # Panics
    ///
    /// When it is 0: nothing could be written.
    #[track_caller]
    pub fn max_in_flight(mut self, max_in_flight: usize) -> Self {
        assert!(
            max_in_flight > 0,
            "max_in_flight must be at least 1: otherwise nothing is written"
        );
        self.max_in_flight = Some(max_in_flight);
        self
    }

    /// The most statements that wait, for each of the batches that may be in flight; what is over waits outside, in order.
    /// Default: 100,000.
    ///
    /// # Panics
    ///
    /// When it is 0: nothing could enter.
    #[track_caller]
    pub fn max_queued(mut self, max_queued: usize) -> Self {
        assert!(
            max_queued > 0,
            "max_queued must be at least 1: otherwise nothing enters"
        );
        self.max_queued = max_queued;
        self
    }

    /// A writer on that database.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime where the database needs one to begin with, as those over the network do. SQLite needs none before the first
    /// write.
    pub fn build(self, database: impl Database) -> Writer {
        let in_flight = database.in_flight();
        let (shared, lanes) = match self.max_in_flight {
            Some(asked) => (asked.min(in_flight.most), asked.min(in_flight.most)),
            None => (in_flight.sharing.min(in_flight.most), in_flight.most),
        };
        let target = Target {
            database: Arc::new(database),
            apart: TaskTracker::new(),
        };
        Writer {
            lanes: Lanes::new((0..lanes).map(|_| self.lane(&target)), shared),
            target,
            max_wait: self.max_wait,
            has_room_apart: self.max_in_flight.is_none(),
        }
    }

    fn lane(&self, target: &Target) -> Batcher<Write, Reply> {
        let target = target.clone();
        let mut batcher = Batcher::<Write, Reply>::builder()
            .max_items(self.max_items)
            .max_weight(self.max_weight, Write::weight)
            .max_queued(self.max_queued)
            .max_in_flight(1);
        if !self.max_wait.is_zero() {
            batcher = batcher.max_wait(self.max_wait);
        }
        batcher.build(move |batch: Vec<Write>| {
            let target = target.clone();
            async move { Ok(target.write(batch).await) }
        })
    }
}

impl Writer {
    /// A writer with the default limits.
    ///
    /// # Panics
    /// As [`WriterBuilder::build`].
    pub fn new(database: impl Database) -> Self {
        WriterBuilder::default().build(database)
    }

    /// Chooses limits; [`WriterBuilder::build`] makes the writer.
    pub fn builder() -> WriterBuilder {
        WriterBuilder::default()
    }

    /// Executes one statement. When this returns `Ok`, it is committed, with the database's full durability.
    ///
    /// # Errors
    /// [`WriteError`]; all but [`WriteError::OutcomeUnknown`] mean that the statement had no effect.
    ///
    /// # Cancel safety
    /// Dropped before its batch began, the statement has no effect. Dropped later, it is executed and its outcome lost.
    pub async fn execute(&self, sql: impl Into<Sql>, parameters: impl IntoParameters) -> Result<Outcome, WriteError> {
        self.submit(Write::new(sql, parameters)).await
    }

    /// As [`execute`](Self::execute), with a window of its own or a token that cancels it.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    ///
    /// # Cancel safety
    /// As [`execute`](Self::execute).
    pub async fn submit(&self, write: Write) -> Result<Outcome, WriteError> {
        let token = write.cancel.clone();
        let lane = self.lanes.enter(self.affinity_of(&write));
        let mut write = write;
        if self.has_room_apart && token.is_none() && lane.is_apart() {
            match self.write_apart(write) {
                Ok(writing) => {
                    let mut answers = writing.await.map_err(|error| ended_early(&error))?;
                    return answers.pop().expect("one answer a write").outcome().await;
                }
                Err(refused) => write = refused,
            }
        }
        let call = match write.max_wait {
            None => lane.batcher().call(write),
            Some(max_wait) => lane.batcher().call_within(write, max_wait),
        };
        let answer = match token {
            None => call.await,
            Some(token) => tokio::select! {
                biased;
                answer = call => answer,
                // It has no effect and never will: the token is asked before the statement is executed.
                () = token.withdrawn() => return Err(token.reason()),
            },
        };
        match answer {
            Ok(told) => told.outcome().await,
            Err(CallError::Closed) => Err(WriteError::Closed),
            // The batch may have been on its way to the database when its task ended.
            Err(error) => Err(WriteError::OutcomeUnknown {
                cause: error.to_string(),
            }),
        }
    }

    /// As [`submit`](Self::submit), for a task that does nothing else meanwhile. Where nobody writes at the same time, and nobody
    /// has of late, the statement is executed and committed on the calling thread, which is blocked for as long as that takes: no
    /// other thread has to be woken, and woken back. The runtime's other tasks go on. Only SQLite is written to like this, in a runtime
    /// of several threads; elsewhere, and in company, it is the same as [`submit`](Self::submit).
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    ///
    /// # Panics
    /// Where [`tokio::task::block_in_place`] does in a runtime of several threads: in a `LocalSet`.
    ///
    /// # Cancel safety
    /// As [`execute`](Self::execute).
    pub async fn submit_in_place(&self, write: Write) -> Result<Outcome, WriteError> {
        match self.write_in_place(write) {
            Ok(outcome) => outcome,
            Err(write) => self.submit(write).await,
        }
    }

    /// The write comes back where it would have to wait for somebody, or may not block.
    fn write_in_place(&self, write: Write) -> Result<Result<Outcome, WriteError>, Write> {
        let waits_for_company = !write.max_wait.unwrap_or(self.max_wait).is_zero();
        let may_block = Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
        if waits_for_company || !may_block {
            return Err(write);
        }
        let Some(alone) = self.lanes.alone() else {
            return Err(write);
        };
        let outcome = block_in_place(|| self.target.database.write_in_place(write))?;
        alone.processed();
        Ok(outcome)
    }

    /// Writes one that is alone in a task of its own, which costs less than a batcher's. The write comes back where the writer is
    /// closed.
    fn write_apart(&self, write: Write) -> Result<JoinHandle<Vec<Reply>>, Write> {
        let Ok(tracked) = self.target.open() else {
            return Err(write);
        };
        let (target, counted) = (self.target.clone(), self.lanes.apart());
        Ok(tokio::spawn(async move {
            let _until_it_ends = (tracked, counted);
            target.write(vec![write]).await
        }))
    }

    /// As [`submit`](Self::submit), sharing the commit with nobody, and in no order with what was submitted otherwise.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    ///
    /// # Cancel safety
    /// As [`execute`](Self::execute).
    pub async fn submit_alone(&self, mut write: Write) -> Result<Outcome, WriteError> {
        let token = write.cancel.get_or_insert_default().clone();
        // What runs has a task of its own, which is not dropped with this future: what it has not claimed, it never will.
        let mut unanswered = WithdrawnOnDrop(Some(&token));
        let mut answers = tokio::select! {
            biased;
            answers = self.target.write_to_the_end(vec![write]) => answers?,
            () = token.withdrawn() => return Err(token.reason()),
        };
        unanswered.0 = None;
        let told = answers.pop().expect("one answer a write");
        told.outcome().await
    }

    /// In which lane it must be, or may be.
    fn affinity_of(&self, write: &Write) -> Affinity {
        if self.lanes.is_one() {
            // No need to look at it.
            return Affinity::Ordered(0);
        }
        let number = write.order();
        if write.is_ordered() {
            return Affinity::Ordered(number);
        }
        let Some(mut sharing) = self.target.database.sharing(write.sql()) else {
            return Affinity::Ordered(number);
        };
        if !write.max_wait.unwrap_or(self.max_wait).is_zero() {
            // It waits for company.
            (sharing.few, sharing.few_alike) = (0, 0);
        }
        Affinity::Free(number, sharing)
    }

    /// Begins a transaction of the caller's own. On SQLite nobody else writes while it is open, so keep it short.
    ///
    /// # Errors
    /// [`WriteError::Busy`], [`WriteError::Closed`].
    ///
    /// # Cancel safety
    /// Dropped before it completes, nothing has happened.
    pub async fn begin(&self) -> Result<Transaction, WriteError> {
        // It is not waited for: whoever has it may be the one who drains.
        drop(self.target.open()?);
        self.target.database.begin().await
    }

    /// Takes no more statements, writes those that wait, and returns when the last is answered. Later calls get
    /// [`WriteError::Closed`]. Transactions that are open go on, and are not waited for.
    ///
    /// # Cancel safety
    /// Dropped before it completes, the writer stays closed and goes on emptying its queue.
    pub async fn drain(&self) {
        self.target.close();
        self.lanes.drain().await;
        self.target.finish().await;
    }

    /// What the writer has done so far.
    pub fn stats(&self) -> batch::Stats {
        self.lanes.stats()
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
