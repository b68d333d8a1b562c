//! A batch of writes in as few transactions as can be, so that each has the outcome it would have had alone.
//!
//! First hopefully: all statements in one transaction, in arrival order, sent without waiting for answers between. If one
//! fails, PostgreSQL gives up the whole transaction; then carefully: again, in windows with a savepoint each, so that a
//! failure costs its own statement and a window's work. Deferred constraints are looked at after each statement. If the commit
//! itself is refused (a serialization failure), the transaction is run again in halves, down to the guilty one. Nobody is
//! answered before the commit, also not who failed: what they failed on may not be there in the end.
//!
//! The commit is asked for when everything before it was answered. So a connection that is lost before has written nothing,
//! and the batch is run again on another one.
//!
//! A statement that waits for another transaction's lock for longer than the lock timeout leaves the batch: its caller waits
//! for the lock on a connection of its own ([`run_patiently`]). One that has to keep its order waits in its place.

mod recovery;
mod sets;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_postgres::Client;

use self::recovery::{Trouble, general, trouble};
use self::sets::Set;
use super::connection::{Answered, Connection, Message, Prepared, Whose, answer, flight};
use super::error::{Fate, fate, had_no_effect};
use super::plan::Plan;
use super::types::{self, Parameter};
use super::{Inner, Taken, milliseconds};
use forebay_remote::retry::Backoff;
use forebay_sql::Role;
use forebay_write::database::Answer;
use forebay_write::{Outcome, Parameters, Sql, StatementError, StatementErrorKind, Value, Write, WriteError};

/// From so many rows on a set is cheaper than its parts (measured; `docs/decisions/0006-databases-over-the-network.md`).
const SET_MIN: usize = 4;
/// Statements that share a savepoint when a batch is run carefully: a failure costs half of them once more.
const WINDOW: usize = 64;
/// No lock is waited for for less than this.
const LOCK_TIMEOUT_MIN: Duration = Duration::from_millis(10);

/// The protocol counts parameters in two bytes.
const PARAMETERS_MAX: usize = 65_535;
/// The server takes messages of less than 1 GiB; the rest of it is for what is beside the parameters.
const MESSAGE_BYTES_MAX: usize = (1 << 30) - 1024;

type Told = Result<Outcome, WriteError>;

/// Runs the batch; one answer a write, in order.
pub(crate) async fn run(database: &Arc<Inner>, writes: Vec<Write>) -> Vec<Answer> {
    let mut batch = Batch::new(database, &writes, false);
    batch.run().await;
    let answers = batch.answers;
    answers
        .into_iter()
        .zip(writes)
        .map(
            |(answer, write)| match answer.expect("every write of every group is answered") {
                Settled::Told(told) => Answer::Outcome(told),
                Settled::Later => {
                    let database = Arc::clone(database);
                    Answer::Later(Box::pin(async move { run_patiently(&database, write).await }))
                }
            },
        )
        .collect()
}

/// Runs one that waits for locks as long as is tried at all.
async fn run_patiently(database: &Inner, write: Write) -> Told {
    let begun = Instant::now();
    // So many at a time, that those who wait for locks leave connections to those who do not.
    let Ok(_permit) = tokio::time::timeout(database.retry_for, database.patient.acquire()).await else {
        return Err(WriteError::Statement(StatementError::new(
            StatementErrorKind::LockTimeout,
            0,
            "another transaction's lock was in the way for as long as is tried (retry_for)",
        )));
    };
    let writes = [write];
    let mut batch = Batch::new(database, &writes, true);
    let left = database.retry_for.saturating_sub(begun.elapsed());
    batch.backoff = Backoff::new(left);
    batch.until = Instant::now().checked_add(left).unwrap_or(batch.until);
    batch.run().await;
    match batch.answers.pop().flatten().expect("the only write is answered") {
        Settled::Told(told) => told,
        Settled::Later => unreachable!("one that is patient is not put off"),
    }
}

