//! The steps of a batch that are sets: many INSERTs of one text as one statement.
//!
//! Promises: a set is all written or not at all, and each of its callers is told its own. Where conflicts are likely, rows in
//! conflict are looked for first and executed by themselves, so that they alone fail: those in conflict with what is there
//! before the others, those in conflict with one another after them. What was not found fails the set, and is found by
//! splitting the set; where a set does not fail, all are written in the order of their arrival.
//!
//! Does not know: how a set is spelled ([`set`]), when it runs and what follows if it fails.

use std::collections::HashSet;
use std::sync::Arc;

use postgres_types::{ToSql, Type};

use super::interruption::{Interruption, general, interruption};
use super::prepared::PreparedTexts;
use super::state::Batch;
use super::subtransaction::{RELEASE, SAVE, STATEMENTS_MAX, UNDO};
use crate::answered::{Answered, own};
use crate::connection::Connection;
use crate::error::{Failure, failure};
use crate::facts::{self, Facts, Reliance};
use crate::pipeline::{Answer, Refusal, Whose};
use crate::plan::Plan;
use crate::prepared::Prepared;
use crate::set::{self, Form, Sift};
use crate::statement::sent;
use crate::types::{self, Column};
use forebay_remote::alike::Alike;
use forebay_remote::settled::WriteResult;
use forebay_write::{Outcome, StatementError, StatementErrorKind};

/// One list of a set's, ready to be sent.
type List<'a> = Box<dyn ToSql + Sync + Send + 'a>;

/// Statements of one text that are executed as one.
pub(super) struct Set {
    plan: Arc<Plan>,
    pub(super) indices: Vec<usize>,
    form: Form,
    /// What the form relies on.
    facts: Facts,
    prepared: Prepared,
    /// Draws the numbers, where rows are told.
    draw: Option<Prepared>,
    /// Asked first, where rows in conflict are to be expected.
    sift: Option<(Sift, Prepared)>,
    /// What of them, and what asks for it again.
    reliance: Reliance,
    asked: Prepared,
    /// The names of the columns that each caller is told.
    columns: Arc<[String]>,
}

/// The indices of a set, by what is to be expected of them.
pub(super) struct Sifted {
    /// In conflict with rows that are there.
    pub(super) there: Vec<usize>,
    pub(super) clear: Vec<usize>,
    /// In conflict with another one before them.
    pub(super) second: Vec<usize>,
}

