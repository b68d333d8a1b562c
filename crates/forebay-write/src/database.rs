//! What a database is to the Writer: it writes batches, and begins transactions.
//!
//! Promises, by whoever implements [`Database`]: what the Writer promises of outcomes and durability. Knows no database.

pub use crate::running::Running;
pub use crate::transaction::OpenTransaction;
use crate::{Outcome, Sql, Transaction, Write, WriteError};

/// A database that a [`Writer`](crate::Writer) can stand on.
///
/// A handle: what it is cheap to clone of it, an implementation keeps behind an `Arc`.
///
/// A journal, to which many write at a time:
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use forebay::write::database::{Answer, Database, InFlight, Running};
/// use forebay::write::{Outcome, Transaction, Write, WriteError, Writer};
///
/// /// Its commits, each with what was written by it.
/// #[derive(Clone, Default)]
/// struct Journal(Arc<Mutex<Vec<Vec<String>>>>);
///
/// impl Database for Journal {
///     fn write(&self, batch: Vec<Write>) -> Running<'_, Vec<Answer>> {
///         Box::pin(async move {
///             let mut commit = Vec::new();
///             let answers = batch.into_iter().map(|write| {
///                 // From here on it is not cancelled any more; if it was, it has no effect.
///                 let outcome = write.claim().and_then(|()| {
///                     let outcome = Outcome::counted(1, None);
///                     // Its caller may have a say before the commit.
///                     write.acceptance().map_or(Ok(()), |acceptance| acceptance.of(&outcome))?;
///                     commit.push(write.sql().to_string());
///                     Ok(outcome)
///                 });
///                 Answer::Outcome(outcome)
///             });
///             let answers = answers.collect();
///             self.0.lock().unwrap().push(commit); // Here it would be synced, before anybody is answered.
///             answers
///         })
///     }
///
///     fn begin(&self) -> Running<'_, Result<Transaction, WriteError>> {
///         let reason = "a journal has no transactions".to_owned();
///         Box::pin(async { Err(WriteError::Refused { reason }) })
///     }
///
///     fn in_flight(&self) -> InFlight {
///         InFlight { sharing: 1, most: 1 }
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let journal = Journal::default();
/// let writer = Writer::new(journal.clone());
/// let (one, two) = tokio::join!(writer.execute("one", ()), writer.execute("two", ()));
/// assert_eq!((one?.rows_affected, two?.rows_affected), (1, 1));
/// assert_eq!(*journal.0.lock().unwrap(), [["one", "two"]]); // One commit for both.
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no database that a `Writer` can write to",
    note = "give it a `Sqlite`, a `Postgres` or a `MySql`, by value: a clone is a handle to the same"
)]
pub trait Database: Send + Sync + 'static {
    /// Writes a batch; one answer a write, in order. Not to be dropped before it completes: the Writer runs it in a task.
    fn write(&self, batch: Vec<Write>) -> Running<'_, Vec<Answer>>;

    /// Begins a transaction of its caller's own. Dropped before it completes, nothing has happened.
    fn begin(&self) -> Running<'_, Result<Transaction, WriteError>>;

    /// How many batches may be in flight at a time.
    fn in_flight(&self) -> InFlight;

    /// Writes one on the calling thread, which is blocked meanwhile, if it need not wait for anybody; otherwise it comes back as it
    /// was, and nothing was done.
    ///
    /// # Errors
    /// The write itself.
    fn write_in_place(&self, write: Write) -> Result<Result<Outcome, WriteError>, Write> {
        Err(write)
    }

    /// How writes of this text best share commits, if they are in nobody's order: an INSERT of one row without a key, which
    /// neither reads rows nor changes any that are there. Otherwise none.
    fn sharing(&self, _sql: &Sql) -> Option<Sharing> {
        None
    }
}

/// How many batches may be in flight at a time.
///
/// ```
/// use forebay::write::database::InFlight;
///
/// // One that has a single writer, as SQLite has: what comes meanwhile gathers.
/// let embedded = InFlight { sharing: 1, most: 1 };
/// // A server that does several at a time: few batches, so that much is in each; more of them where a write has no neighbours.
/// let server = InFlight { sharing: 2, most: 16 };
/// assert!(embedded.sharing <= embedded.most && server.sharing <= server.most);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InFlight {
    /// Of those that many writes share, if nothing was asked for: the fewer there are, the more is in each.
    pub sharing: usize,
    /// Of all, with those of writes that are alone: more are of no use.
    pub most: usize,
}

/// How many of one text are best to share commits.
///
/// ```
/// use forebay::write::Sql;
/// use forebay::write::database::Sharing;
///
/// /// For a database to which a call costs about what eight rows do: so up to seven go alone, side by side.
/// fn sharing(sql: &Sql) -> Option<Sharing> {
///     let is_plain = &**sql == "INSERT INTO hits VALUES ($1)";
///     is_plain.then_some(Sharing { few: 8, few_alike: 8, many: 512 })
/// }
///
/// assert!(sharing(&"INSERT INTO hits VALUES ($1)".into()).is_some());
/// assert!(sharing(&"UPDATE hits SET seen = seen + 1".into()).is_none()); // In the order of its arrival.
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sharing {
    /// Fewer are better off alone.
    pub few: usize,
    /// Fewer are better off alone even where all would be of one text.
    pub few_alike: usize,
    /// So many share enough, and others can be written at the same time.
    pub many: usize,
}

/// What a batch has for the caller of a write.
///
/// ```
/// use forebay::write::database::Answer;
/// use forebay::write::{Outcome, WriteError};
///
/// /// What a database answers where a lock may be in a write's way.
/// fn answer(is_locked: bool) -> Answer {
///     let written = || Ok::<_, WriteError>(Outcome::counted(1, None));
///     if is_locked {
///         Answer::Deferred(Box::pin(async move { written() })) // Its neighbours are answered without it.
///     } else {
///         Answer::Outcome(written())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let Answer::Deferred(again) = answer(true) else { panic!("a lock is in its way") };
/// assert_eq!(again.await.unwrap().rows_affected, 1);
/// assert!(matches!(answer(false), Answer::Outcome(Ok(_))));
/// # }
/// ```
pub enum Answer {
    /// Its outcome.
    Outcome(Result<Outcome, WriteError>),
    /// It was deferred: it stood in its neighbours' way and had no effect; this tries it again, without them.
    Deferred(Running<'static, Result<Outcome, WriteError>>),
}
