//! One query, executed once for each of many sets of parameters, all in one snapshot.
//!
//! Promises: compiled once; every execution sees the same state of the database, and gives what it would give alone, an error
//! included. Knows nothing of keys and of what rows become.

use std::ops::ControlFlow;
use std::rc::Rc;

use rusqlite::{Row, ffi};

use super::values::bind;
use super::{Session, Watching, statement_code};
use forebay_write::{CancelToken, Parameters, Sql, WriteError};

impl Session {
    /// Executes a query once for each of `parameters`, in order, and gives its rows to `visit`, with the position of the
    /// parameters that they are for; a break ends that execution alone. One result for each of `parameters`.
    ///
    /// # Errors
    /// Those of the statement's text; [`WriteError::Refused`] if it would write; [`WriteError::Cancelled`] or
    /// [`WriteError::TimedOut`]. An execution's own error is in its result.
    pub fn query_each(
        &mut self,
        sql: &Sql,
        parameters: &[Parameters],
        token: &CancelToken,
        visit: &mut dyn FnMut(usize, &Row<'_>) -> ControlFlow<()>,
    ) -> Result<Vec<Result<(), WriteError>>, WriteError> {
        // One execution has its own snapshot.
        let begins = parameters.len() > 1 && self.is_autocommit();
        if begins {
            // One snapshot for all, and one look at the file's locks instead of one each.
            self.trusted("BEGIN DEFERRED").map_err(|failure| failure.error)?;
        }
        let executed = self.query_each_in_transaction(sql, parameters, token, visit);
        if begins {
            self.rollback();
        }
        executed
    }

    fn query_each_in_transaction(
        &mut self,
        sql: &Sql,
        parameters: &[Parameters],
        token: &CancelToken,
        visit: &mut dyn FnMut(usize, &Row<'_>) -> ControlFlow<()>,
    ) -> Result<Vec<Result<(), WriteError>>, WriteError> {
        let connection = Rc::clone(&self.connection);
        let mut statement = self.prepare(&connection, sql).map_err(|failure| failure.error)?;
        if !statement.readonly() {
            return Err(WriteError::Refused {
                reason: "a query reads; this statement writes: give it to a Writer".to_owned(),
            });
        }
        let program = self.program(sql, &statement).map_err(|failure| failure.error)?;
        let bytes_max = self.settings.max_rows_bytes;
        let watching = Watching::start(&self.watch, Some(token));
        let mut results = Vec::with_capacity(parameters.len());
        for (position, parameters) in parameters.iter().enumerate() {
            // The progress handler looks only into long executions.
            if token.interrupts() {
                return Err(token.reason());
            }
            if let Err(error) = bind(&mut statement, &program, parameters) {
                results.push(Err(error));
                continue;
            }
            let mut rows = statement.raw_query();
            let mut bytes = 0;
            let executed = loop {
                match rows.next() {
                    Ok(Some(row)) => {
                        bytes += row_bytes(row);
                        if bytes > bytes_max {
                            break Err(self.returned_too_much());
                        }
                        if visit(position, row).is_break() {
                            break Ok(());
                        }
                    }
                    Ok(None) => break Ok(()),
                    Err(error) if statement_code(&error) == ffi::SQLITE_INTERRUPT && token.interrupts() => {
                        return Err(token.reason());
                    }
                    Err(error) => break Err(self.explain(&error)),
                }
            };
            results.push(executed);
        }
        drop(watching);
        Ok(results)
    }
}

/// The bytes of a row's values.
fn row_bytes(row: &Row<'_>) -> usize {
    let columns = row.as_ref().column_count();
    (0..columns)
        .filter_map(|column| row.get_ref(column).ok())
        .map(|value| match value {
            rusqlite::types::ValueRef::Text(bytes) | rusqlite::types::ValueRef::Blob(bytes) => bytes.len(),
            _ => size_of::<i64>(),
        })
        .sum()
}
