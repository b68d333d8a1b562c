//! A batch of writes in as few transactions as can be, so that each has the outcome it would have had alone.
//!
//! All statements run in arrival order inside one transaction; one that fails undoes only itself, as InnoDB does. Where a
//! failure takes the transaction with it (a deadlock, a lost connection), or leaves it in doubt, the others are run again: whole,
//! then in halves, down to the guilty one. Statements that cannot live in a transaction run between two of them, in their
//! place. A batch of one statement commits by itself. Nobody is answered before the commit.
//!
//! The commit is asked for when everything before it was answered. So a connection that is lost before has written nothing to
//! tables with transactions, and the batch is run again on another one.

mod many;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Inner;
use super::error::{Failure, found_here};
use super::facts::Facts;
use super::link::Link;
use super::plan::Plan;
use super::pool::{Lent, Permit};
use forebay_remote::retry::Backoff;
use forebay_sql::Role;
use forebay_write::database::Answer;
use forebay_write::{Outcome, StatementErrorKind as Kind, Write, WriteError};

type Told = Result<Outcome, WriteError>;

const STAYS: &str = "the transaction was rolled back, and what was done to tables without transactions stays";

/// Runs the batch; one answer a write, in order.
pub(crate) async fn run(inner: &Arc<Inner>, writes: Vec<Write>) -> Vec<Answer> {
    let mut batch = Batch::new(inner, &writes, false);
    batch.run().await;
    let settled = batch.settled;
    settled
        .into_iter()
        .zip(writes)
        .map(
            |(settled, write)| match settled.expect("every write of every group is answered") {
                Settled::Told(told) => Answer::Outcome(told),
                Settled::Later => {
                    let inner = Arc::clone(inner);
                    Answer::Later(Box::pin(async move { run_patiently(&inner, write).await }))
                }
            },
        )
        .collect()
}

/// Runs one that waits for locks for as long as is tried at all.
async fn run_patiently(inner: &Inner, write: Write) -> Told {
    let begun = Instant::now();
    // So many at a time, that those who wait for locks leave connections to those who do not.
    let Ok(_permit) = tokio::time::timeout(inner.retry_for, inner.patient.acquire()).await else {
        return Err(found_here(
            Kind::LockTimeout,
            "another transaction's lock was in the way for as long as is tried (retry_for)".to_owned(),
        ));
    };
    let writes = [write];
    let mut batch = Batch::new(inner, &writes, true);
    batch.backoff = Backoff::new(inner.retry_for.saturating_sub(begun.elapsed()));
    batch.run().await;
    match batch.settled.pop().flatten().expect("the only write is answered") {
        Settled::Told(told) => told,
        Settled::Later => unreachable!("one that is patient is not put off"),
    }
}

/// What became of one write.
enum Settled {
    Told(Told),
    /// A lock was in its way.
    Later,
}

/// Writes that share a transaction.
struct Group {
    indices: Vec<usize>,
    /// Whether a connection was lost while it ran: some statement in it may be what ends connections.
    was_lost: bool,
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
        cause: String,
    },
}

/// How a transaction's statements went before its commit.
enum Ran {
    /// To the end, or to a statement that runs outside.
    Well,
    /// To this statement, which waits for a lock in its place.
    Blocked(usize, Failure),
    /// This statement took the transaction with it, or left it in doubt; it has its answer.
    Spoiled(usize),
    /// As `Spoiled`, and it was nobody's fault.
    Conflict(Failure),
    /// A set was not what it must be, and will not be tried again: all of it once more.
    Again,
    Lost(String),
}

struct Batch<'a> {
    inner: &'a Inner,
    writes: &'a [Write],
    settled: Vec<Option<Settled>>,
    /// Groups still to be run, the next one last.
    groups: Vec<Group>,
    backoff: Backoff,
    /// Locks are waited for here, by whoever it is.
    is_patient: bool,
    /// What the open transaction has executed.
    executed: Vec<usize>,
    /// Plans of the sets that the open transaction has written, with what was known of their tables.
    sets: Vec<(Arc<Plan>, Arc<Facts>)>,
    /// Transactions that were rolled back because of a set.
    mistakes: u32,
}

impl<'a> Batch<'a> {
    fn new(inner: &'a Inner, writes: &'a [Write], is_patient: bool) -> Self {
        Self {
            inner,
            writes,
            settled: writes.iter().map(|_| None).collect(),
            groups: vec![Group {
                indices: (0..writes.len()).collect(),
                was_lost: false,
            }],
            backoff: Backoff::new(inner.retry_for),
            is_patient,
            executed: Vec::new(),
            sets: Vec::new(),
            mistakes: 0,
        }
    }

