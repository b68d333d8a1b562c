//! Fill: what somebody may be told again later, asked on a connection of nobody's.
//!
//! Promises: it is asked as whoever asks, under what he has set, and goes on though he is gone. What is no whole answer is none. Where the
//! database is listened to, it is known of each answer whether it has seen all that had been told when it was asked for.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::ask::{Answer, Ask};
use super::company::Company;
use super::filler;
use super::job::Job;
use super::plan::{Of, Plan};
use super::restriction::Given;
use crate::memory::question::{Asker, Question, Rows, Way, Wording};
use crate::memory::{Said, Unanswered, found_rows};
use crate::pool::Pool;

/// An answer that hangs on more rows is taken for one about the whole table: it is remembered by each.
const ROWS_MAX: usize = 100;

/// What it takes to ask what questions of one form ask.
pub(crate) struct Fill {
    /// Memory keeps no pool that is gone.
    pool: Weak<Pool>,
    /// Those who ask are in it; what is remembered for them keeps it from nobody else.
    company: Weak<Company>,
    plan: Arc<Plan>,
    asker: Asker,
}

impl Way for Fill {
    fn asker(&self) -> Asker {
        self.asker.clone()
    }

    fn ask<'a>(
        &'a self,
        question: &'a Question,
    ) -> Pin<Box<dyn Future<Output = Result<Said, Unanswered>> + Send + 'a>> {
        Box::pin(async {
            let pool = self.pool.upgrade().ok_or(Unanswered)?;
            let company = self.company.upgrade().ok_or(Unanswered)?;
            // Whose answer hangs on numbers that were drawn is never remembered.
            let of = self.plan.may_be_remembered(true).ok_or(Unanswered)?;
            let listener = pool.listener();
            let rows = self.rows(&of, question);
            let by_row = rows.as_ref().and_then(|rows| Some((&*rows.table, of.key.as_deref()?)));
            let fence = listener.as_ref().map(|listener| listener.begin(&of.tables, by_row));
            // What is known of its tables may be of before.
            let is_known = of.schema_changes == pool.effects.schema_changes();
            let (ask, statement) = match &question.wording {
                Wording::Text(text) => (Ask::Simple(Bytes::copy_from_slice(text.as_bytes())), None),
                Wording::Bound {
                    statement,
                    bound,
                    steps,
                    told,
                } => {
                    let ask = Ask::Extended {
                        number: statement.number(),
                        bound: Bytes::copy_from_slice(bound),
                        steps: *steps,
                        told: *told,
                    };
                    (ask, Some(Arc::clone(statement)))
                }
            };
            let (mut job, told) = Job::new(Arc::clone(&self.plan), ask, statement, None, None);
            job.time = question.common().time;
            job.bytes_max = usize::try_from(self.plan.remembered_bytes_max()).unwrap_or(usize::MAX);
            job.caller.clone_from(&question.caller);
            let (sees, seen) = oneshot::channel();
            job.sees = fence.is_some().then_some(sees);
            // Where the database is away there may be something to be told.
            filler::fill(pool, &company, job, question.may_be_away());
            let Ok(Answer::Done(said)) = told.await else {
                return Err(Unanswered);
            };
            let is_of_now = match fence {
                None => true,
                Some(None) => false,
                Some(Some(fence)) => matches!(seen.await, Ok((snapshot, server)) if fence.holds(&snapshot, &server)),
            };
            // Of several it shows some.
            let shows = |rows: &Rows| rows.rows.len() == 1 && self.plan.shows_row() && found_rows(&said) == Some(true);
            Ok(Said {
                // What it is a part of is longer.
                bytes: Bytes::copy_from_slice(&said),
                is_of_now: is_of_now && is_known,
                tables: of.tables,
                rows: rows.map(|rows| Rows {
                    are_there: shows(&rows),
                    ..rows
                }),
            })
        })
    }
}

impl Fill {
    pub(crate) fn new(pool: &Arc<Pool>, company: &Arc<Company>, plan: &Arc<Plan>) -> Self {
        Self {
            pool: Arc::downgrade(pool),
            company: Arc::downgrade(company),
            plan: Arc::clone(plan),
            asker: Asker {
                whose: pool.whose().clone(),
                beginning: company.beginning.clone(),
                settings: Arc::clone(&company.settings),
            },
        }
    }

    /// The few rows of a table that its answer hangs on, of all of that table's.
    fn rows(&self, of: &Of, question: &Question) -> Option<Rows> {
        let given = match &question.wording {
            Wording::Text(text) => Given::Text(text.as_bytes()),
            Wording::Bound { statement, bound, .. } => Given::Bound {
                definition: statement.definition(),
                bound,
            },
        };
        let rows = self.plan.rows(of.key.as_deref()?, &given)?;
        let table = self.plan.restricted_to()?.into();
        (rows.len() <= ROWS_MAX).then_some(Rows {
            table,
            rows,
            // As long as nothing is told.
            are_there: false,
        })
    }
}
