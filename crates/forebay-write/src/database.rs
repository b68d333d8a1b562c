//! What a database is to the Writer: it writes batches, and begins transactions.
//!
//! Promises, by whoever implements [`Database`]: what the Writer promises of outcomes and durability. Knows no database.

pub use crate::running::Running;
pub use crate::transaction::OpenTransaction;
use crate::{Outcome, Sql, Transaction, Write, WriteError};

/// A database that a [`Writer`](crate::Writer) can stand on.
///
/// A handle: what it is cheap to clone of it, an implementation keeps behind an `Arc`.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InFlight {
    /// Of those that many writes share, if nothing was asked for: the fewer there are, the more is in each.
    pub sharing: usize,
    /// Of all, with those of writes that are alone: more are of no use.
    pub most: usize,
}

/// How many of one text are best to share commits.
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
pub enum Answer {
    /// Its outcome.
    Outcome(Result<Outcome, WriteError>),
    /// It was deferred: it stood in its neighbours' way and had no effect; this tries it again, without them.
    Deferred(Running<'static, Result<Outcome, WriteError>>),
}
