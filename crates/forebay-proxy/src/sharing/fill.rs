//! Fill: what somebody may be told again later, asked by a carrier of its own.
//!
//! Promises: it is asked as whoever asks, under what he has set, and goes on though he is gone. What is no whole answer is none. Where the
//! database is listened to, it is known of each answer whether it has seen all that had been told when it was asked for.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;

use super::ask::{Answer, Ask};
use super::carrier::carry_one;
use super::company::Company;
use super::job::Job;
use super::plan::{Of, Plan};
use super::restriction::Given;
use crate::figures::Counting;
use crate::memory::question::{Row, Way};
use crate::memory::{Said, Unanswered};
use crate::pool::Pool;
use crate::statements::Statement;

/// What it takes to ask.
pub(crate) struct Fill {
    /// Memory keeps no pool that is gone.
    pub(crate) pool: Weak<Pool>,
    pub(crate) company: Arc<Company>,
    pub(crate) plan: Arc<Plan>,
    /// What its answer is of, as was known when it was found that it may be remembered.
    pub(crate) of: Of,
    pub(crate) ask: Ask,
    pub(crate) statement: Option<Arc<Statement>>,
    /// There may be something to be told where the database is away.
    pub(crate) has_recourse: bool,
    /// The server may be at it for so long.
    pub(crate) time: Option<Duration>,
    /// What is counted of who has asked it first.
    pub(crate) caller: Option<Arc<Counting>>,
}

impl Way for Fill {
    fn ask(&self) -> Pin<Box<dyn Future<Output = Result<Said, Unanswered>> + Send + '_>> {
        Box::pin(async {
            let pool = self.pool.upgrade().ok_or(Unanswered)?;
            let listener = pool.listener();
            let row = self.row();
            let by_row = row
                .as_ref()
                .and_then(|row| Some((&*row.table, self.of.key.as_deref()?)));
            let fence = listener
                .as_ref()
                .map(|listener| listener.begin(&self.of.tables, by_row));
            // What is known of its tables may be of before.
            let is_known = self.of.schema_changes == pool.effects.schema_changes();
            let plan = Arc::clone(&self.plan);
            let (mut job, told) = Job::new(plan, self.ask.clone(), self.statement.clone(), None, None);
            job.time = self.time;
            job.caller.clone_from(&self.caller);
            let (sees, seen) = oneshot::channel();
            let sees = fence.is_some().then_some(sees);
            carry_one(pool, Arc::clone(&self.company), job, sees, self.has_recourse);
            let Ok(Answer::Done(said)) = told.await else {
                return Err(Unanswered);
            };
            let is_of_now = match fence {
                None => true,
                Some(None) => false,
                Some(Some(fence)) => matches!(seen.await, Ok((snapshot, server)) if fence.holds(&snapshot, &server)),
            };
            Ok(Said {
                // What it is a part of is longer.
                bytes: Bytes::copy_from_slice(&said),
                is_of_now: is_of_now && is_known,
                row,
            })
        })
    }

    fn tables(&self) -> Arc<[Arc<str>]> {
        Arc::clone(&self.of.tables)
    }
}

impl Fill {
    /// The one row of a table that its answer hangs on, of all of that table's.
    fn row(&self) -> Option<Row> {
        let definition = self.statement.as_deref().map(Statement::definition);
        let given = Given::of(&self.ask, definition)?;
        let row = self.plan.row(self.of.key.as_deref()?, &given)?;
        let table = self.plan.restricted_to()?.into();
        Some(Row { table, row })
    }
}
