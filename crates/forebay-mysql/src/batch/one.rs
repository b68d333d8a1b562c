//! A single statement, executed by itself in the open transaction.
//!
//! Promises: one that fails undoes only itself, or the caller is told that the whole transaction is gone.

use super::interruption::Interruption;
use super::state::{Batch, unknown};
use crate::connection::Connection;
use crate::error::Failure;
use crate::plan::Plan;
use forebay_remote::settled::Settled;

impl Batch<'_> {
    /// One statement in the transaction that is open.
    pub(super) async fn execute_one(
        &mut self,
        connection: &mut Connection,
        plan: &Plan,
        index: usize,
    ) -> Result<(), Interruption> {
        let write = &self.writes[index];
        if let Err(error) = write.claim() {
            self.settle(index, Err(error));
            return Ok(());
        }
        if plan.changes_session {
            connection.mark_changed();
        }
        if write.acceptance().is_some() {
            connection
                .command("SAVEPOINT forebay", false)
                .await
                .map_err(Interruption::of)?;
        }
        self.executed.push(index);
        let failure = match connection.execute(write.sql(), write.parameters()).await {
            Ok(outcome) => {
                let accepted = write.acceptance().map_or(Ok(()), |acceptance| acceptance.of(&outcome));
                if let Err(error) = accepted {
                    let undone = connection
                        .undo("ROLLBACK TO SAVEPOINT forebay")
                        .await
                        .map_err(Interruption::of)?;
                    // Not before: a table without transactions keeps it, also where the connection is lost meanwhile.
                    self.executed.pop();
                    self.settle(index, if undone { Err(error) } else { unknown(&error) });
                } else {
                    self.settle(index, Ok(outcome));
                }
                return Ok(());
            }
            Err(failure) => failure,
        };
        self.after_failure(connection, index, failure).await
    }

    /// What a failure in the transaction means for its statement, which is the last of `executed`, and for the rest.
    pub(super) async fn after_failure(
        &mut self,
        connection: &mut Connection,
        index: usize,
        failure: Failure,
    ) -> Result<(), Interruption> {
        if let Failure::Lost { cause, .. } = failure {
            return Err(Interruption::Lost(cause));
        }
        if failure.is_deadlock() {
            return Err(Interruption::Conflict(failure));
        }
        self.executed.pop();
        if failure.leaves_transaction() {
            self.settle(index, Err(failure.into_write_error()));
            return Ok(());
        }
        let must_undo = matches!(failure, Failure::TooMuch(_));
        let stands = !must_undo && connection.is_in_transaction().await.map_err(Interruption::of)?;
        if failure.is_lock_timeout() {
            if self.waits_in_place(index) && stands {
                return Err(Interruption::Blocked(index, failure));
            }
            self.settled[index] = Some(Settled::Deferred);
            // However many rows are locked, their neighbours do not wait much longer than for one.
            connection.wait_for_no_lock().await.map_err(Interruption::of)?;
            if self.waits_in_place(index) {
                return Err(Interruption::Conflict(failure));
            }
        } else {
            self.settle(index, Err(failure.into_write_error()));
        }
        if stands {
            Ok(())
        } else {
            Err(Interruption::Spoiled(index))
        }
    }
}
