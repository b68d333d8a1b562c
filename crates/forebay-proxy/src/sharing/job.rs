//! Job: what one client waits for in company.
//!
//! Promises: it is answered once; where it is dropped, its client goes alone. It is carried or withdrawn, never both.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::ask::{Answer, Ask};
use super::flight::Ticket;
use super::plan::Plan;
use super::sent::Sent;
use crate::figures::Counting;
use crate::statements::Statement;

/// Whoever reads gets no longer answer in company.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// It waits.
const WAITING: u8 = 0;
/// It is carried.
const TAKEN: u8 = 1;
/// It is carried, and its client wants it no more.
const UNWANTED: u8 = 2;
/// It is carried never again.
const WITHDRAWN: u8 = 3;

/// Whether it is carried, as its carrier and its client agree on it.
#[derive(Debug, Default, Clone)]
pub(crate) struct Claim(Arc<AtomicU8>);

impl Claim {
    fn change(&self, from: u8, to: u8) -> bool {
        self.0
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// It is carried from now on; false if it was withdrawn.
    pub(crate) fn take(&self) -> bool {
        self.change(WAITING, TAKEN)
    }

    /// Whether its client wants it no more.
    fn is_unwanted(&self) -> bool {
        matches!(self.0.load(Ordering::Acquire), UNWANTED | WITHDRAWN)
    }

    /// What was carried has come back undone, and waits again; false if it is not wanted any more.
    pub(crate) fn give_back(&self) -> bool {
        self.change(TAKEN, WAITING)
    }

    /// Its client wants it no more. True if it is not carried then, nor ever; false while it is carried: what came of it is told.
    pub(crate) fn withdraw(&self) -> bool {
        let withdrawn = |now| match now {
            WAITING => Some(WITHDRAWN),
            TAKEN => Some(UNWANTED),
            _ => None,
        };
        let before = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, withdrawn);
        matches!(before, Ok(WAITING) | Err(WITHDRAWN))
    }
}

/// What is told of what a question sees at least, in two [texts](crate::hearing::ASK_SNAPSHOT).
pub(crate) type Sees = oneshot::Sender<(String, String)>;

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
    /// The server may be at it for so long.
    pub(crate) time: Option<Duration>,
    /// Its answer is of use if it has no more bytes, where it reads.
    pub(crate) bytes_max: usize,
    /// What is counted of who asks it.
    pub(crate) caller: Option<Arc<Counting>>,
    pub(crate) sent: Sent,
    pub(crate) claim: Claim,
    /// It was asked as one with others, and that did not do.
    pub(crate) is_single: bool,
    /// Others may have joined it.
    pub(crate) flight: Option<Ticket>,
    /// Somebody wants to know what its answer has seen, which is asked in front of it.
    pub(crate) sees: Option<Sees>,
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
            time: None,
            bytes_max: ANSWER_BYTES_MAX,
            caller: None,
            sent: Sent::default(),
            claim: Claim::default(),
            is_single: false,
            flight: None,
            sees: None,
            answer,
        };
        (job, told)
    }

    /// Whether nobody waits for it any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.answer.is_closed() && !self.flight.as_ref().is_some_and(Ticket::is_wanted)
    }

    /// The server was at it for so long.
    pub(crate) fn was_at_database(&self, elapsed: Duration) {
        self.plan.was_at_database(elapsed);
        if let Some(caller) = &self.caller {
            caller.was_at_database(elapsed);
        }
    }

    pub(crate) fn answer(self, answer: Answer) {
        let answer = match answer {
            // Nothing was done, and nothing is to be done any more.
            Answer::Alone(_) if self.claim.is_unwanted() => Answer::Cancelled,
            answer => answer,
        };
        if let Some(flight) = &self.flight {
            let count = flight.tell(&answer);
            if matches!(answer, Answer::Done(_)) {
                self.plan.was_joined(count);
            }
        }
        // Whoever has gone wants none.
        drop(self.answer.send(answer));
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::sharing::rules::Rules;

    #[test]
    fn what_waits_is_withdrawn_and_never_carried() {
        let claim = Claim::default();
        assert!(claim.withdraw());
        assert!(!claim.take());
        assert!(claim.withdraw(), "and stays so");
    }

    #[test]
    fn what_is_carried_is_not_withdrawn_but_does_not_wait_again() {
        let claim = Claim::default();
        assert!(claim.take() && claim.give_back() && claim.take());
        assert!(!claim.withdraw());
        assert!(!claim.withdraw(), "also asked again");
        assert!(!claim.give_back());
    }

    #[test]
    fn what_came_to_nothing_goes_alone_only_where_it_is_wanted() {
        for (is_wanted, answer, is_told) in [
            (true, Answer::Alone(false), "Alone(false)"),
            (false, Answer::Alone(false), "Cancelled"),
            (false, Answer::Unknown, "Unknown"),
        ] {
            let plan = Arc::new(Plan::of("SELECT 1", &Rules::default()));
            let (job, mut told) = Job::new(plan, Ask::Simple(Bytes::new()), None, None, None);
            assert!(job.claim.take());
            if !is_wanted {
                job.claim.withdraw();
            }
            job.answer(answer);
            assert_eq!(format!("{:?}", told.try_recv().unwrap()), is_told);
        }
    }

    #[test]
    fn one_of_two_threads_has_it() {
        for _ in 0..1000 {
            let claim = Claim::default();
            let other = claim.clone();
            let carrier = std::thread::spawn(move || other.take());
            let is_withdrawn = claim.withdraw();
            assert_ne!(carrier.join().unwrap(), is_withdrawn);
        }
    }
}