    async fn run(&mut self) {
        let mut right: Option<Permit> = None;
        let mut kept: Option<Lent> = None;
        while let Some(group) = self.groups.pop() {
            let permit = match right.take() {
                Some(permit) => permit,
                None => match self.inner.links.permit_to_write().await {
                    Ok(permit) => permit,
                    Err(error) => {
                        self.groups.push(group);
                        return self.give_up(&error);
                    }
                },
            };
            let mut lent = match kept.take() {
                Some(lent) if lent.link.is_as_set_up() => lent,
                // What could not be set up anew.
                other => {
                    drop(other);
                    match self.inner.links.take(&permit, &mut self.backoff).await {
                        Ok(lent) => lent,
                        Err(error) => {
                            self.groups.push(group);
                            return self.give_up(&error);
                        }
                    }
                }
            };
            let ended = self.run_group(&mut lent.link, group).await;
            // Nobody has his answer before what he has locked in the session is free.
            lent.link.tidy_up().await;
            if lent.link.is_broken() {
                // Nobody has his answer before it is settled what the server has done of it, and nothing comes before it that
                // was to come after.
                if lent.link.is_unanswered() {
                    self.inner.links.note_silence();
                }
                self.inner.links.end(lent).await;
            } else {
                kept = Some(lent);
            }
            match ended {
                Ended::Well => {}
                Ended::Wait(delay) => {
                    // Others may write meanwhile.
                    drop((kept.take(), permit));
                    tokio::time::sleep(delay).await;
                    continue;
                }
                Ended::Lost { group, executed, cause } => {
                    self.after_loss(&permit, group, executed, cause).await;
                }
            }
            right = Some(permit);
        }
    }

    /// Nothing more can be tried: whoever is not settled gets this.
    fn give_up(&mut self, error: &WriteError) {
        for settled in self.settled.iter_mut().filter(|settled| settled.is_none()) {
            *settled = Some(Settled::Told(Err(error.clone())));
        }
    }

    fn tell(&mut self, index: usize, told: Told) {
        self.settled[index] = Some(Settled::Told(told));
    }

    fn tell_all(&mut self, indices: &[usize], error: &WriteError) {
        for &index in indices {
            self.tell(index, Err(error.clone()));
        }
    }

    /// These are run next; what was settled before the transaction was lost is not settled any more.
    fn again(&mut self, indices: &[usize], was_lost: bool) {
        if indices.is_empty() {
            return;
        }
        for &index in indices {
            self.settled[index] = None;
        }
        self.groups.push(Group {
            indices: indices.to_vec(),
            was_lost,
        });
    }

    fn again_in_halves(&mut self, indices: &[usize], was_lost: bool) {
        let (first, second) = indices.split_at(indices.len() / 2);
        self.again(second, was_lost);
        self.again(first, was_lost);
    }

    /// The connection was lost before a commit was asked for: all again on another one, but for what may have stayed.
    async fn after_loss(&mut self, permit: &Permit, group: Group, executed: Vec<usize>, cause: String) {
        let mut keeps = self.inner.keeps_what_is_lost();
        let delay = self.backoff.next_delay();
        if let Some(delay) = delay {
            tokio::time::sleep(delay).await;
            if !executed.is_empty() && !keeps {
                // Somebody may have made such a table since it was last asked.
                keeps = match self.inner.links.take(permit, &mut self.backoff).await {
                    // It cannot be asked, so nothing is run again, either.
                    Err(_) => false,
                    Ok(mut lent) => lent.link.has_tables_without_transactions().await.unwrap_or(true),
                };
                if keeps {
                    self.inner.keeps_what_is_lost.store(true, Ordering::Relaxed);
                }
            }
        }
        // Who was told already that what he did may have stayed is not asked to do it again.
        let mut rest = self.open(&group.indices);
        if keeps {
            self.tell_all(&executed, &WriteError::OutcomeUnknown { cause: cause.clone() });
            rest.retain(|index| !executed.contains(index));
        }
        if delay.is_none() {
            self.tell_all(&rest, &WriteError::Unavailable { cause });
        } else if group.was_lost && rest.len() > 1 {
            // Twice: it may be one of them that does it.
            self.again_in_halves(&rest, true);
        } else {
            self.again(&rest, true);
        }
    }