/// Executes one statement of somebody's transaction.
pub(super) async fn execute(connection: &mut Connection, plan: &Plan, parameters: &Parameters) -> Told {
    if let Some(error) = unsendable(parameters) {
        return Err(error.into());
    }
    let executed = async {
        let prepared = ready(connection, &plan.sql, parameters).await?;
        if let Some(error) = misfit(&prepared, parameters) {
            return Ok(Err(error));
        }
        let answered = connection.execute(&prepared, sent(parameters), &plan.sql).await?;
        Ok(outcome(&prepared, &answered, plan.changes_rows))
    };
    let told = executed.await;
    told_here(connection, &plan.sql, told)
}

/// Reads with one statement, in a transaction in which nothing can be written.
pub(super) async fn query(connection: &mut Connection, sql: &Sql, parameters: &Parameters) -> Told {
    if let Some(error) = unsendable(parameters) {
        return Err(error.into());
    }
    let read = async {
        let prepared = ready(connection, sql, parameters).await?;
        if let Some(error) = misfit(&prepared, parameters) {
            return Ok(Err(error));
        }
        connection.begins();
        let client = connection.client();
        let messages: Vec<Message<'_, Result<Answered, tokio_postgres::Error>>> = vec![
            control(client, "BEGIN READ ONLY".to_owned()),
            Box::pin(answer(
                Whose::Callers,
                connection,
                &prepared.statement,
                sent(parameters),
            )),
            // Of a transaction that is broken it makes a ROLLBACK.
            control(client, "COMMIT".to_owned()),
        ];
        let mut answers = connection.all(flight(messages)).await?;
        let ended = answers.pop().expect("one answer a message");
        let answered = answers.pop().expect("one answer a message");
        if ended.is_ok() {
            connection.ended();
        }
        let answered = answered.map_err(|error| fate(&error, sql))?;
        Ok(outcome(&prepared, &answered, false))
    };
    let told = read.await;
    told_here(connection, sql, told)
}

fn told_here(connection: &mut Connection, sql: &str, told: Result<Told, Fate>) -> Told {
    match told {
        Ok(told) => told,
        Err(Fate::Lost(cause)) => Err(WriteError::Unavailable { cause }),
        Err(other) => {
            if let Fate::Replan(_) = other {
                connection.forget_statements();
            }
            let error = other.statement();
            if is_of_types(&error) {
                // It may be prepared for types that columns had before.
                connection.forget(sql);
            }
            Err(error.into())
        }
    }
}

/// How a write ended.
#[derive(Clone)]
enum Settled {
    Told(Told),
    /// Its caller tries again, alone.
    Later,
}

/// Writes that are run together, by their places in the batch.
struct Group {
    places: Vec<usize>,
    manner: Manner,
    conflicts: u32,
    replans: u32,
    /// Connections that were lost while it ran: some statement in it may be what ends connections.
    losses: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    Hopeful,
    Careful,
    /// Outside a transaction; it is one statement.
    Alone,
    /// Waiting for locks; it is one statement.
    Patient,
}

/// What is done with a run of statements.
enum Step {
    /// Each by itself.
    Singles(Vec<usize>),
    /// As one.
    Set(Box<Set>),
}

struct Batch<'a> {
    database: &'a Inner,
    writes: &'a [Write],
    plans: Vec<Arc<Plan>>,
    answers: Vec<Option<Settled>>,
    groups: VecDeque<Group>,
    backoff: Backoff,
    /// After this nothing is tried again.
    until: Instant,
    is_patient: bool,
    /// How many statements were put off because of a lock.
    locks: u32,
    /// What is prepared was forgotten once, as it may have been outdated.
    is_renewed: bool,
}

impl<'a> Batch<'a> {
    fn new(database: &'a Inner, writes: &'a [Write], is_patient: bool) -> Self {
        let mut plans: Vec<Arc<Plan>> = Vec::with_capacity(writes.len());
        for write in writes {
            // Neighbours mostly are the same text.
            let plan = match plans.last() {
                Some(last) if last.sql == *write.sql() => Arc::clone(last),
                _ => database.plans.of(write.sql()),
            };
            plans.push(plan);
        }
        Self {
            database,
            writes,
            plans,
            answers: vec![None; writes.len()],
            groups: VecDeque::new(),
            backoff: Backoff::new(database.retry_for),
            until: database.deadline(),
            is_patient,
            locks: 0,
            is_renewed: false,
        }
    }