impl Batch<'_> {
    /// The set that does the same as these, if there is one.
    pub(super) async fn set_of(
        &self,
        connection: &mut Connection,
        indices: &[usize],
        plan: &Arc<Plan>,
        texts: &PreparedTexts,
    ) -> Result<Option<Set>, Interruption> {
        let Some(insert) = &plan.insert else { return Ok(None) };
        if plan.facts().is_none() {
            let facts = facts::read(connection, &insert.table).await.map_err(general)?;
            plan.learn(facts);
        }
        let Some(facts) = plan.facts() else { return Ok(None) };
        let types = &*texts.ready(plan).parameters;
        let Some(form) = set::form(insert, &facts, types) else {
            return Ok(None);
        };
        let fits = indices.iter().all(|&index| {
            let write = &self.writes[index];
            write.acceptance().is_none()
                && write
                    .parameters()
                    .values()
                    .iter()
                    .zip(types)
                    .all(|(value, kind)| types::fits_column(kind, value))
        });
        if !fits {
            return Ok(None);
        }
        let mut prepared = connection.prepare(&form.sql, &form.lists).await;
        let mut draw = None;
        if let (Ok(_), Some(wanted)) = (&prepared, &form.draw) {
            match connection.prepare(wanted, &[Type::INT4]).await {
                Ok(prepared) => draw = Some(prepared),
                Err(failure) => prepared = Err(failure),
            }
        }
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(Failure::Lost(cause)) => return Err(Interruption::Lost(cause)),
            Err(_) => {
                // A thing about the table that the facts do not tell. Each by itself tells the truth.
                plan.distrust_sets();
                return Ok(None);
            }
        };
        let mut sift = None;
        if plan.is_wary()
            && let Some(wanted) = set::sift(insert, &facts, types)
        {
            match connection.prepare(&wanted.sql, &wanted.lists).await {
                Ok(prepared) => sift = Some((wanted, prepared)),
                Err(Failure::Lost(cause)) => return Err(Interruption::Lost(cause)),
                Err(_) => plan.stop_sifting(),
            }
        }
        let reliance = if draw.is_some() || sift.is_some() {
            Reliance::All
        } else {
            Reliance::Plain
        };
        let asked = connection.prepare(&reliance.query(&insert.table), &[]).await;
        let asked = asked.map_err(general)?;
        let columns = if insert.returning.is_some() {
            Arc::clone(&texts.ready(plan).column_names)
        } else {
            Arc::default()
        };
        Ok(Some(Set {
            plan: Arc::clone(plan),
            indices: indices.to_vec(),
            form,
            facts,
            prepared,
            draw,
            sift,
            reliance,
            asked,
            columns,
        }))
    }

    /// Parts the indices of a set into those that may be written and those that seem to be in conflict: with rows that are
    /// there, or with one another. It is a hint in both directions.
    pub(super) async fn sift(
        &self,
        connection: &mut Connection,
        begin: &mut Option<String>,
        set: &Set,
    ) -> Result<Sifted, Interruption> {
        let Some((sift, prepared)) = &set.sift else {
            return Ok(Sifted {
                there: Vec::new(),
                clear: set.indices.clone(),
                second: Vec::new(),
            });
        };
        let lists = self.lists(&sift.sources, &set.indices);
        let found = self
            .behind(connection, begin.take(), |together| {
                together.execute(Whose::Ours, prepared, sent_lists(&lists));
            })
            .await?;
        let found = match first(found) {
            Ok(found) => found,
            Err(refusal) => {
                // It may write where it may not read. The transaction is broken; the next does not ask.
                set.plan.stop_sifting();
                return Err(general(failure(refusal, &sift.sql)));
            }
        };
        let mut is_there = vec![false; set.indices.len()];
        for mut row in found.rows() {
            let (kind, value) = row.next().expect("it is of one column");
            let index: i64 = own(kind, value);
            let index = usize::try_from(index - 1).expect("indices are counted from 1");
            is_there[index] = true;
        }
        let mut is_second = vec![false; set.indices.len()];
        for key in &sift.keys {
            let mut keys = HashSet::with_capacity(set.indices.len());
            for (position, &index) in set.indices.iter().enumerate() {
                let values = self.writes[index].parameters().values();
                // One that is not written is in nobody's way. One that is second by another key may be: it may be written yet.
                if !is_there[position]
                    && let Some(key) = Alike::key(values, key)
                {
                    is_second[position] |= !keys.insert(key);
                }
            }
        }
        let mut sifted = Sifted {
            there: Vec::new(),
            clear: Vec::with_capacity(set.indices.len()),
            second: Vec::new(),
        };
        for (position, &index) in set.indices.iter().enumerate() {
            match (is_there[position], is_second[position]) {
                (true, _) => sifted.there.push(index),
                (false, true) => sifted.second.push(index),
                (false, false) => sifted.clear.push(index),
            }
        }
        if sifted.clear.len() < set.indices.len() {
            set.plan.expect_conflicts();
        }
        Ok(sifted)
    }

    /// Of each of these parameters, its values at these indices.
    fn lists<'b>(&'b self, sources: &[usize], indices: &'b [usize]) -> Vec<List<'b>> {
        let list = |&source: &usize| -> List<'b> {
            let values = indices
                .iter()
                .map(move |&index| &self.writes[index].parameters().values()[source]);
            Box::new(Column::new(values))
        };
        sources.iter().map(list).collect()
    }

    /// Draws a number for each of so many rows. None, and the transaction is broken: their statements tell why.
    async fn draw(
        &self,
        connection: &mut Connection,
        begin: Option<String>,
        (set, draw): (&Set, &Prepared),
        rows: usize,
    ) -> Result<Option<Vec<i64>>, Interruption> {
        let wanted = i32::try_from(rows).expect("a batch has fewer rows than that");
        let drawn = self
            .behind(connection, begin, |together| {
                together.execute(Whose::Ours, draw, [wanted]);
            })
            .await?;
        match first(drawn) {
            Ok(drawn) => {
                let numbers: Vec<i64> = drawn.first(0).unwrap_or_default();
                if numbers.len() != rows {
                    // Something between us and the sequence.
                    set.plan.distrust_sets();
                    return Ok(None);
                }
                Ok(Some(numbers))
            }
            Err(refusal) => failed(set, refusal).map(|()| None),
        }
    }

    /// Executes a set for these of its indices, and tells them. If not, what is written of it has to be undone; its statements
    /// tell why.
    pub(super) async fn set(
        &self,
        connection: &mut Connection,
        mut begin: Option<String>,
        set: &Set,
        indices: &[usize],
        results: &mut Vec<(usize, WriteResult)>,
    ) -> Result<bool, Interruption> {
        if indices.is_empty() {
            // BEGIN, if that was not said yet.
            self.begin_first(connection, &mut begin).await?;
            return Ok(true);
        }
        let mut numbers = Vec::new();
        if let Some(draw) = &set.draw {
            match self.draw(connection, begin.take(), (set, draw), indices.len()).await? {
                Some(drawn) => numbers = drawn,
                None => return Ok(false),
            }
        }
        let mut lists = self.lists(&set.form.sources, indices);
        if set.draw.is_some() {
            lists.push(Box::new(numbers.as_slice()));
        }
        let answers = self
            .behind(connection, begin, |together| {
                together.execute(Whose::Callers, &set.prepared, sent_lists(&lists));
                together.execute(Whose::Ours, &set.asked, [0_i32; 0]);
            })
            .await?;
        let [written, facts] = <[Answer; 2]>::try_from(answers).expect("one answer a statement");
        let written = match written {
            Ok(written) => written,
            Err(refusal) => return failed(set, refusal).map(|()| false),
        };
        if written.too_many.is_some() {
            // It is for one statement that there is a limit.
            return Ok(false);
        }
        let facts = facts.map_err(|refusal| general(failure(refusal, "")))?;
        // What the plan knows by now may be newer than what the form was made of.
        if !set.reliance.holds(&set.facts, &facts) {
            set.plan.learn(None);
            return Err(Interruption::Outdated(StatementError::new(
                StatementErrorKind::Conflict,
                0,
                "the table was changed while it was written to",
            )));
        }
        share_out(set, indices, &numbers, &written, results)?;
        Ok(true)
    }

    /// A set of which some rows are known, or feared, to fail.
    pub(super) async fn set_carefully(
        &self,
        connection: &mut Connection,
        set: &Set,
        texts: &PreparedTexts,
        results: &mut Vec<(usize, WriteResult)>,
    ) -> Result<(), Interruption> {
        let Sifted { there, clear, second } = self.sift(connection, &mut None, set).await?;
        let save = || Some(SAVE.to_owned());
        // What fails of a row that is there, fails whatever its neighbours do.
        let fails = self.are_in_conflict(connection, &there, texts, results).await?;
        let failed: HashSet<usize> = there.into_iter().filter(|_| fails).collect();
        let is_open = |index: &usize| !failed.contains(index);
        let rest: Vec<usize> = set.indices.iter().copied().filter(is_open).collect();
        // Where nothing was found, what failed the set before fails it again.
        if fails && clear.len() < set.indices.len() {
            let before = results.len();
            if self.set(connection, save(), set, &clear, results).await?
                && self.are_in_conflict(connection, &second, texts, results).await?
            {
                return connection.command(RELEASE).await.map_err(general);
            }
            connection.command(UNDO).await.map_err(general)?;
            results.truncate(before);
        }
        for part in rest.chunks(STATEMENTS_MAX) {
            if self.set(connection, save(), set, part, results).await? {
                connection.command(RELEASE).await.map_err(general)?;
            } else {
                connection.command(UNDO).await.map_err(general)?;
                self.subtransaction(connection, part, texts, results).await?;
            }
        }
        Ok(())
    }

    /// Executes statements that very likely fail, each to be told its own error, and undoes each, all in one pipeline. If one of
    /// them does not fail, nobody is told: in its place it may be in the way of those after it.
    pub(super) async fn are_in_conflict(
        &self,
        connection: &mut Connection,
        indices: &[usize],
        texts: &PreparedTexts,
        results: &mut Vec<(usize, WriteResult)>,
    ) -> Result<bool, Interruption> {
        if indices.is_empty() {
            return Ok(true);
        }
        let answers = connection
            .pipeline(|pipeline| {
                pipeline.command(SAVE);
                for &index in indices {
                    let prepared = texts.ready(&self.plans[index]);
                    pipeline.execute(Whose::Callers, prepared, sent(self.writes[index].parameters()));
                    pipeline.command("ROLLBACK TO forebay_batch");
                }
                pipeline.command(RELEASE);
            })
            .await
            .map_err(general)?;
        let mut answers = answers.into_iter();
        let mut next = || answers.next().expect("one answer a statement");
        let mut failed = Vec::with_capacity(indices.len());
        let check = |answer: Answer| answer.map_err(|refusal| general(failure(refusal, SAVE)));
        check(next())?;
        for &index in indices {
            match next() {
                Ok(_) => {}
                Err(refusal) => match failure(refusal, &self.plans[index].sql) {
                    Failure::Statement(error) => failed.push((index, Err(error.into()))),
                    other => return Err(interruption(other, index)),
                },
            }
            check(next())?;
        }
        check(next())?;
        let all = failed.len() == indices.len();
        if all {
            results.append(&mut failed);
        }
        Ok(all)
    }
}

