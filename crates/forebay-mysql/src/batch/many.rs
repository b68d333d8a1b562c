//! Multi-row INSERTs: neighbouring INSERTs of one text are written many rows at a time, inside the batch's transaction.
//!
//! Promises: the same outcomes as one by one. A row that fails is executed by itself, so that its caller gets its own error;
//! its neighbours' rows are written all the same, in order.
//!
//! What a set is known by, its table's facts, may have changed since they were read. Of a set that the server has inserted whole, in
//! the order in which its rows came, the answer itself tells enough. Whatever the table has become, row after row was inserted, with
//! triggers and checks between, as by one INSERT after the other; there was no warning, so nothing was stored that alone would have
//! been refused; there are as many rows as were given; and the column whose values are told as ids is, by its description, the one
//! that the server numbers. In all other cases (a row has failed and others are written again, the order is another one, there was a
//! warning) the facts are relied on. They are read again before the commit then, while the transaction keeps the table's definition
//! from being changed.

use std::collections::HashSet;
use std::sync::Arc;

use super::interruption::Interruption;
use super::state::Batch;
use crate::connection::{Connection, Inserted};
use crate::error::Failure;
use crate::facts::{self, Facts};
use crate::plan::Plan;
use crate::server::Server;
use crate::set::{CHUNK_MIN, Returned, Set};
use crate::value;
use forebay_remote::alike::Alike;
use forebay_remote::settled::Settled;
use forebay_write::{Outcome, Parameters};

/// From so many rows on a set is cheaper than its parts.
pub(super) const ROWS_MIN: usize = 2;
/// After so many transactions whose sets were not what they must be, a batch writes none.
const MISTAKES_MAX: u32 = 3;

/// Rows that are asked for at a time: more would make the server look through them all.
const ROWS_ASKED_MAX: usize = 512;
const PLACEHOLDERS_MAX: usize = 16_384;
/// Below so many rows, parts are of more sizes than powers of two.
const FINE_ROWS: usize = 256;

/// What is undone where the order made a difference.
const SAVE: &str = "SAVEPOINT forebay_set";
const UNDO: &str = "ROLLBACK TO SAVEPOINT forebay_set";

/// How the sets of one text are written.
struct Form<'a> {
    plan: &'a Arc<Plan>,
    set: &'a Set,
    /// What is known of the table.
    facts: Arc<Facts>,
    returned: Returned,
}

/// A run, by what is to be expected of its rows.
struct Sifted {
    /// In conflict with rows that are there.
    there: Vec<usize>,
    clear: Vec<usize>,
    /// In conflict with another one before them.
    second: Vec<usize>,
}

/// What became of rows that were written in another order than they came in.
enum Sorted {
    /// What would have become of them in theirs.
    Well,
    /// The same of those in conflict with what is there; of the others it cannot be said.
    ButForSecond,
    /// It cannot be said.
    Not,
}

/// What became of a run.
pub(super) enum Wrote {
    /// All are settled.
    All,
    /// Nothing was done: it cannot be written as a set.
    None,
}