    async fn run(&mut self) {
        let mut shared = Vec::with_capacity(self.writes.len());
        for place in 0..self.writes.len() {
            match &self.plans[place].role {
                Role::Shares => shared.push(place),
                Role::Alone => {
                    self.later(std::mem::take(&mut shared), Manner::Hopeful);
                    self.later(vec![place], Manner::Alone);
                }
                Role::Refused(reason) => {
                    let reason = reason.clone();
                    self.tell(place, Err(WriteError::Refused { reason }));
                }
            }
        }
        self.later(shared, Manner::Hopeful);
        while let Some(mut group) = self.groups.pop_front() {
            group.places.retain(|&place| self.may_run(place));
            if !group.places.is_empty() {
                self.run_group(group).await;
            }
        }
    }

    /// Puts a group at the end of the line.
    fn later(&mut self, places: Vec<usize>, manner: Manner) {
        if !places.is_empty() {
            self.groups.push_back(Group::new(places, manner));
        }
    }

    /// Puts groups at the head of the line, in this order.
    fn next(&mut self, groups: impl IntoIterator<Item = Group, IntoIter: DoubleEndedIterator>) {
        for group in groups.into_iter().rev() {
            if !group.places.is_empty() {
                self.groups.push_front(group);
            }
        }
    }

    fn tell(&mut self, place: usize, told: Told) {
        self.answers[place] = Some(Settled::Told(told));
    }

    fn tell_all(&mut self, places: &[usize], error: &WriteError) {
        for &place in places {
            self.tell(place, Err(error.clone()));
        }
    }

    /// Whether it is to be executed; if not, it is answered.
    fn may_run(&mut self, place: usize) -> bool {
        if self.answers[place].is_some() {
            return false;
        }
        let Err(error) = self.writes[place].claim() else {
            return true;
        };
        self.tell(place, Err(error));
        false
    }

    async fn run_group(&mut self, group: Group) {
        let mut taken = match self.database.take(&self.database.writing, self.until).await {
            Ok(taken) => taken,
            Err(error) => {
                // Those behind it would be told the same, each after as long a wait.
                self.tell_all(&group.places, &error);
                for group in std::mem::take(&mut self.groups) {
                    let open: Vec<usize> = group
                        .places
                        .into_iter()
                        .filter(|&place| self.answers[place].is_none())
                        .collect();
                    self.tell_all(&open, &error);
                }
                return;
            }
        };
        if group.replans > 0 {
            // It may be another connection than the one on which that was found.
            taken.connection.forget_statements();
        }
        match self.attempt(&mut taken, &group).await {
            Ok(()) if taken.connection.is_usable() => {}
            // What became of it is not known. Nobody has his answer before it is settled, and nothing comes before it that was to
            // come after.
            Ok(()) => self.database.end(taken).await,
            Err(Trouble::Lost(cause)) => {
                self.database.end(taken).await;
                self.recover(group, Trouble::Lost(cause)).await;
            }
            Err(trouble) => {
                if !taken.connection.is_usable() {
                    // At best; a connection that does not come back from this is not used again.
                    if taken.connection.say("ROLLBACK").await.is_ok() {
                        taken.connection.ended();
                    }
                }
                if let Trouble::Outdated(_) = trouble {
                    taken.connection.forget_statements();
                }
                // Nobody waits with a connection in hand.
                if taken.connection.is_usable() {
                    drop(taken);
                } else {
                    self.database.end(taken).await;
                }
                self.recover(group, trouble).await;
            }
        }
    }

