//! A batch of writes in as few transactions as can be, so that each has the outcome it would have had alone.
//!
//! All statements run in arrival order inside one transaction; one that fails undoes only itself, as InnoDB does. Where a
//! failure takes the transaction with it (a deadlock, a lost connection), or leaves it in doubt, the others are run again: whole,
//! then in halves, down to the failing one. Statements that cannot live in a transaction run between two of them, in their
//! place. A batch of one statement commits by itself. Nobody is answered before the commit.
//!
//! The commit is asked for when everything before it was answered. So a connection that is lost before has written nothing to
//! tables with transactions, and the batch is run again on another one.

mod interruption;
mod many;
mod one;
mod state;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use self::interruption::Interruption;
use self::many::{ROWS_MIN, Wrote};
use self::state::{Batch, Group, unknown};
use super::connection::Connection;
use super::connector::Lease;
use super::error::Failure;
use super::inner::Inner;
use super::plan::Plan;
use forebay_remote::connections::{Permit, Purpose};
use forebay_remote::settled::{self, Settled, WriteResult};
use forebay_sql::Role;
use forebay_write::database::Answer;
use forebay_write::{Write, WriteError};

const STAYS: &str = "the transaction was rolled back, and what was done to tables without transactions stays";

/// Runs the batch; one answer a write, in order.
pub(crate) async fn run(inner: &Arc<Inner>, writes: Vec<Write>) -> Vec<Answer> {
    let mut batch = Batch::new(inner, &writes, false);
    batch.run().await;
    settled::answers(batch.settled, writes, |write| {
        let inner = Arc::clone(inner);
        Box::pin(async move { run_as_lock_waiter(&inner, write).await })
    })
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

/// How a group's run ended.
enum Ended {
    /// Its writes are settled, or in groups that come next.
    Well,
    /// As `Well`; the next are to wait so long.
    Wait(Duration),
    /// The connection is gone. What `executed` names may have been done to tables without transactions.
    Lost {
        group: Group,
        executed: Vec<usize>,
        /// … or to any table, outside of the transaction that was not begun.
        is_astray: bool,
        cause: String,
    },
}

/// What a batch keeps from one group to the next.
enum Held {
    Nothing,
    /// The right to a connection.
    Permit(Permit),
    Lease(Lease),
}

impl Batch<'_> {
    async fn run(&mut self) {
        let mut held = Held::Nothing;
        while let Some(group) = self.groups.pop() {
            let mut lease = match self.lease(held).await {
                Ok(lease) => lease,
                Err(error) => {
                    self.groups.push(group);
                    return self.give_up(&error);
                }
            };
            let ended = self.run_group(&mut lease, group).await;
            // Nobody has his outcome before what he has locked in the session is free.
            lease.reset_if_changed().await;
            // Known before anything is killed, however long that takes: who was lost in time is tried again.
            let next_try = match ended {
                Ended::Lost { .. } => self.backoff.next_delay().map(|delay| Instant::now() + delay),
                Ended::Well | Ended::Wait(_) => None,
            };
            held = if lease.is_broken() {
                // Nobody has his outcome before it is settled what the server has done of it, and nothing comes before it that
                // was to come after.
                Held::Permit(Box::pin(self.inner.connections.kill(lease)).await)
            } else {
                Held::Lease(lease)
            };
            match ended {
                Ended::Well => {}
                Ended::Wait(delay) => {
                    // Others may write meanwhile.
                    held = Held::Nothing;
                    tokio::time::sleep(delay).await;
                }
                Ended::Lost {
                    group,
                    executed,
                    is_astray,
                    cause,
                } => {
                    held = Box::pin(self.after_loss(held, group, (executed, is_astray), cause, next_try)).await;
                }
            }
        }
    }

    /// A connection for the next group.
    async fn lease(&mut self, held: Held) -> Result<Lease, WriteError> {
        let connections = &self.inner.connections;
        let permit = match held {
            Held::Lease(lease) if lease.is_as_set_up() => return Ok(lease),
            // Its session could not be reset.
            Held::Lease(lease) => lease.into_permit(),
            Held::Permit(permit) => permit,
            Held::Nothing => connections.permit(Purpose::Write).await?,
        };
        connections.take_with(permit, &mut self.backoff).await
    }

    /// The connection was lost before a commit was asked for: all again on another one, but for what may have stayed.
    async fn after_loss(
        &mut self,
        mut held: Held,
        group: Group,
        (executed, is_astray): (Vec<usize>, bool),
        cause: String,
        next_try: Option<Instant>,
    ) -> Held {
        if let Some(next_try) = next_try {
            tokio::time::sleep_until(next_try).await;
        }
        // Whose outcome is unknown already, as what they did may have stayed, is not asked to do it again.
        let mut rest = self.open(&group.indices);
        if !executed.is_empty() {
            let may_have_stayed;
            (held, may_have_stayed) = match is_astray {
                true => (held, true),
                false => self.may_keep_what_is_lost(held).await,
            };
            if may_have_stayed {
                self.settle_all(&executed, &WriteError::OutcomeUnknown { cause: cause.clone() });
                rest.retain(|index| !executed.contains(index));
            }
        }
        if next_try.is_none() {
            self.settle_all(&rest, &WriteError::Unavailable { cause });
        } else if group.was_lost && rest.len() > 1 {
            // Twice: it may be one of them that does it.
            self.again_in_halves(&rest, true);
        } else {
            self.again(&rest, true);
        }
        held
    }

    /// Whether what was lost before its commit may be there all the same. So it is taken to be where nobody can be asked.
    async fn may_keep_what_is_lost(&mut self, held: Held) -> (Held, bool) {
        if self.inner.keeps_what_is_lost() {
            return (held, true);
        }
        let Ok(mut lease) = self.lease(held).await else {
            return (Held::Nothing, true);
        };
        // Somebody may have made such a table since it was last asked.
        let keeps = lease.has_tables_without_transactions().await;
        if let Ok(true) = keeps {
            self.inner.note_that_it_keeps_what_is_lost();
        }
        (Held::Lease(lease), keeps.unwrap_or(true))
    }

    async fn run_group(&mut self, connection: &mut Connection, group: Group) -> Ended {
        match &*group.indices {
            [] => Ended::Well,
            [only] => {
                let write = &self.writes[*only];
                let plan = self.inner.plans.of(write.sql());
                if let Some(reason) = plan.refusal() {
                    self.settle(*only, Err(WriteError::Refused { reason }));
                    Ended::Well
                } else if plan.role == Role::Shares && write.acceptance().is_some() {
                    Box::pin(self.transaction(connection, group)).await
                } else {
                    self.single(connection, *only, &plan, group.was_lost).await
                }
            }
            // Much larger than what runs one statement, which is not to be moved about with room for it.
            _ => Box::pin(self.transaction(connection, group)).await,
        }
    }

    /// One statement, which commits by itself.
    async fn single(&mut self, connection: &mut Connection, index: usize, plan: &Plan, was_lost: bool) -> Ended {
        let write = &self.writes[index];
        if let Err(error) = write.claim() {
            self.settle(index, Err(error));
            return Ended::Well;
        }
        let lost = |executed: Vec<usize>, cause: String| Ended::Lost {
            group: Group {
                indices: vec![index],
                was_lost,
            },
            executed,
            is_astray: false,
            cause,
        };
        let statement = match connection.prepare(write.sql()).await {
            Ok(statement) => statement,
            Err(Failure::Lost { cause, .. }) => return lost(Vec::new(), cause),
            Err(failure) => {
                self.settle(index, Err(failure.into_write_error()));
                return Ended::Well;
            }
        };
        if plan.changes_session {
            connection.mark_changed();
        }
        let result = connection
            .execute_prepared(write.sql(), &statement, write.parameters())
            .await;
        connection.ended();
        let is_alone = plan.role == Role::Alone;
        let failure = match result {
            Ok(_) if is_alone && connection.has_open_transaction() => {
                // A procedure that begins and does not end. Its connection goes, and with it what is open.
                connection.break_off();
                let reason = "it left a transaction open, which was rolled back; what it committed before stays";
                self.settle(index, unknown(&reason));
                return Ended::Well;
            }
            Ok(outcome) => {
                let accepted = write.acceptance().map_or(Ok(()), |acceptance| acceptance.of(&outcome));
                // It was executed outside of a transaction, so there is no undoing it.
                let outcome = accepted.or_else(|error| unknown(&error)).map(|()| outcome);
                self.settle(index, outcome);
                return Ended::Well;
            }
            Err(failure) => failure,
        };
        match failure {
            Failure::Lost { was_sent: false, cause } if !is_alone => lost(vec![index], cause),
            Failure::Lost { cause, .. } => {
                self.settle(index, unknown(&cause));
                Ended::Well
            }
            // What it returned is not taken, which is no reason to say that it did nothing.
            Failure::TooMuch(error) => {
                self.settle(index, unknown(&error));
                Ended::Well
            }
            failure if failure.leaves_commit_unknown() => {
                self.settle(index, unknown(&failure.into_write_error()));
                Ended::Well
            }
            failure if !is_alone && (failure.is_deadlock() || failure.is_lock_timeout()) => {
                if failure.is_deadlock() && Box::pin(connection.warns_of_what_stays()).await.unwrap_or(true) {
                    self.settle(index, unknown(&failure.into_write_error()));
                    return Ended::Well;
                }
                self.in_the_way(index, failure)
            }
            failure => {
                self.settle(index, Err(failure.into_write_error()));
                Ended::Well
            }
        }
    }

    /// Somebody's lock is in the way of a statement that had no effect.
    fn in_the_way(&mut self, index: usize, failure: Failure) -> Ended {
        if !self.waits_in_place(index) {
            self.settled[index] = Some(Settled::Deferred);
            return Ended::Well;
        }
        match self.backoff.next_delay() {
            Some(delay) => {
                self.again(&[index], false);
                Ended::Wait(delay)
            }
            None => {
                self.settle(index, Err(failure.into_write_error()));
                Ended::Well
            }
        }
    }

    /// The group's statements in one transaction, up to one that cannot be in it.
    async fn transaction(&mut self, connection: &mut Connection, group: Group) -> Ended {
        self.executed.clear();
        self.relied_on.clear();
        connection.begin_ahead();
        let mut executed = self.execute(connection, &group.indices).await;
        if matches!(executed, Ok(()) | Err(Interruption::Blocked(..))) {
            match self.are_facts_true(connection).await {
                Ok(true) => {}
                Err(Failure::Lost { cause, .. }) => executed = Err(Interruption::Lost(cause)),
                // They have changed, or cannot be seen: not relied on.
                Ok(false) | Err(_) => executed = Err(Interruption::Again),
            }
        }
        let indices = &group.indices;
        let interruption = match executed {
            Ok(()) => return self.commit(connection, indices, None).await,
            Err(Interruption::Blocked(index, failure)) => {
                return self.commit(connection, indices, Some((index, failure))).await;
            }
            Err(Interruption::Lost(cause)) => return self.lost(connection, group, cause),
            Err(interruption) => interruption,
        };
        let undone = match self.roll_back(connection, indices).await {
            Ok(undone) => undone,
            Err(cause) => return self.lost(connection, group, cause),
        };
        match interruption {
            Interruption::Conflict(failure) => return self.after_conflict(indices, failure),
            Interruption::Spoiled(index) => {
                if !undone {
                    self.settle(index, unknown(&STAYS));
                }
                let others: Vec<usize> = indices.iter().copied().filter(|other| *other != index).collect();
                self.again_if_open(&others);
            }
            Interruption::Again => {
                self.mistakes += 1;
                self.again_if_open(indices);
            }
            Interruption::Lost(_) | Interruption::Blocked(..) => unreachable!("these have returned"),
        }
        Ended::Well
    }

    fn lost(&mut self, connection: &Connection, group: Group, cause: String) -> Ended {
        Ended::Lost {
            group,
            executed: std::mem::take(&mut self.executed),
            is_astray: connection.is_astray(),
            cause,
        }
    }

    /// Rolls back. What stays of it is told to those who may have done it; they are not run again.
    async fn roll_back(&mut self, connection: &mut Connection, indices: &[usize]) -> Result<bool, String> {
        match connection.abandon().await {
            Ok(true) => {
                for index in std::mem::take(&mut self.executed) {
                    self.settled[index] = None;
                }
                Ok(true)
            }
            Ok(false) => {
                let executed = std::mem::take(&mut self.executed);
                for &index in &executed {
                    self.settle(index, unknown(&STAYS));
                }
                debug_assert!(executed.iter().all(|index| indices.contains(index)));
                Ok(false)
            }
            Err(failure) => Err(failure.into_write_error().to_string()),
        }
    }

    /// A deadlock: again, in halves, as those hold fewer locks.
    fn after_conflict(&mut self, indices: &[usize], failure: Failure) -> Ended {
        let open = self.open(indices);
        if let [only] = *open {
            return self.in_the_way(only, failure);
        }
        match self.backoff.next_delay() {
            Some(delay) => {
                self.again_in_halves(&open, false);
                Ended::Wait(delay)
            }
            None => {
                self.settle_all(&open, &failure.into_write_error());
                Ended::Well
            }
        }
    }

    /// Commits what was executed; what was not comes next, one that is blocked first and maybe after a wait.
    async fn commit(
        &mut self,
        connection: &mut Connection,
        indices: &[usize],
        blocked: Option<(usize, Failure)>,
    ) -> Ended {
        let executed = std::mem::take(&mut self.executed);
        let committed = connection.commit().await;
        let mut rest: Vec<usize> = indices
            .iter()
            .copied()
            .filter(|index| self.settled[*index].is_none())
            .collect();
        let mut ended = Ended::Well;
        if let Some((blocked, failure)) = blocked {
            rest.retain(|index| *index != blocked);
            self.again(&rest, false);
            ended = self.in_the_way(blocked, failure);
        } else if let [first, rest @ ..] = &*rest {
            // It cannot share a transaction.
            self.again(rest, false);
            self.again(&[*first], false);
        }
        let failure = match committed {
            Ok(()) => return ended,
            Err(failure) => failure,
        };
        if failure.leaves_commit_unknown() {
            let cause = failure.into_write_error().to_string();
            self.settle_all(&executed, &WriteError::OutcomeUnknown { cause });
            return ended;
        }
        // It was refused. What it was is known only once nothing of it is left.
        self.executed.clone_from(&executed);
        if let Err(cause) = self.roll_back(connection, indices).await {
            self.settle_all(&executed, &WriteError::OutcomeUnknown { cause });
            return ended;
        }
        if failure.is_deadlock() {
            return self.after_conflict(&executed, failure);
        }
        match &*executed {
            [] => {}
            [only] => {
                if self.settled[*only].is_none() {
                    self.settle(*only, Err(failure.into_write_error()));
                }
            }
            _ => {
                let (first, second) = executed.split_at(executed.len() / 2);
                self.again_if_open(second);
                self.again_if_open(first);
            }
        }
        ended
    }

    /// Executes the group's statements in order, inside the transaction that is open.
    async fn execute(&mut self, connection: &mut Connection, indices: &[usize]) -> Result<(), Interruption> {
        let mut position = 0;
        // Neighbours mostly are the same statement: looked at once.
        let mut current: Option<(usize, Arc<Plan>)> = None;
        while let Some(&index) = indices.get(position) {
            let write = &self.writes[index];
            let plan = match current.take() {
                Some((before, plan)) if self.writes[before].sql() == write.sql() => plan,
                _ => self.inner.plans.of(write.sql()),
            };
            current = Some((index, Arc::clone(&plan)));
            if let Some(reason) = plan.refusal() {
                self.settle(index, Err(WriteError::Refused { reason }));
                position += 1;
                continue;
            }
            if plan.role == Role::Alone {
                return Ok(());
            }
            let end = position + self.run_length(&plan, &indices[position..]);
            if end - position >= ROWS_MIN {
                match self.write_many(connection, &plan, &indices[position..end]).await? {
                    Wrote::All => {
                        position = end;
                        continue;
                    }
                    // One by one, then.
                    Wrote::None => {}
                }
                // Not asked again for each of them.
                for &index in &indices[position..end] {
                    self.execute_one(connection, &plan, index).await?;
                }
                position = end;
                continue;
            }
            // Its neighbours neither see what it leaves in the session nor leave it anything: between two transactions.
            if plan.changes_session && indices.len() > 1 {
                return Ok(());
            }
            self.execute_one(connection, &plan, index).await?;
            position += 1;
        }
        Ok(())
    }
}
