//! Subtransaction: statements of a transaction by themselves, not as a set: all sent at once, or a number of them behind each
//! savepoint.
//!
//! Promises: those that stand have their outcomes; one that fails behind a savepoint undoes only itself. Knows nothing of
//! the commit.

use std::collections::VecDeque;

use super::interruption::{Interruption, general, interruption};
use super::prepared::PreparedTexts;
use super::state::Batch;
use crate::answered::Answered;
use crate::connection::Connection;
use crate::error::{Failure, failure};
use crate::pipeline::{Answer, Together, Whose};
use crate::statement::{is_of_types, outcome, sent};
use forebay_remote::settled::WriteResult;
use forebay_write::StatementError;

/// The most statements that share a savepoint when a batch is run carefully: a failure costs half of them once more.
pub(super) const STATEMENTS_MAX: usize = 64;

pub(super) const SAVE: &str = "SAVEPOINT forebay_batch";
pub(super) const RELEASE: &str = "RELEASE forebay_batch";
pub(super) const UNDO: &str = "ROLLBACK TO forebay_batch; RELEASE forebay_batch";

impl Batch<'_> {
    /// Begins, if that was not done yet.
    pub(super) async fn begin_first(
        &self,
        connection: &mut Connection,
        begin: &mut Option<String>,
    ) -> Result<(), Interruption> {
        match begin.take() {
            Some(begin) => connection.command(&begin).await.map_err(general),
            None => Ok(()),
        }
    }

    /// Executes each by itself, all in one pipeline. What comes after one that fails is not executed.
    pub(super) async fn singles(
        &self,
        connection: &mut Connection,
        first: Option<String>,
        indices: &[usize],
        texts: &PreparedTexts,
    ) -> Result<Vec<Answer>, Interruption> {
        self.behind(connection, first, |together| {
            for &index in indices {
                let prepared = texts.ready(&self.plans[index]);
                together.execute(Whose::Callers, prepared, sent(self.writes[index].parameters()));
            }
        })
        .await
    }

    /// The answers of what `ask` asks, which is executed behind what is `first` to be said, if there is something. Everything goes in one
    /// flight; what comes after one that fails is not executed.
    pub(super) async fn behind(
        &self,
        connection: &mut Connection,
        first: Option<String>,
        ask: impl FnOnce(&mut Together<'_, '_>),
    ) -> Result<Vec<Answer>, Interruption> {
        let first: Vec<&str> = first.iter().flat_map(|first| first.split("; ")).collect();
        let mut answers = connection
            .pipeline(|pipeline| {
                pipeline.together(|together| {
                    for sql in &first {
                        together.command(sql);
                    }
                    ask(together);
                });
            })
            .await
            .map_err(general)?;
        for (answer, sql) in answers.drain(..first.len()).zip(first) {
            answer.map_err(|refusal| general(failure(refusal, sql)))?;
        }
        Ok(answers)
    }

    /// Statements that share a savepoint. Those that fail have their errors; what is left of them goes on.
    pub(super) async fn subtransaction(
        &self,
        connection: &mut Connection,
        indices: &[usize],
        texts: &PreparedTexts,
        results: &mut Vec<(usize, WriteResult)>,
    ) -> Result<(), Interruption> {
        let mut parts: VecDeque<Vec<usize>> = VecDeque::from([indices.to_vec()]);
        while let Some(part) = parts.pop_front() {
            let save = Some(SAVE.to_owned());
            let answers = self.singles(connection, save, &part, texts).await?;
            let mut outcomes = Vec::with_capacity(part.len());
            let mut failed = None;
            for (position, answer) in answers.into_iter().enumerate() {
                let index = part[position];
                let result = match answer {
                    Ok(answered) => self.outcome(index, texts, &answered),
                    Err(refusal) => match failure(refusal, &self.plans[index].sql) {
                        Failure::Statement(error) if self.may_be_outdated(&error) => {
                            return Err(Interruption::Outdated(error));
                        }
                        // None before it has failed.
                        Failure::Statement(error) | Failure::Skipped(error) => Err(error.into()),
                        other => return Err(interruption(other, index)),
                    },
                };
                if result.is_err() {
                    failed = Some((position, result));
                    break;
                }
                outcomes.push((index, result));
            }
            let Some((position, failure)) = failed else {
                connection.command(RELEASE).await.map_err(general)?;
                results.append(&mut outcomes);
                continue;
            };
            connection.command(UNDO).await.map_err(general)?;
            results.push((part[position], failure));
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
    pub(super) fn may_be_outdated(&self, error: &StatementError) -> bool {
        !self.is_renewed && is_of_types(error)
    }

    /// What the caller at this index is told: its outcome, if that is accepted.
    pub(super) fn outcome(&self, index: usize, texts: &PreparedTexts, answered: &Answered) -> WriteResult {
        let plan = &self.plans[index];
        let outcome = outcome(texts.ready(plan), answered, plan.changes_rows)?;
        if let Some(acceptance) = self.writes[index].acceptance() {
            acceptance.of(&outcome)?;
        }
        Ok(outcome)
    }
}
