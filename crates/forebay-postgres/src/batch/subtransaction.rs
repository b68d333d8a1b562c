//! Subtransaction: statements of a transaction by themselves, not as a set: all sent at once, or so many behind a savepoint.
//!
//! Promises: those that stand have their outcomes; one that fails behind a savepoint undoes only itself. Knows nothing of
//! the commit.

use std::collections::VecDeque;

use super::interruption::{Interruption, general, interruption};
use super::prepared::PreparedTexts;
use super::state::Batch;
use crate::connection::{Answered, Connection, Message, Whose, answer, pipeline};
use crate::error::{Failure, failure};
use crate::statement::{control, is_of_types, outcome, sent};
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
        connection: &Connection,
        begin: &mut Option<String>,
    ) -> Result<(), Interruption> {
        match begin.take() {
            Some(begin) => connection.command(&begin).await.map_err(general),
            None => Ok(()),
        }
    }

    /// Executes each by itself, all in one pipeline.
    pub(super) async fn singles(
        &self,
        connection: &Connection,
        first: Option<String>,
        indices: &[usize],
        texts: &PreparedTexts,
    ) -> Result<Vec<Result<Answered, tokio_postgres::Error>>, Interruption> {
        let client = connection.client();
        let mut messages: Vec<Message<'_, Result<Answered, tokio_postgres::Error>>> =
            Vec::with_capacity(indices.len() + 1);
        let begins = first.is_some();
        if let Some(first) = first {
            messages.push(control(client, first));
        }
        for &index in indices {
            let statement = &texts.ready(&self.plans[index]).statement;
            let parameters = self.writes[index].parameters();
            messages.push(Box::pin(answer(
                Whose::Callers,
                connection,
                statement,
                sent(parameters),
            )));
        }
        let mut answers = connection.all(pipeline(messages)).await.map_err(general)?;
        if begins && let Err(error) = answers.remove(0) {
            return Err(general(failure(&error, "BEGIN")));
        }
        Ok(answers)
    }

    /// Statements that share a savepoint. Those that fail have their errors; what is left of them goes on.
    pub(super) async fn subtransaction(
        &self,
        connection: &Connection,
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
                    Err(error) => match failure(&error, &self.plans[index].sql) {
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
