//! Filling: questions for memory that wait for a connection.
//!
//! Promises: each waits in its own right, and is taken once: by whoever waits for its connection, or along with another one of its statement. Knows no
//! connection.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::job::Job;

/// Questions of a company that wait for a connection.
#[derive(Debug, Default)]
pub(crate) struct Filling(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    /// The number of the one that came last.
    last: u64,
    /// In the order in which they came.
    all: VecDeque<Entry>,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    job: Job,
    /// Dropped when somebody takes it.
    _is_taken: oneshot::Sender<()>,
}

impl Filling {
    pub(super) fn enter(&self, job: Job) -> (u64, oneshot::Receiver<()>) {
        let (is_taken, taken) = oneshot::channel();
        let mut waiting = self.0.lock();
        waiting.last += 1;
        let number = waiting.last;
        waiting.all.push_back(Entry {
            number,
            job,
            _is_taken: is_taken,
        });
        (number, taken)
    }

    /// The one of this number, and those behind or before it that ask the same statement, as many as go together. None if somebody was faster.
    pub(super) fn take(&self, number: u64, may_share: bool) -> Vec<Job> {
        let mut waiting = self.0.lock();
        let Some(own) = waiting.remove(number) else {
            return Vec::new();
        };
        let plan = Arc::clone(&own.plan);
        let most = if may_share { plan.most_together() } else { 1 };
        let mut taken = vec![own];
        let mut at = 0;
        while taken.len() < most && at < waiting.all.len() {
            match Arc::ptr_eq(&waiting.all[at].job.plan, &plan) {
                true => taken.extend(waiting.all.remove(at).map(|entry| entry.job)),
                false => at += 1,
            }
        }
        // Who has gone wants nothing; whoever was taken for himself goes in any case.
        let mut is_first = true;
        taken.retain(|job| std::mem::take(&mut is_first) || !job.is_abandoned());
        taken
    }

    pub(super) fn leave(&self, number: u64) {
        let left = self.0.lock().remove(number);
        drop(left);
    }
}

impl Waiting {
    fn remove(&mut self, number: u64) -> Option<Job> {
        // The first one is the next one, more often than not.
        let at = self.all.iter().position(|entry| entry.number == number)?;
        self.all.remove(at).map(|entry| entry.job)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;

    use super::super::ask::{Answer, Ask};
    use super::super::plan::Plan;
    use super::super::rules::Rules;
    use super::*;

    fn job(plan: &Arc<Plan>) -> (Job, oneshot::Receiver<Answer>) {
        Job::new(Arc::clone(plan), Ask::Simple(Bytes::new()), None, None, None)
    }

    #[test]
    fn whoever_has_a_connection_takes_those_along_who_ask_the_same_and_nobody_twice() {
        let filling = Filling::default();
        let plans = ["SELECT a FROM t", "SELECT b FROM t"].map(|text| Arc::new(Plan::of(text, &Rules::default())));
        let mut told = Vec::new();
        let mut entered: Vec<_> = [0, 1, 0, 0, 1]
            .into_iter()
            .map(|of| {
                let (job, receiver) = job(&plans[of]);
                told.push(receiver);
                filling.enter(job)
            })
            .collect();
        plans
            .iter()
            .for_each(|plan| plan.took(Duration::from_millis(1), true, false));
        let second = filling.take(entered[1].0, true);
        assert_eq!(second.len(), 2, "both of that statement");
        assert!(filling.take(entered[4].0, true).is_empty(), "it was taken along");
        assert!(
            entered[4]
                .1
                .try_recv()
                .is_err_and(|error| error == oneshot::error::TryRecvError::Closed)
        );
        assert!(
            entered[0]
                .1
                .try_recv()
                .is_err_and(|error| error == oneshot::error::TryRecvError::Empty)
        );
        filling.leave(entered[0].0);
        // Who has gone is not carried for others.
        told.remove(3);
        assert_eq!(filling.take(entered[2].0, true).len(), 1);
        assert!(filling.0.lock().all.is_empty());
    }
}