    async fn run_group(&mut self, link: &mut Link, group: Group) -> Ended {
        match &*group.indices {
            [] => Ended::Well,
            [only] => {
                let write = &self.writes[*only];
                let plan = self.inner.plans.of(write.sql());
                if let Some(reason) = plan.refusal() {
                    self.tell(*only, Err(WriteError::Refused { reason }));
                    Ended::Well
                } else if plan.role == Role::Shares && write.acceptance().is_some() {
                    self.transaction(link, group).await
                } else {
                    self.single(link, *only, &plan, group.was_lost).await
                }
            }
            _ => self.transaction(link, group).await,
        }
    }

    /// One statement, which commits by itself.
    async fn single(&mut self, link: &mut Link, index: usize, plan: &Plan, was_lost: bool) -> Ended {
        let write = &self.writes[index];
        if let Err(error) = claim(write) {
            self.tell(index, Err(error));
            return Ended::Well;
        }
        let lost = |executed: Vec<usize>, cause: String| Ended::Lost {
            group: Group {
                indices: vec![index],
                was_lost,
            },
            executed,
            cause,
        };
        let statement = match link.prepare(write.sql()).await {
            Ok(statement) => statement,
            Err(Failure::Lost { cause, .. }) => return lost(Vec::new(), cause),
            Err(failure) => {
                self.tell(index, Err(failure.into_write_error()));
                return Ended::Well;
            }
        };
        if plan.changes_session {
            link.mark_changed();
        }
        let result = link.execute_prepared(write.sql(), &statement, write.parameters()).await;
        link.ended();
        let is_alone = plan.role == Role::Alone;
        let failure = match result {
            Ok(_) if is_alone && link.has_open_transaction() => {
                // A procedure that begins and does not end. Its connection goes, and with it what is open.
                link.break_off();
                let reason = "it left a transaction open, which was rolled back; what it committed before stays";
                self.tell(index, unknown(&reason));
                return Ended::Well;
            }
            Ok(outcome) => {
                let accepted = write.acceptance().map_or(Ok(()), |acceptance| acceptance.of(&outcome));
                // It was executed outside of a transaction, so there is no undoing it.
                let told = accepted.or_else(|error| unknown(&error)).map(|()| outcome);
                self.tell(index, told);
                return Ended::Well;
            }
            Err(failure) => failure,
        };
        match failure {
            Failure::Lost { was_sent: false, cause } if !is_alone => lost(vec![index], cause),
            Failure::Lost { cause, .. } => {
                self.tell(index, unknown(&cause));
                Ended::Well
            }
            // What it returned is not taken, which is no reason to say that it did nothing.
            Failure::TooMuch(error) => {
                self.tell(index, unknown(&error));
                Ended::Well
            }
            failure if failure.leaves_commit_unknown() => {
                self.tell(index, unknown(&failure.into_write_error()));
                Ended::Well
            }
            failure if !is_alone && (failure.is_deadlock() || failure.is_lock_timeout()) => {
                if failure.is_deadlock() && link.warns_of_what_stays().await.unwrap_or(true) {
                    self.tell(index, unknown(&failure.into_write_error()));
                    return Ended::Well;
                }
                self.in_the_way(index, failure)
            }
            failure => {
                self.tell(index, Err(failure.into_write_error()));
                Ended::Well
            }
        }
    }

    /// Somebody's lock is in the way of a statement that had no effect.
    fn in_the_way(&mut self, index: usize, failure: Failure) -> Ended {
        if !self.waits_in_place(index) {
            self.settled[index] = Some(Settled::Later);
            return Ended::Well;
        }
        match self.backoff.next_delay() {
            Some(delay) => {
                self.again(&[index], false);
                Ended::Wait(delay)
            }
            None => {
                self.tell(index, Err(failure.into_write_error()));
                Ended::Well
            }
        }
    }

    /// Whether a statement that a lock is in the way of keeps its place.
    fn waits_in_place(&self, index: usize) -> bool {
        self.is_patient || self.writes[index].is_ordered()
    }