impl Batch<'_> {
    /// How many of the statements at the front can be written as one set, as far as they themselves tell.
    pub(super) fn run_length(&self, plan: &Plan, indices: &[usize]) -> usize {
        let Some(set) = plan.set.as_ref().filter(|set| !set.is_distrusted()) else {
            return 0;
        };
        if self.mistakes >= MISTAKES_MAX {
            return 0;
        }
        let first = &self.writes[indices[0]];
        indices
            .iter()
            .take_while(|&&index| {
                let write = &self.writes[index];
                write.sql() == first.sql()
                    && write.acceptance().is_none()
                    && write.parameters().len() == set.parameters()
            })
            .count()
    }

    /// Writes the run. The transaction is open.
    pub(super) async fn write_many(
        &mut self,
        connection: &mut Connection,
        plan: &Arc<Plan>,
        run: &[usize],
    ) -> Result<Wrote, Interruption> {
        let set = plan.set.as_ref().expect("a run is of a text that has a set");
        let facts = match set.facts() {
            Some(facts) => facts,
            None if !set.is_worth_a_look(run.len()) => return Ok(Wrote::None),
            None => match Facts::read(connection, set.schema.as_deref(), &set.table).await {
                Ok(facts) => {
                    set.learn(Some(facts));
                    set.facts().ok_or(Interruption::Again)?
                }
                Err(Failure::Lost { cause, .. }) => return Err(Interruption::Lost(cause)),
                Err(_) => {
                    set.note_fitness(false);
                    return Ok(Wrote::None);
                }
            },
        };
        let server = Arc::clone(connection.server());
        let returned = set.returned(&facts, &server);
        set.note_fitness(returned.is_some());
        let Some(returned) = returned else {
            if *facts == Facts::Unfit {
                // Looked at again with the next batch: the table may not be there yet.
                set.learn(None);
            }
            return Ok(Wrote::None);
        };
        let form = Form {
            plan,
            set,
            facts,
            returned,
        };
        let sifted = self.sift(connection, set, run).await?;
        if sifted.clear.len() == run.len() {
            self.write_parts(connection, &form, run).await?;
            return Ok(Wrote::All);
        }
        self.rely_on_facts(&form);
        connection.command(SAVE, false).await.map_err(Interruption::of)?;
        let executed_before = self.executed.len();
        let rest = match self.write_sifted(connection, &form, &sifted).await? {
            Sorted::Well => return Ok(Wrote::All),
            // What has failed of a row that is there, fails whatever its neighbours do.
            Sorted::ButForSecond => {
                let failed: HashSet<usize> = sifted.there.into_iter().collect();
                run.iter().copied().filter(|index| !failed.contains(index)).collect()
            }
            Sorted::Not => run.to_vec(),
        };
        connection.undo(UNDO).await.map_err(Interruption::of)?;
        self.executed.truncate(executed_before);
        for &index in &rest {
            self.settled[index] = None;
        }
        self.write_parts(connection, &form, &rest).await?;
        Ok(Wrote::All)
    }

    /// What is known of the table has to be true when the transaction is committed.
    fn rely_on_facts(&mut self, form: &Form<'_>) {
        if !self.relied_on.iter().any(|(plan, _)| Arc::ptr_eq(plan, form.plan)) {
            self.relied_on.push((Arc::clone(form.plan), Arc::clone(&form.facts)));
        }
    }

    /// Writes rows in another order than they came in, where that makes no difference: those in conflict with rows that are
    /// there first, to fail, those in conflict with others of the run last, to fail as well. Tells whether it made none.
    async fn write_sifted(
        &mut self,
        connection: &mut Connection,
        form: &Form<'_>,
        sifted: &Sifted,
    ) -> Result<Sorted, Interruption> {
        let plan = form.plan;
        for &index in &sifted.there {
            match self.execute_one(connection, plan, index).await {
                // What has kept its place in front of a lock does so behind those before it.
                Err(Interruption::Blocked(..)) => return Ok(Sorted::Not),
                done => done?,
            }
            if self.is_written(index) {
                return Ok(Sorted::Not);
            }
        }
        match self.write_parts(connection, form, &sifted.clear).await {
            Err(Interruption::Blocked(..)) if !sifted.second.is_empty() => return Ok(Sorted::ButForSecond),
            done => done?,
        }
        if sifted.second.is_empty() {
            return Ok(Sorted::Well);
        }
        if !sifted.clear.iter().all(|&index| self.is_written(index)) {
            // It may be the one that another is in conflict with.
            return Ok(Sorted::ButForSecond);
        }
        for &index in &sifted.second {
            match self.execute_one(connection, plan, index).await {
                Err(Interruption::Blocked(..)) => return Ok(Sorted::ButForSecond),
                done => done?,
            }
            if self.is_written(index) {
                return Ok(Sorted::ButForSecond);
            }
        }
        Ok(Sorted::Well)
    }

    fn is_written(&self, index: usize) -> bool {
        matches!(self.settled[index], Some(Settled::Outcome(Ok(_))))
    }

    /// Parts a run into those that may be written together and those that seem to be in conflict: with rows that are there, or
    /// with one another. It is a hint in both directions, and looked for only where rows were in conflict of late.
    async fn sift(&mut self, connection: &mut Connection, set: &Set, run: &[usize]) -> Result<Sifted, Interruption> {
        let unsifted = || Sifted {
            there: Vec::new(),
            clear: run.to_vec(),
            second: Vec::new(),
        };
        if !set.is_wary() {
            return Ok(unsifted());
        }
        let keys = match set.keys() {
            Some(keys) => keys,
            None => match facts::unique_indexes(connection, set.schema.as_deref(), &set.table).await {
                Ok(indexes) => set.learn_indexes(&indexes),
                Err(Failure::Lost { cause, .. }) => return Err(Interruption::Lost(cause)),
                Err(_) => return Ok(unsifted()),
            },
        };
        let mut is_there = HashSet::new();
        for key in &*keys {
            let rows_max = (PLACEHOLDERS_MAX / key.parameters.len()).min(ROWS_ASKED_MAX);
            let mut at = 0;
            while at < run.len() {
                // A power of two, as few texts are to be prepared.
                let rows = 1 << (run.len() - at).min(rows_max).ilog2();
                let asked = &run[at..at + rows];
                at += rows;
                let values = |index: &usize| {
                    let values = self.writes[*index].parameters().values();
                    key.parameters.iter().map(|&number| values[number].clone())
                };
                let parameters = Parameters::from(asked.iter().flat_map(values).collect::<Vec<_>>());
                let there = match connection.execute(&set.question(key, rows), &parameters).await {
                    Ok(there) => there,
                    Err(Failure::Lost { cause, .. }) => return Err(Interruption::Lost(cause)),
                    Err(failure) => {
                        // It may write where it may not read. It is not asked again.
                        set.learn_indexes(&[]);
                        return if connection.is_in_transaction().await.map_err(Interruption::of)? {
                            Ok(unsifted())
                        } else {
                            Err(Interruption::Conflict(failure))
                        };
                    }
                };
                let all: Vec<usize> = (0..key.parameters.len()).collect();
                let there: HashSet<_> = there.rows.iter().filter_map(|row| Alike::key(row, &all)).collect();
                for &index in asked {
                    let values = self.writes[index].parameters().values();
                    if Alike::key(values, &key.parameters).is_some_and(|key| there.contains(&key)) {
                        is_there.insert(index);
                    }
                }
            }
        }
        let mut is_second = HashSet::new();
        for key in &*keys {
            let mut seen = HashSet::with_capacity(run.len());
            // One that is not written is in nobody's way. One that is second by another key may be: it may be written yet.
            for &index in run.iter().filter(|index| !is_there.contains(*index)) {
                let values = self.writes[index].parameters().values();
                if Alike::key(values, &key.parameters).is_some_and(|key| !seen.insert(key)) {
                    is_second.insert(index);
                }
            }
        }
        let those = |is_wanted: &dyn Fn(&usize) -> bool| run.iter().copied().filter(|index| is_wanted(index)).collect();
        let sifted = Sifted {
            there: those(&|index| is_there.contains(index)),
            clear: those(&|index| !is_there.contains(index) && !is_second.contains(index)),
            second: those(&|index| is_second.contains(index)),
        };
        if sifted.clear.len() < run.len() {
            set.expect_conflicts();
        }
        Ok(sifted)
    }

    /// Writes all of them, as many at a time as can be.
    async fn write_parts(
        &mut self,
        connection: &mut Connection,
        form: &Form<'_>,
        run: &[usize],
    ) -> Result<(), Interruption> {
        let Form { plan, set, .. } = *form;
        let server = Arc::clone(connection.server());
        let mut at = 0;
        // Where the next row that fails is known to be.
        let mut bad: Option<usize> = None;
        while at < run.len() {
            let until = bad.unwrap_or(run.len());
            if at == until {
                bad = None;
                self.execute_one(connection, plan, run[at]).await?;
                at += 1;
                continue;
            }
            let part = self.part(set, &server, &run[at..until]);
            if part.len() < ROWS_MIN {
                self.execute_one(connection, plan, run[at]).await?;
                at += 1;
                continue;
            }
            let Some(part) = self.claimed(part) else {
                // One of them was cancelled: it is settled by itself, and the rest comes together again.
                self.execute_one(connection, plan, run[at]).await?;
                at += 1;
                continue;
            };
            let executed_before = self.executed.len();
            self.executed.extend_from_slice(&part);
            match self.write_part(connection, form, &part).await {
                Ok(inserted) => {
                    if inserted.warns {
                        self.rely_on_facts(form);
                    }
                    let Some(outcomes) = outcomes(form, part.len(), server.increment, inserted) else {
                        self.rely_on_facts(form);
                        match self.are_facts_true(connection).await {
                            Err(Failure::Lost { cause, .. }) => return Err(Interruption::Lost(cause)),
                            Ok(true) => {
                                tracing::warn!(
                                    table = set.table,
                                    "an INSERT of many rows did not return what it must; written one by one"
                                );
                                set.distrust();
                            }
                            Ok(false) | Err(_) => {}
                        }
                        return Err(Interruption::Again);
                    };
                    for (&index, outcome) in part.iter().zip(outcomes) {
                        self.settle(index, Ok(outcome));
                    }
                    set.went_well(part.len());
                    at += part.len();
                }
                Err(Failure::Lost { cause, .. }) => return Err(Interruption::Lost(cause)),
                Err(failure) if failure.is_deadlock() => return Err(Interruption::Conflict(failure)),
                Err(failure) => {
                    self.rely_on_facts(form);
                    // First of all: the next statement makes the server forget it.
                    let row = connection.row_of_error().await.map_err(Interruption::of)?;
                    // 0 where it was none of them.
                    let row = row.filter(|row| (1..=part.len()).contains(row));
                    if !failure.leaves_transaction()
                        && !connection.is_in_transaction().await.map_err(Interruption::of)?
                    {
                        return Err(Interruption::Conflict(failure));
                    }
                    self.executed.truncate(executed_before);
                    if failure.is_unique() {
                        set.expect_conflicts();
                    }
                    match row {
                        Some(row) if failure.is_lock_timeout() => {
                            // It has waited already. Those before it are written first.
                            let guilty = at + row - 1;
                            if row > 1 {
                                bad = Some(guilty);
                                set.went_badly(row);
                                continue;
                            }
                            self.executed.push(run[guilty]);
                            self.after_failure(connection, run[guilty], failure).await?;
                            at = guilty + 1;
                        }
                        Some(row) => {
                            set.went_badly(row);
                            bad = Some(at + row - 1);
                        }
                        None => set.went_badly(part.len()),
                    }
                    if row.is_none() && part.len() <= CHUNK_MIN {
                        // It would be tried with as many again.
                        for &index in &part {
                            self.execute_one(connection, plan, index).await?;
                        }
                        at += part.len();
                    }
                }
            }
        }
        Ok(())
    }

    /// As many of them as are tried at a time and fit into a packet.
    fn part(&self, set: &Set, server: &Server, run: &[usize]) -> Vec<usize> {
        // Half a packet: the text and the parameters are sent in packets of their own.
        let bytes_max = server.max_allowed_packet / 2;
        let mut bytes = 1024;
        let fit = run
            .iter()
            .take(set.chunk())
            .take_while(|&&index| {
                bytes += value::packet_bytes(self.writes[index].parameters().values()) + set.row_bytes();
                bytes <= bytes_max
            })
            .count();
        run[..part_rows(fit)].to_vec()
    }

    /// The part, if all of it may be executed; a caller who has cancelled is not in it.
    fn claimed(&self, part: Vec<usize>) -> Option<Vec<usize>> {
        let cancelled = part.iter().position(|&index| self.writes[index].claim().is_err());
        match cancelled {
            None => Some(part),
            Some(0) => None,
            Some(some) => {
                let rows = part_rows(some);
                (rows >= ROWS_MIN).then(|| part[..rows].to_vec())
            }
        }
    }

    async fn write_part(
        &self,
        connection: &mut Connection,
        form: &Form<'_>,
        part: &[usize],
    ) -> Result<Inserted, Failure> {
        let text = form.set.text(part.len(), &form.returned);
        let values = part
            .iter()
            .flat_map(|&index| self.writes[index].parameters().values().iter().cloned());
        let parameters = Parameters::from(values.collect::<Vec<_>>());
        connection.insert_many(&text, &parameters).await
    }

    /// Whether the tables of sets that rely on it are still as they were known to be. The transaction holds their definitions.
    pub(super) async fn are_facts_true(&mut self, connection: &mut Connection) -> Result<bool, Failure> {
        for (plan, known) in std::mem::take(&mut self.relied_on) {
            let set = plan.set.as_ref().expect("only such plans are noted");
            let now = Facts::read(connection, set.schema.as_deref(), &set.table).await?;
            if now != *known {
                set.learn(None);
                self.mistakes += 1;
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// How many rows of so many are written by one statement, so that few texts have to be prepared and few statements are left for the
/// rest: each is a round trip, which costs more than the rows of a small one.
fn part_rows(rows: usize) -> usize {
    match rows.checked_ilog2() {
        None => 0,
        // Three binary digits of it: 7, 8, 10, 12, 14, 16, 20, …
        Some(digits) if rows < FINE_ROWS => rows & (7 << digits.saturating_sub(2)),
        Some(digits) => 1 << digits,
    }
}

/// Each row's own outcome; none if the answer does not tell them.
fn outcomes(form: &Form<'_>, rows: usize, increment: u64, inserted: Inserted) -> Option<Vec<Outcome>> {
    let are_ids = matches!(form.returned, Returned::Id(_));
    if are_ids && !inserted.returns_numbered {
        return None;
    }
    form.set.outcomes(rows, &form.returned, increment, inserted.outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_of_few_sizes_and_leave_little() {
        let sizes: HashSet<usize> = (1..=1024).map(part_rows).collect();
        assert!(sizes.len() <= 32, "{} sizes", sizes.len());
        assert_eq!(part_rows(0), 0);
        for rows in 1..FINE_ROWS {
            let part = part_rows(rows);
            assert!(part <= rows && rows - part <= rows / 5, "{part} of {rows}");
        }
        assert_eq!((part_rows(1023), part_rows(1024)), (512, 1024));
    }
}