/// The lists as they are sent.
fn sent_lists<'b>(lists: &'b [List<'_>]) -> impl Iterator<Item = &'b (dyn ToSql + Sync)> + Clone {
    lists.iter().map(|list| &**list as &(dyn ToSql + Sync))
}

/// The only answer.
fn first(mut answers: Vec<Answer>) -> Answer {
    answers.pop().expect("one answer a statement")
}

/// What it means that a set failed: whose row it was is not known, and its statements tell why, each by itself.
fn failed(set: &Set, refusal: Refusal) -> Result<(), Interruption> {
    match failure(refusal, &set.plan.sql) {
        Failure::Statement(error) => {
            if error.kind == StatementErrorKind::Unique {
                set.plan.expect_conflicts();
            }
            Ok(())
        }
        Failure::Lock(_) | Failure::Alone(_) => Ok(()),
        other => Err(general(other)),
    }
}

/// Gives each caller of a set its own; where rows are told, the one with its number.
fn share_out(
    set: &Set,
    indices: &[usize],
    numbers: &[i64],
    written: &Answered,
    results: &mut Vec<(usize, WriteResult)>,
) -> Result<(), Interruption> {
    // Something between us and the table that the facts do not tell.
    let distrust = || {
        set.plan.distrust_sets();
        Interruption::Guilty
    };
    let rows = if set.draw.is_some() {
        written.row_count() as u64
    } else {
        written.count
    };
    if rows != indices.len() as u64 {
        return Err(distrust());
    }
    let one = |columns, rows| Outcome::counted(1, None).returning(columns, rows);
    if set.draw.is_none() {
        results.extend(indices.iter().map(|&index| (index, Ok(one(Vec::new(), Vec::new())))));
        return Ok(());
    }
    let mut owners: Vec<(i64, Option<usize>)> =
        numbers.iter().copied().zip(indices.iter().copied().map(Some)).collect();
    owners.sort_unstable_by_key(|(number, _)| *number);
    // The number, and then what was asked for.
    let names = &set.columns;
    for row in written.rows() {
        let mut values = types::row(row).unwrap_or_default().into_iter();
        let number = values.next().and_then(|number| number.as_integer());
        let owner = number.and_then(|number| {
            let owner = owners.binary_search_by_key(&number, |(number, _)| *number).ok()?;
            owners[owner].1.take()
        });
        // Each by itself is told why.
        let Some(index) = owner else {
            return Err(distrust());
        };
        results.push((index, Ok(one(names.to_vec(), vec![values.collect()]))));
    }
    Ok(())
}