    async fn attempt(&mut self, taken: &mut Taken, group: &Group) -> Result<(), Trouble> {
        let connection = &mut *taken.connection;
        let prepared = self.prepare(connection, group).await?;
        let places: Vec<usize> = group
            .places
            .iter()
            .copied()
            .filter(|&place| self.answers[place].is_none())
            .collect();
        match (places.as_slice(), group.manner) {
            ([], _) => Ok(()),
            (&[place], Manner::Alone) => self.run_alone(connection, place, &prepared).await,
            // Its place is kept, and it is tried there once more.
            (&[place], Manner::Patient) if self.plans[place].role == Role::Alone => {
                self.run_alone(connection, place, &prepared).await
            }
            (&[place], Manner::Hopeful | Manner::Careful)
                if !self.is_patient && self.writes[place].acceptance().is_none() =>
            {
                self.run_alone(connection, place, &prepared).await
            }
            _ => self.transaction(connection, group.manner, &places, &prepared).await,
        }
    }

    /// Prepares all texts of a group; answers those that cannot be, or whose parameters do not fit.
    async fn prepare(&mut self, connection: &mut Connection, group: &Group) -> Result<PreparedTexts, Trouble> {
        let mut texts = PreparedTexts::default();
        for &place in &group.places {
            if self.answers[place].is_some() {
                continue;
            }
            let plan = Arc::clone(&self.plans[place]);
            let parameters = self.writes[place].parameters();
            if let Some(error) = unsendable(parameters) {
                self.tell(place, Err(error.into()));
                continue;
            }
            if texts.of(&plan).is_none() {
                let prepared = self.prepare_text(connection, group.manner, place).await?;
                texts.keep(&plan, prepared);
            }
            let unfit = |texts: &PreparedTexts| match texts.of(&plan).expect("it was kept before") {
                Ok(prepared) => misfit(prepared, parameters),
                Err(error) => Some(error.clone().into()),
            };
            let mut error = unfit(&texts);
            if error.is_some() && !texts.is_new(&plan) && connection.forget(&plan.sql) {
                // A column may have another type since it was prepared.
                let prepared = self.prepare_text(connection, group.manner, place).await?;
                texts.renew(&plan, prepared);
                error = unfit(&texts);
            }
            if let Some(error) = error {
                self.tell(place, Err(error));
            }
        }
        Ok(texts)
    }

