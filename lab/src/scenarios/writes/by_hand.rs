//! What one writes by hand, as far as it knows no database: a bounded channel of rows, each with a oneshot for its answer.
//!
//! Promises: whoever takes the rows gets up to [`ROWS_A_TRANSACTION`] that wait, and every caller gets its own row's answer,
//! or a refusal when what took its row has ended.

use tokio::sync::{mpsc, oneshot};

use crate::callers::{Insert, Refused, Row};

/// Rows that share a transaction, in limits and in what one writes by hand.
pub(super) const ROWS_A_TRANSACTION: usize = 1_000;
/// More than callers, so that none ever waits to be let in.
const QUEUED_MAX: usize = 16_384;

/// What a caller is told: the id of its row, if the database tells it.
pub(super) type Answer = Result<Option<i64>, Refused>;

/// A row whose caller waits.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) row: Row,
    answer: oneshot::Sender<Answer>,
}

impl Waiting {
    pub(super) fn answer(self, answer: Answer) {
        // A caller that has gone wants no answer.
        let _ = self.answer.send(answer);
    }
}

/// The callers' side.
#[derive(Debug, Clone)]
pub(super) struct ByHand {
    rows: mpsc::Sender<Waiting>,
}

impl ByHand {
    /// And the side of what takes the rows.
    pub(super) fn new() -> (Self, mpsc::Receiver<Waiting>) {
        let (rows, waiting) = mpsc::channel(QUEUED_MAX);
        (Self { rows }, waiting)
    }
}

impl Insert for ByHand {
    async fn insert(&self, row: Row) -> Answer {
        let gone = || Refused::Otherwise("what writes by hand has ended".to_owned());
        let (answer, answered) = oneshot::channel();
        self.rows.send(Waiting { row, answer }).await.map_err(|_| gone())?;
        answered.await.unwrap_or_else(|_| Err(gone()))
    }
}
