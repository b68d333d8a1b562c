//! Many: a run of INSERTs of one text, written many rows at a time inside the batch's transaction.
//!
//! Promises: as one by one, but faster. A row that fails is settled by being executed alone, for its own error; its neighbours'
//! rows are written all the same, in order. What was relied on of the table is read again before the commit, while the
//! transaction keeps the table's definition from being changed.

use std::collections::HashSet;
use std::sync::Arc;

use super::interruption::Interruption;
use super::state::Batch;
use crate::connection::Connection;
use crate::error::Failure;
use crate::facts::{self, Facts};
use crate::plan::Plan;
use crate::server::Server;
use crate::set::{CHUNK_MIN, Returned, Set};
use crate::value;
use forebay_remote::alike::Alike;
use forebay_remote::settled::Settled;
use forebay_write::{Outcome, Parameters};

/// From so many rows on a set is cheaper than its parts and the look at the table.
pub(super) const ROWS_MIN: usize = 8;
/// Below so many rows, one by one.
const PART_MIN: usize = 2;
/// After so many transactions whose sets were not what they must be, a batch writes none.
const MISTAKES_MAX: u32 = 3;

/// Rows that are asked for at a time: more would make the server look through them all.
const ROWS_ASKED_MAX: usize = 512;
const PLACEHOLDERS_MAX: usize = 16_384;

/// What is undone where the order made a difference.
const SAVE: &str = "SAVEPOINT forebay_set";
const UNDO: &str = "ROLLBACK TO SAVEPOINT forebay_set";

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
            None => match Facts::read(connection, set.schema.as_deref(), &set.table).await {
                Ok(facts) => {
                    set.learn(Some(facts));
                    set.facts().ok_or(Interruption::Again)?
                }
                Err(Failure::Lost { cause, .. }) => return Err(Interruption::Lost(cause)),
                Err(_) => return Ok(Wrote::None),
            },
        };
        let server = Arc::clone(connection.server());
        let Some(returned) = set.returned(&facts, &server) else {
            if *facts == Facts::Unfit {
                // Looked at again with the next batch: the table may not be there yet.
                set.learn(None);
            }
            return Ok(Wrote::None);
        };
        if !self.sets.iter().any(|(other, _)| Arc::ptr_eq(other, plan)) {
            self.sets.push((Arc::clone(plan), Arc::clone(&facts)));
        }
        let sifted = self.sift(connection, set, run).await?;
        if sifted.clear.len() == run.len() {
            self.write_parts(connection, plan, &returned, run).await?;
            return Ok(Wrote::All);
        }
        connection.command(SAVE, false).await.map_err(Interruption::of)?;
        let executed_before = self.executed.len();
        let rest = match self.write_sifted(connection, plan, &returned, &sifted).await? {
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
        self.write_parts(connection, plan, &returned, &rest).await?;
        Ok(Wrote::All)
    }

    /// Writes rows in another order than they came in, where that makes no difference: those in conflict with rows that are
    /// there first, to fail, those in conflict with others of the run last, to fail as well. Tells whether it made none.
    async fn write_sifted(
        &mut self,
        connection: &mut Connection,
        plan: &Arc<Plan>,
        returned: &Returned,
        sifted: &Sifted,
    ) -> Result<Sorted, Interruption> {
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
        match self.write_parts(connection, plan, returned, &sifted.clear).await {
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
        plan: &Arc<Plan>,
        returned: &Returned,
        run: &[usize],
    ) -> Result<(), Interruption> {
        let set = plan.set.as_ref().expect("a run is of a text that has a set");
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
            if part.len() < PART_MIN {
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
            match self.write_part(connection, set, returned, &part).await {
                Ok(outcome) => {
                    let Some(outcomes) = set.outcomes(part.len(), returned, server.increment, outcome) else {
                        tracing::warn!(
                            table = set.table,
                            "an INSERT of many rows did not return what it must; written one by one"
                        );
                        set.distrust();
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

    /// As many of them, a power of two, as are tried at a time and fit into a packet.
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
        let rows = if fit == 0 { 0 } else { 1 << fit.ilog2() };
        run[..rows].to_vec()
    }

    /// The part, if all of it may be executed; a caller who has cancelled is not in it.
    fn claimed(&self, part: Vec<usize>) -> Option<Vec<usize>> {
        let cancelled = part.iter().position(|&index| self.writes[index].claim().is_err());
        match cancelled {
            None => Some(part),
            Some(0) => None,
            Some(some) => {
                let rows = 1 << some.ilog2();
                (rows >= PART_MIN).then(|| part[..rows].to_vec())
            }
        }
    }

    async fn write_part(
        &self,
        connection: &mut Connection,
        set: &Set,
        returned: &Returned,
        part: &[usize],
    ) -> Result<Outcome, Failure> {
        let text = set.text(part.len(), returned);
        let values = part
            .iter()
            .flat_map(|&index| self.writes[index].parameters().values().iter().cloned());
        let parameters = Parameters::from(values.collect::<Vec<_>>());
        connection.execute(&text, &parameters).await
    }

    /// Whether the tables that sets were written to are still as they were known to be. The transaction holds their definitions.
    pub(super) async fn are_facts_true(&mut self, connection: &mut Connection) -> Result<bool, Failure> {
        for (plan, known) in std::mem::take(&mut self.sets) {
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
