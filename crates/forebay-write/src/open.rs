//! Open: what a transaction that is open on a database can do.
//!
//! Promises, by whoever implements [`OpenTransaction`]: what [`Transaction`](crate::Transaction) says of each method. Knows no
//! database.

use std::future::Future;
use std::pin::Pin;

use crate::error::WriteError;
use crate::outcome::Outcome;
use crate::statement::Sql;
use crate::value::Parameters;

/// Something that runs in a database and ends with a `T`.
pub type Running<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A transaction that is open on a database. What each method promises,
/// [`Transaction`](crate::Transaction) says.
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
