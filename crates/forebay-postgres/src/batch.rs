//! A batch of writes in as few transactions as can be, so that each has the outcome it would have had alone.
//!
//! First optimistically: all statements in one transaction, in arrival order, sent without waiting for answers between. If one
//! fails, PostgreSQL gives up the whole transaction; then carefully: again, in subtransactions, behind a savepoint each, so that a
//! failure costs its own statement and a subtransaction's work. Deferred constraints are looked at after each statement. If the commit
//! itself is refused (a serialization failure), the transaction is run again in halves, down to the failing one. Nobody is
//! answered before the commit, not even a statement that failed: the row it conflicted with may itself be rolled back.
//!
//! The commit is asked for when everything before it was answered. So a connection that is lost before has written nothing,
//! and the batch is run again on another one.
//!
//! A statement that waits for another transaction's lock for longer than the lock timeout leaves the batch: its caller waits
//! for the lock on a connection of its own ([`run_as_lock_waiter`]). One that has to keep its order waits in its place.

mod interruption;
mod one;
mod prepared;
mod recovery;
mod sets;
mod state;
mod subtransaction;

use std::sync::Arc;
use std::time::{Duration, Instant};

use self::interruption::{Interruption, interruption};
use self::one::Tried;
use self::prepared::PreparedTexts;
use self::sets::Set;
use self::state::{Batch, Group, Mode};
use self::subtransaction::STATEMENTS_MAX;
use super::connection::Connection;
use super::connector::Lease;
use super::error::{Failure, failure, had_no_effect};
use super::inner::Inner;
use super::pipeline::Whose;
use super::prepared::Prepared;
use super::session::milliseconds;
use super::statement::{misfit, outcome, sent, unsendable};
use forebay_remote::backoff::Backoff;
use forebay_remote::connections::Purpose;
use forebay_remote::settled::{self, Settled, WriteResult};
use forebay_sql::Role;
use forebay_write::database::{Answer, Running};
use forebay_write::{StatementError, Write, WriteError};

/// From so many rows on a set is cheaper than its parts (measured; `docs/decisions/0006-databases-over-the-network.md`).
const SET_MIN: usize = 4;
/// No lock is waited for for less than this, but where deadlocks are looked for as soon.
const LOCK_TIMEOUT_MIN: Duration = Duration::from_millis(10);
/// Alone, what is deferred is looked at after the statement; so it is here. Else a neighbour could mend what a statement has
/// broken, and a trigger would see the neighbours' rows. What is left of a difference: among one statement's triggers a deferred
/// one comes by its name, not last.
const BEGIN: &str = "BEGIN; SET CONSTRAINTS ALL IMMEDIATE";

/// Runs the batch; one answer a write, in order.
pub(crate) async fn run(inner: &Arc<Inner>, writes: Vec<Write>) -> Vec<Answer> {
    let mut backoff = inner.connections.backoff();
    let lock_waiter = |write| -> Running<'static, WriteResult> {
        let inner = Arc::clone(inner);
        Box::pin(async move { run_as_lock_waiter(&inner, write).await })
    };
    if let [write] = &*writes {
        match one::attempt(inner, write, &mut backoff).await {
            Tried::Settled(result) => return vec![Answer::Outcome(result)],
            Tried::Locked => return writes.into_iter().map(lock_waiter).map(Answer::Deferred).collect(),
            Tried::Undone => {}
        }
    }
    // Much larger than what runs one that is prepared, which is most of those that are alone.
    let settled = Box::pin(async {
        let mut batch = Batch::new(inner, &writes, false);
        batch.backoff = backoff;
        batch.run().await;
        batch.settled
    })
    .await;
    settled::answers(settled, writes, lock_waiter)
}

/// Runs one that waits for locks for as long as is tried at all.
async fn run_as_lock_waiter(inner: &Inner, write: Write) -> WriteResult {
    let (_turn, backoff) = inner.lock_waiters.turn().await?;
    let writes = [write];
    let mut batch = Batch::new(inner, &writes, true);
    batch.backoff = backoff;
    batch.run().await;
    match batch.settled.pop().flatten().expect("the only write is settled") {
        Settled::Outcome(outcome) => outcome,
        Settled::Deferred => unreachable!("one that waits for locks is not deferred"),
    }
}

/// What is done with a run of statements.
enum Step {
    /// Each by itself.
    Singles(Vec<usize>),
    /// As one.
    Set(Box<Set>),
}