    /// The group's statements in one transaction, up to one that cannot be in it.
    async fn transaction(&mut self, link: &mut Link, group: Group) -> Ended {
        self.executed.clear();
        self.sets.clear();
        if let Err(failure) = link.begin().await {
            return match failure {
                Failure::Lost { cause, .. } => self.lost(group, cause),
                failure => {
                    self.tell_all(&group.indices, &failure.into_write_error());
                    Ended::Well
                }
            };
        }
        let mut ran = self.execute(link, &group.indices).await;
        if matches!(ran, Ran::Well | Ran::Blocked(..)) {
            match self.are_facts_true(link).await {
                Ok(true) => {}
                Err(Failure::Lost { cause, .. }) => ran = Ran::Lost(cause),
                // They have changed, or cannot be seen: not relied on.
                Ok(false) | Err(_) => ran = Ran::Again,
            }
        }
        let indices = &group.indices;
        match ran {
            Ran::Well => self.commit(link, indices, None).await,
            Ran::Blocked(index, failure) => self.commit(link, indices, Some((index, failure))).await,
            Ran::Lost(cause) => self.lost(group, cause),
            Ran::Spoiled(index) => match self.roll_back(link, indices).await {
                Ok(undone) => {
                    if !undone {
                        self.tell(index, unknown(&STAYS));
                    }
                    let others: Vec<usize> = indices.iter().copied().filter(|other| *other != index).collect();
                    self.again_if_open(&others);
                    Ended::Well
                }
                Err(cause) => self.lost(group, cause),
            },
            Ran::Again => match self.roll_back(link, indices).await {
                Ok(_) => {
                    self.mistakes += 1;
                    self.again_if_open(indices);
                    Ended::Well
                }
                Err(cause) => self.lost(group, cause),
            },
            Ran::Conflict(failure) => match self.roll_back(link, indices).await {
                Ok(_) => self.after_conflict(indices, failure),
                Err(cause) => self.lost(group, cause),
            },
        }
    }

    fn lost(&mut self, group: Group, cause: String) -> Ended {
        Ended::Lost {
            group,
            executed: std::mem::take(&mut self.executed),
            cause,
        }
    }

    /// Rolls back. What stays of it is told to those who may have done it; they are not run again.
    async fn roll_back(&mut self, link: &mut Link, indices: &[usize]) -> Result<bool, String> {
        match link.abandon().await {
            Ok(true) => {
                for index in std::mem::take(&mut self.executed) {
                    self.settled[index] = None;
                }
                Ok(true)
            }
            Ok(false) => {
                let executed = std::mem::take(&mut self.executed);
                for &index in &executed {
                    self.tell(index, unknown(&STAYS));
                }
                debug_assert!(executed.iter().all(|index| indices.contains(index)));
                Ok(false)
            }
            Err(failure) => Err(failure.into_write_error().to_string()),
        }
    }

    /// Those of them that have no answer that stands are run next.
    fn again_if_open(&mut self, indices: &[usize]) {
        let open = self.open(indices);
        self.again(&open, false);
    }