    /// Prepares a text, or finds what is wrong with it. That already waits for the locks of its tables.
    async fn prepare_text(
        &mut self,
        connection: &mut Connection,
        manner: Manner,
        place: usize,
    ) -> Result<Result<Prepared, StatementError>, Trouble> {
        let plan = Arc::clone(&self.plans[place]);
        loop {
            return match connection.prepare(&plan.sql, &[]).await {
                Ok(prepared) => Ok(Ok(prepared)),
                Err(Fate::Lost(cause)) => Err(Trouble::Lost(cause)),
                Err(Fate::Conflict(error)) => Err(Trouble::Conflict(error)),
                Err(Fate::Lock(error)) => {
                    // For no longer than the session's timeout at a time: there is no transaction yet that could set its own.
                    if (self.is_patient || manner == Manner::Patient) && self.may_wait().await {
                        continue;
                    }
                    Err(Trouble::Table(place, error))
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
        place: usize,
        texts: &PreparedTexts,
    ) -> Result<(), Trouble> {
        let (write, plan) = (&self.writes[place], &self.plans[place]);
        let prepared = texts.ready(plan);
        // Dropped in the middle, nobody may use the connection before the statement has ended.
        connection.begins();
        let answered = connection
            .all(answer(
                Whose::Callers,
                connection,
                &prepared.statement,
                sent(write.parameters()),
            ))
            .await;
        let was_executed = matches!(answered, Ok(Ok(_)));
        let told = match answered {
            Ok(Ok(answered)) => Ok(outcome(prepared, &answered, plan.changes_rows)),
            Ok(Err(error)) => {
                let is_whole = plan.role == Role::Shares || !plan.may_commit_within;
                let had_no_effect = had_no_effect(&error);
                match fate(&error, &plan.sql) {
                    Fate::Lost(cause) if is_whole && had_no_effect => return Err(Trouble::Lost(cause)),
                    Fate::Lost(cause) => Ok(Err(WriteError::OutcomeUnknown { cause })),
                    other if !is_whole => Ok(Err(other.statement().into())),
                    Fate::Conflict(error) => Err(Trouble::Conflict(error)),
                    Fate::Lock(error) => Err(Trouble::Lock(place, error)),
                    Fate::Replan(error) => Err(Trouble::Outdated(error)),
                    Fate::Statement(error) if self.may_be_outdated(&error) => Err(Trouble::Outdated(error)),
                    other => Ok(Err(other.statement().into())),
                }
            }
            Err(Fate::Lost(cause)) => Ok(Err(WriteError::OutcomeUnknown { cause })),
            Err(_) => unreachable!("only silence is told so"),
        };
        if !matches!(told, Ok(Err(WriteError::OutcomeUnknown { .. }))) {
            connection.ended();
            // Also after an error: what it locked in the session is not given back by that.
            if plan.changes_session {
                connection.restore().await;
            }
        }
        let told = told?;
        let told = match (told, write.acceptance()) {
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
            (told, _) => told,
        };
        self.tell(place, told);
        Ok(())
    }

    /// All of them in one transaction.
    async fn transaction(
        &mut self,
        connection: &mut Connection,
        manner: Manner,
        places: &[usize],
        texts: &PreparedTexts,
    ) -> Result<(), Trouble> {
        let steps = self.steps(connection, places, texts).await?;
        let mut told: Vec<(usize, Told)> = Vec::with_capacity(places.len());
        connection.begins();
        let mut begin = Some(self.begin(manner));
        for step in &steps {
            match (step, manner) {
                (Step::Singles(places), Manner::Careful) => {
                    self.say_first(connection, &mut begin).await?;
                    for window in places.chunks(WINDOW) {
                        self.window(connection, window, texts, &mut told).await?;
                    }
                }
                (Step::Singles(places), _) => {
                    let answers = self.singles(connection, begin.take(), places, texts).await?;
                    for (&place, answer) in places.iter().zip(answers) {
                        let outcome = answer.map_err(|error| trouble(fate(&error, &self.plans[place].sql), place))?;
                        told.push((place, self.outcome(place, texts, &outcome)));
                        if told.last().is_some_and(|(_, told)| told.is_err()) {
                            return Err(Trouble::Guilty);
                        }
                    }
                }
                (Step::Set(set), Manner::Careful) => {
                    self.say_first(connection, &mut begin).await?;
                    self.set_carefully(connection, set, texts, &mut told).await?;
                }
                (Step::Set(set), _) => {
                    let sifted = self.sift(connection, &mut begin, set).await?;
                    let is_written = self
                        .are_in_conflict(connection, &sifted.there, texts, &mut told)
                        .await?
                        && self
                            .set(connection, begin.take(), set, &sifted.clear, &mut told)
                            .await?
                        && self
                            .are_in_conflict(connection, &sifted.second, texts, &mut told)
                            .await?;
                    if !is_written {
                        return Err(Trouble::Guilty);
                    }
                }
            }
        }
        let written = told.iter().filter(|(_, told)| told.is_ok()).count();
        if written > 0 {
            self.commit(connection, written, &mut told).await?;
        } else if connection.say("ROLLBACK").await.is_ok() {
            connection.ended();
        }
        for (place, told) in told {
            self.tell(place, told);
        }
        Ok(())
    }

    /// What a transaction begins with.
    fn begin(&self, manner: Manner) -> String {
        let lock_timeout = if self.is_patient || manner == Manner::Patient {
            Some(self.until.saturating_duration_since(Instant::now()))
        } else if self.locks > 0 {
            // However many rows are locked, their neighbours do not wait much longer than for one.
            Some((self.database.lock_timeout / 2_u32.saturating_pow(self.locks)).max(LOCK_TIMEOUT_MIN))
        } else {
            None
        };
        let mut begin = BEGIN.to_owned();
        if let Some(lock_timeout) = lock_timeout {
            begin.push_str(&format!("; SET LOCAL lock_timeout = {}", milliseconds(lock_timeout)));
        }
        begin
    }

    /// Commits. Whose connection is lost meanwhile, cannot know.
    async fn commit(
        &self,
        connection: &mut Connection,
        written: usize,
        told: &mut [(usize, Told)],
    ) -> Result<(), Trouble> {
        match connection.say("COMMIT").await {
            Ok(()) => connection.ended(),
            Err(Fate::Lost(cause)) => {
                for (_, told) in told.iter_mut().filter(|(_, told)| told.is_ok()) {
                    *told = Err(WriteError::OutcomeUnknown { cause: cause.clone() });
                }
            }
            // PostgreSQL has rolled back.
            Err(Fate::Conflict(error)) => {
                connection.ended();
                return Err(Trouble::Conflict(error));
            }
            Err(other) => {
                connection.ended();
                return Err(Trouble::Refused(other.statement(), written));
            }
        }
        Ok(())
    }

    /// Says BEGIN, if that was not said yet.
    async fn say_first(&self, connection: &Connection, begin: &mut Option<String>) -> Result<(), Trouble> {
        match begin.take() {
            Some(begin) => connection.say(&begin).await.map_err(general),
            None => Ok(()),
        }
    }

    /// What is done with the statements, in their order.
    async fn steps(
        &self,
        connection: &mut Connection,
        places: &[usize],
        texts: &PreparedTexts,
    ) -> Result<Vec<Step>, Trouble> {
        let mut steps: Vec<Step> = Vec::new();
        let mut rest = places;
        while let Some(&first) = rest.first() {
            let plan = &self.plans[first];
            let length = rest
                .iter()
                .take_while(|&&place| Arc::ptr_eq(&self.plans[place], plan))
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

    /// Executes each by itself, all in one flight.
    async fn singles(
        &self,
        connection: &Connection,
        first: Option<String>,
        places: &[usize],
        texts: &PreparedTexts,
    ) -> Result<Vec<Result<Answered, tokio_postgres::Error>>, Trouble> {
        let client = connection.client();
        let mut messages: Vec<Message<'_, Result<Answered, tokio_postgres::Error>>> =
            Vec::with_capacity(places.len() + 1);
        let begins = first.is_some();
        if let Some(first) = first {
            messages.push(control(client, first));
        }
        for &place in places {
            let statement = &texts.ready(&self.plans[place]).statement;
            let parameters = self.writes[place].parameters();
            messages.push(Box::pin(answer(
                Whose::Callers,
                connection,
                statement,
                sent(parameters),
            )));
        }
        let mut answers = connection.all(flight(messages)).await.map_err(general)?;
        if begins && let Err(error) = answers.remove(0) {
            return Err(general(fate(&error, "BEGIN")));
        }
        Ok(answers)
    }

    /// Statements that share a savepoint. Those that fail are told so; what is left of the window goes on.
    async fn window(
        &self,
        connection: &Connection,
        places: &[usize],
        texts: &PreparedTexts,
        told: &mut Vec<(usize, Told)>,
    ) -> Result<(), Trouble> {
        let mut parts: VecDeque<Vec<usize>> = VecDeque::from([places.to_vec()]);
        while let Some(part) = parts.pop_front() {
            let save = Some(SAVE.to_owned());
            let answers = self.singles(connection, save, &part, texts).await?;
            let mut outcomes = Vec::with_capacity(part.len());
            let mut failed = None;
            for (position, answer) in answers.into_iter().enumerate() {
                let place = part[position];
                let told = match answer {
                    Ok(answered) => self.outcome(place, texts, &answered),
                    Err(error) => match fate(&error, &self.plans[place].sql) {
                        Fate::Statement(error) if self.may_be_outdated(&error) => return Err(Trouble::Outdated(error)),
                        // None before it has failed.
                        Fate::Statement(error) | Fate::Skipped(error) => Err(error.into()),
                        other => return Err(trouble(other, place)),
                    },
                };
                if told.is_err() {
                    failed = Some((position, told));
                    break;
                }
                outcomes.push((place, told));
            }
            let Some((position, failure)) = failed else {
                connection.say(RELEASE).await.map_err(general)?;
                told.append(&mut outcomes);
                continue;
            };
            connection.say(UNDO).await.map_err(general)?;
            told.push((part[position], failure));
            for again in [&part[position + 1..], &part[..position]] {
                if !again.is_empty() {
                    parts.push_front(again.to_vec());
                }
            }
        }
        Ok(())
    }

    /// Whether the statement may have failed because a column has another type since it was prepared: the server keeps the types
    /// that its parameters had then. It is prepared anew once, to see.
    fn may_be_outdated(&self, error: &StatementError) -> bool {
        !self.is_renewed && is_of_types(error)
    }

    /// What the caller at this place is told of the answer.
    fn outcome(&self, place: usize, texts: &PreparedTexts, answered: &Answered) -> Told {
        let plan = &self.plans[place];
        let outcome = outcome(texts.ready(plan), answered, plan.changes_rows)?;
        if let Some(acceptance) = self.writes[place].acceptance() {
            acceptance.of(&outcome)?;
        }
        Ok(outcome)
    }
}

/// Alone, what is deferred is looked at after the statement; so it is here. Else a neighbour could mend what a statement has
/// broken, and a trigger would see the neighbours' rows. What is left of a difference: among one statement's triggers a deferred
/// one comes by its name, not last.
const BEGIN: &str = "BEGIN; SET CONSTRAINTS ALL IMMEDIATE";
const SAVE: &str = "SAVEPOINT forebay_window";
const RELEASE: &str = "RELEASE forebay_window";
const UNDO: &str = "ROLLBACK TO forebay_window; RELEASE forebay_window";

impl Group {
    fn new(places: Vec<usize>, manner: Manner) -> Self {
        Self {
            places,
            manner,
            conflicts: 0,
            replans: 0,
            losses: 0,
        }
    }

    fn halves(self) -> [Self; 2] {
        let (first, second) = self.places.split_at(self.places.len() / 2);
        [first, second].map(|places| Self::new(places.to_vec(), self.manner))
    }

    /// What is before that place, the one there in a manner of its own, and what is after.
    fn parted(self, place: usize, manner: Manner) -> [Self; 3] {
        let position = self.places.iter().position(|&other| other == place);
        let position = position.expect("the place is one of the group's");
        let (before, after) = (&self.places[..position], &self.places[position + 1..]);
        [
            Self::new(before.to_vec(), self.manner),
            Self::new(vec![place], manner),
            Self::new(after.to_vec(), self.manner),
        ]
    }
}

/// The statements of a group, prepared on the connection that it runs on.
#[derive(Default)]
struct PreparedTexts {
    /// Few: mostly one.
    texts: Vec<(Arc<Plan>, Result<Prepared, StatementError>)>,
    /// Those that were prepared anew.
    renewed: Vec<Arc<Plan>>,
}

impl PreparedTexts {
    fn of(&self, plan: &Arc<Plan>) -> Option<&Result<Prepared, StatementError>> {
        let mut found = self.texts.iter().rev().filter(|(kept, _)| Arc::ptr_eq(kept, plan));
        found.next().map(|(_, prepared)| prepared)
    }

    fn keep(&mut self, plan: &Arc<Plan>, prepared: Result<Prepared, StatementError>) {
        self.texts.push((Arc::clone(plan), prepared));
    }

    /// Whether it was prepared anew already.
    fn is_new(&self, plan: &Arc<Plan>) -> bool {
        self.renewed.iter().any(|renewed| Arc::ptr_eq(renewed, plan))
    }

    /// Takes the place of what was kept before.
    fn renew(&mut self, plan: &Arc<Plan>, prepared: Result<Prepared, StatementError>) {
        self.renewed.push(Arc::clone(plan));
        self.keep(plan, prepared);
    }

    /// The statement of a text that could be prepared.
    fn ready(&self, plan: &Arc<Plan>) -> &Prepared {
        match self.of(plan) {
            Some(Ok(prepared)) => prepared,
            _ => unreachable!("what could not be prepared was answered"),
        }
    }
}

/// Why parameters cannot be sent, whatever the statement: the server would end the connection, and the library cannot count so far.
fn unsendable(parameters: &Parameters) -> Option<StatementError> {
    let values = parameters.values();
    if values.len() > PARAMETERS_MAX {
        let message = format!(
            "{} parameters, and a statement takes at most {PARAMETERS_MAX}",
            values.len()
        );
        return Some(StatementError::new(StatementErrorKind::ParameterCount, 0, message));
    }
    let bytes: usize = values.iter().map(bytes_sent).sum();
    (bytes > MESSAGE_BYTES_MAX).then(|| {
        let message = format!("its parameters are {bytes} bytes, and a message takes at most {MESSAGE_BYTES_MAX}");
        StatementError::new(StatementErrorKind::TooLarge, 0, message)
    })
}

/// The bytes that a value takes in a message, or some fewer.
fn bytes_sent(value: &Value) -> usize {
    const LENGTH: usize = 4;
    LENGTH
        + match value {
            Value::Null | Value::Integer(_) | Value::Real(_) => 0,
            Value::Text(text) => text.len(),
            Value::Blob(bytes) => bytes.len(),
            Value::Array(values) => values.iter().map(bytes_sent).sum(),
        }
}

/// A statement that only steers the transaction.
fn control(client: &Client, sql: String) -> Message<'_, Result<Answered, tokio_postgres::Error>> {
    Box::pin(async move {
        client.batch_execute(&sql).await?;
        Ok(Answered::nothing())
    })
}

/// The statement; prepared anew if these parameters do not fit it, as a column may have another type since it was prepared.
async fn ready(connection: &mut Connection, sql: &str, parameters: &Parameters) -> Result<Prepared, Fate> {
    let prepared = connection.prepare(sql, &[]).await?;
    if misfit(&prepared, parameters).is_some() && connection.forget(sql) {
        return connection.prepare(sql, &[]).await;
    }
    Ok(prepared)
}

/// The parameters as they are sent.
fn sent(parameters: &Parameters) -> impl ExactSizeIterator<Item = Parameter<'_>> + Send {
    parameters.values().iter().map(Parameter)
}

/// Why the statement cannot be executed with these parameters, found without asking.
fn misfit(prepared: &Prepared, parameters: &Parameters) -> Option<WriteError> {
    let unreadable = |column: &&tokio_postgres::Column| !types::returnable(column.type_());
    let fits = types::check(prepared.statement.params(), parameters.values()).and_then(|()| {
        match prepared.statement.columns().iter().find(unreadable) {
            Some(column) => Err(types::unreturnable(column.name(), column.type_())),
            None => Ok(()),
        }
    });
    fits.err().map(WriteError::from)
}

/// The outcome of a statement that was executed.
fn outcome(prepared: &Prepared, answered: &Answered, changes_rows: bool) -> Told {
    if let Some(too_many) = answered.too_many {
        return Err(StatementError::from(too_many).into());
    }
    let columns = &prepared.columns;
    let row = |row| -> Result<Vec<Value>, StatementError> {
        (0..columns.len()).map(|column| types::value(row, column)).collect()
    };
    let rows: Result<Vec<Vec<Value>>, StatementError> = answered.rows.iter().map(row).collect();
    let count = if changes_rows { answered.count } else { 0 };
    Ok(Outcome::counted(count, None).returning(columns.to_vec(), rows?))
}

/// Whether types did not fit, or there is no operator, function or cast for them.
fn is_of_types(error: &StatementError) -> bool {
    let codes = ["42804", "42883", "42846"];
    error.sqlstate.as_deref().is_some_and(|state| codes.contains(&state))
}