impl Batch<'_> {
    async fn run(&mut self) {
        let mut shared = Vec::with_capacity(self.writes.len());
        for index in 0..self.writes.len() {
            match &self.plans[index].role {
                Role::Shares => shared.push(index),
                Role::Alone => {
                    self.later(std::mem::take(&mut shared), Mode::Optimistic);
                    self.later(vec![index], Mode::Alone);
                }
                Role::Refused(reason) => {
                    let reason = reason.clone();
                    self.settle(index, Err(WriteError::Refused { reason }));
                }
            }
        }
        self.later(shared, Mode::Optimistic);
        while let Some(mut group) = self.groups.pop_front() {
            group.indices.retain(|&index| self.may_run(index));
            if !group.indices.is_empty() {
                self.run_group(group).await;
            }
        }
    }

    async fn run_group(&mut self, group: Group) {
        let at_most = &mut Backoff::until(self.until());
        let mut lease = match self.inner.connections.take(Purpose::Write, at_most).await {
            Ok(lease) => lease,
            Err(error) => {
                // Those behind it would be told the same, each after as long a wait.
                self.settle_all(&group.indices, &error);
                for group in std::mem::take(&mut self.groups) {
                    let open: Vec<usize> = group
                        .indices
                        .into_iter()
                        .filter(|&index| self.settled[index].is_none())
                        .collect();
                    self.settle_all(&open, &error);
                }
                return;
            }
        };
        if group.replans > 0 {
            // It may be another connection than the one on which that was found.
            lease.forget_statements();
        }
        match self.attempt(&mut lease, &group).await {
            Ok(()) if lease.is_usable() => {}
            // What became of it is not known. Nobody has his answer before it is settled, and nothing comes before it that was to
            // come after.
            Ok(()) => drop(Box::pin(self.inner.connections.kill(lease)).await),
            Err(interruption) => {
                // Known before anything is killed, however long that takes: who was lost in time is tried again.
                let next_try = match interruption {
                    Interruption::Lost(_) | Interruption::Conflict(_) => self.next_try(),
                    _ => None,
                };
                let is_lost = matches!(interruption, Interruption::Lost(_));
                // At best; a connection that does not come back from this is not used again.
                if !is_lost && !lease.is_usable() {
                    drop(lease.command("ROLLBACK").await);
                }
                if let Interruption::Outdated(_) = interruption {
                    lease.forget_statements();
                }
                // Nobody waits with a connection in hand.
                if is_lost || !lease.is_usable() {
                    drop(Box::pin(self.inner.connections.kill(lease)).await);
                } else {
                    drop(lease);
                }
                Box::pin(self.recover(group, interruption, next_try)).await;
            }
        }
    }

    async fn attempt(&mut self, lease: &mut Lease, group: &Group) -> Result<(), Interruption> {
        let connection = &mut **lease;
        let prepared = self.prepare(connection, group).await?;
        let indices: Vec<usize> = group
            .indices
            .iter()
            .copied()
            .filter(|&index| self.settled[index].is_none())
            .collect();
        match (indices.as_slice(), group.mode) {
            ([], _) => Ok(()),
            (&[index], Mode::Alone) => self.run_alone(connection, index, &prepared).await,
            // Its place is kept, and it is tried there once more.
            (&[index], Mode::LockWaiter) if self.plans[index].role == Role::Alone => {
                self.run_alone(connection, index, &prepared).await
            }
            (&[index], Mode::Optimistic | Mode::Careful)
                if !self.is_lock_waiter && self.writes[index].acceptance().is_none() =>
            {
                self.run_alone(connection, index, &prepared).await
            }
            // Much larger than what runs one statement, which is not to be moved about with room for it.
            _ => Box::pin(self.transaction(connection, group.mode, &indices, &prepared)).await,
        }
    }

    /// Prepares all texts of a group; answers those that cannot be, or whose parameters do not fit.
    async fn prepare(&mut self, connection: &mut Connection, group: &Group) -> Result<PreparedTexts, Interruption> {
        let mut texts = PreparedTexts::default();
        for &index in &group.indices {
            if self.settled[index].is_some() {
                continue;
            }
            let plan = Arc::clone(&self.plans[index]);
            let parameters = self.writes[index].parameters();
            if let Some(error) = unsendable(parameters) {
                self.settle(index, Err(error.into()));
                continue;
            }
            if texts.of(&plan).is_none() {
                let prepared = self.prepare_text(connection, group.mode, index).await?;
                texts.keep(&plan, prepared);
            }
            let unfit = |texts: &PreparedTexts| match texts.of(&plan).expect("it was kept before") {
                Ok(prepared) => misfit(prepared, parameters),
                Err(error) => Some(error.clone().into()),
            };
            let mut error = unfit(&texts);
            if error.is_some() && !texts.is_new(&plan) && connection.forget(&plan.sql) {
                // A column may have another type since it was prepared.
                let prepared = self.prepare_text(connection, group.mode, index).await?;
                texts.renew(&plan, prepared);
                error = unfit(&texts);
            }
            if let Some(error) = error {
                self.settle(index, Err(error));
            }
        }
        Ok(texts)
    }

    /// Prepares a text, or finds what is wrong with it. That already waits for the locks of its tables.
    async fn prepare_text(
        &mut self,
        connection: &mut Connection,
        mode: Mode,
        index: usize,
    ) -> Result<Result<Prepared, StatementError>, Interruption> {
        let plan = Arc::clone(&self.plans[index]);
        loop {
            return match connection.prepare(&plan.sql, &[]).await {
                Ok(prepared) => Ok(Ok(prepared)),
                Err(Failure::Lost(cause)) => Err(Interruption::Lost(cause)),
                Err(Failure::Conflict(error)) => Err(Interruption::Conflict(error)),
                Err(Failure::Lock(error)) => {
                    // For no longer than the session's timeout at a time: there is no transaction yet that could set its own.
                    if (self.is_lock_waiter || mode == Mode::LockWaiter) && self.may_wait().await {
                        continue;
                    }
                    Err(Interruption::Table(index, error))
                }
                Err(other) => Ok(Err(other.statement())),
            };
        }
    }

    /// One statement that commits by itself. What may also commit in its middle (a procedure, CREATE INDEX CONCURRENTLY) is
    /// not run again, whatever it failed of.
    async fn run_alone(
        &mut self,
        connection: &mut Connection,
        index: usize,
        texts: &PreparedTexts,
    ) -> Result<(), Interruption> {
        let (write, plan) = (&self.writes[index], &self.plans[index]);
        let prepared = texts.ready(plan);
        let answered = connection
            .pipeline(|pipeline| pipeline.execute(Whose::Callers, prepared, sent(write.parameters())))
            .await
            .map(|mut answers| answers.pop().expect("one answer a statement"));
        let was_executed = matches!(answered, Ok(Ok(_)));
        let result = match answered {
            Ok(Ok(answered)) => Ok(outcome(prepared, &answered, plan.changes_rows)),
            Ok(Err(error)) => {
                let is_whole = plan.role == Role::Shares || !plan.may_commit_within;
                let had_no_effect = had_no_effect(&error);
                match failure(error, &plan.sql) {
                    Failure::Lost(cause) if is_whole && had_no_effect => return Err(Interruption::Lost(cause)),
                    Failure::Lost(cause) => Ok(Err(WriteError::OutcomeUnknown { cause })),
                    other if !is_whole => Ok(Err(other.statement().into())),
                    Failure::Conflict(error) => Err(Interruption::Conflict(error)),
                    Failure::Lock(error) => Err(Interruption::Lock(index, error)),
                    Failure::Replan(error) => Err(Interruption::Outdated(error)),
                    Failure::Statement(error) if self.may_be_outdated(&error) => Err(Interruption::Outdated(error)),
                    other => Ok(Err(other.statement().into())),
                }
            }
            Err(Failure::Lost(cause)) => Ok(Err(WriteError::OutcomeUnknown { cause })),
            Err(_) => unreachable!("only silence is a failure of all"),
        };
        if !matches!(result, Ok(Err(WriteError::OutcomeUnknown { .. }))) {
            // Also after an error: what it locked in the session is not given back by that.
            if plan.changes_session {
                connection.reset_session().await;
            }
        }
        let result = result?;
        let result = match (result, write.acceptance()) {
            // It is committed, so there is no undoing it.
            (Ok(outcome), Some(acceptance)) => match acceptance.of(&outcome) {
                Ok(()) => Ok(outcome),
                Err(error) => Err(WriteError::OutcomeUnknown {
                    cause: format!("it was executed outside of a transaction: {error}"),
                }),
            },
            // What it returned cannot be read, which is no reason to say that it did nothing.
            (Err(error), _) if was_executed => Err(WriteError::OutcomeUnknown {
                cause: format!("it was executed outside of a transaction: {error}"),
            }),
            (result, _) => result,
        };
        self.settle(index, result);
        Ok(())
    }

    /// All of them in one transaction.
    async fn transaction(
        &mut self,
        connection: &mut Connection,
        mode: Mode,
        indices: &[usize],
        texts: &PreparedTexts,
    ) -> Result<(), Interruption> {
        let steps = self.steps(connection, indices, texts).await?;
        let mut results: Vec<(usize, WriteResult)> = Vec::with_capacity(indices.len());
        let mut begin = Some(self.begin(connection, mode));
        for step in &steps {
            match (step, mode) {
                (Step::Singles(indices), Mode::Careful) => {
                    self.begin_first(connection, &mut begin).await?;
                    for part in indices.chunks(STATEMENTS_MAX) {
                        self.subtransaction(connection, part, texts, &mut results).await?;
                    }
                }
                (Step::Singles(indices), _) => {
                    let answers = self.singles(connection, begin.take(), indices, texts).await?;
                    for (&index, answer) in indices.iter().zip(answers) {
                        let outcome =
                            answer.map_err(|refusal| interruption(failure(refusal, &self.plans[index].sql), index))?;
                        results.push((index, self.outcome(index, texts, &outcome)));
                        if results.last().is_some_and(|(_, result)| result.is_err()) {
                            return Err(Interruption::Guilty);
                        }
                    }
                }
                (Step::Set(set), Mode::Careful) => {
                    self.begin_first(connection, &mut begin).await?;
                    self.set_carefully(connection, set, texts, &mut results).await?;
                }
                (Step::Set(set), _) => {
                    let sifted = self.sift(connection, &mut begin, set).await?;
                    let is_written = self
                        .are_in_conflict(connection, &sifted.there, texts, &mut results)
                        .await?
                        && self
                            .set(connection, begin.take(), set, &sifted.clear, &mut results)
                            .await?
                        && self
                            .are_in_conflict(connection, &sifted.second, texts, &mut results)
                            .await?;
                    if !is_written {
                        return Err(Interruption::Guilty);
                    }
                }
            }
        }
        let written = results.iter().filter(|(_, result)| result.is_ok()).count();
        if written > 0 {
            self.commit(connection, written, &mut results).await?;
        } else {
            drop(connection.command("ROLLBACK").await);
        }
        for (index, result) in results {
            self.settle(index, result);
        }
        Ok(())
    }

    /// What a transaction begins with.
    fn begin(&self, connection: &Connection, mode: Mode) -> String {
        let lock_timeout = if self.is_lock_waiter || mode == Mode::LockWaiter {
            self.until().saturating_duration_since(Instant::now())
        } else {
            let most = connection.lock_timeout_in_batch();
            // However many rows are locked, their neighbours do not wait much longer than for one.
            (most / 2_u32.saturating_pow(self.locks)).max(LOCK_TIMEOUT_MIN.min(most))
        };
        format!("{BEGIN}; SET LOCAL lock_timeout = {}", milliseconds(lock_timeout))
    }

    /// Commits. Whose connection is lost meanwhile, cannot know.
    async fn commit(
        &self,
        connection: &mut Connection,
        written: usize,
        results: &mut [(usize, WriteResult)],
    ) -> Result<(), Interruption> {
        match connection.command("COMMIT").await {
            Ok(()) => {}
            Err(Failure::Lost(cause)) => {
                for (_, result) in results.iter_mut().filter(|(_, result)| result.is_ok()) {
                    *result = Err(WriteError::OutcomeUnknown { cause: cause.clone() });
                }
            }
            // PostgreSQL has rolled back.
            Err(Failure::Conflict(error)) => return Err(Interruption::Conflict(error)),
            Err(other) => return Err(Interruption::Refused(other.statement(), written)),
        }
        Ok(())
    }

    /// What is done with the statements, in their order.
    async fn steps(
        &self,
        connection: &mut Connection,
        indices: &[usize],
        texts: &PreparedTexts,
    ) -> Result<Vec<Step>, Interruption> {
        let mut steps: Vec<Step> = Vec::new();
        let mut rest = indices;
        while let Some(&first) = rest.first() {
            let plan = &self.plans[first];
            let length = rest
                .iter()
                .take_while(|&&index| Arc::ptr_eq(&self.plans[index], plan))
                .count();
            let (run, after) = rest.split_at(length);
            rest = after;
            let set = if length >= SET_MIN && plan.insert.is_some() && plan.trusts_sets() {
                self.set_of(connection, run, plan, texts).await?
            } else {
                None
            };
            match (set, steps.last_mut()) {
                (Some(set), _) => steps.push(Step::Set(Box::new(set))),
                (None, Some(Step::Singles(singles))) => singles.extend_from_slice(run),
                (None, _) => steps.push(Step::Singles(run.to_vec())),
            }
        }
        Ok(steps)
    }
}
