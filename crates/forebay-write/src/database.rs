//! What a database is to the Writer: it writes batches, and begins transactions.
//!
//! Promises, by whoever implements [`Database`]: what the Writer promises of outcomes and durability. Knows no database.

use std::future::Future;
use std::pin::Pin;

use crate::{Outcome, Parameters, Sql, Transaction, Write, WriteError};

/// Something that runs in a database and ends with a `T`.
pub type Running<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A database that a [`Writer`](crate::Writer) can stand on.
///
/// A handle: what it is cheap to clone of it, an implementation keeps behind an `Arc`.
pub trait Database: Send + Sync + 'static {
    /// Writes a batch; one answer a write, in order. Not to be dropped before it completes: the Writer runs it in a task.
    fn write(&self, batch: Vec<Write>) -> Running<'_, Vec<Answer>>;

    /// Begins a transaction of its caller's own. Dropped before it completes, nothing has happened.
    fn begin(&self) -> Running<'_, Result<Transaction, WriteError>>;

    /// How many batches may be in flight at a time.
    fn in_flight(&self) -> InFlight;

    /// How writes of this text best share commits, if they are in nobody's order: an INSERT of one row without a key, which
    /// neither reads rows nor changes any that are there. Otherwise none.
    fn sharing(&self, _sql: &Sql) -> Option<Sharing> {
        None
    }
}

/// How many batches may be in flight at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InFlight {
    /// If nothing was asked for.
    pub default: usize,
    /// More are of no use.
    pub most: usize,
}

/// How many of one text are best to share commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sharing {
    /// Fewer are better off alone.
    pub few: usize,
    /// So many share enough, and others can be written at the same time.
    pub many: usize,
}

/// What a batch has for the caller of a write.
pub enum Answer {
    /// Its outcome.
    Outcome(Result<Outcome, WriteError>),
    /// It stood in its neighbours' way and had no effect; this tries it again, without them.
    Later(Running<'static, Result<Outcome, WriteError>>),
}

/// A transaction that is open on a database. What each method promises, [`Transaction`] says.
pub trait OpenTransaction: Send {
    /// Executes one statement.
    fn execute(&mut self, sql: Sql, parameters: Parameters) -> Running<'_, Result<Outcome, WriteError>>;

    /// Whether the database has rolled it back by itself.
    fn is_lost(&self) -> bool;

    /// Marks a point to roll back to.
    fn savepoint<'a>(&'a mut self, name: &'a str) -> Running<'a, Result<(), WriteError>>;

    /// Undoes what was done since the savepoint, which stays.
    fn rollback_to<'a>(&'a mut self, name: &'a str) -> Running<'a, Result<(), WriteError>>;

    /// Forgets the savepoint.
    fn release<'a>(&'a mut self, name: &'a str) -> Running<'a, Result<(), WriteError>>;

    /// Commits.
    fn commit(self: Box<Self>) -> Running<'static, Result<(), WriteError>>;

    /// Rolls back, and waits until it is done. Dropping does the same without waiting.
    fn rollback(self: Box<Self>) -> Running<'static, Result<(), WriteError>>;
}

/// Implements [`OpenTransaction`] by a type's own methods of the same names.
#[macro_export]
macro_rules! open_transaction {
    ($transaction:ty) => {
        impl $crate::database::OpenTransaction for $transaction {
            fn execute(
                &mut self,
                sql: $crate::Sql,
                parameters: $crate::Parameters,
            ) -> $crate::database::Running<'_, Result<$crate::Outcome, $crate::WriteError>> {
                Box::pin(self.execute(sql, parameters))
            }

            fn is_lost(&self) -> bool {
                self.is_lost()
            }

            fn savepoint<'a>(
                &'a mut self,
                name: &'a str,
            ) -> $crate::database::Running<'a, Result<(), $crate::WriteError>> {
                Box::pin(self.savepoint(name))
            }

            fn rollback_to<'a>(
                &'a mut self,
                name: &'a str,
            ) -> $crate::database::Running<'a, Result<(), $crate::WriteError>> {
                Box::pin(self.rollback_to(name))
            }

            fn release<'a>(
                &'a mut self,
                name: &'a str,
            ) -> $crate::database::Running<'a, Result<(), $crate::WriteError>> {
                Box::pin(self.release(name))
            }

            fn commit(self: Box<Self>) -> $crate::database::Running<'static, Result<(), $crate::WriteError>> {
                Box::pin((*self).commit())
            }

            fn rollback(self: Box<Self>) -> $crate::database::Running<'static, Result<(), $crate::WriteError>> {
                Box::pin((*self).rollback())
            }
        }
    };
}
