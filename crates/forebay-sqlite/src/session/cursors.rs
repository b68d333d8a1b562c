//! Cursors: statements that read, stepped a few rows at a time.
//!
//! Promises: a cursor goes on behind the row at which it paused; one that fails, or has no more rows, is closed. Knows nothing of who
//! reads.

use std::ops::ControlFlow;
use std::rc::Rc;

use rusqlite::ffi;

use super::values::bind;
use super::{Cursor, Progress, Session, Watching, statement_code};
use forebay_write::{CancelToken, Parameters, Sql, WriteError};

impl Session {
    /// Opens a cursor over a statement that reads. `cursor` is the caller's own number for it; one that is open under
    /// that number is closed first.
    ///
    /// # Errors
    /// The statement's own; [`WriteError::Refused`] if it would write.
    pub fn open_cursor(&mut self, cursor: u64, sql: &Sql, parameters: &Parameters) -> Result<(), WriteError> {
        self.close_cursor(cursor);
        let mut opened = Cursor::try_new(Rc::clone(&self.connection), |connection| {
            self.prepare(connection, sql).map_err(|failure| failure.error)
        })?;
        opened.with_dependent_mut(|_, statement| {
            if !statement.readonly() {
                return Err(WriteError::Refused {
                    reason: "a cursor reads; this statement writes".to_owned(),
                });
            }
            let program = self.program(sql, statement).map_err(|failure| failure.error)?;
            bind(statement, &program, parameters)
        })?;
        self.cursors.insert(cursor, opened);
        Ok(())
    }

    /// Gives rows to `visit` until it breaks or there are no more.
    ///
    /// # Errors
    /// The statement's own, [`WriteError::Cancelled`] or [`WriteError::TimedOut`]; the cursor is closed then.
    pub fn fetch(
        &mut self,
        cursor: u64,
        token: Option<&CancelToken>,
        visit: &mut dyn FnMut(&rusqlite::Row<'_>) -> ControlFlow<()>,
    ) -> Result<Progress, WriteError> {
        let Some(open) = self.cursors.get_mut(&cursor) else {
            return Ok(Progress::Done);
        };
        let watching = Watching::start(&self.watch, token);
        let result = open.with_dependent_mut(|_, statement| {
            // A statement that is stepped again after its last row would start anew; a closed cursor never is.
            let mut rows = statement.raw_query();
            while let Some(row) = rows.next()? {
                if visit(row).is_break() {
                    // Dropped, it would reset the statement; the cursor goes on from here.
                    std::mem::forget(rows);
                    return Ok(Progress::Paused);
                }
            }
            Ok(Progress::Done)
        });
        drop(watching);
        match result {
            Ok(Progress::Paused) => Ok(Progress::Paused),
            Ok(Progress::Done) => {
                self.close_cursor(cursor);
                Ok(Progress::Done)
            }
            Err(error) => {
                self.close_cursor(cursor);
                Err(match token {
                    Some(token) if statement_code(&error) == ffi::SQLITE_INTERRUPT && token.interrupts() => {
                        token.reason()
                    }
                    _ => self.explain(&error),
                })
            }
        }
    }

    /// Closes a cursor; nothing if it is not open.
    pub fn close_cursor(&mut self, cursor: u64) {
        if let Some(mut open) = self.cursors.remove(&cursor) {
            // Back to the cache, at its start.
            open.with_dependent_mut(|_, statement| drop(statement.raw_query()));
        }
    }

    /// Closes all cursors.
    pub fn close_cursors(&mut self) {
        let open: Vec<u64> = self.cursors.keys().copied().collect();
        for cursor in open {
            self.close_cursor(cursor);
        }
    }
}