    fn open(&self, indices: &[usize]) -> Vec<usize> {
        let stands = |settled: &Option<Settled>| {
            matches!(
                settled,
                Some(Settled::Later | Settled::Told(Err(WriteError::OutcomeUnknown { .. })))
            )
        };
        indices
            .iter()
            .copied()
            .filter(|index| !stands(&self.settled[*index]))
            .collect()
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
                self.tell_all(&open, &failure.into_write_error());
                Ended::Well
            }
        }
    }

    /// Commits what was executed; what was not comes next, one that is blocked first and maybe after a wait.
    async fn commit(&mut self, link: &mut Link, indices: &[usize], blocked: Option<(usize, Failure)>) -> Ended {
        let executed = std::mem::take(&mut self.executed);
        let committed = link.commit().await;
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
            self.tell_all(&executed, &WriteError::OutcomeUnknown { cause });
            return ended;
        }
        // It was refused. What it was is known only once nothing of it is left.
        self.executed.clone_from(&executed);
        if let Err(cause) = self.roll_back(link, indices).await {
            self.tell_all(&executed, &WriteError::OutcomeUnknown { cause });
            return ended;
        }
        if failure.is_deadlock() {
            return self.after_conflict(&executed, failure);
        }
        match &*executed {
            [] => {}
            [only] => {
                if self.settled[*only].is_none() {
                    self.tell(*only, Err(failure.into_write_error()));
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
    async fn execute(&mut self, link: &mut Link, indices: &[usize]) -> Ran {
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
                self.tell(index, Err(WriteError::Refused { reason }));
                position += 1;
                continue;
            }
            if plan.role == Role::Alone {
                return Ran::Well;
            }
            let end = position + self.run_length(&plan, &indices[position..]);
            if end - position >= many::ROWS_MIN {
                match self.write_many(link, &plan, &indices[position..end]).await {
                    Ok(many::Wrote::All) => {
                        position = end;
                        continue;
                    }
                    // One by one, then.
                    Ok(many::Wrote::None) => {}
                    Err(stopped) => return stopped.into(),
                }
                // Not asked again for each of them.
                for &index in &indices[position..end] {
                    if let Err(stopped) = self.execute_one(link, &plan, index).await {
                        return stopped.into();
                    }
                }
                position = end;
                continue;
            }
            // Its neighbours neither see what it leaves in the session nor leave it anything: between two transactions.
            if plan.changes_session && indices.len() > 1 {
                return Ran::Well;
            }
            if let Err(stopped) = self.execute_one(link, &plan, index).await {
                return stopped.into();
            }
            position += 1;
        }
        Ran::Well
    }

    /// One statement in the transaction that is open.
    async fn execute_one(&mut self, link: &mut Link, plan: &Plan, index: usize) -> Result<(), Stopped> {
        let write = &self.writes[index];
        if let Err(error) = claim(write) {
            self.tell(index, Err(error));
            return Ok(());
        }
        if plan.changes_session {
            link.mark_changed();
        }
        if write.acceptance().is_some() {
            link.command("SAVEPOINT forebay", false).await.map_err(Stopped::of)?;
        }
        self.executed.push(index);
        let failure = match link.execute(write.sql(), write.parameters()).await {
            Ok(outcome) => {
                let accepted = write.acceptance().map_or(Ok(()), |acceptance| acceptance.of(&outcome));
                if let Err(error) = accepted {
                    self.executed.pop();
                    let undone = link.undo("ROLLBACK TO SAVEPOINT forebay").await.map_err(Stopped::of)?;
                    self.tell(index, if undone { Err(error) } else { unknown(&error) });
                } else {
                    self.tell(index, Ok(outcome));
                }
                return Ok(());
            }
            Err(failure) => failure,
        };
        self.after_failure(link, index, failure).await
    }

    /// What a failure in the transaction means for its statement, which is the last of `executed`, and for the rest.
    async fn after_failure(&mut self, link: &mut Link, index: usize, failure: Failure) -> Result<(), Stopped> {
        if let Failure::Lost { cause, .. } = failure {
            return Err(Stopped::Lost(cause));
        }
        if failure.is_deadlock() {
            return Err(Stopped::Conflict(failure));
        }
        self.executed.pop();
        if failure.leaves_transaction() {
            self.tell(index, Err(failure.into_write_error()));
            return Ok(());
        }
        let must_undo = matches!(failure, Failure::TooMuch(_));
        let stands = !must_undo && link.is_in_transaction().await.map_err(Stopped::of)?;
        if failure.is_lock_timeout() {
            if self.waits_in_place(index) && stands {
                return Err(Stopped::Blocked(index, failure));
            }
            self.settled[index] = Some(Settled::Later);
            // However many rows are locked, their neighbours do not wait much longer than for one.
            link.hurry().await.map_err(Stopped::of)?;
            if self.waits_in_place(index) {
                return Err(Stopped::Conflict(failure));
            }
        } else {
            self.tell(index, Err(failure.into_write_error()));
        }
        if stands { Ok(()) } else { Err(Stopped::Spoiled(index)) }
    }
}

/// Why the statements after this one are not executed in this transaction.
enum Stopped {
    Lost(String),
    Conflict(Failure),
    Blocked(usize, Failure),
    Spoiled(usize),
    Again,
}

impl Stopped {
    /// One of the transaction's own commands failed.
    fn of(failure: Failure) -> Self {
        match failure {
            Failure::Lost { cause, .. } => Self::Lost(cause),
            failure => Self::Conflict(failure),
        }
    }
}

impl From<Stopped> for Ran {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Lost(cause) => Self::Lost(cause),
            Stopped::Conflict(failure) => Self::Conflict(failure),
            Stopped::Blocked(index, failure) => Self::Blocked(index, failure),
            Stopped::Spoiled(index) => Self::Spoiled(index),
            Stopped::Again => Self::Again,
        }
    }
}

fn claim(write: &Write) -> Result<(), WriteError> {
    write.claim()
}

/// It may or may not be there.
fn unknown<T>(cause: &impl ToString) -> Result<T, WriteError> {
    Err(WriteError::OutcomeUnknown {
        cause: cause.to_string(),
    })
}
