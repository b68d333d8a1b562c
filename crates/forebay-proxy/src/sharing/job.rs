//! Job: what one client waits for in company.
//!
//! Promises: it is answered once; where it is dropped, its client goes alone.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::oneshot;

use super::plan::Plan;
use super::unit::Steps;
use crate::statements::Statement;

/// What is asked for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Ask {
    /// A text, without the zero behind it.
    Simple(Bytes),
    /// A statement that can be prepared, by its number; the body of its Bind behind the name, and what else is asked.
    Extended { number: u64, bound: Bytes, steps: Steps },
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Answer {
    /// All messages up to ReadyForQuery, which is not among them; nor is ParseComplete.
    Done(Bytes),
    /// Nothing, and nothing was done: it goes alone. It was held up, if this is true.
    Alone(bool),
    /// Whether it was done is not known.
    Unknown,
    /// Its client does not want it any more.
    Cancelled,
}

/// One of those who wait.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) plan: Arc<Plan>,
    pub(crate) ask: Ask,
    /// Of an [`Ask::Extended`].
    pub(crate) statement: Option<Arc<Statement>>,
    /// Of the table whose rows it changes, as it was when it was found that it may travel: what is learnt while it waits does not matter to it.
    pub(crate) mark: Option<Arc<str>>,
    /// Until when it waits for company; none: it goes with the next trip.
    pub(crate) until: Option<Instant>,
    answer: oneshot::Sender<Answer>,
}

impl Job {
    pub(crate) fn new(
        plan: Arc<Plan>,
        ask: Ask,
        statement: Option<Arc<Statement>>,
        mark: Option<Arc<str>>,
        until: Option<Instant>,
    ) -> (Self, oneshot::Receiver<Answer>) {
        let (answer, told) = oneshot::channel();
        let job = Self {
            plan,
            ask,
            statement,
            mark,
            until,
            answer,
        };
        (job, told)
    }

    /// Whether nobody waits for it any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.answer.is_closed()
    }

    pub(crate) fn answer(self, answer: Answer) {
        // Whoever has gone wants none.
        drop(self.answer.send(answer));
    }
}
